"""scikit-learn's own checks of an estimator, and ours: what is charged must not depend on the rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

import discreet as dp
from discreet.erm.solvers import SOLVERS
from discreet.estimators.boxes import BoxClassifier
from discreet.estimators.conjunctions import ConjunctionClassifier
from discreet.estimators.rules import FiniteClassClassifier, RuleClassifier

# The checks fit to arrays of their own and compare predictions, so the labels are public, the bounds wide, and epsilon
# so large that the integer noise is 0.
NO_NOISE = 10**40


def _signs(rows):
    """What the checks bring, as the booleans that conjunctions are about: column 1 holds where all numbers are > 0."""
    if hasattr(rows, "toarray"):
        rows = rows.toarray()
    if hasattr(rows, "columns"):
        above = rows > 0
        above.isetitem(0, above.all(axis=1))
        return above
    try:
        found = np.asarray(rows)
        found = found if found.dtype.kind == "c" else found.astype(float)
    except (TypeError, ValueError):
        return rows
    if found.ndim != 2 or found.dtype.kind == "c" or not np.isfinite(found).all():
        return rows
    above = found > 0
    above[:, :1] = above.all(axis=1, keepdims=True)
    return above


class Signs(ConjunctionClassifier):
    """A conjunction of the signs of numbers, so that the checks, which bring numbers, can be run."""

    def fit(self, X, y):  # noqa: N803
        return super().fit(_signs(X), y)

    def predict(self, X):  # noqa: N803
        return super().predict(_signs(X))


class SignColumns(FiniteClassClassifier):
    """One of the signs of numbers: a poor hypothesis, but the checks can be run."""

    def fit(self, X, y):  # noqa: N803
        return super().fit(_signs(X), y)

    def predict(self, X):  # noqa: N803
        return super().predict(_signs(X))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


CHECKED = {
    "logistic": dp.LogisticRegression(
        epsilon=NO_NOISE, delta=1e-9, row_norm=30, classes="public", method="descent", max_iter=60, radius=1
    ),
    "linear": dp.LinearRegression(
        epsilon=NO_NOISE, delta=1e-9, row_norm=30, target_bound=300, method="descent", max_iter=100
    ),
    "network": dp.MLPClassifier((4,), epsilon=NO_NOISE, row_norm=4, classes="public"),
    "scaler": dp.DeclaredScaler((-100, 100)),
    "standard scaler": dp.StandardScaler(bounds=(-100, 100), epsilon=NO_NOISE),
    "pca": dp.PCA(n_components=1, bounds=(-100, 100), epsilon=NO_NOISE),
    "box": BoxClassifier(epsilon=10**6, bounds=(-30, 30), step=1 / 64, classes="public", method="faces"),
    "rule": RuleClassifier(epsilon=1000, k=3, cuts=64, bounds=(-8, 8), classes="public", method="practical"),
    "conjunction": Signs(epsilon=1000, k=1, classes="public", method="exact"),
    "finite class": SignColumns(epsilon=1000, hypotheses="columns", classes="public"),
}
EXPECTED_FAILURES = {
    "logistic": {
        "check_class_weight_classifiers": "class_weight is refused: class frequencies are read from private labels"
    },
    "standard scaler": dict.fromkeys(
        ("check_estimator_sparse_array", "check_estimator_sparse_matrix"),
        "the check sets with_mean=False, a parameter of scikit-learn's class of this name",
    ),
    "scaler": {
        "check_estimators_empty_data_messages": "no rows are an ordinary table under add-remove, and it reads none"
    },
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name == "network" else []) for name in CHECKED]
)
def test_the_estimator_checks_of_scikit_learn_pass(name):
    expected = EXPECTED_FAILURES.get(name, {})
    results = check_estimator(CHECKED[name], expected_failed_checks=expected, on_skip=None, on_fail=None)
    failed = {each["check_name"]: each["exception"] for each in results if each["status"] == "failed"}
    assert failed == {}
    assert {each["check_name"] for each in results if each["status"] == "xfail"} == set(expected)
    assert sum(each["status"] == "passed" for each in results) >= 38


# Neighbouring tables give equal mechanisms: what is charged, and how it is solved, are functions of public numbers.

RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, (60, 3))
Y = RNG.uniform(-1, 1, 60)
LABELS = RNG.integers(0, 2, 60)
ROWS = {"x": X, "y": Y, "labels": LABELS}
REPLACED = {"x": X.copy(), "y": Y.copy(), "labels": LABELS.copy()}
REPLACED["x"][0], REPLACED["y"][0], REPLACED["labels"][0] = 1e9, 1e9, 1 - LABELS[0]
REMOVED = {name: values[1:] for name, values in ROWS.items()}


def _logistic(**more):
    return lambda rows, given: dp.LogisticRegression(row_norm=2, classes=(0, 1), **more, **given).fit(
        rows["x"], rows["labels"]
    )


def _linear(**more):
    return lambda rows, given: dp.LinearRegression(row_norm=2, target_bound=1, **more, **given).fit(
        rows["x"], rows["y"]
    )


def _score(rows, given):
    _logistic(max_iter=2, score_epsilon=1)(ROWS, given).score(rows["x"], rows["labels"])


JUDGED = [dp.LogisticRegression(epsilon=1, row_norm=2, classes=(0, 1), max_iter=2).fit(X, LABELS) for _ in range(2)]
LEARNERS = {
    "mean": lambda rows, given: dp.Mean(bounds=(-1, 1), **given).fit(rows["y"]),
    "mean, exponential": lambda rows, given: dp.Mean(bounds=(-1, 1), method="exponential", **given).fit(rows["y"]),
    "median": lambda rows, given: dp.Median(bounds=(-1, 1), **given).fit(rows["y"]),
    "quantile, exponential": lambda rows, given: dp.Quantile(0.9, bounds=(-1, 1), method="exponential", **given).fit(
        rows["y"]
    ),
    "network": lambda rows, given: dp.MLPClassifier((2,), row_norm=2, classes=(0, 1), **given).fit(
        rows["x"], rows["labels"]
    ),
    "logistic": _logistic(),
    "linear": _linear(),
    "linear, huber": _linear(huber=1),
    "linear, ridge": _linear(ridge=1),
    "selection": lambda rows, given: dp.select_model(JUDGED, rows["x"], rows["labels"], **given),
    **{f"logistic, {solver}": _logistic(method=solver, max_iter=3) for solver in SOLVERS if solver != "exponential"},
}
SOLVABLE = {"logistic, strongly-convex": _logistic(method="strongly-convex", ridge=1, max_iter=3)}
LEARNERS.update(SOLVABLE)


def _box(**more):
    return lambda rows, given: BoxClassifier(bounds=(-1, 1), classes=(0, 1), **more, **given).fit(
        rows["x"], rows["labels"]
    )


def _conjunction(**more):
    return lambda rows, given: ConjunctionClassifier(k=2, classes=(0, 1), **more, **given).fit(
        rows["x"] > 0, rows["labels"]
    )


def _rule(**more):
    return lambda rows, given: RuleClassifier(k=2, cuts=8, bounds=(-1, 1), classes=(0, 1), **more, **given).fit(
        rows["x"], rows["labels"]
    )


def _finite(rows, given):
    FiniteClassClassifier(hypotheses="columns", classes=(0, 1), **given).fit(rows["x"] > 0, rows["labels"])


def _certificate(rows, given):
    found = JUDGED_BOX
    found.set_params(**given)
    found.certify(rows["x"], rows["labels"], epsilon=1)


JUDGED_BOX = BoxClassifier(epsilon=1, bounds=(-1, 1), classes=(0, 1), method="faces").fit(X, LABELS)
LEARNERS.update(
    {
        "box": _box(),
        **{f"box, {method}": _box(method=method) for method in ("basic", "zcdp", "search", "prefix", "reorder-slice")},
        "box, faces": _box(method="faces"),
        "conjunction": _conjunction(),
        **{
            f"conjunction, {method}": _conjunction(method=method)
            for method in ("lecture-counts", "counts", "exact", "greedy-basic", "greedy", "self-deleting", "practical")
        },
        "rule": _rule(),
        "finite class": _finite,
        "certificate": _certificate,
    }
)


def _charged(learn, rows, relation):
    """The records of what was charged, and the facts they were charged for."""
    identity = dp.Matrix(X, features=dp.Vector(3, norm=1), name="persons", neighbours=relation)
    book = dp.Ledger.in_memory(dp.Budget(50, 1e-6), identity)
    learn(rows, {"epsilon": 1, "delta": 1e-6, "neighbours": relation, "size": 60, "ledger": book})
    return [
        (body["mechanism"], body["facts_hash"], body["price"]) for body in book.entries() if body["kind"] == "charge"
    ]


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", LEARNERS)
def test_neighbouring_rows_give_equal_mechanisms(name, relation):
    learn, other = LEARNERS[name], REPLACED if relation == "replace-one" else REMOVED
    charged = _charged(learn, ROWS, relation)
    assert charged == _charged(learn, other, relation)
    assert len(charged) == 1


def test_neighbouring_rows_are_scored_by_equal_mechanisms():
    first, second = _charged(_score, ROWS, "replace-one"), _charged(_score, REPLACED, "replace-one")
    assert len(first) == 2
    # The model that is scored was drawn at random, so its weights differ; everything else is equal.
    first[1][0]["query"]["rules"] = second[1][0]["query"]["rules"] = None
    assert first[1] == second[1]
