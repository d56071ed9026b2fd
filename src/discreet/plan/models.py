"""Models: the problem that a plan is about, its methods, and the units in which its promises are meant.

With declared columns it is the problem that the estimator of this kind solves at its defaults, to the last digit: the
same encoding and row norm, intercept, loss and feasible set, so errors are in the units of the target's loss. Without
them the units are such that the bounds are 1: d features in rows of norm 1 with an intercept, targets in [-1, 1],
values in [0, 1].

A row's name is what `method=` of the estimator takes, and the row that is marked is the one that it takes by default.
That need not be the smallest promise: the exponential mechanism in several dimensions is slow, so it is taken by name
only (`solvers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from discreet.core import ParameterError, exact, one_line
from discreet.data import Category, Domain, Facts, Number, Vector, needs_of
from discreet.erm import (
    Absolute,
    Ball,
    CentredHuber,
    Declared,
    Huber,
    Logistic,
    Loss,
    Pinball,
    Risk,
    Softmax,
    Squared,
    VectorColumn,
    location,
    network,
    solvers,
)
from discreet.mechanisms import Promise, unit_of
from discreet.method import Method, Methods, Offer, choose
from discreet.plan.problems import Problem

RANKED = ("median", "quantile")
LOCATION = ("mean", *RANKED)
_STEP = Fraction(1, 2**20)
_HIDDEN = (32,)  # the layers of a network, as its estimator has them
_COUNTED = {
    "row": "errors are per row",
    "person": "errors are per person, whose rows' losses are added up",
    "declared person": "errors are per declared person, the sum over all rows divided by the size",
}


def names(kind: str) -> tuple[str, ...]:
    """What a plan of this kind lists, and `method=` of its estimator takes."""
    if kind == "network":
        return ()
    ranks = ("rank",) if kind in RANKED else ()
    left_out = (solvers.ALIAS, "descent") if kind in LOCATION else (solvers.ALIAS,)  # of one number auto is no descent
    only = {"linear": (*solvers.RELEASING, solvers.SCALED), "logistic": (solvers.SCALED,)}.get(kind, ())
    return (*ranks, *(name for name in solvers.SOLVERS if name not in left_out), *only)


def methods(problem: Problem, size: int | None = None) -> Methods:
    """The list that the estimator's fit chooses from, for this size or that of the problem."""
    if problem.kind == "network":
        return Methods({"descent": lambda: Method.solving("descent", lambda size: _network(problem, size))})
    if problem.size is None and problem.alpha is None:
        raise ParameterError("a plan for a learner needs size=, or alpha= to find the size", argument="size")
    facts = Facts(_domain(problem), problem.neighbours, problem.size if size is None else size)
    if problem.kind in LOCATION:
        return location.methods(_loss(problem), _target(problem), facts, problem.funds)
    model = problem.model
    free = model.huber is None and model.radius is None
    risk, seconds = _risk(problem, facts.size), model.pass_seconds
    return solvers.methods(risk, facts, problem.funds, pass_seconds=seconds, free=free)


def taken(problem: Problem, listed: Methods, needed: dict[str, int]) -> str | None:
    """What the estimator takes by default of these methods, for the size that is given; without one, for the fewest
    people with whom what is taken keeps alpha. needed: how many keep it, by name."""

    def chosen(listed: Methods, size: int) -> str | None:
        try:
            return choose(listed, "auto", size).method
        except ParameterError:  # nothing is left that could be spent
            return None

    if problem.kind == "network":
        return None
    if problem.size is not None:
        return chosen(listed, problem.size)
    enough = sorted((size, name) for name, size in needed.items())
    return next((name for size, name in enough if chosen(methods(problem, size), size) == name), None)


def _network(problem: Problem, size: int | None) -> Offer:
    """A network has a price and a number of steps, and no theorem about its risk."""
    features, _ = _vectors(problem)
    reason = "no bound on the risk of a network is proved, for it is not convex; its privacy is"
    if size is None:
        return Offer("descent", None, Promise(None, "", reason))
    facts = Facts(_domain(problem), problem.neighbours, size)
    try:
        found = network.propose(features, _target(problem), _HIDDEN, facts=facts, funds=problem.funds)
    except ParameterError as refused:
        return Offer("descent", None, Promise(None, "", f"{reason}; here {refused}"))
    kind = type(found.noise).__name__.removesuffix("Noise")
    scale, clip = float(found.noise.scale), float(found.clip)
    how = f"{found.steps} steps on slopes cut to {clip:g}, each sum of them with {kind} noise of scale {scale:.3g}"
    return Offer("descent", found, Promise(None, "", f"{reason}: {how}"))


# The problem.


def _target(problem: Problem) -> str:
    return problem.model.target or "y"


def _domain(problem: Problem) -> Domain:
    """The declaration of the rows; without one, bounds of 1."""
    kind, target = problem.kind, _target(problem)
    if problem.model.domain is not None:
        column = problem.model.domain.column(target)
        numeric = kind not in ("logistic", "network")
        if numeric and (not isinstance(column, Number) or column.missing):
            raise ParameterError(
                f"the target {target!r} must be a Number with bounds that is never missing, it is declared {column!r}"
            )
        if not numeric and not isinstance(column, Category):
            raise ParameterError(f"the target {target!r} is declared {column!r}: classes need a Category")
        return problem.model.domain
    if kind in LOCATION:
        return Domain(y=Number(0, 1, step=_STEP))
    outcome = Number(-1, 1, step=_STEP) if kind == "linear" else Category("no", "yes")
    return Domain(x=Vector(problem.number("d"), norm=1), y=outcome)


def _loss(problem: Problem) -> Loss:
    if problem.kind == "quantile":
        percent = problem.number("percent")
        if percent > 99:
            raise ParameterError(f"percent must be between 1 and 99, found {percent}")
        return Pinball(Fraction(percent, 100))
    return Squared() if problem.kind == "mean" else Absolute()


def _risk(problem: Problem, size: int | None = None) -> Risk:
    """The risk that is minimised, for this size or that of the problem."""
    domain, target, model = _domain(problem), _target(problem), problem.model
    column: Any = domain.column(target)
    if problem.kind in LOCATION:
        return location.risk_of(_loss(problem), target, Facts(domain, problem.neighbours, None))
    features, norm = _vectors(problem)
    facts = Facts(domain, problem.neighbours, problem.size if size is None else size)
    if problem.kind == "linear":
        offset, bound = (column.low + column.high) / 2, (column.high - column.low) / 2
        threshold = bound / 4 if model.huber is None else min(model.huber, 5 * bound)
        loss: Loss = CentredHuber(threshold, offset) if offset else Huber(threshold)
        risk = Risk(loss, features, target, Ball(bound / norm))
    else:
        loss = Logistic(Fraction(1, 2)) if column.size == 2 else Softmax(column.size)
        risk = Risk(loss, features, target, Ball(1 / norm))
    cut, seconds = problem.kind == "logistic" or model.huber is None, model.pass_seconds
    return solvers.settled(risk, facts, problem.funds, seconds, radius=model.radius, cut=cut)


def dimension(names: Sequence[str], domain: Domain) -> int:
    """How many coordinates these columns are for an estimator: one for each level."""
    return Declared(tuple(names), 1, False).dimension(domain)


def passes(problem: Problem, row: Any) -> int | None:
    """About how often this row's mechanism reads the rows."""
    if row.mechanism is None:
        return None
    return needs_of(row.mechanism, Facts(_domain(problem), problem.neighbours, row.needed or problem.size)).passes


def _vectors(problem: Problem) -> tuple[VectorColumn | Declared, Fraction]:
    """How a row becomes a vector, and the length that it is projected to."""
    domain, target = problem.model.domain, problem.model.target
    if domain is None:
        return VectorColumn(), Fraction(1)
    columns = problem.model.features or tuple(name for name in domain.names if name != target)
    if target in columns:
        raise ParameterError(f"features must not contain the target {target!r}")
    # As a table is encoded by the estimators: the least multiple of 2^-10 that is not below the root.
    norm = Fraction(exact.ceil_sqrt(Fraction(len(columns) * 2**20)), 2**10)
    features = Declared(columns, norm)
    features.dimension(domain)  # says what is wrong with a column
    return features, norm


# What its errors are measured in.


def described(problem: Problem) -> dict[str, Any]:
    """The numbers, units and radius of a plan, as its fields."""
    numbers = dict(problem.numbers)
    if problem.kind not in LOCATION and problem.model.domain is not None:
        numbers["d"] = _vectors(problem)[0].dimension(problem.model.domain) - 1
    if problem.kind == "network":
        return {"numbers": tuple(numbers.items())}
    risk, facts = _risk(problem), Facts(_domain(problem), problem.neighbours, problem.size)
    units = f"{_units(problem, risk)}; {_COUNTED[unit_of(facts)]}"
    return {"numbers": tuple(numbers.items()), "units": units, "radius": risk.feasible.ball}


def _units(problem: Problem, risk: Risk) -> str:
    """In one sentence: of what the excess risk is a mean, and how long coefficients may be."""
    kind, declared = problem.kind, problem.model.domain is not None
    own = f"those of {one_line(risk.target)}"
    if kind in LOCATION:
        those = own if declared else "of a column whose values lie in [0, 1]"
        return f"{those}{', squared' if kind == 'mean' else ''}"
    scaled = "scaled features" if declared else "features whose rows have norm 1"
    ball = f"coefficients of {scaled} of length at most {float(risk.feasible.ball or 0):.4g}"
    match risk.loss:
        case Huber(threshold=threshold):
            those = own if declared else "of targets in [-1, 1]"
            return f"{those}, squared (a miss beyond {float(threshold):.4g} counts linearly); {ball}"
        case Softmax(classes=classes):
            nothing = f"ln {classes}"
        case _:
            nothing = "ln 2 = 0.69"
    return f"of the logistic loss, {nothing} where nothing is known; {ball}"
