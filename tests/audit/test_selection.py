"""Exact laws of the exponential mechanism and of permute-and-flip on neighbouring tables."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from discreet.audit import mutants
from discreet.audit.divergence import compare, hockey_stick, loss
from discreet.audit.laws import Setting, law
from discreet.audit.mutants import Twin
from discreet.data import Category, Domain
from discreet.guarantee import ORDERS, Neighbours
from discreet.mechanisms import Exponential, PermuteAndFlip
from discreet.query import Histogram
from discreet.rng import SeededRng
from tests.audit import mistakes
from tests.search import climb, start

THREE = Domain(v=Category("a", "b", "c"))
SETTINGS = [Setting(THREE, Neighbours(kind)) for kind in ("replace-one", "add-remove")]
SCORE = Histogram("v")


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
def test_the_worst_pair_attains_the_guarantee_and_none_beats_it(kind, setting):
    mechanism = kind.of(SCORE, epsilon=1, facts=setting.facts([{"v": "a"}]))

    def score(pair):
        return loss(law(mechanism, pair.first, setting), law(mechanism, pair.second, setting))

    pair, found = climb(score, start(setting, [{"v": "b"}] * 2), setting, steps=60, rng=SeededRng(6), most=6)
    assert found <= 1 + 1e-9
    assert found > 0.8
    comparison = compare(
        law(mechanism, pair.first, setting),
        law(mechanism, pair.second, setting),
        mechanism.guarantee(setting.facts(pair.first)),
    )
    assert not comparison.violates


def test_the_rate_of_add_remove_is_caught_under_replace_one():
    setting = SETTINGS[0]
    twin = Twin(Exponential(SCORE, 1), mutants.add_remove_price)
    rows = [{"v": "b"}] * 3
    p, q = (law(twin, [*rows, {"v": v}], setting) for v in ("a", "b"))
    found = compare(p, q, twin.guarantee(setting.facts(rows)))
    assert found.violates


def renyi(p, q, order):
    total = math.fsum(p.mass[o] ** order * q.mass[o] ** (1 - order) for o in p.mass)
    return math.log(total) / (order - 1)


def test_permute_and_flip_charged_as_bounded_range_is_caught():
    setting = SETTINGS[0]
    twin = Twin(PermuteAndFlip(SCORE, 1), mistakes.flipped_as_bounded_range)
    claimed = twin.guarantee(setting.facts([{"v": "a"}]))
    honest = twin.honest.guarantee(setting.facts([{"v": "a"}]))
    worst, kept = 0.0, True
    for shared in ([], [{"v": "a"}], [{"v": "a"}] * 2, [{"v": "b"}] * 2, [{"v": "b"}] * 4):
        for mine, other in (("a", "b"), ("b", "a"), ("c", "a"), ("a", "c")):
            p = law(twin, [*shared, {"v": mine}], setting)
            q = law(twin, [*shared, {"v": other}], setting)
            for i, order in enumerate(ORDERS[:12]):
                worst = max(worst, renyi(p, q, order) / claimed.renyi[i])
                kept = kept and renyi(p, q, order) <= honest.renyi[i] * (1 + 1e-9)
    assert worst > 1.05
    assert kept


def test_permute_and_flip_is_never_worse_than_the_exponential_mechanism():
    setting = SETTINGS[0]
    rows = [{"v": v} for v in "aaaabbc"]
    loss_of = {0: 0, 1: 2, 2: 3}

    def expected_loss(kind):
        found = law(kind(SCORE, Fraction(1, 2)), rows, setting)
        return sum(p * loss_of[i] for i, p in found.mass.items())

    assert expected_loss(PermuteAndFlip) < expected_loss(Exponential)


def test_the_exact_law_is_the_stated_one():
    rows = [{"v": v} for v in "aab"]
    weights = [math.exp(0.5 * n) for n in (2, 1, 0)]
    found = law(Exponential(SCORE, Fraction(1, 2)), rows, SETTINGS[1])
    for i, weight in enumerate(weights):
        assert found.mass[i] == pytest.approx(weight / sum(weights))
    assert hockey_stick(found, found, 0.0) == (0.0, pytest.approx(0.0, abs=1e-12))
