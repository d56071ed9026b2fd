"""Rows that stay in a database: counts, histograms and sums of whole numbers, each by a GROUP BY over declared codes.

The database computes codes and adds; the library decides, charges, and draws the noise. Everything that cannot be said
as a `Tally` is refused before the charge (`offers`).

*What may change.* Rows in a database change. A sum is taken in one snapshot, and `release` holds one snapshot for all
sums of a release. Every snapshot is checked against what is public about the table: under replace-one it must have the
declared number of rows, and if a version is declared it must be the one that was there when the table was made; if not,
LedgerMismatch. An entry that the declaration does not take any more is summed as code 0, so that the theorems hold for
whatever is there: after ingest no row can cause an error. A view can: it must not fail on any value that a row could
have (TRY_CAST, or a CASE for every value), which only its owner can see to.

Without a version under add-remove, rows change unnoticed. Each release is about the rows of its snapshot, but a session
may answer a paid question from the distinct rows that it fetched before; a running total is refused (`Offers.fixed`).
"""

from __future__ import annotations

import math
import threading
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

from discreet.core import (
    Codes,
    LedgerMismatch,
    Neighbours,
    NotOffered,
    ParameterError,
    SchemaError,
    SourceUnavailable,
    UndeclaredLevels,
    Unproven,
)
from discreet.data.addresses import relation_parts
from discreet.data.domain import Column, Domain
from discreet.data.encoding import encode, read, refuse_missing, require_held
from discreet.data.ingest import (
    FIRST_EDITION,
    PrivateRows,
    checked_domain,
    checked_edition,
    checked_rows,
    facts_of,
    identity_of,
    needed,
    order_key,
)
from discreet.data.needs import Offers
from discreet.data.pushdown import distinct_rows, tallied
from discreet.data.rows import Identity
from discreet.data.rules import number_rule
from discreet.data.sql_engines import engine_of
from discreet.data.sql_text import (
    NO_LEVEL,
    NO_VALUE,
    Coded,
    Dialect,
    KeptPersons,
    SqlSource,
    all_sql,
    columns_sql,
    probe_sql,
    relation_of,
    require_source,
)
from discreet.data.tally import Tally, tallies_of

_FEW = 2**20  # cells whose counts are fetched at once, to answer several questions about them
_PROBED = 12  # levels of a category that are tried on the database


@dataclass(frozen=True, slots=True)
class Counting(Offers):
    """What a database offers: queries that are tallies, and that can be written in its SQL."""

    coded: Coded | None = field(default=None, repr=False, compare=False)

    def answers(self, query: Any, facts: Any) -> bool:
        if self.coded is None:
            return False
        tallies = tallies_of(query, facts.domain, several=self.coded.persons is not None)
        try:
            return tallies is not None and all(self.coded.tally(tally) for tally in tallies)
        except Unproven:
            return False


class SqlTable(PrivateRows):
    """Rows of a table or view in a database: SqlTable("postgresql://HOST/DATABASE", "people", domain, ...).

    where       an address without a password: postgresql://..., or duckdb:FILE; or a connection: of psycopg, of duckdb,
                or another one of DB-API 2.0 together with its dialect ("bigquery", "snowflake", "tsql").
    relation    the name of the table or view; its parts, ("schema", "table"), if it has several. Names are quoted: they
                are spelled as the database spells them.
    domain      what may be in each column. Floats, `Number.any()` and text that spells dates are refused: make a view
                that casts them.
    neighbours  "add-remove", or "replace-one": then the number of rows is public, and `size` and `version` must be
                declared (a DuckDB file needs no version: the file is watched).
    version     the name of a relation of one row and one column, which the owner changes whenever rows change.
    unit        the column that names the person, whole numbers or text, with rows_per_unit: PostgreSQL and DuckDB. The
                rows that are kept are those that a Table keeps; every statement orders the rows of each person.
    size, edition, name   as for Table.

    It answers Count, Histogram, KeyCount, Sum, VectorSum of Numbers, GroupCount, GroupSum, and what a session asks of
    these; anything else is refused before the charge.
    """

    __slots__ = ("_coded", "_engine", "_held", "_local", "_stamp", "_version", "_version_sql")

    def __init__(
        self,
        where: Any,
        relation: str | Sequence[str],
        domain: Domain,
        *,
        neighbours: Neighbours | str = "replace-one",
        name: str = "table",
        size: int | None = None,
        version: str | Sequence[str] | None = None,
        edition: str | None = FIRST_EDITION,
        dialect: str | None = None,
        unit: str | None = None,
        rows_per_unit: int | None = None,
    ) -> None:
        domain, edition = checked_domain(domain), checked_edition(edition)
        self.identity = identity_of(name, neighbours, unit, rows_per_unit)
        self._engine, self._local = engine_of(where, dialect), threading.local()
        self.source, self._stamp = self._engine.path, self._engine.stamp()
        self._require_guard(size, version)
        for column_name, column in domain.columns:
            require_held(column, column_name)
        speech, target = self._engine.dialect, relation_of(relation_parts(relation=relation))
        self._version_sql = None if version is None else all_sql(relation_of(relation_parts(version=version)), speech)
        self._version: str | None = None
        with self._engine.snapshot() as run:
            self._version = self._read_version(run)
            names = needed(domain, self.identity)
            types = _described(lambda: self._engine.types(run, columns_sql(target, names, speech)), names)
            sources = {
                found: require_source(found, domain.column(found), source, speech, kind)
                for found, kind, source in types
                if found in domain
            }
            whose = _kept_persons(domain, self.identity, speech, {found: source for found, _, source in types})
            self._coded = Coded(target, domain, sources, speech, whose)
            for each in domain.names:
                _probe(run, self._coded, each)
            rows, *wrong = (int(column[0]) for column in run(self._coded.ingest()))
            _refuse_wrong(domain, wrong)
            persons = checked_rows(rows)
            if whose is not None:
                ((nobody,),), ((persons,),) = run(self._coded.nobody()), run(self._coded.count())
                if nobody:
                    raise SchemaError(f"column {unit!r} names the person, and it has missing values")
                run(self._coded.tally(Tally()))  # a statement of many columns that is too long fails now
        self.facts = facts_of(domain, self.identity, size=size, persons_found=int(persons), edition=edition)
        self.check_source()

    def _require_guard(self, size: int | None, version: object) -> None:
        if not self.identity.neighbours.replace_one:
            return
        if size is None:
            raise ParameterError(
                "under replace-one the number of rows is public: declare size=..., or take neighbours='add-remove'"
            )
        if version is None and self._stamp is None:
            raise ParameterError(
                "rows in a database change: under replace-one declare version=..., a relation of one row and one "
                "column that changes with them, or take neighbours='add-remove'"
            )

    @property
    def offers(self) -> Offers:
        """Counts, histograms and sums of whole numbers."""
        words = "counts, histograms and sums of declared numbers"
        fixed = self._version_sql is not None or self._stamp is not None
        return Counting(words, functions=False, slices=False, gather_limit=0, fixed=fixed, coded=self._coded)

    # One snapshot.

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All sums in this block see the same rows; the snapshot is taken when the first of them is."""
        if getattr(self._local, "stack", None) is not None:
            yield
            return
        with ExitStack() as stack:
            self._local.stack, self._local.reader = stack, None
            try:
                yield
                if self._local.reader is not None:
                    self._check_version(self._local.reader)
            finally:
                self._local.stack = self._local.reader = None
        self._check_stamp()

    def _reader(self) -> Any:
        """What runs statements in the open snapshot, after it was checked."""
        if self._local.reader is None:
            self._check_stamp()
            run: Any = self._local.stack.enter_context(self._engine.snapshot())
            self._check_version(run)
            if self.facts.neighbours.replace_one and int(run(self._coded.count())[0][0]) != self.facts.size:
                self._refuse_changed()
            self._local.reader = run
        reader: Any = self._local.reader
        return reader

    def check_source(self) -> None:
        """LedgerMismatch if the rows are declared to be others than when this table was made."""
        if getattr(self._local, "reader", None) is not None:
            return
        self._check_stamp()
        with self._engine.snapshot() as run:
            self._check_version(run)

    def _check_version(self, run: Any) -> None:
        if self._version != self._read_version(run):
            self._refuse_changed()

    def _check_stamp(self) -> None:
        if self._engine.stamp() != self._stamp:
            self._refuse_changed()

    def _refuse_changed(self) -> NoReturn:
        raise LedgerMismatch("the rows in the database changed since this table was made: it is another table now")

    def _read_version(self, run: Any) -> str | None:
        if self._version_sql is None:
            return None
        found = run(self._version_sql)
        if len(found) != 1 or len(found[0]) != 1 or found[0][0] is None:
            raise ParameterError("version must name a relation of one row and one column that is not NULL")
        return str(found[0][0])

    # The doors.

    def exact_sum(self, query: Any) -> Any:
        """The exact sum of a query. Not private."""
        domain = self.facts.domain
        tallies = tallies_of(query, domain, several=self._coded.persons is not None)
        if tallies is None:
            raise NotOffered("rows in a database are counted and summed only")
        statements = [(tally, self._coded.tally(tally)) for tally in tallies]
        names = tuple(dict.fromkeys(name for tally, _ in statements for name in tally.columns()))
        with self.snapshot():
            if len(statements) > 1 and query.weighted is not None and self._few(names):
                found = distinct_rows(self._reader(), self._coded, names)
                if found is not None:
                    return query.weighted(*found)
            return query.of_tallies(domain, [tallied(self._reader(), tally, sql) for tally, sql in statements])

    def _few(self, names: Sequence[str]) -> bool:
        """Whether one statement for the distinct rows of these columns stands for several: by declared sizes alone."""
        columns = [self.facts.domain.column(name) for name in names]
        return all(each.listed for each in columns) and math.prod(each.size for each in columns) <= _FEW

    def exact_distinct(self) -> tuple[Any, Codes] | None:
        """The distinct rows with their counts, if they are fewer than half (`data.distinct`). Not private."""
        with self.snapshot():
            return distinct_rows(self._reader(), self._coded)

    def _batches(self, reading: Callable[[Any], object]) -> NoReturn:
        """Not offered: no row leaves the database, for slices, to be gathered, or for a function of the library."""
        raise NotOffered("rows in a database are counted and summed only")


def _kept_persons(
    domain: Domain, identity: Identity, dialect: Dialect, sources: Mapping[str, SqlSource | None]
) -> KeptPersons | None:
    """Whose rows they are, if a person may have several; Unproven where SQL cannot choose those that a Table keeps."""
    unit = identity.unit
    if unit is None:
        return None
    source = sources[unit]
    advice = "make a view with one row per person, or export the rows to Parquet"
    if dialect.words is None:
        raise Unproven(f"the order in which a person's rows are kept is not computed in this database: {advice}")
    if source is None or source.kind not in ("whole", "text"):
        raise Unproven(f"column {unit!r} names the person: it must hold whole numbers or text, or {advice}")
    if free := [name for name, column in domain.items() if column.free]:
        raise Unproven(f"the rows of a person are ordered by a hash of {free[0]!r}, which no SQL computes: {advice}")
    return KeptPersons(unit, identity.neighbours.rows, order_key(identity), source.kind == "text")


def relation_kinds(where: Any, relation: Sequence[str]) -> dict[str, str]:
    """The kind of each column of a relation, by its type alone: what a schema drafts; "" where there is none."""
    engine = engine_of(where)
    words = {"boolean": "truth", "decimal": "number", "zoned": "timestamp"}
    with engine.snapshot() as run:
        types = _described(lambda: engine.types(run, columns_sql(relation_of(relation), (), engine.dialect)), ())
    return {name: "" if source is None else words.get(source.kind, source.kind) for name, _, source in types}


def _described(types: Callable[[], Any], names: Sequence[str]) -> Any:
    """The types of the columns; a name that is not there is the likeliest reason why there are none."""
    with suppress(SourceUnavailable):
        return types()
    wanted = f", or has no columns {', '.join(map(repr, names[:12]))}" if names else ""
    raise SchemaError(f"the relation cannot be read{wanted}; a schema and its table are named apart")


def _refuse_wrong(domain: Domain, wrong: Sequence[int]) -> None:
    for name, missing, unknown in zip(domain.names, wrong[::2], wrong[1::2], strict=True):
        if missing:
            refuse_missing(domain.column(name), name)
        if unknown:
            raise UndeclaredLevels(name)


# The probe: public values, encoded by the database and by the library.


def _probe(run: Any, coded: Coded, name: str) -> None:
    """Refuse a database whose codes of the declaration's own values, and of values beside them, are not ours."""
    column, source = coded.domain.column(name), coded.sources[name]
    if column.free:
        return
    entries = [None, *_entries(column, source)]
    spelled = [None if each is None else _spelled(each) for each in entries]
    (found,) = run(probe_sql(spelled, column, source, coded.dialect))
    expected = [_strict(each, column, name) for each in entries]
    if [int(each) for each in found] != expected:
        raise SourceUnavailable(
            f"column {name!r}: this database does not encode the declared values as the library does; its text may be "
            "compared without case or accents, or its settings change the meaning of literals"
        )


def _strict(entry: Any, column: Column, name: str) -> int:
    try:
        return int(encode(read([entry], name), column, name)[0])
    except UndeclaredLevels:
        return NO_LEVEL
    except SchemaError:
        return NO_VALUE


def _spelled(entry: Any) -> str:
    if isinstance(entry, datetime):
        return entry.isoformat(sep=" ")
    return str(entry).lower() if isinstance(entry, bool) else f"{entry:f}" if isinstance(entry, Decimal) else str(entry)


def _entries(column: Any, source: SqlSource) -> list[Any]:
    """Entries of this type at and beside what is declared."""
    if source.kind == "boolean":
        return [True, False]
    if column.calendar:
        return _moments(column, source)
    if source.kind == "text":
        levels = [level for level in column.levels if isinstance(level, str)][:_PROBED]
        near = ["", *(text for level in levels for text in _beside(level))]
        return [text for text in dict.fromkeys(near) if "\0" not in text and text.isprintable()]
    digits = source.digits or 0
    if column.categorical:
        levels = [level for level in column.levels if not isinstance(level, str)][:_PROBED]
        units = {int(level) * 10**digits + step for level in levels for step in (-1, 0, 1)}
    else:
        rule = number_rule(column, Fraction(1, 10**digits))
        ends = (rule.first, rule.last, (rule.first + rule.last) // 2)
        units = {end + step for end in ends for step in (-1, 0, 1)}
    least, most = max(source.ends[0], -(2**63)), min(source.ends[1], 2**63 - 1)
    kept = sorted(each for each in {*units, least, most, 0} if least <= each <= most)
    return [Decimal(f"{each}e-{digits}") if source.kind == "decimal" else each for each in kept]


def _beside(level: str) -> list[str]:
    """Texts that a database might take for this one."""
    forms = [unicodedata.normalize(form, level) for form in ("NFC", "NFD", "NFKC")]
    return [level, level.upper(), level.lower(), level.swapcase(), f"{level} ", f" {level}", f"{level}\u0301", *forms]


def _moments(column: Any, source: SqlSource) -> list[Any]:
    """Moments at and beside the ends of a Date or Timestamp, of this type."""
    ends = [datetime(1970, 1, 1) + timedelta(seconds=end) for end in column.ends()]
    near = [timedelta(), timedelta(seconds=1), timedelta(days=1), timedelta(days=40)]
    found = [end + step for end in ends if end.year < 9999 for step in near]
    found += [end - step for end in ends if end.year > 1 for step in near]
    moments = [*dict.fromkeys(found)]
    if source.kind == "date":
        return [*dict.fromkeys(each.date() for each in moments)]
    return [each.replace(tzinfo=UTC) for each in moments] if source.kind == "zoned" else moments
