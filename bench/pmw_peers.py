"""A known workload beside opendp's AIM: all 2- and 3-way marginals of table S, epsilon 1, delta 1e-6.

    python -m bench.pmw_peers        prints markdown; AIM takes minutes

Both get the same zCDP, that of this budget. AIM is priced for adding or removing a row; ours is shown for that relation
and, beside it, for replacing one. AIM's second fit in one process shows what compiling costs; the faster counts.
"""

from __future__ import annotations

import functools
import itertools
import json
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import discreet as dp
from bench import peers, pmw_tables
from bench.pmw_tables import BINS, Codes
from discreet.answering import workload
from discreet.guarantee import choose_order
from discreet.method import choose
from discreet.query import Histogram

BUDGET, BETA = dp.Budget(1, 1e-6), 0.05
SIZES = BINS["S"]
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
    peer = peers.find("aim")
    if peer.missing:
        return ["", "## A workload beside opendp's AIM", "", f"**{peer.missing}: it also has the rows**"]
    codes = rows_of_s()
    with threadpool_limits(1):
        ours = [our_row(codes, relation) for relation in ("add-remove", "replace-one")]
    theirs = aim_rows(codes)
    fastest = min(row.seconds for row in theirs)
    return [
        "",
        "## A workload beside opendp's AIM",
        "",
        f"All 2- and 3-way cells of table S ({pmw_tables.PERSONS:,} persons), {BUDGET}; AIM has the same zCDP, "
        f"{zcdp():.4g}. Ours: one thread, {REPEATS} runs (mean errors, median seconds). AIM: opendp {peer.version}, in "
        "its own environment, on all processors.",
        "",
        "| | max error | mean error | seconds | AIM's seconds / ours |",
        "|---|---|---|---|---|",
        *(_line(row, f"{fastest / row.seconds:,.0f}") for row in ours),
        *(_line(row, "") for row in theirs),
    ]


def _line(row: Row, ratio: str) -> str:
    return f"| {row.who} | {row.largest:.0f} | {row.mean:.1f} | {row.seconds:.3g} | {ratio} |"


def rows_of_s() -> Codes:
    """Table S, from the rows that statsmodels has."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "randhie.csv"
        subprocess.run([str(PYTHON), str(SCRIPT), "export", str(path)], check=True, capture_output=True)
        return pmw_tables.binned(pmw_tables.read(path), SIZES)


def table_of(codes: Codes, relation: str) -> dp.Table:
    domain = dp.Domain({name: dp.Category(levels=range(size)) for name, size in SIZES.items()})
    return dp.Table(codes, domain, neighbours=relation, size=pmw_tables.PERSONS)


def our_row(codes: Codes, relation: str) -> Row:
    table = table_of(codes, relation)
    questions = [Histogram(scope) for width in (2, 3) for scope in itertools.combinations(SIZES, width)]
    truth = [table.exact_sum(question) for question in questions]
    found, seconds, way = [], [], ""
    for _ in range(REPEATS):
        ledger = dp.Ledger.in_memory(BUDGET, table, failure_share=0)
        start = time.perf_counter()
        listed = workload.methods(questions, table.facts, funds=ledger.funds(), beta=BETA)
        best = choose(listed, "auto", table.facts.size)
        got = dp.release(best.mechanism, table, ledger=ledger)
        said = workload.answers(questions, best.mechanism, got.value, table.facts, beta=BETA)
        seconds.append(time.perf_counter() - start)
        found.append(np.concatenate([np.abs(a - b).ravel() for (a, _), b in zip(said, truth, strict=True)]))
        way = best.method
    errors = np.array(found)
    return Row(f"ours, {relation}: {way}", errors.max(axis=1).mean(), errors.mean(), float(np.median(seconds)))


def aim_rows(codes: Codes) -> list[Row]:
    job = {"sizes": SIZES, "rho": zcdp(), "contributions": 1}
    return [
        Row(f"opendp's AIM, add-remove, fit {place + 1}", each["max"], each["mean"], each["seconds"] + each["reading"])
        for place, each in enumerate(ask_aim(codes, [job] * FITS))
    ]


def zcdp() -> float:
    """What our ledger admits: its Renyi cap over its order."""
    chosen = choose_order(BUDGET)
    assert chosen is not None
    order, cap = chosen
    return cap / order


def ask_aim(codes: Codes, jobs: Sequence[dict[str, Any]], cpu: int | None = None) -> list[dict[str, Any]]:
    """One answer for each job; TimeoutError if all of them take more than so many seconds of CPU."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "codes.csv"
        np.savetxt(path, np.stack(list(codes.values()), axis=1), "%d", ",", header=",".join(codes), comments="")
        done = subprocess.run(
            [str(PYTHON), str(SCRIPT)],
            input=json.dumps({"data": str(path), "jobs": list(jobs)}),
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=None if cpu is None else functools.partial(resource.setrlimit, resource.RLIMIT_CPU, (cpu, cpu)),
        )
    if done.returncode in (-signal.SIGKILL, -signal.SIGXCPU):
        raise TimeoutError(f"ended after {cpu} s of CPU")
    if done.returncode != 0:
        raise RuntimeError(f"AIM failed:\n{done.stderr[-2000:]}")
    answers: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return answers


if __name__ == "__main__":
    print("\n".join(section()))
