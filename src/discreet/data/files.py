"""Parquet and CSV files as streams of frames, through duckdb; the only module that reads rows with duckdb
and pyarrow.

Only the columns that are asked for are read, in batches, so a file may be larger than memory. duckdb may put
intermediate data on disk: each scan has its own directory for that, readable by its owner only and removed when the
scan ends. Messages of duckdb can quote the file's content, so of its errors only the type is kept.
"""

from __future__ import annotations

import csv
import functools
import importlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.core import DiscreetError, ParameterError, SchemaError, exact, quietly

_LONGEST_LINE = 2**21  # bytes; duckdb's limit
_CHUNK = 2**24  # bytes of a file that are looked at at a time


@dataclass(frozen=True, slots=True)
class Scan:
    """How a file is read: all public."""

    path: Path
    batch_rows: int = 2**18
    memory_limit: str = "1GB"
    threads: int = 2

    def __post_init__(self) -> None:
        if self.path.suffix.lower() not in (".parquet", ".csv"):
            raise ParameterError(f"a file of rows ends in .parquet or .csv, found {self.path.name!r}")
        if not os.path.isfile(self.path):  # False of a name that no file can have, too
            raise ParameterError(f"there is no file {str(self.path)!r}")
        exact.whole(batch_rows=self.batch_rows)
        exact.whole(threads=self.threads)
        exact.text(memory_limit=self.memory_limit)

    @property
    def is_csv(self) -> bool:
        return self.path.suffix.lower() == ".csv"

    @property
    def _complaint(self) -> str:
        return f"{self.path.name!r} cannot be read as {'CSV' if self.is_csv else 'Parquet'}"

    def names(self) -> tuple[str, ...]:
        """The names of the file's columns."""
        if self.is_csv:
            return quietly(lambda: _header(self.path), self._complaint)
        with _connect(self) as connection:
            rows = quietly(lambda: connection.sql(f"SELECT * FROM {self._relation()} LIMIT 0"), self._complaint)
            return tuple(rows.columns)

    def frames(self, columns: Sequence[str]) -> Iterator[Any]:
        """The rows as pyarrow tables of at most batch_rows rows with these columns, in the order of the file."""
        arrow, complaint = library("pyarrow"), self._complaint
        wanted = [_quoted(name) for name in columns]
        if self.is_csv:  # the columns of a CSV file are known to duckdb by their places
            quietly(lambda: _check_lines(self.path), complaint)
            places = {_quoted(name): place for place, name in reversed(list(enumerate(self.names())))}
            wanted = [f"c{places[name]} AS {name}" for name in wanted]
        with tempfile.TemporaryDirectory(prefix="discreet-") as private, _connect(self, private) as connection:
            query = f"SELECT {', '.join(wanted)} FROM {self._relation()}"
            reader = quietly(lambda: connection.sql(query).to_arrow_reader(self.batch_rows), complaint)
            while (batch := quietly(lambda: next(reader, None), complaint)) is not None:
                for start in range(0, batch.num_rows, self.batch_rows):
                    yield arrow.Table.from_batches([batch.slice(start, self.batch_rows)])

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """A connection of duckdb with the limits of this scan; of its errors only the type is kept."""
        failure = ""
        with tempfile.TemporaryDirectory(prefix="discreet-") as private, _connect(self, private) as connection:
            try:
                yield connection
                return
            except DiscreetError:
                raise
            except Exception as error:
                failure = type(error).__name__
        raise SchemaError(f"{self._complaint} ({failure})")

    def _relation(self) -> str:
        path = "'" + pattern_of(self.path).replace("'", "''") + "'"
        if not self.is_csv:
            return f"read_parquet({path}, hive_partitioning=false)"  # a folder's name is no column
        columns = ", ".join(f"c{place}: 'VARCHAR'" for place in range(len(self.names())))
        return (
            f"read_csv({path}, columns={{{columns}}}, auto_detect=false, header=true, "
            "delim=',', quote='\"', escape='\"', nullstr='', strict_mode=true, hive_partitioning=false)"
        )


def pattern_of(path: Path) -> str:
    """A path as duckdb reads it: a pattern that matches only itself."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in str(path))


def resolved(path: str | os.PathLike[str]) -> Path:
    """Where a file of rows is, links followed."""
    try:
        return Path(path).resolve()
    except (OSError, ValueError, RuntimeError):  # a name that no file can have, or links that lead around in a circle
        raise ParameterError(f"there is no file {os.fspath(path)!a}") from None


def library(name: str, extra: str = "sql") -> Any:
    """An optional library; if it is not there, the extra that has it is named."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ParameterError(f"reading these rows needs {name}: pip install discreet[{extra}]") from None


def _connect(scan: Scan, private: str = "") -> Any:
    off = ("python_enable_replacements", "autoinstall_known_extensions", "autoload_known_extensions")
    config = {"memory_limit": scan.memory_limit, "threads": scan.threads, "temp_directory": private}
    config |= {"preserve_insertion_order": True, **dict.fromkeys(off, False)}
    duckdb = library("duckdb")
    complaint = f"duckdb does not start with memory_limit={scan.memory_limit!r} and threads={scan.threads!r}"
    return quietly(lambda: duckdb.connect(":memory:", config=config), complaint, kind=ParameterError)


def parquet_types(path: Path) -> dict[str, str]:
    """The kind of each column of a Parquet file, by its declared type; no value and no statistics are looked at."""
    parquet = library("pyarrow.parquet")
    schema = quietly(lambda: parquet.read_schema(path), f"{path.name!r} cannot be read as Parquet")
    types = library("pyarrow").types
    numbers = [("number", types.is_floating), ("number", types.is_decimal)]
    dates = [("date", types.is_date), ("timestamp", types.is_timestamp)]
    kinds = [("truth", types.is_boolean), ("whole", types.is_integer), *numbers, *dates]
    return {field.name: next((kind for kind, holds in kinds if holds(field.type)), "text") for field in schema}


def write_parquet(frame: Any, file: Any) -> None:
    """Write a pyarrow table to an open file."""
    library("pyarrow.parquet").write_table(frame, file)


def table_of_batches(batches: Sequence[Any]) -> Any:
    """Pyarrow record batches as one table."""
    return library("pyarrow").Table.from_batches(batches)


def joined_tables(tables: Sequence[Any]) -> Any:
    """Pyarrow tables of the same columns, one after the other."""
    return library("pyarrow").concat_tables(tables)


def file_stamp(path: Path) -> tuple[int, int, int] | None:
    """Size of a file, and when its content and its entry were last changed; None if there is no such file.

    Whoever puts another file in its place may set its size and the time of its content, but not that of its entry.
    """
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def row_groups(path: Path) -> tuple[dict[str, Any] | None, tuple[str, ...], list[int]]:
    """The types of a Parquet file's columns by name, None if a name is there twice; the names; how many rows each of
    its row groups has."""
    parquet = library("pyarrow.parquet")

    def read() -> tuple[dict[str, Any] | None, tuple[str, ...], list[int]]:
        with parquet.ParquetFile(path) as file:
            groups = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
            types, names = {field.name: field.type for field in file.schema_arrow}, tuple(file.schema_arrow.names)
            return types if len(types) == len(names) else None, names, groups

    return quietly(read, f"{path.name!r} cannot be read as Parquet")


def read_row_groups(path: Path, groups: Sequence[int] | None, columns: Sequence[str], rows: int) -> Iterator[Any]:
    """These columns of some, or all, row groups of a Parquet file, as pyarrow tables of at most so many rows."""
    parquet, arrow, complaint = (
        library("pyarrow.parquet"),
        library("pyarrow"),
        f"{path.name!r} cannot be read as Parquet",
    )
    with quietly(lambda: parquet.ParquetFile(path), complaint) as file:
        chosen = [*range(file.num_row_groups)] if groups is None else [*groups]
        batches = quietly(lambda: file.iter_batches(rows, chosen, list(columns)), complaint)
        while (batch := quietly(lambda: next(batches, None), complaint)) is not None:
            table = arrow.Table.from_batches([batch])
            for place, field in enumerate(table.schema):
                if arrow.types.is_string_view(field.type):
                    table = table.set_column(place, field.name, table.column(place).cast(arrow.string()))
            yield table


def arrow_table(columns: Mapping[str, Any]) -> Any:
    """Arrays, and lists of texts or bytes, by name, as a pyarrow table."""
    return library("pyarrow").table(dict(columns))


def text_array(texts: Sequence[str | None]) -> Any:
    """Texts as pyarrow's, also if all are missing."""
    arrow = library("pyarrow")
    return arrow.array(texts, arrow.string())


def _header(path: Path) -> tuple[str, ...]:
    with path.open("rb") as file:  # as bytes: only the header is decoded, whatever stands below it
        lines = iter(functools.partial(file.readline, _LONGEST_LINE + 1), b"")
        names = tuple(next(csv.reader((line.decode("utf-8-sig") for line in lines), strict=True), ()))
    if not names:
        raise SchemaError(f"{path.name!r} has no header line")
    if len(names) == 1 and (sign := next((each for each in ";\t|" if each in names[0]), "")):
        raise SchemaError(f"the columns of {path.name!r} seem to be separated by {sign!r}: separate them by commas")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise SchemaError(f"{path.name!r} names the column {twice[0]!r} twice: give every column a name of its own")
    return names


def _check_lines(path: Path) -> None:
    """Refuse a line that is too long. duckdb refuses most of them itself, but passes over a last line of more than 32
    MB without a word."""
    behind = 0  # bytes since the last end of a line
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            signs = np.frombuffer(chunk, dtype=np.uint8)
            ends = np.flatnonzero((signs == ord("\n")) | (signs == ord("\r")))
            gaps = np.diff(ends, prepend=-behind - 1, append=len(chunk))
            if gaps.max() - 1 > _LONGEST_LINE:
                raise SchemaError(f"{path.name!r} has a line of more than {_LONGEST_LINE:,} bytes")
            behind = int(gaps[-1]) - 1


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
