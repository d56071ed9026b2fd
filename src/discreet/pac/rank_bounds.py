"""Bounds for a column that has none: two quantiles by ranks, rounded outward to short decimals."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from discreet.core import exact
from discreet.data import AnyNumber, Dataset, Facts, Needs, Number
from discreet.mechanisms import Guarantee, RankQuantile, Rng
from discreet.pac.rules import ordered

_FARTHEST = Fraction(10) ** 50  # a bound that by chance is at the end of the floats is put here: sums within such
_FINEST = Fraction(1, 10**50)  # bounds, and their squares, are floats, so their noise can be drawn
_STEPS = 1000
"""The suggested step is one over this of the power of ten that bounds are multiples of."""


@dataclass(frozen=True, slots=True)
class RankBounds:
    """Release a low and a high quantile of a column by ranks: the (1 - coverage) / 2 one and its mirror.

    Theorem.   Two releases of `RankQuantile`: its price, twice.
    Accuracy.  With x = ln(2 * points of the grid / beta) / rate, with probability 1 - beta fewer than (1 - coverage) /
               2 * n + x rows lie below the low bound, and as few above the high one; n rows where it is not missing.
    Edges.     The smaller is the low one. No rows: two points of the grid at random.
    Reference. Lecture 9, the median; [Smi11]; docs/proofs/grid_exponential.md.
    """

    NAME: ClassVar[str] = "rank-bounds/1"
    column: str
    coverage: Fraction
    rate: Fraction

    def __post_init__(self) -> None:
        exact.convert(self, column=exact.text, coverage=exact.probability, rate=exact.positive)

    @property
    def parts(self) -> tuple[RankQuantile, RankQuantile]:
        beyond = (1 - self.coverage) / 2
        return RankQuantile(self.column, beyond, self.rate), RankQuantile(self.column, 1 - beyond, self.rate)

    def guarantee(self, facts: Facts) -> Guarantee:
        low, high = (part.guarantee(facts) for part in self.parts)
        return low + high

    def needs(self, facts: Facts) -> Needs:
        low, high = (part.needs(facts) for part in self.parts)
        return replace(low, passes=(low.passes or 0) + (high.passes or 0))

    def run(self, data: Dataset, rng: Rng) -> tuple[float, float]:
        one, other = (part.run(data, rng) for part in self.parts)
        return min(one, other), max(one, other)

    def missed(self, facts: Facts, beta: float) -> int:
        """With probability 1 - beta at most (1 - coverage) / 2 of all rows and this many more lie beyond a bound."""
        grid = ordered(facts.domain, self.column).points
        return math.ceil(Fraction(math.log(2 * grid) - math.log(beta)) / self.rate)


def declaration(column: Number | AnyNumber, low: float, high: float) -> Number:
    """A Number that holds these bounds, rounded outward; a function of what was released and of public things.

    A Number keeps its own grid, with bounds at least one step apart. Other bounds are multiples of a power of ten, the
    largest that is at most about a tenth of their distance, and none is further than 10^50 from 0.
    """
    if column.bounded:
        places = (math.floor((Fraction(repr(end)) - column.low) / column.step) for end in (low, high))
        first, last = (min(max(place, 0), column.steps) for place in places)
        first = min(first, column.steps - 1)
        last = max(min(last + 1, column.steps), first + 1)
        return Number(column.value(first), column.value(last), step=column.step, missing=column.missing)
    start, stop = (max(-_FARTHEST, min(_FARTHEST, Fraction(end))) for end in (low, high))
    width = stop - start or abs(start) or Fraction(1)
    unit = max(_FINEST, Fraction(10) ** (math.floor(math.log10(width)) - 1))
    start, stop = math.floor(start / unit) * unit, math.ceil(stop / unit) * unit
    return Number(start, stop if stop > start else start + unit, step=unit / _STEPS, missing=column.missing)
