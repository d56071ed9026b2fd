"""A ledger on this machine: one SQLite file with its mark, its session lock and its secrets; or memory.

*Session lock.* Of all processes that ask through one ledger, only one looks, decides and charges at a time. Privacy
needs no such lock: every charge is a transaction of its own. It keeps two analysts who ask the same question at the
same moment from paying for it twice. The file `<ledger>.asking` is empty and may be deleted when no session asks.

*Secrets.* The states of open conversations, noisy thresholds, must survive a restart and must not be read.
`<ledger>.secret`, mode 0600, is a JSON object with the states, by the hash of the conversation's charge, and their
checksum. It is rewritten as a whole, atomically, and only while the ledger's write lock is held. A state that is
missing, or a file that cannot be understood or is not as its checksum says, means that the conversation is over;
drawing a new threshold would be a second run of a mechanism that was paid once. A ledger in memory keeps the states in
memory. A file that others own or may read is refused: it would not be secret.

A copy of the secrets restored from earlier is not detected. For AboveThreshold that changes nothing: its state never
changes while it is open, and its end is in the ledger; if the ledger is restored too, `reconcile` ends all
conversations.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from glob import escape
from pathlib import Path

from discreet.core import Json, LedgerUnavailable, canonical, digest
from discreet.data import Database, Dataset, GrowingTable, Identity
from discreet.ledger.durable import FileLock, read_own, remove, replace_file
from discreet.ledger.mark import mark_file
from discreet.ledger.opening import new_store
from discreet.ledger.place import Parts
from discreet.ledger.process import LocalProcesses
from discreet.ledger.sqlite import SqlitePlace, copied
from discreet.ledger.state import Body

_PATIENCE = 300.0  # seconds: another session may be fitting a large hypothesis


@dataclass(frozen=True, slots=True)
class FileSite:
    """A file, with its mark in a directory, as `place.Site`."""

    where: Path
    state_dir: Path

    def exists(self) -> bool:
        return self.where.exists()

    def parts(self, *, look: bool = False) -> Parts:
        """The ledger in this file; to look at it in a read-only folder, a copy of it."""
        path = self.where
        place = copied(path) if look and not os.access(path.parent, os.W_OK) else SqlitePlace(path)
        return Parts(
            place=place,
            witness=partial(mark_file, self.state_dir),
            alive=LocalProcesses(),
            turns=FileTurns(path),
            secrets=lambda _: SecretFile(path),
            path=path,
            state_dir=self.state_dir,
        )

    def build(self, opening: Body, table: Dataset | Database | GrowingTable | Identity, now: Callable[[], str]) -> None:
        """Make a whole ledger with its mark under a name that no reader looks for; then give it its own name."""
        place = SqlitePlace(self.where.with_name(f".{self.where.name}.{secrets.token_hex(8)}.new"))
        place.create()
        try:
            new_store(replace(self.parts(), place=place), opening, table, now)
            place.publish(self.where)
        except BaseException:
            place.discard()
            raise

    def discard(self) -> None:
        remove(self.where)


def memory_parts() -> Parts:
    """A ledger that lives as long as this process."""
    place = SqlitePlace(None)
    place.create()
    return Parts(place, lambda _: None, LocalProcesses(), FileTurns(None), lambda _: SecretFile(None))


class FileTurns:
    """Turns by the lock of one file; a ledger in memory (None) belongs to one process, which never waits."""

    def __init__(self, ledger: Path | None) -> None:
        self._path = None if ledger is None else ledger.with_name(ledger.name + ".asking")

    def alone(self) -> AbstractContextManager[object]:
        """Wait until no other session of this ledger is inside."""
        return nullcontext() if self._path is None else FileLock(self._path, self._path.name, patience=_PATIENCE)


class SecretFile:
    """The secrets beside one ledger."""

    def __init__(self, ledger: Path | None) -> None:
        self._path = None if ledger is None else ledger.with_name(ledger.name + ".secret")
        self._memory: dict[str, Json] = {}

    def get(self, charge_hash: str) -> Json:
        """The state of the conversation with this charge; None if it is not here."""
        return self.all().get(charge_hash)

    def keep(self, charge_hash: str, state: Json) -> None:
        """Replace the state, durably."""
        self._write({**self.all(), charge_hash: state})

    def forget(self, charge_hash: str) -> None:
        """Remove the state, as well as can be. Never raises: a failure at the last answer would be that answer.

        If the file cannot be rewritten (no space) it is removed or emptied, and with it all the others. If not even
        that can be done, the end that the ledger records has to do.
        """
        try:
            states = self.all()
            if states.pop(charge_hash, None) is not None:
                self._write(states)
        except LedgerUnavailable:
            for drop in (os.unlink, lambda path: os.truncate(path, 0)):
                with suppress(OSError):
                    drop(str(self._path))
                    return

    def _write(self, states: dict[str, Json]) -> None:
        if self._path is None:
            self._memory = states
        else:
            for interrupted in self._path.parent.glob(f".{escape(self._path.name)}.*.new"):
                remove(interrupted)  # of a writer that died; we hold the lock
            replace_file(self._path, canonical({"check": digest(states), "states": states}))

    def all(self) -> dict[str, Json]:
        """The states of all open conversations; none, if they are not as their checksum says."""
        if self._path is None:
            return self._memory
        try:
            held = json.loads(read_own(self._path))
        except (FileNotFoundError, ValueError, RecursionError):
            return {}
        except OSError as error:
            raise LedgerUnavailable(f"{self._path.name} cannot be read: {error.strerror}") from None
        if type(held) is not dict or held.keys() != {"check", "states"}:
            return held if type(held) is dict else {}  # files of before version 0.2 have no checksum
        states = held["states"]
        return states if type(states) is dict and digest(states) == held["check"] else {}
