"""One pass over the rows: the sum of their gradients, as integers.

What a row adds to the sum is r x: x its integer vector (`features`), r an integer that says how the prediction misses.

1. The iterate w is put on a public integer grid before the pass, so the margin <w, x> is an integer. BLAS computes it
   in float64, exactly: every partial sum is below 2^53 (checked from public bounds).
2. The slope of the loss at this margin is looked up in a public table of integers of at most 2^15 = STEPS in absolute
   value, indexed by the integer margin. For a softmax the probabilities are quotients of integers from such a table.
3. The products r x are summed by BLAS over blocks so short that every partial sum is below 2^53, then in int64.

So a row's integers depend on that row and on public numbers alone: not on the block, the batch, the number of threads
or the order, and dropping a row changes no other row's contribution. A float matrix product of raw features would not
have this property: one row less changes last bits of other rows' margins, and after rounding one person moves many.

The squared loss has the slope 2u, not bounded by a table but by the set: |<w, x> - y| <= |w||x| + |y|, in integers.
Its sum of gradients is linear in w, so one pass takes the sums of x x^T and y x, and each step multiplies integers. As
these are large, the sum is divided by a power of two and rounded down before noise is added:

Lemma.     |floor(a / k) - floor(b / k)|_2 <= |a - b|_2 / k + sqrt(d) for integer vectors of d coordinates. (The two
           fractional parts lie in [0, 1), so each coordinate differs by less than 1 from (a - b) / k.)
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from discreet import exact
from discreet.data import (
    Batch,
    Dataset,
    Domain,
    Facts,
    Floats,
    IntArray,
    Ints,
    Number,
    Vector,
    grid_rows,
    shrunk,
)
from discreet.erm.features import STEPS, blocks
from discreet.erm.losses import Custom, Loss, Softmax
from discreet.erm.risk import Constants, Risk, needs_moments
from discreet.errors import ParameterError
from discreet.query import Sensitivity, alone, of_persons

Partial = Callable[[Batch], IntArray]

_FINE_STEPS = 2**22  # integer units of the iterate to the end of the set: margins stay below 2^40
_MOST_MOMENTS = 2**12  # features of a squared loss
_EXP_STEPS = 2**20  # what exp(0) is in the table of a softmax


class Pass:
    """The sum over the rows of their gradients, at any point: the grids, tables and bounds that all passes share.

    unit    what one integer of the sum is worth, in units of the loss over units of w
    grid    what one integer of the iterate is worth

    Theorem.   Slopes by table, B the bound on a row's squared integers, S = 2^15: between neighbours the sums at one
               point differ by |d|_2^2 <= S^2 B (add-remove) or 4 S^2 B (replace-one), whatever the point is; a softmax
               has 2 S^2 for S^2. Squared loss, W the bound on the iterate's squared integers, Y that on the target's:
               U^2 B or 4 U^2 B with U = floor sqrt(B W) + Y, then the lemma above. |d|_1 <= sqrt(dimension) |d|_2 and
               |d|_inf <= |d|_2. A custom gradient has the bound of its Vector for S^2 B. A person of k rows: k times.
    """

    def __init__(self, risk: Risk, domain: Domain, size: int = 2**31) -> None:
        """`size` is the public size: a table of slopes finer than the noise is a waste."""
        risk.checked_target(domain)
        self.risk, self.domain = risk, domain
        self.entries = 2 ** min(18, max(14, size.bit_length() + 5))
        self.dimension, self.coarse = risk.dimension(domain), 1
        if isinstance(risk.loss, Custom):
            self.vector = Vector(self.dimension, norm=risk.loss.bound)
            self.unit = self.vector.step
            return
        self.width, self.rows_squared = risk.features.dimension(domain), risk.features.bound_squared(domain)
        self.target_steps = _target_steps(risk, domain)
        self.grid = _iterate_grid(risk, domain)
        self.iterate_squared = math.floor(risk.feasible.reach_squared(self.dimension) / self.grid**2)
        self.margin_unit = self.grid * risk.features.unit(domain)
        self.reach = math.isqrt(self.rows_squared * self.iterate_squared) + self.target_steps
        if self.rows_squared >= 2**31:
            raise ParameterError("the grid of the features is too fine: norm / step must be below 2**15.5")
        if self.reach >= 2**46 or self.iterate_squared >= 2**62:
            raise ParameterError("the feasible set is too large for this target: predictions would dwarf its bound")
        if needs_moments(risk):
            if self.width > _MOST_MOMENTS:
                raise ParameterError(
                    f"the squared loss keeps the sums of all products of two features: at most {_MOST_MOMENTS} "
                    f"features, found {self.width}; a Huber loss needs no such sums"
                )
            self.coarse = 2 ** max(0, self.reach.bit_length() - 16)
            self.unit = 2 * self.margin_unit * risk.features.unit(domain) * self.coarse
        else:
            self.shift = max(0, (2 * self.reach + 1).bit_length() - self.entries.bit_length() + 1)
            self.unit = self._slope_unit() * risk.features.unit(domain)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        if isinstance(self.risk.loss, Custom):
            length = self.vector.bound_squared
        elif needs_moments(self.risk):
            length = self.reach**2 * self.rows_squared
        else:
            length = STEPS**2 * self.rows_squared * (2 if isinstance(self.risk.loss, Softmax) else 1)
        whole = of_persons(
            facts.neighbours, added=lengths(length, self.dimension), replaced=lengths(4 * length, self.dimension)
        )
        if self.coarse == 1:
            return whole
        rounded = Fraction(exact.ceil_sqrt(Fraction(whole.l2_squared)), self.coarse) + exact.ceil_sqrt(
            Fraction(self.dimension)
        )
        return lengths(math.floor(rounded**2), self.dimension)

    def quantised(self, w: Floats) -> Ints:
        """The iterate as integers that are not longer than the set allows; the centre, if a step was not finite."""
        finite = w if np.isfinite(w).all() else self.risk.feasible.centre(self.dimension)
        far = 2 * self.risk.feasible.reach(self.dimension)
        units = np.clip(finite, -far, far) / float(self.grid)
        share = min(1.0, math.sqrt(self.iterate_squared) / max(1.0, float(np.linalg.norm(units))))
        found: Ints = shrunk(np.rint(units * share).astype(np.int64)[None, :], self.iterate_squared)[0]
        return found

    def oracle(self, data: Dataset) -> Callable[[Floats], IntArray]:
        """The exact sum of the gradients at any point. Not private: for the inside of a mechanism's `run`."""
        if needs_moments(self.risk):
            moments = data.exact_sum(self.moments)
            return lambda w: self.from_moments(moments, self.quantised(w))
        return lambda w: data.exact_sum(self.at(w))

    def at(self, w: Floats) -> Partial:
        """The function of a batch whose sum is the sum of the gradients at w."""
        if isinstance(self.risk.loss, Custom):
            return lambda batch: _custom_sum(self.risk.loss, w, self.vector, batch)  # type: ignore[arg-type]
        units = self.quantised(w).astype(np.float64)
        if isinstance(self.risk.loss, Softmax):
            weights = np.ascontiguousarray(units.reshape(self.risk.loss.classes, self.width).T)
            return lambda batch: self._summed(batch, weights, self._class_slopes)
        return lambda batch: self._summed(batch, units, self._slopes_of)

    def moments(self, batch: Batch) -> Ints:
        """The sums of x_i x_j and, in the last row, of y x_j; y in its own steps."""
        total = np.zeros((self.width + 1, self.width), dtype=np.int64)
        for rows, part in blocks(self.risk.features, batch):
            total[:-1] += (rows.T @ rows).astype(np.int64)
            total[-1] += (self.targets(batch, part) @ rows).astype(np.int64)
        return total

    def from_moments(self, moments: Ints, w: Ints) -> IntArray:
        """The sum of the gradients at w, in steps of `unit`: Python integers, for the products exceed 64 bits."""
        exactly = moments[:-1].astype(object) @ w.astype(object) - moments[-1].astype(object) * (
            self.target_steps // STEPS
        )
        return np.array([value // self.coarse for value in exactly], dtype=np.int64)

    def _summed(self, batch: Batch, weights: Floats, slopes: Callable[..., Floats]) -> IntArray:
        """The intercept is added by hand: rows without it are contiguous, and read at the speed of memory."""
        features, constant = self.risk.features.without_intercept(), self.risk.features.constant(self.domain)
        total = np.zeros((self.dimension // self.width, self.width), dtype=np.int64)
        for rows, part in blocks(features, batch):
            width = rows.shape[1]
            margins = rows @ weights[:width]
            missed = slopes(batch, part, margins + constant * weights[-1] if constant else margins)
            total[:, :width] += (missed.T @ rows).astype(np.int64)
            if constant:
                total[:, -1] += constant * missed.sum(axis=0).astype(np.int64)
        return total.ravel()

    def _slopes_of(self, batch: Batch, part: slice, margins: Floats) -> Floats:
        if self.risk.loss.form == "difference":
            missed = margins - self.targets(batch, part) * (self.target_steps // STEPS)
            return self._looked_up(missed)
        sign = self.labels(batch, part) * 2.0 - 1.0
        return sign * self._looked_up(sign * margins)

    def _looked_up(self, missed: Floats) -> Floats:
        found: Floats = self.table[((missed + self.reach) * 2.0**-self.shift).astype(np.int32)]
        return found

    def _class_slopes(self, batch: Batch, part: slice, margins: Floats) -> Floats:
        """(p - e_y) * STEPS with p from integers: floor(STEPS e_k / sum e), e_k from the table of exp."""
        below = margins.max(axis=1, keepdims=True) - margins
        grown = self.table[np.minimum(below * 2.0**-self.shift, self.entries - 1).astype(np.int32)]
        share: Floats = np.floor(grown * STEPS / grown.sum(axis=1, keepdims=True))
        share[np.arange(len(share)), self.labels(batch, part)] -= STEPS
        return share

    def labels(self, batch: Batch, part: slice) -> Ints:
        return batch.stored(self.risk.target)[part].astype(np.int64)

    def targets(self, batch: Batch, part: slice) -> Floats:
        """Targets as integers of at most STEPS: their share of the bound, rounded down by elementwise operations."""
        column = self.domain.column(self.risk.target)
        assert isinstance(column, Number)
        bound = self.risk.target_bound(self.domain)
        scaled = self.labels(batch, part) * float(column.step / bound * STEPS) + float(column.low / bound * STEPS)
        return np.asarray(np.clip(np.floor(scaled), -STEPS, STEPS))

    @functools.cached_property
    def table(self) -> Floats:
        """Slopes in steps, one for each range of 2^shift integer margins; for a softmax exp(-distance) in its steps."""
        assert not isinstance(self.risk.loss, Custom)
        return _slope_table(self.risk.loss, self.entries, self.shift, self.reach, self.margin_unit)

    def _slope_unit(self) -> Fraction:
        return Fraction(1, STEPS) * self.risk.loss.slope_bound

    def gradient_error(self) -> float:
        """How far one row's integer gradient is from the gradient of a smooth loss, at most: rounding alone."""
        curve = self.risk.loss.curvature()
        if isinstance(self.risk.loss, Custom):
            return float(self.vector.step) * math.sqrt(self.dimension)
        if curve is None:
            return math.inf  # where a slope jumps, a rounded margin may see the other side
        norm = self.risk.row_norm(self.domain)
        if needs_moments(self.risk):
            return norm * curve * self._miss_error() + float(self.unit) * math.sqrt(self.dimension)
        slopes = float(self._slope_unit())
        if isinstance(self.risk.loss, Softmax):  # each share is rounded down, and looked up in an entry of its own
            root = math.sqrt(self.risk.loss.classes)
            slopes = root * slopes + curve * (root - 1) * self._entry_error() + self.risk.loss.classes / _EXP_STEPS
        return norm * (curve * self._miss_error() + slopes)

    def excess_error(self, known: Constants) -> float:
        """What rounding can add to the excess risk of a descent, whose sum has up to k rows for each of n persons.

        Smooth: a row's gradient that is off by e adds at most k e times the diameter. Corners: the table is the slope
        of another convex loss that differs from this one by at most delta a row, and a gradient at a point q instead of
        w is one at w up to 2 G |w - q|; so 2 k delta + 2 G |w - q|, G with its factor k.
        """
        if self.risk.loss.curvature() is not None or isinstance(self.risk.loss, Custom):
            return known.rows * self.gradient_error() * known.diameter
        apart = self._miss_error() * known.lipschitz / known.row_norm
        apart += known.rows * float(self._slope_unit()) * self.reach * float(self.margin_unit)
        return 2 * apart + 2 * known.lipschitz * self._iterate_error()

    def _miss_error(self) -> float:
        """How far the u whose slope is looked up is from u: the iterate's grid, the target's, and half an entry."""
        target = float(self.risk.target_bound(self.domain)) / STEPS
        return self.risk.row_norm(self.domain) * self._iterate_error() + target + self._entry_error()

    def _entry_error(self) -> float:
        return 0.0 if needs_moments(self.risk) else 2.0**self.shift * float(self.margin_unit) / 2

    def _iterate_error(self) -> float:
        """How far the rounded iterate is from the iterate: half a step, and as much again if it was too long."""
        return float(self.grid) * math.sqrt(self.dimension)


@functools.lru_cache(maxsize=8)
def _slope_table(loss: Loss, entries: int, shift: int, reach: int, margin_unit: Fraction) -> Floats:
    """The public table of a pass; many fits of one kind use the same."""
    middle = (np.arange(entries, dtype=np.float64) + 0.5) * 2.0**shift
    if isinstance(loss, Softmax):
        return np.asarray(np.rint(_EXP_STEPS * np.exp(-(middle - middle[0]) * float(margin_unit))))
    assert not isinstance(loss, Custom)
    slopes = loss.slope((middle - reach) * float(margin_unit)) * float(STEPS / loss.slope_bound)
    return np.asarray(np.clip(np.rint(slopes), -STEPS, STEPS))


@functools.lru_cache(maxsize=8)
def pass_over(risk: Risk, domain: Domain, size: int) -> Pass:
    """The pass of a risk over a domain; a price asks for it many times before it is run."""
    return Pass(risk, domain, size)


def lengths(l2_squared: int, dimension: int) -> Sensitivity:
    """The other norms of an integer vector whose squares sum to at most this."""
    longest = math.isqrt(l2_squared)
    spread = math.isqrt(2 * l2_squared) if dimension > 1 else 0
    return Sensitivity(math.isqrt(dimension * l2_squared), l2_squared, longest, spread)


def _target_steps(risk: Risk, domain: Domain) -> int:
    """The target's bound in integer margins: STEPS times a power of two that makes the iterate's grid fine enough."""
    if risk.loss.form != "difference":
        return 0
    steps, reach_squared = STEPS, risk.feasible.reach_squared(risk.dimension(domain))
    while reach_squared < (_FINE_STEPS // 2) ** 2 * _difference_grid(risk, domain, steps) ** 2:
        steps *= 2
    return steps


def _iterate_grid(risk: Risk, domain: Domain) -> Fraction:
    """The step of the iterate's grid: about 2^22 steps to the end of the set, and margins are commensurable with y."""
    if risk.loss.form == "difference":
        return _difference_grid(risk, domain, _target_steps(risk, domain))
    grid, reach_squared = Fraction(1), risk.feasible.reach_squared(risk.dimension(domain))
    while grid**2 * _FINE_STEPS**2 < reach_squared:
        grid *= 2
    while grid**2 * _FINE_STEPS**2 >= 4 * reach_squared:
        grid /= 2
    return grid


def _difference_grid(risk: Risk, domain: Domain, target_steps: int) -> Fraction:
    return risk.target_bound(domain) / target_steps / risk.features.unit(domain)


def _custom_sum(loss: Custom, w: Floats, vector: Vector, batch: Batch) -> Ints:
    """A user's function, row by row so that no row sees another; a row where it fails or is not finite counts as 0."""
    found = np.zeros((batch.rows, vector.dimension))
    for index, row in enumerate(batch.plain_rows()):
        found[index] = alone(lambda row: np.array(loss.gradient(w.copy(), row), float).reshape(len(w)), row, np.nan)
    found[~np.isfinite(found).all(axis=1)] = 0.0
    return np.asarray(grid_rows(found, vector).sum(axis=0, dtype=np.int64))
