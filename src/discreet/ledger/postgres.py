"""Entries in PostgreSQL: one database for many ledgers, several processes at once. Only this module knows psycopg.

*Two fences.* A write transaction first waits for the ledger's advisory lock, which it holds to its end, so writers
queue up and each sees all entries before its own; default transactions read first and lock later, and measurably
overspend. A writer without the lock meets PRIMARY KEY (ledger, seq): the chain cannot fork.

*Durable.* Every session sets synchronous_commit = on, whatever its role's default is, and refuses a server without
fsync or full_page_writes, unless the ledger is for testing. A commit is durable when it returns, so `sync` has nothing
to do.

*A commit whose reply is lost* is decided by looking: a new connection waits for the lock, which the old transaction
gives back when it ends, and then the entry is there or will never be. If there is no new connection within a few
seconds, nothing is released, and the charge is burned with the next write if it is there.

*Append-only.* A trigger refuses UPDATE, DELETE and TRUNCATE on entries, to superusers too; the role of writers has the
rights to SELECT and INSERT alone. A superuser who drops the trigger can still put an earlier state back: the mark,
which lies on the host that writes, notices.

*Who is alive.* Each process holds a shared session lock named by a random instance, and its charges name the instance.
On the same host the process itself is looked for (process.py). A charge of another host counts as orphaned once nobody
holds the lock of its instance: the server frees it when the session ends, whatever ended it.

*On this host.* The mark, the session lock and the secret states of conversations are files in the state directory:
they are in no backup and no replica of the database. A ledger is therefore written from one host at a time
(`one_mark`).

Connections do not cross a fork: each process has its own, and it is closed before a fork.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import secrets
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.core import LedgerCorrupt, LedgerUnavailable, ParameterError
from discreet.data import Database, Dataset, GrowingTable, Identity
from discreet.ledger.address import Address
from discreet.ledger.local import FileTurns, SecretFile
from discreet.ledger.mark import mark_file
from discreet.ledger.opening import new_store
from discreet.ledger.place import Look, Parts
from discreet.ledger.process import gone, this_process
from discreet.ledger.state import Body, Row

if TYPE_CHECKING:
    import psycopg

WRITER, AUDITOR = "discreet_writer", "discreet_auditor"
"""The roles that `SCHEMA` makes: for accounts that charge a ledger, and for accounts that look at one."""

SCHEMA = f"""
CREATE SCHEMA IF NOT EXISTS discreet;
CREATE TABLE IF NOT EXISTS discreet.entries(
    ledger text COLLATE "C" NOT NULL, seq bigint NOT NULL, kind text NOT NULL, request bytea, charge bigint,
    body text NOT NULL, hash text NOT NULL, meaning text, PRIMARY KEY (ledger, seq));
CREATE UNIQUE INDEX IF NOT EXISTS by_request ON discreet.entries(ledger, request)
    WHERE request IS NOT NULL AND kind = 'charge';
CREATE INDEX IF NOT EXISTS by_charge ON discreet.entries(ledger, charge) WHERE charge IS NOT NULL;
CREATE INDEX IF NOT EXISTS by_meaning ON discreet.entries(ledger, meaning) WHERE meaning IS NOT NULL;
CREATE INDEX IF NOT EXISTS by_kind ON discreet.entries(ledger, kind, seq);
CREATE TABLE IF NOT EXISTS discreet.held(
    ledger text COLLATE "C" NOT NULL, digest text NOT NULL, text text NOT NULL, PRIMARY KEY (ledger, digest));
CREATE TABLE IF NOT EXISTS discreet.kept(
    ledger text COLLATE "C" NOT NULL, name text NOT NULL, text text NOT NULL, PRIMARY KEY (ledger, name));
CREATE OR REPLACE FUNCTION discreet.refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'a ledger is append-only'; END $$;
CREATE OR REPLACE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON discreet.entries
    FOR EACH STATEMENT EXECUTE FUNCTION discreet.refuse();
CREATE OR REPLACE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON discreet.held
    FOR EACH STATEMENT EXECUTE FUNCTION discreet.refuse();
ALTER TABLE discreet.entries ENABLE ALWAYS TRIGGER append_only;
ALTER TABLE discreet.held ENABLE ALWAYS TRIGGER append_only;
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{WRITER}') THEN CREATE ROLE {WRITER} NOLOGIN; END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{AUDITOR}') THEN CREATE ROLE {AUDITOR} NOLOGIN; END IF;
END $$;
GRANT USAGE ON SCHEMA discreet TO {WRITER}, {AUDITOR};
GRANT SELECT ON discreet.entries, discreet.held, discreet.kept TO {WRITER}, {AUDITOR};
GRANT INSERT ON discreet.entries, discreet.held TO {WRITER};
GRANT INSERT, UPDATE ON discreet.kept TO {WRITER};
"""
"""What the owner of a database runs once. It may be run again, and changes no entry."""

_SESSION = """
SET synchronous_commit = on; SET lock_timeout = '60s'; SET statement_timeout = 0; SET search_path = pg_catalog;
SET idle_in_transaction_session_timeout = 0; SET idle_session_timeout = 0; SELECT pg_advisory_lock_shared({instance})
"""
_SERVER = """
SELECT current_setting('fsync'), current_setting('full_page_writes'),
    (SELECT relpersistence FROM pg_class WHERE oid = to_regclass('discreet.entries'))
"""
_TRIGGER = "SELECT count(*) FROM pg_trigger WHERE tgname = 'append_only' AND tgenabled = 'A' AND tgrelid = ANY(%s)"
_MEANINGS = """
SELECT seq, meaning, body FROM discreet.entries WHERE ledger = %s AND kind = 'said' AND seq > %s ORDER BY seq LIMIT 1000
"""
_LOOK = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT pg_advisory_xact_lock({lock})"
_COLUMNS = "seq, kind, request, charge, body, hash"
_OLDEST = 140000
_PATIENT = {
    **{"connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3},
    "tcp_user_timeout": 60_000,
}  # libpq's options unless the address has others: a server that vanished without a word is noticed in about a minute
_PATIENCE = 10.0  # seconds in which a lost connection must be replaced to learn whether its commit arrived


def lock_key(purpose: str, name: str) -> int:
    """The advisory lock of this purpose and name: locks are numbers of 64 bits, and belong to one database."""
    digest = hashlib.sha256(f"discreet {purpose} {name}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def init_postgres(server: str) -> None:
    """Make schema, tables, triggers and roles in a database, as `SCHEMA` says; nothing that is there is changed."""
    with _postgres_errors(), _connect(server) as connection, connection.transaction():
        connection.execute(SCHEMA)


# Transactions.


@dataclass(slots=True)
class _ServerSession:
    """What one process holds of a place.

    instance  the random name under which this process is known to others
    unsafe    what the server does not wait for: a ledger that is not for testing is not written there
    """

    instance: str = field(default_factory=lambda: secrets.token_hex(16))
    connection: psycopg.Connection[Any] | None = None
    unsafe: str = ""


class PostgresPlace:
    """The entries of one ledger in a database, as `place.Place`."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._lock = lock_key("ledger", address.name)
        self._homes: dict[int, _ServerSession] = {}
        weakref.finalize(self, _let_go, self._homes)

    @property
    def durable(self) -> bool:
        return True

    @property
    def writable(self) -> bool:
        """Whether the role of this process may add entries."""
        with _postgres_errors():
            may = "SELECT has_table_privilege('discreet.entries', 'INSERT') AND NOT pg_is_in_recovery()"
            return bool(_one(self._connected(), may))

    @contextmanager
    def look(self) -> Iterator[PostgresRows]:
        """One snapshot, taken when the first row is read."""
        with _postgres_errors(), self._transaction(_LOOK) as rows:
            yield rows

    @contextmanager
    def write(self) -> Iterator[PostgresRows]:
        """The only writer; committed on leaving the block, undone by an error."""
        with _postgres_errors(), self._transaction(_WRITE.format(lock=self._lock)) as rows:
            rows.require_safe(rows.row(1) if rows.unsafe else None)
            yield rows
            self._commit(rows)

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[PostgresRows]:
        """One transaction; what its block has not committed is undone. A session that ended while idle is replaced."""
        connection = self._connected()
        _undo(connection)  # what an interrupt may have left open
        try:
            try:
                connection.execute(begin)
            except _psycopg().OperationalError:
                if not connection.closed:
                    raise
                connection = self._connected()
                connection.execute(begin)
            yield PostgresRows(connection, self.address.name, self._home().unsafe)
        finally:
            _undo(connection)

    def _commit(self, rows: PostgresRows) -> None:
        try:
            done = rows.connection.execute("COMMIT").statusmessage
        except _psycopg().OperationalError:
            rows.connection.close()  # so that the transaction ends, and its own view of the entries is not asked
            if rows.last is None or not self._arrived(rows.last):
                raise
        else:
            if done != "COMMIT":
                raise LedgerUnavailable("PostgreSQL undid the transaction: nothing was released")

    def _arrived(self, row: Row) -> bool:
        """Whether a commit whose reply was lost is in the ledger, decided under the lock that it held."""
        last = time.monotonic() + _PATIENCE
        while True:
            try:
                with self._transaction(_WRITE.format(lock=self._lock)) as rows:
                    found = rows.row(row.seq)
                return found is not None and found.hash == row.hash
            except (_psycopg().OperationalError, LedgerUnavailable):
                if time.monotonic() > last:
                    return False
            time.sleep(0.1)

    def sync(self) -> None:
        """Nothing: a commit is durable when it returns."""

    def check(self, look: Look) -> None:
        """The triggers that refuse changes, and the column that repeats the meanings of sayings."""
        with _postgres_errors():
            connection = self._connected()
            tables = [_one(connection, f"SELECT 'discreet.{name}'::regclass::oid") for name in ("entries", "held")]
            if _one(connection, _TRIGGER, tables) != len(tables):
                raise LedgerCorrupt(None, "the triggers that refuse changes of entries", "none, or disabled ones")
            last = 0
            while found := connection.execute(_MEANINGS, (self.address.name, last)).fetchall():
                for last, meaning, body in found:
                    if meaning != _meaning_hash(json.loads(body)["meaning"]).encode("ascii"):
                        raise LedgerCorrupt(last, "columns equal to the body", "columns that differ from it")

    # Connections.

    def close(self) -> None:
        """Close this process's connection; the next use opens it again."""
        _let_go(self._homes)

    def rest(self) -> None:
        """Close the connection, if no transaction is open; the next use opens it again."""
        home = self._homes.get(os.getpid())
        if home is not None and home.connection is not None and not home.connection.info.transaction_status:
            _let_go(self._homes)

    def _home(self) -> _ServerSession:
        return self._homes.setdefault(os.getpid(), _ServerSession())

    def _connected(self) -> psycopg.Connection[Any]:
        home = self._home()
        if home.connection is None or home.connection.closed:
            connection = _connect(self.address.server)
            try:
                connection.execute(_SESSION.format(instance=lock_key("instance", home.instance)))
                home.unsafe = _unsafe(connection)
            except BaseException:
                connection.close()
                raise
            home.connection = connection
        return home.connection

    # Who is alive.

    def name(self) -> dict[str, Any]:
        """This process, as `place.Alive`: for its own host, and by its instance for others."""
        return {**this_process(), "instance": self._home().instance}

    def gone(self, process: dict[str, Any]) -> bool:
        """Whether the process of a charge has certainly ended, or lost its connection on another host."""
        here, instance = this_process(), process.get("instance")
        if here["boot"] is not None and all(here[each] == process[each] for each in ("boot", "space")):
            return gone(process)
        if instance is None or instance == self._home().instance:
            return False
        with _postgres_errors():
            take = "SELECT pg_try_advisory_xact_lock(%s)"
            return bool(_one(self._connected(), take, lock_key("instance", str(instance))))


class PostgresRows:
    """The rows of one transaction.

    last  the last entry that was added
    """

    def __init__(self, connection: psycopg.Connection[Any], ledger: str, unsafe: str) -> None:
        self.connection, self.unsafe = connection, unsafe
        self.last: Row | None = None
        self._ledger = ledger

    def rows(self, *, after: int, limit: int) -> list[Row]:
        return self._rows("seq > %s ORDER BY seq LIMIT %s", after, limit)

    def row(self, seq: int) -> Row | None:
        return next(iter(self._rows("seq = %s", seq)), None)

    def first(self) -> int | None:
        found = _one(self.connection, "SELECT min(seq) FROM discreet.entries WHERE ledger = %s", self._ledger)
        return None if found is None else int(found)

    def requested(self, request: str) -> int | None:
        found = self._rows("request = %s AND kind = 'charge'", request.encode("utf-8"))
        return found[0].seq if found else None

    def end(self, charge: int) -> Row | None:
        return next(iter(self._rows("charge = %s", charge)), None)  # entries that name a charge end it

    def said(self, meaning: str) -> list[int]:
        return [row.seq for row in self._rows("meaning = %s ORDER BY seq DESC", _meaning_hash(meaning))]

    def latest(self, kind: str, limit: int, before: int) -> list[Row]:
        return self._rows("kind = %s AND seq < %s ORDER BY seq DESC LIMIT %s", kind, before, limit)

    def count(self, kind: str) -> int:
        counted = "SELECT count(*) FROM discreet.entries WHERE ledger = %s AND kind = %s"
        return int(_one(self.connection, counted, self._ledger, kind))

    def kept(self, name: str) -> str | None:
        return self._text_in("kept", "name", name)

    def held(self, digest: str) -> str | None:
        return self._text_in("held", "digest", digest)

    def append(self, row: Row) -> None:
        if row.seq == 1:
            self.require_safe(row)
        meaning = _meaning_hash(json.loads(row.body)["meaning"]) if row.kind == b"said" else None
        texts = [each.decode("ascii") for each in (row.kind, row.body, row.hash)]
        columns = (self._ledger, row.seq, texts[0], row.request, row.charge, texts[1], texts[2], meaning)
        into = f"discreet.entries(ledger, {_COLUMNS}, meaning)"
        self.connection.execute(f"INSERT INTO {into} VALUES (%s, %s, %s, %s, %s, %s, %s, %s)", columns)
        self.last = row

    def hold(self, digest: str, text: str) -> None:
        into = "discreet.held(ledger, digest, text) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
        self.connection.execute(f"INSERT INTO {into}", (self._ledger, digest, text))

    def keep(self, name: str, text: str) -> None:
        into = "discreet.kept(ledger, name, text) VALUES (%s, %s, %s)"
        again = "ON CONFLICT (ledger, name) DO UPDATE SET text = excluded.text"
        self.connection.execute(f"INSERT INTO {into} {again}", (self._ledger, name, text))

    def require_safe(self, opening: Row | None) -> None:
        """LedgerUnavailable if the server does not wait for the disk and the opening is not of a testing ledger."""
        if self.unsafe and opening is not None and json.loads(opening.body)["testing"] is not True:
            raise LedgerUnavailable(f"{self.unsafe}: what it commits may be lost, so no ledger is written there")

    def _text_in(self, table: str, key: str, value: str) -> str | None:
        wanted = f"SELECT text FROM discreet.{table} WHERE ledger = %s AND {key} = %s"
        found = _one(self.connection, wanted, self._ledger, value)
        return None if found is None else str(found, "utf-8")

    def _rows(self, where: str, *arguments: object) -> list[Row]:
        wanted = f"SELECT {_COLUMNS} FROM discreet.entries WHERE ledger = %s AND {where}"
        return list(map(Row._make, self.connection.execute(wanted, (self._ledger, *arguments))))


def _meaning_hash(meaning: str) -> str:
    """What stands for a saying's meaning in its column, which has an index: a meaning may be long."""
    return hashlib.sha256(meaning.encode("utf-8")).hexdigest()


# The ledger as a whole.


@dataclass(frozen=True, slots=True)
class PostgresSite:
    """An address and the state directory of this host, as `place.Site`."""

    where: Address
    state_dir: Path

    def exists(self) -> bool:
        place = PostgresPlace(self.where)
        try:
            with place.look() as rows:
                return rows.first() is not None
        finally:
            place.close()

    def parts(self, *, look: bool = False) -> Parts:
        place = PostgresPlace(self.where)
        turns = hashlib.sha256(str(self.where).encode()).hexdigest()[:32]
        return Parts(
            place=place,
            witness=partial(mark_file, self.state_dir),
            alive=place,
            turns=FileTurns(self.state_dir / "turns" / turns),
            secrets=lambda ledger_id: SecretFile(mark_file(self.state_dir, ledger_id).path),
            path=self.where,
            state_dir=self.state_dir,
            one_mark=True,
        )

    def build(self, opening: Body, table: Dataset | Database | GrowingTable | Identity, now: Callable[[], str]) -> None:
        new_store(self.parts(), opening, table, now).close()

    def discard(self) -> None:
        """Nothing: entries are never deleted. A ledger without charges promises nothing to anybody."""


# Connections and their errors.


def _psycopg() -> Any:
    try:
        return importlib.import_module("psycopg")
    except ImportError:
        raise ParameterError("a ledger in PostgreSQL needs psycopg: pip install discreet[postgres]") from None


def _connect(server: str) -> psycopg.Connection[Any]:
    library = _psycopg()
    try:
        given = library.conninfo.conninfo_to_dict(server)
    except library.ProgrammingError as error:
        raise ParameterError(f"the address of the ledger cannot be read: {_first_line(error)}") from None
    wanted = {**_PATIENT, "application_name": "discreet", **given, "client_encoding": "UTF8"}
    connection: psycopg.Connection[Any] = library.connect(**wanted, autocommit=True)
    if connection.info.server_version < _OLDEST:
        connection.close()
        raise LedgerUnavailable(f"a ledger needs PostgreSQL {_OLDEST // 10000} or later")
    connection.adapters.register_loader("text", _text_as_bytes())  # a damaged table may hold what is not ours
    return connection


def _text_as_bytes() -> type:
    class TextAsBytes(_psycopg().adapt.Loader):  # type: ignore[misc]
        def load(self, data: Any) -> bytes:
            return bytes(data)

    return TextAsBytes


def _unsafe(connection: psycopg.Connection[Any]) -> str:
    """What the server does not wait for, or nothing; ParameterError if it has no tables of ours."""
    ((fsync, pages, persistence),) = connection.execute(_SERVER).fetchall()
    if persistence is None:
        raise ParameterError(
            "this database has no tables for ledgers: its owner makes them by `discreet ledger init-postgres ADDRESS`"
        )
    wrong = [f"{name} = off" for name, held in (("fsync", fsync), ("full_page_writes", pages)) if held != b"on"]
    wrong += [] if persistence in (b"p", "p") else ["an unlogged table of entries"]
    return f"this PostgreSQL does not wait for its disk ({', '.join(wrong)})" if wrong else ""


def _one(connection: psycopg.Connection[Any], query: str, *arguments: object) -> Any:
    """The first column of the first row; None if there is no row."""
    found = connection.execute(query, arguments).fetchone()
    return None if found is None else found[0]


def _undo(connection: psycopg.Connection[Any]) -> None:
    """End what is open of a transaction, with its locks; a session in an unknown state is not used again."""
    if not connection.closed and connection.info.transaction_status:  # anything but idle
        try:
            connection.execute("ROLLBACK")
        except BaseException:
            connection.close()
            raise


def _let_go(homes: dict[int, _ServerSession]) -> None:
    """Close what this process opened; after a fork the parent's connection is not ours to close."""
    home = homes.get(os.getpid())
    if home is not None and home.connection is not None:
        home.connection.close()
        home.connection = None


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split("\n")[0].split()) or type(error).__name__


@contextmanager
def _postgres_errors() -> Iterator[None]:
    """An error of PostgreSQL's as ours: the ledger cannot be used now, or its tables are not what we made."""
    psycopg = _psycopg()
    errors = psycopg.errors
    try:
        yield
        return
    except (errors.UniqueViolation, errors.RaiseException):
        trouble = "another program writes to it without its lock"
    except errors.LockNotAvailable:
        trouble = "another process holds its lock"
    except (errors.ReadOnlySqlTransaction, errors.FeatureNotSupported):
        trouble = "this server is a standby, which is only read"
    except (psycopg.OperationalError, errors.InsufficientPrivilege) as error:
        trouble = _first_line(error)
    except psycopg.Error as error:
        raise LedgerCorrupt(None, "the tables of a ledger", _first_line(error)) from None
    raise LedgerUnavailable(f"the ledger cannot be used now: {trouble}; nothing was released")
