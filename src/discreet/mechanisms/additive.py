"""Integer noise added to an exact integer sum.

A query sums integers; one integer step is worth `unit` in the column's units. The noise is drawn in steps, so the
sensitivity that prices a release is a theorem about the very integers that are summed, and every reachable output is a
multiple of the unit whatever the rows are. `scale` is absolute noise in the column's units in every mechanism here.

Lecture 10 releases a vector sum, every row of norm at most D, in three ways that differ in the scale they need for the
same (epsilon, delta) when the dimension d grows:

    option A   CoordinateLaplace, pure book      every coordinate may move by D, basic composition      like d
    option B   CoordinateLaplace, Renyi book     every coordinate may move by D, strong composition     like sqrt d
    theorem 3  ProductLaplace                    the coordinates share D between them                   does not grow
               Gaussian                          the same privacy in the limit, half of the variance    does not grow
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet.core import Exact, Guarantee, ParameterError, Rng, exact
from discreet.data import Dataset, Facts, IntArray, Needs
from discreet.mechanisms.noise import (
    CoordinateLaplaceNoise,
    GaussianNoise,
    LaplaceNoise,
    Noise,
    ProductLaplaceNoise,
    ZeroSumNoise,
)
from discreet.query import GroupCount, Histogram, Query, listed, numbers


@dataclass(frozen=True, slots=True, init=False)
class Noisy:
    """Release a query plus noise on every number: what the mechanisms of this module have in common."""

    NAME: ClassVar[str]
    KIND: ClassVar[str] = "laplace"
    law: ClassVar[type[Noise]]
    query: Query
    scale: Fraction

    def __init__(self, query: Query, scale: Exact) -> None:
        exact.freeze(self, query=listed(query), scale=exact.positive(scale=scale))

    @property
    def noise(self) -> Noise:
        return self.law(self.scale)

    def guarantee(self, facts: Facts) -> Guarantee:
        moved = self.query.sensitivity(facts)  # first: it says what is wrong with the query
        unit = self.query.unit(facts)
        return self.noise.guarantee(moved, unit=unit, dimension=self.numbers(facts), neighbours=facts.neighbours)

    def numbers(self, facts: Facts) -> int:
        return numbers(self.query, facts)

    def needs(self, facts: Facts) -> Needs:
        return Needs(queries=(self.query,))

    def run(self, data: Dataset, rng: Rng) -> Any:
        return self.noised(data.exact_sum(self.query), data.facts, rng)

    def noised(self, sums: IntArray, facts: Facts, rng: Rng) -> Any:
        """The query's exact sums with noise, in its units."""
        unit = self.query.unit(facts)
        return in_units(sums + self.noise.draw(sums.shape, unit=unit, rng=rng), unit)

    def noise_range(self, probability: float, facts: Facts) -> float:
        """With this probability one number is not further off than this, in the query's units."""
        unit = self.query.unit(facts)
        return float(int(self.noise.quantile(float(1 - exact.probability(probability=probability)), unit=unit)) * unit)


class Laplace(Noisy):
    """Release a query plus discrete Laplace noise on every coordinate: P[k steps] proportional to exp(-|k|/s).

    Theorem.   s = scale/unit. If |q(D) - q(D')|_1 <= D1 steps for all neighbours, the release is (D1/s)-DP, and its
               Renyi divergence of order a is at most ln E / (a-1), E = A exp((a-1) D1/s) + B exp(-a D1/s): the exact
               value for one coordinate that moves by D1, which is the worst way to spend an L1 budget.
    Accuracy.  P[|noise| > t steps] = 2 q^(t+1)/(1+q) on each coordinate, q = exp(-1/s), t = 0, 1, ...
    Edges.     scale <= 0 is refused. A query that no neighbour can move is (0)-DP; the ledger still charges one unit.
    Reference. Lecture 10; [DMNS06] proposition 1, discrete form [GRS12]; curve: docs/proofs/discrete_laplace_renyi.md.
    """

    __slots__ = ()
    NAME: ClassVar[str] = "laplace/1"
    law: ClassVar[type[Noise]] = LaplaceNoise


class ProductLaplace(Noisy):
    """Release a vector query plus discrete Laplace noise, priced by the L2 norm (lecture 10, theorem 3).

    Theorem.   s = scale/unit, d coordinates. If |q(D) - q(D')|_2^2 <= D2 and |q(D) - q(D')|_1 <= D1 steps for all
               neighbours, the release is (D1/s)-DP, and its Renyi divergence of order a is at most n R(sqrt(D2/n)), n =
               min(d, D1, D2), where R is Laplace's curve; this is at most a D2 / (2 s^2), so it is (D2/(2 s^2))-zCDP.
               The lecture's constant, s = sqrt(D2 ln(1/delta)) / epsilon, is too small for small delta: in high
               dimension its true delta at a claimed (1, 1e-6) is 1.06e-5. The right scale is about sqrt(D2 / (2 rho))
               with rho from the tight conversion; `calibrate` finds it.
    Accuracy.  As Laplace.
    Edges.     scale <= 0 is refused. For the same zCDP the Gaussian has half the variance.
    Reference. Lecture 10, theorem 3; docs/proofs/discrete_laplace_renyi.md; [BS16] propositions 1.4 and 1.7.
    """

    __slots__ = ()
    NAME: ClassVar[str] = "product-laplace/1"
    law: ClassVar[type[Noise]] = ProductLaplaceNoise


class CoordinateLaplace(Noisy):
    """Release a vector query, every coordinate priced as if it could move by the whole norm (lecture 10, A and B).

    Theorem.   s = scale/unit, d coordinates, each moving by at most M steps between neighbours. The release is the
               composition of d discrete Laplace mechanisms of shift M: (d M/s)-DP (option A, basic composition) and d
               times the Renyi curve of one (option B, strong composition).
    Accuracy.  As Laplace.
    Edges.     Kept to compare with: ProductLaplace releases the same numbers at a price that does not grow with d.
    Reference. Lecture 10, "adding noise by the L2 norm".
    """

    __slots__ = ()
    NAME: ClassVar[str] = "coordinate-laplace/1"
    law: ClassVar[type[Noise]] = CoordinateLaplaceNoise


class Gaussian(Noisy):
    """Release a query plus discrete Gaussian noise on every coordinate: P[k steps] proportional to exp(-k^2/(2 s^2)).

    Theorem.   s = scale/unit. If |q(D) - q(D')|_2^2 <= D2 steps^2 for all neighbours, the release is
               (D2 / (2 s^2))-zCDP: its Renyi divergence of order a is at most a D2 / (2 s^2). It is not pure.
    Accuracy.  Variance at most scale^2; P[|noise| > t steps] <= 2 P[N(0, s^2) >= t + 1/2] on each coordinate if
               t + 1/2 >= s, and 2 P[N(0, s^2) >= t] always.
    Edges.     scale <= 0 is refused.
    Reference. Lecture 10; [CKS20] theorem 14, corollary 9, proposition 25.
    """

    __slots__ = ()
    NAME: ClassVar[str] = "gaussian/1"
    KIND: ClassVar[str] = "gaussian"
    law: ClassVar[type[Noise]] = GaussianNoise


_COUNTS = (Histogram, GroupCount)


class ZeroSumLaplace(Noisy):
    """Release the counts of groups plus discrete Laplace noise that, with that of the rest of the rows, adds up to 0.

    Theorem.   The noise on m groups has P[x] proportional to exp(-(|x|_1 + |x_1 + ... + x_m|)/scale). The release is
               (2 k/scale)-DP for persons of at most k rows, under both relations. If the groups make up all rows and
               their number n is public, all groups but the last get noise, and the last is n less the others.
    Accuracy.  P[|noise| > t] of each group is `ZeroSumNoise.tail`: for the same price under replace-one that of Laplace
               noise is larger; for two groups and 3 % it reaches 1.6 times as far.
    Edges.     Counts of groups that share no row (Histogram, GroupCount), up to ZERO_SUM = 256 of them; others are
               refused. Under add-remove Laplace costs half of it.
    Reference. [HT10]; docs/proofs/zero_sum_laplace.md.
    """

    __slots__ = ()
    NAME: ClassVar[str] = "zero-sum-laplace/1"
    KIND: ClassVar[str] = "zero-sum"
    law: ClassVar[type[Noise]] = ZeroSumNoise

    def __init__(self, query: Query, scale: Exact) -> None:
        if not isinstance(query, _COUNTS):
            raise ParameterError(f"zero-sum noise is for a Histogram or a GroupCount, found {type(query).__name__}")
        Noisy.__init__(self, query, scale)

    def noised(self, sums: IntArray, facts: Facts, rng: Rng) -> Any:
        free = self._free(sums.size, facts)
        noisy = sums.ravel().copy()
        noisy[:free] += self.noise.draw((free,), unit=Fraction(1), rng=rng)
        noisy[free:] = (facts.size or 0) - noisy[:free].sum()
        return in_units(noisy.reshape(sums.shape), Fraction(1))

    def noise_range(self, probability: float, facts: Facts) -> float:
        """With this probability one number is not further off than this."""
        noise = ZeroSumNoise(self.scale, self._free(self.numbers(facts), facts))
        return noise.quantile(float(1 - exact.probability(probability=probability)))

    def _free(self, groups: int, facts: Facts) -> int:
        """How many groups get noise: under replace-one with one row per person the number of rows is public."""
        return free_groups(self.query, groups, rows_known=facts.neighbours.replace_one and facts.neighbours.rows == 1)


KINDS: dict[str, type[Noisy]] = {kind.KIND: kind for kind in (Gaussian, Laplace, ZeroSumLaplace)}
"""The noise of sessions and workloads, by a word."""


def noisy_by(kind: str, query: Query) -> type[Noisy]:
    """The mechanism for a query among others with this kind of noise: only counts of groups have noise that adds up to
    zero, beside it the noise is Laplace."""
    return Laplace if kind == ZeroSumLaplace.KIND and not isinstance(query, _COUNTS) else KINDS[kind]


def free_groups(query: Any, groups: int, *, rows_known: bool) -> int:
    """How many counts of groups are not implied by the others: of all rows, whose number is public, all but one."""
    return groups - (rows_known and query.marginal and groups > 1)


def in_units(noisy: IntArray, unit: Fraction) -> Any:
    """Noisy integers in the column's units: ints where the unit is whole, floats elsewhere."""
    steps = np.asarray(noisy)  # of two scalars numpy makes a plain int
    if steps.ndim == 0:
        return int(steps) * unit.numerator if unit.denominator == 1 else int(steps) * unit.numerator / unit.denominator
    if unit.denominator != 1:
        return steps.astype(np.float64) * unit.numerator / unit.denominator
    return steps if unit == 1 else steps.astype(object) * unit.numerator
