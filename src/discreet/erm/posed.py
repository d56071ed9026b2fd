"""The problem that a plan for a model is about, and the units in which its promises are meant.

With declared columns it is the problem that the estimator of this kind solves at its defaults, to the last digit: the
same encoding and row norm, intercept, loss and feasible set, so errors are in the units of the target's loss. Without
them the units are such that the bounds are 1: d features in rows of norm 1 with an intercept, targets in [-1, 1],
values in [0, 1].
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from discreet import exact
from discreet.data import Category, Domain, Number, Vector
from discreet.describe import one_line
from discreet.erm.feasible_sets import Ball, interval
from discreet.erm.features import Constant, Declared, VectorColumn
from discreet.erm.losses import Absolute, Huber, Logistic, Loss, Pinball, Softmax, Squared
from discreet.erm.promise import unit_of
from discreet.erm.risk import Risk
from discreet.errors import ParameterError
from discreet.plan import Asked

RANKED = ("median", "quantile")
LOCATION = ("mean", *RANKED)
_HALF = Fraction(1, 2)
_STEP = Fraction(1, 2**20)
_COUNTED = {
    "row": "errors are per row",
    "person": "errors are per person, whose rows' losses are added up",
    "declared person": "errors are per declared person, the sum over all rows divided by the size",
}


def problem(kind: str, asked: Asked) -> tuple[Risk, Domain]:
    """The risk that is minimised, and the declaration of the rows."""
    domain = _unit_domain(kind, asked) if asked.model.domain is None else asked.model.domain
    target = asked.model.target or "y"
    if kind in LOCATION:
        column = _number(domain, target)
        return Risk(_location_loss(kind, asked), Constant(), target, interval(column.low, column.high)), domain
    features, norm = vectors(asked)
    if kind == "linear":
        bound = _bound(domain, target)
        huber = bound / 2 if asked.model.huber is None else min(asked.model.huber, 5 * bound)
        return Risk(Huber(huber), features, target, Ball(asked.model.radius or 3 * bound / norm)), domain
    classes = _classes(domain, target)
    loss = Logistic(_HALF) if classes == 2 else Softmax(classes)
    return Risk(loss, features, target, Ball(asked.model.radius or 10 / norm)), domain


def vectors(asked: Asked) -> tuple[VectorColumn | Declared, Fraction]:
    """How a row becomes a vector, and the length that it is projected to."""
    domain, target = asked.model.domain, asked.model.target
    if domain is None:
        return VectorColumn(), Fraction(1)
    columns = asked.model.features or tuple(name for name in domain.names if name != target)
    if target in columns:
        raise ParameterError(f"features must not contain the target {target!r}")
    # As a table is encoded by the estimators: the least multiple of 2^-10 that is not below the root.
    norm = Fraction(exact.ceil_sqrt(Fraction(len(columns) * 2**20)), 2**10)
    features = Declared(columns, norm)
    features.dimension(domain)  # says what is wrong with a column
    return features, norm


def unit_vectors(asked: Asked) -> Domain:
    """Rows of norm 1 with two classes."""
    return Domain(x=Vector(asked.number("d"), norm=1), y=Category("no", "yes"))


def _unit_domain(kind: str, asked: Asked) -> Domain:
    if kind in LOCATION:
        return Domain(y=Number(0, 1, step=_STEP))
    if kind == "linear":
        return Domain(x=Vector(asked.number("d"), norm=1), y=Number(-1, 1, step=_STEP))
    return unit_vectors(asked)


def _location_loss(kind: str, asked: Asked) -> Loss:
    if kind == "quantile":
        percent = asked.number("percent")
        if percent > 99:
            raise ParameterError(f"percent must be between 1 and 99, found {percent}")
        return Pinball(Fraction(percent, 100))
    return Squared() if kind == "mean" else Absolute()


def _number(domain: Domain, target: str) -> Number:
    column = domain.column(target)
    if not isinstance(column, Number) or column.missing:
        raise ParameterError(
            f"the target {target!r} must be a Number with bounds that is never missing, it is declared {column!r}"
        )
    return column


def _bound(domain: Domain, target: str) -> Fraction:
    column = _number(domain, target)
    return max(abs(column.low), abs(column.high))


def _classes(domain: Domain, target: str) -> int:
    column = domain.column(target)
    if not isinstance(column, Category):
        raise ParameterError(f"the target {target!r} is declared {column!r}: classes need a Category")
    return column.size


# What its errors are measured in.


def told(kind: str, asked: Asked) -> dict[str, Any]:
    """The numbers, units and radius of a plan, as its fields."""
    numbers = dict(asked.numbers)
    if kind not in LOCATION and asked.model.domain is not None:
        features, _ = vectors(asked)
        numbers["d"] = features.dimension(asked.model.domain) - 1
    if kind == "network":
        return {"numbers": tuple(numbers.items())}
    risk, _ = problem(kind, asked)
    radius = risk.feasible.radius if isinstance(risk.feasible, Ball) else None
    units = f"{_units(kind, risk, asked)}; {_COUNTED[unit_of(asked.facts)]}"
    return {"numbers": tuple(numbers.items()), "units": units, "radius": radius}


def _units(kind: str, risk: Risk, asked: Asked) -> str:
    """In one sentence: of what the excess risk is a mean, and how long coefficients may be."""
    declared = asked.model.domain is not None
    those = f"those of {one_line(risk.target)}" if declared else "of a column whose values lie in [0, 1]"
    if kind in LOCATION:
        return f"{those}{', squared' if kind == 'mean' else ''}"
    assert isinstance(risk.feasible, Ball)
    scaled = "scaled features" if declared else "features whose rows have norm 1"
    ball = f"coefficients of {scaled} of length at most {float(risk.feasible.radius):.4g}"
    if isinstance(risk.loss, Huber):
        those = f"those of {one_line(risk.target)}" if declared else "of targets in [-1, 1]"
        bend = f"{float(risk.loss.threshold):.4g}"
        return f"{those}, squared (a miss beyond {bend} counts linearly); {ball}"
    nothing = "ln 2 = 0.69" if isinstance(risk.loss, Logistic) else f"ln {risk.loss.margins}"
    return f"of the logistic loss, {nothing} where nothing is known; {ball}"
