"""Rows of plans for ways that add noise once: to every question, to every cell, to marginals, to selections. No data.

Noise for each question may be drawn as the questions come; the other ways need all of them beforehand.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from discreet.answering.averaged_weights import MAX_CELLS as MAX_AVERAGED
from discreet.answering.measurement import noise_bound
from discreet.data import Category, Domain, Facts
from discreet.errors import ParameterError
from discreet.funds import Funds
from discreet.guarantee import Guarantee, Neighbours
from discreet.mechanisms import Gaussian, Laplace, calibrate
from discreet.plan import IMAGINED, PURE, Asked, Row
from discreet.query import MAX_CELLS, Count, Histogram

AVERAGED, TABLE, MARGINALS = "averaged weights", "noisy histogram", "marginals"
PUBLIC = "needs replace-one with one row a person, where the number of rows is public"
TOO_FEW = "no alpha below 1 fits this budget at this size"
BEFOREHAND = "all questions are known beforehand"
TOO_LARGE = "the hypothesis would have more than {:,} cells: " + IMAGINED
COUNTED = Domain(it=Category("no", "yes"))  # whom a question counts, and whom not

_GAPS = 200  # sizes of the last gap that are compared


def one_row(relation: Neighbours) -> bool:
    return relation.replace_one and relation.rows == 1


def promising(asked: Asked, row: Row, error: float) -> Row:
    """An error that does not depend on the size, in both directions."""
    size, useless = asked.facts.size, asked.facts.size is not None and error >= asked.facts.size
    if useless and asked.alpha is None:
        return Row(row.method, "", refusal=TOO_FEW)
    enough = None if asked.alpha is None else math.ceil(Fraction(error) / asked.alpha)
    shown = None if useless else error
    alpha = None if shown is None or size is None else shown / size
    return replace(row, error=shown, alpha=alpha, needed=enough)


# Noise for each question.


def repeated(
    kind: type[Gaussian] | type[Laplace], query: Count | Histogram, times: int, funds: Funds, facts: Facts
) -> Gaussian | Laplace | None:
    """The least noise with which so many queries like this one are admitted together; None if none can be drawn."""
    try:
        return calibrate(lambda noise: kind(query, noise), funds=funds, facts=facts, times=times)
    except ParameterError:
        return None


def direct_error(each: Gaussian | Laplace, beta: Fraction, questions: int, facts: Facts) -> float:
    return each.noise_range(1 - beta / questions, facts)  # type: ignore[arg-type]


def each_question(asked: Asked, questions: int, kind: type[Gaussian] | type[Laplace]) -> Row:
    """Noise on every question, by itself: they may come one by one."""
    method, facts = f"{kind.__name__} for each", asked.with_domain(COUNTED)
    if kind is Gaussian and asked.pure:
        return Row(method, "", refusal=PURE)
    found = repeated(kind, Count(), questions, asked.funds, facts)
    if found is None:
        return Row(method, "", refusal="more noise than can be drawn")
    error = direct_error(found, asked.beta, questions, facts)
    return promising(asked, Row(method, "noise on every count", found.scale, mechanism=found), error)


# Questions that are known beforehand.


def noisy_histogram(asked: Asked, questions: int, cells: int) -> Row:
    """Noise on every cell. Half a question is added up when the total is public: weights 1/2 and -1/2 for 1 and 0."""
    if cells > MAX_CELLS:
        return Row(TABLE, "", refusal=f"a histogram has at most {MAX_CELLS:,} cells")
    theorem = "noise on every cell, summed"
    return _from_cells(asked, Row(TABLE, theorem, assuming=BEFOREHAND), tables=1, cells=cells, questions=questions)


def marginals(asked: Asked, questions: int, *, tables: int, cells: int) -> Row:
    """Noise on every cell of so many marginals; a question is read off one of them."""
    if cells > MAX_CELLS:
        return Row(MARGINALS, "", refusal=f"a marginal has at most {MAX_CELLS:,} cells")
    theorem = f"noise on every cell of {tables:,} marginals, summed"
    assuming = f"{BEFOREHAND}, and each is about the columns of one marginal"
    return _from_cells(
        asked, Row(MARGINALS, theorem, assuming=assuming), tables=tables, cells=cells, questions=questions
    )


def _from_cells(asked: Asked, row: Row, *, tables: int, cells: int, questions: int) -> Row:
    facts = asked.with_domain(COUNTED)  # the sensitivity of a histogram does not depend on its cells
    kind = Laplace if asked.pure else Gaussian
    found = repeated(kind, Histogram("it"), tables, asked.funds, facts)
    if found is None:
        return Row(row.method, "", refusal="more noise than can be drawn")
    error = noise_bound(
        "laplace" if kind is Laplace else "gaussian",
        float(found.scale),
        copies=cells,
        log_sets=math.log(questions),
        failure=float(asked.beta),
    )
    weight = 0.5 if one_row(asked.facts.neighbours) else 1.0
    return promising(asked, replace(row, noise=found.scale, mechanism=found), weight * error)


def averaged(asked: Asked, questions: int, cells: int) -> Row:
    """gamma n + 2 ln(2 k T / beta) / e + 1: T choices of a question and a sign, each by the exponential mechanism."""
    if not one_row(asked.facts.neighbours):
        return Row(AVERAGED, "", refusal=PUBLIC)
    most = _most(asked)
    log_cells, beta, size = math.log(cells), float(asked.beta), asked.facts.size

    def noise(gamma: float) -> float:
        """The second term, in persons."""
        rounds = math.ceil(log_cells / (2 * gamma * gamma))
        epsilon = most / rounds if asked.pure else math.sqrt(8 * most / rounds)
        return 2 * (math.log(2 * questions / beta) + math.log(rounds)) / epsilon + 1  # guesses are rounded

    if most == 0:
        return Row(AVERAGED, "", refusal="nothing is left")
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
        return Row(AVERAGED, "", refusal=TOO_FEW)
    alpha = None if error is None or size is None else error / size
    imagined = f"; {TOO_LARGE.format(MAX_AVERAGED)}" if cells > MAX_AVERAGED else ""
    theorem = "regret of multiplicative weights, exponential mechanism"
    return Row(AVERAGED, theorem, None, error, alpha, enough, assuming=BEFOREHAND + imagined)


def _most(asked: Asked) -> float:
    """The most zCDP that may be spent, or the most pure epsilon if there is no delta."""
    of = Guarantee.of_pure if asked.pure else Guarantee.of_zcdp
    low, high = 0.0, float(asked.budget.epsilon) + 1.0
    for _ in range(50):
        middle = (low + high) / 2
        inside = asked.funds.admits(of(middle, neighbours=asked.facts.neighbours))
        low, high = (middle, high) if inside else (low, middle)
    return low
