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
from discreet.cli.columns import clipping
from discreet.cli.kit import OpenTable, Output, ParameterError, exit_code, one_line
from discreet.cli.price_view import Remaining

_KNOWN = "known from earlier answers"
_WORDS = {"cache": "asked before", "public": "public", "workload": "paid together with the others"}
_ROWS_SHOWN = 1_000  # of a table; --json has all of them
_NARROW = 50  # on a screen of fewer columns a table has no shares
LITTLE = "the bound is larger than the answer: this tells little"
NO_BOUND = "no bound: there may be nobody to average over"


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
        facts = self.at.table.facts
        clipped = clipping(question, facts.domain, self.at.table.identity.name)
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
        except dp.errors.UnsupportedQuery as error:
            words = caret(error, shutil.get_terminal_size().columns)
            return self._refuse(question, error, error.reason, error.hint, error.position, words)
        except dp.errors.AboveMaxPrice as error:
            reason = f"it could cost more than --max-price: up to {error.asked}"
            return self._refuse(question, error, reason, error.fits)
        except dp.BudgetExceeded as error:
            reason = f"this does not fit: it costs {error.asked}; left: {error.remaining}"
            return self._refuse(question, error, reason, error.fits)
        except (dp.errors.SchemaError, ParameterError, dp.errors.ConversationOver) as error:
            return self._refuse(question, error, str(error))
        if self.output.as_json:
            self.output.json_line(answer.record())
        else:
            answer.show(self.output, question=True)
            sys.stdout.flush()  # so that refusals stand between the answers where they belong
        return 0

    def _refuse(
        self, question: str, error: dp.DiscreetError, reason: str, hint: Any = None, place: Any = None, words: str = ""
    ) -> int:
        refusal = {"error": type(error).__name__, "hint": hint, "position": place, "reason": reason}
        if self.output.as_json:
            self.output.json_line({"question": question, **refusal})
        else:
            click.echo(words or f" {one_line(question)}\n{one_line(error)}", err=True)
        return exit_code(error)


def bare(line: str) -> str:
    """A question without what is around it; nothing for an empty line and a comment."""
    text = line.strip()
    return "" if text.startswith("--") else text.rstrip(";").rstrip()


@dataclass(frozen=True, slots=True)
class AnswerView:
    """A question, its answer, and the remaining budget after it.

    size     the public number of persons
    clipped  how the column of a sum or an average is read (`cli.columns.clipping`)
    """

    question: str
    answer: dp.Answer
    left: Remaining
    size: int
    clipped: dict[str, Any] | None = None

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

    @property
    def one(self) -> str:
        """The answer in one line; of a table the number of groups."""
        answer = self.answer
        if answer.groups:
            return f"{len(answer.value):,} groups, each {self.bound}, all at once"
        if answer.fraction is not None:
            share, near = rounded(100 * answer.fraction, 100 * answer.error_bound / self.size)
            return f"{answer.value:,} {self.bound} ({share} % ± {near} % of the people)"
        value, unit = self._value_and_bound()[0], one_line(answer.unit.partition(";")[0])
        return f"{value} {self.bound}{'' if self.counts else f' ({unit})'}"

    @property
    def counts(self) -> bool:
        return self.answer.unit in ("persons", "rows")

    @property
    def bound(self) -> str:
        return f"± {self._value_and_bound()[1]}"

    def _value_and_bound(self) -> tuple[str, str]:
        answer, whole = self.answer, math.isfinite(self.answer.error_bound) and math.floor(self.answer.error_bound)
        if answer.ranks:  # the bound is not about the value's own digits
            return f"{answer.value:,.12g}", f"{whole:,} ranks"
        if answer.groups:
            return "", f"{whole:,} {answer.unit}"
        if math.isinf(answer.error_bound):
            return f"{answer.value:,.12g}", NO_BOUND
        if self.counts:
            return f"{answer.value:,}", f"{whole:,} {answer.unit}"
        value, near = rounded(answer.value, answer.error_bound)
        return f"{answer.value:,}" if type(answer.value) is int else value, near

    @property
    def little(self) -> str:
        """What to say if the bound is larger than what it is about; nothing otherwise."""
        answer, bound = self.answer, self.answer.error_bound
        if answer.ranks or math.isinf(bound):
            return ""
        if not answer.groups:
            return LITTLE if bound > abs(answer.value) else ""
        small = sum(bound > count for count in answer.value.values())
        counts = f"{small:,} of the {len(answer.value):,} counts"
        return f"the bound is larger than {counts}: those tell little" if small else ""

    def show(self, output: Output, *, question: bool = False) -> None:
        """Print the answer for people, below its question if that is wanted."""
        if question:
            output.say(f"> {one_line(self.question)}")
        if self.answer.testing:
            output.say("NOT PRIVATE: a testing ledger")
        output.say(self.one, style="bold")
        if self.answer.groups:
            answer, groups = self.answer, self._groups()[:_ROWS_SHOWN]
            shares = answer.fraction is not None and output.width >= _NARROW
            rows = [
                (
                    *("missing" if level is None else str(level) for level in each["group"].values()),
                    each["count"],
                    *([f"{100 * each['fraction']:.3g} %"] if shares else []),
                )
                for each in groups
            ]
            output.table([*map(one_line, answer.groups), "count", *(["of the people"] if shares else [])], rows)
            if len(groups) < len(answer.value):
                output.say(f"... and {len(answer.value) - len(groups):,} groups more: --json has all of them")
        if self.little:
            output.say(self.little)
        if self.clipped is not None:
            output.say(self.clipped["note"])
        if self.answer.population is not None:
            near = round_up(100 * self.answer.population)
            output.say(f"± {near} % of the population, if the rows are a random sample of it")
        output.say(f"{self.cost}; {self.left}")

    def _groups(self) -> list[dict[str, Any]]:
        answer, several = self.answer, len(self.answer.groups) > 1
        return [
            {
                "group": dict(zip(answer.groups, key if several else (key,), strict=True)),
                "count": count,
                "fraction": None if answer.fraction is None else answer.fraction[key],
            }
            for key, count in answer.value.items()
        ]

    def record(self) -> dict[str, Any]:
        """The answer for programs: everything, numbers as they are. A bound of null is infinite."""
        answer, finite = self.answer, math.isfinite(self.answer.error_bound)
        value = {"groups": self._groups()} if answer.groups else {"value": answer.value, "fraction": answer.fraction}
        return {
            **({"warning": "NOT PRIVATE"} if answer.testing else {}),
            "question": self.question,
            **value,
            "error_bound": answer.error_bound if finite else None,
            "error_bound_fraction": answer.error_bound / self.size if finite and self.counts else None,
            "unit": answer.unit,
            "tells_little": (self.little or None) if finite else NO_BOUND,
            "clipped": self.clipped,
            "population_bound_fraction": answer.population,
            "source": answer.source,
            "cost": self.cost,
            "price": cast("dp.funds.Cost", answer.price).record(),
            "left": self.left.record(),
            "more_like_this": self.left.more,
        }


def rounded(value: float, bound: float) -> tuple[str, str]:
    """A value with the digits that its bound leaves it, and the bound with what that took away, rounded up: the truth
    lies between the two numbers that are shown."""
    if not 0 < bound < math.inf:
        return f"{value:,.12g}", "0" if bound == 0 else NO_BOUND
    decimals = 3 - math.floor(math.log10(bound))
    near = round(value, decimals)
    shown = f"{near:,.{max(0, decimals)}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown, round_up(bound + abs(near - value))


def round_up(bound: float) -> str:
    """Three digits, rounded up: a bound must not be shown as less than it is."""
    if bound == 0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(bound)) - 2)
    return f"{math.ceil(bound / unit) * unit:,.6g}"


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
