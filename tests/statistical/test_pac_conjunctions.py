"""Promises about conjunctions are kept at exactly the stated number of rows, on rows that are made to break them."""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.data import BitMatrix, Bits, Category, Domain, Facts
from discreet.funds import Funds
from discreet.guarantee import Budget, Neighbours
from discreet.pac.conjunctions import COUNTS, EXACT, LECTURE, Listing, PackedRows, methods, tuned
from discreet.pac.rules import Conjunction, Labels, Literals
from discreet.rng import SeededRng
from tests.pac_game import assert_honest, failures, mistakes

BITS, LABELS, CLASSES = Literals("x"), Labels("y", True), Category(False, True)
BETA = Fraction(1, 20)


def offered(name, d, k, budget, relation):
    facts = Facts(Domain(x=Bits(d), y=CLASSES), Neighbours(relation), 1000)
    return methods(BITS, LABELS, k, facts=facts, beta=BETA, funds=Funds.of(budget)).named(name)


def matrix(bits, labels):
    return BitMatrix(bits, labels, target=CLASSES)


def rule(numbers):
    return Conjunction(BITS, numbers)


def drawn(n, d, k, seed, *, together=0.0):
    """Random bits, each a copy of a common one with probability `together`; the first k signs alternate."""
    rng = np.random.default_rng(seed)
    common = rng.random((n, 1)) < 0.6
    bits = np.where(rng.random((n, d)) < together, common, rng.random((n, d)) < 0.7)
    labels = np.ones(n, dtype=bool)
    for variable in range(k):
        labels &= bits[:, variable] ^ bool(variable % 2)
    return matrix(bits, labels)


def edge(n, d, falsifying):
    """All rows are positive, each variable is false in `falsifying` rows of its own: every v is a temptation."""
    bits = np.ones((n, d), dtype=bool)
    for variable in range(d):
        bits[variable * falsifying : (variable + 1) * falsifying, variable] = False
    return matrix(bits, np.ones(n, dtype=bool))


PURE, ZCDP = Budget(2), Budget(2, "1e-6")
PROBLEMS = [(LECTURE, PURE), (COUNTS, PURE), (COUNTS, ZCDP)]


def lost(name, budget, relation, *, d, k, alpha, runs, seed):
    """How many of the runs are lost on each family of rows, at exactly the number of rows that is stated."""
    method = offered(name, d, k, budget, relation)
    n, mechanism = method.needed(alpha), method.mechanism(alpha)
    play = functools.partial(failures, mechanism, rule_of=rule, alpha=alpha, runs=runs, rng=SeededRng(seed))
    near = math.floor(mechanism.threshold)
    families = [drawn(n, d, k, seed), drawn(n, d, k, seed, together=0.8)]
    families += [edge(n, d, count) for count in (near // 2, near, near + near // 4) if count * d <= n]
    return [play(data=rows) for rows in families]


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize(("name", "budget"), PROBLEMS, ids=["lecture", "laplace", "gaussian"])
def test_counts_keep_their_promise_at_the_stated_size(name, budget, relation):
    for found in lost(name, budget, relation, d=6, k=2, alpha=0.3, runs=40, seed=1):
        assert_honest(found, 40, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize(("d", "k"), [(1, 1), (2, 2), (10, 3), (40, 10)])
@pytest.mark.parametrize(("name", "budget"), PROBLEMS, ids=["lecture", "laplace", "gaussian"])
def test_counts_keep_their_promise_on_every_family(name, budget, d, k, relation):
    for found in lost(name, budget, relation, d=d, k=k, alpha=0.25, runs=300, seed=2):
        assert_honest(found, 300, 0.05)


def test_the_promise_of_counts_is_within_a_factor_of_what_happens():
    """The bound is not empty: at the edge, one tenth of the promised number of wrong rows is exceeded in most runs."""
    method = offered(COUNTS, 12, 2, ZCDP, "replace-one")
    mechanism = method.mechanism(0.3)
    wrong = tuned(mechanism, k=2, d=12, beta=0.05)[1]
    n, near = method.needed(0.3), math.floor(mechanism.threshold)
    found = failures(mechanism, edge(n, 12, near), rule, wrong / 10 / n, 30, SeededRng(4))
    assert found > 15


def failure_probability(rows, mechanism, alpha):
    """Exactly: the share of the weights of the conjunctions that are wrong on more than alpha of the rows."""
    found = PackedRows.of(rows, BITS, LABELS)
    levels, counts = Listing(found, mechanism.k, lambda done: None).histogram()
    weights = counts * np.exp(-float(mechanism.rate) * (levels - levels.min()))
    return weights[levels > alpha * (found.negatives + found.positives)].sum() / weights.sum()


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize(("d", "k", "alpha"), [(1, 1, 0.3), (6, 2, 0.1), (12, 3, 0.2), (8, 8, 0.05)])
def test_the_exact_failure_probability_of_all_conjunctions_is_below_beta(d, k, alpha, relation):
    method = offered(EXACT, d, k, Budget(1), relation)
    n, mechanism = method.needed(alpha), method.mechanism(alpha)
    families = [drawn(n, d, k, 3), drawn(n, d, k, 4, together=0.9), edge(n, d, min(n // d, math.ceil(alpha * n) + 1))]
    assert max(failure_probability(rows, mechanism, alpha) for rows in families) <= 0.05
    slack = type(mechanism)(BITS, LABELS, k, mechanism.rate / 20)
    assert max(failure_probability(rows, slack, alpha) for rows in families) > 0.15, "the rate matters on these rows"


@pytest.mark.parametrize("probability", [0.8, 0.5])
@pytest.mark.parametrize(("epsilon", "goal"), [(1, 0.99), ("0.1", 0.95)])
def test_a_conjunction_of_three_of_fifty_is_learned_from_ten_thousand_rows(probability, epsilon, goal):
    rng = np.random.default_rng(5)
    target = (14, 41, 66)

    def rows():
        bits = rng.random((10_000, 50)) < probability
        labels = np.ones(len(bits), dtype=bool)
        for number in target:
            labels &= bits[:, number // 2] ^ bool(number % 2)
        return matrix(bits, labels)

    method = offered(EXACT, 50, 3, Budget(epsilon), "replace-one")
    for seed in range(2):
        train, held_out = rows(), rows()
        learned = rule(method.mechanism(0.1).run(train, SeededRng(seed)))
        assert mistakes(learned, held_out, LABELS) <= (1 - goal) * 10_000
