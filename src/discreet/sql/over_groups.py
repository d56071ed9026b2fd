"""What is made of several groups of an answer, after the noise: windows over the groups, and aggregates of them.

    SUM(COUNT(*)) OVER ()                          of all groups that are listed, each with its interval: the sum lies
    RANK() OVER (ORDER BY COUNT(*) DESC)           between the sums of the ends; a rank is 1 and as many as are surely
    LAG(SUM(x)) OVER (ORDER BY month)              before it, up to as many as may be
    SELECT AVG(n) FROM (SELECT a, COUNT(*) AS n FROM t GROUP BY a) q

SQL has no groups without rows, and which groups have none is private. A sum is the same with and without them. The
smallest, the number and the average of groups are not: their intervals allow each group that may be empty to be there
or not. So they do for groups that HAVING or WHERE chooses by a noisy number near the bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from discreet.query import Question
from discreet.sql.expressions import Estimated, Expression, Group, Members, sort_key

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
        return gathered(self.function, self.inner, group.peers.kept)


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

    def _all(self, members: Members) -> dict[int, Estimated]:
        """The value in each group, all at once."""
        apart: dict[Any, tuple[list[Group], list[Group]]] = {}
        for place, groups in enumerate((members.groups, members.perhaps)):
            for group in groups:
                apart.setdefault(tuple(each.of(group).value for each in self.parted), ([], []))[place].append(group)
        found = {
            id(group): one
            for alike, perhaps in apart.values()
            for group, one in self._within(Members(alike, members.doubted, perhaps))
        }
        if self.order and (members.doubted or members.perhaps):
            return {place: Estimated(one.value, -math.inf, math.inf) for place, one in found.items()}
        return found

    def _within(self, members: Members) -> list[tuple[Group, Estimated]]:
        ordered = list(members.groups)
        for expression, down, first in reversed(self.order):
            values = {id(group): expression.of(group).value for group in ordered}
            there = [group for group in ordered if values[id(group)] is not None]
            missing = [group for group in ordered if values[id(group)] is None]
            there.sort(key=lambda group: sort_key(values[id(group)]), reverse=down)
            ordered = [*missing, *there] if first else [*there, *missing]
        places = [tuple(each.of(group).value for each, _, _ in self.order) for group in ordered]
        if self.function in ("LAG", "LEAD"):
            step = -self.away if self.function == "LAG" else self.away
            near = [place + step for place in range(len(ordered))]
            return [
                (group, self.inner.of(ordered[at]) if 0 <= at < len(ordered) else Estimated(None))
                for group, at in zip(ordered, near, strict=True)
            ]
        if self.function in ("RANK", "DENSE_RANK", "ROW_NUMBER"):
            return [(group, self._rank(place, places, ordered)) for place, group in enumerate(ordered)]
        if not self.order:
            one = gathered(self.function, self.inner, members)
            return [(group, one) for group in ordered]
        last = {value: place for place, value in enumerate(places)}
        found = list[tuple[Group, Estimated]]()
        for at, group in enumerate(ordered):
            start, end = self.frame or (None, last[places[at]] - at)
            around = ordered[0 if start is None else max(0, at + start) : None if end is None else max(0, at + end + 1)]
            found.append((group, gathered(self.function, self.inner, Members(around))))
        return found

    def _rank(self, place: int, places: Sequence[Any], ordered: Sequence[Group]) -> Estimated:
        value = place + 1
        if self.function != "ROW_NUMBER":
            before = places[: places.index(places[place])]
            value = 1 + (len(set(before)) if self.function == "DENSE_RANK" else len(before))
        if not any(part.aggregate for each, _, _ in self.order for part in each.walk()):
            return Estimated.exactly(value)
        if len(self.order) > 1:
            return Estimated(value, 1.0, float(len(ordered)))
        ((expression, down, _),) = self.order
        mine, others = expression.of(ordered[place]), [each for each in ordered if each is not ordered[place]]
        ends = [_turned(expression.of(other), down) for other in others]
        low, high = _turned(mine, down)
        surely, maybe = sum(end[1] < low for end in ends), sum(end[0] <= high for end in ends)
        least = 1 + (min(1, surely) if self.function == "DENSE_RANK" else surely)
        return Estimated(value, float(min(least, value)), float(max(1 + maybe, value)))


@dataclass(frozen=True, slots=True)
class Different(Expression):
    """COUNT(DISTINCT x) of an expression with declared values: how many of them have rows.

    question  how many rows each value has, in each group     axis  of its values
    places    the values that are counted: not the missing one
    """

    aggregate: ClassVar[bool] = True
    question: Question
    axis: int
    places: tuple[int, ...]

    @property
    def questions(self) -> tuple[Question, ...]:
        return (self.question,)

    def of(self, group: Group) -> Estimated:
        found = group.along(self.question, self.axis)
        counts = [found[place] for place in self.places]
        surely = sum(value > error for value, error in counts)
        likely = sum(value > error / 2 for value, error in counts)
        return Estimated(likely, float(surely), float(sum(value + error >= 1 for value, error in counts)))


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


def gathered(function: str, inner: Expression, members: Members) -> Estimated:
    """An aggregate of what groups are estimated to be."""
    all_of_them = (*members.groups, *members.perhaps)
    every = [(group, one) for group in all_of_them if (one := inner.of(group)).value is not None]
    every = [(group, one) for group, one in every if group.rows.ends[1] > 0]  # the others have no rows, for certain
    others = {id(group) for group in members.perhaps}
    there = [group.rows.ends[0] > 0 and id(group) not in others | members.doubted for group, _ in every]
    surely, listed = sum(there), len(every)
    values = [one.value for group, one in every if id(group) not in others and group.rows.value > 0]
    if function == "COUNT":
        return Estimated(len(values), float(surely), float(listed))
    if not values:
        return Estimated(None)
    ends = [one.ends for _, one in every]
    certain = [end for end, sure in zip(ends, there, strict=True) if sure]
    least, most = min(end[0] for end in ends), max(end[1] for end in ends)
    # A group that may not be there adds something between nothing and its value.
    low = math.fsum(end[0] if sure else min(0.0, end[0]) for end, sure in zip(ends, there, strict=True))
    high = math.fsum(end[1] if sure else max(0.0, end[1]) for end, sure in zip(ends, there, strict=True))
    total, whole = math.fsum(values), all(isinstance(value, int) for value in values)
    if function == "SUM":
        return Estimated(int(total) if whole else total, low, high)
    if function == "AVG":
        corners = [end / number for end in (low, high) for number in (max(1, surely), listed)]
        return Estimated(total / len(values), max(min(corners), least), min(max(corners), most))
    if function == "MAX":
        return Estimated(max(values), max((end[0] for end in certain), default=least), most)
    return Estimated(min(values), least, min((end[1] for end in certain), default=most))
