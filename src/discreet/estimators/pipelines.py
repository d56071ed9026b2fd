"""Steps of a scikit-learn pipeline that would leak: transformers that are fitted to the rows before a private model.

A scaler, an imputer or a projection that reads means, minima or directions from the rows puts them into every model
after it, and into `predict`, without a charge. scikit-learn does not tell the last step of a pipeline about the steps
before it, so the pipelines under way are found on the call stack. A transformer that is fitted outside of a pipeline
cannot be seen.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from discreet.core import ParameterError

_COUNTS_COLUMNS_ONLY = {"PolynomialFeatures", "SplineTransformer"}
"""Transformers of scikit-learn that may be fitted: these learn how many columns there are. Splines only if their knots
are given, which `_leaks` checks."""
_ENCODERS = {"OneHotEncoder", "OrdinalEncoder"}
"""These learn the levels unless they are given, with `min_frequency` or `max_categories` which are rare, and with
handle_unknown="error" whether there are others."""


def refuse_leaking_steps(estimator: Any) -> None:
    """An error if this estimator is fitted as a step of a pipeline whose earlier steps learn from the rows, unpaid."""
    for pipeline in _under_way():
        steps = [step for _, step in pipeline.steps]
        place = next((at for at, step in enumerate(steps) if step is estimator), len(steps) - 1)
        for name, step in pipeline.steps[:place]:
            if _leaks(step):
                raise ParameterError(
                    f"step {name!r} of the pipeline, {type(step).__name__}, is fitted to the rows: an unpaid release "
                    "that every model after it contains. Use dp.DeclaredScaler (declared bounds, free), "
                    "dp.StandardScaler or dp.PCA (private, for a price), OneHotEncoder(categories=[...], "
                    'handle_unknown="ignore"), or a step that learns nothing',
                    argument="steps",
                )


def _under_way() -> Iterator[Any]:
    """The pipelines whose fit is on the call stack."""
    frame = sys._getframe(1)
    while frame is not None:
        owner = frame.f_locals.get("self")
        if frame.f_code.co_name.startswith("fit") and isinstance(owner, Pipeline):
            yield owner
        frame = frame.f_back  # type: ignore[assignment]


def _leaks(step: Any) -> bool:
    """Whether a transformer learns from the rows without a charge."""
    if step is None or isinstance(step, str) or getattr(step, "reads_no_rows", False) or hasattr(step, "ledger"):
        return False
    inner = (
        getattr(step, "steps", None) or getattr(step, "transformer_list", None) or getattr(step, "transformers", None)
    )
    if inner is not None:
        return any(map(_leaks, [*(part[1] for part in inner), getattr(step, "remainder", None)]))
    if type(step).__name__ in _COUNTS_COLUMNS_ONLY:
        return isinstance(getattr(step, "knots", None), str)
    if type(step).__name__ in _ENCODERS:
        rare = step.min_frequency is not None or step.max_categories is not None
        return rare or isinstance(step.categories, str) or step.handle_unknown == "error"
    return bool(get_tags(step).requires_fit)
