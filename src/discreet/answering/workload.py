"""Questions that are all known beforehand: one release, one charge, an answer and a proven bound for each.

    plan = choose(questions, facts, funds=ledger.funds(), beta=1/20)      best bound first
    got = release(plan[0].mechanism, table, ledger=ledger)
    answers(questions, plan[0].mechanism, got.value, facts, beta=1/20)    values with the bound of each

Ways to release:

    marginals   for every set of columns that a question mentions, its *scope*, the histogram over it; with half of
                the variance if another scope contains it
    questions   every question itself
    histogram   one histogram over all columns mentioned; everything else is a sum of its cells
    weights     averaged multiplicative weights (`mwem.py`), which never shows a count

Bounds. The questions are fixed before the noise is drawn, so a union over their k numbers is enough: what is read off a
release is a fixed sum of independent noises, and exceeds t with probability at most beta / k (`measured.noise_bound`).
`choose` puts the way with the least bound first; the order is a function of public sizes alone. Sums are compared in
units of the largest contribution of a row.

The answers are better than that. The maximum-entropy fit to all that was released (`fit.py`) knows that counts are not
negative and that different scopes agree. An answer is the fitted number v, moved into [y - t, y + t] around the
released number y if it lies outside; its bound is t + |v - y|, at most 2 t, and all bounds hold together with
probability 1 - beta, since t does.

Scopes inside others. On 24 made-up tables (mixtures of independent columns, 20,000 rows, all pairs and triples, epsilon
0.1 and 1) leaving them out, since larger scopes imply them, made the largest error 1.7 and 1.2 times as large. Half of
the variance instead of all of it changed the largest error by -6 and +4 %, the mean by -4 and 0 %; the proven bound is
1.22 times as large. It was preferred with an eye on bench/pmw_tables.py, too. Columns alone, if nobody asks about them,
did not help.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet import exact
from discreet.answering.averaged_weights import averaged_weights
from discreet.answering.linear_query import Question, linear, scope_of
from discreet.answering.marginals import Marginals
from discreet.answering.reading import answers, bound, largest
from discreet.data import Facts
from discreet.errors import ParameterError
from discreet.exact import Exact
from discreet.funds import Funds
from discreet.mechanisms import NOISES, Mechanism, calibrate
from discreet.query import EVERYTHING, MAX_CELLS, Count, Histogram, Sum

__all__ = ["Marginals", "Way", "answers", "bound", "checked", "choose", "marginals"]

_INNER = Fraction(5, 7)  # the scale for a scope inside another: half of the variance


@dataclass(frozen=True, slots=True)
class Way:
    """One way to answer a workload: the mechanism with the least noise that is admitted and its proven bound, in the
    largest contributions of a row (persons, for counts); or why there is none."""

    method: str
    mechanism: Mechanism | None
    bound: float
    note: str = ""


def choose(questions: Sequence[Question], facts: Facts, *, funds: Funds, beta: Exact) -> list[Way]:
    """All ways to answer the questions within the funds, least bound first; those that cannot be used last."""
    asked = checked(questions, facts)
    failure = exact.probability(beta=beta)
    plain = all(isinstance(query, Histogram) and query.where == EVERYTHING for query in asked)
    methods = ("marginals", "histogram") if plain else ("marginals", "questions", "histogram")
    ways = [_noisy(method, asked, facts, funds, failure, kind) for method in methods for kind in NOISES]
    ways.append(_weights(asked, facts, funds, failure))
    return sorted(ways, key=lambda way: way.bound)


def checked(questions: Sequence[Question], facts: Facts) -> tuple[Question, ...]:
    """The distinct questions, if all of them can be answered."""
    if not questions:
        raise ParameterError("a workload needs at least one question, found none")
    for each in questions:
        if not isinstance(each, (Count, Sum, Histogram)):
            raise ParameterError(f"a question is a Count, a Sum or a Histogram, found {type(each).__name__}")
        each.sensitivity(facts)
        if linear(each, facts.domain) is None:
            names = ", ".join(scope_of(each, facts.domain))
            raise ParameterError(f"a question about {names} has too many cells to be listed; ask for it on its own")
    return tuple(dict.fromkeys(questions))


def marginals(
    questions: Sequence[Question], facts: Facts, *, funds: Funds, kind: str = "gaussian", method: str = "marginals"
) -> Marginals:
    """The release of this method with the least noise that is admitted."""
    queries, ratios = _released(method, checked(questions, facts), facts)

    def make(noise: Fraction) -> Marginals:
        return Marginals(queries, tuple(noise * ratio for ratio in ratios), kind)

    found: Marginals = calibrate(make, funds=funds, facts=facts)
    return found


def _released(method: str, questions: Sequence[Question], facts: Facts) -> tuple[list[Question], list[Fraction]]:
    """What is released, and the ratios of the scales: in contributions of a row, smaller for scopes inside others."""
    if method == "questions":
        return list(questions), [largest(query, facts) for query in questions]
    scopes = list(dict.fromkeys(scope_of(query, facts.domain) for query in questions))
    columns = {name for scope in scopes for name in scope}
    if method == "histogram":
        return [_whole(tuple(name for name in facts.domain.names if name in columns))], [Fraction(1)]
    inner = [any(set(scope) < set(other) for other in scopes) for scope in scopes]
    return [_whole(scope) for scope in scopes], [_INNER if inside else Fraction(1) for inside in inner]


def _noisy(method: str, asked: tuple[Question, ...], facts: Facts, funds: Funds, beta: Fraction, kind: str) -> Way:
    name = f"{method}, {kind} noise"
    columns = {column for query in asked for column in scope_of(query, facts.domain)}
    cells = math.prod(facts.domain.column(column).size for column in columns)
    if method == "histogram" and cells > MAX_CELLS:
        return Way(name, None, math.inf, f"{cells:,} cells are too many for one histogram")
    try:
        mechanism = marginals(asked, facts, funds=funds, kind=kind, method=method)
    except ParameterError as error:
        return Way(name, None, math.inf, str(error))
    if mechanism.numbers(facts) > MAX_CELLS:
        return Way(name, None, math.inf, f"{mechanism.numbers(facts):,} numbers are too many for one release")
    return Way(name, mechanism, bound(asked, mechanism, facts, beta=beta))


def _weights(asked: tuple[Question, ...], facts: Facts, funds: Funds, beta: Fraction) -> Way:
    try:
        mechanism = averaged_weights(asked, facts, funds=funds, beta=beta)
    except ParameterError as error:
        return Way("weights", None, math.inf, str(error))
    return Way("weights", mechanism, mechanism.error(beta, facts))


def _whole(scope: tuple[str, ...]) -> Question:
    return Histogram(scope) if scope else Count()
