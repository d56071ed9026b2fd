"""Plans for counting questions: what every way of answering k of them promises, before anything is spent. No data.

    questions   auto, pmw, lecture, noise for each: chosen as the answers come; two ways that need them beforehand
    workload    all questions are known: noise for each, marginals, a histogram of everything, averaged weights
    synthetic   made-up rows that are drawn from what a session knows

    questions=  how many            bits=, cells=  log2 of, or the number of cells of the domain
    marginals=, each=   of a workload: so many marginals of so many cells         rows=   made-up rows

pmw and lecture are priced as the ledger would charge them in the worst case, all thresholds and all updates; a run pays
for what it opens. auto is priced as if no answer were free.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction

from discreet import exact
from discreet.answering.beforehand import (
    AVERAGED,
    COUNTED,
    PUBLIC,
    TABLE,
    TOO_FEW,
    TOO_LARGE,
    averaged,
    direct_error,
    each_question,
    marginals,
    noisy_histogram,
    one_row,
    repeated,
)
from discreet.answering.multiplicative_weights_parameters import (
    BETTER,
    LECTURE,
    Classic,
    Posed,
    better_for,
    least_alpha,
    lecture_for,
    needed,
)
from discreet.answering.paid import AUTO, MOST_QUESTIONS, auto
from discreet.data import Facts
from discreet.errors import ParameterError
from discreet.guarantee import Budget, Neighbours
from discreet.hypothesis import MAX_DENSE
from discreet.mechanisms import Gaussian, Laplace
from discreet.plan import Asked, Row
from discreet.query import Count

__all__ = ["AUTO", "AVERAGED", "TABLE", "crossover", "rows"]

DRAWN = "drawn rows"
MOST_BITS = 2**20


def rows(asked: Asked, kind: str = "questions") -> list[Row]:
    """One row for each way: the error that it promises for a size, the size that it needs for an alpha."""
    questions = asked.number("questions")
    if questions > MOST_QUESTIONS:
        raise ParameterError(f"questions must be at most 10**30, found {questions}")
    if kind == "synthetic":
        return _synthetic(asked, questions)
    if asked.facts.size is None and asked.alpha is None:
        raise ParameterError(
            f"a plan for {'questions' if kind == 'questions' else 'a workload'} needs size=, or alpha= to find it",
            argument="size",
        )
    cells = _cells(asked)
    each = [each_question(asked, questions, of) for of in (Gaussian, Laplace)]
    known = [averaged(asked, questions, cells), noisy_histogram(asked, questions, cells)]
    if kind == "workload":
        return [*each, *known, *_marginals(asked, questions)]
    programs = [_classic(asked, method, questions, cells) for method in (BETTER, LECTURE)]
    return [auto(asked, questions), *programs, *each, *known]


def _marginals(asked: Asked, questions: int) -> list[Row]:
    if not {"marginals", "each"} & set(asked.numbers):
        return []
    return [marginals(asked, questions, tables=asked.number("marginals"), cells=asked.number("each"))]


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
    facts = Facts(COUNTED, Neighbours("replace-one"), None)
    wanted = None if alpha is None else exact.probability(alpha=alpha)
    return _crossing(Asked(budget, facts, exact.probability(beta=beta), wanted, {}), cells, size)


def _crossing(asked: Asked, cells: int, size: int | None) -> int | None:
    facts, sure, pure, alpha = asked.with_domain(COUNTED), asked.beta, asked.pure, asked.alpha
    one = repeated(Laplace if pure else Gaussian, Count(), 1, asked.funds, facts)
    if one is None:
        return None

    def wins(questions: int) -> bool:
        # k counts with Gaussian noise cost what one costs with 1/sqrt(k) of it, in pure epsilons with 1/k.
        times = Fraction(questions) if pure else Fraction(math.sqrt(questions))
        error = Fraction(direct_error(type(one)(Count(), one.scale * times), sure, questions, facts))
        wanted = error / exact.whole(size=size) if alpha is None else alpha
        persons = math.ceil(error / wanted)
        make = _maker(BETTER, cells, sure, questions, pure)
        return _possible(make, persons, min(wanted, _ALL), asked.admits)

    return _first(wins)


_ALL = Fraction(999, 1000)
Make = Callable[[int, Fraction], Classic]


def _cells(asked: Asked) -> int:
    given = [name for name in ("bits", "cells") if name in asked.numbers]
    if len(given) != 1:
        raise ParameterError(
            "a plan for questions takes bits= (log2 of the number of cells) or cells=, one of the two", argument="bits"
        )
    found = asked.number(given[0])
    if given == ["bits"] and found > MOST_BITS:
        raise ParameterError(f"bits must be at most {MOST_BITS}, found {found}")
    cells = 2**found if given == ["bits"] else found
    if cells < 2:
        raise ParameterError(f"a domain of questions has at least 2 cells, found {cells}")
    return cells


# pmw and lecture: the program itself says what it costs.


def _classic(asked: Asked, method: str, questions: int, cells: int) -> Row:
    if not one_row(asked.facts.neighbours):
        return Row(method, "", refusal=PUBLIC)
    fits = asked.admits
    make = _maker(method, cells, asked.beta, questions, asked.pure)
    size, found, enough = asked.facts.size, None, None
    if asked.alpha is not None:
        wanted = asked.alpha
        enough = needed(lambda persons: make(persons, wanted), fits)
    if size is not None:
        best = least_alpha(functools.partial(make, size), fits)
        found = None if best is None else make(size, best)
    if found is None and enough is None:
        return Row(method, "", refusal=TOO_FEW)
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
        assuming=TOO_LARGE.format(MAX_DENSE) if cells > MAX_DENSE else _compared(asked, method, cells),
    )


def _maker(method: str, cells: int, beta: Fraction, questions: int, pure: bool) -> Make:
    def make(size: int, alpha: Fraction) -> Classic:
        problem = Posed(size, ("it",), cells)
        if method == LECTURE:
            return lecture_for(problem, alpha, beta, questions)
        return better_for(problem, alpha, beta, questions, pure=pure)

    return make


def _theorem(program: Classic) -> str:
    price = "4 e0 an update" if program.method == LECTURE else "one-sided threshold, proved step"
    return f"multiplicative weights, at most {program.updates:,} updates, {price}"


def _compared(asked: Asked, method: str, cells: int) -> str:
    """From how many questions on the better one of the two beats noise for each question."""
    if method == LECTURE:
        return ""
    found = _crossing(asked, cells, asked.facts.size if asked.alpha is None else None)
    if found is None:
        return "in the worst case no better than noise for each question, however many there are"
    return f"in the worst case better than noise for each question from about {found:.1e} questions on"


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


# Made-up rows.


def _synthetic(asked: Asked, questions: int) -> list[Row]:
    """Hoeffding's inequality for rows drawn from a hypothesis; about the hypothesis nothing is proved beforehand."""
    log_sets = math.log(2 * questions) - math.log(float(asked.beta))
    rows = asked.number("rows") if "rows" in asked.numbers else None
    if rows is None and asked.alpha is None:
        raise ParameterError("a plan for synthetic rows needs rows=, or alpha= to find how many", argument="rows")
    share = None if rows is None else math.sqrt(log_sets / (2 * rows))
    enough = None if asked.alpha is None else math.ceil(log_sets / (2 * float(asked.alpha) ** 2))
    supposed = "from the hypothesis that they are drawn from, as shares; rows cost nothing, and more of them are nearer"
    unproved = (
        "how near it is to the table is not proved before it is fitted: it follows what a session measured, and what "
        "nobody asked about is spread evenly. Ask for the counts that matter; each answer says its own bound"
    )
    return [
        Row(DRAWN, "Hoeffding's inequality, a union over the counts", None, share, None, enough, assuming=supposed),
        Row("hypothesis", "", refusal=unproved),
    ]
