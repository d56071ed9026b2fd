"""Rows in a database: the same integers as in memory, one snapshot, nothing charged for what is refused."""

from __future__ import annotations

import copy
import datetime as dt
import pickle
import threading
from decimal import Decimal
from functools import partial

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import pytest
import sqlglot
from pyarrow import parquet

import discreet as dp
from discreet.data import DistinctRows, Text
from discreet.data.sql_engines import engine_of
from discreet.data.sql_table import SqlTable
from discreet.data.sql_text import DIALECTS, Coded, SqlSource, relation_of
from discreet.errors import (
    DiscreetError,
    LedgerMismatch,
    NotOffered,
    ParameterError,
    SchemaError,
    SourceUnavailable,
    UndeclaredLevels,
    Unproven,
)
from discreet.mechanisms import ContinualCounter
from discreet.query import (
    Bins,
    Cases,
    Choose,
    Fixed,
    GroupCount,
    GroupSum,
    KeyCount,
    Of,
    Plus,
    Power,
    Times,
    VectorSum,
    WithRest,
)
from tests.postgres import Cluster
from tests.sql_tables import Databases, load, quoted

DOMAIN = dp.Domain(
    age=dp.Number(0, 100, step=5, missing=True),
    town=dp.Category("n", "e", "it's", other="elsewhere", missing="unknown"),
    sex=dp.Category("F", "M"),
    ill=dp.Category(False, True),
    day=dp.Date("1974-01-01", "1978-12-31", step="month"),
    pay=dp.Number(-10, 1000, step="0.05"),
)


def people(size=2000, seed=2):
    rng = np.random.default_rng(seed)
    return {
        "age": [None if each > 115 else int(each) for each in rng.integers(-5, 120, size)],
        "town": rng.choice(np.array(["n", "e", "it's", "N", None], dtype=object), size).tolist(),
        "sex": rng.choice(["F", "M"], size).tolist(),
        "ill": (rng.random(size) < 0.3).tolist(),
        "day": [dt.date(1973, 1, 1) + dt.timedelta(days=int(each)) for each in rng.integers(0, 3000, size)],
        "pay": [Decimal(int(each)).scaleb(-2) for each in rng.integers(-2000, 110000, size)],
    }


@pytest.fixture(scope="module")
def databases(cluster):
    made = Databases(cluster)
    yield made
    made.close()


@pytest.fixture(scope="module")
def rows():
    return people()


@pytest.fixture(scope="module")
def here(rows):
    return dp.Table(rows, DOMAIN, name="people")


@pytest.fixture(scope="module")
def tables(databases, rows):
    return databases.tables(rows, DOMAIN, "everybody", name="people")


@pytest.fixture(scope="module")
def pushed(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "people.parquet"
    parquet.write_table(pa.table(rows), path)
    return dp.ParquetTable(path, DOMAIN, name="people")


def same(one, other):
    if isinstance(one, dict):
        return one == other
    return one.dtype == other.dtype and one.shape == other.shape and np.array_equal(one, other)


# The same integers.


def condition(rng, depth):
    kind = rng.integers(0, 8 if depth else 5)
    if kind == 0:
        low, high = sorted(int(each) * 5 for each in rng.integers(0, 21, 2))
        return dp.Between("age", low, high)
    if kind == 1:
        chosen = rng.choice(["n", "e", "it's", "elsewhere"], int(rng.integers(1, 4)), replace=False)
        return dp.Among("town", [str(each) for each in chosen])
    if kind == 2:
        return dp.Missing(str(rng.choice(["age", "town", "sex"])))
    if kind == 3:
        return dp.Equals("ill", bool(rng.random() < 0.5))
    if kind == 4:
        low, high = sorted(int(each) for each in rng.integers(1, 13, 2))
        return dp.Between("day", dt.date(1975, low, 1), dt.date(1976, high, 1))
    if kind == 5:
        return dp.Not(condition(rng, depth - 1))
    return (dp.And if kind == 6 else dp.Or)(*(condition(rng, depth - 1) for _ in range(int(rng.integers(0, 4)))))


@pytest.mark.parametrize(("seed", "conditions"), [(7, 100), pytest.param(8, 300, marks=pytest.mark.slow)])
def test_random_conditions_have_the_same_counts_and_histograms(here, tables, pushed, seed, conditions):
    rng = np.random.default_rng(seed)
    for _ in range(conditions):
        where = condition(rng, 3)
        names = [
            str(each) for each in rng.choice(["age", "town", "sex", "ill"], int(rng.integers(1, 4)), replace=False)
        ]
        for query in (dp.Count(where), dp.Histogram(names, where)):
            wanted = here.exact_sum(query)
            assert all(same(each.exact_sum(query), wanted) for each in (*tables, pushed))


def test_conditions_are_the_masks_of_every_code(here):
    rng = np.random.default_rng(5)
    for _ in range(200):
        where = condition(rng, 0)
        (name,) = where.columns
        every = np.arange(DOMAIN[name].size)
        batch = dp.data.Batch(DOMAIN, len(every), {name: every}.__getitem__)
        ranges = getattr(where.coded(DOMAIN), "ranges", ())
        assert where.mask(batch).tolist() == [any(low <= code <= high for low, high in ranges) for code in every]


SUMS = [
    dp.Sum("pay"),
    dp.Sum("age", dp.Among("town", ["n", "it's"])),
    VectorSum(("age", "pay"), dp.Equals("sex", "F")),
    GroupCount([Bins("age", [0, 4, 9], [0, 1, 0]), Cases([dp.Equals("ill", True), dp.Missing("town")])]),
    GroupCount([WithRest(["sex", "ill"], dp.Between("age", 20, 80))]),
    GroupSum(["town"], Times(Of("pay"), Plus(Of("pay"), Fixed(-500)))),
    GroupSum([], Power(Of("age"), 3), dp.Equals("ill", False)),
    GroupSum(["sex"], Choose([dp.Equals("ill", True), dp.Missing("age")], [Of("pay"), None], Fixed("2.5"))),
    GroupSum([WithRest(["town"], dp.Equals("sex", "M"))], Plus(Of("age"), Times(Of("pay"), Fixed("0.5")))),
    dp.Persons(["town"], dp.Equals("ill", True)),
    KeyCount(["day", "town"], dp.Between("age", 0, 50)),
    KeyCount("pay"),
]


@pytest.mark.parametrize("query", SUMS, ids=lambda query: type(query).__name__)
def test_sums_and_groups_are_the_same(query, here, tables, pushed):
    wanted = here.exact_sum(query)
    for each in (*tables, pushed):
        found = each.exact_sum(query)
        assert found == wanted if isinstance(query, KeyCount) else same(found, wanted)


def test_sums_beyond_64_bits_are_exact(databases):
    domain = dp.Domain(big=dp.Number(0, 2**62 - 1, step=1), far=dp.Number(10**30, 10**30 + 5, step=1))
    rows = {"big": [2**62 - 1] * 9 + [3], "far": [1] * 10}
    wide = dp.Table(rows, domain)
    only = dp.Domain(big=domain["big"])
    for each in databases.tables({"big": rows["big"]}, only):
        for query in (dp.Sum("big"), VectorSum("big"), GroupSum([], Of("big"))):
            if isinstance(query, GroupSum):
                continue
            assert same(each.exact_sum(query), wide.exact_sum(query))
    with pytest.raises(Unproven, match="62 bits"):
        databases.tables(rows, domain)


def test_texts_that_nobody_listed_are_counted_by_bytes(databases):
    domain = dp.Domain(city=Text(length=3, missing=True), sex=dp.Category("F", "M"))
    cities = ["Rom", "rom", "Rome", "Ro", "Ro ", "é", "e\u0301", "😀😀😀😀", "", None, "it's", "R\\om"] * 3
    rows = {"city": cities, "sex": ["F", "M"] * 18}
    here = dp.Table(rows, domain)
    for each in databases.tables(rows, domain):
        for query in (KeyCount("city"), KeyCount(["sex", "city"], dp.Equals("sex", "F"))):
            assert each.exact_sum(query) == here.exact_sum(query)
        for query in (dp.Count(dp.Missing("city")), dp.Histogram("sex", dp.Not(dp.Missing("city")))):
            assert same(each.exact_sum(query), here.exact_sum(query))
        ledger = dp.Ledger.in_memory(dp.Budget(1), each)
        before = list(ledger.entries())
        for refused in (  # no text of an analyst is in a statement
            partial(dp.release, dp.Laplace(dp.Count(dp.Equals("city", "Rom")), 10), each, ledger=ledger),
            partial(dp.release, dp.Laplace(dp.Histogram("sex", ~dp.Among("city", ["Ro"])), 9), each, ledger=ledger),
        ):
            with pytest.raises(NotOffered, match="of this kind is not among them"):
                refused()
        assert list(ledger.entries()) == before


def test_distinct_rows_come_by_one_statement(databases):
    rows = people(3000)
    domain = DOMAIN.project(["town", "sex", "ill"])
    kept = {name: rows[name] for name in domain}
    here = dp.Table(kept, domain)
    for each in databases.tables(kept, domain):
        batch, counts = each.exact_distinct()
        assert len(counts) == 5 * 2 * 2
        for query in (dp.Count(dp.Equals("sex", "F")), dp.Histogram(["town", "ill"])):
            assert same(query.weighted(batch, counts), here.exact_sum(query))


def test_distinct_rows_that_are_too_many_are_no_error(tables, here):
    for each in tables:
        assert each.exact_distinct() is None
        counted = dp.data.DistinctRows(each)
        assert same(counted.exact_sum(dp.Histogram("town")), here.exact_sum(dp.Histogram("town")))


# Refused before the charge.


def test_what_a_database_cannot_do_is_refused_with_nothing_charged(tables):
    class Own:
        """A query of the user's own: no database knows it."""

        monotone = True

        def partial(self, batch):
            return np.asarray(batch.rows, dtype=np.int64)

        def sensitivity(self, facts):
            return dp.Count().sensitivity(facts)

        def unit(self, facts):
            return dp.Count().unit(facts)

    for each in tables:
        ledger = dp.Ledger.in_memory(dp.Budget(1, 1e-6), each, testing=True)
        before = list(ledger.entries())
        price = {"ledger": ledger, "epsilon": "0.1"}
        model = dp.LogisticRegression(epsilon="0.1", delta="1e-7")
        for refused in (
            partial(dp.release, dp.mechanisms.RankQuantile("age", "1/2", 1), each, ledger=ledger),
            partial(dp.Median(**price).fit, each, "pay"),
            partial(dp.Session(each, ledger).fit, model, target="ill", features=["age", "pay"]),
            partial(dp.release, dp.Laplace(Own(), scale=10), each, ledger=ledger),
        ):
            with pytest.raises(NotOffered, match="answers counts, histograms and sums"):
                refused()
            assert list(ledger.entries()) == before
        assert dp.release(dp.Laplace(dp.Count(), scale=10), each, ledger=ledger).entry


# Several rows per person.

NUMBERED = [-(2**63), 2**63 - 1, -1, 0, 1, 2**53, 2**53 + 1, *range(10, 150)]
NAMED = ["", " ", "a", "A", "a ", "é", "e\u0301", "ß", "ss", "1", "01", "-0", "-1", "😀", "it's", *map(str, range(90))]


def of_persons(kind, size=1500, seed=4):
    draw = np.random.default_rng(seed)
    named = NUMBERED if kind == "numbers" else NAMED
    return people(size, seed) | {"who": [named[each] for each in draw.integers(0, len(named), size)]}


@pytest.mark.parametrize(
    ("kind", "rows_per_unit", "name"), [("numbers", 1, "people"), ("numbers", 3, "Leute"), ("texts", 3, "people")]
)
def test_the_rows_of_a_person_are_those_that_a_table_keeps(kind, rows_per_unit, name, databases):
    """Word by word: the same keyed mix in 64 bits, in SQL."""
    rows = of_persons(kind)
    more = {"unit": "who", "rows_per_unit": rows_per_unit, "name": name}
    memory = dp.Table(rows, DOMAIN, **more)
    for each in databases.tables(rows, DOMAIN, **more, size=memory.facts.size):
        assert each.facts == memory.facts
        for query in [*SUMS, dp.Count(), dp.Histogram(("age", "town", "ill"))]:
            if type(query) is not dp.Persons:
                assert same(each.exact_sum(query), memory.exact_sum(query)), query
        distinct, expected = (DistinctRows(data).exact_sum(dp.Histogram("sex")) for data in (each, memory))
        assert same(distinct, expected)
        ledger = dp.Ledger.in_memory(dp.Budget(1, 1e-6), each, testing=True)
        with pytest.raises(NotOffered, match="Persons"):
            dp.release(dp.Laplace(dp.Persons("town"), scale=10), each, ledger=ledger)
        assert not [body for body in ledger.entries() if body["kind"] == "charge"]


def test_persons_that_come_go_or_lose_their_name_later(databases):
    """Rows that name nobody are no one's; another number of persons shows that the rows changed."""
    rows, name = of_persons("numbers", 200), "persons_later"
    more = {"unit": "who", "rows_per_unit": 2, "name": "people"}
    memory = dp.Table(rows, DOMAIN, **more)
    both = databases.tables(rows, DOMAIN, name, **more, size=memory.facts.size)
    hidden = [
        SqlTable(where, name, DOMAIN, **more, neighbours="add-remove") for where in (databases.duck, databases.postgres)
    ]
    lost = rows["who"][0]
    for each, open_number, connection in zip(both, hidden, (databases.duck, databases.postgres), strict=True):
        connection.execute(f"UPDATE {name} SET who = NULL WHERE who = {lost}")
        left = [place for place, who in enumerate(rows["who"]) if who != lost]
        expected = dp.Table({key: [values[place] for place in left] for key, values in rows.items()}, DOMAIN, **more)
        assert open_number.exact_sum(dp.Sum("age")) == expected.exact_sum(dp.Sum("age"))
        with pytest.raises(LedgerMismatch, match="changed"):
            each.exact_sum(dp.Sum("age"))
        with pytest.raises(SchemaError, match="missing values"):
            SqlTable(connection, name, DOMAIN, **more, neighbours="add-remove")


def test_persons_that_sql_cannot_tell_apart_or_order_are_refused(databases, tables):
    for where in (databases.duck, databases.address):
        for unit in ("pay", "day", "ill"):
            with pytest.raises(Unproven, match="whole numbers or text"):
                SqlTable(where, "everybody", DOMAIN, neighbours="add-remove", unit=unit, rows_per_unit=2)
        free = dp.Domain(town=Text(missing=True))
        with pytest.raises(Unproven, match="hash of 'town'"):
            SqlTable(where, "everybody", free, neighbours="add-remove", unit="sex", rows_per_unit=2)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"town": [None] * 3}, None, ""),
        ({"sex": ["F", "M", None]}, SchemaError, "missing values"),
        ({"sex": ["F", "M", "f"]}, UndeclaredLevels, "not declared"),
        ({"pay": [1, 2, None]}, SchemaError, "missing values"),
    ],
)
def test_a_row_that_is_not_declared_is_refused_at_ingest(databases, change, error, words):
    rows = {**people(3), **change}
    if error is None:
        assert databases.tables(rows, DOMAIN)
        return
    with pytest.raises(error, match=words):
        databases.tables(rows, DOMAIN)


def test_replace_one_needs_a_size_and_a_version(databases, tables):
    for where in (databases.duck, databases.address):
        with pytest.raises(ParameterError, match="declare size"):
            SqlTable(where, "everybody", DOMAIN)
        with pytest.raises(ParameterError, match="declare version"):
            SqlTable(where, "everybody", DOMAIN, size=2000)
        with pytest.raises(ParameterError, match="number of persons"):
            SqlTable(where, "everybody", DOMAIN, size=1999, version="everybody_version")
        with pytest.raises(ParameterError, match="one row and one column"):
            SqlTable(where, "everybody", DOMAIN, size=2000, version="everybody")
        assert SqlTable(where, "everybody", DOMAIN, neighbours="add-remove").facts.size is None


# Names.


def test_hostile_names_are_names(databases, tables):
    relation = 'x"; DROP TABLE everybody; --'
    column = "a'b\"c; DROP TABLE everybody"
    domain = dp.Domain({column: dp.Category("'; DROP TABLE everybody; --", "b"), "%s {} \\": dp.Number(0, 9, step=1)})
    rows = {column: ["'; DROP TABLE everybody; --", "b", "b"], "%s {} \\": [1, 2, 3]}
    here = dp.Table(rows, domain)
    for each in databases.tables(rows, domain, relation):
        for query in (dp.Histogram(list(domain)), dp.Sum("%s {} \\", dp.Equals(column, "b"))):
            assert same(each.exact_sum(query), here.exact_sum(query))
    for connection in (databases.duck, databases.postgres):
        assert connection.execute("SELECT count(*) FROM everybody").fetchone() == (2000,)


def test_a_relation_that_is_not_there_is_refused(databases):
    for where in (databases.duck, databases.address):
        for relation in ("nobody", "everybody; SELECT 1", ("no", "everybody"), "everybody WHERE 1=1"):
            with pytest.raises((SchemaError, SourceUnavailable)):
                SqlTable(where, relation, DOMAIN, neighbours="add-remove")
        with pytest.raises((SchemaError, SourceUnavailable)):
            SqlTable(where, "everybody", dp.Domain(agee=DOMAIN["age"]), neighbours="add-remove")
        with pytest.raises(ParameterError):
            SqlTable(where, (), DOMAIN, neighbours="add-remove")


def test_a_view_and_a_schema_are_read(databases, here, tables):
    for where, connection in ((databases.duck, databases.duck), (databases.address, databases.postgres)):
        connection.execute("CREATE SCHEMA IF NOT EXISTS more")
        connection.execute("CREATE OR REPLACE VIEW more.women AS SELECT * FROM everybody WHERE sex = 'F'")
        view = SqlTable(where, ("more", "women"), DOMAIN, neighbours="add-remove")
        assert view.exact_sum(dp.Count()) == here.exact_sum(dp.Count(dp.Equals("sex", "F")))


# What changes.


@pytest.fixture
def changing(databases):
    """A small table in both databases, each with a connection that changes it."""
    rows = people(50)
    name = f"changing_{np.random.default_rng().integers(10**9)}"
    return name, [
        *zip(databases.tables(rows, DOMAIN, name, name="people"), (databases.duck, databases.postgres), strict=True)
    ]


def test_another_version_is_another_table(changing):
    name, both = changing
    for each, connection in both:
        ledger = dp.Ledger.in_memory(dp.Budget(1, 1e-6), each, testing=True)
        dp.release(dp.Laplace(dp.Count(dp.Equals("sex", "F")), scale=10), each, ledger=ledger)
        connection.execute(f"UPDATE {quoted(name + '_version')} SET version = '2'")
        before = list(ledger.entries())
        with pytest.raises(LedgerMismatch, match="changed"):
            dp.release(dp.Laplace(dp.Count(dp.Equals("sex", "F")), scale=10), each, ledger=ledger)
        assert list(ledger.entries()) == before


def test_another_number_of_rows_under_replace_one_is_charged_and_gives_nothing(changing):
    """The version was forgotten; the number of rows, which is public, shows it."""
    name, both = changing
    for each, connection in both:
        ledger = dp.Ledger.in_memory(dp.Budget(1, 1e-6), each, testing=True)
        connection.execute(f"DELETE FROM {quoted(name)} WHERE sex = 'F'")
        with pytest.raises(DiscreetError, match="the charge stays"):
            dp.release(dp.Laplace(dp.Count(), scale=10), each, ledger=ledger)
        assert [entry["kind"] for entry in ledger.entries()][-2:] == ["charge", "burn"]


def test_rows_that_are_not_declared_any_more_are_no_error(databases, changing):
    """They have code 0, a declared one: every theorem holds for what is there."""
    name, both = changing
    for _, connection in both:
        added = SqlTable(
            databases.duck if connection is databases.duck else databases.address, name, DOMAIN, neighbours="add-remove"
        )
        before = added.exact_sum(dp.Histogram("sex"))
        connection.execute(f"INSERT INTO {quoted(name)} VALUES (NULL, NULL, 'hermit', NULL, NULL, NULL)")
        assert added.exact_sum(dp.Histogram("sex")).tolist() == [before[0] + 1, before[1]]
        assert added.exact_sum(dp.Histogram("ill")).sum() == 51
        assert added.exact_sum(dp.Sum("pay")) is not None


def test_all_sums_of_a_release_are_of_one_snapshot(changing):
    """Rows that come between two sums of a release are seen by neither, or by the next release."""
    name, both = changing
    seen = []

    class Twice:
        NAME = "twice/1"

        def __init__(self, connection, table):
            self.connection, self.table = connection, table

        def guarantee(self, facts):
            return dp.Guarantee.of_pure(1, neighbours=facts.neighbours)

        def needs(self, facts):
            return dp.data.Needs(queries=(dp.Count(),), passes=2)

        def run(self, data, rng):
            first = int(data.exact_sum(dp.Count()))
            self.connection.execute(f"INSERT INTO {quoted(name)} SELECT * FROM {quoted(name)} LIMIT 7")
            seen.append((first, int(data.exact_sum(dp.Count()))))
            return 0

    _, (_, connection) = both
    table = SqlTable(engine_address(both[1][0]), name, DOMAIN, neighbours="add-remove", name="people")
    mechanism = Twice(connection, table)
    with table.snapshot():
        mechanism.run(table, None)
    mechanism.run(table, None)
    assert seen == [(50, 50), (57, 64)]


def engine_address(table):
    return table._engine._address


def test_a_duckdb_file_is_watched(tmp_path):
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        load(connection, people(40), "people")
    table = SqlTable(f"duckdb:{path}", "people", DOMAIN, size=40)
    assert table.source == path.resolve()
    assert int(table.exact_sum(dp.Count())) == 40
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE people SET sex = 'F'")
    with pytest.raises(LedgerMismatch):
        table.exact_sum(dp.Count())
    with pytest.raises(ParameterError, match="no DuckDB file"):
        SqlTable(f"duckdb:{tmp_path / 'none.duckdb'}", "people", DOMAIN, size=40)


def test_a_running_total_needs_rows_that_cannot_change_unnoticed(databases, tmp_path):
    """A person whose row moves from one epoch to a later one would be counted in both: twice the sensitivity."""
    domain = dp.Domain(t=dp.Number(1, 12, step=1), sex=dp.Category("F", "M"))
    rows = {"t": [1, 2, 2, 3], "sex": ["F", "M", "F", "M"]}
    counter = ContinualCounter(dp.Count(), "t", 1, 6, scale=40)
    declared = {"neighbours": "add-remove", "name": "people"}
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        load(connection, rows, "people")
    for moving in databases.tables(rows, domain, version=None, size=None, **declared):
        ledger = dp.Ledger.in_memory(dp.Budget(1, "1e-6"), moving)
        for table in (moving, DistinctRows(moving)):
            with pytest.raises(NotOffered, match=r"may change unnoticed.*version="):
                dp.converse(counter, table, ledger=ledger)
        assert [entry["kind"] for entry in ledger.entries()] == ["open", "facts"]
        dp.release(dp.Laplace(dp.Count(), scale=10), moving, ledger=ledger)
    kept = databases.tables(rows, domain, size=None, **declared)
    for table in (*kept, SqlTable(f"duckdb:{path}", "people", domain, **declared)):
        ledger = dp.Ledger.in_memory(dp.Budget(1, "1e-6"), table)
        with dp.converse(counter, table, ledger=ledger) as conversation:
            assert conversation.ask(1)


# A server that fails.


def test_a_server_that_dies_in_a_pass_leaves_the_charge_and_a_ledger_that_goes_on(tmp_path, monkeypatch):
    server = Cluster()
    try:
        address = server.server("postgres")
        with psycopg.connect(address, autocommit=True) as connection:
            load(connection, people(50), "people")
        table = SqlTable(address, "people", DOMAIN, neighbours="add-remove", name="people")
        path = tmp_path / "people.ledger"
        ledger = dp.Ledger.create(path, dp.Budget(1, 1e-6), table)

        honest = SqlTable._reader

        def dying(self):
            """The server is killed between the charge and the statement."""
            run = honest(self)
            server.kill()
            return run

        monkeypatch.setattr(SqlTable, "_reader", dying)
        with pytest.raises(DiscreetError, match="the mechanism failed after it was charged") as caught:
            dp.release(dp.Laplace(dp.Count(), scale=10), table, ledger=ledger)
        monkeypatch.setattr(SqlTable, "_reader", honest)
        assert caught.value.__cause__ is None
        assert [entry["kind"] for entry in ledger.entries()][-2:] == ["charge", "burn"]
        before = list(ledger.entries())
        with pytest.raises(SourceUnavailable, match="does not answer"):  # before the charge
            dp.release(dp.Laplace(dp.Count(), scale=10), table, ledger=ledger)
        assert list(ledger.entries()) == before
        server.start()
        assert dp.release(dp.Laplace(dp.Count(), scale=10), table, ledger=ledger).entry
    finally:
        server.close()


def test_errors_of_a_database_are_not_shown(databases):
    load(databases.postgres, {"word": ["canary 8675309"]}, "words")
    databases.postgres.execute("CREATE OR REPLACE VIEW failing AS SELECT CAST(word AS int) AS age FROM words")
    with pytest.raises(DiscreetError) as caught:
        SqlTable(databases.address, "failing", dp.Domain(age=dp.Number(0, 1, step=1)), neighbours="add-remove")
    shown = "".join(map(str, (caught.value, caught.value.__cause__, caught.value.__context__)))
    assert "canary" not in shown


# Connections.


def test_a_connection_in_a_transaction_is_refused_and_one_at_rest_is_left_as_it_was(databases, tables):
    with psycopg.connect(databases.address) as connection:
        table = SqlTable(connection, "everybody", DOMAIN, neighbours="add-remove")
        assert int(table.exact_sum(dp.Count())) == 2000
        assert not connection.autocommit
        connection.execute("SELECT 1")
        with pytest.raises(ParameterError, match="transaction"):
            table.exact_sum(dp.Count())
        connection.rollback()
        assert int(table.exact_sum(dp.Count())) == 2000


def test_passwords_and_unknown_places_are_refused():
    for address in ("postgresql://me:secret@host/db", "postgresql://host/db?password=secret"):
        with pytest.raises(ParameterError, match="holds a password") as caught:
            engine_of(address)
        assert "secret" not in str(caught.value)
    for where in ("mysql://host/db", "people.parquet", 5, {}):
        with pytest.raises(ParameterError):
            engine_of(where)


def test_a_table_is_neither_printed_nor_copied(tables):
    for each in tables:
        assert repr(each).startswith("<SqlTable 'people': 6 columns, ")
        for leave in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="private rows"):
                leave(each)


def test_several_threads_ask_at_once(tables, here):
    query = dp.Histogram(["town", "sex"])
    wanted = here.exact_sum(query)
    for each in tables:
        found = []
        threads = [
            threading.Thread(target=lambda each=each, found=found: found.append(each.exact_sum(query)))
            for _ in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 6
        assert all(same(one, wanted) for one in found)


# The text for other databases.

SOURCES = {
    "age": SqlSource("whole"),
    "town": SqlSource("text"),
    "sex": SqlSource("text"),
    "ill": SqlSource("boolean"),
    "day": SqlSource("date"),
    "pay": SqlSource("decimal", 2, (-(10**18) + 1, 10**18 - 1)),
}


def spoken(dialect, query):
    coded = Coded(relation_of(("shop", "people")), DOMAIN, SOURCES, DIALECTS[dialect])
    return [coded.tally(tally) for tally in query.tallies(DOMAIN)] + [coded.ingest()]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_statements_are_read_back_by_their_own_grammar(dialect):
    """One SELECT that only reads, with every level as one literal and every name as one identifier."""
    for query in (*SUMS, dp.Count(dp.Equals("town", "it's"))):
        for sql in spoken(dialect, query):
            (statement,) = sqlglot.parse(sql, dialect=dialect)
            assert isinstance(statement, sqlglot.exp.Select)
            assert {table.name for table in statement.find_all(sqlglot.exp.Table)} <= {"people"}
            assert "LEAST" not in sql.upper()
            assert "GREATEST" not in sql.upper()


def test_texts_are_compared_by_bytes_in_every_dialect():
    said = {name: spoken(name, dp.Count(dp.Equals("town", "it's")))[0] for name in DIALECTS}
    assert """(CAST("town" AS TEXT) COLLATE "C") = 'it''s'""" in said["postgres"]
    assert """(CAST("town" AS TEXT) COLLATE "C") = 'it''s'""" in said["duckdb"]
    assert "CAST(`town` AS BYTES) = CAST('it\\'s' AS BYTES)" in said["bigquery"]
    assert """TO_BINARY("town", 'UTF-8') = TO_BINARY('69742773', 'HEX')""" in said["snowflake"]
    assert (
        "[town] COLLATE Latin1_General_BIN2 = N'it''s' AND DATALENGTH(CAST([town] AS NVARCHAR(MAX))) = 8"
        in said["tsql"]
    )


def test_whole_numbers_are_divided_exactly_in_every_dialect():
    said = {name: spoken(name, dp.Histogram("age"))[0] for name in DIALECTS}
    assert '(CAST("age" AS BIGINT) / 5)' in said["postgres"]
    assert '(CAST("age" AS BIGINT) // 5)' in said["duckdb"]
    assert "DIV(CAST(`age` AS INT64), 5)" in said["bigquery"]
    assert 'CAST(((CAST("age" AS BIGINT) - CAST("age" AS BIGINT) % 5) / 5) AS BIGINT)' in said["snowflake"]
    assert "(CAST([age] AS BIGINT) / 5)" in said["tsql"]
    assert all("FLOAT" not in text and "DOUBLE" not in text for text in said.values())
    assert "COUNT_BIG(*)" in said["tsql"]


@pytest.mark.parametrize("dialect", ["bigquery"])
def test_statements_for_other_databases_count_the_same_after_translation(dialect, here, databases, tables):
    """What sqlglot makes of them for DuckDB gives the same numbers: a check of their meaning by another grammar."""
    for query in (
        dp.Count(dp.Between("age", 10, 50)),
        dp.Histogram("day", dp.Equals("ill", True)),
        dp.Histogram("age"),
    ):
        coded = Coded(relation_of(("everybody",)), DOMAIN, {**SOURCES, "town": SqlSource("text")}, DIALECTS[dialect])
        (tally,) = query.tallies(DOMAIN)
        (translated,) = sqlglot.transpile(coded.tally(tally), read=dialect, write="duckdb")
        found = databases.duck.execute(translated).fetchall()
        wanted = here.exact_sum(query)
        assert sum(line[-1] for line in found) == wanted.sum()
        assert {int(line[0]): line[1] for line in found if len(line) > 1} == {
            place: count for place, count in enumerate(wanted.ravel().tolist()) if count and len(found[0]) > 1
        }
