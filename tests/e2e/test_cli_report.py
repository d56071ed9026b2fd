"""`discreet report`: the page about a ledger, what it tells and what it leaves out, and what is refused."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from discreet import cli, example
from discreet.data import Identity
from discreet.errors import DiscreetError
from discreet.exact import percent
from discreet.guarantee import Budget, Neighbours
from discreet.ledger import Ledger
from discreet.mechanisms import Laplace
from discreet.query import Between, Count
from discreet.release import release
from discreet.schema import Schema

MEMO = "<script>alert(1)</script> of Ana"


@pytest.fixture
def people(tmp_path, monkeypatch):
    """A folder with the bundled people and a ledger that was charged once."""
    monkeypatch.chdir(tmp_path)
    table = Schema.read(example.write(".")).table()
    with Ledger.create("people.ledger", Budget(1, "1e-6"), table) as ledger:
        release(Laplace(Count(Between("age", 40, 65)), 40), table, ledger=ledger, memo=MEMO)
    return table


def run(*arguments: str) -> tuple[int, str]:
    """The exit code that `discreet` would give, and what is printed."""
    found = CliRunner().invoke(cli.commands, ["report", *arguments])
    if isinstance(found.exception, DiscreetError):
        return cli.exit_code(found.exception), str(found.exception)
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    return found.exit_code, found.output


def test_a_page_about_a_schemas_ledger(people):
    code, out = run("people.toml", "--out", "people.html")
    assert code == 0, out
    assert "people.html: 3 plots" in out
    page = Path("people.html").read_text()
    assert "The privacy budget of people" in page
    assert "the chance of any outcome would be about the same if your rows were replaced by another person" in page
    assert Schema.read("people.toml").protects().split(".")[0] in page
    assert "73.1 % sure at epsilon 1" in page
    with Ledger.open("people.ledger") as ledger:
        *_, last = ledger.entries()
        assert f"{percent(ledger.spent().used(), up=True)} of the budget is spent" in page
    assert last["hash"] in page


def test_memos_and_questions_are_left_out_unless_everything_is_asked_for(people):
    assert run("people.ledger", "--out", "quiet.html")[0] == 0
    quiet = Path("quiet.html").read_text()
    assert "Ana" not in quiet
    assert "age &lt;= 65" not in quiet
    assert run("people.ledger", "--out", "all.html", "--everything")[0] == 0
    everything = Path("all.html").read_text()
    assert "&lt;script&gt;alert(1)&lt;/script&gt; of Ana" in everything
    assert "40 &lt;= age &lt;= 65" in everything
    assert "<script" not in everything + quiet


def test_a_program_reads_json(people):
    code, out = run("people.toml", "--out", "people.html", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["plots"] == 3
    with Ledger.open("people.ledger") as ledger:
        assert found["used"] == float(ledger.spent().used()) > 0
    assert len(found["head"]) == 64


def test_a_page_that_is_there_stays_unless_forced(people):
    Path("people.html").write_text("mine")
    code, says = run("people.toml", "--out", "people.html")
    assert (code, Path("people.html").read_text()) == (2, "mine")
    assert "--force" in says
    assert run("people.toml", "--out", "people.html", "--force")[0] == 0
    assert "<!DOCTYPE html>" in Path("people.html").read_text()


def test_neither_ledger_nor_rows_can_be_written_over(people):
    before = Path("people.ledger").read_bytes()
    for name in ("people.ledger", "people.parquet", "people.toml"):
        code, says = run("people.ledger", "--out", name, "--force")
        assert code == 2
        assert "ends in .html" in says
    assert Path("people.ledger").read_bytes() == before


def test_a_ledger_without_any_release_and_one_that_is_made_up(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Ledger.create("fresh.ledger", Budget(2), Identity("<b>us</b>", Neighbours("add-remove"), None)).close()
    assert run("fresh.ledger", "--out", "fresh.html")[0] == 0
    page = Path("fresh.html").read_text()
    assert "There are no charges yet" in page
    assert "&lt;b&gt;us&lt;/b&gt;" in page
    assert "<b>" not in page
    table = Identity("people", Neighbours("replace-one"), None, rehearsal=True)
    Ledger.create("made.ledger", Budget(1), table, testing=True).close()
    assert run("made.ledger", "--out", "made.html")[0] == 0
    page = Path("made.html").read_text()
    assert "A rehearsal" in page
    assert "NOT PRIVATE" in page


def test_a_ledger_behind_its_mark_is_reported_as_such(people):
    shutil.copy("people.ledger", "older")
    with Ledger.open("people.ledger") as ledger:
        release(Laplace(Count(), 40), people, ledger=ledger)
    shutil.copy("older", "people.ledger")
    assert run("people.ledger", "--out", "people.html")[0] == 0
    page = Path("people.html").read_text()
    assert "NOT AS ITS MARK SAYS" in page
    assert "Nothing, until the ledger is reconciled" in page


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["nowhere.ledger"], 2, "no ledger at nowhere.ledger"),
        (["nowhere.toml"], 2, "no schema at nowhere.toml"),
        (["years.toml"], 2, "no ledger at years.ledger"),
        (["damaged.ledger"], 1, "damaged"),
        ([], 2, "LEDGER_OR_SCHEMA"),
    ],
)
def test_what_cannot_be_read_is_said(people, arguments, code, says):
    Path("damaged.ledger").write_text("not a ledger at all" * 300)
    found, text = run(*arguments)
    assert found == code
    assert says in text
    assert not Path("report.html").exists()


def test_without_matplotlib_nothing_is_written(people, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, says = run("people.toml")
    assert code == 2
    assert "pip install discreet[report]" in says
    assert not Path("report.html").exists()


def test_several_rows_a_person_are_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    schema = Schema.read(example.write(".").with_name("years.toml"))
    with Ledger.create("years.ledger", Budget(1), schema.table()):
        pass
    assert run("years.ledger", "--out", "years.html")[0] == 0
    assert "with at most 5 rows that are used" in Path("years.html").read_text()


def test_the_help_has_an_example():
    found = CliRunner().invoke(cli.commands, ["report", "--help"])
    assert "discreet report people.toml --out people.html" in found.output
