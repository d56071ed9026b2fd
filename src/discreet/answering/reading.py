"""What a release of several queries says about questions that were fixed before it: numbers, and proven errors.

A number that is read off a release is a fixed sum of independent noises. It exceeds t with probability at most beta / k
(`measured.noise_bound`), k being how many numbers the questions have together; so all of them stay below with
probability 1 - beta.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import exact
from discreet.answering.averaged_weights import AveragedWeights
from discreet.answering.linear_query import Question, linear, scope_of
from discreet.answering.marginals import Marginals, shape_of
from discreet.answering.measurement import Measured, noise_bound
from discreet.data import Facts, Floats
from discreet.errors import ParameterError
from discreet.exact import Exact
from discreet.hypothesis import Fit, Linear, fit
from discreet.mechanisms import Mechanism
from discreet.query import EVERYTHING, Sum


def largest(query: Question, facts: Facts) -> Fraction:
    """The largest contribution of a row."""
    return max(Fraction(1), Fraction(query.sensitivity(facts).linf, facts.neighbours.rows)) * query.unit(facts)


def bound(questions: Sequence[Question], mechanism: Marginals, facts: Facts, *, beta: Exact) -> float:
    """With probability 1 - beta no number of any question, read off the release, is further off than this: in the
    largest contributions of a row."""
    readings = _readings(questions, mechanism, facts, exact.probability(beta=beta))
    return max(
        float(reading.error.max(initial=0.0)) / float(largest(query, facts))
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


def _answered(query: Question, reading: _Reading, measured: Sequence[Measured], fitted: Fit, facts: Facts) -> Answered:
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
