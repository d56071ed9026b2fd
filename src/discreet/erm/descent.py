"""Noisy projected gradient descent (lecture 10): full batches, integer gradients, four kinds of noise.

A descent releases T noisy gradients; the iterates are functions of them and of public numbers, so the price is that of
one noisy gradient, T times. Which noise:

    CoordinateLaplaceNoise   the lecture's first version: every coordinate priced by the whole norm, strong composition
    ProductLaplaceNoise      priced by the L2 norm (theorem 3); with delta = 0 the pure alternative
    GaussianNoise            the default with delta > 0: half the variance of theorem 3

One public rule chooses T and the rate from (size, dimension, budget, constants): among T = 1, ..., the limit, each with
its best rate, the fewest steps whose promised excess risk is within a quarter of the least. The limit bounds the work:
256 passes for the largest tables, at most 1000. Under add-remove, where the number of rows is private, rates are chosen
for four times the declared rows (`risk.CAUTION`), so that a declared size that is too small does no harm.

How a descent moves and what it returns, and what that is worth, is a schedule: one class for each theorem.

A noisy gradient is g(w) + h: h independent of the past, of mean 0 and E|h|^2 <= V. `shrink` is the projection on the
feasible set C (after soft thresholding when the regularizer is lasso). The letters of `Constants`: G with the
regularizer's slope, beta, mu, R0, D the diameter; T steps, rate eta. Proofs: docs/proofs/descent.md.

    Average         the lecture's: the mean of the iterates
    Last            the last iterate
    Accelerated     three sequences (Nesterov, Lan); its error falls like 1/T^2 down to the same noise floor
    StronglyConvex  falling steps and rising weights, for ridge

The best rate for T steps and the excess risk it gives are functions of public numbers; that is the whole of tuning.
Rates of smooth losses are the best for `Constants.cautious`, which under add-remove is a multiple of beta: a descent
whose steps are too long for its rows swings across the set, and the number of rows is private there.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from discreet.core import Exact, Funds, Guarantee, ParameterError, Rng, exact
from discreet.data import Dataset, Facts, Floats, Needs
from discreet.erm.gradient import Pass, pass_over
from discreet.erm.risk import Constants, Risk, checked_risk, public_size
from discreet.mechanisms import GaussianNoise, Noise, ProductLaplaceNoise, Promise, calibrate

_WORK = 2**28  # entries of the features that all passes together may read, beyond the first 256 passes
_MOST_DRAWS = 2**26  # noises, which are drawn before the first pass
_FEWEST, _MOST = 256, 1000

NoisyGradient = Callable[[Floats, int], Floats]  # (point, which step): every step has its own noise
Shrink = Callable[[Floats, float], Floats]  # (point, rate)


@runtime_checkable
class Schedule(Protocol):
    """How a descent moves, what it returns, and the excess risk that its theorem states.

    expected  the bound that holds in expectation; infinite where nothing is promised
    likely    the bound that holds with probability 1 - beta under Gaussian noise of this deviation on each coordinate
    """

    __slots__ = ()
    NAME: ClassVar[str]

    def __init__(self, rate: Exact) -> None: ...
    def descend(
        self, gradient: NoisyGradient, shrink: Shrink, start: Floats, steps: int, *, smooth: bool
    ) -> Floats: ...
    def expected(self, known: Constants, steps: int, variance: float) -> float: ...
    @staticmethod
    def best_rate(known: Constants, steps: int, variance: float) -> float: ...

    def likely(self, known: Constants, steps: int, deviation: float, beta: float) -> float:
        return math.inf


@dataclass(frozen=True, slots=True, init=False)
class ConstantRate(Schedule, Protocol):
    """A schedule with one rate for all steps."""

    rate: Fraction

    def __init__(self, rate: Exact) -> None:
        exact.freeze(self, rate=exact.moderate(rate=rate))


@dataclass(frozen=True, slots=True, init=False)
class Average(ConstantRate):
    """w_t = shrink(w_{t-1} - eta (g + h)); the mean of w_1, ..., w_T, or of w_0, ..., w_{T-1} if the loss has corners.

    Theorem.   Corners: E excess <= (eta/2)(G^2 + V) + R0^2 / (2 eta T), least at eta = R0 / sqrt(T (G^2 + V)), where it
               is R0 sqrt((G^2 + V) / T). Smooth, eta < 1/beta: E excess <= R0^2 / (2 eta T) + V eta / (2 (1 - eta
               beta)).
    Reference. Lecture 10, theorems 1 and 2; the smooth form: docs/proofs/descent.md.
    """

    NAME: ClassVar[str] = "average-descent/1"

    def descend(self, gradient: NoisyGradient, shrink: Shrink, start: Floats, steps: int, *, smooth: bool) -> Floats:
        rate, w, total = float(self.rate), start, np.zeros_like(start)
        for step in range(steps):
            before = w
            w = shrink(w - rate * gradient(w, step), rate)
            total += w if smooth else before
        return total / steps

    def expected(self, known: Constants, steps: int, variance: float) -> float:
        rate = float(self.rate)
        if known.smoothness is None:
            return rate / 2 * (known.slope**2 + variance) + known.span**2 / (2 * rate * steps)
        return known.span**2 / (2 * rate * steps) + _noise_term(rate, known.smoothness, variance)

    @staticmethod
    def best_rate(known: Constants, steps: int, variance: float) -> float:
        if known.cautious is None:
            return known.span / math.sqrt(steps * (known.slope**2 + variance))
        return _balanced(known.span**2 / (2 * steps), variance / 2, known.cautious)

    def likely(self, known: Constants, steps: int, deviation: float, beta: float) -> float:
        rate, half = float(self.rate), math.log(2 / beta)
        lengths = _chi_square([1.0] * steps, known.dimension, half) * deviation**2 / steps
        drift = deviation * math.sqrt(2 * half / steps)
        if known.smoothness is None:
            drift *= known.diameter + rate * known.slope
            return rate / 2 * (known.slope**2 + lengths) + known.span**2 / (2 * rate * steps) + drift
        drift *= known.diameter
        return known.span**2 / (2 * rate * steps) + _noise_term(rate, known.smoothness, lengths) + drift


@dataclass(frozen=True, slots=True, init=False)
class Last(ConstantRate):
    """w_t = shrink(w_{t-1} - eta (g + h)); the last one, w_T. For smooth losses.

    Theorem.   eta < 1/beta: E excess <= R0^2 / (2 eta T) + V eta / (2 (1 - eta beta)) * (1 + H), H = 1 + 1/2 + ... +
               1/(T-1).
    Edges.     Nothing is promised for losses with corners: w_T moves by eta G for ever.
    Reference. The means over the last k iterates, k = T, ..., 1, as in [SZ13]: docs/proofs/descent.md.
    """

    NAME: ClassVar[str] = "last-descent/1"

    def descend(self, gradient: NoisyGradient, shrink: Shrink, start: Floats, steps: int, *, smooth: bool) -> Floats:
        rate, w = float(self.rate), start
        for step in range(steps):
            w = shrink(w - rate * gradient(w, step), rate)
        return w

    def expected(self, known: Constants, steps: int, variance: float) -> float:
        if known.smoothness is None:
            return math.inf
        rate = float(self.rate)
        tail = _noise_term(rate, known.smoothness, variance) * (1 + _harmonic(steps - 1))
        return known.span**2 / (2 * rate * steps) + tail

    @staticmethod
    def best_rate(known: Constants, steps: int, variance: float) -> float:
        if known.cautious is None:
            return Average.best_rate(known, steps, variance)
        return _balanced(known.span**2 / (2 * steps), variance / 2 * (1 + _harmonic(steps - 1)), known.cautious)


@dataclass(frozen=True, slots=True, init=False)
class Accelerated(ConstantRate):
    """Gradients at x_t between y_{t-1} and z_{t-1}; z_t = shrink(z_{t-1} - eta t (g(x_t) + h)); y_t nearer to z_t. For
    smooth losses.

        x_t = (1 - a) y_{t-1} + a z_{t-1},  y_t = (1 - a) y_{t-1} + a z_t,  a = 2 / (t + 1);  the result is y_T.

    Theorem.   eta < 1/(2 beta): E excess <= R0^2 / (eta T (T+1)) + V eta (2T+1) / (6 (1 - 2 eta beta)), which is least
               at 2 beta R0^2 / (T (T+1)) + 2 R0 sqrt(V (2T+1) / (6 T (T+1))). V grows like T for a fixed budget, so
               the second part stays and the first falls like 1/T^2: few passes reach the floor.
    Reference. [Lan12] with the projection step; the proof with these constants: docs/proofs/descent.md.
    """

    NAME: ClassVar[str] = "accelerated-descent/1"

    def descend(self, gradient: NoisyGradient, shrink: Shrink, start: Floats, steps: int, *, smooth: bool) -> Floats:
        rate, y, z = float(self.rate), start, start
        for step in range(1, steps + 1):
            share = 2 / (step + 1)
            x = (1 - share) * y + share * z
            z = shrink(z - rate * step * gradient(x, step - 1), rate * step)
            y = (1 - share) * y + share * z
        return y

    def expected(self, known: Constants, steps: int, variance: float) -> float:
        rate = float(self.rate)
        if known.smoothness is None or 2 * rate * known.smoothness >= 1:
            return math.inf
        tail = variance * rate * (2 * steps + 1) / (6 * (1 - 2 * rate * known.smoothness))
        return known.span**2 / (rate * steps * (steps + 1)) + tail

    @staticmethod
    def best_rate(known: Constants, steps: int, variance: float) -> float:
        if known.cautious is None:
            return Average.best_rate(known, steps, variance)
        return _balanced(known.span**2 / (steps * (steps + 1)), variance * (2 * steps + 1) / 6, 2 * known.cautious)

    def likely(self, known: Constants, steps: int, deviation: float, beta: float) -> float:
        rate, half = float(self.rate), math.log(2 / beta)
        if known.smoothness is None or 2 * rate * known.smoothness >= 1:
            return math.inf
        whole = steps * (steps + 1)
        lengths = _chi_square([float(t * t) for t in range(1, steps + 1)], known.dimension, half) * deviation**2
        tail = lengths * rate / (1 - 2 * rate * known.smoothness) / whole
        drift = 2 / whole * deviation * known.diameter * math.sqrt(2 * half * whole * (2 * steps + 1) / 6)
        return known.span**2 / (rate * whole) + tail + drift


@dataclass(frozen=True, slots=True)
class StronglyConvex(Schedule):
    """w_{t+1} = shrink(w_t - eta_t (g + h)), eta_t = 2 / (mu (t+1)); the mean of w_1, ..., w_T with weights t.

    Theorem.   With ridge of strength mu: E excess <= 2 (G^2 + V) / (mu (T+1)), G with the regularizer's slope.
    Edges.     Without ridge there is no mu: nothing is promised, and the rate is that of mu = G / R0.
    Reference. [LSB12]; lecture 10 has the same proof with a constant step.
    """

    NAME: ClassVar[str] = "strongly-convex-descent/1"
    modulus: Fraction

    def __post_init__(self) -> None:
        exact.freeze(self, modulus=exact.moderate(modulus=self.modulus))

    def descend(self, gradient: NoisyGradient, shrink: Shrink, start: Floats, steps: int, *, smooth: bool) -> Floats:
        w, total = start, np.zeros_like(start)
        for step in range(1, steps + 1):
            total += step * w
            rate = 2 / (float(self.modulus) * (step + 1))
            w = shrink(w - rate * gradient(w, step - 1), rate)
        return total * 2 / (steps * (steps + 1))

    def expected(self, known: Constants, steps: int, variance: float) -> float:
        if known.convexity < float(self.modulus):
            return math.inf
        return 2 * (known.slope**2 + variance) / (float(self.modulus) * (steps + 1))

    @staticmethod
    def best_rate(known: Constants, steps: int, variance: float) -> float:
        """The modulus, which fixes the rates."""
        return known.convexity or known.lipschitz / known.span


def _noise_term(rate: float, smoothness: float, variance: float) -> float:
    return math.inf if rate * smoothness >= 1 else variance * rate / (2 * (1 - rate * smoothness))


def _balanced(start: float, noise: float, smoothness: float) -> float:
    """The eta that minimises start / eta + noise eta / (1 - eta smoothness).

    The least value is start * smoothness + 2 sqrt(start noise). It stays a hair below 1/smoothness even when there is
    hardly any noise and it is rounded to six digits.
    """
    return 1 / (smoothness * (1 + 2.0**-16) + math.sqrt(noise / start))


def _harmonic(terms: int) -> float:
    return math.fsum(1 / k for k in range(1, terms + 1))


def _chi_square(weights: list[float], dimension: int, x: float) -> float:
    """What sum_t weights_t |h_t|^2 exceeds with probability at most exp(-x), h_t sub-Gaussian of variance 1 [HKZ12]."""
    trace = dimension * math.fsum(weights)
    squares = dimension * math.fsum(weight * weight for weight in weights)
    return trace + 2 * math.sqrt(squares * x) + 2 * max(weights) * x


SCHEDULES: dict[str, type[Schedule]] = {
    "accelerated": Accelerated,
    "average": Average,
    "last": Last,
    "strongly-convex": StronglyConvex,
}


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
        exact.convert(self, risk=checked_risk, steps=exact.whole)
        if not hasattr(self.noise, "draw"):
            raise ParameterError(f"noise must be a GaussianNoise or another noise, found {self.noise!r}")
        if not isinstance(self.schedule, Schedule):
            raise ParameterError(f"schedule must be Accelerated(rate) or another schedule, found {self.schedule!r}")

    def guarantee(self, facts: Facts) -> Guarantee:
        over = self._over(facts)
        if self.steps * over.dimension > _MOST_DRAWS:
            raise ParameterError(
                f"{self.steps} steps in {over.dimension} dimensions draw too many numbers at once; at most "
                f"{_MOST_DRAWS // over.dimension} steps"
            )
        moved, kind = over.sensitivity(facts), facts.neighbours
        return self.steps * self.noise.guarantee(moved, unit=over.unit, dimension=over.dimension, neighbours=kind)

    def needs(self, facts: Facts) -> Needs:
        return Needs(functions=True, passes=1 if self.risk.loss.moments else self.steps)

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


_WORDS = {Average: "averaged", Last: "last-iterate", Accelerated: "accelerated", StronglyConvex: "strongly convex"}


def promise(mechanism: Descent, facts: Facts, beta: float | None = None) -> Promise:
    """The excess risk that the schedule's theorem promises, in expectation or with probability 1 - beta."""
    known, risk = mechanism.risk.constants(facts), mechanism.risk
    noise = re.sub("(?<=[a-z])(?=[A-Z])", " ", type(mechanism.noise).__name__).replace("Noise", "noise")
    theorem = f"{_WORDS[type(mechanism.schedule)]} descent of {mechanism.steps} steps, {noise}"
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
    if not math.isfinite(excess):
        return Promise(None, theorem, "no theorem covers this loss with this schedule and noise", beta)
    found = Promise(excess, theorem, beta=beta)
    return found.unless(risk.centre_excess(facts), "the start of the descent").about(facts)


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
    for steps, kind in itertools.product(counts, kinds):
        variance = spread * float(steps) ** grows
        promised[kind, steps] = made_schedule(kind, known, steps, variance).expected(known, steps, variance)
    least = min(promised.values())
    if not math.isfinite(least):  # no theorem here: as many steps as the mean of the iterates would take
        return kinds[0], _fewest((Average,), counts, known, spread, grows)[1]
    return next(key for key, excess in promised.items() if excess <= 1.25 * least)


def made_schedule(kind: type[Schedule], known: Constants, steps: int, variance: float) -> Schedule:
    """The schedule with its best rate for this many steps, to six digits."""
    return kind(Fraction(f"{kind.best_rate(known, steps, variance):.6g}"))
