"""Commands over rows that stay in DuckDB and in PostgreSQL, and over folders of files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import duckdb
import psycopg
import pytest
from pyarrow import parquet

from discreet import example
from discreet.data import Table
from discreet.data.sql_table import SqlTable
from discreet.errors import ParameterError, SchemaError
from discreet.query import Histogram, Sum
from discreet.schema import Schema

PEOPLE = 5912


def declared(folder, data, *lines):
    """The bundled schema with other rows."""
    text = (
        bundled("people.toml").read_text().replace('data = "people.parquet"', "\n".join([f'data = "{data}"', *lines]))
    )
    path = folder / "people.toml"
    path.write_text(text)
    return path


def bundled(name):
    return Path(example.__file__).parent / name


@pytest.fixture(params=["duckdb", "postgresql"])
def schema(request, tmp_path):
    """The bundled people in a database, and the schema that says so."""
    rows = parquet.read_table(bundled("people.parquet"))
    if request.param == "duckdb":
        with duckdb.connect(str(tmp_path / "clinic.duckdb")) as connection:
            connection.execute("CREATE TABLE people AS SELECT * FROM rows")
        return declared(tmp_path, "duckdb:clinic.duckdb", 'relation = "people"', f"size = {PEOPLE}")
    cluster = request.getfixturevalue("cluster")
    with psycopg.connect(cluster.server("postgres"), autocommit=True) as connection:
        kinds = {"string": "text", "large_string": "text"}
        columns = ", ".join(f'"{field.name}" {kinds.get(str(field.type), "int")}' for field in rows.schema)
        connection.execute("DROP SCHEMA IF EXISTS clinic CASCADE")
        connection.execute("CREATE SCHEMA clinic")
        connection.execute(f"CREATE TABLE clinic.people({columns})")
        with connection.cursor().copy("COPY clinic.people FROM STDIN") as copy:
            for line in zip(*(rows[name].to_pylist() for name in rows.column_names), strict=True):
                copy.write_row(line)
        connection.execute("CREATE TABLE clinic.version AS SELECT '2026-11' AS version")
    address = cluster.server("postgres")
    lines = ('relation = ["clinic", "people"]', 'version = ["clinic", "version"]', f"size = {PEOPLE}")
    return declared(tmp_path, address, *lines)


def test_the_commands_work_over_rows_in_a_database(schema, run):
    assert isinstance(Schema.read(schema).table(), SqlTable)
    assert "is complete" in run("schema", schema)[1]
    code, _, errors = run("ledger", "create", schema, "--epsilon", "1", "--delta", "1e-6")
    assert code == 0, errors
    code, said, errors = run("ask", schema, "SELECT sex, COUNT(*) FROM people GROUP BY sex", "--json")
    assert code == 0, errors
    assert json.loads(said)
    code, _, errors = run("plan", "histogram", "--schema", schema, "--features", "sex,health", "--share", "1/3")
    assert code == 0, errors
    before = run("ledger", "show", schema, "--json")[1]
    code, said, errors = run(
        "fit", schema, "logistic", "--target", "limited", "--features", "age,visits", "--share", "1/20"
    )
    assert code == 2
    assert "counts, histograms and sums" in said + errors
    assert run("ledger", "show", schema, "--json")[1] == before
    page = schema.with_name("page.html")
    code, _, errors = run("report", schema, "--out", page)
    assert code == 0, errors
    assert page.exists()


def test_a_schema_says_that_persons_have_several_rows_in_a_database(schema, run):
    """The rows that are kept are those of the file."""
    unit = 'unit = "age"\nrows_per_unit = 3'
    memory = Table(bundled("people.parquet"), Schema.read(schema).domain, name="people", unit="age", rows_per_unit=3)
    text = schema.read_text().replace("each_row_is_a_person = true", unit)
    schema.write_text(text.replace(f"size = {PEOPLE}", f"size = {memory.facts.size}"))
    table = Schema.read(schema).table()
    assert isinstance(table, SqlTable)
    assert table.facts == memory.facts
    for query in (Histogram(("sex", "health")), Sum("visits")):
        assert table.exact_sum(query).tolist() == memory.exact_sum(query).tolist()
    assert run("ledger", "create", schema, "--epsilon", "1", "--delta", "1e-6")[0] == 0
    code, _, errors = run("ask", schema, "SELECT sex, COUNT(*) FROM people GROUP BY sex")
    assert code == 0, errors


def test_a_draft_is_made_of_names_and_types(schema, tmp_path, run):
    rows = Schema.read(schema).data
    relation = [word for part in rows.relation for word in ("--relation", part)]
    code, _, errors = run("schema", rows.address, *relation, "--out", tmp_path / "draft.toml")
    assert code == 0, errors
    text = (tmp_path / "draft.toml").read_text()
    assert '[columns.age]\nkind = "number"' in text
    assert '[columns.sex]\nkind = "category"' in text
    with pytest.raises(SchemaError, match="FILL IN"):
        Schema.read(tmp_path / "draft.toml")


@pytest.mark.parametrize(
    ("data", "lines", "words"),
    [
        ("postgresql://me:secret@host/db", ('relation = "people"',), "holds a password"),
        ("postgresql://host/db?password=secret", ('relation = "people"',), "holds a password"),
        ("postgresql://host/db", (), "which table"),
        ("mysql://host/db", ('relation = "people"',), "postgresql"),
        ("people.parquet", ('relation = "people"',), "rows in a database"),
        ("postgresql://host/db", ('relation = "people"', 'engine = "spark"'), "engine is of files"),
        ("people.parquet", ('engine = "dask"',), "processes"),
        ("people.parquet", ('stage = "codes"',), "add engine"),
        ("s3a://bucket/people.parquet", (), 'engine = "spark"'),
        ("s3a://bucket/people.parquet", ('engine = "spark"', 'relation = "people"'), "rows in a database"),
        ("s3a://bucket/people.parquet", ('engine = "spark"', 'stage = "codes"'), "by paths"),
        ("s3a://me:secret@bucket/people.parquet", ('engine = "spark"',), "Spark's own settings"),
    ],
)
def test_schemas_that_are_refused(tmp_path, data, lines, words):
    path = declared(tmp_path, data, *lines)
    with pytest.raises((SchemaError, ParameterError), match=words) as caught:
        Schema.read(path)
    assert "secret" not in str(caught.value)


def test_several_tables_of_the_same_people_are_files(tmp_path):
    path = tmp_path / "clinic.toml"
    path.write_text(
        'name = "clinic"\n[tables.people]\ndata = "postgresql://host/db"\nunit = "person"\nrows_per_unit = 1\n'
        '[tables.people.columns.sex]\nkind = "category"\nlevels = ["F", "M"]\n'
    )
    with pytest.raises(SchemaError, match=r"\[tables\.people\] needs a file"):
        Schema.read(path)


def test_a_folder_and_a_pattern_are_many_files(tmp_path, run):
    rows = parquet.read_table(bundled("people.parquet"))
    (tmp_path / "parts").mkdir()
    for place in range(3):
        parquet.write_table(rows.slice(place * 2000, 2000), tmp_path / "parts" / f"{place}.parquet")
    shutil.copy(bundled("people.parquet"), tmp_path / "people.parquet")
    expected = Schema.read(declared(tmp_path, "people.parquet")).table()
    for data, lines in (("parts", ()), ("p*ts/*.parquet", ('engine = "processes"',))):
        schema = Schema.read(declared(tmp_path, data, *lines))
        assert len(schema.sources) == 3
        table = schema.table()
        assert type(table).__name__ == "FilesTable"
        assert (table.exact_sum(Histogram("sex")) == expected.exact_sum(Histogram("sex"))).all()
        assert table.facts.size == PEOPLE
    code, said, errors = run("schema", tmp_path / "parts")
    assert code == 0, errors
    assert "[columns.age]" in said
