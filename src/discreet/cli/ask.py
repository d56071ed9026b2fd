"""`discreet ask`: one question, a file of questions, questions from a pipe, or a prompt (`ask_prompt`)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import discreet as dp
from discreet.cli.files import read_text
from discreet.cli.kit import FILE, Command, OpenTable, Output, ParameterError, allowance_option, database_options
from discreet.cli.statements import Written, questions

if TYPE_CHECKING:
    from discreet.cli.ask_session import AskSession


@click.command(cls=Command)
@database_options
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
    "--max-price",
    default="10%",
    show_default=True,
    help="Ask for confirmation, or refuse, above this part of the budget.",
)
@click.option("--yes", is_flag=True, help="Skip the confirmation prompt above --max-price.")
@click.option("--file", "path", type=FILE, help="Questions, each ended by a semicolon; without any, one per line.")
@click.option("--together", is_flag=True, help="Answer the whole file at once, which is cheaper; with --share.")
@click.option("--share", help="With --together: the share of the remaining budget to spend, such as 1/3.")
def ask(
    schema: Path, question: str | None, path: Path | None, together: bool, share: str | None, **options: Any
) -> None:
    """Ask a QUESTION in SQL about the people of SCHEMA.

    Without a QUESTION it opens a prompt, or reads one question per line from a pipe. An answer comes with ± its error
    bound, where it came from, its price as a percentage of the budget and what is left. An answer that follows from
    earlier ones is free, and so is a question that was asked before. At the prompt a question ends with a semicolon,
    and may have several lines. From a pipe every line is answered, with --json by one line of JSON. A question of a
    file or a pipe that is refused does not stop the others.

    \b
        discreet ask people.toml "SELECT COUNT(*) FROM people WHERE age >= 50 AND health = 'poor'"
        discreet ask people.toml "SELECT health, COUNT(*) FROM people GROUP BY health" --price 2%
        discreet ask people.toml "SELECT AVG(visits) FROM people WHERE sex = 'F'" --alpha 0.01 --max-price 25%
        discreet ask people.toml --rehearse "SELECT MEDIAN(age) FROM people"

    A question may have COUNT, SUM, AVG, STDDEV, MEDIAN, QUANTILE(column, p), arithmetic, WHERE, GROUP BY, bins, dates,
    HAVING, ORDER BY and LIMIT. docs/questions.md has the whole language.
    """
    from discreet.cli.ask_session import refuse

    if question is not None and path is not None:
        raise ParameterError("give a QUESTION or --file, not both")
    if together == (share is None):
        raise ParameterError("--together and --share 1/3 go together: the questions share that much of what is left")
    if together and path is None:
        raise ParameterError("--together answers the questions of --file; what they may cost is its --share")
    listed = None if path is None else questions_in(path)
    place = {name: options.pop(name) for name in ("data_path", "ledger_path", "rehearse", "as_json")}
    try:
        _ask(schema, place, options, question, (path, listed) if path and listed else None, share)
    except dp.DiscreetError as refused:
        if not place["as_json"] and not isinstance(refused, dp.errors.UnsupportedQuery):
            raise
        output = Output(as_json=place["as_json"], rehearsal=place["rehearse"])
        raise click.exceptions.Exit(refuse(output, question, refused)) from None


def _ask(
    schema: Path,
    place: dict[str, Any],
    options: dict[str, Any],
    question: str | None,
    listed: tuple[Path, list[Written]] | None,
    share: str | None,
) -> None:
    from discreet.cli.ask_prompt import talk
    from discreet.cli.ask_session import AskSession, bare

    yes = options.pop("yes")
    asking = AskSession(OpenTable.open(schema, **place, allowance=options["allowance"], several=True), options, yes=yes)
    code = 0
    if listed is not None and share is not None:
        _ask_together(asking, listed[1], share)
    elif listed is not None:
        code = _ask_file(asking, *listed)
    elif question is not None:
        answer = asking.ask(bare(question))
        answer.show(asking.output)
        asking.output.say(asking.promise)
        asking.output.result(answer.record())
    elif sys.stdin.isatty() and sys.stdout.isatty() and not asking.output.as_json:
        talk(asking)
    else:
        code = asking.answer_lines(sys.stdin)
    if code:
        raise click.exceptions.Exit(code)


def _ask_together(asking: AskSession, questions: Sequence[Written], share: str) -> None:
    """Ask the questions of a file as one release, for a share."""
    answers = asking.ask_together([each.text for each in questions], share)
    for answer in answers:
        answer.show(asking.output, question=True)
    asking.output.say(asking.promise)
    asking.output.result({"answers": [answer.record() for answer in answers]})


def _ask_file(asking: AskSession, path: Path, questions: Sequence[Written]) -> int:
    """Ask the questions of a file one by one and return the worst exit code. One that is refused is said with its line,
    and does not stop the others; what is wrong with the ledger does."""
    from discreet.cli.ask_session import REFUSED, refusal, refuse

    records: list[dict[str, Any]] = []
    worst = 0
    try:
        for number, each in enumerate(questions, 1):
            try:
                answer = asking.ask(each.text, f"asking {number:,} of {len(questions):,}")
            except REFUSED as refused:
                line = each.line(getattr(refused, "position", None))
                records.append(refusal(each.text, refused, line))
                worst = max(worst, refuse(asking.output, each.text, refused, f"{path.name}, line {line}: ", quiet=True))
                continue
            answer.show(asking.output, question=True)
            sys.stdout.flush()  # so that refusals stand between the answers where they belong
            records.append(answer.record())
    finally:
        if len(records) > sum("error" in each for each in records):
            asking.output.say(asking.promise)
        asking.output.result({"answers": records})
    return worst


def questions_in(path: Path) -> list[Written]:
    """The questions of a file."""
    found = questions(read_text(path, " with questions"))
    if not found:
        raise ParameterError(f"{path.name} holds no question")
    return found
