"""A process that releases about all epochs of a table that grows until it is killed; python -m ... FOLDER RECEIVED.

As `ledger_worker`: a line of JSON for each child, {"working": n}, which dies after n lines of the ledger's code.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import discreet as dp
from tests.e2e.ledger_worker import die_after, note

QUERY = dp.Count()


def table(folder: Path, ledger: dp.Ledger) -> dp.GrowingTable:
    return dp.Schema.read(folder / "visits.toml").grown(ledger.epochs)


def work(folder: Path, received: int, order: dict[str, Any]) -> None:
    """Releases about two epochs, then the next step of a running total; every answer that arrives is written down."""
    ledger = dp.Ledger.open(folder / "visits.ledger")
    rows = table(folder, ledger)
    running = dp.Running.find(QUERY, rows, ledger)
    assert running is not None
    die_after(order.get("working"))
    two = rows.over(*rows.epochs[:2])
    while True:
        for place in range(len(rows.epochs)):
            some = dp.Running(running.counter, rows.over(*rows.epochs[: place + 1]), ledger, running.charge)
            each = some.totals()[-1]
            note(received, kind="total", epoch=each.epoch, value=each.total)
            got = dp.release(dp.Gaussian(QUERY, 10**5), two, ledger=ledger)
            note(received, kind="release", entry=got.entry, value=got.value)


def main() -> None:
    folder, notes = map(Path, sys.argv[1:])
    for line in sys.stdin:
        child = os.fork()
        if not child:
            received = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            work(folder, received, json.loads(line))
        _, status = os.waitpid(child, 0)
        print("done" if os.waitstatus_to_exitcode(status) == -signal.SIGKILL else f"ended: {status}", flush=True)


if __name__ == "__main__":
    main()
