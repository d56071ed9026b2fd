"""A session of the command line: it asks questions, and shows each answer with its bound, where it came from, its price
and the remaining budget; and refusals.

± is the error bound: all bounds that were ever given through a ledger to sessions with this beta hold together with
probability 1 - beta. Counts are whole, so their bound is rounded down to a whole number.
"""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import click

import discreet as dp
from discreet.answering import answer_json, answer_words
from discreet.cli.kit import OpenTable, Output, ParameterError, exit_code, one_line
from discreet.cli.price_view import Remaining

_KNOWN = "known from earlier answers"
_WORDS = {"cache": "asked before", "public": "public", "workload": "paid together with the others"}


class AskSession:
    """A `discreet.Session` with its output. `renew` starts again from the ledger."""

    def __init__(self, at: OpenTable, terms: dict[str, Any], *, yes: bool = False) -> None:
        self.at, self.output, self.terms, self.ledger, self.yes = at, at.output, terms, at.ledger, yes
        self.session = self._session()

    def _session(self) -> dp.Session:
        with self.output.working("reading the ledger"):
            return dp.Session(self.at.table, self.ledger, **self.terms)

    def renew(self) -> None:
        """Forget what this process remembers: after an interruption it may be half of an entry."""
        if self.ledger.path is not None:
            self.ledger.close()
            self.ledger = dp.Ledger.open(self.ledger.path)
        self.session = self._session()

    @property
    def promise(self) -> str:
        """What ± means, for people."""
        return (
            f"± holds for all answers at once with probability {100 * (1 - float(Fraction(self.terms['beta']))):g} %."
        )

    @property
    def terms_in_words(self) -> str:
        """What a question costs, or how near its answer is; nothing where the scopes decide."""
        alpha, price = self.terms["alpha"], self.terms["price"]
        if alpha is not None:
            return f"Answers are within {100 * float(Fraction(alpha)):g} % of the people."
        if self.terms["scopes"] is not None:
            return ""
        part = dp.exact.percent(dp.session.part_of_budget(price=price or dp.session.PRICE))
        return f"A question costs at most {part} of the budget."

    def ask(self, question: str, words: str = "asking") -> AnswerView:
        try:
            return self._ask(question, words, max_price="100%" if self.yes else None)
        except dp.errors.AboveMaxPrice as refused:
            if not (sys.stdin.isatty() and sys.stdout.isatty()) or self.output.as_json:
                raise
            if not click.confirm(f"{one_line(refused)} Ask it all the same?", err=True):
                raise
        return self._ask(question, words, max_price="100%")

    def _ask(self, question: str, words: str, max_price: str | None) -> AnswerView:
        with self.output.working(words):
            answer = self.session.ask(question, max_price=max_price)
            return self._view(question, answer, self.session.more_like(answer))

    def ask_together(self, questions: Sequence[str], share: str) -> list[AnswerView]:
        """All answers as one release."""
        with self.output.working(f"asking {len(questions):,} questions"):
            answers = self.session.answer_all(questions, share=share)
            return [self._view(*each, None) for each in zip(questions, answers, strict=True)]

    def left(self) -> Remaining:
        return Remaining(*self.session.budget(), self.terms["allowance"])

    def _view(self, question: str, answer: dp.Answer, more: int | None) -> AnswerView:
        things = ("question like this", "questions like this") if answer.price else ("paid count", "paid counts")
        left = Remaining(*self.session.budget(), self.terms["allowance"], more, things)
        table = self.session.about(question).table
        facts = table.facts
        clipped = clipping(self.session.summed(question), facts.domain)
        return AnswerView(question, answer, left, max(1, facts.size or 1), clipped)

    def answer_lines(self, lines: Iterable[str]) -> int:
        """Answer or refuse every line of a pipe before the next is read; the exit code is the worst: 2 if a question
        was wrong, 3 if one did not fit.

        No refusal stops the others: one that does not fit into the budget neither, since they may be free. What is
        wrong with the ledger, or with the pipe itself, does. A refusal is shown on the error stream, with its place in
        the question; with --json it is a line of JSON among the answers.
        """
        worst = 0
        try:
            for question in filter(None, map(bare, lines)):
                worst = max(worst, self._answer_line(question))
        except UnicodeDecodeError:
            raise ParameterError("the pipe is not a text in UTF-8: from here on nothing was asked") from None
        return worst

    def _answer_line(self, question: str) -> int:
        """Answer or refuse one line; its exit code."""
        try:
            answer = self.ask(question)
        except REFUSED as refused:
            return refuse(self.output, question, refused, line=True)
        if self.output.as_json:
            self.output.json_line(answer.record())
        else:
            answer.show(self.output, question=True)
            sys.stdout.flush()  # so that refusals stand between the answers where they belong
        return 0


REFUSED = (
    *(dp.errors.UnsupportedQuery, dp.BudgetExceeded, dp.errors.SchemaError),
    *(ParameterError, dp.errors.ConversationOver),
)
"""What is wrong with one question, and not with the others."""


def refusal(question: str | None, error: dp.DiscreetError, line: int | None = None) -> dict[str, Any]:
    """An error as JSON: one shape, wherever the question came from."""
    return {
        **({} if question is None else {"question": question}),
        **({} if line is None else {"line": line}),
        "error": one_line(_reason(error)),
        "type": type(error).__name__,
        "position": getattr(error, "position", None),
        "hint": getattr(error, "hint", getattr(error, "fits", None)),
    }


def _reason(error: dp.DiscreetError) -> str:
    """What is wrong, without what would do instead."""
    if isinstance(error, dp.errors.AboveMaxPrice):
        return f"it could cost more than --max-price: up to {error.asked}"
    if isinstance(error, dp.BudgetExceeded):
        return f"this does not fit: it costs {error.asked}; left: {error.remaining}"
    return error.reason if isinstance(error, dp.errors.UnsupportedQuery) else str(error)


def refuse(
    output: Output,
    question: str | None,
    error: dp.DiscreetError,
    where: str = "",
    *,
    line: bool = False,
    quiet: bool = False,
) -> int:
    """Say that a question is refused, on the error stream or as JSON; the exit code.

    where  the file and the line, for people          quiet  its JSON comes later, with the others
    line   its JSON is one of several, a line each
    """
    if output.as_json:
        if not quiet:
            (output.json_line if line else output.result)(refusal(question, error))
    elif isinstance(error, dp.errors.UnsupportedQuery):
        click.echo(f"{where}{chr(10) if where else ''}{caret(error, shutil.get_terminal_size().columns)}", err=True)
    else:
        click.echo(f"{where or ' '}{one_line(question or '')}\n{one_line(error)}", err=True)
    return exit_code(error)


def bare(line: str) -> str:
    """A question without what is around it; nothing for an empty line and a comment."""
    text = line.strip()
    return "" if text.startswith("--") else text.rstrip(";").rstrip()


@dataclass(frozen=True, slots=True)
class AnswerView:
    """A question, its answer, and the remaining budget after it.

    size     the public number of persons
    clipped  how the column of a sum or an average is read (`clipping`)
    """

    question: str
    answer: dp.Answer
    left: Remaining
    size: int
    clipped: Sequence[dict[str, Any]] = ()

    @property
    def cost(self) -> str:
        """Where the answer came from and what it cost."""
        source, price = self.answer.source, self.answer.price
        if price:
            guard = ", for a threshold that lets later questions pass free" if source == "hypothesis" else ""
            return f"paid: {price}{guard}"
        if source == "workload":
            return _WORDS[source]
        other = self.clipped and source == "cache"  # the sum or the count was asked for by another question
        return f"free: {_KNOWN if other else _WORDS.get(source, _KNOWN)}"

    def show(self, output: Output, *, question: bool = False) -> None:
        """Print the answer for people, below its question if that is wanted."""
        if question:
            output.say(f"> {one_line(self.question)}")
        notes = [each["note"] for each in self.clipped]
        output.sheet(answer_words.sheet(self.answer, *notes, width=output.width))
        output.say(f"{self.cost}; {self.left}")

    def _groups(self) -> list[dict[str, Any]]:
        answer, several, places = self.answer, len(self.answer.groups) > 1, answer_words.estimated(self.answer)
        counted = len(places) == 1 and answer_words.counts(answer)
        return [
            {
                "group": dict(zip(answer.groups, key if several else (key,), strict=True)),
                **({"count": value} if counted else {"values": value if type(value) is dict else {self._name: value}}),
                "fraction": None if answer.fraction is None else answer.fraction[key],
                "intervals": {answer.columns[place]: _ends(ends[place]) for place in places},
            }
            for (key, value), ends in zip(answer.value.items(), answer.intervals, strict=True)
        ]

    @property
    def _name(self) -> str:
        """Of the one column that was aggregated; where no group has a number, the last."""
        return str(self.answer.columns[next(iter(answer_words.estimated(self.answer)), -1)])

    def record(self) -> dict[str, Any]:
        """The answer for programs: everything, numbers as they are. A bound of null is infinite."""
        answer = self.answer
        bound = answer_json.finite(answer.error_bound)
        unknown = None in (bound.values() if isinstance(bound, dict) else (bound,))
        value: dict[str, Any] = {"value": answer.value, "fraction": answer.fraction}
        if not answer.groups and answer.rows:
            known = zip(answer.columns, answer.intervals[0], strict=True)
            value["intervals"] = {name: _ends(each) for name, each in known}
        counted = type(bound) in (int, float) and answer_words.counts(answer)
        return {
            **({"warning": "NOT PRIVATE"} if answer.testing else {}),
            "question": self.question,
            **({"groups": self._groups()} if answer.groups else value),
            "error_bound": bound,
            "alone": answer_json.finite(answer.alone),
            "error_bound_fraction": bound / self.size if counted else None,
            "ranks": answer.ranks if answer.ranks is None or math.isfinite(answer.ranks) else None,
            "unit": answer.unit,
            "tells_little": answer_words.NOBODY if unknown else answer_words.little(answer) or None,
            "clipped": list(self.clipped),
            "population_bound_fraction": answer.population,
            "note": answer.note or None,
            "source": answer.source,
            "cost": self.cost,
            "price": cast("dp.funds.Cost", answer.price).record(),
            "left": self.left.record(),
            "more_like_this": self.left.more,
        }


def _ends(ends: tuple[float, float] | None) -> list[float | None] | None:
    """An interval as JSON; an end of null is infinite."""
    return None if ends is None else [each if math.isfinite(each) else None for each in ends]


def caret(refused: dp.errors.UnsupportedQuery, width: int) -> str:
    """The question, or as much of it as fits, with a sign under the place; below it the reason and a hint."""
    from rich.cells import cell_len

    text = "".join(sign if sign.isprintable() else " " for sign in refused.text)
    place = min(max(0, refused.position), len(text))
    room = max(20, width) - 2
    first = 0 if len(text) <= room else max(0, min(place - room // 2, len(text) - room))
    shown = text[first : first + room]
    before, after = "…" if first else " ", "…" if first + room < len(text) else ""
    indent = " " * cell_len(before + shown[: place - first])
    reason = one_line(refused.reason)
    ended = reason if reason[-1:] in (".", "?", "!") else f"{reason}."
    return f"{before}{shown}{after}\n{indent}^\n{ended} {one_line(refused.hint)}"


def clipping(summed: Iterable[str], domain: dp.Domain) -> list[dict[str, Any]]:
    """How each column is read that a question adds up: its bounds and its step, and a note for people.

    Values are read on the declared grid, and moved into it if they lie beyond. How many do is a question about the
    rows, so the bound of a sum or an average does not include it. Steps of 1 are what people expect: others are said.
    """
    found = []
    for name in summed:
        given = dp.data.column_record(name, domain.column(name))
        about = {key: given[key] for key in ("column", "low", "high", "step")}
        low, high, step = (f"{each:,}" if type(each) is int else f"{each:,.12g}" for each in list(about.values())[1:])
        steps, rounded = (
            (f" in steps of {step}", ", what lies between as the step below") if about["step"] != 1 else ("", "")
        )
        note = (
            f"{one_line(name)} is read between {low} and {high}{steps}: what lies beyond counts as the "
            f"bound{rounded}, and ± does not include that"
        )
        found.append({**about, "note": note})
    return found
