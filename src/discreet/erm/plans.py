"""Plans for learners: what every solver promises for a budget and a size, and the size that a promise needs.

The problems are those of the estimators (`posed`). A row's name is what `method=` of the estimator takes, and the row
that is marked is the one that it takes unasked. That need not be the smallest promise: the exponential mechanism in
several dimensions is slow, so it is taken by name only (`choose`).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from discreet.data import Domain, Facts
from discreet.erm import network, solvers
from discreet.erm.exponential.bounds import promise
from discreet.erm.exponential.line import RankQuantile
from discreet.erm.losses import Absolute, Pinball, Squared
from discreet.erm.posed import LOCATION, RANKED, problem, unit_vectors, vectors
from discreet.erm.promise import mean_promise
from discreet.erm.risk import Risk
from discreet.errors import NothingFits, ParameterError
from discreet.mechanisms import Gaussian, GaussianNoise, Laplace, LaplaceNoise, calibrate
from discreet.plan import PURE, Asked, Row
from discreet.query import Sum

_ALIAS = "average"  # "gaussian" by another name
_SUMS: dict[str, tuple[Any, Any]] = {  # how the Mean means these names
    "laplace": (Laplace, LaplaceNoise),
    "gaussian": (Gaussian, GaussianNoise),
}
_HIDDEN = (32,)  # the layers of a network, unless somebody says otherwise
_LARGEST = 2**36  # persons: a size that is not found below this is not offered


def methods(kind: str) -> tuple[str, ...]:
    """What a plan of this kind lists, and `method=` of its estimator takes."""
    if kind == "network":
        return ()
    ranks = ("rank",) if kind in RANKED else ()
    left_out = (_ALIAS, "descent") if kind in LOCATION else (_ALIAS,)  # of one number auto is never a descent
    return (*ranks, *(solver for solver in solvers.SOLVERS if solver not in left_out))


def rows(kind: str, asked: Asked) -> list[Row]:
    """One row for each solver: the excess risk it promises in expectation, or why it promises nothing."""
    if kind == "network":
        return [_network(asked)]
    risk, domain = problem(kind, asked)
    if asked.facts.size is None and asked.alpha is None:
        raise ParameterError("a plan for a learner needs size=, or alpha= to find the size", argument="size")
    made = [_row(solver, risk, domain, asked) for solver in methods(kind)]
    taken = _taken_at_all(kind, risk, domain, asked, made)
    return [dataclasses.replace(row, taken=row.method == taken) for row in made]


def _network(asked: Asked) -> Row:
    """A network has a price and a number of steps, and no theorem about its risk."""
    features, _ = vectors(asked)
    domain = unit_vectors(asked) if asked.model.domain is None else asked.model.domain
    reason = "no bound on the risk of a network is proved, for it is not convex; its privacy is"
    size = asked.facts.size
    if size is None:
        return Row("descent", "", refusal=reason)
    facts = Facts(domain, asked.facts.neighbours, size)
    target = asked.model.target or "y"
    try:
        found = network.propose(features, target, _HIDDEN, facts=facts, funds=asked.funds)
    except ParameterError as refused:
        return Row("descent", "", refusal=f"{reason}; here {refused}")
    kind = type(found.noise).__name__.removesuffix("Noise")
    scale, clip = float(found.noise.scale), float(found.clip)
    how = f"{found.steps} steps on slopes cut to {clip:g}, each sum of them with {kind} noise of scale {scale:.3g}"
    return Row("descent", "", refusal=f"{reason}: {how}", mechanism=found)


# What the estimator takes unasked.


def _taken_at_all(kind: str, risk: Risk, domain: Domain, asked: Asked, made: list[Row]) -> str | None:
    """Its name, for the size that is given; without one, for the fewest people with whom what is taken keeps alpha."""
    if asked.facts.size is not None:
        return _taken(kind, risk, domain, asked, made, asked.facts.size)
    enough = sorted((row.needed, row.method) for row in made if row.needed is not None)
    found = ((_taken(kind, risk, domain, asked, made, size), method) for size, method in enough)
    return next((taken for taken, method in found if taken == method), None)


def _taken(kind: str, risk: Risk, domain: Domain, asked: Asked, made: list[Row], size: int) -> str | None:
    if kind in RANKED:
        return "rank"
    if kind == "mean":
        usual = tuple(_SUMS) if asked.facts.neighbours.replace_one else ("exponential",)
        found = [row for row in made if row.method in usual and row.mechanism is not None]
        return min(found, key=_noise).method if found and asked.facts.neighbours.rows == 1 else None
    facts = Facts(domain, asked.facts.neighbours, size)
    try:
        return solvers.choose(risk, facts=facts, funds=asked.funds).solver
    except ParameterError:  # nothing is left that could be spent
        return None


def _noise(row: Row) -> float:
    """The variance of the noise on a sum."""
    _, noise = _SUMS.get(row.method, (None, None))
    return float(noise(row.mechanism.scale).variance()) if noise else 0.0


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
        assuming=found.promise.condition,
    )


def _offered(solver: str, risk: Risk, domain: Domain, asked: Asked, made: dict[str, Any], size: int) -> solvers.Offer:
    """What the solver offers for this size. `made` keeps a mechanism that is the same for every size."""
    facts = Facts(domain, asked.facts.neighbours, size)
    if solver == "rank":
        mechanism = made.setdefault(solver, None) or calibrate(
            functools.partial(_rank, risk), funds=asked.funds, facts=facts
        )
        promised = promise(mechanism, facts)  # of the pinball loss; at the median it is half of |u|
        found = promised.times(2 if isinstance(risk.loss, Absolute) else 1)
    elif solver in _SUMS and isinstance(risk.loss, Squared):
        release, noise = _SUMS[solver]
        if facts.neighbours.rows > 1:
            raise ParameterError("a mean is a sum over a number of rows, private where a person may have several")
        query = Sum(risk.target)
        mechanism = made.setdefault(solver, None) or calibrate(
            lambda scale: release(query, scale), funds=asked.funds, facts=facts
        )
        half = risk.feasible.diameter(1) / 2
        found = mean_promise(noise(mechanism.scale).variance(), count=size, half=half, facts=facts)
    else:
        return solvers.offer(solver, risk, facts=facts, funds=asked.funds)
    made[solver] = mechanism
    return solvers.Offer(solver, mechanism, found)


def _rank(risk: Risk, noise: Fraction) -> RankQuantile:
    part = risk.loss.q if isinstance(risk.loss, Pinball) else Fraction(1, 2)
    return RankQuantile(risk.target, part, 1 / noise)


def _refusal(offered: Callable[[int], solvers.Offer], asked: Asked) -> str:
    """Why this solver does not apply at all, whatever it promises; empty if it does."""
    try:
        found = offered(asked.facts.size or _LARGEST)
    except ParameterError as refused:
        return PURE if asked.pure and isinstance(refused, NothingFits) else str(refused)
    if asked.facts.size is not None:
        return ""
    reason = "" if found.promise is None else found.promise.reason
    return reason or f"no size up to {_LARGEST:,} is enough within its limit of steps"


def _needed(offered: Callable[[int], solvers.Offer], alpha: float) -> int | None:
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


def _kept(offered: Callable[[int], solvers.Offer], size: int, alpha: float) -> bool:
    try:
        return float(offered(size).promise or math.inf) <= alpha
    except ParameterError:
        return False
