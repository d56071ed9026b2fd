"""What a question asks, as a value: the package's docstring has the language."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, cast

from discreet.data import Domain
from discreet.errors import ParameterError
from discreet.query import (
    EVERYTHING,
    MAX_CELLS,
    And,
    Count,
    Fixed,
    GroupCount,
    GroupSum,
    Histogram,
    KeyCount,
    Of,
    OfPersons,
    Or,
    Persons,
    Plus,
    Power,
    Predicate,
    Question,
    Sum,
    Times,
    Value,
    check_value,
    joined,
    key_columns,
)
from discreet.sql.conditions import affine, chosen_rows, condition, rows_where, there
from discreet.sql.dialects import rewritten
from discreet.sql.expressions import (
    Arithmetic,
    Comoment,
    Exactly,
    Expression,
    KeyOf,
    Made,
    MeanOf,
    Moments,
    QuantileOf,
    Spread,
    Total,
    sum_ends,
)
from discreet.sql.grammar import Item, Node, Ordering, SelectQuery, tree
from discreet.sql.joins import Tables, joined_by_where
from discreet.sql.naming import SHAPES, aggregated, brackets, calls, named, ordinal, signature, unit_of, written
from discreet.sql.over_groups import Different, OfCounts, RankOf
from discreet.sql.released import UNSHOWN, Outer, Sentences, made_of
from discreet.sql.rows import combined
from discreet.sql.scope import Scope
from discreet.sql.source import AGGREGATES, Known, folded, source
from discreet.sql.statement import OutputColumn, Sorting, Statement, key_order, shared, summand
from discreet.sql.values import GroupedBy, ends_within, grouped_by, listed_by, summed

_WITHIN = ("PERCENTILE_CONT", "PERCENTILE_DISC", "QUANTILE_CONT", "QUANTILE_DISC")
_QUANTILES = ("MEDIAN", "QUANTILE", "PERCENTILE", *_WITHIN)


_MOST_RANKED = 2**12

_SPREADS = {
    **dict.fromkeys(("VAR", "VARIANCE", "VAR_SAMP"), (True, False)),
    **dict.fromkeys(("STDDEV", "STD", "STDDEV_SAMP"), (True, True)),
    "VAR_POP": (False, False),
    "STDDEV_POP": (False, True),
}


def parse(
    text: str, domain: Domain, *, table: str, unit: str | None = None, rows: int = 1, others: Sequence[Known] = ()
) -> Statement:
    """What a question asks; UnsupportedQuery, with the reason, if that is not understood in full.

    unit    the column of the table that names persons, if rows are not persons; rows: how many a person may have
    others  more tables that it may be about
    """
    return parse_about(text, (Known(table, domain, unit, rows), *others))


def parse_about(text: str, tables: Sequence[Known]) -> Statement:
    """The same about several tables."""
    asked = source(text, tuple(tables))
    try:
        query = tree(asked, rewritten)
        return _Binder(asked, query.named).whole(query)
    except RecursionError:
        raise asked.refused(0, "the question cannot be parsed", asked.example) from None


class _Binder(Tables):
    """Gives the parts of a question their meaning."""

    def whole(self, query: SelectQuery) -> Statement:
        """The statement of a question that may have several SELECTs, or several groupings."""
        several = [self.without_totals(each) for each in (query, *query.below)]
        query, parts = several[0], [part for each in several for part in self.groupings(each)]
        if len(parts) == 1:
            return self.statement(query)
        first, *rest = (self.statement(part) for part in parts)
        for part, made in zip(parts[1:], rest, strict=True):
            if made.tables != first.tables or len(made.outputs) != len(first.outputs):
                reason = "SELECTs that are combined are about the same table, and have as many columns"
                raise self.asked.refused(part.start, reason, "Ask them one at a time.")
        free = any(not key.labels for made in (first, *rest) for key in made.keys)
        if free or any(made.quantiles for made in (first, *rest)):
            reason = "quantiles, and keys that nobody listed, are asked for in one grouping"
            raise self.asked.refused(query.start, reason, "Ask them one at a time.")
        order = tuple(self.place_in(query, by) for by in query.order)
        return replace(first, below=tuple(rest), order=order, limit=query.limit, offset=query.offset)

    def groupings(self, query: SelectQuery) -> list[SelectQuery]:
        """A SELECT for each of its groupings: what it is not grouped by is NULL there."""
        plain = replace(query, sets=(), below=(), order=(), limit=None, offset=0)
        if not query.sets:
            return [plain]
        said = (node for item in query.items for node in item.node.walk())
        if query.qualify is not None or any(node.kind == "over" for node in said):
            reason = "a window would be over all groupings at once, which is not answered"
            raise self.asked.refused(query.start, reason, "Ask for one grouping at a time.")
        scope = self.scope(joined_by_where(self.asked, query).source)
        scope = replace(scope, aliases=query.aliases)
        every = {id(node): signature(scope, self.keyed(scope, query, node)[0]) for node in query.group or ()}
        if len({*every.values()}) < len({written(node) for node in query.group or ()}):
            raise self.asked.refused(query.start, "the same is grouped by twice", "Name it once.")
        found = list[SelectQuery]()
        for chosen in query.sets:
            here = {every[id(node)] for node in chosen}
            gone = {*every.values()} - here

            def change(node: Node, here: set[Any] = here, gone: set[Any] = gone) -> Node:
                if node.kind == "call" and node.value[0] == "GROUPING" and len(node.parts) == 1:
                    mark = signature(scope, node.parts[0])
                    if mark not in here | gone:
                        scope.refuse(node, "GROUPING is of what is grouped by", "For example GROUPING(a).")
                    return Node("number", node.start, (), Fraction(mark in gone))
                if node.kind in ("filter", "within") or (node.kind == "call" and node.value[0] in AGGREGATES):
                    return node  # it is of rows, whatever they are grouped by
                mark = signature(scope, node)
                if mark in here | gone:
                    return node if mark in here else Node("null", node.start)
                return replace(node, parts=tuple(map(change, node.parts)))

            items = tuple(
                replace(item, node=change(item.node), alias=item.alias or named(scope, item)) for item in query.items
            )
            having = None if query.having is None else change(query.having)
            nodes = tuple(self.keyed(scope, query, node)[0] for node in chosen)
            found.append(replace(plain, items=items, having=having, group=nodes or None))
        return found

    def place_in(self, query: SelectQuery, by: Ordering) -> Sorting:
        """What several SELECTs are sorted by: a column of the answer."""
        if by.node.kind == "number":
            item = ordinal(self.asked, query.items, by.node)
        else:
            marks = [each for each in query.items if written(by.node) in (each.alias, written(each.node))]
            if not marks:
                raise self.asked.refused(by.node.start, "these rows are sorted by a column of the answer", SHAPES)
            item = marks[0]
        return Sorting(KeyOf(query.items.index(item)), by.descending, bool(by.nulls_first))

    def statement(self, query: SelectQuery) -> Statement:
        query = self.matched(joined_by_where(self.asked, self.without_totals(query)))
        inner = self.grouping(query.source)
        if inner is not None and (inner.sets or inner.below):
            raise self.asked.refused(
                inner.start, "several groupings are asked for by themselves", "Leave the rest out."
            )
        if inner is not None and self.by_person(inner) is None:
            return self.outer(query, inner)
        self.refuse_distinct(query)
        star = next((item for item in query.items if item.node.kind == "star"), None)
        if star is not None:
            hint = "Rows are never shown: ask SELECT COUNT(*), or draw synthetic rows."
            raise self.asked.refused(star.start, "SELECT * is not answered", hint)
        scope = self.scope(query.source)
        scope = replace(scope, aliases=query.aliases)
        where = chosen_rows(scope, query.where)
        keys, signatures = self.keys(scope, query, where)
        binder = _Outputs(scope, where, keys, signatures, self)
        found = binder.statement(query)
        if scope.absent:
            self.check_absent(scope, query, found)
        return found

    def check_absent(self, scope: Scope, query: SelectQuery, found: Statement) -> None:
        """Of a LEFT JOIN only that is answered which is the same without the rows in which a table is missing."""
        hidden = {str(each) for alias in scope.absent for each in scope.names[alias].values()}
        where = EVERYTHING if query.where is None else condition(scope, query.where)
        looked = {*where.columns, *key_columns(key.key for key in found.keys)} & hidden
        calls = [each for item in query.items for each in item.node.walk() if each.kind == "call"]
        calls = [each for each in calls if each.value[0] in AGGREGATES]
        if looked or query.having is not None or not all(_of_absent(scope, hidden, each) for each in calls):
            reason = "a LEFT JOIN has rows in which a whole table is missing: only COUNT(v.x), SUM(v.x) and the like"
            hint = "Write JOIN instead, or aggregate columns of the joined table alone."
            raise self.asked.refused(query.source.start, f"{reason} are answered", hint)

    def outer(self, query: SelectQuery, inner: SelectQuery) -> Statement:
        """A question about the answer of another: it chooses columns and rows of it, after the noise."""
        made = self.statement(inner)
        if any(not key.labels for key in made.keys) and any(calls(item.node) for item in query.items):
            raise self.asked.refused(query.start, *UNSHOWN)
        changes = (query.where, query.order, query.limit is not None, any(calls(item.node) for item in query.items))
        if (made.limit is not None or made.offset) and any(changes):
            reason = "LIMIT in a question in brackets is answered if the outer one only shows its columns"
            raise self.asked.refused(inner.start, reason, "Put it at the end of the outer question.")
        return Outer(self.asked, made, query.source, self.one_number).statement(query)

    def one_number(self, node: Node, tables: tuple[str, ...]) -> Expression:
        """A question in brackets that has one number, about the same tables: it is released with the others."""
        query = cast("SelectQuery", node.value)
        if query.group is not None or len(query.items) != 1 or not any(calls(item.node) for item in query.items):
            hint = "For example (SELECT COUNT(*) FROM t)."
            raise self.asked.refused(node.start, "a question in brackets has one number here", hint)
        made = self.statement(query)
        found = made.outputs[0].expression
        if made.tables != tables:
            known = self.asked.tabled(made.tables[0])
            size = known.size if known is not None and found == Total(Count()) else None
            if size is not None and made.tables[1:] == ():
                return Exactly(size)
            reason = "a question in brackets is about the same table here"
            raise self.asked.refused(node.start, reason, "Ask it by itself, and divide the answers.")
        listed = any(isinstance(each, OfCounts) for each in found.walk())  # of the groups of another grouping
        if listed or made.quantiles or made.gathers is not None or made.limit is not None or made.offset:
            reason = "a question in brackets has one count, sum or average here"
            raise self.asked.refused(node.start, reason, "Ask it by itself.")
        return found

    def keys(self, scope: Scope, query: SelectQuery, where: Predicate) -> tuple[tuple[GroupedBy, ...], list[Any]]:
        """What is grouped by, and how it is recognised in the select list."""
        if query.group is None:
            return (), []
        nodes = list(query.group) or [item.node for item in query.items if not aggregated(scope, item.node)]
        found, signatures = list[GroupedBy](), list[Any]()
        for node in nodes:
            meant, name = self.keyed(scope, query, node)
            mark = signature(scope, meant)
            if mark in signatures:
                continue
            if aggregated(scope, meant):
                scope.refuse(node, "an aggregate cannot be grouped by", "Group by columns, or by functions of them.")
            found.append(listed_by(where, grouped_by(scope, meant, name)))
            signatures.append(mark)
        if where == Or() and not all(each.labels for each in found):
            begin = query.start if query.where is None else query.where.start
            raise self.asked.refused(begin, "the condition is never true", "No row is in any group.")
        if math.prod(len(each.labels) or 1 for each in found) > MAX_CELLS:
            start = query.group[0] if query.group else Node("name", query.start)
            reason = f"these groups have more than {MAX_CELLS:,} cells"
            scope.refuse(start, reason, "Group by fewer columns, or by coarser ones.")
        return tuple(found), signatures

    def keyed(self, scope: Scope, query: SelectQuery, node: Node) -> tuple[Node, str]:
        """What GROUP BY means: an expression, a name of the select list, or a place in it."""
        if node.kind == "number":
            item = ordinal(self.asked, query.items, node)
            return item.node, named(scope, item)
        mark = signature(scope, node)
        for item in query.items:
            if signature(scope, item.node) == mark:
                return item.node, named(scope, item)
        return node, named(scope, Item(node, None, node.start))


def _of_absent(scope: Scope, hidden: set[str], call: Node) -> bool:
    """Whether an aggregate looks at nothing but one column of a table that may be missing, or its person."""
    if len(call.parts) != 1 or call.parts[0].kind != "name":
        return False
    qualifier, _ = call.parts[0].value
    if scope.person(call.parts[0]):
        return qualifier is not None and folded(qualifier) in map(folded, scope.absent)
    return scope.meaning(call.parts[0]) in hidden


class _Outputs(Sentences):
    """The select list of a question about rows: keys, aggregates, and what is made of them."""

    def __init__(
        self, scope: Scope, where: Predicate, keys: tuple[GroupedBy, ...], signatures: list[Any], binder: _Binder
    ) -> None:
        self.scope, self.where, self.keys, self.signatures, self.binder = scope, where, keys, signatures, binder
        self.start = 0  # of the aggregate that is read

    def statement(self, query: SelectQuery) -> Statement:
        sorted_by = [by.node for by in query.order if by.node.kind != "number"]
        said = [*(item.node for item in query.items), *sorted_by, query.having, query.qualify]
        numbers = query.limit == 1 and any(each is not None and brackets(each) for each in said)
        if not (numbers or any(each is not None and aggregated(self.scope, each) for each in said)):
            reason = "a question without COUNT, SUM, AVG or a quantile is not answered: rows are not shown"
            raise self.scope.asked.refused(query.items[0].start, reason, SHAPES)
        outputs = tuple(self.output(item) for item in query.items)
        having, qualify = (None if each is None else self.truth(each) for each in (query.having, query.qualify))
        if query.qualify is not None and query.group is None:
            raise self.scope.asked.refused(query.qualify.start, "QUALIFY is answered with GROUP BY only", SHAPES)
        made = Statement(
            self.scope.about,
            self.where,
            self.keys,
            outputs,
            having,
            self.sorted_by(query, outputs),
            query.limit,
            query.offset,
            tuple(key_order(self.keys, self.scope.domain)),
            qualify,
            made=self.scope.made,
        )
        windows = next((each for item in query.items for each in item.node.walk() if each.kind == "over"), None)
        if windows is not None and any(map(self.unlisted, self.keys)):
            self.scope.refuse(windows, *UNSHOWN)
        return shared(made)

    def output(self, item: Item) -> OutputColumn:
        return OutputColumn(named(self.scope, item), self.expression(item.node), unit_of(self.scope, item.node))

    def named(self, node: Node) -> Expression | None:
        if node.kind == "star":
            self.scope.refuse(node, "* is not answered here", SHAPES)
        if node.kind == "select":
            return self.binder.one_number(node, self.scope.about)
        mark = signature(self.scope, node)
        if mark in self.signatures:
            return KeyOf(self.signatures.index(mark))
        if node.kind == "over" and not self.keys:
            reason = "a window over rows is not answered: rows are not shown"
            self.scope.refuse(node, reason, "Over groups it is: SUM(COUNT(*)) OVER () with GROUP BY.")
        scope, meant = (self.scope, node) if node.kind != "name" else self.scope.through(node)
        if meant.kind == "name":
            column = scope.meaning(meant)
            hint = f"Add GROUP BY {column}, or write an aggregate of it."
            scope.refuse(node, f"column {column!r} is selected but not grouped by", hint)
        if meant is not node:
            return _Outputs(scope, self.where, self.keys, self.signatures, self.binder).expression(meant)
        return self.aggregate(node)

    def ratio(self, left: Expression, part: Question, factor: Fraction, below: Total) -> Expression:
        """A sum over the number of its rows is an average."""
        persons = isinstance(getattr(below.question, "query", below.question), Persons)
        alike = part.grouped == below.question.grouped and made_of(part) == made_of(below.question)
        rows = alike and not persons
        if part.counting or part.where != below.question.where or not rows:
            return Sentences.ratio(self, left, part, factor, below)
        mean = MeanOf(self.moments(summand(part), part.where))
        return mean if factor == 1 else Arithmetic("*", Exactly(factor), mean)

    def aggregate(self, node: Node) -> Expression | None:
        where, self.start = self.where, node.start
        call = node
        if node.kind == "filter":
            call = node.parts[0]
            where = combined(And, [where, rows_where(self.scope, node.parts[1])])
        if call.kind == "within":
            return self.quantile(call, call.parts[0].value[0], call.parts[1], call.parts[0].parts, where)
        if call.kind != "call" or call.value[0] not in AGGREGATES:
            if node.kind == "filter":
                self.scope.refuse(node, "FILTER is allowed only after an aggregate", SHAPES)
            return None
        inner = next((part for part in call.parts if aggregated(self.scope, part)), None)
        if inner is not None:
            self.scope.refuse(inner, "an aggregate inside another is not answered", SHAPES)
        name, distinct = call.value
        if name in ("MIN", "MAX"):
            raise self.scope.asked.no_call(call.start, name, written(call.parts[0]) if call.parts else "x")
        if distinct:
            return self.persons(call, where)
        if name in _QUANTILES:
            return self.quantile(call, name, call.parts[0] if call.parts else None, call.parts[1:], where)
        return self.linear(call, name, where)

    def linear(self, call: Node, name: str, where: Predicate) -> Expression:
        scope, parts = self.scope, call.parts
        if name == "COUNT" and len(parts) == 1 and parts[0].kind == "star":
            return Total(self.counted(where))
        many = 2 if name in ("CORR", "COVAR_POP", "COVAR_SAMP") or name.startswith("REGR_") else 1
        if name == "COUNT" and not parts:
            scope.refuse(call, "nothing is counted here", "Count rows by COUNT(*).")
        if name == "COUNT" and len(parts) > 1:
            scope.refuse(call, "counting several columns is not answered", scope.asked.example)
        if len(parts) != many or any(part.kind == "star" for part in parts):
            scope.refuse(call, f"{name} takes {many} expression{'s' * (many > 1)} of columns", SHAPES)
        if name == "COUNT":
            return Total(self.counted(combined(And, [where, there(scope, parts[0])])))
        if name in ("COUNT_IF", "COUNTIF"):
            return Total(self.counted(combined(And, [where, rows_where(scope, parts[0])])))
        values = [summed(scope, part) for part in parts]
        rows = joined((where, *(value.known(scope.domain) for value in values)))
        for value, part in zip(values, parts, strict=True):
            self.check(part, value)
        if name == "SUM":
            return Total(self.total(values[0], rows), sum_ends(*values[0].bounds(scope.domain)))
        if name in ("AVG", "MEAN"):
            return MeanOf(self.moments(values[0], rows))
        if name in _SPREADS:
            self.check(parts[0], Power(self.centred(values[0])[0], 2))
            return Spread(self.moments(values[0], rows, squared=True), *_SPREADS[name])
        if name == "REGR_COUNT":
            return Total(self.counted(rows))
        one, other = (self.moments(value, rows, squared=name not in ("COVAR_POP", "COVAR_SAMP")) for value in values)
        product = Times(*(self.centred(value)[0] for value in values))
        self.check(parts[0], product)
        if name not in ("REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2"):
            return Comoment(one, other, self.total(product, rows), name)
        if name == "REGR_R2":
            root = Comoment(one, other, self.total(product, rows), "CORR")
            given = (root, Spread(one, False, False), Spread(other, False, False))
            return Made(determination, given, (Arithmetic("*", root, root),))
        slope = Arithmetic(
            "/", Comoment(one, other, self.total(product, rows), "COVAR_POP"), Spread(other, False, False)
        )
        if name == "REGR_SLOPE":
            return slope
        return Arithmetic("-", MeanOf(one), Arithmetic("*", slope, MeanOf(other)))

    def check(self, node: Node, value: Value) -> None:
        try:
            check_value(value, self.scope.domain)
        except ParameterError as error:
            self.scope.refuse(node, str(error), "Sums need declared bounds and steps.")

    def counted(self, where: Predicate) -> Question:
        keys = self.ordered()
        if not keys:
            return self.made(Count(where))
        names = [key.key for key in keys]
        if any(map(self.unlisted, keys)):
            return cast("Question", self.common(names, where))
        if all(isinstance(name, str) for name in names):
            return self.made(Histogram(names, where))  # type: ignore[arg-type]
        return self.made(GroupCount(names, where))

    def made(self, query: Any) -> Question:
        """The query about the rows of the question, which may be made of each person's rows."""
        return query if self.scope.made is None else OfPersons(self.scope.made, query)

    def common(self, names: Sequence[Any], where: Predicate) -> Any:
        """Groups by texts that nobody listed: only counts, and only by columns."""
        if where != self.where or not all(isinstance(name, str) for name in names):
            text = next(str(key.key) for key in self.keys if self.unlisted(key))
            hint = (
                f"List them: WHERE {text} IN ('a', 'b'). The common ones: SELECT {text}, COUNT(*) ... GROUP BY {text}."
            )
            reason = "by keys that are not listed only COUNT(*) is answered, in groups of columns"
            raise self.scope.asked.refused(self.start, reason, hint)
        return KeyCount(names, where)

    def total(self, value: Value, where: Predicate) -> Question:
        keys = self.ordered()
        if any(map(self.unlisted, keys)):
            self.common([None], where)
        if not keys and isinstance(value, Of):
            return self.made(Sum(value.column, where))
        return self.made(GroupSum([key.key for key in keys], value, where))

    def ordered(self) -> list[GroupedBy]:
        """The keys in one order: GROUP BY a, b and GROUP BY b, a are one question."""
        return [self.keys[place] for place in key_order(self.keys, self.scope.domain)]

    def centred(self, value: Value) -> tuple[Value, Fraction]:
        """The value less the middle of its interval, on its grid, and that middle."""
        low, high = value.bounds(self.scope.domain)
        unit = value.unit(self.scope.domain)
        centre = low + unit * round((high - low) / 2 / unit)
        return (value if centre == 0 else Plus(value, Fixed(-centre))), centre

    def moments(self, value: Value, where: Predicate, *, squared: bool = False) -> Moments:
        less, centre = self.centred(value)
        low, high = ends_within(value, where, self.scope.domain)
        square = self.total(Power(less, 2), where) if squared else None
        return Moments(self.counted(where), self.total(less, where), centre, low, high, square)

    def persons(self, call: Node, where: Predicate) -> Expression:
        scope, (name, _) = self.scope, call.value
        target = call.parts[0] if len(call.parts) == 1 else None
        if name == "COUNT" and target is not None and self.chooses_persons(target):
            return self.chosen_persons(call, target, where)
        if name == "COUNT" and target is not None and not scope.person(target):
            return self.different(call, target, where)
        if name != "COUNT" or target is None:
            named = " or ".join(sorted(scope.units)) or "person"
            reason = "DISTINCT is answered in COUNT(DISTINCT person) only"
            scope.refuse(call, reason, f"Count persons: COUNT(DISTINCT {named}); or rows: COUNT(*).")
        if any(self.unlisted(key) for key in self.keys):
            text = next(str(key.key) for key in self.keys if self.unlisted(key))
            hint = f"Count rows, COUNT(*), or list them: WHERE {text} IN ('a', 'b')."
            scope.refuse(call, "persons are not counted by keys that are not listed", hint)
        where = combined(And, [where, there(scope, target)])
        return Total(self.made(Persons([key.key for key in self.ordered()], where)))

    def chooses_persons(self, target: Node) -> bool:
        """Whether an expression is a person or nothing."""
        return target.kind in ("case", "call") and any(map(self.scope.person, target.walk()))

    def different(self, call: Node, target: Node, where: Predicate) -> Expression:
        """COUNT(DISTINCT x): which of the declared values have rows."""
        key = grouped_by(self.scope, target, written(target))
        if self.unlisted(key) or any(map(self.unlisted, self.keys)):
            reason = "which texts occur that nobody listed is private, and so is how many"
            self.scope.refuse(
                call, reason, "Those that are common enough are shown: SELECT x, COUNT(*) ... GROUP BY x."
            )
        missing = self.scope.domain.column(key.key).missing_code if isinstance(key.key, str) else None
        labels = enumerate(key.labels)
        places = tuple(place for place, each in labels if each is not None and place != missing)
        return Different(*self.along(call, target, key, where), places)

    def along(self, call: Node, target: Node, key: GroupedBy, where: Predicate) -> tuple[Question, int]:
        """How many rows each value of an expression has, in each group, and the axis of the values."""
        if key.key in [each.key for each in self.keys]:
            self.scope.refuse(call, "what is grouped by has one value in each group", "Leave it out.")
        inner = _Outputs(self.scope, self.where, (*self.keys, key), self.signatures, self.binder)
        axis = key_order(inner.keys, self.scope.domain).index(len(self.keys))
        return inner.counted(combined(And, [where, there(self.scope, target)])), axis

    def chosen_persons(self, call: Node, target: Node, where: Predicate) -> Expression:
        """COUNT(DISTINCT CASE WHEN condition THEN person END): the persons of these rows."""
        operands = target.value if target.kind == "case" else None
        last = target.parts[2:] and target.parts[2].kind != "null"
        if operands is not None and not operands[0] and len(target.parts) in (2, 3) and not last:
            inner = Node("call", call.start, (target.parts[1],), call.value)
            return self.persons(inner, combined(And, [where, condition(self.scope, target.parts[0])]))
        if target.kind == "call" and target.value[0] == "IF" and len(target.parts) == 3 and not last:
            inner = Node("case", call.start, target.parts, (False, True))
            return self.chosen_persons(call, inner, where)
        return self.persons(Node("call", call.start, (), call.value), where)

    def unlisted(self, key: GroupedBy) -> bool:
        """Whether the values of a key are not declared."""
        return isinstance(key.key, str) and self.scope.domain.column(key.key).free

    def quantile(
        self, node: Node, name: str, target: Node | None, chances: Sequence[Node], where: Predicate
    ) -> Expression:
        scope = self.scope
        if node.kind == "within" and name not in _WITHIN:
            reason = "WITHIN GROUP is answered as PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age) only"
            scope.refuse(node, reason, SHAPES)
        wanted = 0 if name == "MEDIAN" and node.kind != "within" else 1
        if target is None or target.kind == "star" or len(chances) != wanted:
            scope.refuse(node, "a quantile needs a column and a probability", "For example QUANTILE_CONT(age, 0.9).")
        probability = Fraction(1, 2)
        if chances:
            if chances[0].kind != "number":
                scope.refuse(chances[0], "a number is expected here", "Probabilities look like 0.9.")
            probability = chances[0].value
        if name == "PERCENTILE" and probability > 1:
            probability /= 100
        if not 0 < probability < 1:
            hint = "The smallest and the largest value have no private answer; ask for 0.01 or 0.99."
            scope.refuse(node, f"a quantile's probability lies strictly between 0 and 1, found {probability}", hint)
        if node.kind == "within" and node.value:
            probability = 1 - probability
        if scope.made is not None:
            return self.rank(target, probability, where)
        found = scope.column(target)
        line = affine(scope, target) if found is None else None
        if line is not None and line[0] is not None and line[1]:  # of a x + b it is a times that of x, plus b
            chance = probability if line[1] > 0 else 1 - probability
            inner = Arithmetic("*", Exactly(line[1]), QuantileOf(line[0], chance, where))
            return inner if not line[2] else Arithmetic("+", inner, Exactly(line[2]))
        if found is None:
            scope.refuse(target, "a quantile is of a column, or of a x + b", "For example MEDIAN(age).")
        column = found[1]
        if not (column.coded and column.ordered):
            reason = f"column {found[0]!r} is declared {column!r}: it has no quantiles"
            scope.refuse(node, reason, "Quantiles are of numbers.")
        return QuantileOf(found[0], probability, where)

    def rank(self, target: Node, probability: Fraction, where: Predicate) -> Expression:
        """A quantile of a number of each person, from how many persons have each."""
        key = grouped_by(self.scope, target, written(target))
        known = [(place, float(each)) for place, each in enumerate(key.labels) if type(each) in (int, float)]
        if len(known) < 2 or len(known) > _MOST_RANKED or any(isinstance(each, str) for each in key.labels):
            reason = f"a quantile of a number of each person needs 2 to {_MOST_RANKED:,} values"
            self.scope.refuse(target, reason, "Take coarser ones: FLOOR(x / 10) * 10.")
        counted = self.along(target, target, key, where)
        return RankOf(*counted, tuple(sorted(known, key=lambda each: each[1])), probability)


def determination(root: Any, one: Any, other: Any) -> Any:
    """R^2 of a regression: 1 where there is nothing to explain."""
    return 1.0 if one == 0 and other else None if root is None else root * root
