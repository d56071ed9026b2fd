"""Where a budget goes: a ledger over time, and what is left of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet import exact
from discreet.data import Category, Domain, Facts
from discreet.describe import one_line
from discreet.errors import ParameterError
from discreet.funds import Books, spent_books
from discreet.ledger import Ledger
from discreet.mechanisms import Gaussian, Laplace
from discreet.query import Count, Equals
from discreet.report.plot import (
    FAINT,
    INK,
    SERIES,
    Cell,
    Plot,
    draw,
    legend,
    logarithmic,
    percent,
    percent_axis,
    series,
    shown,
    split,
    thinned,
    times,
)

MOST_BARS = 14
MOST_POINTS = 400
MOST_ROWS = 120
_BOOKS = {"renyi": "Renyi book", "pure": "pure book", "failure": "failures", "none": "both books closed"}


@dataclass(frozen=True, slots=True)
class Step:
    """A ledger after one charge."""

    entry: int
    time: str
    label: str
    books: Books

    @property
    def used(self) -> float:
        return float(self.books.used())

    def part(self, book: str) -> float:
        """What is used of "renyi", "pure" or "failure"; infinite if something was released that has no price there."""
        amount, cap = getattr(self.books, book), getattr(self.books.caps, book)
        if amount == 0:
            return 0.0
        return math.inf if amount is None or not cap else amount / cap

    @property
    def deciding(self) -> str:
        """What decides how much is left."""
        return "failure" if self.part("failure") == self.used > 0 else self.books.counting() or "none"

    @property
    def other(self) -> float:
        """The book that does not decide."""
        return self.part("pure" if self.books.counting() == "renyi" else "renyi")


def steps(ledger: Ledger, *, everything: bool = False) -> list[Step]:
    """The ledger after every charge, and after every reconciliation, which may raise what counts as spent."""
    now, history = ledger.spent(), []
    for body, state in ledger.fold():
        if body["kind"] in ("charge", "reconcile"):
            label = _label(body, everything) if body["kind"] == "charge" else "reconciled"
            books = spent_books(state.spent, now.caps, now.order)
            history.append(Step(body["seq"], str(body["time"]), label, books))
    return history


def _label(body: dict[str, Any], everything: bool) -> str:
    """A charge's name: its memo, if that may be told, or its mechanism."""
    memo = one_line(body["memo"]) if everything else ""
    return memo or mechanism_name(body["mechanism"].get("name"))


def mechanism_name(recorded: object) -> str:
    """What a recorded mechanism is called: laplace/1 is laplace."""
    return one_line(str(recorded or "without a name").split("/")[0].replace("-", " "))


def budget(ledger: Ledger, *, everything: bool = False) -> Plot:
    """How much of a ledger's budget is used after every charge, in both books, and which of them decides.

    everything  charges are called by their memos, which may say what was asked; otherwise by their mechanisms
    """
    if not isinstance(ledger, Ledger):
        raise ParameterError(f"a budget is drawn from a Ledger, found {type(ledger).__name__}")
    found = steps(ledger, everything=everything)
    bars, kept = _grouped(found), thinned(found, MOST_ROWS)
    many = len(bars) > MOST_BARS
    alt = _finding(ledger, found, bars)
    books = [name for name in ("renyi", "pure", "failure") if getattr(ledger.spent().caps, name)]
    rows: list[tuple[Cell, ...]] = []
    for each in kept:
        parts = ["closed" if math.isinf(part := each.part(name)) else percent(part) for name in books]
        rows.append((each.entry, each.time, each.label, percent(each.used), *parts, _BOOKS[each.deciding]))
    return Plot(
        "Where the budget went",
        alt,
        _caption(found, kept, both="renyi" in books, many=many),
        ("entry", "time", "charge", "used after it", *(_BOOKS[name] for name in books), "decided by"),
        tuple(rows),
        draw(
            _curve(found) if many else _waterfall(bars),
            alt=alt,
            heights=(3.2 if many else 0.95 + 0.27 * max(1, len(bars)),),
        ),
    )


def _finding(ledger: Ledger, found: Sequence[Step], bars: Sequence[Bar]) -> str:
    if not found:
        return f"Nothing of the budget {ledger.budget} is used: nothing was charged yet."
    largest = max(bars, key=lambda bar: bar.step.used - bar.before)
    return (
        f"{percent(found[-1].used)} of the budget {ledger.budget} is used, by {times(len(found), 'charge')}; the "
        f"largest part, {percent(largest.step.used - largest.before)}, by {largest.name}. What decides how much is "
        f"left: {_BOOKS[found[-1].deciding]}."
    )


def _caption(found: Sequence[Step], kept: Sequence[Step], *, both: bool, many: bool) -> str:
    how = (
        "Every charge is written in two books and is counted in the Renyi book while that has anything left"
        + ("" if many else "; a diamond shows the other one, as far as it is within its cap")
        if both
        else "Every charge is written in one book, of pure epsilons"
    )
    days = list(dict.fromkeys((found[0].time[:10], found[-1].time[:10]))) if found else []
    when = f" {'From' if len(days) > 1 else 'All on'} {' to '.join(days)}." if days else ""
    thin = f" The table shows {len(kept)} of {len(found):,} charges." if len(kept) < len(found) else ""
    return f"{how}. At 100 % the ledger refuses; nothing is ever given back.{when}{thin}"


@dataclass(frozen=True, slots=True)
class Bar:
    """Charges of one name that follow each other: what was used before, the ledger after, how many they are."""

    before: float
    step: Step
    count: int = 1

    @property
    def name(self) -> str:
        return f"{self.step.label}{f' × {self.count}' if self.count > 1 else ''}"


def _grouped(found: Sequence[Step]) -> list[Bar]:
    bars: list[Bar] = []
    for step in found:
        if bars and bars[-1].step.label == step.label:
            bars[-1] = Bar(bars[-1].before, step, bars[-1].count + 1)
        else:
            bars.append(Bar(bars[-1].step.used if bars else 0.0, step))
    return bars


def _waterfall(bars: Sequence[Bar]) -> Callable[[Any], None]:
    """A bar for every charge, from what was used before it to what was used after."""

    def paint(axes: Any) -> None:
        for place, bar in enumerate(bars):
            _bar(axes, place, bar, last=place == len(bars) - 1)
        if not bars:
            axes.text(0.5, 0, "nothing was charged yet", ha="center", va="center", color=FAINT)
        axes.set_yticks(range(len(bars)), [_cut(bar.name) for bar in bars])
        axes.set(xlim=(0, 1), ylim=(max(1, len(bars)) - 0.4, -0.6), xlabel="used of the budget")
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        percent_axis(axes.xaxis)

    return paint


def _bar(axes: Any, place: int, bar: Bar, *, last: bool) -> None:
    used = bar.step.used
    axes.barh(place, used - bar.before, left=bar.before, color=SERIES[0], height=0.62)
    if not last:  # a thread to the next bar
        axes.plot([used, used], [place, place + 1], color=FAINT, linewidth=0.8)
    if bar.step.other <= 1:
        axes.plot([bar.step.other], [place], marker="D", color=SERIES[1], markersize=4.5, linestyle="")
    beyond = used > 0.8  # no room to the right
    axes.annotate(
        f"+{percent(used - bar.before)}",
        (bar.before if beyond else max(used, bar.step.other if bar.step.other <= used + 0.15 else 0.0), place),
        xytext=(-5 if beyond else 6, 0),
        textcoords="offset points",
        ha="right" if beyond else "left",
        va="center",
        fontsize=8.5,
        color=INK,
    )


def _curve(found: Sequence[Step]) -> Callable[[Any], None]:
    """The books as lines, when there are too many charges for bars; the largest charges by name."""

    def paint(axes: Any) -> None:
        kept = thinned(list(enumerate(found, start=1)), MOST_POINTS)
        places = [place for place, _ in kept]
        used = [step.used for _, step in kept]
        axes.fill_between(places, used, step="post", color=SERIES[0], alpha=0.14, linewidth=0, label="used")
        every = max(1, len(places) // 8)
        for look, name in enumerate(("renyi", "pure")):
            parts = [step.part(name) for _, step in kept]
            drawn = [part if part <= 1 else math.nan for part in parts]
            if getattr(found[-1].books.caps, name) and not all(map(math.isnan, drawn)):
                style = {**series(look), "markevery": (look * every // 2, every)}
                closed = "" if math.isfinite(parts[-1]) else ", closed"
                axes.step(places, drawn, where="post", label=f"{_BOOKS[name]}{closed}", **style)
        _name_the_largest(axes, found)
        axes.set(xlim=(1, len(found)), ylim=(0, 1.02), xlabel="charges", ylabel="used of the budget")
        percent_axis(axes.yaxis)
        legend(axes, columns=3)

    return paint


def _name_the_largest(axes: Any, found: Sequence[Step], least: float = 0.06) -> None:
    """The labels of charges that are large enough to have room beside their step."""
    before = 0.0
    for place, step in enumerate(found, start=1):
        if step.used - before >= least:
            right = place > len(found) / 2
            axes.annotate(
                _cut(step.label),
                (place, (before + min(step.used, 1.0)) / 2),
                xytext=(-5 if right else 5, 0),
                textcoords="offset points",
                ha="right" if right else "left",
                va="center",
                fontsize=8.5,
                color=INK,
            )
        before = step.used


def _cut(text: str, most: int = 28) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


# What is left.


def left(ledger: Ledger, counts: Sequence[int] = (1, 10, 100, 1_000)) -> Plot:
    """What all that is left in a ledger buys: the noise range of every one of so many counts."""
    if not isinstance(ledger, Ledger):
        raise ParameterError(f"what is left is drawn from a Ledger, found {type(ledger).__name__}")
    several = sorted({exact.whole(counts=each) for each in counts})
    size = None if ledger.facts is None else ledger.facts.size
    found = {kind.__name__: [_range(kind, ledger, size, each) for each in several] for kind in (Laplace, Gaussian)}
    told = [
        f"± {shown(min(known))} persons on {'one count' if each == 1 else f'each of {each:,} counts'}"
        for each, *ranges in zip(several, *found.values(), strict=True)
        if (known := [one for one in ranges if one is not None])
    ]
    alt = f"All that is left buys a noise range (95 %) of {', or '.join(told)}." if told else "Nothing more fits."
    caption = (
        "If all that is left is spent on counts: within how many persons of the truth each of them is, in 95 of 100 "
        f"cases.{f' There are {size:,} persons.' if size else ''} Models, rules and sessions are paid from the same."
    )

    def paint(axes: Any) -> None:
        for place, (kind, ranges) in enumerate(found.items()):
            points = [(each, one) for each, one in zip(several, ranges, strict=True) if one is not None]
            axes.plot(*split(points), label=f"{kind} noise", **series(place))
        if told:
            logarithmic(axes.xaxis, several)
            logarithmic(axes.yaxis)
            legend(axes)
        axes.set(xlabel="counts", ylabel="noise range (95 %), persons")

    rows = tuple(zip(several, *found.values(), strict=True))
    columns = ("counts", *(f"{kind}, ± persons" for kind in found))
    return Plot("What the rest of the budget buys", alt, caption, columns, rows, draw(paint, alt=alt))


def _range(kind: type[Laplace] | type[Gaussian], ledger: Ledger, size: int | None, many: int) -> float | None:
    """The noise range of each of so many counts that take all that is left; None if they do not fit."""
    from discreet.answering.beforehand import repeated

    facts = Facts(Domain(it=Category("no", "yes")), ledger.identity.neighbours, size)
    noise = repeated(kind, Count(Equals("it", "yes")), many, ledger.funds(), facts)
    return None if noise is None else float(noise.noise_range(Fraction(19, 20), facts))  # type: ignore[arg-type]
