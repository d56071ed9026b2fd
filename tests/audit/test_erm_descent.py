"""Attacks on noisy gradient descent: a canary row with the largest gradient, and twins that the attacks must catch."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.audit.mutants import Mistake, Twin, add_remove_price
from discreet.data import Facts
from discreet.erm.descent import Accelerated, Average, Descent, Last
from discreet.erm.feasible_sets import Ball
from discreet.erm.features import STEPS, VectorColumn, blocks
from discreet.erm.gradient import pass_over
from discreet.erm.losses import Logistic
from discreet.erm.risk import Risk
from discreet.mechanisms import CoordinateLaplaceNoise, GaussianNoise, ProductLaplaceNoise
from discreet.rng import Rng
from tests.audit.evidence import divergence_lower_bound

CANARY = [1.0, 0.0, 0.0]
# With a cap of 1/10 the loss is a line wherever the margin is below ln 9: a canary pulls with its full weight at every
# step, which is the worst that a row can do.
RISK = Risk(Logistic("1/10"), VectorColumn(intercept=False), "y", Ball(2))
RUNS, MANY_RUNS = 2400, 4000


def rows(relation: str, *, with_canary: bool) -> dp.Matrix:
    others = [[0.3, 0.2, -0.1], [-0.2, 0.4, 0.1], [0.1, -0.1, 0.5]]
    labels = [0, 1, 1]
    if relation == "replace-one":
        features, labels = [*others, CANARY], [*labels, 1 if with_canary else 0]
    else:
        features, labels = ([*others, CANARY], [*labels, 1]) if with_canary else (others, labels)
    return dp.Matrix(
        features, labels, features=dp.Vector(3, norm=1), target=dp.Category(0, 1), neighbours=relation, size=4
    )


def descent(relation: str, *, noise=GaussianNoise, steps: int = 4, schedule=Last, rho: float = 4.0) -> Descent:
    """A descent that is rho-zCDP with Gaussian noise; its rate is so small that no step is projected."""
    facts = rows(relation, with_canary=True).facts
    over = pass_over(RISK, facts.domain)
    scale = np.sqrt(over.sensitivity(facts).l2_squared * steps / (2 * rho))
    return Descent(RISK, noise(Fraction(float(scale)) * over.unit), steps, schedule(Fraction(1, 100)))


def along_canary(mechanism, relation: str, *, with_canary: bool, runs: int) -> np.ndarray:
    data, rng = rows(relation, with_canary=with_canary), Rng()
    return np.array([float(mechanism.run(data, rng)[0]) for _ in range(runs)])


def information(mechanism, relation: str, runs: int = RUNS) -> float:
    worlds = [along_canary(mechanism, relation, with_canary=flag, runs=runs) for flag in (True, False)]
    return divergence_lower_bound(*worlds)


def claimed(mechanism, relation: str) -> float:
    """The divergence that the guarantee admits: Renyi divergences grow with the order, so the least order bounds it."""
    return mechanism.guarantee(rows(relation, with_canary=True).facts).at(1.25)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("schedule", [Last, Average, Accelerated])
def test_a_canary_row_is_not_seen_better_than_promised(relation, schedule):
    mechanism = descent(relation, schedule=schedule)
    assert information(mechanism, relation) <= claimed(mechanism, relation)


def test_the_canary_attack_is_strong():
    assert information(descent("replace-one", steps=1), "replace-one") > 0.15 * 4


@pytest.mark.parametrize("noise", [ProductLaplaceNoise, CoordinateLaplaceNoise])
def test_a_canary_row_is_not_seen_through_laplace_noise(noise):
    mechanism = descent("replace-one", noise=noise)
    assert information(mechanism, "replace-one") <= claimed(mechanism, "replace-one")


def _one_step_charged(honest: Descent, facts: Facts):
    return Descent(honest.risk, honest.noise, 1, honest.schedule).guarantee(facts)


def _unclipped(honest: Descent, data, rng):
    """The slopes of the plain logistic loss, which are five times as steep where the canary is."""
    plain = Descent(Risk(Logistic(1), RISK.features, "y", Ball(2)), honest.noise, honest.steps, honest.schedule)
    return plain.run(data, rng)


TWINS = [
    (4.0, add_remove_price),
    (4.0, Mistake("one step is charged, four are taken", price=_one_step_charged)),
    (0.5, Mistake("the clip is forgotten", run=_unclipped)),
]


@pytest.mark.parametrize(("rho", "mistake"), TWINS, ids=[mistake.label for _, mistake in TWINS])
def test_a_broken_twin_is_caught(rho, mistake):
    twin = Twin(descent("replace-one", rho=rho), mistake)
    assert information(twin, "replace-one", MANY_RUNS) > claimed(twin, "replace-one")


class Recording(Rng):
    """Randomness that remembers how many Gaussians were drawn, and of which variance."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[tuple[Fraction, int]] = []

    def gaussian(self, variance, size=None):
        self.drawn.append((variance, int(np.prod(size))))
        return super().gaussian(variance, size)


def test_what_is_drawn_is_what_is_charged():
    mechanism, data, rng = descent("replace-one", steps=7), rows("replace-one", with_canary=True), Recording()
    mechanism.run(data, rng)
    ((variance, count),) = rng.drawn
    moved = pass_over(RISK, data.facts.domain).sensitivity(data.facts).l2_squared
    assert count == 7 * 3
    assert mechanism.guarantee(data.facts).at(2.0) == pytest.approx(7 * 2 * float(moved / (2 * variance)))


def test_dropping_a_row_changes_no_other_rows_contribution_but_float_margins_do():
    rng = np.random.default_rng(5)
    features = rng.normal(size=(4097, 50)) / 8
    w = rng.normal(size=50)
    labels = rng.integers(0, 2, size=4097)
    vector = dp.Vector(50, norm=1)

    def ours(part: slice) -> np.ndarray:
        data = dp.Matrix(features[part], labels[part], features=vector, target=dp.Category(0, 1))
        over = pass_over(RISK, data.facts.domain)
        caught: list[np.ndarray] = []

        def keep(batch):
            for block, where in blocks(RISK.features, batch):
                caught.append(over.slopes(batch, where, block @ over.quantised(w).astype(float), over.table))
            return np.zeros(1, dtype=np.int64)

        data.exact_sum(keep)
        return np.concatenate(caught)

    def floats(part: slice) -> np.ndarray:
        return np.ascontiguousarray(features[part]) @ w

    assert np.array_equal(ours(slice(1, None)), ours(slice(None))[1:])
    changed = sum(not np.array_equal(floats(slice(k, None)), floats(slice(None))[k:]) for k in range(1, 64))
    assert changed > 0, "float margins no longer depend on their batch here: the twin is not a twin any more"
    assert np.abs(ours(slice(None))).max() <= STEPS
