"""Public grids of feasible sets: the centres of equal cells that fill the box around a set."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from discreet.data import Floats, IntArray, common_unit
from discreet.erm.feasible_sets import Ball, BallBox, FeasibleSet
from discreet.errors import ParameterError


@dataclass(frozen=True, slots=True)
class Lattice:
    """The points with coordinates start + k * stride, 0 <= k < points; of a ball those that are in it."""

    starts: tuple[Fraction, ...]
    strides: tuple[Fraction, ...]
    points: int
    radius_squared: Fraction | None

    @staticmethod
    def of(feasible: FeasibleSet, dimension: int, points: int, unit: Fraction | None = None) -> Lattice:
        """The centres of equal cells; with a unit, of cells a little smaller, in whole multiples of the unit."""
        sides = sides_of(feasible, dimension)
        axes = [
            _centres(low, high, points) if unit is None else _rounded(low, high, points, unit) for low, high in sides
        ]
        radius = feasible.radius**2 if isinstance(feasible, (Ball, BallBox)) else None
        found = Lattice(tuple(start for start, _ in axes), tuple(stride for _, stride in axes), points, radius)
        if radius is not None and sum(found._least_squares()) > radius:
            raise ParameterError(f"no point of a grid of {points} on each axis lies in the ball: take one more")
        return found

    @property
    def size(self) -> int:
        """The number of points of the box."""
        return int(self.points ** len(self.starts))

    @property
    def diameter_squared(self) -> Fraction:
        """No two points are farther apart."""
        across = sum((((self.points - 1) * stride) ** 2 for stride in self.strides), Fraction(0))
        return across if self.radius_squared is None else min(across, 4 * self.radius_squared)

    @property
    def unit(self) -> Fraction:
        """All coordinates are whole multiples of it."""
        return common_unit(itertools.chain(self.starts, self.strides))

    def integers(self) -> IntArray:
        """All points, one a row, in units."""
        axes = self._axes()
        columns = [column.ravel() for column in np.meshgrid(*axes, indexing="ij")]
        inside = slice(None) if self.radius_squared is None else self._inside(axes)
        return np.stack([column[inside] for column in columns], axis=1)

    def listed(self) -> Floats:
        """All points, one a row."""
        unit = self.unit
        return self.integers().astype(np.float64) * unit.numerator / unit.denominator

    def _axes(self) -> list[IntArray]:
        """The coordinates of each axis, in units: int64 if their squares add up in it, Python integers otherwise."""
        unit, steps = self.unit, np.arange(self.points)
        ends = [max(abs(a), abs(a + (self.points - 1) * b)) / unit for a, b in self._axis_pairs()]
        kind = np.int64 if sum(end**2 for end in ends) < 2**62 else object
        return [int(a / unit) + steps.astype(kind) * int(b / unit) for a, b in self._axis_pairs()]

    def _inside(self, axes: list[IntArray]) -> npt.NDArray[np.bool_]:
        """Which points are in the ball, decided in integers."""
        assert self.radius_squared is not None
        squares = functools.reduce(np.add.outer, [axis * axis for axis in axes]).ravel()
        return np.asarray(squares <= math.floor(self.radius_squared / self.unit**2), dtype=bool)

    def _least_squares(self) -> list[Fraction]:
        """The least square on each axis: of the last value below 0 or the first above."""
        found = []
        for start, stride in self._axis_pairs():
            below = min(max(math.floor(-start / stride), 0), self.points - 1)
            found.append(min((start + k * stride) ** 2 for k in (below, min(below + 1, self.points - 1))))
        return found

    def _axis_pairs(self) -> list[tuple[Fraction, Fraction]]:
        return list(zip(self.starts, self.strides, strict=True))


def _centres(low: Fraction, high: Fraction, points: int) -> tuple[Fraction, Fraction]:
    stride = (high - low) / points
    return low + stride / 2, stride


def _rounded(low: Fraction, high: Fraction, points: int, unit: Fraction) -> tuple[Fraction, Fraction]:
    first, last = -(-low // unit), high // unit
    step = (last - first) // points
    if step < 1:
        raise ParameterError(f"points must be at most {last - first} on this axis, found {points}")
    return (first + (last - first - step * (points - 1)) // 2) * unit, step * unit


def sides_of(feasible: FeasibleSet, dimension: int) -> list[tuple[Fraction, Fraction]]:
    """The ends of the axes of the least box around the set."""
    if isinstance(feasible, Ball):
        return [(-feasible.radius, feasible.radius)] * dimension
    if len(feasible.low) not in (1, dimension):
        raise ParameterError(f"the box has {len(feasible.low)} sides, the problem has {dimension} coordinates")
    sides = list(zip(feasible.low, feasible.high, strict=True)) * (dimension if len(feasible.low) == 1 else 1)
    if isinstance(feasible, BallBox):
        return [(max(low, -feasible.radius), min(high, feasible.radius)) for low, high in sides]
    return sides
