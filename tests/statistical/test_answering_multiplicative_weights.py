"""The theorem of private multiplicative weights, played by an analyst who knows the rows and the hypothesis.

He looks at many sets of cells and asks the worst for the hypothesis, or one that hovers at the threshold. At the stated
number of persons the run is lost if any answer is further off than its bound, or if the program halts before the last
question; at most beta of the runs may be lost.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from discreet.answering.multiplicative_weights import ClassicAnswers, Weights
from discreet.answering.multiplicative_weights_parameters import (
    BETTER,
    LECTURE,
    CountingProblem,
    better_for,
    lecture_for,
    needed,
)
from discreet.data import Domain, Facts, Number, Table
from discreet.funds import Funds
from discreet.guarantee import Budget, Neighbours
from discreet.ledger import Ledger
from discreet.mechanisms import AboveThreshold, AboveThresholdLaplace, IsFar
from discreet.query import Among, Count
from discreet.rng import SeededRng
from tests.pac_game import assert_honest, most_losses

CELLS = 16
ALPHA = Fraction(2, 5)
BETA = Fraction(1, 20)
QUESTIONS = 60
BUDGET = Budget(4, 1e-6)
METHODS = (BETTER, LECTURE)


def domain_of(cells):
    return Domain(x=Number(0, cells - 1, step=1))


def made(method, size, *, cells=CELLS, alpha=ALPHA, beta=BETA, questions=QUESTIONS, pure=False):
    problem = CountingProblem(size, ("x",), cells)
    if method == LECTURE:
        return lecture_for(problem, alpha, beta, questions)
    return better_for(problem, alpha, beta, questions, pure=pure)


@functools.cache
def program(method, *, budget=BUDGET, **numbers):
    """At the stated number of persons, and a tenth more: a ledger keeps half of delta for failures."""
    facts = Facts(domain_of(CELLS), Neighbours("replace-one"), None)
    size = needed(
        lambda persons: made(method, persons, **numbers), lambda made: Funds.of(budget).admits(made.guarantee(facts))
    )
    return made(method, math.ceil(1.1 * size), **numbers)


@functools.cache
def people(n, *, seed, cells=CELLS):
    """Persons in few of the cells: far from the uniform hypothesis."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(cells, 0.2))
    codes = rng.choice(cells, size=n, p=shares)
    return Table({"x": codes}, domain_of(cells), neighbours="replace-one", name="people")


def counts_of(table):
    cells = table.facts.domain.column("x").size
    return table.exact_sum(lambda batch: np.bincount(batch["x"], minlength=cells).astype(np.int64))


def subset(cells):
    return Count(Among("x", [int(each) for each in cells]))


def kl(counts, weights):
    """KL(table || hypothesis)."""
    shares, guessed = counts / counts.sum(), weights.hypothesis.marginal(("x",))
    held = shares > 0
    return float(np.sum(shares[held] * np.log(shares[held] / guessed[held])))


def simulated(found, table, rng, questions):
    """The program without a ledger: what is said to each set of cells, and from where."""
    weights, z, told = Weights(found, table.facts), None, []
    for cells in questions:
        value, source, z = said(found, weights, table, rng, subset(cells), z)
        told.append((value, source))
    return told


def said(found, weights, table, rng, question, z):
    """One turn: the answer, its source, and the threshold's noise afterwards."""
    if z is None:
        z = found.threshold.begin(table, rng)
    guess = weights.guess(question)
    z, top = found.threshold.step(z, IsFar(question, (guess,), found.theta), table, rng)
    if not top:
        return guess, "hypothesis", z
    if weights.updates == found.updates:
        return None, "halted", None
    answer = min(max(int(found.measurement(question).run(table, rng)), 0), found.size)
    weights.update(question, answer)
    return answer, "measurement", None


class Analyst:
    """Knows the rows. Of many sets of cells he picks the worst, or one just above or just below the threshold."""

    def __init__(self, table, found, seed, sets=300):
        self.rng, self.counts, self.theta = np.random.default_rng(seed), counts_of(table), float(found.theta)
        cells = len(self.counts)
        self.sets = self.rng.random((sets, cells)) < self.rng.uniform(0.1, 0.9, (sets, 1))
        self.sets = self.sets[(self.sets.sum(axis=1) > 0) & (self.sets.sum(axis=1) < cells)]

    def next(self, weights):
        """A set of cells; sets that were asked are not asked again."""
        wrong = self.counts - self.counts.sum() * weights.hypothesis.marginal(("x",))
        gaps = np.abs(self.sets @ wrong)
        aims = (math.inf, 1.02 * self.theta, 0.98 * self.theta, 0.8 * self.theta)
        aim = aims[self.rng.integers(len(aims))]
        place = int(np.argmax(gaps) if aim == math.inf else np.argmin(np.abs(gaps - aim)))
        chosen, self.sets = self.sets[place], np.delete(self.sets, place, axis=0)
        return np.flatnonzero(chosen)


def bounds(found):
    return {"hypothesis": found.near, "measurement": found.error}


def play(found, table, *, seed, questions=None):
    """One run without a ledger: whether it was lost, how many updates it made, whether KL fell as proved."""
    rng, analyst, weights, z = SeededRng(seed), Analyst(table, found, seed), Weights(found, table.facts), None
    lost, fell = False, True
    for _ in range(found.questions if questions is None else questions):
        cells = analyst.next(weights)
        before = kl(analyst.counts, weights), weights.potential
        value, source, z = said(found, weights, table, rng, subset(cells), z)
        if source == "halted":
            return True, weights.updates, fell
        lost |= abs(value - int(analyst.counts[cells].sum())) > bounds(found)[source]
        after = kl(analyst.counts, weights), weights.potential
        fell &= before[0] - after[0] >= (before[1] - after[1]) * (1 - 1e-9)
    return lost, weights.updates, fell


def played(found, runs, *, first=0):
    games = [play(found, people(found.size, seed=run % 5), seed=first + run) for run in range(runs)]
    return sum(lost or not fell for lost, _, fell in games), max(updates for _, updates, _ in games)


def noisier(found, times):
    """The twin with so many times the noise that its promise allows."""
    threshold = type(found.threshold)(found.threshold.threshold_scale * times, found.threshold.question_scale * times)
    return replace(found, threshold=threshold, scale=found.scale * times)


@pytest.mark.parametrize("method", METHODS)
def test_an_analyst_who_knows_everything_is_answered_as_promised(method):
    found = program(method)
    lost, updates = played(found, 25)
    assert_honest(lost, 25, float(BETA))
    assert 0 < updates <= found.updates


@pytest.mark.parametrize("method", METHODS)
def test_the_same_analyst_refutes_a_program_with_too_much_noise(method):
    lost, _ = played(noisier(program(method), 5), 12)
    assert lost > most_losses(12, float(BETA))


def test_the_same_analyst_refutes_an_update_in_the_wrong_direction():
    found = program(BETTER)
    wrong = Weights.update

    def flipped(weights, question, answer):
        return wrong(weights, question, 2 * weights.guess(question) - answer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Weights, "update", flipped)
        games = [play(found, people(found.size, seed=run % 5), seed=run, questions=20) for run in range(6)]
    updated = [fell for _, updates, fell in games if updates]
    assert len(updated) >= 3
    assert not any(updated)


@pytest.mark.parametrize("method", METHODS)
def test_the_promise_holds_over_a_ledger(method):
    """The same game through `ClassicAnswers`, charged; the budget that the plan was made for is enough."""
    found, failed = program(method), 0
    for run in range(4):
        table = people(found.size, seed=run)
        analyst = Analyst(table, found, run)
        ledger = Ledger.in_memory(BUDGET, table, testing=True)
        engine, lost_here = ClassicAnswers(found, table, ledger, rng=SeededRng(run)), False
        for _ in range(QUESTIONS):
            cells = analyst.next(engine.weights)
            given = engine.answer(subset(cells))
            lost_here |= abs(int(given.value) - int(analyst.counts[cells].sum())) > given.error_bound
        failed += lost_here
    assert failed <= most_losses(4, float(BETA))


# How much one outer iteration of the lecture costs.


def log_laplace(scale, reach):
    steps = np.arange(-reach, reach + 1)
    return steps, -np.abs(steps) / scale - np.log(np.sum(np.exp(-np.abs(steps) / scale)))


def probability(kind, scale, questions, threshold):
    """Of "no" to all but the last question and "yes" to that, exactly; margins are the questions' values."""
    steps, logs = log_laplace(scale, 400)
    masses = np.exp(logs)
    above = np.concatenate([np.cumsum(masses[::-1])[::-1], [0.0]])  # P[nu >= step]

    def tail(x):
        return above[np.clip(np.ceil(x).astype(int) + 400, 0, len(above) - 1)]

    total = masses.copy()
    for value in questions[:-1]:
        total *= 1 - tail(threshold + steps - value)
    return float(np.sum(total * tail(threshold + steps - questions[-1])))


def test_the_threshold_of_the_lecture_costs_three_times_its_epsilon_not_once():
    """Twenty questions that one person raises and one that the same person lowers."""
    scale = 8.0
    one = probability(AboveThresholdLaplace, scale, [20] * 20 + [-10], 20)
    other = probability(AboveThresholdLaplace, scale, [21] * 20 + [-11], 20)
    loss = math.log(one / other)
    assert 2.5 / scale < loss <= 3 / scale


# The matrix.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "cells", "alpha", "questions", "pure"),
    [
        (BETTER, 64, 0.25, 150, False),
        (BETTER, 64, 0.3, 100, True),
        (BETTER, 16, 0.9, 100, False),
        (LECTURE, 64, 0.25, 150, False),
        (LECTURE, 16, 0.95, 230, False),  # more questions than updates
        (LECTURE, 16, 0.5, 60, True),
    ],
)
def test_the_theorem_holds_at_the_stated_size(method, cells, alpha, questions, pure):
    budget, runs = Budget(4, 0 if pure else 1e-6), 40
    facts = Facts(domain_of(cells), Neighbours("replace-one"), None)

    def make(size):
        return made(method, size, cells=cells, alpha=alpha, questions=questions, pure=pure)

    found = make(needed(make, lambda made: Funds.of(budget).admits(made.guarantee(facts))))
    games = [play(found, people(found.size, seed=run % 7, cells=cells), seed=100 + run) for run in range(runs)]
    assert_honest(sum(lost or not fell for lost, _, fell in games), runs, float(BETA))
    assert max(updates for _, updates, _ in games) <= found.updates


@pytest.mark.slow
def test_many_runs_do_not_refute_the_promise():
    found = program(BETTER)
    lost, updates = played(found, 200, first=1000)
    assert_honest(lost, 200, float(BETA))
    assert updates <= found.updates < found.questions
    assert isinstance(found.threshold, AboveThreshold)
