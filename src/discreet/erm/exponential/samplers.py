"""Public grids of feasible sets, and exact draws from exp(-rate * F) on the points of a grid.

Lattice   the centres of equal cells that fill the box around a set, in exact numbers, and the list of them
Mesh      the same in integers of a unit, and boxes of its points
Cover     how the cells of a grid cover the set: what the promises rest on
Cells     exact draws, for a convex F that is an integer at every point

The grid may have 2^100 points: it is never listed. `Cells` cuts it into boxes of points, and a convex F lies above
its tangent plane at a point of the cell, in exact integers. One attempt:

1. Choose a cell with probability proportional to exp(-rate * lowest point of its plane) times a whole number that says
   how many points at that height it counts for.
2. In each coordinate propose a number of steps k away from the plane's lowest corner, with probability proportional to
   exp(-j) where j <= k * (rate * slope of the plane) is a whole number.
3. Keep the point with the probability that makes up for the difference between exp(-rate * F) and all this.

A point that is kept has exactly the law, whatever the cells are; so cells may be cut where attempts fail, and what was
learned from failures bends nothing. The number of attempts has no limit. Proof: docs/proofs/grid_exponential.md.

In a ball only the points inside are kept. Where F would rather be outside, its planes are too low to be of use; but F +
m (|w|^2 - radius^2) is below F in the ball for every m >= 0, is convex too, and with the right m it does not point
outside. Each cell takes the better of the two.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.core import ParameterError, Rng
from discreet.data import Floats, common_unit
from discreet.erm.feasible_sets import FeasibleSet

Point = tuple[int, ...]
Sides = tuple[tuple[int, int], ...]  # in each coordinate the first step and the number of steps
Tangent = tuple[int, Point]  # the value of F at a point and a subgradient there
Oracle = Callable[[Sequence[Point]], list[Tangent]]

_CUT_BEFORE = 12  # cells that are good enough before the first attempt; attempts cut the others
_GOOD = 2  # a cell is good enough if F is at most this over rate above its plane at the lowest corner
_BEND = Fraction(1, 4)  # a failure cuts a cell if F was this over rate above its plane


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
        axes = zip(self.starts, self.strides, sides, strict=True)
        return [(at + stride * first, at + stride * (first + count - 1)) for at, stride, (first, count) in axes]

    def middle(self, sides: Sides) -> Point:
        """A point of the cell next to its centre."""
        axes = zip(self.starts, self.strides, sides, strict=True)
        return tuple(start + stride * (first + count // 2) for start, stride, (first, count) in axes)

    def corner_squared(self, sides: Sides | None = None) -> int:
        """The squared length of the farthest corner of a cell, or of the box of all points."""
        return sum(max(a * a, b * b) for a, b in self.ends(sides or self.whole))

    def excludes(self, point: Point) -> bool:
        return self.limit is not None and dot(point, point) > self.limit

    def outside(self, sides: Sides) -> bool:
        """Surely no point of the cell is in the ball."""
        nearest = sum(0 if a <= 0 <= b else min(a * a, b * b) for a, b in self.ends(sides))
        return self.limit is not None and nearest > self.limit

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
        rest = [high - low - lattice.points * step for (low, high), step in zip(sides, lattice.strides, strict=True)]
        diagonal, uncovered = (math.sqrt(sum(float(side) ** 2 for side in box)) for box in (lattice.strides, rest))
        size, radius = lattice.points ** len(sides), None if feasible.ball is None else float(feasible.ball)
        return Cover(size, diagonal, uncovered, radius)

    @property
    def nearest(self) -> float:
        """Every point of the set has a point of the grid within this distance."""
        near = self.diagonal / 2 + self.uncovered
        return near if self.radius is None else 2 * near


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell and a plane that F, in the mesh, is nowhere below.

    lowest      the plane's height at its lowest corner
    rises       what it gains with each step away from there
    upward      whether these steps go up from the first value of a coordinate, or down from the last
    counts      in each coordinate, how many of the first steps count as one: about 1 / (rate * rise), at most all
    multiplier  m, the plane being a tangent of F + m (|w|^2 - limit)
    slopes      its slopes
    """

    sides: Sides
    lowest: int
    rises: Point
    upward: tuple[bool, ...]
    counts: Point
    multiplier: int
    slopes: Point


class CellWeights:
    """By what a cell is chosen: its lowest height above the least of all, rounded down to 62 leading bits."""

    def __init__(self, cells: list[Cell]) -> None:
        self.least = min(cell.lowest for cell in cells)
        gaps = [cell.lowest - self.least for cell in cells]
        self.shift = max(0, max(gaps).bit_length() - 62)
        self.scores = np.array([-(gap >> self.shift) for gap in gaps], dtype=np.int64)
        counts = [math.prod(cell.counts) for cell in cells]
        self.counts = np.array(counts, dtype=np.int64) if max(counts) < 2**62 else counts


class Cells:
    """Exact draws of a point w of the mesh with P[w] proportional to exp(-rate * F(w)).

    oracle  the values and subgradients of F at integer vectors, also outside the ball: F is convex on all of them
    """

    def __init__(self, oracle: Oracle, mesh: Mesh, rate: Fraction) -> None:
        self.oracle, self.mesh, self.rate = oracle, mesh, rate
        self.cells = self._cut_before()
        self._weights: CellWeights | None = None

    def draw(self, rng: Rng) -> Point:
        while (point := self.attempt(rng)) is None:
            pass
        return point

    def attempt(self, rng: Rng) -> Point | None:
        """One proposal, if it is kept; a failure may cut its cell."""
        weights = self._weights = self._weights or CellWeights(self.cells)
        place = rng.select(weights.scores, self.rate * 2**weights.shift, weights.counts)
        cell, base = self.cells[place], weights.least - (int(weights.scores[place]) << weights.shift)
        jumps = rng.geometric(Fraction(1), len(cell.counts)).tolist()
        steps = [jump * count + rng.integers(count) for jump, count in zip(jumps, cell.counts, strict=True)]
        if any(step >= count for step, (_, count) in zip(steps, cell.sides, strict=True)):
            return None
        point = self._point(cell, steps)
        if self.mesh.excludes(point):
            self._cut(place, None)
            return None
        ((height, slopes),) = self.oracle([point])
        if rng.bernoulli_exp(self.rate * (height - base) - sum(jumps)):
            return point
        if self.rate * (height - cell.lowest - dot(cell.rises, steps)) > _BEND:
            self._cut(place, (point, slopes))
        return None

    def made(self, wanted: list[Sides]) -> list[Cell]:
        """Cells with their better planes."""
        middles, cells = [self.mesh.middle(sides) for sides in wanted], []
        tangents = self.oracle(middles) if middles else []
        for sides, middle, tangent in zip(wanted, middles, tangents, strict=True):
            cell, inward = self._plane(sides, middle, tangent, 0), -dot(tangent[1], middle)
            if inward > 0 and not self.mesh.inside(sides):
                multiplier = inward // (2 * dot(middle, middle))  # F's slope along the middle is taken away
                cell = min(cell, self._plane(sides, middle, tangent, multiplier), key=self._log_mass)
            cells.append(cell)
        return cells

    def _plane(self, sides: Sides, middle: Point, tangent: Tangent, multiplier: int) -> Cell:
        """The tangent at the middle of F + multiplier * (|w|^2 - limit)."""
        value, slopes = self._bent(middle, tangent, multiplier)
        ends = self.mesh.ends(sides)
        corner = [a if slope >= 0 else b for slope, (a, b) in zip(slopes, ends, strict=True)]
        rises = tuple(abs(slope) * stride for slope, stride in zip(slopes, self.mesh.strides, strict=True))
        above, below = self.rate.as_integer_ratio()
        return Cell(
            sides,
            lowest=value + sum(slope * (at - mid) for slope, at, mid in zip(slopes, corner, middle, strict=True)),
            rises=rises,
            upward=tuple(slope >= 0 for slope in slopes),
            counts=tuple(  # the least number of steps over which the plane rises by 1 / rate, at most all of them
                min(count, -(-below // (above * rise))) if rise else count
                for rise, (_, count) in zip(rises, sides, strict=True)
            ),
            multiplier=multiplier,
            slopes=slopes,
        )

    def _bent(self, point: Point, tangent: Tangent, multiplier: int) -> Tangent:
        """The tangent of F + multiplier * (|w|^2 - limit) from that of F."""
        if multiplier == 0:
            return tangent
        assert self.mesh.limit is not None
        value = tangent[0] + multiplier * (dot(point, point) - self.mesh.limit)
        return value, tuple(slope + 2 * multiplier * at for slope, at in zip(tangent[1], point, strict=True))

    def _point(self, cell: Cell, steps: Sequence[int]) -> Point:
        axes = zip(self.mesh.ends(cell.sides), self.mesh.strides, steps, cell.upward, strict=True)
        return tuple(a + stride * step if up else b - stride * step for (a, b), stride, step, up in axes)

    def _cut(self, place: int, seen: tuple[Point, Point] | None) -> None:
        axis = self._axis(self.cells[place], seen)
        if axis is not None:
            self.cells[place : place + 1] = self._halves(self.cells[place], axis)
            self._weights = None

    def _halves(self, cell: Cell, axis: int) -> list[Cell]:
        """The cell cut across an axis, without parts outside the ball."""
        first, count = cell.sides[axis]
        parts = ((first, count // 2), (first + count // 2, count - count // 2))
        cut = [(*cell.sides[:axis], part, *cell.sides[axis + 1 :]) for part in parts]
        return self.made([sides for sides in cut if not self.mesh.outside(sides)])

    def _axis(self, cell: Cell, seen: tuple[Point, Point] | None) -> int | None:
        """Where to cut: across the axis along which F bends most between the middle and a point with its slopes.

        Without one, across the longest; None if the cell is a single point.
        """
        lengths = [stride * (count - 1) for stride, (_, count) in zip(self.mesh.strides, cell.sides, strict=True)]
        bends = [0] * len(lengths)
        if seen is not None:
            point, slopes = seen
            _, bent = self._bent(point, (0, slopes), cell.multiplier)
            middle = self.mesh.middle(cell.sides)
            bends = [(b - a) * (p - q) for a, b, p, q in zip(cell.slopes, bent, point, middle, strict=True)]
        axis = max(range(len(lengths)), key=lambda i: (bool(lengths[i]), bends[i], lengths[i]))
        return axis if lengths[axis] else None

    def _cut_before(self) -> list[Cell]:
        """Cut the heaviest cells until F hardly rises above the heaviest few: fewer attempts fail then."""
        (whole,), made = self.made([self.mesh.whole]), 1
        heap = [(-self._log_mass(whole), 0, whole)]
        good: list[Cell] = []
        while heap and len(good) < _CUT_BEFORE:
            _, _, cell = heapq.heappop(heap)
            corner = self._point(cell, [0] * len(cell.sides))
            (tangent,) = self.oracle([corner])
            above = self._bent(corner, tangent, cell.multiplier)[0] - cell.lowest
            axis = self._axis(cell, (corner, tangent[1])) if self.rate * above > _GOOD else None
            if axis is None:
                good.append(cell)
                continue
            for half in self._halves(cell, axis):
                heapq.heappush(heap, (-self._log_mass(half), made, half))
                made += 1
        return good + [cell for _, _, cell in heap]

    def _log_mass(self, cell: Cell) -> float:
        """Only decides what is cut first."""
        return math.log(math.prod(cell.counts)) - float(self.rate * cell.lowest)


def dot(one: Sequence[int], other: Sequence[int]) -> int:
    return sum(a * b for a, b in zip(one, other, strict=True))
