"""Choosing a solver, and plans for learners: public numbers in, promises out, nothing spent."""

from __future__ import annotations

import pytest

import discreet as dp
from discreet.erm.choose import SOLVERS, choose, offers
from discreet.erm.features import Constant, VectorColumn
from discreet.erm.losses import Absolute, Logistic, Squared
from discreet.erm.risk import Risk
from discreet.erm.sets import Ball, interval

BUDGET = dp.Budget(1, "1e-6")


def facts(domain: dp.Domain, size: int = 5000) -> dp.Facts:
    return dp.Facts(domain, dp.Neighbours("replace-one"), size)


LOGISTIC = Risk(Logistic("1/2"), VectorColumn(), "y", Ball(10)), dp.Domain(x=dp.Vector(8, norm=1), y=dp.Category(0, 1))
LINEAR = (
    Risk(Squared(), VectorColumn(), "y", Ball(2)),
    dp.Domain(x=dp.Vector(8, norm=1), y=dp.Number(-1, 1, step="0.01")),
)
MEDIAN = Risk(Absolute(), Constant(), "y", interval(0, 1)), dp.Domain(y=dp.Number(0, 1, step="0.001"))


@pytest.mark.parametrize("problem", [LOGISTIC, LINEAR, MEDIAN], ids=["logistic", "linear", "median"])
@pytest.mark.parametrize("delta", ["1e-6", 0])
def test_auto_takes_the_smallest_promise_of_the_contenders(problem, delta):
    risk, domain = problem
    known = facts(domain)
    admits = dp.within(dp.Budget(1, delta), facts=known)
    taken = choose(risk, facts=known, admits=admits)
    others = offers(risk, facts=known, admits=admits, solvers=("descent", "exponential", "output"))
    assert float(taken.promise) == min(float(each.promise) for each in others if each.promise is not None)
    assert admits(taken.mechanism)


def test_a_solver_that_does_not_apply_says_why():
    risk, domain = MEDIAN
    known = facts(domain)
    refused = {each.solver: each.refusal for each in offers(risk, facts=known, admits=dp.within(BUDGET, facts=known))}
    assert "smooth" in refused["output"]
    risk, domain = LOGISTIC
    (grid,) = offers(risk, facts=facts(domain), admits=dp.within(BUDGET, facts=facts(domain)), solvers=("exponential",))
    assert "dimensions" in grid.refusal


def test_an_unknown_solver_is_named():
    risk, domain = LOGISTIC
    known = facts(domain)
    with pytest.raises(dp.ParameterError, match="solver must be one of auto, descent"):
        choose(risk, facts=known, admits=dp.within(BUDGET, facts=known), solver="newton")


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [("logistic", {"d": 5}), ("linear", {"d": 5}), ("mean", {}), ("median", {}), ("quantile", {"percent": 90})],
)
def test_a_plan_for_a_learner_shows_every_solver_with_its_theorem_or_its_refusal(kind, numbers):
    found = dp.plan(kind, budget=BUDGET, size=20_000, **numbers)
    assert {"exponential", "output", "gaussian", "laplace", "coordinate-laplace"} <= {row.method for row in found.rows}
    for row in found.rows:
        assert (row.error is None) == bool(row.refusal)
        assert row.error is None or row.theorem
    promised = [row.error for row in found.rows if row.error is not None]
    assert promised == sorted(promised)
    assert "in expectation" in str(found)
    assert len(promised) >= 2


def test_theorem_3_beats_the_lectures_first_version_and_gauss_beats_both():
    promised = {row.method: row.error for row in dp.plan("logistic", budget=BUDGET, size=20_000, d=50).rows}
    assert promised["accelerated"] < promised["gaussian"] < promised["laplace"] < promised["coordinate-laplace"]


@pytest.mark.slow
def test_the_needed_size_keeps_the_promise_and_little_less_does_not():
    row = next(row for row in dp.plan("linear", budget=BUDGET, alpha=0.2, d=3).rows if row.method == "accelerated")
    at = [
        next(r for r in dp.plan("linear", budget=BUDGET, size=size, d=3).rows if r.method == "accelerated").error
        for size in (row.needed, int(row.needed * 0.95))
    ]
    assert at[0] <= 0.2 < at[1]


def test_a_plan_for_a_learner_needs_a_size_or_an_accuracy():
    with pytest.raises(dp.ParameterError, match="size=, or alpha="):
        dp.plan("mean", budget=BUDGET)


def test_the_names_of_the_solvers_are_those_of_the_documentation():
    assert set(SOLVERS) == {
        *("descent", "accelerated", "average", "last", "strongly-convex"),
        *("gaussian", "laplace", "coordinate-laplace", "exponential", "output"),
    }


@pytest.mark.parametrize("kind", ["mean", "median"])
def test_a_plan_finds_small_sizes_too(kind):
    rows = {row.method: row.needed for row in dp.plan(kind, budget=dp.Budget(1), size=1000, alpha=0.2).rows}
    assert 1 < rows["exponential"] < 1000
    assert 1 < rows[{"mean": "laplace", "median": "rank"}[kind]] < 1000


def test_for_a_mean_the_names_of_noises_are_noisy_sums_as_the_estimator_takes_them():
    rows = {row.method: row for row in dp.plan("mean", budget=BUDGET, size=1000).rows}
    for name, kind in (("laplace", dp.Laplace), ("gaussian", dp.Gaussian)):
        fitted = dp.Mean(epsilon=1, delta=1e-6, bounds=(0, 1), solver=name).fit([0.5] * 1000)
        assert isinstance(rows[name].mechanism, kind)
        assert rows[name].error == pytest.approx(fitted.bound_.excess, rel=0.02)  # which a ledger prices at one order


def test_a_quantile_is_planned_by_its_percentage():
    low, high = (
        {row.method: row.error for row in dp.plan("quantile", budget=BUDGET, size=5000, percent=percent).rows}
        for percent in (50, 99)
    )
    median = {row.method: row.error for row in dp.plan("median", budget=BUDGET, size=5000).rows}
    assert low["rank"] == pytest.approx(median["rank"] / 2)  # the pinball loss of the median is half of |u|
    assert high["gaussian"] > low["gaussian"]  # a steeper loss
    with pytest.raises(dp.ParameterError, match="between 1 and 99"):
        dp.plan("quantile", budget=BUDGET, size=5000, percent=100)


def test_a_network_is_private_and_no_bound_is_proved():
    (row,) = dp.plan("network", budget=BUDGET, size=5000, d=10).rows
    assert "no bound" in row.refusal
    assert "steps" in row.refusal
    assert row.mechanism.guarantee(facts(dp.Domain(x=dp.Vector(10, norm=1), y=dp.Category(0, 1)))).within(BUDGET)
    assert "No method" not in str(dp.plan("network", budget=BUDGET, d=10))
