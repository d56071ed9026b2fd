"""The reference solvers: values, gradients, the lecture's descent, and minima with their proofs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression

from discreet.erm.feasible_sets import Ball, BallBox, Box, interval
from discreet.erm.losses import Absolute, Custom, Hinge, Huber, Logistic, Pinball, Softmax, Squared
from discreet.erm.nonprivate import accelerated, descend, minimiser, risk_gradient, risk_value
from discreet.erm.risk import Lasso, Ridge
from discreet.errors import ParameterError

SMOOTH = [Squared(), Huber("0.5"), Logistic(), Logistic("0.4"), Softmax(3)]
CORNERS = [Absolute(), Pinball("0.3"), Hinge()]
SETS = [Ball(1), Ball(20), Box(-1, 1), Box("0.1", 2), BallBox(1, "-0.5", 2), BallBox(1, 0, "0.4")]
REGULARIZERS = [None, Ridge("0.1"), Lasso("0.05")]
PAIRS = [(feasible, REGULARIZERS[k % 3]) for k, feasible in enumerate(SETS)] + [
    (Ball(1), Lasso("0.05")),
    (Ball(20), None),
    (BallBox(1, "-0.5", 2), Ridge("0.1")),
]


def problem(loss, rows, width, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, width))
    x /= np.maximum(1, np.linalg.norm(x, axis=1))[:, None]
    if isinstance(loss, Softmax):
        return x, rng.integers(0, loss.classes, rows)
    seen = x @ np.ones(width) + 0.3 * rng.normal(size=rows)
    return x, seen if loss.form == "difference" else (seen > 0).astype(int)


def dimension(loss, width):
    return width * loss.classes if isinstance(loss, Softmax) else width


def test_the_risk_is_the_mean_loss_plus_the_regularizer():
    x, y = np.array([[1.0, 2.0], [0.0, -1.0]]), np.array([1.0, 3.0])
    w = np.array([2.0, -1.0])  # u = -1, -2
    assert risk_value(Squared(), x, y, w) == 2.5
    assert risk_value(Absolute(), x, y, w, Ridge(2)) == 1.5 + 5
    assert risk_value(Pinball("0.25"), x, y, w, Lasso(1)) == 0.375 + 3
    assert risk_value(Hinge(), x, np.array([1, 0]), w) == (1 + 2) / 2  # margins 0 and -1
    assert risk_value(Squared(), x[:0], y[:0], w, Ridge(2)) == 5  # of no rows the regularizer alone


def test_the_softmax_of_two_classes_is_the_logistic_loss():
    x, y = problem(Logistic(), 30, 3)
    w = np.array([0.3, -0.2, 0.9])
    both = np.concatenate([0 * w, w])
    assert risk_value(Softmax(2), x, y, both) == pytest.approx(risk_value(Logistic(), x, y, w), rel=1e-12)
    assert risk_gradient(Softmax(2), x, y, both)[3:] == pytest.approx(risk_gradient(Logistic(), x, y, w), rel=1e-9)


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=str)
@pytest.mark.parametrize("loss", SMOOTH + CORNERS, ids=str)
def test_the_gradient_is_the_slope_of_the_value(loss, regularizer):
    x, y = problem(loss, 40, 3)
    rng = np.random.default_rng(1)
    for _ in range(5):
        w, direction = rng.normal(size=(2, dimension(loss, 3)))  # no corner is hit, with probability one
        tiny = 1e-6
        rise = risk_value(loss, x, y, w + tiny * direction, regularizer) - risk_value(
            loss, x, y, w - tiny * direction, regularizer
        )
        found = risk_gradient(loss, x, y, w, regularizer) @ direction
        assert rise / (2 * tiny) == pytest.approx(found, abs=1e-6)


def test_a_custom_gradient_has_neither_value_nor_mean():
    custom = Custom(lambda w, row: w, bound=1, dimension=2, label="mine")
    for ask in (risk_value, risk_gradient):
        with pytest.raises(ParameterError, match="custom"):
            ask(custom, np.zeros((1, 2)), np.zeros(1), np.zeros(2))


def test_descent_is_the_lecture_s_line_by_line():
    x, y = problem(Hinge(), 25, 2)
    feasible, rate = Ball("0.7"), 0.4
    found = descend(Hinge(), x, y, feasible, start=np.zeros(2), rate=rate, steps=6)
    w = np.zeros(2)
    assert (found[0] == w).all()
    for t in range(1, 7):
        g = -np.mean(
            [(2 * b - 1) * a if (2 * b - 1) * (a @ w) < 1 else 0 * a for a, b in zip(x, y, strict=True)], axis=0
        )
        u = w - rate * g
        w = u if np.linalg.norm(u) <= 0.7 else u * 0.7 / np.linalg.norm(u)
        assert found[t] == pytest.approx(w, abs=1e-12)
    assert len(found) == 7
    assert np.linalg.norm(found[-1]) == pytest.approx(0.7)  # the boundary was met


@pytest.mark.parametrize(("feasible", "regularizer"), PAIRS, ids=str)
@pytest.mark.parametrize("loss", SMOOTH + CORNERS, ids=str)
def test_a_minimum_is_feasible_and_proved(loss, feasible, regularizer):
    x, y = problem(loss, 12, 2)
    found = minimiser(loss, x, y, feasible, regularizer)
    assert feasible.contains(found.w, 1e-12)
    assert found.value == risk_value(loss, x, y, found.w, regularizer)
    assert 0 <= found.gap <= 1e-12
    rng = np.random.default_rng(2)
    for size in (1, 1e-2, 1e-4):
        near = feasible.project(found.w + size * rng.normal(size=found.w.shape))
        assert risk_value(loss, x, y, near, regularizer) >= found.value - found.gap - 1e-15


@pytest.mark.parametrize("regularizer", [None, Lasso("0.02")], ids=str)
@pytest.mark.parametrize("loss", CORNERS, ids=str)
def test_minima_over_boxes_are_those_of_linear_programming(loss, regularizer):
    x, y = problem(loss, 25, 4)
    rows, width = x.shape
    strength = 0.0 if regularizer is None else float(regularizer.strength)
    sign = 2.0 * y - 1
    up, down, at = {
        Absolute(): (x, -x, (-y, y)),
        Pinball("0.3"): (0.7 * x, -0.3 * x, (-0.7 * y, 0.3 * y)),
        Hinge(): (0 * x, -sign[:, None] * x, (0 * y, np.ones(rows))),
    }[loss]
    # Variables w, a height t_i above both parts of each loss, and s_j above |w_j|.
    parts = [np.hstack([part, -np.eye(rows), np.zeros((rows, width))]) for part in (up, down)]
    sizes = [np.hstack([s * np.eye(width), np.zeros((width, rows)), -np.eye(width)]) for s in (1, -1)]
    found = linprog(
        np.concatenate([np.zeros(width), np.full(rows, 1 / rows), np.full(width, strength)]),
        A_ub=np.vstack(parts + sizes),
        b_ub=np.concatenate([-at[0], -at[1], np.zeros(2 * width)]),
        bounds=[(-0.5, 1)] * width + [(None, None)] * (rows + width),
    )
    assert minimiser(loss, x, y, Box("-0.5", 1), regularizer).value == pytest.approx(found.fun, abs=1e-9)


def test_in_one_dimension_the_minimisers_are_mean_median_and_quantile():
    y = np.array([0.3, 7.0, 2.5, 9.9, 4.1, 4.2, 8.8])
    x = np.ones((7, 1))
    wide = interval(0, 10)
    assert minimiser(Squared(), x, y, wide).w[0] == pytest.approx(y.mean(), abs=1e-14)
    assert minimiser(Absolute(), x, y, wide).w[0] == pytest.approx(4.2, abs=1e-14)
    assert minimiser(Pinball("0.8"), x, y, wide).w[0] == pytest.approx(
        8.8, abs=1e-14
    )  # the sixth of seven: at least 0.8 of them
    assert minimiser(Absolute(), x, y, interval(5, 10)).w[0] == pytest.approx(5, abs=1e-14)
    assert minimiser(Squared(), x, y, wide, Ridge(2)).w[0] == pytest.approx(y.mean() / 2, abs=1e-14)
    assert minimiser(Squared(), x, y, wide, Lasso(20)).w[0] == 0


def test_without_a_binding_set_the_minimisers_are_the_classical_ones():
    x, y = problem(Squared(), 60, 4)
    assert minimiser(Squared(), x, y, Ball(100)).w == pytest.approx(np.linalg.lstsq(x, y, rcond=None)[0], abs=1e-9)
    x, y = problem(Logistic(), 60, 4)
    classical = LogisticRegression(C=1 / (60 * 0.01), fit_intercept=False, tol=1e-12, max_iter=10_000).fit(x, y)
    assert minimiser(Logistic(), x, y, Ball(100), Ridge("0.01")).w == pytest.approx(classical.coef_[0], abs=1e-5)


def test_an_ill_conditioned_minimum_is_still_found():
    x, y = problem(Squared(), 40, 40, seed=3)
    assert np.linalg.cond(x) > 50
    assert minimiser(Squared(), x, y, Ball(20)).gap <= 1e-12


def test_an_empty_table_is_minimised_by_the_regularizer():
    x, y = np.zeros((0, 2)), np.zeros(0)
    for loss in (Squared(), Absolute()):
        assert minimiser(loss, x, y, Box("0.5", 2), Ridge(1)).w == pytest.approx([0.5, 0.5], abs=1e-12)


def test_acceleration_ends_when_it_is_satisfied_or_gives_up():
    def step(ahead, slope):
        return ahead - slope / 2, slope

    slopes = []

    def gradient(w):
        slopes.append(w)
        return 2 * w * np.array([1.0, 0.01])

    found, done = accelerated(gradient, step, np.ones(2), lambda w, _: float(w @ w) < 1e-20, limit=10_000)
    assert done
    assert float(found @ found) < 1e-20
    assert len(slopes) < 500  # plain steps need about 2300
    slopes.clear()
    assert accelerated(gradient, step, np.ones(2), lambda *_: False, limit=7)[1] is False
    assert len(slopes) == 7


def test_a_box_of_another_dimension_is_refused():
    with pytest.raises(ParameterError, match="3 coordinates"):
        minimiser(Squared(), np.ones((2, 3)), np.ones(2), Box((0, 0), (1, 1)))
