"""Every bound on noise against the exact probability of what it excludes: it holds, and the next smaller one does not.

The tails are computed here again, with fifty digits, from the laws alone. A bound that is rounded the wrong way, or
that is off by one step, breaks one of the two halves.
"""

from __future__ import annotations

import functools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtri

import discreet as dp
from discreet.answering.measurement import noise_bound
from discreet.mechanisms import GaussianNoise, LaplaceNoise, gaussian_reach, stable
from discreet.pac.conjunctions import GaussianCounts, LaplaceCounts, lecture_threshold
from discreet.pac.mistake_bound import hidden_mistakes, noisy_mistakes
from discreet.pac.rank_bounds import RankBounds
from discreet.pac.rules import Labels, Literals, Mistakes
from discreet.query import Count, Sum
from tests.examples import LABELS, RULES, facts

SCALES = [Fraction(1, 3), Fraction(1), Fraction(7, 3), Fraction(20), Fraction(1234, 7)]
BETAS = [Fraction(1, 3), Fraction(1, 20), Fraction(1, 1000), Fraction(1, 10**9)]
scaled = pytest.mark.parametrize("scale", SCALES, ids=str)
failing = pytest.mark.parametrize("beta", BETAS, ids=str)


def number(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def geometric(steps: int, scale: Fraction) -> Decimal:
    """P[K >= steps] of one-sided noise."""
    with localcontext(prec=50):
        return (-number(Fraction(steps) / scale)).exp()


def laplace(steps: int, scale: Fraction) -> Decimal:
    """P[X >= steps] of discrete Laplace noise, steps >= 1."""
    with localcontext(prec=50):
        q = (-number(1 / scale)).exp()
        return q**steps / (1 + q)


def gaussian(steps: int, scale: float) -> float:
    """P[X >= steps] of discrete Gaussian noise of this parameter, for a moderate one."""
    far = math.ceil(60 * scale) + 60
    weight = [math.exp(-k * k / (2 * scale * scale)) for k in range(far + 1)]
    return math.fsum(weight[steps:]) / (math.fsum(weight[1:]) * 2 + 1)


def least(tail, beta: Fraction, first: int = 1) -> int:
    """The least number of steps, from `first` on, whose tail is at most beta; the tail falls."""
    if tail(first) <= number(beta):
        return first
    low, high = first, first + 1
    while tail(high) > number(beta):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if tail(middle) <= number(beta) else (middle, high)
    return high


# Thresholds.


@scaled
@failing
@pytest.mark.parametrize("step", [Fraction(1), Fraction(5, 2)])
def test_the_noise_of_a_threshold_is_beyond_its_bound_as_rarely_as_promised_and_no_rarer(scale, beta, step):
    talk = dp.mechanisms.AboveThreshold(scale * step, 3 * scale * step, sensitivity=step)
    assert talk.z_bound(beta) == least(lambda j: geometric(j, scale), beta) * step
    assert talk.nu_bound(beta) == least(lambda j: geometric(j, 3 * scale), beta) * step


@scaled
@failing
@pytest.mark.parametrize("questions", [1, 7])
def test_a_window_splits_beta_over_the_threshold_and_all_questions(scale, beta, questions):
    one_sided, two_sided = (
        dp.mechanisms.AboveThreshold(scale, 2 * scale),
        dp.mechanisms.AboveThresholdLaplace(scale, 2 * scale),
    )
    half = (
        least(lambda j: geometric(j, scale), beta / 2),
        least(lambda j: geometric(j, 2 * scale), beta / 2 / questions),
    )
    assert one_sided.window(beta, questions=questions) == sum(half)
    # two-sided noise: |z| and every |nu| stay below their parts, and both count on either side
    z, nu = (
        least(lambda j: geometric(j, scale), beta / 4),
        least(lambda j: geometric(j, 2 * scale), beta / 4 / questions),
    )
    assert two_sided.window(beta, questions=questions) == 2 * (z + nu)
    assert 2 * laplace(z, scale) + 2 * questions * laplace(nu, 2 * scale) <= number(beta)


# The laws themselves: every tail and quantile in the library is one of these.

GRID = [Fraction(1, 3), Fraction(1, 2), Fraction(1), Fraction(5, 3), Fraction(7, 2), Fraction(11), Fraction(40)]
FAILURES = [0.5, 0.1, 0.05, 1e-3, 1e-6, 1e-9]


@pytest.mark.parametrize("scale", GRID, ids=str)
@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("unit", [Fraction(1), Fraction(1, 4)])
def test_the_quantile_of_laplace_noise_is_the_least_that_holds(scale, failure, unit):
    noise = LaplaceNoise(scale * unit)
    found = noise.quantile(failure, unit=unit)
    assert found == least(lambda t: 2 * laplace(t + 1, scale), Fraction(failure), first=0)
    for steps in (1, 2, int(found) + 1):
        assert noise.tail(steps, unit=unit) == pytest.approx(float(laplace(steps, scale)), rel=1e-12)


@pytest.mark.parametrize("scale", GRID, ids=str)
@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("unit", [Fraction(1), Fraction(1, 4)])
def test_the_quantile_of_gaussian_noise_holds_and_is_not_wider_than_any_known_formula(scale, failure, unit):
    noise, s = GaussianNoise(scale * unit), float(scale)
    found = noise.quantile(failure, unit=unit)
    assert 2 * gaussian(int(found) + 1, s) <= failure
    normal, log_one_side = -float(ndtri(failure / 2)), math.log(2 / failure)
    assert found <= math.ceil(s * normal)
    assert found <= s * math.sqrt(2 * log_one_side)
    assert found <= math.ceil(s * max(1.0, normal) + 0.5) - 1
    for steps in (1, 2, int(found) + 1):
        assert gaussian(steps, s) <= noise.tail(steps, unit=unit) * (1 + 1e-12)


@pytest.mark.parametrize("kind", [LaplaceNoise, GaussianNoise])
@pytest.mark.parametrize("failure", FAILURES[1:])
@pytest.mark.parametrize("steps", [1, 7, 300])
def test_the_largest_scale_for_a_quantile_has_it_and_a_larger_one_has_not(kind, failure, steps):
    scale = kind.scale_for(steps, failure)
    assert kind(scale * (1 - 1e-9)).quantile(failure) <= steps
    assert kind(scale * (1 + 1e-6)).quantile(failure) > steps


@pytest.mark.parametrize("kind", [LaplaceNoise, GaussianNoise])
def test_noise_always_reaches_0_and_no_noises_add_up_to_0(kind):
    assert (kind(3).tail(0), kind(3).tail(-2)) == (1, 1)
    assert kind(3).reach(math.log(0.9)) == 1
    assert kind(3).quantile(0.1, copies=0) == 0


# Certificates, interior points.


@scaled
@failing
def test_a_certificate_hides_no_mistake_more_than_its_beta_allows(scale, beta):
    """Noise is below -m with the probability of being at least m + 1."""
    assert hidden_mistakes(scale, beta) == least(lambda m: laplace(m + 1, scale), beta, first=0)


@scaled
@failing
def test_what_laplace_noise_reaches(scale, beta):
    assert LaplaceNoise(scale).reach(math.log(beta)) == least(lambda m: laplace(m, scale), beta)


@pytest.mark.parametrize("scale", [0.7, 1.0, 3.5, 40.0])
@pytest.mark.parametrize("beta", [0.1, 1e-3, 1e-8])
def test_what_gaussian_noise_reaches(scale, beta):
    found = gaussian_reach(scale, math.log(beta))
    assert gaussian(found, scale) <= beta
    assert gaussian(found - 2, scale) > beta


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_a_certificate_costs_the_epsilon_that_was_asked_for_whatever_rows_a_person_has(rows, relation):
    found = facts(relation, rows=rows)
    assert noisy_mistakes(RULES[0], LABELS, epsilon="1/7", facts=found).guarantee(found).pure == Fraction(1, 7)
    assert Mistakes(RULES[0], LABELS).sensitivity(found).l1 == rows


@pytest.mark.parametrize("beta", [0.2, 0.01])
def test_as_many_rows_as_promised_are_beyond_a_suggested_bound(beta):
    """P[one bound misses by x rows] <= points e^(-rate x), and there are two bounds."""
    bounds = RankBounds("fine", "0.96", "0.2")
    missed, points = bounds.missed(facts("add-remove"), beta), 2**22 + 1
    assert 2 * points * math.exp(-0.2 * missed) <= beta < 2 * points * math.exp(-0.2 * (missed - 1))


# Additive noise.


@scaled
@pytest.mark.parametrize("beta", BETAS[1:], ids=str)
@pytest.mark.parametrize("kind", [dp.Laplace, dp.mechanisms.ProductLaplace, dp.mechanisms.CoordinateLaplace])
@pytest.mark.parametrize(("query", "unit"), [(Count(), Fraction(1)), (Sum("pay"), Fraction(1, 2))])
def test_the_range_of_laplace_noise_is_the_least_that_holds(scale, beta, kind, query, unit):
    found = Fraction(kind(query, scale * unit).noise_range(1 - beta, facts("add-remove"))) / unit
    assert found == least(lambda t: 2 * laplace(t + 1, scale), beta, first=0)


@pytest.mark.parametrize("scale", [1.0, 3.5, 40.0])
@pytest.mark.parametrize("beta", [0.05, 1e-3, 1e-8])
def test_the_range_of_gaussian_noise_holds_and_is_within_two_steps_of_the_least(scale, beta):
    found = int(dp.Gaussian(Count(), scale).noise_range(1 - beta, facts("add-remove")))
    assert 2 * gaussian(found + 1, scale) <= beta
    assert 2 * gaussian(found - 1, scale) > beta


@scaled
@failing
@pytest.mark.parametrize("sets", [1, 12])
def test_the_error_of_a_measured_number_holds_for_all_of_them_at_once(scale, beta, sets):
    found = noise_bound("laplace", float(scale), copies=1, log_sets=math.log(sets), failure=float(beta))
    assert found == least(lambda t: 2 * sets * laplace(t + 1, scale), beta, first=0)


@pytest.mark.parametrize("scale", [1.0, 3.5, 40.0])
@pytest.mark.parametrize("beta", [0.05, 1e-3, 1e-8])
@pytest.mark.parametrize("sets", [1, 12])
def test_the_error_of_a_gaussian_measurement_holds_for_all_numbers_at_once(scale, beta, sets):
    found = noise_bound("gaussian", scale, copies=1, log_sets=math.log(sets), failure=beta)
    assert 2 * sets * gaussian(math.floor(found) + 1, scale) <= beta
    assert 2 * sets * gaussian(math.floor(found) - 1, scale) > beta


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_the_error_of_a_sum_of_two_measured_numbers_holds(kind):
    """By the exact law of the sum of two noises."""
    scale, beta, far = 2.0, 1e-4, 200
    one = [gaussian(abs(k), scale) - gaussian(abs(k) + 1, scale) for k in range(-far, far + 1)]
    if kind == "laplace":
        q = math.exp(-1 / scale)
        one = [(1 - q) / (1 + q) * q ** abs(k) for k in range(-far, far + 1)]
    two = {k: math.fsum(one[i + far] * one[k - i + far] for i in range(k - 60, 61)) for k in range(61)}
    tail = lambda t: 2 * math.fsum(p for k, p in two.items() if k > t)  # noqa: E731
    found = noise_bound(kind, scale, copies=2, log_sets=0.0, failure=beta)
    assert tail(math.floor(found)) <= beta < tail(math.floor(found / 1.6))


def _law(scale: float, far: int) -> np.ndarray:
    weights = np.exp(-(np.arange(-far, far + 1.0) ** 2) / (2 * scale * scale))
    return weights / weights.sum()


@pytest.mark.parametrize("scale", [2.0, 3.3, 9.0])
@pytest.mark.parametrize("copies", [2, 3, 8, 20])
@pytest.mark.parametrize("spent", [0.7, 2.0, 3.7, 10.0, 22.0])
def test_a_sum_of_gaussian_noises_is_bounded_by_the_normal_tail_and_by_chernoff(scale, copies, spent):
    """By the exact law of the sum; four steps less would not hold, nor would a tenth less."""
    far = math.ceil(9 * scale)
    law = functools.reduce(np.convolve, [_law(scale, far)] * copies)
    tail = lambda t: law[copies * far + math.floor(t) + 1 :].sum()  # noqa: E731
    (found,) = GaussianNoise(scale).sum_reach(np.array([spent]), np.array([copies]))
    assert tail(found) <= math.exp(-spent)
    assert tail(min(found - 4, 0.9 * found)) > math.exp(-spent)
    assert found <= scale * math.sqrt(2 * copies * spent)


@pytest.mark.parametrize(("cells", "some"), [(2, 1), (3, 1), (3, 2), (5, 2), (6, 3)])
@pytest.mark.parametrize("spent", [2.0, 3.7, 10.0, 22.0])
def test_a_set_of_levelled_cells_is_bounded_by_the_normal_tail(cells, some, spent):
    """K (sum of c noises, less c/K of the sum of all) = (K - c) S - c S', by its exact law."""
    scale, far = math.sqrt(2 * cells), 40

    def spread(copies: int, times: int) -> np.ndarray:
        law = functools.reduce(np.convolve, [_law(scale, far)] * copies)
        wide = np.zeros(times * (len(law) - 1) + 1)
        wide[::times] = law
        return wide

    law = np.convolve(spread(some, cells - some), spread(cells - some, some))
    (found,) = GaussianNoise(scale).sum_reach(np.array([spent]), np.array([some * (1 - some / cells)]))
    tail = lambda t: law[len(law) // 2 + math.floor(cells * t) + 1 :].sum()  # noqa: E731
    assert tail(found) <= math.exp(-spent)
    assert tail(min(found - 4, 0.9 * found)) > math.exp(-spent)


# Stable histograms.


@pytest.mark.parametrize("scale", SCALES[:4], ids=str)
@pytest.mark.parametrize("beta", BETAS[1:], ids=str)
@pytest.mark.parametrize("rows", [1, 3])
def test_the_bound_of_a_stable_histogram_is_the_least_that_keeps_a_persons_bins_in(scale, beta, rows):
    def mass(bound: int, outermost: int) -> Decimal:
        with localcontext(prec=50):
            q = (-number(1 / scale)).exp()
            whole = 1 + 2 * sum((q**k for k in range(1, bound + 1)), Decimal(0))
            return sum((q**k for k in range(bound - outermost + 1, bound + 1)), Decimal(0)) / whole

    found = stable.least_bound(scale, beta, rows)
    assert mass(found, rows) <= number(beta)
    assert found == rows or mass(found - 1, rows) > number(beta)
    certain = stable.certain_count(scale, found, float(beta))  # missed if the noise is below bound + 1 - count
    assert mass(found, 2 * found + 1 - certain) <= number(beta)
    if certain > found + 1:
        assert mass(found, 2 * found + 2 - certain) > number(beta)


# Counts of literals.


def two_noises(reach: int, one: list[float], other: list[float]) -> float:
    """P[sum of two symmetric noises >= reach]; each list holds P[k] for k = 0, 1, ..."""
    both = (np.concatenate([each[:0:-1], each]) for each in (one, other))
    sums = np.convolve(*both)
    return float(sums[len(one) + len(other) - 2 + reach :].sum())


@pytest.mark.parametrize("probability", [0.1, 1e-3, 1e-6])
@pytest.mark.parametrize("ratio", [2, 5])
def test_the_margin_of_a_doubled_count_is_reached_as_rarely_as_promised(probability, ratio):
    literals, scale = Literals("p"), 12
    q = [math.exp(-1 / each) for each in (scale, scale / ratio)]
    laws = [[(1 - r) / (1 + r) * r**k for k in range(600)] for r in q]
    found = LaplaceCounts(literals, Labels("y", "+"), scale, Fraction(scale, ratio), 0)
    assert two_noises(found.margin(probability), *laws) <= probability
    assert two_noises(found.margin(probability) - 4, *laws) > probability
    deviations = [math.sqrt(each) for each in (90, 90 / ratio)]
    bells = [[gaussian(k, s) - gaussian(k + 1, s) for k in range(80)] for s in deviations]
    normal = GaussianCounts(literals, Labels("y", "+"), 90, Fraction(90, ratio), 0)
    assert two_noises(normal.margin(probability), *bells) <= probability
    assert two_noises(normal.margin(probability) - 4, *bells) > probability
    total = found.total_margin(probability)
    assert laplace(total, Fraction(scale, ratio)) <= probability < laplace(total - 3, Fraction(scale, ratio))
    assert gaussian(normal.total_margin(probability), deviations[1]) <= probability
    assert gaussian(normal.total_margin(probability) - 3, deviations[1]) > probability


@pytest.mark.parametrize("d", [1, 30])
@pytest.mark.parametrize("beta", [0.1, 1e-6])
def test_no_noise_of_a_lecture_is_beyond_its_threshold(d, beta):
    found = lecture_threshold(Fraction(9), d, beta)
    assert 4 * d * laplace(found + 1, Fraction(9)) <= 2 * Decimal(beta)  # 2 d counts, two tails each
    assert (
        Decimal(2 * d) * geometric(found, Fraction(9))
        <= Decimal(beta)
        < Decimal(2 * d) * geometric(found - 1, Fraction(9))
    )
