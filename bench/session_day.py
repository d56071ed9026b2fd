"""A realistic day: 300 questions of an analyst who drills down, at the default; and 5,000, for the time of each.

Beside: noise for each question (Gaussian; in a pure ledger Laplace), a cache of that, and one histogram for each set of
columns, all with the bounds that the session stated. The histograms are drawn by somebody who knows all questions in
advance.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
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
FEW, NEAR, WIDE = "0.02%", Fraction(1, 50), 7


def section(which: str) -> list[str]:
    """The section of bench/RESULTS.md."""
    return _day() if which == "day" else _many()


def _day() -> list[str]:
    lines = [
        "",
        "## A day of questions",
        "",
        f"{DAY} questions of an analyst who drills down on a made-up table, {ROWS:,} rows, {len(SIZES) + 1} columns; a "
        "ledger of (1, 1e-6), or of 1 alone, the defaults of a session (1 % of the budget a question), beta 0.05. The "
        "others have the same bounds. Percent of the budget; more than 100 is more than there is. Errors are of the "
        "session.",
        "",
        "| relation | answered | session | noise for each | a cache of it | a histogram for each scope | mean error | "
        "largest error | largest bound | ms CPU a question |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for budget, pure in ((dp.Budget(1, 1e-6), ""), (dp.Budget(1), ", pure")):
        for relation in ("replace-one", "add-remove"):
            lines.append(f"| {relation}{pure} | {' | '.join(_cells(people(relation), budget))} |")
    return lines


def _cells(table: dp.Table, budget: dp.Budget) -> list[str]:
    session = dp.Session(table, dp.Ledger.in_memory(budget, table))
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
        one = noise_bound(shop.kind, 10**4, copies=1, log_sets=math.log(numbers), failure=shop.failure(place)) / 10**4
        return shop.price(shop.noisy(question, Fraction(bound / one).limit_denominator(2**20)))

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
        one = noise_bound(shop.kind, 10**4, copies=int(copies), log_sets=math.log(numbers), failure=failure) / 10**4
        largest = min(largest, bound / one)
    query = Histogram(scope) if scope else Count()
    return shop.price(shop.noisy(query, Fraction(largest).limit_denominator(2**20)))


def _many() -> list[str]:
    lines = [
        "",
        "## Five thousand questions",
        "",
        f"The same analyst goes on, in a ledger in memory: at {FEW} of the budget for a question, or every answer "
        f"within {float(NEAR):.0%} of the persons. Wide: {WIDE} more columns of 3 levels, which are asked about too. "
        "Milliseconds of CPU for each question, and the percentage of the budget that is spent at the end of them.",
        "",
        "| session | questions | spent | paid | refused | free: mean | free: largest | paid: mean | paid: largest |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, wide, terms in (
        (f"price {FEW}", 0, {"price": FEW}),
        (f"alpha {float(NEAR):g}", 0, {"alpha": NEAR}),
        (f"price {FEW}, wide", WIDE, {"price": FEW}),
        (f"alpha {float(NEAR):g}, wide", WIDE, {"alpha": NEAR}),
    ):
        lines += [f"| {name} | {' | '.join(cells)} |" for cells in _blocks(wide, terms)]
    return lines


def _blocks(wide: int, terms: dict[str, Any]) -> Iterator[list[str]]:
    """A thousand questions each: how many were paid for, and the time that they took."""
    table, block = people(wide=wide), 1_000
    session = dp.Session(table, dp.Ledger.in_memory(dp.Budget(1, 1e-6), table), **terms)
    times: dict[str, list[float]] = defaultdict(list)
    for place, question in enumerate(drill_down(MANY, wide=wide), 1):
        start = time.process_time()
        try:
            kind = "paid" if session.ask(question).price else "free"
        except dp.BudgetExceeded:
            kind = "refused"
        times[kind].append(1000 * (time.process_time() - start))
        if place % block == 0:
            spent = 100 * float(session.ledger.spent().used())
            told = [f"{place - block + 1:,} to {place:,}", f"{spent:.1f}", f"{len(times['paid'])}"]
            told.append(f"{len(times['refused'])}")
            for some in (times["free"], times["paid"]):
                told += [f"{np.mean(some):.1f}", f"{max(some):.0f}"] if some else ["-", "-"]
            yield told
            times.clear()
