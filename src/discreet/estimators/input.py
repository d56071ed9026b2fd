"""Converts the input of `fit` to a dataset and the input of `predict` to arrays.

Arrays and frames become a Matrix (features, target) or a Table of one column. Whatever is wrong with them is said
here, before the charge, and never with a value or with the number of rows, which is private under add-remove. A Table
or ParquetTable is used as it is, and its declaration says all that arrays need parameters for.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_array, validate_data

from discreet import exact
from discreet.data import (
    Batch,
    BitMatrix,
    Category,
    Codes,
    Dataset,
    Domain,
    Facts,
    Filter,
    Floats,
    Frame,
    Matrix,
    Number,
    ParquetTable,
    Slice,
    Summed,
    Table,
    Vector,
    encode,
    refuse_to_leave,
)
from discreet.erm.features import Declared
from discreet.errors import ParameterError, SchemaError
from discreet.estimators.base import Terms

Rows = TypeVar("Rows", Matrix, Table, BitMatrix)
GRID = 2**30  # steps between the bounds of a number that comes from an array


class Part:
    """Rows of a table of `size` persons that were chosen by their position: a training set, a fold.

    Theorem.   Under replace-one, with positions chosen without looking at the rows, neighbouring tables have parts that
               are equal or differ in one row; so a mechanism has the guarantee on the part that it has on the table.
    Edges.     Means are divided by the size of the table: the caller knows the share. Under add-remove positions move
               when a row is removed, and there is no such theorem.
    """

    __slots__ = ("__weakref__", "_rows", "facts", "identity", "source")

    def __init__(self, rows: Matrix | Table | BitMatrix, size: int) -> None:
        self._rows = rows
        self.facts = Facts(rows.facts.domain, rows.facts.neighbours, size)
        self.identity, self.source = rows.identity, rows.source

    @property
    def share(self) -> Fraction:
        """The part of the persons that is here; public, like the positions."""
        assert self._rows.facts.size is not None
        assert self.facts.size is not None
        return Fraction(self._rows.facts.size, self.facts.size)

    def exact_sum(self, partial: Callable[[Batch], Summed]) -> Summed:
        """The exact sum of a bounded integer function of the rows. Not private."""
        return self._rows.exact_sum(partial)

    def exact_slices(self, slices: Sequence[Slice], *, where: Filter | None = None, disjoint: bool) -> list[Codes]:
        """The exact most extreme values of columns. Not private."""
        return self._rows.exact_slices(slices, where=where, disjoint=disjoint)

    def check_source(self) -> None:
        """Nothing to check: the rows are in memory."""

    def __repr__(self) -> str:
        return f"Part({self._rows!r}, size={self.facts.size})"

    __reduce_ex__ = refuse_to_leave
    __copy__ = refuse_to_leave
    __deepcopy__ = refuse_to_leave


def share_of(data: Dataset) -> Fraction:
    """Which part of the persons that means are divided by is here: 1, unless the data are a Part."""
    return data.share if isinstance(data, Part) else Fraction(1)


def is_table(rows: object) -> bool:
    return isinstance(rows, (Table, ParquetTable))


def checked_table(rows: Table | ParquetTable, terms: Terms) -> Table | ParquetTable:
    """A table, if there is a ledger for it; it brings its own relation and size."""
    if terms.ledger is None:
        raise ParameterError("a table is fitted with its ledger: give ledger=..., or use Session(table, ledger)")
    if terms.size is not None:
        raise ParameterError("size belongs to arrays; a table brings its own")
    if not terms.neighbours.replace_one and rows.facts.neighbours.replace_one:
        raise ParameterError(f"neighbours={terms.neighbours.kind!r}, but the table is declared replace-one")
    return rows


# Arrays.


def arrays(
    estimator: Any, rows: Any, target: Any, *, numeric: bool, reset: bool = True, least: int = 1
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Features and target as scikit-learn reads them; reset sets `n_features_in_` and `feature_names_in_`.

    least  fewer rows are refused: 1, or 0 under add-remove, where a table of no rows is an ordinary one
    """
    if target is None:
        raise ParameterError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    features = _table_of_numbers(estimator, rows, reset=reset)
    y = _targets(target, numeric=numeric)
    if len(features) != len(y):  # the numbers of rows may be private
        raise ParameterError("X and y are not equally long")
    if len(features) < least:
        raise ParameterError("X has no rows")
    return features, y


def features_only(estimator: Any, rows: Any, *, reset: bool = False) -> Floats:
    """Features for a prediction: as wide as those of the fit, finite."""
    features = _table_of_numbers(estimator, rows, reset=reset).astype(np.float64, copy=False)
    if not np.isfinite(features).all():
        raise ParameterError("X holds NaN or infinite numbers")
    return np.asarray(features)


def _table_of_numbers(estimator: Any, rows: Any, *, reset: bool) -> npt.NDArray[Any]:
    """Rows as an array of two dimensions; its width and the columns' names are those of the fit, or reset sets them."""
    _refuse_text(rows)
    found = converted(rows, "X", "numeric")
    if found.ndim != 2:
        raise ParameterError(
            f"X must be a 2D array, found {found.ndim} dimensions. Reshape your data: one row for each person, one "
            "column for each feature"
        )
    if found.shape[1] == 0:  # as scikit-learn says it, but for the number of rows
        raise ParameterError("X has 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
    named = rows if isinstance(nw.from_native(rows, eager_only=True, pass_through=True), nw.DataFrame) else found
    try:
        validate_data(estimator, named, reset=reset, skip_check_array=True)
    except ValueError as error:
        complaint = str(error)  # about the width and the names of the columns, which are public
    else:
        return found
    raise ParameterError(complaint)


def _targets(target: Any, *, numeric: bool) -> npt.NDArray[Any]:
    """The target as an array of one dimension, finite if it holds numbers."""
    y = converted(target, "y", "numeric" if numeric else None)
    if y.ndim == 2 and y.shape[1] == 1:
        warnings.warn("A column-vector y was passed when a 1d array was expected", DataConversionWarning, 2)
        y = y[:, 0]
    if y.ndim != 1:
        columns = f", {y.shape[1]} columns" if y.ndim == 2 else ""
        raise ParameterError(f"y should be a 1d array, found {y.ndim} dimensions{columns}")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ParameterError("y contains NaN, infinity or a value too large")
    return y


def converted(values: Any, name: str, kind: str | None) -> npt.NDArray[Any]:
    """What a user hands over as an array; kind "numeric": of numbers.

    Errors of numpy, pandas and scikit-learn quote values and count rows. So nothing of them survives but their type,
    and they are not in the context of the error that is raised, for it is raised outside their handler.
    """
    if issparse(values):
        raise ParameterError(f"{name} must be dense, found a sparse matrix")
    if getattr(getattr(values, "dtype", None), "kind", "") == "c":
        raise ParameterError(f"Complex data not supported: {name} must hold numbers, found complex ones")
    shape = {"ensure_2d": False, "allow_nd": True, "ensure_min_samples": 0, "ensure_min_features": 0}
    wrong: type[Exception]
    try:
        found = check_array(values, dtype=kind, ensure_all_finite=False, **shape)
    except TypeError:
        wrong = TypeError
    except Exception:
        wrong = ParameterError
    else:
        return np.asarray(found)
    if wrong is TypeError:
        raise TypeError(f"{name} must hold numbers: every argument must be a string or a real number")
    raise ParameterError(f"{name} must hold numbers in rows of equal length, found text or rows of other lengths")


def _refuse_text(rows: Any) -> None:
    frame = nw.from_native(rows, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        for name, dtype in frame.schema.items():
            if not (dtype.is_numeric() or dtype in (nw.Boolean, nw.Object)):
                raise ParameterError(
                    f"X must hold numbers, and column {str(name)!r} does not; a Table with a declared Category encodes "
                    "levels"
                )


def projected(rows: Floats, norm: float) -> Floats:
    """Rows longer than norm, scaled down to it. For predictions: what a fit does is `discreet.data.grid`."""
    largest = np.maximum(np.abs(rows).max(axis=1, keepdims=True), norm)  # squares of huge numbers overflow
    scaled = rows / largest
    length = np.maximum(np.linalg.norm(scaled, axis=1, keepdims=True), norm / largest)
    return np.asarray(scaled * (norm / length))


def fewest(terms: Terms) -> int:
    """How few rows an array may have: under add-remove nobody's rows are an ordinary table, which is charged for."""
    return 1 if terms.neighbours.replace_one else 0


def matrix(
    terms: Terms, rows: npt.NDArray[Any], y: npt.NDArray[Any], *, norm: Fraction, target: Category | Number
) -> Matrix | Part:
    """Features and target as a dataset; fewer rows than the declared size are a part of the ledger's table."""
    vector = Vector(rows.shape[1], norm=norm)
    return held(
        terms,
        len(rows),
        lambda size: Matrix(
            rows, y, features=vector, target=target, neighbours=terms.neighbours, size=size, name=terms.name
        ),
    )


def column(terms: Terms, values: Any, number: Number) -> Table | Part:
    """One column of numbers as a dataset."""
    domain = Domain(x=number)
    return held(
        terms,
        len(values),
        lambda size: Table(
            {"x": values}, domain, neighbours=terms.neighbours, size=size, name=terms.name, edition=None
        ),
    )


def held(terms: Terms, found: int, made: Callable[[int | None], Rows]) -> Rows | Part:
    """The rows as a dataset; with a ledger and a larger declared size they are a part of its table."""
    part = terms.ledger is not None and terms.neighbours.replace_one and terms.size is not None and terms.size > found
    try:
        rows = made(None if part else terms.size)
    except SchemaError as error:  # what a table's owner would be told to declare is `classes` here
        complaint = str(error).replace('; declare them, or other="..." would take them', ": name them all in classes=")
    else:
        return Part(rows, terms.size) if part and terms.size is not None else rows
    raise ParameterError(complaint)


def bounds_of(name: str, bounds: Any) -> tuple[Fraction, Fraction]:
    """A pair of exact numbers, low < high."""
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be a pair (low, high), found {bounds!r}") from None
    found = exact.number(**{f"{name}[0]": low}), exact.number(**{f"{name}[1]": high})
    if found[0] >= found[1]:
        raise ParameterError(f"{name} must be a pair (low, high) with low < high, found {bounds!r}")
    return found


def grid(half: Fraction) -> Number:
    """The numbers from -half to half, in steps of 2^-29 of half: fine enough for any float that matters."""
    return Number(-half, half, step=2 * half / GRID)


# Classes.


def class_levels(classes: Any, y: npt.NDArray[Any] | None) -> tuple[npt.NDArray[Any], Category]:
    """The classes in order, the last is the positive one, and the declaration that encodes them."""
    if classes is None:
        raise ParameterError(
            'classes must be declared: the labels that may occur, say classes=(0, 1), or "public" if the labels in y '
            "are no secret; which labels occur is private otherwise"
        )
    if isinstance(classes, str):
        if classes != "public" or y is None:
            raise ParameterError(f'classes must be a list of labels or "public", found {classes!r}')
        found = np.unique(y)
    else:
        found = _label_array(classes)
    if len(found) < 2:
        raise ParameterError(f"classes must be at least two, found {len(found)} class")
    return found, Category(levels=[_level(label) for label in found.tolist()])


def _label_array(classes: Any) -> npt.NDArray[Any]:
    if isinstance(classes, (set, frozenset)):
        raise ParameterError("classes must be in an order, the last is the positive one: give a list, found a set")
    try:
        labels = list(classes)
    except TypeError:
        raise ParameterError(f'classes must be a list of labels or "public", found {classes!r}') from None
    levels = [_level(label) for label in labels]
    if len({type(level) for level in levels}) == 1:
        return np.array(levels)
    found = np.empty(len(levels), dtype=object)
    found[:] = levels
    return found


def _level(label: Any) -> Any:
    """A label as a level: texts, whole numbers and booleans."""
    plain = label.item() if isinstance(label, np.generic) else label
    if isinstance(plain, float) and plain.is_integer():
        return int(plain)
    if isinstance(plain, (str, int, bool)):
        return plain
    raise ParameterError(f"Unknown label type: a class is a text, a whole number or a boolean, found {label!r}")


# Tables.


@dataclass(frozen=True, slots=True)
class Encoding:
    """How declared columns become the numbers that a model sees: by the declaration alone, so for any frame."""

    domain: Domain
    features: Declared

    @staticmethod
    def of(table: Dataset, columns: Sequence[str], norm: Any) -> Encoding:
        """The encoding of these columns; the norm is the root of their number unless it is given."""
        domain = table.facts.domain.project(columns)
        # The least multiple of 2^-10 that is not below the root: nothing is projected.
        root = Fraction(exact.ceil_sqrt(Fraction(len(columns) * 2**20)), 2**10)
        return Encoding(
            domain, Declared(tuple(columns), root if norm is None else exact.positive(row_norm=norm), False)
        )

    @property
    def names(self) -> tuple[str, ...]:
        return self.features.names(self.domain)

    @property
    def scales(self) -> Floats:
        """For each coordinate (a, b): it is a * value + b of the column's own value."""
        return np.array(self.features.scales(self.domain))

    def with_intercept(self, intercept: bool) -> Declared:
        return Declared(self.features.columns, self.features.norm, intercept)

    def rows(self, source: Any) -> Floats:
        """The rows of a frame as numbers."""
        if isinstance(source, np.ndarray):
            raise ParameterError("this model was fitted on named columns: give a frame or a dict of columns")
        frame, columns = Frame(source), self.features.columns
        Frame.require(frame.names, columns)
        codes = {name: encode(frame[name], self.domain.column(name), name) for name in columns}
        if len({len(each) for each in codes.values()}) > 1:
            raise SchemaError("the columns are not equally long")
        count = len(codes[columns[0]])
        found = np.empty((count, self.features.dimension(self.domain)))
        self.features.fill(Batch(self.domain, count, codes.__getitem__), slice(0, count), found)
        return found * float(self.features.unit(self.domain))


def table_columns(table: Dataset, target: Any, features: Any) -> tuple[str, tuple[str, ...]]:
    """The target's name and the features' names: all other declared columns, unless they are given."""
    name, domain = exact.text(target=target), table.facts.domain
    domain.column(name)
    if isinstance(features, str):
        raise ParameterError(f"features must be a list of column names, found the text {features!r}")
    columns = tuple(each for each in domain.names if each != name) if features is None else tuple(features)
    if not columns:
        raise ParameterError("features must name at least one column, found none")
    if name in columns:
        raise ParameterError(f"features must not contain the target {name!r}")
    for each in columns:
        domain.column(exact.text(features=each))
    return name, columns
