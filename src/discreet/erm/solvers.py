"""Which algorithm solves a risk: every solver with what it promises, side by side, before anything is spent.

    auto                 the smallest promised excess risk (in several dimensions the exponential mechanism only for
                         the squared loss: elsewhere it is slow, ask for it by name)
    descent              noisy gradient descent by its own rule; or one schedule of it by name:
    accelerated, average, last, strongly-convex
    gaussian, laplace, coordinate-laplace      the lecture's descent (the mean of the iterates) with this noise
    exponential          the exponential mechanism on a grid (pure)
    output               the minimiser plus noise

All read public numbers only: the risk, the facts and the funds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from discreet.data import Facts
from discreet.erm import descent, output_perturbation
from discreet.erm.exponential import bounds
from discreet.erm.losses import Squared
from discreet.erm.promise import Promise
from discreet.erm.risk import Ridge, Risk
from discreet.erm.schedules import Average
from discreet.errors import ParameterError
from discreet.funds import Funds
from discreet.mechanisms import CoordinateLaplaceNoise, GaussianNoise, Noise, ProductLaplaceNoise

_NOISES: dict[str, type[Noise]] = {
    "gaussian": GaussianNoise,
    "laplace": ProductLaplaceNoise,
    "coordinate-laplace": CoordinateLaplaceNoise,
}
SOLVERS = ("descent", *descent.SCHEDULES, *_NOISES, "exponential", "output")


@dataclass(frozen=True, slots=True)
class Offer:
    """One solver for a risk: the mechanism that would be released and its promise, or why it does not apply."""

    solver: str
    mechanism: Any = None
    promise: Promise | None = None
    refusal: str = ""


def offer(solver: str, risk: Risk, *, facts: Facts, funds: Funds, steps: int | None = None) -> Offer:
    """What this solver would do here, with the least noise that is admitted."""
    if solver == "exponential":
        drawn = bounds.propose(risk, facts=facts, funds=funds)
        return Offer(solver, drawn, bounds.promise(drawn, facts))
    if solver == "output":
        perturbed = output_perturbation.propose(risk, facts=facts, funds=funds)
        return Offer(solver, perturbed, output_perturbation.promise(perturbed, facts))
    if solver not in SOLVERS:
        raise ParameterError(f"method must be one of auto, {', '.join(SOLVERS)}; found {solver!r}")
    noise = _NOISES.get(solver)
    schedule = Average if noise is not None else descent.SCHEDULES.get(solver)
    found = descent.propose(risk, facts=facts, funds=funds, noise=noise, schedule=schedule, steps=steps)
    return Offer(solver, found, descent.promise(found, facts))


def offers(
    risk: Risk, *, facts: Facts, funds: Funds, solvers: tuple[str, ...] = SOLVERS, steps: int | None = None
) -> tuple[Offer, ...]:
    """Every solver that was asked for, those that do not apply with their refusal."""
    found = []
    for solver in solvers:
        try:
            found.append(offer(solver, risk, facts=facts, funds=funds, steps=steps))
        except ParameterError as refused:
            found.append(Offer(solver, refusal=str(refused)))
    return tuple(found)


def choose(risk: Risk, *, facts: Facts, funds: Funds, method: str = "auto", steps: int | None = None) -> Offer:
    """The offer to take: the named solver's, or the one that promises most; descent if nobody promises anything."""
    if method != "auto":
        return offer(method, risk, facts=facts, funds=funds, steps=steps)
    first = offer("descent", risk, facts=facts, funds=funds, steps=steps)
    # Without ridge, output perturbation with Gaussian noise promises about the root of what descent does, in units of
    # diameter times slope: less, whenever either says anything. With ridge or with pure noise either may win.
    gaussian = isinstance(first.mechanism.noise, GaussianNoise) and not isinstance(risk.regularizer, Ridge)
    # A grid in several dimensions reads the rows thousands of times, unless their squares are all it needs.
    listed = risk.dimension(facts.domain) == 1 or isinstance(risk.loss, Squared)
    others = (*(("exponential",) if listed else ()), *(() if gaussian else ("output",)))
    made = [first, *offers(risk, facts=facts, funds=funds, solvers=others)]
    return min(made, key=lambda each: math.inf if each.promise is None else float(each.promise))
