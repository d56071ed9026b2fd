"""What a promise is about: rows per person in every constant, its unit and its condition in words."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import discreet as dp
from discreet.data import Facts
from discreet.erm import descent, network, objective_perturbation, output_perturbation, solvers
from discreet.erm.descent import Accelerated, Average, Last
from discreet.erm.exponential import bounds
from discreet.erm.feasible_sets import Ball, Box, interval
from discreet.erm.features import Constant, Declared, VectorColumn
from discreet.erm.gradient import pass_over
from discreet.erm.losses import Absolute, Custom, Hinge, Huber, Logistic, Pinball, Softmax, Squared
from discreet.erm.nonprivate import risk_gradient, risk_value
from discreet.erm.risk import CAUTION, Lasso, Ridge, Risk
from discreet.guarantee import Neighbours
from discreet.mechanisms import Promise

DOMAIN = dp.Domain(
    a=dp.Number(-1, 1, step="1/64"),
    b=dp.Number(-1, 1, step="1/64"),
    number=dp.Number(-1, 1, step="1/64"),
    two=dp.Category(0, 1),
    three=dp.Category(0, 1, 2),
)
TARGETS = {"difference": "number", "margin": "two", "classes": "three", "custom": "number"}
FEATURES = Declared(("a", "b"), norm=2, intercept=False)
SMOOTH = [Squared(), Huber("1/2"), Logistic(), Logistic("1/2"), Softmax(3)]
LOSSES = [*SMOOTH, Absolute(), Pinball("1/4"), Hinge()]
BUDGET = dp.Budget(200, 1e-6)
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=str)


def facts(rows: int = 1, kind: str = "replace-one", size: int | None = 1000, domain: dp.Domain = DOMAIN) -> Facts:
    return Facts(domain, Neighbours(kind, rows), size)


def risk_of(loss, regularizer=None, feasible=None) -> Risk:
    return Risk(loss, FEATURES, TARGETS[loss.form], feasible or Ball("3/2"), regularizer)


def corner_rows(loss) -> list[tuple[np.ndarray, np.ndarray]]:
    """Tables of equal rows, those at which constants are attained."""
    targets = {"difference": (-1.0, 1.0), "margin": (0, 1), "classes": (0, 1, 2)}[loss.form]
    corners = itertools.product((-1.0, 1.0), (-1.0, 1.0), targets)
    return [(np.array([[a, b]]), np.array([target])) for a, b, target in corners]


# --- constants --------------------------------------------------------------------------------------------------------


@every_loss
@pytest.mark.parametrize("k", [1, 2, 20])
@pytest.mark.parametrize("kind", ["replace-one", "add-remove"])
def test_the_constants_of_a_risk_hold_for_tables_of_k_rows_for_each_person(loss, k, kind):
    """L is k times the mean loss of the rows: here every person has k equal rows, and every row is the same."""
    risk = risk_of(loss)
    known, rng = risk.constants(facts(k, kind)), np.random.default_rng(0)
    points = [risk.feasible.project(rng.normal(size=known.dimension) * 3) for _ in range(12)]
    centre = np.zeros(known.dimension)
    slope = turn = apart = worst = 0.0
    for (rows, target), w, v in itertools.product(corner_rows(loss), points[:6], points[6:]):
        values = [k * risk_value(loss, rows, target, each) for each in (w, v, centre)]
        steep, other = (k * risk_gradient(loss, rows, target, each) for each in (w, v))
        slope = max(slope, float(np.linalg.norm(steep)))
        turn = max(turn, float(np.linalg.norm(steep - other) / np.linalg.norm(w - v)))
        apart, worst = max(apart, values[0] - values[1]), max(worst, values[2] - values[0])
    assert slope <= known.lipschitz * (1 + 1e-9)
    assert apart <= known.oscillation * (1 + 1e-9)
    assert worst <= risk.centre_excess(facts(k, kind)) * (1 + 1e-9)
    if known.smoothness is not None:
        assert turn <= known.smoothness * (1 + 1e-9)
    assert slope >= known.lipschitz / 4, "and they are not wide"


@every_loss
@pytest.mark.parametrize("regularizer", [None, Ridge("1/5"), Lasso("1/10")])
def test_rows_of_a_person_multiply_the_loss_in_every_constant_and_nothing_else(loss, regularizer):
    risk = risk_of(loss, regularizer)
    one, many = risk.constants(facts()), risk.constants(facts(7))
    ridge = 0.2 if isinstance(regularizer, Ridge) else 0.0
    assert many.rows == 7
    assert many.lipschitz == pytest.approx(7 * one.lipschitz)
    assert many.oscillation == pytest.approx(7 * one.oscillation)
    if one.smoothness is not None:
        assert many.smoothness - ridge == pytest.approx(7 * (one.smoothness - ridge))
    same = ("dimension", "convexity", "span", "diameter", "row_norm", "regularizer_slope")
    assert [getattr(many, name) for name in same] == [getattr(one, name) for name in same]
    over = pass_over(risk, DOMAIN, 1000)
    assert over.excess_error(many) == pytest.approx(7 * over.excess_error(one))


def test_the_rows_of_a_person_multiply_the_constants_of_a_custom_gradient_too():
    loss = Custom(lambda w, row: w, bound=2, dimension=3, label="own", convex=True, smooth=1)
    risk = Risk(loss, Constant(), "number", Ball(1))
    known = risk.constants(facts(4))
    assert (known.lipschitz, known.smoothness) == (8, 4)
    over = pass_over(risk, DOMAIN)
    assert over.excess_error(known) == 4 * over.excess_error(risk.constants(facts()))


@pytest.mark.parametrize("loss", SMOOTH, ids=str)
@pytest.mark.parametrize("kind", [Average, Last, Accelerated])
def test_steps_are_short_enough_for_k_rows_and_under_add_remove_for_four_times_as_many(loss, kind):
    """The theorems need rate * beta < 1, of an accelerated descent 2 rate beta < 1: beta of the rows that there are."""
    risk, twice = risk_of(loss), 2 if kind is Accelerated else 1
    for k in (1, 20):
        beta = risk.constants(facts(k)).smoothness
        for relation, times in (("replace-one", 1), ("add-remove", CAUTION)):
            rate = descent.made_schedule(kind, risk.constants(facts(k, relation)), 30, 1e-12).rate
            assert 0.99 < float(rate) * beta * times * twice < 1
    assert CAUTION >= 3


# --- promises ---------------------------------------------------------------------------------------------------------

SOLVERS = [each for each in solvers.SOLVERS if each not in ("strongly-convex", "exponential", "moments", "objective")]


@pytest.mark.parametrize("solver", SOLVERS)
def test_in_rows_that_count_k_times_a_promise_is_k_times_that_of_one_row(solver):
    """Persons of k equal rows are persons of one row whose loss is k times as large: noise and bound follow."""
    found = []
    for k in (1, 10):
        given = facts(k, size=5000)
        funds = dp.Funds.of(BUDGET)
        found.append(solvers.methods(risk_of(Huber("1/2")), given, funds, steps=60).named(solver).promise(given.size))
    assert found[1].bound == pytest.approx(10 * found[0].bound, rel=0.02)
    assert [each.per for each in found] == ["row", "person"]


def test_an_objective_promises_k_times_as_much_for_k_rows_and_costs_what_their_jacobian_does():
    """A person's k rows turn the minimiser in up to k directions, one row with k times the loss in one: k ln(1 + x / k)
    is paid instead of ln(1 + x). With noise and ridge of one k-th the promise for one row is exactly a k-th."""
    k, funds, risk, single = 10, dp.Funds.of(BUDGET), risk_of(Huber("1/2")), facts(1, size=5000)
    one, many = (solvers.methods(risk, facts(n, size=5000), funds).named("objective").offer(5000) for n in (1, k))
    made = many.mechanism
    less = replace(made, ridge=made.ridge / k, noise=type(made.noise)(made.noise.scale / k), grid=made.grid / k)
    assert objective_perturbation.promise(less, single).bound == pytest.approx(many.promise.bound / k)
    x = 2 * 2**2 / float(5000 * less.ridge)  # the curvature of Huber("1/2") times the squared norm 2 of a row
    dearer = float(made.guarantee(facts(k, size=5000)).pure - less.guarantee(single).pure)
    assert dearer == pytest.approx(k * math.log1p(x / k) - math.log1p(x), rel=1e-4)
    assert 1 <= many.promise.bound / (k * one.promise.bound) < 1.05  # ridges are tried in steps of a third and a half
    assert [one.promise.per, many.promise.per] == ["row", "person"]


def test_the_exponential_mechanism_promises_k_times_as_much_for_k_rows():
    for features, feasible in ((FEATURES, Ball(1)), (Constant(), interval(-1, 1))):
        risk, found = Risk(Squared(), features, "number", feasible), []
        for k in (1, 10):
            given = facts(k, size=5000)
            drawn = bounds.propose(risk, facts=given, funds=dp.Funds.of(dp.Budget(5)))
            found.append(bounds.promise(drawn, given))
        assert found[1].bound == pytest.approx(10 * found[0].bound, rel=0.1)


def test_ranks_are_compared_with_what_k_rows_can_miss_by():
    """What is certain without looking is k times as much too: nothing is refused that says something."""
    given, column = facts(20, size=50), DOMAIN["number"]
    drawn = bounds.RankQuantile("number", "1/2", "1/10")
    found = bounds.promise(drawn, given)
    assert found.bound == pytest.approx((math.log(column.size) + 1) * 10 / 50 * 2)
    assert 1 < found.bound < 20


@pytest.mark.parametrize("kind", ["logistic", "linear"])
@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_a_plan_promises_what_the_fit_promises(kind, rows, relation):
    ids = np.repeat(np.arange(400), rows)
    rng = np.random.default_rng(1)
    columns = {"a": rng.uniform(-1, 1, len(ids)), "number": rng.uniform(-1, 1, len(ids)), "two": ids % 2}
    target = "two" if kind == "logistic" else "number"
    domain = DOMAIN.project(["a", target])
    size = {} if relation == "replace-one" else {"size": 400}
    given = {"neighbours": relation, "unit": "id", "rows_per_unit": rows, **size}
    table = dp.Table({"id": ids, **columns}, domain, **given)
    ledger = dp.Ledger.in_memory(dp.Budget(100, 1e-6), table)
    planned = dp.plan(kind, ledger=ledger, share="1/2", size=400, domain=domain, target=target)
    model = dp.LogisticRegression if kind == "logistic" else dp.LinearRegression
    fitted = model(epsilon=dp.Share("1/2"), ledger=ledger).fit(table, target)
    assert (planned.taken.method, planned.taken.error) == (fitted.method_, fitted.promise_.bound)
    assert planned.taken.assuming == fitted.promise_.condition
    assert f"errors are per {fitted.promise_.per}" in planned.units


def test_a_promise_says_its_unit_and_its_condition():
    found = Promise(0.0218, "Last of 3 steps")
    assert str(found.about(facts())) == "excess risk <= 0.0218 per row in expectation (Last of 3 steps)"
    assert str(found.about(facts(5))) == "excess risk <= 0.0218 per person in expectation (Last of 3 steps)"
    assert str(found.about(facts(5, "add-remove", 20_000))) == (
        "excess risk <= 0.0218 per declared person in expectation, if there are at most 100,000 rows (Last of 3 steps)"
    )
    unconditional = found.about(facts(1, "add-remove"), any_number=True)
    assert str(unconditional) == "excess risk <= 0.0218 per declared person in expectation (Last of 3 steps)"
    assert found.about(facts(5)).times(2) == Promise(0.0436, "Last of 3 steps", per="person")
    assert Promise(None, "none", "because").times(2) == Promise(None, "none", "because")


@pytest.mark.parametrize("solver", ["descent", "output", "exponential"])
def test_every_solver_says_the_condition_of_its_promise(solver):
    risk = Risk(Squared(), Declared(("a",), norm=1, intercept=False), "number", Box(-1, 1))
    for rows, kind, says in (
        (1, "add-remove", "if there are at most 5,000 rows"),
        (3, "add-remove", "if there are at most 15,000 rows"),
        (3, "replace-one", ""),
    ):
        given = facts(rows, kind, 5000)
        made = solvers.methods(risk, given, dp.Funds.of(BUDGET)).named(solver).offer(given.size)
        assert made.promise.bound is not None
        assert made.promise.condition == says


def test_a_plan_names_what_its_promises_suppose():
    planned = dp.plan("linear", budget=BUDGET, size=5000, neighbours="add-remove", d=2)
    assert "if there are at most 5,000 rows" in str(planned)
    assert "if there are" not in str(dp.plan("linear", budget=BUDGET, size=5000, d=2))


def test_a_pure_budget_is_told_from_other_refusals_by_the_kind_of_error():
    planned = dp.plan("linear", budget=dp.Budget(1), size=5000, d=2)
    told = {row.method: row.refusal for row in planned.refused}
    assert "no pure guarantee" in told["gaussian"]
    assert all("no amount of noise" not in each for each in told.values())


# --- what follows from the constants ----------------------------------------------------------------------------------


def test_the_rate_of_a_network_falls_with_the_rows_of_a_person():
    """The mean gradient is a sum over up to k n rows divided by n."""
    domain, found = dp.Domain(x=dp.Vector(4, norm=1), y=dp.Category(0, 1)), []
    for rows in (1, 10):
        given = facts(rows, domain=domain, size=10**6)
        funds = dp.Funds.of(dp.Budget(50, 1e-6))
        found.append(network.propose(VectorColumn("x"), "y", (4,), facts=given, funds=funds).rate)
    assert found == [1, dp.exact.number(rate="1/10")]


def test_too_small_a_size_does_not_make_a_descent_unstable():
    """50,000 rows where 20,000 were declared: 11 against a promise of 0.02 while rates were made for 20,000."""
    rows, targets = np.ones((50_000, 1)), np.zeros(50_000)
    for solver, size in itertools.product(("last", "average", "accelerated"), (20_000, 15_000)):
        given = {"neighbours": "add-remove", "size": size, "epsilon": 4, "delta": 1e-6, "method": solver}
        model = dp.LinearRegression(row_norm=1, target_bound=1, huber=None, max_iter=200, **given).fit(rows, targets)
        assert float(model.predict([[1.0]])[0]) ** 2 <= model.promise_.bound


def test_a_choice_among_models_promises_nothing_where_the_number_of_rows_is_private():
    rows, labels = np.ones((20, 2)), np.arange(20) % 2
    models = [dp.LogisticRegression(epsilon=1, row_norm=2, classes=(0, 1), max_iter=2).fit(rows, labels) for _ in "ab"]
    assert dp.select_model(models, rows, labels, epsilon=1).shortfall == pytest.approx(math.log(2) / 10, rel=0.01)
    assert dp.select_model(models, rows, labels, epsilon=1, neighbours="add-remove", size=20).shortfall is None


def test_output_perturbation_counts_the_rows_when_it_says_that_no_solver_would_end():
    slow = [
        output_perturbation._Known(risk_of(Huber("1/2")), dp.exact.number(ridge="1/1000"), facts(k)).slowest()
        for k in (1, 20)
    ]
    assert slow[1] - 1 == pytest.approx(20 * (slow[0] - 1))
