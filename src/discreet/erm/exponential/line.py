"""The exponential mechanism on a line: problems of one number, released as a point of the column's own grid.

    LineExponential(risk, rate)        P[w] proportional to exp(-rate * (sum of losses at w + n * regularizer(w)))

The height of a point, what its probability falls with, is an exact integer: the loss of a whole number of steps is a
whole number of a public unit, and the sum over the rows follows from how many codes lie below the point and what these
codes and their squares add up to (`mechanisms.rank`). Heights fall down to the best point and rise after it, so they
can be drawn from exactly, on grids of up to 2^62 points. Proofs: docs/proofs/grid_exponential.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from discreet import exact
from discreet.data import Dataset, Facts, Number, common_unit
from discreet.erm.feasible_sets import Ball, BallBox, FeasibleSet
from discreet.erm.features import Constant
from discreet.erm.losses import Absolute, Huber, Pinball, Squared
from discreet.erm.risk import Ridge, Risk, public_size
from discreet.errors import ParameterError
from discreet.exact import Exact
from discreet.guarantee import Guarantee, Neighbours
from discreet.mechanisms import ColumnSums, PowerSums, Unimodal, first
from discreet.query import person_range
from discreet.rng import Rng, checked_rate

Below = Callable[[int], PowerSums]


@dataclass(frozen=True, slots=True, init=False)
class LineExponential:
    """Release a point of the target's grid, by the exponential mechanism over the sum of the losses.

    The risk has one dimension (features Constant) and the squared, absolute, pinball or Huber loss; its feasible set is
    an interval within the target's bounds. Ridge and lasso are part of the base measure: they cost nothing.

    Theorem.   Over the interval, let `up` be how much the loss of a row at the column's low bound rises, `down` how
               much that of a row at its high bound falls. Then r = max(up, down) for add-remove, up + down for
               replace-one, is the range of one row's effect, and a person's of k rows is k times that (replace-one: up
               + down is the larger). The release has bounded range rate * r: (rate * r)-DP, ((rate * r)^2 / 8)-zCDP.
    Accuracy.  `bounds.promise`: rate * (sum - least sum) is dominated by a Gamma(1, 1) variable up to
               the width of a step, so the expected excess of the mean loss is about 1 / (rate * n).
    Edges.     No rows: the law of the regularizer alone, uniform without one. An interval of one point costs nothing.
    Reference. Lecture 9; docs/proofs/grid_exponential.md.
    """

    NAME: ClassVar[str] = "line-exponential/1"
    risk: Risk
    rate: Fraction

    def __init__(self, risk: Risk, rate: Exact) -> None:
        exact.freeze(self, risk=risk, rate=exact.positive(rate=rate))

    def guarantee(self, facts: Facts) -> Guarantee:
        line = Line.of(self.risk, facts)
        checked_rate(self.rate * line.unit * line.highest(facts))
        span = checked_rate(self.rate * line.unit) * line.range(facts.neighbours)
        return Guarantee.of_bounded_range(span, neighbours=facts.neighbours)

    def run(self, data: Dataset, rng: Rng) -> float:
        return float(Line.of(self.risk, data.facts).number.value(self.sampler(data).draw(rng)))

    def sampler(self, data: Dataset) -> Unimodal:
        """The exact law on these rows. Not private: for the inside of `run`, and for audits on made-up rows."""
        line = Line.of(self.risk, data.facts)
        column = ColumnSums(data, self.risk.target, line.loss.degree, line.number.steps + 1)

        def heights(codes: Sequence[int]) -> list[int]:
            column.learn(end for code in codes for end in line.loss.ends(code))
            return [line.height(code, column.below) for code in codes]

        def rising(codes: Sequence[int]) -> list[bool]:
            found = heights([each for code in codes for each in (code, code + 1)])
            return [after >= here for here, after in zip(found[::2], found[1::2], strict=True)]

        best = first(line.low, line.high, rising)
        return Unimodal(heights, best, line.low, line.high, self.rate * line.unit)


@dataclass(frozen=True, slots=True)
class _Corner:
    """The loss up * u above 0, down * -u below, of a whole number u of steps: absolute and pinball."""

    degree: ClassVar[int] = 1
    up: int
    down: int

    def value(self, u: int) -> int:
        return self.up * u if u > 0 else -self.down * u

    def ends(self, code: int) -> tuple[int, ...]:
        return (code,)

    def total(self, code: int, below: Below, everything: PowerSums) -> int:
        (count, total, _), (rows, whole, _) = below(code), everything
        return self.up * (code * count - total) + self.down * (whole - total - code * (rows - count))


@dataclass(frozen=True, slots=True)
class _Bowl:
    """r^2 u^2 up to |u| = t = p/r and the line p (2 r |u| - p) beyond: r^2 times Huber's loss. reach = floor(t)."""

    degree: ClassVar[int] = 2
    p: int
    r: int
    reach: int

    def value(self, u: int) -> int:
        return self.r**2 * u * u if abs(u) <= self.reach else self.p * (2 * self.r * abs(u) - self.p)

    def ends(self, code: int) -> tuple[int, ...]:
        return (code - self.reach, code + self.reach + 1)

    def total(self, code: int, below: Below, everything: PowerSums) -> int:
        start, stop = (below(end) for end in self.ends(code))
        count, total, squares = (b - a for a, b in zip(start, stop, strict=True))
        inside = self.r**2 * (code * code * count - 2 * code * total + squares)
        left = code * start[0] - start[1]
        right = everything[1] - stop[1] - code * (everything[0] - stop[0])
        outside = everything[0] - count
        return inside + self.p * (2 * self.r * (left + right) - self.p * outside)


@dataclass(frozen=True, slots=True)
class Line:
    """Everything public about a problem on a line: the grid, the losses and the regularizer as integers of `unit`.

    The grid's points are the codes low .. high of the number. `weight` multiplies the sum of losses, `ridge` and
    `lasso` the square and the absolute value of origin + stride * code, the value of a code in units of the number.
    """

    number: Number
    loss: _Corner | _Bowl
    low: int
    high: int
    unit: Fraction
    weight: int = 1
    ridge: int = 0
    lasso: int = 0
    origin: int = 0
    stride: int = 0

    @staticmethod
    def of(risk: Risk, facts: Facts) -> Line:
        """The line of a risk; ParameterError if it is not one."""
        number = risk.checked_target(facts.domain)
        if not isinstance(risk.features, Constant) or not isinstance(number, Number):
            raise ParameterError("a line needs the features Constant() and a target Number(low, high, step)")
        loss, unit = _integer_loss(risk, number)
        low, high = _codes(risk.feasible, number, risk.target)
        if risk.regularizer is None:
            return Line(number, loss, low, high, unit)
        strength = risk.regularizer.strength * public_size(facts)
        squared = isinstance(risk.regularizer, Ridge)
        added = strength * number.unit**2 / 2 if squared else strength * number.unit
        common = common_unit((unit, added))
        extra = int(added / common)
        weight, origin, stride = (int(each) for each in (unit / common, *_in_units(number)))
        ridge, lasso = (extra, 0) if squared else (0, extra)
        return Line(number, loss, low, high, common, weight, ridge, lasso, origin, stride)

    def height(self, code: int, below: Below) -> int:
        return self.weight * self.loss.total(code, below, below(self.number.steps + 1)) + self.penalty(code)

    def penalty(self, code: int) -> int:
        value = self.origin + self.stride * code
        return self.ridge * value * value + self.lasso * abs(value)

    def range(self, neighbours: Neighbours) -> int:
        """How much further one point's height can move than another's when one person changes."""
        up = self.loss.value(self.high) - self.loss.value(self.low)
        end = self.number.steps
        down = self.loss.value(self.low - end) - self.loss.value(self.high - end)
        return self.weight * person_range(neighbours, added=max(up, down), replaced=up + down)

    def highest(self, facts: Facts) -> int:
        """No height exceeds the least by more."""
        rows = self.range(Neighbours("add-remove")) * facts.rows_bound
        return rows + max(self.penalty(self.low), self.penalty(self.high))


def _in_units(number: Number) -> tuple[Fraction, Fraction]:
    """The low bound and the step as whole multiples of the number's unit."""
    return number.low / number.unit, number.step / number.unit


def _integer_loss(risk: Risk, number: Number) -> tuple[_Corner | _Bowl, Fraction]:
    """The loss of a whole number of steps, in whole numbers of the unit that is returned with it."""
    loss, step = risk.loss, number.step
    if isinstance(loss, Absolute):
        return _Corner(1, 1), step
    if isinstance(loss, Pinball):
        part, whole = loss.q.numerator, loss.q.denominator
        return _Corner(whole - part, part), step / whole
    if isinstance(loss, Huber):
        p, r = (loss.threshold / step).as_integer_ratio()
        return _Bowl(p, r, p // r), step**2 / r**2
    if isinstance(loss, Squared):
        return _Bowl(0, 1, number.steps), step**2
    raise ParameterError(f"{type(loss).__name__} has no target on a line: use Squared, Absolute, Pinball or Huber")


def _codes(feasible: FeasibleSet, number: Number, name: str) -> tuple[int, int]:
    """The first and the last code of the number in the interval."""
    low, high = interval_of(feasible)
    if low < number.low or high > number.high:
        raise ParameterError(
            f"the feasible interval [{exact.shown(low)}, {exact.shown(high)}] must lie within the bounds of {name!r}, "
            f"{number!r}"
        )
    first, last = -((number.low - low) // number.step), (high - number.low) // number.step
    if first > last:
        raise ParameterError(f"no value of {number!r} lies in [{exact.shown(low)}, {exact.shown(high)}]")
    return first, last


def interval_of(feasible: FeasibleSet) -> tuple[Fraction, Fraction]:
    """The ends of a feasible set of one dimension."""
    if isinstance(feasible, Ball):
        return -feasible.radius, feasible.radius
    if len(feasible.low) != 1:
        raise ParameterError(f"a box of {len(feasible.low)} sides is not an interval")
    if isinstance(feasible, BallBox):
        return max(feasible.low[0], -feasible.radius), min(feasible.high[0], feasible.radius)
    return feasible.low[0], feasible.high[0]
