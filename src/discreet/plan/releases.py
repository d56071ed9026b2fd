"""Methods for single releases: a number, a table or a vector with noise, a selection, a threshold. No data."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from discreet.core import FAILING, Funds, ParameterError
from discreet.data import Facts, Number, Vector
from discreet.mechanisms import (
    AboveThreshold,
    AboveThresholdLaplace,
    CoordinateLaplace,
    Exponential,
    Gaussian,
    Laplace,
    PermuteAndFlip,
    ProductLaplace,
    StableHistogram,
    calibrate,
)
from discreet.method import Maker, Method, Methods, Offer, Refused
from discreet.plan.problems import Problem, by_error, constant
from discreet.query import Count, Equals, Histogram, KeyCount, Query, Sum, VectorSum

_PRIVATE_SIZE = "the number of people is private under add-remove: plan a sum and a count, and divide one by the other"
_UNIT = Number(0, 1, step=Fraction(1, 2**20))


def methods(problem: Problem) -> Methods:
    """One method for each mechanism: its noise, and the error that it promises."""
    return Methods(_KINDS[problem.kind](problem))


def _calibrated(
    name: str,
    theorem: str,
    make: Callable[[Fraction], Any],
    facts: Facts,
    funds: Funds,
    error: Callable[[Any], float],
    condition: Callable[[Any], str] = lambda mechanism: "",
) -> Maker:
    def method() -> Method:
        mechanism: Any = calibrate(make, funds=funds, facts=facts)
        known = [field for field in ("scale", "threshold_scale", "rate") if hasattr(mechanism, field)]
        noise = getattr(mechanism, known[0])
        noise = 1 / noise if "rate" in known else noise
        return constant(name, theorem, error(mechanism), noise, mechanism, condition(mechanism))

    return method


def _additive(problem: Problem, facts: Facts, query: Query, cells: int, kinds: Sequence[Any]) -> dict[str, Maker]:
    """Noise of each kind on all coordinates at once: the error is a union bound over them."""
    sure = 1 - problem.beta / cells
    return {
        kind.__name__: _calibrated(
            kind.__name__,
            f"{kind.__name__}, theorem and accuracy",
            functools.partial(kind, query),
            facts,
            problem.funds,
            lambda mechanism: float(mechanism.noise_range(sure, facts)),
        )
        for kind in kinds
    }


def _count(problem: Problem) -> dict[str, Maker]:
    return _additive(problem, problem.facts(), Count(Equals("it", "yes")), 1, (Laplace, Gaussian))


def _sum(problem: Problem) -> dict[str, Maker]:
    return _additive(problem, problem.facts(_UNIT), Sum("it"), 1, (Laplace, Gaussian))


def _average(problem: Problem) -> dict[str, Maker]:
    """A sum divided by the number of rows, which must be public."""
    if not problem.counted:
        return {kind.__name__: functools.partial(Refused, kind.__name__, _PRIVATE_SIZE) for kind in (Laplace, Gaussian)}
    if problem.size is None and problem.alpha is None:
        raise ParameterError("a plan for an average needs size=, or alpha= to find the size", argument="size")
    return {name: functools.partial(_divided, name, make) for name, make in _sum(problem).items()}


def _divided(name: str, make: Maker) -> Method | Refused:
    whole = make()
    if isinstance(whole, Refused):
        return whole

    def solve(size: int | None) -> Offer:
        offer = whole.offer(size)
        assert offer.promise.bound is not None
        bound, theorem = None if size is None else offer.promise.bound / size, offer.promise.theorem
        promise = dataclasses.replace(offer.promise, bound=bound, theorem=f"{theorem}, divided by the public size")
        return dataclasses.replace(offer, promise=promise)

    return by_error(name, solve, whole.needed)


def _histogram(problem: Problem) -> dict[str, Maker]:
    cells = problem.number("cells")
    facts = problem.facts(Number(0, max(1, cells - 1), step=1))
    return _additive(problem, facts, Histogram("it"), cells, (Laplace, Gaussian))


def _vector(problem: Problem) -> dict[str, Maker]:
    dimension = problem.number("d")
    kinds = (CoordinateLaplace, ProductLaplace, Gaussian)
    return _additive(problem, problem.facts(Vector(dimension, norm=1)), VectorSum("it"), dimension, kinds)


def _keys(problem: Problem) -> dict[str, Maker]:
    """Counts of what is there, by noise that ends at a bound: who is shown is off by no more than it."""
    name, funds, facts = StableHistogram.__name__, problem.funds.keeping(FAILING), problem.facts()
    if problem.funds.pure or funds.failure == 0:
        reason = "that a rare key appears may fail to be private: it needs a delta > 0"
        return {name: lambda: Refused(name, reason)}

    def make(noise: Fraction) -> StableHistogram:
        return StableHistogram.of(KeyCount("it"), epsilon=1 / noise, delta=funds.failure, facts=facts)

    def condition(mechanism: StableHistogram) -> str:
        least = mechanism.certain_count(float(problem.beta))
        return f"a key appears if it has {least:,} rows, with probability 1 - beta for each"

    theorem = "StableHistogram, theorem and accuracy"
    return {name: _calibrated(name, theorem, make, facts, funds, lambda found: float(found.bound), condition)}


def _select(problem: Problem) -> dict[str, Maker]:
    candidates = problem.number("candidates")
    facts = problem.facts(Number(0, max(1, candidates - 1), step=1))
    logs = math.log(candidates / problem.beta)

    def maker(kind: Any) -> Maker:
        theorem = f"{kind.__name__}, accuracy: best - score <= ln(m/beta) / rate"
        return _calibrated(
            kind.__name__,
            theorem,
            lambda noise: kind(Histogram("it"), 1 / noise),
            facts,
            problem.funds,
            lambda mechanism: float(1 / mechanism.rate) * logs,
        )

    return {kind.__name__: maker(kind) for kind in (Exponential, PermuteAndFlip)}


def _threshold(problem: Problem) -> dict[str, Maker]:
    """The window inside which a yes or a no may be wrong, over all questions of one conversation."""
    questions, facts = problem.number("questions"), problem.facts()
    sensitivity = Count().sensitivity(facts).linf

    def maker(kind: Any) -> Maker:
        return _calibrated(
            kind.__name__,
            f"{kind.__name__}, accuracy over {questions} questions",
            lambda noise: kind(noise, 2 * noise, sensitivity=sensitivity),
            facts,
            problem.funds,
            lambda mechanism: float(mechanism.window(problem.beta, questions=questions)),
        )

    return {kind.__name__: maker(kind) for kind in (AboveThreshold, AboveThresholdLaplace)}


_KINDS: dict[str, Callable[[Problem], dict[str, Maker]]] = {
    "average": _average,
    "count": _count,
    "histogram": _histogram,
    "keys": _keys,
    "select": _select,
    "sum": _sum,
    "threshold": _threshold,
    "vector": _vector,
}
