"""Databases that hold rows: how to reach them, what their columns' types are, one snapshot at a time.

    postgresql://...    a server, by psycopg; a connection of its own for each snapshot
    duckdb:FILE         a DuckDB file, opened for reading, for each snapshot
    a connection        psycopg's, duckdb's, or any of DB-API 2.0 with its dialect (BigQuery, Snowflake, SQL Server)

A snapshot is one transaction that only reads: all statements in it see the same rows. In PostgreSQL it is REPEATABLE
READ READ ONLY. A database that is reached by another DB-API connection gives each statement its own snapshot; there
the declared version is read before and after (`SqlTable`).

Messages of a database can quote values of rows, so of its errors only the type is kept.
"""

from __future__ import annotations

import functools
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from discreet.core import ParameterError, SchemaError, SourceUnavailable, Unproven, quietly
from discreet.data.addresses import DUCKDB, POSTGRES, require_no_password
from discreet.data.files import file_stamp, library
from discreet.data.sql_text import DIALECTS, Coded, Dialect, SqlSource, columns_sql, files_relation, require_source
from discreet.data.tally import Run

Result = TypeVar("Result")
_PATIENT = {"connect_timeout": "10", "keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3"}


def engine_of(where: object, dialect: str | None = None) -> SqlEngine:
    """The database at this address or behind this connection."""
    if isinstance(where, str):
        if where.startswith(POSTGRES):
            return PostgresEngine(where)
        if where.startswith(DUCKDB):
            return DuckEngine(where.removeprefix(DUCKDB))
        raise ParameterError(
            f"a database is reached at {POSTGRES}HOST/DATABASE or {DUCKDB}FILE, or by a connection; found {where!r}"
        )
    module = type(where).__module__.partition(".")[0].lstrip("_")
    if module == "psycopg":
        return PostgresEngine(where)
    if module == "duckdb":
        return DuckEngine(where)
    if not callable(getattr(where, "cursor", None)):
        raise ParameterError(f"a database is an address or a connection, found a {type(where).__name__}")
    if dialect not in DIALECTS:
        raise ParameterError(f"which database is it? dialect must be one of {', '.join(DIALECTS)}; found {dialect!r}")
    return OtherEngine(DIALECTS[dialect], where)


def _asked(work: Callable[[], Result]) -> Result:
    """Of an error of the database only the type survives; the new error has no history that could quote a row."""
    return quietly(work, "the database does not answer", kind=SourceUnavailable)


def _columns(rows: Sequence[Sequence[Any]], width: int) -> list[Sequence[Any]]:
    return [*zip(*rows, strict=True)] if rows else [()] * width


class SqlEngine(ABC):
    """A database, as a table of rows sees it; a connection of its own for each snapshot, unless one was given.

    dialect  how it is spoken to
    path     the file that holds it, if it is one
    """

    path: Path | None = None

    def __init__(self, dialect: Dialect, given: Any) -> None:
        self.dialect, self._given, self._turn = dialect, given, threading.Lock()

    @abstractmethod
    def types(self, run: Any, sql: str) -> list[tuple[str, str, SqlSource | None]]:
        """Of the columns of a statement without rows: what the database calls each, and what it is for us."""

    @abstractmethod
    def _transaction(self, connection: Any) -> Iterator[Run]:
        """A transaction that only reads, with what runs a statement in it."""

    def _connected(self) -> Any:
        raise NotImplementedError

    def stamp(self) -> object:
        """What changes when the file does; None of a server."""
        return None

    @contextmanager
    def snapshot(self) -> Iterator[Run]:
        """One transaction."""
        if self._given is not None:
            with self._turn:
                yield from self._transaction(self._given)
            return
        connection = _asked(self._connected)
        try:
            yield from self._transaction(connection)
        finally:
            connection.close()


class PostgresEngine(SqlEngine):
    """Rows in PostgreSQL 14 or later, whose encoding is UTF8."""

    _BEGIN = (
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        "SET LOCAL standard_conforming_strings = on",
        "SET LOCAL client_encoding = 'UTF8'",
        "SET LOCAL TIME ZONE 'UTC'",
    )

    def __init__(self, where: Any) -> None:
        self._psycopg = library("psycopg", "postgres")
        self._address = require_no_password(where, "database") if isinstance(where, str) else None
        super().__init__(DIALECTS["postgres"], None if self._address is not None else where)

    def _connected(self) -> Any:
        info = self._psycopg.conninfo
        options = {**_PATIENT, **info.conninfo_to_dict(self._address), "application_name": "discreet"}
        return self._psycopg.connect(info.make_conninfo(**options), autocommit=True)

    def _transaction(self, connection: Any) -> Iterator[Run]:
        if connection.info.transaction_status == self._psycopg.pq.TransactionStatus.INTRANS:
            raise ParameterError("the connection is in a transaction: commit it first")
        run, before = functools.partial(self._run, connection), connection.autocommit
        connection.autocommit = True
        try:
            for each in self._BEGIN:
                _asked(functools.partial(connection.execute, each))
            yield run
        finally:
            with suppress(self._psycopg.Error):  # of a server that is gone
                connection.execute("ROLLBACK")
                connection.autocommit = before

    @staticmethod
    def _run(connection: Any, sql: str, *, integers: bool = False) -> list[Sequence[Any]]:
        # A plan that is kept knows the types of yesterday.
        cursor = _asked(lambda: connection.execute(sql, prepare=False))
        return _columns(_asked(cursor.fetchall), len(cursor.description))

    def types(self, run: Any, sql: str) -> list[tuple[str, str, SqlSource | None]]:
        """By the numbers that PostgreSQL has for its types; those of domains are those of what they are made of."""
        (encoding,), (version,) = run(
            "SELECT current_setting('server_encoding'), current_setting('server_version_num')"
        )
        if encoding != "UTF8":
            raise ParameterError(f"the encoding of the database must be UTF8, found {encoding}")
        if int(version) < 140000:
            raise ParameterError(f"PostgreSQL 14 or later is needed, found {version}")
        connection = run.args[0]
        described = _asked(lambda: connection.execute(sql, prepare=False)).description
        return [(each.name, each.type_display, _POSTGRES.get(each.type_code)) for each in described]


_POSTGRES = {
    **{number: SqlSource("whole", 0, (-(2**bits), 2**bits - 1)) for number, bits in ((21, 15), (23, 31), (20, 63))},
    **{16: SqlSource("boolean"), 1700: SqlSource("decimal", None), 25: SqlSource("text"), 1043: SqlSource("text")},
    **{1082: SqlSource("date"), 1114: SqlSource("timestamp"), 1184: SqlSource("zoned")},
}
"""char(n) is not among them: it is compared without the spaces at its end, and read with them."""


class DuckEngine(SqlEngine):
    """Rows in DuckDB: a file that is opened for reading, or a connection."""

    def __init__(self, where: Any) -> None:
        self._duckdb = library("duckdb", "sql")
        self.path = Path(where).resolve() if isinstance(where, str) else None
        super().__init__(DIALECTS["duckdb"], None if self.path is not None else where)
        if self.path is not None and not self.path.is_file():
            raise ParameterError(f"there is no DuckDB file {self.path.name!r}")

    def stamp(self) -> object:
        """Size and times of the file, and of the log beside it."""
        if self.path is None:
            return None
        return file_stamp(self.path), file_stamp(self.path.with_name(self.path.name + ".wal"))

    def _connected(self) -> Any:
        off = ("autoinstall_known_extensions", "autoload_known_extensions", "python_enable_replacements")
        settings = dict.fromkeys((*off, "enable_external_access"), False)
        return self._duckdb.connect(str(self.path), read_only=True, config=settings)

    def _transaction(self, connection: Any) -> Iterator[Run]:
        _asked(lambda: connection.execute("BEGIN TRANSACTION"))
        try:
            yield functools.partial(_duckdb_run, connection)
        finally:
            with suppress(self._duckdb.Error):
                connection.execute("ROLLBACK")

    def types(self, run: Any, sql: str) -> list[tuple[str, str, SqlSource | None]]:
        """By the names of DuckDB's types."""
        return duckdb_types(run, sql)


def _duckdb_run(connection: Any, sql: str, *, integers: bool = False) -> list[Sequence[Any]]:
    return _asked(lambda: duckdb_columns(connection, sql, integers=integers))


def duckdb_columns(connection: Any, sql: str, *, integers: bool = False) -> list[Sequence[Any]]:
    """The columns of an answer; numpy's arrays where all are 64-bit integers, for they hold no longer ones."""
    found = connection.execute(sql)
    if integers:
        return [*found.fetchnumpy().values()]
    width = len(found.description)
    return _columns(found.fetchall(), width)


def duckdb_types(run: Run, sql: str) -> list[tuple[str, str, SqlSource | None]]:
    """The names, types and sources of the columns of a statement."""
    names, types, *_ = run(f"DESCRIBE {sql}")
    return [(name, kind, _duckdb_source(kind)) for name, kind in zip(names, types, strict=True)]


def coded_files(connection: Any, patterns: Sequence[str], domain: Any, staged: Mapping[str, str] | None) -> Coded:
    """Parquet files in DuckDB, with the columns that it encodes exactly; the others are read row by row.

    staged  in which columns of the files the codes are
    """
    speech, run = DIALECTS["duckdb"], functools.partial(duckdb_columns, connection)
    relation = files_relation(patterns, staged)
    sources: dict[str, SqlSource] = {}
    for name, kind, source in duckdb_types(run, columns_sql(relation, domain.names, speech)):
        if staged is not None and not domain.column(name).free:
            sources[name] = SqlSource("code")
            continue
        with suppress(Unproven, SchemaError):
            found = require_source(name, domain.column(name), source, speech, kind)
            Coded(relation, domain, {name: found}, speech).codes((name,))  # a grid may be too fine for SQL
            sources[name] = found
    coded = Coded(relation, domain, sources, speech)
    if any(int(each[0]) for each in run(coded.ingest())[1:]):
        raise SchemaError("duckdb does not read all entries as the library does")
    return coded


def _duckdb_source(kind: str) -> SqlSource | None:
    if match := re.fullmatch(r"(U?)(TINY|SMALL|BIG|HUGE|)INT(?:EGER)?", kind):
        bits = {"TINY": 8, "SMALL": 16, "": 32, "BIG": 64, "HUGE": 128}[match[2]]
        return SqlSource("whole", 0, (0, 2**bits - 1) if match[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1))
    if match := re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", kind):
        most = 10 ** int(match[1]) - 1
        return SqlSource("decimal", int(match[2]), (-most, most))
    plain = {"BOOLEAN": "boolean", "VARCHAR": "text", "DATE": "date", "TIMESTAMP": "timestamp"}
    plain["TIMESTAMP WITH TIME ZONE"] = "zoned"
    return SqlSource("text") if kind.startswith("ENUM(") else SqlSource(plain[kind]) if kind in plain else None


class OtherEngine(SqlEngine):
    """A connection of DB-API 2.0: statements one after the other, each with a snapshot of its own. They are written and
    checked as text; no such database is in the tests."""

    def _transaction(self, connection: Any) -> Iterator[Run]:
        cursor = _asked(connection.cursor)
        try:
            yield functools.partial(self._run, cursor)
        finally:
            cursor.close()

    @staticmethod
    def _run(cursor: Any, sql: str, *, integers: bool = False) -> list[Sequence[Any]]:
        _asked(lambda: cursor.execute(sql))
        return _columns(_asked(cursor.fetchall), len(cursor.description))

    def types(self, run: Any, sql: str) -> list[tuple[str, str, SqlSource | None]]:
        """By what the driver says about the columns of an answer."""
        cursor = run.args[0]
        _asked(lambda: cursor.execute(sql))
        return [(each[0], *_driver_type(each, self.dialect.name)) for each in cursor.description]


def _driver_type(described: Sequence[Any], dialect: str) -> tuple[str, SqlSource | None]:
    """BigQuery's driver names types, Snowflake's numbers them, those of SQL Server give Python's."""
    kind, precision, scale = described[1], described[4], described[5]
    name = kind.__name__ if isinstance(kind, type) else str(kind)
    found = _DRIVERS[dialect].get(name)
    if found is None:
        return name, None
    if found.kind == "decimal" and found.ends == (0, 0):
        digits, most = int(scale or 0), 10 ** int(precision or 38) - 1
        wide = dialect == "tsql" and digits > 6  # SQL Server would cut their products
        return name, None if wide else SqlSource("decimal" if digits else "whole", digits, (-most, most))
    return name, found


def _plain(**kinds: str) -> dict[str, SqlSource]:
    return {name: SqlSource(kind) for kind, names in kinds.items() for name in names.split()}


_SCALED, _NUMERIC = SqlSource("decimal", 0, (0, 0)), SqlSource("decimal", 9, (-(10**38) + 1, 10**38 - 1))
_BIGQUERY = {"whole": "INTEGER INT64", "boolean": "BOOLEAN BOOL", "text": "STRING", "date": "DATE"}
_DRIVERS: Mapping[str, Mapping[str, SqlSource]] = {
    "bigquery": {**_plain(**_BIGQUERY, timestamp="DATETIME", zoned="TIMESTAMP"), "NUMERIC": _NUMERIC},
    "snowflake": {**_plain(text="2", date="3", timestamp="8", boolean="13"), "0": _SCALED},
    "tsql": {**_plain(whole="int", boolean="bool", text="str", date="date", timestamp="datetime"), "Decimal": _SCALED},
    **{"duckdb": {}, "postgres": {}},
}
