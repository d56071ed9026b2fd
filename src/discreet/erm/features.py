"""From a row to the integer vector that a linear model sees, by public rules alone.

    Constant()                          the vector (1): problems of one number (mean, median, quantile)
    VectorColumn("x", intercept)        a Vector column, as Matrix holds it
    Declared(columns, norm, intercept)  the columns of a table: numbers scaled to [-1, 1] by their declared bounds,
                                        categories as one 0/1 coordinate for each declared level, the row projected to
                                        the norm

Every row becomes integers, in units of `unit`, whose squares sum to at most `bound_squared`, and it does so by itself:
elementwise operations and table look-ups only, so no row's integers depend on which other rows are computed with it.
The intercept is one more coordinate, constantly half the norm.

A scaler that reads its bounds from the rows is an unpaid release; these bounds are declared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol

import numpy as np

from discreet import exact
from discreet.data import Batch, Category, Domain, Floats, Number, Vector, shrunk
from discreet.errors import ParameterError
from discreet.exact import Exact

STEPS = 2**15  # integer units in the norm
_BLOCK = 2**16  # entries of the rows' vectors in a block: half a megabyte of floats


class Features(Protocol):
    """Public rules that make integer vectors of rows; `fill` writes those of some rows of a batch, as exact floats.

    single  the vector is (1): the problem is about one number
    """

    single: ClassVar[bool]

    def dimension(self, domain: Domain) -> int: ...
    def bound_squared(self, domain: Domain) -> int: ...
    def unit(self, domain: Domain) -> Fraction: ...
    def names(self, domain: Domain) -> tuple[str, ...]: ...
    def fill(self, batch: Batch, part: slice, out: Floats) -> None: ...
    def constant(self, domain: Domain) -> int: ...
    def without_intercept(self) -> Features: ...


@dataclass(frozen=True, slots=True)
class Constant:
    """The vector (1) for every row."""

    NAME: ClassVar[str] = "constant-feature/1"
    single: ClassVar[bool] = True

    def dimension(self, domain: Domain) -> int:
        return 1

    def bound_squared(self, domain: Domain) -> int:
        return 1

    def unit(self, domain: Domain) -> Fraction:
        return Fraction(1)

    def names(self, domain: Domain) -> tuple[str, ...]:
        return ("1",)

    def fill(self, batch: Batch, part: slice, out: Floats) -> None:
        out[:] = 1

    def constant(self, domain: Domain) -> int:
        return 0

    def without_intercept(self) -> Constant:
        return self


@dataclass(frozen=True, slots=True)
class VectorColumn:
    """A Vector column as it is, and the intercept after it."""

    NAME: ClassVar[str] = "vector-feature/1"
    single: ClassVar[bool] = False
    column: str = "x"
    intercept: bool = True

    def dimension(self, domain: Domain) -> int:
        return self._vector(domain).dimension + self.intercept

    def bound_squared(self, domain: Domain) -> int:
        return self._vector(domain).bound_squared + self.constant(domain) ** 2

    def unit(self, domain: Domain) -> Fraction:
        return self._vector(domain).step

    def names(self, domain: Domain) -> tuple[str, ...]:
        numbered = tuple(f"{self.column}{i}" for i in range(self._vector(domain).dimension))
        return (*numbered, "intercept") if self.intercept else numbered

    def fill(self, batch: Batch, part: slice, out: Floats) -> None:
        vectors = batch.stored(self.column)[part]
        out[:, : vectors.shape[1]] = vectors
        if self.intercept:
            out[:, -1] = self.constant(batch.domain)

    def constant(self, domain: Domain) -> int:
        """The intercept's coordinate of every row; 0 if there is none."""
        vector = self._vector(domain)
        return math.floor(vector.norm / 2 / vector.step) if self.intercept else 0

    def without_intercept(self) -> VectorColumn:
        return VectorColumn(self.column, False)

    def _vector(self, domain: Domain) -> Vector:
        column = domain.column(self.column)
        if not isinstance(column, Vector):
            raise ParameterError(f"column {self.column!r} is declared {column!r}, not a Vector")
        return column


@dataclass(frozen=True, slots=True, init=False)
class Declared:
    """Declared columns of a table as one vector, projected to `norm`, and the intercept after it.

    A number becomes 2 (value - low) / (high - low) - 1, a category a 0/1 coordinate for each of its levels; a number
    that may be missing counts as 0 then, and has one more 0/1 coordinate that says so. So a row of c columns has norm
    at most sqrt(c) (a missing number has 0 and 1), and norm = sqrt(c) projects nothing.
    """

    NAME: ClassVar[str] = "declared-features/1"
    single: ClassVar[bool] = False
    columns: tuple[str, ...]
    norm: Fraction
    intercept: bool

    def __init__(self, columns: tuple[str, ...], norm: Exact, intercept: bool = True) -> None:
        names = tuple(columns)
        for name in names:
            exact.text(columns=name)
        if not names or len(set(names)) < len(names):
            raise ParameterError(f"columns must be distinct names, at least one; found {names!r}")
        length = exact.positive(norm=norm)
        if not 1 <= length * 2**9 <= 2**49:
            raise ParameterError(f"norm must lie between 2**-9 and 2**40 for numbers in [-1, 1], found {norm!r}")
        exact.freeze(self, columns=names, norm=length, intercept=bool(intercept))

    def dimension(self, domain: Domain) -> int:
        return sum(self._width(domain, name) for name in self.columns) + self.intercept

    def bound_squared(self, domain: Domain) -> int:
        return STEPS**2 + (STEPS // 2) ** 2 * self.intercept

    def unit(self, domain: Domain) -> Fraction:
        return self.norm / STEPS

    def names(self, domain: Domain) -> tuple[str, ...]:
        found: list[str] = []
        for name in self.columns:
            column = self._checked(domain, name)
            if isinstance(column, Number):
                found += [name, f"{name} is missing"][: self._width(domain, name)]
            else:
                found += [f"{name} = {column.label(code)}" for code in range(column.size)]
        return (*found, "intercept") if self.intercept else tuple(found)

    def scales(self, domain: Domain) -> tuple[tuple[float, float], ...]:
        """For each coordinate but the intercept, (a, b): it is a * value + b of the column's own value, or (1, 0)."""
        found: list[tuple[float, float]] = []
        for name in self.columns:
            column, width = self._checked(domain, name), self._width(domain, name)
            if isinstance(column, Number):
                stretch = 2 / (column.high - column.low)
                found += [(float(stretch), float(-column.low * stretch - 1)), (1.0, 0.0)][:width]
            else:
                found += [(1.0, 0.0)] * width
        return tuple(found)

    def fill(self, batch: Batch, part: slice, out: Floats) -> None:
        out[:] = 0
        one, start = STEPS / float(self.norm), 0  # what 1 is worth in units
        for name in self.columns:
            column, codes = self._checked(batch.domain, name), batch.stored(name)[part]
            if isinstance(column, Number):
                out[:, start] = np.trunc((codes.astype(np.float64) * (2 / column.steps) - 1) * one)
                if column.missing_code is not None:
                    missing = codes == column.missing_code
                    out[missing, start] = 0
                    out[missing, start + 1] = math.trunc(one)
            else:
                out[np.arange(len(codes)), start + codes.astype(np.int64)] = math.trunc(one)
            start += self._width(batch.domain, name)
        _project(out[:, :start])
        if self.intercept:
            out[:, -1] = self.constant(batch.domain)

    def constant(self, domain: Domain) -> int:
        return STEPS // 2 if self.intercept else 0

    def without_intercept(self) -> Declared:
        return Declared(self.columns, self.norm, False)

    def _width(self, domain: Domain, name: str) -> int:
        column = self._checked(domain, name)
        return column.size if isinstance(column, Category) else 1 + column.missing

    def _checked(self, domain: Domain, name: str) -> Category | Number:
        column = domain.column(name)
        if isinstance(column, (Category, Number)):
            return column
        raise ParameterError(
            f"column {name!r} is declared {column!r}: a feature needs declared levels, or Number(low, high, step)"
        )


def _project(rows: Floats) -> None:
    """Cut rows longer than STEPS to that length, in place; exact in the end whatever the floats do.

    The entries are integers of at most 2^24, their squares are summed exactly: fewer than 32 columns stay below 2^53,
    and beyond that a rounded sum only says which rows are looked at more closely; `shrunk` tests in exact integers.
    """
    squares = np.zeros(len(rows))
    for column in rows.T:
        squares += column * column
    long = np.flatnonzero(squares > STEPS**2 - 1)
    if len(long):
        factor = np.minimum(1.0, STEPS / np.sqrt(squares[long]))
        rows[long] = shrunk(np.trunc(rows[long] * factor[:, None]).astype(np.int64), STEPS**2)


def blocks(features: Features, batch: Batch, most: int = _BLOCK) -> Iterator[tuple[Floats, slice]]:
    """The rows' vectors as exact floats, at most `most` rows at a time in one buffer, with the part of the batch.

    At least one block, maybe empty: files are read for the columns that are touched.
    """
    width = features.dimension(batch.domain)
    step = max(1, min(most, _BLOCK // width))
    buffer = np.empty((min(step, batch.rows), width))
    for start in range(0, max(batch.rows, 1), step):
        part = slice(start, min(start + step, batch.rows))
        rows = buffer[: part.stop - start]
        features.fill(batch, part, rows)
        yield rows, part
