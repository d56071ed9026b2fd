"""Exact laws of running totals on neighbouring tables, and twins that are caught."""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet.audit.divergence import epsilon_finding
from discreet.audit.examples import half_noise_in_sums, one_epoch_price
from discreet.audit.laws import Setting, conversation_law, rows
from discreet.audit.mutants import Twin, mistake
from discreet.data import Domain, Number
from discreet.guarantee import Guarantee, Neighbours
from discreet.mechanisms import ContinualCounter
from discreet.query import Count, Sum

DOMAIN = Domain(t=Number(1, 2, step=1), v=Number(-1, 1, step=1))
COUNTER = ContinualCounter(Count(), "t", 1, 2, scale=1, resolution=2)
SUMMING = ContinualCounter(Sum("v"), "t", 1, 2, scale=1, resolution=2)


def found(counter, relation, first, second):
    setting = Setting(DOMAIN, Neighbours(relation))
    tables = [[dict(zip(("t", "v"), row, strict=True)) for row in table] for table in (first, second)]
    laws = [conversation_law(counter, (1, 2), table, setting, reach=24) for table in tables]
    return epsilon_finding(*laws, counter.guarantee(setting.facts(tables[0])))


@pytest.mark.parametrize(
    ("relation", "first", "second"),
    [
        ("add-remove", [(1, 1), (2, 1)], [(2, 1)]),
        ("add-remove", [(2, 1), (2, 1)], [(2, 1)]),
        ("replace-one", [(1, 1)], [(2, 1)]),
        ("replace-one", [(1, 1)], [(1, -1)]),
        ("replace-one", [(1, 1)], [(2, -1)]),
    ],
)
@pytest.mark.parametrize("counter", [COUNTER, SUMMING], ids=["count", "sum"])
def test_no_pair_of_neighbours_beats_the_price(counter, relation, first, second):
    assert not found(counter, relation, first, second).violates


@mistake("prices a row that changes its sign as one that goes", "price")
def price_of_one_sign(honest, facts):
    return Guarantee.of_zcdp(Fraction(5, 8), neighbours=facts.neighbours)


@pytest.mark.parametrize(
    ("honest", "wrong", "relation", "first", "second"),
    [
        (COUNTER, one_epoch_price, "add-remove", [(1, 1), (2, 1)], [(2, 1)]),
        (COUNTER, half_noise_in_sums, "replace-one", [(1, 1)], [(2, 1)]),
        (SUMMING, price_of_one_sign, "replace-one", [(1, 1)], [(1, -1)]),
    ],
)
def test_a_broken_twin_is_caught(honest, wrong, relation, first, second):
    assert found(Twin(honest, wrong), relation, first, second).violates


def test_the_rows_of_the_examples_are_read_as_written():
    assert rows(("t",), "1", "2") == ({"t": 1}, {"t": 2})
