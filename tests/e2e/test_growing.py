"""Twelve months of files, from outside: cohorts of new people, and people who return.

The truth lies in the bounds; no person is charged more than was promised, which an accounting of this test's own says;
a process that is killed leaves the epochs charged together or not at all; steps are taken once, in their order.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.catalogue import CATALOGUE
from discreet.ledger.state import Epochs
from discreet.mechanisms.continual import column_norm, root_coefficients
from tests.e2e.growing_worker import QUERY, table

ROOT = Path(__file__).parents[2]
MONTHS = [f"2026-{month:02d}" for month in range(1, 13)]
LABELS = [f"{month}-01" for month in MONTHS]
SURGERY = "SELECT COUNT(*) FROM visits WHERE ward = 'surgery'"
STAYS = "SELECT SUM(days) FROM visits"
SURE = ("--beta", "1e-6")  # the rate of false alarms of the bounds that are asserted here

SCHEMA = """
name = "visits"
data = "months/{epoch}.parquet"
ledger = "visits.ledger"
neighbours = "RELATION"
WHO

[epochs]
column = "month"
per_person = MOST

[columns.month]
kind = "date"
low = 2026-01-01
high = 2030-12-01
step = "month"

[columns.ward]
kind = "category"
levels = ["surgery", "other"]

[columns.days]
kind = "number"
low = 0
high = 30
step = 1
"""


def write(folder: Path, *, most: int, relation: str, unit: bool = True, people: int = 9000) -> dict[str, pa.Table]:
    """A schema and twelve months of visits by people some of whom return; the file of each month."""
    draw, made = np.random.default_rng(5), {}
    (folder / "months").mkdir()
    for place, month in enumerate(MONTHS):
        rows = 2500 + 40 * place
        made[month] = pa.table(
            {
                "person": draw.integers(0, people, rows),
                "ward": np.where(draw.random(rows) < 0.4, "surgery", "other"),
                "days": np.minimum(30, draw.poisson(4, rows)),
            }
        )
        pq.write_table(made[month], folder / "months" / f"{month}.parquet")
    who = 'unit = "person"\nrows_per_unit = 1' if unit else "each_row_is_a_person = true"
    text = SCHEMA.replace("RELATION", relation).replace("WHO", who).replace("MOST", str(most))
    (folder / "visits.toml").write_text(text)
    return made


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DISCREET_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "110")
    return tmp_path


def kept(made, most):
    """The rows that count, by a slow rule of this test's own: of a person one row in each of the first epochs.

    Which row of an epoch is discreet's choice; so only the numbers of rows and persons are said.
    """
    used: dict[int, int] = {}
    persons = []
    for month in made:
        there = {each for each in made[month]["person"].to_pylist() if used.get(each, 0) < most}
        for each in there:
            used[each] = used.get(each, 0) + 1
        persons.append(there)
    return persons


def answered(run, question, *options):
    code, out, err = run("ask", "visits.toml", question, "--json", *SURE, *options)
    assert (code, err) == (0, "")
    return json.loads(out)


def totals(run, question, *options):
    code, out, err = run("running", "visits.toml", question, "--json", *SURE, *options)
    assert (code, err) == (0, "")
    return json.loads(out)["totals"]


def spent_by_person(ledger):
    """What the persons of each epoch were charged in the Renyi book: every entry is looked at, and nothing else."""
    about, most, spent, everybody = {}, None, {}, 0
    for body in ledger.entries():
        if body["kind"] == "open":
            most = body["identity"]["epochs"]
        elif body["kind"] == "facts":
            about[body["facts_hash"]] = body["facts"]["growth"]["epochs"]
        elif body["kind"] == "epoch":
            spent[body["epoch"]] = 0
        elif body["kind"] == "charge":
            if body.get("lasting") or most > 1:
                everybody += body["price"]["renyi"]
            else:
                for epoch in about[body["facts_hash"]]:
                    spent[epoch] += body["price"]["renyi"]
    return {epoch: everybody + own for epoch, own in spent.items()}


@pytest.mark.parametrize(
    ("relation", "months"),
    [("replace-one", 4), ("add-remove", 4), pytest.param("replace-one", 12, marks=pytest.mark.slow)],
)
def test_months_of_new_people(here, run, relation, months):
    """Each epoch has its own budget; a question about all months charges those that are new."""
    made = write(here, most=1, relation=relation)
    truth = kept(made, 1)
    assert run("ledger", "create", "visits.toml", "--epsilon", "1", "--delta", "1e-6")[0] == 0
    code, _, err = run("ask", "visits.toml", SURGERY)
    assert (code, "no epoch yet" in err) == (2, True)
    seen, labels = [], LABELS[:months]
    for place, month in enumerate(MONTHS[:months]):
        code, out, err = run("ledger", "add", "visits.toml", month)
        assert (code, err) == (0, "")
        assert (f"{len(truth[place]):,} persons" in out) == (relation == "replace-one")
        rows = dp.Schema.read("visits.toml").table()
        exact = int(rows.exact_sum(dp.Count(dp.Equals("ward", "surgery"))))
        assert int(rows.exact_sum(dp.Count())) == sum(map(len, truth[: place + 1]))
        found = answered(run, SURGERY)
        assert abs(found["value"] - exact) <= found["error_bound"]
        assert found["price"]["nano"] > 0
        assert answered(run, SURGERY)["price"]["nano"] == 0  # the same again is free
        seen.append((found["error_bound"], exact))
        running = totals(run, SURGERY, *(() if place else ("--epochs", "12", "--price", "30%", "--yes")))
        assert len(running) == place + 1
        for each, (_, so_far) in zip(running, seen, strict=True):
            assert abs(each["total"] - so_far) <= each["error_bound"]
    assert running[-1]["error_bound"] < seen[-1][0] / 2  # what a counter is for
    assert [each["epoch"] for each in running] == labels
    ledger = dp.Ledger.open("visits.ledger")
    cap, spent = ledger.spent().caps.renyi, spent_by_person(ledger)
    assert set(spent) == set(labels)
    assert max(spent.values()) <= 0.32 * cap  # 30 % for the counter, and 1 % in the month in which they came
    assert ledger.spent().renyi == max(spent.values())
    assert ledger.verify(CATALOGUE) == ()
    shown = json.loads(run("ledger", "show", "visits.toml", "--json")[1])
    assert [each["epoch"] for each in shown["epochs"]] == labels
    assert all(each["used"] == pytest.approx(spent[each["epoch"]] / cap) for each in shown["epochs"])
    assert "each has a budget of its own" in run("ledger", "show", "visits.toml")[1]
    # A model over all months, and a question about one of them: charged to those that it is about.
    before = spent_by_person(ledger)
    march = answered(run, "SELECT COUNT(*) FROM visits WHERE month = '2026-03-01' AND days > 5")
    after = spent_by_person(ledger)
    assert [epoch for epoch in labels if after[epoch] > before[epoch]] == ["2026-03-01"]
    rows = dp.Schema.read("visits.toml").table()
    where = dp.And(dp.Equals("month", "2026-03-01"), dp.Between("days", 6, 30))
    assert abs(march["value"] - int(rows.exact_sum(dp.Count(where)))) <= march["error_bound"]
    if relation == "add-remove":  # a model needs a number of persons
        return
    assert run("fit", "visits.toml", "logistic", "--target", "ward", "--features", "days", "--share", "1/5")[0] == 0
    fitted = spent_by_person(dp.Ledger.open("visits.ledger"))
    assert all(fitted[epoch] > after[epoch] for epoch in labels)
    assert max(fitted.values()) <= cap


def test_twelve_months_of_people_who_return(here, run):
    """One budget, and the price counts all epochs of a person; rows beyond them are left out, first come."""
    made = write(here, most=3, relation="add-remove", people=2500)
    truth = kept(made, 3)
    assert max(sum(person in month for month in truth) for person in truth[0]) == 3
    assert sum(map(len, truth)) < sum(len(set(made[month]["person"].to_pylist())) for month in MONTHS)
    assert run("ledger", "create", "visits.toml", "--epsilon", "1", "--delta", "1e-6")[0] == 0
    before = None
    for place, month in enumerate(MONTHS):
        assert run("ledger", "add", "visits.toml", month)[0] == 0
        terms = () if place else ("--epochs", "12", "--price", "25%", "--yes")
        running = totals(run, STAYS, *terms)
        rows = dp.Schema.read("visits.toml").table()
        by_month = rows.exact_sum(dp.Histogram("month"))[:12].tolist()
        assert by_month[: place + 1] == [len(each) for each in truth[: place + 1]]
        assert abs(running[-1]["total"] - int(rows.exact_sum(dp.Sum("days")))) <= running[-1]["error_bound"]
        if before is not None:  # what was kept stays
            assert (rows.exact_sum(dp.Histogram(("month", "days")))[:place] == before[:place]).all()
        before = rows.exact_sum(dp.Histogram(("month", "days")))
    found = answered(run, SURGERY)
    exact = int(rows.exact_sum(dp.Count(dp.Equals("ward", "surgery"))))
    assert abs(found["value"] - exact) <= found["error_bound"]
    ledger = dp.Ledger.open("visits.ledger")
    spent = spent_by_person(ledger)
    assert len(set(spent.values())) == 1
    assert max(spent.values()) == ledger.spent().renyi <= ledger.spent().caps.renyi
    assert ledger.verify(CATALOGUE) == ()
    assert rows.facts.neighbours.rows == 3
    assert "the first 3 of a person count" in run("ledger", "show", "visits.toml")[1]


def person_moves(counter, rows, person_rows):
    """The squared length by which a person moves the sums that a counter releases."""
    root = root_coefficients(counter.epochs, counter.resolution)
    added = np.zeros(counter.epochs, dtype=int)
    for month, days in person_rows:
        added[LABELS.index(month)] += days
    moved = [sum(root[i - j] * int(added[j]) for j in range(i + 1)) for i in range(counter.epochs)]
    return sum(each * each for each in moved)


def test_no_person_moves_a_running_total_by_more_than_is_paid_and_a_twin_without_the_rule_is_caught(here, monkeypatch):
    """Every person of the files, with all rows at their most, against what the counter is priced for."""
    made = write(here, most=2, relation="add-remove", people=600)
    schema = dp.Schema.read("visits.toml")
    counter = dp.ContinualCounter(dp.Sum("days"), "month", "2026-01", 12, scale=100)

    def worst(rows):
        persons: dict[int, list[tuple[str, int]]] = {}
        for each, label in zip(rows._held, LABELS, strict=True):
            for person in each.persons.tolist():
                persons.setdefault(person, []).append((label, 30))
        return max(person_moves(counter, rows, mine) for mine in persons.values())

    rows = schema.grown(MONTHS)
    paid = 30 * 30 * column_norm(12, counter.resolution, 2)
    price = counter.guarantee(rows.facts).renyi[3] / 2  # order 2
    assert price == pytest.approx(float(paid / (2 * (counter.scale * counter.resolution) ** 2)), rel=1e-9)
    assert 0 < worst(rows) <= paid
    from discreet.data import growing

    read = growing._read
    monkeypatch.setattr(growing, "_read", lambda domain, identity, epochs, most: read(domain, identity, epochs, 99))
    assert worst(schema.grown(MONTHS)) > paid
    assert made


# No adversary makes a person pay more than the promise.


def attacked(budget, seed, steps=60):
    """Random charges about random epochs, epochs added on the way; the most that a person was charged of the cap."""
    draw = random.Random(seed)
    domain = dp.Domain(t=dp.Number(1, 12, step=1), v=dp.Number(0, 9, step=1))

    def rows(epochs):
        return dp.GrowingTable({t: {"v": [t, 1]} for t in range(1, epochs + 1)}, domain, column="t", name="made up")

    there = 2
    ledger = dp.Ledger.in_memory(budget, rows(2), testing=True)
    for _ in range(steps):
        if there < 8 and draw.random() < 0.15:
            there += 1
            ledger.add_epoch(rows(there))
        now = rows(there)
        try:
            if draw.random() < 0.2:
                counter = dp.ContinualCounter(dp.Count(), "t", 1, 12, scale=draw.choice((20, 40)))
                dp.converse(counter, now, ledger=ledger)
            else:
                some = draw.sample(now.epochs, draw.randrange(1, there + 1))
                noise = draw.choice((8, 15, 30))
                dp.release(dp.Gaussian(dp.Count(), noise), now.over(*some), ledger=ledger)
        except dp.BudgetExceeded:
            continue
    return max(spent_by_person(ledger).values()) / ledger.spent().caps.renyi


@pytest.mark.parametrize("seed", range(6))
def test_no_sequence_of_charges_takes_a_person_beyond_the_promise(seed):
    assert 0.8 < attacked(dp.Budget(1, "1e-6"), seed) <= 1


def forgets_the_others(self, price, epochs):
    """Charges one epoch of those that a release is about."""
    return honest_charge(self, price, None if epochs is None else epochs[-1:])


def forgets_later_people(self, epochs=None):
    """Counts what everybody pays for as nothing."""
    return honest_spent(Epochs(self.per_person, dp.funds.NOTHING, self.own, self.sizes), epochs)


honest_charge, honest_spent = Epochs.charged, Epochs.spent


@pytest.mark.parametrize(("name", "twin"), [("charged", forgets_the_others), ("spent", forgets_later_people)])
def test_the_search_finds_a_person_who_pays_too_much_under_a_planted_rule(monkeypatch, name, twin):
    monkeypatch.setattr(Epochs, name, twin)
    assert max(attacked(dp.Budget(1, "1e-6"), seed) for seed in range(6)) > 1


# Killed processes.


def test_a_killed_process_leaves_the_epochs_charged_together_or_not_at_all(here):
    write(here, most=1, relation="replace-one")
    schema = dp.Schema.read("visits.toml")
    rows = schema.grown(MONTHS[:3])
    ledger = dp.Ledger.create("visits.ledger", dp.Budget(1, "1e-6"), rows)
    dp.Running.open(QUERY, rows, ledger, epochs=6, price=Fraction(1, 10))
    for month in MONTHS[3:6]:
        ledger.add_epoch(schema.grown([*ledger.epochs, month]))
    ledger.close()
    notes, draw = here / "received", random.Random(3)
    command = [sys.executable, "-m", "tests.e2e.growing_worker", str(here), str(notes)]
    with subprocess.Popen(command, cwd=ROOT, stdin=-1, stdout=-1, text=True, env=os.environ) as worker:
        for _ in range(10):
            assert worker.stdin
            assert worker.stdout
            worker.stdin.write(json.dumps({"working": draw.randrange(1, 12_000)}) + "\n")
            worker.stdin.flush()
            assert worker.stdout.readline() == "done\n"
            again = dp.Ledger.open("visits.ledger")
            assert again.verify(CATALOGUE) == ()
            spent = spent_by_person(again)
            assert spent[LABELS[0]] == spent[LABELS[1]] >= spent[LABELS[2]] == spent[LABELS[5]]
            again.close()
    ledger = dp.Ledger.open("visits.ledger")
    received = [json.loads(line) for line in notes.read_text().splitlines() if line.endswith("}")]
    answers = {body["charge"]: body for body in ledger.entries() if body["kind"] == "answer"}
    assert all(each["entry"] in answers for each in received if each["kind"] == "release")
    said: dict[str, set[float]] = {}
    for each in received:
        if each["kind"] == "total":
            said.setdefault(each["epoch"], set()).add(each["value"])
    assert all(len(values) == 1 for values in said.values())  # an epoch has one total, whoever asks
    running = dp.Running.find(QUERY, table(here, ledger), ledger)
    assert running is not None
    final = {each.epoch: each.total for each in running.totals()}
    assert len(final) == 6
    assert all(said[epoch] == {final[epoch]} for epoch in said)
    assert len(said) > 2


# What changes, and what does not.


def test_a_month_that_was_added_never_changes_and_comes_once_in_its_order(here, run):
    made = write(here, most=1, relation="replace-one", unit=False)
    assert run("ledger", "create", "visits.toml", "--epsilon", "1", "--delta", "1e-6")[0] == 0
    for month in MONTHS[:2]:
        assert run("ledger", "add", "visits.toml", month)[0] == 0
    assert run("ledger", "add", "visits.toml", MONTHS[1])[0] == 2  # it is there
    code, _, err = run("ledger", "add", "visits.toml", "2027-05")
    assert (code, "there is no file" in err) == (2, True)
    assert run("ledger", "add", "visits.toml", MONTHS[3])[0] == 0  # a month may be left out,
    assert run("ledger", "add", "visits.toml", MONTHS[2])[0] in (1, 2)  # and does not come later
    spent = dp.Ledger.open("visits.ledger").spent().renyi
    january = here / "months" / "2026-01.parquet"
    pq.write_table(made["2026-01"].slice(0, 2400), january)
    code, _, err = run("ask", "visits.toml", SURGERY)
    assert (code, "a closed epoch never changes" in err) == (1, True)
    assert dp.Ledger.open("visits.ledger").spent().renyi == spent
    pq.write_table(made["2026-01"], january)
    assert run("ask", "visits.toml", SURGERY)[0] == 0


def test_a_ledger_of_before_goes_on_as_one_that_grows(here, run):
    """32,561 persons and then more: no longer the end."""
    made = write(here, most=1, relation="replace-one", unit=False)
    text = (here / "visits.toml").read_text()
    fixed = text.replace("{epoch}", "2026-01").replace('[epochs]\ncolumn = "month"\nper_person = 1\n', "")
    fixed = fixed[: fixed.index("[columns.month]")] + fixed[fixed.index("[columns.ward]") :]
    (here / "before.toml").write_text(fixed)
    assert run("ledger", "create", "before.toml", "--epsilon", "1", "--delta", "1e-6")[0] == 0
    assert run("ask", "before.toml", SURGERY, "--price", "5%")[0] == 0
    used = dp.Ledger.open("visits.ledger").spent().renyi
    january = here / "months" / "2026-01.parquet"
    pq.write_table(pa.concat_tables([made["2026-01"], made["2026-02"]]), january)
    code, _, err = run("ask", "before.toml", SURGERY)
    assert (code, "docs/growing.md" in err) == (1, True)
    pq.write_table(made["2026-01"], january)
    assert run("ledger", "grow", "visits.toml", "2026-01", "--yes")[0] == 0
    assert run("ledger", "add", "visits.toml", "2026-02")[0] == 0
    found = answered(run, SURGERY)
    rows = dp.Schema.read("visits.toml").table()
    exact = int(rows.exact_sum(dp.Count(dp.Equals("ward", "surgery"))))
    assert abs(found["value"] - exact) <= found["error_bound"]
    ledger = dp.Ledger.open("visits.ledger")
    january, february = (ledger.about(rows.over(month).facts).spent().renyi for month in MONTHS[:2])
    assert january > february > 0
    assert january - february == used
    assert ledger.verify(CATALOGUE) == ()
    assert run("ask", "before.toml", SURGERY)[0] == 1


def test_a_rehearsal_of_a_table_that_grows_spends_nothing(here, run):
    write(here, most=1, relation="replace-one")
    assert run("ledger", "create", "visits.toml", "--epsilon", "1", "--delta", "1e-6")[0] == 0
    code, out, _ = run("ask", "visits.toml", SURGERY, "--rehearse")
    assert code == 0
    assert all(line.startswith("rehearsal | ") for line in out.splitlines())
    assert dp.Ledger.open("visits.ledger").spent().renyi == 0


def test_a_rule_about_another_level_is_rehearsed_in_the_epochs_of_the_ledger(here, run):
    write(here, most=1, relation="replace-one")
    assert run("ledger", "create", "visits.toml", "--epsilon", "1", "--delta", "1e-6")[0] == 0
    assert run("ledger", "add", "visits.toml", MONTHS[0])[0] == 0
    wanted = ("--target", "ward", "--positive", "surgery", "--features", "days", "--share", "1/3", "--rehearse")
    code, out, err = run("learn", "visits.toml", "rule", *wanted)
    assert (code, err) == (0, "")
    assert "ward = surgery where" in out


def test_a_wrong_beta_of_a_running_total_is_refused_before_anything_is_paid(here, run):
    write(here, most=1, relation="replace-one")
    assert run("ledger", "create", "visits.toml", "--epsilon", "1", "--delta", "1e-6")[0] == 0
    assert run("ledger", "add", "visits.toml", MONTHS[0])[0] == 0
    code, _, err = run("running", "visits.toml", SURGERY, "--epochs", "3", "--price", "5%", "--beta", "2", "--yes")
    assert (code, "--beta" in err) == (2, True)
    assert dp.Ledger.open("visits.ledger").spent().renyi == 0


def test_the_file_of_a_month_belongs_to_one_ledger(here, run):
    write(here, most=1, relation="replace-one")
    assert run("ledger", "create", "visits.toml", "--epsilon", "1", "--delta", "1e-6")[0] == 0
    assert run("ledger", "add", "visits.toml", MONTHS[0])[0] == 0
    other = (here / "visits.toml").read_text().replace("visits.ledger", "other.ledger")
    (here / "other.toml").write_text(other)
    assert run("ledger", "create", "other.toml", "--epsilon", "1", "--delta", "1e-6")[0] == 0
    code, _, err = run("ledger", "add", "other.toml", MONTHS[0])
    assert (code, "belongs to another ledger" in err) == (1, True)
