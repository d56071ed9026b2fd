"""A known workload beside opendp's AIM: all 2- and 3-way marginals of table S, epsilon 1, delta 1e-6.

    python -m bench.pmw_peers        prints markdown; AIM takes minutes

Both get the same zCDP, that of this budget. AIM is priced for adding or removing a row; ours is shown for that relation
and, beside it, for replacing one. AIM's second fit in one process shows what compiling costs; the faster counts.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import discreet as dp
from bench import pmw_tables
from discreet.pmw import workload
from discreet.query import Histogram

BUDGET, BETA = dp.Budget(1, 1e-6), 0.05
REPEATS, FITS = 9, 2
PYTHON = Path(__file__).parents[1] / ".venv-aim" / "bin" / "python"
SCRIPT = Path(__file__).parent / "peer_aim.py"


@dataclass(frozen=True, slots=True)
class Row:
    """One line: errors over all cells, in persons, and seconds from the rows to all answers."""

    who: str
    largest: float
    mean: float
    seconds: float


def section() -> list[str]:
    """The section of bench/RESULTS.md."""
    with threadpool_limits(1):
        ours = [our_row(relation) for relation in ("add-remove", "replace-one")]
    theirs, note = aim_rows()
    fastest = min((row.seconds for row in theirs), default=None)
    lines = [
        "",
        "## A workload beside opendp's AIM",
        "",
        f"All 2- and 3-way cells of table S ({pmw_tables.ROWS:,} rows), {BUDGET}. Ours: one thread, mean of "
        f"{REPEATS} runs. {note}",
        "",
        "| | max error | mean error | seconds | AIM's seconds / ours |",
        "|---|---|---|---|---|",
    ]
    for row in [*ours, *theirs]:
        ratio = "-" if fastest is None or row in theirs else f"{fastest / row.seconds:,.0f}"
        lines.append(f"| {row.who} | {row.largest:.0f} | {row.mean:.1f} | {row.seconds:.3g} | {ratio} |")
    return lines


def our_row(relation: str) -> Row:
    table = pmw_tables.table("S", neighbours=relation)
    questions = [
        Histogram(scope) for width in (2, 3) for scope in itertools.combinations(table.facts.domain.names, width)
    ]
    truth = [table.exact_sum(question.partial) for question in questions]
    found, seconds, way = [], [], ""
    for _ in range(REPEATS):
        ledger = dp.Ledger.in_memory(BUDGET, table)
        start = time.perf_counter()
        best = workload.choose(questions, table.facts, admits=ledger.admits, beta=BETA)[0]
        assert best.mechanism is not None
        got = dp.release(best.mechanism, table, ledger=ledger)
        said = workload.answers(questions, best.mechanism, got.value, table.facts, beta=BETA)
        seconds.append(time.perf_counter() - start)
        found.append(np.concatenate([np.abs(a.value - b).ravel() for a, b in zip(said, truth, strict=True)]))
        way = best.method
    errors = np.array(found)
    return Row(f"ours, {relation}: {way}", errors.max(axis=1).mean(), errors.mean(), float(np.median(seconds)))


def aim_rows() -> tuple[list[Row], str]:
    """AIM's lines, and what to say about it."""
    if not PYTHON.exists():
        return [], "**opendp's AIM left out: no environment .venv-aim (`make bench` sets it up)**"
    rho = zcdp()
    table = pmw_tables.table("S", neighbours="add-remove")
    sizes = {name: table.facts.domain.column(name).size for name in table.facts.domain.names}
    job = {"sizes": sizes, "rho": rho, "contributions": 1}
    found = [
        Row(f"opendp's AIM, add-remove, fit {place + 1}", each["max"], each["mean"], each["seconds"] + each["reading"])
        for place, each in enumerate(ask_aim(codes_of(table), [job] * FITS))
    ]
    return found, f"AIM: opendp {version()}, in its own environment, rho = {rho:.4g} as ours, on all processors."


def zcdp() -> float:
    """The zCDP that a ledger with this budget admits: its Renyi cap over its order."""
    ledger = dp.Ledger.in_memory(BUDGET, pmw_tables.table("S", neighbours="replace-one"))
    books = ledger.spent()
    assert books.caps.renyi is not None
    assert books.order is not None
    return books.caps.renyi / 1e9 / float(books.order)


def codes_of(table: dp.Table) -> dict[str, Any]:
    """All rows as codes: a benchmark may look."""
    found: dict[str, list[Any]] = {name: [] for name in table.facts.domain.names}

    def gather(batch: Any) -> Any:
        for name, parts in found.items():
            parts.append(batch[name])
        return np.zeros((), dtype=np.int64)

    table.exact_sum(gather)
    return {name: np.concatenate(parts) for name, parts in found.items()}


def ask_aim(codes: dict[str, Any], jobs: list[dict[str, Any]]) -> list[dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "codes.csv"
        np.savetxt(path, np.stack(list(codes.values()), axis=1), "%d", ",", header=",".join(codes), comments="")
        done = subprocess.run(
            [str(PYTHON), str(SCRIPT)],
            input=json.dumps({"data": str(path), "jobs": jobs}),
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        raise RuntimeError(f"AIM failed:\n{done.stderr[-2000:]}")
    answers: list[dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return answers


def version() -> str:
    script = "import importlib.metadata as m; print(m.version('opendp'))"
    return subprocess.run([str(PYTHON), "-c", script], capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    print("\n".join(section()))
