"""Running a classic program of private multiplicative weights (`programs.py`) over a ledger.

A program opens a threshold (charged), asks it whether the rounded guess is far from the truth, gives the guess if not,
and otherwise releases the count with noise (charged) and updates the hypothesis. Everything counts in whole persons.
Its state is what the ledger says: the thresholds it opened and the answers it gave. The hypothesis is replayed from
the noisy answers, so a program that was killed goes on where it stopped.

Theorem and proof: docs/proofs/multiplicative_weights.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import exact
from discreet.answering.linear_query import constant, linear, meaning
from discreet.answering.multiplicative_weights_parameters import (
    BETTER,
    LECTURE,
    Classic,
    Posed,
    better,
    better_for,
    least_alpha,
    lecture,
    lecture_for,
    posed,
    program,
)
from discreet.answering.transcript import Given, Request, Said, Transcript
from discreet.data import Dataset, Facts
from discreet.errors import ConversationOver, ParameterError
from discreet.funds import Price
from discreet.hypothesis import MAX_DENSE, Dense, Linear
from discreet.ledger import Ledger
from discreet.mechanisms import Far
from discreet.query import Count
from discreet.records import record
from discreet.release import Open, converse, release, reopen
from discreet.rng import Rng

__all__ = ["BETTER", "LECTURE", "Classic", "ClassicAnswers", "Weights", "better", "lecture", "program"]


class Weights:
    """The hypothesis of a program, replayed from its noisy answers: public.

    potential  ln|D| minus all proved falls of KL(table || hypothesis). Below 0 the good event has failed.
    """

    def __init__(self, program: Classic, facts: Facts) -> None:
        if program.cells > MAX_DENSE:
            raise ParameterError(
                f"this domain has {exact.shown(Fraction(program.cells))} cells, a hypothesis at most {MAX_DENSE:,}: "
                'name the columns that will be asked about, or use method="auto"'
            )
        self.program, self._domain = program, facts.domain
        self.hypothesis = Dense({name: facts.domain.column(name).size for name in program.columns})
        self.potential, self.updates = program.start, 0

    def form(self, question: Count) -> Linear:
        """The question's set of cells, if the hypothesis has them."""
        found = linear(question, self._domain)
        if found is None or not set(found.scope) <= set(self.program.columns):
            raise ParameterError(
                "this question mentions more cells than are listed, or a column that the hypothesis does not have"
            )
        return found

    def share(self, question: Count) -> float:
        """Of the hypothesis, how much satisfies the question."""
        return min(1.0, max(0.0, float(self.hypothesis.mean(self.form(question)))))

    def guess(self, question: Count) -> int:
        """The same in whole persons."""
        return round(self.program.size * self.share(question))

    def update(self, question: Count, answer: int) -> float:
        """Multiply and normalize; the proved fall of KL."""
        form, share = self.form(question), self.share(question)
        eta, drop = self.program.step(share, self.guess(question), answer)
        self.hypothesis.multiply(form.scope, form.spread(np.asarray(eta)))
        self.potential -= drop
        self.updates += 1
        return drop


class ClassicAnswers:
    """Answers counts about one table from one ledger, by a classic program.

    A process that dies between a charge and its answer costs the program one threshold, never its promise: it opens at
    most `thresholds` and makes at most `updates`, and what was not answered changes nothing.
    """

    def __init__(
        self,
        program: Classic,
        table: Dataset,
        ledger: Ledger,
        *,
        allowance: str | None = None,
        rng: Rng | None = None,
    ) -> None:
        found = posed(table.facts, program.columns)
        if (found.size, found.cells) != (program.size, program.cells):
            raise ParameterError("this program was made for a table with other facts")
        self.program, self.table, self.ledger = program, table, ledger
        self.facts: Facts = table.facts
        self.transcript = Transcript(ledger, self.facts, manner=program.manner, threshold=type(program.threshold))
        self.weights = Weights(program, self.facts)
        self._how: dict[str, Any] = {"ledger": ledger, "allowance": allowance, "rng": rng}
        self._replayed = 0
        self._catch_up()
        if self.transcript.runs == 0:
            self._require_room()

    def answer(self, question: Count) -> Given:
        """One answer: free if it was given before or if the hypothesis is good enough."""
        if not isinstance(question, Count):
            raise ParameterError(
                f'this method answers counts, found a {type(question).__name__}; method="auto" answers sums and groups'
            )
        question.sensitivity(self.facts)  # says what is wrong with the question
        self.weights.form(question)
        self._catch_up()
        return self._remembered(question) or self._asked(question)

    def remembered(self, questions: Sequence[Any]) -> list[Given] | None:
        """The answers, if all of these were answered before, or are public; writes nothing and waits for nobody."""
        self._catch_up()
        found = [self._remembered(each) if isinstance(each, Count) else None for each in questions]
        return [each for each in found if each is not None] if None not in found else None

    def _remembered(self, question: Count) -> Given | None:
        said = self.transcript.said(meaning(question, self.facts.domain))
        if said is not None:
            return replace(said.given, source="cache", price=0)
        everybody = constant(question, self.facts.domain)
        return None if everybody is None else Given(np.array(self.facts.size if everybody else 0), 0.0, "public")

    def require(self, questions: Sequence[object]) -> None:
        """Nothing to check: a count is one step."""

    def hypothesis(self) -> Dense | None:
        """The distribution to draw synthetic rows from; None before the first update."""
        self._catch_up()
        return self.weights.hypothesis if self.weights.updates else None

    @property
    def asked(self) -> int:
        """How many questions went to a threshold so far, under every declaration and edition of the table."""
        return self.transcript.guesses + self.transcript.tops

    @property
    def over(self) -> str:
        """Why no more new questions are answered; empty if they are."""
        program, transcript = self.program, self.transcript
        if self.weights.potential < -1e-6:
            return "its promise has failed, which had probability at most beta: the updates contradict each other"
        if transcript.open_run is None and transcript.runs >= program.thresholds:
            return f"all of its {program.thresholds} thresholds are used; the promise leaves room for no more updates"
        if self.asked >= program.questions:
            return f"it was made for {program.questions} questions"
        return ""

    def __repr__(self) -> str:
        weights, program = self.weights, self.program
        return (
            f"<{program.method}: {self.asked} of {program.questions} questions, {weights.updates} of at most "
            f"{program.updates} updates, potential {weights.potential:.4g} of {program.start:.4g}>"
        )

    # The program.

    def _asked(self, question: Count) -> Given:
        request = self._request(question)
        if request.stored is not None:
            # Paid for by a process that died before it could say it. The hypothesis may have changed since: an answer
            # that updates nothing.
            return self._answered(question, request.value, "direct", 0, request.stored.entry)
        if self.over:
            raise ConversationOver(self.over)
        paid = 0
        while True:
            talk, opened = self._threshold()
            paid += opened
            guess, updates = self.weights.guess(question), self.weights.updates
            try:
                top = talk.ask(Far(question, (guess,), self.program.theta))
                break
            except ConversationOver:  # it ended elsewhere, or its secret is not beside the ledger
                self._lost(talk.charge)
        if not top:
            return self._say(question, Given(np.array(guess), float(self.program.near), "hypothesis", paid))
        return self._measured(question, updates, paid)

    def _request(self, question: Count) -> Request:
        return self.transcript.asked([record(self.program.beta), self._how["allowance"]], record(question))

    def _measured(self, question: Count, updates: int, paid: int) -> Given:
        """The noisy count, after a threshold has said that the guess is far off. If it does not fit: no answer."""
        self._catch_up()
        if self.transcript.tops > self.program.updates:
            raise ConversationOver("it has made all the updates that its promise leaves room for")
        how: dict[str, Any] = {"memo": self.program.manner, "request": self._request(question).name, **self._how}
        got = release(self.program.measurement(question), self.table, **how)
        self._catch_up()
        # If another process updated meanwhile nothing is proved about the gap any more: this answer updates nothing.
        source = "measurement" if self.weights.updates == updates else "direct"
        return self._answered(question, got.value, source, paid + self._nano(got.price), got.entry)

    def _answered(self, question: Count, released: Any, source: str, price: int, entry: int) -> Given:
        """Say a noisy count, which is not negative nor more than there are persons."""
        value = min(max(int(released), 0), self.program.size)
        given = Given(np.array(value), float(self.program.error), source, price)
        return self._say(question, given, made_from=entry)

    def _threshold(self) -> tuple[Open, int]:
        """The open threshold, or a new one and what it cost."""
        run = self.transcript.open_run
        if run is not None:
            rng = self._how["rng"]
            return reopen(run.conversation, self.table, charge=run.entry, ledger=self.ledger, rng=rng), 0
        if self.over:
            raise ConversationOver(self.over)
        talk = converse(self.program.threshold, self.table, memo=self.program.manner, **self._how)
        self._catch_up()
        return talk, self._nano(self.ledger.price(talk.guarantee))

    def _lost(self, entry: int) -> None:
        self._catch_up()
        if self.transcript.open_run is not None and self.transcript.open_run.entry == entry:
            self.transcript.forget_run()
        if self.over:
            raise ConversationOver(self.over)

    def _catch_up(self) -> None:
        """Read what is new in the ledger and replay its updates."""
        self.transcript.catch_up()
        news: list[Said] = self.transcript.answers[self._replayed :]
        for said in news:
            if said.given.source == "measurement" and isinstance(said.question, Count):
                self.weights.update(said.question, int(said.given.value))
        self._replayed += len(news)

    def _say(self, question: Count, given: Given, *, made_from: int | None = None) -> Given:
        same = meaning(question, self.facts.domain)
        said = self.transcript.say(question, same, self.program.beta, given, made_from=made_from)
        self._catch_up()
        return said

    def _nano(self, price: Price) -> int:
        found = price.pure if self.ledger.budget.delta == 0 else price.renyi
        return found or 0

    # Before anything is spent.

    def _require_room(self) -> None:
        if self._fits(self.program):
            return
        best = least_alpha(self._remade, self._fits)
        advice = "no alpha would" if best is None else f"alpha={float(best):.3g} would"
        raise ParameterError(
            f"alpha={float(self.program.alpha):g} is below what the budget can give at this size for "
            f"{self.program.questions} questions: its {self.program.thresholds} thresholds and {self.program.updates} "
            f"noisy answers do not fit what is left; {advice}"
        )

    def _remade(self, alpha: Fraction) -> Classic:
        """The same program for another alpha."""
        program = self.program
        problem = Posed(program.size, program.columns, program.cells)
        if program.method == LECTURE:
            return lecture_for(problem, alpha, program.beta, program.questions)
        return better_for(problem, alpha, program.beta, program.questions, pure=program.kind == "laplace")

    def _fits(self, program: Classic) -> bool:
        """Whether all that the program may ever charge, in the ledger's own integers, is left in one of its books."""
        left = self.ledger.remaining(allowance=self._how["allowance"])
        threshold = self.ledger.price(program.threshold.guarantee(self.facts))
        answer = self.ledger.price(program.measurement(Count()).guarantee(self.facts))

        def room(of_threshold: int | None, of_answer: int | None, remaining: int | None) -> bool:
            if of_threshold is None or of_answer is None or remaining is None:
                return False
            return program.thresholds * of_threshold + program.updates * of_answer <= remaining

        return room(threshold.renyi, answer.renyi, left.renyi) or room(threshold.pure, answer.pure, left.pure)
