"""Residual marginals: what is released, what it costs, how far it is off, and what is fitted to it."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dp
from discreet.answering.linear_query import require_linear
from discreet.answering.residual_marginals import (
    ResidualMarginals,
    ResidualPlan,
    residual_marginals,
    residual_scales,
)
from discreet.answering.workload import (
    RESIDUALS,
    ROOM,
    answers,
    methods,
    nearest,
    residual_answers,
    residual_errors,
)
from discreet.errors import ParameterError, SchemaError
from discreet.funds import Funds
from discreet.guarantee import ORDERS, Budget
from discreet.hypothesis.residuals import ResidualFit, centred, parts_of_scopes, summed_to
from discreet.mechanisms import LAWS
from discreet.method import choose
from discreet.query import Count, Equals, Histogram, Sum
from discreet.rng import SeededRng

SIZES = {"a": 3, "b": 4, "c": 2, "d": 5}
DOMAIN = dp.Domain({name: dp.Category(levels=range(size)) for name, size in SIZES.items()})
PAIRS = list(itertools.combinations(SIZES, 2))
BETA = Fraction(1, 20)
BOTH = ["add-remove", "replace-one"]


def a_table(rows=3000, neighbours="add-remove", seed=1, **more):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, rows)
    columns = {"a": a, "b": np.minimum(a + rng.integers(0, 2, rows), 3), "c": rng.integers(0, 2, rows)}
    columns["d"] = np.minimum(rng.geometric(0.7, rows) - 1, 4)
    size = {"size": rows} if neighbours == "add-remove" else {}
    return dp.Table(columns, DOMAIN, neighbours=neighbours, **size, **more)


def made(scopes=PAIRS, scale=8, fineness=64):
    return ResidualMarginals(scopes, [scale + i for i, _ in enumerate(parts_of_scopes(scopes))], fineness)


def projection(part, sizes):
    """The projection onto the residuals of a part, as a matrix on its cells."""
    matrix = np.ones((1, 1))
    for name in part:
        matrix = np.kron(matrix, np.eye(sizes[name]) - 1 / sizes[name])
    return matrix


# What is released.


@pytest.mark.parametrize("neighbours", BOTH)
def test_almost_without_noise_the_marginals_are_the_true_ones(neighbours):
    table = a_table(neighbours=neighbours)
    mechanism = ResidualMarginals(PAIRS, [Fraction(1, 100)] * len(parts_of_scopes(PAIRS)), 2**15)
    for scope, value in zip(PAIRS, mechanism.run(table, SeededRng(1)), strict=True):
        assert value == pytest.approx(table.exact_sum(Histogram(scope)), abs=0.1)


@pytest.mark.parametrize("neighbours", BOTH)
def test_released_marginals_agree_with_each_other_and_with_a_public_number_of_rows(neighbours):
    table = a_table(neighbours=neighbours)
    released = dict(zip(PAIRS, made().run(table, SeededRng(2)), strict=True))
    for name in SIZES:
        alone = [summed_to(value, scope, (name,)) for scope, value in released.items() if name in scope]
        assert all(one == pytest.approx(alone[0], abs=1e-6) for one in alone)
    totals = {round(float(value.sum()), 6) for value in released.values()}
    assert len(totals) == 1
    assert (totals == {3000.0}) == (neighbours == "replace-one")


def test_very_much_noise_is_drawn_too():
    wide = ResidualMarginals([("a", "b")], [2**41] * 4, 1)
    assert all(np.isfinite(value).all() for value in wide.run(a_table(), SeededRng(3)))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (([], [], 1), "one or more"),
        ((["a", "a"], [1, 1], 1), "different"),
        (([("a", "b"), ("b", "a")], [1] * 5, 1), "one order"),
        (([("a", "b")], [1] * 3, 1), "4 parts"),
        ((["a"], [1, 0], 1), "> 0"),
        ((["a"], [1, 1], 2**21), "fineness"),
        (([()], [1], 1), "at least one column"),
    ],
)
def test_wrong_releases_are_refused(given, text):
    with pytest.raises(ParameterError, match=text):
        ResidualMarginals(*given)


def test_a_column_that_is_not_there_is_refused_before_the_charge():
    with pytest.raises(SchemaError, match="'z'"):
        made([("a", "z")]).guarantee(a_table().facts)


# What it costs.


def brute_cost(mechanism, kind, rows=1):
    """Twice the zCDP by projecting the change of every cell of the whole table."""
    names = list(SIZES)
    cells = list(itertools.product(*(range(SIZES[name]) for name in names)))
    pairs = [(cell,) for cell in cells] if kind == "add-remove" else list(itertools.combinations(cells, 2))
    worst = 0.0
    for pair in pairs:
        total = 0.0
        for part, scale in mechanism.parts.items():
            if not part and kind == "replace-one":
                continue
            moved = np.zeros([SIZES[name] for name in part])
            for sign, cell in zip((1, -1), pair, strict=False):
                moved[tuple(cell[names.index(name)] for name in part)] += sign
            total += float((centred(moved) ** 2).sum()) / float(scale) ** 2
        worst = max(worst, total)
    return worst * rows**2


@pytest.mark.parametrize("kind", BOTH)
def test_the_price_is_that_of_the_worst_pair_of_neighbours(kind):
    mechanism, facts = made([("a", "b", "c"), ("c", "d")], 3), a_table(neighbours=kind).facts
    tight, full = mechanism.cost(facts)
    assert float(tight) == pytest.approx(brute_cost(mechanism, kind), rel=1e-6)
    assert tight < full
    curve = mechanism.guarantee(facts).renyi
    assert curve == pytest.approx([order * float(tight) / 2 for order in ORDERS], rel=1e-6)


def test_too_many_columns_to_try_every_replacement_are_priced_from_above(monkeypatch):
    mechanism, facts = made(), a_table(neighbours="replace-one").facts
    exact = mechanism.cost(facts)[0]
    monkeypatch.setattr("discreet.answering.residual_marginals._PAIRS", 1)
    above = ResidualMarginals(PAIRS, [scale + 1 for scale in mechanism.scales], 64).cost(facts)[0]
    times = (mechanism.scales[0] + 1) / mechanism.scales[0]
    assert exact / times**2 <= above <= 2 * exact


def test_several_rows_a_person_cost_the_square():
    rows = {"a": [0, 1] * 3, "b": [0] * 6, "c": [0] * 6, "d": [1] * 6, "who": [1, 1, 2, 2, 3, 3]}
    for kind in BOTH:
        table = dp.Table(rows, DOMAIN, unit="who", rows_per_unit=2, neighbours=kind, size=3)
        one, two = (made().guarantee(facts).renyi for facts in (a_table(neighbours=kind).facts, table.facts))
        assert all(more >= 4 * less * (1 - 1e-9) for less, more in zip(one, two, strict=True))


def test_a_grid_that_is_not_fine_enough_has_the_price_of_the_whole_noise():
    facts = a_table().facts
    coarse = ResidualMarginals([("a", "b")], [Fraction(1, 4)] * 4, 1)
    assert coarse.guarantee(facts).renyi[5] == pytest.approx(ORDERS[5] * 4 * 16 / 2, rel=1e-8)


# How far it is off.


@pytest.mark.parametrize("neighbours", BOTH)
def test_the_variance_of_every_cell_is_the_stated_one(neighbours):
    table, mechanism = a_table(50, neighbours=neighbours), made([("a", "b"), ("b", "c")], 4)
    known, rng = neighbours == "replace-one", SeededRng(5)
    truth = table.exact_sum(Histogram(("a", "b")))
    errors = np.array([mechanism.run(table, rng)[0] - truth for _ in range(1500)])
    stated = mechanism.variance(("a", "b"), DOMAIN, rows_known=known)
    assert errors.var(axis=0).mean() == pytest.approx(stated, rel=0.1)
    assert abs(errors.mean()) < 1


@pytest.mark.parametrize("neighbours", BOTH)
def test_a_questions_variance_is_that_of_its_weights(neighbours):
    facts, mechanism = a_table(neighbours=neighbours).facts, made([("a", "b")], 4)
    known = neighbours == "replace-one"
    for query in (Count(Equals("a", 1) & Equals("b", 2)), Histogram("a"), Histogram("a", Equals("b", 0)), Count()):
        form = require_linear(query, DOMAIN)
        found, squares = mechanism.variances(form, facts)
        sizes = {name: SIZES[name] for name in form.scope}
        for place in range(math.prod(form.outputs)):
            weights = np.where(form.place == place, form.weight, 0.0).reshape(form.shape)
            expected = sum(
                float(scale) ** 2
                * float(np.sum((projection(part, sizes) @ summed_to(weights, form.scope, part).ravel()) ** 2))
                / math.prod(sizes[name] for name in form.scope if name not in part) ** 2
                for part, scale in mechanism.parts.items()
                if set(part) <= set(form.scope) and (part or not known)
            )
            assert found.ravel()[place] == pytest.approx(expected)
            assert squares.ravel()[place] == pytest.approx(float((weights**2).sum()))
            assert expected <= mechanism.top(form.scope, form.shape) ** 2 * float((weights**2).sum()) * (1 + 1e-9)


def test_the_fine_law_reaches_as_far_as_the_normal_one_and_never_further_than_chernoff():
    fine, rough = LAWS["fine"](10), LAWS["sub-gaussian"](10)
    for failure in (0.5, 0.05, 1e-3, 1e-9):
        assert fine.quantile(failure) <= rough.quantile(failure) * (1 + 1e-12)
    assert fine.quantile(0.05) == pytest.approx(19.6, rel=0.02)
    assert fine.quantile(0.05, copies=4) == pytest.approx(2 * fine.quantile(0.05))
    assert fine.quantile(0.05, copies=0) == 0
    assert fine.reach(math.log(0.025)) == 20


def test_a_measured_table_is_in_whole_units():
    """What the description of a release is measured by, for bounds about a population."""
    mechanism, table = made([("a", "b"), ("b", "d")]), a_table()
    for part, value in zip(mechanism.residual_parts, mechanism.run(table, SeededRng(4)), strict=True):
        steps = part.measured(value, table.facts).value / part.measured(value, table.facts).unit
        assert np.abs(steps - np.rint(steps)).max() < 1e-3
        assert np.abs(steps).max() > 1000


# The best scales.


def test_all_pairs_have_less_noise_than_pairs_one_by_one_and_the_largest_variances_are_equal():
    sizes = dict.fromkeys("abcdefgh", 5)
    scopes = list(itertools.combinations(sizes, 2))
    mechanism = ResidualMarginals(scopes, residual_scales(scopes, sizes, rows_known=False), 2**10)
    domain = dp.Domain({name: dp.Category(levels=range(5)) for name in sizes})
    facts = dp.Table({name: [0] for name in sizes}, domain, neighbours="add-remove", size=1).facts
    variances = [mechanism.variance(scope, domain, rows_known=False) for scope in scopes]
    assert max(variances) <= 1.01 * min(variances)
    plain = mechanism.plain_scale(scopes, facts)
    assert math.sqrt(max(variances)) / plain == pytest.approx(0.769, abs=0.003)  # 23 % less noise


def test_no_other_scales_have_a_smaller_largest_variance():
    """Against a general solver, which may choose any scales."""
    from scipy.optimize import minimize

    scopes = [("a", "b"), ("b", "c", "d"), ("a", "d")]
    parts = parts_of_scopes(scopes)
    prices = np.array([math.prod(1 - 1 / SIZES[name] for name in part) for part in parts])

    def largest(variances):
        return max(
            sum(
                prices[i] * variances[i] / math.prod(SIZES[name] for name in scope if name not in part) ** 2
                for i, part in enumerate(parts)
                if set(part) <= set(scope)
            )
            for scope in scopes
        )

    def scaled(logs):
        variances = np.exp(logs)
        return largest(variances * np.sum(prices / variances))

    ours = np.array([2 * math.log(ratio) for ratio in residual_scales(scopes, SIZES, rows_known=False)])
    best = minimize(scaled, ours, method="Nelder-Mead", options={"maxiter": 4000, "maxfev": 4000})
    assert scaled(ours) <= best.fun * 1.01


def test_columns_of_one_value_and_tables_without_rows_are_no_trouble():
    domain = dp.Domain(a=dp.Category("x"), b=dp.Category("p", "q"))
    for kind in BOTH:
        empty = {"neighbours": kind, "size": 5} if kind == "add-remove" else {"neighbours": kind}
        rows = {"a": [], "b": []} if kind == "add-remove" else {"a": ["x"], "b": ["p"]}
        table = dp.Table(rows, domain, **empty)
        questions = [Histogram(("a", "b")), Histogram("a"), Count(Equals("b", "p"))]
        listed = methods(questions, table.facts, funds=Funds.of(Budget(1, "1e-6")), beta=BETA)
        mechanism = listed.named(RESIDUALS).offer(table.facts.size).mechanism
        got = answers(questions, mechanism, mechanism.run(table, SeededRng(1)), table.facts, beta=BETA)
        assert [np.shape(value) for value, _ in got] == [(1, 2), (1,), ()]


# Answers.


@pytest.mark.parametrize("neighbours", BOTH)
def test_the_default_for_all_pairs_is_residuals_and_its_bounds_hold(neighbours):
    table = a_table(neighbours=neighbours)
    questions = [Histogram(pair) for pair in PAIRS] + [Count(Equals("a", 1) & Equals("d", 0)), Count(Equals("b", 3))]
    listed = methods(questions, table.facts, funds=Funds.of(Budget(1, "1e-6")), beta=BETA)
    best = choose(listed, "auto", table.facts.size)
    assert best.method == RESIDUALS
    assert best.mechanism.guarantee(table.facts).within(Budget(1, "1e-6"))
    truth = [table.exact_sum(query) for query in questions]
    missed = 0
    for seed in range(40):
        read = answers(questions, best.mechanism, best.mechanism.run(table, SeededRng(seed)), table.facts, beta=BETA)
        missed += any((np.abs(value - real) > error).any() for (value, error), real in zip(read, truth, strict=True))
        assert all((value >= 0).all() for value, _ in read)
    assert missed <= 7  # 5 % of 40 is 2; 8 or more has probability 1e-3 at 5 %


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("epsilon", ["0.05", "0.5", "5"])
@pytest.mark.parametrize("rows", [60, 3000, 20_000])
@pytest.mark.parametrize("scopes", [PAIRS, [*PAIRS, ("a", "b", "c"), ("d",)], [("a", "d")]])
def test_no_stated_bound_exceeds_the_plain_noisy_marginals_where_that_says_something_and_all_hold(
    neighbours, epsilon, rows, scopes
):
    table = a_table(rows, neighbours=neighbours)
    questions = [*map(Histogram, scopes), Count(Equals("a", 1) & Equals("d", 0))]
    mechanism = residual_marginals(scopes, table.facts, funds=Funds.of(Budget(epsilon, "1e-6")))
    beta = Fraction(1, 10**6)
    _, plain, _ = residual_errors(questions, mechanism, table.facts, beta)
    for seed in range(5):
        value = mechanism.run(table, SeededRng(seed))
        for query, (numbers, error), most in zip(
            questions, residual_answers(questions, mechanism, value, table.facts, beta), plain, strict=True
        ):
            even = rows / require_linear(query, DOMAIN).cells
            assert (error <= np.where(most > even, ROOM, 1) * most * (1 + 2**-12)).all()
            assert (numbers >= 0).all()
            assert (np.abs(numbers - table.exact_sum(query)) <= error).all()


def test_parts_bound_cells_only_where_plain_noise_is_not_passed_by_it():
    table = a_table()
    for scopes, known in (([("a", "d")], set()), (PAIRS, {(name,) for name in SIZES})):
        mechanism = residual_marginals(scopes, table.facts, funds=Funds.of(Budget(1, "1e-6")))
        errors, plain, parts = residual_errors([*map(Histogram, scopes)], mechanism, table.facts, BETA)
        assert set(parts) == known
        assert all((error <= most * (1 + 2**-12)).all() for error, most in zip(errors, plain, strict=True))


@given(
    *(st.floats(-200, 200) for _ in range(2)),
    st.floats(0, 100),
    st.floats(1, 3),
    st.none() | st.floats(-50, 300),
    st.floats(0, 1),
)
def test_the_nearest_number_states_a_bound_that_holds_and_is_at_most_the_one_asked_for(
    wanted, read, error, more, top, place
):
    numbers, stated = nearest(
        *map(np.array, (wanted, read, error, error * more)), top=None if top is None else np.array(top)
    )
    low, high = read - error, read + error
    if top is not None:
        high = max(0.0, min(high, top))
        low = min(max(low, 0.0), high)
    truth = low + place * (high - low)
    assert abs(float(numbers) - truth) <= float(stated) + 1e-9
    assert float(stated) <= error * more + 1e-9
    if high - low <= error * more:
        assert float(numbers) == pytest.approx(min(max(wanted, low), high))


def test_of_equal_columns_many_rows_have_the_least_largest_variance_and_few_rows_lean_on_the_columns():
    columns = dict.fromkeys("abcdefgh", 7)
    scopes, domain = list(itertools.combinations(columns, 2)), dp.Domain(
        {name: dp.Category(levels=range(7)) for name in columns}
    )  # fmt: skip
    even = [float(ratio) for ratio in residual_scales(scopes, columns, rows_known=False)]
    found = {}
    for rows in (200, 10**9):
        facts = dp.Table({name: [0] for name in columns}, domain, neighbours="add-remove", size=rows).facts
        made = residual_marginals(scopes, facts, funds=Funds.of(Budget(1, "1e-6")))
        found[rows] = np.array([float(scale / made.scales[-1]) for scale in made.scales])
        worst = max(made.variance(scope, domain, rows_known=False) for scope in scopes)
        assert worst <= made.plain_scale(scopes, facts) ** 2
    assert found[10**9] == pytest.approx(np.array(even) / even[-1], rel=1e-3)
    assert (found[200][1:9] < 0.6 * found[10**9][1:9]).all()


def test_only_tables_whose_bound_exceeds_an_even_cell_may_have_more_than_the_least_largest_variance():
    columns = {"a": 2, "b": 2, "c": 2, "d": 9, "e": 9, "f": 9}
    scopes, domain = list(itertools.combinations(columns, 2)), dp.Domain(
        {name: dp.Category(levels=range(size)) for name, size in columns.items()}
    )  # fmt: skip
    facts = dp.Table({name: [0] for name in columns}, domain, neighbours="add-remove", size=1_500).facts
    plan = ResidualPlan.of(scopes, columns, rows_known=False, asked=scopes)
    made = residual_marginals(scopes, facts, funds=Funds.of(Budget(1, "1e-6")))
    found = np.array([made.variance(scope, domain, rows_known=False) for scope in scopes])
    plain, spent = made.plain_scale(scopes, facts), plan.prices @ np.array([float(s) ** -2 for s in made.scales])
    least = (plan.adds @ plan.even).max() * (plan.prices @ (1 / plan.even)) / spent
    vague = 4 * plain * plan.counted > 1_500
    assert 0 < vague.sum() < len(scopes)
    assert (found[~vague] <= least * (1 + 1e-3)).all()
    assert (found <= plain**2).all()
    assert (found[vague] > 1.1 * least).any()


def test_leaning_costs_as_much_and_leaves_less_after_shrinkage():
    columns = {"a": 3, "b": 8, "c": 5, "d": 6}
    scopes = list(itertools.combinations(columns, 3))
    plan = ResidualPlan.of(scopes, columns, rows_known=False, asked=scopes)
    even, rows = plan.even * 50, 300
    worst = (plan.adds @ even).max()
    doubts = np.where(plan.lengths > 1, (0.3 ** (1.0 - plan.lengths) * plan.cells / rows) ** 2, 0.0)

    def left(variances):
        return float((plan.counted @ plan.adds) @ (1 / (1 / variances + doubts)))

    for most in (1.01 * worst, 1.2 * worst, 100 * worst, worst * np.array([1.0, 1.3, 5.0, 1.1])):
        leaning = plan.leaning(even, rows, np.broadcast_to(most, 4))
        assert plan.prices @ (1 / leaning) == pytest.approx(plan.prices @ (1 / even), rel=1e-9)
        assert (plan.adds @ leaning <= most * (1 + 1e-9)).all()
        assert left(leaning) < left(even)
    assert plan.leaning(even, rows, np.full(4, 0.9 * worst)) is None


def test_small_tables_are_answered_with_less_error_than_plain_noise_clipped_at_0():
    """944 rows of a hidden class: the mean and the largest error over all pairs are below half of plain noise's."""
    rng, names = np.random.default_rng(3), "abcdefgh"
    kind = rng.integers(0, 3, size=944)
    weights = rng.dirichlet(np.ones(7), size=(8, 3))
    rows = {name: [int(rng.choice(7, p=weights[place, each])) for each in kind] for place, name in enumerate(names)}
    domain = dp.Domain({name: dp.Category(levels=range(7)) for name in names})
    table, pairs = dp.Table(rows, domain, neighbours="add-remove", size=944), list(itertools.combinations(names, 2))
    questions = [Histogram(pair) for pair in pairs]
    mechanism = residual_marginals(pairs, table.facts, funds=Funds.of(Budget(1, "1e-6")))
    truth = np.concatenate([table.exact_sum(query.partial).ravel() for query in questions])
    read = answers(questions, mechanism, mechanism.run(table, SeededRng(2)), table.facts, beta=BETA)
    ours = np.abs(np.concatenate([value.ravel() for value, _ in read]) - truth)
    noisy = truth + rng.normal(scale=mechanism.plain_scale(pairs, table.facts), size=truth.shape)
    plain = np.abs(np.maximum(noisy, 0) - truth)
    assert ours.mean() < 0.5 * plain.mean()
    assert ours.max() < 0.7 * plain.max()


def test_sums_are_read_off_residuals_too():
    domain = dp.Domain(x=dp.Number(0, 4, step=0.5), g=dp.Category("p", "q"))
    table = dp.Table({"x": [1, 2, 3, 4] * 50, "g": ["p", "q"] * 100}, domain, neighbours="add-remove", size=200)
    questions = [Sum("x", Equals("g", "p")), Histogram(("x", "g"))]
    listed = methods(questions, table.facts, funds=Funds.of(Budget(50, "1e-6")), beta=BETA)
    mechanism = listed.named(RESIDUALS).offer(200).mechanism
    got = answers(questions, mechanism, mechanism.run(table, SeededRng(1)), table.facts, beta=BETA)
    assert abs(float(got[0][0]) - 200) <= float(got[0][1])


# The fit.


def test_the_fit_is_the_weighted_least_squares_one_before_it_is_shrunk():
    rng = np.random.default_rng(3)
    whole = rng.normal(size=list(SIZES.values())) * 50 + 200
    scopes = [("a", "b"), ("b", "c"), ("a",)]
    noisy = [
        (s, summed_to(whole, tuple(SIZES), s) + rng.normal(size=[SIZES[n] for n in s]), 1.0 + i)
        for i, s in enumerate(scopes)
    ]
    rows, values, weights = [], [], []
    for scope, table, variance in noisy:
        for place in itertools.product(*(range(SIZES[name]) for name in scope)):
            indicator = np.zeros(list(SIZES.values()))
            indicator[tuple(place[scope.index(n)] if n in scope else slice(None) for n in SIZES)] = 1
            rows.append(indicator.ravel())
            values.append(table[place])
            weights.append(1 / math.sqrt(variance))
    solved = np.linalg.lstsq(
        np.array(rows) * np.array(weights)[:, None], np.array(values) * np.array(weights), rcond=None
    )
    best = summed_to(solved[0].reshape(list(SIZES.values())), tuple(SIZES), ("b",))
    assert ResidualFit.of(noisy, SIZES, total=None).marginal(("b",)) == pytest.approx(best, abs=1e-6)


def test_independent_columns_are_shrunk_together_and_dependent_ones_are_left():
    rng, sizes = np.random.default_rng(4), {"a": 8, "b": 8}
    for dependent in (False, True):
        true = np.outer(np.arange(1, 9), np.arange(1, 9)) * 10.0 + (np.eye(8) * 3000 if dependent else 0)
        noisy = true + rng.normal(scale=20, size=true.shape)
        fitted = ResidualFit.of([(("a", "b"), noisy, 400.0)], sizes, total=true.sum())
        before, after = np.abs(noisy - true).mean(), np.abs(fitted.marginal(("a", "b")) - true).mean()
        assert after < (1.01 if dependent else 0.7) * before


def test_what_was_not_measured_together_is_taken_for_independent():
    sizes = {"a": 2, "b": 3, "c": 2}
    one, two = np.array([[10.0, 20, 30], [1, 2, 37]]), np.array([70.0, 30.0])
    fitted = ResidualFit.of([(("a", "b"), one, 1.0), (("c",), two, 1.0)], sizes, total=100.0)
    assert fitted.marginal(("b", "c")) == pytest.approx(np.outer(one.sum(axis=0), two) / 100, abs=0.5)


@pytest.mark.parametrize("neighbours", BOTH)
def test_rows_of_persons_with_several_are_counted_and_not_the_persons(neighbours):
    """How many rows there are is nobody's business, also where the number of persons is public."""
    table = dp.Table(
        {"id": [0, 0, 0, 1, 2], "a": [0, 1, 2, 0, 0], "b": [3] * 5, "c": [1] * 5, "d": [4] * 5},
        DOMAIN,
        neighbours=neighbours,
        unit="id",
        rows_per_unit=3,
    )
    found = made(scale=Fraction(1, 50), fineness=1).run(table, SeededRng(2))
    assert [round(float(each.sum())) for each in found] == [5] * len(PAIRS)
