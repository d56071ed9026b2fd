"""A session of questions, one by one, beside simpler ways to answer them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet import exact
from discreet.data import Category, Domain, Facts
from discreet.errors import ParameterError
from discreet.exact import Exact
from discreet.funds import Funds, caps_of, price_of
from discreet.guarantee import Budget, Neighbours
from discreet.mechanisms import Gaussian, Laplace
from discreet.query import Count, Equals
from discreet.report.plot import (
    FAINT,
    INK,
    SERIES,
    Plot,
    draw,
    legend,
    listed,
    logarithmic,
    percent,
    percent_axis,
    series,
    shown,
    split,
    thinned,
    times,
)

MOST_POINTS = 400
_TWENTIETH = Fraction(1, 20)
_COUNT = Count(Equals("it", "yes"))
_DOMAIN = Domain(it=Category("no", "yes"))

Asked = tuple[int, float, float | None, float]
"""(number of the question, its error bound in persons, its true error if that may be known, what was spent by then as
a fraction of the budget)."""


def questions(
    asked: Iterable[Asked],
    *,
    budget: Budget,
    beta: Exact = _TWENTIETH,
    neighbours: Neighbours | str = "replace-one",
) -> Plot:
    """Error and spending of a session against the number of questions, beside noise on every single one.

    budget  what fraction 1 stands for: it is also what the simpler ways get for all the questions together
    beta    all the bounds of the session fail together with this probability; the simpler ways promise the same
    """
    records = sorted((_record(each) for each in asked), key=lambda each: each[0])
    if not records:
        raise ParameterError("there is nothing to draw: no question was asked")
    if not isinstance(budget, Budget):
        raise ParameterError(f"budget must be a Budget(epsilon, delta), found {budget!r}")
    sure, facts = exact.probability(beta=beta), Facts(_DOMAIN, Neighbours.of(neighbours), None)
    total, (_, bound, _, spent) = records[-1][0], records[-1]
    ways = (Laplace, Gaussian) if budget.delta else (Laplace,)
    counted = _places(total)
    simple = {kind.__name__: [_each(kind, budget, facts, k, sure) for k in counted] for kind in ways}
    widest = max((each[1] for each in records if math.isfinite(each[1])), default=math.inf)
    alone = {kind.__name__: _alone(kind, budget, facts, total, sure, widest) for kind in ways}
    drawn = _Drawn(records, counted, simple, alone)
    alt = _questions_finding(total, bound, spent, simple, alone, drawn.truths)
    caption = (
        f"Above: how near the answers are, in persons; every promise holds for all questions at once with probability "
        f"{float(1 - sure):g}. Noise on every question gets the whole budget {budget} for as many questions as there "
        "are by then. Below: what the session had spent, and what noise on every question would have, for the "
        f"session's widest bound, ± {shown(widest)} persons; above 100 % the budget does not pay."
        + (" A true error of 0 is drawn at one half." if any(error == 0 for _, error in drawn.truths) else "")
    )
    return Plot(
        "Error and spending, question by question",
        alt,
        caption,
        _question_columns(simple, alone),
        tuple(_question_rows(records, counted, simple, alone)),
        draw(drawn.paint, alt=alt, heights=(3.2, 3.2)),
    )


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What is drawn: the session's questions, and for some numbers of questions what the simpler ways promise (simple)
    and which part of the budget each question takes of them (alone)."""

    records: list[Asked]
    counted: list[int]
    simple: dict[str, list[float | None]]
    alone: dict[str, float | None]

    @property
    def truths(self) -> list[tuple[int, float]]:
        return [(k, error) for k, _, error, _ in self.records if error is not None]

    def paint(self, errors: Any, spending: Any) -> None:
        self._errors(errors)
        self._spending(spending)
        for axes in (errors, spending):
            logarithmic(axes.xaxis)
            logarithmic(axes.yaxis)
            axes.set_xlim(0.92, 1.1 * max(2, self.records[-1][0]))
            legend(axes)
        percent_axis(spending.yaxis)
        errors.set(ylabel="error, persons", xlabel="questions")
        spending.set(ylabel="spent of the budget", xlabel="questions")

    def _errors(self, axes: Any) -> None:
        self._session(axes, "session, promised", [(k, b) for k, b, _, _ in self.records if math.isfinite(b)])
        if self.truths:
            points = split((k, max(error, 0.5)) for k, error in thinned(self.truths, MOST_POINTS))
            axes.plot(*points, linestyle="", marker=".", color=INK, markersize=4, label="session, true error")
        for place, (name, values) in enumerate(self.simple.items(), start=1):
            known = [(k, each) for k, each in zip(self.counted, values, strict=True) if each is not None]
            axes.plot(*split(known), label=f"{name} noise on each", **series(place))

    def _spending(self, axes: Any) -> None:
        self._session(axes, "session", [(k, s) for k, _, _, s in self.records if s > 0])
        for place, (name, each) in enumerate(self.alone.items(), start=1):
            if each is not None:
                axes.plot(
                    self.counted, [k * each for k in self.counted], label=f"{name} noise on each", **series(place)
                )
        axes.axhline(1, color=FAINT, linestyle=":", linewidth=1.2, label="the whole budget")

    def _session(self, axes: Any, label: str, points: list[tuple[int, float]]) -> None:
        """A line of the session: in steps, unless only some of its questions are given."""
        manner = "steps-post" if len(self.records) >= self.records[-1][0] else "default"
        kept = split(thinned(points, MOST_POINTS))
        axes.plot(*kept, drawstyle=manner, label=label, color=SERIES[0], linewidth=2.4)


def _record(asked: Any) -> Asked:
    try:
        number, bound, error, spent = asked
    except (TypeError, ValueError):
        raise ParameterError(
            f"a question is (number, error bound, true error or None, spent fraction), found {asked!r}"
        ) from None
    known = None if error is None else abs(float(exact.number(error=error)))
    reach = math.inf if bound == math.inf else float(exact.nonnegative(error_bound=bound))
    return exact.whole(number=number), reach, known, float(exact.nonnegative(spent=spent))


def _places(total: int) -> list[int]:
    """Numbers of questions at which the simpler ways are computed: 1, 2, 5, 10, ..., and the last."""
    powers = range(math.floor(math.log10(total)) + 1)
    return sorted({total, *(digit * 10**power for power in powers for digit in (1, 2, 5) if digit * 10**power < total)})


def _each(kind: Any, budget: Budget, facts: Facts, questions: int, beta: Fraction) -> float | None:
    """Within how many persons so many counts all are, with probability 1 - beta, if the budget is for all of them."""
    from discreet.plan.questions import direct_error, repeated

    noise = repeated(kind, _COUNT, questions, Funds.of(budget), facts)
    return None if noise is None else float(direct_error(noise, beta, questions, facts))


def _alone(kind: Any, budget: Budget, facts: Facts, questions: int, beta: Fraction, bound: float) -> float | None:
    """The fraction of the budget that one of so many counts takes when all shall be within this bound."""
    if not 1 <= bound < math.inf:
        return None
    inside = 1 - beta / questions

    def near(mechanism: Any) -> bool:
        return bool(mechanism.noise_range(inside, facts) <= bound)

    scale = _largest(lambda scale: near(kind(_COUNT, scale)))
    if scale is None:
        return None
    order, caps = caps_of(budget, Fraction(1, 2))
    price = price_of(kind(_COUNT, scale).guarantee(facts), order)
    amount, cap = (price.pure, caps.pure) if kind is Laplace else (price.renyi, caps.renyi)
    return None if amount is None or not cap else amount / cap


def _largest(holds: Callable[[Fraction], bool]) -> Fraction | None:
    """About the largest noise for which it holds, to a thousandth."""
    low, high = Fraction(1, 64), Fraction(1, 64)
    if not holds(low):
        return None
    while holds(high * 2):
        high *= 2
    low, high = high, high * 2
    while high - low > low / 1000:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _questions_finding(
    total: int, bound: float, spent: float, simple: dict[str, Any], alone: dict[str, Any], truths: Sequence[Any]
) -> str:
    said = f"After {times(total, 'question')} the session had spent {percent(spent)} of the budget and promised "
    said += f"± {shown(bound)} persons" if math.isfinite(bound) else "no bound for the last"
    if truths:
        said += f"; the largest true error was {shown(max(error for _, error in truths))}"
    costs = [f"{percent(each * total)} with {name} noise" for name, each in alone.items() if each is not None]
    if costs:
        said += f". Paying every question alone for the same bound would take {listed(costs)}"
    reach = [f"± {shown(each[-1])} with {name}" for name, each in simple.items() if each[-1] is not None]
    return f"{said}. Noise on each within the whole budget promises {listed(reach)}." if reach else f"{said}."


def _question_columns(simple: dict[str, Any], alone: dict[str, Any]) -> tuple[str, ...]:
    return (
        *("questions", "promised, ± persons", "true error", "spent"),
        *(f"{name} on each, ± persons" for name in simple),
        *(f"{name} on each, spent" for name in alone),
    )


def _question_rows(
    records: Sequence[Asked], counted: Sequence[int], simple: dict[str, Any], alone: dict[str, Any]
) -> Iterable[tuple[Any, ...]]:
    """The last answer at or before each of the counted places."""
    for place, k in enumerate(counted):
        before = [each for each in records if each[0] <= k]
        _, bound, error, spent = before[-1] if before else (k, None, None, 0.0)
        costs = (None if each is None else percent(k * each) for each in alone.values())
        yield k, bound, error, percent(spent), *(simple[name][place] for name in simple), *costs
