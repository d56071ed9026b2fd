"""Attacks on a network's descent: a canary row that pulls with its full weight at every step, and twins to be caught."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.audit.mutants import ADD_REMOVE_PRICE, Mistake, Twin
from discreet.audit.sampled import divergence_lower_bound, epsilon_lower_bound
from discreet.erm.features import VectorColumn
from discreet.erm.neural import Network, NeuralDescent
from discreet.mechanisms.noises import GaussianNoise, LaplaceNoise, ProductLaplaceNoise
from discreet.noise import Rng

CANARY = [1.0, 0.0]
CLIP = Fraction(1, 4)  # the canary's gradient is four times as long
RUNS = 1600
RELATIONS = ["replace-one", "add-remove"]


def rows(relation: str, *, with_canary: bool) -> dp.Matrix:
    features, labels = [[0.3, -0.1], [-0.2, 0.4]], [0, 1]
    if relation == "replace-one":  # the other label: its gradient points the other way
        features, labels = [*features, CANARY], [*labels, 1 if with_canary else 0]
    elif with_canary:
        features, labels = [*features, CANARY], [*labels, 1]
    return dp.Matrix(
        features, labels, features=dp.Vector(2, norm=1), target=dp.Category(0, 1), neighbours=relation, size=3
    )


def descent(relation: str, *, noise=GaussianNoise, steps: int = 3, rho: float = 2.0) -> NeuralDescent:
    """A descent that is rho-zCDP with Gaussian noise; so slow that the canary's gradient stays what it is at first."""
    moved = CLIP * (2 if relation == "replace-one" else 1)
    scale = Fraction(float(moved) * math.sqrt(steps / (2 * rho)))
    return NeuralDescent(VectorColumn(intercept=False), "y", (2,), CLIP, noise(scale), steps, Fraction(1, 1000), 3)


def canary_direction(mechanism: NeuralDescent) -> np.ndarray:
    """What the attacker looks for: the canary's own gradient at the public first weights."""
    network = Network(mechanism, rows("add-remove", with_canary=True).facts.domain)
    first = network.start()
    with_it, without = (
        rows("add-remove", with_canary=flag).exact_sum(network.at(first)).astype(float) for flag in (True, False)
    )
    return (with_it - without) / np.linalg.norm(with_it - without)


def seen(mechanism, honest: NeuralDescent, relation: str, *, with_canary: bool) -> np.ndarray:
    data, rng, along = rows(relation, with_canary=with_canary), Rng(), canary_direction(honest)
    return np.array([float(mechanism.run(data, rng) @ along) for _ in range(RUNS)])


def worlds(mechanism, relation: str) -> list[np.ndarray]:
    honest = mechanism.honest if isinstance(mechanism, Twin) else mechanism
    return [seen(mechanism, honest, relation, with_canary=flag) for flag in (True, False)]


def claimed(mechanism, relation: str) -> float:
    """The divergence that the guarantee admits: Renyi divergences grow with the order, so the least order bounds it."""
    return mechanism.guarantee(rows(relation, with_canary=True).facts).at(1.25)


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_canary_row_is_not_seen_better_than_promised_and_nearly_as_well(relation):
    mechanism = descent(relation)
    found = worlds(mechanism, relation)
    promised = mechanism.guarantee(rows(relation, with_canary=True).facts)
    assert 0.15 * 2.0 < divergence_lower_bound(*found) <= claimed(mechanism, relation)
    assert 0.3 < epsilon_lower_bound(*found, delta=1e-5) <= promised.epsilon("1e-5")


@pytest.mark.parametrize("noise", [LaplaceNoise, ProductLaplaceNoise])
def test_a_canary_row_is_not_seen_through_laplace_noise(noise):
    mechanism = descent("replace-one", noise=noise)
    assert divergence_lower_bound(*worlds(mechanism, "replace-one")) <= claimed(mechanism, "replace-one")


def _one_step_charged(honest: NeuralDescent, facts):
    return dataclasses.replace(honest, steps=1).guarantee(facts)


def _uncut(honest: NeuralDescent, data, rng):
    """The same noise, and a clip that no gradient reaches."""
    return dataclasses.replace(honest, clip=Fraction(64)).run(data, rng)


TWINS = [
    ADD_REMOVE_PRICE,
    Mistake("one step is charged, three are taken", price=_one_step_charged),
    Mistake("gradients are not cut", run=_uncut),
]


@pytest.mark.parametrize("mistake", TWINS, ids=lambda m: m.label)
def test_a_broken_twin_is_caught(mistake):
    twin = Twin(descent("replace-one"), mistake)
    assert divergence_lower_bound(*worlds(twin, "replace-one")) > claimed(twin, "replace-one")


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_canary_moves_the_exact_sum_by_the_whole_sensitivity(relation):
    """The attack's premise: the price is that of a row which really exists."""
    mechanism = descent(relation)
    tables = [rows(relation, with_canary=flag) for flag in (True, False)]
    network = Network(mechanism, tables[0].facts.domain)
    one, other = (table.exact_sum(network.at(network.start())).astype(object) for table in tables)
    moved = sum((one - other) ** 2)
    assert 0.999 < moved / network.sensitivity(tables[0].facts).l2_squared <= 1
