"""Questions that are all known beforehand: one release, one charge, an answer and a proven bound for each.

    plan = choose(questions, facts, admits=ledger.admits, beta=1/20)      best bound first
    got = release(plan[0].mechanism, table, ledger=ledger)
    answers(questions, plan[0].mechanism, got.value, facts, beta=1/20)    values with the bound of each

Ways to release:

    marginals   for every set of columns that a question mentions, its *scope*, the histogram over it; and, with twice
                the variance, over every column alone
    questions   every question itself
    histogram   one histogram over all columns mentioned; everything else is a sum of its cells
    weights     averaged multiplicative weights (`mwem.py`), which never shows a count

Bounds. The questions are fixed before the noise is drawn, so a union over their k numbers is enough: what is read off a
release is a fixed sum of independent noises, and exceeds t with probability at most beta / k (`measured.noise_bound`).
`auto` takes the way with the least bound, a function of public sizes alone. Sums are compared in units of the largest
contribution of a row.

The answers are better than that. The maximum-entropy fit to all that was released (`fit.py`) knows that counts are not
negative and that different scopes agree. An answer is the fitted number v, moved into [y - t, y + t] around the
released number y if it lies outside; its bound is t + |v - y|, at most 2 t, and all bounds hold together with
probability 1 - beta, since t does.

Every scope gets the same noise, also one inside another. On made-up tables (mixtures of independent columns, 20,000
rows, all pairs and triples, epsilon 0.1 and 1) leaving out the inner scopes made the largest error 1.5 times as large;
twice the precision for them changed it by a few per cent either way; and the even split has the least proven bound.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet import exact
from discreet.data import Dataset, Facts
from discreet.errors import ParameterError
from discreet.exact import Exact
from discreet.guarantee import Guarantee
from discreet.mechanism import Mechanism, calibrate
from discreet.mechanisms.noises import GaussianNoise, LaplaceNoise
from discreet.noise import Rng
from discreet.pmw.fit import Fitted, fit
from discreet.pmw.measured import Measured, noise_bound
from discreet.pmw.mwem import AveragedWeights, Together, averaged_weights
from discreet.pmw.questions import Floats, Linear, Question, linear, scope_of
from discreet.predicate import EVERYTHING
from discreet.query import Count, Histogram, Sum

KINDS = ("gaussian", "laplace")
MAX_HISTOGRAM = 2**22
_ALONE = Fraction(7, 5)  # the scale for a column alone that nobody asked for: twice the variance of the others


@dataclass(frozen=True, slots=True, init=False)
class Marginals:
    """Release several counts, sums and histograms at once, each with noise of its own scale on every number.

    Theorem.   It is the composition of its parts: the guarantee is the sum of those of `Gaussian` or `Laplace` noise of
               scale s_i on query i. Gaussian: zCDP sum_i D2_i / (2 s_i^2); Laplace: pure sum_i D1_i / s_i.
    Accuracy.  The noise of query i is that of `Gaussian` or `Laplace` with its scale, independent for every number.
    Edges.     One pass over the rows. Answers stand in the order of the queries: whole numbers for counts, the shape of
               the histogram, the column's units for a sum.
    Reference. Composition: docs/proofs/composition.md; [CKS20] theorem 14.
    """

    NAME: ClassVar[str] = "marginals/1"
    queries: tuple[Question, ...]
    scales: tuple[Fraction, ...]
    kind: str

    def __init__(self, queries: Iterable[Question], scales: Iterable[Exact], kind: str = "gaussian") -> None:
        asked = tuple(queries)
        wrong = [each for each in asked if not isinstance(each, (Count, Sum, Histogram))]
        if wrong or not asked:
            found = type(wrong[0]).__name__ if wrong else "none"
            raise ParameterError(f"queries must be one or more Counts, Sums and Histograms, found {found}")
        widths = tuple(exact.positive(scale=each) for each in scales)
        if len(widths) != len(asked):
            raise ParameterError(f"there must be one scale for each of {len(asked)} queries, found {len(widths)}")
        if kind not in KINDS:
            raise ParameterError(f'kind must be "gaussian" or "laplace", found {kind!r}')
        exact.freeze(self, queries=asked, scales=widths, kind=kind)

    def guarantee(self, facts: Facts) -> Guarantee:
        parts = Counter(
            (query.sensitivity(facts), query.unit(facts), scale)
            for query, scale in zip(self.queries, self.scales, strict=True)
        )
        total = Guarantee.nothing(facts.neighbours)
        for (moved, unit, scale), times in parts.items():
            one = self._noise(scale).guarantee(moved, unit=unit, dimension=1, neighbours=facts.neighbours)
            total = total + one * times
        return total

    def run(self, data: Dataset, rng: Rng) -> tuple[Any, ...]:
        sums, found = data.exact_sum(Together(self.queries).partial), []
        start = 0
        for query, scale in zip(self.queries, self.scales, strict=True):
            shape, unit = shape_of(query, data.facts), query.unit(data.facts)
            stop = start + math.prod(shape)
            noise = self._noise(scale).draw(shape, unit=unit, rng=rng)
            found.append(_in_units(sums[start:stop].reshape(shape) + noise, unit))
            start = stop
        return tuple(found)

    def measured(self, value: Sequence[Any], facts: Facts, *, entry: int = 0, order: int = 1) -> list[Measured]:
        """What was released, as measurements of the ledger's `entry`; `order` is the first one's."""
        triples = zip(self.queries, self.scales, value, strict=True)
        return [
            Measured(
                query, self.kind, float(scale), float(query.unit(facts)), np.asarray(got, float), entry, order + place
            )
            for place, (query, scale, got) in enumerate(triples)
        ]

    def _noise(self, scale: Fraction) -> GaussianNoise | LaplaceNoise:
        return GaussianNoise(scale) if self.kind == "gaussian" else LaplaceNoise(scale)


def shape_of(query: Question, facts: Facts) -> tuple[int, ...]:
    return query.shape(facts.domain) if isinstance(query, Histogram) else ()


def _in_units(noisy: Any, unit: Fraction) -> Any:
    """As the additive mechanisms release them: ints where the unit is whole, floats elsewhere."""
    sums = np.asarray(noisy)
    if sums.ndim == 0:
        steps = int(sums)
        return steps * unit.numerator if unit.denominator == 1 else steps * unit.numerator / unit.denominator
    return sums


# What to release.


@dataclass(frozen=True, slots=True)
class Way:
    """One way to answer a workload: the mechanism with the least noise that is admitted and its proven bound, in the
    largest contributions of a row (persons, for counts); or why there is none."""

    method: str
    mechanism: Mechanism | None
    bound: float
    note: str = ""


Admits = Callable[[Any], bool]


def choose(questions: Sequence[Question], facts: Facts, *, admits: Admits, beta: Exact) -> list[Way]:
    """All ways to answer the questions within what is admitted, least bound first; those that cannot be used last.

    admits  `ledger.admits`, or `within(budget, facts=facts)`
    """
    asked = checked(questions, facts)
    failure = exact.probability(beta=beta)
    plain = all(isinstance(query, Histogram) and query.where == EVERYTHING for query in asked)
    methods = ("marginals", "histogram") if plain else ("marginals", "questions", "histogram")
    ways = [_noisy(method, asked, facts, admits, failure, kind) for method in methods for kind in KINDS]
    ways.append(_weights(asked, facts, admits, failure))
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
    questions: Sequence[Question], facts: Facts, *, admits: Admits, kind: str = "gaussian", method: str = "marginals"
) -> Marginals:
    """The release of this method with the least noise that is admitted."""
    queries, ratios = _released(method, checked(questions, facts), facts)

    def make(noise: Fraction) -> Marginals:
        return Marginals(queries, tuple(noise * ratio for ratio in ratios), kind)

    found: Marginals = calibrate(make, admits=admits)
    return found


def _released(method: str, questions: Sequence[Question], facts: Facts) -> tuple[list[Question], list[Fraction]]:
    """What is released, and the ratios of the scales: in contributions of a row, equal but for columns alone."""
    if method == "questions":
        return list(questions), [_largest(query, facts) for query in questions]
    scopes = list(dict.fromkeys(scope_of(query, facts.domain) for query in questions))
    columns = {name for scope in scopes for name in scope}
    if method == "histogram":
        return [_whole(tuple(name for name in facts.domain.names if name in columns))], [Fraction(1)]
    wide = any(len(scope) > 1 for scope in scopes)
    alone = [(name,) for name in facts.domain.names if wide and name in columns and (name,) not in scopes]
    ratios = [Fraction(1)] * len(scopes) + [_ALONE] * len(alone)
    return [_whole(scope) for scope in [*scopes, *alone]], ratios


def _whole(scope: tuple[str, ...]) -> Question:
    return Histogram(scope) if scope else Count()


def _largest(query: Question, facts: Facts) -> Fraction:
    """The largest contribution of a row."""
    return max(Fraction(1), Fraction(query.sensitivity(facts).linf, facts.neighbours.rows)) * query.unit(facts)


def _noisy(method: str, asked: tuple[Question, ...], facts: Facts, admits: Admits, beta: Fraction, kind: str) -> Way:
    name = f"{method}, {kind} noise"
    columns = {column for query in asked for column in scope_of(query, facts.domain)}
    cells = math.prod(facts.domain.column(column).size for column in columns)
    if method == "histogram" and cells > MAX_HISTOGRAM:
        return Way(name, None, math.inf, f"{cells:,} cells are too many for one histogram")
    try:
        mechanism = marginals(asked, facts, admits=admits, kind=kind, method=method)
    except ParameterError as error:
        return Way(name, None, math.inf, str(error))
    return Way(name, mechanism, bound(asked, mechanism, facts, beta=beta))


def _weights(asked: tuple[Question, ...], facts: Facts, admits: Admits, beta: Fraction) -> Way:
    try:
        mechanism = averaged_weights(asked, facts, admits=admits, beta=beta)
    except ParameterError as error:
        return Way("weights", None, math.inf, str(error))
    return Way("weights", mechanism, mechanism.error(beta, facts))


# Bounds and answers.


def bound(questions: Sequence[Question], mechanism: Marginals, facts: Facts, *, beta: Exact) -> float:
    """With probability 1 - beta no number of any question, read off the release, is further off than this: in the
    largest contributions of a row."""
    readings = _readings(questions, mechanism, facts, exact.probability(beta=beta))
    return max(
        float(reading.error.max(initial=0.0)) / float(_largest(query, facts))
        for query, reading in zip(questions, readings, strict=True)
    )


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """The answer to one question: its numbers, and for each how far off it is at the most."""

    value: Floats
    bound: Floats


def answers(
    questions: Sequence[Question], mechanism: Mechanism, value: Any, facts: Facts, *, beta: Exact
) -> list[Answered]:
    """What a release says about the questions. All bounds hold together with probability 1 - beta."""
    failure = exact.probability(beta=beta)
    if isinstance(mechanism, AveragedWeights):
        error = mechanism.error(failure, facts)
        return [Answered(each, np.full(each.shape, error)) for each in mechanism.answers(questions, value, facts)]
    if not isinstance(mechanism, Marginals):
        raise ParameterError(f"a workload is answered by Marginals or AveragedWeights, found {mechanism!r}")
    measured = mechanism.measured(value, facts)
    fitted = fit(measured, facts.domain, total=public_total(facts))
    readings = _readings(questions, mechanism, facts, failure)
    return [
        _answered(query, reading, measured, fitted, facts) for query, reading in zip(questions, readings, strict=True)
    ]


def public_total(facts: Facts) -> float | None:
    """The number of rows, if it is public."""
    known = facts.neighbours.replace_one and facts.neighbours.rows == 1
    return None if facts.size is None or not known else float(facts.size)


def _answered(
    query: Question, reading: _Reading, measured: Sequence[Measured], fitted: Fitted, facts: Facts
) -> Answered:
    form = _form(query, facts)
    read = reading.of(measured[reading.source], form, facts)
    guess = fitted.hypothesis.mean(form) * fitted.total
    value = np.clip(guess, read - reading.error, read + reading.error)
    return Answered(value, reading.error + np.abs(value - read))


@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    """How a question is read off one part of a release.

    source  the part's place               error   with probability 1 - beta / k each, how far off the numbers are
    itself  the part is the question       center  for each number what is taken off all weights: the number of rows is
                                                   public, so that much of it need not be read
    """

    source: int
    itself: bool
    center: Floats
    error: Floats

    def of(self, measured: Measured, form: Linear, facts: Facts) -> Floats:
        if self.itself:
            return measured.value
        scope = scope_of(measured.query, facts.domain)
        table = measured.table(facts.domain) if scope else measured.value
        kept = table.sum(axis=tuple(axis for axis, name in enumerate(scope) if name not in form.scope))
        found: Floats = form.of(kept) + self.center * ((public_total(facts) or 0.0) - float(table.sum()))
        return found


def _readings(questions: Sequence[Question], mechanism: Marginals, facts: Facts, beta: Fraction) -> list[_Reading]:
    """For each question the part of the release from which it is read best."""
    numbers = sum(math.prod(shape_of(query, facts)) for query in questions)
    found = []
    for query in questions:
        form = _form(query, facts)
        ways = [
            _reading(place, query, form, mechanism, facts, float(beta), math.log(numbers))
            for place, part in enumerate(mechanism.queries)
            if part == query or _covers(part, form, facts)
        ]
        if not ways:
            raise ParameterError(f"the release says nothing about {query!r}")
        found.append(min(ways, key=lambda way: float(way.error.max(initial=0.0))))
    return found


def _covers(part: Question, form: Linear, facts: Facts) -> bool:
    whole = not isinstance(part, Sum) and part.where == EVERYTHING
    return whole and set(form.scope) <= set(scope_of(part, facts.domain))


def _reading(
    place: int, query: Question, form: Linear, mechanism: Marginals, facts: Facts, beta: float, log_numbers: float
) -> _Reading:
    part, unit = mechanism.queries[place], float(mechanism.queries[place].unit(facts))
    steps = float(mechanism.scales[place]) / unit
    outputs = form.outputs
    if part == query:
        error = noise_bound(mechanism.kind, steps, copies=1, log_sets=log_numbers, failure=beta) * unit
        return _Reading(place, True, np.zeros(outputs), np.full(outputs, error))
    cells = math.prod(facts.domain.column(name).size for name in scope_of(part, facts.domain))
    copies = cells // form.cells  # measured cells in one of the question's
    sums, squares = _moments(form, copies)
    center = np.zeros_like(sums)
    if public_total(facts) is not None:
        center = np.where(4 * sums**2 > cells * squares, sums / cells, 0.0)  # it takes off a quarter or more
    spread = squares - cells * center**2
    largest = np.abs(form.weight).max(initial=0.0) + np.abs(center)
    errors = [
        _weighed(mechanism.kind, steps, float(each), float(top), bool(moved), log_numbers, beta)
        for each, top, moved in zip(spread.ravel(), largest.ravel(), center.ravel() != 0, strict=True)
    ]
    return _Reading(place, False, center, np.array(errors).reshape(outputs))


def _weighed(kind: str, scale: float, squares: float, top: float, uneven: bool, log_sets: float, beta: float) -> float:
    """The bound for a sum of noises with weights up to `top` whose squares add up to `squares`.

    ln E exp(l w X) <= (w / top)^2 ln E exp(l top X), since ln E exp(l X) is a power series in l^2 without negative
    terms: so many copies of the noise, times top. One copy is a whole number only if there is one weight.
    """
    if squares <= 1e-9 * top**2:
        return 0.0
    copies = squares / top**2
    return top * noise_bound(
        kind, scale, copies=max(copies, 1 + 1e-9) if uneven else copies, log_sets=log_sets, failure=beta
    )


def _moments(form: Linear, copies: int) -> tuple[Floats, Floats]:
    """For every number the sums of its weights, and of their squares, over the measured cells."""
    ones = np.ones(form.cells)
    squared = Linear(form.scope, form.shape, form.outputs, form.place, form.weight**2)
    return form.of(ones) * copies, squared.of(ones) * copies


def _form(query: Question, facts: Facts) -> Linear:
    form = linear(query, facts.domain)
    if form is None:
        raise ParameterError(f"{query!r} has too many cells to be listed")
    return form
