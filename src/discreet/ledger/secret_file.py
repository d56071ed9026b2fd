"""The secret states of open conversations: noisy thresholds that must survive a restart and must not be read.

`<ledger>.secret`, mode 0600: a JSON object with the states, by the hash of the conversation's charge, and their
checksum. It is rewritten as a whole, atomically, and only while the ledger's write lock is held. A state that is
missing, or a file that cannot be understood or is not as its checksum says, means that the conversation is over;
drawing a new threshold would be a second run of a mechanism that was paid once. A ledger in memory keeps the states in
memory. A file that others own or may read is refused: it would not be secret.

A copy of the file restored from earlier is not detected. For AboveThreshold that changes nothing: its state never
changes while it is open, and its end is in the ledger; if the ledger is restored too, `reconcile` ends all
conversations.
"""

from __future__ import annotations

import json
import os
from glob import escape
from pathlib import Path

from discreet.errors import LedgerUnavailable
from discreet.ledger.durable import read_own, remove, replace_file
from discreet.records import Json, canonical, digest


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
            held = self.all()
            if held.pop(charge_hash, None) is not None:
                self._write(held)
        except LedgerUnavailable:
            self._drop()

    def _drop(self) -> None:
        if self._path is None:
            return
        for drop in (os.unlink, _empty):
            try:
                drop(self._path)
                return
            except OSError:
                continue

    def _write(self, held: dict[str, Json]) -> None:
        if self._path is None:
            self._memory = held
        else:
            for interrupted in self._path.parent.glob(f".{escape(self._path.name)}.*.new"):
                remove(interrupted)  # of a writer that died; we hold the lock
            replace_file(self._path, canonical({"check": digest(held), "states": held}))

    def all(self) -> dict[str, Json]:
        """The states of all open conversations."""
        if self._path is None:
            return self._memory
        try:
            held = json.loads(read_own(self._path))
        except (FileNotFoundError, ValueError, RecursionError):
            return {}
        except OSError as error:
            raise LedgerUnavailable(f"{self._path.name} cannot be read: {error.strerror}") from None
        return _checked(held) if isinstance(held, dict) else {}


def _checked(held: dict[str, Json]) -> dict[str, Json]:
    """The states, if they are as their checksum says; files of before version 0.2 have no checksum."""
    if held.keys() != {"check", "states"}:
        return held
    states = held["states"]
    return states if isinstance(states, dict) and digest(states) == held["check"] else {}


def _empty(path: Path) -> None:
    os.truncate(path, 0)
