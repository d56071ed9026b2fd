"""The exponential mechanism on a public grid of a feasible set (lecture 9): pure, with an exact law.

    GridExponential(risk, points, rate)      a risk with a linear model, `points` on each axis of the box around the set
    GridExponential(custom, points, rate)    any bounded loss of a user's own, convex or not (`CustomLoss`)

The grid's points are the centres of equal cells that fill the box; of a ball those that lie in it. What a row adds to
the height of a point is an integer that depends on the row and on public numbers alone. For a linear model the heights
are convex in exact integers (`heights`), and the grid is not listed (`cells`): it may have 2^22 points on an axis. For
a loss of a user's own it is listed. The regularizer, times the public size, is a base measure, which costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet import exact
from discreet.data import Dataset, Facts, Floats, common_unit
from discreet.erm.exponential.cell_sampler import Cells, Mesh, Point, Tangent
from discreet.erm.exponential.custom import CustomLoss, CustomProblem
from discreet.erm.exponential.grid_points import Lattice
from discreet.erm.exponential.integer_loss import SlopeHeights, SquaredHeights
from discreet.erm.gradient import Pass
from discreet.erm.losses import Custom, Softmax
from discreet.erm.risk import Lasso, Risk, needs_moments, public_size
from discreet.errors import ParameterError
from discreet.exact import Exact
from discreet.guarantee import Guarantee
from discreet.query import person_range
from discreet.rng import Rng, checked_rate

MOST_AXES, MOST_AXES_LISTED = 5, 3
MOST_POINTS = 2**22  # on an axis
MOST_LISTED = 2**22  # points of a grid that is listed
MOST_WORK = 2**36  # losses that are computed for it
_ADVICE = 'solve it by gradient descent (method="descent") or output perturbation (method="output")'


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
        problem = problem_of(self.risk, self.points, facts)
        checked_rate(self.rate * problem.unit * problem.highest)
        span = checked_rate(self.rate * problem.unit) * person_range(
            facts.neighbours, added=problem.range, replaced=2 * problem.range
        )
        return Guarantee.of_bounded_range(span, neighbours=facts.neighbours)

    def run(self, data: Dataset, rng: Rng) -> Floats:
        problem = problem_of(self.risk, self.points, data.facts)
        return problem.draw(data, self.rate * problem.unit, rng)


class LinearProblem:
    """A linear model on the mesh of a feasible set.

    unit       what one integer of a height is worth, in units of the loss
    range      how far apart the integers that one row adds to two points can be
    row_error  how far a row's integer is from its loss, up to a constant, in units of the loss
    highest    no two heights are farther apart
    """

    def __init__(self, risk: Risk, points: int, facts: Facts) -> None:
        self.over = Pass(risk, facts.domain)
        self.lattice = Lattice.of(risk.feasible, self.over.dimension, points, self.over.grid)
        across = exact.floor_sqrt(self.over.rows_squared * self.lattice.diameter_squared / self.over.grid**2)
        self.heights = (
            SquaredHeights(self.over) if needs_moments(risk) else SlopeHeights(self.over, self._corner_squared())
        )
        ridge, lasso = _penalty_units(risk, facts, self.over.grid)
        self.unit = common_unit([each for each in (self.heights.unit, ridge, lasso) if each])
        self.weight, self.ridge, self.lasso = (int(each / self.unit) for each in (self.heights.unit, ridge, lasso))
        self.range, self.row_error = self.weight * self.heights.range(across), self.heights.row_error
        rows = 2 * self.weight * self.heights.highest * facts.rows_bound
        self.highest = rows + (self.ridge + self.lasso) * self._corner_squared()

    def draw(self, data: Dataset, rate: Fraction, rng: Rng) -> Floats:
        point = self.sampler(data, rate).draw(rng)
        return np.array([float(each * self.over.grid) for each in point])

    def sampler(self, data: Dataset, rate: Fraction) -> Cells:
        """The exact law on these rows. Not private: for the inside of `run`, and for audits on made-up rows."""
        losses = self.heights.oracle(data)
        return Cells(lambda points: list(map(self._penalised, points, losses(points))), self.mesh(), rate)

    def mesh(self) -> Mesh:
        axes = self.lattice.starts, self.lattice.strides
        starts, strides = (tuple(int(each / self.over.grid) for each in axis) for axis in axes)
        ball = self.lattice.radius_squared
        return Mesh(
            starts, strides, self.lattice.points, None if ball is None else math.floor(ball / self.over.grid**2)
        )

    def _penalised(self, point: Point, tangent: Tangent) -> Tangent:
        """The sum of the losses and the regularizer, in units."""
        value = self.weight * tangent[0] + sum(self.ridge * w * w + self.lasso * abs(w) for w in point)
        slopes = (
            self.weight * slope + 2 * self.ridge * w + self.lasso * ((w > 0) - (w < 0))
            for slope, w in zip(tangent[1], point, strict=True)
        )
        return value, tuple(slopes)

    def _corner_squared(self) -> int:
        """The squared length of the farthest corner of the box of the grid."""
        mesh = self.mesh()
        return sum(max(a * a, b * b) for a, b in mesh.ends(((0, mesh.points),) * len(mesh.starts)))


Problem = LinearProblem | CustomProblem


def problem_of(risk: Risk | CustomLoss, points: int, facts: Facts) -> Problem:
    """What a grid of so many points on each axis makes of a risk; ParameterError, with advice, if it is too much."""
    if isinstance(risk, CustomLoss):
        return _custom_problem(risk, points, facts)
    if isinstance(risk.loss, (Softmax, Custom)):
        other = "CustomLoss states the loss itself" if isinstance(risk.loss, Custom) else _ADVICE
        raise ParameterError(f"{type(risk.loss).__name__} has no margin on a grid: {other}")
    dimension = risk.dimension(facts.domain)
    if dimension > MOST_AXES:
        raise ParameterError(f"a grid is for at most {MOST_AXES} dimensions, found {dimension}: {_ADVICE}")
    if points > MOST_POINTS:
        raise ParameterError(f"points must be at most 2**22 on an axis, found {points}")
    return LinearProblem(risk, points, facts)


def _custom_problem(risk: CustomLoss, points: int, facts: Facts) -> CustomProblem:
    if risk.dimension > MOST_AXES_LISTED:
        raise ParameterError(f"a grid of any loss is for at most {MOST_AXES_LISTED} dimensions, found {risk.dimension}")
    work = points**risk.dimension * max(1, facts.size or 1) * facts.neighbours.rows
    if points**risk.dimension > MOST_LISTED or work > MOST_WORK:
        raise ParameterError(
            f"{points} points on each of {risk.dimension} axes are more than 2**22, or more than 2**36 losses of all "
            "rows: take fewer"
        )
    return CustomProblem(risk, points, facts)


def _penalty_units(risk: Risk, facts: Facts, grid: Fraction) -> tuple[Fraction, Fraction]:
    """What ridge adds for one square of an integer coordinate, and lasso for one integer of its absolute value."""
    if risk.regularizer is None:
        return Fraction(0), Fraction(0)
    strength = risk.regularizer.strength * public_size(facts)
    if isinstance(risk.regularizer, Lasso):
        return Fraction(0), strength * grid
    return strength * grid**2 / 2, Fraction(0)
