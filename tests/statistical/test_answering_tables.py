"""Residuals have the stated noise and choices the stated law; a scale or rate that is 30 % off is rejected.

The false-alarm rate of each is at most 1e-6.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

import discreet as dp
from discreet.answering.chosen_tables import ChosenTables, shares_of
from discreet.answering.residual_marginals import ResidualMarginals
from discreet.rng import Rng
from tests.statistical.test_mechanism_law import ALARM, fits

DOMAIN = dp.Domain({name: dp.Category(levels=range(2)) for name in "abc"})
ROWS = {"a": [0, 0, 1, 1] * 5, "b": [0, 0, 1, 1] * 4 + [0, 1, 0, 1], "c": [0, 1] * 10}
TABLE = dp.Table(ROWS, DOMAIN, neighbours="replace-one")
OFF = [Fraction(7, 10), Fraction(13, 10)]


@pytest.mark.parametrize("wrong", [None, *OFF])
def test_the_noise_of_a_residual_has_the_stated_variance(wrong):
    """The differences of a column of 40 values: 39 free numbers in every run, normal but for their grid."""
    wide = dp.Domain(x=dp.Category(levels=range(40)))
    table = dp.Table({"x": list(range(40))}, wide, neighbours="replace-one")
    mechanism, runs = ResidualMarginals(["x"], [1, 5], 64), 60
    squares = sum(float(((mechanism.run(table, Rng())[0] - 1) ** 2).sum()) for _ in range(runs))
    statistic = squares / (5 * float(wrong or 1)) ** 2
    low, high = chi2.ppf(ALARM / 2, 39 * runs), chi2.isf(ALARM / 2, 39 * runs)
    assert (low <= statistic <= high) == (wrong is None)


RATE, RUNS = Fraction(1, 8), 1500
CHOICE = ChosenTables(tuple("abc"), Fraction(1, 50), RATE, 0, "laplace")


@functools.cache
def first_pairs():
    return Counter(CHOICE.run(TABLE, Rng())[3][0] for _ in range(RUNS))


@pytest.mark.parametrize("wrong", [None, *OFF])
def test_a_choice_has_the_stated_law(wrong):
    """With hardly any noise the scores are known: the first pair is drawn in proportion to exp(rate * score)."""
    pairs = list(itertools.combinations("abc", 2))
    known = {(name,): shares_of(np.bincount(ROWS[name], minlength=2)) for name in "abc"}
    scores = CHOICE._scored(TABLE, known, 20, pairs)
    weights = {pair: math.exp(float(RATE * (wrong or 1)) * scores[pair]) for pair in pairs}
    total = sum(weights.values())
    assert fits(first_pairs(), {pair: weight / total for pair, weight in weights.items()}, RUNS) == (wrong is None)
