"""The labs with small numbers: every bound that is drawn holds, every dropped hypothesis breaks one, pages stand alone.

At their defaults the labs take up to a minute, so `make docs` runs them; here the same functions run on fewer people.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

import nbformat
import pytest

from discreet import cli
from discreet.cli.shipped import load
from discreet.errors import ParameterError
from tests.kernels import executed

labs = load("labs")

from discreet_labs import notebooks  # noqa: E402 - it is there once the labs are loaded
from discreet_labs.kit import Check, Lab, Plot  # noqa: E402

SMALL = {
    9: {"n": 200, "d": 2, "runs": 40},
    10: {"n": 400, "d": 3, "steps": 16, "runs": 6},
    12: {"d": 5, "runs": 40},
    13: {"n": 30_000, "d": 8, "alpha": 0.2, "steps": 40, "runs": 3},
}

TINY = {
    9: {"n": 100, "d": 2, "runs": 20},
    10: {"n": 100, "d": 2, "steps": 4, "runs": 2},
    12: {"d": 4, "runs": 20},
    13: {"n": 30_000, "d": 6, "alpha": 0.3, "steps": 10, "runs": 1},
}
"""For notebooks, whose cells must run: the checks were made with the small numbers."""


@functools.cache
def shown(number: int):
    """Every section of a lab with small numbers: its title and what its experiment shows."""
    lab: Lab = labs.lab(number)
    here = lab.settle(**SMALL[number])
    return [(section.title, section.show(here)) for section in lab.sections if section.show is not None]


def checks(number: int) -> list[Check]:
    return [check for _, result in shown(number) for check in result.checks]


@pytest.mark.parametrize("number", labs.NUMBERS)
def test_every_bound_that_is_drawn_is_above_what_was_measured(number):
    assert [check for check in checks(number) if not check.dropped and not check.holds] == []
    assert sum(not check.dropped for check in checks(number)) >= 15


@pytest.mark.parametrize("number", labs.NUMBERS)
def test_every_dropped_hypothesis_lets_a_bound_be_exceeded(number):
    dropped = [check for check in checks(number) if check.dropped]
    assert [check for check in dropped if check.holds] == []
    assert any("twin" in check.dropped for check in dropped)


@pytest.mark.parametrize("number", labs.NUMBERS)
def test_every_slip_of_the_course_map_is_an_experiment_of_its_lab(number):
    text = (Path(__file__).parents[2] / "docs" / "course.md").read_text()
    part = next(each for each in re.split(r"^## ", text, flags=re.MULTILINE) if each.startswith(f"Lecture {number}:"))
    listed = set(map(int, re.findall(r"^(\d)\. ", part.partition("**Slips.**")[2], flags=re.MULTILINE)))
    shown_by = {
        int(found) for check in checks(number) for found in re.findall(r"slip (\d)", check.what + check.dropped)
    }
    assert listed == shown_by


@pytest.mark.parametrize("number", labs.NUMBERS)
def test_every_experiment_has_a_picture_but_for_the_statements_and_the_lectures_own_run(number):
    bare = [title for title, result in shown(number) if not any(isinstance(part, Plot) for part in result.parts)]
    assert set(bare[1:]) <= {"Conjunctions without privacy"}


def test_a_check_says_what_it_is():
    assert Check("x", 1, 2).verdict == "within the bound"
    assert Check("x", 3, 2).verdict == "ABOVE THE BOUND"
    assert Check("x", 3, 2, "no noise").verdict == "above: no noise"
    assert Check("x", 1, 2, "no noise").verdict == "within the bound with these settings"


@pytest.mark.parametrize("number", labs.NUMBERS)
def test_statements_and_algorithms_come_first_and_the_attack_last(number):
    sections = labs.lab(number).sections
    assert "statement" in shown(number)[0][1].parts[0].columns
    assert "line" in shown(number)[0][1].parts[1].columns
    assert "ttack" in sections[-1].title


def test_the_course_map_names_sections_that_the_labs_have():
    text = (Path(__file__).parents[2] / "docs" / "course.md").read_text()
    parts = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    lectures = {int(found[1]): part for part in parts if (found := re.match(r"Lecture (\d+):", part))}
    assert sorted(lectures) == list(labs.NUMBERS)
    for number, part in lectures.items():
        titles = {section.title for section in labs.lab(number).sections}
        rows = [re.split(r"(?<!\\) \| ", row.strip("| ")) for row in part.splitlines() if row.startswith("| ")]
        named = {each for row in rows[1:] for each in row[2].split("; ") if each != "-"}
        assert named <= titles
        assert len(named) >= 6


def test_the_same_settings_give_the_same_pictures():
    lab = labs.lab(10)
    here = lab.settle(**SMALL[10])
    for section in lab.sections[1:4]:
        first, second = section.show(here), section.show(here)
        assert [part.svg for part in first.parts] == [part.svg for part in second.parts]
        assert first.checks == second.checks


def test_other_settings_change_a_lab_and_wrong_ones_are_named():
    lab = labs.lab(10)
    assert lab.settle(epsilon=0.5).epsilon == 0.5
    with pytest.raises(ParameterError, match="lab 10 has no setting 'alpha'; its settings are n, d, epsilon"):
        lab.settle(alpha=0.1)
    with pytest.raises(ParameterError, match=r"epsilon must be from 0.01 to 20, found 0"):
        lab.settle(epsilon=0)


def test_the_command_writes_one_page_that_needs_nothing_else(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ("lab", "10", "--n", "200", "--d", "2", "--steps", "4", "--runs", "2")
    code, out, _ = run(*arguments)
    assert code == 0, out
    assert "lab10.html" in out
    text = (tmp_path / "lab10.html").read_text()
    assert "Lab 10: noisy projected gradient descent" in text
    assert text.count("<svg") >= 8
    assert not re.search(r'(?:src|href)="(?!#|data:)|<script|@import|url\(http', text)
    assert run(*arguments)[0] == 2  # there already
    assert run(*arguments, "--force")[0] == 0
    code, _, error = run("lab", "10", "--alpha", "0.1")
    assert code == 2
    assert "no setting 'alpha'" in error
    assert run("lab", "10", "--out", "lab.txt")[0] == 2
    assert run("lab", "11")[0] == 2
    assert cli.commands.commands["lab"].help


@pytest.mark.parametrize("number", labs.NUMBERS)
def test_a_notebook_says_what_its_lab_says_and_has_no_outputs(number):
    path = notebooks.HERE / f"lab{number:02d}.ipynb"
    text = path.read_text(encoding="utf-8")
    assert text == notebooks.notebook(labs.lab(number)), "python -m discreet_labs.notebooks"
    made = nbformat.reads(text, as_version=4)
    nbformat.validate(made)
    assert all(not cell.outputs for cell in made.cells if cell.cell_type == "code")


@pytest.mark.parametrize(  # what the cells of 9 and 12 show is shown above, without a notebook
    "number", [10, 13, *(pytest.param(number, marks=pytest.mark.slow) for number in (9, 12))]
)
def test_a_notebook_runs_from_top_to_bottom(number, tmp_path):
    made = nbformat.read(notebooks.HERE / f"lab{number:02d}.ipynb", as_version=4)
    small = ", ".join(f"{name}={value}" for name, value in TINY[number].items())
    made.cells[1].source = made.cells[1].source.replace("settle()", f"settle({small})")
    assert small in made.cells[1].source
    codes = [cell for cell in executed(made, tmp_path).cells if cell.cell_type == "code"]
    assert all("text/html" in cell.outputs[-1].data for cell in codes)
    pictures = sum("data:image/svg+xml" in cell.outputs[-1].data["text/html"] for cell in codes)
    assert pictures >= 7


def test_at_a_terminal_an_error_points_to_the_glossary(run, monkeypatch):
    code, _, error = run("lab", "9", "--alpha", "0.1")
    assert (code, "glossary" in error) == (2, False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    code, _, error = run("lab", "9", "--alpha", "0.1")
    assert (code, "docs/glossary.md" in error, "docs/refused.md" in error) == (2, True, True)
