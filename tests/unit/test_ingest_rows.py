"""A row is read alone: its code depends on no other row; and a file that is replaced while it is read is noticed."""

from __future__ import annotations

import enum
import math
import os
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from discreet.data import Batch, Category, Domain, Number, ParquetTable, Slice, Table, encode, read
from discreet.errors import LedgerMismatch, SchemaError
from discreet.query import Count, Equals, Histogram, Sum

FINE = Number(-(10**9), 10**9, step="1e-6")
COLUMNS = [
    FINE,
    Number(0, 10**9, step="1e-6"),
    Number(0, "1e15", step="0.25"),
    Number("-0.5", "999999.5", step="1e-9"),
    Number.any(),
]
HUGE = [1e9, -1e9, 1e30, -math.inf, 123456789.125]


def codes(entries, column) -> list[int]:
    return encode(read(entries, "v"), column, "v").tolist()


@pytest.mark.parametrize("column", COLUMNS, ids=repr)
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_a_huge_value_in_another_row_changes_no_code(column, kind):
    places = np.array([0.3, 0.5, 0.7, 0.99, 1.0 - 1e-7, 7.25, 1e-9])
    small = (places * 1e-6 + np.arange(len(places))).astype(kind)
    alone = [codes(np.array([value]), column)[0] for value in small]
    for huge in HUGE:
        together = codes(np.concatenate([small, np.array([huge], dtype=kind)]), column)
        assert together[:-1] == alone
        assert together[-1] == codes(np.array([huge], dtype=kind), column)[0]


@settings(deadline=None, max_examples=200)
@given(
    place=st.integers(0, 10**7),
    offset=st.floats(-1, 1) | st.sampled_from([0.5, 0.7, 0.99, -0.3, 1e-9, -1e-9, 2e-9, -2e-9]),
    huge=st.sampled_from(HUGE),
    column=st.sampled_from(COLUMNS[:4]),
)
def test_a_value_near_a_grid_point_is_read_alone(place, offset, huge, column):
    value = float(max(column.low, Fraction(0))) + (place + offset) * float(column.step)
    (alone,) = codes(np.array([value]), column)
    assert codes(np.array([value, huge]), column)[0] == alone
    assert codes(np.array([huge, value, huge]), column)[1] == alone
    assert codes([value, huge], column)[0] == alone


@settings(deadline=None, max_examples=200)
@given(value=st.floats(0, 1000) | st.integers(0, 10**9).map(lambda k: k * 1e-6))
def test_next_to_a_huge_value_a_float_is_still_rounded_down(value):
    """Half a step is far from a grid point, whatever else is in the column."""
    code = codes(np.array([value, 1e9]), COLUMNS[1])[0]
    quotient = Fraction(value) * 10**6
    assert code in {math.floor(quotient), math.floor(quotient + Fraction(1, 10**5))}


# A file that is replaced between the first and the last batch of a sum.


@pytest.fixture
def replaced(tmp_path):
    """A table on a file, and what puts another file in its place."""
    path, other = tmp_path / "rows.parquet", tmp_path / "other.parquet"
    parquet.write_table(pa.table({"v": [0, 1, 1]}), path)
    parquet.write_table(pa.table({"v": [1] * 100}), other)
    return ParquetTable(path, Domain(v=Number(0, 1, step=1)), batch_rows=1), lambda: os.replace(other, path)


def test_a_file_that_is_replaced_during_a_sum_is_another_table(replaced):
    data, replace = replaced
    seen = []

    def partial(batch: Batch) -> np.ndarray:
        if batch.rows and len(seen) == 1:
            replace()
        seen.append(batch["v"].tolist())
        return np.array([batch.rows], dtype=np.int64)

    with pytest.raises(LedgerMismatch, match="changed"):
        data.exact_sum(partial)
    assert seen[0] == []  # asked once on no rows, to learn which columns are read
    assert len(seen) > 1


def test_a_file_that_is_replaced_while_slices_are_taken_is_another_table(replaced):
    data, replace = replaced
    masked = []

    class Everybody:
        def check(self, domain: Domain) -> None:
            pass

        def mask(self, batch: Batch) -> np.ndarray:
            if batch.rows and not masked:
                replace()
                masked.append(batch.rows)
            return np.ones(batch.rows, dtype=bool)

    with pytest.raises(LedgerMismatch, match="changed"):
        data.exact_slices([Slice("v", "low", 1)], where=Everybody(), disjoint=True)
    assert masked


def test_a_file_that_is_replaced_is_named_even_if_the_sum_fails(replaced):
    data, replace = replaced

    def partial(batch: Batch) -> np.ndarray:
        if batch.rows:
            replace()
            raise ZeroDivisionError
        return np.zeros(1, dtype=np.int64)

    with pytest.raises(LedgerMismatch, match="changed"):
        data.exact_sum(partial)


# Kinds of entries.


@pytest.mark.parametrize("kind", [np.int64, np.int8, np.uint64, np.float64, np.float32, bool, object])
def test_what_a_masked_array_hides_is_missing(kind):
    hidden = np.ma.masked_array(np.array([1, 0, 1], dtype=kind), mask=[False, False, True])
    assert codes(hidden, Number(0, 1, step=1, missing=True)) == [1, 0, 2]
    assert codes(hidden, Number.any(missing=True))[2] == Number.any(missing=True).missing_code
    with pytest.raises(SchemaError, match="missing"):
        Table({"v": hidden}, Domain(v=Number(0, 1, step=1)))
    nothing_hidden = np.ma.masked_array(np.array([1, 0, 1], dtype=kind))
    assert codes(nothing_hidden, Number(0, 1, step=1)) == [1, 0, 1]


def test_a_hidden_value_is_neither_summed_nor_counted():
    hidden = np.ma.masked_array([5, 7, 9], mask=[False, True, False])
    table = Table({"v": hidden}, Domain(v=Number(0, 9, step=1, missing=True)))
    assert int(table.exact_sum(Sum("v"))) == 14
    assert table.exact_sum(Histogram("v")).tolist() == [0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1]


def test_masked_text_and_levels_are_missing():
    hidden = np.ma.masked_array(["a", "b", "a"], mask=[False, True, False])
    assert codes(hidden, Category("a", "b", missing="none")) == [0, 2, 0]
    numbers = np.ma.masked_array([1, 2, 1], mask=[False, True, False])
    assert codes(numbers, Category(1, 2, missing="none")) == [0, 2, 0]


class Sex(enum.StrEnum):
    F = "female"
    M = "male"


class OldSex(str, enum.Enum):  # noqa: UP042 - str(member) is its name here, and that is the trap
    F = "female"
    M = "male"


@pytest.mark.parametrize("kind", [Sex, OldSex])
def test_a_member_of_a_text_enum_is_its_value(kind):
    declared = Category(*kind)
    assert declared == Category("female", "male")
    assert all(type(level) is str for level in declared.levels)
    assert declared.code(kind.M) == declared.code("male") == 1
    assert codes(list(kind), declared) == codes(["female", "male"], declared) == [0, 1]
    assert codes(np.array(["male"]), declared) == [1]
    table = Table({"v": [kind.F, kind.M, "male"]}, Domain(v=declared))
    assert int(table.exact_sum(Count(Equals("v", kind.M)))) == 2
    assert Category("x", other=kind.F, missing=kind.M) == Category("x", other="female", missing="male")


@pytest.mark.parametrize("sign", [1, -1])
def test_an_unbounded_number_has_one_code_in_every_spelling(sign):
    column = Number.any()
    for power in (300, 307, 308):
        spellings = [
            sign * 10**power,
            sign * float(f"1e{power}"),
            sign * Decimal(10) ** power,
            Fraction(sign * 10**power),
        ]
        found = {codes([value], column)[0] for value in spellings}
        assert found == {codes(np.array([sign * float(f"1e{power}")]), column)[0]}
    beyond = {codes([value], column)[0] for value in (sign * 10**309, sign * math.inf, sign * Decimal("Infinity"))}
    assert beyond == {codes([sign * np.finfo(float).max], column)[0]}
    assert codes([sign * 2**1023, sign * 2**1023 * 3 // 2], column) == codes(
        [sign * 2.0**1023, sign * 2.0**1023 * 1.5], column
    )


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table, dict], ids=lambda f: f.__module__)
def test_every_frame_reads_a_float_alone(frame):
    small = [0.3000005, 0.5000007, 0.9999995]
    alone = [codes([value], FINE)[0] for value in small]
    found = []
    table = Table(frame({"v": [*small, 1e9]}), Domain(v=FINE))
    table.exact_sum(lambda batch: (found.extend(batch["v"].tolist()), np.zeros(1, dtype=np.int64))[1])
    assert found[:3] == alone
