"""The secret states of open conversations: noisy thresholds that must survive a restart and must not be read.

`<ledger>.secret`, mode 0600: a JSON object from the hash of the conversation's charge to its state. It is rewritten as
a whole, atomically, and only while the ledger's write lock is held. A state that is missing, or a file that cannot be
understood, means that the conversation is over; drawing a new threshold would be a second run of a mechanism that was
paid once. A ledger in memory keeps the states in memory.

A copy of the file restored from earlier is not detected. For AboveThreshold that changes nothing: its state never
changes while it is open, and its end is in the ledger; if the ledger is restored too, `reconcile` ends all
conversations.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from discreet.errors import LedgerUnavailable
from discreet.ledger.durable import replace_file
from discreet.records import Json, canonical


class SecretFile:
    """The secrets beside one ledger."""

    def __init__(self, ledger: Path | None) -> None:
        self._path = None if ledger is None else ledger.with_name(ledger.name + ".secret")
        self._memory: dict[str, Json] = {}

    def get(self, charge_hash: str) -> Json:
        """The state of the conversation with this charge; None if it is not here."""
        return self._all().get(charge_hash)

    def keep(self, charge_hash: str, state: Json) -> None:
        """Replace the state, durably."""
        self._write({**self._all(), charge_hash: state})

    def forget(self, charge_hash: str) -> None:
        """Remove the state, as well as can be. Never raises: a failure at the last answer would be that answer.

        If the file cannot be rewritten (no space) it is removed or emptied, and with it all the others. If not even
        that can be done, the end that the ledger records has to do.
        """
        try:
            held = self._all()
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
            replace_file(self._path, canonical(held))

    def _all(self) -> dict[str, Json]:
        if self._path is None:
            return self._memory
        try:
            held = json.loads(self._path.read_bytes())
        except (FileNotFoundError, ValueError, RecursionError):
            return {}
        except OSError as error:
            raise LedgerUnavailable(f"{self._path.name} cannot be read: {error.strerror}") from None
        return held if isinstance(held, dict) else {}


def _empty(path: Path) -> None:
    os.truncate(path, 0)
