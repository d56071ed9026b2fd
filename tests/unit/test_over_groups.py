"""What is made of all groups of an answer, of persons beside rows, and of values that are looked up."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.answering import Assembly
from discreet.answering.answer import Answer
from discreet.answering.linear_query import meaning
from discreet.catalogue import CATALOGUE
from discreet.errors import ParameterError, UnsupportedQuery
from discreet.query import Cases, Equals, GroupCount, GroupSum, Lookup, Persons
from discreet.records import record, revive
from discreet.rng import SeededRng
from discreet.sql import parse

DOMAIN = dp.Domain(kind=dp.Category("a", "b", "c", "d"), x=dp.Number(0, 9, step=1), y=dp.Number(1, 6, step=1))


def answered(text, counts, error):
    """The answer to a question whose one count was released as these numbers, each off by at most this."""
    facts = dp.Table({"kind": ["a"], "x": [1], "y": [1]}, DOMAIN, neighbours="add-remove").facts
    made = Assembly(parse(text, DOMAIN, table="t"), facts, text)
    assert len(made.questions) == 1
    return made.answer([Answer(np.array(counts, dtype=float), float(error), "test")])


def test_shares_of_all_groups_have_the_interval_of_the_sum():
    found = answered("SELECT kind, SUM(COUNT(*)) OVER () AS n FROM t GROUP BY kind", [40, 30, 20, 10], 5)
    assert [row[1] for row in found.rows] == [100] * 4
    assert found.intervals[0][1] == (80.0, 120.0)


def test_a_rank_is_between_those_that_are_surely_and_those_that_may_be_before():
    text = "SELECT kind, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM t GROUP BY kind"
    found = answered(text, [100, 60, 57, 10], 5)
    assert [row[1] for row in found.rows] == [1, 2, 3, 4]
    assert [line[1] for line in found.intervals] == [(1.0, 1.0), (2.0, 3.0), (2.0, 3.0), (4.0, 4.0)]
    ties = answered(text.replace("RANK()", "DENSE_RANK()"), [7, 7, 3, 1], 0)
    assert [row[1] for row in ties.rows] == [1, 1, 2, 3]
    places = answered(text.replace("RANK()", "ROW_NUMBER()"), [7, 7, 3, 1], 0)
    assert [row[1] for row in places.rows] == [1, 2, 3, 4]


def test_groups_that_may_be_empty_widen_what_is_said_of_all_groups():
    inner = "SELECT kind, COUNT(*) AS n FROM t GROUP BY 1"
    text = f"SELECT COUNT(*) AS k, AVG(n) AS m, MIN(n) AS s, MAX(n) AS l FROM ({inner}) q"
    (row,), (ends,) = (found := answered(text, [40, 30, 20, 2], 5)).rows, found.intervals
    assert row == (4, 23.0, 2, 40)
    assert ends[0] == (3.0, 4.0)  # the last may have no rows
    assert ends[1][0] <= (40 + 30 + 20) / 3 - 5 <= ends[1][1]
    assert ends[2] == (0.0, 25.0)
    assert ends[3] == (35.0, 45.0)
    (row,) = answered(text, [40, 30, 20, 0], 0).rows
    assert row == (3, 30.0, 20, 40)  # a group without rows is none


def test_running_sums_and_differences_go_along_the_keys():
    windows = "SUM(COUNT(*)) OVER (ORDER BY x) AS run, LAG(COUNT(*)) OVER (ORDER BY x) AS before"
    found = answered(f"SELECT x, {windows} FROM t GROUP BY x", range(1, 11), 1)
    assert [row[1] for row in found.rows] == np.cumsum(range(1, 11)).tolist()
    assert [row[2] for row in found.rows] == [None, *range(1, 10)]
    assert found.intervals[3][1] == (0 + 1 + 2 + 3, 2 + 3 + 4 + 5)


def test_conditions_on_windows_choose_among_the_groups():
    text = "SELECT kind, COUNT(*) AS n FROM t GROUP BY kind QUALIFY RANK() OVER (ORDER BY COUNT(*) DESC) <= 2"
    assert [row[0] for row in answered(text, [1, 9, 5, 7], 0).rows] == ["b", "d"]
    inner = "SELECT kind, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM t GROUP BY kind"
    assert [row[0] for row in answered(f"SELECT * FROM ({inner}) q WHERE r = 1", [1, 9, 5, 7], 0).rows] == ["b"]
    some = f"{inner} ORDER BY n DESC LIMIT 2"
    assert [row[0] for row in answered(f"WITH q AS ({some}) SELECT kind FROM q", [1, 9, 5, 7], 0).rows] == ["b", "d"]


VISITS = dp.Domain(amount=dp.Number(0, 10, step=1), kind=dp.Category("a", "b"), city=dp.Text(length=4, missing=True))


def visits(relation="replace-one"):
    rows = {"who": [1, 1, 1, 2], "amount": [10, 10, 10, 2], "kind": list("aaab"), "city": ["Ulm", "Ulm", None, "Bonn"]}
    return dp.Table(rows, VISITS, name="visits", unit="who", rows_per_unit=3, neighbours=relation)


def exactly(text, table):
    made = Assembly(parse(text, VISITS, table="visits", unit="who", rows=3), table.facts, text)
    sums = [np.asarray(table.exact_sum(each.partial)) * each.unit(table.facts) for each in made.questions]
    return made.answer([Answer(np.asarray(each, dtype=float), 0.0, "test") for each in sums]).rows


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("SELECT COUNT(*) / COUNT(DISTINCT who) FROM visits", 2),  # not a part of the persons: not cut to 1
        ("SELECT SUM(amount) / COUNT(DISTINCT who) FROM visits", 16),  # not the average of a row
        ("SELECT COUNT(DISTINCT who) / COUNT(*) FROM visits", 0.5),
        ("SELECT AVG(s) FROM (SELECT who, SUM(amount) AS s FROM visits GROUP BY who) q", 16),
        ("SELECT SUM(amount) / (SELECT COUNT(*) FROM visits) FROM visits", 8),
        ("SELECT COUNT(*) FROM visits WHERE city = 'Ulm'", 2),
        ("SELECT COUNT(*) FROM visits WHERE city <> 'Ulm'", 1),  # a missing one is neither
        ("SELECT COUNT(city) FROM visits WHERE city IN ('Ulm', 'Bonn', 'Köln')", 3),
    ],
)
def test_persons_rows_and_texts_are_told_apart(text, truth):
    assert exactly(text, visits()) == [(truth,)]


def test_a_group_over_all_rows_is_no_average():
    text = "SELECT kind, SUM(amount) / (SELECT COUNT(*) FROM visits) AS part FROM visits GROUP BY kind"
    assert exactly(text, visits()) == [("a", 7.5), ("b", 0.5)]


def test_persons_get_less_noise_beside_rows_and_rows_little_more():
    table = visits()
    text = "SELECT COUNT(*), COUNT(DISTINCT who) FROM visits WHERE kind = 'a'"
    bounds = []
    for asked in (text, "SELECT COUNT(*) FROM visits WHERE kind = 'a'"):
        session = dp.Session(table, dp.Ledger.in_memory(dp.Budget(1, 1e-6), table, testing=True), rng=SeededRng(3))
        errors = session.ask(asked).error_bound
        bounds.append([errors] if isinstance(errors, float) else list(errors.values()))
    (rows, persons), (alone,) = bounds
    assert persons < 0.7 * rows
    assert rows < 1.6 * alone


def test_a_budget_too_small_for_a_renyi_book_is_answered_from_the_other():
    table = visits("add-remove")
    ledger = dp.Ledger.in_memory(dp.Budget("0.001", "1e-9"), table, testing=True)
    assert ledger.spent().caps.renyi is None
    session = dp.Session(table, ledger)
    question = "SELECT kind, COUNT(*) FROM visits GROUP BY kind"
    assert 0 < session.price(question).percent <= 1
    assert session.ask(question).price == session.ledger.spent().pure > 0


def test_a_count_is_not_more_than_the_public_number_of_rows():
    table = dp.Table({"kind": ["a", "b"] * 50}, dp.Domain(kind=dp.Category("a", "b")), name="t")
    session = dp.Session(table, dp.Ledger.in_memory(dp.Budget("0.001"), table, testing=True), rng=SeededRng(1))
    answer = session.ask("SELECT COUNT(*) FROM t WHERE kind = 'a'")
    assert answer.intervals == [((0.0, 100.0),)]


def test_a_value_is_looked_up_by_its_cell():
    ratios = Lookup(["x", "y"], [60 * x // (y + 1) for x in range(10) for y in range(6)], "1/60")
    table = dp.Table({"kind": list("abcd"), "x": [9, 4, 0, 7], "y": [2, 3, 1, 6]}, DOMAIN)
    query = GroupSum([], ratios)
    total = int(table.exact_sum(query.partial)) * query.unit(table.facts)
    assert total == Fraction(9, 2) + Fraction(4, 3) + Fraction(7, 6)
    assert (query.sensitivity(table.facts).l1, ratios.bounds(DOMAIN)) == (540, (0, 9))
    assert revive(record(query), CATALOGUE) == query
    (summed,) = parse("SELECT SUM(x / y) FROM t", DOMAIN, table="t").questions
    assert summed == query
    with pytest.raises(ParameterError, match="have 10 cells, found 3 numbers"):
        GroupSum([], Lookup(["x"], [1, 2, 3])).sensitivity(table.facts)
    for wrong in ([], [1.5], [True]):
        with pytest.raises(ParameterError, match="Lookup needs columns"):
            Lookup(["x"], wrong)
    with pytest.raises(ParameterError, match="Lookup needs columns"):
        Lookup(["x", "x"], [1])


def test_questions_of_another_number_of_groups_mean_something_else():
    always = dp.Or(Equals("kind", "a"), ~Equals("kind", "a"))
    two, three = GroupCount([Cases([always])]), GroupCount([Cases([always, Equals("kind", "b")])])
    again = GroupCount([Cases([dp.Or(Equals("kind", "b"), ~Equals("kind", "b"))])])
    assert meaning(two, DOMAIN) == meaning(again, DOMAIN)
    assert meaning(two, DOMAIN) != meaning(three, DOMAIN)


def test_a_condition_on_texts_that_nobody_listed_moves_by_one_person():
    facts = visits().facts
    assert Persons(where=Equals("city", "Ulm")).sensitivity(facts).l1 == 1
    with pytest.raises(ParameterError, match="texts of at most 4 characters"):
        dp.Count(Equals("city", "Leipzig")).sensitivity(facts)


@pytest.mark.parametrize(
    ("made", "low", "high"),
    [
        ("ABS(COUNT(*) - 30)", 0, 8),
        ("POWER(COUNT(*), 2)", 22**2, 32**2),
        ("POWER(COUNT(*) - 30, 2)", 0, 64),
        ("POWER(COUNT(*), -1)", 1 / 32, 1 / 22),
        ("IF(COUNT(*) > 20, COUNT(*), 0)", 0, 32),
        ("CASE WHEN COUNT(*) > 20 THEN COUNT(*) ELSE 'few' END", 22, 32),
        ("COALESCE(100 / NULLIF(COUNT(*) - 27, 0), 5)", -float("inf"), float("inf")),
        ("COALESCE(LN(COUNT(*) - 28), 5)", -float("inf"), float("inf")),
    ],
)
def test_what_is_made_of_an_aggregate_is_as_uncertain_as_the_aggregate(made, low, high):
    ((ends,),) = answered(f"SELECT {made} FROM t", 27, 5).intervals
    assert ends[0] <= low + 1e-9
    assert ends[1] >= high - 1e-9


@pytest.mark.parametrize("text", ["NULLIF(COUNT(*))", "POWER(COUNT(*))", "ABS(COUNT(*), 1)", "IF(COUNT(*) > 1, 2)"])
def test_a_function_with_too_few_values_is_refused_before_anything_is_paid(text):
    with pytest.raises(UnsupportedQuery):
        parse(f"SELECT {text} FROM t", DOMAIN, table="t")


def test_groups_that_the_truth_may_choose_otherwise_count_in_the_interval():
    inner = "SELECT kind, COUNT(*) AS n FROM t GROUP BY 1 HAVING COUNT(*) > 25"
    found = answered(f"SELECT COUNT(*) AS k, SUM(n) AS s, MIN(n) AS m FROM ({inner}) q", [40, 28, 22, 2], 5)
    assert found.rows == [(2, 68, 28)]
    assert found.intervals == [((1.0, 3.0), (35.0, 105.0), (17.0, 45.0))]
    text = "SELECT kind, SUM(COUNT(*)) OVER () AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM t GROUP BY kind"
    kept = answered(f"{text} HAVING COUNT(*) > 25", [40, 28, 22, 2], 5)
    assert [row[1:] for row in kept.rows] == [(68, 1), (68, 2)]
    assert [line[1:] for line in kept.intervals] == [((35.0, 105.0), (1.0, 1.0)), ((35.0, 105.0), (2.0, 3.0))]


def test_a_group_that_may_be_empty_has_no_average_for_certain():
    facts = dp.Table({"kind": ["a"], "x": [1], "y": [1]}, DOMAIN, neighbours="add-remove").facts
    text = "SELECT SUM(m) AS s, AVG(m) AS a, MAX(m) AS l FROM (SELECT kind, AVG(y) AS m FROM t GROUP BY kind) q"
    made = Assembly(parse(text, DOMAIN, table="t"), facts, text)
    counts, sums = np.array([100.0, 1.0, 0.0, 0.0]), np.array([-250.0, 2.5, 0.0, 0.0])  # of y - 3.5
    given = {True: Answer(counts, 2.0, "test"), False: Answer(sums, 2.0, "test")}
    (ends,) = made.answer([given[query.counting] for query in made.questions]).intervals
    first = 1.0  # the average of the first group, if it is the only one there
    assert all(low <= first + 0.1 and high >= first for low, high in ends)
