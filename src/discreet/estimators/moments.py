# ruff: noqa: N803
"""Scaling and projection from private moments: one release of exact integer sums, then linear algebra on its result.

    StandardScaler   sums and sums of squares of each feature
    PCA              the sum of the features and of all their products

Both move features to [-1, 1] by declared bounds first, as `DeclaredScaler` does, so that each row moves the sums by a
known amount. Everything after the release is post-processing. In a pipeline they are steps like any other:

    make_pipeline(dp.StandardScaler(bounds=(0, 9), epsilon=dp.Share("1/5"), ledger=ledger),
                  dp.LogisticRegression(epsilon=None, ledger=ledger, row_norm=2, classes=(0, 1)))
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from discreet.core import Floats, Pairs, ParameterError, Sheet, exact
from discreet.data import Dataset, Domain, Matrix, Number, Vector
from discreet.estimators import input as reading
from discreet.estimators.base import PrivateEstimator, Task, Terms, require_parameters, terms_of
from discreet.mechanisms import Gaussian, Laplace, Mechanism, VectorSum, calibrate

_STEP = Fraction(1, 2**16)
MOST_FEATURES = 200
_ALONE = 3  # deviations of the noise that a variance must exceed to be believed


@dataclass(kw_only=True, repr=False, eq=False)
class _Moments(PrivateEstimator):
    """The declared bounds, and one release of sums."""

    NEEDS: ClassVar[tuple[str, ...]] = ("bounds",)
    bounds: Any = None

    def sheet(self, lines: Any = None, width: int | None = None) -> Sheet:
        """What was released, and what it cost, or other last lines."""
        check_is_fitted(self, "guarantee_")
        about = f"{type(self).__name__} of {self.n_features_in_} features from one release of sums"
        last = [("guarantee", self.guarantee_)] if lines is None else lines
        return Sheet.of(Pairs([("learned", about), ("noise of a sum", f"{self.noise_:.3g}"), *last]))

    def model_record(self) -> dict[str, Any]:
        raise ParameterError(
            f"a {type(self).__name__} predicts nothing: keep it by pickle, which leaves its ledger out"
        )

    def _scaled(self, terms: Terms, X: Any) -> Floats:
        """The rows within their bounds, in [-1, 1]; sets the bounds of each feature and the features' names."""
        found = reading.predicted_floats(self, X, reset=True)
        if not len(found) and terms.neighbours.replace_one:
            raise ParameterError("X has no rows")
        pairs = reading.bound_pairs(self.bounds, self.n_features_in_, getattr(self, "feature_names_in_", None))
        self.low_, self.high_ = np.array(pairs, dtype=np.float64).T
        return self._inside(found)

    def _inside(self, found: Floats) -> Floats:
        inside = np.clip(found, self.low_, self.high_)
        return np.asarray((inside - self.low_) / (self.high_ - self.low_) * 2 - 1)

    def _charge(self, terms: Terms, data: Dataset, query: VectorSum) -> Floats:
        """The noisy sums, and the deviation of their noise as `noise_`."""
        task = Task.of(terms, data)
        kind: type[Gaussian] | type[Laplace] = Laplace if task.funds.pure else Gaussian
        mechanism: Mechanism = calibrate(lambda scale: kind(query, scale), funds=task.funds, facts=data.facts)
        charge = task.release(mechanism, memo=type(self).__name__, what="fit")
        self.guarantee_, self.entry_, self.mechanism_ = charge.guarantee, charge.entry, mechanism
        self.noise_ = float(np.sqrt(mechanism.noise.variance()))  # type: ignore[attr-defined]
        return np.asarray(charge.value, dtype=np.float64)


class StandardScaler(OneToOneFeatureMixin, TransformerMixin, _Moments):  # type: ignore[misc]
    """Features minus their private mean, divided by their private deviation: scikit-learn's StandardScaler for a price.

    bounds   one pair (low, high) for all features, a list of pairs, or a dict from column names to pairs; values beyond
             the bounds are moved to them, in `fit` and in `transform`
    epsilon, delta, ledger, allowance, neighbours, size   as in LinearRegression

    Theorem.   Scaled to [-1, 1], a person moves the sum of a feature by at most 2 and that of its square by at most 1
               (replace-one), by 1 and 1 (add-remove, where the number of rows is counted too, with the same noise). All
               2 d sums are one release with Gaussian noise (delta > 0) or Laplace noise, priced by `VectorSum`.
    Accuracy.  A mean is off by noise_ / n of the half width of its bounds, one standard deviation.
    Edges.     A variance that is not above the noise of its estimate is not believed: the half width of the bounds
               takes the place of the deviation. Values are cut to a grid of 2^-16 of the half width.

    Learned: mean_, var_, scale_ (in the features' own units), noise_, guarantee_, n_features_in_.
    """

    def fit(self, X: Any, y: Any = None) -> StandardScaler:
        """One charge for all means and variances; y is not read."""
        require_parameters(self, table=False)
        terms = terms_of(self)
        scaled = self._scaled(terms, X)
        names = [f"x{place}" for place in range(self.n_features_in_)]
        columns = {
            **dict(zip(names, scaled.T, strict=True)),
            **{f"{name}^2": x**2 for name, x in zip(names, scaled.T, strict=True)},
        }
        declared = {name: Number(0 if "^" in name else -1, 1, step=_STEP) for name in columns}
        if not terms.neighbours.replace_one:  # the number of rows is private there, and is released with the sums
            columns["rows"], declared["rows"] = np.ones(len(scaled)), Number(0, 1, step=1)
        data = reading.table_of(terms, columns, Domain(declared), len(scaled))
        sums = self._charge(terms, data, VectorSum(tuple(columns)))
        size = max(1.0, float(sums[-1])) if "rows" in columns else _public_size(data)
        d = self.n_features_in_
        mean, square = np.clip(sums[:d] / size, -1, 1), np.clip(sums[d : 2 * d] / size, 0, 1)
        variance = square - mean**2
        believed = variance > _ALONE * (1 + 2 * np.abs(mean)) * self.noise_ / size
        half = (self.high_ - self.low_) / 2
        self.mean_ = self.low_ + (mean + 1) * half
        self.var_ = np.where(believed, np.maximum(variance, 0), 1.0) * half**2
        self.scale_ = np.sqrt(self.var_)
        return self

    def transform(self, X: Any) -> Floats:
        """(x - mean_) / scale_ after moving x into its bounds."""
        check_is_fitted(self, "mean_")
        inside = np.clip(reading.predicted_floats(self, X), self.low_, self.high_)
        return np.asarray((inside - self.mean_) / self.scale_)

    def inverse_transform(self, X: Any) -> Floats:
        """Back to the features' own units."""
        check_is_fitted(self, "mean_")
        return np.asarray(np.asarray(X, dtype=np.float64) * self.scale_ + self.mean_)


@dataclass(kw_only=True, repr=False, eq=False)
class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _Moments):  # type: ignore[misc]
    """Principal components of a private covariance: scikit-learn's PCA for a price.

    n_components  how many directions are kept
    bounds        as in StandardScaler: features are scaled to [-1, 1] by them, and components are about scaled features
    row_norm      the length that scaled rows are scaled down to; None: sqrt(d), which changes no row. A smaller one
                  gives less noise and shortens long rows
    epsilon, delta, ledger, allowance, neighbours, size   as in LinearRegression

    Theorem.   With x / row_norm of length at most 1, the vector (x, all products x_i x_j, those with i < j times
               sqrt 2) has length at most sqrt 2 (sqrt 3 with the constant 1 that counts rows under add-remove). Its sum
               over the rows, on an integer grid, is one release, priced by `VectorSum` of a `Vector` of that norm.
    Accuracy.  Each entry of the second moment is off by about noise_ row_norm^2 / n.
    Edges.     Directions whose variance is below the noise are random ones. Signs are fixed so that the largest
               coordinate of a component is positive. d (d + 3) / 2 numbers for each row are held in memory; at most 200
               features.
    Reference. [DTTZ14].

    Learned: components_ (one row for each), explained_variance_, explained_variance_ratio_, mean_ (of scaled features),
    noise_, guarantee_, n_features_in_.
    """

    NEEDS: ClassVar[tuple[str, ...]] = ("bounds", "n_components")
    n_components: Any = None
    row_norm: Any = None

    def fit(self, X: Any, y: Any = None) -> PCA:
        """One charge for the mean and the second moments; y is not read."""
        require_parameters(self, table=False)
        terms = terms_of(self)
        if self.n_components is None:
            raise ParameterError("n_components must be given: how many directions are kept")
        kept = exact.whole(n_components=self.n_components)
        scaled = self._scaled(terms, X)
        d = self.n_features_in_
        if d > MOST_FEATURES:
            raise ParameterError(f"PCA takes at most {MOST_FEATURES} features, found {d}")
        if kept > d:
            raise ParameterError(f"n_components must be at most the number of features, {d}; found {kept}")
        norm = float(np.sqrt(d)) if self.row_norm is None else float(exact.positive(row_norm=self.row_norm))
        counted = not terms.neighbours.replace_one
        moments = _products(reading.projected(scaled, norm) / norm if len(scaled) else scaled, counted)
        features = Vector(moments.shape[1], norm=Fraction(1733 if counted else 1415, 1000))
        data = reading.held(terms, len(moments), lambda **how: Matrix(moments, features=features, **how))
        sums = self._charge(terms, data, VectorSum("x"))
        size = max(1.0, float(sums[-1])) if counted else _public_size(data)
        self.mean_ = sums[:d] / size * norm
        second = _symmetric(sums[d : d + d * (d + 1) // 2] / size, d) * norm**2
        values, vectors = np.linalg.eigh(second - np.outer(self.mean_, self.mean_))
        order = np.argsort(values)[::-1][:kept]
        chosen = vectors[:, order].T
        signs = np.sign(chosen[np.arange(kept), np.abs(chosen).argmax(axis=1)])
        self.components_ = chosen * np.where(signs == 0, 1, signs)[:, None]
        self.explained_variance_ = np.maximum(values[order], 0)
        total = float(np.maximum(values, 0).sum())
        self.explained_variance_ratio_ = self.explained_variance_ / total if total > 0 else np.zeros(kept)
        self.n_components_ = self._n_features_out = kept
        return self

    def transform(self, X: Any) -> Floats:
        """The coordinates of scaled rows along the components."""
        check_is_fitted(self, "components_")
        return np.asarray((self._inside(reading.predicted_floats(self, X)) - self.mean_) @ self.components_.T)

    def inverse_transform(self, X: Any) -> Floats:
        """The rows, in their own units, whose coordinates along the components these are."""
        check_is_fitted(self, "components_")
        scaled = np.asarray(X, dtype=np.float64) @ self.components_ + self.mean_
        return np.asarray(self.low_ + (scaled + 1) / 2 * (self.high_ - self.low_))


def _public_size(data: Dataset) -> float:
    """How many rows were added up, under replace-one: all of the table, or the part of it that is here."""
    return max(1.0, float((data.facts.size or 1) * reading.share_of(data)))


def _products(rows: Floats, counted: bool) -> Floats:
    """Each row with its products, and a constant 1 if rows are counted."""
    d = rows.shape[1]
    first, second = np.triu_indices(d)
    products = rows[:, first] * rows[:, second] * np.where(first == second, 1.0, np.sqrt(2.0))
    ones = [np.ones((len(rows), 1))] if counted else []
    return np.hstack([rows, products, *ones])


def _symmetric(entries: Floats, d: int) -> Floats:
    """The matrix of which these are the products as `_products` lists them."""
    first, second = np.triu_indices(d)
    matrix = np.zeros((d, d))
    matrix[first, second] = entries / np.where(first == second, 1.0, np.sqrt(2.0))
    return np.asarray(matrix + np.triu(matrix, 1).T)
