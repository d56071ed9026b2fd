"""How much of a budget is used, and how a refusal says it."""

from __future__ import annotations

from fractions import Fraction

import pytest

import discreet as dp
from discreet.errors import BudgetExceeded
from discreet.funds import Caps, Price, remaining_books, spent_books
from discreet.ledger import Ledger
from discreet.release import release
from tests.ledger_doubles import MIXED, PURE, TENTH, Approximate, Pure, Zcdp, people

CAPS = Caps(1000, 2000, 50)


def spent(renyi, pure, failure=0, caps=CAPS):
    return spent_books(Price(renyi, pure, failure), caps, Fraction(8) if caps.renyi is not None else None)


def left(renyi, pure, failure=0, caps=CAPS):
    return remaining_books(Price(renyi, pure, failure), caps, Fraction(8), None)


@pytest.mark.parametrize(
    ("amounts", "used", "book"),
    [
        ((0, 0), 0, "renyi"),
        ((100, 400), Fraction(1, 10), "renyi"),
        ((500, 400), Fraction(1, 2), "renyi"),  # the other is used less, but the next Gaussian closes it
        ((999, 0), Fraction(999, 1000), "renyi"),
        ((1000, 400), Fraction(1, 5), "pure"),
        ((None, 400), Fraction(1, 5), "pure"),
        ((300, None), Fraction(3, 10), "renyi"),
        ((None, None), 1, None),
        ((1000, 2000), 1, "renyi"),
        ((1000, None), 1, "renyi"),
        ((1500, 4000), Fraction(3, 2), "renyi"),  # a reconciliation found more than was ever allowed
    ],
)
def test_the_renyi_book_counts_while_anything_is_left_there(amounts, used, book):
    assert spent(*amounts).used() == used
    assert spent(*amounts).counting() == book


def test_failures_count_if_they_are_used_more_than_the_books():
    assert spent(100, 100, 40).used() == Fraction(4, 5)
    assert spent(900, 1900, 10).used() == Fraction(9, 10)


def test_a_ledger_without_delta_has_one_book_and_no_failures():
    caps = Caps(None, 2000, 0)
    assert spent(None, 500, caps=caps).used() == Fraction(1, 4)
    assert spent(None, 500, caps=caps).counting() == "pure"
    assert spent(None, None, caps=caps).used() == 1


def test_what_is_left_and_what_is_spent_agree_on_what_is_used():
    for amounts in ((0, 0, 0), (100, 400, 5), (None, 400, 0), (300, None, 50), (None, None, 0), (1000, 2000, 0)):
        assert spent(*amounts).used() == left(*amounts).used()


def test_the_parts_of_the_charges_add_up_to_what_is_used():
    ledger = Ledger.in_memory(MIXED, people())
    prices = []
    for mechanism in (TENTH, Zcdp(Fraction(1, 500)), TENTH):
        prices.append(release(mechanism, people(), ledger=ledger).price)
    books = ledger.spent()
    assert books.counting() == "renyi"  # the Gaussian closed the pure book
    assert sum(books.part_of(each) for each in prices) == books.used()
    assert 0 < books.used() < 1
    assert books.part_of(Price(None, 10, 0)) is None


def test_a_part_is_of_the_book_that_decides():
    assert spent(100, 1900).part_of(Price(50, 1, 0)) == Fraction(1, 20)
    assert spent(None, None).part_of(Price(1, 1, 0)) is None


@pytest.mark.parametrize(
    ("books", "asked", "says"),
    [
        (left(900, 1950), Price(131, 60, 0), "It takes 3 % of the budget, and 2.5 % is left."),
        (left(900, 2000), Price(101, 60, 0), "It takes 10.1 % of the budget, and 10 % is left."),
        (left(0, 0), Price(None, 2001, 0), "It takes 101 % of the budget, and 100 % is left."),
        (left(0, 0, 49), Price(1, 1, 2), "It takes 4 % of what is kept for failures, and 2 % is left."),
        (left(0, 0), Price(10**9, 10**9, 0), "It takes more than 100 times all of the budget, and 100 % is left."),
        (left(1000, 2000), Price(1, 1, 0), "It takes 0.05 % of the budget, and 0 % is left."),
        (left(4, 2000), Price(3600, 4000, 0), "It takes 360 % of the budget, and 99.6 % is left."),
    ],
)
def test_a_refusal_says_percentages_of_one_book(books, asked, says):
    assert books.fits(asked).startswith(says)


def test_what_is_asked_never_looks_like_less_than_what_is_left():
    cap = 10**12
    books = remaining_books(Price(None, cap // 2, 0), Caps(None, cap, 0), None, None)
    assert books.fits(Price(None, cap // 2 + 1, 0)).startswith("It takes 50.1 % of the budget, and 50 % is left.")


@pytest.mark.parametrize("thirds", [1, 2])
@pytest.mark.parametrize("digits", [3, 6, 12])
def test_what_is_left_never_looks_like_more_than_it_is(thirds, digits):
    """A third of the budget is 33.3 % of it when it is left, and 33.4 % when it is asked for."""
    cap = 3 * 10**digits
    gone = Price(None, cap - thirds * 10**digits, 0)
    books = remaining_books(gone, Caps(None, cap, 0), None, None)
    left_, asked_ = {1: ("33.3 %", "33.4 %"), 2: ("66.6 %", "66.7 %")}[thirds]
    asked = Price(None, thirds * 10**digits + 1, 0)
    assert books.fits(asked).startswith(f"It takes {asked_} of the budget, and {left_} is left.")
    failing = remaining_books(Price(None, 0, cap - thirds * 10**digits), Caps(None, 10**9, cap), None, None)
    words = f"It takes {asked_} of what is kept for failures, and {left_} is left."
    assert failing.fits(Price(None, 1, thirds * 10**digits + 1)).startswith(words)


def test_a_refused_release_says_what_is_left_rounded_down():
    ledger = Ledger.in_memory(PURE, people())
    release(Pure(Fraction(1, 3)), people(), ledger=ledger)
    with pytest.raises(BudgetExceeded, match=r"It takes 66.7 % of the budget, and 66.6 % is left"):
        release(Pure(Fraction(2, 3)), people(), ledger=ledger)  # each is rounded up to nano-units, so it does not fit


def test_a_price_that_no_book_has_gets_no_percentage():
    books = remaining_books(Price(0, 0, 0), Caps(None, 2000, 0), None, None)
    assert books.fits(Price(None, None, 0)).startswith("It has no pure epsilon")


def test_the_whole_refusal_has_percentages_what_fits_and_the_exact_amounts_in_this_order():
    ledger = Ledger.in_memory(PURE, people())
    release(Pure(Fraction(3, 4)), people(), ledger=ledger)
    with pytest.raises(BudgetExceeded) as refused:
        release(Pure(Fraction(1, 3)), people(), ledger=ledger)
    assert str(refused.value) == (
        "this does not fit. It takes 33.4 % of the budget, and 25 % is left. What would fit: pure epsilon at most "
        "0.25. In full: it costs pure epsilon 0.333333334, Renyi none, failure 0; left: pure epsilon 0.25, Renyi "
        "none, failure 0"
    )


def test_a_failure_that_does_not_fit_is_compared_with_what_is_kept_for_failures():
    ledger = Ledger.in_memory(MIXED, people())
    with pytest.raises(BudgetExceeded, match=r"It takes 200 % of what is kept for failures, and 100 % is left"):
        release(Approximate(Fraction(1, 10), Fraction(1, 10**6)), people(), ledger=ledger)


@pytest.mark.parametrize("part", ["1/3", "1/8"])
def test_a_share_is_of_what_is_left_for_failures_too(part):
    numbers = dp.Table({"x": list(range(1000))}, dp.Domain(x=dp.Number(0, 2**20, step=1)), name="people")
    book = Ledger.in_memory(MIXED, numbers)
    left = book.remaining().failure
    dp.interior_point(numbers, column="x", epsilon=dp.Share(part), method="prefix", ledger=book)
    used = left - book.remaining().failure
    assert 0 < used <= left * Fraction(part)
    assert used > left * Fraction(part) * Fraction(9, 10)
