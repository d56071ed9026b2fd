"""A caller's columns as values of one kind: the door for pandas, polars, pyarrow, arrays and lists.

Nothing is interpreted here; `encoding` turns the values into codes. Only the columns that are asked for are touched. A
message names the column and the kind of trouble, never a value and never a row, and no exception of a
foreign library is chained to ours, because its text may quote a value.
"""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
import numpy.typing as npt

from discreet.data.domain import near_misses
from discreet.errors import DiscreetError, ParameterError, SchemaError

Result = TypeVar("Result")

KIND_WORDS = {
    "text": "text",
    "whole": "whole numbers",
    "float": "floats",
    "decimal": "decimals",
    "boolean": "booleans",
}
_NUMERIC = {"whole", "float", "decimal"}
_INT64 = np.iinfo(np.int64)


@dataclass(frozen=True, slots=True)
class Values:
    """Entries of one kind.

    kind     a key of KIND_WORDS, or "nothing" when every entry is null.
    data     int64, uint64 or objects (whole), floats, objects (decimal), booleans, or indices into texts (text).
    null     which entries are missing; their data are meaningless.
    where    which positions of the column these entries fill; None means all.
    spelled  text that may stand for a number or a boolean, because its source knows only text (CSV).
    """

    kind: str
    data: npt.NDArray[Any]
    null: npt.NDArray[np.bool_]
    texts: Sequence[str] = ()
    where: npt.NDArray[np.bool_] | None = None
    spelled: bool = False

    def __repr__(self) -> str:
        return f"Values({self.kind})"


def quietly(work: Callable[[], Result], complaint: str, *, kind: type[DiscreetError] = SchemaError) -> Result:
    """Do work in a foreign library; of its failure only the type survives, since the text may quote a row."""
    try:
        return work()
    except DiscreetError:
        raise
    except Exception as error:
        failure = type(error).__name__
    raise kind(f"{complaint} ({failure})")


class Frame:
    """The columns of a pandas, polars or pyarrow frame, or of a dict of sequences, by name."""

    __slots__ = ("_columns", "_frame", "_spelled", "names")

    def __init__(self, source: object, *, spelled: bool = False) -> None:
        self._spelled = spelled
        self._frame: nw.DataFrame[Any] | None = None
        self._columns: Mapping[Any, Any] = {}
        if isinstance(source, Mapping):
            self._columns = source
            self.names = tuple(name for name in source if isinstance(name, str))
        else:
            frame: Any = quietly(
                lambda: nw.from_native(source, eager_only=True, pass_through=True),
                "the frame cannot be read; its columns must have distinct names",
            )
            if not isinstance(frame, nw.DataFrame):
                raise ParameterError(
                    "a table is a pandas, polars or pyarrow frame, a dict of sequences, or the path of a .parquet or "
                    f".csv file, found a {type(source).__name__}; collect a lazy frame first"
                )
            self._frame = frame
            self.names = tuple(name for name in frame.columns if isinstance(name, str))

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
        column = self._columns[name] if self._frame is None else self._frame.get_column(name)
        return read(column, name, spelled=self._spelled)


def read(column: Any, name: str, *, spelled: bool = False) -> list[Values]:
    """The entries of a series, an array or a sequence, as runs of one kind; refusals name the column."""
    try:
        return quietly(lambda: _read(column, spelled), "it cannot be read")
    except SchemaError as error:
        complaint = str(error)
    raise SchemaError(f"column {name!r}: {complaint}")


def _read(column: Any, spelled: bool) -> list[Values]:
    series = nw.from_native(column, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return _read_series(series, spelled)
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        if column.ndim != 1:
            raise SchemaError(f"it must have one dimension, found {column.ndim}")
        return [_typed(np.ma.getdata(column), np.ma.getmaskarray(column))]
    return _read_objects(column.tolist() if isinstance(column, np.ndarray) else list(column))


def float_rows(source: Any, *, dimension: int, block: int) -> Iterator[npt.NDArray[np.float64]]:
    """The rows of a numeric matrix or frame as floats, at most `block` of them at a time."""
    frame = nw.from_native(source, eager_only=True, pass_through=True)
    is_frame = isinstance(frame, nw.DataFrame)
    rows: Any = frame if is_frame else quietly(lambda: _matrix(source), "the features cannot be read as numbers")
    if len(rows.shape) != 2 or rows.shape[1] != dimension:
        raise ParameterError(f"the features must have {dimension} columns, found the shape {('n', *rows.shape[1:])}")
    for start in range(0, rows.shape[0], block):
        part = rows[start : start + block]
        yield quietly(lambda part=part: _floats(part), "the features cannot be read as numbers")  # type: ignore[misc]


def _matrix(source: Any) -> npt.NDArray[Any]:
    matrix = np.asarray(source)
    if matrix.dtype.kind not in "biuf":
        raise SchemaError("the features must be numbers")
    return matrix


def _floats(rows: Any) -> npt.NDArray[np.float64]:
    if isinstance(rows, np.ndarray):
        return rows.astype(np.float64)
    for name, dtype in rows.schema.items():
        if not (dtype.is_numeric() or dtype == nw.Boolean):
            raise SchemaError(f"the features must be numbers, and column {str(name)!r} is not")
    columns = [rows.get_column(name).cast(nw.Float64).fill_null(math.nan).to_numpy() for name in rows.columns]
    return np.column_stack(columns).astype(np.float64)


def _read_series(series: nw.Series[Any], spelled: bool) -> list[Values]:
    dtype = series.dtype
    null = np.asarray(series.is_null().to_numpy(), dtype=bool)
    if null.all():
        return [_nothing(len(null))]
    if dtype == nw.Boolean:
        return [_typed(np.asarray(series.fill_null(False).to_numpy(), dtype=bool), null)]
    if dtype in (nw.Int128, nw.UInt128, nw.Decimal, nw.Object):
        return _read_objects(series.to_list())
    if dtype.is_integer():
        return [_typed(series.fill_null(0).to_numpy(), null)]
    if dtype.is_float():
        return [_typed(series.fill_null(math.nan).to_numpy(), null)]
    if dtype in (nw.Categorical, nw.Enum):
        if any(not isinstance(level, str) for level in series.drop_nulls().unique().to_list()):
            return _read_objects(series.to_list())
        return [_read_texts(series.cast(nw.String), null, spelled)]
    if dtype == nw.String:
        return [_read_texts(series, null, spelled)]
    raise SchemaError(f"entries of type {dtype} are not supported; turn them into whole numbers or text")


def _read_texts(series: nw.Series[Any], null: npt.NDArray[np.bool_], spelled: bool) -> Values:
    texts = series.drop_nulls().unique().to_list()
    places = series.replace_strict(texts, list(range(len(texts))), default=-1, return_dtype=nw.Int64)
    return Values("text", np.asarray(places.to_numpy(), dtype=np.int64), null, texts, spelled=spelled)


def _typed(data: npt.NDArray[Any], null: npt.NDArray[np.bool_]) -> Values:
    if data.dtype.kind == "b":
        return Values("boolean", data, null)
    if data.dtype.kind == "f":
        return Values("float", data, null | np.isnan(data))
    if data.dtype == np.uint64:
        return Values("whole", data, null)
    return Values("whole", data.astype(np.int64), null)


def _nothing(size: int) -> Values:
    return Values("nothing", np.zeros(size, dtype=np.int64), np.ones(size, dtype=bool))


def _read_objects(entries: Sequence[Any]) -> list[Values]:
    """Entries of a Python sequence, split by kind; kinds that do not go together are refused."""
    kinds = np.array([_kind(entry) for entry in entries], dtype=object)
    found = {str(kind) for kind in kinds} - {"nothing"}
    if len(found) > 1 and not found <= _NUMERIC:
        raise SchemaError(f"it must be of one kind, found {', '.join(sorted(KIND_WORDS[kind] for kind in found))}")
    if not found:
        return [_nothing(len(entries))]
    parts = []
    for kind in sorted({*found, "nothing"}):
        where = np.asarray(kinds == kind, dtype=bool)
        chosen = [entry for entry, here in zip(entries, where, strict=True) if here]
        part = _nothing(len(chosen)) if kind == "nothing" else _of_kind(kind, chosen)
        parts.append(Values(part.kind, part.data, part.null, part.texts, where=where))
    return parts


def _kind(entry: Any) -> str:
    if (
        entry is None
        or type(entry).__name__ in ("NAType", "NaTType")
        or (isinstance(entry, Decimal) and entry.is_nan())
    ):
        return "nothing"
    if isinstance(entry, (bool, np.bool_)):
        return "boolean"
    if isinstance(entry, str):
        return "text"
    if isinstance(entry, numbers.Integral):
        return "whole"
    if isinstance(entry, (float, np.floating)):
        return "nothing" if math.isnan(entry) else "float"
    if isinstance(entry, (Decimal, Fraction)):
        return "decimal"
    raise SchemaError(f"it must hold numbers, text, booleans or nulls, found {type(entry).__name__}")


def _of_kind(kind: str, entries: list[Any]) -> Values:
    null = np.zeros(len(entries), dtype=bool)
    if kind == "text":
        texts = list(dict.fromkeys(entries))
        places = {text: place for place, text in enumerate(texts)}
        return Values(kind, np.array([places[entry] for entry in entries], dtype=np.int64), null, texts)
    if kind == "whole" and all(_INT64.min <= entry <= _INT64.max for entry in entries):
        return Values(kind, np.array([int(entry) for entry in entries], dtype=np.int64), null)
    if kind in ("boolean", "float"):
        return Values(kind, np.array(entries, dtype=bool if kind == "boolean" else np.float64), null)
    return Values(kind, objects(entries), null)


def objects(entries: Sequence[Any]) -> npt.NDArray[Any]:
    made = np.empty(len(entries), dtype=object)
    made[:] = entries
    return made
