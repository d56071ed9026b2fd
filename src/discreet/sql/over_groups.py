"""What is made of several groups of an answer, after the noise: windows over the groups, and aggregates of them.

    SUM(COUNT(*)) OVER ()                          of all groups that are listed, each with its interval: the sum lies
    RANK() OVER (ORDER BY COUNT(*) DESC)           between the sums of the ends; a rank is 1 and as many as are surely
    LAG(SUM(x)) OVER (ORDER BY month)              before it, up to as many as may be
    SELECT AVG(n) FROM (SELECT a, COUNT(*) AS n FROM t GROUP BY a) q

SQL has no groups without rows, and which groups have none is private. A sum is the same with and without them. The
smallest, the number and the average of groups are not: their intervals allow each group that may be empty to be there
or not.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from discreet.query import Question
from discreet.sql.expressions import NULL_OR_ANY, Chosen, Estimated, Expression, Group, Total, sort_key

Ends = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Gathered(Expression):
    """SUM, AVG, MIN, MAX or COUNT of an estimate over all groups of an answer.

    counts  what else is asked of a group: a count says whether it has rows
    """

    aggregate: ClassVar[bool] = True
    function: str
    inner: Expression
    counts: tuple[Expression, ...] = ()

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.inner, *self.counts)

    def of(self, group: Group) -> Estimated:
        kept = group.peers.kept
        return gathered(self.function, self.inner, kept.possible, kept)


@dataclass(frozen=True, slots=True)
class Over(Expression):
    """A function of the groups that are alike in what they are parted by, up to this one if they are ordered.

    order  expressions, whether they go down, and whether missing values come first
    frame  from which to which group, counted from this one, if that is said; None is the first, or the last
    """

    aggregate: ClassVar[bool] = True
    function: str
    inner: Expression
    parted: tuple[Expression, ...]
    order: tuple[tuple[Expression, bool, bool], ...]
    away: int = 1
    frame: tuple[int | None, int | None] | None = None

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.inner, *self.parted, *(each for each, _, _ in self.order))

    def of(self, group: Group) -> Estimated:
        known = group.peers.found
        if id(self) not in known:
            known[id(self)] = self._all(group.peers.listed)
        return known[id(self)][id(group)]

    def _all(self, chosen: Chosen) -> dict[int, Estimated]:
        """The value in each group, all at once."""
        apart: dict[Any, list[Group]] = {}
        for group in chosen.possible:
            apart.setdefault(tuple(each.of(group).value for each in self.parted), []).append(group)
        return {id(group): one for alike in apart.values() for group, one in self._within(alike, chosen)}

    def _within(self, groups: Sequence[Group], chosen: Chosen) -> list[tuple[Group, Estimated]]:
        ordered = list(groups)
        for expression, down, first in reversed(self.order):
            values = {id(group): expression.of(group).value for group in ordered}
            there = [group for group in ordered if values[id(group)] is not None]
            missing = [group for group in ordered if values[id(group)] is None]
            there.sort(key=lambda group: sort_key(values[id(group)]), reverse=down)
            ordered = [*missing, *there] if first else [*there, *missing]
        places = [tuple(each.of(group).value for each, _, _ in self.order) for group in ordered]
        if self.function in ("LAG", "LEAD", "FIRST_VALUE", "RANK", "DENSE_RANK", "ROW_NUMBER"):
            return self._by_place(ordered, chosen)
        if not self.order:
            one = gathered(self.function, self.inner, ordered, chosen)
            return [(group, one) for group in ordered]
        last = {value: place for place, value in enumerate(places)}
        found = list[tuple[Group, Estimated]]()
        for at, group in enumerate(ordered):
            start, end = self.frame or (None, last[places[at]] - at)
            begin, stop = 0 if start is None else max(0, at + start), None if end is None else max(0, at + end + 1)
            one = gathered(self.function, self.inner, ordered[begin:stop], chosen)
            certain = self.frame is None or all(id(each) in chosen.sure for each in ordered)
            found.append((group, one if certain else Estimated(one.value, -math.inf, math.inf)))
        return found

    def _by_place(self, ordered: Sequence[Group], chosen: Chosen) -> list[tuple[Group, Estimated]]:
        """What depends on a group's place among those that are shown; of one that is not, nothing is known."""
        ids = {id(group) for group in chosen.shown}
        shown = [group for group in ordered if id(group) in ids]
        places = [tuple(each.of(group).value for each, _, _ in self.order) for group in shown]
        found = [(group, NULL_OR_ANY) for group in ordered if id(group) not in ids]
        certain = all(id(group) in chosen.sure for group in ordered)
        if self.function not in ("LAG", "LEAD", "FIRST_VALUE"):
            return [*found, *zip(shown, self._ranks(places, shown, ordered, chosen), strict=True)]
        step = -self.away if self.function == "LAG" else self.away
        for at, group in enumerate(shown):
            to = 0 if self.function == "FIRST_VALUE" else at + step
            one = self.inner.of(shown[to]) if 0 <= to < len(shown) else Estimated(None)
            found.append((group, one if certain else Estimated(one.value, -math.inf, math.inf)))
        return found

    def _ranks(
        self, places: Sequence[Any], shown: Sequence[Group], possible: Sequence[Group], chosen: Chosen
    ) -> list[Estimated]:
        """The ranks of the groups that are shown: SQL has no groups without rows."""
        dense, values, rows, different = self.function == "DENSE_RANK", list[int](), 0, set[Any]()
        for at, group in enumerate(shown):
            tied = at and places[at] == places[at - 1] and self.function != "ROW_NUMBER"
            values.append(values[-1] if tied else 1 + (len(different) if dense else rows))
            if group.rows.value > 0:
                rows += 1
                different.add(places[at])
        noisy = any(part.aggregate for each, _, _ in self.order for part in each.walk())
        if not noisy and all(id(group) in chosen.sure for group in possible):
            return [Estimated.exactly(value) for value in values]
        if len(self.order) > 1 or not noisy:
            return [Estimated(value, 1.0, float(len(possible))) for value in values]
        ((expression, down, _),) = self.order
        ends = {id(group): _turned(expression.of(group), down) for group in possible}
        there = [group for group in possible if id(group) in chosen.sure and group.rows.ends[0] > 0]
        lows, highs = sorted(low for low, _ in ends.values()), sorted(ends[id(group)][1] for group in there)
        found = list[Estimated]()
        for value, group in zip(values, shown, strict=True):
            low, high = ends[id(group)]
            surely, maybe = bisect.bisect_left(highs, low), bisect.bisect_right(lows, high) - 1  # without itself
            least = 1 + (min(1, surely) if dense else surely)
            found.append(Estimated(value, float(min(least, value)), float(max(1 + maybe, value))))
        return found


@dataclass(frozen=True, slots=True)
class OfCounts(Expression):
    """What is made of how many rows each value of an expression has, in each group: `question`; axis: of its values."""

    aggregate: ClassVar[bool] = True
    question: Question
    axis: int

    @property
    def questions(self) -> tuple[Question, ...]:
        return (self.question,)


@dataclass(frozen=True, slots=True)
class Different(OfCounts):
    """COUNT(DISTINCT x) of an expression with declared values: how many of them have rows.

    places  the values that are counted: not the missing one
    """

    places: tuple[int, ...]

    def of(self, group: Group) -> Estimated:
        found = group.along(self.question, self.axis)
        counts = [found[place] for place in self.places]
        surely = sum(value > error for value, error in counts)
        likely = sum(value > error / 2 for value, error in counts)
        return Estimated(likely, float(surely), float(sum(value + error >= 1 for value, error in counts)))


@dataclass(frozen=True, slots=True)
class RankOf(OfCounts):
    """A quantile of an expression with declared values, from how many rows each value has.

    Of N rows, counted from 0, QUANTILE_CONT and QUANTILE_DISC look at those of rank floor(p (N - 1)) and the next. So
    the quantile is at least the first value with p (N - 1) rows up to it, at most the first with p (N - 1) + 2.
    """

    values: tuple[tuple[int, float], ...]
    probability: Fraction

    def of(self, group: Group) -> Estimated:
        found = group.along(self.question, self.axis)
        counts = [(max(0.0, count), error) for count, error in (found[place] for place, _ in self.values)]
        p, low, high, middle = float(self.probability), None, None, None
        most = [count + error for count, error in counts]
        least = [max(0.0, count - error) for count, error in counts]
        if sum(most) < 1:
            return Estimated(None)
        for at, (_, value) in enumerate(self.values):
            up_to, above = slice(0, at + 1), slice(at + 1, None)
            if low is None and sum(most[up_to]) >= max(1.0, p * (sum(most[up_to]) + sum(least[above]) - 1)):
                low = value
            if high is None and sum(least[up_to]) >= p * (sum(least[up_to]) + sum(most[above]) - 1) + 2:
                high = value
            whole = sum(count for count, _ in counts)
            if middle is None and sum(count for count, _ in counts[up_to]) >= max(0.5, p * whole):
                middle = value
        ends = self.values[0][1], self.values[-1][1]
        low, high = ends[0] if low is None else low, ends[1] if high is None else high
        return Estimated(min(max(ends[1] if middle is None else middle, low), high), low, high)


@dataclass(frozen=True, slots=True)
class OfKeys(Expression):
    """A function of what a group is grouped by, for all labels of the keys at these places: it has no noise."""

    places: tuple[int, ...]
    values: Mapping[tuple[Any, ...], Any] = field(compare=False)
    name: Any

    def of(self, group: Group) -> Estimated:
        return Estimated.exactly(self.values[tuple(group.labels[place] for place in self.places)])


@dataclass(frozen=True, slots=True)
class Labelled:
    """A group of which nothing but the labels is known."""

    labels: tuple[Any, ...]


def _turned(found: Estimated, down: bool) -> Ends:
    low, high = found.ends
    return (-high, -low) if down else (low, high)


def gathered(function: str, inner: Expression, groups: Sequence[Group], chosen: Chosen) -> Estimated:
    """An aggregate of what groups are estimated to be: of those that are shown; its interval is about all that may be
    there, with or without each of those that may not."""
    shown = {id(group) for group in chosen.shown}
    every = [(group, group.rows, inner.of(group)) for group in groups]
    every = [each for each in every if each[1].ends[1] > 0]  # the others have no rows, for certain
    values = [
        one.value for group, rows, one in every if rows.value > 0 and id(group) in shown and one.value is not None
    ]
    sure, maybe = list[Ends](), list[Ends]()
    for group, rows, one in every:
        if one.value is not None or one.low is not None:
            some = rows.ends[0] > 0 or (function == "SUM" and isinstance(inner, Total))  # that of no rows is 0
            there = some and id(group) in chosen.sure and one.value is not None
            (sure if there else maybe).append(one.ends)
    if function == "COUNT":
        return Estimated(len(values), float(len(sure)), float(len(sure) + len(maybe)))
    if not values:
        return NULL_OR_ANY if sure or maybe else Estimated(None)
    if function == "SUM":
        total, whole = math.fsum(values), all(isinstance(value, int) for value in values)
        low = math.fsum([*(end[0] for end in sure), *(min(0.0, end[0]) for end in maybe)])
        high = math.fsum([*(end[1] for end in sure), *(max(0.0, end[1]) for end in maybe)])
        return Estimated(int(total) if whole else total, low, high)
    if function == "AVG":
        low = _least_average([end[0] for end in sure], [end[0] for end in maybe])
        high = -_least_average([-end[1] for end in sure], [-end[1] for end in maybe])
        return Estimated(math.fsum(values) / len(values), low, high)
    lows, highs = ([end[side] for end in [*sure, *maybe]] for side in (0, 1))
    if function == "MAX":
        return Estimated(max(values), max((end[0] for end in sure), default=min(lows)), max(highs))
    return Estimated(min(values), min(lows), min((end[1] for end in sure), default=max(highs)))


def _least_average(sure: Sequence[float], maybe: Sequence[float]) -> float:
    """Of all of the first and any of the others, at least one in all."""
    taken = [*sure, *sorted(maybe)]
    return min(math.fsum(taken[:many]) / many for many in range(max(1, len(sure)), len(taken) + 1))
