"""A realistic day: 300 questions of an analyst who drills down, at the default; and 5,000, for the time of each.

Beside: Gaussian noise for each question, a cache of that, and one histogram for each set of columns, all with the
bounds that the session stated. The histograms are drawn by somebody who knows all questions in advance.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

import discreet as dp
from bench.session_data import ROWS, SIZES, drill_down, people
from discreet.answering import Calibration, SessionTerms, meaning
from discreet.answering.linear_query import linear
from discreet.answering.measurement import noise_bound
from discreet.query import Count, Histogram

BETA = Fraction(1, 20)
DAY, MANY = 300, 5_000
FEW = "0.02%"


def section(which: str) -> list[str]:
    """The section of bench/RESULTS.md."""
    return _day() if which == "day" else _many()


def _day() -> list[str]:
    lines = [
        "",
        "## A day of questions",
        "",
        f"{DAY} questions of an analyst who drills down on a made-up table, {ROWS:,} rows, {len(SIZES) + 1} columns; a "
        "ledger of (1, 1e-6), the defaults of a session (1 % of the budget for a question), beta 0.05. The others have "
        "the same bounds. Percent of the budget; more than 100 is more than there is. Errors are of the session.",
        "",
        "| relation | answered | session | noise for each | a cache of it | a histogram for each scope | mean error | "
        "largest error | largest bound | ms CPU a question |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for relation in ("replace-one", "add-remove"):
        lines.append(f"| {relation} | {' | '.join(_cells(people(relation)))} |")
    return lines


def _cells(table: dp.Table) -> list[str]:
    session = dp.Session(table, dp.Ledger.in_memory(dp.Budget(1, 1e-6), table))
    asked, answers, off, start = drill_down(DAY), list[dp.Answer](), list[float](), time.process_time()
    for question in asked:
        try:
            answers.append(session.ask(question))
        except dp.BudgetExceeded:
            break
    spent = (time.process_time() - start) / max(1, len(answers))
    for question, answer in zip(asked, answers, strict=False):
        true = np.ravel(table.exact_sum(question))
        found = np.array(list(answer.value.values()) if answer.groups else [answer.value])
        off.append(float(np.abs(found - true).max()))
    pairs = list(zip(asked, answers, strict=False))
    bounds = [answer.error_bound for answer in answers]
    facts, ledger = table.facts, session.ledger
    shop = Calibration(facts, ledger, SessionTerms(None, BETA, price=Fraction(1, 100)))
    costs = [float(ledger.spent().used()), *(each / shop.cap for each in _others(pairs, shop, table))]
    shown = [f"{len(answers)}", *(f"{100 * cost:.1f}" for cost in costs)]
    return [*shown, f"{np.mean(off):.1f}", f"{max(off):.0f}", f"{max(bounds):.0f}", f"{1000 * spent:.1f}"]


def _others(pairs: Sequence[tuple[Any, dp.Answer]], shop: Calibration, table: dp.Table) -> tuple[int, int, int]:
    """What the same bounds cost otherwise, in nano-units."""
    domain, each, cached, seen = table.facts.domain, 0, 0, set[str]()
    scopes: dict[tuple[str, ...], list[tuple[Any, float]]] = defaultdict(list)
    order = {"each": 1, "cached": 1}

    def alone(question: Any, bound: float, place: int) -> int:
        numbers = math.prod(question.shape(domain))
        one = noise_bound("gaussian", 10**4, copies=1, log_sets=math.log(numbers), failure=shop.failure(place)) / 10**4
        return shop.price(dp.Gaussian(question, Fraction(bound / one).limit_denominator(2**20)))

    for question, answer in pairs:
        name = meaning(question, domain)
        bound = max(answer.error_bound, 0.5)
        if answer.source == "public":
            continue
        each += alone(question, bound, order["each"])
        order["each"] += 1
        if name not in seen:
            seen.add(name)
            cached += alone(question, bound, order["cached"])
            order["cached"] += 1
        form = linear(question, domain)
        assert form is not None
        scopes[form.scope].append((form, bound))
    return each, cached, sum(_histogram(scope, held, shop, len(scopes)) for scope, held in scopes.items())


def _histogram(scope: tuple[str, ...], held: Sequence[tuple[Any, float]], shop: Calibration, scopes: int) -> int:
    """The price of one histogram from which every question about these columns is read within its bound."""
    numbers = sum(math.prod(form.outputs) for form, _ in held)
    largest = math.inf
    for form, bound in held:
        copies = np.bincount(form.place[form.place >= 0]).max()
        if shop.total is not None:
            copies = min(copies, max(1, form.cells - copies))
        failure = float(BETA) / scopes
        one = noise_bound("gaussian", 10**4, copies=int(copies), log_sets=math.log(numbers), failure=failure) / 10**4
        largest = min(largest, bound / one)
    query = Histogram(scope) if scope else Count()
    return shop.price(dp.Gaussian(query, Fraction(largest).limit_denominator(2**20)))


def _many() -> list[str]:
    table = people()
    session = dp.Session(table, dp.Ledger.in_memory(dp.Budget(1, 1e-6), table), price=FEW)
    times: list[tuple[bool, float]] = []
    for question in drill_down(MANY):
        start = time.process_time()
        answer = session.ask(question)
        times.append((answer.price > 0, 1000 * (time.process_time() - start)))
    lines = [
        "",
        "## Five thousand questions",
        "",
        f"The same analyst goes on, at {FEW} of the budget for a question; a ledger in memory. Milliseconds of CPU for "
        f"each question; all of them took {100 * float(session.ledger.spent().used()):.1f} % of the budget.",
        "",
        "| questions | paid | free: mean | free: largest | paid: mean | paid: largest |",
        "|---|---|---|---|---|---|",
    ]
    for first in (0, 1_000, 2_000, 3_000, 4_000):
        part = times[first : first + 1_000]
        free, paid = ([taken for was_paid, taken in part if was_paid is side] for side in (False, True))
        cells = [f"{first + 1:,} to {first + 1_000:,}", f"{len(paid)}"]
        for some in (free, paid):
            cells += [f"{np.mean(some):.1f}", f"{max(some):.0f}"] if some else ["-", "-"]
        lines.append(f"| {' | '.join(cells)} |")
    return lines
