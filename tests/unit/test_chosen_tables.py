"""Choosing what to measure: what is chosen, what it costs, and what sessions make of it."""

from __future__ import annotations

import itertools
from fractions import Fraction

import narwhals as nw
import numpy as np
import pytest

import discreet as dp
from discreet.answering import chosen_tables as module
from discreet.answering.chosen_tables import ChosenTables, by_chance, chosen_tables, expected_shares, shares_of
from discreet.catalogue import CATALOGUE
from discreet.errors import ParameterError
from discreet.funds import Funds
from discreet.guarantee import Budget, Guarantee
from discreet.ledger import Ledger
from discreet.mechanisms import Gaussian
from discreet.query import Histogram
from discreet.records import record, revive
from discreet.rng import SeededRng

SIZES = {"a": 3, "b": 3, "c": 2, "d": 4, "e": 2}
DOMAIN = dp.Domain({name: dp.Category(levels=range(size)) for name, size in SIZES.items()})
BOTH = ["add-remove", "replace-one"]


def a_table(rows=4000, neighbours="add-remove", seed=1, **more):
    """b follows a, d follows a and c together; e is alone."""
    rng = np.random.default_rng(seed)
    a, c, e = (rng.integers(0, SIZES[name], rows) for name in "ace")
    columns = {"a": a, "b": np.where(rng.random(rows) < 0.9, a, 0), "c": c}
    columns |= {"d": np.where(rng.random(rows) < 0.95, (a == 0) + 2 * (c == 1), 0), "e": e}
    size = {"size": rows} if neighbours == "add-remove" else {}
    return dp.Table(columns, DOMAIN, neighbours=neighbours, **size, **more)


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_columns_that_depend_on_each_other_are_found(neighbours, kind):
    mechanism = ChosenTables(DOMAIN.names, 8, "1/10", 2, kind)
    released = mechanism.run(a_table(neighbours=neighbours), SeededRng(3))
    scopes = [slot[0] for slot in released]
    assert scopes[:5] == [(name,) for name in SIZES]
    pairs, triples = set(scopes[5:9]), set(scopes[9:])
    assert {("a", "b"), ("a", "d"), ("c", "d")} <= pairs
    assert ("a", "c", "d") in triples
    assert all(slot[1].shape == tuple(SIZES[name] for name in slot[0]) for slot in released)


def test_the_price_is_that_of_the_tables_and_of_the_choices():
    for neighbours, most in (("add-remove", 1), ("replace-one", 2)):
        facts = a_table(neighbours=neighbours).facts
        found = ChosenTables(DOMAIN.names, 8, "1/10", 3).guarantee(facts)
        tables = Gaussian(Histogram("a"), 8).guarantee(facts) * (5 + 4 + 3)
        choices = Guarantee.of_bounded_range(2 * most * Fraction(1, 10), neighbours=facts.neighbours) * 7
        assert found.renyi == pytest.approx((tables + choices).renyi, rel=1e-9)
    pure = ChosenTables(DOMAIN.names, 8, "1/10", 3, "laplace").guarantee(a_table().facts)
    assert pure.pure == Fraction(12, 8) + 7 * Fraction(2, 10)


def test_fewer_pairs_cost_less_and_a_record_that_does_not_say_has_a_tree():
    facts = a_table().facts
    tree, forest = (ChosenTables(DOMAIN.names, 8, "1/10", 1, "laplace", pairs) for pairs in (None, 2))
    assert (tree.pairs, tree.rounds, forest.rounds) == (4, 5, 3)
    assert tree.guarantee(facts).pure - forest.guarantee(facts).pure == 2 * (Fraction(1, 8) + Fraction(2, 10))
    stored = record(tree)
    assert revive(stored, CATALOGUE) == tree
    del stored["pairs"]  # as it was stored before there were forests
    assert revive(stored, CATALOGUE) == tree
    for pairs in (5, -1, "1/2"):
        with pytest.raises(ParameterError, match="pairs"):
            ChosenTables(DOMAIN.names, 8, "1/10", 1, "laplace", pairs)


@pytest.mark.parametrize("pairs", [0, 1, 3])
def test_a_release_has_as_many_pairs_as_it_says(pairs):
    mechanism = ChosenTables(DOMAIN.names, 8, "1/10", 2, "gaussian", pairs)
    released = mechanism.run(a_table(), SeededRng(3))
    assert len(released) == len(mechanism.chosen_parts) == 5 + pairs + 2
    assert [len(slot[0]) for slot in released[5 : 5 + pairs]] == [2] * pairs
    assert all(slot is None or len(slot[0]) == 3 for slot in released[5 + pairs :])


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_columns_that_have_nothing_to_do_with_each_other_score_nothing_on_average(kind):
    """Rows at random, noise on their columns: the mean score of a pair is within a tenth of what chance adds up to."""
    rng, mechanism = np.random.default_rng(5), ChosenTables(("a", "d"), 15, "1/10", 0, kind)
    table, rows = a_table(3000), 3000
    shares = {name: rng.dirichlet(np.full(SIZES[name], 5.0)) for name in "ad"}
    scores, chance = [], []
    for seed in range(60):
        drawn = {name: rng.choice(SIZES[name], rows, p=shares[name]) for name in "ad"}
        columns = drawn | {name: np.zeros(rows, dtype=int) for name in "bce"}
        table = dp.Table(columns, DOMAIN, neighbours="add-remove", size=rows)
        tables = mechanism._measured([("a",), ("d",)], table, SeededRng(seed))
        known = mechanism._columns_known(tables, rows)
        scores += mechanism._scored(table, known, rows, [("a", "d")]).values()
        expected = expected_shares(("a", "d"), known)
        chance.append(by_chance(("a", "d"), known, expected, rows, 225 * (1 if kind == "gaussian" else 2)))
    assert abs(np.mean(scores)) < 0.1 * np.mean(chance)


@pytest.mark.parametrize("neighbours", BOTH)
def test_no_person_moves_scores_further_apart_than_is_priced(neighbours):
    """Rows at random and one more, or one replaced: scores by the same expectations, all candidates."""
    rng, rows, widest = np.random.default_rng(7), 30, 0
    names, mechanism = tuple(SIZES), ChosenTables(DOMAIN.names, 1, 1, 0)
    candidates = list(itertools.combinations(names, 2))
    for _ in range(150):
        first = {name: rng.integers(0, SIZES[name], rows) for name in names}
        cut = slice(None) if neighbours == "replace-one" else slice(1, None)
        second = {name: np.append(rng.integers(0, SIZES[name], 1), column[1:])[cut] for name, column in first.items()}
        known = {(name,): shares_of(rng.random(SIZES[name])) for name in names}
        scores = []
        for columns in (first, second):
            table = dp.Table(columns, DOMAIN, neighbours="add-remove", size=rows)
            scores.append(mechanism._scored(table, known, rows, candidates))
        moved = [scores[0][scope] - scores[1][scope] for scope in candidates]
        widest = max(widest, max(moved) - min(moved))
    assert widest == (2 if neighbours == "add-remove" else 4)


def test_what_is_expected_of_a_triple_is_what_its_two_pairs_say():
    rng = np.random.default_rng(1)
    joint = rng.random((3, 2, 4))
    joint /= joint.sum()
    for scope, middle in ((("a", "c", "d"), 0), (("a", "c", "d"), 1), (("a", "c", "d"), 2)):
        pairs = [pair for pair in itertools.combinations(scope, 2) if scope[middle] in pair]
        axes = [tuple(i for i, name in enumerate(scope) if name not in pair) for pair in pairs]
        known = {pair: joint.sum(axis=axis) for pair, axis in zip(pairs, axes, strict=True)}
        found = expected_shares(scope, known)
        assert all(found.sum(axis=axis) == pytest.approx(known[pair]) for pair, axis in zip(pairs, axes, strict=True))
    assert shares_of(np.array([-3, -1])).tolist() == [0.5, 0.5]


def test_tables_that_are_too_large_are_no_candidates(monkeypatch):
    monkeypatch.setattr(module, "LIMIT", 6)
    released = ChosenTables(DOMAIN.names, 8, "1/10", 2).run(a_table(), SeededRng(3))
    scopes = [slot[0] for slot in released if slot is not None]
    assert all(np.prod([SIZES[name] for name in scope]) <= 6 for scope in scopes)
    assert released[-1] is None


def test_candidates_are_looked_at_in_parts_with_the_same_result(monkeypatch):
    mechanism, table = ChosenTables(DOMAIN.names, 8, "1/10", 2), a_table()
    whole = mechanism.run(table, SeededRng(3))
    monkeypatch.setattr(module, "_AT_ONCE", 10)
    parts = mechanism.run(table, SeededRng(3))
    assert [slot[0] for slot in whole] == [slot[0] for slot in parts]
    assert all((one[1] == other[1]).all() for one, other in zip(whole, parts, strict=True))


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows_and_few_columns_are_no_trouble(rows):
    for columns in (("a",), ("a", "b"), tuple(SIZES)):
        table = dp.Table({name: [0] * rows for name in SIZES}, DOMAIN, neighbours="add-remove", size=1)
        assert len(ChosenTables(columns, 100, "1/200", 1).run(table, SeededRng(1))) == 2 * len(columns)


def test_the_least_noise_that_fits_is_taken_in_both_books():
    facts = a_table().facts
    for budget, kind in ((Budget(1, "1e-6"), "gaussian"), (Budget(1), "laplace")):
        mechanism = chosen_tables(facts, funds=Funds.of(budget), kind=kind)
        assert mechanism.guarantee(facts).within(budget)
        assert mechanism.columns == DOMAIN.names
    alone = dp.Table({"x": ["a"]}, dp.Domain(x=dp.Category("a")), neighbours="add-remove", size=1)
    with pytest.raises(ParameterError, match="no column"):
        chosen_tables(alone.facts, funds=Funds.of(Budget(1)), kind="laplace")


@pytest.mark.parametrize("neighbours", BOTH)
def test_triples_are_measured_where_the_rows_are_many_for_their_noise(neighbours):
    funds = Funds.of(Budget(1, "1e-6"))
    mores = [
        chosen_tables(a_table(rows, neighbours).facts, funds=funds, kind="gaussian").more for rows in (300, 90_000)
    ]
    assert mores == [0, 2 * len(SIZES)]


@pytest.mark.parametrize(("budget", "kind"), [(Budget(1, "1e-6"), "gaussian"), (Budget(1), "laplace")])
def test_few_rows_for_laplace_noise_have_a_forest_of_pairs(budget, kind):
    """Whatever the declared size, the whole budget is what it costs."""
    found = {}
    for rows in (1, 50, 300, 90_000):
        found[rows] = chosen_tables(a_table(rows).facts, funds=Funds.of(budget), kind=kind)
        assert found[rows].guarantee(a_table(rows).facts).within(budget)
    pairs = [each.pairs for each in found.values()]
    if kind == "gaussian":
        assert pairs == [4, 4, 4, 4]
        return
    assert pairs[0] == 0
    assert 0 < pairs[1] < 4
    assert pairs[2:] == [4, 4]
    assert float(found[50].scale) < 0.95 * float(ChosenTables(DOMAIN.names, found[300].scale, 1, 0).scale)


# Ranges of numbers and dates.

WIDE = dp.Domain(
    sex=dp.Category("f", "m"),
    kids=dp.Number(0, 10, step=1),
    income=dp.Number(0, 200_000, step="0.01", missing=True),
    start=dp.Date("2015-01-01", "2024-12-31", step="day"),
    weight=dp.Number(30, 200, step="0.1"),
)


def wide_table(rows=3000, neighbours="replace-one"):
    """Men have twice the income of women; every tenth income is missing; all began in 2021."""
    rng = np.random.default_rng(3)
    sex, kids = rng.integers(2, size=rows), rng.integers(4, size=rows)
    income = [None if drawn < 0.1 else 20_000.0 * (1 + man) for drawn, man in zip(rng.random(rows), sex, strict=True)]
    columns = {"sex": np.array(["f", "m"])[sex], "kids": kids, "income": income, "start": ["2021-06-01"] * rows}
    return dp.Table({**columns, "weight": [80.05] * rows}, WIDE, neighbours=neighbours, size=rows)


def test_columns_of_many_numbers_or_dates_are_counted_in_ranges_and_others_as_they_are():
    facts, funds = wide_table().facts, Funds.of(Budget(1, "1e-6"))
    found = chosen_tables(facts, funds=funds, kind="gaussian")
    sizes = found.sizes(WIDE)
    assert (sizes["sex"], sizes["kids"]) == (2, 11)
    assert 4 <= sizes["start"] == sizes["weight"] == sizes["income"] - 1 <= 32
    plain = ChosenTables(("sex", "kids"), found.scale, found.rate, found.more)
    binned = ChosenTables((found.columns[2], found.columns[3]), found.scale, found.rate, found.more)
    assert list(binned.guarantee(facts).renyi[:40]) == list(plain.guarantee(facts).renyi[:40])
    few = dp.Table({name: [] for name in WIDE.names}, WIDE, neighbours="add-remove", size=1)
    assert chosen_tables(few.facts, funds=funds, kind="gaussian").sizes(WIDE)["weight"] == 4


@pytest.mark.parametrize("neighbours", BOTH)
def test_made_up_rows_have_the_numbers_dates_and_missing_values_of_the_people(neighbours):
    table = wide_table(neighbours=neighbours)
    session = dp.Session(table, Ledger.in_memory(Budget(4, "1e-6"), table), alpha=0.02)
    frame = session.synthetic(4000, share="9/10", seed=1)
    assert abs(frame["income"].isna().mean() - 0.1) < 0.03
    means = frame.groupby("sex")["income"].mean()
    assert abs(means["f"] - 20_000) < 6_000
    assert abs(means["m"] - 40_000) < 6_000
    assert abs(frame["weight"].mean() - 80) < 8
    assert (frame["start"].astype(str).str[:4].isin(["2020", "2021"])).mean() > 0.9
    assert frame["kids"].max() <= 10
    assert (frame["kids"] <= 3).mean() > 0.95
    assert session.synthetic(4000, share="9/10", seed=1).equals(frame)


def test_a_count_asked_after_the_ranges_were_measured_is_within_its_bound():
    table = wide_table()
    session = dp.Session(table, Ledger.in_memory(Budget(4, "1e-6"), table), alpha=0.05)
    session.synthetic(10, share="1/2")
    for where, truth in ((dp.Between("weight", 70, 90), 3000), (dp.Between("weight", 100, 200), 0)):
        answer = session.ask(dp.Count(where))
        assert abs(answer.value - truth) <= answer.error_bound


# Sessions.


@pytest.mark.parametrize("budget", [Budget(2, "1e-6"), Budget(2)])
@pytest.mark.parametrize("neighbours", BOTH)
def test_rows_of_a_new_ledger_cost_a_tenth_of_it_and_then_nothing(neighbours, budget):
    table = a_table(neighbours=neighbours)
    session = dp.Session(table, Ledger.in_memory(budget, table), alpha=0.02)
    frame = session.synthetic(500, seed=1)
    left, cap = session.budget()
    assert 0.89 * cap <= left <= 0.91 * cap
    assert frame.columns.tolist() == list(DOMAIN.names)
    assert session.synthetic(500, seed=1).equals(frame)
    assert session.budget() == (left, cap)
    assert any(len(scope) > 1 for scope in session.known()[0])
    session.synthetic(5, share="1/2")
    assert session.budget()[0] <= 0.51 * left
    after = session.budget()
    session.synthetic(5, share="1/2")
    assert session.budget() == after


def test_what_was_chosen_answers_later_questions_with_true_bounds():
    table = a_table()
    session = dp.Session(table, Ledger.in_memory(Budget(20, "1e-6"), table), alpha="0.05")
    session.synthetic(5)
    paid = session.budget()
    answer = session.ask("SELECT a, COUNT(*) FROM table GROUP BY a")
    assert session.budget() == paid
    truth = table.exact_sum(Histogram("a"))
    assert max(abs(answer.value[level] - truth[level]) for level in range(3)) <= answer.error_bound


def test_another_session_on_the_ledger_draws_the_same_rows_for_nothing(tmp_path):
    table = a_table()
    ledger = Ledger.create(tmp_path / "people.ledger", Budget(2, "1e-6"), table)
    rows = dp.Session(table, ledger, alpha=0.02).synthetic(50, seed=4)
    other = Ledger.open(tmp_path / "people.ledger")
    assert dp.Session(table, other, alpha=0.02).synthetic(50, seed=4).equals(rows)
    assert len([body for body in other.entries() if body["kind"] == "charge"]) == 1


def test_a_process_that_died_after_the_charge_has_paid_once(tmp_path, monkeypatch):
    table = a_table()
    ledger = Ledger.create(tmp_path / "people.ledger", Budget(2, "1e-6"), table)
    session = dp.Session(table, ledger, alpha=0.02)
    with monkeypatch.context() as patch:
        patch.setattr("discreet.answering.adaptive.AdaptiveAnswers.hypothesis", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            session.synthetic(5, share="1/4")
    again = dp.Session(table, Ledger.open(tmp_path / "people.ledger"), alpha=0.02)
    before = again.budget()
    assert before[0] < before[1]  # it was charged before it died
    assert len(again.synthetic(5, share="1/4")) == 5
    assert again.budget() == before


def test_a_wrong_share_is_refused_and_costs_nothing():
    table = a_table()
    session = dp.Session(table, Ledger.in_memory(Budget(1, "1e-6"), table), alpha=0.02)
    for share in (2, 0, -1):
        with pytest.raises(ParameterError, match="share"):
            session.synthetic(5, share=share)
    left, cap = session.budget()
    assert left == cap


def test_what_was_measured_is_told_in_words():
    from discreet.answering.residual_marginals import ResidualMarginals
    from discreet.describe import asked

    residuals = ResidualMarginals([("a", "b"), ("b", "c"), ("a", "c")], [8] * 7, 32)
    assert asked(record(residuals)).startswith("how many rows for each a, b; how many rows for each b, c")
    assert asked(record(ChosenTables(("a", "b"), 8, 1, 0))) == "about a, b"


def test_a_column_of_one_value_is_not_measured():
    domain = dp.Domain({**DOMAIN, "one": dp.Category("only")})
    table = dp.Table(
        {**{name: [0, 1] for name in DOMAIN}, "one": ["only"] * 2}, domain, neighbours="add-remove", size=2
    )
    found = chosen_tables(table.facts, funds=Funds.of(Budget(1, "1e-6")), kind="gaussian")
    assert found.columns == DOMAIN.names


def test_rows_have_columns_of_any_number_of_values():
    """Ranges are what is kept of a column of 10^15 values, also where two releases divided it differently."""
    columns = {"wide": np.linspace(0, 10**15, 500), "sex": ["f", "m"] * 250}
    domain = dp.Domain(wide=dp.Number(0, 10**15, step=1), sex=dp.Category("f", "m"))
    table = dp.Table(columns, domain, name="wide")
    session = dp.Session(table, Ledger.in_memory(Budget(20, "1e-6"), table), alpha=0.1)
    for share in ("1/2000", "1/2"):
        frame = session.synthetic(200, share=share, seed=1)
        assert frame["wide"].between(0, 10**15).all()
    assert abs(frame["wide"].mean() - 5e14) < 1e14
    counted = {
        len(each.ranges(domain)["wide"]) for each in session._answering().transcript.measured if each.ranges(domain)
    }
    assert len(counted) > 1


def test_a_table_of_too_many_cells_is_refused_before_its_groups_are_listed():
    table = dp.Table({"wide": [1.0, 2.0]}, dp.Domain(wide=dp.Number(0, 10**12, step=1)), name="wide")
    session = dp.Session(table, Ledger.in_memory(Budget(1, "1e-6"), table))
    for ask in (lambda: session.answer_all([Histogram("wide")]), lambda: session.ask(Histogram("wide"))):
        with pytest.raises(ParameterError, match="1000000000001 cells"):
            ask()


@pytest.mark.parametrize("backend", ["polars", "pyarrow"])
def test_whole_numbers_that_no_typed_column_holds_are_texts(backend):
    domain = dp.Domain(far=dp.Number(0, 10**25, step=10**23), near=dp.Number(0, 2**62, step=2**60))
    table = dp.Table({"far": [0, 10**24] * 200, "near": [0, 2**61] * 200}, domain, name="people")
    session = dp.Session(table, dp.Ledger.in_memory(dp.Budget(5, 1e-6), table))
    frame = nw.from_native(session.synthetic(50, share="1/3", seed=1, backend=backend))
    assert frame.schema == {"far": nw.String(), "near": nw.Int64()}
    assert {int(each) % 10**23 for each in frame["far"].to_list()} == {0}


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_levels_of_several_kinds_are_texts_in_a_typed_frame(backend):
    domain = dp.Domain(mixed=dp.Category(-5, 7, other="else"), n=dp.Number(0, 3, step=1))
    table = dp.Table({"mixed": [-5, 7, 8] * 50, "n": [1, 2, 3] * 50}, domain, name="mixed")
    session = dp.Session(table, Ledger.in_memory(Budget(20, "1e-6"), table))
    frame = session.synthetic(100, seed=1, backend=backend)
    assert (
        {str(each) for each in frame["mixed"].to_list() if each is not None} == {"-5", "7", "else"}
        if (backend != "pyarrow")
        else {*frame["mixed"].to_pylist()} == {"-5", "7", "else"}
    )
    answer = session.ask("SELECT mixed, COUNT(*) FROM mixed GROUP BY mixed")
    assert len(answer.frame(backend)) == 3
