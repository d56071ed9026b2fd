"""How an answer is shown: what it is and how near, where it came from, what it cost, what is left; and wrong questions.

± is the error bound: all bounds that were ever given through a ledger to sessions with this beta hold together with
probability 1 - beta. Counts are whole, so their bound is shown without what is behind the decimal point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.cli.options import Output, percent
from discreet.describe import one_line

if TYPE_CHECKING:
    from discreet.answering.answer import Answer
    from discreet.errors import UnsupportedQuery

_WORDS = {
    "cache": "asked before",
    "hypothesis": "known from earlier answers",
    "public": "public",
    "workload": "paid together with the others",
}
_ROWS_SHOWN = 1_000  # of a table; --json has all of them
_NARROW = 50  # on a screen of fewer columns a table has no shares
LITTLE = "the bound is larger than the answer: this tells little"
NO_BOUND = "no bound: there may be nobody to average over"


@dataclass(frozen=True, slots=True)
class Left:
    """What is left of a budget, in nano-units of the first book, for somebody, and how many more answers that buys."""

    nano: int
    cap: int
    whose: str | None = None
    more: int | None = None
    more_of: str = "question like this"

    def __str__(self) -> str:
        whose = "" if self.whose is None else f" for {one_line(self.whose)}"
        more = "" if self.more is None else f", about {self.more:,} more {_counted(self.more, self.more_of)}"
        return f"left{whose}: {percent(self.nano, self.cap)}{more}"


def _counted(number: int, words: str) -> str:
    """The words for one thing, or for several of it."""
    if number == 1:
        return words
    return words.replace("question", "questions") if "question" in words else f"{words}s"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, its answer, and what is left after it.

    size     the public number of persons
    clipped  how the column of a sum or an average is read (`cli.clipping`)
    """

    question: str
    answer: Answer
    left: Left
    size: int
    clipped: dict[str, Any] | None = None

    @property
    def cost(self) -> str:
        """Where the answer came from and what it cost."""
        source, price = self.answer.source, self.answer.price
        if price:
            guard = ", for a threshold that lets later questions pass free" if source == "hypothesis" else ""
            return f"paid: {percent(price, self.left.cap)} of the budget{guard}"
        if source == "workload":
            return _WORDS[source]
        parts = {_WORDS.get(each, each) for each in source.split(" and ")}
        if len(parts) > 1 or (self.clipped and source == "cache"):  # a sum or a count of some other question
            return f"free: {_WORDS['hypothesis']}"
        return f"free: {parts.pop()}"

    @property
    def one(self) -> str:
        """The answer in one line; of a table how many groups there are."""
        answer = self.answer
        if answer.groups:
            return f"{len(answer.value):,} groups, each {self.bound}, all at once"
        if answer.fraction is not None:
            share, near = rounded(100 * answer.fraction, 100 * answer.error_bound / self.size)
            return f"{answer.value:,} {self.bound} ({share} % ± {near} % of the people)"
        unit = "" if self.counts else f" ({one_line(answer.unit.partition(';')[0])})"
        return f"{self.value} {self.bound}{unit}"

    @property
    def counts(self) -> bool:
        return self.answer.unit in ("persons", "rows")

    @property
    def value(self) -> str:
        answer = self.answer
        if isinstance(answer.value, int):
            return f"{answer.value:,}"
        ranks = answer.unit.endswith("in ranks")  # the bound is not about the value's own digits
        return f"{answer.value:,.12g}" if ranks else rounded(answer.value, answer.error_bound)[0]

    @property
    def bound(self) -> str:
        answer = self.answer
        if answer.unit.endswith("in ranks"):
            return f"± {math.floor(answer.error_bound):,} ranks"
        if math.isinf(answer.error_bound):
            return f"± {NO_BOUND}"
        if self.counts:
            return f"± {math.floor(answer.error_bound):,} {answer.unit}"
        return f"± {rounded(answer.value, answer.error_bound)[1]}"

    @property
    def little(self) -> str:
        """What to say if the bound is larger than what it is about; nothing otherwise."""
        answer, bound = self.answer, self.answer.error_bound
        if answer.unit.endswith("in ranks") or math.isinf(bound):
            return ""
        if not answer.groups:
            return LITTLE if bound > abs(answer.value) else ""
        small = sum(bound > count for count in answer.value.values())
        return (
            f"the bound is larger than {small:,} of the {len(answer.value):,} counts: those tell little"
            if small
            else ""
        )


def show(asked: Asked, output: Output) -> None:
    """An answer for people."""
    if asked.answer.testing:
        output.say("NOT PRIVATE: a testing ledger")
    output.say(asked.one, style="bold")
    if asked.answer.groups:
        _table(asked, output)
    if asked.little:
        output.say(asked.little)
    if asked.clipped is not None:
        output.say(asked.clipped["note"])
    if asked.answer.population is not None:
        output.say(f"± {_up(100 * asked.answer.population)} % of the population, if the rows are a random sample of it")
    output.say(f"{asked.cost}; {asked.left}")


def _table(asked: Asked, output: Output) -> None:
    answer = asked.answer
    shown = list(answer.value.items())[:_ROWS_SHOWN]
    share = () if answer.fraction is None or output.console.width < _NARROW else ("of the people",)
    rows = [(*_labels(key), count, *(f"{100 * answer.fraction[key]:.3g} %" for _ in share)) for key, count in shown]
    output.table([*map(one_line, answer.groups), "count", *share], rows)
    if len(shown) < len(answer.value):
        output.say(f"... and {len(answer.value) - len(shown):,} groups more: --json has all of them")


def _labels(key: Any) -> list[str]:
    return ["missing" if each is None else str(each) for each in (key if isinstance(key, tuple) else (key,))]


def as_json(asked: Asked) -> dict[str, Any]:
    """An answer for programs: everything, numbers as they are. A bound of null is infinite."""
    answer = asked.answer
    return {
        **({"warning": "NOT PRIVATE"} if answer.testing else {}),
        "question": asked.question,
        **_values(answer),
        "error_bound": _finite(answer.error_bound),
        "error_bound_fraction": _finite(answer.error_bound / asked.size) if asked.counts else None,
        "unit": answer.unit,
        "tells_little": NO_BOUND if math.isinf(answer.error_bound) else asked.little or None,
        "clipped": asked.clipped,
        "population_bound_fraction": answer.population,
        "source": answer.source,
        "cost": asked.cost,
        "price_nano": answer.price,
        "budget_nano": asked.left.cap,
        "left_nano": asked.left.nano,
        "more_like_this": asked.left.more,
    }


def _values(answer: Answer) -> dict[str, Any]:
    if not answer.groups:
        return {"value": answer.value, "fraction": answer.fraction}
    found = []
    for key, count in answer.value.items():
        labels = key if isinstance(key, tuple) else (key,)
        fraction = None if answer.fraction is None else answer.fraction[key]
        found.append({"group": dict(zip(answer.groups, labels, strict=True)), "count": count, "fraction": fraction})
    return {"groups": found}


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def rounded(value: float, bound: float) -> tuple[str, str]:
    """A value with the digits that its bound leaves it, and the bound with what that took away, rounded up: the truth
    lies between the two numbers that are shown."""
    if not 0 < bound < math.inf:
        return f"{value:,.12g}", _up(bound) if bound == 0 else NO_BOUND
    decimals = 3 - math.floor(math.log10(bound))
    near = round(value, decimals)
    shown = f"{near:,.{max(0, decimals)}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown, _up(bound + abs(near - value))


def _up(bound: float) -> str:
    """Three digits, rounded up: a bound must not be shown as less than it is."""
    if bound == 0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(bound)) - 2)
    return f"{math.ceil(bound / unit) * unit:,.6g}"


# Questions that are not understood.


def caret(refused: UnsupportedQuery, width: int) -> str:
    """The question, or as much of it as fits, with a sign under the place; below it the reason and a hint."""
    from rich.cells import cell_len

    text = "".join(sign if sign.isprintable() else " " for sign in refused.text)
    place = min(max(0, refused.position), len(text))
    room = max(20, width) - 2
    first = 0 if len(text) <= room else max(0, min(place - room // 2, len(text) - room))
    shown = text[first : first + room]
    before, after = "…" if first else " ", "…" if first + room < len(text) else ""
    indent = " " * cell_len(before + shown[: place - first])
    reason = one_line(refused.reason)
    ended = reason if reason.endswith((".", "?", "!")) else f"{reason}."
    return f"{before}{shown}{after}\n{indent}^\n{ended} {one_line(refused.hint)}"
