"""From a caller's columns to codes: one rule for every frame, list, array or file.

`Frame` is the door for pandas, polars, pyarrow, arrays and lists: `read` gives the entries of a column as `Values` of
one kind, and nothing is interpreted. Only the columns that are asked for are touched. `encode` turns values into codes;
`grid_rows` turns rows of features into integer vectors. The code of an entry is a function of that entry alone (and of
the column's declared type), never of its neighbours: only elementwise operations are used. Whatever can be wrong with a
row is wrong here, at ingest; a message names the column and the kind of trouble, never a value and never a row, and no
exception of a foreign library is chained to ours, because its text may quote a value.

Numbers on a grid. Whole numbers, whole floats up to 2^53 and decimals are placed exactly. For any other float the
quotient q = (x - low) / step is a float; if q lies within 1e-9, plus the rounding error of its own computation, of a
whole number, it is that number (so 0.3 with step 0.1 has code 3); otherwise it is rounded down.

Rows of features are projected to the declared norm, divided by the step, and cut towards zero.

Theorem.   Every row becomes integers m with sum m_i^2 <= bound_squared = floor((norm / step)^2), whatever the floats
           do: the last step tests this in exact integers, of every row that is not shorter by 2^-20 of its squares,
           and shrinks the largest coordinate by units until it holds.
           And m is a function of that row alone: every float operation is elementwise, over columns in a fixed order,
           never a reduction or a matrix product, whose rounding may depend on how many rows are computed together.
Accuracy.  A row within the norm moves by less than one step in each coordinate, towards zero.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn, TypeVar

import narwhals as nw
import numpy as np
import numpy.typing as npt

from discreet.core import Codes, Floats, Ints, Mask, ParameterError, SchemaError, UndeclaredLevels, quietly
from discreet.data import calendar
from discreet.data.domain import (
    AnyNumber,
    Category,
    Column,
    Number,
    Text,
    Vector,
    kind_of,
    matches,
    near_misses,
)
from discreet.data.rules import GridRule, grid_denominator, holds, level_rule, number_rule, period_codes

Result = TypeVar("Result")

KIND_WORDS = {
    "text": "text",
    "whole": "whole numbers",
    "float": "floats",
    "decimal": "decimals",
    "boolean": "booleans",
    "moment": "dates",
}
_INT64 = np.iinfo(np.int64)
_WITH_NAN = {"float", "decimal", "moment"}  # kinds that have a value for what is missing
_CACHED = 2**16  # entries that are put on their grid together: half a megabyte
_SPELLED_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?\Z")
_SPELLED_INFINITY = re.compile(r"([+-]?)inf(inity)?\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Values:
    """Entries of one kind.

    kind     a key of KIND_WORDS, or "nothing" when every entry is null.
    data     int64, uint64 or objects (whole), floats, objects (decimal), booleans, seconds since 1970 (moment), or
             indices into texts (text).
    null     which entries are missing; their data are meaningless.
    where    which positions of the column these entries fill, as an index: a mask, or `...` for all.
    spelled  text that may stand for a number or a boolean, because its source knows only text (CSV).
    """

    kind: str
    data: npt.NDArray[Any]
    null: Mask
    texts: Sequence[str] = ()
    where: Any = ...
    spelled: bool = False

    def __repr__(self) -> str:
        return f"Values({self.kind})"


# From frames to values.


class Frame:
    """The columns of a pandas, polars or pyarrow frame, or of a dict of sequences, by name."""

    __slots__ = ("_column", "_spelled", "names")

    def __init__(self, source: object, *, spelled: bool = False) -> None:
        self._spelled = spelled
        self._column: Callable[[str], Any]
        if isinstance(source, Mapping):
            self._column, names = source.__getitem__, list(source)
        else:
            complaint = "the frame cannot be read; its columns must have distinct names"
            frame: Any = quietly(lambda: nw.from_native(source, eager_only=True, pass_through=True), complaint)
            if not isinstance(frame, nw.DataFrame):
                raise ParameterError(
                    "a table is a pandas, polars or pyarrow frame, a dict of sequences, or the path of a .parquet or "
                    f".csv file, found a {type(source).__name__}; collect a lazy frame first"
                )
            self._column, names = frame.get_column, frame.columns
        self.names = tuple(name for name in names if isinstance(name, str))

    def __repr__(self) -> str:
        return "Frame"

    @staticmethod
    def require(found: Sequence[str], names: Sequence[str]) -> None:
        """Every one of these columns is there, once."""
        there = Counter(found)
        for name in names:
            if there[name] > 1:
                raise SchemaError(f"column {name!r} is there {there[name]} times")
            if not there[name]:
                raise SchemaError(f"there is no column {name!r} in the data.{near_misses(name, found)}")

    def __getitem__(self, name: str) -> list[Values]:
        return read(self._column(name), name, spelled=self._spelled)


def read(column: Any, name: str, *, spelled: bool = False) -> list[Values]:
    """The entries of a series, an array or a sequence, as runs of one kind; refusals name the column."""
    try:
        return quietly(lambda: _read(column, spelled), "it cannot be read")
    except SchemaError as error:
        complaint = str(error)
    raise SchemaError(f"column {name!r}: {complaint}")


def _read(column: Any, spelled: bool) -> list[Values]:
    series = nw.from_native(column, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        if not isinstance(column, np.ndarray) or column.dtype.kind not in "biufM":
            return _read_objects(column.tolist() if isinstance(column, np.ndarray) else list(column))
        if column.ndim != 1:
            raise SchemaError(f"it must have one dimension, found {column.ndim}")
        if column.dtype.kind == "M":
            return [Values("moment", calendar.instants(column), np.isnat(column))]
        return [_typed(np.ma.getdata(column), np.ma.getmaskarray(column))]
    dtype, null = series.dtype, np.asarray(series.is_null().to_numpy(), dtype=bool)
    if null.all():
        return [_nothing(len(null))]
    if dtype == nw.Boolean:
        return [_typed(np.asarray(series.fill_null(False).to_numpy(), dtype=bool), null)]
    if dtype in (nw.Int128, nw.UInt128, nw.Decimal, nw.Object):
        return _read_objects(series.to_list())
    if dtype.is_numeric():
        return [_typed(series.fill_null(0 if dtype.is_integer() else math.nan).to_numpy(), null)]
    if dtype in (nw.Date, nw.Datetime):
        return [Values("moment", _instants(series, dtype), null)]
    if dtype in (nw.Categorical, nw.Enum):
        if any(not isinstance(level, str) for level in series.drop_nulls().unique().to_list()):
            return _read_objects(series.to_list())
        series, dtype = series.cast(nw.String), nw.String()
    if dtype == nw.String:
        texts = series.drop_nulls().unique().to_list()
        places = series.replace_strict(texts, list(range(len(texts))), default=-1, return_dtype=nw.Int64)
        return [Values("text", np.asarray(places.to_numpy(), dtype=np.int64), null, texts, spelled=spelled)]
    raise SchemaError(f"entries of type {dtype} are not supported; turn them into whole numbers or text")


def _instants(series: Any, dtype: Any) -> Codes:
    """Seconds since 1970 of a series of dates or datetimes, in UTC if they have a time zone; rounded down."""
    unit = "ms" if dtype == nw.Date or dtype.time_unit == "s" else dtype.time_unit
    counted = series.dt.timestamp(unit).fill_null(0).to_numpy()
    return np.asarray(counted, dtype=np.int64) // {"ms": 10**3, "us": 10**6, "ns": 10**9}[unit]


def _typed(data: npt.NDArray[Any], null: Mask) -> Values:
    if data.dtype.kind == "b":
        return Values("boolean", data, null)
    if data.dtype.kind == "f":
        return Values("float", data, null | np.isnan(data))
    return Values("whole", data if data.dtype == np.uint64 else data.astype(np.int64), null)


def _nothing(size: int, where: Any = ...) -> Values:
    return Values("nothing", np.zeros(size, dtype=np.int64), np.ones(size, dtype=bool), where=where)


def _read_objects(entries: Sequence[Any]) -> list[Values]:
    """Entries of a Python sequence, split by kind; kinds that do not go together are refused."""
    by_type = {type_: _kind(entry) for type_, entry in {type(entry): entry for entry in entries}.items()}
    found = [by_type[type(entry)] for entry in entries]
    if _WITH_NAN & set(found):
        found = [
            "nothing" if kind in _WITH_NAN and _is_nan(entry) else kind
            for kind, entry in zip(found, entries, strict=True)
        ]
    kinds, all_kinds = np.array(found, dtype=object), set(found)
    present = all_kinds - {"nothing"}
    if len(present) > 1 and not present <= {"whole", "float", "decimal"}:
        raise SchemaError(f"it must be of one kind, found {', '.join(sorted(KIND_WORDS[kind] for kind in present))}")
    if not present:
        return [_nothing(len(entries))]
    parts = []
    for kind in sorted(all_kinds):
        where = np.asarray(kinds == kind, dtype=bool)
        chosen = entries if len(all_kinds) == 1 else [entry for entry, here in zip(entries, where, strict=True) if here]
        places = {text: place for place, text in enumerate(dict.fromkeys(chosen))} if kind == "text" else {}
        if kind == "nothing":
            parts.append(_nothing(len(chosen), where))
            continue
        if kind == "text":
            data = np.array([places[entry] for entry in chosen], dtype=np.int64)
        elif kind == "whole" and all(_INT64.min <= entry <= _INT64.max for entry in chosen):
            data = np.array([int(entry) for entry in chosen], dtype=np.int64)
        elif kind == "moment":
            data = np.array([calendar.seconds_of(entry) for entry in chosen], dtype=np.int64)
        elif kind in ("boolean", "float"):
            data = np.array(chosen, dtype=bool if kind == "boolean" else np.float64)
        else:
            data = objects(chosen)
        parts.append(Values(kind, data, np.zeros(len(chosen), dtype=bool), list(places), where))
    return parts


def _kind(entry: Any) -> str:
    """The kind of an entry, which its type decides; a NaN is a number here."""
    if entry is None or type(entry).__name__ in ("NAType", "NaTType"):
        return "nothing"
    kind = kind_of(entry)
    if kind is None:
        raise SchemaError(f"it must hold numbers, text, dates, booleans or nulls, found {type(entry).__name__}")
    return kind


def _is_nan(entry: Any) -> bool:
    return bool(getattr(entry, "is_nan", lambda: entry != entry)())


def objects(entries: Sequence[Any]) -> npt.NDArray[Any]:
    """Entries of any kind as an array of Python objects."""
    made = np.empty(len(entries), dtype=object)
    made[:] = entries
    return made


# From values to codes.


def encode(parts: Sequence[Values], column: Column, name: str) -> Codes:
    """The codes of a column's entries; SchemaError if an entry does not fit the declaration."""
    require_held(column, name)
    codes = np.zeros(sum(len(part.data) for part in parts), dtype=np.int64)
    for here, part in ((where, piece) for each in parts for where, piece in _pieces(each)):
        null = part.null
        if part.kind != "nothing" and column.categorical:
            codes[here] = _level_codes(part, column, name)
        elif part.kind != "nothing" and column.calendar:
            codes[here] = period_codes(column, _column_instants(part, name))
        elif part.kind != "nothing":
            codes[here], null = _number_codes(part, column, name)  # type: ignore[arg-type]
        if null.any():
            if column.missing_code is None:
                refuse_missing(column, name)
            codes[here] = np.where(null, column.missing_code, codes[here])
    return codes


def _pieces(part: Values) -> Iterator[tuple[Any, Values]]:
    """The entries, some at a time with their places, so that what is computed on the way stays in the cache: pages for
    arrays as long as the column would cost more than the arithmetic."""
    if part.where is not ... or part.kind in ("text", "nothing"):  # few, or known by their distinct texts
        yield part.where, part
        return
    for start in range(0, len(part.data), _CACHED):
        here = slice(start, start + _CACHED)
        yield here, replace(part, data=part.data[here], null=part.null[here])


def refuse_missing(column: Column, name: str) -> NoReturn:
    """A column has missing values, and its declaration takes none."""
    how = 'missing="..."' if column.categorical else "missing=True"
    raise SchemaError(f"column {name!r} has missing values; {how} in its declaration would take them")


def encode_any(parts: Sequence[Values], column: Column, name: str) -> tuple[Codes, list[str | None]]:
    """The codes of a column's entries; and what they stand for, if it is a Text."""
    return encode_texts(parts, column, name) if column.free else (encode(parts, column, name), [])


def require_held(column: Column, name: str) -> None:
    """Refuse a column whose values a table does not hold."""
    if not column.keyed:
        raise SchemaError(f"column {name!r} is declared {column!r}, which a table does not hold")


def encode_texts(parts: Sequence[Values], column: Text, name: str) -> tuple[Codes, list[str | None]]:
    """The codes of texts that nobody listed, and what they stand for; 0 is nothing there. The codes are private."""
    codes, places = np.zeros(sum(len(part.data) for part in parts), dtype=np.int64), dict[str, int]()
    for part in parts:
        if part.null.any() and not column.missing:
            refuse_missing(column, name)
        if part.kind == "nothing":
            continue
        if part.kind != "text":
            raise SchemaError(f"column {name!r} holds {KIND_WORDS[part.kind]}, but text is declared")
        # What UTF-8 cannot spell could not be stored in a ledger.
        cut = [text[: column.length].encode("utf-8", "replace").decode("utf-8") for text in part.texts]
        known = np.array([*(places.setdefault(text, len(places) + 1) for text in cut), 0], dtype=np.int64)
        codes[part.where] = np.where(part.null, 0, known[part.data])
    return codes, [None, *places]


def _level_codes(values: Values, column: Category, name: str) -> Codes:
    if not (holds(column, values.kind) or values.spelled):
        levels = ", ".join(sorted({KIND_WORDS[kind] for kind, _ in column.lookup()}))
        raise SchemaError(f"column {name!r} holds {KIND_WORDS[values.kind]}, but its declared levels are {levels}")
    if values.kind == "text":
        table = level_rule(column, "text").codes
        spelled = column.lookup() if values.spelled else None
        places = [table.get(text, -1) if spelled is None else _spelled_level(text, spelled) for text in values.texts]
        codes = np.asarray(np.array([*places, -1], dtype=np.int64)[values.data])
    else:
        codes = _plain_level_codes(values, level_rule(column, values.kind).codes)
    unknown = (codes < 0) & ~values.null
    if not unknown.any():
        return codes
    if column.other_code is None:
        raise UndeclaredLevels(name)
    return np.where(unknown, column.other_code, codes)


def _spelled_level(text: str, lookup: Mapping[tuple[str, Any], int]) -> int:
    """The code of text that may stand for a number or a boolean; -1 if there is none."""
    keys, trimmed = matches(text), text.strip()
    if trimmed.lower() in ("true", "false"):
        keys += matches(trimmed.lower() == "true")
    elif len(trimmed) < 4000 and _SPELLED_NUMBER.match(trimmed):
        keys += matches(Fraction(trimmed))
    return next((lookup[key] for key in keys if key in lookup), -1)


def _plain_level_codes(values: Values, table: Mapping[int, int]) -> Codes:
    """Codes of numbers and booleans among whole and boolean levels; -1 where there is none."""
    keys = np.array(sorted(key for key in table if _INT64.min <= key <= _INT64.max), dtype=np.int64)
    own_codes = np.array([table[int(key)] for key in keys], dtype=np.int64)

    def search(whole: Codes) -> Codes:
        if not len(keys):
            return np.full(len(whole), -1, dtype=np.int64)
        place = np.minimum(np.searchsorted(keys, whole), len(keys) - 1)
        return np.where(keys[place] == whole, own_codes[place], -1)

    data = values.data
    if values.kind == "float":
        whole = np.isfinite(data) & (np.floor(data) == data) & (np.abs(data) <= 2.0**53)
        return np.where(whole, search(np.where(whole, data, 0).astype(np.int64)), -1)
    if data.dtype == np.uint64 and (data > np.uint64(_INT64.max)).any():
        data = data.astype(object)
    if data.dtype == object:
        return np.array([table.get(entry, -1) for entry in data], dtype=np.int64)
    return search(np.asarray(data, dtype=np.int64))


def _column_instants(values: Values, name: str) -> Codes:
    """The instants that the entries of a date column stand for; anything where there is none."""
    if values.kind == "text":
        spelled = [calendar.seconds_of(text) for text in values.texts]
        if None in spelled:
            raise SchemaError(
                f"column {name!r} holds text that is not a date such as 1976-02-29 or 1976-02-29 23:00:00"
            )
        return np.asarray(np.array([*spelled, 0], dtype=np.int64)[values.data])
    if values.kind != "moment":
        raise SchemaError(f"column {name!r} holds {KIND_WORDS[values.kind]}, but dates are declared")
    return np.asarray(values.data)


def _number_codes(values: Values, column: Number | AnyNumber, name: str) -> tuple[Codes, Mask]:
    """Codes and what is missing (text may spell NaN)."""
    if values.kind == "moment" or (values.kind == "text" and not values.spelled):
        raise SchemaError(f"column {name!r} holds {KIND_WORDS[values.kind]}, but a number is declared")
    if values.kind == "text":
        missing = np.array([*(text.strip().lower() == "nan" for text in values.texts), False])
        spelled = [_spelled_number(text) for text in values.texts]
        if any(number is None for number in spelled):
            raise SchemaError(f"column {name!r} holds text that is not a number")
        codes, _ = _number_codes(Values("decimal", objects([*spelled, Decimal(0)]), missing), column, name)
        return codes[values.data], values.null | missing[values.data]
    if not column.bounded:
        large = values.data.dtype == object
        near = [_nearest_float(entry) for entry in values.data] if large else np.where(values.null, 0, values.data)
        return column.codes(np.asarray(near, dtype=np.float64)), values.null
    if values.kind == "float":
        return _float_codes(np.where(values.null, 0, values.data), column), values.null
    if values.data.dtype == object:
        entries = zip(values.data, values.null, strict=True)
        scale = grid_denominator(column)
        rule = number_rule(column, Fraction(1, scale))
        exact = [column.steps if null else _exact_code(entry, rule, scale) for entry, null in entries]
        return np.array(exact, dtype=np.int64), values.null
    return number_rule(column).codes(values.data), values.null


def _exact_code(value: Any, rule: GridRule, scale: int) -> int:
    """The code of one exact number; decimals may be infinite."""
    if isinstance(value, Decimal) and value.is_infinite():
        return rule.most if value > 0 else 0
    return rule.code(math.floor(Fraction(value) * scale))


def _float_codes(data: npt.NDArray[Any], column: Number) -> Codes:
    values, precision = data.astype(np.float64), float(np.finfo(data.dtype).eps)
    low, high, step = float(column.low), float(column.high), float(column.step)
    clipped = np.clip(values, low, high)
    quotient = (clipped - low) / step
    nearest = np.rint(quotient)
    slack = 1e-9 + 4 * precision * (np.abs(clipped) + abs(low)) / step
    codes = np.where(np.abs(quotient - nearest) <= slack, nearest, np.floor(quotient))
    codes = np.clip(codes, 0, float(min(column.steps, 2**62))).astype(np.int64).clip(0, column.steps)
    whole = (np.floor(values) == values) & (np.abs(values) <= 2.0**53)
    if whole.any():
        codes[whole] = number_rule(column).codes(values[whole].astype(np.int64))
    return codes


def _nearest_float(value: Any) -> float:
    """The nearest float; what is too large for one becomes infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _spelled_number(text: str) -> Decimal | None:
    trimmed = text.strip()
    if trimmed.lower() == "nan":
        return Decimal(0)
    return Decimal(trimmed) if _SPELLED_NUMBER.match(trimmed) or _SPELLED_INFINITY.match(trimmed) else None


# From rows of features to integer vectors.


def float_rows(source: Any, *, dimension: int, block: int) -> tuple[int, Iterator[Floats]]:
    """How many rows a numeric matrix or frame has, and they as floats, at most `block` of them at a time."""
    complaint = "the features cannot be read as numbers"
    frame = nw.from_native(source, eager_only=True, pass_through=True)
    is_frame = isinstance(frame, nw.DataFrame)
    rows: Any = frame if is_frame else quietly(lambda: np.asarray(source), complaint)
    if not is_frame and rows.dtype.kind not in "biuf":
        raise SchemaError("the features must be numbers")
    if len(rows.shape) != 2 or rows.shape[1] != dimension:
        raise ParameterError(f"the features must have {dimension} columns, found the shape {('n', *rows.shape[1:])}")

    def floats(part: Any) -> Floats:
        if not is_frame:
            return np.asarray(part, dtype=np.float64)
        for name, dtype in part.schema.items():
            if not (dtype.is_numeric() or dtype == nw.Boolean):
                raise SchemaError(f"the features must be numbers, and column {str(name)!r} is not")
        columns = [part.get_column(name).cast(nw.Float64).fill_null(math.nan).to_numpy() for name in part.columns]
        return np.column_stack(columns).astype(np.float64)

    parts = (rows[start : start + block] for start in range(0, rows.shape[0], block))
    return rows.shape[0], (quietly(functools.partial(floats, part), complaint) for part in parts)


def grid_rows(features: Floats, vector: Vector) -> Ints:
    """Rows of floats as rows of integers of bounded length; NaN and infinities are refused."""
    units = np.empty(features.shape, dtype=np.int64)
    fill_grid(features, vector, units)
    return units


def fill_grid(features: Floats, vector: Vector, out: npt.NDArray[Any]) -> None:
    """The same, written into an array whose integers may be narrower."""
    step = max(1, _CACHED // vector.dimension)
    for start in range(0, len(features), step):
        part = slice(start, start + step)
        _grid_block(np.ascontiguousarray(features[part].T), vector, out[part])


def _grid_block(columns: Floats, vector: Vector, out: npt.NDArray[Any]) -> None:
    """So few rows that all steps find them in the cache, as columns. A row's squares are added one column after the
    other, so that its integers do not depend on the rows beside it."""
    scaled = np.abs(columns)
    largest = scaled.max(axis=0)
    if not np.isfinite(largest).all():
        _refuse_not_finite(largest)
    # Rows longer than norm are scaled to about norm. Dividing by the largest entry first avoids overflow.
    norm, squares = float(vector.norm), np.zeros(columns.shape[1])
    largest[largest == 0] = 1.0
    np.divide(columns, largest, out=scaled)
    for squared in scaled * scaled:
        squares += squared
    root = np.sqrt(squares)
    with np.errstate(over="ignore"):  # a row of tiny numbers: infinity is the right answer
        too_long = root > norm / largest
    scaled *= norm / np.where(too_long, root, 1.0)
    np.copyto(scaled, columns, where=~too_long)
    limit = math.isqrt(vector.bound_squared)
    scaled /= float(vector.step)
    np.clip(np.trunc(scaled, out=scaled), -limit, limit, out=scaled)
    out[:] = scaled.T
    # A sum of squares in floats is off by less than 2^-20 of itself, so all rows that are too long are among those that
    # are tested in exact integers.
    near = np.flatnonzero(np.einsum("ij,ij->j", scaled, scaled) > vector.bound_squared * (1 - 2.0**-20))
    if len(near):
        out[near] = shrunk(out[near].astype(np.int64), vector.bound_squared)


def _refuse_not_finite(values: Floats) -> NoReturn:
    if np.isnan(values).any():
        advice = "fill or drop missing values first, by a rule that looks at one row only"
        raise SchemaError(f"the features hold NaN; {advice}")
    raise SchemaError("the features hold infinite numbers")


def shrunk(units: Ints, bound_squared: int) -> Ints:
    """Rows whose squares sum to at most the bound: the largest coordinate of a longer row loses a unit at a time."""
    long = np.flatnonzero(_squares(units) > bound_squared)
    while len(long):
        widest = np.argmax(np.abs(units[long]), axis=1)
        units[long, widest] -= np.sign(units[long, widest])
        long = long[_squares(units[long]) > bound_squared]
    return units


def _squares(units: Ints) -> Ints:
    """Exact: a Vector's dimension times its bound is below 2^62."""
    return np.asarray(np.einsum("ij,ij->i", units, units))
