"""Sums over distinct rows are the table's own sums, bit for bit; nothing is read early and nothing leaves."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import discreet as dp
from discreet.answering.averaged_weights import Together
from discreet.data import Batch, Category, DistinctRows, Domain, Matrix, Number, Slice, Vector, keys
from discreet.errors import BudgetExceeded, LedgerMismatch, ParameterError, SchemaError
from discreet.query import (
    Among,
    And,
    Between,
    Count,
    Equals,
    GroupCount,
    GroupSum,
    Histogram,
    KeyCount,
    Missing,
    Not,
    Of,
    Or,
    Persons,
    Sum,
    VectorSum,
)

ROWS = 3000
DOMAIN = Domain(
    age=Number(0, 9, step=1),
    height=Number("0.5", "2.5", step="0.5", missing=True),
    sex=Category("F", "M", other="X", missing="?"),
    wealth=Number(-(10**12), 10**12, step="0.01"),
)
UNKEYED = Domain({**dict(DOMAIN.columns), "anything": Number.any()})


def columns(seed=1, *, wealths=3):
    """Few distinct rows, with ties, missing values, undeclared levels, and contributions far beyond 2^31."""
    rng = np.random.default_rng(seed)
    heights = rng.choice([0.5, 1.0, 2.5], ROWS).tolist()
    return {
        "age": rng.integers(0, 6, ROWS).tolist(),
        "height": [None if place % 7 == 0 else height for place, height in enumerate(heights)],
        "sex": rng.choice(np.array(["F", "M", "other", None], dtype=object), ROWS).tolist(),
        "wealth": rng.choice(np.round(rng.normal(0, 1e11, wealths), 2), ROWS).tolist(),
        "anything": rng.normal(0, 1e6, ROWS).tolist(),
        "person": rng.integers(0, 700, ROWS).tolist(),
    }


def in_memory(folder, domain=DOMAIN, rows=None, **more):
    return dp.Table(columns() if rows is None else rows, domain, **more)


def on_file(folder, domain=DOMAIN, rows=None, **more):
    path = folder / f"rows{len(list(folder.iterdir()))}.parquet"
    pd.DataFrame(columns() if rows is None else rows).to_parquet(path)
    return dp.ParquetTable(path, domain, batch_rows=128, threads=1, **more)


MAKERS = {"memory": in_memory, "file": on_file}


def predicate(rng, depth=3):
    if depth and rng.random() < 0.6:
        parts = [predicate(rng, depth - 1) for _ in range(rng.integers(0, 4))]
        return [And(*parts), Or(*parts), Not(And(*parts))][rng.integers(3)]
    low, high = sorted(rng.integers(0, 10, 2).tolist())
    return [
        Between("age", low, high),
        Equals("sex", ["F", "M", "X"][rng.integers(3)]),
        Among("height", [0.5, 2.5]),
        Missing("height"),
        Missing("sex"),
        Between("wealth", -(10**12), int(rng.integers(-(10**11), 10**11))),
    ][rng.integers(6)]


def query(rng):
    where = predicate(rng)
    return [
        Count(where),
        Histogram(("sex", "height"), where),
        Histogram("age", where),
        Sum("wealth", where),
        Sum("height", where),
        Sum("age"),
        VectorSum(("age", "height"), where),
        VectorSum(("wealth", "age"), where),
    ][rng.integers(8)]


def same(found, wanted):
    return found.dtype == wanted.dtype and found.shape == wanted.shape and found.tolist() == wanted.tolist()


def held(data):
    """How many distinct rows are kept; None if none are."""
    return None if data._counted is None else data._counted[0].rows


class Counting:
    """A dataset that counts how often its rows are read."""

    def __init__(self, table):
        self.table, self.passes = table, 0
        self.facts, self.identity, self.source = table.facts, table.identity, table.source
        self.offers = table.offers

    def check_source(self):
        self.table.check_source()

    def exact_sum(self, partial):
        self.passes += 1
        return self.table.exact_sum(partial)

    def exact_distinct(self):
        self.passes += 1
        return self.table.exact_distinct()

    def exact_gather(self, take):
        self.passes += 1
        return self.table.exact_gather(take)

    def exact_slices(self, slices, *, where=None, disjoint):
        self.passes += 1
        return self.table.exact_slices(slices, where=where, disjoint=disjoint)


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("several", [False, True])
def test_random_questions_have_the_same_answers_bit_for_bit(kind, several, tmp_path):
    rng = np.random.default_rng(7)
    more = {"unit": "person", "rows_per_unit": 3} if several else {}
    table = in_memory(tmp_path, **more)
    counted = DistinctRows(MAKERS[kind](tmp_path, **more))
    for _ in range(150):
        asked = query(rng)
        assert same(counted.exact_sum(asked), table.exact_sum(asked)), asked
    everything = table.exact_sum(KeyCount(DOMAIN.names))
    assert held(counted) == len(everything) < sum(everything.values()) / 2
    assert (counted.facts, counted.identity) == (table.facts, table.identity)


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("several", [False, True])
def test_questions_of_one_charge_have_the_same_answers_whichever_they_are(kind, several, tmp_path):
    """Persons has no sum over counted rows: an error for it would say whether the distinct rows are few."""
    more = {"unit": "person", "rows_per_unit": 3} if several else {}
    table = in_memory(tmp_path, **more)
    counted = DistinctRows(MAKERS[kind](tmp_path, **more))
    some = Between("age", 1, 3)
    asked = [Count(some), Sum("age"), Histogram("sex"), GroupCount(("age",)), GroupSum(("sex",), Of("age"))]
    asked += [Persons(where=some), Persons(("sex",))]
    for some in (*itertools.permutations(asked, 1), *itertools.permutations(asked, 2)):
        wanted = np.concatenate([np.ravel(table.exact_sum(each)) for each in some])
        assert counted.exact_sum(Together(some)).tolist() == wanted.tolist(), some
    assert held(counted) is not None


@pytest.mark.parametrize("kind", MAKERS)
def test_everything_that_is_not_a_weighted_query_comes_from_the_table(kind, tmp_path):
    table = MAKERS[kind](tmp_path)
    counted = DistinctRows(table)
    counted.exact_sum(Count())
    keys = KeyCount(("age", "sex"))
    assert counted.exact_sum(keys) == table.exact_sum(keys)

    def squares(batch):
        return (batch["age"] ** 2).sum()

    assert counted.exact_sum(squares) == table.exact_sum(squares)
    slices = [Slice("age", "low", 20), Slice("wealth", "high", 20)]
    for where, disjoint in ((None, True), (Equals("sex", "F"), False)):
        found, wanted = (
            [values.tolist() for values in each.exact_slices(slices, where=where, disjoint=disjoint)]
            for each in (counted, table)
        )
        assert found == wanted


def test_a_function_that_only_looks_like_a_query_s_partial_goes_to_the_table(tmp_path):
    class Doubled:
        def partial(self, batch):
            return np.asarray(batch.rows)

        def other(self, batch):
            return np.asarray(2 * batch.rows)

        def weighted(self, batch, counts):
            return counts.sum()

    counted = DistinctRows(in_memory(tmp_path))
    assert [int(counted.exact_sum(Doubled())) for _ in range(2)] == [ROWS, ROWS]
    assert [int(counted.exact_sum(Doubled().other)) for _ in range(2)] == [2 * ROWS, 2 * ROWS]


def test_the_rows_are_read_once_and_not_before_the_first_sum(tmp_path):
    table = Counting(in_memory(tmp_path))
    counted = DistinctRows(table)
    repr(counted), counted.facts, counted.check_source()
    assert (table.passes, held(counted)) == (0, None)
    counted.exact_sum(KeyCount("age"))
    assert (table.passes, held(counted)) == (1, None)
    for _ in range(5):
        counted.exact_sum(Histogram("sex", Between("age", 1, 3)))
    assert table.passes == 2


def test_a_refused_charge_reads_nothing(tmp_path):
    table = Counting(in_memory(tmp_path))
    counted = DistinctRows(table)
    ledger = dp.Ledger.create(tmp_path / "l", dp.Budget("0.1", 0), counted, state_dir=tmp_path / "state")
    with pytest.raises(BudgetExceeded):
        dp.release(dp.Laplace(Count(), 1), counted, ledger=ledger)
    assert table.passes == 0
    for _ in range(2):
        dp.release(dp.Laplace(Count(Between("age", 1, 3)), 50), counted, ledger=ledger)
    assert table.passes == 1


@pytest.mark.parametrize("kind", MAKERS)
def test_many_distinct_rows_are_not_kept(kind, tmp_path, monkeypatch):
    rows = columns(wealths=ROWS)
    table = in_memory(tmp_path, rows=rows)
    counted = DistinctRows(MAKERS[kind](tmp_path, rows=rows))
    for asked in (Count(Missing("sex")), Sum("wealth"), Histogram("age")):
        assert same(counted.exact_sum(asked), table.exact_sum(asked))
    assert held(counted) is None
    monkeypatch.setattr(keys, "KEPT", 1000)
    monkeypatch.setattr(keys, "_LEAST", 10)
    capped = DistinctRows(MAKERS[kind](tmp_path))
    for asked in (Count(Missing("sex")), Sum("wealth"), Histogram("age")):
        assert same(capped.exact_sum(asked), in_memory(tmp_path).exact_sum(asked))
    assert held(capped) is None


@pytest.mark.parametrize("least", [1, 10, 10**9])
def test_however_keys_are_merged_the_counts_are_the_same(least, tmp_path, monkeypatch):
    monkeypatch.setattr(keys, "_LEAST", least)
    counted = DistinctRows(on_file(tmp_path))
    counted.exact_sum(Count())
    batch, counts = counted._counted
    lines = zip(*(batch[name].tolist() for name in DOMAIN.names), strict=True)
    assert Counter(dict(zip(lines, counts.tolist(), strict=True))) == in_memory(tmp_path).exact_sum(
        KeyCount(DOMAIN.names)
    )


def test_columns_without_codes_to_mix_are_asked_of_the_table(tmp_path):
    table = in_memory(tmp_path, UNKEYED)
    counted = DistinctRows(table)
    assert UNKEYED.digits == DOMAIN.names
    for _ in range(2):
        for asked in (KeyCount("anything"), Count(Missing("anything")), Sum("age"), Histogram("sex")):
            found, wanted = counted.exact_sum(asked), table.exact_sum(asked)
            assert found == wanted if isinstance(found, Counter) else same(found, wanted)
    assert held(counted) is not None


def test_the_labels_of_a_matrix_are_counted_and_its_features_asked_of_the_matrix():
    rng = np.random.default_rng(9)
    matrix = Matrix(
        rng.normal(size=(200, 3)), rng.integers(0, 3, 200), features=Vector(3, norm=2), target=Category(0, 1, 2)
    )
    counted = DistinctRows(matrix)
    for _ in range(2):
        for asked in (Histogram("y"), VectorSum("x"), VectorSum("x", Equals("y", 1)), Count(Equals("y", 2))):
            assert same(counted.exact_sum(asked), matrix.exact_sum(asked))
    assert held(counted) == 3


def test_a_vector_s_weighted_sum_is_that_of_repeated_rows():
    domain, rng = Domain(x=Vector(2, norm=8), y=Category(0, 1)), np.random.default_rng(10)
    codes = {"x": rng.integers(-5, 6, (6, 2)), "y": np.array([0, 1, 0, 1, 1, 0])}
    counts = np.array([3, 1, 0, 7, 2, 5])
    repeated = {name: np.repeat(each, counts, axis=0) for name, each in codes.items()}
    once, often = (Batch(domain, len(each["y"]), each.__getitem__) for each in (codes, repeated))
    for asked in (VectorSum("x"), VectorSum("x", Equals("y", 1))):
        assert same(asked.weighted(once, counts), asked.partial(often))


def test_a_domain_beyond_two_to_the_62_rows_is_not_mixed(tmp_path):
    wide = Domain(a=Number(0, 2**31 - 1, step=1), b=Number(0, 2**31 - 1, step=1))
    assert wide.digits == ("a", "b")
    too_wide = Domain(a=Number(0, 2**31 - 1, step=1), b=Number(0, 2**31, step=1))
    assert too_wide.digits == ()
    rows = {"a": [2**31 - 1] * 9 + [0], "b": [2**31 - 1] * 9 + [7]}
    for domain in (wide, too_wide):
        table = dp.Table(rows, domain)
        counted = DistinctRows(table)
        for _ in range(2):
            for asked in (Sum("a"), VectorSum(("a", "b")), Count(Equals("b", 7))):
                assert same(counted.exact_sum(asked), table.exact_sum(asked))
        assert (held(counted) == 2) == (domain == wide)


def test_counts_up_to_the_largest_table_are_summed_exactly():
    """Made-up counts of 2^31 - 1 rows in all: every contribution and every sum is beyond what floats could round to."""
    domain = Domain(big=Number(0, 2**62 - 1, step=1), odd=Number(-(2**40), 2**40, step=1), sex=Category("F", "M"))
    codes = {"big": np.array([2**62 - 1, 2**61 + 1]), "odd": np.array([2**41, 3]), "sex": np.array([0, 1])}
    batch, counts = Batch(domain, 2, codes.__getitem__), np.array([2**31 - 2, 1])
    assert Sum("big").weighted(batch, counts).tolist() == (2**31 - 2) * (2**62 - 1) + 2**61 + 1
    assert VectorSum(("big", "odd")).weighted(batch, counts).tolist() == [
        (2**31 - 2) * (2**62 - 1) + 2**61 + 1,
        (2**31 - 2) * 2**40 + 3 - 2**40,
    ]
    assert Histogram("sex").weighted(batch, counts).tolist() == [2**31 - 2, 1]
    assert Count().weighted(batch, counts).tolist() == 2**31 - 1


def test_an_empty_table_has_the_same_sums(tmp_path):
    rows = {name: column[:0] for name, column in columns().items()}
    table = in_memory(tmp_path, rows=rows, neighbours="add-remove")
    counted = DistinctRows(table)
    for _ in range(2):
        for asked in (Count(), Histogram("sex"), Sum("wealth")):
            assert same(counted.exact_sum(asked), table.exact_sum(asked))


def test_a_file_that_changed_is_refused_though_its_rows_are_kept(tmp_path):
    table = on_file(tmp_path)
    counted = DistinctRows(table)
    counted.exact_sum(Count())
    assert held(counted) is not None
    table.source.write_bytes(b"something else")
    for asked in (counted.check_source, lambda: counted.exact_sum(Count())):
        with pytest.raises(LedgerMismatch):
            asked()


def test_wrong_questions_are_refused_as_the_table_refuses_them(tmp_path):
    counted = DistinctRows(in_memory(tmp_path))
    for _ in range(2):
        with pytest.raises(SchemaError, match="Did you mean 'age'"):
            counted.exact_sum(Count(Between("agee", 1, 2)))
        with pytest.raises(ParameterError, match="grid"):
            counted.exact_sum(Count(Equals("age", "0.5")))
        counted.exact_sum(Count())
    with pytest.raises(ParameterError, match="found a dict"):
        DistinctRows({})


@pytest.mark.parametrize("kind", MAKERS)
def test_no_row_is_printed_pickled_or_copied(kind, tmp_path):
    canary = 8675309
    rows = {"pay": [canary] * 100, "sex": ["F"] * 100}
    domain = Domain(pay=Number(0, 10**8, step=1), sex=Category("F", "M"))
    counted = DistinctRows(MAKERS[kind](tmp_path, domain, rows, name="people"))
    assert int(counted.exact_sum(Sum("pay"))) == 100 * canary
    assert held(counted) == 1
    for shown in (repr(counted), str(counted), repr(counted._counted[0]), f"{counted.facts!r}{counted.identity!r}"):
        assert str(canary) not in shown
    assert repr(counted).startswith("<DistinctRows 'people': ")
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="private rows"):
            leave(counted)
