"""The exponential mechanism as a solver: exact heights, exact prices, public grids, promises, bad input."""

from __future__ import annotations

import itertools
import json
import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import gammaincc

import discreet as dp
from discreet.data import Domain, Facts
from discreet.erm.exponential.bounds import Tail, convex_tail, lecture_tail, promise, propose
from discreet.erm.exponential.grid import CustomLoss, CustomProblem, GridExponential, problem_of
from discreet.erm.exponential.line import Line, LineExponential
from discreet.erm.exponential.samplers import Lattice, Mesh
from discreet.erm.feasible_sets import Ball, BallBox, Box
from discreet.erm.features import Constant, Declared, VectorColumn
from discreet.erm.losses import Absolute, Custom, Hinge, Huber, Logistic, Pinball, Softmax, Squared
from discreet.erm.nonprivate import minimiser
from discreet.erm.risk import Lasso, Ridge, Risk
from discreet.errors import ParameterError
from discreet.funds import Funds
from discreet.guarantee import Neighbours
from discreet.mechanisms import ColumnSums, RankQuantile, first
from discreet.records import canonical, record, revive
from discreet.rng import Rng, SeededRng

NUMBER = dp.Number("-1", 2, step="0.25")
LOSSES = [Squared(), Absolute(), Pinball("0.9"), Pinball("1/3"), Huber("0.6"), Huber("0.1"), Huber(100)]
REGULARIZERS = [None, Ridge("0.7"), Lasso("1/3")]
RELATIONS = ["replace-one", "add-remove"]


def column(values, number=NUMBER, relation="replace-one", **more) -> dp.Table:
    return dp.Table({"x": values}, dp.Domain(x=number), neighbours=relation, **more)


def on_line(loss, low=-1, high=2, regularizer=None) -> Risk:
    return Risk(loss, Constant(), "x", Box(low, high), regularizer)


def exact_loss(loss, u: Fraction) -> Fraction:
    if isinstance(loss, Squared):
        return u * u
    if isinstance(loss, Absolute):
        return abs(u)
    if isinstance(loss, Pinball):
        return max((1 - loss.q) * u, -loss.q * u)
    cut = min(abs(u), loss.threshold)
    return cut * (2 * abs(u) - cut)


def grid_values(mechanism, facts):
    line = Line.of(mechanism.risk, facts)
    return [line.number.value(code) for code in range(line.low, line.high + 1)]


# --- sums over a column -----------------------------------------------------------------------------------------------


def test_power_sums_below_any_cut_equal_sums_in_python_integers():
    rng = np.random.default_rng(4)
    top = 2**62 - 2
    codes = [0, top, top, 2**31, 2**31 - 1, *(int(each) for each in rng.integers(0, top, 300))]
    sums = ColumnSums(column(codes, dp.Number(0, top, step=1)), "x", 2, top + 1)
    cuts = [0, 1, 2**31, 2**40, top, top + 1, *codes[5:25]]
    sums.learn(cuts)
    for cut in cuts:
        below = [code for code in codes if code < cut]
        assert sums.below(cut) == (len(below), sum(below), sum(code * code for code in below))


def test_missing_values_are_below_nothing():
    sums = ColumnSums(column([0, 1, None], dp.Number(0, 1, step=1, missing=True)), "x", 1, 2)
    assert sums.below(2) == (2, 1, 0)


@pytest.mark.parametrize("high", [0, 1, 254, 255, 256, 10**6, 2**62])
def test_the_search_finds_the_first_point_that_holds(high):
    for wanted in {0, high // 3, high - 1 if high else 0, high}:
        assert first(0, high, lambda codes, wanted=wanted: [code >= wanted for code in codes]) == wanted


# --- the line ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("regularizer", REGULARIZERS)
@pytest.mark.parametrize("loss", LOSSES)
def test_heights_on_a_line_are_the_sum_of_losses_and_n_times_the_regularizer(loss, regularizer):
    values = [-1, "0.25", "0.25", 1, 2, "-0.5"]
    data = column([float(Fraction(each)) for each in values])
    mechanism = LineExponential(on_line(loss, "-0.75", "1.5", regularizer), 1)
    line, sampler = Line.of(mechanism.risk, data.facts), mechanism.sampler(data)
    found = sampler.heights(range(line.low, line.high + 1))
    for height, w in zip(found, grid_values(mechanism, data.facts), strict=True):
        expected = sum(exact_loss(loss, w - Fraction(each)) for each in values)
        if isinstance(regularizer, Ridge):
            expected += len(values) * regularizer.strength / 2 * w * w
        if isinstance(regularizer, Lasso):
            expected += len(values) * regularizer.strength * abs(w)
        assert height * line.unit == expected


@pytest.mark.parametrize("regularizer", REGULARIZERS)
@pytest.mark.parametrize("loss", LOSSES)
def test_without_noise_the_line_releases_a_minimiser(loss, regularizer):
    rng = np.random.default_rng(5)
    number = dp.Number(-1, 2, step="0.001")
    data = column(rng.beta(2, 5, 501) * 3 - 1, number)
    mechanism = LineExponential(on_line(loss, "-0.9", "1.9", regularizer), 10**12)
    line, sampler = Line.of(mechanism.risk, data.facts), mechanism.sampler(data)
    heights = sampler.heights(range(line.low, line.high + 1))
    released = number.code(Fraction(repr(mechanism.run(data, Rng()))))
    assert heights[released - line.low] == min(heights)


def test_without_noise_mean_median_and_quantile_come_out():
    values = np.random.default_rng(6).beta(0.5, 5, 1001)
    step = Fraction(1, 2**30)
    data = column(values, dp.Number(0, 1, step=step))
    for loss, truth in ((Squared(), values.mean()), (Absolute(), np.median(values))):
        assert LineExponential(on_line(loss, 0, 1), 10**20).run(data, Rng()) == pytest.approx(
            truth, abs=2 * float(step)
        )
    for q in ("0.5", "0.9", "1/8"):  # q n is not whole: one value is the quantile
        truth = np.quantile(values, float(Fraction(q)), method="inverted_cdf")
        assert RankQuantile("x", q, 10**6).run(data, Rng()) == pytest.approx(truth, abs=2 * float(step))
        line = LineExponential(on_line(Pinball(q), 0, 1), 10**20).run(data, Rng())
        assert line == pytest.approx(truth, abs=2 * float(step))


def test_a_value_that_all_rows_share_is_their_quantile():
    data = column([1.25] * 50)
    for q in ("0.01", "0.5", "0.99"):
        assert RankQuantile("x", q, 1000).run(data, Rng()) == 1.25


def test_rank_heights_count_the_rows_on_the_wrong_side():
    values = [-1, -1, 0, "0.25", "0.25", 2, 2]
    data = column([float(Fraction(each)) for each in values])
    for q in (Fraction(1, 3), Fraction(1, 2), Fraction(9, 10)):
        found = RankQuantile("x", q, 1).sampler(data).heights(range(NUMBER.steps + 1))
        for code, height in enumerate(found):
            w, n = NUMBER.value(code), len(values)
            less, upto = (sum(Fraction(v) < w for v in values), sum(Fraction(v) <= w for v in values))
            assert Fraction(height, q.denominator) == max(0, less - q * n, q * n - upto)


def test_a_quantile_of_a_column_without_bounds_is_a_value_near_it():
    data = dp.Table({"x": list(range(1000, 2001))}, dp.Domain(x=dp.Number.any()))
    assert 1400 <= RankQuantile("x", "0.5", 1).run(data, Rng()) <= 1600


def test_missing_rows_count_nowhere():
    number = dp.Number(0, 100, step=1, missing=True)
    data = column([10] * 10 + [90] * 3 + [None] * 100, number)
    assert RankQuantile("x", "0.5", 50).run(data, Rng()) == 10


@pytest.mark.parametrize("high", [8, 2**62 - 2])
def test_no_rows_leave_a_law_on_the_whole_grid(high):
    data = dp.Table({"x": []}, dp.Domain(x=dp.Number(0, high, step=1)), neighbours="add-remove")
    for mechanism in (RankQuantile("x", "0.5", 1), LineExponential(Risk(Squared(), Constant(), "x", Box(0, high)), 1)):
        found = mechanism.run(data, SeededRng(1))
        assert 0 <= found <= high


def test_a_grid_of_2_to_the_62_points_with_heights_beyond_64_bits_is_drawn_from():
    top = 2**62 - 2
    data = column([top / 4] * 50, dp.Number(0, top, step=1))
    risk = Risk(Squared(), Constant(), "x", Box(0, top))
    mechanism = propose(risk, facts=data.facts, funds=Funds.of(dp.Budget(50)))
    sampler = mechanism.sampler(data)
    assert sampler.shift > 0
    assert abs(sampler.draw(Rng()) - top / 4) < top / 8  # the standard deviation is top / 50


# --- prices -----------------------------------------------------------------------------------------------------------


def brute_range(heights_of_row, points: int, rows: int, relation: str) -> Fraction:
    spans = [[heights_of_row(x)[w] for w in range(points)] for x in range(rows)]
    if relation == "add-remove":
        return max(max(each) - min(each) for each in spans)
    moves = ([a - b for a, b in zip(p, q, strict=True)] for p, q in itertools.product(spans, repeat=2))
    return max(max(each) - min(each) for each in moves)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("bounds", [(-1, 2), ("-0.5", "1.75"), ("0.25", "0.25001"), (1, 2)])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_price_of_a_line_is_exactly_the_largest_range_of_one_row(loss, bounds, relation):
    mechanism = LineExponential(on_line(loss, *bounds), "1/7")
    facts = column([0.0] * 4, relation=relation).facts
    grid = grid_values(mechanism, facts)
    rows = [NUMBER.value(code) for code in range(NUMBER.steps + 1)]
    largest = brute_range(lambda x: [exact_loss(loss, w - rows[x]) for w in grid], len(grid), len(rows), relation)
    assert mechanism.guarantee(facts).pure == largest / 7
    three = Facts(facts.domain, Neighbours(relation, 3), facts.size)
    assert mechanism.guarantee(three).pure == 3 * largest / 7


@pytest.mark.parametrize("q", ["1/2", "1/4", "4/5"])
def test_the_price_of_ranks_is_the_largest_range_over_all_small_tables(q):
    quantile = Fraction(q)

    def heights(rows):
        n = len(rows)
        return [
            max(0, sum(x < w for x in rows) - quantile * n, quantile * n - sum(x <= w for x in rows)) for w in range(4)
        ]

    worst = {"add-remove": Fraction(0), "replace-one": Fraction(0)}
    for n in range(6):
        for rows in itertools.combinations_with_replacement(range(4), n):
            for x in range(4):
                added = [a - b for a, b in zip(heights((*rows, x)), heights(rows), strict=True)]
                worst["add-remove"] = max(worst["add-remove"], max(added) - min(added))
                for y in range(4):
                    moved = [a - b for a, b in zip(heights((*rows, x)), heights((*rows, y)), strict=True)]
                    worst["replace-one"] = max(worst["replace-one"], max(moved) - min(moved))
    for relation, found in worst.items():
        stated = RankQuantile("x", q, 1).guarantee(column([0.0], relation=relation).facts).pure
        assert found == stated


VECTOR = dp.Vector(2, norm=2, step=1)  # 13 rows x


def toy(loss, feasible, relation="replace-one", regularizer=None, points=4, rate=1):
    target = dp.Category(0, 1) if loss.form == "margin" else dp.Number(-1, 1, step=1)
    rows = [(0, 1), (1, 1), (-2, 0), (1, -1)]
    data = dp.Matrix(np.array(rows), [0, 1, 1, 0], features=VECTOR, target=target, neighbours=relation, size=4)
    risk = Risk(loss, VectorColumn("x", intercept=False), "y", feasible, regularizer)
    return data, GridExponential(risk, points, rate)


def every_row(loss):
    vectors = [(a, b) for a in range(-2, 3) for b in range(-2, 3) if a * a + b * b <= 4]
    return [(vector, label) for vector in vectors for label in ((0, 1) if loss.form == "margin" else (-1, 0, 1))]


def listed(mesh: Mesh):
    axes = [
        [start + stride * k for k in range(mesh.points)]
        for start, stride in zip(mesh.starts, mesh.strides, strict=True)
    ]
    return [w for w in itertools.product(*axes) if not mesh.excludes(w)]


LINEAR = [Squared(), Logistic(), Logistic("1/3"), Hinge(), Huber("0.5"), Absolute(), Pinball("0.8")]
SETS = [Ball(1), Box(-1, 1), Box((0, -1), (2, 1)), BallBox(1, (-1, 0), (1, 1))]


@pytest.mark.parametrize("feasible", SETS)
@pytest.mark.parametrize("loss", LINEAR)
def test_the_price_of_a_grid_covers_the_range_of_every_row_and_is_not_much_more(loss, feasible):
    data, mechanism = toy(loss, feasible)
    problem = problem_of(mechanism.risk, mechanism.points, data.facts)
    points = listed(problem.mesh())
    found = 0
    for vector, label in every_row(loss):
        alone = dp.Matrix(np.array([vector]), [label], features=VECTOR, target=data.facts.domain["y"])
        values = [value for value, _ in problem.heights.oracle(alone)(points)]
        found = max(found, problem.weight * (max(values) - min(values)))
    assert found <= problem.range
    if not isinstance(feasible, BallBox) and feasible != SETS[2]:
        assert problem.range <= 2.5 * found  # rows and centres of cells do not reach the edges that the bound allows
    assert mechanism.guarantee(data.facts).pure == mechanism.rate * problem.unit * 2 * problem.range
    add = toy(loss, feasible, "add-remove")
    assert add[1].guarantee(add[0].facts).pure == mechanism.rate * problem.unit * problem.range


def test_the_span_of_a_ball_is_its_diameter_times_the_slope():
    radius, norm, slope = 3, 2, 1
    facts = Facts(dp.Domain(x=VECTOR, y=dp.Number(-9, 9, step=1)), Neighbours("replace-one"), 10)
    risk = Risk(Absolute(), VectorColumn("x", intercept=False), "y", Ball(radius))
    found = GridExponential(risk, 1001, 1).guarantee(facts).pure
    assert float(found) == pytest.approx(2 * (2 * radius) * norm * slope, rel=1e-3)


# --- heights of linear models -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("regularizer", REGULARIZERS)
@pytest.mark.parametrize("loss", LINEAR)
def test_heights_on_a_grid_are_the_losses_up_to_the_stated_rounding(loss, regularizer):
    rng = np.random.default_rng(7)
    x = rng.normal(size=(40, 2)) / 2
    labels = rng.integers(0, 2, 40) if loss.form == "margin" else np.clip(rng.normal(size=40), -1, 1)
    target = dp.Category(0, 1) if loss.form == "margin" else dp.Number(-1, 1, step=Fraction(1, 2**20))
    vector = dp.Vector(2, norm=1)
    data = dp.Matrix(x, labels, features=vector, target=target)
    risk = Risk(loss, VectorColumn("x"), "y", Ball(2), regularizer)
    problem = problem_of(risk, 5, data.facts)
    mesh, unit = problem.mesh(), float(problem.unit)
    points = listed(mesh)
    sampler = problem.sampler(data, Fraction(1, 10**9))
    codes = data.exact_sum(lambda batch: batch["x"].astype(object).reshape(1, -1)).reshape(-1, 2)
    rows = np.column_stack([codes.astype(float) * float(vector.step), np.full(40, 0.5)])
    found = np.array([float(value) for value, _ in sampler.oracle(points)]) * unit
    truth = []
    for point in points:
        w = np.array(point) * float(problem.over.grid)
        missed = rows @ w
        u = (2 * labels - 1) * missed if loss.form == "margin" else missed - labels
        extra = 0.0 if regularizer is None else 40 * regularizer.value(w)
        truth.append(float(np.sum(loss.value(u))) + extra)
    apart = (found - found[0]) - (np.array(truth) - truth[0])
    assert np.abs(apart).max() <= 2 * 40 * problem.row_error + 1e-9
    assert np.abs(np.array(truth) - truth[0]).max() > 1


@pytest.mark.parametrize("loss", LINEAR)
def test_heights_lie_above_their_tangents_in_exact_integers(loss):
    data, mechanism = toy(loss, Box(-1, 1), regularizer=Lasso("0.1"))
    problem = problem_of(mechanism.risk, 9, data.facts)
    sampler = problem.sampler(data, Fraction(1, 10**9))
    points = [*listed(problem.mesh()), (2**22, -(2**22)), (0, 2**21)]
    tangents = sampler.oracle(points)
    for (value, slopes), c in zip(tangents, points, strict=True):
        for (height, _), w in zip(tangents, points, strict=True):
            assert height >= value + sum(g * (a - b) for g, a, b in zip(slopes, w, c, strict=True))


@pytest.mark.parametrize("loss", LINEAR)
def test_a_row_adds_the_same_integers_whoever_is_in_the_table(loss):
    rng = np.random.default_rng(8)
    x, labels = rng.normal(size=(50, 2)) / 2, rng.integers(0, 2, 50)
    target = dp.Category(0, 1) if loss.form == "margin" else dp.Number(0, 1, step="0.01")
    risk = Risk(loss, VectorColumn("x"), "y", Ball(2))
    whole = dp.Matrix(x, labels, features=dp.Vector(2, norm=1), target=target)
    heights = problem_of(risk, 7, whole.facts).heights
    points = [(12345, -54321, 77), (0, 0, 1), (-(2**21), 2**21, 5)]
    together = heights.oracle(whole)(points)
    alone = [
        heights.oracle(dp.Matrix(x[i : i + 1], labels[i : i + 1], features=dp.Vector(2, norm=1), target=target))(points)
        for i in range(50)
    ]
    for place, (value, slopes) in enumerate(together):
        assert value == sum(each[place][0] for each in alone)
        assert slopes == tuple(sum(each[place][1][i] for each in alone) for i in range(3))


def test_without_noise_a_grid_recovers_ordinary_least_squares_and_the_logistic_fit():
    rng = np.random.default_rng(9)
    x = rng.normal(size=(400, 2)) / 3
    x /= np.maximum(1, np.linalg.norm(x, axis=1))[:, None]
    y = np.clip(x @ [0.5, -0.3] + 0.1 * rng.normal(size=400), -1, 1)
    classes = (rng.random(400) < 1 / (1 + np.exp(-4 * x @ [1.0, -0.5]))).astype(int)
    features = dp.Vector(2, norm=1)
    for loss, labels, target in (
        (Squared(), y, dp.Number(-1, 1, step=Fraction(1, 2**20))),
        (Logistic(), classes, dp.Category(0, 1)),
    ):
        for feasible in (Ball(3), Box(-3, 3), Ball("1/4"), Box("-1/4", "1/4")):  # the last two cut the solution off
            data = dp.Matrix(x, labels, features=features, target=target)
            risk = Risk(loss, VectorColumn("x", intercept=False), "y", feasible)
            released = GridExponential(risk, 2**15, 10**7).run(data, Rng())
            best = minimiser(loss, x, labels, feasible)
            assert released == pytest.approx(best.w, abs=5e-3)
            assert feasible.contains(released, 1e-12)


@pytest.mark.parametrize("kind", ["ball", "box"])
def test_five_dimensions_are_drawn_from(kind):
    rng = np.random.default_rng(10)
    x = rng.normal(size=(1000, 5)) / 3
    y = np.clip(x @ rng.normal(size=5) / 3, -1, 1)
    data = dp.Matrix(x, y, features=dp.Vector(5, norm=1), target=dp.Number(-1, 1, step=Fraction(1, 2**20)))
    feasible = Ball(2) if kind == "ball" else Box(-1, 1)
    risk = Risk(Squared(), VectorColumn("x", intercept=False), "y", feasible)
    mechanism = propose(risk, facts=data.facts, funds=Funds.of(dp.Budget(1)))
    released = mechanism.run(data, Rng())
    assert released.shape == (5,)
    assert feasible.contains(released, 1e-12)


# --- grids ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("points", [1, 2, 3, 8])
def test_cells_of_a_lattice_fill_the_box(points):
    lattice = Lattice.of(Box((-1, 0), (2, "0.5")), 2, points)
    for start, stride, (low, high) in zip(lattice.starts, lattice.strides, [(-1, 2), (0, Fraction(1, 2))], strict=True):
        assert start - stride / 2 == low
        assert start + (points - 1) * stride + stride / 2 == high
    assert lattice.listed().shape == (points**2, 2)


def test_a_lattice_in_steps_of_a_unit_stays_in_the_box_and_loses_less_than_a_step_for_each_point():
    unit = Fraction(1, 1000)
    lattice = Lattice.of(Box("-0.3335", "0.7771"), 1, 7, unit)
    start, stride = lattice.starts[0], lattice.strides[0]
    assert (start / unit).denominator == (stride / unit).denominator == 1
    assert Fraction("-0.3335") <= start - stride / 2
    assert start + 6 * stride + stride / 2 <= Fraction("0.7771")
    assert Fraction("1.1106") - 7 * stride < 9 * unit


@pytest.mark.parametrize("feasible", [Ball("2/3"), BallBox("2/3", (-1, "-1/5"), ("1/2", 1))])
def test_a_lattice_in_a_ball_keeps_exactly_the_points_inside(feasible):
    lattice = Lattice.of(feasible, 2, 9)
    axes = [[a + k * b for k in range(9)] for a, b in zip(lattice.starts, lattice.strides, strict=True)]
    inside = [point for point in itertools.product(*axes) if sum(c * c for c in point) <= Fraction(4, 9)]
    assert lattice.listed() == pytest.approx(np.array([[float(c) for c in point] for point in inside]))
    apart = max(sum((a - b) ** 2 for a, b in zip(p, q, strict=True)) for p in inside for q in inside)
    assert apart <= lattice.diameter_squared


def test_a_grid_that_misses_the_ball_is_refused():
    with pytest.raises(ParameterError, match="lies in the ball"):
        Lattice.of(Ball(1), 5, 2)


# --- a user's own loss ------------------------------------------------------------------------------------------------

PEOPLE = dp.Table({"x": [0.0, 1.0, 2.0], "c": ["a", "b", "a"]}, dp.Domain(x=NUMBER, c=dp.Category("a", "b")))


def steps_of(loss, bound=1, points=3):
    problem = CustomProblem(CustomLoss(loss, bound, "test", Box(-1, 2)), points, PEOPLE.facts)
    return PEOPLE.exact_sum(lambda batch: problem.summed(batch, problem.points())) / 2**20


def test_a_users_loss_is_cut_to_its_bound_and_rounded_down():
    assert steps_of(lambda points, row: [0.5, 7.0, -3.0]).tolist() == [1.5, 3.0, 0.0]
    third = steps_of(lambda points, row: np.full(3, 1 / 3))
    assert third.tolist() == [3 * math.floor(2**20 / 3) / 2**20] * 3


@pytest.mark.parametrize(
    "broken",
    [
        lambda points, row: 1 / 0,
        lambda points, row: sys.exit(1),
        lambda points, row: np.log(points[:, 0] * 0) * np.nan,  # warns too
        lambda points, row: [1.0],
        lambda points, row: "a text",
        lambda points, row: None,
        lambda points, row: points.fill(1.0) or points[:, 0],
    ],
)
def test_a_loss_that_fails_counts_as_nothing(broken):
    assert steps_of(broken).tolist() == [0.0, 0.0, 0.0]


def test_a_loss_that_is_not_a_number_counts_as_nothing_and_an_infinite_one_as_the_bound():
    assert steps_of(lambda points, row: [math.nan, math.inf, -math.inf]).tolist() == [0.0, 3.0, 0.0]


def test_a_users_loss_sees_one_row_at_a_time_and_all_points():
    seen = []

    def loss(points, row):
        seen.append((points.shape, row))
        return np.abs(points[:, 0] - row["x"]) / 3 + (row["c"] == "b")

    mechanism = GridExponential(CustomLoss(loss, 2, "mine", Box(-1, 2)), 11, 100)
    assert mechanism.run(PEOPLE, Rng()).shape == (1,)
    assert seen == [((11, 1), {"x": x, "c": c}) for x, c in ((0.0, "a"), (1.0, "b"), (2.0, "a"))]
    assert mechanism.guarantee(PEOPLE.facts).pure == 2 * 2 * 100


def test_any_regularizer_of_the_points_is_a_base_measure():
    custom = CustomLoss(lambda points, row: np.zeros(len(points)), 1, "none", Box(0, 1), regularizer=lambda p: p[:, 0])
    mechanism = GridExponential(custom, 4, 10**6)
    assert mechanism.run(PEOPLE, Rng()).tolist() == [0.125]
    for wrong in (lambda p: [math.inf] * len(p), lambda p: [0.0], lambda p: 1 / 0, lambda p: [1e60] * len(p)):
        with pytest.raises(ParameterError, match="regularizer"):
            GridExponential(CustomLoss(lambda p, r: p, 1, "w", Box(0, 1), regularizer=wrong), 4, 1).guarantee(
                PEOPLE.facts
            )


# --- records, facts, bad input ----------------------------------------------------------------------------------------

CLASSES = (
    LineExponential, RankQuantile, GridExponential, Risk, Constant, VectorColumn, Declared, Ball, Box, BallBox, Ridge,
    Lasso, Squared, Absolute, Pinball, Huber, Logistic, Hinge,
)  # fmt: skip
MECHANISMS = [
    LineExponential(on_line(Huber("0.3"), regularizer=Ridge("0.1")), "1/3"),
    RankQuantile("x", "0.9", 0.25),
    GridExponential(Risk(Logistic(), Declared(("x",), 1), "c", Ball(2), Lasso("1/7")), 9, 2),
    GridExponential(Risk(Squared(), Declared(("x",), 1), "x", BallBox(1, -1, "0.5")), 9, 2),
]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_mechanism_is_its_record(mechanism):
    text = canonical(record(mechanism))
    assert revive(json.loads(text), {each.NAME: each for each in CLASSES}) == mechanism
    assert "." not in text


def test_a_users_loss_is_recorded_by_its_label_and_bound():
    custom = CustomLoss(lambda points, row: points, "1/3", "mine", Ball(2), dimension=2)
    stored = record(GridExponential(custom, 5, 1))
    assert stored["risk"] == {
        "name": "custom-loss/1", "label": "mine", "bound": "1/3", "dimension": 2, "feasible": record(Ball(2)),
    }  # fmt: skip


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_price_and_record_are_the_same_for_neighbouring_tables_and_the_run_ends(mechanism, relation):
    domain = dp.Domain(x=NUMBER, c=dp.Category("a", "b"))
    tables = [
        dp.Table({"x": [0, 1, last], "c": ["a", "b", "a"]}, domain, neighbours=relation, size=3) for last in (-1, 2)
    ]
    first_price, second_price = (mechanism.guarantee(each.facts) for each in tables)
    assert first_price == second_price
    assert first_price.neighbours.kind == relation
    mechanism.run(tables[0], SeededRng(1))
    if relation == "add-remove":
        nobody = dp.Table({"x": [], "c": []}, domain, neighbours=relation, size=3)
        mechanism.run(nobody, SeededRng(1))


WIDE = dp.Matrix(np.zeros((3, 6)), [0, 1, 0], features=dp.Vector(6, norm=1), target=dp.Category(0, 1))


WIDE_RISK = Risk(Logistic(), VectorColumn(), "y", Ball(1))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LineExponential(on_line(Squared(), -2, 2), 1).guarantee(PEOPLE.facts), "within the bounds"),
        (lambda: LineExponential(on_line(Squared(), "0.1", "0.2"), 1).guarantee(PEOPLE.facts), "no value of"),
        (lambda: LineExponential(on_line(Squared(), (0, 0), (1, 1)), 1).guarantee(PEOPLE.facts), "2 sides"),
        (lambda: LineExponential(Risk(Hinge(), Constant(), "c", Box(0, 1)), 1).guarantee(PEOPLE.facts), "a line needs"),
        (lambda: LineExponential(on_line(Squared()), 0), "rate must be > 0"),
        (lambda: LineExponential(on_line(Squared()), 10**200).guarantee(PEOPLE.facts), "rate must lie"),
        (lambda: RankQuantile("x", 1, 1), "strictly between"),
        (lambda: RankQuantile("c", "0.5", 1).guarantee(PEOPLE.facts), "needs a Number"),
        (lambda: GridExponential(Logistic(), 3, 1), "expected a Risk"),
        (lambda: GridExponential(WIDE_RISK, 3, 1).guarantee(WIDE.facts), "solve it by gradient descent"),
        (
            lambda: GridExponential(Risk(Softmax(2), VectorColumn(), "y", Ball(1)), 3, 1).guarantee(WIDE.facts),
            "no margin on a grid",
        ),
        (
            lambda: GridExponential(
                Risk(Custom(lambda w, row: w, 1, 1, "own"), VectorColumn(), "y", Ball(1)), 3, 1
            ).guarantee(WIDE.facts),
            "CustomLoss",
        ),
        (
            lambda: GridExponential(CustomLoss(abs, 1, "l", Ball(1), dimension=4), 3, 1).guarantee(WIDE.facts),
            "at most 3 dimensions",
        ),
        (
            lambda: GridExponential(CustomLoss(abs, 1, "l", Ball(1), dimension=3), 1000, 1).guarantee(WIDE.facts),
            "take fewer",
        ),
        (
            lambda: GridExponential(MECHANISMS[2].risk, 2**23, 1).guarantee(PEOPLE.facts),
            "at most 2",
        ),
        (lambda: CustomLoss("no function", 1, "l", Ball(1)), "function of"),
        (lambda: CustomLoss(abs, 0, "l", Ball(1)), "bound must be > 0"),
        (lambda: CustomLoss(abs, 1, "", Ball(1)), "label must be"),
    ],
)  # fmt: skip
def test_public_mistakes_are_said_before_anything_is_spent(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def test_a_ridge_needs_a_public_size_and_a_line_without_one_does_not():
    facts = column([0.0], relation="add-remove").facts
    LineExponential(on_line(Squared()), 1).guarantee(facts)
    with pytest.raises(ParameterError, match="public size"):
        LineExponential(on_line(Squared(), regularizer=Ridge(1)), 1).guarantee(facts)


# --- promises and proposals -------------------------------------------------------------------------------------------


def test_the_tail_of_the_gamma_law_gives_its_quantile_and_its_mean():
    tail = convex_tail(3)
    assert gammaincc(3, tail.quantile(0.01)) == pytest.approx(0.01)
    assert tail.mean() == pytest.approx(3)
    grown = Tail("", 3, 0.5)
    xs = np.linspace(0, 60, 600_001)
    bound = np.minimum(1, math.exp(0.5) * gammaincc(3, xs))
    assert grown.mean() == pytest.approx(float(np.trapezoid(bound, xs)), rel=1e-6)
    assert Tail("", 1, math.log(50)).mean() == pytest.approx(math.log(50) + 1)


def test_the_lectures_bound_has_its_constants_and_its_condition():
    d, n, epsilon, beta = 2, 5000, 0.5, 0.05  # G = R = 1; Delta = 1 as the lecture assumes, so a = 2 / epsilon
    a = 2 / epsilon
    tail = lecture_tail(n * 1.0, d, 2.0, 1 / a)
    expected = (a / n) * (d + d * math.log(2 * n / (a * d)) + math.log(1 / beta))
    assert tail.excess(1 / a, n, beta) == pytest.approx(expected)
    assert lecture_tail(3.0, 2, 2.0, 1 / 4) is None  # n < a d / (2 G R)


def test_on_a_line_the_promise_is_one_over_the_rate_and_on_a_coarse_one_a_little_more():
    data = column(np.linspace(0, 1, 1000), dp.Number(0, 1, step=Fraction(1, 2**30)))
    mechanism = LineExponential(on_line(Absolute(), 0, 1), 1)  # epsilon 2
    assert float(promise(mechanism, data.facts)) == pytest.approx(1 / 1000, rel=1e-4)
    assert float(promise(mechanism, data.facts, 0.05)) == pytest.approx(math.log(20) / 1000, rel=1e-4)
    assert "Gamma" in promise(mechanism, data.facts).theorem
    coarse = column(np.linspace(0, 1, 1000), dp.Number(0, 1, step="0.1"))
    found = promise(mechanism, coarse.facts)
    assert "finitely many" in found.theorem
    assert 1 / 1000 < float(found) < 0.2


def test_nothing_is_promised_when_the_centre_is_as_good():
    few = column([0.0, 1.0])
    found = promise(LineExponential(on_line(Absolute()), "0.1"), few.facts)
    assert found.bound is None
    assert "no better" in str(found)
    assert promise(RankQuantile("x", "0.5", "0.1"), few.facts).bound is None


def test_a_users_loss_is_promised_something_over_the_grid_and_over_the_set_if_it_is_lipschitz():
    facts = column(np.zeros(10_000), dp.Number(0, 1, step="0.01")).facts
    plain = GridExponential(CustomLoss(abs, 1, "l", Box(0, 1)), 100, "0.05")
    steep = GridExponential(CustomLoss(abs, 1, "l", Box(0, 1), lipschitz=1), 4000, "0.05")
    found = promise(plain, facts)
    assert float(found) == pytest.approx((math.log(100) + 1) / 0.05 / 10_000, rel=1e-2)
    assert "best of them" in found.theorem
    lecture = promise(steep, facts)
    assert "lecture" in lecture.theorem
    assert float(lecture) < (math.log(4000) + 1) / 0.05 / 10_000 + 1 / 4000


def test_a_proposal_spends_the_budget_and_promises_at_least_as_much_as_fewer_points():
    data, _ = toy(Logistic(), Ball(1))
    facts = Facts(data.facts.domain, data.facts.neighbours, 5000)
    for feasible in (Ball(1), Box(-1, 1)):
        risk = Risk(Logistic(), VectorColumn("x", intercept=False), "y", feasible)
        found = propose(risk, facts=facts, funds=Funds.of(dp.Budget(1)))
        assert 1 - 1e-5 <= float(found.guarantee(facts).pure) <= 1
        best = float(promise(found, facts))
        for points in (16, 256, 2**12):
            fewer = propose(risk, facts=facts, funds=Funds.of(dp.Budget(1)), points=points)
            assert best <= float(promise(fewer, facts))


def test_a_proposal_for_one_number_is_the_line_and_the_rest_is_a_grid_or_refused():
    data = column(np.linspace(-1, 2, 500))
    funds = dp.Funds.of(dp.Budget(1))
    assert isinstance(propose(on_line(Squared()), facts=data.facts, funds=funds), LineExponential)
    wide = on_line(Squared(), -3, 3)  # beyond the column's bounds there is no line, but a grid
    assert isinstance(propose(wide, facts=data.facts, funds=funds), GridExponential)
    for risk in (
        WIDE_RISK,
        Risk(Softmax(2), VectorColumn(intercept=False), "y", Ball(1)),
    ):
        with pytest.raises(ParameterError):
            propose(risk, facts=WIDE.facts, funds=Funds.of(dp.Budget(1)))


def test_a_proposal_for_a_thin_set_far_from_the_origin_has_as_many_points_as_fit():
    data, _ = toy(Squared(), Box((1000, -1), ("1000.01", 1)))
    facts = Facts(data.facts.domain, data.facts.neighbours, 5000)
    risk = Risk(Squared(), VectorColumn("x", intercept=False), "y", Box((1000, -1), ("1000.01", 1)))
    found = propose(risk, facts=facts, funds=Funds.of(dp.Budget(1)))
    assert 8 <= found.points <= 2**10
    assert risk.feasible.contains(found.run(data, Rng()), 1e-9)


def test_a_proposal_that_would_take_hours_is_refused_with_advice():
    data, _ = toy(Logistic(), Ball(1))
    facts = Facts(data.facts.domain, data.facts.neighbours, 10**8)
    risk = Risk(Logistic(), VectorColumn("x", intercept=False), "y", Ball(1))
    with pytest.raises(ParameterError, match="passes over"):
        propose(risk, facts=facts, funds=Funds.of(dp.Budget(1)))


def test_a_domain_of_files_is_read_batch_by_batch_with_the_same_law(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    values = np.random.default_rng(11).random(1000)
    pq.write_table(pa.table({"x": values}), tmp_path / "x.parquet")
    domain = Domain(x=dp.Number(0, 1, step=Fraction(1, 2**30)))
    file = dp.ParquetTable(tmp_path / "x.parquet", domain, batch_rows=64)
    memory = dp.Table({"x": values}, domain)
    for mechanism in (RankQuantile("x", "0.3", "0.1"), LineExponential(on_line(Huber("0.2"), 0, 1), "0.1")):
        assert mechanism.run(file, SeededRng(5)) == mechanism.run(memory, SeededRng(5))
