"""The small file beside a table's file that names the table's ledger, so that there is only one.

`people.parquet.discreet.json` holds the ledger's random id, of a table that grows also the epoch that the file is, and
nothing else: two tables that differ in one row have sidecars that differ in the id only. The first ledger that uses a
file claims it. Symbolic links lead to the same file; a file with several names (hard links) could have a sidecar for
each, and is refused.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from discreet.core import LedgerMismatch, LedgerUnavailable, canonical
from discreet.ledger.durable import create_file, os_errors


def sidecar_path(source: Path) -> Path:
    """Where the sidecar of a table's file is."""
    real = Path(os.path.realpath(source))
    return real.with_name(real.name + ".discreet.json")


def require_unclaimed(source: Path) -> None:
    """LedgerMismatch if the file has a ledger, or has several names and so could have several ledgers."""
    path = _only_sidecar(source)
    if path.exists():
        raise LedgerMismatch(
            f"{source.name} has a ledger already: {path.name} names it. Two ledgers would be two budgets for the same "
            "people. If it is lost, restore it from a backup; only if it was never used, delete that file and try again"
        )


def claim(source: Path, ledger_id: str, epoch: str | None = None, *, first: str | None = None) -> None:
    """Make the sidecar name this ledger; LedgerMismatch if it names another. Written only if it is not there yet.

    epoch  of a table that grows: the epoch that the file is; it is no other one afterwards
    first  the ledger's first epoch: a sidecar from before the table grew is of that one
    """
    path = _only_sidecar(source)
    if not path.exists():
        create_file(path, canonical({"ledger": ledger_id, **({} if epoch is None else {"epoch": epoch})}) + "\n")
    if _named(path) != ledger_id:
        raise LedgerMismatch(f"{source.name} belongs to another ledger: {path.name} names it")
    if epoch is not None and (held := _held(path).get("epoch", first)) != epoch:
        raise LedgerMismatch(f"{source.name} is the file of the epoch {held}, found {epoch}: {path.name} says so")


def require_claimed(source: Path, ledger_id: str) -> None:
    """LedgerMismatch unless the file has a sidecar that names this ledger."""
    path = _only_sidecar(source)
    if not path.exists() or _named(path) != ledger_id:
        raise LedgerMismatch(f"{source.name} is not the file of this ledger: {path.name} does not name it")


def disown(source: Path, ledger_id: str) -> bool:
    """Remove the sidecar if it names this ledger; whether there is certainly none left that does."""
    path = sidecar_path(source)
    try:
        if path.exists() and _named(path) == ledger_id:
            path.unlink()
    except (LedgerUnavailable, OSError):
        return False
    return True


def _only_sidecar(source: Path) -> Path:
    """Where its sidecar is; LedgerMismatch if the file has several names, and could have a sidecar for each."""
    with os_errors(f"{source.name} cannot be looked at"):
        names = os.stat(source).st_nlink
    if names > 1:
        raise LedgerMismatch(
            f"{source.name} has several names (hard links), and each could have a ledger: copy the file, or remove "
            "the other names"
        )
    return sidecar_path(source)


def _named(path: Path) -> object:
    return _held(path).get("ledger")


def _held(path: Path) -> dict[str, object]:
    try:
        with os_errors(f"{path.name} cannot be read"):
            return dict(json.loads(path.read_bytes()))
    except (ValueError, TypeError, RecursionError):
        return {}
