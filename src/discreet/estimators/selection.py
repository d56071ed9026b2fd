"""Choose among fitted models by private rows, for one charge.

A candidate is a public rule that predicts for a row; its score is a sum over rows of bounded integers: right
predictions, or minus the clamped squared misses. The exponential mechanism then prefers high scores. What a row adds
depends on that row and on the public rules alone:

    LinearRule   our linear models: integer weights, so margins of integer rows are exact integers
    ModelRule    any other fitted model: it is asked for one row at a time, so no row sees another. Slow, and the owner
                 vouches that `predict` does not remember earlier rows

The rows are those of the integer grid: projected to row_norm, so beyond it a candidate is judged on the projected row.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from discreet import exact
from discreet.data import Batch, Dataset, Facts, IntArray
from discreet.domain import Category, Domain, Number, Vector
from discreet.erm.features import STEPS, Declared, VectorColumn
from discreet.errors import ParameterError
from discreet.estimators import rows as reading
from discreet.estimators.base import FitGuarantee, Terms, books, terms_of
from discreet.estimators.rows import Floats
from discreet.mechanism import calibrate
from discreet.mechanisms.additive import Laplace
from discreet.mechanisms.selection import Exponential
from discreet.query import Sensitivity, of_persons
from discreet.release import release

_FINE = 2**30  # the longest row of integer weights: times rows of 2^15 every sum of products is below 2^53
_BLOCK = 2**17


@dataclass(frozen=True, slots=True)
class LinearRule:
    """Margins <weights, x> + bias in integers, one for each class (or one for two classes, or the predicted number).

    unit  what one integer of a weight is worth; a margin is in steps of unit * features.unit.
    """

    NAME: ClassVar[str] = "linear-rule/1"
    features: VectorColumn | Declared
    weights: tuple[tuple[int, ...], ...]
    biases: tuple[int, ...]
    unit: Fraction

    @staticmethod
    def of(model: Any, domain: Domain) -> LinearRule:
        """The rule of a fitted linear model, its coefficients rounded to 2^-30 of their length."""
        coef, intercept = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
        features = VectorColumn("x", False) if model.encoding_ is None else model.encoding_.features
        longest = float(np.sqrt((coef * coef).sum(axis=1)).max())
        unit = Fraction(2) ** math.ceil(math.log2(longest)) / _FINE if longest > 0 else Fraction(1)
        step = float(unit * features.unit(domain))
        biases = np.clip(np.rint(intercept / step), -(2.0**51), 2.0**51)
        weights = np.rint(coef / float(unit)).astype(np.int64)
        return LinearRule(features, tuple(map(tuple, weights.tolist())), tuple(int(each) for each in biases), unit)

    def classes(self, batch: Batch) -> npt.NDArray[np.int64]:
        """The code of the predicted class of every row."""
        margins = self._margins(batch)
        return (margins[:, 0] > 0).astype(np.int64) if margins.shape[1] == 1 else margins.argmax(axis=1)

    def numbers(self, batch: Batch) -> Floats:
        """The predicted number of every row."""
        found: Floats = self._margins(batch)[:, 0] * float(self.unit * self.features.unit(batch.domain))
        return found

    def _margins(self, batch: Batch) -> Floats:
        weights = np.array(self.weights, dtype=np.float64).T
        parts = [rows @ weights for rows in _blocks(self.features, batch)]
        found: Floats = np.concatenate(parts) + np.array(self.biases, dtype=np.float64)
        return found


@dataclass(frozen=True, slots=True)
class ModelRule:
    """A fitted model that predicts for one row at a time; the ledger knows its label only."""

    NAME: ClassVar[str] = "model-rule/1"
    label: str
    model: Any = field(default=None, compare=False)

    def classes(self, batch: Batch) -> npt.NDArray[np.int64]:
        """The code of the predicted class of every row; -1, never right, where the model fails."""
        codes = {label: code for code, label in enumerate(getattr(self.model, "classes_", ()))}
        return np.array([codes.get(each, -1) for each in self._predictions(batch)], dtype=np.int64)

    def numbers(self, batch: Batch) -> Floats:
        """The predicted number of every row; NaN where the model fails."""
        return np.array([math.nan if each is None else float(each) for each in self._predictions(batch)])

    def stated_record(self) -> dict[str, Any]:
        return {"name": self.NAME, "label": self.label}

    def _predictions(self, batch: Batch) -> Iterator[Any]:
        vector, rows = batch.domain.column("x"), batch["x"]
        assert isinstance(vector, Vector)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning might say something about a row
            for row in rows:
                yield self._prediction((row * float(vector.step)).reshape(1, -1))

    def _prediction(self, row: Floats) -> Any:
        try:
            found = np.asarray(self.model.predict(row)).ravel()[0]
        except Exception:
            return None  # an error would say something about this row
        return found.item() if isinstance(found, np.generic) else found


Rule = LinearRule | ModelRule


@dataclass(frozen=True, slots=True)
class RightPredictions:
    """For each rule the number of rows whose class it predicts.

    Theorem.   A row adds 0 or 1 to each of k rules. add-remove: |d|_1 <= k, |d|_2^2 <= k, |d|_inf <= 1, range <= 1.
               replace-one: the same norms, range <= 2. One rule has range 0.
    """

    NAME: ClassVar[str] = "right-predictions/1"
    rules: tuple[Rule, ...]
    target: str

    @property
    def monotone(self) -> bool:
        return True

    def partial(self, batch: Batch) -> IntArray:
        labels = batch[self.target]
        return np.array([np.count_nonzero(rule.classes(batch) == labels) for rule in self.rules], dtype=np.int64)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        if not isinstance(facts.domain.column(self.target), Category):
            raise ParameterError(f"the target {self.target!r} has no classes")
        return _sensitivity(len(self.rules), 1, facts)

    def unit(self, facts: Facts) -> Fraction:
        return Fraction(1)


@dataclass(frozen=True, slots=True)
class SmallMisses:
    """For each rule minus the sum over rows of min(1, ((prediction - target) / largest)^2), in steps of 2^-15.

    Theorem.   A row adds a number of [-S, 0], S = 2^15, to each of k rules. add-remove: |d|_1 <= k S, |d|_2^2 <= k S^2,
               |d|_inf <= S, range <= S. replace-one: the same norms, range <= 2 S. One rule has range 0.
    """

    NAME: ClassVar[str] = "small-misses/1"
    rules: tuple[Rule, ...]
    target: str
    largest: Fraction

    @property
    def monotone(self) -> bool:
        return False

    def partial(self, batch: Batch) -> IntArray:
        column = batch.domain.column(self.target)
        assert isinstance(column, Number)
        truth = batch[self.target].astype(np.float64) * float(column.step) + float(column.low)
        return np.array([-self._missed(rule.numbers(batch), truth) for rule in self.rules], dtype=np.int64)

    def _missed(self, predicted: Floats, truth: Floats) -> int:
        with np.errstate(over="ignore", invalid="ignore"):
            share = np.nan_to_num((predicted - truth) / float(self.largest), nan=1.0, posinf=1.0, neginf=-1.0)
        cut = np.clip(share, -1.0, 1.0)
        return int(np.floor(cut * cut * STEPS).astype(np.int64).sum())

    def sensitivity(self, facts: Facts) -> Sensitivity:
        if not isinstance(facts.domain.column(self.target), Number):
            raise ParameterError(f"the target {self.target!r} has no bounds")
        return _sensitivity(len(self.rules), STEPS, facts)

    def unit(self, facts: Facts) -> Fraction:
        return Fraction(1, STEPS)


@dataclass(frozen=True, slots=True)
class Selected:
    """The chosen model and what is public about the choice.

    shortfall  how much worse than the best candidate's mean score it is in expectation, at most: a share of right
               predictions, or of clamped squared misses; None if no public size is known.
    """

    model: Any
    index: int
    guarantee: FitGuarantee
    entry: int | None
    shortfall: float | None


@dataclass(frozen=True, slots=True)
class _Ask:
    """The parameters of a selection, as `terms_of` reads them."""

    epsilon: Any
    delta: Any
    ledger: Any
    neighbours: Any
    size: Any


def select(
    models: Sequence[Any] | Mapping[str, Any],
    X: Any,  # noqa: N803
    y: Any,
    *,
    epsilon: Any = None,
    delta: Any = 0,
    ledger: Any = None,
    row_norm: Any = None,
    target_bound: Any = None,
    largest_miss: Any = None,
    neighbours: Any = "replace-one",
    size: int | None = None,
) -> Selected:
    """Choose one of several fitted models by private rows: the exponential mechanism, one charge.

    models        fitted classifiers with the same classes, or fitted regressors; a list, or a dict of names
    X, y          private rows that the candidates are judged by; or a table and the name of its target column
    row_norm      arrays: rows longer than this are judged as if scaled down to it; the models' largest if not given
    target_bound  regressors on arrays: as in LinearRegression; the models' own if not given
    largest_miss  regressors: misses beyond this count as this; half the range of the target if not given

    epsilon, delta, ledger, neighbours and size are those of the estimators.
    """
    terms = terms_of(_Ask(epsilon, delta, ledger, neighbours, size))
    named = _candidates(models)
    kinds = {is_classifier(model) for model in named.values()}
    if len(kinds) > 1:
        raise ParameterError("models must be all classifiers or all regressors, found both")
    if kinds == {True}:
        data, target, _ = _class_data(list(named.values()), terms, X, y, row_norm)
        score: RightPredictions | SmallMisses = RightPredictions(_rules(named, data.facts.domain), target)
    else:
        data, target, width = _number_data(list(named.values()), terms, X, y, row_norm, target_bound)
        largest = width / 2 if largest_miss is None else exact.positive(largest_miss=largest_miss)
        score = SmallMisses(_rules(named, data.facts.domain), target, largest)
    where = books(terms, data)
    mechanism = calibrate(lambda noise: Exponential(score, 1 / noise), admits=where.admits)
    got = release(mechanism, data, ledger=where.ledger, memo="select")
    alone = terms.ledger is None
    scope = "this choice alone" if alone else f"entry {got.entry} of the ledger of {terms.name!r}"
    return Selected(
        model=list(named.values())[got.value],
        index=got.value,
        guarantee=FitGuarantee(got.guarantee, terms.budget or where.ledger.budget, scope),
        entry=None if alone else got.entry,
        shortfall=_shortfall(mechanism, data, len(named)),
    )


def charged_accuracy(model: Any, x: Any, y: Any) -> float:
    """The share of right predictions of one classifier on private rows: a count plus Laplace noise, charged."""
    if model.score_epsilon is None:
        raise ParameterError(
            "score looks at private rows and this model has a ledger: set score_epsilon for a charged, noisy count of "
            "right predictions, score on public rows with sklearn.metrics, or choose with discreet.select"
        )
    epsilon = exact.positive(score_epsilon=model.score_epsilon)
    terms = terms_of(_Ask(epsilon, 0, model.ledger, model.neighbours, model.size))
    data, target, count = _class_data([model], terms, x, y, None)
    if count is None:
        raise ParameterError("a charged score needs a public number of rows: replace-one, with one row a person")
    rules = _rules({type(model).__name__: model}, data.facts.domain)
    assert terms.ledger is not None
    got = release(Laplace(RightPredictions(rules, target), 1 / epsilon), data, ledger=terms.ledger, memo="score")
    return float(np.clip(got.value[0] / count, 0.0, 1.0))


def _sensitivity(rules: int, most: int, facts: Facts) -> Sensitivity:
    several = rules > 1
    added = Sensitivity(rules * most, rules * most**2, most, most * several)
    replaced = Sensitivity(rules * most, rules * most**2, most, 2 * most * several)
    return of_persons(facts.neighbours, added=added, replaced=replaced)


def _candidates(models: Any) -> dict[str, Any]:
    if isinstance(models, Mapping):
        named = {exact.text(name=name): model for name, model in models.items()}
    else:
        try:
            listed = list(models)
        except TypeError:
            raise ParameterError(f"models must be a list or a dict of fitted models, found {models!r}") from None
        named = {f"{place} {type(model).__name__}": model for place, model in enumerate(listed)}
    if len(named) < 2:
        raise ParameterError(f"models must be at least two, found {len(named)}")
    for model in named.values():
        check_is_fitted(model)
    return named


def _rules(named: Mapping[str, Any], domain: Domain) -> tuple[Rule, ...]:
    return tuple(_rule(name, model, domain) for name, model in named.items())


def _rule(name: str, model: Any, domain: Domain) -> Rule:
    if hasattr(model, "encoding_") and hasattr(model, "coef_"):
        return LinearRule.of(model, domain)
    return ModelRule(name, model)


def _class_data(models: list[Any], terms: Terms, x: Any, y: Any, row_norm: Any) -> tuple[Dataset, str, int | None]:
    """Rows with classes, the target's name, and the number of rows if it is public."""
    classes = [list(getattr(model, "classes_", ())) for model in models]
    if not classes[0] or any(each != classes[0] for each in classes):
        raise ParameterError("the models must have the same classes, in the same order")
    if reading.is_table(x):
        data, target = _table(models, terms, x, y)
        if list(data.facts.domain.column(target).levels) != classes[0]:  # type: ignore[union-attr]
            raise ParameterError(f"the models' classes are not those that the table declares for {target!r}")
        alone = data.facts.neighbours.replace_one and data.facts.neighbours.rows == 1
        return data, target, data.facts.size if alone else None
    features, labels = _judged(models, x, y, numeric=False)
    _, category = reading.class_levels(classes[0], None)
    made = reading.matrix(terms, features, labels, norm=_norm(models, row_norm), target=category)
    return made, "y", len(features) if terms.neighbours.replace_one else None


def _number_data(
    models: list[Any], terms: Terms, x: Any, y: Any, row_norm: Any, target_bound: Any
) -> tuple[Dataset, str, Fraction]:
    """Rows with numbers, the target's name, and the width of its declared range."""
    if reading.is_table(x):
        data, target = _table(models, terms, x, y)
        column = data.facts.domain.column(target)
        if not isinstance(column, Number):
            raise ParameterError(f"the target {target!r} is declared {column!r}: regression needs a Number")
        return data, target, column.high - column.low
    bounds = [getattr(model, "target_bound", None) for model in models] if target_bound is None else [target_bound]
    known = [reading.bounds_of("target_bound", _pair(each)) for each in bounds if each is not None]
    if not known:
        raise ParameterError("target_bound must be given: these models have none")
    low, high = min(pair[0] for pair in known), max(pair[1] for pair in known)
    features, numbers = _judged(models, x, y, numeric=True)
    declared = Number(low, high, step=(high - low) / reading.GRID)
    made = reading.matrix(terms, features, numbers, norm=_norm(models, row_norm), target=declared)
    return made, "y", high - low


def _pair(bound: Any) -> Any:
    return bound if isinstance(bound, (tuple, list)) else (-exact.positive(target_bound=bound), bound)


def _table(models: list[Any], terms: Terms, table: Any, target: Any) -> tuple[Dataset, str]:
    data = reading.checked_table(table, terms)
    if any(getattr(model, "encoding_", None) is None or not hasattr(model, "coef_") for model in models):
        raise ParameterError("on a table only linear models that were fitted from a table can be compared")
    return data, reading.table_columns(data, target, None)[0]


def _judged(models: list[Any], x: Any, y: Any, *, numeric: bool) -> tuple[Any, Any]:
    if any(getattr(model, "encoding_", None) is not None for model in models):
        raise ParameterError("models that were fitted from a table are compared on a table")
    return reading.arrays(models[0], x, y, numeric=numeric, reset=False)


def _norm(models: list[Any], row_norm: Any) -> Fraction:
    if row_norm is not None:
        return exact.positive(row_norm=row_norm)
    found = [getattr(model, "row_norm", None) for model in models]
    known = [exact.positive(row_norm=each) for each in found if each is not None]
    if not known:
        raise ParameterError("row_norm must be given: these models have none")
    return max(known)


def _shortfall(mechanism: Exponential, data: Dataset, candidates: int) -> float | None:
    if data.facts.size is None:
        return None
    rows = data.facts.size * reading.share_of(data)
    return math.log(candidates) / float(mechanism.rate * rows)


def _blocks(features: VectorColumn | Declared, batch: Batch) -> Iterator[Floats]:
    """The integer vectors of the rows as exact floats, some at a time; at least one, maybe empty, block."""
    width = features.dimension(batch.domain)
    step = max(1, _BLOCK // width)
    for start in range(0, max(batch.rows, 1), step):
        part = slice(start, min(start + step, batch.rows))
        rows = np.empty((part.stop - start, width))
        features.fill(batch, part, rows)
        yield rows
