"""What the learners of rules share: labelled rows, one method chosen by public numbers, one charge, a rule in words.

A fit is: read the rows and the declarations (whatever is wrong is said here, before the charge), list the methods with
their proven sizes, take one by public numbers alone, charge it, run it, and keep the rule. A rule knows the declared
columns, so it predicts for any rows, and that is no release about them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from discreet import exact
from discreet.data import (
    Batch,
    Dataset,
    Domain,
    Mask,
)
from discreet.errors import ParameterError
from discreet.estimators import input as reading
from discreet.estimators.base import FitGuarantee, PrivateEstimator, Task, Terms, refuse, terms_of
from discreet.estimators.input import Examples, predicted_codes, refuse_features, table_examples
from discreet.guarantee import Budget
from discreet.mechanisms import Laplace
from discreet.method import USELESS, Offer
from discreet.pac import Mistakes, Rule, bound_in_words, bound_of, noisy_mistakes


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


def wanted(alpha: Any) -> float | None:
    """The error that is asked for as a promise, if one is."""
    return None if alpha is None else float(exact.probability(alpha=alpha))


def of_part(offer: Offer, data: Dataset) -> Offer:
    """A promise about wrong rows of a whole table, as one about the part of it that is here.

    Under add-remove it holds if there are as many rows as the declared size, and says so.
    """
    share, promise, bound = reading.share_of(data), offer.promise, offer.promise.bound
    if bound is None:
        return offer
    if bound > USELESS * share:
        promise = replace(promise, bound=None, reason="too few of the table's rows are here")
    elif data.facts.neighbours.replace_one:
        promise = replace(promise, bound=float(bound / share))
    else:
        enough = f"there are {data.facts.size:,} rows or more"
        supposed = f"{promise.condition} and {enough}" if promise.condition else f"if {enough}"
        promise = replace(promise, condition=supposed)
    return replace(offer, promise=promise)


# What a fitted model does.


@dataclass(kw_only=True, repr=False, eq=False)
class RuleLearner(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """What the learners of rules share: reading rows, and what a fitted one does; the rule is `rule_`.

    The learner says which columns of a table it takes (`_takes`, `_words`), reads arrays (`_array_examples`), and may
    read rows for a prediction in its own way (`_seen`).
    """

    classes: Any = None
    method: str = "auto"
    beta: Any = 0.05
    score_epsilon: Any = None

    def _examples(self, terms: Terms, x: Any, y: Any, features: Any, *, reset: bool = True) -> Examples:
        """Private labelled rows, of arrays or of a table."""
        if reading.is_table(x):
            return table_examples(self, terms, x, y, features, self._takes, self._words, reset=reset)
        refuse_features(features)
        rows: Examples = self._array_examples(terms, x, y, reset=reset)
        return rows

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
        return predicted_codes(self, x, self.rule_.domain)

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
        return tags


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
    fit = Task.fixed(terms, rows.data, mechanism, table=rows.table, memo="score")
    got = fit.release(mechanism, memo="score")
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
    fit = Task.fixed(terms, rows.data, mechanism, table=rows.table, memo="certificate", alone=budget)
    charge = fit.release(mechanism, memo="certificate", what="certificate")
    got = bound_of(charge.released, mechanism, rows.facts, beta=allowed)
    share = reading.share_of(rows.data)
    several = rows.facts.neighbours.rows > 1  # then the number of rows is private
    error = None if got.error is None or several else min(1.0, float(got.error / share))
    return Certified(
        got.mistakes, got.rows, error, float(allowed), charge.guarantee, charge.entry, charge.released.replayed
    )
