"""What is made of given numbers: an interval has the errors of all parts, every group is there, and no bound is rounded
down."""

from __future__ import annotations

import gc
import itertools
import math

import numpy as np
import pytest

import discreet as dp
from discreet.answering.answer import Answer, Assembly, asked_directly
from discreet.query import Bins, GroupCount
from discreet.sql import parse

DOMAIN = dp.Domain(
    town=dp.Category("north", "south", "nowhere"),
    sex=dp.Category("F", "M"),
    visits=dp.Number(-2, 8, step="0.1"),
)
FACTS = dp.data.Facts(DOMAIN, dp.Neighbours("replace-one"), 1000)


def given(value, bound, source="direct", price=1):
    return Answer(np.array(value), bound, source, price, missed=False)


def asked(text):
    return Assembly(parse(text, DOMAIN, table="t"), FACTS, text)


def average(total, count, text="SELECT AVG(visits) FROM t"):
    """From the sum of visits - 3, the middle of their interval, and the number of rows."""
    return asked(text).answer([count, total])


@pytest.mark.parametrize("total", [0.0, 130.0, -47.3, 390.0])
@pytest.mark.parametrize(("off_total", "off_count"), [(0.0, 6.0), (25.0, 0.0), (25.0, 6.0), (3.0, 11.5)])
def test_an_average_is_within_its_bound_wherever_sum_and_count_are_within_theirs(total, off_total, off_count):
    count = 50
    found = average(given(total, off_total), given(count, off_count))
    errors = [
        min(max(3 + (total + a * off_total) / (count + b * off_count), -2.0), 8.0) - found.value
        for a, b in itertools.product(np.linspace(-1, 1, 21), repeat=2)
    ]
    assert max(map(abs, errors)) <= found.error_bound + 1e-9
    assert found.error_bound <= max(map(abs, errors)) + 1e-5  # and no more: the ends are attained
    if total and off_count:
        assert found.error_bound >= average(given(total, off_total), given(count, 0.0)).error_bound


def test_an_average_over_a_count_that_may_be_nothing_lies_in_the_declared_interval():
    found = average(given(4.0, 1.0), given(5, 5.0))
    assert found.intervals == [((-2.0, 8.0),)]
    assert found.error_bound == pytest.approx(max(found.value + 2, 8 - found.value), abs=1e-6)
    narrower = average(given(4.0, 1.0), given(5, 3.0))
    assert narrower.error_bound < found.error_bound


def test_an_average_over_very_few_rows_is_moved_to_the_middle():
    far = average(given(400.0, 1.0), given(1, 100.0))
    assert far.value == pytest.approx(3 + 400 / 100)  # divided by the error of the count, not by 1
    assert average(given(4.0, 1.0), given(0, 100.0)).value == pytest.approx(3 + 4 / 100)
    assert average(given(0.0, 0.0), given(0, 0.0)).value is None  # nobody is there, for certain


def test_an_average_costs_and_names_both_of_its_parts():
    found = average(given(4.0, 1.0, "cache", 3), given(5, 1.0, "direct", 4))
    assert (found.price, found.source, found.unit) == (7, "direct and cache", "visits")


@pytest.mark.parametrize("columns", [("town",), ("town", "sex"), ("sex", "town")])
def test_every_group_of_the_domain_is_there_also_those_of_nobody(columns):
    """Which groups are empty is private: a group that were left out would say so."""
    named = ", ".join(columns)
    assembly = asked(f"SELECT {named}, COUNT(*) FROM t GROUP BY {named}")
    (query,) = assembly.questions
    counts = np.zeros(query.shape(DOMAIN))
    counts.ravel()[0] = 7
    found = assembly.answer([given(counts.astype(int), 3.0)])
    levels = list(itertools.product(*(DOMAIN[name].levels for name in columns)))
    assert list(found.value) == [each[0] if len(each) == 1 else each for each in levels]
    assert found.rows == [(*level, found.value[level[0] if len(level) == 1 else level]) for level in levels]
    assert sorted(found.value.values()) == [*[0] * (len(levels) - 1), 7]
    assert set(found.fraction) == set(found.value)
    assert len(found.frame("pyarrow")) == len(levels)


def test_groups_that_the_condition_excludes_are_not_listed():
    assembly = asked("SELECT town, COUNT(*) FROM t WHERE town <> 'nowhere' GROUP BY town")
    assert list(assembly.answer([given([4, 5, 0], 1.0)]).value) == ["north", "south"]


def test_several_aggregates_have_a_value_and_a_bound_each():
    found = asked("SELECT sex, COUNT(*) AS n, AVG(visits) AS mean FROM t GROUP BY sex").answer(
        [given([10, 30], 2.0), given([5.0, -3.0], 6.0)]
    )
    assert found.columns == ("sex", "n", "mean")
    assert found.value == {"F": {"n": 10, "mean": 3.5}, "M": {"n": 30, "mean": 2.9}}
    assert found.rows == [("F", 10, 3.5), ("M", 30, 2.9)]
    assert found.intervals[0][:2] == (None, (8.0, 12.0))
    assert found.error_bound["n"] == 2.0
    low, high = found.intervals[0][2]
    assert (low, high) == (pytest.approx(3 - 1 / 8), pytest.approx(3 + 11 / 8))
    alone = asked("SELECT COUNT(*) AS n, AVG(visits) AS mean FROM t").answer([given(10, 2.0), given(5.0, 6.0)])
    assert alone.value == {"n": 10, "mean": 3.5}


def test_order_having_and_limit_are_done_with_what_was_released():
    text = "SELECT town, COUNT(*) AS n FROM t GROUP BY town HAVING n > 3 ORDER BY n DESC LIMIT 2"
    assert asked(text).answer([given([4, 9, 1], 1.0)]).rows == [("south", 9), ("north", 4)]
    assert asked(text).answer([given([0, 1, 2], 1.0)]).value == {}
    text = "SELECT town, COUNT(*) AS n FROM t GROUP BY town ORDER BY 1 DESC LIMIT 2 OFFSET 1"
    assert asked(text).answer([given([4, 9, 1], 1.0)]).rows == [("nowhere", 1), ("north", 4)]


@pytest.mark.parametrize("seed", range(40))
def test_every_interval_holds_the_truth_if_every_part_does(seed):
    """Random rows, parts that are off by at most their errors: no interval of any expression misses its true value."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 400))
    rows = {
        "town": rng.choice(["north", "south", "nowhere"], n, p=[0.6, 0.39, 0.01]).tolist(),
        "sex": rng.choice(["F", "M"], n).tolist(),
        "visits": (rng.integers(-20, 81, n) / 10).tolist(),
    }
    table = dp.Table(rows, DOMAIN, name="t")
    aggregates = ["COUNT(*)", "AVG(visits)", "SUM(visits)", "VAR_POP(visits)", "STDDEV(visits)", "VAR_SAMP(visits)"]
    aggregates += ["CORR(visits, visits * visits)", "COVAR_SAMP(visits, CASE WHEN sex = 'F' THEN 1 ELSE 0 END)"]
    aggregates += [
        "COUNT(*) FILTER (WHERE sex = 'F') * 100.0 / COUNT(*)",
        "ROUND(AVG(visits), 1)",
        "SUM(visits) / 4 - 1",
    ]
    text = f"SELECT town, {', '.join(f'{each} AS v{at}' for at, each in enumerate(aggregates))} FROM t GROUP BY town"
    assembly = Assembly(parse(text, DOMAIN, table="t"), table.facts, text)
    exact, noisy = [], []
    for query in assembly.questions:
        truth = np.asarray(np.asarray(table.exact_sum(query)) * query.unit(table.facts), dtype=float)
        scale = 1 + float(np.abs(truth).max()) * rng.choice([0.001, 0.02, 0.3])
        off = rng.uniform(-1, 1, truth.shape) * scale
        exact.append(Answer(truth, 0.0, "test"))
        noisy.append(Answer(truth + off, scale, "test", errors=np.full(truth.shape, scale)))
    true, found = assembly.answer(exact), assembly.answer(noisy)
    for wanted, got, interval in zip(true.rows, found.rows, found.intervals, strict=True):
        for value, estimate, ends in list(zip(wanted, got, interval, strict=True))[1:]:
            if value is None or ends is None:
                continue
            assert ends[0] - 1e-6 <= value <= ends[1] + 1e-6, (text, value, estimate, ends)
            assert ends[0] <= estimate <= ends[1]


def test_a_session_answers_about_groups_of_nobody_too():
    rows = {"town": ["north"] * 400, "sex": ["F", "M"] * 200, "visits": [1.0] * 400}
    table = dp.Table(rows, DOMAIN, name="people")
    session = dp.Session(table, dp.Ledger.in_memory(dp.Budget(50), table), alpha=0.1)
    found = session.ask("SELECT town, COUNT(*) FROM people GROUP BY town")
    assert list(found.value) == ["north", "south", "nowhere"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT town, sex, COUNT(*) FROM t GROUP BY town, sex",
        "SELECT town, COUNT(*) AS n FROM t GROUP BY town HAVING COUNT(*) > 5 ORDER BY n DESC",
    ],
)
def test_the_groups_of_an_answer_do_not_wait_for_the_garbage_collector(text):
    """None is in a circle of references: what was made is gone when the answer is there."""
    assembly = asked(text)
    (question,) = assembly.questions
    counts = given(np.full(question.shape(DOMAIN), 9.0), 1.0)
    gc.collect()
    gc.disable()
    try:
        found = assembly.answer([counts])
        left = [each for each in gc.get_objects() if type(each).__name__ in ("_GroupNumbers", "Peers", "_Row")]
    finally:
        gc.enable()
    assert found.rows
    assert left == []


def test_a_query_is_asked_as_it_is():
    query = GroupCount([Bins("visits", (0, 50), (1, 0)), "sex"])
    assembly = Assembly(asked_directly(query, FACTS), FACTS)
    (ordered,) = assembly.questions
    assert ordered.keys == ("sex", query.keys[0])
    found = assembly.answer([given([[1, 2], [3, 4]], 1.0)])
    assert found.value == {(0, "F"): 1, (0, "M"): 3, (1, "F"): 2, (1, "M"): 4}


@pytest.mark.parametrize("bound", [1 / 3, 44.1, 44.0000004, 12.0000001, 1e-9, 2.0, 123456.7890123])
def test_no_bound_is_rounded_down(bound):
    counted = asked("SELECT COUNT(*) FROM t WHERE sex = 'F'").answer([given(10**6, bound)])
    assert bound - 1e-9 <= counted.error_bound <= bound + 2e-6
    exact = 1234567890123.37  # of more digits than a sum is shown with
    summed = asked("SELECT SUM(visits) FROM t").answer([given(exact, bound)])
    low, high = summed.intervals[0][0]
    assert low <= exact - bound * (1 - 1e-9)
    assert high >= exact + bound * (1 - 1e-9)
    assert math.isfinite(summed.error_bound)
