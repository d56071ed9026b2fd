"""What the learners of rules share: labelled rows, one method chosen by public numbers, one charge, a rule in words.

A fit is: read the rows and the declarations (whatever is wrong is said here, before the charge), list the methods with
their proven sizes, take one by public numbers alone, charge it, run it, and keep the rule. A rule knows the declared
columns, so it predicts for any rows, and that is no release about them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from discreet import exact
from discreet.data import (
    Batch,
    BitMatrix,
    Category,
    Dataset,
    Domain,
    Facts,
    Floats,
    Frame,
    Mask,
    Number,
    Table,
    encode,
    packed,
    read,
)
from discreet.errors import ParameterError, SchemaError
from discreet.estimators import input as reading
from discreet.estimators.base import FitGuarantee, Terms, books, charged, refuse, released, terms_of
from discreet.estimators.supervised import random_fit
from discreet.funds import Funds
from discreet.guarantee import Budget, Neighbours
from discreet.mechanisms import Laplace
from discreet.pac.methods import USELESS, Method, Offer, Promise, Refused, named
from discreet.pac.mistake_bound import bound_in_words, bound_of, noisy_mistakes
from discreet.pac.rules import Labels, Mistakes, Rule

STEPS = 10**5
"""Grid steps between the bounds of a feature that comes from an array: round decimals, and about 2^17 values."""


@dataclass(frozen=True, slots=True)
class LearnedRule:
    """A rule that was learned: prints as a sentence, says of any rows whether it holds.

    domain  the declared columns that it speaks about
    """

    rule: Rule
    domain: Domain
    sentence: str

    def holds(self, batch: Batch) -> Mask:
        return self.rule.mask(batch)

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True, slots=True)
class Examples:
    """Private labelled rows. columns: the features' names in the domain; names: what sentences call them, if not so;
    table: whether they are those of a table, and not of arrays."""

    data: Dataset
    columns: tuple[str, ...]
    labels: Labels
    names: tuple[str, ...] | None = None
    table: bool = False

    @property
    def about(self) -> Any:
        """Of a table: which of its columns are learned from what; None of arrays."""
        return [self.columns, self.labels] if self.table else None

    @property
    def facts(self) -> Facts:
        return self.data.facts

    @property
    def features(self) -> Domain:
        """The declaration of the features alone."""
        return self.facts.domain.project(self.columns)


Methods = list[Method | Refused]


def learned(
    estimator: Any,
    terms: Terms,
    rows: Examples,
    methods: Callable[[Funds], Methods],
    auto: Callable[[Methods], Offer],
    told: Callable[[Any], None] = lambda mechanism: None,
) -> Any:
    """Take a method by public numbers alone, charge it and run it: what it returned. Sets what is public about it.

    told  is called with the mechanism before the charge
    """
    name, where = exact.text(method=estimator.method), books(terms, rows.data, about=rows.about)
    offered = methods(where.funds)
    offer = auto(offered) if name == "auto" else named(offered, name).offer(rows.facts.size)
    told(offer.mechanism)
    got = charged(estimator, terms, where, offer.mechanism, rows.data)
    estimator.method_ = offer.method
    estimator.promise_ = of_part(offer.promise, rows.data)
    return got.value


def wanted(alpha: Any) -> float | None:
    """The error that is asked for as a promise, if one is."""
    return None if alpha is None else float(exact.probability(alpha=alpha))


def of_part(promise: Promise, data: Dataset) -> Promise:
    """A promise about so many wrong rows of a whole table, as one about the part of it that is here.

    Under add-remove it holds if there are as many rows as the declared size, and says so.
    """
    share = reading.share_of(data)
    if promise.alpha is None:
        return promise
    if promise.alpha > USELESS * share:
        return replace(promise, alpha=None, reason="too few of the table's rows are here")
    if data.facts.neighbours.replace_one:
        return replace(promise, alpha=float(promise.alpha / share))
    enough = f"there are {data.facts.size:,} rows or more"
    return replace(promise, assuming=f"{promise.assuming} and {enough}" if promise.assuming else enough)


# Reading labelled rows.


def number_examples(estimator: Any, terms: Terms, x: Any, y: Any, *, reset: bool = True) -> Examples:
    """Arrays or a frame of numbers, clamped to the declared bounds and put on the declared grid."""
    features, labels, target = _arrays(estimator, x, y, reset=reset)
    numbers = declared_numbers(estimator.bounds, estimator.step, features.shape[1])
    names = feature_names(estimator, features.shape[1])
    name = _unused("y", names)
    domain = Domain({**dict(zip(names, numbers, strict=True)), name: target})
    columns = {**dict(zip(names, _finite(features).T, strict=True)), name: labels}
    data = reading.held(
        terms,
        len(features),
        lambda size: Table(columns, domain, neighbours=terms.neighbours, size=size, name=terms.name, edition=None),
    )
    return Examples(data, names, Labels(name, target.levels[-1]))


def bit_examples(
    estimator: Any,
    terms: Terms,
    x: Any,
    y: Any,
    *,
    reset: bool = True,
    bits: Callable[[Floats], npt.NDArray[np.bool_]] | None = None,
) -> Examples:
    """Arrays or a frame of booleans, packed; or the booleans that `bits` makes of the rows, one row at a time."""
    features, labels, target = _arrays(estimator, x, y, reset=reset)
    floats = _finite(features)
    booleans = floats if bits is None else bits(floats)
    data = reading.held(
        terms,
        len(features),
        lambda size: BitMatrix(
            booleans, labels, target=target, neighbours=terms.neighbours, size=size, name=terms.name
        ),
    )
    named = hasattr(estimator, "feature_names_in_")
    names = feature_names(estimator, features.shape[1]) if named else None
    return Examples(data, ("x",), Labels("y", target.levels[-1]), names)


@dataclass(frozen=True, slots=True)
class Kind:
    """Which declared columns a learner takes as features."""

    takes: Callable[[Any], bool]
    words: str


NUMBERS = Kind(lambda column: isinstance(column, Number), "a Number")
BOOLEANS = Kind(
    lambda column: isinstance(column, Category) and column.size == 2,
    "a Category of two levels, the second meaning true",
)
ANY = Kind(lambda column: isinstance(column, (Number, Category)), "a Number or a Category")


def table_examples(
    estimator: Any, terms: Terms, table: Any, target: Any, features: Any, kind: Kind, *, reset: bool = True
) -> Examples:
    """Columns of a table: those that are named, or all but the target that are of this kind."""
    data = reading.checked_table(table, terms)
    for parameter in ("bounds", "step"):
        if getattr(estimator, parameter, None) is not None:
            raise ParameterError(f"{parameter} belongs to arrays; the table declares its columns' own")
    name, columns = reading.table_columns(data, target, features)
    declared = data.facts.domain
    if features is None:
        columns = tuple(each for each in columns if kind.takes(declared.column(each)))
        if not columns:
            raise ParameterError(f"no column of the table but the target is {kind.words}")
    for each in columns:
        if not kind.takes(declared.column(each)):
            raise ParameterError(f"column {each!r} is declared {declared.column(each)!r}: it must be {kind.words}")
    found, category = _declared_classes(estimator.classes if reset else estimator.classes_, declared, name)
    if reset:
        estimator.classes_, estimator.n_features_in_ = found, len(columns)
        estimator.feature_names_in_ = np.array(columns, dtype=object)
    return Examples(data, columns, Labels(name, category.levels[-1]), table=True)


def _arrays(estimator: Any, x: Any, y: Any, *, reset: bool) -> tuple[npt.NDArray[Any], npt.NDArray[Any], Category]:
    least = 1 if Neighbours.of(estimator.neighbours).replace_one else 0  # under add-remove nobody is an ordinary table
    features, labels = reading.arrays(estimator, x, y, numeric=False, reset=reset, least=least)
    if not reset:
        return features, labels, two_classes(estimator.classes_, None)[1]
    if isinstance(estimator.classes, str):
        check_classification_targets(labels)
    estimator.classes_, target = two_classes(estimator.classes, labels)
    return features, labels, target


def _finite(features: npt.NDArray[Any]) -> Floats:
    floats = features.astype(np.float64, copy=False)
    if not np.isfinite(floats).all():
        raise ParameterError("X holds NaN or infinite numbers")
    return np.asarray(floats)


def two_classes(classes: Any, y: npt.NDArray[Any] | None) -> tuple[npt.NDArray[Any], Category]:
    """The two classes in order, the last is the positive one."""
    found, category = reading.class_levels(classes, y)
    if len(found) != 2:
        raise ParameterError(
            f"Only binary classification is supported. Name two classes, the last is the positive one; found "
            f"{len(found)}"
        )
    return found, category


def _declared_classes(given: Any, domain: Domain, target: str) -> tuple[npt.NDArray[Any], Category]:
    """The classes that a table declares for the target, if they are those that were given."""
    column = domain.column(target)
    if not isinstance(column, Category):
        raise ParameterError(f"the target {target!r} is declared {column!r}: classes need a Category")
    found, category = two_classes(column.levels, None)
    stated = given is None or (isinstance(given, str) and given == "public")
    if not stated and two_classes(given, None)[1].levels != category.levels:
        raise ParameterError(f"classes={given!r} are not those that the table declares: {list(column.levels)!r}")
    return found, category


def feature_names(estimator: Any, count: int) -> tuple[str, ...]:
    """The names of a frame's columns, or x1, x2, ..."""
    named = getattr(estimator, "feature_names_in_", None)
    return tuple(f"x{place + 1}" for place in range(count)) if named is None else tuple(map(str, named))


def _unused(name: str, taken: Sequence[str]) -> str:
    return name if name not in taken else _unused(f"{name}_", taken)


def declared_numbers(bounds: Any, step: Any, count: int) -> list[Number]:
    """One Number for each feature: from one pair for all of them or a list of pairs, and one step or a list."""
    if bounds is None:
        raise ParameterError(
            "bounds must be given: one pair (low, high) for all features or a list of pairs, from public knowledge; "
            "values beyond are moved to the bound"
        )
    pairs = _pairs(bounds, count)
    steps = _listed("step", step, count) if isinstance(step, (list, tuple, np.ndarray)) else [step] * count
    return [_number(low, high, each) for (low, high), each in zip(pairs, steps, strict=True)]


def _pairs(bounds: Any, count: int) -> list[tuple[Fraction, Fraction]]:
    several = isinstance(bounds, (list, tuple, np.ndarray)) and any(
        isinstance(each, (list, tuple, np.ndarray)) for each in bounds
    )
    listed = _listed("bounds", bounds, count) if several else [bounds] * count
    return [reading.bounds_of("bounds", each) for each in listed]


def _listed(name: str, values: Any, count: int) -> list[Any]:
    found = list(values)
    if len(found) != count:
        raise ParameterError(f"{name} must be one for all features or one for each of {count}, found {len(found)}")
    return found


def _number(low: Fraction, high: Fraction, step: Any) -> Number:
    return Number(low, high, step=(high - low) / STEPS if step is None else exact.positive(step=step))


# Rows for a prediction.


def seen(estimator: Any, x: Any, domain: Domain, *, named: bool) -> Batch:
    """Rows for a prediction, encoded by the declaration: of a frame by name, or of an array by position."""
    if named:
        return _frame_batch(x, domain)
    features = reading.features_only(estimator, x)
    codes = {
        name: encode(read(column, name), domain.column(name), name)
        for name, column in zip(domain.names, features.T, strict=True)
    }
    return Batch(domain, len(features), codes.__getitem__)


def seen_bits(estimator: Any, x: Any, domain: Domain) -> Batch:
    """Rows of booleans for a prediction."""
    features = reading.features_only(estimator, x)
    if not np.isin(features, (0, 1)).all():
        raise ParameterError("the features must be booleans, or numbers that are 0 or 1; found another value")
    words = packed((features == 1).T)
    return Batch(domain, len(features), lambda name: words)


def _frame_batch(source: Any, domain: Domain) -> Batch:
    if isinstance(source, np.ndarray):
        raise ParameterError("this model was fitted on named columns: give a frame or a dict of columns")
    frame = Frame(source)
    Frame.require(frame.names, domain.names)
    codes = {name: encode(frame[name], domain.column(name), name) for name in domain.names}
    if len({len(each) for each in codes.values()}) > 1:
        raise SchemaError("the columns are not equally long")
    return Batch(domain, len(codes[domain.names[0]]), codes.__getitem__)


# What a fitted model does.


class RuleMixin(ClassifierMixin):  # type: ignore[misc]
    """What a learner of a rule does once it is fitted; the rule is `rule_`.

    The learner brings `_examples`, which reads private rows as its fit did, and may read rows for a prediction in its
    own way (`_seen`).
    """

    def predict(self, X: Any) -> Any:  # noqa: N803
        """The class of each row, the last one where the rule holds: any rows, this is no release about them."""
        check_is_fitted(self, "rule_")
        return self.classes_[self.rule_.holds(self._seen(X)).astype(np.int64)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """The share of right predictions: exact and not private without a ledger; with one a charged, noisy count."""
        if self.ledger is None:
            return float(super().score(X, y, sample_weight=sample_weight))
        check_is_fitted(self, "rule_")
        refuse({"sample_weight": sample_weight})
        return charged_score(self, lambda terms: self._judged(terms, X, y))

    def certify(self, X: Any, y: Any, *, epsilon: Any, beta: Any = 0.05) -> Certified:  # noqa: N803
        """Pay epsilon for a bound on the rule's mistakes on private rows; charged to the ledger, if there is one."""
        check_is_fitted(self, "rule_")
        return certified(self, lambda terms: self._judged(terms, X, y), epsilon=epsilon, beta=beta)

    def _seen(self, x: Any) -> Batch:
        return seen(self, x, self.rule_.domain, named=self.from_table_)

    def _judged(self, terms: Terms, x: Any, y: Any) -> Examples:
        """Private rows that the rule is judged by: declared as those of the fit were."""
        if reading.is_table(x) != self.from_table_:
            kind = "a table is judged on a table" if self.from_table_ else "arrays is judged on arrays"
            raise ParameterError(f"a model that was fitted from {kind}")
        features = list(self.feature_names_in_) if self.from_table_ else None
        rows: Examples = self._examples(terms, x, y, features, reset=False)
        if rows.features != self.rule_.domain:
            raise ParameterError("these columns are not declared as those that the model was fitted to")
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return random_fit(tags)


def charged_score(estimator: Any, read_rows: Callable[[Terms], Examples]) -> float:
    """The share of right predictions on private rows: a count of mistakes plus Laplace noise, charged."""
    if estimator.score_epsilon is None:
        raise ParameterError(
            "score looks at private rows and this model has a ledger: set score_epsilon for a charged, noisy count of "
            "right predictions, call certify, or score on public rows with sklearn.metrics"
        )
    epsilon, terms = exact.positive(score_epsilon=estimator.score_epsilon), terms_of(estimator)
    assert terms.ledger is not None
    relation = terms.ledger.identity.neighbours
    if not relation.replace_one or relation.rows > 1:
        raise ParameterError("a charged score needs a public number of rows: replace-one, with one row a person")
    rows = read_rows(terms)
    assert rows.facts.size is not None
    mechanism = Laplace(Mistakes(estimator.rule_.rule, rows.labels), 1 / epsilon)
    got, _ = released(mechanism, rows.data, terms, table=rows.table, memo="score")
    count = float(rows.facts.size * reading.share_of(rows.data))
    return float(np.clip(1 - got.value / count, 0.0, 1.0))


@dataclass(frozen=True, slots=True)
class Certified:
    """A paid bound on the mistakes of a rule on private rows, whatever the rows are.

    mistakes  the noisy number of mistakes, which may be below zero
    rows      no more rows are labelled wrong, with probability 1 - beta
    error     the same as a share of the rows; None if their number is private
    """

    mistakes: int
    rows: int
    error: float | None
    beta: float
    guarantee: FitGuarantee
    entry: int | None
    replayed: bool = False

    def __str__(self) -> str:
        return f"{bound_in_words(self.rows, self.error, self.beta)}. Cost: {self.guarantee}"


def certified(estimator: Any, read_rows: Callable[[Terms], Examples], *, epsilon: Any, beta: Any) -> Certified:
    """Release a bound on the number of mistakes, for epsilon: from the ledger or, without one, priced alone."""
    terms, budget = terms_of(estimator), Budget(exact.positive(epsilon=epsilon))
    allowed, rows = exact.probability(beta=beta), read_rows(terms)
    mechanism = noisy_mistakes(estimator.rule_.rule, rows.labels, epsilon=budget.epsilon, facts=rows.facts)
    found, book = released(mechanism, rows.data, terms, table=rows.table, memo="certificate", alone=budget)
    got = bound_of(found, mechanism, rows.facts, beta=allowed)
    entry = None if terms.ledger is None else got.entry
    share = reading.share_of(rows.data)
    several = rows.facts.neighbours.rows > 1  # then the number of rows is private
    error = None if got.error is None or several else min(1.0, float(got.error / share))
    guarantee = FitGuarantee.of(got, budget, terms, book, "certificate")
    return Certified(got.mistakes, got.rows, error, float(allowed), guarantee, entry, found.replayed)
