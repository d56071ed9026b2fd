"""Several tables about the same persons with one ledger: who is a person, what a join holds, and that nothing mixes."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

import discreet as dp
from discreet import example
from discreet.answering import ask_unknown_keys, keys_price
from discreet.catalogue import CATALOGUE
from discreet.data import DistinctRows
from discreet.errors import LedgerMismatch, ParameterError, SchemaError
from discreet.query import KeyCount, Persons
from discreet.rng import SeededRng

PEOPLE = dp.Domain(age=dp.Number(0, 9, step=1), kind=dp.Category("x", "y"))
VISITS = dp.Domain(paid=dp.Number(0, 9, step=1), kind=dp.Category("x", "y"), city=dp.Text())


def people(**how):
    rows = {"person": ["a", "b", "c", "c"], "age": [1, 2, 3, 3], "kind": ["x", "y", "x", "x"]}
    return dp.Table(rows, PEOPLE, **{"name": "people", "unit": "person", "rows_per_unit": 1, **how})


def visits(**how):
    rows = {"who": ["a", "a", "a", "b", "z"], "paid": [1, 1, 1, 4, 9], "kind": list("xxxyy"), "city": list("oooxx")}
    return dp.Table(rows, VISITS, **{"name": "visits", "unit": "who", "rows_per_unit": 2, **how})


def total(view, query):
    return np.asarray(view.exact_sum(query)).tolist()


@pytest.mark.parametrize(("persons", "size", "rows", "visitors"), [("people", 3, 3, 2), (None, 4, 4, 3)])
def test_who_is_a_person_and_which_rows_count(persons, size, rows, visitors):
    database = dp.Database([people(), visits()], persons=persons)
    assert (database.size, database.tables) == (size, ("people", "visits"))
    assert total(database.view("people"), dp.Count()) == 3
    assert total(database.view("visits"), dp.Count()) == rows
    assert total(database.view("visits"), Persons()) == visitors
    joined = database.view(("people", "visits"))
    assert joined is database.view(["visits", "people"])
    assert total(joined, dp.Count()) == 3
    assert total(joined, dp.Sum("age")) == 1 + 1 + 2
    assert total(joined, Persons("age")) == [0, 1, 1, 0, 0, 0, 0, 0, 0, 0]
    assert joined.facts.domain.names == ("paid", "visits.kind", "city", "age", "people.kind")
    assert database.column(("visits", "people"), "people", "kind") == "people.kind"
    assert database.column(("visits", "people"), "people", "age") == "age"
    assert all(view.facts.size == size for view in (joined, database.view("visits"), database.view("people")))


def test_the_relation_of_each_view_and_what_is_public():
    database = dp.Database([people(), visits()], persons="people")
    assert database.view("people").facts.neighbours == dp.Neighbours("replace-one", 1)
    assert Persons().public(database.view("people").facts) == 3
    for names in ("visits", ("visits", "people")):
        facts = database.view(names).facts
        assert facts.neighbours == dp.Neighbours("replace-one", 2)
        assert Persons().public(facts) is None  # somebody may have no visit
    alone = dp.Database([people(), visits()])
    assert alone.view("people").facts.neighbours == dp.Neighbours("replace-one", 2)  # somebody may be no row of people
    assert Persons().public(alone.view("people").facts) is None
    assert dp.Database([people()]).view("people").facts.neighbours == dp.Neighbours("replace-one", 1)
    assert Persons().public(visits().facts) == 3
    assert Persons(where=dp.Equals("kind", "x")).public(visits().facts) is None
    hidden = dp.Database([people(), visits()], neighbours="add-remove", persons="people", size=10)
    assert (hidden.size, hidden.view("people").facts.neighbours) == (10, dp.Neighbours("add-remove", 1))
    assert Persons().public(hidden.view("people").facts) is None


def test_an_empty_table_is_a_table_of_a_database():
    nobody = dp.Table(
        {"who": [], "paid": [], "kind": [], "city": []},
        VISITS,
        neighbours="add-remove",
        name="visits",
        unit="who",
        rows_per_unit=2,
    )
    database = dp.Database([people(), nobody], neighbours="replace-one", persons="people")
    for names in ("visits", ("visits", "people")):
        assert total(database.view(names), dp.Count()) == 0
        assert total(database.view(names), Persons("kind" if names == "visits" else "people.kind")) == [0, 0]
        assert not database.view(names).exact_sum(KeyCount("city"))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: dp.Database([]), "at least one table"),
        (lambda: dp.Database([people(), people()]), "different names"),
        (lambda: dp.Database([people(unit=None, rows_per_unit=None)]), "must say whose a row is"),
        (lambda: dp.Database([people(), "visits"]), "made of Tables"),
        (lambda: dp.Database([people(), visits()], persons="visits"), "one row per person"),
        (lambda: dp.Database([people(), visits()], persons="nobody"), "there is no table 'nobody'"),
        (lambda: dp.Database([people(), visits(neighbours="add-remove")]), "one neighbour relation"),
        (lambda: dp.Database([people(), visits(rehearsal=True)]), "all real or made up"),
        (lambda: dp.Database([people(), visits()], neighbours="swap"), "swap"),
        (lambda: dp.Database([people(), visits()], size=77), "size=77 is not the number of persons"),
        (lambda: dp.Database([people(), visits()]).view(("visits", "visits")), "with itself"),
        (lambda: dp.Database([people(), visits()]).view("visit"), "Did you mean 'visits'"),
        (lambda: dp.Database([people(), visits()]).view(()), "at least one table"),
        (lambda: dp.Database([visits(), visits(name="more")]).view(("visits", "more")), "both have several rows"),
    ],
)
def test_what_is_no_database_and_no_join_is_refused(make, says):
    with pytest.raises((ParameterError, SchemaError), match=says):
        make()


def test_private_rows_stay():
    database = dp.Database([people(), visits()], persons="people")
    for thing in (database, database.view("visits")):
        assert "'a'" not in repr(thing)
        for leave in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="cannot be pickled or copied"):
                leave(thing)


def test_sums_from_distinct_rows_are_those_of_the_view():
    database = dp.Database([people(), visits()], persons="people")
    for names in ("people", "visits", ("visits", "people")):
        view = database.view(names)
        rows = DistinctRows(view)
        queries = [dp.Count(), Persons(), dp.Histogram(view.facts.domain.names[0]), dp.Count()]
        assert [total(rows, query) for query in queries] == [total(view, query) for query in queries]


# The ledger.


@pytest.fixture
def clinic(tmp_path):
    """The bundled people and made-up visits, with a ledger."""
    schema = dp.DatabaseSchema.read(example.write_clinic(tmp_path))
    database = schema.database()
    return database, dp.Ledger.create(tmp_path / "clinic.ledger", dp.Budget(2, 1e-6), database, state_dir=tmp_path)


def test_one_ledger_for_all_tables_claims_all_files_and_records_what_each_entry_is_about(clinic, tmp_path):
    database, ledger = clinic
    assert {path.name for path in tmp_path.glob("*.discreet.json")} == {
        "visits.parquet.discreet.json",
        "clinic_people.parquet.discreet.json",
    }
    for names in ("people", "visits", ("visits", "people")):
        dp.release(dp.Gaussian(dp.Count(), 50), database.view(names), ledger=ledger)
        dp.release(dp.Gaussian(Persons(), 50), database.view(names), ledger=ledger)
    again = dp.Ledger.open(tmp_path / "clinic.ledger", state_dir=tmp_path)
    assert again.verify(CATALOGUE) == ()
    assert again.identity == database.identity
    about = [again.facts_with(each["facts_hash"]).table for each in again.entries() if each["kind"] == "charge"]
    assert about == ["people", "people", "visits", "visits", "visits join people", "visits join people"]
    five, one = (
        [each["price"]["renyi"] for each in again.entries() if each["kind"] == "charge"][place] for place in (2, 0)
    )
    assert five == pytest.approx(25 * one, rel=1e-6)  # five rows of a person in one count
    for entry in (each["seq"] for each in again.entries() if each["kind"] == "charge"):
        certificate = dp.certificate(again, entry)
        assert certificate.record["schema"]["table"] in about


def test_other_tables_are_refused(clinic):
    _, ledger = clinic
    with pytest.raises(LedgerMismatch, match="the database of this ledger is 'clinic', found 'people'"):
        dp.release(dp.Gaussian(dp.Count(), 50), people(), ledger=ledger)
    other = dp.Database([people(), visits()], persons="people", name="clinic")
    with pytest.raises(LedgerMismatch):
        dp.release(dp.Gaussian(dp.Count(), 50), other.view("people"), ledger=ledger)
    alone = dp.Ledger.in_memory(dp.Budget(1), people())
    with pytest.raises(LedgerMismatch):
        dp.release(dp.Laplace(dp.Count(), 50), dp.Database([people()], name="people").view("people"), ledger=alone)


def test_a_database_may_get_more_tables(tmp_path):
    before = dp.Database([people()], persons="people", name="both")
    ledger = dp.Ledger.in_memory(dp.Budget(9), before)
    after = dp.Database([people(), visits()], persons="people", name="both")
    assert dp.release(dp.Laplace(dp.Count(), 5), after.view("visits"), ledger=ledger).entry
    with pytest.raises(LedgerMismatch, match="the table 'visits' of this ledger"):
        dp.release(dp.Laplace(dp.Count(), 5), before.view("people"), ledger=dp.Ledger.in_memory(dp.Budget(9), after))


def test_two_tables_that_are_declared_alike_are_never_taken_for_each_other():
    """The same domain, relation, size and edition: only the table's name tells them apart."""
    domain = dp.Domain(v=dp.Category("x", "y"))

    def one(name, level):
        rows = {"p": range(4000), "v": [level] * 4000}
        return dp.Table(rows, domain, name=name, unit="p", rows_per_unit=1, neighbours="add-remove")

    database = dp.Database([one("first", "x"), one("second", "y")], size=4000)
    ledger = dp.Ledger.in_memory(dp.Budget(2, 1e-6), database, testing=True)
    session = dp.Session(database, ledger, alpha=0.05, rng=SeededRng(1))
    question = "SELECT COUNT(*) FROM {} WHERE v = 'x'"
    first, second = (session.ask(question.format(name)) for name in ("first", "second"))
    assert first.value > 3700
    assert second.value < 300
    assert (first.source, second.source) == ("direct", "direct")
    again = dp.Session(database, ledger, alpha=0.05, rng=SeededRng(2))
    assert [again.ask(question.format(name)).value for name in ("first", "second")] == [first.value, second.value]
    assert again.on("first").ask(dp.Count(dp.Equals("v", "x"))).source == "cache"


def test_a_session_of_a_database_asks_each_of_its_tables(clinic):
    database, ledger = clinic
    session = dp.Session(database, ledger, alpha=0.05)
    assert session.ask("SELECT COUNT(*) FROM people").source == "public"
    truth = total(database.view("visits"), dp.Count(dp.Equals("emergency", "yes")))
    answer = session.ask("SELECT COUNT(*) FROM visits WHERE emergency = 'yes'")
    assert abs(answer.value - truth) <= answer.error_bound
    assert answer.unit == "rows"
    joined = session.on("visits", "people").ask(dp.Histogram("sex", dp.Between("day", "1977-01-01", "1978-12-31")))
    assert set(joined.value) == {"F", "M"}
    assert session.price("SELECT COUNT(*) FROM visits WHERE emergency = 'yes'") == 0
    session.check("SELECT COUNT(*) FROM people WHERE age > 40")
    together = [f"SELECT COUNT(*) FROM people WHERE age > {age}" for age in (10, 20, 30)]
    assert len(session.answer_all(together, share="1/10")) == 3
    with pytest.raises(ParameterError, match="about one table"):
        session.answer_all([together[0], "SELECT COUNT(*) FROM visits WHERE minutes > 20"])
    with pytest.raises(ParameterError, match="which table is it about"):
        session.ask(dp.Count())
    with pytest.raises(ParameterError, match=r"session\.on"):
        session.synthetic(5)
    with pytest.raises(dp.errors.UnsupportedQuery, match="with itself"):
        session.ask("SELECT COUNT(*) FROM visits a JOIN visits b ON a.city = b.city")
    with pytest.raises(dp.errors.UnsupportedQuery):
        session.ask("SELECT COUNT(*) FROM nobody")
    assert len(session.on("people").synthetic(10)) == 10


def test_a_model_is_fitted_to_a_join(clinic):
    database, ledger = clinic
    view = database.view(("visits", "people"))
    model = dp.LogisticRegression(epsilon=0.5, delta=1e-7, ledger=ledger).fit(
        view, "emergency", features=["amount", "age"]
    )
    assert model.coef_.shape == (1, 2)
    about = [ledger.facts_with(each["facts_hash"]) for each in ledger.entries() if each["kind"] == "charge"]
    assert [facts.table for facts in about] == ["visits join people"]
    with pytest.raises(ParameterError, match="a feature needs"):
        dp.LogisticRegression(epsilon=0.1, ledger=ledger).fit(view, "emergency", features=["day"])


# Unknown keys.


def test_unknown_keys_are_priced_before_they_are_paid_and_asked_again_for_nothing(clinic):
    database, ledger = clinic
    answers = dp.Session(database, ledger, alpha=0.05).on("visits")._answering()
    keys = KeyCount("city", dp.Equals("emergency", "no"))
    price = keys_price(answers, keys, part=dp.exact.number(part="1/5"))
    assert 0 < price.delta <= 2 * 1e-6 / 2 / 5
    before = ledger.spent()
    got = ask_unknown_keys(answers, keys, part=dp.exact.number(part="1/5"))
    spent = ledger.spent()
    assert (spent.renyi - before.renyi, spent.failure - before.failure) == (price.price.renyi, price.price.failure)
    assert spent.failure <= spent.caps.failure / 5
    true = database.view("visits").exact_sum(keys)
    assert got.error_bound == price.error_bound
    assert all(abs(count - true[(city,)]) <= got.error_bound for city, count in got.value.items())
    assert {key for (key,), count in true.items() if count >= 2 * price.shown} <= set(got.value)
    assert not any(city.startswith("Hamlet") for city in got.value)
    assert list(got.value.values()) == sorted(got.value.values(), reverse=True)
    fresh = dp.Session(database, ledger, alpha=0.05).on("visits")._answering()
    assert keys_price(fresh, keys, part=dp.exact.number(part="1/5")).price.renyi == 0
    again = ask_unknown_keys(fresh, keys, part=dp.exact.number(part="1/5"))
    assert (again.value, again.source, again.price) == (got.value, "cache", 0)
    assert ledger.spent() == spent
    assert ledger.verify(CATALOGUE) == ()


def test_unknown_keys_need_a_delta():
    table = dp.Table({"city": ["a"] * 50}, dp.Domain(city=dp.Text()), name="t")
    ledger = dp.Ledger.in_memory(dp.Budget(1), table)
    answers = dp.Session(table, ledger, alpha=0.9)._answering()
    with pytest.raises(ParameterError, match="this ledger has delta = 0"):
        keys_price(answers, KeyCount("city"))


# Schemas of several tables.


def test_a_schema_of_several_tables_reads_rehearses_and_says_whom_it_protects(tmp_path):
    path = example.write_clinic(tmp_path)
    schema = dp.DatabaseSchema.read(path)
    assert [each.name for each in schema.tables] == ["visits", "people"]
    assert (schema.persons, schema.ledger.name) == ("people", "clinic.ledger")
    assert "A person is everyone who has a row in people" in schema.protects()
    one = dp.Schema.read(path, "visits")
    assert one.domain["day"] == dp.Date("1974-01-01", "1978-12-31")
    assert one.domain["city"] == dp.Text()
    assert (one.relation, dp.Schema.read(path, "people").relation.rows) == (dp.Neighbours("replace-one", 5), 1)
    assert one.table().facts.table == "visits"
    with pytest.raises(SchemaError, match="which table is meant"):
        dp.Schema.read(path)
    with pytest.raises(SchemaError, match="Did you mean 'visits'"):
        dp.Schema.read(path, "visit")
    made_up = schema.rehearsal(200)
    assert (made_up.size, made_up.identity.rehearsal) == (200, True)
    rows = total(made_up.view("visits"), dp.Count())
    assert 200 < rows < 1000
    assert total(made_up.view(("visits", "people")), dp.Count()) == rows
    assert len(made_up.view("visits").exact_sum(KeyCount("city"))) > 10
    ledger = dp.Ledger.in_memory(dp.Budget(1), schema.database().identity)
    with pytest.raises(LedgerMismatch, match="made up for a rehearsal"):
        dp.release(dp.Laplace(dp.Count(), 9), made_up.view("people"), ledger=ledger)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('persons = "people"', 'persons = "peeple"', "persons = 'peeple' is none of the tables. Did you mean 'people'"),
        ('unit = "person"\nrows_per_unit = 5', "", r"say who is protected: in \[tables.visits\] unit"),
        ('unit = "person"\nrows_per_unit = 5', "each_row_is_a_person = true", "has no line 'each_row_is_a_person'"),
        ('kind = "text"', 'kind = "text"\nlevels = ["a"]', r"\[tables.visits.columns.city\] has no line 'levels'"),
        ("low = 1974-01-01", "low = 1979-01-01", r"\[tables.visits.columns.day\] low must be <= high"),
        ("low = 1974-01-01", "low = 1974", r"\[tables.visits.columns.day\] low must be a date"),
        ('step = "day"', 'step = "fortnight"', "step must be one of day, week, month, year"),
        ('kind = "text"', 'kind = "FILL IN"', "still say FILL IN: tables.visits.columns.city.kind"),
        ("[tables.visits]", "tables = 3\n[table.visits]", "not TOML|has no line"),
        ('name = "clinic"', 'name = "clinic"\nedition = "2"', "has no line 'edition'"),
    ],
)
def test_what_is_wrong_with_a_schema_of_several_tables_is_said(tmp_path, old, new, says):
    path = example.write_clinic(tmp_path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(SchemaError, match=says):
        dp.DatabaseSchema.read(path)


def test_pandas_keys_and_files_name_the_same_persons():
    """A key is the same person as a number of any width and as a text that spells it; "01" is somebody else."""
    own = dp.Table(
        pd.DataFrame({"p": [1, 2], "age": [1, 2], "kind": ["x", "y"]}), PEOPLE, name="people", unit="p", rows_per_unit=1
    )
    rows = {"p": np.array([1, 1, 2], dtype=np.uint64), "paid": [1, 2, 3], "kind": ["x"] * 3, "city": ["a"] * 3}
    other = dp.Table(rows, VISITS, name="visits", unit="p", rows_per_unit=2)
    assert total(dp.Database([own, other], persons="people").view(("visits", "people")), dp.Count()) == 3
    for keys, known in ((["1", "1", "2"], 3), (["01", "1 ", "+2"], 0), (["1", "-1", "١"], 1)):
        texts = dp.Table({**rows, "p": keys}, VISITS, name="visits", unit="p", rows_per_unit=2)
        assert total(dp.Database([own, texts], persons="people").view("visits"), dp.Count()) == known


def test_promises_about_rows_do_not_count_on_persons_without_a_row(clinic):
    """A rule for visits is promised for as many rows as there are persons: nobody says that there are so many."""
    database, ledger = clinic
    assert database.view("people").facts.everybody
    assert visits().facts.everybody
    for names in ("visits", ("visits", "people")):
        assert not database.view(names).facts.everybody
    rule = dp.RuleClassifier(epsilon=0.9, alpha=0.5, k=1, ledger=ledger)
    rule.fit(database.view("visits"), "emergency", features=["amount", "minutes"])
    assert "5,912 rows or more" in str(rule.promise_)
