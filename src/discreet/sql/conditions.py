"""Conditions in SQL as predicates: what follows WHERE, WHEN and FILTER.

SQL's logic has three values: a comparison with a missing value is neither true nor false, and so is its negation.
Predicates have two. So a condition is translated twice over, as "is true" and as "is false":

    true(a AND b) = true(a) and true(b)        false(a AND b) = false(a) or false(b)        and dually for OR
    true(NOT a)   = false(a)                   false(NOT a)   = true(a)
    true(x < v)   = x is one of the grid's values below v
    false(x < v)  = x is one of the grid's values from v on: a missing x is in neither
    true(x = v)   = Equals                     false(x = v)   = not Equals and not Missing
    true(x IS NULL) = Missing                  false(x IS NULL) = not Missing

Conditions are about the values that the table holds, which are on the declared grid. A number or a date in a question
is not rounded: one that is off the grid, or beyond the bounds, is compared with the grid's values and equal to none. A
category's level must be a declared one. Other conditions, such as age + 5 > 40, are solved exactly if they are linear
in one number, and otherwise looked up in every cell of the declared columns (`rows.CellValues`).
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet.data import Column, near_misses, spell
from discreet.errors import ParameterError
from discreet.predicate import EVERYTHING, Among, And, Equals, Missing, Not, Or, Predicate
from discreet.sql.dates import day_of, read_date, within_day
from discreet.sql.grammar import SUBQUERY, Node
from discreet.sql.rows import CellValues, combined, compiled, span
from discreet.sql.scope import Scope
from discreet.sql.source import shown

_ORDERS = ("<", "<=", ">", ">=")
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_TEXTS = "Of texts that nobody listed, = 'a' and IN ('a', 'b') are answered, and GROUP BY."
_LITERALS = ("number", "text", "boolean", "null", "date", "minus")


WITHOUT = (
    "persons without a row in a table are not counted by themselves",
    "Count all of them, and those who have one: the difference is the answer.",
)


def condition(scope: Scope, node: Node, *, wanted: bool = True) -> Predicate:
    """The predicate that holds exactly where the condition is true (or, not wanted, where it is false)."""
    scope, node = scope.through(node)
    subquery = next((each for each in node.walk() if each.kind in ("select", "exists", "among")), None)
    if subquery is not None:
        scope.refuse(subquery, *SUBQUERY)
    if node.kind == "not":
        return condition(scope, node.parts[0], wanted=not wanted)
    if node.kind in ("and", "or"):
        parts = [condition(scope, part, wanted=wanted) for part in node.parts]
        return combined(And if (node.kind == "and") == wanted else Or, parts)
    return _ATOMS.get(node.kind, tabled)(scope, node, wanted)


def present(name: str, column: Column) -> Predicate:
    """The column has a value."""
    return And() if column.missing_code is None else Not(Missing(name))


def there(scope: Scope, node: Node) -> Predicate:
    """An expression has a value."""
    if scope.person(node):  # every row is a person's
        return EVERYTHING if (mark := scope.mark(node)) is None else Equals(mark, True)
    found = scope.column(node)
    if found is not None and not (found[1].free or found[1].coded):
        reason = f"column {found[0]!r} is declared {found[1]!r}: SQL cannot ask about it"
        scope.refuse(node, reason, "Leave it out.")
    if found is not None:
        return present(*found)
    if node.kind in ("number", "text", "boolean"):
        return EVERYTHING
    return condition(scope, Node("is", node.start, (node,), (True, "NULL")))


def tabled(scope: Scope, node: Node, wanted: bool) -> Predicate:
    """A condition looked up in every cell."""
    if node.kind in ("number", "text", "date", "star", "+", "-", "*", "/", "//", "%", "minus", "interval"):
        scope.refuse(node, "this is no condition on a column", scope.asked.plain)
    truths = CellValues(scope, node)
    odd = next((value for value in truths.values if type(value) not in (bool, type(None))), None)
    if odd is not None:
        scope.refuse(node, "this is no condition on a column", scope.asked.plain)
    return truths.where(lambda value: value is wanted)


def literal(node: Node) -> bool:
    """Whether a node is a plain value."""
    return node.kind in _LITERALS and (node.kind != "minus" or node.parts[0].kind == "number")


def plainly(scope: Scope, node: Node) -> Node:
    """What looks at no column as a plain value: DATE '2024-06-01' + INTERVAL 1 MONTH."""
    odd = ("name", "select", "exists", "among", "star", "over")
    if literal(node) or node.kind == "interval" or any(each.kind in odd for each in node.walk()):
        return node
    value, start = compiled(scope, node)({}), node.start
    if type(value) is Fraction:
        found = Node("number", start, (), abs(value))
        return found if value >= 0 else Node("minus", start, (found,))
    if isinstance(value, datetime.date):
        return Node("date", start, (), str(value))
    return Node("text", start, (), value) if type(value) is str else node


def comparison(scope: Scope, node: Node, wanted: bool) -> Predicate:
    node = replace(node, parts=tuple(plainly(scope, each) for each in node.parts))
    sign, (left, right) = node.kind, node.parts
    if left.kind == right.kind == "name":
        _check_names(scope, node)
    if scope.column(left) is None or not literal(right):
        sign, left, right = _MIRRORED[sign], right, left
    found = scope.column(left)
    if found is None or not literal(right):
        linear = solved(scope, node, wanted)
        return tabled(scope, node, wanted) if linear is None else linear
    name, column = found
    if sign in _ORDERS and numbered(column):
        return tabled(scope, node, wanted)
    if sign in _ORDERS:
        _check_ordered(scope, node, name, column, sign)
        cut = _cut(scope, right, name, column, sign in ("<=", ">"))
        ends = (0, cut - 1) if (sign in ("<", "<=")) == wanted else (cut, column.points - 1)
        return span(name, column, *ends)
    return _either(name, column, _one_of(scope, [right], name, column), wanted == (sign == "="))


def numbered(column: Column) -> bool:
    """Whether a category has whole numbers as levels, which are ordered as numbers are."""
    levels = column.levels if column.categorical and column.other_code is None else ()
    return bool(levels) and all(type(each) is int for at, each in enumerate(levels) if at != column.missing_code)


def _check_ordered(scope: Scope, node: Node, name: str, column: Column, sign: str) -> None:
    if column.free:
        scope.refuse(node, f"column {name!r} holds texts that nobody listed: they are not ordered", _TEXTS)
    if column.categorical:
        reason = f"column {name!r} has no order, so {sign} is not answered"
        scope.refuse(node, reason, f"List the levels that are meant: {name} IN (...).")


def _cut(scope: Scope, node: Node, name: str, column: Any, after: bool) -> int:
    """The first code whose value is not below a literal, or lies after it."""
    if column.calendar:
        day = moment(scope, node, name, column)
        return int(column.after(day)) if after else int(column.at_least(day))
    given = literal_value(node)
    if column.bounded and type(given) is Fraction:
        place = (given - column.low) / column.step
        return int(min(max(math.floor(place) + 1 if after else math.ceil(place), 0), column.points))
    found = value_of(scope, node, name, column)
    assert found is not None  # only a number or a date is off a grid
    return int(found[0]) + after


def moment(scope: Scope, node: Node, name: str, column: Any) -> datetime.date:
    """A date that is compared with a column; a text is read as the column's type: days have no time of day."""
    if node.kind not in ("text", "date"):
        scope.refuse(
            node, f"column {name!r} holds dates, found {shown(str(node.value))}", "Dates look like '2024-01-31'."
        )
    found = read_date(scope, Node("date", node.start, (), node.value))
    return day_of(found) if node.kind == "text" and not column.times else found


def _check_names(scope: Scope, node: Node) -> None:
    """Beside a declared column, a name that is not declared is most likely a text without its quotes."""
    for part, other in (node.parts, node.parts[::-1]):
        unknown = part.kind == "name" and part.value[0] is None and not scope.understood(part.value[1])
        if unknown and scope.column(other) is not None:
            text = "'" + part.value[1].replace("'", "''") + "'"
            scope.refuse(
                part, f"{shown(part.value[1])} is not a column", f"Texts are written in single quotes: {text}."
            )


def solved(scope: Scope, node: Node, wanted: bool) -> Predicate | None:
    """A comparison that is linear in one Number: the codes on the right side of its root. None if it is not."""
    left, right = (affine(scope, part) for part in node.parts)
    if left is None or right is None:
        return None
    names = {each[0] for each in (left, right) if each[0] is not None}
    if len(names) != 1:
        return None
    (name,) = names
    column: Any = scope.domain.column(name)
    slope, rest = left[1] - right[1], right[2] - left[2]  # slope x sign rest
    sign = node.kind if slope > 0 else _MIRRORED[node.kind]
    if slope == 0:
        return None
    root = (rest / slope - column.low) / column.step
    points = column.steps + 1
    below, upto = (min(max(each, 0), points) for each in (math.ceil(root), math.floor(root) + 1))
    if sign in ("=", "<>"):
        there, others = (below, upto), ((0, below), (upto, points))
        chosen = [there] if (sign == "=") == wanted else list(others)
    else:
        cut = below if sign in ("<", ">=") else upto
        chosen = [(0, cut) if (sign in ("<", "<=")) == wanted else (cut, points)]
    return combined(Or, [span(name, column, first, last - 1) for first, last in chosen] or [Or()])


def affine(scope: Scope, node: Node) -> tuple[str | None, Fraction, Fraction] | None:
    """(column, a, b) if a node is a * column + b with exact numbers, for a Number with bounds; None otherwise."""
    scope, node = scope.through(node)
    if node.kind == "number":
        return None, Fraction(0), node.value
    if node.kind == "name":
        found = scope.column(node)
        return (found[0], Fraction(1), Fraction(0)) if found is not None and found[1].bounded else None
    if node.kind not in ("+", "-", "*", "/", "minus"):
        return None
    parts = [affine(scope, part) for part in node.parts]
    if node.kind == "minus" and parts[0] is not None:
        return parts[0][0], -parts[0][1], -parts[0][2]
    if None in parts or len(parts) != 2:
        return None
    (one, a, b), (other, c, d) = parts  # type: ignore[misc]
    if node.kind in ("+", "-"):
        sign = 1 if node.kind == "+" else -1
        return None if None not in (one, other) and one != other else (one or other, a + sign * c, b + sign * d)
    if node.kind == "*" and None in (one, other):
        return one or other, a * d + c * b, b * d
    return (one, a / d, b / d) if node.kind == "/" and other is None and d != 0 else None


def between(scope: Scope, node: Node, wanted: bool) -> Predicate:
    target, low, high = node.parts[0], *(plainly(scope, each) for each in node.parts[1:])
    found = scope.column(target)
    if found is None or not (literal(low) and literal(high)):
        ends = (Node(">=", node.start, (target, low)), Node("<=", node.start, (target, high)))
        return condition(scope, Node("and", node.start, ends), wanted=wanted != node.value)
    name, column = found
    if numbered(column):
        return tabled(scope, node, wanted)
    _check_ordered(scope, node, name, column, "BETWEEN")
    first, last = _cut(scope, low, name, column, False), _cut(scope, high, name, column, True) - 1
    return _either(name, column, span(name, column, first, last), wanted != node.value)


def membership(scope: Scope, node: Node, wanted: bool) -> Predicate:
    target, *listed = node.parts
    found = scope.column(target)
    if found is None or not all(map(literal, listed)):
        return tabled(scope, node, wanted)
    name, column = found
    return _either(name, column, _one_of(scope, listed, name, column), wanted != node.value)


def _one_of(scope: Scope, listed: Sequence[Node], name: str, column: Column) -> Predicate:
    """The column has one of the literals; no row has one that is off the grid."""
    codes = dict(found for each in listed if (found := value_of(scope, each, name, column)) is not None)
    values = [codes[code] for code in sorted(codes)]
    if len(values) > 1:
        return Among(name, values)
    return Equals(name, values[0]) if values else Or()


def is_test(scope: Scope, node: Node, wanted: bool) -> Predicate:
    target, (against, what) = node.parts[0], node.value
    if what == "NULL" and scope.person(target):
        if scope.absent:
            scope.refuse(node, *WITHOUT)
        here = there(scope, target)
        return here if wanted == against else Or() if here == EVERYTHING else Not(here)
    found = scope.column(target)
    if found is None:
        if what == "NULL":
            return tabled(scope, node, wanted)
        truth = condition(scope, node.parts[0], wanted=what == "TRUE")
        return truth if wanted != against else combined(And, [Not(truth)])
    name, column = found
    if what != "NULL":
        _check_boolean(scope, node, name, column)
        truth = Equals(name, what == "TRUE")
        return truth if wanted != against else Not(truth)
    if column.missing_code is None:  # no row has none
        return Or() if wanted != against else And()
    return Missing(name) if wanted != against else Not(Missing(name))


def bare_column(scope: Scope, node: Node, wanted: bool) -> Predicate:
    found = scope.column(node)
    assert found is not None  # other names were followed
    _check_boolean(scope, node, *found)
    return Equals(found[0], wanted)


def truth(scope: Scope, node: Node, wanted: bool) -> Predicate:
    return And() if node.value is wanted else Or()


def _check_boolean(scope: Scope, node: Node, name: str, column: Column) -> None:
    levels = column.levels if column.categorical else ()
    values = [type(level) for code, level in enumerate(levels) if code != column.missing_code]
    if values != [bool, bool]:
        whole = [level for level in levels if type(level) is int]
        hint = f"Write {name} = {whole[-1]}." if whole else scope.asked.plain
        scope.refuse(node, f"column {name!r} is not declared TRUE and FALSE, so it is no condition by itself", hint)


def _either(name: str, column: Column, true: Predicate, wanted: bool) -> Predicate:
    if true == Or() and not wanted:
        return present(name, column)
    return true if wanted else combined(And, [Not(true), present(name, column)])


def literal_value(node: Node) -> Any:
    return -node.parts[0].value if node.kind == "minus" else node.value


def value_of(scope: Scope, node: Node, name: str, column: Column) -> tuple[Any, Any] | None:
    """The code of a literal and the column's own value of that code; None for a number or a date off the grid."""
    if column.free:
        if node.kind != "text" or len(node.value) > column.length:
            reason = (
                f"column {name!r} holds texts of at most {column.length} characters, found {shown(str(node.value))}"
            )
            scope.refuse(node, reason, _TEXTS)
        return node.value, node.value  # its codes are private, and only told apart here
    if not column.listed:
        hint = "Declare its bounds: Number(low, high, step)." if column.ordered else "Leave it out."
        scope.refuse(node, f"column {name!r} is declared {column!r}: no value of it can be asked for", hint)
    if node.kind == "null":
        scope.refuse(node, "a comparison with NULL is never true", f"Write {name} IS NULL, or IS NOT NULL.")
    given: Any = literal_value(node)
    if column.bounded:
        if type(given) is not Fraction:
            reason = f"column {name!r} holds numbers, found {shown(str(given))}"
            scope.refuse(node, reason, "Write numbers without quotes.")
        return _on_grid(column, given)
    if not column.categorical:
        day = moment(scope, node, name, column)
        return _on_grid(column, day) if column.times or not within_day(day) else None
    if node.kind == "date":
        scope.refuse(node, f"column {name!r} holds no dates", "Ask with a declared level.")
    return _level(scope, node, name, column, given)


def _on_grid(column: Any, given: Any) -> tuple[int, Any] | None:
    (code,) = column.codes([given])
    return None if code is None else (code, column.declared(code))


def rows_where(scope: Scope, node: Node) -> Predicate:
    """The rows that a question is about. If there are none because of a value off its column's grid, it is named."""
    found = condition(scope, node)
    for each in node.walk() if found == Or() else ():
        for name, column in filter(None, map(scope.column, each.parts if each.kind in _ATOMS else ())):
            for part in filter(literal, each.parts if column.ordered else ()):
                _check_grid(scope, part, name, column)
    return found


def chosen_rows(scope: Scope, node: Node | None) -> Predicate:
    """The rows of a scope that WHERE leaves."""
    return scope.where if node is None else combined(And, [scope.where, rows_where(scope, node)])


def _check_grid(scope: Scope, node: Node, name: str, column: Any) -> None:
    never = "So the condition is never true: the answer is 0 in any case."
    given = moment(scope, node, name, column) if column.calendar else literal_value(node)
    try:
        column.code(given)
    except ParameterError as error:
        scope.refuse(node, f"column {name!r}: {error}", never)
    if column.calendar and value_of(scope, node, name, column) is None:
        scope.refuse(node, f"column {name!r} holds days, found {shown(str(given))}", never)


def _level(scope: Scope, node: Node, name: str, column: Any, given: Any) -> tuple[int, Any]:
    declared = "Ask with a declared level, spelled as it is declared."
    if column.other is not None:
        declared = f"Values that are not declared are counted as {shown(str(column.other))}."
    written = scope.asked.text[node.start :]
    texts = [level for level in column.levels if type(level) is str and written.lower().startswith(level.lower())]
    meant = node.kind != "text" and bool(texts)
    if meant:  # a level that is a text, written as a number
        declared = f"Its levels are texts, which are written in quotes: {shown(max(texts, key=len))}."
    if type(given) is Fraction and given.denominator != 1:
        scope.refuse(node, f"column {name!r}: {spell(given)} is not a declared level", declared)
    level = int(given) if type(given) is Fraction else given
    if node.kind == "text" and True in column.levels:
        level = {"true": True, "false": False}.get(given.lower(), given)
    (code,) = column.codes([level])
    if code is None:
        near = near_misses(level, column.levels).strip() or f"Declared: {column!r}."
        scope.refuse(
            node, f"column {name!r}: {level!r} is not a declared level", declared if meant else f"{near} {declared}"
        )
    if code == column.missing_code:
        reason = f"column {name!r}: {shown(str(level))} means a missing value"
        scope.refuse(node, reason, f"Write {name} IS NULL, or IS NOT NULL.")
    return code, column.value(code)


_ATOMS: dict[str, Callable[[Scope, Node, bool], Predicate]] = {
    **dict.fromkeys(_MIRRORED, comparison),
    "between": between,
    "in": membership,
    "is": is_test,
    "name": bare_column,
    "boolean": truth,
}
