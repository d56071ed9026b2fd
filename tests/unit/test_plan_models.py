"""Choosing a solver, and plans for learners: public numbers in, promises out, nothing spent."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

import discreet as dp
from discreet.erm.feasible_sets import Ball, interval
from discreet.erm.features import Constant, VectorColumn
from discreet.erm.losses import Absolute, Logistic, Squared
from discreet.erm.risk import Risk
from discreet.erm.solvers import SOLVERS, methods, preferred
from discreet.method import Method, choose

BUDGET = dp.Budget(1, "1e-6")


def facts(domain: dp.Domain, size: int = 5000) -> dp.data.Facts:
    return dp.data.Facts(domain, dp.Neighbours("replace-one"), size)


LOGISTIC = Risk(Logistic("1/2"), VectorColumn(), "y", Ball(10)), dp.Domain(x=dp.Vector(8, norm=1), y=dp.Category(0, 1))
LINEAR = (
    Risk(Squared(), VectorColumn(), "y", Ball(2)),
    dp.Domain(x=dp.Vector(8, norm=1), y=dp.Number(-1, 1, step="0.01")),
)
MEDIAN = Risk(Absolute(), Constant(), "y", interval(0, 1)), dp.Domain(y=dp.Number(0, 1, step="0.001"))


@pytest.mark.parametrize("problem", [LOGISTIC, LINEAR, MEDIAN], ids=["logistic", "linear", "median"])
@pytest.mark.parametrize("delta", ["1e-6", 0])
def test_auto_takes_the_preferred_solver_or_the_smallest_promise_of_the_contenders(problem, delta):
    risk, domain = problem
    known = facts(domain)
    funds = dp.Funds.of(dp.Budget(1, delta))
    listed = methods(risk, known, funds)
    taken = choose(listed, "auto", known.size)
    assert funds.admits(taken.mechanism.guarantee(known))
    if (favourite := preferred(risk, known, funds)) != "descent":
        assert taken.method == favourite
        return
    others = [each for each in map(listed.find, ("descent", "exponential", "output")) if isinstance(each, Method)]
    assert float(taken.promise) == min(float(each.promise(known.size)) for each in others)


def test_a_solver_that_does_not_apply_says_why():
    risk, domain = MEDIAN
    known = facts(domain)
    assert "smooth" in methods(risk, known, dp.Funds.of(BUDGET)).find("output").reason
    risk, domain = LOGISTIC
    assert "dimensions" in methods(risk, facts(domain), dp.Funds.of(BUDGET)).find("exponential").reason


def test_an_unknown_solver_is_named():
    risk, domain = LOGISTIC
    known = facts(domain)
    with pytest.raises(dp.errors.ParameterError, match="method must be one of auto, descent"):
        choose(methods(risk, known, dp.Funds.of(BUDGET)), "newton", known.size)


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
    promised = {row.method: row.error for row in dp.plan("logistic", budget=BUDGET, size=20_000, d=50, radius=10).rows}
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
    with pytest.raises(dp.errors.ParameterError, match="size=, or alpha="):
        dp.plan("mean", budget=BUDGET)


def test_the_names_of_the_solvers_are_those_of_the_documentation():
    assert set(SOLVERS) == {
        *("descent", "accelerated", "average", "last", "strongly-convex"),
        *("gaussian", "laplace", "coordinate-laplace", "exponential", "moments", "objective", "output"),
    }


@pytest.mark.parametrize("kind", ["mean", "median"])
def test_a_plan_finds_small_sizes_too(kind):
    rows = {row.method: row.needed for row in dp.plan(kind, budget=dp.Budget(1), size=1000, alpha=0.2).rows}
    assert 1 < rows["exponential"] < 1000
    assert 1 < rows[{"mean": "laplace", "median": "rank"}[kind]] < 1000


def test_for_a_mean_the_names_of_noises_are_noisy_sums_as_the_estimator_takes_them():
    rows = {row.method: row for row in dp.plan("mean", budget=BUDGET, size=1000).rows}
    for name, kind in (("laplace", dp.Laplace), ("gaussian", dp.Gaussian)):
        fitted = dp.Mean(epsilon=1, delta=1e-6, bounds=(0, 1), method=name).fit([0.5] * 1000)
        assert isinstance(rows[name].mechanism, kind)
        assert rows[name].error == pytest.approx(fitted.promise_.bound, rel=0.02)  # which a ledger prices at one order


def test_a_quantile_is_planned_by_its_percentage():
    low, high = (
        {row.method: row.error for row in dp.plan("quantile", budget=BUDGET, size=5000, percent=percent).rows}
        for percent in (50, 99)
    )
    median = {row.method: row.error for row in dp.plan("median", budget=BUDGET, size=5000).rows}
    assert low["rank"] == pytest.approx(median["rank"] / 2)  # the pinball loss of the median is half of |u|
    assert high["gaussian"] > low["gaussian"]  # a steeper loss
    with pytest.raises(dp.errors.ParameterError, match="between 1 and 99"):
        dp.plan("quantile", budget=BUDGET, size=5000, percent=100)


def test_a_network_is_private_and_no_bound_is_proved():
    (row,) = dp.plan("network", budget=BUDGET, size=5000, d=10).rows
    assert "no bound" in row.refusal
    assert "steps" in row.refusal
    assert row.mechanism.guarantee(facts(dp.Domain(x=dp.Vector(10, norm=1), y=dp.Category(0, 1)))).within(BUDGET)
    without_size = dp.plan("network", budget=BUDGET, d=10)
    assert not without_size.promising
    _, said, *why = without_size.sheet().text(120).splitlines()
    assert said == "No method promises anything here."
    assert why == ["descent: no bound on the risk of a network is proved, for it is not convex; its privacy is"]


# What is planned for declared columns is what is fitted.

DECLARED = dp.Domain(
    age=dp.Number(0, 65, step=1),
    income=dp.Number(0, 30_000, step=500, missing=True),
    sex=dp.Category("F", "M"),
    health=dp.Category("good", "fair", "poor"),
)


@pytest.fixture(scope="module")
def people() -> dp.Table:
    rows = range(3000)
    columns = {
        "age": [each * 7 % 66 for each in rows],
        "income": [None if each % 50 == 0 else each * 500 % 30_000 for each in rows],
        "sex": ["FM"[each % 2] for each in rows],
        "health": [("good", "fair", "poor")[each // 3 % 3] for each in rows],
    }
    return dp.Table(columns, DECLARED, name="people")


FITTED = {
    "two classes": ("logistic", dp.LogisticRegression, "sex", ["age", "health"], {}),
    "a radius": ("logistic", dp.LogisticRegression, "sex", ["age"], {"radius": "2.3"}),
    "three classes": ("logistic", dp.LogisticRegression, "health", ["age", "income"], {}),
    "a line": ("linear", dp.LinearRegression, "age", ["income", "sex", "health"], {}),
    "a short line": ("linear", dp.LinearRegression, "age", ["income"], {"radius": 46, "huber": "6.5"}),
    "a mean": ("mean", dp.Mean, "age", [], {}),
    "a median": ("median", dp.Median, "age", [], {}),
}


@pytest.mark.parametrize("name", FITTED)
@pytest.mark.parametrize("budget", [BUDGET, dp.Budget(1)], ids=["delta", "pure"])
def test_the_plan_marks_the_mechanism_that_the_estimator_takes_unasked(people, name, budget):
    kind, estimator, target, features, shape = FITTED[name]
    ledger = dp.Ledger.in_memory(budget, people)
    about = {"domain": DECLARED, "target": target, "features": features, **shape}
    taken = dp.plan(kind, ledger=ledger, share="1/2", **about).taken
    more = {"features": features} if features else {}
    fitted = estimator(epsilon=dp.Share("1/2"), ledger=ledger, **shape).fit(people, target, **more)
    assert taken.mechanism == fitted.mechanism_
    assert taken.method == fitted.method_
    assert taken.error == fitted.promise_.bound


@pytest.mark.parametrize("share", [None, dp.Share(1)], ids=["either book", "share"])
def test_a_method_of_the_plan_by_its_name_is_the_one_that_is_fitted(people, share):
    ledger = dp.Ledger.in_memory(BUDGET, people)
    planned = dp.plan("logistic", ledger=ledger, share=share, domain=DECLARED, target="sex", features=["age"])
    row = next(row for row in planned.promising if row.method == "exponential")
    estimator = dp.LogisticRegression(epsilon=share, ledger=ledger, method="exponential")
    fitted = estimator.fit(people, "sex", features=["age"])
    assert (row.mechanism, row.error) == (fitted.mechanism_, fitted.promise_.bound)


def test_without_features_all_other_columns_are_planned_for_and_coordinates_are_counted():
    found = dp.plan("logistic", budget=BUDGET, size=3000, domain=DECLARED, target="sex")
    assert found.numbers == (("d", 1 + 2 + 3),)


def test_the_smallest_promise_is_not_always_what_is_taken_and_the_mark_is_shown():
    found = dp.plan("logistic", budget=BUDGET, size=700, d=2, radius=10)
    assert found.rows[0].method == "exponential"
    assert found.taken.method == "descent"
    titles, rows = found.table()
    marked = {row[0]: row[titles.index("fit takes")] for row in rows}
    assert [name for name, mark in marked.items() if mark == "this"] == ["descent"]
    assert "fit takes" not in str(dp.plan("count", budget=BUDGET))


def test_where_nothing_is_promised_the_refused_method_is_marked():
    found = dp.plan("logistic", budget=BUDGET, size=20, d=5)
    assert found.taken.refusal
    assert "descent (fit takes this): the theorem's" in str(found)


def test_without_a_size_what_is_marked_is_taken_at_the_size_that_it_needs():
    found = dp.plan("mean", budget=dp.Budget(1), alpha=0.01)
    assert found.taken.method == "laplace"
    assert found.taken.needed == min(row.needed for row in found.rows if row.needed is not None)


@pytest.mark.slow
def test_without_a_size_a_regression_marks_one_row_too():
    found = dp.plan("logistic", budget=BUDGET, alpha=0.1, d=2, radius=4)
    again = dp.plan("logistic", budget=BUDGET, size=found.taken.needed, d=2, radius=4)
    assert again.taken.method == found.taken.method == "descent"
    assert again.taken.error <= 0.1


def test_a_mean_over_an_unknown_number_of_rows_is_not_promised():
    rows = dp.plan("mean", budget=BUDGET, neighbours=dp.Neighbours("add-remove", 5), size=5000).rows
    refused = {row.method: row.refusal for row in rows}
    assert "may have several" in refused["laplace"]
    assert not any(row.taken for row in rows)


# The radius and the units.


def test_the_radius_is_a_parameter_of_the_promise():
    default, same, short = (
        dp.plan("logistic", budget=BUDGET, size=5912, d=6, **given)
        for given in ({}, {"radius": "64.5"}, {"radius": "3.98"})
    )
    assert (default.rows, default.radius) == (same.rows, Fraction(129, 2))
    assert short.taken.error < 1 / 4
    assert "length at most 3.98" in str(short)
    assert dp.plan("linear", budget=BUDGET, size=590, d=6).radius == 1


def test_units_are_said_and_those_of_a_target_are_a_factor():
    one = dp.plan("linear", budget=BUDGET, size=4000, d=2, radius=1)
    assert "units: of targets in [-1, 1], squared (a miss beyond 0.25 counts linearly)" in str(one)
    assert "of length at most 1" in one.units
    domain = dp.Domain(x=dp.Number(0, 9, step=1), z=dp.Number(0, 9, step=1), age=dp.Number(-65, 65, step=1))
    radius = Fraction(65) / Fraction(1449, 1024)  # the root of two columns, as it is rounded up
    years = dp.plan("linear", budget=BUDGET, size=4000, domain=domain, target="age", radius=radius)
    assert "units: those of age, squared (a miss beyond 16.25 counts linearly)" in str(years)
    assert years.taken.error == pytest.approx(65**2 * one.taken.error, rel=0.01)
    assert "ln 2 = 0.69 where nothing is known" in dp.plan("logistic", budget=BUDGET, size=500, d=2).units
    assert "values lie in [0, 1]" in dp.plan("median", budget=BUDGET, size=500).units
    assert dp.plan("median", budget=BUDGET, size=500, domain=domain, target="age").units == (
        "those of age; errors are per row"
    )
    assert dp.plan("count", budget=BUDGET).units == ""


def test_in_a_targets_own_units_a_wanted_error_is_no_fraction():
    about = {"domain": DECLARED, "target": "age"}
    taken = dp.plan("median", budget=BUDGET, alpha=4, **about).taken
    assert taken.error <= 4
    assert 100 < taken.needed < 1000
    with pytest.raises(dp.errors.ParameterError, match="alpha must lie strictly between 0 and 1"):
        dp.plan("mean", budget=BUDGET, alpha=4)


WRONG = {
    "a radius of a mean": ("mean", {"radius": 3}, "radius= is for linear and logistic"),
    "a radius of a count": ("count", {"radius": 3}, "radius= is for linear and logistic"),
    "no radius": ("linear", {"d": 2, "radius": 0}, "radius must be > 0"),
    "a word": ("linear", {"d": 2, "radius": "wide"}, "radius must be a finite number"),
    "a bend of a margin": ("logistic", {"d": 2, "huber": 1}, "huber= is for linear"),
    "columns of a count": ("count", {"domain": DECLARED, "target": "age"}, "domain= is for mean"),
    "features of a mean": ("mean", {"domain": DECLARED, "target": "age", "features": ["sex"]}, "features= is for"),
    "no target": ("linear", {"domain": DECLARED}, "domain= and target= belong together"),
    "no domain": ("linear", {"target": "age"}, "domain= and target= belong together"),
    "d twice": ("linear", {"domain": DECLARED, "target": "age", "d": 3}, "d= is counted"),
    "a category's line": ("linear", {"domain": DECLARED, "target": "sex"}, "must be a Number with bounds"),
    "a number's classes": ("logistic", {"domain": DECLARED, "target": "age"}, "classes need a Category"),
    "itself": ("linear", {"domain": DECLARED, "target": "age", "features": ["age"]}, "must not contain the target"),
    "no such column": ("linear", {"domain": DECLARED, "target": "age", "features": ["agee"]}, "age"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_a_model_is_planned_for_is_checked(name):
    kind, given, says = WRONG[name]
    with pytest.raises((dp.errors.ParameterError, dp.errors.SchemaError), match=re.escape(says)):
        dp.plan(kind, budget=BUDGET, size=1000, **given)
