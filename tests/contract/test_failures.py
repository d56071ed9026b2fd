"""A place that fails between the charge and the sum: the charge stays, the error is fixed, and the ledger goes on."""

from __future__ import annotations

import os
import signal

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import discreet as dp
from discreet.rng import SeededRng
from tests.sql_tables import Databases, load

DOMAIN = dp.Domain(age=dp.Number(0, 100, step=1), sex=dp.Category("F", "M"))
ROWS = {"age": [30, 41, 52, 67] * 50, "sex": ["F", "M", "M", "F"] * 50}
CANARY = "8675309"


class Harmed:
    """A count whose place is harmed after the charge, before the rows are read."""

    NAME = "harmed/1"

    def __init__(self, harm, ask=None):
        self.harm, self.ask = harm, ask or dp.Histogram(("age", "sex"))

    def guarantee(self, facts):
        return dp.Guarantee.of_pure(1, neighbours=facts.neighbours)

    def stated_record(self):
        return {"name": self.NAME}

    def needs(self, facts):
        functions = not hasattr(self.ask, "tallies")
        return dp.data.Needs(queries=() if functions else (self.ask,), functions=functions)

    def run(self, data, rng):
        self.harm()
        return int(np.sum(data.exact_sum(self.ask)))


def by_row(batch):
    """A function of a row that no GROUP BY computes."""
    return np.asarray(batch["age"].sum(), dtype=np.int64)


def dying(batch):
    """Whatever process reads a row dies of it."""
    if batch.rows:
        os.kill(os.getpid(), signal.SIGKILL)
    return np.zeros((), dtype=np.int64)


def fails(table, mechanism, again):
    """The release fails and is paid for; `again` is the place after it was mended."""
    ledger = dp.Ledger.in_memory(dp.Budget(10, 1e-6), table, testing=True)
    with pytest.raises(dp.DiscreetError, match="failed after it was charged; the charge stays") as raised:
        dp.release(mechanism, table, ledger=ledger, rng=SeededRng(1))
    assert raised.value.__context__ is raised.value.__cause__ is None
    assert CANARY not in str(raised.value)
    assert [body["kind"] for body in ledger.entries()][-2:] == ["charge", "burn"]
    spent = ledger.spent()
    assert dp.release(dp.Laplace(dp.Count(), 10), again(), ledger=ledger, rng=SeededRng(1)).entry
    assert ledger.spent() != spent


@pytest.fixture(scope="module")
def run():
    made = dp.Processes(2)
    yield made
    made.close()


MAKERS = {
    "ParquetTable": lambda folder, run: dp.ParquetTable(folder / "0.parquet", DOMAIN, name="people"),
    "FilesTable": lambda folder, run: dp.FilesTable(folder, DOMAIN, run=run, name="people"),
    "FilesTable, staged": lambda folder, run: dp.FilesTable(folder, DOMAIN, run=run, stage=folder, name="people"),
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "rows").mkdir()
    parquet.write_table(pa.table(ROWS), tmp_path / "rows" / "0.parquet", row_group_size=30)
    return tmp_path / "rows"


@pytest.mark.parametrize("ask", [None, by_row], ids=["group by", "row by row"])
@pytest.mark.parametrize("harm", ["deleted", "damaged"])
@pytest.mark.parametrize("place", MAKERS)
def test_a_file_that_is_lost_or_damaged(place, harm, ask, folder, run):
    """Damaged: other bytes, and size and time as before. Codes that were staged are read instead of the file."""
    path, make = folder / "0.parquet", MAKERS[place]
    held = path.read_bytes()
    table = make(folder, run)
    paths = sorted(folder.glob("discreet-*/*.parquet")) if "staged" in place and harm == "damaged" else [path]

    def act():
        for each in paths:
            stamp = each.stat()
            if harm == "deleted":
                each.unlink()
            else:
                each.write_bytes(CANARY.encode().ljust(stamp.st_size, b"\0"))
                os.utime(each, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))

    def again():
        path.write_bytes(held)
        return make(folder, run)

    fails(table, Harmed(act, ask), again)


def test_processes_that_die_whenever_they_read(folder):
    own = dp.Processes(2)
    table = dp.FilesTable(folder, DOMAIN, run=own, name="people")
    fails(table, Harmed(lambda: None, dying), lambda: table)
    own.close()


@pytest.fixture(scope="module")
def databases(cluster):
    made = Databases(cluster)
    yield made
    made.close()


@pytest.mark.parametrize("place", ["DuckDB", "PostgreSQL"])
def test_a_statement_that_fails_in_a_database(place, databases):
    """A view that casts, and a row that came since and cannot be cast; the database's own error quotes it."""
    connection, where = {
        "DuckDB": (databases.duck, databases.duck),
        "PostgreSQL": (databases.postgres, databases.address),
    }[place]
    load(connection, {"age": [*map(str, ROWS["age"])], "sex": ROWS["sex"]}, "harmed")
    connection.execute("CREATE VIEW harmed_people AS SELECT CAST(age AS int) AS age, sex FROM harmed")

    def make():
        return dp.SqlTable(where, "harmed_people", DOMAIN, neighbours="add-remove", name="people")

    def again():
        connection.execute("DELETE FROM harmed WHERE sex = 'M' AND age LIKE '%x%'")
        return make()

    fails(make(), Harmed(lambda: connection.execute(f"INSERT INTO harmed VALUES ('x{CANARY}', 'M')")), again)


def test_a_connection_that_is_lost(databases):
    load(databases.postgres, ROWS, "lost")
    table = dp.SqlTable(databases.address, "lost", DOMAIN, neighbours="add-remove", name="people")
    reader = type(table)._reader

    def cut(self):
        """The server ends the session that the statement is about to use."""
        run = reader(self)
        others = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND state <> 'idle'"
        )
        databases.postgres.execute(others)
        return run

    with pytest.MonkeyPatch.context() as patch:

        def harm():
            patch.setattr(type(table), "_reader", cut)

        def again():
            patch.undo()
            return table

        fails(table, Harmed(harm), again)
