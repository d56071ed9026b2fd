"""Which algorithm solves a risk: every solver with what it promises, side by side, before anything is spent.

    auto                 the one that learns best by public numbers (`preferred`); where that is none of the last two,
                         the smallest promised excess risk of descent, output and, for one number or the squared loss,
                         exponential
    descent              noisy gradient descent by its own rule; or one schedule of it by name:
    accelerated, average, last, strongly-convex
    gaussian, laplace, coordinate-laplace      the lecture's descent (the mean of the iterates) with this noise
    exponential          the exponential mechanism on a grid (pure)
    moments              the ridge regression of noisy sums of products
    objective            the minimiser of the objective plus a random linear term
    output               the minimiser plus noise

All read public numbers only: the risk, the facts and the funds.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet.core import Funds
from discreet.data import Facts
from discreet.erm import descent, noisy_moments, objective_perturbation, output_perturbation
from discreet.erm.exponential import bounds
from discreet.erm.losses import Loss
from discreet.erm.objective_perturbation import signal
from discreet.erm.risk import Risk
from discreet.mechanisms import CoordinateLaplaceNoise, GaussianNoise, Noise, ProductLaplaceNoise, Promise
from discreet.method import Maker, Method, Methods, Offer, Refused

_NOISES: dict[str, type[Noise]] = {
    "gaussian": GaussianNoise,
    "laplace": ProductLaplaceNoise,
    "coordinate-laplace": CoordinateLaplaceNoise,
}
SOLVERS = ("descent", *descent.SCHEDULES, *_NOISES, "exponential", "moments", "objective", "output")
STRONG = 100
"""The signal from which objective perturbation is taken under Gaussian noise: below it early stopping learns better."""
PLAIN = 3000
"""The signal from which slopes are not cut: the logistic loss is plain, a Huber loss a line only beyond the bound."""
PATIENCE = 0.2
"""Seconds that each pass of a descent may wait to begin: where they cost more, a method of few passes is taken."""
ALIAS = "average"
""" "gaussian" by another name: a plan lists one of the two."""


def methods(
    risk: Risk,
    facts: Facts,
    funds: Funds,
    *,
    steps: int | None = None,
    share: Fraction = Fraction(1),
    pass_seconds: float = 0.0,
) -> Methods:
    """Every solver, with the least noise that is admitted.

    steps         of a descent; by a public rule unless it is given
    share         which part of the rows of the facts is here: losses are divided by the number of all, and promises are
                  about the mean over these
    pass_seconds  what the dataset says that a pass costs before its first row is read
    """

    def usual() -> Iterable[str]:
        favourite = preferred(risk, facts, funds, pass_seconds)
        if favourite != "descent" and not isinstance(listed.find(favourite), Refused):
            return (favourite,)
        first = listed.find("descent")
        if isinstance(first, Refused):
            return ("descent",)
        # Without ridge, output perturbation with Gaussian noise promises about the root of what descent does, in units
        # of diameter times slope: less, whenever either says anything. With ridge or with pure noise either may win.
        gaussian = isinstance(first.offer(facts.size).mechanism.noise, GaussianNoise)
        others = () if gaussian and not risk.penalty.ridge else ("output",)
        # A grid in several dimensions reads the rows thousands of times, unless their squares are all it needs.
        quick = risk.dimension(facts.domain) == 1 or risk.loss.moments
        return ("descent", *(("exponential",) if quick else ()), *others)

    solved = {name: functools.partial(_solved, name, risk, funds, steps) for name in SOLVERS}
    listed = Methods({name: maker(name, facts, solved[name], share) for name in SOLVERS}, usual=usual)
    return listed


def preferred(risk: Risk, facts: Facts, funds: Funds, pass_seconds: float = 0.0) -> str:
    """The solver that learns best by public numbers, which need not be the one that promises most.

    Several coefficients, a smooth loss, no lasso: noisy moments for the squared loss; for bounded slopes objective
    perturbation, if the noise is pure, the target is a number, the signal is strong, or the passes of a descent would
    cost more than PATIENCE. Otherwise "descent", or one of those that are compared with it.
    """
    loss = risk.loss
    if risk.features.single or risk.shrinkage() or loss.form == "custom" or loss.curvature() is None:
        return "descent"
    if loss.moments:
        return "moments"
    if loss.form == "difference" or not funds.caps.renyi or pass_seconds > PATIENCE:
        return "objective"
    return "objective" if signal(risk, facts, funds) >= STRONG else "descent"


def default_radius(risk: Risk, facts: Facts, funds: Funds, pass_seconds: float = 0.0) -> Fraction:
    """How long coefficients may be, in units of (bound of the target, or 1) over the norm of a row: a public choice.

    It is made for the model: a descent stops early anyway, so its radius may be large; objective perturbation weighs
    its ridge by the radius, which grows with the signal. The rule was settled on the tables that bench/public_tables.py
    lists as chosen on.
    """
    number = risk.loss.form == "difference"
    taken = preferred(risk, facts, funds, pass_seconds)
    if taken != "objective":
        return Fraction(3 if number else 40)
    least, most, share = (1, 10, 75) if number else (5, 80, 6)
    found = signal(risk, facts, funds)
    return Fraction(round(4 * min(most, max(least, found / share))), 4)


def default_loss(risk: Risk, facts: Facts, funds: Funds) -> Loss:
    """The loss of the risk, whose slopes are cut most, with slopes that are cut less the stronger the signal is.

    Shorter slopes need less noise, and make the loss another one, by which rare labels and far targets count less.
    """
    most = 4 if risk.loss.form == "difference" else 2
    times = 1.0 if risk.shrinkage() else min(most, max(1.0, most * signal(risk, facts, funds) / PLAIN))
    return risk.loss.widened(Fraction(round(16 * times), 16))


def maker(
    name: str, facts: Facts, solved: Callable[[Facts], tuple[Any, Promise]], share: Fraction = Fraction(1)
) -> Maker:
    """The method that makes a mechanism and a promise of facts, for the size of these or for any if they have none."""

    def offer(size: int | None) -> Offer:
        mechanism, promise = solved(facts if size == facts.size else replace(facts, size=size))
        promise = promise.times(1 / float(share))
        return Offer(name, mechanism, promise, getattr(getattr(mechanism, "noise", mechanism), "scale", None))

    def make() -> Method:
        method = Method.solving(name, offer)
        if facts.size is not None:
            method.offer(facts.size)  # says why it does not apply
        return method

    return make


def _solved(name: str, risk: Risk, funds: Funds, steps: int | None, facts: Facts) -> tuple[Any, Promise]:
    if name == "exponential":
        drawn = bounds.propose(risk, facts=facts, funds=funds)
        return drawn, bounds.promise(drawn, facts)
    if name == "output":
        perturbed = output_perturbation.propose(risk, facts=facts, funds=funds)
        return perturbed, output_perturbation.promise(perturbed, facts)
    if name == "moments":
        measured = noisy_moments.propose(replace(risk, loss=risk.loss.squared()), facts=facts, funds=funds)
        return measured, noisy_moments.promise(measured, facts)
    if name == "objective":
        tilted = objective_perturbation.propose(risk, facts=facts, funds=funds)
        return tilted, objective_perturbation.promise(tilted, facts)
    noise = _NOISES.get(name)
    schedule = descent.Average if noise is not None else descent.SCHEDULES.get(name)
    descended = descent.propose(risk, facts=facts, funds=funds, noise=noise, schedule=schedule, steps=steps)
    return descended, descent.promise(descended, facts)
