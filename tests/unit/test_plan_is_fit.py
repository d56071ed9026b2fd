"""A plan prints the list that a fit chooses from, and marks what the fit takes."""

from __future__ import annotations

import numpy as np
import pytest

import discreet as dp
from discreet import method
from discreet.erm.solvers import ALIAS
from discreet.estimators import linear, location, rules
from discreet.method import Method
from discreet.pac.rules import Thresholds

BUDGET = {"epsilon": 1, "delta": 1e-6}
SIZE = 3000
ROWS = np.random.default_rng(0).integers(0, 256, (SIZE, 2))
BITS = (ROWS[:, :1] >> np.arange(6)) & 1
LABELS = (ROWS[:, 0] < 128).astype(int)
NUMBER = dp.Number(0, 255, step=1)
DOMAIN = dp.Domain(x=NUMBER, z=NUMBER, y=dp.Category(0, 1))


@pytest.fixture
def chosen_from(monkeypatch):
    """The lists that fits choose from, in order."""
    lists = []

    def choose(methods, *arguments, **named):
        lists.append(methods)
        return method.choose(methods, *arguments, **named)

    for module in (linear, location, rules):
        monkeypatch.setattr(module, "choose", choose)
    return lists


NUMBERS = {"bounds": (0, 255), "step": 1, "classes": (0, 1)}
RULES = {
    "box": (dp.BoxClassifier(**BUDGET, **NUMBERS), ROWS, {"d": 2, "bits": 8}),
    "conjunction": (dp.ConjunctionClassifier(**BUDGET, k=2, classes=(0, 1)), BITS, {"d": 6, "k": 2}),
    "rule": (
        dp.RuleClassifier(**BUDGET, k=2, cuts=5, **NUMBERS),
        ROWS,
        {"conditions": Thresholds(("x", "z"), 5).size(DOMAIN), "k": 2},
    ),
    "finite": (
        dp.FiniteClassClassifier(**BUDGET, hypotheses="columns", classes=(0, 1)),
        BITS,
        {"hypotheses": 6},
    ),
}


@pytest.mark.parametrize("kind", RULES)
def test_a_plan_for_rules_is_the_list_that_a_fit_chooses_from(kind, chosen_from):
    estimator, rows, numbers = RULES[kind]
    fitted = estimator.fit(rows, LABELS)
    planned = {row.method: row for row in dp.plan(kind, budget=dp.Budget(1, 1e-6), size=SIZE, **numbers).rows}
    (listed,) = chosen_from
    assert set(planned) == set(listed.names)
    assert fitted.method_ in planned
    for each in listed:
        assert isinstance(each, Method), each
        assert planned[each.name].alpha == each.promise(SIZE).bound


VALUES = ROWS[:, 0] / 255
MODELS = {
    "mean": (dp.Mean(**BUDGET, bounds=(0, 1)), (VALUES,), {}),
    "median": (dp.Median(**BUDGET, bounds=(0, 1), step=2.0**-20), (VALUES,), {}),
    "quantile": (dp.Quantile(0.9, **BUDGET, bounds=(0, 1), step=2.0**-20), (VALUES,), {"percent": 90}),
    "linear": (dp.LinearRegression(**BUDGET, row_norm=1, target_bound=1), (ROWS / 255, VALUES), {"d": 2}),
    "logistic": (dp.LogisticRegression(**BUDGET, row_norm=1, classes=(0, 1)), (ROWS / 255, LABELS), {"d": 2}),
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_plan_for_a_model_is_the_list_that_a_fit_chooses_from_and_marks_what_it_takes(kind, chosen_from):
    estimator, data, numbers = MODELS[kind]
    fitted = estimator.fit(*data)
    planned = dp.plan(kind, budget=dp.Budget(1, 1e-6), size=SIZE, **numbers)
    (listed,) = chosen_from
    hidden = {ALIAS} if kind in ("linear", "logistic") else {ALIAS, "descent"}
    assert {row.method for row in planned.rows} == set(listed.names) - hidden
    assert planned.taken.method == fitted.method_
    assert planned.taken.error == pytest.approx(fitted.promise_.bound, rel=0.01)


def test_a_method_that_is_named_is_the_only_one_that_is_calibrated(chosen_from):
    dp.BoxClassifier(**BUDGET, **NUMBERS, method="basic").fit(ROWS, LABELS)
    (listed,) = chosen_from
    assert list(listed._made) == ["basic"]


def test_an_interior_point_is_planned_by_the_methods_that_find_it():
    values = [int(each) for each in ROWS[:, 0]]
    planned = {row.method: row for row in dp.plan("interior", budget=dp.Budget(1, 1e-6), size=SIZE, bits=8).rows}
    for name in (*planned, "auto"):
        point = dp.interior_point(values, bits=8, method=name, **BUDGET)
        assert planned[point.method].needed == point.needed
    assert point.needed == min(planned[name].needed for name in ("exponential", "binary-search", "prefix"))
