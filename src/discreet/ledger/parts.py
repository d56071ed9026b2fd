"""The parts that ledgers are put together of: one SQLite file with its mark, lock and secrets; or memory."""

from __future__ import annotations

from pathlib import Path

from discreet.ledger.mark import mark_file
from discreet.ledger.place import Parts
from discreet.ledger.process import LocalProcesses
from discreet.ledger.secret_file import SecretFile
from discreet.ledger.session_lock import FileTurns
from discreet.ledger.sqlite import SqlitePlace


def file_parts(path: Path, state_dir: Path) -> Parts:
    """A ledger in this file, with its mark in this directory."""
    return Parts(
        place=SqlitePlace(path),
        witness=lambda ledger_id: mark_file(state_dir, ledger_id),
        alive=LocalProcesses(),
        turns=FileTurns(path),
        secrets=SecretFile(path),
        path=path,
        state_dir=state_dir,
    )


def memory_parts() -> Parts:
    """A ledger that lives as long as this process."""
    place = SqlitePlace(None)
    place.create()
    return Parts(
        place=place,
        witness=lambda ledger_id: None,
        alive=LocalProcesses(),
        turns=FileTurns(None),
        secrets=SecretFile(None),
    )
