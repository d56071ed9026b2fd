"""opendp's AIM and MST at work, under their own interpreter.

    python bench/peer_aim.py export PATH [NAME]   writes a public-domain table of statsmodels, randhie, there, as csv
    python bench/peer_aim.py                      {"data": csv of codes, "jobs": [...]} in, errors and seconds out

A job is {"sizes": {column: number of codes}, "rho": zCDP, "contributions": rows that one person adds or removes}, and
may have "algorithm": "MST", "widths": numbers of columns of the marginals, "rows": how many synthetic rows to return.
AIM is told to answer all 2- and 3-way marginals with equal weights, or those of the widths; both are read from their
fitted models, which is better than their synthetic rows. Errors are in persons, over all cells of all those marginals.
"""

import importlib
import itertools
import json
import sys
import time

import numpy as np
import peak


def main() -> None:
    if sys.argv[1:2] == ["export"]:
        export(*sys.argv[2:4])
        return
    work = json.load(sys.stdin)
    rows = np.genfromtxt(work["data"], delimiter=",", names=True, dtype=np.int64)
    print(json.dumps([answer(rows, work["data"], job) for job in work["jobs"]]))


def export(path: str, name: str = "randhie") -> None:
    module = importlib.import_module(f"statsmodels.datasets.{name}")
    module.load_pandas().data.to_csv(path, index=False)


def answer(rows: np.ndarray, path: str, job: dict) -> dict:
    """{"max", "mean", "cells", "seconds": to fit, "reading": to read the answers off the model}."""
    sizes, scopes = job["sizes"], workload(list(job["sizes"]), job.get("widths", (2, 3)))
    start = time.perf_counter()
    table = retried(path, job, scopes)
    middle = time.perf_counter()
    found = [asked_for(np.asarray(table.project(scope)), [sizes[name] for name in scope]) for scope in scopes]
    end = time.perf_counter()
    errors = np.concatenate(
        [np.abs(each - marginal(rows, scope, sizes)).ravel() for each, scope in zip(found, scopes, strict=True)]
    )
    return {
        "max": float(errors.max()),
        "mean": float(errors.mean()),
        "cells": len(errors),
        "seconds": middle - start,
        "reading": end - middle,
        "peak": peak.megabytes(),
        "synthetic": synthetic(table, job),
    }


def synthetic(table, job: dict) -> dict:
    """Synthetic rows, if some are wanted; a missing value becomes the last code."""
    if not job.get("rows"):
        return {}
    frame = table.synthesize(rows=job["rows"])
    return {
        name: [size - 1 if value is None else min(int(value), size - 1) for value in frame[name].to_list()]
        for name, size in job["sizes"].items()
    }


def workload(columns: list[str], widths: tuple[int, ...]) -> list[tuple[str, ...]]:
    return [scope for width in widths for scope in itertools.combinations(columns, width)]


def retried(path: str, job: dict, scopes: list[tuple[str, ...]]):
    """MST refuses some budgets, since its parts add up to more than the whole by a rounding: then a little more, in its
    favour."""
    for more in range(20):
        try:
            return fitted(path, job | {"rho": job["rho"] * (1 + (2**more - 1) * 1e-9)}, scopes)
        except Exception as error:
            if "insufficient budget" not in str(error):
                raise
    raise RuntimeError("no budget near this one is accepted")


def fitted(path: str, job: dict, scopes: list[tuple[str, ...]]):
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    loss = dp.loss_of(rho=job["rho"])
    unit = dp.unit_of(contributions=job["contributions"])
    context = dp.Context.compositor(data=pl.scan_csv(path), privacy_unit=unit, privacy_loss=loss)
    queries = [dp.mbi.Count(scope, weight=1) for scope in scopes]
    algorithm = dp.mbi.MST() if job.get("algorithm") == "MST" else dp.mbi.AIM(queries=queries)
    keys = {name: list(range(size)) for name, size in job["sizes"].items()}
    query = context.query(rho=job["rho"]).select(*keys).contingency_table(keys=keys, algorithm=algorithm)
    return query.release()


def asked_for(cells: np.ndarray, shape: list[int]) -> np.ndarray:
    """Without the last key of each column: opendp adds one for missing values."""
    assert all(found in (size, size + 1) for found, size in zip(cells.shape, shape, strict=True))
    return cells[tuple(slice(size) for size in shape)]


def marginal(rows: np.ndarray, scope: tuple[str, ...], sizes: dict) -> np.ndarray:
    shape = tuple(sizes[name] for name in scope)
    cell = np.ravel_multi_index([rows[name] for name in scope], shape)
    return np.bincount(cell, minlength=int(np.prod(shape))).reshape(shape)


if __name__ == "__main__":
    main()
