"""Box learners play the game at exactly the stated number of rows, on planted boxes of several kinds."""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.data import Category, Domain, Facts, Number, Table
from discreet.funds import Funds
from discreet.guarantee import Budget, Neighbours
from discreet.method import Method
from discreet.pac.boxes import SlicedBox, methods
from discreet.pac.rules import BoxRule, Labels
from discreet.rng import SeededRng
from tests.pac_game import assert_honest, mistakes, most_losses

LABELS = Labels("y", "yes")
BETA = Fraction(1, 10)
FAMILIES = ("uniform", "clustered", "correlated", "two points", "few", "all")
METHODS = ("basic", "zcdp", "search", "prefix", "reorder-slice")


def columns_of(dimension):
    return tuple(f"x{i}" for i in range(dimension))


def domain_of(dimension, bits):
    return Domain(
        {**{name: Number(0, 2**bits - 1, step=1) for name in columns_of(dimension)}, "y": Category("no", "yes")}
    )


def planted(family, n, dimension, bits, seed):
    """Rows that a box labels right: codes in the middle of every column are positive."""
    rng, top = np.random.default_rng(seed), 2**bits
    low, high = top // 8, top - top // 8
    codes = rng.integers(0, top, (n, dimension))
    if family == "clustered":
        codes = np.where(rng.random((n, 1)) < 0.7, low + rng.geometric(0.2, (n, dimension)), codes) % top
    if family == "correlated":
        codes = (codes[:, :1] + rng.integers(0, max(2, top // 16), (n, dimension))) % top
    if family == "two points":
        codes = np.where(rng.random((n, 1)) < 0.5, low, high) + np.zeros((n, dimension), dtype=np.int64)
    if family == "all":
        low, high = 0, top - 1
    positive = ((codes >= low) & (codes <= high)).all(axis=1)
    if family == "few":  # all but one row in a hundred outside, in one column
        moved = rng.random(n) >= 0.01
        codes[:, 0] = np.where(moved, rng.integers(0, low, n), codes[:, 0])
        positive &= ~moved
    rows = {name: codes[:, i] for i, name in enumerate(columns_of(dimension))}
    return Table({**rows, "y": np.where(positive, "yes", "no").tolist()}, domain_of(dimension, bits))


@functools.cache
def learners(dimension, bits, epsilon):
    facts = Facts(domain_of(dimension, bits), Neighbours("replace-one"), None)
    funds = Funds.of(Budget(epsilon, "1e-6"))
    return methods(columns_of(dimension), LABELS, facts=facts, beta=BETA, funds=funds)


def wrong_inside(rule, table):
    """How many negative rows are in the box."""
    return int(table.exact_sum(lambda batch: np.asarray(np.sum(rule.mask(batch) & ~LABELS.mask(batch)))))


def play(mechanism, family, dimension, bits, *, n, alpha, runs, tables=4):
    """In how many runs the box is wrong on more than alpha of n rows, and in how many on a negative row."""
    lost = false = 0
    drawn = [planted(family, n, dimension, bits, seed) for seed in range(tables)]
    for run in range(runs):
        table = drawn[run % tables]
        rule = BoxRule(columns_of(dimension), *mechanism.run(table, SeededRng(run)))
        lost += mistakes(rule, table, LABELS) > alpha * n
        false += wrong_inside(rule, table) > 0
    return lost, false


def play_honestly(method: Method, family, dimension, bits, *, alpha, runs):
    n = method.needed(alpha)
    lost, false = play(method.mechanism(alpha), family, dimension, bits, n=n, alpha=alpha, runs=runs)
    assert_honest(lost, runs, float(BETA))
    assert_honest(false, runs, float(BETA))


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_planted_box_is_found_at_the_stated_size(name, family):
    play_honestly(learners(2, 8, 16).named(name), family, 2, 8, alpha=0.2, runs=16)


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("dimension", "bits", "epsilon"), [(1, 32, 1), (2, 16, 1), (5, 8, 1), (5, 32, 4), (10, 16, 8), (30, 8, 16)]
)
def test_planted_boxes_of_many_shapes_are_found_at_the_stated_size(name, family, dimension, bits, epsilon):
    method = learners(dimension, bits, epsilon).named(name)
    play_honestly(method, family, dimension, bits, alpha=0.25, runs=40)


def test_the_game_is_lost_by_slices_that_are_too_short():
    """So that the game can be lost at all: a hundredth of the rows for the same noise."""
    method = learners(2, 8, 1).named("basic")
    honest, n = method.mechanism(0.2), method.needed(0.2) // 50
    short = SlicedBox(honest.columns, LABELS, honest.routine, honest.count // 50, 1, 0)
    lost, false = play(short, "two points", 2, 8, n=n, alpha=0.2, runs=40)
    assert max(lost, false) > most_losses(40, float(BETA))


@pytest.mark.parametrize("name", ["basic", "search", "reorder-slice"])
def test_any_number_of_positives_keeps_the_bound(name):
    """Around the threshold of the noisy count the box may be empty or not: either is within the bound."""
    method = learners(2, 8, 16).named(name)
    mechanism, n = method.mechanism(0.2), method.needed(0.2)
    least = mechanism.count + mechanism.margin if isinstance(mechanism, SlicedBox) else mechanism.threshold
    for positives in (0, 1, mechanism.count, least - 5, least, least + 5, n):
        labels = ["yes"] * positives + ["no"] * (n - positives)
        codes = [100 + place % 50 for place in range(positives)] + [10] * (n - positives)
        table = Table({"x0": codes, "x1": [128] * n, "y": labels}, domain_of(2, 8))
        wrong = [
            mistakes(BoxRule(("x0", "x1"), *mechanism.run(table, SeededRng(run))), table, LABELS) for run in range(20)
        ]
        assert_honest(sum(each > 0.2 * n for each in wrong), 20, float(BETA))


def test_the_random_sizes_exceed_their_allowance_as_rarely_as_stated():
    """2 d geometric sizes together, against the Gamma quantile in the threshold: half of beta at most."""
    mechanism = learners(5, 8, 1).named("reorder-slice").mechanism(0.2)
    drawn = SeededRng(1).geometric(mechanism.spread, (4000, 10)).sum(axis=1)
    margin = math.ceil(mechanism.few_scale * -math.log(float(BETA) / 8))
    allowed = mechanism.threshold - margin - 10 * mechanism.count
    assert_honest(int((drawn > allowed).sum()), 4000, float(BETA) / 2)
    assert (drawn > allowed).sum() > 0  # and the allowance is not wasteful
