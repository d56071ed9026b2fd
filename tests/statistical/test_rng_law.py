"""Is the noise the stated law? Chi-square against the exact probabilities of a few dozen cells, false alarm 1e-6 each;
the same test must reject the law of a scale 30 % smaller and larger. The slow path is put to the same test."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import special, stats

from discreet import rng as noise
from discreet.rng import Rng

F = Fraction
FALSE_ALARM = 1e-6
DRAWS = 200_000
SLOW_DRAWS = 8000
FEWEST = 40  # expected in every cell

Upper = Callable[[np.ndarray], np.ndarray]  # k -> P[K >= k], for integer arrays


def geometric_law(scale: float) -> Upper:
    return lambda k: np.exp(-np.maximum(k, 0) / scale)


def laplace_law(scale: float) -> Upper:
    q = math.exp(-1 / scale)

    def upper(k: np.ndarray) -> np.ndarray:
        tail = np.exp(-np.maximum(k, 1 - k) / scale) / (1 + q)
        return np.where(k >= 1, tail, 1 - tail)

    return upper


def tabled_law(support: np.ndarray, weights: np.ndarray) -> Upper:
    above = np.append(np.cumsum(weights[::-1])[::-1], 0.0)
    return lambda k: above[np.clip(k - support[0], 0, support.size)] / above[0]


def truncated_law(scale: float, bound: int) -> Upper:
    support = np.arange(-bound, bound + 1)
    return tabled_law(support, np.exp(-np.abs(support) / scale))


def gaussian_law(variance: float) -> Upper:
    sigma = math.sqrt(variance)
    if sigma > 10_000:  # the sum over a cell is the integral, to a relative 1 / (24 variance) < 1e-9
        return lambda k: special.ndtr(-(k - 0.5) / sigma)
    support = np.arange(-math.ceil(15 * sigma) - 2, math.ceil(15 * sigma) + 3)
    return tabled_law(support, np.exp(-(support.astype(float) ** 2) / (2 * variance)))


def p_value(drawn: np.ndarray, upper: Upper, spread: float) -> float:
    """Chi-square over cells between integers about spread / 4 apart, neighbours merged until each expects enough."""
    reach = max(12.0, 12 * spread)
    edges = np.unique(np.rint(np.arange(-reach, reach, max(1.0, spread / 4))).astype(np.int64))
    expected = drawn.size * -np.diff(upper(edges), prepend=1.0, append=0.0)
    observed = np.bincount(np.searchsorted(edges, drawn, side="right"), minlength=edges.size + 1)
    groups = np.minimum(np.cumsum(expected) // FEWEST, drawn.size // FEWEST - 1).astype(np.int64)
    return chi_square(np.bincount(groups, observed), np.bincount(groups, expected))


def chi_square(observed: np.ndarray, expected: np.ndarray, groups: int = 1) -> float:
    """The p-value; `groups` is the number of totals that are fixed in advance."""
    observed, expected = observed[expected > 0], expected[expected > 0]
    if expected.size < 2:
        return 1.0
    assert observed.sum() == pytest.approx(expected.sum(), rel=1e-6)
    return float(stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), expected.size - groups))


def accept_the_law_and_reject_its_neighbours(
    drawn: np.ndarray, law: Callable[[float], Upper], parameter: float, spread: float
) -> None:
    assert p_value(drawn, law(parameter), spread) > FALSE_ALARM
    for factor in (0.7, 1.3):
        assert p_value(drawn, law(factor * parameter), spread) < FALSE_ALARM


SCALES = [
    F(1, 5),
    F(1, 2),
    F(1),
    F(10, 3),
    F(50),
    F(1000),
    F(1025),
    F(10**5),
    F(2**30),
    F(2**30 + 1),
    F(10**12),
    F(10**15),
]
VARIANCES = [F(1, 10), F(1, 2), F(1), F(7, 3), F(99), F(10**4), F(10**6) + F(1, 3), F(10**12), F(10**20), F(2**100)]


@pytest.fixture(params=["fast", "slow"])
def draws(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many to draw; on the slow path no float decides anything."""
    if request.param == "slow":
        monkeypatch.setattr(noise, "_GUARD", math.inf)
    return DRAWS if request.param == "fast" else SLOW_DRAWS


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_geometric_noise_has_the_geometric_law(scale: Fraction) -> None:
    accept_the_law_and_reject_its_neighbours(Rng().geometric(scale, DRAWS), geometric_law, float(scale), float(scale))


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_laplace_noise_has_the_discrete_laplace_law(scale: Fraction) -> None:
    accept_the_law_and_reject_its_neighbours(Rng().laplace(scale, DRAWS), laplace_law, float(scale), float(scale))


@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_gaussian_noise_has_the_discrete_gaussian_law(variance: Fraction) -> None:
    drawn = Rng().gaussian(variance, DRAWS)
    accept_the_law_and_reject_its_neighbours(drawn, gaussian_law, float(variance), math.sqrt(variance))


def spherical_law(scale: float, dimension: int) -> Upper:
    """Of one coordinate: a normal variable of variance 2 scale^2 G, G a Gamma variable of (dimension + 1) / 2."""
    points, weights = special.roots_genlaguerre(120, (dimension - 1) / 2)
    deviations = scale * np.sqrt(2 * points)

    def upper(k: np.ndarray) -> np.ndarray:
        chances = special.ndtr(-(k[:, None] - 0.5) / deviations) @ weights / weights.sum()
        return np.minimum.accumulate(np.minimum(1.0, chances))  # k ascends; sums of weights are rounded

    return upper


SPHERES = [(F(3), 5, 128), (F(10**6), 6, 128), (F(2, 3), 31, 128), (F(3), 5, 8), (F(10**6), 6, 8)]


@pytest.mark.parametrize(("scale", "dimension", "bits"), SPHERES, ids=str)
def test_a_coordinate_of_spherical_noise_has_the_stated_law(
    scale: Fraction, dimension: int, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 8 bits to begin with nearly every vector asks for more."""
    monkeypatch.setattr(noise, "_REVEALED", bits)
    rng = Rng()
    drawn = np.array([rng.spherical(scale, dimension)[-1] for _ in range(SLOW_DRAWS)])
    spread = float(scale) * math.sqrt(dimension + 1)
    accept_the_law_and_reject_its_neighbours(drawn, lambda s: spherical_law(s, dimension), float(scale), spread)


@pytest.mark.parametrize("dimension", [1, 2, 3, 8])
def test_the_length_of_spherical_noise_is_a_gamma_variable_and_its_direction_uniform(dimension: int) -> None:
    rng, scale = Rng(), 10**9
    drawn = np.array([rng.spherical(F(scale), dimension) for _ in range(4000)]) / scale
    lengths = np.linalg.norm(drawn, axis=1)
    assert stats.kstest(lengths, stats.gamma(dimension).cdf).pvalue > FALSE_ALARM
    for factor in (0.7, 1.3):
        assert stats.kstest(lengths, stats.gamma(dimension, scale=factor).cdf).pvalue < FALSE_ALARM
    if dimension > 1:  # the squared cosine of the angle with any line is a beta variable, here with the diagonal
        cosines = drawn.sum(axis=1) ** 2 / (dimension * lengths**2)
        assert stats.kstest(cosines, stats.beta(0.5, (dimension - 1) / 2).cdf).pvalue > FALSE_ALARM
        laplace = rng.laplace(F(scale), (40_000, dimension)) / scale
        cosines = laplace.sum(axis=1) ** 2 / (dimension * (laplace**2).sum(axis=1))
        assert stats.kstest(cosines, stats.beta(0.5, (dimension - 1) / 2).cdf).pvalue < FALSE_ALARM


TRUNCATIONS = [(F(1, 2), 1), (F(2), 14), (F(2), 1), (F(30), 31), (F(30), 29), (F(100), 250)]


@pytest.mark.parametrize(("scale", "bound"), TRUNCATIONS, ids=str)
def test_truncated_noise_has_the_conditioned_law(scale: Fraction, bound: int) -> None:
    drawn = Rng().truncated_laplace(scale, bound, DRAWS)
    spread = min(float(scale), bound / 3)
    accept_the_law_and_reject_its_neighbours(drawn, lambda b: truncated_law(b, bound), float(scale), spread)


def test_truncation_far_below_the_scale_is_nearly_uniform() -> None:
    drawn = Rng().truncated_laplace(F(10**6), 5, DRAWS)
    assert p_value(drawn, truncated_law(1e6, 5), 1.0) > FALSE_ALARM
    assert p_value(drawn, truncated_law(30, 5), 1.0) < FALSE_ALARM


def zero_sum_law(scale: float, size: int) -> Upper:
    """Of one cell of size + 1 Laplace noises that add up to zero: its weight times that of the sum of the others."""
    support = np.arange(-math.ceil(40 * scale), math.ceil(40 * scale) + 1)
    one = np.exp(-np.abs(support) / scale)
    others = np.ones(1)
    for _ in range(size):
        others = np.convolve(others, one)
    middle, reach = len(others) // 2, len(support) // 2
    return tabled_law(support, one * others[middle - reach : middle + reach + 1])


@pytest.mark.parametrize(("scale", "size"), [(F(1, 2), 1), (F(2), 2), (F(30), 3), (F(7, 3), 40)], ids=str)
def test_noise_that_adds_up_to_zero_has_the_conditioned_law_in_every_cell(scale: Fraction, size: int) -> None:
    rng = Rng()
    drawn = np.array([rng.zero_sum_laplace(scale, size) for _ in range(SLOW_DRAWS)])
    for cell in (drawn[:, 0], drawn[:, -1], -drawn.sum(axis=1)):
        accept_the_law_and_reject_its_neighbours(cell, lambda b: zero_sum_law(b, size), float(scale), float(scale))


@pytest.mark.parametrize("scale", [F(1, 2), F(10, 3), F(10**5), F(10**12)], ids=str)
def test_the_slow_path_has_the_discrete_laplace_law(scale: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "_GUARD", math.inf)
    drawn = Rng().laplace(scale, SLOW_DRAWS)
    accept_the_law_and_reject_its_neighbours(drawn, laplace_law, float(scale), float(scale))


@pytest.mark.parametrize("variance", [F(1, 2), F(99), F(10**12)], ids=str)
def test_the_slow_path_has_the_discrete_gaussian_law(variance: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "_GUARD", math.inf)
    drawn = Rng().gaussian(variance, SLOW_DRAWS)
    accept_the_law_and_reject_its_neighbours(drawn, gaussian_law, float(variance), math.sqrt(variance))


@pytest.mark.parametrize(("scale", "bound"), [(F(2), 5), (F(30), 9)], ids=str)
def test_the_slow_path_has_the_conditioned_law(scale: Fraction, bound: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "_GUARD", math.inf)
    drawn = Rng().truncated_laplace(scale, bound, SLOW_DRAWS)
    assert p_value(drawn, truncated_law(float(scale), bound), bound / 3) > FALSE_ALARM
    assert p_value(drawn, truncated_law(float(scale) / 3, bound), bound / 3) < FALSE_ALARM


def counts_of(drawn: np.ndarray, values: int) -> np.ndarray:
    return np.bincount(drawn, minlength=values)


@pytest.mark.parametrize("x", [F(0), F(1, 1000), F(1, 3), F(1), F(5)], ids=str)
def test_bernoulli_exp_is_true_with_probability_exp_minus_x(x: Fraction, draws: int) -> None:
    def expected(true_x: float) -> np.ndarray:
        return draws * np.array([-math.expm1(-true_x), math.exp(-true_x)])

    observed = counts_of(Rng().bernoulli_exp(x, draws).astype(np.int64), 2)
    assert chi_square(observed, expected(float(x))) > FALSE_ALARM
    assert (observed[0] == 0) == (x == 0)
    if draws == DRAWS and x > F(1, 1000):
        assert all(chi_square(observed, expected(factor * float(x))) < FALSE_ALARM for factor in (0.7, 1.3))


def test_each_flip_has_the_probability_of_its_own_gap(draws: int) -> None:
    gaps = np.arange(draws) % 8
    flipped = Rng().flips(gaps, F(1, 3))
    assert flipped.shape == gaps.shape

    def p(rate: float) -> float:
        kept = draws / 8 * np.exp(-rate * np.arange(8))
        heads = counts_of(gaps[flipped], 8)
        return chi_square(np.append(heads, draws // 8 - heads[1:]), np.append(kept, draws / 8 - kept[1:]), groups=8)

    assert p(1 / 3) > FALSE_ALARM
    assert p(1 / 3 * 0.7) < FALSE_ALARM
    assert p(1 / 3 * 1.3) < FALSE_ALARM


def test_flips_of_far_gaps_are_false_and_of_no_gap_true() -> None:
    far = Rng().flips(np.array([2**63 - 1, 0, 10**9] * 1000), F(1)).reshape(-1, 3)
    assert far.any(axis=0).tolist() == [False, True, False]
    assert far[:, 1].all()
    assert Rng().flips(np.array([], dtype=np.int64), F(1)).shape == (0,)


def test_bernoulli_exp_of_a_huge_exponent_is_false() -> None:
    assert not Rng().bernoulli_exp(F(10**30), 10_000).any()


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 37, 64])
def test_integers_are_uniform(bound: int) -> None:
    observed = counts_of(Rng().integers(bound, DRAWS), bound)
    assert observed.size == bound
    assert chi_square(observed, np.full(bound, DRAWS / bound)) > FALSE_ALARM


@pytest.mark.parametrize("bound", [3 * 2**20, 3 * 2**40, 2**63])
def test_large_uniform_integers_fill_their_range_and_their_low_bits(bound: int) -> None:
    drawn = Rng().integers(bound, DRAWS)
    tenths = (drawn / bound * 10).astype(np.int64)
    assert chi_square(counts_of(tenths, 10), np.full(10, DRAWS / 10)) > FALSE_ALARM
    assert chi_square(counts_of(drawn % 16, 16), np.full(16, DRAWS / 16)) > FALSE_ALARM


@pytest.mark.parametrize("shift", [0, 6, 12, 20, 30])
def test_the_low_bits_of_large_noise_are_uniform(shift: int) -> None:
    for drawn in (Rng().laplace(F(10**14), DRAWS), Rng().gaussian(F(10**28), DRAWS)):
        assert chi_square(counts_of((drawn >> shift) % 16, 16), np.full(16, DRAWS / 16)) > FALSE_ALARM


def test_neighbouring_draws_are_independent() -> None:
    for drawn in (Rng().laplace(F(5, 2), DRAWS), Rng().gaussian(F(6), DRAWS)):
        pair = np.clip(drawn, -2, 2).reshape(-1, 2) + 2
        table = np.zeros((5, 5))
        np.add.at(table, (pair[:, 0], pair[:, 1]), 1)
        assert stats.chi2_contingency(table).pvalue > FALSE_ALARM


def test_permutations_are_uniform() -> None:
    rng, draws = Rng(), 20_000
    orders = np.array([rng.permutation(4) for _ in range(draws)]) @ np.array([64, 16, 4, 1])
    values, observed = np.unique(orders, return_counts=True)
    assert values.size == 24
    assert chi_square(observed, np.full(24, draws / 24)) > FALSE_ALARM


HEAVY = 2 ** (2**20)
EVEN = math.floor(2**20 * math.log(2))  # exp(EVEN) is nearly HEAVY

SELECTIONS = {
    "ties": ([3, 1, 3, 3, 0, 1], F(1, 2), None),
    "many levels": (list(range(40)), F(1, 7), None),
    "uniform": ([5, -5, 10**9], F(0), None),
    "counts": ([0, 1, 2, 3], F(1), [20, 7, 3, 1]),
    "a zero count": ([0, 9, 2, 3], F(1), [20, 0, 3, 1]),
    "huge gaps": ([10**9, 0, 10**9 - 1, -(10**9)], F(1), None),
    "huge gaps, small rate": ([10**9, 0, 5 * 10**8, -(10**9)], F(1, 10**9), None),
    "huge counts": ([0, EVEN, EVEN - 1, 5], F(1), [HEAVY, 1, 3, 7]),
    "huge counts that cancel a fraction": ([0, 3 * EVEN, 1, 2], F(1, 3), [HEAVY, 1, HEAVY // 2, HEAVY // 5]),
}


def log_of(count: int) -> mpmath.mpf:
    """ln(count), from its leading 300 bits (mpmath is slow with a million)."""
    dropped = max(0, count.bit_length() - 300)
    return mpmath.log(count >> dropped) + dropped * mpmath.log(2)


def exact_probabilities(scores: list[int], rate: Fraction, counts: list[int] | None) -> np.ndarray:
    with mpmath.workprec(200):
        slope = mpmath.mpf(rate.numerator) / rate.denominator
        logs = [
            slope * score + (log_of(count) if count else -mpmath.inf)
            for score, count in zip(scores, counts or [1] * len(scores), strict=True)
        ]
        weights = [mpmath.exp(value - max(logs)) for value in logs]
        return np.array([float(weight / mpmath.fsum(weights)) for weight in weights])


@pytest.mark.parametrize("name", SELECTIONS)
def test_selection_has_the_stated_probabilities(name: str, draws: int) -> None:
    scores, rate, counts = SELECTIONS[name]
    rng, times = Rng(), 6000 if draws == DRAWS else 400
    expected = times * exact_probabilities(scores, rate, counts)
    observed = counts_of(np.array([rng.select(scores, rate, counts) for _ in range(times)]), len(scores))
    rare = expected < 10
    assert observed[expected == 0].sum() == 0
    merged = np.append(observed[~rare], observed[rare].sum()), np.append(expected[~rare], expected[rare].sum())
    if merged[1][-1] < 10:  # too few to test: a Poisson bound on the rest, chi-square given the others
        assert stats.poisson.sf(merged[0][-1] - 1, merged[1][-1]) > FALSE_ALARM
        merged = merged[0][:-1], merged[1][:-1] * merged[0][:-1].sum() / merged[1][:-1].sum()
    assert chi_square(*merged) > FALSE_ALARM


def test_the_selection_test_rejects_a_rate_off_by_thirty_percent() -> None:
    scores, rate, _ = SELECTIONS["many levels"]
    rng, times = Rng(), 10_000
    observed = counts_of(np.array([rng.select(scores, rate) for _ in range(times)]), len(scores))
    for factor in (F(7, 10), F(13, 10)):
        assert chi_square(observed, times * exact_probabilities(scores, factor * rate, None)) < FALSE_ALARM


def test_selection_among_many_candidates_has_the_law_of_its_levels() -> None:
    rng, times = Rng(), 3000
    scores = rng.integers(8, 100_000)
    level = [int(scores[rng.select(scores, F(1, 2))]) for _ in range(times)]
    weights = counts_of(scores, 8) * np.exp(np.arange(8) / 2)
    observed = counts_of(np.array(level), 8)
    assert chi_square(observed, times * weights / weights.sum()) > FALSE_ALARM
    flat = counts_of(scores, 8) * np.exp(np.arange(8) * 0.35)
    assert chi_square(observed, times * flat / flat.sum()) < FALSE_ALARM
