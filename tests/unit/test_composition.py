"""The composition theorems: their numbers, their conditions, their order, and their inverses."""

import math
from fractions import Fraction

import mpmath
import pytest

from discreet import composition
from discreet.errors import ParameterError
from discreet.guarantee import Budget, Guarantee


def test_basic_composition_is_the_sum():
    found = composition.basic(0.1, delta=1e-7, times=10)
    assert (found.epsilon, found.delta) == (1, 1e-6)
    assert composition.basic_share(1, delta=1e-6, times=10) == Budget(Fraction(1, 10), Fraction(1, 10**7))


def test_strong_composition_is_the_lectures_formula():
    found = composition.strong(0.1, delta=1e-9, times=100)
    assert found.epsilon == pytest.approx(math.sqrt(200 * math.log(1e7)) * 0.1 + 200 * 0.01, rel=1e-11)
    assert found.delta == 2e-7


@pytest.mark.parametrize(
    ("epsilon", "delta", "times", "failed"),
    [(1.01, 1e-6, 10, "epsilon <= 1"), (0.1, 0, 10, "delta > 0"), (0.1, 0.01, 100, r"times \* delta < 1")],
)
def test_strong_composition_says_which_condition_failed(epsilon, delta, times, failed):
    with pytest.raises(ParameterError, match=failed):
        composition.strong(epsilon, delta=delta, times=times)


def test_strong_composition_allows_its_limits():
    assert composition.strong(1, delta=Fraction(99, 10000), times=100).epsilon > 0


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1])
@pytest.mark.parametrize("delta", [0.1, 1e-6, 1e-12])
@pytest.mark.parametrize("times", [1, 7, 1000])
def test_the_lectures_corollary_holds_with_constant_one_over_two_root_two(epsilon, delta, times):
    share = composition.strong_share(epsilon, delta=delta, times=times)
    assert share.delta == Fraction(repr(delta)) / (2 * times)
    assert share.epsilon >= epsilon / (2 * math.sqrt(2 * times * math.log(2 / delta)))


def test_the_two_forms_for_different_parameters():
    epsilons, squares, size = [0.1, 0.2, 0.5], 0.01 + 0.04 + 0.25, math.log(1e6)
    lecture, sharper = composition.different(epsilons, delta=1e-6), composition.concentrated(epsilons, delta=1e-6)
    assert lecture.epsilon == pytest.approx(2 * squares + math.sqrt(2 * squares * size), rel=1e-11)
    assert sharper.epsilon == pytest.approx(squares / 2 + math.sqrt(2 * squares * size), rel=1e-11)


@pytest.mark.parametrize(
    "theorem", [composition.different, composition.concentrated, composition.zcdp, composition.gaussian]
)
@pytest.mark.parametrize("delta", [0, 1, -0.5])
def test_theorems_that_need_a_delta_refuse_to_go_without(theorem, delta):
    with pytest.raises(ParameterError, match="delta"):
        theorem([0.1], delta=delta)


@pytest.mark.parametrize(
    ("epsilon", "delta", "rho"),
    [
        (0.1, 1e-6, 3.21e-4),
        (0.5, 1e-6, 6.64e-3),
        (1, 1e-6, 0.02436),
        (2, 1e-6, 0.0882),
        (4, 1e-6, 0.311),
        (1, 1e-9, 0.01497),
    ],
)
def test_the_known_amounts_of_zcdp(epsilon, delta, rho):
    assert float(composition.zcdp_share(epsilon, delta=delta, times=1)) == pytest.approx(rho, rel=2e-3)
    assert composition.zcdp([rho / 4] * 4, delta=delta).epsilon == pytest.approx(epsilon, rel=1e-3)


def test_the_zcdp_conversion_at_the_best_real_order_is_below_the_grids():
    for rho in (1e-5, 1e-3, 0.02, 0.3, 5):
        grid = Guarantee.of_zcdp(rho, neighbours="add-remove").epsilon(1e-6)
        real = composition.zcdp([rho], delta=1e-6).epsilon
        assert real <= grid * (1 + 1e-9)
        assert real >= 0.93 * composition.gaussian([math.sqrt(2 * rho)], delta=1e-6).epsilon
        assert real <= rho + 2 * math.sqrt(rho * math.log(1e6))


def test_gaussian_composition_is_the_known_exact_value():
    assert composition.gaussian([Fraction(1, 50)] * 1000, delta=1e-6).epsilon == pytest.approx(2.92160, abs=1e-5)
    mu = float(composition.gaussian_share(1, delta=1e-6, times=4))
    assert (2 * mu) ** 2 / 2 == pytest.approx(0.02801, abs=1e-5)


def corner(epsilon, delta, times, i):
    """[KOV15] Thm 3.3 as it is printed: the pair at corner i, to many digits."""
    with mpmath.workdps(50):
        e, d = mpmath.mpf(repr(epsilon)), mpmath.mpf(repr(delta))
        terms = (
            math.comb(times, j) * (mpmath.exp((times - j) * e) - mpmath.exp((times - 2 * i + j) * e)) for j in range(i)
        )
        total = 1 - (1 - d) ** times * (1 - mpmath.fsum(terms) / (1 + mpmath.exp(e)) ** times)
        return (times - 2 * i) * epsilon, Fraction(mpmath.nstr(total, 45))


@pytest.mark.parametrize(("epsilon", "delta", "times"), [(0.1, 0, 10), (0.5, 0.001, 9), (1, 0.01, 2), (0.2, 1e-4, 40)])
def test_optimal_composition_passes_through_the_corners_of_the_theorem(epsilon, delta, times):
    for i in range(1, times // 2 + 1):
        total_epsilon, total = corner(epsilon, delta, times, i)
        found = composition.optimal(epsilon, delta=delta, times=times, total=total)
        assert total_epsilon * (1 - 1e-12) <= found.epsilon <= total_epsilon + 1e-6


def responses_delta(epsilon: str, times: int, at: float) -> mpmath.mpf:
    """The hockey-stick divergence of k randomized responses, to 40 digits."""
    each, found = mpmath.mpf(epsilon), mpmath.mpf(0)
    mass, falls, grows = (1 + mpmath.exp(-each)) ** -times, mpmath.exp(-each), mpmath.exp(2 * each)
    ratio = mpmath.exp(at - times * each)
    for wrong in range(times + 1):
        if ratio >= 1:
            break
        found += mass * (1 - ratio)
        mass, ratio = mass * (times - wrong) / (wrong + 1) * falls, ratio * grows
    return found


@pytest.mark.parametrize(
    ("epsilon", "times", "total"),
    [
        ("0.01", 10**5, "1e-6"),
        ("0.01", 10**5, "1e-12"),
        ("0.5", 5, "1e-6"),
        ("0.1", 1000, "1e-3"),
        ("0.2", 20_000, "1e-9"),
    ],
)
def test_optimal_composition_is_rounded_up_however_many_there_are(epsilon, times, total):
    """The logarithms of many probabilities are sums of many roundings: they are bounded, not left out."""
    found = composition.optimal(epsilon, times=times, total=total).epsilon
    with mpmath.workdps(40):
        assert responses_delta(epsilon, times, found) <= mpmath.mpf(total)
        assert responses_delta(epsilon, times, found * (1 - 1e-8)) > mpmath.mpf(total), "and no more than needed"


def test_one_randomized_response_has_its_closed_form():
    for epsilon, total in ((0.5, 1e-3), (2, 0.1), (5, 1e-9)):
        truth = math.log(math.exp(epsilon) - total * (1 + math.exp(epsilon)))
        assert composition.optimal(epsilon, times=1, total=total).epsilon == pytest.approx(truth, abs=1e-10)


def test_without_delta_the_optimal_composition_is_the_basic_one():
    assert composition.optimal(0.3, times=7, total=0).epsilon == pytest.approx(2.1, rel=1e-11)


def test_a_large_delta_needs_no_epsilon():
    assert composition.optimal(0.1, times=4, total=0.9).epsilon == 0


def test_optimal_composition_survives_large_and_many():
    assert composition.optimal(800, times=3, total=1e-6).epsilon == pytest.approx(2400, abs=1e-5)
    assert composition.optimal(1e-9, times=3, total=1e-6).epsilon == 0
    assert composition.optimal(0.001, times=10**5, total=1e-6).epsilon < 2
    assert composition.optimal(1, times=10**5, total=1e-6).epsilon < 10**5


def test_a_total_below_the_failures_is_refused():
    with pytest.raises(ParameterError, match="total"):
        composition.optimal(0.1, delta=1e-3, times=10, total=9e-3)
    with pytest.raises(ParameterError, match="below 1"):
        composition.optimal(0.1, delta=1, times=10, total=0.5)


CASES = [(0.001, 1e-9, 10), (0.01, 1e-8, 1000), (0.1, 1e-9, 100), (0.1, 1e-6, 10), (1, 1e-9, 3), (0.5, 1e-4, 50)]


@pytest.mark.parametrize(("epsilon", "delta", "times"), CASES)
def test_no_theorem_is_below_the_truth(epsilon, delta, times):
    rows = composition.compare(epsilon, delta=delta, times=times)
    assert {row.name for row in rows} == {"basic", "strong", "different", "concentrated", "renyi", "optimal"}
    for row in rows:
        truth = (
            composition.optimal(epsilon, delta=delta, times=times, total=row.delta) if row.name != "basic" else rows[-1]
        )
        assert row.epsilon >= truth.epsilon * (1 - 1e-9)
    found = {row.name: row.epsilon for row in rows}
    assert found["renyi"] <= min(found["basic"], found["concentrated"]) * (1 + 1e-9)
    assert found["concentrated"] <= found["different"]


def test_a_comparison_reads_from_loose_to_tight_with_the_reasons_last():
    rows = composition.compare(2, delta=1e-9, times=10)
    usable = [row.epsilon for row in rows if not row.note]
    assert usable == sorted(usable, reverse=True)
    assert (rows[-1].name, rows[-1].epsilon) == ("strong", math.inf)
    assert "epsilon <= 1" in rows[-1].note


def test_pure_mechanisms_are_compared_at_a_given_total():
    rows = {row.name: row for row in composition.compare(0.01, delta=0, times=1000, total=1e-6)}
    assert "delta > 0" in rows["strong"].note
    assert rows["basic"].delta == 0
    assert rows["optimal"].epsilon < rows["renyi"].epsilon < rows["concentrated"].epsilon < rows["basic"].epsilon


@pytest.mark.parametrize(("delta", "total"), [(0, None), (1e-3, None), (1e-6, 1e-5), (1e-6, 1)])
def test_a_comparison_without_a_usable_total_is_refused(delta, total):
    with pytest.raises(ParameterError, match="total"):
        composition.compare(0.1, delta=delta, times=1000, total=total)


def strong_again(share, times, delta):
    return composition.strong(share.epsilon, delta=share.delta, times=times).epsilon


def concentrated_again(share, times, delta):
    return composition.concentrated([share.epsilon] * times, delta=delta).epsilon


def zcdp_again(share, times, delta):
    return composition.zcdp([share] * times, delta=delta).epsilon


def gaussian_again(share, times, delta):
    return composition.gaussian([share] * times, delta=delta).epsilon


def optimal_again(share, times, delta):
    return composition.optimal(share.epsilon, delta=share.delta, times=times, total=delta).epsilon


def larger(share):
    return (
        Budget(share.epsilon * Fraction("1.000001"), share.delta)
        if isinstance(share, Budget)
        else share * Fraction("1.000001")
    )


@pytest.mark.parametrize(("epsilon", "delta", "times"), [(1, 1e-6, 1), (0.1, 1e-9, 20), (3, 1e-3, 100)])
@pytest.mark.parametrize(
    ("inverse", "forward"),
    [
        (composition.strong_share, strong_again),
        (composition.concentrated_share, concentrated_again),
        (composition.zcdp_share, zcdp_again),
        (composition.gaussian_share, gaussian_again),
        (composition.optimal_share, optimal_again),
    ],
)
def test_a_share_fits_and_one_part_in_a_million_more_does_not(inverse, forward, epsilon, delta, times):
    share = inverse(epsilon, delta=delta, times=times)
    assert forward(share, times, delta) <= epsilon * (1 + 1e-9)
    assert forward(larger(share), times, delta) > epsilon


def test_a_generous_target_gives_strong_composition_its_limit():
    assert composition.strong_share(10**6, delta=1e-6, times=2).epsilon == 1
