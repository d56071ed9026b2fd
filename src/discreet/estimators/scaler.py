"""Scaling by declared bounds: for pipelines."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from discreet.core import Floats
from discreet.estimators import input as reading


class DeclaredScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A scaler that reads minima, means or variances from the rows is an unpaid release: what it learns goes into every
    model after it. This one scales features to [-1, 1] by declared bounds and learns nothing; values beyond the bounds
    are moved to them. d scaled features have norm at most sqrt(d): the row_norm of a model.

    bounds  one pair (low, high) for all features, a list of pairs, or a dict from column names to pairs

    Learned: low_, high_ (the bounds, one for each feature), n_features_in_, feature_names_in_.
    """

    reads_no_rows = True

    def __init__(self, bounds: Any = None) -> None:
        self.bounds = bounds

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True  # written out in memory
        return tags

    def fit(self, X: Any, y: Any = None) -> DeclaredScaler:  # noqa: N803
        """Match the bounds with the columns; the rows are only checked to be finite numbers."""
        reading.predicted_floats(self, X, reset=True)
        pairs = reading.bound_pairs(self.bounds, self.n_features_in_, getattr(self, "feature_names_in_", None))
        self.low_, self.high_ = np.array(pairs, dtype=np.float64).T
        return self

    def transform(self, X: Any) -> Floats:  # noqa: N803
        """2 (x - low) / (high - low) - 1 after moving x into [low, high]."""
        check_is_fitted(self)
        found = reading.predicted_floats(self, X)
        inside = np.clip(found, self.low_, self.high_)
        return np.asarray((inside - self.low_) / (self.high_ - self.low_) * 2 - 1)

    def inverse_transform(self, X: Any) -> Floats:  # noqa: N803
        """From [-1, 1] back to the features' own scale."""
        check_is_fitted(self)
        scaled = np.asarray(X, dtype=np.float64)
        return np.asarray((scaled + 1) / 2 * (self.high_ - self.low_) + self.low_)
