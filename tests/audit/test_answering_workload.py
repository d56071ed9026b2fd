"""Exact laws of releases for a known workload, on neighbouring tables; broken twins are caught."""

from __future__ import annotations

import functools
from fractions import Fraction

import numpy as np
import pytest

from discreet.answering.averaged_weights import AveragedWeights, Together, WorkloadWeights
from discreet.answering.workload import Marginals
from discreet.audit.divergence import compare, loss
from discreet.audit.laws import Setting, law
from discreet.audit.mutants import Mistake, Twin
from discreet.data import Category, Domain
from discreet.guarantee import Guarantee, Neighbours
from discreet.mechanisms import Laplace
from discreet.query import Count, Equals, Histogram
from discreet.rng import SeededRng
from tests.audit.toys import ADD, BOTH, REPLACE, people
from tests.search import climb, start

SQUARE = Domain(v=Category("a", "b"), w=Category("c", "d"))
SQUARES = [Setting(SQUARE, Neighbours(kind)) for kind in ("replace-one", "add-remove")]
WEIGHTS = AveragedWeights([Histogram("v")], 3, 2, Fraction(1, 4), 4)
TWO = Marginals([Histogram("v"), Count(Equals("v", "a"))], [Fraction(1, 2), 1], "laplace")


def worst(mechanism, setting, steps=40, most=5):
    """The largest loss that climbing over pairs of tables finds, and what was promised."""

    @functools.cache
    def found(rows):
        return law(mechanism, [dict(row) for row in rows], setting, reach=9)

    def score(pair):
        first, second = (found(tuple(tuple(sorted(row.items())) for row in rows)) for rows in (pair.first, pair.second))
        return loss(first, second)

    begin = start(setting, [{name: column.levels[0] for name, column in setting.domain.items()}] * 2)
    return climb(score, begin, setting, steps=steps, rng=SeededRng(3), most=most)


@pytest.mark.parametrize("setting", BOTH)
def test_no_pair_beats_the_price_of_averaged_weights(setting):
    pair, found = worst(WEIGHTS, setting)
    guarantee = WEIGHTS.guarantee(setting.facts(pair.first))
    assert 0.5 * float(guarantee.pure) < found <= float(guarantee.pure) + 1e-9
    p, q = (law(WEIGHTS, rows, setting) for rows in (pair.first, pair.second))
    assert not compare(p, q, guarantee).violates


@pytest.mark.parametrize("setting", SQUARES)
def test_nor_of_several_queries_at_once(setting):
    mechanism = AveragedWeights([Histogram("v"), Count(Equals("w", "c") & Equals("v", "a"))], 2, 1, Fraction(1, 3), 3)
    pair, found = worst(mechanism, setting, steps=25, most=3)
    guarantee = mechanism.guarantee(setting.facts(pair.first))
    assert found <= float(guarantee.pure) + 1e-9
    p, q = (law(mechanism, rows, setting) for rows in (pair.first, pair.second))
    assert not compare(p, q, guarantee).violates


def test_a_person_of_two_rows_is_priced_for_both():
    setting = Setting(REPLACE.domain, Neighbours("add-remove", 2), unit="who")
    mine = [{"v": "a", "who": -1}, {"v": "a", "who": -1}]
    others = [{"v": "b"}, {"v": "b"}]
    p, q = law(WEIGHTS, [*others, *mine], setting), law(WEIGHTS, others, setting)
    guarantee = WEIGHTS.guarantee(setting.facts(others))
    assert guarantee.pure == 2 * WEIGHTS.guarantee(ADD.facts(people("b"))).pure
    assert loss(p, q) <= float(guarantee.pure) + 1e-9
    assert not compare(p, q, guarantee).violates


def _one_round(honest, facts):
    return Guarantee.of_bounded_range(2 * honest.rate, neighbours=facts.neighbours)


def _unsigned(honest, facts):
    return Guarantee.of_bounded_range(honest.rate, neighbours=facts.neighbours) * honest.rounds


def _selected(honest, data, rng, updated):
    counts = data.exact_sum(Together(honest.queries))
    weights, chosen = WorkloadWeights(honest, data.facts.domain), []
    for _ in range(honest.rounds):
        missed = counts - np.rint(honest.rows * weights.shares()).astype(np.int64)
        chosen.append(rng.select(np.stack([missed, -missed], axis=1).ravel(), honest.rate))
        updated(weights, chosen[-1], missed)
    return np.array(chosen, dtype=np.int64)


def _true_gap(honest, data, rng):
    def by_the_truth(weights, chosen, missed):
        for _ in range(abs(int(missed[chosen // 2]))):
            weights.update(chosen)

    return _selected(honest, data, rng, by_the_truth)


def _tells_what_is_missed(honest, data, rng):
    last = []
    chosen = _selected(honest, data, rng, lambda weights, choice, missed: last.append(int(missed[choice // 2])))
    return (chosen, last[-1])


ONE_ROUND_PRICE = Mistake("pays for one round of three", price=_one_round)
UNSIGNED_PRICE = Mistake("prices signed scores as if all could only rise together", price=_unsigned)
TRUE_GAP = Mistake("updates the hypothesis as often as the true count is missed by", run=_true_gap)
SHOWS_THE_GAP = Mistake("shows by how much the true answer of the last round was missed", run=_tells_what_is_missed)


@pytest.mark.parametrize("setting", BOTH)
@pytest.mark.parametrize("mistake", [ONE_ROUND_PRICE, UNSIGNED_PRICE, TRUE_GAP, SHOWS_THE_GAP], ids=lambda m: m.label)
def test_broken_weights_are_caught(mistake, setting):
    twin = Twin(WEIGHTS, mistake)
    pair, _ = worst(twin, setting)
    p, q = (law(twin, rows, setting) for rows in (pair.first, pair.second))
    assert compare(p, q, twin.guarantee(setting.facts(pair.first))).violates


@pytest.mark.parametrize("setting", BOTH)
def test_several_queries_cost_what_is_charged(setting):
    pairs = [(people("ab"), people("bb")), (people("aab"), people("abb"))]
    if not setting.neighbours.replace_one:
        pairs = [(people("ab"), people("b")), (people("a"), people(""))]
    for first, second in pairs:
        p, q = (law(TWO, rows, setting, reach=8) for rows in (first, second))
        assert not compare(p, q, TWO.guarantee(setting.facts(first))).violates
        assert loss(p, q) > 0.9 * float(TWO.guarantee(setting.facts(first)).pure)


def _first_alone(honest, facts):
    return Laplace(honest.queries[0], honest.scales[0]).guarantee(facts)


def _same_noise(honest, data, rng):
    """One draw for all parts: their differences are exact."""
    noise = rng.laplace(honest.scales[0], (2,))
    sums = data.exact_sum(Together(honest.queries))
    return (sums[:2] + noise, int(sums[2] + noise[0]))


@pytest.mark.parametrize(
    "mistake",
    [Mistake("pays for the first query alone", price=_first_alone), Mistake("shares the noise", run=_same_noise)],
    ids=lambda m: m.label,
)
def test_broken_releases_of_several_queries_are_caught(mistake):
    mechanism = Marginals([Histogram("v"), Count(Equals("v", "b"))], [Fraction(1, 2), 1], "laplace")
    twin = Twin(mechanism, mistake)
    p, q = (law(twin, rows, REPLACE, reach=8) for rows in (people("ab"), people("bb")))
    assert compare(p, q, twin.guarantee(REPLACE.facts(people("ab")))).violates
