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
mark's lock moves the mark to the last synced entry and syncs it, while the next writer syncs the log. <id>.turns has a
slot for the last commit and one for each stage, which says how far that stage has come; it orders the processes of one
boot and is ignored after a reboot.

A slot is parsed once: `MarkFile` remembers the last text of each slot, read or written, and what it says.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from discreet.core import LedgerCorrupt, LedgerUnavailable, Price
from discreet.ledger.durable import FileLock, open_own, os_errors, sync_path, wait_for_lock
from discreet.ledger.place import Mark
from discreet.ledger.process import boot

SLOT = 2048
_AHEAD, _LOGGED, _MARKED = 0, 1, 2  # slots of <id>.turns
_WHAT = "the high-water mark"
_UNREADABLE, _UNWRITABLE = f"{_WHAT} cannot be read", f"{_WHAT} cannot be written"
_Slot = tuple[bytes, Mark | None]
_sync_data = getattr(os, "fdatasync", os.fsync)  # not every system has the cheaper one


class MarkFile:
    """The mark of one ledger id in one state directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._name, self._turns, self._syncs = str(path), f"{path}.turns", f"{path}.syncs"
        self._last: tuple[bytes, tuple[int, Mark] | None] = (b"", None)
        self._noted: dict[int, _Slot] = {}

    def read(self) -> Mark | None:
        """The newest mark, or None if none was written; LedgerCorrupt if there is one but neither slot is whole."""
        with os_errors(_UNREADABLE):
            try:
                descriptor = os.open(self._name, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return None
            try:
                newest = self._newest(descriptor)
                if newest is None and os.fstat(descriptor).st_size:  # perhaps it is being written: with writers out
                    wait_for_lock(descriptor, fcntl.LOCK_SH, _WHAT)
                    newest = self._newest(descriptor)
                    if newest is None:
                        raise LedgerCorrupt(None, "a whole high-water mark", f"a damaged one in {self.path.name}")
                return None if newest is None else newest[1]
            finally:
                os.close(descriptor)

    @contextmanager
    def held(self) -> Iterator[HeldFile]:
        """The mark, held while this process commits."""
        with FileLock(self._turns, _WHAT) as turns:
            yield HeldFile(self, turns.descriptor)

    def settle(self, seq: int, sync: Callable[[], None], *, marked: bool) -> None:
        """Return when every entry up to this one is durable in the log, and in the mark if `marked`.

        The process that gets the lock of a stage serves all waiting processes; the others find their entry served.
        """
        turns = open_own(self._turns, _WHAT)

        def sync_log(_: int) -> _Slot:
            ahead = self._reached(turns, _AHEAD, seq)  # read before the log is synced: all of it was committed
            sync()
            return ahead

        def move_mark(descriptor: int) -> _Slot:
            logged = self._reached(turns, _LOGGED, seq)
            newest, mark = self._newest(descriptor), logged[1]
            assert mark is not None
            if newest is None or newest[1].seq < mark.seq:
                self._write(descriptor, 0 if newest is None else 1 - newest[0], mark)
            if newest is None:
                sync_path(self.path.parent)
            _sync_data(descriptor)
            return logged

        try:
            with os_errors(_UNWRITABLE):
                self._stage(self._syncs, turns, _LOGGED, seq, sync_log)
                if marked:
                    self._stage(self._name, turns, _MARKED, seq, move_mark)
        finally:
            os.close(turns)

    def _stage(self, path: str, turns: int, slot: int, seq: int, serve: Callable[[int], _Slot]) -> None:
        """Bring one slot of the turns up to this entry, under the lock of a file; or wait until another process has.

        serve  the work of the stage: returns the slot that says how far it has come
        """

        def done() -> bool:
            mark = self.note(turns, slot)[1]
            return mark is not None and mark.seq >= seq

        with FileLock(path, _WHAT, done=done) as lock:
            if lock.taken and not done():
                self.write_note(turns, slot, serve(lock.descriptor))

    def write_first(self, mark: Mark) -> None:
        """The mark of a ledger that is being made: durable before the ledger can be found."""
        with self.held() as held:
            held.commit(mark)
            held.reset(mark)

    def reset(self, mark: Mark, turns: int) -> None:
        """Set the mark to this durable entry, also backwards, while no process is in either stage."""
        with FileLock(self._syncs, _WHAT), FileLock(self._name, _WHAT) as lock, os_errors(_UNWRITABLE):
            for slot in (0, 1):
                self._write(lock.descriptor, slot, mark)
            os.fsync(lock.descriptor)
            for slot in (_LOGGED, _MARKED):
                self.write_note(turns, slot, _slot(mark, boot()))
            sync_path(self.path.parent)
            for above in self.path.parents[1:3]:  # which may be new too, made by a process that was interrupted
                with contextlib.suppress(PermissionError):
                    sync_path(above)

    def _write(self, descriptor: int, slot: int, mark: Mark) -> None:
        """Fill one slot of the mark, and remember what the file holds now."""
        text, mark = _slot(mark)
        _pwrite(descriptor, text, slot)
        halves = [self._last[0][:SLOT], self._last[0][SLOT:]]
        halves[slot] = text
        self._last = (b"".join(halves), (slot, mark))

    def _newest(self, descriptor: int) -> tuple[int, Mark] | None:
        """The whole slot of the mark with the highest entry: its number, and what it says."""
        held = os.pread(descriptor, 2 * SLOT, 0)
        if held != self._last[0]:
            slots = ((number, _parsed(held[number * SLOT : (number + 1) * SLOT])) for number in (0, 1))
            whole = [(number, mark) for number, mark in slots if mark is not None]
            self._last = (held, max(whole, key=lambda each: each[1].seq, default=None))
        return self._last[1]

    def note(self, turns: int, slot: int) -> _Slot:
        """A slot of the turns; it says None if it is not of this boot, or is being written."""
        with os_errors(_UNREADABLE):
            text = os.pread(turns, SLOT, slot * SLOT)
        note = self._noted.get(slot)
        if note is None or note[0] != text:
            note = self._noted[slot] = (text, _parsed(text, boot()))
        return note

    def write_note(self, turns: int, slot: int, note: _Slot) -> None:
        _pwrite(turns, note[0], slot)
        self._noted[slot] = note

    def _reached(self, turns: int, slot: int, seq: int) -> _Slot:
        """A slot of the turns that has come at least to this entry; read again if it is just being written."""
        for _ in range(1000):
            note = self.note(turns, slot)
            if note[1] is not None and note[1].seq >= seq:
                return note
            time.sleep(0.0001)
        raise LedgerUnavailable(
            "another copy of this ledger took its place, or its turns were removed: nothing was released"
        )


class HeldFile:
    """The mark of one ledger, while no other process commits under it; as `place.Held`."""

    def __init__(self, marks: MarkFile, turns: int) -> None:
        self._marks, self._turns = marks, turns

    def read(self) -> Mark | None:
        return self._marks.read()

    def ahead(self) -> Mark | None:
        """The last commit under this mark in this boot; it may not be durable yet."""
        return self._marks.note(self._turns, _AHEAD)[1]

    def commit(self, mark: Mark) -> None:
        """Say how far the ledger has come. What is durable of it is `settle`'s."""
        self._marks.write_note(self._turns, _AHEAD, _slot(mark, boot()))

    def reset(self, mark: Mark) -> None:
        """Put the mark to this entry, wherever it was: for a new ledger, and after a reconciliation."""
        self._marks.reset(mark, self._turns)


def mark_file(state_dir: Path, ledger_id: str) -> MarkFile:
    return MarkFile(state_dir / "marks" / ledger_id)


# Slots. Words: in the turns the boot; entry, its hash, the three sums ("-" is a closed book), the witness, and after a
# "+" the sums of each name; then the checksum of all of these.


def _slot(mark: Mark, *first: str) -> tuple[bytes, Mark]:
    """The text of a slot and what it says; what does not fit is left out so that it says no less."""
    closed = Price(None, None, mark.spent.failure)  # for sums of more than 800 digits: it says at least as much
    for left_out in ({}, {"named": None}, {"named": None, "spent": closed}):
        shorter = replace(mark, **left_out) if left_out else mark
        words = [*first, str(mark.seq), mark.hash, _sums(shorter.spent, " "), mark.witness]
        if shorter.named is not None:
            words += ["+", *(f"{name}:{_sums(each, ':')}" for name, each in shorter.named.items())]
        text = " ".join(words).encode("ascii")
        text += b" " + _checksum(text)
        if len(text) < SLOT:
            break
    return text.ljust(SLOT - 1) + b"\n", shorter


def _checksum(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode("ascii")


def _sums(spent: Price, between: str) -> str:
    amounts = ("-" if amount is None else str(amount) for amount in (spent.renyi, spent.pure))
    return between.join((*amounts, str(spent.failure)))


def _parsed(slot: bytes, *first: str) -> Mark | None:
    """What a slot says; None if its checksum does not agree, or it does not begin with these words."""
    text, _, checksum = slot.rstrip(b" \n").rpartition(b" ")
    words = text.decode("ascii", "replace").split(" ")
    if _checksum(text) != checksum or tuple(words[: len(first)]) != first or len(words) < len(first) + 6:
        return None
    seq, head, renyi, pure, failure, witness, *rest = words[len(first) :]
    named = {name: _price(*sums) for name, *sums in (each.split(":") for each in rest[1:])}
    # Marks of before version 0.2 have no names.
    return Mark(int(seq), head, _price(renyi, pure, failure), witness, named if rest else None)


def _price(renyi: str, pure: str, failure: str) -> Price:
    return Price(None if renyi == "-" else int(renyi), None if pure == "-" else int(pure), int(failure))


def _pwrite(descriptor: int, text: bytes, slot: int) -> None:
    with os_errors(_UNWRITABLE):
        whole = os.pwrite(descriptor, text, slot * SLOT) == len(text)
    if not whole:
        raise LedgerUnavailable(f"{_WHAT} was written only in part")
