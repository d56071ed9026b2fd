"""What each mechanism's docstring says, beyond privacy: scales, ranges, windows, shapes and calibration."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.audit.laws import Setting, law
from discreet.funds import Caps
from discreet.guarantee import Neighbours
from discreet.rng import SeededRng

DOMAIN = dp.Domain(v=dp.Category("a", "b"), x=dp.Number(0, 10, step="0.5"))
TABLE = dp.Table({"v": ["a", "b", "a"], "x": [0.5, 2, 10]}, DOMAIN)
BUDGET = dp.Budget(1, 1e-6)


def vector_facts(dimension: int) -> dp.data.Facts:
    return dp.data.Facts(dp.Domain(x=dp.Vector(dimension, norm=1)), Neighbours("add-remove"), None)


def needed_scale(kind, dimension: int, budget: dp.Budget) -> float:
    facts = vector_facts(dimension)
    return float(
        dp.calibrate(lambda s: kind(dp.mechanisms.VectorSum("x"), s), funds=dp.Funds.of(budget), facts=facts).scale
    )


def test_lecture_10s_three_ways_grow_like_d_and_sqrt_d_and_not_at_all():
    pure = dp.Budget(1)
    option_a = [needed_scale(dp.mechanisms.CoordinateLaplace, d, pure) for d in (4, 64)]
    option_b = [needed_scale(dp.mechanisms.CoordinateLaplace, d, BUDGET) for d in (64, 1024)]
    theorem_3 = [needed_scale(dp.mechanisms.ProductLaplace, d, BUDGET) for d in (64, 1024)]
    gaussian = [needed_scale(dp.Gaussian, d, BUDGET) for d in (64, 1024)]
    assert option_a[1] / option_a[0] == pytest.approx(16, rel=1e-3)
    assert option_b[1] / option_b[0] == pytest.approx(4, rel=0.05)
    assert theorem_3[1] / theorem_3[0] == pytest.approx(1, rel=0.05)
    assert gaussian[1] / gaussian[0] == pytest.approx(1, rel=1e-3)
    # At one d: the three differ by sqrt d each; theorem 3's constant is 1/sqrt(2 rho), rho from the tight conversion.
    assert option_b[1] / theorem_3[1] == pytest.approx(math.sqrt(1024), rel=0.05)
    assert theorem_3[1] == pytest.approx(1 / math.sqrt(2 * 0.02436), rel=0.05)


@pytest.mark.parametrize("kind", [dp.Laplace, dp.Gaussian])
@pytest.mark.parametrize("scale", [Fraction(1, 3), 1, Fraction(5, 2)])
@pytest.mark.parametrize("probability", [0.5, 0.95, 0.999])
def test_the_noise_range_holds_its_probability(kind, scale, probability):
    setting = Setting(dp.Domain(v=dp.Category("a", "b")), Neighbours("replace-one"))
    mechanism = kind(dp.Count(dp.Equals("v", "a")), scale)
    found = law(mechanism, [{"v": "b"}], setting, reach=60)
    width = mechanism.noise_range(probability, setting.facts([{"v": "b"}]))
    inside = sum(p for value, p in found.mass.items() if abs(value) <= width)
    assert inside >= probability - 1e-12
    narrower = sum(p for value, p in found.mass.items() if abs(value) <= width - (1 if kind is dp.Laplace else 3))
    assert narrower < probability  # and it is not wider than it must be (a Gaussian's is a bound, up to two steps)


def test_a_sum_is_released_in_the_units_of_its_column():
    got = dp.Laplace(dp.Sum("x"), 5).run(TABLE, SeededRng(1))
    assert isinstance(got, float)
    assert (got * 2).is_integer()
    assert dp.Laplace(dp.Sum("x"), 5).noise_range(0.95, TABLE.facts) % 0.5 == 0


def test_shapes_are_those_of_the_query():
    assert isinstance(dp.Gaussian(dp.Count(), 3).run(TABLE, SeededRng(1)), int)
    counts = dp.Laplace(dp.Histogram(("v", "x")), 3).run(TABLE, SeededRng(1))
    assert counts.shape == (2, 21)
    assert counts.dtype == np.int64


@pytest.mark.parametrize(
    "make",
    [
        lambda noise: dp.Laplace(dp.Count(dp.Equals("v", "a")), noise),
        lambda noise: dp.Gaussian(dp.Histogram("v"), noise),
        lambda noise: dp.mechanisms.ProductLaplace(dp.Histogram(("v", "x")), noise),
        lambda noise: dp.Exponential(dp.Histogram("v"), 1 / noise),
        lambda noise: dp.mechanisms.AboveThreshold(noise, 2 * noise),
    ],
)
@pytest.mark.parametrize("budget", [dp.Budget(1, 1e-6), dp.Budget("0.01", 1e-9), dp.Budget(20, 1e-6)])
def test_calibrate_is_within_the_budget_and_tight(make, budget):
    funds = dp.Funds.of(budget)
    found = dp.calibrate(make, funds=funds, facts=TABLE.facts)
    assert funds.admits(found.guarantee(TABLE.facts))
    noise = next(getattr(found, name) for name in ("scale", "threshold_scale", "rate") if hasattr(found, name))
    noise = 1 / noise if hasattr(found, "rate") else noise
    assert make(noise) == found
    assert not funds.admits(make(noise * (1 - Fraction(1, 2**19))).guarantee(TABLE.facts))


def test_calibrate_says_when_no_noise_is_enough():
    with pytest.raises(dp.errors.ParameterError, match="no amount of noise"):
        dp.calibrate(
            lambda noise: dp.Gaussian(dp.Count(dp.Equals("v", "a")), noise),
            funds=dp.Funds(None, Caps(None, 0, 0)),
            facts=TABLE.facts,
        )
    pure = dp.Funds.of(dp.Budget(1))
    with pytest.raises(dp.errors.ParameterError, match="no amount of noise"):
        dp.calibrate(lambda noise: dp.Gaussian(dp.Count(dp.Equals("v", "a")), noise), funds=pure, facts=TABLE.facts)


def test_calibrate_to_what_a_ledger_has_left_spends_it_all():
    ledger = dp.Ledger.in_memory(BUDGET, TABLE)
    last = dp.calibrate(
        lambda s: dp.Gaussian(dp.Count(dp.Equals("v", "a")), s), funds=ledger.funds(), facts=TABLE.facts
    )
    dp.release(last, TABLE, ledger=ledger)
    assert not ledger.admits(last)
    left = ledger.remaining()
    assert left.renyi < left.caps.renyi * 1e-5


def test_the_one_sided_threshold_has_half_the_window():
    one_sided, laplace = dp.mechanisms.AboveThreshold(100, 200), dp.mechanisms.AboveThresholdLaplace(100, 200)
    ratio = laplace.window(0.05, questions=1000) / one_sided.window(0.05, questions=1000)
    assert 1.9 < ratio < 2.4


def test_a_threshold_answers_within_its_window():
    """A "no" means value < threshold + z_bound, over 400 conversations at beta = 0.05."""
    conversation, rng = dp.mechanisms.AboveThreshold(3, 6), SeededRng(9)
    ask = dp.mechanisms.IsAbove(dp.Count(dp.Equals("v", "a")), 2 - conversation.z_bound(0.05))  # the count is 2
    wrong = 0
    for _ in range(400):
        state = conversation.begin(TABLE, rng)
        wrong += not conversation.step(state, ask, TABLE, rng)[1]
    assert wrong <= 400 * 0.05 + 5 * math.sqrt(400 * 0.05)


def test_a_stable_histogram_has_the_least_bound_and_never_shows_an_empty_bin():
    facts = TABLE.facts
    mechanism = dp.mechanisms.StableHistogram.of(dp.mechanisms.KeyCount("v"), epsilon=1, delta=1e-6, facts=facts)
    smaller = dp.mechanisms.StableHistogram(mechanism.keys, mechanism.scale, mechanism.bound - 1)
    assert mechanism.guarantee(facts).failure <= Fraction(1, 10**6) < smaller.guarantee(facts).failure
    assert mechanism.guarantee(facts).pure == 1
    crowd = dp.Table({"v": ["a"] * 200, "x": [1] * 200}, DOMAIN)
    shown = mechanism.run(crowd, SeededRng(1))
    assert [label for label, _ in shown] == [("a",)]
    assert dp.mechanisms.StableMode(mechanism).run(crowd, SeededRng(1)) == ("a",)
    assert dp.mechanisms.StableMode(mechanism).run(TABLE, SeededRng(1)) is None


def test_known_values_of_the_stable_bound():
    facts = dp.data.Facts(DOMAIN, Neighbours("add-remove"), None)
    bounds = [
        dp.mechanisms.StableHistogram.of(dp.mechanisms.KeyCount("v"), epsilon=epsilon, delta=1e-6, facts=facts).bound
        for epsilon in (1, 0.5, 0.1)
    ]
    assert bounds == [14, 25, 109]


def test_a_plan_reads_no_data_and_its_numbers_are_the_mechanisms_own():
    found = dp.plan("count", budget=dp.Budget(1), size=1000, alpha=0.01)
    laplace = next(row for row in found.rows if row.method == "Laplace")
    assert laplace.noise == pytest.approx(1, rel=1e-5)
    assert laplace.error == laplace.mechanism.noise_range(0.95, dp.data.Facts(DOMAIN, Neighbours("replace-one"), 1000))
    assert laplace.alpha == laplace.error / 1000
    assert laplace.needed == math.ceil(laplace.error / 0.01)
    gaussian = next(row for row in found.rows if row.method == "Gaussian")
    assert gaussian.error is None
    assert "delta > 0" in gaussian.refusal
    assert "Laplace" in str(found)


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [
        ("histogram", {"cells": 100}),
        ("vector", {"d": 50}),
        ("select", {"candidates": 1000}),
        ("threshold", {"questions": 99}),
    ],
)
def test_every_kind_of_plan_has_rows_sorted_by_error(kind, numbers):
    rows = dp.plan(kind, budget=BUDGET, neighbours="add-remove", **numbers).rows
    errors = [row.error for row in rows]
    assert len(rows) >= 2
    assert errors == sorted(errors)
