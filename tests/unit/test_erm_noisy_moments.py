"""Noisy moments: the sensitivity is attained and never exceeded, and without noise the solution is least squares."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.core import Budget, Funds
from discreet.erm.feasible_sets import Ball
from discreet.erm.features import VectorColumn
from discreet.erm.losses import CentredSquared, Huber, Squared
from discreet.erm.noisy_moments import NoisyMoments, promise, propose
from discreet.erm.risk import Risk
from discreet.errors import ParameterError
from discreet.mechanisms import GaussianNoise, ProductLaplaceNoise
from discreet.rng import SeededRng

RISK = Risk(Squared(), VectorColumn("x"), "y", Ball(10**6))


def rows(x, y, relation="replace-one", **more):
    target = dp.Number(-1, 1, step=Fraction(1, 2**14))
    return dp.Matrix(x, y, features=dp.Vector(x.shape[1], norm=1), target=target, neighbours=relation, **more)


def moments(mechanism, data):
    over = mechanism._over(data.facts)
    sums = data.exact_sum(over.moments)
    return np.concatenate([sums[:-1][np.triu_indices(over.width)], sums[-1]]).astype(object)


def test_without_noise_it_is_least_squares():
    rng = np.random.default_rng(1)
    x = rng.uniform(-0.5, 0.5, (5000, 3))
    y = x @ [0.5, -0.3, 0.2] + 0.1 + rng.normal(size=5000) / 20
    found = NoisyMoments(RISK, GaussianNoise(Fraction(1, 2**10))).run(rows(x, y), SeededRng(1))
    assert found[:3] == pytest.approx([0.5, -0.3, 0.2], abs=0.01)
    assert found[3] / 2 == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_neighbours_never_differ_by_more_and_one_pair_nearly_by_all(relation):
    rng = np.random.default_rng(2)
    mechanism, most = NoisyMoments(RISK, ProductLaplaceNoise(1)), 0.0
    for trial in range(60):
        x = rng.normal(size=(2, 3))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        y = rng.choice([-1.0, 1.0], 2)
        if trial == 0:
            x[1], y = x[0], np.array([1.0, -1.0])
        whole = rows(x[:1], y[:1], relation, **({} if relation == "replace-one" else {"size": 1}))
        other = rows(x[1:], y[1:], relation, **({} if relation == "replace-one" else {"size": 1}))
        apart = moments(mechanism, whole) - (moments(mechanism, other) if relation == "replace-one" else 0)
        bound = mechanism.sensitivity(whole.facts)
        squares = sum(int(each) ** 2 for each in apart)
        assert squares <= bound.l2_squared
        assert sum(abs(int(each)) for each in apart) <= bound.l1
        most = max(most, squares / bound.l2_squared)
    assert most > 0.4


def test_it_is_calibrated_for_both_laws_and_promises_nothing():
    x = np.zeros((100, 2))
    data = rows(x, np.zeros(100))
    for budget, law in ((Budget(1, 1e-6), GaussianNoise), (Budget(1), ProductLaplaceNoise)):
        found = propose(RISK, facts=data.facts, funds=Funds.of(budget))
        assert isinstance(found.noise, law)
        assert found.guarantee(data.facts).within(budget)
        assert promise(found, data.facts).bound is None


def test_another_loss_is_refused():
    data = rows(np.zeros((2, 1)), np.zeros(2))
    with pytest.raises(ParameterError, match="squared loss"):
        NoisyMoments(Risk(Huber(1), VectorColumn("x"), "y", Ball(1)), GaussianNoise(1)).guarantee(data.facts)


def test_a_centred_target_is_the_target_minus_its_offset():
    domain = dp.Domain(x=dp.Vector(1, norm=1), y=dp.Number(10, 12, step="0.5"))
    assert CentredSquared(Fraction(11)).target_bound(domain, "y") == 1
