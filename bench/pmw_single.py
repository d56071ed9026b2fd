"""The same questions one by one, in random order, with the number of scopes declared: against the known workload."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

import discreet as dp
from bench import pmw_tables
from discreet.query import And, Count, Equals

RUNS, MOST = 5, 10_000


def section(path: Path | None = None) -> list[str]:
    """The section of bench/RESULTS.md."""
    found = path or pmw_tables.found()
    if found is None:
        return ["", "## One by one", "", "**left out: statsmodels, which has the rows, is not in .venv-aim**"]
    columns = pmw_tables.read(found)
    with threadpool_limits(1):
        lines = [_line(columns, *case) for case in itertools.product("SML", ("1", "0.1"))]
    return [
        "",
        "## One by one: every cell of all pairs and triples as a question of its own, in random order",
        "",
        f"`Session(table, ledger, scopes=20)`, add-remove; largest / mean error in persons, mean of {RUNS} runs (M",
        f"and L: 2); at most {MOST:,} questions of a table; each is a predicate, answered and recorded in the ledger.",
        "",
        "| table | epsilon | questions | one by one | known workload | ms a question |",
        "|---|---|---|---|---|---|",
        *lines,
    ]


def _line(columns: dict[str, npt.NDArray[np.float64]], name: str, epsilon: str) -> str:
    runs = [_run(columns, name, epsilon, seed) for seed in range(RUNS if name == "S" else 2)]
    together = [pmw_tables.run(columns, name, epsilon, "add-remove") for _ in range(RUNS)]
    largest, mean, each, questions = (float(np.mean(numbers)) for numbers in zip(*runs, strict=True))
    workload = f"{np.mean([run.largest for run in together]):,.0f} / {np.mean([run.mean for run in together]):.2f}"
    return f"| {name} | {epsilon} | {questions:,.0f} | {largest:,.0f} / {mean:.2f} | {workload} | {1000 * each:.2f} |"


def _run(
    columns: dict[str, npt.NDArray[np.float64]], name: str, epsilon: str, seed: int
) -> tuple[float, float, float, int]:
    codes, table = pmw_tables.table(columns, name, "add-remove")
    domain = table.facts.domain
    ledger = dp.Ledger.in_memory(dp.Budget(epsilon, "1e-6"), table, failure_share=0)
    session = dp.Session(table, ledger, scopes=20)
    asked = [
        (scope, cell)
        for size in (2, 3)
        for scope in itertools.combinations(domain.names, size)
        for cell in itertools.product(*(range(domain.column(each).size) for each in scope))
    ]
    truth = {scope: pmw_tables.truth(codes, scope, domain) for scope in {scope for scope, _ in asked}}
    np.random.default_rng(seed).shuffle(asked)  # type: ignore[arg-type]
    del asked[MOST:]
    start, errors = time.perf_counter(), []
    for scope, cell in asked:
        question = Count(And(*(Equals(column, int(code)) for column, code in zip(scope, cell, strict=True))))
        answer = session.ask(question)
        errors.append(abs(answer.value - int(truth[tuple(scope)][tuple(cell)])))
    seconds = time.perf_counter() - start
    return max(errors), float(np.mean(errors)), seconds / len(asked), len(asked)


if __name__ == "__main__":
    pmw_tables.main(section)
