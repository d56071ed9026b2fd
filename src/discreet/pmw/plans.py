"""Plans for counting questions: what every way of answering k of them promises, before anything is spent. No data.

    questions   how many                bits or cells   log2 of, or the number of cells of the domain

pmw and lecture answer questions that are chosen as the answers come, and so does noise for each question; averaged
multiplicative weights and the noisy histogram need all the questions beforehand. The first two are priced as the
ledger would charge them in the worst case, all thresholds and all updates; a run pays for what it opens.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet import exact
from discreet.data import Facts
from discreet.domain import Category, Domain
from discreet.errors import ParameterError
from discreet.guarantee import Budget, Guarantee, Neighbours
from discreet.mechanism import calibrate, within
from discreet.mechanisms.additive import Gaussian, Laplace
from discreet.plan import Asked, Row
from discreet.pmw.hypothesis import MAX_DENSE
from discreet.pmw.measured import noise_bound
from discreet.pmw.mwem import MAX_CELLS as MAX_AVERAGED
from discreet.pmw.programs import (
    BETTER,
    LECTURE,
    Classic,
    Posed,
    better_for,
    least_alpha,
    lecture_for,
    needed,
)
from discreet.query import MAX_CELLS, Count, Histogram

MOST_BITS = 2**20
MOST_QUESTIONS = 10**30
AVERAGED, TABLE = "averaged weights", "noisy histogram"
_BEFOREHAND = "all questions are known beforehand"
_PUBLIC = "needs replace-one with one row a person, where the number of rows is public"
_IMAGINED = "the hypothesis would have more than {:,} cells: a row of the plan only"
_TOO_FEW = "no alpha below 1 fits this budget at this size"
_GAPS = 200  # sizes of the last gap that are compared


def rows(asked: Asked) -> list[Row]:
    """One row for each way: the error that it promises for a size, the size that it needs for an alpha."""
    if asked.facts.size is None and asked.alpha is None:
        raise ParameterError("a plan for questions needs size=, or alpha= to find the size")
    questions, cells = asked.number("questions"), _cells(asked)
    if questions > MOST_QUESTIONS:
        raise ParameterError(f"questions must be at most 10**30, found {questions}")
    if not _one_row(asked.facts.neighbours):
        return [
            *(Row(method, "", refusal=_PUBLIC) for method in (BETTER, LECTURE, AVERAGED)),
            _each(asked, questions),
            _table(asked, questions, cells),
        ]
    return [
        _classic(asked, BETTER, questions, cells),
        _classic(asked, LECTURE, questions, cells),
        _each(asked, questions),
        _averaged(asked, questions, cells),
        _table(asked, questions, cells),
    ]


def crossover(
    cells: int,
    *,
    beta: exact.Exact,
    budget: Budget,
    alpha: exact.Exact | None = None,
    size: int | None = None,
) -> int | None:
    """From about how many questions on pmw promises more than noise for each question; None if never.

    alpha   both promise it: pmw needs fewer persons            size   pmw promises a smaller alpha
    Two digits; replace-one, one row a person.
    """
    sure, facts = exact.probability(beta=beta), Facts(_DOMAIN, Neighbours("replace-one"), None)
    one = _direct(budget, facts, 1)
    if one is None:
        return None

    def wins(questions: int) -> bool:
        # k counts with Gaussian noise cost what one costs with 1/sqrt(k) of it, in pure epsilons with 1/k.
        times = Fraction(questions) if budget.delta == 0 else Fraction(math.sqrt(questions))
        error = Fraction(_direct_error(type(one)(Count(), one.scale * times), sure, questions, facts))
        wanted = error / exact.whole(size=size) if alpha is None else exact.probability(alpha=alpha)
        persons = math.ceil(error / wanted)
        make = _maker(BETTER, cells, sure, questions, budget)
        return _possible(make, persons, min(wanted, _ALL), functools.partial(_within, budget, facts))

    return _first(wins)


_ALL = Fraction(999, 1000)
_DOMAIN = Domain(it=Category("no", "yes"))  # of a question: whom it counts, and whom not
Make = Callable[[int, Fraction], Classic]


def _cells(asked: Asked) -> int:
    given = [name for name in ("bits", "cells") if name in asked.numbers]
    if len(given) != 1:
        raise ParameterError("a plan for questions takes bits= (log2 of the number of cells) or cells=, one of the two")
    found = asked.number(given[0])
    if given == ["bits"] and found > MOST_BITS:
        raise ParameterError(f"bits must be at most {MOST_BITS}, found {found}")
    cells = 2**found if given == ["bits"] else found
    if cells < 2:
        raise ParameterError(f"a domain of questions has at least 2 cells, found {cells}")
    return cells


def _one_row(relation: Neighbours) -> bool:
    return relation.replace_one and relation.rows == 1


# pmw and lecture: the program itself says what it costs.


def _classic(asked: Asked, method: str, questions: int, cells: int) -> Row:
    fits = functools.partial(_within, asked.budget, asked.facts)
    make = _maker(method, cells, asked.beta, questions, asked.budget)
    size, found, enough = asked.facts.size, None, None
    if asked.alpha is not None:
        wanted = asked.alpha
        enough = needed(lambda persons: make(persons, wanted), fits)
    if size is not None:
        best = least_alpha(functools.partial(make, size), fits)
        found = None if best is None else make(size, best)
    if found is None and enough is None:
        return Row(method, "", refusal=_TOO_FEW)
    shown = found or (make(enough, asked.alpha) if enough and asked.alpha else None)
    assert shown is not None
    error = None if found is None else float(max(found.near, found.error))
    return Row(
        method,
        _theorem(shown),
        shown.threshold.threshold_scale,
        error,
        None if error is None or size is None else error / size,
        enough,
        mechanism=shown,
        assuming=_IMAGINED.format(MAX_DENSE) if cells > MAX_DENSE else _compared(asked, method, cells),
    )


def _maker(method: str, cells: int, beta: Fraction, questions: int, budget: Budget) -> Make:
    def make(size: int, alpha: Fraction) -> Classic:
        problem = Posed(size, ("it",), cells)
        if method == LECTURE:
            return lecture_for(problem, alpha, beta, questions)
        return better_for(problem, alpha, beta, questions, pure=budget.delta == 0)

    return make


def _theorem(program: Classic) -> str:
    price = "4 e0 an update" if program.method == LECTURE else "one-sided threshold, proved step"
    return f"multiplicative weights, at most {program.updates:,} updates, {price}"


def _compared(asked: Asked, method: str, cells: int) -> str:
    """From how many questions on the better one of the two beats noise for each question."""
    if method == LECTURE:
        return ""
    wanted, size = asked.alpha, asked.facts.size if asked.alpha is None else None
    found = crossover(cells, beta=asked.beta, budget=asked.budget, alpha=wanted, size=size)
    if found is None:
        return "in the worst case no better than noise for each question, however many there are"
    return f"in the worst case better than noise for each question from about {found:.1e} questions on"


def _within(budget: Budget, facts: Facts, program: Classic) -> bool:
    return program.guarantee(facts).within(budget)


def _possible(make: Make, size: int, alpha: Fraction, fits: Callable[[Classic], bool]) -> bool:
    try:
        return fits(make(size, alpha))
    except ParameterError:
        return False


def _first(holds: Callable[[int], bool]) -> int | None:
    """The least number for which it holds, to two digits, if it goes on to hold."""
    low, high = 0.0, math.log(MOST_QUESTIONS)
    if not holds(MOST_QUESTIONS):
        return None
    while high - low > 0.005:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(math.ceil(math.exp(middle))) else (middle, high)
    return math.ceil(math.exp(high))


# Noise for each question.


@dataclass(frozen=True, slots=True)
class Repeated:
    """So many releases: a price, nothing that runs."""

    one: Gaussian | Laplace
    times: int

    def guarantee(self, facts: Facts) -> Guarantee:
        return self.times * self.one.guarantee(facts)

    def run(self, data: Any, rng: Any) -> Any:
        raise ParameterError("this is a price, not a mechanism")


def _direct(budget: Budget, facts: Facts, questions: int) -> Gaussian | Laplace | None:
    """The noise that every one of k counts gets."""
    kind = Laplace if budget.delta == 0 else Gaussian
    try:
        found = calibrate(lambda noise: Repeated(kind(Count(), noise), questions), admits=within(budget, facts=facts))
    except ParameterError:
        return None
    return found.one


def _direct_error(each: Gaussian | Laplace, beta: Fraction, questions: int, facts: Facts) -> float:
    return each.noise_range(1 - beta / questions, facts)  # type: ignore[arg-type]


def _each(asked: Asked, questions: int) -> Row:
    method = f"{'Laplace' if asked.budget.delta == 0 else 'Gaussian'} for each"
    facts = Facts(_DOMAIN, asked.facts.neighbours, asked.facts.size)
    found = _direct(asked.budget, facts, questions)
    if found is None:
        return Row(method, "", refusal="more noise than can be drawn")
    error = _direct_error(found, asked.beta, questions, facts)
    return _promising(asked, Row(method, "noise on every count", found.scale, mechanism=found), error)


def _promising(asked: Asked, row: Row, error: float) -> Row:
    """An error that does not depend on the size, in both directions."""
    size, useless = asked.facts.size, asked.facts.size is not None and error >= asked.facts.size
    if useless and asked.alpha is None:
        return Row(row.method, "", refusal=_TOO_FEW)
    enough = None if asked.alpha is None else math.ceil(Fraction(error) / asked.alpha)
    shown = None if useless else error
    alpha = None if shown is None or size is None else shown / size
    return replace(row, error=shown, alpha=alpha, needed=enough)


# Questions that are known beforehand.


def _averaged(asked: Asked, questions: int, cells: int) -> Row:
    """gamma n + 2 ln(2 k T / beta) / e + 1: T choices of a question and a sign, each by the exponential mechanism."""
    total = _zcdp(asked.budget)
    log_cells, beta, size = math.log(cells), float(asked.beta), asked.facts.size

    def noise(gamma: float) -> float:
        """The second term, in persons."""
        rounds = math.ceil(log_cells / (2 * gamma * gamma))
        epsilon = float(asked.budget.epsilon) / rounds if total is None else math.sqrt(8 * total / rounds)
        return 2 * (math.log(2 * questions / beta) + math.log(rounds)) / epsilon + 1  # guesses are rounded

    shares = [(step + 1) / (_GAPS + 1) for step in range(_GAPS)]
    enough = error = None
    if asked.alpha is not None:
        wanted = float(asked.alpha)
        enough = math.ceil(min(noise(wanted * share) / (wanted * (1 - share)) for share in shares))
    if size is not None:
        gammas = [math.exp(math.log(1e-6) * share) for share in shares]
        error = min(size * gamma + noise(gamma) for gamma in gammas)
    if error is not None and size is not None and error >= size:
        error = None
    if enough is None and error is None:
        return Row(AVERAGED, "", refusal=_TOO_FEW)
    alpha = None if error is None or size is None else error / size
    imagined = f"; {_IMAGINED.format(MAX_AVERAGED)}" if cells > MAX_AVERAGED else ""
    theorem = "regret of multiplicative weights, exponential mechanism"
    return Row(AVERAGED, theorem, None, error, alpha, enough, assuming=_BEFOREHAND + imagined)


def _zcdp(budget: Budget) -> float | None:
    """The most zCDP that this budget is proved to allow; None if it is pure."""
    if budget.delta == 0:
        return None
    low, high = 0.0, float(budget.epsilon) + 1.0
    for _ in range(50):
        middle = (low + high) / 2
        inside = Guarantee.of_zcdp(middle, neighbours="replace-one").within(budget)
        low, high = (middle, high) if inside else (low, middle)
    return low


def _table(asked: Asked, questions: int, cells: int) -> Row:
    """Noise on every cell. Half a question is added up when the total is public: weights 1/2 and -1/2 for 1 and 0."""
    if cells > MAX_CELLS:
        return Row(TABLE, "", refusal=f"a histogram has at most {MAX_CELLS:,} cells")
    facts = Facts(_DOMAIN, asked.facts.neighbours, asked.facts.size)
    kind = Laplace if asked.budget.delta == 0 else Gaussian
    try:
        found = calibrate(lambda noise: kind(Histogram("it"), noise), admits=within(asked.budget, facts=facts))
    except ParameterError as refused:
        return Row(TABLE, "", refusal=str(refused))
    error = noise_bound(
        "laplace" if kind is Laplace else "gaussian",
        float(found.scale),
        copies=cells,
        log_sets=math.log(questions),
        failure=float(asked.beta),
    )
    weight = 0.5 if _one_row(asked.facts.neighbours) else 1.0
    row = Row(TABLE, "noise on every cell, summed", found.scale, mechanism=found, assuming=_BEFOREHAND)
    return _promising(asked, row, weight * error)
