"""Plans for learners: what every solver promises for a budget and a size, and the size that a promise needs.

The problems are those of the estimators at their defaults, in units where the bounds are 1: rows of norm 1 with an
intercept, targets in [-1, 1], values in [0, 1]. A row's name is what `solver=` of the estimator takes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from discreet.data import Facts
from discreet.domain import Category, Domain, Number, Vector
from discreet.erm import choose, neural
from discreet.erm.features import Constant, VectorColumn
from discreet.erm.line import RankQuantile
from discreet.erm.losses import Absolute, Huber, Logistic, Pinball, Squared
from discreet.erm.promise import Promise
from discreet.erm.risk import Risk
from discreet.erm.sampling import promise
from discreet.erm.sets import Ball, interval
from discreet.errors import ParameterError
from discreet.mechanism import calibrate
from discreet.mechanisms.additive import Gaussian, Laplace
from discreet.mechanisms.noises import GaussianNoise, LaplaceNoise
from discreet.plan import PURE, Asked, Row
from discreet.query import Sum

_ALIASES = ("average", "descent")  # "gaussian" by another name, and the best schedule of the list
_RANKED = ("median", "quantile")
_SUMS: dict[str, tuple[Any, Any]] = {  # how the Mean means these names
    "laplace": (Laplace, LaplaceNoise),
    "gaussian": (Gaussian, GaussianNoise),
}
_HIDDEN = (32,)  # the layers of a network, unless somebody says otherwise
_LARGEST = 2**36  # persons: a size that is not found below this is not offered


def rows(kind: str, asked: Asked) -> list[Row]:
    """One row for each solver: the excess risk it promises in expectation, or why it promises nothing."""
    if kind == "network":
        return [_network(asked)]
    risk, domain = problem(kind, asked)
    if asked.facts.size is None and asked.alpha is None:
        raise ParameterError("a plan for a learner needs size=, or alpha= to find the size")
    ranks = ("rank",) if kind in _RANKED else ()
    solvers = (*ranks, *(solver for solver in choose.SOLVERS if solver not in _ALIASES))
    return [_row(solver, risk, domain, asked) for solver in solvers]


def _network(asked: Asked) -> Row:
    """A network has a price and a number of steps, and no theorem about its risk."""
    domain = Domain(x=Vector(asked.number("d"), norm=1), y=Category("no", "yes"))
    reason = "no bound on the risk of a network is proved, for it is not convex; its privacy is"
    size = asked.facts.size
    if size is None:
        return Row("descent", "", refusal=reason)
    facts = Facts(domain, asked.facts.neighbours, size)
    try:
        found = neural.propose(VectorColumn(), "y", _HIDDEN, facts=facts, admits=asked.admits(facts))
    except ParameterError as refused:
        return Row("descent", "", refusal=f"{reason}; here {refused}")
    kind = type(found.noise).__name__.removesuffix("Noise")
    scale, clip = float(found.noise.scale), float(found.clip)
    how = f"{found.steps} steps on slopes cut to {clip:g}, each sum of them with {kind} noise of scale {scale:.3g}"
    return Row("descent", "", refusal=f"{reason}: {how}", mechanism=found)


def problem(kind: str, asked: Asked) -> tuple[Risk, Domain]:
    values, targets = Number(0, 1, step=Fraction(1, 2**20)), Number(-1, 1, step=Fraction(1, 2**20))
    if kind in ("mean", *_RANKED):
        loss = Squared() if kind == "mean" else Absolute() if kind == "median" else Pinball(_part(asked))
        return Risk(loss, Constant(), "y", interval(0, 1)), Domain(y=values)
    vectors = Vector(asked.number("d"), norm=1)
    if kind == "linear":
        return Risk(Huber(Fraction(1, 2)), VectorColumn(), "y", Ball(3)), Domain(x=vectors, y=targets)
    return Risk(Logistic(Fraction(1, 2)), VectorColumn(), "y", Ball(10)), Domain(x=vectors, y=Category("no", "yes"))


def _part(asked: Asked) -> Fraction:
    percent = asked.number("percent")
    if percent > 99:
        raise ParameterError(f"percent must be between 1 and 99, found {percent}")
    return Fraction(percent, 100)


def _row(solver: str, risk: Risk, domain: Domain, asked: Asked) -> Row:
    offered = functools.partial(_offered, solver, risk, domain, asked, {})
    needed = None if asked.alpha is None else _needed(offered, float(asked.alpha))
    refusal = "" if asked.facts.size is None and needed is not None else _refusal(offered, asked)
    if refusal:
        return Row(solver, "", refusal=refusal)
    found = offered(asked.facts.size or needed or 1)
    assert found.promise is not None
    return Row(
        solver,
        found.promise.theorem,
        noise=getattr(getattr(found.mechanism, "noise", found.mechanism), "scale", None),
        error=found.promise.excess,
        needed=needed,
        refusal="" if found.promise.excess is not None else found.promise.reason,
        mechanism=found.mechanism,
    )


def _offered(solver: str, risk: Risk, domain: Domain, asked: Asked, made: dict[str, Any], size: int) -> choose.Offer:
    """What the solver offers for this size. `made` keeps a mechanism that is the same for every size."""
    facts = Facts(domain, asked.facts.neighbours, size)
    admits = asked.admits(facts)
    if solver == "rank":
        mechanism = made.setdefault(solver, None) or calibrate(functools.partial(_rank, risk), admits=admits)
        promised = promise(mechanism, facts)  # of the pinball loss; at the median it is half of |u|
        times = 2 if isinstance(risk.loss, Absolute) else 1
        excess = None if promised.excess is None else times * promised.excess
        found = Promise(excess, promised.theorem, promised.reason)
    elif solver in _SUMS and isinstance(risk.loss, Squared):
        release, noise = _SUMS[solver]
        mechanism = made.setdefault(solver, None) or calibrate(lambda scale: release(Sum("y"), scale), admits=admits)
        variance = noise(mechanism.scale).variance() / size**2
        found = Promise(variance, "the variance of the noise on the sum, over the squared size")
    else:
        return choose.offer(solver, risk, facts=facts, admits=admits)
    made[solver] = mechanism
    return choose.Offer(solver, mechanism, found)


def _rank(risk: Risk, noise: Fraction) -> RankQuantile:
    part = risk.loss.q if isinstance(risk.loss, Pinball) else Fraction(1, 2)
    return RankQuantile("y", part, 1 / noise)


def _refusal(offered: Callable[[int], choose.Offer], asked: Asked) -> str:
    """Why this solver does not apply at all, whatever it promises; empty if it does."""
    try:
        found = offered(asked.facts.size or _LARGEST)
    except ParameterError as refused:
        nothing_fits = asked.pure and "no amount of noise" in str(refused)
        return PURE if nothing_fits else str(refused)
    if asked.facts.size is not None:
        return ""
    reason = "" if found.promise is None else found.promise.reason
    return reason or f"no size up to {_LARGEST:,} is enough within its limit of steps"


def _needed(offered: Callable[[int], choose.Offer], alpha: float) -> int | None:
    """A size at which the promise is at most alpha; it is not promised at 0.95 of it."""
    low, high = 1, 16
    while not _kept(offered, high, alpha):
        low, high = high, high * 4
        if high > _LARGEST:
            return None
    while high - low > max(1, high // 24):
        middle = (low + high) // 2
        low, high = (low, middle) if _kept(offered, middle, alpha) else (middle, high)
    return high


def _kept(offered: Callable[[int], choose.Offer], size: int, alpha: float) -> bool:
    try:
        return float(offered(size).promise or math.inf) <= alpha
    except ParameterError:
        return False
