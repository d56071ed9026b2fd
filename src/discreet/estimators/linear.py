"""Linear models: least squares, and logistic regression with two or several classes.

A row x is projected to length row_norm and a target to its bound, by public rules; the model is then the solution of
one problem, `discreet.erm.risk`, found by one mechanism of `discreet.erm.solvers`. No mathematics is here.

The intercept is one more feature, constantly row_norm / 2; so rows have length row_norm * sqrt(5) / 2 at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from discreet.core import ParameterError, exact
from discreet.data import Floats, Number
from discreet.erm.feasible_sets import Ball
from discreet.erm.losses import Huber, Logistic, Loss, Softmax, Squared
from discreet.erm.risk import Lasso, Ridge, Risk
from discreet.erm.solvers import methods
from discreet.estimators.base import PrivateEstimator, Task, Terms, refuse, terms_of
from discreet.estimators.input import (
    GRID,
    Rows,
    bounds_of,
    class_rows,
    flag,
    is_table,
    numbered_rows,
    predicted_vectors,
    refuse_features,
    share_of,
    table_rows,
)
from discreet.estimators.selection import charged_accuracy
from discreet.method import choose


@dataclass(kw_only=True, repr=False, eq=False)
class LinearRegression(RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """Linear regression under differential privacy.

    Everything that decides privacy is given, never read from the rows:

    epsilon, delta  what the fit may cost; delta=0 is pure. epsilon=None with a ledger: all that is left there
    row_norm        rows longer than this are scaled down to it. Scale features by declared bounds first
                    (`DeclaredScaler`): d features in [-1, 1] have norm at most sqrt(d)
    target_bound    a number Y for targets in [-Y, Y], or a pair (low, high); targets beyond are moved to the bound
    radius          the coefficients' length is at most this; 3 * (bound of the target) / row_norm unless it is given
    fit_intercept   whether there is one
    ridge, lasso    strength of the penalty (strength / 2) |w|^2 or strength |w|_1; at most one of them
    huber           the loss is the squared miss up to this size and a line beyond, which bounds every gradient; "auto"
                    is half the bound of the target. None: the squared loss, whose gradients are several times as long
                    and need as much more noise, but which reads the rows once
    method          "auto": the smallest promised excess risk; or a name of `discreet.erm.solvers.SOLVERS`
    max_iter        the number of steps of a descent; by a public rule unless it is given
    neighbours      "replace-one" (the number of rows is public) or "add-remove" (needs size)
    size            add-remove: a public number that the number of rows does not exceed, a condition of `promise_`; with
                    up to 4 times as many rows nothing is promised, but the fit is stable. replace-one with a ledger:
                    how many persons are in its table, when X holds some of them, chosen by position (a fold)
    ledger          where the fit is charged; without one the promise is about this fit alone
    allowance       the name under which the ledger counts it: its share is the limit then, and epsilon=None or a Share
                    is of what is left of that

    Learned: coef_, intercept_, guarantee_, promise_ (the excess risk that a theorem promises, per row, person or
    declared person, or why none does), method_, mechanism_, entry_ (in the ledger), replayed_, n_iter_, n_features_in_,
    feature_names_in_.

    From a table: fit(table, "income", features=["age", "sex"]) with its ledger; bounds and levels are its declaration,
    row_norm is the root of the number of columns. coef_ is then about the scaled features `feature_names_out_`;
    original_coef_ and original_intercept_ about the columns' own values. A program that is run again gets the stored
    model of its first run, free, and replayed_ is True (`discreet.estimators.replay`).

    `score` is scikit-learn's, and not private: on the rows of the fit it is an unpaid release. With a ledger it raises.
    """

    row_norm: Any = None
    target_bound: Any = None
    radius: Any = None
    fit_intercept: bool = True
    ridge: Any = 0
    lasso: Any = 0
    huber: Any = "auto"
    method: str = "auto"
    max_iter: int | None = None

    def fit(self, X: Any, y: Any, *, features: Any = None, **refused: Any) -> LinearRegression:  # noqa: N803
        """Fit to arrays or a frame (X, y), or to a table and the name of its target column."""
        refuse(refused)
        terms = terms_of(self)
        if is_table(X):
            rows = table_rows(self, terms, X, y, features, intercept=flag(self, "fit_intercept"))
            offset = Fraction(0)
            bound = _declared_bound(self, rows)
        else:
            refuse_features(features)
            offset, bound = _target_range(self.target_bound, centred=flag(self, "fit_intercept"))
            rows = numbered_rows(self, terms, X, y, Number(-bound, bound, step=2 * bound / GRID), offset)
        radius = 3 * bound / rows.norm if self.radius is None else exact.moderate(radius=self.radius)
        w = _solved(self, terms, rows, _regression_loss(self.huber, bound), radius)
        self.coef_, self.intercept_ = w[: rows.width], float(_intercept(self, w, rows)) + float(offset)
        _name_features(self, rows)
        return self

    def predict(self, X: Any) -> Floats:  # noqa: N803
        """The predicted targets of rows: any rows, this is no release about them."""
        check_is_fitted(self, "coef_")
        return np.asarray(predicted_vectors(self, X) @ self.coef_ + self.intercept_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """R squared. Not private: on the rows of the fit it is an unpaid release; with a ledger it is refused."""
        if self.ledger is not None:
            raise ParameterError(
                "score is an exact function of rows and this model has a ledger: score on public rows with "
                "sklearn.metrics, or choose among models with discreet.select_model"
            )
        return float(super().score(X, y, sample_weight=sample_weight))


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateClassifier(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """What classifiers share whose predictions are counted: the score and logarithms of probabilities."""

    score_epsilon: Any = None

    def predict_log_proba(self, X: Any) -> Floats:  # noqa: N803
        return np.asarray(np.log(self.predict_proba(X)))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """The share of right predictions: exact and not private without a ledger; with one a charged, noisy count."""
        if self.ledger is None:
            return float(super().score(X, y, sample_weight=sample_weight))
        refuse({"sample_weight": sample_weight})
        return charged_accuracy(self, X, y)


@dataclass(kw_only=True, repr=False, eq=False)
class LogisticRegression(PrivateClassifier):
    """Logistic regression under differential privacy, with two classes or several (softmax).

    classes         the labels that may occur, the last is the positive one; "public" states that the labels in y are no
                    secret. Required: which labels occur is private otherwise
    cap             two classes: slopes of the loss are cut to this (`discreet.erm.losses.Logistic`); 1 is the plain
                    logistic loss, 1/2 needs half the noise
    radius          the coefficients' length is at most this; 10 / row_norm unless it is given
    score_epsilon   with a ledger: what a call of `score` may cost; it is a count of right predictions plus noise then

    The other parameters are those of LinearRegression; class_weight and warm_start are refused. Learned: coef_ of
    shape (1, d) for two classes and (classes, d) for several, intercept_, classes_, and the rest as there.

    `score` is scikit-learn's without a ledger, and not private. With a ledger it raises unless score_epsilon is set;
    GridSearchCV then charges every fit and every score, under replace-one with size=... the number of rows. Its folds
    must be chosen by position: cv=KFold(...), not the stratified folds that are the default for classifiers, which read
    the labels; and not under add-remove, where a row that is removed moves all positions.
    """

    row_norm: Any = None
    classes: Any = None
    cap: Any = 0.5
    radius: Any = None
    fit_intercept: bool = True
    ridge: Any = 0
    lasso: Any = 0
    method: str = "auto"
    max_iter: int | None = None
    class_weight: Any = None
    warm_start: bool = False

    def fit(self, X: Any, y: Any, *, features: Any = None, **refused: Any) -> LogisticRegression:  # noqa: N803
        """Fit to arrays or a frame (X, y), or to a table and the name of its target column."""
        refuse({**refused, "class_weight": self.class_weight, "warm_start": self.warm_start})
        terms = terms_of(self)
        binary = Logistic(exact.positive(cap=self.cap))
        rows = class_rows(self, terms, X, y, features, intercept=flag(self, "fit_intercept"))
        radius = 10 / rows.norm if self.radius is None else exact.moderate(radius=self.radius)
        several = len(self.classes_)
        w = _solved(self, terms, rows, binary if several == 2 else Softmax(several), radius)
        table = w.reshape(1 if several == 2 else several, -1)
        self.coef_ = table[:, : rows.width]
        self.intercept_ = np.array([_intercept(self, each, rows) for each in table])
        _name_features(self, rows)
        return self

    def decision_function(self, X: Any) -> Floats:  # noqa: N803
        """The margin of the positive class, or one for each class."""
        check_is_fitted(self, "coef_")
        margins = predicted_vectors(self, X) @ self.coef_.T + self.intercept_
        return np.asarray(margins.ravel() if len(self.classes_) == 2 else margins)

    def predict(self, X: Any) -> Any:  # noqa: N803
        """The class of each row: any rows, this is no release about them."""
        margins = self.decision_function(X)
        codes = (margins > 0).astype(np.int64) if margins.ndim == 1 else margins.argmax(axis=1)
        return self.classes_[codes]

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """The probability of each class at which the margins minimise the expected loss."""
        margins = self.decision_function(X)
        if margins.ndim == 2:
            return Softmax(len(self.classes_)).probability(margins)
        positive = self.mechanism_.risk.loss.probability(margins)
        return np.column_stack([1 - positive, positive])


# What the two share.


def _regression_loss(huber: Any, bound: Fraction) -> Loss:
    if huber is None:
        return Squared()
    if isinstance(huber, str) and huber == "auto":
        return Huber(bound / 2)
    return Huber(min(exact.positive(huber=huber), 5 * bound))  # no prediction misses by more at the default radius


def _target_range(bound: Any, *, centred: bool) -> tuple[Fraction, Fraction]:
    """The middle of the declared range, which an intercept can take, and the largest distance from it."""
    if bound is None:
        raise ParameterError(
            "target_bound must be given: a number Y for targets in [-Y, Y], or a pair (low, high), from public "
            "knowledge; targets beyond it are moved to it"
        )
    if not isinstance(bound, (tuple, list)):
        return Fraction(0), exact.moderate(target_bound=bound)
    low, high = bounds_of("target_bound", bound)
    return ((low + high) / 2, (high - low) / 2) if centred else (Fraction(0), max(abs(low), abs(high)))


def _declared_bound(estimator: Any, rows: Rows) -> Fraction:
    if estimator.target_bound is not None:
        raise ParameterError("target_bound belongs to arrays; the target's declaration in the table has its bounds")
    column = rows.data.facts.domain.column(rows.target)
    if not column.bounded:
        raise ParameterError(f"the target {rows.target!r} is declared {column!r}: regression needs a Number")
    return column.magnitude


def _regularizer(estimator: Any, share: Fraction) -> Ridge | Lasso | None:
    """The penalty of the mean over the rows that are here; sums are divided by the size of the whole table."""
    ridge, lasso = exact.nonnegative(ridge=estimator.ridge), exact.nonnegative(lasso=estimator.lasso)
    if ridge and lasso:
        raise ParameterError(f"ridge and lasso cannot be combined, found {estimator.ridge!r} and {estimator.lasso!r}")
    return Ridge(ridge * share) if ridge else Lasso(lasso * share) if lasso else None


def _solved(estimator: Any, terms: Terms, rows: Rows, loss: Loss, radius: Fraction) -> Floats:
    """Choose a mechanism by public numbers, charge it and run it."""
    share = share_of(rows.data)
    risk = Risk(loss, rows.features, rows.target, Ball(radius), _regularizer(estimator, share))
    fit, facts = Task.of(terms, rows.data, about=rows.about), rows.data.facts
    steps = None if estimator.max_iter is None else exact.whole(max_iter=estimator.max_iter)
    listed = methods(risk, facts, fit.funds, steps=steps, share=share)
    got = fit.learn(estimator, choose(listed, estimator.method, facts.size))
    estimator.n_iter_ = getattr(got.mechanism, "steps", 1)
    estimator.encoding_ = rows.encoding
    return np.asarray(got.value, dtype=np.float64)


def _intercept(estimator: Any, w: Floats, rows: Rows) -> float:
    return float(w[rows.width]) * float(rows.norm / 2) if estimator.fit_intercept else 0.0


def _name_features(estimator: Any, rows: Rows) -> None:
    """For tables: what the coefficients are about, and the coefficients on the columns' own scale."""
    if rows.encoding is None:
        return
    stretch, shift = rows.encoding.scales.T
    estimator.feature_names_out_ = np.array(rows.encoding.names, dtype=object)
    estimator.original_coef_ = estimator.coef_ * stretch
    estimator.original_intercept_ = estimator.intercept_ + estimator.coef_ @ shift
