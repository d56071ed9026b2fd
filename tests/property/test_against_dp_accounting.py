"""dp-accounting as an oracle: never below its lower estimate of the truth, equal to its Renyi accountant.

The truth is bracketed by privacy loss distributions, rounded down (pessimistic_estimate=False) and up. An epsilon below
the lower one would be a promise that is broken; what claims to be exact must lie between the two. Distributions are
composed by `self_compose`, not by composing an event with a count, which for randomized response under-reports in
dp-accounting 0.6.
"""

import math
from fractions import Fraction

import pytest

from discreet import composition
from discreet.guarantee import ORDERS, Guarantee

accounting = pytest.importorskip("dp_accounting")
common = pytest.importorskip("dp_accounting.pld.common")
pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
rdp = pytest.importorskip("dp_accounting.rdp.rdp_privacy_accountant")

DELTAS = (1e-3, 1e-6, 1e-9)
RELATION = "replace-one"
REPLACE = accounting.NeighboringRelation.REPLACE_ONE
ADD_OR_REMOVE = accounting.NeighboringRelation.ADD_OR_REMOVE_ONE


def estimate(make, *arguments, times, pessimistic, interval=1e-4):
    """dp-accounting's epsilon at each delta, rounded up (pessimistic) or down."""
    one = make(*arguments, pessimistic_estimate=pessimistic, value_discretization_interval=interval)
    return [one.self_compose(times).get_epsilon_for_delta(delta) for delta in DELTAS]


def lower(make, *arguments, times):
    return estimate(make, *arguments, times=times, pessimistic=False)


def assert_between(found, make, *arguments, times, width):
    """Every epsilon lies between the two estimates, which are at most `width` apart."""
    below = estimate(make, *arguments, times=times, pessimistic=False)
    above = estimate(make, *arguments, times=times, pessimistic=True)
    for low, value, high in zip(below, found, above, strict=True):
        assert low - 1e-9 <= value <= high + 1e-9
        assert high - low <= width


def renyi(event, times, *, relation):
    """Their Renyi accountant on our orders."""
    accountant = rdp.RdpAccountant(orders=list(ORDERS), neighboring_relation=relation).compose(event, times)
    return [accountant.get_epsilon(delta) for delta in DELTAS]


def ours(guarantee):
    return [guarantee.epsilon(delta) for delta in DELTAS]


def assert_above(found, truth, *, looseness):
    """Every epsilon is at least the truth, and at most `looseness` times it."""
    for above, below in zip(found, truth, strict=True):
        assert below * (1 - 1e-9) - 1e-9 <= above <= below * looseness + 1e-6


def flip(epsilon):
    """dp-accounting's parameter of the randomized response with this epsilon."""
    return 2 / (1 + math.exp(epsilon))


@pytest.mark.parametrize(("epsilon", "times"), [(1, 1), (0.1, 10), (1, 10), (0.01, 100), (0.1, 100), (0.1, 1000)])
def test_pure_guarantees_are_above_randomized_response_and_close_to_it(epsilon, times):
    truth = lower(pld.from_randomized_response, flip(epsilon), 2, times=times)
    assert_above(ours(Guarantee.of_pure(epsilon, neighbours=RELATION) * times), truth, looseness=1.25)


@pytest.mark.parametrize(("epsilon", "times"), [(1, 1), (0.1, 10), (1, 10), (0.01, 100), (0.1, 100), (0.1, 500)])
def test_the_optimal_composition_is_the_truth_about_randomized_response(epsilon, times):
    found = [composition.optimal(epsilon, times=times, total=delta).epsilon for delta in DELTAS]
    assert_between(found, pld.from_randomized_response, flip(epsilon), 2, times=times, width=2e-4 * times)


@pytest.mark.parametrize(("epsilon", "delta", "times"), [(0.1, 1e-8, 50), (0.5, 1e-10, 5)])
def test_approximate_guarantees_are_above_their_worst_pair(epsilon, delta, times):
    parameters = common.DifferentialPrivacyParameters(epsilon, delta)
    composed = pld.from_privacy_parameters(parameters, value_discretization_interval=1e-4).self_compose(times)
    one = Guarantee.of_approximate(epsilon, delta=delta, neighbours=RELATION)
    for total in (1e-6, 1e-5):
        # This estimate is rounded up by at most times * interval.
        truth = composed.get_epsilon_for_delta(total)
        assert truth - times * 1e-4 <= (one * times).epsilon(total) <= truth * 1.15


@pytest.mark.parametrize(("epsilon", "times"), [(1, 1), (0.1, 100), (0.01, 1000), (2, 10)])
def test_fine_discrete_laplace_is_above_continuous_laplace(epsilon, times):
    truth = lower(pld.from_laplace_mechanism, 1 / epsilon, times=times)
    fine = Guarantee.of_laplace(10**6, scale=Fraction(10**6) / Fraction(repr(epsilon)), neighbours=RELATION)
    assert_above(ours(fine * times), truth, looseness=1.2)


@pytest.mark.parametrize(("shift", "scale", "times"), [(1, 2, 1), (3, 5, 10), (4, 40, 100), (10, 100, 300)])
def test_discrete_laplace_is_above_its_own_loss_distribution(shift, scale, times):
    truth = lower(pld.from_discrete_laplace_mechanism, 1 / scale, shift, times=times)
    assert_above(ours(Guarantee.of_laplace(shift, scale=scale, neighbours=RELATION) * times), truth, looseness=1.25)


@pytest.mark.parametrize(("sigma", "times"), [(1, 1), (5, 10), (20, 100), (50, 1000)])
def test_the_exact_gaussian_is_the_truth(sigma, times):
    found = ours(Guarantee.of_gaussian(Fraction(1, sigma), neighbours=RELATION) * times)
    assert_between(found, pld.from_gaussian_mechanism, float(sigma), times=times, width=2e-4 * times)
    above = estimate(pld.from_gaussian_mechanism, float(sigma), times=times, pessimistic=True)
    assert found == pytest.approx(above, rel=1e-4)  # rounded up, their estimate is much the better of the two


@pytest.mark.parametrize(("sigma", "times"), [(2, 1), (5, 10), (20, 100)])
def test_discrete_gaussian_noise_is_below_its_zcdp(sigma, times):
    truth = lower(pld.from_discrete_gaussian_mechanism, float(sigma), times=times)
    found = ours(Guarantee.of_zcdp(Fraction(1, 2 * sigma * sigma), neighbours=RELATION) * times)
    assert_above(found, truth, looseness=1.2)


@pytest.mark.parametrize("times", [1, 10, 1000])
@pytest.mark.parametrize("rho", [0.001, 0.1])
def test_zcdp_converts_as_their_renyi_accountant_does(rho, times):
    theirs = renyi(accounting.GaussianDpEvent(1 / math.sqrt(2 * rho)), times, relation=ADD_OR_REMOVE)
    assert ours(Guarantee.of_zcdp(rho, neighbours="add-remove") * times) == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize("times", [1, 50])
@pytest.mark.parametrize("epsilon", [0.05, 1])
def test_fine_discrete_laplace_converts_as_their_laplace(epsilon, times):
    theirs = renyi(accounting.LaplaceDpEvent(1 / epsilon), times, relation=ADD_OR_REMOVE)
    fine = Guarantee.of_laplace(10**8, scale=Fraction(10**8) / Fraction(repr(epsilon)), neighbours="add-remove") * times
    assert ours(fine) == pytest.approx([min(value, epsilon * times) for value in theirs], rel=1e-6)


@pytest.mark.parametrize("times", [1, 50])
@pytest.mark.parametrize("epsilon", [0.05, 1])
def test_pure_guarantees_convert_as_their_randomized_response(epsilon, times):
    theirs = renyi(accounting.RandomizedResponseDpEvent(flip(epsilon), 2), times, relation=REPLACE)
    found = ours(Guarantee.of_pure(epsilon, neighbours=RELATION) * times)
    assert found == pytest.approx([min(value, epsilon * times) for value in theirs], rel=1e-8)
