"""Attacks on answering: short sessions whose whole law is listed, beside sessions with one mistake.

A session is a program over releases and thresholds; what it may get wrong is between them. Each attack runs the code
that users run, on a toy table, along every path of its randomness (`audit.programs`), and compares what the analyst
sees with what the ledger charged. A mistake is planted in the object that answers; each kind of session knows where.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

import discreet as dp
from discreet.answering import (
    BETTER,
    LECTURE,
    SOURCES,
    AdaptiveAnswers,
    Answer,
    Classic,
    ClassicAnswers,
    Inquiry,
    SessionTerms,
    meaning,
)
from discreet.audit.divergence import Finding
from discreet.audit.laws import Row, Setting, rows
from discreet.audit.mutants import Mistake, Twin, mistake, never_stops
from discreet.audit.programs import Program, Visit, program_law, pure_finding
from discreet.hypothesis import THOROUGH, Effort, fit
from discreet.mechanisms import AboveThreshold, AboveThresholdLaplace, IsFar
from discreet.query import Question

_HALF = Fraction(1, 2)


def _truth(answers: Any, question: Question) -> Any:
    return answers.table.exact_sum(question)


def _spoiled(talk: Any, wrong: Mistake) -> Any:
    """An open threshold whose conversation has this mistake."""
    return replace(talk, conversation=Twin(talk.conversation, wrong))


@dataclass(frozen=True, slots=True)
class MultiplicativeWeights:
    """A classic program, of any public parameters; and where a mistake is planted in it."""

    program: Classic

    def answers(self, visit: Visit) -> ClassicAnswers:
        return ClassicAnswers(self.program, visit.table, visit.ledger, rng=visit.rng)

    def hypothesis(self, answers: ClassicAnswers) -> Any:
        return answers.weights.hypothesis

    def spoil_threshold(self, answers: Any, wrong: Mistake) -> None:
        honest = answers.threshold

        def threshold() -> tuple[Any, int]:
            talk, paid = honest()
            return _spoiled(talk, wrong), paid

        answers.threshold = threshold

    def answer_uncharged(self, answers: Any) -> None:
        def measured(question: Any, updates: int, paid: int) -> Any:
            noisy = _truth(answers, question) + answers.rng.laplace(Fraction(1, 6))
            return answers.say(question, Answer(np.array(noisy), 1.0, "measurement", paid))

        answers.measure = measured

    def learn_truth(self, answers: Any) -> None:
        update = answers.weights.update
        answers.weights.update = lambda question, answer: update(question, int(_truth(answers, question)))

    def peek(self, answers: Any) -> None:
        honest = answers.run

        def near(question: Any) -> Any:
            guess = answers.weights.guess(question)
            if abs(int(_truth(answers, question)) - guess) < 1:
                return answers.say(question, Answer(np.array(guess), 1.0, "hypothesis"))
            return honest(question)

        answers.run = near


@dataclass(frozen=True, slots=True)
class RentOrBuy:
    """A session of the default kind that comes to a ledger with a past; and where a mistake is planted in it.

    past   histograms that were released with noise of scale 2, and what they happened to be
    saved  what a threshold would have saved so far, in nano-units: 0 if none is to be opened
    """

    terms: SessionTerms
    past: tuple[tuple[str, tuple[int, ...]], ...] = ()
    saved: int = 0

    def answers(self, visit: Visit) -> AdaptiveAnswers:
        for column, value in self.past:
            visit.plant(dp.Laplace(dp.Histogram(column), 2), value)
        answers = AdaptiveAnswers(visit.table, visit.ledger, self.terms, rng=visit.rng)
        if self.saved:
            unasked = dp.Count(dp.Not(dp.And()))
            before = Answer(np.array(0), 0.0, "direct", self.saved, missed=False)
            answers.transcript.say(unasked, meaning(unasked, visit.table.facts.domain), self.terms.beta, before)
        return answers

    def hypothesis(self, answers: AdaptiveAnswers) -> Any:
        return answers.hypothesis()

    def spoil_threshold(self, answers: Any, wrong: Mistake) -> None:
        honest = answers.reopened
        answers.reopened = lambda *run: _spoiled(honest(*run), wrong)

    def answer_uncharged(self, answers: Any) -> None:
        def measure(inquiry: Inquiry) -> Answer:
            return Answer(_truth(answers, inquiry.query) + answers.rng.laplace(Fraction(1, 6)), 1.0, "direct")

        answers.sources = (*SOURCES, measure)

    def learn_truth(self, answers: Any) -> None:
        def fit_truth(known: int, effort: Effort = THOROUGH) -> Any:
            measured = answers.transcript.measured[:known]
            exact = [replace(one, value=_truth(answers, one.query) * one.unit) for one in measured]
            return fit(exact, answers.facts.domain, total=answers.calibration.total, effort=effort)

        answers.fit_to = fit_truth

    def peek(self, answers: Any) -> None:
        *free, threshold = SOURCES

        def peeking(inquiry: Inquiry) -> Answer | None:
            far = inquiry.guess is not None and abs(_truth(answers, inquiry.query) - inquiry.guess).max() > 1
            return threshold(inquiry) if far else None

        answers.sources = (*free, peeking)


def asking(honest: Any, questions: Sequence[Question], wrong: Mistake | None = None) -> Program:
    """The analyst who asks these questions and looks at the answers, and at the hypothesis in the end."""

    def program(visit: Visit) -> None:
        answers = honest.answers(visit)
        if wrong is not None and wrong.plant is not None:
            wrong.plant(honest, answers)
        for question in questions:
            visit.ask(answers.answer, question)
        hypothesis = honest.hypothesis(answers)  # over all columns; anybody may draw synthetic rows from it
        visit.note(None if hypothesis is None else np.round(hypothesis.marginal(answers.facts.domain.names), 9))

    return program


@dataclass(frozen=True, slots=True)
class SessionAttack:
    """One session, two neighbouring tables, the questions, and a mistake that the attack must catch."""

    honest: MultiplicativeWeights | RentOrBuy
    setting: Setting
    first: tuple[Row, ...]
    second: tuple[Row, ...]
    mistake: Mistake
    questions: tuple[Question, ...]
    budget: dp.Budget
    reach: int = 5
    least: float = 1e-4

    @property
    def name(self) -> str:
        return type(self.honest).__name__

    def finding(self, mistake: Mistake | None = None) -> Finding:
        """How near the charges come to being refuted: of the honest session, or of one with this mistake."""
        program = asking(self.honest, self.questions, mistake)
        listed = partial(program_law, program, setting=self.setting, budget=self.budget)
        return pure_finding(*(listed(table, reach=self.reach, least=self.least) for table in (self.first, self.second)))


# --- mistakes --------------------------------------------------------------------------------------------------------


@mistake("adds one-sided noise inside the distance", "step")
def noise_inside(honest: Any, state: Any, ask: IsFar, data: Any, rng: Any) -> tuple[Any, Any]:
    """|value - guess + noise| instead of |value - guess| + noise."""
    draw = {AboveThreshold: rng.geometric, AboveThresholdLaplace: rng.laplace}[type(honest)]
    noise = int(draw(honest.question_scale / honest.sensitivity)) * honest.sensitivity
    values = data.exact_sum(ask.query).ravel()
    furthest = max(abs(int(value) - guess + noise * ask.worth) for value, guess in zip(values, ask.guess, strict=True))
    above = Fraction(furthest, ask.worth) - ask.threshold >= state * honest.sensitivity
    return (None if above else state), above


inside_distance = Mistake(
    noise_inside.label, plant=lambda session, answers: session.spoil_threshold(answers, noise_inside)
)
uncharged = Mistake(
    "does not charge the noisy answer", plant=lambda session, answers: session.answer_uncharged(answers)
)
true_update = Mistake(
    "updates its hypothesis from the true answer", plant=lambda session, answers: session.learn_truth(answers)
)
peeks = Mistake("asks only where the guess is far from the truth", plant=lambda session, answers: session.peek(answers))


@mistake("asks on with a threshold that has said yes", "plant")
def two_tops(session: MultiplicativeWeights, answers: Any) -> None:
    """A yes ends nothing; what would be measured then is left out here, the yes is seen."""

    def refused(question: Any, updates: int, paid: int) -> Answer:
        raise dp.errors.ConversationOver("too far")

    session.spoil_threshold(answers, never_stops)
    answers.measure = refused


# --- toys -------------------------------------------------------------------------------------------------------------

LETTERS = Setting(dp.Domain(v=dp.Category("a", "b", "c")), dp.Neighbours("replace-one"))
BITS = Setting(dp.Domain(a=dp.Category(0, 1), b=dp.Category(0, 1)), dp.Neighbours("replace-one"))
A, B, C, NOT_A, NOT_B = (dp.Count(dp.Among("v", tuple(letters))) for letters in ("a", "b", "c", "bc", "ac"))
BOTH = dp.Count(dp.And(dp.Equals("a", 1), dp.Equals("b", 1)))
DIFFERENT = dp.Count(dp.Or(dp.And(dp.Equals("a", 1), dp.Equals("b", 0)), dp.And(dp.Equals("a", 0), dp.Equals("b", 1))))


def toy(method: str, *, size: int, theta: int = 1, updates: int = 2, kind: str = "laplace") -> MultiplicativeWeights:
    """A program for a handful of persons in three cells: no promise, but every step, and noise of few values."""
    scales = (_HALF, _HALF)
    threshold = AboveThresholdLaplace(*scales) if method == LECTURE else AboveThreshold(*scales)
    asked: dict[str, Any] = {"columns": ("v",), "cells": 3, "alpha": _HALF, "beta": _HALF, "questions": 5}
    noise: dict[str, Any] = {"threshold": threshold, "theta": Fraction(theta), "kind": kind, "scale": _HALF}
    bounds: dict[str, Any] = {"near": 2, "error": 1, "far": Fraction(2), "updates": updates}
    return MultiplicativeWeights(Classic(method=method, size=size, **asked, **noise, **bounds))


RENTER = RentOrBuy(SessionTerms(Fraction(49, 100), Fraction(9, 10), 2), (("a", (2, 2)), ("b", (2, 2))), 10**13)
"""Has 4 persons and hypotheses for two columns; thinks that a threshold is worth its price."""


def session_attacks() -> tuple[SessionAttack, ...]:
    """Every attack on answering.

    With one person of each letter expected, a person who moves from a to b brings A nearer to its guess and B further
    away from it: a no about B and a yes about A tell most.
    """
    weights, lecture = toy(BETTER, size=3), toy(LECTURE, size=3)
    silent = toy(BETTER, size=3, updates=0)  # thresholds only: a yes is the end
    far = toy(BETTER, size=9, theta=3, updates=0)
    aab, abb, aac, abc, bs, bs_a = (rows("v", *word) for word in ("aab", "abb", "aac", "abc", "b" * 9, "b" * 8 + "a"))
    bits, more_bits = rows("ab", "11", "11", "11", "00"), rows("ab", "11", "11", "10", "00")
    enough, little = dp.Budget(40), dp.Budget(45)
    return (
        SessionAttack(silent, LETTERS, aab, abb, two_tops, (B, A, NOT_A), enough, least=1e-5),
        SessionAttack(far, LETTERS, bs, bs_a, inside_distance, (A,), enough),
        SessionAttack(weights, LETTERS, aab, abb, uncharged, (A,), enough, least=1e-5),
        SessionAttack(weights, LETTERS, aac, abc, true_update, (A,), enough, least=1e-5),
        SessionAttack(lecture, LETTERS, aab, abb, peeks, (A,), enough),
        SessionAttack(RENTER, BITS, bits, more_bits, peeks, (BOTH,), little),
        SessionAttack(replace(RENTER, saved=0), BITS, bits, more_bits, uncharged, (BOTH,), little),
        SessionAttack(RENTER, BITS, bits, more_bits, true_update, (), little),
    )
