"""Plans for single releases: a number, a table or a vector with noise, a selection, a threshold. No data."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet.data import Category, Domain, Facts, Number, Vector
from discreet.errors import ParameterError
from discreet.funds import FAILING, Funds
from discreet.mechanisms.additive import CoordinateLaplace, Gaussian, Laplace, ProductLaplace
from discreet.mechanisms.mechanism import Mechanism, calibrate
from discreet.mechanisms.selection import Exponential, PermuteAndFlip
from discreet.mechanisms.stable import StableHistogram
from discreet.mechanisms.threshold import AboveThreshold, AboveThresholdLaplace
from discreet.plan import PURE, Asked, Row
from discreet.query import Count, Equals, Histogram, KeyCount, Query, Sum, VectorSum

_PRIVATE_SIZE = "the number of people is private under add-remove: plan a sum and a count, and divide one by the other"


def rows(kind: str, asked: Asked) -> list[Row]:
    """One row for each mechanism: its noise, and the error that it promises."""
    return _ROWS[kind](asked)


# A query plus noise.


def _count(asked: Asked) -> list[Row]:
    return _additive(asked, asked.facts, Count(Equals("it", "yes")), 1, (Laplace, Gaussian))


def _sum(asked: Asked) -> list[Row]:
    facts = asked.with_domain(Domain(it=Number(0, 1, step=Fraction(1, 2**20))))
    return _additive(asked, facts, Sum("it"), 1, (Laplace, Gaussian))


def _average(asked: Asked) -> list[Row]:
    """A sum divided by the number of rows, which must be public."""
    size = asked.facts.size
    if not asked.facts.neighbours.replace_one or asked.facts.neighbours.rows > 1:
        return [Row(kind.__name__, "", refusal=_PRIVATE_SIZE) for kind in (Laplace, Gaussian)]
    if size is None and asked.alpha is None:
        raise ParameterError("a plan for an average needs size=, or alpha= to find the size", argument="size")
    return [_divided(row, size) for row in _sum(asked)]


def _divided(row: Row, size: int | None) -> Row:
    theorem = f"{row.theorem}, divided by the public size"
    if row.refusal:
        return row
    if size is None or row.error is None:
        return replace(row, theorem=theorem, error=None)
    return replace(row, theorem=theorem, error=row.error / size, alpha=None)


def _histogram(asked: Asked) -> list[Row]:
    cells = asked.number("cells")
    facts = asked.with_domain(Domain(it=Number(0, max(1, cells - 1), step=1)))
    return _additive(asked, facts, Histogram("it"), cells, (Laplace, Gaussian))


def _vector(asked: Asked) -> list[Row]:
    dimension = asked.number("d")
    facts = asked.with_domain(Domain(it=Vector(dimension, norm=1)))
    kinds = (CoordinateLaplace, ProductLaplace, Gaussian)
    return _additive(asked, facts, VectorSum("it"), dimension, kinds)


def _additive(asked: Asked, facts: Facts, query: Query, cells: int, kinds: Sequence[Any]) -> list[Row]:
    """Noise of each kind on all coordinates at once: the error is a union bound over them."""
    found = []
    for kind in kinds:
        theorem = f"{kind.__name__}, theorem and accuracy"
        row = _calibrated(asked, kind.__name__, theorem, functools.partial(kind, query), facts)
        if row.mechanism is not None:
            row = _promising(asked, row, row.mechanism.noise_range(1 - asked.beta / cells, facts))
        found.append(row)
    return found


def _keys(asked: Asked) -> list[Row]:
    """Counts of what is there, by noise that ends at a bound: who is shown is off by no more than it."""
    method, funds = StableHistogram.__name__, asked.funds.keeping(FAILING)
    if asked.pure or funds.failure == 0:
        return [Row(method, "", refusal="that a rare key appears may fail to be private: it needs a delta > 0")]
    facts = asked.with_domain(Domain(it=Category("no", "yes")))

    def make(noise: Fraction) -> StableHistogram:
        return StableHistogram.of(KeyCount("it"), epsilon=1 / noise, delta=funds.failure, facts=facts)

    row = _calibrated(asked, method, "StableHistogram, theorem and accuracy", make, facts, funds)
    if row.refusal:
        return [row]
    least = row.mechanism.certain_count(float(asked.beta))
    row = replace(row, assuming=f"a key appears if it has {least:,} rows, with probability 1 - beta for each")
    return [_promising(asked, row, float(row.mechanism.bound))]


# Selections and thresholds.


def _select(asked: Asked) -> list[Row]:
    candidates = asked.number("candidates")
    facts = asked.with_domain(Domain(it=Number(0, max(1, candidates - 1), step=1)))
    found = []
    for kind in (Exponential, PermuteAndFlip):
        theorem = f"{kind.__name__}, accuracy: best - score <= ln(m/beta) / rate"
        row = _calibrated(asked, kind.__name__, theorem, functools.partial(_selecting, kind), facts)
        if row.noise is not None:
            row = _promising(asked, row, float(row.noise) * math.log(candidates / asked.beta))
        found.append(row)
    return found


def _selecting(kind: Any, noise: Fraction) -> Any:
    return kind(Histogram("it"), 1 / noise)


def _questioning(kind: Any, sensitivity: int, noise: Fraction) -> Any:
    return kind(noise, 2 * noise, sensitivity=sensitivity)


def _threshold(asked: Asked) -> list[Row]:
    """The window inside which a yes or a no may be wrong, over all questions of one conversation."""
    questions = asked.number("questions")
    found = []
    for kind in (AboveThreshold, AboveThresholdLaplace):
        make = functools.partial(_questioning, kind, Count().sensitivity(asked.facts).linf)
        theorem = f"{kind.__name__}, accuracy over {questions} questions"
        row = _calibrated(asked, kind.__name__, theorem, make, asked.facts)
        if row.mechanism is not None:
            row = _promising(asked, row, float(row.mechanism.window(asked.beta, questions=questions)))
        found.append(row)
    return found


# What they share.


def _calibrated(
    asked: Asked,
    method: str,
    theorem: str,
    make: Callable[[Fraction], Mechanism],
    facts: Facts,
    funds: Funds | None = None,
) -> Row:
    try:
        mechanism: Any = calibrate(make, funds=funds or asked.funds, facts=facts)
    except ParameterError as refused:
        return Row(method, theorem, refusal=PURE if asked.pure else str(refused))
    noise = next(
        getattr(mechanism, field) for field in ("scale", "threshold_scale", "rate") if hasattr(mechanism, field)
    )
    return Row(method, theorem, 1 / noise if hasattr(mechanism, "rate") else noise, mechanism=mechanism)


def _promising(asked: Asked, row: Row, error: float) -> Row:
    """An error that does not depend on the size, in both directions."""
    alpha = None if asked.facts.size is None else error / asked.facts.size
    needed = None if asked.alpha is None else math.ceil(error / asked.alpha)
    return replace(row, error=error, alpha=alpha, needed=needed)


_ROWS: dict[str, Callable[[Asked], list[Row]]] = {
    "average": _average,
    "count": _count,
    "histogram": _histogram,
    "keys": _keys,
    "select": _select,
    "sum": _sum,
    "threshold": _threshold,
    "vector": _vector,
}
