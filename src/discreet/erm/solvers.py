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

import dataclasses
import functools
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from discreet.core import Funds
from discreet.data import Facts
from discreet.erm import descent, output_perturbation
from discreet.erm.exponential import bounds
from discreet.erm.risk import Risk
from discreet.mechanisms import CoordinateLaplaceNoise, GaussianNoise, Noise, ProductLaplaceNoise
from discreet.method import Maker, Method, Methods, Offer, Promise, Refused

_NOISES: dict[str, type[Noise]] = {
    "gaussian": GaussianNoise,
    "laplace": ProductLaplaceNoise,
    "coordinate-laplace": CoordinateLaplaceNoise,
}
SOLVERS = ("descent", *descent.SCHEDULES, *_NOISES, "exponential", "output")
ALIAS = "average"
""" "gaussian" by another name: a plan lists one of the two."""


def methods(
    risk: Risk, facts: Facts, funds: Funds, *, steps: int | None = None, share: Fraction = Fraction(1)
) -> Methods:
    """Every solver, with the least noise that is admitted.

    steps  of a descent; by a public rule unless it is given
    share  which part of the rows of the facts is here: losses are divided by the number of all, and promises are about
           the mean over these
    """

    def usual() -> Iterable[str]:
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


def maker(
    name: str, facts: Facts, solved: Callable[[Facts], tuple[Any, Promise]], share: Fraction = Fraction(1)
) -> Maker:
    """The method that makes a mechanism and a promise of facts, for the size of these or for any if they have none."""

    def offer(size: int | None) -> Offer:
        mechanism, promise = solved(facts if size == facts.size else dataclasses.replace(facts, size=size))
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
    noise = _NOISES.get(name)
    schedule = descent.Average if noise is not None else descent.SCHEDULES.get(name)
    descended = descent.propose(risk, facts=facts, funds=funds, noise=noise, schedule=schedule, steps=steps)
    return descended, descent.promise(descended, facts)
