"""A person with several rows: the native prices hold against the worst pair that a search finds, and are attained."""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet.audit.divergence import compare
from discreet.audit.laws import Setting, law
from discreet.audit.search import climb, start
from discreet.guarantee import Neighbours
from discreet.mechanisms import Exponential, Gaussian, Laplace, PermuteAndFlip, StableHistogram
from discreet.query import Count, Equals, Histogram, KeyCount
from discreet.rng import SeededRng

from .toys import ONE_COLUMN, people

SETTINGS = [Setting(ONE_COLUMN, Neighbours(kind, 2), unit="person") for kind in ("replace-one", "add-remove")]
MECHANISMS = [
    Laplace(Count(Equals("v", "a")), 1),
    Laplace(Histogram("v"), Fraction(1, 2)),
    Gaussian(Histogram("v"), Fraction(1, 2)),
    Exponential(Histogram("v"), Fraction(1, 2)),
    PermuteAndFlip(Histogram("v"), Fraction(1, 2)),
    StableHistogram(KeyCount("v"), 2, 4),
]


def excess(mechanism, pair, setting, reach):
    p, q = (law(mechanism, rows, setting, reach=reach) for rows in (pair.first, pair.second))
    found = compare(p, q, mechanism.guarantee(setting.facts(pair.first)))
    return found.found - found.claimed, found


def searched(mechanism, setting, *, steps, seed, reach):
    return climb(
        lambda pair: excess(mechanism, pair, setting, reach)[0],
        start(setting, people("ab")),
        setting,
        steps=steps,
        rng=SeededRng(seed),
        most=3,
    )


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda each: each.neighbours.kind)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda each: type(each).__name__)
def test_no_pair_of_tables_beats_the_price_of_two_rows(mechanism, setting):
    assert searched(mechanism, setting, steps=4, seed=11, reach=9)[1] <= 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda each: each.neighbours.kind)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda each: type(each).__name__)
def test_no_long_search_beats_the_price_of_two_rows(mechanism, setting, seed):
    assert searched(mechanism, setting, steps=60, seed=seed, reach=14)[1] <= 1e-9


@pytest.mark.parametrize("mechanism", MECHANISMS[:4], ids=lambda each: type(each).__name__)
def test_the_price_of_one_row_would_be_beaten(mechanism):
    """The test has power: the same pair is far beyond the guarantee of a person with one row."""
    setting = SETTINGS[0]
    shared = people("bb")
    first, second = ([*shared, *[{"v": v, "person": -1}] * 2] for v in "ab")
    single = Setting(ONE_COLUMN, Neighbours("replace-one"))
    claimed = mechanism.guarantee(single.facts(people("a")))
    p, q = (law(mechanism, rows, setting, reach=14) for rows in (first, second))
    assert compare(p, q, claimed).violates
