"""Where the time of a question goes: parsing, thinking, and the durable writes, measured apart; and the CPU of each of
thousands of questions in SQL, which the sessions are to answer within 50 ms if they are free and 150 ms if paid."""

from __future__ import annotations

import gc
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dp
from bench.session_data import people
from bench.session_sql import clinic, joined, mixed
from discreet.sql import parse

PERSONS = 20_000
DOMAIN = dp.Domain(
    age=dp.Number(0, 90, step=10),
    sex=dp.Category("F", "M"),
    region=dp.Category("N", "S", "E", "W"),
    visits=dp.Number(0, 5, step=1),
)


def section() -> list[str]:
    """The section of bench/RESULTS.md."""
    rng = np.random.default_rng(1)
    columns = {name: rng.integers(0, column.size, PERSONS) for name, column in DOMAIN.items()}
    rows = {
        "age": columns["age"] * 10,
        "sex": np.array(["F", "M"])[columns["sex"]],
        "region": np.array(list("NSEW"))[columns["region"]],
        "visits": columns["visits"],
    }
    table = dp.Table(rows, DOMAIN, name="people")
    with tempfile.TemporaryDirectory() as folder:
        on_disk = dp.Ledger.create(Path(folder) / "l", dp.Budget(10, 1e-6), table, state_dir=folder)
        in_memory = dp.Ledger.in_memory(dp.Budget(10, 1e-6), table)
        disk, memory = _sources(table, on_disk), _sources(table, in_memory)
    parsing = _median(lambda text: parse(text, DOMAIN, table="people"), _texts())
    return [
        "",
        "## Where the time of a question goes",
        "",
        f"{PERSONS:,} rows, {DOMAIN.size:,} cells; milliseconds a question, medians; parsing is in both columns.",
        "",
        "| source | ledger in memory | ledger on disk (durable) |",
        "|---|---|---|",
        *(f"| {source} | {memory[source]:.2f} | {disk[source]:.2f} |" for source in memory if source in disk),
        f"| parsing alone | {parsing:.2f} | {parsing:.2f} |",
        *_many(),
    ]


MANY = 5_000
FEW = {"price": "0.02%"}
NEAR = {"alpha": "0.02"}


def _many() -> list[str]:
    """The CPU of each question of long sessions."""
    sessions: list[tuple[str, Any, dp.Budget, dict[str, str], list[str]]] = [
        ("price 0.02%, 8 columns", people(), dp.Budget(1, 1e-6), FEW, mixed(MANY)),
        ("price 0.02%, 15 columns", people(wide=7), dp.Budget(1, 1e-6), FEW, mixed(MANY, wide=7)),
        ("alpha 0.02, 8 columns", people(), dp.Budget(1, 1e-6), NEAR, mixed(MANY // 5)),
        ("alpha 0.02, 15 columns", people(wide=7), dp.Budget(1, 1e-6), NEAR, mixed(MANY // 5, wide=7)),
        ("alpha 0.02, 8 columns, a budget of 20", people(), dp.Budget(20, 1e-6), NEAR, mixed(MANY // 5)),
        ("price 0.02%, two tables", clinic(), dp.Budget(1, 1e-6), FEW, joined(MANY // 4)),
    ]
    lines = [
        "",
        "### Every question of a long session",
        "",
        "Milliseconds of CPU for each question in SQL: counts, one and two groups, averages, sums, quantiles, HAVING, "
        f"CASE, joins; ledgers in memory. The first question imports scipy. Of {MANY:,} questions the last thousand is "
        "shown apart. The last column leaves out the time of Python's garbage collector, which now and then looks at "
        "all objects of the process.",
        "",
        "| session | questions | which | how many | median | 99 % | largest | without collections |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, table, budget, terms, asked in sessions:
        lines += [f"| {name} | {cells} |" for cells in _times(table, budget, terms, asked)]
    return lines


def _times(table: Any, budget: dp.Budget, terms: dict[str, str], asked: Sequence[str]) -> Iterator[str]:
    session = dp.Session(table, dp.Ledger.in_memory(budget, table), **terms)
    times: dict[str, list[tuple[float, float]]] = defaultdict(list)
    late: dict[str, list[tuple[float, float]]] = defaultdict(list)
    collector = Collector()
    for place, question in enumerate(asked):
        collector.seconds, start = 0.0, time.process_time()
        try:
            kind = "paid" if session.ask(question).price else "free"
        except (dp.BudgetExceeded, dp.errors.UnsupportedQuery):
            kind = "refused"
        seconds = time.process_time() - start
        taken = 1000 * seconds, 1000 * (seconds - collector.seconds)
        times[kind].append(taken)
        if len(asked) == MANY and place >= MANY - 1_000:
            late[kind].append(taken)
    for said, held in ((f"1 to {len(asked):,}", times), (f"{MANY - 999:,} to {MANY:,}", late)):
        for kind, each in sorted(held.items()):
            whole, own = np.array(each).T
            shown = (np.median(whole), np.quantile(whole, 0.99), whole.max(), own.max())
            yield f"{said} | {kind} | {len(each):,} | {' | '.join(f'{ms:.1f}' for ms in shown)}"
    gc.callbacks.remove(collector)


def _sources(table: dp.Table, ledger: dp.Ledger) -> dict[str, float]:
    """The median milliseconds of an answer from each source."""
    session = dp.Session(table, ledger, alpha="0.02")
    seen: dict[str, list[float]] = {}
    for text in (*_texts(), *_texts()):
        start = time.perf_counter()
        answer = session.ask(text)
        seen.setdefault(answer.source, []).append(1000 * (time.perf_counter() - start))
    return {source: statistics.median(each) for source, each in sorted(seen.items())}


class Collector:
    """The CPU that the garbage collector takes."""

    def __init__(self) -> None:
        self.seconds = self.start = 0.0
        gc.callbacks.append(self)

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self.start = time.process_time()
        else:
            self.seconds += time.process_time() - self.start


def _texts() -> Iterator[str]:
    yield "SELECT age, sex, COUNT(*) FROM people GROUP BY age, sex"
    for age in range(0, 100, 10):
        for sex in "FM":
            yield f"SELECT COUNT(*) FROM people WHERE age = {age} AND sex = '{sex}'"
        for region in "NSEW":
            yield f"SELECT COUNT(*) FROM people WHERE age >= {age} AND region <> '{region}' AND visits > 1"


def _median(act: Callable[[str], object], texts: Iterator[str]) -> float:
    times = []
    for text in texts:
        start = time.perf_counter()
        act(text)
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


if __name__ == "__main__":
    print("\n".join(section()))
