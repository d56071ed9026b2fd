"""Objective perturbation: add a random linear term to the objective, and minimise it.

    theta = the least point of sum_i loss(theta; row_i) + (Lambda / 2) |theta|^2 + <b, theta>;  released: theta, blurred

The gradient of the sum at theta is minus b and the regularizer's, so whoever sees theta sees a noisy gradient at one
point, which is paid for once: no noise is drawn in a loop, and the solver may pass over the rows as often as it likes.

What makes it exact. b is integers K of worth `grid`, drawn exactly. The theorem is about the continuous grid * (K + U),
U uniform on a cube, which is never drawn: its minimiser has a density, and the densities of neighbours are compared. No
solver finds that minimiser. Its point is within `tolerance` of the one for grid * K whatever the rows are, which is
shown in exact arithmetic (`_Objective.solve`), and U moves that by at most grid sqrt(d) / (2 Lambda). Both are one
distance, for which a second noise pays, the blur (docs/proofs/objective_perturbation.md).
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet.core import NANO, Funds, Guarantee, NothingFits, ParameterError, Rng, exact
from discreet.data import Batch, Dataset, Facts, Floats, IntArray, Ints, Needs
from discreet.erm import Risk, blocks, checked_risk, public_size
from discreet.erm.gradient import lengths
from discreet.erm.nonprivate import accelerated
from discreet.erm.output_perturbation import (
    HALF,
    LAWS,
    ROWS,
    PublicNumbers,
    fine_slopes,
    gram,
    short_up,
    targeted_blocks,
)
from discreet.mechanisms import (
    GaussianNoise,
    ProductLaplaceNoise,
    Promise,
    Sensitivity,
    VectorNoise,
    admitted,
    calibrate,
    checked_noise,
)

_SLOPE_BITS = 47  # of the steepest slope
_DOUBT = Fraction(1, 2**45)  # of the steepest slope: how far off one row's slope may be computed
_NEWTON, _FAST = 40, 400  # passes of the fast solvers
_AGAIN, _HALVED = 8, 4  # how often Newton's method begins anew where it stopped, and how often a step is halved
_FEW = 2**12  # rows that a first guess is made from, at least; at most eight times as many
_LEVELS = 40  # parts 1, 1/2, 1/4, ... of the rows from which that sample is taken
_GAIN = 2.0**-6  # of the sum of the losses, in units of slope^2 / curvature: what follows goes on in exact arithmetic
_BLUR = 64  # the blur costs this part of the price
_ENOUGH = 10**100  # of the budget, in nano-units: beyond it floats end, and the noise is as good as none
PASSES = 9
"""About how often the rows are read: the guess, and the steps that certify the minimum."""
Linear = Callable[[Floats], Floats]
_STRENGTHS = tuple(Fraction(2) ** power * quarter / 4 for power in range(-12, 21) for quarter in (4, 6))


@dataclass(frozen=True, slots=True)
class ObjectivePerturbation:
    """Release the minimiser of the sum of losses plus ridge plus a random linear term, on an integer grid, blurred.

    ridge      added strength of the mean loss; a Ridge that the risk has already counts too
    noise      of the linear term, in units of the gradient of the sum: Gaussian, or (pure) Laplace or spherical
    grid       what an integer of that noise is worth
    tolerance  every solution is within this distance of the exact minimiser
    step       the grid of the release
    blur       noise on the release, which pays for the tolerance

    Theorem.   n the public size, Lambda = n times all the ridge, k rows per person, s the steepest slope, B the length
               of a row and B1 its L1 length, K the curvature; r = k (add-remove) or 2 k (replace-one). The Jacobians
               of neighbours differ by a factor e^J at most, J = k ln(1 + K B^2 / Lambda); of a softmax of c classes,
               J = k (c - 1) ln(1 + B^2 / (c Lambda)). Laplace noise of scale S: (r s B1 + d grid) / S + J pure.
               Spherical noise: (r s B + sqrt(d) grid) / S + J pure.
               Gaussian, D = r s B, t = a - 1, p = 1 / (1 - t grid / S), z = p t D / S: Renyi of order a at most
               J + (D + grid sqrt d)^2 / (2 S^2) + ln M(z) / (p t) + 1.2 d grid / S, M(z) = 2 e^(z^2/2) - e^-z (softmax:
               1 + (c - 1)(e^(z^2/2) - (1 + e^-z)/2)). And the blur's price, for integers that are 2 (tolerance + grid
               sqrt d / (2 Lambda)) / step + sqrt d apart.
    Accuracy.  At most k n rows, w any point of the feasible set, R its reach: E L(release) - L(w) <= (ridge / 2) R^2 +
               (sqrt(Q) + e)^2 / (2 n Lambda) + (beta / 2) Q', Q and Q' the squared lengths of noise and blur, e = (n
               beta + Lambda) (tolerance + step sqrt(d) / 2), beta the smoothness of L.
    Edges.     Smooth losses with bounded slopes, no lasso. The release may lie outside the feasible set, which says
               what it is compared with. A tolerance that floats cannot keep on every table is refused.
    Reference. [CMS11], [KST12], [INSTTW19], [RKW23]; docs/proofs/objective_perturbation.md.
    """

    NAME: ClassVar[str] = "objective-perturbation/1"
    risk: Risk
    ridge: Fraction
    noise: VectorNoise
    grid: Fraction
    tolerance: Fraction
    step: Fraction
    blur: VectorNoise

    def __post_init__(self) -> None:
        exact.convert(self, risk=checked_risk, noise=checked_noise, blur=checked_noise, ridge=exact.nonnegative)
        exact.convert(self, grid=exact.positive, tolerance=exact.positive, step=exact.positive)

    def guarantee(self, facts: Facts) -> Guarantee:
        known = _PublicNumbers(self.risk, self.ridge, facts)
        known.check(self.tolerance, known.norm, known.strength, known.slope, self.grid, self.tolerance, self.step)
        apart = self.apart(known)
        blurred = self.blur.guarantee(apart, unit=self.step, dimension=known.dimension, neighbours=facts.neighbours)
        return known.price(self.noise, self.grid) + blurred

    def apart(self, known: _PublicNumbers) -> Sensitivity:
        """How far apart the integers of the release can be on neighbours with the same exact minimiser."""
        root = exact.root_up(Fraction(known.dimension))
        distance = 2 * self.tolerance + self.grid * root / known.strength
        return lengths(math.floor((distance / self.step + root) ** 2), known.dimension)

    def needs(self, facts: Facts) -> Needs:
        width = self.risk.features.dimension(facts.domain)
        sample = 8 * _FEW * 8 * (width + 1) if self.risk.loss.margins == 1 else 0
        return Needs(functions=True, gathers=8 * (width + 1) if sample else 0, at_most=sample, passes=PASSES)

    def run(self, data: Dataset, rng: Rng) -> Floats:
        known = _PublicNumbers(self.risk, self.ridge, data.facts)
        drawn = self.noise.draw((known.dimension,), unit=self.grid, rng=rng)
        blur = self.blur.draw((known.dimension,), unit=self.step, rng=rng)
        pull = [self.grid * int(each) for each in drawn]
        solution = _Objective(known, data, pull, self.tolerance).solve()
        integers = [round(value / self.step) + int(each) for value, each in zip(solution, blur, strict=True)]
        return np.array([float(each * self.step) for each in integers])


def promise(mechanism: ObjectivePerturbation, facts: Facts) -> Promise:
    """The excess risk that is promised in expectation over both noises."""
    theorem = f"objective perturbation, {type(mechanism.noise).__name__}"
    known = _PublicNumbers(mechanism.risk, mechanism.ridge, facts)
    found = Promise(_excess(mechanism, known), theorem)
    return found.unless(mechanism.risk.centre_excess(facts), "the centre of the set").about(facts)


def _excess(mechanism: ObjectivePerturbation, known: _PublicNumbers) -> float:
    d, n, strength = known.dimension, known.size, float(known.strength)
    far = float(mechanism.tolerance) + float(mechanism.step) * math.sqrt(d) / 2
    error = (n * known.smoothness + strength) * far
    noise, blur = mechanism.noise, mechanism.blur
    noisy = (math.sqrt(noise.squared_length(d, unit=mechanism.grid)) + error) ** 2 / (2 * n * strength)
    biased = float(mechanism.ridge) / 2 * mechanism.risk.feasible.reach(d) ** 2
    return biased + noisy + known.smoothness / 2 * blur.squared_length(d, unit=mechanism.step)


def signal(risk: Risk, facts: Facts, funds: Funds) -> float:
    """How many times the noise the longest sum of gradients is: n slopes of n people over the length of the noise.

    It is what decides which solver learns best, how long coefficients may be and how far slopes are cut; 0 if nothing
    fits, n is not known, or objective perturbation does not take the problem.
    """
    if facts.size is None:
        return 0.0
    try:
        known = _PublicNumbers(risk, Fraction(2**20), facts)
    except ParameterError:
        return 0.0
    scales = [(law, known.rough_scale(law, funds)) for law in LAWS]
    noises = [
        law(scale).squared_length(known.dimension, unit=Fraction(0)) for law, scale in scales if scale is not None
    ]
    people = known.size * facts.neighbours.rows * float(known.slope * known.norm)
    return people / math.sqrt(min(noises)) if noises else 0.0


def propose(risk: Risk, *, facts: Facts, funds: Funds) -> ObjectivePerturbation:
    """The ridge for which the promised excess is least, with the least noise that is admitted."""

    def with_law(law: type[VectorNoise]) -> ObjectivePerturbation:
        return _with_law(_PublicNumbers(risk, Fraction(1), facts), law, funds)

    made = admitted(functools.partial(with_law, law) for law in LAWS)
    return min(made, key=lambda each: _excess(each, _PublicNumbers(risk, each.ridge, facts)))


def _with_law(known: _PublicNumbers, law: type[VectorNoise], funds: Funds) -> ObjectivePerturbation:
    """The best added ridge, of a grid of strengths around the curvature of one row, with about the noise it needs."""
    risk, facts = known.risk, known.facts
    unit = short_up(known.turn / public_size(facts))
    ridges = [unit * strength for strength in ((Fraction(0), *_STRENGTHS) if risk.penalty.ridge else _STRENGTHS)]

    @functools.cache
    def made(place: int) -> tuple[float, ObjectivePerturbation, _PublicNumbers] | None:
        ridged = known.with_ridge(ridges[place])
        if (scale := ridged.rough_scale(law, funds)) is None:
            return None
        mechanism = _with_noise(ridged, law, scale)
        return _excess(mechanism, ridged), mechanism, ridged

    # A stronger ridge leaves more for the noise, so the first that can be had is found by bisection; from there on the
    # excess falls and then rises: noise over the ridge, plus the ridge's bias.
    low, high = 0, len(ridges) - 1
    while low < high:
        middle = (low + high) // 2
        here, after = made(middle), made(middle + 1)
        low, high = (low, middle) if here and after and here[0] <= after[0] else (middle + 1, high)
    found = made(low)
    if found is None:
        raise NothingFits("no amount of noise fits: nothing is left of the budget, or it is too small for this problem")
    _, best, ridged = found
    make = functools.partial(_with_noise, ridged, law)
    return best if funds.admits(best.guarantee(facts)) else calibrate(make, funds=funds, facts=facts)


def _with_noise(known: _PublicNumbers, law: type[VectorNoise], scale: Fraction) -> ObjectivePerturbation:
    """Grids and tolerance so fine that they hardly show, and a blur that costs a small part of the price."""
    risk, ridge, root = known.risk, known.ridge, exact.root_up(Fraction(known.dimension))
    grid = Fraction(2) ** (math.floor(math.log2(known.pull() / root)) - 24)
    tolerance = short_up(max(known.least_tolerance(), known.pull() / known.strength / 2**16))
    step = Fraction(2) ** math.floor(math.log2(tolerance / root))
    sensed = ObjectivePerturbation(risk, ridge, law(scale), grid, tolerance, step, law(1)).apart(known)
    moved = sensed.l1 if law is ProductLaplaceNoise else exact.ceil_sqrt(Fraction(sensed.l2_squared))
    factor = math.isqrt(_BLUR) if law is GaussianNoise else _BLUR  # its price is the square of what is paid
    blur = moved * step * factor * scale / known.pulled(law)
    return ObjectivePerturbation(risk, ridge, law(scale), grid, tolerance, step, law(short_up(blur)))


class _PublicNumbers(PublicNumbers):
    solver: ClassVar[str] = "objective perturbation"

    def __init__(self, risk: Risk, ridge: Fraction, facts: Facts) -> None:
        super().__init__(risk, facts)
        loss, features, domain = risk.loss, risk.features, facts.domain
        if risk.penalty.lasso:
            raise ParameterError("objective perturbation needs a smooth objective: it takes no lasso")
        self.classes = loss.margins
        self._set_ridge(ridge)
        self.slope, self.target = loss.steepest(loss.slope_bound), risk.target_bound(domain)
        if 2 * self.target > 15 * loss.slope_bound:
            raise ParameterError("the loss is a line for nearly all targets: give it a larger threshold")
        self.norm_l1 = features.bound_l1(domain) * self.unit
        self.rows = facts.neighbours.rows * (2 if facts.neighbours.replace_one else 1)
        self.turn = self.curve * self.norm**2  # the curvature of one row

    def _set_ridge(self, ridge: Fraction) -> None:
        self.ridge, self.strength = ridge, self.size * (ridge + self.risk.penalty.ridge)
        self.require_ridge()

    def with_ridge(self, ridge: Fraction) -> _PublicNumbers:
        """The same problem with another added ridge."""
        other = copy.copy(self)
        other._set_ridge(ridge)
        return other

    @property
    def smoothness(self) -> float:
        """How fast the gradient of the mean loss turns, with a ridge of the risk's own."""
        return float(self.facts.neighbours.rows * self.turn + self.risk.penalty.ridge)

    def pull(self) -> Fraction:
        """How far one person moves the gradient of the sum, in the L2 norm."""
        return self.rows * self.slope * self.norm

    def pull_l1(self) -> Fraction:
        """The same in the L1 norm: the slopes of a softmax have L1 length 2 at most."""
        return self.rows * (Fraction(2) if self.classes > 1 else self.slope) * self.norm_l1

    def pulled(self, law: type[VectorNoise]) -> Fraction:
        """The same in the norm by which this noise is priced."""
        return self.pull_l1() if law is ProductLaplaceNoise else self.pull()

    def turned(self) -> Fraction:
        """ln of the factor by which one person can change the Jacobian."""
        share, times = self.turn / self.strength, self.facts.neighbours.rows
        if self.classes > 1:
            share, times = self.norm**2 / self.strength / self.classes, times * (self.classes - 1)
        return times * Fraction(math.log1p(float(share)) * (1 + 2.0**-40) + 2.0**-1000)

    def price(self, noise: VectorNoise, grid: Fraction) -> Guarantee:
        """What is known of neighbours from the exact minimiser."""
        neighbours, d, jacobian = self.facts.neighbours, self.dimension, self.turned()
        moved = math.floor(self.pull_l1() / grid) + d
        squares = exact.ceil_sqrt((self.pull() / grid) ** 2) + exact.ceil_sqrt(Fraction(d))
        sensed = Sensitivity(moved, squares**2, moved, moved)
        shifted = noise.guarantee(sensed, unit=grid, dimension=d, neighbours=neighbours)
        if shifted.pure is not None:
            return Guarantee.of_pure(shifted.pure + jacobian, neighbours=neighbours)
        fine, once = float(grid / noise.scale), float(self.pull() / noise.scale) * (1 + 2.0**-40)
        fixed = float(jacobian) + (once + fine * math.sqrt(d)) ** 2 / 2 + 1.2 * d * fine
        chances = 2 if self.classes == 1 else self.classes - 1

        def curve(order: float) -> float:
            t = order - 1
            if t * fine >= 0.5:
                return math.inf
            p = 1 / (1 - t * fine)
            return fixed + _log_moment(p * t * once, chances) / (p * t)

        return Guarantee.of_curve(curve, neighbours=neighbours)

    def rough_scale(self, law: type[VectorNoise], funds: Funds) -> Fraction | None:
        """About the scale of the noise that is within the funds, with its blur; None if there is none."""
        room, jacobian = 1 - 1.2 / _BLUR, float(self.turned())
        if law is not GaussianNoise:
            left = min(funds.caps.pure, _ENOUGH) / NANO - jacobian
            return None if left <= 1e-9 else Fraction(f"{float(self.pulled(law)) / (left * room):.9g}")
        if not funds.caps.renyi or funds.order is None:
            return None
        t, left = float(funds.order) - 1, min(funds.caps.renyi, _ENOUGH) / NANO - jacobian
        chances = 2 if self.classes == 1 else self.classes - 1

        def fits(once: float) -> bool:
            return once**2 / 2 / room + _log_moment(t * once, chances) / t / room <= left

        if left <= 1e-9 or not fits(1e-9):
            return None
        return Fraction(f"{float(self.pull()) / exact.most(fits, 1e-9, 1e6):.9g}")

    def doubt(self, rows: int) -> Fraction:
        """How far off the gradient of a sum over so many rows may be computed."""
        root = exact.root_up(Fraction(self.classes))
        return rows * self.norm * self.slope * _DOUBT * (1 if self.classes == 1 else 4 * root)

    def least_tolerance(self) -> Fraction:
        return 4 * self.doubt(self.facts.rows_bound) / self.strength

    def slowest(self) -> float:
        return 1 + self.size * self.facts.neighbours.rows * float(self.turn) / float(self.strength)


def _log_moment(z: float, chances: int) -> float:
    """ln of 1 + chances (e^(z^2/2) - (1 + e^-z) / 2), without cancellation or overflow."""
    if z > 30:
        return z * z / 2 + math.log(chances) + 1 / chances
    return math.log1p(chances * (math.expm1(z * z / 2) - math.expm1(-z) / 2))


# --- the solution -----------------------------------------------------------------------------------------------------


class _Objective:
    """The sum of the losses plus ridge plus the linear term of one run, and a point within `tolerance` of its minimum.

    Points that are certified are integers of worth `grain`, a power of two. All that is computed of them is exact but
    the slopes of the loss, whose error is `_PublicNumbers.doubt`. The search before is in floats: nothing rests on it.
    """

    def __init__(self, known: _PublicNumbers, data: Dataset, pull: list[Fraction], tolerance: Fraction) -> None:
        self.known, self.data, self.pull, self.tolerance = known, data, pull, tolerance
        self.halves = data.exact_sum(functools.partial(_halves, known.risk)).tolist()
        self.rows = int(self.halves[0])
        self.steepest = self.rows * known.turn + known.strength
        root = exact.root_up(Fraction(known.dimension))
        self.grain = Fraction(2) ** math.floor(math.log2(tolerance * known.strength / self.steepest / root / 8))
        self.slope_unit = Fraction(2) ** (math.ceil(math.log2(known.slope)) - _SLOPE_BITS)
        self.enough = max(Fraction(0), tolerance * known.strength - known.doubt(self.rows))
        self.start = np.zeros(known.dimension)

    def solve(self) -> list[Fraction]:
        """The point: by Newton's method as far as it goes, from what some rows or all say; else by the descent that
        always arrives."""
        some = [count for count in self.halves if count >= _FEW]
        sampled = self.known.classes == 1 and self.rows > 4 * _FEW and some[-1] <= 8 * _FEW
        for guess in (self._from_few, *(self._from_all,) * _AGAIN) if sampled else (self._from_all,) * _AGAIN:
            units, found = self._approached(*self._guess(guess))
            if found:
                return [each * self.grain for each in units]
            self.start = np.array([float(each * self.grain) for each in units])
        return self._descended(units)

    def _approached(self, point: Floats, inverse: Linear) -> tuple[list[int], bool]:
        """Steps by about the inverse of the curvature, which every step corrects, while gradients become shorter.

        A step after which the gradient is longer is halved: where the curvature jumps, the whole may be too long.
        """
        units = self._in_grains(point)
        secants, best, shortest, step, halved = _Secants(inverse), units, math.inf, point, 0
        for _ in range(_NEWTON):
            gradient = self.gradient(units)
            if self._short(gradient):
                return units, True
            slope = np.array([float(each) for each in gradient])
            length = float(np.linalg.norm(slope))
            if length < shortest:
                best, shortest, halved = units, length, 0
                step = secants.step(slope)
            else:
                step, halved = step / 2, halved + 1
                secants.before = None
            if halved > _HALVED or not bool(np.isfinite(step).all()):
                break
            units = [each - move for each, move in zip(best, self._in_grains(step), strict=True)]
        return best, False

    def _descended(self, units: list[int]) -> list[Fraction]:
        """Gradient descent with the step 1/L: its distance from the minimum is known after any number of steps."""
        gradient = self.gradient(units)
        length = exact.root_up(sum((each**2 for each in gradient), Fraction(0))) + self.known.doubt(self.rows)
        distance = float(length / self.known.strength / self.tolerance)
        rate = self.steepest / self.known.strength
        for _ in range(math.ceil(rate * Fraction(math.log(4 * distance + 4))) + 1):
            if self._short(gradient):
                break
            units = [each - round(g / self.steepest / self.grain) for each, g in zip(units, gradient, strict=True)]
            gradient = self.gradient(units)
        return [each * self.grain for each in units]

    def _short(self, gradient: list[Fraction]) -> bool:
        return sum((each**2 for each in gradient), Fraction(0)) <= self.enough**2

    def _in_grains(self, step: Floats) -> list[int]:
        return [round(Fraction(each) / self.grain) for each in step.tolist()]

    def gradient(self, units: list[int]) -> list[Fraction]:
        """At this point: exact but for the slopes, of which each depends on one row alone."""
        known, worth = self.known, self.slope_unit * self.known.unit
        summed = self.data.exact_sum(self._slopes_at(units))
        bent = known.strength * self.grain
        return [
            worth * int(total) + bent * each + pull
            for total, each, pull in zip(summed.tolist(), units, self.pull, strict=True)
        ]

    def _slopes_at(self, units: list[int]) -> Callable[[Batch], IntArray]:
        limbs = np.concatenate([limb.reshape(-1, self.known.width) for limb in _limbs(units)]).T.copy()
        margins = functools.partial(_margins, limbs, self.known.classes, float(self.grain * self.known.unit))
        return functools.partial(fine_slopes, self.known.risk, margins, float(self.slope_unit))

    # A search in floats, of which nothing is assumed.

    def _guess(self, search: Callable[[], tuple[Floats, Linear]]) -> tuple[Floats, Linear]:
        """What a search finds; the origin where its floats overflow or a decomposition does not converge."""
        try:
            found, inverse = search()
        except np.linalg.LinAlgError:
            found = np.array([np.nan])
        if bool(np.isfinite(found).all()):
            return found, inverse
        return np.zeros(self.known.dimension), lambda vector: vector / float(self.steepest)

    def _from_few(self) -> tuple[Floats, Linear]:
        """One step from the minimum for a sample, and about the inverse of the curvature there.

        A row is in the sample by a hash of the row itself, so that the sample, like every sum, does not depend on how
        the rows are ordered, cut or spread. Where many rows are equal it may be a poor one.
        """
        level = sum(count >= _FEW for count in self.halves) - 1
        rows = np.ascontiguousarray(self.data.exact_gather(functools.partial(_sampled, self.known.risk, level)).T)
        order = rows.view(np.dtype((np.void, rows.strides[0]))).ravel().argsort()  # by the bytes of the rows
        sample = rows[order].T
        point, _ = self._newton(np.zeros(self.known.dimension), sample, self.known.dimension)
        return self._newton(point, None, math.inf)

    def _from_all(self) -> tuple[Floats, Linear]:
        """About the minimum, and about the inverse of the curvature there."""
        start = self.start
        return self._newton(start, None, _GAIN) if self.known.classes == 1 else self._accelerated(start)

    def _newton(self, w: Floats, sample: Ints | None, enough: float) -> tuple[Floats, Linear]:
        """Newton's method with halved steps; a sample, if given, stands for all rows.

        A step that promises to gain no more than `enough` is the last, and nothing is looked at after it.
        """
        value, slope, curve = self._rough(w, sample)
        worth = float(self.known.slope**2 / self.known.curve)  # in what losses and gains are counted
        for _ in range(_NEWTON):
            step, *_ = np.linalg.lstsq(curve, slope, rcond=None)
            if not float(step @ slope) > enough * worth:
                w = w - step
                break
            size = 1.0
            while True:
                ahead = w - size * step
                found = self._rough(ahead, sample)
                if found[0] <= value + 2.0**-8 * worth + 1e-13 * abs(value) or size < 2.0**-12:
                    break
                size /= 2
            w, (value, slope, curve) = ahead, found
        inverse = np.linalg.pinv(curve, hermitian=True)
        return w, lambda vector: np.asarray(inverse @ vector)

    def _rough(self, w: Floats, sample: Ints | None) -> tuple[float, Floats, Floats]:
        """Value, gradient and curvature, to a few digits."""
        known, width, unit = self.known, self.known.width, float(self.known.unit)
        near = _Nearly.of(known.risk, w * unit, float(known.curve), float(known.slope))
        if sample is None:
            sums = self.data.exact_sum(near).astype(np.float64)
        else:
            y = known.risk.loss.target_values(known.facts.domain, known.risk.target, sample[-1])
            sums = near.of_rows(sample[:-1].T.astype(np.float64), y).astype(np.float64)
        times = self.rows / max(1.0, float(sums[-1, 1]))
        strength, pull = float(known.strength), np.array([float(each) for each in self.pull])
        losses = times * float(sums[-1, 0]) * near.worth_of_values
        value = losses + strength / 2 * float(w @ w) + float(pull @ w)
        slope = times * unit * sums[width, :width] * (float(known.slope) * 2.0**-_STEEP) + strength * w + pull
        curve = times * unit**2 * float(known.curve) * 2.0 ** (2 * (_COARSE - _BEND)) * sums[:width, :width]
        return value, slope, curve + strength * np.eye(width)

    def _accelerated(self, start: Floats) -> tuple[Floats, Linear]:
        """For several margins: accelerated descent in the metric of the rows' second moments, which bound the curve."""
        known = self.known
        curve, unit, pull = float(known.curve), float(known.unit), np.array([float(each) for each in self.pull])

        def gradient(w: Floats) -> Floats:
            table, worth = _on_grid(np.ascontiguousarray(w.reshape(-1, known.width).T) * unit)
            sums = self.data.exact_sum(functools.partial(_rough_slopes, known.risk, table, worth)).astype(np.float64)
            sums *= unit * 2.0**-_STEEP
            return np.asarray(sums + float(known.strength) * w + pull)

        bound = self.data.exact_sum(functools.partial(gram, known.risk.features)).astype(np.float64) * (curve * unit**2)
        inverse = np.linalg.pinv(bound + float(known.strength) * np.eye(known.width), hermitian=True)

        def turned(vector: Floats) -> Floats:
            return np.asarray((vector.reshape(-1, known.width) @ inverse).ravel())

        def step(ahead: Floats, slope: Floats) -> tuple[Floats, Floats]:
            return ahead - turned(slope), slope

        def satisfied(_: Floats, slope: Floats) -> bool:
            return float(np.linalg.norm(slope)) <= float(self.enough) / 4 + 2.0**-10 * unit

        found, _ = accelerated(gradient, step, start, satisfied, limit=_FAST)
        return found, turned


class _Secants:
    """About the inverse of a curvature, corrected by what gradients were found (the two loops of limited-memory BFGS).

    inverse  the first: linear, symmetric and positive
    """

    def __init__(self, inverse: Linear) -> None:
        self.inverse, self.pairs = inverse, list[tuple[Floats, Floats]]()
        self.before: tuple[Floats, Floats] | None = None

    def step(self, slope: Floats) -> Floats:
        """What to go back by from a point with this gradient; the next gradient is that of the point it leads to."""
        if self.before is not None:
            moved, turned = -self.before[0], slope - self.before[1]
            if float(moved @ turned) > 0:
                self.pairs.append((moved, turned))
        step, shares = slope, list[float]()
        for moved, turned in reversed(self.pairs):
            shares.append(float(moved @ step) / float(moved @ turned))
            step = step - shares[-1] * turned
        step = self.inverse(step)
        for (moved, turned), share in zip(self.pairs, reversed(shares), strict=True):
            step = step + (share - float(turned @ step) / float(moved @ turned)) * moved
        self.before = step, slope
        return step


_COARSE, _BEND, _STEEP, _VALUE = 4, 8, 20, 10  # bits that rows lose, and of roots of curvatures, slopes and values


@dataclass(frozen=True, slots=True, eq=False)
class _Nearly:
    """Sums of the curvature, of the slopes times the rows, of the values and of the rows, in a few digits each.

    Every product is a whole number and every sum of a block below 2^53, so that they are the same however the rows are
    cut: rows are at most 2^15.5 long, and 2^12 after they lost 4 bits.
    """

    risk: Risk
    w: Floats
    worth: float
    curve: float
    slope: float

    @staticmethod
    def of(risk: Risk, w: Floats, curve: float, slope: float) -> _Nearly:
        return _Nearly(risk, *_on_grid(w), curve, slope)

    def partial(self, batch: Batch) -> Ints:
        risk, width = self.risk, len(self.w)
        total = np.zeros((width + 2, max(2, width)), dtype=np.int64)
        for rows, y in targeted_blocks(risk, batch):
            total += self.of_rows(rows, y)
        return total

    def of_rows(self, rows: Floats, y: Any) -> Ints:
        """The sums of some rows; of a sample, whose sums may be longer, nearly so."""
        loss, width, near = self.risk.loss, len(self.w), 2.0**-16
        margins = (rows @ self.w)[:, None] * self.worth
        slopes = loss.row_slopes(margins, y)
        bends = np.maximum(0.0, (loss.row_slopes(margins + near, y) - slopes) / near)
        bent = np.rint(rows * 2.0**-_COARSE) * np.rint(np.sqrt(np.minimum(1.0, bends / self.curve)) * 2.0**_BEND)
        total = np.zeros((width + 2, max(2, width)), dtype=np.int64)
        total[:width, :width] = _whole(bent.T @ bent)  # a product with itself: BLAS computes half of it
        steep = np.rint(np.clip(slopes[:, 0] / self.slope, -1.0, 1.0) * 2.0**_STEEP)
        total[width, :width] = _whole(steep @ rows)
        values = np.clip(loss.row_values(margins, y) / self.worth_of_values, -(2.0**30), 2.0**30)
        total[-1, :2] = int(np.rint(np.nan_to_num(values)).sum()), len(rows)
        return total

    @property
    def worth_of_values(self) -> float:
        """What an integer of the sum of the losses is worth: a part of the loss where its slope is steepest."""
        return self.slope**2 / self.curve * 2.0**-_VALUE


def _on_grid(w: Floats) -> tuple[Floats, float]:
    """An iterate as whole numbers, and their worth: products with rows are below 2^53, so that they are exact."""
    longest = float(np.sqrt(np.square(w).sum(axis=0).max(initial=0.0)))
    if not 0 < longest < math.inf:
        return np.zeros_like(w), 1.0
    worth = 2.0 ** (math.frexp(longest)[1] - 36)
    return np.rint(w / worth), worth


def _rough_slopes(risk: Risk, table: Floats, worth: float, batch: Batch) -> IntArray:
    """Sums of the slopes of several margins, in a few digits, times the rows."""
    total = np.zeros(table.shape[::-1], dtype=np.int64)
    for rows, y in targeted_blocks(risk, batch):
        steep = np.rint(np.clip(risk.loss.row_slopes((rows @ table) * worth, y), -1.0, 1.0) * 2.0**_STEEP)
        total += _whole(steep.T @ rows)
    return total.astype(object).ravel()


def _halves(risk: Risk, batch: Batch) -> IntArray:
    """How many rows there are, and how many in a half, a quarter, ... of them; halves by a hash of the row."""
    counts = np.zeros(_LEVELS, dtype=np.int64)
    for rows, part in blocks(risk.features, batch, ROWS):
        leading = _leading_zeros(rows, batch.stored(risk.target)[part])
        counts += np.bincount(leading, minlength=_LEVELS)[::-1].cumsum()[::-1]
    return counts


def _sampled(risk: Risk, level: int, batch: Batch) -> Ints:
    """The rows of 1/2^level of all, one column for each; in the last line the code of the target."""
    parts = [np.zeros((risk.features.dimension(batch.domain) + 1, 0), dtype=np.int64)]
    for rows, part in blocks(risk.features, batch, ROWS):
        codes = batch.stored(risk.target)[part]
        here = _leading_zeros(rows, codes) >= level
        parts.append(np.vstack([rows[here].T, codes[here]]).astype(np.int64))
    return np.concatenate(parts, axis=1)


def _leading_zeros(rows: Floats, codes: Any) -> Ints:
    """Of a hash of each row: at least j for about one row in 2^j. At most _LEVELS - 1."""
    powers = np.uint64(0x9E3779B97F4A7C15) ** np.arange(rows.shape[1], -1, -1, dtype=np.uint64)  # modulo 2^64
    words = codes.astype(np.uint64) * powers[0] + np.einsum(
        "ij,j->i", rows.astype(np.int64).view(np.uint64), powers[1:]
    )
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    # frexp rounds a word to 53 bits, which may move it across a power of two: the same for equal rows.
    exponent = np.frexp((words ^ (words >> np.uint64(31))).astype(np.float64))[1]
    return np.asarray(np.clip(64 - exponent, 0, _LEVELS - 1), dtype=np.int64)


def _whole(values: Floats) -> Ints:
    """The nearest integers, of what is no number 0."""
    return np.asarray(np.nan_to_num(np.clip(np.rint(values), -(2.0**62), 2.0**62)), dtype=np.int64)


def _limbs(units: list[int]) -> list[Floats]:
    """Integers as digits of 24 bits, the lowest first; the highest digits have the sign."""
    left, limbs = np.array(units, dtype=object), list[Floats]()
    while not limbs or any(abs(each) >= HALF for each in left):
        limbs.append((left % HALF).astype(np.float64))
        left = left // HALF
    return [*limbs, left.astype(np.float64)]


def _margins(limbs: Floats, classes: int, worth: float, rows: Floats) -> Floats:
    """Margins by integers of this worth, rounded once for two limbs; of several classes, how far below the largest."""
    products = rows @ limbs
    parts = [products[:, start : start + classes] for start in range(0, products.shape[1], classes)]
    if parts[0].shape[1] > 1:
        largest = _joined(parts).argmax(axis=1)[:, None]
        parts = [part - np.take_along_axis(part, largest, axis=1) for part in parts]
    return _joined(parts) * worth


def _joined(parts: list[Floats]) -> Floats:
    total = parts[-1]
    for part in parts[-2::-1]:
        total = total * HALF + part
    return total
