"""`discreet plan` from outside: lists, tables, narrow terminals, JSON, schemas, shares, and wrong use."""

from __future__ import annotations

import json
import re
import shlex

import pytest

import discreet as dp
from discreet import example
from discreet.cli.plan import plan as command
from discreet.plan import KINDS

COST = ["--epsilon", "1", "--delta", "1e-6"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DISCREET_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def people():
    """The bundled table and its ledger."""
    schema = dp.Schema.read(example.write("."))
    return schema, dp.Ledger.create(schema.ledger, dp.Budget(1, 1e-6), schema.table())


def test_without_a_kind_all_kinds_are_listed_with_the_numbers_that_they_need(run, monkeypatch):
    code, out, err = run("plan")
    assert (code, err) == (0, "")
    assert run("plan", "--list")[1] == out
    for name, kind in KINDS.items():
        (line,) = [line for line in out.splitlines() if line.split()[:1] == [name]]
        assert all(f"--{number}" in line for number in kind.needs)
    known = json.loads(run("plan", "--json")[1])["kinds"]
    assert known["box"]["needs"] == ["d", "bits"]
    monkeypatch.setenv("COLUMNS", "40")
    assert max(map(len, run("plan")[1].splitlines())) <= 40


def test_a_plan_is_a_table_with_the_best_line_first_and_the_refused_below(run):
    code, out, err = run("plan", "box", *COST, "--alpha", "0.1", "--d", "10", "--bits", "32")
    assert (code, err) == (0, "")
    planned = dp.plan("box", budget=dp.Budget(1, 1e-6), alpha=0.1, d=10, bits=32)
    assert out.splitlines()[0] == planned.head
    places = [out.index(f"\n {row.method} ") for row in planned.promising]
    assert places == sorted(places)
    assert places[0] < places[-1] < out.index("faces: nothing is proved")
    for row in planned.promising:
        assert f"{row.needed:,}" in out


def test_numbers_may_be_options_or_names_and_powers_of_ten(run):
    one = run("plan", "questions", *COST, "--size", "1e6", "--questions", "1e3", "--bits", "10")
    assert one == run(
        "plan", "questions", *COST, "--size", "1000000", "--number", "questions=1000", "--number", "bits=10"
    )
    assert one[0] == 0


@pytest.mark.parametrize("kind", ["box", "questions", "network"])
def test_forty_columns_are_enough(run, monkeypatch, kind):
    monkeypatch.setenv("COLUMNS", "40")
    numbers = {
        "box": ["--d", "2", "--bits", "16"],
        "network": ["--d", "3"],
        "questions": ["--questions", "9", "--bits", "9"],
    }
    code, out, _ = run("plan", kind, *COST, "--size", "100000", *numbers[kind])
    assert code == 0
    assert max(map(len, out.splitlines())) <= 40
    if kind == "network":
        assert "No method promises anything here." in out
    else:
        assert "rests on" in out


def test_json_holds_every_row_as_plain_numbers(run):
    code, out, _ = run("plan", "mean", *COST, "--size", "5000", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["cost"] == {"epsilon": "1", "delta": "1/1000000"}
    assert found["promise"] == "in expectation"
    best = found["methods"][0]
    assert best["method"] == "laplace"
    assert best["error"] == pytest.approx(2 / 5000**2, rel=0.2)
    assert (
        json.loads(run("plan", "count", *COST, "--alpha", "0.01", "--json")[1])["methods"][0]["size_for_alpha"] == 300
    )
    assert {"method", "reason"} == set(found["refused"][0])


# With a schema.


def test_a_schema_tells_people_and_numbers(run, people):
    code, out, _ = run("plan", "linear", *COST, "--schema", "people.toml", "--features", "age,sex,schooling", "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["size"], found["neighbours"]) == (5912, "replace-one")  # the ledger knows how many
    assert found["numbers"] == {"d": 1 + 2 + 2}  # a number, two levels, a number that may be missing
    found = json.loads(
        run("plan", "histogram", *COST, "--schema", "people.toml", "--features", "sex, health", "--json")[1]
    )
    assert found["numbers"] == {"cells": 8}
    found = json.loads(run("plan", "box", *COST, "--schema", "people.toml", "--features", "age,visits", "--json")[1])
    assert found["numbers"] == {"d": 2, "bits": 7}
    rule = run("plan", "rule", *COST, "--schema", "people.toml", "--target", "health", "--k", "2", "--json")[1]
    every = run("plan", "rule", *COST, "--schema", "people.toml", "--k", "2", "--json")[1]
    assert json.loads(every)["numbers"]["conditions"] == json.loads(rule)["numbers"]["conditions"] + 8  # is, is not
    found = json.loads(
        run("plan", "questions", *COST, "--schema", "people.toml", "--questions", "5", "--bits", "3", "--json")[1]
    )
    assert found["numbers"] == {"questions": 5, "bits": 3}  # what is said counts


FITS = {
    "logistic": ("limited", "age,diseases", ()),
    "linear": ("age", "family,diseases", ()),
    "median": ("visits", None, ()),
    "short": ("limited", "age,health", ("--radius", "2.3")),
    "several classes": ("health", "age", ()),
}


@pytest.mark.parametrize(
    "cost", [["--share", "1/5"], ["--epsilon", "0.4", "--delta", "1e-7"]], ids=["share", "epsilon"]
)
@pytest.mark.parametrize("name", FITS)
def test_what_the_plan_marks_is_what_fit_takes_and_promises(run, people, name, cost):
    target, features, shape = FITS[name]
    kind = name if name in KINDS else "logistic"
    about = ["--target", target, *(["--features", features] if features else []), *shape, *cost, "--json"]
    code, out, err = run("plan", kind, "--schema", "people.toml", *about)
    assert (code, err) == (0, "")
    planned = json.loads(out)
    fitted = json.loads(run("fit", "people.toml", kind, *about)[1])
    assert planned["fit_takes"] == fitted["method"].partition(",")[0]
    refused = {each["method"]: each["reason"] for each in planned["refused"]}
    if planned["fit_takes"] in refused:  # it learns well, and its theorem says nothing for so few rows
        assert fitted["bound"] == f"nothing is promised: {refused[planned['fit_takes']]}"
        return
    (marked,) = [row for row in planned["methods"] if row["fit_takes_this"]]
    assert marked["method"] == planned["fit_takes"]
    assert f"excess risk <= {marked['error']:.3g} per row in expectation ({marked['rests_on']})" == fitted["bound"]


def test_the_table_shows_the_mark_the_units_and_what_it_is_for(run, people, monkeypatch):
    about = ["--schema", "people.toml", "--target", "age", "--features", "family,diseases", "--share", "1/5"]
    code, out, _ = run("plan", "linear", *about)
    assert code == 0
    assert "age from family, diseases: d 2, and an intercept" in out
    said = " ".join(out.split())
    assert "units: those of age, squared (a miss beyond 6.5 counts linearly)" in said
    assert "of length at most 45.96" in said
    (line,) = [line for line in out.splitlines() if line.split()[1:2] == ["this"]]
    assert line.split()[0] == "objective"
    monkeypatch.setenv("COLUMNS", "40")
    assert "objective\n  fit takes this\n" in run("plan", "linear", *about)[1]
    found = json.loads(run("plan", "linear", *about, "--radius", "30", "--huber", "4", "--json")[1])
    assert found["radius"] == 30
    assert "a miss beyond 4 counts linearly" in found["units"]


def test_units_and_radius_are_said_without_a_schema_and_another_method_is_hinted_at(run):
    code, out, _ = run("plan", "logistic", *COST, "--size", "5912", "--d", "2", "--radius", "9")
    assert code == 0
    assert "features whose rows have norm 1 of length at most 9" in " ".join(out.split())
    assert "--method NAME" in out  # the exponential promises less than what is taken
    assert json.loads(run("plan", "count", *COST, "--json")[1])["units"] is None


def test_a_person_with_several_rows_is_planned_as_one(run):
    example.write(".")
    found = json.loads(run("plan", "count", *COST, "--schema", "years.toml", "--json")[1])
    assert found["rows_per_unit"] == 5
    once = json.loads(run("plan", "count", *COST, "--json")[1])
    assert found["methods"][0]["noise"] == pytest.approx(5 * once["methods"][0]["noise"], rel=1e-4)


def test_a_share_is_of_what_is_left_and_says_what_was_taken(run, people):
    schema, ledger = people
    code, out, _ = run("plan", "histogram", "--schema", "people.toml", "--features", "sex", "--share", "1/3")
    assert code == 0
    assert "1/3 of what is left for 'people' (Renyi divergence 0.1758 at order 23)" in out
    first = json.loads(run("plan", "count", "--schema", "people.toml", "--share", "1/3", "--json")[1])
    assert first["cost"]["renyi_nano"] == ledger.remaining().renyi // 3
    dp.release(dp.Gaussian(dp.Count(), 10), schema.table(), ledger=ledger)
    second = json.loads(run("plan", "count", "--schema", "people.toml", "--share", "1/3", "--json")[1])
    assert second["cost"]["renyi_nano"] < first["cost"]["renyi_nano"]
    assert second["methods"][0]["error"] > first["methods"][0]["error"]
    assert len(list(ledger.entries())) == 4  # a plan writes nothing: open, facts, charge, answer


def test_the_examples_of_the_help_run(run, people):
    examples = re.findall(r"^ +(discreet .*)$", command.help or "", re.MULTILINE)
    assert len(examples) >= 6
    for line in examples:
        code, out, err = run(*shlex.split(line)[1:])
        assert (code, err) == (0, ""), line
        assert out


WRONG = {
    "no size of a learner": (["mean", *COST], "--size: a plan for a learner needs size=, or alpha= to find the size"),
    "no size of an average": (["average", *COST], "--size: a plan for an average needs size=, or alpha="),
    "no cells": (
        ["questions", *COST, "--questions", "3", "--size", "9"],
        "--bits: a plan for questions",
    ),
    "no rows": (
        ["synthetic", *COST, "--questions", "3", "--size", "9"],
        "--rows: a plan for synthetic rows",
    ),
    "a radius of a count": (["count", *COST, "--radius", "3"], "--radius: radius= is for linear and logistic"),
    "no radius": (["linear", *COST, "--d", "2", "--size", "9", "--radius", "0"], "radius must be > 0"),
    "d twice": (["linear", *COST, "--schema", "people.toml", "--target", "age", "--d", "2"], "--d is counted"),
    "a category's line": (["linear", *COST, "--schema", "people.toml", "--target", "sex"], "is a category"),
    "no cost": (["count"], "--epsilon 1"),
    "two costs": (["count", "--epsilon", "1", "--share", "1/2"], "either --epsilon"),
    "a share of nothing": (["count", "--share", "1/2"], "of which ledger"),
    "a share and a delta": (["count", "--share", "1/2", "--delta", "1e-6"], "own epsilon and delta"),
    "an unknown kind": (["everything", *COST], "kind must be one of"),
    "a number that is missing": (["conjunction", *COST], "needs --d and --k"),
    "a number too many": (["count", *COST, "--k", "3"], "no other number"),
    "an argument as a number": (["count", *COST, "--number", "budget=5"], "takes no other number"),
    "nobody": (["count", *COST, "--size", "0"], "--size"),
    "no rows per person": (["count", *COST, "--rows-per-unit", "0"], "--rows-per-unit"),
    "half a cell": (["histogram", *COST, "--cells", "2.5"], "not a whole number"),
    "a word for a number": (["histogram", *COST, "--cells", "many"], "not a whole number"),
    "columns without a schema": (["histogram", *COST, "--features", "sex"], "--schema"),
    "no such schema": (["count", *COST, "--schema", "none.toml"], "no schema at none.toml"),
    "no such column": (["histogram", *COST, "--schema", "people.toml", "--features", "agee"], "age"),
    "a box of categories": (["box", *COST, "--schema", "people.toml", "--features", "sex"], "a box is about numbers"),
    "bounds of two columns": (["bounds", *COST, "--schema", "people.toml", "--features", "age,visits"], "one column"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use_is_one_sentence_and_exit_code_2(run, name):
    example.write(".")
    arguments, says = WRONG[name]
    code, out, err = run("plan", *arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert "Traceback" not in err
