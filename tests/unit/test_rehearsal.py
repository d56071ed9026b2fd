"""Rehearsals: made-up rows, a ledger that real tables refuse; and a share of what is left."""

from __future__ import annotations

from fractions import Fraction

import pytest

import discreet as dp
from discreet.funds import price_of
from discreet.rehearsal import made_up

DOMAIN = dp.Domain(
    age=dp.Number(0, 120, step="0.5", missing=True),
    sex=dp.Category("F", "M", missing="unknown"),
    income=dp.Number.any(),
)
BUDGET = dp.Budget(1, "1e-6")


def rows(table):
    return {name: table.exact_sum(lambda batch, name=name: batch[name].sum(axis=0, keepdims=True)) for name in DOMAIN}


def test_made_up_rows_fill_the_declared_domain_and_are_the_same_every_time():
    one, other = (made_up(DOMAIN, name="people", people=5_000) for _ in range(2))
    assert one.facts == dp.data.Facts(DOMAIN, dp.Neighbours("replace-one"), 5_000, edition="1")
    assert rows(one) == rows(other)
    histogram = one.exact_sum(lambda batch: dp.Histogram("sex").partial(batch))
    assert min(histogram) > 1_400  # 5,000 / 3 each, six standard deviations below


def test_a_unit_is_made_up_too():
    table = made_up(DOMAIN, name="people", unit="person", rows_per_unit=3, people=50)
    assert table.facts.size == 50
    assert table.facts.neighbours.rows == 3
    with pytest.raises(dp.errors.SchemaError, match="declared as a column too"):
        made_up(DOMAIN, name="people", unit="age", rows_per_unit=3)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_neither_ledger_takes_the_other_s_rows(tmp_path, relation):
    pretended = made_up(DOMAIN, name="people", people=2, neighbours=relation)
    frame = {"age": [1, 2], "sex": ["F", "M"], "income": [1.0, 2.0]}
    real = dp.Table(frame, DOMAIN, name="people", neighbours=relation)
    count = dp.Laplace(dp.Count(), 10)
    for table, stranger in ((pretended, real), (real, pretended)):
        ledger = dp.Ledger.create(tmp_path / f"{table.identity.rehearsal}.ledger", BUDGET, table)
        dp.release(count, table, ledger=ledger)
        spent = ledger.spent()
        with pytest.raises(
            dp.errors.LedgerMismatch, match=r"a row of this ledger is 'made up .*'|'about a real person'"
        ):
            dp.release(count, stranger, ledger=ledger)
        with pytest.raises(dp.errors.LedgerMismatch):
            dp.Session(stranger, ledger)
        assert ledger.spent() == spent
        again = dp.Ledger.open(tmp_path / f"{table.identity.rehearsal}.ledger")
        assert again.identity.rehearsal is table.identity.rehearsal
        assert ("REHEARSAL" in repr(again)) is table.identity.rehearsal


def test_rehearsal_is_a_truth_value():
    with pytest.raises(dp.errors.ParameterError, match="rehearsal must be True or False"):
        dp.Table({"sex": ["F"]}, dp.Domain(sex=dp.Category("F")), rehearsal="yes")


# A share of what is left.


def ledger_and_table(budget=BUDGET):
    table = made_up(dp.Domain(x=dp.Number(0, 1, step="0.01"), y=dp.Category("no", "yes")), name="people")
    return dp.Ledger.in_memory(budget, table), table


@pytest.mark.parametrize("budget", [BUDGET, dp.Budget(1)])
def test_a_share_is_of_what_is_left_and_is_used_to_the_full(budget):
    ledger, table = ledger_and_table(budget)
    book = "renyi" if budget.delta else "pure"
    left = getattr(ledger.remaining(), book)
    for _ in range(3):
        dp.Mean(epsilon=dp.Share("1/3"), ledger=ledger).fit(table, "x")
        now = getattr(ledger.remaining(), book)
        assert Fraction(65, 100) * left < now < Fraction(69, 100) * left
        assert now >= left - left // 3
        left = now


def test_admits_with_a_share_is_a_price_within_that_share():
    ledger, table = ledger_and_table()
    left = ledger.remaining()
    for scale in (10, 20, 40, 80, 160):
        mechanism = dp.Laplace(dp.Count(), scale)
        price = price_of(mechanism.guarantee(table.facts), left.order)
        for part in (Fraction(1, 1000), Fraction(1, 20), Fraction(1, 4), Fraction(1)):
            fits = price.renyi <= left.renyi * part
            assert ledger.admits(mechanism, share=dp.Share(part)) is fits


@pytest.mark.parametrize("part", [0, -1, "4/3", "x", None])
def test_a_share_lies_between_nothing_and_all(part):
    with pytest.raises(dp.errors.ParameterError):
        dp.Share(part)


def test_a_share_needs_a_ledger_and_brings_its_own_delta():
    ledger, table = ledger_and_table()
    with pytest.raises(dp.errors.ParameterError, match="delta goes with a number"):
        dp.Mean(epsilon=dp.Share("1/3"), delta="1e-7", ledger=ledger).fit(table, "x")
    with pytest.raises(dp.errors.ParameterError, match="a share is of what a ledger has left: give ledger="):
        dp.Mean(epsilon=dp.Share("1/3"), bounds=(0, 1)).fit([0.5, 0.2])
    assert ledger.spent().pure == 0


# Edges.


def test_a_file_is_no_rehearsal(tmp_path):
    (tmp_path / "people.csv").write_text("sex\nF\n")
    with pytest.raises(dp.errors.ParameterError, match="a rehearsal is on made-up rows"):
        dp.Table(tmp_path / "people.csv", dp.Domain(sex=dp.Category("F")), rehearsal=True)


def test_only_looking_at_a_ledger_burns_no_charges_of_others(tmp_path, monkeypatch):
    table = made_up(DOMAIN, name="people", people=20)
    dp.Ledger.create(tmp_path / "people.ledger", BUDGET, table).close()
    burned = []
    monkeypatch.setattr("discreet.ledger.store.Store.burn_orphans", lambda store: burned.append(store))
    assert dp.Ledger.open(tmp_path / "people.ledger", look=True).budget == BUDGET
    assert burned == []
    dp.Ledger.open(tmp_path / "people.ledger")
    assert len(burned) == 1


def test_a_model_of_a_session_is_charged_under_its_allowance():
    ledger, table = ledger_and_table()
    ledger.allow("ana", share="1/100")
    session = dp.Session(table, ledger, allowance="ana")
    with pytest.raises(dp.BudgetExceeded, match="under the allowance 'ana'"):
        session.fit(dp.LogisticRegression(epsilon="0.5", delta="1e-7"), target="y")
    assert ledger.spent().renyi == 0
    model = session.fit(dp.LogisticRegression(), target="y")  # all that ana has left
    assert model.allowance == "ana"
    assert 0 < ledger.spent().renyi <= ledger.spent().caps.renyi / 100


def test_a_workload_that_was_answered_is_free_when_it_is_asked_again():
    ledger, table = ledger_and_table()
    session = dp.Session(table, ledger, alpha="0.0015")
    questions = ["SELECT y, COUNT(*) FROM people GROUP BY y", "SELECT COUNT(*) FROM people WHERE x >= 0.5"]
    first = session.answer_all(questions, share="1/50")
    spent = ledger.spent()
    assert spent.renyi > 0
    again = session.answer_all(questions, share="1/50")
    assert [answer.value for answer in again] == [answer.value for answer in first]
    assert ledger.spent() == spent
    better = session.answer_all(questions, share="1/2")
    assert max(answer.error_bound for answer in better) < max(answer.error_bound for answer in first)
