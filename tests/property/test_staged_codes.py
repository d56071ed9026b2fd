"""Files that are staged as codes and counted by GROUP BY: every hostile entry of a CSV or Parquet file counts as it
does in a table in memory, whose codes numpy computes."""

from __future__ import annotations

import csv
import datetime as dt
import math
import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import discreet as dp
from discreet.data import DistinctRows
from discreet.data.far import Far
from tests.property.test_sql_encoding import DECIMALS, INTEGERS, TEXTS

NUMBERS = [
    *("", "0", "-0", "+5", " 7 ", "1e2", "1E-3", ".5", "5.", "99.99", "100", "100.0000000000000000000000001", "nan"),
    *("NaN", "inf", "-Infinity", "9" * 30, "-" + "9" * 40, "33.333333333333333333", "0.30000000000000004", "0.3"),
    *(str(each) for each in (*INTEGERS, *DECIMALS) if each is not None),
]
FLAGS = ["", "true", "True", " FALSE ", "1", "0", "1.0", "01", "2", "yes"]
DAYS = ["", "1976-02-29", "1973-12-31", "9999-12-31", "1976-02-29 23:59:59"]
SPELLED = [each for each in TEXTS if each is not None and "\r" not in each]
DOMAIN = dp.Domain(
    number=dp.Number("-0.5", "100.5", step="0.1", missing=True),
    wide=dp.Number(-(2**61) + 1, 2**61 - 1, step=1, missing=True),
    level=dp.Category("n", "é", "it's", 'say "so"', "a\nb", "😀", "1", other="other", missing="missing"),
    flag=dp.Category(True, False, other="other", missing="missing"),
    day=dp.Date("1974-01-01", "1978-12-31", step="month", missing=True),
    note=dp.Text(8, missing=True),
)
QUERIES = [
    dp.Count(dp.Between("number", 0, 50)),
    dp.Count(dp.Missing("wide")),
    dp.Histogram(("level", "flag")),
    dp.Histogram(("number", "day"), dp.Not(dp.Equals("flag", True))),
    dp.Sum("wide"),
    dp.Sum("number", dp.Missing("day")),
    dp.mechanisms.VectorSum(("number", "wide")),
    dp.mechanisms.KeyCount(("note",)),
    dp.mechanisms.KeyCount(("note", "level")),
    dp.Persons(),
    dp.Persons("flag"),
]


@pytest.fixture(scope="module")
def run():
    """One engine for all tests of this file: a process takes longer to start than to count these rows."""
    made = dp.Processes(2)
    yield made
    made.close()


def spelled_rows(rows=4000, seed=1):
    rng = random.Random(seed)
    picked = {"number": NUMBERS, "wide": NUMBERS, "level": SPELLED, "flag": FLAGS, "day": DAYS, "note": SPELLED}
    columns = {name: [rng.choice(values) for _ in range(rows)] for name, values in picked.items()}
    return columns | {"person": [str(rng.randrange(rows // 3)) for _ in range(rows)]}


def written(path, columns):
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_MINIMAL)
        lines.writerow(columns)
        lines.writerows(zip(*columns.values(), strict=True))
    return path


def plain(found):
    return dict(found) if isinstance(found, dict) else np.asarray(found).tolist()


@pytest.mark.parametrize("more", [{}, {"unit": "person", "rows_per_unit": 3}], ids=["rows", "persons"])
def test_spelled_entries_of_csv_files_count_as_in_memory(more, run, tmp_path):
    columns = spelled_rows()
    memory = dp.Table(written(tmp_path / "all.csv", columns), DOMAIN, name="people", **more)
    folder = tmp_path / "parts"
    folder.mkdir()
    for place in range(3):
        part = {name: values[place * 1400 : (place + 1) * 1400] for name, values in columns.items()}
        written(folder / f"{place}.csv", part)
    table = dp.FilesTable(folder / "*.csv", DOMAIN, run=run, name="people", **more)
    assert table.facts == memory.facts
    for query in QUERIES:
        expected = plain(memory.exact_sum(query))
        assert plain(table.exact_sum(query)) == expected, query
        assert plain(Far.exact_sum(table, query)) == expected, query  # the same codes row by row
        pushed = table._push.sum(query)
        assert (pushed is None) == (bool(more) and type(query) is dp.Persons), query
        assert plain(DistinctRows(table).exact_sum(query)) == expected, query
    table.close()


FLOATS = [math.nan, math.inf, -math.inf, -0.0, 0.0, 0.1 + 0.2, 0.3, 1e308, 5e-324, 2.0**53, -1.0, 99.95, 100.5, None]


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_floats_that_no_sql_encodes_are_counted_over_staged_codes(kind, run, tmp_path):
    rng = random.Random(2)
    values = [rng.choice(FLOATS) for _ in range(3000)]
    rows = pa.table({"x": pa.array(values, kind, from_pandas=False), "person": [rng.randrange(900) for _ in values]})
    parquet.write_table(rows, tmp_path / "rows.parquet", row_group_size=700)
    domain = dp.Domain(x=dp.Number("-0.5", "100.5", step="0.1", missing=True))
    stage = tmp_path / "stage"
    stage.mkdir()
    makers = [
        ({}, lambda **more: dp.FilesTable(tmp_path / "rows.parquet", domain, run=run, stage=stage, **more)),
        (
            {"unit": "person", "rows_per_unit": 2},
            lambda **more: dp.ParquetTable(tmp_path / "rows.parquet", domain, unit_memory=96 * 1000, **more),
        ),
    ]
    for more, make in makers:
        table, memory = make(**more), dp.Table(rows, domain, **more)
        for query in (dp.Histogram("x"), dp.Sum("x"), dp.Count(dp.Missing("x"))):
            assert table._push.sum(query) is not None
            assert plain(table.exact_sum(query)) == plain(memory.exact_sum(query)), query


def test_files_of_different_types_are_not_pushed_and_count_the_same(run, tmp_path):
    """DuckDB would read the second file as the first one's type: a number that does not fit, or is rounded."""
    parquet.write_table(pa.table({"x": pa.array([1, 2], pa.int8())}), tmp_path / "a.parquet")
    parquet.write_table(pa.table({"x": pa.array([300, 2**40], pa.int64())}), tmp_path / "b.parquet")
    parquet.write_table(pa.table({"x": pa.array([0.3, 7.0], pa.float64())}), tmp_path / "c.parquet")
    table = dp.FilesTable(tmp_path, dp.Domain(x=dp.Number(0, 1000, step="0.1")), run=run)
    assert table._push is None
    assert int(table.exact_sum(dp.Sum("x"))) == 10 + 20 + 3000 + 10000 + 3 + 70


MOMENTS = [
    None,
    dt.datetime(1976, 2, 29, 12, 30, 59, 999999),
    dt.datetime(1973, 12, 31, 23, 59, 59),
    dt.datetime(2200, 1, 1),
]
WORDS = [None, "n", "N", "n ", "é", "e\u0301", "", "1"]
LONG = [Decimal("1.25"), Decimal("99.99"), Decimal("-3"), None]
TYPES = {
    "dictionary": (pa.array(WORDS).dictionary_encode(), DOMAIN["level"]),
    "large string": (pa.array(WORDS, pa.large_string()), DOMAIN["level"]),
    "string view": (pa.array(WORDS, pa.string_view()), DOMAIN["level"]),
    **{f"timestamp {unit}": (pa.array(MOMENTS, pa.timestamp(unit)), DOMAIN["day"]) for unit in ("ms", "us", "ns")},
    "zone": (pa.array(MOMENTS, pa.timestamp("us", "Europe/Berlin")), DOMAIN["day"]),
    "far days": (pa.array([2**31 - 1, -(2**31) + 5, 0, None], pa.date32()), DOMAIN["day"]),
    "unsigned": (pa.array([2**64 - 1, 5, None], pa.uint64()), DOMAIN["number"]),
    "short": (pa.array([-128, 127, None, 7], pa.int8()), DOMAIN["number"]),
    "decimals": (pa.array(LONG, pa.decimal128(10, 2)), DOMAIN["number"]),
    "decimals too fine for SQL": (pa.array(LONG, pa.decimal128(38, 20)), DOMAIN["number"]),
    "half floats": (pa.array(np.array([1.5, np.nan, np.inf], np.float16)), DOMAIN["number"]),
    "booleans": (pa.array([True, None, False]), DOMAIN["flag"]),
    "nothing": (pa.nulls(5), DOMAIN["number"]),
}


@pytest.mark.parametrize("name", TYPES)
def test_every_type_of_a_parquet_file_counts_as_in_memory(name, run, tmp_path):
    column, declared = TYPES[name]
    path, stage = tmp_path / "rows.parquet", tmp_path / "stage"
    stage.mkdir()
    parquet.write_table(pa.table({"c": column}), path)
    domain, query = dp.Domain(c=declared), dp.Histogram("c")
    values = column.cast(pa.string()) if name == "string view" else column
    expected = plain(dp.Table(pa.table({"c": values}), domain).exact_sum(query))
    tables = [
        dp.Table(path, domain),
        dp.ParquetTable(path, domain),
        dp.FilesTable(path, domain, run=run),
        dp.FilesTable(path, domain, run=run, stage=stage),
    ]
    for table in tables:
        assert plain(table.exact_sum(query)) == expected
    assert tables[-1]._push.sum(query) is not None
