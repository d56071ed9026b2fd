"""How long a fit takes: ours, diffprivlib and Opacus side by side in one run, on the same arrays.

    python -m bench.erm_speed          prints markdown

Ours is measured before and after the peers, so that a busy machine is busy for all; of each, the best of several fits
counts. All run on one thread. Opacus' time holds its search for the noise and its training, at the epochs and batches
that gave it its best accuracy (bench/erm_accuracy.py).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

import discreet as dp
from bench import erm_data, peers
from bench.erm_accuracy import LINEAR, linear_job, opacus_job, our_linear, our_logistic, our_number
from bench.erm_data import Split
from bench.peers import Answer
from discreet.erm.feasible_sets import Ball
from discreet.erm.features import VectorColumn
from discreet.erm.gradient import pass_over
from discreet.erm.losses import Logistic
from discreet.erm.risk import Risk

REPEATS = 7
EPSILON = 1.0


@dataclass(frozen=True, slots=True)
class Row:
    """Seconds for one fit; None for a peer that is missing or has no such model."""

    what: str
    ours: float
    diffprivlib: float | None
    opacus: float | None


def rows() -> list[Row]:
    """Every fit of this file, at epsilon 1."""
    return [
        _classification("logistic, breast cancer, 398 rows, 30 features", erm_data.breast(), small=True),
        _classification("logistic, synthetic, 100,000 rows, 50 features", erm_data.logistic(), small=False),
        _linear(),
        _median(),
    ]


def section() -> list[str]:
    """The section of bench/RESULTS.md."""
    with threadpool_limits(1):
        found, (ours, read, plain) = rows(), gradient_pass()
    lines = [
        "",
        "## Fitting private models",
        "",
        f"Seconds for one fit at epsilon {EPSILON:g}, best of several. Ours and Opacus: delta = n^-1.1, add-remove for "
        "logistic regression; diffprivlib: pure.",
        *peers.named(peers.find("diffprivlib"), peers.find("opacus")),
        "",
        "| what | ours, ms | diffprivlib, ms | diffprivlib / ours | Opacus, ms | Opacus / ours |",
        "|---|---|---|---|---|---|",
    ]
    for row in found:
        shown = [_against(row.ours, peer) for peer in (row.diffprivlib, row.opacus)]
        lines.append(f"| {row.what} | {row.ours * 1e3:,.1f} | {' | '.join(shown)} |")
    return [
        *lines,
        "",
        "One exact pass for the gradient of 100,000 rows and 50 features: "
        f"{ours * 1e3:.1f} ms; {ours / read:.1f} times reading the float64 features once, "
        f"{ours / plain:.1f} times the same gradient in floats, which is not private.",
    ]


def gradient_pass() -> tuple[float, float, float]:
    """Seconds for one pass of ours, for one sum over the features, and for the gradient by float matrix products."""
    data = erm_data.logistic()
    w = np.full(data.x.shape[1], 0.1)
    acts = (_our_pass(data, w), data.x.sum, lambda: (1 / (1 + np.exp(-data.x @ w)) - data.y) @ data.x)
    taken: list[list[float]] = [[], [], []]
    for _ in range(5 * REPEATS):  # in turn, so that whatever else the machine does meets all three
        for act, into in zip(acts, taken, strict=True):
            into.append(_seconds(act))
    ours, read, plain = map(min, taken)
    return ours, read, plain


def _our_pass(data: Split, w: erm_data.Floats) -> Callable[[], object]:
    """Our kernel on rows that are already on the grid."""
    width = data.x.shape[1]
    rows = dp.Matrix(data.x, data.y, features=dp.Vector(width, norm=1), target=dp.Category(0, 1))
    kernel = pass_over(Risk(Logistic(), VectorColumn("x", intercept=False), "y", Ball(10)), rows.facts.domain)
    return lambda: rows.exact_sum(kernel.at(w))


def _classification(what: str, data: Split, *, small: bool) -> Row:
    def fit() -> object:
        return our_logistic(data, EPSILON, data.delta, "add-remove").fit(data.x, data.y)

    jobs = [{"what": "logistic", "epsilon": EPSILON, "C": 1.0, "times": REPEATS}]
    times = REPEATS if small else 2
    return _measured(what, fit, data, jobs, [opacus_job(data, EPSILON, times, small=small)])


def _linear() -> Row:
    data = erm_data.linear()

    def fit() -> object:
        return our_linear(LINEAR, EPSILON, data.delta).fit(data.x, data.y)

    what = "linear, synthetic, 100,000 rows, 20 features"
    return _measured(what, fit, data, [linear_job(data, LINEAR, EPSILON, REPEATS)], [])


def _median() -> Row:
    x = erm_data.beta()
    jobs = [{"what": "median", "epsilon": EPSILON, "times": REPEATS}]
    return _measured("median of 100,000 numbers", lambda: our_number("median", 0.5, EPSILON).fit(x), x, jobs, [])


def _measured(
    what: str,
    ours: Callable[[], object],
    data: Split | erm_data.Floats,
    diffprivlib: list[peers.Job],
    opacus: list[peers.Job],
) -> Row:
    print(f"{what} ...", file=sys.stderr, flush=True)
    before = _best(ours)
    theirs = [
        _least(peers.find(name).ask(data, jobs))
        for name, jobs in (("diffprivlib", diffprivlib), ("opacus", opacus))
        if jobs
    ]
    return Row(what, min(before, _best(ours)), theirs[0], theirs[1] if opacus else None)


def _least(answers: list[Answer]) -> float | None:
    return min(answers[0]["seconds"]) if answers[0] else None


def _best(act: Callable[[], object]) -> float:
    return min(_seconds(act) for _ in range(REPEATS))


def _seconds(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def _against(ours: float, peer: float | None) -> str:
    if peer is None:
        return "- | -"
    return f"{peer * 1e3:,.1f} | {peer / ours:,.{0 if peer > 10 * ours else 2}f}"


if __name__ == "__main__":
    print("\n".join(section()))
