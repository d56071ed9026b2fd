"""Running a classic program of private multiplicative weights (`multiplicative_weights_parameters`) over a ledger.

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

from discreet.answering.answer import Answer
from discreet.answering.linear_query import constant, linear, meaning
from discreet.answering.multiplicative_weights_parameters import Classic, least_alpha, posed, remade
from discreet.answering.transcript import SessionRequest, Transcript
from discreet.core import ConversationOver, Exact, ParameterError, Price, Rng, exact, record
from discreet.data import Dataset, Facts
from discreet.hypothesis import MAX_DENSE, Dense, Linear
from discreet.ledger import Ledger
from discreet.mechanisms import Conversation, IsFar, Mechanism
from discreet.query import Count, Question
from discreet.release import Open, converse, release, reopen


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
        form = linear(question, self._domain)
        if form is None or not set(form.scope) <= set(self.program.columns):
            raise ParameterError(
                "this question mentions more cells than are listed, or a column that the hypothesis does not have"
            )
        return form

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
        self, program: Classic, table: Dataset, ledger: Ledger, *, allowance: str | None = None, rng: Rng | None = None
    ) -> None:
        problem = posed(table.facts, program.columns)
        if (problem.size, problem.cells) != (program.size, program.cells):
            raise ParameterError("this program was made for a table with other facts")
        self.program, self.table, self.ledger, self.allowance, self.rng = program, table, ledger, allowance, rng
        self.charged_to: dict[str, Any] = {"ledger": ledger, "allowance": allowance, "rng": rng}
        self.facts: Facts = table.facts
        self.transcript = Transcript(ledger, self.facts, manner=program.manner, threshold=type(program.threshold))
        self.weights = Weights(program, self.facts)
        self._replayed = 0
        self._catch_up()
        if self.transcript.runs == 0 and not self._fits(program):
            best = least_alpha(lambda alpha: remade(program, alpha), self._fits)
            advice = "no alpha would" if best is None else f"alpha={float(best):.3g} would"
            raise ParameterError(
                f"alpha={float(program.alpha):g} is below what the budget can give at this size for "
                f"{program.questions} questions: its {program.thresholds} thresholds and {program.updates} "
                f"noisy answers do not fit what is left; {advice}"
            )

    def answer(self, query: Question) -> Answer:
        """One answer: free if it was given before or if the hypothesis is good enough."""
        if not isinstance(query, Count):
            raise ParameterError(
                f'this method answers counts, found a {type(query).__name__}; method="auto" answers sums and groups'
            )
        query.sensitivity(self.facts)  # says what is wrong with the question
        self.weights.form(query)
        known = self.remembered([query])
        return self.run(query) if known is None else known[0]

    def remembered(self, queries: Sequence[Question], weights: object = None) -> list[Answer] | None:
        """The answers, if all of these were answered before, or are public; writes nothing and waits for nobody."""
        self._catch_up()
        known, domain = [], self.facts.domain
        for query in queries:
            if not isinstance(query, Count):
                return None
            said, everybody = self.transcript.said(meaning(query, domain)), constant(query, domain)
            if said is not None:
                known.append(replace(said, source="cache", price=0))
            elif everybody is not None:
                known.append(Answer(np.array(self.facts.size if everybody else 0), 0.0, "public"))
            else:
                return None
        return known

    def answer_parts(self, queries: Sequence[Question], weights: Sequence[Exact] | None = None) -> list[Answer]:
        """The answers to the parts of a question; the first has the price of them all."""
        found = [self.answer(query) for query in queries]
        told = [replace(one, errors=np.full(np.shape(one.value), one.error_bound), price=0) for one in found]
        return [replace(told[0], price=sum(one.price for one in found)), *told[1:]]

    def bill(self, queries: Sequence[Question], weights: object = None) -> list[Mechanism | Conversation]:
        """At most a threshold, unless one is open, and a noisy count, for each that is not known."""
        if self.remembered(queries) is not None:
            return []
        opened = [] if self.transcript.open_run is not None else [self.program.threshold]
        return [*opened, self.program.measurement(Count())] * len(queries)

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

    def run(self, query: Count) -> Answer:
        """One step for a new question."""
        request = self._request(query)
        if request.stored is not None:
            # Paid for by a process that died before it could say it. The hypothesis may have changed since: an answer
            # that updates nothing.
            return self._say_noisy(query, request.value, "direct", 0, request.stored.entry)
        self._refuse_if_over()
        paid = 0
        while True:
            talk, opened = self.threshold()
            paid += opened
            guess, updates = self.weights.guess(query), self.weights.updates
            try:
                top = talk.ask(IsFar(query, (guess,), self.program.theta))
                break
            except ConversationOver:  # it ended elsewhere, or its secret is not beside the ledger
                self._catch_up()
                if self.transcript.open_run is not None and self.transcript.open_run.entry == talk.charge:
                    self.transcript.open_run = None
                self._refuse_if_over()
        if not top:
            return self.say(query, Answer(np.array(guess), float(self.program.near), "hypothesis", paid))
        return self.measure(query, updates, paid)

    def threshold(self) -> tuple[Open, int]:
        """The open threshold, or a new one and what it cost."""
        run = self.transcript.open_run
        if run is not None:
            return reopen(run.conversation, self.table, charge=run.entry, ledger=self.ledger, rng=self.rng), 0
        self._refuse_if_over()
        talk = converse(self.program.threshold, self.table, memo=self.program.manner, **self.charged_to)
        self._catch_up()
        return talk, self._nano(self.ledger.price(talk.guarantee))

    def measure(self, query: Count, updates: int, paid: int) -> Answer:
        """The noisy count, after a threshold has said that the guess is far off. If it does not fit: no answer."""
        self._catch_up()
        if self.transcript.tops > self.program.updates:
            raise ConversationOver("it has made all the updates that its promise leaves room for")
        noisy, memo, request = self.program.measurement(query), self.program.manner, self._request(query).name
        got = release(noisy, self.table, memo=memo, request=request, **self.charged_to)
        self._catch_up()
        # If another process updated meanwhile nothing is proved about the gap any more: this answer updates nothing.
        source = "measurement" if self.weights.updates == updates else "direct"
        return self._say_noisy(query, got.value, source, paid + self._nano(got.price), got.entry)

    def say(self, query: Count, answer: Answer, *, made_from: int | None = None) -> Answer:
        """Record an answer, and update the hypothesis by it if it was measured."""
        same = meaning(query, self.facts.domain)
        self.transcript.say(query, same, self.program.beta, answer, made_from=made_from)
        self._catch_up()
        return answer

    def _say_noisy(self, query: Count, released: Any, source: str, price: int, entry: int) -> Answer:
        """Say a noisy count, which is not negative nor more than there are persons."""
        value = min(max(int(released), 0), self.program.size)
        return self.say(query, Answer(np.array(value), float(self.program.error), source, price), made_from=entry)

    def _request(self, query: Count) -> SessionRequest:
        return self.transcript.asked([record(self.program.beta), self.allowance], record(query))

    def _refuse_if_over(self) -> None:
        if self.over:
            raise ConversationOver(self.over)

    def _catch_up(self) -> None:
        """Read what is new in the ledger and replay its updates."""
        self.transcript.catch_up()
        news = self.transcript.answers[self._replayed :]
        for said in news:
            if said.source == "measurement" and isinstance(said.question, Count):
                self.weights.update(said.question, int(said.value))
        self._replayed += len(news)

    def _nano(self, price: Price) -> int:
        return (price.pure if self.ledger.caps.renyi is None else price.renyi) or 0

    def _fits(self, program: Classic) -> bool:
        """Whether all that the program may ever charge, in the ledger's own integers, is left in one of its books."""
        left = self.ledger.remaining(allowance=self.allowance)
        threshold = self.ledger.price(program.threshold.guarantee(self.facts))
        answer = self.ledger.price(program.measurement(Count()).guarantee(self.facts))
        books = [[getattr(one, book) for one in (threshold, answer, left)] for book in ("renyi", "pure")]
        paid = (program.thresholds, program.updates)
        return any(None not in book and paid[0] * book[0] + paid[1] * book[1] <= book[2] for book in books)
