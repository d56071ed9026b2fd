"""A quantile of a column by the exponential mechanism over ranks; exact draws and sums on a line of up to 2^62 points.

`Unimodal` draws an integer c with P[c] proportional to exp(-rate * height(c)), for heights that fall and then rise. It
cuts both sides of the best point into segments of doubling length, proposes a segment as if all of it were as likely as
its end next to the best, a uniform point in it, and keeps that with the probability that corrects the excess. The law
is exact, at least every second proposal is kept on average, and there is no limit on their number, for a limit would
bend the law. Proof: docs/proofs/grid_exponential.md.

`ColumnSums` takes one pass over the rows for many points at once: no column is held in memory or sorted.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet.core import Exact, Guarantee, ParameterError, Rng, checked_rate, exact
from discreet.data import AnyNumber, Batch, Dataset, Date, Facts, Ints, Mask, Needs, Number, Timestamp, Whole
from discreet.query import person_range

PowerSums = tuple[int, int, int]  # of some codes: how many, their sum, the sum of their squares
Heights = Callable[[Sequence[int]], list[int]]
Counter = Callable[[Sequence[int]], list[int]]  # how many values lie below each of these codes

_HALF_WORD = 31  # bits: codes are below 2^62, so each is two of these
_BLOCK = 2**20  # rows at a time: sums of half words stay below 2^53 in floats
_FAN = 255  # points that a search looks at in one pass


class Unimodal:
    """Exact draws of an integer in low .. high with P[c] proportional to exp(-rate * height(c)).

    Heights do not rise up to `best` and do not fall after it. A segment is (near, direction, length): near, near +
    direction, ... Its base is the height above the best of its near end, rounded down to 62 bits and a power of two.
    """

    def __init__(self, heights: Heights, best: int, low: int, high: int, rate: Fraction) -> None:
        self.heights, self.rate = heights, rate
        self.segments = [(best, 1, 1), *_doubling(best, high, 1), *_doubling(best, low, -1)]
        found = heights([near for near, _, _ in self.segments])
        self.least = found[0]
        gaps = [height - self.least for height in found]
        self.shift = max(0, max(gaps).bit_length() - 62)
        self.bases = [gap >> self.shift for gap in gaps]
        self._scores = -np.array(self.bases, dtype=np.int64)
        self._lengths = np.array([length for _, _, length in self.segments], dtype=np.int64)

    def attempt(self, rng: Rng) -> int | None:
        """One proposal, if it is kept."""
        place = rng.select(self._scores, self.rate * 2**self.shift, self._lengths)
        near, direction, length = self.segments[place]
        point = near + direction * rng.integers(length)
        excess = self.heights([point])[0] - self.least - (self.bases[place] << self.shift)
        return point if rng.bernoulli_exp(self.rate * excess) else None

    def draw(self, rng: Rng) -> int:
        while (point := self.attempt(rng)) is None:
            pass
        return point


def ranked(below: Counter, wanted: int, points: int, rate: Fraction) -> Unimodal:
    """The law on 0 .. points - 1 whose heights are how far a rank is missed: max(0, below(c) - wanted, wanted -
    below(c + 1)), below(c) being how many values lie below c, each as often as `wanted` counts it."""

    def enough(codes: Sequence[int]) -> list[bool]:
        return [upto >= wanted for upto in below([code + 1 for code in codes])]

    def heights(codes: Sequence[int]) -> list[int]:
        ends = below([end for code in codes for end in (code, code + 1)])
        return [max(0, less - wanted, wanted - upto) for less, upto in zip(ends[::2], ends[1::2], strict=True)]

    return Unimodal(heights, first(0, points - 1, enough), 0, points - 1, rate)


def _doubling(best: int, end: int, direction: int) -> list[tuple[int, int, int]]:
    """The points from best (without it) to end, at distances 1, 2-3, 4-7, ..."""
    segments, distance, last = [], 1, abs(end - best)
    while distance <= last:
        segments.append((best + direction * distance, direction, min(distance, last - distance + 1)))
        distance *= 2
    return segments


def first(low: int, high: int, holds: Callable[[Sequence[int]], list[bool]]) -> int:
    """The least of low .. high at which a condition holds that, once it holds, goes on to hold; high if none before."""
    while low < high:
        width = high - low  # of the candidates before high
        tried = sorted({low + width * step // (_FAN + 1) for step in range(_FAN + 1)})
        found = holds(tried)
        passed = found.index(True) if True in found else len(tried)
        high = tried[passed] if passed < len(tried) else high
        low = tried[passed - 1] + 1 if passed else low
    return low


def rank_needs(points: int) -> Needs:
    """Of a search among these points, the height of each segment, and about two proposals."""
    searched = -(-max(1, points.bit_length()) // _FAN.bit_length())
    return Needs(functions=True, passes=searched + 4)


class ColumnSums:
    """Power sums of the codes below any end, from passes over the rows; what was learned once is remembered.

    chosen  of which rows; all without it
    """

    def __init__(
        self, data: Dataset, name: str, degree: int, size: int, chosen: Callable[[Batch], Mask] | None = None
    ) -> None:
        self.data, self.name, self.degree, self.chosen = data, name, degree, chosen
        self.known: dict[int, PowerSums] = {}
        self.size = size  # codes from here on are missing values
        self.learn(())

    def below(self, end: int) -> PowerSums:
        return self.known[min(max(end, 0), self.size)]

    def counts(self, ends: Sequence[int]) -> list[int]:
        """How many codes lie below each of these."""
        self.learn(ends)
        return [self.below(end)[0] for end in ends]

    def learn(self, ends: Iterable[int]) -> None:
        """One pass for all the ends that are not known yet."""
        wanted = {min(max(end, 0), self.size) for end in (*ends, self.size)} - self.known.keys()
        if not wanted:
            return
        cuts = np.array(sorted(wanted), dtype=np.int64)
        cut = functools.partial(_cut, name=self.name, degree=self.degree, chosen=self.chosen, cuts=cuts)
        sums = self.data.exact_sum(cut).cumsum(axis=1)
        for place, end in enumerate(cuts.tolist()):
            self.known[end] = self._joined([int(each) for each in sums[:, place]])

    def _joined(self, sums: list[int]) -> PowerSums:
        sums = [*sums, *[0] * (max(_LINES) - len(sums))]
        total, low, both, high = (sums[place] + (sums[place + 1] << _HALF_WORD) for place in (1, 3, 5, 7))
        return sums[0], total, low + (both << (_HALF_WORD + 1)) + (high << (2 * _HALF_WORD))


def _cut(batch: Batch, *, name: str, degree: int, chosen: Callable[[Batch], Mask] | None, cuts: Ints) -> Ints:
    """Sums of the half words of codes and squares between the cuts, one line for each kind."""
    codes = batch[name] if chosen is None else batch[name][chosen(batch)]
    total = np.zeros((_LINES[degree], len(cuts) + 1), dtype=np.int64)
    for start in range(0, len(codes), _BLOCK):
        part = codes[start : start + _BLOCK]
        place = np.searchsorted(cuts, part, side="right")
        for line, words in enumerate(_words(part, degree)):
            total[line] += np.bincount(place, words, minlength=total.shape[1]).astype(np.int64)
    return total


_LINES = (1, 3, 9)  # how many sums of half words the moments up to this degree need


def _words(codes: Ints, degree: int) -> Iterable[Ints | None]:
    """Half words (below 2^31) whose sums are the count, the sum and the sum of squares, in the order of `_joined`."""
    yield None
    if degree == 0:
        return
    mask = (1 << _HALF_WORD) - 1
    low, high = codes & mask, codes >> _HALF_WORD
    yield from (low, high)
    if degree == 2:
        for product in (low * low, low * high, high * high):
            yield from (product & mask, product >> _HALF_WORD)


@dataclass(frozen=True, slots=True, init=False)
class RankQuantile:
    """Release a value of a column's grid that is near its q-quantile in rank. Rows where it is missing do not count.

    Theorem.   The height of w is by how many rows it misses: max(0, #{x < w} - q n, q n - #{x <= w}), n the number of
               rows, private or not. One row's replacement changes all heights by at most 1 up or down, its addition by
               at most max(q, 1 - q). So with r = 2 (replace-one) or 2 max(q, 1 - q) (add-remove), k times that for a
               person of k rows, the release has bounded range rate * r: (rate * r)-DP, ((rate * r)^2 / 8)-zCDP.
    Accuracy.  P[w misses by x rows or more] <= (points of the grid / points that miss by 0) * exp(-rate x).
    Edges.     A value that many rows share is as good a quantile as any between them. No rows: uniform on the grid.
    Reference. Lecture 9, the median; [Smi11]; docs/proofs/grid_exponential.md.
    """

    NAME: ClassVar[str] = "rank-quantile/1"
    column: str
    q: Fraction
    rate: Fraction

    def __init__(self, column: str, q: Exact, rate: Exact) -> None:
        exact.freeze(self, column=exact.text(column=column), q=exact.probability(q=q), rate=exact.positive(rate=rate))

    def guarantee(self, facts: Facts) -> Guarantee:
        self._number(facts)
        part, whole = self.q.numerator, self.q.denominator
        step = checked_rate(self.rate / whole)
        checked_rate(step * whole * facts.rows_bound)
        span = step * person_range(facts.neighbours, added=2 * max(part, whole - part), replaced=2 * whole)
        return Guarantee.of_bounded_range(span, neighbours=facts.neighbours)

    def needs(self, facts: Facts) -> Needs:
        return rank_needs(self._number(facts).points)

    def run(self, data: Dataset, rng: Rng) -> float:
        return float(self._number(data.facts).value(self.sampler(data).draw(rng)))

    def sampler(self, data: Dataset) -> Unimodal:
        """The exact law on these rows. Not private: for the inside of `run`, and for audits on made-up rows."""
        size = self._number(data.facts).points
        part, whole = self.q.numerator, self.q.denominator
        column = ColumnSums(data, self.column, 0, size)
        wanted = part * column.below(size)[0]
        return ranked(lambda codes: [whole * rows for rows in column.counts(codes)], wanted, size, self.rate / whole)

    def among(self, counts: Ints, rng: Rng) -> int:
        """The place of the quantile among ordered classes of so many rows each: the same law and price on these."""
        part, whole = self.q.numerator, self.q.denominator
        upto = counts.cumsum()
        wanted = part * int(upto[-1])
        heights = np.maximum(0, np.maximum(whole * (upto - counts) - wanted, wanted - whole * upto))
        return rng.select(-heights, self.rate / whole)

    def _number(self, facts: Facts) -> Number | Date | Timestamp | AnyNumber | Whole:
        column = facts.domain.column(self.column)
        if not column.ordered or not column.coded:
            raise ParameterError(f"column {self.column!r} is declared {column!r}: a quantile needs a Number")
        return column
