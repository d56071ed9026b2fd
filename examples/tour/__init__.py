"""The main job, end to end, on the bundled people: a plan, a ledger, models, questions, synthetic rows, the books.

Read this file from top to bottom: one function for each part of the tour.

    folder.py      the files, and an invented column        stage.py     a table with its ledger, or its rehearsal
    models.py      two regressions, a rule, a box           truth.py     exact answers, which only this tour has
    digest.py      the same in 40 lines
    questions.py   which questions are asked                screen.py    how it is printed
    analyst.py     who asks them                            page.py      the report

It uses the public face of the library, `import discreet as dp`, and the command line. An installed package has it as
`discreet_tour`.

These people's rows have been public for decades, so the tour may print what no user of a private table can see: the
true error of each private answer. It computes it from its own file; nothing in the library returns it.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import discreet as dp

from . import folder, models, questions
from .analyst import free, within
from .digest import Digest
from .models import Fitted
from .questions import ABOUT, ALPHA, BETA, RESERVE, Answered
from .screen import Screen, percent, program
from .stage import Desk, real, rehearsal
from .truth import Truth, apart, grouped

BUDGET = dp.Budget(epsilon=1, delta="1e-6")


def tour(wanted: Path, *, report: bool = True, long: bool = False) -> None:
    """Everything, in well under a minute, told in 40 lines or at length. The folder stays, with its ledger."""
    told = Screen.standard()
    screen = told if long else told.silent()
    _installed()
    where = folder.free_folder(wanted)
    schema = _people(screen, where)
    desk, truth = _opened(screen, schema)
    digest = None if long else Digest(told, desk, where)
    _plan(screen, schema, desk.size)
    fitted = _models(screen, desk)
    if digest:
        digest.models(fitted)
    answered = _questions(screen, desk, truth)
    moved = _synthetic(screen, answered, truth, where)
    refused = _refusal(screen, desk)
    if digest:
        digest.questions(answered, moved, refused)
    _several_rows(screen, where)
    _books(screen, desk)
    _certificate(screen, desk, where, fitted["logistic"].model.entry_)
    if digest:
        digest.attack()
    if digest:
        told.heading("What next")
        told.command(f"{program()} ask {where / 'people.toml'}")
        told.command(f"{program()} tour --long")
        told.say("")
    if report:
        _report(told, where, schema, desk, fitted, answered, heading=long)
    if long:
        _what_next(screen, where)


def run(*arguments: object) -> str:
    """What `discreet ARGUMENTS` prints, in one line."""
    command = [sys.executable, "-m", "discreet", *map(str, arguments)]
    printed = subprocess.run(
        command, env={**os.environ, "COLUMNS": "10000"}, capture_output=True, text=True, check=True
    )
    return " ".join(printed.stdout.split())


# Before anything is spent.


def _installed() -> None:
    """Say now what would be missing in the middle."""
    missing = [name for name in ("duckdb", "pyarrow") if importlib.util.find_spec(name) is None]
    if missing:
        raise dp.errors.ParameterError(
            f"the tour reads Parquet and SQL, and {', '.join(missing)} is not installed: pip install 'discreet[sql]'"
        )


def _people(screen: Screen, where: Path) -> dp.Schema:
    """Write the files and read the declaration."""
    with screen.working("writing the people"):
        schema = dp.Schema.read(folder.write(where))
    screen.say("discreet: a tour", style="bold")
    screen.say(
        f"\nIn {where}: people.parquet and people.toml, the first year of the people in RAND's health-insurance "
        "experiment of the 1970s; years.parquet and years.toml, all their years.\n\nThese are real people, and their "
        "rows have been public for decades. That is why the tour may show the true error of each answer. It computes "
        "it itself from its file: no function of the library returns an exact answer. One column is invented: a "
        "programme that invites everyone in a range of ages who saw a doctor often enough."
    )
    screen.heading("What is protected")
    screen.say(schema.protects())
    return schema


def _opened(screen: Screen, schema: dp.Schema) -> tuple[Desk, Truth]:
    assert isinstance(schema.data, Path)
    assert schema.ledger is not None
    with screen.working("reading the people"):
        table = schema.table()
        ledger = dp.Ledger.create(schema.ledger, BUDGET, table)
        truth = Truth(schema.data, schema.domain)
    screen.say(
        f"\nOne ledger, {schema.ledger.name}, with {BUDGET} for everything that follows together: the chance of any "
        f"outcome is about the same whether or not a person's row is theirs. There are {truth.size:,} of them."
    )
    return real(schema, ledger, table, truth), truth


def _plan(screen: Screen, schema: dp.Schema, size: int) -> None:
    """Prices and promises are functions of public numbers: a rehearsal on made-up people shows them."""
    with screen.working("planning, on made-up people"):
        desk = rehearsal(schema, BUDGET, size)
        lines = [step(desk).line for step in models.STEPS]
        lines.append(questions.tables(desk, questions.session_of(desk)))
    rows = [(line.what, line.price, line.promised) for line in lines]
    asking = f"about {ABOUT} questions in SQL, each chosen after the answers before"
    near = f"each within {float(ALPHA * size):.0f} people, all at once with probability {float(1 - BETA):g}"
    rows.append((asking, f"≤ {percent(1 - RESERVE - desk.spent())}", near))
    rows.append(("synthetic rows", "free", "like the answers they are made of"))
    screen.heading("The plan, before anything is spent")
    screen.say("Prices and promises depend on public numbers only, so a rehearsal on made-up people shows them.")
    screen.table(("what", "may cost", "promised"), rows)
    screen.say(_beside(schema, size))


def _beside(schema: dp.Schema, size: int) -> str:
    """What noise on each question alone would promise."""
    cells = questions.cells(schema.domain)
    found = dp.plan("questions", budget=BUDGET, size=size, beta=BETA, questions=ABOUT, cells=cells)
    near = min(row.error for row in found.rows if row.error is not None and row.method.endswith("for each"))
    return f"Fresh noise on each of {ABOUT} questions would promise ± {near:.0f} for the whole budget."


# What is learned.


def _models(screen: Screen, desk: Desk) -> dict[str, Fitted]:
    found: dict[str, Fitted] = {}
    for step in models.STEPS:
        with screen.working(f"{step.__name__}: learning, then looking up the truth"):
            found[step.__name__] = step(desk)
    screen.heading("Models and rules")
    screen.say(
        "Excess risk: how much larger the mean loss is than that of the best model, found without privacy. Of a rule "
        "the error is the part of the people about whom it is wrong. The programme is invented, the people are real."
    )
    screen.results([each.line for each in found.values()])
    return found


def _questions(screen: Screen, desk: Desk, truth: Truth) -> Answered:
    with screen.counting(ABOUT) as tell:
        found = questions.ask(desk, truth, tell)
    screen.heading("Questions in SQL")
    screen.say(
        "First tables in one release, then one question at a time, each chosen after the answers before. Errors are in "
        f"people; all bounds hold at once with probability {float(1 - BETA):g}."
    )
    screen.results(found.lines)
    screen.say(
        f"{len(found.asked)} questions, {free(found.asked)} of them free: they follow from earlier answers. "
        f"{within(found.asked)} answers are within the bound they came with."
    )
    return found


def _synthetic(screen: Screen, answered: Answered, truth: Truth, where: Path) -> float:
    """Rows made of what was released; the part of the people that would have to move in the first table of these."""
    import pyarrow.csv as csv

    with screen.working("drawing synthetic rows"):
        rows = answered.session.synthetic(truth.size, backend="pyarrow")
        csv.write_csv(rows, where / "synthetic.csv")
    screen.heading("Synthetic rows")
    screen.say(
        f"synthetic.csv: {truth.size:,} rows drawn from what was released, free. They agree with the people in what "
        "was asked about; the rest is spread evenly. To agree exactly, this share of them would have to move:"
    )
    asked = [(names, "asked about") for names in (("health", "limited"), questions.DRILLS[0])]
    for names, known in (*asked, (("age",), "asked where its middle is"), (("family",), "never asked about")):
        made = grouped([rows[name].to_numpy() for name in names])
        screen.say(f"{percent(apart(made, truth.groups(names)))}: {', '.join(names)}, {known}", indent=2)
    first = asked[0][0]
    return apart(grouped([rows[name].to_numpy() for name in first]), truth.groups(first))


# The end of the budget.


def _refusal(screen: Screen, desk: Desk) -> str:
    """A question that costs more than is left, and what the ledger says to it."""
    finer = ALPHA / 10
    screen.heading("A question that does not fit is refused, and costs nothing")
    screen.say(f"How many are 40 or older, within {percent(float(finer))} of the people?")
    try:
        session = dp.Session(desk.table, desk.ledger, alpha=finer, beta=BETA, max_price=1)
        session.ask("SELECT COUNT(*) FROM people WHERE age >= 40")
    except dp.BudgetExceeded as refused:
        screen.say(str(refused), indent=2)
        return str(refused)
    return "it was answered"


def _several_rows(screen: Screen, where: Path) -> None:
    """What changes when a person has several rows, from the declaration alone: nothing is asked."""
    years = dp.Schema.read(where / "years.toml")
    rows = years.rows_per_unit or 1
    question = dp.Laplace(dp.Count(dp.Between("visits", 1, 50)), scale=40)
    facts = [dp.data.Facts(years.domain, dp.Neighbours(years.neighbours, each), None) for each in (1, rows)]
    alone, together = (float(question.guarantee(each).pure or 0) for each in facts)
    screen.heading("The same people with all their years")
    screen.say(
        f"years.parquet has up to {rows} rows per person, so years.toml says unit = {years.unit!r}, the column that "
        f"names the person, and rows_per_unit = {rows}. Then all rows of a person are protected together, and a "
        f"count with the same noise costs epsilon {together:g} instead of {alone:g}. The tour asks nothing about it: "
        "these are the same people, so the spending of years.ledger would add to that of people.ledger, and "
        "neither ledger knows of the other. Two tables about the same people belong in one schema, with one ledger "
        "(docs/tables.md): then one budget counts for both, and questions may join them by the person."
    )


def _books(screen: Screen, desk: Desk) -> None:
    with screen.working("verifying the ledger"):
        run("ledger", "verify", desk.ledger.path)
        entries = desk.ledger.length()
    screen.heading("The books")
    screen.say(
        f"The ledger was verified: {entries} entries, every hash and every price. Spent {percent(desk.spent())} of the "
        f"budget, left {percent(1 - desk.spent())}. In full: {desk.ledger.spent()}"
    )


def _certificate(screen: Screen, desk: Desk, where: Path, entry: int) -> None:
    """What one release promises, for somebody who does not have the ledger."""
    file, book = where / "certificate.json", desk.ledger.path
    made = run("ledger", "certificate", book, entry, "--out", file)
    screen.heading("A certificate, for those who do not have the ledger")
    screen.say(f"{made}\n{run('ledger', 'verify', book, '--certificate', file)}")


def _report(
    screen: Screen,
    where: Path,
    schema: dp.Schema,
    desk: Desk,
    fitted: dict[str, Fitted],
    answered: Answered,
    *,
    heading: bool = True,
) -> None:
    if heading:
        screen.heading("The report")
    if importlib.util.find_spec("matplotlib") is None:
        screen.say("report.html is drawn by matplotlib, which is not installed: pip install 'discreet[report]'")
        return
    from . import page

    lines = [*(each.line for each in fitted.values()), *answered.lines]
    told = page.Told(schema, desk.ledger, fitted, lines, answered.asked, answered.tables, desk.size)
    with screen.working("drawing the report"):
        page.write(told, where / "report.html")
    screen.say(f"{where / 'report.html'}: all of this in one file, with plots; it opens without a network.")


def _what_next(screen: Screen, where: Path) -> None:
    screen.heading("What next")
    question = "SELECT COUNT(*) FROM people WHERE age >= 40 AND sex = 'F'"
    for command in (
        f'ask {where / "people.toml"} "{question}" --alpha {float(ALPHA):g}',
        f"ledger show {where / 'people.ledger'}",
        f"ledger verify {where / 'people.ledger'}",
        "schema YOUR.csv --out your.toml",
    ):
        screen.command(f"{program()} {command}")
