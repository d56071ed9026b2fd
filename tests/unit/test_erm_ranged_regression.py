"""Regression in a released range: the range does not change the price, nor a wide declaration the model."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.core import Budget, Funds
from discreet.erm.feasible_sets import Ball
from discreet.erm.features import Declared, VectorColumn
from discreet.erm.losses import CentredHuber, Huber, RangedHuber, Squared
from discreet.erm.nonprivate import minimiser, risk_value
from discreet.erm.ranged import RangedRegression, _digits, promise, propose_target
from discreet.erm.risk import Risk
from discreet.erm.solvers import settled
from discreet.errors import NothingFits, ParameterError
from discreet.mechanisms import RankQuantile
from discreet.rng import Rng, SeededRng

RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, (3000, 3)) / np.sqrt(3)
Y = 20 + X @ [3.0, -2.0, 1.0] + RNG.normal(size=3000) / 2
FUNDS = Funds.of(Budget(1, 1e-6))


def rows(low=15, high=25, x=X, y=Y, **more):
    target = dp.Number(low, high, step=Fraction(high - low, 2**20))
    return dp.Matrix(x, y, features=dp.Vector(x.shape[1], norm=1), target=target, **more)


def risk(low=15, high=25):
    middle, half = Fraction(low + high, 2), Fraction(high - low, 2)
    return Risk(CentredHuber(half / 4, middle), VectorColumn("x"), "y", Ball(half))


def proposed(low=15, high=25, funds=FUNDS, **more):
    return propose_target(risk(low, high), settled, facts=rows(low, high, **more).facts, funds=funds)


def determination(found, x=X, y=Y):
    predicted = found[0] + x @ found[1:-1] + found[-1] / 2
    return 1 - np.mean((y - predicted) ** 2) / np.var(y)


@pytest.mark.parametrize("bounds", [(15, 25), (-2000, 3000)])
def test_the_model_is_as_good_however_wide_the_target_is_declared(bounds):
    assert determination(proposed(*bounds).run(rows(*bounds), SeededRng(1))) > 0.75


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("budget", [Budget(1, 1e-6), Budget(1)], ids=["Renyi", "pure"])
def test_the_price_is_within_the_funds_and_the_same_for_every_range(budget, relation):
    more = {"neighbours": relation} | ({"size": 3000} if relation == "add-remove" else {})
    found, facts = proposed(funds=Funds.of(budget), **more), rows(**more).facts
    assert Funds.of(budget).admits(found.guarantee(facts))
    inner = found.inner
    for low, high in ((15, 25), (-(10**6), 10**6), (20, Fraction(2001, 100))):
        moved = replace(inner, risk=replace(inner.risk, loss=replace(inner.risk.loss, low=low, high=high)))
        assert moved.guarantee(facts) == inner.guarantee(facts)
    assert found.guarantee(facts) == found.median.guarantee(facts) + found.distance.guarantee(facts) + (
        inner.guarantee(facts)
    )


def test_the_distances_of_rows_from_the_median_are_classes_by_their_binary_digits():
    codes = np.array([0, 5, 90, 99, 100, 101, 103, 104, 160, 1000])
    table = dp.Table({"y": codes}, dp.Domain(y=dp.Number(0, 1023, step=1)))
    found = table.exact_sum(lambda batch: _digits("y", 100, 0, 10, batch))
    expected = [0] * 11
    for code in codes:
        expected[int(abs(code - 100)).bit_length()] += 1
    assert found.tolist() == expected
    cut = table.exact_sum(lambda batch: _digits("y", 100, 4, 10, batch))
    assert cut.tolist() == [sum(expected[:5]), *expected[5:]]


def test_no_rows_and_equal_rows_are_released_like_any():
    empty = rows(x=np.zeros((0, 3)), y=np.zeros(0), neighbours="add-remove", size=3000)
    found = propose_target(risk(), settled, facts=empty.facts, funds=FUNDS)
    assert found.run(empty, SeededRng(1)).shape == (5,)
    equal = rows(x=np.zeros((3000, 3)), y=np.full(3000, 20.0))
    assert abs(proposed().run(equal, SeededRng(2))[0] - 20) < 0.1


def test_what_is_promised_holds_in_the_range_that_is_released():
    found, data = proposed(), rows()
    bound = promise(found, data.facts)
    assert "range" in str(bound)
    ball = float(found.inner.risk.feasible.ball)
    vectors, excess = np.column_stack([X, np.full(len(X), 0.5)]), []
    for _ in range(5):
        released = found.run(data, Rng())
        # The range is at most the declared one, for which 1 is 5 in the target's units: excess there is largest.
        loss, y = Huber(5 * found.inner.risk.loss.threshold), Y - released[0]
        best = minimiser(loss, vectors, y, Ball(5 * ball)).w
        excess.append(risk_value(loss, vectors, y, released[1:]) - risk_value(loss, vectors, y, best))
    assert np.mean(excess) <= float(bound)


def test_few_people_are_refused_and_so_is_what_needs_another_method():
    facts = rows().facts
    with pytest.raises(NothingFits, match="too few people"):
        proposed(x=X[:100], y=Y[:100])
    no_intercept = replace(risk(), features=VectorColumn("x", False))
    with pytest.raises(ParameterError, match="intercept"):
        propose_target(no_intercept, settled, facts=facts, funds=FUNDS)
    with pytest.raises(ParameterError, match="Huber"):
        propose_target(replace(risk(), loss=Squared()), settled, facts=facts, funds=FUNDS)
    found = proposed()
    with pytest.raises(ParameterError, match="of one target"):
        RangedRegression(RankQuantile("x", "1/2", 1), found.distance, found.inner)
    with pytest.raises(ParameterError, match="low must be below high"):
        RangedHuber(1, 2, 2)


def test_a_narrow_range_is_never_longer_than_the_declared_one():
    ends = np.where(np.arange(3000) % 2 == 0, 15.0, 25.0)  # half of the people at each end: the distance is all
    found = proposed().run(rows(y=ends), SeededRng(3))
    assert 15 <= found[0] <= 25
    assert np.abs(found[1:]).max() < 50


# What the estimator takes.


def linear(low, high, size=3000, **more):
    given = {"epsilon": 1, "delta": 1e-6, "row_norm": 1, "target_bound": (low, high), **more}
    return dp.LinearRegression(**given).fit(X[:size], Y[:size])


def score(model):
    return 1 - np.mean((Y - model.predict(X)) ** 2) / np.var(Y)


def test_auto_releases_a_range_unless_threshold_or_radius_are_given():
    assert linear(15, 25).method_ == "ranged"
    assert score(linear(-2000, 3000)) > 0.7
    for given in ({"huber": 1}, {"radius": 3}, {"fit_intercept": False}):
        assert linear(15, 25, **given).method_ == "objective"
    assert linear(15, 25, huber=None).method_ == "moments"


def test_where_noise_dominates_the_model_is_a_constant_and_hardly_worse_than_the_best_one():
    model = linear(-100, 140, size=300, epsilon=0.1, delta=0)
    assert model.method_ == "constant"
    assert not model.coef_.any()
    constants = [linear(-20, 60, size=400, epsilon="0.2", delta=0).intercept_ for _ in range(5)]
    assert abs(np.median(constants) - np.median(Y)) < 2
    assert "median" in model.promise_.reason


@pytest.mark.parametrize(("delta", "method"), [(0, "ranged"), (1e-6, "scaled")])
def test_a_table_gives_the_same_model_as_arrays(delta, method):
    same = [f"same{place}" for place in range(12 if delta else 0)]  # with many columns Gaussian noise is not longer
    columns = {f"x{i}": X[:, i] for i in range(3)} | {"y": Y} | {name: np.full(len(Y), "u") for name in same}
    number = dp.Number(-1, 1, step=Fraction(1, 2**15))
    domain = dp.Domain(x0=number, x1=number, x2=number, y=dp.Number(0, 400, step=Fraction(1, 1000)))
    domain = dp.Domain(**dict(domain.items()), **{name: dp.Category("u", "v") for name in same})
    table = dp.Table(columns, domain, name="made up")
    ledger = dp.Ledger.in_memory(dp.Budget(2, delta), table)
    model = dp.LinearRegression(epsilon=2, delta=delta, ledger=ledger).fit(table, "y")
    assert model.method_ == method
    assert 1 - np.mean((Y - model.predict(columns)) ** 2) / np.var(Y) > 0.6
    assert model.original_coef_[:3] == pytest.approx([3, -2, 1], abs=1)
    assert isinstance(model.mechanism_.inner.risk.features, Declared)
    assert "released first" in str(model.promise_) or model.promise_.bound is None


def test_a_plan_has_the_same_method_and_promise():
    plan = dp.plan("linear", budget=dp.Budget(1, 1e-6), size=3000, d=3)
    row = next(row for row in plan.rows if row.method == "ranged")
    model = linear(-1, 1)
    assert row.error == pytest.approx(model.promise_.bound, rel=0.05)
    assert "ranged" not in {row.method for row in dp.plan("logistic", budget=dp.Budget(1), size=3000, d=3).rows}
    with pytest.raises(ParameterError):
        dp.LogisticRegression(epsilon=1, row_norm=1, classes=(0, 1), method="ranged").fit(X, Y > 20)


def test_targets_are_cut_fifteen_thresholds_from_the_middle_of_a_range():
    """The solver's slopes are certain to 2^-45 of the steepest only for targets that are no further off."""
    loss, domain = RangedHuber(Fraction(1, 4), 0, 1), dp.Domain(y=dp.Number(-(10**9), 10**9, step=1))
    codes = np.array([0, 10**9, 10**9 + 1, 2 * 10**9])
    assert loss.target_values(domain, "y", codes).tolist() == [-3.75, -1.0, 1.0, 3.75]
    assert loss.target_bound(domain, "y") == Fraction(15, 4)
