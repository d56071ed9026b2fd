"""Objective perturbation: the solver keeps its tolerance, prices follow the fields, bad input is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.core import Budget, Funds
from discreet.erm import objective_perturbation as op
from discreet.erm.feasible_sets import Ball
from discreet.erm.features import Declared, VectorColumn
from discreet.erm.losses import Absolute, CentredHuber, Huber, Logistic, Softmax, Squared
from discreet.erm.nonprivate import minimiser
from discreet.erm.objective_perturbation import ObjectivePerturbation, promise, propose
from discreet.erm.risk import Lasso, Ridge, Risk
from discreet.errors import ParameterError
from discreet.mechanisms import GaussianNoise, ProductLaplaceNoise, SphericalNoise
from discreet.rng import SeededRng

FEW = Ball(20)


def rows(n=400, d=3, classes=2, relation="replace-one", seed=0, **more):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) / 2
    y = (x @ rng.normal(size=(d, classes))).argmax(axis=1)
    target = dp.Category(*range(classes))
    return dp.Matrix(x, y, features=dp.Vector(d, norm=1), target=target, neighbours=relation, **more)


def proposed(data, loss=None, epsilon=1, delta=0, regularizer=None):
    risk = Risk(loss or Logistic("1/2"), VectorColumn("x"), "y", FEW, regularizer)
    return propose(risk, facts=data.facts, funds=Funds.of(Budget(epsilon, delta)))


class Still(SeededRng):
    """Noise that is always 0, or always this."""

    def __init__(self, value=0):
        self.value = value

    def laplace(self, scale, size=None):
        return np.full(size, self.value)

    def spherical(self, scale, dimension):
        return np.full(dimension, self.value)

    gaussian = laplace


@pytest.mark.parametrize("loss", [Logistic("1/2"), Logistic(1)], ids=str)
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_without_noise_the_release_is_the_ridge_minimiser_within_the_tolerance(loss, relation):
    data = rows(relation=relation, **({} if relation == "replace-one" else {"size": 400}))
    mechanism = proposed(data, loss)
    found = mechanism.run(data, Still())
    objective = op._Objective(
        op._PublicNumbers(mechanism.risk, mechanism.ridge, data.facts), data, [Fraction(0)] * 4, Fraction(1)
    )
    features = np.concatenate([block for block, _ in blocks_of(data)])
    labels = labels_of(data)
    best = minimiser(loss, features, labels, Ball(10**6), Ridge(mechanism.ridge))
    assert np.linalg.norm(found - best.w) <= 2 * float(mechanism.tolerance + mechanism.step) + 1e-6
    assert objective.rows == 400


def blocks_of(data):
    from discreet.erm.features import blocks

    kept = []
    data.exact_sum(
        lambda batch: kept.extend((rows.copy(), part) for rows, part in blocks(VectorColumn("x"), batch)) or 0
    )
    unit = float(VectorColumn("x").unit(data.facts.domain))
    return [(rows * unit, part) for rows, part in kept]


def labels_of(data):
    kept = []
    data.exact_sum(lambda batch: kept.append(batch.stored("y").astype(np.int64)) or 0)
    return np.concatenate(kept)


def test_a_softmax_is_solved_too():
    data = rows(classes=3)
    mechanism = proposed(data, Softmax(3), epsilon=4)
    found = mechanism.run(data, Still())
    features, labels = np.concatenate([block for block, _ in blocks_of(data)]), labels_of(data)
    best = minimiser(Softmax(3), features, labels, Ball(10**6), Ridge(mechanism.ridge))
    assert np.linalg.norm(found - best.w) <= 2 * float(mechanism.tolerance + mechanism.step) + 1e-5


def test_the_slow_descent_arrives_where_newton_does():
    data = rows(n=60)
    mechanism = proposed(data, epsilon=1)
    known = op._PublicNumbers(mechanism.risk, mechanism.ridge, data.facts)
    objective = op._Objective(known, data, [Fraction(3), Fraction(-2), Fraction(1), Fraction(0)], Fraction(1, 1000))
    quick = objective.solve()
    slow = objective._descended([0] * 4)
    assert math.dist(map(float, quick), map(float, slow)) <= 2 / 1000


@pytest.mark.parametrize("order", ["mixed", "sorted"])
@pytest.mark.parametrize("loss", [Logistic("1/2"), Huber("1/2")], ids=str)
def test_a_guess_from_few_rows_leads_to_the_same_point_as_all_rows(loss, order, monkeypatch):
    """Also where the first rows are unlike the others and the guess is of no use."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(1000, 3)) / 2
    y = np.clip(x @ [3.0, -1.0, 0.5] + rng.normal(size=1000) / 4, -1, 1)
    y = (y > 0).astype(int) if loss.form == "margin" else y
    places = np.argsort(y) if order == "sorted" else np.arange(1000)
    target = dp.Category(0, 1) if loss.form == "margin" else dp.Number(-1, 1, step=Fraction(1, 100))
    data = dp.Matrix(x[places], y[places], features=dp.Vector(3, norm=1), target=target)
    mechanism = proposed(data, loss)
    known = op._PublicNumbers(mechanism.risk, mechanism.ridge, data.facts)
    objective = op._Objective(known, data, [Fraction(2), Fraction(-1), Fraction(5), Fraction(0)], mechanism.tolerance)
    passes = counted(objective, monkeypatch)
    whole = objective.solve()
    monkeypatch.setattr(op, "_FEW", 32)
    few = objective.solve()
    assert math.dist(map(float, whole), map(float, few)) <= 2 * float(mechanism.tolerance)
    assert objective._short(objective.gradient([round(each / objective.grain) for each in few]))
    assert None in passes
    assert any(32 <= each <= 256 for each in passes if each is not None)


def counted(objective, monkeypatch):
    """Of how many rows each rough look is; None: of all."""
    seen, look = [], objective._rough

    def noted(w, sample):
        seen.append(None if sample is None else sample.shape[1])
        return look(w, sample)

    monkeypatch.setattr(objective, "_rough", noted)
    return seen


def test_secants_find_the_inverse_of_a_curvature():
    """Of a quadratic in d dimensions the corrected steps end after about d gradients, whatever the first guess is."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    curve, point = root @ root.T + np.eye(6), rng.normal(size=6)
    secants = op._Secants(lambda vector: vector / np.linalg.norm(curve, 2))
    for _ in range(60):
        point = point - secants.step(curve @ point)
    assert np.linalg.norm(curve @ point) < 1e-9
    blunt = rng.normal(size=6)
    start = np.linalg.norm(curve @ blunt)
    for _ in range(60):
        blunt = blunt - curve @ blunt / np.linalg.norm(curve, 2)
    assert np.linalg.norm(curve @ blunt) > 1e-9 * start


@pytest.mark.parametrize("size", [2**20, 10**9, 10**15])
def test_a_huge_linear_term_is_solved_as_exactly(size):
    """The iterate then needs more limbs; where all slopes are constant the minimiser is known in closed form."""
    data = rows(n=50, d=1)
    mechanism = proposed(data)
    known = op._PublicNumbers(mechanism.risk, mechanism.ridge, data.facts)
    pull = [Fraction(size), Fraction(0)]
    found = op._Objective(known, data, pull, mechanism.tolerance).solve()
    assert abs(float(found[0]) + size / float(known.strength)) <= 60 / float(known.strength)


def test_the_price_is_the_theorem_in_numbers():
    data = rows(n=100, d=1)
    risk = Risk(Logistic("1/2"), VectorColumn("x", intercept=False), "y", FEW)
    mechanism = ObjectivePerturbation(
        *(risk, Fraction(1, 50), ProductLaplaceNoise(4), Fraction(1, 2**20), Fraction(1, 2**16), Fraction(1, 2**16)),
        ProductLaplaceNoise(1),
    )
    found = float(mechanism.guarantee(data.facts).pure)
    assert found == pytest.approx(2 * 0.5 / 4 + math.log(1 + 0.25 / 2), abs=1e-3)
    gaussian = ObjectivePerturbation(
        *(risk, Fraction(1, 50), GaussianNoise(4), Fraction(1, 2**40), Fraction(1, 2**16), Fraction(1, 2**16)),
        GaussianNoise(10),
    )
    curve, t = gaussian.guarantee(data.facts), 7.0
    z = t / 4
    expected = math.log(1.125) + 1 / 32 + math.log(2 * math.exp(z * z / 2) - math.exp(-z)) / t
    assert curve.at(8.0) == pytest.approx(expected, rel=1e-3)
    assert curve.pure is None


@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("epsilon", [0.1, 1, 8])
def test_what_is_proposed_is_within_the_funds_and_nearly_uses_them(epsilon, delta):
    data = rows(n=2000)
    found = proposed(data, epsilon=epsilon, delta=delta).guarantee(data.facts)
    assert 0.9 * epsilon <= found.epsilon(delta) <= epsilon


def test_a_row_of_a_table_is_as_long_in_l1_as_it_has_columns():
    domain = dp.Domain(
        a=dp.Category(*map(str, range(50))), b=dp.Number(0, 9, step=1, missing=True), y=dp.Category(0, 1)
    )
    features = Declared(("a", "b"), "1.5")
    held = {"a": [str(k) for k in range(50)] * 2, "b": [None, *range(10), *[4] * 89], "y": [0, 1] * 50}
    table = dp.Table(held, domain, name="made up")
    longest = []

    def look(batch):
        out = np.empty((batch.rows, features.dimension(domain)))
        features.fill(batch, slice(0, batch.rows), out)
        longest.append(np.abs(out).sum(axis=1).max())
        return 0

    table.exact_sum(look)
    assert max(longest) <= features.bound_l1(domain) <= 3 * 2**15
    assert features.bound_l1(domain) < math.isqrt(53 * 2**30)


@pytest.mark.parametrize("intercept", [False, True])
def test_the_l1_length_of_a_vector_is_bounded_apart_from_its_intercept(intercept):
    x = np.array([[0.5] * 4, [-0.5] * 4, [1, 0, 0, 0], [0.9] * 4])
    data = dp.Matrix(x, np.array([0, 1, 0, 1]), features=dp.Vector(4, norm=1), target=dp.Category(0, 1))
    domain, features = data.facts.domain, VectorColumn("x", intercept)
    longest = []

    def look(batch):
        out = np.empty((batch.rows, features.dimension(domain)))
        features.fill(batch, slice(0, batch.rows), out)
        longest.append(np.abs(out).sum(axis=1).max())
        return 0

    data.exact_sum(look)
    assert 0.999 * features.bound_l1(domain) <= max(longest) <= features.bound_l1(domain)


def test_losses_that_it_cannot_take_are_refused_before_anything_is_spent():
    data = rows()
    for loss, words in ((Squared(), "bounded slope"), (Absolute(), "corners")):
        number = dp.Domain(x=dp.Vector(2, norm=1), y=dp.Number(-1, 1, step="0.5"))
        facts = dp.data.Facts(number, dp.Neighbours("replace-one"), 10)
        with pytest.raises(ParameterError, match=words):
            propose(Risk(loss, VectorColumn("x"), "y", FEW), facts=facts, funds=Funds.of(Budget(1)))
    with pytest.raises(ParameterError, match="lasso"):
        proposed(data, regularizer=Lasso(1))
    mechanism = proposed(data)
    with pytest.raises(ParameterError, match="tolerance must be at least"):
        type(mechanism)(
            *(mechanism.risk, mechanism.ridge, mechanism.noise, mechanism.grid, Fraction(1, 2**100), mechanism.step),
            mechanism.blur,
        ).guarantee(data.facts)


def test_a_ridge_of_the_risks_own_counts_and_more_rows_promise_more():
    few, many = rows(n=2000), rows(n=20_000)
    loose, tight = (promise(proposed(data, epsilon=4, regularizer=Ridge("0.01")), data.facts) for data in (few, many))
    assert float(tight) < float(loose)


def test_a_centred_huber_loss_is_the_huber_loss_of_the_moved_target():
    domain = dp.Domain(x=dp.Vector(1, norm=1), y=dp.Number(10, 14, step="0.5"))
    loss = CentredHuber(1, 12)
    assert loss.target_bound(domain, "y") == 2
    values = loss.target_values(domain, "y", np.array([0, 4, 8]))
    assert values.tolist() == [-2.0, 0.0, 2.0]
    assert loss.widened(Fraction(2)) == CentredHuber(2, 12)
    assert type(loss.squared()).__name__ == "CentredSquared"
    assert Huber(1).squared() == Squared()


def test_the_blur_is_paid_for_the_tolerance_of_both_tables_and_for_the_grid():
    """Solutions of two tables, each as far from the same exact minimiser as the noise's grid and its solver admit."""
    data = rows(n=100, d=1)
    risk = Risk(Logistic("1/2"), VectorColumn("x", intercept=False), "y", FEW)
    for grid, tolerance in ((Fraction(1, 2), Fraction(1, 100)), (Fraction(1, 2**20), Fraction(1, 4))):
        step = Fraction(1, 200)
        noises = ProductLaplaceNoise(4), ProductLaplaceNoise(1)
        made = ObjectivePerturbation(risk, Fraction(1, 50), noises[0], grid, tolerance, step, noises[1])
        known = op._PublicNumbers(risk, Fraction(1, 50), data.facts)
        far = tolerance + grid / known.strength / 2
        centres = [step * part / 7 for part in range(7)]
        moved = max(round((centre + far) / step) - round((centre - far) / step) for centre in centres)
        assert moved <= made.apart(known).l1 <= moved + 2


def test_a_step_that_is_too_long_where_the_curvature_jumps_is_halved(monkeypatch):
    """A gradient that is four times as steep on the other side of 0, where its root 1 is: a whole step goes to 4."""
    search = object.__new__(op._Objective)
    search.grain, search.enough = Fraction(1, 2**20), Fraction(1, 2**15)

    def gradient(units):
        point = units[0] * search.grain
        return [4 * (point - 1) if point > 0 else point - 4]

    monkeypatch.setattr(search, "gradient", gradient)
    units, found = search._approached(np.array([-1.0]), lambda vector: vector)
    assert found
    assert units[0] * search.grain == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("unit", [1, 10**6])
def test_targets_in_large_units_take_as_few_passes_as_in_small_ones(unit, monkeypatch):
    """All targets lie near one end of a wide range: at the start every loss is a line, and curvatures jump after it."""
    passes, rough = [], op._Objective._rough
    monkeypatch.setattr(op._Objective, "_rough", lambda *given: passes.append(0) or rough(*given))
    rng = np.random.default_rng(10)
    x = rng.uniform(-1, 1, (2000, 4))
    y = np.clip(np.exp(-5 + x[:, 0] + 0.8 * rng.normal(size=2000)), 0, 1)
    domain = dp.Domain(
        {f"x{i}": dp.Number(-1, 1, step="1/1000") for i in range(4)} | {"y": dp.Number(0, unit, step=unit / 1e5)}
    )
    table = dp.Table({f"x{i}": x[:, i] for i in range(4)} | {"y": y * unit}, domain)
    risk = Risk(
        CentredHuber(Fraction(unit, 8), Fraction(unit, 2)), Declared(("x0", "x1", "x2", "x3"), 2), "y", Ball(unit)
    )
    propose(risk, facts=table.facts, funds=Funds.of(Budget(Fraction(1, 2)))).run(table, SeededRng(3))
    assert 0 < len(passes) < 60


def test_the_shorter_of_laplace_and_spherical_noise_is_proposed():
    """Rows of which the Euclidean length is bounded: spherical, by the root of 2. A column of many levels: Laplace."""
    funds = Funds.of(Budget(1))
    dense = dp.data.Facts(dp.Domain(x=dp.Vector(20, 1), y=dp.Category("no", "yes")), dp.Neighbours("replace-one"), 1000)
    levels = dp.Category(*(f"v{i}" for i in range(20)))
    leveled = dp.data.Facts(dp.Domain(x=levels, y=dp.Category("no", "yes")), dp.Neighbours("replace-one"), 1000)
    for facts, features, law in (
        (dense, VectorColumn("x"), SphericalNoise),
        (leveled, Declared(("x",), 1), ProductLaplaceNoise),
    ):
        risk = Risk(Logistic(), features, "y", Ball(10))
        found = propose(risk, facts=facts, funds=funds)
        assert isinstance(found.noise, law)
        assert 0.99 <= float(found.guarantee(facts).pure) <= 1
        lengths = {}
        for each in (ProductLaplaceNoise, SphericalNoise):
            known = op._PublicNumbers(risk, found.ridge, facts)
            lengths[each] = each(known.rough_scale(each, funds)).squared_length(known.dimension, unit=Fraction(0))
        assert min(lengths, key=lengths.__getitem__) is law


@pytest.mark.parametrize("budget", [Budget(1, 1e-6), Budget("0.1"), Budget(20)], ids=str)
@pytest.mark.parametrize(("size", "dimension"), [(50, 2), (5000, 30), (10**6, 100)])
def test_no_other_ridge_of_the_grid_promises_more(budget, size, dimension):
    domain = dp.Domain(x=dp.Vector(dimension, norm=1), y=dp.Category(0, 1))
    risk = Risk(Logistic("1/2"), VectorColumn("x"), "y", FEW)
    facts, funds = dp.data.Facts(domain, dp.Neighbours("replace-one"), size), Funds.of(budget)
    known = op._PublicNumbers(risk, Fraction(1), facts)
    found = op._with_law(known, SphericalNoise, funds)
    unit, others = op.short_up(known.turn / size), []
    for strength in op._STRENGTHS:
        ridged = known.with_ridge(unit * strength)
        if (scale := ridged.rough_scale(SphericalNoise, funds)) is not None:
            others.append(op._excess(op._with_noise(ridged, SphericalNoise, scale), ridged))
    assert op._excess(found, known.with_ridge(found.ridge)) <= min(others) * 1.02


@pytest.mark.parametrize("law", [ProductLaplaceNoise, SphericalNoise])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_pure_prices_are_those_of_the_theorem_also_for_a_coarse_grid_and_several_rows_of_a_person(relation, law):
    d, k, ridge, grid, scale = 3, 2, Fraction(1, 8), Fraction(1, 2), 40
    facts = replace(rows(d=d, relation=relation, size=400).facts, neighbours=dp.Neighbours(relation, k))
    known = op._PublicNumbers(Risk(Logistic(1), VectorColumn("x"), "y", FEW), ridge, facts)
    moved = (2 * k if relation == "replace-one" else k) * float(known.slope)
    moved *= float(known.norm if law is SphericalNoise else known.norm_l1)
    rounded = d if law is ProductLaplaceNoise else math.sqrt(d)
    turned = k * math.log1p(float(known.turn) / (float(ridge) * facts.size))
    least = (moved + rounded * float(grid)) / scale + turned
    assert least <= float(known.price(law(scale), grid).pure) <= least + 2 * float(grid) / scale
