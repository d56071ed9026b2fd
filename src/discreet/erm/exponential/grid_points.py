"""Public grids of feasible sets: the centres of equal cells that fill the box around a set.

Lattice   the grid in exact numbers, and the list of its points
Mesh      the same in integers of a unit, and boxes of its points: what `cell_sampler` draws from
Cover     how the cells of a grid cover the set: what the promises rest on
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.data import Floats, common_unit
from discreet.erm.feasible_sets import FeasibleSet
from discreet.errors import ParameterError

Point = tuple[int, ...]
Sides = tuple[tuple[int, int], ...]  # in each coordinate the first step and the number of steps


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
        starts, strides, least = [], [], Fraction(0)
        for low, high in feasible.sides(dimension):
            start, stride = low + (high - low) / points / 2, (high - low) / points
            if unit is not None:
                first, last = -(-low // unit), high // unit
                step = (last - first) // points
                if step < 1:
                    raise ParameterError(f"points must be at most {last - first} on this axis, found {points}")
                start, stride = (first + (last - first - step * (points - 1)) // 2) * unit, step * unit
            # The least square on the axis is that of the last value below 0 or of the first above.
            below = min(max(math.floor(-start / stride), 0), points - 1)
            least += min((start + k * stride) ** 2 for k in (below, min(below + 1, points - 1)))
            starts.append(start)
            strides.append(stride)
        radius = None if feasible.ball is None else feasible.ball**2
        if radius is not None and least > radius:
            raise ParameterError(f"no point of a grid of {points} on each axis lies in the ball: take one more")
        return Lattice(tuple(starts), tuple(strides), points, radius)

    @property
    def size(self) -> int:
        """The number of points of the box."""
        return int(self.points ** len(self.starts))

    @property
    def diameter_squared(self) -> Fraction:
        """No two points are farther apart."""
        across = sum((((self.points - 1) * stride) ** 2 for stride in self.strides), Fraction(0))
        return across if self.radius_squared is None else min(across, 4 * self.radius_squared)

    def mesh(self, unit: Fraction) -> Mesh:
        """The same in integers of a unit of which all coordinates are whole multiples."""
        starts, strides = (tuple(int(number / unit) for number in axis) for axis in (self.starts, self.strides))
        limit = None if self.radius_squared is None else math.floor(self.radius_squared / unit**2)
        return Mesh(starts, strides, self.points, limit)

    def listed(self) -> Floats:
        """All points, one for each row. What is in the ball is decided in integers."""
        unit = common_unit(itertools.chain(self.starts, self.strides))
        mesh = self.mesh(unit)
        kind = np.int64 if mesh.corner_squared() < 2**62 else object  # Python integers where squares may not fit
        steps = np.arange(self.points).astype(kind)
        axes = [start + steps * stride for start, stride in zip(mesh.starts, mesh.strides, strict=True)]
        points = np.stack([column.ravel() for column in np.meshgrid(*axes, indexing="ij")], axis=1)
        if mesh.limit is not None:
            squares = functools.reduce(np.add.outer, [axis * axis for axis in axes]).ravel()
            points = points[np.asarray(squares <= mesh.limit, dtype=bool)]
        return np.asarray(points.astype(np.float64) * unit.numerator / unit.denominator)


@dataclass(frozen=True, slots=True)
class Mesh:
    """The integer vectors with coordinates start + k * stride, 0 <= k < points, and maybe within a ball."""

    starts: Point
    strides: Point
    points: int
    limit: int | None = None  # of the sum of squares

    @property
    def whole(self) -> Sides:
        """The box of all points."""
        return ((0, self.points),) * len(self.starts)

    def ends(self, sides: Sides) -> list[tuple[int, int]]:
        """The first and the last value of each coordinate in a cell."""
        return [
            (start + stride * first, start + stride * (first + count - 1))
            for start, stride, (first, count) in zip(self.starts, self.strides, sides, strict=True)
        ]

    def middle(self, sides: Sides) -> Point:
        """A point of the cell next to its centre."""
        return tuple(
            start + stride * (first + count // 2)
            for start, stride, (first, count) in zip(self.starts, self.strides, sides, strict=True)
        )

    def corner_squared(self, sides: Sides | None = None) -> int:
        """The squared length of the farthest corner of a cell, or of the box of all points."""
        return sum(max(a * a, b * b) for a, b in self.ends(sides or self.whole))

    def excludes(self, point: Point) -> bool:
        return self.limit is not None and dot(point, point) > self.limit

    def outside(self, sides: Sides) -> bool:
        """Surely no point of the cell is in the ball."""
        if self.limit is None:
            return False
        return sum(0 if a <= 0 <= b else min(a * a, b * b) for a, b in self.ends(sides)) > self.limit

    def inside(self, sides: Sides) -> bool:
        """Surely all of them are."""
        return self.limit is None or self.corner_squared(sides) <= self.limit


@dataclass(frozen=True, slots=True)
class Cover:
    """How the cells of a grid cover a feasible set.

    size       the number of points of the grid
    diagonal   of a cell
    uncovered  how far a point of the box around the set can be from all cells
    radius     of the set if it is a ball
    """

    size: int
    diagonal: float
    uncovered: float
    radius: float | None = None

    @staticmethod
    def of(lattice: Lattice, feasible: FeasibleSet) -> Cover:
        sides = feasible.sides(len(lattice.starts))
        rest = [
            high - low - lattice.points * stride for (low, high), stride in zip(sides, lattice.strides, strict=True)
        ]
        diagonal, uncovered = (math.sqrt(sum(float(side) ** 2 for side in box)) for box in (lattice.strides, rest))
        return Cover(lattice.size, diagonal, uncovered, None if feasible.ball is None else float(feasible.ball))

    @property
    def nearest(self) -> float:
        """Every point of the set has a point of the grid within this distance."""
        near = self.diagonal / 2 + self.uncovered
        return near if self.radius is None else 2 * near


def dot(one: Sequence[int], other: Sequence[int]) -> int:
    return sum(a * b for a, b in zip(one, other, strict=True))
