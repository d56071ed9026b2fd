"""Searches by bisection: where a condition begins or ceases to hold."""

from fractions import Fraction

import numpy as np

from discreet import exact


def test_bisection_finds_where_a_condition_begins_and_ceases_to_hold():
    assert exact.least(lambda n: n * n >= 1000, 0, 1000) == 32
    assert exact.most(lambda n: n * n <= 1000, 0, 1000) == 31
    root = exact.least(lambda x: x * x >= 2.0, 1.0, 2.0)
    assert root * root >= 2.0 > np.nextafter(root, 0.0) ** 2
    low, high = exact.narrow(lambda x: x >= Fraction(1, 3), Fraction(0), Fraction(1), lambda a, b: b - a < b / 100)
    assert low < Fraction(1, 3) <= high
    assert high - low < high / 100


def test_a_bracket_grows_to_where_a_condition_holds_and_gives_up_at_its_limit():
    assert exact.bracket(lambda n: n >= 100, 0, 16, limit=1000) == (64, 128)
    assert exact.bracket(lambda n: n >= 100, 1, 16, limit=1000, factor=4) == (64, 256)
    assert exact.bracket(lambda n: n >= 5, 0, 16, limit=1000) == (0, 16)
    assert exact.bracket(lambda n: n >= 10**9, 0, 16, limit=1000) is None
