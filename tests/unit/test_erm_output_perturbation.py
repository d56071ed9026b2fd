"""Output perturbation: the minimiser is stable, the solver keeps its tolerance, the promise is kept."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import discreet as dp
from discreet import exact
from discreet.catalogue import CATALOGUE
from discreet.erm import output_perturbation
from discreet.erm.feasible_sets import Ball, BallBox, Box, interval
from discreet.erm.features import Constant, Declared, VectorColumn
from discreet.erm.losses import Absolute, Custom, Hinge, Huber, Logistic, Pinball, Softmax, Squared
from discreet.erm.nonprivate import minimiser, risk_gradient, risk_value
from discreet.erm.output_perturbation import OutputPerturbation, promise, propose
from discreet.erm.risk import Lasso, Ridge, Risk
from discreet.errors import ParameterError
from discreet.funds import Caps, Funds
from discreet.mechanisms import GaussianNoise, LaplaceNoise, ProductLaplaceNoise, SphericalNoise
from discreet.records import canonical, record, revive
from discreet.rng import SeededRng

LOSSES = [Squared(), Huber("0.3"), Logistic(), Logistic("0.4"), Softmax(3)]
FEATURES = VectorColumn("x", intercept=True)
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=str)
every_relation = pytest.mark.parametrize("relation", ["replace-one", "add-remove"])


def target_of(loss):
    return {"difference": dp.Number(-1, 1, step="0.001"), "margin": dp.Category(0, 1), "classes": dp.Category(0, 1, 2)}[
        loss.form
    ]


def labels_of(loss, x, rng):
    if loss.form == "classes":
        return rng.integers(0, 3, len(x))
    seen = x @ np.linspace(1, -1, x.shape[1]) + 0.3 * rng.normal(size=len(x))
    return np.clip(seen, -1, 1) if loss.form == "difference" else (seen > 0).astype(int)


def arrays(loss, rows, width=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, width))
    x /= np.maximum(1, np.linalg.norm(x, axis=1))[:, None]
    return x, labels_of(loss, x, rng)


def matrix(loss, x, y, *, relation="replace-one", size=None):
    declared = len(x) if relation == "add-remove" and size is None else size
    vector = dp.Vector(x.shape[1], norm=1)
    return dp.Matrix(x, y, features=vector, target=target_of(loss), neighbours=relation, size=declared)


def plain(risk, data):
    """The rows as a linear model sees them, and the targets, as floats."""
    seen = []

    def look(batch):
        rows = np.empty((batch.rows, risk.features.dimension(batch.domain)))
        risk.features.fill(batch, slice(0, batch.rows), rows)
        column, codes = batch.domain[risk.target], batch[risk.target]
        targets = codes if isinstance(column, dp.Category) else codes * float(column.step) + float(column.low)
        seen.append((rows * float(risk.features.unit(batch.domain)), targets))
        return np.zeros(1, dtype=np.int64)

    data.exact_sum(look)
    return np.concatenate([rows for rows, _ in seen]), np.concatenate([targets for _, targets in seen])


def exact_minimiser(risk, ridge, data):
    """For sets around the origin: the minimiser of (1/size) sum + all the ridge, by the reference solver."""
    x, y = plain(risk, data)
    share = len(x) / data.facts.size  # the mean over the rows there are, and a regularizer that makes up for it
    strength = ridge + (risk.regularizer.strength if isinstance(risk.regularizer, Ridge) else 0)
    assert not isinstance(risk.regularizer, Lasso)
    if share == 0:
        return np.zeros(risk.dimension(data.facts.domain))
    return minimiser(risk.loss, x, y, risk.feasible, Ridge(strength / Fraction(share))).w


def made(risk, facts, *, ridge="1/10", noise=None):
    """A mechanism with a generous tolerance and a fine step."""
    known = output_perturbation._Known(risk, Fraction(ridge), facts)
    return OutputPerturbation(risk, ridge, known.moves() / 100, known.moves() / 1000, noise or GaussianNoise(1))


# --- the minimiser moves as little as it says -------------------------------------------------------------------------


@every_relation
@every_loss
def test_no_neighbours_move_the_minimiser_farther_than_the_theorem_says(loss, relation):
    x, y = arrays(loss, 8)
    for feasible, ridge in ((Ball(2), "1/10"), (Box("-0.5", "0.5"), "1/2"), (Ball("0.2"), "1/100")):
        risk = Risk(loss, FEATURES, "y", feasible)
        one = matrix(loss, x, y, relation=relation)
        allowed = float(output_perturbation._Known(risk, Fraction(ridge), one.facts).moves())
        first = exact_minimiser(risk, Fraction(ridge), one)
        for seed in range(4):
            if relation == "replace-one":
                other_x, other_y = arrays(loss, 1, seed=seed + 7)
                other = matrix(loss, np.vstack([other_x, x[1:]]), np.concatenate([other_y, y[1:]]))
            else:
                keep = [i for i in range(8) if i != seed]
                other = matrix(loss, x[keep], y[keep], relation=relation, size=8)
            second = exact_minimiser(risk, Fraction(ridge), other)
            assert np.linalg.norm(first - second) <= allowed * (1 + 1e-9)


@every_relation
@pytest.mark.parametrize("rows", [1, 2])
def test_the_theorem_is_attained_where_losses_are_lines(relation, rows):
    """Far from its bend a Huber loss pulls with its whole weight whatever w is."""
    domain = dp.Domain(value=dp.Number(-1, 1, step=2))
    risk = Risk(Huber("1/8"), Constant(), "value", interval("-1/2", "1/2"))

    def solved(*persons):
        columns = {"value": np.repeat(persons, rows), "id": np.repeat(np.arange(len(persons)), rows)}
        table = dp.Table(columns, domain, neighbours=relation, unit="id", rows_per_unit=rows, size=3)
        known = output_perturbation._Known(risk, Fraction(2), table.facts)
        return output_perturbation._solved(known, table, 1e-9)[0], float(known.moves())

    first, moves = solved(1, -1, -1) if relation == "replace-one" else solved(1, -1)
    second, _ = solved(1, -1, 1)
    assert moves == pytest.approx({"replace-one": rows / 12, "add-remove": rows / 24}[relation])
    assert abs(first - second) == pytest.approx(moves, rel=1e-6)


@every_relation
def test_the_sensitivity_of_the_integers_is_the_theorem_s(relation):
    loss = Logistic("1/2")
    x, y = arrays(loss, 10)
    risk = Risk(loss, VectorColumn("x", intercept=False), "y", Ball(2))
    facts = matrix(loss, x, y, relation=relation).facts
    mechanism = OutputPerturbation(risk, "1/10", "1/100", "1/1000", GaussianNoise(1))
    moves = (1 if relation == "replace-one" else 0.5) / (0.1 * 10)  # 2 G / (lambda n), G = 1/2
    expected = (moves + 0.02) * 1000 + math.sqrt(3)
    found = mechanism.sensitivity(facts)
    assert math.sqrt(found.l2_squared) == pytest.approx(expected, rel=1e-6)
    assert found.l1 == math.isqrt(3 * found.l2_squared)
    assert found.linf == math.isqrt(found.l2_squared)


def test_every_number_of_the_sensitivity_is_rounded_up():
    for value in (Fraction(2), Fraction(3, 7), Fraction(10**30, 7), Fraction(7, 10**30), Fraction(4)):
        root = exact.root_up(value)
        assert value <= root**2 <= value * (1 + Fraction(1, 2**38))
        short = output_perturbation.short_up(value)
        assert value <= short <= value * (1 + Fraction(1, 2**18))
        assert short.numerator.bit_length() <= 21 or short.denominator == 1


def test_a_person_of_several_rows_moves_it_so_many_times_as_far():
    domain = dp.Domain(value=dp.Number(-1, 1, step=2))
    risk = Risk(Squared(), Constant(), "value", interval(-1, 1))
    mechanism = OutputPerturbation(risk, 1, "1/100", "1/1000", GaussianNoise(1))
    for kind in ("add-remove", "replace-one"):
        one, three = (
            mechanism.sensitivity(dp.data.Facts(domain, dp.Neighbours(kind, rows), 10)).linf - 21 for rows in (1, 3)
        )
        assert three == pytest.approx(3 * one, abs=3)


def test_a_ridge_of_the_risk_s_own_counts():
    x, y = arrays(Logistic(), 10)
    facts = matrix(Logistic(), x, y).facts
    without = Risk(Logistic(), FEATURES, "y", Ball(2))
    owning = Risk(Logistic(), FEATURES, "y", Ball(2), Ridge("1/20"))
    assert (
        output_perturbation._Known(without, Fraction(1, 10), facts).moves()
        == output_perturbation._Known(owning, Fraction(1, 20), facts).moves()
    )
    assert (
        output_perturbation._Known(owning, Fraction(0), facts).moves()
        == 2 * output_perturbation._Known(owning, Fraction(1, 20), facts).moves()
    )


# --- the solver keeps its tolerance -----------------------------------------------------------------------------------


@pytest.mark.parametrize("fast", [0, 2, 200], ids=["descent alone", "descent goes on", "fast"])
@every_relation
@every_loss
def test_every_solution_is_within_the_tolerance(loss, relation, fast, monkeypatch):
    monkeypatch.setattr(output_perturbation, "_FAST", fast)
    x, y = arrays(loss, 30)
    data = matrix(loss, x, y, relation=relation, size=25 if relation == "add-remove" else None)
    for feasible, regularizer in ((Ball(3), None), (Ball("0.2"), Ridge("1/10")), (Box("-0.2", "0.2"), None)):
        risk = Risk(loss, FEATURES, "y", feasible, regularizer)
        known = output_perturbation._Known(risk, Fraction(1, 10), data.facts)
        exactly = exact_minimiser(risk, Fraction(1, 10), data)
        for tolerance in (1e-2, float(known.least_tolerance()) * 1.01 + 1e-11):
            found = output_perturbation._solved(known, data, tolerance)
            assert np.linalg.norm(found - exactly) <= tolerance
            assert feasible.contains(found, 1e-12)


@pytest.mark.parametrize("fast", [0, 200])
def test_lasso_is_solved_to_the_tolerance_too(fast, monkeypatch):
    """Lasso and ridge in one dimension less is the same problem: the reference has no name for both at once."""
    monkeypatch.setattr(output_perturbation, "_FAST", fast)
    x, y = arrays(Squared(), 40)
    data = matrix(Squared(), x, y)
    risk = Risk(Squared(), VectorColumn("x", intercept=False), "y", Ball(5), Lasso("1/20"))
    rows, targets = plain(risk, data)
    # |Xw - y|^2 / n + (1/20)|w|^2 is a squared loss on more rows: sqrt(n/20) on the diagonal, targets 0.
    more = np.vstack([rows, math.sqrt(40 / 20) * np.eye(3)]) * math.sqrt(43 / 40)
    zeros = np.concatenate([targets, np.zeros(3)]) * math.sqrt(43 / 40)
    exactly = minimiser(Squared(), more, zeros, Ball(5), Lasso("1/20")).w
    found = output_perturbation._solved(output_perturbation._Known(risk, Fraction(1, 10), data.facts), data, 1e-8)
    assert np.linalg.norm(found - exactly) <= 1e-8
    assert 0 in found  # it is sparse


def test_a_box_away_from_the_origin_is_regularized_towards_its_centre():
    x, y = arrays(Squared(), 40)
    data = matrix(Squared(), x, y)
    risk = Risk(Squared(), VectorColumn("x", intercept=False), "y", Box("0.1", "0.5"))
    found = output_perturbation._solved(output_perturbation._Known(risk, Fraction(1), data.facts), data, 1e-9)
    rows, targets = plain(risk, data)
    shifted = minimiser(Squared(), rows, targets - rows @ np.full(3, 0.3), Box("-0.2", "0.2"), Ridge(1)).w + 0.3
    assert found == pytest.approx(shifted, abs=2e-9)


@every_loss
def test_the_fine_gradient_is_as_near_as_the_proof_says(loss):
    x, y = arrays(loss, 50)
    data = matrix(loss, x, y)
    for feasible in (Ball(2), Ball(50)):
        risk = Risk(loss, FEATURES, "y", feasible, Ridge("1/7"))
        known = output_perturbation._Known(risk, Fraction(1, 3), data.facts)
        fine = output_perturbation._FineRows(known, data)
        rows, targets = (each.astype(np.longdouble) for each in plain(risk, data))
        for w in np.random.default_rng(1).normal(size=(5, known.dimension)) * float(feasible.radius) / 2:
            exactly = long_gradient(loss, rows, targets, w) + (1 / 3 + 1 / 7) * w
            error = float(np.linalg.norm((fine.gradient(w) - exactly).astype(float)))
            assert error <= float(known.row_doubt()) + 2.0**-52 * np.linalg.norm(w)


def long_gradient(loss, rows, targets, w):
    """The mean gradient in extended precision."""
    if isinstance(loss, Softmax):
        margins = rows @ w.astype(np.longdouble).reshape(3, -1).T
        grown = np.exp(margins - margins.max(axis=1, keepdims=True))
        missed = grown / grown.sum(axis=1, keepdims=True)
        missed[np.arange(len(rows)), targets.astype(int)] -= 1
        return (missed.T @ rows).ravel() / len(rows)
    margins = rows @ w.astype(np.longdouble)
    if loss.form == "margin":
        sign = 2 * targets - 1
        slopes = -sign * np.minimum(1 / (1 + np.exp(sign * margins)), np.longdouble(float(loss.cap)))
    else:
        bend = np.longdouble(float(loss.threshold)) if isinstance(loss, Huber) else np.inf
        exact_targets = np.round(targets * 1000) / 1000
        slopes = 2 * np.clip(margins - exact_targets, -bend, bend)
    return rows.T @ slopes / len(rows)


def test_the_fine_gradient_does_not_depend_on_how_the_rows_are_cut(monkeypatch, tmp_path):
    from discreet.data import matrix as matrices

    loss = Logistic("1/2")
    x, y = arrays(loss, 101)
    data = matrix(loss, x, y)
    known = output_perturbation._Known(Risk(loss, FEATURES, "y", Ball(2)), Fraction(1, 10), data.facts)
    w = np.array([0.3, -1.0, 0.2, 0.9])
    whole = output_perturbation._FineRows(known, data).gradient(w)
    for rows, block in ((1, 2**20), (7, 3), (2**14, 11)):
        monkeypatch.setattr(output_perturbation, "ROWS", rows)
        monkeypatch.setattr(matrices, "_BLOCK", block)
        assert (output_perturbation._FineRows(known, data).gradient(w) == whole).all()


# --- releases ---------------------------------------------------------------------------------------------------------


class Silent(SeededRng):
    """No noise at all."""

    def __init__(self):
        super().__init__(0)

    def gaussian(self, variance, size=None):
        return np.zeros(size, dtype=np.int64)

    laplace = gaussian


def test_without_noise_the_release_is_the_ridge_solution():
    x, y = arrays(Logistic(), 200)
    data = matrix(Logistic(), x, y)
    risk = Risk(Logistic(), VectorColumn("x", intercept=False), "y", Ball(50))
    mechanism = OutputPerturbation(risk, "1/100", "1e-7", "1e-8", GaussianNoise(1))
    classical = LogisticRegression(C=1 / (200 * 0.01), fit_intercept=False, tol=1e-12, max_iter=10_000).fit(x, y)
    assert mechanism.run(data, Silent()) == pytest.approx(classical.coef_[0], abs=1e-3)  # features are on a grid

    x, y = arrays(Squared(), 200)
    data = matrix(Squared(), x, y)
    risk = Risk(Squared(), VectorColumn("x", intercept=False), "y", Ball(50))
    mechanism = OutputPerturbation(risk, "1/100", "1e-7", "1e-8", ProductLaplaceNoise(1))
    rows, targets = plain(risk, data)
    expected = np.linalg.solve(2 * rows.T @ rows / 200 + 0.01 * np.eye(3), 2 * rows.T @ targets / 200)
    assert mechanism.run(data, Silent()) == pytest.approx(expected, abs=1e-6)


def test_a_release_lies_in_the_set_and_a_twin_that_projects_before_the_noise_only_is_caught():
    x, y = arrays(Logistic(), 30)
    data = matrix(Logistic(), x, y)
    for feasible in (Ball(1), Box("-0.3", "0.4")):
        risk = Risk(Logistic(), FEATURES, "y", feasible)
        mechanism = made(risk, data.facts, noise=ProductLaplaceNoise(2))
        rng = SeededRng(1)
        released = [mechanism.run(data, rng) for _ in range(20)]
        assert all(feasible.contains(w, 1e-12) for w in released)
        known, rng = output_perturbation._Known(risk, mechanism.ridge, data.facts), SeededRng(1)
        solution = output_perturbation._solved(known, data, float(mechanism.tolerance))
        twins = [solution + mechanism.noise.draw((4,), unit=mechanism.step, rng=rng) * float(mechanism.step)]
        assert not any(feasible.contains(w, 1e-12) for w in twins)


def test_what_is_drawn_is_what_is_charged():
    x, y = arrays(Logistic(), 30)
    data = matrix(Logistic(), x, y)
    drawn = []

    class Recording(SeededRng):
        def gaussian(self, variance, size=None):
            drawn.append((variance, size))
            return super().gaussian(variance, size)

    mechanism = made(Risk(Logistic(), FEATURES, "y", Ball(1)), data.facts, noise=GaussianNoise(3))
    mechanism.run(data, Recording(1))
    ((variance, size),) = drawn
    assert size == (4,)
    assert variance == (3 / mechanism.step) ** 2
    rho = mechanism.sensitivity(data.facts).l2_squared / (2 * variance)
    assert mechanism.guarantee(data.facts).renyi[3] == pytest.approx(2 * float(rho))


def test_a_release_goes_through_the_ledger(tmp_path):
    x, y = arrays(Logistic("1/2"), 200)
    data = matrix(Logistic(), x, y)
    ledger = dp.Ledger.create(tmp_path / "people.ledger", dp.Budget(2, 1e-6), data)
    risk = Risk(Logistic("1/2"), FEATURES, "y", Ball(2), Ridge("1/10"))
    mechanism = propose(risk, facts=data.facts, funds=ledger.funds())
    got = dp.release(mechanism, data, ledger=ledger, request="one")
    assert got.value.shape == (4,)
    assert got.value.dtype == np.float64
    assert (dp.release(mechanism, data, ledger=ledger, request="one").value == got.value).all()
    assert not ledger.admits(mechanism)  # all of the budget is spent


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_few_rows_one_class_and_constant_columns_are_ordinary_results(rows):
    for loss in LOSSES:
        x, y = np.zeros((rows, 2)), np.zeros(rows, dtype=int)
        data = matrix(loss, x, y, relation="add-remove", size=5)
        mechanism = made(Risk(loss, FEATURES, "y", Ball(1)), data.facts)
        assert np.isfinite(mechanism.run(data, SeededRng(1))).all()


def test_declared_columns_of_a_table_and_of_a_file_give_the_same_release(tmp_path):
    import pyarrow
    import pyarrow.parquet

    rng = np.random.default_rng(3)
    columns = {
        "age": rng.integers(0, 90, 300),
        "sex": rng.choice(["F", "M"], 300),
        "ill": rng.choice(["no", "yes"], 300),
    }
    domain = dp.Domain(age=dp.Number(0, 90, step=1), sex=dp.Category("F", "M"), ill=dp.Category("no", "yes"))
    path = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    risk = Risk(Logistic("1/2"), Declared(("age", "sex"), norm="1.5"), "ill", Ball(3))
    mechanism = made(risk, dp.Table(columns, domain).facts)
    released = [
        mechanism.run(data, SeededRng(5))
        for data in (dp.Table(columns, domain), dp.ParquetTable(path, domain, batch_rows=70))
    ]
    assert (released[0] == released[1]).all()


# --- what is promised -------------------------------------------------------------------------------------------------


def excesses(mechanism, data, runs, seed=0):
    x, y = plain(mechanism.risk, data)
    risk = mechanism.risk
    least = minimiser(risk.loss, x, y, risk.feasible, risk.regularizer).value
    rng = SeededRng(seed)
    return np.array(
        [risk_value(risk.loss, x, y, mechanism.run(data, rng), risk.regularizer) - least for _ in range(runs)]
    )


@pytest.mark.parametrize("budget", [dp.Budget(1), dp.Budget(1, "1e-6")], ids=str)
@pytest.mark.parametrize(
    "risk",
    [
        Risk(Logistic("1/2"), FEATURES, "y", Ball(4)),
        Risk(Logistic("1/2"), FEATURES, "y", Ball(4), Ridge("1/20")),
        Risk(Logistic("1/2"), FEATURES, "y", Box(-1, 1), Lasso("1/100")),
        Risk(Huber("1/4"), FEATURES, "y", Box("-0.3", "0.3"), Ridge("1/10")),
        Risk(Huber("1/4"), FEATURES, "y", Ball("0.3"), Ridge("1/10")),
        Risk(Softmax(3), FEATURES, "y", Ball(1)),
    ],
    ids=lambda risk: f"{type(risk.loss).__name__} {type(risk.feasible).__name__} {risk.regularizer}",
)
def test_the_mean_excess_risk_is_below_the_promise(risk, budget):
    x, y = arrays(risk.loss, 3000, seed=4)
    data = matrix(risk.loss, x, y)
    mechanism = propose(risk, facts=data.facts, funds=Funds.of(budget))
    assert excesses(mechanism, data, 12).mean() <= output_perturbation._excess(mechanism, data.facts)


def test_the_promise_is_within_a_factor_of_four_of_the_worst_case():
    """Lines that press the solution to the wall of a ball: noise costs half of its deviation, in any dimension."""
    domain_rows = np.tile([[1.0, 0, 0, 0, 0, 0]], (400, 1))
    data = matrix(Huber(1), domain_rows, np.ones(400))
    risk = Risk(Huber("1/100"), VectorColumn("x", intercept=False), "y", Ball("1/2"), Ridge("1/1000"))
    known = output_perturbation._Known(risk, Fraction(0), data.facts)
    mechanism = OutputPerturbation(risk, 0, known.moves() / 1000, known.moves() / 2000, GaussianNoise("0.001"))
    promised = output_perturbation._excess(mechanism, data.facts)
    measured = excesses(mechanism, data, 300).mean()
    assert promised / 4 <= measured <= promised


def test_an_excess_that_the_centre_already_has_is_not_promised():
    x, y = arrays(Logistic(), 20)
    data = matrix(Logistic(), x, y)
    risk = Risk(Logistic(), FEATURES, "y", Ball(10))
    budget = dp.Funds.of(dp.Budget("0.01"))
    found = promise(propose(risk, facts=data.facts, funds=budget), data.facts)
    assert found.bound is None
    assert "no better than the centre" in str(found)
    assert float(found) == math.inf


def test_a_promise_says_what_it_rests_on():
    x, y = arrays(Logistic(), 3000)
    data = matrix(Logistic(), x, y)
    risk = Risk(Logistic(), FEATURES, "y", Ball(2), Ridge("1/10"))
    found = promise(propose(risk, facts=data.facts, funds=Funds.of(dp.Budget(1))), data.facts)
    assert found.bound is not None
    assert str(found).startswith("excess risk <= ")
    assert "output perturbation, SphericalNoise" in str(found)


# --- proposals --------------------------------------------------------------------------------------------------------


@every_relation
@pytest.mark.parametrize("budget", [dp.Budget(1), dp.Budget(1, "1e-6")], ids=str)
def test_a_proposal_is_within_the_budget_and_uses_it(budget, relation):
    x, y = arrays(Logistic(), 500, width=40)  # so many coordinates that a delta buys something
    data = matrix(Logistic(), x, y, relation=relation)
    risk = Risk(Logistic("1/2"), FEATURES, "y", Ball(3))
    mechanism = propose(risk, facts=data.facts, funds=Funds.of(budget))
    spent = mechanism.guarantee(data.facts).epsilon(budget.delta)
    assert 0.999 <= spent <= 1
    known = output_perturbation._Known(risk, mechanism.ridge, data.facts)
    exactly = (float(known.moves()) / float(mechanism.step)) ** 2
    assert mechanism.sensitivity(data.facts).l2_squared <= 1.2 * exactly  # tolerance and rounding cost little
    assert isinstance(mechanism.noise, SphericalNoise if budget.delta == 0 else GaussianNoise)


def test_the_proposed_ridge_is_about_the_best():
    x, y = arrays(Logistic(), 1000)
    facts = matrix(Logistic(), x, y).facts
    risk = Risk(Logistic("1/2"), FEATURES, "y", Ball(3))
    funds = dp.Funds.of(dp.Budget(1))
    best = propose(risk, facts=facts, funds=funds)
    for factor in (Fraction(1, 3), Fraction(2, 3), Fraction(3, 2), Fraction(3)):
        other = dp.calibrate(
            lambda scale, factor=factor: output_perturbation._with_noise(
                risk, ProductLaplaceNoise, facts, best.ridge * factor, scale
            ),
            funds=funds,
            facts=facts,
        )
        assert output_perturbation._excess(best, facts) <= output_perturbation._excess(other, facts) * 1.02


def test_a_risk_with_enough_ridge_gets_no_more():
    x, y = arrays(Logistic(), 3000)
    facts = matrix(Logistic(), x, y).facts
    risk = Risk(Logistic("1/2"), FEATURES, "y", Ball(3), Ridge("1/10"))
    assert propose(risk, facts=facts, funds=Funds.of(dp.Budget(1))).ridge == 0


def test_neighbours_have_equal_proposals():
    loss = Logistic("1/2")
    x, y = arrays(loss, 100)
    other = np.vstack([x[1:], -x[:1]])
    risk = Risk(loss, FEATURES, "y", Ball(3))
    one, two = (
        propose(risk, facts=data.facts, funds=Funds.of(dp.Budget(1, "1e-6")))
        for data in (matrix(loss, x, y), matrix(loss, other, np.roll(y, 1)))
    )
    assert one == two


def test_records_round_trip():
    names = {kind.NAME: kind for kind in (OutputPerturbation, Risk, Logistic, VectorColumn, Ball, Ridge, GaussianNoise)}
    mechanism = OutputPerturbation(
        Risk(Logistic("1/3"), FEATURES, "y", Ball("2.5"), Ridge("0.01")), "1/7", "1e-9", 0.25, GaussianNoise("1/3")
    )
    text = canonical(record(mechanism))
    assert revive(json.loads(text), {**CATALOGUE, **names}) == mechanism
    assert mechanism.step == Fraction(1, 4)
    assert hash(mechanism) == hash(revive(json.loads(text), {**CATALOGUE, **names}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": Absolute()}, "Absolute has corners"),
        ({"loss": Hinge()}, "Hinge has corners"),
        ({"loss": Pinball("1/2")}, "Pinball has corners"),
        ({"loss": Custom(lambda w, row: w, bound=1, dimension=2, label="mine")}, "no custom gradient"),
        ({"feasible": BallBox(1, -1, 1)}, "a Ball or a Box"),
        ({"ridge": 0}, "ridge must be > 0 unless"),
        ({"ridge": "1e-200"}, "beyond what this solver computes with"),
        ({"tolerance": "1e-30"}, "tolerance must be at least"),
        ({"step": "1e-30"}, "step must be at least"),
        ({"size": None}, "public size"),
        ({"vector": dp.Vector(2, norm=1, step="0.00001")}, "too fine"),
        ({"vector": dp.Vector(5000, norm=1)}, "up to 4096 coordinates"),
        ({"ridge": -1}, "ridge must be >= 0"),
        ({"tolerance": 0}, "tolerance must be > 0"),
        ({"step": 0}, "step must be > 0"),
        ({"noise": 3}, "noise must be"),
        ({"risk": "logistic"}, "risk must be a Risk"),
    ],
    ids=lambda given: given if isinstance(given, str) else ", ".join(given),
)
def test_what_cannot_be_priced_is_refused_with_a_sentence(change, message):
    loss = change.get("loss", Logistic())
    target = dp.Number(-1, 1, step=1) if loss.form == "difference" else dp.Category(0, 1)
    domain = dp.Domain(x=change.get("vector", dp.Vector(2, norm=1)), y=target)
    size = change.get("size", 10)
    facts = dp.data.Facts(domain, dp.Neighbours("replace-one" if size else "add-remove"), size)
    risk = change.get("risk", Risk(loss, FEATURES, "y", change.get("feasible", Ball(1))))
    with pytest.raises(ParameterError, match=message):
        OutputPerturbation(
            risk,
            change.get("ridge", "1/10"),
            change.get("tolerance", "1/100"),
            change.get("step", "1/1000"),
            change.get("noise", LaplaceNoise(1)),
        ).guarantee(facts)


def test_a_proposal_that_does_not_apply_says_why():
    x, y = arrays(Logistic(), 10)
    facts = matrix(Logistic(), x, y).facts
    with pytest.raises(ParameterError, match="Hinge has corners"):
        propose(Risk(Hinge(), FEATURES, "y", Ball(1)), facts=facts, funds=Funds.of(dp.Budget(1)))
    with pytest.raises(ParameterError, match="no amount of noise fits"):
        propose(Risk(Logistic(), FEATURES, "y", Ball(1)), facts=facts, funds=Funds(None, Caps(None, 0, 0)))


def test_the_gradient_of_the_reference_is_the_fine_one():
    """The two solvers mean the same problem."""
    x, y = arrays(Softmax(3), 40)
    data = matrix(Softmax(3), x, y)
    risk = Risk(Softmax(3), FEATURES, "y", Ball(2))
    fine = output_perturbation._FineRows(output_perturbation._Known(risk, Fraction(1, 5), data.facts), data)
    rows, targets = plain(risk, data)
    w = np.linspace(-1, 1, 12)
    assert fine.gradient(w) == pytest.approx(risk_gradient(risk.loss, rows, targets, w, Ridge("1/5")), abs=1e-12)
