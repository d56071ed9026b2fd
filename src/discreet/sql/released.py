"""Expressions of released numbers: what the select list, HAVING and ORDER BY are made of, after the noise.

A question about the answer of another question is made of nothing else: it chooses, sorts and gathers its groups.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, cast

from discreet.data import Domain, Text
from discreet.query import And, OfPersons, PersonRows, Persons, Predicate, Question
from discreet.sql.expressions import (
    Arithmetic,
    Exactly,
    Expression,
    KeyOf,
    Made,
    Rising,
    Total,
    absolute,
    power,
    power_span,
)
from discreet.sql.grammar import COMPARISONS, SUBQUERY, From, Node, Ordering, SelectQuery
from discreet.sql.naming import SHAPES, calls, ordinal, signature, written
from discreet.sql.over_groups import Gathered, Labelled, OfKeys, Over
from discreet.sql.rows import (
    CALLS,
    MAX_TABLE,
    NUMERIC,
    WHOLE,
    all_of,
    cases,
    compared,
    compiled,
    half_away,
    inside,
    listed,
)
from discreet.sql.scope import Meaning, Scope
from discreet.sql.source import AGGREGATES, Source, folded, shown
from discreet.sql.statement import OutputColumn, Sorting, Statement
from discreet.sql.values import GroupedBy, label

UNSHOWN = (
    "of keys that nobody listed only the common ones are shown: nothing is known of all of them together",
    "Ask for them without it, and for what is the same for all rows by itself.",
)


WINDOW_HINT = "For example SUM(COUNT(*)) OVER (), or RANK() OVER (ORDER BY COUNT(*) DESC)."


class Sentences:
    """Expressions of estimates: what the select list, HAVING and ORDER BY are made of."""

    scope: Scope
    keys: tuple[GroupedBy, ...]

    def named(self, node: Node) -> Expression | None:
        """What an expression is by itself, if it is known: a key, an aggregate, a name."""
        raise NotImplementedError

    def expression(self, node: Node) -> Expression:
        found = self.named(node)
        if found is not None:
            return found
        match node.kind:
            case "number":
                return Exactly(label(node.value) if node.value.denominator == 1 else node.value)
            case "text" | "boolean" | "null":
                return Exactly(node.value)
            case "+" | "-" | "*" | "/" | "//" | "%":
                return self.arithmetic(node)
            case "minus":
                return Arithmetic("-", Exactly(0), self.expression(node.parts[0]))
            case "cast" if node.value in NUMERIC:
                inner = self.expression(node.parts[0])
                return Rising(lambda value: round(Fraction(value)), inner) if node.value in WHOLE else inner
            case "call":
                return self.call(node)
            case "case":
                return self.case(node)
            case "over":
                return self.window(node)
        maker = _CONDITIONS.get(node.kind)
        if maker is None:
            self.scope.refuse(node, "this is not answered here", SHAPES)
        joins = node.kind in ("and", "or", "not")
        parts = tuple(self.truth(part) if joins else self.expression(part) for part in node.parts)
        scope = self.scope
        return Made(lambda *values: maker(scope, node, *values), parts, truth=True, kind=node.kind)

    def arithmetic(self, node: Node) -> Expression:
        left, right = (self.expression(part) for part in (node.parts[0], _divisor(node)))
        if node.kind == "/":
            factor, top = _scaled(left)
            if isinstance(top, Total) and isinstance(right, Total) and right.question.counting:
                return self.ratio(left, top.question, factor, right)
        return Arithmetic(node.kind, left, right)

    def ratio(self, left: Expression, part: Question, factor: Fraction, below: Total) -> Expression:
        """A part of the rows, or of the persons, over the whole is between 0 and 1."""
        alike = made_of(part) == made_of(below.question)
        some, every = (each.query if isinstance(each, OfPersons) else each for each in (part, below.question))
        inside = alike and {*_conjuncts(some.where)} >= {*_conjuncts(every.where)}
        # Rows are no part of the persons whose rows they are.
        fewer = some.counting and (isinstance(some, Persons) or not isinstance(every, Persons))
        whole = some.grouped or not every.grouped
        return Arithmetic("/", left, below, factor if inside and fewer and whole else None)

    def window(self, node: Node) -> Expression:
        """A function over the groups, after the noise."""
        scope, (many, ways, frame), call = self.scope, node.value, node.parts[0]
        if call.kind != "call" or call.value[1]:
            scope.refuse(node, "this window is not answered", WINDOW_HINT)
        name = {"MEAN": "AVG"}.get(call.value[0], call.value[0])
        parted = tuple(self.expression(part) for part in node.parts[1 : 1 + many])
        nodes = zip(node.parts[1 + many :], ways, strict=True)
        order = tuple((self.expression(each), down, bool(first)) for each, (down, first) in nodes)
        noisy = any(part.aggregate for each, _, _ in order for part in each.walk())
        if any(part.aggregate for each in parted for part in each.walk()):
            scope.refuse(node, "groups are parted by what they are grouped by", WINDOW_HINT)
        if name in ("RANK", "DENSE_RANK", "ROW_NUMBER"):
            if call.parts or not order:
                scope.refuse(node, f"{name}() stands before OVER (ORDER BY ...)", WINDOW_HINT)
            return Over(name, Exactly(0), parted, order)
        if (
            name not in ("SUM", "AVG", "MIN", "MAX", "COUNT", "LAG", "LEAD", "FIRST_VALUE")
            or not 1 <= len(call.parts) <= 2
        ):
            scope.refuse(node, f"{name} is not answered as a window", WINDOW_HINT)
        if frame is not None and name not in ("SUM", "AVG", "MIN", "MAX"):
            scope.refuse(node, f"a frame is answered for SUM, AVG, MIN and MAX, not for {name}", WINDOW_HINT)
        if noisy or (name in ("LAG", "LEAD", "FIRST_VALUE") and not order):
            scope.refuse(node, "this window is ordered by what groups are grouped by, which has no noise", WINDOW_HINT)
        away = call.parts[1] if len(call.parts) == 2 else Node("number", node.start, (), Fraction(1))
        if (
            away.kind != "number"
            or away.value.denominator != 1
            or (len(call.parts) == 2 and name not in ("LAG", "LEAD"))
        ):
            scope.refuse(node, f"{name} is not read like this", WINDOW_HINT)
        inner = Exactly(1) if call.parts[0].kind == "star" else self.expression(call.parts[0])
        return Over(name, inner, parted, order, int(away.value), frame)

    def call(self, node: Node) -> Expression:
        name, distinct = node.value
        scope, parts = self.scope, tuple(self.expression(part) for part in node.parts)
        if distinct or name not in (*CALLS, *_GROWING):
            scope.refuse(node, f"{name} is not answered here", SHAPES)
        if name in CALLS and not any(each.aggregate for part in parts for each in part.walk()):
            return self.of_keys(node, parts)
        if name == "ROUND" and len(parts) in (1, 2):
            digits = _digits(node.parts[1]) if len(parts) == 2 else Fraction(0)
            if digits.denominator != 1 or abs(digits) > 15:
                scope.refuse(node, "ROUND needs a number of digits", "For example ROUND(AVG(x), 1).")
            return Rising(lambda value: _rounded(value, int(digits)), parts[0])
        if name in _GROWING and len(parts) == 1:
            return Rising(_GROWING[name], parts[0])
        many = {"ABS": 1, "POWER": 2, "POW": 2, "NULLIF": 2, "IF": 3}.get(name, max(1, len(parts)))
        if name in _AFTER and len(parts) != many:
            scope.refuse(node, f"{name} takes {many} values here, found {len(parts)}", SHAPES)
        if name in _SPANS:
            return Made(_AFTER[name], parts, span=_SPANS[name])
        if name in _AFTER:  # the value is one of these
            return Made(_AFTER[name], parts, {"IF": parts[1:], "NULLIF": parts[:1]}.get(name, parts))
        scope.refuse(node, f"{name} is not answered here", SHAPES)

    def of_keys(self, node: Node, parts: tuple[Expression, ...]) -> Expression:
        """A function of what groups are grouped by, as it is of a row: for all of their labels, before any charge."""
        names = tuple(Node("name", part.start, (), (None, f"part {place}")) for place, part in enumerate(node.parts))
        called: dict[str, Meaning] = {name.value[1]: name.value[1] for name in names}
        known = Scope(self.scope.asked, (), Domain(dict.fromkeys(called, Text())), {"": called})
        run = compiled(known, replace(node, parts=names))

        def function(*given: Any) -> Any:
            numbers = (Fraction(str(one)) if type(one) in (int, float) else one for one in given)
            return label(run(dict(zip(called, numbers, strict=True))))

        places, values = self.labelled(node, parts)
        made = {each: function(*given) for each, given in values.items()}
        return OfKeys(places, made, signature(self.scope, node))

    def labelled(self, node: Node, parts: Sequence[Expression]) -> tuple[tuple[int, ...], dict[Any, tuple[Any, ...]]]:
        """The places of the keys that expressions look at, and the values of these for all labels of the keys."""
        places = sorted({at for part in parts for each in part.walk() for at in getattr(each, "places", ())})
        labels = [self.keys[place].labels for place in places]
        if not all(labels) or math.prod(map(len, labels)) > MAX_TABLE:
            self.scope.refuse(node, "this function of what is grouped by has too many values", SHAPES)
        found = dict[Any, tuple[Any, ...]]()
        for each in itertools.product(*labels):
            every = (each[places.index(at)] if at in places else None for at in range(len(self.keys)))
            group: Any = Labelled(tuple(every))
            found[each] = tuple(part.of(group).value for part in parts)
        return tuple(places), found

    def case(self, node: Node) -> Expression:
        pairs, otherwise = cases(node)
        conditions = [self.truth(each) for each, _ in pairs]
        results = [self.expression(each) for each in (*(value for _, value in pairs), otherwise)]
        many = len(conditions)

        def choose(*values: Any) -> Any:
            place = next((at for at in range(many) if values[at] is True), many)
            return values[many + place]

        return Made(choose, (*conditions, *results), tuple(results))

    def truth(self, node: Node) -> Expression:
        """A condition on what was released."""
        found = self.expression(node)
        if not (isinstance(found, Made) and found.truth) and node.kind != "boolean":
            self.scope.refuse(node, "a condition is expected here", "For example HAVING COUNT(*) > 100.")
        return found

    # The statement.

    def sorted_by(self, query: SelectQuery, outputs: Sequence[OutputColumn]) -> tuple[Sorting, ...]:
        return tuple(self.sorting(query, outputs, each) for each in query.order)

    def sorting(self, query: SelectQuery, outputs: Sequence[OutputColumn], by: Ordering) -> Sorting:
        expression = None
        if by.node.kind == "number":
            item = ordinal(self.scope.asked, query.items, by.node)
            expression = outputs[query.items.index(item)].expression
        elif by.node.kind == "name" and by.node.value[0] is None:
            called = {folded(item.alias): at for at, item in enumerate(query.items) if item.alias is not None}
            if folded(by.node.value[1]) in called:
                expression = outputs[called[folded(by.node.value[1])]].expression
        expression = expression or self.expression(by.node)
        return Sorting(expression, by.descending, bool(by.nulls_first))


def made_of(question: Question) -> PersonRows | None:
    """How the rows are made that a question is about, if they are made of each person's."""
    return question.made if isinstance(question, OfPersons) else None


def _divisor(node: Node) -> Node:
    """What an expression ends with; of x / NULLIF(y, 0) it is y: over 0 there is no answer in any case."""
    last = node.parts[1]
    nothing = Node("number", 0, (), Fraction(0))
    if node.kind != "/" or last.kind != "call" or last.value[0] != "NULLIF" or len(last.parts) != 2:
        return last
    return last.parts[0] if replace(last.parts[1], start=0) == nothing else last


def _conjuncts(where: Predicate) -> tuple[Predicate, ...]:
    return where.inner if type(where) is And else (where,)


def _scaled(expression: Expression) -> tuple[Fraction, Expression]:
    """A literal factor, and what it multiplies."""
    if isinstance(expression, Arithmetic) and expression.sign == "*":
        for one, other in ((expression.left, expression.right), (expression.right, expression.left)):
            if isinstance(one, Exactly) and isinstance(one.value, (int, Fraction)):
                factor, inner = _scaled(other)
                return factor * one.value, inner
    return Fraction(1), expression


def _digits(node: Node) -> Fraction:
    """A literal number of digits; a half if it is none."""
    if node.kind == "minus":
        return -_digits(node.parts[0])
    return cast("Fraction", node.value) if node.kind == "number" else Fraction(1, 2)


def _rounded(value: Any, digits: int) -> Any:
    found = half_away(Fraction(value), digits)
    return int(found) if found.denominator == 1 and type(value) is not float else float(found)


def _logarithm(base: float) -> Callable[[Any], Any]:
    """Of what is not above 0 there is none: SQL refuses, an answer has none."""
    return lambda value: math.log(float(value)) / math.log(base) if value > 0 else None


_GROWING: dict[str, Callable[[Any], Any]] = {
    "FLOOR": math.floor,
    "CEIL": math.ceil,
    "CEILING": math.ceil,
    "TRUNC": math.trunc,
    "SQRT": lambda value: math.sqrt(max(0.0, float(value))),
    "LN": _logarithm(math.e),
    "LOG2": _logarithm(2),
    "LOG10": _logarithm(10),
    "EXP": lambda value: math.exp(min(700.0, float(value))),
    "SIGN": lambda value: (value > 0) - (value < 0),
}


def _null(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: None if None in values else function(*values)


_SPANS: dict[str, Callable[..., tuple[float, float]]] = {
    "ABS": absolute,
    "POWER": power_span,
    "POW": power_span,
    "GREATEST": lambda *ends: (max(low for low, _ in ends), max(high for _, high in ends)),
    "LEAST": lambda *ends: (min(low for low, _ in ends), min(high for _, high in ends)),
}

_AFTER: dict[str, Callable[..., Any]] = {
    "ABS": _null(abs),
    "POWER": _null(power),
    "POW": _null(power),
    "COALESCE": lambda *values: next((each for each in values if each is not None), None),
    "GREATEST": lambda *values: max((each for each in values if each is not None), default=None),
    "LEAST": lambda *values: min((each for each in values if each is not None), default=None),
    "NULLIF": lambda one, other: None if one == other else one,
    "IF": lambda truth, one, other: one if truth is True else other,
}


def _is(scope: Scope, node: Node, value: Any) -> bool:
    against, what = node.value
    return (value is {"NULL": None, "TRUE": True, "FALSE": False}[what]) is not bool(against)


_CONDITIONS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(COMPARISONS, compared),
    "and": all_of,
    "or": all_of,
    "not": lambda scope, node, value: None if value is None else not value,
    "between": inside,
    "in": listed,
    "is": _is,
}


class Outer(Sentences):
    """The select list of a question about the answer of another one."""

    def __init__(
        self, asked: Source, inner: Statement, source: From, one_number: Callable[[Node, tuple[str, ...]], Expression]
    ) -> None:
        self.one_number = one_number
        self.inner, self.known = inner, {folded(output.name): output for output in inner.outputs}
        unknown = (GroupedBy("", (), "") for _ in inner.gathers or ())  # their labels are not listed
        self.keys, self.by = inner.keys if inner.gathers is None else tuple(unknown), list[Any]()
        self.gathering = False  # what is read is of the gathered groups, not of those of the inner question
        self.alias = folded(source.alias or source.name or "")
        table = asked.tables[0]
        self.scope = Scope(asked, (), table.domain, {})

    def named(self, node: Node) -> Expression | None:
        if self.gathering and self.mark(node) in self.by:
            return KeyOf(self.by.index(self.mark(node)))
        if (node.kind == "call" and node.value[0] in AGGREGATES) or node.kind in ("filter", "within"):
            before = self.gathering, self.keys
            self.gathering, self.keys = False, self.inner.keys
            made = self.gathered(node)
            self.gathering, self.keys = before
            return made
        if node.kind == "select" and self.gathering:
            self.scope.refuse(node, *SUBQUERY)
        if node.kind == "select":
            return self.one_number(node, self.inner.tables)
        if node.kind != "name":
            return None
        qualifier, name = node.value
        found = self.known.get(folded(name))
        if found is None or (qualifier is not None and folded(qualifier) != self.alias):
            hint = f"It has {', '.join(shown(output.name) for output in self.inner.outputs)}."
            self.scope.refuse(node, f"the question in brackets has no column {shown(name)}", hint)
        if self.gathering:
            self.scope.refuse(node, f"{shown(name)} is selected but not grouped by", "Group by it, or aggregate it.")
        return found.expression

    def mark(self, node: Node) -> Any:
        """What makes two expressions the same here."""
        parts = tuple(map(self.mark, node.parts))
        return node.kind, folded(node.value[1]) if node.kind == "name" else node.value, parts

    def gathered_by(self, query: SelectQuery) -> tuple[Expression, ...]:
        """What the groups of the inner question are grouped by."""
        nodes = list(query.group or ()) or [item.node for item in query.items if not calls(item.node)]
        aliases = query.aliases
        meant = [ordinal(self.scope.asked, query.items, each).node if each.kind == "number" else each for each in nodes]
        meant = [
            aliases.get(folded(each.value[1]), each)
            if each.kind == "name" and folded(each.value[1]) not in self.known
            else each
            for each in meant
        ]
        found = tuple(self.expression(each) for each in meant)
        for node, each in zip(nodes, found, strict=True):
            if any(part.aggregate for part in each.walk()):
                reason = "groups of another question are grouped by what it is grouped by, not by its numbers"
                self.scope.refuse(node, reason, "Which group has which number is not known exactly.")
        self.by, known = [self.mark(each) for each in meant], list[GroupedBy]()
        for node, each in zip(meant, found, strict=True):
            labels = dict.fromkeys(value for (value,) in self.labelled(node, [each])[1].values())
            known.append(GroupedBy(written(node), tuple(labels), written(node)))
        self.gathering, self.keys = True, tuple(known)
        return found

    def gathered(self, node: Node) -> Expression:
        """An aggregate of the groups of the question in brackets."""
        name = {"MEAN": "AVG"}.get(node.value[0], node.value[0]) if node.kind == "call" else ""
        if name not in ("SUM", "AVG", "MIN", "MAX", "COUNT") or node.value[1] or len(node.parts) != 1:
            reason = "of the groups of another question only SUM, AVG, MIN, MAX and COUNT are answered"
            self.scope.refuse(node, reason, "Ask the inner question alone.")
        if any(map(calls, node.parts)):
            self.scope.refuse(node, "an aggregate inside another is not answered", SHAPES)
        inner = Exactly(1) if node.parts[0].kind == "star" else self.expression(node.parts[0])
        counts = (output.expression for output in self.inner.outputs)
        return Gathered(
            name, inner, tuple(each for each in counts if isinstance(each, Total) and each.question.counting)
        )

    def statement(self, query: SelectQuery) -> Statement:
        gathers = [calls(item.node) for item in query.items]
        again = self.inner.gathers is not None and (query.group is not None or any(gathers))
        if (query.having is not None and query.group is None) or query.qualify is not None or again:
            reason = "this is not answered of the groups of another question"
            raise self.scope.asked.refused(query.start, reason, SHAPES)
        if query.group is None and any(gathers) and (not all(gathers) or query.order):
            reason = "aggregates of the groups of another question stand by themselves"
            raise self.scope.asked.refused(query.start, reason, "Leave the other columns and ORDER BY out.")
        windows = [each for item in query.items for each in item.node.walk() if each.kind == "over"]
        if windows and query.where is not None:
            self.scope.refuse(windows[0], "a window and a condition on groups do not stand together here", WINDOW_HINT)
        chosen, outputs = self.where(query), list[OutputColumn]()
        by = self.gathered_by(query) if query.group is not None else () if any(gathers) else None
        self.gathering = by is not None
        for item in query.items:
            if item.node.kind == "star":
                outputs += self.inner.outputs
                continue
            expression = self.expression(item.node)
            same = next((each for each in self.inner.outputs if each.expression is expression), None)
            name = item.alias or (same.name if same is not None else written(item.node))
            outputs.append(OutputColumn(name, expression, same.unit if same is not None else ""))
        starred = any(item.node.kind == "star" for item in query.items)
        order = self.sorted_by(replace(query, items=()) if starred else query, outputs)
        limited = query.limit is not None or query.offset
        limit, offset = (query.limit, query.offset) if limited else (self.inner.limit, self.inner.offset)
        kept = self.inner.order if by is None else ()
        made = replace(self.inner, outputs=tuple(outputs), order=order or kept, limit=limit, offset=offset)
        if made.gathers is not None:
            return replace(made, then=self.both(made.then, chosen))
        then = None if query.having is None else self.truth(query.having)
        return replace(made, qualify=self.both(made.qualify, chosen), then=then, gathers=by)

    def both(self, *conditions: Expression | None) -> Expression | None:
        """The condition that all of these hold."""
        found = tuple(each for each in conditions if each is not None)
        if len(found) < 2:
            return found[0] if found else None
        scope, node = self.scope, Node("and", 0)
        return Made(lambda *values: all_of(scope, node, *values), found, truth=True, kind="and")

    def where(self, query: SelectQuery) -> Expression | None:
        return None if query.where is None else self.truth(query.where)
