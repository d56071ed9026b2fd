"""Transactions on a ledger: the rules that every place of entries shares.

A transaction folds the entries that other processes added into the state and checks the state against the mark. It
folds its own entries the same way before it writes them, so it never writes an entry that a reader would refuse. A
write returns when its entries are durable, and the mark as well if `marked`; `Witness.settle` serves all waiting
writers together.

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

from discreet.errors import LedgerCorrupt, LedgerRolledBack, LedgerUnavailable, ParameterError
from discreet.funds import NOTHING
from discreet.ledger.mark import Held, Mark, Witness, name_digest, new_witness
from discreet.ledger.place import Look, Parts, Secrets, Write, chunks
from discreet.ledger.state import (
    FORMAT,
    GENESIS,
    LARGE,
    Body,
    Row,
    State,
    advance,
    answer_text,
    checked_body,
    folded,
    large,
    row_of,
    state_record,
    text_hash,
)
from discreet.records import canonical, digest

FOLD_EVERY = 1000
"""Entries between two stored states."""

_FOLD = "fold"
_UNTIMED = ("answer", "burn", "top", "close")  # their times would tell how long something ran


def utc_now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


@dataclass(slots=True)
class _Home:
    """The state of a ledger in one process.

    mark         read before the open snapshot was taken, so that it cannot be ahead of the snapshot
    transaction  the open transaction's state and rows, if there is one
    """

    lock: Any = field(default_factory=threading.RLock)
    state: State | None = None
    abandoned: set[tuple[int, str]] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    mark: Mark | LedgerCorrupt | None = None
    transaction: tuple[State, Look] | None = None
    writing: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A request id that was charged: the charge's entry, hash and body, and its outcome.

    answer  the stored text; None if there is none
    burned  the run was interrupted: there will never be an answer
    """

    charge: int
    hash: str
    body: Body
    answer: str | None
    burned: bool


class Store:
    """The entries of one ledger, wherever they lie."""

    def __init__(self, parts: Parts, *, now: Callable[[], str] = utc_now) -> None:
        self.parts = parts
        self.now = now
        self._known_witness: Witness | None = None
        self._homes: dict[int, _Home] = {}
        _STORES.add(self)

    @property
    def secrets(self) -> Secrets:
        return self.parts.secrets

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
            home.mark = self._mark_now()
            with self.parts.place.look() as look:
                home.transaction = (self._caught_up(home, look), look)
                try:
                    yield home.transaction
                finally:
                    home.transaction = None

    @contextmanager
    def writing(self, *, marked: bool = True, against_mark: bool = True) -> Iterator[Writer]:
        """A write transaction. On leaving the block it is committed and durable; an error undoes it.

        marked  the mark is durable too: for whatever must never be forgotten
        """
        home, witness = self._home(), self._witness()
        with self._committing(home, witness, against_mark) as writer:
            yield writer
        if writer.appended and witness is not None:
            try:
                witness.settle(writer.last, self.parts.place.sync, marked=marked)
            except BaseException:
                for charge in writer.charged:
                    self.abandon(*charge)
                raise

    @contextmanager
    def _committing(self, home: _Home, witness: Witness | None, against_mark: bool) -> Iterator[Writer]:
        """A write transaction, up to its commit."""
        with home.lock:
            if home.writing:
                raise LedgerUnavailable("this thread is inside a turn of a conversation; finish it first")
            writer, abandoned = None, frozenset(home.abandoned)
            home.writing = True
            try:
                with nullcontext() if witness is None else witness.held() as held:
                    with self.parts.place.write() as write:
                        state = self._caught_up(home, write)
                        mark = self._checked(state, write, held) if against_mark else None
                        name = mark.witness if mark else None if held is None else new_witness()
                        writer = Writer(write, state, now=self.now, witness=name, held=held)
                        home.transaction = (state, write)
                        _burn(abandoned, writer)
                        yield writer
                        if self.parts.place.durable:
                            writer.store_state()
                        writer.last = state.seq
                    if held is not None and writer.appended:
                        self._note(held, writer)
            except BaseException:
                if writer is None or writer.appended:
                    home.state = None  # it may hold what the place does not: fold again
                home.abandoned.update(writer.charged if writer else ())
                raise
            finally:
                home.writing, home.transaction = False, None
            home.abandoned -= abandoned

    def _note(self, held: Held, writer: Writer) -> None:
        """Say under the mark's lock what was committed; a mark is reset only to what is durable."""
        assert writer.witness is not None
        mark = mark_of(writer.state, writer.witness)
        held.commit(mark)
        if writer.resets_mark:
            self.parts.place.sync()
            held.reset(mark)

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
            orphans = {charge: found for charge, found in state.pending.items() if self.parts.alive.gone(found.process)}
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
        with self.looking() as (_, look):
            return _entry(look, seq)

    def entries(self) -> Iterator[tuple[Row, Body]]:
        """All entries, read from the place now, each checked and folded as it is handed out."""
        state = State()
        for rows in chunks(self._look, after=state.seq):
            for row in rows:
                yield row, advance(state, row)

    def entries_after(self, seq: int) -> Iterator[tuple[Row, Body]]:
        """The entries after this one, each checked against the one before it; what came earlier was folded already."""
        with self._look() as look:
            before = look.row(seq) if seq else None
        if seq and before is None:
            raise LedgerRolledBack(seq, f"entry {seq}", "fewer entries")
        state = State(seq=seq, hash=GENESIS if before is None else _text(before.hash))
        for rows in chunks(self._look, after=seq):
            for row in rows:
                body = checked_body(state, row)
                state.seq, state.hash = row.seq, _text(row.hash)
                yield row, body

    def latest(self, kind: str, limit: int) -> list[tuple[int, Body]]:
        """The newest entries of a kind, oldest of them first, each checked against the entry before it."""
        with self.looking() as (_, look):
            return [(row.seq, _entry(look, row.seq)[0]) for row in reversed(look.latest(kind, limit))]

    def count(self, kind: str) -> int:
        """How many entries of a kind there are."""
        with self.looking() as (_, look):
            return look.count(kind)

    def asked(self, request: str) -> Asked | None:
        """What became of a request id; None if it was never charged."""
        with self.looking() as (_, look):
            charge = look.requested(request)
            if charge is None:
                return None
            body, charge_hash = _entry(look, charge)
            end = look.end(charge)
            ended = None if end is None else _resolved(look, _entry(look, end.seq)[0], end.seq)
            answer = answer_text(ended) if ended is not None and ended["kind"] == "answer" else None
            return Asked(charge, charge_hash, body, answer, ended is not None and answer is None)

    def end_of(self, charge: int) -> tuple[int, Body] | None:
        """The entry that ended a charge: its answer, or that there will be none."""
        with self.looking() as (_, look):
            end = look.end(charge)
            return None if end is None else (end.seq, _resolved(look, _entry(look, end.seq)[0], end.seq))

    def resolved(self, seq: int, body: Body) -> Body:
        """The body with its answer's text, if that lies beside the entries."""
        if large(body) is None:
            return body
        with self.looking() as (_, look):
            return _resolved(look, body, seq)

    def said(self, meaning: str) -> list[int]:
        """The numbers of the sayings with this meaning, newest first."""
        with self.looking() as (_, look):
            return look.said(meaning)

    def keep(self, name: str, text: str) -> None:
        """Keep a text under a name: a cache beside the entries, which nothing may rely on."""
        with self.writing(marked=False) as writer:
            writer.keep(name, text)

    def kept(self, name: str) -> str | None:
        """The text that was kept, if it is still there."""
        with self.looking() as (_, look):
            return look.kept(name)

    def refold(self) -> State:
        """Everything again from the place: its own checks, the whole chain, the mark."""
        with self.looking() as (_, look):
            self.parts.place.check(look)
            state = State()
            for seq, body in _fold_on(state, look):
                _resolved(look, body, seq)
            self.check_mark(state)
            return state

    # The mark.

    def check_mark(self, state: State) -> Mark | None:
        """The mark, if the entries go at least as far and agree with it; None if none was ever left."""
        with self.looking() as (_, look):
            mark = self._home().mark
            if isinstance(mark, LedgerCorrupt):
                raise mark
            if self._witness() is not None:
                _agree(state, look, mark)
            return mark

    def contradicted(self, writer: Writer) -> bool:
        """Whether the mark, or what was committed under it, says something else than the entries."""
        with self.looking() as (state, look):
            try:
                self._checked(state, look, writer.held)
            except LedgerCorrupt:
                return True
            return False

    def readable_mark(self, writer: Writer) -> Mark | None:
        """The mark, or the last commit under it, whether or not the entries agree; None if it is missing or damaged.

        A committed charge counts before it is durable, because its process may answer it at any moment.
        """
        if writer.held is None:
            return None
        try:
            mark, ahead = writer.held.read(), writer.held.ahead()
        except LedgerCorrupt:
            return None
        return ahead if mark is not None and ahead is not None and ahead.seq > mark.seq else mark

    def _checked(self, state: State, look: Look, held: Held | None) -> Mark | None:
        """The mark, checked against the entries; the last commit under it, durable or not, is checked too."""
        if held is None:
            return None
        mark, ahead = held.read(), held.ahead()
        _agree(state, look, mark)
        if ahead is not None:
            _agree(state, look, ahead)
        return mark

    def _witness(self) -> Witness | None:
        """The ledger's mark; None in memory and while a ledger is being created."""
        if self._known_witness is None:
            with self._home().lock, self._look() as look:
                opening = look.row(1)
            if opening is not None:
                state = State()
                advance(state, opening)
                self._known_witness = self.parts.witness(state.opened.id)
        return self._known_witness

    def _mark_now(self) -> Mark | LedgerCorrupt | None:
        witness = self._witness()
        try:
            return None if witness is None else witness.read()
        except LedgerCorrupt as damaged:
            return damaged

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
        return self._homes.setdefault(os.getpid(), _Home())

    @contextmanager
    def _look(self) -> Iterator[Look]:
        """Rows, unfolded: of the open transaction, if there is one."""
        home = self._home()
        with home.lock:
            if home.transaction is not None:
                yield home.transaction[1]
            else:
                with self.parts.place.look() as look:
                    yield look

    def _caught_up(self, home: _Home, look: Look) -> State:
        """Fold the entries that are new, after checking that the last known one is still there."""
        state, home.state = home.state, None
        if state is None:
            state = _begun(look)
        elif state.seq:
            last = look.row(state.seq)
            if last is None or _text(last.hash) != state.hash:
                raise LedgerRolledBack(state.seq, f"hash {state.hash} at entry {state.seq}", "another or none")
        for _ in _fold_on(state, look):
            pass
        home.state = state
        return state


class Writer:
    """One write transaction: appends entries, folding each one before it is written.

    last  the last entry of the transaction, once it is over
    """

    def __init__(
        self, write: Write, state: State, *, now: Callable[[], str], witness: str | None, held: Held | None
    ) -> None:
        self.state = state
        self.witness = witness
        self.held = held
        self.appended = False
        self.resets_mark = False
        self.charged: list[tuple[int, str]] = []
        self.last = 0
        self._write = write
        self._now = now

    def append(self, kind: str, fields: Body) -> int:
        """Write one entry; returns its number."""
        time = None if kind in _UNTIMED else _coarse(self._now())
        chain = {"kind": kind, "previous": self.state.hash, "time": time, "witness": self.witness}
        if kind not in ("open", "facts"):  # so that no two copies of a ledger ever write the same entry
            chain["nonce"] = secrets.token_hex(8)
        answer = fields.get("answer")
        if isinstance(answer, str) and len(answer) > LARGE:
            self._write.hold(text_hash(answer), answer)
            fields = {**fields, "answer": {"sha256": text_hash(answer), "bytes": len(answer.encode("utf-8"))}}
        row = row_of(self.state, {**fields, **chain})
        self.appended = True
        advance(self.state, row)
        self._write.append(row)
        if kind == "charge":
            self.charged.append((row.seq, _text(row.hash)))
        return row.seq

    def keep(self, name: str, text: str) -> None:
        """Keep a text beside the entries: a cache."""
        self._write.keep(name, text)

    def store_state(self) -> None:
        """Store the state every so many entries, with an entry that vouches for it."""
        if self.appended and self.state.seq - self.state.folded >= FOLD_EVERY:
            stored = state_record(self.state)
            self.append("fold", {"format": FORMAT, "state": digest(stored)})
            self.keep(_FOLD, canonical(stored))


_STORES: weakref.WeakSet[Store] = weakref.WeakSet()
"""The stores of this process: connections must not cross a fork, so they are closed before one."""


def _before_fork() -> None:
    for store in list(_STORES):
        store.rest()


os.register_at_fork(before=_before_fork)


def mark_of(state: State, witness: str) -> Mark:
    """The mark of a ledger that has come this far."""
    named = {name_digest(name): each.spent for name, each in state.allowances.items() if each.spent != NOTHING}
    return Mark(state.seq, state.hash, state.spent, witness, named)


def _burn(abandoned: frozenset[tuple[int, str]], writer: Writer) -> None:
    """Burn what this process charged and could not finish: its mark or its answer could not be written."""
    for charge, charge_hash in sorted(abandoned):
        pending = writer.state.pending.get(charge)
        if pending is not None and pending.hash == charge_hash:
            writer.append("burn", {"charge": charge, "reason": "the charge could not be finished"})


def _agree(state: State, look: Look, mark: Mark | None) -> None:
    """LedgerRolledBack unless the entries go at least as far as the mark and agree with it."""
    if mark is None:
        if state.witnessed:  # moved here, or the mark was removed: who knows
            raise LedgerRolledBack(None, "the mark that its entries name", "none in this state directory")
        return
    if mark.seq > state.seq:
        raise LedgerRolledBack(None, f"at least {mark.seq} entries", f"{state.seq}")
    if (mark.seq, mark.hash) == (state.seq, state.hash):
        return
    row = look.row(mark.seq)
    if row is None or _text(row.hash) != mark.hash:
        raise LedgerRolledBack(mark.seq, f"hash {mark.hash} at entry {mark.seq}", "another entry in its place")


def _begun(look: Look) -> State:
    """The newest stored state that an entry vouches for; nothing folded yet if there is none."""
    first = look.first()
    if first not in (None, 1):
        raise LedgerCorrupt(1, "entry 1", f"entry {first}")
    text, opening = look.kept(_FOLD), look.row(1)
    if text is None or opening is None:
        return State()
    found = folded(opening, text, look.row)
    return State() if found is None else found


def _fold_on(state: State, look: Look) -> Iterator[tuple[int, Body]]:
    while rows := look.rows(after=state.seq, limit=1000):
        for row in rows:
            yield row.seq, advance(state, row)


def _resolved(look: Look, body: Body, seq: int) -> Body:
    """The body with its answer's text, after checking that against its hash."""
    digest = large(body)
    if digest is None:
        return body
    text = look.held(digest)
    if text is None or text_hash(text) != digest:
        raise LedgerCorrupt(seq, f"an answer with hash {digest}", "another or none")
    return {**body, "answer_text": text}


def _entry(look: Look, seq: int) -> tuple[Body, str]:
    row, before = look.row(seq), look.row(seq - 1)
    if row is None:
        raise ParameterError(f"the ledger has no entry {seq}")
    state = State(seq=seq - 1, hash=GENESIS if before is None else _text(before.hash))
    return checked_body(state, row), _text(row.hash)


def _coarse(time: str) -> str:
    """The hour: a finer time would tell how long a run took."""
    return f"{time[:13]}:00:00Z"


def _text(value: bytes) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else repr(value)
