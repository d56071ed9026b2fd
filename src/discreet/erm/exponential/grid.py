"""The exponential mechanism on a public grid of a feasible set (lecture 9): pure, with an exact law.

    GridExponential(risk, points, rate)      a risk with a linear model, `points` on each axis of the box around the set
    GridExponential(custom, points, rate)    any bounded loss of a user's own, convex or not (`CustomLoss`)

The grid's points are the centres of equal cells that fill the box; of a ball those that lie in it. What a row adds to
the height of a point is an integer that depends on the row and on public numbers alone. For a loss of a user's own the
grid is listed. For a linear model it is not (`samplers.Cells`): it may have 2^22 points on an axis. The regularizer,
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

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet.core import Exact, Guarantee, ParameterError, Rng, checked_rate, exact, record
from discreet.data import Batch, Dataset, Facts, Floats, Ints, Needs, common_unit
from discreet.erm import STEPS, FeasibleSet, Risk, blocks, public_size
from discreet.erm.exponential.samplers import Cells, Cover, Lattice, Mesh, Oracle, Point, Tangent, dot
from discreet.erm.gradient import MomentPass, SlopePass, pass_over, slope_table
from discreet.query import alone, person_range

MOST_AXES = 5
MOST_POINTS = 2**22  # on an axis
_ADVICE = 'solve it by gradient descent (method="descent") or output perturbation (method="output")'
_NO_MARGIN = {"classes": _ADVICE, "custom": "CustomLoss states the loss itself"}
_ENTRIES = 2**18  # of a table of slopes
_SLOPE_BITS = 20  # a slope is an integer of at most this many bits, or fewer if sums would not be exact
_HALF_WORD = 31
_BLOCK_ROWS = 2**17  # no block of rows is longer
MOST_LISTED = 2**22  # points of a grid that is listed
MOST_WORK = 2**36  # losses that are computed for it
_LOSS_STEPS = 2**20  # integers between 0 and the bound of a loss of a user's own


@dataclass(frozen=True, slots=True)
class CustomLoss:
    """Any bounded loss: loss(points, row) -> one number for each of the points, an (N, dimension) array.

    Each row {column: value} is shown alone; numbers are cut to [0, bound], and a row for which the function fails, or
    does not return N numbers, counts as 0; so does a NaN. The function must keep no memory of rows.

    regularizer  any function of the points, regularizer(points) -> N numbers
    lipschitz    the owner states how steep the loss is; only a promise about the excess risk rests on it
    label        what the ledger calls it: a function cannot be recorded, its bound and its label are
    """

    NAME: ClassVar[str] = "custom-loss/1"
    loss: Callable[[Floats, dict[str, Any]], Any]
    bound: Fraction
    label: str
    feasible: FeasibleSet
    dimension: int = 1
    regularizer: Callable[[Floats], Any] | None = None
    lipschitz: Fraction | None = None

    def __post_init__(self) -> None:
        if not callable(self.loss):
            raise ParameterError(f"loss must be a function of (points, row), found {self.loss!r}")
        if self.regularizer is not None and not callable(self.regularizer):
            raise ParameterError(f"regularizer must be a function of the points, found {self.regularizer!r}")
        exact.text(label=self.label)
        bound, dimension = exact.moderate(bound=self.bound), exact.whole(dimension=self.dimension)
        lipschitz = None if self.lipschitz is None else exact.positive(lipschitz=self.lipschitz)
        exact.freeze(self, bound=bound, dimension=dimension, lipschitz=lipschitz)

    def centre_excess(self, facts: Facts) -> float:
        """What any point can be worse than the best, at most."""
        return float(self.bound) * facts.neighbours.rows

    def sum_slope(self, facts: Facts, beyond: float) -> float | None:
        """How steep the sum of the losses is, if the owner states it."""
        if self.lipschitz is None or self.regularizer is not None:
            return None
        return public_size(facts) * facts.neighbours.rows * float(self.lipschitz)

    def stated_record(self) -> dict[str, Any]:
        stated = {"label": record(self.label), "bound": record(self.bound), "dimension": self.dimension}
        return {"name": self.NAME, **stated, "feasible": record(self.feasible)}


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
        moved = person_range(facts.neighbours, added=problem.range, replaced=2 * problem.range)
        return Guarantee.of_bounded_range(checked_rate(self.rate * problem.unit) * moved, neighbours=facts.neighbours)

    def problem(self, facts: Facts) -> Problem:
        return problem_of(self.risk, self.points, facts)

    def needs(self, facts: Facts) -> Needs:
        return Needs(functions=True, passes=self.problem(facts).passes)

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
            images = [[dot(row, w) for row in matrix] for w in points]
            slopes = [tuple(2 * a + b for a, b in zip(image, linear, strict=True)) for image in images]
            values = [dot(image, w) + dot(linear, w) for image, w in zip(images, points, strict=True)]
            return list(zip(values, slopes, strict=True))

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
            sums = data.exact_sum(functools.partial(self.summed, points=points))
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
        self.passes = 1 if risk.loss.moments else None  # otherwise as many as the sampler proposes points
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


class CustomProblem:
    """A user's own loss on a grid that is listed; the attributes are those of LinearProblem."""

    convex = False
    passes: int | None = 1

    def __init__(self, risk: CustomLoss, points: int, facts: Facts) -> None:
        if risk.dimension > 3:
            raise ParameterError(f"a grid of any loss is for at most 3 dimensions, found {risk.dimension}")
        work = points**risk.dimension * max(1, facts.size or 1) * facts.neighbours.rows
        if points**risk.dimension > MOST_LISTED or work > MOST_WORK:
            raise ParameterError(
                f"{points} points on each of {risk.dimension} axes are more than 2**22, or more than 2**36 losses of "
                "all rows: take fewer"
            )
        self.risk, self.dimension = risk, risk.dimension
        self.lattice = Lattice.of(risk.feasible, risk.dimension, points)
        self.unit = risk.bound / _LOSS_STEPS
        self.range, self.row_error, self.highest = _LOSS_STEPS, float(self.unit), 2**62
        self.base = np.zeros(1, dtype=np.int64)
        if risk.regularizer is not None:
            self.base = self._penalty(risk.regularizer, public_size(facts) / self.unit)

    def cover(self) -> Cover:
        return Cover.of(self.lattice, self.risk.feasible)

    def draw(self, data: Dataset, rate: Fraction, rng: Rng) -> Floats:
        points = self.points()
        heights = data.exact_sum(functools.partial(self.summed, points=points))
        return np.asarray(points[rng.select(-(heights + self.base), rate)]).copy()

    def points(self) -> Floats:
        """All points of the grid; a user's function cannot change them."""
        points = self.lattice.listed()
        points.flags.writeable = False
        return points

    def summed(self, batch: Batch, points: Floats) -> Ints:
        """The sums over a batch of the integers of its rows, each computed alone."""

        def losses(row: dict[str, Any]) -> Floats:
            return np.array(self.risk.loss(points, row), float).reshape(len(points))

        total, bound = np.zeros(len(points), dtype=np.int64), float(self.risk.bound)
        for row in batch.plain_rows():
            values = alone(losses, row, np.nan)
            cut = np.clip(np.where(np.isnan(values), 0.0, values) * np.ones(len(points)), 0.0, bound)
            total += np.floor(cut / bound * _LOSS_STEPS).astype(np.int64)
        return total

    def _penalty(self, regularizer: Callable[[Floats], Any], steps: Fraction) -> Ints:
        """A user's regularizer in integers: public, so whatever is wrong with it is said."""
        points = self.points()
        try:
            values = np.array(regularizer(points), dtype=np.float64).reshape(len(points)) * float(steps)
        except Exception as error:
            raise ParameterError(f"the regularizer failed on the grid's {len(points)} points: {error}") from None
        if not np.isfinite(values).all() or float(np.abs(values).max(initial=0.0)) >= 2**61:
            raise ParameterError("the regularizer must give finite numbers that do not dwarf the bound of the loss")
        return np.rint(values).astype(np.int64)


Problem = LinearProblem | CustomProblem


def problem_of(risk: Risk | CustomLoss, points: int, facts: Facts) -> Problem:
    """What a grid with this many points on each axis makes of a risk; ParameterError if it is too much."""
    return CustomProblem(risk, points, facts) if isinstance(risk, CustomLoss) else LinearProblem(risk, points, facts)
