"""What a charge costs, and what may be spent: integers in two books.

A ledger counts in integers, so that sums are exact in any order and can be checked by hand.

    renyi    Renyi divergence at the ledger's one order, in nano-units: ceil(value * 10^9) + 1, since the value is a
             float; the extra unit covers its last bits
    pure     pure epsilon, in nano-units: ceil(value * 10^9), of an exact fraction
    failure  probability of the event outside which the two hold, in atto-units: ceil(value * 10^18)

Prices are rounded up and never below one unit (a failure of exactly 0 costs 0); caps are rounded down. An infinite
price is None: it closes that book for good. A charge is admitted if after adding it the failures are within their cap
and at least one of the two books is within its own: docs/proofs/filter.md.

    Price    what one charge costs, or the sum of many
    Cost     the same for people: one number, of which part of the budget it is
    Caps     what the sums may reach
    Funds    what one release may cost, as a value: nothing is read while a mechanism is calibrated
    Books    both books of a ledger at one moment
    Amounts  what Price, Caps and Books have in common
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from operator import add
from typing import Any, Protocol

from discreet import exact
from discreet.display import Sentence
from discreet.errors import ParameterError
from discreet.guarantee import Budget, Guarantee, choose_order, renyi_cap, renyi_to_epsilon

NANO = 10**9
ATTO = 10**18
_TIMES = 100  # what is more than so many budgets needs no percentage
_UNWRITABLE = 10**4000  # Python refuses to spell numbers of more than 4300 digits; no budget gets near this


@dataclass(frozen=True, slots=True, repr=False)
class Amounts(Sentence):
    """An amount in each book, and of failures."""

    renyi: int | None
    pure: int | None
    failure: int

    def record(self) -> dict[str, int | None]:
        """The amounts as JSON: integers in nano-units of epsilon and Renyi, in units of 1e-18 of failure."""
        return {"renyi_nano": self.renyi, "pure_nano": self.pure, "failure_atto": self.failure}

    def amounts(self) -> str:
        """One line for the eye."""
        return f"pure epsilon {_nano(self.pure)}, Renyi {_nano(self.renyi)}, failure {self.failure / ATTO:.3g}"

    def __str__(self) -> str:
        return self.amounts()


@dataclass(frozen=True, slots=True, repr=False)
class Price(Amounts):
    """Amounts in both books: the price of one charge, or the sum of many. None is infinite."""

    def __add__(self, other: Price) -> Price:
        renyi, pure = _both(add, self.renyi, other.renyi), _both(add, self.pure, other.pure)
        return Price(renyi, pure, self.failure + other.failure)

    def within(self, caps: Caps) -> bool:
        """At least one book is within its cap, and the failures within theirs."""
        renyi = self.renyi is not None and caps.renyi is not None and self.renyi <= caps.renyi
        pure = self.pure is not None and self.pure <= caps.pure
        return self.failure <= caps.failure and (renyi or pure)

    def joined(self, other: Price) -> Price:
        """The larger amount in every book."""
        renyi, pure = _both(max, self.renyi, other.renyi), _both(max, self.pure, other.pure)
        return Price(renyi, pure, max(self.failure, other.failure))

    def less(self, part: Price) -> Price:
        """What remains of this sum when a part of it is taken out; a closed book stays closed."""
        return Price(_minus(self.renyi, part.renyi), _minus(self.pure, part.pure), max(0, self.failure - part.failure))

    def agrees(self, charged: Price) -> bool:
        """Whether a charge has this price, computed again; the Renyi value is a float, whose last bits may differ."""
        if (self.pure, self.failure) != (charged.pure, charged.failure):
            return False
        if self.renyi is None or charged.renyi is None:
            return self.renyi is charged.renyi
        return abs(self.renyi - charged.renyi) <= 1 + self.renyi // 10**12

    def alone(self, order: Fraction | None, delta: Fraction) -> tuple[float, Fraction | None, float, Fraction]:
        """Epsilon at this delta, pure epsilon, Renyi value and failure of one charge with this price: rounded up."""
        pure = None if self.pure is None else Fraction(self.pure, NANO)
        failure = Fraction(self.failure, ATTO)
        renyi = math.inf if self.renyi is None else math.nextafter(self.renyi / NANO, math.inf)
        left = delta - failure
        proved = [math.inf if pure is None or left < 0 else math.nextafter(float(pure), math.inf)]
        if order is not None and left > 0 and renyi < math.inf:
            proved.append(renyi_to_epsilon(float(order), renyi, left))
        return min(proved), pure, renyi, failure

    def epsilon(self, order: Fraction | None, delta: Fraction) -> float | None:
        """The least epsilon that either book proves of these sums, at this delta; None: nothing."""
        proved = [] if self.pure is None else [float(Fraction(self.pure, NANO))]
        if self.renyi and order is not None:
            proved.append(renyi_to_epsilon(float(order), float(Fraction(self.renyi, NANO)), delta))
        return min(proved, default=None)


NOTHING = Price(0, 0, 0)


@dataclass(frozen=True, slots=True, repr=False)
class Caps(Amounts):
    """What the sums may reach. renyi is None when the budget has no Renyi book (delta = 0)."""

    pure: int

    @property
    def first(self) -> int:
        """The cap of the ledger's first book: the Renyi book where there is one."""
        return self.pure if self.renyi is None else self.renyi

    def in_first(self, amounts: Amounts) -> int | None:
        """What of these amounts is in the first book, in nano-units; None is infinite."""
        return amounts.pure if self.renyi is None else amounts.renyi

    @staticmethod
    def of(order: Fraction | None, budget: Budget, failure_share: Fraction) -> Caps:
        """The caps that keep the budget's promise when the Renyi book has this order."""
        pure, failure = math.floor(budget.epsilon * NANO), math.floor(budget.delta * failure_share * ATTO)
        if order is None:
            return Caps(None, pure, failure)
        cap = renyi_cap(float(order), epsilon=budget.epsilon, delta=budget.delta * (1 - failure_share))
        return Caps(max(0, math.floor(Fraction(cap) * NANO) - 1), pure, failure)

    def share(self, part: Fraction) -> Caps:
        """This part of every cap, rounded down."""
        renyi = None if self.renyi is None else math.floor(self.renyi * part)
        return Caps(renyi, math.floor(self.pure * part), math.floor(self.failure * part))


def price_of(guarantee: Guarantee, order: Fraction | None) -> Price:
    """The guarantee in integers, rounded up; order None means that there is no Renyi book."""
    value = math.inf if order is None else guarantee.at(float(order))
    if math.isnan(value):
        raise ParameterError("the guarantee's Renyi value is not a number")
    renyi = None if math.isinf(value) else max(1, _units(value, NANO) + 1)
    pure = None if guarantee.pure is None else max(1, _units(guarantee.pure, NANO))
    if pure is not None and pure >= _UNWRITABLE:
        pure = None
    return Price(renyi, pure, _units(guarantee.failure, ATTO))


@functools.lru_cache(maxsize=256)
def caps_of(budget: Budget, failure_share: Fraction) -> tuple[Fraction | None, Caps]:
    """The order and the caps that a budget fixes for good."""
    chosen = choose_order(budget, failure_share)
    order = None if chosen is None else Fraction(chosen[0])
    return order, Caps.of(order, budget, failure_share)


@dataclass(frozen=True, slots=True)
class Funds:
    """What one release may cost: the test that a guarantee is within it, without a ledger being read.

    `Funds.of(budget)` is what a new ledger with this budget admits; `ledger.funds(share=, allowance=)` is what a ledger
    has left at one moment. Whether the ledger still has as much is decided by the charge.

    order   of the Renyi book; None if there is none
    budget  the budget of which all of delta may be divided anew between conversion and failures; None if the
            division is fixed, as in a ledger
    """

    order: Fraction | None
    caps: Caps
    budget: Budget | None = None

    @staticmethod
    def of(budget: Budget, *, failure_share: Fraction | int = 0) -> Funds:
        """A whole budget, of whose delta this share is kept for failures."""
        if not isinstance(budget, Budget):
            raise ParameterError(f"budget must be a Budget(epsilon, delta), found {budget!r}")
        return Funds(*caps_of(budget, Fraction(failure_share)), budget)

    def price(self, guarantee: Guarantee) -> Price:
        return price_of(guarantee, self.order)

    def admits(self, guarantee: Guarantee) -> bool:
        """Whether a release with this guarantee is within these funds."""
        return self.price(guarantee).within(self.caps)

    @property
    def failure(self) -> Fraction:
        """What the failure probability of a release may be."""
        return Fraction(self.caps.failure, ATTO)

    @property
    def pure(self) -> bool:
        """Whether only pure epsilons count: there is no Renyi book, or nothing is left there."""
        return not self.caps.renyi

    def keeping(self, failure_share: Fraction) -> Funds:
        """The same with this share of delta kept for failures, where the division is not fixed."""
        return self if self.budget is None else Funds.of(self.budget, failure_share=failure_share)

    def share(self, part: Fraction) -> Funds:
        """This part of every cap: of n releases within the n-th part each, all are within the whole."""
        return Funds(self.order, self.caps.share(part))

    def only_pure(self) -> Funds:
        """What basic composition admits: the pure book alone."""
        return Funds(None, Caps(None, self.caps.pure, self.caps.failure), self.budget)


FAILING = Fraction(999, 1000)
"""The share of delta that a mechanism takes which holds outside a small event and composes in no Renyi currency."""


class Priced(Protocol):
    """Anything with a guarantee: a mechanism or a conversation."""

    def guarantee(self, facts: Any) -> Guarantee: ...


class Cost(int):
    """What something costs, in nano-units of a ledger's first book (Renyi, or pure where delta = 0): a whole number
    that knows which part of the budget it is, and the epsilon that it would be by itself at the ledger's delta.

    cap        the whole budget in the same units
    guarantee  of what is bought; None if that is not known any more
    """

    cap: int
    guarantee: Guarantee | None
    delta: Fraction

    def __new__(cls, nano: int, *, cap: int, delta: Fraction, guarantee: Guarantee | None = None) -> Cost:
        made = super().__new__(cls, nano)
        made.cap, made.delta, made.guarantee = cap, delta, guarantee
        return made

    @property
    def nano(self) -> int:
        """The exact number."""
        return int(self)

    @property
    def percent(self) -> float:
        """Of the budget."""
        return 100 * self.nano / self.cap if self.cap else math.inf

    @property
    def epsilon(self) -> float | None:
        """What it would be by itself, at the ledger's delta; None if that is not known any more."""
        if not self:
            return 0.0
        return None if self.guarantee is None else self.guarantee.epsilon(self.delta)

    def record(self) -> dict[str, int | float | None]:
        """As JSON."""
        told: dict[str, int | float | None] = {"nano": self.nano, "percent_of_budget": self.percent}
        return {**told, "epsilon": self.epsilon, "delta": float(self.delta), "failure": self.failure}

    @property
    def failure(self) -> float:
        """With which probability it may fail, which is paid from the ledger's delta; 0 for most mechanisms."""
        return 0.0 if self.guarantee is None else float(self.guarantee.failure)

    def __str__(self) -> str:
        if not self:
            return "free"
        part = _up(Fraction(self.nano, self.cap)) if self.cap else "more than all"
        delta = f", and {self.failure:.2g} of delta" if self.failure else ""
        by_itself = "" if self.epsilon is None else f" (by itself epsilon {self.epsilon:.3g}{delta})"
        return f"{part} of the budget{by_itself}"

    def __format__(self, how: str) -> str:
        return format(int(self), how) if how else str(self)


@dataclass(frozen=True, slots=True, repr=False)
class Books(Amounts):
    """Both books of a ledger at one moment: what is spent, or what is left. Integers as in `Price`.

    epsilon  so far: what either book proves of all that is spent, at the budget's delta; None if neither does
    """

    caps: Caps
    order: Fraction | None
    remaining: bool
    facts: Any = field(default=None, repr=False, compare=False)
    budget: Budget | None = None
    epsilon: float | None = None

    @property
    def delta(self) -> Fraction:
        """The budget's."""
        return Fraction(0) if self.budget is None else self.budget.delta

    def how_many(self, mechanism: Priced, *, facts: Any = None) -> int:
        """About how many more releases like this one fit: exact if nothing else is charged meanwhile."""
        facts = facts or self.facts
        if not self.remaining:
            raise ParameterError("how_many is a question about ledger.remaining()")
        if facts is None:
            raise ParameterError("the ledger has no facts yet: pass facts=table.facts")
        price = price_of(mechanism.guarantee(facts), self.order)
        fits = max(_times(self.renyi, price.renyi), _times(self.pure, price.pure))
        return min(fits, self.failure // price.failure) if price.failure else fits

    def at_most(self, other: Books) -> Books:
        """The smaller amount in every book: what is left under two limits at once."""
        renyi, pure = _both(min, self.renyi, other.renyi), _both(min, self.pure, other.pure)
        return replace(self, renyi=renyi, pure=pure, failure=min(self.failure, other.failure))

    def used(self) -> Fraction:
        """Which part of the budget is used, in the book that counts; or of what is kept for failures, if that is more.
        At 1 nothing fits any more; above 1 it is only if `reconcile` found that more was spent than was ever allowed.
        """
        book = self.counting()
        failures = self._used_of("failure") if self.caps.failure else Fraction(0)
        return max(failures, Fraction(1) if book is None else self._used_of(book))

    def counting(self) -> str | None:
        """The book that counts, "renyi" or "pure": the Renyi book while anything is left there, since that is where
        sessions and shares are counted, and the next Gaussian closes the other. None if both are closed.

        The pure book may be used less; to show that would understate what most later releases find spent.
        """
        books = [each for each in ("renyi", "pure") if getattr(self.caps, each) and getattr(self, each) is not None]
        return next((each for each in books if self._used_of(each) < 1), books[0] if books else None)

    def part_of(self, price: Price) -> Fraction | None:
        """Which part of the budget a price is, in the book that decides: the parts of all charges add up to `used`,
        unless failures are what is used most. None if it has no price there."""
        book = self.counting()
        amount = None if book is None else getattr(price, book)
        return None if book is None or amount is None else Fraction(amount, getattr(self.caps, book))

    def _used_of(self, book: str) -> Fraction:
        amount, cap = getattr(self, book), getattr(self.caps, book)
        return Fraction(cap - amount if self.remaining else amount, cap)

    def share(self, part: Fraction) -> Caps:
        """This part of what is left, as caps for a charge to stay within: in the Renyi book if anything is left there.

        Counting by whichever book is cheaper would let thirds of the pure book use the Renyi book up much faster.
        """
        return Caps(self.renyi or None, 0 if self.renyi else self.pure or 0, self.failure).share(part)

    def fits(self, asked: Price) -> str:
        """How much of the budget that would be, and what would still be admitted instead; of ledger.remaining()."""
        return f"{self._compared(asked)}{self._admitted(asked)}"

    def _compared(self, asked: Price) -> str:
        """The price and what is left, both as parts of the book in which the price comes nearest to fitting; a book
        with nothing left counts only if the other has nothing either."""
        if asked.failure > self.failure and self.caps.failure:
            part, left = Fraction(asked.failure, self.caps.failure), Fraction(self.failure, self.caps.failure)
            return f"It takes {_up(part)} of what is kept for failures, and {exact.percent(left)} is left. "
        books = ((asked.renyi, self.renyi, self.caps.renyi), (asked.pure, self.pure, self.caps.pure))
        open_books = (
            (price, left, cap) for price, left, cap in books if price is not None and left is not None and cap
        )
        parts = [(Fraction(price, cap), Fraction(left, cap)) for price, left, cap in open_books]
        if not parts:
            return ""
        part, left = min([each for each in parts if each[1]] or parts, key=lambda each: each[0] - each[1])
        return f"It takes {_up(part)} of the budget, and {exact.percent(left)} is left. "

    def _admitted(self, asked: Price) -> str:
        if asked.failure > 0 and not self.caps.failure:
            return "It may fail, and this ledger (delta = 0) has nothing for failures: use a mechanism that cannot."
        if asked.pure is None and self.caps.renyi is None:
            return "It has no pure epsilon, and this ledger (delta = 0) counts nothing else: use Laplace noise, say."
        parts = [f"pure epsilon at most {_nano(self.pure)}"] if self.pure else []
        if self.renyi:
            parts.append(f"Renyi divergence of order {self.order} at most {_nano(self.renyi)}")
        if not parts:
            return "Nothing fits any more."
        limit = f", with a failure of at most {self.failure / ATTO:.3g}" if self.caps.failure else ""
        return f"What would fit: {' or '.join(parts)}{limit}."

    def lines(self) -> list[str]:
        """A line for each book: what is spent or left, and its cap."""
        word = "left" if self.remaining else "spent"
        closed = self.pure is None or (self.remaining and not self.pure and self.renyi)
        pure = "no longer counted, the Renyi book decides" if closed else _of(self.pure, self.caps.pure, word)
        lines = [f"pure epsilon: {pure}"]
        if self.caps.renyi is not None:
            lines.insert(0, f"Renyi at order {self.order}: {_of(self.renyi, self.caps.renyi, word)}")
        if self.caps.failure:
            lines.append(f"failure: {self.failure / ATTO:.3g} of {self.caps.failure / ATTO:.3g} {word}")
        return lines if self.budget is None else [self._so_far(self.budget), *lines]

    def _so_far(self, budget: Budget) -> str:
        """What is proved of all that is spent, and which part of the budget that is."""
        epsilon = "more than can be said" if self.epsilon is None else f"{self.epsilon:.3g}"
        left = f"; {exact.percent(max(Fraction(0), 1 - self.used()))} of the budget is left" if self.remaining else ""
        used = "" if self.remaining else f"; {exact.percent(self.used(), up=True)} of the budget is spent"
        delta = f" at delta {exact.shown(budget.delta)}" if budget.delta else ""
        return f"epsilon so far: {epsilon} of {exact.shown(budget.epsilon)}{delta}{left}{used}"

    def __str__(self) -> str:
        return "; ".join(self.lines())


def spent_books(spent: Price, caps: Caps, order: Fraction | None, budget: Budget | None = None) -> Books:
    """The sums as they stand; None is a closed book."""
    epsilon = _so_far(spent, order, budget)
    return Books(spent.renyi, spent.pure, spent.failure, caps, order, False, budget=budget, epsilon=epsilon)


def remaining_books(
    spent: Price, caps: Caps, order: Fraction | None, facts: Any, budget: Budget | None = None
) -> Books:
    """What may still be added in each book: 0 in a closed or full one, None where there is no such book."""
    renyi, pure = None if caps.renyi is None else _left(caps.renyi, spent.renyi), _left(caps.pure, spent.pure)
    failure, epsilon = max(0, caps.failure - spent.failure), _so_far(spent, order, budget)
    return Books(renyi, pure, failure, caps, order, True, facts, budget, epsilon)


def _so_far(spent: Price, order: Fraction | None, budget: Budget | None) -> float | None:
    """The epsilon of all that is spent, at what the failures leave of delta."""
    if budget is None or spent == NOTHING:
        return None if budget is None else 0.0
    left = budget.delta - Fraction(spent.failure, ATTO)
    if left <= 0:
        return None if spent.pure is None else float(Fraction(spent.pure, NANO))
    return spent.epsilon(order, left)


def _units(value: float | Fraction, scale: int) -> int:
    """ceil(value * scale), exactly."""
    numerator, denominator = value.as_integer_ratio()
    return -(-numerator * scale // denominator)


def _of(amount: int | None, cap: int, word: str) -> str:
    closed = "closed, by a release that has no price in it"
    return closed if amount is None else f"{_nano(amount)} of {_nano(cap)} {word}"


def _up(part: Fraction) -> str:
    return f"more than {_TIMES} times all" if part > _TIMES else exact.percent(part, up=True)


def _both(operation: Callable[[int, int], int], one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else operation(one, other)


def _minus(whole: int | None, part: int | None) -> int | None:
    return None if whole is None else max(0, whole - (part or 0))


def _left(cap: int, spent: int | None) -> int:
    return 0 if spent is None else max(0, cap - spent)


def _times(left: int | None, price: int | None) -> int:
    return 0 if left is None or price is None else left // price


def _nano(units: int | None) -> str:
    """Nano-units as a decimal with what is needed of nine places; exact."""
    if units is None:
        return "none"
    whole, rest = divmod(units, NANO)
    return f"{whole}.{rest:09d}".rstrip("0").rstrip(".") if rest else str(whole)
