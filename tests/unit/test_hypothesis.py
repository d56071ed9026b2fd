"""The public guess of the table, dense and factored, beside a naive product of all factors in log space."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from discreet.answering.linear_query import linear
from discreet.data import Category, Domain, Number
from discreet.errors import ParameterError
from discreet.hypothesis import MAX_DENSE, Dense, Hypothesis, Linear, junction_tree, tensor, tree_cells
from discreet.hypothesis.graphical_model import Factored, start
from discreet.query import Among, And, Between, Count, Equals, Histogram, Not, Sum

Sizes = dict[str, int]
Update = tuple[tuple[str, ...], np.ndarray]

FALSE_ALARM = 1e-7


def sizes_of(*numbers: int) -> Sizes:
    return {f"c{i}": number for i, number in enumerate(numbers)}


def naive(sizes: Sizes, updates: Iterable[Update]) -> np.ndarray:
    """Log shares of every cell."""
    names = list(sizes)
    logs = np.zeros(tuple(sizes.values()))
    for scope, table in updates:
        index = [names.index(name) for name in scope]
        logs = logs + np.einsum(table, index, sorted(index)).reshape(
            [sizes[name] if name in scope else 1 for name in names]
        )
    return logs - logsumexp(logs)


def naive_marginal(logs: np.ndarray, sizes: Sizes, scope: tuple[str, ...]) -> np.ndarray:
    names = list(sizes)
    return np.einsum(np.exp(logs), list(range(len(names))), [names.index(name) for name in scope])


def some_scope(rng: np.random.Generator, sizes: Sizes, most: int = 3) -> tuple[str, ...]:
    names = list(sizes)
    return tuple(str(name) for name in rng.permutation(names)[: rng.integers(0, min(most, len(names)) + 1)])


def some_table(rng: np.random.Generator, sizes: Sizes, scope: tuple[str, ...]) -> np.ndarray:
    """Dense, sparse, or 0 outside a range of the first column."""
    table = 2 * rng.normal(size=[sizes[name] for name in scope])
    if scope and rng.random() < 0.5:
        table = table * (rng.random(table.shape) < 0.2)
    if scope and rng.random() < 0.5:
        low, high = sorted(rng.integers(0, table.shape[0] + 1, 2))
        table[:low] = table[high:] = 0
    return table


def some_form(rng: np.random.Generator, sizes: Sizes, scope: tuple[str, ...], outputs: tuple[int, ...]) -> Linear:
    weight = some_table(rng, sizes, scope).ravel()
    place = np.where(weight != 0, rng.integers(0, math.prod(outputs), weight.size), -1)
    return Linear(scope, tuple(sizes[name] for name in scope), outputs, place, weight)


def bits(hypothesis: Hypothesis, scopes: Iterable[tuple[str, ...]]) -> bytes:
    return b"".join(table.tobytes() for table in hypothesis.marginals(scopes))


@pytest.mark.parametrize("seed", range(25))
def test_dense_and_factored_are_the_product_cell_by_cell(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = sizes_of(*rng.integers(1, 6, rng.integers(1, 7)).tolist())
    dense, factored, updates = Dense(sizes), Factored(sizes, {}), list[Update]()
    for _ in range(5):
        scope = some_scope(rng, sizes)
        updates.append((scope, some_table(rng, sizes, scope)))
        dense.multiply(*updates[-1])
        factored.multiply(*updates[-1])
        logs = naive(sizes, updates)
        asked = [some_scope(rng, sizes, 7) for _ in range(4)]
        for hypothesis in (dense, factored, Factored(sizes, factored._logs), Dense.from_logs(sizes, logs + 7)):
            for scope, found in zip(asked, hypothesis.marginals(asked), strict=True):
                np.testing.assert_allclose(found, naive_marginal(logs, sizes, scope), rtol=1e-10)
                form = some_form(rng, sizes, scope, (2, 3))
                expected = form.of(naive_marginal(logs, sizes, scope))
                np.testing.assert_allclose(hypothesis.mean(form), expected, rtol=1e-9, atol=1e-14)


LARGE = [
    (10,) * 5,
    (2,) * 17,
    (100_000,),
    (3, 30_000, 5),
    (1, 7, 1, 300, 1, 40),
    (33, 44, 55),
    (5, 1_000, 3, 3),
    (50_000, 3),
    (3, 50_000),
    (9, 9_973, 2),
    (600, 700),
]


@pytest.mark.parametrize("shape", LARGE, ids=str)
def test_every_way_of_walking_through_memory_gives_the_same_sums(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(shape))
    sizes = sizes_of(*shape)
    for _ in range(2):
        dense, logs = Dense(sizes), np.zeros(shape)
        for _ in range(4):
            scope = some_scope(rng, sizes)
            table = some_table(rng, sizes, scope)
            dense.multiply(scope, table)
            logs = logs + tensor.lay(table, scope, list(sizes))
            shares = np.exp(logs - logsumexp(logs))
            scope = tuple(name for name in sizes if name in some_scope(rng, sizes, 4))
            marginal = shares.sum(axis=tuple(i for i, name in enumerate(sizes) if name not in scope))
            np.testing.assert_allclose(dense.marginal(scope), marginal, rtol=1e-10)
            for outputs in ((), (3,)):
                form = some_form(rng, sizes, scope, outputs)
                np.testing.assert_allclose(dense.mean(form), form.of(marginal), rtol=1e-9, atol=1e-13)


def test_questions_in_words_have_the_mean_of_their_form() -> None:
    domain = Domain({"sex": Category("f", "m"), "age": Number(0, 99, step=1), "visits": Number(0, 9, step=1)})
    sizes = {name: domain.column(name).size for name in domain.names}
    rng = np.random.default_rng(3)
    dense, factored = Dense(sizes), Factored(sizes, {})
    for scope in (("age", "sex"), ("age", "visits")):
        table = rng.normal(size=[sizes[name] for name in scope])
        dense.multiply(scope, table)
        factored.multiply(scope, table)
    old = Between("age", 65, 99)
    questions = [
        Count(),
        Count(old),
        Count(And(old, Equals("sex", "f"), Among("visits", (1, 5)))),
        Sum("visits", where=Not(old)),
        Histogram(("visits", "sex"), where=old),
        Histogram("age"),
    ]
    for question in questions:
        form = linear(question, domain)
        assert form is not None
        for hypothesis in (dense, factored):
            np.testing.assert_allclose(hypothesis.mean(form), form.of(dense.marginal(form.scope)), rtol=1e-12)
            assert hypothesis.mean(form).shape == form.outputs


@pytest.mark.parametrize("make", [Dense, Factored])
def test_one_multiplication_of_the_uniform_has_the_closed_form(make: type[Dense] | type[Factored]) -> None:
    hypothesis = make(sizes_of(4, 5, 6))
    hypothesis.multiply(("c1",), [0.0, 0.7, 0.0, 0.0, 0.0])
    grown = math.exp(0.7) / (4 + math.exp(0.7))
    np.testing.assert_allclose(hypothesis.marginal(("c1",))[1], grown, rtol=1e-14)
    np.testing.assert_allclose(hypothesis.marginal(("c2", "c1"))[3, 1], grown / 6, rtol=1e-13)


@pytest.mark.parametrize("make", [Dense, Factored])
def test_marginals_add_up_and_agree_with_each_other(make: type[Dense] | type[Factored]) -> None:
    rng = np.random.default_rng(5)
    sizes = sizes_of(3, 4, 5, 2)
    hypothesis = make(sizes)
    for scope in (("c0", "c1"), ("c2", "c1"), ("c3",)):
        hypothesis.multiply(scope, 3 * rng.normal(size=[sizes[name] for name in scope]))
    both = hypothesis.marginal(("c2", "c0"))
    assert both.shape == (5, 3)
    assert both.sum() == pytest.approx(1, abs=1e-14)
    np.testing.assert_allclose(both.sum(axis=1), hypothesis.marginal(("c2",)), rtol=1e-12)
    np.testing.assert_allclose(both.T, hypothesis.marginal(("c0", "c2")), rtol=1e-12)


@pytest.mark.parametrize("make", [Dense, Factored])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1), (3, 1)])
def test_the_empty_scope_and_columns_of_one_value_are_ordinary(
    make: type[Dense] | type[Factored], shape: tuple[int, ...]
) -> None:
    sizes = sizes_of(*shape)
    hypothesis = make(sizes)
    hypothesis.multiply((), np.array(3.0))
    hypothesis.multiply(tuple(sizes), np.full(shape, -2.0))
    nothing = hypothesis.marginal(())
    assert nothing.shape == ()
    assert nothing == 1.0
    np.testing.assert_allclose(hypothesis.marginal(tuple(sizes)), np.full(shape, 1 / math.prod(shape)))
    assert hypothesis.cells == math.prod(shape)
    assert hypothesis.mean(Linear((), (), (), np.zeros(1, dtype=np.int64), np.ones(1))) == 1.0
    drawn = hypothesis.sample(5, seed=1)
    assert list(drawn) == list(sizes)
    assert all(codes.dtype == np.int64 and codes.shape == (5,) for codes in drawn.values())


@pytest.mark.parametrize("step", [4.0, -4.0, 0.3, -0.3])
@pytest.mark.parametrize("make", [Dense, Factored])
def test_two_thousand_updates_in_one_direction_stay_correct(make: type[Dense] | type[Factored], step: float) -> None:
    sizes = sizes_of(6, 5, 4)
    hypothesis, table = make(sizes), np.zeros((6, 4))
    table[1:4, 2] = step
    for _ in range(2000):
        hypothesis.multiply(("c0", "c2"), table)
    expected = naive_marginal(naive(sizes, [(("c0", "c2"), 2000 * table)]), sizes, ("c0", "c2"))
    np.testing.assert_allclose(hypothesis.marginal(("c0", "c2")), expected, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("seed", range(3))
def test_a_long_run_that_drives_cells_down_and_up_again_follows_log_space(seed: int) -> None:
    """Phases of a hundred updates with one sign pattern each: log weights wander over thousands of units."""
    rng = np.random.default_rng(seed)
    sizes = sizes_of(4, 3, 5)
    dense, updates = Dense(sizes), dict[tuple[str, ...], np.ndarray]()
    spread = 0.0
    for _ in range(25):
        scope = (("c0",), ("c1", "c2"), ("c2", "c0"), ("c0", "c1", "c2"))[rng.integers(4)]
        table = rng.choice([-4.0, 0.0, 4.0], size=[sizes[name] for name in scope])
        for _ in range(100):
            dense.multiply(scope, table)
        updates[scope] = updates.get(scope, 0) + 100 * table
        logs = naive(sizes, updates.items())
        spread = max(spread, float(logs.max() - logs.min()))
        found = dense.marginal(("c0", "c1", "c2"))
        np.testing.assert_allclose(found, np.exp(logs), rtol=1e-9, atol=1e-17)
        form = some_form(rng, sizes, ("c0",), ())
        np.testing.assert_allclose(
            dense.mean(form), form.of(naive_marginal(logs, sizes, ("c0",))), rtol=1e-9, atol=1e-15
        )
    assert spread > 1500  # more than float64 holds: weights were forgotten on the way


@pytest.mark.parametrize("step", [4.0, 100.0, 700.0, 3000.0])
def test_a_cell_that_underflowed_comes_back(step: float) -> None:
    dense = Dense(sizes_of(5, 40))
    down = np.zeros(5)
    down[3] = -step
    times = math.ceil(3000 / step)
    for _ in range(times):
        dense.multiply(("c0",), down)
    assert dense.marginal(("c0",))[3] == 0
    for _ in range(times):
        dense.multiply(("c0",), -down)
    np.testing.assert_allclose(dense.marginal(("c0",)), np.full(5, 0.2), rtol=1e-11)


def test_a_forgotten_cell_comes_back_when_all_others_fall() -> None:
    dense = Dense(sizes_of(3, 4))
    dense.multiply(("c0",), [-2000.0, 0.0, 0.0])
    for _ in range(400):
        dense.multiply(("c0",), [0.0, -5.0, -5.0])
    dense.multiply(("c0",), [0.0, 1.0, 0.0])
    np.testing.assert_allclose(dense.marginal(("c0",)), np.array([1, math.e, 1]) / (2 + math.e), rtol=1e-11)


def test_a_question_about_few_cells_is_divided_by_the_new_total_after_a_rebuild() -> None:
    dense, one = Dense(sizes_of(10, 9000)), np.eye(10)[4]
    form = Linear(("c0",), (10,), (), np.where(one > 0, 0, -1), one)
    assert dense.mean(form) == pytest.approx(0.1, rel=1e-13)
    for step in (-2000.0, 2001.0, -0.5, 699.5):
        dense.multiply(("c0",), step * one)
    assert dense.mean(form) == pytest.approx(1 / (1 + 9 * math.exp(-700)), rel=1e-13)
    dense.multiply(("c0",), -699.0 * one)
    assert dense.mean(form) == pytest.approx(math.e / (math.e + 9), rel=1e-11)


def test_weights_are_rebuilt_only_after_hundreds_of_units_of_exponent(monkeypatch: pytest.MonkeyPatch) -> None:
    rebuilt = []
    rebuild = Dense._rebuild
    monkeypatch.setattr(Dense, "_rebuild", lambda self: (rebuilt.append(1), rebuild(self))[1])
    dense = Dense(sizes_of(10, 10))
    for step in range(3_000):
        dense.multiply(("c0",), np.where(np.arange(10) == step % 10, 0.4, -0.4))
    assert 1 <= len(rebuilt) <= 5


def test_tables_of_exponents_never_outgrow_the_weights() -> None:
    rng = np.random.default_rng(8)
    sizes = sizes_of(3, 3, 3, 3)
    dense, updates = Dense(sizes), list[Update]()
    for _ in range(60):
        scope = tuple(name for name in sizes if rng.random() < 0.7)
        updates.append((scope, 100 * rng.normal(size=[3] * len(scope))))
        dense.multiply(*updates[-1])
        assert sum(table.size for table in dense._logs.values()) <= 2 * dense.cells
    np.testing.assert_allclose(dense.marginal(tuple(sizes)), np.exp(naive(sizes, updates)), rtol=1e-8, atol=1e-17)


@pytest.mark.parametrize("make", [Dense, Factored])
def test_what_was_read_in_between_does_not_change_a_byte(make: type[Dense] | type[Factored]) -> None:
    sizes = sizes_of(40, 50, 60)
    scopes = [("c0",), ("c1", "c2"), ("c2", "c0")]

    def run(*, reading: bool) -> bytes:
        rng = np.random.default_rng(9)
        hypothesis, form = make(sizes), some_form(np.random.default_rng(1), sizes, ("c0",), ())
        for _ in range(120):
            scope = scopes[rng.integers(3)]
            hypothesis.multiply(scope, 8 * rng.normal(size=[sizes[name] for name in scope]))
            if reading:
                hypothesis.mean(form)
                hypothesis.sample(3, seed=1)
                hypothesis.marginals(scopes)
        return bits(hypothesis, scopes) + hypothesis.mean(form).tobytes() + hypothesis.sample(9, seed=2)["c1"].tobytes()

    assert run(reading=True) == run(reading=False)


@pytest.mark.parametrize("make", [Dense, Factored])
def test_a_copy_goes_its_own_way(make: type[Dense] | type[Factored]) -> None:
    sizes = sizes_of(4, 5)
    hypothesis = make(sizes)
    hypothesis.multiply(("c0", "c1"), np.arange(20.0).reshape(4, 5) / 9)
    before = bits(hypothesis, [("c0", "c1")])
    other = hypothesis.copy()
    assert bits(other, [("c0", "c1")]) == before
    other.multiply(("c0", "c1"), np.eye(4, 5))
    other.multiply(("c1",), np.arange(5.0))
    assert bits(hypothesis, [("c0", "c1")]) == before != bits(other, [("c0", "c1")])


@pytest.mark.parametrize("make", [Dense, Factored])
def test_tables_that_were_given_are_not_changed_and_not_kept(make: type[Dense] | type[Factored]) -> None:
    hypothesis, table = make(sizes_of(3)), np.array([0.0, 1.0, 2.0])
    hypothesis.multiply(("c0",), table)
    hypothesis.multiply(("c0",), table)
    assert table.tolist() == [0, 1, 2]
    before = hypothesis.marginal(("c0",))
    table[:] = 50
    hypothesis.multiply((), np.array(0.0))
    assert hypothesis.marginal(("c0",)).tobytes() == before.tobytes()
    before[:] = 0
    assert hypothesis.marginal(("c0",)).sum() == pytest.approx(1)


def test_impossible_cells_have_share_zero_and_are_never_drawn() -> None:
    sizes = sizes_of(3, 4, 2)
    logs = np.random.default_rng(2).normal(size=(3, 4))
    logs[1, :] = logs[:, 2] = -np.inf
    tied = np.random.default_rng(3).normal(size=(4, 2))
    dense = Dense.from_logs(sizes, logs[:, :, None] + tied)
    factored = Factored(sizes, {("c0", "c1"): logs, ("c1", "c2"): tied})
    np.testing.assert_allclose(dense.marginal(tuple(sizes)), factored.marginal(tuple(sizes)), rtol=1e-12)
    for hypothesis in (dense, factored):
        hypothesis.multiply(("c0",), [0.0, 900.0, 0.0])
        assert hypothesis.marginal(("c0",))[1] == 0
        assert hypothesis.marginal(("c2", "c1")).sum() == pytest.approx(1)
        drawn = hypothesis.sample(2000, seed=4)
        assert not (drawn["c0"] == 1).any()
        assert not (drawn["c1"] == 2).any()


def test_logs_of_any_offset_are_the_same_distribution() -> None:
    logs = np.random.default_rng(6).normal(size=(4, 6))
    for offset in (-1e5, 0.0, 1e5):
        dense = Dense.from_logs(sizes_of(4, 6), logs + offset)
        np.testing.assert_allclose(dense.marginal(("c0", "c1")), np.exp(logs - logsumexp(logs)), rtol=1e-10)


# ---- junction trees -------------------------------------------------------------------------------------------------


def test_a_chain_of_ten_to_the_thirty_cells_is_answered_exactly() -> None:
    sizes = sizes_of(*[6] * 40)
    rng = np.random.default_rng(11)
    tables = [rng.normal(size=(6, 6)) for _ in range(39)]
    chain = start(sizes)
    assert isinstance(chain, Factored)
    assert chain.cells == 6**40 > 10**30
    for i, table in enumerate(tables):
        chain.multiply((f"c{i}", f"c{i + 1}"), table)

    def product(first: int, last: int) -> np.ndarray:
        made = np.eye(6)
        for table in tables[first:last]:
            made = made @ np.exp(table)
            made /= made.max()
        return made

    for first, last in ((0, 39), (0, 1), (17, 18), (5, 30)):
        joint = product(0, first).sum(axis=0)[:, None] * product(first, last) * product(last, 39).sum(axis=1)[None, :]
        np.testing.assert_allclose(chain.marginal((f"c{first}", f"c{last}")), joint / joint.sum(), rtol=1e-11)


def test_ten_thousand_units_of_exponent_along_a_chain_neither_overflow_nor_vanish() -> None:
    sizes = sizes_of(*[3] * 12)
    tables = {(f"c{i}", f"c{i + 1}"): 1e4 * np.random.default_rng(i).normal(size=(3, 3)) for i in range(11)}
    expected = naive(sizes, tables.items())
    found = Factored(sizes, tables)
    for scope in (("c0", "c11"), ("c3", "c4")):
        np.testing.assert_allclose(found.marginal(scope), naive_marginal(expected, sizes, scope), atol=1e-9)


def test_columns_in_no_table_are_uniform_and_cost_nothing() -> None:
    sizes = sizes_of(3, 10**9, 4, 10**12)
    found = Factored(sizes, {("c0", "c2"): np.random.default_rng(1).normal(size=(3, 4))})
    assert found.marginal(("c2", "c0")).shape == (4, 3)
    assert set(found.sample(100, seed=1)) == set(sizes)
    wide = Factored(sizes_of(3, 5, 4), {("c0", "c2"): np.random.default_rng(1).normal(size=(3, 4))})
    np.testing.assert_allclose(
        wide.marginal(("c1", "c2")), np.outer(np.full(5, 0.2), found.marginal(("c2",))), rtol=1e-13
    )


def test_scopes_inside_others_are_merged() -> None:
    sizes = sizes_of(2, 3, 4)
    found = Factored(sizes, {("c0",): np.ones(2), ("c1", "c0"): np.zeros((3, 2)), ("c2",): np.arange(4.0)})
    assert set(found.scopes) == {("c0", "c1"), ("c2",)}
    found.multiply(("c2", "c0", "c1"), np.zeros((4, 2, 3)))
    assert found.scopes == (("c0", "c1", "c2"),)
    found.multiply(("c1",), np.ones(3))
    assert found.scopes == (("c0", "c1", "c2"),)
    np.testing.assert_allclose(found.marginal(("c2",)), np.exp(np.arange(4.0)) / np.exp(np.arange(4.0)).sum())


def test_tree_cells_are_those_of_the_known_widths() -> None:
    sizes = sizes_of(*[6] * 40)
    names = list(sizes)
    ring = [(names[i], names[(i + 1) % 40]) for i in range(40)]
    assert tree_cells(sizes, []) == tree_cells(sizes, [()]) == 1
    assert tree_cells(sizes, ring[:-1]) == 36
    assert tree_cells(sizes, ring) == 6**3
    assert tree_cells(sizes, [(names[0], name) for name in names[1:]]) == 36
    assert tree_cells(sizes, [tuple(names[i : i + 4]) for i in range(37)]) == 6**4
    assert tree_cells(sizes, [(a, b) for a in names[:9] for b in names[:9] if a < b]) == 6**9
    grid = [(f"c{5 * i + j}", f"c{5 * i + j + 1}") for i in range(5) for j in range(4)]
    grid += [(f"c{5 * i + j}", f"c{5 * i + j + 5}") for i in range(4) for j in range(5)]
    assert tree_cells(sizes, grid) == 6**6  # the treewidth of a 5 by 5 grid is 5
    assert tree_cells(sizes, list(reversed(grid))) == 6**6
    assert tree_cells(sizes, [*grid, ("c0",), ("c1", "c0")]) == 6**6


def test_a_column_of_many_values_is_eliminated_where_its_table_is_small() -> None:
    sizes = {"wide": 10_000, "a": 2, "b": 2, "c": 2, "d": 2}
    square = [("a", "wide"), ("wide", "b"), ("b", "c"), ("c", "a")]
    assert tree_cells(sizes, square) == 40_000  # not 10,000 x 2 x 2 twice, nor with c in it


def test_the_better_of_two_orders_of_elimination_is_taken() -> None:
    rng = np.random.default_rng(41)
    wins = {True: 0, False: 0}
    for _ in range(150):
        sizes = sizes_of(*rng.choice([2, 3, 50], 9).tolist())
        scopes = [tuple(rng.choice(list(sizes), 2, replace=False).tolist()) for _ in range(13)]
        masks = [sum(1 << int(name[1:]) for name in scope) for scope in scopes]
        logs = [math.log(size) for size in sizes.values()]
        found = {
            way: max(
                math.prod(size for i, size in enumerate(sizes.values()) if clique >> i & 1)
                for clique in junction_tree.eliminate(masks, logs, by_fill=way)
            )
            for way in wins
        }
        assert tree_cells(sizes, scopes) == min(found.values())
        for way in wins:
            wins[way] += found[way] < found[not way]
    assert min(wins.values()) > 0


def test_a_tree_has_no_clique_inside_another() -> None:
    sizes = sizes_of(*[6] * 40)
    chain = [(f"c{i}", f"c{i + 1}") for i in range(39)]
    assert sorted(junction_tree.tree_of(sizes, chain).cliques) == sorted(chain)
    assert junction_tree.tree_of(sizes, [*chain, ("c7",)], ("c20", "c21")).cliques[0] == ("c20", "c21")


@pytest.mark.parametrize("seed", range(12))
def test_tangled_scopes_are_exact_too(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = sizes_of(*rng.integers(2, 4, 9).tolist())
    scopes = [tuple(str(name) for name in rng.choice(list(sizes), 2, replace=False)) for _ in range(11)]
    updates = [(scope, rng.normal(size=[sizes[name] for name in scope])) for scope in scopes]
    found = Factored(sizes)
    for update in updates:
        found.multiply(*update)
    logs = naive(sizes, updates)
    for scope in [*scopes, ("c8", "c0"), ("c3", "c7", "c1"), tuple(sizes)]:
        np.testing.assert_allclose(found.marginal(scope), naive_marginal(logs, sizes, scope), rtol=1e-10)


def test_scopes_that_tangle_are_refused_by_name_and_size_and_change_nothing() -> None:
    sizes = sizes_of(*[70] * 10)
    found = Factored(sizes)
    for i in range(9):
        found.multiply((f"c{i}", f"c{i + 1}"), np.random.default_rng(i).normal(size=(70, 70)))
    with pytest.raises(ParameterError, match=r"\['c0', 'c3', 'c6', 'c9'\].*24,010,000 cells; at most 16,777,216"):
        found.marginal(("c0", "c3", "c6", "c9"))
    assert found.marginal(("c0", "c9")).shape == (70, 70)
    pair = np.random.default_rng(1).normal(size=(300, 300))
    path = Factored(sizes_of(300, 300, 300), {("c0", "c1"): pair, ("c1", "c2"): pair})
    before = bits(path, [("c0", "c1"), ("c2",)])
    with pytest.raises(ParameterError, match=r"tangle.*\['c0', 'c1', 'c2'\].*27,000,000 cells; at most 16,777,216"):
        path.multiply(("c2", "c0"), pair)
    with pytest.raises(ParameterError, match=r"tangle: answering about \['c0', 'c2'\].*27,000,000 cells"):
        path.marginal(("c2", "c0"))
    assert bits(path, [("c0", "c1"), ("c2",)]) == before
    with pytest.raises(ParameterError, match="tangle"):
        Factored(path.sizes, {("c0", "c1"): pair, ("c1", "c2"): pair, ("c0", "c2"): pair})


# ---- drawing rows ---------------------------------------------------------------------------------------------------


def goodness(codes: dict[str, np.ndarray], shares: np.ndarray) -> float:
    """The p-value of drawn rows under shares over all columns; rare cells together."""
    rows = len(next(iter(codes.values())))
    counts = np.bincount(np.ravel_multi_index(tuple(codes.values()), shares.shape), minlength=shares.size)
    expected = rows * shares.ravel()
    rare = expected < 20
    counts = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    kept = expected > 0
    assert not counts[~kept].any()
    statistic = ((counts - expected)[kept] ** 2 / expected[kept]).sum()
    return float(stats.chi2.sf(statistic, kept.sum() - 1))


@pytest.mark.parametrize("make", [Dense, Factored])
def test_rows_are_drawn_from_the_hypothesis(make: type[Dense] | type[Factored]) -> None:
    rng = np.random.default_rng(21)
    sizes = sizes_of(3, 2, 4, 1, 3, 2)
    updates = [
        (scope, rng.normal(size=[sizes[name] for name in scope]))
        for scope in (("c0", "c1"), ("c2", "c1"), ("c2", "c4"), ("c4", "c0"))
    ]
    hypothesis = make(sizes)
    for update in updates:
        hypothesis.multiply(*update)
    shares = np.exp(naive(sizes, updates))
    drawn = hypothesis.sample(200_000, seed=22)
    assert list(drawn) == list(sizes)
    assert goodness(drawn, shares) > FALSE_ALARM
    assert goodness(drawn, np.exp(naive(sizes, updates[:-1]))) < FALSE_ALARM  # the test can tell
    assert goodness(hypothesis.sample(200_000), shares) > FALSE_ALARM
    swapped = {**drawn, "c1": np.roll(drawn["c1"], 1)}
    assert goodness(swapped, shares) < FALSE_ALARM


def test_rows_of_a_long_chain_have_its_pairs() -> None:
    sizes = sizes_of(*[4] * 30)
    rng = np.random.default_rng(23)
    chain = Factored(sizes, {(f"c{i}", f"c{i + 1}"): rng.normal(size=(4, 4)) for i in range(29)})
    drawn = chain.sample(50_000, seed=24)
    for pair in (("c0", "c1"), ("c14", "c15"), ("c3", "c6"), ("c0", "c29")):
        assert goodness({name: drawn[name] for name in pair}, chain.marginal(pair)) > FALSE_ALARM


def test_rows_are_drawn_across_blocks_of_memory_in_no_order() -> None:
    cells = 9 * tensor.Sums.BLOCK + 7
    dense = Dense({"x": cells})
    tilt = np.linspace(0, 2, cells)
    dense.multiply(("x",), tilt)
    codes = dense.sample(100_000, seed=25)["x"]
    edges = np.linspace(0, cells, 200).astype(np.int64)
    shares = np.add.reduceat(dense.marginal(("x",)), edges[:-1])
    assert goodness({"x": np.searchsorted(edges[:-1], codes, side="right") - 1}, shares) > FALSE_ALARM
    halves = codes[: len(codes) // 2].mean(), codes[len(codes) // 2 :].mean()
    assert abs(halves[0] - halves[1]) < 6 * codes.std() * math.sqrt(4 / len(codes))


@pytest.mark.parametrize("make", [Dense, Factored])
def test_a_seed_fixes_the_rows(make: type[Dense] | type[Factored]) -> None:
    hypothesis = make(sizes_of(9, 9, 9))
    hypothesis.multiply(("c0", "c1"), np.random.default_rng(0).normal(size=(9, 9)))
    first, second, other = (hypothesis.sample(40, seed=seed) for seed in (1, 1, 2))
    assert all((first[name] == second[name]).all() for name in first)
    assert any((first[name] != other[name]).any() for name in first)
    assert all(len(codes) == 0 for codes in hypothesis.sample(0, seed=1).values())


def test_drawing_by_bisection_hits_each_column_on_exactly_its_share() -> None:
    shares = np.array([[0.0, 1.0, 0.0, 3.0, 0.0], [2.0, 0.0, 2.0, 0.0, 0.0]])
    grid = np.array([*(np.arange(4000) + 0.5) / 4000, 0.0, 0.25, 0.5, np.nextafter(1, 0)])
    for row, expected in ((0, [0, 1001, 0, 3003, 0]), (1, [2002, 0, 2002, 0, 0])):
        found = tensor.draw(shares, np.full(len(grid), row), grid)
        assert np.bincount(found, minlength=5).tolist() == expected


# ---- memory ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_boxes_hold_every_used_cell_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 30, rng.integers(0, 4)).tolist())
    steps = [int(step) for step in np.cumprod([2.0 ** rng.integers(0, 12), *(2.0 ** rng.integers(2, 8, len(shape)))])]
    used = rng.random(shape) < rng.choice([0.0, 0.01, 0.3, 1.0])
    for axis in range(len(shape)):
        used = used & (rng.random(shape[axis]) < 0.5).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    held = np.zeros(shape, dtype=np.int64)
    for box in tensor.boxes(used, steps[: len(shape)][::-1]):
        held[box] += 1
    assert (held <= 1).all()
    assert (held[used] == 1).all()


def test_a_question_about_part_of_the_first_column_touches_only_that_part() -> None:
    dense = Dense(sizes_of(10, 300, 300))
    used = np.zeros((10, 300), dtype=bool)
    used[3:5, 20:60] = True
    ((view, part),) = dense._boxes(("c0", "c1"), used)
    assert view.shape == (2, 40, 300)
    assert part == (slice(3, 5), slice(20, 60))
    assert np.shares_memory(view, dense._weights)
    ends = np.isin(np.arange(10), (0, 8, 9))
    assert [part for _, part in dense._boxes(("c0",), ends)] == [(slice(0, 1),), (slice(8, 10),)]


def test_the_total_follows_what_was_written() -> None:
    rng = np.random.default_rng(31)
    weights = rng.random((7, 50, 11, 90))
    sums = tensor.Sums(weights)
    for _ in range(200):
        view = weights[tuple(slice(*sorted(rng.choice(size + 1, 2, replace=False))) for size in weights.shape[:2])]
        view *= rng.uniform(0.5, 1.5)
        sums.wrote(view)
        assert sums.total() == tensor.Sums(weights).total()
    assert sums.total() == pytest.approx(math.fsum(weights.ravel()), rel=1e-13)


# ---- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [Dense, Factored])
def test_bad_arguments_are_refused_with_what_was_found_and_expected(make: type[Dense] | type[Factored]) -> None:
    sizes = sizes_of(2, 3)
    hypothesis = make(sizes)
    before = bits(hypothesis, [("c0", "c1")])
    refused = [
        (lambda: hypothesis.marginal(("c0", "age")), r"\['age'\].*\['c0', 'c1'\]"),
        (lambda: hypothesis.marginal(("c0", "c0")), "twice"),
        (lambda: hypothesis.marginal("c0"), "tuple of columns"),
        (lambda: hypothesis.multiply(("c1",), np.zeros(2)), r"\(3,\), not \(2,\)"),
        (lambda: hypothesis.multiply(("c1", "c0"), np.zeros((2, 3))), r"\(3, 2\), not \(2, 3\)"),
        (lambda: hypothesis.multiply(("c0",), [0.0, np.nan]), "not finite"),
        (lambda: hypothesis.multiply(("c0",), [0.0, np.inf]), "not finite"),
        (lambda: hypothesis.multiply(("c0",), [0.0, -np.inf]), "not finite"),
        (lambda: hypothesis.mean(some_form(np.random.default_rng(0), sizes_of(5), ("c0",), ())), r"\(5,\).*\(2,\)"),
        (lambda: hypothesis.sample(-1), "at least 0, not -1"),
        (lambda: hypothesis.sample(True), "at least 0, not True"),
        (lambda: make({"c0": 0}), "at least 1"),
        (lambda: make({"c0": 2.0}), "at least 1"),  # type: ignore[dict-item]
    ]
    for act, message in refused:
        with pytest.raises(ParameterError, match=message):
            act()
    assert bits(hypothesis, [("c0", "c1")]) == before


def test_domains_and_tables_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ParameterError, match="at most 100,000,000 cells, not 100,000,001"):
        Dense({"x": MAX_DENSE + 1})
    with pytest.raises(ParameterError, match=r"\(2, 3\), not \(3, 2\)"):
        Dense.from_logs(sizes_of(2, 3), np.zeros((3, 2)))
    with pytest.raises(ParameterError, match="not finite"):
        Dense.from_logs(sizes_of(2), np.full(2, -np.inf))
    with pytest.raises(ParameterError, match="not finite"):
        Factored(sizes_of(2), {("c0",): [0.0, np.nan]})
    with pytest.raises(ParameterError, match=r"\['y'\].*\['c0'\]"):
        tree_cells(sizes_of(2), [("c0", "y")])


def test_the_kind_is_chosen_by_the_number_of_cells() -> None:
    assert isinstance(start(sizes_of(10, 10)), Dense)
    assert isinstance(start(sizes_of(MAX_DENSE + 1)), Factored)
    assert start(sizes_of(*[2] * 100)).cells == 2**100
