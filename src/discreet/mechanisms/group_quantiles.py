"""A quantile of a column in each of several groups, for the price of one: parallel draws over ranks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet.core import Exact, Guarantee, ParameterError, Rng, checked_rate, exact, float_up
from discreet.data import Batch, Dataset, Facts, Ints, Mask, Needs
from discreet.mechanisms.rank import ColumnSums, Counter, Unimodal, rank_needs, ranked
from discreet.query import EVERYTHING, MAX_CELLS, GroupCount, GroupKey, Predicate

DRAWS = 3
"""Of each group: below the quantile, at it, above it."""


@dataclass(frozen=True, slots=True, init=False)
class GroupQuantiles:
    """Release, for each group of rows, values of a column's grid near its q-quantile in rank, and on both sides of it.

    Keys make the groups, as in a GroupCount; without keys it is one group. Let n be the number of a group's rows that
    satisfy `where` and have a value, and P = reach + 1. To the group's values P made-up ones are added at each end of
    the grid, and three independent draws are made, at the ranks t = q n, q n + P and q n + 2 P of these n + 2 P values:
    P below the quantile, at it, and P above it; the outer two by the rate `outer`. The result has one axis of three,
    then one for each key.

    Theorem.   The height of w in a draw is by how many values it misses: max(0, #{x < w} - t, t - #{x <= w}). With m =
               max(q, 1 - q), one row that enters or leaves a group changes the heights of this group by at most m up or
               down, and those of no other; one that changes within a group, by at most 1. So one draw of one group has
               bounded range 2 m rate, or 2 rate, and a replaced row moves one group by 2 rate or two by 2 m rate each.
               A person of k rows: over all groups one draw is p-DP with p = k rate 2 m (add-remove), k rate 4 m
               (replace-one), and r-zCDP with r = (k rate)^2 m^2 / 2 (add-remove), (k rate)^2 max(1/2, m^2)
               (replace-one). One group: replace-one p = 2 k rate and r = (k rate)^2 / 2. The prices of the three draws,
               each with its own rate, add up.
    Proof.     docs/proofs/group_quantiles.md: bounded ranges of different groups add up, for zCDP as squares, and k
               rows move the vector of ranges by at most k times its longest step.
    Accuracy.  P[a draw misses by x rows or more] <= points exp(-rate x), with its rate: some value misses by nothing,
               since 0 <= t <= n + 2 P. If no outer draw misses by reach or more, the q-quantile of every group, however
               it is interpolated between two neighbouring rows, lies between its two outer draws.
    Edges.     A group of few rows has outer draws near the ends of the grid: the interval holds, and says little.
               Missing values do not count.
    Reference. Lecture 9, the median; [Smi11]; [DR19].
    """

    NAME: ClassVar[str] = "group-quantiles/1"
    column: str
    q: Fraction
    rate: Fraction
    outer: Fraction
    reach: int
    keys: tuple[GroupKey, ...]
    where: Predicate

    def __init__(
        self,
        column: str,
        q: Exact,
        rate: Exact,
        outer: Exact,
        reach: int,
        keys: Iterable[GroupKey] = (),
        where: Predicate = EVERYTHING,
    ) -> None:
        counted = GroupCount(keys, where)
        exact.freeze(self, column=exact.text(column=column), q=exact.probability(q=q), rate=exact.positive(rate=rate))
        exact.freeze(
            self,
            outer=exact.positive(outer=outer),
            reach=exact.whole(reach=reach),
            keys=counted.keys,
            where=counted.where,
        )

    @property
    def scope(self) -> frozenset[str]:
        return GroupCount(self.keys, self.where).scope | {self.column}

    def shape(self, facts: Facts) -> tuple[int, ...]:
        return GroupCount(self.keys, self.where).shape(facts.domain)

    def guarantee(self, facts: Facts) -> Guarantee:
        self._column(facts)
        self.where.check(facts.domain)
        several, relation = math.prod(self.shape(facts)) > 1, facts.neighbours
        for rate in self.rates:
            checked_rate(rate / self.q.denominator)
            checked_rate(rate * (facts.rows_bound + 2 * self.reach + 2))
        # What one row moves, at rate 1: in sum over the groups, and the square of its length.
        most = max(self.q, 1 - self.q)
        moved, squared = 2 * most, 4 * most**2
        if relation.replace_one:
            moved, squared = (4 * most, max(Fraction(4), 8 * most**2)) if several else (Fraction(2), Fraction(4))
        pure = relation.rows * moved * sum(self.rates)
        slope = float_up(relation.rows**2 * squared * sum(rate**2 for rate in self.rates) / 8)
        return Guarantee.of_curve(lambda order: order * slope, neighbours=relation, pure=pure)

    @property
    def rates(self) -> tuple[Fraction, Fraction, Fraction]:
        """Of the draws below, at and above the quantile."""
        return self.outer, self.rate, self.outer

    def needs(self, facts: Facts) -> Needs:
        column, groups = self._column(facts), math.prod(self.shape(facts))
        if groups * column.size <= MAX_CELLS:
            return Needs(queries=(GroupCount((*self.keys, self.column), self.where),))
        once = rank_needs(column.points)
        return replace(once, passes=groups * (once.passes or 1))

    def run(self, data: Dataset, rng: Rng) -> Any:
        column = self._column(data.facts)
        samplers = self.samplers(data)
        values = [float(column.value(sampler.draw(rng))) for sampler in samplers]
        return np.array(values).reshape((DRAWS, *self.shape(data.facts)))

    def samplers(self, data: Dataset) -> list[Unimodal]:
        """The exact laws on these rows, draw by draw, group by group. Not private: for `run`, and for audits."""
        groups = math.prod(self.shape(data.facts))
        ranks = [_Ranks(self, below) for below in self._counters(data, groups)]
        points = self._column(data.facts).points
        return [each.sampler(points, side) for side in range(DRAWS) for each in ranks]

    def _counters(self, data: Dataset, groups: int) -> list[Counter]:
        """For each group what counts its rows below codes."""
        column = self._column(data.facts)
        if groups * column.size <= MAX_CELLS:
            counted = GroupCount((*self.keys, self.column), self.where)
            table = np.asarray(data.exact_sum(counted)).reshape(groups, column.size)[:, : column.points]
            sums = np.concatenate([np.zeros((groups, 1), dtype=np.int64), table.cumsum(axis=1)], axis=1)
            return [_listed(line) for line in sums]
        counted = GroupCount(self.keys, self.where)
        chosen = (_OfGroup(counted, group) for group in range(groups))
        return [ColumnSums(data, self.column, 0, column.points, each).counts for each in chosen]

    def _column(self, facts: Facts) -> Any:
        column = facts.domain.column(self.column)
        if not column.listed or not column.ordered:
            raise ParameterError(
                f"a quantile is of a Number with bounds; column {self.column!r} is declared {column!r}"
            )
        return column


def _listed(sums: Ints) -> Counter:
    return lambda codes: [int(sums[min(max(code, 0), len(sums) - 1)]) for code in codes]


@dataclass(frozen=True, slots=True)
class _OfGroup:
    """Which rows of a batch are in a group."""

    counted: GroupCount
    group: int

    def __call__(self, batch: Batch) -> Mask:
        return np.asarray(self.counted.where.mask(batch) & (self.counted.places(batch) == self.group))


class _Ranks:
    """The ranks of one group's rows, with as many values added at each end of the grid."""

    def __init__(self, asked: GroupQuantiles, below: Counter) -> None:
        self.part, self.whole, self.rates, self.below = asked.q.numerator, asked.q.denominator, asked.rates, below
        self.added = asked.reach + 1

    def sampler(self, points: int, side: int) -> Unimodal:
        """The law of the draw below the quantile (0), at it (1) or above it (2)."""
        (rows,) = self.below([points])
        wanted = self.part * rows + self.whole * self.added * side

        def values_below(codes: Sequence[int]) -> list[int]:
            """Of the rows and the added values; a code beyond the last is above them all."""
            ends = [self.added * ((code > 0) + (code >= points)) for code in codes]
            return [self.whole * (count + end) for count, end in zip(self.below(codes), ends, strict=True)]

        return ranked(values_below, wanted, points, self.rates[side] / self.whole)
