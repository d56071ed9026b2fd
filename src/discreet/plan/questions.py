"""Counting questions: what every way of answering k of them promises, before anything is spent. No data.

    questions   auto, pmw, lecture, noise for each: chosen as the answers come; two ways that need them in advance
    workload    all questions are known: noise for each, marginals, a histogram of everything, averaged weights
    synthetic   made-up rows that are drawn from what a session knows

    questions=  how many            bits=, cells=  log2 of, or the number of cells of the domain
    marginals=, each=   of a workload: this many marginals of this many cells         rows=   made-up rows

pmw and lecture are priced as the ledger would charge them in the worst case, all thresholds and all updates; a run pays
for what it opens. auto is what a session does by default: alpha fixes the noise of every count and table that it buys
(`calibration`, which is asked here for real prices), so a budget pays for a number of them. It is priced as if no
answer were free; what earlier answers prove is free, and how much that is cannot be said in advance.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from discreet.answering import (
    BETTER,
    LECTURE,
    MAX_AVERAGED,
    SEVERAL,
    Calibration,
    Classic,
    CountingProblem,
    SessionTerms,
    better_for,
    least_alpha,
    lecture_for,
    needed,
    noise_bound,
)
from discreet.core import Funds, Guarantee, NothingFits, ParameterError, exact
from discreet.data import Category, Domain, Facts, Identity
from discreet.hypothesis import MAX_DENSE
from discreet.ledger import Ledger
from discreet.mechanisms import Gaussian, Laplace, Promise, calibrate
from discreet.method import UNPROVEN, Maker, Method, Methods, Offer, Refused
from discreet.plan.problems import IMAGINED, Problem, by_error, constant
from discreet.query import MAX_CELLS, Count, Equals, Histogram

AUTO, AVERAGED, TABLE, MARGINALS, DRAWN = "auto", "averaged weights", "noisy histogram", "marginals", "drawn rows"
MOST_QUESTIONS = 10**30
MOST_BITS = 2**20

_PUBLIC = "needs replace-one with one row a person, where the number of rows is public"
_TOO_FEW = "no alpha below 1 fits this budget at this size"
_BEFOREHAND = "all questions are known in advance"
_TOO_LARGE = "the hypothesis would have more than {:,} cells: " + IMAGINED
_TOO_MUCH = "more noise than can be drawn"
_TOO_MANY = "a ledger counts in nano-units, and this number of charges does not fit however small each of them is"
_ONE = Count(Equals("it", "yes"))
_ALL = Fraction(999, 1000)
_GAPS = 200  # sizes of the last gap that are compared

Noisy = type[Gaussian] | type[Laplace]


def methods(problem: Problem) -> Methods:
    """One method for each way: the error that it promises for a size, the size that it needs for an alpha."""
    questions = problem.number("questions")
    if questions > MOST_QUESTIONS:
        raise ParameterError(f"questions must be at most 10**30, found {questions}")
    if problem.kind == "synthetic":
        return Methods(_synthetic(problem, questions))
    if problem.size is None and problem.alpha is None:
        what = "questions" if problem.kind == "questions" else "a workload"
        raise ParameterError(f"a plan for {what} needs size=, or alpha= to find it", argument="size")
    cells = _cells(problem)
    makers: dict[str, Maker] = {}
    if problem.kind == "questions":
        makers[AUTO] = functools.partial(_auto, problem, questions)
        for name in (BETTER, LECTURE):
            makers[name] = functools.partial(_classic, problem, name, questions, cells)
    for kind in (Gaussian, Laplace):
        makers[f"{kind.__name__} for each"] = functools.partial(_each_question, problem, questions, kind)
    makers[AVERAGED] = functools.partial(_averaged, problem, questions, cells)
    theorem = "noise on every cell, summed"
    makers[TABLE] = functools.partial(_from_cells, problem, TABLE, theorem, _BEFOREHAND, 1, cells, questions)
    if {"marginals", "each"} & set(problem.numbers):
        tables, each = problem.number("marginals"), problem.number("each")
        theorem = f"noise on every cell of {tables:,} marginals, summed"
        condition = f"{_BEFOREHAND}, and each is about the columns of one marginal"
        makers[MARGINALS] = functools.partial(
            _from_cells, problem, MARGINALS, theorem, condition, tables, each, questions
        )
    return Methods(makers)


def _cells(problem: Problem) -> int:
    given = [name for name in ("bits", "cells") if name in problem.numbers]
    if len(given) != 1:
        raise ParameterError(
            "a plan for questions takes bits= (log2 of the number of cells) or cells=, one of the two", argument="bits"
        )
    found = problem.number(given[0])
    if given == ["bits"] and found > MOST_BITS:
        raise ParameterError(f"bits must be at most {MOST_BITS}, found {found}")
    cells = 2**found if given == ["bits"] else found
    if cells < 2:
        raise ParameterError(f"a domain of questions has at least 2 cells, found {cells}")
    return cells


# Noise once: on every question, on every cell, on marginals, on selections.


def repeated(
    kind: Noisy, query: Count | Histogram, times: int, funds: Funds, facts: Facts
) -> Gaussian | Laplace | None:
    """The least noise with which this many queries like this one are admitted together; None if none can be drawn."""
    try:
        return calibrate(lambda noise: kind(query, noise), funds=funds, facts=facts, times=times)
    except ParameterError:
        return None


def direct_error(noisy: Gaussian | Laplace, beta: Fraction, questions: int, facts: Facts) -> float:
    return noisy.noise_range(1 - beta / questions, facts)  # type: ignore[arg-type]


def _each_question(problem: Problem, questions: int, kind: Noisy) -> Method | Refused:
    """Noise on every question, by itself: they may come one by one."""
    name, facts = f"{kind.__name__} for each", problem.facts()
    if kind is Gaussian and problem.funds.pure:
        raise NothingFits(_TOO_MUCH)
    found = repeated(kind, Count(), questions, problem.funds, facts)
    if found is None:
        return Refused(name, _TOO_MUCH)
    error = direct_error(found, problem.beta, questions, facts)
    return constant(name, "noise on every count", error, found.scale, found, few=_TOO_FEW)


def _from_cells(
    problem: Problem, name: str, theorem: str, condition: str, tables: int, cells: int, questions: int
) -> Method | Refused:
    """Noise on every cell of the tables; a question is read off one of them. Half a question is added up when the total
    is public: weights 1/2 and -1/2 for 1 and 0."""
    if cells > MAX_CELLS:
        return Refused(name, f"a {'histogram' if name == TABLE else 'marginal'} has at most {MAX_CELLS:,} cells")
    kind = Laplace if problem.funds.pure else Gaussian  # the sensitivity of a histogram does not depend on its cells
    found = repeated(kind, Histogram("it"), tables, problem.funds, problem.facts())
    if found is None:
        return Refused(name, _TOO_MUCH)
    error = noise_bound(
        "laplace" if kind is Laplace else "gaussian",
        float(found.scale),
        copies=cells,
        log_sets=math.log(questions),
        failure=float(problem.beta),
    )
    weight = 0.5 if problem.counted else 1.0
    return constant(name, theorem, weight * error, found.scale, found, condition, few=_TOO_FEW)


def _averaged(problem: Problem, questions: int, cells: int) -> Method | Refused:
    """gamma n + 2 ln(2 k T / beta) / e + 1: T choices of a question and a sign, each by the exponential mechanism."""
    if not problem.counted:
        return Refused(AVERAGED, _PUBLIC)
    pure, end = problem.funds.pure, float(problem.budget.epsilon) + 1.0
    of = Guarantee.of_pure if pure else Guarantee.of_zcdp

    def admitted(value: float) -> bool:
        return problem.funds.admits(of(value, neighbours=problem.neighbours))

    # The most zCDP that may be spent, or the most pure epsilon if there is no delta.
    most = exact.most(admitted, 0.0, end, lambda low, high: high - low <= end / 2**50)
    if most == 0:
        return Refused(AVERAGED, "nothing is left")
    log_cells, beta = math.log(cells), float(problem.beta)
    shares = [(step + 1) / (_GAPS + 1) for step in range(_GAPS)]

    def noise(gamma: float) -> float:
        """The second term, in persons."""
        rounds = math.ceil(log_cells / (2 * gamma * gamma))
        epsilon = most / rounds if pure else math.sqrt(8 * most / rounds)
        return 2 * (math.log(2 * questions / beta) + math.log(rounds)) / epsilon + 1  # guesses are rounded

    def solve(size: int | None) -> Offer:
        error = None
        if size is not None:
            error = min(size * gamma + noise(gamma) for gamma in (math.exp(math.log(1e-6) * share) for share in shares))
        bound = None if error is None or size is None or error >= size else error
        theorem = "regret of multiplicative weights, exponential mechanism"
        condition = _BEFOREHAND + (f"; {imagined}" if imagined else "")
        return Offer(AVERAGED, None, Promise(bound, theorem, _TOO_FEW, condition=condition, measure="error"))

    def enough(alpha: Any) -> int:
        wanted = float(alpha)
        return math.ceil(min(noise(wanted * share) / (wanted * (1 - share)) for share in shares))

    imagined = _TOO_LARGE.format(MAX_AVERAGED) if cells > MAX_AVERAGED else ""
    return by_error(AVERAGED, solve, enough, imagined)


# pmw and lecture: the program itself says what it costs.


def _classic(problem: Problem, name: str, questions: int, cells: int) -> Method | Refused:
    if not problem.counted:
        return Refused(name, _PUBLIC)
    make = _program(name, cells, problem.beta, questions, problem.funds.pure)
    fits = functools.partial(_fits, problem)
    imagined = condition = _TOO_LARGE.format(MAX_DENSE) if cells > MAX_DENSE else ""
    if name == BETTER and not imagined:
        first = crossover(problem, cells, problem.size if problem.alpha is None else None)
        worst = f"better than noise for each question from about {first or 0:.1e} questions on"
        never = "no better than noise for each question, however many there are"
        condition = f"in the worst case {never if first is None else worst}"

    def enough(alpha: Any) -> int:
        return needed(lambda persons: make(persons, alpha), fits) or UNPROVEN

    def solve(size: int | None) -> Offer:
        """Without a size the error is not known, but the program for the wanted alpha."""
        best = None if size is None else least_alpha(functools.partial(make, size), fits)
        least = None if best or problem.alpha is None else enough(problem.alpha)
        if size is not None and best is not None:
            program = make(size, best)
        elif least is not None and problem.alpha is not None and least < UNPROVEN:
            program = make(least, problem.alpha)
        else:
            return Offer(name, None, Promise(None, "", _TOO_FEW, measure="error"))
        price = "4 e0 an update" if program.method == LECTURE else "one-sided threshold, proved step"
        theorem = f"multiplicative weights, at most {program.updates:,} updates, {price}"
        bound = None if best is None else float(max(program.near, program.error))
        promise = Promise(bound, theorem, "" if bound else _TOO_FEW, condition=condition, measure="error")
        return Offer(name, program, promise, program.threshold.threshold_scale)

    return by_error(name, solve, enough, imagined)


def _fits(problem: Problem, program: Classic) -> bool:
    return problem.funds.admits(program.guarantee(problem.facts()))


def _program(name: str, cells: int, beta: Fraction, questions: int, pure: bool) -> Callable[[int, Fraction], Classic]:
    def make(size: int, alpha: Fraction) -> Classic:
        posed = CountingProblem(size, ("it",), cells)
        if name == LECTURE:
            return lecture_for(posed, alpha, beta, questions)
        return better_for(posed, alpha, beta, questions, pure=pure)

    return make


def crossover(problem: Problem, cells: int, size: int | None) -> int | None:
    """From about how many questions on pmw promises more than noise for each question; None if never.

    problem.alpha given   both promise it: pmw needs fewer persons       size   pmw promises a smaller alpha
    Two digits; replace-one, one row per person.
    """
    facts, pure, alpha = problem.facts(), problem.funds.pure, problem.alpha
    one = repeated(Laplace if pure else Gaussian, Count(), 1, problem.funds, facts)
    if one is None:
        return None

    def wins(logarithm: float) -> bool:
        # k counts with Gaussian noise cost what one costs with 1/sqrt(k) of it, in pure epsilons with 1/k.
        questions = min(MOST_QUESTIONS, math.ceil(math.exp(logarithm)))
        times = Fraction(questions) if pure else Fraction(math.sqrt(questions))
        error = Fraction(direct_error(type(one)(Count(), one.scale * times), problem.beta, questions, facts))
        wanted = error / exact.whole(size=size) if alpha is None else alpha
        make = _program(BETTER, cells, problem.beta, questions, pure)
        try:
            return _fits(problem, make(math.ceil(error / wanted), min(wanted, _ALL)))
        except ParameterError:
            return False

    last = math.log(MOST_QUESTIONS)
    if not wins(last + 1):
        return None
    return math.ceil(math.exp(exact.least(wins, 0.0, last, lambda low, high: high - low <= 0.005)))


# What a session does by default.

_GROUPS = 10  # of a table that an analyst may ask for
_GROWTH = 1.25  # prices grow with the logarithm of how many were paid: the last of so many more is dearer by 1 % or so
_UNSAID = 10**12  # persons, if no size is given: only alpha times their number matters


def _auto(problem: Problem, questions: int) -> Method | Refused:
    """The least window A = alpha * size for which the budget pays for all questions as single counts."""
    session = _Session(problem)

    def pays(window: float) -> bool:
        return session.counts(window, questions) >= questions

    ends = exact.bracket(pays, 1.0, 2.0, limit=2.0**200)
    if ends is None:
        return Refused(AUTO, _TOO_MANY)
    window = exact.least(pays, *ends, lambda low, high: high - low <= high / 500)
    last = session.shop(window).alone(_ONE, questions)
    condition = "if none of them is free; what earlier answers prove is, and so is a question asked again"
    if problem.size is not None and problem.alpha is not None:
        wanted = float(problem.alpha * problem.size)
        counts, tables = session.counts(wanted, MOST_QUESTIONS), session.tables(wanted, MOST_QUESTIONS)
        said = [f"{count:,}" if count < 10**6 else f"{count:.1e}" for count in (counts, tables)]
        condition += f". At alpha {float(problem.alpha):g} of {problem.size:,} the budget pays for {said[0]} counts, "
        condition += f"or {said[1]} tables of {_GROUPS} groups"
    theorem = "noise of each count from alpha, a union over all that are paid"
    return constant(AUTO, theorem, window, last.scale, last, condition, few=_TOO_FEW)


class _Session:
    """How many counts, or tables, a budget pays for when every answer shall be within a window of this many persons."""

    def __init__(self, problem: Problem) -> None:
        domain = Domain(it=Category("no", "yes"), group=Category(*range(_GROUPS)))
        self._facts, self._beta = Facts(domain, problem.neighbours, problem.size or _UNSAID), problem.beta
        left = problem.left
        self._ledger = (
            Ledger.in_memory(problem.budget, Identity("a plan", problem.neighbours, None))
            if left is None
            else left.ledger
        )
        self._allowance = None if left is None else left.allowance
        self._left = self.shop(1.0).left()
        if left is not None:
            self._left = math.floor(self._left * left.share.part)

    def shop(self, window: float) -> Calibration:
        assert self._facts.size is not None
        terms = SessionTerms(Fraction(window) / self._facts.size, self._beta)
        return Calibration(self._facts, self._ledger, terms, allowance=self._allowance)

    def counts(self, window: float, most: int) -> int:
        shop = self.shop(window)
        return self._fitting(lambda order: shop.price(shop.alone(_ONE, order)), most)

    def tables(self, window: float, most: int) -> int:
        shop, table = self.shop(window), Histogram("group")
        return self._fitting(lambda number: shop.price(shop.alone(table, SEVERAL * (number - 1) + 1)), most)

    def _fitting(self, price: Callable[[int], int], most: int) -> int:
        """At least how many fit: in blocks, each priced as its last and dearest."""
        left, first = self._left, 1
        while first <= most:
            last = min(most, max(first, math.floor(first * _GROWTH)))
            try:
                each = price(last)
            except ParameterError:  # no such noise can be drawn: the window is too narrow
                return first - 1
            if each * (last - first + 1) > left:
                return first - 1 + left // each
            left, first = left - each * (last - first + 1), last + 1
        return most


# Made-up rows.


def _synthetic(problem: Problem, questions: int) -> dict[str, Maker]:
    """Hoeffding's inequality for rows drawn from a hypothesis; about the hypothesis nothing is proved in advance."""
    log_sets = math.log(2 * questions) - math.log(float(problem.beta))
    rows = problem.number("rows") if "rows" in problem.numbers else None
    if rows is None and problem.alpha is None:
        raise ParameterError("a plan for synthetic rows needs rows=, or alpha= to find how many", argument="rows")
    promise = Promise(
        None if rows is None else math.sqrt(log_sets / (2 * rows)),
        "Hoeffding's inequality, a union over the counts",
        condition="from the hypothesis that they are drawn from, as shares; rows cost nothing, and more of them are "
        "nearer",
        measure="error",
    )
    unproved = (
        "how near it is to the table is not proved before it is fitted: it follows what a session measured, and what "
        "was not asked about is spread evenly. Ask for the counts that matter; each answer says its own bound"
    )
    drawn = by_error(
        DRAWN,
        lambda size: Offer(DRAWN, None, promise),
        lambda alpha: math.ceil(log_sets / (2 * float(alpha) ** 2)),
    )
    return {DRAWN: lambda: drawn, "hypothesis": lambda: Refused("hypothesis", unproved, "unproven")}
