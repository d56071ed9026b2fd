"""A process that uses a ledger until it is killed: python -m tests.e2e.ledger_worker LEDGER RECEIVED.

It reads one line of JSON for each child, forks a child that works on the ledger and writes down every answer it
receives, and sees to it that the child dies by SIGKILL; then it says "done". The orders are {"opening": n}, after n
lines of the ledger's code; {"working": n}, n lines once the ledger is open; {"seconds": s}, after a time. The children
are forked from a process that has never opened the ledger.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import discreet
from discreet.errors import ConversationOver
from discreet.ledger import Ledger
from discreet.release import converse, release
from tests.ledger_doubles import Guess, Pure, people

PRICE = Fraction(1, 10**6)
FOLDER = Path(discreet.__file__).parent
COUNTED = {str(each) for each in (FOLDER / "release.py", *(FOLDER / "ledger").glob("*.py"))}


def work(path: str, received: int, order: dict[str, Any]) -> None:
    """Releases and conversations without end; every answer that arrives is written down, unbuffered."""
    die_after(order.get("opening"))
    ledger, table = Ledger.open(path), people()
    die_after(order.get("working"))
    while True:
        got = release(Pure(PRICE), table, ledger=ledger)
        note(received, kind="release", entry=got.entry, value=got.value)
        talk = converse(Guess(bound=3, epsilon=PRICE), table, ledger=ledger)
        for guess in range(3):
            try:
                note(received, kind="turn", entry=talk.charge, value=talk.ask(guess))
            except ConversationOver:
                break


def note(received: int, **what: Any) -> None:
    os.write(received, (json.dumps(what) + "\n").encode())


def die_after(lines: int | None) -> None:
    """Kill this process when this many lines of the ledger's code have been executed."""
    if lines is None:
        return
    left = [lines]

    def local(frame: Any, event: str, argument: Any) -> Any:
        if event == "line":
            left[0] -= 1
            if left[0] <= 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return local

    def trace(frame: Any, event: str, argument: Any) -> Any:
        return local if frame.f_code.co_filename in COUNTED else None

    sys.settrace(trace)


def main() -> None:
    path, notes = sys.argv[1:]
    people()
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if not child:
            received = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            work(path, received, order)
        if "seconds" in order:
            time.sleep(order["seconds"])
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        print("done" if os.waitstatus_to_exitcode(status) == -signal.SIGKILL else f"ended: {status}", flush=True)


if __name__ == "__main__":
    main()
