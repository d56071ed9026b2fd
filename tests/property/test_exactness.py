"""Laws: predicates mean what plain Python says, and sums and slices are exact for any cutting and order of the rows."""

from __future__ import annotations

import functools
import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discreet.data import Category, Domain, Number, Slice, Table, Vector, grid_rows, sum_of
from discreet.data.ingest import batches_of
from discreet.data.slices import slices_of
from discreet.query import Among, And, Between, Count, Equals, Histogram, KeyCount, Missing, Not, Or, Sum, VectorSum
from discreet.records import record, revive

CATALOGUE = {each.NAME: each for each in (Equals, Between, Among, Missing, And, Or, Not)}
HUGE = Number(1 - 2**61, 2**61 - 1, step=1)
DOMAIN = Domain(
    n=Number(-2, 3, step="0.5", missing=True),
    c=Category("a", "b", 1, other="o", missing="?"),
    h=HUGE,
)
NUMBERS = [Fraction(code, 2) - 2 for code in range(11)]
LEVELS = ["a", "b", 1, "o"]

rows = st.tuples(
    st.sampled_from([*NUMBERS, None]), st.sampled_from(["a", "b", "zz", None]), st.sampled_from([-(2**60), 0, 1, 2**60])
)
tables = st.lists(rows, max_size=12)
leaves = st.one_of(
    st.sampled_from(NUMBERS).map(lambda value: Equals("n", value)),
    st.sampled_from(LEVELS).map(lambda value: Equals("c", value)),
    st.sampled_from([-(2**60), 1, 7]).map(lambda value: Equals("h", value)),
    st.tuples(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS)).map(lambda ends: Between("n", min(ends), max(ends))),
    st.sampled_from([0, 1, 2**60]).map(lambda high: Between("h", 0, high)),
    st.lists(st.sampled_from(NUMBERS), min_size=1).map(lambda values: Among("n", values)),
    st.lists(st.sampled_from(LEVELS), min_size=1).map(lambda values: Among("c", values)),
    st.sampled_from(["n", "c", "h"]).map(Missing),
)
predicates = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: And(*parts)),
        st.lists(inner, max_size=3).map(lambda parts: Or(*parts)),
        inner.map(Not),
    ),
    max_leaves=8,
)


def holds(predicate, row):
    """What a predicate says of one row, in plain Python."""
    match predicate:
        case And():
            return all(holds(part, row) for part in predicate.parts)
        case Or():
            return any(holds(part, row) for part in predicate.parts)
        case Not():
            return not holds(predicate.part, row)
    value = dict(zip(("n", "c", "h"), row, strict=True))[predicate.column]
    if predicate.column == "c" and value == "zz":
        value = "o"
    match predicate:
        case Missing():
            return value is None
        case Equals():
            return value is not None and value == predicate.value
        case Between():
            return value is not None and predicate.low <= value <= predicate.high
        case Among():
            return value is not None and value in predicate.values


def table_of(entries):
    return Table(
        {name: [row[place] for row in entries] for place, name in enumerate("nch")}, DOMAIN, neighbours="add-remove"
    )


@settings(deadline=None, max_examples=150)
@given(entries=tables, where=predicates)
def test_predicates_agree_with_plain_python(entries, where):
    data = table_of(entries)
    chosen = [row for row in entries if holds(where, row)]
    assert data.exact_sum(Count(where)) == len(chosen)
    assert data.exact_sum(Sum("n", where)) == sum(2 * row[0] for row in chosen if row[0] is not None)
    assert data.exact_sum(Sum("h", where)) == sum(row[2] for row in chosen)
    assert data.exact_sum(Histogram(("n", "c"), where)).sum() == len(chosen)
    assert data.exact_sum(KeyCount(("h",), where)) == Counter((HUGE.code(row[2]),) for row in chosen)
    assert set(where.columns) <= {"n", "c", "h"}


@settings(deadline=None, max_examples=100)
@given(where=predicates)
def test_a_predicate_comes_back_from_its_record(where):
    assert revive(record(where), CATALOGUE) == where


def naive_slices(codes, slices, disjoint):
    """The definition, by sorting whole tables again and again."""
    left, found = list(codes), []
    for each in slices:
        place = "xyz".index(each.column)
        sign = 1 if each.side == "low" else -1
        missing = 4 if each.column == "x" else None
        taken = sorted((row for row in left if row[place] != missing), key=lambda row: (sign * row[place], row))[
            : each.count
        ]
        found.append([row[place] for row in taken])
        if disjoint:
            left = list((Counter(left) - Counter(taken)).elements())
    return found


slice_lists = st.lists(
    st.builds(Slice, st.sampled_from("xyz"), st.sampled_from(["low", "high"]), st.integers(0, 6)),
    min_size=1,
    max_size=4,
)
code_rows = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 1)), max_size=25)
SLICED = Domain(x=Number(0, 3, step=1, missing=True), y=Number(0, 2, step=1), z=Number(0, 1, step=1))


@settings(deadline=None, max_examples=200)
@given(
    codes=code_rows,
    slices=slice_lists,
    disjoint=st.booleans(),
    block=st.integers(1, 30),
    kept=st.sampled_from([0, 40, 2**24]),
)
@example([(0, 1, 0), (0, 0, 0)], [Slice("x", "low", 1), Slice("y", "low", 1)], True, 1, 2**24)
@example([(0, 1, 0), (0, 0, 0)], [Slice("x", "high", 1), Slice("y", "high", 1)], True, 1, 0)
@example([(0, 1, 0)] * 3, [Slice("x", "low", 1), Slice("y", "low", 1), Slice("z", "low", 2)], True, 2, 0)
@example([(4, 1, 0), (0, 1, 1)], [Slice("x", "high", 2), Slice("y", "high", 2)], True, 1, 0)
def test_slices_are_the_definition_for_any_cutting_and_any_number_of_passes(codes, slices, disjoint, block, kept):
    stored = {name: np.array([row[place] for row in codes], dtype=np.uint8) for place, name in enumerate("xyz")}
    batches = functools.partial(batches_of, stored, SLICED, rows=len(codes), block=block)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("discreet.data.slices._KEPT", kept)  # 0: one pass for each slice
        found = slices_of(batches, slices, domain=SLICED, where=None, disjoint=disjoint)
    assert [each.tolist() for each in found] == naive_slices(codes, slices, disjoint)
    assert all(each.dtype == np.int64 for each in found)


@settings(deadline=None, max_examples=100)
@given(
    values=st.lists(st.tuples(st.integers(0, 2**62 - 2), st.integers(0, 9)), max_size=30),
    block=st.integers(1, 31),
)
def test_sums_are_exact_for_any_cutting(values, block):
    domain = Domain(h=HUGE, s=Number(-3, 6, step=1))
    stored = {
        "h": np.array([h for h, _ in values], dtype=np.uint64),
        "s": np.array([s for _, s in values], dtype=np.uint8),
    }
    expected = [sum(HUGE.value(h) for h, _ in values), sum(s - 3 for _, s in values)]
    found = sum_of(batches_of(stored, domain, rows=len(values), block=block), VectorSum(("h", "s")).partial)
    assert found.tolist() == expected
    keys = sum_of(batches_of(stored, domain, rows=len(values), block=block), KeyCount(("h", "s")).partial)
    assert keys == Counter(values)


def test_a_sum_does_not_depend_on_the_order_where_floats_would():
    """The classic: 2^53 and then many ones. In floats the ones vanish; here the order cannot matter."""
    column = Number(0, 2**54, step=1)
    values = [2**53] + [1] * 1000
    sums = {Table({"v": order}, Domain(v=column)).exact_sum(Sum("v")).item() for order in (values, values[::-1])}
    assert sums == {2**53 + 1000}
    assert float(2**53) + sum([1.0]) == float(2**53)


number_columns = st.builds(
    lambda low, step, steps: Number(low, low + step * steps, step),
    st.fractions(-100, 100, max_denominator=20),
    st.sampled_from([Fraction(1, 10), Fraction(1), Fraction(7), Fraction(1, 3), Fraction(1, 1000)]),
    st.integers(1, 10**6),
)


def code_of(value, column):
    """One value's code through a table of one row."""
    table = Table({"v": [value]}, Domain(v=column))
    return next(iter(table.exact_sum(KeyCount("v"))))[0]


@settings(deadline=None, max_examples=150)
@given(column=number_columns, value=st.one_of(st.integers(-(10**9), 10**9), st.decimals(-1000, 1000, places=4)))
def test_exact_numbers_are_rounded_down_after_clamping(column, value):
    clamped = min(max(Fraction(value), column.low), column.high)
    assert code_of(value, column) == math.floor((clamped - column.low) / column.step)


@settings(deadline=None, max_examples=150)
@given(column=number_columns, place=st.integers(0, 10**6))
def test_a_float_written_as_a_grid_value_has_that_value_s_code(column, place):
    code = min(place, column.steps)
    assert code_of(float(column.value(code)), column) == code


@settings(deadline=None, max_examples=150)
@given(column=number_columns, value=st.floats(-1000, 1000))
def test_a_float_is_rounded_down_unless_it_is_next_to_a_grid_value(column, value):
    exact = (min(max(Fraction(value), column.low), column.high) - column.low) / column.step
    code = code_of(value, column)
    assert code in {math.floor(exact), math.floor(exact + Fraction(1, 10**6))}


@settings(deadline=None, max_examples=60)
@given(
    values=st.lists(st.one_of(st.floats(allow_nan=False), st.integers(-(2**70), 2**70)), min_size=1, max_size=20),
    column=number_columns,
)
def test_the_code_of_a_row_does_not_depend_on_the_other_rows(values, column):
    alone = Counter((code_of(value, column),) for value in values)
    assert Table({"v": values}, Domain(v=column)).exact_sum(KeyCount("v")) == alone


@settings(deadline=None, max_examples=100)
@given(value=st.floats(allow_nan=False), other=st.floats(allow_nan=False))
def test_codes_of_unbounded_numbers_are_ordered_like_the_numbers(value, other):
    column = Number.any()
    first, second = code_of(value, column), code_of(other, column)
    assert (first <= second) if value <= other else (first >= second)
    if math.isfinite(value):
        assert abs(column.value(first) - Fraction(value)) <= max(abs(Fraction(value)) / 2**50, Fraction(1, 2**1071))


@settings(deadline=None, max_examples=100)
@given(
    data=st.lists(st.lists(st.floats(-1e300, 1e300), min_size=3, max_size=3), min_size=1, max_size=8),
    step=st.sampled_from(["0.5", "0.3", "0.01", "0.0000001"]),
)
def test_a_row_of_features_stays_in_the_ball_and_is_never_rounded_up(data, step):
    vector = Vector(3, norm="1.5", step=step)
    features = np.array(data)
    units = grid_rows(features, vector)
    assert max(sum(int(entry) ** 2 for entry in row) for row in units) <= vector.bound_squared
    assert np.all(units * np.sign(features) >= 0)
    assert np.all(np.abs(units) * float(vector.step) <= np.abs(features) * (1 + 1e-12))
    assert all(
        np.array_equal(units[place], grid_rows(features[place : place + 1], vector)[0])
        for place in range(len(features))
    )


@pytest.mark.parametrize("text", ["0.1", "0.30000000000000004", "1e-7", "123456.789"])
def test_decimals_and_texts_and_floats_agree_on_the_grid(text, tmp_path):
    column = Number(0, 200_000, step="0.001")
    path = tmp_path / "rows.csv"
    path.write_text(f"v\n{text}\n")
    spelled = Table(path, Domain(v=column)).exact_sum(KeyCount("v"))
    assert spelled == Counter({(code_of(Decimal(text), column),): 1}) == Counter({(code_of(float(text), column),): 1})
