"""AVG by group: how far off averages are for one price, beside noise on the clipped sum and on the count, and beside
opendp."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

import discreet as dp
from bench.peers import find
from discreet.answering import Calibration, Marginals, SessionTerms
from discreet.query import GroupSum, Histogram, Of
from discreet.rng import SeededRng

SIZES = (4140, 4099, 4066, 3770, 3650, 3295, 2002, 1843, 1597, 1370, 994, 928, 649, 149, 9)
PRICE = Fraction(1, 6)
RUNS = 20
SEED = 19


def section() -> list[str]:
    """The section of bench/RESULTS.md."""
    return [
        "",
        "## AVG by group",
        "",
        f"{sum(SIZES):,} made-up persons in {len(SIZES)} groups, hours from 1 to 99 with mean 40 and deviation 12, "
        "groups a little apart. One question, the average of each group, for a sixth of (1, 1e-6); the mean absolute "
        f"error over {RUNS} runs of every group above 100. Beside it, for the same price, Gaussian noise on the sum of "
        "the hours (a row adds up to 99) and on the count, half of the price each, and their quotient, cut to [1, 99]; "
        "and the same two numbers from opendp, by a sixth of epsilon 1 (Laplace) and by a sixth of the zCDP that it "
        "converts to (1, 1e-6) (Gaussian). The interval is the largest half of one that the session states.",
        "",
        *([] if not find("opendp").missing else [find("opendp").missing, ""]),
        "| relation | persons | session | its interval | clipped sum and count | opendp, Laplace | opendp, Gaussian |",
        "|---|---|---|---|---|---|---|",
        *(row for relation in ("replace-one", "add-remove") for row in _rows(relation)),
    ]


def rows() -> tuple[np.ndarray, np.ndarray]:
    """The made-up groups and hours."""
    rng = np.random.default_rng(SEED)
    group = np.repeat(np.arange(len(SIZES)), SIZES)
    means = 40 + 4 * rng.standard_normal(len(SIZES))
    return group, np.clip(np.round(means[group] + 12 * rng.standard_normal(group.size)), 1, 99)


def people(relation: str) -> tuple[dp.Table, np.ndarray]:
    """The made-up table, and the true averages."""
    group, hours = rows()
    domain = dp.Domain(
        occupation=dp.Category(*(f"o{each}" for each in range(len(SIZES)))), hours=dp.Number(1, 99, step=1)
    )
    held = {"occupation": np.array([f"o{each}" for each in group]), "hours": hours}
    true = np.bincount(group, hours) / np.array(SIZES)
    return dp.Table(held, domain, name="people", neighbours=relation), true


def _rows(relation: str) -> list[str]:
    table, true = people(relation)
    sessions = [asked(table, run) for run in range(RUNS)]
    stated = np.max([[high - low for low, high in ends] for _, ends in sessions], axis=0) / 2
    found = [[values for values, _ in sessions], [clipped(table, run) for run in range(RUNS)]]
    found += [opendp(relation, delta) for delta in (0, 1e-6)]
    errors = [np.mean(np.abs(np.array(each) - true), axis=0) for each in found]
    lines = zip(SIZES, errors[0], stated, *errors[1:], strict=True)
    return [
        f"| {relation} | {size:,} | {' | '.join(f'{each:.2f}' for each in line)} |"
        for size, *line in lines
        if size > 100
    ]


def opendp(relation: str, delta: float) -> list[np.ndarray]:
    """The quotients of opendp's sums and counts, cut to the declared interval; no numbers without opendp."""
    group, hours = rows()
    job = {"what": "averages", "epsilon": float(PRICE), "delta": delta, "parts": 6, "bounds": [1, 99], "times": RUNS}
    (answer,) = find("opendp").ask(
        np.stack([group, hours], axis=1), [{**job, "distance": 2 if relation == "replace-one" else 1}]
    )
    nothing = [[[math.nan] * len(SIZES), [1] * len(SIZES)]]
    pairs = (np.array(each, dtype=float) for each in answer.get("values", nothing))
    return [np.clip(sums / np.maximum(counts, 1), 1, 99) for sums, counts in pairs]


def asked(table: dp.Table, run: int) -> tuple[np.ndarray, list[tuple[float, float]]]:
    """The averages of a session, and the intervals that it states."""
    ledger = dp.Ledger.in_memory(dp.Budget(1, 1e-6), table, testing=True)
    session = dp.Session(table, ledger, price=PRICE, max_price=1, rng=SeededRng(run))
    answer = session.ask("SELECT occupation, AVG(hours) FROM people GROUP BY occupation")
    intervals = {row[0]: line[1] for row, line in zip(answer.rows, answer.intervals, strict=True)}
    names = [f"o{each}" for each in range(len(SIZES))]
    return np.array([answer.value[name] for name in names]), [intervals[name] for name in names]


def clipped(table: dp.Table, run: int) -> np.ndarray:
    """The quotient of two noisy histograms, each for half of the price."""
    ledger = dp.Ledger.in_memory(dp.Budget(1, 1e-6), table, testing=True)
    shop = Calibration(table.facts, ledger, SessionTerms(None, Fraction(1, 20), price=PRICE / 2))
    queries = (GroupSum(["occupation"], Of("hours")), Histogram("occupation"))
    scales = [shop.for_price(lambda noise, query=query: dp.Gaussian(query, noise)).scale for query in queries]
    sums, counts = dp.release(Marginals(queries, scales), table, ledger=ledger, rng=SeededRng(1000 + run)).value
    return np.clip(sums / np.maximum(counts, 1), 1, 99)
