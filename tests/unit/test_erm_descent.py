"""Noisy gradient descent: its price, its public rule, its promises, its edges."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.catalogue import CATALOGUE
from discreet.erm.descent import Accelerated, Average, Descent, Last, StronglyConvex, promise, propose
from discreet.erm.feasible_sets import Ball, BallBox, Box, interval
from discreet.erm.features import Constant, Declared, VectorColumn
from discreet.erm.gradient import pass_over
from discreet.erm.losses import Absolute, Custom, Hinge, Huber, Logistic, Pinball, Softmax, Squared
from discreet.erm.risk import Lasso, Ridge, Risk
from discreet.mechanisms import CoordinateLaplaceNoise, GaussianNoise, ProductLaplaceNoise
from discreet.records import canonical, record, revive
from discreet.rng import Rng

VECTORS = dp.Domain(x=dp.Vector(3, norm=1), y=dp.Category(0, 1))
NUMBERS = dp.Domain(x=dp.Vector(3, norm=1), y=dp.Number(-2, 3, step="0.01"))
LOGISTIC = Risk(Logistic("1/2"), VectorColumn(), "y", Ball(10))


def facts(domain: dp.Domain = VECTORS, *, size: int | None = 1000, relation: str = "replace-one", rows: int = 1):
    return dp.data.Facts(domain, dp.Neighbours(relation, rows), size)


def budgeted(epsilon=1, delta="1e-6"):
    return dp.Funds.of(dp.Budget(epsilon, delta))


@pytest.mark.parametrize(
    "mechanism",
    [
        Descent(LOGISTIC, GaussianNoise(3), 7, Accelerated("0.5")),
        Descent(
            Risk(Hinge(), VectorColumn("x", False), "y", Box(-1, 1), Lasso("0.1")), ProductLaplaceNoise(3), 7, Last(2)
        ),
        Descent(Risk(Softmax(3), VectorColumn(), "y", Ball(1)), CoordinateLaplaceNoise("1/3"), 1, Average(1)),
        Descent(
            Risk(Pinball("0.3"), Declared(("a", "b"), 2), "y", BallBox(2, -1, 1), Ridge("0.1")),
            GaussianNoise(1),
            3,
            StronglyConvex(Fraction(1, 10)),
        ),
        Descent(Risk(Huber("0.5"), Constant(), "y", interval(0, 1)), GaussianNoise(1), 3, Average(1)),
        Descent(Risk(Absolute(), Constant(), "y", Box((0,), (1,))), GaussianNoise(1), 3, Average(1)),
        Descent(Risk(Squared(), Constant(), "y", Box((0,), (1,))), GaussianNoise(1), 3, Average(1)),
    ],
)
def test_a_descent_is_its_record(mechanism):
    text = canonical(record(mechanism))
    assert revive(json.loads(text), CATALOGUE) == mechanism


def test_a_descent_costs_its_steps():
    one = Descent(LOGISTIC, GaussianNoise(300), 1, Average(1)).guarantee(facts())
    ten = Descent(LOGISTIC, GaussianNoise(300), 10, Average(1)).guarantee(facts())
    assert ten.at(2.0) == pytest.approx(10 * one.at(2.0))


@pytest.mark.parametrize(
    ("relation", "rows", "factor"),
    [("add-remove", 1, 1), ("replace-one", 1, 4), ("add-remove", 3, 9), ("replace-one", 3, 36)],
)
@pytest.mark.parametrize("loss", [Logistic("1/2"), Hinge()])
def test_a_gradient_moves_by_its_bound_once_or_twice_for_each_row_of_a_person(relation, rows, factor, loss):
    risk = Risk(loss, VectorColumn(intercept=False), "y", Ball(10))
    known = facts(relation=relation, rows=rows)
    assert pass_over(risk, VECTORS).sensitivity(known).l2_squared == factor * 2**30 * VECTORS.column("x").bound_squared


def test_the_squared_loss_pays_for_the_longest_miss_in_its_set():
    small, large = (pass_over(Risk(Squared(), VectorColumn(), "y", Ball(radius)), NUMBERS) for radius in (1, 10))
    longest = [math.sqrt(p.sensitivity(facts(NUMBERS)).l2_squared) * float(p.unit) for p in (small, large)]
    norm = math.sqrt(1.25)
    assert longest == pytest.approx([2 * 2 * norm * (norm * r + 3) for r in (1, 10)], rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.1, 1, 8])
def test_a_proposal_is_within_its_budget_and_wastes_little(epsilon):
    known = facts()
    found = propose(LOGISTIC, facts=known, funds=budgeted(epsilon))
    proved = found.guarantee(known).epsilon("1e-6")
    assert 0.999 * epsilon < proved <= epsilon


def test_a_pure_budget_gets_pure_noise():
    known = facts()
    found = propose(LOGISTIC, facts=known, funds=budgeted(1, 0))
    assert isinstance(found.noise, ProductLaplaceNoise)
    assert 0.999 < float(found.guarantee(known).pure) <= 1


def test_the_rule_takes_few_steps_when_the_budget_is_small_and_more_when_it_is_large():
    known = facts(size=10_000)
    steps = [propose(LOGISTIC, facts=known, funds=budgeted(epsilon)).steps for epsilon in (0.01, 0.1, 1, 10)]
    assert steps == sorted(steps)
    assert steps[0] < 40 < steps[-1] <= 1000


def test_large_tables_get_few_passes_but_the_squared_loss_as_many_steps_as_it_likes():
    huge = facts(size=10**8)
    assert propose(LOGISTIC, facts=huge, funds=budgeted()).steps <= 256
    numbers = facts(NUMBERS, size=10**8)
    linear = Risk(Squared(), VectorColumn(), "y", Ball(10))
    assert propose(linear, facts=numbers, funds=budgeted()).steps > 256


def test_every_part_of_a_proposal_is_public():
    tables = [
        dp.Matrix(
            [[0.1, 0, 0]] * 50 + [last], [0] * 50 + [label], features=VECTORS.column("x"), target=VECTORS.column("y")
        )
        for last, label in (([1, 0, 0], 0), ([0, -1, 0], 1))
    ]
    first, second = (propose(LOGISTIC, facts=t.facts, funds=budgeted()) for t in tables)
    assert first == second


def test_acceleration_promises_more_than_the_lecture_for_the_same_budget():
    known = facts(size=100_000)
    promised = [
        float(promise(propose(LOGISTIC, facts=known, funds=budgeted(), schedule=kind), known))
        for kind in (Accelerated, Average, Last)
    ]
    assert promised == sorted(promised)
    assert promised[0] < promised[1] / 5


def test_ridge_makes_the_promise_fall_like_the_square_of_the_size():
    risk = Risk(Logistic("1/2"), VectorColumn(), "y", Ball(10), Ridge("0.1"))
    found = []
    for size in (10**3, 10**4):
        known = facts(size=size)
        mechanism = propose(risk, facts=known, funds=budgeted(), schedule=StronglyConvex, steps=10**6)
        variance = 4 * mechanism.noise.variance() / size**2
        found.append(mechanism.schedule.expected(risk.constants(known), mechanism.steps, variance))
    assert found[1] < found[0] / 10


def test_nothing_is_promised_where_no_theorem_reaches():
    tiny = facts(size=5)
    assert promise(propose(LOGISTIC, facts=tiny, funds=budgeted()), tiny).bound is None
    corners = Risk(Hinge(), VectorColumn(), "y", Ball(10))
    known = facts()
    last = propose(corners, facts=known, funds=budgeted(), schedule=Last)
    assert "no theorem" in promise(last, known).reason


def test_a_loss_needs_a_target_it_can_use():
    known = facts()
    with pytest.raises(dp.errors.ParameterError, match="needs a target with bounds"):
        propose(Risk(Squared(), VectorColumn(), "y", Ball(1)), facts=known, funds=budgeted())
    with pytest.raises(dp.errors.ParameterError, match="3 declared classes"):
        propose(Risk(Softmax(3), VectorColumn(), "y", Ball(1)), facts=known, funds=budgeted())


def test_add_remove_needs_a_declared_size():
    known = facts(size=None, relation="add-remove")
    with pytest.raises(dp.errors.ParameterError, match="public size"):
        propose(LOGISTIC, facts=known, funds=budgeted())


def test_a_gaussian_is_refused_when_delta_is_zero():
    known = facts()
    with pytest.raises(dp.errors.ParameterError, match="no amount of noise"):
        propose(LOGISTIC, facts=known, funds=budgeted(1, 0), noise=GaussianNoise)


def mean_gradient(w, row):
    if row["age"] > 90:
        raise RuntimeError("a row must not be able to raise")
    return [math.nan] if row["age"] > 80 else 2 * (w - row["age"] / 100)


def test_a_custom_gradient_is_cut_and_a_row_where_it_fails_counts_as_nothing():
    domain = dp.Domain(age=dp.Number(0, 100, step=1))
    risk = Risk(Custom(mean_gradient, bound=Fraction(1, 2), dimension=1, label="mean"), Constant(), "", interval(0, 1))
    table = dp.Table({"age": [10, 20, 85, 95, 100]}, domain)
    over = pass_over(risk, domain)
    sums = over.oracle(table)(np.array([0.5]))
    assert sums[0] * float(over.unit) == pytest.approx(0.5 + 0.5, abs=1e-3), "0.8 and 0.6 are cut to 0.5"
    assert over.sensitivity(table.facts).l2_squared == 4 * 2**30
    known = table.facts
    assert "does not state" in promise(propose(risk, facts=known, funds=budgeted()), known).reason
    ledger = dp.Ledger.in_memory(dp.Budget(1, 1e-6), table.identity)
    got = dp.release(propose(risk, facts=known, funds=budgeted("1/2")), table, ledger=ledger)
    assert 0 <= got.value[0] <= 1
    assert '"label":"mean"' in canonical(record(got.mechanism))


def test_a_released_model_is_a_float_vector_in_the_set():
    data = dp.Matrix([[0.5, 0.1, 0.0]] * 100, [0, 1] * 50, features=VECTORS.column("x"), target=VECTORS.column("y"))
    w = propose(LOGISTIC, facts=data.facts, funds=budgeted()).run(data, Rng())
    assert w.dtype == np.float64
    assert w.shape == (4,)
    assert np.linalg.norm(w) <= 10 * (1 + 1e-12)


# Against mistakes that were once planted and survived.


@pytest.mark.parametrize("feasible", [Ball(2), Box(-1, 1), BallBox(2, -1, 1)])
@pytest.mark.parametrize("loss", [Logistic(), Squared()])
def test_a_rounded_iterate_is_never_longer_than_the_set_allows(feasible, loss):
    domain = VECTORS if loss.form == "margin" else NUMBERS
    over = pass_over(Risk(loss, VectorColumn(), "y", feasible), domain)
    rng = np.random.default_rng(4)
    points = [feasible.project(rng.normal(size=4) * 10) for _ in range(200)]
    wild = [np.full(4, value) for value in (math.nan, math.inf, -math.inf, 1e308, 3.0)]
    for point in points + wild:
        assert sum(int(unit) ** 2 for unit in over.quantised(point)) <= over.iterate_squared


def test_a_set_that_ends_between_two_grid_points_is_rounded_inwards():
    over = pass_over(Risk(Logistic(), VectorColumn(intercept=False), "y", Ball(Fraction(4_194_303, 2**21))), VECTORS)
    ends = [over.quantised(np.eye(3)[0] * float(over.risk.feasible.radius) * (1 + 1e-9)) for _ in range(2)]
    assert int(ends[0][0]) ** 2 <= over.iterate_squared


def test_the_coarse_sums_pay_for_their_rounding():
    over = pass_over(Risk(Squared(), VectorColumn(intercept=False), "y", Ball(5)), NUMBERS)
    assert over.coarse > 1
    before = 4 * over.reach**2 * over.rows_squared
    wanted = Fraction(math.isqrt(before - 1) + 1, over.coarse) + 2  # the root of three coordinates, rounded up
    assert over.sensitivity(facts(NUMBERS)).l2_squared == math.floor(wanted**2)


def test_coordinate_noise_is_priced_for_every_coordinate_and_step():
    one = CoordinateLaplaceNoise(300)
    known = facts()
    over = pass_over(LOGISTIC, VECTORS)
    single = one.guarantee(over.sensitivity(known), unit=over.unit, dimension=1, neighbours=known.neighbours)
    assert Descent(LOGISTIC, one, 5, Average(1)).guarantee(known).pure == 4 * 5 * single.pure


class Numbered:
    """A test double of noise: step t gets t everywhere."""

    def draw(self, shape, *, unit, rng):
        return np.broadcast_to(np.arange(shape[0])[:, None] * 10**12, shape)


def test_every_step_has_its_own_noise_and_means_are_divided_by_the_public_size():
    rows = [[0.0, 0.0, 0.0]] * 5
    data = dp.Matrix(
        rows, [0] * 5, features=VECTORS.column("x"), target=VECTORS.column("y"), neighbours="add-remove", size=1000
    )
    risk = Risk(Logistic("1/2"), VectorColumn(intercept=False), "y", Ball(2**40))
    unit = float(pass_over(risk, VECTORS).unit)
    moved = Descent(risk, Numbered(), 4, Last(1)).run(data, Rng())
    assert moved == pytest.approx(np.full(3, -(0 + 1 + 2 + 3) * 10**12 * unit / 1000))


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: Descent(LOGISTIC, GaussianNoise(1), 2, "accelerated"), "schedule must be"),
        (lambda: Descent(LOGISTIC, 3, 2, Average(1)), "noise must be"),
        (lambda: Descent("logistic", GaussianNoise(1), 2, Average(1)), "risk must be"),
        (lambda: Average(10**40), "between"),
        (lambda: Ball(10**400), "between"),
        (lambda: Descent(LOGISTIC, GaussianNoise(10**6), 3 * 10**8, Average(1)).guarantee(facts()), "too many numbers"),
        (
            lambda: pass_over(
                Risk(Squared(), VectorColumn(), "y", Ball(1)),
                dp.Domain(x=dp.Vector(30_000, norm=1), y=dp.Number(-1, 1, step="0.1")),
            ),
            "at most 4096 features",
        ),
    ],
)
def test_bad_public_numbers_are_refused_before_any_charge(made, says):
    with pytest.raises(dp.errors.ParameterError, match=says):
        made()


def warning_gradient(w, row):
    if row["age"] == 0:
        raise SystemExit
    return np.log(np.array([0.0])) + w


def test_a_custom_gradient_neither_warns_nor_exits():
    domain = dp.Domain(age=dp.Number(0, 100, step=1))
    risk = Risk(Custom(warning_gradient, bound=1, dimension=1, label="odd"), Constant(), "", interval(0, 1))
    assert pass_over(risk, domain).oracle(dp.Table({"age": [0, 5]}, domain))(np.array([0.5])).tolist() == [0]
