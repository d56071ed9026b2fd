"""What durability costs: one charge of a ledger on disk against a bare 4 KiB write and fsync, in one run.

The two are interleaved, so that whatever else the disk does meets both. A charge is two durable writes (the entry, then
the high-water mark) around the pricing, the fold and the check; a release is a charge, a run and the stored answer.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from discreet.data import Table
from discreet.domain import Domain, Number
from discreet.guarantee import Budget
from discreet.ledger import Ledger
from discreet.ledger.charging import Purchase, charge
from discreet.mechanisms.additive import Laplace
from discreet.query import Count
from discreet.records import record
from discreet.release import release

Row = tuple[str, float, float, float]


def rows(times: int = 300) -> list[Row]:
    """(what, our milliseconds, the floor's milliseconds, ratio), medians."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("DISCREET_BENCH_DIR")) as name:
        folder = Path(name)
        table = Table({"age": list(range(100))}, Domain(age=Number(0, 120, step=1)), name="people")
        ledger = Ledger.create(folder / "people.ledger", Budget(1, "1e-6"), table, state_dir=folder / "state")
        mechanism = Laplace(Count(), Fraction(10**6))
        purchase = Purchase(record(mechanism), mechanism.guarantee(table.facts), table, "release")
        descriptor = os.open(folder / "bare", os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            bare = _bare_write(descriptor)
            return [
                _compared("one durable charge", lambda: charge(ledger, purchase), bare, times),
                _compared("one release", lambda: release(mechanism, table, ledger=ledger), bare, times),
            ]
        finally:
            os.close(descriptor)
            ledger.close()


def section() -> list[str]:
    """The section of bench/RESULTS.md."""
    return [
        "",
        "## Durability",
        "",
        "Medians, in turn. The floor promises nothing: it is what the disk takes to keep 4 KiB.",
        "",
        "| what | ours, ms | bare 4 KiB write and fsync, ms | ratio |",
        "|---|---|---|---|",
        *(f"| {what} | {ours:.3f} | {floor:.3f} | {ratio:.2f} |" for what, ours, floor, ratio in rows()),
    ]


def _bare_write(descriptor: int) -> Callable[[], None]:
    block = os.urandom(4096)

    def write() -> None:
        os.write(descriptor, block)
        os.fsync(descriptor)

    return write


def _compared(what: str, ours: Callable[[], object], floor: Callable[[], object], times: int) -> Row:
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(times):
        for act, into in zip((ours, floor), taken, strict=True):
            start = time.perf_counter()
            act()
            into.append((time.perf_counter() - start) * 1000)
    mine, bare = (statistics.median(each) for each in taken)
    return what, mine, bare, mine / bare


if __name__ == "__main__":
    print("\n".join(section()))
