"""Spark: as an engine that hands out the parts of a FilesTable, and as the place where rows are (SparkTable).

    FilesTable("visits/", domain, run=Spark(session))   Spark says who reads which row groups; no row passes the JVM
    SparkTable(session.table("visits"), domain)         any DataFrame: Delta, Iceberg, Hive, views; rows come as Arrow

Only the DataFrame API is used, so a session may be one of Spark Connect. The workers need the same version of discreet
and of Python as this process. Sums are functions of the rows of a partition, so a task that Spark repeats, after a loss
or to be faster, changes nothing; Spark takes one result of each partition.

SparkTable keeps at most k rows of a person by a window over the person, in the order that a Table keeps them by; the
codes of the rows that are kept are staged in Spark's own storage (memory, then disk, of the workers).
"""

from __future__ import annotations

import functools
import importlib.metadata
import pickle
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from discreet.core import (
    DiscreetError,
    LedgerMismatch,
    Neighbours,
    ParameterError,
    SourceUnavailable,
    exact,
    quietly,
)
from discreet.data.domain import Domain
from discreet.data.encoding import Frame
from discreet.data.engines import TaskOutcome, results, run_shipped, shipped
from discreet.data.far import BATCH_ROWS, GATHER_LIMIT, Far, Fold
from discreet.data.files import arrow_table, file_stamp, library, table_of_batches
from discreet.data.files_table import (
    VERSION_MARKS,
    WORDS,
    batch_of,
    fold_part,
    refuse_versions,
    staged_batches,
    staged_names,
    staged_table,
)
from discreet.data.ingest import FIRST_EDITION, EncodedRows, identity_of, needed
from discreet.data.rows import Batch, Identity

_PLACE = "row_place"
_RESULT = "part binary"


class Spark:
    """A Spark session as an engine: every part is a task of a job with as many partitions.

    workers  how many tasks run at the same time; asked of the session unless it is given
    """

    pass_seconds, local = 0.6, False
    frame_seconds = 2.0  # of a pass over a DataFrame

    def __init__(self, session: Any, workers: int | None = None) -> None:
        if not hasattr(session, "range") or not hasattr(session, "createDataFrame"):
            raise ParameterError(f"session must be a SparkSession, found a {type(session).__name__}")
        self._session = session
        self.workers = _parallelism(session) if workers is None else exact.whole(workers=workers)

    def map(self, function: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
        """The results, in no promised order."""
        work, version, given = shipped(function), _version(), list(parts)

        def task(batches: Iterator[Any]) -> Iterator[Any]:
            for batch in batches:
                done = [run_shipped(work, given[place]) for place in batch.column(0).to_pylist()]
                yield _record_batch([_same_version(version) or each for each in done])

        jobs = self._session.range(0, len(given), 1, len(given)).mapInArrow(task, _RESULT)
        return results(_outcomes(jobs.collect()), len(given))

    def __repr__(self) -> str:
        return f"Spark({self.workers} workers)"


def this_session() -> Any:
    """The Spark session of this process, or a new one as its environment configures it (SPARK_REMOTE, its files)."""
    return library("pyspark.sql", "spark").SparkSession.builder.getOrCreate()


def stored_frame(address: str) -> Any:
    """The Parquet files at an address, as the Spark session of this process reads them; not all versions of a table."""
    complaint = f"Spark cannot read Parquet files at {address}"
    return quietly(lambda: _one_version(this_session().read, address), complaint, kind=SourceUnavailable)


def _one_version(read: Any, address: str) -> Any:
    scheme, _, rest = address.partition("://")
    parts = rest.rstrip("/").split("/")
    for folder in ("/".join(parts[: len(parts) - up]) for up in range(min(5, len(parts)))):
        for kind, mark in VERSION_MARKS.items():
            if _matches(read, f"{scheme}://{folder}/{mark}"):
                refuse_versions(folder, kind)
    return read.parquet(address)


def _matches(read: Any, pattern: str) -> bool:
    """Whether there is a file of such a name."""
    try:
        return bool(read.text(pattern).schema)
    except library("pyspark.errors", "spark").AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
    return False


def _parallelism(session: Any) -> int:
    """How many tasks run at the same time; 4 where only the server knows."""
    with suppress(Exception):
        return max(1, int(session.sparkContext.defaultParallelism))
    return 4


def _version() -> str:
    return importlib.metadata.version("discreet")


def _same_version(expected: str) -> bytes | None:
    """The refusal of a worker that has another version."""
    if (found := _version()) == expected:
        return None
    return pickle.dumps(TaskOutcome(refused=DiscreetError(f"a worker has discreet {found}, this process {expected}")))


def _record_batch(parts: Sequence[bytes]) -> Any:
    return arrow_table({"part": list(parts)}).to_batches()[0]


def _outcomes(rows: Iterable[Any]) -> list[TaskOutcome]:
    return [pickle.loads(bytes(row[0])) for row in rows]


class SparkTable(Far):
    """The rows of a Spark DataFrame: SparkTable(frame, domain).

    stage         True: the rows are encoded once and the codes kept in Spark's storage; with unit= that is done always
    gather_limit  bytes of rows that a mechanism may move here

    The other arguments are those of Table; the sums are equal to those of a Table with the same rows, bit for bit. The
    frame must give the same rows whenever it is read: a table format with snapshots does, and a file behind it that
    changed is noticed if this process sees it. A query that draws at random is no table.
    """

    __slots__ = ("_close", "_frame", "_staged", "_stamps")

    def __init__(
        self,
        frame: Any,
        domain: Domain,
        *,
        neighbours: Neighbours | str = "replace-one",
        name: str = "table",
        unit: str | None = None,
        rows_per_unit: int | None = None,
        size: int | None = None,
        edition: str | None = FIRST_EDITION,
        stage: bool = False,
        gather_limit: int = GATHER_LIMIT,
    ) -> None:
        if not hasattr(frame, "mapInArrow"):
            raise ParameterError(f"frame must be a Spark DataFrame, found a {type(frame).__name__}")
        self._declare(domain, identity_of(name, neighbours, unit, rows_per_unit), edition)
        self._offer(gather_limit, Spark.frame_seconds, fixed=False)
        self._frame, self._staged, self._stamps = frame, False, _local_stamps(frame)
        Frame.require(tuple(frame.columns), needed(domain, self.identity))
        rows = persons = self._counted()
        if unit is not None or stage:
            rows, persons = self._stage()
        self._settle(rows, persons, size=size, edition=edition)

    def check_source(self) -> None:
        """LedgerMismatch if a file behind the frame, of those that this process sees, changed."""
        if any(file_stamp(path) != stamp for path, stamp in self._stamps.items()):
            raise LedgerMismatch("a file behind this table changed since it was made: it is another table now")

    def close(self) -> None:
        """Remove the staged codes, if there are any."""
        if self._staged:
            self._close()

    def _folded(self, names: tuple[str, ...], fold: Fold, *, persons: bool) -> list[Any]:
        domain, whose = self._domain, persons and self.identity.unit is not None
        columns = [*staged_names(domain, names).values(), *(WORDS[:2] if whose else ())] if self._staged else names
        read = functools.partial(fold_part, fold=fold, domain=domain, names=names, persons=whose)
        return self._mapped(columns, read) or [fold([Batch.empty(domain)])]

    def _encoded(self) -> list[Any]:
        names = needed(self._domain, self.identity)  # with the unit, which `_folded` does not read
        return self._mapped(names, functools.partial(_encoded_rows, self._domain, self.identity)) or [0]

    def _mapped(self, columns: Sequence[str], read: Callable[[Partition], Any]) -> list[Any]:
        """What a function makes of these columns of each partition."""
        work, version, staged = shipped(read), _version(), self._staged

        def task(batches: Iterator[Any]) -> Iterator[Any]:
            part = Partition(_coalesced(batches), staged)
            yield _record_batch([_same_version(version) or run_shipped(work, part)])

        found = _outcomes(self._frame.select(*map(_quoted, columns)).mapInArrow(task, _RESULT).collect())
        return results(found, len(found))

    def _stage(self) -> tuple[int, int]:
        """The codes of the rows that are kept, in Spark's storage; how many rows and persons there are."""
        domain, identity = self._domain, self.identity
        names = map(_quoted, needed(domain, identity))
        kinds = [f"c{place} {'string' if column.free else 'long'}" for place, column in enumerate(domain.values())]
        words = WORDS if identity.unit is not None else ()
        shape = ", ".join([*kinds, *(f"{word} long" for word in words)])

        def encoded(batches: Iterator[Any]) -> Iterator[Any]:
            for table in _coalesced(batches):
                rows = EncodedRows.of(Frame(table), domain, identity)
                yield from staged_table(rows, identity, wide=True).to_batches()

        kept = self._frame.select(*names).mapInArrow(encoded, shape)
        if identity.unit is not None:
            functions, window = library("pyspark.sql.functions", "spark"), library("pyspark.sql", "spark").Window
            order = [WORDS[2], *(f"c{place}" for place in range(len(domain)))]
            place = functions.row_number().over(window.partitionBy(*WORDS[:2]).orderBy(*order))
            kept = kept.withColumn(_PLACE, place).where(functions.col(_PLACE) <= identity.neighbours.rows)
        self._frame = kept = kept.persist()
        self._close = weakref.finalize(self, _forget, self._frame)
        self._staged = True
        rows = self._quietly(kept.count)
        return rows, rows if identity.unit is None else self._quietly(self._frame.where(f"{_PLACE} = 1").count)


def _forget(frame: Any) -> None:
    with suppress(Exception):  # the session may be gone, and its storage with it
        frame.unpersist()


def _local_stamps(frame: Any) -> dict[Path, tuple[int, int, int] | None]:
    """Size and times of the files behind a frame that this process sees."""
    files: list[str] = []
    with suppress(Exception):  # some sources have no files
        files = frame.inputFiles()
    paths = [Path(unquote(urlsplit(file).path)) for file in files if urlsplit(file).scheme in ("", "file")]
    return {path: file_stamp(path) for path in paths if path.is_file()}


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


# What a task does.


@dataclass(frozen=True, slots=True)
class Partition:
    """A part: some rows of a DataFrame as Arrow tables, maybe staged; as its worker sees it."""

    tables: Iterable[Any]
    staged: bool

    def batches(self, domain: Domain, names: tuple[str, ...], *, persons: bool) -> Iterator[Batch]:
        if self.staged:
            return staged_batches(self.tables, domain, names, persons=persons)
        return (batch_of(Frame(table), table.num_rows, domain) for table in self.tables)


def _encoded_rows(domain: Domain, identity: Identity, part: Partition) -> int:
    """How many rows a part has; what is wrong with one, or with the name of its person, is said."""
    return sum(EncodedRows.of(Frame(table), domain, identity).rows for table in part.tables)


def _coalesced(batches: Iterable[Any]) -> Iterator[Any]:
    """Arrow tables of some 2^18 rows: Spark sends batches of ten thousand."""
    waiting: list[Any] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= BATCH_ROWS:
            yield table_of_batches(waiting)
            waiting, rows = [], 0
    if waiting:
        yield table_of_batches(waiting)
