"""The command line with a ledger in PostgreSQL: the same commands, an address in the schema, errors in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest

from discreet import example
from discreet.ledger import Ledger
from discreet.ledger.address import Address
from discreet.schema import Schema
from tests.ledger_doubles import edited


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def schema(address) -> str:
    """The example's schema, with its ledger at an address."""
    example.write(".")
    path = Path("people.toml")
    path.write_text(path.read_text().replace('"people.ledger"', f'"{address}"'))
    assert Schema.read(path).ledger == address
    return "people.toml"


@pytest.fixture
def charged(run, schema) -> str:
    assert run("ledger", "create", schema, "--epsilon", "1", "--delta", "1e-6")[0] == 0
    assert run("fit", schema, "mean", "--target", "visits", "--epsilon", "0.05")[0] == 0
    return schema


def test_every_command_works_with_an_address(run, schema, address):
    code, out, err = run("ledger", "create", schema, "--epsilon", "1", "--delta", "1e-6")
    assert (code, err) == (0, "")
    assert out.startswith(f"{address.name}: (epsilon 1, delta 1e-06)")
    code, out, err = run("ledger", "create", schema, "--epsilon", "1", "--delta", "1e-6")
    assert (code, out) == (2, "")
    assert "exists already" in err
    assert json.loads(Path("people.parquet.discreet.json").read_text()) == {"ledger": Ledger.open(address).id}
    question = "SELECT COUNT(*) FROM people WHERE health = 'poor'"
    first = json.loads(run("ask", schema, question, "--json")[1])
    again = json.loads(run("ask", schema, question, "--json")[1])
    assert (again["value"], again["source"], again["price"]["nano"]) == (first["value"], "cache", 0)
    assert run("fit", schema, "mean", "--target", "visits", "--epsilon", "0.05")[0] == 0
    assert (
        "free: this is the stored release" in run("fit", schema, "mean", "--target", "visits", "--epsilon", "0.05")[1]
    )
    assert run("ledger", "allow", schema, "ana", "--share", "1/4")[0] == 0
    assert run("ledger", "verify", schema)[1].endswith("entries, all sound\n")
    assert run("ledger", "reconcile", schema)[1] == f"{address.name} agrees with its mark: nothing to do\n"
    for command in ("show", "verify", "export", "reconcile"):
        assert run("ledger", command, schema) == run("ledger", command, str(address))
    shown = json.loads(run("ledger", "show", schema, "--json")[1])
    assert shown["allowances"] == {"ana": "1/4"}
    entry = str(shown["charges"][0]["entry"])
    assert run("ledger", "certificate", schema, entry, "--out", "c.json")[0] == 0
    assert run("ledger", "export", schema, "--out", "e.jsonl")[0] == 0
    assert run("ledger", "verify", "--export", "e.jsonl", "--certificate", "c.json")[0] == 0
    assert run("report", str(address), "--out", "r.html")[0] == 0
    assert run("plan", "mean", "--schema", schema, "--share", "1/3")[0] == 0
    assert not list(Path().glob("*.ledger*"))
    assert run("ask", schema, question, "--rehearse")[0] == 0
    assert [each.name for each in Path().glob("*.ledger")] == ["people.rehearsal.ledger"]


def test_an_address_may_stand_for_a_file_in_every_command(run, schema, address):
    other = str(Address(address.server, f"{address.name} 2"))
    arguments = ("--epsilon", "1", "--name", "people", "--neighbours", "replace-one")
    assert run("ledger", "create", other, *arguments)[0] == 0
    assert run("fit", schema, "mean", "--target", "visits", "--epsilon", "0.05", "--ledger", other)[0] == 0
    assert "] 5 % of the budget is used" in run("ledger", "show", other)[1]


def test_a_ledger_that_was_set_back_is_refused_and_reconciled(run, charged, address):
    edited(address, "DELETE FROM entries WHERE seq > ?", 2)
    code, out, err = run("ledger", "verify", charged)
    assert (code, out) == (1, "")
    assert "does not agree with its high-water mark" in err
    code, out, err = run("fit", charged, "mean", "--target", "income", "--epsilon", "0.05")
    assert (code, out) == (1, "")
    assert run("ledger", "reconcile", charged, "--yes")[0] == 0
    assert run("ledger", "verify", charged)[0] == 0
    assert Ledger.open(address).spent().pure == 5 * 10**7


WRONG = {
    "a server that is down": ("postgresql:///discreet?host=/nowhere&ledger=people", 1, "cannot be used now"),
    "a password": ("postgresql://ana:secret@h/discreet?ledger=people", 2, "holds a password"),
    "no name": ("postgresql://h/discreet", 2, "?ledger=NAME"),
    "another kind of server": ("mysql://h/discreet?ledger=people", 2, "a ledger is a file, or in PostgreSQL"),
}


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("how", ["in the schema", "as an argument"])
def test_a_wrong_address_is_refused_in_one_sentence(run, what, how):
    text, expected, says = WRONG[what]
    example.write(".")
    path = Path("people.toml")
    path.write_text(path.read_text().replace('"people.ledger"', f'"{text}"'))
    for command in (["ledger", "show"], ["ledger", "create", "--epsilon", "1", "--yes"], ["ledger", "export"]):
        names = ["--name", "people", "--neighbours", "replace-one"] if "create" in command and "arg" in how else []
        code, out, err = run(*command, *names, "people.toml" if how == "in the schema" else text)
        assert (code, out) == (expected, ""), err
        assert says in " ".join(err.split())
        assert "secret" not in err
        assert "Traceback" not in err


def test_a_role_without_rights_and_a_missing_ledger_are_said(run, charged, address):
    with psycopg.connect(address.server, autocommit=True) as owner:
        if not owner.execute("SELECT FROM pg_roles WHERE rolname = 'nobodys'").fetchall():
            owner.execute("CREATE ROLE nobodys LOGIN")
    stranger = str(Address(address.server.replace("owner@", "nobodys@"), address.name))
    code, out, err = run("ledger", "show", stranger)
    assert (code, out) == (1, "")
    assert "permission denied" in err
    code, out, err = run("ledger", "show", str(Address(address.server, "nowhere")))
    assert (code, out) == (2, "")
    assert "there is no ledger at nowhere" in err
    code, out, err = run(
        "ask", charged, "SELECT COUNT(*) FROM people", "--ledger", str(Address(address.server, "none"))
    )
    assert (code, out) == (2, "")


def test_the_tables_are_made_by_a_command(run, cluster):
    cluster.empty_database("fresh")
    server = cluster.server("fresh")
    code, out, err = run("ledger", "show", f"{server}&ledger=people")
    assert (code, out) == (2, "")
    assert "discreet ledger init-postgres" in err
    for address in (server, f"{server}&ledger=people"):
        code, out, err = run("ledger", "init-postgres", address)
        assert (code, err) == (0, "")
        assert "discreet_writer" in out
    arguments = ("--epsilon", "1", "--name", "people", "--neighbours", "replace-one")
    assert run("ledger", "create", f"{server}&ledger=people", *arguments)[0] == 0
    printed = run("ledger", "init-postgres", server, "--sql")[1]
    with psycopg.connect(server.replace("fresh", "postgres"), autocommit=True) as owner:
        owner.execute(printed)
        assert owner.execute("SELECT count(*) FROM discreet.entries").fetchone() == (0,)
    code, out, err = run("ledger", "init-postgres", server.replace("owner@", "nobody@"))
    assert (code, out) == (1, "")
    assert err.strip()
