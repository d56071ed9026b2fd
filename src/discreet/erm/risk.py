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

from discreet import exact
from discreet.data import Category, Domain, Facts, Floats, Number
from discreet.erm.feasible_sets import FeasibleSet
from discreet.erm.features import Constant, Declared, VectorColumn
from discreet.erm.losses import Custom, Loss, Softmax, Squared
from discreet.errors import ParameterError
from discreet.exact import Exact

CAUTION = 4
"""Under add-remove the steps of a descent on a smooth loss are short enough for this many times the declared rows."""


@dataclass(frozen=True, slots=True, init=False)
class Ridge:
    """(strength / 2) |w|^2."""

    NAME: ClassVar[str] = "ridge/1"
    strength: Fraction

    def __init__(self, strength: Exact) -> None:
        exact.freeze(self, strength=exact.moderate(strength=strength))

    def value(self, w: Floats) -> float:
        return float(self.strength) / 2 * float(np.dot(w, w))


@dataclass(frozen=True, slots=True, init=False)
class Lasso:
    """strength * |w|_1."""

    NAME: ClassVar[str] = "lasso/1"
    strength: Fraction

    def __init__(self, strength: Exact) -> None:
        exact.freeze(self, strength=exact.moderate(strength=strength))

    def value(self, w: Floats) -> float:
        return float(self.strength) * float(np.abs(w).sum())


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


@dataclass(frozen=True, slots=True)
class Risk:
    """A loss, the rows' vectors and target column, a feasible set and maybe a regularizer."""

    NAME: ClassVar[str] = "risk/1"
    loss: Loss
    features: Constant | VectorColumn | Declared
    target: str
    feasible: FeasibleSet
    regularizer: Ridge | Lasso | None = None

    def dimension(self, domain: Domain) -> int:
        """How many numbers a solution has: one for each coordinate of a row, times the classes of a softmax."""
        if isinstance(self.loss, Custom):
            return self.loss.dimension
        width = self.features.dimension(domain)
        return width * self.loss.classes if isinstance(self.loss, Softmax) else width

    def target_bound(self, domain: Domain) -> Fraction:
        """The largest absolute value of the target; 0 for classes."""
        column = self.checked_target(domain)
        return max(abs(column.low), abs(column.high)) if isinstance(column, Number) else Fraction(0)

    def checked_target(self, domain: Domain) -> Category | Number | None:
        """The declared target, if the loss can use it; None for a custom gradient, which reads the whole row."""
        if isinstance(self.loss, Custom):
            return None
        column = domain.column(self.target)
        if self.loss.form == "difference":
            if not isinstance(column, Number) or column.missing:
                raise ParameterError(
                    f"{type(self.loss).__name__} needs a target with bounds that is never missing, "
                    f"Number(low, high, step); {self.target!r} is declared {column!r}"
                )
            if column.low == column.high == 0:
                raise ParameterError(f"the target {self.target!r} is always 0")
            return column
        classes = self.loss.classes if isinstance(self.loss, Softmax) else 2
        if not isinstance(column, Category) or column.size != classes:
            raise ParameterError(
                f"{type(self.loss).__name__} needs a target with {classes} declared classes; "
                f"{self.target!r} is declared {column!r}"
            )
        return column

    def row_norm(self, domain: Domain) -> float:
        if isinstance(self.loss, Custom):
            return 1.0
        return math.sqrt(self.features.bound_squared(domain)) * float(self.features.unit(domain))

    def miss_reach(self, domain: Domain) -> float:
        """The largest |u| that a point of the feasible set and a row can have."""
        reach = self.feasible.reach(self.dimension(domain))
        return self.row_norm(domain) * reach + float(self.target_bound(domain))

    def constants(self, facts: Facts) -> Constants:
        domain = facts.domain
        self.checked_target(domain)
        dimension, norm = self.dimension(domain), self.row_norm(domain)
        diameter, reach = self.feasible.diameter(dimension), self.feasible.reach(dimension)
        steep = self.loss.steepness(self.miss_reach(domain))
        curve, strength = self.loss.curvature(), self._strength()
        ridge = strength if isinstance(self.regularizer, Ridge) else 0.0
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
            regularizer_slope=ridge * reach if ridge else strength * math.sqrt(dimension),
        )

    def centre_excess(self, facts: Facts) -> float:
        """The excess risk of the centre of the set, at most: what can be had without looking at any row."""
        known, centre = self.constants(facts), self.feasible.centre(self.dimension(facts.domain))
        farthest = known.oscillation + known.regularizer_slope * known.diameter
        if isinstance(self.loss, (Custom, Softmax)):
            at_zero = isinstance(self.loss, Softmax) and not centre.any()
            even = known.rows * math.log(self.loss.classes) if at_zero else math.inf  # type: ignore[union-attr]
            return min(farthest, even)
        missed = known.row_norm * float(np.linalg.norm(centre)) + float(self.target_bound(facts.domain))
        worst = known.rows * float(self.loss.value(np.array([-missed, missed])).max())
        return min(farthest, worst + (0.0 if self.regularizer is None else self.regularizer.value(centre)))

    def smooth_gradient(self, w: Floats) -> Floats:
        """The gradient of the part of the regularizer that has one: ridge."""
        return self._strength() * w if isinstance(self.regularizer, Ridge) else np.zeros_like(w)

    def shrinkage(self) -> float:
        """The strength of lasso, which a step takes by soft thresholding."""
        return self._strength() if isinstance(self.regularizer, Lasso) else 0.0

    def _strength(self) -> float:
        return 0.0 if self.regularizer is None else float(self.regularizer.strength)


def needs_moments(risk: Risk) -> bool:
    """The squared loss without a cap: its gradient is linear in w, so sums of products once are all that is needed."""
    return isinstance(risk.loss, Squared)


def public_size(facts: Facts) -> int:
    """The number a sum of losses is divided by."""
    if facts.size is None:
        raise ParameterError(
            "a mean over people needs a public size: under add-remove declare one with size= (it need not be exact)"
        )
    return max(1, facts.size)
