"""Interior points: the routines piece by piece, the sizes they need, and the two functions that users call."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.data import AnyNumber, Category, Domain, Facts, Integers, Number, ParquetTable, Table, Whole
from discreet.errors import BudgetExceeded, ParameterError, SchemaError
from discreet.estimators.location import Mean, Median, Quantile, interior_point, suggest_bounds
from discreet.funds import FAILING, Funds
from discreet.guarantee import Budget, Guarantee, Neighbours
from discreet.ledger import Ledger
from discreet.mechanisms import GaussianNoise, LaplaceNoise, ProductLaplaceNoise, stable
from discreet.method import Method, Refused
from discreet.pac.interior import (
    NOWHERE,
    USUAL,
    BinarySearch,
    InteriorPoint,
    MinRank,
    PairPrefix,
    PrefixSearch,
    TwoTo,
    code_bits,
    crowded_pairs,
    digits_apart,
    heaviest,
    log_size,
    methods,
    pair_split,
    prefix_split,
    score_runs,
)
from discreet.pac.rank_bounds import RankBounds, declaration
from discreet.records import canonical, record, revive
from discreet.release import release
from discreet.rng import SeededRng
from discreet.session import Session

REPLACE, ADD = Neighbours("replace-one"), Neighbours("add-remove")
ROUTINES = [
    MinRank("0.5"),
    BinarySearch(LaplaceNoise(3)),
    BinarySearch(GaussianNoise(3)),
    PrefixSearch("0.25", 4, 20, 8, 60, 10),
    PairPrefix(MinRank("0.25"), 3, 2, 4, 20, 8),
    PairPrefix(PrefixSearch("0.25", 4, 20, 8, 60, 10), 3, 2, 4, 20, 8),
]
CATALOGUE = {
    each.NAME: each
    for each in (
        *(MinRank, BinarySearch, PrefixSearch, PairPrefix, InteriorPoint, RankBounds),
        *(LaplaceNoise, GaussianNoise),
    )
}


def ints(values):
    return np.array(sorted(values), dtype=np.int64)


def objects(values):
    held = np.empty(len(values), dtype=object)
    held[:] = sorted(values)
    return held


def budgeted(bits, kind, *, delta="1e-6", rows=1):
    facts = Facts(Domain(x=Whole(bits)), Neighbours(kind, rows), None)
    return methods(facts=facts, column="x", beta="0.05", funds=Funds.of(Budget(1, delta)))


# --- sizes ------------------------------------------------------------------------------------------------------------


def test_a_size_is_an_integer_of_any_length_or_a_power_of_two_by_its_exponent():
    assert [code_bits(size) for size in (1, 2, 3, 4, 5, 2**62, 2**62 + 1)] == [0, 1, 2, 2, 3, 62, 63]
    assert code_bits(TwoTo(2**100)) == 2**100
    assert float(log_size(TwoTo(10))) == pytest.approx(float(log_size(1024)))
    assert log_size(TwoTo(2**5000)) > 2**4999
    for size in (0, -1, "4", 2.0):
        with pytest.raises(ParameterError, match="size must be"):
            code_bits(size)


@pytest.mark.parametrize("routine", ROUTINES)
def test_prices_and_sizes_are_the_same_for_both_spellings_of_a_size(routine):
    for neighbours in (REPLACE, ADD):
        assert routine.guarantee(neighbours, 2**40) == routine.guarantee(neighbours, TwoTo(40))
    if not isinstance(routine, PairPrefix):
        assert routine.needed(2**40, 0.1) == routine.needed(TwoTo(40), 0.1)


def test_every_size_grows_when_beta_falls_and_when_the_domain_grows():
    for routine in ROUTINES[:4]:
        sizes = [routine.needed(2**64, beta) for beta in (0.5, 0.1, 0.01, 1e-4, 1e-8)]
        assert sizes == sorted(sizes)
        assert sizes[0] < sizes[-1]
        assert routine.needed(2**16, 0.05) < routine.needed(2**1024, 0.05)


def test_pairs_promise_nothing_when_too_few_are_trimmed():
    with pytest.raises(ParameterError, match="trim more"):
        PairPrefix(MinRank("0.25"), 3, 2, 4, 20, 8).needed(2**64, 0.05)


TABLE = [  # bits, the exponential mechanism, binary search, prefix search: add-remove and replace-one
    (16, (30, 58), (50, 100), (130, 256)),
    (32, (52, 102), (76, 152), (134, 264)),
    (64, (96, 190), (115, 230), (138, 270)),
    (128, (184, 368), (173, 345), (142, 278)),
    (1024, (1426, 2852), (565, 1130), (152, 300)),
    (2**20, (1453642, 2907282), (24754, 49508), (184, 366)),
]


@pytest.mark.parametrize(("bits", "ranks", "search", "prefix"), TABLE)
@pytest.mark.parametrize("place", [0, 1], ids=["add", "replace"])
def test_the_sizes_at_epsilon_one_are_the_published_table_or_a_little_less(bits, ranks, search, prefix, place):
    found = {each.name: each for each in budgeted(bits, ("add-remove", "replace-one")[place])}
    for name, expected in (("exponential", ranks), ("binary-search", search), ("prefix", prefix)):
        assert 0.95 * expected[place] <= found[name].needed(0.1) <= expected[place] + 1


@pytest.mark.parametrize(
    ("bits", "added", "replaced"), [(64, 324, 470), (2**20, 470, 642), (2 ** (2**20), 1418, 1700)], ids=["", "", ""]
)
def test_the_sizes_of_pairs_are_the_published_ones_or_a_little_less(bits, added, replaced):
    for kind, expected in (("add-remove", added), ("replace-one", replaced)):
        found = budgeted(bits, kind).named("pair-prefix").needed(0.1)
        assert 0.95 * expected <= found <= expected


@pytest.mark.parametrize(("rows", "ranks", "prefix"), [(1, 190, 271), (2, 380, 539), (5, 948, 1341)])
def test_persons_with_several_rows_need_as_many_more(rows, ranks, prefix):
    found = {each.name: each for each in budgeted(64, "replace-one", rows=rows)}
    assert 0.97 * ranks <= found["exponential"].needed(0.1) <= ranks
    assert 0.97 * prefix <= found["prefix"].needed(0.1) <= prefix


def test_the_smallest_size_is_that_of_ranks_then_of_prefixes_and_of_pairs_only_where_nothing_can_be_stored():
    def best(bits):
        applying = [each for each in budgeted(bits, "add-remove") if isinstance(each, Method)]
        return min(applying, key=lambda each: each.needed(0.1)).name

    assert [best(bits) for bits in (64, 128, 2**500, 2**540)] == ["exponential", "prefix", "prefix", "pair-prefix"]
    assert set(USUAL) == set(budgeted(16, "add-remove").names) - {"pair-prefix"}
    with pytest.raises(ParameterError, match="found 'tree'"):
        budgeted(16, "add-remove").named("tree")


def test_a_size_that_nobody_can_have_is_a_refusal():
    refused = budgeted(2**5000, "add-remove").find("exponential")
    assert isinstance(refused, Refused)
    assert "more than 2**62" in refused.reason


def test_every_calibrated_mechanism_keeps_the_budget_and_spends_nearly_all_of_it():
    budget = Budget(1, "1e-6")
    for kind in ("add-remove", "replace-one"):
        facts = Facts(Domain(x=Whole(64)), Neighbours(kind), None)
        for method in budgeted(64, kind):
            price = method.mechanism(0.1).guarantee(facts)
            assert 0.999 < price.epsilon(budget.delta) <= 1


def test_without_a_delta_prefixes_are_refused_and_the_exponential_mechanism_is_named():
    found = budgeted(64, "add-remove", delta=0)
    assert [type(each) for each in found] == [Method, Method, Refused, Refused]
    assert isinstance(found[1].mechanism(0).routine.noise, LaplaceNoise)
    with pytest.raises(ParameterError, match="use exponential"):
        found.named("prefix")
    for make in (prefix_split, pair_split):
        with pytest.raises(ParameterError, match="delta > 0"):
            make(64, neighbours=ADD, epsilon=Fraction(1), failure=Fraction(0), beta=0.05)


def test_a_split_scales_with_the_noise_and_its_steps_add_up_to_one_over_it():
    for neighbours in (ADD, REPLACE, Neighbours("add-remove", 3), Neighbours("replace-one", 3)):
        for make in (prefix_split, pair_split):
            split = make(2**64, neighbours=neighbours, epsilon=Fraction(1), failure=Fraction(1, 10**6), beta=0.05)
            for noise in (Fraction(1), Fraction(7, 3)):
                price = split.routine(noise).guarantee(neighbours, 2**64)
                assert price.pure == 1 / noise
                assert price.failure <= Fraction(1, 10**6)
    assert split.routine(Fraction(2)).needed(2**64, 0.05) > split.routine(Fraction(1)).needed(2**64, 0.05)


# --- prices -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("neighbours", "moved"), [(ADD, 1), (REPLACE, 2), (Neighbours("replace-one", 3), 6)])
def test_prices_are_those_of_the_steps(neighbours, moved):
    assert MinRank("0.5").guarantee(neighbours, 8) == Guarantee.of_bounded_range(
        Fraction(moved, 2), neighbours=neighbours
    )
    once = Guarantee.of_laplace(moved, scale=3, neighbours=neighbours)
    assert BinarySearch(LaplaceNoise(3)).guarantee(neighbours, 100) == once * 7
    assert BinarySearch(GaussianNoise(2)).guarantee(neighbours, 2) == Guarantee.of_zcdp(
        Fraction(moved**2, 8), neighbours=neighbours
    )
    ending = stable.price(Fraction(4), 20, neighbours) + Guarantee.of_laplace(moved, scale=8, neighbours=neighbours)
    first = Guarantee.of_bounded_range(Fraction(moved, 4), neighbours=neighbours)
    assert PrefixSearch("0.25", 4, 20, 8, 60, 10).guarantee(neighbours, 100) == first + ending


def test_the_inner_routine_of_pairs_is_priced_under_replace_one_whatever_the_relation():
    routine = PairPrefix(MinRank("0.25"), 3, 2, 4, 20, 8)
    assert routine.guarantee(ADD, 16).pure == Fraction(1, 2) + Fraction(1, 4) + Fraction(1, 8)
    assert routine.guarantee(Neighbours("add-remove", 2), 16).pure == 1 + Fraction(1, 2) + Fraction(1, 4)
    assert routine.guarantee(REPLACE, 16).pure == Fraction(1, 2) + Fraction(1, 2) + Fraction(1, 4)


@pytest.mark.parametrize("routine", ROUTINES)
def test_routines_are_records(routine):
    mechanism = InteriorPoint("x", routine)
    again = revive(record(mechanism), CATALOGUE)
    assert again == mechanism
    assert canonical(record(again)) == canonical(record(mechanism))


@pytest.mark.parametrize(
    "make",
    [
        lambda: MinRank(0),
        lambda: BinarySearch(ProductLaplaceNoise(1)),
        lambda: BinarySearch(3),
        lambda: PrefixSearch(0, 1, 1, 1, 1, 1),
        lambda: PrefixSearch(1, 1, 2**63, 1, 1, 1),
        lambda: PrefixSearch(1, 1, 1, 1, -1, 1),
        lambda: PrefixSearch(1, 1, 1, 1, 1, 2**63),
        lambda: PairPrefix("MinRank", 0, 0, 1, 1, 1),
        lambda: PairPrefix(MinRank(1), -1, 0, 1, 1, 1),
        lambda: InteriorPoint("", MinRank(1)),
        lambda: InteriorPoint("x", LaplaceNoise(1)),
        lambda: RankBounds("x", 1, 1),
        lambda: MinRank(2**190).guarantee(ADD, 8),
        lambda: PrefixSearch(1, 1, 1, 1, 1, 1).guarantee(Neighbours("add-remove", 2), 8),
        lambda: InteriorPoint("x", MinRank(1)).guarantee(Facts(Domain(x=Category("a")), ADD, None)),
    ],
)
def test_parameters_that_make_no_sense_are_refused_before_anything_is_spent(make):
    with pytest.raises(ParameterError):
        make()


# --- the pieces -------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 20), max_size=12), st.integers(21, 25))
def testscore_runs_cover_the_domain_and_have_the_score_of_each_of_their_points(values, size):
    for held in (ints(values), objects(values)):
        starts, lengths, scores = score_runs(held, size)
        covered = [
            (point, score)
            for start, length, score in zip(starts, lengths, scores, strict=True)
            for point in range(start, start + length)
        ]
        expected = [
            (p, min(sum(value <= p for value in values), sum(value >= p for value in values))) for p in range(size)
        ]
        assert covered == expected
        assert (lengths > 0).all()


def test_digits_apart_are_exact_beyond_the_digits_of_a_float():
    left = [0, 1, 2**53 - 1, 2**61, 2**62 - 1, 2**62 - 1, 2**31, 5, (2**31 - 1) << 31]
    right = [0, 0, 2**53, 2**61 + 1, 0, 2**62 - 2, 2**31 - 1, 5, 0]
    expected = [(a ^ b).bit_length() for a, b in zip(left, right, strict=True)]
    assert digits_apart(np.array(left), np.array(right)).tolist() == expected
    assert digits_apart(np.array(left, dtype=object), np.array(right, dtype=object)).tolist() == expected


@given(st.lists(st.integers(0, 31), max_size=14))
def test_the_fullest_prefix_of_every_length_is_counted(values):
    held = ints(values)
    found = heaviest(digits_apart(held[:-1], held[1:]), len(held), 5)
    groups = [[value >> (5 - length) for value in values] for length in range(6)]
    assert found.tolist() == [max((group.count(each) for each in group), default=0) for group in groups] + [0]


@given(st.lists(st.integers(0, 15), max_size=9), st.integers(0, 2**32))
def test_a_search_is_a_binary_search_on_noisy_differences(values, seed):
    routine = BinarySearch(LaplaceNoise(2))
    noises = SeededRng(seed).laplace(Fraction(2), (4,)).tolist()
    low, high = 0, 15
    for noise in noises:
        middle = (low + high) // 2
        upto = sum(value <= middle for value in values)
        low, high = (low, middle) if 2 * upto - len(values) + noise >= 0 else (middle + 1, high)
    for held in (ints(values), objects(values)):
        assert routine.point(held, 16, SeededRng(seed)) == low
        assert routine.point(held, 13 if not values else max(values) + 1, SeededRng(seed)) >= 0


@pytest.mark.parametrize("routine", ROUTINES)
@settings(max_examples=20)
@given(
    values=st.lists(st.integers(0, 99), max_size=12), size=st.sampled_from([100, 128, 101]), seed=st.integers(0, 999)
)
def test_points_are_in_the_domain_and_do_not_depend_on_how_integers_are_held(routine, values, size, seed):
    point = routine.point(ints(values), size, SeededRng(seed))
    assert type(point) is int
    assert 0 <= point < size
    assert routine.point(objects(values), size, SeededRng(seed)) == point


@pytest.mark.parametrize("routine", ROUTINES)
def test_a_domain_of_one_point_has_that_point(routine):
    for values in ([], [0], [0] * 50):
        assert routine.point(ints(values), 1, SeededRng(1)) == 0


def test_without_values_prefixes_release_the_constant():
    for routine in ROUTINES[3:]:
        assert {routine.point(ints([]), 2**20, SeededRng(seed)) for seed in range(20)} == {NOWHERE}


@pytest.mark.parametrize("routine", ROUTINES)
def test_many_values_and_values_of_a_million_digits_are_taken(routine):
    rng = np.random.default_rng(1)
    assert 0 <= routine.point(np.sort(rng.integers(0, 2**62, 10**5)), 2**62, SeededRng(1)) < 2**62
    long = [int.from_bytes(rng.bytes(2**17), "big") for _ in range(6)]
    assert 0 <= routine.point(objects([*long, *long]), 1 << 2**20, SeededRng(1)) < 1 << 2**20


def test_the_transcript_ends_with_the_point():
    for routine in ROUTINES[3:]:
        for seed in range(10):
            found = routine.transcript(ints([5] * 60 + [70] * 60), 128, SeededRng(seed))
            assert found.point == routine.point(ints([5] * 60 + [70] * 60), 128, SeededRng(seed))
            assert 0 <= found.shared <= 7


def test_the_reach_of_the_noise_is_the_least():
    for scale in (Fraction(1, 3), Fraction(5), Fraction(100)):
        for beta in (0.3, 0.01, 1e-6):
            least, q = LaplaceNoise(scale).reach(math.log(beta)), math.exp(-1 / scale)
            assert q**least / (1 + q) <= beta * (1 + 1e-9)
            assert least == 1 or q ** (least - 1) / (1 + q) > beta * (1 - 1e-9)


def matchings(rows):
    if len(rows) < 2:
        yield []
        return
    first, *rest = rows
    if len(rows) % 2:
        yield from matchings(rest)
    for place, other in enumerate(rest):
        yield from ([(first, other), *more] for more in matchings(rest[:place] + rest[place + 1 :]))


@pytest.mark.parametrize("count", [6, 7, 8])
def test_the_bound_on_crowded_pairs_holds_for_all_matchings_of_a_few_values(count):
    for others in (1, 2):
        group = 2 * others + 1 if others == 1 else 4
        groups = [place // group for place in range(count)]
        agreeing = [sum(groups[a] == groups[b] for a, b in pairs) for pairs in matchings(list(range(count)))]
        for pairs, wanted in itertools.product((1, 2, 3), (others,)):
            chance = sum(each >= pairs for each in agreeing) / len(agreeing)
            assert chance <= crowded_pairs(pairs, wanted, count) + 1e-12
    assert crowded_pairs(3, 0, 8) == 0
    assert crowded_pairs(2, 2, 8) == 1


# --- interior_point ---------------------------------------------------------------------------------------------------

PEOPLE = pd.DataFrame({"age": list(range(20, 80)) * 5, "income": [float(1000 * k) for k in range(300)]})
DOMAIN = Domain(age=Number(0, 120, step=1), income=Number.any())


def table(**more):
    return Table(PEOPLE, DOMAIN, name="people", **more)


@pytest.mark.parametrize("method", ["auto", "exponential", "binary-search", "prefix", "pair-prefix"])
def test_whole_numbers_have_an_interior_point(method):
    values = [3**k for k in range(60)] * 10
    got = interior_point(values, bits=100, epsilon=2, delta="1e-6", method=method)
    assert got.needed <= 600
    assert 1 <= got.value <= 3**59
    assert got.promise.startswith("between the smallest and the largest value with probability 0.95")
    assert got.guarantee.epsilon("1e-6") <= 2
    assert got.guarantee.scope == "this release alone"
    assert got.entry is None
    assert got.method == ("prefix" if method == "auto" else method)
    assert str(got) == f"{got.value}: {got.promise}"


def test_too_few_values_are_no_error_and_nothing_is_promised():
    got = interior_point([1, 2, 3], bits=64, epsilon=1)
    assert got.promise == "nothing is promised: exponential needs 189 values, these are 3"
    empty = interior_point([], bits=64, epsilon=1, neighbours="add-remove")
    assert "if there are at least 95 values" in empty.promise
    assert "how many there are is private" in empty.promise


def test_a_million_bits_are_the_most():
    long = [(1 << 2**20) - 1] * 400
    got = interior_point(long, bits=2**20, epsilon=1, delta="1e-6")
    assert got.value == long[0]
    assert str(got).startswith("a number of 1,048,576 bits: between")
    with pytest.raises(ParameterError, match=r"at most 2\*\*20"):
        interior_point([1], bits=2**20 + 1, epsilon=1)


@pytest.mark.parametrize(
    ("values", "arguments", "error"),
    [
        ([1], {"epsilon": 1}, ParameterError),
        ([1], {"bits": 0, "epsilon": 1}, ParameterError),
        ([1], {"bits": 8}, ParameterError),
        ([1], {"bits": 8, "epsilon": 0}, ParameterError),
        ([1], {"bits": 8, "epsilon": 1, "beta": 1}, ParameterError),
        ([1], {"bits": 8, "epsilon": 1, "method": "prefix"}, ParameterError),
        ([1], {"bits": 8, "epsilon": 1, "method": "tree"}, ParameterError),
        ([1], {"bits": 8, "epsilon": 1, "column": "x"}, ParameterError),
        ([256], {"bits": 8, "epsilon": 1}, SchemaError),
        ([-1], {"bits": 8, "epsilon": 1}, SchemaError),
        ([0.5], {"bits": 8, "epsilon": 1}, SchemaError),
        ([1], {"bits": 8, "epsilon": 1, "neighbours": "twins"}, ParameterError),
        ([1], {"bits": 8, "epsilon": 1, "ledger": "people"}, ParameterError),
    ],
)
def test_wrong_arguments_are_refused(values, arguments, error):
    with pytest.raises(error):
        interior_point(values, **arguments)


@pytest.mark.parametrize("method", ["auto", "exponential", "binary-search", "prefix"])
def test_a_column_of_a_table_is_charged_to_its_ledger(method):
    people = table()
    ledger = Ledger.in_memory(Budget(4, "1e-5"), people)
    got = interior_point(people, column="age", epsilon=2, delta="1e-6", method=method, ledger=ledger)
    assert 20 <= got.value <= 79
    assert got.entry is not None
    assert ledger.spent().pure > 0
    other = interior_point(people, column="income", epsilon=1, delta="1e-6", method="exponential", ledger=ledger)
    assert isinstance(other.value, (int, float))
    assert "nothing is promised" in other.promise or 0 <= other.value <= 299_000
    with pytest.raises(BudgetExceeded):
        interior_point(people, column="age", epsilon=4, delta="1e-6", ledger=ledger, method="exponential")


def test_a_table_without_its_ledger_is_refused_and_so_are_bits():
    people = table()
    ledger = Ledger.in_memory(Budget(1), people)
    for arguments in ({"column": "age"}, {"column": "age", "bits": 8, "ledger": ledger}, {"ledger": ledger}):
        with pytest.raises(ParameterError):
            interior_point(people, epsilon=1, **arguments)
    assert ledger.spent().pure == 0


def test_missing_values_are_not_counted_and_the_promise_says_so():
    frame = pd.DataFrame({"x": [None, 5.0, 6.0] * 60})
    people = Table(frame, Domain(x=Number(0, 10, step=1, missing=True)), name="gaps")
    got = interior_point(people, column="x", epsilon=1, ledger=Ledger.in_memory(Budget(1), people))
    assert got.value in (5, 6)
    assert "how many there are is private" in got.promise


def test_a_file_is_gathered_like_a_table(tmp_path):
    path = tmp_path / "people.parquet"
    PEOPLE.to_parquet(path, row_group_size=50)
    stored = ParquetTable(path, DOMAIN, name="people")
    mechanism = InteriorPoint("age", MinRank("0.5"))
    found = []
    for data in (stored, table()):
        ledger = Ledger.in_memory(Budget(1), data, testing=True)
        found.append(release(mechanism, data, ledger=ledger, rng=SeededRng(3)).value)
    assert found[0] == found[1]


def test_integers_are_released_as_they_are():
    data = Integers([2**80 + 1] * 50, 100, neighbours="add-remove")
    got = release(InteriorPoint("x", MinRank(2)), data, ledger=Ledger.in_memory(Budget(2), data))
    assert got.value == 2**80 + 1


# --- bounds -----------------------------------------------------------------------------------------------------------


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_bounds_become_a_short_declaration_whatever_was_released(one, other):
    column = AnyNumber()
    codes = column.codes(np.array([one, other]))
    low, high = sorted(float(column.value(int(code))) for code in codes)
    number = declaration(column, low, high)
    farthest = Fraction(10) ** 50
    assert number.low <= max(-farthest, min(farthest, Fraction(low)))
    assert number.high >= max(-farthest, min(farthest, Fraction(high)))
    assert number.steps <= 102_000


@pytest.mark.parametrize(
    ("low", "high"),
    [(0.0, 1.7e308), (-1.7e308, 1.7e308), (-1.7e308, 40.0), (39.0, 1e300), (0.0, 5e-324), (-5e-324, 0.0)],
)
def test_a_column_declared_with_a_bound_at_the_end_of_the_floats_can_be_averaged(low, high):
    """Bounds may by chance be anywhere; what they are bought for costs its price and gives a number all the same."""
    values = np.arange(2000) % 80
    table = Table({"x": values}, Domain(x=declaration(AnyNumber(), low, high)), name="people")
    ledger = Ledger.in_memory(Budget(1, 1e-6), table)
    assert np.isfinite(Mean(epsilon=0.1, ledger=ledger).fit(table, "x").value_)
    session = Session(table, ledger)
    for asked in ("SELECT AVG(x) FROM people", "SELECT SUM(x) FROM people", "SELECT MEDIAN(x) FROM people"):
        assert np.isfinite(session.ask(asked).value)


def test_declarations_are_rounded_outward_to_two_digits_of_the_width():
    wide = AnyNumber()
    assert declaration(wide, 17.3, 92.8) == Number(17, 93, step="0.001")
    assert declaration(wide, -0.0123, 4.5) == Number("-0.1", "4.5", step="0.0001")
    assert declaration(wide, 5.0, 5.0) == Number(5, "5.1", step="0.0001")
    assert declaration(wide, 0.0, 0.0) == Number(0, "0.1", step="0.0001")
    assert declaration(AnyNumber(missing=True), 1.0, 2.0).missing
    assert declaration(Number(0, 120, step=1), 17.0, 93.0) == Number(17, 94, step=1)
    assert declaration(Number(0, 120, step=1), 120.0, 120.0) == Number(119, 120, step=1)


@pytest.mark.parametrize("kind", ["replace-one", "add-remove"])
def test_bounds_are_suggested_charged_and_used_on_the_same_ledger(kind):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"income": np.exp(rng.normal(10, 0.5, 5000)), "sex": ["F", "M"] * 2500})
    domain = Domain(income=Number.any(), sex=Category("F", "M"))
    people = Table(frame, domain, name="people", neighbours=kind)
    ledger = Ledger.in_memory(Budget(3, "1e-6"), people)
    found = suggest_bounds(people, "income", ledger=ledger, epsilon=1, coverage="0.9")
    beyond = 0.05 * 5000 + RankBounds("income", "0.9", found_rate(ledger)).missed(people.facts, 0.05)
    assert (frame.income < float(found.low)).sum() <= beyond
    assert (frame.income > float(found.high)).sum() <= beyond
    assert 0 <= found.low < 40_000 < found.high < 200_000
    assert "lie below, and as few above" in str(found)
    assert repr(found.number) in str(found)
    narrowed = Table(frame, Domain({**domain, "income": found.number}), name="people", neighbours=kind)
    size = 5000 if kind == "add-remove" else None
    if size is None:
        mean = Mean(epsilon=1, ledger=ledger).fit(narrowed, "income").value_
        assert abs(mean - frame.income.clip(float(found.low), float(found.high)).mean()) < 3000
    assert interior_point(narrowed, column="income", epsilon="0.5", ledger=ledger).value > 0
    assert ledger.spent().pure <= 3 * 10**9


def found_rate(ledger):
    (charge,) = [entry for entry in ledger.entries() if "mechanism" in entry]
    return revive(charge["mechanism"], CATALOGUE).rate


def test_the_two_quantiles_are_priced_as_two_and_ordered():
    people = table()
    mechanism = RankBounds("age", "0.9", "0.5")
    one, other = (part.guarantee(people.facts) for part in mechanism.parts)
    assert mechanism.guarantee(people.facts) == one + other
    assert [part.q for part in mechanism.parts] == [Fraction(1, 20), Fraction(19, 20)]
    assert revive(record(mechanism), CATALOGUE) == mechanism
    ledger = Ledger.in_memory(Budget(500), people, testing=True)
    faint = RankBounds("age", "0.1", Fraction(1, 10**6))
    for seed in range(30):
        low, high = release(faint, people, ledger=ledger, rng=SeededRng(seed)).value
        assert low <= high


def test_suggestions_need_a_number_a_table_and_a_ledger():
    people = Table(pd.DataFrame({"c": ["a"] * 9}), Domain(c=Category("a", "b")), name="c")
    ledger = Ledger.in_memory(Budget(1), people)
    for data, column in ((people, "c"), ([1, 2], "c"), (people, None)):
        with pytest.raises((ParameterError, SchemaError)):
            suggest_bounds(data, column, ledger=ledger, epsilon=1)
    for arguments in ({"coverage": 1}, {"beta": 0}, {"epsilon": -1}, {"ledger": None}):
        with pytest.raises(ParameterError):
            suggest_bounds(table(), "age", **{"ledger": ledger, "epsilon": 1, **arguments})
    assert ledger.spent().pure == 0


@pytest.mark.parametrize("estimator", [Median, lambda **more: Quantile(0.5, **more)])
def test_quantiles_of_a_column_without_bounds_are_promised_in_rows(estimator):
    frame = pd.DataFrame({"x": [float(k**3) for k in range(3000)]})
    people = Table(frame, Domain(x=Number.any()), name="people")
    fitted = estimator(epsilon=1, ledger=Ledger.in_memory(Budget(1), people)).fit(people, "x")
    assert fitted.method_ == "rank"
    assert 1300**3 < fitted.value_ < 1700**3
    assert fitted.promise_.bound is None
    assert "misses the quantile by fewer than 92 rows with probability 0.95" in str(fitted.promise_)


def test_without_bounds_there_is_no_mean_and_no_loss():
    people = table()
    ledger = Ledger.in_memory(Budget(1), people)
    for estimator in (Mean(epsilon=1, ledger=ledger), Median(epsilon=1, ledger=ledger, method="descent")):
        with pytest.raises(ParameterError, match="suggest_bounds"):
            estimator.fit(people, "income")
    assert ledger.spent().pure == 0


def test_a_failing_share_is_kept_for_the_prefixes_alone():
    facts, funds = Facts(Domain(x=Whole(64)), ADD, None), Funds.of(Budget(1, "1e-6"))
    for each in methods(facts=facts, column="x", beta="0.05", funds=funds):
        guarantee = each.mechanism(0.1).guarantee(facts)
        kept = funds.keeping(FAILING) if guarantee.failure else funds
        assert kept.admits(guarantee)
        assert not kept.share(Fraction(99, 100)).admits(guarantee)
