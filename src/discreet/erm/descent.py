"""Noisy projected gradient descent (lecture 10): full batches, integer gradients, four kinds of noise.

A descent releases T noisy gradients; the iterates are functions of them and of public numbers, so the price is that of
one noisy gradient, T times. Which noise:

    CoordinateLaplaceNoise   the lecture's first version: every coordinate priced by the whole norm, strong composition
    ProductLaplaceNoise      priced by the L2 norm (theorem 3); with delta = 0 the pure alternative
    GaussianNoise            the default with delta > 0: half the variance of theorem 3

One public rule chooses T and the rate from (size, dimension, budget, constants): among T = 1, ..., the limit, each with
its best rate, the fewest steps whose promised excess risk is within a quarter of the least. The limit bounds the work:
64 passes for the largest tables, at most 1000.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet import exact
from discreet.data import Dataset, Facts
from discreet.data.grid import Floats
from discreet.erm.gradient import Pass
from discreet.erm.losses import Custom
from discreet.erm.promise import Promise
from discreet.erm.risk import Constants, Risk, needs_moments, public_size
from discreet.erm.schedules import Accelerated, Average, Last, Schedule, StronglyConvex
from discreet.erm.sets import shrink
from discreet.errors import ParameterError
from discreet.guarantee import Guarantee
from discreet.mechanism import calibrate
from discreet.mechanisms.noises import GaussianNoise, Noise, ProductLaplaceNoise
from discreet.noise import Rng

_WORK = 2**29  # entries of the features that all passes together may read, beyond the first 64 passes
_FEWEST, _MOST = 64, 1000


@dataclass(frozen=True, slots=True)
class Descent:
    """Release the result of `steps` noisy gradient steps on a risk.

    Theorem.   If the noise on one sum of integer gradients has guarantee g (`Pass` has their sensitivity, whatever the
               iterate), the release has guarantee steps * g: adaptive composition, then post-processing.
    Accuracy.  `promise`: the theorem of the schedule at V = dimension * variance / n^2, plus what rounding can add.
    Edges.     A risk with corners is promised something with Average or StronglyConvex only.
    Reference. Lecture 10; docs/proofs/descent.md.
    """

    NAME: ClassVar[str] = "descent/1"
    risk: Risk
    noise: Noise
    steps: int
    schedule: Schedule

    def __post_init__(self) -> None:
        exact.freeze(self, steps=exact.whole(steps=self.steps))

    def guarantee(self, facts: Facts) -> Guarantee:
        public_size(facts)
        over = Pass(self.risk, facts.domain)
        step = self.noise.guarantee(
            over.sensitivity(facts), unit=over.unit, dimension=over.dimension, neighbours=facts.neighbours
        )
        return self.steps * step

    def run(self, data: Dataset, rng: Rng) -> Floats:
        over = Pass(self.risk, data.facts.domain, public_size(data.facts))
        noise = self.noise.draw((self.steps, over.dimension), unit=over.unit, rng=rng)
        exactly, unit = over.oracle(data), float(over.unit) / public_size(data.facts)

        def gradient(w: Floats, step: int) -> Floats:
            noisy: Floats = (exactly(w) + noise[step]) * unit
            return noisy + self.risk.smooth_gradient(w)

        def shrunk(w: Floats, rate: float) -> Floats:
            return shrink(self.risk.feasible, w, rate * self.risk.shrinkage())

        start = self.risk.feasible.centre(over.dimension)
        return self.schedule.descend(gradient, shrunk, start, self.steps, smooth=_smooth(self.risk))


def promise(mechanism: Descent, facts: Facts, beta: float | None = None) -> Promise:
    """The excess risk that the schedule's theorem promises, in expectation or with probability 1 - beta."""
    known, risk = mechanism.risk.constants(facts), mechanism.risk
    theorem = f"{type(mechanism.schedule).__name__} of {mechanism.steps} steps, {type(mechanism.noise).__name__}"
    if isinstance(risk.loss, Custom) and not risk.loss.convex:
        return Promise(None, theorem, "the owner of this gradient does not state that it is convex")
    one = mechanism.noise.variance() / public_size(facts) ** 2
    if beta is None:
        found = mechanism.schedule.expected(known, mechanism.steps, known.dimension * one)
    elif isinstance(mechanism.noise, GaussianNoise):
        found = mechanism.schedule.likely(known, mechanism.steps, math.sqrt(one), beta)
    else:
        found = math.inf
    found += _start_term(mechanism, known) + Pass(risk, facts.domain, public_size(facts)).excess_error(known)
    trivial = risk.centre_excess(facts)
    if not math.isfinite(found):
        return Promise(None, theorem, "no theorem covers this loss with this schedule and noise", beta)
    if found >= trivial:
        return Promise(
            None, theorem, f"the theorem's {found:.3g} is no better than the start of the descent, {trivial:.3g}", beta
        )
    return Promise(found, theorem, beta=beta)


def propose(
    risk: Risk,
    *,
    facts: Facts,
    admits: Callable[[Any], bool],
    noise: type[Noise] | None = None,
    schedule: type[Schedule] | None = None,
    steps: int | None = None,
) -> Descent:
    """The descent with the least noise that is admitted, its steps and rate by the public rule.

    noise     None: GaussianNoise if any amount of it is admitted, else ProductLaplaceNoise (pure)
    schedule  None: Accelerated for smooth losses, Average for losses with corners
    """
    known = risk.constants(facts)
    kind = schedule or (Accelerated if known.smoothness is not None else Average)
    made: Callable[[type[Noise], int, Fraction], Descent] = functools.partial(
        _descent, risk, known, public_size(facts), kind
    )
    drawn, one = _first_scale(made, admits, noise)
    grows = 1 if drawn is not ProductLaplaceNoise or not _pure_only(made, admits) else 2
    if steps is None:
        steps = best_steps(kind, known, _limit(risk, facts), one**2 * _shape(drawn), public_size(facts), grows)
    guess = made(drawn, steps, Fraction(one * steps ** (grows / 2)) * Fraction(1_000_001, 1_000_000))
    return guess if admits(guess) else calibrate(functools.partial(made, drawn, steps), admits=admits)


def best_steps(kind: type[Schedule], known: Constants, limit: int, variance: float, size: int, grows: int) -> int:
    """The fewest steps whose promised excess is within a quarter of the least; noise grows like steps^grows."""
    tried: list[int] = sorted({round(math.exp(math.log(limit) * k / 60)) for k in range(61)})
    spread = known.dimension * variance / size**2

    def excess(steps: int) -> float:
        total = spread * float(steps) ** grows
        return made_schedule(kind, known, steps, total).expected(known, steps, total)

    found = {steps: excess(steps) for steps in tried}
    least = min(found.values())
    return next(steps for steps in tried if found[steps] <= 1.25 * least)


def made_schedule(kind: type[Schedule], known: Constants, steps: int, variance: float) -> Schedule:
    """The schedule with its best rate for this many steps, to six digits."""
    rate = Fraction(f"{kind.best_rate(known, steps, variance):.6g}")
    return kind(rate)


def _descent(
    risk: Risk, known: Constants, size: int, kind: type[Schedule], noise: type[Noise], steps: int, scale: Fraction
) -> Descent:
    drawn = noise(scale)
    variance = known.dimension * drawn.variance() / size**2
    return Descent(risk, drawn, steps, made_schedule(kind, known, steps, variance))


def _first_scale(
    made: Callable[[type[Noise], int, Fraction], Descent], admits: Callable[[Any], bool], noise: type[Noise] | None
) -> tuple[type[Noise], float]:
    """The noise to use, and the scale that one step of it needs."""
    kinds = (GaussianNoise, ProductLaplaceNoise) if noise is None else (noise,)
    for kind in kinds:
        try:
            found = calibrate(functools.partial(made, kind, 1), admits=admits)
            return kind, float(found.noise.scale)
        except ParameterError:
            if kind is kinds[-1]:
                raise
    raise AssertionError("there is at least one kind of noise")


def _pure_only(made: Callable[[type[Noise], int, Fraction], Descent], admits: Callable[[Any], bool]) -> bool:
    """Whether no Gaussian is admitted at all: noise then grows with the number of steps, not with its root."""
    try:
        calibrate(functools.partial(made, GaussianNoise, 1), admits=admits)
    except ParameterError:
        return True
    return False


def _shape(noise: type[Noise]) -> int:
    """The variance of one coordinate over its squared scale."""
    return 1 if noise is GaussianNoise else 2


def _limit(risk: Risk, facts: Facts) -> int:
    """How many passes are affordable; the squared loss needs one pass whatever the steps."""
    if needs_moments(risk):
        return _MOST
    entries = max(1, public_size(facts) * facts.neighbours.rows * risk.dimension(facts.domain))
    return min(_MOST, max(_FEWEST, _WORK // entries))


def _smooth(risk: Risk) -> bool:
    return risk.loss.curvature() is not None


def _start_term(mechanism: Descent, known: Constants) -> float:
    """Lasso with corners: the regularizer at the start counts once among the steps."""
    if known.smoothness is not None or not mechanism.risk.shrinkage():
        return 0.0
    start = mechanism.risk.feasible.centre(known.dimension)
    return mechanism.risk.shrinkage() * float(np.abs(start).sum()) / mechanism.steps


SCHEDULES: dict[str, type[Schedule]] = {
    "accelerated": Accelerated,
    "average": Average,
    "last": Last,
    "strongly-convex": StronglyConvex,
}
