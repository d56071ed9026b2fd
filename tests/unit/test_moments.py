"""Dates and texts when they come in: from every kind of frame, hostile values, time zones; and when they go out."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import discreet as dp
from discreet.data import Date, Domain, Number, ParquetTable, Slice, Table, Text, Timestamp
from discreet.errors import ParameterError, SchemaError
from discreet.mechanisms import StableHistogram
from discreet.query import Between, Count, Equals, Histogram, KeyCount, Missing, Persons, Sum
from discreet.records import record, revive
from discreet.rng import SeededRng

DAY = Date("1974-01-01", "1978-12-31", missing=True)
DAYS = [dt.date(1976, 2, 29), None, dt.date(1990, 5, 5), dt.date(1960, 1, 1)]
CODES = [789, DAY.missing_code, DAY.points - 1, 0]
AWARE = dt.timezone(dt.timedelta(hours=5, minutes=30))


def codes(column, declared):
    return Table({"d": column}, Domain(d=declared))._codes["d"].tolist()


@pytest.mark.parametrize(
    "column",
    [
        DAYS,
        pl.Series(DAYS),
        pd.Series(pd.to_datetime([str(each) if each else None for each in DAYS])),
        pd.Series(DAYS, dtype=object),
        pd.Series(DAYS, dtype="date32[pyarrow]"),
        pa.chunked_array([pa.array(DAYS, pa.date32())]),
        pa.chunked_array([pa.array(DAYS, pa.date32()).cast(pa.timestamp("us"))]),
        np.array(DAYS, dtype="M8[D]"),
        np.array(DAYS, dtype="M8[ns]"),
        [None if each is None else each.isoformat() for each in DAYS],
        [None if each is None else f"{each} 23:59:59.999999" for each in DAYS],
        pl.Series([None if each is None else dt.datetime.combine(each, dt.time(23, 59, 59)) for each in DAYS]),
        [None if each is None else dt.datetime.combine(each, dt.time(1)) for each in DAYS],
        [np.datetime64(each) if each else np.datetime64("NaT") for each in DAYS],
    ],
    ids=lambda column: f"{type(column).__module__}.{type(column).__name__}",
)
def test_dates_of_every_frame_have_the_same_codes(column):
    assert codes(column, DAY) == CODES


def test_a_time_zone_is_converted_to_utc_before_the_day_is_taken():
    late = dt.datetime(1976, 3, 1, 2, 0, tzinfo=AWARE)  # 20:30 of the day before, in UTC
    spelled = ["1976-03-01T02:00:00+05:30"]
    for column in ([late], pl.Series([late]), pd.Series([late]), spelled, pa.array([late], pa.timestamp("us", "UTC"))):
        column = pa.chunked_array([column]) if isinstance(column, pa.Array) else column
        assert codes(column, DAY) == [DAY.code("1976-02-29")]
    assert codes([dt.datetime(1976, 3, 1, 2, 0)], DAY) == [DAY.code("1976-03-01")]


def test_a_csv_file_spells_dates_and_an_empty_field_is_missing(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("d,t\n1976-02-29,1976-02-29T10:20:30Z\n,\n1990-05-05 10:00,1960-01-01\n")
    domain = Domain(d=DAY, t=Timestamp("1974-01-01", "1978-12-31 23:59:59", step="minute", missing=True))
    table = Table(path, domain)
    assert table._codes["d"].tolist() == CODES[:3]
    t = domain["t"]
    assert [t.label(int(code)) for code in table._codes["t"]] == ["1976-02-29 10:20:00", None, "1974-01-01 00:00:00"]


@pytest.mark.parametrize("entry", ["1976-02-30", "29.02.1976", "1976-2-9", "today", "1977", "0000-01-01", "1" * 10_000])
def test_text_that_is_no_date_is_refused_without_being_quoted(entry):
    with pytest.raises(SchemaError, match="holds text that is not a date") as refused:
        codes([entry, "1976-02-29"], DAY)
    assert entry not in str(refused.value)


@pytest.mark.parametrize(
    ("entries", "says"), [([3], "holds whole numbers, but dates"), ([True], "booleans"), ([0.5], "floats")]
)
def test_numbers_are_no_dates(entries, says):
    with pytest.raises(SchemaError, match=says):
        codes(entries, DAY)


def test_dates_far_outside_clip_and_nothing_overflows():
    extreme = pl.Series([-(2**31), 2**31 - 1], dtype=pl.Int32).cast(pl.Date)
    assert codes(extreme, DAY) == [0, DAY.points - 1]
    for unit in ("s", "ms", "us", "ns"):
        array = np.array([-(2**62), 2**62], dtype=f"M8[{unit}]")
        assert codes(array, DAY) == [0, DAY.points - 1]
    assert codes([dt.date.min, dt.date.max, dt.datetime.min, dt.datetime.max], DAY)[:2] == [0, DAY.points - 1]
    old = dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=14)))  # before the year 1, in UTC
    with pytest.raises(SchemaError, match="cannot be read"):
        codes([old], DAY)


def test_missing_dates_need_to_be_declared():
    with pytest.raises(SchemaError, match="has missing values; missing=True"):
        codes(DAYS, Date("1974-01-01", "1978-12-31"))


def test_dates_are_counted_grouped_and_never_summed():
    table = Table({"d": DAYS}, Domain(d=DAY))
    assert table.exact_sum(Count(Between("d", "1974-01-01", dt.date(1976, 12, 31)))) == 2
    assert table.exact_sum(Count(Equals("d", dt.date(1978, 12, 31)))) == 1
    assert table.exact_sum(Count(Missing("d"))) == 1
    assert table.exact_sum(Histogram("d")).sum() == 4
    assert [code.tolist() for code in table.exact_slices([Slice("d", "high", 2)], disjoint=False)] == [[1825, 789]]
    with pytest.raises(ParameterError, match="no bounded sum"):
        Sum("d").sensitivity(table.facts)
    for wrong in (Between("d", 1, 2), Between("d", "1974-01-01", "2001-01-01"), Equals("d", "long ago")):
        with pytest.raises(ParameterError):
            wrong.check(table.facts.domain)
    with pytest.raises(ParameterError, match="low must be <= high"):
        Between("d", "1975-01-01", "1974-01-01")
    with pytest.raises(ParameterError, match="low must be <= high"):
        Between("d", "1975-01-01", 7)


@pytest.mark.parametrize(
    "value",
    [
        DAY,
        Date("1974-01-01", "1978-12-31", step="week"),
        Timestamp("2024-01-01", "2024-01-02", step="hour", missing=True),
        Text(),
        Text(length=7, missing=True),
        Between("d", "1974-01-01", "1975-01-01 10:00:00"),
        Equals("d", dt.date(1976, 2, 29)),
        Persons(["d", "e"], Equals("d", "1976-02-29")),
    ],
)
def test_records_come_back_as_they_were(value):
    from discreet.catalogue import CATALOGUE

    assert revive(record(value), CATALOGUE) == value
    assert hash(revive(record(value), CATALOGUE)) == hash(value)


def test_a_session_asks_about_dates_and_draws_them(tmp_path):
    days = [dt.date(1974, 1, 1) + dt.timedelta(days=3 * each % 1826) for each in range(4000)]
    table = dp.Table({"day": days}, dp.Domain(day=dp.Date("1974-01-01", "1978-12-31", step="month")), name="visits")
    ledger = dp.Ledger.in_memory(dp.Budget(1, 1e-6), table)
    session = dp.Session(table, ledger, alpha=0.05)
    answer = session.ask(dp.Histogram("day"))
    assert len(answer.value) == 60
    assert next(iter(answer.value)) == "1974-01-01"
    assert all(abs(count - 67) <= answer.error_bound + 7 for count in answer.value.values())
    rows = session.synthetic(50, seed=1)
    assert set(rows["day"]) <= set(answer.value)


# Texts that nobody listed.

CITY = Domain(city=Text(length=5, missing=True), age=Number(0, 9, step=1))
CITIES = {"city": ["Oslo", "Rome!", "Rome!!", None, "Oslo", "\ud800x"], "age": [1, 2, 3, 4, 5, 6]}


def test_texts_are_cut_counted_and_known_to_key_counts_only(tmp_path):
    frame = pa.table({**CITIES, "city": [*CITIES["city"][:5], "?x"]})
    parquet.write_table(frame, tmp_path / "rows.parquet")
    expected = {("Oslo",): 2, ("Rome!",): 2, (None,): 1, ("?x",): 1}
    for rows in (CITIES, frame, tmp_path / "rows.parquet"):
        table = Table(rows, CITY)
        assert dict(table.exact_sum(KeyCount("city"))) == expected
        assert table.exact_sum(Count(Missing("city"))) == 1
    table = ParquetTable(tmp_path / "rows.parquet", CITY, batch_rows=2)
    assert dict(table.exact_sum(KeyCount("city"))) == expected
    assert dict(table.exact_sum(KeyCount(("age", "city"), Between("age", 2, 3)))) == {
        (2, "Rome!"): 1,
        (3, "Rome!"): 1,
    }
    assert table.exact_sum(Count(Equals("city", "Rome!")).partial) == expected[("Rome!",)]
    assert table.exact_sum(Count(Equals("city", "Rome")).partial) == 0
    for query in (Histogram("city"), Histogram(("age", "city")), Count(Between("city", 1, 2))):
        with pytest.raises(ParameterError):
            query.sensitivity(table.facts)
    with pytest.raises(ParameterError, match="not listed"):
        CITY["city"].labels()


def test_texts_that_are_no_texts_and_missing_ones_are_refused():
    with pytest.raises(SchemaError, match="holds whole numbers, but text"):
        Table({"city": [3]}, Domain(city=Text()))
    with pytest.raises(SchemaError, match="has missing values"):
        Table({"city": ["a", None]}, Domain(city=Text()))


def test_the_rows_of_a_person_that_are_kept_do_not_depend_on_who_else_is_there():
    """Codes of texts are numbered by arrival; the choice among a person's rows must not be."""
    domain = Domain(city=Text())
    mine = [f"place {each}" for each in range(6)]
    kept = []
    for others in ([], ["place 5", "place 3", "zzz"], ["place 1"] * 4):
        rows = {"city": [*others, *mine], "person": [*range(1, len(others) + 1), *[0] * 6]}
        table = Table(rows, domain, unit="person", rows_per_unit=2)
        found = table.exact_sum(KeyCount("city"))
        for other in others:
            found[(other,)] -= 1
        kept.append({key for key, count in found.items() if count > 0})
    assert kept[0] == kept[1] == kept[2]
    assert len(kept[0]) == 2


def test_slices_do_not_look_at_texts():
    """Rows that differ in a text alone are one to a slice, in whichever order the texts came."""
    found = []
    for cities in (["b", "a", "c"], ["a", "b", "c"], ["c", "b", "a"]):
        table = Table({"city": cities, "age": [3, 3, 1]}, Domain(city=Text(), age=Number(0, 9, step=1)))
        slices = table.exact_slices([Slice("age", "high", 1), Slice("age", "low", 2)], disjoint=True)
        found.append([each.tolist() for each in slices])
    assert found[0] == found[1] == found[2] == [[3], [1, 3]]


def test_a_stable_histogram_shows_texts_in_their_order_and_only_common_ones():
    rows = {"city": ["b"] * 60 + ["a"] * 50 + ["rare"] + [None] * 70}
    table = Table(rows, Domain(city=Text(missing=True)), neighbours="add-remove")
    mechanism = StableHistogram(KeyCount("city"), 1, 12)
    shown = mechanism.run(table, SeededRng(1))
    assert [label for label, _ in shown] == [("a",), ("b",), (None,)]
    assert all(abs(count - true) <= 12 for (_, count), true in zip(shown, [50, 60, 70], strict=True))


# Counts of persons.


@pytest.mark.parametrize("unit_memory", [2**28, 96 * 40])
def test_persons_are_counted_alike_in_memory_and_from_a_file_whose_batches_cut_them(tmp_path, unit_memory, monkeypatch):
    """Rows of a person are spread over the file; in memory blocks are small, from the file parts of the persons."""
    rng = np.random.default_rng(5)
    rows = {
        "p": rng.integers(0, 60, 400),
        "v": rng.integers(0, 4, 400),
        "city": [f"place {each}" for each in rng.integers(0, 9, 400)],
    }
    domain = Domain(v=Number(0, 3, step=1), city=Text())
    parquet.write_table(pa.table(rows), tmp_path / "rows.parquet")
    declared = {"unit": "p", "rows_per_unit": 3}
    monkeypatch.setattr("discreet.data.ingest.BLOCK", 7)
    memory = Table(rows, domain, **declared)
    file = ParquetTable(tmp_path / "rows.parquet", domain, batch_rows=11, unit_memory=unit_memory, **declared)
    queries = [Persons(), Persons(where=Between("v", 1, 2)), Persons("v"), Persons("v", Between("v", 0, 1))]
    for query in [*queries, Count(), Histogram("v"), KeyCount("city"), KeyCount(("v", "city"))]:
        assert np.all(file.exact_sum(query) == memory.exact_sum(query)), query
    kept = {}
    for batch in memory._batches(lambda batch: None):
        for person, value in zip(batch.persons.tolist(), batch["v"].tolist(), strict=True):
            kept.setdefault(person, []).append(value)
    assert max(map(len, kept.values())) == 3
    assert memory.exact_sum(Persons()) == len(kept) == memory.facts.size
    assert memory.exact_sum(Persons("v")).tolist() == [
        sum(value in them for them in kept.values()) for value in range(4)
    ]
    assert all(len(set(batch.persons.tolist())) >= 2 for batch in list(memory._batches(lambda batch: None))[:-1])


def test_without_a_unit_every_row_is_a_person():
    table = Table({"v": [1, 1, 2]}, Domain(v=Number(0, 3, step=1)))
    assert table.exact_sum(Persons()) == 3
    assert table.exact_sum(Persons("v")).tolist() == [0, 2, 1, 0]
