"""Exact laws of whole conversations with AboveThreshold on neighbouring tables, and the published wrong variants."""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet.audit import mutants
from discreet.audit.divergence import loss
from discreet.audit.laws import conversation_law
from discreet.audit.mutants import Twin
from discreet.mechanisms import AboveThreshold, AboveThresholdLaplace, IsAbove
from discreet.query import Count, Equals
from discreet.rng import SeededRng
from tests.audit import mistakes

from .toys import ADD, REPLACE, people

A, B = Count(Equals("v", "a")), Count(Equals("v", "b"))
UP, DOWN = people("abb"), people("aab")  # the count of a rises by one, the count of b falls by one
HONEST = AboveThreshold(1, 2)  # costs 1/1 + 2/2 = 2
LECTURE = AboveThresholdLaplace(1, 2)
REACH = 40  # what is cut off has probability exp(-20)


def measured(conversation, asks, first, second, setting, *, reach=REACH):
    p = conversation_law(conversation, asks, first, setting, reach=reach)
    q = conversation_law(conversation, asks, second, setting, reach=reach)
    return loss(p, q)


def climbed(conversation, *, steps, seed, center=None, reach=REACH):
    """The worst sequence of questions that a random search finds, starting from a bad one."""
    rng = SeededRng(seed)
    asks = [IsAbove(A, 3, center), IsAbove(B, 3, center)]
    worst = measured(conversation, asks, UP, DOWN, REPLACE, reach=reach)
    for _ in range(steps):
        ask = IsAbove((A, B)[rng.integers(2)], Fraction(rng.integers(17) - 4, 2), center)
        at = rng.integers(3)
        tried = [*asks[:at], ask, *asks[at + 1 :]]
        found = measured(conversation, tried, UP, DOWN, REPLACE, reach=reach)
        if found >= worst:
            asks, worst = tried, found
    return worst


@pytest.mark.parametrize("conversation", [HONEST, LECTURE], ids=["one-sided", "lecture"])
@pytest.mark.parametrize("center", [None, Fraction(5, 3)])
def test_no_sequence_of_questions_beats_the_price(conversation, center):
    worst = climbed(conversation, steps=5, seed=7, center=center, reach=24)
    claimed = float(conversation.guarantee(REPLACE.facts(UP)).pure)
    assert 0.2 * claimed < worst <= claimed * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("conversation", [HONEST, LECTURE], ids=["one-sided", "lecture"])
@pytest.mark.parametrize("center", [None, 1, Fraction(5, 3)])
@pytest.mark.parametrize("seed", range(3))
def test_no_long_search_over_questions_beats_the_price(conversation, center, seed):
    worst = climbed(conversation, steps=60, seed=seed, center=center)
    assert worst <= float(conversation.guarantee(REPLACE.facts(UP)).pure) * (1 + 1e-9)


def test_two_questions_that_move_both_ways_attain_the_price():
    """A "no" about a count that rises excludes the low thresholds of one world; then a "yes" about one that falls."""
    assert measured(HONEST, [IsAbove(A, 2), IsAbove(B, 2)], UP, DOWN, REPLACE) == pytest.approx(2, rel=1e-4)


def test_monotone_questions_cost_less_under_add_remove():
    cheap = AboveThreshold(1, 2, monotone=True)
    claimed = float(cheap.guarantee(ADD.facts(people("ab"))).pure)
    assert claimed == 1.5
    worst = max(
        measured(cheap, asks, people("aab"), people("ab"), ADD)
        for asks in ([IsAbove(A, 2)], [IsAbove(A, 2), IsAbove(A, 4)], [IsAbove(A, 2), IsAbove(B, 4)])
    )
    assert worst == pytest.approx(claimed, rel=1e-4)


@pytest.mark.parametrize(
    ("mistake", "asks", "at_least"),
    [
        (mutants.no_threshold_noise, [IsAbove(A, 3)] * 8, 3.5),
        (mutants.no_question_noise, [IsAbove(A, 0), IsAbove(B, 0)], 10),
        (mutants.never_stops, [IsAbove(A, 2), IsAbove(B, 2), IsAbove(A, 2), IsAbove(B, 2)], 2.9),
        (mutants.releases_noisy_value, [IsAbove(A, 1)], 10),
        (mistakes.three_yes_one_price, [IsAbove(A, 2), *[IsAbove(B, 2)] * 3], 3.9),
        (mistakes.redrawn_threshold, [IsAbove(A, 0)] * 4, 3.9),
        (mutants.monotone_price, [IsAbove(A, 2), IsAbove(B, 2)], 1.99),  # of a claimed 1.5
        (mutants.off_grid, [IsAbove(A, "0.35"), IsAbove(B, 2)], 2.79),  # 1.4 times the claim
    ],
    ids=lambda value: getattr(value, "label", ""),
)
def test_published_wrong_variants_are_caught(mistake, asks, at_least):
    twin = Twin(HONEST, mistake)
    claimed = float(twin.guarantee(REPLACE.facts(UP)).pure)
    worst = measured(twin, asks, UP, DOWN, REPLACE)
    assert worst > at_least > claimed
