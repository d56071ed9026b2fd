"""Integer noise on an integer vector: what it costs, how it is drawn and how far it reaches, from the same two fields.

A noise does not know what it is added to. `moved` says how far neighbours move the integers (`query.Sensitivity`);
`unit` is what one integer is worth, and `scale` is absolute noise in the same units as unit. The mechanisms of
`additive`, noisy gradient descent and output perturbation all price and draw by these.

Every noise answers, in steps of one integer; s = scale / unit:

    guarantee   what adding it costs
    draw        independent noises
    variance    of one of them at most, in units squared
    tail        P[noise >= t], or a bound on it
    reach       the least t >= 1 for which `tail` is at most exp(log_failure)
    quantile    with probability 1 - failure none of exp(log_sets) fixed sums of `copies` independent noises exceeds
                this in absolute value
    sum_reach   with probability 1 - exp(-spent) a fixed sum of `copies` independent noises is at most this
    scale_for   the largest scale whose quantile is at most t

`SphericalNoise` has a law of all coordinates together: it answers the first two, and `squared_length`.

Theorem.   Laplace: P[X >= t] = q^t / (1 + q), q = exp(-1/s), t >= 1: tail and reach are exact.
           Gaussian, t >= 1: P[X >= t] is at most each of
               P[N(0, s^2) >= t - 1]                        [CKS20] proposition 25
               P[N(0, s^2) >= t - 1/2], if t - 1/2 >= s     proof below
               exp(-t^2 / (2 s^2))                          Chernoff with E exp(l X) <= exp(l^2 s^2 / 2), [CKS20]
           and the least of them is taken.
           Sums: P[X_1 + ... + X_c >= t] <= exp(-l t) M(l)^c for each l > 0. Gaussian: M(l) <= exp(l^2 s^2 / 2).
           Laplace: M(l) = (1 - q)^2 / ((1 - q e^l)(1 - q e^-l)); every l is valid, a fine grid is near the best.
           Gaussian, s >= 2, c <= 2^22: also P[X_1 + ... + X_c >= t] <= (1 + 1e-9) P[N(0, c s^2) >= t - 1], t > 0;
           docs/proofs/answering.md, "Sums of noises".
Proof.     The weights exp(-k^2 / (2 s^2)) add up to at least sqrt(2 pi) s (Poisson summation), and from k = s + 1/2 on
           each is below the integral from k - 1/2 to k + 1/2, because there they are convex. So the tail from t on is
           below the normal tail from t - 1/2 on.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from discreet.core import Exact, Guarantee, Neighbours, ParameterError, Rng, checked_scale, checked_variance, exact
from discreet.data import Floats, IntArray
from discreet.query import Sensitivity

ONE = Fraction(1)


@dataclass(frozen=True, slots=True, init=False)
class _Scaled:
    """A law with one scale."""

    scale: Fraction

    def __init__(self, scale: Exact) -> None:
        exact.freeze(self, scale=exact.positive(scale=scale))

    def steps(self, unit: Fraction) -> Fraction:
        """The scale in the integers that are summed. Sums and noise are below 2^94 of them, and must be floats."""
        if max(unit.numerator, unit.denominator) >= 10**250:
            raise ParameterError("floats cannot hold sums in the units of this column: declare it in other units")
        return self.scale / unit


class SphericalNoise(_Scaled):
    """Noise of density proportional to exp(-|y|_2 / s), s = scale/unit, in all coordinates at once, each rounded.

    Theorem.   If |d|_2^2 <= D2 for all neighbours, adding it is (sqrt(D2) / s)-DP: the density changes by a factor of
               at most exp(|d|_2 / s) when it is moved by d, and rounding commutes with moves by integers.
    Accuracy.  Mean 0; of d coordinates the mean squared length is at most (scale sqrt(d (d + 1)) + unit sqrt(d) / 2)^2.
    Reference. [HT10], [CMS11]; docs/proofs/exact_noise.md.
    """

    __slots__ = ()
    NAME: ClassVar[str] = "spherical-noise/1"

    def guarantee(self, moved: Sensitivity, *, unit: Fraction, dimension: int, neighbours: Neighbours) -> Guarantee:
        steps = self.steps(unit)
        checked_scale(steps)
        checked_scale(steps * dimension)
        length = exact.root_up(Fraction(moved.l2_squared)) if moved.l2_squared else Fraction(0)
        return Guarantee.of_pure(length / steps, neighbours=neighbours)

    def draw(self, shape: tuple[int, ...], *, unit: Fraction, rng: Rng) -> IntArray:
        return rng.spherical(self.steps(unit), math.prod(shape)).reshape(shape)

    def squared_length(self, dimension: int, *, unit: Fraction) -> float:
        """At most the mean of the squared length of a vector of so many coordinates, in units squared."""
        return dimension * (float(self.scale) * math.sqrt(dimension + 1) + float(unit) / 2) ** 2


@dataclass(frozen=True, slots=True, init=False)
class _AnyNoise(_Scaled, ABC):
    """What the laws of independent coordinates have in common."""

    @abstractmethod
    def variance(self) -> float:
        """An upper bound on the variance of one coordinate, in units squared."""

    def squared_length(self, dimension: int, *, unit: Fraction) -> float:
        """At most the mean of the squared length of so many noises, in units squared."""
        return dimension * self.variance()

    @abstractmethod
    def reach(self, log_failure: float, *, unit: Fraction = ONE) -> int:
        """A number of steps, at least 1, that the noise reaches with probability at most exp(log_failure)."""

    @abstractmethod
    def sum_reach(self, spent: Floats, copies: Floats, *, unit: Fraction = ONE) -> Floats:
        """A bound on sums of `copies` noises, each exceeded with probability at most exp(-spent)."""

    def quantile(self, failure: float, *, copies: float = 1, log_sets: float = 0.0, unit: Fraction = ONE) -> float:
        """None of exp(log_sets) fixed sums of `copies` noises exceeds this but with probability failure."""
        if copies <= 0:
            return 0.0
        spent = math.log(2 / failure) + log_sets
        if copies == 1:
            return float(self.reach(-spent, unit=unit) - 1)
        return float(self.sum_reach(np.array([spent]), np.array([copies]), unit=unit)[0])


class GaussianNoise(_AnyNoise):
    """Discrete Gaussian noise on every coordinate: P[k steps] proportional to exp(-k^2/(2 s^2)), s = scale/unit.

    Theorem.   If |d|_2^2 <= D2 for all neighbours, adding it is (D2 / (2 s^2))-zCDP. It is not pure.
    Accuracy.  Mean 0, variance at most scale^2 on each coordinate; `tail` and `quantile`.
    Reference. [CKS20] theorem 14, corollary 9.
    """

    __slots__ = ()
    NAME: ClassVar[str] = "gaussian-noise/1"

    def guarantee(self, moved: Sensitivity, *, unit: Fraction, dimension: int, neighbours: Neighbours) -> Guarantee:
        return Guarantee.of_zcdp(moved.l2_squared / (2 * self._variance(unit)), neighbours=neighbours)

    def draw(self, shape: tuple[int, ...], *, unit: Fraction, rng: Rng) -> IntArray:
        return rng.gaussian(self._variance(unit), shape)

    def _variance(self, unit: Fraction) -> Fraction:
        return checked_variance(self.steps(unit) ** 2)

    def variance(self) -> float:
        """An upper bound on the variance of one coordinate, in units squared."""
        return float(self.scale) ** 2

    def tail(self, steps: int, *, unit: Fraction = ONE) -> float:
        """At least P[noise >= steps]."""
        from scipy.special import ndtr

        if steps < 1:
            return 1.0
        s = float(self.scale / unit)
        near = steps - 0.5 if steps - 0.5 >= s else steps - 1
        return min(float(ndtr(-near / s)), math.exp(-((steps / s) ** 2) / 2))

    def reach(self, log_failure: float, *, unit: Fraction = ONE) -> int:
        """A number of steps, at least 1, that the noise reaches with probability at most exp(log_failure)."""
        return gaussian_reach(float(self.scale / unit), log_failure)

    def sum_reach(self, spent: Floats, copies: Floats, *, unit: Fraction = ONE) -> Floats:
        """A bound on sums of `copies` noises, each exceeded with probability at most exp(-spent): by Chernoff, or by
        the normal tail if that is less. copies may be the c (1 - c/K) of c among K levelled noises too, s^2 >= 2 K."""
        from scipy.special import ndtri_exp

        s = float(self.scale / unit)
        chernoff = np.asarray(s * np.sqrt(2 * copies * spent))
        if s < 2:
            return chernoff
        # What the theorem adds to the normal tail is below a thousandth of exp(-spent).
        normal = 1 - s * np.sqrt(copies) * ndtri_exp(-np.minimum(spent, _DEEPEST) - 2e-3)
        return np.where((spent > _DEEPEST) | (copies > 2**22), chernoff, np.minimum(chernoff, normal))

    @staticmethod
    def scale_for(steps: int, failure: float) -> float:
        """About the largest scale, in steps, of which a noise exceeds `steps` with probability at most failure."""
        from scipy.special import ndtri

        normal = -float(ndtri(failure / 2))
        return max(steps / normal, (steps + 0.5) / max(1.0, normal), (steps + 1) / math.sqrt(2 * math.log(2 / failure)))


def gaussian_reach(scale: float, log_failure: float) -> int:
    """`GaussianNoise.reach` of a scale in steps that need not be rational."""
    from scipy.special import ndtri_exp

    if log_failure >= -math.log(2):
        return 1
    normal = -float(ndtri_exp(log_failure))
    least = (scale * normal + 1, scale * max(1.0, normal) + 0.5, scale * math.sqrt(-2 * log_failure))
    return max(1, math.ceil(min(least)))


class _LaplaceLaw(_AnyNoise):
    """The discrete Laplace law, however it is priced."""

    __slots__ = ()

    def steps(self, unit: Fraction) -> Fraction:
        return checked_scale(_AnyNoise.steps(self, unit))

    def draw(self, shape: tuple[int, ...], *, unit: Fraction, rng: Rng) -> IntArray:
        return rng.laplace(self.steps(unit), shape)

    def variance(self) -> float:
        """An upper bound on the variance of one coordinate, in units squared."""
        return 2 * float(self.scale) ** 2

    def tail(self, steps: int, *, unit: Fraction = ONE) -> float:
        """P[noise >= steps] for steps >= 1; 1 below."""
        return 1.0 if steps < 1 else math.exp(_laplace_log_tail(float(self.scale / unit), steps))

    def reach(self, log_failure: float, *, unit: Fraction = ONE) -> int:
        """The least number of steps, at least 1, that the noise reaches with probability at most exp(log_failure)."""
        s = self.scale / unit
        least = s * Fraction(-log_failure - math.log1p(math.exp(-1 / s)))
        return max(1, math.ceil(least * (1 + Fraction(1, 2**50))))

    def sum_reach(self, spent: Floats, copies: Floats, *, unit: Fraction = ONE) -> Floats:
        """The Chernoff bound on sums of `copies` noises, each exceeded with probability at most exp(-spent)."""
        s, one = float(self.scale / unit), copies == 1
        bounds = np.empty(len(copies))
        bounds[one] = [self.reach(-each, unit=unit) - 1 for each in spent[one].tolist()]
        others = np.flatnonzero(~one)
        for start in range(0, len(others), _AT_ONCE):
            some = others[start : start + _AT_ONCE]
            bounds[some] = _laplace_chernoff(s, copies[some], spent[some])
        return bounds

    @staticmethod
    def scale_for(steps: int, failure: float) -> float:
        """About the largest scale, in steps, of which a noise exceeds `steps` with probability at most failure."""
        end, log_failure = (steps + 1) / -math.log(failure), math.log(failure / 2)
        return exact.most(lambda scale: _laplace_log_tail(scale, steps + 1) <= log_failure, 0.0, end)


_DEEPEST = 69.0  # e^-69 is 1e-30: below that the normal tail of a sum is not taken
_AT_ONCE = 2**12  # bounds that are minimised at once


def _laplace_log_tail(s: float, steps: int) -> float:
    return -steps / s - math.log1p(math.exp(-1 / s))


def _laplace_chernoff(s: float, copies: Floats, spent: Floats) -> Floats:
    """min over l in (0, 1/s) of (spent + copies ln M(l)) / l: every l is valid, a fine grid is near the best."""
    if len(copies) == 1:
        return np.array([_one_chernoff(s, float(copies[0]), float(spent[0]))])
    bounds, many = np.empty(len(copies)), copies > 50 * spent
    for some, parts in ((many, (np.arange(1, 400) / 400) ** 2), (~many, np.arange(1, 1000) / 1000)):
        if some.any():
            # ln M(l) at parts of 1/s, so that it is neither 0 for large scales nor infinite for small ones.
            top = 1 / s
            rates = parts * top
            log_m = 2 * math.log(-math.expm1(-top)) - np.log(-np.expm1(rates - top)) - np.log(-np.expm1(-rates - top))
            bounds[some] = ((spent[some, None] + copies[some, None] * log_m) / rates).min(axis=1)
    return bounds


@lru_cache(maxsize=65536)
def _one_chernoff(s: float, copies: float, spent: float) -> float:
    return float(_laplace_chernoff(s, np.array([copies, copies]), np.array([spent, spent]))[0])


class LaplaceNoise(_LaplaceLaw):
    """Discrete Laplace noise on every coordinate, priced by the L1 norm: P[k steps] proportional to exp(-|k|/s).

    Theorem.   s = scale/unit. If |d|_1 <= D1 for all neighbours, adding it is (D1/s)-DP, with the Renyi curve of one
               coordinate that moves by D1, which is the worst way to spend an L1 budget.
    Accuracy.  Mean 0, variance at most 2 scale^2 on each coordinate; `tail` and `quantile`.
    Reference. [DMNS06] proposition 1, discrete form [GRS12]; curve: docs/proofs/discrete_laplace_renyi.md.
    """

    __slots__ = ()
    NAME: ClassVar[str] = "laplace-noise/1"

    def guarantee(self, moved: Sensitivity, *, unit: Fraction, dimension: int, neighbours: Neighbours) -> Guarantee:
        return Guarantee.of_laplace(moved.l1, scale=self.steps(unit), neighbours=neighbours)


class ProductLaplaceNoise(_LaplaceLaw):
    """Discrete Laplace noise on every coordinate, priced by the L2 norm (lecture 10, theorem 3).

    Theorem.   s = scale/unit, d coordinates, |d|_2^2 <= D2 and |d|_1 <= D1 for all neighbours: adding it is (D1/s)-DP,
               and its Renyi divergence of order a is at most n R(sqrt(D2/n)), n = min(d, D1, D2), R Laplace's curve.
    Accuracy.  Mean 0, variance at most 2 scale^2 on each coordinate; as LaplaceNoise.
    Reference. Lecture 10, theorem 3; docs/proofs/discrete_laplace_renyi.md.
    """

    __slots__ = ()
    NAME: ClassVar[str] = "product-laplace-noise/1"

    def guarantee(self, moved: Sensitivity, *, unit: Fraction, dimension: int, neighbours: Neighbours) -> Guarantee:
        return Guarantee.of_product_laplace(
            moved.l2_squared, l1=moved.l1, scale=self.steps(unit), dimension=dimension, neighbours=neighbours
        )


class CoordinateLaplaceNoise(_LaplaceLaw):
    """Discrete Laplace noise, every coordinate priced as if it could move by the whole norm (lecture 10, A and B).

    Theorem.   s = scale/unit, d coordinates, each moving by at most M between neighbours: d discrete Laplace mechanisms
               of shift M, so (d M/s)-DP (basic composition) and d times the Renyi curve of one (strong composition).
    Accuracy.  Mean 0, variance at most 2 scale^2 on each coordinate; as LaplaceNoise.
    Reference. Lecture 10, the first version of noisy gradient descent.
    """

    __slots__ = ()
    NAME: ClassVar[str] = "coordinate-laplace-noise/1"

    def guarantee(self, moved: Sensitivity, *, unit: Fraction, dimension: int, neighbours: Neighbours) -> Guarantee:
        return dimension * Guarantee.of_laplace(moved.linf, scale=self.steps(unit), neighbours=neighbours)


class ZeroSumNoise(_LaplaceLaw):
    """Noise on counts of m groups that share no row: P[x] proportional to exp(-(|x|_1 + |x_1 + ... + x_m|)/s).

    With the rest of the rows as one more cell, whose noise is minus the sum of the others, these are m + 1 discrete
    Laplace noises of scale s given that they add up to 0.

    Theorem.   s = scale/unit. If the positive and the negative parts of d each add up to at most D for all neighbours,
               adding it is (2 D/s)-DP. D is k for persons of at most k rows, whatever the relation, which is |d|_inf.
               Each cell, the rest too, has P[x >= t] = r^t sum_j w_j binom(t - 2 + j, j) (1 - r)^j, r = exp(-2/s),
               t >= 1, with w_j from `_zero_sum_weights`. Sums of cells reach no further than those of independent
               discrete Laplace noises of scale s.
    Accuracy.  Mean 0, variance at most 2 scale^2 on each coordinate.
    Reference. The K-norm mechanism [HT10] on integers; docs/proofs/zero_sum_laplace.md.
    """

    __slots__ = ("numbers",)
    numbers: int

    def __init__(self, scale: Exact, numbers: int = 0) -> None:
        """numbers: of the groups, m; 0 if it is not known, or more than ZERO_SUM: then bounds are those of Laplace."""
        _LaplaceLaw.__init__(self, scale)
        exact.freeze(self, numbers=numbers)

    def guarantee(self, moved: Sensitivity, *, unit: Fraction, dimension: int, neighbours: Neighbours) -> Guarantee:
        if dimension > ZERO_SUM:
            raise ParameterError(
                f"noise that adds up to zero is drawn for up to {ZERO_SUM} groups, found {dimension:,}"
            )
        return Guarantee.of_pure(2 * moved.linf / self.steps(unit), neighbours=neighbours)

    def draw(self, shape: tuple[int, ...], *, unit: Fraction, rng: Rng) -> IntArray:
        return rng.zero_sum_laplace(self.steps(unit), math.prod(shape)).reshape(shape)

    def tail(self, steps: int, *, unit: Fraction = ONE) -> float:
        """P[noise >= steps] for steps >= 1; 1 below."""
        return 1.0 if steps < 1 else math.exp(self._log_tail(float(self.scale / unit), steps))

    def reach(self, log_failure: float, *, unit: Fraction = ONE) -> int:
        """The least number of steps, at least 1, that the noise reaches with probability at most exp(log_failure)."""
        most = _LaplaceLaw.reach(self, log_failure, unit=unit)
        if not 0 < self.numbers <= ZERO_SUM:
            return most
        s = float(self.scale / unit)
        return 1 + bisect_left(range(1, most), True, key=lambda t: self._log_tail(s, t) + _SURE <= log_failure)

    def _log_tail(self, s: float, steps: int) -> float:
        with np.errstate(over="ignore"):  # an infinite sum says nothing: a tail is then not small enough
            places = np.arange(1, self.numbers)
            grown = np.cumprod((steps - 2 + places) / places * -math.expm1(-2 / s))
            weights = _zero_sum_weights(self.numbers, s)
            return -2 * steps / s + math.log(float(weights[0] + weights[1:] @ grown))


ZERO_SUM = 256
"""Groups that get noise which adds up to zero. Of more it would cost nearly what Laplace noise does, and take long."""

_SURE = 1e-9  # more than the floats of a tail's logarithm are off: below 2000 roundings, and exponents below 2000


@lru_cache(maxsize=1024)
def _zero_sum_weights(numbers: int, s: float) -> Floats:
    """w_j = sum over i >= j of c_i / z, z = sum_n binom(m, n)^2 r^n, c_i = sum_n binom(m-1-i, n) binom(m-1, n) r^n."""
    powers = np.exp(-2 / s * np.arange(numbers + 1))
    pascal = _binomials(numbers)
    parts = pascal[:-1, :-1] @ (pascal[-2, :-1] * powers[:-1])  # c_(m-1), ..., c_0
    return np.asarray(np.cumsum(parts)[::-1] / (pascal[-1] ** 2 @ powers))


@lru_cache(maxsize=ZERO_SUM)
def _binomials(numbers: int) -> Floats:
    """binom(n, k) for n and k up to this."""
    return np.array([[float(math.comb(n, k)) for k in range(numbers + 1)] for n in range(numbers + 1)])


Noise = GaussianNoise | LaplaceNoise | ProductLaplaceNoise | CoordinateLaplaceNoise | ZeroSumNoise
VectorNoise = Noise | SphericalNoise
"""What may be added to a vector of which no coordinate is looked at alone."""


def checked_noise(kinds: Any = VectorNoise, **named: object) -> Any:
    """The one keyword argument, if it is one of these noises."""
    ((name, noise),) = named.items()
    if not isinstance(noise, kinds):
        raise ParameterError(f"{name} must be a GaussianNoise or another noise, found {noise!r}")
    return noise


class SubGaussianNoise(_AnyNoise):
    """A weighted sum of independent discrete Gaussian noises: how far it reaches. It is not drawn as such.

    Theorem.   If the squares of the weights times the noises' scales add up to scale^2, then E exp(l X) <= exp(l^2
               scale^2 / 2), so P[X >= t] <= exp(-t^2 / (2 scale^2)) (Chernoff).
    Accuracy.  Mean 0, variance at most scale^2.
    Reference. [CKS20] corollary 9 for each of the noises.
    """

    __slots__ = ()

    def variance(self) -> float:
        """An upper bound on the variance, in units squared."""
        return float(self.scale) ** 2

    def reach(self, log_failure: float, *, unit: Fraction = ONE) -> int:
        """A number of steps, at least 1, that the noise reaches with probability at most exp(log_failure)."""
        return max(1, math.ceil(float(self.sum_reach(np.array([-log_failure]), np.ones(1), unit=unit)[0])))

    def quantile(self, failure: float, *, copies: float = 1, log_sets: float = 0.0, unit: Fraction = ONE) -> float:
        """None of exp(log_sets) fixed sums of `copies` noises exceeds this but with probability failure."""
        spent = np.array([math.log(2 / failure) + log_sets])
        return float(self.sum_reach(spent, np.array([max(0.0, copies)]), unit=unit)[0])

    def sum_reach(self, spent: Floats, copies: Floats, *, unit: Fraction = ONE) -> Floats:
        """A bound on sums of `copies` noises, each exceeded with probability at most exp(-spent)."""
        return np.asarray(float(self.scale / unit) * np.sqrt(copies) * self.deviations(spent))

    def deviations(self, spent: Floats) -> Floats:
        """How many standard deviations are exceeded with probability at most exp(-spent)."""
        return np.asarray(np.sqrt(2 * np.maximum(spent, 0.0)))


class FineGaussianNoise(SubGaussianNoise):
    """The same, if each of the noises has a scale of at least FINE steps: as far as the normal law reaches.

    Theorem.   P[X >= t scale] <= 1.0064 P[N(0, 1) >= (t - 0.015) / 1.0001], for at most 2^22 noises.
    Reference. docs/proofs/residual_marginals.md.
    """

    __slots__ = ()

    def deviations(self, spent: Floats) -> Floats:
        """How many standard deviations are exceeded with probability at most exp(-spent)."""
        from scipy.special import ndtri_exp

        normal = 1.0001 * -ndtri_exp(np.minimum(-np.asarray(spent) - 0.0064, -1e-9)) + 0.015
        return np.asarray(np.minimum(np.maximum(normal, 0.0), np.sqrt(2 * np.maximum(spent, 0.0))))


FINE = 256

NOISES: dict[str, type[GaussianNoise] | type[LaplaceNoise]] = {"gaussian": GaussianNoise, "laplace": LaplaceNoise}
"""The two noises that records call by a word."""

LAWS: dict[str, type[_AnyNoise]] = {
    **NOISES,
    "zero-sum": ZeroSumNoise,
    "fine": FineGaussianNoise,
    "sub-gaussian": SubGaussianNoise,
}
"""The laws of noise on numbers that were measured."""
