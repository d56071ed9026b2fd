"""The small file beside a table's file that names the table's ledger, so that there is only one.

`people.parquet.discreet.json` holds the ledger's random id and nothing else: two tables that differ in one row have
sidecars that differ in the id only. The first ledger that uses a file claims it; links lead to the same file.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from discreet.errors import LedgerMismatch
from discreet.ledger.durable import create_file
from discreet.records import canonical


def sidecar(source: Path) -> Path:
    """Where the sidecar of a table's file is."""
    real = Path(os.path.realpath(source))
    return real.with_name(real.name + ".discreet.json")


def claim(source: Path, ledger_id: str, *, new: bool) -> None:
    """Make the sidecar name this ledger; LedgerMismatch if it names another, or (new) if there is one at all."""
    path = sidecar(source)
    if create_file(path, canonical({"ledger": ledger_id}) + "\n"):
        return
    if new:
        raise LedgerMismatch(
            f"{source.name} has a ledger already: {path.name} names it. Two ledgers would be two budgets for the same "
            "people. If it is lost, restore it from a backup; only if it was never used, delete that file and try again"
        )
    if _named(path) != ledger_id:
        raise LedgerMismatch(f"{source.name} belongs to another ledger: {path.name} names it")


def _named(path: Path) -> object:
    try:
        return json.loads(path.read_bytes())["ledger"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
