"""Do the exponential mechanism's samplers have the stated law, and is what they promise kept?

Counts are compared with the exact law at a false-alarm rate of 1e-6 a test; each test also rejects a rate that is 30 %
off.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import gammaincc
from scipy.stats import binom, chi2, norm

import discreet as dp
from discreet.erm.exponential.bounds import promise, propose
from discreet.erm.exponential.grid import CustomLoss, GridExponential, problem_of
from discreet.erm.exponential.line import Line, LineExponential
from discreet.erm.exponential.samplers import Mesh
from discreet.erm.feasible_sets import Ball, Box
from discreet.erm.features import Constant, VectorColumn
from discreet.erm.losses import Absolute, Hinge, Huber, Logistic, Pinball, Squared
from discreet.erm.nonprivate import minimiser, risk_value
from discreet.erm.risk import Lasso, Ridge, Risk
from discreet.funds import Funds
from discreet.mechanisms import RankQuantile
from discreet.rng import Rng

ALARM = 1e-6
OFF = (0.7, 1.3)


def fits(counts: Counter, heights: dict, rate: float) -> bool:
    """Whether the counts could come from the law at this rate.

    A chi-square over the outcomes, those expected less than 10 times put together, sees any other law; the mean height,
    which the rate decides, sees another rate.
    """
    mass, total = law(heights, rate), counts.total()
    assert set(counts) <= set(mass)
    cells = [(counts.get(outcome, 0), total * p) for outcome, p in mass.items()]
    kept = [(seen, expected) for seen, expected in cells if expected >= 10]
    rest = total - sum(expected for _, expected in kept)
    if rest >= 10:
        kept.append((total - sum(seen for seen, _ in kept), rest))
    statistic = sum((seen - expected) ** 2 / expected for seen, expected in kept)
    mean = math.fsum(p * heights[outcome] for outcome, p in mass.items())
    spread = math.sqrt(math.fsum(p * (heights[outcome] - mean) ** 2 for outcome, p in mass.items()) / total)
    off = sum(seen * (heights[outcome] - mean) for outcome, seen in counts.items()) / total / spread
    return bool(statistic <= chi2.isf(ALARM / 2, len(kept) - 1) and abs(off) <= norm.isf(ALARM / 4))


def law(heights: dict, rate: float) -> dict:
    least = min(heights.values())
    weights = {point: math.exp(-rate * (height - least)) for point, height in heights.items()}
    total = math.fsum(weights.values())
    return {point: weight / total for point, weight in weights.items()}


VALUES = [0.1, 0.1, 0.36, 0.4, 0.8, 0.86]
COLUMN = dp.Table({"x": VALUES}, dp.Domain(x=dp.Number(0, 1, step="0.02")))
LINES = [
    (LineExponential(Risk(loss, Constant(), "x", Box("0.06", "0.93"), regularizer), rate))
    for loss, rate, regularizer in (
        (Squared(), 12, None),
        (Absolute(), 3, None),
        (Pinball("0.8"), 4, Ridge(1)),
        (Huber("0.203"), 12, Lasso("0.2")),
    )
]


@pytest.mark.parametrize("mechanism", [*LINES, RankQuantile("x", "0.4", "1.5")])
def test_a_line_is_drawn_with_the_stated_law(mechanism):
    sampler, runs, rng = mechanism.sampler(COLUMN), 4_000, Rng()
    codes = range(51) if isinstance(mechanism, RankQuantile) else _codes(mechanism)
    heights = dict(zip(codes, sampler.heights(list(codes)), strict=True))
    counts = Counter(sampler.draw(rng) for _ in range(runs))
    assert fits(counts, heights, float(sampler.rate))
    for off in OFF:
        assert not fits(counts, heights, off * float(sampler.rate))
    assert 0 <= mechanism.run(COLUMN, rng) <= 1


def _codes(mechanism):
    line = Line.of(mechanism.risk, COLUMN.facts)
    return range(line.low, line.high + 1)


def cloud(n: int, d: int, seed: int):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) / 2
    x /= np.maximum(1, np.linalg.norm(x, axis=1))[:, None]
    return x, x @ rng.normal(size=d), rng


def matrix(n: int, d: int, loss, seed: int = 1, relation: str = "replace-one"):
    x, signal, rng = cloud(n, d, seed)
    if loss.form == "margin":
        y = (rng.random(n) < 1 / (1 + np.exp(-3 * signal))).astype(int)
        target = dp.Category(0, 1)
    else:
        y = np.clip(signal / 2 + 0.2 * rng.normal(size=n), -1, 1)
        target = dp.Number(-1, 1, step=Fraction(1, 2**20))
    data = dp.Matrix(x, y, features=dp.Vector(d, norm=1), target=target, neighbours=relation, size=n)
    return data, x, y


def points_of(mesh: Mesh):
    axes = [
        [start + stride * k for k in range(mesh.points)]
        for start, stride in zip(mesh.starts, mesh.strides, strict=True)
    ]
    return [w for w in itertools.product(*axes) if not mesh.excludes(w)]


GRIDS = [
    (Squared(), 2, 7, Ball(2), None, "0.6"),
    (Squared(), 3, 4, Box((-1, 0, -2), (1, 1, 0)), Lasso("0.3"), "0.4"),
    (Logistic(), 2, 7, Ball(3), Ridge("0.05"), "0.6"),
]
MORE_GRIDS = [
    (Squared(), 1, 64, Box(-1, 1), None, "0.2"),
    (Squared(), 2, 12, Ball("0.3"), Ridge("0.1"), 5),
    (Squared(), 4, 4, Ball(1), None, 1),
    (Squared(), 5, 3, Box(-1, 1), Ridge("0.1"), 1),
    (Logistic("0.4"), 3, 6, Box(-2, 1), None, 1),
    (Hinge(), 2, 12, Box(-2, 2), Ridge("0.05"), "0.3"),
    (Absolute(), 2, 9, Ball(1), None, 1),
    (Pinball("0.8"), 2, 9, Box(-1, 1), None, 2),
    (Huber("0.3"), 3, 6, Ball("0.5"), Lasso("0.1"), 6),
]


def grid_law(loss, d, points, feasible, regularizer, rate):
    data, _, _ = matrix(30, d, loss)
    risk = Risk(loss, VectorColumn("x", intercept=False), "y", feasible, regularizer)
    problem = problem_of(risk, points, data.facts)
    sampler = problem.sampler(data, Fraction(rate) * problem.unit)
    grid = points_of(problem.mesh())
    heights = {w: value for w, (value, _) in zip(grid, sampler.oracle(grid), strict=True)}
    return data, problem, sampler, heights


@pytest.mark.parametrize(
    ("case", "runs"),
    [
        *((case, 2_000) for case in GRIDS[:2]),
        *(pytest.param(case, 6_000, marks=pytest.mark.slow) for case in (*GRIDS[2:], *MORE_GRIDS)),
    ],
)
def test_a_grid_is_drawn_with_the_stated_law(case, runs):
    _, _, sampler, heights = grid_law(*case)
    rng = Rng()
    counts = Counter(sampler.draw(rng) for _ in range(runs))  # cells are cut as attempts fail: the law stays
    assert fits(counts, heights, float(sampler.rate))
    for off in OFF:
        assert not fits(counts, heights, off * float(sampler.rate))


def test_a_fresh_partition_for_every_draw_has_the_stated_law():
    loss, _, points, feasible, regularizer, rate = GRIDS[0]
    data, problem, sampler, heights = grid_law(*GRIDS[0])
    risk = Risk(loss, VectorColumn("x", intercept=False), "y", feasible, regularizer)
    mechanism, runs, rng = GridExponential(risk, points, rate), 400, Rng()
    unit = float(problem.over.grid)
    named = {tuple(c * unit for c in w): height for w, height in heights.items()}
    counts = Counter(tuple(mechanism.run(data, rng).tolist()) for _ in range(runs))
    assert fits(counts, named, float(sampler.rate))
    assert not fits(counts, named, 0.4 * float(sampler.rate))


def test_a_users_loss_is_drawn_with_the_stated_law():
    custom = CustomLoss(
        lambda p, row: np.sin(9 * p[:, 0]) ** 2 * row["x"], 1, "wave", Box(0, 2), regularizer=lambda p: p[:, 0]
    )
    mechanism, runs, rng = GridExponential(custom, 40, "0.7"), 2_000, Rng()
    points = (2 * np.arange(40) + 1) / 40
    sums = [math.fsum(math.sin(9 * p) ** 2 * x for x in VALUES) + len(VALUES) * p for p in points]
    heights = {float(p): total for p, total in zip(points, sums, strict=True)}
    counts = Counter(float(mechanism.run(COLUMN, rng)[0]) for _ in range(runs))
    assert fits(counts, heights, 0.7)
    for off in OFF:
        assert not fits(counts, heights, 0.7 * off)


# --- accuracy ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_on_exact_laws_of_random_convex_lines_the_gamma_tail_is_never_exceeded(seed):
    """P[F - F* > kappa + s] <= exp(2 t kappa) exp(-t s), the law summed up exactly; nearly attained by one slope."""
    rng = np.random.default_rng(seed)
    values = np.round(rng.beta(0.5, 3, 9), 3) if seed else np.zeros(9)
    data = dp.Table({"x": values}, dp.Domain(x=dp.Number(0, 1, step="0.001")))
    loss = (Absolute(), Absolute(), Squared(), Pinball("0.9"), Huber("0.1"), Pinball("0.2"))[seed]
    mechanism = LineExponential(Risk(loss, Constant(), "x", Box(0, 1)), 5)
    sampler = mechanism.sampler(data)
    heights = np.array(sampler.heights(range(1001)), dtype=float) * float(sampler.rate)
    gaps = heights - heights.min()
    mass = np.exp(-gaps) / np.exp(-gaps).sum()
    kappa = 5 * 9 * 2 * 0.001 / 2
    tightest = 0.0
    for s in np.linspace(0, 8, 81):
        found = float(mass[gaps > kappa + s].sum())
        assert found <= math.exp(2 * kappa) * math.exp(-s)
        tightest = max(tightest, found / math.exp(-s))
    if seed == 0:
        assert tightest > 0.8


@pytest.mark.parametrize("feasible", [Box(-1, 1), Ball(1)])
def test_in_the_plane_the_gamma_tail_is_kept_by_the_exact_law(feasible):
    data, _, _ = matrix(12, 2, Absolute())
    risk = Risk(Absolute(), VectorColumn("x", intercept=False), "y", feasible)
    problem = problem_of(risk, 101, data.facts)
    rate = 3.0
    grid = points_of(problem.mesh())
    found = problem.heights.oracle(data)(grid)
    gaps = np.array([float(value) for value, _ in found]) * float(problem.heights.unit) * rate
    gaps -= gaps.min()
    mass = np.exp(-gaps) / np.exp(-gaps).sum()
    kappa = rate * 12 * 0.01 * math.sqrt(2)
    edge = 1 if isinstance(feasible, Box) else ((1 + 0.0142) / (1 - 0.0142)) ** 2 * math.exp(2 * kappa)
    for s in np.linspace(0, 10, 51):
        assert float(mass[gaps > kappa + s].sum()) <= edge * math.exp(2 * kappa) * gammaincc(2, s)


@pytest.mark.parametrize("loss", [Absolute(), Pinball("0.9"), Squared(), Huber("0.05")])
def test_on_a_line_the_promise_is_kept_with_its_probability_and_on_average(loss):
    values = np.random.default_rng(3).beta(0.5, 5, 500)
    data = dp.Table({"x": values}, dp.Domain(x=dp.Number(0, 1, step=Fraction(1, 2**20))))
    risk = Risk(loss, Constant(), "x", Box(0, 1))
    mechanism = propose(risk, facts=data.facts, funds=Funds.of(dp.Budget(1)))
    stored = np.floor(values * 2**20) / 2**20
    sampler, runs, rng = mechanism.sampler(data), 500, Rng()
    least = sampler.least
    unit = float(Line.of(risk, data.facts).unit)
    excess = np.array([(sampler.heights([sampler.draw(rng)])[0] - least) * unit / len(stored) for _ in range(runs)])
    bound, mean = float(promise(mechanism, data.facts, 0.1)), float(promise(mechanism, data.facts))
    assert int((excess > bound).sum()) <= binom.isf(ALARM, runs, 0.1)
    assert excess.mean() <= mean + 5 * excess.std() / math.sqrt(runs)


def test_a_linear_loss_attains_a_quarter_of_the_promise():
    """All rows at one end: the absolute loss is one slope, t F is exactly exponential."""
    data = dp.Table({"x": np.zeros(400)}, dp.Domain(x=dp.Number(0, 1, step=Fraction(1, 2**20))))
    risk = Risk(Absolute(), Constant(), "x", Box(0, 1))
    mechanism = propose(risk, facts=data.facts, funds=Funds.of(dp.Budget(1)))
    sampler, rng = mechanism.sampler(data), Rng()
    drawn = np.array([sampler.draw(rng) for _ in range(1000)]) / 2**20
    mean = float(promise(mechanism, data.facts))
    assert mean / 4 < drawn.mean() < mean + 5 * drawn.std() / math.sqrt(1000)


@pytest.mark.parametrize(
    ("loss", "feasible"), [(Logistic(), Ball(2)), (Squared(), Box(-1, 1)), (Hinge(), Box(-2, 2)), (Absolute(), Ball(1))]
)
def test_on_a_grid_the_mean_excess_risk_is_below_the_promise(loss, feasible):
    data, x, y = matrix(300, 2, loss)
    risk = Risk(loss, VectorColumn("x", intercept=False), "y", feasible)
    mechanism = propose(risk, facts=data.facts, funds=Funds.of(dp.Budget(4)))
    problem = problem_of(risk, mechanism.points, data.facts)
    sampler, rng = problem.sampler(data, mechanism.rate * problem.unit), Rng()
    best, unit = minimiser(loss, x, y, feasible), float(problem.over.grid)
    drawn = [np.array(sampler.draw(rng), dtype=float) * unit for _ in range(100)]
    excess = np.array([risk_value(loss, x, y, w) for w in drawn]) - best.value
    mean, tail = float(promise(mechanism, data.facts)), float(promise(mechanism, data.facts, 0.1))
    assert mean < risk.centre_excess(data.facts)
    assert excess.mean() <= mean + 5 * excess.std() / math.sqrt(100)
    assert int((excess > tail).sum()) <= binom.isf(ALARM, 100, 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 1])
@pytest.mark.parametrize("q", ["0.5", "0.9"])
def test_a_rank_quantile_misses_by_the_ranks_that_its_rate_says(q, epsilon):
    """Spacings of a smooth sample are nearly alike, so the rank error is nearly geometric, of mean 2 / epsilon."""
    values = np.sort(np.random.default_rng(5).beta(0.5, 5, 100_000))
    data = dp.Table({"x": values}, dp.Domain(x=dp.Number(0, 1, step=Fraction(1, 2**30))))
    mechanism = RankQuantile("x", q, Fraction(epsilon) / 2)
    assert float(mechanism.guarantee(data.facts).pure) == pytest.approx(epsilon)
    sampler, rng, runs = mechanism.sampler(data), Rng(), 400
    drawn = np.array([sampler.draw(rng) for _ in range(runs)]) / 2**30
    ranks = np.abs(np.searchsorted(values, drawn) - float(q) * 100_000)
    assert 0.6 * 2 / epsilon < ranks.mean() < 1.5 * 2 / epsilon + 1
