"""The same questions row by row, by GROUP BY over a Parquet file, and by GROUP BY in DuckDB and PostgreSQL.

    python -m bench.pushdown      prints markdown; all in one process, one after the other, three rounds

Only ratios within a round are compared: the machine may be busy.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROWS = 2_000_000
ROUNDS = 3


def section(rows: int = ROWS) -> list[str]:
    """The section of bench/RESULTS.md."""
    with tempfile.TemporaryDirectory() as folder:
        found = _measured(Path(folder), rows)
    places = [*next(iter(found.values()))]
    return [
        "",
        f"## Counting where the rows are: {rows:,} rows",
        "",
        "Median seconds of three rounds; in brackets how many times as fast as row by row over the same Parquet file. "
        "All answers are equal, bit for bit.",
        "",
        f"| question | {' | '.join(places)} |",
        f"|---|{'---|' * len(places)}",
        *(_line(question, times) for question, times in found.items()),
    ]


def _line(question: str, times: dict[str, float]) -> str:
    first = next(iter(times.values()))
    shown = (f"{each:.2f}" + ("" if each == first else f" ({first / each:.1f}x)") for each in times.values())
    return f"| {question} | {' | '.join(shown)} |"


def _measured(folder: Path, rows: int) -> dict[str, dict[str, float]]:
    import duckdb
    import psycopg
    import pyarrow as pa
    from pyarrow import parquet
    from tests.postgres import Cluster

    import discreet as dp
    from discreet.data.far import Far

    domain = dp.Domain(
        age=dp.Number(0, 120, step=1),
        town=dp.Category("n", "e", "s", "w", other="elsewhere", missing="unknown"),
        sex=dp.Category("F", "M"),
        ill=dp.Category(False, True),
        pay=dp.Number(0, 100_000, step=5),
    )
    path = folder / "people.parquet"
    parquet.write_table(pa.table(_people(rows)), path)
    questions: dict[str, Any] = {
        "count": dp.Count(dp.And(dp.Between("age", 30, 60), dp.Equals("ill", True))),
        "histogram of 1,452 cells": dp.Histogram(["age", "town", "sex"]),
        "sum": dp.Sum("pay", dp.Equals("sex", "F")),
    }
    cluster = Cluster(shared_buffers="256MB")
    try:
        with psycopg.connect(cluster.server("postgres"), autocommit=True) as connection:
            _load(connection, path)
        with duckdb.connect(str(folder / "people.duckdb")) as connection:
            connection.execute(f"CREATE TABLE people AS SELECT * FROM '{path}'")
        declared: dict[str, Any] = {"neighbours": "add-remove", "name": "people"}
        file = dp.ParquetTable(path, domain, **declared)
        places: dict[str, Callable[[Any], Any]] = {
            "Parquet, row by row": lambda query: Far.exact_sum(file, query),
            "Parquet, GROUP BY": file.exact_sum,
            "DuckDB table": dp.SqlTable(f"duckdb:{folder / 'people.duckdb'}", "people", domain, **declared).exact_sum,
            "PostgreSQL": dp.SqlTable(cluster.server("postgres"), "people", domain, **declared).exact_sum,
        }
        return {name: _rounds(name, query, places) for name, query in questions.items()}
    finally:
        cluster.close()


def _rounds(name: str, query: Any, places: dict[str, Callable[[Any], Any]]) -> dict[str, float]:
    times: dict[str, list[float]] = {place: [] for place in places}
    for number in range(ROUNDS):
        print(f"{name}, round {number + 1} ...", file=sys.stderr, flush=True)
        answers = []
        for place, ask in places.items():
            began = time.perf_counter()
            answers.append(ask(query))
            times[place].append(time.perf_counter() - began)
        if not all(np.array_equal(each, answers[0]) for each in answers):
            raise RuntimeError(f"{name}: the answers differ")
    return {place: statistics.median(each) for place, each in times.items()}


def _people(rows: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    towns = np.array(["n", "e", "s", "w", "x"])
    return {
        "age": rng.integers(0, 121, rows).astype(np.int16),
        "town": towns[rng.integers(0, 5, rows)],
        "sex": np.array(["F", "M"])[rng.integers(0, 2, rows)],
        "ill": rng.random(rows) < 0.3,
        "pay": rng.integers(0, 120_000, rows).astype(np.int32),
    }


def _load(connection: Any, path: Path) -> None:
    import duckdb

    connection.execute("CREATE TABLE people(age smallint, town text, sex text, ill boolean, pay int)")
    rows = duckdb.connect().execute(f"SELECT age, town, sex, ill, pay FROM '{path}'")
    with connection.cursor().copy("COPY people FROM STDIN") as copy:
        while block := rows.fetchmany(50_000):
            for row in block:
                copy.write_row(row)
    connection.execute("ANALYZE people")


if __name__ == "__main__":
    print("\n".join(section(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)))
