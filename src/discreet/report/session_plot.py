"""A session of questions, one by one, beside simpler ways to answer them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import discreet as dp
from discreet.core import Funds, ParameterError, exact
from discreet.drawing import FAINT, INK, SERIES
from discreet.report.ledger_plot import COUNT, DOMAIN, noise_of
from discreet.report.plot import Panel, Plot, Scale, Series, draw, listed, shown, thinned, times

MOST_POINTS = 400
_TWENTIETH = Fraction(1, 20)

Question = tuple[int, float, float | None, float]
"""(number of the question, its error bound in persons, its true error if that may be known, what was spent by then as
a fraction of the budget)."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """Noise on every single question: for some numbers of questions its error within the whole budget; and the fraction
    of the budget that each question takes for the bound of the session."""

    name: str
    errors: list[float | None]
    price: float | None


def questions(
    asked: Iterable[Question],
    *,
    budget: dp.Budget,
    beta: exact.Exact = _TWENTIETH,
    neighbours: dp.Neighbours | str = "replace-one",
) -> Plot:
    """Error and spending of a session against the number of questions, beside noise on every single one.

    budget  what fraction 1 stands for: it is also what the simpler ways get for all the questions together
    beta    all the bounds of the session fail together with this probability; the simpler ways promise the same
    """
    records = sorted(map(_record, asked), key=lambda each: each[0])
    if not records:
        raise ParameterError("there is nothing to draw: no question was asked")
    if not isinstance(budget, dp.Budget):
        raise ParameterError(f"budget must be a Budget(epsilon, delta), found {budget!r}", argument="budget")
    sure, facts = exact.probability(beta=beta), dp.data.Facts(DOMAIN, dp.Neighbours.of(neighbours), None)
    total = records[-1][0]
    # Where the simpler ways are computed: 1, 2, 5, 10, ..., and the last.
    powers = [digit * 10**power for power in range(math.floor(math.log10(total)) + 1) for digit in (1, 2, 5)]
    numbers = sorted({total, *(each for each in powers if each < total)})
    widest = max((bound for _, bound, _, _ in records if math.isfinite(bound)), default=math.inf)
    others = [
        Alternative(
            kind.__name__,
            [noise_of(kind, number, Funds.of(budget), facts, 1 - sure / number) for number in numbers],
            _price(kind, budget, facts, total, sure, widest),
        )
        for kind in (dp.Laplace, dp.Gaussian)[: 2 if budget.delta else 1]
    ]
    truths = [(number, error) for number, _, error, _ in records if error is not None]
    alt = _finding(records[-1], truths, others)
    caption = (
        f"Above: how near the answers are, in persons; every promise holds for all questions at once with probability "
        f"{float(1 - sure):g}. Noise on every question gets the whole budget {budget} for as many questions as there "
        "are by then. Below: what the session had spent, and what noise on every question would have, for the "
        f"session's widest bound, ± {shown(widest)} persons; above 100 % the budget does not pay."
        + (" A true error of 0 is drawn at one half." if any(error == 0 for _, error in truths) else "")
    )
    columns = (
        *("questions", "promised, ± persons", "true error", "spent"),
        *(f"{each.name} on each, ± persons" for each in others),
        *(f"{each.name} on each, spent" for each in others),
    )
    rows = []
    for place, number in enumerate(numbers):  # the last answer at or before each of the numbers
        before = [each for each in records if each[0] <= number]
        _, bound, error, spent = before[-1] if before else (number, None, None, 0.0)
        costs = [None if each.price is None else exact.percent(number * each.price, up=True) for each in others]
        errors = [each.errors[place] for each in others]
        rows.append((number, bound, error, exact.percent(spent, up=True), *errors, *costs))
    frames = _frames(records, truths, numbers, others)
    title = "Error and spending, question by question"
    return Plot(title, alt, caption, columns, tuple(rows), draw(*frames, alt=alt))


def _frames(
    records: list[Question], truths: list[tuple[int, float]], numbers: list[int], others: list[Alternative]
) -> tuple[Panel, Panel]:
    """Errors above, spending below. The session's line has steps, unless only some of its questions are given."""
    total = records[-1][0]
    manner = "steps-post" if len(records) >= total else "default"
    session = {"drawstyle": manner, "color": SERIES[0], "linewidth": 2.4, "linestyle": "-", "marker": None}
    dots = {"linestyle": "", "marker": ".", "color": INK, "markersize": 4}
    promised = thinned([(number, bound) for number, bound, _, _ in records if math.isfinite(bound)], MOST_POINTS)
    true = [(number, max(error, 0.5)) for number, error in thinned(truths, MOST_POINTS)]
    spent = thinned([(number, part) for number, _, _, part in records if part > 0], MOST_POINTS)
    errors = [
        Series("session, promised", promised, session),
        *(Series(f"{each.name} noise on each", list(zip(numbers, each.errors, strict=True))) for each in others),
        *([Series("session, true error", true, dots)] if true else []),
    ]
    spending = [
        Series("session", spent, session),
        *(
            Series(f"{each.name} noise on each", [(number, number * each.price) for number in numbers])
            for each in others
            if each.price is not None
        ),
    ]
    limit = {"color": FAINT, "linestyle": ":", "linewidth": 1.2, "label": "the whole budget"}
    x = Scale("questions", (0.92, 1.1 * max(2, total)), log=True)
    return (
        Panel(x, Scale("error, persons"), errors, 3.2),
        Panel(
            x, Scale("spent of the budget", percent=True), spending, 3.2, paint=lambda axes: axes.axhline(1, **limit)
        ),
    )


def _record(asked: Any) -> Question:
    try:
        number, bound, error, spent = asked
    except (TypeError, ValueError):
        raise ParameterError(
            f"a question is (number, error bound, true error or None, spent fraction), found {asked!r}"
        ) from None
    known = None if error is None else abs(float(exact.number(error=error)))
    reach = math.inf if bound == math.inf else float(exact.nonnegative(error_bound=bound))
    return exact.whole(number=number), reach, known, float(exact.nonnegative(spent=spent))


def _price(
    kind: Any, budget: dp.Budget, facts: dp.data.Facts, questions: int, beta: Fraction, bound: float
) -> float | None:
    """The fraction of the budget that one of this many counts takes when all are to be within this bound."""
    if not 1 <= bound < math.inf:
        return None
    scale = _largest(lambda scale: kind(COUNT, scale).noise_range(1 - beta / questions, facts) <= bound)
    if scale is None:
        return None
    funds = Funds.of(budget, failure_share=Fraction(1, 2))
    price = funds.price(kind(COUNT, scale).guarantee(facts))
    amount, cap = (price.pure, funds.caps.pure) if kind is dp.Laplace else (price.renyi, funds.caps.renyi)
    return None if amount is None or not cap else amount / cap


def _largest(holds: Callable[[Fraction], bool]) -> Fraction | None:
    """About the largest noise for which it holds, to a thousandth."""
    first, limit = Fraction(1, 64), Fraction(2**1024)
    ends = exact.bracket(lambda scale: not holds(scale), first, 2 * first, limit=limit) if holds(first) else None
    return None if ends is None else exact.most(holds, *ends, lambda low, high: high - low <= low / 1000)


def _finding(last: Question, truths: list[tuple[int, float]], others: list[Alternative]) -> str:
    total, bound, _, spent = last
    text = f"After {times(total, 'question')} the session had spent {exact.percent(spent, up=True)} of the budget and "
    text += f"promised ± {shown(bound)} persons" if math.isfinite(bound) else "promised no bound for the last"
    if truths:
        text += f"; the largest true error was {shown(max(error for _, error in truths))}"
    paid = [(each.name, each.price * total) for each in others if each.price is not None]
    costs = [f"{exact.percent(price, up=True)} with {name} noise" for name, price in paid]
    if costs:
        text += f". Paying every question alone for the same bound would take {listed(costs)}"
    reach = [f"± {shown(each.errors[-1])} with {each.name}" for each in others if each.errors[-1] is not None]
    return f"{text}. Noise on each within the whole budget promises {listed(reach)}." if reach else f"{text}."
