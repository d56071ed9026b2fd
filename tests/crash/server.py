"""Forks a process for each run: python -m tests.crash.server LIBRARY, with the library preloaded.

It reads one line of JSON for each run, a list with an order for each process, and answers with the list of their exit
codes. Everything is imported before, and no ledger is ever opened here: SQLite's connections must not cross a fork.
An order says which operation runs on which folder, what the layer does meanwhile, which twin is planted, and where the
process notes what it was told (outside the folder, unbuffered: a note is an answer that was delivered).
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

import discreet as dp
from discreet.errors import DiscreetError
from discreet.estimators import Mean
from tests.crash.layer import Layer
from tests.crash.operations import OPERATIONS, TENTH, Ask, Operation, Place, Quantile, Workload
from tests.crash.twins import EARLY, TWINS

Result = TypeVar("Result")


def run(layer: Layer, order: dict[str, Any]) -> None:
    """One process: arm, run, note. Errors of discreet are noted by their class, others with the line they come from."""
    notes = os.open(order["notes"], os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def say(**note: Any) -> None:
        line = json.dumps(note)
        layer.note(line)
        os.write(notes, (line + "\n").encode())

    place, operation = Place(order["root"]), OPERATIONS[order["operation"]]
    EARLY[:] = [say]
    if order.get("twin"):
        TWINS[order["twin"]].plant()
    layer.arm(order["root"], **order["layer"])
    ledger = _noted(say, lambda: operation.begin(place))
    if ledger is not None:
        _noted(say, lambda: operation.act(ledger, place, say))
        _noted(say, ledger.close)
    calls = layer.trace()
    layer.disarm()
    if order.get("goes_on"):
        _noted(say, lambda: _go_on(ledger or operation.begin(place), operation.table(place), operation, say))
    say(ended=True, calls=calls)


def _go_on(ledger: dp.Ledger, table: dp.Table, operation: Operation, say: Any) -> None:
    """The disk works again, and the same process goes on with the same ledger."""
    operation.mend(ledger)
    got = dp.release(TENTH, table, ledger=ledger)
    say(charge=got.entry, hash=got.hash, value=got.value, went_on=True)
    ledger.close()


def _noted(say: Any, act: Callable[[], Result]) -> Result | None:
    try:
        return act()
    except DiscreetError as error:
        say(error=type(error).__name__, text=str(error))
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        say(raw=f"{type(error).__name__} in {frame.name}, {frame.filename}, line {frame.lineno}: {frame.line}")
    return None


def import_everything() -> None:
    """Import what the operations import on their way, as a child that has run some tells: it takes half a second each
    time, and nothing may run here that a child would inherit."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        table = Place("").in_memory()
        ledger = dp.Ledger.in_memory(dp.Budget(100, 1e-6), table)
        for operation in (Workload(), Quantile(), Ask()):
            operation.act(ledger, Place(""), lambda **note: None)
        Mean(epsilon=0.1, ledger=ledger).fit(table, "age")
        os.write(writer, json.dumps([*sys.modules, "duckdb", "pyarrow"]).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as names:
        for name in json.load(names):
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    os.waitpid(child, 0)


def main() -> None:
    import_everything()
    layer = Layer(sys.argv[1])
    print("ready", flush=True)
    for line in sys.stdin:
        children = []
        for order in json.loads(line):
            child = os.fork()
            if not child:
                try:
                    run(layer, order)
                finally:
                    os._exit(0)
            children.append(child)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        print(json.dumps(codes), flush=True)


if __name__ == "__main__":
    main()
