"""Laws that every guarantee keeps: an algebra of sums, monotone conversions, and no pair of laws that beats them."""

import math
from fractions import Fraction
from functools import reduce
from operator import add

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.guarantee import (
    ORDERS,
    Budget,
    Guarantee,
    choose_order,
    gaussian_to_delta,
    gaussian_to_epsilon,
    renyi_cap,
    renyi_to_delta,
    renyi_to_epsilon,
)

RELATION = "add-remove"


def positives(low, high):
    """Floats that are spread evenly over their orders of magnitude."""
    return st.floats(math.log(low), math.log(high)).map(math.exp)


parameters = positives(1e-9, 1e3)
deltas = positives(1e-30, 0.5)
shifts = st.integers(1, 10**6)

guarantees = st.one_of(
    parameters.map(lambda x: Guarantee.of_pure(x, neighbours=RELATION)),
    parameters.map(lambda x: Guarantee.of_bounded_range(x, neighbours=RELATION)),
    parameters.map(lambda x: Guarantee.of_zcdp(x, neighbours=RELATION)),
    positives(1e-9, 30).map(lambda x: Guarantee.of_gaussian(x, neighbours=RELATION)),
    st.builds(
        lambda x, d: Guarantee.of_approximate(x, delta=d, neighbours=RELATION), parameters, positives(1e-30, 1e-3)
    ),
    st.builds(lambda m, s: Guarantee.of_laplace(m, scale=s, neighbours=RELATION), shifts, positives(1e-2, 1e9)),
    st.builds(
        lambda m, s, d: Guarantee.of_product_laplace(m * m, l1=m, scale=s, dimension=d, neighbours=RELATION),
        shifts,
        positives(1e-2, 1e9),
        st.integers(1, 1000),
    ),
    st.just(Guarantee.nothing(RELATION)),
)

brief = settings(max_examples=60, deadline=None)


@brief
@given(guarantees, guarantees)
def test_addition_is_commutative(left, right):
    assert left + right == right + left


@brief
@given(guarantees, guarantees, guarantees)
def test_addition_is_associative_up_to_rounding(first, second, third):
    left, right = (first + second) + third, first + (second + third)
    assert left.renyi == pytest.approx(right.renyi, rel=1e-14)
    assert (left.pure, left.failure) == (right.pure, right.failure)


@brief
@given(guarantees, st.integers(1, 40))
def test_a_multiple_is_a_repeated_sum(one, times):
    product, total = one * times, reduce(add, [one] * times)
    assert product.renyi == pytest.approx(total.renyi, rel=1e-9)
    assert (product.pure, product.failure) == (total.pure, total.failure)
    assert (product.gaussian is None) == (total.gaussian is None)
    if product.gaussian is not None:
        assert product.gaussian == pytest.approx(total.gaussian, rel=1e-9)


@brief
@given(guarantees, guarantees, deltas)
def test_more_is_never_cheaper(one, more, delta):
    together = one + more
    assert together.epsilon(delta) >= one.epsilon(delta)
    assert together.epsilon(0) >= one.epsilon(0)
    assert together.delta(1) >= one.delta(1)
    assert all(after >= before for after, before in zip(together.renyi, one.renyi, strict=True))


@brief
@given(guarantees, deltas, deltas)
def test_epsilon_is_positive_and_falls_as_delta_grows(one, first, second):
    low, high = sorted((first, second))
    assert 0 <= one.epsilon(high) <= one.epsilon(low) <= one.epsilon(0)


@brief
@given(guarantees, parameters, parameters)
def test_delta_is_a_probability_and_falls_as_epsilon_grows(one, first, second):
    low, high = sorted((first, second))
    assert 0 <= one.delta(high) <= one.delta(low) <= 1


@brief
@given(guarantees, deltas)
def test_the_delta_of_the_epsilon_of_delta_is_within_delta(one, delta):
    epsilon = one.epsilon(delta)
    if epsilon < math.inf:
        # Each conversion is raised by its slack: 1e-12 of terms that reach (4096 - 1) epsilon.
        assert one.delta(epsilon) <= delta * (1 + 1e-6 + 1e-8 * epsilon) + 1e-300


@brief
@given(guarantees, parameters)
def test_the_epsilon_of_the_delta_of_epsilon_is_within_epsilon(one, epsilon):
    delta = one.delta(epsilon)
    if float(one.failure) < delta < 0.9:
        assert one.epsilon(delta) <= epsilon * (1 + 1e-9) + 1e-9


@brief
@given(guarantees)
def test_divergences_increase_with_the_order_up_to_pure(one):
    top = one.at(math.inf)
    for before, after in zip(one.renyi, [*one.renyi[1:], top], strict=True):
        assert before <= after * (1 + 1e-11)


@brief
@given(parameters, deltas)
def test_bounded_range_is_below_pure_and_pure_below_half_a_square(eta, delta):
    ranged, pure = Guarantee.of_bounded_range(eta, neighbours=RELATION), Guarantee.of_pure(eta, neighbours=RELATION)
    squared = Guarantee.of_zcdp(Fraction(repr(eta)) ** 2 / 2, neighbours=RELATION)
    assert ranged.epsilon(delta) <= pure.epsilon(delta) <= min(eta, squared.epsilon(delta)) * (1 + 1e-11)


@brief
@given(shifts, positives(1e-2, 1e9))
def test_laplace_noise_is_never_worse_than_randomized_response(shift, scale):
    found = Guarantee.of_laplace(shift, scale=scale, neighbours=RELATION)
    pure = Guarantee.of_pure(found.pure, neighbours=RELATION)
    assert all(value <= cap for value, cap in zip(found.renyi, pure.renyi, strict=True))


@brief
@given(shifts, st.integers(1, 10**6), positives(1e-2, 1e6))
def test_moving_one_coordinate_further_costs_at_least_moving_two(first, second, scale):
    both = Guarantee.of_laplace(first + second, scale=scale, neighbours=RELATION)
    apart = [Guarantee.of_laplace(shift, scale=scale, neighbours=RELATION) for shift in (first, second)]
    assert all(a + b <= c * (1 + 1e-11) for a, b, c in zip(apart[0].renyi, apart[1].renyi, both.renyi, strict=True))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(-30, 30), min_size=1, max_size=6).filter(any), positives(0.1, 100))
def test_every_integer_vector_is_covered_by_its_own_l1_and_l2_norms(vector, scale):
    squared, length = sum(m * m for m in vector), sum(map(abs, vector))
    found = Guarantee.of_product_laplace(squared, l1=length, scale=scale, dimension=len(vector), neighbours=RELATION)
    coordinates = [Guarantee.of_laplace(abs(m), scale=scale, neighbours=RELATION) for m in vector]
    exact = reduce(add, coordinates)
    assert found.pure == exact.pure
    assert all(truth <= bound * (1 + 1e-11) for truth, bound in zip(exact.renyi, found.renyi, strict=True))


masses = st.lists(st.floats(1e-6, 1), min_size=2, max_size=5)


def normal(weights):
    return [weight / math.fsum(weights) for weight in weights]


@settings(max_examples=300, deadline=None)
@given(masses.flatmap(lambda p: st.tuples(st.just(p), st.lists(st.floats(1e-6, 1), min_size=len(p), max_size=len(p)))))
def test_no_pair_of_laws_beats_the_conversion_of_its_own_divergence(pair):
    p, q = map(normal, pair)
    for order in (1.25, 2.0, 5.0, 22.0):
        divergence = math.log(math.fsum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True))) / (order - 1)
        divergence = max(0.0, divergence)
        for epsilon in (0, 0.1, 1, 3):
            truth = math.fsum(max(0.0, a - math.exp(epsilon) * b) for a, b in zip(p, q, strict=True))
            assert truth <= renyi_to_delta(order, divergence, epsilon) + 1e-12


def test_some_pair_of_laws_attains_the_conversion():
    """So a smaller constant would be caught: one output of likelihood ratio c a/(a-1), the rest impossible under P."""
    order, epsilon = 5.0, 1.0
    ratio = math.exp(epsilon) * order / (order - 1)
    p, q = [1.0, 0.0], [1 / ratio, 1 - 1 / ratio]
    divergence = math.log(p[0] ** order * q[0] ** (1 - order)) / (order - 1)
    truth = p[0] - math.exp(epsilon) * q[0]
    assert truth == pytest.approx(renyi_to_delta(order, divergence, epsilon), rel=1e-9)
    assert renyi_to_epsilon(order, divergence, truth) == pytest.approx(epsilon, rel=1e-9)


@brief
@given(positives(1e-4, 50), positives(1e-30, 0.5), st.sampled_from(ORDERS))
def test_a_sum_of_zcdp_charges_within_the_cap_keeps_the_budget(epsilon, delta, order):
    chosen = choose_order(Budget(epsilon, delta))
    if chosen is None:
        assert all(renyi_cap(each, epsilon=epsilon, delta=delta) <= 0 for each in ORDERS)
        return
    best, cap = chosen
    assert renyi_to_epsilon(best, cap, delta) <= epsilon * (1 + 1e-9) + 1e-10
    assert cap / best >= renyi_cap(order, epsilon=epsilon, delta=delta) / order


@brief
@given(positives(1e-9, 1e4), positives(1e-200, 0.5))
def test_the_gaussian_conversions_are_inverse_to_each_other(mu, delta):
    epsilon = gaussian_to_epsilon(mu, delta)
    assert gaussian_to_delta(mu, epsilon) <= delta * (1 + 1e-6)
    if epsilon > 0:
        assert gaussian_to_delta(mu, Fraction(epsilon) * Fraction("0.9999")) > delta
