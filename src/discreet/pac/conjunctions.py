"""Conjunctions by counting: which literals do positive examples falsify? Lecture 12, take 1, and better.

    deletion(X, y)      the lecture's algorithm without privacy: keep the literals that no positive example falsifies
    NoisyCounts         the lecture's private version: Laplace noise on the 2d counts
    GaussianCounts      the same question through d + 1 numbers, with Gaussian noise
    LaplaceCounts       the same with Laplace noise, for delta = 0

Every row of label 1 falsifies exactly one of v and not v, so the two counts of a variable add up to the number N of
positives: d differences s_i = #{x_i = 1} - #{x_i = 0} among the positives and N say as much as 2d counts,

    2 #(v_i falsified) = N - s_i        2 #(not v_i falsified) = N + s_i,

and one person moves them less. The code counts in halves of a row, so that all of these are integers.
Proofs: docs/proofs/conjunctions.md.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, TypeVar

import numpy as np

from discreet import exact
from discreet.data import Batch, Dataset, Facts, IntArray, Mask
from discreet.errors import ParameterError
from discreet.exact import Exact
from discreet.funds import Funds
from discreet.mechanisms import Guarantee, LaplaceNoise, Rng, calibrate, checked_scale, checked_variance, gaussian_reach
from discreet.method import Method, Methods, wrong_rows
from discreet.pac.all_conjunctions import AllConjunctions, check_problem, conjunctions
from discreet.pac.finite import CHECKED, FiniteClass, empirical_size
from discreet.pac.rules import Conjunction, Labels, Literals
from discreet.query import Sensitivity, of_persons

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
        self.literals.check(facts.domain)
        self.labels.check(facts.domain)
        d = self.literals.variables(facts.domain)
        added, replaced = Sensitivity(d, d, 1, 1), Sensitivity(2 * d, 2 * d, 1, 2)
        return of_persons(facts.neighbours, added=added, replaced=replaced)

    def unit(self, facts: Facts) -> Fraction:
        return Fraction(1)


@dataclass(frozen=True, slots=True, init=False)
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

    def __init__(self, literals: Literals, labels: Labels, scale: Exact, threshold: Exact) -> None:
        exact.freeze(self, literals=literals, labels=labels, scale=exact.positive(scale=scale))
        exact.freeze(self, threshold=_threshold(threshold))

    def guarantee(self, facts: Facts) -> Guarantee:
        moved = FalsifiedLiterals(self.literals, self.labels).sensitivity(facts)
        return Guarantee.of_laplace(moved.l1, scale=checked_scale(self.scale), neighbours=facts.neighbours)

    def run(self, data: Dataset, rng: Rng) -> tuple[int, ...]:
        counts = data.exact_sum(FalsifiedLiterals(self.literals, self.labels).partial)
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
        sums = data.exact_sum(self.partial)
        differences, rest = sums[:-1] + noise, int(sums[-1]) + total_noise - math.floor(2 * threshold)
        return _numbers(np.stack([differences >= rest, differences <= -rest], axis=1).reshape(-1))


@dataclass(frozen=True, slots=True, init=False)
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

    def __init__(
        self, literals: Literals, labels: Labels, variance: Exact, total_variance: Exact, threshold: Exact
    ) -> None:
        exact.freeze(self, literals=literals, labels=labels, variance=exact.positive(variance=variance))
        exact.freeze(self, total_variance=exact.positive(total_variance=total_variance))
        exact.freeze(self, threshold=_threshold(threshold))

    @classmethod
    def balanced(cls, literals: Literals, labels: Labels, variance: Fraction, facts: Facts) -> GaussianCounts:
        """The variance of the total that goes with this one; threshold 0."""
        d = literals.variables(facts.domain)
        ratio = 3 * d if facts.neighbours.replace_one else math.isqrt(4 * d)
        return cls(literals, labels, variance, variance / ratio, 0)

    def guarantee(self, facts: Facts) -> Guarantee:
        d = _variables(self.literals, self.labels, facts)
        variance, total = checked_variance(self.variance), checked_variance(self.total_variance)
        added = d / (2 * variance) + 1 / (2 * total)
        rho = max(2 * d / variance, added) if facts.neighbours.replace_one else added
        return Guarantee.of_zcdp(rho * facts.neighbours.rows**2, neighbours=facts.neighbours)

    def run(self, data: Dataset, rng: Rng) -> tuple[int, ...]:
        noise = rng.gaussian(self.variance, self.literals.variables(data.facts.domain))
        query = CentredLiterals(self.literals, self.labels)
        return query.kept(data, noise, rng.gaussian(self.total_variance), self.threshold)

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


@dataclass(frozen=True, slots=True, init=False)
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

    def __init__(self, literals: Literals, labels: Labels, scale: Exact, total_scale: Exact, threshold: Exact) -> None:
        exact.freeze(self, literals=literals, labels=labels, scale=exact.positive(scale=scale))
        exact.freeze(self, total_scale=exact.positive(total_scale=total_scale), threshold=_threshold(threshold))
        if 2 * self.total_scale > self.scale:
            raise ParameterError(f"total_scale must be at most scale / 2, found {total_scale!r} and {scale!r}")

    @classmethod
    def balanced(cls, literals: Literals, labels: Labels, scale: Fraction, facts: Facts) -> LaplaceCounts:
        """The scale of the total that goes with this one; threshold 0."""
        d = literals.variables(facts.domain)
        ratio = max(2, d if facts.neighbours.replace_one else round((d / 4) ** (1 / 3)))
        return cls(literals, labels, scale, scale / ratio, 0)

    def guarantee(self, facts: Facts) -> Guarantee:
        d = _variables(self.literals, self.labels, facts)
        scale, total = checked_scale(self.scale), checked_scale(self.total_scale)
        added = d / scale + 1 / total
        epsilon = max(2 * d / scale, added) if facts.neighbours.replace_one else added
        return Guarantee.of_pure(epsilon * facts.neighbours.rows, neighbours=facts.neighbours)

    def run(self, data: Dataset, rng: Rng) -> tuple[int, ...]:
        noise = rng.laplace(self.scale, self.literals.variables(data.facts.domain))
        query = CentredLiterals(self.literals, self.labels)
        return query.kept(data, noise, rng.laplace(self.total_scale), self.threshold)

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


def _variables(literals: Literals, labels: Labels, facts: Facts) -> int:
    """The number of variables, if these are variables and labels of the domain."""
    literals.check(facts.domain)
    labels.check(facts.domain)
    return literals.variables(facts.domain)


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


def counts_size(wrong: int, alpha: float) -> int:
    """Rows of which these wrong ones are at most alpha."""
    return math.ceil(wrong / Fraction(alpha))


def methods(literals: Literals, labels: Labels, k: int, *, facts: Facts, beta: Fraction, funds: Funds) -> Methods:
    """The methods of this module and the exact exponential mechanism, for targets of at most k literals."""
    d = check_problem(literals, labels, k, facts.domain)
    sure = float(exact.probability(beta=beta))
    assuming = f"if some conjunction of at most {k} literals is right about every row"

    def lecture() -> Method:
        noisy = calibrate(lambda scale: NoisyCounts(literals, labels, scale, 0), funds=funds, facts=facts)
        threshold = lecture_threshold(noisy.scale, d, sure)
        made = replace(noisy, threshold=Fraction(threshold))
        claim = wrong_rows("noisy counts (lecture 12, take 1)", sure, assuming)
        return Method(LECTURE, claim, lambda alpha: lecture_size(threshold, d, alpha), lambda alpha: made)

    def counts() -> Method:
        """Gaussian noise if the budget admits any and it promises more, otherwise Laplace noise."""
        kinds: dict[str, tuple[GaussianCounts | LaplaceCounts, int]] = {}
        laplace = calibrate(
            lambda noise: LaplaceCounts.balanced(literals, labels, noise, facts), funds=funds, facts=facts
        )
        kinds["Laplace"] = tuned(laplace, k=k, d=d, beta=sure)
        with contextlib.suppress(ParameterError):  # a Gaussian needs delta > 0
            gaussian = calibrate(
                lambda noise: GaussianCounts.balanced(literals, labels, noise, facts), funds=funds, facts=facts
            )
            kinds["Gaussian"] = tuned(gaussian, k=k, d=d, beta=sure)
        kind = min(kinds, key=lambda kind: kinds[kind][1])
        made, wrong = kinds[kind]
        claim = wrong_rows(f"counts through differences, {kind} noise", sure, assuming)
        return Method(COUNTS, claim, lambda alpha: counts_size(wrong, alpha), lambda alpha: made)

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
