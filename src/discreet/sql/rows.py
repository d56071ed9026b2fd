"""What an expression says about one row: its value in every cell of the declared columns that it names.

Arithmetic is exact, on the values of the grid. What a function makes of a row is tabulated over the public domain, cell
by cell, and becomes a predicate, a key of groups or a value to sum. No row is looked at.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.data import Column
from discreet.predicate import Among, And, Between, Equals, Missing, Or, Predicate
from discreet.sql import dates
from discreet.sql.grammar import COMPARISONS, SUBQUERY, Node
from discreet.sql.scope import Scope
from discreet.sql.source import shown

MAX_TABLE = 2**15
"""Cells of several columns that are tabulated."""

MAX_LINE = 2**17
"""Codes of one column that are tabulated."""

_TYPES = {bool: "a truth value", Fraction: "a number", str: "a text", datetime.date: "a date"}


def columns_of(scope: Scope, *nodes: Node) -> tuple[str, ...]:
    """The declared columns below these nodes, in the domain's order."""
    found: set[str] = set()
    for node in nodes:
        scope.columns_of(node, found.add)
    return tuple(name for name in scope.domain.names if name in found)


def plain_value(column: Column, code: int) -> Any:
    """What a code stands for in an expression: a level, an exact number, a date, or None."""
    if code == column.missing_code:
        return None
    if column.calendar:
        return dates.read_moment(str(column.label(code)))
    value: Any = column.value(code)  # type: ignore[union-attr]
    return Fraction(value) if type(value) is int else value


@functools.lru_cache(maxsize=64)
def plain_values(column: Column) -> tuple[Any, ...]:
    """What the codes of a column stand for."""
    return tuple(plain_value(column, code) for code in range(column.size))


def seen_periods(scope: Scope, node: Node, into: dict[str, str]) -> None:
    """Say which period of each column of dates is all that an expression looks at: YEAR(day) looks at years."""
    scope, node = scope.through(node)
    period = dates.seen_period(node)
    for part in node.parts:
        found = scope.column(part)
        if found is None:
            seen_periods(scope, part, into)
        elif found[1].calendar:
            into[found[0]] = min(into.get(found[0], "year"), period or "second", key=dates.PERIODS.index)


class CellValues:
    """The values of an expression over the cells of its columns, in the order of the codes.

    starts  of each column the codes that begin a cell: all of them, or one for each period of a date that is looked at
    """

    def __init__(self, scope: Scope, node: Node) -> None:
        self.scope, self.node, self.columns = scope, node, columns_of(scope, node)
        declared: list[Any] = [scope.domain.column(name) for name in self.columns]
        for name, column in zip(self.columns, declared, strict=True):
            if not column.listed:
                hint = "Declare its bounds: Number(low, high, step)." if column.ordered else "Leave it out."
                hint = "Of texts that nobody listed, = 'a' and IN ('a', 'b') are answered." if column.free else hint
                scope.refuse(node, f"column {name!r} is declared {column!r}: its values cannot be listed", hint)
        periods, self.starts = dict[str, str](), list[Sequence[int]]()
        seen_periods(scope, node, periods)
        for name, column in zip(self.columns, declared, strict=True):
            if periods.get(name, "second") == "second":
                self.starts.append(range(column.size))
            else:
                self.starts.append([*column.blocks(periods[name]), *range(column.points, column.size)])
        self.shape = tuple(map(len, self.starts))
        self.whole = all(len(each) == column.size for each, column in zip(self.starts, declared, strict=True))
        if math.prod(self.shape) > (MAX_LINE if len(self.shape) == 1 else MAX_TABLE):
            reason = f"this looks at {math.prod(self.shape):,} combinations of values, which are too many"
            scope.refuse(node, reason, "Use columns with fewer values, or compare one column with a plain value.")
        lists = [
            plain_values(column) if len(each) == column.size else [plain_value(column, code) for code in each]
            for each, column in zip(self.starts, declared, strict=True)
        ]
        run = compiled(scope, node)
        self.values = [run(dict(zip(self.columns, cell, strict=True))) for cell in itertools.product(*lists)]

    def where(self, wanted: Callable[[Any], bool]) -> Predicate:
        """The predicate of the cells whose value is wanted."""
        chosen = np.array([wanted(value) for value in self.values], dtype=bool).reshape(self.shape)
        return self.predicate(0, chosen)

    def predicate(self, place: int, chosen: np.ndarray[Any, Any]) -> Predicate:
        """The predicate that holds in these cells: column by column, codes that lead to the same cells together."""
        if chosen.all():
            return And()
        if not chosen.any():
            return Or()
        name, alike = self.columns[place], dict[bytes, list[int]]()
        column, starts = self.scope.domain.column(name), self.starts[place]
        for cell in range(chosen.shape[0]):
            alike.setdefault(np.ascontiguousarray(chosen[cell]).tobytes(), []).append(cell)
        ways = [
            combined(And, [of_cells(name, column, starts, cells), self.predicate(place + 1, chosen[cells[0]])])
            for cells in alike.values()
            if chosen[cells[0]].any()
        ]
        return combined(Or, ways)


def combined(word: type[And] | type[Or], parts: Sequence[Predicate]) -> Predicate:
    """The parts joined by And or Or, without repetition, and by nothing when there is one part."""
    other = Or if word is And else And
    flat = [inner for part in parts for inner in (part.inner if type(part) is word else (part,))]
    if other() in flat:
        return other()
    kept = tuple(dict.fromkeys(flat))
    return kept[0] if len(kept) == 1 else word(*kept)


def of_cells(name: str, column: Column, starts: Sequence[int], cells: Sequence[int]) -> Predicate:
    """The column has one of the codes of these cells, which are in order; a cell reaches to the start of the next."""
    if len(cells) == len(starts):
        return And()
    present = [cell for cell in cells if starts[cell] != column.missing_code]
    ways: list[Predicate] = [Missing(name)] if len(present) < len(cells) else []
    if column.categorical:
        values: list[Any] = [column.value(code) for code in present]
        ways += [] if not values else [Equals(name, values[0]) if len(values) == 1 else Among(name, values)]
        return combined(Or, ways)
    runs = np.split(np.array(present), np.flatnonzero(np.diff(present) > 1) + 1) if present else []
    if len(starts) == column.size and len(runs) > 2 and len(present) <= 4 * len(runs):
        return combined(Or, [*ways, Among(name, [column.declared(code) for code in present])])  # type: ignore[union-attr]
    ends = [*starts[1:], column.size]
    return combined(Or, [*ways, *(span(name, column, starts[run[0]], ends[run[-1]] - 1) for run in runs)])


def span(name: str, column: Any, first: int, last: int) -> Predicate:
    """The column has one of the codes first .. last."""
    if first > last:
        return Or()
    low, high = column.declared(first), column.declared(last)
    return Equals(name, low) if first == last else Between(name, low, high)


# Evaluation.

Run = Callable[[dict[str, Any]], Any]


def compiled(scope: Scope, node: Node) -> Run:
    """The expression as a function of the values of a row's columns."""
    scope, node = scope.through(node)
    if node.kind == "name":
        name = str(scope.meaning(node))
        return lambda row: row[name]
    if node.kind in ("number", "text", "boolean", "null"):
        literal = node.value
        return lambda row: literal
    if node.kind == "date":
        day = dates.read_date(scope, node)
        return lambda row: day
    maker = _MAKERS.get(node.kind)
    if node.kind == "select":
        scope.refuse(node, *SUBQUERY)
    if maker is None:
        scope.refuse(
            node, "this is not answered about a row", "Write arithmetic, conditions or CASE of declared columns."
        )
    return maker(scope, node)


def _of_parts(make: Callable[..., Any], *, strict: bool = True) -> Callable[[Scope, Node], Run]:
    """What `make` makes of the parts; strict: NULL if a part is."""

    def maker(scope: Scope, node: Node) -> Run:
        parts = [compiled(scope, part) for part in node.parts]

        def run(row: dict[str, Any]) -> Any:
            values = [part(row) for part in parts]
            return None if strict and None in values else make(scope, node, *values)

        return run

    return maker


def as_number(scope: Scope, node: Node, value: Any) -> Fraction:
    if type(value) is not Fraction:
        scope.refuse(node, f"a number is expected here, found {kind_of(value)}", "Arithmetic is of numbers.")
    return value


def kind_of(value: Any) -> str:
    return _TYPES.get(type(value), "a date" if isinstance(value, datetime.date) else "something else")


def arithmetic(scope: Scope, node: Node, left: Any, right: Any) -> Any:
    if isinstance(left, datetime.date) and node.kind in "+-" and type(right) in (Fraction, tuple):
        return dates.shifted(scope, node, left, right)
    if isinstance(left, datetime.date) and isinstance(right, datetime.date) and node.kind == "-":
        return Fraction((_dated(scope, node, left, right) - _dated(scope, node, right, left)).days)
    one, other = (as_number(scope, node, each) for each in (left, right))
    if node.kind in ("/", "//", "%"):
        if other == 0:
            scope.refuse(
                node, "this divides by zero in some rows of the declared domain", "Leave those rows out by CASE."
            )
        if node.kind == "/":
            return one / other
        if node.kind == "//" and (one.denominator != 1 or other.denominator != 1):
            scope.refuse(node, "// is answered for whole numbers", "Write FLOOR(x / w).")
        quotient = Fraction(math.trunc(one / other))
        return quotient if node.kind == "//" else one - quotient * other
    return one + other if node.kind == "+" else one - other if node.kind == "-" else one * other


def compare(scope: Scope, node: Node, left: Any, right: Any) -> bool:
    left, right = (_dated(scope, node, one, other) for one, other in ((left, right), (right, left)))
    kinds = {kind_of(left), kind_of(right)}
    if len(kinds) > 1 and kinds != {"a truth value", "a number"}:
        scope.refuse(node, f"{' and '.join(sorted(kinds))} are not compared", "Compare values of one kind.")
    match node.kind:
        case "=":
            return bool(left == right)
        case "<>":
            return bool(left != right)
        case "<" | "<=":
            return bool(left < right) or (node.kind == "<=" and left == right)
    return bool(left > right) or (node.kind == ">=" and left == right)


def _dated(scope: Scope, node: Node, one: Any, other: Any) -> Any:
    """A text beside a date is a date, and a day beside a moment is its beginning."""
    if type(one) is str and isinstance(other, datetime.date):
        moment = dates.read_date(scope, Node("date", node.start, (), one))
        one = moment if isinstance(other, datetime.datetime) else dates.day_of(moment)
    if type(one) is datetime.date and isinstance(other, datetime.datetime):
        return datetime.datetime.combine(one, datetime.time())
    return one


# Conditions have three values; None is neither true nor false.


def compared(scope: Scope, node: Node, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    exact = [Fraction(each) if type(each) in (int, float) else each for each in (left, right)]
    return compare(scope, node, *exact)


def all_of(scope: Scope, node: Node, *values: Any) -> bool | None:
    """AND of these truths, or OR."""
    ends = node.kind == "or"
    return ends if ends in values else None if None in values else not ends


def inside(scope: Scope, node: Node, value: Any, low: Any, high: Any) -> bool | None:
    """BETWEEN."""
    above = compared(scope, Node(">=", node.start), value, low)
    found = all_of(scope, Node("and", 0), above, compared(scope, Node("<=", node.start), value, high))
    return None if found is None else found != node.value


def listed(scope: Scope, node: Node, value: Any, *others: Any) -> bool | None:
    """IN a list."""
    found = all_of(scope, Node("or", 0), *(compared(scope, Node("=", node.start), value, other) for other in others))
    return None if found is None else found != node.value


def as_truth(scope: Scope, node: Node, value: Any) -> bool:
    if type(value) is not bool:
        scope.refuse(node, f"a condition is expected here, found {kind_of(value)}", "For example age >= 65.")
    return value


def _joined(scope: Scope, node: Node, *values: Any) -> bool | None:
    return all_of(scope, node, *(None if value is None else as_truth(scope, node, value) for value in values))


def like(scope: Scope, node: Node, value: Any, pattern: Any, escape: Any = None) -> bool:
    for each in (value, pattern):
        if type(each) is not str:
            scope.refuse(node, f"LIKE is answered for texts, found {kind_of(each)}", "For example name LIKE 'A%'.")
    against, loose = (bool(each) for each in node.value)
    sign = {"%": ".*", "_": "."}
    parts = re.findall(rf"{re.escape(escape)}.|." if escape else ".", pattern, re.DOTALL)
    if escape is not None and (len(escape) != 1 or parts[-1:] == [escape]):
        scope.refuse(node, "ESCAPE names one sign, which stands before another", "For example LIKE '5!%' ESCAPE '!'.")
    shape = "".join(re.escape(each[1:]) if len(each) == 2 else sign.get(each) or re.escape(each) for each in parts)
    shape = re.sub(r"(\.\*)+", ".*", shape)
    found = re.compile(shape, re.DOTALL | (re.IGNORECASE if loose else 0)).fullmatch(value) is not None
    return found != against


def _is(scope: Scope, node: Node, value: Any) -> bool:
    against, what = node.value
    if what == "NULL":
        return (value is None) is not bool(against)
    if value is not None:
        as_truth(scope, node, value)
    return (value is (what == "TRUE")) is not bool(against)


def cases(node: Node) -> tuple[list[tuple[Node, Node]], Node]:
    """The conditions and values of a CASE, and what is otherwise: NULL if that is not said."""
    (operand, ended), parts = node.value, list(node.parts)
    first = parts.pop(0) if operand else None
    otherwise = parts.pop() if ended else Node("null", node.start)
    pairs = [(parts[place], parts[place + 1]) for place in range(0, len(parts), 2)]
    if first is not None:
        pairs = [(Node("=", condition.start, (first, condition)), value) for condition, value in pairs]
    return pairs, otherwise


def _case(scope: Scope, node: Node) -> Run:
    pairs, otherwise = cases(node)
    ways = [(compiled(scope, condition), compiled(scope, value)) for condition, value in pairs]
    last = compiled(scope, otherwise)

    def run(row: dict[str, Any]) -> Any:
        for condition, value in ways:
            found = condition(row)
            if found is not None and as_truth(scope, node, found):
                return value(row)
        return last(row)

    return run


def _cast(scope: Scope, node: Node) -> Run:
    part = compiled(scope, node.parts[0])
    if node.value in ("DATE", "TIMESTAMP"):
        return lambda row: _as_moment(scope, node, value) if (value := part(row)) is not None else None
    if node.value in _TEXTUAL:
        return lambda row: as_text(scope, node, value) if (value := part(row)) is not None else None
    if node.value not in NUMERIC:
        hint = "Casts are to DOUBLE, DECIMAL, INTEGER, VARCHAR and DATE."
        scope.refuse(node, f"a cast to {shown(node.value)} is not answered", hint)

    def run(row: dict[str, Any]) -> Any:
        value = part(row)
        if value is None:
            return None
        number = Fraction(value) if type(value) is bool else as_number(scope, node, value)
        if node.value in WHOLE and number.denominator != 1:
            scope.refuse(
                node, "a cast to whole numbers of a value that is none is not answered", "Write FLOOR or ROUND."
            )
        return number

    return run


def _as_moment(scope: Scope, node: Node, value: Any) -> Any:
    """A date, without its time of day unless the cast is to a timestamp."""
    found = dates.as_date(scope, node, value)
    return dates.day_of(found) if node.value == "DATE" else found


WHOLE = frozenset(["INTEGER", "INT", "BIGINT", "SMALLINT", "TINYINT", "INT64", "INT4", "INT8", "SIGNED"])
NUMERIC = WHOLE | {"DOUBLE", "FLOAT", "REAL", "DECIMAL", "NUMERIC"}
NUMERIC |= {"FLOAT64", "FLOAT8", "FLOAT4", "NUMBER", "BIGNUMERIC"}
_TEXTUAL = frozenset(["VARCHAR", "TEXT", "STRING", "CHAR", "NVARCHAR"])


def as_text(scope: Scope, node: Node, value: Any) -> str:
    """What a value is as a text, where all dialects agree."""
    if type(value) is str:
        return value
    if type(value) is Fraction and value.denominator == 1:
        return str(value.numerator)
    if type(value) is datetime.date:
        return value.isoformat()
    scope.refuse(node, f"{kind_of(value)} is not written as a text", "Texts, whole numbers and days are.")


def _concatenated(scope: Scope, node: Node, *values: Any) -> str:
    """Without those that are missing."""
    return "".join(as_text(scope, node, value) for value in values if value is not None)


def _text_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a text and whole numbers or texts."""

    def run(scope: Scope, node: Node, value: Any, *given: Any) -> Any:
        if type(value) is not str:
            scope.refuse(node, f"a text is expected here, found {kind_of(value)}", "For example LOWER(name) = 'x'.")
        if any(type(each) is Fraction and (each.denominator != 1 or each < 0) for each in given):
            scope.refuse(node, "a whole number is expected here", "For example LEFT(name, 1).")
        try:
            found = function(value, *(int(each) if type(each) is Fraction else each for each in given))
        except TypeError:
            scope.refuse(node, f"{node.value[0]} is not read like this", "For example LEFT(name, 1).")
        return Fraction(found) if type(found) is int else found

    return run


def _substring(value: str, start: int, length: int = 10**6) -> str:
    if start < 1:
        raise TypeError
    return value[start - 1 : start - 1 + length]


def minus(scope: Scope, node: Node, value: Any) -> Any:
    if type(value) is tuple:
        return -value[0], value[1]
    return -as_number(scope, node, value)


def _call(scope: Scope, node: Node) -> Run:
    name, distinct = node.value
    if name in ("SQRT", "LN", "LOG2", "LOG10", "EXP"):
        reason = f"{name} of a row has no exact value, and only exact sums are proved to be private"
        scope.refuse(node, reason, f"Of an answer it has one: {name}(AVG(x)); or group by bins.")
    if distinct or name not in CALLS:
        scope.refuse(node, f"{name} is not answered about a single row", "It belongs in the select list.")
    least, most, function = CALLS[name]
    if not least <= len(node.parts) <= most or any(part.kind == "star" for part in node.parts):
        scope.refuse(node, f"{name} takes {least if least == most else f'{least} to {most}'} arguments", "Count them.")
    strict = name not in ("COALESCE", "LEAST", "GREATEST", "IF", "NULLIF", "CONCAT")
    return _of_parts(function, strict=strict)(scope, node)


def rounded(scope: Scope, node: Node, value: Any, digits: Any = Fraction(0)) -> Fraction:
    digits = int(as_number(scope, node, digits))
    return half_away(as_number(scope, node, value), digits)


def half_away(value: Fraction, digits: int) -> Fraction:
    """A number rounded to these digits, half away from zero, as duckdb rounds decimals."""
    scaled = value * Fraction(10) ** digits
    return Fraction(math.floor(abs(scaled) + Fraction(1, 2)) * (1 if scaled >= 0 else -1)) / Fraction(10) ** digits


def _power(scope: Scope, node: Node, base: Any, exponent: Any) -> Fraction:
    power = as_number(scope, node, exponent)
    if power.denominator != 1 or not 0 <= power <= 16:
        scope.refuse(node, "a power is a whole number from 0 to 16", "For example POWER(x, 2).")
    return as_number(scope, node, base) ** int(power)


def bucket(scope: Scope, node: Node, *given: Any) -> Fraction:
    """WIDTH_BUCKET(x, low, high, n): 0 below low, n + 1 from high on, 1 .. n between."""
    value, low, high, many = (as_number(scope, node, each) for each in given)
    if low >= high or many.denominator != 1 or many < 1:
        scope.refuse(
            node, "WIDTH_BUCKET(x, low, high, n) needs low < high and whole n", "For example (age, 0, 100, 10)."
        )
    return Fraction(min(max(math.floor((value - low) * many / (high - low)) + 1, 0), int(many) + 1))


def _least(sign: int) -> Callable[..., Any]:
    def run(scope: Scope, node: Node, *values: Any) -> Any:
        there = [as_number(scope, node, each) for each in values if each is not None]
        return None if not there else sign * max(sign * each for each in there)

    return run


def _if(scope: Scope, node: Node, condition: Any, one: Any, other: Any) -> Any:
    return one if condition is not None and as_truth(scope, node, condition) else other


def _null_if(scope: Scope, node: Node, one: Any, other: Any) -> Any:
    return None if None not in (one, other) and compare(scope, Node("=", node.start), one, other) else one


def _numeric(function: Callable[[Fraction], Any]) -> Callable[..., Fraction]:
    return lambda scope, node, value: Fraction(function(as_number(scope, node, value)))


def _part(unit: str) -> Callable[..., Any]:
    return lambda scope, node, value: dates.date_part(scope, node, unit, value)


CALLS: dict[str, tuple[int, int, Callable[..., Any]]] = {
    "FLOOR": (1, 1, _numeric(math.floor)),
    "CEIL": (1, 1, _numeric(math.ceil)),
    "CEILING": (1, 1, _numeric(math.ceil)),
    "ROUND": (1, 2, rounded),
    "ABS": (1, 1, _numeric(abs)),
    "POWER": (2, 2, _power),
    "POW": (2, 2, _power),
    "MOD": (2, 2, lambda scope, node, one, other: arithmetic(scope, Node("%", node.start), one, other)),
    "WIDTH_BUCKET": (4, 4, bucket),
    "COALESCE": (1, 8, lambda scope, node, *values: next((each for each in values if each is not None), None)),
    "LEAST": (1, 8, _least(-1)),
    "GREATEST": (1, 8, _least(1)),
    "IF": (3, 3, _if),
    "NULLIF": (2, 2, _null_if),
    "TRUNC": (1, 1, _numeric(math.trunc)),
    "SIGN": (1, 1, _numeric(lambda value: (value > 0) - (value < 0))),
    "LOWER": (1, 1, _text_of(str.lower)),
    "UPPER": (1, 1, _text_of(str.upper)),
    "LENGTH": (1, 1, _text_of(len)),
    "INITCAP": (1, 1, _text_of(lambda value: re.sub(r"[^\W_]+", lambda word: word[0].capitalize(), value))),
    "SUBSTR": (2, 3, _text_of(_substring)),
    "LEFT": (2, 2, _text_of(lambda value, size: value[:size])),
    "RIGHT": (2, 2, _text_of(lambda value, size: value[max(0, len(value) - size) :])),
    "TRIM": (1, 1, _text_of(lambda value: value.strip(" "))),
    "LTRIM": (1, 1, _text_of(lambda value: value.lstrip(" "))),
    "RTRIM": (1, 1, _text_of(lambda value: value.rstrip(" "))),
    "REPLACE": (3, 3, _text_of(lambda value, old, new: value.replace(old, new) if old else value)),
    "STARTS_WITH": (2, 2, _text_of(lambda value, part: value.startswith(part))),
    "ENDS_WITH": (2, 2, _text_of(lambda value, part: value.endswith(part))),
    "CONTAINS": (2, 2, _text_of(lambda value, part: part in value)),
    "CONCAT": (1, 8, _concatenated),
    "STRFTIME": (2, 2, dates.written_date),
    "DATE_DIFF": (3, 3, dates.date_diff),
    "LAST_DAY": (1, 1, dates.last_day),
    "MAKE_DATE": (3, 3, dates.made_date),
    "DATE_TRUNC": (2, 2, dates.date_trunc),
    "DATE_PART": (2, 2, dates.date_part),
    **{name: (1, 1, _part(name)) for name in (*dates.PARTS, "WEEKOFYEAR", "DAYOFMONTH", "WEEKDAY")},
}

_MAKERS: dict[str, Callable[[Scope, Node], Run]] = {
    **dict.fromkeys(("+", "-", "*", "/", "//", "%"), _of_parts(arithmetic)),
    **dict.fromkeys(COMPARISONS, _of_parts(compare)),
    "||": _of_parts(_concatenated),
    "minus": _of_parts(minus),
    "interval": lambda scope, node: lambda row: node.value,
    "not": _of_parts(lambda scope, node, value: not as_truth(scope, node, value)),
    **dict.fromkeys(("and", "or"), _of_parts(_joined, strict=False)),
    "between": _of_parts(inside, strict=False),
    "in": _of_parts(listed, strict=False),
    "like": _of_parts(like),
    "is": _of_parts(_is, strict=False),
    "case": _case,
    "cast": _cast,
    "call": _call,
}
