"""Exact draws from exp(-rate * F) on the points of a grid, for a convex quadratic F with integer coefficients.

The grid may have 2^70 points: it is never listed. It is cut into boxes of points (cells), and a convex F lies above its
tangent plane at the centre of a cell, in exact integers. One attempt:

1. Choose a cell with probability proportional to exp(-rate * lowest point of its plane) times a whole number that says
   how many points at that height it counts for.
2. In each coordinate propose a number of steps k away from the plane's lowest corner, with probability proportional to
   exp(-j) where j <= k * (rate * slope of the plane) is a whole number.
3. Keep the point with the probability that makes up for the difference between exp(-rate * F) and all this.

A point that is kept has exactly the law, whatever the cells are; so cells may be cut where attempts fail, and what was
learned from failures bends nothing. The number of attempts has no limit. Proof: docs/proofs/grid_exponential.md.

In a ball only the points inside are kept. Where F would rather be outside, its plane is too low to be of use; F + m
(|w|^2 - radius^2) is below F in the ball for every m >= 0, is convex too, and with the multiplier m of the minimiser in
the ball it does not point outside. Each cell takes the better of the two.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.noise import Rng

Sides = tuple[tuple[int, int], ...]  # in each coordinate the first step and the number of steps

_CUT_BEFORE = 20  # cells that are good enough before the first attempt; attempts cut the others
_GOOD = 2.0  # a cell is good enough if F bends away from its plane by about this over rate
_BEND = Fraction(1, 4)  # a failure cuts a cell if F was this over rate above its plane


@dataclass(frozen=True, slots=True)
class Quadratic:
    """w^T matrix w + linear . w + corner * |w|_1, over integer vectors; the matrix has no negative eigenvalue."""

    matrix: tuple[tuple[int, ...], ...]
    linear: tuple[int, ...]
    corner: int = 0

    def four(self, w: tuple[int, ...]) -> int:
        """Four times the value."""
        return 4 * (
            sum(_dot(row, w) * each for row, each in zip(self.matrix, w, strict=True))
            + _dot(self.linear, w)
            + self.corner * sum(map(abs, w))
        )


@dataclass(frozen=True, slots=True)
class Mesh:
    """The integer vectors with coordinates start + k * stride, 0 <= k < points, and maybe within a ball."""

    starts: tuple[int, ...]
    strides: tuple[int, ...]
    points: int
    limit: int | None = None  # of the sum of squares

    def ends(self, sides: Sides) -> list[tuple[int, int]]:
        """The first and the last value of each coordinate in a cell."""
        return [
            (start + stride * first, start + stride * (first + count - 1))
            for start, stride, (first, count) in zip(self.starts, self.strides, sides, strict=True)
        ]

    def outside(self, sides: Sides) -> bool:
        """Surely no point of the cell is in the ball."""
        if self.limit is None:
            return False
        return sum(0 if a <= 0 <= b else min(a * a, b * b) for a, b in self.ends(sides)) > self.limit

    def inside(self, sides: Sides) -> bool:
        """Surely all of them are."""
        return self.limit is None or sum(max(a * a, b * b) for a, b in self.ends(sides)) <= self.limit


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell with its plane: four times its height at the lowest corner and its rise for each step away from there.

    upward  whether the steps go up from the first value of a coordinate, or down from the last
    counts  in each coordinate, how many of the first steps count as one: about 1 / (rate * rise), at most all
    """

    sides: Sides
    lowest: int
    rises: tuple[int, ...]
    upward: tuple[bool, ...]
    counts: tuple[int, ...]

    @property
    def weight(self) -> int:
        return math.prod(self.counts)


class _Offer:
    """What a cell is chosen by: its lowest height above the least of all, rounded down to 62 leading bits."""

    def __init__(self, cells: list[Cell]) -> None:
        self.least = min(cell.lowest for cell in cells)
        gaps = [cell.lowest - self.least for cell in cells]
        self.shift = max(0, max(gaps).bit_length() - 62)
        self.scores = [-(gap >> self.shift) for gap in gaps]
        self.weights = [cell.weight for cell in cells]


class Cells:
    """Exact draws of a point w of the mesh with P[w] proportional to exp(-rate * F(w))."""

    def __init__(self, quadratic: Quadratic, mesh: Mesh, rate: Fraction) -> None:
        self.quadratic, self.mesh = quadratic, mesh
        self.rate = rate / 4  # for four times the heights
        self.multiplier = 0 if mesh.limit is None else _multiplier(quadratic, mesh.limit)
        self.cells = self._cut_before(self.cell(((0, mesh.points),) * len(mesh.starts)))
        self._offer: _Offer | None = None

    def attempt(self, rng: Rng) -> tuple[int, ...] | None:
        """One proposal, if it is kept; a failure may cut its cell."""
        offer = self._offer = self._offer or _Offer(self.cells)
        place = rng.select(offer.scores, self.rate * 2**offer.shift, offer.weights)
        cell, base = self.cells[place], offer.least - (offer.scores[place] << offer.shift)
        jumps = rng.geometric(Fraction(1), len(cell.counts)).tolist()
        steps = [jump * count + rng.integers(count) for jump, count in zip(jumps, cell.counts, strict=True)]
        if any(step >= count for step, (_, count) in zip(steps, cell.sides, strict=True)):
            return None
        point = self._point(cell, steps)
        if self.mesh.limit is not None and _dot(point, point) > self.mesh.limit:
            self._cut(place)
            return None
        height = self.quadratic.four(point)
        if rng.bernoulli_exp(self.rate * (height - base) - sum(jumps)):
            return point
        if self.rate * (height - cell.lowest - _dot(cell.rises, steps)) > _BEND:
            self._cut(place)
        return None

    def draw(self, rng: Rng) -> tuple[int, ...]:
        while (point := self.attempt(rng)) is None:
            pass
        return point

    def cell(self, sides: Sides) -> Cell:
        """The cell with its better plane."""
        plane = self._plane(sides, 0)
        if self.multiplier == 0 or self.mesh.inside(sides):
            return plane
        return min(plane, self._plane(sides, self.multiplier), key=self._log_mass)

    def _plane(self, sides: Sides, multiplier: int) -> Cell:
        """The tangent at the centre c of F + multiplier * (|w|^2 - limit): 2c is an integer vector."""
        ends, corner = self.mesh.ends(sides), self.quadratic.corner
        twice = [a + b for a, b in ends]
        turned = [_dot(row, twice) + multiplier * each for row, each in zip(self.quadratic.matrix, twice, strict=True)]
        slopes = [
            each + line + corner * ((at > 0) - (at < 0))
            for each, line, at in zip(turned, self.quadratic.linear, twice, strict=True)
        ]
        centre = _dot(turned, twice) + 2 * _dot(self.quadratic.linear, twice) + 2 * corner * sum(map(abs, twice))
        rises = tuple(4 * abs(slope) * stride for slope, stride in zip(slopes, self.mesh.strides, strict=True))
        half = sum(rise * (count - 1) for rise, (_, count) in zip(rises, sides, strict=True)) // 2
        return Cell(
            sides,
            lowest=centre - half - 4 * multiplier * (self.mesh.limit or 0),
            rises=rises,
            upward=tuple(slope >= 0 for slope in slopes),
            counts=tuple(self._count(rise, count) for rise, (_, count) in zip(rises, sides, strict=True)),
        )

    def _count(self, rise: int, count: int) -> int:
        """The least number of steps over which the plane rises by 1 / rate, at most all of them."""
        return min(count, -(-self.rate.denominator // (self.rate.numerator * rise))) if rise else count

    def _point(self, cell: Cell, steps: list[int]) -> tuple[int, ...]:
        ends = self.mesh.ends(cell.sides)
        return tuple(
            a + stride * step if up else b - stride * step
            for (a, b), stride, step, up in zip(ends, self.mesh.strides, steps, cell.upward, strict=True)
        )

    def _cut(self, place: int) -> None:
        halves = self._halves(self.cells[place])
        if halves is not None:
            self.cells[place : place + 1] = halves
            self._offer = None

    def _halves(self, cell: Cell) -> list[Cell] | None:
        """The cell cut across where F bends most, without parts outside the ball; None if it is a single point."""
        bends = self._bends(cell.sides)
        axis = max(range(len(bends)), key=lambda i: (bends[i], cell.sides[i][1]))
        first, count = cell.sides[axis]
        if count == 1:
            return None
        parts = ((first, count // 2), (first + count // 2, count - count // 2))
        cut = [(*cell.sides[:axis], part, *cell.sides[axis + 1 :]) for part in parts]
        return [self.cell(sides) for sides in cut if not self.mesh.outside(sides)]

    def _bends(self, sides: Sides) -> list[int]:
        """Four times about how far F is above its plane at the ends of each axis of the cell."""
        ends, matrix, corner = self.mesh.ends(sides), self.quadratic.matrix, self.quadratic.corner
        return [
            matrix[i][i] * (b - a) ** 2 + (4 * corner * min(b, -a) if a < 0 < b else 0) for i, (a, b) in enumerate(ends)
        ]

    def _cut_before(self, whole: Cell) -> list[Cell]:
        """Cut the heaviest cells until the heaviest few bend little: fewer attempts fail then."""
        heap, made = [(-self._log_mass(whole), 0, whole)], 1
        good: list[Cell] = []
        while heap and len(good) < _CUT_BEFORE:
            _, _, cell = heapq.heappop(heap)
            halves = None if self.rate * sum(self._bends(cell.sides)) < _GOOD else self._halves(cell)
            if halves is None:
                good.append(cell)
            for half in halves or ():
                heapq.heappush(heap, (-self._log_mass(half), made, half))
                made += 1
        return good + [cell for _, _, cell in heap]

    def _log_mass(self, cell: Cell) -> float:
        """Only decides what is cut first."""
        return math.log(cell.weight) - float(self.rate * cell.lowest)


def _multiplier(quadratic: Quadratic, limit: int) -> int:
    """About the m at which F + m |w|^2 is least on the sphere; 0 if F is least inside. Any m >= 0 is right."""
    largest = float(max(1, *(abs(each) for row in quadratic.matrix for each in row)))
    curves, axes = np.linalg.eigh(np.array([[each / largest for each in row] for row in quadratic.matrix], dtype=float))
    along = axes.T @ np.array([-each / 2 / largest for each in quadratic.linear], dtype=float)

    def length(m: float) -> float:
        return float(np.linalg.norm(along / np.maximum(curves + m, 1e-300)))

    radius = math.sqrt(limit)
    low, high = 0.0, float(np.linalg.norm(along)) / max(radius, 1.0)
    if not length(0.0) > radius:
        return 0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if length(middle) > radius else (low, middle)
    return int(high * largest)


def _dot(one: tuple[int, ...] | list[int], other: tuple[int, ...] | list[int]) -> int:
    return sum(a * b for a, b in zip(one, other, strict=True))
