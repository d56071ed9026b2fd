"""What a noisy marginal proves about other questions, against somebody who knows the noise and asks for the worst."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from discreet.answering.linear_query import linear
from discreet.answering.measurement import SETS, Measured, interval, noise_bound, read_off
from discreet.data import Category, Domain, Number
from discreet.query import Among, And, Count, Equals, GroupCount, GroupSum, Histogram, Or, Sum
from discreet.rng import SeededRng
from discreet.row_functions import Of

KINDS = ["gaussian", "laplace"]
FAILURE = 0.2
PLACES = Domain(a=Category("p", "q"), b=Category("r", "s", "t"))
LINE = Domain(x=Number(-2, 3, step=1))
RUNS = 3000


def probabilities(kind, scale, reach):
    """The exact law of one noise on -reach .. reach."""
    at = np.arange(-reach, reach + 1)
    weight = np.exp(-(at**2) / (2 * scale**2)) if kind == "gaussian" else np.exp(-abs(at) / scale)
    far = np.arange(-60 * reach, 60 * reach + 1)
    total = np.exp(-(far**2) / (2 * scale**2)) if kind == "gaussian" else np.exp(-abs(far) / scale)
    return weight / total.sum()


def outside(kind, scale, copies, bound):
    """P[|sum of so many noises| > bound], exactly up to what lies beyond 40 scales."""
    reach = math.ceil(40 * scale) + 5
    one = law = probabilities(kind, scale, reach)
    for _ in range(copies - 1):
        law = np.convolve(law, one)
    at = np.arange(len(law)) - len(law) // 2
    return law[abs(at) > bound].sum()


@functools.cache
def quantile(kind, scale, copies):
    """The least whole number that a sum of so many noises exceeds with probability at most FAILURE."""
    if copies == 0:
        return 0
    return next(each for each in itertools.count() if outside(kind, scale, copies, each) <= FAILURE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.3, 0.7, 1.0, 2.5, 9.0])
@pytest.mark.parametrize("copies", [1, 2, 5])
def test_the_bound_of_a_fixed_sum_holds_with_its_probability(kind, scale, copies):
    for failure in (0.5, 0.1, 1e-3, 1e-6):
        bound = noise_bound(kind, scale, copies=copies, log_sets=0.0, failure=failure)
        assert outside(kind, scale, copies, bound) <= failure * (1 + 1e-9) + 1e-14


@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_of_many_fixed_sums_is_that_of_one_with_less_failure(kind):
    many = noise_bound(kind, 3.0, copies=2, log_sets=math.log(50), failure=0.1)
    assert many == pytest.approx(noise_bound(kind, 3.0, copies=2, log_sets=0.0, failure=0.1 / 50))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e-4, 1e-3, 1e-2, 1.0, 1e3, 1e9, 1e12, 1e15])
def test_bounds_are_numbers_at_every_scale_the_samplers_take(kind, scale):
    """In scales a bound hardly depends on the scale: below one it may be smaller, since there are no small noises."""
    for copies in (1, 100):
        here = noise_bound(kind, scale, copies=copies, log_sets=1.0, failure=0.05) / scale
        usual = noise_bound(kind, 100.0, copies=copies, log_sets=1.0, failure=0.05) / 100
        assert here >= 0
        if scale >= 1:
            assert here == pytest.approx(usual, rel=0.35 if scale == 1 else 0.02)


# The game: the truth is a table of zeros, so what is read off is the error. What is read off is an affine function of
# the measured numbers: the code is asked for it at the unit vectors, and then applied to many noises at once.


class Board:
    """A measured marginal and all questions that the adversary may ask about it."""

    def __init__(self, whole, questions, domain, *, kind, scale, total):
        self.whole, self.domain, self.kind, self.scale, self.total = whole, domain, kind, scale, total
        self.forms = [linear(question, domain) for question in questions]
        self.shape = whole.shape(domain)
        zero = np.zeros(math.prod(self.shape))
        self.base, self.errors = self.read(zero)
        self.matrix = np.stack([self.read(unit)[0] - self.base for unit in np.eye(zero.size)], axis=1)

    def read(self, noise):
        measured = Measured(self.whole, self.kind, self.scale, 1.0, noise.reshape(self.shape))
        found = [read_off(measured, form, self.domain, failure=FAILURE, total=self.total) for form in self.forms]
        return np.concatenate([each[0].ravel() for each in found]), np.concatenate([each[1].ravel() for each in found])

    def noises(self, rng):
        size = (RUNS, math.prod(self.shape))
        if self.kind == "gaussian":
            return rng.gaussian(Fraction(self.scale) ** 2, size=size).astype(np.float64)
        return rng.laplace(Fraction(self.scale), size=size).astype(np.float64)

    def lost(self, rng, bounds):
        """In how many runs some answer is further off than its bound."""
        wrong = abs(self.noises(rng) @ self.matrix.T + self.base)
        return int((wrong > bounds + 1e-9).any(axis=1).sum())

    def fixed_bounds(self):
        """The twin: for every question a bound that holds if it was asked before the noise was drawn, and not too
        generous: the largest weight times the exact quantile of a sum of as many noises."""
        return np.array(
            [
                abs(row).max(initial=0) * quantile(self.kind, self.scale, int(np.count_nonzero(row)))
                for row in self.matrix
            ]
        )


def subsets(values):
    return [each for size in range(1, len(values) + 1) for each in itertools.combinations(values, size)]


def questions_about_places():
    """Every set of cells over (a, b), over a and over b; the marginals; everybody."""
    cells = [And(Equals("a", one), Equals("b", other)) for one in "pq" for other in "rst"]
    sets = [Count(Or(*chosen)) for chosen in subsets(cells)]
    over_one = [
        Count(Among(name, chosen)) for name, levels in (("a", "pq"), ("b", "rst")) for chosen in subsets(levels)
    ]
    return [*sets, *over_one, Histogram("a"), Histogram("b"), Histogram(("b", "a")), Count()]


def sums_over_line():
    """The sum over every set of values: some weights are negative."""
    return [Sum("x", Among("x", chosen)) for chosen in subsets(range(-2, 4))]


def boards(kind, scale):
    whole = Histogram(("b", "a"))  # not in the domain's order
    for total in (None, 0.0):
        yield Board(whole, questions_about_places(), PLACES, kind=kind, scale=scale, total=total)
    yield Board(Histogram("x"), sums_over_line(), LINE, kind=kind, scale=scale, total=0.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.75, 6.0])
def test_no_set_chosen_with_the_noise_in_hand_beats_its_bound(kind, scale):
    for seed, board in enumerate(boards(kind, scale)):
        lost = board.lost(SeededRng(seed), board.errors)
        assert binom.sf(lost - 1, RUNS, FAILURE) > 1e-6, (lost, board.total)


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_of_questions_asked_before_the_noise_are_caught(kind):
    for seed, board in enumerate(boards(kind, 6.0)):
        lost = board.lost(SeededRng(seed), board.fixed_bounds())
        assert binom.sf(lost - 1, RUNS, FAILURE) < 1e-6, (lost, board.total)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_off_is_the_same_linear_function_as_the_question(kind):
    """The matrix of the game is the question's own tensor, summed over the columns that it does not mention."""
    board = Board(Histogram(("b", "a")), questions_about_places(), PLACES, kind=kind, scale=2.0, total=None)
    table = np.arange(6.0).reshape(3, 2) ** 2
    read = board.matrix @ table.ravel()
    joint = table.T  # axes in the domain's order
    sums = {("a", "b"): joint, ("a",): joint.sum(axis=1), ("b",): joint.sum(axis=0), (): joint.sum()}
    expected = np.concatenate([form.of(np.asarray(sums[form.scope])).ravel() for form in board.forms])
    np.testing.assert_allclose(read, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_with_a_public_total_a_large_set_is_as_sharp_as_its_complement(kind):
    measured = Measured(Histogram("b"), kind, 3.0, 1.0, np.array([5.0, 1.0, 2.0]))
    two, one = (linear(Count(Among("b", levels)), PLACES) for levels in (["r", "s"], ["t"]))
    value, error = read_off(measured, two, PLACES, failure=0.1, total=20.0)
    # Gaussian noise is levelled: 12 rows more, evenly over the three cells. Laplace noise is read from the other side.
    read = {"gaussian": 14, "laplace": 18}[kind]
    assert (value, error) == (read, read_off(measured, one, PLACES, failure=0.1, total=20.0)[1])
    value, wider = read_off(measured, two, PLACES, failure=0.1, total=None)
    assert value == 6
    assert wider > error


def test_an_interval_is_the_sharper_of_the_own_number_and_the_set():
    measured = Measured(Histogram("b"), "gaussian", 3.0, 1.0, np.array([5.0, 1.0, 2.0]))
    low, high = interval(measured, Histogram("b"), PLACES, failure=0.1, total=None)
    own = noise_bound("gaussian", 3.0, copies=1, log_sets=math.log(3), failure=0.1 * (1 - SETS))
    sets = read_off(measured, linear(Histogram("b"), PLACES), PLACES, failure=0.1 * SETS, total=None)[1]
    np.testing.assert_allclose(high - low, 2 * np.minimum(own, sets))
    assert interval(measured, Count(Equals("a", "p")), PLACES, failure=0.1, total=None) is None


def test_the_own_numbers_and_the_sets_share_one_failure():
    """All intervals of one measurement at once, own numbers and sets, fail together with at most its failure."""
    questions = [*questions_about_places(), Histogram(("a", "b"))]
    zero = Measured(Histogram(("a", "b")), "gaussian", 2.0, 1.0, np.zeros((2, 3)))
    ends = [interval(zero, question, PLACES, failure=FAILURE, total=None) for question in questions]
    widths = np.concatenate([high.ravel() for _, high in ends])
    lost = Board(Histogram(("a", "b")), questions, PLACES, kind="gaussian", scale=2.0, total=None).lost(
        SeededRng(5), widths
    )
    assert binom.sf(lost - 1, RUNS, FAILURE) > 1e-6


def test_a_measured_count_with_a_condition_proves_only_its_own_answer():
    measured = Measured(Count(Equals("a", "p")), "laplace", 2.0, 1.0, np.array(7.0))
    low, high = interval(measured, Count(Among("a", ["p"])), PLACES, failure=0.1, total=None)  # the same by meaning
    assert high - low == pytest.approx(2 * noise_bound("laplace", 2.0, copies=1, log_sets=0.0, failure=0.1))
    assert interval(measured, Count(Equals("a", "q")), PLACES, failure=0.1, total=None) is None


def test_a_sum_is_bounded_in_its_own_units():
    """A measured sum on a fine grid: the noise is in integers, the interval in the column's units."""
    fine = Domain(x=Number(0, 1, step="0.25"))
    measured = Measured(Sum("x"), "gaussian", 3.0, 0.25, np.array(2.5))
    low, high = interval(measured, Sum("x"), fine, failure=0.1, total=None)
    assert (high - low) / 2 == pytest.approx(0.25 * noise_bound("gaussian", 12.0, copies=1, log_sets=0.0, failure=0.1))


def test_the_groups_of_a_sum_say_nothing_about_a_count():
    """A small sum with much noise would else be taken for a small number of rows."""
    domain = Domain(a=Category("x", "y"), n=Number(-10, 10, step=1))
    sums = GroupSum(["a"], Of("n"))
    measured = Measured(sums, "gaussian", 3.0, 1.0, np.array([2.0, -1.0]))
    assert interval(measured, Count(), domain, failure=1e-6, total=None) is None
    counted = replace(measured, query=GroupCount(["a"]), value=np.array([40.0, 50.0]))
    low, high = interval(counted, Count(), domain, failure=1e-6, total=None)
    assert low < 90 < high
