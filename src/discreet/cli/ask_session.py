"""A session of the command line: it asks questions and says what each cost and what is left."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import discreet as dp
from discreet.cli.answer_view import AnswerView
from discreet.cli.columns import clipping
from discreet.cli.options import OpenTable
from discreet.cli.price_view import Remaining


class AskSession:
    """A `discreet.Session` with its output. `renew` starts again from the ledger."""

    def __init__(self, at: OpenTable, terms: dict[str, Any]) -> None:
        self.at, self.output, self.terms, self.ledger = at, at.output, terms, at.ledger
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

    def ask(self, question: str, words: str = "asking") -> AnswerView:
        with self.output.working(words):
            answer = self.session.ask(question)
            return self._view(question, answer, self.session.more_like(answer))

    def ask_together(self, questions: Sequence[str], share: str) -> list[AnswerView]:
        """All answers as one release."""
        with self.output.working(f"asking {len(questions):,} questions"):
            answers = self.session.answer_all(questions, share=share)
            return [self._view(*each, None) for each in zip(questions, answers, strict=True)]

    def left(self) -> Remaining:
        return Remaining(*self.session.budget(), self.terms["allowance"])

    def _view(self, question: str, answer: dp.Answer, more: int | None) -> AnswerView:
        things = "question like this" if answer.price else "paid count"
        several = "questions like this" if answer.price else "paid counts"
        left = Remaining(*self.session.budget(), self.terms["allowance"], more, (things, several))
        facts = self.at.table.facts
        clipped = clipping(question, facts.domain, self.at.table.identity.name)
        return AnswerView(question, answer, left, max(1, facts.size or 1), clipped)


def bare(line: str) -> str:
    """A question without what is around it; nothing for an empty line and a comment."""
    text = line.strip()
    return "" if text.startswith("--") else text.rstrip(";").rstrip()
