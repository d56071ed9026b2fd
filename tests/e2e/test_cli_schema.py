"""`discreet schema`, and what every command does when something is wrong, run from outside."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

import pytest

import discreet as dp
from discreet import cli, example
from discreet.errors import DiscreetError


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with the bundled people."""
    example.write(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DISCREET_STATE", str(tmp_path / "state"))


def test_a_draft_is_printed_or_written_and_never_over_somebody_s_work(run, tmp_path):
    code, out, err = run("schema", "people.parquet")
    assert (code, err) == (0, "")
    assert "[columns.age]" in out
    code, out, _ = run("schema", "people.parquet", "--out", "draft.toml")
    assert code == 0
    assert "fill in" in out
    before = (tmp_path / "draft.toml").read_text()
    code, _, err = run("schema", "years.parquet", "--out", "draft.toml")
    assert code == 2
    assert "draft.toml exists already" in err
    assert (tmp_path / "draft.toml").read_text() == before


def test_a_finished_schema_says_what_it_protects(run):
    code, out, _ = run("schema", "people.toml")
    assert code == 0
    assert "Protected: what the rows of a person say" in out
    assert "Public: how many persons there are" in out
    code, out, _ = run("schema", "years.toml")
    assert "A person is identified by 'person', with at most 5 rows" in out


def test_the_edition_is_drafted_declared_and_shown_and_a_new_one_is_asked_about_anew(run, tmp_path):
    assert 'edition = "1"' in run("schema", "people.parquet")[1]
    assert "The edition of the rows is 1." in run("schema", "people.toml")[1]
    assert "edition 1" in run("ledger", "create", "people.toml", "--epsilon", "1", "--delta", "1e-6")[1]
    ask = ("ask", "people.toml", "SELECT COUNT(*) FROM people WHERE age > 40", "--json")
    paid, free = (json.loads(run(*ask)[1]) for _ in range(2))
    path = tmp_path / "people.toml"
    path.write_text('edition = "2026-12"\n' + path.read_text())
    again = json.loads(run(*ask)[1])
    assert paid["price"]["nano"] > 0
    assert (free["price"]["nano"], free["source"]) == (0, "cache")
    assert (again["price"]["nano"] > 0, again["source"]) == (True, "direct")
    assert re.search("edition +2026-12", run("ledger", "show", "people.toml")[1])
    assert json.loads(run("ledger", "show", "people.toml", "--json")[1])["edition"] == "2026-12"


def test_a_schema_with_more_rows_than_digits_is_said_in_few(run, tmp_path):
    columns = "".join(f'[columns.c{each}]\nkind = "number"\nlow = 0\nhigh = 9\nstep = 1\n' for each in range(5000))
    (tmp_path / "wide.toml").write_text('name = "w"\neach_row_is_a_person = true\n' + columns)
    code, out, _ = run("schema", "wide.toml")
    assert (code, "about 1e49" in out) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["schema", "nothing.csv"], "there is no file"),
        (["schema", "nothing.toml"], "there is no schema at nothing.toml"),
        (["schema", "people.toml", "--out", "x.toml"], "--out is for a draft"),
        (["schema", "state"], "ends in .parquet or .csv"),
        (["schema"], "Missing argument"),
    ],
)
def test_wrong_use_of_schema_is_a_sentence_and_exit_code_2(run, arguments, says):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert says in err


def test_an_unfinished_schema_names_its_gaps(run):
    run("schema", "people.parquet", "--out", "draft.toml")
    code, _, err = run("schema", "draft.toml")
    assert code == 2
    assert "still say FILL IN: each_row_is_a_person, columns.site.low" in err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (dp.errors.ParameterError("x"), 2),
        (dp.errors.SchemaError("x"), 2),
        (dp.errors.UnsupportedQuery("x", 0, "x", "x"), 2),
        (dp.BudgetExceeded("x", "x", "x"), 3),
        (dp.errors.LedgerMismatch("x"), 1),
        (dp.errors.LedgerCorrupt(1, "x", "x"), 1),
        (DiscreetError("x"), 1),
    ],
)
def test_each_error_has_its_exit_code(error, code):
    assert cli.exit_code(error) == code


def test_ctrl_c_is_one_sentence_and_130(run, monkeypatch):
    def stopped(path):
        raise KeyboardInterrupt

    monkeypatch.setattr("discreet.cli.schema.read_schema", stopped)
    code, _, err = run("schema", "people.toml")
    assert code == 130
    assert err.strip() == "discreet: stopped; what was charged stays charged"


@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="no pipes of this kind here")
def test_a_reader_that_goes_away_is_no_error_message(tmp_path):
    example.write(tmp_path)
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-c", "from discreet.cli import main; main()", "schema", "people.toml"]
    with os.fdopen(write, "w") as pipe:
        found = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False)
    assert (found.returncode, found.stderr) == (141, "")
