"""`discreet ask`: one question, a file of questions, questions from a pipe, or a prompt (`ask_prompt`)."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

import discreet as dp
from discreet.cli.ask_prompt import talk
from discreet.cli.ask_session import AnswerView, AskSession, bare, caret
from discreet.cli.files import read_text
from discreet.cli.kit import FILE, Command, OpenTable, ParameterError, allowance_option, table_options


@click.command(cls=Command)
@table_options
@click.argument("question", required=False)
@click.option("--price", help="What a question costs, as a part of the budget.  [default: 1%, unless --alpha is given]")
@click.option("--alpha", help="Instead of --price: the error bound, as a fraction of the people.")
@click.option("--beta", default="0.05", show_default=True, help="Probability that any bound ever given fails.")
@click.option("--questions", type=int, help="Planned number of questions: a guide; for pmw and lecture a limit.")
@click.option("--scopes", type=int, help="Number of sets of columns to ask about, each for an equal share.")
@click.option("--method", type=click.Choice(["auto", "pmw", "lecture"]), default="auto", show_default=True)
@click.option("--sample", is_flag=True, help="The rows are a random sample: bound the error for the population, too.")
@allowance_option
@click.option(
    "--max-price", default="10%", show_default=True, help="Ask back, or refuse, above this part of the budget."
)
@click.option("--yes", is_flag=True, help="Skip the confirmation prompt above --max-price.")
@click.option("--file", "path", type=FILE, help="Questions, one per line or each ended by a semicolon.")
@click.option("--together", is_flag=True, help="Answer the whole file at once, which is cheaper; with --share.")
@click.option("--share", help="With --together: the share of the remaining budget to spend, as 1/3.")
def ask(
    schema: Path, question: str | None, path: Path | None, together: bool, share: str | None, **options: Any
) -> None:
    """Ask the people of SCHEMA a QUESTION in SQL; without one, a prompt, or questions line by line from a pipe.

    An answer comes with ± its error bound, where it came from, its price as a percentage of the budget and what is
    left. What earlier answers prove already is free, and so is a question that was asked before. From a pipe every line
    is answered, with --json by one line of JSON; one that is refused does not stop the others.

    \b
        discreet ask people.toml "SELECT COUNT(*) FROM people WHERE age >= 50 AND health = 'poor'"
        discreet ask people.toml "SELECT health, COUNT(*) FROM people GROUP BY health" --price 2%
        discreet ask people.toml "SELECT AVG(visits) FROM people WHERE sex = 'F'" --alpha 0.01 --max-price 25%
        discreet ask people.toml --rehearse "SELECT MEDIAN(age) FROM people"

    \b
    What can be asked: COUNT, SUM, AVG, MEDIAN, QUANTILE(column, p), and columns with COUNT(*) and GROUP BY;
    WHERE with AND, OR, NOT, = <> < <= > >=, BETWEEN, IN, IS NULL.
    """
    if question is not None and path is not None:
        raise ParameterError("give a QUESTION or --file, not both")
    if together == (share is None):
        raise ParameterError("--together and --share 1/3 go together: the questions share that much of what is left")
    if together and path is None:
        raise ParameterError("--together answers the questions of --file; what they may cost is its --share")
    listed = None if path is None else questions_in(path)
    place = {name: options.pop(name) for name in ("data_path", "ledger_path", "rehearse", "as_json")}
    yes = options.pop("yes")
    asking = AskSession(OpenTable.open(schema, **place, allowance=options["allowance"]), options, yes=yes)
    try:
        if listed is not None:
            _ask_all(asking, listed, share)
        elif question is not None:
            answer = asking.ask(bare(question))
            answer.show(asking.output)
            asking.output.say(asking.promise)
            asking.output.result(answer.record())
        elif sys.stdin.isatty() and sys.stdout.isatty() and not asking.output.as_json:
            talk(asking)
        elif code := asking.answer_lines(sys.stdin):
            raise click.exceptions.Exit(code)
    except dp.errors.UnsupportedQuery as refused:
        click.echo(caret(refused, shutil.get_terminal_size().columns), err=True)
        raise click.exceptions.Exit(2) from None


def _ask_all(asking: AskSession, questions: Sequence[str], share: str | None) -> None:
    """Ask the questions of a file: as one release for a share, or one by one, all of them checked before the first is
    asked; the answers are shown even if a later question is refused."""
    views: Iterable[AnswerView]
    if share is not None:
        views = asking.ask_together(questions, share)
    else:
        for question in questions:
            asking.session.check(question)
        counted = enumerate(questions, 1)
        views = (asking.ask(question, f"asking {number:,} of {len(questions):,}") for number, question in counted)
    answers: list[AnswerView] = []
    try:
        for answer in views:
            answers.append(answer)
            answer.show(asking.output, question=True)
    finally:
        if answers:
            asking.output.say(asking.promise)
        asking.output.result({"answers": [answer.record() for answer in answers]})


def questions_in(path: Path) -> list[str]:
    """The questions of a file, one per line or each ended by a semicolon; a line that begins with -- is a comment."""
    lines = [line for line in read_text(path, " with questions").splitlines() if not line.lstrip().startswith("--")]
    text = " ".join(lines)
    pieces = re.findall(r"""(?:'[^']*'|"[^"]*"|[^;'"]+|['"])+""", text)  # between semicolons outside of quotes
    questions = list(filter(None, map(bare, lines if "".join(pieces) == text else pieces)))
    if not questions:
        raise ParameterError(f"{path.name} holds no question")
    return questions
