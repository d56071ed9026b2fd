"""Conditions in SQL as predicates: what follows WHERE.

SQL's logic has three values: a comparison with a missing value is neither true nor false, and so is its negation.
Predicates have two. So a condition is translated twice over, as "is true" and as "is false":

    true(a AND b) = true(a) and true(b)        false(a AND b) = false(a) or false(b)        and dually for OR
    true(NOT a)   = false(a)                   false(NOT a)   = true(a)
    true(x < v)   = x is one of the grid's values below v
    false(x < v)  = x is one of the grid's values from v on: a missing x is in neither
    true(x = v)   = Equals                     false(x = v)   = not Equals and not Missing
    true(x IS NULL) = Missing                  false(x IS NULL) = not Missing

Every value must be one of the column's: on its grid, or a declared level. Nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from discreet.data import Column, Number, near_misses, spell
from discreet.errors import ParameterError
from discreet.query import Among, And, Between, Equals, Missing, Not, Or, Predicate
from discreet.sql.names import Scope, number
from discreet.sql.parser import Node
from discreet.sql.source import PLAIN, shown

_ORDERS = ("LT", "LTE", "GT", "GTE")
_MIRRORED = {"EQ": "EQ", "NEQ": "NEQ", "LT": "GT", "LTE": "GTE", "GT": "LT", "GTE": "LTE"}
_OPERANDS = ("Column", "Literal", "Neg", "Boolean", "Null")
_SIGNS = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}


def condition(scope: Scope, node: Node, *, wanted: bool = True) -> Predicate:
    """The predicate that holds exactly where the condition is true (or, not wanted, where it is false)."""
    kind = type(node).__name__
    if kind == "Paren":
        return condition(scope, node.this, wanted=wanted)
    if kind == "Not":
        return condition(scope, node.this, wanted=not wanted)
    if kind in ("And", "Or"):
        chain, first = [], node
        while type(first) is type(node):  # the parser nests long chains to the left
            chain.append(first.expression)
            first = first.this
        parts = [condition(scope, part, wanted=wanted) for part in (first, *reversed(chain))]
        return _combined(And, Or, parts) if (kind == "And") == wanted else _combined(Or, And, parts)
    atom = _ATOMS.get(kind)
    if atom is None:
        scope.refuse(node, "this is no condition on a column", PLAIN)
    return atom(scope, node, wanted)


def all_of(parts: Iterable[Predicate]) -> Predicate:
    """The conjunction, without repetition, and without And when there is one part."""
    return _combined(And, Or, parts)


def _combined(word: type[And] | type[Or], other: type[And] | type[Or], parts: Iterable[Predicate]) -> Predicate:
    flat = [inner for part in parts for inner in (part.inner if type(part) is word else (part,))]
    if other() in flat:
        return other()
    kept = tuple(dict.fromkeys(flat))
    return kept[0] if len(kept) == 1 else word(*kept)


def present(name: str, column: Column) -> Predicate:
    """The column has a value."""
    return And() if column.missing_code is None else Not(Missing(name))


def span(name: str, column: Number, first: int, last: int) -> Predicate:
    """The column has one of the codes first .. last."""
    if first > last:
        return Or()
    low, high = column.value(first), column.value(last)
    return Equals(name, low) if first == last else Between(name, low, high)


def comparison(scope: Scope, node: Node, wanted: bool) -> Predicate:
    scope.only(node, "this", "expression")
    kind, left, right = type(node).__name__, _unwrapped(node.this), _unwrapped(node.expression)
    if not {type(left).__name__, type(right).__name__} <= set(_OPERANDS):
        scope.refuse(node, "comparing anything but a column and a value is not answered", PLAIN)
    if type(left).__name__ != "Column":
        kind, left, right = _MIRRORED[kind], right, left
    if type(left).__name__ != "Column":
        scope.refuse(node, "a condition without a column is not answered", PLAIN)
    if type(right).__name__ == "Column":
        if scope.asked.declared(right.name) is None:
            scope.refuse(right, f"{shown(right.name)} is not a column", "Texts are written in single quotes: 'F'.")
        scope.refuse(node, "comparing two columns is not answered", PLAIN)
    name, column = scope.column(left)
    if kind in _ORDERS:
        if column.categorical:
            reason = f"column {name!r} has no order, so {_SIGNS[kind]} is not answered"
            scope.refuse(node, reason, f"List the levels that are meant: {name} IN (...).")
        code = _value(scope, right, name, column)[0]
        assert column.bounded  # or its value would have been refused
        below, cut = kind in ("LT", "LTE"), code + (kind in ("LTE", "GT"))  # the codes below cut, or those from cut on
        return span(name, column, 0, cut - 1) if below == wanted else span(name, column, cut, column.steps)
    equal = Equals(name, _value(scope, right, name, column)[1])
    return _either(name, column, equal, wanted == (kind == "EQ"))


def _unwrapped(node: Node) -> Node:
    while type(node).__name__ == "Paren":
        node = node.this
    return node


def between(scope: Scope, node: Node, wanted: bool) -> Predicate:
    scope.only(node, "this", "low", "high")
    name, column = scope.column(node.this)
    if not column.bounded:
        scope.refuse(node, f"column {name!r} has no order, so BETWEEN is not answered", f"Use {name} IN (...).")
    first, last = (_value(scope, node.args[each], name, column)[0] for each in ("low", "high"))
    inside = span(name, column, first, last)
    if inside == Or() and not wanted:
        return span(name, column, 0, column.steps)
    return _either(name, column, inside, wanted)


def membership(scope: Scope, node: Node, wanted: bool) -> Predicate:
    scope.only(node, "this", "expressions")
    name, column = scope.column(node.this)
    if not node.expressions:
        scope.refuse(node, "an empty list after IN is not answered", f"Name at least one value: {name} IN (...).")
    found = dict(_value(scope, each, name, column) for each in node.expressions)
    values = [found[code] for code in sorted(found)]
    return _either(name, column, Equals(name, values[0]) if len(values) == 1 else Among(name, values), wanted)


def is_test(scope: Scope, node: Node, wanted: bool) -> Predicate:
    scope.only(node, "this", "expression")
    name, column = scope.column(node.this)
    what = type(node.expression).__name__
    if what == "Boolean":
        _check_boolean(scope, node, name, column)
        truth = Equals(name, bool(node.expression.this))
        return truth if wanted else Not(truth)
    if what != "Null":
        scope.refuse(node, "IS is answered before NULL, TRUE and FALSE only", PLAIN)
    if column.missing_code is None:
        reason = f"no missing values are declared for column {name!r}, so this condition is the same for every row"
        scope.refuse(node, reason, "Leave it out.")
    return Missing(name) if wanted else Not(Missing(name))


def bare_column(scope: Scope, node: Node, wanted: bool) -> Predicate:
    name, column = scope.column(node)
    _check_boolean(scope, node, name, column)
    return Equals(name, wanted)


def _check_boolean(scope: Scope, node: Node, name: str, column: Column) -> None:
    levels = column.levels if column.categorical else ()
    values = [type(level) for code, level in enumerate(levels) if code != column.missing_code]
    if values != [bool, bool]:
        scope.refuse(node, f"column {name!r} is not declared TRUE and FALSE, so it is no condition by itself", PLAIN)


def _either(name: str, column: Column, true: Predicate, wanted: bool) -> Predicate:
    return true if wanted else all_of([Not(true), present(name, column)])


def _value(scope: Scope, node: Node, name: str, column: Column) -> tuple[int, Any]:
    """The code of a literal and the column's own value of that code."""
    if not column.listed:
        hint = "Declare its bounds: Number(low, high, step)." if column.ordered else "Leave it out."
        scope.refuse(node, f"column {name!r} is declared {column!r}: no value of it can be asked for", hint)
    literal, quoted = _literal(scope, node, name), type(node).__name__ == "Literal" and node.is_string
    if column.bounded:
        if type(literal) is not Fraction:
            reason = f"column {name!r} holds numbers, found {shown(str(literal))}"
            scope.refuse(node, reason, "Write numbers without quotes.")
        try:
            code = column.code(literal)
        except ParameterError as error:
            scope.refuse(node, f"column {name!r}: {error}", "Nothing is rounded: ask with a value on the grid.")
        return code, column.value(code)
    declared = "Ask with a declared level, spelled as it is declared."
    if column.other is not None:
        declared = f"Values that are not declared are counted as {shown(str(column.other))}."
    if not quoted:  # perhaps a level that is a text, written as a number
        written = f"-{node.this.this}" if type(node).__name__ == "Neg" else str(node.this)
        texts = (level for level in column.levels if type(level) is str and level.lower() == written.lower())
        meant = next(texts, None)
        if meant is not None:
            declared = f"Its levels are texts, which are written in quotes: {shown(meant)}."
    if type(literal) is Fraction and literal.denominator != 1:
        scope.refuse(node, f"column {name!r}: {spell(literal)} is not a declared level", declared)
    level = int(literal) if type(literal) is Fraction else literal
    (code_found,) = column.codes([level])
    if code_found is None:
        near = near_misses(level, column.levels).strip() or f"Declared: {column!r}."
        hint = declared if not quoted and meant is not None else f"{near} {declared}"
        scope.refuse(node, f"column {name!r}: {level!r} is not a declared level", hint)
    if code_found == column.missing_code:
        reason = f"column {name!r}: {shown(str(level))} stands for missing values"
        scope.refuse(node, reason, f"Write {name} IS NULL, or IS NOT NULL.")
    return code_found, column.value(code_found)


def _literal(scope: Scope, node: Node, name: str) -> str | bool | Fraction:
    kind = type(node).__name__
    if kind == "Literal" and node.is_string:
        return str(node.this)
    if kind == "Boolean":
        return bool(node.this)
    if kind == "Null":
        scope.refuse(node, "a comparison with NULL is never true", f"Write {name} IS NULL, or IS NOT NULL.")
    return number(scope, node)


_ATOMS: dict[str, Callable[[Scope, Node, bool], Predicate]] = {
    **dict.fromkeys(_MIRRORED, comparison),
    "Between": between,
    "In": membership,
    "Is": is_test,
    "Column": bare_column,
}
