"""Counts, histograms and sums of Parquet files by GROUP BY in DuckDB, over the same codes as row by row.

A query that is a `Tally` of columns whose types SQL encodes exactly is one statement over the files: several times
faster than to bring every row here. Columns of floats and of nanoseconds, and every other function of the rows, are
read row by row as ever. Of staged codes (`data.files_table`) every column is such a one: SQL has nothing to encode.
Which of the two it is depends on the declaration, the types in the files and the query, all of them public; the
integers are the same. All pushed columns are encoded once by DuckDB when the table is made: what it cannot read, or
reads otherwise, is said then.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.core import Codes, Unproven
from discreet.data.files import Scan, pattern_of, row_groups
from discreet.data.keys import KEPT, rows_of_keys
from discreet.data.rows import Batch
from discreet.data.tally import CodeOf, Run, Tallied, Tally, tallies_of


@dataclass(frozen=True, slots=True)
class PushDown:
    """Parquet files whose columns of exactly encoded types are read as codes by DuckDB."""

    scan: Scan
    coded: Any
    several: bool

    @staticmethod
    def of(
        scan: Scan, files: Sequence[Path], domain: Any, staged: Mapping[str, str] | None, *, several: bool
    ) -> PushDown | None:
        """Of these files; staged: in which of their columns the codes are; several: persons may have several rows. None
        without sqlglot, which writes the statements, or if the files have columns of different types."""
        if importlib.util.find_spec("sqlglot") is None:
            return None
        from discreet.data.sql_engines import coded_files

        if staged is None:
            types = [row_groups(path)[0] or {} for path in files]
            if any([each.get(name) for each in types] != [types[0].get(name)] * len(files) for name in domain.names):
                return None
        with scan.opened() as connection:
            return PushDown(scan, coded_files(connection, [*map(pattern_of, files)], domain, staged), several)

    def sum(self, query: Any) -> Any:
        """The sum of a query; None if it is to be taken row by row."""
        domain = self.coded.domain
        tallies = tallies_of(query, domain, several=self.several)
        if tallies is None:
            return None
        names = tuple(dict.fromkeys(name for tally in tallies for name in tally.columns()))
        if not set(names) <= set(self.coded.sources):
            return None
        if len(tallies) > 1:
            found = None if query.weighted is None else self._distinct(names)
            return None if found is None else query.weighted(*found)
        try:
            sql = self.coded.tally(tallies[0])
        except Unproven:
            return None
        with self._opened() as run:
            return query.of_tallies(domain, [tallied(run, tallies[0], sql)])

    def distinct(self) -> tuple[Batch, Codes] | None:
        """The distinct rows of the listed columns with their counts; None if they are not few."""
        return self._distinct(self.coded.domain.digits)

    @property
    def distinct_here(self) -> bool:
        """Whether all listed columns are encoded by DuckDB."""
        return set(self.coded.domain.digits) <= set(self.coded.sources)

    def _distinct(self, names: Sequence[str]) -> tuple[Batch, Codes] | None:
        with self._opened() as run:
            return distinct_rows(run, self.coded, names)

    @contextmanager
    def _opened(self) -> Iterator[Run]:
        from discreet.data.sql_engines import duckdb_columns

        with self.scan.opened() as connection:
            yield functools.partial(duckdb_columns, connection)


def tallied(run: Run, tally: Tally, sql: str) -> Tallied:
    """What a tally's statement finds."""
    columns = run(sql, integers=tally.shape is not None and not tally.amounts)
    if tally.shape is None:
        return Tallied(columns[: len(tally.axes)], columns[len(tally.axes)])
    keys: Sequence[Any] = ()
    if tally.axes:
        flat, *columns = columns
        keys = np.unravel_index(np.asarray(flat, dtype=np.int64), tally.shape)
    counts, *sums = columns
    return Tallied(keys, counts, [[0 if each is None else int(each) for each in line] for line in sums])


def distinct_rows(run: Run, coded: Any, names: Sequence[str] | None = None) -> tuple[Batch, Codes] | None:
    """The distinct rows of these columns, or of all that are listed, and how many rows are equal to each.

    None if they are half of the rows or more, or more than KEPT numbers: then nothing is kept of them.
    """
    names = (coded.domain if names is None else coded.domain.project(names)).digits if names != () else ()
    if not names:
        return None
    domain, most = coded.domain, KEPT // (len(names) + 1)
    shape = tuple(domain.column(name).size for name in names)
    keys, counts = run(coded.tally(Tally(axes=tuple(map(CodeOf, names)), shape=shape), limit=most + 1), integers=True)
    rows = np.asarray(counts, dtype=np.int64)
    if len(keys) > most or 2 * len(keys) >= rows.sum():
        return None
    return rows_of_keys(domain, names, np.asarray(keys, dtype=np.int64)), rows
