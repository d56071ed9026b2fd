"""The maximum-entropy fit: exact measurements are recovered, known solutions are met, noise is not fitted."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from discreet.answering.measurement import Measured
from discreet.data import AnyNumber, Category, Domain, Number
from discreet.hypothesis import QUICK, THOROUGH, Dense
from discreet.hypothesis import max_entropy as module
from discreet.hypothesis.graphical_model import Factored
from discreet.hypothesis.max_entropy import fit
from discreet.query import Among, Between, Count, Equals, Histogram, Sum

SIZES = {"a": 3, "b": 4, "c": 2, "d": 5}
DOMAIN = Domain({name: Category(levels=range(size)) for name, size in SIZES.items()})
PAIRS = list(itertools.combinations(SIZES, 2))
TINY = 1e-6


def a_table(seed=1, low=0.2):
    """Positive, so that nothing has to become infinite."""
    return np.random.default_rng(seed).uniform(low, 1.0, size=list(SIZES.values())) * 100


def marginal(table, scope):
    return table.sum(axis=tuple(axis for axis, name in enumerate(SIZES) if name not in scope))


def seen(query, value, scale=TINY, kind="gaussian"):
    return Measured(query, kind, scale, 1.0, np.asarray(value, dtype=float))


def exact_pairs(table):
    return [seen(Histogram(pair), marginal(table, pair)) for pair in PAIRS]


def whole(fitted):
    return fitted.total * fitted.hypothesis.marginal(tuple(SIZES))


def by_proportional_fitting(table, scopes, sweeps=2000):
    """The classical algorithm: scale the uniform table to each marginal in turn."""
    found = np.full(table.shape, table.sum() / table.size)
    for _ in range(sweeps):
        for scope in scopes:
            axes = tuple(axis for axis, name in enumerate(SIZES) if name not in scope)
            found *= table.sum(axis=axes, keepdims=True) / found.sum(axis=axes, keepdims=True)
    return found


def test_without_noise_it_is_the_limit_of_iterative_proportional_fitting():
    table = a_table()
    found = whole(fit(exact_pairs(table), DOMAIN, total=table.sum()))
    assert np.allclose(found, by_proportional_fitting(table, PAIRS), rtol=1e-4)
    assert not np.allclose(found, table, rtol=1e-2)  # the table itself has more than pairs in it


def test_a_table_that_is_made_of_pairs_is_recovered_from_them():
    made = by_proportional_fitting(a_table(2), PAIRS)
    assert np.allclose(whole(fit(exact_pairs(made), DOMAIN, total=made.sum())), made, rtol=1e-4)


def test_the_whole_histogram_recovers_any_table():
    table = a_table(3)
    fitted = fit([seen(Histogram(tuple(SIZES)), table)], DOMAIN, total=table.sum())
    assert np.allclose(whole(fitted), table, rtol=1e-4)


def test_at_the_end_every_residual_is_slack_times_theta():
    table, rng = a_table(4), np.random.default_rng(0)
    noisy = [
        seen(Histogram(pair), marginal(table, pair) + rng.normal(scale=20, size=marginal(table, pair).shape), 20.0)
        for pair in PAIRS
    ]
    parts, _ = module.parts_of(noisy, DOMAIN, SIZES)
    parts = sorted(parts, key=lambda part: part.scope)
    problem = module.EntropyProblem(parts, SIZES, table.sum())
    slack = problem.slack(np.zeros(len(problem.value)))
    theta = problem.solve(np.zeros(len(problem.value)), slack, 1e-6)
    met = problem.answers(problem.cells.at(problem.tables(theta), table.sum()).marginals)
    assert np.abs(problem.value - met - slack * theta).max() < 1e-4
    assert np.abs(slack * theta).max() > 1  # so it is a statement about something


def test_the_curvature_is_the_derivative_of_the_answers():
    table = a_table(5)
    parts, _ = module.parts_of(exact_pairs(table), DOMAIN, SIZES)
    problem = module.EntropyProblem(sorted(parts, key=lambda part: part.scope), SIZES, 100.0)
    rng = np.random.default_rng(1)
    theta, along = rng.normal(size=(2, len(problem.value))) / 10

    def answers(at):
        return problem.answers(problem.cells.at(problem.tables(at), 100.0).marginals)

    bent = problem.answers(problem.cells.bent(problem.cells.at(problem.tables(theta), 100.0), problem.tables(along)))
    assert np.allclose(bent, (answers(theta + 1e-5 * along) - answers(theta - 1e-5 * along)) / 2e-5, atol=1e-6)


def test_through_a_junction_tree_the_curvature_is_the_same_as_over_all_cells():
    table = a_table(5)
    noisy = [seen(Histogram(pair), marginal(table, pair)) for pair in (("a", "b"), ("b", "c"), ("c", "d"))]
    parts, _ = module.parts_of([*noisy, seen(Count(Equals("b", 1)), table[:, 1].sum())], DOMAIN, SIZES)
    scopes = list(dict.fromkeys(part.scope for part in parts))
    dense, tree = module.DenseOracle(SIZES, scopes), module.TreeOracle(SIZES, scopes)
    assert len(tree.tree.cliques) == 3
    rng = np.random.default_rng(2)
    logs, along = ({scope: rng.normal(size=[SIZES[name] for name in scope]) for scope in scopes} for _ in range(2))
    points = tree.at(logs, 100.0), dense.at(logs, 100.0)
    moved, expected = tree.bent(points[0], along), dense.bent(points[1], along)
    assert all(np.allclose(points[0].marginals[scope], points[1].marginals[scope]) for scope in scopes)
    assert all(np.allclose(moved[scope], expected[scope], atol=1e-9) for scope in scopes)


def test_counts_sums_and_conditional_histograms_are_constraints_too():
    domain = Domain(x=Number(-2, 2, step=1), g=Category("p", "q", "r"))
    table = np.random.default_rng(6).uniform(1, 5, size=(5, 3))
    values = np.arange(-2, 3)
    measured = [
        seen(Count(Between("x", 0, 2)), table[2:].sum()),
        seen(Sum("x", Equals("g", "p")), values @ table[:, 0]),
        seen(Histogram("g", Between("x", -2, 0)), table[:3].sum(axis=0)),
        seen(Count(Among("g", ["p", "r"])), table[:, [0, 2]].sum()),
    ]
    fitted = fit(measured, domain, total=table.sum())
    found = fitted.total * fitted.hypothesis.marginal(("x", "g"))
    assert found[2:].sum() == pytest.approx(table[2:].sum(), rel=1e-4)
    assert values @ found[:, 0] == pytest.approx(values @ table[:, 0], rel=1e-3, abs=1e-3)
    assert found[:3].sum(axis=0) == pytest.approx(table[:3].sum(axis=0), rel=1e-4)
    assert found[:, [0, 2]].sum() == pytest.approx(table[:, [0, 2]].sum(), rel=1e-4)


def test_a_query_measured_twice_counts_with_both_precisions():
    once = seen(Count(Equals("a", 0)), 100.0, scale=1.0)
    again = seen(Count(Equals("a", 0)), 200.0, scale=3.0)
    found = fit([once, again], DOMAIN, total=1000.0)
    assert found.total * found.hypothesis.marginal(("a",))[0] == pytest.approx(100 + 100 / 10, abs=2)


def test_a_scope_inside_another_is_weighed_by_its_precision():
    table = a_table(7)
    inner, outer = marginal(table, ("a",)), marginal(table, ("a", "b"))
    apart = np.array([30.0, -30.0, 0.0])
    measured = [seen(Histogram("a"), inner + apart, scale=4.0), seen(Histogram(("a", "b")), outer, scale=1.0)]
    found = fit(measured, DOMAIN, total=table.sum())
    # Four cells of variance 1 against one of variance 16: about a fifth of the difference.
    assert found.total * found.hypothesis.marginal(("a",)) - inner == pytest.approx(apart / 6, abs=2)


def test_the_number_of_rows_is_estimated_from_complete_marginals():
    table = a_table(8)
    measured = [seen(Histogram("a"), marginal(table, ("a",)) + 5, 1.0), seen(Histogram("b"), marginal(table, "b"), 2.0)]
    by_a, by_b = 1 / (3 * 1.0), 1 / (4 * 4.0)
    assert fit(measured, DOMAIN, total=None).total == pytest.approx(table.sum() + 15 * by_a / (by_a + by_b))


def test_a_count_of_all_rows_says_how_many_there_are():
    assert fit([seen(Count(), 77.0)], DOMAIN, total=None).total == pytest.approx(77)


def test_without_a_complete_marginal_the_total_is_what_a_uniform_table_would_have():
    assert fit([seen(Count(Equals("b", 1)), 25.0, 1.0)], DOMAIN, total=None).total == pytest.approx(100)


def test_nothing_measured_is_uniform():
    fitted = fit([], DOMAIN, total=50.0)
    assert fitted.total == 50
    assert np.allclose(fitted.hypothesis.marginal(("a", "c")), 1 / 6)


def test_negative_counts_do_no_harm():
    fitted = fit([seen(Histogram("a"), [-40.0, -2.0, 90.0], 5.0)], DOMAIN, total=50.0)
    shares = fitted.hypothesis.marginal(("a",))
    assert (shares >= 0).all()
    assert shares.sum() == pytest.approx(1)
    assert shares[2] > 0.8


def test_marginals_without_other_measurements_are_shrunk():
    """All columns and a tree of pairs, noise as large as the counts: beside a count that says nothing they are not."""
    mute, apart = seen(Count(Equals("a", 0) & Equals("b", 0)), 0.0, 1e6), []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        table = np.einsum("i,j,k,l", *(rng.dirichlet(np.full(size, 0.5)) for size in SIZES.values())) * 1000
        scopes = [*((name,) for name in SIZES), ("a", "b"), ("b", "c"), ("c", "d")]
        exact = [marginal(table, scope) for scope in scopes]
        noisy = [
            seen(Histogram(s), each + rng.normal(scale=100, size=each.shape), 100.0)
            for s, each in zip(scopes, exact, strict=True)
        ]
        found = [fit(measured, DOMAIN, total=1000.0).hypothesis for measured in (noisy, [*noisy, mute])]
        apart.append(
            [np.mean([abs(each.marginal(p) * 1000 - marginal(table, p)).sum() for p in PAIRS]) for each in found]
        )
    shrunk, plain = np.mean(apart, axis=0)
    assert shrunk < 0.95 * plain


def test_an_empty_table_does_no_harm():
    fitted = fit([seen(Histogram("a"), [-4.0, 3.0, -1.0], 5.0)], DOMAIN, total=0.0)
    assert np.isfinite(fitted.hypothesis.marginal(("a",))).all()


def test_the_factored_fit_is_the_dense_one():
    table, rng = a_table(9), np.random.default_rng(2)
    chain = [("a", "b"), ("b", "c"), ("c", "d"), ("a",)]
    noisy = [
        seen(Histogram(s), marginal(table, s) + rng.normal(scale=5, size=marginal(table, s).shape), 5.0) for s in chain
    ]
    noisy.append(seen(Count(Equals("a", 1) & Equals("b", 2)), 70.0, 5.0))
    dense = fit(noisy, DOMAIN, total=table.sum())
    factored = fit(noisy, DOMAIN, total=table.sum(), effort=replace(THOROUGH, dense=1))
    assert isinstance(dense.hypothesis, Dense)
    assert isinstance(factored.hypothesis, Factored)
    for scope in (*PAIRS, ("a", "b", "d")):
        one, other = (each.hypothesis.marginal(scope) * each.total for each in (dense, factored))
        assert np.abs(one - other).max() < 0.5


def test_a_domain_of_many_columns_is_fitted_part_by_part():
    domain = Domain({f"x{i}": Category(levels=range(10)) for i in range(30)})
    rng = np.random.default_rng(3)
    tables = {i: rng.uniform(1, 9, size=(10, 10)) for i in (0, 2, 7)}
    measured = [seen(Histogram((f"x{i}", f"x{i + 1}")), t * 1000 / t.sum()) for i, t in tables.items()]
    fitted = fit(measured, domain, total=1000.0)
    for i, table in tables.items():
        found = fitted.hypothesis.marginal((f"x{i}", f"x{i + 1}"))
        assert np.allclose(found, table / table.sum(), rtol=1e-3)
    assert np.allclose(fitted.hypothesis.marginal(("x20",)), 0.1)


def test_what_cannot_be_listed_or_tangles_is_left_out_and_named():
    domain = Domain({**{f"x{i}": Category(levels=range(64)) for i in range(6)}, "far": AnyNumber()})
    every = [
        seen(Histogram(pair), np.full((64, 64), 1.0), 10.0) for pair in itertools.combinations(domain.names[:6], 2)
    ]
    large = seen(Count(Equals("x0", 1) & Equals("x1", 1) & Equals("x2", 1) & Equals("x3", 1)), 1.0, 10.0)
    parts, left_out = module.parts_of([large, *every], domain, module.listed_sizes(domain))
    assert left_out[0] == 0  # 64^4 cells
    assert 0 < len(left_out) < len(every)
    assert len(parts) + len(left_out) == len(every) + 1


def test_columns_without_a_list_of_values_are_not_in_the_hypothesis():
    domain = Domain(a=Category("p", "q"), far=AnyNumber())
    fitted = fit([seen(Histogram("a"), [30.0, 10.0])], domain, total=40.0)
    assert fitted.hypothesis.marginal(("a",)) == pytest.approx([0.75, 0.25], rel=1e-4)


def test_pure_noise_about_independent_columns_is_not_fitted():
    rng = np.random.default_rng(4)
    ones = {name: rng.dirichlet(np.full(size, 5.0)) for name, size in SIZES.items()}
    table = 2000 * np.einsum("a,b,c,d->abcd", *ones.values())
    noisy = [
        seen(Histogram(pair), marginal(table, pair) + rng.normal(scale=100, size=marginal(table, pair).shape), 100.0)
        for pair in PAIRS
    ]
    fitted = fit(noisy, DOMAIN, total=2000.0)
    left = [np.abs(fitted.total * fitted.hypothesis.marginal(pair) - marginal(table, pair)).mean() for pair in PAIRS]
    assert np.mean(left) < 0.5 * 100 * math.sqrt(2 / math.pi)  # of what was in the measurements


def test_a_strong_dependence_is_fitted():
    table = np.full((3, 4), 10.0)
    table[1, 2] = 500.0
    found = fit([seen(Histogram(("a", "b")), table, 5.0)], DOMAIN, total=table.sum())
    assert np.abs(found.total * found.hypothesis.marginal(("a", "b")) - table).max() < 5


def test_a_fit_of_many_single_counts_ends_early_and_near_them(monkeypatch):
    table = a_table(11)
    counts = [seen(Count(Equals("a", code)), marginal(table, ("a",))[code], 1.0) for code in range(SIZES["a"])]
    parts, _ = module.parts_of(counts, DOMAIN, SIZES)
    marginals, _ = module.parts_of(exact_pairs(table), DOMAIN, SIZES)
    assert module.EntropyProblem(marginals, SIZES, 1.0).looks > module.EntropyProblem(parts, SIZES, 1.0).looks
    monkeypatch.setattr(module, "_ENTRY", THOROUGH.work)
    assert module.EntropyProblem(parts, SIZES, 1.0).looks == THOROUGH.looks[0]
    found = fit(counts, DOMAIN, total=table.sum())
    assert np.allclose(found.total * found.hypothesis.marginal(("a",)), marginal(table, ("a",)), rtol=0.02)


def test_a_large_domain_of_which_only_the_rows_were_counted_is_not_written_out():
    domain = Domain({f"x{i}": Category(levels=range(20)) for i in range(6)})  # 64 million cells
    for effort in (QUICK, THOROUGH):
        fitted = fit([seen(Count(), 500.0, 5.0)], domain, total=None, effort=effort)
        assert isinstance(fitted.hypothesis, Factored)
        assert fitted.total * fitted.hypothesis.marginal(("x3",)) == pytest.approx(np.full(20, 25.0))


def test_a_quick_fit_of_a_chain_of_columns_is_the_thorough_one_but_for_shrinkage():
    """A hundred thousand cells: a junction tree for the quick one, all cells for the other."""
    sizes, rng = dict.fromkeys("abcde", 10), np.random.default_rng(5)
    domain = Domain({name: Category(levels=range(size)) for name, size in sizes.items()})
    tables = {pair: rng.uniform(0.2, 1.0, (10, 10)) for pair in itertools.pairwise(sizes)}
    measured = [seen(Histogram(pair), 1e4 * table / table.sum(), 20.0) for pair, table in tables.items()]
    efforts = (QUICK, replace(THOROUGH, residuals=False))
    quick, thorough = (fit(measured, domain, total=1e4, effort=effort) for effort in efforts)
    assert isinstance(quick.hypothesis, Factored)
    assert isinstance(thorough.hypothesis, Dense)
    for scope in (("a", "b"), ("a", "e"), ("b", "c", "d")):
        one, other = (1e4 * each.hypothesis.marginal(scope) for each in (quick, thorough))
        assert np.abs(one - other).max() < 1


def test_the_same_measurements_give_the_same_bytes():
    table = a_table(10)
    one, other = (fit(exact_pairs(table), DOMAIN, total=None) for _ in range(2))
    assert one.total == other.total
    assert all(
        np.array_equal(one.hypothesis.marginal(pair), other.hypothesis.marginal(pair)) for pair in (*PAIRS, ("d",))
    )
