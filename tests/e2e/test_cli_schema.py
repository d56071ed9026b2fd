"""`discreet schema`, and what every command does when something is wrong, run from outside."""

from __future__ import annotations

import os
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
    assert "draft.toml is there already" in err
    assert (tmp_path / "draft.toml").read_text() == before


def test_a_finished_schema_says_what_it_protects(run):
    code, out, _ = run("schema", "people.toml")
    assert code == 0
    assert "Protected: what the rows of a person say" in out
    assert "Public: how many persons there are" in out
    code, out, _ = run("schema", "years.toml")
    assert "whoever 'person' names, with at most 5 rows" in out


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
        (dp.ParameterError("x"), 2),
        (dp.SchemaError("x"), 2),
        (dp.UnsupportedQuery("x", 0, "x", "x"), 2),
        (dp.BudgetExceeded("x", "x", "x"), 3),
        (dp.LedgerMismatch("x"), 1),
        (dp.LedgerCorrupt(1, "x", "x"), 1),
        (DiscreetError("x"), 1),
    ],
)
def test_each_error_has_its_exit_code(error, code):
    assert cli.exit_code(error) == code


def test_ctrl_c_is_one_sentence_and_130(run, monkeypatch):
    def stopped(path):
        raise KeyboardInterrupt

    monkeypatch.setattr(dp.Schema, "read", stopped)
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
