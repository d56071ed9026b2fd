"""What a service costs: free and paid questions over HTTP, beside a bare fsync and beside PostgreSQL's own commit.

One real process of the service on each store, with the time grid of replies off: the grid would be all that one sees.
First one analyst asks in turn, then fifty at once; who is told that the service is too busy asks again, and the whole
time counts. A paid question is a charge, a pass over the rows, a stored answer,
a stored saying and a kept reply: four durable writes. A free one with a request id is one: the kept reply.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from tests.crash.service import Storm, asked, prepared, serving

from bench.ledger import bare_commit, bare_write, folder, server

ALONE, TOGETHER, SECONDS = 150, 50, 20.0
PRICE = "0.001%"


@dataclass(frozen=True, slots=True)
class Times:
    """Replies of one kind: seconds each, and over how many seconds they came."""

    store: str
    clients: int
    kind: str
    seconds: Sequence[float]
    span: float

    def row(self, fsync: float, commit: float) -> str:
        middle, late = statistics.median(self.seconds), statistics.quantiles(self.seconds, n=20)[-1]
        rate = len(self.seconds) / self.span
        ratios = f"{middle / fsync:.1f} | {middle / commit:.1f}"
        head = f"| {self.store} | {self.clients} | {self.kind} | {rate:.0f}"
        return f"{head} | {1000 * middle:.1f} | {1000 * late:.1f} | {ratios} |"


def measured(
    store: str, where: str | None, floors: Sequence[Callable[[], None]], taken: list[list[float]]
) -> list[Times]:
    """Free and paid questions by one analyst in turn, with the floors between them, then by fifty at once."""
    with folder() as place:
        made = prepared(place / "desk", where, TOGETHER, Fraction(1, TOGETHER))
        with serving(made, PRICE, 0.0) as process:
            alone = _alone(store, process.port, made.keys["a0"], floors, taken)
            return [*alone, *_together(store, process.port, made.keys)]


def _alone(
    store: str, port: int, key: str, floors: Sequence[Callable[[], None]], taken: list[list[float]]
) -> Iterator[Times]:
    paid, free = list[float](), list[float]()
    for number in range(ALONE):
        sql = f"SELECT COUNT(*) FROM people WHERE age >= {number % 120} AND region = {number // 120}"
        paid.append(_asked(port, key, f"paid{number}", sql))
        free.append(_asked(port, key, f"free{number}", sql))
        for each, floor in zip(taken, floors, strict=True):
            each.append(_timed(floor))
    yield Times(store, 1, "paid", paid, sum(paid))
    yield Times(store, 1, "free", free, sum(free))


def _together(store: str, port: int, keys: dict[str, str]) -> Iterator[Times]:
    storm = Storm([port], keys)
    with storm.blowing():
        time.sleep(SECONDS)
    good = [(each, each.reply["price"]["nano"] > 0) for each in storm.told if each.status == 200]
    for kind, wanted in (("paid", True), ("free", False)):
        yield Times(store, len(keys), kind, [each.seconds for each, paid in good if paid is wanted], SECONDS)


def _asked(port: int, key: str, request: str, sql: str) -> float:
    began = time.perf_counter()
    status, body = asked(port, key, request, sql)
    if status != 200:
        raise RuntimeError(f"the service said {status}: {body.decode()}")
    return time.perf_counter() - began


def _timed(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


@contextmanager
def _written(place: Path) -> Iterator[Callable[[], None]]:
    descriptor = os.open(place / "bare", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield bare_write(descriptor)
    finally:
        os.close(descriptor)


def section() -> list[str]:
    with ExitStack() as stack:
        place, address = stack.enter_context(folder()), stack.enter_context(server())
        floors = stack.enter_context(_written(place)), stack.enter_context(bare_commit(address))
        taken: list[list[float]] = [[], []]
        times = [
            *measured("SQLite", None, floors, taken),
            *measured("PostgreSQL", address, floors, taken),
        ]
        fsync, commit = (statistics.median(each) for each in taken)
    return [
        "## A service",
        "",
        "Questions over HTTP to one process of `discreet serve`, 2,000 persons, time grid off. Ratios are of medians",
        f"to a bare 4 KiB write and fsync ({1000 * fsync:.2f} ms) and to PostgreSQL's own commit of one row",
        f"({1000 * commit:.2f} ms), all in one run. Fifty analysts ask half of their questions in common.",
        "",
        "| store | analysts | question | replies a second | median, ms | 95 %, ms | over fsync | over commit |",
        "|---|---|---|---|---|---|---|---|",
        *(each.row(fsync, commit) for each in times),
    ]
