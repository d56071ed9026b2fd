"""What learning takes and gives: promised risk, needed sizes, and a learned box. Budgets, sizes and released models."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from discreet import exact
from discreet.describe import one_line
from discreet.errors import ParameterError
from discreet.exact import Exact
from discreet.funds import Funds
from discreet.guarantee import Budget, Neighbours
from discreet.method import UNPROVEN, choose, least_size
from discreet.pac.learners import sample_size
from discreet.plan import KINDS, RULES, plan
from discreet.plan.models import methods
from discreet.plan.problems import Model, Problem
from discreet.report.budget_plot import several
from discreet.report.plot import (
    INK,
    SERIES,
    Plot,
    draw,
    legend,
    listed,
    logarithmic,
    series,
    shown,
    split,
)

Numbers = Mapping[str, Any]
"""Of a plan: whole numbers, and maybe a radius."""

Measured = tuple[Any, int, float]
"""(epsilon, size, excess): what somebody measured on a table that they may look at."""

_DELTA = Fraction(1, 10**6)
_TWENTIETH = Fraction(1, 20)
_NAMES = {"mean": "a mean", "median": "a median", "linear": "a linear regression", "logistic": "a logistic regression"}
MODELS = ("linear", "logistic", "mean", "median")
QUICK = ("linear", "logistic", "median")
"""Here the solver that a fit takes unasked is looked at alone: a plan of all of them takes seconds for each point."""


# The promise against epsilon and size.


def risk(
    kind: str,
    *,
    epsilons: Sequence[Exact] = (0.1, 0.3, 1, 3),
    sizes: Sequence[int] = (1_000, 10_000, 100_000),
    delta: Exact = _DELTA,
    beta: Exact = _TWENTIETH,
    neighbours: Neighbours | str = "replace-one",
    measured: Sequence[Measured] = (),
    radius: Exact | None = None,
    **numbers: int,
) -> Plot:
    """The bound that a learner promises, against epsilon for every size, and against the size for every epsilon.

    kind, numbers  of `plan`: "logistic" with d=5, "box" with d=2 and bits=16
    measured       points (epsilon, size, excess) to draw in, from a table that is public or made up
    radius         linear, logistic: of the feasible set, for rows of norm 1; as in `plan`
    """
    if kind not in (*MODELS, *RULES) or kind == "interior":
        raise ParameterError(f"risk is about {', '.join(sorted({*MODELS, *RULES} - {'interior'}))}; found {kind!r}")
    _check_numbers(kind, numbers)
    shape = _shape(kind, radius)
    found, persons = several(epsilons=epsilons), [exact.whole(sizes=each) for each in several(sizes=sizes)]
    points = [_point(each) for each in measured]
    promise = {
        (epsilon, size): _promised(
            kind, Budget(epsilon, delta), Neighbours.of(neighbours), beta, size, {**numbers, **shape}
        )
        for epsilon in found
        for size in persons
    }
    word = "share of wrong rows" if kind in RULES else "excess risk"
    rows = (
        *((float(epsilon), size, bound, None) for (epsilon, size), bound in promise.items()),
        *((float(epsilon), size, None, excess) for epsilon, size, excess in points),
    )
    what = f"{_NAMES.get(kind, f'a {kind}')}{_with({**numbers, **shape})}"
    alt = _risk_finding(what, word, promise, points)

    def paint(over_epsilon: Any, over_size: Any) -> None:
        for place, size in enumerate(persons):
            line = [(float(epsilon), promise[epsilon, size]) for epsilon in found]
            over_epsilon.plot(*split(_known(line)), label=f"{size:,} persons", **series(place))
        for place, epsilon in enumerate(found):
            line = [(float(size), promise[epsilon, size]) for size in persons]
            over_size.plot(*split(_known(line)), label=f"epsilon {exact.shown(epsilon)}", **series(place))
        _measured(over_epsilon, [(float(epsilon), excess) for epsilon, _, excess in points])
        _measured(over_size, [(float(size), excess) for _, size, excess in points])
        for axes, name, ticks in (
            (over_epsilon, "epsilon", [float(each) for each in found]),
            (over_size, "persons", [float(each) for each in persons]),
        ):
            logarithmic(axes.xaxis, ticks)
            logarithmic(axes.yaxis)
            axes.set(xlabel=name, ylabel=f"{word}, at most")
            legend(axes)

    return Plot(
        f"What {what} promises",
        alt,
        _ball(shape)
        + _risk_caption(kind, word, exact.nonnegative(delta=delta), exact.probability(beta=beta), neighbours, promise),
        ("epsilon", "persons", f"{word}, at most", "measured"),
        rows,
        draw(paint, alt=alt, heights=(3.1, 3.1)),
    )


def _shape(kind: str, radius: Exact | None) -> dict[str, Fraction]:
    """The radius among the numbers of a plan, if there is one."""
    found = {} if radius is None else {"radius": exact.moderate(radius=radius)}
    Model(radius=found.get("radius")).check(kind, ())
    return found


def _ball(shape: Mapping[str, Fraction]) -> str:
    if not shape:
        return ""
    radius = f"{float(shape['radius']):.3g}"
    return f"The feasible set, a public choice: all coefficients of length at most {radius} for rows of norm 1. "


def _known(line: Sequence[tuple[float, float | None]]) -> list[tuple[float, float]]:
    return [(x, y) for x, y in line if y is not None]


def _measured(axes: Any, points: Sequence[tuple[float, float]]) -> None:
    """Stars; what is not above zero has no place on a logarithmic axis and is in the table only."""
    drawn = [point for point in points if point[1] > 0]
    if drawn:
        axes.plot(*split(drawn), label="measured", color=INK, linestyle="", marker="*", markersize=9)


def _point(measured: Measured) -> tuple[Fraction, int, float]:
    try:
        epsilon, size, excess = measured
    except (TypeError, ValueError):
        raise ParameterError(f"a measured point is (epsilon, size, excess), found {measured!r}") from None
    return exact.positive(epsilon=epsilon), exact.whole(size=size), float(exact.number(excess=excess))


def _risk_finding(
    what: str,
    word: str,
    promise: Mapping[tuple[Fraction, int], float | None],
    points: Sequence[tuple[Fraction, int, float]],
) -> str:
    known = {place: bound for place, bound in promise.items() if bound is not None}
    if not known:
        return f"At none of these sizes does {what} promise anything about its {word}."
    told = [
        f"{shown(bound)} with {size:,} persons at epsilon {exact.shown(epsilon)}"
        for (epsilon, size), bound in (max(known.items(), key=_bound), min(known.items(), key=_bound))
    ]
    said = f"The {word} that {what} promises goes from {told[0]} to {told[1]}."
    excesses = [excess for *_, excess in points]
    got = f" Measured: between {shown(min(excesses))} and {shown(max(excesses))}." if excesses else ""
    return said + got


def _bound(item: tuple[Any, float]) -> float:
    return item[1]


def _risk_caption(
    kind: str,
    word: str,
    delta: Fraction,
    beta: Fraction,
    neighbours: Neighbours | str,
    promise: Mapping[tuple[Fraction, int], float | None],
) -> str:
    how = f"with probability {float(1 - beta):g}" if kind in RULES else "in expectation"
    units = "" if kind in RULES else " Units: rows of norm 1, targets within 1 of zero, values between 0 and 1."
    gaps = sum(bound is None for bound in promise.values())
    gap = f" Where a point is missing ({gaps} of {len(promise)}) nothing is promised." if gaps else ""
    passes = " With very many persons a fit makes fewer passes over them, and its bound may grow again."
    return (
        f"The theorem's bound on the {word}, {how}, for the method that is taken unasked; delta {exact.shown(delta)}, "
        f"{Neighbours.of(neighbours)}. The upper picture runs along epsilon, the lower along the number of persons; "
        f"the points are the same.{units}{gap}{passes if _grows(promise) else ''}"
    )


def _grows(promise: Mapping[tuple[Fraction, int], float | None]) -> bool:
    """Whether somewhere more persons are promised less."""
    lines: dict[Fraction, list[float]] = {}
    for (epsilon, _), bound in promise.items():
        lines.setdefault(epsilon, []).extend([] if bound is None else [bound])
    return any(later > earlier for line in lines.values() for earlier, later in pairwise(line))


@functools.lru_cache(maxsize=1024)
def _cached_excess(
    kind: str, budget: Budget, relation: Neighbours, size: int, numbers: tuple[Any, ...]
) -> float | None:
    given = dict(numbers)
    model, funds = Model(radius=given.pop("radius", None)), Funds.of(budget)
    problem = Problem(kind, budget, relation, size, None, _TWENTIETH, funds, given, model=model)
    try:
        return choose(methods(problem), "auto", size).promise.bound
    except ParameterError:
        return None


def _promised(
    kind: str, budget: Budget, relation: Neighbours, beta: Exact, size: int, numbers: Numbers
) -> float | None:
    """The bound for this size, or None where nothing is promised."""
    if kind in QUICK:
        return _cached_excess(kind, budget, relation, size, tuple(sorted(numbers.items())))
    given: dict[str, Any] = dict(numbers)
    found = plan(kind, budget=budget, neighbours=relation, size=size, beta=beta, **given)
    bounds = [row.alpha if kind in RULES else row.error for row in found.rows]
    return min((bound for bound in bounds if bound is not None), default=None)


# The size that a promise needs.

EXAMPLES: dict[str, tuple[str, dict[str, int]]] = {
    "median": ("median", {}),
    "logistic, 5 features": ("logistic", {"d": 5}),
    "point between values of 32 bits": ("interior", {"bits": 32}),
    "best of 1,000 hypotheses": ("finite", {"hypotheses": 1_000}),
    "conjunction, 3 of 30": ("conjunction", {"d": 30, "k": 3}),
    "box, 2 features of 16 bits": ("box", {"d": 2, "bits": 16}),
    "rule, 3 of 50 conditions": ("rule", {"conditions": 50, "k": 3}),
    "1,000 questions, 20 bits": ("questions", {"questions": 1_000, "bits": 20}),
}
"""What `sample_sizes` shows unless told otherwise: a name, a kind of plan and its numbers."""


def sample_sizes(
    epsilons: Sequence[Exact] = (0.1, 0.3, 1),
    *,
    alpha: Exact = _TWENTIETH,
    beta: Exact = _TWENTIETH,
    delta: Exact = _DELTA,
    neighbours: Neighbours | str = "replace-one",
    learners: Mapping[str, tuple[str, Numbers]] = EXAMPLES,
) -> Plot:
    """How many persons every learner needs to promise alpha, against epsilon; those that refuse are named.

    alpha  of a learner its excess risk, of a learner of rules the share of wrong rows, of questions the error of every
           answer as a fraction of the persons; an interior point is found or not
    learners  by name: a kind of plan and its numbers, for linear and logistic also the radius
    """
    found, wanted, sure = several(epsilons=epsilons), exact.probability(alpha=alpha), exact.probability(beta=beta)
    if not 1 <= len(learners) <= len(SERIES):
        raise ParameterError(f"learners must be 1 to {len(SERIES)} of them, found {len(learners)}")
    relation = Neighbours.of(neighbours)
    needed = {
        name: [_needed(kind, Budget(each, delta), relation, wanted, sure, dict(numbers)) for each in found]
        for name, (kind, numbers) in learners.items()
    }
    shown_names = [name for name in needed if any(size is not None for size in needed[name])]
    refused = [one_line(name) for name in needed if name not in shown_names]
    if not shown_names:
        raise ParameterError(f"no learner promises {exact.shown(wanted)} with any of these budgets: {listed(refused)}")
    middle = min(range(len(found)), key=lambda place: abs(math.log(found[place])))
    told = sorted((needed[name][middle] or math.inf, one_line(name)) for name in shown_names)
    alt = (
        f"Needed sizes fall about in proportion to one over epsilon. At epsilon {exact.shown(found[middle])}: "
        + listed([f"{shown(size)} for {name}" for size, name in told if size < math.inf])
        + "."
    )
    caption = (
        f"How many persons each needs to promise alpha = {exact.shown(wanted)} with probability "
        f"{float(1 - sure):g} (learners of models: in expectation), delta {exact.shown(exact.nonnegative(delta=delta))}"
        f", {relation}, by the method that is taken unasked."
        + (f" Left out, because nothing is promised with these budgets: {listed(refused)}." if refused else "")
    )

    def paint(axes: Any) -> None:
        for place, name in enumerate(shown_names):
            points = [(float(each), size) for each, size in zip(found, needed[name], strict=True) if size is not None]
            axes.plot(*split(points), label=one_line(name), **series(place))
        logarithmic(axes.xaxis, map(float, found))
        logarithmic(axes.yaxis)
        axes.set(xlabel="epsilon", ylabel="persons needed")
        legend(axes)

    rows = tuple((one_line(name), *needed[name]) for name in needed)
    columns = ("learner", *(f"epsilon {exact.shown(each)}" for each in found))
    return Plot("How many persons does it take?", alt, caption, columns, rows, draw(paint, alt=alt, heights=(4.1,)))


@functools.lru_cache(maxsize=1024)
def _cached_need(
    kind: str, budget: Budget, relation: Neighbours, alpha: Fraction, beta: Fraction, numbers: tuple[Any, ...]
) -> int | None:
    given: dict[str, Any] = dict(numbers)
    try:
        if kind in QUICK:
            size = least_size(lambda size: (_cached_excess(kind, budget, relation, size, numbers) or math.inf) <= alpha)
            return None if size == UNPROVEN else size
        if kind in RULES and kind != "interior":
            return sample_size(kind, alpha, beta, budget.epsilon, budget.delta, relation, "auto", **given)
        wanted = None if kind == "interior" else alpha
        rows = plan(kind, budget=budget, neighbours=relation, beta=beta, alpha=wanted, **given).rows
    except ParameterError:
        return None
    return min((row.needed for row in rows if row.needed is not None and not row.imagined), default=None)


def _needed(
    kind: str, budget: Budget, relation: Neighbours, alpha: Fraction, beta: Fraction, numbers: Numbers
) -> int | None:
    known = (*MODELS, *RULES, "questions")
    if kind not in known:
        raise ParameterError(f"a learner is one of {', '.join(sorted(known))}; found {kind!r}")
    shape = _shape(kind, numbers.get("radius"))
    counts = {name: value for name, value in numbers.items() if name != "radius"}
    _check_numbers(kind, counts)
    numbers = {**counts, **shape}
    return _cached_need(kind, budget, relation, alpha, beta, tuple(sorted(numbers.items())))


def _check_numbers(kind: str, numbers: Numbers) -> None:
    """A missing number is the caller's mistake, not the learner's refusal."""
    about = KINDS[kind]
    if set(about.needs) - set(numbers) or set(numbers) - set(about.numbers):
        takes = ", ".join(f"{name}=" for name in about.numbers) or "no number"
        raise ParameterError(f"{kind!r} takes {takes}; found {', '.join(sorted(numbers)) or 'none'}")


def _with(numbers: Numbers) -> str:
    return f" ({', '.join(f'{name} = {shown(float(value))}' for name, value in numbers.items())})" if numbers else ""
