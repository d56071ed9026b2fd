"""Which algorithm solves a risk: every solver with what it promises, side by side, before anything is spent.

    auto                 the one that learns best by public numbers (`preferred`); where that is descent, the smallest
                         promised excess risk of descent, output and, for one number or the squared loss, exponential
    descent              noisy gradient descent by its own rule; or one schedule of it by name:
    accelerated, average, last, strongly-convex
    gaussian, laplace, coordinate-laplace      the lecture's descent (the mean of the iterates) with this noise
    exponential          the exponential mechanism on a grid (pure)
    constant             the median of the target alone
    moments              the ridge regression of noisy sums of products
    objective            the minimiser of the objective plus a random linear term
    output               the minimiser plus noise
    scaled               descent, objective or ranged, in ranges of columns that are released first
    ranged               objective, in a range of the target that is released first

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
from discreet.erm import (
    Ball,
    Loss,
    Risk,
    descent,
    noisy_moments,
    objective_perturbation,
    output_perturbation,
    ranged,
)
from discreet.erm.exponential import bounds
from discreet.erm.objective_perturbation import signal
from discreet.mechanisms import (
    CoordinateLaplaceNoise,
    GaussianNoise,
    Noise,
    ProductLaplaceNoise,
    Promise,
    RankQuantile,
    calibrate,
)
from discreet.method import Maker, Method, Methods, Offer, Refused

_NOISES: dict[str, type[Noise]] = {
    "gaussian": GaussianNoise,
    "laplace": ProductLaplaceNoise,
    "coordinate-laplace": CoordinateLaplaceNoise,
}
_ALONE: dict[str, Any] = {
    "exponential": bounds,
    "moments": noisy_moments,
    "objective": objective_perturbation,
    "output": output_perturbation,
}
"""Solvers by the module that proposes their mechanism and knows what it promises."""
SOLVERS = ("descent", *descent.SCHEDULES, *_NOISES, *_ALONE)
RELEASING = ("constant", "ranged")
"""Of linear regression alone: the solvers that release a middle of the target before the coefficients, if any."""
SCALED = "scaled"
"""On a table: the solver that releases ranges of columns before the coefficients, and before a range of the target."""
WEAK = 5
"""The signal below which a linear model is no better than a constant, if no range of the target can be had either."""
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
    free: bool = False,
) -> Methods:
    """Every solver, with the least noise that is admitted.

    steps         of a descent; by a public rule unless it is given
    share         which part of the rows of the facts is here: losses are divided by the number of all, and promises are
                  about the mean over these
    pass_seconds  what the dataset says that a pass costs before its first row is read
    free          whether the range of the target may be released, because neither threshold nor radius are given
    """

    regression = risk.loss.form == "difference" and not risk.features.single

    def usual() -> Iterable[str]:
        favourite = preferred(risk, facts, funds, pass_seconds)
        number = free and regression and favourite == "objective" and bool(risk.features.constant(facts.domain))
        ranges = number or (free and not regression and favourite in ("descent", "objective"))
        if ranges and pass_seconds <= PATIENCE and _applies(listed, SCALED):  # each range takes passes of its own
            return (SCALED,)
        if number:
            weak = ("constant",) if signal(risk, facts, funds) < WEAK else ()
            favourite = next((name for name in ("ranged", *weak) if _applies(listed, name)), favourite)
        if favourite != "descent" and _applies(listed, favourite):
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

    names = SOLVERS if risk.features.single else (*SOLVERS, *(RELEASING if regression else ()), SCALED)
    solved = {name: functools.partial(_solved, name, risk, funds, steps) for name in names}
    listed = Methods({name: maker(name, facts, solved[name], share) for name in names}, usual=usual)
    return listed


def _applies(listed: Methods, name: str) -> bool:
    return not isinstance(listed.find(name), Refused)


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

    It is made for the model, and grows with the signal: the radius of a descent decides how many steps it takes, and
    objective perturbation weighs its ridge by it. The rule was settled on the tables that bench/suites.py lists as SEEN
    and on those of bench/erm_rule.py.
    """
    number = risk.loss.form == "difference"
    found = signal(risk, facts, funds)
    if preferred(risk, facts, funds, pass_seconds) != "objective":
        return Fraction(3 if number else round(min(40, max(8, 2.5 * found))) if found else 40)
    least, most, share = (1, 10, 75) if number else (5, 80, 6)
    return Fraction(round(4 * min(most, max(least, found / share))), 4)


def settled(
    risk: Risk,
    facts: Facts,
    funds: Funds,
    pass_seconds: float = 0.0,
    *,
    radius: Fraction | None = None,
    cut: bool = True,
) -> Risk:
    """The risk with the default loss if `cut`, and this radius or the default one in units of its ball."""
    if cut:
        risk = replace(risk, loss=default_loss(risk, facts, funds))
    unit = risk.feasible.ball or Fraction(1)
    found = unit * default_radius(risk, facts, funds, pass_seconds) if radius is None else radius
    return replace(risk, feasible=Ball(found))


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
    if name in _ALONE:
        if name == "moments":
            risk = replace(risk, loss=risk.loss.squared())
        found = _ALONE[name].propose(risk, facts=facts, funds=funds)
        return found, _ALONE[name].promise(found, facts)
    if name == "ranged":
        in_range = ranged.propose_target(risk, settled, facts=facts, funds=funds)
        return in_range, ranged.promise(in_range, facts)
    if name == "constant":
        risk.loss.check_target(facts.domain, risk.target)
        median = calibrate(lambda scale: RankQuantile(risk.target, Fraction(1, 2), 1 / scale), funds=funds, facts=facts)
        return median, Promise(None, "ranks", "the median of the target; nothing is proved about its mean loss")
    if name == SCALED:

        def solve(risk: Risk, funds: Funds) -> tuple[Any, Promise]:
            favourite = "ranged" if risk.loss.form == "difference" else preferred(risk, facts, funds)
            return _solved(favourite, risk, funds, steps, facts)

        return ranged.propose_columns(risk, solve, facts=facts, funds=funds)
    noise = _NOISES.get(name)
    schedule = descent.Average if noise is not None else descent.SCHEDULES.get(name)
    descended = descent.propose(risk, facts=facts, funds=funds, noise=noise, schedule=schedule, steps=steps)
    return descended, descent.promise(descended, facts)
