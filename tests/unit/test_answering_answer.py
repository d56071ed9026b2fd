"""What is made of given numbers: an average's bound has the errors of both its parts, every group is there, and no
bound is rounded down."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import discreet as dp
from discreet.answering.answer import Answer, plain, put_together, quotient
from discreet.sql import Select

DOMAIN = dp.Domain(
    town=dp.Category("north", "south", "nowhere"),
    sex=dp.Category("F", "M"),
    visits=dp.Number(-2, 8, step="0.1"),
)
FACTS = dp.data.Facts(DOMAIN, dp.Neighbours("replace-one"), 1000)


def given(value, bound, source="direct", price=1):
    return Answer(np.array(value), bound, source, price, missed=False)


def average(total, count):
    return quotient(dp.Sum("visits"), total, count, FACTS)


@pytest.mark.parametrize("total", [0.0, 130.0, -47.3, 390.0])
@pytest.mark.parametrize(("off_total", "off_count"), [(0.0, 6.0), (25.0, 0.0), (25.0, 6.0), (3.0, 11.5)])
def test_an_average_is_within_its_bound_wherever_sum_and_count_are_within_theirs(total, off_total, off_count):
    count = 50
    found = average(given(total, off_total), given(count, off_count))
    errors = [
        min(max((total + a * off_total) / (count + b * off_count), -2.0), 8.0) - found.value
        for a, b in itertools.product(np.linspace(-1, 1, 21), repeat=2)
    ]
    assert max(map(abs, errors)) <= found.error_bound
    assert found.error_bound <= max(map(abs, errors)) * (1 + 1e-9) + 1e-9  # and no more: the ends are attained
    if total and off_count:
        assert found.error_bound > average(given(total, off_total), given(count, 0.0)).error_bound
    if off_total:
        assert found.error_bound > average(given(total, 0.0), given(count, off_count)).error_bound


def test_an_average_over_a_count_that_may_be_nothing_has_no_bound():
    assert math.isinf(average(given(4.0, 1.0), given(5, 5.0)).error_bound)
    assert math.isfinite(average(given(4.0, 1.0), given(5, 4.999)).error_bound)


def test_an_average_costs_and_names_both_of_its_parts():
    found = average(given(4.0, 1.0, "cache", 3), given(5, 1.0, "direct", 4))
    assert (found.price, found.source) == (7, "cache and direct")


@pytest.mark.parametrize("columns", [("town",), ("town", "sex"), ("sex", "town")])
def test_every_group_of_the_domain_is_there_also_those_of_nobody(columns):
    """Which groups are empty is private: a group that were left out would say so."""
    (asked,), make = put_together(Select("count", groups=columns), FACTS)
    counts = np.zeros([len(DOMAIN[name].levels) for name in asked.columns])
    counts.ravel()[0] = 7
    found = make([given(counts.astype(int), 3.0)])
    levels = list(itertools.product(*(DOMAIN[name].levels for name in columns)))
    assert list(found.value) == [each[0] if len(each) == 1 else each for each in levels]
    assert sorted(found.value.values()) == [*[0] * (len(levels) - 1), 7]
    assert set(found.fraction) == set(found.value)
    assert len(found.frame("pyarrow")) == len(levels)


def test_a_session_answers_about_groups_of_nobody_too():
    rows = {"town": ["north"] * 400, "sex": ["F", "M"] * 200, "visits": [1.0] * 400}
    table = dp.Table(rows, DOMAIN, name="people")
    session = dp.Session(table, dp.Ledger.in_memory(dp.Budget(50), table), alpha=0.1)
    found = session.ask("SELECT town, COUNT(*) FROM people GROUP BY town")
    assert list(found.value) == ["north", "south", "nowhere"]


@pytest.mark.parametrize("bound", [1 / 3, 44.1, 44.0000004, 12.0000001, 1e-9, 2.0, 123456.7890123])
def test_no_bound_is_rounded_down(bound):
    counted = plain(dp.Count(), dp.Count(), given(10, bound), FACTS)
    assert bound <= counted.error_bound <= bound + 1e-6
    exact = 1234567890123.37  # of more digits than a sum is shown with
    summed = plain(dp.Sum("visits"), dp.Sum("visits"), given(exact, bound), FACTS)
    assert abs(summed.value - exact) + bound <= summed.error_bound * (1 + 1e-15)
    for people in (7, 1000):
        whole = quotient(dp.Sum("visits"), given(people * bound / 1e6, 0.0), given(people, 0.0), FACTS)
        assert abs(whole.value - min(bound / 1e6, 8)) <= whole.error_bound + 1e-15
