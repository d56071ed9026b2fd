"""Methods for single releases: a number, a table or a vector with noise, a selection, a threshold. No data."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet.core import FAILING, Funds, ParameterError
from discreet.data import Category, Facts, Number, Vector
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
from discreet.query import Count, Equals, Histogram, KeyCount, Sum, VectorSum

_PRIVATE_SIZE = "the number of people is private under add-remove: plan a sum and a count, and divide one by the other"
_UNIT = Number(0, 1, step=Fraction(1, 2**20))


def methods(problem: Problem) -> Methods:
    """One method for each mechanism: its noise, and the error that it promises."""
    match problem.kind:
        case "keys":
            return Methods(_keys(problem))
        case "select":
            return Methods(_select(problem))
        case "threshold":
            return Methods(_threshold(problem))
        case "average":
            return Methods(_average(problem))
    return Methods(_additive(problem))


def _calibrated(
    kind: Any,
    about: str,
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
        name, theorem = kind.__name__, f"{kind.__name__}, {about}"
        return constant(name, theorem, error(mechanism), noise, mechanism, condition(mechanism))

    return method


def _additive(problem: Problem) -> dict[str, Maker]:
    """Noise of each kind on all coordinates at once: the error is a union bound over them."""
    kinds: tuple[Any, ...] = (Laplace, Gaussian)
    cells = 1
    column: Any = _UNIT
    query: Any = Sum("it")
    match problem.kind:
        case "count":
            column, query = Category("no", "yes"), Count(Equals("it", "yes"))
        case "histogram":
            cells, query = problem.number("cells"), Histogram("it")
            column = Number(0, max(1, cells - 1), step=1)
        case "vector":
            cells, query = problem.number("d"), VectorSum("it")
            column, kinds = Vector(cells, norm=1), (CoordinateLaplace, ProductLaplace, Gaussian)
    facts, sure = problem.facts(column), 1 - problem.beta / cells

    def error(mechanism: Any) -> float:
        return float(mechanism.noise_range(sure, facts))

    return {
        kind.__name__: _calibrated(
            kind, "theorem and accuracy", functools.partial(kind, query), facts, problem.funds, error
        )
        for kind in kinds
    }


def _average(problem: Problem) -> dict[str, Maker]:
    """A sum divided by the number of rows, which must be public."""
    sums = _additive(problem)
    if not problem.counted:
        return {name: functools.partial(Refused, name, _PRIVATE_SIZE) for name in sums}
    if problem.size is None and problem.alpha is None:
        raise ParameterError("a plan for an average needs size=, or alpha= to find the size", argument="size")

    def divided(name: str, make: Maker) -> Method | Refused:
        whole = make()
        if isinstance(whole, Refused):
            return whole

        def solve(size: int | None) -> Offer:
            offer = whole.offer(size)
            theorem = f"{offer.promise.theorem}, divided by the public size"
            bound = None if size is None else float(offer.promise) / size
            return replace(offer, promise=replace(offer.promise, bound=bound, theorem=theorem))

        return by_error(name, solve, whole.needed)

    return {name: functools.partial(divided, name, make) for name, make in sums.items()}


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

    about = "theorem and accuracy"
    return {name: _calibrated(StableHistogram, about, make, facts, funds, lambda found: float(found.bound), condition)}


def _select(problem: Problem) -> dict[str, Maker]:
    candidates = problem.number("candidates")
    facts, logs = problem.facts(Number(0, max(1, candidates - 1), step=1)), math.log(candidates / problem.beta)

    def maker(kind: Any) -> Maker:
        def make(noise: Fraction) -> Any:
            return kind(Histogram("it"), 1 / noise)

        about = "accuracy: best - score <= ln(m/beta) / rate"
        return _calibrated(kind, about, make, facts, problem.funds, lambda found: float(1 / found.rate) * logs)

    return {kind.__name__: maker(kind) for kind in (Exponential, PermuteAndFlip)}


def _threshold(problem: Problem) -> dict[str, Maker]:
    """The window inside which a yes or a no may be wrong, over all questions of one conversation."""
    questions, facts = problem.number("questions"), problem.facts()
    sensitivity = Count().sensitivity(facts).linf

    def maker(kind: Any) -> Maker:
        def make(noise: Fraction) -> Any:
            return kind(noise, 2 * noise, sensitivity=sensitivity)

        def window(mechanism: Any) -> float:
            return float(mechanism.window(problem.beta, questions=questions))

        return _calibrated(kind, f"accuracy over {questions} questions", make, facts, problem.funds, window)

    return {kind.__name__: maker(kind) for kind in (AboveThreshold, AboveThresholdLaplace)}
