"""One place where rows may be, measured in a process of its own: prints JSON. Run by bench/far.py.

    python -m bench.far_place PLACE FOLDER [growth | fit]

FOLDER has .parquet files as `bench.far` writes them. Spark runs on a cluster of this machine: a master and two workers.
"""

from __future__ import annotations

import contextlib
import functools
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import discreet as dp
from bench import peak
from discreet.erm.feasible_sets import Ball
from discreet.erm.features import Declared
from discreet.erm.gradient import pass_over
from discreet.erm.losses import Logistic
from discreet.erm.risk import Risk

FEATURES = tuple(f"f{place}" for place in range(10))
COUNTED = ("age", "town", "sex")
DOMAIN = dp.Domain(
    {
        "age": dp.Number(0, 120, step=1),
        "town": dp.Category("n", "e", "s", other="w"),
        "sex": dp.Category("F", "M"),
        "ill": dp.Category(False, True),
        **{name: dp.Number(0, 100, step="0.1") for name in FEATURES},
    }
)
SMALL = dp.Domain({name: DOMAIN[name] for name in COUNTED})


@contextlib.contextmanager
def opened(place: str, folder: str, domain: dp.Domain):
    """The table in this place."""
    path = Path(folder)
    if place in STORED:
        yield dp.SqlTable(folder, "people", SMALL, neighbours="add-remove", name="people")
    elif place == "table":
        import pyarrow.parquet

        yield dp.Table(pyarrow.parquet.read_table(path), domain, name="people")
    elif place == "parquet":
        yield dp.ParquetTable(next(iter(sorted(path.glob("*.parquet")))), domain, name="people")
    elif place == "processes":
        run = dp.Processes(2)
        yield dp.FilesTable(path, domain, run=run, name="people")
        run.close()
    else:
        from tests.far.cluster import Cluster, session

        with Cluster() as cluster:
            spark = session(cluster.url, cluster.environment, cluster.folder)
            if place == "spark":
                yield dp.FilesTable(path, domain, run=dp.Spark(spark), name="people")
            else:
                frame = spark.read.parquet(str(path))
                yield dp.SparkTable(frame, domain, stage=place == "frame-staged", name="people")
            spark.stop()


@contextlib.contextmanager
def in_duckdb(files: Path):
    """The counted columns in a DuckDB file: its address."""
    import duckdb

    with tempfile.TemporaryDirectory() as folder:
        with duckdb.connect(f"{folder}/people.duckdb") as connection:
            connection.execute(f"CREATE TABLE people AS SELECT {', '.join(COUNTED)} FROM '{files}/*.parquet'")
        yield f"duckdb:{folder}/people.duckdb"


@contextlib.contextmanager
def in_postgresql(files: Path):
    """The same in a server of its own, whose files go with it."""
    import duckdb
    import psycopg
    from tests.postgres import Cluster

    cluster = Cluster(shared_buffers="256MB")
    try:
        with psycopg.connect(cluster.server("postgres"), autocommit=True) as connection:
            connection.execute("CREATE TABLE people(age int, town text, sex text)")
            rows = duckdb.connect().execute(f"SELECT {', '.join(COUNTED)} FROM '{files}/*.parquet'")
            with connection.cursor().copy("COPY people FROM STDIN") as copy:
                while block := rows.fetchmany(100_000):
                    copy.write("".join(f"{age}\t{town}\t{sex}\n" for age, town, sex in block))
            connection.execute("ANALYZE people")
        yield cluster.server("postgres")
    finally:
        cluster.close()


STORED = {"duckdb": in_duckdb, "postgresql": in_postgresql}


def gradient(table):
    """The sum of the gradients of a logistic loss at a point, as a descent takes it."""
    risk = Risk(Logistic("1/2"), Declared(FEATURES, 1, True), "ill", Ball(20))
    over = pass_over(risk, table.facts.domain, table.facts.size)
    return functools.partial(table.exact_sum, over.at(np.linspace(-1, 1, over.dimension)))


def timed(act, times=2):
    """The best of some, in seconds, and what was found."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        found = act()
        taken.append(time.perf_counter() - start)
    return min(taken), found


def main(place: str, folder: str, what: str = "passes") -> None:
    said: dict[str, object] = {}
    with contextlib.ExitStack() as after:
        where = after.enter_context(STORED[place](Path(folder))) if place in STORED else folder
        start = time.perf_counter()
        table = after.enter_context(opened(place, where, SMALL if what == "growth" else DOMAIN))
        said |= {"size": table.facts.size, "made": time.perf_counter() - start}
        said["histogram"], counts = timed(lambda: table.exact_sum(dp.Histogram(COUNTED)))
        said["counted"] = int((counts * np.arange(counts.size).reshape(counts.shape)).sum())
        if table.offers.refusal(dp.data.Needs(functions=True), table.facts):
            said["gradient"] = "refused"
        elif what == "passes":
            said["gradient"], slopes = timed(gradient(table))
            said["summed"] = int(np.abs(slopes).sum())
        if what == "fit":
            said |= fitted(table)
        said["peak"] = peak.megabytes()
    print(json.dumps(said), flush=True)


def fitted(table) -> dict[str, object]:
    """A logistic regression by what `auto` takes here, and how often it read the rows."""
    passes = []
    for door in ("exact_sum", "exact_gather"):
        real = getattr(type(table), door)

        def counted(self, given, real=real):
            passes.append(given)
            return real(self, given)

        setattr(type(table), door, counted)
    ledger = dp.Ledger.in_memory(dp.Budget(10, 1e-5), table)
    start = time.perf_counter()
    model = dp.LogisticRegression(epsilon=1, delta=1e-6, ledger=ledger).fit(table, "ill", features=list(FEATURES))
    charged = [body["mechanism"]["name"] for body in ledger.entries() if body["kind"] == "charge"]
    coefficients = [round(float(each), 4) for each in np.ravel(model.coef_)]
    return {"fit": time.perf_counter() - start, "passes": len(passes), "by": charged[-1], "coef": coefficients}


if __name__ == "__main__":
    main(*sys.argv[1:])
