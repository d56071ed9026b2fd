"""`discreet ledger` from outside: what is printed, where errors go, and the exit codes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from discreet import cli
from discreet.guarantee import Budget
from discreet.ledger import Ledger
from discreet.mechanisms.additive import Laplace
from discreet.query import Between, Count
from discreet.release import release
from tests.ledger_doubles import people

ROOT = Path(__file__).parents[2]
ARGUMENTS = ["--name", "people", "--neighbours", "replace-one"]


@pytest.fixture(autouse=True)
def _own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("DISCREET_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def discreet(capsys, monkeypatch, *arguments: str) -> tuple[int, str, str]:
    """Exit code, output and errors of one command."""
    monkeypatch.setattr(sys, "argv", ["discreet", *arguments])
    code = 0
    try:
        cli.main()
    except SystemExit as stopped:
        code = stopped.code
    return code, *capsys.readouterr()


@pytest.fixture
def run(capsys, monkeypatch):
    return lambda *arguments: discreet(capsys, monkeypatch, *arguments)


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
    assert "older people" in out
    assert "laplace/1" in out
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
