"""Every command on a schema of several tables, run from outside."""

from __future__ import annotations

import json

import pytest

import discreet as dp
from discreet import example


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, run):
    """A folder with the clinic, and a ledger for it."""
    example.write_clinic(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DISCREET_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "110")
    assert run("ledger", "create", "clinic.toml", "--epsilon", "3", "--delta", "1e-6")[0] == 0


def charged(path="clinic.ledger"):
    """What each charge is about."""
    ledger = dp.Ledger.open(path)
    return [ledger.facts_with(each["facts_hash"]).table for each in ledger.entries() if each["kind"] == "charge"]


def test_a_schema_of_several_tables_is_checked_and_protects_all_rows_of_a_person(run):
    code, out, _ = run("schema", "clinic.toml")
    assert code == 0
    assert "all rows of a person in all tables" in out
    assert "A person is everyone who has a row in people" in out
    assert "The edition of the rows is visits 1, people 1." in out


def test_a_draft_of_several_files_is_one_schema_and_is_checked_as_far_as_it_is_filled_in(run, tmp_path):
    assert run("schema", "clinic_people.parquet", "visits.parquet", "--out", "draft.toml")[0] == 0
    text = (tmp_path / "draft.toml").read_text()
    assert '[tables.visits.columns.day]\nkind = "date"' in text
    assert "Oslo" not in text
    assert "Seattle" not in text
    assert "still say FILL IN: persons, tables.clinic_people.unit" in run("schema", "draft.toml")[2]
    wrong = text.replace(
        'kind = "date"\nlow = "FILL IN"\nhigh = "FILL IN"', 'kind = "date"\nlow = 1979-01-01\nhigh = 1974-01-01'
    )
    (tmp_path / "draft.toml").write_text(wrong)
    code, _, err = run("schema", "draft.toml")
    assert code == 2
    assert "[tables.visits.columns.day] low must be <= high" in err
    assert run("schema", "clinic.toml", "visits.parquet")[0] == 2


def test_questions_name_their_table_and_the_ledger_shows_it(run, tmp_path):
    for question in ("SELECT COUNT(*) FROM people WHERE age > 40", "SELECT COUNT(*) FROM visits WHERE minutes > 30"):
        code, out, err = run("ask", "clinic.toml", question)
        assert (code, err) == (0, "")
    assert charged() == ["people", "visits"]
    out = run("ledger", "show", "clinic.toml")[1]
    assert "visits, 5 rows per person" in out
    assert "visits: how many rows where" in out
    shown = json.loads(run("ledger", "show", "clinic.toml", "--json")[1])
    assert [each["table"] for each in shown["charges"]] == ["people", "visits"]
    assert shown["tables"] == {"visits": 5, "people": 1}
    assert "all sound" in run("ledger", "verify", "clinic.toml")[1]
    code, _, err = run("ask", "clinic.toml", "SELECT COUNT(*) FROM visits a JOIN visits b ON a.city = b.city")
    assert code == 2
    assert "two persons" in err
    entry = shown["charges"][1]["entry"]
    assert run("ledger", "certificate", "clinic.toml", str(entry), "--out", "visits.json")[0] == 0
    assert json.loads((tmp_path / "visits.json").read_text())["schema"]["table"] == "visits"
    assert run("ledger", "verify", "clinic.toml", "--certificate", "visits.json")[0] == 0


def test_a_rehearsal_is_of_all_tables(run):
    code, out, err = run("ask", "clinic.toml", "--rehearse", "SELECT COUNT(*) FROM visits WHERE minutes > 30")
    assert (code, err) == (0, "")
    assert out.startswith("rehearsal | clinic.rehearsal.ledger")
    assert charged() == []
    assert charged("clinic.rehearsal.ledger") == ["visits"]


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "clinic.toml", "median", "--target", "amount", "--epsilon", "0.2"),
        ("learn", "clinic.toml", "rule", "--target", "emergency", "--features", "amount,day", "--epsilon", "0.2"),
        ("synth", "clinic.toml", "3", "--out", "-", "--measure", "clinic", "--share", "1/20"),
        ("plan", "median", "--schema", "clinic.toml", "--target", "amount", "--share", "1/5"),
    ],
    ids=lambda words: words[0],
)
def test_other_commands_need_the_table(run, words):
    code, _, err = run(*words)
    assert code == 2
    assert "which table is meant? Name one of visits, people" in err
    code, out, err = run(*words, "--table", "visits")
    assert code == 0, err
    assert charged() == (["visits"] if words[0] != "plan" else [])
    if words[0] == "plan":
        assert "5 rows per person" in " ".join(out.split())
    assert "Did you mean 'visits'" in run(*words, "--table", "visit")[2]


def test_bounds_are_written_into_the_section_of_the_table(run, tmp_path):
    path = tmp_path / "clinic.toml"
    before = path.read_text()
    words = ("suggest-bounds", "clinic.toml", "amount", "--table", "visits", "--epsilon", "1")
    code, out, err = run(*words)
    assert (code, err) == (0, ""), err
    assert "[tables.visits.columns.amount]" in out
    assert run(*words, "--write")[0] == 0
    assert charged() == ["visits"]  # paid once
    changed = path.read_text()
    assert changed != before
    assert dp.Schema.read(path, "visits").domain["amount"].high < 2000
    assert dp.Schema.read(path, "people").domain == dp.Schema.read(path, "people").domain


def test_a_report_is_about_all_tables(run, tmp_path):
    run("ask", "clinic.toml", "SELECT COUNT(*) FROM visits WHERE minutes > 30")
    assert run("report", "clinic.toml", "--out", "page.html")[0] == 0
    assert "all rows of a person in all tables" in (tmp_path / "page.html").read_text()


def test_data_names_the_rows_of_one_table_only(run):
    code, _, err = run("ask", "clinic.toml", "SELECT COUNT(*) FROM people WHERE age > 9", "--data", "visits.parquet")
    assert code == 2
    assert "--data is for a schema of one table" in err
