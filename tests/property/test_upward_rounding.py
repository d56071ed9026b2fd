"""Every float that prices a release is on the safe side of the true number: compared with mpmath, with no tolerance.

The points are random but seeded: a rounding that is left out shows on about half of them, so on many of a few hundred.
"""

from __future__ import annotations

import functools
import math
import random
from dataclasses import replace
from fractions import Fraction

import mpmath
import pytest

from discreet.data import Domain, Facts, Number
from discreet.guarantee import (
    ORDERS,
    Guarantee,
    Neighbours,
    float_up,
    gaussian_to_delta,
    gaussian_to_epsilon,
    renyi_cap,
    renyi_to_delta,
    renyi_to_epsilon,
)
from discreet.mechanisms import StableHistogram
from discreet.query import KeyCount

RELATION = "add-remove"
POINTS = 200
CLOSE = 4e-12  # a bound is above the truth, and not further than its stated slack (1e-12) and its roundings


@pytest.fixture(autouse=True)
def _precise():
    with mpmath.workprec(300):
        yield


def true(value):
    """The exact number that a float, an int or a Fraction is."""
    found = Fraction(value)
    return mpmath.mpf(found.numerator) / found.denominator


def spread(draw, low, high):
    """A decimal, evenly spread over its orders of magnitude."""
    return Fraction(repr(math.exp(draw.uniform(math.log(low), math.log(high)))))


def laplace_truth(order, shift, scale):
    """The Renyi divergence of discrete Laplace noise from itself moved by `shift`, as docs/proofs states it."""
    a, q = true(order), mpmath.exp(-1 / scale)
    r = q ** (2 * a - 1)
    leading = (1 - q * r) / ((1 + q) * (1 - r))
    moved = leading * mpmath.exp((a - 1) * shift / scale) + (1 - leading) * mpmath.exp(-a * shift / scale)
    return min(shift / scale, mpmath.log(moved) / (a - 1))


def pure_truth(order, epsilon):
    """The same for randomized response: at most epsilon, to which it comes nearer than these digits tell."""
    a = true(order)
    moved = (mpmath.exp(a * epsilon) + mpmath.exp((1 - a) * epsilon)) / (1 + mpmath.exp(epsilon))
    return min(epsilon, mpmath.log(moved) / (a - 1))


def assert_just_above(found: Guarantee, truth, draw, *, orders: int = 5):
    """At some orders the curve is at or above the truth, and hardly above it."""
    for order in draw.sample(ORDERS, orders):
        value, exactly = found.at(order), truth(order)
        if found.pure is not None and value == float_up(found.pure):  # stands for an exact number: read as its decimal
            assert Fraction(repr(value)) >= found.pure
            assert true(found.pure) >= exactly
        else:
            assert true(value) >= exactly
        assert true(value) <= exactly * (1 + CLOSE) + true(2.0**-1021)


# Curves.


def test_the_curve_of_laplace_noise_is_never_below_the_truth():
    draw = random.Random(1)
    for _ in range(POINTS):
        shift, scale = int(spread(draw, 1, 1e6)), spread(draw, 1e-2, 1e9)

        assert_just_above(
            Guarantee.of_laplace(shift, scale=scale, neighbours=RELATION),
            functools.partial(laplace_truth, shift=true(shift), scale=true(scale)),
            draw,
        )


def test_the_curve_of_product_laplace_noise_is_never_below_the_truth():
    draw = random.Random(2)
    for _ in range(POINTS):
        l1, scale, dimension = int(spread(draw, 1, 1e5)), spread(draw, 1e-1, 1e8), draw.randint(1, 200)
        squared = draw.randint(l1, l1 * l1)  # of integers: |d|_1 <= |d|_2^2 <= |d|_1^2
        parts = min(dimension, l1, squared)

        each = mpmath.sqrt(true(squared) / parts)

        def truth(order, *, parts, each, l1, scale):
            return min(parts * laplace_truth(order, each, scale), laplace_truth(order, l1, scale))

        assert_just_above(
            Guarantee.of_product_laplace(squared, l1=l1, scale=scale, dimension=dimension, neighbours=RELATION),
            functools.partial(truth, parts=parts, each=each, l1=true(l1), scale=true(scale)),
            draw,
        )


def test_the_curve_of_a_pure_guarantee_is_never_below_the_truth():
    draw = random.Random(3)
    for _ in range(POINTS):
        epsilon = spread(draw, 1e-9, 1e3)
        truth = functools.partial(pure_truth, epsilon=true(epsilon))
        assert_just_above(Guarantee.of_pure(epsilon, neighbours=RELATION), truth, draw)


def test_the_curve_of_zcdp_and_of_bounded_range_is_never_below_the_truth():
    draw = random.Random(4)
    for _ in range(POINTS):
        rate = spread(draw, 1e-12, 1e3)

        def linear(order, *, rho):
            return true(order) * rho

        def capped(order, *, eta):
            return min(true(order) * eta**2 / 8, pure_truth(order, eta))

        zcdp = Guarantee.of_zcdp(rate, neighbours=RELATION)
        bounded = Guarantee.of_bounded_range(rate, neighbours=RELATION)
        assert_just_above(zcdp, functools.partial(linear, rho=true(rate)), draw)
        assert_just_above(bounded, functools.partial(capped, eta=true(rate)), draw)


# Conversions.


def conversions(seed):
    draw = random.Random(seed)
    for _ in range(2 * POINTS):
        delta = spread(draw, 1e-30, 0.9) if draw.random() < 0.9 else 1 - spread(draw, 1e-20, 0.1)
        yield draw.choice(ORDERS), float(spread(draw, 1e-9, 1e2)), spread(draw, 1e-6, 1e2), delta


def test_the_epsilon_of_a_divergence_is_never_below_the_truth():
    above_zero = 0
    for order, value, _, delta in conversions(5):
        a, allowed = true(order), true(delta)
        truth = true(value) + mpmath.log(1 - 1 / a) - (mpmath.log(allowed) + mpmath.log(a)) / (a - 1)
        if true(value) <= 2 * allowed**2:
            truth = mpmath.mpf(0)
        found = true(renyi_to_epsilon(order, value, delta))
        above_zero += found > 0
        assert found >= max(truth, 0)
        assert found <= max(truth, 0) + CLOSE * (true(value) + 20 - mpmath.log(allowed) / (a - 1))
    assert above_zero > POINTS


def test_the_delta_of_a_divergence_is_never_below_the_truth():
    below_one = 0
    for order, value, epsilon, _ in conversions(6):
        a, promised = true(order), true(epsilon)
        converted = mpmath.exp((a - 1) * (true(value) - promised)) * (1 - 1 / a) ** a / (a - 1)
        truth = min(mpmath.mpf(1), mpmath.sqrt(true(value) / 2), converted)
        found = true(renyi_to_delta(order, value, epsilon))
        below_one += found < 1
        assert found >= truth
        assert found <= truth * (1 + CLOSE * (10 + (a - 1) * (true(value) + promised))) + true(2.0**-1000)
    assert below_one > POINTS


def test_the_cap_of_a_book_is_never_above_the_truth():
    for order, _, epsilon, delta in conversions(7):
        a, promised, allowed = true(order), true(epsilon), true(delta)
        truth = promised + (mpmath.log(allowed) + mpmath.log(a - 1) - a * mpmath.log(1 - 1 / a)) / (a - 1)
        found = true(renyi_cap(order, epsilon=epsilon, delta=delta))
        assert found <= truth
        assert found >= truth - CLOSE * (promised + 20 - mpmath.log(allowed) / (a - 1))


def test_the_conversions_of_a_gaussian_are_never_below_the_truth():
    draw = random.Random(8)

    def profile(mu, epsilon):
        return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)

    for _ in range(POINTS):
        mu, epsilon, delta = float(spread(draw, 1e-2, 8)), spread(draw, 1e-3, 10), spread(draw, 1e-15, 0.3)
        assert true(gaussian_to_delta(mu, epsilon)) >= profile(true(mu), true(epsilon))
        assert profile(true(mu), true(gaussian_to_epsilon(mu, delta))) <= true(delta)


# Composition.


def test_sums_and_products_of_guarantees_are_never_below_those_of_their_exact_values():
    draw = random.Random(9)
    for _ in range(POINTS):
        one, other = (Guarantee.of_zcdp(spread(draw, 1e-9, 10), neighbours=RELATION) for _ in range(2))
        times = draw.randint(2, 10**6)
        total, multiple = one + other, one * times
        for left, right, both, many in zip(one.renyi, other.renyi, total.renyi, multiple.renyi, strict=True):
            assert Fraction(both) >= Fraction(left) + Fraction(right)
            assert Fraction(both) <= (Fraction(left) + Fraction(right)) * (1 + Fraction(1, 2**51))
            assert Fraction(many) >= Fraction(left) * times
            assert Fraction(many) <= Fraction(left) * times * (1 + Fraction(1, 2**51))


def test_sums_and_products_of_gaussians_are_never_below_those_of_their_exact_values():
    draw = random.Random(10)
    for _ in range(2 * POINTS):
        one, other = (Guarantee.of_gaussian(spread(draw, 1e-6, 10), neighbours=RELATION) for _ in range(2))
        times = draw.randint(2, 10**6)
        squares = Fraction(one.gaussian) ** 2 + Fraction(other.gaussian) ** 2
        assert Fraction((one + other).gaussian) ** 2 >= squares
        assert Fraction((one * times).gaussian) ** 2 >= times * Fraction(one.gaussian) ** 2


def test_the_rounding_of_the_root_in_a_product_of_gaussians_is_covered():
    """The root of `times` just above a power of two, the product just below one: its last rounding is the smallest."""
    draw, nothing = random.Random(13), Guarantee.nothing(RELATION)
    for _ in range(10 * POINTS):
        times = 4 ** draw.randint(2, 9) + draw.randint(1, 12)
        mu = draw.uniform(1.95, 2) * 2 ** draw.randint(-9, 3) / math.sqrt(times)
        assert Fraction((replace(nothing, gaussian=mu) * times).gaussian) ** 2 >= times * Fraction(mu) ** 2


def test_a_float_that_stands_for_an_exact_number_is_read_as_at_least_that_number():
    draw = random.Random(11)
    for _ in range(5 * POINTS):
        value = Fraction(draw.randint(1, 10**30), draw.randint(1, 10**30))
        assert value <= Fraction(repr(float_up(value))) <= value * (1 + Fraction(1, 2**51))


# The failure of a stable histogram.


def failure_truth(scale, bound, rows):
    """The mass of the outermost `rows` atoms of one side: c q^bound (q^-rows - 1) / (q^-1 - 1)."""
    q = mpmath.exp(-1 / true(scale))
    c = (1 - q) / (1 + q - 2 * q ** (bound + 1))
    return c * q**bound * (q**-rows - 1) / (1 / q - 1)


def stable(scale, bound):
    return StableHistogram(KeyCount("v"), scale, bound)


def facts(kind, rows):
    return Facts(Domain(v=Number(0, 9, step=1)), Neighbours(kind, rows), 10 if kind == "replace-one" else None)


def stable_points():
    draw = random.Random(12)
    for scale in (Fraction(1, 10), 1, Fraction(7, 3), 10**8, 10**12, 10**15):
        for bound in (1, 2, 100, 10**9, 10**16):
            yield Fraction(scale), bound, 1
    for _ in range(POINTS):
        scale = spread(draw, 1e-1, 1e15)
        bound = min(10**16, max(1, int(scale * spread(draw, 1e-3, 600))))
        yield scale, bound, min(bound, int(spread(draw, 1, 1e3)))


@pytest.mark.parametrize("kind", ["add-remove", "replace-one"])
def test_the_failure_of_a_stable_histogram_is_at_least_the_truth_and_within_a_hundred_millionth_of_it(kind):
    blocks = 2 if kind == "replace-one" else 1
    for scale, bound, rows in stable_points():
        charged = stable(scale, bound).guarantee(facts(kind, rows)).failure
        truth = blocks * failure_truth(scale, bound, rows)
        assert charged > 0
        assert true(charged) >= truth
        assert true(charged) <= truth * (1 + true(Fraction(1, 10**8))) + true(Fraction(3, 10**290))


def test_the_formula_of_the_failure_is_the_mass_of_the_outermost_atoms():
    for scale, bound, rows in ((Fraction(1, 2), 3, 1), (Fraction(7, 3), 9, 4), (Fraction(50), 6, 6)):
        weight = {x: mpmath.exp(-abs(x) / true(scale)) for x in range(-bound, bound + 1)}
        shown = mpmath.fsum(weight[x] for x in weight if x + rows > bound) / mpmath.fsum(weight.values())
        assert mpmath.almosteq(failure_truth(scale, bound, rows), shown, rel_eps=mpmath.mpf(2) ** -250)


@pytest.mark.parametrize("kind", ["add-remove", "replace-one"])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**14), Fraction(1, 10**6), Fraction(1, 10), 4])
@pytest.mark.parametrize("delta", [Fraction(1, 10**3), Fraction(1, 10**9), Fraction(1, 10**250)])
def test_the_chosen_bound_keeps_delta_and_one_less_would_not(kind, rows, epsilon, delta):
    found = StableHistogram.of(KeyCount("v"), epsilon=epsilon, delta=delta, facts=facts(kind, rows))
    blocks = 2 if kind == "replace-one" else 1
    assert blocks * failure_truth(found.scale, found.bound, rows) <= true(delta)
    assert found.guarantee(facts(kind, rows)).failure <= delta
    if found.bound > rows:
        slack = 1 + true(Fraction(1, 10**8))
        assert blocks * failure_truth(found.scale, found.bound - 1, rows) * slack > true(delta)


@pytest.mark.parametrize(
    ("scale", "bound"), [(Fraction(1, 2), 5), (2, 30), (Fraction(40), 9), (10**3, 10**4), (10**15, 10**16)]
)
@pytest.mark.parametrize("beta", [Fraction(1, 3), Fraction(1, 20), Fraction(1, 1000), Fraction(1, 10**9)])
def test_the_certain_count_is_the_least_whose_bin_is_missed_with_at_most_beta(scale, bound, beta):
    """A bin of count n is missed when n + X <= bound: X is among the 2 bound + 1 - n outermost atoms."""
    count = stable(scale, bound).certain_count(beta)
    assert bound + 1 <= count <= 2 * bound + 1

    def missed(n):
        return failure_truth(scale, bound, 2 * bound + 1 - n)

    assert missed(count) <= true(beta)
    if count > bound + 1:
        assert missed(count - 1) * (1 + true(Fraction(1, 10**8))) > true(beta)
