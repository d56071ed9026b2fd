"""Exact draws from exp(-rate * F) on the points of a grid, for a convex F that is an integer at every one of them.

The grid may have 2^100 points: it is never listed. It is cut into boxes of points (cells), and a convex F lies above
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

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.erm.exponential.grid_points import Mesh, Point, Sides, dot
from discreet.rng import Rng

Tangent = tuple[int, Point]  # the value of F at a point and a subgradient there
Oracle = Callable[[Sequence[Point]], list[Tangent]]

_CUT_BEFORE = 12  # cells that are good enough before the first attempt; attempts cut the others
_GOOD = 2  # a cell is good enough if F is at most this over rate above its plane at the lowest corner
_BEND = Fraction(1, 4)  # a failure cuts a cell if F was this over rate above its plane


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
        return tuple(
            a + stride * step if up else b - stride * step
            for (a, b), stride, step, up in zip(
                self.mesh.ends(cell.sides), self.mesh.strides, steps, cell.upward, strict=True
            )
        )

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
