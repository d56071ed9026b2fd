"""The problem, written once: minimise over a feasible set the mean loss of the rows plus a regularizer.

    L(w) = (1/n) sum_i loss(w; row_i) + Lambda(w),  w in C                                            (lecture 9)

A `Risk` is public: it says which loss, how a row becomes a vector and a target, which set, which regularizer. Its
`constants` are the facts of the theorems:

    rows        k     rows per person, at most
    lipschitz   G     length of the gradient of the loss part of L: k times that of one row; the regularizer's is not in
                      it, for it costs no privacy
    smoothness  beta  how fast the gradient of L turns (ridge included); None if the loss has corners
    cautious          the same for `CAUTION` times as many rows under add-remove: what rates are chosen for
    convexity   mu    strong convexity of L: the strength of ridge
    oscillation Delta how far apart the loss part of L at two points of C can be
    span        R0    largest distance of a point of C from the start of a descent, the centre of C
    diameter          of C
    row_norm    B     length of a row's vector

n is the public size: the number of persons under replace-one, a declared number under add-remove (a row that is removed
then contributes 0 to a sum that is still divided by the same number). L is a loss per person: the sum over all rows, of
which a person may hold k, divided by n.

Hypothesis. There are at most k n rows in all. Replace-one implies it. Under add-remove the number of rows is private
and n is a number that the owner declares, so it is a condition of every promise, which `Promise` says in words.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet.core import Exact, ParameterError, exact
from discreet.data import Domain, Facts, Floats
from discreet.erm.feasible_sets import FeasibleSet
from discreet.erm.features import Features
from discreet.erm.losses import Loss

CAUTION = 4
"""Under add-remove the steps of a descent on a smooth loss are short enough for this many times the declared rows."""


class Regularizer:
    """A public penalty on w. `ridge` and `lasso` are its strengths as one and as the other; one of them is 0."""

    __slots__ = ()

    @property
    def ridge(self) -> Fraction:
        return Fraction(0)

    @property
    def lasso(self) -> Fraction:
        return Fraction(0)

    def value(self, w: Floats) -> float:
        return float(self.ridge) / 2 * float(np.dot(w, w)) + float(self.lasso) * float(np.abs(w).sum())

    def gradient(self, w: Floats) -> Floats:
        """At a corner one of the subgradients."""
        return np.asarray(float(self.ridge) * w + float(self.lasso) * np.sign(w))


@dataclass(frozen=True, slots=True, init=False)
class _OfStrength(Regularizer):
    strength: Fraction

    def __init__(self, strength: Exact) -> None:
        exact.freeze(self, strength=exact.moderate(strength=strength))


class Ridge(_OfStrength):
    """(strength / 2) |w|^2."""

    __slots__ = ()
    NAME: ClassVar[str] = "ridge/1"

    @property
    def ridge(self) -> Fraction:
        return self.strength


class Lasso(_OfStrength):
    """strength * |w|_1."""

    __slots__ = ()
    NAME: ClassVar[str] = "lasso/1"

    @property
    def lasso(self) -> Fraction:
        return self.strength


@dataclass(frozen=True, slots=True)
class Constants:
    """What theorems need to know of a risk; the module's docstring says what each is."""

    dimension: int
    rows: int
    lipschitz: float
    smoothness: float | None
    cautious: float | None
    convexity: float
    oscillation: float
    span: float
    diameter: float
    row_norm: float
    regularizer_slope: float

    @property
    def slope(self) -> float:
        """Of the risk: that of the losses and of the regularizer."""
        return self.lipschitz + self.regularizer_slope


@dataclass(frozen=True, slots=True)
class Risk:
    """A loss, the rows' vectors and target column, a feasible set and maybe a regularizer."""

    NAME: ClassVar[str] = "risk/1"
    loss: Loss
    features: Features
    target: str
    feasible: FeasibleSet
    regularizer: Regularizer | None = None

    @property
    def penalty(self) -> Regularizer:
        """The regularizer, or one that is 0 everywhere."""
        return self.regularizer or Regularizer()

    def dimension(self, domain: Domain) -> int:
        """How many numbers a solution has: one for each coordinate of a row, times the margins that the loss reads."""
        return self.loss.dimension_of(self.features, domain)

    def target_bound(self, domain: Domain) -> Fraction:
        """The largest absolute value of the target; 0 for classes."""
        return self.loss.target_bound(domain, self.target)

    def row_norm(self, domain: Domain) -> float:
        return self.loss.row_norm(self.features, domain)

    def miss_reach(self, domain: Domain) -> float:
        """The largest |u| that a point of the feasible set and a row can have."""
        reach = self.feasible.reach(self.dimension(domain))
        return self.row_norm(domain) * reach + float(self.target_bound(domain))

    def constants(self, facts: Facts) -> Constants:
        domain = facts.domain
        self.loss.check_target(domain, self.target)
        dimension, norm = self.dimension(domain), self.row_norm(domain)
        diameter, reach = self.feasible.diameter(dimension), self.feasible.reach(dimension)
        steep = self.loss.steepness(self.miss_reach(domain))
        curve, ridge, lasso = self.loss.curvature(), float(self.penalty.ridge), float(self.penalty.lasso)
        rows = facts.neighbours.rows
        caution = 1 if facts.neighbours.replace_one else CAUTION
        return Constants(
            dimension=dimension,
            rows=rows,
            lipschitz=rows * steep * norm,
            smoothness=None if curve is None else rows * curve * norm**2 + ridge,
            cautious=None if curve is None else caution * rows * curve * norm**2 + ridge,
            convexity=ridge,
            oscillation=rows * steep * norm * diameter,
            span=self.feasible.span(dimension),
            diameter=diameter,
            row_norm=norm,
            regularizer_slope=ridge * reach + lasso * math.sqrt(dimension),
        )

    def centre_excess(self, facts: Facts) -> float:
        """The excess risk of the centre of the set, at most: what can be had without looking at any row."""
        known, centre = self.constants(facts), self.feasible.centre(self.dimension(facts.domain))
        farthest = known.oscillation + known.regularizer_slope * known.diameter
        missed = known.row_norm * float(np.linalg.norm(centre)) + float(self.target_bound(facts.domain))
        return min(farthest, known.rows * self.loss.largest(missed) + self.penalty.value(centre))

    def sum_slope(self, facts: Facts, beyond: float) -> float | None:
        """How steep the sum of the losses plus n times the regularizer is, up to this distance outside the set."""
        known, size = self.constants(facts), public_size(facts)
        steep = self.loss.steepness(self.miss_reach(facts.domain) + known.row_norm * beyond) * known.row_norm
        larger = 1 + 2 * beyond / known.diameter  # a set's reach is at least half its diameter
        return size * known.rows * steep + size * known.regularizer_slope * larger

    def smooth_gradient(self, w: Floats) -> Floats:
        """The gradient of the part of the regularizer that has one: ridge."""
        return float(self.penalty.ridge) * w if self.penalty.ridge else np.zeros_like(w)

    def shrinkage(self) -> float:
        """The strength of lasso, which a step takes by soft thresholding."""
        return float(self.penalty.lasso)

    def penalty_units(self, facts: Facts, unit: Fraction) -> tuple[Fraction, Fraction]:
        """What n times the regularizer adds for one square, and for one absolute value, of integers of this unit."""
        size = public_size(facts) if self.regularizer else 0
        return self.penalty.ridge * size * unit**2 / 2, self.penalty.lasso * size * unit


def checked_risk(risk: object) -> Risk:
    """The risk, if it is one."""
    if not isinstance(risk, Risk):
        raise ParameterError(f"risk must be a Risk, found {risk!r}")
    return risk


def public_size(facts: Facts) -> int:
    """The number a sum of losses is divided by."""
    if facts.size is None:
        raise ParameterError(
            "a mean over people needs a public size: under add-remove declare one with size= (it need not be exact)"
        )
    return max(1, facts.size)
