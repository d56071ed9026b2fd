"""What a release cost and the remaining budget, for people and for programs. Costs are rounded up, the rest down."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import discreet as dp
from discreet.cli.kit import OpenTable, one_line

if TYPE_CHECKING:
    from discreet.estimators.base import FitGuarantee


@dataclass(frozen=True, slots=True)
class Remaining:
    """The remaining budget in nano-units of the first book, and how many more answers it buys.

    whose  the allowance that it is the rest of; None: of the whole budget
    """

    nano: int
    cap: int
    whose: str | None = None
    more: int | None = None
    more_of: tuple[str, str] = ("question like this", "questions like this")

    def cost(self, nano: int) -> str:
        """A price as a part of the same budget."""
        return dp.exact.percent(Fraction(nano, self.cap), up=True) if self.cap else dp.display.EMPTY

    def record(self) -> dict[str, Any]:
        """What is left, as JSON."""
        part = 100 * self.nano / self.cap if self.cap else None
        return {"nano": self.nano, "percent_of_budget": part, "budget_nano": self.cap}

    def __str__(self) -> str:
        whose = "" if self.whose is None else f" for {one_line(self.whose)}"
        more = "" if self.more is None else f", about {self.more:,} more {self.more_of[self.more != 1]}"
        return f"left{whose}: {dp.exact.percent(Fraction(self.nano, self.cap)) if self.cap else '-'}{more}"


@dataclass(frozen=True, slots=True)
class Payment:
    """One charge: what it promises, its entry in the ledger, its price, and the remaining budget after it.

    part      the price as a fraction of the budget, in the book that decides (`Books.counting`)
    more      about how many releases like this one still fit
    whose     the allowance under which it is counted, and of which `left` and `more` are; None: of the whole budget
    replayed  nothing was charged now: this is the stored release of that entry
    """

    guarantee: FitGuarantee
    unit: str | None
    entry: int
    hash: str
    price: dp.funds.Price
    left: dp.funds.Books
    part: Fraction | None
    more: int
    whose: str | None = None
    replayed: bool = False

    def record(self) -> dict[str, Any]:
        """Everything as plain numbers and texts."""
        return {
            "guarantee": {
                "epsilon": self.guarantee.epsilon(self.guarantee.budget.delta),
                "delta": float(self.guarantee.budget.delta),
                "neighbours": str(self.guarantee.neighbours),
                "unit": self.unit or "a row",
            },
            "entry": self.entry,
            "entry_hash": self.hash,
            "price": {
                **self.price.record(),
                "nano": self.left.caps.in_first(self.price),
                "percent_of_budget": None if self.part is None else 100 * float(self.part),
                "epsilon": 0.0 if self.replayed else self.guarantee.guarantee.epsilon(self.left.delta),
                "delta": float(self.left.delta),
            },
            "left": {
                **self.left.record(),
                "nano": self.left.caps.in_first(self.left),
                "percent_of_budget": 100 * float(1 - self.left.used()),
                "budget_nano": self.left.caps.first,
            },
            "more_like_this": self.more,
            "allowance": self.whose,
            "replayed": self.replayed,
        }

    def lines(self) -> list[tuple[str, object]]:
        """The same for people, as names and sentences."""
        whose = "" if self.whose is None else f" for {one_line(self.whose)}"
        left = f"{dp.exact.percent(1 - self.left.used())} of the budget{whose}: about {self.more:,} more like this"
        return [("guarantee", self.guarantee), ("price", self.took), ("left", left)]

    @property
    def took(self) -> str:
        """Which part of the budget it took."""
        if self.replayed:
            return f"free: this is the stored release of entry {self.entry}; --again pays for a new one"
        return (
            "none in the book that decides"
            if self.part is None
            else f"{dp.exact.percent(self.part, up=True)} of the budget"
        )


def receipt(at: OpenTable, guarantee: FitGuarantee, entry: int, *, replayed: bool) -> Payment:
    """The receipt of an entry that was just charged, or whose stored release was given back."""
    left, price = at.ledger.remaining(allowance=at.allowance), at.ledger.price(guarantee.guarantee)
    again: Any = SimpleNamespace(guarantee=lambda facts: guarantee.guarantee)  # another release with the same price
    paid, more = dp.funds.NOTHING if replayed else price, left.how_many(again, facts=at.table.facts)
    found = (at.ledger.identity.unit, entry, at.ledger.entry(entry)["hash"], paid)
    return Payment(guarantee, *found, left, left.part_of(paid), more, at.allowance, replayed)
