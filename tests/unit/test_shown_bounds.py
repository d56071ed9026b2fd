"""What is printed for people: a bound is never shown as less than it is, and a value never with less than its bound
needs, so that the truth lies where the two printed numbers say."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from discreet.answering.answer import Answer
from discreet.answering.answer_words import headline
from discreet.display import NO_BOUND, round_up, rounded
from discreet.guarantee import Guarantee
from discreet.pac.mistake_bound import MistakeBound, bound_in_words


def number(text: str) -> float:
    return float(text.replace(",", ""))


VALUES = [0.0, 37.428571428571, -0.000123456789, 12345678.9, 9.87654321e13, -5e-9]
BOUNDS = [1e-7, 0.0523, 0.999999, 1.0, 4.0005, 12.3456, 40.0, 987654.3, 2.5e9]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("bound", BOUNDS)
def test_wherever_the_truth_may_be_the_printed_numbers_say_so(value, bound):
    shown, near = map(number, rounded(value, bound))
    assert abs(shown - value) + bound <= near * (1 + 1e-12) + abs(value) * 1e-15
    assert near <= bound * 1.02  # and three digits are enough


def test_a_bound_of_nothing_and_no_bound_are_shown_as_such():
    assert rounded(0.25, 0.0) == ("0.25", "0")
    assert rounded(0.25, math.inf) == ("0.25", NO_BOUND)


@pytest.mark.parametrize("bound", [*BOUNDS, *np.random.default_rng(1).uniform(0, 1, 50).tolist()])
def test_three_digits_of_a_bound_are_rounded_up(bound):
    assert bound <= number(round_up(bound)) * (1 + 1e-15) <= bound * 1.0101


def answered(value, bound, *, unit, size=5912, fraction=None, population=None, ranks=False) -> Answer:
    found = Answer(value, bound, "direct", 1, fraction, unit, population, size=size, columns=("it",), rows=[(value,)])
    return replace(found, intervals=[((value - bound, value + bound),)], ranks=bound if ranks else None)


def test_a_sum_is_shown_with_the_digits_that_its_bound_leaves_it():
    """Six digits of 12,345,678 would be wrong by 8 times its bound."""
    said = headline(answered(12345678.0, 40.25, unit="pay"))
    value, bound = map(number, re.match(r"(.+) ± (\S+) \(pay\)", said).groups())
    assert abs(value - 12345678.0) + 40.25 <= bound < 41


def test_a_share_of_the_people_is_shown_within_its_bound():
    said = headline(answered(2069, 3.0, unit="persons", fraction=2069 / 5912))
    share, near = map(float, re.search(r"\(([\d.]+) % ± ([\d.]+) % of the people\)", said).groups())
    assert said.startswith("2,069 ± 3 persons")
    assert abs(share - 100 * 2069 / 5912) + 100 * 3.0 / 5912 <= near


def test_a_quantile_is_shown_as_it_is():
    """Its bound is about ranks, and does not look as if it were about the value."""
    said = headline(answered(1234567.5, 12.0, unit="wealth", ranks=True))
    assert said == "1,234,567.5 (wealth; true value between 1,234,555.5 and 1,234,579.5; ± 12 ranks)"


def test_the_bound_for_a_population_is_rounded_up():
    said = str(answered(2069, 3.0, unit="persons", fraction=0.35, population=0.012341))
    assert "± 1.24 % of the population, if the rows are a random sample of it" in said


@pytest.mark.parametrize(
    ("rows", "size", "share"), [(212, 10_000, "2.12%"), (2123, 100_000, "2.13%"), (1, 3, "33.34%")]
)
def test_the_share_of_a_certificate_is_rounded_up(rows, size, share):
    pure = Guarantee.of_pure("1/10", neighbours="replace-one")
    said = str(MistakeBound(rows, rows, rows / size, Fraction(1, 100), pure, 1, ""))
    assert said == f"wrong on at most {rows:,} rows ({share} of all) with probability 0.99"


@pytest.mark.parametrize(("beta", "words"), [("1/20", "0.95"), ("1e-7", "0.999999"), ("1/3", "0.666666")])
def test_no_certificate_is_surer_than_it_is(beta, words):
    assert bound_in_words(9, None, beta) == f"wrong on at most 9 rows with probability {words}"
    assert bound_in_words(9, None, float(Fraction(beta))) == bound_in_words(9, None, beta)
