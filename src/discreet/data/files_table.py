"""Files of rows as one table: row groups are handed out as tasks, and each task reads its own.

    FilesTable("visits/", domain, run=Processes(2))              a folder of .parquet files
    FilesTable(["a.parquet", "b.parquet"], domain, run=Spark(session))
    FilesTable("visits/*.csv", domain)
    ParquetTable("visits.parquet", domain)                       one file, read by this process

The tasks of a table are its row groups, `parts` tasks of about as many rows each; a CSV file is one task. No row passes
through the engine: a worker opens the file itself, so every worker must see the same paths.

Staged codes. At most k rows of a person are kept whatever file they are in, so that the rows of a person must meet.
That is done once, when the table is made, through a folder that all workers see (`stage`). Each task writes its rows,
as codes, into files for some parts of the persons (a hash of the person). A second round of tasks chooses, in each
part, the rows that a Table would keep, by the same order, and writes them together. Later sums read these files, in
which no person is in two parts. CSV files are always staged, so that their text is read once; with stage= Parquet
files are, too. The folder is readable by its owner only, and removed when the table is closed or forgotten.

Counts, histograms and whole-number sums are one GROUP BY in duckdb (`data.pushdown`) over the files, or over the
staged codes, if the engine is of this machine. What was encoded by the library and staged needs no rule in SQL: floats,
spelled numbers and persons of several rows are counted like all others.
"""

from __future__ import annotations

import functools
import glob
import heapq
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from discreet.core import Codes, LedgerMismatch, Neighbours, ParameterError, SourceUnavailable, exact
from discreet.data.domain import Domain
from discreet.data.encoding import Frame, encode_any
from discreet.data.engines import Engine, Here, Processes
from discreet.data.far import BATCH_ROWS, GATHER_LIMIT, Far, Fold
from discreet.data.files import (
    Scan,
    arrow_table,
    file_stamp,
    joined_tables,
    read_row_groups,
    resolved,
    row_groups,
    text_array,
    write_parquet,
)
from discreet.data.ingest import FIRST_EDITION, EncodedRows, KeptRows, identity_of, needed, numbered, partition
from discreet.data.pushdown import PushDown
from discreet.data.rows import Batch, Identity, Summand, Summed, Texts

Result = TypeVar("Result")

_ROWS_A_PART = 2**20  # of a staged part of the persons, about
_BYTES_TO_CHOOSE = 96  # of memory for each row while the rows of a person are ordered
_BYTES_A_LINE = 32  # of a CSV file, about: how many parts of the persons there are hangs on it
_TOP = np.uint64(1 << 63)
VERSION_MARKS = {"Delta": "_delta_log/*", "Hudi": ".hoodie/*", "Iceberg": "metadata/*.metadata.json"}
"""Files in the folder of a table format that keeps earlier versions of rows."""

WORDS = ("person_high", "person_low", "row_order")
"""The words of a person and of the order of a person's rows, beside the staged codes c0, c1, ..."""


# Tasks.


@dataclass(frozen=True, slots=True)
class RowGroups:
    """A task: some row groups of some Parquet files."""

    groups: tuple[tuple[str, int], ...]
    rows: int = BATCH_ROWS

    def frames(self, names: Sequence[str]) -> Iterator[tuple[Frame, int]]:
        """These columns, with how many rows there are, batch by batch."""
        for path, group in self.groups:
            for table in read_row_groups(Path(path), [group], names, self.rows):
                yield Frame(table), table.num_rows

    def batches(self, domain: Domain, names: tuple[str, ...], *, persons: bool) -> Iterator[Batch]:
        return (batch_of(frame, rows, domain) for frame, rows in self.frames(names))


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A task of the first round: a CSV file."""

    path: str

    def frames(self, names: Sequence[str]) -> Iterator[tuple[Frame, int]]:
        """These columns, with how many rows there are, batch by batch."""
        for table in Scan(Path(self.path), BATCH_ROWS, threads=1).frames(names):
            yield Frame(table, spelled=True), table.num_rows


@dataclass(frozen=True, slots=True)
class StagedCodes:
    """A task: files of codes; with persons, all rows of a person are in it."""

    paths: tuple[str, ...]
    rows: int = BATCH_ROWS

    def batches(self, domain: Domain, names: tuple[str, ...], *, persons: bool) -> Iterator[Batch]:
        wanted = [*staged_names(domain, names).values(), *(WORDS[:2] if persons else ())]
        tables = (each for path in self.paths for each in read_row_groups(Path(path), None, wanted, self.rows))
        return staged_batches(tables, domain, names, persons=persons)


def batch_of(frame: Frame, rows: int, domain: Domain) -> Batch:
    """Some rows; each column is encoded when it is asked for."""
    texts = dict[str, Texts]()

    def load(name: str) -> npt.NDArray[Any]:
        codes, texts[name] = encode_any(frame[name], domain[name], name)
        return codes

    return Batch(domain, rows, load, texts=texts.__getitem__)


def staged_names(domain: Domain, names: Sequence[str]) -> dict[str, str]:
    """Where the codes of these columns are staged."""
    return {name: f"c{place}" for place, name in enumerate(domain.names) if name in names}


def staged_batches(tables: Iterable[Any], domain: Domain, names: Sequence[str], *, persons: bool) -> Iterator[Batch]:
    """Staged rows as batches: codes as they are, texts encoded again; with persons, one batch of all."""
    columns = staged_names(domain, names)
    if persons:
        found = list(tables)
        tables = [joined_tables(found)] if found else []
    for table in tables:
        yield _staged_batch(table, domain, columns, persons=persons)


def _staged_batch(table: Any, domain: Domain, columns: Mapping[str, str], *, persons: bool) -> Batch:
    texts = dict[str, Texts]()

    def load(name: str) -> Any:
        if not domain[name].free:
            return table.column(columns[name]).to_numpy()
        codes, texts[name] = encode_any(Frame(table)[columns[name]], domain[name], name)
        return codes

    def whose() -> Codes:
        return numbered(*(table.column(name).to_numpy() for name in WORDS[:2]))

    return Batch(domain, table.num_rows, load, persons=whose if persons else None, texts=texts.__getitem__)


def staged_table(rows: EncodedRows, identity: Identity, *, wide: bool = False) -> Any:
    """Encoded rows as they are staged: codes, texts, and words as signed integers in the same order; wide: all codes
    in 64 bits."""
    columns: dict[str, Any] = {}
    for place, (name, codes) in enumerate(rows.codes.items()):
        texts = rows.texts.get(name)
        kept = codes.astype(np.int64) if wide else codes
        columns[f"c{place}"] = kept if texts is None else text_array([texts[code] for code in codes.tolist()])
    if rows.ids is not None:
        words = (*rows.ids, rows.order(identity))
        columns |= {name: (each ^ _TOP).view(np.int64) for name, each in zip(WORDS, words, strict=True)}
    return arrow_table(columns)


def fold_part(part: Any, *, fold: Fold, domain: Domain, names: tuple[str, ...], persons: bool) -> Any:
    """What a worker makes of one part."""
    return fold(never_none(part.batches(domain, names, persons=persons), domain))


def never_none(batches: Iterable[Batch], domain: Domain) -> Iterator[Batch]:
    """The batches; of none, an empty one."""
    some = False
    for batch in batches:
        some = True
        yield batch
    if not some:
        yield Batch.empty(domain)


# The two rounds of staging.


def scatter(task: tuple[int, Any], *, domain: Domain, identity: Identity, folder: str, shares: int) -> int:
    """The first round: the rows of a task, encoded, into files for each part of the persons. How many rows."""
    (place, source), total = task, 0
    for number, rows in enumerate(_chunks(source.frames(needed(domain, identity)), domain, identity)):
        whole, total = staged_table(rows, identity), total + rows.rows
        if rows.ids is None:
            _written(whole, f"{folder}/kept-{place}-{number}.parquet")
            continue
        share = partition(rows.ids, shares)
        for each in np.unique(share).tolist():
            _written(whole.take(np.flatnonzero(share == each)), f"{folder}/share-{each}-{place}-{number}.parquet")
    return total


def _chunks(frames: Iterable[tuple[Frame, int]], domain: Domain, identity: Identity) -> Iterator[EncodedRows]:
    """The rows, encoded, about _ROWS_A_PART at a time."""
    waiting: list[EncodedRows] = []
    for frame, _ in frames:
        waiting.append(EncodedRows.of(frame, domain, identity))
        if sum(each.rows for each in waiting) >= _ROWS_A_PART:
            yield EncodedRows.joined(waiting)
            waiting = []
    if waiting:
        yield EncodedRows.joined(waiting)


def choose(share: int, *, identity: Identity, folder: str) -> tuple[int, int]:
    """The second round: of a part of the persons, the rows that are kept. How many rows, and of how many persons."""
    sources = sorted(Path(folder).glob(f"share-{share}-*.parquet"))
    if not sources:
        return 0, 0
    names = row_groups(sources[0])[1]
    whole = joined_tables([table for path in sources for table in read_row_groups(path, None, names, BATCH_ROWS)])
    high, low, order = (whole.column(name).to_numpy().view(np.uint64) ^ _TOP for name in WORDS)
    kept = KeptRows.of((high, low), order, identity.neighbours.rows)
    _written(whole.take(kept.places), f"{folder}/kept-{share}.parquet")
    return len(kept.places), kept.count


def _written(table: Any, path: str) -> None:
    """Write a file whole or not at all: a task may be repeated, also while another copy of it runs."""
    handle, name = tempfile.mkstemp(dir=Path(path).parent, prefix="part-")
    with os.fdopen(handle, "wb") as file:
        write_parquet(table, file)
    os.replace(name, path)


class FilesTable(Far):
    """The rows of many files: FilesTable(folder or paths, domain, run=Processes(2)).

    paths         a folder (its .parquet files), a pattern ("visits/*.parquet"), a file, or a list of files; .csv files
                  are staged
    run           the engine: Processes(count), or Spark(session); two processes unless it is given
    parts         how many tasks a pass has, at most; about four for each worker unless it is given
    stage         a folder that all workers see, for codes that are written once; see the module's docstring. With unit=
                  or CSV files a private temporary folder is taken if none is given, for Processes; Spark needs one
    gather_limit  bytes of rows that a mechanism may move here

    The other arguments are those of Table; the sums are equal to those of a Table with the same rows, bit for bit. A
    file that was changed, added or removed since makes it another table: LedgerMismatch.
    """

    __slots__ = ("_close", "_parts", "_pattern", "_push", "_run", "_stamps", "sources")
    sources: tuple[Path, ...]

    def __init__(
        self,
        paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        domain: Domain,
        *,
        run: Engine | None = None,
        neighbours: Neighbours | str = "replace-one",
        name: str = "table",
        unit: str | None = None,
        rows_per_unit: int | None = None,
        size: int | None = None,
        edition: str | None = FIRST_EDITION,
        parts: int | None = None,
        stage: str | os.PathLike[str] | None = None,
        gather_limit: int = GATHER_LIMIT,
    ) -> None:
        self._declare(domain, identity_of(name, neighbours, unit, rows_per_unit), edition)
        self._run = Processes(2) if run is None else run
        self._offer(gather_limit, self._run.pass_seconds)
        count = max(1, 4 * self._run.workers) if parts is None else exact.whole(parts=parts)
        given = tuple(paths) if isinstance(paths, (list, tuple)) else (paths,)
        rows = self._open(given, count, BATCH_ROWS)
        staged = unit is not None or stage is not None or any(type(part) is CsvFile for part in self._parts)
        if staged and stage is None and not self._run.local:
            what = "codes of CSV files, and of persons with several rows,"
            raise ParameterError(f"stage must name a folder that all workers see: {what} are written there")
        found = self._stage(stage, -(-rows // _ROWS_A_PART)) if staged else (self._counted(),) * 2
        self._settle(*found, size=size, edition=edition)
        self._push_down(Scan(self.sources[0]))

    def _open(self, given: Sequence[str | os.PathLike[str]], count: int, rows: int) -> int:
        """Find the files and make tasks of them; about how many rows there are."""
        self._pattern, self.sources = given, found_files(given)
        self._stamps = {path: file_stamp(path) for path in self.sources}
        self._close: weakref.finalize[Any, Any] | None = None
        self._push: PushDown | None = None
        self._parts: Sequence[Any]
        self._parts, about = tasks_of(self.sources, needed(self._domain, self.identity), count, rows)
        return about

    def _push_down(self, scan: Scan) -> None:
        """Let duckdb count by itself, if the engine is of this machine."""
        if self._run.local:
            columns = staged_names(self._domain, self._domain.names) if self._close is not None else None
            files = self.sources if columns is None else tuple(map(Path, self._staged_files()))
            several = self.identity.unit is not None
            self._push = PushDown.of(scan, files, self._domain, columns, several=several) if files else None

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
        """What duckdb finds by itself, if it can (`data.pushdown`)."""
        if self._push is None:
            return None
        with self._watched():
            return ask(self._push)

    def check_source(self) -> None:
        """LedgerMismatch if a file changed, came or went since this table was made; and its staged codes are there."""
        same = found_files(self._pattern, missing=True) == self.sources
        if not same or any(file_stamp(path) != stamp for path, stamp in self._stamps.items()):
            what = f"the file {self.sources[0].name!r}" if len(self.sources) == 1 else "the files of this table"
            raise LedgerMismatch(f"{what} changed since this table was made: it is another table now")
        if not all(os.path.isfile(path) for path in self._staged_files()):
            raise SourceUnavailable(
                "the staged codes of this table were removed, or it was closed: make the table again"
            )

    def _staged_files(self) -> list[str]:
        return [path for part in self._parts if type(part) is StagedCodes for path in part.paths]

    def close(self) -> None:
        """Remove the staged codes, if there are any; the table answers no more."""
        if self._close is not None:
            self._close()

    def _folded(self, names: tuple[str, ...], fold: Fold, *, persons: bool) -> list[Any]:
        whose = persons and self.identity.unit is not None
        read = functools.partial(fold_part, fold=fold, domain=self._domain, names=names, persons=whose)
        return self._run.map(read, self._parts)

    def _stage(self, stage: str | os.PathLike[str] | None, shares: int, batch: int = BATCH_ROWS) -> tuple[int, int]:
        """Write the codes of the rows that are kept; how many rows and persons there are."""
        folder = tempfile.mkdtemp(prefix="discreet-", dir=stage)
        self._close = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        identity, shares = self.identity, max(1, shares)
        scattered = functools.partial(scatter, domain=self._domain, identity=identity, folder=folder, shares=shares)
        self.check_source()
        counts = [(each, each) for each in self._run.map(scattered, list(enumerate(self._parts)))]
        if identity.unit is not None:
            counts = self._run.map(functools.partial(choose, identity=identity, folder=folder), range(shares))
            for path in Path(folder).glob("share-*.parquet"):
                path.unlink()
        self.check_source()
        found: dict[str, list[str]] = {}  # by part of the persons, or by task
        for path in sorted(Path(folder).glob("kept-*.parquet")):
            found.setdefault(path.stem.split("-")[1], []).append(str(path))
        self._parts = [StagedCodes(tuple(paths), batch) for paths in found.values()] or [StagedCodes(())]
        return sum(rows for rows, _ in counts), sum(persons for _, persons in counts)


class ParquetTable(FilesTable):
    """The rows of a Parquet file, read again for every sum by this process, and never held in memory at once.

    The other arguments are those of Table; the sums are equal to those of Table on the same file, bit for bit.

    batch_rows    how many rows are in memory at a time.
    memory_limit  how much duckdb may use, as duckdb spells it ("1GB"); threads likewise.
    unit_memory   about how many bytes choosing the rows of each person may use; the codes of the rows that are kept are
                  staged in a private temporary folder (`data.files_table`).

    The file is read once when the table is made, so that errors in its rows are found then. A file that changed
    since is another table: LedgerMismatch, before anything is read from it.
    """

    __slots__ = ()
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
        self._declare(domain, identity_of(name, neighbours, unit, rows_per_unit), edition)
        self._run, self.source = Here(), resolved(path)
        self._offer(None, self._run.pass_seconds)
        scan, memory = Scan(self.source, batch_rows, memory_limit, threads), exact.whole(unit_memory=unit_memory)
        if scan.is_csv:
            raise ParameterError("a ParquetTable reads a .parquet file; Table and FilesTable read .csv")
        rows = self._open((self.source,), 1, batch_rows)
        shares = -(-rows * _BYTES_TO_CHOOSE // memory)
        found = (self._counted(),) * 2 if unit is None else self._stage(None, shares, batch_rows)
        self._settle(*found, size=size, edition=edition)
        self._push_down(scan)


def found_files(paths: Sequence[str | os.PathLike[str]], *, missing: bool = False) -> tuple[Path, ...]:
    """The files of folders, patterns and paths, sorted. None at all is an error, unless some may be missing."""
    found: set[Path] = set()
    for path in paths:
        text = os.fspath(path)
        if os.path.isdir(text) or (any(sign in text for sign in "*?[") and not os.path.exists(text)):
            pattern = f"{glob.escape(text)}/*.parquet" if os.path.isdir(text) else text
            here = {resolved(each) for each in glob.glob(pattern, recursive=True)}
            _refuse_versions(here)
            found |= here
        elif os.path.isfile(text) or not missing:
            found.add(resolved(text))
    wrong = [path.name for path in found if path.suffix.lower() not in (".parquet", ".csv") or not os.path.isfile(path)]
    if not missing and (wrong or not found):
        what = f"found {wrong[0]!r}" if wrong else f"found no file in {os.fspath(paths[0])!r}"
        also = "; a pattern such as 'visits/*.csv' or 'visits/*/*.parquet' names other files" if not wrong else ""
        raise ParameterError(f"paths must be .parquet or .csv files, a folder of .parquet or a pattern, {what}{also}")
    return tuple(sorted(found))


def _refuse_versions(files: Iterable[Path]) -> None:
    """Refuse all files of a folder in which a table format keeps rows of earlier versions: a row of now, and a row that
    was deleted, may be in several of them, and its person would count as often."""
    for folder in {parent for file in files for parent in file.parents[:4]}:
        for kind, mark in VERSION_MARKS.items():
            if next(folder.glob(mark), None) is not None:
                refuse_versions(folder.name, kind)


def refuse_versions(folder: str, kind: str) -> NoReturn:
    """All files of a folder of this table format are not the rows of now."""
    advice = "give the list of the files of one version, or a SparkTable"
    raise ParameterError(f"{folder!r} is a table of {kind}, whose files hold earlier versions of rows, too: {advice}")


def tasks_of(files: Sequence[Path], names: Sequence[str], count: int, batch: int) -> tuple[list[Any], int]:
    """The row groups of all files as at most `count` tasks of about as many rows, at least one, and a task for each CSV
    file; and about how many rows there are."""
    groups: list[tuple[int, str, int]] = []
    spelled = [path for path in files if path.suffix.lower() == ".csv"]
    for path in files:
        columns, rows = (Scan(path).names(), []) if path in spelled else row_groups(path)[1:]
        Frame.require(columns, names)
        groups += [(each, str(path), place) for place, each in enumerate(rows)]
    heaps: list[tuple[int, int, list[tuple[str, int]]]] = [(0, place, []) for place in range(max(1, count))]
    for rows_here, name, place in sorted(groups, reverse=True):  # the largest first, to the task with fewest rows
        total, task, chosen = heapq.heappop(heaps)
        chosen.append((name, place))
        heapq.heappush(heaps, (total + rows_here, task, chosen))
    made: list[Any] = [CsvFile(str(path)) for path in spelled]
    made += [
        RowGroups(tuple(sorted(chosen)), batch) for _, _, chosen in sorted(heaps, key=lambda heap: heap[1]) if chosen
    ]
    about = sum(each for each, _, _ in groups) + sum(path.stat().st_size for path in spelled) // _BYTES_A_LINE
    return made or [RowGroups(())], about
