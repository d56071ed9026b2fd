"""Interior points by ranks: a point between the smallest and the largest of some values, whatever the domain.

A *routine* releases one point of the domain 0 .. size - 1 from a sorted list of values in it. It is a frozen value that
says what a release costs (`guarantee`), how it is drawn (`point`) and for how many values it succeeds (`needed`):

    MinRank(rate)         the exponential mechanism; pure; needs about 2 ln(size) / epsilon values, twice that under
                          replace-one
    BinarySearch(noise)   log2(size) noisy comparisons; with Gaussian noise it needs about the root of log2(size)
    PrefixSearch, PairPrefix    `discreet.pac.interior.prefix`

Success means that the point is neither below all values nor above all of them. Every price counts a person's k rows as
k values of the list, and the price under replace-one covers values that appear or disappear too.

A size is an integer of any length, or `TwoTo(bits)` for 2^bits points where that integer cannot be written: for plans,
no data can hold such values.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from discreet import exact
from discreet.data import MAX_ROWS
from discreet.errors import ParameterError
from discreet.exact import Exact
from discreet.guarantee import Guarantee, Neighbours
from discreet.mechanisms import GaussianNoise, LaplaceNoise
from discreet.query import Sensitivity, of_persons
from discreet.rng import Rng, checked_rate

Values = npt.NDArray[Any]
"""Sorted integers: int64, or Python integers as objects."""


@dataclass(frozen=True, slots=True)
class TwoTo:
    """2^bits points."""

    bits: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", exact.whole(minimum=0, bits=self.bits))


Size = int | TwoTo


def code_bits(size: Size) -> int:
    """How many binary digits the points 0 .. size - 1 need: ceil(log2(size))."""
    return size.bits if isinstance(size, TwoTo) else (_checked(size) - 1).bit_length()


def log_size(size: Size) -> Fraction:
    """ln(size), to within 1e-12 of itself; a fraction, because it may be beyond all floats."""
    if isinstance(size, TwoTo):
        return size.bits * Fraction(math.log(2))
    return Fraction(math.log(_checked(size)))


def _checked(size: int) -> int:
    if not isinstance(size, int) or size < 1:
        raise ParameterError(f"size must be a whole number >= 1 or TwoTo(bits), found {size!r}")
    return size


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


MOVED_ONE = Sensitivity(l1=1, l2_squared=1, linf=1, range=1)
MOVED_TWO = Sensitivity(l1=2, l2_squared=4, linf=2, range=2)


def moved(neighbours: Neighbours) -> Sensitivity:
    """How far one person moves a rank, or a difference of two: a row's addition by 1, its replacement by 2."""
    return of_persons(neighbours, added=MOVED_ONE, replaced=MOVED_TWO)


@dataclass(frozen=True, slots=True, init=False)
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

    def __init__(self, rate: Exact) -> None:
        exact.freeze(self, rate=exact.positive(rate=rate))

    def guarantee(self, neighbours: Neighbours, size: Size) -> Guarantee:
        checked_rate(self.rate * MAX_ROWS)
        return Guarantee.of_bounded_range(checked_rate(self.rate) * moved(neighbours).range, neighbours=neighbours)

    def point(self, values: Values, size: int, rng: Rng) -> int:
        starts, lengths, scores = _runs(values, size)
        run = rng.select(scores, self.rate, lengths)
        return int(starts[run]) + rng.integers(int(lengths[run]))

    def needed(self, size: Size, beta: float) -> int:
        return max(1, 2 * math.ceil((log_size(size) - Fraction(math.log(beta))) / self.rate) - 1)


def _runs(values: Values, size: int) -> tuple[Values, Values, npt.NDArray[np.int64]]:
    """Where the runs of equal score start, how long they are (never 0), and their scores."""
    count, first = len(values), firsts(values)
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


def firsts(values: Values) -> npt.NDArray[np.int64]:
    """The places at which a sorted list has a value for the first time."""
    new = np.ones(len(values), dtype=bool)
    new[1:] = values[1:] != values[:-1]
    return np.flatnonzero(new)


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
        found, here = bytearray(bits), _Group.of(values, 0, len(values), bits)
        for depth, noise in enumerate(noises):
            split = here.split(values, depth, bits)
            right = 2 * split - len(values) + noise < 0
            found[depth] = right
            start, stop = (split, here.stop) if right else (here.start, split)
            if (start, stop) != (here.start, here.stop):
                here = _Group.of(values, start, stop, bits)
        return min(_number(found), size - 1)

    def needed(self, size: Size, beta: float) -> int:
        comparisons = max(1, code_bits(size))
        return self.noise.reach(math.log(beta) - math.log(comparisons))


@dataclass(frozen=True, slots=True)
class _Group:
    """The values at places start .. stop: their common `digits`, as many as they share. Each step of a search is quick
    however long the values are, for they are only looked at when the group changes."""

    start: int
    stop: int
    digits: bytes

    @staticmethod
    def of(values: Values, start: int, stop: int, bits: int) -> _Group:
        if start == stop:
            return _Group(start, stop, b"")
        first, last = int(values[start]), int(values[stop - 1])
        return _Group(start, stop, _digits(first, bits)[: bits - (first ^ last).bit_length()])

    def split(self, values: Values, depth: int, bits: int) -> int:
        """The place of the first value of the group whose next digit is 1; the group shares `depth` digits."""
        if self.start == self.stop:
            return self.start
        if depth < len(self.digits):
            return self.start if self.digits[depth] else self.stop
        rest = bits - depth - 1
        return bisect_left(values, int(values[self.stop - 1]) >> rest << rest, self.start, self.stop)


def _digits(value: int, bits: int) -> bytes:
    """A number's binary digits, the most significant first, one in each byte."""
    length = -(-bits // 8)
    packed = np.frombuffer(value.to_bytes(length, "big"), dtype=np.uint8)
    return np.unpackbits(packed)[8 * length - bits :].tobytes()


def _number(digits: bytearray) -> int:
    missing = -len(digits) % 8
    return int.from_bytes(np.packbits(np.frombuffer(digits, dtype=np.uint8)).tobytes(), "big") >> missing
