"""The row of a plan for what a session does unless told otherwise: how far alpha goes if no answer is free. No data.

alpha fixes the noise of every count and table that a session buys (`calibration`, which is asked here for real prices),
so a budget pays for so many of them. What earlier answers prove is free; nobody can say beforehand how much that is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from discreet.answering.beforehand import promising
from discreet.answering.calibration import Shop, Terms
from discreet.data import Category, Domain, Facts, Identity
from discreet.errors import ParameterError
from discreet.ledger import Ledger
from discreet.plan import Asked, Row
from discreet.query import Count, Equals, Histogram

AUTO = "auto"
MOST_QUESTIONS = 10**30

_GROUPS = 10  # of a table that somebody may ask for
_TABLES = Domain(it=Category("no", "yes"), group=Category(*range(_GROUPS)))
_TOO_MANY = "a ledger counts in nano-units, and so many charges do not fit however small each of them is"
_GROWTH = 1.25  # prices grow with the logarithm of how many were paid: the last of so many more is dearer by 1 % or so
_UNSAID = 10**12  # persons, if nobody says how many: only alpha times their number matters


def auto(asked: Asked, questions: int) -> Row:
    """The least window A = alpha * size for which the budget pays for all questions as single counts."""
    paid = _Paid(asked)
    low, high = 1.0, 2.0
    while paid.counts(high, questions) < questions:
        low, high = high, 2 * high
        if high > 2.0**200:
            return Row(AUTO, "", refusal=_TOO_MANY)
    while high - low > high / 500:
        middle = (low + high) / 2
        low, high = (low, middle) if paid.counts(middle, questions) >= questions else (middle, high)
    last = paid.shop(high).alone(_ONE, questions)
    row = Row(AUTO, "noise of each count from alpha, a union over all that are paid", last.scale, mechanism=last)
    found = promising(asked, row, high)
    return found if found.refusal else replace(found, assuming=_offered(asked, paid))


def _offered(asked: Asked, paid: _Paid) -> str:
    """How many answers of each kind fit, when none is free."""
    worst = "if none of them is free; what earlier answers prove is, and so is a question asked again"
    size, alpha = asked.facts.size, asked.alpha
    if size is None or alpha is None:
        return worst
    window = float(alpha * size)
    counts, tables = paid.counts(window, MOST_QUESTIONS), paid.tables(window, MOST_QUESTIONS)
    paid_for = f"{_many(counts)} counts, or {_many(tables)} tables of {_GROUPS} groups"
    return f"{worst}. At alpha {float(alpha):g} of {size:,} the budget pays for {paid_for}"


def _many(count: int) -> str:
    return f"{count:,}" if count < 10**6 else f"{count:.1e}"


class _Paid:
    """How many counts, or tables, a budget pays for when every answer shall be within a window of so many persons."""

    def __init__(self, asked: Asked) -> None:
        neighbours = asked.facts.neighbours
        self._facts = Facts(_TABLES, neighbours, asked.facts.size or _UNSAID)
        self._beta = asked.beta
        whose = Identity("a plan", neighbours, None)
        self._ledger = Ledger.in_memory(asked.budget, whose) if asked.left is None else asked.left.ledger
        self._allowance = None if asked.left is None else asked.left.allowance
        self._left = self.shop(1.0).left()
        if asked.left is not None:
            self._left = math.floor(self._left * asked.left.share.part)

    def shop(self, window: float) -> Shop:
        assert self._facts.size is not None
        terms = Terms(Fraction(window) / self._facts.size, self._beta)
        return Shop(self._facts, self._ledger, terms, allowance=self._allowance)

    def counts(self, window: float, most: int) -> int:
        shop = self.shop(window)
        return self._fitting(lambda order: shop.price(shop.alone(_ONE, order)), most)

    def tables(self, window: float, most: int) -> int:
        shop, table = self.shop(window), Histogram("group")
        return self._fitting(lambda order: shop.price(shop.marginal(table, order) or shop.alone(table, order)), most)

    def _fitting(self, price: Callable[[int], int], most: int) -> int:
        """At least how many fit: in blocks, each priced as its last and dearest."""
        left, first = self._left, 1
        while first <= most:
            last = min(most, max(first, math.floor(first * _GROWTH)))
            each = _tried(price, last)
            if each is None or each * (last - first + 1) > left:
                return first - 1 + (0 if each is None else left // each)
            left, first = left - each * (last - first + 1), last + 1
        return most


_ONE = Count(Equals("it", "yes"))


def _tried(price: Callable[[int], int], order: int) -> int | None:
    """None if no such noise can be drawn: the window is too narrow."""
    try:
        return price(order)
    except ParameterError:
        return None
