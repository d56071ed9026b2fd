"""What a ledger costs: a durable charge beside a bare fsync, several writers beside one, and how it grows.

*Durability.* One charge of a ledger on disk, interleaved with two floors, so that whatever else the disk does meets all
three. A charge makes two files durable, one after the other: the entries in SQLite's log, then the high-water mark,
around the pricing, the fold and the check. The floor of the same durability writes and syncs as many bytes to two files
in place, and does nothing else. The other floor is one bare 4 KiB write and fsync. A release is a charge, a run and the
stored answer.

*Waiting together.* Releases a second by one process and by eight on one ledger, on this disk and on one that takes five
milliseconds for every sync (a sleep before the real sync, as a spinning or a remote disk has it).

*PostgreSQL.* The same charge and the same release in a PostgreSQL of the benchmark's own (`tests/postgres.py`), in
SQLite, and beside what PostgreSQL itself takes to commit one row of that size, in turn on the same disk. Then releases
a second by one process and by eight.

*Growth.* Ledgers of up to a million entries as a service would write them: a budget pays for some thousands of counts,
and nearly all other entries are free answers. They are written by the ledger's own writer, many in a transaction.
"""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import discreet as dp
from discreet.answering.adaptive import MANNER
from discreet.answering.linear_query import meaning
from discreet.catalogue import CATALOGUE
from discreet.certificate import certificate
from discreet.ledger import mark, sqlite
from discreet.ledger.answer_codec import encode
from discreet.ledger.charging import Purchase, charge
from discreet.records import record

Row = tuple[str, float, float, float]
LOG = 2 * (4096 + 24)  # bytes of a charge in the log: a page of the entries, one of their index, two headers
SLOW = 0.005  # seconds for a sync of the slow disk
WRITERS = 8
SIZES = (10**3, 10**4, 10**5, 10**6)
PAID = 2_000  # counts that the budget of a long ledger pays for
DOMAIN = dp.Domain(
    age=dp.Number(0, 120, step=1),
    visits=dp.Number(0, 50, step=1),
    sex=dp.Category("F", "M"),
    region=dp.Category(*range(20)),
)


def people() -> dp.Table:
    columns = {"age": [40] * 1000, "visits": [3] * 1000, "sex": ["F"] * 1000, "region": [1] * 1000}
    return dp.Table(columns, DOMAIN, name="people")


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=os.environ.get("DISCREET_BENCH_DIR")) as name:
        yield Path(name)


def ledger_in(place: Path, table: dp.Table, budget: dp.Budget) -> dp.Ledger:
    return dp.Ledger.create(place / "people.ledger", budget, table, state_dir=place / "state")


# Durability.


def rows(times: int = 300) -> list[Row]:
    """(what, our milliseconds, those of two files made durable, those of a bare write and fsync), medians."""
    with folder() as place:
        table = people()
        ledger = ledger_in(place, table, dp.Budget(1, "1e-6"))
        mechanism = dp.Laplace(dp.Count(), Fraction(10**6))
        purchase = Purchase(record(mechanism), mechanism.guarantee(table.facts), table, "release")
        descriptors = [os.open(place / name, os.O_RDWR | os.O_CREAT, 0o600) for name in ("bare", "log", "small")]
        try:
            floors = (_same_durability(*descriptors[1:]), bare_write(descriptors[0]))
            return [
                _compared("one durable charge", lambda: charge(ledger, purchase), floors, times),
                _compared("one release", lambda: dp.release(mechanism, table, ledger=ledger), floors, times),
            ]
        finally:
            for each in descriptors:
                os.close(each)
            ledger.close()


def bare_write(descriptor: int) -> Callable[[], None]:
    block = os.urandom(4096)

    def write() -> None:
        os.write(descriptor, block)
        os.fsync(descriptor)

    return write


def _same_durability(log: int, small: int) -> Callable[[], None]:
    """As many bytes as a charge writes, to two files in turn, each synced before the next."""
    block, places = os.urandom(LOG), itertools.cycle(range(50))
    os.write(log, 50 * block)
    os.write(small, block[: 2 * mark.SLOT])
    os.fsync(log)
    os.fsync(small)

    def write() -> None:
        place = next(places)
        os.pwrite(log, block, place * LOG)
        os.fdatasync(log)
        os.pwrite(small, block[: mark.SLOT], place % 2 * mark.SLOT)
        os.fdatasync(small)

    return write


def _compared(what: str, ours: Callable[[], object], floors: Sequence[Callable[[], object]], times: int) -> Row:
    taken: list[list[float]] = [[] for _ in (ours, *floors)]
    for _ in range(times):
        for act, into in zip((ours, *floors), taken, strict=True):
            into.append(1000 * _seconds(act))
    mine, same, bare = map(statistics.median, taken)
    return what, mine, same, bare


def _seconds(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


# Waiting together.


def writers(rounds: int = 3) -> list[tuple[str, float, float]]:
    """(disk, releases a second by one process, by eight), medians of rounds in turn."""
    found = []
    for disk, wait in (("this disk", 0.0), (f"{1000 * SLOW:g} ms for a sync", SLOW)):
        taken: dict[int, list[float]] = {1: [], WRITERS: []}
        for _ in range(rounds):
            for count, into in taken.items():
                into.append(_rate(count, wait))
        found.append((disk, statistics.median(taken[1]), statistics.median(taken[WRITERS])))
    return found


def _rate(count: int, wait: float, releases: int = 160, where: str | None = None) -> float:
    """Releases a second by so many processes; where: the address of a ledger, instead of a file."""
    context = multiprocessing.get_context("fork")
    with folder() as place:
        where = where or str(place / "people.ledger")
        dp.Ledger.create(where, dp.Budget(1000), people(), state_dir=place / "state").close()
        gate = context.Barrier(count + 1)
        arguments = (where, place / "state", gate, wait, releases // count)
        children = [context.Process(target=_write, args=arguments) for _ in range(count)]
        for each in children:
            each.start()
        gate.wait()
        seconds = _seconds(lambda: [each.join() for each in children])
        assert not any(each.exitcode for each in children)
    return releases / seconds


def _write(where: str, state: Path, gate: Any, wait: float, releases: int) -> None:
    sync = os.fdatasync

    def slow(descriptor: int) -> None:
        time.sleep(wait)
        sync(descriptor)

    if wait:
        mark._sync_data = sqlite._sync_data = slow
    table, ledger = people(), dp.Ledger.open(where, state_dir=state)
    mechanism = dp.Laplace(dp.Count(), 1000)
    dp.release(mechanism, table, ledger=ledger)
    gate.wait()
    for _ in range(releases):
        dp.release(mechanism, table, ledger=ledger)


# PostgreSQL.


def postgres(times: int = 200) -> list[Row]:
    """(what, milliseconds in PostgreSQL, in SQLite, of PostgreSQL's own commit), medians in turn."""
    with server() as address, folder() as place:
        table, budget = people(), dp.Budget(1, "1e-6")
        mechanism = dp.Laplace(dp.Count(), Fraction(10**6))
        purchase = Purchase(record(mechanism), mechanism.guarantee(table.facts), table, "release")
        far = dp.Ledger.create(f"{address}&ledger=people", budget, table, state_dir=place / "far")
        near = ledger_in(place, table, budget)
        with bare_commit(address) as commit:
            return [
                _compared(
                    "one durable charge",
                    lambda: charge(far, purchase),
                    (lambda: charge(near, purchase), commit),
                    times,
                ),
                _compared(
                    "one release",
                    lambda: dp.release(mechanism, table, ledger=far),
                    (lambda: dp.release(mechanism, table, ledger=near), commit),
                    times,
                ),
            ]


@contextmanager
def server() -> Iterator[str]:
    from tests.postgres import Cluster

    cluster = Cluster()
    try:
        yield cluster.database()
    finally:
        cluster.close()


@contextmanager
def bare_commit(address: str) -> Iterator[Callable[[], None]]:
    """What PostgreSQL takes for one durable transaction with one row of a charge's size."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE TABLE bare(number bigint PRIMARY KEY, body text)")
        numbers, body = itertools.count(), "x" * 700

        def commit() -> None:
            connection.execute("INSERT INTO bare VALUES (%s, %s)", (next(numbers), body))

        yield commit


def postgres_writers(rounds: int = 3) -> list[tuple[str, float, float]]:
    """(store, releases a second by one process, by eight), medians of rounds in turn."""
    with server() as address:
        numbers = itertools.count()
        taken: dict[tuple[str, int], list[float]] = {}
        for _ in range(rounds):
            for count in (1, WRITERS):
                for store, where in (("PostgreSQL", f"{address}&ledger={next(numbers)}"), ("SQLite", None)):
                    taken.setdefault((store, count), []).append(_rate(count, 0.0, where=where))
    rate = {key: statistics.median(each) for key, each in taken.items()}
    return [(store, rate[store, 1], rate[store, WRITERS]) for store in ("PostgreSQL", "SQLite")]


# Growth.


def grown(place: Path, size: int) -> dp.Ledger:
    """A ledger with so many entries."""
    table = people()
    ledger = ledger_in(place, table, dp.Budget(1000, "1e-6"))
    facts = ledger.recorded(table.facts)[1]
    every = max(2, size // min(PAID, size // 4))
    with ledger.store.reading() as state:
        done = state.seq
    while done < size:
        with ledger.store.writing(marked=False) as writer:
            for number in range(done, min(size, done + 2000)):
                if number % every == 0:
                    _append_count(writer, ledger, table, facts, number)
                else:
                    _append_saying(writer, facts, number)
            done = writer.state.seq
    _ask(table, ledger, 3)  # a session that has read it: what it read is stored
    return ledger


def _question(number: int) -> dp.Count:
    low = number % 90
    return dp.Count(dp.And(dp.Between("age", low, low + number // 90 % 30), dp.Equals("region", number // 2700 % 20)))


def _append_count(writer: Any, ledger: dp.Ledger, table: dp.Table, facts: str, number: int) -> None:
    from discreet.ledger.state import price_record

    mechanism = dp.Gaussian(_question(number), 5000)
    price = price_record(ledger.price(mechanism.guarantee(table.facts)))
    body = {"mode": "release", "mechanism": record(mechanism), "facts_hash": facts, "price": price, "allowance": None}
    more = {"request": None, "memo": "", "who": "", "version": "", "process": ledger.store.parts.alive.name()}
    entry = writer.append("charge", {**body, **more})
    writer.append("answer", {"charge": entry, "answer": encode(number % 1000)})


def _append_saying(writer: Any, facts: str, number: int) -> None:
    question = _question(number)
    answer = encode(("1/20", number % 1000, 40.0, "hypothesis", 0, None))
    fields = {"facts_hash": facts, "question": record(question), "meaning": meaning(question, DOMAIN)}
    writer.append("said", {**fields, "manner": MANNER, "answer": answer})


def growth(sizes: tuple[int, ...] = SIZES) -> list[tuple[Any, ...]]:
    """(entries, megabytes, then seconds: open, a release, first question of a session, certificate, verify)."""
    found = []
    for size in sizes:
        with folder() as place:
            grown(place, size).close()
            found.append((size, (place / "people.ledger").stat().st_size / 1e6, *_taken(place)))
    return found


def _taken(place: Path) -> Iterator[float]:
    """The seconds for everything that one does with a long ledger, each on a ledger that was just opened."""
    table = people()

    def opened() -> dp.Ledger:
        return dp.Ledger.open(place / "people.ledger", state_dir=place / "state")

    acts: list[Callable[[dp.Ledger], object]] = [
        lambda ledger: dp.release(dp.Laplace(dp.Count(), 1000), table, ledger=ledger),
        lambda ledger: _ask(table, ledger, 4),
        lambda ledger: certificate(ledger, 3),
        lambda ledger: ledger.verify(CATALOGUE),
    ]
    yield _seconds(opened)
    for act in acts:
        with opened() as ledger:
            yield _seconds(functools.partial(act, ledger))


def _ask(table: dp.Table, ledger: dp.Ledger, region: int) -> Any:
    session = dp.Session(table, ledger, alpha=0.4, beta=0.05)
    return session.ask(f"SELECT COUNT(*) FROM people WHERE age >= 40 AND region = {region}")


# The sections.


def section(name: str = "durability") -> list[str]:
    """A section of bench/RESULTS.md."""
    sections = {
        "durability": _durability,
        "writers": _together,
        "postgres": _postgres,
        "postgres_writers": _postgres_together,
        "growth": _growth,
    }
    return sections[name]()


def _durability() -> list[str]:
    return [
        "",
        "## Durability",
        "",
        "Medians, in turn. A charge makes the log and the mark durable, one after the other; a program that writes and",
        "syncs as many bytes to two files, and promises nothing, is the floor of the same durability.",
        "",
        "| what | ours, ms | the same two files made durable, ms | ratio | bare 4 KiB write and fsync, ms | ratio |",
        "|---|---|---|---|---|---|",
        *(
            f"| {what} | {ours:.3f} | {same:.3f} | {ours / same:.2f} | {bare:.3f} | {ours / bare:.2f} |"
            for what, ours, same, bare in rows()
        ),
    ]


def _together() -> list[str]:
    return [
        "",
        "## Writers of one ledger",
        "",
        f"Releases a second, one process and {WRITERS} on one ledger; medians of three rounds, in turn, on "
        f"{os.cpu_count()} cores. Where syncing is slow, those who wait are served together.",
        "",
        f"| disk | one | {WRITERS} | ratio |",
        "|---|---|---|---|",
        *(f"| {disk} | {one:.0f} | {many:.0f} | {many / one:.1f} |" for disk, one, many in writers()),
    ]


def _postgres() -> list[str]:
    return [
        "",
        "## A ledger in PostgreSQL",
        "",
        "Medians, in turn, on one disk. PostgreSQL's own commit is one transaction that inserts one row of a charge's",
        "size and waits for the disk; a charge also moves the mark, and a release is a charge, a run and an answer.",
        "",
        "| what | in PostgreSQL, ms | in SQLite, ms | ratio | PostgreSQL's own commit, ms | ratio |",
        "|---|---|---|---|---|---|",
        *(
            f"| {what} | {far:.3f} | {near:.3f} | {far / near:.2f} | {bare:.3f} | {far / bare:.2f} |"
            for what, far, near, bare in postgres()
        ),
    ]


def _postgres_together() -> list[str]:
    return [
        "",
        "## Writers of one ledger in PostgreSQL",
        "",
        f"Releases a second, one process and {WRITERS} on one ledger; medians of three rounds, in turn.",
        "",
        f"| store | one | {WRITERS} | ratio |",
        "|---|---|---|---|",
        *(f"| {store} | {one:.0f} | {many:.0f} | {many / one:.1f} |" for store, one, many in postgres_writers()),
    ]


def _growth() -> list[str]:
    return [
        "",
        "## Growth of a ledger",
        "",
        f"Seconds on ledgers of which all but some {2 * PAID:,} entries are free answers, each time just opened. The "
        "first question of a new session is about something that nobody asked before.",
        "",
        "| entries | MB | open | a release | first question | certificate | verify with prices |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| {size:,} | {megabytes:.1f} | {' | '.join(f'{each:.3f}' for each in seconds)} |"
            for size, megabytes, *seconds in growth()
        ),
    ]


if __name__ == "__main__":
    print("\n".join(section(*sys.argv[1:])))
