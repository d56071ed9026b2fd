"""Feasible sets: where the solution of an optimisation problem may lie, with exact projections.

    Ball(radius)                 |w|_2 <= radius
    Box(low, high)               low_i <= w_i <= high_i; one number serves all coordinates
    interval(low, high)          the box in one dimension
    BallBox(radius, low, high)   both; the box must contain 0

A set is public and so is everything done with it: floats are fine here. `project` is the nearest point of the set; it
does not expand distances (lecture 10, claim 2), which every theorem of descent uses. `shrink` is the nearest point
after a penalty amount * |w|_1 (the proximal step of lasso): for these four sets it is soft thresholding, then
projection.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet import exact
from discreet.arrays import Floats
from discreet.errors import ParameterError
from discreet.exact import Exact


@dataclass(frozen=True, slots=True, init=False)
class Ball:
    """All points within `radius` of the origin."""

    NAME: ClassVar[str] = "ball/1"
    radius: Fraction

    def __init__(self, radius: Exact) -> None:
        exact.freeze(self, radius=exact.moderate(radius=radius))

    def project(self, point: Floats) -> Floats:
        length = _norm(point)
        return point * (float(self.radius) / length) if length > self.radius else point

    def contains(self, point: Floats, slack: float = 0.0) -> bool:
        return _norm(point) <= float(self.radius) + slack

    def centre(self, dimension: int) -> Floats:
        return np.zeros(dimension)

    def span(self, dimension: int) -> float:
        """The largest distance of a point of the set from its centre."""
        return float(self.radius)

    def reach(self, dimension: int) -> float:
        """The largest distance of a point of the set from the origin."""
        return float(self.radius)

    def reach_squared(self, dimension: int) -> Fraction:
        return self.radius**2

    def diameter(self, dimension: int) -> float:
        return 2 * float(self.radius)


@dataclass(frozen=True, slots=True, init=False)
class Box:
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

    def project(self, point: Floats) -> Floats:
        return np.clip(point, _floats(self.low), _floats(self.high))

    def contains(self, point: Floats, slack: float = 0.0) -> bool:
        return bool(np.all(point >= _floats(self.low) - slack) and np.all(point <= _floats(self.high) + slack))

    def centre(self, dimension: int) -> Floats:
        return self._spread((_floats(self.low) + _floats(self.high)) / 2, dimension)

    def span(self, dimension: int) -> float:
        return self.diameter(dimension) / 2

    def reach(self, dimension: int) -> float:
        return math.sqrt(self.reach_squared(dimension))

    def reach_squared(self, dimension: int) -> Fraction:
        """Exact: the integers of a descent rest on it."""
        self._spread(_floats(self.low), dimension)
        total = sum((max(a * a, b * b) for a, b in zip(self.low, self.high, strict=True)), Fraction(0))
        return total * dimension if len(self.low) == 1 else total

    def diameter(self, dimension: int) -> float:
        return _norm(self._spread(_floats(self.high) - _floats(self.low), dimension))

    def _spread(self, corner: Floats, dimension: int) -> Floats:
        if len(corner) not in (1, dimension):
            raise ParameterError(f"the box has {len(corner)} sides, the problem has {dimension} coordinates")
        return np.broadcast_to(corner, (dimension,)).copy()


def interval(low: Exact, high: Exact) -> Box:
    """The numbers from low to high: the box of a problem in one dimension."""
    return Box(low, high)


@dataclass(frozen=True, slots=True, init=False)
class BallBox:
    """All points of a ball around the origin that are in a box too; the box contains the origin.

    The projection of u is clip(u / (1 + x)) for the least x >= 0 at which it is in the ball: the Lagrange condition of
    the ball scales, that of each side cuts. Its length falls as x grows, so x is found by bisection to the last bit.
    """

    NAME: ClassVar[str] = "ball-box/1"
    radius: Fraction
    low: tuple[Fraction, ...]
    high: tuple[Fraction, ...]

    def __init__(self, radius: Exact, low: Exact | tuple[Exact, ...], high: Exact | tuple[Exact, ...]) -> None:
        box = Box(low, high)
        if any(a > 0 for a in box.low) or any(b < 0 for b in box.high):
            raise ParameterError("the box of a BallBox must contain the origin")
        exact.freeze(self, radius=exact.moderate(radius=radius), low=box.low, high=box.high)

    def project(self, point: Floats) -> Floats:
        box = Box(self.low, self.high)
        inside = Ball(self.radius)
        if inside.contains(box.project(point)):
            return box.project(point)
        enough = _norm(point) / float(self.radius)  # with this much scaling the ball alone suffices
        scaling = exact.least(lambda x: inside.contains(box.project(point / (1 + x))), 0.0, enough)
        return inside.project(box.project(point / (1 + scaling)))

    def contains(self, point: Floats, slack: float = 0.0) -> bool:
        return Ball(self.radius).contains(point, slack) and Box(self.low, self.high).contains(point, slack)

    def centre(self, dimension: int) -> Floats:
        return np.zeros(dimension)

    def span(self, dimension: int) -> float:
        return self.reach(dimension)

    def reach(self, dimension: int) -> float:
        return math.sqrt(self.reach_squared(dimension))

    def reach_squared(self, dimension: int) -> Fraction:
        return min(self.radius**2, Box(self.low, self.high).reach_squared(dimension))

    def diameter(self, dimension: int) -> float:
        return min(2 * float(self.radius), Box(self.low, self.high).diameter(dimension))


FeasibleSet = Ball | Box | BallBox


def shrink(feasible: FeasibleSet, point: Floats, amount: float) -> Floats:
    """The point w of the set that minimises |w - point|^2 / 2 + amount * |w|_1; a box must contain 0 if amount > 0."""
    if amount == 0:
        return feasible.project(point)
    return feasible.project(np.sign(point) * np.maximum(np.abs(point) - amount, 0.0))


def _corner(name: str, value: Any) -> tuple[Fraction, ...]:
    sides = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if not sides:
        raise ParameterError(f"{name} must be a number or a list of numbers, found none")
    return tuple(exact.number(**{name: side}) for side in sides)


def _floats(corner: tuple[Fraction, ...]) -> Floats:
    return np.array([float(side) for side in corner])


def _norm(vector: Floats) -> float:
    """The length; of huge vectors too, whose squares are no floats."""
    largest = float(np.abs(vector).max())
    if largest < 1e150:
        return math.sqrt(float(np.dot(vector, vector)))
    scaled = vector / largest
    return largest * math.sqrt(float(np.dot(scaled, scaled)))
