"""A person with several rows: the native prices hold against the worst pair that a search finds, and are attained."""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet.audit.divergence import compare
from discreet.audit.laws import Setting, law
from discreet.data import Domain, Text
from discreet.guarantee import Neighbours
from discreet.mechanisms import Exponential, Gaussian, Laplace, PermuteAndFlip, StableGaussian, StableHistogram
from discreet.person_rows import PersonNumber, PersonRows
from discreet.query import Count, Equals, Fixed, Histogram, KeyCount, OfPersons, Persons
from discreet.rng import SeededRng
from tests.search import climb, start

from .toys import ONE_COLUMN, people

SETTINGS = [Setting(ONE_COLUMN, Neighbours(kind, 2), unit="person") for kind in ("replace-one", "add-remove")]
EACH = PersonRows((), [PersonNumber("n", "sum", Fixed(1), 2)])
SOME = PersonRows((), [PersonNumber("n", "sum", Fixed(1), 2)], Equals("v", "a"))
MECHANISMS = [
    Laplace(Count(Equals("v", "a")), 1),
    Laplace(Histogram("v"), Fraction(1, 2)),
    Gaussian(Histogram("v"), Fraction(1, 2)),
    Exponential(Histogram("v"), Fraction(1, 2)),
    PermuteAndFlip(Histogram("v"), Fraction(1, 2)),
    StableHistogram(KeyCount("v"), 2, 4),
    StableGaussian(KeyCount("v"), 2, 5),
    Laplace(Persons(where=Equals("v", "a")), 1),
    Laplace(Persons("v"), Fraction(1, 2)),
    Gaussian(Persons("v"), Fraction(1, 2)),
    Laplace(OfPersons(SOME, Count(Equals("n", 2))), 1),
    Laplace(OfPersons(EACH, Histogram("n")), Fraction(1, 2)),
    Gaussian(OfPersons(SOME, Histogram("n")), Fraction(1, 2)),
]
TEXTS = [Setting(Domain(v=Text()), Neighbours(kind, 2), unit="person") for kind in ("replace-one", "add-remove")]


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


@pytest.mark.parametrize("setting", TEXTS, ids=lambda each: each.neighbours.kind)
def test_texts_that_nobody_listed_have_the_law_of_declared_levels(setting):
    """The same rows as texts and as levels: the same probabilities of the same bins."""
    mechanism = StableHistogram(KeyCount("v"), 2, 4)
    listed = Setting(ONE_COLUMN, setting.neighbours, unit="person")
    for letters in ("ab", "aab", "bba", ""):
        if letters or setting.neighbours.kind == "add-remove":
            texts, levels = (law(mechanism, people(letters), each, reach=9) for each in (setting, listed))
            assert dict(texts.mass) == pytest.approx(dict(levels.mass))
    assert mechanism.guarantee(setting.facts(people("a"))) == mechanism.guarantee(listed.facts(people("a")))


def test_a_person_in_two_groups_moves_two_counts_of_persons():
    """The price of one group would be beaten by the person who has a row in each."""
    setting, mechanism = SETTINGS[1], Laplace(Persons("v"), 1)
    shared = people("ab")
    second = [*shared, {"v": "a", "person": -1}, {"v": "b", "person": -1}]
    p, q = (law(mechanism, rows, setting, reach=14) for rows in (shared, second))
    assert not compare(p, q, mechanism.guarantee(setting.facts(shared))).violates
    single = Setting(ONE_COLUMN, Neighbours("add-remove"))
    assert compare(p, q, mechanism.guarantee(single.facts(people("a")))).violates


def test_persons_by_their_rows_would_be_seen_at_the_price_of_a_count():
    """The twin: a histogram of persons by their rows, priced as one number; a person moves two of its cells."""
    setting, mechanism = SETTINGS[0], Laplace(OfPersons(EACH, Histogram("n")), 1)
    first, second = ([*people("bb"), *[{"v": "a", "person": -1}] * many] for many in (1, 2))
    p, q = (law(mechanism, rows, setting, reach=14) for rows in (first, second))
    facts = setting.facts(first)
    assert not compare(p, q, mechanism.guarantee(facts)).violates
    assert compare(p, q, Laplace(OfPersons(EACH, Count(Equals("n", 2))), 1).guarantee(facts)).violates


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
