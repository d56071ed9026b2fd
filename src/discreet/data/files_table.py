"""Many Parquet files as one table: row groups are handed out as tasks, and each task reads its own.

    FilesTable("visits/", domain, run=Processes(2))              a folder of .parquet files
    FilesTable(["a.parquet", "b.parquet"], domain, run=Spark(session))

The tasks of a table are its row groups, `parts` tasks of about as many rows each. No row passes through the engine: a
worker opens the file itself, so every worker must see the same paths.

Staged codes. At most k rows of a person are kept whatever file they are in, so that the rows of a person must meet.
That is done once, when the table is made, through a folder that all workers see (`stage`). Each task writes its rows,
as codes, into one file for each of some parts of the persons (a hash of the person). A second round of tasks chooses,
in each part, the rows that a Table would keep, by the same order, and writes them together. Later sums read these
files, in which no person is in two parts. Without a unit, stage= is a choice: sums then read codes instead of the
sources. The folder is readable by its owner only, and removed when the table is closed or forgotten.
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
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core import Codes, LedgerMismatch, Neighbours, ParameterError, Words, exact
from discreet.data.domain import Domain
from discreet.data.encoding import Frame, encode_any
from discreet.data.engines import Engine, Processes
from discreet.data.far import (
    BATCH_ROWS,
    GATHER_LIMIT,
    MAX_FAR_ROWS,
    Far,
    FarOffers,
    Fold,
    checked_limit,
    require_bound,
)
from discreet.data.files import (
    arrow_table,
    file_stamp,
    joined_tables,
    read_row_groups,
    resolved,
    row_groups,
    write_parquet,
)
from discreet.data.ingest import (
    FIRST_EDITION,
    EncodedRows,
    KeptRows,
    checked_domain,
    checked_edition,
    facts_of,
    identity_of,
    needed,
    partition,
)
from discreet.data.rows import Batch, Identity, Texts

_ROWS_A_PART = 2**20  # of a staged part of the persons, about
_HIGH, _LOW, _ORDER = "person high", "person low", "order"  # of a staged row, beside its codes c0, c1, ...
_PERSON = "person"


def batch_of(table: Any, domain: Domain) -> Batch:
    """Some rows as Arrow; each column is encoded when it is asked for."""
    frame, texts = Frame(table), dict[str, Texts]()

    def load(name: str) -> npt.NDArray[Any]:
        codes, texts[name] = encode_any(frame[name], domain[name], name)
        return codes

    return Batch(domain, table.num_rows, load, texts=texts.__getitem__)


def batches_of_tables(tables: Iterable[Any], domain: Domain) -> Iterator[Batch]:
    """Arrow tables as batches of at most BATCH_ROWS rows; at least one, maybe empty, batch."""
    some = False
    for table in tables:
        for start in range(0, table.num_rows, BATCH_ROWS):
            some = True
            yield batch_of(table.slice(start, BATCH_ROWS), domain)
    if not some:
        yield Batch.empty(domain)


@dataclass(frozen=True, slots=True)
class RowGroups:
    """A task: some row groups of some files."""

    groups: tuple[tuple[str, int], ...]

    def tables(self, names: Sequence[str]) -> Iterator[Any]:
        """These columns, as Arrow tables, row group by row group."""
        for path, group in self.groups:
            yield from read_row_groups(Path(path), [group], names)

    def batches(self, domain: Domain, names: tuple[str, ...], *, persons: bool) -> Iterator[Batch]:
        return batches_of_tables(self.tables(names), domain)


@dataclass(frozen=True, slots=True)
class StagedCodes:
    """A task: a file of codes, as one batch; with persons, all rows of a person are in it, one after the other."""

    path: str
    persons: bool

    def batches(self, domain: Domain, names: tuple[str, ...], *, persons: bool) -> Iterator[Batch]:
        columns = {name: f"c{place}" for place, name in enumerate(domain.names) if name in names}
        more = [_PERSON] if self.persons and persons else []
        for table in read_row_groups(Path(self.path), [0], [*columns.values(), *more]):
            yield staged_batch(table, domain, columns, _PERSON if more else None)


def staged_batch(table: Any, domain: Domain, columns: Mapping[str, str], person: str | None) -> Batch:
    """Staged rows as a batch: codes as they are, texts encoded again."""
    texts = dict[str, Texts]()

    def load(name: str) -> Any:
        if not domain[name].free:
            return table.column(columns[name]).to_numpy()
        codes, texts[name] = encode_any(Frame(table)[columns[name]], domain[name], name)
        return codes

    whose = None if person is None else functools.partial(np.asarray, table.column(person).to_numpy())
    return Batch(domain, table.num_rows, load, persons=whose, texts=texts.__getitem__)


def staged_columns(rows: EncodedRows) -> dict[str, Any]:
    """Encoded rows as columns that are staged: codes, and texts as they are."""
    found: dict[str, Any] = {}
    for place, (name, codes) in enumerate(rows.codes.items()):
        texts = rows.texts.get(name)
        found[f"c{place}"] = codes if texts is None else [texts[code] for code in codes.tolist()]
    return found


def scatter(task: tuple[int, RowGroups], *, domain: Domain, identity: Identity, folder: str, shares: int) -> int:
    """The first round: the rows of a task, encoded, into one file for each part of the persons. How many rows."""
    place, source = task
    tables = source.tables(needed(domain, identity))
    frames = [table.slice(start, BATCH_ROWS) for table in tables for start in range(0, table.num_rows, BATCH_ROWS)]
    found = [EncodedRows.of(Frame(table), domain, identity) for table in frames]
    if not found:
        return 0
    rows = EncodedRows.joined(found)
    columns, share = staged_columns(rows), np.zeros(rows.rows, dtype=np.int64)
    if rows.ids is not None:
        share = partition(rows.ids, shares)
        signed = [words.view(np.int64) for words in (*rows.ids, rows.order(identity))]
        columns |= dict(zip((_HIGH, _LOW, _ORDER), signed, strict=True))
    whole = arrow_table(columns)
    for each in range(shares) if rows.ids is not None else (0,):
        chosen = whole if rows.ids is None else whole.take(np.flatnonzero(share == each))
        at = f"{folder}/kept-{place}" if rows.ids is None else f"{folder}/share-{each}-{place}"
        _written(chosen, Path(f"{at}.parquet"))
    return rows.rows


def choose(share: int, *, identity: Identity, folder: str, tasks: int) -> tuple[int, int]:
    """The second round: of a part of the persons, the rows that are kept, person after person. Rows and persons."""
    sources = [Path(f"{folder}/share-{share}-{task}.parquet") for task in range(tasks)]
    tables = [table for path in sources if path.exists() for table in read_row_groups(path, [0], _names(path))]
    if not tables:
        return 0, 0
    whole = joined_tables(tables)
    high, low, order = (whole.column(name).to_numpy().view(np.uint64) for name in (_HIGH, _LOW, _ORDER))
    kept = KeptRows.of((high, low), order, identity.neighbours.rows)
    rows = whole.take(kept.places).drop_columns([_HIGH, _LOW, _ORDER])
    _written(
        rows.append_column(_PERSON, arrow_table({_PERSON: kept.persons}).column(0)),
        Path(f"{folder}/kept-{share}.parquet"),
    )
    return len(kept.places), kept.count


def _names(path: Path) -> tuple[str, ...]:
    return row_groups(path)[0]


def _written(table: Any, path: Path) -> None:
    """Write a file whole or not at all: a task may be repeated, also while another copy of it runs."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix="part-")
    with os.fdopen(handle, "wb") as file:
        write_parquet(table, file, one_group=True)
    os.replace(name, path)


def fold_part(part: Any, *, fold: Fold, domain: Domain, names: tuple[str, ...], persons: bool) -> Any:
    """What a worker makes of one part; an empty one has an empty batch."""
    return fold(_never_none(part.batches(domain, names, persons=persons), domain))


def _never_none(batches: Iterable[Batch], domain: Domain) -> Iterator[Batch]:
    some = False
    for batch in batches:
        some = True
        yield batch
    if not some:
        yield Batch.empty(domain)


class FilesTable(Far):
    """The rows of many Parquet files: FilesTable(folder or paths, domain, run=Processes(2)).

    paths         a folder (its .parquet files), a pattern ("visits/*.parquet"), a file, or a list of files
    run           the engine: Processes(count), or Spark(session); two processes unless it is given
    parts         how many tasks a pass has, at most; about four for each worker unless it is given
    stage         a folder that all workers see, for codes that are written once; see the module's docstring. With unit=
                  a private temporary folder is taken if none is given, which is enough for Processes
    gather_limit  bytes of rows that a mechanism may move here

    The other arguments are those of Table; the sums are equal to those of a Table with the same rows, bit for bit. A
    file that was changed, added or removed since makes it another table: LedgerMismatch.
    """

    __slots__ = ("_close", "_parts", "_pattern", "_run", "_stamps", "sources")
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
        domain, edition = checked_domain(domain), checked_edition(edition)
        self.identity, self.source = identity_of(name, neighbours, unit, rows_per_unit), None
        self._domain = domain
        self._run = Processes(2) if run is None else run
        self._offers = FarOffers(gather_limit=checked_limit(gather_limit), pass_seconds=self._run.pass_seconds)
        self._pattern = tuple(paths) if isinstance(paths, (list, tuple)) else (paths,)
        self.sources = found_files(self._pattern)
        self._stamps = {path: file_stamp(path) for path in self.sources}
        count = max(1, 4 * self._run.workers) if parts is None else exact.whole(parts=parts)
        read = needed(domain, self.identity)
        self._parts: Sequence[Any] = tasks_of(self.sources, read, count)
        self._close: weakref.finalize[Any, Any] | None = None
        rows = persons = self._counted()
        if unit is not None or stage is not None:
            rows, persons = self._stage(stage, rows)
        self.facts = facts_of(
            domain, self.identity, size=size, persons_found=persons, edition=edition, most=MAX_FAR_ROWS
        )
        require_bound(rows, self.facts)

    def check_source(self) -> None:
        """LedgerMismatch if a file changed, came or went since this table was made."""
        same = found_files(self._pattern, missing=True) == self.sources
        if not same or any(file_stamp(path) != stamp for path, stamp in self._stamps.items()):
            raise LedgerMismatch("the files of this table changed since it was made: it is another table now")

    def close(self) -> None:
        """Remove the staged codes, if there are any; the table answers no more."""
        if self._close is not None:
            self._close()

    def _folded(self, names: tuple[str, ...], fold: Fold, *, persons: bool) -> list[Any]:
        read = functools.partial(fold_part, fold=fold, domain=self._domain, names=names, persons=persons)
        return self._run.map(read, self._parts)

    def _stage(self, stage: str | os.PathLike[str] | None, rows: int) -> tuple[int, int]:
        """Write the codes of the rows that are kept; how many rows and persons there are."""
        folder = tempfile.mkdtemp(prefix="discreet-", dir=stage)
        self._close = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        persons, tasks = self.identity.unit is not None, len(self._parts)
        shares = max(1, -(-rows // _ROWS_A_PART)) if persons else tasks
        scattered = functools.partial(
            scatter, domain=self._domain, identity=self.identity, folder=folder, shares=shares
        )
        self.check_source()
        counts = [(each, each) for each in self._run.map(scattered, list(enumerate(self._parts)))]
        if persons:
            chosen = functools.partial(choose, identity=self.identity, folder=folder, tasks=tasks)
            counts = self._run.map(chosen, range(shares))
            for path in Path(folder).glob("share-*.parquet"):
                path.unlink()
        self.check_source()
        files = [f"{folder}/kept-{each}.parquet" for each in range(shares)]
        self._parts = [StagedCodes(path, persons) for path in files if os.path.exists(path)] or [RowGroups(())]
        return sum(found[0] for found in counts), sum(found[1] for found in counts)


def found_files(paths: Sequence[str | os.PathLike[str]], *, missing: bool = False) -> tuple[Path, ...]:
    """The files of folders, patterns and paths, sorted. None at all is an error, unless some may be missing."""
    found: set[Path] = set()
    for path in paths:
        text = os.fspath(path)
        if os.path.isdir(text):
            found |= {resolved(each) for each in Path(text).glob("*.parquet")}
        elif any(sign in text for sign in "*?[") and not os.path.exists(text):
            found |= {resolved(each) for each in glob.glob(text)}
        elif os.path.isfile(text) or not missing:
            found.add(resolved(text))
    wrong = [path.name for path in found if path.suffix.lower() != ".parquet" or not os.path.isfile(path)]
    if not missing and (wrong or not found):
        what = f"found {wrong[0]!r}" if wrong else "found no file"
        raise ParameterError(f"paths must be .parquet files, a folder of them or a pattern, {what}")
    return tuple(sorted(found))


def tasks_of(files: Sequence[Path], names: Sequence[str], count: int) -> list[RowGroups]:
    """The row groups of all files as at most `count` tasks of about as many rows; at least one."""
    groups: list[tuple[int, str, int]] = []
    for path in files:
        columns, rows = row_groups(path)
        Frame.require(columns, names)
        groups += [(each, str(path), place) for place, each in enumerate(rows)]
    heaps: list[tuple[int, int, list[tuple[str, int]]]] = [(0, place, []) for place in range(max(1, count))]
    for rows_here, name, place in sorted(groups, reverse=True):  # the largest first, to the task with fewest rows
        total, task, chosen = heapq.heappop(heaps)
        chosen.append((name, place))
        heapq.heappush(heaps, (total + rows_here, task, chosen))
    made = [RowGroups(tuple(sorted(chosen))) for _, _, chosen in sorted(heaps, key=lambda heap: heap[1]) if chosen]
    return made or [RowGroups(())]


# What a task makes of a partition of a DataFrame.


WORDS = ("person_high", "person_low", "row_order")
"""The words of a person and of the order of a person's rows, beside the staged codes."""


def require_frame(found: Sequence[str], names: Sequence[str]) -> None:
    """Every one of these columns is in a DataFrame, once."""
    Frame.require(tuple(found), names)


def fold_nothing(fold: Fold, domain: Domain) -> Any:
    """The fold of no rows at all."""
    return fold([Batch.empty(domain)])


def fold_tables(
    tables: Iterable[Any], *, fold: Fold, domain: Domain, columns: dict[str, str] | None, whose: tuple[str, ...]
) -> Any:
    """The fold of a partition; columns: where staged codes are; whose: where the words of the persons are."""
    if columns is None:
        return fold(batches_of_tables(tables, domain))
    if whose:  # no person is in two batches
        found = list(tables)
        tables = [joined_tables(found)] if found else []
    return fold(_or_empty(functools.partial(_staged, domain, columns, whose), tables, domain))


def _or_empty(made: Callable[[Any], Batch], tables: Iterable[Any], domain: Domain) -> Iterator[Batch]:
    some = False
    for table in tables:
        some = True
        yield made(table)
    if not some:
        yield Batch.empty(domain)


def _staged(domain: Domain, columns: dict[str, str], whose: tuple[str, ...], table: Any) -> Batch:
    if not whose:
        return staged_batch(table, domain, columns, None)
    high, low = (table.column(name).to_numpy() for name in whose)
    numbered = table.append_column("person", arrow_table({"person": _numbered(high, low)}).column(0))
    return staged_batch(numbered, domain, columns, "person")


def _numbered(high: Codes, low: Codes) -> Codes:
    """A number for each row, the same for rows of equal words."""
    order, starts = np.lexsort((low, high)), np.ones(len(high), dtype=bool)
    high, low = high[order], low[order]
    starts[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.cumsum(starts) - 1
    return numbers


def spark_columns(table: Any, domain: Domain, identity: Identity) -> Any:
    """Rows as staged columns, in Spark's integers, which are signed: flipping the top bit keeps the order of words."""
    rows = EncodedRows.of(Frame(table), domain, identity)
    columns = {
        name: values if isinstance(values, list) else np.asarray(values, dtype=np.int64)
        for name, values in staged_columns(rows).items()
    }
    if rows.ids is not None:
        words = (*rows.ids, rows.order(identity))
        columns |= dict(zip(WORDS, map(_signed, words), strict=True))
    return arrow_table(columns)


def _signed(words: Words) -> Codes:
    return (words ^ np.uint64(1 << 63)).view(np.int64)
