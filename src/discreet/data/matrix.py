"""Rows in memory that no table holds: features with labels, many booleans per row, whole numbers of any length.

They are made by estimators and by `interior_point`; a table of named columns is a `Table`. Every row is one person.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core import WORD, Codes, Neighbours, ParameterError, SchemaError, packed
from discreet.data.domain import Bits, Category, Domain, Number, Vector, Whole
from discreet.data.encoding import encode, fill_grid, float_rows, objects, read
from discreet.data.ingest import PrivateRows, batches_of, checked_rows, facts_of, identity_of
from discreet.data.rows import Batch, Filter, Slice

Target = Category | Number

_BLOCK = 2**20  # rows in a batch: a whole number of words; entries of a matrix in a batch are four times as many


class _Labelled(PrivateRows):
    """Features in column "x" and, maybe, labels in column "y"."""

    __slots__ = ("_features", "_labels", "_rows")

    def _hold(
        self, features: Any, rows: int, column: Vector | Bits, y: object, target: Target | None, size: int | None
    ) -> None:
        """The rows of a dataset whose identity is set."""
        self._features, self._rows, self.source = features, checked_rows(rows), None
        domain = Domain(x=column)
        if target is not None:
            domain = Domain(x=column, y=target)
            self._labels = encode(read(y, "y"), target, "y").astype(target.stored_type)
            if len(self._labels) != rows:
                raise SchemaError("X and y are not equally long")
        self.facts = facts_of(domain, self.identity, size=size, persons_found=rows)


class Matrix(_Labelled):
    """A feature matrix, and labels or targets: Matrix(X, y, features=Vector(d, norm=1), target=Category(0, 1)).

    X       numbers: a numpy array, a pandas, polars or pyarrow frame, or nested lists. Column "x" holds its rows on the
            integer grid of `features` (`discreet.data.encoding`).
    y       labels, encoded by `target` into column "y"; both or neither.
    size    as in Table. Every row is one person.
    """

    __slots__ = ()

    def __init__(
        self,
        X: object,  # noqa: N803 - the name that every user of feature matrices expects
        y: object = None,
        *,
        features: Vector,
        target: Target | None = None,
        neighbours: Neighbours | str = "replace-one",
        size: int | None = None,
        name: str = "matrix",
    ) -> None:
        if (y is None) != (target is None):
            raise ParameterError("y and target belong together: give both or neither")
        # All rows on the grid, some at a time so that the floats of the whole matrix are never copied.
        count, blocks = float_rows(X, dimension=features.dimension, block=_rows_at_once(features.dimension))
        width, start = np.min_scalar_type(-math.isqrt(features.bound_squared) - 1), 0
        units = np.empty((checked_rows(count), features.dimension), dtype=width)
        for block in blocks:
            fill_grid(block, features, units[start : start + len(block)])
            start += len(block)
        self.identity = identity_of(name, neighbours)
        self._hold(units, count, features, y, target, size)

    def _batches(self, reading: Callable[[Batch], object]) -> Iterator[Batch]:
        codes = {"x": self._features, **({"y": self._labels} if "y" in self.facts.domain else {})}
        block = _rows_at_once(self._features.shape[1])
        return batches_of(codes, self.facts.domain, rows=self._rows, block=block)


def _rows_at_once(dimension: int) -> int:
    return max(1, 4 * _BLOCK // dimension)


class BitMatrix(_Labelled):
    """Booleans and labels: BitMatrix(X, y, target=Category(0, 1)). Column "x" holds the Bits, column "y" the labels.

    X       an array or frame of booleans, or of numbers that are 0 or 1: one row for each person.
    y       labels, encoded by `target`.
    size    as in Table.
    """

    __slots__ = ()

    def __init__(
        self,
        X: object,  # noqa: N803 - the name that every user of feature matrices expects
        y: object,
        *,
        target: Category,
        neighbours: Neighbours | str = "replace-one",
        size: int | None = None,
        name: str = "matrix",
    ) -> None:
        shape = getattr(X, "shape", None) or np.asarray(X).shape
        if len(shape) != 2 or shape[1] == 0:
            raise ParameterError(f"the features must have at least one column, found the shape {('n', *shape[1:])}")
        block, column = max(WORD, 2**22 // shape[1] // WORD * WORD), Bits(shape[1])
        parts = (packed(np.ascontiguousarray(ones.T)) for ones in _boolean_rows(X, shape[1], block))
        self.identity = identity_of(name, neighbours)
        self._hold(np.concatenate([column.empty(), *parts], axis=1), shape[0], column, y, target, size)

    def _batches(self, reading: Callable[[Batch], object]) -> Iterator[Batch]:
        for start in range(0, max(self._rows, 1), _BLOCK):
            stop = min(start + _BLOCK, self._rows)
            columns = {"x": self._features[:, start // WORD : -(-stop // WORD)], "y": self._labels[start:stop]}
            yield Batch(self.facts.domain, stop - start, columns.__getitem__)


def _boolean_rows(rows: Any, dimension: int, block: int) -> Iterator[npt.NDArray[np.bool_]]:
    """The rows of a matrix of zeros and ones, at most `block` of them at a time."""
    if type(rows) is np.ndarray and rows.dtype == np.bool_:
        yield from (rows[start : start + block] for start in range(0, len(rows), block))
        return
    for floats in float_rows(rows, dimension=dimension, block=block)[1]:
        ones = floats == 1
        if not (ones | (floats == 0)).all():
            raise SchemaError("the features must be booleans, or numbers that are 0 or 1; found another value")
        yield ones


class Integers(PrivateRows):
    """Whole numbers 0 .. 2^bits - 1 of any length, one for each person; column "x"."""

    __slots__ = ("_values",)

    def __init__(
        self,
        values: Iterable[Any],
        bits: int,
        *,
        neighbours: Neighbours | str = "replace-one",
        size: int | None = None,
        name: str = "integers",
    ) -> None:
        column = Whole(bits)
        self.identity, self.source = identity_of(name, neighbours), None
        self._values = sorted(_whole(value, column) for value in values)
        rows = checked_rows(len(self._values))
        self.facts = facts_of(Domain(x=column), self.identity, size=size, persons_found=rows)

    def _batches(self, reading: Callable[[Batch], object]) -> Iterator[Batch]:
        yield Batch(self.facts.domain, len(self._values), {"x": objects(self._values)}.__getitem__)

    def exact_slices(self, slices: Sequence[Slice], *, where: Filter | None = None, disjoint: bool) -> list[Codes]:
        """Slices are of columns of numbers in a table; these are gathered whole."""
        raise ParameterError("whole numbers of any length have no slices: gather the column")


def _whole(value: Any, column: Whole) -> int:
    """A value as a Python integer, if it is one of the column's; the refusal does not quote it."""
    try:
        whole = operator.index(value)
    except TypeError:
        raise SchemaError(f"the values must be whole numbers, found a {type(value).__name__}") from None
    if whole < 0 or whole.bit_length() > column.bits:
        raise SchemaError(f"the values must be at least 0 and below 2**{column.bits}, found one that is not")
    return whole
