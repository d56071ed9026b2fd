"""The exponential mechanism on a public grid of a feasible set (lecture 9): pure, with an exact law.

    GridExponential(risk, points, rate)      a risk with a linear model, `points` on each axis of the box around the set
    GridExponential(custom, points, rate)    any bounded loss of a user's own, convex or not (`CustomLoss`)

The grid's points are the centres of equal cells that fill the box; of a ball those that lie in it. What a row adds to
the height of a point is an integer that depends on the row and on public numbers alone. For a loss of a user's own the
grid is listed. For a linear model it is not (`cell_sampler`): it may have 2^22 points on an axis. The regularizer,
times the public size, is a base measure, which costs nothing.

Heights of a linear model are convex in exact integers. A point w has integer coordinates on the grid of a
`gradient.LinearPass`, so the margin of a row is an integer u, and the row adds T(u):

    SquaredHeights    T(u) = u^2 without its constant: the sum over the rows is a quadratic in w, from one pass
    SlopeHeights      T has integer slopes from a public table that do not fall, one for each range of 2^shift margins:
                      the loss, its slopes rounded, without a constant. One pass gives the sums at some points, and
                      subgradients there.

Outside the feasible set the slopes at the ends of the table go on, so T is convex on all integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet.core import Exact, Guarantee, ParameterError, Rng, checked_rate, exact
from discreet.data import Batch, Dataset, Facts, Floats, Ints, common_unit
from discreet.erm.exponential.cell_sampler import Cells, Oracle, Tangent
from discreet.erm.exponential.custom import CustomLoss, CustomProblem
from discreet.erm.exponential.grid_points import Cover, Lattice, Mesh, Point, dot
from discreet.erm.features import STEPS, blocks
from discreet.erm.gradient import MomentPass, SlopePass, pass_over, slope_table
from discreet.erm.risk import Risk
from discreet.query import person_range

MOST_AXES = 5
MOST_POINTS = 2**22  # on an axis
_ADVICE = 'solve it by gradient descent (method="descent") or output perturbation (method="output")'
_NO_MARGIN = {"classes": _ADVICE, "custom": "CustomLoss states the loss itself"}
_ENTRIES = 2**18  # of a table of slopes
_SLOPE_BITS = 20  # a slope is an integer of at most this many bits, or fewer if sums would not be exact
_HALF_WORD = 31
_BLOCK_ROWS = 2**17  # no block of rows is longer


@dataclass(frozen=True, slots=True, init=False)
class GridExponential:
    """Release a grid point w with probability proportional to exp(-rate * (sum of losses at w + n * regularizer(w))).

    Theorem.   If the integers that one row adds to the heights span at most r (max - min over the grid, in units of the
               loss), the release has bounded range rate * r under add-remove and rate * 2 r under replace-one, k times
               that for a person of k rows: pure epsilon, and zCDP of its square / 8. r is computed in exact integers
               from public numbers: the steepest part of the loss that two points of the grid and a row can span. In a
               ball that is its diameter times the slope, twice its radius.
    Accuracy.  `discreet.erm.exponential.bounds.promise`.
    Edges.     At most 5 dimensions, 3 for a loss of a user's own. No rows: the law of the regularizer alone. The time
               depends on the rows, as it does for any rejection; in 4 and 5 dimensions it may be minutes.
    Reference. Lecture 9; docs/proofs/grid_exponential.md.
    """

    NAME: ClassVar[str] = "grid-exponential/1"
    risk: Risk | CustomLoss
    points: int
    rate: Fraction

    def __init__(self, risk: Risk | CustomLoss, points: int, rate: Exact) -> None:
        if not isinstance(risk, (Risk, CustomLoss)):
            raise ParameterError(f"expected a Risk or a CustomLoss, found {risk!r}")
        exact.freeze(self, risk=risk, points=exact.whole(points=points), rate=exact.positive(rate=rate))

    def guarantee(self, facts: Facts) -> Guarantee:
        problem = self.problem(facts)
        checked_rate(self.rate * problem.unit * problem.highest)
        span = checked_rate(self.rate * problem.unit) * person_range(
            facts.neighbours, added=problem.range, replaced=2 * problem.range
        )
        return Guarantee.of_bounded_range(span, neighbours=facts.neighbours)

    def problem(self, facts: Facts) -> Problem:
        return problem_of(self.risk, self.points, facts)

    def run(self, data: Dataset, rng: Rng) -> Floats:
        problem = self.problem(data.facts)
        return problem.draw(data, self.rate * problem.unit, rng)


class SquaredHeights:
    """Sums of the squared loss, and what one row can do to them.

    unit       what one integer is worth, in units of the loss
    row_error  how far a row's integer is from its loss, up to a constant, in units of the loss
    """

    def __init__(self, over: MomentPass) -> None:
        self.over, self.unit = over, over.margin_unit**2
        steep = over.risk.loss.steepness(over.risk.miss_reach(over.domain))
        self.row_error = steep * float(over.risk.target_bound(over.domain) / STEPS)
        self.highest = over.reach**2

    def range(self, across: int) -> int:
        """How far apart the integers of one row can be at two points whose margins differ by at most `across`."""
        return int(self.over.reach**2 - max(0, self.over.reach - across) ** 2)

    def oracle(self, data: Dataset) -> Oracle:
        """Values and gradients of the sum. Not private: for the inside of a mechanism's `run`."""
        moments = [[int(moment) for moment in row] for row in data.exact_sum(self.over.moments)]
        matrix, steps = moments[:-1], self.over.target_steps // STEPS
        linear = [-2 * steps * moment for moment in moments[-1]]

        def tangents(points: Sequence[Point]) -> list[Tangent]:
            turned = [[dot(row, w) for row in matrix] for w in points]
            return [
                (dot(image, w) + dot(linear, w), tuple(2 * a + b for a, b in zip(image, linear, strict=True)))
                for image, w in zip(turned, points, strict=True)
            ]

        return tangents


class SlopeHeights:
    """Sums of a loss with bounded slopes; the attributes are those of SquaredHeights."""

    def __init__(self, over: SlopePass, corner_squared: int) -> None:
        loss, self.over = over.scalar, over
        self.shift = max(0, (2 * over.reach).bit_length() - _ENTRIES.bit_length() + 1)
        widest = 2 * (math.isqrt(over.rows_squared * corner_squared) + over.target_steps + 2**self.shift)
        room = min(61 - widest.bit_length(), 52 - (math.isqrt(over.rows_squared) * _BLOCK_ROWS).bit_length())
        bits = min(_SLOPE_BITS, room)
        if bits < 10:
            raise ParameterError("the feasible set or the rows' vectors are too long for exact sums on a grid")
        table = slope_table(loss, _ENTRIES, self.shift, over.reach, over.margin_unit, 2**bits)
        self.slopes: Ints = np.maximum.accumulate(table.astype(np.int64))  # T is convex
        self.starts: Ints = (np.cumsum(self.slopes) - self.slopes) << self.shift  # T where the ranges begin
        self.unit = loss.slope_bound / 2**bits * over.margin_unit
        entry = 2.0**self.shift * float(over.margin_unit)
        target = float(over.risk.target_bound(over.domain)) / STEPS
        self.row_error = float(loss.slope_bound) * (entry + target) + float(self.unit) * over.reach
        self.highest = 2**bits * widest

    def value(self, u: int) -> int:
        """T at a margin u above the least of the feasible set."""
        place = min(max(u >> self.shift, 0), _ENTRIES - 1)
        return int(self.starts[place]) + int(self.slopes[place]) * (u - (place << self.shift))

    def range(self, across: int) -> int:
        """T is convex: of two margins at most `across` apart, the ends of the table are where it differs most."""
        bottom, end = int(np.searchsorted(self.slopes, 0)) << self.shift, 2 * self.over.reach
        rise = self.value(end) - self.value(min(max(bottom, end - across), end))
        fall = self.value(0) - self.value(min(bottom, across, end))
        return max(rise, fall)

    def oracle(self, data: Dataset) -> Oracle:
        """Values and subgradients of the sum, by one pass. Not private: for the inside of a mechanism's `run`."""

        def tangents(points: Sequence[Point]) -> list[Tangent]:
            sums = data.exact_sum(lambda batch: self.summed(batch, points))
            whole = [[int(low) + (int(high) << _HALF_WORD) for low, high in line] for line in sums]
            return [(line[0], tuple(line[1:])) for line in whole]

        return tangents

    def summed(self, batch: Batch, points: Sequence[Point]) -> Ints:
        """For each point the sum of T and of its slopes times the rows' vectors, each as two half words (low, high)."""
        total = np.zeros((len(points), 1 + self.over.width, 2), dtype=np.int64)
        for rows, part in blocks(self.over.risk.features, batch):
            shift, sign = self.over.misses(batch, part)
            for line, point in zip(total, points, strict=True):
                u = (rows @ np.array(point, dtype=np.float64) * sign + shift + self.over.reach).astype(np.int64)
                place = np.clip(u >> self.shift, 0, _ENTRIES - 1)
                slopes = self.slopes[place]
                values = self.starts[place] + slopes * (u - (place << self.shift))
                line[0] += _half_words(values).sum(axis=0)
                line[1:] += _half_words(((sign * slopes) @ rows).astype(np.int64))
        return total


def _half_words(values: Ints) -> Ints:
    """Integers as (low, high) with value = low + 2^31 high, 0 <= low < 2^31."""
    return np.stack([values & (2**_HALF_WORD - 1), values >> _HALF_WORD], axis=-1)


class LinearProblem:
    """A linear model on the mesh of a feasible set.

    unit       what one integer of a height is worth, in units of the loss
    range      how far apart the integers that one row adds to two points can be
    row_error  how far a row's integer is from its loss, up to a constant, in units of the loss
    highest    no two heights are farther apart
    convex     the heights are
    """

    convex = True

    def __init__(self, risk: Risk, points: int, facts: Facts) -> None:
        if risk.loss.form in _NO_MARGIN:
            raise ParameterError(f"{type(risk.loss).__name__} has no margin on a grid: {_NO_MARGIN[risk.loss.form]}")
        dimension = risk.dimension(facts.domain)
        if dimension > MOST_AXES:
            raise ParameterError(f"a grid is for at most {MOST_AXES} dimensions, found {dimension}: {_ADVICE}")
        if points > MOST_POINTS:
            raise ParameterError(f"points must be at most 2**22 on an axis, found {points}")
        self.over = over = pass_over(risk, facts.domain)
        assert isinstance(over, (MomentPass, SlopePass))
        self.risk, self.grid, self.dimension = risk, over.grid, over.dimension
        self.lattice = Lattice.of(risk.feasible, over.dimension, points, over.grid)
        across = exact.floor_sqrt(over.rows_squared * self.lattice.diameter_squared / over.grid**2)
        corner_squared = self.mesh().corner_squared()
        self.heights: SquaredHeights | SlopeHeights = (
            SquaredHeights(over) if isinstance(over, MomentPass) else SlopeHeights(over, corner_squared)
        )
        worth = (self.heights.unit, *risk.penalty_units(facts, over.grid))
        self.unit = common_unit([part for part in worth if part])
        self.weight, self.ridge, self.lasso = (int(part / self.unit) for part in worth)
        self.range, self.row_error = self.weight * self.heights.range(across), self.heights.row_error
        rows = 2 * self.weight * self.heights.highest * facts.rows_bound
        self.highest = rows + (self.ridge + self.lasso) * corner_squared

    def cover(self) -> Cover:
        return Cover.of(self.lattice, self.risk.feasible)

    def draw(self, data: Dataset, rate: Fraction, rng: Rng) -> Floats:
        point = self.sampler(data, rate).draw(rng)
        return np.array([float(coordinate * self.grid) for coordinate in point])

    def sampler(self, data: Dataset, rate: Fraction) -> Cells:
        """The exact law on these rows. Not private: for the inside of `run`, and for audits on made-up rows."""
        losses = self.heights.oracle(data)

        def penalised(point: Point, tangent: Tangent) -> Tangent:
            """The sum of the losses and the regularizer, in units."""
            value = self.weight * tangent[0] + sum(self.ridge * w * w + self.lasso * abs(w) for w in point)
            slopes = (
                self.weight * slope + 2 * self.ridge * w + self.lasso * ((w > 0) - (w < 0))
                for slope, w in zip(tangent[1], point, strict=True)
            )
            return value, tuple(slopes)

        return Cells(lambda points: list(map(penalised, points, losses(points))), self.mesh(), rate)

    def mesh(self) -> Mesh:
        return self.lattice.mesh(self.grid)


Problem = LinearProblem | CustomProblem


def problem_of(risk: Risk | CustomLoss, points: int, facts: Facts) -> Problem:
    """What a grid with this many points on each axis makes of a risk; ParameterError if it is too much."""
    if isinstance(risk, CustomLoss):
        return CustomProblem(risk, points, facts)
    return LinearProblem(risk, points, facts)
