"""An analyst who knows the rows and the hypothesis, and always asks the worst of many questions, against a session."""

from __future__ import annotations

import numpy as np
import pytest
from bench import pmw_curves

import discreet as dp
from discreet.answering import calibration
from discreet.query import And, Count, Histogram, Or
from discreet.rng import SeededRng
from tests.pac_game import assert_honest

DOMAIN = dp.Domain(a=dp.Category(0, 1, 2), b=dp.Category(0, 1, 2, 3), c=dp.Category(0, 1))
PEOPLE = 4_000
BETA = "0.1"


def made_up(seed):
    """Columns that depend on each other, so that the hypothesis is often wrong."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, PEOPLE)
    b = np.where(rng.random(PEOPLE) < 0.6, a, rng.integers(0, 4, PEOPLE))
    return {"a": a, "b": b, "c": (a + b + (rng.random(PEOPLE) < 0.3)) % 2}


def a_set(rng):
    """A count of a random set of cells of two or three columns."""
    cells = rng.permutation(24)[: rng.integers(1, 13)]
    levels = [np.unravel_index(cell, (3, 4, 2)) for cell in cells]
    names = rng.permutation(list("abc"))[: rng.integers(2, 4)]
    parts = [And(*(dp.Equals(n, int(cell["abc".index(n)])) for n in sorted(names))) for cell in levels]
    return Count(Or(*parts))


def broken_bounds(seed, *, thresholds):
    """How many answers of one session were further off than their bound, and which sources were seen."""
    rows, rng = made_up(seed), np.random.default_rng(seed)
    table = dp.Table(rows, DOMAIN, name="t")
    session = dp.Session(table, dp.Ledger.in_memory(dp.Budget(200, 1e-6), table), alpha="0.05", beta=BETA)
    session.ask(Histogram(("a", "b")))
    session.ask(Histogram("c"))
    answers, broken, sources = session._answers, 0, set()
    for _ in range(10):
        if thresholds:
            answers.transcript.saved = 10**15
        asked = [a_set(rng) for _ in range(12)]
        truths = [int(table.exact_sum(each)) for each in asked]
        worst = max(range(12), key=lambda i: abs(truths[i] - int(answers.guess(asked[i]))))
        answer = session.ask(asked[worst])
        assert answer.error_bound <= 0.05 * PEOPLE
        broken += abs(answer.value - truths[worst]) > answer.error_bound
        sources.add(answer.source)
    return broken, sources


@pytest.mark.parametrize("thresholds", [False, True], ids=["rented", "with thresholds"])
def test_the_worst_questions_are_answered_within_their_bounds(thresholds):
    runs = [broken_bounds(seed, thresholds=thresholds) for seed in range(15)]
    assert_honest(sum(broken > 0 for broken, _ in runs), len(runs), float(BETA))
    seen = set().union(*(sources for _, sources in runs))
    assert seen >= ({"hypothesis", "measurement"} if thresholds else {"direct"})


def test_bounds_that_forget_the_noise_are_caught(monkeypatch):
    """The twin believes that every measurement fails half of the time: its bounds are too small."""
    monkeypatch.setattr(calibration.Calibration, "failure", lambda self, order, taken=1: 0.9)
    runs = [broken_bounds(seed, thresholds=False)[0] for seed in range(15)]
    with pytest.raises(AssertionError):
        assert_honest(sum(broken > 0 for broken in runs), len(runs), float(BETA))


def test_a_long_session_of_single_counts_levels_off():
    """What README draws, its first thousand questions: fits that are too rough open thresholds that miss, and the
    thousand take 75 % of the budget and more."""
    table, asked = pmw_curves.people(), pmw_curves.workload("uniform", 1000)
    ledger = dp.Ledger.in_memory(pmw_curves.BUDGET, table, testing=True)
    session = dp.Session(
        table, ledger, alpha=pmw_curves.ALPHA, beta=pmw_curves.BETA, questions=16_000, rng=SeededRng(1)
    )
    for question in asked:
        session.ask(question)
    assert pmw_curves.Meter(ledger, table.facts).read() < 0.6
