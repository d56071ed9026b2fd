"""What is summed and what is grouped by: expressions of a row as values and keys of a query."""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.data import Batch, Domain, common_unit
from discreet.query import (
    MAX_CELLS,
    MAX_POWER,
    Among,
    And,
    Bins,
    Cases,
    Choose,
    Equals,
    Fixed,
    GroupKey,
    Lookup,
    Not,
    Of,
    Or,
    Plus,
    Power,
    Predicate,
    Times,
    Value,
)
from discreet.sql.conditions import condition
from discreet.sql.grammar import COMPARISONS, Node
from discreet.sql.rows import (
    MAX_LINE,
    MAX_TABLE,
    NUMERIC,
    WHOLE,
    CellValues,
    cases,
    columns_of,
    combined,
    compiled,
    plain_value,
)
from discreet.sql.scope import Scope

_FEW = 16  # different values of a function that are listed with a condition each; more are looked up by their codes
_MANY = 1024  # such values where the cells are not codes

_CONDITIONS = (*COMPARISONS, "not", "and", "or", "between", "in", "like", "is", "boolean")
_RISING = ("FLOOR", "CEIL", "CEILING", "ROUND", "DATE_TRUNC", "YEAR", "WIDTH_BUCKET")


@dataclass(frozen=True, slots=True)
class GroupedBy:
    """What groups are made of: a key, the labels of its groups in order (a Text has none), and what it is called."""

    key: GroupKey
    labels: tuple[Any, ...]
    name: str


def summed(scope: Scope, node: Node) -> Value:
    """The value of an expression that is summed."""
    scope, node = scope.through(node)
    match node.kind:
        case "number":
            return Fixed(node.value)
        case "name":
            return _column(scope, node)
        case "minus":
            return _times(scope, Fixed(-1), summed(scope, node.parts[0]))
        case "-" if isinstance(_example(scope, node.parts[1]), datetime.date):
            one, other = node.parts
            return _days_between(scope, Node("call", node.start, (_DAY, other, one), ("DATE_DIFF", False)), node)
        case "+" | "-":
            left, right = (summed(scope, part) for part in node.parts)
            return _plus(left, right if node.kind == "+" else _times(scope, Fixed(-1), right))
        case "*":
            return _times(scope, *(summed(scope, part) for part in node.parts))
        case "/" if node.parts[1].kind == "number" and node.parts[1].value:
            return _times(scope, Fixed(1 / node.parts[1].value), summed(scope, node.parts[0]))
        case "case":
            return _cases(scope, node)
        case "cast" if node.value in NUMERIC - WHOLE:
            return summed(scope, node.parts[0])
        case "call":
            return _called(scope, node)
    if node.kind in _CONDITIONS:
        truths = [condition(scope, node), condition(scope, node, wanted=False)]
        return Choose(truths, [Fixed(1), Fixed(0)])
    return _looked_up(scope, node)


def _example(scope: Scope, node: Node) -> Any:
    """The value of an expression of one column, or of none, in the first row that could be; None if it is of more."""
    names = columns_of(scope, node)
    if len(names) > 1 or not all(scope.domain.column(name).listed for name in names):
        return None
    return compiled(scope, node)({name: plain_value(scope.domain.column(name), 0) for name in names})


_DAY = Node("text", 0, (), "day")


def _days_between(scope: Scope, call: Node, node: Node) -> Value:
    """DATE_DIFF of two columns is that from a fixed day to one less that to the other: each is looked up by itself."""
    unit, first, last = call.parts
    ends = [_example(scope, each) for each in (first, last)]
    times = any(isinstance(each, datetime.datetime) for each in ends) and node.kind == "-"
    if times or not all(columns_of(scope, each) for each in (first, last)):
        return _looked_up(scope, node)
    fixed = Node("date", node.start, (), "2000-01-01")
    one, other = (
        _looked_up(scope, Node("call", node.start, (unit, fixed, each), call.value)) for each in (last, first)
    )
    return _plus(one, _times(scope, Fixed(-1), other))


def _column(scope: Scope, node: Node) -> Value:
    found = scope.column(node)
    assert found is not None  # other names were followed
    name, column = found
    if column.bounded:
        return Of(name)
    kinds = {type(plain_value(column, code)) for code in range(column.size if column.listed else 0)} - {type(None)}
    if kinds != {bool} and kinds != {Fraction}:
        hint = "Declare it Number(low, high, step): sums need bounds."
        scope.refuse(node, f"column {name!r} is declared {column!r}: it has no bounded sum", hint)
    return _looked_up(scope, node)


def _plus(left: Value, right: Value) -> Value:
    parts = [part for each in (left, right) for part in (each.parts if type(each) is Plus else (each,))]
    fixed = sum((part.number for part in parts if type(part) is Fixed), Fraction(0))
    rest = [part for part in parts if type(part) is not Fixed]
    kept = [*rest, *([Fixed(fixed)] if fixed or not rest else [])]
    return kept[0] if len(kept) == 1 else Plus(*kept)


def _times(scope: Scope, left: Value, right: Value) -> Value:
    parts = [part for each in (left, right) for part in (each.parts if type(each) is Times else (each,))]
    factor, rest = Fraction(1), list[Value]()
    for part in parts:
        if type(part) is Fixed:
            factor *= part.number
        elif rest and _base(rest[-1])[0] == _base(part)[0] and _base(rest[-1])[1] + _base(part)[1] <= MAX_POWER:
            base, power = _base(rest[-1])
            rest[-1] = Power(base, power + _base(part)[1])
        else:
            rest.append(part)
    if factor == 0:  # NULL times zero is NULL
        known = combined(And, [part.known(scope.domain) for part in rest])
        return Fixed(0) if known == And() else Choose([known], [Fixed(0)])
    if not rest:
        return Fixed(factor)
    kept = [*([Fixed(factor)] if factor != 1 else []), *rest]
    return kept[0] if len(kept) == 1 else Times(*kept)


def _base(value: Value) -> tuple[Value, int]:
    return (value.base, value.exponent) if type(value) is Power else (value, 1)


def _cases(scope: Scope, node: Node) -> Value:
    pairs, otherwise = cases(node)
    chosen = [None if value.kind == "null" else summed(scope, value) for _, value in pairs]
    last = None if otherwise.kind == "null" else summed(scope, otherwise)
    if last is None and not any(chosen):
        scope.refuse(node, "this CASE has no value", "Give a number after THEN.")
    return Choose([condition(scope, each) for each, _ in pairs], chosen, last)


def _called(scope: Scope, node: Node) -> Value:
    name, parts = node.value[0], node.parts
    if name in ("POWER", "POW") and len(parts) == 2 and parts[1].kind == "number" and parts[1].value in (1, 2, 3, 4):
        found = summed(scope, parts[0])
        return found if parts[1].value == 1 else Power(found, int(parts[1].value))
    if name == "DATE_DIFF" and len(parts) == 3:
        return _days_between(scope, node, node)
    if name == "IF" and len(parts) == 3:
        return _cases(scope, Node("case", node.start, parts, (False, True)))
    if name == "COALESCE" and len(parts) == 2:
        first, otherwise = (None if part.kind == "null" else summed(scope, part) for part in parts)
        if first is not None:
            known = first.known(scope.domain)
            return first if known == And() else Choose([known], [first], otherwise)
    return _looked_up(scope, node)


def _looked_up(scope: Scope, node: Node) -> Value:
    """A function looked up in every cell: one condition for each of its values."""
    if not columns_of(scope, node):
        value = compiled(scope, node)({})
        _check_some(scope, node, [value])
        if type(value) is not Fraction:
            scope.refuse(node, "a number is expected here", "Sums are of numbers.")
        return Fixed(value)
    table = CellValues(scope, node)
    different = list(dict.fromkeys(value for value in table.values if value is not None))
    _check_some(scope, node, different)
    if any(type(value) not in (Fraction, bool) for value in different):
        scope.refuse(node, "a number is expected here", "Sums are of numbers with declared bounds.")
    if len(different) <= (_FEW if table.whole else _MANY):
        where = [table.where(lambda found, value=value: found == value) for value in different]  # type: ignore[misc]
        return Choose(where, [Fixed(int(value) if type(value) is bool else value) for value in different])
    if len(table.values) > MAX_TABLE or not table.whole:
        reason = f"this function has {len(table.values):,} values, more than {MAX_TABLE:,}"
        scope.refuse(node, reason, "Sum the columns themselves, or products of them.")
    step = common_unit([value for value in different if value])
    numbers = [0 if value is None else int(value / step) for value in table.values]
    return Lookup(table.columns, numbers, step, table.where(lambda value: value is not None))


def _check_some(scope: Scope, node: Node, values: list[Any]) -> None:
    if all(value is None for value in values):
        hint = "Look at what CASE or NULLIF leave of the declared values."
        scope.refuse(node, "this is NULL whatever the rows are", hint)


def ends_within(value: Value, where: Predicate, domain: Domain) -> tuple[Fraction, Fraction]:
    """The least and the largest value of rows that satisfy a condition, if they can be listed; else of all rows."""
    ends = value.bounds(domain)
    if not {*where.columns} & {*value.columns}:
        return ends
    scope = [name for name in domain.names if name in {*where.columns, *value.columns}]
    shape = [domain.column(name).size for name in scope]
    if math.prod(shape) > MAX_TABLE or not all(domain.column(name).listed for name in scope):
        return ends
    codes = dict(zip(scope, np.indices(shape).reshape(len(shape), -1), strict=True))
    batch = Batch(domain, math.prod(shape), codes.__getitem__)
    steps = value.steps(batch)[And(where, value.known(domain)).mask(batch)]
    unit = value.unit(domain)
    return (unit * int(steps.min()), unit * int(steps.max())) if len(steps) else ends


# Groups.


def grouped_by(scope: Scope, node: Node, name: str) -> GroupedBy:
    """What groups an expression makes."""
    found = scope.column(node)
    if found is not None:
        column = found[1]
        if column.free:
            return GroupedBy(found[0], (), name)
        if not column.listed:
            hint = "Group by a column whose values are declared."
            scope.refuse(node, f"column {found[0]!r} is declared {column!r}: its values cannot be listed", hint)
        if column.size > MAX_CELLS:
            scope.refuse(node, f"these groups have more than {MAX_CELLS:,} cells", "Group by bins: FLOOR(x / w) * w.")
        return GroupedBy(found[0], tuple(column.labels()), name)
    inner, meant = scope.through(node)
    if not columns_of(inner, meant):
        scope.refuse(node, "this is the same for every row, so it makes no groups", "Leave it out.")
    if meant.kind == "case":
        meant = _by_texts(inner, meant)
    if meant.kind == "case" and all(each.kind in ("text", "number", "null", "boolean") for each in _results(meant)):
        return _by_cases(inner, meant, name)
    columns = columns_of(inner, meant)
    if len(columns) == 1:
        return _by_codes(inner, meant, columns[0], name)
    table = CellValues(inner, meant)
    labels = _ordered(dict.fromkeys(table.values))
    where = [table.where(lambda found, value=value: found == value and type(found) is type(value)) for value in labels]  # type: ignore[misc]
    return GroupedBy(Cases(where[:-1]), tuple(map(label, labels)), name)


def _by_texts(scope: Scope, node: Node) -> Node:
    """CASE WHEN city IN ('a', 'b') THEN city ... with a branch for each of the texts."""
    pairs, otherwise = cases(node)
    found = list[Node]()
    for each, value in pairs:
        target, *texts = each.parts if each.kind == "=" or (each.kind == "in" and not each.value) else (each,)
        column = scope.column(value)
        if column is None or not column[1].free or not texts or scope.column(target) != column:
            found += [each, value]
            continue
        for text in texts:
            found += [Node("=", each.start, (target, text)), text]
    return Node("case", node.start, (*found, otherwise), (False, True))


def listed_by(where: Predicate, key: GroupedBy) -> GroupedBy:
    """A key of texts that nobody declared, as groups if the rows are chosen by them: WHERE city IN ('a', 'b')."""
    for each in where.inner if isinstance(where, And) else (where,):
        if not key.labels and isinstance(each, (Equals, Among)) and each.column == key.key:
            values = [each.value] if isinstance(each, Equals) else list(each.values)
            return GroupedBy(Cases([Equals(each.column, value) for value in values[:-1]]), tuple(values), key.name)
    return key


def _results(node: Node) -> list[Node]:
    pairs, otherwise = cases(node)
    return [*(value for _, value in pairs), otherwise]


def _by_cases(scope: Scope, node: Node, name: str) -> GroupedBy:
    pairs, _ = cases(node)
    where = [condition(scope, each) for each, _ in pairs]
    results = [each.value for each in _results(node)]
    kinds = [(type(each), each) for each in results]
    if len(set(kinds)) == len(kinds):
        return GroupedBy(Cases(where), tuple(map(label, results)), name)
    ways: dict[tuple[type, Any], list[Predicate]] = {}
    for place, kind in enumerate(kinds):
        here = [Not(each) for each in where[:place]] + ([where[place]] if place < len(where) else [])
        ways.setdefault(kind, []).append(combined(And, here))
    conditions = [combined(Or, each) for each in ways.values()]
    return GroupedBy(Cases(conditions[:-1]), tuple(label(value) for _, value in ways), name)


def _by_codes(scope: Scope, node: Node, column: str, name: str) -> GroupedBy:
    starts, values = _runs(scope, node, column)
    different = _ordered(dict.fromkeys(values))
    places = {(type(value), value): place for place, value in enumerate(different)}
    groups = [places[type(value), value] for value in values]
    return GroupedBy(Bins(column, starts, groups), tuple(map(label, different)), name)


def _runs(scope: Scope, node: Node, name: str) -> tuple[list[int], list[Any]]:
    """Where the value changes among the codes of a column, and to what."""
    column = scope.domain.column(name)
    run = compiled(scope, node)

    def at(code: int) -> Any:
        return run({name: plain_value(column, code)})

    if column.bounded and _rises(scope, node):
        starts, values, last = [0], [at(0)], column.points - 1
        top, length = at(last), last
        while values[-1] != top:
            low, high = starts[-1], last  # the first code beyond low with another value
            for end in (low + length - 1, low + length):  # runs are often of one length
                if low < end < high:
                    low, high = (end, high) if at(end) == values[-1] else (low, end)
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if at(middle) == values[-1] else (low, middle)
            length = high - starts[-1]
            starts.append(high)
            values.append(at(high))
            if len(starts) > MAX_LINE:
                reason = f"this makes more than {MAX_LINE:,} groups of the declared values"
                scope.refuse(node, reason, "Take wider bins.")
        if column.missing_code is not None:
            starts.append(column.missing_code)
            values.append(at(column.missing_code))
        return starts, values
    table = CellValues(scope, node)
    kinds = [(type(value), value) for value in table.values]
    cells = [0, *(cell for cell in range(1, len(kinds)) if kinds[cell] != kinds[cell - 1])]
    return [table.starts[0][cell] for cell in cells], [table.values[cell] for cell in cells]


def _rises(scope: Scope, node: Node) -> bool:
    """Whether an expression never turns, up or down, along its column."""
    scope, node = scope.through(node)
    if node.kind in ("name", "minus", "number"):
        return all(_rises(scope, part) for part in node.parts)
    if node.kind in ("+", "-", "*", "/"):
        moving = [part for part in node.parts if columns_of(scope, part)]
        return (
            len(moving) <= 1
            and (node.kind != "/" or moving != [node.parts[1]])
            and all(_rises(scope, part) for part in moving)
        )
    return (
        node.kind == "call"
        and node.value[0] in _RISING
        and sum(bool(columns_of(scope, part)) for part in node.parts) == 1
        and all(_rises(scope, part) for part in node.parts if columns_of(scope, part))
    )


def _ordered(values: Any) -> list[Any]:
    """Numbers and dates in order, missing last; other values as they come."""
    listed = list(values)
    there = [value for value in listed if value is not None]
    if there and (all(type(value) is Fraction for value in there) or all(isinstance(v, datetime.date) for v in there)):
        return [*sorted(there), *([None] if None in listed else [])]
    return listed


def label(value: Any) -> Any:
    """A value as answers show it; dates as ISO text, like the labels of a Date."""
    if isinstance(value, datetime.date):
        return value.isoformat(" ") if isinstance(value, datetime.datetime) else value.isoformat()
    if type(value) is not Fraction:
        return value
    return int(value) if value.denominator == 1 else float(value)
