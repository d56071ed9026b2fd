"""The filter against the best adaptive adversary: every strategy over a menu of steps, by dynamic programming.

The adversary faces one of two worlds and runs randomized responses (pure steps, and (epsilon, delta) steps as the pair
of [KOV15], which dominates every mechanism with that guarantee), choosing each after seeing the outcomes so far, as
long as the ledger's own `State.admits` lets it. Its value is the largest P(E) - e^epsilon Q(E) over all strategies and
events: exact, because every step's log-likelihood ratio is a whole multiple of one unit. The promise is that it stays
below delta. The planted mutants of the admission rule must break that promise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.funds import NOTHING, Caps, Price, price_of
from discreet.guarantee import Budget, Guarantee
from discreet.ledger import Ledger
from discreet.ledger.state import State
from tests.ledger_doubles import Approximate, Pure, Zcdp, people

UNIT = Fraction(1, 10)
Admission = Callable[[Price, Price, Caps], Price | None]


@dataclass(frozen=True)
class Step:
    """Randomized response with log-ratio `units`; with probability `failure` it gives everything away instead."""

    units: int
    failure: Fraction = Fraction(0)

    def price(self, order: Fraction | None) -> Price:
        epsilon = self.units * UNIT
        return price_of(Guarantee.of_approximate(epsilon, delta=self.failure, neighbours="replace-one"), order)


def opened(budget: Budget, failure_share: Fraction = Fraction(1, 2)) -> State:
    """The state of a new ledger with this budget."""
    with Ledger.in_memory(budget, people(), failure_share=failure_share).store.reading() as state:
        return state


def honest(state: State) -> Admission:
    """The ledger's own rule: what is spent after the step, or None if it is refused."""

    def after(spent: Price, price: Price, caps: Caps) -> Price | None:
        state.spent = spent
        return spent + price if state.admits(price) else None

    return after


def check_before_adding(spent: Price, price: Price, caps: Caps) -> Price | None:
    return spent + price if spent.within(caps) else None


def failures_by_their_maximum(spent: Price, price: Price, caps: Caps) -> Price | None:
    total = spent + price
    total = Price(total.renyi, total.pure, max(spent.failure, price.failure))
    return total if total.within(caps) else None


def failures_forgotten(spent: Price, price: Price, caps: Caps) -> Price | None:
    total = Price((spent + price).renyi, (spent + price).pure, 0)
    return total if total.within(caps) else None


def each_charge_in_one_book(spent: Price, price: Price, caps: Caps) -> Price | None:
    """A charge is written only in a book that has room for it: together the books hold two budgets."""
    for renyi, pure in ((None, price.pure), (price.renyi, None)):
        total = Price(spent.renyi + (renyi or 0), spent.pure + (pure or 0), spent.failure + price.failure)
        fits = total.failure <= caps.failure
        if fits and (total.pure <= caps.pure if renyi is None else total.renyi <= caps.renyi):
            return total
    return None


def value(
    state: State, menu: tuple[Step, ...], admission: Admission, *, depth: int = 14, refund: bool = False
) -> tuple[float, int]:
    """The best strategy's P(E) - e^epsilon Q(E), and how many different situations were looked at.

    refund  a step whose outcome speaks against the first world is taken back from the books: a mutant.
    """
    budget = state.opened.budget
    order, caps = state.opened.order, state.opened.caps
    prices = [step.price(order) for step in menu]
    target = math.exp(budget.epsilon)
    start = Price(0 if order is not None else None, 0, 0)

    @cache
    def best(spent: Price, ratio: int, left: int) -> float:
        """The value divided by Q of the history, whose likelihood ratio is e^(ratio * UNIT)."""
        likelihood = math.exp(ratio * UNIT)
        found = max(0.0, likelihood - target)
        for step, price in zip(menu, prices, strict=True):
            after = admission(spent, price, caps) if left else None
            if after is None:
                continue
            against = 1 / (1 + math.exp(-step.units * UNIT))
            mean = (1 - against) * best(after, ratio + step.units, left - 1)
            mean += against * best(spent if refund else after, ratio - step.units, left - 1)
            failure = float(step.failure)
            found = max(found, (1 - failure) * mean + failure * likelihood)
        return found

    return best(start, 0, depth), best.cache_info().currsize


HALF, NONE = Fraction(1, 2), Fraction(0)
SMALL = Budget(Fraction(1, 2), Fraction(1, 50))
CASES = {  # budget, share of delta for failures, menu, and the part of delta that the best strategy reaches at least
    "pure steps": (SMALL, HALF, (Step(1), Step(2), Step(3)), 0.19),
    "one kind of step": (SMALL, HALF, (Step(1),), 0.09),
    "steps that may fail": (SMALL, HALF, (Step(1), Step(2, Fraction(1, 400)), Step(1, Fraction(1, 200))), 0.6),
    "a larger budget": (Budget(1, Fraction(1, 10)), HALF, (Step(1), Step(3), Step(2, Fraction(1, 80))), 0.7),
    "a tiny delta": (Budget(1, Fraction(1, 10**5)), HALF, (Step(1), Step(2), Step(1, Fraction(1, 10**6))), 0.45),
    "only failures": (SMALL, HALF, (Step(0, Fraction(1, 500)), Step(1, Fraction(1, 100))), 0.45),
    "many small steps": (Budget(Fraction(3, 2), Fraction(1, 10)), NONE, (Step(1), Step(3), Step(8)), 0.5),
}


@pytest.mark.parametrize("name", CASES)
def test_no_adaptive_strategy_beats_the_promise(name):
    budget, share, menu, reached = CASES[name]
    state = opened(budget, share)
    found, _ = value(state, menu, honest(state), depth=40)
    assert found <= budget.delta * (1 + Fraction(1, 10**9))
    assert found >= reached * budget.delta, "an adversary this weak would show nothing"


def test_with_delta_zero_no_event_ever_breaks_the_promise():
    state = opened(Budget(HALF))
    found, situations = value(state, (Step(1), Step(2), Step(3)), honest(state))
    assert found < 1e-12
    assert situations > 20


@pytest.mark.parametrize(
    ("mutant", "case"),
    [
        (check_before_adding, "pure steps"),
        (check_before_adding, "a tiny delta"),
        (failures_by_their_maximum, "steps that may fail"),
        (failures_by_their_maximum, "only failures"),
        (failures_forgotten, "only failures"),
        (each_charge_in_one_book, "pure steps"),
        (each_charge_in_one_book, "a tiny delta"),
    ],
)
def test_a_wrong_admission_rule_is_caught(mutant, case):
    budget, share, menu, _ = CASES[case]
    found, _ = value(opened(budget, share), menu, mutant)
    assert found > budget.delta * Fraction(11, 10)


def test_checking_before_adding_breaks_pure_privacy():
    found, _ = value(opened(Budget(HALF)), (Step(3),), check_before_adding)
    assert found > 0.001


def test_a_refund_is_caught():
    budget, share, menu, _ = CASES["a larger budget"]
    state = opened(budget, share)
    found, _ = value(state, menu, honest(state), refund=True)
    assert found > budget.delta * Fraction(11, 10)


def _mechanism(kind: str, size: Fraction) -> Pure | Zcdp | Approximate:
    if kind == "pure":
        return Pure(size)
    return Zcdp(size / 20) if kind == "zcdp" else Approximate(size, size / 10**6)


STEPS = st.lists(
    st.tuples(st.sampled_from(["pure", "zcdp", "approximate"]), st.fractions(Fraction(1, 10**10), Fraction(1, 2))),
    max_size=25,
)


@settings(max_examples=40, deadline=None)
@given(steps=STEPS)
def test_whatever_is_admitted_stays_within_the_budget_in_exact_numbers(steps):
    """Sums of the true values, not of the integers: rounding may refuse a little more, and never a little less."""
    ledger = Ledger.in_memory(Budget(1, Fraction(1, 10**6)), people())
    state, facts = opened(ledger.budget), people().facts
    order, caps = state.opened.order, state.opened.caps
    renyi, pure, failure, spent = Fraction(0), Fraction(0), Fraction(0), NOTHING
    for kind, size in steps:
        guarantee = _mechanism(kind, size).guarantee(facts)
        price = price_of(guarantee, order)
        state.spent = spent
        if not state.admits(price):
            assert not (spent + price).within(caps)
            continue
        spent = spent + price
        renyi += Fraction(guarantee.at(float(order)))
        pure = math.inf if guarantee.pure is None else pure + guarantee.pure
        failure += guarantee.failure
        assert failure <= Fraction(1, 2 * 10**6)
        assert pure <= 1 or renyi <= Fraction(caps.renyi, 10**9)
