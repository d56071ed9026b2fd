"""`discreet ledger certificate` and `ledger verify --certificate`, from outside."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from discreet import example
from discreet.certificate import Certificate, certificate
from discreet.guarantee import Budget
from discreet.ledger import Ledger
from discreet.mechanisms import Laplace
from discreet.query import Between, Count
from discreet.release import release
from discreet.schema import Schema


def made_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """people.ledger with one release in entries 3 and 4, its certificate in c.json, both exports; we are there now."""
    monkeypatch.setenv("DISCREET_STATE", str(folder / "state"))
    monkeypatch.chdir(folder)
    schema = Schema.read(example.write("."))
    ledger = Ledger.create("people.ledger", Budget(1, 1e-6), schema.table())
    release(Laplace(Count(Between("age", 60, 65)), 40), schema.table(), ledger=ledger)
    Path("c.json").write_text(certificate(ledger, 3).to_json())
    for name, redact in (("redacted.jsonl", True), ("whole.jsonl", False)):
        Path(name).write_text("".join(f"{line}\n" for line in ledger.export(redact=redact)))
    ledger.close()
    return ledger


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Made once: the tests look at it and write only new names."""
    folder = tmp_path_factory.mktemp("place")
    with pytest.MonkeyPatch.context() as patch:
        made_in(folder, patch)
    return folder


@pytest.fixture
def released(place, monkeypatch) -> Ledger:
    monkeypatch.setenv("DISCREET_STATE", str(place / "state"))
    monkeypatch.chdir(place)
    return Ledger.open("people.ledger")


def test_a_certificate_is_printed_or_written_and_is_the_librarys(run, released):
    code, out, err = run("ledger", "certificate", "people.toml", "3")
    assert (code, err) == (0, "")
    assert Certificate.read(out) == certificate(released, 3)
    assert run("ledger", "certificate", "people.toml", "3", "--out", "new.json")[0] == 0
    assert Path("new.json").read_text() == out
    assert "answer" in json.loads(run("ledger", "certificate", "people.ledger", "3", "--with-answer")[1])
    code, out, err = run("ledger", "certificate", "people.toml", "3", "--out", "c.json")
    assert (code, out) == (2, "")
    assert "exists already" in err


@pytest.mark.parametrize(
    ("against", "says"),
    [
        (["people.toml"], "high-water mark"),
        (["people.ledger"], "high-water mark"),
        (["--export", "whole.jsonl"], "every entry, hash and sum of the export"),
        (["--export", "redacted.jsonl"], "Not checked: what the export leaves out"),
    ],
)
def test_a_true_certificate_is_found_true(run, released, against, says):
    code, out, err = run("ledger", "verify", *against, "--certificate", "c.json")
    assert (code, err) == (0, "")
    assert "entry 3 is true to the entries" in " ".join(out.split())
    assert says in " ".join(out.split())


@pytest.mark.parametrize("against", [["people.toml"], ["--export", "whole.jsonl"], ["--export", "redacted.jsonl"]])
def test_an_edited_certificate_is_refused_by_the_name_of_the_field(run, released, against):
    said = json.loads(Path("c.json").read_text())
    said["budget"]["epsilon"] = "1/10"
    Path("edited.json").write_text(json.dumps(said))
    code, out, err = run("ledger", "verify", *against, "--certificate", "edited.json")
    assert (code, out) == (1, "")
    assert "budget.epsilon is '1/10', expected '1'" in err


def test_a_certificate_of_another_ledger_is_refused(run, released):
    assert run("ledger", "create", "years.toml", "--epsilon", "1")[0] == 0
    code, out, err = run("ledger", "verify", "years.toml", "--certificate", "c.json")
    assert (code, out) == (1, "")
    assert "this certificate is of the ledger" in err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["certificate", "people.toml", "4"], 2, "its charge is entry 3"),
        (["certificate", "people.toml", "99"], 2, "entries 1 to 4"),
        (["certificate", "people.toml", "three"], 2, "not a valid integer"),
        (["certificate", "nowhere.ledger", "3"], 2, "no ledger at nowhere.ledger"),
        (["verify"], 2, "verify what?"),
        (["verify", "people.toml", "--export", "whole.jsonl"], 2, "one of the two"),
        (["verify", "people.toml", "--certificate", "nowhere.json"], 2, "no file nowhere.json"),
        (["verify", "people.toml", "--certificate", "people.toml"], 2, "no certificate"),
        (["verify", "people.toml", "--certificate", "people.parquet"], 2, "not a text"),
        (["verify", "people.toml", "--certificate", "state"], 2, "directory"),
        (["verify", "--export", "people.toml"], 2, "no entry of a ledger"),
        (["verify", "--export", "people.toml", "--certificate", "c.json"], 2, "no entry of a ledger"),
        (["verify", "--export", "nowhere.jsonl"], 2, "no file nowhere.jsonl"),
        (["certificate", "people.toml", "3", "--out", "nowhere/c.json"], 1, "No such file or directory"),
    ],
)
def test_wrong_use_is_one_sentence_and_an_exit_code(run, released, arguments, code, says):
    found, out, err = run("ledger", *arguments)
    assert (found, out) == (code, "")
    assert says in err
    assert "Traceback" not in err


def test_an_export_alone_is_checked_for_gaps(run, released):
    assert "4 entries that follow each other without a gap" in run("ledger", "verify", "--export", "whole.jsonl")[1]
    lines = Path("whole.jsonl").read_text().splitlines(keepends=True)
    Path("gap.jsonl").write_text("".join([lines[0], *lines[2:]]))
    code, _, err = run("ledger", "verify", "--export", "gap.jsonl")
    assert code == 1
    assert "entry 2" in err


def test_an_older_copy_of_the_ledger_proves_nothing(run, tmp_path, monkeypatch):
    released = made_in(tmp_path, monkeypatch)
    shutil.copy("people.ledger", "older")
    release(Laplace(Count(), 40), Schema.read("people.toml").table(), ledger=released)
    released.close()
    shutil.copy("older", "people.ledger")
    for arguments in (["verify", "people.toml", "--certificate", "c.json"], ["certificate", "people.toml", "3"]):
        code, out, err = run("ledger", *arguments)
        assert (code, out) == (1, "")
        assert "mark" in err


@pytest.mark.parametrize("columns", ["40", "100"])
def test_what_is_said_fits_the_width(run, released, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    for arguments in (["verify", "people.toml", "--certificate", "c.json"], ["verify", "--export", "redacted.jsonl"]):
        code, out, _ = run("ledger", *arguments)
        assert code == 0
        assert max(map(len, out.splitlines())) <= int(columns)
        assert "\x1b" not in out
