"""The exponential mechanism on a line: problems of one number, released as a point of the column's own grid.

    LineExponential(risk, rate)        P[w] proportional to exp(-rate * (sum of losses at w + n * regularizer(w)))

The height of a point, what its probability falls with, is an exact integer: the loss of a whole number of steps is a
whole number of a public unit, and the sum over the rows follows from how many codes lie below the point and what these
codes and their squares add up to (`mechanisms.rank`). Heights fall down to the best point and rise after it, so they
can be drawn from exactly, on grids of up to 2^62 points. Proofs: docs/proofs/grid_exponential.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from discreet.core import Exact, Guarantee, Neighbours, ParameterError, Rng, checked_rate, exact
from discreet.data import Dataset, Facts, Needs, Number, common_unit
from discreet.erm import Below, IntegerLoss, Risk
from discreet.erm.exponential.samplers import Cover
from discreet.mechanisms import ColumnSums, Unimodal, first, person_range, rank_needs


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
        line = self.problem(facts)
        checked_rate(self.rate * line.unit * line.highest(facts))
        span = checked_rate(self.rate * line.unit) * line.range(facts.neighbours)
        return Guarantee.of_bounded_range(span, neighbours=facts.neighbours)

    def problem(self, facts: Facts) -> Line:
        return Line.of(self.risk, facts)

    def run(self, data: Dataset, rng: Rng) -> float:
        return float(self.problem(data.facts).number.value(self.sampler(data).draw(rng)))

    def needs(self, facts: Facts) -> Needs:
        line = self.problem(facts)
        return rank_needs(line.high - line.low + 1)

    def sampler(self, data: Dataset) -> Unimodal:
        """The exact law on these rows. Not private: for the inside of `run`, and for audits on made-up rows."""
        line = self.problem(data.facts)
        column = ColumnSums(data, self.risk.target, line.loss.degree, line.number.steps + 1)

        def heights(codes: Sequence[int]) -> list[int]:
            column.learn(end for code in codes for end in line.loss.ends(code))
            return [line.height(code, column.below) for code in codes]

        def rising(codes: Sequence[int]) -> list[bool]:
            pairs = heights([place for code in codes for place in (code, code + 1)])
            return [after >= here for here, after in zip(pairs[::2], pairs[1::2], strict=True)]

        best = first(line.low, line.high, rising)
        return Unimodal(heights, best, line.low, line.high, self.rate * line.unit)


@dataclass(frozen=True, slots=True)
class Line:
    """Everything public about a problem on a line: the grid, the losses and the regularizer as integers of `unit`.

    The grid's points are the codes low .. high of the number. `weight` multiplies the sum of losses, `ridge` and
    `lasso` the square and the absolute value of origin + stride * code, the value of a code in units of the number.
    """

    convex: ClassVar[bool] = True
    dimension: ClassVar[int] = 1
    row_error: ClassVar[float] = 0.0
    number: Number
    loss: IntegerLoss
    low: int
    high: int
    unit: Fraction
    weight: int
    ridge: int
    lasso: int

    @staticmethod
    def of(risk: Risk, facts: Facts) -> Line:
        """The line of a risk; ParameterError if it is not one."""
        number = risk.loss.number(facts.domain, risk.target)
        if not risk.features.single:
            raise ParameterError("a line needs the features Constant() and a target Number(low, high, step)")
        ((low, high),) = risk.feasible.sides(1)
        interval = f"[{exact.shown(low)}, {exact.shown(high)}]"
        if low < number.low or high > number.high:
            raise ParameterError(
                f"the feasible interval {interval} must lie within the bounds of {risk.target!r}, {number!r}"
            )
        first, last = -((number.low - low) // number.step), (high - number.low) // number.step
        if first > last:
            raise ParameterError(f"no value of {number!r} lies in {interval}")
        loss, unit = risk.loss.integer_form(number)
        worth = (unit, *risk.penalty_units(facts, number.unit))
        common = common_unit([part for part in worth if part])
        return Line(number, loss, first, last, common, *(int(part / common) for part in worth))

    def cover(self) -> Cover:
        step = float(self.number.step)
        return Cover(self.high - self.low + 1, step, step)

    def height(self, code: int, below: Below) -> int:
        return self.weight * self.loss.total(code, below, below(self.number.steps + 1)) + self.penalty(code)

    def penalty(self, code: int) -> int:
        value = int((self.number.low + self.number.step * code) / self.number.unit)
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
