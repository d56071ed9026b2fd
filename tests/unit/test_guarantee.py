"""Guarantees: what each constructor promises, what sums promise, and that every number is an upper bound."""

import itertools
import math
import os
import pickle
import subprocess
import sys
from fractions import Fraction

import mpmath
import pytest

from discreet.errors import ParameterError
from discreet.guarantee import (
    ORDERS,
    SLACK,
    Budget,
    Guarantee,
    Neighbours,
    choose_order,
    float_up,
    gaussian_to_delta,
    gaussian_to_epsilon,
    renyi_cap,
    renyi_to_delta,
    renyi_to_epsilon,
)
from discreet.records import record, revive

ONE = "replace-one"
mpmath.mp.dps = 60


def pure(epsilon):
    return Guarantee.of_pure(epsilon, neighbours=ONE)


def response_curve(order, epsilon):
    """The Renyi divergence of randomized response, to many digits."""
    a, e = mpmath.mpf(order), mpmath.mpf(repr(epsilon))
    with mpmath.workdps(80):
        return mpmath.log((mpmath.exp(a * e) + mpmath.exp((1 - a) * e)) / (1 + mpmath.exp(e))) / (a - 1)


def is_just_above(found, truth, slack=3 * SLACK):
    return truth <= found <= truth * (1 + slack) + sys.float_info.min


# The relation and the budget


def test_the_grid_of_orders_never_changes():
    high = [72, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 768, 1024, 1536, 2048, 4096]
    assert list(ORDERS) == [1.25, 1.5, 1.75, *range(2, 65), *high]


@pytest.mark.parametrize("kind", ["replace-one", "add-remove"])
def test_a_relation_is_made_from_its_name_or_from_itself(kind):
    relation = Neighbours.of(kind)
    assert relation == Neighbours(kind, 1) == Neighbours.of(relation)
    assert relation.replace_one == (kind == "replace-one")


@pytest.mark.parametrize(("kind", "rows"), [("replace", 1), ("", 1), (None, 1), ("add-remove", 0), ("add-remove", 1.5)])
def test_an_unknown_relation_is_refused(kind, rows):
    with pytest.raises(ParameterError):
        Neighbours(kind, rows)


def test_a_budget_reads_floats_as_the_decimals_that_were_typed():
    assert Budget(0.1, 1e-6) == Budget(Fraction(1, 10), Fraction(1, 10**6)) == Budget("1/10", "1e-6")


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0, 0), (-1, 0), (math.inf, 0), (math.nan, 0), (1, 1), (1, -0.1), (None, 0), (True, 0)]
)
def test_a_budget_that_means_nothing_is_refused(epsilon, delta):
    with pytest.raises(ParameterError):
        Budget(epsilon, delta)


@pytest.mark.parametrize("value", [Neighbours("add-remove", 3), Budget(0.3, 1e-9)])
def test_relations_and_budgets_come_back_from_their_records(value):
    assert revive(record(value), {"neighbours/1": Neighbours, "budget/1": Budget}) == value


def test_a_guarantee_survives_pickling_and_hides_its_long_curve_from_repr():
    one = pure(0.1)
    assert pickle.loads(pickle.dumps(one)) == one
    assert len(repr(one)) < 200


# Pure


def test_ten_charges_of_a_tenth_fill_a_budget_of_one_and_eleven_do_not():
    assert (pure(0.1) * 10).pure == 1
    assert (pure(0.1) * 10).within(Budget(1))
    assert not (pure(0.1) * 11).within(Budget(1))


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.7, 1.1, 1e-12, 1e6, 123.456])
def test_the_epsilon_of_a_pure_guarantee_is_the_decimal_that_was_typed(epsilon):
    assert pure(epsilon).epsilon(0) == epsilon
    assert pure(epsilon).within(Budget(epsilon))
    assert pure(epsilon).at(math.inf) == epsilon


def test_a_third_is_rounded_up():
    assert Fraction(repr(pure(Fraction(1, 3)).epsilon(0))) > Fraction(1, 3)
    assert float_up(Fraction(1, 10**400)) > 0
    assert float_up(Fraction(10**400)) == math.inf


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 0.01, 0.5, 1, 3, 10, 50, 1000, 1e6])
def test_the_curve_of_a_pure_guarantee_is_that_of_randomized_response(epsilon):
    for order, value in zip(ORDERS, pure(epsilon).renyi, strict=True):
        assert is_just_above(value, response_curve(order, epsilon)) or value == epsilon


def test_an_epsilon_too_small_to_square_still_costs_something():
    assert all(value > 0 for value in pure(1e-200).renyi)


def test_epsilon_zero_is_nothing():
    nothing = Guarantee.nothing(ONE)
    assert pure(0) == nothing == Guarantee.of_zcdp(0, neighbours=ONE) == Guarantee.of_gaussian(0, neighbours=ONE)
    assert Guarantee.of_laplace(0, scale=1, neighbours=ONE) == nothing
    assert Guarantee.of_product_laplace(0, l1=0, scale=1, dimension=3, neighbours=ONE) == nothing
    assert nothing.epsilon(0) == 0
    assert nothing.delta(0) == 0


# Other constructors


def test_bounded_range_costs_a_quarter_of_pure_zcdp_and_never_more_than_pure():
    for eta in (1e-3, 0.5, 2, 100):
        ranged, flat = Guarantee.of_bounded_range(eta, neighbours=ONE), pure(eta)
        assert ranged.pure == flat.pure
        for order, value, cap in zip(ORDERS, ranged.renyi, flat.renyi, strict=True):
            assert value == pytest.approx(min(order * eta**2 / 8, cap), rel=1e-11)


def test_zcdp_is_linear_in_the_order_and_has_no_pure_guarantee():
    found = Guarantee.of_zcdp(0.5, neighbours=ONE)
    assert found.pure is None
    assert found.epsilon(0) == math.inf
    assert all(is_just_above(value, order / 2) for order, value in zip(ORDERS, found.renyi, strict=True))


def test_an_approximate_guarantee_is_pure_outside_its_failure():
    found = Guarantee.of_approximate(0.5, delta=1e-6, neighbours=ONE)
    assert (found.failure, found.pure, found.renyi) == (Fraction(1, 10**6), Fraction(1, 2), pure(0.5).renyi)
    assert found.epsilon(0) == found.epsilon(9.99e-7) == math.inf
    assert found.epsilon(1e-6) == 0.5
    assert found.delta(0.5) == 1e-6
    assert (found * 3).failure == Fraction(3, 10**6)


def test_a_failure_is_taken_from_delta_before_the_conversion():
    clean = Guarantee.of_zcdp(0.02, neighbours=ONE)
    failing = clean + Guarantee.of_approximate(0, delta=1e-6, neighbours=ONE)
    assert failing.epsilon(2e-6) == clean.epsilon(1e-6)
    assert failing.delta(1) == pytest.approx(clean.delta(1) + 1e-6, rel=1e-12)


def test_failures_that_add_to_one_promise_nothing():
    found = Guarantee.of_approximate(0.5, delta=0.5, neighbours=ONE) * 2
    assert found.delta(100) == 1
    assert found.epsilon(0.999) == math.inf


def test_a_curve_that_is_not_a_curve_is_refused():
    with pytest.raises(ParameterError, match="Renyi curve"):
        Guarantee.of_curve(lambda order: math.nan, neighbours=ONE).at(2)
    with pytest.raises(ParameterError, match="Renyi curve"):
        Guarantee(Neighbours(ONE), (-1.0,) * len(ORDERS), None)
    with pytest.raises(ParameterError, match="Renyi curve"):
        Guarantee(Neighbours(ONE), (1.0,), None)
    with pytest.raises(ParameterError, match="gaussian"):
        Guarantee(Neighbours(ONE), (0.0,) * len(ORDERS), None, gaussian=-1.0)
    with pytest.raises(ParameterError, match="pure"):
        Guarantee(Neighbours(ONE), (0.0,) * len(ORDERS), -1)


def test_a_curve_is_computed_at_the_orders_that_are_asked_for_and_each_once():
    asked = []
    one = Guarantee.of_curve(lambda order: asked.append(order) or order, neighbours=ONE)
    together = (one + one) * 3
    assert asked == []
    assert together.at(2) >= 12
    assert together.at(2) == ((one + one) * 3).at(2)
    assert asked == [2.0]


def test_a_long_sum_of_curves_and_a_pickled_one_have_the_values_of_their_parts():
    one = Guarantee.of_laplace(1, scale=3, neighbours=ONE)
    total = one
    for _ in range(5000):
        total = total + one
    assert total.at(8) == pytest.approx(5001 * one.at(8))
    again = pickle.loads(pickle.dumps(total))
    assert again == total
    assert hash(again) == hash(total)
    assert isinstance(again.renyi, tuple)


def test_a_curve_may_be_infinite_at_some_orders():
    found = Guarantee.of_curve(lambda order: order * 0.01 if order < 20 else math.inf, neighbours=ONE)
    assert found.at(64) == math.inf
    assert found.epsilon(1e-6) == min(renyi_to_epsilon(a, found.at(a), 1e-6) for a in ORDERS if a < 20)


@pytest.mark.parametrize("order", [1, 2.5, 65, 8192, math.nan])
def test_only_orders_of_the_grid_have_a_book(order):
    with pytest.raises(ParameterError, match="ORDERS"):
        pure(1).at(order)


# Sums


def test_values_for_different_relations_cannot_be_added():
    for other in ("add-remove", Neighbours(ONE, 2)):
        with pytest.raises(ParameterError, match=r"not comparable and cannot be converted in Renyi currency"):
            pure(1) + Guarantee.of_pure(1, neighbours=other)


def test_only_guarantees_can_be_added_and_only_whole_numbers_multiply():
    with pytest.raises(TypeError):
        pure(1) + 1
    for times in (-1, 0.5, "many"):
        with pytest.raises(ParameterError):
            pure(1) * times


def test_nothing_is_neutral_and_zero_times_anything_is_nothing():
    for found in (pure(0.3), Guarantee.of_gaussian(0.3, neighbours=ONE), Guarantee.of_zcdp(1, neighbours=ONE)):
        assert found + Guarantee.nothing(ONE) == found == Guarantee.nothing(ONE) + found == found * 1 == 1 * found
        assert found * 0 == Guarantee.nothing(ONE)


def test_gaussians_add_in_squares_and_are_forgotten_beside_anything_else():
    three, four = Guarantee.of_gaussian(0.3, neighbours=ONE), Guarantee.of_gaussian(0.4, neighbours=ONE)
    assert is_just_above((three + four).gaussian, 0.5)
    assert is_just_above((three * 16).gaussian, 1.2)
    assert (three + pure(0.1)).gaussian is None
    assert (three + pure(0.1)).pure is None


def test_the_exact_gaussian_conversion_is_below_the_renyi_one():
    mu = 0.2367
    exact, curve = (
        Guarantee.of_gaussian(mu, neighbours=ONE),
        Guarantee.of_zcdp(Fraction("0.2367") ** 2 / 2, neighbours=ONE),
    )
    assert exact.renyi == curve.renyi
    assert exact.epsilon(1e-6) == pytest.approx(1, abs=1e-4)
    assert curve.epsilon(1e-6) > 1.07


def test_the_gaussian_transcript_of_a_thousand_steps_has_its_known_epsilon():
    steps = Guarantee.of_gaussian(Fraction(1, 50), neighbours=ONE) * 1000
    assert steps.epsilon(1e-6) == pytest.approx(2.92160, abs=1e-5)
    concentrated = Guarantee.of_zcdp(Fraction(1, 5000), neighbours=ONE) * 1000
    assert 3.1310 <= concentrated.epsilon(1e-6) <= 3.1350  # 3.1311 at the best real order


# Discrete Laplace


def moment(order, shift, scale, reach=4000):
    """sum_k P[k]^a P[k - shift]^(1-a), term by term."""
    q, a = mpmath.exp(-1 / mpmath.mpf(scale)), mpmath.mpf(order)
    terms = (q ** (a * abs(k) + (1 - a) * abs(k - shift)) for k in range(-reach, reach))
    return (1 - q) / (1 + q) * mpmath.fsum(terms)


@pytest.mark.parametrize("shift", [1, 2, 7])
@pytest.mark.parametrize("scale", [0.5, 3, 20])
@pytest.mark.parametrize("order", [1.25, 2, 23])
def test_the_discrete_laplace_curve_is_the_sum_of_its_terms(order, shift, scale):
    found = Guarantee.of_laplace(shift, scale=scale, neighbours=ONE)
    assert found.pure == Fraction(shift) / Fraction(repr(scale))
    truth = mpmath.log(moment(order, shift, scale, reach=1500)) / (order - 1)
    assert is_just_above(found.at(order), truth)


def test_discrete_laplace_noise_moved_by_one_is_randomized_response():
    for scale in (0.01, 1, 1000, 10**9):
        found = Guarantee.of_laplace(1, scale=scale, neighbours=ONE)
        assert found.renyi == pytest.approx(pure(Fraction(1) / Fraction(repr(scale))).renyi, rel=1e-12)


def test_a_larger_shift_for_the_same_epsilon_costs_less_than_randomized_response():
    wide = Guarantee.of_laplace(1000, scale=1000, neighbours=ONE)
    assert all(value < cap for value, cap in zip(wide.renyi, pure(1).renyi, strict=True))
    assert wide.at(2) == pytest.approx(math.log(2 / 3 * math.e + math.exp(-2) / 3), rel=1e-6)  # [Mironov17] Prop. 6


def vectors(squared, dimension):
    side = range(math.isqrt(squared) + 1)
    return [v for v in itertools.product(side, repeat=dimension) if 0 < sum(m * m for m in v) <= squared]


@pytest.mark.parametrize("scale", [1, 6])
@pytest.mark.parametrize("order", [1.25, 3, 40])
def test_no_split_of_an_l1_shift_costs_more_than_moving_one_coordinate(order, scale):
    single = {m: mpmath.log(moment(order, m, scale, reach=300)) / (order - 1) for m in range(8)}
    for vector in vectors(49, 3):
        if sum(vector) <= 7:
            together = Guarantee.of_laplace(sum(vector), scale=scale, neighbours=ONE).at(order)
            assert sum(single[m] for m in vector) <= together


@pytest.mark.parametrize("squared", [1, 3, 9, 18])
@pytest.mark.parametrize("scale", [1, 6])
@pytest.mark.parametrize("order", [1.25, 3, 40])
def test_product_laplace_covers_every_integer_vector_within_its_l2_bound(order, scale, squared):
    single = {m: mpmath.log(moment(order, m, scale, reach=300)) / (order - 1) for m in range(5)}
    for dimension in (1, 2, 3):
        inside = vectors(squared, dimension)
        found = Guarantee.of_product_laplace(
            squared, l1=max(map(sum, inside)), scale=scale, dimension=dimension, neighbours=ONE
        )
        worst = max(sum(single[m] for m in vector) for vector in inside)
        assert worst <= found.at(order) <= min(order * squared / (2 * scale**2) * (1 + 2 * SLACK), found.pure)
        if squared == dimension * math.isqrt(squared // dimension) ** 2:
            assert is_just_above(found.at(order), worst)


def test_product_laplace_in_many_dimensions_is_as_many_randomized_responses_as_units_squared():
    found = Guarantee.of_product_laplace(5, l1=5, scale=4, dimension=100, neighbours=ONE)
    assert found.renyi == pytest.approx((pure(0.25) * 5).renyi, rel=1e-11)


def test_product_laplace_is_cheaper_than_its_l1_bound_alone():
    spread = Guarantee.of_product_laplace(100, l1=100, scale=50, dimension=100, neighbours=ONE)
    alone = Guarantee.of_laplace(100, scale=50, neighbours=ONE)
    assert spread.pure == alone.pure == 2
    assert spread.epsilon(1e-6) < 0.6 * alone.epsilon(1e-6)


# Conversions at one order


@pytest.mark.parametrize(
    ("epsilon", "delta", "order", "cap"),
    [
        (0.5, 1e-6, 40, 0.26566),
        (1, 1e-6, 22, 0.53583),
        (2, 1e-6, 12, 1.05696),
        (4, 1e-6, 7, 2.17588),
        (1, 1e-9, 35, 0.52405),
    ],
)
def test_the_order_of_a_ledger_is_the_best_for_zcdp(epsilon, delta, order, cap):
    found = choose_order(Budget(epsilon, delta), failure_share=0)
    assert found == (order, pytest.approx(cap, abs=6e-6))


def test_the_best_order_166_is_not_on_the_grid_and_its_neighbour_is_chosen():
    order, cap = choose_order(Budget(0.1, 1e-6))
    assert order == 160
    assert cap / order == pytest.approx(0.05329 / 166, rel=2e-3)


def test_failures_get_their_share_of_delta():
    assert choose_order(Budget(1, 1e-6), failure_share=0.1) == (22, pytest.approx(0.53081, abs=6e-6))
    assert choose_order(Budget(1, 2e-6), failure_share=0.5) == choose_order(Budget(1, 1e-6))
    with pytest.raises(ParameterError, match="failure_share"):
        choose_order(Budget(1, 1e-6), failure_share=1)


def test_without_delta_or_with_a_tiny_epsilon_there_is_no_renyi_book():
    assert choose_order(Budget(1)) is None
    assert choose_order(Budget(1e-9, 1e-6)) is None


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
def test_the_best_order_admits_the_known_amount_of_zcdp(epsilon, delta, rho):
    order, cap = choose_order(Budget(epsilon, delta))
    assert cap / order == pytest.approx(rho, rel=3e-3)
    assert Guarantee.of_zcdp(cap / order * (1 - 1e-9), neighbours=ONE).within(Budget(epsilon, delta))
    assert not Guarantee.of_zcdp(rho * 1.01, neighbours=ONE).within(Budget(epsilon, delta))


@pytest.mark.parametrize(
    ("order", "epsilon", "delta"),
    [
        (22, 1, 1e-6),
        (4096, 1, 1e-6),
        (4096, 0.5, 1e-12),
        (1.25, 30, 0.3),
        (2, 30, 0.3),
        (4096, 30, 0.3),
        (64, 20, 1e-300),
    ],
)
def test_cap_epsilon_and_delta_are_inverse_to_each_other(order, epsilon, delta):
    cap = renyi_cap(order, epsilon=epsilon, delta=delta)
    assert cap > 0
    assert renyi_to_epsilon(order, cap, delta) == pytest.approx(epsilon, rel=1e-9)
    assert renyi_to_epsilon(order, cap * (1 - 1e-9), delta) <= epsilon
    assert renyi_to_delta(order, cap, epsilon) == pytest.approx(delta, rel=1e-6)


def test_a_divergence_below_pinsker_needs_no_epsilon():
    assert renyi_to_epsilon(2, 1.9e-12, 1e-6) == 0 < renyi_to_epsilon(2, 2.1e-12, 1e-6)
    assert renyi_to_delta(2, 2e-12, 0) == pytest.approx(1e-6)


@pytest.mark.parametrize("delta", [0, 1, -1, 2])
def test_no_conversion_without_a_probability(delta):
    with pytest.raises(ParameterError, match="delta"):
        renyi_to_epsilon(2, 1.0, delta)


def test_a_delta_of_one_or_more_is_refused():
    with pytest.raises(ParameterError, match="delta"):
        pure(1).epsilon(1)


# The exact Gaussian


def gaussian_delta(mu, epsilon):
    with mpmath.workdps(400):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


@pytest.mark.parametrize("mu", [1e-9, 1e-6, 9.9e-6, 1.1e-5, 1e-3, 0.2367, 1, 5, 60, 1e3])
@pytest.mark.parametrize("delta", [0.4, 1e-3, 1e-6, 1e-15, 1e-100, 1e-300])
def test_the_gaussian_epsilon_keeps_its_delta_and_a_smaller_one_would_not(mu, delta):
    epsilon = gaussian_to_epsilon(mu, delta)
    assert gaussian_delta(mu, epsilon) <= delta
    if epsilon > 0:
        assert gaussian_delta(mu, epsilon * (1 - 1e-8)) > delta


@pytest.mark.parametrize("mu", [1e-9, 1e-5, 0.01, 1, 10])
@pytest.mark.parametrize("steps", [0, 0.5, 1, 5, 30])
def test_the_gaussian_delta_is_just_above_the_truth(mu, steps):
    epsilon = steps * mu
    truth = gaussian_delta(mu, epsilon)
    assert truth <= gaussian_to_delta(mu, Fraction(epsilon)) <= truth * (1 + 1e-7) + sys.float_info.min


def test_a_huge_separation_is_no_numerical_accident():
    assert gaussian_to_epsilon(1e6, 1e-6) == pytest.approx(5e11 + 4.7534243e6, rel=1e-12)
    assert gaussian_to_epsilon(1e200, 1e-6) == math.inf
    assert gaussian_to_delta(1e6, 1) == 1
    assert gaussian_to_delta(1e-300, 1) <= sys.float_info.min * 1.1
    assert gaussian_to_epsilon(1, Fraction(1, 10**4000)) == pytest.approx(math.sqrt(2 * 4000 * math.log(10)), rel=0.01)


# Extremes and lightness


@pytest.mark.parametrize(
    "found",
    [
        pure(10**400),
        pure(Fraction(1, 10**400)),
        Guarantee.of_zcdp(10**305, neighbours=ONE),
        Guarantee.of_zcdp(Fraction(1, 10**320), neighbours=ONE),
        Guarantee.of_gaussian(10**200, neighbours=ONE),
        Guarantee.of_gaussian(Fraction(1, 10**200), neighbours=ONE),
        Guarantee.of_bounded_range(10**200, neighbours=ONE),
        Guarantee.of_laplace(10**30, scale=Fraction(1, 10**30), neighbours=ONE),
        Guarantee.of_laplace(3, scale=10**320, neighbours=ONE),
        Guarantee.of_product_laplace(10**60, l1=10**40, scale=10**20, dimension=10**20, neighbours=ONE),
        pure(1) * 10**400,
    ],
)
def test_extreme_guarantees_still_convert(found):
    for delta in (0, 1e-6, Fraction(1, 10**400)):
        assert found.epsilon(delta) >= 0
    for epsilon in (0, 1, 10**400):
        assert 0 <= found.delta(epsilon) <= 1
    assert (found + found).epsilon(1e-6) >= found.epsilon(1e-6)


def test_importing_and_adding_guarantees_does_not_import_scipy():
    code = (
        "import sys; from discreet.guarantee import Guarantee as G; "
        "(G.of_pure(1, neighbours='add-remove') * 3).epsilon(1e-6); sys.exit('scipy' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


@pytest.mark.parametrize(
    "spelled", ["1e1_000_000_000", "1e\u0669\u0669\u0669\u0669\u0669\u0669\u0669\u0669\u0669", "1e-_9999999"]
)
def test_a_number_with_a_huge_exponent_is_refused_at_once_however_it_is_spelled(spelled):
    with pytest.raises(ParameterError):
        Budget(spelled)
