"""The matrix of tests/matrix.py over Spark: files in 1, 2 and 7 parts, a DataFrame, and both over Spark Connect."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import discreet as dp
from tests import matrix
from tests.far.cluster import ROOT, environment
from tests.matrix import Cells


def places(session, *parts):
    """The places of a session, classic or over Spark Connect."""
    run = dp.Spark(session)

    def of_files(count):
        def made(row, files):
            stage = files if "unit" in row.more else None
            return dp.FilesTable(files / "many", row.domain, run=run, parts=count, stage=stage, **row.more)

        return made

    def of_frame(row, files):
        frame = session.read.parquet(str(files / "many")).repartition(3)
        return dp.SparkTable(frame, row.domain, **row.more)

    made = {f"FilesTable, Spark, {count} parts": (of_files(count), None) for count in parts}
    return {**made, "SparkTable": (of_frame, matrix.FRAME)}


ROWS = [row for row in matrix.ROWS if row.setting == "replace-one"]
KEPT = [row for row in matrix.ROWS if row.setting == "three rows"]
CONNECT = [row for row in matrix.ROWS if row.setting == "add-remove"]
CONNECT += [row for row in ROWS if row.name in matrix.PROGRAMS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("places")


@pytest.fixture(scope="module")
def cells(spark, folder):
    return Cells(folder, places(spark, 1, 2, 7))


@pytest.fixture(scope="module")
def kept(spark, folder):
    return Cells(folder / "kept", places(spark, 7))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_cell_is_that_of_the_table_or_is_refused_for_nothing(row, cells):
    cells.check(row)


@pytest.mark.parametrize("row", KEPT, ids=lambda row: row.name)
def test_a_cell_about_persons_of_three_rows(row, kept):
    kept.check(row)


def test_every_cell_over_spark_connect(tmp_path):
    """In a process of its own: a session of Spark Connect, its server started by the wheel."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("connect.py")), str(tmp_path)],
        env=environment(tmp_path),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    said = f"{len(CONNECT)} rows of the matrix are equal over Spark Connect"
    assert done.stdout.strip().endswith(said), done.stdout[-2000:] + done.stderr[-4000:]
