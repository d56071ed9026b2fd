"""Questions about rows that are made of each person's rows, as duckdb answers them on the same rows, from exact sums.

Most were asked by analysts: repeat customers, persons without an order, shares of one table in another.
"""

from __future__ import annotations

import datetime
from contextlib import closing
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest

import discreet as dp
from discreet.answering.answer import Answer, Assembly
from discreet.data import Domain, Text
from discreet.errors import ParameterError, UnsupportedQuery
from discreet.person_rows import PersonKey, PersonNumber, PersonRows
from discreet.query import Count, Equals, Fixed, Histogram, Of, OfPersons
from discreet.records import record, revive
from discreet.sql import Known, parse_about

CASES = Path(__file__).parents[1] / "e2e" / "sql_cases"

CUSTOMERS = {
    "who": [*range(1, 9)],
    "country": ["DE", "FR", "DE", "FR", "DE", "DE", "FR", "DE"],
    "grade": [5, 6, 7, 8, 5, 6, 7, 8],
    "born": [1950, 1960, 1970, 1980, 1990, 2000, 1955, 1965],
}
ORDERS = {
    "who": [1, 1, 1, 2, 3, 3, 4, 4, 4, 5, 7],
    "total": [10, 20, None, 5, 30, 1, 7, 7, 7, None, 40],
    "channel": ["web", "app", "web", "app", "web", "web", "app", "web", "app", "web", "app"],
    "day": ["2023-01-05", "2023-02-05", "2024-01-05", "2023-03-01", "2024-05-01", "2024-05-02"],
    "seen": ["2023-01-05 10:00:00", "2023-02-05 11:00:00", "2024-01-05 00:00:00", "2023-03-01 10:00:00"],
}
ORDERS["product"] = ["lamp", "sofa", "lamp", "sofa", "lamp", "oak table", "chair", "lamp", "lamp", "sofa", "chair"]
ORDERS["day"] += ["2023-12-31", "2024-01-01", "2024-12-31", "2023-06-01", "2024-02-29"]
ORDERS["seen"] += ["2024-05-01 10:00:00", "2024-05-02 10:00:00", "2023-12-31 23:00:00", "2024-01-01 00:00:00"]
ORDERS["seen"] += ["2024-12-31 10:00:00", "2023-06-01 10:00:00", "2024-02-29 10:00:00"]
DOMAINS = {
    "customers": Domain(
        country=dp.Category("DE", "FR"), grade=dp.Category(5, 6, 7, 8), born=dp.Number(1940, 2010, step=1)
    ),
    "orders": Domain(
        total=dp.Number(0, 50, step=1, missing=True),
        channel=dp.Category("web", "app"),
        day=dp.Date("2023-01-01", "2024-12-31"),
        seen=dp.Timestamp("2023-01-01", "2024-12-31 23:00:00", step="hour"),
        product=Text(),
    ),
}
SQL = {"who": "INT", "country": "VARCHAR", "grade": "INT", "born": "INT", "total": "INT", "channel": "VARCHAR"}
SQL |= {"day": "DATE", "seen": "TIMESTAMP", "product": "VARCHAR"}


@pytest.fixture(scope="module")
def connection():
    with closing(duckdb.connect(":memory:", config={"threads": 1})) as made:
        for name, rows in (("customers", CUSTOMERS), ("orders", ORDERS)):
            made.execute(f"CREATE TABLE {name} ({', '.join(f'{each} {SQL[each]}' for each in rows)})")
            made.executemany(
                f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows))})", list(zip(*rows.values(), strict=True))
            )
        yield made


def table(name, relation="replace-one"):
    many = 4 if name == "orders" else 1
    rows = CUSTOMERS if name == "customers" else ORDERS
    return dp.Table(rows, DOMAINS[name], name=name, unit="who", rows_per_unit=many, neighbours=relation)


@pytest.fixture(scope="module", params=["replace-one", "add-remove"])
def shop(request):
    return dp.Database([table("customers", request.param), table("orders", request.param)], persons="customers")


def known(base):
    return [
        Known(name, each.domain, each.key, each.rows_per_unit, name == "customers")
        for name, each in base.catalogue.items()
    ]


def exactly(statement, text, data):
    made = Assembly(statement, data.facts, text)
    sums = [np.asarray(data.exact_sum(each)) * each.unit(data.facts) for each in made.questions]
    return made.answer([Answer(np.asarray(each, dtype=float), 0.0, "test") for each in sums])


def plain(value):
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float, Decimal, Fraction)):
        return round(float(value), 6)
    return value.isoformat()[:10] if isinstance(value, datetime.date) else value


def check(answer, truth):
    """Every row of duckdb's is one of ours; the others are of groups without rows."""
    mine = [tuple(None if each in ("no row", 0) else plain(each) for each in row) for row in answer.rows]
    for row in truth:
        assert tuple(None if each == 0 else plain(each) for each in row) in mine, (row, answer.rows)


IN_ALL = (CASES / "persons_of_two_tables.txt").read_text(encoding="utf-8").strip().split("\n")

IN_ORDERS = (CASES / "each_person.txt").read_text(encoding="utf-8").strip().split("\n")


@pytest.mark.parametrize("text", IN_ALL)
def test_persons_who_have_a_row_or_none_are_those_that_duckdb_finds(text, shop, connection):
    statement = parse_about(text, known(shop))
    check(exactly(statement, text, shop.view(statement.tables)), connection.execute(text).fetchall())


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("text", IN_ORDERS)
def test_a_number_of_each_person_is_what_duckdb_says(text, relation, connection):
    data = table("orders", relation)
    statement = parse_about(text, [Known("orders", DOMAINS["orders"], "who", 4)])
    check(exactly(statement, text, data), connection.execute(text).fetchall())


REFUSED = (CASES / "each_person_refused.txt").read_text(encoding="utf-8").strip().split("\n")


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_answered_of_each_person_is_refused_with_the_reason(case):
    text, _, reason = case.partition("|")
    data = table("orders")
    with pytest.raises((UnsupportedQuery, ParameterError), match=reason):
        Assembly(parse_about(text, [Known("orders", DOMAINS["orders"], "who", 4)]), data.facts, text)


MEDIANS = [
    ("MEDIAN(n)", "QUANTILE_CONT(n, 0.5)"),
    ("QUANTILE_CONT(n, 0.9)", "QUANTILE_CONT(n, 0.9)"),
    ("QUANTILE(n, 0.1)", "QUANTILE_DISC(n, 0.1)"),
]


@pytest.mark.parametrize("error", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("asked", MEDIANS, ids=lambda each: each[0])
def test_a_quantile_of_a_number_of_each_person_lies_in_its_interval(asked, error, connection):
    """Of random numbers of rows, whatever the counts are off by."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        many = rng.integers(1, 5, rng.integers(1, 12))
        who = np.repeat(np.arange(len(many)), many)
        data = dp.Table(
            {"who": who, "total": who % 7}, Domain(total=dp.Number(0, 9, step=1)), name="t", unit="who", rows_per_unit=4
        )
        text = f"SELECT {asked[0]} FROM (SELECT who, COUNT(*) AS n FROM t GROUP BY who) q"
        made = Assembly(parse_about(text, [Known("t", data.facts.domain, "who", 4)]), data.facts, text)
        sums = np.asarray(data.exact_sum(made.questions[0]), dtype=float)
        off = np.clip(sums + rng.integers(-error, error + 1, sums.shape), 0, None)
        answer = made.answer([Answer(off, error, "test")])
        (truth,) = connection.execute(f"SELECT {asked[1]} FROM (SELECT UNNEST({many.tolist()}) AS n)").fetchone()
        low, high = answer.intervals[0][0] or (1.0, 4.0)
        assert low <= truth <= high


def test_a_record_of_a_question_about_made_rows_is_read_again():
    from discreet.catalogue import CATALOGUE

    made = PersonRows(
        [PersonKey("channel", "channel")],
        [PersonNumber("n", "sum", Fixed(1), 4), PersonNumber("s", "most", Of("total"), 4, Equals("channel", "web"))],
    )
    query = OfPersons(made, Histogram(("channel", "n")))
    assert revive(record(query), CATALOGUE) == query


def test_the_number_of_persons_is_public_where_all_have_a_row():
    facts, all_of_them = table("orders").facts, PersonRows([], [PersonNumber("n", "sum", Fixed(1), 4)])
    assert OfPersons(all_of_them, Count()).public(facts) == 6
    assert OfPersons(all_of_them, Count(Equals("n", 1))).public(facts) is None
    some = PersonRows([], all_of_them.numbers, Equals("channel", "web"))
    assert OfPersons(some, Count()).public(facts) is None
    assert OfPersons(all_of_them, Count()).public(table("orders", "add-remove").facts) is None


def test_a_session_answers_and_says_that_these_are_persons():
    data = table("orders")
    session = dp.Session(data, dp.Ledger.in_memory(dp.Budget(1000, 1e-6), data), max_price=1)
    answer = session.ask("SELECT n, COUNT(*) FROM (SELECT who, COUNT(*) AS n FROM orders GROUP BY who) q GROUP BY n")
    assert answer.unit == "persons"
    assert answer.price > 0 == session.price("SELECT COUNT(*) FROM (SELECT who FROM orders GROUP BY who) q")
    assert session.ask("SELECT COUNT(*) FROM (SELECT who FROM orders GROUP BY who) q").value == 6
    again = session.ask(OfPersons(PersonRows([], [PersonNumber("n", "sum", Fixed(1), 4)]), Histogram("n")))
    assert set(again.value) == {1, 2, 3, 4}


def test_too_few_rows_are_refused_and_so_is_a_number_of_no_column():
    few = OfPersons(PersonRows([], [PersonNumber("n", "sum", Fixed(1), 2)]), Count())
    with pytest.raises(ParameterError, match="a person has up to 4 rows here"):
        few.sensitivity(table("orders").facts)
    with pytest.raises(ParameterError, match="function must be"):
        PersonNumber("n", "mean", Fixed(1), 2)
    with pytest.raises(ParameterError, match="has no least value"):
        PersonNumber("n", "least", "channel", 4).column(DOMAINS["orders"])
    with pytest.raises(ParameterError, match="all of them"):
        PersonNumber("n", "own", "channel", 4, Equals("channel", "web"))


@pytest.mark.parametrize("column", [dp.Number(0, 2**61 - 1, step=1), dp.Number.any()], ids=["wide", "any"])
def test_different_values_of_a_person_are_counted_apart_however_many_codes_a_column_has(column):
    """Of 60 persons, each with three rows of 1, 2 or 3 different values: person times code is beyond 64 bits."""
    base = np.array([0.0, 2.0**58, 2.0**60])
    rows = {
        "who": np.repeat(np.arange(60), 3),
        "a": np.concatenate([base[[0, 1 % (i % 3 + 1), i % 3]] for i in range(60)]),
    }
    data = dp.Table(rows, Domain(a=column), name="t", neighbours="add-remove", unit="who", rows_per_unit=3)
    made = PersonRows((), (PersonNumber("n", "different", "a", 3),))
    assert data.exact_sum(OfPersons(made, Histogram("n"))).tolist() == [20, 20, 20]


def test_how_many_persons_have_a_row_in_a_view_is_not_public_though_all_of_them_are():
    own = dp.Table(
        {"who": [0, 1], "n": [1, 2]}, Domain(n=dp.Number(0, 3, step=1)), name="a", unit="who", rows_per_unit=1
    )
    rows = {"who": [0, 0], "n": [1, 2]}
    other = dp.Table(rows, Domain(n=dp.Number(0, 3, step=1)), name="b", unit="who", rows_per_unit=2)
    asked = OfPersons(PersonRows((), (PersonNumber("k", "sum", Fixed(1), 2),)), Count())
    assert asked.public(dp.Database([own, other], persons="a").view("b").facts) is None
    assert asked.public(other.facts) == 1


def test_a_column_of_texts_that_names_persons_is_no_column_to_ask_about():
    declared = Known("orders", Domain(who=Text(), day=dp.Number(0, 6, step=1)), "who", 3)
    undeclared = Known("orders", Domain(day=dp.Number(0, 6, step=1)), "who", 3)
    for question in (
        "SELECT day, COUNT(DISTINCT who) FROM orders GROUP BY day",
        "SELECT n, COUNT(*) FROM (SELECT who, COUNT(*) AS n FROM orders GROUP BY who) AS q GROUP BY n",
    ):
        assert parse_about(question, (declared,)).questions == parse_about(question, (undeclared,)).questions
    for refused in ("SELECT who, COUNT(*) FROM orders GROUP BY who", "SELECT COUNT(*) FROM orders WHERE who = 'p'"):
        with pytest.raises(UnsupportedQuery, match="'who' names persons"):
            parse_about(refused, (declared,))
