"""Every solver reads a file as it reads rows in memory, and never fails after its charge."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import discreet as dp
from discreet.erm.feasible_sets import Ball, interval
from discreet.erm.features import Constant, Declared
from discreet.erm.losses import Absolute, Logistic, Squared
from discreet.erm.risk import Ridge, Risk
from discreet.erm.solvers import SOLVERS, methods
from discreet.rng import Rng

DOMAIN = dp.Domain(
    age=dp.Number(0, 100, step=1),
    pay=dp.Number(0, 10, step="0.1"),
    sick=dp.Category("no", "yes"),
    other=dp.Category("a", "b"),
)
LINEAR = Risk(Squared(), Declared(("age",), 1), "pay", Ball(10), Ridge("0.1"))
LOGISTIC = Risk(Logistic("1/2"), Declared(("age",), 1), "sick", Ball(2), Ridge("0.1"))
MEDIAN = Risk(Absolute(), Constant(), "pay", interval(0, 10), Ridge("0.1"))


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "age": rng.integers(0, 101, 60),
            "pay": rng.integers(0, 101, 60) / 10,
            "sick": rng.choice(["no", "yes"], 60),
            "other": rng.choice(["a", "b"], 60),
        }
    )
    path = tmp_path_factory.mktemp("people") / "people.parquet"
    frame.write_parquet(path)
    return dp.Table(frame, DOMAIN), dp.ParquetTable(path, DOMAIN)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("risk", [LINEAR, LOGISTIC, MEDIAN], ids=["linear", "logistic", "median"])
def test_a_solver_works_on_a_file(solver, risk, tables):
    memory, file = tables
    funds = dp.Funds.of(dp.Budget(2, "1e-5"))
    refused = {"output": (MEDIAN,), "objective": (MEDIAN, LINEAR), "moments": (MEDIAN, LOGISTIC)}.get(solver, ())
    if risk in refused:
        with pytest.raises(dp.errors.ParameterError, match=r"smooth|bounded slope|squared loss"):
            methods(risk, file.facts, funds).named(solver)
        return
    mechanism = methods(risk, file.facts, funds, steps=5).named(solver).offer(file.facts.size).mechanism
    assert mechanism == methods(risk, memory.facts, funds, steps=5).named(solver).offer(memory.facts.size).mechanism
    found = np.atleast_1d(mechanism.run(file, Rng()))
    assert found.shape == (risk.dimension(DOMAIN),)
    assert np.isfinite(found).all()
