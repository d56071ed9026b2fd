"""Losses of one row: a convex function of the number u that says how the prediction misses, written once.

A linear model predicts m = <w, x>. Every loss here but the softmax depends on one number:

    difference losses   u = m - y        y a bounded number     Squared, Huber, Absolute, Pinball
    margin losses       u = m or -m      for the two classes    Logistic, Hinge

and says its value, its slope and three constants over |u| <= reach: how steep it is, how fast the slope changes (None:
it jumps) and how far apart its values are. The constants are facts for theorems of accuracy. Privacy never rests on
them: what is summed over rows are integers cut to a fixed range (`discreet.erm.gradient`).

`Logistic(cap)` and `Huber(threshold)` are the logistic and the squared loss continued by a straight line where they are
steeper than the cap. Such a loss is convex, and its gradients are bounded by the cap: this is what clipping gradients
does to a linear model, said as a loss. At w = 0 every logistic slope is 1/2, so cap = 1/2 halves the noise and loses
nothing there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet import exact
from discreet.arrays import Floats
from discreet.errors import ParameterError
from discreet.exact import Exact


@dataclass(frozen=True, slots=True)
class Squared:
    """u^2: its minimiser over the numbers is the mean, over linear functions linear regression."""

    NAME: ClassVar[str] = "squared/1"
    form: ClassVar[str] = "difference"

    def value(self, u: Floats) -> Floats:
        return u * u

    def slope(self, u: Floats) -> Floats:
        return 2 * u

    @property
    def slope_bound(self) -> Fraction:
        raise ParameterError("the squared loss has no bounded slope: Huber(threshold) has one")

    def steepness(self, reach: float) -> float:
        return 2 * reach

    def curvature(self) -> float | None:
        return 2.0


@dataclass(frozen=True, slots=True, init=False)
class Huber:
    """u^2 up to the threshold, and the line that continues it beyond: the squared loss with bounded slopes."""

    NAME: ClassVar[str] = "huber/1"
    form: ClassVar[str] = "difference"
    threshold: Fraction

    def __init__(self, threshold: Exact) -> None:
        exact.freeze(self, threshold=exact.moderate(threshold=threshold))

    def value(self, u: Floats) -> Floats:
        cut = np.minimum(np.abs(u), float(self.threshold))
        return np.asarray(cut * (2 * np.abs(u) - cut))

    def slope(self, u: Floats) -> Floats:
        return 2 * np.clip(u, -float(self.threshold), float(self.threshold))

    @property
    def slope_bound(self) -> Fraction:
        return 2 * self.threshold

    def steepness(self, reach: float) -> float:
        return 2 * min(reach, float(self.threshold))

    def curvature(self) -> float | None:
        return 2.0


@dataclass(frozen=True, slots=True)
class Absolute:
    """|u|: its minimiser over the numbers is the median."""

    NAME: ClassVar[str] = "absolute/1"
    form: ClassVar[str] = "difference"

    def value(self, u: Floats) -> Floats:
        return np.abs(u)

    def slope(self, u: Floats) -> Floats:
        return np.sign(u)

    @property
    def slope_bound(self) -> Fraction:
        return Fraction(1)

    def steepness(self, reach: float) -> float:
        return 1.0

    def curvature(self) -> float | None:
        return None


@dataclass(frozen=True, slots=True, init=False)
class Pinball:
    """(1 - q) u above, -q u below: its minimiser over the numbers is the q-quantile."""

    NAME: ClassVar[str] = "pinball/1"
    form: ClassVar[str] = "difference"
    q: Fraction

    def __init__(self, q: Exact) -> None:
        exact.freeze(self, q=exact.probability(q=q))

    def value(self, u: Floats) -> Floats:
        return np.maximum(float(1 - self.q) * u, -float(self.q) * u)

    def slope(self, u: Floats) -> Floats:
        return np.where(u > 0, float(1 - self.q), np.where(u < 0, -float(self.q), 0.0))

    @property
    def slope_bound(self) -> Fraction:
        return max(self.q, 1 - self.q)

    def steepness(self, reach: float) -> float:
        return float(max(self.q, 1 - self.q))

    def curvature(self) -> float | None:
        return None


@dataclass(frozen=True, slots=True, init=False)
class Logistic:
    """log(1 + exp(-u)), continued by a line of slope -cap where it is steeper than that; cap = 1 is the plain loss."""

    NAME: ClassVar[str] = "logistic/1"
    form: ClassVar[str] = "margin"
    cap: Fraction

    def __init__(self, cap: Exact = 1) -> None:
        found = exact.positive(cap=cap)
        if found > 1:
            raise ParameterError(f"cap must be at most 1, the steepest slope of the logistic loss; found {cap!r}")
        exact.freeze(self, cap=found)

    def value(self, u: Floats) -> Floats:
        if self.cap == 1:
            return np.logaddexp(0.0, -u)
        bend = math.log(float((1 - self.cap) / self.cap))
        return np.logaddexp(0.0, -np.maximum(u, bend)) + float(self.cap) * np.maximum(bend - u, 0.0)

    def slope(self, u: Floats) -> Floats:
        return -np.minimum(_sigmoid(-u), float(self.cap))

    @property
    def slope_bound(self) -> Fraction:
        return self.cap

    def steepness(self, reach: float) -> float:
        return float(self.cap)

    def curvature(self) -> float | None:
        return 0.25

    def probability(self, margin: Floats) -> Floats:
        """The probability of the positive class at which this margin minimises the expected loss.

        A slope of s for one class and -t for the other balance when the class has probability s / (s + t).
        """
        up, down = -self.slope(-margin), -self.slope(margin)
        return up / (up + down)


@dataclass(frozen=True, slots=True)
class Hinge:
    """max(0, 1 - u): the loss of support vector machines."""

    NAME: ClassVar[str] = "hinge/1"
    form: ClassVar[str] = "margin"

    def value(self, u: Floats) -> Floats:
        return np.maximum(0.0, 1 - u)

    def slope(self, u: Floats) -> Floats:
        return np.where(u < 1, -1.0, 0.0)

    @property
    def slope_bound(self) -> Fraction:
        return Fraction(1)

    def steepness(self, reach: float) -> float:
        return 1.0

    def curvature(self) -> float | None:
        return None


@dataclass(frozen=True, slots=True, init=False)
class Softmax:
    """log(sum_k exp(m_k)) - m_y over `classes` margins: logistic regression with several classes.

    Its slope is p - e_y, of length at most sqrt 2; the matrix of second derivatives diag(p) - p p^T is at most 1/2.
    """

    NAME: ClassVar[str] = "softmax/1"
    form: ClassVar[str] = "classes"
    classes: int

    def __init__(self, classes: int) -> None:
        exact.freeze(self, classes=exact.whole(minimum=2, classes=classes))

    def value(self, margins: Floats, label: npt.NDArray[np.int64]) -> Floats:
        top = margins.max(axis=1)
        total = np.log(np.exp(margins - top[:, None]).sum(axis=1)) + top
        return np.asarray(total - margins[np.arange(len(label)), label])

    def probability(self, margins: Floats) -> Floats:
        grown = np.exp(margins - margins.max(axis=1, keepdims=True))
        return np.asarray(grown / grown.sum(axis=1, keepdims=True))

    @property
    def slope_bound(self) -> Fraction:
        return Fraction(1)

    def steepness(self, reach: float) -> float:
        return math.sqrt(2)

    def curvature(self) -> float | None:
        return 0.5


@dataclass(frozen=True, slots=True)
class Custom:
    """A user's own gradient: gradient(w, row) -> `dimension` numbers for a row {column: value}, cut to length `bound`.

    convex     the owner states that the gradients, uncut, are those of convex functions no steeper than `bound`;
               without this statement a descent is as private, but nothing is promised about what it finds.
    smooth     the owner states how fast the gradient of one row turns.
    label      what the ledger calls it: a function cannot be recorded, its bound and its label are.
    """

    NAME: ClassVar[str] = "custom-gradient/1"
    form: ClassVar[str] = "custom"
    gradient: Callable[[Floats, dict[str, Any]], Any]
    bound: Fraction
    dimension: int
    label: str
    convex: bool = False
    smooth: Fraction | None = None

    def __post_init__(self) -> None:
        if not callable(self.gradient):
            raise ParameterError(f"gradient must be a function of (w, row), found {self.gradient!r}")
        exact.text(label=self.label)
        exact.freeze(
            self,
            bound=exact.moderate(bound=self.bound),
            dimension=exact.whole(dimension=self.dimension),
            smooth=None if self.smooth is None else exact.positive(smooth=self.smooth),
        )

    @property
    def slope_bound(self) -> Fraction:
        return self.bound

    def steepness(self, reach: float) -> float:
        return float(self.bound)

    def curvature(self) -> float | None:
        return None if self.smooth is None else float(self.smooth)

    def stated_record(self) -> dict[str, Any]:
        stated = {"bound": f"{self.bound.numerator}/{self.bound.denominator}", "dimension": self.dimension}
        return {"name": self.NAME, "label": self.label, **stated}


Loss = Squared | Huber | Absolute | Pinball | Logistic | Hinge | Softmax | Custom


def _sigmoid(u: Floats) -> Floats:
    grown = np.exp(-np.abs(u))
    return np.where(u >= 0, 1.0, grown) / (1.0 + grown)
