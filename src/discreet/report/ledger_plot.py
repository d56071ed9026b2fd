"""Where a budget goes: a ledger over time, and what is left of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import discreet as dp
from discreet.core import Books, Funds, ParameterError, percent, spent_books, whole
from discreet.describe import asked, mechanism_name, purpose
from discreet.drawing import FAINT, INK, SERIES
from discreet.report.plot import Panel, Plot, Scale, Series, draw, note, series, shown, thinned

MOST_BARS = 14
MOST_POINTS = 400
MOST_ROWS = 120
COUNT = dp.Count(dp.Equals("it", "yes"))
DOMAIN = dp.Domain(it=dp.Category("no", "yes"))
_BOOKS = {"renyi": "Renyi book", "pure": "pure book", "failure": "failures", "none": "both books closed"}
_SMALL = {"va": "center", "fontsize": 8.5, "color": INK}


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
        return _BOOKS["failure" if self.part("failure") == self.used > 0 else self.books.counting() or "none"]

    def row(self, books: Sequence[str]) -> tuple[int | str, ...]:
        """It in a table, with what is used of these books."""
        parts = ["closed" if math.isinf(part) else percent(part, up=True) for part in map(self.part, books)]
        return (self.entry, self.time, self.label, percent(self.used, up=True), *parts, self.deciding)

    @property
    def other(self) -> float:
        """The book that does not decide."""
        return self.part("pure" if self.books.counting() == "renyi" else "renyi")


def steps(ledger: dp.Ledger, *, everything: bool = False) -> list[Step]:
    """The ledger after every charge, and after every reconciliation, which may raise what counts as spent.

    A charge is called by its memo or by what was asked, if everything may be told; else by its mechanism.
    """
    now, history = ledger.spent(), []
    for body, state in ledger.fold():
        if body["kind"] in ("charge", "reconcile"):
            label = "reconciled"
            if body["kind"] == "charge":
                name = body["mechanism"].get("name")
                label = mechanism_name(name)
                if everything:
                    label = purpose(asked(body["mechanism"]), body["memo"], name, brief=True)
            books = spent_books(state.spent, now.caps, now.order, now.budget)
            history.append(Step(body["seq"], str(body["time"]), label, books))
    return history


@dataclass(frozen=True, slots=True)
class Bar:
    """Charges of one name that follow each other: what was used before, the ledger after, how many they are."""

    before: float
    step: Step
    count: int = 1

    @property
    def name(self) -> str:
        return f"{self.step.label}{f' × {self.count}' if self.count > 1 else ''}"

    @property
    def part(self) -> str:
        return percent(self.step.used - self.before, up=True)


def budget(ledger: dp.Ledger, *, everything: bool = False) -> Plot:
    """How much of a ledger's budget is used after every charge, in both books, and which of them decides.

    everything  charges are called by their memos or by what was asked; otherwise by their mechanisms
    """
    _require_ledger(ledger)
    charges = steps(ledger, everything=everything)
    bars: list[Bar] = []
    for step in charges:
        if bars and bars[-1].step.label == step.label:
            bars[-1] = Bar(bars[-1].before, step, bars[-1].count + 1)
        else:
            bars.append(Bar(bars[-1].step.used if bars else 0.0, step))
    kept, many = thinned(charges, MOST_ROWS), len(bars) > MOST_BARS
    alt = f"Nothing of the budget {ledger.budget} is used: nothing was charged yet."
    if charges:
        largest = max(bars, key=lambda bar: bar.step.used - bar.before)
        alt = (
            f"{percent(charges[-1].used, up=True)} of the budget {ledger.budget} is used, by {len(charges):,} "
            f"charge{'' if len(charges) == 1 else 's'}; the largest part, {largest.part}, by {largest.name}. What "
            f"decides how much is left: {charges[-1].deciding}."
        )
    books = [name for name in ("renyi", "pure", "failure") if getattr(ledger.caps, name)]
    return Plot(
        "Where the budget went",
        alt,
        _caption(charges, kept, both="renyi" in books, many=many),
        ("entry", "time", "charge", "used after it", *(_BOOKS[name] for name in books), "decided by"),
        tuple(each.row(books) for each in kept),
        draw(_curve(charges) if many else _waterfall(bars), alt=alt),
    )


def _require_ledger(ledger: object) -> None:
    if not isinstance(ledger, dp.Ledger):
        raise ParameterError(f"a budget is drawn from a Ledger, found {type(ledger).__name__}")


def _caption(charges: Sequence[Step], kept: Sequence[Step], *, both: bool, many: bool) -> str:
    how = "Every charge is written in one book, of pure epsilons"
    if both:
        how = "Every charge is written in two books and is counted in the Renyi book while that has anything left"
        how += "" if many else "; a diamond shows the other one, as far as it is within its cap"
    days = list(dict.fromkeys((charges[0].time[:10], charges[-1].time[:10]))) if charges else []
    when = f" {'From' if len(days) > 1 else 'All on'} {' to '.join(days)}." if days else ""
    thin = f" The table shows {len(kept)} of {len(charges):,} charges." if len(kept) < len(charges) else ""
    return f"{how}. At 100 % the ledger refuses; nothing is ever given back.{when}{thin}"


def _waterfall(bars: Sequence[Bar]) -> Panel:
    """A bar for every charge, from what was used before it to what was used after."""
    count = max(1, len(bars))

    def paint(axes: Any) -> None:
        for place, bar in enumerate(bars):
            used, other = bar.step.used, bar.step.other
            axes.barh(place, used - bar.before, left=bar.before, color=SERIES[0], height=0.62)
            if place < len(bars) - 1:  # a thread to the next bar
                axes.plot([used, used], [place, place + 1], color=FAINT, linewidth=0.8)
            if other <= 1:
                axes.plot([other], [place], marker="D", color=SERIES[1], markersize=4.5, linestyle="")
            if used > 0.8:  # no room to the right
                note(axes, f"+{bar.part}", (bar.before, place), (-5, 0), ha="right", **_SMALL)
            else:
                beside = max(used, other if other <= used + 0.15 else 0.0)
                note(axes, f"+{bar.part}", (beside, place), (6, 0), ha="left", **_SMALL)
        if not bars:
            axes.text(0.5, 0, "nothing was charged yet", ha="center", va="center", color=FAINT)
        axes.set_yticks(range(len(bars)), [_cut(bar.name) for bar in bars])
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)

    x, y = Scale("used of the budget", (0, 1), percent=True), Scale("", (count - 0.4, -0.6))
    return Panel(x, y, height=0.95 + 0.27 * count, paint=paint)


def _curve(charges: Sequence[Step]) -> Panel:
    """The books as lines, when there are too many charges for bars; the largest charges by name."""
    kept = thinned(list(enumerate(charges, start=1)), MOST_POINTS)
    places, every = [place for place, _ in kept], max(1, len(kept) // 8)

    def paint(axes: Any) -> None:
        used = [step.used for _, step in kept]
        axes.fill_between(places, used, step="post", color=SERIES[0], alpha=0.14, linewidth=0, label="used")
        for look, name in enumerate(("renyi", "pure")):
            parts = [step.part(name) for _, step in kept]
            drawn = [part if part <= 1 else math.nan for part in parts]
            if getattr(charges[-1].books.caps, name) and not all(map(math.isnan, drawn)):
                style = {**series(look), "markevery": (look * every // 2, every)}
                closed = "" if math.isfinite(parts[-1]) else ", closed"
                axes.step(places, drawn, where="post", label=f"{_BOOKS[name]}{closed}", **style)
        before = 0.0
        for place, step in enumerate(charges, start=1):
            if step.used - before >= 0.06:  # its step is high enough for a label beside it
                side = {"ha": "right"} if place > len(charges) / 2 else {"ha": "left"}
                at = (place, (before + min(step.used, 1.0)) / 2)
                note(axes, _cut(step.label), at, (-5 if side["ha"] == "right" else 5, 0), **side, **_SMALL)
            before = step.used

    x, y = Scale("charges", (1, len(charges))), Scale("used of the budget", (0, 1.02), percent=True)
    return Panel(x, y, height=3.2, columns=3, paint=paint)


def _cut(text: str, most: int = 28) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


# What is left.


def left(ledger: dp.Ledger, counts: Sequence[int] = (1, 10, 100, 1_000)) -> Plot:
    """What the remaining budget of a ledger buys: the noise range of each of several counts."""
    _require_ledger(ledger)
    numbers = sorted({whole(counts=each) for each in counts})
    size = None if ledger.facts is None else ledger.facts.size
    facts = dp.data.Facts(DOMAIN, ledger.identity.neighbours, size)
    ranges = {
        kind.__name__: [noise_of(kind, many, ledger.funds(), facts, Fraction(19, 20)) for many in numbers]
        for kind in (dp.Laplace, dp.Gaussian)
    }
    near = [
        f"± {shown(min(known))} persons on {'one count' if many == 1 else f'each of {many:,} counts'}"
        for many, *found in zip(numbers, *ranges.values(), strict=True)
        if (known := [each for each in found if each is not None])
    ]
    alt = f"The remaining budget buys a noise range (95 %) of {', or '.join(near)}." if near else "Nothing more fits."
    caption = (
        "If the remaining budget is spent on counts: how many persons each of them is off, at most, in 95 of 100 "
        f"cases.{f' There are {size:,} persons.' if size else ''} Models, rules and sessions are paid from the same."
    )
    lines = [Series(f"{kind} noise", list(zip(numbers, found, strict=True))) for kind, found in ranges.items() if near]
    frame = Panel(Scale("counts", ticks=numbers), Scale("noise range (95 %), persons"), lines)
    rows = tuple(zip(numbers, *ranges.values(), strict=True))
    columns = ("counts", *(f"{kind}, ± persons" for kind in ranges))
    return Plot("What the rest of the budget buys", alt, caption, columns, rows, draw(frame, alt=alt))


def noise_of(kind: Any, many: int, funds: Funds, facts: dp.data.Facts, probability: Fraction) -> float | None:
    """Within how many persons a count is with this probability, with the least noise with which this many counts fit
    together; None if they do not."""
    try:
        noise: Any = dp.calibrate(lambda noise: kind(COUNT, noise), funds=funds, facts=facts, times=many)
    except ParameterError:
        return None
    return float(noise.noise_range(probability, facts))
