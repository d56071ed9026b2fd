"""Noisy projected gradient descent (lecture 10): full batches, integer gradients, four kinds of noise.

A descent releases T noisy gradients; the iterates are functions of them and of public numbers, so the price is that of
one noisy gradient, T times. Which noise:

    CoordinateLaplaceNoise   the lecture's first version: every coordinate priced by the whole norm, strong composition
    ProductLaplaceNoise      priced by the L2 norm (theorem 3); with delta = 0 the pure alternative
    GaussianNoise            the default with delta > 0: half the variance of theorem 3

One public rule chooses T and the rate from (size, dimension, budget, constants): among T = 1, ..., the limit, each with
its best rate, the fewest steps whose promised excess risk is within a quarter of the least. The limit bounds the work:
64 passes for the largest tables, at most 1000. Under add-remove, where the number of rows is private, rates are chosen
for four times the declared rows (`risk.CAUTION`), so that a declared size that is too small does no harm.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet.core import Funds, Guarantee, ParameterError, Rng, exact
from discreet.data import Dataset, Facts, Floats
from discreet.erm.gradient import Pass, pass_over
from discreet.erm.risk import Constants, Risk, public_size
from discreet.erm.schedules import Accelerated, Average, Last, Schedule, StronglyConvex
from discreet.mechanisms import GaussianNoise, Noise, ProductLaplaceNoise, calibrate
from discreet.method import Promise

_WORK = 2**28  # entries of the features that all passes together may read, beyond the first 64 passes
_MOST_DRAWS = 2**26  # noises, which are drawn before the first pass
_FEWEST, _MOST = 64, 1000


@dataclass(frozen=True, slots=True)
class Descent:
    """Release the result of `steps` noisy gradient steps on a risk.

    Theorem.   If the noise on one sum of integer gradients has guarantee g (`Pass` has their sensitivity, whatever the
               iterate), the release has guarantee steps * g: adaptive composition, then post-processing.
    Accuracy.  `promise`: the theorem of the schedule at V = dimension * variance / n^2, plus what rounding can add, for
               tables of at most k n rows, k rows per person.
    Edges.     A risk with corners is promised something with Average or StronglyConvex only.
    Reference. Lecture 10; docs/proofs/descent.md.
    """

    NAME: ClassVar[str] = "descent/1"
    risk: Risk
    noise: Noise
    steps: int
    schedule: Schedule

    def __post_init__(self) -> None:
        if not isinstance(self.risk, Risk):
            raise ParameterError(f"risk must be a Risk, found {self.risk!r}")
        if not hasattr(self.noise, "draw"):
            raise ParameterError(f"noise must be a GaussianNoise or another noise, found {self.noise!r}")
        if not isinstance(self.schedule, Schedule):
            raise ParameterError(f"schedule must be Accelerated(rate) or another schedule, found {self.schedule!r}")
        exact.freeze(self, steps=exact.whole(steps=self.steps))

    def guarantee(self, facts: Facts) -> Guarantee:
        over = self._over(facts)
        if self.steps * over.dimension > _MOST_DRAWS:
            raise ParameterError(
                f"{self.steps} steps in {over.dimension} dimensions draw too many numbers at once; at most "
                f"{_MOST_DRAWS // over.dimension} steps"
            )
        step = self.noise.guarantee(
            over.sensitivity(facts), unit=over.unit, dimension=over.dimension, neighbours=facts.neighbours
        )
        return self.steps * step

    def run(self, data: Dataset, rng: Rng) -> Floats:
        over, risk = self._over(data.facts), self.risk
        noise = self.noise.draw((self.steps, over.dimension), unit=over.unit, rng=rng)
        exactly, unit = over.oracle(data), float(over.unit) / public_size(data.facts)

        def gradient(w: Floats, step: int) -> Floats:
            noisy: Floats = (exactly(w) + noise[step]) * unit
            return noisy + risk.smooth_gradient(w)

        def shrink(w: Floats, rate: float) -> Floats:
            return risk.feasible.shrink(w, rate * risk.shrinkage())

        start, smooth = risk.feasible.centre(over.dimension), risk.loss.curvature() is not None
        return self.schedule.descend(gradient, shrink, start, self.steps, smooth=smooth)

    def _over(self, facts: Facts) -> Pass:
        return pass_over(self.risk, facts.domain, public_size(facts))


def promise(mechanism: Descent, facts: Facts, beta: float | None = None) -> Promise:
    """The excess risk that the schedule's theorem promises, in expectation or with probability 1 - beta."""
    known, risk = mechanism.risk.constants(facts), mechanism.risk
    theorem = f"{type(mechanism.schedule).__name__} of {mechanism.steps} steps, {type(mechanism.noise).__name__}"
    if not risk.loss.convex:
        return Promise(None, theorem, "the owner of this gradient does not state that it is convex")
    one, excess = mechanism.noise.variance() / public_size(facts) ** 2, math.inf
    if beta is None:
        excess = mechanism.schedule.expected(known, mechanism.steps, known.dimension * one)
    elif isinstance(mechanism.noise, GaussianNoise):
        excess = mechanism.schedule.likely(known, mechanism.steps, math.sqrt(one), beta)
    if known.smoothness is None and risk.shrinkage():
        # Lasso with corners: the regularizer at the start counts once among the steps.
        start = risk.feasible.centre(known.dimension)
        excess += risk.shrinkage() * float(np.abs(start).sum()) / mechanism.steps
    excess += pass_over(risk, facts.domain, public_size(facts)).excess_error(known)
    trivial = risk.centre_excess(facts)
    if not math.isfinite(excess):
        return Promise(None, theorem, "no theorem covers this loss with this schedule and noise", beta)
    if excess >= trivial:
        return Promise(
            None, theorem, f"the theorem's {excess:.3g} is no better than the start of the descent, {trivial:.3g}", beta
        )
    return Promise(excess, theorem, beta=beta).about(facts)


def propose(
    risk: Risk,
    *,
    facts: Facts,
    funds: Funds,
    noise: type[Noise] | None = None,
    schedule: type[Schedule] | None = None,
    steps: int | None = None,
) -> Descent:
    """The descent with the least noise that is admitted, its steps and rate by the public rule.

    noise     None: GaussianNoise if any amount of it is admitted, else ProductLaplaceNoise (pure)
    schedule  None: the one whose theorem promises most, by the rule above
    """
    known, size = risk.constants(facts), public_size(facts)
    smooth = (Accelerated, Average) if known.smoothness is not None else (Average,)
    kinds: tuple[type[Schedule], ...] = (*smooth, StronglyConvex) if known.convexity > 0 else smooth
    kinds = kinds if schedule is None else (schedule,)

    def make(kind: type[Schedule], law: type[Noise], count: int, scale: Fraction) -> Descent:
        drawn = law(scale)
        rated = made_schedule(kind, known, count, known.dimension * drawn.variance() / size**2)
        return Descent(risk, drawn, count, rated)

    def one_step(law: type[Noise]) -> float:
        """The scale that one step of this noise needs."""
        first = functools.partial(make, kinds[0], law, 1)
        return float(calibrate(first, funds=funds, facts=facts, precision=12).noise.scale)

    # If a Gaussian is admitted at all, there is a Renyi book and variances grow like the steps; else like their square.
    grows, law = 1, noise or GaussianNoise
    try:
        one = one_step(GaussianNoise)
    except ParameterError:
        if noise is GaussianNoise:
            raise
        grows, law = 2, noise or ProductLaplaceNoise
    if law is not GaussianNoise:
        one = one_step(law)
    spread = known.dimension * law(Fraction(1)).variance() * one**2 / size**2
    counts = _step_counts(risk, facts) if steps is None else [exact.whole(steps=steps)]
    kind, count = _fewest(kinds, counts, known, spread, grows)
    best = functools.partial(make, kind, law, count)
    guess = best(Fraction(one * count ** (grows / 2)) * Fraction(1_000_001, 1_000_000))
    return guess if funds.admits(guess.guarantee(facts)) else calibrate(best, funds=funds, facts=facts)


def _step_counts(risk: Risk, facts: Facts) -> list[int]:
    """Numbers of steps up to what is affordable, each a few per cent more than the one before.

    The squared loss needs one pass whatever the steps.
    """
    entries = max(1, public_size(facts) * facts.neighbours.rows * risk.dimension(facts.domain))
    limit = _MOST if risk.loss.moments else min(_MOST, max(_FEWEST, _WORK // entries))
    return sorted({round(math.exp(math.log(limit) * k / 60)) for k in range(61)})


def _fewest(
    kinds: tuple[type[Schedule], ...], counts: list[int], known: Constants, spread: float, grows: int
) -> tuple[type[Schedule], int]:
    """The fewest steps, and the schedule, whose promised excess is within a quarter of the least."""
    promised = {}
    for steps in counts:
        variance = spread * float(steps) ** grows
        for kind in kinds:
            promised[kind, steps] = made_schedule(kind, known, steps, variance).expected(known, steps, variance)
    least = min(promised.values())
    if not math.isfinite(least):  # no theorem here: as many steps as the mean of the iterates would take
        return kinds[0], _fewest((Average,), counts, known, spread, grows)[1]
    return next(key for key, excess in promised.items() if excess <= 1.25 * least)


def made_schedule(kind: type[Schedule], known: Constants, steps: int, variance: float) -> Schedule:
    """The schedule with its best rate for this many steps, to six digits."""
    return kind(Fraction(f"{kind.best_rate(known, steps, variance):.6g}"))


SCHEDULES: dict[str, type[Schedule]] = {
    "accelerated": Accelerated,
    "average": Average,
    "last": Last,
    "strongly-convex": StronglyConvex,
}
