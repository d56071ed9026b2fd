"""A table with its ledger, and how much of the budget each step took: the real one, or a rehearsal of it.

The tour runs its steps twice. First on made-up rows with a ledger of their own: prices and promises depend on public
numbers only (the bounds of tables a little on what was released), so a rehearsal shows them, free. Then on the people.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import discreet as dp

from .truth import Truth


@dataclass(frozen=True, slots=True)
class Desk:
    """What every step works with. truth is None in a rehearsal: made-up rows have none that matters.

    reading  the rows under another declaration of the same columns
    """

    table: Any
    ledger: dp.Ledger
    truth: Truth | None
    reading: Callable[[dp.Domain], Any]

    @property
    def size(self) -> int:
        found: int = self.table.facts.size
        return found

    def fit(self, estimator: Any, *, features: list[str], target: str) -> Any:
        return dp.Session(self.table, self.ledger).fit(estimator, features=features, target=target)

    def share(self, part: Fraction) -> dp.Share:
        """A part of the whole budget, as a share of what is left of it."""
        left = self.ledger.remaining()
        assert left.renyi is not None
        assert left.caps.renyi is not None
        return dp.Share(min(Fraction(1), part * left.caps.renyi / left.renyi))

    def spent(self) -> float:
        """Which part of the budget is spent."""
        books = self.ledger.spent()
        assert books.renyi is not None
        return books.renyi / (books.caps.renyi or 1)


def real(schema: dp.Schema, ledger: dp.Ledger, table: Any, truth: Truth) -> Desk:
    return Desk(table, ledger, truth, lambda domain: replace(schema, domain=domain).table())


def rehearsal(schema: dp.Schema, budget: dp.Budget, size: int) -> Desk:
    """As many made-up people with the same declaration, and as much budget."""

    def reading(domain: dp.Domain) -> Any:
        return replace(schema, domain=domain).rehearsal(size)

    table = reading(schema.domain)
    return Desk(table, dp.Ledger.in_memory(budget, table), None, reading)
