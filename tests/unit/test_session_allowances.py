"""Sessions of many allowances: they share what was read of the ledger, and each charges its own."""

from __future__ import annotations

import pytest

import discreet as dp
from discreet.answering import Transcript
from discreet.ledger import Acting, acting_as

ROWS = {"age": [at % 90 for at in range(3000)], "sex": ["FM"[at % 2] for at in range(3000)]}
DOMAIN = dp.Domain(age=dp.Number(0, 99, step=1), sex=dp.Category("F", "M"))
COUNT = "SELECT COUNT(*) FROM people WHERE age >= 50"
NAMES = [f"a{at}" for at in range(10)]


@pytest.fixture
def table():
    return dp.Table(ROWS, DOMAIN, name="people")


@pytest.fixture
def ledger(table):
    made = dp.Ledger.in_memory(dp.Budget(1, "1e-6"), table)
    for name in NAMES:
        made.allow(name, share="1/20")
    return made


def test_each_entry_is_read_once_for_all_of_them(table, ledger, monkeypatch):
    root = dp.Session(table, ledger)
    sessions = [root.for_allowance(name) for name in NAMES]
    read, reads = [], Transcript._read_said
    monkeypatch.setattr(Transcript, "_read_said", lambda self, body: (read.append(body["seq"]), reads(self, body))[1])
    first, *others = sessions
    assert first.ask(COUNT).price > 0
    for each in others:
        assert each.ask(COUNT).price == 0
        assert each.price(COUNT) == 0
    assert len(read) == len(set(read)) == 1


def test_each_charges_its_own_allowance_and_sees_what_others_learned(table, ledger):
    root = dp.Session(table, ledger)
    one, two = (root.for_allowance(name) for name in NAMES[:2])
    assert two.price(COUNT) == one.price(COUNT) > 0
    one.ask(COUNT)
    two.ask("SELECT COUNT(*) FROM people WHERE sex = 'F' AND age < 9")
    charged = [body["allowance"] for body in ledger.entries() if body["kind"] == "charge"]
    assert charged == NAMES[:2]
    assert two.price(COUNT) == 0  # what was asked of the first after the second had looked
    assert one.budget() == two.budget()
    with pytest.raises(dp.errors.ParameterError, match="no allowance"):
        root.for_allowance("nobody")


def test_an_allowance_ends_alone(table, ledger):
    root = dp.Session(table, ledger)
    one, two = (root.for_allowance(name) for name in NAMES[:2])
    for at in range(5):
        one.ask(f"SELECT COUNT(*) FROM people WHERE age >= {at} AND sex = 'F'")
    with pytest.raises(dp.BudgetExceeded, match="'a0'"):
        one.ask("SELECT COUNT(*) FROM people WHERE age >= 9 AND sex = 'F'")
    assert two.ask("SELECT COUNT(*) FROM people WHERE age >= 70").price > 0


def test_what_is_remembered_is_free_and_reads_nothing(table, ledger):
    session = dp.Session(table, ledger)
    assert session.remembered(COUNT) is None
    told = session.ask(COUNT)
    length = ledger.length()
    assert session.remembered(COUNT).value == told.value
    assert session.remembered("SELECT COUNT(*) FROM people").source == "public"
    assert ledger.length() == length


@pytest.mark.parametrize(
    ("sql", "cells"),
    [
        (COUNT, 1),
        ("SELECT age, COUNT(*) FROM people GROUP BY age", 200),
        ("SELECT age, sex, COUNT(*) FROM people GROUP BY age, sex", 600),
        ("SELECT sex, MEDIAN(age) FROM people GROUP BY sex", 4),
    ],
)
def test_the_size_of_an_answer_is_known_before_its_price(table, ledger, sql, cells):
    assert dp.Session(table, ledger).cells(sql) == cells


def test_a_charge_names_its_actor_and_an_export_does_not(table, ledger):
    with acting_as(Acting("ana, key 1a2b3c4d", {"key": "1a2b3c4d", "request": "7f"})) as actor:
        dp.release(dp.Laplace(dp.Count(), 40), table, ledger=ledger)
    dp.release(dp.Laplace(dp.Count(), 40), table, ledger=ledger)
    one, two = (body for body in ledger.entries() if body["kind"] == "charge")
    assert (one["who"], one["by"]["request"], actor.charges) == ("ana, key 1a2b3c4d", "7f", [one["seq"]])
    assert "by" not in two
    assert two["who"] != one["who"]
    ledger.verify()
    assert "1a2b3c4d" not in "".join(ledger.export())
    assert "1a2b3c4d" in "".join(ledger.export(redact=False))


def test_an_actor_may_stop_a_charge(table, ledger):
    def stop() -> None:
        raise dp.errors.Cancelled("stopped")

    with acting_as(Acting("ana", before_charge=stop)), pytest.raises(dp.errors.Cancelled):
        dp.release(dp.Laplace(dp.Count(), 40), table, ledger=ledger)
    assert not ledger.spent().renyi
    dp.release(dp.Laplace(dp.Count(), 40), table, ledger=ledger)
