"""The ledger's file: transactions that see every entry, write durably, and never go behind the high-water mark.

SQLite in WAL mode with synchronous=FULL; every write transaction is BEGIN IMMEDIATE, so writers queue up and each one
sees all entries before its own (default transactions read first and lock later, and measurably overspend). Inside a
transaction the entries that other processes added are folded into the state, and the state is checked against the
mark; an appended entry is folded the same way before it is written, so nothing is ever written that a reader would
refuse.

A Store may be used from several threads (one lock) and after a fork: each process has its own `_Home`, with its own
connection and its own fold, and connections are closed before a fork. A store in memory belongs to the process that
made it; a fork of it would be a second budget, so it is refused there.
"""

from __future__ import annotations

import datetime
import os
import secrets
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from discreet.errors import LedgerCorrupt, LedgerRolledBack, LedgerUnavailable, ParameterError
from discreet.ledger.mark import Mark, MarkFile, mark_file, new_witness
from discreet.ledger.process import gone
from discreet.ledger.secret_file import SecretFile
from discreet.ledger.state import GENESIS, Body, Row, State, advance, checked_body, row_of

BUSY_SECONDS = 60.0
_COLUMNS = "seq, kind, request, charge, body, hash"
_TABLE = (
    "CREATE TABLE entries(seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, request TEXT, charge INTEGER, "
    "body TEXT NOT NULL, hash TEXT NOT NULL)"
)
# SQLite's result codes that say "not now": permission, busy, locked, memory, read-only, interrupted, i/o, full, cannot
# open, protocol, too big. Anything else, while our fixed statements run, means that the file is not what we wrote.
_NOT_NOW = frozenset((3, 5, 6, 7, 8, 9, 10, 13, 14, 15, 18))


def utc_now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


@dataclass(slots=True)
class _Home:
    """What one process holds of a store."""

    lock: Any = field(default_factory=threading.RLock)
    connection: sqlite3.Connection | None = None
    state: State | None = None
    files: tuple[int | None, ...] = ()
    abandoned: set[tuple[int, str]] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    writing: bool = False


class Store:
    """The entries of one ledger, on disk or in memory."""

    def __init__(self, path: Path | None, *, state_dir: Path, now: Callable[[], str] = utc_now) -> None:
        self.path = path
        self.state_dir = state_dir
        self.now = now
        self.secrets = SecretFile(path)
        self._names = () if path is None else (str(path), f"{path}-wal")
        self._marks: MarkFile | None = None
        self._owner = os.getpid()
        self._closed = False
        self._homes: dict[int, _Home] = {}
        weakref.finalize(self, _close_connection, self._homes)
        _STORES.add(self)

    # Transactions.

    @contextmanager
    def reading(self) -> Iterator[State]:
        """The state after all committed entries (and, inside `writing`, after those just appended)."""
        home = self._home()
        with home.lock, _sqlite_errors():
            connection = self._connected(home)
            if home.writing and connection.in_transaction and home.state is not None:
                yield home.state
                return
            _roll_back(connection)  # what an interrupt may have left open
            try:
                connection.execute("BEGIN")
                yield self._caught_up(home, connection)
            finally:
                _roll_back(connection)

    @contextmanager
    def writing(self, *, durable_mark: bool = True, against_mark: bool = True) -> Iterator[Writer]:
        """A write transaction. On leaving the block it is committed, durable, and then marked; an error undoes it."""
        home = self._home()
        with home.lock, _sqlite_errors():
            connection = self._connected(home)
            if home.writing and connection.in_transaction:
                raise LedgerUnavailable("this thread is inside a turn of a conversation; finish it first")
            writer = None
            try:
                home.writing = True
                _roll_back(connection)
                connection.execute("BEGIN IMMEDIATE")
                state = self._caught_up(home, connection)
                with self._mark_held(state) as held:
                    mark = self.check_mark(state, held) if against_mark else None
                    writer = Writer(connection, state, now=self.now, witness=mark.witness if mark else None, held=held)
                    _burn_abandoned(home, writer)
                    yield writer
                    connection.execute("COMMIT")
                    if writer.appended:
                        self._move_mark(state, writer, held, durable=durable_mark)
                        self._check_files(home)
            except BaseException:
                if writer is None or writer.appended:
                    home.state = None  # it may hold what the file does not: fold again from the start
                home.abandoned.update(writer.charged if writer else ())
                _roll_back(connection)
                raise
            finally:
                home.writing = False
            home.abandoned.clear()

    @contextmanager
    def _mark_held(self, state: State) -> Iterator[int | None]:
        """The lock of the mark, for as long as the transaction lasts; None in memory and while a ledger is created."""
        marks = None if state.header is None else self.marks(state)
        if marks is None:
            yield None
            return
        with marks.held() as descriptor:
            yield descriptor

    def _move_mark(self, state: State, writer: Writer, held: int | None, *, durable: bool) -> None:
        marks, witness = self.marks(state), writer.witness or new_witness()
        if marks is None:
            return
        with nullcontext(held) if held is not None else marks.held() as descriptor:
            assert descriptor is not None
            if writer.resets_mark:
                marks.reset(descriptor, Mark(state.seq, state.hash, state.spent, witness))
            else:
                marks.raise_to(descriptor, state.seq, state.hash, state.spent, witness=witness, durable=durable)

    def abandon(self, charge: int, charge_hash: str) -> None:
        """Remember that this charge of this process will not be answered: it is burned with the next write."""
        home = self._home()
        with home.lock:
            home.abandoned.add((charge, charge_hash))

    def end_conversation(self, charge_hash: str) -> None:
        """Make sure that a conversation answers no more, even if the ledger cannot be written: its secret goes."""
        self._home().ended.add(charge_hash)
        self.secrets.forget(charge_hash)

    def ended(self, charge_hash: str) -> bool:
        """Whether a conversation ended in this process, whatever the ledger says."""
        return charge_hash in self._home().ended

    def burn_orphans(self) -> None:
        """Burn the charges whose process is gone."""
        with self.reading() as state:
            orphans = {charge: found for charge, found in state.pending.items() if gone(found.process)}
        if not orphans:
            return
        with self.writing() as writer:
            for charge, found in orphans.items():
                if writer.state.pending.get(charge) == found:
                    writer.append(
                        "burn", {"charge": charge, "reason": "its process ended before the answer was stored"}
                    )

    # Entries.

    def entry(self, seq: int) -> tuple[Body, str]:
        """The body of one entry and its hash, checked against the entry before it."""
        with self.reading():
            rows = self._rows("WHERE seq BETWEEN ? AND ?", seq - 1, seq)
        if not rows or rows[-1].seq != seq:
            raise ParameterError(f"the ledger has no entry {seq}")
        before = State(seq=seq - 1, hash=_text(rows[0].hash) if len(rows) == 2 else GENESIS)
        return checked_body(before, rows[-1]), _text(rows[-1].hash)

    def entries(self) -> Iterator[tuple[Row, Body]]:
        """All entries, read from the disk now, each checked as it is handed out."""
        with self.reading():
            rows = self._rows("")
        state = State()
        for row in rows:
            yield row, advance(state, row)

    def entries_after(self, seq: int) -> Iterator[tuple[Row, Body]]:
        """The entries after this one, each checked against the one before it; what came earlier was folded already."""
        with self.reading():
            rows = self._rows("WHERE seq >= ?", seq)
        if seq and not rows:
            raise LedgerRolledBack(seq, f"entry {seq}", "fewer entries")
        state = State(seq=seq, hash=GENESIS if seq == 0 else _text(rows.pop(0).hash))
        for row in rows:
            body = checked_body(state, row)
            state.seq, state.hash = row.seq, _text(row.hash)
            yield row, body

    def refold(self) -> State:
        """Everything again from the disk: SQLite's own checks, the whole chain, the mark."""
        with self.reading():
            connection = self._connected(self._home())
            found = [_text(row[0]) for row in connection.execute("PRAGMA integrity_check")]
            if found != ["ok"]:
                raise LedgerCorrupt(None, "a sound SQLite file", "; ".join(found[:3]))
            state = State()
            for row in self._rows(""):
                advance(state, row)
            self.check_mark(state)
            return state

    def _rows(self, where: str, *arguments: int) -> list[Row]:
        """Rows of the transaction that is open."""
        connection = self._home().connection
        if connection is None:
            raise LedgerUnavailable("the ledger is not open")
        found = connection.execute(f"SELECT {_COLUMNS} FROM entries {where} ORDER BY seq", arguments)
        return [Row(*columns) for columns in found]

    # The mark.

    def marks(self, state: State) -> MarkFile | None:
        """Where this ledger's mark is kept; None in memory."""
        if self.path is not None and self._marks is None:
            self._marks = mark_file(self.state_dir, state.opened.id)
        return self._marks

    def check_mark(self, state: State, held: int | None = None) -> Mark | None:
        """The mark, if the entries go at least as far and agree with it; None if none was ever left."""
        marks = self.marks(state)
        mark = None if marks is None else marks.read(held)
        if mark is None and marks is not None and state.witnessed:  # moved here, or the mark was removed: who knows
            raise LedgerRolledBack(None, "the mark that its charges left", "none in this state directory")
        if mark is None or (mark.seq, mark.hash) == (state.seq, state.hash):
            return mark
        if mark.seq > state.seq:
            raise LedgerRolledBack(None, f"at least {mark.seq} entries", f"{state.seq}")
        if _text(self._rows("WHERE seq = ?", mark.seq)[0].hash) != mark.hash:
            raise LedgerRolledBack(mark.seq, f"hash {mark.hash} at entry {mark.seq}", "another entry in its place")
        return mark

    def readable_mark(self, writer: Writer) -> Mark | None:
        """The mark, whether or not the entries agree with it; None if there is none or it is damaged."""
        marks = self.marks(writer.state)
        try:
            return None if marks is None else marks.read(writer.held)
        except LedgerCorrupt:
            return None

    # Connections.

    def create(self) -> None:
        """Make the file, readable by its owner only."""
        if self.path is not None:
            try:
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            except FileExistsError:
                raise ParameterError(f"{self.path.name} exists already; Ledger.open opens a ledger") from None
            except FileNotFoundError:
                raise ParameterError(f"there is no folder {str(self.path.parent)!r} for {self.path.name}") from None
            except OSError as error:
                raise LedgerUnavailable(f"{self.path.name} cannot be created: {error.strerror}") from None

    def begin(self) -> None:
        """Make the empty table of entries."""
        home = self._home()
        with home.lock, _sqlite_errors():
            self._connected(home).execute(_TABLE)

    def discard(self) -> None:
        """Remove the files of a ledger whose creation failed."""
        self.close()
        for suffix in ("", "-wal", "-shm") if self.path is not None else ():
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)

    def close(self) -> None:
        """Close this process's connection; the next use opens it again. A store in memory forgets everything."""
        home = self._home()
        with home.lock:
            if home.connection is not None:
                home.connection.close()
            home.connection, home.state = None, None
            self._closed = True

    def rest(self) -> None:
        """Close the connection to the file, if no transaction is open; the next use opens it again."""
        home = self._homes.get(os.getpid())
        if self.path is None or home is None:
            return
        with home.lock:
            if home.connection is not None and not home.connection.in_transaction:
                home.connection.close()
                home.connection = None

    def _home(self) -> _Home:
        if self.path is None and os.getpid() != self._owner:
            raise LedgerUnavailable("a ledger in memory belongs to the process that made it; use one in a file")
        if self.path is None and self._closed:
            raise LedgerUnavailable("this ledger in memory was closed: it is gone")
        return self._homes.setdefault(os.getpid(), _Home())

    def _connected(self, home: _Home) -> sqlite3.Connection:
        """The connection, as long as the files it was opened on are the ones that lie there."""
        if home.connection is None:
            if self.path is not None and os.stat(self.path).st_nlink > 1:
                raise LedgerUnavailable(
                    f"{self.path.name} has several names (hard links): two logs would be two budgets"
                )
            home.connection, home.state = _connect(self.path), None
            home.files = self._inodes()
        self._check_files(home)
        return home.connection

    def _check_files(self, home: _Home) -> None:
        if self._inodes() != home.files:
            raise LedgerRolledBack(None, "the files that were opened", "others in their place (open the ledger again)")

    def _inodes(self) -> tuple[int | None, ...]:
        return tuple(_inode(name) for name in self._names)

    def _caught_up(self, home: _Home, connection: sqlite3.Connection) -> State:
        """Fold the entries that are new, after checking that the last known one is still there."""
        state, home.state = home.state or State(), None
        rows = self._rows("WHERE seq >= ?", state.seq)
        if state.seq:
            if not rows or (rows[0].seq, _text(rows[0].hash)) != (state.seq, state.hash):
                raise LedgerRolledBack(state.seq, f"hash {state.hash} at entry {state.seq}", "another or none")
            del rows[0]
        for row in rows:
            advance(state, row)
        home.state = state
        return state


class Writer:
    """One write transaction: appends entries, folding each one before it is written."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        state: State,
        *,
        now: Callable[[], str],
        witness: str | None,
        held: int | None,
    ) -> None:
        self.state = state
        self.witness = witness
        self.held = held
        self.appended = False
        self.resets_mark = False
        self.charged: list[tuple[int, str]] = []
        self._connection = connection
        self._now = now

    def append(self, kind: str, fields: Body) -> int:
        """Write one entry; returns its number."""
        chain = {"kind": kind, "previous": self.state.hash, "time": self._now(), "witness": self.witness}
        if kind not in ("open", "facts"):  # so that no two copies of a ledger ever write the same entry
            chain["nonce"] = secrets.token_hex(8)
        row = row_of(self.state, {**fields, **chain})
        self.appended = True
        advance(self.state, row)
        columns = (row.seq, _text(row.kind), fields.get("request"), row.charge, _text(row.body), _text(row.hash))
        self._connection.execute(f"INSERT INTO entries({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", columns)
        if kind == "charge":
            self.charged.append((row.seq, _text(row.hash)))
        return row.seq


_STORES: weakref.WeakSet[Store] = weakref.WeakSet()
"""The stores of this process: SQLite connections must not cross a fork, so they are closed before one."""


def _before_fork() -> None:
    for store in list(_STORES):
        store.rest()


os.register_at_fork(before=_before_fork)


def _burn_abandoned(home: _Home, writer: Writer) -> None:
    """Burn what this process charged and could not finish: its mark or its answer could not be written."""
    for charge, charge_hash in sorted(home.abandoned):
        pending = writer.state.pending.get(charge)
        if pending is not None and pending.hash == charge_hash:
            writer.append("burn", {"charge": charge, "reason": "the charge could not be finished"})


def _roll_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _close_connection(homes: dict[int, _Home]) -> None:
    """Close what this process opened; after a fork the parent's connections are not ours to close."""
    home = homes.get(os.getpid())
    if home is not None and home.connection is not None:
        home.connection.close()


def _connect(path: Path | None) -> sqlite3.Connection:
    name = ":memory:" if path is None else f"file:{quote(os.fsencode(path))}?mode=rw"
    connection = sqlite3.connect(
        name, uri=path is not None, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.text_factory = bytes  # a damaged file may hold what is not text
    connection.execute("PRAGMA journal_mode=WAL").fetchall()
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA fullfsync=ON")  # without it macOS does not wait for the disk
    connection.execute("PRAGMA wal_autocheckpoint=100")  # a short log is overwritten in place: its fsync is cheaper
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # makes the log, if there is none
    return connection


@contextmanager
def _sqlite_errors() -> Iterator[None]:
    """SQLite's errors as ours: the ledger cannot be used now, or its file is damaged."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code is not None and code & 0xFF in _NOT_NOW:
            raise LedgerUnavailable(f"the ledger cannot be used now: {error}; nothing was released") from error
        if code is not None and code & 0xFF == sqlite3.SQLITE_NOTADB:
            raise LedgerCorrupt(None, "a ledger", "a file that is not one, or is damaged at its start") from error
        raise LedgerCorrupt(None, "a ledger", str(error)) from error


def _inode(path: str) -> int | None:
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return None


def _text(value: bytes) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else repr(value)
