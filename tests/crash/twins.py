"""Twins: ways to be wrong, planted so that each harness can be seen to notice them.

A twin is planted in the process that acts, after everything is imported: nothing in discreet knows of it. Those that
forget to sync a file are also planted in the recording (`disk.Disk`, deaf), where it does not matter who syncs it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from discreet.ledger import charging, mark
from discreet.ledger.answer_codec import decode


@dataclass(frozen=True, slots=True)
class Twin:
    """What is wrong, and how it is made so."""

    wrong: str
    plant: Callable[[], None]


def _python_does_not_sync() -> None:
    os.fsync = os.fdatasync = mark._sync_data = lambda descriptor: None  # type: ignore[assignment]


def _sqlite_does_not_sync() -> None:
    """Every connection that is opened from now on has synchronous=OFF, whatever is set afterwards."""

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *more: Any) -> sqlite3.Cursor:
            return super().execute("PRAGMA synchronous=OFF" if "synchronous" in sql else sql, *more)

    connect = sqlite3.connect
    sqlite3.connect = lambda *args, **named: connect(*args, **named, factory=Connection)  # type: ignore[assignment]


def _nothing_syncs() -> None:
    _python_does_not_sync()
    _sqlite_does_not_sync()


def _answers_before_it_stores() -> None:
    """The value leaves before it is in the ledger."""
    store = charging.answer

    def answer(ledger: Any, receipt: charging.Receipt, text: str) -> None:
        EARLY[0](charge=receipt.entry, hash=receipt.hash, value=decode(text))
        store(ledger, receipt, text)

    charging.answer = answer


EARLY: list[Callable[..., None]] = []
"""Where a twin that answers too early says so."""

TWINS: dict[str, Twin] = {
    "nothing syncs": Twin("neither Python nor SQLite waits for the disk", _nothing_syncs),
    "SQLite does not sync": Twin("SQLite has synchronous=OFF", _sqlite_does_not_sync),
    "answers too early": Twin("the answer is given before it is stored", _answers_before_it_stores),
}
DEAF: dict[str, Callable[[str], bool]] = {
    "the log": lambda path: path.endswith("-wal"),
    "the mark": lambda path: path.startswith("state/") and "marks/" in path,
    "the secret": lambda path: ".secret" in path,
    "the folders": lambda path: path in (".", "books", "state", "state/marks", "rows"),
}
"""Files whose syncs are left out of a recording."""
