"""Conjunctions of literals: by counting, and by the exponential mechanism over all of them.

    deletion(X, y)      the lecture's algorithm without privacy: keep the literals that no positive example falsifies
    NoisyCounts         the lecture's private version: Laplace noise on the 2d counts
    GaussianCounts      the same question through d + 1 numbers, with Gaussian noise
    LaplaceCounts       the same with Laplace noise, for delta = 0
    AllConjunctions     the exact exponential mechanism over all conjunctions of at most k literals

Counting: which literals do positive examples falsify? Lecture 12, take 1, and better. Every row of label 1 falsifies
exactly one of v and not v, so the two counts of a variable add up to the number N of positives: d differences
s_i = #{x_i = 1} - #{x_i = 0} among the positives and N say as much as 2d counts,

    2 #(v_i falsified) = N - s_i        2 #(not v_i falsified) = N + s_i,

and one person moves them less. The code counts in halves of a row, so that all of these are integers.

All of them: the class has sum over j <= k of C(d, j) 2^j conjunctions of literals of distinct variables, and the rule
that is never true. What is needed of each is one integer, its mistakes; these are found without visiting rows once a
conjunction:

1. The rows are packed, 64 to a word, negatives apart from positives. For a set S of variables let A(S) be the number
   of negatives minus the number of positives where all of S are true: one AND and one population count of n/64 words,
   for all sets {.., i} that differ in the last variable i at once.
2. Signs cost no words: A with v_i negated is A without v_i minus A with v_i. So the 2^j conjunctions over one set of
   variables follow from the A of its subsets, which are kept for all sets of fewer than k variables.
3. A conjunction's mistakes are its negatives minus its positives plus all positives.

First it is counted how many conjunctions make each number of mistakes; such a number is drawn, exactly, and then one of
its conjunctions, uniformly: it is found by going again through the part of the list where it is.
Proofs: docs/proofs/conjunctions.md.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, TypeVar

import numpy as np

from discreet.core import Exact, Funds, ParameterError, exact
from discreet.data import (
    WORD,
    Batch,
    Dataset,
    Domain,
    Facts,
    IntArray,
    Ints,
    Mask,
    Needs,
    Words,
    packed,
    refuse_to_leave,
    unpacked,
)
from discreet.mechanisms import (
    Guarantee,
    LaplaceNoise,
    Rng,
    Sensitivity,
    calibrate,
    checked_scale,
    checked_variance,
    gaussian_reach,
    of_persons,
    wrong_rows,
)
from discreet.method import Method, Methods
from discreet.pac.finite import CHECKED, FiniteClass, empirical_size, selection_price
from discreet.pac.rules import Conjunction, Labels, Literals

Variables = tuple[int, ...]

NEVER = (0, 1)
"""The rule that is never true: v1 and not v1."""

MOST = 2 * 10**9
"""The largest number of conjunctions that are gone through."""

PATIENCE = 3600.0
"""The largest number of estimated seconds."""

_SET, _CONJUNCTION, _READ = 6e-5, 8e-9, 1.8e-9
"""Seconds for one set of variables but the last, for one conjunction, for one word of 64 rows: measured, rounded up."""

_HISTOGRAMS = 2**22  # numbers kept to find the chosen conjunction again
_PARTS = 64
_BUFFER = 2**18
_CACHED = 2**15  # words that are worked on together
_UNPACKED = 2**24  # bits taken apart at a time

Counts = TypeVar("Counts", "GaussianCounts", "LaplaceCounts")

LECTURE, COUNTS, EXACT = "lecture-counts", "counts", "exact"

_FARTHEST = 2**60  # thresholds beyond any count


def deletion(X: object, y: object) -> tuple[int, ...]:  # noqa: N803 - the name that users of feature matrices expect
    """The literals that no positive example falsifies, numbered 2 i (variable i) and 2 i + 1 (its negation).

    NOT PRIVATE: lecture 12's algorithm to compare with. If some conjunction labels all rows right, so does the
    conjunction of the result: it has all of that one's literals, and no positive example falsifies any of it.
    """
    positives = np.asarray(X, dtype=bool)[np.asarray(y, dtype=bool)]
    always = np.stack([positives.all(axis=0), ~positives.any(axis=0)], axis=1)
    return _numbers(always.reshape(-1))


def _numbers(kept: Mask) -> tuple[int, ...]:
    return tuple(np.flatnonzero(kept).tolist())


@dataclass(frozen=True, slots=True)
class FalsifiedLiterals:
    """For each of the 2d literals the number of positive rows that falsify it.

    Theorem.   A positive row falsifies exactly d literals, one of each variable; a negative one counts for none.
               add-remove: |d|_1 = |d|_2^2 = d, |d|_inf = range = 1. replace-one: |d|_1 = |d|_2^2 = 2d, |d|_inf = 1,
               range = 2, attained by a positive row and its complement.
    """

    literals: Literals
    labels: Labels

    @property
    def monotone(self) -> bool:
        return True

    def partial(self, batch: Batch) -> IntArray:
        return np.asarray(self.literals.falsified(batch, (self.labels.mask(batch),))[0])

    def sensitivity(self, facts: Facts) -> Sensitivity:
        d = check_problem(self.literals, self.labels, facts.domain)
        added, replaced = Sensitivity(d, d, 1, 1), Sensitivity(2 * d, 2 * d, 1, 2)
        return of_persons(facts.neighbours, added=added, replaced=replaced)

    def unit(self, facts: Facts) -> Fraction:
        return Fraction(1)


@dataclass(frozen=True, slots=True)
class NoisyCounts:
    """Release the literals that few positive rows falsify: discrete Laplace noise of this scale on each of the 2d
    counts, and a literal is deleted if its noisy count is above the threshold.

    The release is a tuple of literal numbers, increasing; a variable and its negation together are never true.

    Theorem.   The 2d counts have L1 sensitivity d (add-remove) or 2d (replace-one), m times that for a person of m
               rows: (that / scale)-DP. The lecture's Lap(2d/epsilon) is exact for replace-one and twice too much for
               add-remove.
    Accuracy.  `lecture_size`: with the threshold `lecture_threshold`, on rows that some conjunction explains, at most
               4 d threshold positives are labelled wrong and no negative, with probability 1 - beta.
    Edges.     No positives: every count is 0 and all literals are likely to be kept: never. Thresholds are rational;
               comparisons are exact.
    Reference. Lecture 12, take 1; docs/proofs/conjunctions.md.
    """

    NAME: ClassVar[str] = "noisy-counts/1"
    literals: Literals
    labels: Labels
    scale: Fraction
    threshold: Fraction

    def __post_init__(self) -> None:
        exact.convert(self, scale=exact.positive, threshold=_threshold)

    def guarantee(self, facts: Facts) -> Guarantee:
        moved = FalsifiedLiterals(self.literals, self.labels).sensitivity(facts)
        return Guarantee.of_laplace(moved.l1, scale=checked_scale(self.scale), neighbours=facts.neighbours)

    def needs(self, facts: Facts) -> Needs:
        return Needs(functions=True)

    def run(self, data: Dataset, rng: Rng) -> tuple[int, ...]:
        counts = data.exact_sum(FalsifiedLiterals(self.literals, self.labels))
        noisy = counts + rng.laplace(self.scale, len(counts))
        return _numbers(noisy <= math.floor(self.threshold))


@dataclass(frozen=True, slots=True)
class CentredLiterals:
    """For each variable among the positive rows: where it is true minus where it is false; then the number of them.

    Theorem.   Adding a positive row moves each of the d differences and the number by 1; replacing one positive row by
               another moves differences by 0 or 2 and the number not; a positive by a negative: as removing it.
    """

    literals: Literals
    labels: Labels

    def partial(self, batch: Batch) -> IntArray:
        falsified = self.literals.falsified(batch, (self.labels.mask(batch),))[0]
        return np.append(falsified[1::2] - falsified[0::2], falsified[0] + falsified[1])

    def kept(self, data: Dataset, noise: IntArray, total_noise: int, threshold: Fraction) -> tuple[int, ...]:
        """The literals whose noisy count, (N -+ s_i) / 2, is not above the threshold."""
        sums = data.exact_sum(self)
        differences, rest = sums[:-1] + noise, int(sums[-1]) + total_noise - math.floor(2 * threshold)
        return _numbers(np.stack([differences >= rest, differences <= -rest], axis=1).reshape(-1))


@dataclass(frozen=True, slots=True)
class GaussianCounts:
    """Release the literals that few positive rows falsify: discrete Gaussian noise of these variances on the d
    differences s_i and on the number N of positives; a literal is deleted if its noisy count (N -+ s_i) / 2 is above
    the threshold.

    The release is a tuple of literal numbers, increasing; a variable and its negation together are never true.

    Theorem.   With v = variance, w = total_variance: add-remove is rho-zCDP with rho = d/(2v) + 1/(2w), replace-one
               with rho = max(2d/v, d/(2v) + 1/(2w)), m^2 times that for a person of m rows. (For replace-one w = v/(3d)
               is free; for add-remove about w = v/(2 sqrt d) is best.)
    Accuracy.  `tuned`: with its threshold, on rows that some conjunction of at most k literals explains, with
               probability 1 - beta no negative is labelled wrong, and at most about d (z sqrt(v + w) + 0.8 sqrt v) / 2
               positives, z the quantile of beta/(2k).
    Edges.     As for NoisyCounts.
    Reference. Lecture 12, take 1; [CKS20]; docs/proofs/conjunctions.md.
    """

    NAME: ClassVar[str] = "gaussian-counts/1"
    literals: Literals
    labels: Labels
    variance: Fraction
    total_variance: Fraction
    threshold: Fraction

    def __post_init__(self) -> None:
        exact.convert(self, variance=exact.positive, total_variance=exact.positive, threshold=_threshold)

    @classmethod
    def balanced(cls, literals: Literals, labels: Labels, variance: Fraction, facts: Facts) -> GaussianCounts:
        """The variance of the total that goes with this one; threshold 0."""
        d = literals.variables(facts.domain)
        ratio = 3 * d if facts.neighbours.replace_one else math.isqrt(4 * d)
        return cls(literals, labels, variance, variance / ratio, Fraction(0))

    def guarantee(self, facts: Facts) -> Guarantee:
        d = check_problem(self.literals, self.labels, facts.domain)
        variance, total = checked_variance(self.variance), checked_variance(self.total_variance)
        added = d / (2 * variance) + 1 / (2 * total)
        rho = max(2 * d / variance, added) if facts.neighbours.replace_one else added
        return Guarantee.of_zcdp(rho * facts.neighbours.rows**2, neighbours=facts.neighbours)

    def needs(self, facts: Facts) -> Needs:
        return Needs(functions=True)

    def run(self, data: Dataset, rng: Rng) -> tuple[int, ...]:
        query, d = CentredLiterals(self.literals, self.labels), self.literals.variables(data.facts.domain)
        return query.kept(data, rng.gaussian(self.variance, d), rng.gaussian(self.total_variance), self.threshold)

    def margin(self, probability: float) -> int:
        """An integer that the noise of a doubled count reaches with at most this probability < 1/2.

        Theorem.   A discrete Gaussian of variance v is stochastically below N(0, v) + 1, so the two noises together are
                   below N(0, v + w) + 2.
        """
        from scipy.special import ndtri

        reached = -float(ndtri(probability)) * math.sqrt(self.variance + self.total_variance)
        return 2 + math.ceil(reached * (1 + CHECKED))

    def total_margin(self, probability: float) -> int:
        """An integer that the noise of the total reaches with at most this probability < 1/2."""
        return gaussian_reach(math.sqrt(self.total_variance), math.log(probability))

    def sum_margin(self, d: int, probability: float) -> int:
        """A bound on the absolute noises of d differences together, but for this probability.

        Theorem.   |noise| is stochastically below |N(0, v)| + 1, and d of these normal variables, a function of slope
                   sqrt d, exceed their mean d sqrt(2 v / pi) by sqrt(2 v d ln(1/p)) with probability at most p.
        """
        spread = d * math.sqrt(2 / math.pi) + math.sqrt(-2 * d * math.log(probability))
        return d + math.ceil(math.sqrt(self.variance) * spread * (1 + CHECKED))


@dataclass(frozen=True, slots=True)
class LaplaceCounts:
    """The same as GaussianCounts with discrete Laplace noise of these scales: pure.

    Theorem.   With b = scale, c = total_scale: add-remove is (d/b + 1/c)-DP, replace-one max(2d/b, d/b + 1/c)-DP, m
               times that for a person of m rows. At c = b these are half of the noise of NoisyCounts. (For replace-one
               c = b/d is free.)
    Accuracy.  `tuned`, as for GaussianCounts, with this noise's margins.
    Edges.     As for NoisyCounts. total_scale <= scale / 2, which every good choice satisfies.
    Reference. Lecture 12, take 1; docs/proofs/conjunctions.md.
    """

    NAME: ClassVar[str] = "laplace-counts/1"
    literals: Literals
    labels: Labels
    scale: Fraction
    total_scale: Fraction
    threshold: Fraction

    def __post_init__(self) -> None:
        given = f"{self.total_scale!r} and {self.scale!r}"
        exact.convert(self, scale=exact.positive, total_scale=exact.positive, threshold=_threshold)
        if 2 * self.total_scale > self.scale:
            raise ParameterError(f"total_scale must be at most scale / 2, found {given}")

    @classmethod
    def balanced(cls, literals: Literals, labels: Labels, scale: Fraction, facts: Facts) -> LaplaceCounts:
        """The scale of the total that goes with this one; threshold 0."""
        d = literals.variables(facts.domain)
        ratio = max(2, d if facts.neighbours.replace_one else round((d / 4) ** (1 / 3)))
        return cls(literals, labels, scale, scale / ratio, Fraction(0))

    def guarantee(self, facts: Facts) -> Guarantee:
        d = check_problem(self.literals, self.labels, facts.domain)
        scale, total = checked_scale(self.scale), checked_scale(self.total_scale)
        added = d / scale + 1 / total
        epsilon = max(2 * d / scale, added) if facts.neighbours.replace_one else added
        return Guarantee.of_pure(epsilon * facts.neighbours.rows, neighbours=facts.neighbours)

    def needs(self, facts: Facts) -> Needs:
        return Needs(functions=True)

    def run(self, data: Dataset, rng: Rng) -> tuple[int, ...]:
        query, d = CentredLiterals(self.literals, self.labels), self.literals.variables(data.facts.domain)
        return query.kept(data, rng.laplace(self.scale, d), rng.laplace(self.total_scale), self.threshold)

    def margin(self, probability: float) -> int:
        """An integer that the noise of a doubled count reaches with at most this probability < 1/2.

        Theorem.   Discrete Laplace noise of scale b is stochastically below a Laplace variable + 1; two of scales b > c
                   together reach t + 2 with probability at most b^2 e^(-t/b) / (2 (b^2 - c^2)).
        """
        larger = 1 / (1 - (self.total_scale / self.scale) ** 2)
        return 2 + math.ceil(float(self.scale) * math.log(float(larger) / (2 * probability)) * (1 + CHECKED))

    def total_margin(self, probability: float) -> int:
        """An integer that the noise of the total reaches with at most this probability < 1/2."""
        return LaplaceNoise(self.total_scale).reach(math.log(probability))

    def sum_margin(self, d: int, probability: float) -> int:
        """A bound on the absolute noises of d differences together, but for this probability.

        Theorem.   |noise| is stochastically below an exponential variable of mean b plus 1, and d of these add up to a
                   Gamma variable.
        """
        from scipy.special import gammainccinv

        return d + math.ceil(float(self.scale) * float(gammainccinv(d, probability)) * (1 + CHECKED))


def _threshold(threshold: Exact) -> Fraction:
    number = exact.nonnegative(threshold=threshold)
    if number >= _FARTHEST:
        raise ParameterError(f"threshold must be below 2**60, found {exact.shown(number)}")
    return number


def check_problem(literals: Literals, labels: Labels, domain: Domain, k: int = 1) -> int:
    """The number of variables, if these are variables and labels of the domain and k is at most that."""
    literals.check(domain)
    labels.check(domain)
    variables = literals.variables(domain)
    if exact.whole(k=k) > variables:
        raise ParameterError(f"k must be at most the number of variables, {variables}; found {k}")
    return variables


# All conjunctions.


def conjunctions(variables: int, k: int) -> int:
    """How many conjunctions of at most k literals of distinct variables there are, with the one that is never true."""
    return sum(math.comb(variables, j) << j for j in range(k + 1)) + 1


@dataclass(frozen=True, slots=True)
class Estimate:
    """What going through all conjunctions takes: public numbers only.

    words    words of 64 rows that are read; None if the number of rows is private and none is declared
    seconds  a rough guess on an ordinary core; without the words if they are not known
    """

    conjunctions: int
    variables: int
    words: int | None
    seconds: float

    def __str__(self) -> str:
        read = "an unknown number of words" if self.words is None else f"{_short(self.words)} words of {WORD} rows"
        units = (("years", 31_557_600.0), ("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0))
        times = (f"{self.seconds / length:,.0f} {unit}" for unit, length in units if self.seconds >= 2 * length)
        time = next(times, f"{self.seconds:.1f} s")
        return f"{_short(self.conjunctions)} conjunctions of {self.variables} variables, {read}, about {time}"


def _short(number: int) -> str:
    if number < 10**6:
        return f"{number:,}"
    return f"about {exact.shown(Fraction(f'{number:.2e}'))}" if number < 10**300 else exact.shown(Fraction(number))


def estimate(variables: int, k: int, facts: Facts) -> Estimate:
    """The work for conjunctions of at most k of this number of variables."""
    count = conjunctions(variables, k)
    nodes = sum(math.comb(variables - 1, j) for j in range(k))
    sets = sum(math.comb(variables, j) for j in range(1, k + 1))
    words = None if facts.size is None else sets * (-(-facts.size * facts.neighbours.rows // WORD) + 1)
    costs = ((nodes, _SET), (count, _CONJUNCTION), (words or 0, _READ))
    seconds = sum(cost * times if times < 10**300 else math.inf for times, cost in costs)
    return Estimate(count, variables, words, seconds)


PROGRESS: ContextVar[Callable[[Estimate, int], None]] = ContextVar("progress", default=lambda expected, done: None)
"""Called during a run with its estimate and the number of conjunctions since the last call: public numbers only."""


@dataclass(frozen=True, slots=True)
class AllConjunctions:
    """Release a conjunction of at most k literals of distinct variables, or "never", by the exponential mechanism:
    with probability proportional to exp(-rate * number of rows that it labels wrong).

    The release is a tuple of literal numbers (2 i: variable i, 2 i + 1: its negation), increasing; () is always true,
    (0, 1) never.

    Theorem.   One row's addition changes all numbers of mistakes by 0 or 1, its replacement by -1, 0 or 1, so with r =
               1 (add-remove) or 2 (replace-one), m times that for a person of m rows, the release has bounded range
               rate * r: it is (rate * r)-DP and ((rate * r)^2 / 8)-zCDP.
    Accuracy.  `pac.finite.empirical_size` and its companions with |C| = `conjunctions(d, k)`: on rows that some
               conjunction of the class explains, n >= ln(|C| / beta) / (rate alpha) make the error at most alpha with
               probability 1 - beta; on any rows the best is missed by at most ln(|C| / beta) / rate mistakes. (Lecture
               12 writes ln d^k for ln |C|, which forgets the signs.)
    Edges.     All d variables of all rows are held in memory, packed: d n / 8 bytes (twice that while they are
               gathered). More than MOST conjunctions, or more than PATIENCE seconds by the public `estimate`, are
               refused before the charge. The second look through the list takes a time that depends on the rows.
    Reference. Lecture 12, step 0; docs/proofs/conjunctions.md.
    """

    NAME: ClassVar[str] = "all-conjunctions/1"
    literals: Literals
    labels: Labels
    k: int
    rate: Fraction

    def __post_init__(self) -> None:
        exact.convert(self, k=exact.whole, rate=exact.positive)

    def guarantee(self, facts: Facts) -> Guarantee:
        check_problem(self.literals, self.labels, facts.domain, self.k)
        expected = self.estimate(facts)
        if expected.conjunctions > MOST or expected.seconds > PATIENCE:
            raise ParameterError(
                f"going through all conjunctions is refused: {expected}. The limits are {MOST:,} conjunctions and "
                f"about {PATIENCE:.0f} s: take a smaller k, fewer variables or another method"
            )
        return selection_price(self.rate, facts)

    def estimate(self, facts: Facts) -> Estimate:
        """What a run takes, from public numbers."""
        return estimate(self.literals.variables(facts.domain), self.k, facts)

    def needs(self, facts: Facts) -> Needs:
        return Needs(functions=True, gathers=-(-(self.literals.variables(facts.domain) + 1) // 8) + 1)

    def run(self, data: Dataset, rng: Rng) -> tuple[int, ...]:
        rows = PackedRows.of(data, self.literals, self.labels)
        everything = Listing(rows, self.k, functools.partial(PROGRESS.get(), self.estimate(data.facts)))
        levels, counts = everything.histogram()
        level = int(levels[rng.select(-levels, self.rate, counts)])
        return everything.conjunction(level, rng.integers(everything.having(level)))


class PackedRows:
    """All rows packed by variable, negatives first: lines of words. Private; for the inside of `run`."""

    __slots__ = ("_both", "_ones", "_split", "lines", "negatives", "positives")

    def __init__(self, negative: Words, positive: Words, *, negatives: int, positives: int) -> None:
        self.lines = np.concatenate([negative, positive], axis=1)
        self.negatives, self.positives, self._split = negatives, positives, negative.shape[1]
        together = max(1, _CACHED // max(1, self.lines.shape[1]))
        self._both = np.empty((together, self.lines.shape[1]), dtype=np.uint64)
        self._ones = np.empty(self._both.shape, dtype=np.uint8)

    @staticmethod
    def of(data: Dataset, literals: Literals, labels: Labels) -> PackedRows:
        """Gathered in no promised order; the last line says of each word its label and how many rows it holds."""
        words = data.exact_gather(functools.partial(_packed_by_label, literals, labels))
        label, rows = (words[-1] & np.uint64(1)).astype(bool), (words[-1] >> np.uint64(1)).astype(np.int64)
        negatives, positives = int(rows[~label].sum()), int(rows[label].sum())
        return PackedRows(words[:-1, ~label], words[:-1, label], negatives=negatives, positives=positives)

    def differences(self, first: int, within: Words | None) -> Ints:
        """For each variable from `first` on: negatives minus positives where it is true, among the rows `within`."""
        differences = np.empty(len(self.lines) - first, dtype=np.int64)
        together = len(self._both)
        for start in range(0, len(differences), together):
            part = self.lines[first + start : first + start + together]
            if within is not None:
                part = np.bitwise_and(part, within, out=self._both[: len(part)])
            ones = np.bitwise_count(part, out=self._ones[: len(part)])
            positive = ones[:, self._split :].sum(axis=1, dtype=np.int64)
            differences[start : start + together] = ones[:, : self._split].sum(axis=1, dtype=np.int64) - positive
        return differences

    def __repr__(self) -> str:
        return "PackedRows(private rows)"

    __reduce_ex__ = refuse_to_leave


def _packed_by_label(literals: Literals, labels: Labels, batch: Batch) -> Words:
    """Words of negative rows, then of positive ones; below them a line of 2 (rows in the word) + (1 if positive)."""
    positive, lines, parts = labels.mask(batch), literals.bits(batch), list[Words]()
    for label, wanted in enumerate((~positive, positive)):
        taken = _take_rows(lines, wanted)
        rows = np.full(taken.shape[1], WORD, dtype=np.uint64)
        rows[-1:] = np.count_nonzero(wanted) - WORD * (taken.shape[1] - 1)
        parts.append(np.vstack([taken, 2 * rows + np.uint64(label)]))
    return np.concatenate(parts, axis=1)


def _take_rows(lines: Words, wanted: Mask) -> Words:
    """The bits of the wanted rows, packed again."""
    places = np.flatnonzero(wanted)
    words = np.empty((len(lines), -(-len(places) // WORD)), dtype=np.uint64)
    together = max(1, _UNPACKED // max(1, len(wanted)))
    for first in range(0, len(lines), together):
        bits = unpacked(lines[first : first + together], len(wanted))
        words[first : first + together] = packed(bits[:, places])
    return words


@dataclass(frozen=True, slots=True)
class _Node:
    """A set of variables, increasing; its subsets, first those with the last variable; the rows where all are true.

    sizes, ranks  of each subset: how many variables, and its place among the sets of that size
    rows          None: all rows
    """

    variables: Variables
    sizes: Ints
    ranks: Ints
    rows: Words | None


class Listing:
    """All conjunctions, in a fixed order, with their numbers of mistakes on these rows.

    The list is: always, never; then for j = 1 .. k, for every set T of j - 1 variables in lexicographic order a block
    of the conjunctions over T and one later variable i. Within a block the sign of i is slowest, then the signs of T
    (bit b set: variable T[b] is negated), then i.
    """

    def __init__(self, rows: PackedRows, k: int, progress: Callable[[int], None]) -> None:
        self._rows, self._k, self._progress = rows, k, progress
        self._d = len(rows.lines)
        self._binomials = np.array(
            [[math.comb(i, size) if size < k else 0 for i in range(self._d)] for size in range(k + 1)], dtype=np.int64
        )
        sizes = [math.comb(self._d, size) for size in range(k)]
        self._offsets = np.array([0, *itertools.accumulate(sizes)], dtype=np.int64)
        self._kept = np.zeros(sum(sizes), dtype=np.int64)
        self._kept[0] = rows.negatives - rows.positives
        self._levels = rows.negatives + rows.positives + 1
        self._parts: list[tuple[int, Ints]] = []

    def histogram(self) -> tuple[Ints, Ints]:
        """The numbers of mistakes that occur, and how many conjunctions have each."""
        if not self._parts:
            self._parts = list(self._count())
        counts = np.sum([part for _, part in self._parts], axis=0)
        levels = np.flatnonzero(counts)
        return levels, counts[levels]

    def having(self, level: int) -> int:
        """The number of conjunctions that make this number of mistakes."""
        return sum(int(part[level]) for _, part in self._parts)

    def conjunction(self, level: int, place: int) -> tuple[int, ...]:
        """The conjunction at this place among those that make this number of mistakes."""
        start = 0
        for stop, part in self._parts:
            if place < part[level]:
                break
            place -= int(part[level])
            start = stop
        for number, (variables, mistakes) in enumerate(self._blocks(start)):
            assert start + number < stop
            hits = np.flatnonzero(mistakes == level)
            if place < len(hits):
                return self._literals(variables, int(hits[place]))
            place -= len(hits)
        raise AssertionError("the list has as many conjunctions as were counted")

    def _count(self) -> Iterator[tuple[int, Ints]]:
        """Histograms of consecutive parts of the list, with the number of the block that each ends before."""
        parts = max(1, min(_PARTS, _HISTOGRAMS // self._levels))
        share = -(-conjunctions(self._d, self._k) // parts)
        counts, nothing = np.zeros(self._levels, dtype=np.int64), np.zeros(0, dtype=np.int64)
        waiting, size, seen, number = [nothing], 0, 0, 0
        for number, (_, mistakes) in enumerate(self._blocks(0), start=1):
            waiting.append(mistakes)
            self._progress(len(mistakes))
            size, seen = size + len(mistakes), seen + len(mistakes)
            if seen >= share or size > max(_BUFFER, self._levels):  # a block is short beside the number of levels
                counts += np.bincount(np.concatenate(waiting), minlength=self._levels)
                waiting, size = [nothing], 0
            if seen >= share:
                yield number, counts
                counts, seen = np.zeros_like(counts), 0
        yield number, counts + np.bincount(np.concatenate(waiting), minlength=self._levels)

    def _blocks(self, start: int) -> Iterator[tuple[Variables | None, Ints]]:
        """The blocks from number `start` on, flat; None stands for the first one, always and never."""
        if start == 0:
            yield None, np.array([self._rows.negatives, self._rows.positives], dtype=np.int64)
        number = 1
        for size in range(self._k):
            for node in self._nodes(size, start - number):
                yield node.variables, self._mistakes(node)
            number += math.comb(self._d - 1, size)

    def _nodes(self, size: int, skipped: int) -> Iterator[_Node]:
        """The sets of this size that a later variable can be added to, without the first `skipped`."""
        path = [_Node((), np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), None)]
        sets = itertools.combinations(range(self._d - 1), size)
        for variables in itertools.islice(sets, max(0, skipped), None):
            differ = (
                place
                for place, pair in enumerate(zip(path[-1].variables, variables, strict=False))
                if pair[0] != pair[1]
            )
            del path[next(differ, len(path) - 1) + 1 :]
            for variable in variables[len(path) - 1 :]:
                node, line = path[-1], self._rows.lines[variable]
                sizes = np.concatenate([node.sizes + 1, node.sizes])
                ranks = np.concatenate([node.ranks + self._binomials[node.sizes + 1, variable], node.ranks])
                both = line if node.rows is None else line & node.rows
                path.append(_Node((*node.variables, variable), sizes, ranks, both))
            yield path[-1]

    def _mistakes(self, node: _Node) -> Ints:
        """The mistakes of all conjunctions over these variables and one later variable."""
        size, later = len(node.variables), node.variables[-1] + 1 if node.variables else 0
        table = np.empty((len(node.ranks), 1 + self._d - later), dtype=np.int64)
        table[:, 0] = self._kept[self._offsets[node.sizes] + node.ranks]
        table[0, 1:] = self._rows.differences(later, node.rows)
        if size + 1 < self._k:
            self._kept[self._offsets[size + 1] + node.ranks[0] + self._binomials[size + 1, later:]] = table[0, 1:]
        sizes = node.sizes[1:] + 1
        with_last = (self._offsets[sizes] + node.ranks[1:])[:, None] + self._binomials[sizes, later:]
        np.take(self._kept, with_last, out=table[1:, 1:])
        # From subsets to signs: line s holds what is true of the variables whose bit in s is 0; afterwards the
        # variables whose bit is 1 are negated instead of left out.
        for bit in range(size):
            halves = table.reshape(-1, 2, 1 << bit, table.shape[1])
            halves[:, 1] -= halves[:, 0]
        table[:, :1] += self._rows.positives
        mistakes = np.empty((2, len(table), table.shape[1] - 1), dtype=np.int64)
        np.subtract(table[:, :1], table[:, 1:], out=mistakes[1])
        np.add(table[:, 1:], self._rows.positives, out=mistakes[0])
        return mistakes.reshape(-1)

    def _literals(self, variables: Variables | None, place: int) -> tuple[int, ...]:
        """The conjunction at this place of a block."""
        if variables is None:
            return NEVER if place else ()
        later = variables[-1] + 1 if variables else 0
        rest, last = divmod(place, self._d - later)
        negated, signs = divmod(rest, 1 << len(variables))
        chosen = [2 * variable + (signs >> bit & 1) for bit, variable in enumerate(variables)]
        return (*chosen, 2 * (later + last) + negated)


# Promises.


def lecture_threshold(scale: Fraction, d: int, beta: float) -> int:
    """Lecture 12's threshold, scale * ln(2d / beta), as an integer: no noise is beyond it but with probability beta.

    Theorem.   P[|noise| > t] = 2 q^(t+1) / (1 + q) <= q^t = e^(-t/scale) for integers t >= 0, q = e^(-1/scale).
    """
    return math.ceil(float(scale) * math.log(2 * d / beta) * (1 + CHECKED))


def lecture_size(threshold: int, d: int, alpha: float) -> int:
    """Lecture 12's number of rows: 2d literals are kept with at most 2 thresholds of positives against each.

    Theorem.   n >= 4 d threshold / alpha is enough; under replace-one that is (8 d^2 / (alpha epsilon)) ln(2d / beta).
    """
    return math.ceil(Fraction(4 * d * threshold) / Fraction(alpha))


def tuned(noisy: Counts, *, k: int, d: int, beta: float) -> tuple[Counts, int]:
    """With the threshold T/2 for targets of at most k literals, and how many rows are labelled wrong, at most.

    Theorem.   On rows that some conjunction of at most k literals explains, with probability 1 - beta no negative row
               is labelled wrong, and at most max(T + c, (d (T + c) + S) / 2) positive ones are, where
               T = margin(beta/(2k)) - 1, c = total_margin(beta/4) - 1, S = sum_margin(d, beta/4).
    Proof.     Y_i is the noise of s_i and Z that of N. A literal of the target is deleted only if Z -+ Y_i > T: k
               chances. Otherwise no negative is wrong. Let Z >= -c and sum |Y_i| <= S. A literal that is kept has a
               count of at most (T - Z +- Y_i) / 2. If of each variable at most one is kept, add up these counts; if
               both v_i and not v_i are, their counts add up to N <= T - Z (the Y_i cancel), and more than N positives
               cannot be wrong.
    """
    twice = noisy.margin(beta / (2 * k)) - 1
    reached = twice + noisy.total_margin(beta / 4) - 1
    wrong = max(reached, (d * reached + noisy.sum_margin(d, beta / 4)) // 2)
    return replace(noisy, threshold=Fraction(twice, 2)), wrong


def methods(literals: Literals, labels: Labels, k: int, *, facts: Facts, beta: Fraction, funds: Funds) -> Methods:
    """The methods of this module and the exact exponential mechanism, for targets of at most k literals."""
    d = check_problem(literals, labels, facts.domain, k)
    sure = float(exact.probability(beta=beta))
    assuming = f"if some conjunction of at most {k} literals is right about every row"

    def lecture() -> Method:
        noisy = calibrate(lambda scale: NoisyCounts(literals, labels, scale, Fraction(0)), funds=funds, facts=facts)
        threshold = lecture_threshold(noisy.scale, d, sure)
        made = replace(noisy, threshold=Fraction(threshold))
        claim = wrong_rows("noisy counts (lecture 12, take 1)", sure, assuming)
        return Method(LECTURE, claim, lambda alpha: lecture_size(threshold, d, alpha), lambda alpha: made)

    def counts() -> Method:
        """Gaussian noise if the budget admits any and it promises more, otherwise Laplace noise."""

        def fitted(kind: type[Counts]) -> tuple[Counts, int]:
            noisy = calibrate(lambda noise: kind.balanced(literals, labels, noise, facts), funds=funds, facts=facts)
            return tuned(noisy, k=k, d=d, beta=sure)

        kinds: dict[str, tuple[GaussianCounts | LaplaceCounts, int]] = {"Laplace": fitted(LaplaceCounts)}
        with contextlib.suppress(ParameterError):  # a Gaussian needs delta > 0
            kinds["Gaussian"] = fitted(GaussianCounts)
        kind = min(kinds, key=lambda kind: kinds[kind][1])
        made, wrong = kinds[kind]
        claim = wrong_rows(f"counts through differences, {kind} noise", sure, assuming)
        return Method(COUNTS, claim, lambda alpha: math.ceil(wrong / Fraction(alpha)), lambda alpha: made)

    def everything() -> Method:
        # With the largest rate that is admitted: a list of two rules has the same price, and is never too long.
        two = (Conjunction(literals, ()), Conjunction(literals, (0,)))
        rate = calibrate(lambda noise: FiniteClass(two, labels, 1 / noise), funds=funds, facts=facts).rate
        made, log_class = AllConjunctions(literals, labels, k, rate), math.log(conjunctions(d, k))

        def needed(alpha: float) -> int:
            return empirical_size(log_class, alpha, sure, float(rate))

        theorem, imagined = "exponential mechanism over all conjunctions", ""
        try:
            made.guarantee(facts)
        except ParameterError as too_long:
            theorem = "exponential mechanism over all"
            imagined = f"{too_long}; {needed(0.1):,} rows would make the error at most 0.1"
        claim = wrong_rows(theorem, sure, best_of=f"all conjunctions of at most {k} literals")
        return Method(EXACT, claim, needed, lambda alpha: made, imagined=imagined)

    return Methods({LECTURE: lecture, COUNTS: counts, EXACT: everything})
