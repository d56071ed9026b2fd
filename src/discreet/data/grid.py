"""Rows of features on the integer grid: projected to the declared norm, divided by the step, cut towards zero.

Theorem.   Every row becomes integers m with sum m_i^2 <= bound_squared = floor((norm / step)^2), whatever the floats
           do: the last step tests this in exact integers and shrinks the largest coordinate by units until it holds.
           And m is a function of that row alone: every float operation is elementwise, over columns in a fixed order,
           never a reduction or a matrix product, whose rounding may depend on how many rows are computed together.
Accuracy.  A row within the norm moves by less than one step in each coordinate, towards zero.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from discreet.arrays import Floats
from discreet.data.domain import Vector
from discreet.errors import SchemaError


def grid_rows(features: Floats, vector: Vector) -> npt.NDArray[np.int64]:
    """Rows of floats as rows of integers of bounded length; NaN and infinities are refused."""
    if np.isnan(features).any():
        raise SchemaError(
            "the features hold NaN; fill or drop missing values first, by a rule that looks at one row only"
        )
    if np.isinf(features).any():
        raise SchemaError("the features hold infinite numbers")
    limit = math.isqrt(vector.bound_squared)
    projected = _projected(features, float(vector.norm))
    units = np.trunc(projected / float(vector.step))
    return shrunk(np.clip(units, -limit, limit).astype(np.int64), vector.bound_squared)


def _projected(features: Floats, norm: float) -> Floats:
    """Rows longer than norm, scaled to about norm. Dividing by the largest entry first avoids overflow."""
    largest = np.zeros(len(features))
    for column in features.T:
        largest = np.maximum(largest, np.abs(column))
    largest = np.where(largest > 0, largest, 1.0)
    scaled = features / largest[:, None]
    squares = np.zeros(len(features))
    for column in scaled.T:
        squares = squares + column * column
    root = np.sqrt(squares)
    with np.errstate(over="ignore"):  # a row of tiny numbers: infinity is the right answer
        too_long = root > norm / largest
    factor = norm / np.where(too_long, root, 1.0)
    return np.where(too_long[:, None], scaled * factor[:, None], features)


def shrunk(units: npt.NDArray[np.int64], bound_squared: int) -> npt.NDArray[np.int64]:
    """Rows whose squares sum to at most the bound: the largest coordinate of a longer row loses a unit at a time."""
    long = np.flatnonzero(_squares(units) > bound_squared)
    while len(long):
        widest = np.argmax(np.abs(units[long]), axis=1)
        units[long, widest] -= np.sign(units[long, widest])
        long = long[_squares(units[long]) > bound_squared]
    return units


def _squares(units: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Exact: a Vector's dimension times its bound is below 2^62."""
    total = np.zeros(len(units), dtype=np.int64)
    for column in units.T:
        total += column * column
    return total
