"""Somebody who asks hundreds of questions, each chosen after the answers before it.

An investigation is a generator: it yields conditions, is sent the private count of the people who satisfy them, and
returns what it found in words. It sees nothing else; `Interview` puts its questions to a session and looks up, in the
tour's own file, how far each answer is off.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import discreet as dp

from .truth import Condition, Truth

Conditions = tuple[Condition, ...]
Investigation = Generator[Conditions, int, str]


@dataclass(frozen=True, slots=True)
class Asked:
    """One question: its answer, the bound it came with, its price as a part of the budget, and the true error."""

    conditions: Conditions
    answer: int
    bound: float
    price: float
    error: int


# Investigations.


def drill(domain: dp.Domain, columns: Sequence[str], least: float) -> Investigation:
    """Every level of the first column; within each that has enough people every level of the second; and so on."""
    groups = yield from _below(domain, tuple(columns), (), least)
    most, where = max(groups, key=lambda found: found[0])
    return f"most: {in_words(where)}: {most:,}"


def _below(
    domain: dp.Domain, columns: tuple[str, ...], path: Conditions, least: float
) -> Generator[Conditions, int, list[tuple[int, Conditions]]]:
    """The groups at the end of every path that is followed."""
    found: list[tuple[int, Conditions]] = []
    for level in _levels(domain, columns[0]):
        group = (*path, (columns[0], "=", level))
        people = yield group
        if len(columns) == 1:
            found.append((people, group))
        elif people >= least:
            found += yield from _below(domain, columns[1:], group, least)
    return found or [(0, path)]


def upper_half(domain: dp.Domain, column: str, by: str, people: int, least: float) -> Investigation:
    """The value that half of the people reach, by halving; then how many reach it in every large group."""
    half = (column, ">=", (yield from _median(domain, column, people)))
    shares = []
    for level in _levels(domain, by):
        group = yield ((by, "=", level),)
        if group >= least:
            upper = yield ((by, "=", level), half)
            shares.append(f"{100 * upper / group:.0f} % of {by} {level}")
    return f"half have {in_words((half,))}: {', '.join(shares)}"


def _median(domain: dp.Domain, column: str, people: int) -> Generator[Conditions, int, int]:
    declared = domain.column(column)
    assert isinstance(declared, dp.Number)
    low, high = 0, declared.steps + 1
    while high - low > 1:
        middle = (low + high) // 2
        reach = yield ((column, ">=", _value(declared, middle)),)
        low, high = (middle, high) if reach >= people / 2 else (low, middle)
    return _value(declared, low)


def _value(column: dp.Number, step: int) -> int:
    return int(column.low + step * column.step)


def _levels(domain: dp.Domain, name: str) -> Sequence[object]:
    column = domain.column(name)
    assert isinstance(column, dp.Category)
    return column.levels


def in_words(conditions: Conditions) -> str:
    return ", ".join(
        f"{name} {value}" if sign == "=" else f"{name} {sign} {value:,}" for name, sign, value in conditions
    )


# Asking.


def sql(conditions: Conditions) -> str:
    where = " AND ".join(f"{name} {sign} {value!r}" for name, sign, value in conditions)
    return f"SELECT COUNT(*) FROM people WHERE {where}"


class Interview:
    """Investigations, one after the other, until what is left of the budget is the reserve."""

    def __init__(self, session: dp.Session, truth: Truth, *, reserve: float) -> None:
        self.session, self.truth, self.reserve = session, truth, reserve
        self.asked: list[Asked] = []

    def hear(self, investigation: Investigation, tell: Callable[[list[Asked]], None]) -> str:
        """Answer its questions; what it found. It is cut short when the reserve is reached."""
        try:
            conditions = next(investigation)
            while self._left() > self.reserve:
                self.asked.append(self._answered(conditions))
                tell(self.asked)
                conditions = investigation.send(self.asked[-1].answer)
        except StopIteration as done:
            return str(done.value)
        investigation.close()
        return "stopped: the rest of the budget is kept for you"

    def _answered(self, conditions: Conditions) -> Asked:
        got = self.session.ask(sql(conditions))
        off = abs(got.value - self.truth.count(conditions))
        return Asked(conditions, got.value, got.error_bound, got.price / self._cap(), off)

    def _left(self) -> float:
        return (self.session.ledger.remaining().renyi or 0) / self._cap()

    def _cap(self) -> int:
        return self.session.ledger.spent().caps.renyi or 1


def free(asked: Sequence[Asked]) -> int:
    return sum(each.price == 0 for each in asked)


def worst(asked: Sequence[Asked]) -> int:
    return max((each.error for each in asked), default=0)


def mean(asked: Sequence[Asked]) -> float:
    return sum(each.error for each in asked) / max(1, len(asked))


def cost(asked: Sequence[Asked]) -> float:
    return sum(each.price for each in asked)


def within(asked: Sequence[Asked]) -> int:
    """How many answers are within the bound they came with."""
    return sum(each.error <= each.bound for each in asked)
