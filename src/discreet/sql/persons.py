"""A question in brackets that makes a group of each person: its rows are made of each person's rows.

    SELECT n, COUNT(*) FROM (SELECT person, COUNT(*) AS n FROM visits GROUP BY person) q GROUP BY n

What it names is declared: a person has at most k rows, so n is 1 .. k, and a sum lies between k times the ends of what
is summed. The outer question is then asked about these rows like about any others (`person_rows`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet.errors import ParameterError
from discreet.query import EVERYTHING, And, Choose, Fixed, PersonKey, PersonNumber, PersonRows, Predicate, Value
from discreet.sql.conditions import chosen_rows, condition, rows_where, there
from discreet.sql.grammar import SUBQUERY, Node, SelectQuery
from discreet.sql.naming import named, signature, written
from discreet.sql.rows import combined
from discreet.sql.scope import Derived, Meaning, Scope
from discreet.sql.source import AGGREGATES, folded
from discreet.sql.values import grouped_by, summed

_HINT = "Of each person COUNT, SUM, AVG, MIN, MAX and COUNT(DISTINCT x) of a column are read."
_SIGNS = ("=", "<>", "<", "<=", ">", ">=")
_ZERO = Node("number", 0, (), Fraction(0))


def made_by_person(scope: Scope, query: SelectQuery, by: Sequence[Node], alias: str) -> Scope:
    """The rows that a question makes of each person's rows, and what their columns are called; by: what it groups by
    beside the person."""
    if scope.made is not None or scope.absent:
        reason = "groups of each person are made of the rows of tables"
        raise scope.asked.refused(query.start, reason, "Leave the inner GROUP BY, or the LEFT JOIN, out.")
    if query.limit is not None or query.offset or query.qualify is not None:
        reason = "of the groups of single persons none is shown, so none is first"
        raise scope.asked.refused(query.start, reason, "Leave LIMIT and QUALIFY out.")
    where = chosen_rows(scope, query.where)
    scope = replace(scope, aliases=query.aliases)
    found = _Numbers(scope, query, by)
    items: dict[str, Node] = {}
    unit = None
    for item in query.items:
        if item.node.kind == "star":
            scope.refuse(item.node, "SELECT * is not answered", "Name the columns.")
        if scope.person(item.node):
            unit = item.alias
            continue
        found.wished = item.alias if item.node.kind in ("call", "filter") else None
        items[item.alias or named(scope, item)] = found.change(item.node)
    found.wished = None
    having = None if query.having is None else found.change(query.having)
    rows = max(each.rows for each in scope.tables)
    rows = max(rows, 1 if not scope.asked.several or scope.tables[0].everybody else 2)
    numbers = [replace(each, rows=rows) for each in found.numbers.values()]
    numbers = numbers or [PersonNumber("rows of a person", "sum", Fixed(1), rows)]
    made = PersonRows(found.keys, numbers, where)
    try:
        domain = made.domain(scope.domain)
    except ParameterError as error:
        raise scope.asked.refused(query.start, str(error), _HINT) from None
    tables = tuple(each if unit is None else replace(each, unit=unit) for each in scope.tables)
    inner = Scope(scope.asked, tables, domain, {"": {name: name for name in domain.names}}, made=made)
    names: dict[str, Meaning] = {
        name: node.value[1] if node.kind == "name" else Derived(node, inner) for name, node in items.items()
    }
    kept = EVERYTHING if having is None else condition(inner, having)
    return Scope(scope.asked, tables, domain, {alias: names}, kept, made=made, optional=scope.optional)


class _Numbers:
    """What a group of each person is made of."""

    def __init__(self, scope: Scope, query: SelectQuery, by: Sequence[Node]) -> None:
        self.scope, self.numbers = scope, dict[Any, PersonNumber]()
        self.keys, self.marks = list[PersonKey](), list[Any]()
        self.wished: str | None = None  # what the number that is read shall be called
        for node in by:
            meant = scope.aliases.get(folded(node.value[1]), node) if node.kind == "name" else node
            mark = signature(scope, meant)
            if mark in self.marks:
                continue
            key = grouped_by(scope, meant, written(node))
            kinds = {type(each) for each in key.labels}
            if (not isinstance(key.key, str) and kinds not in ({str}, {int})) or not key.labels:
                scope.refuse(node, "persons are not grouped by this", "Group by a column whose values are declared.")
            levels = () if isinstance(key.key, str) else key.labels
            called = key.key if isinstance(key.key, str) else self.free(key.name)
            self.keys.append(PersonKey(called, key.key, levels))
            self.marks.append(mark)

    def free(self, name: str) -> str:
        """A name that no column has."""
        taken = {*self.scope.domain.names, *(each.called for each in self.keys)}
        taken |= {each.called for each in self.numbers.values()}
        while name in taken:
            name += "'"
        return name

    def change(self, node: Node) -> Node:
        """An expression of a group of each person, with names for what is made of the person's rows."""
        scope = self.scope
        if node.kind == "select":
            scope.refuse(node, *SUBQUERY)
        if node.kind == "filter":
            return self.number(node, node.parts[0], rows_where(scope, node.parts[1]))
        if node.kind == "over" or node.kind == "within":
            scope.refuse(node, "this is not answered of each person", _HINT)
        if node.kind == "call" and node.value[0] in AGGREGATES:
            return self.number(node, node, EVERYTHING)
        if node.kind in _SIGNS and (compared := self.average(node)) is not None:
            return compared
        mark = signature(scope, node)
        if mark in self.marks:
            return _name(node, self.keys[self.marks.index(mark)].called)
        if node.kind == "name":
            inner, meant = scope.through(node)
            if meant is not node and inner.aliases != scope.aliases:
                return self.change(meant)
            scope.refuse(node, f"{written(node)} is selected but not grouped by", "Group by it, or aggregate it.")
        return replace(node, parts=tuple(map(self.change, node.parts)))

    def average(self, node: Node) -> Node | None:
        """AVG(x) > c as SUM(x - c) > 0."""
        for place, each in enumerate(node.parts):
            other, start = node.parts[1 - place], each.start
            if each.kind == "call" and each.value == ("AVG", False) and len(each.parts) == 1 and other.kind == "number":
                less = Node("-", start, (each.parts[0], other))
                parts = [Node("call", start, (less,), ("SUM", False)), Node("number", start, (), Fraction(0))]
                return replace(node, parts=tuple(map(self.change, parts[:: 1 - 2 * place])))
        return None

    def number(self, node: Node, call: Node, where: Predicate) -> Node:
        """The name of an aggregate of a person's rows."""
        scope, (name, distinct) = self.scope, call.value
        if len(call.parts) != 1:
            scope.refuse(call, f"{name} is not answered of each person", _HINT)
        (target,) = call.parts
        if distinct or name in ("MIN", "MAX"):
            column = scope.column(target) if target.kind == "name" and not scope.person(target) else None
            coded = column is not None and column[1].coded and (distinct or column[1].ordered)
            if (distinct and not coded) or name not in ("MIN", "MAX", "COUNT"):
                scope.refuse(call, f"{written(call)} is not answered of each person", _HINT)
            function = {"MIN": "least", "MAX": "most"}.get(name, "different")
            return self.called(
                node, function, column[0] if column is not None and coded else summed(scope, target), where
            )
        if name in ("COUNT", "COUNT_IF", "COUNTIF"):
            if name != "COUNT":
                where = combined(And, [where, rows_where(scope, target)])
            elif target.kind != "star":
                where = combined(And, [where, there(scope, target)])
            one = Fixed(1)
            return self.called(
                node, "sum", one if where == EVERYTHING else Choose([where], [one], Fixed(0)), EVERYTHING
            )
        if name == "SUM":
            return self.called(node, "sum", summed(scope, target), where)
        if name in ("AVG", "MEAN"):
            total = self.number(node, Node("call", call.start, call.parts, ("SUM", False)), where)
            many = self.number(node, Node("call", call.start, call.parts, ("COUNT", False)), where)
            return Node("/", node.start, (total, Node("call", node.start, (many, _ZERO), ("NULLIF", False))))
        scope.refuse(call, f"{name} is not answered of each person", _HINT)

    def called(self, node: Node, function: str, of: Value | str, where: Predicate) -> Node:
        mark = function, of, where
        if mark not in self.numbers:
            self.numbers[mark] = PersonNumber(self.free(self.wished or written(node)), function, of, 1, where)
        return _name(node, self.numbers[mark].called)


def _name(node: Node, name: str) -> Node:
    return Node("name", node.start, (), (None, name))
