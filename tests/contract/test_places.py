"""The matrix of tests/matrix.py over the places of this machine: files, processes, DuckDB and PostgreSQL."""

from __future__ import annotations

import pytest

import discreet as dp
from tests import matrix
from tests.examples import kinds
from tests.matrix import PROGRAMS, ROWS, Cells
from tests.sql_tables import Databases


@pytest.fixture(scope="module")
def cells(cluster, tmp_path_factory):
    databases, run = Databases(cluster), dp.Processes(2)
    both = {}

    def stored(row, files):
        """In both databases at once; the second place takes what the first has made."""
        key = row.key
        if key not in both:
            both[key] = databases.tables(row.rows, row.domain, **row.more)
        return both[key]

    def of_files(parts):
        return lambda row, files: dp.FilesTable(files / "many", row.domain, run=run, parts=parts, **row.more)

    yield Cells(
        tmp_path_factory.mktemp("places"),
        {
            "ParquetTable": (lambda row, files: dp.ParquetTable(files / "one.parquet", row.domain, **row.more), None),
            **{f"FilesTable, processes, {parts} parts": (of_files(parts), None) for parts in (1, 2, 7)},
            "SqlTable, DuckDB": (lambda row, files: stored(row, files)[0], matrix.DATABASE),
            "SqlTable, PostgreSQL": (lambda row, files: stored(row, files)[1], matrix.DATABASE),
        },
    )
    run.close()
    databases.close()


_SLOW = ("fifty questions", "three rows")  # 33 s of CPU; the questions run with one row per person in every quick run


@pytest.mark.parametrize(
    "row",
    [pytest.param(row, marks=pytest.mark.slow) if (row.name, row.setting) == _SLOW else row for row in ROWS],
    ids=lambda row: f"{row.name}, {row.setting}",
)
def test_a_cell_is_that_of_the_table_or_is_refused_for_nothing(row, cells):
    cells.check(row)


def test_every_mechanism_has_its_row_in_every_setting():
    mechanisms = {kind.__name__ for kind in kinds()}
    for setting, programs in (("replace-one", PROGRAMS), ("three rows", PROGRAMS), ("add-remove", ())):
        assert {row.name for row in ROWS if row.setting == setting} == mechanisms | set(programs)
    assert len(matrix.questions()) == 50


ANSWERED = {
    *("AboveThreshold", "AboveThresholdLaplace", "AveragedWeights", "ChosenTables", "ContinualCounter"),
    *("CoordinateLaplace", "Exponential", "Gaussian", "GroupQuantiles", "Laplace", "Marginals", "PermuteAndFlip"),
    *("ProductLaplace", "ResidualMarginals", "StableGaussian", "StableHistogram", "StableMode", "ZeroSumLaplace"),
    *("fifty questions", "quantiles"),
}
"""What a database answers; all else needs functions of a row that only the library computes. A literal list, so that
no mechanism comes to need more by accident."""


def test_what_of_the_catalogue_a_database_answers_and_a_frame_refuses_is_known():
    for setting in ("replace-one", "three rows"):
        here = [row for row in ROWS if row.setting == setting]
        answered = {row.name for row in here if matrix.DATABASE not in row.refused and row.held_by(matrix.DATABASE)}
        assert answered == ANSWERED, f"ANSWERED in this file should differ by {sorted(answered ^ ANSWERED)}"
        assert {row.name for row in here if matrix.FRAME in row.refused} == {"ContinualCounter"}
