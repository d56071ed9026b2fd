"""AVG by group: how far off averages are for one price, beside noise on the clipped sum and on the count."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import discreet as dp
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
        "the hours (a row adds up to 99) and on the count, half of the price each, and their quotient, cut to [1, 99].",
        "",
        "| relation | persons | session | clipped sum and count |",
        "|---|---|---|---|",
        *(row for relation in ("replace-one", "add-remove") for row in _rows(relation)),
    ]


def people(relation: str) -> tuple[dp.Table, np.ndarray]:
    """The made-up table, and the true averages."""
    rng = np.random.default_rng(SEED)
    group = np.repeat(np.arange(len(SIZES)), SIZES)
    means = 40 + 4 * rng.standard_normal(len(SIZES))
    hours = np.clip(np.round(means[group] + 12 * rng.standard_normal(group.size)), 1, 99)
    domain = dp.Domain(
        occupation=dp.Category(*(f"o{each}" for each in range(len(SIZES)))), hours=dp.Number(1, 99, step=1)
    )
    held = {"occupation": np.array([f"o{each}" for each in group]), "hours": hours}
    true = np.bincount(group, hours) / np.array(SIZES)
    return dp.Table(held, domain, name="people", neighbours=relation), true


def _rows(relation: str) -> list[str]:
    table, true = people(relation)
    ours, plain = (np.mean([np.abs(way(table, run) - true) for run in range(RUNS)], axis=0) for way in (asked, clipped))
    return [
        f"| {relation} | {size:,} | {one:.2f} | {other:.2f} |"
        for size, one, other in zip(SIZES, ours, plain, strict=True)
        if size > 100
    ]


def asked(table: dp.Table, run: int) -> np.ndarray:
    """The averages of a session."""
    ledger = dp.Ledger.in_memory(dp.Budget(1, 1e-6), table, testing=True)
    session = dp.Session(table, ledger, price=PRICE, max_price=1, rng=SeededRng(run))
    answer = session.ask("SELECT occupation, AVG(hours) FROM people GROUP BY occupation")
    return np.array([answer.value[f"o{each}"] for each in range(len(SIZES))])


def clipped(table: dp.Table, run: int) -> np.ndarray:
    """The quotient of two noisy histograms, each for half of the price."""
    ledger = dp.Ledger.in_memory(dp.Budget(1, 1e-6), table, testing=True)
    shop = Calibration(table.facts, ledger, SessionTerms(None, Fraction(1, 20), price=PRICE / 2))
    queries = (GroupSum(["occupation"], Of("hours")), Histogram("occupation"))
    scales = [shop.for_price(lambda noise, query=query: dp.Gaussian(query, noise)).scale for query in queries]
    sums, counts = dp.release(Marginals(queries, scales), table, ledger=ledger, rng=SeededRng(1000 + run)).value
    return np.clip(sums / np.maximum(counts, 1), 1, 99)
