"""Exact laws of stable histograms on neighbouring tables, and broken twins caught with their known ratios."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from discreet.audit import mutants
from discreet.audit.divergence import compare, hockey_stick
from discreet.audit.laws import Setting, law
from discreet.audit.mutants import Twin
from discreet.guarantee import Neighbours
from discreet.mechanisms import Gaussian, StableGaussian, StableHistogram, StableMode, stable
from discreet.query import Histogram, KeyCount
from discreet.rng import SeededRng
from tests.audit import mistakes
from tests.search import climb, start

from .toys import ADD, BOTH, ONE_COLUMN, REPLACE, people

KEYS = KeyCount("v")


def at(setting, *, epsilon=1, delta=Fraction(1, 20)):
    return StableHistogram.of(KEYS, epsilon=epsilon, delta=delta, facts=setting.facts(people("a")))


@pytest.mark.parametrize("setting", BOTH)
@pytest.mark.parametrize("wrap", [lambda h: h, StableMode])
def test_no_pair_of_tables_beats_the_guarantee(setting, wrap):
    mechanism = wrap(at(setting))

    def score(pair):
        found = compare(
            law(mechanism, pair.first, setting),
            law(mechanism, pair.second, setting),
            mechanism.guarantee(setting.facts(pair.first)),
        )
        return found.found - found.claimed

    _, excess = climb(score, start(setting, people("ab")), setting, steps=25, rng=SeededRng(8), most=4)
    assert excess <= 1e-9


def test_the_failure_of_a_lone_person_is_exactly_what_is_charged():
    mechanism = at(ADD)
    alone, nobody = law(mechanism, people("a"), ADD), law(mechanism, people(""), ADD)
    shown = 1 - alone.mass[()]
    charged = float(mechanism.guarantee(ADD.facts(people("a"))).failure)
    assert nobody.mass == {(): 1.0}
    assert shown == pytest.approx(charged, rel=1e-8)
    assert shown <= charged
    assert charged == pytest.approx(0.0236, abs=5e-4)


def test_a_bin_of_the_certain_count_is_shown_often_enough():
    mechanism = at(ADD, delta=Fraction(1, 1000))
    for beta in (0.3, 0.05, 0.001):
        rows = people("a" * mechanism.certain_count(beta))
        assert law(mechanism, rows, ADD).mass.get((), 0.0) <= beta
    assert () not in law(mechanism, people("a" * (2 * mechanism.bound + 1)), ADD).mass


@pytest.mark.parametrize(
    ("mistake", "first", "second", "at_least"),
    [
        (mutants.passes_at_bound, "a", "", 0.06),
        (mutants.truncated_early, "a", "", 0.03),
    ],
    ids=["passes at bound", "truncated early"],
)
def test_off_by_one_is_caught(mistake, first, second, at_least):
    twin = Twin(at(ADD), mistake)
    claimed = twin.guarantee(ADD.facts(people("a")))
    p, q = law(twin, people(first), ADD), law(twin, people(second), ADD)
    assert hockey_stick(p, q, 1.0)[0] > at_least
    assert compare(p, q, claimed).violates


def test_ties_by_order_of_arrival_are_caught():
    twin = Twin(StableMode(at(ADD)), mutants.first_seen_ties)
    p = law(twin, people("abbbb" + "aaa"), ADD)  # a first, 4 and 4
    q = law(twin, people("bbbb" + "aaa"), ADD)  # b first, 3 and 4
    found = max(hockey_stick(p, q, 1.0)[0], hockey_stick(q, p, 1.0)[0])
    assert found == pytest.approx(0.284, abs=0.01)
    assert found > 0.05


@pytest.mark.parametrize(("epsilon", "ratio"), [(0.6, 2.35), (1, 2.65), (2, 3.72)])
def test_one_rows_failure_charged_for_two_is_caught_with_the_known_ratio(epsilon, ratio):
    setting = Setting(ONE_COLUMN, Neighbours("add-remove", 2), unit="person")
    honest = StableHistogram(KEYS, 2 / Fraction(epsilon).limit_denominator(10), 5)
    twin = Twin(honest, mistakes.one_row_price)
    two = [{"v": "a", "person": 1}, {"v": "a", "person": 1}]
    p, q = law(honest, two, setting), law(honest, [], setting)
    found = hockey_stick(p, q, epsilon)[0]
    charged = float(twin.guarantee(setting.facts([])).failure)
    assert found / charged == pytest.approx(ratio, abs=0.005)
    assert found <= float(honest.guarantee(setting.facts([])).failure)


def test_replace_one_charges_two_bins():
    mechanism = StableHistogram(KEYS, 1, 3)
    lone = float(mechanism.guarantee(ADD.facts(people("a"))).failure)
    assert float(mechanism.guarantee(REPLACE.facts(people("a"))).failure) == pytest.approx(2 * lone)


@pytest.mark.parametrize(("scale", "bound", "rows"), [(1, 5, 1), (2, 7, 3), (Fraction(5, 2), 9, 5), (40, 300, 5)])
def test_the_failure_of_gaussian_noise_is_that_of_the_worst_lone_bins(scale, bound, rows):
    """Over all ways in which k rows lie in lone bins, by the exact tails of the noise."""
    reach = 12 * math.ceil(scale) + bound
    mass = [math.exp(-(x**2) / (2 * float(scale) ** 2)) for x in range(-reach, reach + 1)]
    tails = {m: sum(mass[reach + bound - m + 1 :]) / sum(mass) for m in range(1, rows + 1)}

    def worst(left):
        """The largest probability, by union over the bins, with which some bin of a person with these rows is shown."""
        return max((1 - (1 - tails[m]) * (1 - worst(left - m)) for m in range(1, left + 1)), default=0.0)

    claimed = float(stable.lone_gaussian_mass(Fraction(scale), bound, rows))
    assert worst(rows) <= claimed
    assert claimed <= 3 * max(tails[rows], rows * tails[1])


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("kind", ["replace-one", "add-remove"])
def test_bins_that_are_surely_shown_cost_what_a_noisy_histogram_costs(kind, rows):
    facts = Setting(ONE_COLUMN, Neighbours(kind, rows), unit="person").facts(people("ab"))
    noisy = Gaussian(Histogram("v"), 3).guarantee(facts)
    shown = StableGaussian(KeyCount("v"), 3, 40).guarantee(facts)
    assert all(shown.at(order) >= noisy.at(order) * (1 - 1e-9) for order in (2.0, 16.0))
