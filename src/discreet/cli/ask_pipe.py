"""Questions of a pipe: every line is answered or refused before the next is read, and no refusal stops the others.

A refusal is shown on the error stream, with its place in the question; with --json it is a line of JSON among the
answers. A question that does not fit into the budget does not stop the others either, since they may be free. What is
wrong with the ledger, or with the pipe itself, does.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.answer_view import as_json, caret
from discreet.cli.ask import bare, show_with_question
from discreet.describe import one_line
from discreet.errors import (
    BudgetExceeded,
    ConversationOver,
    DiscreetError,
    ParameterError,
    SchemaError,
    UnsupportedQuery,
)

if TYPE_CHECKING:
    from discreet.cli.ask import Asking

_REFUSALS = (UnsupportedQuery, SchemaError, ParameterError, BudgetExceeded, ConversationOver)


def answer_lines(asking: Asking, lines: Iterable[str]) -> int:
    """Answer them; the exit code is the worst: 2 if a question was wrong, 3 if one did not fit."""
    return max((_answered(asking, question) for question in _questions(lines)), default=0)


def _questions(lines: Iterable[str]) -> Iterator[str]:
    try:
        yield from filter(None, map(bare, lines))
    except UnicodeDecodeError:
        raise ParameterError("the pipe is not a text in UTF-8: from here on nothing was asked") from None


def _answered(asking: Asking, question: str) -> int:
    from discreet.cli import exit_code

    try:
        asked = asking.ask(question)
    except _REFUSALS as refused:
        _refuse(asking, question, refused)
        return exit_code(refused)
    if asking.output.as_json:
        _line(asking, as_json(asked))
    else:
        show_with_question(asking, asked)
        sys.stdout.flush()  # so that refusals stand between the answers where they belong
    return 0


def _refuse(asking: Asking, question: str, refused: DiscreetError) -> None:
    if asking.output.as_json:
        _line(asking, refusal(question, refused))
    elif isinstance(refused, UnsupportedQuery):
        click.echo(caret(refused, shutil.get_terminal_size().columns), err=True)
    else:
        click.echo(f" {one_line(question)}\n{one_line(refused)}", err=True)


def refusal(question: str, refused: DiscreetError) -> dict[str, Any]:
    """A refusal for programs: its kind, why, what would work, and the place in the question if it is known."""
    found: dict[str, Any] = {"question": question, "error": type(refused).__name__}
    if isinstance(refused, UnsupportedQuery):
        return {**found, "reason": refused.reason, "hint": refused.hint, "position": refused.position}
    if isinstance(refused, BudgetExceeded):
        reason = f"this does not fit: it costs {refused.asked}; left: {refused.remaining}"
        return {**found, "reason": reason, "hint": refused.fits, "position": None}
    return {**found, "reason": str(refused), "hint": None, "position": None}


def _line(asking: Asking, found: dict[str, Any]) -> None:
    mark = {"rehearsal": True} if asking.output.rehearsal else {}
    click.echo(json.dumps({**mark, **found}, default=str))
    sys.stdout.flush()
