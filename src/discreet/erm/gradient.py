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
from typing import Any

import numpy as np

from discreet.core import ParameterError, exact
from discreet.data import Batch, Dataset, Domain, Facts, Floats, IntArray, Ints, Vector, grid_rows, shrunk
from discreet.erm import STEPS, Constants, Custom, Risk, ScalarLoss, blocks
from discreet.query import Sensitivity, alone, of_persons

Partial = Callable[[Batch], IntArray]

_FINE_STEPS = 2**22  # integer units of the iterate to the end of the set: margins stay below 2^40
_MOST_MOMENTS = 2**12  # features of a squared loss
_EXP_STEPS = 2**20  # what exp(0) is in the table of a softmax


class Pass:
    """The sum over the rows of their gradients, at any point: the grids, tables and bounds that all passes share.

    unit       what one integer of the sum is worth, in units of the loss over units of w
    dimension  of the sum
    coarse     what the sum is divided by before noise is added

    Theorem.   Slopes by table, B the bound on a row's squared integers, S = 2^15: between neighbours the sums at one
               point differ by |d|_2^2 <= S^2 B (add-remove) or 4 S^2 B (replace-one), whatever the point is; a softmax
               has 2 S^2 for S^2. Squared loss, W the bound on the iterate's squared integers, Y that on the target's:
               U^2 B or 4 U^2 B with U = floor sqrt(B W) + Y, then the lemma above. |d|_1 <= sqrt(dimension) |d|_2 and
               |d|_inf <= |d|_2. A custom gradient has the bound of its Vector for S^2 B. A person of k rows: k times.
    """

    unit: Fraction
    coarse = 1

    def __init__(self, risk: Risk, domain: Domain) -> None:
        risk.loss.check_target(domain, risk.target)
        self.risk, self.domain, self.dimension = risk, domain, risk.dimension(domain)

    def row_squared(self) -> int:
        """The squared length of what one row adds, at most, before it is divided by `coarse`."""
        raise NotImplementedError

    def at(self, w: Floats) -> Partial:
        """The function of a batch whose sum is the sum of the gradients at w."""
        raise NotImplementedError

    def gradient_error(self) -> float:
        """How far one row's integer gradient is from the gradient of a smooth loss, at most: rounding alone."""
        raise NotImplementedError

    def sensitivity(self, facts: Facts) -> Sensitivity:
        added, replaced = (lengths(times * self.row_squared(), self.dimension) for times in (1, 4))
        whole = of_persons(facts.neighbours, added=added, replaced=replaced)
        if self.coarse == 1:
            return whole
        length = Fraction(exact.ceil_sqrt(Fraction(whole.l2_squared)), self.coarse)
        rounded = length + exact.ceil_sqrt(Fraction(self.dimension))
        return lengths(math.floor(rounded**2), self.dimension)

    def oracle(self, data: Dataset) -> Callable[[Floats], IntArray]:
        """The exact sum of the gradients at any point. Not private: for the inside of a mechanism's `run`."""
        return lambda w: data.exact_sum(self.at(w))

    def excess_error(self, known: Constants) -> float:
        """What rounding can add to the excess risk of a descent, whose sum has up to k rows for each of n persons.

        Smooth: a row's gradient that is off by e adds at most k e times the diameter.
        """
        return known.rows * self.gradient_error() * known.diameter


class CustomPass(Pass):
    """A user's function, row by row so that no row sees another; a row where it fails or is not finite counts as 0."""

    def __init__(self, risk: Risk, domain: Domain, loss: Custom) -> None:
        super().__init__(risk, domain)
        self.gradient, self.vector = loss.gradient, Vector(self.dimension, norm=loss.bound)
        self.unit = self.vector.step

    def row_squared(self) -> int:
        return self.vector.bound_squared

    def at(self, w: Floats) -> Partial:
        return functools.partial(self._summed, w)

    def _summed(self, w: Floats, batch: Batch) -> Ints:
        def gradient(row: dict[str, Any]) -> Floats:
            return np.array(self.gradient(w.copy(), row), float).reshape(len(w))

        slopes = np.zeros((batch.rows, self.dimension))
        for index, row in enumerate(batch.plain_rows()):
            slopes[index] = alone(gradient, row, np.nan)
        slopes[~np.isfinite(slopes).all(axis=1)] = 0.0
        return np.asarray(grid_rows(slopes, self.vector).sum(axis=0, dtype=np.int64))

    def gradient_error(self) -> float:
        return float(self.unit) * math.sqrt(self.dimension)


class LinearPass(Pass):
    """What the passes of a linear model share: the grids of the iterate and of the target.

    grid          what one integer of the iterate is worth: about 2^22 of them reach the end of the set, and margins are
                  commensurable with the target
    target_steps  the target's bound in integer margins: STEPS times a power of two that makes the grid fine enough
    reach         no integer u is larger
    """

    def __init__(self, risk: Risk, domain: Domain) -> None:
        super().__init__(risk, domain)
        features, bound = risk.features, risk.target_bound(domain)
        self.width, self.rows_squared = features.dimension(domain), features.bound_squared(domain)
        unit, reach_squared = features.unit(domain), risk.feasible.reach_squared(self.dimension)
        self.target_steps, self.grid = (STEPS, bound / STEPS / unit) if bound else (0, Fraction(1))
        if bound:
            while reach_squared < (_FINE_STEPS // 2) ** 2 * self.grid**2:
                self.target_steps, self.grid = 2 * self.target_steps, self.grid / 2
        else:
            while self.grid**2 * _FINE_STEPS**2 < reach_squared:
                self.grid *= 2
            while self.grid**2 * _FINE_STEPS**2 >= 4 * reach_squared:
                self.grid /= 2
        self.iterate_squared = math.floor(reach_squared / self.grid**2)
        self.margin_unit = self.grid * unit
        self.reach = math.isqrt(self.rows_squared * self.iterate_squared) + self.target_steps
        if self.rows_squared >= 2**31:
            raise ParameterError("the grid of the features is too fine: norm / step must be below 2**15.5")
        if self.reach >= 2**46 or self.iterate_squared >= 2**62:
            raise ParameterError("the feasible set is too large for this target: predictions would dwarf its bound")

    def quantised(self, w: Floats) -> Ints:
        """The iterate as integers that are not longer than the set allows; the centre, if a step was not finite."""
        finite = w if np.isfinite(w).all() else self.risk.feasible.centre(self.dimension)
        far = 2 * self.risk.feasible.reach(self.dimension)
        units = np.clip(finite, -far, far) / float(self.grid)
        share = min(1.0, math.sqrt(self.iterate_squared) / max(1.0, float(np.linalg.norm(units))))
        return np.asarray(shrunk(np.rint(units * share).astype(np.int64)[None, :], self.iterate_squared)[0])

    def labels(self, batch: Batch, part: slice) -> Ints:
        return batch.stored(self.risk.target)[part].astype(np.int64)

    def targets(self, batch: Batch, part: slice) -> Floats:
        """Targets as integers of at most STEPS: their share of the bound, rounded down by elementwise operations."""
        number, bound = self.risk.loss.number(self.domain, self.risk.target), self.risk.target_bound(self.domain)
        scaled = self.labels(batch, part) * float(number.step / bound * STEPS) + float(number.low / bound * STEPS)
        return np.asarray(np.clip(np.floor(scaled), -STEPS, STEPS))

    @property
    def target_unit(self) -> Fraction:
        """What one integer of `targets` is worth."""
        return self.risk.target_bound(self.domain) / STEPS

    def iterate_error(self) -> float:
        """How far the rounded iterate is from the iterate: half a step, and as much again if it was too long."""
        return float(self.grid) * math.sqrt(self.dimension)

    def miss_error(self, entry: float = 0.0) -> float:
        """How far an integer u is from u: the iterate's grid, the target's, and the error of a table's entry."""
        target = float(self.risk.target_bound(self.domain)) / STEPS
        return self.risk.row_norm(self.domain) * self.iterate_error() + target + entry


class MomentPass(LinearPass):
    """The squared loss: one pass takes the sums of all products, and the gradient anywhere follows from them."""

    def __init__(self, risk: Risk, domain: Domain) -> None:
        super().__init__(risk, domain)
        if self.width > _MOST_MOMENTS:
            raise ParameterError(
                f"the squared loss keeps the sums of all products of two features: at most {_MOST_MOMENTS} "
                f"features, found {self.width}; a Huber loss needs no such sums"
            )
        self.coarse = 2 ** max(0, self.reach.bit_length() - 16)
        self.unit = 2 * self.margin_unit * risk.features.unit(domain) * self.coarse

    def row_squared(self) -> int:
        return self.reach**2 * self.rows_squared

    def oracle(self, data: Dataset) -> Callable[[Floats], IntArray]:
        moments = data.exact_sum(self.moments)
        return lambda w: self.from_moments(moments, self.quantised(w))

    def moments(self, batch: Batch) -> Ints:
        """The sums of x_i x_j and, in the last row, of y x_j; y in its own steps."""
        total = np.zeros((self.width + 1, self.width), dtype=np.int64)
        for rows, part in blocks(self.risk.features, batch):
            total[:-1] += (rows.T @ rows).astype(np.int64)
            total[-1] += (self.targets(batch, part) @ rows).astype(np.int64)
        return total

    def from_moments(self, moments: Ints, w: Ints) -> IntArray:
        """The sum of the gradients at w, in steps of `unit`: Python integers, for the products exceed 64 bits."""
        products, linear = moments[:-1].astype(object), moments[-1].astype(object)
        exactly = products @ w.astype(object) - linear * (self.target_steps // STEPS)
        return np.array([value // self.coarse for value in exactly], dtype=np.int64)

    def gradient_error(self) -> float:
        curve = self.risk.loss.curvature() or 0.0
        norm = self.risk.row_norm(self.domain)
        return norm * curve * self.miss_error() + float(self.unit) * math.sqrt(self.dimension)


class SlopePass(LinearPass):
    """A loss of one margin with bounded slopes, which are looked up in a public table of integers."""

    def __init__(self, risk: Risk, domain: Domain, size: int) -> None:
        super().__init__(risk, domain)
        self.entries = 2 ** min(18, max(14, size.bit_length() + 5))  # a table finer than the noise is a waste
        self.shift = max(0, (2 * self.reach + 1).bit_length() - self.entries.bit_length() + 1)
        self.slope_unit = risk.loss.slope_bound / STEPS
        self.unit = self.slope_unit * risk.features.unit(domain)
        self.entry_error = 2.0**self.shift * float(self.margin_unit) / 2

    @functools.cached_property
    def table(self) -> Floats:
        """Slopes in steps, one for each range of 2^shift integer margins."""
        return slope_table(self.scalar, self.entries, self.shift, self.reach, self.margin_unit, STEPS)

    @property
    def scalar(self) -> ScalarLoss:
        assert isinstance(self.risk.loss, ScalarLoss)
        return self.risk.loss

    def row_squared(self) -> int:
        return STEPS**2 * self.rows_squared

    def at(self, w: Floats) -> Partial:
        units = self.quantised(w).astype(np.float64)
        weights = np.ascontiguousarray(units.reshape(-1, self.width).T) if len(units) > self.width else units
        return functools.partial(self._summed, weights, self.table)

    def _summed(self, weights: Floats, table: Floats, batch: Batch) -> IntArray:
        # The intercept is added by hand: rows without it are contiguous, and read at the speed of memory.
        features, constant = self.risk.features.without_intercept(), self.risk.features.constant(self.domain)
        total = np.zeros((self.dimension // self.width, self.width), dtype=np.int64)
        for rows, part in blocks(features, batch):
            width = rows.shape[1]
            margins = rows @ weights[:width]
            slopes = self.slopes(batch, part, margins + constant * weights[-1] if constant else margins, table)
            total[:, :width] += (slopes.T @ rows).astype(np.int64)
            if constant:
                total[:, -1] += constant * slopes.sum(axis=0).astype(np.int64)
        return total.ravel()

    def slopes(self, batch: Batch, part: slice, margins: Floats, table: Floats) -> Floats:
        """The integer slopes of rows with these integer margins."""
        shift, sign = self.misses(batch, part)
        missed = sign * margins + shift
        return np.asarray(sign * table[((missed + self.reach) * 2.0**-self.shift).astype(np.int32)])

    def misses(self, batch: Batch, part: slice) -> tuple[Floats | float, Floats | float]:
        """(shift, sign) of the rows: u = sign * margin + shift in integers."""
        scale = self.target_steps // STEPS
        return self.scalar.miss(self.targets(batch, part) * scale if scale else self.labels(batch, part))

    def gradient_error(self) -> float:
        curve = self.risk.loss.curvature()
        if curve is None:
            return math.inf  # where a slope jumps, a rounded margin may see the other side
        return self.risk.row_norm(self.domain) * (curve * self.miss_error(self.entry_error) + self.slope_error(curve))

    def slope_error(self, curve: float) -> float:
        """How far an integer slope is from the slope at the margin that was looked up."""
        return float(self.slope_unit)

    def excess_error(self, known: Constants) -> float:
        """Corners: the table is the slope of another convex loss that differs from this one by at most delta a row,
        and a gradient at a point q instead of w is one at w up to 2 G |w - q|; so 2 k delta + 2 G |w - q|, G with its
        factor k."""
        if self.risk.loss.curvature() is not None:
            return super().excess_error(known)
        apart = self.miss_error(self.entry_error) * known.lipschitz / known.row_norm
        apart += known.rows * float(self.slope_unit) * self.reach * float(self.margin_unit)
        return 2 * apart + 2 * known.lipschitz * self.iterate_error()


class SoftmaxPass(SlopePass):
    """Several margins: probabilities are quotients of integers from a public table of exp."""

    @functools.cached_property
    def table(self) -> Floats:
        """exp(-distance) in its steps, one for each range of 2^shift integer distances."""
        distance = np.arange(self.entries, dtype=np.float64) * 2.0**self.shift
        return np.asarray(np.rint(_EXP_STEPS * np.exp(-distance * float(self.margin_unit))))

    def row_squared(self) -> int:
        return 2 * super().row_squared()

    def slopes(self, batch: Batch, part: slice, margins: Floats, table: Floats) -> Floats:
        return class_slopes(margins * 2.0**-self.shift, self.labels(batch, part), table)

    def slope_error(self, curve: float) -> float:
        """Each share is rounded down, and looked up in an entry of its own."""
        classes, root = self.risk.loss.margins, math.sqrt(self.risk.loss.margins)
        entry: float = curve * (root - 1) * self.entry_error
        return root * float(self.slope_unit) + entry + classes / _EXP_STEPS


@functools.lru_cache(maxsize=8)
def pass_over(risk: Risk, domain: Domain, size: int = 2**31) -> Pass:
    """The pass of a risk over a domain; `size` is the public size. A price asks for it many times before it is run."""
    if isinstance(risk.loss, Custom):
        return CustomPass(risk, domain, risk.loss)
    if risk.loss.moments:
        return MomentPass(risk, domain)
    return (SlopePass if risk.loss.margins == 1 else SoftmaxPass)(risk, domain, size)


@functools.lru_cache(maxsize=8)
def slope_table(loss: ScalarLoss, entries: int, shift: int, reach: int, unit: Fraction, steps: int) -> Floats:
    """A public table: the slopes, in integers of at most `steps`, in the middle of each range of 2^shift margins.

    Many fits of one kind use the same.
    """
    middle = (np.arange(entries, dtype=np.float64) + 0.5) * 2.0**shift
    slopes = loss.slope((middle - reach) * float(unit)) * float(steps / loss.slope_bound)
    return np.asarray(np.clip(np.rint(slopes), -steps, steps))


def class_slopes(margins: Floats, labels: Ints, table: Floats) -> Floats:
    """(p - e_y) * STEPS with p from integers: floor(STEPS e_k / sum e), e_k from a table of exp(-distance)."""
    below = margins.max(axis=1, keepdims=True) - margins
    grown = table[np.minimum(below, len(table) - 1).astype(np.int32)]
    share: Floats = np.floor(grown * STEPS / grown.sum(axis=1, keepdims=True))
    share[np.arange(len(share)), labels] -= STEPS
    return share


def lengths(l2_squared: int, dimension: int) -> Sensitivity:
    """The other norms of an integer vector whose squares sum to at most this."""
    longest = math.isqrt(l2_squared)
    spread = math.isqrt(2 * l2_squared) if dimension > 1 else 0
    return Sensitivity(math.isqrt(dimension * l2_squared), l2_squared, longest, spread)
