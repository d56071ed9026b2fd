"""Counts over a domain too large to list: only the bins that hold somebody are looked at.

That a bin appears at all says that somebody is in it, so a bin is shown only if its noisy count passes a threshold that
a single person's bin passes with probability at most delta. The noise is bounded, so an empty bin is never shown, and
every decision is a comparison of integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet.core import Exact, Guarantee, Neighbours, ParameterError, Rng, checked_scale, exact
from discreet.data import Dataset, Facts, IntArray, Needs
from discreet.mechanisms.noise import GaussianNoise
from discreet.query import KeyCount

_LEAST = 1e-290  # no failure is claimed to be less likely
_LARGEST_BOUND = 2**62

Label = tuple[str | int | bool | float | None, ...]
Bin = tuple[Label, int]


@dataclass(frozen=True, slots=True, init=False)
class StableHistogram:
    """Release every bin whose count plus truncated Laplace noise exceeds `bound`, with its noisy count.

    Theorem.   X on {-bound..bound} with P[x] = c exp(-|x|/scale), q = exp(-1/scale); bins with count + X > bound are
               released. A person holds at most k rows. tau_k = c q^bound (q^-k - 1) / (q^-1 - 1) is the mass of the k
               outermost atoms. Under add-remove the release is (k/scale, tau_k)-DP; under replace-one it is
               (2 k/scale, 2 tau_k)-DP. Outside the failure event its Renyi curve is that of randomized response at
               k/scale, twice it under replace-one.
    Accuracy.  An empty bin is never released. A bin of count at least bound + 1 + x is released with probability at
               least 1 - c (q^(x+1) - q^(bound+1)) / (1 - q); from 2 bound + 1 on always.
    Edges.     Bins come in the order of their labels, so nothing depends on the order of arrival. delta = 0 is
               impossible here: use Histogram over a listed domain. A Text is a key as any other: its bins are texts.
    Reference. [KKMN09], [BNS16] (stability-based histograms); proof: docs/proofs/stable_histogram.md.
    """

    NAME: ClassVar[str] = "stable-histogram/1"
    keys: KeyCount
    scale: Fraction
    bound: int

    def __init__(self, keys: KeyCount, scale: Exact, bound: int) -> None:
        if not isinstance(keys, KeyCount):
            raise ParameterError(f"keys must be a KeyCount of columns, found {type(keys).__name__}")
        width, reach = checked_scale(exact.positive(scale=scale)), exact.whole(bound=bound)
        if reach > _LARGEST_BOUND:
            raise ParameterError(f"bound must be at most 2**62, found {bound!r}")
        exact.freeze(self, keys=keys, scale=width, bound=reach)

    @classmethod
    def of(cls, keys: KeyCount, *, epsilon: Exact, delta: Exact, facts: Facts) -> StableHistogram:
        """The mechanism of this pure part with the least bound whose failure is at most delta on these facts."""
        blocks = 2 if facts.neighbours.replace_one else 1
        scale = blocks * facts.neighbours.rows / exact.positive(epsilon=epsilon)
        allowed = exact.probability(delta=delta) / blocks
        if allowed < 2 * Fraction(_LEAST):
            raise ParameterError(f"delta must be at least 1e-289, found {delta!r}")
        return cls(keys, scale, least_bound(scale, allowed, facts.neighbours.rows))

    def guarantee(self, facts: Facts) -> Guarantee:
        self.keys.sensitivity(facts)
        return price(self.scale, self.bound, facts.neighbours)

    def needs(self, facts: Facts) -> Needs:
        return Needs(queries=(self.keys,))

    def run(self, data: Dataset, rng: Rng) -> tuple[Bin, ...]:
        return shown_bins(self.keys, data, lambda counts: passing(counts, self.scale, self.bound, rng))

    def certain_count(self, beta: float) -> int:
        """A bin of this count is released with probability at least 1 - beta."""
        return certain_count(self.scale, self.bound, float(exact.probability(beta=beta)))

    def error(self, beta: float, facts: Facts) -> int:
        """No shown count is further off than this; with certainty, whatever beta is."""
        return self.bound


@dataclass(frozen=True, slots=True, init=False)
class StableGaussian:
    """Release every bin whose count plus discrete Gaussian noise exceeds `bound`, with its noisy count.

    Theorem.   X discrete Gaussian of this scale s, f(m) = P[X > bound - m]. A person holds at most k rows, k <= bound.
               tau = max(f(k), k f(1)). Outside an event of probability tau the release is rho-zCDP: rho = k^2/(2 s^2)
               under add-remove, k^2/s^2 under replace-one.
    Accuracy.  An empty bin is never released. A bin of count bound + t is released with probability at least
               1 - P[X >= t]. No shown count is off by t or more with probability at least 1 - 2 r P[X >= t], r being
               the largest number of rows (`Facts.rows_bound`).
    Edges.     Bins come in the order of their labels. It has no pure part; where the same zCDP is paid, its bound is
               lower than that of a StableHistogram unless epsilon is large.
    Reference. [KKWZ22] (the Gaussian sparse histogram); proof: docs/proofs/stable_histogram.md.
    """

    NAME: ClassVar[str] = "stable-gaussian/1"
    keys: KeyCount
    scale: Fraction
    bound: int

    def __init__(self, keys: KeyCount, scale: Exact, bound: int) -> None:
        checked = StableHistogram(keys, scale, bound)
        exact.freeze(self, keys=keys, scale=checked.scale, bound=checked.bound)

    @property
    def noise(self) -> GaussianNoise:
        return GaussianNoise(self.scale)

    def guarantee(self, facts: Facts) -> Guarantee:
        self.keys.sensitivity(facts)
        neighbours, rows = facts.neighbours, facts.neighbours.rows
        if self.bound < rows:
            raise ParameterError(f"bound must be at least the {rows} rows that a person may hold, found {self.bound}")
        rho = rows * rows * (2 if neighbours.replace_one else 1) / (2 * self.scale**2)
        noisy = Guarantee.of_zcdp(rho, neighbours=neighbours)
        return replace(noisy, failure=lone_gaussian_mass(self.scale, self.bound, rows))

    def needs(self, facts: Facts) -> Needs:
        return Needs(queries=(self.keys,))

    def run(self, data: Dataset, rng: Rng) -> tuple[Bin, ...]:
        def pass_bound(counts: IntArray) -> tuple[IntArray, IntArray]:
            noisy = counts + self.noise.draw(counts.shape, unit=Fraction(1), rng=rng)
            shown = np.flatnonzero(noisy > self.bound)
            return shown, noisy[shown]

        return shown_bins(self.keys, data, pass_bound)

    def certain_count(self, beta: float) -> int:
        """A bin of this count is released with probability at least 1 - beta."""
        return self.bound + self.noise.reach(math.log(float(exact.probability(beta=beta))))

    def error(self, beta: float, facts: Facts) -> int:
        """No shown count is further off than this, with probability at least 1 - beta."""
        return self.noise.reach(math.log(float(exact.probability(beta=beta))) - math.log(2 * facts.rows_bound))


@dataclass(frozen=True, slots=True)
class StableMode:
    """Release the label of the fullest bin of a stable histogram, or None when none passes (the choosing mechanism).

    Theorem.   The guarantee of its histogram: the label is a function of what the histogram would release. Equal noisy
               counts are decided by the label, never by the order of arrival (that leaks: docs/proofs).
    Accuracy.  Never an empty bin. If some bin has count >= certain_count(beta), some non-empty bin is released with
               probability at least 1 - beta.
    Edges.     None is an ordinary answer.
    Reference. [BNS13] choosing mechanism; docs/proofs/stable_histogram.md.
    """

    NAME: ClassVar[str] = "stable-mode/1"
    histogram: StableHistogram

    def __post_init__(self) -> None:
        if not isinstance(self.histogram, StableHistogram):
            raise ParameterError(f"histogram must be a StableHistogram, found {type(self.histogram).__name__}")

    def guarantee(self, facts: Facts) -> Guarantee:
        return self.histogram.guarantee(facts)

    def needs(self, facts: Facts) -> Needs:
        return self.histogram.needs(facts)

    def run(self, data: Dataset, rng: Rng) -> Label | None:
        return max(self.histogram.run(data, rng), key=lambda shown: shown[1], default=(None, 0))[0]


def shown_bins(
    keys: KeyCount, data: Dataset, passing: Callable[[IntArray], tuple[IntArray, IntArray]]
) -> tuple[Bin, ...]:
    """The labels and noisy counts of the bins that pass; passing: which of these counts do, and their noisy ones."""
    found = data.exact_sum(keys)
    # By codes, and by texts where the codes are private; a missing text comes last.
    counts = sorted(found.items(), key=lambda item: [(part is None, 0 if part is None else part) for part in item[0]])
    shown, noisy = passing(np.array([count for _, count in counts], dtype=np.int64))
    columns = [data.facts.domain.column(name) for name in keys.columns]
    passed = [zip(columns, counts[place][0], strict=True) for place in shown.tolist()]
    labels = [tuple(part if column.free else column.label(part) for column, part in key) for key in passed]
    return tuple(zip(labels, noisy.tolist(), strict=True))


def lone_gaussian_mass(scale: Fraction, bound: int, rows: int) -> Fraction:
    """tau of StableGaussian: at least the probability with which bins of one person alone pass, rounded up."""
    noise = GaussianNoise(scale)
    mass = max(noise.tail(bound - rows + 1), rows * noise.tail(bound))
    return Fraction(max(mass, _LEAST)) * (1 + Fraction(1, 10**9))


def least_gaussian_bound(scale: Fraction, failure: Fraction, rows: int) -> int:
    """The least bound for which a person's bins pass with at most this probability; failure >= 1e-289."""
    return _least_bound(lone_gaussian_mass, scale, failure, rows)


# The bounded noise, for every mechanism that shows a bin only if its noisy count passes the bound.


def price(scale: Fraction, bound: int, neighbours: Neighbours) -> Guarantee:
    """What showing the bins that pass costs, with their noisy counts: the theorem of StableHistogram."""
    rows = neighbours.rows
    if bound < rows:
        raise ParameterError(f"bound must be at least the {rows} rows that a person may hold, found {bound}")
    epsilon, mass = rows / checked_scale(scale), lone_mass(scale, bound, rows)
    block = Guarantee.of_approximate(epsilon, delta=mass, neighbours=neighbours)
    return block * 2 if neighbours.replace_one else block


def passing(counts: IntArray, scale: Fraction, bound: int, rng: Rng) -> tuple[IntArray, IntArray]:
    """Which of the bins that hold somebody pass, and their noisy counts."""
    noisy = counts + rng.truncated_laplace(scale, bound, len(counts))
    shown = np.flatnonzero(noisy > bound)
    return shown, noisy[shown]


def least_bound(scale: Fraction, failure: Fraction, rows: int) -> int:
    """The least bound for which a person's bins pass with at most this probability; failure >= 1e-289."""
    return _least_bound(lone_mass, scale, failure, rows)


def _least_bound(mass: Callable[[Fraction, int, int], Fraction], scale: Fraction, failure: Fraction, rows: int) -> int:
    bound = rows
    while mass(scale, bound, rows) > failure:
        bound *= 2
    return exact.least(lambda middle: middle >= rows and mass(scale, middle, rows) <= failure, bound // 2, bound)


def certain_count(scale: Fraction, bound: int, beta: float) -> int:
    """A bin of this count passes with probability at least 1 - beta."""
    # The least margin x for which the missed mass is small enough: it falls with x.
    return bound + 1 + exact.least(lambda margin: missed_mass(scale, bound, margin) <= beta, -1, bound)


def lone_mass(scale: Fraction, bound: int, rows: int) -> Fraction:
    """tau_k: the mass of the k outermost atoms on one side, rounded up.

    With e = 1/scale: c = (1 - q) / ((1 - q^(K+1)) + q (1 - q^K)) and tau = c q^(K-k+1) (1 - q^k) / (1 - q), each
    1 - q^j as -expm1(-j e) of the exact j e: nothing cancels, so the result is right to 1e-13 (relative).
    """
    shown = _gap(rows, scale) * math.exp(-(bound - rows + 1) / scale)
    mass = shown / (_gap(bound + 1, scale) + math.exp(-1 / scale) * _gap(bound, scale))
    return Fraction(max(mass, _LEAST)) * (1 + Fraction(1, 10**9))


def missed_mass(scale: Fraction, bound: int, margin: int) -> float:
    """P[X <= -(margin + 1)]: the mass of the K - margin outermost atoms; a bin of count K + 1 + margin is missed so."""
    return float(lone_mass(scale, bound, bound - margin)) if margin < bound else 0.0


def _gap(steps: int, scale: Fraction) -> float:
    """1 - q^steps."""
    return -math.expm1(-steps / scale)
