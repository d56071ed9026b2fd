"""What a question asks, as a value: the package's docstring has the language."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NoReturn, cast

from discreet.data import Domain
from discreet.errors import ParameterError
from discreet.predicate import EVERYTHING, And, Missing, Not, Predicate
from discreet.query import MAX_CELLS, Count, GroupCount, GroupSum, Histogram, KeyCount, Persons, Question, Sum
from discreet.row_functions import Fixed, Of, Plus, Power, Times, Value, check_value, joined, key_columns
from discreet.sql.conditions import affine, condition
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
    Rising,
    Spread,
    SumFromMean,
    Total,
    absolute,
    power,
    power_span,
)
from discreet.sql.grammar import SUBQUERY, From, Item, Node, Ordering, SelectQuery, tree
from discreet.sql.over_groups import Gathered, Over
from discreet.sql.rows import CALLS, NUMERIC, WHOLE, cases, combined, compare
from discreet.sql.scope import Derived, Meaning, Scope
from discreet.sql.source import AGGREGATES, JOINS, Known, Source, folded, shown, source
from discreet.sql.values import GroupedBy, ends_within, grouped_by, label, summed

SHAPES = "For example SELECT COUNT(*) FROM t, or SELECT a, COUNT(*) FROM t GROUP BY a, or SELECT AVG(x) FROM t."
_QUANTILES = (
    "MEDIAN",
    "QUANTILE",
    "QUANTILE_CONT",
    "QUANTILE_DISC",
    "PERCENTILE",
    "PERCENTILE_CONT",
    "PERCENTILE_DISC",
)
_SPREADS = {
    **dict.fromkeys(("VAR", "VARIANCE", "VAR_SAMP"), (True, False)),
    **dict.fromkeys(("STDDEV", "STD", "STDDEV_SAMP"), (True, True)),
    "VAR_POP": (False, False),
    "STDDEV_POP": (False, True),
}


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """One column of the answer: what it is called, what it is, and in what unit."""

    name: str
    expression: Expression
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Sorting:
    """What rows are sorted by."""

    expression: Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Statement:
    """What a question asks.

    tables   the declared tables that its rows come from: one, or two that are joined
    where    of which rows
    keys     what the rows are grouped by, in the order of GROUP BY
    outputs  the columns of the answer
    having, qualify, order, limit, offset    what is done with the groups, after the noise
    gathers  whether the groups are gathered into one row
    axes     the places of the keys in the order in which the queries have them
    """

    tables: tuple[str, ...]
    where: Predicate
    keys: tuple[GroupedBy, ...]
    outputs: tuple[OutputColumn, ...]
    having: Expression | None = None
    order: tuple[Sorting, ...] = ()
    limit: int | None = None
    offset: int = 0
    axes: tuple[int, ...] = ()
    qualify: Expression | None = None
    gathers: bool = False

    @property
    def expressions(self) -> Iterator[Expression]:
        """Everything that is estimated in a group."""
        for each in (*(output.expression for output in self.outputs), *(by.expression for by in self.order)):
            yield from each.walk()
        for chosen in (self.having, self.qualify):
            if chosen is not None:
                yield from chosen.walk()

    @property
    def questions(self) -> list[Question]:
        """The linear queries that it is made of, each once."""
        return list(dict.fromkeys(query for each in self.expressions for query in each.questions))

    @property
    def quantiles(self) -> list[QuantileOf]:
        """The quantiles that it asks for, each once."""
        return list(dict.fromkeys(each for each in self.expressions if isinstance(each, QuantileOf)))

    @property
    def aggregates(self) -> list[OutputColumn]:
        """The outputs that are not just what is grouped by."""
        return [output for output in self.outputs if any(part.aggregate for part in output.expression.walk())]


def parse(text: str, domain: Domain, *, table: str, unit: str | None = None, others: Sequence[Known] = ()) -> Statement:
    """What a question asks; UnsupportedQuery, with the reason, if that is not understood in full.

    unit    the column of the table that names persons, if rows are not persons
    others  more tables that it may be about
    """
    return parse_about(text, (Known(table, domain, unit), *others))


def parse_about(text: str, tables: Sequence[Known]) -> Statement:
    """The same about several tables."""
    asked = source(text, tuple(tables))
    try:
        query = tree(asked, rewritten)
        return _Binder(asked, query.named).statement(query)
    except RecursionError:
        raise asked.refused(0, "the question cannot be parsed", asked.example) from None


class _Binder:
    """Gives the parts of a question their meaning."""

    def __init__(self, asked: Source, named: dict[str, SelectQuery]) -> None:
        self.asked = asked
        self.named = {folded(name): (query, place) for place, (name, query) in enumerate(named.items())}
        self.seen = len(named)  # how many of the named questions may be used: those before
        self.view: tuple[Domain, Mapping[tuple[str, str], str]] | None = None  # the columns of joined tables

    # What follows FROM.

    def scope(self, source: From) -> Scope:
        if source.joined is not None:
            return self.join(source)
        if source.query is not None:
            return self.filtered(source.query, source.alias or "", source.start)
        assert source.name is not None
        named = self.named.get(folded(source.name))
        if named is not None and named[1] < self.seen:
            before, self.seen = self.seen, named[1]
            found = self.filtered(named[0], source.alias or source.name, source.start)
            self.seen = before
            return found
        known = self.table(source)
        domain, called = self.view or (known.domain, {})
        names: dict[str, Meaning] = {name: called.get((known.name, name), name) for name in known.domain.names}
        return Scope(self.asked, (known,), domain, {source.alias or source.name: names})

    def table(self, source: From) -> Known:
        assert source.name is not None
        known = self.asked.tabled(source.name)
        if known is None:
            hint = f"The table is {shown(self.asked.table)}."
            if self.asked.several:
                hint = f"The tables are {', '.join(shown(each.name) for each in self.asked.tables)}."
            raise self.asked.refused(source.start, f"there is no table {shown(source.name)}", hint)
        return known

    def tables(self, source: From) -> list[Known]:
        """The declared tables that rows come from."""
        if source.joined is not None:
            return [known for each in source.joined for known in self.tables(each)]
        if source.query is not None:
            return self.tables(source.query.source)
        named = self.named.get(folded(source.name or ""))
        if named is None or named[1] >= self.seen:
            return [self.table(source)]
        before, self.seen = self.seen, named[1]
        found = self.tables(named[0].source)
        self.seen = before
        return found

    def filtered(self, query: SelectQuery, alias: str, start: int) -> Scope:
        """A question in brackets that only chooses rows and names expressions."""
        query = joined_by_where(self.asked, query)
        scope = self.scope(query.source)
        self.refuse_distinct(query)
        if any((query.group is not None, query.having, query.qualify, query.limit is not None, query.offset)):
            reason = "a question in brackets may choose rows and name expressions, or be the whole of FROM"
            raise self.asked.refused(start, reason, "Leave GROUP BY, HAVING and LIMIT to the outer question.")
        names: dict[str, Meaning] = {}
        for item in query.items:
            if item.node.kind == "star":
                for each in scope.names.values():
                    names.update(each)
                continue
            if aggregated(scope, item.node):
                reason = "an aggregate in such a question is not answered"
                raise self.asked.refused(item.start, reason, "Let it choose rows: SELECT * FROM t WHERE condition.")
            if item.node.kind == "name":
                name = item.node.value[1]
                if folded(name) in scope.units and not scope.known(name) and item.alias in (None, name):
                    continue  # whoever may be counted or joined by: no column
                names[item.alias or name] = scope.meaning(item.node)
                continue
            if item.alias is None:
                raise self.asked.refused(
                    item.start, "an expression in brackets needs a name", "Write AS name after it."
                )
            names[item.alias] = Derived(item.node, scope)
        where = scope.where if query.where is None else combined(And, [scope.where, condition(scope, query.where)])
        if scope.absent:
            raise self.asked.refused(start, "a LEFT JOIN is not answered in a question in brackets", JOINS)
        return Scope(self.asked, scope.tables, scope.domain, {alias: names}, where)

    def join(self, source: From) -> Scope:
        """Tables joined by the person: each row is one person's, with what other tables say about them."""
        assert source.joined is not None
        if not self.asked.several:
            raise self.asked.refused(source.start, "a join is not answered", self.asked.one_table)
        tables = self.tables(source)
        names = [each.name for each in tables]
        if len(set(names)) < len(names):
            reason = "a join of a table with itself puts rows of two persons into one: no noise hides a person then"
            self.asked_refused(source, reason)
        if sum(each.rows > 1 for each in tables) > 1:
            reason = "these tables both have several rows of a person: their join multiplies them"
            raise self.asked.refused(source.start, reason, "Join one of them with a table of one row per person.")
        outermost, self.view = self.view is None, self.view or self.columns(tables)
        left, right = (self.scope(each) for each in source.joined)
        both = dict(left.names)
        for alias, meanings in right.names.items():
            if alias in both:
                reason = f"two tables are called {shown(alias)}"
                raise self.asked.refused(source.start, reason, "Name one of them AS x.")
            both[alias] = meanings
        rows = combined(And, [left.where, right.where])
        made = Scope(self.asked, (*left.tables, *right.tables), self.view[0], both, rows)
        rest = self.check_by_person(source, left, right)
        made = replace(made, absent=left.absent | right.absent | self.absent(source, left, right, bool(rest)))
        if rest:
            made = replace(made, where=combined(And, [rows, *(condition(made, each) for each in rest)]))
        self.view = None if outermost else self.view
        return made

    def columns(self, tables: Sequence[Known]) -> tuple[Domain, Mapping[tuple[str, str], str]]:
        """The columns of joined tables, as a view has them: the table with several rows of a person first, the others
        as they are declared; and what each is called there."""
        having = Counter(column for each in tables for column in each.domain.names)
        called = {
            (each.name, column): f"{each.name}.{column}" if having[column] > 1 else column
            for each in tables
            for column in each.domain.names
        }
        ordered = sorted(tables, key=lambda each: (each.rows == 1, self.asked.tables.index(each)))
        columns = {called[each.name, name]: column for each in ordered for name, column in each.domain.items()}
        return Domain(columns), called

    def absent(self, source: From, left: Scope, right: Scope, conditions: bool) -> frozenset[str]:
        """The names of the table in which a LEFT or RIGHT JOIN may find nothing; none if it has a row of everybody."""
        if source.kind not in ("left", "right"):
            return frozenset()
        kept, other = (left, right) if source.kind == "left" else (right, left)
        whole = other.where == EVERYTHING and not conditions
        if whole and all(each.everybody for each in other.tables):
            return frozenset()
        if not (whole and len(other.tables) == 1 and all(each.everybody for each in kept.tables)):
            reason = "this LEFT JOIN has rows in which a whole table is missing"
            self.asked_refused(source, reason)
        return frozenset(other.names)

    def check_by_person(self, source: From, left: Scope, right: Scope) -> list[Node]:
        """Refuse a join that is not by the columns that name persons; the other conditions of ON."""
        reason = "tables are joined by the person only: otherwise rows of several persons meet in one"
        units, aliases = left.units | right.units, {folded(each) for scope in (left, right) for each in scope.names}
        if source.kind == "natural":
            alike = {folded(each) for each in column_names(left)} & {folded(each) for each in column_names(right)}
            if alike or len(units) > 1 or not units:
                self.asked_refused(
                    source, f"a NATURAL JOIN would also compare {', '.join(sorted(alike))}" if alike else reason
                )
            return []
        if source.on is None:
            if len(source.using) != 1 or folded(source.using[0]) not in units:
                self.asked_refused(source, reason)
            return []
        parts = source.on.parts if source.on.kind == "and" else (source.on,)
        rest = [each for each in parts if not same_person(each, units, aliases)]
        if len(rest) == len(parts):
            self.asked_refused(source, reason)
        return rest

    def asked_refused(self, source: From, reason: str) -> NoReturn:
        raise self.asked.refused(source.start, reason, JOINS)

    # The whole question.

    def statement(self, query: SelectQuery) -> Statement:
        query = joined_by_where(self.asked, query)
        inner = self.grouping(query.source)
        if inner is not None and self.by_person(inner):
            return self.statement(of_each_person(self.scope(inner.source), query, inner))
        if inner is not None:
            return self.outer(query, inner)
        self.refuse_distinct(query)
        star = next((item for item in query.items if item.node.kind == "star"), None)
        if star is not None:
            hint = "Rows are never shown: ask SELECT COUNT(*), or draw synthetic rows."
            raise self.asked.refused(star.start, "SELECT * is not answered", hint)
        scope = self.scope(query.source)
        aliases = {folded(item.alias): item.node for item in query.items if item.alias is not None}
        scope = replace(scope, aliases=aliases)
        where = scope.where
        if query.where is not None:
            where = combined(And, [where, condition(scope, query.where)])
        keys, signatures = self.keys(scope, query, where)
        binder = _Outputs(scope, where, keys, signatures, self)
        found = binder.statement(query)
        if scope.absent:
            self.check_absent(scope, query, found)
        return found

    def refuse_distinct(self, query: SelectQuery) -> None:
        if query.distinct is not None:
            reason = "SELECT DISTINCT is not answered: rows are not shown"
            hint = "Count instead, for example SELECT a, COUNT(*) FROM t GROUP BY a."
            raise self.asked.refused(query.distinct, reason, hint)

    def check_absent(self, scope: Scope, query: SelectQuery, found: Statement) -> None:
        """Of a LEFT JOIN only that is answered which is the same without the rows in which a table is missing."""
        hidden = {str(each) for alias in scope.absent for each in scope.names[alias].values()}
        looked = {*found.where.columns, *key_columns(key.key for key in found.keys)} & hidden
        calls = [each for item in query.items for each in item.node.walk() if each.kind == "call"]
        calls = [each for each in calls if each.value[0] in AGGREGATES]
        if looked or query.having is not None or not all(_of_absent(scope, hidden, each) for each in calls):
            reason = "a LEFT JOIN has rows in which a whole table is missing: only COUNT(v.x), SUM(v.x) and the like"
            hint = "Write JOIN instead, or aggregate columns of the joined table alone."
            raise self.asked.refused(query.source.start, f"{reason} are answered", hint)

    def by_person(self, query: SelectQuery) -> bool:
        """Whether a question makes a group of each person."""
        nodes = [item.node for item in query.items] if query.distinct is not None else list(query.group or ())
        scope = self.scope(query.source)
        node = nodes[0] if len(nodes) == 1 and nodes[0].kind == "name" else None
        return node is not None and folded(node.value[1]) in scope.units and not scope.known(node.value[1])

    def grouping(self, source: From) -> SelectQuery | None:
        """The question after FROM, if it is one that groups: then the outer one is about its answer."""
        query = source.query
        if (
            source.name is not None
            and (named := self.named.get(folded(source.name))) is not None
            and named[1] < self.seen
        ):
            query = named[0]
        if query is None:
            return None
        if query.group is not None or query.distinct is not None:
            return query
        plain = all(item.node.kind != "star" and _calls(item.node) for item in query.items)
        return query if plain else None

    def outer(self, query: SelectQuery, inner: SelectQuery) -> Statement:
        """A question about the answer of another: it chooses columns and rows of it, after the noise."""
        made = self.statement(inner)
        changes = (query.where, query.order, query.limit is not None, any(_calls(item.node) for item in query.items))
        if (made.limit is not None or made.offset) and any(changes):
            reason = "LIMIT in a question in brackets is answered if the outer one only shows its columns"
            raise self.asked.refused(inner.start, reason, "Put it at the end of the outer question.")
        return _Outer(self.asked, made, query.source).statement(query)

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
            found.append(grouped_by(scope, meant, name))
            signatures.append(mark)
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


def column_names(scope: Scope) -> list[str]:
    return [name for meanings in scope.names.values() for name in meanings]


def same_person(node: Node, units: set[str], aliases: set[str]) -> bool:
    """Whether a condition says that two rows are of one person: a.person = b.person."""
    if node.kind != "=" or any(part.kind != "name" or part.value[0] is None for part in node.parts):
        return False
    (one, left), (other, right) = ((folded(part.value[0]), folded(part.value[1])) for part in node.parts)
    return one != other and {one, other} <= aliases and {left, right} <= units


def joined_by_where(asked: Source, query: SelectQuery) -> SelectQuery:
    """FROM a, b WHERE a.person = b.person as a JOIN b ON a.person = b.person."""
    conditions = [] if query.where is None else list(query.where.parts if query.where.kind == "and" else (query.where,))
    units = {folded(each.unit) for each in asked.tables if each.unit is not None}

    def change(source: From) -> From:
        if source.joined is None:
            return source
        left, right = (change(each) for each in source.joined)
        source = replace(source, joined=(left, right))
        if source.kind != "comma":
            return source
        called = {folded(each.alias or each.name or "") for each in (*_leaves(left), *_leaves(right))}
        mine = next((each for each in conditions if same_person(each, units, called)), None)
        if mine is None:
            reason = "tables are joined by the person only: otherwise rows of several persons meet in one"
            raise asked.refused(source.start, reason, JOINS)
        conditions.remove(mine)
        return replace(source, on=mine, kind="inner")

    source = change(query.source)
    if source is query.source:
        return query
    where = None if not conditions else conditions[0]
    if len(conditions) > 1:
        where = Node("and", conditions[0].start, tuple(conditions))
    return replace(query, source=source, where=where)


def _leaves(source: From) -> list[From]:
    return [source] if source.joined is None else [leaf for each in source.joined for leaf in _leaves(each)]


def _of_absent(scope: Scope, hidden: set[str], call: Node) -> bool:
    """Whether an aggregate looks at nothing but one column of a table that may be missing, or its person."""
    if len(call.parts) != 1 or call.parts[0].kind != "name":
        return False
    qualifier, name = call.parts[0].value
    if folded(name) in scope.units and not scope.known(name):
        return qualifier is not None and folded(qualifier) in map(folded, scope.absent)
    return scope.meaning(call.parts[0]) in hidden


def of_each_person(scope: Scope, query: SelectQuery, inner: SelectQuery) -> SelectQuery:
    """A question about a question that makes a group of each person, as one about the rows: the sum of all persons'
    counts is the count, their average is that over the number of persons."""
    asked, person = scope.asked, sorted(scope.units)[0]
    own = {folded(item.alias or written(item.node)): item.node for item in inner.items}
    persons = Node("call", inner.start, (Node("name", inner.start, (), (None, person)),), ("COUNT", True))
    hint = f"Answered are COUNT(*), SUM(n) and AVG(n) of it, where n is COUNT(*) or a SUM; or COUNT(DISTINCT {person})."
    rest = (
        inner.having,
        inner.qualify,
        inner.limit,
        inner.offset,
        query.where,
        query.group,
        query.having,
        query.qualify,
    )
    if any(rest) or any(item.node.kind == "star" for item in query.items):
        start = next((each.start for each in (inner.having, query.where) if each is not None), inner.start)
        raise asked.refused(start, "a number of each single person is not shown, compared or grouped by", hint)

    def whole(node: Node) -> Node:
        """The sum of a number of each person over all persons."""
        found = own.get(folded(node.value[1])) if node.kind == "name" else None
        plain = found is not None and found.kind == "call" and not found.value[1] and len(found.parts) == 1
        if not plain or found is None or found.value[0] not in ("COUNT", "SUM"):
            scope.refuse(node, "this number of each single person is not answered", hint)
        if found.value[0] == "SUM" and summed(scope, found.parts[0]).known(scope.domain) != EVERYTHING:
            scope.refuse(node, "a sum of values that may be missing is nothing for some persons", hint)
        return found

    def change(node: Node) -> Node:
        if node.kind == "call" and node.value == ("COUNT", False) and node.parts[0].kind == "star":
            return persons
        if node.kind == "call" and node.value == ("COUNT", False) and folded(written(node.parts[0])) == person:
            return persons
        if node.kind == "call" and node.value[0] == "SUM":
            return whole(node.parts[0])
        if node.kind == "call" and node.value[0] in ("AVG", "MEAN"):
            return Node("/", node.start, (whole(node.parts[0]), persons))
        if node.kind == "name" or (node.kind == "call" and node.value[0] in AGGREGATES):
            scope.refuse(node, "this number of each single person is not answered", hint)
        return replace(node, parts=tuple(map(change, node.parts)))

    items = tuple(replace(item, node=change(item.node), alias=item.alias or written(item.node)) for item in query.items)
    return replace(query, items=items, source=inner.source, where=inner.where, named={})


def ordinal(asked: Source, items: Sequence[Item], node: Node) -> Item:
    place = node.value
    if place.denominator != 1 or not 1 <= place <= len(items):
        hint = f"Places in the select list are 1 to {len(items)}."
        raise asked.refused(node.start, f"there is no place {place} in the select list", hint)
    return items[int(place) - 1]


def named(scope: Scope, item: Item) -> str:
    """What a column of the answer is called: its new name, its own name, or as it is written."""
    if item.alias is not None:
        return item.alias
    found = scope.column(item.node) if item.node.kind == "name" and not aggregated(scope, item.node) else None
    if found is not None:
        return found[0]
    return written(item.node)


def written(node: Node) -> str:
    """An expression as text: a name for a column of an answer."""
    match node.kind:
        case "name":
            return ".".join(part for part in node.value if part)
        case "number":
            return str(label(node.value))
        case "text" | "date":
            return f"'{node.value}'"
        case "null" | "boolean":
            return "NULL" if node.kind == "null" else str(node.value).upper()
        case "star":
            return "*"
        case "call":
            inside = ", ".join(map(written, node.parts))
            return f"{node.value[0]}({'DISTINCT ' if node.value[1] else ''}{inside})"
        case "filter":
            return f"{written(node.parts[0])} FILTER ({written(node.parts[1])})"
        case "within":
            return f"{written(node.parts[0])} OF {written(node.parts[1])}"
        case "minus":
            return f"-{written(node.parts[0])}"
        case "case":
            return "CASE"
        case "cast":
            return written(node.parts[0])
        case "and" | "or":
            return f" {node.kind.upper()} ".join(map(written, node.parts))
        case "select":
            return "(SELECT)"
        case "over":
            return f"{written(node.parts[0])} OVER ()"
        case "between" | "in" | "like" | "is" | "not" | "interval":
            return f"{node.kind} {' '.join(map(written, node.parts))}"
    return f"{written(node.parts[0])} {node.kind} {written(node.parts[1])}"


def _calls(node: Node) -> bool:
    if node.kind == "over":
        return False
    return (node.kind == "call" and node.value[0] in AGGREGATES) or any(map(_calls, node.parts))


def aggregated(scope: Scope, node: Node) -> bool:
    """Whether there is an aggregate in an expression."""
    inner, meant = (scope, node) if node.kind != "name" else _followed(scope, node)
    if meant.kind == "over" or (meant.kind == "call" and meant.value[0] in AGGREGATES):
        return True
    return any(aggregated(inner, part) for part in meant.parts)


def _followed(scope: Scope, node: Node) -> tuple[Scope, Node]:
    name = node.value[1]
    if not scope.known(name) and folded(name) not in scope.aliases:
        return scope, node  # a column that names persons, or refused where it is used
    return scope.through(node)


def signature(scope: Scope, node: Node) -> Any:
    """What makes two expressions the same, however they are written."""
    if node.kind != "name":
        return node.kind, node.value, tuple(signature(scope, part) for part in node.parts)
    inner, meant = _followed(scope, node)
    if meant.kind != "name":
        return signature(inner, meant)
    if not inner.known(meant.value[1]):
        return "name", folded(meant.value[1])
    return "column", inner.meaning(meant)


class _Sentences:
    """Expressions of estimates: what the select list, HAVING and ORDER BY are made of."""

    scope: Scope

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
                return Rising(_round_even, inner) if node.value in WHOLE else inner
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
        left, right = (self.expression(part) for part in node.parts)
        if node.kind == "/":
            factor, top = _scaled(left)
            if isinstance(top, Total) and isinstance(right, Total) and right.question.counting:
                return self.ratio(left, top.question, factor, right)
        return Arithmetic(node.kind, left, right)

    def ratio(self, left: Expression, part: Question, factor: Fraction, below: Total) -> Expression:
        """A part of the rows, or of the persons, over the whole is between 0 and 1."""
        inside = {*_conjuncts(part.where)} >= {*_conjuncts(below.question.where)}
        # Rows are no part of the persons whose rows they are.
        fewer = part.counting and (isinstance(part, Persons) or not isinstance(below.question, Persons))
        whole = part.grouped or not below.question.grouped
        return Arithmetic("/", left, below, factor if inside and fewer and whole else None)

    def window(self, node: Node) -> Expression:
        """A function over the groups, after the noise."""
        scope, (many, ways), call = self.scope, node.value, node.parts[0]
        if call.kind != "call" or call.value[1]:
            scope.refuse(node, "this window is not answered", _WINDOWS)
        name = {"MEAN": "AVG"}.get(call.value[0], call.value[0])
        parted = tuple(self.expression(part) for part in node.parts[1 : 1 + many])
        nodes = zip(node.parts[1 + many :], ways, strict=True)
        order = tuple((self.expression(each), down, bool(first)) for each, (down, first) in nodes)
        noisy = any(part.aggregate for each, _, _ in order for part in each.walk())
        if any(part.aggregate for each in parted for part in each.walk()):
            scope.refuse(node, "groups are parted by what they are grouped by", _WINDOWS)
        if name in ("RANK", "DENSE_RANK", "ROW_NUMBER"):
            if call.parts or not order:
                scope.refuse(node, f"{name}() stands before OVER (ORDER BY ...)", _WINDOWS)
            return Over(name, Exactly(0), parted, order)
        if name not in ("SUM", "AVG", "MIN", "MAX", "COUNT", "LAG", "LEAD") or not 1 <= len(call.parts) <= 2:
            scope.refuse(node, f"{name} is not answered as a window", _WINDOWS)
        if noisy or (name in ("LAG", "LEAD") and not order):
            scope.refuse(node, "this window is ordered by what groups are grouped by, which has no noise", _WINDOWS)
        away = call.parts[1] if len(call.parts) == 2 else Node("number", node.start, (), Fraction(1))
        if (
            away.kind != "number"
            or away.value.denominator != 1
            or (len(call.parts) == 2 and name not in ("LAG", "LEAD"))
        ):
            scope.refuse(node, f"{name} is not read like this", _WINDOWS)
        inner = Exactly(1) if call.parts[0].kind == "star" else self.expression(call.parts[0])
        return Over(name, inner, parted, order, int(away.value))

    def call(self, node: Node) -> Expression:
        name, distinct = node.value
        scope, parts = self.scope, tuple(self.expression(part) for part in node.parts)
        if distinct or name not in (*CALLS, *_GROWING):
            scope.refuse(node, f"{name} is not answered here", SHAPES)
        if name == "ROUND" and len(parts) in (1, 2):
            digits = node.parts[1].value if len(parts) == 2 and node.parts[1].kind == "number" else Fraction(0)
            if len(parts) == 2 and node.parts[1].kind != "number":
                scope.refuse(node, "ROUND needs a number of digits", "For example ROUND(AVG(x), 1).")
            return Rising(lambda value: _rounded(value, int(digits)), parts[0])
        if name in _GROWING and len(parts) == 1:
            return Rising(_GROWING[name], parts[0])
        many = {"ABS": 1, "POWER": 2, "POW": 2, "NULLIF": 2, "IF": 3}.get(name, max(1, len(parts)))
        if name in _AFTER and len(parts) != many:
            scope.refuse(node, f"{name} takes {many} values here, found {len(parts)}", SHAPES)
        if name in ("ABS", "POWER", "POW"):
            return Made(_AFTER[name], parts, span=absolute if name == "ABS" else power_span)
        if name in _AFTER:
            return Made(_AFTER[name], parts, parts[name == "IF" :])
        scope.refuse(node, f"{name} is not answered here", SHAPES)

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


class _Outputs(_Sentences):
    """The select list of a question about rows: keys, aggregates, and what is made of them."""

    def __init__(
        self, scope: Scope, where: Predicate, keys: tuple[GroupedBy, ...], signatures: list[Any], binder: _Binder
    ) -> None:
        self.scope, self.where, self.keys, self.signatures, self.binder = scope, where, keys, signatures, binder
        self.start = 0  # of the aggregate that is read

    def statement(self, query: SelectQuery) -> Statement:
        if not any(aggregated(self.scope, item.node) for item in query.items):
            reason = "a question without COUNT, SUM, AVG or a quantile is not answered: rows are not shown"
            raise self.scope.asked.refused(query.items[0].start, reason, SHAPES)
        outputs = tuple(self.output(item) for item in query.items)
        having, qualify = (None if each is None else self.truth(each) for each in (query.having, query.qualify))
        for each in (query.having, query.qualify):
            if each is not None and query.group is None:
                raise self.scope.asked.refused(each.start, "HAVING is answered with GROUP BY only", SHAPES)
        made = Statement(
            tuple(each.name for each in self.scope.tables),
            self.where,
            self.keys,
            outputs,
            having,
            self.sorted_by(query, outputs),
            query.limit,
            query.offset,
            tuple(key_order(self.keys, self.scope.domain)),
            qualify,
        )
        return shared(made)

    def output(self, item: Item) -> OutputColumn:
        return OutputColumn(named(self.scope, item), self.expression(item.node), unit_of(self.scope, item.node))

    def named(self, node: Node) -> Expression | None:
        if node.kind == "star":
            self.scope.refuse(node, "* is not answered here", SHAPES)
        if node.kind == "select":
            return self.scalar(node)
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

    def scalar(self, node: Node) -> Expression:
        """A question in brackets that has one number, about the same tables: it is released with the others."""
        scope, query = self.scope, cast("SelectQuery", node.value)
        if query.group is not None or len(query.items) != 1 or not any(_calls(item.node) for item in query.items):
            scope.refuse(node, "a question in brackets has one number here", "For example (SELECT COUNT(*) FROM t).")
        made = self.binder.statement(query)
        if made.tables != tuple(each.name for each in scope.tables):
            scope.refuse(node, "a question in brackets is about the same table here", "Ask it by itself.")
        if made.quantiles or made.gathers or made.limit is not None or made.offset:
            scope.refuse(node, "a question in brackets has one count, sum or average here", "Ask it by itself.")
        return made.outputs[0].expression

    def ratio(self, left: Expression, part: Question, factor: Fraction, below: Total) -> Expression:
        """A sum over the number of its rows is an average."""
        rows = part.grouped == below.question.grouped and not isinstance(below.question, Persons)
        if part.counting or part.where != below.question.where or not rows:
            return _Sentences.ratio(self, left, part, factor, below)
        mean = MeanOf(self.moments(_summand(part), part.where))
        return mean if factor == 1 else Arithmetic("*", Exactly(factor), mean)

    def aggregate(self, node: Node) -> Expression | None:
        where, self.start = self.where, node.start
        call = node
        if node.kind == "filter":
            call = node.parts[0]
            where = combined(And, [where, condition(self.scope, node.parts[1])])
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
            raise self.scope.asked.no_call(call.start, name)
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
            return Total(self.counted(combined(And, [where, self.there(parts[0])])))
        if name in ("COUNT_IF", "COUNTIF"):
            return Total(self.counted(combined(And, [where, condition(scope, parts[0])])))
        values = [summed(scope, part) for part in parts]
        rows = joined((where, *(value.known(scope.domain) for value in values)))
        for value, part in zip(values, parts, strict=True):
            self.check(part, value)
        if name == "SUM":
            return Total(self.total(values[0], rows))
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
            return Made(_determination, given, (Arithmetic("*", root, root),))
        slope = Arithmetic(
            "/", Comoment(one, other, self.total(product, rows), "COVAR_POP"), Spread(other, False, False)
        )
        if name == "REGR_SLOPE":
            return slope
        return Arithmetic("-", MeanOf(one), Arithmetic("*", slope, MeanOf(other)))

    def there(self, node: Node) -> Predicate:
        """The expression has a value."""
        scope = self.scope
        if node.kind == "name" and folded(node.value[1]) in scope.units and not scope.known(node.value[1]):
            return EVERYTHING  # every row is a person's
        found = scope.column(node)
        if found is not None and found[1].free:
            if found[1].missing_code is not None:
                return Not(Missing(found[0]))
            return EVERYTHING
        if found is not None and not found[1].coded:
            scope.refuse(node, f"column {found[0]!r} is declared {found[1]!r}: SQL cannot ask about it", SHAPES)
        if found is not None and found[1].missing_code is None:
            return EVERYTHING
        if node.kind in ("number", "text", "boolean"):
            return EVERYTHING
        return condition(scope, Node("is", node.start, (node,), (True, "NULL")))

    def check(self, node: Node, value: Value) -> None:
        try:
            check_value(value, self.scope.domain)
        except ParameterError as error:
            self.scope.refuse(node, str(error), "Sums need declared bounds and steps.")

    def counted(self, where: Predicate) -> Question:
        keys = self.ordered()
        if not keys:
            return Count(where)
        names = [key.key for key in keys]
        if any(map(self.unlisted, keys)):
            return cast("Question", self.common(names, where))
        if all(isinstance(name, str) for name in names):
            return Histogram(names, where)  # type: ignore[arg-type]
        return GroupCount(names, where)

    def common(self, names: Sequence[Any], where: Predicate) -> Any:
        """Groups by texts that nobody listed: only counts, and only by columns."""
        if where != self.where or not all(isinstance(name, str) for name in names):
            hint = "For example SELECT city, COUNT(*) FROM visits GROUP BY city."
            reason = "by keys that are not listed only COUNT(*) is answered, in groups of columns"
            raise self.scope.asked.refused(self.start, reason, hint)
        return KeyCount(names, where)

    def total(self, value: Value, where: Predicate) -> Question:
        keys = self.ordered()
        if any(map(self.unlisted, keys)):
            self.common([None], where)
        if not keys and isinstance(value, Of):
            return Sum(value.column, where)
        return GroupSum([key.key for key in keys], value, where)

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
        if name == "COUNT" and target is not None and target.kind in ("case", "call"):
            return self.chosen_persons(call, target, where)
        if name != "COUNT" or target is None or target.kind != "name" or folded(target.value[1]) not in scope.units:
            named = " or ".join(sorted(scope.units)) or "person"
            reason = "DISTINCT is answered in COUNT(DISTINCT person) only"
            scope.refuse(call, reason, f"Count persons: COUNT(DISTINCT {named}); or rows: COUNT(*).")
        if any(self.unlisted(key) for key in self.keys):
            scope.refuse(call, "persons are not counted by keys that are not listed", "Count rows: COUNT(*).")
        return Total(Persons([key.key for key in self.ordered()], where))

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
        if node.kind == "within" and name not in (
            "PERCENTILE_CONT",
            "PERCENTILE_DISC",
            "QUANTILE_CONT",
            "QUANTILE_DISC",
        ):
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


def key_order(keys: Sequence[GroupedBy], domain: Domain) -> list[int]:
    """The places of the keys in the order in which queries have them: plain columns as declared, then the others."""
    names = list(domain.names)

    def rank(place: int) -> tuple[int, str]:
        key = keys[place].key
        return (names.index(key), "") if isinstance(key, str) else (len(names), repr(key))

    return sorted(range(len(keys)), key=rank)


def unit_of(scope: Scope, node: Node) -> str:
    """The unit of a column of the answer: the column that is summed or averaged; empty for counts and others."""
    _, meant = _followed(scope, node) if node.kind == "name" else (scope, node)
    call = meant.parts[0] if meant.kind in ("filter", "within") else meant
    target = meant.parts[1] if meant.kind == "within" else call.parts[0] if call.parts else None
    if call.kind != "call" or call.value[0] in ("COUNT", "COUNT_IF", "COUNTIF", "CORR") or target is None:
        return ""
    found = scope.column(target) if target.kind == "name" else None
    return "" if found is None or call.value[0] not in AGGREGATES else found[0]


def shared(statement: Statement) -> Statement:
    """Sums are read off the centred sums that averages are made of, where both are asked for."""
    means = {
        (each.moments.total.where, each.moments.total.grouped, _uncentred(each.moments)): each.moments
        for each in statement.expressions
        if isinstance(each, (MeanOf, Spread))
    }
    if not means:
        return statement

    def change(expression: Expression) -> Expression:
        match expression:
            case Total(question=question) if not question.counting:
                moments = means.get((question.where, question.grouped, _summand(question)))
                return expression if moments is None else SumFromMean(moments)
            case Arithmetic(sign=sign, left=left, right=right, most=most):
                return Arithmetic(sign, change(left), change(right), most)
            case Rising(function=function, inner=inner):
                return Rising(function, change(inner))
            case Made(given=given, results=results):
                return replace(expression, given=tuple(map(change, given)), results=tuple(map(change, results)))
            case Over():
                ordered = tuple((change(each), down, first) for each, down, first in expression.order)
                return replace(expression, inner=change(expression.inner), order=ordered)
        return expression

    outputs = tuple(replace(output, expression=change(output.expression)) for output in statement.outputs)
    order = tuple(replace(by, expression=change(by.expression)) for by in statement.order)
    having, qualify = (None if one is None else change(one) for one in (statement.having, statement.qualify))
    return replace(statement, outputs=outputs, order=order, having=having, qualify=qualify)


def _summand(question: Any) -> Value:
    return Of(question.column) if isinstance(question, Sum) else question.value


def _uncentred(moments: Moments) -> Value:
    value = _summand(moments.total)
    return value.parts[0] if isinstance(value, Plus) and moments.centre and len(value.parts) == 2 else value


class _Outer(_Sentences):
    """The select list of a question about the answer of another one."""

    def __init__(self, asked: Source, inner: Statement, source: From) -> None:
        self.inner, self.known = inner, {folded(output.name): output for output in inner.outputs}
        self.alias = folded(source.alias or source.name or "")
        table = asked.tables[0]
        self.scope = Scope(asked, (), table.domain, {})

    def named(self, node: Node) -> Expression | None:
        if (node.kind == "call" and node.value[0] in AGGREGATES) or node.kind in ("filter", "within"):
            return self.gathered(node)
        if node.kind == "select":
            self.scope.refuse(node, *SUBQUERY)
        if node.kind != "name":
            return None
        qualifier, name = node.value
        found = self.known.get(folded(name))
        if found is None or (qualifier is not None and folded(qualifier) != self.alias):
            hint = f"It has {', '.join(shown(output.name) for output in self.inner.outputs)}."
            self.scope.refuse(node, f"the question in brackets has no column {shown(name)}", hint)
        return found.expression

    def gathered(self, node: Node) -> Expression:
        """An aggregate of the groups of the question in brackets."""
        name = {"MEAN": "AVG"}.get(node.value[0], node.value[0]) if node.kind == "call" else ""
        if name not in ("SUM", "AVG", "MIN", "MAX", "COUNT") or node.value[1] or len(node.parts) != 1:
            reason = "of the groups of another question only SUM, AVG, MIN, MAX and COUNT are answered"
            self.scope.refuse(node, reason, "Ask the inner question alone.")
        if any(map(_calls, node.parts)):
            self.scope.refuse(node, "an aggregate inside another is not answered", SHAPES)
        inner = Exactly(1) if node.parts[0].kind == "star" else self.expression(node.parts[0])
        counts = (output.expression for output in self.inner.outputs)
        return Gathered(
            name, inner, tuple(each for each in counts if isinstance(each, Total) and each.question.counting)
        )

    def statement(self, query: SelectQuery) -> Statement:
        if query.group is not None or query.having is not None or query.qualify is not None:
            raise self.scope.asked.refused(
                query.start, "grouping the groups of another question is not answered", SHAPES
            )
        gathers = [_calls(item.node) for item in query.items]
        if any(gathers) and (not all(gathers) or query.order):
            reason = "aggregates of the groups of another question stand by themselves"
            raise self.scope.asked.refused(query.start, reason, "Leave the other columns and ORDER BY out.")
        windows = [each for item in query.items for each in item.node.walk() if each.kind == "over"]
        if windows and query.where is not None:
            self.scope.refuse(windows[0], "a window and a condition on groups do not stand together here", _WINDOWS)
        outputs = list[OutputColumn]()
        for item in query.items:
            if item.node.kind == "star":
                outputs += self.inner.outputs
                continue
            expression = self.expression(item.node)
            same = next((each for each in self.inner.outputs if each.expression is expression), None)
            name = item.alias or (same.name if same is not None else written(item.node))
            outputs.append(OutputColumn(name, expression, same.unit if same is not None else ""))
        conditions = [each for each in (self.inner.qualify, self.where(query)) if each is not None]
        qualify = None if not conditions else conditions[0]
        if len(conditions) == 2:
            qualify = Made(
                lambda *values: None if None in values else all(values), tuple(conditions), truth=True, kind="and"
            )
        items = tuple(item for item in query.items if item.node.kind != "star")
        order = (
            self.sorted_by(replace(query, items=items), outputs)
            if len(items) == len(query.items)
            else self.sorted_by(replace(query, items=()), outputs)
        )
        limited = query.limit is not None or query.offset
        limit, offset = (query.limit, query.offset) if limited else (self.inner.limit, self.inner.offset)
        made = replace(self.inner, outputs=tuple(outputs), qualify=qualify, order=order or self.inner.order)
        return replace(made, limit=limit, offset=offset, gathers=any(gathers) or made.gathers)

    def where(self, query: SelectQuery) -> Expression | None:
        return None if query.where is None else self.truth(query.where)


# Functions and conditions of released values; NULL is None.


def _null(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: None if None in values else function(*values)


def _rounded(value: Any, digits: int) -> Any:
    """Half away from zero."""
    ten = Fraction(10) ** digits
    scaled = Fraction(value) * ten
    found = Fraction(math.floor(abs(scaled) + Fraction(1, 2)) * (1 if scaled >= 0 else -1)) / ten
    return int(found) if found.denominator == 1 and not isinstance(value, float) else float(found)


def _round_even(value: Any) -> int:
    return round(Fraction(value))


def _root(value: Any) -> float:
    return math.sqrt(max(0.0, float(value)))


def _determination(root: Any, one: Any, other: Any) -> Any:
    """R^2 of a regression: 1 where there is nothing to explain."""
    return 1.0 if one == 0 and other else None if root is None else root * root


def _logarithm(base: float) -> Callable[[Any], Any]:
    """Of what is not above 0 there is none: SQL refuses, an answer has none."""
    return lambda value: math.log(float(value)) / math.log(base) if value > 0 else None


def _exponential(value: Any) -> float:
    return math.exp(min(700.0, float(value)))


_GROWING: dict[str, Callable[[Any], Any]] = {
    "FLOOR": math.floor,
    "CEIL": math.ceil,
    "CEILING": math.ceil,
    "TRUNC": math.trunc,
    "SQRT": _root,
    "LN": _logarithm(math.e),
    "LOG2": _logarithm(2),
    "LOG10": _logarithm(10),
    "EXP": _exponential,
    "SIGN": lambda value: (value > 0) - (value < 0),
}
_WINDOWS = "For example SUM(COUNT(*)) OVER (), or RANK() OVER (ORDER BY COUNT(*) DESC)."

_AFTER: dict[str, Callable[..., Any]] = {
    "COALESCE": lambda *values: next((each for each in values if each is not None), None),
    "GREATEST": lambda *values: max((each for each in values if each is not None), default=None),
    "LEAST": lambda *values: min((each for each in values if each is not None), default=None),
    "NULLIF": lambda one, other: None if one == other else one,
    "ABS": _null(abs),
    "POWER": _null(power),
    "POW": _null(power),
    "IF": lambda truth, one, other: one if truth is True else other,
}


def _compared(scope: Scope, node: Node, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    exact = [Fraction(each) if type(each) in (int, float) else each for each in (left, right)]
    return compare(scope, node, *exact)


def _all_of(scope: Scope, node: Node, *values: Any) -> bool | None:
    ends = node.kind == "or"
    return ends if ends in values else None if None in values else not ends


def _inside(scope: Scope, node: Node, value: Any, low: Any, high: Any) -> bool | None:
    truths = [
        _compared(scope, Node(">=", node.start), value, low),
        _compared(scope, Node("<=", node.start), value, high),
    ]
    found = False if False in truths else None if None in truths else True
    return None if found is None else found != node.value


def _listed(scope: Scope, node: Node, value: Any, *others: Any) -> bool | None:
    truths = [_compared(scope, Node("=", node.start), value, other) for other in others]
    found = True if True in truths else None if None in truths else False
    return None if found is None else found != node.value


def _is(scope: Scope, node: Node, value: Any) -> bool:
    against, what = node.value
    return (value is {"NULL": None, "TRUE": True, "FALSE": False}[what]) is not bool(against)


_CONDITIONS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), _compared),
    "and": _all_of,
    "or": _all_of,
    "not": lambda scope, node, value: None if value is None else not value,
    "between": _inside,
    "in": _listed,
    "is": _is,
}
