"""A command whose output was lost is free when it is given again; and every command can be counted under a name."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import discreet as dp
from discreet import example
from discreet.data import Identity

MODEL = ("fit", "people.toml", "logistic", "--target", "limited", "--features", "age,diseases")
MEAN = ("fit", "people.toml", "mean", "--target", "visits")
RULE = ("learn", "people.toml", "box", "--target", "sex", "--features", "diseases", "--certify", "0.02")
BOUNDS = ("suggest-bounds", "people.toml", "income", "--coverage", "0.8")
SYNTH = ("synth", "people.toml", "10", "--out", "rows.csv", "--force", "--measure", "sex,limited")
COMMANDS = {"model": MODEL, "mean": MEAN, "rule": RULE, "bounds": BOUNDS, "synth": SYNTH}
ALL = pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DISCREET_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    example.write(".")
    identity = Identity("people", dp.Neighbours("replace-one", 1), None)
    dp.Ledger.create("people.ledger", dp.Budget(4, "1e-6"), identity).close()


def spent():
    with dp.Ledger.open("people.ledger") as ledger:
        found = ledger.spent()
        return found.renyi, found.pure, found.failure


def charges():
    with dp.Ledger.open("people.ledger") as ledger:
        return [each for each in ledger.entries() if each["kind"] == "charge"]


def words(text):
    return " ".join(text.split())


PRICES = {"price", "left", "more_like_this", "replayed", "cost", "price_nano", "left_nano"}


def released(found):
    """What a command says, without what it cost."""
    if not isinstance(found, dict):
        return found
    return {key: released(value) for key, value in found.items() if key not in PRICES}


@ALL
def test_the_same_command_again_is_free_and_says_which_entry_it_shows(run, command):
    code, first, err = run(*command, "--share", "1/5", "--json")
    assert (code, err) == (0, "")
    paid = spent()
    code, second, err = run(*command, "--share", "1/5", "--json")
    assert (code, err, spent()) == (0, "", paid)
    assert released(json.loads(second)) == released(json.loads(first))
    code, out, err = run(*command, "--share", "1/5")
    assert (code, err, spent()) == (0, "", paid)
    assert f"free: this is the stored release of entry {charges()[0]['seq']}" in words(out)


@ALL
def test_again_pays_for_a_new_one(run, command):
    for place, more in enumerate(((), ("--again",))):
        assert run(*command, "--share", "1/5", *more)[0] == 0
        assert len(charges()) == (place + 1) * (2 if command == RULE else 1)


def test_a_program_is_told_that_nothing_was_charged(run):
    first, second = (json.loads(run(*MODEL, "--share", "1/5", "--json")[1]) for _ in range(2))
    assert (first["replayed"], second["replayed"]) == (False, True)
    nothing = {"renyi_nano": 0, "pure_nano": 0, "failure_atto": 0, "nano": 0, "percent_of_budget": 0.0, "epsilon": 0.0}
    assert second["price"] == {**nothing, "delta": 1e-6}
    assert first["price"]["epsilon"] > 0
    same = ("outputs", "bound", "method", "guarantee", "entry", "entry_hash")
    assert [first[key] for key in same] == [second[key] for key in same]


def test_bounds_that_were_looked_at_are_written_without_paying_again(run):
    run(*BOUNDS, "--epsilon", "0.5")
    paid = spent()
    code, out, _ = run(*BOUNDS, "--epsilon", "0.5", "--write")
    assert (code, spent(), len(charges())) == (0, paid, 1)
    assert "+high = " in out.replace(" ", "").replace("+high=", "+high = ")
    code, _, _ = run(*BOUNDS, "--epsilon", "0.5")  # other bounds are declared now: another question
    assert (code, len(charges())) == (0, 2)


def test_a_command_that_dies_after_its_answer_was_stored_is_free_the_next_time(run):
    """A real death: the process is gone without a word."""
    code = (
        "import os, sys\n"
        "from discreet import cli\n"
        "from discreet.estimators.base import FitGuarantee\n"
        "FitGuarantee.of = staticmethod(lambda *rest: os._exit(9))\n"
        f"sys.argv = ['discreet', *{MEAN!r}, '--share', '1/5']\n"
        "cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False)
    paid = spent()
    assert (done.returncode, len(charges())) == (9, 1)
    assert run(*MEAN, "--share", "1/5")[0] == 0
    assert spent() == paid


def test_a_command_that_dies_while_it_runs_pays_again_once(run):
    code = (
        "import os, sys\n"
        "import discreet as dp\n"
        "from discreet import cli\n"
        "dp.Laplace.run = dp.Gaussian.run = lambda *rest: os._exit(9)\n"
        f"sys.argv = ['discreet', *{MEAN!r}, '--epsilon', '0.1']\n"
        "cli.main()\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    for _ in range(2):
        assert run(*MEAN, "--epsilon", "0.1")[0] == 0
        assert len(charges()) == 2


def test_rows_that_are_only_drawn_are_never_bought_again(run):
    run(*SYNTH, "--share", "1/5")
    code, _, err = run("synth", "people.toml", "10", "--out", "rows.csv", "--force", "--again")
    assert (code, "--again goes with --measure" in err) == (2, True)


# Allowances.

ASK = ("ask", "people.toml", "SELECT COUNT(*) FROM people WHERE sex = 'F'")


@pytest.mark.parametrize("command", [*COMMANDS.values(), ASK], ids=[*COMMANDS, "ask"])
def test_every_command_is_counted_under_a_name(run, command):
    assert run("ledger", "allow", "people.toml", "ana", "--share", "1/2")[0] == 0
    share = () if command == ASK else ("--share", "1/5")
    code, out, err = run(*command, *share, "--allowance", "ana")
    assert (code, err) == (0, "")
    assert {each["allowance"] for each in charges()} == {"ana"}
    assert spent()[0] <= dp.Ledger.open("people.ledger").spent().caps.renyi / 2
    assert "for ana" in words(out) or command == SYNTH


@pytest.mark.parametrize("command", [*COMMANDS.values(), ASK], ids=[*COMMANDS, "ask"])
def test_an_unknown_name_is_refused_before_anything(run, command):
    Path("people.csv").unlink(missing_ok=True)  # before the rows are read, too
    share = () if command == ASK else ("--share", "1/5")
    code, _, err = run(*command, *share, "--allowance", "bob")
    assert (code, charges()) == (2, [])
    assert "the ledger has no allowance called 'bob'" in words(err)


def test_a_rehearsal_knows_the_real_names(run):
    run("ledger", "allow", "people.toml", "ana", "--share", "1/3")
    code, out, err = run(*MEAN, "--share", "1/2", "--allowance", "ana", "--rehearse")
    assert (code, err) == (0, "")
    with dp.Ledger.open("people.rehearsal.ledger") as ledger:
        assert [body["share"] for body in ledger.entries() if body["kind"] == "allow"] == ["1/3"]
    run(*MEAN, "--share", "1/2", "--allowance", "ana", "--rehearse", "--again")
    with dp.Ledger.open("people.rehearsal.ledger") as ledger:
        assert [body["kind"] for body in ledger.entries()].count("allow") == 1
    assert "no allowance called 'bob'" in words(run(*MEAN, "--share", "1/2", "--allowance", "bob", "--rehearse")[2])
    assert "for ana" in words(out)


def test_a_plan_is_of_what_a_name_has_left(run):
    run("ledger", "allow", "people.toml", "ana", "--share", "1/4")
    plan = ("plan", "count", "--schema", "people.toml", "--share", "1/2", "--json")
    whole, ana = (json.loads(run(*plan, *more)[1])["cost"] for more in ((), ("--allowance", "ana")))
    assert ana["allowance"] == "ana"
    assert ana["renyi_nano"] == pytest.approx(whole["renyi_nano"] / 4, rel=1e-6)
    code, _, err = run("plan", "count", "--epsilon", "1", "--allowance", "ana")
    assert (code, "--allowance goes with --share" in err) == (2, True)
    assert "no allowance called 'bob'" in words(run(*plan[:-1], "--allowance", "bob")[2])


def test_names_are_shown_with_what_they_spent_and_have_left(run):
    run("ledger", "allow", "people.toml", "ana", "--share", "1/2")
    run("ledger", "allow", "people.toml", "bob", "--share", "1/4")
    run(*MEAN, "--epsilon", "0.2", "--allowance", "ana")
    code, out, _ = run("ledger", "show", "people.toml")
    shown = json.loads(run("ledger", "show", "people.toml", "--json")[1])
    assert code == 0
    assert re.search(r"^ ana +50 % +[\d.]+ % +at most 0.2 +[\d.]+ %", out, re.M)
    assert re.search(r"^ bob +25 % +0 % +0 +25 %", out, re.M)
    assert shown["allowances"] == {"ana": "1/2", "bob": "1/4"}
    assert shown["allowance_epsilon"] == {"ana": pytest.approx(0.2, rel=0.01), "bob": 0.0}
    assert shown["allowance_left"]["ana"] == pytest.approx(0.5 - shown["allowance_use"]["ana"], abs=1e-6)


def test_the_report_names_them(run):
    run("ledger", "allow", "people.toml", "ana", "--share", "1/2")
    run(*MEAN, "--epsilon", "0.2", "--allowance", "ana")
    assert run("report", "people.toml", "--out", "page.html")[0] == 0
    page = Path("page.html").read_text()
    assert "epsilon so far, at most" in page
    assert "ana" in page
