"""Exact integer noise and exact selection, at the speed of floating point.

Every sampler here is a deterministic function of independent uniform real numbers whose bits are revealed step by step.
Two such functions carry everything (E = -ln U is a standard exponential variable):

    floor(scale * E)     is geometric:  P[K >= k] = exp(-k / scale)
    [E > x]              is Bernoulli(exp(-x))

Both are evaluated in float64 for a whole vector at once, together with a rigorous bound on the error, and the float is
used only where it *decides* (the two ends of the error interval give the same answer). For each of the few undecided
entries, 64 more bits of the same U are revealed and the interval is computed again in integers of any length, again and
again until it decides. So the result is always the exact function of the bits and its law is exact: no float is ever
rounded into an output. Proof, with every bound: docs/proofs/exact_noise.md. Its one empirical premise is that the
relative error of numpy's log and exp is at most 128 * 2^-53; tests/unit/test_rng.py checks it (it sees 1.2 * 2^-53).

    laplace             sign and geometric, (zero, minus) rejected
    gaussian            Canonne-Kamath-Steinke 2020: rejection from the Laplace law of scale floor(sigma) + 1
    truncated_laplace   rejection from the Laplace law or, for a bound below the scale, from the uniform law
    zero_sum_laplace    rejection from independent Laplace noises
    spherical           a real vector whose coordinates are rounded: intervals of integers, refined until all decide
    select              one uniform against the cumulative weights, in two levels

`Rng` keeps no state: every call asks the operating system, so a forked process never repeats its parent's noise and
threads may share one object. `SeededRng` repeats itself, for tests; it says private = False and ledgers refuse it.

Limits. 2^-200 <= scale <= 2^50 and 2^-400 <= variance <= 2^100. Then |noise| < 2^62 except with probability below
exp(-4000), in which case OverflowError is raised; sums bounded by 2^62 can be added in int64. Rejection makes the time
of a call depend on the noise (never on the data); drawing whole vectors hides most of it.
"""

from __future__ import annotations

import hashlib
import math
import operator
import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import ClassVar, overload

import numpy as np
from numpy.typing import NDArray

from discreet import exact
from discreet.arrays import Floats, Ints, Mask
from discreet.errors import OutOfRange, ParameterError

Shape = int | tuple[int, ...]
Enclosure = tuple[int, int]

_GUARD = 2.0**-45
"""Bound on the relative float errors: 256 * 2^-53, half of it for log or exp. If infinite, no float decides."""

_CHUNK = 1 << 15
"""Proposals drawn together: small enough for the cache, large enough to forget the cost of a call."""

_NARROW = 2**10
"""Up to this scale 31 bits of U decide all but 1 in 40,000 entries; above it 52 bits are drawn."""

_DIRECT = 2**30
"""Up to this scale float64 resolves floor(scale * E); above it the low bits are drawn separately."""

_REVEALED = 128
"""Bits of each real number behind a spherical vector to begin with: they decide all but one vector in 2^50."""

_LARGEST_SCALE = Fraction(2**50)
_SMALLEST_SCALE = Fraction(1, 2**200)
_FAR = -700.0
"""Weights below exp(-700) of the largest are not resolved by floats; selecting one takes exact arithmetic."""


class Rng:
    """The operating system's randomness, and exact samplers on it.

    With size=None a sampler returns a Python int (or bool), otherwise an int64 (or bool) array of that shape.
    """

    __slots__ = ()
    private: ClassVar[bool] = True

    def _bytes(self, count: int) -> bytes:
        return os.urandom(count)

    def words(self, count: int) -> NDArray[np.uint64]:
        """Independent uniform 64-bit words."""
        return np.frombuffer(self._bytes(8 * count), dtype="<u8")

    def bits(self, count: int) -> int:
        """A uniform integer below 2**count."""
        count = exact.whole(0, count=count)
        return int.from_bytes(self._bytes((count + 7) // 8), "little") >> (-count % 8)

    @overload
    def integers(self, bound: int, size: None = None) -> int: ...
    @overload
    def integers(self, bound: int, size: Shape) -> Ints: ...
    def integers(self, bound: int, size: Shape | None = None) -> int | Ints:
        """Uniform on 0, ..., bound - 1. Arrays need bound <= 2**63."""
        bound = exact.whole(1, bound=bound)
        length = (bound - 1).bit_length()
        if size is None:
            while (value := self.bits(length)) >= bound:
                pass
            return value
        if length > 63:
            raise ParameterError(f"bound must be at most 2**63 for an array, found one of {length} bits")

        def propose(count: int) -> Ints:
            values = self._low_bits(count, length)
            return values[values < bound]

        return self._filled(size, propose, acceptance=bound / (1 << length))

    @overload
    def bernoulli_exp(self, x: Fraction, size: None = None) -> bool: ...
    @overload
    def bernoulli_exp(self, x: Fraction, size: Shape) -> Mask: ...
    def bernoulli_exp(self, x: Fraction, size: Shape | None = None) -> bool | Mask:
        """True with probability exp(-x), for a rational x >= 0."""
        x = exact.nonnegative(x=x)
        near = float(min(max(x, _SMALLEST_SCALE), Fraction(2**64)))  # E < 2**64 whenever a float decides

        def propose(count: int) -> Ints:
            return self._exceeds(np.full(count, near), lambda _: x).astype(np.int64)

        return bool(self._filled(None, propose)) if size is None else self._filled(size, propose).astype(np.bool_)

    def flips(self, gaps: Ints, rate: Fraction) -> Mask:
        """True with probability exp(-rate * gap) for each gap >= 0, independently."""
        rate, gaps = checked_rate(rate), _integer_array(gaps)
        near = float(rate)

        def answered(part: Ints) -> Mask:
            return self._exceeds(part.astype(np.float64) * near, lambda i: int(part[i]) * rate)

        parts = [answered(gaps[start : start + _CHUNK]) for start in range(0, gaps.size, _CHUNK)]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.bool_)

    @overload
    def geometric(self, scale: Fraction, size: None = None) -> int: ...
    @overload
    def geometric(self, scale: Fraction, size: Shape) -> Ints: ...
    def geometric(self, scale: Fraction, size: Shape | None = None) -> int | Ints:
        """P[K >= k] = exp(-k / scale) for k = 0, 1, ..."""
        scale = checked_scale(scale)

        def propose(count: int) -> Ints:
            magnitude, _, kept = self._magnitudes(count, scale)
            return magnitude[kept]

        return self._filled(size, propose)

    @overload
    def laplace(self, scale: Fraction, size: None = None) -> int: ...
    @overload
    def laplace(self, scale: Fraction, size: Shape) -> Ints: ...
    def laplace(self, scale: Fraction, size: Shape | None = None) -> int | Ints:
        """P[K = k] proportional to exp(-|k| / scale)."""
        scale = checked_scale(scale)

        def propose(count: int) -> Ints:
            magnitude, sign, kept = self._two_sided(count, scale)
            return (magnitude * sign)[kept]

        return self._filled(size, propose, acceptance=_laplace_acceptance(scale))

    @overload
    def gaussian(self, variance: Fraction, size: None = None) -> int: ...
    @overload
    def gaussian(self, variance: Fraction, size: Shape) -> Ints: ...
    def gaussian(self, variance: Fraction, size: Shape | None = None) -> int | Ints:
        """P[K = k] proportional to exp(-k^2 / (2 variance))."""
        variance = checked_variance(variance)
        envelope = exact.floor_sqrt(variance) + 1
        centre, half = variance / envelope, 1 / (2 * variance)

        def propose(count: int) -> Ints:
            magnitude, sign, kept = self._two_sided(count, Fraction(envelope))
            x = magnitude.astype(np.float64)
            x -= float(centre)
            x *= x
            x *= float(half)
            kept &= self._exceeds(x, lambda i: (int(magnitude[i]) - centre) ** 2 * half)
            return (magnitude * sign)[kept]

        return self._filled(size, propose, acceptance=0.7 if variance >= 1 else 0.45)

    @overload
    def truncated_laplace(self, scale: Fraction, bound: int, size: None = None) -> int: ...
    @overload
    def truncated_laplace(self, scale: Fraction, bound: int, size: Shape) -> Ints: ...
    def truncated_laplace(self, scale: Fraction, bound: int, size: Shape | None = None) -> int | Ints:
        """P[K = k] proportional to exp(-|k| / scale) on -bound, ..., bound; nothing outside."""
        scale, bound = checked_scale(scale), exact.whole(0, bound=bound)
        reach = min(bound, 2**62)  # |noise| < 2**62 in any case

        def from_laplace(count: int) -> Ints:
            magnitude, sign, kept = self._two_sided(count, scale)
            kept &= magnitude <= reach
            return (magnitude * sign)[kept]

        def from_uniform(count: int) -> Ints:
            value = self.integers(2 * bound + 1, count) - bound
            magnitude = np.abs(value)
            near = magnitude.astype(np.float64) * float(1 / scale)
            kept = self._exceeds(near, lambda i: int(magnitude[i]) / scale)
            return value[kept]

        if bound < scale:
            return self._filled(size, from_uniform, acceptance=0.6)
        return self._filled(size, from_laplace, acceptance=0.6 * _laplace_acceptance(scale))

    def zero_sum_laplace(self, scale: Fraction, size: int) -> Ints:
        """P[K = k] proportional to exp(-(|k_1| + ... + |k_size| + |k_1 + ... + k_size|) / scale).

        Independent Laplace noises are kept with probability exp(-|their sum| / scale), about 1 / sqrt(pi size).
        """
        scale, size = checked_scale(scale), exact.whole(1, size=size)
        while True:
            proposed = self.laplace(scale, (max(1, min(2 * size, _CHUNK // size)), size))
            kept: Ints = proposed[self.flips(np.abs(proposed.sum(axis=1)), 1 / scale)]
            if len(kept):
                return np.ascontiguousarray(kept[0])

    def spherical(self, scale: Fraction, dimension: int) -> Ints:
        """A real vector with density proportional to exp(-|y|_2 / scale), each coordinate rounded; dimension scale <=
        2**50."""
        dimension, scale = exact.whole(1, dimension=dimension), checked_scale(scale)
        checked_scale(scale * dimension)
        pairs, bits, signs = dimension // 2 + 1, _REVEALED, self.bits(dimension)
        points = [self._in_disc() for _ in range(pairs)]
        waits = [self.bits(bits) for _ in range(2 * pairs - 1 + dimension % 2)]
        while (found := _sphere(scale, dimension, points, waits, bits)) is None:
            points = [((u << 64) | self.bits(64), (v << 64) | self.bits(64), known + 64) for u, v, known in points]
            waits, bits = [(known << 64) | self.bits(64) for known in waits], bits + 64
        if max(found) >> 62:
            raise OverflowError("noise beyond 2**62: an event of probability below exp(-4000)")
        return np.array([-each if signs >> i & 1 else each for i, each in enumerate(found)], dtype=np.int64)

    def permutation(self, n: int) -> Ints:
        """A uniformly random order of 0, ..., n - 1."""
        n = exact.whole(0, n=n)
        while True:
            keys = self.words(n)
            order = np.argsort(keys)
            ranked = keys[order]
            if not np.any(ranked[1:] == ranked[:-1]):  # given that all keys differ, every order is equally likely
                return order.astype(np.int64, copy=False)

    def select(self, scores: Ints | Sequence[int], rate: Fraction, counts: Ints | Sequence[int] | None = None) -> int:
        """An index i with probability proportional to counts[i] * exp(rate * scores[i]).

        The scores fit int64; counts (default: all 1) are integers >= 0 of any length, not all 0. First a block of about
        sqrt(n) neighbours is chosen by its total weight, then one of its members: fewer boundaries, sharper bounds.
        """
        weights = _Weights.of(scores, rate, counts)
        values, doubt = weights.floats()
        starts = np.arange(0, values.size, max(1, math.isqrt(values.size)))
        stops = np.append(starts[1:], values.size)

        def blocks(precision: int) -> list[Enclosure]:
            each = weights.enclosures(0, values.size, precision)
            pairs = [each[a:b] for a, b in zip(starts.tolist(), stops.tolist(), strict=True)]
            return [(sum(low for low, _ in part), sum(high for _, high in part)) for part in pairs]

        block = self._pick(np.add.reduceat(values, starts), doubt, blocks)
        start, stop = int(starts[block]), int(stops[block])
        within = self._pick(values[start:stop], doubt, lambda precision: weights.enclosures(start, stop, precision))
        return int(weights.index[start + within])

    # The pieces. `count` proposals at a time; a boolean array says which of them are kept.

    @overload
    def _filled(self, size: None, propose: Callable[[int], Ints], acceptance: float = 1.0) -> int: ...
    @overload
    def _filled(self, size: Shape, propose: Callable[[int], Ints], acceptance: float = 1.0) -> Ints: ...
    @overload
    def _filled(self, size: Shape | None, propose: Callable[[int], Ints], acceptance: float = 1.0) -> int | Ints: ...
    def _filled(self, size: Shape | None, propose: Callable[[int], Ints], acceptance: float = 1.0) -> int | Ints:
        """The first accepted proposals, in order, in the wanted shape. `acceptance` only saves time."""
        shape = _checked_shape(size)
        values = np.empty(math.prod(shape), dtype=np.int64)
        done = 0
        while done < values.size:
            missing = values.size - done
            wanted = missing if acceptance >= 1 else int(missing / acceptance) + 4
            accepted = propose(min(wanted, _CHUNK))[:missing]
            values[done : done + accepted.size] = accepted
            done += accepted.size
        return int(values[0]) if size is None else values.reshape(shape)

    def _low_bits(self, count: int, length: int) -> Ints:
        """Uniform integers below 2**length <= 2**63."""
        if length == 0:
            return np.zeros(count, dtype=np.int64)
        if length <= 32:
            return (self._halves(count) >> np.uint32(32 - length)).astype(np.int64)
        return (self.words(count) >> np.uint64(64 - length)).astype(np.int64)

    def _halves(self, count: int) -> NDArray[np.uint32]:
        return np.frombuffer(self._bytes(4 * count), dtype="<u4")

    def _exponentials(self, count: int, wide: bool) -> tuple[_Exponentials, Mask]:
        """Standard exponential variables and one more independent bit each."""
        if wide:
            words = self.words(count)
            known, bits, spare = (words >> np.uint64(12)).view(np.int64), 52, (words & np.uint64(1)).astype(np.bool_)
        else:
            halves = self._halves(count)
            known, bits, spare = (halves >> np.uint32(1)).view(np.int32), 31, (halves & np.uint32(1)).astype(np.bool_)
        floats = known.astype(np.float64)
        with np.errstate(divide="ignore"):  # 1 / 0 = infinite doubt: U may be as small as it likes
            doubt = 1.0 / floats
        floats += 0.5
        floats *= 2.0**-bits
        np.log(floats, out=floats)
        np.negative(floats, out=floats)
        doubt += floats * _GUARD
        return _Exponentials(known=known, bits=bits, value=floats, doubt=doubt), spare

    def _magnitudes(self, count: int, scale: Fraction) -> tuple[Ints, Mask, Mask]:
        """Geometric variables, one more independent bit each, and which of them are kept."""
        shift = math.floor(scale).bit_length() - 20 if scale > _DIRECT else 0
        leading, spare = self._floors(count, scale / (1 << shift))
        if shift == 0:
            return leading, spare, np.ones(count, dtype=np.bool_)
        if int(leading.max(initial=0)) >> (62 - shift):
            raise OverflowError("noise beyond 2**62: an event of probability below exp(-4000)")
        rest = self._low_bits(count, shift)
        kept = self._exceeds(rest.astype(np.float64) * float(1 / scale), lambda i: int(rest[i]) / scale)
        return (leading << shift) + rest, spare, kept

    def _two_sided(self, count: int, scale: Fraction) -> tuple[Ints, Ints, Mask]:
        """Magnitudes, signs and which of them are kept: of the two zeros, one."""
        magnitude, minus, kept = self._magnitudes(count, scale)
        kept &= ~minus | (magnitude != 0)
        return magnitude, 1 - 2 * minus.astype(np.int64), kept

    def _floors(self, count: int, scale: Fraction) -> tuple[Ints, Mask]:
        """floor(scale * E) for fresh E, and one more independent bit each."""
        variables, spare = self._exponentials(count, wide=scale > _NARROW)
        near = float(scale)
        centre, error = variables.value * near, variables.doubt * near
        low = np.floor(centre - error)
        undecided = np.flatnonzero(low != np.floor(centre + error))
        low[undecided] = 0.0
        floors = low.astype(np.int64)
        for i in undecided.tolist():
            floors[i] = self._exact_floor(int(variables.known[i]), variables.bits, scale)
        return floors, spare

    def _exceeds(self, x: Floats, exactly: Callable[[int], Fraction]) -> Mask:
        """[E > x_i] for fresh E, where x[i] is within (x[i] + 1) * _GUARD of the true x_i = exactly(i)."""
        variables, _ = self._exponentials(x.size, wide=False)
        answers = variables.value > x
        undecided = np.flatnonzero(~(np.abs(variables.value - x) > variables.doubt + (x + 1.0) * _GUARD))
        for i in undecided.tolist():
            answers[i] = self._exact_exceeds(int(variables.known[i]), variables.bits, exactly(i))
        return answers

    def _revealed(self, known: int, bits: int) -> Iterator[tuple[Fraction, Fraction]]:
        """Ever smaller intervals around -ln U, where U begins with `known` (of length `bits`): 64 more bits each."""
        while True:
            known, bits = (known << 64) | self.bits(64), bits + 64
            if known > 0:
                low, high = _waited(known, bits)
                yield Fraction(low, 1 << (bits + _EXTRA)), Fraction(high, 1 << (bits + _EXTRA))

    def _in_disc(self) -> tuple[int, int, int]:
        """The first bits of both coordinates of a uniform point of the quarter disc, and their number."""
        while True:
            u, v, known = self.bits(_REVEALED), self.bits(_REVEALED), _REVEALED
            while u * u + v * v < 1 << 2 * known < (u + 1) ** 2 + (v + 1) ** 2:  # the circle may pass between
                u, v, known = (u << 64) | self.bits(64), (v << 64) | self.bits(64), known + 64
            if u * u + v * v < 1 << 2 * known:
                return u, v, known

    def _exact_floor(self, known: int, bits: int, scale: Fraction) -> int:
        return next(
            math.floor(scale * low)
            for low, high in self._revealed(known, bits)
            if math.floor(scale * low) == math.floor(scale * high)
        )

    def _exact_exceeds(self, known: int, bits: int, x: Fraction) -> bool:
        return next(low > x for low, high in self._revealed(known, bits) if low > x or high < x)

    def _pick(self, weights: Floats, doubt: float, exactly: Callable[[int], list[Enclosure]]) -> int:
        """An index with probability proportional to its true weight.

        Each weight is within a factor 1 +- doubt, or 2**-990, of the truth; exactly(p) gives integer enclosures of
        the true weights in a common unit, the largest about 2**p.
        """
        cumulative = np.cumsum(weights)
        last, total = weights.size - 1, float(cumulative[-1])
        known, bits = self.bits(52), 52
        target = (known + 0.5) * 2.0**-52 * total
        index = min(int(np.searchsorted(cumulative, target, side="right")), last)
        below = math.inf if index == 0 else target - float(cumulative[index - 1])
        above = math.inf if index == last else float(cumulative[index]) - target
        if min(below, above) > total * (2 * doubt + weights.size / 16 * _GUARD) + weights.size * 2.0**-980:
            return index
        while True:
            known, bits = (known << 64) | self.bits(64), bits + 64
            enclosures = exactly(bits + 32)
            lows = list(accumulate(low for low, _ in enclosures))
            highs = list(accumulate(high for _, high in enclosures))
            index = bisect_right(highs, (known * lows[-1]) >> bits)
            if index == last or (known + 1) * highs[-1] <= lows[index] << bits:
                return index


class SeededRng(Rng):
    """The same samplers on words that follow from a seed. For tests: whoever knows the seed knows the noise."""

    __slots__ = ("_calls", "_seed")
    private: ClassVar[bool] = False

    def __init__(self, seed: int) -> None:
        self._seed = exact.whole(0, seed=seed)
        self._calls = 0

    def _bytes(self, count: int) -> bytes:
        self._calls += 1
        return hashlib.shake_128(f"{self._seed}/{self._calls}".encode()).digest(count)


@dataclass(frozen=True, slots=True, eq=False)
class _Exponentials:
    """E = -ln U for uniform U whose first `bits` bits are `known`; |E - value| <= doubt, with a factor 1.9 to spare."""

    known: NDArray[np.int32] | Ints
    bits: int
    value: Floats
    doubt: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Weights:
    """counts * exp(-rate * gaps), in floats or in integers of any length; gaps are distances below the best score.

    index names the candidates (those whose count is not 0) in the caller's order.
    """

    gaps: NDArray[np.uint64]
    rate: Fraction
    counts: Ints | list[int] | None
    index: Ints

    @staticmethod
    def of(scores: Ints | Sequence[int], rate: Fraction, counts: Ints | Sequence[int] | None) -> _Weights:
        rate = checked_rate(rate)
        levels = _integer_array(scores)
        index = np.arange(levels.size)
        if counts is not None:
            counts = _checked_counts(counts, levels.size)
            index = np.flatnonzero(counts if isinstance(counts, np.ndarray) else [count > 0 for count in counts])
            counts = counts[index] if isinstance(counts, np.ndarray) else [counts[i] for i in index.tolist()]
            levels = levels[index]
        if index.size == 0:
            raise ParameterError("scores must hold at least one candidate with a positive count, found none")
        gaps = levels.max().astype(np.uint64) - levels.astype(np.uint64)  # modulo 2**64, hence exact
        return _Weights(gaps=gaps, rate=rate, counts=counts, index=index)

    def floats(self) -> tuple[Floats, float]:
        """The weights up to a common factor, and the bound on their relative error."""
        near = float(self.rate)
        if self.counts is None:
            return np.exp(np.maximum(self.gaps.astype(np.float64) * -near, _FAR)), 16 * _GUARD
        mantissa, exponent = _binary(self.counts)
        log_two = math.log(2)
        best = int(np.argmax(exponent * log_two - self.gaps.astype(np.float64) * near))
        lead = self.gaps[best]
        ahead = np.where(
            self.gaps > lead, -((self.gaps - lead).astype(np.float64)), (lead - self.gaps).astype(np.float64)
        )
        halvings = exponent - exponent[best]
        spread = float(np.abs(halvings).max())
        return mantissa * np.exp(np.maximum(halvings * log_two + ahead * near, _FAR)), (16 + spread) * _GUARD

    def enclosures(self, start: int, stop: int, precision: int) -> list[Enclosure]:
        """Integers around the weights of candidates start, ..., stop - 1 in a common unit; the largest about
        2**precision."""
        gaps = self.gaps[start:stop].tolist()
        counts = [1] * len(gaps) if self.counts is None else [int(count) for count in self.counts[start:stop]]
        decay = {gap: _exp_minus(self.rate * gap, precision) for gap in set(gaps)}
        top = max(count.bit_length() - decay[gap][0] for count, gap in zip(counts, gaps, strict=True))
        found = []
        for count, gap in zip(counts, gaps, strict=True):
            halvings, low, high = decay[gap]
            found.append(((count * low) >> (halvings + top), -((-count * high) >> (halvings + top))))
        return found


def _binary(counts: Ints | list[int]) -> tuple[Floats, Floats]:
    """Mantissas in [1/2, 2] (relative error at most 2**-52) and exponents: count = mantissa * 2**exponent."""
    if isinstance(counts, np.ndarray):
        mantissa, power = np.frexp(counts.astype(np.float64))
        return mantissa, power.astype(np.float64)
    lengths = [max(count.bit_length() - 53, 0) for count in counts]
    leading = [float(count >> length) for count, length in zip(counts, lengths, strict=True)]
    mantissa, power = np.frexp(np.array(leading))
    return mantissa, power + np.array(lengths, dtype=np.float64)


# Enclosures in integers: (low, high) with low <= 2**precision * value <= high. Proofs: section 5 of the proof page.


def _atanh(numerator: int, denominator: int, precision: int) -> Enclosure:
    """atanh(z) for z = numerator / denominator in [0, 1/3]: the sum of z^(2j+1) / (2j+1)."""
    power = (numerator << precision) // denominator
    square = (power * power) >> precision
    total, odd = 0, 1
    while power:
        total += power // odd
        power = (power * square) >> precision
        odd += 2
    return total, total + 2 * odd + 4


@lru_cache(maxsize=64)
def _log_two(precision: int) -> Enclosure:
    """ln 2 = 2 atanh(1/3)."""
    low, high = _atanh(1, 3, precision)
    return 2 * low, 2 * high


def _minus_log(numerator: int, bits: int, precision: int) -> Enclosure:
    """-ln(numerator / 2**bits) for 1 <= numerator <= 2**bits."""
    length = numerator.bit_length() - 1
    low, high = _atanh(numerator - (1 << length), numerator + (1 << length), precision)
    halvings = bits - length
    two_low, two_high = _log_two(precision)
    return halvings * two_low - 2 * high, halvings * two_high - 2 * low


_EXTRA = 24
"""Bits of precision beyond those that are known of U."""


def _waited(known: int, bits: int) -> Enclosure:
    """-ln U for every U that begins with these bits, not all 0, to the precision bits + _EXTRA."""
    precision = bits + _EXTRA
    low, high = _minus_log(known + 1, bits, precision)
    return low, high + (1 << precision) // known + 1  # ln(known + 1) - ln(known) < 1 / known


def _sphere(
    scale: Fraction, dimension: int, points: list[tuple[int, int, int]], waits: list[int], bits: int
) -> list[int] | None:
    """The magnitudes of a spherical vector, of which these bits are known; None if they do not decide all.

    y = 2 scale sqrt(G E / W) (u, v) for two coordinates at a time: (u, v) a point of the disc, W its squared length, E
    a wait; G the sum of the other waits and, for an even dimension, of the E u^2 / W of one more point.
    """
    if not all(waits) or not all(u or v for u, v, _ in points):
        return None
    each = [(max(0, low), high) for low, high in (_waited(known, bits) for known in waits)]
    squares = list[Enclosure]()  # E u^2 / W and E v^2 / W; they and G in units of 2**-(2 bits + _EXTRA)
    for (u, v, _), (low, high) in zip(points, each[: len(points)], strict=True):
        least, most = u * u + v * v, (u + 1) ** 2 + (v + 1) ** 2
        squares += [((low * w * w << bits) // most, (high * (w + 1) ** 2 << bits) // least + 1) for w in (u, v)]
    sums = [(low << bits, high << bits) for low, high in each[len(points) :]] + squares[-2:][: 1 - dimension % 2]
    lows, highs = (sum(ends) for ends in zip(*sums, strict=True))
    twice = 16 * scale**2 / (1 << 2 * (2 * bits + _EXTRA))  # squares of two times the coordinates: halves are integers
    first, second = (
        [(math.isqrt(whole * end[side] * twice.numerator // twice.denominator) + 1) // 2 for end in squares[:dimension]]
        for side, whole in enumerate((lows, highs))
    )
    return first if first == second else None


def _exp_minus(x: Fraction, precision: int) -> tuple[int, int, int]:
    """exp(-x) for x >= 0 as (halvings, low, high): low <= 2**(precision + halvings) * exp(-x) <= high."""
    fine = precision + 2 * math.floor(x + 1).bit_length() + 8
    log_low, log_high = _log_two(fine)
    scaled = (x.numerator << fine) // x.denominator
    halvings = scaled // log_high
    rest_low, rest_high = scaled - halvings * log_high, scaled + 1 - halvings * log_low
    extra = fine - precision
    return halvings, _exp_series(rest_high, fine)[0] >> extra, -((-_exp_series(rest_low, fine)[1]) >> extra)


def _exp_series(rest: int, precision: int) -> Enclosure:
    """exp(-rest / 2**precision) for 0 <= rest <= 2**precision, by its alternating series."""
    total, term, order = 0, 1 << precision, 0
    while term:
        total += -term if order % 2 else term
        order += 1
        term = (term * rest >> precision) // order
    return total - 3 * order, total + 3 * order


# Arguments.


def _check_range(name: str, value: Fraction, low: Fraction, high: Fraction) -> None:
    if not low <= value <= high:
        magnitude = value.numerator.bit_length() - value.denominator.bit_length()  # its digits may be too many to print
        raise OutOfRange(
            f"{name} must lie between 2**{math.log2(low):.0f} and 2**{math.log2(high):.0f} (64-bit integers), "
            f"found about 2**{magnitude}",
            too_much=(value > high) is not (name == "rate"),
        )


def checked_scale(scale: Fraction) -> Fraction:
    """A scale that the samplers take. Mechanisms ask before they are charged: a draw that fails is paid for."""
    scale = exact.positive(scale=scale)
    _check_range("scale", scale, _SMALLEST_SCALE, _LARGEST_SCALE)
    return scale


def checked_variance(variance: Fraction) -> Fraction:
    """A variance that the Gaussian sampler takes."""
    variance = exact.positive(variance=variance)
    _check_range("variance", variance, _SMALLEST_SCALE**2, _LARGEST_SCALE**2)
    return variance


def checked_rate(rate: Fraction) -> Fraction:
    """A rate that `select` and `flips` take."""
    rate = exact.nonnegative(rate=rate)
    if rate:
        _check_range("rate", rate, _SMALLEST_SCALE, 1 / _SMALLEST_SCALE)
    return rate


def _laplace_acceptance(scale: Fraction) -> float:
    return 0.5 + 0.5 * math.exp(-1 / max(float(scale), 1e-3))


def _checked_shape(size: Shape | None) -> tuple[int, ...]:
    if size is None:
        return (1,)
    sizes = size if isinstance(size, tuple) else (size,)
    return tuple(exact.whole(0, size=part) for part in sizes)


def _integer_array(scores: Ints | Sequence[int]) -> Ints:
    values = np.asarray(scores)
    if values.ndim != 1 or (values.size and values.dtype.kind not in "iu"):
        raise ParameterError(f"scores must be a list of integers that fit 64 bits, found {values.dtype} {values.shape}")
    if values.dtype == np.uint64 and values.size and int(values.max()) >= 2**63:
        raise ParameterError("scores must fit signed 64 bits")
    return values.astype(np.int64, copy=False)


def _checked_counts(counts: Ints | Sequence[int], size: int) -> Ints | list[int]:
    if len(counts) != size:
        raise ParameterError(f"counts must match scores: found {len(counts)} counts for {size} scores")
    if isinstance(counts, np.ndarray) and counts.dtype.kind in "iu":
        negative = bool((counts < 0).any())
    else:
        try:
            counts = [operator.index(count) for count in counts]
        except TypeError:
            raise ParameterError("counts must be integers") from None
        negative = any(count < 0 for count in counts)
    if negative:
        raise ParameterError("counts must be >= 0")
    return counts
