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

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from discreet.core import Exact, ParameterError, exact
from discreet.data import Batch, Category, Domain, Floats, Number, Vector, shrunk

STEPS = 2**15  # integer units in the norm
_BLOCK = 2**17  # entries of the rows' vectors in a block: a megabyte of floats
_ROWS = 2**16  # rows in a block


@runtime_checkable
class Features(Protocol):
    """Public rules that make integer vectors of rows.

    single     the vector is (1): the problem is about one number
    intercept  one more coordinate, the last, is `constant` in every row
    """

    __slots__ = ()
    NAME: ClassVar[str]
    single: ClassVar[bool] = False

    def dimension(self, domain: Domain) -> int: ...
    def bound_squared(self, domain: Domain) -> int: ...
    def unit(self, domain: Domain) -> Fraction: ...
    def names(self, domain: Domain) -> tuple[str, ...]: ...
    def fill(self, batch: Batch, part: slice, out: Floats) -> None:
        """Write the vectors of some rows of a batch, as exact floats."""

    def bound_l1(self, domain: Domain) -> int:
        """No row's integers have a larger sum of absolute values."""
        return math.isqrt(self.dimension(domain) * self.bound_squared(domain))

    def constant(self, domain: Domain) -> int:
        """The intercept's coordinate of every row; 0 if there is none."""
        return 0

    def without_intercept(self) -> Features:
        return self


@dataclass(frozen=True, slots=True)
class Constant(Features):
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


@dataclass(frozen=True, slots=True)
class VectorColumn(Features):
    """A Vector column as it is, and the intercept after it."""

    NAME: ClassVar[str] = "vector-feature/1"
    column: str = "x"
    intercept: bool = True

    def dimension(self, domain: Domain) -> int:
        return self._vector(domain).dimension + self.intercept

    def bound_squared(self, domain: Domain) -> int:
        return self._vector(domain).bound_squared + self.constant(domain) ** 2

    def bound_l1(self, domain: Domain) -> int:
        """The intercept is the same in every row: only the others may be spread over all coordinates."""
        vector = self._vector(domain)
        return math.isqrt(vector.dimension * vector.bound_squared) + self.constant(domain)

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
class Declared(Features):
    """Declared columns of a table as one vector, projected to `norm`, and the intercept after it.

    A number becomes 2 (value - low) / (high - low) - 1, a category a 0/1 coordinate for each of its levels; a number
    that may be missing counts as 0 then, and has one more 0/1 coordinate that says so. So a row of c columns has norm
    at most sqrt(c) (a missing number has 0 and 1), and norm = sqrt(c) projects nothing.
    """

    NAME: ClassVar[str] = "declared-features/1"
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
        return sum(width for *_, width in self._parts(domain)) + self.intercept

    def bound_squared(self, domain: Domain) -> int:
        return STEPS**2 + (STEPS // 2) ** 2 * self.intercept

    def bound_l1(self, domain: Domain) -> int:
        """A column adds one coordinate of at most 1, however many levels it has; cutting a row only shrinks it."""
        width = self.dimension(domain) - self.intercept
        cut = min(math.isqrt(width * STEPS**2), len(self.columns) * (math.floor(STEPS / self.norm) + 1))
        return cut + self.constant(domain)

    def unit(self, domain: Domain) -> Fraction:
        return self.norm / STEPS

    def names(self, domain: Domain) -> tuple[str, ...]:
        names: list[str] = []
        for name, column, width in self._parts(domain):
            if column.categorical:
                names += [f"{name} = {label}" for label in column.labels()]
            else:
                names += [name, f"{name} is missing"][:width]
        return (*names, "intercept") if self.intercept else tuple(names)

    def scales(self, domain: Domain) -> tuple[tuple[float, float], ...]:
        """For each coordinate but the intercept, (a, b): it is a * value + b of the column's own value, or (1, 0)."""
        scales: list[tuple[float, float]] = []
        for name, column, width in self._parts(domain):
            coordinates = [(1.0, 0.0)] * width
            if column.bounded:
                middle, half = self.range_of(name, column)
                stretch = 1 / (half * column.step)
                coordinates[0] = float(stretch), float(-column.low * stretch - middle / half)
            scales += coordinates
        return tuple(scales)

    def range_of(self, name: str, column: Number) -> tuple[Fraction, Fraction]:
        """The middle and half the width of a number's range, in steps from its low: what becomes 0 and 1."""
        return Fraction(column.steps, 2), Fraction(column.steps, 2)

    def fill(self, batch: Batch, part: slice, out: Floats) -> None:
        out[:] = 0
        one, start = STEPS / float(self.norm), 0  # what 1 is worth in units
        for name, column, width in self._parts(batch.domain):
            codes = batch.stored(name)[part]
            if column.categorical:
                out[np.arange(len(codes)), start + codes.astype(np.int64)] = math.trunc(one)
            else:
                middle, half = self.range_of(name, column)
                scaled = codes.astype(np.float64) * float(1 / half) - float(middle / half)
                out[:, start] = np.trunc(np.clip(scaled, -1, 1) * one)
                if column.missing_code is not None:
                    missing = codes == column.missing_code
                    out[missing, start] = 0
                    out[missing, start + 1] = math.trunc(one)
            start += width
        rows = out[:, :start]
        # Rows longer than STEPS are cut to that length. The entries are integers of at most 2^24, their squares are
        # summed exactly: fewer than 32 columns stay below 2^53, and beyond that a rounded sum only says which rows are
        # looked at more closely; `shrunk` tests in exact integers.
        squares = np.zeros(len(rows))
        for coordinate in rows.T:
            squares += coordinate * coordinate
        long = np.flatnonzero(squares > STEPS**2 - 1)
        if len(long):
            factor = np.minimum(1.0, STEPS / np.sqrt(squares[long]))
            rows[long] = shrunk(np.trunc(rows[long] * factor[:, None]).astype(np.int64), STEPS**2)
        if self.intercept:
            out[:, -1] = self.constant(batch.domain)

    def constant(self, domain: Domain) -> int:
        return STEPS // 2 if self.intercept else 0

    def without_intercept(self) -> Declared:
        return Declared(self.columns, self.norm, False)

    def _parts(self, domain: Domain) -> Iterator[tuple[str, Category | Number, int]]:
        """Each column with its name and the number of its coordinates."""
        for name in self.columns:
            column = domain.column(name)
            if not (column.categorical or column.bounded):
                needed = "a feature needs declared levels, or Number(low, high, step)"
                raise ParameterError(f"column {name!r} is declared {column!r}: {needed}")
            yield name, column, column.size if column.categorical else 1 + column.missing


@dataclass(frozen=True, slots=True, init=False)
class Ranged(Declared):
    """Declared columns of which some numbers are cut to a range, which becomes [-1, 1] instead of the declared one.

    ranges  for each of these columns its name, and the middle and half the width of its range in steps from its low
    """

    NAME: ClassVar[str] = "ranged-features/1"
    ranges: tuple[tuple[str, int, int], ...]

    def __init__(
        self, columns: tuple[str, ...], norm: Exact, intercept: bool, ranges: tuple[tuple[str, int, int], ...]
    ) -> None:
        Declared.__init__(self, columns, norm, intercept)
        held = [
            (exact.text(ranges=name), exact.whole(minimum=0, middle=middle), exact.whole(half=half))
            for name, middle, half in ranges
        ]
        if not {name for name, *_ in held} <= set(self.columns):
            raise ParameterError(f"ranges must be of columns {list(self.columns)}, found {held}")
        exact.freeze(self, ranges=tuple(held))

    def range_of(self, name: str, column: Number) -> tuple[Fraction, Fraction]:
        usual = Declared.range_of(self, name, column)
        return next(((Fraction(middle), Fraction(half)) for each, middle, half in self.ranges if each == name), usual)

    def without_intercept(self) -> Ranged:
        other = copy.copy(self)  # which is not checked again: a descent asks in every pass
        exact.freeze(other, intercept=False)
        return other


def blocks(features: Features, batch: Batch, most: int = _ROWS) -> Iterator[tuple[Floats, slice]]:
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
