"""Boxes face by face, all boxes and certificates: the promises at their own sizes, and the accuracy that is seen."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.funds import Funds
from discreet.guarantee import Budget
from discreet.pac import all_boxes, greedy_boxes
from discreet.pac.mistake_bound import certify, hidden_mistakes
from discreet.pac.rules import BoxRule, Labels
from discreet.rng import SeededRng
from tests.pac_game import assert_honest, failures, mistakes

LABELS = Labels("y", 1)
RELATIONS = ["replace-one", "add-remove"]
BETA = Fraction(1, 20)


def names(d):
    return tuple(f"x{i}" for i in range(d))


def table(codes, positive, g, relation="replace-one"):
    numbers = {f"x{i}": dp.Number(0, g - 1, step=1) for i in range(codes.shape[1])}
    columns = {**{f"x{i}": codes[:, i] for i in range(codes.shape[1])}, "y": positive.astype(int)}
    domain = dp.Domain({**numbers, "y": dp.Category(0, 1)})
    return dp.Table(columns, domain, neighbours=relation, size=len(codes))


def method_of(module, d, g, relation, epsilon, delta=0, name=None):
    """The method with a proof, unless another is named."""
    facts = table(np.zeros((1, d), dtype=int), np.zeros(1), g, relation).facts
    funds = Funds.of(Budget(epsilon, delta))
    listed = module.methods(names(d), LABELS, facts=facts, beta=BETA, funds=funds)
    return next(each for each in listed if (each.proven if name is None else each.name == name))


# Families of rows that a box labels right: (codes, which are positive).


def uniform(rng, n, d, g):
    codes = rng.integers(0, g, (n, d))
    return codes, ((codes >= g // 4) & (codes <= 3 * g // 4)).all(axis=1)


def clustered(rng, n, d, g):
    """Positives at one point, negatives in a ring around it."""
    codes = np.full((n, d), g // 2)
    outside = np.arange(n) % 2 == 0
    codes[outside, rng.integers(0, d, outside.sum())] += rng.choice([-1, 1], outside.sum())
    return codes, ~outside


def correlated(rng, n, d, g):
    """All columns equal: one face cuts what another could."""
    codes = np.repeat(rng.integers(0, g, (n, 1)), d, axis=1)
    return codes, (codes >= g // 3).all(axis=1)


def no_positives(rng, n, d, g):
    return rng.integers(0, g, (n, d)), np.zeros(n, dtype=bool)


FAMILIES = [uniform, clustered, correlated, no_positives]


def lost_at_the_stated_size(module, family, *, d, g, relation, epsilon, alpha, runs):
    found = method_of(module, d, g, relation, epsilon)
    n = found.needed(alpha)
    rows = table(*family(np.random.default_rng(n), n, d, g), g, relation)
    return failures(
        found.mechanism(alpha), rows, lambda box: BoxRule(names(d), *box), alpha=alpha, runs=runs, rng=SeededRng(n)
    )


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("family", FAMILIES)
def test_face_by_face_keeps_its_promise_at_the_stated_size(family, relation):
    lost = lost_at_the_stated_size(greedy_boxes, family, d=1, g=8, relation=relation, epsilon=6, alpha=0.1, runs=60)
    assert_honest(lost, 60, float(BETA))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("family", FAMILIES)
def test_all_boxes_keep_their_promise_at_the_stated_size(family, relation):
    lost = lost_at_the_stated_size(all_boxes, family, d=2, g=6, relation=relation, epsilon=1, alpha=0.1, runs=60)
    assert_honest(lost, 60, float(BETA))


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("d", "g", "epsilon", "alpha"), [(2, 16, 4, 0.1), (3, 8, 8, 0.05), (5, 100, 20, 0.1)])
def test_face_by_face_keeps_its_promise_in_more_dimensions(family, relation, d, g, epsilon, alpha):
    lost = lost_at_the_stated_size(
        greedy_boxes, family, d=d, g=g, relation=relation, epsilon=epsilon, alpha=alpha, runs=300
    )
    assert_honest(lost, 300, float(BETA))


@pytest.mark.parametrize("relation", RELATIONS)
def test_all_boxes_stand_any_labels(relation):
    """The agnostic theorem: least mistakes + ln(boxes / beta) / rate."""
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 8, (400, 2))
    rows = table(codes, ((codes >= 2) & (codes <= 5)).all(axis=1) ^ (rng.random(400) < 0.3), 8, relation)
    mechanism = method_of(all_boxes, 2, 8, relation, 1).mechanism(0.1)
    least = mistakes(
        BoxRule(names(2), *all_boxes.AllBoxes(names(2), LABELS, 8, 10**6).run(rows, SeededRng(1))), rows, LABELS
    )
    allowed = least + math.log(all_boxes.boxes([8, 8]) / BETA) / float(mechanism.rate)
    lost = failures(
        mechanism, rows, lambda box: BoxRule(names(2), *box), alpha=allowed / 400, runs=100, rng=SeededRng(2)
    )
    assert least > 50
    assert_honest(lost, 100, float(BETA))


# --- certificates -----------------------------------------------------------------------------------------------------


def broken_bounds(noise_rows, beta, runs):
    """How often the mistakes exceed a certificate that believes its noise to hide `noise_rows` rows."""
    rng = np.random.default_rng(6)
    codes = rng.integers(0, 10, (200, 1))
    rows = table(codes, codes[:, 0] >= 5, 10)
    rule = BoxRule(("x0",), (3,), (8,))
    ledger = dp.Ledger.in_memory(Budget(10**6), rows.identity, testing=True)
    true, source = mistakes(rule, rows, LABELS), SeededRng(7)
    got = [certify(rule, LABELS, rows, epsilon="0.2", beta=beta, ledger=ledger, rng=source) for _ in range(runs)]
    return sum(true > each.mistakes + noise_rows for each in got), sum(true > each.rows for each in got)


def test_a_certificate_is_honest_and_one_that_believes_half_of_its_noise_is_not():
    runs, beta = 400, Fraction(1, 20)
    half = hidden_mistakes(Fraction(5, 2), beta)
    bent, lost = broken_bounds(half, beta, runs)
    assert_honest(lost, runs, float(beta))
    with pytest.raises(AssertionError, match="runs lost"):
        assert_honest(bent, runs, float(beta))


# --- what is seen on held-out rows: uniform features, n = 10^4, delta 1e-6, replace-one -------------------------------


def accuracy(d, volume, epsilon, runs, noise=0.0):
    """The mean accuracy of the practical learner on fresh rows, over random boxes of this volume."""
    g, n, right = 1000, 10_000, []
    mechanism = method_of(greedy_boxes, d, g, "replace-one", epsilon, "1e-6", name="faces").mechanism(0.5)
    for run in range(runs):
        rng = np.random.default_rng([d, run])
        sides = volume ** rng.dirichlet(np.full(d, 3.0))
        low = np.floor(rng.random(d) * (1 - sides) * g).astype(int)
        high = low + np.floor(sides * g).astype(int)
        codes = rng.integers(0, g, (2 * n, d))
        truth = ((codes >= low) & (codes <= high)).all(axis=1)
        learned = mechanism.run(table(codes[:n], truth[:n] ^ (rng.random(n) < noise), g), SeededRng(run))
        inside = ((codes[n:] >= learned[0]) & (codes[n:] <= learned[1])).all(axis=1)
        right.append(float((inside == truth[n:]).mean()))
    return float(np.mean(right))


@pytest.mark.parametrize(("d", "volume", "goal"), [(2, 0.298, 0.985), (10, 0.461, 0.92)])
def test_boxes_are_learned_at_epsilon_one(d, volume, goal):
    assert accuracy(d, volume, 1, runs=5) >= goal


@pytest.mark.slow
@pytest.mark.parametrize(
    ("d", "volume", "epsilon", "noise", "goal"),
    [
        (2, 0.298, 1, 0.0, 0.99),
        (2, 0.298, "0.1", 0.0, 0.93),
        (2, 0.702, "0.1", 0.0, 0.93),
        (10, 0.461, 1, 0.0, 0.94),
        (10, 0.461, "0.1", 0.0, 0.68),
        (10, 0.539, "0.1", 0.0, 0.68),
        (2, 0.298, "0.1", 0.1, 0.91),
        (5, 0.5, 1, 0.1, 0.96),
        (3, 0.1, 1, 0.0, 0.97),
        (5, 0.05, 1, 0.0, 0.96),
    ],
)
def test_boxes_are_learned_where_the_peers_fail(d, volume, epsilon, noise, goal):
    assert accuracy(d, volume, epsilon, runs=60, noise=noise) >= goal
