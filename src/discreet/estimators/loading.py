"""Fitted models from files: see `model_file` for what stands there, and for what is refused."""

from __future__ import annotations

import os
from typing import Any

from discreet.core import ParameterError
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


def load(path: str | os.PathLike[str]) -> Any:
    """The fitted model in a file that `save`, `discreet fit --save` or `discreet learn --save` wrote.

    It predicts, and has its promise and its certificate, `model.guarantee_.certificate()`. It has no ledger: it neither
    fits nor charges. The file is JSON, and no code in it is run; whatever is not as it should be is a ParameterError.
    """
    kind, state, certificate = model_file.read(path)
    if kind not in MODELS:
        known = ", ".join(sorted(MODELS))
        raise ParameterError(f"a model of this version is one of {known}; found {ascii(kind)[:60]}")
    model: Any = MODELS[kind]()
    model.restore(state, certificate)
    return model
