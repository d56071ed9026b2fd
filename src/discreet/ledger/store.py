"""Transactions on a ledger: the rules that every place of entries shares.

A transaction folds the entries that other processes added into the state and checks the state against the mark. It
folds its own entries the same way before it writes them, so it never writes an entry that a reader would refuse.

The order of a write: wait for the mark's turn; begin; fold what is new; check the state against the mark and the last
commit under it; fold and insert the entries; commit; note the commit under the mark's turn; let go of the turn; sync
the log; move the mark and sync it, if `marked`; return. `Witness.settle` does the last part for all waiting writers
together.

A long ledger is not read from its start: every FOLD_EVERY entries the state is stored beside a fold entry that holds
its digest.

A Store may be used by several threads: one lock, released while a thread waits for the disk. It may be used after a
fork: each process has its own fold, and places close their connections before a fork.
"""

from __future__ import annotations

import datetime
import os
import secrets
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from discreet.core import NOTHING, LedgerCorrupt, LedgerRolledBack, LedgerUnavailable, ParameterError, canonical, digest
from discreet.ledger.place import Held, Look, Mark, Parts, Secrets, Witness, Write, name_digest
from discreet.ledger.state import FORMAT, Body, Row, State, advance, checked_body, detached, folded, read_answer, row_of

FOLD_EVERY = 1000
"""Entries between two stored states."""

_CHUNK = 1000  # rows that are read at a time
_FOLD = "fold"
_UNTIMED = ("answer", "burn", "top", "close")  # their times would tell how long something ran
_NO_MARK = nullcontext()


def utc_now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


@dataclass(slots=True)
class _Home:
    """The state of a ledger in one process.

    mark         read before the open snapshot was taken, so that it cannot be ahead of the snapshot
    damage       what is wrong with the mark, if it could not be read
    transaction  the open transaction's state and rows, if there is one
    """

    lock: Any = field(default_factory=threading.RLock)
    state: State | None = None
    abandoned: set[tuple[int, str]] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    mark: Mark | None = None
    damage: LedgerCorrupt | None = None
    transaction: tuple[State, Look] | None = None
    writing: bool = False


class Store:
    """The entries of one ledger, wherever they lie."""

    def __init__(self, parts: Parts, *, now: Callable[[], str] = utc_now) -> None:
        self.parts = parts
        self.now = now
        self._known_witness: tuple[Witness | None] | None = None
        self._known_secrets: Secrets | None = None
        self._homes: dict[int, _Home] = {}
        _STORES.add(self)

    @property
    def secrets(self) -> Secrets:
        if self._known_secrets is None:
            with self.reading() as state:
                self._known_secrets = self.parts.secrets(state.opened.id)
        return self._known_secrets

    # Transactions.

    @contextmanager
    def reading(self) -> Iterator[State]:
        """The state after all committed entries (and, inside `writing`, after those just appended)."""
        with self.looking() as (state, _):
            yield state

    @contextmanager
    def looking(self) -> Iterator[tuple[State, Look]]:
        """The same, with the rows it was made of."""
        home = self._home()
        with home.lock:
            if home.transaction is not None:
                yield home.transaction
                return
            witness, home.mark, home.damage = self._witness(), None, None
            try:
                home.mark = None if witness is None else witness.read()
            except LedgerCorrupt as damaged:
                home.damage = damaged
            with self.parts.place.look() as look:
                home.transaction = (_caught_up(home, look), look)
                try:
                    yield home.transaction
                finally:
                    home.transaction = None

    @contextmanager
    def writing(self, *, marked: bool = True, against_mark: bool = True) -> Iterator[Writer]:
        """A write transaction. On leaving the block it is committed and durable; an error undoes it.

        marked  the mark is durable too: for whatever must never be forgotten
        """
        home, witness, writer = self._home(), self._witness(), None
        with home.lock:
            if home.writing:
                raise LedgerUnavailable("this thread is inside a turn of a conversation; finish it first")
            abandoned = sorted(home.abandoned)
            home.writing = True
            try:
                with _NO_MARK if witness is None else witness.held() as held:
                    with self.parts.place.write() as write:
                        state = _caught_up(home, write)
                        writer = Writer(write, state, self.now, held, self.parts.one_mark, against_mark=against_mark)
                        home.transaction = (state, write)
                        for charge, charge_hash in abandoned:
                            writer.burn(charge, charge_hash, "the charge could not be finished")
                        yield writer
                        if writer.appended and self.parts.place.durable:
                            writer.store_state()
                    if writer.appended and held is not None:
                        mark = mark_of(state, writer.witness)
                        held.commit(mark)
                        if writer.resets_mark:  # a mark is reset only to what is durable
                            self.parts.place.sync()
                            held.reset(mark)
                last = state.seq
            except BaseException:
                if writer is None or writer.appended:
                    home.state = None  # it may hold what the place does not: fold again
                home.abandoned.update(writer.charged if writer else ())
                raise
            finally:
                home.writing, home.transaction = False, None
            home.abandoned.difference_update(abandoned)
        if writer.appended and witness is not None:
            try:
                witness.settle(last, self.parts.place.sync, marked=marked)
            except BaseException:
                with home.lock:
                    home.abandoned.update(writer.charged)
                raise

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
            orphans = {charge: each for charge, each in state.pending.items() if self.parts.alive.gone(each.process)}
        if orphans:
            with self.writing() as writer:
                for charge, pending in orphans.items():
                    writer.burn(charge, pending.hash, "its process ended before the answer was stored")

    # Entries. A body that is handed out has the number and the hash of its entry, and its answer's text.

    def entry(self, seq: int) -> Body:
        """One entry, checked against the entry before it."""
        with self.looking() as (_, look):
            return _entry(look, seq)

    def fold(self) -> Iterator[tuple[Body, State]]:
        """All entries in order, each checked, and the state after it; the next entry changes that state."""
        state = State()
        return ((body, state) for body in self._follow(state, advance))

    def entries(self, *, after: int = 0) -> Iterator[Body]:
        """All entries, folded from the first one on; or those after one, each checked against the one before it."""
        if not after:
            return self._follow(State(), advance)
        with self.looking() as (_, look):
            before = look.row(after)
        if before is None:
            raise LedgerRolledBack(after, f"entry {after}", "fewer entries")
        return self._follow(State(seq=after, hash=before.hash_text), checked_body)

    def _follow(self, state: State, check: Callable[[State, Row], Body]) -> Iterator[Body]:
        """The entries after a state, each read as it is handed out; chunks are snapshots: entries never change."""
        while True:
            with self.looking() as (_, look):
                rows = look.rows(after=state.seq, limit=_CHUNK)
            if not rows:
                return
            for row in rows:
                body = check(state, row)
                state.seq, state.hash = row.seq, row.hash.decode("ascii")
                yield {"seq": row.seq, "hash": state.hash, **read_answer(row.seq, body, self._held)}

    def _held(self, digest: str) -> str | None:
        with self.looking() as (_, look):
            return look.held(digest)

    def latest(self, kind: str, limit: int, before: int) -> list[Body]:
        """The newest entries of a kind before one, oldest of them first, each checked against the one before it."""
        with self.looking() as (_, look):
            return [_entry(look, row.seq) for row in reversed(look.latest(kind, limit, before))]

    def count(self, kind: str) -> int:
        """How many entries of a kind there are."""
        with self.looking() as (_, look):
            return look.count(kind)

    def charge_of(self, request: str) -> Body | None:
        """The charge with this request id; None if it was never charged."""
        with self.looking() as (_, look):
            charge = look.requested(request)
            return None if charge is None else _entry(look, charge)

    def end_of(self, charge: int) -> Body | None:
        """The entry that ended a charge: its answer, or that there will be none."""
        with self.looking() as (_, look):
            end = look.end(charge)
            return None if end is None else _entry(look, end.seq)

    def said(self, meaning: str) -> list[int]:
        """The numbers of the sayings with this meaning, newest first."""
        with self.looking() as (_, look):
            return look.said(meaning)

    def kept(self, name: str) -> str | None:
        """The text that was kept under a name, if it is still there: a cache, which nothing may rely on."""
        with self.looking() as (_, look):
            return look.kept(name)

    def refold(self) -> None:
        """Check everything again from the place: its own checks, the whole chain, the mark."""
        with self.looking() as (_, look):
            self.parts.place.check(look)
            state = State()
            for row in _rows(look, after=0):
                read_answer(row.seq, advance(state, row), look.held)
            self.check_mark(state)

    # The mark.

    def check_mark(self, state: State) -> None:
        """LedgerRolledBack unless the entries go at least as far as the mark and agree with it."""
        with self.looking() as (_, look):
            home = self._home()
            if home.damage is not None:
                raise home.damage
            if self._witness() is not None:
                _agree(state, look, home.mark, self.parts.one_mark)

    def _witness(self) -> Witness | None:
        """The ledger's mark; None in memory and while a ledger is being created."""
        if self._known_witness is None:
            with self._home().lock, self.parts.place.look() as look:
                opening = look.row(1)
            if opening is None:
                return None
            state = State()
            advance(state, opening)
            self._known_witness = (self.parts.witness(state.opened.id),)
        return self._known_witness[0]

    # Inside.

    def close(self) -> None:
        """Close this process's connection; the next use opens it again. A ledger in memory forgets everything."""
        home = self._home()
        with home.lock:
            home.state = None
            self.parts.place.close()

    def rest(self) -> None:
        """Let go of the connection before a fork, if no transaction is open; the next use opens it again."""
        home = self._homes.get(os.getpid())
        if home is not None:
            with home.lock:
                self.parts.place.rest()

    def _home(self) -> _Home:
        pid = os.getpid()
        home = self._homes.get(pid)
        return self._homes.setdefault(pid, _Home()) if home is None else home


class Writer:
    """One write transaction: appends entries, folding each one before it is written.

    witness      the name of the mark that the entries carry
    resets_mark  the mark is put to the last entry, wherever it was
    charged      the charges of this transaction, by number and hash
    """

    def __init__(
        self,
        write: Write,
        state: State,
        now: Callable[[], str],
        held: Held | None,
        one_mark: bool = False,
        *,
        against_mark: bool,
    ) -> None:
        self.state = state
        self.appended = self.resets_mark = False
        self.charged: list[tuple[int, str]] = []
        self._write, self._now, self._held, self._one_mark = write, now, held, one_mark
        mark = self.check_mark() if against_mark else None
        self.witness = mark.witness if mark else None if held is None else new_witness()

    def append(self, kind: str, fields: Body) -> int:
        """Write one entry; returns its number."""
        time = None if kind in _UNTIMED else f"{self._now()[:13]}:00:00Z"  # a finer time would tell how long a run took
        chain = {"kind": kind, "previous": self.state.hash, "time": time, "witness": self.witness}
        if kind not in ("open", "facts"):  # so that no two copies of a ledger ever write the same entry
            chain["nonce"] = secrets.token_hex(8)
        row = row_of(self.state, {**detached(fields, self._write.hold), **chain})
        self.appended = True
        advance(self.state, row)
        self._write.append(row)
        if kind == "charge":
            self.charged.append((row.seq, self.state.hash))
        return row.seq

    def burn(self, charge: int, charge_hash: str, reason: str) -> None:
        """Record that a charge will never be answered, if it is pending."""
        pending = self.state.pending.get(charge)
        if pending is not None and pending.hash == charge_hash:
            self.append("burn", {"charge": charge, "reason": reason})

    def keep(self, name: str, text: str) -> None:
        """Keep a text beside the entries: a cache."""
        self._write.keep(name, text)

    def store_state(self) -> None:
        """Store the state every FOLD_EVERY entries, with an entry that vouches for it."""
        if self.state.seq - self.state.folded >= FOLD_EVERY:
            stored = self.state.record()
            self.append("fold", {"format": FORMAT, "state": digest(stored)})
            self.keep(_FOLD, canonical(stored))

    def check_mark(self) -> Mark | None:
        """The mark, checked against the entries; the last commit under it, durable or not, is checked too."""
        if self._held is None:
            return None
        mark, ahead = self._held.read(), self._held.ahead()
        _agree(self.state, self._write, mark, self._one_mark)
        _agree(self.state, self._write, ahead or mark, self._one_mark)
        return mark

    def readable_mark(self) -> Mark | None:
        """The mark, or the last commit under it, whether or not the entries agree; None if it is missing or damaged.

        A committed charge counts before it is durable, because its process may answer it at any moment.
        """
        if self._held is None:
            return None
        try:
            mark, ahead = self._held.read(), self._held.ahead()
        except LedgerCorrupt:
            return None
        return ahead if mark is not None and ahead is not None and ahead.seq > mark.seq else mark


_STORES: weakref.WeakSet[Store] = weakref.WeakSet()
"""The stores of this process: connections must not cross a fork, so they are closed before one."""


def _before_fork() -> None:
    for store in list(_STORES):
        store.rest()


os.register_at_fork(before=_before_fork)


def new_witness() -> str:
    """A random name for a mark."""
    return secrets.token_hex(8)


def mark_of(state: State, witness: str | None) -> Mark:
    """The mark of a ledger that has come this far."""
    assert witness is not None
    named = {name_digest(name): each.spent for name, each in state.allowances.items() if each.spent != NOTHING}
    return Mark(state.seq, state.hash, state.spent, witness, named)


def _agree(state: State, look: Look, mark: Mark | None, one_mark: bool) -> None:
    """LedgerRolledBack unless the entries go at least as far as the mark and agree with it.

    one_mark  the last entry must be under this mark too
    """
    if mark is None:
        if state.witnessed:  # moved here, or the mark was removed: who knows
            raise LedgerRolledBack(None, "the mark that its entries name", "none in this state directory")
        return
    if mark.seq > state.seq:
        raise LedgerRolledBack(None, f"at least {mark.seq} entries", f"{state.seq}")
    if one_mark and state.witness != mark.witness:
        raise LedgerRolledBack(state.seq, "an entry under the mark of this host", "one under the mark of another host")
    if (mark.seq, mark.hash) == (state.seq, state.hash):
        return
    row = look.row(mark.seq)
    if row is None or row.hash_text != mark.hash:
        raise LedgerRolledBack(mark.seq, f"hash {mark.hash} at entry {mark.seq}", "another entry in its place")


def _caught_up(home: _Home, look: Look) -> State:
    """Fold the entries that are new, after checking that the last known one is still there."""
    state, home.state = home.state or _stored_state(look), None
    rows = _rows(look, after=max(0, state.seq - 1))
    if state.seq:
        last = next(rows, None)
        if last is None or (last.seq, last.hash_text) != (state.seq, state.hash):
            raise LedgerRolledBack(state.seq, f"hash {state.hash} at entry {state.seq}", "another or none")
    for row in rows:
        advance(state, row)
    home.state = state
    return state


def _stored_state(look: Look) -> State:
    """The newest stored state that an entry vouches for; nothing folded yet if there is none."""
    first = look.first()
    if first not in (None, 1):
        raise LedgerCorrupt(1, "entry 1", f"entry {first}")
    text, opening = look.kept(_FOLD), look.row(1)
    return State() if text is None or opening is None else folded(opening, text, look.row) or State()


def _rows(look: Look, *, after: int) -> Iterator[Row]:
    """All rows of a snapshot after an entry."""
    while rows := look.rows(after=after, limit=_CHUNK):
        yield from rows
        if len(rows) < _CHUNK:
            return
        after = rows[-1].seq


def _entry(look: Look, seq: int) -> Body:
    row, before = look.row(seq), look.row(seq - 1)
    if row is None:
        raise ParameterError(f"the ledger has no entry {seq}")
    state = State(seq - 1) if before is None else State(seq - 1, before.hash_text)
    return {"seq": seq, "hash": row.hash_text, **read_answer(seq, checked_body(state, row), look.held)}
