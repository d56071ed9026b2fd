"""Integer noise on an integer vector: what it costs and how it is drawn, from the same two fields.

A noise does not know what it is added to. `moved` says how far neighbours move the integers (`query.Sensitivity`);
`unit` is what one integer is worth, and `scale` is absolute noise in the same units as unit. The mechanisms of
`additive`, noisy gradient descent and output perturbation all price and draw by these.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from discreet import exact
from discreet.data import IntArray
from discreet.errors import ParameterError
from discreet.exact import Exact
from discreet.guarantee import Guarantee, Neighbours
from discreet.query import Sensitivity
from discreet.rng import Rng, checked_scale, checked_variance


@dataclass(frozen=True, slots=True, init=False)
class GaussianNoise:
    """Discrete Gaussian noise on every coordinate: P[k steps] proportional to exp(-k^2/(2 s^2)), s = scale/unit.

    Theorem.   If |d|_2^2 <= D2 for all neighbours, adding it is (D2 / (2 s^2))-zCDP. It is not pure.
    Accuracy.  Mean 0, variance at most scale^2 on each coordinate.
    Reference. [CKS20] theorem 14, corollary 9.
    """

    NAME: ClassVar[str] = "gaussian-noise/1"
    scale: Fraction

    def __init__(self, scale: Exact) -> None:
        exact.freeze(self, scale=exact.positive(scale=scale))

    def guarantee(self, moved: Sensitivity, *, unit: Fraction, dimension: int, neighbours: Neighbours) -> Guarantee:
        return Guarantee.of_zcdp(moved.l2_squared / (2 * self._variance(unit)), neighbours=neighbours)

    def draw(self, shape: tuple[int, ...], *, unit: Fraction, rng: Rng) -> IntArray:
        return rng.gaussian(self._variance(unit), shape)

    def variance(self) -> float:
        """An upper bound on the variance of one coordinate, in units squared."""
        return float(self.scale) ** 2

    def _variance(self, unit: Fraction) -> Fraction:
        return checked_variance((self.scale / checked_unit(unit)) ** 2)


@dataclass(frozen=True, slots=True, init=False)
class LaplaceNoise:
    """Discrete Laplace noise on every coordinate, priced by the L1 norm: P[k steps] proportional to exp(-|k|/s).

    Theorem.   s = scale/unit. If |d|_1 <= D1 for all neighbours, adding it is (D1/s)-DP, with the Renyi curve of one
               coordinate that moves by D1, which is the worst way to spend an L1 budget.
    Accuracy.  Mean 0, variance at most 2 scale^2 on each coordinate.
    Reference. [DMNS06] proposition 1, discrete form [GRS12]; curve: docs/proofs/discrete_laplace_renyi.md.
    """

    NAME: ClassVar[str] = "laplace-noise/1"
    scale: Fraction

    def __init__(self, scale: Exact) -> None:
        exact.freeze(self, scale=exact.positive(scale=scale))

    def guarantee(self, moved: Sensitivity, *, unit: Fraction, dimension: int, neighbours: Neighbours) -> Guarantee:
        return Guarantee.of_laplace(moved.l1, scale=in_steps(self.scale, unit), neighbours=neighbours)

    def draw(self, shape: tuple[int, ...], *, unit: Fraction, rng: Rng) -> IntArray:
        return rng.laplace(in_steps(self.scale, unit), shape)

    def variance(self) -> float:
        return 2 * float(self.scale) ** 2


@dataclass(frozen=True, slots=True, init=False)
class ProductLaplaceNoise:
    """Discrete Laplace noise on every coordinate, priced by the L2 norm (lecture 10, theorem 3).

    Theorem.   s = scale/unit, d coordinates, |d|_2^2 <= D2 and |d|_1 <= D1 for all neighbours: adding it is (D1/s)-DP,
               and its Renyi divergence of order a is at most n R(sqrt(D2/n)), n = min(d, D1, D2), R Laplace's curve.
    Accuracy.  Mean 0, variance at most 2 scale^2 on each coordinate.
    Reference. Lecture 10, theorem 3; docs/proofs/discrete_laplace_renyi.md.
    """

    NAME: ClassVar[str] = "product-laplace-noise/1"
    scale: Fraction

    def __init__(self, scale: Exact) -> None:
        exact.freeze(self, scale=exact.positive(scale=scale))

    def guarantee(self, moved: Sensitivity, *, unit: Fraction, dimension: int, neighbours: Neighbours) -> Guarantee:
        return Guarantee.of_product_laplace(
            moved.l2_squared,
            l1=moved.l1,
            scale=in_steps(self.scale, unit),
            dimension=dimension,
            neighbours=neighbours,
        )

    def draw(self, shape: tuple[int, ...], *, unit: Fraction, rng: Rng) -> IntArray:
        return rng.laplace(in_steps(self.scale, unit), shape)

    def variance(self) -> float:
        return 2 * float(self.scale) ** 2


@dataclass(frozen=True, slots=True, init=False)
class CoordinateLaplaceNoise:
    """Discrete Laplace noise, every coordinate priced as if it could move by the whole norm (lecture 10, A and B).

    Theorem.   s = scale/unit, d coordinates, each moving by at most M between neighbours: d discrete Laplace mechanisms
               of shift M, so (d M/s)-DP (basic composition) and d times the Renyi curve of one (strong composition).
    Accuracy.  Mean 0, variance at most 2 scale^2 on each coordinate.
    Reference. Lecture 10, the first version of noisy gradient descent.
    """

    NAME: ClassVar[str] = "coordinate-laplace-noise/1"
    scale: Fraction

    def __init__(self, scale: Exact) -> None:
        exact.freeze(self, scale=exact.positive(scale=scale))

    def guarantee(self, moved: Sensitivity, *, unit: Fraction, dimension: int, neighbours: Neighbours) -> Guarantee:
        return dimension * Guarantee.of_laplace(moved.linf, scale=in_steps(self.scale, unit), neighbours=neighbours)

    def draw(self, shape: tuple[int, ...], *, unit: Fraction, rng: Rng) -> IntArray:
        return rng.laplace(in_steps(self.scale, unit), shape)

    def variance(self) -> float:
        return 2 * float(self.scale) ** 2


Noise = GaussianNoise | LaplaceNoise | ProductLaplaceNoise | CoordinateLaplaceNoise


def in_steps(scale: Fraction, unit: Fraction) -> Fraction:
    """The noise scale counted in the integers that are summed, if it can be drawn."""
    return checked_scale(scale / checked_unit(unit))


def checked_unit(unit: Fraction) -> Fraction:
    """The unit, if every sum in it is a float: sums and noise are below 2^94 steps."""
    if max(unit.numerator, unit.denominator) >= 10**250:
        raise ParameterError("floats cannot hold sums in the units of this column: declare it in other units")
    return unit
