"""What is made of released numbers, group by group: after the noise, free, each with an interval.

On the session's good event every number that was released is within its stated error of the truth. An `Estimated` is a
value with an interval in which the true value lies on that event; the rules below carry intervals through arithmetic
and through the aggregates that are made of sums:

    AVG    c + S / N                   S the sum of x - c, N the number of rows, c the middle of the declared interval
    VAR    Q / N - (S / N)^2           Q the sum of (x - c)^2; times N / (N - 1) for a sample
    COVAR  P / N - S T / N^2           P the sum of (x - c)(y - d); CORR is this over the roots of the two VARs

What is known besides cuts an interval: an average lies in the declared interval [a, b] of what is averaged, a variance
in [0, (b - a)^2 / 4] (Popoviciu), or twice that for a sample, a correlation in [-1, 1]. If N may be 0, that is all that
is known, and that is the interval; the estimate then divides by no less than the error of N, which moves it towards c.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Protocol

from discreet.query import Predicate, Question

OFF_CENTRE = Fraction(1, 4)
"""How far from the middle of its declared interval an average is taken to be, in halves of its length, when the price
is split between the sum and the count: what is declared is wider than what occurs, and an average lies well inside what
occurs. Only the split depends on it, no bound: with an average at the very end of the interval it is at most an
eighth larger than if both had the same noise in contributions of a row."""


@dataclass(frozen=True, slots=True)
class Estimated:
    """A value and where the true one lies; without ends for what is no number."""

    value: Any
    low: float | None = None
    high: float | None = None

    @staticmethod
    def exactly(value: Any) -> Estimated:
        number = isinstance(value, (int, float, Fraction)) and not isinstance(value, bool)
        return Estimated(value, float(value), float(value)) if number else Estimated(value)

    @property
    def ends(self) -> tuple[float, float]:
        """The interval; everything if nothing is known."""
        return (-math.inf if self.low is None else self.low, math.inf if self.high is None else self.high)


NULL_OR_ANY = Estimated(None, -math.inf, math.inf)
"""NULL by what was released; the true value may be any. Without ends it is NULL for certain."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Groups that satisfy a condition by what was released, those that may satisfy it in truth, and the numbers (`id`)
    of those that surely do."""

    shown: Sequence[Group] = ()
    possible: Sequence[Group] = ()
    sure: frozenset[int] = frozenset()

    def by(self, condition: Expression | None) -> Chosen:
        """Those of them that satisfy one more."""
        if condition is None:
            return self
        value = {id(group): condition.of(group).value is True for group in self.possible}
        known = {id(group) for group in self.possible if decided(condition, group)}
        return Chosen(
            [group for group in self.shown if value[id(group)]],
            [group for group in self.possible if value[id(group)] or id(group) not in known],
            frozenset(each for each in self.sure & known if value[each]),
        )


@dataclass(slots=True)
class Peers:
    """The groups of an answer: those that HAVING chooses, those that are shown, and what was found out about them."""

    listed: Chosen = Chosen()
    kept: Chosen = Chosen()
    found: dict[int, dict[int, Estimated]] = field(default_factory=dict)

    def forget(self) -> None:
        """Let go of the groups, which hold this: a circle would wait for the garbage collector."""
        self.listed = self.kept = Chosen()
        self.found = {}


class Group(Protocol):
    """One group of an answer: its labels, what was released about it, the other groups, how many rows it has, and
    how many any group has at most."""

    @property
    def labels(self) -> tuple[Any, ...]: ...
    @property
    def peers(self) -> Peers: ...
    @property
    def rows(self) -> Estimated: ...
    @property
    def most(self) -> float: ...
    def reading(self, question: Question) -> tuple[float, float]: ...
    def along(self, question: Question, axis: int) -> list[tuple[float, float]]: ...
    def drawn(self, quantile: QuantileOf) -> Estimated: ...


class Expression:
    """Something that has an estimate in every group."""

    __slots__ = ()
    aggregate: ClassVar[bool] = False

    @property
    def parts(self) -> tuple[Expression, ...]:
        return ()

    @property
    def questions(self) -> tuple[Question, ...]:
        """The linear queries that it is made of, without those of its parts."""
        return ()

    def stakes(self, largest: Callable[[Question], Fraction]) -> Mapping[Question, Fraction] | None:
        """How much an error of each of its questions counts, in units of the question, where that is known; largest:
        what a row adds to a question at most."""
        return None if self.questions else {}

    def of(self, group: Group) -> Estimated:
        raise NotImplementedError

    def walk(self) -> Iterator[Expression]:
        yield self
        for part in self.parts:
            yield from part.walk()


@dataclass(frozen=True, slots=True)
class Exactly(Expression):
    """A literal."""

    value: Any

    def of(self, group: Group) -> Estimated:
        return Estimated.exactly(self.value)


@dataclass(frozen=True, slots=True)
class KeyOf(Expression):
    """What a group is grouped by."""

    place: int

    @property
    def places(self) -> tuple[int, ...]:
        return (self.place,)

    def of(self, group: Group) -> Estimated:
        return Estimated.exactly(group.labels[self.place])


@dataclass(frozen=True, slots=True)
class Total(Expression):
    """A count or a sum, as it was released; ends: between which a sum of such rows lies, however many there are."""

    aggregate: ClassVar[bool] = True
    question: Question
    ends: tuple[float, float] = (-math.inf, math.inf)

    @property
    def questions(self) -> tuple[Question, ...]:
        return (self.question,)

    def stakes(self, largest: Callable[[Question], Fraction]) -> Mapping[Question, Fraction]:
        return {self.question: 1 / largest(self.question)}

    def of(self, group: Group) -> Estimated:
        value, error = group.reading(self.question)
        if self.question.counting:  # outside the good event what was released may be below 0
            value = max(0.0, value)
            return Estimated(round(value), max(0.0, value - error), max(min(value + error, group.most), value))
        return _within(value, value - error, value + error, self.ends)


@dataclass(frozen=True, slots=True)
class Moments:
    """The count, the centred sums of one or two values, their squares and their product, of the same rows.

    low, high  between which the values lie, and centre, which was taken off before they were summed
    """

    count: Question
    total: Question
    centre: Fraction
    low: Fraction
    high: Fraction
    square: Question | None = None

    def people(self, group: Group) -> tuple[float, float, float]:
        """The number of rows: estimate, least, most."""
        value, error = group.reading(self.count)
        return value, max(0.0, value - error), value + error

    def mean(self, group: Group) -> Estimated:
        """Of the values less their centre."""
        ends = float(self.low - self.centre), float(self.high - self.centre)
        return _quotient(group, self.total, self.people(group), ends)

    def spread(self, group: Group) -> Estimated:
        """The variance of the values, of a population."""
        assert self.square is not None
        mean = self.mean(group)
        most = max(float(self.low - self.centre) ** 2, float(self.high - self.centre) ** 2)
        squares = _quotient(group, self.square, self.people(group), (0.0, most))
        if mean.value is None or squares.value is None:
            return Estimated(None)
        least, largest = _squared(mean.ends)
        cap = float(self.high - self.low) ** 2 / 4
        low, high = squares.ends[0] - largest, squares.ends[1] - least
        return _within(squares.value - mean.value**2, low, high, (0.0, cap))


def _quotient(
    group: Group, question: Question, people: tuple[float, float, float], ends: tuple[float, float]
) -> Estimated:
    """A sum over the number of rows, between the ends of what is summed."""
    total, error = group.reading(question)
    count, least, most = people
    if most <= 0:
        return Estimated(None)  # nobody is there, for certain
    value = total / max(count, most - count, 1e-9)
    if least < 1:
        return _within(value, *ends, ends)
    return _hull(value, [(total + side * error) / number for side in (-1, 1) for number in (least, most)], ends)


def _within(value: float, low: float, high: float, ends: tuple[float, float]) -> Estimated:
    """A value and an interval cut to what is possible; outside the good event they may miss it, and an end is left."""
    low, high = (min(max(each, ends[0]), ends[1]) for each in (low, high))
    return Estimated(min(max(value, low), high), low, high)


def _hull(value: float, corners: Sequence[float], ends: tuple[float, float]) -> Estimated:
    """A value and the interval of all these corners, cut to what is possible."""
    return _within(value, min(corners), max(corners), ends)


def sum_ends(low: Fraction, high: Fraction) -> tuple[float, float]:
    """Between which a sum of any number of values from low to high lies."""
    return (0.0 if low >= 0 else -math.inf, 0.0 if high <= 0 else math.inf)


def _squared(ends: tuple[float, float]) -> tuple[float, float]:
    squares = (ends[0] ** 2, ends[1] ** 2)
    return (0.0 if ends[0] < 0 < ends[1] else min(squares)), max(squares)


@dataclass(frozen=True, slots=True)
class OfMoments(Expression):
    """What is made of the number of rows and of the sum of a value."""

    aggregate: ClassVar[bool] = True
    moments: Moments

    @property
    def questions(self) -> tuple[Question, ...]:
        return (self.moments.count, self.moments.total)


@dataclass(frozen=True, slots=True)
class MeanOf(OfMoments):
    """AVG."""

    def stakes(self, largest: Callable[[Question], Fraction]) -> Mapping[Question, Fraction] | None:
        """Off by (error of S + |S / N| error of N) / N: see OFF_CENTRE."""
        half = (self.moments.high - self.moments.low) / 2
        return {self.moments.count: OFF_CENTRE, self.moments.total: 1 / half} if half else None

    def of(self, group: Group) -> Estimated:
        return _moved(self.moments.mean(group), float(self.moments.centre))


def _moved(found: Estimated, by: float) -> Estimated:
    if found.value is None:
        return found
    return Estimated(found.value + by, found.ends[0] + by, found.ends[1] + by)


@dataclass(frozen=True, slots=True)
class SumFromMean(OfMoments):
    """SUM, where the centred sum and the count are needed for something else anyway."""

    def of(self, group: Group) -> Estimated:
        total, error = group.reading(self.moments.total)
        count, least, most = self.moments.people(group)
        centre = float(self.moments.centre)
        ends = sorted((centre * least, centre * most))
        sums = sum_ends(self.moments.low, self.moments.high)
        return _within(total + centre * count, total - error + ends[0], total + error + ends[1], sums)


@dataclass(frozen=True, slots=True)
class Spread(OfMoments):
    """VAR_POP, VAR_SAMP and their roots."""

    sample: bool
    root: bool

    @property
    def questions(self) -> tuple[Question, ...]:
        assert self.moments.square is not None
        return (self.moments.count, self.moments.total, self.moments.square)

    def of(self, group: Group) -> Estimated:
        found = self.moments.spread(group)
        if self.sample:
            cap = float(self.moments.high - self.moments.low) ** 2 / 2
            found = _of_sample(found, self.moments.people(group), (0.0, cap))
        if not self.root or found.value is None:
            return found
        return Estimated(math.sqrt(found.value), *map(math.sqrt, found.ends))


def _of_sample(found: Estimated, people: tuple[float, float, float], ends: tuple[float, float]) -> Estimated:
    """A moment of a population as that of a sample: times N / (N - 1)."""
    count, least, most = people
    if found.value is None or most < 2:
        return Estimated(None)
    value = found.value * max(count, 2.0) / (max(count, 2.0) - 1)
    if least < 2:
        return _within(value, *ends, ends)
    return _hull(value, [end * number / (number - 1) for end in found.ends for number in (least, most)], ends)


@dataclass(frozen=True, slots=True)
class Comoment(Expression):
    """COVAR_POP, COVAR_SAMP and CORR of two values over the rows that have both."""

    aggregate: ClassVar[bool] = True
    one: Moments
    other: Moments
    product: Question
    kind: str

    @property
    def questions(self) -> tuple[Question, ...]:
        sums = (self.one.count, self.one.total, self.other.total, self.product)
        squares = tuple(each.square for each in (self.one, self.other) if each.square is not None)
        return (*sums, *squares) if self.kind == "CORR" else sums

    def of(self, group: Group) -> Estimated:
        people, found = self.one.people(group), self._covariance(group)
        if found.value is None or self.kind == "COVAR_POP":
            return found
        if self.kind == "COVAR_SAMP":
            cap = 2 * self._cap
            return _of_sample(found, people, (-cap, cap))
        spreads = [each.spread(group) for each in (self.one, self.other)]
        roots = [math.sqrt(max(0.0, each.value or 0.0)) for each in spreads]
        if not math.prod(roots):
            return Estimated(None) if not all(each.ends[1] for each in spreads) else Estimated(0.0, -1.0, 1.0)
        value = found.value / math.prod(roots)
        least = math.prod(math.sqrt(each.ends[0]) for each in spreads)
        most = math.prod(math.sqrt(each.ends[1]) for each in spreads)
        if least <= 0:
            return _within(value, -1.0, 1.0, (-1.0, 1.0))
        return _hull(value, [end / root for end in found.ends for root in (least, most)], (-1.0, 1.0))

    @property
    def _cap(self) -> float:
        return float((self.one.high - self.one.low) * (self.other.high - self.other.low)) / 4

    def _covariance(self, group: Group) -> Estimated:
        one, other = self.one.mean(group), self.other.mean(group)
        sides = [[float(end - each.centre) for end in (each.low, each.high)] for each in (self.one, self.other)]
        corners = [left * right for left in sides[0] for right in sides[1]]
        products = _quotient(group, self.product, self.one.people(group), (min(corners), max(corners)))
        if None in (one.value, other.value, products.value):
            return Estimated(None)
        means = [left * right for left in one.ends for right in other.ends]
        low, high = products.ends[0] - max(means), products.ends[1] - min(means)
        return _within(products.value - one.value * other.value, low, high, (-self._cap, self._cap))


@dataclass(frozen=True, slots=True)
class QuantileOf(Expression):
    """A quantile of a column in every group, of the rows that satisfy a predicate."""

    aggregate: ClassVar[bool] = True
    column: str
    probability: Fraction
    where: Predicate

    def of(self, group: Group) -> Estimated:
        return group.drawn(self)


# Arithmetic and conditions of estimates.


@dataclass(frozen=True, slots=True)
class Arithmetic(Expression):
    """left sign right; a part over its whole is between 0 and `most`, whatever the noise."""

    sign: str
    left: Expression
    right: Expression
    most: Fraction | None = None

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.left, self.right)

    def of(self, group: Group) -> Estimated:
        left, right = self.left.of(group), self.right.of(group)
        if left.value is None or right.value is None:
            return _null_of(left, right)
        if str in (type(left.value), type(right.value)):  # which Python would repeat or format
            raise TypeError("arithmetic is of numbers")
        if self.sign in ("/", "//", "%") and right.value == 0:
            return Estimated(None) if right.ends == (0, 0) else NULL_OR_ANY
        value = _SIGNS[self.sign](left.value, right.value)
        low, high = _ends(self.sign, left.ends, right.ends)
        if self.most is not None:
            ends = sorted((0.0, float(self.most)))
            return _within(float(value), low, high, (ends[0], ends[1]))
        return Estimated(value, low, high)


def _exact_quotient(left: Any, right: Any) -> Any:
    exact = isinstance(left, (int, Fraction)) and isinstance(right, (int, Fraction))
    return Fraction(left) / Fraction(right) if exact else float(left) / float(right)


def _float_or(left: Any, right: Any, operate: Callable[[Any, Any], Any]) -> Any:
    if isinstance(left, float) or isinstance(right, float):
        return operate(float(left), float(right))
    return operate(left, right)


_SIGNS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": lambda left, right: _float_or(left, right, lambda a, b: a + b),
    "-": lambda left, right: _float_or(left, right, lambda a, b: a - b),
    "*": lambda left, right: _float_or(left, right, lambda a, b: a * b),
    "/": _exact_quotient,
    "//": lambda left, right: math.trunc(_exact_quotient(left, right)),
    "%": lambda left, right: left - right * math.trunc(_exact_quotient(left, right)),
}


def _ends(sign: str, left: tuple[float, float], right: tuple[float, float]) -> tuple[float, float]:
    if sign == "+":
        return left[0] + right[0], left[1] + right[1]
    if sign == "-":
        return left[0] - right[1], left[1] - right[0]
    if sign == "/" and not right[0] <= 0 <= right[1]:
        right = 1 / right[1], 1 / right[0]
    elif sign != "*":
        return -math.inf, math.inf
    corners = [0.0 if 0.0 in (one, other) else one * other for one in left for other in right]
    return min(corners), max(corners)


@dataclass(frozen=True, slots=True)
class Rising(Expression):
    """A function that never falls: its interval is that of its ends."""

    function: Callable[[Any], Any]
    inner: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.inner,)

    def of(self, group: Group) -> Estimated:
        found = self.inner.of(group)
        if found.value is None:
            return found
        value = self.function(found.value)
        if value is None:
            return Estimated(None) if found.low == found.high else NULL_OR_ANY
        ends = [each if math.isinf(each) else self.function(each) for each in found.ends]
        return Estimated(value, *(-math.inf if each is None else float(each) for each in ends))


@dataclass(frozen=True, slots=True)
class Made(Expression):
    """A function of several estimates.

    results  what it chooses its value from: its interval is all of theirs together
    span     or the interval, from those of `given`
    truth    it is a condition: `decided` says whether it is certain, by the `kind` of it
    """

    function: Callable[..., Any]
    given: tuple[Expression, ...]
    results: tuple[Expression, ...] = ()
    truth: bool = False
    kind: str = ""
    span: Callable[..., tuple[float, float]] | None = None

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.given

    def of(self, group: Group) -> Estimated:
        given = [part.of(group) for part in self.given]
        value = self.function(*(each.value for each in given))
        if self.truth:
            return Estimated(value)
        if value is None:
            return Estimated(None) if all(each.low == each.high for each in given) else NULL_OR_ANY
        if self.span is not None:
            return Estimated(value, *self.span(*(each.ends for each in given)))
        found = [part.of(group) for part in self.results]
        numbers = [each.ends for each in found if each.low is not None]
        plain = isinstance(value, str) and any(isinstance(each.value, str) and each.low is None for each in found)
        if plain or not numbers:
            return Estimated.exactly(value)
        return Estimated(value, min(low for low, _ in numbers), max(high for _, high in numbers))


def _null_of(*found: Estimated) -> Estimated:
    """NULL for certain if one of these is."""
    return Estimated(None) if any(each.value is None and each.low is None for each in found) else NULL_OR_ANY


def decided(condition: Expression, group: Group) -> bool:
    """Whether a condition has the value that it is estimated to have, wherever in their intervals its parts are."""
    found = [part.of(group) for part in condition.parts]
    if not isinstance(condition, Made) or condition.kind in ("and", "or", "not"):
        known = [part for part in condition.parts if decided(part, group)]
        ends = {"and": False, "or": True}.get(getattr(condition, "kind", ""))
        return len(known) == len(found) or any(part.of(group).value is ends for part in known)
    if all(each.low == each.high for each in found):
        return True
    if any(each.value is None or isinstance(each.value, str) for each in found):
        return False
    (low, high), *others = (each.ends for each in found)
    match condition.kind, others:
        case "between", [(_, below), (above, _)] if below <= low and high <= above:
            return True
        case "between", [(below, _), (_, above)]:
            return high < below or low > above
        case "=" | "<>" | "<=" | ">", [(least, most)] if high < least or low > most:
            return True
        case "<=" | ">", [(least, most)]:
            return high <= least
        case "<" | ">=", [(least, most)]:
            return high < least or low >= most
    return False


def absolute(ends: tuple[float, float]) -> tuple[float, float]:
    """Where |x| lies."""
    sizes = sorted(map(abs, ends))
    return (0.0 if ends[0] <= 0 <= ends[1] else sizes[0]), sizes[1]


def power(base: Any, exponent: Any) -> float | None:
    """NULL where there is no such number, or none that floats hold."""
    try:
        found = float(base) ** float(exponent)
    except (OverflowError, ZeroDivisionError):
        return None
    return None if isinstance(found, complex) else found


def power_span(base: tuple[float, float], exponent: tuple[float, float]) -> tuple[float, float]:
    """Where x^y lies: between its values at the corners, if x is not negative or y is a whole number that is not."""
    least, most = exponent
    whole = least == most >= 0 and math.isfinite(least) and least == int(least)
    corners = [power(x, y) for x in base for y in exponent]
    if not (whole or base[0] > 0 or (base[0] == 0 <= least)) or None in corners or any(map(math.isinf, base)):
        return -math.inf, math.inf
    known = [each for each in corners if each is not None]
    through = [0.0] if whole and most and base[0] < 0 < base[1] else []
    return min(known + through), max(known + through)


def sort_key(value: Any) -> tuple[int, Any]:
    """Values in an order: numbers, then dates, then texts."""
    if isinstance(value, datetime.date):
        return 1, value.isoformat()
    return (0, value) if isinstance(value, (bool, int, float, Fraction)) else (2, str(value))
