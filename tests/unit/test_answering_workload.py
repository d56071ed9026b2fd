"""A known workload: one release with one price, proven bounds, and averaged multiplicative weights."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from discreet.answering import averaged_weights as mwem
from discreet.answering.averaged_weights import AveragedWeights, averaged_weights
from discreet.answering.workload import Marginals, answers, bound, marginals, methods
from discreet.data import Category, Domain, Number, Table
from discreet.errors import ParameterError
from discreet.funds import Funds
from discreet.guarantee import Budget, Guarantee
from discreet.ledger import Ledger
from discreet.mechanisms import Gaussian, Laplace
from discreet.method import Method, Refused, choose
from discreet.query import And, Between, Count, Equals, Histogram, KeyCount, Sum
from discreet.records import canonical, record, revive
from discreet.release import release
from discreet.rng import SeededRng
from tests.pac_game import assert_honest

DOMAIN = Domain(a=Category("p", "q", "r"), b=Category(levels=range(4)), x=Number(0, 5, step=0.5))
RELATIONS = ["add-remove", "replace-one"]
MIXED = (Histogram(("b", "a")), Count(Equals("a", "q")), Sum("x", Equals("b", 1)), Histogram("b", Between("x", 1, 2)))
PAIRS = [Histogram(pair) for pair in itertools.combinations(DOMAIN.names, 2)]
CLASSES = {each.NAME: each for each in (Marginals, AveragedWeights, Histogram, Count, Sum, And, Equals, Between)}
BETA = Fraction(1, 20)


def a_table(rows=400, neighbours="replace-one", seed=1, **more):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, rows)
    columns = {
        "a": np.array(["p", "q", "r"])[a],
        "b": np.minimum(rng.geometric(0.6, rows) - 1 + (a == 2), 3),
        "x": rng.integers(0, 11, rows) / 2,
    }
    size = {"size": rows} if neighbours == "add-remove" else {}
    return Table(columns, DOMAIN, neighbours=neighbours, **size, **more)


def truth(query, table):
    return np.asarray(table.exact_sum(query)) * float(query.unit(table.facts))


# Several queries at once.


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize(("kind", "alone"), [("gaussian", Gaussian), ("laplace", Laplace)])
def test_the_price_is_that_of_the_parts_one_after_the_other(kind, alone, neighbours):
    facts, scales = a_table(neighbours=neighbours).facts, (3, 5, Fraction(7, 2), 3)
    found = Marginals(MIXED, scales, kind).guarantee(facts)
    apart = [alone(query, scale).guarantee(facts) for query, scale in zip(MIXED, scales, strict=True)]
    expected = sum(apart, Guarantee.nothing(facts.neighbours))
    assert found.pure == expected.pure
    assert found.renyi == pytest.approx(expected.renyi, rel=1e-9)


def test_several_rows_a_person_cost_more():
    rows = {"a": ["p", "q"] * 3, "b": [0] * 6, "x": [1.0] * 6, "who": [1, 1, 2, 2, 3, 3]}
    table = Table(rows, DOMAIN, unit="who", rows_per_unit=2)
    one = Marginals([Histogram("a")], [4]).guarantee(a_table(6).facts)
    two = Marginals([Histogram("a")], [4]).guarantee(table.facts)
    assert two.renyi == pytest.approx([4 * each for each in one.renyi], rel=1e-9)


def test_every_answer_has_its_shape_and_unit_and_little_noise_changes_little():
    table = a_table()
    got = Marginals(MIXED, [Fraction(1, 100)] * 4).run(table, SeededRng(1))
    assert [np.shape(each) for each in got] == [(4, 3), (), (), (4,)]
    assert isinstance(got[1], int)
    assert isinstance(got[2], float)
    for query, value in zip(MIXED, got, strict=True):
        assert np.array_equal(value, truth(query, table))


def test_the_rows_are_read_once():
    table, reads = a_table(), []

    class Watched:
        facts = table.facts

        def exact_sum(self, partial):
            reads.append(partial)
            return table.exact_sum(partial)

    Marginals(MIXED, [1] * 4).run(Watched(), SeededRng(1))
    assert len(reads) == 1


def test_measurements_have_the_scales_of_the_release():
    table = a_table()
    mechanism = Marginals(MIXED, [1, 2, 3, 4], "laplace")
    measured = mechanism.measured(mechanism.run(table, SeededRng(2)), table.facts, entry=7)
    assert [each.query for each in measured] == list(MIXED)
    assert [(each.kind, each.scale, each.entry) for each in measured] == [
        ("laplace", scale, 7) for scale in (1, 2, 3, 4)
    ]
    assert measured[2].unit == 0.5


@pytest.mark.parametrize(
    "mechanism", [Marginals(MIXED, [1, 2, 3, 4], "laplace"), AveragedWeights(MIXED[:2], 3, "0.5", "0.1", 400)]
)
def test_records_come_back(mechanism):
    stored = record(mechanism)
    canonical(stored)
    assert revive(stored, CLASSES) == mechanism


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (([], []), "one or more"),
        (([KeyCount("a")], [1]), "KeyCount"),
        (([Count()], [1, 2]), "one scale"),
        (([Count()], [0]), "> 0"),
        (([Count()], [1], "uniform"), "gaussian"),
    ],
)
def test_wrong_releases_are_refused(given, text):
    with pytest.raises(ParameterError, match=text):
        Marginals(*given)


# Ways and bounds.


def test_the_way_with_the_least_bound_is_taken_and_every_mechanism_is_admitted():
    facts = a_table(2000).facts
    budget = Budget(1, "1e-6")
    ways = methods([*PAIRS, Count(Equals("a", "p"))], facts, funds=Funds.of(budget), beta=BETA)
    offers = [way.offer(facts.size) for way in ways if isinstance(way, Method)]
    assert {name.split(",")[0] for name in ways.names} == {
        *("marginals", "questions", "histogram", "residuals", "weights")
    }
    assert all(offer.mechanism.guarantee(facts).within(budget) for offer in offers)
    assert choose(ways, "auto", facts.size) == min(offers, key=lambda offer: float(offer.promise))
    assert all(way.reason for way in ways if isinstance(way, Refused))


def test_a_pure_budget_has_only_laplace_noise():
    facts = a_table().facts
    ways = methods(PAIRS, facts, funds=Funds.of(Budget(1)), beta=BETA)
    possible = {way.name for way in ways if isinstance(way, Method)}
    assert possible == {"marginals, laplace noise", "histogram, laplace noise", "weights"}


def test_the_whole_budget_is_spent():
    table = a_table(neighbours="add-remove")
    ledger = Ledger.in_memory(Budget(1, "1e-6"), table, failure_share=0)
    mechanism = marginals(PAIRS, table.facts, funds=ledger.funds())
    release(mechanism, table, ledger=ledger)
    assert not ledger.admits(Gaussian(Count(), 2000))


def test_one_cell_has_the_bound_of_its_noise_and_a_sum_of_cells_a_larger_one():
    facts = a_table(neighbours="add-remove").facts
    whole = Marginals([Histogram(("a", "b"))], [10])
    one = bound([Histogram(("a", "b"))], whole, facts, beta=BETA)
    assert one == 10 * math.ceil(28.7) / 10 == 29  # the normal's quantile at 0.025 / 12
    four = bound([Histogram("a")], whole, facts, beta=BETA)
    assert four == pytest.approx(1 + 10 * math.sqrt(4) * norm.isf(0.05 / (2 * 3)), rel=1e-3)


def test_a_public_number_of_rows_halves_what_must_be_read():
    most = [Count(Between("x", 0, 4))]  # nine values of eleven
    known, unknown = (
        bound(most, Marginals([Histogram("x")], [10]), a_table(neighbours=kind).facts, beta=BETA)
        for kind in ("replace-one", "add-remove")
    )
    assert unknown == pytest.approx(1 + 10 * math.sqrt(9) * norm.isf(0.05 / 2), rel=1e-3)
    assert known < 0.7 * unknown


def test_what_is_not_released_cannot_be_answered():
    with pytest.raises(ParameterError, match="says nothing"):
        bound([Histogram("a")], Marginals([Histogram("b")], [1]), a_table().facts, beta=BETA)


@pytest.mark.parametrize("questions", [[], [KeyCount("a")], ["SELECT 1"]])
def test_a_workload_is_made_of_questions(questions):
    facts = a_table().facts
    with pytest.raises(ParameterError):
        methods(questions, facts, funds=Funds.of(Budget(1)), beta=BETA)


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("method", ["marginals", "questions", "histogram"])
def test_the_bounds_of_all_answers_hold_together(method, neighbours):
    table = a_table(800, neighbours, seed=3)
    questions = [*PAIRS, *MIXED]
    mechanism = marginals(questions, table.facts, funds=Funds.of(Budget(2, "1e-4")), method=method)
    true, runs, lost, rng = [truth(query, table) for query in questions], 15, 0, SeededRng(5)
    for _ in range(runs):
        found = answers(questions, mechanism, mechanism.run(table, rng), table.facts, beta=BETA)
        lost += any(
            (np.abs(value - exact) > bound + 1e-9).any() for (value, bound), exact in zip(found, true, strict=True)
        )
    assert_honest(lost, runs, float(BETA))


def test_answers_lie_where_the_release_says_the_truth_is():
    table = a_table(800)
    mechanism = Marginals([Histogram(("a", "b"))], [5])
    value = mechanism.run(table, SeededRng(6))
    ((read, errors),) = answers([Histogram(("a", "b"))], mechanism, value, table.facts, beta=BETA)
    error = bound([Histogram(("a", "b"))], mechanism, table.facts, beta=BETA)
    assert (np.abs(read - value[0]) <= error).all()
    low, high = np.maximum(value[0] - error, 0), value[0] + error
    assert errors == pytest.approx(np.maximum(high - read, read - low))


def test_the_fit_is_nearer_to_the_truth_than_what_was_released():
    table = a_table(800, seed=4)
    mechanism = Marginals(PAIRS, [20] * 3)
    fitted, released = 0.0, 0.0
    for seed in range(10):
        value = mechanism.run(table, SeededRng(seed))
        found = answers(PAIRS, mechanism, value, table.facts, beta=BETA)
        for query, (one, _), noisy in zip(PAIRS, found, value, strict=True):
            fitted += np.abs(one - truth(query, table)).sum()
            released += np.abs(noisy - truth(query, table)).sum()
    assert fitted < 0.6 * released


# Averaged multiplicative weights.

SMALL = Domain(u=Category(levels=range(4)), w=Category(levels=range(4)))
CELLS = (Histogram(("u", "w")), Histogram("u"), Count(Equals("w", 0)))


def a_small_table(rows, seed=1, neighbours="replace-one"):
    rng = np.random.default_rng(seed)
    u = rng.integers(0, 4, rows)
    return Table(
        {"u": u, "w": np.where(rng.random(rows) < 0.7, u, rng.integers(0, 4, rows))}, SMALL, neighbours=neighbours
    )


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_weights_cost_rounds_times_one_selection(neighbours):
    facts = a_small_table(100, neighbours=neighbours).facts
    found = AveragedWeights(CELLS, 50, "0.3", Fraction(1, 20), 100).guarantee(facts)
    one = Guarantee.of_bounded_range(Fraction(1, 10), neighbours=facts.neighbours)
    assert found == one * 50
    assert found.pure == 5
    assert found.renyi[3] <= 50 * 2 * 0.1**2 / 8 * (1 + 1e-9)  # at order 2


def test_whatever_is_selected_the_regret_is_bounded():
    """The identity behind the theorem: sum of s (f(p) - f(h_t)) <= ln D / step + T step / 8 for every p."""
    rng = np.random.default_rng(2)
    for step, rounds in (("0.2", 30), ("1", 12), ("3", 5)):
        mechanism = AveragedWeights(CELLS, rounds, step, 1, 100)
        for _ in range(20):
            p = rng.dirichlet(np.full(16, 0.3)).reshape(4, 4)
            shares = np.concatenate([p.ravel(), p.sum(axis=1), [p[:, 0].sum()]])
            weights, gained = mwem.WorkloadWeights(mechanism, SMALL), 0.0
            for _ in range(rounds):
                missed = shares - weights.shares()
                chosen = int(np.argmax(np.stack([missed, -missed], axis=1))) if rng.random() < 0.7 else rng.integers(42)
                gained += (1 if chosen % 2 == 0 else -1) * missed[chosen // 2]
                weights.update(int(chosen))
            assert gained <= math.log(16) / float(step) + rounds * float(step) / 8 + 1e-9


def rows_needed(
    alpha: float | str,
    beta: float | str,
    *,
    cells: int,
    numbers: int,
    rho: float | None = None,
    epsilon: float | None = None,
    rows_per_person: int = 1,
) -> int:
    """The least n for which the theorem, with T = ceil(2 ln D / alpha^2) and step = 2 alpha, promises alpha n: for zCDP
    rho or for pure epsilon."""
    part, failure = float(alpha), Fraction(str(beta))
    rounds = max(1, math.ceil(2 * math.log(cells) / part**2))
    span = math.sqrt(8 * rho / rounds) if rho is not None else (epsilon or 0.0) / rounds
    rate = span / (2 * rows_per_person)
    regret = math.log(cells) / (2 * part * rounds) + part / 4
    return math.ceil(mwem._error(0, 0.0, numbers, rounds, 1.0, rate, failure) / (part - regret))


def test_at_the_stated_number_of_rows_all_answers_are_within_alpha():
    alpha, beta, rho = 0.25, 0.05, 0.5
    rows = rows_needed(alpha, beta, cells=16, numbers=21, rho=rho)
    rounds = math.ceil(2 * math.log(16) / alpha**2)
    rate = Fraction(math.sqrt(8 * rho / rounds) / 2).limit_denominator(10**6)
    mechanism = AveragedWeights(CELLS, rounds, 2 * alpha, rate, rows)
    assert mechanism.error(beta, a_small_table(rows).facts) <= alpha * rows * (1 + 1e-6)
    lost, runs, rng = 0, 12, SeededRng(7)
    for run in range(runs):
        table = a_small_table(rows, seed=run)
        found = mechanism.answers(CELLS, mechanism.run(table, rng), table.facts)
        lost += any(
            np.abs(one - truth(query, table)).max() > alpha * rows for query, one in zip(CELLS, found, strict=True)
        )
    assert_honest(lost, runs, beta)


@pytest.mark.parametrize("price", [{"rho": 0.02}, {"epsilon": 1.0}])
def test_the_number_of_rows_is_the_least_for_which_the_theorem_promises_alpha(price):
    alpha, beta, cells, numbers = 0.1, 0.05, 2**20, 10**6
    rows = rows_needed(alpha, beta, cells=cells, numbers=numbers, **price)
    rounds = math.ceil(2 * math.log(cells) / alpha**2)
    span = math.sqrt(8 * price["rho"] / rounds) if "rho" in price else price["epsilon"] / rounds

    def error(n):
        return mwem._error(n, math.log(cells), numbers, rounds, 2 * alpha, span / 2, Fraction(1, 20))

    assert error(rows) <= alpha * rows
    assert error(rows - 1) > alpha * (rows - 1)
    if "rho" in price:
        about = 2 / alpha**2 * math.log(2 * numbers * rounds / beta) * math.sqrt(math.log(cells) / price["rho"])
        assert rows == pytest.approx(about, rel=0.01)


def test_a_person_of_several_rows_needs_as_many_times_the_rows():
    one, three = (rows_needed("0.1", "0.05", cells=1024, numbers=100, rho=0.1, rows_per_person=rows) for rows in (1, 3))
    assert three == pytest.approx(3 * one, rel=1e-3)


def test_the_error_of_the_average_falls_with_the_rounds_that_can_be_afforded():
    table = a_small_table(20_000)
    found = [
        averaged_weights(CELLS, table.facts, funds=Funds.of(Budget(epsilon, "1e-6")), beta=BETA)
        for epsilon in ("0.1", 1)
    ]
    assert found[1].rounds > found[0].rounds
    assert found[1].error(BETA, table.facts) < found[0].error(BETA, table.facts)


def test_selections_are_all_that_is_released_and_the_answers_follow_from_them():
    table = a_small_table(300)
    mechanism = AveragedWeights(CELLS, 20, "0.5", 1, 300)
    chosen = mechanism.run(table, SeededRng(8))
    assert chosen.dtype == np.int64
    assert chosen.shape == (20,)
    assert ((chosen >= 0) & (chosen < 42)).all()
    found = mechanism.answers(CELLS, chosen, table.facts)
    assert found[0].sum() == pytest.approx(300)
    assert found[0].sum(axis=1) == pytest.approx(found[1])
    ((read, errors),) = answers([Histogram("u")], mechanism, chosen, table.facts, beta=BETA)
    assert np.array_equal(read, found[1])
    assert (errors == mechanism.error(BETA, table.facts)).all()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (((), 1, 1, 1, 1), "one or more"),
        (((Sum("x"),), 1, 1, 1, 1), "Sum"),
        ((CELLS, 0, 1, 1, 1), "rounds"),
        ((CELLS, 2**20, 1, 1, 1), "at most"),
        ((CELLS, 1, 0, 1, 1), "step"),
        ((CELLS, 1, 1, 0, 1), "rate"),
        ((CELLS, 1, 1, 1, 0), "rows"),
    ],
)
def test_wrong_weights_are_refused(given, text):
    with pytest.raises(ParameterError, match=text):
        AveragedWeights(*given)


def test_too_many_cells_are_refused_before_anything_is_spent():
    domain = Domain({f"x{i}": Category(levels=range(32)) for i in range(5)})
    table = Table({name: [0, 1] for name in domain.names}, domain)
    wide = AveragedWeights([Histogram(name) for name in domain.names], 1, 1, 1, 2)
    with pytest.raises(ParameterError, match="cells together"):
        wide.guarantee(table.facts)


def test_a_private_number_of_rows_has_no_proven_bound():
    facts = a_table(neighbours="add-remove").facts
    with pytest.raises(ParameterError, match="public"):
        averaged_weights([Histogram("a")], facts, funds=Funds.of(Budget(1)), beta=BETA)
