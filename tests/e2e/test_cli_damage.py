"""The command line with damaged exports and certificates, and with files that cannot be written after a charge."""

from __future__ import annotations

import errno
import json
import tomllib
from pathlib import Path

import pytest

import discreet as dp
from discreet import example
from discreet.data import Identity
from discreet.ledger.state import GENESIS, chained
from discreet.records import canonical

MEAN = ("fit", "people.toml", "mean", "--target", "age", "--epsilon", "0.1")
BOX = ("learn", "people.toml", "box", "--target", "sex", "--features", "diseases", "--epsilon", "0.1")
BOUNDS = ("suggest-bounds", "people.toml", "spending", "--epsilon", "0.3")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The bundled table with a ledger."""
    monkeypatch.setenv("DISCREET_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    example.write(".")
    created("1")


def created(epsilon: str) -> None:
    identity = Identity("people", dp.Neighbours("replace-one"), None)
    dp.Ledger.create("people.ledger", dp.Budget(epsilon, "1e-6"), identity).close()


def entries() -> list[dict]:
    with dp.Ledger.open("people.ledger") as ledger:
        return list(ledger.entries())


def full_disk(path: Path, text: str, **_: object) -> None:
    """In the place of Path.write_text: the first half is written."""
    path.write_bytes(text[: len(text) // 2].encode())
    raise OSError(errno.ENOSPC, "No space left on device")


# What was paid for is shown, whatever becomes of its file.


@pytest.mark.parametrize("command", [MEAN, BOX])
def test_a_result_is_printed_when_its_file_cannot_be_written_after_the_charge(run, monkeypatch, command):
    monkeypatch.setattr(Path, "write_text", full_disk)
    code, out, err = run(*command, "--save", "kept.json", "--json")
    assert code == 1
    assert "No space left" in err
    found = json.loads(out)
    assert found["entry"] == next(each["seq"] for each in entries() if each["kind"] == "charge")
    assert not Path("kept.json").exists()
    code, out, _ = run(*command, "--save", "other.json")
    assert code == 1
    assert "price" in out
    assert not Path("other.json").exists()


def test_bounds_are_printed_when_the_schema_cannot_be_written_after_the_charge(run, monkeypatch):
    before = Path("people.toml").read_text()
    monkeypatch.setattr(Path, "write_text", full_disk)
    code, out, err = run(*BOUNDS, "--write")
    assert code == 1
    assert "No space left" in err
    assert [each["kind"] for each in entries()].count("charge") == 1
    lines = out.splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("[columns"))
    column = tomllib.loads("\n".join(lines[start : start + 5]).split("promise")[0])["columns"]["spending"]
    assert column["low"] < column["high"]
    assert "price" in out
    assert Path("people.toml").read_text() == before
    assert not [each for each in Path().iterdir() if each.name.startswith(".people.toml")]


def test_the_numbers_of_a_fit_that_was_lost_on_the_way_are_in_its_certificate(run):
    shown = json.loads(run(*MEAN, "--json")[1])
    code, out, _ = run("ledger", "certificate", "people.toml", str(shown["entry"]), "--with-answer")
    assert code == 0
    stored = next(each["answer"] for each in entries() if each.get("charge") == shown["entry"])
    assert json.loads(out)["answer"] == stored


def test_nothing_is_bought_for_rows_whose_file_cannot_be_opened(run):
    before = entries()
    long = "r" * 250 + ".csv"  # a name that fits, beside which no other fits
    code, out, err = run("synth", "people.toml", "10", "--out", long, "--measure", "sex", "--share", "1/3")
    assert (code, out) == (1, "")
    assert "too long" in err
    assert entries() == before
    assert not Path(long).exists()


# Rehearsals.


def test_a_rehearsal_of_another_budget_is_refused_when_the_real_ledger_was_made_again(run):
    assert run(*MEAN, "--rehearse")[0] == 0
    assert run(*MEAN, "--rehearse")[0] == 0
    Path("people.ledger").unlink()
    created("2")
    code, out, err = run(*MEAN, "--rehearse")
    assert (code, out) == (1, "")
    assert "people.rehearsal.ledger rehearses another budget" in err
    Path("people.rehearsal.ledger").unlink()
    assert run(*MEAN, "--rehearse")[0] == 0


# Exports and certificates that lie.


@pytest.fixture
def released(run):
    """A release, its certificate in c.json, the export in whole.jsonl and redacted.jsonl."""
    assert run(*MEAN)[0] == 0
    entry = next(each["seq"] for each in entries() if each["kind"] == "charge")
    for arguments in (
        ("certificate", "people.toml", str(entry), "--out", "c.json"),
        ("export", "people.toml", "--everything", "--out", "whole.jsonl"),
        ("export", "people.toml", "--out", "redacted.jsonl"),
    ):
        assert run("ledger", *arguments)[0] == 0
    return Path("whole.jsonl").read_text().splitlines()


def rewritten(lines: list[str], place: int, old: str, new: str, *, rehash: bool = True) -> None:
    """odd.jsonl: the export with one text replaced in one line, all hashes made right again."""
    assert old in lines[place]
    texts, last = [*lines[:place], lines[place].replace(old, new, 1), *lines[place + 1 :]], GENESIS
    for number, text in enumerate(texts if rehash else ()):
        body = {**json.loads(text), "previous": last}
        own = {key: value for key, value in body.items() if key not in ("seq", "hash")}
        last = chained(last, canonical(own).encode())
        texts[number] = json.dumps({**body, "hash": last})
    Path("odd.jsonl").write_text("\n".join(texts) + "\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("place", "old", "new", "rehash"),
    [
        (0, '"epsilon":"1"', '"epsilon":"1e99999999"', True),
        (0, '"epsilon":"1"', '"epsilon":"\\u0031e999999999"', True),
        (0, '"epsilon":"1"', '"epsilon":"1e9_999_999_999"', True),
        (0, '"delta":"1/1000000"', '"delta":"1e-99999999"', True),
        (0, '"epsilon":"1"', '"epsilon":NaN', False),
        (0, '"epsilon":"1"', '"epsilon":[]', True),
        (0, '"epsilon":"1"', '"epsilon":"1/0"', True),
        (0, '"witness":', '"witness":[],"was":', True),
        (1, '"previous":"', '"previous":"é', False),
        (0, '"hash":"', '"hash":"é', False),
        (0, '"epsilon":"1"', '"epsilon":"1/10","epsilon":"1"', False),
    ],
)
def test_an_export_of_any_shape_is_damaged_and_no_crash(run, released, place, old, new, rehash):
    rewritten(released, place, old, new, rehash=rehash)
    for more in ((), ("--certificate", "c.json")):
        code, out, err = run("ledger", "verify", "--export", "odd.jsonl", *more)
        assert (code, out) == (1, "")
        assert "is damaged" in err
        assert "Traceback" not in err


def test_a_certificate_that_says_a_thing_twice_is_refused(run, released):
    text = Path("c.json").read_text()
    for old, new in (('"asked": ', '"asked": "nothing", "asked": '), ('"epsilon": ', '"epsilon": "0", "epsilon": ')):
        Path("twice.json").write_text(text.replace(old, new, 1))
        for against in (("people.toml",), ("--export", "whole.jsonl"), ("--export", "redacted.jsonl")):
            code, out, err = run("ledger", "verify", *against, "--certificate", "twice.json")
            assert (code, out) == (2, "")
            assert f"the key '{old.split(chr(34))[1]}' occurs twice" in err


def test_what_is_said_about_the_price_is_what_was_done(run, released):
    for against in (("people.toml",), ("--export", "whole.jsonl"), ("--export", "redacted.jsonl")):
        code, out, _ = run("ledger", "verify", *against, "--certificate", "c.json")
        assert code == 0
        assert "the price computed again from the mechanism and the schema" in " ".join(out.split())
