"""The exponential mechanism as a solver of empirical risk minimisation (lecture 9): what it promises, and the choice.

    LineExponential, RankQuantile    one number: mean, median, quantile, on the column's own grid      `line`
    GridExponential, CustomLoss      up to 5 dimensions; any bounded loss in up to 3                  `grid`

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

import contextlib
import math
from dataclasses import dataclass

from discreet.core import Funds, ParameterError
from discreet.data import Facts
from discreet.erm.exponential.grid import MOST_LISTED, CustomLoss, GridExponential, LinearProblem
from discreet.erm.exponential.line import Line, LineExponential
from discreet.erm.exponential.samplers import Cover
from discreet.erm.risk import Risk, public_size
from discreet.mechanisms import Promise, RankQuantile, calibrate

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


def lecture_tail(slope: float, dimension: int, diameter: float, rate: float) -> Tail | None:
    """Lecture 9's theorem with its constants: any F that is `slope`-Lipschitz; None where it says nothing."""
    ratio = rate * slope * diameter / dimension
    return Tail("lecture 9: Lipschitz losses", 1, dimension * (1 + math.log(ratio))) if ratio >= 1 else None


def convex_tail(dimension: int) -> Tail:
    """Convex F on a convex body."""
    return Tail("convex losses: the Gamma law", dimension, 0.0)


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
    if isinstance(mechanism, RankQuantile):
        return _rank_promise(mechanism, facts, beta)
    size, rate = public_size(facts), float(mechanism.rate)
    excesses = [(tail.excess(rate, size, beta), tail.theorem) for tail in _tails(mechanism, facts)]
    excess, theorem = min(excesses, default=(math.inf, "the exponential mechanism"))
    found = Promise(excess, theorem, beta=beta)
    return found.unless(mechanism.risk.centre_excess(facts), "the centre of the set").about(facts)


def _tails(mechanism: LineExponential | GridExponential, facts: Facts) -> list[Tail]:
    """Every bound that applies: over the set if it is known how steep the loss is, else over the grid."""
    problem, feasible, rate = mechanism.problem(facts), mechanism.risk.feasible, float(mechanism.rate)
    cover, error = problem.cover(), problem.row_error * public_size(facts) * facts.neighbours.rows
    slope = mechanism.risk.sum_slope(facts, cover.diagonal + cover.uncovered)  # cells at the edge reach out of a ball
    if slope is None:
        return [Tail("finitely many points, over the best of them", 1, math.log(cover.size), 2 * error)]
    finite = Tail("finitely many points", 1, math.log(cover.size), slope * cover.nearest + 2 * error)
    if feasible.ball is not None and (feasible.box is not None or not problem.convex):
        return [finite]
    dimension = problem.dimension
    lecture = lecture_tail(slope, dimension, feasible.diameter(dimension) + 2 * cover.nearest, rate)
    on_sets = (convex_tail(dimension) if problem.convex else None, lecture)
    on_cells = (_on_cells(tail, cover, slope, error, rate, dimension) for tail in on_sets if tail is not None)
    return [finite, *(tail for tail in on_cells if tail is not None)]


def _rank_promise(mechanism: RankQuantile, facts: Facts, beta: float | None) -> Promise:
    column = facts.domain.column(mechanism.column)
    theorem = "finitely many points, ranks"
    if not column.bounded:
        return Promise(None, theorem, "a column without bounds has no bounded loss", beta)
    width, q = float(column.high - column.low), float(max(mechanism.q, 1 - mechanism.q))
    tail = Tail(theorem, 1, math.log(column.steps + 1))
    excess = tail.excess(float(mechanism.rate), public_size(facts), beta) * width
    found = Promise(excess, theorem, beta=beta).unless(facts.neighbours.rows * q * width, "any point")
    return found.about(facts, any_number=True)


def propose(
    risk: Risk | CustomLoss, *, facts: Facts, funds: Funds, points: int | None = None
) -> LineExponential | GridExponential:
    """The exponential mechanism for a risk with the highest rate that is admitted.

    A problem of one number gets the line of its column; another one a grid, with the number of points on an axis that
    promises the least expected excess within the work that is reasonable: 2^31 losses of rows.
    """

    def grid(count: int) -> GridExponential:
        return calibrate(lambda noise: GridExponential(risk, count, 1 / noise), funds=funds, facts=facts)

    if points is None and isinstance(risk, Risk):
        line, problem = None, risk
        with contextlib.suppress(ParameterError):
            line = Line.of(problem, facts)
        if line is not None:
            return calibrate(lambda noise: LineExponential(problem, 1 / noise), funds=funds, facts=facts)
    counts = _point_counts(risk, facts) if points is None else [points]
    first = grid(counts[0])
    cost, made = first.guarantee(facts).pure, [first]
    for count in counts[1:]:  # at the rate that costs as much
        one = GridExponential(risk, count, 1).guarantee(facts).pure
        made.append(GridExponential(risk, count, cost / one) if one and cost else first)
    best = min(made, key=lambda mechanism: float(promise(mechanism, facts)))
    return best if funds.admits(best.guarantee(facts)) else grid(best.points)


def _point_counts(risk: Risk | CustomLoss, facts: Facts) -> list[int]:
    """Powers of two as numbers of points on an axis, the largest first; ParameterError if there is too much to do."""
    rows = public_size(facts) * facts.neighbours.rows
    if isinstance(risk, CustomLoss):
        most = math.floor(max(2**10, min(MOST_LISTED, _WORK // rows)) ** (1 / risk.dimension) + 1e-9)
    else:
        dimension, grid = risk.dimension(facts.domain), LinearProblem(risk, 1, facts).grid  # says what is wrong
        passes = 1 if risk.loss.moments else _PASSES[dimension - 1]
        if passes * rows > _WORK:
            raise ParameterError(
                f"about {passes} passes over {rows} rows are too many: solve it by gradient descent "
                '(method="descent") or output perturbation (method="output")'
            )
        sides = risk.feasible.sides(dimension)
        most = min(_MOST_POINTS, *(max(1, int((high - low) / grid) - 1) for low, high in sides))
    return [2**power for power in reversed(range(3, most.bit_length()))] or [most]
