"""The high-water mark: a small file, away from the ledger, that remembers how far the ledger had come.

A copy of a ledger restored from yesterday has forgotten today's charges. The mark says how many entries there were,
the hash of the last one and what was spent, so a ledger that is behind it, or that has another entry in that place, is
refused until `reconcile` has raised its spending to what the mark proves. So is a ledger whose charges left a mark
that is not here: it was moved to another machine or user, or somebody removed the mark. An operator who restores both
is outside what a file can detect.

The file has two slots of fixed size with a checksum each; a write goes to the slot that is not the newest, so a torn
write leaves the other one. A write transaction holds the file's lock from before it looks at the mark until it has
moved it, so that copies of a ledger under one mark take turns. The mark is never lowered, except by `reconcile`.
`witness` is a random name of this mark: entries carry it, so one can tell which part of a ledger this mark has seen.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from discreet.errors import LedgerCorrupt, LedgerUnavailable
from discreet.ledger.durable import sync_directory
from discreet.ledger.price import Price

SLOT = 2048
_PATIENCE = 60.0  # seconds


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a ledger had come: its last entry and the sums after it."""

    seq: int
    hash: str
    spent: Price
    witness: str


_Newest = tuple[int, Mark] | None
_sync_data = getattr(os, "fdatasync", os.fsync)  # not every system has the cheaper one


class MarkFile:
    """The mark of one ledger id in one state directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._name = str(path)
        self._last: tuple[bytes, _Newest] = (b"", None)

    @contextmanager
    def held(self) -> Iterator[int]:
        """The file, locked: whoever writes to a copy of the same ledger under this mark waits.

        The lock is the file's own (flock), so it holds whatever else this process opens and closes; it is undone by
        name, because a process forked meanwhile would otherwise keep it.
        """
        with _os_errors("cannot be written"):
            file = os.fdopen(self._opened(), "rb+", buffering=0)  # closed, and so unlocked, whatever interrupts us
        with file:
            _lock(file.fileno(), fcntl.LOCK_EX)
            try:
                yield file.fileno()
            finally:
                fcntl.flock(file.fileno(), fcntl.LOCK_UN)

    def read(self, descriptor: int | None = None) -> Mark | None:
        """The newest mark, or None if none was written; LedgerCorrupt if there is one but neither slot is whole.

        Without the descriptor of `held` the file is opened here, and nothing is locked.
        """
        try:
            with _os_errors("cannot be read"):
                own = os.open(self._name, os.O_RDONLY | os.O_CLOEXEC) if descriptor is None else descriptor
        except FileNotFoundError:
            return None
        try:
            with _os_errors("cannot be read"):
                if os.fstat(own).st_size == 0:  # its writer was interrupted, or is about to write it
                    return None
                found = self._newest(own)
                if found is None and descriptor is None:  # perhaps it is being written: look again, with writers out
                    _lock(own, fcntl.LOCK_SH)
                    found = self._newest(own)
        finally:
            if descriptor is None:
                os.close(own)
        if found is None:
            raise LedgerCorrupt(None, "a whole high-water mark", f"a damaged one in {self.path.name}")
        return found[1]

    def raise_to(
        self, descriptor: int, seq: int, head: str, spent: Price, *, witness: str, durable: bool = True
    ) -> None:
        """Move the mark up to this entry; leave it if it is further already. On return it is durable if so asked."""
        with _os_errors("cannot be written"):
            newest = self._newest(descriptor)
            if newest is None or newest[1].seq < seq:
                mark = Mark(seq, head, spent, newest[1].witness if newest else witness)
                self._write(descriptor, 0 if newest is None else 1 - newest[0], mark)
            if durable:
                _sync_data(descriptor)
            if newest is None:
                sync_directory(self.path.parent)

    def reset(self, descriptor: int, mark: Mark) -> None:
        """Put the mark to this entry, wherever it was: after a reconciliation."""
        with _os_errors("cannot be written"):
            for slot in (0, 1):
                self._write(descriptor, slot, mark)
            os.fsync(descriptor)
            sync_directory(self.path.parent)

    def _write(self, descriptor: int, slot: int, mark: Mark) -> None:
        """Fill one slot, and remember what the file holds now."""
        words = _spelled(mark)
        if len(words) >= SLOT:  # sums of more than 800 digits: a closed book says at least as much
            mark = Mark(mark.seq, mark.hash, Price(None, None, mark.spent.failure), mark.witness)
            words = _spelled(mark)
        text = words.ljust(SLOT - 1) + b"\n"
        if os.pwrite(descriptor, text, slot * SLOT) != SLOT:
            raise OSError(0, "the high-water mark was written only in part")
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

    def _opened(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            return os.open(self._name, flags, 0o600)
        except FileNotFoundError:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            return os.open(self._name, flags, 0o600)


def _lock(descriptor: int, kind: int) -> None:
    """Wait for the lock, but not for ever: a process that was stopped may hold it."""
    last = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > last:
                raise LedgerUnavailable("the high-water mark is locked by another process: try again later") from None
            time.sleep(0.002)


@contextmanager
def _os_errors(trouble: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise LedgerUnavailable(f"the high-water mark {trouble}: {error.strerror}") from None


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


def _spelled(mark: Mark) -> bytes:
    """Words: entry, its hash, the three sums ("-" for a closed book), the witness; then the checksum of these."""
    sums = ("-" if amount is None else str(amount) for amount in (mark.spent.renyi, mark.spent.pure))
    held = " ".join((str(mark.seq), mark.hash, *sums, str(mark.spent.failure), mark.witness)).encode("ascii")
    return held + b" " + _checksum(held)


def _checksum(held: bytes) -> bytes:
    return hashlib.sha256(held).hexdigest().encode("ascii")


def _parsed(slot: bytes) -> Mark | None:
    """The mark in a slot, or None if its checksum does not say so."""
    held, _, checksum = slot.rstrip(b" \n").rpartition(b" ")
    if not held or _checksum(held) != checksum:
        return None
    seq, head, renyi, pure, failure, witness = held.decode("ascii").split(" ")
    spent = Price(None if renyi == "-" else int(renyi), None if pure == "-" else int(pure), int(failure))
    return Mark(int(seq), head, spent, witness)
