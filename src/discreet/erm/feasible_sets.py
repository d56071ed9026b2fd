"""Feasible sets: where the solution of an optimisation problem may lie, with exact projections.

    Ball(radius)                 |w|_2 <= radius
    Box(low, high)               low_i <= w_i <= high_i; one number serves all coordinates
    interval(low, high)          the box in one dimension
    BallBox(radius, low, high)   both; the box must contain 0

All of them are the intersection of maybe a ball around the origin and maybe a box, which `FeasibleSet` computes with. A
set is public and so is everything done with it: floats are fine here. `project` is the nearest point of the set; it
does not expand distances (lecture 10, claim 2), which every theorem of descent uses. `shrink` is the nearest point
after a penalty amount * |w|_1 (the proximal step of lasso): for these sets it is soft thresholding, then projection.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet.core import Exact, Floats, ParameterError, exact

Corners = tuple[tuple[Fraction, ...], tuple[Fraction, ...]]


class FeasibleSet:
    """The points within `ball` of the origin, if that is a number, and between the corners of `box`, if it has any.

    A set with a `radius` has a ball, one with `low` and `high` a box.

    The projection of u on both is clip(u / (1 + x)) for the least x >= 0 at which it is in the ball: the Lagrange
    condition of the ball scales, that of each side cuts. Its length falls as x grows: x is found to the last bit.
    """

    __slots__ = ()

    @property
    def ball(self) -> Fraction | None:
        return getattr(self, "radius", None)

    @property
    def box(self) -> Corners | None:
        return (self.low, self.high) if hasattr(self, "low") and hasattr(self, "high") else None

    def project(self, point: Floats) -> Floats:
        boxed = np.clip(point, *self.corners())
        if self.ball is None or _norm(boxed) <= float(self.ball):
            return boxed
        radius = float(self.ball)
        if self.box is not None:
            enough = _norm(point) / radius  # scaled down by this much, the point is in the ball before it is clipped
            low, high = self.corners()
            scaling = exact.least(lambda x: _norm(np.clip(point / (1 + x), low, high)) <= radius, 0.0, enough)
            boxed = np.clip(point / (1 + scaling), low, high)
        length = _norm(boxed)
        return boxed * (radius / length) if length > radius else boxed

    def contains(self, point: Floats, slack: float = 0.0) -> bool:
        low, high = self.corners()
        in_ball = self.ball is None or _norm(point) <= float(self.ball) + slack
        return in_ball and bool(np.all(point >= low - slack) and np.all(point <= high + slack))

    def shrink(self, point: Floats, amount: float) -> Floats:
        """The point w that minimises |w - point|^2 / 2 + amount * |w|_1; a box must contain 0 if amount > 0."""
        if amount == 0:
            return self.project(point)
        return self.project(np.sign(point) * np.maximum(np.abs(point) - amount, 0.0))

    def sides(self, dimension: int) -> list[tuple[Fraction, Fraction]]:
        """The ends of the axes of the least box around the set."""
        radius = self.ball
        if self.box is None:
            assert radius is not None
            return [(-radius, radius)] * dimension
        low, high = self.box
        if len(low) not in (1, dimension):
            raise ParameterError(f"the box has {len(low)} sides, the problem has {dimension} coordinates")
        sides = list(zip(low, high, strict=True)) * (dimension if len(low) == 1 else 1)
        return sides if radius is None else [(max(a, -radius), min(b, radius)) for a, b in sides]

    def centre(self, dimension: int) -> Floats:
        if self.ball is not None:
            return np.zeros(dimension)
        self.sides(dimension)
        return np.broadcast_to(np.add(*self.corners()) / 2, (dimension,)).copy()

    def span(self, dimension: int) -> float:
        """The largest distance of a point of the set from its centre."""
        return self.diameter(dimension) / 2 if self.ball is None else self.reach(dimension)

    def reach(self, dimension: int) -> float:
        """The largest distance of a point of the set from the origin."""
        if self.box is None and self.ball is not None:
            return float(self.ball)
        return math.sqrt(self.reach_squared(dimension))

    def reach_squared(self, dimension: int) -> Fraction:
        """Exact: the integers of a descent rest on it."""
        self.sides(dimension)
        reaches = [] if self.ball is None else [self.ball**2]
        if self.box is not None:
            total = sum((max(a * a, b * b) for a, b in zip(*self.box, strict=True)), Fraction(0))
            reaches.append(total * dimension if len(self.box[0]) == 1 else total)
        return min(reaches)

    def diameter(self, dimension: int) -> float:
        self.sides(dimension)
        lengths = [] if self.ball is None else [2 * float(self.ball)]
        if self.box is not None:
            low, high = self.corners()
            lengths.append(_norm(np.broadcast_to(high - low, (dimension,))))
        return min(lengths)

    def corners(self) -> tuple[Floats, Floats]:
        """The corners of the box, one number for all sides if they are equal; infinite if there is none."""
        low, high = self.box or ((-math.inf,), (math.inf,))
        return np.array([float(side) for side in low]), np.array([float(side) for side in high])


@dataclass(frozen=True, slots=True, init=False)
class Ball(FeasibleSet):
    """All points within `radius` of the origin."""

    NAME: ClassVar[str] = "ball/1"
    radius: Fraction

    def __init__(self, radius: Exact) -> None:
        exact.freeze(self, radius=exact.moderate(radius=radius))


@dataclass(frozen=True, slots=True, init=False)
class Box(FeasibleSet):
    """All points with low_i <= w_i <= high_i."""

    NAME: ClassVar[str] = "box/1"
    low: tuple[Fraction, ...]
    high: tuple[Fraction, ...]

    def __init__(self, low: Exact | tuple[Exact, ...], high: Exact | tuple[Exact, ...]) -> None:
        lows, highs = _corner("low", low), _corner("high", high)
        if len(lows) != len(highs):
            raise ParameterError(f"low and high must be equally long, found {len(lows)} and {len(highs)}")
        for a, b in zip(lows, highs, strict=True):
            if not a < b:
                raise ParameterError(f"low must be below high, found {float(a):g} and {float(b):g}")
        exact.freeze(self, low=lows, high=highs)


def interval(low: Exact, high: Exact) -> Box:
    """The numbers from low to high: the box of a problem in one dimension."""
    return Box(low, high)


@dataclass(frozen=True, slots=True, init=False)
class BallBox(FeasibleSet):
    """All points of a ball around the origin that are in a box too; the box contains the origin."""

    NAME: ClassVar[str] = "ball-box/1"
    radius: Fraction
    low: tuple[Fraction, ...]
    high: tuple[Fraction, ...]

    def __init__(self, radius: Exact, low: Exact | tuple[Exact, ...], high: Exact | tuple[Exact, ...]) -> None:
        box = Box(low, high)
        if any(a > 0 for a in box.low) or any(b < 0 for b in box.high):
            raise ParameterError("the box of a BallBox must contain the origin")
        exact.freeze(self, radius=exact.moderate(radius=radius), low=box.low, high=box.high)


def _corner(name: str, value: Any) -> tuple[Fraction, ...]:
    sides = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if not sides:
        raise ParameterError(f"{name} must be a number or a list of numbers, found none")
    return tuple(exact.number(**{name: side}) for side in sides)


def _norm(vector: Floats) -> float:
    """The length; of huge vectors too, whose squares are no floats."""
    largest = float(np.abs(vector).max())
    if largest < 1e150:
        return math.sqrt(float(np.dot(vector, vector)))
    scaled = vector / largest
    return largest * math.sqrt(float(np.dot(scaled, scaled)))
