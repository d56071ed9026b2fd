"""Choose among fitted models by private rows, for one charge.

A candidate is a public rule that predicts for a row (`discreet.erm.scoring`); its score is a sum over rows of bounded
integers: right predictions, or minus the clamped squared misses. The exponential mechanism then prefers high scores.
Our linear models are judged by integer weights; any other fitted model is asked for one row at a time, which is slow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from discreet.core import ParameterError, exact
from discreet.data import Dataset, Domain, Number
from discreet.erm import VectorColumn
from discreet.erm.scoring import LinearRule, ModelRule, RightPredictions, Rule, SmallMisses
from discreet.estimators import input as reading
from discreet.estimators.base import FitGuarantee, PrivateEstimator, Task, Terms, release_fixed, terms_of
from discreet.mechanisms import Exponential, Laplace, calibrate


@dataclass(frozen=True, slots=True)
class Selected:
    """The chosen model and what is public about the choice.

    shortfall  how much worse than the best candidate's mean score it is in expectation, at most: a share of right
               predictions, or of clamped squared misses, per row, or per person if a person may hold several rows.
               None under add-remove, where the number of rows is private.
    replayed   True: this is the stored choice of an earlier program, free
    """

    model: Any
    index: int
    guarantee: FitGuarantee
    entry: int | None
    shortfall: float | None
    replayed: bool = False


def select_model(
    models: Sequence[Any] | Mapping[str, Any],
    X: Any,  # noqa: N803
    y: Any,
    *,
    epsilon: Any = None,
    delta: Any = 0,
    ledger: Any = None,
    allowance: Any = None,
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

    epsilon, delta, ledger, allowance, neighbours and size are those of the estimators.
    """
    asked = PrivateEstimator(
        epsilon=epsilon, delta=delta, ledger=ledger, neighbours=neighbours, size=size, allowance=allowance
    )
    terms = terms_of(asked, problem="select")
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
    fit = Task.of(terms, data, about=score if reading.is_table(X) else None)
    mechanism = calibrate(lambda noise: Exponential(score, 1 / noise), funds=fit.funds, facts=data.facts)
    charge = fit.release(mechanism, memo="select", what="choice")
    shortfall = None
    if data.facts.size is not None and data.facts.neighbours.replace_one:
        shortfall = math.log(len(named)) / float(mechanism.rate * data.facts.size * reading.share_of(data))
    model, replayed = list(named.values())[charge.value], charge.released.replayed
    return Selected(model, charge.value, charge.guarantee, charge.entry, shortfall, replayed)


def charged_accuracy(model: Any, x: Any, y: Any) -> float:
    """The share of right predictions of one classifier on private rows: a count plus Laplace noise, charged."""
    if model.score_epsilon is None:
        raise ParameterError(
            "score looks at private rows and this model has a ledger: set score_epsilon for a charged, noisy count of "
            "right predictions, score on public rows with sklearn.metrics, or choose with discreet.select_model"
        )
    epsilon = exact.positive(score_epsilon=model.score_epsilon)
    paid = {name: getattr(model, name) for name in ("ledger", "neighbours", "size", "allowance")}
    terms = terms_of(PrivateEstimator(epsilon=epsilon, **paid))
    data, target, count = _class_data([model], terms, x, y, None)
    if count is None:
        raise ParameterError("a charged score needs a public number of rows: replace-one, with one row a person")
    rules = _rules({type(model).__name__: model}, data.facts.domain)
    mechanism = Laplace(RightPredictions(rules, target), 1 / epsilon)
    right = release_fixed(terms, data, mechanism, table=reading.is_table(x), memo="score").value[0]
    return float(np.clip(right / count, 0.0, 1.0))


def _candidates(models: Any) -> dict[str, Any]:
    if isinstance(models, Mapping):
        named = {exact.text(name=name): model for name, model in models.items()}
    else:
        try:
            named = {f"{place} {type(model).__name__}": model for place, model in enumerate(models)}
        except TypeError:
            raise ParameterError(f"models must be a list or a dict of fitted models, found {models!r}") from None
    if len(named) < 2:
        raise ParameterError(f"models must be at least two, found {len(named)}")
    for model in named.values():
        check_is_fitted(model)
    return named


def _rules(named: Mapping[str, Any], domain: Domain) -> tuple[Rule, ...]:
    rules: list[Rule] = []
    for name, model in named.items():
        if hasattr(model, "encoding_") and hasattr(model, "coef_"):
            features = VectorColumn("x", False) if model.encoding_ is None else model.encoding_.features
            rules.append(LinearRule.of(model.coef_, model.intercept_, features, domain))
        else:
            rules.append(ModelRule(name, model))
    return tuple(rules)


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
    features, labels = _judged(models, terms, x, y, numeric=False)
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
        if not column.bounded:
            raise ParameterError(f"the target {target!r} is declared {column!r}: regression needs a Number")
        return data, target, column.high - column.low
    stated = [getattr(model, "target_bound", None) for model in models] if target_bound is None else [target_bound]
    bounds = [bound for bound in stated if bound is not None]
    if not bounds:
        raise ParameterError("target_bound must be given: these models have none")
    pairs = [pair if isinstance(pair, (tuple, list)) else (-exact.positive(target_bound=pair), pair) for pair in bounds]
    lows, highs = zip(*(reading.bounds_of("target_bound", pair) for pair in pairs), strict=True)
    low, high = min(lows), max(highs)
    features, numbers = _judged(models, terms, x, y, numeric=True)
    declared = Number(low, high, step=(high - low) / reading.GRID)
    made = reading.matrix(terms, features, numbers, norm=_norm(models, row_norm), target=declared)
    return made, "y", high - low


def _table(models: list[Any], terms: Terms, table: Any, target: Any) -> tuple[Dataset, str]:
    data = reading.checked_table(table, terms)
    if any(getattr(model, "encoding_", None) is None or not hasattr(model, "coef_") for model in models):
        raise ParameterError("on a table only linear models that were fitted from a table can be compared")
    return data, reading.table_columns(data, target, None)[0]


def _judged(models: list[Any], terms: Terms, x: Any, y: Any, *, numeric: bool) -> tuple[Any, Any]:
    if any(getattr(model, "encoding_", None) is not None for model in models):
        raise ParameterError("models that were fitted from a table are compared on a table")
    return reading.arrays(models[0], terms, x, y, numeric=numeric, reset=False)


def _norm(models: list[Any], row_norm: Any) -> Fraction:
    if row_norm is not None:
        return exact.positive(row_norm=row_norm)
    known = [norm for model in models if (norm := getattr(model, "row_norm", None)) is not None]
    if not known:
        raise ParameterError("row_norm must be given: these models have none")
    return max(exact.positive(row_norm=norm) for norm in known)
