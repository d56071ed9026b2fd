"""Questions of a pipe: every line is answered or refused before the next is read, and no refusal stops the others.

A refusal is shown on the error stream, with its place in the question; with --json it is a line of JSON among the
answers. A question that does not fit into the budget does not stop the others either, since they may be free. What is
wrong with the ledger, or with the pipe itself, does.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable
from typing import Any

import click

from discreet.cli.answer_view import caret
from discreet.cli.ask_session import AskSession, bare
from discreet.cli.output import exit_code
from discreet.describe import one_line
from discreet.errors import (
    BudgetExceeded,
    ConversationOver,
    DiscreetError,
    ParameterError,
    SchemaError,
    UnsupportedQuery,
)


def answer_lines(asking: AskSession, lines: Iterable[str]) -> int:
    """Answer the lines; the exit code is the worst: 2 if a question was wrong, 3 if one did not fit."""
    worst = 0
    try:
        for question in filter(None, map(bare, lines)):
            worst = max(worst, _answer_line(asking, question))
    except UnicodeDecodeError:
        raise ParameterError("the pipe is not a text in UTF-8: from here on nothing was asked") from None
    return worst


def _answer_line(asking: AskSession, question: str) -> int:
    """Answer or refuse one line; its exit code."""
    refusal: dict[str, Any] = {"hint": None, "position": None}
    words = ""
    try:
        answer = asking.ask(question)
        if asking.output.as_json:
            _print_line(asking, answer.record())
        else:
            answer.show(asking.output, question=True)
            sys.stdout.flush()  # so that refusals stand between the answers where they belong
        return 0
    except UnsupportedQuery as error:
        refused: DiscreetError = error
        refusal |= {"reason": error.reason, "hint": error.hint, "position": error.position}
        words = caret(error, shutil.get_terminal_size().columns)
    except BudgetExceeded as error:
        refused = error
        refusal |= {
            "reason": f"this does not fit: it costs {error.asked}; left: {error.remaining}",
            "hint": error.fits,
        }
    except (SchemaError, ParameterError, ConversationOver) as error:
        refused = error
        refusal["reason"] = str(error)
    if asking.output.as_json:
        _print_line(asking, {"question": question, "error": type(refused).__name__, **refusal})
    else:
        click.echo(words or f" {one_line(question)}\n{one_line(refused)}", err=True)
    return exit_code(refused)


def _print_line(asking: AskSession, record: dict[str, Any]) -> None:
    click.echo(json.dumps(asking.output.marked(record), default=str))
    sys.stdout.flush()
