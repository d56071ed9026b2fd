"""The high-water mark: a small file, away from the ledger, that remembers how far the ledger had come.

A copy of a ledger restored from yesterday has forgotten today's charges. The mark records the number of entries, the
hash of the last one and the spending. A ledger that is behind its mark, or that has another entry in that place, is
refused until `reconcile` has raised its spending to what the mark proves. A ledger whose entries name a mark that is
not here is refused too: the ledger was moved to another machine or user, or the mark was removed. A file cannot detect
an operator who restores both.

The file has two slots of fixed size with a checksum each; a write goes to the slot that is not the newest, so a torn
write leaves the other one. The mark is never lowered, except by `reconcile`. `witness` is a random name of this mark:
every entry carries it, from the first one on, so one can tell which part of a ledger this mark has seen.

Group commit. A write transaction holds the lock of <id>.turns from before it reads the mark until its entries are
committed and recorded there as `ahead`. It waits for the disk without that lock, in two stages that serve all waiting
writers together. The holder of <id>.syncs syncs the log for every entry that is committed by then. The holder of the
mark's lock moves the mark to the last synced entry and syncs it, while the next writer syncs the log. <id>.turns
records how far each stage has come; it orders the processes of one boot and is ignored after a reboot.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from discreet.errors import LedgerCorrupt, LedgerUnavailable
from discreet.funds import Price
from discreet.ledger.durable import make_directory, refuse_strangers, sync_directory
from discreet.ledger.process import boot

SLOT = 2048
_PATIENCE = 60.0  # seconds
_LONGEST_WAIT = 0.002  # seconds between two looks at a lock


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a ledger had come: its last entry and the sums after it.

    named  what was spent in each name, by the name's digest; None if the names did not fit
    """

    seq: int
    hash: str
    spent: Price
    witness: str
    named: dict[str, Price] | None = None


def name_digest(name: str) -> str:
    """What stands for an allowance's name in a mark."""
    return hashlib.sha256(name.encode("utf-8")).hexdigest()[:16]


class Held(Protocol):
    """The mark while its writer holds the turn: writers to other copies of the same ledger wait."""

    def read(self) -> Mark | None: ...
    def ahead(self) -> Mark | None: ...
    def commit(self, mark: Mark) -> None: ...
    def reset(self, mark: Mark) -> None: ...


class Witness(Protocol):
    """The high-water mark of one ledger, kept apart from the ledger.

    read    the mark; None if there is none; LedgerCorrupt if it is damaged
    held    the same under a lock. `ahead` is the last commit under this mark, durable or not; `commit` notes another;
            `reset` puts the mark to an entry, wherever it was
    settle  returns when everything up to this entry is durable: the log by `sync`, and the mark if so asked
    """

    def read(self) -> Mark | None: ...
    def held(self) -> AbstractContextManager[Held]: ...
    def settle(self, seq: int, sync: Callable[[], None], *, marked: bool) -> None: ...


_Newest = tuple[int, Mark] | None
_sync_data = getattr(os, "fdatasync", os.fsync)  # not every system has the cheaper one


class MarkFile:
    """The mark of one ledger id in one state directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._turns = path.with_name(f"{path.name}.turns")
        self._syncs = path.with_name(f"{path.name}.syncs")
        self._last: tuple[bytes, _Newest] = (b"", None)

    def read(self) -> Mark | None:
        """The newest mark, or None if none was written; LedgerCorrupt if there is one but neither slot is whole."""
        try:
            with _os_errors("cannot be read"):
                descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            with _os_errors("cannot be read"):
                found = self._newest(descriptor)
                if found is None and os.fstat(descriptor).st_size:  # perhaps it is being written: look with writers out
                    _lock(descriptor, fcntl.LOCK_SH)
                    found = self._newest(descriptor)
                return self._whole(descriptor, found)
        finally:
            os.close(descriptor)

    @contextmanager
    def held(self) -> Iterator[HeldFile]:
        """The mark, held while this process commits.

        The lock is an flock on the file, so opening and closing other files does not release it. It is released
        explicitly, because a process forked meanwhile has inherited it.
        """
        with _opened(self._turns) as turns, _locked(turns):
            yield HeldFile(self, turns)

    def settle(self, seq: int, sync: Callable[[], None], *, marked: bool) -> None:
        """Return when every entry up to this one is durable in the log, and in the mark if `marked`.

        The process that gets the lock of a stage serves all waiting processes; the others find their entry served.
        """
        with _opened(self._turns) as turns, _os_errors("cannot be written"):
            with _opened(self._syncs) as syncs, _locked(syncs, lambda: _logged(turns) >= seq) as mine:
                if mine:
                    ahead = _reached(turns, _AHEAD, seq)  # read before the log is synced: all of it was committed
                    sync()
                    _pwrite(turns, _slot(ahead, boot())[0], _LOGGED)
            if not marked:
                return
            with _opened(self.path) as mark, _locked(mark, lambda: _marked(turns) >= seq) as mine:
                if mine:
                    logged = _reached(turns, _LOGGED, seq)
                    self._raise(mark, logged)
                    _sync_data(mark)
                    _pwrite(turns, _numbered(logged.seq), _MARKED)

    def write_first(self, mark: Mark) -> None:
        """The mark of a ledger that is being made: durable before the ledger can be found."""
        with self.held() as held:
            held.commit(mark)
            held.reset(mark)

    def _raise(self, descriptor: int, mark: Mark) -> None:
        """Move the mark up to this entry; leave it if it is further already."""
        newest = self._newest(descriptor)
        if newest is None or newest[1].seq < mark.seq:
            self._write(descriptor, 0 if newest is None else 1 - newest[0], mark)
        if newest is None:
            sync_directory(self.path.parent)

    def reset(self, mark: Mark, turns: int) -> None:
        """Set the mark to this durable entry, also backwards, while no process is in either stage."""
        with (
            _opened(self._syncs) as syncs,
            _locked(syncs),
            _opened(self.path) as descriptor,
            _locked(descriptor),
            _os_errors("cannot be written"),
        ):
            for slot in (0, 1):
                self._write(descriptor, slot, mark)
            os.fsync(descriptor)
            _pwrite(turns, _slot(mark, boot())[0], _LOGGED)
            _pwrite(turns, _numbered(mark.seq), _MARKED)
            sync_directory(self.path.parent)
            for above in self.path.parents[1:3]:  # which may be new too, made by a process that was interrupted
                with contextlib.suppress(PermissionError):
                    sync_directory(above)

    def _write(self, descriptor: int, slot: int, mark: Mark) -> None:
        """Fill one slot, and remember what the file holds now."""
        text, mark = _slot(mark)
        _pwrite(descriptor, text, slot * SLOT)
        halves = [self._last[0][:SLOT], self._last[0][SLOT:]]
        halves[slot] = text
        self._last = (b"".join(halves), (slot, mark))

    def _newest(self, descriptor: int) -> _Newest:
        """The whole slot with the highest entry, and its number; what was parsed once is not parsed again."""
        held = os.pread(descriptor, 2 * SLOT, 0)
        if held != self._last[0]:
            slots = ((number, _parsed(held[number * SLOT : (number + 1) * SLOT])) for number in (0, 1))
            whole = [(number, mark) for number, mark in slots if mark is not None]
            self._last = (held, max(whole, key=lambda each: each[1].seq, default=None))
        return self._last[1]

    def _whole(self, descriptor: int, found: _Newest) -> Mark | None:
        """The mark that was found; None if the file is empty: its writer was interrupted, or is about to write it."""
        if found is None and os.fstat(descriptor).st_size:
            raise LedgerCorrupt(None, "a whole high-water mark", f"a damaged one in {self.path.name}")
        return None if found is None else found[1]


class HeldFile:
    """The mark of one ledger, while nobody else commits under it."""

    def __init__(self, marks: MarkFile, turns: int) -> None:
        self._marks, self._turns = marks, turns

    def read(self) -> Mark | None:
        """The mark, as `MarkFile.read`."""
        return self._marks.read()

    def ahead(self) -> Mark | None:
        """The last commit under this mark in this boot; it may not be durable yet."""
        with _os_errors("cannot be read"):
            return _noted(self._turns, _AHEAD)

    def commit(self, mark: Mark) -> None:
        """Say how far the ledger has come. What is durable of it is `settle`'s."""
        with _os_errors("cannot be written"):
            _pwrite(self._turns, _slot(mark, boot())[0], _AHEAD)

    def reset(self, mark: Mark) -> None:
        """Put the mark to this entry, wherever it was: for a new ledger, and after a reconciliation."""
        self._marks.reset(mark, self._turns)


# Locks.


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """A file that only its owner may use, created if it is missing; always closed, and so unlocked."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    with _os_errors("cannot be written"):
        try:
            descriptor = os.open(path, flags, 0o600)
        except FileNotFoundError:
            make_directory(path.parent)
            descriptor = os.open(path, flags, 0o600)
    try:
        refuse_strangers(os.fstat(descriptor), f"the high-water mark {path.name}")
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _locked(descriptor: int, done: Callable[[], bool] = lambda: False) -> Iterator[bool]:
    """Hold the lock; yields False if the work was done by another process meanwhile."""
    if not _lock(descriptor, fcntl.LOCK_EX, done):
        yield False
        return
    try:
        yield not done()
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _lock(descriptor: int, kind: int, done: Callable[[], bool] = lambda: False) -> bool:
    """Wait for the lock, at most _PATIENCE seconds, for a stopped process may hold it. False once `done`."""
    last, pause = time.monotonic() + _PATIENCE, _LONGEST_WAIT / 16
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > last:
                raise LedgerUnavailable("the high-water mark is locked by another process: try again later") from None
        except OSError as error:
            raise LedgerUnavailable(f"the high-water mark cannot be locked: {error.strerror}") from None
        time.sleep(pause)
        pause = min(_LONGEST_WAIT, 2 * pause)
        if done():
            return False


@contextmanager
def _os_errors(trouble: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise LedgerUnavailable(f"the high-water mark {trouble}: {error.strerror}") from None


# Where marks are.


def new_witness() -> str:
    """A random name for a mark."""
    return secrets.token_hex(8)


def state_directory(chosen: str | os.PathLike[str] | None = None) -> Path:
    """Where marks are kept: as given, or DISCREET_STATE, or discreet/ in the user's state directory."""
    if chosen is not None:
        return Path(os.path.abspath(chosen))  # the process may change its directory later
    if os.environ.get("DISCREET_STATE"):
        return Path(os.path.abspath(os.environ["DISCREET_STATE"]))
    base = os.environ.get("XDG_STATE_HOME")
    try:
        return Path(os.path.abspath(base) if base else Path.home() / ".local" / "state") / "discreet"
    except RuntimeError:
        raise LedgerUnavailable("there is no home directory for high-water marks: set DISCREET_STATE") from None


def mark_file(state_dir: Path, ledger_id: str) -> MarkFile:
    return MarkFile(state_dir / "marks" / ledger_id)


# Slots: the mark has two of them; the file of turns has the last commit, and how far log and mark are durable.

_AHEAD, _LOGGED, _MARKED = 0, SLOT, 2 * SLOT


def _slot(mark: Mark, *first: str) -> tuple[bytes, Mark]:
    """The text of a slot and what it says; what does not fit is left out so that it says no less."""
    words = _spelled(mark, *first)
    if len(words) >= SLOT:
        mark = replace(mark, named=None)
        words = _spelled(mark, *first)
    if len(words) >= SLOT:  # sums of more than 800 digits: a closed book says at least as much
        mark = replace(mark, spent=Price(None, None, mark.spent.failure))
        words = _spelled(mark, *first)
    return words.ljust(SLOT - 1) + b"\n", mark


def _spelled(mark: Mark, *first: str) -> bytes:
    """Words: entry, its hash, the three sums, the witness, and the sums of each name; then the checksum of these."""
    named = () if mark.named is None else ("+", *(f"{name}:{_sums(each, ':')}" for name, each in mark.named.items()))
    words = (*first, str(mark.seq), mark.hash, _sums(mark.spent, " "), mark.witness, *named)
    return _checked(" ".join(words))


def _sums(spent: Price, between: str) -> str:
    """The three sums; "-" is a closed book."""
    amounts = ("-" if amount is None else str(amount) for amount in (spent.renyi, spent.pure))
    return between.join((*amounts, str(spent.failure)))


def _price(renyi: str, pure: str, failure: str) -> Price:
    return Price(None if renyi == "-" else int(renyi), None if pure == "-" else int(pure), int(failure))


def _checked(words: str) -> bytes:
    held = words.encode("ascii")
    return held + b" " + hashlib.sha256(held).hexdigest().encode("ascii")


def _words(slot: bytes) -> list[str] | None:
    """The words of a slot, or None if its checksum does not say so."""
    held, _, checksum = slot.rstrip(b" \n").rpartition(b" ")
    if not held or hashlib.sha256(held).hexdigest().encode("ascii") != checksum:
        return None
    return held.decode("ascii").split(" ")


def _parsed(slot: bytes) -> Mark | None:
    words = _words(slot)
    return None if words is None else _mark(words)


def _mark(words: list[str]) -> Mark:
    seq, head, renyi, pure, failure, witness, *rest = words
    named = None
    if rest:  # marks of before version 0.2 have no names
        named = {name: _price(*sums) for name, *sums in (each.split(":") for each in rest[1:])}
    return Mark(int(seq), head, _price(renyi, pure, failure), witness, named)


def _noted(turns: int, place: int) -> Mark | None:
    """A mark that stands in the file of turns; None if there is none of this boot, or it is being written."""
    words = _words(os.pread(turns, SLOT, place))
    return None if words is None or len(words) < 7 or words[0] != boot() else _mark(words[1:])


def _reached(turns: int, place: int, seq: int) -> Mark:
    """A mark that has come at least so far; read again if it is just being written."""
    for _ in range(1000):
        found = _noted(turns, place)
        if found is not None and found.seq >= seq:
            return found
        time.sleep(_LONGEST_WAIT / 16)
    raise LedgerUnavailable(
        "another copy of this ledger took its place, or its turns were removed: nothing was released"
    )


def _logged(turns: int) -> int:
    """How far the log is durable, as far as this boot knows."""
    found = _noted(turns, _LOGGED)
    return 0 if found is None else found.seq


def _marked(turns: int) -> int:
    """How far the mark is durable, as far as this boot knows."""
    words = _words(os.pread(turns, SLOT, _MARKED))
    return 0 if words is None or len(words) != 2 or words[0] != boot() else int(words[1])


def _numbered(seq: int) -> bytes:
    return _checked(f"{boot()} {seq}").ljust(SLOT - 1) + b"\n"


def _pwrite(descriptor: int, text: bytes, place: int) -> None:
    if os.pwrite(descriptor, text, place) != len(text):
        raise OSError(0, "the high-water mark was written only in part")
