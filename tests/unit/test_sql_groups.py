"""What is made of released numbers: the truth is in the interval whatever the noise was, and groups in doubt are."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.answering.answer import Answer, Assembly
from discreet.errors import NothingFits, UnsupportedQuery
from discreet.query import Count, Equals
from discreet.sql import parse

DOMAIN = dp.Domain(
    a=dp.Category("x", "y", "z"),
    b=dp.Category("p", "q"),
    n=dp.Number(-10, 10, step=1),
    at=dp.Timestamp("2024-01-01", "2024-01-03 23:59:59", step="hour"),
)
CELLS = {"x": 9, "y": 12, "z": 0}
ROWS = {
    "a": [label for label, many in CELLS.items() for _ in range(many)],
    "b": ["p", "q", "q"] * 7,
    "n": [place % 21 - 10 for place in range(21)],
    "at": [f"2024-01-0{1 + place % 3} 0{place % 10}:00:00" for place in range(21)],
}
TABLE = dp.Table(ROWS, DOMAIN, name="t", neighbours="add-remove")


def noisy(text, off):
    """The answer if every number is off by this much, and its error bound says so."""
    statement = parse(text, DOMAIN, table="t")
    assembly = Assembly(statement, TABLE.facts, text)
    found = []
    for query in assembly.questions:
        exact = np.asarray(TABLE.exact_sum(query), dtype=np.float64) * float(query.unit(TABLE.facts))
        signs = np.resize(off, exact.size).reshape(exact.shape)
        found.append(Answer(exact + signs, float(np.max(np.abs(signs))), "test"))
    return assembly.answer(found)


OFF = [np.array(each) for each in itertools.product((-3, 0, 3), repeat=3)]


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("SELECT ABS(SUM(n)) FROM t WHERE a = 'x'", [54]),
        ("SELECT POWER(SUM(n), 2) FROM t WHERE a = 'x'", [54**2]),
        ("SELECT IF(COUNT(*) > 8, COUNT(*), 0) FROM t WHERE a = 'x'", [9]),
        ("SELECT ABS(COUNT(*) - 9) FROM t WHERE a = 'x'", [0]),
        ("SELECT COUNT(*) FROM (SELECT a, COUNT(*) AS m FROM t GROUP BY a HAVING COUNT(*) > 10) q", [1]),
        ("SELECT SUM(m) FROM (SELECT a, COUNT(*) AS m FROM t GROUP BY a) q WHERE m > 10", [12]),
        ("SELECT AVG(m) FROM (SELECT a, COUNT(*) AS m FROM t GROUP BY a) q WHERE NOT m <= 10", [12]),
        ("SELECT MIN(m) FROM (SELECT a, COUNT(*) AS m FROM t GROUP BY a) q WHERE m > 8 AND m < 100", [9]),
        ("SELECT MAX(m) FROM (SELECT a, COUNT(*) AS m FROM t GROUP BY a) q WHERE m < 10 OR m = 500", [9]),
        ("SELECT GREATEST(COUNT(*), 10), LEAST(COUNT(*), 10) FROM t WHERE a = 'x'", [10, 9]),
        ("SELECT GREATEST(COUNT(*), 8), LEAST(COUNT(*), 8) FROM t WHERE a = 'x'", [9, 8]),
        ("SELECT COUNT(DISTINCT a) FROM t", [2]),
        ("SELECT COUNT(DISTINCT a), COUNT(*) FROM t WHERE b = 'p'", [2, 7]),
    ],
)
def test_the_truth_is_in_the_interval_whatever_the_noise(text, truth):
    """The exact law of the condition is not needed: each number is off by its bound, up or down."""
    for off in OFF:
        answer = noisy(text, off)
        for value, ends in zip(truth, answer.intervals[0], strict=True):
            if ends is not None:
                assert ends[0] - 1e-9 <= value <= ends[1] + 1e-9, (off, answer)


def test_an_interval_is_a_point_without_noise():
    for text, truth in (
        ("SELECT ABS(SUM(n)) FROM t WHERE a = 'x'", 54),
        ("SELECT COUNT(*) FROM (SELECT a, COUNT(*) AS m FROM t GROUP BY a HAVING COUNT(*) > 10) q", 1),
        ("SELECT COUNT(DISTINCT a) FROM t", 2),
    ):
        answer = noisy(text, np.array([0]))
        assert answer.value == truth
        assert answer.intervals[0][0] == pytest.approx((truth, truth))


def test_a_window_over_groups_in_doubt_allows_for_them():
    text = "SELECT a, SUM(COUNT(*)) OVER () AS s FROM t GROUP BY a HAVING COUNT(*) > 10"
    for off in OFF:
        for row, ends in zip(*(lambda found: (found.rows, found.intervals))(noisy(text, off)), strict=True):
            assert row[0] != "y" or ends[1][0] <= 12 <= ends[1][1]
    ranked = noisy("SELECT a, RANK() OVER (ORDER BY COUNT(*)) AS r FROM t GROUP BY a HAVING COUNT(*) > 10", OFF[0])
    assert all(ends[1] == (-math.inf, math.inf) for ends in ranked.intervals)


def test_a_timestamp_cast_to_a_date_is_a_day():
    found = noisy("SELECT CAST(at AS DATE) AS d, COUNT(*) AS m FROM t GROUP BY CAST(at AS DATE)", np.array([0]))
    assert found.value == {"2024-01-01": 7, "2024-01-02": 7, "2024-01-03": 7}
    assert noisy("SELECT COUNT(*) FROM t WHERE at::date = '2024-01-02'", np.array([0])).value == 7


def test_several_groupings_and_unions_are_told_apart_by_their_keys():
    rolled = noisy("SELECT a, b, COUNT(*) AS m FROM t GROUP BY ROLLUP (a, b)", np.array([0]))
    assert rolled.groups == ("a", "b")
    assert rolled.value[None, None] == 21
    assert rolled.value["x", None] == 9
    assert len(rolled.rows) == 3 * 2 + 3 + 1
    union = noisy(
        "SELECT COUNT(*) AS m FROM t WHERE a = 'x' UNION ALL SELECT COUNT(*) FROM t ORDER BY m DESC", np.array([0])
    )
    assert union.groups == ("row",)
    assert union.value == {1: 21, 2: 9}


def test_a_price_that_buys_nothing_names_one_that_would():
    tiny = dp.Session(TABLE, dp.Ledger.in_memory(dp.Budget(1e-8, 1e-10), TABLE), price="0.01%")
    with pytest.raises(NothingFits, match=r'a session with price="\d+%" could ask it'):
        tiny.ask(Count(Equals("a", "x")))
    none = dp.Session(TABLE, dp.Ledger.in_memory(dp.Budget(Fraction(1, 10**9)), TABLE))
    with pytest.raises(NothingFits, match=r"a ledger with [\d,]+ times this budget could answer it"):
        none.ask(Count(Equals("a", "x")))


def test_a_sum_of_values_of_one_sign_is_shown_with_that_sign():
    """Both ways to a sum, alone and beside the average of the same rows; all of the interval lies on its side of 0."""
    for value, side in (("n + 10", 1), ("-10 - n", -1)):
        for more in ("", f", AVG({value})"):
            for off in (-200, 200):
                answer = noisy(f"SELECT SUM({value}){more} FROM t WHERE a = 'x'", np.array([off]))
                low, high = answer.intervals[0][0]
                assert min(side * low, side * high) >= 0
                assert low <= side * 36 <= high
                shown = answer.rows[0][0] if more else answer.value
                assert side * shown >= 0
    low, high = noisy("SELECT SUM(n) FROM t WHERE a = 'x'", np.array([200])).intervals[0][0]
    assert low < 0 < high


def test_bins_are_found_in_few_steps_and_refused_where_there_are_too_many(monkeypatch):
    """A column of 2 * 10^15 + 1 values; one that divides into a few bins of equal and of unequal lengths."""
    domain = dp.Domain(wide=dp.Number(-(10**15), 10**15, step=1))
    (key,) = parse("SELECT FLOOR(wide / 300000000000000) AS g, COUNT(*) FROM t GROUP BY g", domain, table="t").keys
    assert key.labels == (-4, -3, -2, -1, 0, 1, 2, 3)
    starts = [0, *(10**15 + place * 3 * 10**14 for place in range(-3, 4))]
    assert list(key.key.starts) == starts
    monkeypatch.setattr("discreet.sql.values.MAX_LINE", 100)
    with pytest.raises(UnsupportedQuery, match="more than 100 groups"):
        parse("SELECT FLOOR(wide / 10) * 10 AS g, COUNT(*) FROM t GROUP BY g", domain, table="t")


@pytest.mark.parametrize(
    "asked",
    [
        "SELECT MEDIAN(at) + 1 FROM t",
        "SELECT ROUND(MEDIAN(at)) FROM t",
        "SELECT a, MEDIAN(at) FROM t GROUP BY a HAVING MEDIAN(at) > 3",
        "SELECT a, SUM(MEDIAN(at)) OVER () FROM t GROUP BY a",
        "SELECT a, AVG(m) FROM (SELECT a, b, MEDIAN(at) AS m FROM t GROUP BY a, b) q GROUP BY a",
        "SELECT AVG(b) FROM (SELECT b, COUNT(*) AS m FROM t GROUP BY b) q",
        "SELECT a, GREATEST(COUNT(*), a) FROM t GROUP BY a",
        "SELECT b, COALESCE(1 / COUNT(*), 'none') + 1 FROM t GROUP BY b",
        "SELECT b, COUNT(*) * b FROM t GROUP BY b",
        "SELECT CASE WHEN COUNT(*) > 1000 THEN 'many' ELSE 0 END + 1 FROM t",
    ],
)
def test_arithmetic_with_a_text_or_a_date_that_is_drawn_is_refused_before_the_charge(asked):
    ledger = dp.Ledger.in_memory(dp.Budget(5, "1e-6"), TABLE)
    session = dp.Session(TABLE, ledger)
    before = ledger.length()
    with pytest.raises(UnsupportedQuery):
        session.ask(asked)
    assert ledger.length() == before
    session.check("SELECT a, MAX(m) FROM (SELECT a, b, MEDIAN(at) AS m FROM t GROUP BY a, b) q GROUP BY a")
