"""opendp at work, under its own interpreter: jobs in, values and seconds out (see bench/peers.py)."""

import json
import sys
import time

import numpy as np
import opendp.prelude as dp
import peak

dp.enable_features("contrib")
REPLACED = 2  # replacing one row is one removal and one addition


def main() -> None:
    work = json.load(sys.stdin)
    rows = np.load(work["data"])["x"].tolist()
    print(json.dumps([answer(rows, job) for job in work["jobs"]]))


def answer(rows: list, job: dict) -> dict:
    """{"values": one for each draw, "seconds": of each, "peak": MB}."""
    if job["what"] == "averages":
        return {"values": _averages(np.array(rows), job), "peak": peak.megabytes()}
    build = _mean if job["what"] == "mean" else _quantile
    mechanism = dp.binary_search_chain(lambda scale: build(scale, len(rows), job), REPLACED, job["epsilon"])
    values, seconds = [], []
    for _ in range(job["times"]):
        start = time.perf_counter()
        values.append(float(mechanism(rows)))
        seconds.append(time.perf_counter() - start)
    return {"values": values, "seconds": seconds, "peak": peak.megabytes()}


def _mean(scale: float, size: int, job: dict):
    unknown = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    clamped = unknown >> dp.t.then_clamp(bounds=(0.0, 1.0)) >> dp.t.then_resize(size=size, constant=0.5)
    return clamped >> dp.t.then_mean() >> dp.m.then_laplace(scale=scale)


def _averages(rows: np.ndarray, job: dict) -> list:
    """Sum and count of each group with noise of their own, for half of the loss each; groups are disjoint."""
    groups, hours = rows.astype(int).T
    low, high = job["bounds"]
    listed = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    moved, sum_of, rows_of = job["distance"], dp.t.then_clamp((low, high)), dp.t.then_count()
    noise, loss = (dp.m.then_laplace, job["epsilon"] / 2)
    if job["delta"]:
        noise, loss = dp.m.then_gaussian, _rho(job["epsilon"] * job["parts"], job["delta"]) / job["parts"] / 2
    made = [
        dp.binary_search_chain(lambda scale, make=make: make >> noise(scale), moved, loss)
        for make in (listed >> sum_of >> dp.t.then_sum(), listed >> rows_of)
    ]
    parts = [hours[groups == each].tolist() for each in range(groups.max() + 1)]
    return [[[each(part) for part in parts] for each in made] for _ in range(job["times"])]


def _rho(epsilon: float, delta: float) -> float:
    """The largest zCDP loss that opendp converts to this epsilon and delta."""
    domain = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()

    def spent(rho: float) -> float:
        count = domain >> dp.t.then_count()
        made = dp.binary_search_chain(lambda scale: count >> dp.m.then_gaussian(scale), 1, rho)
        return dp.c.make_zCDP_to_approxDP(made).map(1).epsilon(delta)

    return dp.binary_search(lambda rho: spent(rho) <= epsilon, bounds=(1e-6, epsilon))


def _quantile(scale: float, size: int, job: dict):
    known = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=size)
    grid = np.linspace(0, 1, job["candidates"]).tolist()
    alpha = job.get("q", 0.5)
    return dp.m.make_private_quantile(known, dp.symmetric_distance(), dp.max_divergence(), grid, alpha, scale)


if __name__ == "__main__":
    main()
