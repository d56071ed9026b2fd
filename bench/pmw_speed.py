"""Where the time of a question goes: parsing, thinking, and the durable writes, measured apart."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import discreet as dp
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
    ]


def _sources(table: dp.Table, ledger: dp.Ledger) -> dict[str, float]:
    """The median milliseconds of an answer from each source."""
    session = dp.Session(table, ledger, alpha="0.02")
    seen: dict[str, list[float]] = {}
    for text in (*_texts(), *_texts()):
        start = time.perf_counter()
        answer = session.ask(text)
        seen.setdefault(answer.source, []).append(1000 * (time.perf_counter() - start))
    return {source: statistics.median(each) for source, each in sorted(seen.items())}


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
