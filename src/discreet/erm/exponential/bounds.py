"""The exponential mechanism as a solver of empirical risk minimisation (lecture 9): what it promises, and the choice.

    LineExponential, RankQuantile    one number: mean, median, quantile, on the column's own grid      `line`
    GridExponential, CustomLoss      up to 5 dimensions; any bounded loss in up to 3                  `grid`, `custom`

A release w has P[w] proportional to exp(-rate * F(w)), F the sum of the losses plus n times the regularizer. Three
theorems bound its excess L(w) - min L, L = F / n, for tables of at most k n rows, k rows per person; the best that
applies is promised. Each is a bound exp(c) * tail(x) on the probability that rate * (F(w) - min F) exceeds x, up to
what cells and rounding add; with a = 1 / rate:

    lecture     any Lipschitz loss: c = d + d ln(n G D / (a d)), tail exp(-x); only if n G D >= a d, D the diameter
    convex      convex losses: c = 0, the tail of Gamma(d, 1): no logarithm, expected excess a d / n
    finite      anything on N points: c = ln N, tail exp(-x), for the excess over the best point of the grid

On a grid of cells of diagonal h, no loss steeper than G and no row's integer farther than e from its loss, c grows by
rate * n * (G h + 2 e), and the excess by G h / 2; in a ball, whose edge the cells follow in steps, by a little more.
Proofs: docs/proofs/grid_exponential.md.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction

from discreet.data import Facts, Number
from discreet.erm.exponential.custom import CustomLoss
from discreet.erm.exponential.grid import MOST_LISTED, GridExponential, LinearProblem, problem_of
from discreet.erm.exponential.grid_points import Lattice, sides_of
from discreet.erm.exponential.line import Line, LineExponential
from discreet.erm.feasible_sets import Ball, BallBox, FeasibleSet
from discreet.erm.features import Constant
from discreet.erm.losses import Absolute, Huber, Pinball, Squared
from discreet.erm.risk import Risk, needs_moments, public_size
from discreet.errors import ParameterError
from discreet.funds import Funds
from discreet.mechanisms import RankQuantile, calibrate
from discreet.method import Promise

__all__ = ["CustomLoss", "GridExponential", "LineExponential", "RankQuantile", "Tail", "promise", "propose"]

_WORK = 2**31  # losses of rows that a proposed grid may need
_PASSES = (2**6, 2**9, 2**11, 2**13, 2**15)  # over the rows that it takes, about, in 1, 2, ... dimensions
_MOST_POINTS = 2**20  # on an axis, where the grid is not listed


@dataclass(frozen=True, slots=True)
class Tail:
    """P[rate * (F - min F) > x] <= exp(factor) * P[Gamma(shape, 1) > x]; shape 1 is exp(-x).

    floor  what is added to F - min F beside this, in units of the loss
    """

    theorem: str
    shape: int
    factor: float
    floor: float = 0.0

    def quantile(self, beta: float) -> float:
        """The least x whose bound is beta."""
        from scipy.special import gammainccinv

        if self.shape == 1:
            return max(0.0, self.factor - math.log(beta))
        return float(gammainccinv(self.shape, math.exp(math.log(beta) - self.factor)))

    def mean(self) -> float:
        """The integral over x of the bound, or of 1 where that is less."""
        from scipy.special import gammaincc

        start = self.quantile(1.0)
        beyond = self.shape * gammaincc(self.shape + 1, start) - start * gammaincc(self.shape, start)
        return start + math.exp(min(self.factor, 700.0)) * float(beyond)

    def excess(self, rate: float, size: int, beta: float | None) -> float:
        """The excess of the mean loss: in expectation, or with probability 1 - beta."""
        if not self.factor < 700.0:
            return math.inf
        return ((self.mean() if beta is None else self.quantile(beta)) / rate + self.floor) / size


@dataclass(frozen=True, slots=True)
class Cover:
    """How the cells of a grid cover a feasible set.

    diagonal   of a cell
    uncovered  how far a point of the box around the set can be from all cells
    radius     of the set if it is a ball
    """

    diagonal: float
    uncovered: float
    radius: float | None

    @staticmethod
    def of(lattice: Lattice, feasible: FeasibleSet) -> Cover:
        sides = sides_of(feasible, len(lattice.starts))
        left = [
            high - low - lattice.points * stride for (low, high), stride in zip(sides, lattice.strides, strict=True)
        ]
        radius = float(feasible.radius) if isinstance(feasible, (Ball, BallBox)) else None
        return Cover(_length(lattice.strides), _length(tuple(left)), radius)

    @property
    def nearest(self) -> float:
        """Every point of the set has a point of the grid within this distance."""
        near = self.diagonal / 2 + self.uncovered
        return near if self.radius is None else 2 * near


def lecture_tail(slope: float, dimension: int, diameter: float, rate: float) -> Tail | None:
    """Lecture 9's theorem with its constants: any F that is `slope`-Lipschitz; None where it says nothing."""
    ratio = rate * slope * diameter / dimension
    if ratio < 1:
        return None
    return Tail("lecture 9: Lipschitz losses", 1, dimension * (1 + math.log(ratio)))


def convex_tail(dimension: int) -> Tail:
    """Convex F on a convex body."""
    return Tail("convex losses: the Gamma law", dimension, 0.0)


def finite_tail(points: int, distance: float) -> Tail:
    """Any F on finitely many points, the best of which is within `distance` of the least F of the set."""
    return Tail("finitely many points", 1, math.log(points), distance)


def _on_cells(tail: Tail, cover: Cover, slope: float, error: float, rate: float, dimension: int) -> Tail | None:
    """What a bound on a convex body becomes on the cells of a grid; slope and error are those of F."""
    factor, floor = tail.factor + rate * (slope * cover.diagonal + 2 * error), slope * cover.diagonal / 2
    if cover.radius is None:
        return Tail(tail.theorem, tail.shape, factor, floor + slope * cover.uncovered)
    edge = cover.diagonal / 2 + cover.uncovered
    if edge >= cover.radius:
        return None
    grown = dimension * math.log((cover.radius + edge) / (cover.radius - edge)) + 2 * rate * slope * edge
    return Tail(tail.theorem, tail.shape, factor + grown, floor)


def promise(
    mechanism: LineExponential | GridExponential | RankQuantile, facts: Facts, beta: float | None = None
) -> Promise:
    """The least excess risk that the theorems promise, in expectation or with probability 1 - beta.

    Of a RankQuantile it is that of the pinball loss: missing by x rows costs at most x / n times the width, for any
    number of rows.
    """
    size = public_size(facts)
    if isinstance(mechanism, RankQuantile):
        return _rank_promise(mechanism, facts, beta)
    tails, trivial = _tails(mechanism, facts, size)
    rate = float(mechanism.rate)
    found = [(tail.excess(rate, size, beta), tail.theorem) for tail in tails]
    excess, theorem = min(found, default=(math.inf, "the exponential mechanism"))
    if not excess < trivial:
        reason = f"the theorems' {excess:.3g} is no better than {trivial:.3g}, which holds for the centre of the set"
        return Promise(None, theorem, reason, beta)
    return Promise(excess, theorem, beta=beta).about(facts)


def _tails(mechanism: LineExponential | GridExponential, facts: Facts, size: int) -> tuple[list[Tail], float]:
    """Every bound that applies, and what is certain without looking at any row."""
    risk, rows = mechanism.risk, size * facts.neighbours.rows
    if isinstance(risk, CustomLoss):
        assert isinstance(mechanism, GridExponential)
        return _custom_tails(mechanism, risk, facts, rows), float(risk.bound) * facts.neighbours.rows
    if isinstance(mechanism, LineExponential):
        line = Line.of(risk, facts)
        step = float(line.number.step)
        cover, error, points = Cover(step, step, None), 0.0, line.high - line.low + 1
    else:
        problem = problem_of(risk, mechanism.points, facts)
        cover, error = Cover.of(problem.lattice, risk.feasible), problem.row_error * rows
        points = problem.lattice.size
    known = risk.constants(facts)
    beyond = known.row_norm * (cover.diagonal + cover.uncovered)  # cells at the edge of a ball reach out of it
    steep = risk.loss.steepness(risk.miss_reach(facts.domain) + beyond) * known.row_norm
    larger = 1 + 2 * (cover.diagonal + cover.uncovered) / known.diameter  # a set's reach is at least half its diameter
    slope = rows * steep + size * known.regularizer_slope * larger
    rate = float(mechanism.rate)
    tails = [_on_cells(convex_tail(known.dimension), cover, slope, error, rate, known.dimension)]
    lecture = lecture_tail(slope, known.dimension, known.diameter + 2 * cover.nearest, rate)
    if lecture is not None:
        tails.append(_on_cells(lecture, cover, slope, error, rate, known.dimension))
    finite = finite_tail(points, slope * cover.nearest)
    tails.append(Tail(finite.theorem, 1, finite.factor, finite.floor + 2 * error))
    if isinstance(risk.feasible, BallBox):
        tails = tails[-1:]
    return [tail for tail in tails if tail is not None], risk.centre_excess(facts)


def _custom_tails(mechanism: GridExponential, risk: CustomLoss, facts: Facts, rows: int) -> list[Tail]:
    """A user's own loss: over the grid, or over the set if the owner states how steep it is."""
    lattice = Lattice.of(risk.feasible, risk.dimension, mechanism.points)
    error = problem_of(risk, mechanism.points, facts).row_error * rows
    if risk.lipschitz is None or risk.regularizer is not None:
        return [Tail("finitely many points, over the best of them", 1, math.log(lattice.size), 2 * error)]
    cover, slope = Cover.of(lattice, risk.feasible), rows * float(risk.lipschitz)
    tails = [Tail("finitely many points", 1, math.log(lattice.size), slope * cover.nearest + 2 * error)]
    diameter, rate = risk.feasible.diameter(risk.dimension) + 2 * cover.nearest, float(mechanism.rate)
    lecture = lecture_tail(slope, risk.dimension, diameter, rate)
    if lecture is not None and cover.radius is None:
        on_cells = _on_cells(lecture, cover, slope, error, rate, risk.dimension)
        tails += [] if on_cells is None else [on_cells]
    return tails


def _rank_promise(mechanism: RankQuantile, facts: Facts, beta: float | None) -> Promise:
    column = facts.domain.column(mechanism.column)
    theorem = "finitely many points, ranks"
    if not isinstance(column, Number):
        return Promise(None, theorem, "a column without bounds has no bounded loss", beta)
    width, q = float(column.high - column.low), float(max(mechanism.q, 1 - mechanism.q))
    tail = Tail(theorem, 1, math.log(column.steps + 1))
    excess = tail.excess(float(mechanism.rate), public_size(facts), beta) * width
    trivial = facts.neighbours.rows * q * width
    if excess >= trivial:
        return Promise(None, theorem, f"the theorem's {excess:.3g} is no better than {trivial:.3g}", beta)
    return Promise(excess, theorem, beta=beta).about(facts, any_number=True)


def propose(
    risk: Risk | CustomLoss, *, facts: Facts, funds: Funds, points: int | None = None
) -> LineExponential | GridExponential:
    """The exponential mechanism for a risk with the highest rate that is admitted.

    A problem of one number gets the line of its column; another one a grid, with the number of points on an axis that
    promises the least expected excess within the work that is reasonable: 2^31 losses of rows.
    """
    if points is None and isinstance(risk, Risk) and _has_line(risk, facts):
        line: LineExponential = calibrate(functools.partial(_line, risk), funds=funds, facts=facts)
        return line
    tried = _tried(risk, facts) if points is None else [points]
    first = calibrate(functools.partial(_grid, risk, tried[0]), funds=funds, facts=facts)
    made = [_same_price(first, count, facts) for count in tried]
    best = min(made, key=lambda each: float(promise(each, facts)))
    return (
        best
        if funds.admits(best.guarantee(facts))
        else calibrate(functools.partial(_grid, risk, best.points), funds=funds, facts=facts)
    )


def _line(risk: Risk, noise: Fraction) -> LineExponential:
    return LineExponential(risk, 1 / noise)


def _grid(risk: Risk | CustomLoss, points: int, noise: Fraction) -> GridExponential:
    return GridExponential(risk, points, 1 / noise)


def _same_price(first: GridExponential, points: int, facts: Facts) -> GridExponential:
    """Another number of points, at the rate that costs as much."""
    if points == first.points:
        return first
    one = GridExponential(first.risk, points, 1).guarantee(facts).pure
    cost = first.guarantee(facts).pure
    assert one is not None
    assert cost is not None
    return GridExponential(first.risk, points, cost / one) if one else first


def _has_line(risk: Risk, facts: Facts) -> bool:
    if not isinstance(risk.features, Constant) or not isinstance(risk.loss, (Squared, Absolute, Pinball, Huber)):
        return False
    try:
        Line.of(risk, facts)
    except ParameterError:
        return False
    return True


def _tried(risk: Risk | CustomLoss, facts: Facts) -> list[int]:
    """Powers of two as numbers of points on an axis, the largest first; ParameterError if there is too much to do."""
    rows = public_size(facts) * facts.neighbours.rows
    if isinstance(risk, CustomLoss):
        most = math.floor(max(2**10, min(MOST_LISTED, _WORK // rows)) ** (1 / risk.dimension) + 1e-9)
    else:
        problem = problem_of(risk, 1, facts)  # says what is wrong
        assert isinstance(problem, LinearProblem)
        passes = 1 if needs_moments(risk) else _PASSES[risk.dimension(facts.domain) - 1]
        if passes * rows > _WORK:
            raise ParameterError(
                f"about {passes} passes over {rows} rows are too many: solve it by gradient descent "
                '(method="descent") or output perturbation (method="output")'
            )
        sides = sides_of(risk.feasible, problem.over.dimension)
        most = min(_MOST_POINTS, *(max(1, int((high - low) / problem.over.grid) - 1) for low, high in sides))
    return [2**power for power in reversed(range(3, most.bit_length()))] or [most]


def _length(sides: tuple[Fraction, ...]) -> float:
    return math.sqrt(sum(float(side) ** 2 for side in sides))
