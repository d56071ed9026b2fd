"""Linear models: least squares, and logistic regression with two or several classes.

A row x is projected to length row_norm and a target to its bound, by public rules; the model is then the solution of
one problem, `discreet.erm.risk`, found by one mechanism of `discreet.erm.solvers`. No mathematics is here.

The intercept is one more feature, constantly row_norm / 2; so rows have length row_norm * sqrt(5) / 2 at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from discreet.core import ParameterError, exact
from discreet.data import Floats, Number
from discreet.erm import Ball, CentredHuber, CentredSquared, Huber, Lasso, Logistic, Loss, Ridge, Risk, Softmax, Squared
from discreet.erm.ranged import RangedFeatures
from discreet.erm.solvers import RELEASING, SCALED, methods, settled
from discreet.estimators import input as reading
from discreet.estimators import model_file
from discreet.estimators.base import PrivateEstimator, Task, Terms, refuse, require_parameters, terms_of
from discreet.estimators.input import Rows
from discreet.estimators.selection import charged_accuracy
from discreet.method import choose

AUTO = "auto"
"""By public numbers: the value of `huber` and `cap` unless they are given."""


@dataclass(kw_only=True, repr=False, eq=False)
class LinearModel(PrivateEstimator):
    """What the linear models share: parameters, and the solution of a problem."""

    row_norm: Any = None
    radius: Any = None
    fit_intercept: bool = True
    ridge: Any = 0
    lasso: Any = 0
    method: str = "auto"
    max_iter: int | None = None

    def _solve(self, terms: Terms, rows: Rows, loss: Loss, unit: Fraction) -> tuple[Floats, Any]:
        """Choose a mechanism by public numbers, charge it and run it: what it released, and the loss that was taken.

        unit: what the radius is a multiple of.

        The penalty is that of the mean over the rows that are here; sums are divided by the size of the whole table.
        """
        share, facts = reading.share_of(rows.data), rows.data.facts
        ridge, lasso = exact.nonnegative(ridge=self.ridge), exact.nonnegative(lasso=self.lasso)
        if ridge and lasso:
            raise ParameterError(f"ridge and lasso cannot be combined, found {self.ridge!r} and {self.lasso!r}")
        penalty = Ridge(ridge * share) if ridge else Lasso(lasso * share) if lasso else None
        fit = Task.of(terms, rows.data, about=rows.about)
        seconds, cut = rows.data.offers.pass_seconds, AUTO in (getattr(self, "huber", None), getattr(self, "cap", None))
        radius = None if self.radius is None else exact.moderate(radius=self.radius)
        risk = Risk(loss, rows.features, rows.target, Ball(unit), penalty)
        risk = settled(risk, facts, fit.funds, seconds, radius=radius, cut=cut)
        steps = None if self.max_iter is None else exact.whole(max_iter=self.max_iter)
        free = radius is None and cut and self.fit_intercept
        listed = methods(risk, facts, fit.funds, steps=steps, share=share, pass_seconds=seconds, free=free)
        got = fit.learn(self, choose(listed, self.method, facts.size))
        self.n_iter_, self.encoding_ = getattr(got.mechanism, "steps", 1), rows.encoding
        value = np.asarray(got.value, dtype=np.float64)
        if isinstance(got.mechanism, RangedFeatures) and rows.encoding is not None:
            features = got.mechanism.features(value).without_intercept()
            self.encoding_ = reading.Encoding(rows.encoding.domain, features)
            value = value[2 * len(features.ranges) :]
        return value, risk.loss

    def _keep(self, coef: Floats, intercept: Any, rows: Rows) -> None:
        """Set the coefficients; for tables also what they are about, and those on the columns' own scale."""
        self.coef_, self.intercept_ = coef, intercept
        self._rescale()

    def _rescale(self) -> None:
        if self.encoding_ is not None:
            stretch, shift = self.encoding_.scales.T
            self.feature_names_out_ = np.array(self.encoding_.names, dtype=object)
            self.original_coef_ = self.coef_ * stretch
            self.original_intercept_ = self.intercept_ + self.coef_ @ shift

    def _learned_state(self) -> model_file.State:
        several = np.ndim(self.intercept_) > 0
        cap = getattr(self.loss_, "cap", 1) if several else None  # of several classes: softmax, which has none
        return {
            "coefficients": self.coef_.tolist(),
            "intercept": self.intercept_.tolist() if several else float(self.intercept_),
            "steps": self.n_iter_,
            "encoding": None if self.encoding_ is None else self.encoding_.record(),
            **({"classes": model_file.labels(self.classes_), "cap": str(cap)} if several else {}),
        }

    def _restore_learned(self, state: object) -> None:
        classifier = hasattr(self, "classes")
        names = ("coefficients", "intercept", "steps", "encoding", *(("classes", "cap") if classifier else ()))
        found = model_file.keys(state, *names)
        self.encoding_ = model_file.optional(found["encoding"], reading.Encoding.from_record)
        self.n_iter_ = model_file.count(found["steps"], 1)
        width = self.n_features_in_ if self.encoding_ is None else len(self.encoding_.names)
        outputs: tuple[int, ...] = ()
        if classifier:
            self.classes_ = model_file.labels_from(found["classes"])
            outputs = (1 if len(self.classes_) == 2 else len(self.classes_),)
            self.loss_ = Logistic(exact.positive(cap=model_file.text(found["cap"])))
        self.coef_ = model_file.floats(found["coefficients"], *outputs, width)
        intercept = model_file.floats(found["intercept"], *outputs)
        self.intercept_ = intercept if outputs else float(intercept)
        self._rescale()


@dataclass(kw_only=True, repr=False, eq=False)
class LinearRegression(RegressorMixin, LinearModel):  # type: ignore[misc]
    """Linear regression under differential privacy.

    Everything that decides privacy is given, never read from the rows:

    epsilon, delta  what the fit may cost; delta=0 is pure. epsilon=None with a ledger: all that is left there
    row_norm        rows longer than this are scaled down to it. Scale features by declared bounds first
                    (`DeclaredScaler`): d features in [-1, 1] have norm at most sqrt(d)
    target_bound    a number Y for targets in [-Y, Y], or a pair (low, high); targets beyond are moved to the bound
    radius          how long the coefficients are thought to be, at most: what the promise compares with; all methods
                    but objective and moments keep it. Chosen for the model by public numbers unless it is given
    fit_intercept   whether there is one
    ridge, lasso    strength of the penalty (strength / 2) |w|^2 or strength |w|_1; at most one of them
    huber           the loss is the squared miss up to this size and a line beyond, which bounds every gradient; "auto"
                    is a quarter of the bound of the target, up to all of it the less noise matters; unless the radius
                    is given, a narrower range of the target may be released first, whose bound it is then. None: the
                    squared loss
    method          "auto": what learns best by public numbers (`discreet.erm.solvers.preferred`); or a name of
                    `discreet.erm.solvers.SOLVERS`, or "ranged", "scaled" or
                    "constant"
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
    row_norm is the root of the number of columns. coef_ is then about the scaled features `feature_names_out_`
    (method_ "scaled": numbers are cut to ranges that were released before, and so they are where it predicts);
    original_coef_ and original_intercept_ about the columns' own values. A program that is run again gets the stored
    model of its first run, free, and replayed_ is True (`discreet.estimators.replay`).

    `score` is scikit-learn's, and not private: on the rows of the fit it is an unpaid release. With a ledger it raises.
    """

    KIND: ClassVar[str] = "linear"
    NEEDS: ClassVar[tuple[str, ...]] = ("row_norm", "target_bound")

    target_bound: Any = None
    huber: Any = AUTO

    def fit(self, X: Any, y: Any, *, features: Any = None, **refused: Any) -> LinearRegression:  # noqa: N803
        """Fit to arrays or a frame (X, y), or to a table and the name of its target column."""
        refuse(refused)
        require_parameters(self, table=reading.is_table(X))
        terms = terms_of(self)
        offset, intercept = Fraction(0), reading.flag(self, "fit_intercept")
        if reading.is_table(X):
            rows = reading.table_rows(self, terms, X, y, features, intercept=intercept)
            if self.target_bound is not None:
                raise ParameterError(
                    "target_bound belongs to arrays; the target's declaration in the table has its bounds"
                )
            column = rows.data.facts.domain.column(rows.target)
            if not column.bounded:
                raise ParameterError(f"the target {rows.target!r} is declared {column!r}: regression needs a Number")
            if intercept:
                offset, bound = (column.low + column.high) / 2, (column.high - column.low) / 2
            else:
                bound = column.magnitude
            loss = self._loss(bound, offset)
        else:
            reading.refuse_features(features)
            offset, bound = _target_range(self.target_bound, centred=intercept)
            target = Number(-bound, bound, step=2 * bound / reading.GRID)
            rows, loss = reading.numbered_rows(self, terms, X, y, target, offset), self._loss(bound, Fraction(0))
        w, _ = self._solve(terms, rows, loss, bound / rows.norm)
        middle = float(offset)
        if self.method_ in (*RELEASING, SCALED):  # what was released comes first; arrays have lost their offset before
            middle = float(w.ravel()[0]) + (0.0 if reading.is_table(X) else middle)
            w = w.ravel()[1:] if w.size > 1 else np.zeros(rows.width)
        self._keep(w[: rows.width], float(w[rows.width :].sum()) * float(rows.norm / 2) + middle, rows)
        return self

    def _loss(self, bound: Fraction, offset: Fraction) -> Loss:
        """offset: what is subtracted from the targets of a table; those of arrays have lost it already."""
        if self.huber is None:
            return CentredSquared(offset) if offset else Squared()
        threshold = bound / 4 if self.huber == AUTO else min(exact.positive(huber=self.huber), 5 * bound)
        return CentredHuber(threshold, offset) if offset else Huber(threshold)

    def predict(self, X: Any) -> Floats:  # noqa: N803
        """The predicted targets of rows: any rows, this is no release about them."""
        check_is_fitted(self, "coef_")
        return np.asarray(reading.predicted_vectors(self, X) @ self.coef_ + self.intercept_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """R squared. Not private: on the rows of the fit it is an unpaid release; with a ledger it is refused."""
        if self.ledger is not None or getattr(self, "exported_", False):
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
        if self.ledger is None and not getattr(self, "exported_", False):
            return float(super().score(X, y, sample_weight=sample_weight))
        refuse({"sample_weight": sample_weight})
        return charged_accuracy(self, X, y)


@dataclass(kw_only=True, repr=False, eq=False)
class LogisticRegression(PrivateClassifier, LinearModel):
    """Logistic regression under differential privacy, with two classes or several (softmax).

    classes         the labels that may occur, the last is the positive one; "public" states that the labels in y are no
                    secret. Required: which labels occur is private otherwise
    cap             two classes: slopes of the loss are cut to this (`discreet.erm.losses.Logistic`); 1 is the plain
                    logistic loss, 1/2 needs half the noise; "auto" is 1/2, up to 1 the less noise matters
    radius          as for LinearRegression
    score_epsilon   with a ledger: what a call of `score` may cost; it is a count of right predictions plus noise then

    The other parameters are those of LinearRegression; class_weight and warm_start are refused. Learned: coef_ of
    shape (1, d) for two classes and (classes, d) for several, intercept_, classes_, and the rest as there.

    `score` is scikit-learn's without a ledger, and not private. With a ledger it raises unless score_epsilon is set;
    GridSearchCV then charges every fit and every score, under replace-one with size=... the number of rows. Its folds
    must be chosen by position: cv=KFold(...), not the stratified folds that are the default for classifiers, which read
    the labels; and not under add-remove, where a row that is removed moves all positions.
    """

    KIND: ClassVar[str] = "logistic"
    NEEDS: ClassVar[tuple[str, ...]] = ("row_norm", "classes")

    classes: Any = None
    cap: Any = AUTO
    class_weight: Any = None
    warm_start: bool = False

    def fit(self, X: Any, y: Any, *, features: Any = None, **refused: Any) -> LogisticRegression:  # noqa: N803
        """Fit to arrays or a frame (X, y), or to a table and the name of its target column."""
        refuse({**refused, "class_weight": self.class_weight, "warm_start": self.warm_start})
        require_parameters(self, table=reading.is_table(X))
        terms = terms_of(self)
        binary = Logistic(Fraction(1, 2) if self.cap == AUTO else exact.positive(cap=self.cap))
        rows = reading.class_rows(self, terms, X, y, features, intercept=reading.flag(self, "fit_intercept"))
        several = len(self.classes_)
        w, self.loss_ = self._solve(terms, rows, binary if several == 2 else Softmax(several), 1 / rows.norm)
        table = w.reshape(1 if several == 2 else several, -1)
        self._keep(table[:, : rows.width], table[:, rows.width :].sum(axis=1) * float(rows.norm / 2), rows)
        return self

    def decision_function(self, X: Any) -> Floats:  # noqa: N803
        """The margin of the positive class, or one for each class."""
        check_is_fitted(self, "coef_")
        margins = reading.predicted_vectors(self, X) @ self.coef_.T + self.intercept_
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
        positive = self.loss_.probability(margins)
        return np.column_stack([1 - positive, positive])


def _target_range(bound: Any, *, centred: bool) -> tuple[Fraction, Fraction]:
    """The middle of the declared range, which an intercept can take, and the largest distance from it."""
    if bound is None:
        raise ParameterError(
            "target_bound must be given: a number Y for targets in [-Y, Y], or a pair (low, high), from public "
            "knowledge; targets beyond it are moved to it"
        )
    if not isinstance(bound, (tuple, list)):
        return Fraction(0), exact.moderate(target_bound=bound)
    low, high = reading.bounds_of("target_bound", bound)
    return ((low + high) / 2, (high - low) / 2) if centred else (Fraction(0), max(abs(low), abs(high)))
