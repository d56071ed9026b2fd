"""Is what a mechanism releases of the stated law? Each test accepts the truth and rejects a scale that is 30 % off.

The false-alarm rate of each is at most 1e-6: a chi-square statistic against the exact law, compared with its quantile.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

import discreet as dp
from discreet.audit.laws import Setting, conversation_law, law
from discreet.guarantee import Neighbours
from discreet.rng import Rng

ALARM = 1e-6
CELLS = 20_000
WIDE = dp.Table({"x": [7, 7, 9]}, dp.Domain(x=dp.Number(0, CELLS - 1, step=1)))
TRUTH = np.bincount([7, 7, 9], minlength=CELLS)
OFF = [Fraction(7, 10), Fraction(13, 10)]


def laplace_mass(scale: float, k: np.ndarray) -> np.ndarray:
    q = math.exp(-1 / scale)
    return (1 - q) / (1 + q) * q ** np.abs(k)


def gaussian_mass(scale: float, k: np.ndarray) -> np.ndarray:
    far = np.arange(-int(40 * scale) - 5, int(40 * scale) + 6)
    return np.exp(-(k**2) / (2 * scale**2)) / np.exp(-(far**2) / (2 * scale**2)).sum()


def fits(counts: Counter, mass: dict, total: int) -> bool:
    """Whether the counts could come from this law: cells expected below 10 are put together."""
    pairs = [(counts.get(outcome, 0), total * p) for outcome, p in mass.items()]
    kept = [(seen, expected) for seen, expected in pairs if expected >= 10]
    rest_seen = total - sum(seen for seen, _ in kept)
    rest = total - sum(expected for _, expected in kept)
    if rest > 10:
        kept.append((rest_seen, rest))
    statistic = sum((seen - expected) ** 2 / expected for seen, expected in kept)
    return statistic <= chi2.isf(ALARM, len(kept) - 1) and (rest > 10 or rest_seen <= 10 + 12 * math.sqrt(rest + 1))


@pytest.mark.parametrize("scale", [Fraction(3, 2), 12, 400])
@pytest.mark.parametrize(
    ("kind", "mass"),
    [
        (dp.Laplace, laplace_mass),
        (dp.mechanisms.ProductLaplace, laplace_mass),
        (dp.mechanisms.CoordinateLaplace, laplace_mass),
        (dp.Gaussian, gaussian_mass),
    ],
)
def test_released_noise_has_the_stated_law(kind, mass, scale):
    noise = kind(dp.Histogram("x"), scale).run(WIDE, Rng()) - TRUTH
    width = max(1, int(scale) // 4)  # cells of the test: a few hundred at most
    counts = Counter((noise // width).tolist())

    def law_at(wanted: float) -> dict[int, float]:
        reach = int(30 * wanted) // width + 2
        cells = np.arange(-reach, reach + 1)[:, None] * width + np.arange(width)
        return dict(zip(range(-reach, reach + 1), mass(wanted, cells).sum(axis=1), strict=True))

    assert fits(counts, law_at(float(scale)), CELLS)
    for off in OFF:
        assert not fits(counts, law_at(float(scale * off)), CELLS)


THREE = Setting(dp.Domain(v=dp.Category("a", "b", "c")), Neighbours("replace-one"))
ROWS = [{"v": v} for v in "aaaabbbc"]


@pytest.mark.parametrize("kind", [dp.Exponential, dp.mechanisms.PermuteAndFlip])
def test_a_selection_has_the_stated_law(kind):
    table, rng, runs = THREE.table(ROWS), Rng(), 3_000
    mechanism = kind(dp.Histogram("v"), 1)
    counts = Counter(mechanism.run(table, rng) for _ in range(runs))
    assert fits(counts, law(mechanism, ROWS, THREE).mass, runs)
    for off in OFF:
        assert not fits(counts, law(kind(dp.Histogram("v"), off), ROWS, THREE).mass, runs)


@pytest.mark.parametrize(
    "query", [dp.Histogram("v"), dp.Histogram("v", dp.Not(dp.Equals("v", "c")))], ids=["all", "some"]
)
def test_noise_that_adds_up_to_zero_has_the_stated_law(query):
    """Together, so that independent noise of the same scale is rejected, too."""
    table, rng, runs = THREE.table(ROWS), Rng(), 6_000
    kind = dp.mechanisms.ZeroSumLaplace
    counts = Counter(tuple(kind(query, 2).run(table, rng).tolist()) for _ in range(runs))
    assert fits(counts, law(kind(query, 2), ROWS, THREE, reach=18).mass, runs)
    for off in OFF:
        assert not fits(counts, law(kind(query, 2 * off), ROWS, THREE, reach=18).mass, runs)
    assert not fits(counts, law(dp.Laplace(query, 2), ROWS, THREE, reach=18).mass, runs)


@pytest.mark.parametrize("kind", [dp.mechanisms.StableHistogram, dp.mechanisms.StableGaussian])
def test_a_stable_histogram_has_the_stated_law(kind):
    rows = [{"v": v} for v in "a" * 9 + "b" * 9]
    table, rng, runs = THREE.table(rows), Rng(), 6_000
    mechanism = kind(dp.mechanisms.KeyCount("v"), 1, 6)
    counts = Counter(mechanism.run(table, rng) for _ in range(runs))
    assert fits(counts, law(mechanism, rows, THREE).mass, runs)
    for off in OFF:
        assert not fits(counts, law(kind(dp.mechanisms.KeyCount("v"), off, 6), rows, THREE).mass, runs)


@pytest.mark.parametrize(
    "kind", [dp.mechanisms.AboveThreshold, pytest.param(dp.mechanisms.AboveThresholdLaplace, marks=pytest.mark.slow)]
)
def test_a_conversation_has_the_stated_law(kind):
    table, rng, runs = THREE.table(ROWS), Rng(), 8_000
    a, b = (dp.Count(dp.Equals("v", v)) for v in "ab")
    asks = [
        dp.mechanisms.IsAbove(a, 8),
        dp.mechanisms.IsAbove(b, "7.5"),
        dp.mechanisms.IsAbove(a, 9),
    ]  # far enough that the tails decide
    counts = Counter(transcript(kind(1, 2), asks, table, rng) for _ in range(runs))
    assert fits(counts, conversation_law(kind(1, 2), asks, ROWS, THREE, reach=30).mass, runs)
    for off in OFF:
        assert not fits(counts, conversation_law(kind(off, 2 * off), asks, ROWS, THREE, reach=30).mass, runs)


def transcript(conversation, asks, table, rng) -> tuple[bool, ...]:
    state, answers = conversation.begin(table, rng), []
    for ask in asks:
        state, answer = conversation.step(state, ask, table, rng)
        answers.append(answer)
        if state is None:
            break
    return tuple(answers)


def test_the_noise_of_a_counter_has_the_stated_law():
    """The sums of epochs without rows are the noise itself."""
    nobody = dp.Table({"t": []}, dp.Domain(t=dp.Number(1, 2048, step=1)), neighbours="add-remove")
    counter = dp.mechanisms.ContinualCounter(dp.Count(), "t", 1, 2048, scale="0.05", resolution=100)  # 5 steps
    noise = [each for _ in range(4) for each in counter.begin(nobody, Rng())[1]]
    reach = range(-60, 61)
    for times, held in ((Fraction(1), True), *((each, False) for each in OFF)):
        mass = gaussian_mass(float(5 * times), np.array(reach))
        assert bool(fits(Counter(noise), dict(zip(reach, mass, strict=True)), len(noise))) is held


def test_the_totals_of_a_counter_are_as_far_off_as_is_stated():
    """The squares of the totals over their stated deviations, 12 epochs and 400 runs: 30 % off would show."""
    nobody = dp.Table({"t": []}, dp.Domain(t=dp.Number(1, 12, step=1)), neighbours="add-remove")
    counter = dp.mechanisms.ContinualCounter(dp.Count(), "t", 1, 12, scale=3)
    last, squares, inside = [], [], []
    for _ in range(400):
        state, rng = counter.begin(nobody, Rng()), Rng()
        for place in range(1, 13):
            state, answer = counter.step(state, place, nobody, rng)
            squares.append((answer["total"] / answer["deviation"]) ** 2)
            inside.append(abs(answer["total"]) <= counter.bound(place, nobody.facts))
        last.append(answer["total"])
    statistic = sum(each**2 for each in last) / counter.deviation(12) ** 2
    low, high = chi2.ppf(ALARM, 400), chi2.isf(ALARM, 400)
    assert low < statistic < high
    for off in OFF:
        assert not low < statistic / float(off) ** 2 < high
    assert 0.7 < sum(squares) / len(squares) < 1.4
    failed = 400 - sum(all(inside[start : start + 12]) for start in range(0, len(inside), 12))
    assert failed <= 400 * 0.05 + 6 * math.sqrt(400 * 0.05)


def test_a_quantile_among_classes_has_the_law_of_ranks():
    sizes, q = np.array([3, 0, 5, 1, 4]), Fraction(3, 4)  # 13 rows: three quarters are 9.75

    def law_at(rate: float) -> dict[int, float]:
        upto = sizes.cumsum()
        heights = np.maximum(0, np.maximum(upto - sizes - 9.75, 9.75 - upto))
        weights = np.exp(-rate * heights)
        return dict(enumerate(weights / weights.sum()))

    rng = Rng()
    counts = Counter(dp.mechanisms.RankQuantile("x", q, Fraction(1, 2)).among(sizes, rng) for _ in range(CELLS))
    assert fits(counts, law_at(0.5), CELLS)
    for off in OFF:
        assert not fits(counts, law_at(float(off) / 2), CELLS)
