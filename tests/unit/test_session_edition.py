"""A session learns only from releases about the edition of the rows that it answers about."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import pytest

import discreet as dp
from discreet.answering.adaptive import MANNER
from discreet.answering.generalization import Disclosures
from discreet.answering.transcript import SEVERAL
from discreet.answering.workload import Marginals
from discreet.catalogue import CATALOGUE
from discreet.errors import LedgerMismatch, ParameterError, SchemaError
from discreet.ledger import charging
from discreet.records import canonical, digest, record, revive
from discreet.rng import SeededRng
from discreet.schema import Schema

SIGNED = dp.Domain(x=dp.Number(-1, 1, step=1))
AGES = dp.Domain(age=dp.Number(0, 9, step=1))
OLD = dp.data.Facts(AGES, dp.Neighbours("add-remove"), 1000)
GROUPS = "SELECT age, COUNT(*) FROM people GROUP BY age"
ONE = "SELECT COUNT(*) FROM people WHERE age = 1"


def people(rows, edition="1", domain=AGES, column="age", relation="add-remove", size=1000):
    return dp.Table({column: rows}, domain, name="people", neighbours=relation, size=size, edition=edition)


def book(table, epsilon=100, delta=1e-6):
    return dp.Ledger.in_memory(dp.Budget(epsilon, delta), table, testing=True)


def asking(table, ledger, **terms):
    return dp.Session(table, ledger, **({"alpha": 0.05, "beta": 0.01, "rng": SeededRng(7)} | terms))


# Records.


def test_facts_without_an_edition_are_recorded_as_they_were_before_there_were_editions():
    found = record(OLD)
    assert set(found) == {"name", "domain", "neighbours", "size"}
    assert revive(found, CATALOGUE) == OLD
    assert digest(found) == "58e29f687b70d61bc133ea402b28730aff4273cb2e3b352beed952993ac3ee55"


@pytest.mark.parametrize("edition", ["1", "2026-11", "1/2", "\\odd", "März 2026"])
def test_an_edition_comes_back_from_the_record(edition):
    facts = people([1] * 9, edition).facts
    assert facts.edition == edition
    assert revive(record(facts), CATALOGUE) == facts
    assert canonical(record(facts)) != canonical(record(OLD))


def test_tables_have_an_edition_and_arrays_have_none():
    assert people([1]).facts.edition == "1"
    assert dp.Matrix([[0.5]], features=dp.Vector(1, norm=1)).facts.edition is None


@pytest.mark.parametrize("wrong", ["", 5, True, "two\nlines", "x" * 101, b"1"])
def test_an_edition_that_is_no_short_line_of_text_is_refused(wrong):
    with pytest.raises(ParameterError, match="edition"):
        people([1], wrong)


# What does not teach.


@pytest.mark.parametrize(("rows", "bounds"), [([1] * 500, (-1, 1)), ([9, 10, 11] * 300, (9, 11))])
def test_an_estimator_fitted_on_an_array_teaches_a_session_nothing(rows, bounds):
    table = people([1] * 1000, domain=SIGNED, column="x", relation="replace-one", size=None)
    ledger = book(table)
    dp.Mean(epsilon=5, delta=1e-7, bounds=bounds, step=1, ledger=ledger, size=1000).fit(rows)
    session = asking(table, ledger)
    answer = session.ask("SELECT SUM(x) FROM people")
    assert answer.price > 0
    assert abs(answer.value - 1000) <= answer.error_bound
    average = session.ask("SELECT AVG(x) FROM people")
    assert abs(average.value - 1) <= average.error_bound


def test_a_grown_table_of_a_new_edition_is_not_answered_from_what_it_was():
    before = people([1] * 1000)
    ledger = book(before)
    asking(before, ledger).ask(GROUPS)
    spent = ledger.spent().renyi
    after = people([1] * 5000, "2")
    answer = asking(after, ledger).ask(ONE)
    assert answer.price > 0
    assert abs(answer.value - 5000) <= answer.error_bound
    assert ledger.spent().renyi == spent + answer.price  # the same people: what was released before still counts
    assert asking(before, ledger).ask(ONE).price == 0  # and the first edition is still known


def test_a_corrected_table_of_equal_length_is_not_answered_from_the_cache():
    before = people([1] * 1000, relation="replace-one", size=None)
    ledger = book(before)
    assert asking(before, ledger).ask(ONE).value > 900
    after = people([2] * 1000, "corrected", relation="replace-one", size=None)
    answer = asking(after, ledger).ask(ONE)
    assert (answer.source, answer.value < 100) == ("direct", True)


def test_medians_and_workloads_of_another_edition_are_not_remembered():
    before, after = people([1] * 1000), people([8] * 1000, "2")
    ledger = book(before)
    median = "SELECT MEDIAN(age) FROM people"
    assert asking(before, ledger).ask(median).value == 1
    asking(before, ledger).answer_all([GROUPS], share=Fraction(1, 9))
    found = asking(after, ledger).ask(median)
    assert (found.value, found.price > 0) == (8, True)
    [groups] = asking(after, ledger).answer_all([GROUPS], share=Fraction(1, 9))
    assert groups.price > 0
    assert groups.value[8] > 900
    assert asking(after, ledger).ask(median).price == 0


def test_synthetic_rows_follow_the_edition_that_is_asked_about():
    before, after = people([1] * 1000), people([8] * 1000, "2")
    ledger = book(before)
    asking(before, ledger).ask(GROUPS)
    charges = len([body for body in ledger.entries() if body["kind"] == "charge"])
    assert len(asking(after, ledger).synthetic(10)) == 10  # nothing is known about these rows: tables are chosen
    assert len([body for body in ledger.entries() if body["kind"] == "charge"]) == charges + 1


def test_entries_without_an_edition_teach_nothing():
    """Ledgers written before there were editions: what they measured cannot be told apart."""
    table = people([1] * 1000)
    unlabelled = people([1] * 1000, None)
    ledger = book(unlabelled)
    dp.release(dp.Gaussian(dp.Histogram("age"), 5), unlabelled, ledger=ledger, rng=SeededRng(1))
    assert asking(table, ledger).ask(GROUPS).price > 0


def test_a_session_about_rows_without_an_edition_is_refused_before_anything_is_spent():
    table = people([1] * 1000, None)
    ledger = book(table)
    with pytest.raises(ParameterError, match="no edition"):
        asking(table, ledger)
    assert ledger.spent().renyi == 0


# What does.


def test_a_release_on_the_owners_own_table_teaches():
    table = people([1] * 1000)
    ledger = book(table)
    dp.release(dp.Gaussian(dp.Histogram("age"), 5), table, ledger=ledger, rng=SeededRng(1))
    answer = asking(table, ledger).ask(GROUPS)
    assert (answer.price, answer.source) == (0, "hypothesis")


def test_another_declaration_of_the_same_edition_still_teaches_and_of_another_does_not():
    wider = dp.Domain(age=AGES["age"], more=dp.Category("a", "b"))
    rows = {"age": [1] * 1000, "more": ["a"] * 1000}
    table = people([1] * 1000)
    ledger = book(table)
    asking(table, ledger).ask(GROUPS)
    how = {"name": "people", "neighbours": "add-remove", "size": 1000}
    assert asking(dp.Table(rows, wider, **how), ledger).ask(GROUPS).price == 0
    assert asking(dp.Table(rows, wider, edition="2", **how), ledger).ask(GROUPS).price > 0


# What is counted on.


def test_places_count_over_editions_so_that_one_beta_covers_all():
    ledger = book(people([1] * 1000), epsilon=10**6)
    orders = []
    for edition in "abc":
        table = people([1] * 1000, edition)
        session = asking(table, ledger)
        session.ask(GROUPS)
        session.answer_all([ONE, GROUPS], share=Fraction(1, 20))
        session.ask("SELECT MEDIAN(age) FROM people")
        transcript = session._answering().transcript
        transcript.catch_up()
        orders.append(transcript.places)
    assert all(one + 1 + 2 * SEVERAL <= other for one, other in pairwise(orders))


def test_a_threshold_of_another_edition_is_not_asked():
    before, after = people([1] * 1000), people([1] * 1000, "2")
    ledger = book(before)
    asking(before, ledger, alpha=0.2)
    conversation = asking(before, ledger, alpha=0.2)._answering().calibration.threshold(1)
    talk = dp.converse(conversation, before, ledger=ledger, memo=MANNER, rng=SeededRng(3))
    here, there = (asking(each, ledger, alpha=0.2)._answering().transcript for each in (before, after))
    for each in (here, there):
        each.catch_up()
    assert here.open_run is not None
    assert there.open_run is None
    assert (here.runs, there.runs) == (1, 1)
    with pytest.raises(LedgerMismatch, match="facts"):
        dp.reopen(conversation, after, charge=talk.charge, ledger=ledger, rng=SeededRng(3))


def test_a_request_id_of_another_edition_gives_no_stored_answer():
    before, after = people([1] * 1000), people([1] * 1000, "2")
    ledger = book(before)
    count = dp.Laplace(dp.Count(), 5)
    dp.release(count, before, ledger=ledger, request="january", rng=SeededRng(1))
    with pytest.raises(ParameterError, match="other facts"):
        dp.release(count, after, ledger=ledger, request="january", rng=SeededRng(1))


def test_a_bound_for_the_population_is_not_stated_from_another_edition():
    how = {"relation": "replace-one", "size": None}
    before, after = people([1] * 1000, **how), people([1] * 1000, "2", **how)
    ledger = book(before)
    asking(before, ledger).ask(ONE)
    session = asking(after, ledger, sample=True)
    heard = Disclosures(ledger, after.facts, session._answering().transcript, CATALOGUE)
    assert heard.at(1).nats == float("inf")


@pytest.mark.parametrize("method", ["pmw", "lecture"])
def test_one_beta_covers_a_program_over_all_declarations_and_editions(method):
    """A program promises k answers and T thresholds with one beta; a new declaration does not start it again."""
    rows = {"a": ["x", "y"] * 5000, "b": ["x", "y"] * 5000}
    domain = dp.Domain(a=dp.Category("x", "y"), b=dp.Category("x", "y"))
    turned = dp.Domain(a=dp.Category("y", "x"), b=dp.Category("x", "y"))
    tables = [
        dp.Table(rows, domain, name="people"),
        dp.Table(rows, turned, name="people"),
        dp.Table(rows, domain, name="people", edition="2"),
    ]
    ledger = book(tables[0], epsilon=10**4)
    terms = {"alpha": 0.2, "beta": 0.05, "questions": 4, "method": method}
    asked = []
    for table in tables:
        session = asking(table, ledger, **terms)
        session.ask("SELECT COUNT(*) FROM people WHERE a = 'x'")
        asked.append(session._answering().asked)
        runs = session._answering().transcript.runs
    assert asked == [1, 2, 3]
    assert runs == 3
    session.ask("SELECT COUNT(*) FROM people WHERE b = 'x'")
    with pytest.raises(dp.errors.ConversationOver, match="made for 4 questions"):
        session.ask("SELECT COUNT(*) FROM people WHERE a = 'x' AND b = 'x'")


# The schema.


def test_a_schema_declares_an_edition_and_has_one_by_default(tmp_path):
    text = 'name = "p"\neach_row_is_a_person = true\n[columns.a]\nkind = "category"\nlevels = ["x", "y"]\n'
    plain, labelled = tmp_path / "plain.toml", tmp_path / "labelled.toml"
    plain.write_text(text)
    labelled.write_text('edition = "2026-11"\n' + text)
    assert Schema.read(plain).edition == "1"
    found = Schema.read(labelled)
    (tmp_path / "rows.csv").write_text("a\nx\ny\n")
    assert found.edition == found.table(tmp_path / "rows.csv").facts.edition == "2026-11"
    assert found.rehearsal(10).facts.edition == "2026-11"
    labelled.write_text("edition = 2026\n" + text)
    with pytest.raises(SchemaError, match="edition"):
        Schema.read(labelled)


def test_a_certificate_names_the_edition():
    from discreet.certificate import certificate

    table = people([1] * 1000, "2026-11")
    ledger = book(table)
    got = dp.release(dp.Laplace(dp.Count(), 5), table, ledger=ledger, rng=SeededRng(1))
    said = certificate(ledger, got.entry).record
    assert said["edition"] == "2026-11"


def test_what_others_measure_between_a_median_and_its_charge_widens_its_bound(monkeypatch):
    table = people([1] * 1000)
    ledger = book(table)
    session = asking(table, ledger)
    charge = charging.charge

    def raced(book, purchase, **more):
        monkeypatch.setattr(charging, "charge", charge)
        for seed in range(50):
            dp.release(dp.Laplace(dp.Count(), 500), table, ledger=ledger, rng=SeededRng(seed))
        return charge(book, purchase, **more)

    monkeypatch.setattr(charging, "charge", raced)
    answer = session.ask("SELECT MEDIAN(age) FROM people")
    assert answer.ranks == math.inf  # the outer draws were made for an earlier place: nothing is claimed of them
    assert answer.intervals == [((0.0, 9.0),)]


def test_a_workload_charged_before_this_one_widens_its_bounds(monkeypatch):
    table = people([1] * 1000)
    quiet = asking(table, book(table)).answer_all([ONE], share=Fraction(1, 10**6))
    ledger = book(table)
    session = asking(table, ledger)
    charge = charging.charge

    def raced(book, purchase, **more):
        monkeypatch.setattr(charging, "charge", charge)
        for seed in range(90):
            other = Marginals([dp.Count()], [500])
            dp.release(other, table, ledger=ledger, rng=SeededRng(seed))
        return charge(book, purchase, **more)

    monkeypatch.setattr(charging, "charge", raced)
    raced_bound = session.answer_all([ONE], share=Fraction(1, 10**6))[0].error_bound
    assert raced_bound > quiet[0].error_bound
