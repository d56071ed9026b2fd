"""Attacks on answering: short sessions whose whole law is listed, beside sessions with one mistake.

A session is a program over releases and thresholds; what it may get wrong is between them. Each attack runs the code
that users run, on a toy table, along every path of its randomness (`audit.programs`), and compares what the analyst
sees with what the ledger charged. A `Slip` is a mistake planted in the object that answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.answering import AdaptiveAnswers, Answer, Classic, ClassicAnswers, Question, Terms, meaning
from discreet.answering.adaptive import SOURCES, Inquiry
from discreet.answering.multiplicative_weights_parameters import BETTER, LECTURE
from discreet.audit import mutants
from discreet.audit.divergence import Finding
from discreet.audit.laws import Row, Setting
from discreet.audit.mutants import Mistake, Twin
from discreet.audit.programs import Program, Visit, program_law, pure_finding
from discreet.data import Category, Dataset, Domain
from discreet.errors import BudgetExceeded, ConversationOver
from discreet.exact import Exact
from discreet.guarantee import Budget, Neighbours
from discreet.hypothesis import Fit, fit
from discreet.mechanisms import AboveThreshold, AboveThresholdLaplace, Far, Laplace
from discreet.query import Among, And, Count, Equals, Histogram, Not, Or
from discreet.rng import Rng

_HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class Slip:
    """A mistake, and how it gets into the object that answers."""

    label: str
    plant: Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class MultiplicativeWeights:
    """A classic program, of any public parameters."""

    program: Classic

    def answers(self, visit: Visit) -> ClassicAnswers:
        return ClassicAnswers(self.program, visit.table, visit.ledger, rng=visit.rng)


@dataclass(frozen=True, slots=True)
class RentOrBuy:
    """A session of the default kind that comes to a ledger with a past.

    past   histograms that were released with noise of scale 10, and what they happened to be
    saved  what a threshold would have saved so far, in nano-units: 0 if none is to be opened
    """

    terms: Terms
    past: tuple[tuple[str, tuple[int, ...]], ...] = ()
    saved: int = 0

    def answers(self, visit: Visit) -> AdaptiveAnswers:
        for column, value in self.past:
            visit.plant(Laplace(Histogram(column), 10), value)
        made = AdaptiveAnswers(visit.table, visit.ledger, self.terms, rng=visit.rng)
        if self.saved:
            everybody = Count(Not(And()))  # asked by nobody
            before = Answer(np.array(0), 0.0, "direct", self.saved, missed=False)
            made.transcript.say(everybody, meaning(everybody, visit.table.facts.domain), self.terms.beta, before)
        return made


def asking(
    honest: MultiplicativeWeights | RentOrBuy, questions: Sequence[Question], slip: Slip | None = None
) -> Program:
    """The analyst who asks these questions and looks at the answers, and at the hypothesis in the end."""

    def program(visit: Visit) -> None:
        answers = honest.answers(visit)
        if slip is not None:
            slip.plant(answers)
        for question in questions:
            visit.ask(answers.answer, question)
        visit.note(_hypothesis(answers))

    return program


def _hypothesis(answers: ClassicAnswers | AdaptiveAnswers) -> Any:
    """The hypothesis over all columns; anybody may draw synthetic rows from it."""
    names = answers.facts.domain.names
    found = answers.hypothesis() if isinstance(answers, AdaptiveAnswers) else answers.weights.hypothesis
    return None if found is None else np.round(found.marginal(names), 9)


@dataclass(frozen=True, slots=True)
class Asking:
    """One session, two neighbouring tables, the questions, and a mistake that the attack must catch."""

    honest: MultiplicativeWeights | RentOrBuy
    setting: Setting
    first: tuple[Row, ...]
    second: tuple[Row, ...]
    mistake: Slip
    questions: tuple[Question, ...]
    budget: Budget
    reach: int = 5
    least: float = 1e-4

    def finding(self, mechanism: Any) -> Finding:
        """Of the honest session, or of `Twin(honest, slip)`."""
        broken = isinstance(mechanism, Twin)
        honest, slip = (mechanism.honest, mechanism.mistake) if broken else (mechanism, None)
        program = asking(honest, self.questions, slip)
        how: dict[str, Any] = {"budget": self.budget, "reach": self.reach, "least": self.least}
        p, q = (program_law(program, table, self.setting, **how) for table in (self.first, self.second))
        return pure_finding(p, q)


# --- mistakes in a threshold, wherever it is asked --------------------------------------------------------------------


def inside(honest: Any, state: Any, ask: Far, data: Dataset, rng: Rng) -> tuple[Any, Any]:
    """|value - guess + noise| instead of |value - guess| + noise."""
    draw = rng.geometric if isinstance(honest, AboveThreshold) else rng.laplace
    noise = int(draw(honest.question_scale / honest.sensitivity)) * honest.sensitivity
    values = data.exact_sum(ask.query.partial).ravel()
    furthest = max(abs(int(value) - guess + noise * ask.worth) for value, guess in zip(values, ask.guess, strict=True))
    above = Fraction(furthest, ask.worth) - ask.threshold >= state * honest.sensitivity
    return (None if above else state), above


INSIDE = Mistake("adds one-sided noise inside the distance", step=inside)


def in_threshold(mistake: Mistake) -> Slip:
    """This mistake in every threshold that a session asks."""
    return Slip(mistake.label, lambda answers: _plant_in_threshold(answers, mistake))


def _plant_in_threshold(answers: Any, mistake: Mistake) -> None:
    if isinstance(answers, AdaptiveAnswers):
        reopened = answers.reopened

        def twin(*run: Any) -> Any:
            talk = reopened(*run)
            return replace(talk, conversation=Twin(talk.conversation, mistake))

        answers.reopened = twin  # type: ignore[method-assign, assignment]
        return
    honest = answers.threshold

    def threshold() -> tuple[Any, int]:
        talk, paid = honest()
        return replace(talk, conversation=Twin(talk.conversation, mistake)), paid

    answers.threshold = threshold


# --- mistakes between the releases ------------------------------------------------------------------------------------


def _truth(answers: Any, question: Question) -> Any:
    return answers.table.exact_sum(question.partial)


def _uncharged(answers: Any) -> None:
    """The noisy answer is drawn and said, and nothing is charged for it."""

    def noisy(question: Question) -> Any:
        return _truth(answers, question) + answers.rng.laplace(Fraction(1, 6))

    if isinstance(answers, AdaptiveAnswers):
        free = lambda inquiry: Answer(noisy(inquiry.query), 1.0, "direct")  # noqa: E731
        answers.sources = (*SOURCES[:-1], free)
    else:
        answers.measure = lambda question, updates, paid: answers.say(
            question, Answer(np.array(noisy(question)), 1.0, "measurement", paid)
        )


def _true_update(answers: Any) -> None:
    """The hypothesis learns the exact counts of what was measured; what is said stays noisy."""
    if isinstance(answers, AdaptiveAnswers):
        answers.fit_to = lambda known: _fitted_to_the_truth(answers, known)  # type: ignore[method-assign]
    else:
        update = answers.weights.update
        answers.weights.update = lambda question, answer: update(question, int(_truth(answers, question)))


def _fitted_to_the_truth(answers: AdaptiveAnswers, known: int) -> Fit:
    measured = answers.transcript.measured[:known]
    exact = [replace(each, value=_truth(answers, each.query) * each.unit) for each in measured]
    return fit(exact, answers.facts.domain, total=answers.shop.total)


def _peeks(answers: Any) -> None:
    """Where the guess is near the truth the session does not pay for asking: it looks."""
    if isinstance(answers, AdaptiveAnswers):
        *free, threshold, measure = SOURCES

        def peeking(inquiry: Inquiry) -> Answer | None:
            far = inquiry.guess is not None and abs(_truth(answers, inquiry.query) - inquiry.guess).max() > 1
            return threshold(inquiry) if far else None

        answers.sources = (*free, peeking, measure)
        return
    honest = answers.run

    def near(question: Count) -> Answer:
        guess = answers.weights.guess(question)
        if abs(int(_truth(answers, question)) - guess) < 1:
            return answers.say(question, Answer(np.array(guess), 1.0, "hypothesis"))  # type: ignore[no-any-return]
        return honest(question)  # type: ignore[no-any-return]

    answers.run = near


def _kept_threshold(answers: ClassicAnswers) -> None:
    """Every threshold after the first is charged, and gets the noise of the first."""
    honest, secrets = answers.threshold, answers.ledger.store.secrets

    def threshold() -> tuple[Any, int]:
        talk, paid = honest()
        held = secrets.all()
        secrets.keep("first", held.get("first", next(iter(held.values()))))
        for each in set(secrets.all()) - {"first"}:
            secrets.keep(each, held.get("first", held[each]))
        return talk, paid

    answers.threshold = threshold  # type: ignore[method-assign]


def _reused_noise(answers: ClassicAnswers) -> None:
    """The answer after a yes is the value that was compared; its charge is there, its own noise is not used."""
    secrets, honest = answers.ledger.store.secrets, answers.measure

    def step(threshold: Any, state: Any, ask: Far, data: Dataset, rng: Rng) -> tuple[Any, Any]:
        noise = int(rng.geometric(threshold.question_scale))
        secrets.keep("noise", noise)
        above = ask.margin(data) + noise - state >= 0
        return (None if above else state), above

    def measured(question: Count, updates: int, paid: int) -> Answer:
        given = honest(question, updates, paid)
        return replace(given, value=_truth(answers, question) + secrets.get("noise"))

    _plant_in_threshold(answers, Mistake("keeps its noise", step=step))
    answers.measure = measured  # type: ignore[method-assign, assignment]


def _two_tops(answers: ClassicAnswers) -> None:
    """A yes ends nothing; what would be measured then is left out here, the yes is seen."""

    def refused(question: Count, updates: int, paid: int) -> Answer:
        raise ConversationOver("too far")

    _plant_in_threshold(answers, mutants.NEVER_STOPS)
    answers.measure = refused  # type: ignore[method-assign, assignment]


def _guess_without_budget(answers: ClassicAnswers) -> None:
    """After a yes that leaves nothing to pay a measurement with, the guess is given."""
    honest = answers.measure

    def measured(question: Count, updates: int, paid: int) -> Answer:
        try:
            return honest(question, updates, paid)
        except BudgetExceeded:
            guess = np.array(answers.weights.guess(question))
            return answers.say(question, Answer(guess, float(answers.program.near), "hypothesis", paid))

    answers.measure = measured  # type: ignore[method-assign, assignment]


TWO_TOPS = Slip("asks on with a threshold that has said yes", _two_tops)
INSIDE_DISTANCE = in_threshold(INSIDE)
UNCHARGED = Slip("does not charge the noisy answer", _uncharged)
TRUE_UPDATE = Slip("updates its hypothesis from the true answer", _true_update)
PEEKS = Slip("asks only where the guess is far from the truth", _peeks)
KEPT_THRESHOLD = Slip("keeps the first threshold's noise for the next", _kept_threshold)  # costs accuracy only
REUSED_NOISE = Slip("answers with the noise of its question", _reused_noise)
GUESS_WITHOUT_BUDGET = Slip("gives its guess after a yes that it cannot pay for", _guess_without_budget)  # likewise


# --- toys -------------------------------------------------------------------------------------------------------------

LETTERS = Setting(Domain(v=Category("a", "b", "c")), Neighbours("replace-one"))
BITS = Setting(Domain(a=Category(0, 1), b=Category(0, 1)), Neighbours("replace-one"))
A, B, C, NOT_A, NOT_B = (Count(Among("v", tuple(letters))) for letters in ("a", "b", "c", "bc", "ac"))
BOTH = Count(And(Equals("a", 1), Equals("b", 1)))
DIFFERENT = Count(Or(And(Equals("a", 1), Equals("b", 0)), And(Equals("a", 0), Equals("b", 1))))


def toy(method: str, *, size: int, theta: Exact = 1, updates: int = 2, kind: str = "laplace") -> MultiplicativeWeights:
    """A program for a handful of persons in three cells: no promise, but every step, and noise of few values."""
    scales = (_HALF, _HALF)
    threshold = AboveThresholdLaplace(*scales) if method == LECTURE else AboveThreshold(*scales)
    return MultiplicativeWeights(
        Classic(
            method=method,
            size=size,
            columns=("v",),
            cells=3,
            alpha=_HALF,
            beta=_HALF,
            questions=5,
            threshold=threshold,
            theta=Fraction(theta),
            kind=kind,
            scale=_HALF,
            near=2,
            error=1,
            far=Fraction(2),
            updates=updates,
        )
    )


RENTER = RentOrBuy(Terms(Fraction(49, 100), Fraction(9, 10), 2), (("a", (2, 2)), ("b", (2, 2))), 10**13)
"""Has 4 persons and hypotheses for two columns; thinks that a threshold is worth its price."""


def told() -> tuple[Asking, ...]:
    """Every attack on answering.

    With one person of each letter expected, a person who moves from a to b brings A nearer to its guess and B further
    away from it: a no about B and a yes about A tell most.
    """
    weights, lecture = toy(BETTER, size=3), toy(LECTURE, size=3)
    silent = toy(BETTER, size=3, updates=0)  # thresholds only: a yes is the end
    far = toy(BETTER, size=9, theta=3, updates=0)
    one, other = letters("aab"), letters("abb")
    bits, more_bits = rows_of_bits("11", "11", "11", "00"), rows_of_bits("11", "11", "10", "00")
    enough, little = Budget(40), Budget(25)
    return (
        Asking(silent, LETTERS, one, other, TWO_TOPS, (B, A, NOT_A), enough, least=1e-5),
        Asking(far, LETTERS, letters("b" * 9), letters("b" * 8 + "a"), INSIDE_DISTANCE, (A,), enough),
        Asking(weights, LETTERS, one, other, UNCHARGED, (A,), enough, least=1e-5),
        Asking(weights, LETTERS, letters("aac"), letters("abc"), TRUE_UPDATE, (A,), enough, least=1e-5),
        Asking(lecture, LETTERS, one, other, PEEKS, (A,), enough),
        Asking(RENTER, BITS, bits, more_bits, PEEKS, (BOTH,), little),
        Asking(replace(RENTER, saved=0), BITS, bits, more_bits, UNCHARGED, (BOTH,), little),
        Asking(RENTER, BITS, bits, more_bits, TRUE_UPDATE, (), little),
    )


def letters(word: str) -> tuple[Row, ...]:
    return tuple({"v": letter} for letter in word)


def rows_of_bits(*words: str) -> tuple[Row, ...]:
    """ "10" is a row with a = 1 and b = 0."""
    return tuple({"a": int(word[0]), "b": int(word[1])} for word in words)
