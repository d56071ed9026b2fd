"""Losses of one row: a convex function of the number u that says how the prediction misses, written once.

A linear model predicts m = <w, x>. Every loss here but the softmax depends on one number, u = sign * m + shift:

    difference losses   u = m - y        y a bounded number     Squared, Huber, Absolute, Pinball
    margin losses       u = m or -m      for the two classes    Logistic, Hinge

and says its value, its slope and three constants over |u| <= reach: how steep it is, how fast the slope changes (None:
it jumps) and how far apart its values are. The constants are facts for theorems of accuracy. Privacy never rests on
them: what is summed over rows are integers cut to a fixed range (`discreet.erm.gradient`).

`Logistic(cap)` and `Huber(threshold)` are the logistic and the squared loss continued by a straight line where they are
steeper than the cap. Such a loss is convex, and its gradients are bounded by the cap: this is what clipping gradients
does to a linear model, said as a loss. At w = 0 every logistic slope is 1/2, so cap = 1/2 halves the noise and loses
nothing there.

Solvers ask a loss what it is (`Loss` lists the questions) and never which class it has.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.core import Exact, ParameterError, exact
from discreet.data import Domain, Floats, Number
from discreet.erm.features import Features

Targets = npt.NDArray[np.int64] | Floats
Piece = tuple[float, float]  # a line: slope and height at 0
PowerSums = tuple[int, int, int]  # of some codes: their number, their sum, the sum of their squares
Below = Callable[[int], PowerSums]  # of the codes below this one


class Loss:
    """What every loss answers. A loss that reads the margins of a linear model answers all of it, `Custom` the rest.

    form         "difference", "margin", "classes" or "custom"
    moments      its gradient is linear in w: the sums of x x^T and y x are all that is needed
    margins      the number of margins of a row that it reads
    convex       it is convex, or its owner states so
    slope_bound  the unit of its slopes in integers: none is larger
    turning      how fast the slope changes, if that is the same for all losses of this kind; None: it jumps
    """

    __slots__ = ()
    NAME: ClassVar[str]
    form: ClassVar[str]
    moments: ClassVar[bool] = False
    turning: ClassVar[float | None] = None

    @property
    def margins(self) -> int:
        return 1

    @property
    def convex(self) -> bool:
        return True

    @property
    def slope_bound(self) -> Fraction:
        return Fraction(1)

    def dimension_of(self, features: Features, domain: Domain) -> int:
        """How many numbers a solution has."""
        return self.margins * features.dimension(domain)

    def row_norm(self, features: Features, domain: Domain) -> float:
        """The length of a row's vector, at most."""
        return math.sqrt(features.bound_squared(domain)) * float(features.unit(domain))

    def check_target(self, domain: Domain, name: str) -> None:
        """ParameterError unless the loss can use the declared target."""
        column, classes = domain.column(name), max(2, self.margins)
        if not column.categorical or column.size != classes:
            raise ParameterError(
                f"{type(self).__name__} needs a target with {classes} declared classes; {name!r} is declared {column!r}"
            )

    def number(self, domain: Domain, name: str) -> Number:
        """The declared target of a difference loss."""
        raise ParameterError("a line needs the features Constant() and a target Number(low, high, step)")

    def integer_form(self, number: Number) -> tuple[IntegerLoss, Fraction]:
        """The loss of a whole number of steps, in whole numbers of the unit that is returned with it."""
        raise NotImplementedError

    def target_bound(self, domain: Domain, name: str) -> Fraction:
        """The largest absolute value of the target; 0 for classes."""
        self.check_target(domain, name)
        return Fraction(0)

    def target_values(self, domain: Domain, name: str, codes: npt.NDArray[Any]) -> Targets:
        """The targets that these codes mean, as `row_values` and `row_slopes` read them."""
        return codes.astype(np.int64)

    def row_values(self, margins: Floats, y: Targets) -> Floats:
        """The loss of each row; margins has a row for each and a column for each margin."""
        raise NotImplementedError

    def row_slopes(self, margins: Floats, y: Targets) -> Floats:
        """Its derivatives by the margins."""
        raise NotImplementedError

    def largest(self, reach: float) -> float:
        """The largest value over |u| <= reach, as far as it is known."""
        return math.inf

    def steepest(self, reach: Fraction) -> Fraction:
        """The steepest slope over |u| <= reach, exact or rounded up: sensitivities rest on it."""
        return self.slope_bound

    def steepness(self, reach: float) -> float:
        """The same for theorems of accuracy."""
        return float(self.steepest(Fraction(reach)))

    def curvature(self) -> float | None:
        """How fast the slope changes; None if it jumps."""
        return self.turning

    def squared(self) -> Loss:
        """The squared loss that this one follows near 0; the loss itself if it follows none."""
        return self

    def widened(self, times: Fraction) -> Loss:
        """The loss with slopes that may be this many times as steep, if they are cut."""
        return self

    def as_pinball(self) -> tuple[Fraction, int] | None:
        """(q, k) if the loss is k times Pinball(q), whose minimiser is a quantile."""
        return None


class ScalarLoss(Loss):
    """A loss of one number u = sign * margin + shift."""

    __slots__ = ()

    def value(self, u: Floats) -> Floats:
        raise NotImplementedError

    def slope(self, u: Floats) -> Floats:
        raise NotImplementedError

    @property
    def pieces(self) -> tuple[Piece, Piece]:
        """The two lines of which a loss with a corner is the maximum."""
        raise NotImplementedError

    def miss(self, y: Targets) -> tuple[Floats | float, Floats | float]:
        """(shift, sign) of rows with these targets."""
        return 0.0, np.asarray(2.0 * y - 1.0, dtype=np.float64)

    def row_values(self, margins: Floats, y: Targets) -> Floats:
        shift, sign = self.miss(y[:, None])
        return self.value(sign * margins + shift)[:, 0]

    def row_slopes(self, margins: Floats, y: Targets) -> Floats:
        shift, sign = self.miss(y[:, None])
        return np.asarray(sign * self.slope(sign * margins + shift))

    def largest(self, reach: float) -> float:
        return float(self.value(np.array([-reach, reach])).max())


class MarginLoss(ScalarLoss):
    """u is the margin of the positive class, minus the margin for the other."""

    __slots__ = ()
    form: ClassVar[str] = "margin"


class DifferenceLoss(ScalarLoss):
    """u = m - y."""

    __slots__ = ()
    form: ClassVar[str] = "difference"

    def miss(self, y: Targets) -> tuple[Floats | float, Floats | float]:
        return np.asarray(-y, dtype=np.float64), 1.0

    def number(self, domain: Domain, name: str) -> Number:
        column = domain.column(name)
        if not column.bounded or column.missing:
            raise ParameterError(
                f"{type(self).__name__} needs a target with bounds that is never missing, "
                f"Number(low, high, step); {name!r} is declared {column!r}"
            )
        if column.low == column.high == 0:
            raise ParameterError(f"the target {name!r} is always 0")
        return column

    def check_target(self, domain: Domain, name: str) -> None:
        self.number(domain, name)

    def target_bound(self, domain: Domain, name: str) -> Fraction:
        number = self.number(domain, name)
        return max(abs(number.low), abs(number.high))

    def target_values(self, domain: Domain, name: str, codes: npt.NDArray[Any]) -> Targets:
        number = self.number(domain, name)
        return np.asarray(codes * float(number.step) + float(number.low))


@dataclass(frozen=True, slots=True)
class Squared(DifferenceLoss):
    """u^2: its minimiser over the numbers is the mean, over linear functions linear regression."""

    NAME: ClassVar[str] = "squared/1"
    moments: ClassVar[bool] = True
    turning: ClassVar[float | None] = 2.0

    def value(self, u: Floats) -> Floats:
        return u * u

    def slope(self, u: Floats) -> Floats:
        return 2 * u

    @property
    def slope_bound(self) -> Fraction:
        raise ParameterError("the squared loss has no bounded slope: Huber(threshold) has one")

    def steepest(self, reach: Fraction) -> Fraction:
        return 2 * reach

    def integer_form(self, number: Number) -> tuple[IntegerLoss, Fraction]:
        return IntegerLoss((), ((0, 0, 1),)), number.step**2


@dataclass(frozen=True, slots=True, init=False)
class Huber(DifferenceLoss):
    """u^2 up to the threshold, and the line that continues it beyond: the squared loss with bounded slopes."""

    NAME: ClassVar[str] = "huber/1"
    turning: ClassVar[float | None] = 2.0
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

    def steepest(self, reach: Fraction) -> Fraction:
        return 2 * min(reach, self.threshold)

    def squared(self) -> Loss:
        return Squared()

    def widened(self, times: Fraction) -> Loss:
        return replace(self, threshold=self.threshold * times)

    def integer_form(self, number: Number) -> tuple[IntegerLoss, Fraction]:
        p, r = (self.threshold / number.step).as_integer_ratio()  # r^2 u^2 up to |u| = p / r, then p (2 r |u| - p)
        pieces = ((-p * p, -2 * p * r, 0), (0, 0, r * r), (-p * p, 2 * p * r, 0))
        return IntegerLoss((-(p // r) - 1, p // r), pieces), number.step**2 / r**2


@dataclass(frozen=True, slots=True)
class CentredSquared(Squared):
    """The squared loss of a target from which `offset` is subtracted first: what an intercept can take in advance."""

    NAME: ClassVar[str] = "centred-squared/1"
    offset: Fraction

    def number(self, domain: Domain, name: str) -> Number:
        return _shifted(Squared.number(self, domain, name), self.offset)


@dataclass(frozen=True, slots=True, init=False)
class CentredHuber(Huber):
    """Huber's loss of a target from which `offset` is subtracted first."""

    NAME: ClassVar[str] = "centred-huber/1"
    offset: Fraction

    def __init__(self, threshold: Exact, offset: Exact) -> None:
        exact.freeze(self, threshold=exact.moderate(threshold=threshold), offset=exact.number(offset=offset))

    def number(self, domain: Domain, name: str) -> Number:
        return _shifted(Huber.number(self, domain, name), self.offset)

    def squared(self) -> Loss:
        return CentredSquared(self.offset)


@dataclass(frozen=True, slots=True, init=False)
class RangedHuber(Huber):
    """Huber's loss of a target of which `low` counts as -1 and `high` as 1; what is 15 thresholds from 0 is cut there.

    For predictions within 14 thresholds of 0 the loss is a line there, so that cutting changes no slope.
    """

    NAME: ClassVar[str] = "ranged-huber/1"
    low: Fraction
    high: Fraction

    def __init__(self, threshold: Exact, low: Exact, high: Exact) -> None:
        exact.freeze(
            self, threshold=exact.moderate(threshold=threshold), low=exact.number(low=low), high=exact.number(high=high)
        )
        if self.low >= self.high:
            raise ParameterError(f"low must be below high, found {low!r} and {high!r}")

    def target_bound(self, domain: Domain, name: str) -> Fraction:
        self.check_target(domain, name)
        return 15 * self.threshold

    def target_values(self, domain: Domain, name: str, codes: npt.NDArray[Any]) -> Targets:
        values, most = Huber.target_values(self, domain, name, codes), float(15 * self.threshold)
        half = float((self.high - self.low) / 2)
        return np.asarray(np.clip((values - float(self.low)) / half - 1, -most, most))


def _shifted(number: Number, offset: Fraction) -> Number:
    """The declaration of the target minus the offset: the same codes mean numbers that are smaller by it."""
    return Number(number.low - offset, number.high - offset, step=number.step)


class QuantileLoss(DifferenceLoss):
    """k times (1 - q) u above and -q u below; its minimiser over the numbers is the q-quantile."""

    __slots__ = ()

    def as_pinball(self) -> tuple[Fraction, int]:
        raise NotImplementedError

    @property
    def pieces(self) -> tuple[Piece, Piece]:
        q, times = self.as_pinball()
        return (float(times * (1 - q)), 0.0), (-float(times * q), 0.0)

    def value(self, u: Floats) -> Floats:
        (up, _), (down, _) = self.pieces
        return np.maximum(up * u, down * u)

    def slope(self, u: Floats) -> Floats:
        (up, _), (down, _) = self.pieces
        return np.where(u > 0, up, np.where(u < 0, down, 0.0))

    @property
    def slope_bound(self) -> Fraction:
        q, times = self.as_pinball()
        return times * max(q, 1 - q)

    def integer_form(self, number: Number) -> tuple[IntegerLoss, Fraction]:
        q, times = self.as_pinball()
        part, whole = q.numerator, q.denominator
        return IntegerLoss((0,), ((0, -part, 0), (0, whole - part, 0))), times * number.step / whole


@dataclass(frozen=True, slots=True)
class Absolute(QuantileLoss):
    """|u|: its minimiser over the numbers is the median."""

    NAME: ClassVar[str] = "absolute/1"

    def as_pinball(self) -> tuple[Fraction, int]:
        return Fraction(1, 2), 2


@dataclass(frozen=True, slots=True, init=False)
class Pinball(QuantileLoss):
    """(1 - q) u above, -q u below: its minimiser over the numbers is the q-quantile."""

    NAME: ClassVar[str] = "pinball/1"
    q: Fraction

    def __init__(self, q: Exact) -> None:
        exact.freeze(self, q=exact.probability(q=q))

    def as_pinball(self) -> tuple[Fraction, int]:
        return self.q, 1


@dataclass(frozen=True, slots=True, init=False)
class Logistic(MarginLoss):
    """log(1 + exp(-u)), continued by a line of slope -cap where it is steeper than that; cap = 1 is the plain loss."""

    NAME: ClassVar[str] = "logistic/1"
    turning: ClassVar[float | None] = 0.25
    cap: Fraction

    def __init__(self, cap: Exact = 1) -> None:
        exact.freeze(self, cap=exact.positive(cap=cap))
        if self.cap > 1:
            raise ParameterError(f"cap must be at most 1, the steepest slope of the logistic loss; found {cap!r}")

    def value(self, u: Floats) -> Floats:
        if self.cap == 1:
            return np.logaddexp(0.0, -u)
        bend = math.log(float((1 - self.cap) / self.cap))
        return np.logaddexp(0.0, -np.maximum(u, bend)) + float(self.cap) * np.maximum(bend - u, 0.0)

    def slope(self, u: Floats) -> Floats:
        shrinking = np.exp(-np.abs(u))
        sigmoid = np.where(u <= 0, 1.0, shrinking) / (1.0 + shrinking)  # of -u
        return -np.minimum(sigmoid, float(self.cap))

    @property
    def slope_bound(self) -> Fraction:
        return self.cap

    def widened(self, times: Fraction) -> Loss:
        return Logistic(min(Fraction(1), self.cap * times))

    def probability(self, margin: Floats) -> Floats:
        """The probability of the positive class at which this margin minimises the expected loss.

        A slope of s for one class and -t for the other balance when the class has probability s / (s + t).
        """
        up, down = -self.slope(-margin), -self.slope(margin)
        return up / (up + down)


@dataclass(frozen=True, slots=True)
class Hinge(MarginLoss):
    """max(0, 1 - u): the loss of support vector machines."""

    NAME: ClassVar[str] = "hinge/1"

    def value(self, u: Floats) -> Floats:
        return np.maximum(0.0, 1 - u)

    def slope(self, u: Floats) -> Floats:
        return np.where(u < 1, -1.0, 0.0)

    @property
    def pieces(self) -> tuple[Piece, Piece]:
        return (-1.0, 1.0), (0.0, 0.0)


@dataclass(frozen=True, slots=True, init=False)
class Softmax(Loss):
    """log(sum_k exp(m_k)) - m_y over `classes` margins: logistic regression with several classes.

    Its slope is p - e_y, of length at most sqrt 2; the matrix of second derivatives diag(p) - p p^T is at most 1/2.
    """

    NAME: ClassVar[str] = "softmax/1"
    form: ClassVar[str] = "classes"
    turning: ClassVar[float | None] = 0.5
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
    def margins(self) -> int:
        return self.classes

    def row_values(self, margins: Floats, y: Targets) -> Floats:
        return self.value(margins, y.astype(np.int64))

    def row_slopes(self, margins: Floats, y: Targets) -> Floats:
        slopes = self.probability(margins)
        slopes[np.arange(len(slopes)), y.astype(np.int64)] -= 1
        return slopes

    def largest(self, reach: float) -> float:
        return math.log(self.classes) if reach == 0 else math.inf

    def steepest(self, reach: Fraction) -> Fraction:
        return exact.root_up(Fraction(2))

    def steepness(self, reach: float) -> float:
        return math.sqrt(2)


@dataclass(frozen=True, slots=True)
class Custom(Loss):
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
        bound, dimension = exact.moderate(bound=self.bound), exact.whole(dimension=self.dimension)
        smooth = None if self.smooth is None else exact.positive(smooth=self.smooth)
        exact.freeze(self, bound=bound, dimension=dimension, smooth=smooth)

    @property
    def slope_bound(self) -> Fraction:
        return self.bound

    def dimension_of(self, features: Features, domain: Domain) -> int:
        return self.dimension

    def row_norm(self, features: Features, domain: Domain) -> float:
        return 1.0

    def check_target(self, domain: Domain, name: str) -> None:
        """A user's function reads the whole row."""

    def row_values(self, margins: Floats, y: Targets) -> Floats:
        raise ParameterError("a custom gradient has no value")

    def row_slopes(self, margins: Floats, y: Targets) -> Floats:
        raise ParameterError("the gradient of a custom loss is its own function of single rows")

    def curvature(self) -> float | None:
        return None if self.smooth is None else float(self.smooth)

    def stated_record(self) -> dict[str, Any]:
        stated = {"bound": f"{self.bound.numerator}/{self.bound.denominator}", "dimension": self.dimension}
        return {"name": self.NAME, "label": self.label, **stated}


@dataclass(frozen=True, slots=True)
class IntegerLoss:
    """A loss of a whole number u of steps, in whole numbers: a polynomial a + b u + c u^2 between any two cuts.

    cuts    where one polynomial ends, the cut included, and the next begins
    pieces  (a, b, c) of each, one more than there are cuts
    """

    cuts: tuple[int, ...]
    pieces: tuple[PowerSums, ...]

    @property
    def degree(self) -> int:
        return 2 if any(c for *_, c in self.pieces) else 1

    def value(self, u: int) -> int:
        a, b, c = self.pieces[bisect.bisect_left(self.cuts, u)]
        return a + b * u + c * u * u

    def ends(self, code: int) -> tuple[int, ...]:
        """The codes x for which u = code - x passes a cut."""
        return tuple(code - cut for cut in self.cuts)

    def total(self, code: int, below: Below, everything: PowerSums) -> int:
        """The sum of the losses at a code, from power sums of the codes below its `ends`."""
        sums, total = [everything, *map(below, self.ends(code)), (0, 0, 0)], 0
        for (a, b, c), more, fewer in zip(self.pieces, sums, sums[1:], strict=False):
            rows, codes, squares = (one - other for one, other in zip(more, fewer, strict=True))
            total += a * rows + b * (code * rows - codes) + c * (code * code * rows - 2 * code * codes + squares)
        return total
