"""Linear regression from noisy moments: the sums of x x^T and of y x, released once with noise, and solved.

    A = sum x x^T + noise,  c = sum y x + noise,   released: the w with (A + ridge) w = c

Everything after the noise is a function of what was released, so the ridge may look at it: this is how it adapts to
the rows [Wang18]. The rows are read once, and a squared loss needs no cap on its slopes; but d (d + 3) / 2 numbers get
noise instead of d, which many features make dear.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet.core import Funds, Guarantee, ParameterError, Rng, exact
from discreet.data import Dataset, Facts, Floats, Needs
from discreet.erm import STEPS, Risk, checked_risk
from discreet.erm.gradient import MomentPass, pass_over
from discreet.mechanisms import (
    GaussianNoise,
    Noise,
    ProductLaplaceNoise,
    Promise,
    Sensitivity,
    calibrate,
    checked_noise,
    of_persons,
)

_SHARE = 0.8  # of the largest ridge that noise and signal balance; chosen on the tables of bench/public_tables.py
_ROUNDS = 50  # after which the ridge and the length of the solution agree
_LEAST = 1e-3  # a shorter solution counts as this long


@dataclass(frozen=True, slots=True)
class NoisyMoments:
    """Release the ridge regression that noisy sums of products give; `noise` is in integers of these products.

    Theorem.   A row is an integer vector x, |x|_2^2 <= B and |x|_1 <= B1, its target an integer of at most S = 2^15.
               What it adds, the products x_i x_j with i <= j and S-bounded y x, has squared L2 length at most
               B^2 + S^2 B and L1 length at most (B1^2 + B) / 2 + S B1. So k rows per person: |d|_2^2 <= k^2 (B^2 +
               S^2 B), |d|_1 <= k ((B1^2 + B) / 2 + S B1) (add-remove). Replace-one: |d|_2^2 <= k^2 (2 B^2 + 4 S^2 B),
               as the products of two tables never point in opposite directions, and twice the L1 length. The noise has
               the guarantee of this sensitivity; ridge and solution are computed from what is released.
    Accuracy.  Nothing is promised: the error depends on how the features hang together. s the deviation of the noise,
               in units in which B = S = 1: the ridge is 0.8 s sqrt(d) sqrt(1 + |w|^2) / |w| for the w it leads to, and
               negative eigenvalues of A count as 0.
    Edges.     The squared loss, at most 2^12 features; a ridge of the risk's own is added, n times. The feasible set
               is not kept: the ridge is what bounds a solution.
    Reference. [Wang18]; docs/proofs/noisy_moments.md.
    """

    NAME: ClassVar[str] = "noisy-moments/1"
    risk: Risk
    noise: Noise

    def __post_init__(self) -> None:
        exact.convert(self, risk=checked_risk, noise=functools.partial(checked_noise, Noise))

    def guarantee(self, facts: Facts) -> Guarantee:
        over = self._over(facts)
        facts.require_room(max(over.rows_squared, STEPS * math.isqrt(over.rows_squared)))
        moved, count = self.sensitivity(facts), over.width * (over.width + 3) // 2
        return self.noise.guarantee(moved, unit=Fraction(1), dimension=count, neighbours=facts.neighbours)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        over, features = self._over(facts), self.risk.features
        squared, length = over.rows_squared, features.bound_l1(facts.domain)
        l1, largest = (length**2 + squared) // 2 + STEPS * length, max(squared, STEPS * math.isqrt(squared))
        added = Sensitivity(l1, squared**2 + STEPS**2 * squared, largest, 2 * largest)
        replaced = Sensitivity(2 * l1, 2 * squared**2 + 4 * STEPS**2 * squared, 2 * largest, 4 * largest)
        return of_persons(facts.neighbours, added=added, replaced=replaced)

    def needs(self, facts: Facts) -> Needs:
        return Needs(functions=True)

    def run(self, data: Dataset, rng: Rng) -> Floats:
        over = self._over(data.facts)
        width, upper = over.width, np.triu_indices(over.width)
        noise = self.noise.draw((width * (width + 3) // 2,), unit=Fraction(1), rng=rng)
        sums = data.exact_sum(over.moments)
        noisy = np.concatenate([sums[:-1][upper], sums[-1]]) + noise
        products = np.zeros((width, width))
        products[upper] = noisy[:-width]
        products = products + np.triu(products, 1).T
        found = self._solution(products, noisy[-width:].astype(np.float64), over, data.facts)
        return found * float(over.target_unit / self.risk.features.unit(data.facts.domain))

    def _solution(self, products: Floats, linear: Floats, over: MomentPass, facts: Facts) -> Floats:
        """From noisy integers, with the ridge that balances noise and bias; a public function of what is released."""
        longest = float(over.rows_squared)
        level = _SHARE * math.sqrt(over.width * self.noise.variance()) / longest
        own = float(self.risk.penalty.ridge * (facts.size or 0) / 2 / self.risk.features.unit(facts.domain) ** 2)
        curves, axes = np.linalg.eigh(products / longest)
        along, bends = axes.T @ (linear / longest), np.maximum(curves, 0.0) + own / longest
        found = along / (bends + 2 * level)
        for _ in range(_ROUNDS):
            length = max(_LEAST, float(np.linalg.norm(found)))
            found = along / (bends + level * math.sqrt(1 + length**2) / length)
        return np.asarray(axes @ found)

    def _over(self, facts: Facts) -> MomentPass:
        if not self.risk.loss.moments:
            raise ParameterError(f"moments are those of the squared loss, found {type(self.risk.loss).__name__}")
        over = pass_over(self.risk, facts.domain)
        assert isinstance(over, MomentPass)
        return over


def promise(mechanism: NoisyMoments, facts: Facts) -> Promise:
    """None: there is no theorem with constants about the ridge that adapts."""
    theorem = f"noisy moments, {type(mechanism.noise).__name__}"
    return Promise(None, theorem, "no bound on the risk is proved for a ridge that adapts to what is released")


def propose(risk: Risk, *, facts: Facts, funds: Funds) -> NoisyMoments:
    """With the least noise that is admitted: Gaussian where it is, else Laplace."""
    kinds: tuple[type[Noise], ...] = (ProductLaplaceNoise,) if funds.pure else (GaussianNoise, ProductLaplaceNoise)
    refused: ParameterError | None = None
    for law in kinds:
        try:
            return calibrate(lambda scale: NoisyMoments(risk, law(scale)), funds=funds, facts=facts)  # noqa: B023
        except ParameterError as error:
            refused = refused or error
    assert refused is not None
    raise refused
