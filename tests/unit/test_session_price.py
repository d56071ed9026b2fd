"""What a question would cost is known before it is asked, from public things alone; and what a session says of its
budget."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.query import Count, Histogram
from tests.ledger_doubles import Pure
from tests.unit.test_answering_adaptive import a_question, charges, opened, table


def spelled(rng):
    """A question of any kind, at random."""
    low, sex = 10 * rng.integers(0, 9), rng.choice(["F", "M"])
    where = f"WHERE age >= {low} AND (sex = '{sex}' OR region = 'N')"
    return rng.choice(
        [
            f"SELECT COUNT(*) FROM people {where}",
            f"SELECT SUM(visits) FROM people {where}",
            f"SELECT AVG(visits) FROM people WHERE age >= {low} AND visits >= {rng.integers(0, 4)}",
            f"SELECT region, COUNT(*) FROM people WHERE sex = '{sex}' GROUP BY region",
            f"SELECT COUNT(*) FROM people WHERE age >= {low}",
        ]
    )


@pytest.mark.parametrize("budget", [dp.Budget(20, 1e-6), dp.Budget(100)], ids=["renyi", "pure"])
def test_no_answer_costs_more_than_was_said_and_one_number_costs_just_that(budget):
    session, rng = opened(budget, alpha=0.03), np.random.default_rng(5)
    paid = 0
    for _ in range(20):
        question = str(spelled(rng))
        told = session.price(question)
        answer = session.ask(question)
        thresholds = [body for body in charges(session) if body["mode"] == "conversation"]
        assert answer.price <= told
        assert answer.price == told or "AVG" in question or thresholds
        paid += answer.price > 0
    assert paid >= 2


def test_what_a_threshold_costs_is_said_before_it_is_opened():
    session = opened(dp.Budget(5, 1e-6), alpha=0.05)
    for columns in (("age", "region"), ("sex",)):
        dp.release(dp.Gaussian(Histogram(columns), scale=10), session.table, ledger=session.ledger)
    question = a_question(np.random.default_rng(3))
    alone = session.price(question)
    session._answers.transcript.saved = 10**12
    told = session.price(question)
    answer = session.ask(question)
    opening = next(body["price"]["renyi"] for body in charges(session) if body["mode"] == "conversation")
    assert alone + opening <= told <= 1.5 * alone + opening  # after the threshold it is a later measurement
    assert opening <= answer.price <= told
    assert session.price(a_question(np.random.default_rng(4))) < opening  # it is open now


def test_a_price_is_told_without_a_trace():
    session = opened()
    before = list(session.ledger.entries())
    assert session.price("SELECT COUNT(*) FROM people WHERE sex = 'F'") > 0
    assert session.price("SELECT COUNT(*) FROM people") == 0
    assert list(session.ledger.entries()) == before


def test_what_could_cost_more_than_was_allowed_is_refused_and_what_is_known_is_not():
    session = opened(max_price="1/1000")
    with pytest.raises(
        dp.BudgetExceeded, match=r"could cost up to [0-9.]+ % of the budget .* max_price, which is 0.1 %"
    ):
        session.ask("SELECT AVG(visits) FROM people WHERE sex = 'F'")
    assert session.ledger.spent().renyi == 0
    assert session.ask("SELECT COUNT(*) FROM people").source == "public"
    price = session.price(Count(dp.Equals("sex", "F")))
    _, cap = session.budget()
    just = dp.Session(session.table, session.ledger, alpha=0.02, max_price=Fraction(price, cap))
    assert just.ask(Count(dp.Equals("sex", "F"))).price == price
    assert session.ask(Count(dp.Equals("sex", "F"))).price == 0


@pytest.mark.parametrize(
    ("terms", "question"),
    [
        ({"scopes": 3, "alpha": None}, "SELECT COUNT(*) FROM people WHERE sex = 'F'"),
        ({"method": "pmw", "alpha": 0.4, "questions": 10}, "SELECT COUNT(*) FROM people WHERE sex = 'F'"),
        ({"method": "lecture", "alpha": 0.4, "questions": 10}, "SELECT COUNT(*) FROM people WHERE sex = 'F'"),
        ({"alpha": 0.02}, "SELECT MEDIAN(age) FROM people"),
        ({"alpha": None, "price": "20%"}, "SELECT MEDIAN(age) FROM people"),
        ({"alpha": 0.002}, "SELECT AVG(visits) FROM people WHERE sex = 'F'"),
    ],
)
def test_every_method_and_every_kind_of_question_has_a_price_and_a_limit(terms, question):
    budget = dp.Budget(60 if "method" in terms else 1, 1e-6)
    session = opened(budget, **terms)
    told, (_, cap) = session.price(question), session.budget()
    assert 0 < told <= cap
    limited = dp.Session(session.table, session.ledger, **terms, max_price=Fraction(told - 1, cap))
    with pytest.raises(dp.BudgetExceeded, match="nothing was spent"):
        limited.ask(question)
    assert charges(session) == []
    assert 0 < session.ask(question).price <= told


def test_what_is_left_counts_down_and_how_many_more_is_what_fits():
    session = opened(alpha=0.1)
    answer = session.ask("SELECT COUNT(*) FROM people WHERE sex = 'F'")
    left, cap = session.budget()
    assert left == cap - answer.price
    assert left // (10 * answer.price) < session.more_like(answer) < left // answer.price  # later ones cost more
    again = session.ask("SELECT COUNT(*) FROM people WHERE sex = 'F'")
    assert (again.price, session.budget()) == (0, (left, cap))
    assert 0 < session.more_like(again) < cap // session.price("SELECT COUNT(*) FROM people WHERE region = 'N'") + 1


def test_what_is_left_for_a_name_is_its_allowance():
    people = table()
    ledger = dp.Ledger.in_memory(dp.Budget(1), people)
    ledger.allow("ana", share="1/4")
    session = dp.Session(people, ledger, alpha=0.1, allowance="ana")
    assert session.budget() == (250_000_000, 1_000_000_000)


def test_a_question_is_checked_without_being_asked():
    session = opened()
    session.check("SELECT MEDIAN(age) FROM people")
    session.check("SELECT AVG(age) FROM people")
    with pytest.raises(dp.errors.UnsupportedQuery):
        session.check("SELECT MAX(age) FROM people")
    with pytest.raises(dp.errors.UnsupportedQuery, match="no row of the declared domain"):
        session.check("SELECT COUNT(*) FROM people WHERE age < 10 AND age > 50")
    with pytest.raises(dp.errors.UnsupportedQuery, match="Did you mean 'age'"):
        session.check("SELECT COUNT(*) FROM people WHERE agee = 10")
    assert charges(session) == []


def test_the_largest_sets_of_columns_that_were_measured_are_known():
    session = opened(dp.Budget(5, 1e-6))
    assert session.known() == ([], [])
    for question in (Histogram("age"), Histogram(("age", "sex")), Count(dp.Equals("region", "N"))):
        dp.release(dp.Gaussian(question, scale=10), session.table, ledger=session.ledger)
    assert session.known() == ([("age", "sex"), ("region",)], [])


def test_tables_that_rows_could_not_follow_are_told_before_and_after_they_are_measured():
    names = ["a", "b", "c", "d"]
    domain = dp.Domain({name: dp.Number(0, 63, step=1) for name in names})
    rows = {name: np.arange(1000) % (7 + place) for place, name in enumerate(names)}
    people = dp.Table(rows, domain, neighbours="replace-one", name="people")
    session = dp.Session(people, dp.Ledger.in_memory(dp.Budget(10, 1e-6), people), scopes=1, max_price=1)
    pairs = [Histogram(pair) for pair in itertools.combinations(names, 2)]
    told = session.tangled(pairs)
    assert told == [("b", "c"), ("b", "d"), ("c", "d")]  # a star of pairs is small, triangles have 64^3 cells
    assert charges(session) == []
    session.answer_all(pairs, share="1/2")
    followed, left_out = session.known()
    assert left_out == told
    assert followed == [pair.columns for pair in pairs if pair.columns not in told]


AVERAGE = "SELECT AVG(visits) FROM people WHERE sex = 'F'"


@pytest.mark.parametrize("budget", [dp.Budget(1, 1e-6), dp.Budget(1)], ids=["renyi", "pure"])
def test_a_limit_between_one_half_of_an_average_and_both_refuses_it(budget):
    session = opened(budget, alpha=0.1)
    price, (_, cap) = session.price(AVERAGE), session.budget()
    limited = dp.Session(session.table, session.ledger, alpha=0.1, max_price=Fraction(price - 1, cap))
    with pytest.raises(dp.BudgetExceeded, match="nothing was spent"):
        limited.ask(AVERAGE)
    assert charges(session) == []
    just = dp.Session(session.table, session.ledger, alpha=0.1, max_price=Fraction(price, cap))
    answer = just.ask(AVERAGE)
    assert answer.price <= price
    assert len(charges(session)) == 1  # an average is one charge


def test_a_limit_is_a_part_of_the_whole_budget_also_when_half_is_spent():
    session = opened(dp.Budget(1), alpha=0.1)
    dp.release(Pure(Fraction(1, 2)), session.table, ledger=session.ledger)
    question = "SELECT COUNT(*) FROM people WHERE sex = 'F'"
    price, (left, cap) = session.price(question), session.budget()
    assert left <= cap / 2
    limited = dp.Session(session.table, session.ledger, alpha=0.1, max_price=Fraction(price, cap))
    assert limited.ask(question).price == price


def test_an_average_of_which_one_half_fits_is_refused_and_nothing_is_charged():
    session = opened(dp.Budget(1), alpha=0.1)
    whole = session.price(AVERAGE)
    left = whole - whole // 4
    dp.release(Pure(1 - Fraction(left, 10**9)), session.table, ledger=session.ledger)
    before = list(session.ledger.entries())
    assert session.budget()[0] == left
    with pytest.raises(dp.BudgetExceeded):
        session.ask(AVERAGE)
    assert list(session.ledger.entries()) == before
    counted = session.ask("SELECT COUNT(visits) FROM people WHERE sex = 'F'")
    assert 0 < counted.price <= left  # one half did fit


@pytest.mark.parametrize("budget", [dp.Budget(1, 1e-6), dp.Budget(1)], ids=["renyi", "pure"])
def test_no_part_is_paid_of_a_question_whose_parts_do_not_fit_together(budget):
    session = opened(budget, alpha=None, price="60%")
    both = "SELECT COUNT(*), MEDIAN(visits) FROM people WHERE sex = 'F'"
    assert session.ask("SELECT COUNT(*) FROM people WHERE region = 'N'").price > 0
    with pytest.raises(dp.BudgetExceeded, match="does not fit"):
        session.ask(both)
    assert len(charges(session)) == 1
