"""Rows in memory that no table holds: many booleans a row, packed, and whole numbers of any length.

Both have the two doors of every dataset and are made by estimators and by `interior_point`; a table of named columns is
a `Table`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.arrays import WORD, Codes, Words, packed
from discreet.data.columns import float_rows, read
from discreet.data.domain import Bits, Category, Domain, Whole
from discreet.data.encoding import encode
from discreet.data.ingest import checked_rows, describe, facts_of, identity_of, stored_type
from discreet.data.rows import Batch, Filter, Slice, Summed, refuse_to_leave, sum_of
from discreet.data.slices import slices_of
from discreet.errors import ParameterError, SchemaError
from discreet.guarantee import Neighbours

_BLOCK = 2**20  # rows in a batch: a whole number of words


class BitMatrix:
    """Booleans and labels: BitMatrix(X, y, target=Category(0, 1)). Column "x" holds the Bits, column "y" the labels.

    X       an array or frame of booleans, or of numbers that are 0 or 1: one row for each person.
    y       labels, encoded by `target`.
    size    as in Table.
    """

    __slots__ = ("__weakref__", "_labels", "_rows", "_words", "facts", "identity", "source")

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
        self._hold(_packed_columns(X, shape[1]), y, target, shape[0], neighbours, size, name)

    @classmethod
    def of_words(
        cls,
        words: Words,
        y: object,
        *,
        rows: int,
        target: Category,
        neighbours: Neighbours | str = "replace-one",
        size: int | None = None,
        name: str = "matrix",
    ) -> BitMatrix:
        """From packed columns: an array (d, ceil(rows / 64)) of words, bits beyond the last row zero."""
        if words.dtype != np.uint64 or words.ndim != 2 or words.shape[1] != -(-rows // WORD):
            raise ParameterError(f"words must be uint64 of shape (d, {-(-rows // WORD)}), found {words.dtype}")
        if rows % WORD and (words[:, -1] >> np.uint64(rows % WORD)).any():
            raise ParameterError("bits beyond the last row must be zero")
        made = cls.__new__(cls)
        made._hold(words, y, target, rows, neighbours, size, name)
        return made

    def _hold(
        self, words: Words, y: object, target: Category, rows: int, neighbours: Any, size: int | None, name: str
    ) -> None:
        self.identity = identity_of(name, neighbours, None, None)
        self.source: Path | None = None
        self._words, self._rows = words, checked_rows(rows)
        self._labels = encode(read(y, "y"), target, "y").astype(stored_type(target))
        if len(self._labels) != rows:
            raise SchemaError("X and y are not equally long")
        domain = Domain(x=Bits(len(words)), y=target)
        self.facts = facts_of(domain, self.identity, size=size, persons_found=rows)

    def exact_sum(self, partial: Callable[[Batch], Summed]) -> Summed:
        """The exact sum of a bounded integer function of the rows. Not private."""
        return sum_of(self._batches(), partial)

    def exact_slices(self, slices: Sequence[Slice], *, where: Filter | None = None, disjoint: bool) -> list[Codes]:
        """The exact most extreme values of columns. Not private; bits have none."""
        return slices_of(self._batches, slices, domain=self.facts.domain, where=where, disjoint=disjoint)

    def _batches(self) -> Iterator[Batch]:
        for start in range(0, max(self._rows, 1), _BLOCK):
            stop = min(start + _BLOCK, self._rows)
            yield Batch(self.facts.domain, stop - start, self._loader(start, stop))

    def _loader(self, start: int, stop: int) -> Callable[[str], npt.NDArray[Any]]:
        bits = self._words[:, start // WORD : -(-stop // WORD)]
        return {"x": bits, "y": self._labels[start:stop]}.__getitem__

    def check_source(self) -> None:
        """Nothing to check: the rows are in memory."""

    def __repr__(self) -> str:
        return describe(self)

    __reduce_ex__ = refuse_to_leave
    __copy__ = refuse_to_leave
    __deepcopy__ = refuse_to_leave


class Integers:
    """Whole numbers 0 .. 2^bits - 1 of any length, one for each person; column "x"."""

    __slots__ = ("__weakref__", "_values", "facts", "identity", "source")

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
        self.identity = identity_of(name, neighbours, None, None)
        self.source: Path | None = None
        self._values = sorted(_whole(value, column) for value in values)
        domain = Domain(x=column)
        self.facts = facts_of(domain, self.identity, size=size, persons_found=checked_rows(len(self._values)))

    def exact_sum(self, partial: Callable[[Batch], Summed]) -> Summed:
        """The exact sum of a bounded integer function of the rows. Not private."""
        held = np.empty(len(self._values), dtype=object)
        held[:] = self._values
        return sum_of([Batch(self.facts.domain, len(held), {"x": held}.__getitem__)], partial)

    def exact_slices(self, slices: Sequence[Slice], *, where: Filter | None = None, disjoint: bool) -> list[Codes]:
        """Slices are of columns of numbers in a table; these are gathered whole."""
        raise ParameterError("whole numbers of any length have no slices: gather the column")

    def check_source(self) -> None:
        """Nothing to check: the rows are in memory."""

    def __repr__(self) -> str:
        return describe(self)

    __reduce_ex__ = refuse_to_leave
    __copy__ = refuse_to_leave
    __deepcopy__ = refuse_to_leave


def _whole(value: Any, column: Whole) -> int:
    """A value as a Python integer, if it is one of the column's; the refusal does not quote it."""
    try:
        found = operator.index(value)
    except TypeError:
        raise SchemaError(f"the values must be whole numbers, found a {type(value).__name__}") from None
    if found < 0 or found.bit_length() > column.bits:
        raise SchemaError(f"the values must be at least 0 and below 2**{column.bits}, found one that is not")
    return found


def _packed_columns(rows: Any, dimension: int) -> Words:
    """A matrix of zeros and ones, packed by column, some rows at a time."""
    block = max(WORD, 2**22 // dimension // WORD * WORD)
    parts = [np.zeros((dimension, 0), dtype=np.uint64)]
    parts += [packed(np.ascontiguousarray(ones.T)) for ones in _boolean_rows(rows, dimension, block)]
    return np.concatenate(parts, axis=1)


def _boolean_rows(rows: Any, dimension: int, block: int) -> Iterator[npt.NDArray[np.bool_]]:
    """The rows of a matrix of zeros and ones, at most `block` of them at a time."""
    if type(rows) is np.ndarray and rows.dtype == np.bool_:
        yield from (rows[start : start + block] for start in range(0, len(rows), block))
        return
    for floats in float_rows(rows, dimension=dimension, block=block):
        ones = floats == 1
        if not (ones | (floats == 0)).all():
            raise SchemaError("the features must be booleans, or numbers that are 0 or 1; found another value")
        yield ones
