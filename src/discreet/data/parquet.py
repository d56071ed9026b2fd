"""A Parquet file as a dataset: read in batches for every sum, never held in memory at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from discreet import exact
from discreet.arrays import Codes
from discreet.data import persons
from discreet.data.columns import Frame
from discreet.data.domain import Domain
from discreet.data.encoding import encode
from discreet.data.files import ROW_NUMBER, Scan, resolved
from discreet.data.ingest import (
    FIRST_EDITION,
    block_of,
    checked_domain,
    checked_edition,
    checked_rows,
    describe,
    facts_of,
    file_blocks,
    identity_of,
    needed,
)
from discreet.data.rows import Batch, Filter, Slice, Summed, refuse_to_leave, sum_of
from discreet.data.slices import sliced_columns, slices_of
from discreet.errors import LedgerMismatch, ParameterError, SchemaError
from discreet.guarantee import Neighbours

_BYTES_TO_CHOOSE = 96  # of memory for each row while the rows of a person are ordered


class ParquetTable:
    """The rows of a Parquet file, read again for every sum and never held in memory at once.

    The other arguments are those of Table; the sums are equal to those of Table on the same file, bit for bit.

    batch_rows    how many rows are in memory at a time.
    memory_limit  how much duckdb may use, as duckdb spells it ("1GB"); threads likewise.
    unit_memory   how many bytes choosing the rows of each person may use, beside one bit for each row; less means more
                  passes over the file.

    The file is read once when the table is made, so that whatever is wrong with a row is said then. A file that changed
    since is another table: LedgerMismatch, before anything is read from it.
    """

    __slots__ = ("__weakref__", "_keep", "_rows", "_scan", "_stamp", "facts", "identity", "source")

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
        self.source: Path = resolved(path)
        self._scan = Scan(self.source, batch_rows, memory_limit, threads)
        if self._scan.is_csv:
            raise ParameterError("a ParquetTable reads a .parquet file; Table reads .csv")
        self._stamp = _stamp(self.source)
        self._keep: npt.NDArray[np.uint8] | None = None
        self._rows = 0
        for block in file_blocks(self._scan, domain, self.identity):
            self._rows = checked_rows(self._rows + block.rows)
        count = self._rows
        if unit is not None:
            self._keep, count = self._choose(domain, unit_memory=exact.whole(unit_memory=unit_memory))
        self.facts = facts_of(domain, self.identity, size=size, persons_found=count, edition=edition)
        self.check_source()

    def exact_sum(self, partial: Callable[[Batch], Summed]) -> Summed:
        """The exact sum of a bounded integer function of the rows. Not private."""
        self.check_source()
        try:
            return sum_of(self._batches(self._looked_at(partial)), partial)
        finally:
            self.check_source()

    def exact_slices(self, slices: Sequence[Slice], *, where: Filter | None = None, disjoint: bool) -> list[Codes]:
        """The exact most extreme values of columns. Not private."""
        self.check_source()
        try:
            domain = self.facts.domain
            names = sliced_columns(slices, domain=domain, where=where, disjoint=disjoint)
            return slices_of(lambda: self._batches(names), slices, domain=domain, where=where, disjoint=disjoint)
        finally:
            self.check_source()

    def check_source(self) -> None:
        """LedgerMismatch if the file changed since this table was made."""
        if _stamp(self.source) != self._stamp:
            raise LedgerMismatch(
                f"the file {self.source.name!r} changed since this table was made: it is another table now"
            )

    def _choose(self, domain: Domain, *, unit_memory: int) -> tuple[npt.NDArray[np.uint8], int]:
        """One bit for each row, set when it is kept, and the number of persons; a part of the persons at a time."""
        if ROW_NUMBER in self._scan.names():
            raise SchemaError(f"a column named {ROW_NUMBER!r} is in the way of numbering the rows; rename it")
        bits, count = np.zeros(-(-self._rows // 8), dtype=np.uint8), 0
        parts = max(1, -(-self._rows * _BYTES_TO_CHOOSE // unit_memory))
        for part in range(parts):
            rows, found = self._choose_part(domain, part, parts)
            np.bitwise_or.at(bits, rows >> 3, (1 << (rows & 7)).astype(np.uint8))
            count += found
        return bits, count

    def _choose_part(self, domain: Domain, part: int, parts: int) -> tuple[Codes, int]:
        """The numbers of the rows kept of the persons of one part, and how many persons these are."""
        high, low, order, numbers = [], [], [], []
        for table in self._scan.frames(needed(domain, self.identity), numbered=True):
            frame = Frame(table)
            block = block_of(frame, domain, self.identity)
            assert block.ids is not None
            here = persons.partition(block.ids, parts) == part
            high.append(block.ids[0][here])
            low.append(block.ids[1][here])
            order.append(block.order(self.identity)[here])
            numbers.append(frame[ROW_NUMBER][0].data[here])
        if not numbers:
            return np.zeros(0, dtype=np.int64), 0
        ids = np.concatenate(high), np.concatenate(low)
        keep, found = persons.kept(ids, np.concatenate(order), self.identity.neighbours.rows)
        return np.concatenate(numbers)[keep], found

    def _looked_at(self, partial: Callable[[Batch], object]) -> Sequence[str]:
        """The columns that a function of the rows reads, as it shows on no rows; one at least, to count the rows by."""
        seen: list[str] = []
        partial(Batch.empty(self.facts.domain, seen))
        return tuple(dict.fromkeys(seen)) or self.facts.domain.names[:1]

    def _batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """The kept rows of the file; of these columns, each is encoded when it is asked for."""
        domain = self.facts.domain
        for table in self._scan.frames(names, numbered=self._keep is not None):
            frame = Frame(table)
            keep = None if self._keep is None else self._kept(frame[ROW_NUMBER][0].data)
            rows = table.num_rows if keep is None else int(keep.sum())
            yield Batch(domain, rows, _column_of(frame, domain, keep))
        if not self._rows:
            yield Batch.empty(domain)

    def _kept(self, numbers: Codes) -> npt.NDArray[np.bool_]:
        assert self._keep is not None
        return np.asarray((self._keep[numbers >> 3] >> (numbers & 7)) & 1, dtype=bool)

    def __repr__(self) -> str:
        return describe(self)

    __reduce_ex__ = refuse_to_leave
    __copy__ = refuse_to_leave
    __deepcopy__ = refuse_to_leave


def _column_of(frame: Frame, domain: Domain, keep: npt.NDArray[np.bool_] | None) -> Callable[[str], Codes]:
    def load(name: str) -> Codes:
        codes = encode(frame[name], domain[name], name)
        return codes if keep is None else codes[keep]

    return load


def _stamp(path: Path) -> tuple[int, int] | None:
    """Size and time of the last change of a file; None if there is no such file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns
