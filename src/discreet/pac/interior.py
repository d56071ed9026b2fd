"""The interior point problem (lecture 12): release a point between the smallest and the largest value of a column.

    InteriorPoint(column, routine)   the mechanism
    methods(...)                     every routine for a budget, with the number of values for which it succeeds

A *routine* releases one point of the domain 0 .. size - 1 from a sorted list of values in it. It is a frozen value that
says what a release costs (`guarantee`), how it is drawn (`point`) and for how many values it succeeds (`needed`):

    MinRank(rate)         the exponential mechanism; pure; needs about 2 ln(size) / epsilon values, twice that under
                          replace-one
    BinarySearch(noise)   log2(size) noisy comparisons; with Gaussian noise it needs about the root of log2(size)
    PrefixSearch          binary prefixes: the number of digits by the exponential mechanism on 0 .. L for codes of L
                          digits; needs about ln(L) / epsilon more values, so that the domain hardly matters
    PairPrefix            the number of digits by an interior point of how many digits random pairs of values share: a
                          domain of L + 1 points instead of 2^L, whose routine may be a PairPrefix again: the lecture's
                          log*

Success means that the point is neither below all values nor above all of them. Every price counts a person's k rows as
k values of the list, and the price under replace-one covers values that appear or disappear too.

A size is an integer of any length, or `TwoTo(bits)` for 2^bits points where that integer cannot be written: for plans,
no data can hold such values.

The prefix routines share their epsilon and their beta among their steps: `PrefixSplit` and `PairSplit`, the best of a
small grid. A split is chosen once, for a domain, a total epsilon and a beta; then `routine(noise)` is the routine whose
steps' pure epsilons add up to 1 / noise and whose failure is at most `failure`: one knob, for `calibrate`. Shares are
whole 40ths. They are public, and decide how many values are needed, never what is promised about privacy: a routine's
price is computed from the routine alone. Proofs: docs/proofs/interior_point.md.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from discreet.core import FAILING, Exact, Funds, ParameterError, exact
from discreet.data import MAX_ROWS, Dataset, Facts, Ints, Needs, Whole
from discreet.mechanisms import (
    GaussianNoise,
    Guarantee,
    LaplaceNoise,
    Neighbours,
    Rng,
    Sensitivity,
    calibrate,
    checked_rate,
    checked_scale,
    of_persons,
    stable,
    wrong_rows,
)
from discreet.method import Method, Methods
from discreet.pac.rules import Ordered, ordered, sorted_column

Values = npt.NDArray[Any]
"""Sorted integers: int64, or Python integers as objects."""

USUAL = ("exponential", "binary-search", "prefix")
"""What is chosen among by default: pair-prefix pays only on domains whose elements are too long to be written down."""

NOWHERE = 0
"""The point that is released when no prefix passes: a constant, so that it says nothing more."""

_counted = functools.partial(exact.whole, 0)
_MOST_COMPARISONS = 2**40
_HALF_WORD = 31
_LARGEST = 2**62
_WHOLE = 40
_MOVES = (4, 2, 1)
_LEAST_FAILURE = Fraction(1, 10**200)


@dataclass(frozen=True, slots=True)
class TwoTo:
    """2^bits points."""

    bits: int

    def __post_init__(self) -> None:
        exact.convert(self, bits=_counted)


Size = int | TwoTo


def code_bits(size: Size) -> int:
    """How many binary digits the points 0 .. size - 1 need: ceil(log2(size))."""
    if isinstance(size, TwoTo):
        return size.bits
    if not isinstance(size, int) or size < 1:
        raise ParameterError(f"size must be a whole number >= 1 or TwoTo(bits), found {size!r}")
    return (size - 1).bit_length()


def log_size(size: Size) -> Fraction:
    """ln(size), to within 1e-12 of itself; a fraction, because it may be beyond all floats."""
    return code_bits(size) * Fraction(math.log(2)) if isinstance(size, TwoTo) else Fraction(math.log(size))


@runtime_checkable
class Routine(Protocol):
    """One way to find an interior point; see the module's docstring.

    guarantee  the price of one release from any list of values of this domain
    point      the release, from any sorted list, also an empty one
    needed     from so many values on, the point is interior with probability 1 - beta
    """

    def guarantee(self, neighbours: Neighbours, size: Size) -> Guarantee: ...
    def point(self, values: Values, size: int, rng: Rng) -> int: ...
    def needed(self, size: Size, beta: float) -> int: ...


def checked_routine(routine: Routine) -> Routine:
    """The routine, if it is one."""
    if not isinstance(routine, Routine):
        raise ParameterError(f"routine must be one such as MinRank, found {routine!r}")
    return routine


def moved(neighbours: Neighbours) -> Sensitivity:
    """How far one person moves a rank, or a difference of two: a row's addition by 1, its replacement by 2."""
    one, two = (Sensitivity(l1=step, l2_squared=step**2, linf=step, range=step) for step in (1, 2))
    return of_persons(neighbours, added=one, replaced=two)


@dataclass(frozen=True, slots=True)
class MinRank:
    """Release p with probability proportional to exp(rate * min(#{x <= p}, #{x >= p})).

    Theorem.   Adding a value raises the score of every point by 0 or 1, replacing one moves it by at most 1. So with
               r = 1 (add-remove) or 2 (replace-one), k times that for a person of k rows, the release has bounded range
               rate * r: (rate * r)-DP and ((rate * r)^2 / 8)-zCDP.
    Accuracy.  A median of n values has score at least n/2, a point outside has 0: P[outside] <= (size - 1) exp(-rate
               ceil(n/2)).
    Edges.     No values: uniform on the domain. Points between two neighbouring values are one run of equal score; a
               run is drawn by its weight, then a point of it uniformly, so only the values are looked at.
    Reference. Lecture 12; [MT07]; docs/proofs/interior_point.md.
    """

    NAME: ClassVar[str] = "min-rank/1"
    rate: Fraction

    def __post_init__(self) -> None:
        exact.convert(self, rate=exact.positive)

    def guarantee(self, neighbours: Neighbours, size: Size) -> Guarantee:
        checked_rate(self.rate * MAX_ROWS)
        return Guarantee.of_bounded_range(checked_rate(self.rate) * moved(neighbours).range, neighbours=neighbours)

    def point(self, values: Values, size: int, rng: Rng) -> int:
        starts, lengths, scores = score_runs(values, size)
        run = rng.select(scores, self.rate, lengths)
        return int(starts[run]) + rng.integers(int(lengths[run]))

    def needed(self, size: Size, beta: float) -> int:
        return max(1, 2 * math.ceil((log_size(size) - Fraction(math.log(beta))) / self.rate) - 1)


def score_runs(values: Values, size: int) -> tuple[Values, Values, npt.NDArray[np.int64]]:
    """Where the runs of equal score start, how long they are (never 0), and their scores."""
    count, new = len(values), np.ones(len(values), dtype=bool)
    new[1:] = values[1:] != values[:-1]
    first = np.flatnonzero(new)  # the places at which a value stands for the first time
    distinct, before, upto = values[first], first, np.append(first[1:], count)[: len(first)]
    big = values.dtype == object or size > 2**62
    starts: Values = np.zeros(2 * len(first) + 1, dtype=object if big else np.int64)  # gap, value, gap, value, ..., gap
    ends, scores = starts.copy(), np.zeros(len(starts), dtype=np.int64)
    ends[-1] = size
    starts[1::2], ends[1::2] = distinct, distinct + 1
    starts[2::2], ends[:-1:2] = distinct + 1, distinct
    scores[1::2] = np.minimum(upto, count - before)
    scores[2::2] = np.minimum(upto, count - upto)
    kept = np.flatnonzero(ends > starts)
    return starts[kept], (ends - starts)[kept], scores[kept]


@dataclass(frozen=True, slots=True)
class BinarySearch:
    """Search for the least p with #{x <= p} >= #{x > p}, digit by digit, each time with fresh noise on the difference.

    Theorem.   A value's addition moves #{x <= p} - #{x > p} by 1, its replacement by at most 2, k rows of a person k
               times as much. There are ceil(log2(size)) comparisons, and each costs what its noise does.
    Accuracy.  A comparison left of all values, or from the largest on, errs only if its noise reaches n: P[outside] <=
               ceil(log2(size)) P[noise >= n].
    Edges.     A size that is no power of 2 is searched as the next one; a point beyond the last is the last. All
               noises are drawn before the search.
    Reference. Lecture 12; docs/proofs/interior_point.md.
    """

    NAME: ClassVar[str] = "binary-search/1"
    noise: GaussianNoise | LaplaceNoise

    def __post_init__(self) -> None:
        if not isinstance(self.noise, (GaussianNoise, LaplaceNoise)):
            raise ParameterError(f"noise must be a GaussianNoise or a LaplaceNoise, found {self.noise!r}")

    def guarantee(self, neighbours: Neighbours, size: Size) -> Guarantee:
        once = self.noise.guarantee(moved(neighbours), unit=Fraction(1), dimension=1, neighbours=neighbours)
        return once * code_bits(size)

    def point(self, values: Values, size: int, rng: Rng) -> int:
        bits = code_bits(size)
        noises = self.noise.draw((bits,), unit=Fraction(1), rng=rng).tolist()
        digits, here = bytearray(bits), _SearchRange.of(values, 0, len(values), bits)
        for depth, noise in enumerate(noises):
            split = here.split(values, depth, bits)
            right = 2 * split - len(values) + noise < 0
            digits[depth] = right
            start, stop = (split, here.stop) if right else (here.start, split)
            if (start, stop) != (here.start, here.stop):
                here = _SearchRange.of(values, start, stop, bits)
        packed = np.packbits(np.frombuffer(digits, dtype=np.uint8)).tobytes()
        return min(int.from_bytes(packed, "big") >> (-bits % 8), size - 1)

    def needed(self, size: Size, beta: float) -> int:
        comparisons = max(1, code_bits(size))
        return self.noise.reach(math.log(beta) - math.log(comparisons))


@dataclass(frozen=True, slots=True)
class _SearchRange:
    """The values at places start .. stop: their common `digits`, as many as they share. Each step of a search is quick
    however long the values are, for they are only looked at when the group changes."""

    start: int
    stop: int
    digits: bytes

    @staticmethod
    def of(values: Values, start: int, stop: int, bits: int) -> _SearchRange:
        """Digits are binary, the most significant first, one in each byte."""
        if start == stop:
            return _SearchRange(start, stop, b"")
        first, last, length = int(values[start]), int(values[stop - 1]), -(-bits // 8)
        packed = np.frombuffer(first.to_bytes(length, "big"), dtype=np.uint8)
        digits = np.unpackbits(packed)[8 * length - bits :].tobytes()
        return _SearchRange(start, stop, digits[: bits - (first ^ last).bit_length()])

    def split(self, values: Values, depth: int, bits: int) -> int:
        """The place of the first value of the group whose next digit is 1; the group shares `depth` digits."""
        if self.start == self.stop:
            return self.start
        if depth < len(self.digits):
            return self.start if self.digits[depth] else self.stop
        rest = bits - depth - 1
        return bisect_left(values, int(values[self.stop - 1]) >> rest << rest, self.start, self.stop)


# Prefixes.


@dataclass(frozen=True, slots=True)
class SearchSteps:
    """What is decided on the way to the point; the price covers all of it.

    shared  the number of digits that the first step chose
    prefix  the prefix of one digit more (at most L); None if none passed
    right   whether its last code was taken; None if there was nothing to decide
    """

    shared: int
    prefix: int | None
    right: bool | None
    point: int


@dataclass(frozen=True, slots=True)
class Ending:
    """The fullest prefix of a length, then the end of it beyond which more values lie.

    Theorem.   The prefix costs what a stable histogram of this scale and bound does. The end is decided by u - v plus
               discrete Laplace noise, u values being above and v below the prefix: a value's addition moves u - v by
               at most 1, its replacement by 2, k rows of a person k times that.
    """

    scale: Fraction
    bound: int
    side_scale: Fraction

    def guarantee(self, neighbours: Neighbours) -> Guarantee:
        prefix = stable.price(self.scale, self.bound, neighbours)
        width = checked_scale(self.side_scale)
        return prefix + Guarantee.of_laplace(moved(neighbours).l1, scale=width, neighbours=neighbours)

    def transcript(self, values: Values, apart: Ints, shared: int, size: int, rng: Rng) -> SearchSteps:
        """`apart` are the `digits_apart` of neighbours in the list."""
        bits = code_bits(size)
        dropped = bits - min(shared + 1, bits)
        places = self.fullest(apart, len(values), dropped, rng)
        if places is None:
            return SearchSteps(shared, None, None, NOWHERE)
        start, stop = places
        prefix = int(values[start]) >> dropped
        if dropped == 0:
            return SearchSteps(shared, prefix, None, prefix)
        right = self.side(len(values) - stop - start, rng)
        end = ((prefix + 1) << dropped) - 1 if right else prefix << dropped
        return SearchSteps(shared, prefix, right, min(end, size - 1))

    def fullest(self, apart: Ints, count: int, dropped: int, rng: Rng) -> tuple[int, int] | None:
        """The places start .. stop of the values with the fullest prefix, of those that pass.

        Prefixes are codes without their last `dropped` digits. Equal noisy counts are decided by the prefix.
        """
        starts = np.append(np.zeros(min(count, 1), dtype=np.int64), np.flatnonzero(apart > dropped) + 1)
        stops = np.append(starts[1:], count)[: len(starts)]
        passed, noisy = stable.passing(stops - starts, self.scale, self.bound, rng)
        if len(passed) == 0:
            return None
        place = passed[np.argmax(noisy)]
        return int(starts[place]), int(stops[place])

    def side(self, above_less_below: int, rng: Rng) -> bool:
        return above_less_below + rng.laplace(self.side_scale) >= 0

    def missed(self, count: int) -> float:
        """At most with this probability no prefix passes, if one of them holds this many values."""
        margin = count - self.bound - 1
        return 1.0 if margin < 0 else stable.missed_mass(self.scale, self.bound, margin)

    def wrong(self, outside: int) -> float:
        """At most with this probability the end is not interior, if this many values do not have the prefix."""
        return LaplaceNoise(self.side_scale).tail(outside)


class _Prefixes(ABC):
    """What the two prefix routines share: the last two steps, and the way to the point."""

    __slots__ = ()
    scale: Fraction
    bound: int
    side_scale: Fraction

    def _check_end(self) -> None:
        """The parameters of the last two steps."""
        if exact.whole(bound=self.bound) > _LARGEST:
            raise ParameterError(f"bound must be at most 2**62, found {self.bound!r}")
        exact.convert(self, scale=exact.positive, side_scale=exact.positive)

    @property
    def ending(self) -> Ending:
        return Ending(self.scale, self.bound, self.side_scale)

    def point(self, values: Values, size: int, rng: Rng) -> int:
        return self.transcript(values, size, rng).point

    def transcript(self, values: Values, size: int, rng: Rng) -> SearchSteps:
        shared = self.shared(values, size, rng)
        return self.ending.transcript(values, digits_apart(values[:-1], values[1:]), shared, size, rng)

    @abstractmethod
    def shared(self, values: Values, size: int, rng: Rng) -> int:
        """Step 1: the number of digits."""


@dataclass(frozen=True, slots=True)
class PrefixSearch(_Prefixes):
    """An interior point in three steps, of L digits.

    1. A number of digits z in 0 .. L, with probability proportional to exp(rate * min(h(z) - heavy, n - h(z+1) -
       light)), where h(z) is how many values the fullest prefix of z digits holds, and h(L+1) = 0.
    2. The fullest prefix of min(z + 1, L) digits whose count plus truncated Laplace noise exceeds `bound`; the constant
       NOWHERE if none does. A prefix of L digits is a value, and released.
    3. The last or the first code with this prefix, as more values lie above or below it, up to Laplace noise.

    Theorem.   Adding a value raises every score by 0 or 1, replacing one moves it by at most 1: with r = 1 (add-remove)
               or 2 (replace-one), k times that for k rows, the first step has bounded range rate * r. The others cost
               what `Ending` says. heavy and light are public numbers: n may be private.
    Accuracy.  Let t >= 0 be an integer and n >= heavy + light + 2 (t + s) - 1. With probability 1 - L exp(-rate (t+1))
               the score is at least s; then some prefix of step 2 holds (heavy + s) / 2 values, light + s do not have
               the one that is chosen, and steps 2 and 3 fail only by their noise.
    Edges.     No values: NOWHERE. A size that is no power of 2: codes have ceil(log2(size)) digits.
    Reference. One level of [BNSV15] without pairing; docs/proofs/interior_point.md.
    """

    NAME: ClassVar[str] = "prefix-search/1"
    rate: Fraction
    scale: Fraction
    bound: int
    side_scale: Fraction
    heavy: int
    light: int

    def __post_init__(self) -> None:
        if max(_counted(heavy=self.heavy), _counted(light=self.light)) > _LARGEST:
            raise ParameterError("heavy and light must be at most 2**62")
        self._check_end()
        exact.convert(self, rate=exact.positive)

    def guarantee(self, neighbours: Neighbours, size: Size) -> Guarantee:
        checked_rate(self.rate * (MAX_ROWS + self.heavy + self.light))
        span = checked_rate(self.rate) * moved(neighbours).range
        return Guarantee.of_bounded_range(span, neighbours=neighbours) + self.ending.guarantee(neighbours)

    def shared(self, values: Values, size: int, rng: Rng) -> int:
        count = len(values)
        most = heaviest(digits_apart(values[:-1], values[1:]), count, code_bits(size))
        return rng.select(np.minimum(most[:-1] - self.heavy, count - most[1:] - self.light), self.rate)

    def needed(self, size: Size, beta: float) -> int:
        log_lengths, best, spare = math.log(max(1, code_bits(size))), _LARGEST, 0
        while 2 * spare < best:
            best, spare = min(best, self._needed(log_lengths, beta, spare)), max(1, 2 * spare)
        return best

    def _needed(self, log_lengths: float, beta: float, spare: int) -> int:
        """The size if the first step is to leave a score of `spare`; a large number if that is not enough."""
        left = beta - self.ending.missed(-(-(self.heavy + spare) // 2)) - self.ending.wrong(self.light + spare)
        if left <= 0:
            return _LARGEST
        wanted = max(0, math.ceil(Fraction(log_lengths - math.log(left)) / self.rate) - 1)
        return self.heavy + self.light + 2 * (wanted + spare) - 1


@dataclass(frozen=True, slots=True)
class PairPrefix(_Prefixes):
    """An interior point whose number of digits comes from random pairs of values.

    1. The values are paired at random, one may be left over. z_1, z_2, ... are the numbers of digits that the pairs
       share. Without the `top` largest and the `bottom` smallest of them, `inner` finds an interior point z of them, in
       the domain 0 .. L.
    2., 3. as in PrefixSearch, with all values.

    Theorem.   A value's addition, removal or replacement changes the list of the z_j, for one matching coupled with
               another of the same law, by at most one addition, removal or *replacement*. So the first step costs what
               `inner` does under replace-one, also when the relation is add-remove; k rows of a person, k of them.
    Accuracy.  With Cb = bound + 1 + x values a prefix passes but with probability b2, a = top + 1, m = Cb - 1: with
               s = a - m > 0, at least a pairs share more digits than a prefix of 2 Cb values has with probability at
               most m^s (a-s)!/a! * prod_(i<s) (1 + 1/(n-2i-1)). Else the inner success makes steps 2 and 3 succeed as
               in PrefixSearch, with bottom + 1 values outside the prefix. n = 2 (inner's n + top + bottom).
    Edges.     As for PrefixSearch. The matching is drawn anew and never shown.
    Reference. The pairing of [BNSV15]; constants and proof: docs/proofs/interior_point.md.
    """

    NAME: ClassVar[str] = "pair-prefix/1"
    inner: Routine
    top: int
    bottom: int
    scale: Fraction
    bound: int
    side_scale: Fraction

    def __post_init__(self) -> None:
        self._check_end()
        checked_routine(self.inner)
        exact.convert(self, top=_counted, bottom=_counted)

    def guarantee(self, neighbours: Neighbours, size: Size) -> Guarantee:
        replaced = self.inner.guarantee(Neighbours("replace-one", neighbours.rows), code_bits(size) + 1)
        return replace(replaced, neighbours=neighbours) + self.ending.guarantee(neighbours)

    def shared(self, values: Values, size: int, rng: Rng) -> int:
        bits, pairs = code_bits(size), len(values) // 2
        order = rng.permutation(len(values))[: 2 * pairs]
        agreeing = np.sort(bits - digits_apart(values[order[::2]], values[order[1::2]]))
        return self.inner.point(agreeing[self.bottom : max(pairs - self.top, self.bottom)], bits + 1, rng)

    def needed(self, size: Size, beta: float) -> int:
        """ParameterError if this beta cannot be promised with these trims, however many the values."""
        left = beta - self.ending.wrong(self.bottom + 1)
        parts = [left * part / 8 for part in range(1, 8)]
        sizes = [enough for part in parts if (enough := self._needed(size, left - part, part)) is not None]
        if not sizes:
            raise ParameterError(f"these trims do not promise success with probability {1 - beta:g}: trim more")
        return min(sizes)

    def _needed(self, size: Size, left: float, missed: float) -> int | None:
        """The size if the prefix may be missed with probability `missed`, and everything else but its end fail with
        `left`; None if that is too little."""
        if missed <= 0:
            return None
        enough = stable.certain_count(self.scale, self.bound, missed)
        least = self.inner.needed(code_bits(size) + 1, left)
        crowded = crowded_pairs(self.top + 1, enough - 1, 2 * (least + self.top + self.bottom))
        if crowded >= left:
            return None
        return 2 * (self.inner.needed(code_bits(size) + 1, left - crowded) + self.top + self.bottom)


def crowded_pairs(pairs: int, others: int, size: int) -> float:
    """A bound on the probability that this number of pairs of a random matching of at least `size` values lie within
    groups of at most 2 * others + 1 values: see PairPrefix."""
    chosen, half = pairs - others, size / 2
    if chosen <= 0:
        return 1.0
    if others <= 0:
        return 0.0
    factorials = math.lgamma(others + 1) - math.lgamma(pairs + 1)
    # ln of the product over i < chosen of (n - 2i) / (n - 2i - 1), n = size >= 2 * chosen
    upper = math.lgamma(half + 1) - math.lgamma(half - chosen + 1)
    rise = upper - math.lgamma(half + 0.5) + math.lgamma(half + 0.5 - chosen)
    return math.exp(min(0.0, chosen * math.log(others) + factorials + rise))


def digits_apart(left: Values, right: Values) -> Ints:
    """Without how many of their last digits two codes are equal, elementwise."""
    if left.dtype == object or right.dtype == object:
        return np.array([(int(a) ^ int(b)).bit_length() for a, b in zip(left, right, strict=True)], dtype=np.int64)
    both = left ^ right  # below 2^62; floats hold 53 binary digits
    upper, lower = both >> _HALF_WORD, both & (2**_HALF_WORD - 1)
    lengths = np.where(
        upper > 0, np.frexp(upper.astype(np.float64))[1] + _HALF_WORD, np.frexp(lower.astype(np.float64))[1]
    )
    return lengths.astype(np.int64)


def heaviest(apart: Ints, count: int, bits: int) -> Ints:
    """How many values the fullest prefix of 0, 1, ..., bits digits holds, and then 0.

    One pass over the sorted values: a stack holds, for the values seen last, from where on they share how many digits.
    """
    most = np.zeros(bits + 2, dtype=np.int64)
    most[bits] = min(count, 1)
    open_runs: list[tuple[int, int]] = []
    for place, shared in enumerate([*(bits - apart).tolist(), -1]):
        start = place
        while open_runs and open_runs[-1][1] >= shared:
            start, digits = open_runs.pop()
            most[digits] = max(most[digits], place - start + 1)
        open_runs.append((start, shared))
    most[: bits + 1] = np.maximum.accumulate(most[bits::-1])[::-1]
    return most


# How the prefix routines share their epsilon and their beta.


@dataclass(frozen=True, slots=True)
class PrefixSplit:
    """Shares of a PrefixSearch: of epsilon and of beta, for the number of digits, the prefix and the end."""

    neighbours: Neighbours
    failure: Fraction
    beta: float
    epsilons: tuple[int, ...] = (16, 17, 7)
    betas: tuple[int, ...] = (20, 10, 10)

    def routine(self, noise: Fraction) -> PrefixSearch:
        ending, enough, light = _ending(self, noise)
        rate = self.epsilons[0] / (moved(self.neighbours).range * noise * _WHOLE)
        return PrefixSearch(rate, ending.scale, ending.bound, ending.side_scale, 2 * enough, light)


@dataclass(frozen=True, slots=True)
class PairSplit:
    """Shares of a PairPrefix: of epsilon for the inner routine, the prefix and the end; of beta for the inner routine,
    pairs that share too many digits, the prefix and the end. `inner` prices under replace-one."""

    size: Size
    neighbours: Neighbours
    failure: Fraction
    beta: float
    inner: Callable[[Fraction], Routine]
    epsilons: tuple[int, ...] = (20, 14, 6)
    betas: tuple[int, ...] = (16, 8, 8, 8)

    def routine(self, noise: Fraction) -> PairPrefix:
        ending, enough, reach = _ending(self, noise)
        inner, bottom = self.inner(noise * _WHOLE / self.epsilons[0]), reach - 1
        inside, crowded = (self.beta * share / _WHOLE for share in self.betas[:2])
        others, more = enough - 1, inner.needed(code_bits(self.size) + 1, inside) + bottom

        def fits(top: int) -> bool:
            """One more than these dropped pairs are crowded with probability at most `crowded`."""
            return crowded_pairs(top + 1, others, 2 * (top + more)) <= crowded

        steps = exact.bracket(lambda step: fits(others + step), -1, 1, limit=_LARGEST) or (-1, _LARGEST)
        top = max(0, others + exact.least(lambda step: fits(others + step), *steps))
        return PairPrefix(inner, top, bottom, ending.scale, ending.bound, ending.side_scale)

    def needed(self, noise: Fraction) -> int:
        """The number of values that the routine of this noise needs, with the betas as they are split."""
        routine = self.routine(noise)
        inside = routine.inner.needed(code_bits(self.size) + 1, self.beta * self.betas[0] / _WHOLE)
        return 2 * (inside + routine.top + routine.bottom)


Split = TypeVar("Split", PrefixSplit, PairSplit)


def _ending(split: PrefixSplit | PairSplit, noise: Fraction) -> tuple[Ending, int, int]:
    """The last two steps with their shares of this noise; the count of a prefix that passes, and the number of values
    outside of it that make its end interior, each but with its share of beta."""
    neighbours, span = split.neighbours, moved(split.neighbours).range
    second, third = (noise * _WHOLE / share for share in split.epsilons[1:])
    missed, wrong = (split.beta * share / _WHOLE for share in split.betas[-2:])
    scale, failure = checked_scale(span * second), split.failure / (2 if neighbours.replace_one else 1)
    ending = Ending(scale, stable.least_bound(scale, failure, neighbours.rows), span * third)
    enough = stable.certain_count(scale, ending.bound, missed)
    return ending, enough, LaplaceNoise(ending.side_scale).reach(math.log(wrong))


@functools.lru_cache(maxsize=256)
def prefix_split(
    size: Size, *, neighbours: Neighbours, epsilon: Fraction, failure: Fraction, beta: float
) -> PrefixSplit:
    """The split that needs the fewest values."""
    start = PrefixSplit(neighbours, failure, beta)
    return _descend(start, lambda split: split.routine(1 / epsilon).needed(size, beta))


@functools.lru_cache(maxsize=64)
def pair_split(size: Size, *, neighbours: Neighbours, epsilon: Fraction, failure: Fraction, beta: float) -> PairSplit:
    """The split that needs the fewest values, with the better of the exponential mechanism and a prefix search inside;
    the latter takes half of the failure."""
    domain, replaced = code_bits(size) + 1, Neighbours("replace-one", neighbours.rows)

    def min_rank(noise: Fraction) -> Routine:
        return MinRank(1 / (moved(replaced).range * noise))

    nested = prefix_split(domain, neighbours=replaced, epsilon=epsilon / 2, failure=failure / 2, beta=beta / 2)
    inner: Callable[[Fraction], Routine] = min_rank
    left = failure
    if nested.routine(2 / epsilon).needed(domain, beta / 2) < min_rank(2 / epsilon).needed(domain, beta / 2):
        inner, left = nested.routine, failure / 2
    return _descend(PairSplit(size, neighbours, left, beta, inner), lambda split: split.needed(1 / epsilon))


def _descend(best: Split, cost: Callable[[Split], int]) -> Split:
    """Shares are moved from one step to another as long as that lowers the cost."""
    if best.failure < _LEAST_FAILURE:
        raise ParameterError("prefixes need a delta > 0: without one use the exponential mechanism")
    for amount in _MOVES:
        better: Split | None = best
        while better is not None:
            best, least = better, cost(better)
            splits = [replace(best, epsilons=shares) for shares in _moves(best.epsilons, amount)]
            splits += [replace(best, betas=shares) for shares in _moves(best.betas, amount)]
            better = next((split for split in splits if cost(split) < least), None)
    return best


def _moves(shares: tuple[int, ...], amount: int) -> Iterator[tuple[int, ...]]:
    """The shares with this amount moved from one step to another."""
    for giver, taker in itertools.permutations(range(len(shares)), 2):
        if shares[giver] > amount:
            moves = {giver: -amount, taker: amount}
            yield tuple(share + moves.get(place, 0) for place, share in enumerate(shares))


# The mechanism and its methods.


def size_of(column: Ordered) -> Size:
    """The number of points of a column's domain; of a Whole without writing the number."""
    return TwoTo(column.bits) if isinstance(column, Whole) else column.points


@dataclass(frozen=True, slots=True)
class InteriorPoint:
    """Release the code of a point of a column's grid, between its smallest and its largest value with high probability.

    Theorem.   That of the routine, a person's k rows being k values. Rows where the column is missing are not in the
               list; that a value disappears instead of being replaced costs no more.
    Accuracy.  That of the routine: `routine.needed(size, beta)` values are enough.
    Edges.     One column must fit in memory: it is gathered and sorted. No values: an ordinary release.
    Reference. Lecture 12; docs/proofs/interior_point.md.
    """

    NAME: ClassVar[str] = "interior-point/1"
    column: str
    routine: Routine

    def __post_init__(self) -> None:
        exact.text(column=self.column)
        checked_routine(self.routine)

    def guarantee(self, facts: Facts) -> Guarantee:
        return self.routine.guarantee(facts.neighbours, size_of(ordered(facts.domain, self.column)))

    def needs(self, facts: Facts) -> Needs:
        return Needs(gathers=max(8, -(-facts.domain.column(self.column).size.bit_length() // 8)))

    def run(self, data: Dataset, rng: Rng) -> int:
        column = ordered(data.facts.domain, self.column)
        return self.routine.point(sorted_column(data, self.column), column.points, rng)


def methods(*, facts: Facts, column: str, beta: Exact, funds: Funds) -> Methods:
    """Ways to an interior point of this column, each with the least noise that is admitted.

    The error alpha has no meaning here: `needed` is the number of values for which the point is interior with
    probability 1 - beta, and one mechanism serves every alpha.
    """
    size, sure = size_of(ordered(facts.domain, column)), float(exact.probability(beta=beta))
    problem = InteriorProblem(facts, column, size, sure, funds)
    makers = dict(zip(USUAL, (problem.exponential, problem.binary_search, problem.prefix), strict=True))
    return Methods({**makers, "pair-prefix": problem.pair_prefix}, usual=lambda: USUAL)


@dataclass(frozen=True, slots=True)
class InteriorProblem:
    """One column of this size and one budget."""

    facts: Facts
    column: str
    size: Size
    beta: float
    funds: Funds

    def exponential(self) -> Method:
        routine = self._calibrated(lambda noise: MinRank(1 / noise), self.funds.keeping(Fraction(0)))
        return self._method("exponential", "exponential mechanism on ranks", routine)

    def binary_search(self) -> Method:
        if code_bits(self.size) > _MOST_COMPARISONS:
            raise ParameterError("it would make more than 2**40 comparisons")
        funds = self.funds.keeping(Fraction(0))
        routines = [self._calibrated(lambda noise: BinarySearch(LaplaceNoise(noise)), funds)]
        if self.funds.keeping(FAILING).failure > 0:
            with contextlib.suppress(ParameterError):  # the book in which Gaussian noise is charged may be full
                routines.append(self._calibrated(lambda noise: BinarySearch(GaussianNoise(noise)), funds))
        best = min(routines, key=lambda routine: routine.needed(self.size, self.beta))
        return self._method("binary-search", "noisy binary search", best)

    def prefix(self) -> Method:
        return self._method("prefix", "prefix search", self._split(prefix_split))

    def pair_prefix(self) -> Method:
        return self._method("pair-prefix", "prefixes of random pairs", self._split(pair_split))

    def _split(self, best: Callable[..., PrefixSplit | PairSplit]) -> Routine:
        """The best split for the epsilon that is admitted, which is the same for every split, then its least noise."""
        funds, neighbours = self.funds.keeping(FAILING), self.facts.neighbours
        if funds.failure == 0:
            raise ParameterError("it may fail, which needs delta > 0; with delta = 0 use exponential")
        start = self._calibrated(PrefixSplit(neighbours, funds.failure, self.beta).routine, funds)
        epsilon = start.guarantee(neighbours, self.size).pure
        assert epsilon is not None
        split = best(self.size, neighbours=neighbours, epsilon=epsilon, failure=funds.failure, beta=self.beta)
        return self._calibrated(split.routine, funds)

    def _calibrated(self, make: Callable[[Fraction], Routine], funds: Funds) -> Routine:
        return calibrate(lambda noise: InteriorPoint(self.column, make(noise)), funds=funds, facts=self.facts).routine

    def _method(self, name: str, theorem: str, routine: Routine) -> Method:
        mechanism, needed = InteriorPoint(self.column, routine), routine.needed(self.size, self.beta)
        if needed > _LARGEST:
            raise ParameterError("it needs more than 2**62 values")
        return Method(name, wrong_rows(theorem, self.beta), lambda alpha: needed, lambda alpha: mechanism)
