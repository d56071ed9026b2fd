"""Reads the input of `fit` and `predict`: arrays or a frame (X, y), or a table and the name of its target.

Arrays and frames become a Matrix, a BitMatrix or a Table. Whatever is wrong with them is said here, before the charge,
and never with a value or with the number of rows, which is private under add-remove. A table (any dataset with named
columns) is used as it is, and its declaration says all that arrays need parameters for.

    Rows           private rows and the public rules that make vectors and a target of them     linear models, networks
    Examples       private rows, the columns of the features, and the labels                    learners of rules
    Part           some rows of a table, chosen by position: a fold
    *_rows, *_examples                the two readers, of arrays and of tables
    predicted_*                       rows for a prediction, as the model saw those of the fit
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, validate_data

from discreet.core import ParameterError, SchemaError, UndeclaredLevels, exact, record
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
    Matrix,
    Number,
    RowsOf,
    Table,
    Vector,
    encode,
    is_dataset,
    packed,
    read,
)
from discreet.erm import Declared, Ranged, VectorColumn
from discreet.estimators import model_file
from discreet.estimators.base import Terms
from discreet.pac import Labels

Held = TypeVar("Held", Matrix, Table, BitMatrix)

GRID = 2**30
"""Grid steps between the bounds of a target that comes from an array."""

STEPS = 10**5
"""Grid steps between the bounds of a rule's feature that comes from an array: round decimals, about 2^17 values."""


MOST_DENSE = 2**27
"""Entries of a sparse matrix that are written out: 1 GiB of floats."""


class Part(RowsOf):
    """Rows of a table of `size` persons that were chosen by their position: a training set, a fold.

    Theorem.   Under replace-one, with positions chosen without looking at the rows, neighbouring tables have parts that
               are equal or differ in one row; so a mechanism has the guarantee on the part that it has on the table.
    Edges.     Means are divided by the size of the table: the caller knows the share. Under add-remove positions move
               when a row is removed, and there is no such theorem.
    """

    __slots__ = ("__weakref__", "_table", "facts", "identity", "source")

    def __init__(self, rows: Matrix | Table | BitMatrix, size: int) -> None:
        self._table = rows
        self.facts = Facts(rows.facts.domain, rows.facts.neighbours, size, table=rows.facts.table)
        self.identity, self.source = rows.identity, rows.source

    @property
    def share(self) -> Fraction:
        """The part of the persons that is here; public, like the positions."""
        assert self._table.facts.size is not None
        assert self.facts.size is not None
        return Fraction(self._table.facts.size, self.facts.size)

    def __repr__(self) -> str:
        return f"Part({self._table!r}, size={self.facts.size})"


def share_of(data: Dataset) -> Fraction:
    """Which part of the persons that means are divided by is here: 1, unless the data are a Part."""
    return data.share if isinstance(data, Part) else Fraction(1)


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


# Parameters.


def flag(estimator: Any, name: str) -> bool:
    """A parameter that is True or False."""
    value = getattr(estimator, name)
    if not isinstance(value, (bool, np.bool_)):
        raise ParameterError(f"{name} must be True or False, found {value!r}")
    return bool(value)


def bounds_of(name: str, bounds: Any) -> tuple[Fraction, Fraction]:
    """A pair of exact numbers, low < high."""
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be a pair (low, high), found {bounds!r}") from None
    pair = exact.number(**{f"{name}[0]": low}), exact.number(**{f"{name}[1]": high})
    if pair[0] >= pair[1]:
        raise ParameterError(f"{name} must be a pair (low, high) with low < high, found {bounds!r}")
    return pair


def bound_pairs(bounds: Any, count: int, names: Any = None) -> list[tuple[Fraction, Fraction]]:
    """One pair (low, high) for each feature, from one pair for all, a list of pairs, or a dict by column name."""
    if bounds is None:
        raise ParameterError(
            "bounds must be given: one pair (low, high) for all features, a list of pairs, or a dict by column name, "
            "from public knowledge; values beyond are moved to the bound"
        )
    if isinstance(bounds, Mapping):
        if names is None:
            raise ParameterError("bounds by column name need a frame with column names")
        if missing := [name for name in names if name not in bounds]:
            raise ParameterError(f"bounds have no pair for the columns {missing!r}")
        return [bounds_of(f"bounds of {name}", bounds[name]) for name in names]
    if not (is_list(bounds) and any(map(is_list, bounds))):
        return [bounds_of("bounds", bounds)] * count
    return [bounds_of("bounds", each) for each in _for_each("bounds", bounds, count)]


def declared_numbers(bounds: Any, step: Any, count: int, names: Any = None) -> list[Number]:
    """One Number for each feature: bounds as for `bound_pairs`, and one step or a list."""
    steps = _for_each("step", step if is_list(step) else [step] * count, count)
    return [
        Number(low, high, step=(high - low) / STEPS if step is None else exact.positive(step=step))
        for (low, high), step in zip(bound_pairs(bounds, count, names), steps, strict=True)
    ]


def _for_each(name: str, given: Any, count: int) -> list[Any]:
    """A list with as many members as there are features."""
    if len(given) != count:
        raise ParameterError(f"{name} must be one for all features or one for each of {count}, found {len(given)}")
    return list(given)


def is_list(value: Any) -> bool:
    """Whether it is a list of values, and not one."""
    return isinstance(value, (list, tuple, np.ndarray))


def refuse_features(features: Any) -> None:
    """An error if `features` is given for arrays."""
    if features is not None:
        raise ParameterError("features names columns of a Table; choose the columns of an array or a frame yourself")


# Arrays.


def arrays(
    estimator: Any, terms: Terms, rows: Any, target: Any, *, numeric: bool, reset: bool = True
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Features and target as scikit-learn reads them; reset sets `n_features_in_` and `feature_names_in_`.

    Under add-remove an array without rows is an ordinary table, and is charged.
    """
    if target is None:
        raise ParameterError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    features = _features(estimator, rows, reset=reset)
    if reset:
        estimator.target_ = None
    y = converted(target, "y", "numeric" if numeric else None)
    if y.ndim == 2 and y.shape[1] == 1:
        warnings.warn("A column-vector y was passed when a 1d array was expected", DataConversionWarning, 2)
        y = y[:, 0]
    if y.ndim != 1:
        columns = f", {y.shape[1]} columns" if y.ndim == 2 else ""
        raise ParameterError(f"y should be a 1d array, found {y.ndim} dimensions{columns}")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ParameterError("y contains NaN, infinity or a value too large")
    if len(features) != len(y):  # the numbers of rows may be private
        raise ParameterError("X and y are not equally long")
    if not len(features) and terms.neighbours.replace_one:
        raise ParameterError("X has no rows")
    return features, y


def finite(features: npt.NDArray[Any]) -> Floats:
    """The features as floats, if all are finite."""
    floats = features.astype(np.float64, copy=False)
    if not np.isfinite(floats).all():
        raise ParameterError("X holds NaN or infinite numbers")
    return np.asarray(floats)


def _features(estimator: Any, rows: Any, *, reset: bool) -> npt.NDArray[Any]:
    """Rows as an array of two dimensions; its width and the columns' names are those of the fit, or reset sets them."""
    frame = nw.from_native(rows, eager_only=True, pass_through=True)
    named = isinstance(frame, nw.DataFrame)
    for name, dtype in frame.schema.items() if named else ():
        if not (dtype.is_numeric() or dtype in (nw.Boolean, nw.Object)):
            raise ParameterError(
                f"X must hold numbers, and column {str(name)!r} does not; a Table with a declared Category encodes "
                "levels"
            )
    if isinstance(nw.from_native(rows, pass_through=True), nw.LazyFrame):
        raise ParameterError("X is a lazy frame, whose rows are not read yet: collect it first")
    features = converted(rows, "X", "numeric")
    if features.ndim != 2:
        raise ParameterError(
            f"X must be a 2D array, found {features.ndim} dimensions. Reshape your data: one row for each person, one "
            "column for each feature"
        )
    if features.shape[1] == 0:  # as scikit-learn says it, but for the number of rows
        raise ParameterError("X has 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
    try:
        validate_data(estimator, rows if named else features, reset=reset, skip_check_array=True)
        return features
    except ValueError as error:
        complaint = str(error)  # about the width and the names of the columns, which are public
    raise ParameterError(complaint)


def converted(values: Any, name: str, kind: str | None) -> npt.NDArray[Any]:
    """The argument of a user as an array; kind "numeric": of numbers.

    Errors of numpy, pandas and scikit-learn quote values and count rows. So nothing of them survives but their type,
    and they are not in the context of the error that is raised, for it is raised outside their handler.
    """
    if issparse(values):
        if values.shape[0] * values.shape[-1] > MOST_DENSE:  # how many rows these are is not said: it may be private
            raise ParameterError(
                f"{name} is sparse and needs more than 1 GiB when it is written out: use fewer columns"
            )
        values = values.toarray()
    if getattr(getattr(values, "dtype", None), "kind", "") == "c":
        raise ParameterError(f"Complex data not supported: {name} must hold numbers, found complex ones")
    shape = {"ensure_2d": False, "allow_nd": True, "ensure_min_samples": 0, "ensure_min_features": 0}
    try:
        return np.asarray(check_array(values, dtype=kind, ensure_all_finite=False, **shape))
    except TypeError:
        wrong: Exception = TypeError(f"{name} must hold numbers: every argument must be a string or a real number")
    except Exception:
        wrong = ParameterError(f"{name} must hold numbers in rows of equal length, found text or rows of other lengths")
    raise wrong


def held(terms: Terms, count: int, make: Callable[..., Held]) -> Held | Part:
    """The rows as a dataset; with a ledger and a larger declared size they are a part of its table."""
    if terms.neighbours.rows > 1:
        raise ParameterError(
            f"each row of an array is a person, but the relation is {terms.neighbours}: fit a model to a Table, whose "
            "unit= names the person",
            argument="neighbours",
        )
    whole = terms.ledger is None or not terms.neighbours.replace_one or terms.size is None or terms.size <= count
    try:
        rows = make(neighbours=terms.neighbours, size=terms.size if whole else None, name=terms.name)
        return rows if whole or terms.size is None else Part(rows, terms.size)
    except UndeclaredLevels as error:
        complaint = f"column {error.column!r} holds levels that are not declared: name them all in classes="
    except SchemaError as error:
        complaint = str(error)
    raise ParameterError(complaint)


def matrix(
    terms: Terms, rows: npt.NDArray[Any], y: npt.NDArray[Any], *, norm: Fraction, target: Category | Number
) -> Matrix | Part:
    """Features and target as a dataset; fewer rows than the declared size are a part of the ledger's table."""
    vector = Vector(rows.shape[1], norm=norm)
    return held(terms, len(rows), lambda **how: Matrix(rows, y, features=vector, target=target, **how))


def table_of(terms: Terms, columns: dict[str, Any], domain: Domain, count: int) -> Table | Part:
    """Columns of arrays as a dataset."""
    return held(terms, count, lambda **how: Table(columns, domain, edition=None, **how))


# Classes.


def class_levels(classes: Any, y: npt.NDArray[Any] | None, *, two: bool = False) -> tuple[npt.NDArray[Any], Category]:
    """The classes in order, the last is the positive one, and the declaration that encodes them. two: just two."""
    if classes is None:
        raise ParameterError(
            'classes must be declared: the labels that may occur, say classes=(0, 1), or "public" if the labels in y '
            "are no secret; which labels occur is private otherwise"
        )
    if not isinstance(classes, str):
        labels = _label_array(classes)
    elif classes == "public" and y is not None:
        check_classification_targets(y)
        labels = np.unique(y)
    else:
        raise ParameterError(f'classes must be a list of labels or "public", found {classes!r}')
    if len(labels) < 2:
        raise ParameterError(f"classes must be at least two, found {len(labels)} class")
    category = Category(levels=[_level(label) for label in labels.tolist()])
    if two and len(labels) != 2:
        raise ParameterError(
            f"Only binary classification is supported. Name two classes, the last is the positive one; found "
            f"{len(labels)}"
        )
    return labels, category


def declared_classes(
    given: Any, domain: Domain, target: str, *, two: bool = False
) -> tuple[npt.NDArray[Any], Category]:
    """The classes that a table declares for the target and their declaration, if they are those that were given."""
    column = domain.column(target)
    if not column.categorical:
        raise ParameterError(f"the target {target!r} is declared {column!r}: classes need a Category")
    labels, category = class_levels(column.levels, None, two=two)
    stated = given is None or (isinstance(given, str) and given == "public")
    if not stated and class_levels(given, None, two=two)[1].levels != category.levels:
        raise ParameterError(f"classes={given!r} are not those that the table declares: {list(column.levels)!r}")
    return labels, category


def _label_array(classes: Any) -> npt.NDArray[Any]:
    if isinstance(classes, (set, frozenset)):
        raise ParameterError("classes must be in an order, the last is the positive one: give a list, found a set")
    try:
        levels = [_level(label) for label in classes]
    except TypeError:
        raise ParameterError(f'classes must be a list of labels or "public", found {classes!r}') from None
    return np.array(levels, dtype=None if len(set(map(type, levels))) == 1 else object)


def _level(label: Any) -> Any:
    """A label as a level: texts, whole numbers and booleans."""
    plain = label.item() if isinstance(label, np.generic) else label
    if isinstance(plain, float) and plain.is_integer():
        return int(plain)
    if isinstance(plain, (str, int)):
        return plain
    raise ParameterError(f"Unknown label type: a class is a text, a whole number or a boolean, found {label!r}")


# Tables.


def is_table(rows: object) -> bool:
    """Whether these are private rows behind the doors of a dataset, and not an array."""
    return is_dataset(rows)


def checked_table(rows: Dataset, terms: Terms) -> Dataset:
    """A table, if there is a ledger for it; it brings its own relation and size."""
    if terms.ledger is None:
        raise ParameterError("a table is fitted with its ledger: give ledger=..., or use Session(table, ledger)")
    if terms.size is not None:
        raise ParameterError("size belongs to arrays; a table brings its own")
    if not terms.neighbours.replace_one and rows.facts.neighbours.replace_one:
        raise ParameterError(f"neighbours={terms.neighbours.kind!r}, but the table is declared replace-one")
    return rows


def table_columns(table: Dataset, target: Any, features: Any) -> tuple[str, tuple[str, ...]]:
    """The target's name and the features' names: all other declared columns, unless they are given."""
    name, domain = exact.text(target=target), table.facts.domain
    domain.column(name)
    if isinstance(features, str):
        raise ParameterError(f"features must be a list of column names, found the text {features!r}")
    columns = tuple(other for other in domain.names if other != name) if features is None else tuple(features)
    if not columns:
        raise ParameterError("features must name at least one column, found none")
    if name in columns:
        raise ParameterError(f"features must not contain the target {name!r}")
    for feature in columns:
        domain.column(exact.text(features=feature))
    return name, columns


def _name_columns(estimator: Any, columns: tuple[str, ...], target: Domain) -> None:
    """Sets what scikit-learn calls the features, and the declaration of the target."""
    estimator.n_features_in_, estimator.target_ = len(columns), target
    estimator.feature_names_in_ = np.array(columns, dtype=object)


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
        length = root if norm is None else exact.positive(row_norm=norm)
        return Encoding(domain, Declared(tuple(columns), length, False))

    def record(self) -> model_file.State:
        """As JSON, for files of models."""
        return {"domain": record(self.domain), "features": record(self.features)}

    @staticmethod
    def from_record(found: object) -> Encoding:
        state = model_file.keys(found, "domain", "features")
        domain = model_file.domain_from(state["domain"])
        features = model_file.revived(state["features"], {each.NAME: each for each in (Declared, Ranged)}, Declared)
        if set(features.columns) - set(domain.names):
            model_file.wrong("features", state["features"])
        return Encoding(domain, features)

    @property
    def names(self) -> tuple[str, ...]:
        return self.features.names(self.domain)

    @property
    def scales(self) -> Floats:
        """For each coordinate (a, b): it is a * value + b of the column's own value."""
        return np.array(self.features.scales(self.domain))

    def rows(self, source: Any) -> Floats:
        """The rows of a frame as numbers."""
        batch = frame_batch(source, self.domain)
        vectors = np.empty((batch.rows, self.features.dimension(self.domain)))
        self.features.fill(batch, slice(0, batch.rows), vectors)
        return vectors * float(self.features.unit(self.domain))


# The readers.


def numbered_rows(estimator: Any, terms: Terms, x: Any, y: Any, target: Number, offset: Fraction) -> Rows:
    """Arrays with a target of numbers, from which the offset is subtracted."""
    norm = _row_norm(estimator)
    features, numbers = arrays(estimator, terms, x, y, numeric=True)
    data = matrix(terms, features, numbers.astype(np.float64) - float(offset), norm=norm, target=target)
    return Rows(data, VectorColumn("x", flag(estimator, "fit_intercept")), "y", norm, features.shape[1], None)


def class_rows(estimator: Any, terms: Terms, x: Any, y: Any, features: Any, *, intercept: bool) -> Rows:
    """Rows with a target of classes, of arrays or of a table; sets `classes_`."""
    if is_table(x):
        rows = table_rows(estimator, terms, x, y, features, intercept=intercept)
        estimator.classes_, _ = declared_classes(estimator.classes, rows.data.facts.domain, rows.target)
        return rows
    refuse_features(features)
    norm = _row_norm(estimator)
    numbers, labels = arrays(estimator, terms, x, y, numeric=False)
    estimator.classes_, target = class_levels(estimator.classes, labels)
    data = matrix(terms, numbers, labels, norm=norm, target=target)
    return Rows(data, VectorColumn("x", intercept), "y", norm, numbers.shape[1], None)


def table_rows(estimator: Any, terms: Terms, table: Any, target: Any, features: Any, *, intercept: bool) -> Rows:
    """Columns of a table, encoded by their declaration; sets what scikit-learn calls the features."""
    data = checked_table(table, terms)
    name, columns = table_columns(data, target, features)
    encoding = Encoding.of(data, columns, estimator.row_norm)
    vectors = replace(encoding.features, intercept=intercept)
    _name_columns(estimator, columns, data.facts.domain.project([name]))
    return Rows(data, vectors, name, vectors.norm, len(encoding.names), encoding)


def _row_norm(estimator: Any) -> Fraction:
    """The declared length of rows; it is never read from them."""
    if estimator.row_norm is None:
        raise ParameterError(
            "row_norm must be given: the length that rows are scaled down to, from public knowledge; d features in "
            "[-1, 1] have length at most sqrt(d)"
        )
    return exact.moderate(row_norm=estimator.row_norm)


def number_examples(estimator: Any, terms: Terms, x: Any, y: Any, *, reset: bool) -> Examples:
    """Arrays or a frame of numbers, clamped to the declared bounds and put on the declared grid."""
    features, labels, target = _labelled(estimator, terms, x, y, reset=reset)
    names, name = feature_names(estimator, features.shape[1]), "y"
    while name in names:
        name += "_"
    columns = getattr(estimator, "feature_names_in_", None)
    numbers = declared_numbers(estimator.bounds, estimator.step, features.shape[1], columns)
    domain = Domain({**dict(zip(names, numbers, strict=True)), name: target})
    columns = {**dict(zip(names, finite(features).T, strict=True)), name: labels}
    return Examples(table_of(terms, columns, domain, len(features)), names, Labels(name, target.levels[-1]))


def bit_examples(
    estimator: Any, terms: Terms, x: Any, y: Any, *, reset: bool, bits: Callable[[Floats], Mask] | None = None
) -> Examples:
    """Arrays or a frame of booleans, packed; or the booleans that `bits` makes of the rows, one row at a time."""
    features, labels, target = _labelled(estimator, terms, x, y, reset=reset)
    booleans = finite(features) if bits is None else bits(finite(features))
    data = held(terms, len(features), lambda **how: BitMatrix(booleans, labels, target=target, **how))
    named = hasattr(estimator, "feature_names_in_")
    names = feature_names(estimator, features.shape[1]) if named else None
    return Examples(data, ("x",), Labels("y", target.levels[-1]), names)


def _labelled(
    estimator: Any, terms: Terms, x: Any, y: Any, *, reset: bool
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], Category]:
    """Arrays with a target of two classes, which reset sets as `classes_`."""
    features, labels = arrays(estimator, terms, x, y, numeric=False, reset=reset)
    classes, target = class_levels(estimator.classes if reset else estimator.classes_, labels, two=True)
    if reset:
        estimator.classes_ = classes
    return features, labels, target


TAKEN = {
    "bounded": "a Number",
    "listed": "a Number or a Category",
    "binary": "a Category of two levels, the second meaning true",
}
"""Which columns of a table a learner of rules takes as features, by what the column answers, and how that is said."""


def table_examples(
    estimator: Any, terms: Terms, table: Any, target: Any, features: Any, takes: str, *, reset: bool
) -> Examples:
    """Columns of a table: those that are named, or all but the target that the learner takes."""
    data = checked_table(table, terms)
    for parameter in ("bounds", "step"):
        if getattr(estimator, parameter, None) is not None:
            raise ParameterError(f"{parameter} belongs to arrays; the table declares its columns' own")
    name, columns = table_columns(data, target, features)
    declared = data.facts.domain
    others = [column for column in columns if not getattr(declared.column(column), takes)]
    if features is None:
        columns = tuple(column for column in columns if column not in others)
        if not columns:
            raise ParameterError(f"no column of the table but the target is {TAKEN[takes]}")
    elif others:
        column = declared.column(others[0])
        raise ParameterError(f"column {others[0]!r} is declared {column!r}: it must be {TAKEN[takes]}")
    given = estimator.classes if reset else estimator.classes_
    labels, category = declared_classes(given, declared, name, two=True)
    if reset:
        estimator.classes_ = labels
        _name_columns(estimator, columns, declared.project([name]))
    return Examples(data, columns, Labels(name, category.levels[-1]), table=True)


def feature_names(estimator: Any, count: int) -> tuple[str, ...]:
    """The names of a frame's columns, or x1, x2, ..."""
    named = getattr(estimator, "feature_names_in_", None)
    return tuple(f"x{place + 1}" for place in range(count)) if named is None else tuple(map(str, named))


# Rows for a prediction.


def predicted_floats(estimator: Any, x: Any, *, reset: bool = False) -> Floats:
    """Features for a prediction: as wide as those of the fit, finite."""
    return finite(_features(estimator, x, reset=reset))


def predicted_vectors(estimator: Any, x: Any) -> Floats:
    """Rows for a prediction, as a linear model or a network saw those of the fit; without the intercept."""
    encoding: Encoding | None = estimator.encoding_
    return predicted_floats(estimator, x) if encoding is None else encoding.rows(x)


def predicted_batch(estimator: Any, x: Any, domain: Domain) -> Batch:
    """Rows for a prediction, encoded by the declaration: of a frame by name, or of an array by position."""
    if estimator.from_table_:
        return frame_batch(x, domain)
    features = predicted_floats(estimator, x)
    if domain.column(domain.names[0]).packed:
        if not np.isin(features, (0, 1)).all():
            raise ParameterError("the features must be booleans, or numbers that are 0 or 1; found another value")
        words = packed((features == 1).T)
        return Batch(domain, len(features), lambda name: words)
    codes = {
        name: encode(read(column, name), domain.column(name), name)
        for name, column in zip(domain.names, features.T, strict=True)
    }
    return Batch(domain, len(features), codes.__getitem__)


def frame_batch(source: Any, domain: Domain) -> Batch:
    """The rows of a frame, encoded by the declaration of its columns."""
    if isinstance(source, np.ndarray):
        raise ParameterError("this model was fitted on named columns: give a frame or a dict of columns")
    frame = source if isinstance(source, Frame) else Frame(source)
    Frame.require(frame.names, domain.names)
    codes = {name: encode(frame[name], domain.column(name), name) for name in domain.names}
    if len({len(column) for column in codes.values()}) > 1:
        raise SchemaError("the columns are not equally long")
    return Batch(domain, len(codes[domain.names[0]]), codes.__getitem__)


def projected(rows: Floats, norm: float) -> Floats:
    """Rows longer than norm, scaled down to it. For predictions: what a fit does is `discreet.data.encoding`."""
    largest = np.maximum(np.abs(rows).max(axis=1, keepdims=True), norm)  # squares of huge numbers overflow
    scaled = rows / largest
    length = np.maximum(np.linalg.norm(scaled, axis=1, keepdims=True), norm / largest)
    return np.asarray(scaled * (norm / length))
