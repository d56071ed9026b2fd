"""Fitted models from files, and what they predict for files of rows.

`model_file` says what stands in the file of a model, and what is refused. Predicting is no release about the rows that
are predicted: whoever has them sees them anyway.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import narwhals as nw
import numpy as np

from discreet.certificate import Certificate
from discreet.core import ParameterError, SchemaError
from discreet.data import Frame, Scan, resolved
from discreet.estimators import model_file
from discreet.estimators.base import PrivateEstimator
from discreet.estimators.boxes import BoxClassifier
from discreet.estimators.conjunctions import ConjunctionClassifier
from discreet.estimators.linear import LinearRegression, LogisticRegression
from discreet.estimators.location import Mean, Median, Quantile
from discreet.estimators.network import MLPClassifier
from discreet.estimators.rules import FiniteClassClassifier, RuleClassifier

MODELS: dict[str, type[PrivateEstimator]] = {
    each.KIND: each
    for each in (
        *(LinearRegression, LogisticRegression, MLPClassifier, Mean, Median, Quantile),
        *(BoxClassifier, ConjunctionClassifier, RuleClassifier, FiniteClassClassifier),
    )
}
"""Every estimator that can be written to a file, by the name that it has there."""


def estimator_named(name: str, parameters: dict[str, Any]) -> Any:
    """The estimator of this name, with parameters as a model's file spells them."""
    known = {kind.__name__: kind for kind in MODELS.values() if kind is not FiniteClassClassifier}
    if name not in known:
        raise ParameterError(f"estimator must be one of {', '.join(known)}; found {name!r}")
    made: Any = known[name]()
    allowed = made.public_parameters()
    for each in parameters:
        if each not in allowed:
            raise ParameterError(f"{name} has no parameter {each!r} here: {', '.join(sorted(allowed))}")
    return made.set_params(**{each: model_file.parameter_from(value) for each, value in parameters.items()})


def load(path: str | os.PathLike[str]) -> Any:
    """The fitted model in a file that `save`, `discreet fit --save` or `discreet learn --save` wrote.

    It predicts, and has its promise and its certificate, `model.guarantee_.certificate()`. It has no ledger: it neither
    fits nor charges. The file is JSON, and no code in it is run; any other content is a ParameterError.
    """
    return _restored(*model_file.read(path))


def load_record(found: object) -> Any:
    """The fitted model whose file has these members: what a service sends."""
    if not isinstance(found, dict):
        raise ParameterError(f"a model is an object, found a {type(found).__name__}")
    return _restored(*model_file.read_members(found, "the reply"))


def _restored(kind: str, state: model_file.State, certificate: Certificate) -> Any:
    if kind not in MODELS:
        known = ", ".join(sorted(MODELS))
        raise ParameterError(f"a model of this version is one of {known}; found {ascii(kind)[:60]}")
    model: Any = MODELS[kind]()
    model.restore(state, certificate)
    return model


def predictions(model: Any, path: str | os.PathLike[str]) -> Iterator[dict[str, list[Any]]]:
    """What a model predicts for the rows of a CSV or Parquet file, in the order of the file, some rows at a time.

    A column `prediction`, and of a classifier that has them the probability of each class. The file has the features by
    name, among others; for a model that was fitted to arrays without names, its columns are the features.
    """
    if not hasattr(model, "predict"):
        raise ParameterError(f"a {type(model).__name__} is one number, {model.value_:g}: it predicts nothing of rows")
    scan = Scan(resolved(path))
    found, named = scan.names(), getattr(model, "feature_names_in_", None)
    names = found if named is None else tuple(map(str, named))
    Frame.require(found, names)
    classes = (
        [f"probability of {level}" for level in model.classes_.tolist()] if hasattr(model, "predict_proba") else []
    )
    none = True
    for batch in scan.frames(names):
        declared = getattr(model, "encoding_", None) is not None or getattr(model, "from_table_", False)
        rows: Any = Frame(batch, spelled=scan.is_csv)
        if not declared:
            numbers = {name: _numbers(batch[name].to_pylist(), name) for name in names}
            rows = nw.from_dict(numbers, backend="pyarrow").to_native()
            rows = np.column_stack(list(numbers.values())) if named is None else rows
        made = {"prediction": model.predict(rows).tolist()}
        if classes:
            made |= zip(classes, model.predict_proba(rows).T.tolist(), strict=True)
        yield made
        none = False
    if none:  # the columns alone
        yield {name: [] for name in ("prediction", *classes)}


def _numbers(entries: list[Any], name: str) -> list[float]:
    """A column of numbers, or of texts that are numbers."""
    try:
        return [float(each) for each in entries]
    except (TypeError, ValueError):
        pass
    raise SchemaError(f"column {name!r} must hold numbers in every row, found something else")
