"""Entries in one SQLite file, or in memory.

WAL mode. Every write transaction is BEGIN IMMEDIATE, so writers queue up and each sees all entries before its own;
default transactions read first and lock later, and measurably overspend. A commit is not durable by itself
(synchronous=NORMAL): `sync` makes the log durable for every commit before it. In WAL mode this is sufficient, because a
checkpoint syncs the log before it copies pages, and the file before the log is reused.

SQLite up to 3.51.2 can lose pages if one connection commits while another resets the log (sqlite.org/wal.html). This
cannot happen under one mark: commits, and the checkpoints that they start, run inside the lock of <id>.turns.

Each process has its own connection, and connections are closed before a fork. A ledger in memory belongs to the process
that made it; a fork of it would be a second budget, so it is refused there.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
import threading
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from glob import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from discreet.errors import LedgerCorrupt, LedgerRolledBack, LedgerUnavailable, ParameterError
from discreet.ledger.durable import os_errors, refuse_strangers, remove, sync_path
from discreet.ledger.place import Look
from discreet.ledger.state import Row, printable

BUSY_SECONDS = 60.0
_OLDEST = (3, 35, 0)
_COLUMNS = "seq, kind, request, charge, body, hash"
_TABLES = {
    "entries": "TABLE entries(seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, request TEXT, charge INTEGER, "
    "body TEXT NOT NULL, hash TEXT NOT NULL)",
    "held": "TABLE held(digest TEXT PRIMARY KEY, text TEXT NOT NULL)",
    "kept": "TABLE kept(name TEXT PRIMARY KEY, text TEXT NOT NULL)",
    "by_request": "UNIQUE INDEX by_request ON entries(request) WHERE request IS NOT NULL AND kind = 'charge'",
    "by_charge": "INDEX by_charge ON entries(charge) WHERE charge IS NOT NULL",
    "by_meaning": "INDEX by_meaning ON entries(json_extract(body, '$.meaning')) WHERE kind = 'said'",
    "by_kind": "INDEX by_kind ON entries(kind, seq)",
}
# SQLite's result codes that say "not now": permission, busy, locked, memory, read-only, interrupted, i/o, full, cannot
# open, protocol, too big. Anything else, while our fixed statements run, means that the file is not what we wrote.
_NOT_NOW = frozenset((3, 5, 6, 7, 8, 9, 10, 13, 14, 15, 18))
_sync_data = getattr(os, "fdatasync", os.fsync)


@dataclass(slots=True)
class _Connection:
    """What one process holds of a place: its connection, the files it was opened on, and the log's descriptor.

    whole     the file has all tables
    unsynced  a sync has failed: what was written before may be lost
    """

    connection: sqlite3.Connection | None = None
    files: list[int | None] = field(default_factory=list)
    log: int | None = None
    whole: bool = False
    unsynced: bool = False
    guard: Any = field(default_factory=threading.Lock)  # the log is not closed while it is being synced


class SqlitePlace:
    """The entries of one ledger, in a file or (path None) in memory."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._names = () if path is None else (str(path), f"{path}-wal")
        self._owner, self._closed = os.getpid(), False
        self._homes: dict[int, _Connection] = {}
        weakref.finalize(self, _let_go, self._homes)

    @property
    def durable(self) -> bool:
        return self.path is not None

    @property
    def writable(self) -> bool:
        return True

    # Transactions.

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[SqliteRows]:
        """One transaction; what its block has not committed is undone."""
        with _sqlite_errors():
            connection = self._connected()
            if connection.in_transaction:
                connection.execute("ROLLBACK")  # what an interrupt may have left open
            try:
                connection.execute(begin)
                yield SqliteRows(connection)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def look(self) -> AbstractContextManager[SqliteRows]:
        """One snapshot."""
        return self._transaction("BEGIN")

    @contextmanager
    def write(self) -> Iterator[SqliteRows]:
        """The only writer; committed on leaving the block, undone by an error."""
        home = self._home()
        with self._transaction("BEGIN IMMEDIATE") as rows:
            if not home.whole:  # a new ledger, or one of an earlier version
                here = _tables(rows.connection)
                for made in (made for name, made in _TABLES.items() if name not in here):
                    rows.connection.execute(f"CREATE {made}")
            yield rows
            rows.connection.execute("COMMIT")
        home.whole = True
        self._check_files(home)

    def sync(self) -> None:
        """Make every earlier commit durable.

        The log's descriptor stays open, so that the system reports a failed write of an earlier commit here. After a
        failure every sync fails until the file is opened again.
        """
        home = self._home()
        try:
            with home.guard:
                if home.unsynced:
                    raise OSError(0, "an earlier write was lost")
                if home.log is not None:
                    _sync_data(home.log)
                elif self.path is not None:  # the connection was closed after the commit, for example before a fork
                    # If there is no log, the last connection that closed has copied it into the file and synced that.
                    with contextlib.suppress(FileNotFoundError), open(f"{self.path}-wal", "rb+", buffering=0) as log:
                        _sync_data(log.fileno())
        except OSError as error:
            home.unsynced = True
            raise _unusable(error) from None

    def check(self, look: Look) -> None:
        """SQLite's own checks."""
        with _sqlite_errors():
            faults = [printable(row[0]) for row in self._connected().execute("PRAGMA integrity_check")]
        if faults != ["ok"]:
            raise LedgerCorrupt(None, "a sound SQLite file", "; ".join(faults[:3]))

    # Files.

    def create(self) -> None:
        """Make the file, readable by its owner only, with empty tables."""
        if self.path is not None:
            if not self.path.parent.is_dir():
                raise ParameterError(f"there is no folder {str(self.path.parent)!r} for a ledger")
            with os_errors(f"{self.path.name} cannot be created"):
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        with self.write():
            pass

    def publish(self, path: Path) -> None:
        """Give a new ledger its name: it was not there before, and is whole and durable from now on."""
        assert self.path is not None
        with _sqlite_errors():
            ((busy, left, _),) = self._connected().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.close()
        if busy or left or os.path.exists(f"{self.path}-wal"):  # its log has another name, and would be lost
            raise LedgerUnavailable(f"{path.name} cannot be created: its log could not be emptied")
        with os_errors(f"{path.name} cannot be created"):
            sync_path(self.path)
            try:
                os.link(self.path, path)
            except FileExistsError:
                raise ParameterError(f"{path.name} exists already; Ledger.open opens a ledger") from None
            remove(self.path)
            sync_path(path.parent)

    def discard(self) -> None:
        """Remove the files of a ledger whose creation failed."""
        self.close()
        for suffix in ("", "-wal", "-shm") if self.path is not None else ():
            remove(Path(f"{self.path}{suffix}"))

    # Connections.

    def close(self) -> None:
        """Close this process's connection; the next use opens it again. In memory everything is forgotten."""
        _let_go(self._homes)
        self._homes.pop(os.getpid(), None)
        self._closed = True

    def rest(self) -> None:
        """Close the connection to the file, if no transaction is open; the next use opens it again."""
        home = self._homes.get(os.getpid())
        open_now = home is not None and home.connection is not None and home.connection.in_transaction
        if self.path is not None and not open_now:
            _let_go(self._homes)

    def _home(self) -> _Connection:
        if self.path is None and os.getpid() != self._owner:
            raise LedgerUnavailable("a ledger in memory belongs to the process that made it; use one in a file")
        if self.path is None and self._closed:
            raise LedgerUnavailable("this ledger in memory was closed: it is gone")
        pid = os.getpid()
        home = self._homes.get(pid)
        return self._homes.setdefault(pid, _Connection()) if home is None else home

    def _connected(self) -> sqlite3.Connection:
        """The connection, as long as the files it was opened on are the ones that lie there."""
        home = self._home()
        if home.connection is None:
            if self.path is not None:
                _check_name(self.path)
            connection = _connect(self.path)
            if self.path is not None:
                try:
                    home.log = os.open(f"{self.path}-wal", os.O_RDWR | os.O_CLOEXEC)
                except OSError as error:  # without it nothing is durable
                    connection.close()
                    raise _unusable(error) from None
            home.connection, home.files = connection, [_inode(name) for name in self._names]
            home.whole = home.unsynced = False
        self._check_files(home)
        return home.connection

    def _check_files(self, home: _Connection) -> None:
        if [_inode(name) for name in self._names] != home.files:
            raise LedgerRolledBack(None, "the files that were opened", "others in their place (open the ledger again)")


class SqliteRows:
    """The rows of one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def rows(self, *, after: int, limit: int) -> list[Row]:
        return self._rows("WHERE seq > ? ORDER BY seq LIMIT ?", after, limit)

    def row(self, seq: int) -> Row | None:
        return next(iter(self._rows("WHERE seq = ?", seq)), None)

    def first(self) -> int | None:
        ((found,),) = self.connection.execute("SELECT min(seq) FROM entries")
        return None if found is None else int(found)

    def requested(self, request: str) -> int | None:
        found = self._rows("WHERE request = ? AND kind = 'charge'", request)
        return found[0].seq if found else None

    def end(self, charge: int) -> Row | None:
        return next(iter(self._rows("WHERE charge = ?", charge)), None)  # entries that name a charge end it

    def said(self, meaning: str) -> list[int]:
        where = "WHERE kind = 'said' AND json_extract(body, '$.meaning') = ? ORDER BY seq DESC"
        return [int(each) for (each,) in self.connection.execute(f"SELECT seq FROM entries {where}", (meaning,))]

    def latest(self, kind: str, limit: int, before: int) -> list[Row]:
        return self._rows("WHERE kind = ? AND seq < ? ORDER BY seq DESC LIMIT ?", kind, before, limit)

    def count(self, kind: str) -> int:
        ((found,),) = self.connection.execute("SELECT count(*) FROM entries WHERE kind = ?", (kind,))
        return int(found)

    def kept(self, name: str) -> str | None:
        return self._text_in("kept", "name", name)

    def held(self, digest: str) -> str | None:
        return self._text_in("held", "digest", digest)

    def _text_in(self, table: str, key: str, value: str) -> str | None:
        if table not in _tables(self.connection):  # a ledger of an earlier version
            return None
        found = self.connection.execute(f"SELECT text FROM {table} WHERE {key} = ?", (value,)).fetchone()
        return None if found is None else printable(found[0])

    def append(self, row: Row) -> None:
        texts = [None if each is None else each.decode("utf-8") for each in (row.kind, row.request, row.body, row.hash)]
        columns = (row.seq, texts[0], texts[1], row.charge, texts[2], texts[3])
        self.connection.execute(f"INSERT INTO entries({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", columns)

    def hold(self, digest: str, text: str) -> None:
        self.connection.execute("INSERT OR IGNORE INTO held(digest, text) VALUES (?, ?)", (digest, text))

    def keep(self, name: str, text: str) -> None:
        self.connection.execute("INSERT OR REPLACE INTO kept(name, text) VALUES (?, ?)", (name, text))

    def _rows(self, where: str, *arguments: object) -> list[Row]:
        return list(map(Row._make, self.connection.execute(f"SELECT {_COLUMNS} FROM entries {where}", arguments)))


def copied(path: Path) -> SqlitePlace:
    """A copy of a ledger in a temporary folder, for reading a ledger in a read-only folder."""
    folder = tempfile.TemporaryDirectory(prefix="discreet-")
    with os_errors(f"{path.name} cannot be read"):
        for suffix in ("", "-wal"):
            if os.path.exists(f"{path}{suffix}"):
                shutil.copyfile(f"{path}{suffix}", Path(folder.name, path.name + suffix))
                Path(folder.name, path.name + suffix).chmod(0o600)
    place = SqlitePlace(Path(folder.name, path.name))
    weakref.finalize(place, folder.cleanup)
    return place


def _check_name(path: Path) -> None:
    """One name, one owner, also of its log: a hard link would have another log and so be another budget."""
    try:
        found = os.stat(path)
        if found.st_nlink > 1:  # perhaps a creation was interrupted between linking the name and removing the first one
            for other in path.parent.glob(f".{escape(path.name)}.*.new"):
                if _inode(str(other)) == found.st_ino:
                    remove(other)
            found = os.stat(path)
    except OSError as error:
        raise _unusable(error) from None
    if found.st_nlink > 1:
        raise LedgerUnavailable(f"{path.name} has several names (hard links): two logs would be two budgets")
    refuse_strangers(found, path.name)
    for suffix in ("-wal", "-shm", "-journal"):  # SQLite takes what lies there for its own
        with contextlib.suppress(FileNotFoundError):
            refuse_strangers(os.lstat(f"{path}{suffix}"), f"{path.name}{suffix}")


def _let_go(homes: dict[int, _Connection]) -> None:
    """Close what this process opened; after a fork the parent's connections are not ours to close."""
    home = homes.get(os.getpid())
    if home is None:
        return
    if home.connection is not None:
        home.connection.close()
        home.connection = None
    with home.guard:
        if home.log is not None:
            os.close(home.log)
            home.log = None


def _connect(path: Path | None) -> sqlite3.Connection:
    if sqlite3.sqlite_version_info < _OLDEST:
        wanted = ".".join(map(str, _OLDEST))
        raise LedgerUnavailable(f"this is SQLite {sqlite3.sqlite_version}; a ledger needs {wanted} or later")
    name = ":memory:" if path is None else f"file:{quote(os.fsencode(path))}?mode=rw"
    connection = sqlite3.connect(
        name, uri=path is not None, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        connection.text_factory = bytes  # a damaged file may hold what is not text
        ((mode,),) = connection.execute("PRAGMA journal_mode=WAL")
        if path is not None and mode != b"wal":
            raise LedgerUnavailable(f"this disk cannot hold a ledger: SQLite's log is {mode!r} there, not b'wal'")
        connection.execute("PRAGMA synchronous=NORMAL")  # `sync` does the rest
        connection.execute("PRAGMA fullfsync=ON")  # without it macOS does not wait for the disk
        connection.execute("PRAGMA wal_autocheckpoint=100")  # a short log is overwritten in place: its sync is cheaper
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # makes the log, if there is none
    except BaseException:
        connection.close()
        raise
    return connection


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {printable(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema")}


@contextmanager
def _sqlite_errors() -> Iterator[None]:
    """An error of SQLite's as ours: the ledger cannot be used now, or its file is damaged."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        code, damage = getattr(error, "sqlite_errorcode", 0) & 0xFF, str(error)
        if code in _NOT_NOW:
            raise LedgerUnavailable(f"the ledger cannot be used now: {error}; nothing was released") from error
        if code == sqlite3.SQLITE_NOTADB:
            damage = "a file that is not one, or is damaged at its start"
        if type(error) is UnicodeDecodeError:  # of a message of SQLite's that quotes what is damaged
            damage = "a file whose tables have other names"
        raise LedgerCorrupt(None, "a ledger", damage) from error


def _unusable(error: OSError) -> LedgerUnavailable:
    return LedgerUnavailable(f"the ledger cannot be used now: {error.strerror}; nothing was released")


def _inode(path: str) -> int | None:
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return None
