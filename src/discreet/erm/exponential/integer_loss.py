"""The sum of the losses of a linear model as an integer function of an integer point, convex in exact integers.

What `cells` draws from. A point w has integer coordinates on the grid of `gradient.Pass`, so the margin of a row is an
integer u, and the row adds T(u):

    SquaredHeights    T(u) = u^2 without its constant: the sum over the rows is a quadratic in w, from one pass
    SlopeHeights      T has integer slopes from a public table that do not fall, one for each range of 2^shift margins:
                      the loss, its slopes rounded, without a constant. One pass gives the sums at some points, and
                      subgradients there.

A row's integer depends on that row and on public numbers alone. Outside the feasible set the slopes at the ends of the
table go on, so T is convex on all integers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from discreet.data import Batch, Dataset, Floats, Ints
from discreet.erm.exponential.cell_sampler import Oracle, Point, Tangent
from discreet.erm.features import STEPS, blocks
from discreet.erm.gradient import Pass
from discreet.erm.losses import Custom, Loss, Softmax
from discreet.errors import ParameterError

_ENTRIES = 2**18  # of a table of slopes
_SLOPE_BITS = 20  # a slope is an integer of at most this many bits, or fewer if sums would not be exact
_HALF_WORD = 31
_BLOCK_ROWS = 2**17  # no block of rows is longer


class SquaredHeights:
    """Sums of the squared loss, and what one row can do to them.

    unit       what one integer is worth, in units of the loss
    row_error  how far a row's integer is from its loss, up to a constant, in units of the loss
    """

    def __init__(self, over: Pass) -> None:
        self.over, self.unit = over, over.margin_unit**2
        steep = over.risk.loss.steepness(over.risk.miss_reach(over.domain))
        self.row_error = steep * float(over.risk.target_bound(over.domain) / STEPS)
        self.highest = over.reach**2

    def range(self, across: int) -> int:
        """How far apart the integers of one row can be at two points whose margins differ by at most `across`."""
        return int(self.over.reach**2 - max(0, self.over.reach - across) ** 2)

    def oracle(self, data: Dataset) -> Oracle:
        """Values and gradients of the sum. Not private: for the inside of a mechanism's `run`."""
        moments = [[int(each) for each in row] for row in data.exact_sum(self.over.moments)]
        matrix, steps = moments[:-1], self.over.target_steps // STEPS
        linear = [-2 * steps * each for each in moments[-1]]

        def tangents(points: Sequence[Point]) -> list[Tangent]:
            found = []
            for w in points:
                turned = [sum(a * b for a, b in zip(row, w, strict=True)) for row in matrix]
                value = sum((a + b) * c for a, b, c in zip(turned, linear, w, strict=True))
                found.append((value, tuple(2 * a + b for a, b in zip(turned, linear, strict=True))))
            return found

        return tangents


class SlopeHeights:
    """Sums of a loss with bounded slopes; the attributes are those of SquaredHeights."""

    def __init__(self, over: Pass, corner_squared: int) -> None:
        loss = over.risk.loss
        assert not isinstance(loss, (Custom, Softmax))
        self.over = over
        self.shift = max(0, (2 * over.reach).bit_length() - _ENTRIES.bit_length() + 1)
        widest = 2 * (math.isqrt(over.rows_squared * corner_squared) + over.target_steps + 2**self.shift)
        room = min(61 - widest.bit_length(), 52 - (math.isqrt(over.rows_squared) * _BLOCK_ROWS).bit_length())
        bits = min(_SLOPE_BITS, room)
        if bits < 10:
            raise ParameterError("the feasible set or the rows' vectors are too long for exact sums on a grid")
        self.slopes, self.starts = _table(loss, self.shift, over.reach, over.margin_unit, bits)
        self.unit = loss.slope_bound / 2**bits * over.margin_unit
        entry = 2.0**self.shift * float(over.margin_unit)
        target = float(over.risk.target_bound(over.domain)) / STEPS
        self.row_error = float(loss.slope_bound) * (entry + target) + float(self.unit) * over.reach
        self.highest = 2**bits * widest

    def value(self, u: int) -> int:
        """T at a margin u above the least of the feasible set."""
        place = min(max(u >> self.shift, 0), _ENTRIES - 1)
        return int(self.starts[place]) + int(self.slopes[place]) * (u - (place << self.shift))

    def range(self, across: int) -> int:
        """T is convex: of two margins at most `across` apart, the ends of the table are where it differs most."""
        bottom, end = int(np.searchsorted(self.slopes, 0)) << self.shift, 2 * self.over.reach
        rise = self.value(end) - self.value(min(max(bottom, end - across), end))
        fall = self.value(0) - self.value(min(bottom, across, end))
        return max(rise, fall)

    def oracle(self, data: Dataset) -> Oracle:
        """Values and subgradients of the sum, by one pass. Not private: for the inside of a mechanism's `run`."""

        def tangents(points: Sequence[Point]) -> list[Tangent]:
            sums = data.exact_sum(lambda batch: self.summed(batch, points))
            whole = [[int(low) + (int(high) << _HALF_WORD) for low, high in line] for line in sums]
            return [(line[0], tuple(line[1:])) for line in whole]

        return tangents

    def summed(self, batch: Batch, points: Sequence[Point]) -> Ints:
        """For each point the sum of T and of its slopes times the rows' vectors, each as two half words."""
        total = np.zeros((len(points), 1 + self.over.width, 2), dtype=np.int64)
        for rows, part in blocks(self.over.risk.features, batch):
            shift, sign = self._told(batch, part)
            for line, point in zip(total, points, strict=True):
                u = (rows @ np.array(point, dtype=np.float64) * sign + shift).astype(np.int64)
                place = np.clip(u >> self.shift, 0, _ENTRIES - 1)
                slopes = self.slopes[place]
                values = self.starts[place] + slopes * (u - (place << self.shift))
                line[0] += _half_words(values).sum(axis=0)
                line[1:] += _half_words(((sign * slopes) @ rows).astype(np.int64))
        return total

    def _told(self, batch: Batch, part: slice) -> tuple[Floats, Floats]:
        """What is added to the margins of the rows, and their sign: by targets or by classes."""
        reach, one = self.over.reach, np.ones(1)
        if self.over.risk.loss.form == "difference":
            return reach - self.over.targets(batch, part) * (self.over.target_steps // STEPS), one
        return reach * one, np.where(self.over.labels(batch, part) == 1, 1.0, -1.0)


@functools.lru_cache(maxsize=8)
def _table(loss: Loss, shift: int, reach: int, margin_unit: Fraction, bits: int) -> tuple[Ints, Ints]:
    """The slopes of T for each range of 2^shift margins, and T where the ranges begin."""
    assert not isinstance(loss, (Custom, Softmax))
    middle: Floats = ((np.arange(_ENTRIES, dtype=np.float64) + 0.5) * 2.0**shift - reach) * float(margin_unit)
    rounded = np.rint(loss.slope(middle) * float(2**bits / loss.slope_bound))
    slopes: Ints = np.maximum.accumulate(np.clip(rounded, -(2**bits), 2**bits).astype(np.int64))
    return slopes, (np.cumsum(slopes) - slopes) << shift


def _half_words(values: Ints) -> Ints:
    """Integers as (low, high) with value = low + 2^31 high, 0 <= low < 2^31."""
    return np.stack([values & (2**_HALF_WORD - 1), values >> _HALF_WORD], axis=-1)
