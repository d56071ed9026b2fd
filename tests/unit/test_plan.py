"""Plans as a whole: every kind says something, rows stand in order, and a share of a ledger is what a charge may be."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

import discreet as dp
from discreet.data import Identity, Number
from discreet.funds import caps_of
from discreet.plan import KINDS, Plan

BUDGET = dp.Budget(1, 1e-6)
NUMBERS = {
    "bits": 8,
    "candidates": 20,
    "cells": 16,
    "conditions": 10,
    "d": 3,
    "each": 10,
    "hypotheses": 50,
    "k": 2,
    "marginals": 4,
    "percent": 25,
    "questions": 20,
    "rows": 1000,
}


def numbers_of(kind: str) -> dict[str, int]:
    takes = KINDS[kind].numbers
    return {name: NUMBERS[name] for name in takes if not (name == "cells" and "bits" in takes)}


def book(budget=BUDGET, relation="replace-one", size=5000) -> dp.Ledger:
    table = dp.Table({"v": ["a"] * size}, dp.Domain(v=dp.Category("a", "b")), neighbours=relation, name="people")
    return dp.Ledger.in_memory(budget, table)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_rows_each_with_a_theorem_or_a_reason(kind, relation):
    found = dp.plan(kind, budget=BUDGET, neighbours=relation, size=50_000, **numbers_of(kind))
    assert found.rows
    for row in found.rows:
        promises = row.error is not None or row.needed is not None
        assert promises != bool(row.refusal)
        assert row.theorem or row.refusal
    usable = [row.needed if kind == "interior" else row.error for row in found.promising if not row.imagined]
    assert usable == sorted(usable)
    assert str(found).startswith(f"{kind}: (epsilon 1, delta 1e-06), {relation}")


def test_what_can_only_be_imagined_stands_after_what_can_be_run():
    rows = dp.plan("box", budget=BUDGET, d=3, bits=20, alpha=0.1).promising
    assert [row.imagined for row in rows] == [False] * (len(rows) - 1) + [True]
    assert rows[-1].needed == min(row.needed for row in rows)


@pytest.mark.parametrize("kind", ["count", "sum", "average"])
def test_single_numbers_promise_the_range_of_their_noise(kind):
    rows = {row.method: row for row in dp.plan(kind, budget=dp.Budget(1), size=1000, alpha=0.01).rows}
    laplace = rows["Laplace"]
    assert float(laplace.noise) == pytest.approx(1, rel=1e-5)  # one person moves it by 1 at most
    persons = laplace.error * (1000 if kind == "average" else 1)
    assert 2.9 < persons <= 3  # ln 20
    assert laplace.needed == math.ceil(persons * 100)
    assert "delta > 0" in rows["Gaussian"].refusal


def test_an_average_needs_a_public_size():
    for row in dp.plan("average", budget=BUDGET, neighbours="add-remove", size=1000).rows:
        assert "private under add-remove" in row.refusal
    with pytest.raises(dp.errors.ParameterError, match="size=, or alpha="):
        dp.plan("average", budget=BUDGET)


def test_keys_are_shown_from_a_number_of_rows_on():
    (row,) = dp.plan("keys", budget=BUDGET, neighbours="add-remove", size=1000).rows
    facts = dp.data.Facts(dp.Domain(it=dp.Category("no", "yes")), dp.Neighbours("add-remove"), None)
    known = dp.mechanisms.StableHistogram.of(dp.mechanisms.KeyCount("it"), epsilon=1, delta=1e-6, facts=facts)
    assert row.error == known.bound == 14
    assert f"if it has {known.certain_count(0.05)} rows" in row.assuming
    assert "delta > 0" in dp.plan("keys", budget=dp.Budget(1)).rows[0].refusal


# A share of what is left.


def admitted(ledger, found: Plan, part) -> list[bool]:
    """Whether the ledger would admit each row's mechanism, where it can be priced for a column called `it`."""
    domains = {
        "count": dp.Domain(it=dp.Category("no", "yes")),
        "histogram": dp.Domain(it=Number(0, 15, step=1)),
        "select": dp.Domain(it=Number(0, 19, step=1)),
        "sum": dp.Domain(it=Number(0, 1, step=Fraction(1, 2**20))),
        "keys": dp.Domain(it=dp.Category("no", "yes")),
        "threshold": dp.Domain(it=dp.Category("no", "yes")),
        "vector": dp.Domain(it=dp.Vector(3, norm=1)),
        "bounds": dp.Domain(x=Number(0, 255, step=1)),
    }
    facts = dp.data.Facts(domains[found.kind], ledger.identity.neighbours, found.size)
    return [ledger.admits(row.mechanism, facts=facts, share=dp.Share(part)) for row in found.promising]


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("kind", ["count", "histogram", "select", "sum", "keys", "threshold", "vector", "bounds"])
def test_what_is_planned_with_a_share_is_what_the_ledger_admits_for_that_share_and_for_no_less(kind, relation):
    ledger = book(relation=relation)
    dp.release(
        dp.Gaussian(dp.Count(), 40),
        dp.Table({"v": ["a"] * 5000}, ledger.facts.domain, neighbours=relation, name="people"),
        ledger=ledger,
    )
    found = dp.plan(kind, ledger=ledger, share="1/3", **numbers_of(kind))
    assert found.promising
    assert found.neighbours.kind == relation
    assert all(admitted(ledger, found, "1/3"))
    assert not any(admitted(ledger, found, "0.3"))
    assert "1/3 of what is left for 'people' (Renyi divergence" in str(found)


LONG = ("box", "linear", "logistic", "median", "questions")


@pytest.mark.parametrize(
    "kind", [pytest.param(each, marks=pytest.mark.slow) if each in LONG else each for each in KINDS]
)
def test_every_kind_can_be_planned_with_a_share_and_less_of_it_promises_no_more(kind):
    ledger = book(size=20_000)
    whole, half = (dp.plan(kind, ledger=ledger, share=part, **numbers_of(kind)) for part in (1, "1/2"))
    assert "all of what is left" in str(whole)
    better = {row.method: row for row in whole.promising}
    for row in half.promising:
        for name in ("error", "needed"):
            if getattr(row, name) is not None:
                assert getattr(better[row.method], name) <= getattr(row, name)


def test_a_learner_planned_with_a_share_fits_for_that_share_and_promises_the_same():
    table = dp.Table({"x": [0.25, 0.75] * 2500}, dp.Domain(x=Number(0, 1, step=Fraction(1, 2**20))), name="people")
    ledger = dp.Ledger.in_memory(BUDGET, table)
    planned = {row.method: row for row in dp.plan("mean", ledger=ledger, share="1/4").rows}
    fitted = dp.Mean(epsilon=dp.Share("1/4"), method="gaussian", ledger=ledger).fit(table, "x")
    assert planned["gaussian"].mechanism.scale == fitted.mechanism_.scale
    assert planned["gaussian"].error == pytest.approx(fitted.promise_.bound)


def test_a_box_planned_with_a_share_is_the_one_that_is_learned_for_it():
    domain = dp.Domain(x=Number(0, 255, step=1), y=dp.Category("-", "+"))
    rows = {
        "x": [each % 256 for each in range(4000)],
        "y": ["+" if 40 < each % 256 < 200 else "-" for each in range(4000)],
    }
    table = dp.Table(rows, domain, name="people")
    ledger = dp.Ledger.in_memory(BUDGET, table)
    planned = {row.method: row for row in dp.plan("box", ledger=ledger, share="1/4", d=1, bits=8).rows}
    learned = dp.BoxClassifier(epsilon=dp.Share("1/4"), ledger=ledger, classes=None, method="zcdp").fit(table, "y")
    assert planned["zcdp"].alpha == pytest.approx(learned.promise_.bound)


def test_a_share_of_a_ledger_without_delta_counts_pure_epsilons():
    ledger = book(dp.Budget(1))
    rows = {row.method: row for row in dp.plan("count", ledger=ledger, share="1/4").rows}
    assert float(rows["Laplace"].noise) == pytest.approx(4, rel=1e-5)
    assert "delta > 0" in rows["Gaussian"].refusal
    assert "pure epsilon 0.25" in str(dp.plan("count", ledger=ledger, share="1/4"))


def test_nothing_left_promises_nothing():
    ledger = book()
    _, caps = caps_of(BUDGET, Fraction(1, 2))
    spends_all = dp.calibrate(lambda scale: dp.Gaussian(dp.Count(), scale), funds=ledger.funds(), facts=ledger.facts)
    table = dp.Table({"v": ["a"] * 5000}, ledger.facts.domain, name="people")
    dp.release(spends_all, table, ledger=ledger)
    left = ledger.remaining()
    assert left.renyi < caps.renyi / 1000
    found = dp.plan("count", ledger=ledger, share=1, size=5000)
    assert all(row.refusal or row.error > 300 for row in found.rows)


def test_the_size_is_the_ledgers_own_unless_another_is_named():
    ledger = book(size=700)
    assert dp.plan("count", ledger=ledger).size == 700
    assert dp.plan("count", ledger=ledger, size=900).size == 900
    unknown = dp.Ledger.in_memory(BUDGET, Identity("people", dp.Neighbours("add-remove"), None))
    assert dp.plan("count", ledger=unknown).size is None


BAD = {
    "neither": (lambda: dp.plan("count"), "budget must be a Budget"),
    "both": (lambda: dp.plan("count", budget=BUDGET, ledger=book()), "not both"),
    "no ledger": (lambda: dp.plan("count", ledger="people.ledger"), "must be a Ledger"),
    "another relation": (lambda: dp.plan("count", ledger=book(), neighbours="add-remove"), "counts replace-one"),
    "more than all": (lambda: dp.plan("count", ledger=book(), share=2), "at most 1"),
    "a number too many": (lambda: dp.plan("questions", budget=BUDGET, k=3), "takes questions=, bits=, cells="),
}


@pytest.mark.parametrize("name", BAD)
def test_wrong_arguments_are_named(name):
    act, says = BAD[name]
    with pytest.raises(dp.errors.ParameterError, match=says):
        act()
