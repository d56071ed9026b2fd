"""Dates and timestamps against duckdb: every part and every period of every day of five centuries, and random times."""

from __future__ import annotations

import datetime as dt

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.data import Date, Domain, Table, Timestamp, calendar
from discreet.data.rules import period_codes
from discreet.errors import ParameterError
from discreet.query import Between, Count, Equals
from discreet.sql.dates import PARTS, date_diff, date_trunc

LOW, HIGH = dt.date(1583, 1, 1), dt.date(2099, 12, 31)
PERIODS = ("day", "week", "month", "quarter", "year", "decade")
EVERY_DAY = [dt.date.fromordinal(each) for each in range(LOW.toordinal(), HIGH.toordinal() + 1)]
DAILY = ("decade", "year", "isoyear", "quarter", "month", "week", "day", "dayofweek", "isodow", "dayofyear")


@pytest.fixture(scope="module")
def days():
    return duckdb.sql(
        f"SELECT unnest(generate_series(DATE '{LOW}', DATE '{HIGH}', INTERVAL 1 DAY))::DATE AS day"
    ).to_arrow_table()


@pytest.mark.parametrize("name", DAILY)
def test_every_part_of_every_day_is_duckdb_s(days, name):
    found = duckdb.sql(f"SELECT date_part('{name}', day)::BIGINT AS part FROM days ORDER BY day").fetchall()
    part = PARTS[name.upper()][1]
    assert [part(day) for day in EVERY_DAY] == [part for (part,) in found]


@pytest.mark.parametrize("unit", PERIODS)
def test_every_period_of_every_day_is_duckdb_s(days, unit):
    found = duckdb.sql(f"SELECT date_trunc('{unit}', day)::DATE::VARCHAR AS first FROM days ORDER BY day").fetchall()
    assert [date_trunc(None, None, unit, day).isoformat() for day in EVERY_DAY] == [first for (first,) in found]


@pytest.mark.parametrize("unit", ["day", "month", "quarter", "year"])
def test_differences_between_days_are_duckdb_s(days, unit):
    found = duckdb.sql(f"SELECT date_diff('{unit}', DATE '2000-02-10', day) AS n FROM days ORDER BY day").fetchall()
    assert [date_diff(None, None, unit, dt.date(2000, 2, 10), day) for day in EVERY_DAY] == [n for (n,) in found]


@settings(max_examples=100, deadline=None)
@given(
    st.datetimes(dt.datetime(1950, 1, 1), dt.datetime(2050, 1, 1)),
    st.integers(2, 300),
    st.sampled_from(["second", "minute", "hour", "day", "week", "month", "year"]),
    st.sampled_from(["minute", "hour", "day", "month", "quarter", "year"]),
)
def test_a_block_begins_where_the_longer_period_of_the_code_before_is_another(low, width, step, unit):
    seconds = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800, "month": 2678400}
    column = Timestamp(low, low + dt.timedelta(seconds=width * seconds.get(step, 31622400)), step=step)
    if column.points * seconds.get(step, 31622400) // 60 > 10**6 and unit in ("minute", "hour"):
        return  # more blocks than are worth listing
    moments = [dt.datetime.fromisoformat(str(column.label(code))) for code in range(column.points)]
    periods = [str(date_trunc(None, None, unit, each)) for each in moments]
    assert column.blocks(unit) == [at for at in range(len(periods)) if not at or periods[at] != periods[at - 1]]


@pytest.mark.parametrize("step", ["week", "month", "year"])
def test_a_day_is_rounded_down_to_its_period_as_duckdb_truncates_it(days, step):
    column = Date(LOW, HIGH, step=step)
    seconds = np.arange(LOW.toordinal(), HIGH.toordinal() + 1) - dt.date(1970, 1, 1).toordinal()
    codes = period_codes(column, seconds * calendar.DAY)
    found = duckdb.sql(f"SELECT date_trunc('{step}', day)::DATE::VARCHAR AS first FROM days ORDER BY day").fetchall()
    labels = column.labels()
    assert [labels[code] for code in codes.tolist()] == [first for (first,) in found]


MOMENTS = st.datetimes(dt.datetime(1600, 1, 1), dt.datetime(2400, 1, 1))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(MOMENTS, min_size=1, max_size=20), st.sampled_from(["second", "minute", "hour", "day", "week", "month"])
)
def test_times_are_cut_as_duckdb_cuts_them(moments, step):
    column = Timestamp("1600-01-01", "2400-01-01", step=step)
    codes = period_codes(column, np.array([calendar.seconds_of(each) for each in moments]))
    cut = [
        duckdb.execute("SELECT date_trunc(?, ?::TIMESTAMP)::TIMESTAMP", [step, each]).fetchone()[0] for each in moments
    ]
    assert [column.label(int(code)) for code in codes] == [each.isoformat(sep=" ") for each in cut]


@settings(max_examples=100, deadline=None)
@given(
    st.dates(dt.date(1950, 1, 1), dt.date(2050, 1, 1)),
    st.integers(2, 4000),
    st.sampled_from(["day", "week", "month", "year"]),
    st.dates(dt.date(1940, 1, 1), dt.date(2070, 1, 1)),
)
def test_the_codes_at_least_and_after_a_date_are_those_that_compare_so(low, width, step, date):
    try:
        column = Date(low, low + dt.timedelta(days=width), step=step)
    except ParameterError:  # all in one period
        return
    labels = column.labels()
    assert column.at_least(date) == sum(label < date.isoformat() for label in labels)
    assert column.after(date) == sum(label <= date.isoformat() for label in labels)
    codes = {label: code for code, label in enumerate(labels)}
    assert column.codes([date]) == [codes.get(date.isoformat())]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.dates(dt.date(1960, 1, 1), dt.date(1990, 1, 1)), min_size=1, max_size=30),
    st.sampled_from(["day", "week", "month", "year"]),
    st.integers(0, 10),
    st.integers(0, 10),
)
def test_conditions_on_dates_count_the_clipped_and_rounded_rows(dates, step, first, second):
    column = Date("1970-01-01", "1980-12-31", step=step)
    table = Table({"d": dates}, Domain(d=column))
    low, high = sorted((first * column.steps // 10, second * column.steps // 10))
    inside = Between("d", column.label(low), column.label(high))
    rounded = [str(column.label(int(code))) for code in table._codes["d"]]
    assert table.exact_sum(Count(inside)) == sum(column.label(low) <= each <= column.label(high) for each in rounded)
    assert table.exact_sum(Count(Equals("d", column.label(low)))) == rounded.count(column.label(low))
    clipped = [min(max(each, dt.date(1970, 1, 1)), dt.date(1980, 12, 31)) for each in dates]
    truncated = [duckdb.execute("SELECT date_trunc(?, ?::DATE)::DATE", [step, each]).fetchone()[0] for each in clipped]
    assert rounded == [each.isoformat() for each in truncated]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Date("1974-01-01", "1973-01-01"), "low must be <= high"),
        (lambda: Date("1974-01-01", "1974-01-01"), "different days"),
        (lambda: Date("1974-01-01", "1974-12-31", step="year"), "different years"),
        (lambda: Date("1974-01-01", "1975-12-31", step="hour"), "step must be one of day, week, month, year"),
        (lambda: Date("Jan 1974", "1975-12-31"), "low must be a date"),
        (lambda: Date(1974, 1975), "low must be a date"),
        (lambda: Date("1974-13-01", "1975-12-31"), "low must be a date"),
        (lambda: Date("1974-01-01", "1975-12-31", step="month").code("1974-01-02"), "does not begin a month"),
    ],
)
def test_what_is_wrong_with_a_date_is_said(make, says):
    with pytest.raises(ParameterError, match=says):
        make()
