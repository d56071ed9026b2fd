"""Tables of declared columns: rows in memory, and a Parquet file that is read in batches for every sum."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from discreet.core import Codes, LedgerMismatch, Mask, Neighbours, ParameterError, SchemaError, exact
from discreet.data.domain import Domain, flag
from discreet.data.encoding import Frame, encode_any
from discreet.data.files import ROW_NUMBER, Scan, file_stamp, resolved
from discreet.data.ingest import (
    BLOCK,
    FIRST_EDITION,
    EncodedRows,
    HeldRows,
    Ids,
    KeptRows,
    PrivateRows,
    batches_of,
    checked_domain,
    checked_edition,
    checked_rows,
    facts_of,
    identity_of,
    needed,
    partition,
)
from discreet.data.pushdown import PushDown
from discreet.data.rows import PERSONS, Batch, Summand, Summed, Texts

Result = TypeVar("Result")

_BYTES_TO_CHOOSE = 96  # of memory for each row while the rows of a person are ordered


class Table(PrivateRows):
    """Rows in memory: Table(frame, domain, neighbours="replace-one", name="people").

    rows        a pandas, polars or pyarrow frame, a dict of sequences, or the path of a .parquet or .csv file. Only
                declared columns are read. A CSV file is text; numbers and booleans are read from what it spells.
    domain      what may be in each column.
    neighbours  "replace-one" (the number of persons is public) or "add-remove" (it is private).
    unit        the column that names the person, when a person may hold several rows; at most rows_per_unit of them are
                kept, by a choice that depends on that person's rows only.
    size        add-remove: a number of persons that the owner declares, for what needs one. replace-one: checked.
    rehearsal   True: the rows are made up (`discreet.rehearsal`); ledgers of real tables refuse them.
    edition     the owner's public label of these rows. Declare a new one whenever rows are added, removed or corrected:
                a session answers only from releases about the same edition. None: no session answers about the rows.
    """

    __slots__ = ("_codes", "_ids", "_persons", "_rows", "_texts")

    def __init__(
        self,
        rows: object,
        domain: Domain,
        *,
        neighbours: Neighbours | str = "replace-one",
        name: str = "table",
        unit: str | None = None,
        rows_per_unit: int | None = None,
        size: int | None = None,
        rehearsal: bool = False,
        edition: str | None = FIRST_EDITION,
    ) -> None:
        domain, edition = checked_domain(domain), checked_edition(edition)
        self.identity = replace(identity_of(name, neighbours, unit, rows_per_unit), rehearsal=flag(rehearsal=rehearsal))
        self.source = resolved(rows) if isinstance(rows, (str, os.PathLike)) else None
        if rehearsal and self.source is not None:
            raise ParameterError("a rehearsal is on made-up rows, and a file may hold real ones: discreet.rehearsal")
        if self.source is None:
            encoded = EncodedRows.of(Frame(rows), domain, self.identity)
        else:
            encoded = EncodedRows.joined(list(EncodedRows.of_file(Scan(self.source), domain, self.identity)))
        persons = checked_rows(encoded.rows)
        self._persons: Codes | None = None
        self._ids: Ids | None = None
        if encoded.ids is not None:
            kept = KeptRows.of(encoded.ids, encoded.order(self.identity), self.identity.neighbours.rows)
            encoded, persons = encoded.of_rows(kept.places), kept.count
            self._persons, self._ids = kept.persons, kept.ids
        self._codes, self._texts, self._rows = encoded.codes, encoded.texts, encoded.rows
        self.facts = facts_of(domain, self.identity, size=size, persons_found=persons, edition=edition)

    def _held(self) -> HeldRows:
        """For a database, which joins tables by their persons."""
        assert self._persons is not None  # a table of a database has a unit
        assert self._ids is not None
        return HeldRows(self._codes, self._texts, self._persons, self._ids)

    def _batches(self, reading: Callable[[Batch], object]) -> Iterator[Batch]:
        domain, persons, texts = self.facts.domain, self._persons, self._texts
        return batches_of(self._codes, domain, rows=self._rows, block=BLOCK, persons=persons, texts=texts)


class ParquetTable(PrivateRows):
    """The rows of a Parquet file, read again for every sum and never held in memory at once.

    The other arguments are those of Table; the sums are equal to those of Table on the same file, bit for bit.

    batch_rows    how many rows are in memory at a time.
    memory_limit  how much duckdb may use, as duckdb spells it ("1GB"); threads likewise.
    unit_memory   how many bytes choosing the rows of each person may use, beside one bit for each row; less means more
                  passes over the file.

    Counts, histograms and sums of whole numbers, decimals, dates and categories are taken by GROUP BY in duckdb
    (`data.pushdown`); all other functions of the rows, and persons of several rows, are read row by row.

    The file is read once when the table is made, so that errors in its rows are found then. A file that changed
    since is another table: LedgerMismatch, before anything is read from it.
    """

    __slots__ = ("_keep", "_parts", "_push", "_rows", "_scan", "_stamp")
    source: Path

    def __init__(
        self,
        path: str | os.PathLike[str],
        domain: Domain,
        *,
        neighbours: Neighbours | str = "replace-one",
        name: str = "table",
        unit: str | None = None,
        rows_per_unit: int | None = None,
        size: int | None = None,
        edition: str | None = FIRST_EDITION,
        batch_rows: int = 2**18,
        memory_limit: str = "1GB",
        threads: int = 2,
        unit_memory: int = 2**28,
    ) -> None:
        domain, edition = checked_domain(domain), checked_edition(edition)
        self.identity = identity_of(name, neighbours, unit, rows_per_unit)
        self.source = resolved(path)
        self._scan = Scan(self.source, batch_rows, memory_limit, threads)
        if self._scan.is_csv:
            raise ParameterError("a ParquetTable reads a .parquet file; Table reads .csv")
        self._stamp, self._rows = file_stamp(self.source), 0
        self._keep: npt.NDArray[np.uint8] | None = None
        for encoded in EncodedRows.of_file(self._scan, domain, self.identity):
            self._rows = checked_rows(self._rows + encoded.rows)
        persons = self._rows
        if unit is not None:
            self._keep, persons = self._choose(domain, unit_memory=exact.whole(unit_memory=unit_memory))
        self.facts = facts_of(domain, self.identity, size=size, persons_found=persons, edition=edition)
        self._push = PushDown.of(self._scan, domain) if unit is None else None
        self.check_source()

    def exact_sum(self, query: Summand[Summed] | Callable[[Batch], Summed]) -> Summed:
        """The exact sum of a query, or of a bounded integer function of the rows. Not private."""
        pushed: Any = self._pushed(lambda push: push.sum(query))
        return super().exact_sum(query) if pushed is None else pushed

    def exact_distinct(self) -> tuple[Batch, Codes] | None:
        """The distinct rows with their counts, if they are fewer than half (`data.distinct`). Not private."""
        if self._push is None or not self._push.distinct_here:
            return super().exact_distinct()
        return self._pushed(lambda push: push.distinct())

    def _pushed(self, ask: Callable[[PushDown], Result | None]) -> Result | None:
        """What DuckDB finds by itself, if it can (`data.pushdown`)."""
        if self._push is None:
            return None
        self.check_source()
        try:
            return ask(self._push)
        finally:
            self.check_source()

    def check_source(self) -> None:
        """LedgerMismatch if the file changed since this table was made."""
        if file_stamp(self.source) != self._stamp:
            file = f"the file {self.source.name!r}"
            raise LedgerMismatch(f"{file} changed since this table was made: it is another table now")

    def _choose(self, domain: Domain, *, unit_memory: int) -> tuple[npt.NDArray[np.uint8], int]:
        """One bit for each row, set when it is kept, and the number of persons; a part of the persons at a time."""
        if ROW_NUMBER in self._scan.names():
            raise SchemaError(f"a column named {ROW_NUMBER!r} is in the way of numbering the rows; rename it")
        bits, persons = np.zeros(-(-self._rows // 8), dtype=np.uint8), 0
        self._parts = parts = max(1, -(-self._rows * _BYTES_TO_CHOOSE // unit_memory))
        for part in range(parts):
            lines: list[npt.NDArray[np.uint64]] = []  # of this part's rows: two words of the person, order, row number
            for table in self._scan.frames(needed(domain, self.identity), numbered=True):
                frame = Frame(table)
                encoded = EncodedRows.of(frame, domain, self.identity)
                assert encoded.ids is not None
                order, numbers = encoded.order(self.identity), frame[ROW_NUMBER][0].data.astype(np.uint64)
                here = partition(encoded.ids, parts) == part
                lines.append(np.stack([*encoded.ids, order, numbers])[:, here])
            if lines:
                high, low, order, numbers = np.concatenate(lines, axis=1)
                kept = KeptRows.of((high, low), order, self.identity.neighbours.rows)
                rows = numbers[kept.places].astype(np.int64)
                np.bitwise_or.at(bits, rows >> 3, (1 << (rows & 7)).astype(np.uint8))
                persons += kept.count
        return bits, persons

    def _batches(self, reading: Callable[[Batch], object]) -> Iterator[Batch]:
        """The kept rows of the file; of the columns that are read, each is encoded when it is asked for."""
        domain, seen = self.facts.domain, list[str]()
        reading(Batch.empty(domain, seen))
        if PERSONS in seen and self._keep is not None:
            yield from self._whole_persons(tuple(dict.fromkeys(name for name in seen if name != PERSONS)))
            return
        names = tuple(dict.fromkeys(name for name in seen if name != PERSONS))
        # One column at least, to count the rows by.
        for frame, keep, rows in self._frames(names or domain.names[:1]):
            texts: dict[str, Texts] = {}

            def load(
                name: str, frame: Frame = frame, keep: Mask | None = keep, texts: dict[str, Texts] = texts
            ) -> npt.NDArray[Any]:
                codes, texts[name] = encode_any(frame[name], domain[name], name)
                return codes if keep is None else codes[keep]

            yield Batch(domain, rows, load, texts=texts.__getitem__)
        if not self._rows:
            yield Batch.empty(domain)

    def _frames(self, names: Sequence[str]) -> Iterator[tuple[Frame, Mask | None, int]]:
        """These columns of the file, which of its rows are kept, and how many."""
        for table in self._scan.frames(names, numbered=self._keep is not None):
            frame, keep, rows = Frame(table), None, table.num_rows
            if self._keep is not None:
                numbers = frame[ROW_NUMBER][0].data
                keep = np.asarray((self._keep[numbers >> 3] >> (numbers & 7)) & 1, dtype=bool)
                rows = int(keep.sum())
            yield frame, keep, rows

    def _whole_persons(self, names: tuple[str, ...]) -> Iterator[Batch]:
        """The kept rows with these columns, in batches of whole persons: one pass over the file for each."""
        domain, unit = self.facts.domain, self.identity.unit
        assert unit is not None
        read = domain.project(names) if names else domain.project(domain.names[:1])
        for part in range(self._parts):
            found = [EncodedRows.of(Frame({each: [] for each in needed(read, self.identity)}), read, self.identity)]
            for frame, keep, _ in self._frames(needed(read, self.identity)):
                encoded = EncodedRows.of(frame, read, self.identity)
                assert encoded.ids is not None
                found.append(encoded.of_rows(np.flatnonzero(keep & (partition(encoded.ids, self._parts) == part))))
            rows = EncodedRows.joined(found)
            assert rows.ids is not None
            kept = KeptRows.of(rows.ids, np.zeros(rows.rows, dtype=np.uint64), rows.rows + 1)
            rows = rows.of_rows(kept.places)
            yield Batch(
                domain,
                rows.rows,
                rows.codes.__getitem__,
                persons=functools.partial(np.asarray, kept.persons),
                texts=rows.texts.__getitem__,
            )
