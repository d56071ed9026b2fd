"""A known workload against the peers: all 2- and 3-way marginals of three tables of 20,190 persons.

    python -m bench.pmw_tables                  prints markdown
    python -m bench.pmw_tables --csv PATH       with randhie.csv from somewhere else

The persons are those of the RAND health insurance experiment, as the statsmodels package has them (in the environment
of the peers). Columns are cut into equal, public bins; three tables S, M and L differ in the bins:

    S   visits 6, coinsurance 5, incentive 4, disease 6, health 4     2,880 cells, 1,468 questions
    M   visits 10, coinsurance 5, incentive 9, deductible 8, disease 8     28,800 cells, 5,579 questions
    L   visits 20, coinsurance 5, incentive 20, deductible 20, disease 25     1,000,000 cells, 54,625 questions

Each run spends the whole budget of one ledger. The way to answer is `choose`'s first: least proven bound. Errors are in
persons, over all cells of all ten pairs and ten triples. Figures of the peers were taken before, under add-remove, with
delta 1e-6 (opendp's AIM and fixed marginals, and Gaussian noise on each of the 20 marginals, clipped to 0 .. n); the
best largest error, and the mean of the best peer that reaches such a largest error. They are of one seed each (the
clipped Gaussian's of five). Two constants of the fit and the split of the budget were chosen with these tables in view
(and checked on made-up ones: `hypothesis/max_entropy.py`, `answering/workload.py`), so ours are not figures on tables
never seen.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

import discreet as dp
from discreet.answering.workload import answers, methods
from discreet.data import Category
from discreet.method import choose

PERSONS = 20_190
DELTA, BETA, RUNS = "1e-6", "0.05", 5
BINS = {
    "S": {"mdvis": 6, "lncoins": 5, "lpi": 4, "disea": 6, "health": 4},
    "M": {"mdvis": 10, "lncoins": 5, "lpi": 9, "fmde": 8, "disea": 8},
    "L": {"mdvis": 20, "lncoins": 5, "lpi": 20, "fmde": 20, "disea": 25},
}
TOPS = {"lpi": 7.2, "fmde": 8.3, "disea": 60.0}  # public upper ends of the bins; they start at 0
PEERS = {
    ("S", "1"): "61 / 8.6 (opendp, all marginals)",
    ("S", "0.1"): "697 / 30.8 (opendp AIM)",
    ("M", "1"): "86 / 12.3 (clipped Gaussian; AIM 271 / 5.6)",
    ("M", "0.1"): "671 / 13.0 (opendp AIM)",
    ("L", "1"): "101 / 10.2 (clipped Gaussian; AIM 448 / 1.4)",
    ("L", "0.1"): "990 / 96 (clipped Gaussian; AIM 1474 / 2.9)",
}
_WHERE = "import pathlib, statsmodels.datasets.randhie as r; print(pathlib.Path(r.__file__).parent / 'randhie.csv')"

Codes = dict[str, npt.NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class Run:
    """Errors over the whole workload, in persons, the bound that was promised, and the seconds it took."""

    largest: float
    mean: float
    promised: float
    method: str
    seconds: float


def section(path: Path | None = None) -> list[str]:
    """The section of bench/RESULTS.md."""
    where = path or found()
    if where is None:
        return ["", "## A known workload", "", "**left out: statsmodels, which has the rows, is not in .venv-aim**"]
    columns = read(where)
    with threadpool_limits(1):
        return [*_head(), *(_line(columns, *case) for case in itertools.product("SML", ("1", "0.1")))]


def _head() -> list[str]:
    return [
        "",
        "## A known workload: all pairs and triples of five columns",
        "",
        f"{PERSONS:,} persons (RAND health insurance experiment); largest / mean error in persons over all cells, mean",
        f"of {RUNS} runs, delta 1e-6, the whole budget of one ledger; in brackets the worst run, the proven bound",
        "(95 %) on the released numbers, and seconds with planning and fitting. The peers' figures are add-remove.",
        "",
        "| table | epsilon | ours, add-remove | best peer's largest / mean | ours, replace-one | method |",
        "|---|---|---|---|---|---|",
    ]


def _line(columns: dict[str, npt.NDArray[np.float64]], name: str, epsilon: str) -> str:
    ours = {kind: [run(columns, name, epsilon, kind) for _ in range(RUNS)] for kind in ("add-remove", "replace-one")}
    shown = [_shown(runs) for runs in ours.values()]
    return f"| {name} | {epsilon} | {shown[0]} | {PEERS[name, epsilon]} | {shown[1]} | {ours['add-remove'][0].method} |"


def _shown(runs: list[Run]) -> str:
    largest, mean = (float(np.mean(each)) for each in zip(*((run.largest, run.mean) for run in runs), strict=True))
    worst, seconds = max(run.largest for run in runs), float(np.median([run.seconds for run in runs]))
    return f"{largest:,.0f} / {mean:.2f} ({worst:,.0f}; {runs[0].promised:,.0f}; {seconds:.2f} s)"


def run(columns: dict[str, npt.NDArray[np.float64]], name: str, epsilon: str, kind: str) -> Run:
    codes, people = table(columns, name, kind)
    domain = people.facts.domain
    ledger = dp.Ledger.in_memory(dp.Budget(epsilon, DELTA), people, failure_share=0)
    questions = [dp.Histogram(scope) for size in (2, 3) for scope in itertools.combinations(domain.names, size)]
    start = time.perf_counter()
    way = choose(methods(questions, people.facts, funds=ledger.funds(), beta=BETA), "auto", people.facts.size)
    got = dp.release(way.mechanism, people, ledger=ledger)
    answered = answers(questions, way.mechanism, got.value, people.facts, beta=BETA)
    seconds = time.perf_counter() - start
    errors = np.concatenate(
        [
            np.abs(numbers - truth(codes, query.columns, domain)).ravel()
            for query, (numbers, _) in zip(questions, answered, strict=True)
        ]
    )
    return Run(float(errors.max()), float(errors.mean()), float(way.promise), way.method, seconds)


def table(columns: dict[str, npt.NDArray[np.float64]], name: str, kind: str) -> tuple[Codes, dp.Table]:
    """One of the three tables, and its codes."""
    codes = binned(columns, BINS[name])
    domain = dp.Domain({column: Category(levels=range(bins)) for column, bins in BINS[name].items()})
    return codes, dp.Table(codes, domain, neighbours=kind, size=PERSONS)


def truth(codes: Codes, columns: tuple[str, ...], domain: dp.Domain) -> npt.NDArray[np.int64]:
    shape = tuple(domain.column(name).size for name in columns)
    cells = np.ravel_multi_index([codes[name] for name in columns], shape)
    return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)


def binned(columns: dict[str, npt.NDArray[np.float64]], bins: dict[str, int]) -> Codes:
    """Visits and health are whole numbers, cut off at the last bin; coinsurance has five rates."""
    found = {}
    for name, count in bins.items():
        values = columns[name]
        if name == "lncoins":
            values = np.unique(values, return_inverse=True)[1].astype(np.float64)
        elif name in TOPS:
            values = np.floor(values / TOPS[name] * count)
        found[name] = np.clip(values, 0, count - 1).astype(np.int64)
    return found


def found() -> Path | None:
    """Where the environment of the peers has the rows."""
    python = Path(__file__).parents[1] / ".venv-aim" / "bin" / "python"
    if not python.exists():
        return None
    done = subprocess.run([str(python), "-c", _WHERE], capture_output=True, text=True, check=False)
    return Path(done.stdout.strip()) if done.returncode == 0 else None


def read(path: Path) -> dict[str, npt.NDArray[np.float64]]:
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    columns = {name: np.array([float(line[name]) for line in lines]) for name in lines[0]}
    assert len(lines) == PERSONS
    return columns | {"health": columns["hlthg"] + 2 * columns["hlthf"] + 3 * columns["hlthp"]}


def main(section: Callable[[Path | None], list[str]] = section) -> None:
    """Print a section that is about these tables."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--csv", type=Path, default=None, help="randhie.csv of statsmodels")
    print("\n".join(section(arguments.parse_args().csv)))


if __name__ == "__main__":
    main()
