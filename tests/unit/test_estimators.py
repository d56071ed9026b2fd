"""The scikit-learn faces: parameters, rows, charges, what is learned; and what they recover when there is no noise."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression as LeastSquares
from sklearn.linear_model import LogisticRegression as MaximumLikelihood
from sklearn.pipeline import make_pipeline

import discreet as dp
from discreet.catalogue import CATALOGUE
from discreet.data import Batch
from discreet.erm.features import STEPS, VectorColumn
from discreet.erm.scoring import LinearRule, ModelRule, RightPredictions, SmallMisses
from discreet.estimators.base import REFUSED
from discreet.estimators.input import Part
from discreet.records import record, revive

NO_NOISE = 10**15  # so large an epsilon that the integer noise is 0, but for a chance far below 1e-6
RNG = np.random.default_rng(20)
X = RNG.choice([-1.0, 1.0], size=(300, 2))
Y = X @ [0.5, -0.25] + 0.3 + RNG.normal(0, 0.1, 300)
LABELS = (RNG.random(300) < 1 / (1 + np.exp(-2 * Y))).astype(int)
THREE = np.digitize(Y + RNG.normal(0, 1, 300), [-0.5, 1])
NORM = 1.5


PLAIN = {"epsilon": 1, "row_norm": NORM, "method": "descent", "max_iter": 5}  # quick to choose, quick to run


def logistic(**changed):
    return dp.LogisticRegression(**{**PLAIN, "classes": (0, 1), **changed})


def linear(**changed):
    return dp.LinearRegression(**{**PLAIN, "target_bound": 2, **changed})


def network(**changed):
    return dp.MLPClassifier(
        **{"hidden_layer_sizes": (3,), "epsilon": 1, "row_norm": NORM, "classes": (0, 1), **changed}
    )


def mean(**changed):
    return dp.Mean(**{"epsilon": 1, "bounds": (-2, 2), **changed})


def quantile(**changed):
    return dp.Quantile(**{"epsilon": 1, "bounds": (-2, 2), **changed})


DOMAIN = dp.Domain(
    age=dp.Number(18, 90, step=1),
    sex=dp.Category("F", "M"),
    pay=dp.Number(0, 100, step="0.01"),
    smoker=dp.Category("no", "yes"),
    height=dp.Number(1, 2, step="0.01", missing=True),
)
AGE = RNG.integers(18, 91, 400)
SEX = RNG.choice(["F", "M"], 400)
PEOPLE = {
    "age": AGE,
    "sex": SEX,
    "pay": np.round(np.clip(AGE * 0.5 + 20 * (SEX == "M") + RNG.normal(0, 5, 400), 0, 100), 2),
    "smoker": np.where(RNG.random(400) < (AGE / 90) ** 2, "yes", "no"),
    "height": [None if place % 7 == 0 else 1.7 for place in range(400)],
}


def table(**declared):
    return dp.Table(PEOPLE, DOMAIN, **{"name": "people", **declared})


def ledger(data=None, budget=None, **more):
    """A ledger in memory for 300 persons in arrays, or for a table."""
    rows = dp.Matrix(X, features=dp.Vector(2, norm=1), name="persons") if data is None else data
    return dp.Ledger.in_memory(budget or dp.Budget(100, 1e-6), rows, **more)


# What is recovered without noise.


def test_no_noise_recovers_least_squares():
    found = linear(epsilon=NO_NOISE, max_iter=400).fit(X, Y)
    wanted = LeastSquares().fit(X, Y)
    assert found.coef_ == pytest.approx(wanted.coef_, abs=1e-3)
    assert found.intercept_ == pytest.approx(wanted.intercept_, abs=1e-3)
    assert found.predict(X) == pytest.approx(wanted.predict(X), abs=2e-3)


def test_no_noise_recovers_least_squares_without_an_intercept():
    found = linear(epsilon=NO_NOISE, max_iter=400, fit_intercept=False, target_bound=(-1, 2)).fit(X, Y)
    assert found.coef_ == pytest.approx(LeastSquares(fit_intercept=False).fit(X, Y).coef_, abs=1e-3)
    assert found.intercept_ == 0


def test_a_target_far_from_zero_is_centred_by_its_declared_bounds():
    found = linear(epsilon=NO_NOISE, max_iter=400, target_bound=(998, 1002)).fit(X, Y + 1000)
    assert found.intercept_ == pytest.approx(LeastSquares().fit(X, Y).intercept_ + 1000, abs=1e-3)


def test_ridge_shrinks_as_its_formula_says():
    found = linear(epsilon=NO_NOISE, max_iter=400, fit_intercept=False, ridge=2).fit(X, Y)
    assert found.coef_ == pytest.approx(np.linalg.solve(X.T @ X / 300 + np.eye(2), X.T @ Y / 300), abs=1e-3)


def test_a_strong_lasso_leaves_no_coefficient():
    assert linear(epsilon=NO_NOISE, max_iter=100, lasso=50).fit(X, Y).coef_ == pytest.approx([0, 0], abs=1e-9)


def test_no_noise_recovers_the_maximum_likelihood_fit():
    found = logistic(epsilon=NO_NOISE, cap=1, radius=5, max_iter=400).fit(X, LABELS)
    wanted = MaximumLikelihood(C=np.inf, tol=1e-10).fit(X, LABELS)
    assert found.coef_ == pytest.approx(wanted.coef_, abs=2e-3)
    assert found.intercept_ == pytest.approx(wanted.intercept_, abs=2e-3)
    assert found.predict_proba(X) == pytest.approx(wanted.predict_proba(X), abs=1e-3)
    assert found.decision_function(X) == pytest.approx(wanted.decision_function(X), abs=5e-3)


def test_no_noise_recovers_the_maximum_likelihood_fit_of_three_classes():
    found = logistic(epsilon=NO_NOISE, classes=(0, 1, 2), radius=5, max_iter=1000).fit(X, THREE)
    wanted = MaximumLikelihood(C=np.inf, tol=1e-10).fit(X, THREE)
    assert found.predict_proba(X) == pytest.approx(wanted.predict_proba(X), abs=5e-3)
    assert found.coef_.shape == (3, 2)


@pytest.mark.parametrize("solver", ["auto", "laplace", "gaussian", "exponential"])
def test_no_noise_recovers_the_mean(solver):
    delta = 1e-6 if solver == "gaussian" else 0
    found = mean(epsilon=NO_NOISE, delta=delta, method=solver).fit(Y)
    assert found.value_ == pytest.approx(Y.mean(), abs=1e-3)


def test_little_noise_nearly_recovers_the_mean_and_the_median_by_descent():
    assert mean(epsilon=1000, method="descent").fit(Y).value_ == pytest.approx(Y.mean(), abs=0.05)
    assert quantile(epsilon=1000, method="descent").fit(Y).value_ == pytest.approx(np.median(Y), abs=0.2)


@pytest.mark.parametrize("solver", ["auto", "rank", "exponential"])
@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_no_noise_recovers_a_quantile(solver, q):
    found = quantile(q=q, epsilon=NO_NOISE, method=solver).fit(Y)
    assert np.quantile(Y, q - 0.004) <= found.value_ <= np.quantile(Y, q + 0.004)


def test_no_noise_recovers_the_median_from_any_kind_of_sequence():
    around = np.quantile(Y, [0.495, 0.505])
    for values in (Y.tolist(), pd.Series(Y), pl.Series("y", Y), pd.DataFrame({"y": Y}), tuple(Y)):
        found = dp.Median(epsilon=NO_NOISE, bounds=(-2, 2)).fit(values)
        assert around[0] <= found.value_ <= around[1]


def test_a_network_learns_what_a_line_cannot():
    corners = RNG.choice([-1.0, 1.0], size=(4000, 2))
    differ = (corners[:, 0] != corners[:, 1]).astype(int)
    found = dp.MLPClassifier((8,), epsilon=100, delta=1e-6, row_norm=NORM, classes=(0, 1)).fit(corners, differ)
    assert found.score(corners, differ) > 0.95
    assert found.decision_function(corners).shape == (4000,)
    assert found.predict_proba(corners).sum(axis=1) == pytest.approx(1)
    hidden = np.tanh(corners @ found.coefs_[0] + found.intercepts_[0])
    margins = hidden @ found.coefs_[1] + found.intercepts_[1]
    assert margins[:, 1] - margins[:, 0] == pytest.approx(found.decision_function(corners))


# What is promised and what it costs.


@pytest.mark.parametrize("make", [logistic, linear, network])
def test_a_fit_without_a_ledger_speaks_of_itself_alone(make):
    found = make().fit(X, LABELS)
    assert str(found.guarantee_).endswith("replace-one: this fit alone")
    assert found.guarantee_.epsilon(0) <= 1
    assert found.guarantee_.epsilon(0) > 0.999
    assert found.entry_ is None


@pytest.mark.parametrize("make", [logistic, linear, network])
def test_delta_is_used_when_it_is_given(make):
    promised = make(delta=1e-6).fit(X, LABELS).guarantee_
    assert 0.99 < promised.epsilon(1e-6) <= 1
    assert promised.epsilon(0) > 1
    assert promised.delta(1) <= 1e-6


@pytest.mark.parametrize("make", [mean, quantile])
def test_a_number_costs_what_was_asked(make):
    assert 0.999 < make().fit(Y).guarantee_.epsilon(0) <= 1


def test_a_ledger_is_charged_once_for_a_fit_and_the_model_knows_its_entry():
    book = ledger()
    found = logistic(ledger=book).fit(X, LABELS)
    charges = [body for body in book.entries() if body["kind"] == "charge"]
    assert [body["seq"] for body in charges] == [found.entry_]
    assert charges[0]["memo"] == "LogisticRegression"
    assert f"entry {found.entry_} of the ledger of 'persons'" in str(found.guarantee_)
    assert book.spent().pure <= 10**9


def test_without_an_epsilon_all_that_is_left_is_spent():
    book = ledger(budget=dp.Budget(1))
    mean(epsilon=Fraction(1, 4), ledger=book).fit(Y)
    found = mean(epsilon=None, ledger=book).fit(Y)
    assert found.guarantee_.epsilon(0) == pytest.approx(0.75, rel=1e-5)
    with pytest.raises(dp.errors.ParameterError, match="nothing is left"):
        mean(epsilon=None, ledger=book).fit(Y)


def test_an_epsilon_that_the_ledger_does_not_have_is_refused_and_costs_nothing():
    book = ledger(budget=dp.Budget(1))
    mean(epsilon="0.9", ledger=book).fit(Y)
    before = book.spent()
    with pytest.raises(dp.BudgetExceeded):
        mean(epsilon="0.2", ledger=book).fit(Y)
    assert book.spent() == before
    mean(epsilon="0.1", ledger=book).fit(Y)


def test_a_fit_may_ask_for_the_whole_budget_of_its_ledger():
    book = ledger(budget=dp.Budget(1, 1e-6))
    assert logistic(epsilon=1, delta=1e-6, ledger=book).fit(X, LABELS).entry_ is not None


def test_with_lasso_auto_takes_the_smallest_promised_excess_and_says_which_solver_it_was():
    with_lasso = {"max_iter": None, "huber": None, "lasso": "1/100"}
    by_hand = {solver: linear(method=solver, **with_lasso).fit(X, Y) for solver in ("descent", "exponential", "output")}
    least = min(by_hand, key=lambda solver: float(by_hand[solver].promise_))
    found = linear(method="auto", **with_lasso).fit(X, Y)
    assert found.method_ == least
    assert found.promise_ == by_hand[least].promise_
    assert found.mechanism_ == by_hand[least].mechanism_


def test_auto_takes_what_learns_best_by_public_numbers():
    assert linear(method="auto", max_iter=None, huber=None).fit(X, Y).method_ == "moments"
    assert linear(method="auto", max_iter=None).fit(X, Y).method_ == "ranged"
    assert linear(method="auto", max_iter=None, radius=3).fit(X, Y).method_ == "objective"
    assert logistic(method="auto", max_iter=None, epsilon=1, delta=0).fit(X, LABELS).method_ == "objective"
    weak, strong = (logistic(method="auto", max_iter=None, epsilon=e, delta=1e-6).fit(X, LABELS) for e in (0.1, 50))
    assert (weak.method_, strong.method_) == ("descent", "objective")
    weakest = logistic(method="auto", max_iter=None, epsilon="0.01", delta=1e-6).fit(X, LABELS)
    assert [float(each.mechanism_.risk.feasible.radius) * NORM for each in (weak, weakest)] == pytest.approx([11, 8])


def test_the_bound_is_a_promise_or_says_why_there_is_none():
    promised = linear(epsilon=100, delta=1e-6, max_iter=None).fit(X, Y).promise_
    assert 0 < float(promised) < 100
    assert "excess risk" in str(promised)
    assert "not convex" in network().fit(X, LABELS).promise_.reason


def test_the_noise_range_of_a_mean_is_that_of_its_noise():
    found = mean(epsilon=2).fit(Y)
    assert found.noise_range_ == pytest.approx(4 / 2 / 300 * np.log(20), rel=0.01)
    assert float(found.promise_) == pytest.approx(2 * (4 / 2 / 300) ** 2, rel=1e-4)
    assert quantile().fit(Y).noise_range_ is None


def test_add_remove_halves_the_noise_on_the_sum_of_a_mean_which_needs_a_size():
    shown, hidden = (mean(method="laplace", **relation).fit(Y) for relation in ({}, ADD_REMOVE))
    assert float(hidden.mechanism_.scale) == pytest.approx(float(shown.mechanism_.scale) / 2, rel=0.01)
    with pytest.raises(dp.errors.ParameterError, match="public size"):
        mean(neighbours="add-remove").fit(Y)


ADD_REMOVE = {"neighbours": "add-remove", "size": 300}


@pytest.mark.parametrize("solver", ["laplace", "gaussian"])
def test_a_sum_divided_by_a_declared_size_promises_nothing_about_a_mean(solver):
    """Right to 1 % the size makes an error of 1 %, thousands of times the noise."""
    found = mean(method=solver, delta=1e-6, **ADD_REMOVE | {"size": 303}).fit(np.ones(300))
    assert found.promise_.bound is None
    assert "number of rows is private" in found.promise_.reason
    assert found.noise_range_ is None


@pytest.mark.parametrize("size", [5_000, 10_100, 30_000])
def test_the_mean_that_add_remove_takes_does_not_depend_on_the_declared_size(size):
    found = mean(epsilon=20, bounds=(0, 1), neighbours="add-remove", size=size).fit(np.full(10_000, 0.75))
    assert found.method_ == "exponential"
    assert found.value_ == pytest.approx(0.75, abs=0.02)  # 0.375 and 1 by a sum divided by the size
    assert found.promise_.per == "declared person"
    assert (found.value_ - 0.75) ** 2 * 10_000 / size <= 25 * float(found.promise_)


def test_a_plan_takes_for_a_mean_what_the_estimator_takes():
    for relation in ("replace-one", "add-remove"):
        for budget in (dp.Budget(1), dp.Budget(1, 1e-6), dp.Budget("1/50", 1e-2)):
            domain = dp.Domain(x=dp.Number(-1, 1, step=Fraction(1, 2**20)))
            planned = dp.plan("mean", budget=budget, size=300, neighbours=relation, domain=domain, target="x")
            given = {"epsilon": budget.epsilon, "delta": budget.delta, "neighbours": relation, "size": 300}
            found = dp.Mean(bounds=(-1, 1), step=Fraction(1, 2**20), **given).fit(np.ones(300))
            assert (planned.taken.method, planned.taken.error) == (found.method_, found.promise_.bound)
    refused = dp.plan("mean", budget=dp.Budget(1, 1e-6), size=300, neighbours="add-remove").refused
    average = dp.plan("average", budget=dp.Budget(1, 1e-6), size=300, neighbours="add-remove")
    assert {"laplace", "gaussian"} <= {row.method for row in refused}  # as of an average
    assert not average.promising


def test_a_quantile_needs_no_public_size_but_promises_nothing_without_one():
    found = quantile(epsilon=NO_NOISE, neighbours="add-remove").fit(Y)
    assert found.value_ == pytest.approx(np.median(Y), abs=0.02)
    assert "private" in found.promise_.reason
    assert float(quantile(epsilon=10, neighbours="add-remove", size=300).fit(Y).promise_) < 4


def test_the_bound_of_a_median_is_about_the_absolute_loss_which_is_twice_the_pinball_loss():
    by_rank, median = quantile(epsilon=10).fit(Y), dp.Median(epsilon=10, bounds=(-2, 2)).fit(Y)
    assert float(median.promise_) == 2 * float(by_rank.promise_)


# Ordinary results.


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        (X, np.zeros(300)),  # one class only
        (np.ones((300, 2)), LABELS),  # constant columns
        (np.zeros((300, 2)), LABELS),
        (X[:1], LABELS[:1]),  # one person
        (X[:3] * 1e300, LABELS[:3]),  # far beyond the norm
    ],
)
@pytest.mark.parametrize("make", [logistic, linear, network])
def test_odd_rows_are_ordinary_results_and_promise_nothing(make, rows, labels):
    found = make(epsilon="0.01").fit(rows, labels)
    assert len(found.predict(rows)) == len(rows)
    assert found.promise_.bound is None
    assert found.promise_.reason


@pytest.mark.parametrize("make", [mean, quantile])
def test_one_person_has_a_mean_and_a_median_too(make):
    found = make().fit([1e300])
    assert -2 <= found.value_ <= 2
    assert found.promise_.bound is None


def test_rows_beyond_the_norm_count_as_their_projection():
    far, near = X * 1000, X / np.sqrt(2) * NORM
    wanted = logistic(epsilon=NO_NOISE).fit(near, LABELS).coef_
    assert logistic(epsilon=NO_NOISE).fit(far, LABELS).coef_ == pytest.approx(wanted, abs=1e-4)


def test_targets_beyond_their_bound_count_as_the_bound():
    wild = np.where(LABELS == 1, 1e9, -1e9)
    wanted = linear(epsilon=NO_NOISE).fit(X, np.where(LABELS == 1, 2, -2)).coef_
    assert linear(epsilon=NO_NOISE).fit(X, wild).coef_ == pytest.approx(wanted, abs=1e-6)


def test_the_last_declared_class_is_the_positive_one():
    words = np.array(["yes", "no"])[LABELS]
    found = logistic(epsilon=NO_NOISE, classes=("yes", "no")).fit(X, words)
    turned = logistic(epsilon=NO_NOISE, classes=("no", "yes")).fit(X, words)
    assert found.classes_.tolist() == ["yes", "no"]
    assert found.coef_ == pytest.approx(-turned.coef_, abs=1e-6)
    assert (found.predict(X) == turned.predict(X)).mean() > 0.99


def test_labels_of_any_kind_come_back_as_they_were():
    for labels in (LABELS.astype(bool), LABELS.astype(float), np.where(LABELS == 1, "a", "b")):
        found = logistic(classes="public").fit(X, labels)
        assert set(found.predict(X)) <= set(labels)
    assert logistic(classes=(False, True)).fit(X, LABELS).predict(X).dtype == bool


# Bad input.

P, V = dp.errors.ParameterError, ValueError
NAN, INFINITE = X.copy(), X.copy()
NAN[3, 1], INFINITE[3, 1] = np.nan, np.inf
CANARY = "zq81"
WORDS = pd.DataFrame({"a": [CANARY] * 300, "b": Y})
BAD = {
    "no epsilon": (lambda book: logistic(epsilon=None).fit(X, LABELS), P, "epsilon must be given"),
    "epsilon negative": (lambda book: logistic(epsilon=-1, ledger=book).fit(X, LABELS), P, "epsilon must be > 0"),
    "epsilon zero": (lambda book: mean(epsilon=0, ledger=book).fit(Y), P, "epsilon must be > 0"),
    "epsilon infinite": (lambda book: linear(epsilon=np.inf, ledger=book).fit(X, Y), P, "finite"),
    "epsilon text": (lambda book: linear(epsilon="much", ledger=book).fit(X, Y), P, "epsilon"),
    "delta negative": (lambda book: logistic(delta=-1e-6, ledger=book).fit(X, LABELS), P, "delta"),
    "delta one": (lambda book: logistic(delta=1, ledger=book).fit(X, LABELS), P, "delta"),
    "delta alone": (lambda book: logistic(epsilon=None, delta=1e-6, ledger=book).fit(X, LABELS), P, "delta goes with"),
    "a path for a ledger": (lambda book: logistic(ledger="people.ledger").fit(X, LABELS), P, "ledger must be a Ledger"),
    "unknown relation": (lambda book: logistic(neighbours="swap", ledger=book).fit(X, LABELS), P, "replace-one"),
    "relation a number": (lambda book: logistic(neighbours=3, ledger=book).fit(X, LABELS), P, "replace-one"),
    "the ledger's relation": (
        lambda book: logistic(neighbours="add-remove", size=300, ledger=book).fit(X, LABELS),
        dp.errors.LedgerMismatch,
        "add-remove",
    ),
    "add-remove without a size": (
        lambda book: logistic(neighbours="add-remove").fit(X, LABELS),
        P,
        "public size",
    ),
    "size of another table": (lambda book: logistic(size=299).fit(X, LABELS), P, "size"),
    "fewer rows than the ledger's": (
        lambda book: logistic(ledger=book).fit(X[:200], LABELS[:200]),
        dp.errors.LedgerMismatch,
        "300 persons",
    ),
    "more rows than the size": (lambda book: logistic(ledger=book, size=200).fit(X, LABELS), P, "size=200"),
    "no norm": (lambda book: logistic(row_norm=None, ledger=book).fit(X, LABELS), P, "row_norm must be given"),
    "norm zero": (lambda book: logistic(row_norm=0, ledger=book).fit(X, LABELS), P, "row_norm must be > 0"),
    "norm nan": (lambda book: logistic(row_norm=np.nan, ledger=book).fit(X, LABELS), P, "row_norm"),
    "no classes": (lambda book: logistic(classes=None, ledger=book).fit(X, LABELS), P, "classes must be declared"),
    "one class": (lambda book: logistic(classes=(0,), ledger=book).fit(X, LABELS), P, "at least two"),
    "classes twice": (lambda book: logistic(classes=(0, 0, 1), ledger=book).fit(X, LABELS), P, "distinct"),
    "classes a word": (lambda book: logistic(classes="all", ledger=book).fit(X, LABELS), P, '"public"'),
    "classes a number": (lambda book: logistic(classes=2, ledger=book).fit(X, LABELS), P, "list of labels"),
    "classes of floats": (lambda book: logistic(classes=(0.5, 1), ledger=book).fit(X, LABELS), P, "whole number"),
    "a label not declared": (lambda book: logistic(classes=(0, 2), ledger=book).fit(X, LABELS), P, "not declared"),
    "labels of another kind": (lambda book: logistic(classes=("0", "1"), ledger=book).fit(X, LABELS), P, "'y' holds"),
    "continuous labels": (lambda book: logistic(classes="public", ledger=book).fit(X, Y), V, "Unknown label type"),
    "no target": (lambda book: linear(ledger=book).fit(X, None), V, "requires y to be passed"),
    "target of text": (lambda book: linear(ledger=book).fit(X, [CANARY] * 300), P, "must hold numbers"),
    "target of objects": (
        lambda book: linear(ledger=book).fit(X, np.array([CANARY] * 300, dtype=object)),
        P,
        "must hold numbers",
    ),
    "target nan": (lambda book: linear(ledger=book).fit(X, np.where(LABELS, np.nan, Y)), V, "NaN"),
    "target infinite": (lambda book: linear(ledger=book).fit(X, np.where(LABELS, np.inf, Y)), V, "infinity"),
    "target without a bound": (
        lambda book: linear(target_bound=None, ledger=book).fit(X, Y),
        P,
        "target_bound must be given",
    ),
    "target bound reversed": (lambda book: linear(target_bound=(2, -2), ledger=book).fit(X, Y), P, "low < high"),
    "target bound of three": (lambda book: linear(target_bound=(1, 2, 3), ledger=book).fit(X, Y), P, "a pair"),
    "target bound zero": (lambda book: linear(target_bound=0, ledger=book).fit(X, Y), P, "target_bound must be > 0"),
    "nan": (lambda book: logistic(ledger=book).fit(NAN, LABELS), P, "NaN"),
    "infinite": (lambda book: logistic(ledger=book).fit(INFINITE, LABELS), P, "infinite"),
    "text column": (lambda book: logistic(ledger=book).fit(WORDS, LABELS), P, "column 'a'"),
    "text column, polars": (lambda book: logistic(ledger=book).fit(pl.from_pandas(WORDS), LABELS), P, "column 'a'"),
    "text entries": (
        lambda book: logistic(ledger=book).fit(WORDS.to_numpy(dtype=object), LABELS),
        P,
        "must hold numbers",
    ),
    "text in a network": (lambda book: network(ledger=book).fit(WORDS, LABELS), P, "column 'a'"),
    "no features": (lambda book: logistic(ledger=book).fit(X[:, :0], LABELS), V, "0 feature"),
    "no rows": (lambda book: logistic(ledger=book).fit(X[:0], LABELS[:0]), V, "no rows"),
    "one dimension": (lambda book: logistic(ledger=book).fit(X[:, 0], LABELS), V, "2D"),
    "unequal lengths": (lambda book: logistic(ledger=book).fit(X, LABELS[:9]), V, "not equally long"),
    "a sentence for a flag": (lambda book: linear(fit_intercept="yes", ledger=book).fit(X, Y), P, "True or False"),
    "unknown solver": (lambda book: logistic(method="lbfgs", ledger=book).fit(X, LABELS), P, "method must be one of"),
    "solver a number": (lambda book: linear(method=3, ledger=book).fit(X, Y), P, "method must be one of"),
    "unknown solver of a mean": (lambda book: mean(method="lbfgs", ledger=book).fit(Y), P, "method must be one of"),
    "steps zero": (lambda book: logistic(max_iter=0, ledger=book).fit(X, LABELS), P, "max_iter"),
    "radius zero": (lambda book: logistic(radius=0, ledger=book).fit(X, LABELS), P, "radius"),
    "cap above one": (lambda book: logistic(cap=2, ledger=book).fit(X, LABELS), P, "cap"),
    "huber negative": (lambda book: linear(huber=-1, ledger=book).fit(X, Y), P, "huber"),
    "ridge negative": (lambda book: linear(ridge=-1, ledger=book).fit(X, Y), P, "ridge"),
    "ridge and lasso": (lambda book: linear(ridge=1, lasso=1, ledger=book).fit(X, Y), P, "cannot be combined"),
    "sample weights": (lambda book: logistic(ledger=book).fit(X, LABELS, sample_weight=Y), P, "sample_weight"),
    "class weights": (lambda book: logistic(class_weight="balanced", ledger=book).fit(X, LABELS), P, "class_weight"),
    "warm start": (lambda book: logistic(warm_start=True, ledger=book).fit(X, LABELS), P, "warm_start"),
    "early stopping": (lambda book: network(early_stopping=True, ledger=book).fit(X, LABELS), P, "early_stopping"),
    "features of an array": (lambda book: logistic(ledger=book).fit(X, LABELS, features=["a"]), P, "features names"),
    "a network without layers": (lambda book: network(hidden_layer_sizes=(), ledger=book).fit(X, LABELS), P, "width"),
    "a layer of width zero": (lambda book: network(hidden_layer_sizes=(0,), ledger=book).fit(X, LABELS), P, "sizes"),
    "layers of text": (lambda book: network(hidden_layer_sizes="32", ledger=book).fit(X, LABELS), P, "sizes"),
    "seed negative": (lambda book: network(seed=-1, ledger=book).fit(X, LABELS), P, "seed"),
    "no bounds": (lambda book: mean(bounds=None, ledger=book).fit(Y), P, "bounds must be given"),
    "bounds reversed": (lambda book: mean(bounds=(1, 0), ledger=book).fit(Y), P, "low < high"),
    "bounds equal": (lambda book: mean(bounds=(1, 1), ledger=book).fit(Y), P, "low < high"),
    "bounds a number": (lambda book: mean(bounds=1, ledger=book).fit(Y), P, "a pair"),
    "a step that does not fit": (lambda book: mean(step=3, ledger=book).fit(Y), P, "whole number"),
    "values nan": (lambda book: mean(ledger=book).fit([np.nan] * 300), P, "NaN"),
    "values infinite": (lambda book: quantile(ledger=book).fit([np.inf] * 300), P, "infinite"),
    "values of text": (lambda book: mean(ledger=book).fit([CANARY] * 300), P, "must hold numbers"),
    "values of objects": (
        lambda book: mean(ledger=book).fit(np.array([CANARY] * 300, dtype=object)),
        P,
        "must hold numbers",
    ),
    "values in a square": (lambda book: mean(ledger=book).fit(X), P, "one column"),
    "no values": (lambda book: mean().fit([]), P, "empty"),
    "a column of an array": (lambda book: mean(ledger=book).fit(Y, "pay"), P, "column names"),
    "q zero": (lambda book: quantile(q=0, ledger=book).fit(Y), P, "q must lie"),
    "q one": (lambda book: quantile(q=1, ledger=book).fit(Y), P, "q must lie"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_its_reason_and_nothing_is_spent(name):
    act, error, says = BAD[name]
    book = ledger()
    before = book.spent()
    with pytest.raises(error) as raised:
        act(book)
    assert says in str(raised.value)
    assert CANARY not in str(raised.value)
    assert book.spent() == before


def test_what_is_refused_is_refused_with_a_reason():
    assert all(name in reason and "refused" in reason for name, reason in REFUSED.items())
    with pytest.raises(TypeError, match="unexpected"):
        logistic().fit(X, LABELS, sample_wieght=1)
    logistic().fit(X, LABELS, sample_weight=None)


def test_the_text_of_a_bad_conversion_is_nowhere_in_the_error():
    with pytest.raises(dp.errors.ParameterError) as raised:
        logistic().fit([["1.5", CANARY]] * 300, LABELS)
    error = raised.value
    while error is not None:
        assert CANARY not in str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def test_a_model_that_is_not_fitted_says_so_even_after_a_refused_fit():
    for make in (logistic, linear, network):
        with pytest.raises(NotFittedError):
            make().predict(X)
        found = make(ledger=ledger(budget=dp.Budget("0.001")))
        with pytest.raises(dp.BudgetExceeded):
            found.fit(X, LABELS)
        with pytest.raises(NotFittedError):
            found.predict(X)


# Frames, clones, pickles, pipelines.


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_frames_bring_their_feature_names(kind):
    frame = kind({"a": X[:, 0], "b": X[:, 1]})
    found = logistic().fit(frame, LABELS)
    assert found.feature_names_in_.tolist() == ["a", "b"]
    assert found.n_features_in_ == 2
    assert len(found.predict(frame)) == 300
    with pytest.raises(ValueError, match="feature names"):
        found.predict(kind({"a": X[:, 0], "c": X[:, 1]}))


def test_prediction_refuses_rows_that_are_no_numbers():
    found = logistic().fit(X, LABELS)
    for rows in (NAN, INFINITE):
        with pytest.raises(dp.errors.ParameterError, match="NaN or infinite"):
            found.predict(rows)
    with pytest.raises(ValueError, match="features"):
        found.predict(X[:, :1])


@pytest.mark.parametrize("make", [logistic, linear, network, mean, quantile])
def test_a_clone_shares_the_ledger_and_nothing_else(make):
    book = ledger()
    given = make(ledger=book)
    copy = clone(given)
    assert copy.ledger is book
    assert copy.get_params() == given.get_params()
    assert copy is not given


def test_the_constructor_stores_its_parameters_as_they_are():
    classes, bounds = ["a", "b"], [0, "1"]
    assert dp.LogisticRegression(epsilon="1/2", classes=classes).classes is classes
    assert dp.Mean(bounds=bounds).bounds is bounds
    for kind in (dp.LogisticRegression, dp.LinearRegression, dp.MLPClassifier, dp.Mean, dp.Median, dp.Quantile):
        assert kind().epsilon is None


@pytest.mark.parametrize("make", [logistic, linear, network])
def test_a_fitted_model_survives_a_pickle_and_its_ledger_stays_at_home(make, tmp_path):
    rows = dp.Matrix(X, features=dp.Vector(2, norm=1), name="persons")
    book = dp.Ledger.create(tmp_path / "persons.ledger", dp.Budget(100), rows)
    found = make(ledger=book).fit(X, LABELS)
    again = pickle.loads(pickle.dumps(found))
    assert (again.predict(X) == found.predict(X)).all()
    assert again.guarantee_ == found.guarantee_
    assert again.promise_ == found.promise_
    assert again.ledger is None
    with pytest.raises(dp.errors.ParameterError, match="neither fits nor charges"):
        again.fit(X, LABELS)
    assert len([body for body in book.entries() if body["kind"] == "charge"]) == 1
    assert pickle.loads(pickle.dumps(make(ledger=book))).ledger.path == book.path  # nothing is fitted yet


def test_a_fitted_model_holds_no_rows():
    canary = 0.8137512
    rows = np.full((300, 2), canary)
    found = logistic(epsilon=1).fit(rows, LABELS)
    assert not _holds(found, canary)
    assert not _holds(linear().fit(X, np.full(300, canary)), canary)
    assert not _holds(mean().fit(np.full(300, canary)), canary)


def _holds(found, number):
    stored = pickle.dumps(found)
    return np.float64(number).tobytes() in stored or np.float64(number).tobytes()[::-1] in stored


def test_a_ledger_in_memory_cannot_be_pickled_with_an_estimator():
    found = logistic(ledger=ledger())
    with pytest.raises(dp.errors.ParameterError, match="second budget"):
        pickle.dumps(found)


def test_a_pipeline_scales_by_declared_bounds():
    wide = X * [10, 100]
    model = make_pipeline(dp.DeclaredScaler([(-10, 10), (-100, 100)]), logistic(epsilon=NO_NOISE))
    assert model.fit(wide, LABELS)[-1].coef_ == pytest.approx(logistic(epsilon=NO_NOISE).fit(X, LABELS).coef_, abs=1e-6)
    assert clone(model)[-1].epsilon == NO_NOISE


# Scores.


def test_score_without_a_ledger_is_the_exact_one():
    found = logistic(epsilon=NO_NOISE).fit(X, LABELS)
    assert found.score(X, LABELS) == np.mean(found.predict(X) == LABELS)
    regression = linear(epsilon=NO_NOISE, max_iter=100).fit(X, Y)
    assert regression.score(X, Y) == pytest.approx(LeastSquares().fit(X, Y).score(X, Y), abs=1e-3)


@pytest.mark.parametrize("make", [logistic, linear, network])
def test_score_with_a_ledger_is_refused_and_costs_nothing(make):
    book = ledger()
    found = make(ledger=book).fit(X, LABELS)
    before = book.spent()
    with pytest.raises(dp.errors.ParameterError, match="score"):
        found.score(X, LABELS)
    assert book.spent() == before


@pytest.mark.parametrize("make", [logistic, network])
def test_a_charged_score_is_a_count_plus_noise_and_costs_its_epsilon(make):
    book = ledger()
    found = make(ledger=book, score_epsilon="0.5").fit(X, LABELS)
    before = book.spent().pure
    score = found.score(X, LABELS)
    assert book.spent().pure - before == 500_000_000
    assert 0 <= score <= 1
    assert round(score * 300) == pytest.approx(score * 300)
    found.set_params(score_epsilon=40)
    assert found.score(X, LABELS) == pytest.approx(np.mean(found.predict(X) == LABELS), abs=1 / 300)


def test_a_price_of_a_score_that_is_none_is_refused_before_the_fit_is_paid():
    book = ledger()
    with pytest.raises(dp.errors.ParameterError, match="score_epsilon"):
        logistic(ledger=book, score_epsilon="cheap").fit(X, LABELS)
    assert book.spent().pure == 0


@pytest.mark.parametrize("digits", [200, 3000])
def test_an_epsilon_that_no_float_holds_is_as_good_as_no_noise(digits):
    assert np.isfinite(logistic(epsilon=10**digits, method="auto").fit(X, LABELS).coef_).all()
    with pytest.raises(dp.errors.BudgetExceeded):
        logistic(epsilon=10**digits, method="auto", ledger=ledger()).fit(X, LABELS)


def test_a_charged_score_needs_a_public_number_of_rows():
    rows = dp.Matrix(X, features=dp.Vector(2, norm=1), name="persons", neighbours="add-remove")
    book = ledger(rows)
    found = logistic(ledger=book, neighbours="add-remove", size=300, score_epsilon=1).fit(X, LABELS)
    before = book.spent()
    with pytest.raises(dp.errors.ParameterError, match="public number of rows"):
        found.score(X, LABELS)
    assert book.spent() == before


# Parts of a table.


def test_a_part_chosen_by_position_is_charged_to_the_ledger_of_the_whole():
    book = ledger()
    found = logistic(ledger=book, size=300, epsilon=20).fit(X[:200], LABELS[:200])
    assert book.facts.size == 300
    assert found.guarantee_.epsilon(0) <= 20


def test_a_part_has_the_fit_of_its_own_rows():
    book = ledger(budget=dp.Budget(10 * NO_NOISE))
    for changed in ({}, {"ridge": 1}):
        alone = linear(epsilon=NO_NOISE, max_iter=300, **changed).fit(X[:200], Y[:200])
        part = linear(epsilon=NO_NOISE, max_iter=300, ledger=book, size=300, **changed).fit(X[:200], Y[:200])
        assert part.coef_ == pytest.approx(alone.coef_, abs=2e-3)
    middle = mean(epsilon=NO_NOISE, ledger=book, size=300).fit(Y[:200])
    assert middle.value_ == pytest.approx(Y[:200].mean(), abs=1e-6)
    assert np.quantile(Y[:200], 0.49) <= quantile(epsilon=NO_NOISE, ledger=book, size=300).fit(Y[:200]).value_
    assert quantile(epsilon=NO_NOISE, ledger=book, size=300).fit(Y[:200]).value_ <= np.quantile(Y[:200], 0.51)


def test_a_part_holds_its_rows_as_closely_as_a_table():
    part = Part(dp.Matrix(X, features=dp.Vector(2, norm=1)), 400)
    assert part.share == Fraction(3, 4)
    public = {name for name in dir(part) if not name.startswith("_")}
    doors = {"exact_sum", "exact_slices", "exact_gather"}
    assert public == {"facts", "identity", "source", "share", "check_source", "offers"} | doors
    with pytest.raises(TypeError, match="private rows"):
        pickle.dumps(part)
    assert "1.0" not in repr(part)


# From a table.


def test_the_coefficients_of_a_table_on_the_columns_own_scale_give_the_same_margins():
    people = table()
    book = ledger(people, dp.Budget(10**16))
    found = logistic(epsilon=NO_NOISE, row_norm=None, classes=None, ledger=book).fit(
        people, "smoker", features=["age", "sex", "height"]
    )
    assert found.classes_.tolist() == ["no", "yes"]
    assert found.feature_names_in_.tolist() == ["age", "sex", "height"]
    assert found.feature_names_out_.tolist() == ["age", "sex = F", "sex = M", "height", "height is missing"]
    rows = {"age": [30, 60], "sex": ["F", "M"], "height": [1.5, 1.7]}
    by_hand = np.array([[30, 1, 0, 1.5, 0], [60, 0, 1, 1.7, 0]])
    margins = by_hand @ found.original_coef_[0] + found.original_intercept_[0]
    assert found.decision_function(rows) == pytest.approx(margins, abs=1e-3)
    assert found.decision_function(pd.DataFrame(rows)) == pytest.approx(margins, abs=1e-3)
    assert found.decision_function(pl.DataFrame(rows)) == pytest.approx(margins, abs=1e-3)
    with pytest.raises(dp.errors.ParameterError, match="named columns"):
        found.predict(by_hand)
    with pytest.raises(dp.errors.SchemaError, match="height"):
        found.predict({"age": [1], "sex": ["F"]})


def test_regression_from_a_table_recovers_what_made_it():
    people = table()
    book = ledger(people, dp.Budget(10**16))
    found = linear(epsilon=NO_NOISE, row_norm=None, target_bound=None, max_iter=1000, radius=300, ledger=book).fit(
        people, "pay", features=["age", "sex"]
    )
    assert found.original_coef_[0] == pytest.approx(0.5, abs=0.05)
    assert found.original_coef_[2] - found.original_coef_[1] == pytest.approx(20, abs=2)


def test_a_file_and_a_frame_give_the_same_mechanism_and_without_noise_the_same_bits(tmp_path):
    pl.DataFrame(PEOPLE, strict=False).write_parquet(tmp_path / "people.parquet")
    read = dp.ParquetTable(tmp_path / "people.parquet", DOMAIN, name="people", batch_rows=100)
    found = []
    for data in (table(), read):
        book = ledger(data, dp.Budget(10**16))
        found.append(logistic(epsilon=NO_NOISE, row_norm=None, classes=None, ledger=book).fit(data, "smoker"))
    assert found[0].mechanism_ == found[1].mechanism_
    assert (found[0].coef_ == found[1].coef_).all()
    assert found[0].feature_names_in_.tolist() == ["age", "sex", "pay", "height"]


TABLE_BAD = {
    "no ledger": (lambda book: logistic(classes=None).fit(table(), "smoker"), P, "its ledger"),
    "a size": (lambda book: logistic(ledger=book, size=400).fit(table(), "smoker"), P, "size belongs"),
    "no such target": (lambda book: logistic(ledger=book).fit(table(), "smokes"), dp.errors.SchemaError, "smoker"),
    "target not named": (lambda book: logistic(ledger=book).fit(table(), None), P, "target"),
    "no such feature": (lambda book: logistic(ledger=book).fit(table(), "smoker", features=["aeg"]), None, "age"),
    "features a text": (lambda book: logistic(ledger=book).fit(table(), "smoker", features="age"), P, "list of column"),
    "no features": (lambda book: logistic(ledger=book).fit(table(), "smoker", features=[]), P, "at least one"),
    "target a feature": (
        lambda book: logistic(ledger=book).fit(table(), "smoker", features=["age", "smoker"]),
        P,
        "must not contain",
    ),
    "feature twice": (lambda book: logistic(ledger=book).fit(table(), "smoker", features=["age"] * 2), P, "distinct"),
    "classes of a number": (lambda book: logistic(ledger=book).fit(table(), "pay"), P, "need a Category"),
    "other classes": (lambda book: logistic(ledger=book).fit(table(), "smoker"), P, "not those that the table"),
    "regression on levels": (lambda book: linear(ledger=book, target_bound=None).fit(table(), "sex"), P, "a Number"),
    "bounds given twice": (lambda book: linear(ledger=book).fit(table(), "pay"), P, "target_bound belongs"),
    "target may be missing": (
        lambda book: linear(ledger=book, target_bound=None).fit(table(), "height"),
        P,
        "never missing",
    ),
    "bounds of a column": (lambda book: mean(ledger=book).fit(table(), "age"), P, "bounds and step belong"),
    "mean of levels": (lambda book: mean(ledger=book, bounds=None).fit(table(), "sex"), P, "must be a Number"),
    "mean of what may be missing": (
        lambda book: mean(ledger=book, bounds=None).fit(table(), "height"),
        P,
        "never missing",
    ),
    "mean of no column": (lambda book: mean(ledger=book, bounds=None).fit(table()), P, "column"),
    "another table": (
        lambda book: logistic(ledger=book, classes=None).fit(table(name="others"), "smoker"),
        dp.errors.LedgerMismatch,
        "others",
    ),
}


@pytest.mark.parametrize("name", TABLE_BAD)
def test_bad_use_of_a_table_is_refused_with_its_reason_and_nothing_is_spent(name):
    act, error, says = TABLE_BAD[name]
    book = ledger(table())
    before = book.spent()
    with pytest.raises(error or dp.errors.SchemaError) as raised:
        act(book)
    assert says in str(raised.value)
    assert book.spent() == before


def test_a_mean_and_a_median_of_a_column():
    people = table()
    book = ledger(people, dp.Budget(10**16))
    assert mean(epsilon=NO_NOISE, bounds=None, ledger=book).fit(people, "age").value_ == pytest.approx(AGE.mean())
    found = dp.Median(epsilon=NO_NOISE, ledger=book).fit(people, "age")
    assert found.value_ in (np.floor(np.median(AGE)), np.ceil(np.median(AGE)))


def test_several_rows_a_person_cost_more_noise():
    rows = {**PEOPLE, "person": np.arange(400) // 2}
    people = dp.Table(rows, DOMAIN, name="people", unit="person", rows_per_unit=2)
    found = dp.Median(epsilon=1, ledger=ledger(people)).fit(people, "age")
    single = dp.Median(epsilon=1, ledger=ledger(table())).fit(table(), "age")
    assert float(found.mechanism_.rate) == pytest.approx(float(single.mechanism_.rate) / 2, rel=1e-5)


@pytest.mark.parametrize("solver", ["auto", "laplace", "gaussian"])
def test_a_sum_over_the_number_of_persons_is_no_mean_of_several_rows_a_person(solver):
    rows = {**PEOPLE, "person": np.arange(400) // 2}
    people = dp.Table(rows, DOMAIN, name="people", unit="person", rows_per_unit=2)
    book = ledger(people, dp.Budget(10**16, 1e-6))
    with pytest.raises(dp.errors.Unproven, match="number of rows, which is private"):
        dp.Mean(epsilon=1, delta=1e-7, method=solver, ledger=book).fit(people, "age")
    assert book.spent().pure == 0
    minimised = dp.Mean(epsilon=NO_NOISE, method="exponential", ledger=book).fit(people, "age")
    assert minimised.value_ == pytest.approx(AGE.mean(), abs=1)


# The scaler.


def test_the_scaler_maps_bounds_to_minus_one_and_one_and_clips():
    scaler = dp.DeclaredScaler((0, 10)).fit(np.zeros((2, 3)))
    assert scaler.transform([[0, 5, 10], [-5, 2.5, 99]]).tolist() == [[-1, 0, 1], [-1, -0.5, 1]]
    assert scaler.inverse_transform([[-1, 0, 1]]).tolist() == [[0, 5, 10]]
    assert scaler.get_feature_names_out().tolist() == ["x0", "x1", "x2"]


def test_the_scaler_reads_no_bounds_from_the_rows():
    one, other = (dp.DeclaredScaler((0, 10)).fit(np.full((2, 2), value)) for value in (3.0, 9000.0))
    assert (one.low_ == other.low_).all()
    assert (one.high_ == other.high_).all()


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_the_scaler_takes_bounds_by_name_and_gives_frames_back(kind):
    frame = kind({"age": [0.0, 100.0], "pay": [5.0, 10.0]})
    scaler = dp.DeclaredScaler({"pay": (0, 10), "age": (0, 100)}).set_output(
        transform="pandas" if kind is pd.DataFrame else "polars"
    )
    found = scaler.fit_transform(frame)
    assert isinstance(found, kind)
    assert list(found.columns) == ["age", "pay"]
    assert np.asarray(found).tolist() == [[-1, 0], [1, 1]]


@pytest.mark.parametrize(
    ("bounds", "says"),
    [
        (None, "must be given"),
        ((1, 0), "low < high"),
        ([(0, 1)], "each of 2"),
        ({"a": (0, 1)}, "column names"),
        (3, "a pair"),
        ((0, np.nan), "finite"),
        ([(0, 1), 3], "a pair"),
    ],
)
def test_the_scaler_refuses_bad_bounds(bounds, says):
    with pytest.raises(dp.errors.ParameterError, match=says):
        dp.DeclaredScaler(bounds).fit(X)


def test_the_scaler_names_the_columns_without_bounds():
    with pytest.raises(dp.errors.ParameterError, match="pay"):
        dp.DeclaredScaler({"age": (0, 1)}).fit(pd.DataFrame({"age": [1.0], "pay": [2.0]}))


# Selection.


class Fixed(ClassifierMixin, BaseEstimator):
    """Predicts a constant, and remembers how many rows it was shown at a time; fails on rows it does not like."""

    def __init__(self, answer=0, fails=False):
        self.answer, self.fails = answer, fails
        self.classes_ = np.array([0, 1])
        self.n_features_in_ = 2
        self.shown = []

    def fit(self, rows, labels):
        return self

    def predict(self, rows):
        self.shown.append(len(rows))
        if self.fails and rows[0, 0] > 0:
            raise RuntimeError(f"I do not like {rows}")
        return np.full(len(rows), self.answer)


def fitted_pair():
    good = logistic(epsilon=NO_NOISE, max_iter=50).fit(X, LABELS)
    bad = clone(good).fit(X, 1 - LABELS)
    return bad, good


def rule_of(model, domain):
    return LinearRule.of(model.coef_, model.intercept_, VectorColumn("x", False), domain)


def test_the_better_model_is_chosen():
    bad, good = fitted_pair()
    found = dp.select_model([bad, good], X, LABELS, epsilon=10)
    assert (found.index, found.model) == (1, good)
    assert found.guarantee.epsilon(0) == pytest.approx(10, rel=1e-4)
    assert "this choice alone" in str(found.guarantee)
    assert found.shortfall == pytest.approx(np.log(2) / (10 / 2 * 300), rel=1e-4)
    assert dp.select_model({"bad": bad, "good": good}, X, LABELS, epsilon=10).index == 1


def test_the_better_regression_is_chosen():
    good = linear(epsilon=NO_NOISE, max_iter=50).fit(X, Y)
    bad = clone(good).fit(X, -Y)
    found = dp.select_model([bad, good], X, Y, epsilon=50)
    assert found.model is good


def test_a_choice_is_one_charge():
    book = ledger()
    found = dp.select_model(fitted_pair(), X, LABELS, epsilon="0.5", ledger=book)
    charges = [body for body in book.entries() if body["kind"] == "charge"]
    assert [body["seq"] for body in charges] == [found.entry]
    assert charges[0]["price"]["pure"] <= 500_000_000
    assert charges[0]["mechanism"]["score"]["name"] == "right-predictions/1"


def test_any_fitted_model_is_a_candidate_and_is_shown_one_row_at_a_time():
    zero, one = Fixed(0), Fixed(1)
    found = dp.select_model([zero, one], X, np.ones(300), epsilon=10, row_norm=NORM)
    assert found.model is one
    assert set(zero.shown) == {1}


def test_a_model_that_fails_on_a_row_is_wrong_there_and_nothing_is_said():
    matrix = dp.Matrix(X, np.zeros(300), features=dp.Vector(2, norm=NORM), target=dp.Category(0, 1))
    score = RightPredictions((ModelRule("fails", Fixed(0, fails=True)), ModelRule("zero", Fixed(0))), "y")
    assert matrix.exact_sum(score).tolist() == [int((X[:, 0] < 0).sum()), 300]


def test_a_table_is_judged_by_models_from_tables():
    people = table()
    book = ledger(people, dp.Budget(10**16))
    good = logistic(epsilon=NO_NOISE, row_norm=None, classes=None, ledger=book, max_iter=50).fit(people, "smoker")
    bad = pickle.loads(pickle.dumps(good.set_params(ledger=None)))
    bad.coef_, bad.intercept_ = -good.coef_, -good.intercept_
    assert dp.select_model([bad, good], people, "smoker", epsilon=20, ledger=book).index == 1
    good.set_params(ledger=book, score_epsilon=1000)
    right = np.mean(good.predict(PEOPLE) == PEOPLE["smoker"])
    assert good.score(people, "smoker") == pytest.approx(right, abs=1 / 400)


SELECT_BAD = {
    "one model": (lambda good, book: dp.select_model([good], X, LABELS, epsilon=1, ledger=book), P, "at least two"),
    "no list": (lambda good, book: dp.select_model(3, X, LABELS, epsilon=1, ledger=book), P, "a list or a dict"),
    "not fitted": (
        lambda good, book: dp.select_model([good, logistic()], X, LABELS, epsilon=1, ledger=book),
        None,
        "fitted",
    ),
    "two kinds": (
        lambda good, book: dp.select_model([good, linear().fit(X, Y)], X, LABELS, epsilon=1, ledger=book),
        P,
        "found both",
    ),
    "other classes": (
        lambda good, book: dp.select_model([good, logistic(classes=(1, 0)).fit(X, LABELS)], X, LABELS, epsilon=1),
        P,
        "same classes",
    ),
    "no norm": (
        lambda good, book: dp.select_model([Fixed(), Fixed()], X, LABELS, epsilon=1),
        P,
        "row_norm must be given",
    ),
    "no epsilon": (lambda good, book: dp.select_model([good, good], X, LABELS), P, "epsilon must be given"),
    "a model of arrays on a table": (
        lambda good, book: dp.select_model([good, good], table(), "smoker", epsilon=1, ledger=ledger(table())),
        P,
        "fitted from a table",
    ),
    "nan": (lambda good, book: dp.select_model([good, good], NAN, LABELS, epsilon=1, ledger=book), P, "NaN"),
    "other label": (
        lambda good, book: dp.select_model([good, good], X, LABELS + 5, epsilon=1, ledger=book),
        P,
        "declared",
    ),
    "width": (
        lambda good, book: dp.select_model([good, good], X[:, :1], LABELS, epsilon=1, ledger=book),
        V,
        "features",
    ),
}


@pytest.mark.parametrize("name", SELECT_BAD)
def test_a_bad_choice_is_refused_and_nothing_is_spent(name):
    act, error, says = SELECT_BAD[name]
    book = ledger()
    good = logistic().fit(X, LABELS)
    before = book.spent()
    with pytest.raises(error or NotFittedError) as raised:
        act(good, book)
    assert says in str(raised.value)
    assert book.spent() == before


def _scores(rows, labels, score, target):
    matrix = dp.Matrix(rows, labels, features=dp.Vector(2, norm=NORM), target=target)
    return matrix.exact_sum(score)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_no_neighbour_moves_the_scores_further_than_stated(relation):
    """All pairs of neighbouring tables over four rows, for both scores."""
    bad, good = fitted_pair()
    number = dp.Number(-2, 2, step=1)
    domain = dp.Domain(x=dp.Vector(2, norm=NORM), y=dp.Category(0, 1))
    rules = (rule_of(bad, domain), rule_of(good, domain))
    for score, target, labels in (
        (RightPredictions(rules, "y"), dp.Category(0, 1), [0, 1]),
        (SmallMisses(rules, "y", Fraction(1)), number, [-2, 2]),
    ):
        facts = dp.data.Facts(dp.Domain(x=dp.Vector(2, norm=NORM), y=target), dp.Neighbours(relation), 2)
        stated = score.sensitivity(facts)
        single = [_scores([row], [label], score, target) for row in ([1, 1], [-1, -1]) for label in labels]
        moved = single if relation == "add-remove" else [one - other for one in single for other in single]
        spans = [int(each.max() - each.min()) for each in moved]
        assert max(spans) <= stated.range
        assert max(int(np.abs(each).max()) for each in moved) <= stated.linf
        assert max(int(np.abs(each).sum()) for each in moved) <= stated.l1
        if isinstance(score, RightPredictions):
            assert max(spans) == stated.range  # so a smaller one would be wrong


def test_an_integer_rule_predicts_as_its_model_does():
    domain = dp.Domain(x=dp.Vector(2, norm=2))
    rows = np.trunc(RNG.uniform(-1, 1, (500, 2)) / float(domain["x"].step)).astype(np.int64)
    for labels, classes in ((LABELS, (0, 1)), (THREE, (0, 1, 2))):
        found = logistic(epsilon=100, classes=classes).fit(X, labels)
        codes = rule_of(found, domain).classes(Batch(domain, 500, lambda name: rows))
        assert (codes == found.predict(rows * float(domain["x"].step))).all()


def test_a_row_of_a_rule_does_not_depend_on_the_rows_around_it():
    found = logistic(epsilon=100, classes=(0, 1, 2)).fit(X, THREE)
    rows = RNG.uniform(-1, 1, (64, 2))
    domain = dp.Domain(x=dp.Vector(2, norm=2))
    rule = rule_of(found, domain)
    units = np.trunc(rows / float(domain["x"].step)).astype(np.int64)
    together = rule._margins(Batch(domain, 64, lambda name: units))
    alone = [rule._margins(Batch(domain, 1, lambda name, i=i: units[i : i + 1]))[0] for i in range(64)]
    assert (together == np.array(alone)).all()
    assert (together == np.rint(together)).all()


def test_the_record_of_a_choice_says_its_price():
    bad, good = fitted_pair()
    matrix = dp.Matrix(X, LABELS, features=dp.Vector(2, norm=NORM), target=dp.Category(0, 1))
    classes = {each.NAME: each for each in (LinearRule, ModelRule, RightPredictions, SmallMisses, VectorColumn)}
    rules = (rule_of(bad, matrix.facts.domain), rule_of(good, matrix.facts.domain), ModelRule("x", Fixed()))
    mechanism = dp.Exponential(RightPredictions(rules, "y"), 1)
    again = revive(record(mechanism), {**CATALOGUE, **classes})
    assert again == mechanism
    assert again.guarantee(matrix.facts) == mechanism.guarantee(matrix.facts)


def test_a_miss_beyond_the_largest_counts_as_the_largest():
    score = SmallMisses((LinearRule(VectorColumn("x", False), ((0, 0),), (0,), Fraction(1)),), "y", Fraction(1))
    number = dp.Number(-2, 2, step="0.5")
    assert _scores([[0, 0]], [2], score, number).tolist() == [-STEPS]
    assert _scores([[0, 0]], [0.5], score, number).tolist() == [-STEPS // 4]


def test_missing_parameters_are_named_all_at_once():
    for found, names in (
        (dp.LogisticRegression(), ("epsilon", "row_norm", "classes")),
        (dp.LinearRegression(epsilon=1), ("row_norm", "target_bound")),
        (dp.MLPClassifier(), ("epsilon", "row_norm", "classes")),
        (dp.BoxClassifier(), ("epsilon", "bounds", "classes")),
        (dp.RuleClassifier(), ("epsilon", "k", "bounds", "classes")),
    ):
        with pytest.raises(dp.errors.ParameterError, match=f"needs {len(names)} parameters") as refused:
            found.fit(X, LABELS)
        assert all(f"{name}, " in str(refused.value) for name in names)
    with pytest.raises(dp.errors.ParameterError, match=r"needs 2 parameters.*epsilon.*bounds"):
        dp.Mean().fit(X[:, 0])
    with pytest.raises(dp.errors.ParameterError, match="row_norm must be given"):  # one alone, as it is read
        dp.LogisticRegression(epsilon=1, classes=(0, 1)).fit(X, LABELS)


# How far slopes are cut, by public numbers.


@pytest.mark.parametrize(("epsilon", "cap"), [("0.1", Fraction(1, 2)), (1000, Fraction(1))])
def test_the_cap_of_the_logistic_loss_grows_with_the_signal(epsilon, cap):
    given = {"row_norm": 2, "classes": (0, 1), "delta": "1e-6"}
    assert dp.LogisticRegression(epsilon=epsilon, **given).fit(X, LABELS).loss_.cap == cap
    assert dp.LogisticRegression(epsilon=epsilon, cap="3/4", **given).fit(X, LABELS).loss_.cap == Fraction(3, 4)


@pytest.mark.parametrize(("epsilon", "threshold"), [("0.1", Fraction(1, 2)), (1000, Fraction(2))])
def test_the_threshold_of_the_huber_loss_grows_with_the_signal(epsilon, threshold):
    given = {"row_norm": 2, "target_bound": 2, "delta": "1e-6", "method": "objective"}
    found = dp.LinearRegression(epsilon=epsilon, **given).fit(X, Y).mechanism_.risk.loss
    assert found.threshold == threshold
    stated = dp.LinearRegression(epsilon=epsilon, huber="3/4", **given).fit(X, Y).mechanism_.risk.loss
    assert stated.threshold == Fraction(3, 4)


def test_more_features_than_objective_perturbation_takes_are_fitted_by_descent():
    wide = np.zeros((20, 2**12 + 1))
    model = dp.LogisticRegression(epsilon=1, delta="1e-6", row_norm=1, classes=(0, 1), max_iter=1)
    assert model.fit(wide, LABELS[:20]).method_ == "descent"
