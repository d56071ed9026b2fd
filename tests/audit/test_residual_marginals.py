"""Exact laws of residual marginals on neighbouring tables: the tight price holds, comes near, and twins are caught."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.answering.residual_marginals import ResidualMarginals
from discreet.audit.laws import Setting, law, rows
from discreet.data import Category, Domain
from discreet.guarantee import ORDERS, Neighbours

LETTERS = Domain(v=Category("a", "b"))
THREE = Domain(v=Category("a", "b", "c"))
PAIR = ResidualMarginals(["v"], [Fraction(1, 2), 1], 1)


def renyi(p, q, order):
    """Of two listed laws; what was cut off is far below what matters here."""
    return math.log(math.fsum(m**order * q.mass[x] ** (1 - order) for x, m in p.mass.items() if x in q.mass)) / (
        order - 1
    )


def worst(mechanism, setting, first, second, order, run=None, reach=9):
    made = mechanism if run is None else Twin(mechanism, run)
    p, q = (law(made, rows("v", *table), setting, reach=reach) for table in (first, second))
    return max(renyi(p, q, order), renyi(q, p, order))


class Twin:
    def __init__(self, honest, run):
        self.honest, self._run = honest, run

    def run(self, data, rng):
        return self._run(self.honest, data, rng)


def shows_the_cells(honest, data, rng):
    """Every part's noisy cells themselves instead of their differences, for the price of the differences."""
    counts = np.array(
        [
            int(data.exact_sum(query))
            for query in (lambda batch: np.sum(batch["v"] == 0), lambda batch: np.sum(batch["v"] == 1))
        ]
    )
    total = int(counts.sum()) + int(rng.gaussian(honest.scales[0] ** 2))
    return total, tuple((counts + rng.gaussian(honest.scales[1] ** 2, (2,))).tolist())


@pytest.mark.parametrize("order", [1.5, 2.0])
@pytest.mark.parametrize(
    ("domain", "kind", "tables", "reach"),
    [
        (LETTERS, "add-remove", ("ab", "b"), 9),
        (LETTERS, "replace-one", ("ab", "bb"), 9),
        (THREE, "add-remove", ("abc", "bc"), 4),
        (THREE, "replace-one", ("abc", "bbc"), 7),
    ],
)
def test_no_pair_beats_the_tight_price_and_it_is_nearly_reached(domain, kind, tables, reach, order):
    setting, mechanism = Setting(domain, Neighbours(kind)), PAIR
    if domain is THREE and kind == "add-remove":
        mechanism = ResidualMarginals(["v"], [Fraction(1, 2), Fraction(3, 4)], 1)
    facts = setting.facts(rows("v", *tables[0]))
    stated = mechanism.guarantee(facts).renyi[ORDERS.index(order)]
    found = worst(mechanism, setting, *tables, order, reach=reach)
    assert 0.9 * stated < found <= stated + 1e-6


@pytest.mark.parametrize("order", [1.5, 2.0])
def test_showing_the_noisy_cells_for_the_price_of_their_differences_is_caught(order):
    setting = Setting(LETTERS, Neighbours("add-remove"))
    stated = PAIR.guarantee(setting.facts(rows("v", *"ab"))).renyi[ORDERS.index(order)]
    assert worst(PAIR, setting, "ab", "b", order, run=shows_the_cells) > 1.05 * stated


@pytest.mark.parametrize("order", [1.5, 2.0])
def test_without_noise_on_the_number_of_rows_the_price_is_beaten(order):
    setting = Setting(LETTERS, Neighbours("add-remove"))
    stated = PAIR.guarantee(setting.facts(rows("v", *"ab"))).renyi[ORDERS.index(order)]
    quiet = ResidualMarginals(["v"], [Fraction(1, 3), 1], 1)
    assert worst(PAIR, setting, "ab", "b", order, run=lambda honest, data, rng: quiet.run(data, rng)) > 1.5 * stated
