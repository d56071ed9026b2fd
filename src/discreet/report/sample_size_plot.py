"""What learning takes and gives: promised risk, and the sizes that a promise needs. Budgets, sizes, released models."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from discreet.core import Budget, Exact, Neighbours, ParameterError, exact, one_line
from discreet.drawing import INK, SERIES
from discreet.method import UNPROVEN, least_size
from discreet.pac import sample_size
from discreet.plan import KINDS, RULES, Model, plan, quick_bound
from discreet.report.plot import Panel, Plot, Scale, Series, draw, listed, several, shown

Numbers = Mapping[str, Any]
"""Of a plan: whole numbers, and maybe a radius."""

Measured = tuple[Any, int, float]
"""(epsilon, size, excess): measured on a table that may be looked at."""

Promises = Mapping[tuple[Fraction, int], float | None]
"""The bound that is promised for an epsilon and a size; None: nothing."""

Lines = Sequence[tuple[str, Sequence[tuple[Fraction | int, float | None]]]]
"""Lines, each with its name: points (epsilon or size, bound)."""

_DELTA = Fraction(1, 10**6)
_TWENTIETH = Fraction(1, 20)
_NAMES = {"mean": "a mean", "median": "a median", "linear": "a linear regression", "logistic": "a logistic regression"}
MODELS = ("linear", "logistic", "mean", "median")
QUICK = ("linear", "logistic", "median")
"""Here only the method that a fit takes by default is looked at: a plan of all methods takes seconds for each point."""


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
    learners = sorted({*MODELS, *RULES} - {"interior"})
    if kind not in learners:
        raise ParameterError(f"risk is about {', '.join(learners)}; found {kind!r}")
    given = _checked_numbers(kind, {**numbers, **({} if radius is None else {"radius": radius})})
    values, persons = several(epsilons=epsilons), [exact.whole(sizes=each) for each in several(sizes=sizes)]
    points, relation = [_point(each) for each in measured], Neighbours.of(neighbours)
    promises = {
        (epsilon, size): _promised(kind, Budget(epsilon, delta), relation, beta, size, given)
        for epsilon in values
        for size in persons
    }
    what = _NAMES.get(kind, f"a {kind}")
    if given:
        what += f" ({', '.join(f'{name} = {shown(float(value))}' for name, value in given.items())})"
    word = "share of wrong rows" if kind in RULES else "excess risk"
    alt = _finding(what, word, promises, [excess for *_, excess in points])
    stars = {"color": INK, "linestyle": "", "marker": "*", "markersize": 9}
    over_epsilon: Lines = [(f"{size:,} persons", [(each, promises[each, size]) for each in values]) for size in persons]
    over_size = [
        (f"epsilon {exact.shown(each)}", [(size, promises[each, size]) for size in persons]) for each in values
    ]
    frames = []
    for place, (axis, lines) in enumerate((("epsilon", over_epsilon), ("persons", over_size))):
        drawn = [Series(name, [(float(x), y) for x, y in line]) for name, line in lines]
        # What is not above zero has no place on a logarithmic axis and is in the table only.
        above = [(float(point[place]), point[2]) for point in points if point[2] > 0]
        scale = Scale(axis, ticks=[float(each) for each in (values, persons)[place]])
        drawn += [Series("measured", above, stars)] if points else []
        frames.append(Panel(scale, Scale(f"{word}, at most"), drawn))
    caption = _caption(
        kind, word, exact.nonnegative(delta=delta), exact.probability(beta=beta), relation, promises, given
    )
    return Plot(
        f"What {what} promises",
        alt,
        caption,
        ("epsilon", "persons", f"{word}, at most", "measured"),
        (
            *((float(epsilon), size, bound, None) for (epsilon, size), bound in promises.items()),
            *((float(epsilon), size, None, excess) for epsilon, size, excess in points),
        ),
        draw(*frames, alt=alt),
    )


def _checked_numbers(kind: str, numbers: Numbers) -> dict[str, Any]:
    """The numbers of a plan. A missing number is the caller's mistake, not the learner's refusal."""
    about = KINDS[kind]
    counts = {name: value for name, value in numbers.items() if name != "radius"}
    radius = exact.moderate(radius=numbers["radius"]) if "radius" in numbers else None
    if set(about.needs) - set(counts) or set(counts) - set(about.numbers):
        takes = ", ".join(f"{name}=" for name in about.numbers) or "no number"
        raise ParameterError(f"{kind!r} takes {takes}; found {', '.join(sorted(counts)) or 'none'}")
    Model(radius=radius).check(kind, ())
    return counts if radius is None else {**counts, "radius": radius}


def _point(measured: Measured) -> tuple[Fraction, int, float]:
    try:
        epsilon, size, excess = measured
    except (TypeError, ValueError):
        raise ParameterError(f"a measured point is (epsilon, size, excess), found {measured!r}") from None
    return exact.positive(epsilon=epsilon), exact.whole(size=size), float(exact.number(excess=excess))


def _finding(what: str, word: str, promises: Promises, excesses: Sequence[float]) -> str:
    known = sorted((bound, size, epsilon) for (epsilon, size), bound in promises.items() if bound is not None)
    if not known:
        return f"At none of these sizes does {what} promise anything about its {word}."
    most, least = (
        f"{shown(bound)} with {size:,} persons at epsilon {exact.shown(epsilon)}"
        for bound, size, epsilon in (known[-1], known[0])
    )
    text = f"The {word} that {what} promises goes from {most} to {least}."
    return f"{text} Measured: between {shown(min(excesses))} and {shown(max(excesses))}." if excesses else text


def _caption(
    kind: str, word: str, delta: Fraction, beta: Fraction, relation: Neighbours, promises: Promises, numbers: Numbers
) -> str:
    how, units = f"with probability {float(1 - beta):g}", ""
    if kind not in RULES:
        how, units = "in expectation", " Units: rows of norm 1, targets within 1 of zero, values between 0 and 1."
    text = (
        f"The theorem's bound on the {word}, {how}, for the method that is taken by default; delta "
        f"{exact.shown(delta)}, {relation}. The upper picture runs along epsilon, the lower along the number of "
        f"persons; the points are the same.{units}"
    )
    if "radius" in numbers:
        ball = f"all coefficients of length at most {float(numbers['radius']):.3g} for rows of norm 1"
        text = f"The feasible set, a public choice: {ball}. {text}"
    gaps = sum(bound is None for bound in promises.values())
    if gaps:
        text += f" Where a point is missing ({gaps} of {len(promises)}) nothing is promised."
    if _grows(promises):
        text += " With very many persons a fit makes fewer passes over them, and its bound may grow again."
    return text


def _grows(promises: Promises) -> bool:
    """Whether the bound grows with the number of persons somewhere."""
    lines: dict[Fraction, list[float]] = {}
    for (epsilon, _), bound in promises.items():
        lines.setdefault(epsilon, []).extend([] if bound is None else [bound])
    return any(later > earlier for line in lines.values() for earlier, later in pairwise(line))


@functools.lru_cache(maxsize=1024)
def _cached_excess(
    kind: str, budget: Budget, relation: Neighbours, size: int, numbers: tuple[Any, ...]
) -> float | None:
    return quick_bound(kind, budget, relation, size, dict(numbers))


def _promised(
    kind: str, budget: Budget, relation: Neighbours, beta: Exact, size: int, numbers: dict[str, Any]
) -> float | None:
    """The bound for this size, or None where nothing is promised."""
    if kind in QUICK:
        return _cached_excess(kind, budget, relation, size, tuple(sorted(numbers.items())))
    rows = plan(kind, budget=budget, neighbours=relation, size=size, beta=beta, **numbers).rows
    bounds = [row.alpha if kind in RULES else row.error for row in rows]
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
"""What `sample_sizes` shows by default: a name, a kind of plan and its numbers."""


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
    values, wanted, sure = (
        several(epsilons=epsilons),
        exact.probability(exact.TINY, alpha=alpha),
        exact.probability(exact.TINY, beta=beta),
    )
    if not 1 <= len(learners) <= len(SERIES):
        raise ParameterError(f"learners must be 1 to {len(SERIES)} of them, found {len(learners)}")
    relation, needed = Neighbours.of(neighbours), {}
    for name, (kind, numbers) in learners.items():
        if kind not in (*MODELS, *RULES, "questions"):
            known = ", ".join(sorted((*MODELS, *RULES, "questions")))
            raise ParameterError(f"a learner is one of {known}; found {kind!r}")
        given = tuple(sorted(_checked_numbers(kind, numbers).items()))
        sizes = [_cached_need(kind, Budget(each, delta), relation, wanted, sure, given) for each in values]
        needed[one_line(name)] = sizes
    drawn = {name: sizes for name, sizes in needed.items() if any(size is not None for size in sizes)}
    refused = [name for name in needed if name not in drawn]
    if not drawn:
        raise ParameterError(f"no learner promises {exact.shown(wanted)} with any of these budgets: {listed(refused)}")
    middle = min(range(len(values)), key=lambda place: abs(math.log(values[place])))
    told = sorted((size, name) for name, sizes in drawn.items() if (size := sizes[middle]) is not None)
    alt = (
        f"Needed sizes fall about in proportion to one over epsilon. At epsilon {exact.shown(values[middle])}: "
        + listed([f"{shown(size)} for {name}" for size, name in told])
        + "."
    )
    caption = (
        f"How many persons each needs to promise alpha = {exact.shown(wanted)} with probability "
        f"{float(1 - sure):g} (learners of models: in expectation), delta {exact.shown(exact.nonnegative(delta=delta))}"
        f", {relation}, by the method that is taken by default."
        + (f" Left out, because nothing is promised with these budgets: {listed(refused)}." if refused else "")
    )
    ticks = [float(each) for each in values]
    lines = [Series(name, list(zip(ticks, sizes, strict=True))) for name, sizes in drawn.items()]
    return Plot(
        "How many persons does it take?",
        alt,
        caption,
        ("learner", *(f"epsilon {exact.shown(each)}" for each in values)),
        tuple((name, *sizes) for name, sizes in needed.items()),
        draw(Panel(Scale("epsilon", ticks=ticks), Scale("persons needed"), lines, height=4.1), alt=alt),
    )


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
