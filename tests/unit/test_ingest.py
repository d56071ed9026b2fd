"""Ingest: how each kind of entry becomes a code, and what is refused, without ever quoting a row."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import traceback
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from discreet.data import Batch, Category, Domain, Matrix, Number, ParquetTable, Scan, Slice, Table, Vector, encoding
from discreet.errors import DiscreetError, LedgerMismatch, ParameterError, SchemaError
from discreet.guarantee import Neighbours
from discreet.query import Count, Equals, Histogram, KeyCount, Sum, VectorSum

INF = float("inf")
NAN = float("nan")
CANARY = "CANARY-7919"
CANARY_NUMBER = 791_977_919


def codes(rows, column, **more):
    """The codes of a table's one column, in the order of the rows."""
    found = []
    table = Table(rows if isinstance(rows, str) else {"v": rows}, Domain(v=column), **more)
    table.exact_sum(lambda batch: (found.extend(batch["v"].tolist()), np.zeros(1, dtype=np.int64))[1])
    return found


TENTHS = Number(0, 1, step="0.1")
ODD = Number("-0.5", "9.5", step="2.5", missing=True)


@pytest.mark.parametrize(
    ("entries", "column", "expected"),
    [
        # numbers: floor after clamping, decimals as typed, infinities clamp, NaN and null are missing
        ([0.3, 0.7, 0.6, 0.1 + 0.2, 0.35, 0.99], TENTHS, [3, 7, 6, 3, 3, 9]),
        (np.array([0.3, 0.7, 0.29], dtype=np.float32), TENTHS, [3, 7, 2]),
        ([0.29999, 0.3 - 1e-12, 1.0], TENTHS, [2, 3, 10]),
        ([-INF, INF, -5.0, 5.0], TENTHS, [0, 10, 0, 10]),
        ([Decimal("0.29999999999999999999"), Decimal("0.3"), Decimal("Infinity")], TENTHS, [2, 3, 10]),
        ([0, 1, 2, -1, 10**30], TENTHS, [0, 10, 10, 0, 10]),
        ([Fraction(1, 3), 0.5, 1], TENTHS, [3, 5, 10]),
        ([True, False], TENTHS, [10, 0]),
        ([-1, 1, 2, 4, 5, 99, None], ODD, [0, 0, 1, 1, 2, 4, 5]),
        ([1.0, 2.0, 4.5, NAN, None], ODD, [0, 1, 2, 5, 5]),
        ([None, None], ODD, [5, 5]),
        (np.array([2**64 - 1, 3], dtype=np.uint64), ODD, [4, 1]),
        ([2**60 - 1, 2**60, 2**60 + 1], Number(2**60, 2**60 + 4, step=2), [0, 0, 0]),
        ([2**61 - 1, -(2**61)], Number(1 - 2**61, 2**61 - 1, step=1), [2**62 - 2, 0]),
        ([Decimal("NaN"), Decimal(1)], Number(0, 1, step=1, missing=True), [2, 1]),
        # categories: text matches text, whole numbers match whole numbers, booleans booleans
        (["b", "a", None], Category("a", "b", missing="?"), [1, 0, 2]),
        (["?", "zz", "a"], Category("a", other="?"), [1, 1, 0]),
        ([1, 0], Category(0, 1), [1, 0]),
        ([1.0, 0.0, NAN], Category(0, 1, missing=9), [1, 0, 2]),
        ([1.5, INF, 1.0], Category(1, other=0), [1, 1, 0]),
        ([True, False], Category(0, 1), [1, 0]),
        ([1, 0], Category(True, False), [0, 1]),
        ([True, True], Category(1, True), [1, 1]),
        ([1, 1.0], Category(1, True), [0, 0]),
        ([Decimal("1.0"), 1], Category(1, True), [0, 0]),
        (np.array([2**64 - 1, 5], dtype=np.uint64), Category(5, 2**64 - 1), [1, 0]),
        ([2**70, 1], Category(2**70, 1), [0, 1]),
        (np.array(["b", "a"]), Category("a", "b"), [1, 0]),
        (pd.Series(["b", None, "a"], dtype="category"), Category("a", "b", missing="?"), [1, 2, 0]),
        (pd.Series([2, 1, None], dtype="category"), Category(1, 2, missing=0), [1, 0, 2]),
        (pd.Series([1, None, 3], dtype="Int64"), Number(0, 5, step=1, missing=True), [1, 6, 3]),
        (pd.Series([True, None], dtype="boolean"), Category(False, True, missing="?"), [1, 2]),
        (pd.Series(["a", pd.NA], dtype=object), Category("a", missing="?"), [0, 1]),
        (pl.Series(["b", None], dtype=pl.Enum(["b", "c"])), Category("b", "c", missing="?"), [0, 2]),
        (pl.Series([1.0, None, NAN]), Number(0, 1, step=1, missing=True), [1, 2, 2]),
        (pl.Series([2**70, 3], dtype=pl.Int128), Number(0, 9, step=3), [3, 1]),
        (pa.chunked_array([pa.array([Decimal("0.30"), None])]), Number(0, 1, "0.1", missing=True), [3, 11]),
        (pa.chunked_array([pa.array(["a", "b"]).dictionary_encode()]), Category("b", "a"), [1, 0]),
        ((), ODD, []),
    ],
)
def test_entries_become_the_stated_codes(entries, column, expected):
    assert codes(entries, column, neighbours="add-remove") == expected


@pytest.mark.parametrize(
    ("entries", "column", "says"),
    [
        (["1", "2"], Number(0, 9, step=1), "column 'v' holds text, but a number is declared"),
        ([1, 2], Category("1", "2"), "column 'v' holds whole numbers, but its declared levels are text"),
        (["a"], Category(1, True), "column 'v' holds text, but its declared levels are booleans, whole numbers"),
        ([1, "a"], Category(1, "a"), "column 'v': it must be of one kind, found text, whole numbers"),
        ([True, 1], Number(0, 1, step=1), "column 'v': it must be of one kind, found booleans, whole numbers"),
        ([b"a"], Category("a"), "found bytes"),
        ([[1]], Category(1), "found list"),
        (np.array(["2020-01-01"], dtype="M8[D]"), Category(1), "holds dates"),
        (
            pl.Series(["2020-01-01"]).str.to_date(),
            Number(0, 1, step=1),
            "column 'v' holds dates, but a number is declared",
        ),
        (np.zeros((2, 2)), Number(0, 1, step=1), "one dimension"),
        ([None, 1], Number(0, 1, step=1), "'v' has missing values; missing=True"),
        ([NAN, 1.0], Number(0, 1, step=1), "'v' has missing values; missing=True"),
        ([None, "a"], Category("a"), "'v' has missing values; missing=\"...\""),
        (["a", "zzz"], Category("a"), 'levels that are not declared; declare them, or other="..."'),
        ([0.5], Category(0, 1), "not declared"),
        (5, Number(0, 1, step=1), "column 'v': it cannot be read"),
    ],
)
def test_entries_that_do_not_fit_are_refused_by_kind(entries, column, says):
    with pytest.raises(SchemaError, match=says):
        codes(entries, column)


@pytest.mark.parametrize(
    ("lines", "column", "expected"),
    [
        (["0.3", ".7", "1e-1", " 0.55 ", "+0.2", "-inf", "Infinity"], TENTHS, [3, 7, 1, 5, 2, 0, 10]),
        (["0.29999999999999999999999", "0.3"], TENTHS, [2, 3]),
        (["1", '""', "nan", "2"], Number(0, 2, step=1, missing=True), [1, 3, 3, 2]),
        (["b", "a", '""'], Category("a", "b", missing="?"), [1, 0, 2]),
        (["1", "01", "2.0"], Category(1, 2), [0, 0, 1]),
        (["1", "x"], Category("1", 1, other="o"), [0, 2]),
        (["true", "False", "1"], Category(True, False), [0, 1, 0]),
        (['"a,b"', '"say ""no"""'], Category("a,b", 'say "no"'), [0, 1]),
        (["größe"], Category("größe"), [0]),
    ],
)
def test_a_csv_file_is_text_that_may_spell_numbers(tmp_path, lines, column, expected):
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["v,w", *(f"{line},x" for line in lines)]) + "\n", encoding="utf-8")
    assert codes(str(path), column) == expected
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert codes(str(path), column) == expected


@pytest.mark.parametrize(
    "text", ["v\nx1\n", "v\n0x10\n", "v\n1_000\n", "v\n１\n", "v\n1e99999\n", "w\n1\n", "v,v\n1,1\n", ""]
)
def test_a_csv_file_that_does_not_spell_the_declared_numbers_is_refused(tmp_path, text):
    path = tmp_path / "rows.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SchemaError):
        codes(str(path), Number(0, 9, step=1))


def test_a_broken_file_is_refused_without_its_content(tmp_path):
    ragged = tmp_path / "ragged.csv"
    ragged.write_text(f'v,w\n1,"{CANARY}\n2,3\n')
    wrong = tmp_path / "wrong.parquet"
    wrong.write_text(CANARY)
    for path in (ragged, wrong):
        with pytest.raises(SchemaError) as caught:
            Table(path, Domain(v=Category("1", other="2")))
        assert CANARY not in everything_said(caught.value)


def test_unbounded_numbers_take_every_number():
    column = Number.any(missing=True)
    entries = [-INF, -(10**400), -2.5, Decimal("-0.1"), 0, Fraction(1, 3), 10**400, INF, None]
    found = codes(entries, column)
    assert found == sorted(found)
    assert [float(column.value(code)) for code in found[2:6]] == pytest.approx([-2.5, -0.1, 0, 1 / 3], rel=2**-49)


def test_whole_floats_and_whole_numbers_have_the_same_code():
    column = Number(0, 7 * 2**50, step=7)
    entries = [7 * 2**50 - 1, 7 * 2**50 - 7, 7 * 2**49 - 1, 7 * 2**49, 0, 6, 7]
    assert (
        codes(entries, column)
        == codes([float(entry) for entry in entries], column)
        == [entry // 7 for entry in entries]
    )


def test_missing_columns_are_named_with_near_misses_and_extra_columns_are_never_read():
    class Explosive:
        def __iter__(self):
            raise AssertionError("an undeclared column was read")

    with pytest.raises(SchemaError, match=r"no column 'age' in the data\. Did you mean 'agee'"):
        Table({"agee": [1]}, Domain(age=Number(0, 9, step=1)))
    table = Table({"age": [1], "secret": Explosive()}, Domain(age=Number(0, 9, step=1)))
    assert table.facts.size == 1


@pytest.mark.parametrize("source", [[1, 2], np.zeros((2, 2)), 7, None, pl.LazyFrame({"v": [1]})])
def test_what_is_not_a_table_is_refused(source):
    with pytest.raises(ParameterError, match="a table is a pandas, polars or pyarrow frame"):
        Table(source, Domain(v=Number(0, 1, step=1)))


@pytest.mark.parametrize("path", ["nowhere.parquet", "rows.xlsx", "nowhere.csv"])
def test_a_path_that_is_no_file_of_rows_is_refused(tmp_path, path):
    with pytest.raises(ParameterError):
        Table(tmp_path / path, Domain(v=Number(0, 1, step=1)))


def test_columns_must_be_equally_long_and_may_not_be_ambiguous():
    domain = Domain(v=Number(0, 1, step=1), w=Number(0, 1, step=1))
    with pytest.raises(SchemaError, match="equally long"):
        Table({"v": [0, 1], "w": [0]}, domain)
    with pytest.raises(SchemaError, match="equally long"):
        Table({"v": [0, 1], "w": [0, 1], "id": [1]}, domain, unit="id", rows_per_unit=1)
    with pytest.raises(SchemaError, match="distinct names"):
        Table(pd.DataFrame([[0, 1, 1]], columns=["v", "v", "w"]), domain)


def test_an_empty_table_has_no_size_to_publish():
    domain = Domain(v=Number(0, 1, step=1))
    with pytest.raises(SchemaError, match="empty"):
        Table({"v": []}, domain)
    hidden = Table({"v": []}, domain, neighbours="add-remove")
    assert hidden.facts.size is None
    assert hidden.exact_sum(Count()) == 0
    assert hidden.exact_sum(Histogram("v")).tolist() == [0, 0]
    assert hidden.exact_sum(KeyCount("v")) == {}
    assert [each.tolist() for each in hidden.exact_slices([Slice("v", "low", 3)], disjoint=True)] == [[]]


def test_the_size_is_checked_when_public_and_declared_when_private():
    domain = Domain(v=Number(0, 1, step=1))
    assert Table({"v": [0, 1]}, domain, size=2).facts.size == 2
    with pytest.raises(ParameterError, match="size=3"):
        Table({"v": [0, 1]}, domain, size=3)
    assert Table({"v": [0, 1]}, domain, neighbours="add-remove", size=3).facts.size == 3
    with pytest.raises(ParameterError, match="size"):
        Table({"v": [0, 1]}, domain, neighbours="add-remove", size=0)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"unit": "id"}, "rows_per_unit"),
        ({"rows_per_unit": 2}, "unit"),
        ({"neighbours": Neighbours("replace-one", 3)}, "unit"),
        ({"unit": "id", "rows_per_unit": 0}, "rows_per_unit"),
        ({"unit": "", "rows_per_unit": 1}, "unit"),
        ({"unit": "id", "rows_per_unit": 2, "neighbours": Neighbours("add-remove", 3)}, "contradicts"),
        ({"neighbours": "swap"}, "neighbours"),
        ({"name": ""}, "name"),
    ],
)
def test_a_contradictory_declaration_of_persons_is_refused(more, says):
    with pytest.raises(ParameterError, match=says):
        Table({"v": [0], "id": [1]}, Domain(v=Number(0, 1, step=1)), **more)


def test_several_rows_a_person_are_part_of_the_relation():
    rows, domain = {"v": [0, 1], "id": [1, 1]}, Domain(v=Number(0, 1, step=1))
    table = Table(rows, domain, unit="id", rows_per_unit=2)
    assert table.facts.neighbours == table.identity.neighbours == Neighbours("replace-one", 2)
    assert (table.facts.size, table.identity.unit) == (1, "id")
    again = Table(rows, domain, unit="id", neighbours=Neighbours("add-remove", 3))
    assert again.facts.neighbours == Neighbours("add-remove", 3)


@pytest.mark.parametrize(
    "ids", [[1, None], [1.0, 2.0], [True, False], ["a", None], [Decimal("0.5"), 1], [Decimal("inf"), 1]]
)
def test_a_person_is_named_by_a_whole_number_or_a_text_and_never_missing(ids):
    with pytest.raises(SchemaError, match="column 'id' names the person"):
        Table({"v": [0, 1], "id": ids}, Domain(v=Number(0, 1, step=1)), unit="id", rows_per_unit=1)


@pytest.mark.parametrize(
    ("ids", "persons"),
    [
        ([2**53, 2**53 + 1, 2**53], 2),
        ([-1, 2**64 - 1, -1], 2),
        ([2**100, 2**100 + 1, 2**100], 2),
        (["1", "01", "1"], 2),
        ([Decimal(7), Decimal("7.0"), 8], 2),
        (np.array([2**63, 2**63 + 1, 5], dtype=np.uint64), 3),
    ],
)
def test_identifiers_are_compared_exactly(ids, persons):
    table = Table({"v": [0, 1, 1], "id": ids}, Domain(v=Number(0, 1, step=1)), unit="id", rows_per_unit=1)
    assert table.facts.size == persons
    assert table.exact_sum(Count()) == persons


def test_which_rows_are_kept_depends_on_the_declared_name():
    domain = Domain(v=Number(0, 999, step=1))
    rows = {"v": list(range(1000)), "id": [row // 10 for row in range(1000)]}
    sums = {int(Table(rows, domain, unit="id", rows_per_unit=3, name=name).exact_sum(Sum("v"))) for name in "abcd"}
    assert len(sums) == 4


def test_every_column_takes_part_in_the_choice_and_the_order_of_the_file_does_not():
    domain = Domain(v=Number(0, 999, step=1), w=Number(0, 1, step=1), z=Category("same"))
    columns = {
        "v": np.arange(1000),
        "w": np.arange(1000) % 2,
        "z": np.array(["same"] * 1000),
        "id": np.arange(1000) // 10,
    }
    for order in (np.arange(999, -1, -1), np.random.default_rng(7).permutation(1000)):
        kept = [
            Table(each, domain, unit="id", rows_per_unit=3).exact_sum(KeyCount(("v", "w")))
            for each in (columns, {name: column[order] for name, column in columns.items()})
        ]
        assert kept[0] == kept[1]


def test_no_person_s_choice_depends_on_another_person():
    domain = Domain(v=Number(0, 999, step=1))
    values = np.arange(1000) * 7919 % 1000
    people = np.arange(1000) // 10

    def kept(chosen):
        table = Table({"v": values[chosen], "id": people[chosen]}, domain, unit="id", rows_per_unit=3)
        return table.exact_sum(KeyCount("v"))

    everybody = np.ones(1000, dtype=bool)
    for person in (0, 37, 99):
        assert kept(everybody) - kept(people != person) == kept(people == person)
        assert kept(people == person).total() == 3


# ---- matrices ----


def units(features, vector, **more):
    found = []
    matrix = Matrix(features, features=vector, **more)
    matrix.exact_sum(lambda batch: (found.append(batch["x"].copy()), np.zeros(1, dtype=np.int64))[1])
    return np.concatenate(found)


def test_features_inside_the_ball_are_cut_towards_zero():
    vector = Vector(2, norm=1, step="0.25")
    assert units([[0.3, -0.3], [0.5, 0.5], [-0.75, 0.24], [0, 0]], vector).tolist() == [
        [1, -1],
        [2, 2],
        [-3, 0],
        [0, 0],
    ]


def test_features_outside_the_ball_are_projected():
    vector = Vector(2, norm=5, step=1)
    assert units([[30, 40], [-3e300, 4e300], [0, 1e-320], [7, 0]], vector).tolist() == [[3, 4], [-3, 4], [0, 0], [5, 0]]


@pytest.mark.parametrize("step", [None, "0.001", 1])
@pytest.mark.parametrize("norm", [1, "1e-150", "3.7"])
def test_a_row_has_the_same_integers_however_many_are_put_on_the_grid_together(norm, step, monkeypatch):
    vector = Vector(7, norm=norm, step=None if step is None else Fraction(step) * Fraction(norm))
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(200, 7)) * float(vector.norm) * 10.0 ** rng.uniform(-4, 4, size=(200, 1))
    rows[:50] *= float(vector.norm) / np.linalg.norm(rows[:50], axis=1)[:, None]
    rows[50:60], rows[60:70] = 0, np.rint(rows[60:70] / float(vector.step)) * float(vector.step)
    whole = units(rows, vector)
    assert max(sum(int(entry) ** 2 for entry in row) for row in whole) <= vector.bound_squared
    for cached in (1, 7 * 3, 7 * 64):
        monkeypatch.setattr(encoding, "_CACHED", cached)
        assert np.array_equal(units(rows, vector), whole)
    assert np.array_equal(np.concatenate([units(row[None, :], vector) for row in rows]), whole)


def test_a_row_that_rounding_made_too_long_loses_units_of_its_largest_coordinate():
    vector = Vector(2, norm="4.9999999999999999999", step=1)
    assert (float(vector.norm), vector.bound_squared) == (5.0, 24)
    assert units([[30, 40], [-40, 30], [3, 4]], vector).tolist() == [[3, 3], [-3, 3], [3, 3]]


def test_no_row_is_longer_than_the_bound_in_exact_integers():
    rng = np.random.default_rng(5)
    for vector in (
        Vector(3, norm=1),
        Vector(7, norm="0.1", step="0.003"),
        Vector(2, norm=1, step=1),
        Vector(2, 3, "0.00001"),
    ):
        rows = rng.normal(size=(500, vector.dimension)) * rng.choice([1e-3, 1, 1e6], size=(500, 1))
        squares = (units(rows, vector).astype(object) ** 2).sum(axis=1)
        assert max(squares) <= vector.bound_squared
        assert max(squares) > 0.8 * vector.bound_squared - 1


def test_a_row_of_features_is_encoded_alone():
    rng = np.random.default_rng(6)
    rows, vector = rng.normal(size=(4097, 11)), Vector(11, norm=2)
    together = units(rows, vector)
    assert np.array_equal(together[1:], units(rows[1:], vector))
    assert np.array_equal(together[::-1], units(rows[::-1], vector))
    assert all(np.array_equal(together[place], units(rows[[place]], vector)[0]) for place in range(0, 4097, 512))


@pytest.mark.parametrize(
    "features",
    [
        np.array([[1, 2], [3, 4]]),
        np.array([[1, 2], [3, 4]], dtype=np.float32),
        np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]),
        [[1, 2], [3, 4]],
        pd.DataFrame({"a": [1, 3], "b": [2.0, 4.0]}),
        pl.DataFrame({"a": [1, 3], "b": [2.0, 4.0]}),
        pa.table({"a": [1, 3], "b": [2.0, 4.0]}),
    ],
)
def test_features_come_from_arrays_and_frames(features):
    assert units(features, Vector(2, norm=100, step=1)).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("features", "error", "says"),
    [
        ([[1.0, NAN]], SchemaError, "NaN"),
        ([[1.0, INF]], SchemaError, "infinite"),
        (pl.DataFrame({"a": [1.0, None], "b": [1.0, 2.0]}), SchemaError, "NaN"),
        ([["1", "2"]], SchemaError, "numbers"),
        (pl.DataFrame({"a": ["1"], "b": [2]}), SchemaError, "column 'a' is not"),
        ([[1.0, 2.0, 3.0]], ParameterError, "must have 2 columns"),
        ([1.0, 2.0], ParameterError, "must have 2 columns"),
        ([[1.0, 2.0], [3.0]], SchemaError, "cannot be read as numbers"),
        (np.zeros((0, 2)), SchemaError, "empty"),
    ],
)
def test_features_that_are_no_finite_matrix_are_refused(features, error, says):
    with pytest.raises(error, match=says):
        Matrix(features, features=Vector(2, norm=1))


def test_labels_are_encoded_by_their_declaration():
    features = np.eye(3)
    matrix = Matrix(features, ["no", "yes", "no"], features=Vector(3, norm=1), target=Category("no", "yes"))
    assert matrix.exact_sum(Histogram("y")).tolist() == [2, 1]
    assert matrix.exact_sum(VectorSum("x", Equals("y", "yes"))).tolist() == [0, 2**15, 0]
    assert matrix.exact_sum(Count()) == 3
    regression = Matrix(features, [0.5, 2, -1], features=Vector(3, norm=1), target=Number(-1, 1, step="0.5"))
    assert regression.exact_sum(Sum("y")) == 1
    with pytest.raises(SchemaError, match="column 'y' holds levels that are not declared"):
        Matrix(features, [0, 1, 2], features=Vector(3, norm=1), target=Category(0, 1))
    with pytest.raises(SchemaError, match="equally long"):
        Matrix(features, [0, 1], features=Vector(3, norm=1), target=Category(0, 1))
    for half in ({"y": [0, 1, 0]}, {"target": Category(0, 1)}):
        with pytest.raises(ParameterError, match="both or neither"):
            Matrix(features, features=Vector(3, norm=1), **half)


# ---- nothing leaks ----


def everything_said(error):
    """All that a log or a bug report could show of an exception: text, arguments, chain, formatted traceback."""
    said, seen = [], error
    while seen is not None:
        said += [str(seen), repr(seen), repr(seen.args), "".join(traceback.format_exception(seen))]
        seen = seen.__cause__ or seen.__context__
    return "\n".join(said)


@pytest.mark.parametrize(
    "frame", [pd.DataFrame, pl.DataFrame, pa.table, dict], ids=["pandas", "polars", "pyarrow", "dict"]
)
@pytest.mark.parametrize(
    ("entries", "column"),
    [
        (["a", CANARY], Category("a")),
        (["a", CANARY], Number(0, 1, step=1)),
        ([1, CANARY_NUMBER], Category(1)),
        ([1.0, CANARY_NUMBER + 0.5], Category(1)),
        ([1, CANARY_NUMBER], Category("a")),
        ([None, CANARY_NUMBER], Number(0, 1, step=1)),
        ([[CANARY_NUMBER], [1]], Number(0, 1, step=1)),
        ([{"a": CANARY}, {"a": "b"}], Number(0, 1, step=1)),
        ([CANARY.encode(), b""], Category("a")),
    ],
)
def test_an_ingest_error_never_quotes_a_row(frame, entries, column):
    with pytest.raises(DiscreetError) as caught:
        Table(frame({"v": entries}), Domain(v=column))
    assert CANARY not in everything_said(caught.value)
    assert str(CANARY_NUMBER) not in everything_said(caught.value)


def test_mixed_entries_and_labels_and_persons_are_refused_without_a_quotation(tmp_path):
    def csv(text):
        path = tmp_path / "rows.csv"
        path.write_text(text)
        return path

    attempts = [
        lambda: Table({"v": [1, CANARY]}, Domain(v=Category("a", 1))),
        lambda: Table({"v": [0, 1], "id": [CANARY, None]}, Domain(v=Category(0, 1)), unit="id", rows_per_unit=1),
        lambda: Table(
            {"v": [0, 1], "id": [CANARY_NUMBER + 0.5, 1]}, Domain(v=Category(0, 1)), unit="id", rows_per_unit=1
        ),
        lambda: Matrix([[CANARY]], features=Vector(1, norm=1)),
        lambda: Matrix([[CANARY_NUMBER, NAN]], features=Vector(2, norm=1)),
        lambda: Matrix([[1.0]], [CANARY], features=Vector(1, norm=1), target=Category("a")),
        lambda: Table(csv(f"v\n{CANARY}\n"), Domain(v=Number(0, 1, step=1))),
        lambda: Table(csv(f"v\n1,{CANARY}\n"), Domain(v=Number(0, 1, step=1))),
        lambda: Table(csv(f'v\n"{CANARY}"x\n'), Domain(v=Number(0, 1, step=1))),
    ]
    for attempt in attempts:
        with pytest.raises(DiscreetError) as caught:
            attempt()
        assert CANARY not in everything_said(caught.value)
        assert str(CANARY_NUMBER) not in everything_said(caught.value)


@pytest.fixture
def datasets(tmp_path):
    rows = {"v": ["a", CANARY, "a"], "n": [1, CANARY_NUMBER, 2], "id": ["x", CANARY, "y"]}
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table(rows), path)
    domain = Domain(v=Category("a", other="o"), n=Number(0, 10**9, step=1))
    features = [[0.5, 0.25], [CANARY_NUMBER, 1], [1, 1]]
    return [
        Table(rows, domain),
        Table(path, domain, unit="id", rows_per_unit=1),
        ParquetTable(path, domain, unit="id", rows_per_unit=1),
        Matrix(features, ["a", CANARY, "a"], features=Vector(2, norm=1), target=Category("a", other="o")),
    ]


def test_a_dataset_prints_its_declaration_and_no_rows(datasets):
    for data in datasets:
        seen = []
        data.exact_sum(lambda batch, seen=seen: (seen.append(repr(batch) + str(batch)), np.zeros(1, dtype=np.int64))[1])
        shown = "\n".join([repr(data), str(data), f"{data}", repr(data.facts), repr(data.identity), *seen])
        assert CANARY not in shown
        assert str(CANARY_NUMBER) not in shown
        assert "replace-one" in repr(data)
        assert "3 persons" in repr(data)
    hidden = Table({"v": [0, 1, 1]}, Domain(v=Category(0, 1)), neighbours="add-remove", name="people")
    private = "how many is private, each row is a person, add-remove, edition 1"
    assert repr(hidden) == f"<Table 'people': one column, {private}>"
    assert str(hidden).split() == [
        "people:",
        *private.split(),
        "column",
        "kind",
        "values",
        "─" * 26,
        "v",
        "category",
        "0,",
        "1",
    ]


def test_a_dataset_is_neither_pickled_nor_copied(datasets):
    for data in datasets:
        batches: list[Batch] = []
        data.exact_sum(lambda batch, batches=batches: (batches.append(batch), np.zeros(1, dtype=np.int64))[1])
        for leave in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="holds private rows: it cannot be pickled or copied"):
                leave(data)
            with pytest.raises(TypeError, match="private rows"):
                leave(batches[0])


def test_a_batch_cannot_be_written_to(datasets):
    for data in datasets:
        name = data.facts.domain.names[0]

        def spoil(batch, name=name):
            batch[name][...] = 0
            return np.zeros(1, dtype=np.int64)

        with pytest.raises(ValueError, match="read-only"):
            data.exact_sum(spoil)


def test_only_integers_are_summed(datasets):
    with pytest.raises(ParameterError, match="only integers"):
        datasets[0].exact_sum(lambda batch: np.array(0.5))


# ---- files ----


def test_a_parquet_file_that_changed_is_another_table(tmp_path):
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"v": [0, 1]}), path)
    data = ParquetTable(path, Domain(v=Number(0, 1, step=1)))
    assert data.source == path.resolve()
    assert data.exact_sum(Count()) == 2
    parquet.write_table(pa.table({"v": [0, 1, 1]}), path)
    for ask in (
        lambda: data.exact_sum(Count()),
        lambda: data.exact_slices([Slice("v", "low", 1)], disjoint=True),
    ):
        with pytest.raises(LedgerMismatch, match="changed"):
            ask()
    path.unlink()
    with pytest.raises(LedgerMismatch, match="changed"):
        data.exact_sum(Count())


def test_a_changed_file_is_noticed_before_it_is_read(tmp_path):
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"v": [0, 1]}), path)
    data = ParquetTable(path, Domain(v=Number(0, 1, step=1)))
    path.write_text("no longer a Parquet file")
    calls = []
    with pytest.raises(LedgerMismatch):
        data.exact_sum(lambda batch: calls.append(batch) or np.zeros(1, dtype=np.int64))
    assert not calls


def test_strange_file_names_mean_only_themselves(tmp_path):
    domain = Domain(v=Number(0, 9, step=1))
    for place, name in enumerate(["a*.parquet", "ab.parquet", "it's [1]?.parquet", "it's 1x.parquet"]):
        parquet.write_table(pa.table({"v": [place] * (place + 1)}), tmp_path / name)
    for place, name in enumerate(["a*.parquet", "ab.parquet", "it's [1]?.parquet", "it's 1x.parquet"]):
        assert ParquetTable(tmp_path / name, domain).facts.size == place + 1
        assert Table(tmp_path / name, domain).exact_sum(Sum("v")) == place * (place + 1)


def test_column_names_with_quotes_are_read_from_files(tmp_path):
    names = ['it\'s "odd"', "größe", "a,b", "select *"]
    frame = pa.table({name: [place, 0] for place, name in enumerate(names)})
    parquet.write_table(frame, tmp_path / "rows.parquet")
    frame.to_pandas().to_csv(tmp_path / "rows.csv", index=False)
    domain = Domain({name: Number(0, 9, step=1) for name in names})
    for data in (
        ParquetTable(tmp_path / "rows.parquet", domain),
        Table(tmp_path / "rows.parquet", domain),
        Table(tmp_path / "rows.csv", domain),
    ):
        assert data.exact_sum(VectorSum(names)).tolist() == [0, 1, 2, 3]


def test_undeclared_columns_of_a_file_may_hold_anything(tmp_path):
    path = tmp_path / "rows.parquet"
    frame = {
        "v": [1, 0],
        "list": [[1], []],
        "when": pd.to_datetime(["2020-01-01", "2021-01-01"]),
        "raw": [b"\xff", b""],
    }
    parquet.write_table(pa.table(frame), path)
    domain = Domain(v=Number(0, 1, step=1))
    for data in (Table(path, domain), ParquetTable(path, domain), Table(pa.table(frame), domain)):
        assert data.exact_sum(Sum("v")) == 1
    for name, says in (("list", "List"), ("when", "holds dates"), ("raw", "Binary")):
        with pytest.raises(SchemaError, match=f"column '{name}'.*{says}"):
            ParquetTable(path, Domain({name: Number(0, 1, step=1)}))


def test_a_parquet_table_reads_no_csv_and_any_names(tmp_path):
    (tmp_path / "rows.csv").write_text("v\n1\n")
    with pytest.raises(ParameterError, match="Table and FilesTable read"):
        ParquetTable(tmp_path / "rows.csv", Domain(v=Number(0, 1, step=1)))
    columns = {"v": [1], "file_row_number": [7], "id": [1], "v.w": [0], "filename": [1], "c0": [1], "row_order": [0]}
    parquet.write_table(pa.table(columns), tmp_path / "rows.parquet")
    domain = Domain({name: Number(0, 9, step=1) for name in columns if name != "id"})
    for more in ({}, {"unit": "id", "rows_per_unit": 1}):
        table = ParquetTable(tmp_path / "rows.parquet", domain, **more)
        for name in domain.names:
            assert int(table.exact_sum(Sum(name))) == columns[name][0]
            assert int(table.exact_sum(lambda batch, name=name: batch[name].sum())) == columns[name][0]


def test_the_name_of_a_folder_is_no_column(tmp_path):
    folder = tmp_path / "v=5"
    folder.mkdir()
    parquet.write_table(pa.table({"v": [1, 2]}), folder / "rows.parquet")
    (folder / "rows.csv").write_text("v\n1\n2\n")
    domain, query = Domain(v=Number(0, 9, step=1)), Histogram("v")
    expected = Table({"v": [1, 2]}, domain).exact_sum(query).tolist()
    for name in ("rows.parquet", "rows.csv"):
        assert Table(folder / name, domain).exact_sum(query).tolist() == expected
    assert ParquetTable(folder / "rows.parquet", domain).exact_sum(query).tolist() == expected


@pytest.mark.parametrize("more", [{"batch_rows": 0}, {"threads": 0}, {"memory_limit": "lots"}, {"unit_memory": 0}])
def test_wrong_settings_of_a_scan_are_refused(tmp_path, more):
    parquet.write_table(pa.table({"v": [1], "id": [1]}), tmp_path / "rows.parquet")
    with pytest.raises(ParameterError, match=next(iter(more))):
        ParquetTable(tmp_path / "rows.parquet", Domain(v=Number(0, 1, step=1)), unit="id", rows_per_unit=1, **more)


def test_a_scan_leaves_no_directory_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spill"))
    (tmp_path / "spill").mkdir()
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"v": [1] * 100}), path)
    frames = Scan(path, batch_rows=10).frames(["v"])
    next(frames)
    assert [each.stat().st_mode & 0o777 for each in (tmp_path / "spill").iterdir()] == [0o700]
    frames.close()
    assert list((tmp_path / "spill").iterdir()) == []


def test_without_the_sql_extra_frames_work_and_files_name_the_extra(tmp_path):
    (tmp_path / "rows.csv").write_text("v\n1\n")
    program = f"""
import sys
for name in ("duckdb", "pyarrow", "pandas", "polars"):
    sys.modules[name] = None
from discreet.data import Table
from discreet.data import Domain, Number
from discreet.errors import ParameterError
domain = Domain(v=Number(0, 1, step=1))
assert Table({{"v": [0, 1]}}, domain).facts.size == 2
try:
    Table({str(tmp_path / "rows.csv")!r}, domain)
except ParameterError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install discreet[sql]" in done.stdout
