"""Running totals of a table that grows: paid once, with a number and its ± for every epoch.

    running = Running.open(Count(Equals("ward", "surgery")), table, ledger, epochs=36, price="20%")
    running.totals()                                # of the epochs that the table has
    Running.find(query, table, ledger).totals()     # a month later, in another process: the new epoch is added, free

A face over `mechanisms.ContinualCounter`; the conversation, its steps and its answers are in the ledger.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.core import (
    CellTable,
    ConversationOver,
    Exact,
    Funds,
    ParameterError,
    Rng,
    Sheet,
    Shown,
    exact,
    revive,
)
from discreet.data import EpochsView, epoch_label
from discreet.ledger import Ledger
from discreet.mechanisms import ContinualCounter, calibrate
from discreet.query import Among, And, Between, Count, Equals, Missing, Not, Or, Sum
from discreet.release import converse, reopen

_READ: dict[str, type] = {
    each.NAME: each for each in (ContinualCounter, Count, Sum, Among, And, Between, Equals, Missing, Not, Or)
}


@dataclass(frozen=True, slots=True)
class RunningTotal:
    """The total of all epochs up to one.

    deviation    its standard deviation
    error_bound  no total of this counter is further off than its bound, but with probability beta, all of them together
    """

    epoch: str
    total: float
    deviation: float
    error_bound: float


class Running(Shown):
    """The running totals of one query, by the entry of their charge. Made by `open` and `find`."""

    __slots__ = ("_rng", "charge", "counter", "ledger", "table")

    def __init__(
        self, counter: ContinualCounter, table: EpochsView, ledger: Ledger, charge: int, rng: Rng | None = None
    ) -> None:
        self.counter, self.table, self.ledger, self.charge, self._rng = counter, table, ledger, charge, rng

    @staticmethod
    def plan(
        query: Count | Sum, table: EpochsView, ledger: Ledger, *, epochs: int, price: Exact, first: object = None
    ) -> ContinualCounter:
        """The counter that this part of the budget pays for; reads no rows and spends nothing.

        epochs  how many there will be, those that the table has included
        price   the part of the budget: 0.2 or 1/5
        first   the first epoch; None: that of the table
        """
        growth, part = _growth(table), exact.positive(price=price)
        begin = epoch_label(table.facts.domain, growth.column, table.epochs[0] if first is None else first)
        spent = ledger.spent()
        if part > 1:
            raise ParameterError(f"price must be at most the whole budget, found {price!r}", argument="price")
        funds = Funds(spent.order, spent.caps.share(part))
        return calibrate(
            lambda scale: ContinualCounter(query, growth.column, begin, epochs, scale), funds=funds, facts=table.facts
        )

    @staticmethod
    def open(
        query: Count | Sum,
        table: EpochsView,
        ledger: Ledger,
        *,
        epochs: int,
        price: Exact,
        first: object = None,
        allowance: str | None = None,
        memo: str = "",
        rng: Rng | None = None,
    ) -> Running:
        """Pay for the totals of all epochs now. The arguments are those of `plan`, and rng for testing ledgers."""
        counter = Running.plan(query, table, ledger, epochs=epochs, price=price, first=first)
        opened = converse(counter, table, ledger=ledger, allowance=allowance, memo=memo, rng=rng)
        return Running(counter, table, ledger, opened.charge, rng)

    @staticmethod
    def find(query: Count | Sum, table: EpochsView, ledger: Ledger, *, rng: Rng | None = None) -> Running | None:
        """The newest running totals of this query that were paid for; None if there are none."""
        column = _growth(table).column
        for body in reversed(ledger.latest("charge")):
            if body["mechanism"].get("name") == ContinualCounter.NAME:
                counter = revive(body["mechanism"], _READ)
                if (counter.query, counter.column) == (query, column):
                    return Running(counter, table, ledger, body["seq"], rng)
        return None

    def totals(self, *, beta: Exact = Fraction(1, 20)) -> list[RunningTotal]:
        """The totals of all epochs that the table has, and of those before its last that never came: these are empty.
        New ones are added now. Nothing is charged.

        beta  the probability that any bound of this counter fails
        """
        found, facts = list[RunningTotal](), self.table.facts
        for place in range(1, self.counter.epochs + 1):
            epoch = self.counter.epoch(place, facts)
            if epoch not in self.table.epochs and not self.counter.never_came(epoch, facts):
                break
            answer = self._answer(epoch)
            bound = self.counter.bound(place, facts, beta)
            found.append(RunningTotal(epoch, answer["total"], answer["deviation"], bound))
        return found

    def _answer(self, epoch: str) -> dict[str, Any]:
        there = epoch if epoch in self.table.epochs else self.table.epochs[-1]  # one that never came has no rows
        rows = self.table.over(there) if _growth(self.table).apart else self.table
        opened = reopen(self.counter, rows, charge=self.charge, ledger=self.ledger, rng=self._rng)
        try:
            answer: dict[str, Any] = opened.ask(epoch)
        except ConversationOver as over:
            raise ConversationOver(f"the running total stopped before {epoch}: {over}") from None
        return answer

    def __repr__(self) -> str:
        return f"<Running {self.counter.query!r}, {self.counter.epochs} epochs from {self.counter.first} on>"

    def sheet(self) -> Sheet:
        """The totals of the epochs that the table has."""
        rows = [(each.epoch, f"{each.total:,.1f}", f"± {each.error_bound:,.1f}") for each in self.totals()]
        return Sheet.of(CellTable(("epoch", "total so far", "all at once, 95 % sure"), rows, numeric=(1, 2)))


def _growth(table: EpochsView) -> Any:
    facts: Any = getattr(table, "facts", None)
    growth = None if facts is None else facts.growth
    if growth is None:
        raise ParameterError(f"running totals are of a table that grows, found a {type(table).__name__}")
    return growth
