"""The exponential mechanism on a public grid of a feasible set (lecture 9): pure, with an exact law.

    GridExponential(risk, points, rate)      a risk with a linear model, `points` on each axis of the box around the set
    GridExponential(custom, points, rate)    any bounded loss of a user's own, convex or not (`CustomLoss`)

The grid's points are the centres of equal cells that fill the box; of a ball those that lie in it. What a row adds to
the height of a point is an integer that depends on the row and on public numbers alone:

    logistic, hinge, Huber, absolute, pinball    the margin of the point is an integer (as in `gradient`), the loss is
                                                 looked up in a public table of integers; the grid is listed
    squared                                      the square of an integer margin; the sum over the rows is a quadratic
                                                 in the point, so one pass suffices and the grid is not listed (`cells`)
    custom                                       the user's number, cut to [0, bound], in steps of bound / 2^20

The regularizer, times the public size, is rounded to the same steps and added: a base measure, which costs nothing.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet import exact
from discreet.data import Batch, Dataset, Facts
from discreet.domain import common_unit
from discreet.erm.cells import Cells, Mesh, Quadratic
from discreet.erm.custom import CustomLoss, CustomProblem
from discreet.erm.features import STEPS
from discreet.erm.gradient import Pass
from discreet.erm.lattice import Lattice
from discreet.erm.line import person_range
from discreet.erm.losses import Custom, Loss, Softmax
from discreet.erm.risk import Lasso, Ridge, Risk, needs_moments, public_size
from discreet.erm.sets import Floats
from discreet.errors import ParameterError
from discreet.exact import Exact
from discreet.guarantee import Guarantee
from discreet.noise import Rng, checked_rate

Ints = npt.NDArray[np.int64]

MOST_LISTED = 2**22  # points of a grid that is listed
MOST_WORK = 2**36  # losses that are computed for it
MOST_AXES, MOST_AXES_SQUARED = 3, 5
_LOSS_STEPS = 2**20  # integers between the least and the largest loss
_ENTRIES = 2**16  # of a table of losses
_BLOCK = 2**20  # losses that are looked up at a time
_ADVICE = 'solve it by gradient descent (solver="descent") or output perturbation (solver="output")'


@dataclass(frozen=True, slots=True, init=False)
class GridExponential:
    """Release a grid point w with probability proportional to exp(-rate * (sum of losses at w + n * regularizer(w))).

    Theorem.   If the integers that one row adds to the heights span at most r (max - min over the grid, in units of the
               loss), the release has bounded range rate * r under add-remove and rate * 2 r under replace-one, k times
               that for a person of k rows: pure epsilon, and zCDP of its square / 8. r is computed in exact integers
               from public numbers: the steepest part of the loss that two points of the grid and a row can span. In a
               ball that is its diameter times the slope, twice its radius.
    Accuracy.  `discreet.erm.sampling.promise`.
    Edges.     At most 3 dimensions and 2^22 points, 5 dimensions and 2^15 points an axis for the squared loss. No rows:
               the law of the regularizer alone.
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


class TableProblem:
    """A risk with a linear model whose losses are looked up.

    unit       what one integer of a height is worth, in units of the loss
    range      how far apart the integers that one row adds to two points can be
    row_error  how far a row's integer is from its loss at most, in units of the loss
    """

    def __init__(self, risk: Risk, points: int, facts: Facts) -> None:
        self.risk, self.facts = risk, facts
        self.over = Pass(risk, facts.domain)
        self.lattice = Lattice.of(risk.feasible, self.over.dimension, points, self.over.grid)
        self.shift = max(0, (2 * self.over.reach + 1).bit_length() - _ENTRIES.bit_length() + 1)
        self.table, self.unit = _loss_table(risk.loss, self.shift, self.over.reach, self.over.margin_unit)
        across = exact.floor_sqrt(self.over.rows_squared * self.lattice.diameter_squared / self.over.grid**2)
        self.range = _window_range(
            risk.loss, self.shift, self.over.reach, self.over.margin_unit, (across >> self.shift) + 2
        )
        half_entry = 2.0**self.shift * float(self.over.margin_unit) / 2
        miss = half_entry + float(risk.target_bound(facts.domain)) / STEPS
        self.row_error = risk.loss.steepness(risk.miss_reach(facts.domain)) * miss + float(self.unit)
        self.highest = 2**62 + _checked_penalty(risk, facts, self.unit)

    def draw(self, data: Dataset, rate: Fraction, rng: Rng) -> Floats:
        units = self.lattice.integers() * int(self.lattice.unit / self.over.grid)
        points = units * float(self.over.grid)
        weights = units.astype(np.float64).T.copy()  # one column for each point
        heights = data.exact_sum(lambda batch: self.summed(batch, weights))
        found: Floats = points[rng.select(-(heights + self._penalty(points)), rate)]
        return found

    def summed(self, batch: Batch, weights: Floats) -> Ints:
        """The sums over a batch of the integers of its rows, one for each point."""
        total = np.zeros(weights.shape[1], dtype=np.int64)
        for rows, part in self.over._blocks(batch):
            step = max(1, _BLOCK // max(1, len(rows)))
            for start in range(0, len(total), step):
                margins = rows @ weights[:, start : start + step]
                total[start : start + step] += self._looked_up(batch, part, margins).sum(axis=0, dtype=np.int64)
        return total

    def _looked_up(self, batch: Batch, part: slice, margins: Floats) -> npt.NDArray[np.int32]:
        if self.risk.loss.form == "difference":
            margins -= (self.over._targets(batch, part) * (self.over.target_steps // STEPS))[:, None]
        else:
            margins *= (self.over._labels(batch, part) * 2.0 - 1.0)[:, None]
        margins += self.over.reach
        margins *= 2.0**-self.shift
        return self.table[margins.astype(np.int32)]

    def _penalty(self, points: Floats) -> Ints:
        if self.risk.regularizer is None:
            return np.zeros(len(points), dtype=np.int64)
        strength = float(self.risk.regularizer.strength * public_size(self.facts) / self.unit)
        sizes = (points**2).sum(axis=1) / 2 if isinstance(self.risk.regularizer, Ridge) else np.abs(points).sum(axis=1)
        return np.asarray(np.rint(strength * sizes), dtype=np.int64)


class SquaredProblem:
    """The squared loss of a linear model: heights are a quadratic of the point, with integer coefficients."""

    def __init__(self, risk: Risk, points: int, facts: Facts) -> None:
        self.risk = risk
        self.over = Pass(risk, facts.domain)
        self.lattice = Lattice.of(risk.feasible, self.over.dimension, points, self.over.grid)
        loss_unit = self.over.margin_unit**2
        ridge, lasso = _penalty_units(risk, facts, self.over.grid)
        self.unit = common_unit([each for each in (loss_unit, ridge, lasso) if each])
        self.weight, self.ridge, self.lasso = (int(each / self.unit) for each in (loss_unit, ridge, lasso))
        reach = self.over.reach
        across = exact.floor_sqrt(self.over.rows_squared * self.lattice.diameter_squared / self.over.grid**2)
        self.range = self.weight * (reach**2 - max(0, reach - across) ** 2)
        farthest = self.over.iterate_squared
        self.highest = 4 * (facts.rows_bound * self.weight * reach**2 + (self.ridge + self.lasso) * farthest)
        miss = float(risk.target_bound(facts.domain) / STEPS)
        self.row_error = risk.loss.steepness(risk.miss_reach(facts.domain)) * miss

    def draw(self, data: Dataset, rate: Fraction, rng: Rng) -> Floats:
        point = self.sampler(data, rate).draw(rng)
        return np.array([float(each * self.over.grid) for each in point])

    def sampler(self, data: Dataset, rate: Fraction) -> Cells:
        """The exact law on these rows. Not private: for the inside of `run`, and for audits on made-up rows."""
        moments = data.exact_sum(self.over.moments)
        matrix = tuple(
            tuple(self.weight * int(each) + self.ridge * (i == j) for j, each in enumerate(row))
            for i, row in enumerate(moments[:-1])
        )
        steps = self.over.target_steps // STEPS
        linear = tuple(-2 * self.weight * steps * int(each) for each in moments[-1])
        axes = self.lattice.starts, self.lattice.strides
        starts, strides = (tuple(int(each / self.over.grid) for each in axis) for axis in axes)
        ball = self.lattice.radius_squared
        limit = None if ball is None else math.floor(ball / self.over.grid**2)
        mesh = Mesh(starts, strides, self.lattice.points, limit)
        return Cells(Quadratic(matrix, linear, self.lasso), mesh, rate)


Problem = TableProblem | SquaredProblem | CustomProblem


def problem_of(risk: Risk | CustomLoss, points: int, facts: Facts) -> Problem:
    """What a grid of so many points on each axis makes of a risk; ParameterError, with advice, if it is too much."""
    dimension = risk.dimension if isinstance(risk, CustomLoss) else risk.dimension(facts.domain)
    squared = isinstance(risk, Risk) and needs_moments(risk)
    if isinstance(risk, Risk) and isinstance(risk.loss, (Softmax, Custom)):
        other = "CustomLoss states the loss itself" if isinstance(risk.loss, Custom) else _ADVICE
        raise ParameterError(f"{type(risk.loss).__name__} has no grid of margins: {other}")
    most = MOST_AXES_SQUARED if squared else MOST_AXES
    if dimension > most:
        raise ParameterError(f"a grid is for at most {most} dimensions with this loss, found {dimension}: {_ADVICE}")
    if squared:
        if points > 2**15:
            raise ParameterError(f"points must be at most 2**15 on an axis, found {points}")
        return SquaredProblem(risk, points, facts)  # type: ignore[arg-type]
    work = points**dimension * max(1, facts.size or 1) * facts.neighbours.rows
    if points**dimension > MOST_LISTED or work > MOST_WORK:
        raise ParameterError(
            f"{points} points on each of {dimension} axes are more than 2**22, or more than 2**36 losses of all rows: "
            f"take fewer points, or {_ADVICE}"
        )
    return CustomProblem(risk, points, facts) if isinstance(risk, CustomLoss) else TableProblem(risk, points, facts)


@functools.lru_cache(maxsize=8)
def _loss_table(loss: Loss, shift: int, reach: int, margin_unit: Fraction) -> tuple[npt.NDArray[np.int32], Fraction]:
    """Losses in integers, one for each range of 2^shift integer margins from -reach on, and what one is worth."""
    assert not isinstance(loss, (Custom, Softmax))
    middle = (np.arange(_ENTRIES, dtype=np.float64) + 0.5) * 2.0**shift - reach
    values = loss.value(np.clip(middle, -reach, reach) * float(margin_unit))
    least, span = float(values.min()), float(values.max() - values.min())
    unit = Fraction(span) / _LOSS_STEPS if span > 0 else Fraction(1)
    return np.rint((values - least) / float(unit)).astype(np.int32), unit


@functools.lru_cache(maxsize=64)
def _window_range(loss: Loss, shift: int, reach: int, margin_unit: Fraction, entries: int) -> int:
    """The largest difference of two entries of the table that are within `entries` of each other."""
    from scipy.ndimage import maximum_filter1d, minimum_filter1d

    table, _ = _loss_table(loss, shift, reach, margin_unit)
    size = min(entries, len(table)) | 1  # odd: a window that is centred
    return int((maximum_filter1d(table, size) - minimum_filter1d(table, size)).max())


def _checked_penalty(risk: Risk, facts: Facts, unit: Fraction) -> int:
    """The largest regularizer in integers, if heights with it fit 64 bits."""
    if risk.regularizer is None:
        return 0
    farthest = risk.feasible.reach_squared(risk.dimension(facts.domain))
    size = farthest / 2 if isinstance(risk.regularizer, Ridge) else 3 * (farthest + 1)
    found = math.ceil(risk.regularizer.strength * public_size(facts) * size / unit)
    if found >= 2**61:
        raise ParameterError("this regularizer dwarfs the loss: take a smaller strength or a smaller set")
    return found


def _penalty_units(risk: Risk, facts: Facts, grid: Fraction) -> tuple[Fraction, Fraction]:
    """What ridge adds for one square of an integer coordinate, and lasso for one integer of its absolute value."""
    if risk.regularizer is None:
        return Fraction(0), Fraction(0)
    strength = risk.regularizer.strength * public_size(facts)
    if isinstance(risk.regularizer, Lasso):
        return Fraction(0), strength * grid
    return strength * grid**2 / 2, Fraction(0)
