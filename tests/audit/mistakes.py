"""More mistakes than `discreet audit` plants: published ones, and those that cost accuracy only."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.answering import Answer
from discreet.audit.attacks_on_sessions import MultiplicativeWeights, _truth
from discreet.audit.mutants import Mistake, mistake
from discreet.data import Dataset, Facts
from discreet.errors import BudgetExceeded
from discreet.guarantee import Guarantee, Neighbours
from discreet.mechanisms import Exponential, IsFar
from discreet.query import Count
from discreet.rng import Rng


@mistake("draws float noise by inverting the distribution function [Mir12]", "run")
def textbook_floats(honest: Any, data: Dataset, rng: Rng) -> float:
    uniform = (rng.integers(2**53) + 0.5) / 2**53 - 0.5
    noise = -float(honest.scale) * math.copysign(1.0, uniform) * math.log(1 - 2 * abs(uniform))
    return float(int(data.exact_sum(honest.query))) + noise


def lecture_scale(l2_squared: int, *, epsilon: float, delta: float) -> float:
    """Lecture 10's scale for product Laplace noise, sqrt(D2 ln(1/delta)) / epsilon: too small for small delta."""
    return math.sqrt(l2_squared * math.log(1 / delta)) / epsilon


@mistake("charges permute-and-flip epsilon^2/8, as if bounded", "price")
def flipped_as_bounded_range(honest: Any, facts: Facts) -> Guarantee:
    return Exponential(honest.score, honest.rate).guarantee(facts)


@mistake(
    "allows three yes on one threshold at the noise of one [LSL17, 4]",
    "step",
    begin=lambda honest, data, rng: (honest.begin(data, rng), 3),
)
def three_yes_one_price(honest: Any, state: Any, ask: Any, data: Dataset, rng: Rng) -> tuple[Any, Any]:
    threshold, left = state
    above = honest.step(threshold, ask, data, rng)[1]
    return ((threshold, left - above) if left > above else None), above


@mistake("draws the threshold anew for every question, pays once", "step", begin=lambda honest, data, rng: 0)
def redrawn_threshold(honest: Any, state: Any, ask: Any, data: Dataset, rng: Rng) -> tuple[Any, Any]:
    after, above = honest.step(honest.begin(data, rng), ask, data, rng)
    return (None if after is None else 0), above


@mistake("charges one row's failure for a person with several", "price")
def one_row_price(honest: Any, facts: Facts) -> Guarantee:
    single = honest.guarantee(dataclasses.replace(facts, neighbours=Neighbours(facts.neighbours.kind)))
    blocks = 2 if facts.neighbours.replace_one else 1
    block = Guarantee.of_approximate(
        facts.neighbours.rows / honest.scale, delta=single.failure / blocks, neighbours=facts.neighbours
    )
    return block * blocks


@mistake("keeps the first threshold's noise for the next", "plant")  # costs accuracy only
def kept_threshold(session: MultiplicativeWeights, answers: Any) -> None:
    """Every threshold after the first is charged, and gets the noise of the first."""
    honest, secrets = answers.threshold, answers.ledger.store.secrets

    def threshold() -> tuple[Any, int]:
        talk, paid = honest()
        held = secrets.all()
        secrets.keep("first", held.get("first", next(iter(held.values()))))
        for name in set(secrets.all()) - {"first"}:
            secrets.keep(name, held.get("first", held[name]))
        return talk, paid

    answers.threshold = threshold


@mistake("answers with the noise of its question", "plant")
def reused_noise(session: MultiplicativeWeights, answers: Any) -> None:
    """The answer after a yes is the value that was compared; its charge is there, its own noise is not used."""
    secrets, honest = answers.ledger.store.secrets, answers.measure

    def step(threshold: Any, state: Any, ask: IsFar, data: Dataset, rng: Rng) -> tuple[Any, Any]:
        noise = int(rng.geometric(threshold.question_scale))
        secrets.keep("noise", noise)
        above = ask.margin(data) + noise - state >= 0
        return (None if above else state), above

    def measured(question: Count, updates: int, paid: int) -> Answer:
        given: Answer = honest(question, updates, paid)
        return replace(given, value=_truth(answers, question) + secrets.get("noise"))

    session.spoil_threshold(answers, Mistake("keeps its noise", step=step))
    answers.measure = measured


@mistake("gives its guess after a yes that it cannot pay for", "plant")  # costs accuracy only
def guess_without_budget(session: MultiplicativeWeights, answers: Any) -> None:
    """After a yes that leaves nothing to pay a measurement with, the guess is given."""
    honest = answers.measure

    def measured(question: Count, updates: int, paid: int) -> Any:
        try:
            return honest(question, updates, paid)
        except BudgetExceeded:
            guess = np.array(answers.weights.guess(question))
            return answers.say(question, Answer(guess, float(answers.program.near), "hypothesis", paid))

    answers.measure = measured
