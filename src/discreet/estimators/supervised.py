"""Features and a target, from arrays or from a table: what supervised estimators share.

Whatever is wrong is said here, before the charge.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from discreet import exact
from discreet.data import Category, Dataset, Floats, Number
from discreet.erm.features import Declared, VectorColumn
from discreet.errors import ParameterError
from discreet.estimators import input as reading
from discreet.estimators.base import Terms
from discreet.estimators.input import Encoding


@dataclass(frozen=True, slots=True)
class Rows:
    """Private rows, and the public rules that make vectors and a target of them.

    norm   the length that rows are projected to; the intercept, if there is one, is half of it
    width  the number of coordinates without the intercept
    """

    data: Dataset
    features: VectorColumn | Declared
    target: str
    norm: Fraction
    width: int
    encoding: Encoding | None

    @property
    def about(self) -> Any:
        """Of a table: which of its columns are learned from what; None of arrays."""
        return None if self.encoding is None else [self.features, self.target]


def random_fit(tags: Any) -> Any:
    """What scikit-learn is told of every estimator here."""
    tags.non_deterministic = True  # noise is drawn from the operating system; there is no seed
    return tags


def flag(estimator: Any, name: str) -> bool:
    """A parameter that is True or False."""
    value = getattr(estimator, name)
    if not isinstance(value, (bool, np.bool_)):
        raise ParameterError(f"{name} must be True or False, found {value!r}")
    return bool(value)


def no_features(features: Any) -> None:
    """`features` is for tables."""
    if features is not None:
        raise ParameterError("features names columns of a Table; choose the columns of an array or a frame yourself")


def row_norm(estimator: Any) -> Fraction:
    """The declared length of rows; it is never read from them."""
    if estimator.row_norm is None:
        raise ParameterError(
            "row_norm must be given: the length that rows are scaled down to, from public knowledge; d features in "
            "[-1, 1] have length at most sqrt(d)"
        )
    return exact.moderate(row_norm=estimator.row_norm)


def numbered_rows(estimator: Any, terms: Terms, x: Any, y: Any, target: Number, offset: Fraction) -> Rows:
    """Arrays with a target of numbers, from which the offset is subtracted."""
    norm = row_norm(estimator)
    features, found = reading.arrays(estimator, x, y, numeric=True, least=reading.fewest(terms))
    centred = found.astype(np.float64) - float(offset)
    data = reading.matrix(terms, features, centred, norm=norm, target=target)
    return Rows(data, VectorColumn("x", flag(estimator, "fit_intercept")), "y", norm, features.shape[1], None)


def labelled_rows(estimator: Any, terms: Terms, x: Any, y: Any, *, intercept: bool) -> Rows:
    """Arrays with a target of classes; sets `classes_`."""
    norm = row_norm(estimator)
    features, labels = reading.arrays(estimator, x, y, numeric=False, least=reading.fewest(terms))
    if isinstance(estimator.classes, str):
        check_classification_targets(labels)
    estimator.classes_, target = reading.class_levels(estimator.classes, labels)
    data = reading.matrix(terms, features, labels, norm=norm, target=target)
    return Rows(data, VectorColumn("x", intercept), "y", norm, features.shape[1], None)


def table_rows(estimator: Any, terms: Terms, table: Any, target: Any, features: Any, *, intercept: bool) -> Rows:
    """Columns of a table, encoded by their declaration; sets what scikit-learn calls the features."""
    data = reading.checked_table(table, terms)
    name, columns = reading.table_columns(data, target, features)
    encoding = Encoding.of(data, columns, estimator.row_norm)
    vectors = encoding.with_intercept(intercept)
    estimator.n_features_in_ = len(columns)
    estimator.feature_names_in_ = np.array(columns, dtype=object)
    return Rows(data, vectors, name, vectors.norm, len(encoding.names), encoding)


def declared_classes(estimator: Any, rows: Rows) -> Any:
    """The classes that a table declares for the target."""
    column = rows.data.facts.domain.column(rows.target)
    if not isinstance(column, Category):
        raise ParameterError(f"the target {rows.target!r} is declared {column!r}: classes need a Category")
    classes, category = reading.class_levels(column.levels, None)
    given = estimator.classes
    stated = given is None or (isinstance(given, str) and given == "public")
    if not stated and reading.class_levels(given, None)[1].levels != category.levels:
        raise ParameterError(f"classes={given!r} are not those that the table declares: {list(column.levels)!r}")
    return classes


def seen(estimator: Any, x: Any) -> Floats:
    """Rows for a prediction, as the model saw those of the fit; without the intercept."""
    encoding: Encoding | None = estimator.encoding_
    return reading.features_only(estimator, x) if encoding is None else encoding.rows(x)
