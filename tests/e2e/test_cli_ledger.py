"""`discreet ledger` from outside: what is printed, where errors go, and the exit codes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest

from discreet import cli, example
from discreet.guarantee import Budget
from discreet.ledger import Ledger
from discreet.mechanisms import Laplace
from discreet.query import Between, Count
from discreet.records import record
from discreet.rehearsal import made_up
from discreet.release import release
from discreet.schema import Schema
from discreet.session import Session
from tests.ledger_doubles import DOMAIN, people

ROOT = Path(__file__).parents[2]
ARGUMENTS = ["--name", "people", "--neighbours", "replace-one"]


@pytest.fixture(autouse=True)
def _own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("DISCREET_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def test_a_ledger_is_created_used_shown_verified_and_exported(run):
    code, out, err = run("ledger", "create", "p.ledger", "--epsilon", "1", "--delta", "1e-6", *ARGUMENTS, "--size", "5")
    assert (code, err) == (0, "")
    assert "epsilon 1" in out
    ledger = Ledger.open("p.ledger")
    assert ledger.budget == Budget(1, Fraction(1, 10**6))
    over = Laplace(Count(Between("age", 60, 120)), 40)
    release(over, people(), ledger=ledger, memo="older people")
    ledger.close()
    code, out, _ = run("ledger", "show", "p.ledger")
    assert code == 0
    assert "0.025 of 1 spent" in out
    assert "older people: how many rows where 60 <= age <= 120" in " ".join(out.split())
    assert "(laplace)" in " ".join(out.split())
    shown = json.loads(run("ledger", "show", "p.ledger", "--json")[1])
    assert shown["charges"][0]["pure_nano"] == shown["spent"]["pure_nano"] == 25_000_000
    assert shown["charges"][0]["state"] == "answered"
    assert shown["left"]["failure_atto"] == 5 * 10**11
    assert (shown["agrees_with_its_mark"], shown["size"]) == (True, 5)
    assert run("ledger", "verify", "p.ledger")[:2] == (0, "p.ledger: 4 entries, all sound\n")
    lines = run("ledger", "export", "p.ledger")[1].splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["open", "facts", "charge", "answer"]
    assert "older people" not in "".join(lines)
    assert "between/1" not in "".join(lines)
    everything = run("ledger", "export", "p.ledger", "--everything")[1]
    assert "older people" in everything
    assert "between/1" in everything


def test_a_schema_makes_its_ledger_and_stands_for_it(run):
    example.write(".")
    code, out, err = run("ledger", "create", "people.toml", "--epsilon", "2", "--delta", "1e-6")
    assert (code, err) == (0, "")
    said = " ".join(out.split())
    assert "Protected: what the rows of a person say" in said
    assert "and thinks 50 : 50 about a person may come to think 88 : 12" in said
    ledger = Ledger.open("people.ledger")
    assert ledger.facts is not None
    assert ledger.facts == Schema.read("people.toml").table().facts
    assert json.loads(Path("people.parquet.discreet.json").read_text()) == {"ledger": ledger.id}
    for command in ("show", "verify", "export", "reconcile"):
        assert run("ledger", command, "people.toml") == run("ledger", command, "people.ledger")
    assert run("ledger", "allow", "people.toml", "ana", "--share", "1/4")[0] == 0
    assert json.loads(run("ledger", "show", "people.toml", "--json")[1])["allowances"] == {"ana": "1/4"}


def test_a_table_has_one_ledger(run):
    example.write(".")
    create = ["ledger", "create", "people.toml", "--epsilon", "1"]
    assert run(*create)[0] == 0
    code, out, err = run(*create)
    assert (code, out) == (2, "")
    assert "exists already" in err
    Path("people.ledger").rename("elsewhere.ledger")
    code, out, err = run(*create)
    assert (code, out) == (1, "")
    assert "has a ledger already" in err
    assert not Path("people.ledger").exists()


def test_several_rows_of_a_person_come_from_the_schema(run):
    example.write(".")
    assert run("ledger", "create", "years.toml", "--epsilon", "1")[0] == 0
    identity = Ledger.open("years.ledger").identity
    assert (identity.unit, identity.neighbours.rows) == ("person", 5)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--name", "people"], "leave out --name"),
        (["--neighbours", "add-remove", "--size", "3"], "leave out --neighbours and --size"),
    ],
)
def test_what_the_schema_says_is_not_said_again(run, more, says):
    example.write(".")
    code, _, err = run("ledger", "create", "people.toml", "--epsilon", "1", *more)
    assert code == 2
    assert says in err
    assert not Path("people.ledger").exists()


def test_a_schema_without_a_ledger_or_without_rows_is_refused(run):
    example.write(".")
    text = Path("people.toml").read_text()
    Path("none.toml").write_text(text.replace('ledger = "people.ledger"', ""))
    code, _, err = run("ledger", "create", "none.toml", "--epsilon", "1")
    assert code == 2
    assert 'add ledger = "none.ledger"' in err
    assert run("ledger", "show", "none.toml")[0] == 2
    Path("gone.toml").write_text(text.replace("people.parquet", "gone.parquet"))
    code, _, err = run("ledger", "create", "gone.toml", "--epsilon", "1")
    assert code in (1, 2)
    assert "gone.parquet" in err
    assert not Path("people.ledger").exists()


@pytest.mark.parametrize(
    ("epsilon", "odds"),
    [("1.5", "82 : 18"), ("2", "88 : 12"), ("5", "99.3 : 0.7"), ("10", "99.995 : 0.005"), ("50", "as good as sure")],
)
def test_an_epsilon_above_one_is_said_as_odds(epsilon, odds):
    assert odds in Budget(epsilon).odds()


def test_an_epsilon_of_one_needs_no_odds(run):
    assert "50 : 50" not in run("ledger", "create", "p.ledger", "--epsilon", "1", *ARGUMENTS)[1]


def test_a_delta_that_lets_a_person_be_published_asks_back(run, monkeypatch):
    create = ["ledger", "create", "p.ledger", "--epsilon", "1", "--delta", "0.01", *ARGUMENTS, "--size", "100"]
    monkeypatch.setattr("click.confirm", lambda *a, **k: (_ for _ in ()).throw(cli.click.Abort()))
    assert run(*create)[0] == 1
    assert not Path("p.ledger").exists()
    assert run(*create, "--yes")[0] == 0


def busy_ledger() -> Ledger:
    """Entries 4 and 6 are counts, the first in ana's name; 8 is a count of a session and 10 what the session said."""
    table = people([20 + each % 60 for each in range(400)])
    ledger = Ledger.create("p.ledger", Budget(10, 1e-6), table)
    ledger.allow("ana", share="1/4")
    release(Laplace(Count(Between("age", 60, 120)), 4), table, ledger=ledger, memo="a\x1b[31m memo\n", allowance="ana")
    release(Laplace(Count(Between("age", 33, 44)), 4), table, ledger=ledger)
    Session(table, ledger, alpha="0.2").ask("SELECT COUNT(*) FROM people WHERE age BETWEEN 21 AND 22")
    ledger.close()
    return ledger


def test_what_is_shown_begins_with_percentages_and_ends_with_what_was_asked(run, monkeypatch):
    busy_ledger()
    code, out, _ = run("ledger", "show", "p.ledger")
    said = " ".join(out.split())
    assert code == 0
    assert (
        said.index("% of the budget is used")
        < said.index("epsilon so far")
        < said.index("Renyi at order")
        < said.index("ana ")
        < said.index("60 <= age <= 120")
    )
    assert "a [31m memo: how many rows" in said
    assert "in the name of ana" in said
    assert "answers 1 given by sessions, from the charges above" in said
    assert "\x1b" not in out
    assert "how many rows where 21 <= age <= 22" in said[said.index("answers") :]


def test_the_fractions_of_the_charges_add_up_to_what_is_used(run):
    busy_ledger()
    shown = json.loads(run("ledger", "show", "p.ledger", "--json")[1])
    parts = [each["of_budget"] for each in shown["charges"]]
    assert len(parts) == 3
    assert sum(parts) == pytest.approx(shown["used"])
    assert shown["allowance_use"] == {"ana": pytest.approx(parts[0])}
    book = shown["book"]
    assert shown["used"] == pytest.approx(shown["spent"][f"{book}_nano"] / shown["caps"][f"{book}_nano"])
    assert [each["asked"] for each in shown["questions"]] == ["how many rows where 21 <= age <= 22"]


def test_only_the_last_charges_are_shown_unless_all_are_asked_for(run):
    ledger = Ledger.create("p.ledger", Budget(1), people())
    for low in range(25):
        release(Laplace(Count(Between("age", low, 120)), 100), people(), ledger=ledger)
    ledger.close()
    last, everything = run("ledger", "show", "p.ledger")[1], run("ledger", "show", "p.ledger", "--all")[1]
    assert "the last 20 (--all shows all)" in last
    assert " 4 <= age" not in last
    assert " 4 <= age" in everything


@pytest.mark.parametrize("columns", ["40", "100"])
def test_everything_fits_the_width_and_has_no_colour_in_a_pipe(run, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("NO_COLOR", "1")
    busy_ledger()
    for command in (["show"], ["show", "--all"], ["verify"], ["reconcile"]):
        code, out, _ = run("ledger", command[0], "p.ledger", *command[1:])
        assert code == 0
        assert max(map(len, out.splitlines())) <= int(columns)
        assert "\x1b" not in out


def test_a_rehearsal_is_marked_on_every_line(run):
    table = made_up(DOMAIN, name="people", people=50)
    ledger = Ledger.create("p.ledger", Budget(1), table)
    release(Laplace(Count(), 100), table, ledger=ledger)
    ledger.close()
    for command in ("show", "verify", "reconcile"):
        lines = run("ledger", command, "p.ledger")[1].splitlines()
        assert lines
        assert all(line.startswith("rehearsal | ") for line in lines)
    assert json.loads(run("ledger", "show", "p.ledger", "--json")[1])["rehearsal"] is True


def test_an_export_leaves_out_what_was_asked_and_goes_to_a_new_file(run):
    busy_ledger()
    redacted = run("ledger", "export", "p.ledger")[1]
    bodies = [json.loads(line) for line in redacted.splitlines()]
    asked = [each for each in bodies if each["kind"] in ("charge", "said")]
    assert len(asked) == 4
    for body in asked:
        assert not {"memo", "request", "who", "process", "meaning", "question"} & body.keys()
        assert "age" not in json.dumps(body)
        assert "between" not in json.dumps(body)
    assert run("ledger", "export", "p.ledger", "--out", "e.jsonl")[0] == 0
    assert Path("e.jsonl").read_text() == redacted
    code, _, err = run("ledger", "export", "p.ledger", "--out", "e.jsonl")
    assert code == 2
    assert "exists already" in err


def test_a_closed_pipe_on_export_is_no_error_message():
    busy_ledger()
    command = [sys.executable, "-c", "from discreet.cli import main; main()", "ledger", "export", "p.ledger"]
    reader, writer = os.pipe()
    os.close(reader)
    try:
        found = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(writer)
    assert (found.returncode, found.stderr) == (141, "")


@pytest.mark.parametrize("command", ["show", "verify", "export", "reconcile"])
def test_a_file_that_is_no_ledger_is_refused_in_one_sentence(run, command):
    busy_ledger()
    whole = Path("p.ledger").read_bytes()
    Path("garbage").write_bytes(bytes(range(256)) * 64)
    Path("short").write_bytes(whole[: len(whole) // 2])
    Path("empty").write_bytes(b"")
    Path("folder").mkdir()
    for name, expected in (("garbage", 1), ("short", 1), ("empty", 1), ("folder", 2), ("missing", 2)):
        code, out, err = run("ledger", command, name)
        assert (code, out) == (expected, ""), name
        assert err.strip()
        assert "Traceback" not in err


def test_an_allowance_is_a_share_of_at_most_one(run):
    busy_ledger()
    for share in ("0", "2", "-1/4", "some"):
        code, out, err = run("ledger", "allow", "p.ledger", "bob", "--share", share)
        assert (code, out) == (2, "")
        assert "share" in err
    assert json.loads(run("ledger", "show", "p.ledger", "--json")[1])["allowances"] == {"ana": "1/4"}


def test_several_rows_a_person_are_declared(run):
    arguments = ["--unit", "person", "--rows-per-unit", "3"]
    assert run("ledger", "create", "p.ledger", "--epsilon", "0.5", *ARGUMENTS, *arguments)[0] == 0
    assert Ledger.open("p.ledger").identity.neighbours.rows == 3
    assert Ledger.open("p.ledger").identity.unit == "person"


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["ledger", "create", "p.ledger", "--epsilon", "0", *ARGUMENTS], 2, "epsilon must be > 0"),
        (["ledger", "create", "p.ledger", "--epsilon", "many", *ARGUMENTS], 2, "epsilon must be a finite number"),
        (["ledger", "create", "p.ledger", "--epsilon", "1", "--delta", "2", *ARGUMENTS], 2, "delta must be below 1"),
        (["ledger", "create", "p.ledger", "--epsilon", "1"], 2, "--name"),
        (["ledger", "create", "p.ledger", "--epsilon", "1", *ARGUMENTS, "--unit", "person"], 2, "go together"),
        (
            ["ledger", "create", "p.ledger", "--epsilon", "1", *ARGUMENTS, "--unit", "person", "--rows-per-unit", "0"],
            2,
            "--rows-per-unit: rows_per_unit must be a whole number >= 1, found 0",
        ),
        (["ledger", "create", "p.ledger", "--epsilon", "1", *ARGUMENTS, "--size", "-1"], 2, "size"),
        (["ledger", "create", "taken", "--epsilon", "1", *ARGUMENTS], 2, "exists already"),
        (["ledger", "show", "nowhere.ledger"], 2, "no ledger at nowhere.ledger"),
        (["ledger", "show", "taken"], 1, "damaged"),
        (["ledger", "verify", "taken"], 1, "damaged"),
        (["ledger", "burn", "p.ledger"], 2, "No such command"),
    ],
)
def test_an_error_is_one_sentence_and_an_exit_code(run, arguments, code, says):
    Path("taken").write_text("not a ledger at all" * 300)
    Path("taken").chmod(0o600)
    found, out, err = run(*arguments)
    assert found == code
    assert out == ""
    assert says in err
    assert "Traceback" not in err
    assert not Path("p.ledger").exists()


def test_a_large_epsilon_asks_back(run, monkeypatch):
    create = ["ledger", "create", "p.ledger", "--epsilon", "10.5", *ARGUMENTS]
    monkeypatch.setattr("click.confirm", lambda *a, **k: (_ for _ in ()).throw(cli.click.Abort()))
    code, _, err = run(*create)
    assert (code, err) == (1, "stopped: nothing was done\n")
    assert not Path("p.ledger").exists()
    assert run(*create, "--yes")[0] == 0
    assert run("ledger", "create", "q.ledger", "--epsilon", "10", *ARGUMENTS)[0] == 0


def test_a_ledger_behind_its_mark_is_shown_refused_and_reconciled(run):
    ledger = Ledger.create("p.ledger", Budget(1), people())
    ledger.close()
    shutil.copy("p.ledger", "older")
    release(Laplace(Count(), 10), people(), ledger=ledger)
    ledger.close()
    shutil.copy("older", "p.ledger")
    assert "NOT AS ITS MARK SAYS" in run("ledger", "show", "p.ledger")[1]
    code, _, err = run("ledger", "verify", "p.ledger")
    assert code == 1
    assert "reconcile" in err
    code, out, _ = run("ledger", "reconcile", "p.ledger", "--yes")
    assert code == 0
    assert "0.1 of 1 spent" in out
    assert run("ledger", "verify", "p.ledger")[0] == 0
    assert "nothing to do" in run("ledger", "reconcile", "p.ledger")[1]


def test_a_testing_ledger_is_shown_as_not_private(run):
    Ledger.create("p.ledger", Budget(1), people(), testing=True).close()
    assert run("ledger", "show", "p.ledger")[1].startswith("NOT PRIVATE")


def test_the_command_starts_light_and_works_from_a_shell():
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    script = (
        "import sys; from discreet.cli import main; sys.argv[1:] = {!r}\n"
        "try: main()\n"
        "finally: print(sorted(sys.modules))"
    )

    def shell(*arguments: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-c", script.format(list(arguments))]
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)

    helped = shell("ledger", "--help")
    assert helped.returncode == 0
    assert "reconcile" in helped.stdout
    assert not any(f"'{name}'" in helped.stdout for name in ("scipy", "duckdb", "pandas", "sklearn"))
    refused = shell("ledger", "show", "nowhere")
    assert refused.returncode == 2
    assert refused.stderr == "discreet: there is no ledger at nowhere\n"


@dataclass(frozen=True)
class Underpriced:
    """Says that it is Laplace noise, and asks for a hundredth of its price."""

    honest: Laplace

    def stated_record(self):
        return record(self.honest)

    def guarantee(self, facts):
        return Laplace(self.honest.query, 100 * self.honest.scale).guarantee(facts)

    def run(self, data, rng):
        return self.honest.run(data, rng)


def test_verify_prices_every_charge_again(run):
    """Hashes and sums are right; only the mechanism itself says that too little was charged for it."""
    assert run("ledger", "create", "p.ledger", "--epsilon", "1", *ARGUMENTS, "--size", "5")[0] == 0
    with Ledger.open("p.ledger") as ledger:
        release(Laplace(Count(), 40), people(), ledger=ledger)
        bad = release(Underpriced(Laplace(Count(), 20)), people(), ledger=ledger)
        ledger.verify()  # without a catalogue nobody can know
    code, out, err = run("ledger", "verify", "p.ledger")
    assert (code, out) == (1, "")
    assert f"{bad.entry}" in err
    assert "price" in err
