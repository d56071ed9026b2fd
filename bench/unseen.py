"""Our defaults on tables that no constant was chosen on, beside every peer at its default and at its best.

    make bench SUITE=unseen            one suite for each table of bench/public_tables.py, KEPT_ASIDE
    make bench SUITE=unseen_houses     one of them again
    make bench SUITE=seen              the tables that constants were chosen on, in the same way
    make bench SUITE=looked            tables whose figures were in view when rules were settled
    KEEP_PEERS=1 make bench SUITE=...  ours again; the peers' figures of the part there is stay, with their date

Equal guarantees are compared: delta = 1e-6, or pure. A peer's best is the best point of the grid below, chosen on the
test rows without paying for it (one fit at each point, then three at the two best); of ours nothing is chosen. Every
library gets the same rows: numbers scaled by their bounds, a 0/1 coordinate for each level. A cell is lost if the best
peer's mean is above ours by more than two standard deviations.
"""

from __future__ import annotations

import os
import re
import statistics
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn import linear_model
from threadpoolctl import threadpool_limits

import discreet as dp
from bench import part, peers, public_tables
from bench.erm_data import Array, Floats, Split
from bench.public_tables import PublicTable
from bench.suites import LOOKED_AT, SEEN, SUITES

EPSILONS = (0.1, 0.5, 1.0, 2.0, 8.0)
LARGE = {"census": (1.0,)}  # a fit of a peer takes minutes there: at one epsilon alone
DELTA = 1e-6
FITS, OUR_FITS = 3, 10
FINALISTS = 2  # points of a peer's grid that are fitted FITS times, after one fit at each
TARGET = "target of it"
STRENGTHS = (0.001, 0.01, 0.1, 1.0, 10.0)  # C of diffprivlib; its default is 1
# Opacus: learning rate, clipping norm, epochs, batches of an epoch (0: of 512 rows each). The first point is that of
# its tutorial. The others suit rows of norm 1, on which gradients are no longer than 1: all rows at once, an eighth or
# less of them; short and long; rates from careful to as large as the weights that are needed.
OPACUS = (
    (0.05, 1.0, 5, 0),
    *((rate, 1.0, 20, 1) for rate in (1.0, 4.0, 16.0)),
    *((rate, 0.5, 60, 1) for rate in (4.0, 16.0, 64.0)),
    *((rate, 0.5, 10, 8) for rate in (1.0, 4.0, 16.0, 64.0)),
    *((rate, 1.0, 40, 32) for rate in (4.0, 16.0, 64.0)),
    (4.0, 0.1, 20, 4),
)
GROWN = "2026-11-18 09:00"  # parts that are older have Opacus at its best of fewer points
Scores = list[float]


def section(name: str) -> list[str]:
    """The part of bench/RESULTS.md about one table."""
    table = public_tables.read(name)[name]
    with threadpool_limits(1):
        return _classes(table) if table.classes else _numbers(table)


def _classes(table: PublicTable) -> list[str]:
    data, (diffprivlib, opacus) = table.arrays(0), (peers.find(each) for each in ("diffprivlib", "opacus"))
    ceiling = linear_model.LogisticRegression(C=1e3, max_iter=1000).fit(data.x * table.norm, data.y)
    majority = max(np.mean(data.y_test), 1 - np.mean(data.y_test))
    said = f"Without privacy {ceiling.score(data.x_test * table.norm, data.y_test):.4f}, majority {majority:.4f}."
    columns = (
        "ours, add-remove",
        "Opacus, default",
        "Opacus, best",
        "ours, pure",
        "diffprivlib, default",
        "diffprivlib, best",
    )
    kept, when = _kept(table)
    said = f"Share of test rows classified rightly. {said}{when}"
    lines, lost = _head(table, "Logistic regression", said, columns), list[str]()
    for epsilon in LARGE.get(table.name, EPSILONS):
        print(f"{table.name}, epsilon {epsilon:g}", file=sys.stderr, flush=True)
        jobs = [{"what": "logistic", "epsilon": epsilon, "C": c} for c in STRENGTHS]
        steps = [_opacus_job(len(data.y), epsilon, *point) for point in OPACUS]
        if kept:
            _, sgd, best_sgd, _, pure, best_pure = kept[f"{epsilon:g}"]
        else:
            pure, best_pure = _searched(diffprivlib, data, jobs, STRENGTHS.index(1.0))
            sgd, best_sgd = _searched(opacus, data, steps, 0)
        ours, ours_pure = (_ours(table, epsilon, delta) for delta in (DELTA, 0))
        shown = (ours, sgd, best_sgd, ours_pure, pure, best_pure)
        lines.append(f"| {epsilon:g} | {' | '.join(map(_cell, shown))} |")
        lost += _lost(epsilon, (("Opacus", ours, best_sgd), ("diffprivlib", ours_pure, best_pure)), majority)
    return [*lines, "", *_verdict(lost)]


def _kept(table: PublicTable) -> tuple[dict[str, list[Scores]], str]:
    """By epsilon the figures of the part there is, as scores with the same mean and deviation; and a sentence of it."""
    if "KEEP_PEERS" not in os.environ:
        return {}, ""
    found, text = part.read(next(each.name for each in SUITES if each.arguments == (table.name,)))
    if any(peers.find(name).version != version for name, version in found.peers.items()):
        raise SystemExit(f"the peers of {found.suite} were others: measure them again")
    figures = {row[0]: [_of_cell(cell) for cell in row[1:]] for row in found.grids[0].rows}
    before = re.search(r"Peers were measured on (\S+ \S+) UTC", text)
    when = before[1] if before else found.measured
    fewer = " Opacus was searched on a smaller grid then." if when < GROWN else ""
    return figures, f" Peers were measured on {when} UTC, ours later.{fewer}"


def _of_cell(cell: str) -> Scores:
    mean, deviation = map(float, cell.split(" ± "))
    return [mean - deviation, mean, mean + deviation]


def _searched(peer: peers.Peer, data: Split, jobs: list[peers.Job], usual: int) -> tuple[Scores, Scores]:
    """What a peer reaches at its default and at its best: one fit at each point, FITS at the FINALISTS best of them."""
    first = [_scores(answer) for answer in peer.ask(data, [job | {"times": 1} for job in jobs])]
    ranked = sorted(range(len(jobs)), key=lambda place: -_mean(first[place]))
    again = [usual, *(place for place in ranked[:FINALISTS] if place != usual)]
    found = [_scores(answer) for answer in peer.ask(data, [jobs[place] | {"times": FITS} for place in again])]
    return found[0], max(found, key=_mean)


def _numbers(table: PublicTable) -> list[str]:
    data, diffprivlib = table.arrays(0), peers.find("diffprivlib")
    low, high = table.bounds
    ceiling = linear_model.LinearRegression().fit(data.x, data.y).score(data.x_test, data.y_test)
    columns = ("ours, add-remove", "AdaSSP, add-remove", "ours, pure", "diffprivlib, pure")
    lines, lost = _head(table, "Linear regression", f"R² on the test rows. Without privacy {ceiling:.4f}.", columns), []
    bounds = {"bounds_x": [data.x.min(axis=0).tolist(), data.x.max(axis=0).tolist()], "bounds_y": [low, high]}
    for epsilon in LARGE.get(table.name, EPSILONS):
        print(f"{table.name}, epsilon {epsilon:g}", file=sys.stderr, flush=True)
        job = {"what": "linear", "epsilon": epsilon, "times": FITS, **bounds}
        theirs = _scores(diffprivlib.ask(data, [job])[0])
        ours, ours_pure = (_ours(table, epsilon, delta) for delta in (DELTA, 0))
        adaptive = [adassp(data, (low, high), epsilon, seed) for seed in range(FITS)]
        lines.append(f"| {epsilon:g} | {' | '.join(map(_cell, (ours, adaptive, ours_pure, theirs)))} |")
        lost += _lost(epsilon, (("AdaSSP", ours, adaptive), ("diffprivlib", ours_pure, theirs)))
    return [*lines, "", *_verdict(lost)]


def _ours(table: PublicTable, epsilon: float, delta: float) -> Scores:
    """The default model: add-remove with a delta, replace-one without, as the peers have it."""
    train, test = table.split(0)
    relation: dict[str, Any] = {"neighbours": "add-remove", "size": len(train)} if delta else {}
    rows = dp.Table(table.frame(train), table.domain(), name=table.name, **relation)
    judged = table.frame(test)
    truth = judged.pop(TARGET)
    kind = dp.LogisticRegression if table.classes else dp.LinearRegression
    found = []
    for _ in range(OUR_FITS):
        ledger = dp.Ledger.in_memory(dp.Budget(epsilon, delta), rows)
        model = kind(epsilon=epsilon, delta=delta, ledger=ledger, neighbours=rows.facts.neighbours.kind)
        predicted = np.asarray(model.fit(rows, TARGET).predict(judged))
        found.append(float(np.mean(predicted == truth)) if table.classes else determination(predicted, truth))
    return found


def determination(predicted: Floats, truth: Array) -> float:
    """R squared."""
    return float(1 - np.sum((truth - predicted) ** 2) / np.sum((truth - np.mean(truth)) ** 2))


def adassp(data: Split, bounds: tuple[float, float], epsilon: float, seed: int) -> float:
    """R squared of Wang's adaptive regression [Wang18] in floats: three thirds of a zCDP budget, rows of norm 1.

    Not private code. An intercept is one more feature, 1, so rows have norm sqrt 2; targets are moved to [-1, 1].
    """
    rng, middle, half = np.random.default_rng(seed), sum(bounds) / 2, (bounds[1] - bounds[0]) / 2
    x, x_test = (np.column_stack([rows, np.ones(len(rows))]) for rows in (data.x, data.x_test))
    y, d, squared = (data.y - middle) / half, x.shape[1], 2.0
    root = np.sqrt(np.log(1 / DELTA))
    share = (np.sqrt(root**2 + epsilon) - root) ** 2 / 3  # rho of which rho + 2 sqrt(rho ln(1/delta)) is epsilon
    noise = 1 / np.sqrt(2 * share)
    products = x.T @ x
    least = max(0.0, np.linalg.eigvalsh(products)[0] + squared * noise * (rng.normal() - np.sqrt(np.log(6 / DELTA))))
    ridge = max(0.0, np.sqrt(d * np.log(6 / DELTA) * np.log(2 * d**2 / 0.05)) * squared * noise - least)
    upper = np.triu(rng.normal(size=(d, d)) * squared * noise)
    noisy = products + upper + np.triu(upper, 1).T + ridge * np.eye(d)
    w = np.linalg.lstsq(noisy, x.T @ y + rng.normal(size=d) * np.sqrt(squared) * noise, rcond=None)[0]
    return determination(x_test @ w * half + middle, data.y_test)


def _opacus_job(rows: int, epsilon: float, rate: float, clip: float, epochs: int, batches: int) -> peers.Job:
    batch = -(-rows // batches) if batches else 512
    fixed = {"rate": rate, "clip": clip, "epochs": epochs, "batch": batch}
    return {"epsilon": epsilon, "delta": DELTA, **fixed}


def _head(table: PublicTable, kind: str, said: str, columns: Sequence[str]) -> list[str]:
    rows, width = table.matrix().shape
    choice = "constants were" if table.name in (*SEEN["classes"], *SEEN["numbers"]) else "nothing was"
    looked = table.name in (*LOOKED_AT["classes"], *LOOKED_AT["numbers"])
    known = "that rules were settled with in view" if looked else f"that {choice} chosen on"
    return [
        "",
        f"## {kind} on a table {known}: {table.name}, {int(0.7 * rows):,} rows, {width} features",
        "",
        f"{said} Mean ± standard deviation of {OUR_FITS} fits of ours and {FITS} of peers,",
        f"delta = {DELTA:g} or pure (replace-one).",
        "Ours is at its defaults, peers also at the best point of a grid that was searched on the test rows, with one",
        f"fit at each of its points and {FITS} at the {FINALISTS} best.",
        "",
        f"| epsilon | {' | '.join(columns)} |",
        "|---" * (len(columns) + 1) + "|",
    ]


def _scores(answer: peers.Answer) -> Scores:
    found: Scores = answer.get("scores", [])
    return found


def _mean(scores: Scores) -> float:
    return statistics.mean(scores) if scores else -np.inf


def _cell(scores: Scores) -> str:
    if not scores:
        return "-"
    if _mean(scores) < -10:
        return f"{_mean(scores):.0e}"
    return f"{_mean(scores):.4f} ± {statistics.stdev(scores):.4f}"


def _lost(epsilon: float, pairs: Sequence[tuple[str, Scores, Scores]], majority: float = np.inf) -> Iterator[str]:
    """The cells that are lost, and why, if it can be told."""
    for peer, ours, theirs in pairs:
        if not theirs:
            continue
        apart = 2 * np.hypot(statistics.stdev(ours), statistics.stdev(theirs))
        if _mean(theirs) - _mean(ours) > max(apart, 5e-5):  # below that the figures that are shown are the same
            same = abs(_mean(theirs) - majority) < 5e-5
            why = "; the peer's best point answers the commoner class for every row" if same else ""
            yield f"epsilon {epsilon:g}, {peer}: {_mean(ours):.4f} against {_mean(theirs):.4f}{why}"


def _verdict(lost: Sequence[str]) -> list[str]:
    if not lost:
        return ["In every cell ours at its defaults is within two standard deviations of the best peer, or above it."]
    return [
        "Cells in which the best peer is ahead by more than two standard deviations:",
        "",
        *(f"- {each}" for each in lost),
    ]


if __name__ == "__main__":
    print("\n".join(section(sys.argv[1])))
