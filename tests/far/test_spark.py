"""Far tables on a real Spark cluster: the same releases, bit for bit, as a table in memory; losses and failures."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import discreet as dp
from discreet.data import Slice
from discreet.errors import LedgerMismatch, NotOffered, ParameterError, SchemaError
from discreet.rng import SeededRng
from tests.far.cluster import environment

N = 20_000
FEATURES = ("f0", "f1", "f2")
DOMAIN = dp.Domain(
    {
        **{name: dp.Number(0, 100, step="0.5") for name in FEATURES},
        "age": dp.Number(0, 120, step=1, missing=True),
        "pay": dp.Number(-(10**9), 10**9, step="0.01"),
        "town": dp.Category("n", "e", "s", other="w"),
        "old": dp.Category(False, True),
        "tall": dp.Category(False, True),
        "ill": dp.Category(False, True),
    }
)


def made_up(n=N, seed=0):
    rng = np.random.default_rng(seed)
    x = np.round(rng.uniform(0, 100, (n, len(FEATURES))) * 2) / 2
    age = rng.integers(0, 130, n)
    ill = (x[:, 0] > 30) & (x[:, 0] < 80) & (x[:, 1] > 20) ^ (rng.random(n) < 0.05)
    columns = {name: x[:, place] for place, name in enumerate(FEATURES)}
    columns |= {"age": pa.array([None if each > 125 else int(each) for each in age], pa.int64())}
    columns |= {"pay": np.round(rng.normal(0, 1e7, n), 2), "town": rng.choice(["n", "e", "s", "q"], n)}
    columns |= {"old": age > 60, "tall": x[:, 2] > 50, "ill": ill, "person": rng.integers(0, n // 4, n)}
    return pa.table(columns)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The rows in three files of several row groups, in another order."""
    folder = tmp_path_factory.mktemp("files")
    rows = made_up()
    rows = rows.take(np.random.default_rng(5).permutation(N))
    for place in range(3):
        part = rows.slice(place * 7_000, 7_000)
        parquet.write_table(part, folder / f"{place}.parquet", row_group_size=1_500)
    return folder


@pytest.fixture(scope="module")
def here():
    return dp.Table(made_up(), DOMAIN, name="people")


@pytest.fixture(scope="module")
def there(spark, files):
    """The same rows, in every far place."""
    run = dp.Spark(spark)
    frame = spark.read.parquet(str(files))
    made = {
        f"files, {parts} parts": dp.FilesTable(files, DOMAIN, run=run, parts=parts, name="people")
        for parts in (1, 2, 7)
    }
    made["files, staged"] = dp.FilesTable(files, DOMAIN, run=run, stage=files.parent, name="people")
    made["frame"] = dp.SparkTable(frame, DOMAIN, name="people")
    made["frame, staged"] = dp.SparkTable(frame.repartition(5), DOMAIN, stage=True, name="people")
    return made


def fresh(table, **more):
    return dp.Ledger.in_memory(dp.Budget(100, 1e-4), table, testing=True, **more)


def plain(value):
    if isinstance(value, (tuple, list)):
        return tuple(plain(each) for each in value)
    return tuple(np.asarray(value).ravel().tolist()) if isinstance(value, np.ndarray) else value


QUERIES = [
    dp.Count(dp.Between("age", 20, 60)),
    dp.Histogram(("age", "town"), dp.Not(dp.Equals("ill", True))),
    dp.Sum("pay", dp.Missing("age")),
    dp.mechanisms.VectorSum(("pay", "age")),
    dp.mechanisms.KeyCount(("pay", "town")),
    dp.Persons(),
]
SLICES = [Slice("age", "low", 50), Slice("pay", "high", 30), Slice("age", "low", 10), Slice("f0", "high", 200)]


def test_sums_slices_and_distinct_rows_are_those_of_the_table_in_memory(here, there):
    for where, table in there.items():
        assert table.facts == here.facts, where
        for query in QUERIES:
            found, expected = table.exact_sum(query), here.exact_sum(query)
            assert found == expected if isinstance(found, dict) else found.tolist() == expected.tolist(), (where, query)
        for disjoint in (True, False):
            for condition in (None, dp.Equals("town", "n")):
                found, expected = (
                    each.exact_slices(SLICES, where=condition, disjoint=disjoint) for each in (table, here)
                )
                assert [each.tolist() for each in found] == [each.tolist() for each in expected], where


def test_the_same_rows_of_a_person_are_kept(spark, files):
    more = {"unit": "person", "rows_per_unit": 3, "name": "people"}
    memory = dp.Table(made_up(), DOMAIN, **more)
    frame = spark.read.parquet(str(files))
    tables = [
        dp.FilesTable(files, DOMAIN, run=dp.Spark(spark), parts=parts, stage=files.parent, **more) for parts in (1, 7)
    ]
    tables += [dp.SparkTable(frame, DOMAIN, **more), dp.SparkTable(frame.repartition(7), DOMAIN, **more)]
    for table in tables:
        assert table.facts == memory.facts
        for query in [*QUERIES, dp.Persons("town")]:
            found, expected = table.exact_sum(query), memory.exact_sum(query)
            assert found == expected if isinstance(found, dict) else found.tolist() == expected.tolist(), query
        table.close()


def test_what_a_far_table_cannot_move_is_refused_for_nothing(spark, files):
    table = dp.FilesTable(files, DOMAIN, run=dp.Spark(spark), name="people", gather_limit=2**16)
    ledger = fresh(table)
    with pytest.raises(NotOffered, match="more than"):
        dp.interior_point(table, column="pay", epsilon=1, delta=1e-6, ledger=ledger, method="binary-search")
    assert [body["kind"] for body in ledger.entries()] in (["open"], ["open", "facts"])


class Quoting:
    """A mechanism whose row function fails on the workers with a text that quotes a row."""

    NAME = "quoting/1"

    def guarantee(self, facts):
        return dp.Guarantee.of_pure(1, neighbours=facts.neighbours)

    def stated_record(self):
        return {"name": self.NAME}

    def needs(self, facts):
        return dp.data.Needs(functions=True)

    def run(self, data, rng):
        return int(data.exact_sum(quoted))


def quoted(batch):
    codes = batch["pay"]
    if batch.rows:
        raise ValueError(f"the first pay is {codes[0]}")
    return np.zeros((), dtype=np.int64)


@pytest.mark.parametrize("where", ["files, 2 parts", "frame"])
def test_an_engine_that_fails_leaves_the_charge_a_fixed_error_and_a_ledger_that_goes_on(where, there):
    table = there[where]
    ledger = fresh(table)
    with pytest.raises(dp.DiscreetError, match="failed after it was charged; the charge stays") as raised:
        dp.release(Quoting(), table, ledger=ledger, rng=SeededRng(1))
    assert raised.value.__context__ is None
    assert "pay" not in str(raised.value)
    assert [body["kind"] for body in ledger.entries()][-2:] == ["charge", "burn"]
    got = dp.release(dp.Laplace(dp.Count(), 10), table, ledger=ledger, rng=SeededRng(1))
    assert abs(got.value - N) < 500


def test_what_is_wrong_with_a_row_is_said_when_the_table_is_made(spark, tmp_path):
    rows = {"age": ["many"] * 10}
    parquet.write_table(pa.table(rows), tmp_path / "rows.parquet")
    domain = dp.Domain(age=dp.Number(0, 120, step=1))
    with pytest.raises(SchemaError, match="'age'") as raised:
        dp.FilesTable(tmp_path, domain, run=dp.Spark(spark))
    assert "many" not in str(raised.value)
    with pytest.raises(SchemaError, match="'age'"):
        dp.SparkTable(spark.read.parquet(str(tmp_path)), domain)
    frame = spark.createDataFrame([(1, 0.5, None, [1])], "age int, share double, name string, nested array<int>")
    for unit, words in (("share", "whole numbers or text"), ("name", "missing values"), ("nested", "not supported")):
        with pytest.raises(SchemaError, match=words):
            dp.SparkTable(frame, domain, unit=unit, rows_per_unit=3)
    with pytest.raises(SchemaError, match="List"):
        dp.SparkTable(frame, dp.Domain(nested=dp.Category("a", other="b")))


def test_a_file_that_changed_is_another_table(spark, tmp_path):
    parquet.write_table(made_up(1000), tmp_path / "a.parquet")
    table = dp.FilesTable(tmp_path, DOMAIN, run=dp.Spark(spark), name="people")
    frame = dp.SparkTable(spark.read.parquet(str(tmp_path)), DOMAIN, name="people")
    ledger = fresh(table)
    parquet.write_table(made_up(1001), tmp_path / "a.parquet")
    for each in (table, frame):
        with pytest.raises(LedgerMismatch, match="another table"):
            dp.release(dp.Laplace(dp.Count(), 10), each, ledger=ledger, rng=SeededRng(1))
    assert not [body for body in ledger.entries() if body["kind"] == "charge"]


def test_a_table_and_a_view_of_hive_give_the_same_releases(files, tmp_path):
    """In a process of its own: Hive's metastore and reader are in the wheel."""
    script = Path(__file__).with_name("hive.py")
    command = [sys.executable, str(script), str(files), str(tmp_path)]
    done = subprocess.run(
        command, env=environment(tmp_path), cwd=tmp_path, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.stdout.strip().endswith("equal over Hive"), done.stdout[-2000:] + done.stderr[-4000:]


# A schema.

SCHEMA = """
name = "people"
data = "{files}/*.parquet"
engine = "spark"
ledger = "people.ledger"
neighbours = "replace-one"
each_row_is_a_person = true

[columns]
f0 = {{ kind = "number", low = 0, high = 100, step = "0.5" }}
f1 = {{ kind = "number", low = 0, high = 100, step = "0.5" }}
town = {{ kind = "category", levels = ["n", "e", "s"], other = "w" }}
ill = {{ kind = "category", levels = [false, true] }}
"""


def test_a_schema_names_spark_and_a_fit_takes_the_method_and_the_few_passes_of_its_plan(
    spark, files, tmp_path, monkeypatch
):
    """`spark` is the session of this process: it is the one that the schema's table finds."""
    (tmp_path / "people.toml").write_text(SCHEMA.format(files=files))
    schema = dp.Schema.read(tmp_path / "people.toml")
    table, memory = schema.table(), dp.Table(made_up(), schema.domain, name="people")
    assert type(table._run) is dp.Spark
    assert table.offers.pass_seconds == schema.pass_seconds > 0
    for mechanism in (dp.Laplace(dp.Histogram(("town", "ill")), 3), dp.Gaussian(dp.Sum("f0"), 100)):
        found, expected = (
            plain(dp.release(mechanism, each, ledger=fresh(each), rng=SeededRng(6)).value) for each in (table, memory)
        )
        assert found == expected
    budget = dp.Budget(1, 1e-6)
    given = {"size": N, "domain": schema.domain, "target": "ill", "features": ("f0", "f1")}
    far = dp.plan("logistic", budget=budget, **given, pass_seconds=schema.pass_seconds)
    (taken,) = (row for row in far.rows if row.taken)
    assert taken.passes <= 20
    read = []
    for door in ("exact_sum", "exact_gather"):
        real = getattr(dp.FilesTable, door)

        def counted(self, given, real=real):
            read.append(given)
            return real(self, given)

        monkeypatch.setattr(dp.FilesTable, door, counted)
    ledger = dp.Ledger.in_memory(dp.Budget(10, 1e-5), table)
    dp.LogisticRegression(epsilon=1, delta=1e-6, ledger=ledger).fit(table, "ill", features=["f0", "f1"])
    (charged,) = [body["mechanism"]["name"] for body in ledger.entries() if body["kind"] == "charge"]
    assert charged == taken.mechanism.NAME
    assert len(read) <= 20


def test_a_schema_names_files_in_a_store_and_the_folder_of_a_stage(spark, files, tmp_path):
    """A store is reached by its address alone: here that of a file system."""
    text = SCHEMA.format(files=files)
    path = tmp_path / "people.toml"
    path.write_text(text.replace(f'"{files}/', f'"file://{files}/'))
    schema = dp.Schema.read(path)
    table, memory = schema.table(), dp.Table(made_up(), schema.domain, name="people")
    assert type(table) is dp.SparkTable
    assert table.offers.pass_seconds == schema.pass_seconds > 0
    assert table.facts == memory.facts
    assert schema.sources == ()
    for query in (dp.Histogram(("town", "ill")), dp.Sum("f0")):
        assert table.exact_sum(query).tolist() == memory.exact_sum(query).tolist()
    path.write_text(text.replace(f'"{files}/', '"file:///nowhere/'))
    with pytest.raises(dp.errors.SourceUnavailable, match="Spark cannot read"):
        dp.Schema.read(path).table()
    for mark in ("_delta_log/0.json", "metadata/1.metadata.json"):
        (tmp_path / "kept" / mark).parent.mkdir(parents=True)
        (tmp_path / "kept" / mark).touch()
        shutil.copy(files / "0.parquet", tmp_path / "kept" / "0.parquet")
        for place in ("kept", "kept/*.parquet", "*/*.parquet"):
            path.write_text(text.replace(f'"{files}/*.parquet"', f'"file://{tmp_path}/{place}"'))
            with pytest.raises(ParameterError, match="earlier versions of rows"):
                dp.Schema.read(path).table()
        shutil.rmtree(tmp_path / "kept")
    several = text.replace("each_row_is_a_person = true", 'unit = "person"\nrows_per_unit = 3')
    path.write_text(several)
    with pytest.raises(ParameterError, match="stage must name a folder that all workers see"):
        dp.Schema.read(path).table()
    (tmp_path / "codes").mkdir()
    path.write_text(several.replace("[columns]", 'stage = "codes"\n[columns]'))
    table = dp.Schema.read(path).table()
    assert list((tmp_path / "codes").iterdir())
    memory = dp.Table(made_up(), schema.domain, name="people", unit="person", rows_per_unit=3)
    assert table.facts == memory.facts
    assert table.exact_sum(dp.Sum("f0")).tolist() == memory.exact_sum(dp.Sum("f0")).tolist()
    table.close()
    assert not list((tmp_path / "codes").iterdir())


def test_the_command_line_asks_rows_in_spark(files, tmp_path, monkeypatch):
    """In processes of their own, whose Spark is one of this machine, as the environment says."""
    shutil.copytree(files, tmp_path / "own", ignore=lambda _, names: [each for each in names if "discreet" in each])
    (tmp_path / "people.toml").write_text(SCHEMA.format(files="own"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    given = environment(tmp_path)
    settings = "--conf spark.ui.enabled=false --conf spark.driver.host=127.0.0.1 --conf spark.sql.shuffle.partitions=2"
    given["PYSPARK_SUBMIT_ARGS"] = f"--master local[2] {settings} pyspark-shell"

    def said(*words):
        command = [sys.executable, "-m", "discreet", *words]
        done = subprocess.run(
            command, env=given, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout

    said("ledger", "create", "people.toml", "--epsilon", "1", "--delta", "1e-6")
    question = "SELECT COUNT(*) FROM people WHERE town = 'n' AND f0 > 50"
    answer = json.loads(said("ask", "people.toml", question, "--json"))
    answer = answer[0] if isinstance(answer, list) else answer
    rows = made_up().to_pandas()
    truth = int(((rows["town"] == "n") & (rows["f0"] > 50)).sum())
    assert abs(answer["value"] - truth) <= answer["error_bound"]
    planned = said(
        "plan", "logistic", "--schema", "people.toml", "--epsilon", "8", "--delta", "1e-6", "--target", "ill"
    )
    assert "passes" in planned
    assert sum(body["kind"] == "charge" for body in dp.Ledger.open(tmp_path / "people.ledger").entries()) == 1


def test_a_running_total_is_refused_where_rows_may_change_unnoticed(there):
    domain = there["frame"].facts.domain
    counter = dp.mechanisms.ContinualCounter(dp.Count(), "age", 1, 12, 5)
    assert "age" in domain
    ledger = fresh(there["frame"])
    before = list(ledger.entries())
    with pytest.raises(NotOffered, match="may change unnoticed"):
        dp.converse(counter, there["frame"], ledger=ledger)
    assert list(ledger.entries()) == before
    dp.converse(counter, there["files, 2 parts"], ledger=fresh(there["files, 2 parts"]), rng=SeededRng(1))


def slow(batch):
    time.sleep(1.0)
    return np.bincount(batch["town"], minlength=4).astype(np.int64)


def test_a_worker_that_is_killed_in_a_pass_changes_nothing(cluster, here, there):
    """The last test of this module: one worker is left."""
    for where in ("files, 7 parts", "frame"):
        with contextlib.ExitStack() as after:
            if where == "files, 7 parts":
                timer = threading.Timer(2.5, cluster.kill_worker, (1,))
                timer.start()
                after.callback(timer.join)
            assert there[where].exact_sum(slow).tolist() == here.exact_sum(dp.Histogram("town")).tolist()
    assert cluster.workers[1].poll() is not None
    staged = there["frame, staged"]  # half of what was staged is lost, and made again
    assert staged.exact_sum(dp.Histogram("town")).tolist() == here.exact_sum(dp.Histogram("town")).tolist()
