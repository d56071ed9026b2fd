"""From a column's values to codes: one rule for every frame, list, array or file.

The code of an entry is a function of that entry alone (and of the column's declared type), never of its neighbours:
only elementwise operations are used. Whatever can be wrong with a row is wrong here, at ingest; a message names the
column and the kind of trouble, never a value and never a row.

Numbers on a grid. Whole numbers, whole floats up to 2^53 and decimals are placed exactly. For any other float the
quotient q = (x - low) / step is a float; if q lies within 1e-9, plus the rounding error of its own computation, of a
whole number, it is that number (so 0.3 with step 0.1 has code 3); otherwise it is rounded down.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.arrays import Codes
from discreet.data.columns import KIND_WORDS, Values, objects
from discreet.data.domain import AnyNumber, Bits, Category, Column, Number, Vector, Whole
from discreet.errors import SchemaError, UndeclaredLevels

_INT64 = np.iinfo(np.int64)
_SPELLED_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?\Z")
_SPELLED_INFINITY = re.compile(r"([+-]?)inf(inity)?\Z", re.IGNORECASE)


def encode(parts: Sequence[Values], column: Column, name: str) -> Codes:
    """The codes of a column's entries; SchemaError if an entry does not fit the declaration."""
    if len(parts) == 1 and parts[0].where is None:
        return _encode(parts[0], column, name)
    codes = np.zeros(sum(len(part.data) for part in parts), dtype=np.int64)
    for part in parts:
        codes[part.where] = _encode(part, column, name)
    return codes


def _encode(values: Values, column: Column, name: str) -> Codes:
    if isinstance(column, (Vector, Bits, Whole)):
        raise SchemaError(f"column {name!r} is declared {column!r}, which a table does not hold")
    if values.kind == "nothing":
        codes = np.zeros(len(values.data), dtype=np.int64)
        null = values.null
    elif isinstance(column, Category):
        codes, null = _category_codes(values, column, name), values.null
    else:
        codes, null = _number_codes(values, column, name)
    if null.any():
        if column.missing_code is None:
            how = "missing=True" if not isinstance(column, Category) else 'missing="..."'
            raise SchemaError(f"column {name!r} has missing values; {how} in its declaration would take them")
        codes = np.where(null, column.missing_code, codes)
    return codes


def _category_codes(values: Values, column: Category, name: str) -> Codes:
    declared = {kind for kind, _ in column.lookup()}
    comparable = "text" in declared if values.kind == "text" else declared != {"text"}
    if not (comparable or values.spelled):
        levels = ", ".join(sorted(KIND_WORDS[kind] for kind in declared))
        raise SchemaError(f"column {name!r} holds {KIND_WORDS[values.kind]}, but its declared levels are {levels}")
    codes = _text_level_codes(values, column) if values.kind == "text" else _plain_level_codes(values, column)
    unknown = (codes < 0) & ~values.null
    if unknown.any():
        if column.other_code is None:
            raise UndeclaredLevels(name)
        codes = np.where(unknown, column.other_code, codes)
    return codes


def _text_level_codes(values: Values, column: Category) -> Codes:
    lookup = column.lookup()
    found = [_text_level_code(text, lookup, values.spelled) for text in values.texts]
    return np.asarray(np.array([*found, -1], dtype=np.int64)[values.data])


def _text_level_code(text: str, lookup: Mapping[tuple[str, Any], int], spelled: bool) -> int:
    keys: list[tuple[str, Any]] = [("text", text)]
    if spelled:
        trimmed = text.strip()
        if trimmed.lower() in ("true", "false"):
            truth = trimmed.lower() == "true"
            keys += [("boolean", truth), ("whole", int(truth))]
        elif len(trimmed) < 4000 and _SPELLED_NUMBER.match(trimmed):
            value = Fraction(trimmed)
            if value.denominator == 1:
                keys += [("whole", int(value)), *([("boolean", bool(value))] if value in (0, 1) else [])]
    return next((lookup[key] for key in keys if key in lookup), -1)


def _plain_level_codes(values: Values, column: Category) -> Codes:
    """Codes of numbers and booleans among whole and boolean levels; -1 where there is none."""
    own, strange = ("boolean", "whole") if values.kind == "boolean" else ("whole", "boolean")
    lookup = column.lookup()
    table = {int(level): code for kind in (strange, own) for (each, level), code in lookup.items() if each == kind}
    data = values.data
    if values.kind == "float":
        whole = np.isfinite(data) & (np.floor(data) == data) & (np.abs(data) <= 2.0**53)
        return np.where(whole, _find(np.where(whole, data, 0).astype(np.int64), table), -1)
    if data.dtype == object:
        return np.array([table.get(entry, -1) for entry in data], dtype=np.int64)
    if data.dtype == np.uint64:
        small = data <= np.uint64(_INT64.max)
        large = np.array([table.get(int(entry), -1) for entry in data[~small]], dtype=np.int64)
        codes = _find(np.where(small, data, 0).astype(np.int64), table)
        codes[~small] = large
        return codes
    return _find(np.asarray(data, dtype=np.int64), table)


def _find(data: Codes, table: Mapping[int, int]) -> Codes:
    keys = np.array(sorted(key for key in table if _INT64.min <= key <= _INT64.max), dtype=np.int64)
    if not len(keys):
        return np.full(len(data), -1, dtype=np.int64)
    codes = np.array([table[int(key)] for key in keys], dtype=np.int64)
    place = np.minimum(np.searchsorted(keys, data), len(keys) - 1)
    return np.where(keys[place] == data, codes[place], -1)


def _number_codes(values: Values, column: Number | AnyNumber, name: str) -> tuple[Codes, npt.NDArray[np.bool_]]:
    """Codes and what is missing (text may spell NaN)."""
    if values.kind == "text":
        if not values.spelled:
            raise SchemaError(f"column {name!r} holds text, but a number is declared")
        return _spelled_codes(values, column, name)
    if isinstance(column, AnyNumber):
        return _any_codes(values, column), values.null
    if values.kind == "float":
        return _float_codes(np.where(values.null, 0, values.data), column), values.null
    if values.data.dtype == object:
        exact = [
            column.steps if null else _exact_code(entry, column)
            for entry, null in zip(values.data, values.null, strict=True)
        ]
        return np.array(exact, dtype=np.int64), values.null
    return _whole_codes(values.data, column), values.null


def _exact_code(value: Any, column: Number) -> int:
    """The code of one exact number; decimals may be infinite."""
    if isinstance(value, Decimal) and value.is_infinite():
        return column.steps if value > 0 else 0
    clamped = min(max(Fraction(value), column.low), column.high)
    return math.floor((clamped - column.low) / column.step)


def _whole_codes(data: npt.NDArray[Any], column: Number) -> Codes:
    """Exactly, in int64 when the declared bounds allow it and in Python integers otherwise."""
    first, last = math.floor(column.low), math.ceil(column.high)
    scale = math.lcm(column.low.denominator, column.step.denominator)
    if (last - first) * scale >= 2**62 or first < _INT64.min or last > _INT64.max:
        return np.array([_exact_code(int(entry), column) for entry in data], dtype=np.int64)
    if data.dtype == np.uint64:
        data = np.minimum(data, np.uint64(_INT64.max))
    clipped = np.clip(data.astype(np.int64), first, last) - first
    above_low = clipped * scale - int((column.low - first) * scale)
    return np.clip(above_low // int(column.step * scale), 0, column.steps)


def _float_codes(data: npt.NDArray[Any], column: Number) -> Codes:
    values = data.astype(np.float64)
    precision = float(np.finfo(data.dtype).eps)
    codes = _near_grid(np.clip(values, float(column.low), float(column.high)), column, precision)
    whole = (np.floor(values) == values) & (np.abs(values) <= 2.0**53)
    if whole.any():
        codes[whole] = _whole_codes(values[whole].astype(np.int64), column)
    return codes


def _near_grid(values: npt.NDArray[np.float64], column: Number, precision: float) -> Codes:
    low, step = float(column.low), float(column.step)
    quotient = (values - low) / step
    nearest = np.rint(quotient)
    slack = 1e-9 + 4 * precision * (np.abs(values) + abs(low)) / step
    codes = np.where(np.abs(quotient - nearest) <= slack, nearest, np.floor(quotient))
    return np.clip(codes, 0, float(min(column.steps, 2**62))).astype(np.int64).clip(0, column.steps)


def _any_codes(values: Values, column: AnyNumber) -> Codes:
    if values.data.dtype == object:
        return column.codes(np.array([_nearest_float(entry) for entry in values.data], dtype=np.float64))
    return column.codes(np.where(values.null, 0, values.data).astype(np.float64))


def _nearest_float(value: Any) -> float:
    """The nearest float; what is too large for one becomes infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _spelled_codes(values: Values, column: Number | AnyNumber, name: str) -> tuple[Codes, npt.NDArray[np.bool_]]:
    missing = np.array([*(text.strip().lower() == "nan" for text in values.texts), False])
    numbers_found = [_spelled_number(text) for text in values.texts]
    if any(number is None for number in numbers_found):
        raise SchemaError(f"column {name!r} holds text that is not a number")
    found = Values("decimal", objects([*numbers_found, Decimal(0)]), missing)
    codes, _ = _number_codes(found, column, name)
    return codes[values.data], values.null | missing[values.data]


def _spelled_number(text: str) -> Decimal | None:
    trimmed = text.strip()
    infinite = _SPELLED_INFINITY.match(trimmed)
    if infinite:
        return Decimal("-Infinity" if infinite[1] == "-" else "Infinity")
    if trimmed.lower() == "nan":
        return Decimal(0)
    return Decimal(trimmed) if _SPELLED_NUMBER.match(trimmed) else None
