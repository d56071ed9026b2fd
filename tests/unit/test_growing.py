"""Tables that grow: which rows count, what is public, what each epoch pays, and what a ledger of epochs refuses."""

from __future__ import annotations

import itertools
import json
import random
import shutil
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.catalogue import CATALOGUE
from discreet.certificate import read_export
from discreet.data import DistinctRows, Growth
from discreet.errors import BudgetExceeded, LedgerMismatch, LedgerRolledBack, ParameterError, SchemaError
from discreet.funds import NOTHING, Price
from discreet.ledger import store
from discreet.ledger.state import Epochs
from discreet.records import record, revive

DOMAIN = dp.Domain(t=dp.Number(1, 12, step=1), v=dp.Number(0, 9, step=1), city=dp.Text())
BEFORE = Path(__file__).parents[1] / "fixtures" / "before"


def rows(seed, count=40, people=60):
    draw = random.Random(seed)
    return {
        "who": [draw.randrange(people) for _ in range(count)],
        "v": [draw.randrange(10) for _ in range(count)],
        "city": [draw.choice("xyz") for _ in range(count)],
    }


def growing(epochs=3, *, unit="who", k=2, m=1, relation="replace-one", **more):
    who = {"unit": unit, "rows_per_unit": k} if unit else {}
    parts = {t: rows(t) for t in range(1, epochs + 1)}
    given = {"column": "t", "name": "made up", "neighbours": relation, "epochs_per_unit": m, **who, **more}
    return dp.GrowingTable(parts, DOMAIN, **given)


def held(table, *columns):
    return table.exact_sum(dp.Histogram(columns)).tolist()


# Which rows count.


@pytest.mark.parametrize(("k", "m"), [*itertools.product((1, 2, 5), (1, 2, 3))])
def test_the_first_epochs_of_a_person_count_and_later_epochs_change_nothing(k, m):
    full = growing(5, k=k, m=m, relation="add-remove")
    used: dict[int, int] = {}
    expected = []
    for t in range(1, 6):
        found: dict[int, int] = {}
        for person in rows(t)["who"]:
            found[person] = found.get(person, 0) + 1
        counted = {person: min(k, times) for person, times in found.items() if used.get(person, 0) < m}
        for person in counted:
            used[person] = used.get(person, 0) + 1
        expected.append(sum(counted.values()))
    assert held(full, "t")[:5] == expected
    for epochs in range(1, 5):
        earlier = growing(epochs, k=k, m=m, relation="add-remove")
        assert held(earlier, "t", "v")[:epochs] == held(full, "t", "v")[:epochs]
    assert full.facts.neighbours.rows == k * m


def test_the_rows_of_an_epoch_are_those_of_a_table():
    parts = {1: {"v": [1, 2, 3], "city": ["x", "x", "y"]}, 2: {"v": [4, 5], "city": ["z", "y"]}}
    grown = dp.GrowingTable(parts, DOMAIN, column="t", name="made up")
    whole = dp.Table(
        {"t": [1, 1, 1, 2, 2], "v": [1, 2, 3, 4, 5], "city": ["x", "x", "y", "z", "y"]}, DOMAIN, name="made up"
    )
    for query in (dp.Sum("v"), dp.Histogram(("t", "v")), dp.Persons("t"), dp.mechanisms.KeyCount(("t", "city"))):
        one, other = (each.exact_sum(query) for each in (grown, whole))
        assert one == other if isinstance(one, dict) else (one == other).all()
    assert grown.facts.size == 5
    assert grown.over(2).facts.size == 2
    assert grown.over(2).exact_sum(dp.Sum("v")) == 9


def test_persons_are_counted_once_over_all_epochs():
    grown = growing(4, k=3, m=3, relation="add-remove")
    persons = {each for t in range(1, 5) for each in rows(t)["who"]}
    assert int(grown.exact_sum(dp.Persons())) == len(persons)


def test_a_person_who_is_taken_out_changes_one_epoch_if_persons_are_apart():
    """The premise of a budget for each epoch, by brute force over everybody."""
    parts = {t: rows(t) for t in range(1, 5)}
    full = dp.GrowingTable(
        parts, DOMAIN, column="t", name="made up", unit="who", rows_per_unit=2, neighbours="add-remove"
    )
    before = np.array(held(full, "t", "v"))
    for person in {each for part in parts.values() for each in part["who"]}:
        without = {
            t: {name: [x for x, who in zip(part[name], part["who"], strict=True) if who != person] for name in part}
            for t, part in parts.items()
        }
        less = dp.GrowingTable(
            without, DOMAIN, column="t", name="made up", unit="who", rows_per_unit=2, neighbours="add-remove"
        )
        changed = np.flatnonzero((np.array(held(less, "t", "v")) != before).any(axis=1))
        assert len(changed) == 1


def test_what_is_public_of_each_epoch():
    apart, returning, hidden = growing(3), growing(3, m=2), growing(3, relation="add-remove")
    assert sum(size for _, size, _ in apart.epoch_facts) == apart.facts.size
    assert [size for _, size, _ in returning.epoch_facts][-1] == returning.facts.size
    assert [size for _, size, _ in hidden.epoch_facts] == [None] * 3
    assert apart.facts.growth == Growth("t", ("1", "2", "3"), 1)
    assert apart.facts.growth.read == tuple((label, size) for label, size, _ in apart.epoch_facts)
    assert apart.over(2).facts.growth.read == apart.facts.growth.read[:2]
    assert hidden.over(1, 3).facts.growth.read == (("1", None), ("2", None), ("3", None))
    assert "read" not in record(apart.facts)["growth"]
    assert revive(record(apart.facts), CATALOGUE) == apart.facts
    assert "epochs 1, 2, 3" in repr(apart)
    assert "growth" not in record(dp.Table({"v": [1]}, dp.Domain(v=dp.Number(0, 1, step=1))).facts)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: dp.GrowingTable({}, DOMAIN, column="t"), "at least one epoch"),
        (lambda: dp.GrowingTable({2: rows(2), 1: rows(1)}, DOMAIN, column="t"), "in their order"),
        (lambda: dp.GrowingTable({"x": rows(1)}, DOMAIN, column="t"), "column 't'"),
        (lambda: dp.GrowingTable({1: rows(1)}, DOMAIN, column="city"), "numbers or dates"),
        (lambda: growing(2, unit=None, m=2), "unit="),
        (lambda: growing(2).over(3), "no epoch 3"),
        (lambda: growing(3, m=2).over(2), "from the first epoch on"),
    ],
)
def test_what_is_wrong_is_said(wrong, words):
    with pytest.raises(ParameterError, match=words):
        wrong()


def test_an_epoch_without_anybody_has_no_public_number():
    empty = {"v": [], "city": []}
    with pytest.raises(SchemaError, match="at least one person"):
        dp.GrowingTable({1: {"v": [1], "city": ["x"]}, 2: empty}, DOMAIN, column="t")
    hidden = dp.GrowingTable({1: {"v": [1], "city": ["x"]}, 2: empty}, DOMAIN, column="t", neighbours="add-remove")
    assert int(hidden.over(2).exact_sum(dp.Count())) == 0


# What each epoch pays.


def noisy(scale=30):
    return dp.Gaussian(dp.Count(dp.Between("v", 3, 9)), scale)


def spent(ledger, table):
    return [ledger.about(table.over(epoch).facts).spent().renyi for epoch in table.epochs]


def test_a_release_is_charged_to_the_epochs_that_it_is_about():
    table = growing(3)
    ledger = dp.Ledger.in_memory(dp.Budget(1, "1e-6"), table)
    dp.release(noisy(), table.over(1), ledger=ledger)
    one, two, three = spent(ledger, table)
    assert one > 0 == two == three
    dp.release(noisy(), table.over(1, 3), ledger=ledger)
    assert spent(ledger, table) == [2 * one, 0, one]
    assert ledger.spent().renyi == 2 * one
    assert ledger.verify(CATALOGUE) == ()


def test_all_epochs_are_charged_or_none():
    table = growing(2)
    ledger = dp.Ledger.in_memory(dp.Budget(1, "1e-6"), table)
    while ledger.about(table.over(1).facts).admits(noisy(), facts=table.facts):
        dp.release(noisy(), table.over(1), ledger=ledger)
    before = spent(ledger, table)
    with pytest.raises(BudgetExceeded):
        dp.release(noisy(), table, ledger=ledger)
    assert spent(ledger, table) == before
    assert before[1] == 0
    dp.release(noisy(), table.over(2), ledger=ledger)  # the others have theirs


def test_who_arrives_later_has_the_whole_budget_but_for_what_covers_them():
    ledger = dp.Ledger.in_memory(dp.Budget(1, "1e-6"), growing(1))
    dp.release(noisy(), growing(1), ledger=ledger)
    running = dp.Running.open(dp.Count(), growing(1), ledger, epochs=6, price="1/4")
    price = ledger.spent().caps.renyi
    ledger.add_epoch(growing(2))
    first, second = spent(ledger, growing(2))
    assert first > second
    assert 0.24 * price < second <= price / 4
    assert len(dp.Running.find(dp.Count(), growing(2), ledger).totals()) == 2
    assert dp.Running.find(dp.Sum("v"), growing(2), ledger) is None
    assert running.counter.epochs == 6


def test_persons_who_return_have_one_budget():
    table = growing(3, m=2)
    ledger = dp.Ledger.in_memory(dp.Budget(1, "1e-6"), table)
    dp.release(noisy(100), table.over(1), ledger=ledger)
    used = ledger.spent().renyi
    dp.release(noisy(100), table, ledger=ledger)
    assert ledger.spent().renyi == 2 * used > 0
    apart = growing(3)
    other = dp.Ledger.in_memory(dp.Budget(1, "1e-6"), apart)
    dp.release(noisy(100), apart.over(1), ledger=other)
    assert used == pytest.approx(4 * other.spent().renyi, rel=1e-6)  # twice the rows of a person


# What a ledger of epochs refuses.


def test_epochs_are_added_in_their_order_once_and_unchanged():
    ledger = dp.Ledger.in_memory(dp.Budget(1, "1e-6"), growing(2))
    assert ledger.epochs == ("1", "2")
    with pytest.raises(ParameterError, match="already"):
        ledger.add_epoch(growing(2))
    with pytest.raises(LedgerMismatch, match="after those"):
        ledger.add_epoch(growing(4))
    with pytest.raises(LedgerMismatch, match="no epoch 3"):
        dp.release(noisy(), growing(3), ledger=ledger)
    with pytest.raises(LedgerMismatch, match="4 rows per person"):
        dp.release(noisy(), growing(2, m=2), ledger=ledger)
    plain = dp.Table(rows(1), dp.Domain(v=DOMAIN["v"]), name="made up", unit="who", rows_per_unit=2)
    with pytest.raises(LedgerMismatch):
        dp.release(dp.Gaussian(dp.Count(), 30), plain, ledger=ledger)
    parts = {1: rows(1, count=20), 2: rows(2)}
    changed = dp.GrowingTable(parts, DOMAIN, column="t", name="made up", unit="who", rows_per_unit=2)
    with pytest.raises(LedgerMismatch, match="never changes"):
        dp.release(noisy(), changed.over(1), ledger=ledger)
    ledger.add_epoch(growing(3))
    dp.release(noisy(), growing(3), ledger=ledger)


def test_a_ledger_of_a_table_that_does_not_grow_says_how_it_could():
    table = dp.Table({"v": [1, 2]}, dp.Domain(v=DOMAIN["v"]), name="made up")
    ledger = dp.Ledger.in_memory(dp.Budget(1, "1e-6"), table)
    more = dp.Table({"v": [1, 2, 3]}, dp.Domain(v=DOMAIN["v"]), name="made up")
    with pytest.raises(LedgerMismatch, match=r"2 persons, found 3.*docs/growing.md"):
        dp.release(dp.Laplace(dp.Count(), 40), more, ledger=ledger)
    with pytest.raises(LedgerMismatch, match="does not grow"):
        ledger.add_epoch(growing(1))


def test_a_ledger_of_version_0_1_opens_verifies_and_can_grow(tmp_path):
    shutil.copytree(BEFORE, tmp_path / "before")
    for each in (tmp_path / "before").rglob("*"):
        each.chmod(0o700 if each.is_dir() else 0o600)
    ledger = dp.Ledger.open(tmp_path / "before" / "people.ledger", state_dir=tmp_path / "before" / "state")
    assert ledger.epochs == ()
    unknown = ledger.verify(CATALOGUE)
    used = ledger.spent().renyi, ledger.spent().pure
    people = json.loads((tmp_path / "before" / "people.json").read_text())
    domain = dp.Domain(
        month=dp.Date("2025-01-01", "2030-12-01", step="month"),
        age=dp.Number(0, 120, step=1),
        sex=dp.Category("f", "m"),
        smoker=dp.Category(False, True),
    )
    made = {"column": "month", "name": "people"}
    first = dp.GrowingTable({"2025-12": people}, domain, **made)
    fewer = dp.GrowingTable({"2025-12": {name: each[1:] for name, each in people.items()}}, domain, **made)
    for wrong, words in (
        (fewer, "400 persons, found 399"),
        (dp.GrowingTable({"2025-12": people}, domain, column="month", name="others"), "'others'"),
        (dp.GrowingTable({"2025-12": people}, domain, neighbours="add-remove", **made), "add-remove"),
    ):
        with pytest.raises(LedgerMismatch, match=words):
            ledger.grow(wrong)
    for wrong in ("2025-12-01", dp.GrowingTable({"2025-11": people, "2025-12": people}, domain, **made)):
        with pytest.raises(ParameterError, match="one epoch"):
            ledger.grow(wrong)
    assert ledger.epochs == ()
    assert ledger.grow(first) == "2025-12-01"
    assert ledger.epochs == ("2025-12-01",)
    assert (ledger.spent().renyi, ledger.spent().pure) == used
    again = dp.Ledger.open(tmp_path / "before" / "people.ledger", state_dir=tmp_path / "before" / "state")
    assert again.verify(CATALOGUE) == unknown
    assert again.identity.epochs == 1
    with pytest.raises(ParameterError, match="already"):
        again.grow(first)
    dp.release(dp.Laplace(dp.Count(dp.Equals("sex", "f")), 200), first, ledger=again)


def made(tmp_path, table, **more):
    return dp.Ledger.create(tmp_path / "made.ledger", dp.Budget(1, "1e-6"), table, state_dir=tmp_path / "state", **more)


# Who has paid for a row: every row is of one epoch, and every epoch before it was read.


def written(path, persons):
    pq.write_table(pa.table({"who": persons, "v": [1] * len(persons), "city": ["x"] * len(persons)}), path)
    return path


def of_files(relation="replace-one", unit="who", **epochs):
    who = {"unit": unit, "rows_per_unit": 1} if unit else {}
    files = {int(epoch.removeprefix("t")): path for epoch, path in epochs.items()}
    return dp.GrowingTable(files, DOMAIN, column="t", name="made up", neighbours=relation, **who)


def sidecar(path):
    return path.with_name(path.name + ".discreet.json")


def refused(ledger, table, words):
    """It is refused before anything is spent."""
    length = ledger.length()
    with pytest.raises(LedgerMismatch, match=words):
        dp.release(noisy(), table, ledger=ledger)
    assert ledger.length() == length


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_a_table_of_some_epochs_only_is_refused(tmp_path, relation):
    """Person 1 came in epoch 1: without that file they would be new in epoch 2, and pay there, too."""
    one, two = written(tmp_path / "1.parquet", [1, 2, 3]), written(tmp_path / "2.parquet", [4, 5])
    full = of_files(relation, t1=one, t2=two)
    ledger = made(tmp_path, full)
    refused(ledger, of_files(relation, t2=two), "is decided by all epochs before it")
    refused(ledger, DistinctRows(of_files(relation, t2=two)), "is decided by all epochs before it")
    dp.release(noisy(), full.over(2), ledger=ledger)
    dp.release(noisy(), DistinctRows(full.over(2)), ledger=ledger)
    dp.release(noisy(), of_files(relation, t1=one), ledger=ledger)


def test_earlier_epochs_that_have_other_sizes_decide_nothing(tmp_path):
    one, two = written(tmp_path / "1.parquet", [1, 2, 3]), written(tmp_path / "2.parquet", [1, 2, 4])
    three = written(tmp_path / "3.parquet", [5])
    ledger = made(tmp_path, of_files(t1=one))
    dp.release(noisy(), of_files(t1=one), ledger=ledger)
    written(one, [9])
    with pytest.raises(LedgerMismatch, match=r"1 \(3 persons\), and 1 \(1 persons\) was read"):
        ledger.add_epoch(of_files(t1=one, t2=two))
    assert ledger.epochs == ("1",)
    written(one, [1, 2, 3])
    ledger.add_epoch(of_files(t1=one, t2=two))
    ledger.add_epoch(of_files(t1=one, t2=two, t3=three))
    written(one, [1, 2])
    written(two, [4])
    refused(ledger, of_files(t1=one, t2=two, t3=three).over(2), "is decided by all epochs before it")
    refused(ledger, of_files(t1=one, t2=two, t3=three).over(3), "is decided by all epochs before it")


def test_a_file_is_one_epoch(tmp_path):
    one, two = written(tmp_path / "1.parquet", [1] * 5), written(tmp_path / "2.parquet", [2] * 5)
    (tmp_path / "link.parquet").symlink_to(one)
    for same in (one, tmp_path / "link.parquet"):
        with pytest.raises(ParameterError, match="the file of two epochs"):
            of_files(unit=None, t1=one, t2=same)
    right = of_files(unit=None, t1=one, t2=two)
    ledger = made(tmp_path, right)
    assert json.loads(sidecar(one).read_text()) == {"ledger": ledger.id, "epoch": "1"}
    swapped = of_files(unit=None, t1=two, t2=one)
    for table in (swapped.over(2), swapped.over(1), swapped, DistinctRows(swapped.over(2))):
        refused(ledger, table, "is the file of the epoch")
    dp.release(noisy(), right.over(2), ledger=ledger)
    with pytest.raises(LedgerMismatch, match="is the file of the epoch"):
        ledger.add_epoch(of_files(unit=None, t1=written(tmp_path / "x.parquet", [1] * 5), t2=two, t3=one))
    assert ledger.epochs == ("1", "2")


def test_an_epoch_that_is_refused_leaves_no_sidecar(tmp_path):
    one, other = written(tmp_path / "1.parquet", [1, 2]), written(tmp_path / "5.parquet", [7])
    ledger = made(tmp_path, of_files(t1=one))
    for wrong in (of_files(t5=other), of_files("add-remove", t1=one, t5=other), of_files(unit=None, t1=one, t5=other)):
        with pytest.raises(LedgerMismatch):
            ledger.add_epoch(wrong)
        assert not sidecar(other).exists()
    ledger.add_epoch(of_files(t1=one, t5=other))
    assert json.loads(sidecar(other).read_text()) == {"ledger": ledger.id, "epoch": "5"}


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_a_ledger_grows_from_the_epoch_of_its_own_file(tmp_path, relation):
    """Under another label the rows of its file would begin with a whole budget."""
    own, other = written(tmp_path / "12.parquet", [1] * 5), written(tmp_path / "11.parquet", [2] * 5)
    plain = dp.Domain(v=DOMAIN["v"], city=DOMAIN["city"])
    ledger = made(tmp_path, dp.Table(own, plain, name="made up", neighbours=relation))
    with pytest.raises(LedgerMismatch, match=r"11.parquet is not the file of this ledger"):
        ledger.grow(of_files(relation, None, t11=other))
    assert ledger.epochs == ()
    assert not sidecar(other).exists()
    ledger.grow(of_files(relation, None, t11=own))  # the label may be any; the file is that epoch from now on
    with pytest.raises(LedgerMismatch, match=r"12.parquet is the file of the epoch 11, found 12"):
        ledger.add_epoch(of_files(relation, None, t11=other, t12=own))
    assert not sidecar(other).exists()
    assert ledger.epochs == ("11",)
    dp.release(noisy(), of_files(relation, None, t11=own), ledger=ledger)


# Stored states, marks, exports.


def test_a_stored_state_has_the_epochs(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "FOLD_EVERY", 4)
    table = growing(3)
    ledger = made(tmp_path, table)
    running = dp.Running.open(dp.Count(), table, ledger, epochs=5, price="1/10")
    for epochs in ((1,), (2, 3), (1, 2, 3)):
        dp.release(noisy(50), table.over(*epochs), ledger=ledger)
        running.totals()
    ledger.close()
    again = dp.Ledger.open(tmp_path / "made.ledger", state_dir=tmp_path / "state")
    assert any(body["kind"] == "fold" for body in again.entries())
    assert spent(again, table) == spent(ledger, table)
    assert again.identity.epochs == 1
    assert [each.total for each in dp.Running.find(dp.Count(), table, again).totals()] == [
        each.total for each in running.totals()
    ]
    assert again.verify(CATALOGUE) == ()


@pytest.mark.parametrize("redact", [True, False])
def test_an_export_is_read_again(tmp_path, redact):
    table = growing(2)
    ledger = made(tmp_path, table)
    got = dp.release(noisy(), table, ledger=ledger)
    dp.Running.open(dp.Count(), table, ledger, epochs=3, price="1/10").totals()
    bodies, whole = read_export(ledger.export(redact=redact))
    assert whole is not redact
    assert [body["kind"] for body in bodies].count("step") == 2
    assert dp.certificate(ledger, got)


def test_an_older_copy_counts_for_every_epoch_what_its_mark_proves(tmp_path):
    table = growing(2)
    ledger = made(tmp_path, table)
    dp.release(noisy(), table.over(1), ledger=ledger)
    ledger.close()
    copy = (tmp_path / "made.ledger").read_bytes()
    again = dp.Ledger.open(tmp_path / "made.ledger", state_dir=tmp_path / "state")
    for _ in range(2):
        dp.release(noisy(), table.over(2), ledger=again)
    true = spent(again, table)
    again.close()
    for beside in tmp_path.glob("made.ledger-*"):
        beside.unlink()
    (tmp_path / "made.ledger").write_bytes(copy)
    older = dp.Ledger.open(tmp_path / "made.ledger", state_dir=tmp_path / "state")
    with pytest.raises(LedgerRolledBack):
        dp.release(noisy(), table.over(1), ledger=older)
    older.reconcile()
    assert all(now >= was for now, was in zip(spent(older, table), true, strict=True))
    assert older.verify(CATALOGUE) == ()


def test_reconciling_never_counts_less_than_anybody_spent():
    """Two copies go on after a common past; the mark has seen one of them. Random histories, by brute force."""
    draw = random.Random(4)
    for _ in range(300):
        past = Epochs(1).grown("a", None).grown("b", None)
        for _ in range(draw.randrange(4)):
            past = past.charged(Price(draw.randrange(9), None, 0), draw.choice((None, ("a",), ("b",), ("a", "b"))))
        marked = ours = past
        for _ in range(draw.randrange(4)):
            marked = marked.charged(Price(draw.randrange(9), None, 0), draw.choice((None, ("a",), ("b",))))
        for _ in range(draw.randrange(4)):
            ours = ours.charged(Price(draw.randrange(9), None, 0), draw.choice((None, ("a",), ("b",))))
        found = ours.raised(marked.spent(), past)
        for epoch in ("a", "b"):
            there, here, before = (each.spent((epoch,)).renyi for each in (marked, ours, past))
            assert found.spent((epoch,)).renyi >= there + here - before
        assert found.common.renyi >= marked.common.renyi + ours.common.renyi - past.common.renyi
    assert NOTHING.renyi == 0


# Sessions.


def session_tables(epochs):
    draw = np.random.default_rng(7)
    domain = dp.Domain(t=dp.Number(1, 12, step=1), v=dp.Number(0, 9, step=1), w=dp.Category("x", "y"))
    parts = {t: {"v": draw.integers(0, 10, 800), "w": draw.choice(["x", "y"], 800)} for t in range(1, 7)}
    return dp.GrowingTable({t: parts[t] for t in range(1, epochs + 1)}, domain, column="t", name="made_up")


QUESTIONS = [
    "SELECT COUNT(*) FROM made_up WHERE v >= 5",
    "SELECT w, COUNT(*) FROM made_up GROUP BY w",
    "SELECT SUM(v) FROM made_up WHERE w = 'x'",
    "SELECT AVG(v) FROM made_up",
    "SELECT t, COUNT(*) FROM made_up WHERE w = 'y' GROUP BY t",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_session_adds_up_what_was_measured_and_its_bounds_hold(question):
    ledger, exact = dp.Ledger.in_memory(dp.Budget(2, "1e-6"), session_tables(2)), dp.Budget(10**9)
    for epochs in (2, 3, 5):
        table = session_tables(epochs)
        for more in range(len(ledger.epochs) + 1, epochs + 1):
            ledger.add_epoch(session_tables(more))
        before = spent(ledger, table)
        known = dp.Session(table, ledger, price="2%", beta="1e-9")
        answer = known.ask(question)
        after = spent(ledger, table)
        new = epochs if epochs == 2 else {3: 1, 5: 2}[epochs]
        assert [b > a for a, b in zip(before, after, strict=True)] == [False] * (epochs - new) + [True] * new
        assert known.price(question) == 0
        truth = dp.Session(table, dp.Ledger.in_memory(exact, table), price=1, max_price=1, beta="1e-9").ask(question)
        for (cells, ends), right in zip(zip(answer.rows, answer.intervals, strict=True), truth.rows, strict=True):
            for cell, end, value in zip(cells, ends, right, strict=True):
                assert cell == value if end is None else end[0] - 1 <= value <= end[1] + 1


def test_a_condition_on_the_epoch_charges_that_epoch_alone():
    table = session_tables(4)
    ledger = dp.Ledger.in_memory(dp.Budget(1, "1e-6"), table)
    dp.Session(table, ledger).ask("SELECT COUNT(*) FROM made_up WHERE t BETWEEN 2 AND 3 AND v > 4")
    assert [each > 0 for each in spent(ledger, table)] == [False, True, True, False]


def test_an_epoch_that_the_table_does_not_have_is_empty_for_nothing():
    table = session_tables(2)
    ledger = dp.Ledger.in_memory(dp.Budget(1, "1e-6"), table)
    session = dp.Session(table, ledger)
    for asked in ("COUNT(*)", "SUM(v)"):
        question = f"SELECT {asked} FROM made_up WHERE t = 7 AND w = 'x'"
        assert session.price(question) == 0
        answer = session.ask(question)
        assert (answer.value, answer.error_bound, answer.price) == (0, 0, 0)
    grouped = session.ask("SELECT w, COUNT(*) FROM made_up WHERE t > 2 GROUP BY w")
    assert [row[1] for row in grouped.rows] == [0, 0]
    session.ask("SELECT AVG(v) FROM made_up WHERE t = 7")
    assert spent(ledger, table) == [0, 0]
    session.ask("SELECT COUNT(*) FROM made_up WHERE t = 2 OR t = 7")
    assert [each > 0 for each in spent(ledger, table)] == [False, True]


@pytest.mark.parametrize("asked", ["MEDIAN(v), QUANTILE(v, 0.9)", "SUM(v), MEDIAN(v)"])
def test_a_question_of_several_charges_is_paid_by_all_epochs_or_not_at_all(asked):
    table = session_tables(2)
    ledger = dp.Ledger.in_memory(dp.Budget(1, "1e-6"), table)
    dp.Session(table.over(1), ledger, price="98.5%", max_price=1).ask("SELECT COUNT(*) FROM made_up WHERE v > 3")
    before = spent(ledger, table)
    with pytest.raises(BudgetExceeded):
        dp.Session(table, ledger, price="2%").ask(f"SELECT {asked} FROM made_up")
    assert spent(ledger, table) == before


def test_quantiles_models_and_synthetic_rows_are_about_all_epochs_in_one():
    table = session_tables(3)
    ledger = dp.Ledger.in_memory(dp.Budget(1, "1e-6"), table)
    session = dp.Session(table, ledger, price="5%")
    assert 0 <= session.ask("SELECT MEDIAN(v) FROM made_up").value <= 9
    assert len(set(spent(ledger, table))) == 1
    model = session.fit(dp.LogisticRegression(epsilon=dp.Share("1/5")), target="w", features=["v"])
    assert model.predict is not None
    assert len(session.synthetic(20, share="1/10")) == 20
    assert len(set(spent(ledger, table))) == 1
    with pytest.raises(ParameterError, match="with its ledger"):
        dp.LogisticRegression(epsilon=1, delta="1e-6").fit(table, "w", features=["v"])


def test_a_session_about_epochs_knows_nothing_of_others():
    """What was measured about January says nothing about February."""
    table = session_tables(2)
    ledger = dp.Ledger.in_memory(dp.Budget(1, "1e-6"), table)
    dp.Session(table.over(1), ledger).ask(QUESTIONS[0])
    other = dp.Session(table.over(2), ledger)
    assert other.price(QUESTIONS[0]) > 0
    assert dp.Session(table.over(1), ledger).price(QUESTIONS[0]) == 0


# Schemas.

SCHEMA = """
name = "visits"
data = "months/{epoch}.parquet"
ledger = "visits.ledger"
each_row_is_a_person = true
[epochs]
column = "month"
[columns.month]
kind = "date"
low = 2026-01-01
high = 2030-12-01
step = "month"
[columns.v]
kind = "number"
low = 0
high = 9
step = 1
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("{epoch}", "all", "each epoch has one file"),
        ("{epoch}.parquet", "{epoch}", "each epoch has one file"),
        ('name = "visits"', 'name = "visits"\nengine = "spark"', "without engine"),
        ('data = "', 'data = "s3a://', "which this process reads"),
        ('[epochs]\ncolumn = "month"\n', "", r"add \[epochs\]"),
        ('column = "month"', 'column = "year"', "one of the declared"),
        ('column = "month"', 'column = "month"\nper_person = 2', "need unit"),
        ('column = "month"', 'column = "month"\nper_person = 0', "per_person"),
        ('column = "month"', 'column = "month"\nper_year = 1', "per_year"),
        ('name = "visits"', 'name = "visits"\nedition = "2"', "neither size nor edition"),
        ('name = "visits"', 'name = "visits"\nsize = 5', "neither size nor edition"),
    ],
)
def test_a_schema_says_what_is_wrong_with_its_epochs(tmp_path, old, new, words):
    (tmp_path / "visits.toml").write_text(SCHEMA.replace(old, new))
    with pytest.raises(SchemaError, match=words):
        dp.Schema.read(tmp_path / "visits.toml")


def test_a_schema_finds_the_file_of_an_epoch_and_says_what_is_promised(tmp_path):
    (tmp_path / "visits.toml").write_text(SCHEMA)
    schema = dp.Schema.read(tmp_path / "visits.toml")
    assert schema.epoch_labels(["2026-02", "2026-03-01"]) == ["2026-02-01", "2026-03-01"]
    assert schema._file_of("2026-02-01") == tmp_path / "months" / "2026-02.parquet"
    assert "however many epochs follow" in schema.protects()
    assert schema.growing_identity.epochs == 1
    with pytest.raises(ParameterError, match="no epoch yet"):
        schema.grown([])
    made_up = schema.rehearsal(900)
    assert made_up.epochs == ("2026-01-01", "2026-02-01", "2026-03-01")
    assert made_up.identity.rehearsal
    assert Fraction(made_up.facts.size, 3) == 300


# An epoch that never came.


def with_epochs(epochs, *, relation, m):
    given = {"column": "t", "name": "made up", "neighbours": relation, "epochs_per_unit": m}
    return dp.GrowingTable({t: rows(t) for t in epochs}, DOMAIN, unit="who", rows_per_unit=2, **given)


@pytest.mark.parametrize(("relation", "m"), [*itertools.product(("replace-one", "add-remove"), (1, 2))])
def test_a_running_total_goes_on_over_an_epoch_that_never_came(relation, m):
    """Nobody is in it on any neighbour, since epochs come in their order: its step adds noise alone."""
    two = with_epochs((1, 2), relation=relation, m=m)
    ledger = dp.Ledger.in_memory(dp.Budget(10**9, "1e-6"), two)
    query = dp.Count(dp.Between("v", 3, 9))
    running = dp.Running.open(query, two, ledger, epochs=6, price="1/2")
    assert [each.epoch for each in running.totals()] == ["1", "2"]  # 3 may still come
    before = list(ledger.entries())
    five = with_epochs((1, 2, 5), relation=relation, m=m)
    ledger.add_epoch(five)
    charged = [body["kind"] for body in list(ledger.entries())[len(before) :]]
    found = dp.Running.find(query, five, ledger).totals()
    assert [each.epoch for each in found] == ["1", "2", "3", "4", "5"]
    exact = [int(five.over(*five.epochs[:some]).exact_sum(query)) for some in (1, 2, 2, 2, 3)]
    for each, true in zip(found, exact, strict=True):
        assert abs(each.total - true) <= each.error_bound < 1
    assert "charge" not in charged
    assert [body["kind"] for body in ledger.entries()].count("charge") == 1
    with pytest.raises(LedgerMismatch):  # the epoch that was passed by does not come any more
        ledger.add_epoch(with_epochs((1, 2, 3), relation=relation, m=m))
    with pytest.raises(LedgerMismatch):
        ledger.add_epoch(with_epochs((1, 2, 3, 5, 6), relation=relation, m=m))
    with pytest.raises(ParameterError, match="these rows are of the epochs"):  # 6 may still come
        dp.Running.find(query, five, ledger)._answer("6")
    assert dp.Running.find(query, five, ledger).totals() == found


def test_a_table_that_leaves_an_epoch_out_is_no_table_in_which_it_never_came():
    """An epoch that the ledger has is not taken for empty: its rows would count nowhere."""
    whole = with_epochs((1, 2, 3), relation="replace-one", m=1)
    ledger = dp.Ledger.in_memory(dp.Budget(10**9, "1e-6"), whole)
    dp.Running.open(dp.Count(), whole, ledger, epochs=6, price="1/2")
    some = with_epochs((1, 3), relation="replace-one", m=1)
    with pytest.raises(LedgerMismatch, match="epochs"):
        dp.Running.find(dp.Count(), some, ledger).totals()
