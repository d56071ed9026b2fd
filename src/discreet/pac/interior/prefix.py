"""Interior points by binary prefixes: how many values are needed hardly grows with the domain.

A code of L binary digits is found in three steps: how many digits to look at, which prefix, which end of it.

    PrefixSearch    the number of digits by the exponential mechanism on 0 .. L: needs about ln(L) / epsilon more values
    PairPrefix      the number of digits by an interior point of how many digits random pairs of values share: a domain
                    of L + 1 points instead of 2^L, whose routine may be a PairPrefix again: the lecture's log*

The last two steps are shared (`Ending`). `discreet.pac.interior.splits` finds good parameters for a budget. Proofs:
docs/proofs/interior_point.md.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet import exact
from discreet.data import MAX_ROWS, Ints
from discreet.errors import ParameterError
from discreet.exact import Exact
from discreet.guarantee import Guarantee, Neighbours
from discreet.mechanisms import LaplaceNoise, stable
from discreet.pac.interior.rank import Routine, Size, Values, code_bits, moved
from discreet.rng import Rng, checked_rate, checked_scale

NOWHERE = 0
"""The point that is released when no prefix passes: a constant, so that it says nothing more."""

_HALF_WORD = 31
_LARGEST = 2**62


@dataclass(frozen=True, slots=True)
class Transcript:
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

    def transcript(self, values: Values, apart: Ints, shared: int, size: int, rng: Rng) -> Transcript:
        """`apart` are the `digits_apart` of neighbours in the list."""
        bits = code_bits(size)
        dropped = bits - min(shared + 1, bits)
        found = self.fullest(apart, len(values), dropped, rng)
        if found is None:
            return Transcript(shared, None, None, NOWHERE)
        start, stop = found
        prefix = int(values[start]) >> dropped
        if dropped == 0:
            return Transcript(shared, prefix, None, prefix)
        right = self.side(len(values) - stop - start, rng)
        end = ((prefix + 1) << dropped) - 1 if right else prefix << dropped
        return Transcript(shared, prefix, right, min(end, size - 1))

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
        """At most with this probability no prefix passes, if one of them holds so many values."""
        margin = count - self.bound - 1
        return 1.0 if margin < 0 else stable.missed_mass(self.scale, self.bound, margin)

    def wrong(self, outside: int) -> float:
        """At most with this probability the end is not interior, if so many values do not have the prefix."""
        return LaplaceNoise(self.side_scale).tail(outside)


def _ending(scale: Exact, bound: int, side_scale: Exact) -> Ending:
    reach = exact.whole(bound=bound)
    if reach > _LARGEST:
        raise ParameterError(f"bound must be at most 2**62, found {bound!r}")
    return Ending(exact.positive(scale=scale), reach, exact.positive(side_scale=side_scale))


@dataclass(frozen=True, slots=True, init=False)
class PrefixSearch:
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

    def __init__(self, rate: Exact, scale: Exact, bound: int, side_scale: Exact, heavy: int, light: int) -> None:
        ending = _ending(scale, bound, side_scale)
        heaviest, lightest = exact.whole(minimum=0, heavy=heavy), exact.whole(minimum=0, light=light)
        if max(heaviest, lightest) > _LARGEST:
            raise ParameterError("heavy and light must be at most 2**62")
        exact.freeze(
            self,
            rate=exact.positive(rate=rate),
            scale=ending.scale,
            bound=ending.bound,
            side_scale=ending.side_scale,
            heavy=heaviest,
            light=lightest,
        )

    @property
    def ending(self) -> Ending:
        return Ending(self.scale, self.bound, self.side_scale)

    def guarantee(self, neighbours: Neighbours, size: Size) -> Guarantee:
        checked_rate(self.rate * (MAX_ROWS + self.heavy + self.light))
        span = checked_rate(self.rate) * moved(neighbours).range
        return Guarantee.of_bounded_range(span, neighbours=neighbours) + self.ending.guarantee(neighbours)

    def point(self, values: Values, size: int, rng: Rng) -> int:
        return self.transcript(values, size, rng).point

    def transcript(self, values: Values, size: int, rng: Rng) -> Transcript:
        apart = digits_apart(values[:-1], values[1:])
        return self.ending.transcript(values, apart, self.shared(apart, len(values), size, rng), size, rng)

    def shared(self, apart: Ints, count: int, size: int, rng: Rng) -> int:
        """Step 1."""
        most = heaviest(apart, count, code_bits(size))
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


@dataclass(frozen=True, slots=True, init=False)
class PairPrefix:
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

    def __init__(self, inner: Routine, top: int, bottom: int, scale: Exact, bound: int, side_scale: Exact) -> None:
        if not isinstance(inner, Routine):
            raise ParameterError(f"inner must be a routine such as MinRank, found {inner!r}")
        ending = _ending(scale, bound, side_scale)
        exact.freeze(
            self,
            inner=inner,
            top=exact.whole(minimum=0, top=top),
            bottom=exact.whole(minimum=0, bottom=bottom),
            scale=ending.scale,
            bound=ending.bound,
            side_scale=ending.side_scale,
        )

    @property
    def ending(self) -> Ending:
        return Ending(self.scale, self.bound, self.side_scale)

    def guarantee(self, neighbours: Neighbours, size: Size) -> Guarantee:
        replaced = self.inner.guarantee(Neighbours("replace-one", neighbours.rows), code_bits(size) + 1)
        return dataclasses.replace(replaced, neighbours=neighbours) + self.ending.guarantee(neighbours)

    def point(self, values: Values, size: int, rng: Rng) -> int:
        return self.transcript(values, size, rng).point

    def transcript(self, values: Values, size: int, rng: Rng) -> Transcript:
        shared = self.shared(values, size, rng)
        return self.ending.transcript(values, digits_apart(values[:-1], values[1:]), shared, size, rng)

    def shared(self, values: Values, size: int, rng: Rng) -> int:
        """Step 1."""
        bits, pairs = code_bits(size), len(values) // 2
        order = rng.permutation(len(values))[: 2 * pairs]
        agreeing = np.sort(bits - digits_apart(values[order[::2]], values[order[1::2]]))
        return self.inner.point(agreeing[self.bottom : max(pairs - self.top, self.bottom)], bits + 1, rng)

    def needed(self, size: Size, beta: float) -> int:
        """ParameterError if this beta cannot be promised with these trims, however many the values."""
        left = beta - self.ending.wrong(self.bottom + 1)
        parts = [left * part / 8 for part in range(1, 8)]
        found = [each for part in parts if (each := self._needed(size, left - part, part)) is not None]
        if not found:
            raise ParameterError(f"these trims do not promise success with probability {1 - beta:g}: trim more")
        return min(found)

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
    """A bound on the probability that so many pairs of a random matching of at least `size` values lie within groups of
    at most 2 * others + 1 values: see PairPrefix."""
    chosen = pairs - others
    if chosen <= 0:
        return 1.0
    if others <= 0:
        return 0.0
    factorials = math.lgamma(others + 1) - math.lgamma(pairs + 1)
    return math.exp(min(0.0, chosen * math.log(others) + factorials + _rise(size, chosen)))


def _rise(size: int, times: int) -> float:
    """ln of the product over i < times of (n - 2i) / (n - 2i - 1), n = size >= 2 * times."""
    half = size / 2
    upper = math.lgamma(half + 1) - math.lgamma(half - times + 1)
    return upper - math.lgamma(half + 0.5) + math.lgamma(half + 0.5 - times)


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
