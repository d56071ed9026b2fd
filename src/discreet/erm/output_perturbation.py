"""Output perturbation: solve the problem with ridge added, then add noise to the solution.

    w* = the point of C that minimises L(w) + (ridge / 2) |w - centre|^2,   released: the projection of w* + noise

Ridge makes the solution stable: one person moves w* by at most 2 G / (lambda n), lambda being all the ridge there is.
It also biases it; `propose` takes the ridge at which both errors together are promised to be least. One noisy vector is
released however long the solver works, which makes this the pure alternative in high dimension.

No solver finds w* itself. What is priced is w* moving, plus twice the distance from w* that every solution keeps,
whatever the rows are: `tolerance`. That distance is a theorem, not a test that could fail on one of two neighbouring
tables: a fast solver that nobody needs to trust goes first, and projected gradient descent, which reaches the tolerance
after a known number of steps, goes on from wherever it stopped (docs/proofs/output_perturbation.md). Gradients come
from a finer pass than a descent needs: exact sums of integers of 48 bits, each of which depends on one row alone.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet.core import Funds, Guarantee, ParameterError, Rng, exact
from discreet.data import Batch, Dataset, Facts, Floats, IntArray, Needs
from discreet.erm import Constants, Features, Risk, Targets, blocks, checked_risk, public_size
from discreet.erm.gradient import lengths
from discreet.erm.nonprivate import accelerated
from discreet.mechanisms import (
    GaussianNoise,
    ProductLaplaceNoise,
    Promise,
    Sensitivity,
    SphericalNoise,
    VectorNoise,
    admitted,
    calibrate,
    checked_noise,
)

LAWS: tuple[type[VectorNoise], ...] = (GaussianNoise, ProductLaplaceNoise, SphericalNoise)
"""The noises of solvers by perturbation."""
_DIMENSION = 2**12  # coordinates: a matrix of that size is decomposed
PASSES = 40
"""About how often the rows are read: the steps that certify the minimum."""
ROWS = 2**13
"""Rows in a block: sums of 24-bit times 16-bit integers stay below 2^53."""
HALF = 2**24
"""Slopes are integers of two digits of 24 bits."""
_LOW = 2**25  # the lower half of an integer of the iterate
_SMALL = Fraction(1, 2**200)  # products of a few of these are floats
_QUARTERS = (Fraction(4, 4), Fraction(5, 4), Fraction(6, 4), Fraction(7, 4))  # of the way to twice as much
_FAST = 200  # passes of the fast solver
_MOST_PASSES = 10**7  # of the slow one, for each factor of e


@dataclass(frozen=True, slots=True)
class OutputPerturbation:
    """Release the minimiser of a risk with ridge added, on an integer grid, plus noise, projected to the feasible set.

    ridge      added strength; a Ridge that the risk has already counts too, so 0 is allowed there
    tolerance  every solution is within this distance of the exact minimiser
    step       the grid: noise is integers of this worth

    Theorem.   n the public size, G the length of one row's gradient, lambda all the ridge, k rows per person. Between
               neighbours the exact minimisers differ by at most D = 2 k G / (lambda n) (replace-one) or k G / (lambda
               n) (add-remove), the integers by |d|_2 <= (D + 2 tolerance) / step + sqrt(dimension); the noise has the
               guarantee of this sensitivity, |d|_1 <= sqrt(dimension) |d|_2. All in exact arithmetic, rounded up.
    Accuracy.  At most k n rows; G' = k G plus the slope of the regularizer, beta with its factor k, s the deviation of
               the noise on a coordinate, V = dimension s^2. E excess <= (ridge / 2) R0^2 + G' (tolerance + step
               sqrt(dimension) / 2) + N with N = G' sqrt V or, on a ball of radius R without lasso, N = G'' (s / 2 + V /
               2R) + (beta + ridge) V / 2, G'' = G' + ridge R0; on a box N = G'' sqrt(V) / 2 + (beta + ridge) V / 2.
               `promise` takes the least.
    Edges.     Smooth losses on a ball or a box. A tolerance below what floats can keep on every table is refused.
    Reference. [CMS11]; docs/proofs/output_perturbation.md.
    """

    NAME: ClassVar[str] = "output-perturbation/1"
    risk: Risk
    ridge: Fraction
    tolerance: Fraction
    step: Fraction
    noise: VectorNoise

    def __post_init__(self) -> None:
        exact.convert(self, risk=checked_risk, noise=checked_noise)
        exact.convert(self, ridge=exact.nonnegative, tolerance=exact.positive, step=exact.positive)

    def guarantee(self, facts: Facts) -> Guarantee:
        moved, known = self.sensitivity(facts), _Known(self.risk, self.ridge, facts)
        return self.noise.guarantee(moved, unit=self.step, dimension=known.dimension, neighbours=facts.neighbours)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """How far apart the integers of neighbouring tables can be; refuses a tolerance that cannot be kept."""
        known = _Known(self.risk, self.ridge, facts)
        known.check(self.tolerance, known.reach, known.norm, known.strength, known.miss, self.tolerance, self.step)
        if known.reach > self.step * 2**50:
            raise ParameterError(f"step must be at least 2**-50 of the feasible set, found {exact.shown(self.step)}")
        apart = (known.moves() + 2 * self.tolerance) / self.step + exact.root_up(Fraction(known.dimension))
        return lengths(math.floor(apart**2), known.dimension)

    def needs(self, facts: Facts) -> Needs:
        return Needs(functions=True, passes=PASSES)

    def run(self, data: Dataset, rng: Rng) -> Floats:
        known = _Known(self.risk, self.ridge, data.facts)
        noise = self.noise.draw((known.dimension,), unit=self.step, rng=rng)
        solution = _solved(known, data, float(self.tolerance))
        noisy = np.rint(solution / float(self.step)).astype(np.int64) + noise
        return self.risk.feasible.project(noisy.astype(np.float64) * float(self.step))


def promise(mechanism: OutputPerturbation, facts: Facts) -> Promise:
    """The excess risk that is promised in expectation over the noise."""
    theorem = f"output perturbation, {type(mechanism.noise).__name__}"
    found = Promise(_excess(mechanism, facts), theorem)
    return found.unless(mechanism.risk.centre_excess(facts), "the centre of the set").about(facts)


def _excess(mechanism: OutputPerturbation, facts: Facts) -> float:
    known = mechanism.risk.constants(facts)
    away = float(mechanism.tolerance) + float(mechanism.step) * math.sqrt(known.dimension) / 2
    squared = mechanism.noise.squared_length(known.dimension, unit=mechanism.step)
    noisy = _noisy_excess(mechanism.risk, known, float(mechanism.ridge), squared)
    return noisy + known.slope * away


def _noisy_excess(risk: Risk, known: Constants, ridge: float, whole: float) -> float:
    """What ridge and noise of this squared length add: by the slope of the risk or, if that is less, by its curvature.

    At the minimiser the slope points out of the set only, so to first order noise costs what it does along the one
    normal of a ball, or along the active sides of a box; the rest is of second order.
    """
    steep, one = known.slope, math.sqrt(whole / known.dimension)
    biased, by_slope = ridge / 2 * known.span**2, steep * math.sqrt(whole)
    if known.smoothness is None or risk.penalty.lasso:
        return biased + by_slope
    steepest = steep + ridge * known.span
    if risk.feasible.ball is None:
        first = steepest * math.sqrt(whole) / 2
    else:
        first = steepest * (one / 2 + whole / (2 * float(risk.feasible.ball)))
    return biased + min(by_slope, first + (known.smoothness + ridge) * whole / 2)


def propose(risk: Risk, *, facts: Facts, funds: Funds) -> OutputPerturbation:
    """The ridge and the noise for which the promised excess is least, with the least noise that is admitted."""
    made = admitted(functools.partial(_with_law, risk, law, facts, funds) for law in LAWS)
    return min(made, key=lambda mechanism: _excess(mechanism, facts))


def _with_law(risk: Risk, law: type[VectorNoise], facts: Facts, funds: Funds) -> OutputPerturbation:
    """The best ridge. The noise is about proportional to one over all of it: from one scale the others are guessed."""
    known, own = risk.constants(facts), risk.penalty.ridge
    first = short_up(Fraction(known.lipschitz / known.span))
    make = functools.partial(_with_noise, risk, law, facts)
    scale = calibrate(functools.partial(make, first), funds=funds, facts=facts).noise.scale * (first + own)

    def excess(ridge: Fraction) -> float:
        squared = law(scale / (ridge + own)).squared_length(known.dimension, unit=Fraction(0))
        return _noisy_excess(risk, known, float(ridge), squared)

    tried = [first * Fraction(2) ** power * quarter for power in range(-24, 8) for quarter in _QUARTERS]
    best = min(tried if own == 0 else [Fraction(0), *tried], key=excess)
    guess: OutputPerturbation = make(best, scale / (best + own) * Fraction(1_000_001, 1_000_000))
    if funds.admits(guess.guarantee(facts)):
        return guess
    return calibrate(functools.partial(make, best), funds=funds, facts=facts)


def _with_noise(
    risk: Risk, noise: type[VectorNoise], facts: Facts, ridge: Fraction, scale: Fraction
) -> OutputPerturbation:
    """Tolerance and step so fine that they cost about a hundredth of the noise."""
    known = _Known(risk, ridge, facts)
    tolerance = short_up(max(known.least_tolerance(), known.moves() / 256))
    step = Fraction(2) ** math.floor(math.log2(known.moves() / 256 / exact.root_up(Fraction(known.dimension))))
    return OutputPerturbation(risk, ridge, tolerance, step, noise(scale))


class PublicNumbers(ABC):
    """Exact public numbers of a problem, each rounded up: what solvers by perturbation have in common."""

    solver: ClassVar[str]
    strength: Fraction

    def __init__(self, risk: Risk, facts: Facts) -> None:
        domain, loss, features = facts.domain, risk.loss, risk.features
        loss.check_target(domain, risk.target)
        if not loss.convex or loss.form == "custom":
            raise ParameterError(f"{self.solver} rests on convexity: it takes no custom gradient")
        curve = loss.curvature()
        if curve is None:
            raise ParameterError(f"{self.solver} needs a smooth loss; {type(loss).__name__} has corners")
        self.risk, self.facts, self.size = risk, facts, public_size(facts)
        self.dimension, self.width = risk.dimension(domain), features.dimension(domain)
        if self.dimension > _DIMENSION:
            raise ParameterError(f"{self.solver} takes up to {_DIMENSION} coordinates, found {self.dimension}")
        if features.bound_squared(domain) >= 2**31:
            raise ParameterError("the grid of the features is too fine: norm / step must be below 2**15.5")
        self.curve, self.unit = Fraction(curve), features.unit(domain)
        self.norm = exact.root_up(features.bound_squared(domain) * self.unit**2)

    @abstractmethod
    def least_tolerance(self) -> Fraction:
        """Below this, rounding might stop the solver on some table."""

    @abstractmethod
    def slowest(self) -> float:
        """The condition number: a descent needs about this many passes for each digit, if no fast solver helps."""

    def check(self, tolerance: Fraction, *sizes: Fraction) -> None:
        """Refuse numbers that floats cannot hold, a tolerance that cannot be kept and a problem that takes for ever."""
        for size in sizes:
            if not _SMALL < size < 1 / _SMALL:
                raise ParameterError(f"{exact.shown(size)} is beyond what this solver computes with: use other units")
        if tolerance < self.least_tolerance():
            least = exact.shown(self.least_tolerance())
            raise ParameterError(f"tolerance must be at least {least} here, found {exact.shown(tolerance)}")
        if self.slowest() > _MOST_PASSES:
            raise ParameterError("ridge is too weak beside the curvature of the loss: no solver would come to an end")

    def require_ridge(self) -> None:
        if self.strength == 0:
            raise ParameterError("ridge must be > 0 unless the risk has a Ridge of its own, found 0")


class _Known(PublicNumbers):
    solver: ClassVar[str] = "output perturbation"

    def __init__(self, risk: Risk, ridge: Fraction, facts: Facts) -> None:
        super().__init__(risk, facts)
        if risk.feasible.ball is not None and risk.feasible.box is not None:
            raise ParameterError(
                "output perturbation needs a Ball or a Box: the projection on both is too inexact for it"
            )
        self.added, self.strength = ridge, ridge + risk.penalty.ridge
        self.require_ridge()
        self.reach = exact.root_up(risk.feasible.reach_squared(self.dimension))
        self.miss = self.norm * self.reach + risk.target_bound(facts.domain)
        self.steepness = risk.loss.steepest(self.miss)

    def moves(self) -> Fraction:
        """How far one person moves the exact minimiser, at most."""
        rows = self.facts.neighbours.rows * (2 if self.facts.neighbours.replace_one else 1)
        return rows * self.steepness * self.norm / (self.strength * self.size)

    def slowest(self) -> float:
        return 1 + self.facts.neighbours.rows * float(self.curve) * float(self.norm) ** 2 / float(self.strength)

    def least_tolerance(self) -> Fraction:
        """Twice the distance from the minimiser at which rounding may stop a descent, on any table."""
        together = Fraction(self.facts.rows_bound, self.size) * self.row_doubt() / self.strength
        return 2 * (together + self._margin_doubt() * self.reach)

    def row_doubt(self) -> Fraction:
        """How far off one row's gradient may be computed, and its share in rounding a step."""
        classes = Fraction(self.risk.loss.margins)
        slopes = (40 + 9 * exact.root_up(classes) + classes / 8) / 2**50
        return self.norm * (self.curve * self.miss * self._margin_doubt() + self.steepness * slopes)

    def _margin_doubt(self) -> Fraction:
        return (exact.root_up(Fraction(self.dimension)) + Fraction(self.dimension, 16) + 8) / 2**50


# --- the solution -----------------------------------------------------------------------------------------------------


def _solved(known: _Known, data: Dataset, tolerance: float) -> Floats:
    """A point within `tolerance` of the exact minimiser, whatever the rows are: the proof page has the theorem."""
    rows = _FineRows(known, data)
    lasso, feasible = known.risk.shrinkage(), known.risk.feasible
    start = feasible.centre(known.dimension)
    slack = tolerance / 2 * float(known.strength) / rows.smoothness  # a shorter step certifies its end
    certified: list[Floats] = []

    def plain(point: Floats, slope: Floats) -> Floats:
        end = feasible.shrink(point - slope / rows.smoothness, lasso / rows.smoothness)
        if float(np.linalg.norm(point - end)) <= slack:
            certified.append(end)
        return end

    def fast(point: Floats, slope: Floats) -> tuple[Floats, Floats]:
        plain(point, slope)
        return rows.metric_step(point, slope)

    w, _ = accelerated(rows.gradient, fast, start, lambda *_: bool(certified), limit=_FAST)
    w = w if bool(np.isfinite(w).all()) else start  # never needed: all these numbers are finite
    for _ in range(rows.enough_steps(tolerance)):
        if certified:
            break
        w = plain(w, rows.gradient(w))
    return certified[0] if certified else w


class _FineRows:
    """The gradient of the mean loss with ridge, to about 13 digits, and what a solver may know of its curvature."""

    def __init__(self, known: _Known, data: Dataset) -> None:
        self.known, self.data = known, data
        worth, strength = float(known.curve * known.unit**2 / known.size), float(known.strength)
        self.bound: Floats = data.exact_sum(functools.partial(gram, known.risk.features)).astype(
            np.float64
        ) * worth + strength * np.eye(known.width)
        curves, axes = np.linalg.eigh(self.bound)
        self.inverse: Floats = np.asarray(axes / np.maximum(curves, strength) @ axes.T, dtype=np.float64)
        self.smoothness = max(float(curves[-1]), strength) * (1 + 2.0**-20)
        self.grid = 2.0 ** (math.floor(math.log2(known.reach)) - 50)
        self.slope_unit = 4 * float(known.steepness) / HALF**2  # a solver may look beyond the set, where it is steeper
        self.centre = known.risk.feasible.centre(known.dimension)

    def enough_steps(self, tolerance: float) -> int:
        """A number of projected gradient steps that comes within half the tolerance from anywhere."""
        distance = self.known.risk.feasible.diameter(self.known.dimension)
        rate = float(self.known.strength) / self.smoothness
        return math.ceil(max(0.0, math.log(2 * distance / tolerance)) / rate) + 1

    def gradient(self, w: Floats) -> Floats:
        """Of the mean loss and all the ridge at w."""
        known, risk = self.known, self.known.risk
        units = np.rint(w / self.grid)
        tops = np.floor(units / _LOW)
        high, low = (np.ascontiguousarray(part.reshape(-1, known.width).T) for part in (tops, units - tops * _LOW))
        margins = functools.partial(_two_limb_margins, high, low, self.grid * float(known.unit))
        summed = functools.partial(fine_slopes, risk, margins, self.slope_unit)
        worth = self.slope_unit * float(known.unit) / known.size
        ridge = float(known.added) * (w - self.centre) + risk.smooth_gradient(w)
        return np.asarray(self.data.exact_sum(summed).astype(np.float64) * worth + ridge)

    def metric_step(self, point: Floats, slope: Floats) -> tuple[Floats, Floats]:
        """To about the least point of the quadratic upper bound in the metric of `bound`, and the pull of that step.

        In a set, or with lasso, about the least point of (w - peak)' bound (w - peak) / 2 + lasso |w|_1: no rows are
        read for it.
        """
        lasso, feasible = self.known.risk.shrinkage(), self.known.risk.feasible
        tiny = 2.0**-40 * feasible.diameter(self.known.dimension)
        end = peak = point - self._times(self.inverse, slope)

        def step(ahead: Floats, slope: Floats) -> tuple[Floats, Floats]:
            nearer = feasible.shrink(ahead - slope / self.smoothness, lasso / self.smoothness)
            return nearer, ahead - nearer

        def close(_: Floats, pull: Floats) -> bool:
            return float(np.abs(pull).max()) <= tiny

        if lasso or not feasible.contains(peak):
            end, _ = accelerated(lambda w: self._times(self.bound, w - peak), step, point, close, limit=300)
        return end, self._times(self.bound, point - end)

    def _times(self, matrix: Floats, vector: Floats) -> Floats:
        """A symmetric matrix times the part of a vector that each class has."""
        return np.asarray((vector.reshape(-1, self.known.width) @ matrix).ravel())


def targeted_blocks(risk: Risk, batch: Batch) -> Iterator[tuple[Floats, Targets]]:
    """The rows' vectors and their targets, some rows at a time."""
    for rows, part in blocks(risk.features, batch, ROWS):
        yield rows, risk.loss.target_values(batch.domain, risk.target, batch.stored(risk.target)[part])


def gram(features: Features, batch: Batch) -> IntArray:
    """The sums of the products of the rows' coordinates."""
    width = features.dimension(batch.domain)
    total = np.zeros((width, width), dtype=np.int64)
    for rows, _ in blocks(features, batch, ROWS):
        total += (rows.T @ rows).astype(np.int64)
    return total


def fine_slopes(risk: Risk, margins: Callable[[Floats], Floats], slope_unit: float, batch: Batch) -> IntArray:
    """The sum of the slopes times the rows, in units: exact, and of each row its own function.

    margins  of rows: a value that can be pickled
    """
    total = np.zeros(risk.dimension(batch.domain), dtype=object)
    for rows, y in targeted_blocks(risk, batch):
        slopes = np.rint(risk.loss.row_slopes(margins(rows), y) / slope_unit)
        top = np.floor(slopes / HALF)
        digits = np.concatenate([top, slopes - top * HALF], axis=1)
        high, low = (digits.T @ rows).astype(np.int64).reshape(2, -1).astype(object)
        total += high * HALF + low
    return total


def _two_limb_margins(high: Floats, low: Floats, worth: float, rows: Floats) -> Floats:
    return ((rows @ high) * _LOW + rows @ low) * worth


def short_up(value: Fraction) -> Fraction:
    """A number with 20 binary digits, not below value > 0."""
    unit = Fraction(2) ** (value.numerator.bit_length() - value.denominator.bit_length() - 20)
    return math.ceil(value / unit) * unit
