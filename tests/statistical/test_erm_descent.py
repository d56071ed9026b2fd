"""The theorems of noisy gradient descent, measured: what is promised is kept, and is not promised too cheaply."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.erm.descent import Accelerated, Average, Descent, Last, StronglyConvex, made_schedule, promise, propose
from discreet.erm.feasible_sets import Ball, Box, interval
from discreet.erm.features import Constant, VectorColumn
from discreet.erm.gradient import pass_over
from discreet.erm.losses import Absolute, Hinge, Huber, Logistic, Squared
from discreet.erm.nonprivate import minimiser, risk_value
from discreet.erm.risk import Lasso, Ridge, Risk
from discreet.mechanisms import CoordinateLaplaceNoise, GaussianNoise, ProductLaplaceNoise
from discreet.rng import Rng

RNG = Rng()


@dataclass(frozen=True)
class NoNoise:
    """A test double: what a descent does without noise."""

    def draw(self, shape, *, unit, rng):
        return np.zeros(shape, dtype=np.int64)

    def variance(self) -> float:
        return 0.0


def labelled(loss, *, rows: int = 300, width: int = 4, size: int | None = None, relation: str = "replace-one"):
    rng = np.random.default_rng(11)
    X = rng.normal(size=(rows, width))  # noqa: N806
    X = X / np.maximum(1, np.linalg.norm(X, axis=1))[:, None]  # noqa: N806
    signal = X @ np.array([1.0, -0.5, 0.25, 0.0][:width])
    if loss.form == "margin":
        y, target = (signal + 0.3 * rng.normal(size=rows) > 0).astype(int), dp.Category(0, 1)
    else:
        y, target = np.clip(signal + 0.1 * rng.normal(size=rows), -1, 1), dp.Number(-1, 1, step="0.0001")
    data = dp.Matrix(X, y, features=dp.Vector(width, norm=1), target=target, neighbours=relation, size=size)
    return data, X, y


def excess(risk: Risk, w: np.ndarray, X: np.ndarray, y: np.ndarray, least: float) -> float:  # noqa: N803
    return risk_value(risk.loss, X, y, w, risk.regularizer) - least


CASES = [
    (Logistic(), Accelerated, GaussianNoise, None),
    (Logistic("1/2"), Average, GaussianNoise, None),
    (Logistic("1/2"), Last, ProductLaplaceNoise, None),
    (Logistic("1/2"), Accelerated, CoordinateLaplaceNoise, Lasso("0.01")),
    (Squared(), Accelerated, GaussianNoise, None),
    (Squared(), StronglyConvex, GaussianNoise, Ridge("0.5")),
    (Huber("0.5"), Average, ProductLaplaceNoise, Ridge("0.1")),
    (Hinge(), Average, GaussianNoise, None),
    (Hinge(), Average, CoordinateLaplaceNoise, Lasso("0.01")),
    (Absolute(), StronglyConvex, GaussianNoise, Ridge("0.5")),
]


@pytest.mark.parametrize(("loss", "schedule", "noise", "regularizer"), CASES)
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_the_mean_excess_risk_is_below_the_promise(loss, schedule, noise, regularizer, relation):
    data, X, y = labelled(loss, relation=relation, size=300)  # noqa: N806
    risk = Risk(loss, VectorColumn(intercept=False), "y", Ball(2), regularizer)
    funds = dp.Funds.of(dp.Budget(8, "1e-4"))
    mechanism = propose(risk, facts=data.facts, funds=funds, noise=noise, schedule=schedule, steps=20)
    bound = promise(mechanism, data.facts)
    least = minimiser(risk.loss, X, y, risk.feasible, risk.regularizer).value
    found = [excess(risk, mechanism.run(data, RNG), X, y, least) for _ in range(30)]
    value = mechanism.schedule.expected(
        risk.constants(data.facts), 20, risk.dimension(data.facts.domain) * mechanism.noise.variance() / 300**2
    )
    assert np.mean(found) - 5 * np.std(found) / math.sqrt(30) <= value
    assert bound.bound is None or bound.bound >= value
    assert min(found) >= -1e-3, "nothing is better than the minimiser, up to the grid of the rows"


def linear_case(schedule, *, pull: float, steps: int):
    """A linear loss: rows in the straight part of a loss of small slope, balanced so that they pull by `pull`."""
    loss = Logistic("1/10") if schedule is not Average else Hinge()
    rows, width = 400, 8
    X = np.zeros((rows, width))  # noqa: N806
    X[:, 0] = 0.5
    y = (np.arange(rows) < rows * (1 + pull) / 2).astype(int)
    data = dp.Matrix(X, y, features=dp.Vector(width, norm=1), target=dp.Category(0, 1))
    risk = Risk(loss, VectorColumn(intercept=False), "y", Ball(1))
    funds = dp.Funds.of(dp.Budget(1, "1e-5"))
    return data, risk, propose(risk, facts=data.facts, funds=funds, schedule=schedule, steps=steps)


@pytest.mark.parametrize(
    ("schedule", "steps"), [(Average, 60), (Accelerated, 30), pytest.param(Last, 60, marks=pytest.mark.slow)]
)
def test_on_a_linear_loss_the_promise_is_within_a_factor_four(schedule, steps):
    ratios = []
    for pull in (0.05, 0.1, 0.2, 0.4):
        data, risk, mechanism = linear_case(schedule, pull=pull, steps=steps)
        slope = 0.5 * pull * float(risk.loss.slope_bound)  # of the mean loss along the first coordinate
        runs = [slope * (1 - float(mechanism.run(data, RNG)[0])) for _ in range(40)]
        known = risk.constants(data.facts)
        variance = known.dimension * mechanism.noise.variance() / 400**2
        ratios.append(np.mean(runs) / mechanism.schedule.expected(known, mechanism.steps, variance))
    assert max(ratios) <= 1
    assert max(ratios) >= (1 / 4 if schedule is not Last else 1 / 8), "Last pays a logarithm for its proof"


@pytest.mark.parametrize("schedule", [Average, Accelerated])
def test_the_bound_with_high_probability_fails_no_more_often_than_it_says(schedule):
    data, risk, mechanism = linear_case(schedule, pull=0.2, steps=20)
    slope, beta = 0.1 * float(risk.loss.slope_bound), 0.2
    likely = mechanism.schedule.likely(risk.constants(data.facts), 20, float(mechanism.noise.scale) / 400, beta)
    failures = sum(slope * (1 - float(mechanism.run(data, RNG)[0])) > likely for _ in range(200))
    assert failures <= 80, "P[more than 80 of 200 | 0.2] < 1e-9"
    assert likely < 10 * mechanism.schedule.expected(
        risk.constants(data.facts), 20, risk.dimension(data.facts.domain) * mechanism.noise.variance() / 400**2
    )


@pytest.mark.parametrize(("factor", "accepted"), [(1, True), (Fraction(7, 10), False), (Fraction(13, 10), False)])
def test_the_noise_of_a_step_has_the_stated_scale(factor, accepted):
    """One step of Average from the centre moves by -rate (gradient + noise) / n: the noise can be read off."""
    data, _, _ = labelled(Logistic(), rows=50)
    risk = Risk(Logistic(), VectorColumn(intercept=False), "y", Ball(1000))
    over = pass_over(risk, data.facts.domain, 50)
    scale = Fraction(5)
    mechanism = Descent(risk, GaussianNoise(scale * factor), 1, Average(1))
    exact = over.oracle(data)(np.zeros(4)) * float(over.unit)
    noises = np.concatenate([-mechanism.run(data, RNG) * 50 - exact for _ in range(400)])
    ratio = float(np.mean((noises / float(scale)) ** 2))  # chi-square of 1600 degrees: deviation 0.035
    assert (abs(ratio - 1) < 0.19) == accepted


def ordinary_least_squares(X: np.ndarray, y: np.ndarray) -> np.ndarray:  # noqa: N803
    return np.linalg.lstsq(X, y, rcond=None)[0]


def noiseless(risk: Risk, data, kind, steps: int) -> np.ndarray:
    schedule = made_schedule(kind, risk.constants(data.facts), steps, 0.0)
    return Descent(risk, NoNoise(), steps, schedule).run(data, RNG)


def test_without_noise_the_squared_loss_recovers_ordinary_least_squares():
    data, X, y = labelled(Squared())  # noqa: N806
    risk = Risk(Squared(), VectorColumn(intercept=False), "y", Ball(5))
    assert noiseless(risk, data, Accelerated, 1000) == pytest.approx(ordinary_least_squares(X, y), abs=2e-3)


def test_without_noise_the_logistic_loss_recovers_maximum_likelihood():
    data, X, y = labelled(Logistic())  # noqa: N806
    risk = Risk(Logistic(), VectorColumn(intercept=False), "y", Ball(20))
    best = minimiser(Logistic(), X, y, Ball(20))
    assert np.linalg.norm(best.w) < 15, "the maximum is inside the ball"
    assert noiseless(risk, data, Accelerated, 2000) == pytest.approx(best.w, abs=2e-2)


def test_without_noise_the_absolute_loss_recovers_the_median():
    values = np.random.default_rng(3).beta(0.5, 5, size=501)
    data = dp.Table({"x": values}, dp.Domain(x=dp.Number(0, 1, step="0.0001")))
    risk = Risk(Absolute(), Constant(), "x", interval(0, 1))
    assert noiseless(risk, data, Average, 4000)[0] == pytest.approx(float(np.median(values)), abs=0.01)


def test_without_noise_the_mean_of_a_box_is_the_mean():
    values = np.random.default_rng(3).beta(2, 5, size=500)
    data = dp.Table({"x": values}, dp.Domain(x=dp.Number(0, 1, step="0.0001")))
    risk = Risk(Squared(), Constant(), "x", Box(0, 1))
    assert noiseless(risk, data, Accelerated, 200)[0] == pytest.approx(float(values.mean()), abs=1e-3)
