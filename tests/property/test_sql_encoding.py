"""The encoding, said once: numpy, Arrow, DuckDB and PostgreSQL give every hostile value the same code."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from fractions import Fraction

import duckdb
import psycopg
import pyarrow as pa
import pytest

from discreet.data import Category, Date, Domain, Number, Timestamp
from discreet.data.encoding import Frame, encode, read
from discreet.data.rules import GridRule, number_rule
from discreet.data.sql_engines import DuckEngine, PostgresEngine
from discreet.data.sql_table import SqlTable
from discreet.data.sql_text import NO_LEVEL, NO_VALUE, Coded, columns_sql, relation_of, require_source
from discreet.errors import SchemaError, SourceUnavailable, UndeclaredLevels, Unproven

UTC = dt.UTC
LARGEST, LEAST = 2**63 - 1, -(2**63)
INTEGERS = [None, 0, -1, 1, 4, 5, 6, 99, 100, 101, -100, 2**31, -(2**31), LARGEST, LEAST, 2**53, 2**53 + 1]
TEXTS = [
    *(
        None,
        "",
        " ",
        "n",
        "N",
        "n ",
        " n",
        "n\t",
        "é",
        "e\u0301",
        "É",
        "ß",
        "SS",
        "ss",
        "it's",
        'say "so"',
        "a\\b",
        "a\nb",
    ),
    *(
        "%",
        "_",
        "--",
        "';DROP TABLE people;--",
        "😀",
        "İ",
        "i̇",
        "ı",
        "ﬀ",
        "ff",
        "Ω",
        "Ω",
        "A\u00a0B",
        "A B",
        "\u200b",
        "1",
        "true",
    ),
]
DECIMALS = [
    *(
        None,
        "0",
        "-0",
        "0.00",
        "0.05",
        "0.049999",
        "0.05000001",
        "0.10",
        "99.99",
        "100",
        "100.01",
        "-5",
        "33.3333333333",
    ),
    *("123456789012345678901234567890.12345", "-99999999999999999999.9", "0.000000000000000000000000000001", "1e20"),
]
DAYS = [
    *(
        None,
        dt.date(1973, 12, 31),
        dt.date(1974, 1, 1),
        dt.date(1974, 1, 2),
        dt.date(1976, 2, 29),
        dt.date(1978, 12, 31),
    ),
    *(dt.date(1979, 1, 1), dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1969, 12, 28), dt.date(1969, 12, 29)),
]
TIMES = [
    *(
        None,
        dt.datetime(1974, 1, 1),
        dt.datetime(1973, 12, 31, 23, 59, 59, 999999),
        dt.datetime(1974, 1, 1, 0, 0, 0, 1),
    ),
    *(dt.datetime(1969, 12, 31, 23, 59, 59, 1), dt.datetime(1976, 2, 29, 12, 30, 59, 999999), dt.datetime(1, 1, 1)),
    *(
        dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
        dt.datetime(1978, 12, 31, 0, 0, 0, 1),
        dt.datetime(1978, 12, 30, 23),
    ),
]
CASES = {
    "whole steps": ("bigint", Number(0, 100, step=5, missing=True), INTEGERS),
    "no missing": ("bigint", Number(-7, 100, step=1), INTEGERS),
    "quarters": ("bigint", Number("0.5", "10.5", step="0.25", missing=True), INTEGERS),
    "thirds": ("bigint", Number(Fraction(1, 3), Fraction(10, 3), step=Fraction(1, 3)), INTEGERS),
    "wide": ("bigint", Number(-(2**61) + 1, 2**61 - 1, step=1), INTEGERS),
    "wide steps": ("bigint", Number(-(2**60), 2**60, step=2**40), INTEGERS),
    "small type": ("smallint", Number(0, 7 * 10**5, step=7), [None, 0, -1, 6, 7, 8, 32767, -32768]),
    "small type below": ("smallint", Number(10**6, 2 * 10**6, step=1), [None, 0, -1, 32767, -32768]),
    "small type above": ("smallint", Number(-(10**6), -(10**5), step=1), [None, 0, -1, 32767, -32768]),
    "booleans as numbers": ("boolean", Number(0, 1, step=1, missing=True), [None, True, False]),
    "booleans half": ("boolean", Number("0.5", "3.5", step=1), [None, True, False]),
    "decimals": ("numeric(38,10)", Number(0, 100, step="0.05", missing=True), DECIMALS[:13]),
    "decimals of two digits": (
        "numeric(10,2)",
        Number("-0.03", "99.97", step="0.5"),
        ["0", "-0.03", "-0.04", "99.97", "99.96", None, "5.47"],
    ),
    "decimals to whole": (
        "numeric(18,0)",
        Number(0, 100, step=10),
        ["0", "-1", "9", "10", "99", "100", "999999999999999999", None],
    ),
    "levels": ("text", Category("n", "é", "it's", 'say "so"', "a\\b", "a\nb", "%", "😀", "ss", "", missing="?"), TEXTS),
    "levels and others": (
        "text",
        Category("N", "e\u0301", "İ", "ff", "A B", "';DROP TABLE people;--", other="x"),
        TEXTS,
    ),
    "levels that are missing": ("text", Category("n", other="?", missing="?"), [*TEXTS, "?"]),
    "texts and numbers": ("text", Category("1", 1, True, other="x"), TEXTS),
    "whole levels": ("bigint", Category(0, 5, -1, LARGEST, 2**70, other=99), INTEGERS),
    "whole levels and booleans": ("bigint", Category(True, False, 1, missing="?"), [None, 0, 1, 2, -1]),
    "boolean levels": ("boolean", Category(True, False, 1, 0, missing="?"), [None, True, False]),
    "booleans as whole levels": ("boolean", Category(1, 2, other=7), [None, True, False]),
    "decimal levels": (
        "numeric(10,2)",
        Category(1, 2, True, -3, 10**12),
        ["1", "1.00", "1.01", "-3", "0", None, "99999999.99"],
    ),
    **{
        f"dates by {step}": ("date", Date("1974-01-01", "1978-12-31", step=step, missing=True), DAYS)
        for step in ("day", "week", "month", "year")
    },
    "long dates": ("date", Date("0001-01-01", "9999-12-31", step="month"), DAYS),
    "dates as times": (
        "date",
        Timestamp("1974-01-01 06:00:00", "1978-12-31 05:00:00", step="hour", missing=True),
        DAYS,
    ),
    **{
        f"times by {step}": ("timestamp", Timestamp("1974-01-01", "1978-12-31", step=step, missing=True), TIMES)
        for step in ("second", "minute", "hour", "day", "week", "month", "year")
    },
    "times as dates": ("timestamp", Date("1974-01-02", "1978-12-31", step="week"), TIMES),
    "old times": ("timestamp", Timestamp("1960-01-01", "1974-01-02", step="second"), TIMES),
    **{
        f"zones by {step}": (
            "timestamptz",
            Timestamp("1974-01-01", "1978-12-31", step=step, missing=True),
            [
                *(None if each is None else each.replace(tzinfo=UTC) for each in TIMES),
                dt.datetime(1974, 1, 1, 1, 30, tzinfo=dt.timezone(dt.timedelta(hours=2))),
                dt.datetime(1978, 12, 31, 23, 30, tzinfo=dt.timezone(dt.timedelta(hours=-9, minutes=-30))),
            ],
        )
        for step in ("hour", "month")
    },
}


def entry(value, kind):
    return Decimal(value) if kind.startswith("numeric") and value is not None else value


def expected(values, column):
    """Entry by entry, so that a refused one does not hide the others."""
    found = []
    for value in values:
        try:
            found.append(int(encode(read([value], "c"), column, "c")[0]))
        except UndeclaredLevels:
            found.append(NO_LEVEL)
        except SchemaError:
            found.append(NO_VALUE)
    return found


@pytest.fixture(scope="module")
def duck():
    return duckdb.connect()


@pytest.fixture(scope="module")
def server(cluster):
    with psycopg.connect(cluster.server("postgres"), autocommit=True, prepare_threshold=None) as connection:
        yield connection


def loaded(connection, kind, values, collation=""):
    """A table of these values, numbered."""
    connection.execute("DROP TABLE IF EXISTS hostile")
    connection.execute(f"CREATE TABLE hostile(i int, c {kind}{collation})")
    mark = "%s" if isinstance(connection, psycopg.Connection) else "?"
    cursor = connection.cursor()
    cursor.executemany(f"INSERT INTO hostile VALUES ({mark}, {mark})", [*enumerate(values)])


def sql_codes(connection, column, *, strict=True):
    engine = (PostgresEngine if isinstance(connection, psycopg.Connection) else DuckEngine)(connection)
    target = relation_of(("hostile",))
    with engine.snapshot() as run:
        ((_, kind, source),) = engine.types(run, columns_sql(target, ("c",), engine.dialect))
        source = require_source("c", column, source, engine.dialect, kind)
        coded = Coded(target, Domain(c=column), {"c": source}, engine.dialect)
        codes = coded.codes(("c",), strict=strict).this
        return [int(each) for each in run(engine.dialect.text(codes.select("i").order_by("i")))[0]]


@pytest.mark.parametrize("case", CASES)
def test_every_hostile_value_has_one_code(case, duck, server):
    kind, column, listed = CASES[case]
    values = [entry(value, kind) for value in listed]
    wanted = expected(values, column)
    for connection in (duck, server):
        loaded(connection, kind, values)
        assert sql_codes(connection, column) == wanted
        total = sql_codes(connection, column, strict=False)
        assert total == [max(code, 0) for code in wanted]
    if min(wanted) >= 0 and not kind.startswith("numeric"):
        assert encode(Frame(pa.table({"c": pa.array(values)}))["c"], column, "c").tolist() == wanted


def test_decimals_of_any_length_infinities_and_nan_in_postgresql(server):
    column = Number("0.05", "100.05", step="0.1", missing=True)
    loaded(
        server,
        "numeric",
        [*map(entry, DECIMALS, ["numeric"] * len(DECIMALS)), *map(Decimal, ("NaN", "Infinity", "-Infinity"))],
    )
    finite = expected([entry(each, "numeric") for each in DECIMALS], column)
    assert sql_codes(server, column) == [*finite, column.missing_code, column.steps, 0]
    assert expected([Decimal("NaN"), Decimal("Infinity"), Decimal("-Infinity")], column) == [
        column.missing_code,
        column.steps,
        0,
    ]


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz"])
def test_infinite_dates_are_clipped(kind, duck, server):
    column = Date("1974-01-01", "1978-12-31", step="month")
    for connection in (duck, server):
        loaded(connection, kind, ["infinity", "-infinity", "1975-01-31"])
        assert sql_codes(connection, column) == [column.steps, 0, 12]
        connection.execute(
            "INSERT INTO hostile VALUES (9, '5000-01-01 (BC)')"
            if connection is duck
            else "INSERT INTO hostile VALUES (9, '4000-01-01 BC')"
        )
        assert sql_codes(connection, column)[-1] == 0


def test_integers_wider_than_64_bits_in_duckdb(duck):
    values = [None, 2**127 - 1, -(2**127), 2**64, 5, 17]
    for column in (Number(0, 100, step=5, missing=True), Category(5, 2**64, 2**130, other=0)):
        loaded(duck, "hugeint", values)
        assert sql_codes(duck, column) == expected(values, column)
        loaded(duck, "ubigint", [None, 2**64 - 1, 0, 17])
        assert sql_codes(duck, column) == expected([None, 2**64 - 1, 0, 17], column)


def test_random_grids_and_random_numbers(duck, server):
    rng = random.Random(7)
    for _ in range(60):
        unit = Fraction(1, rng.choice([1, 1, 2, 4, 5, 10, 100, 3]))
        low, step = rng.randint(-(10**6), 10**6) * unit, rng.randint(1, 1000) * unit
        column = Number(
            low, low + step * rng.randint(1, 10 ** rng.randint(1, 6)), step=step, missing=rng.random() < 0.5
        )
        near = [int(column.value(rng.randint(0, column.steps))) + rng.randint(-1, 1) for _ in range(30)]
        whole = [None, *near, *(rng.randint(LEAST, LARGEST) for _ in range(3))]
        exact = [None, *(Decimal(each) + Decimal(rng.randint(-9999, 9999)).scaleb(-4) for each in near)]
        for connection in (duck, server):
            loaded(connection, "bigint", whole)
            assert sql_codes(connection, column) == expected(whole, column)
            loaded(connection, "numeric(30,4)", exact)
            if connection is server and 3 in (column.low.denominator, column.high.denominator):
                with pytest.raises(Unproven):
                    sql_codes(connection, column)
            else:
                assert sql_codes(connection, column) == expected(exact, column)


def test_a_rule_is_the_definition_of_the_code():
    """floor((x - low) / step), clipped, by fractions; for numbers in units and for numbers of any length."""
    rng = random.Random(3)
    for _ in range(2000):
        scale = rng.choice([1, 2, 3, 10, 100])
        low, step = Fraction(rng.randint(-50, 50), scale), Fraction(rng.randint(1, 30), scale)
        column = Number(low, low + step * rng.randint(1, 40), step=step)
        unit = Fraction(1, rng.choice([1, 10, 100]))
        rule = number_rule(column, unit)
        assert isinstance(rule, GridRule)
        measure = rng.randint(-(10**4), 10**4)
        clamped = min(max(measure * unit, column.low), column.high)
        assert rule.code(measure) == (clamped - column.low) // column.step


# Collations.


def test_a_column_that_ignores_case_is_compared_by_bytes(duck):
    column = Category("n", "é", other="x")
    loaded(duck, "text", TEXTS, " COLLATE NOCASE.NOACCENT")
    assert sql_codes(duck, column) == expected(TEXTS, column)


def test_a_nondeterministic_collation_is_compared_by_bytes(server):
    if "--with-icu" not in server.execute("SELECT string_agg(setting, ' ') FROM pg_config").fetchone()[0]:
        pytest.skip("NOT TESTED: this PostgreSQL is built without ICU, and has no such collation")
    server.execute(
        "CREATE COLLATION IF NOT EXISTS ci (provider = icu, locale = 'und-u-ks-level1', deterministic = false)"
    )
    column = Category("n", "é", other="x")
    loaded(server, "text", TEXTS, " COLLATE ci")
    ((merged,),) = server.execute("SELECT count(*) FROM hostile WHERE c = 'n'").fetchall()
    assert merged > 1  # the collation does merge them
    assert sql_codes(server, column) == expected(TEXTS, column)


def test_a_database_that_merges_levels_all_the_same_is_refused_by_the_probe(monkeypatch, duck):
    from sqlglot import exp

    from discreet.data import sql_text

    careless = dict(sql_text.DIALECTS)
    honest = careless["duckdb"]
    twin = {name: getattr(honest, name) for name in honest.__slots__}
    twin["same"] = lambda entry, level: exp.EQ(this=exp.Lower(this=entry), expression=exp.Literal.string(level.lower()))
    careless["duckdb"] = sql_text.Dialect(**twin)
    loaded(duck, "text", ["n", "N"])
    declared = Domain(c=Category("n", "m", other="x"))
    SqlTable(duck, "hostile", declared, neighbours="add-remove")
    monkeypatch.setattr("discreet.data.sql_engines.DIALECTS", careless)
    with pytest.raises(SourceUnavailable, match="does not encode"):
        SqlTable(duck, "hostile", declared, neighbours="add-remove")


# What is refused.


@pytest.mark.parametrize("kind", ["double precision", "real", "time", "uuid", "char(3)", "bytea", "json", "interval"])
def test_types_that_cannot_be_encoded_exactly_are_refused(kind, duck, server):
    for connection in (duck, server):
        if connection is duck and kind in ("char(3)", "json"):  # DuckDB's char is text; json is an extension
            continue
        loaded(connection, kind, [None])
        for column in (
            Number(0, 1, step="0.1", missing=True),
            Category("a", missing="?"),
            Date("2000-01-01", "2001-01-01", missing=True),
        ):
            with pytest.raises(Unproven, match="make a view"):
                sql_codes(connection, column)


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("text", Number(0, 1, step=1)),
        ("bigint", Category("a", "b")),
        ("date", Category("a")),
        ("bigint", Date("2000-01-01", "2001-01-01")),
    ],
)
def test_a_type_that_a_table_would_refuse_is_refused(kind, column, duck, server):
    for connection in (duck, server):
        loaded(connection, kind, [None])
        with pytest.raises(SchemaError, match="does not hold"):
            sql_codes(connection, column)


def test_declarations_without_exact_sql_are_refused(duck):
    loaded(duck, "bigint", [1])
    with pytest.raises(Unproven, match="exactly"):
        sql_codes(duck, Number.any())
    with pytest.raises(Unproven, match="62 bits"):
        sql_codes(duck, Number(-(2**70), 2**70, step=2**20))
    loaded(duck, "text", ["1976-01-01"])
    with pytest.raises(Unproven, match="casts it to a date"):
        sql_codes(duck, Date("1974-01-01", "1978-12-31"))
    with pytest.raises(Unproven, match="NUL"):
        sql_codes(duck, Category("a\0b", "c"))
