"""`discreet ask`: one question, a file of questions, questions from a pipe, or a prompt; `discreet synth` beside it."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.answer_view import Asked, Left, as_json, caret, show
from discreet.cli.clipping import clipped
from discreet.cli.options import FILE, Opened, allowance_option, opened, table_options
from discreet.cli.synth import synth
from discreet.describe import one_line
from discreet.errors import ParameterError, UnsupportedQuery

if TYPE_CHECKING:
    from discreet.answering.answer import Answer
    from discreet.session import Session

__all__ = ["ask", "synth"]

ALPHA = "0.02"


@click.command()
@table_options
@click.argument("question", required=False)
@click.option("--alpha", help=f"Answers within this part of the people.  [default: {ALPHA}, unless --scopes is given]")
@click.option("--beta", default="0.05", show_default=True, help="The probability that any bound ever given fails.")
@click.option("--questions", type=int, help="How many are planned: a guide; for pmw and lecture a limit.")
@click.option("--scopes", type=int, help="So many sets of columns will be asked about: equal shares of what is left.")
@click.option("--method", type=click.Choice(["auto", "pmw", "lecture"]), default="auto", show_default=True)
@click.option("--sample", is_flag=True, help="The rows are a random sample: bound the population, too.")
@allowance_option
@click.option("--max-price", help="Refuse what could cost more than this part of the budget: 1%, or 0.01.")
@click.option("--file", "path", type=FILE, help="Questions, one a line or each ended by a semicolon.")
@click.option("--together", is_flag=True, help="Answer the whole file at once, which is cheaper; with --share.")
@click.option("--share", help="With --together: for so much of what is left, as 1/3.")
def ask(
    schema: Path,
    data_path: Path | None,
    ledger_path: Path | None,
    rehearse: bool,
    as_json: bool,
    question: str | None,
    path: Path | None,
    together: bool,
    share: str | None,
    **terms: Any,
) -> None:
    """Ask the people of SCHEMA a QUESTION in SQL; without one, a prompt, or questions line by line from a pipe.

    An answer comes with ± its error bound, where it came from, its price as a percentage of the budget and what is
    left. What earlier answers prove already is free, and so is a question that was asked before. From a pipe every line
    is answered, with --json by one line of JSON; one that is refused does not stop the others.

    \b
        discreet ask people.toml "SELECT COUNT(*) FROM people WHERE age >= 50 AND health = 'poor'"
        discreet ask people.toml "SELECT health, COUNT(*) FROM people GROUP BY health" --alpha 0.03
        discreet ask people.toml "SELECT AVG(visits) FROM people WHERE sex = 'F'" --max-price 25%
        discreet ask people.toml --rehearse "SELECT MEDIAN(age) FROM people"

    \b
    What can be asked: COUNT, SUM, AVG, MEDIAN, QUANTILE(column, p), and columns with COUNT(*) and GROUP BY;
    WHERE with AND, OR, NOT, = <> < <= > >=, BETWEEN, IN, IS NULL.
    """
    if question is not None and path is not None:
        raise ParameterError("give a QUESTION or --file, not both")
    if together == (share is None):
        raise ParameterError("--together and --share 1/3 go together: the questions share that much of what is left")
    if together and (path is None or terms["max_price"] is not None):
        raise ParameterError("--together answers the questions of --file; what they may cost is its --share")
    listed = None if path is None else questions_in(path)
    terms["max_price"] = None if terms["max_price"] is None else part_of(terms["max_price"])
    if terms["alpha"] is None and terms["scopes"] is None:
        terms["alpha"] = ALPHA
    place: dict[str, Any] = {"data_path": data_path, "ledger_path": ledger_path, "allowance": terms["allowance"]}
    found = opened(schema, rehearse=rehearse, as_json=as_json, **place)
    asking = Asking(found, terms)
    if question is None and listed is None:
        _converse(asking)
        return
    with pointed_out():
        if together:
            _report(asking, asking.together(listed or [], share or "1"))
        elif listed is not None:
            _one_by_one(asking, listed)
        else:
            _one(asking, asking.ask(bare(question or "")))


class Asking:
    """A session of the command line: asks, and says what is left. `renew` starts afresh from the ledger."""

    def __init__(self, found: Opened, terms: dict[str, Any]) -> None:
        self.found, self.output, self.terms = found, found.output, terms
        self.ledger = found.ledger
        self.session = self._session()

    def _session(self) -> Session:
        from discreet.session import Session

        with self.output.working("reading the ledger"):
            return Session(self.found.table, self.ledger, **self.terms)

    def renew(self) -> None:
        """After somebody interrupted a question: what this process remembers may be half of an entry."""
        from discreet.ledger import Ledger

        if self.ledger.path is not None:
            self.ledger.close()
            self.ledger = Ledger.open(self.ledger.path)
        self.session = self._session()

    def ask(self, question: str, words: str = "asking") -> Asked:
        with self.output.working(words):
            answer = self.session.ask(question)
            return self._asked(question, answer, self.session.more_like(answer))

    def together(self, questions: Sequence[str], share: str) -> list[Asked]:
        with self.output.working(f"asking {len(questions):,} questions"):
            answers = self.session.answer_all(questions, share=share)
            return [self._asked(*each, None) for each in zip(questions, answers, strict=True)]

    def left(self) -> Left:
        return Left(*self.session.budget(), self.terms["allowance"])

    def _asked(self, question: str, answer: Answer, more: int | None) -> Asked:
        kind = "question like this" if answer.price else "paid count"
        left = Left(*self.session.budget(), self.terms["allowance"], more, kind)
        facts = self.found.table.facts
        beyond = clipped(question, facts.domain, self.found.table.identity.name)
        return Asked(question, answer, left, max(1, facts.size or 1), beyond)


def promise(asking: Asking) -> str:
    """What ± means, for people."""
    return f"± holds for all answers at once with probability {100 * (1 - float(Fraction(asking.terms['beta']))):g} %."


def _one(asking: Asking, asked: Asked) -> None:
    show(asked, asking.output)
    asking.output.say(promise(asking))
    asking.output.result(as_json(asked))


def _one_by_one(asking: Asking, questions: Sequence[str]) -> None:
    """All are checked before the first is asked; what was answered is shown even if a later one is refused."""
    for question in questions:
        asking.session.check(question)
    given: list[Asked] = []
    try:
        for number, question in enumerate(questions, 1):
            given.append(asking.ask(question, f"asking {number:,} of {len(questions):,}"))
            show_with_question(asking, given[-1])
    finally:
        _finish(asking, given)


def _report(asking: Asking, given: Sequence[Asked]) -> None:
    for asked in given:
        show_with_question(asking, asked)
    _finish(asking, given)


def show_with_question(asking: Asking, asked: Asked) -> None:
    """An answer for people, below its question."""
    asking.output.say(f"> {one_line(asked.question)}")
    show(asked, asking.output)


def _finish(asking: Asking, given: Sequence[Asked]) -> None:
    if given:
        asking.output.say(promise(asking))
    asking.output.result({"answers": [as_json(asked) for asked in given]})


def _converse(asking: Asking) -> None:
    """Questions one after the other: at a prompt, or line by line from a pipe, each answered before the next."""
    from discreet.cli.ask_pipe import answer_lines
    from discreet.cli.ask_prompt import talk

    if sys.stdin.isatty() and sys.stdout.isatty() and not asking.output.as_json:
        talk(asking)
    elif code := answer_lines(asking, sys.stdin):
        raise click.exceptions.Exit(code)


@contextmanager
def pointed_out() -> Iterator[None]:
    """A question that is not understood is shown on the error stream, with the place."""
    try:
        yield
    except UnsupportedQuery as refused:
        click.echo(caret(refused, shutil.get_terminal_size().columns), err=True)
        raise click.exceptions.Exit(2) from None


# What is given.


def bare(line: str) -> str:
    """A question without what is around it; nothing for an empty line and a comment."""
    text = line.strip()
    return "" if text.startswith("--") else text.rstrip(";").rstrip()


def questions_in(path: Path) -> list[str]:
    """The questions of a file, one a line or each ended by a semicolon; a line that begins with -- is a comment."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise ParameterError(f"there is no file {path.name} with questions") from None
    except UnicodeDecodeError:
        raise ParameterError(f"{path.name} is not a text in UTF-8") from None
    read = split(line for line in lines if not line.lstrip().startswith("--"))
    found = [question for question in map(bare, read) if question]
    if not found:
        raise ParameterError(f"{path.name} holds no question")
    return found


def split(lines: Iterable[str]) -> list[str]:
    """At semicolons outside of quotes; at the ends of lines if there are none."""
    kept = list(lines)
    pieces: list[list[str]] = [[]]
    for token in re.findall(r"""'[^']*'|"[^"]*"|;|[^;'"]+|['"]""", " ".join(kept)):
        if token == ";":
            pieces.append([])
        else:
            pieces[-1].append(token)
    return kept if len(pieces) == 1 else ["".join(piece) for piece in pieces]


def part_of(text: str) -> Fraction:
    """1%, 0.01 or 1/100."""
    from discreet import exact

    number, percent_sign, rest = text.strip().partition("%")
    if rest:
        raise ParameterError(f"--max-price is a part of the budget, as 1% or 0.01; found {text!r}")
    return exact.positive(max_price=number.strip()) / (100 if percent_sign else 1)
