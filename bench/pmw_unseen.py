"""Workloads on tables that no constant was chosen on: all pairs of 8 columns, all triples of 7.

    python -m bench.pmw_unseen pairs       prints markdown; AIM and MST take minutes
    python -m bench.pmw_unseen triples fair 1     one table, one epsilon

Each run spends the whole budget of one ledger, under add-remove. Ours is `choose`'s first way, untouched. Beside it,
with the same zCDP: Gaussian noise on each marginal, clipped at 0; ResidualPlanner in floats (normal noise, no privacy
in the low bits), clipped at 0; opendp's AIM with the same workload, and its MST, read from their fitted models.

No constant of ours was chosen on these tables. The fit's constants were chosen on randhie (`pmw_tables.py`) and on
made-up mixtures; the number of triples of `chosen_tables.py` on made-up mixtures of 8 and 10 columns; residuals have
none.

    fair      6,366 answers to a survey of a magazine, 1974 (statsmodels)
    anes96    944 voters, 1996 (statsmodels)
    digits    1,797 handwritten digits, 8 of their 64 pixels, 17 levels each (scikit-learn)
"""

from __future__ import annotations

import functools
import itertools
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

import discreet as dp
from bench import peers
from bench.pmw_peers import PYTHON, SCRIPT, ask_aim
from discreet.answering.residual_marginals import residual_scales
from discreet.answering.workload import answers, methods
from discreet.guarantee import choose_order
from discreet.hypothesis.residuals import centred, parts_of_scopes, spread_over
from discreet.method import choose

Codes = dict[str, npt.NDArray[np.int64]]
Tables = list[npt.NDArray[Any]]

DELTA, BETA, RUNS = "1e-6", "0.05", 5
EPSILONS = ("0.1", "1")
WIDTHS = {"pairs": (8, 2), "triples": (7, 3)}
NAMES = ("fair", "anes96", "digits")
_PIXELS = (20, 21, 26, 28, 36, 42, 43, 53)


def section(what: str, names: Sequence[str] = NAMES, epsilons: Sequence[str] = EPSILONS) -> list[str]:
    """The section of bench/RESULTS.md."""
    columns, width = WIDTHS[what]
    peer = peers.find("aim")
    if peer.missing:
        return [
            "",
            f"## All {what} of {columns} columns, unseen tables",
            "",
            f"**{peer.missing}: it also has the rows**",
        ]
    head = [
        "",
        f"## All {what} of {columns} columns, unseen tables",
        "",
        "Largest / mean error in persons over all cells, add-remove, delta 1e-6, the whole budget; ours, Gaussian and",
        f"ResidualPlanner: mean of {RUNS} runs; AIM and MST (opendp {peer.version}): one. No constant was chosen on",
        "these tables. In brackets our proven bound (95 %).",
        "",
        "| table | epsilon | ours | Gaussian on each, clipped | ResidualPlanner in floats, clipped | AIM | MST |",
        "|---|---|---|---|---|---|---|",
    ]
    with threadpool_limits(1):
        return [*head, *(_line(name, columns, width, epsilon) for name in names for epsilon in epsilons)]


def _line(name: str, columns: int, width: int, epsilon: str) -> str:
    print(f"{name}, {columns} columns, {width} at a time, epsilon {epsilon} ...", file=sys.stderr, flush=True)
    codes, sizes = table_of(name, columns)
    scopes = list(itertools.combinations(sizes, width))
    truth = [marginal(codes, scope, sizes) for scope in scopes]
    rho, rng = zcdp(epsilon), np.random.default_rng(1)
    ours, bound = _ours(codes, sizes, scopes, truth, epsilon)
    plain = _mean(truth, lambda: gaussian(truth, rho, rng))
    planner = _mean(truth, lambda: residual_planner(codes, scopes, sizes, rho, rng))
    jobs = [
        {"sizes": sizes, "rho": rho, "contributions": 1, "widths": [width], "algorithm": algorithm}
        for algorithm in ("AIM", "MST")
    ]
    theirs = [f"{each['max']:,.0f} / {each['mean']:.2f}" for each in ask_aim(codes, jobs)]
    return f"| {name} | {epsilon} | {ours} ({bound:,.0f}) | {plain} | {planner} | {' | '.join(theirs)} |"


def _ours(codes: Codes, sizes: dict[str, int], scopes: Sequence[Any], truth: Tables, epsilon: str) -> tuple[str, float]:
    domain = dp.Domain({column: dp.Category(levels=range(size)) for column, size in sizes.items()})
    people = dp.Table(codes, domain, neighbours="add-remove", size=len(next(iter(codes.values()))))
    questions = [dp.Histogram(scope) for scope in scopes]
    ledger = dp.Ledger.in_memory(dp.Budget(epsilon, DELTA), people, failure_share=0)
    listed = methods(questions, people.facts, funds=ledger.funds(), beta=BETA)
    way = choose(listed, "auto", people.facts.size)

    def once() -> Tables:
        fresh = dp.Ledger.in_memory(dp.Budget(epsilon, DELTA), people, failure_share=0)
        got = dp.release(way.mechanism, people, ledger=fresh)
        return [value for value, _ in answers(questions, way.mechanism, got.value, people.facts, beta=BETA)]

    return _mean(truth, once), float(way.promise)


def _mean(truth: Tables, once: Callable[[], Tables]) -> str:
    found = np.mean([errors(once(), truth) for _ in range(RUNS)], axis=0)
    return f"{found[0]:,.0f} / {found[1]:.2f}"


def errors(found: Tables, truth: Tables) -> tuple[float, float]:
    """The largest and the mean one."""
    apart = np.concatenate([np.abs(one - other).ravel() for one, other in zip(found, truth, strict=True)])
    return float(apart.max()), float(apart.mean())


def gaussian(truth: Tables, rho: float, rng: np.random.Generator) -> Tables:
    """Normal noise on every marginal, clipped at 0."""
    scale = math.sqrt(len(truth) / (2 * rho))
    return [np.maximum(each + rng.normal(scale=scale, size=each.shape), 0) for each in truth]


def residual_planner(
    codes: Codes, scopes: Sequence[tuple[str, ...]], sizes: dict[str, int], rho: float, rng: np.random.Generator
) -> Tables:
    """The optimum for the largest variance, with normal noise, clipped at 0."""
    parts = parts_of_scopes(scopes)
    ratios = dict(zip(parts, map(float, residual_scales(scopes, sizes, rows_known=False)), strict=True))
    shares = {part: math.prod(1 - 1 / sizes[name] for name in part) for part in parts}
    scale = math.sqrt(sum(shares[part] / ratios[part] ** 2 for part in parts) / (2 * rho))
    residuals = {}
    for part in parts:
        exact = marginal(codes, part, sizes)
        residuals[part] = centred(exact + rng.normal(scale=scale * ratios[part], size=exact.shape))
    return [
        np.maximum(sum(spread_over(residuals[part], part, scope, sizes) for part in parts_of_scopes([scope])), 0)
        for scope in scopes
    ]


def marginal(codes: Codes, scope: tuple[str, ...], sizes: dict[str, int]) -> npt.NDArray[np.int64]:
    shape = tuple(sizes[name] for name in scope)
    rows = len(next(iter(codes.values())))
    cells = np.ravel_multi_index([codes[name] for name in scope], shape) if scope else np.zeros(rows, dtype=np.int64)
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape)


def zcdp(epsilon: str) -> float:
    """What our ledger admits for this budget: its Renyi cap over its order."""
    order, cap = choose_order(dp.Budget(epsilon, DELTA)) or (1.0, 0.0)
    return cap / order


# The tables, in public bins.


def table_of(name: str, columns: int) -> tuple[Codes, dict[str, int]]:
    """The first columns of a table as codes, and how many codes each has."""
    codes = dict(list(_digits().items() if name == "digits" else _exported(name).items())[:columns])
    return codes, {column: SIZES[name].get(column, 17) for column in codes}


@functools.cache
def _digits() -> Codes:
    from sklearn.datasets import load_digits

    pixels = load_digits().data.astype(np.int64)
    return {f"p{place}": pixels[:, place] for place in _PIXELS}


@functools.cache
def _exported(name: str) -> Codes:
    """A table of statsmodels, from the environment of the peers."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.csv"
        subprocess.run([str(PYTHON), str(SCRIPT), "export", str(path), name], check=True, capture_output=True)
        rows = np.genfromtxt(path, delimiter=",", names=True)
    return {
        column: np.clip(cut(rows[column]), 0, SIZES[name][column] - 1).astype(np.int64)
        for column, cut in CUTS[name].items()
    }


def _whole(low: float) -> Callable[[Any], Any]:
    return lambda values: np.floor(values - low)


CUTS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "fair": {
        "rate_marriage": _whole(1),
        "age": lambda values: np.floor((values - 17) / 5),
        "yrs_married": lambda values: np.floor(values / 3),
        "children": _whole(0),
        "religious": _whole(1),
        "educ": lambda values: np.floor((values - 9) / 2),
        "occupation": _whole(1),
        "occupation_husb": _whole(1),
        "affairs": lambda values: (values > 0).astype(float),
    },
    "anes96": {
        "TVnews": _whole(0),
        "selfLR": _whole(1),
        "ClinLR": _whole(1),
        "DoleLR": _whole(1),
        "PID": _whole(0),
        "educ": _whole(1),
        "income": lambda values: np.floor((values - 1) / 3),
        "age": lambda values: np.floor((values - 15) / 10),
        "vote": _whole(0),
    },
}
SIZES: dict[str, dict[str, int]] = {
    "fair": dict(zip(CUTS["fair"], (5, 6, 8, 6, 4, 6, 6, 6, 2), strict=True)),
    "anes96": dict(zip(CUTS["anes96"], (8, 7, 7, 7, 7, 7, 8, 8, 2), strict=True)),
    "digits": {},
}


if __name__ == "__main__":
    wanted, *rest = sys.argv[1:]
    print("\n".join(section(wanted, rest[:1] or NAMES, rest[1:] or EPSILONS)))
