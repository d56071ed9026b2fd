"""Questions that are all known in advance: one release, one charge, an answer and a proven bound for each.

    listed = methods(questions, facts, funds=ledger.funds(), beta=1/20)
    best = choose(listed, "auto", facts.size)                             the least bound
    got = release(best.mechanism, table, ledger=ledger)
    answers(questions, best.mechanism, got.value, facts, beta=1/20)       values with the bound of each

Ways to release:

    marginals   for every set of columns that a question mentions, its *scope*, the histogram over it; with half of
                the variance if another scope contains it
    residuals   the same marginals with the least Gaussian noise: `residual_marginals.py`
    questions   every question itself
    histogram   one histogram over all columns mentioned; everything else is a sum of its cells
    weights     averaged multiplicative weights (`averaged_weights.py`), which never shows a count

Bounds. The questions are fixed before the noise is drawn, so a union over their k numbers is enough: what is read off a
release is a fixed sum of independent noises, and exceeds t with probability at most beta / k (`noise_bound`).
By default the way with the least bound is taken; which it is, is a function of public sizes alone. Sums are compared in
units of the largest contribution of a row.

The answers are better than that. The maximum-entropy fit to all that was released knows that counts are not
negative and that different scopes agree. The truth lies in [y - t, y + t] around the released number y, for counts
without what is below 0, all of them with probability 1 - beta. An answer is the number of its interval that is nearest
to the fitted one; its bound is the distance to the further end, at most 2 t.

Residuals have a fit of their own (`hypothesis.residuals`), which knows the exact variance of every part and takes no
large table. Gaussian noise on every marginal for the same price has a bound T >= t, and no stated bound exceeds T: the
answer is the number nearest to the fitted one that is within T of both ends (`nearest`). A cell is also not above what
its smaller marginals are at the most. Where T is more than an even cell, the number of rows that was declared over the
number of cells, plain noise says little about a cell and the fit much: there the answer is the fitted number moved into
its interval, which is no longer than that of plain noise, so its stated bound is at most 2 T. With T there too, a
made-up table of 16 levels and 1,500 rows had twice the mean error at epsilon 1 and 8 times at .1; where T is
less than an even cell it made no mean error that was seen more than 6 % larger.

Scopes inside others. On 24 made-up tables (mixtures of independent columns, 20,000 rows, all pairs and triples, epsilon
0.1 and 1) leaving them out, since larger scopes imply them, made the largest error 1.7 and 1.2 times as large. Half of
the variance instead of all of it changed the largest error by -6 and +4 %, the mean by -4 and 0 %; the proven bound is
1.22 times as large. It was preferred with an eye on bench/pmw_tables.py, too. Columns alone that
no question mentions did not help.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet.answering.averaged_weights import AveragedWeights, Together, averaged_weights
from discreet.answering.linear_query import linear, require_linear, scope_of
from discreet.answering.measurement import Measured, noise_bound
from discreet.answering.residual_marginals import ResidualMarginals, residual_marginals
from discreet.core import Exact, Funds, Guarantee, ParameterError, Rng, exact
from discreet.data import Dataset, Facts, Floats, Needs
from discreet.hypothesis import Linear, Scope, fit, parts_of_scopes
from discreet.mechanisms import KINDS, NOISES, Mechanism, Noisy, Promise, calibrate, noisy_by
from discreet.method import Maker, Method, Methods, Offer
from discreet.query import EVERYTHING, MAX_CELLS, Count, Histogram, Question, Sensitivity, is_question, numbers

RESIDUALS = "residuals, gaussian noise"
ROOM = 2  # times the bound of plain noise where that exceeds an even cell: the answer is the fitted number, unmoved
_INNER = Fraction(5, 7)  # the scale for a scope inside another: half of the variance


@functools.lru_cache(maxsize=32)
def _moved(query: Question, facts: Facts) -> tuple[Sensitivity, Fraction, int]:
    """By how much a person moves a query, in which unit, and of how many numbers: asked again at every step of a
    calibration."""
    return query.sensitivity(facts), query.unit(facts), math.prod(query.shape(facts.domain))


@dataclass(frozen=True, slots=True, init=False)
class Marginals:
    """Release several counts, sums and histograms at once, each with noise of its own scale on every number.

    Theorem.   It is the composition of its parts: the guarantee is the sum of those of `Gaussian` or `Laplace` noise of
               scale s_i on query i. Gaussian: zCDP sum_i D2_i / (2 s_i^2); Laplace: pure sum_i D1_i / s_i. "zero-sum"
               is `ZeroSumLaplace` for counts of groups, and Laplace for the others.
    Accuracy.  The noise of query i is that of its part with its scale, independent of that of other queries.
    Edges.     One pass over the rows. Answers stand in the order of the queries: whole numbers for counts, the shape of
               the histogram, the column's units for a sum.
    Reference. Composition: docs/proofs/composition.md; [CKS20] theorem 14.
    """

    NAME: ClassVar[str] = "marginals/1"
    queries: tuple[Question, ...]
    scales: tuple[Fraction, ...]
    kind: str

    def __init__(self, queries: Iterable[Question], scales: Iterable[Exact], kind: str = "gaussian") -> None:
        parts = tuple(queries)
        wrong = [type(query).__name__ for query in parts if not is_question(query)]
        if wrong or not parts:
            raise ParameterError(
                f"queries must be one or more Counts, Sums and Histograms, found {wrong[0] if wrong else 'none'}"
            )
        widths = tuple(exact.positive(scale=scale) for scale in scales)
        if len(widths) != len(parts):
            raise ParameterError(f"there must be one scale for each of {len(parts)} queries, found {len(widths)}")
        if kind not in KINDS:
            raise ParameterError(f"kind must be one of {', '.join(KINDS)}; found {kind!r}")
        exact.freeze(self, queries=parts, scales=widths, kind=kind)

    def guarantee(self, facts: Facts) -> Guarantee:
        pairs = zip(self.queries, self.scales, strict=True)
        parts = Counter((*_moved(query, facts), scale, noisy_by(self.kind, query)) for query, scale in pairs)
        total = Guarantee.nothing(facts.neighbours)
        for (moved, unit, cells, scale, noisy), times in parts.items():
            one = noisy.law(scale).guarantee(moved, unit=unit, dimension=cells, neighbours=facts.neighbours)
            total = total + one * times
        return total

    def numbers(self, facts: Facts) -> int:
        return sum(numbers(query, facts) for query in self.queries)

    def needs(self, facts: Facts) -> Needs:
        return Needs(queries=self.queries)

    def run(self, data: Dataset, rng: Rng) -> tuple[Any, ...]:
        sums, released, start = data.exact_sum(Together(self.queries)), [], 0
        for query, part in zip(self.queries, self.parts, strict=True):
            shape = query.shape(data.facts.domain)
            stop = start + math.prod(shape)
            released.append(part.noised(sums[start:stop].reshape(shape), data.facts, rng))
            start = stop
        return tuple(released)

    @property
    def parts(self) -> list[Noisy]:
        """The mechanisms of which it is the composition."""
        pairs = zip(self.queries, self.scales, strict=True)
        return [noisy_by(self.kind, query)(query, scale) for query, scale in pairs]

    def measured(self, value: Sequence[Any], facts: Facts, *, entry: int = 0) -> list[Measured]:
        """What was released, as measurements of the ledger's `entry`."""
        return [Measured.of(part, numbers, facts, entry=entry) for part, numbers in zip(self.parts, value, strict=True)]


# Choosing a way.


def methods(questions: Sequence[Question], facts: Facts, *, funds: Funds, beta: Exact) -> Methods:
    """All ways to answer the questions within the funds. A promise is in the largest contributions of a row (persons,
    for counts), over all questions; by default the least is taken."""
    asked, failure = distinct(questions, facts), exact.probability(beta=beta)
    cells = math.prod(facts.domain.column(column).size for column in _columns(asked, facts))

    def method(name: str, mechanism: Mechanism, error: float, theorem: str) -> Method:
        promise = Promise(error, theorem, beta=float(failure), measure="error")
        return Method.solving(name, lambda size: Offer(name, mechanism, promise))

    def noisy(what: str, kind: str) -> Method:
        if what == "histogram" and cells > MAX_CELLS:
            raise ParameterError(f"{cells:,} cells are too many for one histogram")
        mechanism = marginals(asked, facts, funds=funds, kind=kind, method=what)
        if mechanism.numbers(facts) > MAX_CELLS:
            raise ParameterError(f"{mechanism.numbers(facts):,} numbers are too many for one release")
        error = bound(asked, mechanism, facts, beta=failure)
        return method(f"{what}, {kind} noise", mechanism, error, "sums of independent noises, a union over the numbers")

    def residuals() -> Method:
        scopes = list(dict.fromkeys(require_linear(query, facts.domain).scope for query in asked))
        mechanism = residual_marginals(scopes, facts, funds=funds)
        error = max(
            float(errors.max(initial=0.0)) / float(largest(query, facts))
            for query, errors in zip(asked, residual_errors(asked, mechanism, facts, failure)[0], strict=True)
        )
        return method(RESIDUALS, mechanism, error, "sums of independent noises, a union over the numbers")

    def weights() -> Method:
        mechanism = averaged_weights(asked, facts, funds=funds, beta=failure)
        error = mechanism.error(failure, facts)
        return method("weights", mechanism, error, "regret of multiplicative weights, exponential mechanism")

    questions_too = () if all(query.marginal for query in asked) else ("questions",)
    makers: dict[str, Maker] = {
        f"{what}, {kind} noise": functools.partial(noisy, what, kind)
        for what in ("marginals", *questions_too, "histogram")
        for kind in NOISES
    }
    return Methods({**makers, RESIDUALS: residuals, "weights": weights})


def distinct(questions: Sequence[Question], facts: Facts) -> tuple[Question, ...]:
    """The distinct questions, if all of them can be answered."""
    if not questions:
        raise ParameterError("a workload needs at least one question, found none")
    for query in questions:
        if not is_question(query):
            raise ParameterError(f"a question is a Count, a Sum or a Histogram, found {type(query).__name__}")
        query.sensitivity(facts)
        if linear(query, facts.domain) is None:
            names = ", ".join(scope_of(query, facts.domain))
            raise ParameterError(f"a question about {names} has too many cells to be listed; ask for it on its own")
    return tuple(dict.fromkeys(questions))


def marginals(
    questions: Sequence[Question], facts: Facts, *, funds: Funds, kind: str = "gaussian", method: str = "marginals"
) -> Marginals:
    """The release of this method with the least noise that is admitted: of the questions, of one histogram over all
    their columns, or of the histogram over each scope. Scales are in contributions of a row, smaller for scopes inside
    others."""
    asked = distinct(questions, facts)
    scopes = list(dict.fromkeys(scope_of(query, facts.domain) for query in asked))
    if method == "histogram":
        scopes = [_columns(asked, facts)]
    queries: list[Question] = [Histogram(scope) if scope else Count() for scope in scopes]
    ratios = [_INNER if any(set(one) < set(other) for other in scopes) else Fraction(1) for one in scopes]
    if method == "questions":
        queries, ratios = list(asked), [largest(query, facts) for query in asked]
    return calibrate(
        lambda noise: Marginals(queries, [noise * ratio for ratio in ratios], kind), funds=funds, facts=facts
    )


def _columns(questions: Sequence[Question], facts: Facts) -> tuple[str, ...]:
    """All columns that some question mentions, in the domain's order."""
    mentioned = {name for query in questions for name in scope_of(query, facts.domain)}
    return tuple(name for name in facts.domain.names if name in mentioned)


def largest(query: Question, facts: Facts) -> Fraction:
    """The largest contribution of a row."""
    return max(Fraction(1), Fraction(query.sensitivity(facts).linf, facts.neighbours.rows)) * query.unit(facts)


# Reading a release.


def bound(questions: Sequence[Question], mechanism: Marginals, facts: Facts, *, beta: Exact) -> float:
    """With probability 1 - beta no number of any question, read off the release, is further off than this: in the
    largest contributions of a row."""
    readings = zip(questions, readings_of(questions, mechanism, facts, exact.probability(beta=beta)), strict=True)
    return max(float(reading.error.max(initial=0.0)) / float(largest(query, facts)) for query, reading in readings)


def answers(
    questions: Sequence[Question], mechanism: Mechanism, value: Any, facts: Facts, *, beta: Exact
) -> list[tuple[Floats, Floats]]:
    """What a release says about the questions: for each its numbers, and how far off every one is at the most.

    All bounds hold together with probability 1 - beta.
    """
    failure = exact.probability(beta=beta)
    if isinstance(mechanism, ResidualMarginals):
        return residual_answers(questions, mechanism, value, facts, failure)
    if isinstance(mechanism, AveragedWeights):
        error = mechanism.error(failure, facts)
        return [(each, np.full(each.shape, error)) for each in mechanism.answers(questions, value, facts)]
    if not isinstance(mechanism, Marginals):
        raise ParameterError(f"a workload is answered by marginals, residuals or averaged weights, found {mechanism!r}")
    measured = mechanism.measured(value, facts)
    fitted = fit(measured, facts.domain, total=public_total(facts))
    pairs = []
    for query, reading in zip(questions, readings_of(questions, mechanism, facts, failure), strict=True):
        form = require_linear(query, facts.domain)
        read = reading.of(measured[reading.source], form, facts)
        top = np.array(math.inf) if query.counting else None
        pairs.append(nearest(fitted.answer(form), read, reading.error, 2 * reading.error, top=top))
    return pairs


def residual_answers(
    questions: Sequence[Question], mechanism: ResidualMarginals, value: Sequence[Any], facts: Facts, beta: Fraction
) -> list[tuple[Floats, Floats]]:
    """What released residuals say: for each question its numbers, and how far off every one is at the most."""
    fitted, found = mechanism.fitted(value, facts), []
    errors, plain, parts = residual_errors(questions, mechanism, facts, beta)
    tops = {part: mechanism.marginal(value, part) + error for part, error in parts.items()}
    for query, error, most in zip(questions, errors, plain, strict=True):
        form = require_linear(query, facts.domain)
        read, top = form.of(mechanism.marginal(value, form.scope)), np.array(math.inf)
        for part in parts_of_scopes([form.scope] if form.whole else []):
            shape = [size if name in part else 1 for name, size in zip(form.scope, form.shape, strict=True)]
            top = np.minimum(top, tops[part].reshape(shape)) if part in tops else top
        numbers = form.of(np.maximum(fitted.marginal(form.scope), 0.0))
        room = np.where(most * form.cells > (facts.size or math.inf), ROOM, 1.0) * most
        found.append(nearest(numbers, read, error, room, top=top if query.counting else None))
    return found


def nearest(wanted: Floats, read: Floats, error: Floats, most: Floats, *, top: Floats | None) -> tuple[Floats, Floats]:
    """The numbers nearest to those wanted with a bound of at most `most`, if `error` is not more, and their bounds.

    The truth lies within `error` of what was read; of counts also between 0 and `top`, which is None if these are none.
    """
    low, high = read - error, read + error
    if top is not None:
        high = np.maximum(np.minimum(high, top), 0.0)
        low = np.clip(low, 0.0, high)
    numbers = np.maximum(np.minimum(np.clip(wanted, low, high), low + most), high - most)
    return numbers, np.maximum(high - numbers, numbers - low)


def residual_errors(
    questions: Sequence[Question], mechanism: ResidualMarginals, facts: Facts, beta: Fraction
) -> tuple[list[Floats], list[Floats], dict[Scope, float]]:
    """How far off the numbers of each question are, read off the release; how far they would be, read off Gaussian
    noise on every cell of the marginals for the same price; and how far off the parts of the questions' marginals are,
    where that leaves no number further off than plain noise. The first and the last hold together with probability
    1 - beta."""
    forms = [require_linear(query, facts.domain) for query in questions]
    scopes, known = {form.scope for form in forms}, public_total(facts) is not None
    numbers = sum(math.prod(form.outputs) for form in forms)
    parts = {
        part: math.sqrt(mechanism.variance(part, facts.domain, rows_known=known))
        for part in parts_of_scopes(form.scope for form in forms if form.whole)
        if part and part not in scopes
    }
    cells = sum(math.prod(facts.domain.column(name).size for name in part) for part in parts)
    scale, spreads = mechanism.plain_scale(scopes, facts), [mechanism.variances(form, facts) for form in forms]

    def errors(more: int) -> tuple[float, list[Floats]]:
        reach = noise_bound(mechanism.kind, 1.0, copies=1, log_sets=math.log(numbers + more), failure=float(beta))
        return reach, [reach * np.sqrt(variance) for variance, _ in spreads]

    (reach, found), (further, all_found) = errors(0), errors(cells)
    plain = [reach * scale * np.sqrt(squares) for _, squares in spreads]
    if any((error > most).any() for error, most in zip(all_found, plain, strict=True)):
        return found, plain, {}
    return all_found, plain, {part: further * deviation for part, deviation in parts.items()}


def noises(mechanism: Mechanism, facts: Facts) -> list[tuple[Question, str, float]]:
    """What a workload's release would measure: each query with the law and the scale of its noise."""
    if isinstance(mechanism, ResidualMarginals):
        tops = ((scope, mechanism.top(scope, Histogram(scope).shape(facts.domain))) for scope in mechanism.scopes)
        return [(Histogram(scope), mechanism.kind, top) for scope, top in tops]
    if isinstance(mechanism, Marginals):
        pairs = zip(mechanism.queries, mechanism.scales, strict=True)
        return [(query, mechanism.kind, float(scale)) for query, scale in pairs]
    return []


def public_total(facts: Facts) -> float | None:
    """The number of rows, if it is public."""
    known = facts.neighbours.replace_one and facts.neighbours.rows == 1
    return None if facts.size is None or not known else float(facts.size)


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
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
        off = self.center * ((public_total(facts) or 0.0) - float(measured.value.sum()))
        return np.asarray(form.of(measured.sum_over(form.scope, facts.domain)) + off)


def readings_of(questions: Sequence[Question], mechanism: Marginals, facts: Facts, beta: Fraction) -> list[Reading]:
    """For each question the part of the release from which it is read best."""
    if mechanism.kind not in NOISES:  # bounds on uneven weights are of independent noises
        raise ParameterError(f"a workload is read from gaussian or laplace noise, found {mechanism.kind} noise")
    log_numbers = math.log(sum(math.prod(query.shape(facts.domain)) for query in questions))

    def noise(place: int, copies: float) -> float:
        """The bound for a sum of this many noises of a part."""
        unit = float(mechanism.queries[place].unit(facts))
        steps = float(mechanism.scales[place]) / unit
        return noise_bound(mechanism.kind, steps, copies=copies, log_sets=log_numbers, failure=float(beta)) * unit

    def weighed(place: int, squares: float, top: float, uneven: bool) -> float:
        """The bound for a sum of noises with weights up to `top` whose squares add up to `squares`.

        ln E exp(l w X) <= (w / top)^2 ln E exp(l top X), since ln E exp(l X) is a power series in l^2 without negative
        terms: so many copies of the noise, times top. One copy is a whole number only if there is one weight.
        """
        if squares <= 1e-9 * top**2:
            return 0.0
        copies = squares / top**2
        return top * noise(place, max(copies, 1 + 1e-9) if uneven else copies)

    def reading(place: int, query: Question, form: Linear) -> Reading:
        if mechanism.queries[place] == query:
            return Reading(place, True, np.zeros(form.outputs), np.full(form.outputs, noise(place, 1)))
        scope = scope_of(mechanism.queries[place], facts.domain)
        cells = math.prod(facts.domain.column(name).size for name in scope)
        # For every number the sums of its weights, and of their squares, over the measured cells.
        ones, copies = np.ones(form.cells), cells // form.cells
        sums, squares = form.of(ones) * copies, replace(form, weight=form.weight**2).of(ones) * copies
        center = np.zeros_like(sums)
        if public_total(facts) is not None:
            center = np.where(4 * sums**2 > cells * squares, sums / cells, 0.0)  # it takes off a quarter or more
        spread = squares - cells * center**2
        tops = np.abs(form.weight).max(initial=0.0) + np.abs(center)
        numbers = zip(spread.ravel().tolist(), tops.ravel().tolist(), (center.ravel() != 0).tolist(), strict=True)
        errors = [weighed(place, *number) for number in numbers]
        return Reading(place, False, center, np.array(errors).reshape(form.outputs))

    best = []
    for query in questions:
        form = require_linear(query, facts.domain)
        ways = [
            reading(place, query, form)
            for place, part in enumerate(mechanism.queries)
            if part == query or (part.where == EVERYTHING and part.counting and set(form.scope) <= part.scope)
        ]
        if not ways:
            raise ParameterError(f"the release says nothing about {query!r}")
        best.append(min(ways, key=lambda way: float(way.error.max(initial=0.0))))
    return best
