"""Quantiles in groups: the exact law on all pairs of small neighbouring tables stays within the price, and comes near
it; a price that forgets that a replaced row moves two groups is beaten; what is drawn is what the law says.

The law of the draws is computed from the heights of the mechanism's own samplers; that a sampler follows its heights is
tested beside it, and for every sampler of this kind in test_erm_exponential.py.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from discreet.audit.laws import Setting
from discreet.data import Category, Domain, Number, Table
from discreet.guarantee import Neighbours
from discreet.mechanisms import DRAWS, GroupQuantiles
from discreet.query import Between, Equals
from discreet.rng import SeededRng

LEVELS = 3
GROUPS = Domain(g=Category("a", "b"), x=Number(0, LEVELS - 1, step=1))
BOTH = [Setting(GROUPS, Neighbours(kind)) for kind in ("replace-one", "add-remove")]
CELLS = list(itertools.product("ab", range(LEVELS)))


def made(q="1/2", keys=("g",), outer="1/2", **more):
    return GroupQuantiles("x", q, Fraction(1, 2), outer, 1, keys, **more)


def table(rows, setting):
    return setting.table([{"g": group, "x": value} for group, value in rows])


def logs(mechanism, data):
    """The logarithms of the probabilities of every draw of every group."""
    found = []
    for sampler in mechanism.samplers(data):
        weights = -float(sampler.rate) * np.array(sampler.heights(range(LEVELS)), dtype=float)
        found.append(weights - np.logaddexp.reduce(weights))
    return np.array(found)


def loss(one, other):
    """The largest privacy loss: the draws are independent, so it is the sum of the largest ones."""
    return float((one - other).max(axis=1).sum())


def divergence(one, other, order):
    """The Renyi divergence of this order, summed over the independent draws."""
    return float(np.sum(np.logaddexp.reduce(order * one + (1 - order) * other, axis=1)) / (order - 1))


def pairs(setting, size):
    """All pairs of neighbouring tables of at most `size` rows, up to order."""
    for n in range(1, size):
        for shared in itertools.combinations_with_replacement(CELLS, n):
            for mine in CELLS:
                if setting.neighbours.replace_one:
                    yield from (((*shared, mine), (*shared, other)) for other in CELLS if other != mine)
                else:
                    yield (*shared, mine), shared
                    yield shared, (*shared, mine)


def worst(mechanism, setting, size=3):
    """The largest loss, and the largest divergence of orders 2 and 8, as parts of the price."""
    laws, most, rates = {}, 0.0, 0.0

    def of(rows):
        key = tuple(sorted(rows))
        if key not in laws:
            laws[key] = logs(mechanism, table(rows, setting))
        return laws[key]

    for first, second in pairs(setting, size):
        most = max(most, loss(of(first), of(second)))
        for order in (2, 8):
            rates = max(rates, divergence(of(first), of(second), order) / order)
    return most, rates


CASES = [
    made(),
    made(outer="1/5"),
    made("3/4"),
    made("1/10"),
    made(keys=()),
    made("3/4", where=Between("x", 0, 1)),
    made(where=Equals("g", "a")),
]


@pytest.mark.parametrize("setting", BOTH, ids=["replace", "add"])
@pytest.mark.parametrize("mechanism", CASES, ids=str)
def test_no_pair_of_small_tables_beats_the_price(mechanism, setting):
    price = mechanism.guarantee(table([("a", 0)], setting).facts)
    most, rate = worst(mechanism, setting)
    assert most <= float(price.pure) * (1 + 1e-12)
    assert rate <= price.at(2.0) / 2 * (1 + 1e-12)


def test_the_worst_pair_comes_near_the_price():
    for setting, part in zip(BOTH, (0.3, 0.3), strict=True):
        price = made().guarantee(table([("a", 0)], setting).facts)
        assert worst(made(), setting)[0] > part * float(price.pure)


def test_forgetting_that_a_row_moves_two_groups_is_caught():
    """A twin that prices a replaced row as one that only leaves: the rows below beat its price."""
    mechanism, (replace, add) = GroupQuantiles("x", "1/2", 2, 2, 1, ("g",)), BOTH
    shared = [("a", 1)] * 3 + [("b", 1)] * 5
    one, other = (logs(mechanism, table([*shared, moved], replace)) for moved in (("b", 0), ("a", 1)))
    cheap, price = (mechanism.guarantee(table([("a", 0)], each).facts) for each in (add, replace))
    assert float(cheap.pure) * 1.05 < loss(one, other) <= float(price.pure)


def test_two_groups_cost_no_more_than_one_under_add_remove():
    facts = table([("a", 0)], BOTH[1]).facts
    assert made().guarantee(facts).pure == made(keys=()).guarantee(facts).pure
    assert made().guarantee(facts).at(4.0) == made(keys=()).guarantee(facts).at(4.0)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("kind", ["replace-one", "add-remove"])
def test_a_person_of_several_rows_moves_no_more_than_the_price(kind, rows):
    """All ways to move one person's rows between two groups, with a fixed person beside."""
    setting, mechanism = Setting(GROUPS, Neighbours(kind, rows), unit="id"), made("3/4")
    fixed = [("a", 1), ("b", 2)]
    held = list(itertools.combinations_with_replacement(CELLS, rows))[:: 2 if rows > 1 else 1]

    def law(chosen):
        people = [{"g": g, "x": x, "id": at} for at, (g, x) in enumerate(fixed)]
        return logs(mechanism, setting.table([*people, *({"g": g, "x": x, "id": 9} for g, x in chosen)]))

    laws = [law(chosen) for chosen in held]
    others = laws if kind == "replace-one" else [law(())]
    price = mechanism.guarantee(setting.facts([{"g": "a", "x": 1, "id": 0}]))
    assert max(loss(one, other) for one in laws for other in others) <= float(price.pure)
    rates = [divergence(one, other, 2) / 2 for one in laws for other in others]
    assert max(rates) <= price.at(2.0) / 2


def test_what_is_drawn_follows_the_law():
    data = table([("a", 0), ("a", 2), ("b", 1), ("b", 1)], BOTH[0])
    mechanism, rng, runs = made("3/4"), SeededRng(5), 4000
    drawn = [tuple(mechanism.run(data, rng).ravel().astype(int)) for _ in range(runs)]
    chances = np.exp(logs(mechanism, data))
    for place, law in enumerate(chances):
        seen = Counter(each[place] for each in drawn)
        for value, chance in enumerate(law):
            assert abs(seen[value] - runs * chance) < 6 * math.sqrt(runs * chance * (1 - chance)) + 1


@pytest.mark.parametrize("rows", [0, 1, 5, 400])
@pytest.mark.parametrize("q", ["1/2", "9/10"])
def test_the_outer_draws_confine_the_quantile_as_often_as_promised(rows, q):
    """With reach = ln(3 G points / failure) / rate the interval fails with probability `failure` at the most."""
    domain = Domain(g=Category("a", "b", "c"), x=Number(0, 200, step=1))
    generator = np.random.default_rng(3)
    values = generator.integers(20, 180, (3, rows))
    data = {"g": np.repeat(["a", "b", "c"], rows).tolist(), "x": values.ravel().tolist()}
    held = Table(data, domain, neighbours="add-remove", size=100)
    rate, failure, runs, missed = Fraction(1, 4), 0.1, 200, 0
    reach = math.ceil(math.log(DRAWS * 3 * 201 / failure) / float(rate))
    mechanism, rng = GroupQuantiles("x", q, rate, rate, reach, ("g",)), SeededRng(11)
    for _ in range(runs):
        low, _, high = mechanism.run(held, rng)
        for group in range(3 if rows else 0):
            for method in ("inverted_cdf", "linear", "higher", "lower"):
                true = np.quantile(values[group], float(Fraction(q)), method=method)
                missed += not low[group] <= true <= high[group]
    assert missed <= 4 * failure * runs  # it is far below: four methods, and the bound is generous


def test_grids_too_fine_to_be_listed_have_the_same_law():
    fine = Domain(g=Category("a", "b"), x=Number(0, 2**23, step=1))
    held = Table({"g": ["a", "a", "b"], "x": [5, 2**22, 9]}, fine, neighbours="add-remove")
    mechanism = GroupQuantiles("x", "1/2", 1, 1, 2, ("g",))
    found = [sampler.heights([0, 5, 9, 2**22, 2**23]) for sampler in mechanism.samplers(held)]
    coarse = Domain(g=Category("a", "b"), x=Number(0, 4, step=1))
    same = Table({"g": ["a", "a", "b"], "x": [1, 3, 2]}, coarse, neighbours="add-remove")
    assert found == [sampler.heights(range(5)) for sampler in mechanism.samplers(same)]


@pytest.mark.parametrize("kind", ["replace-one", "add-remove"])
def test_persons_of_two_rows_nearly_cost_what_they_pay(kind):
    """The others are in the middle of the grid, so that half of it is too low and half too high, by as many ranks. With
    much noise the Renyi price is nearly attained: one factor of the rows less, and these pairs would beat it."""
    domain = Domain(x=Number(0, 40, step=1))
    setting = Setting(domain, Neighbours(kind, 2), unit="id")
    mechanism = GroupQuantiles("x", "1/2", Fraction(1, 20), Fraction(1, 2000), 1)

    def law(chosen):
        data = setting.table([*({"x": 20, "id": at} for at in range(8)), *({"x": x, "id": 9} for x in chosen)])
        heights = [
            (float(each.rate), np.array(each.heights(range(41)), dtype=float)) for each in mechanism.samplers(data)
        ]
        return np.array([-rate * each - np.logaddexp.reduce(-rate * each) for rate, each in heights])

    one, other = law((0, 0)), law((40, 40) if kind == "replace-one" else ())
    price = mechanism.guarantee(setting.facts([{"x": 1, "id": 0}]))
    found = max(divergence(*pair, 2) for pair in ((one, other), (other, one)))
    assert 0.8 * price.at(2.0) < found <= price.at(2.0)
