"""How much memory a fit needs: the peak of a process that loads the rows from a file and fits once, beside the peers'.

    python -m bench.memory      prints markdown; AIM takes a minute or two

The peak holds the interpreter and every library that the fit loads: it is what a user's machine must have.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from bench import erm_data, peak, peers, pmw_peers
from bench.erm_accuracy import LINEAR, linear_job, opacus_job, our_linear, our_logistic, our_number
from bench.erm_data import Floats, Split
from bench.erm_growth import apart
from bench.peers import Job

EPSILON = 1.0
COLUMNS = ("diffprivlib", "opacus", "opendp", "aim")


def section() -> list[str]:
    """The section of bench/RESULTS.md."""
    beside = [peers.find(name) for name in COLUMNS]
    return [
        "",
        "## Peak memory of one fit",
        "",
        "MB, of a process that loads the rows from a file and fits once, at epsilon 1: with the interpreter and every "
        "library that the fit loads.",
        *peers.named(*beside),
        "",
        "| what | ours, MB | diffprivlib, MB | Opacus, MB | opendp, MB |",
        "|---|---|---|---|---|",
        *_models(),
        _workload(),
    ]


def _models() -> list[str]:
    logistic, linear, numbers = erm_data.logistic(), erm_data.linear(), erm_data.beta()
    once = {"epsilon": EPSILON, "times": 1}
    median = {"what": "median", "q": 0.5, **once}
    theirs: dict[str, tuple[Split | Floats, dict[str, Job]]] = {
        "logistic, 100,000 rows, 50 features": (
            logistic,
            {
                "diffprivlib": {"what": "logistic", "C": 1.0, **once},
                "opacus": opacus_job(logistic, EPSILON, 1, small=False),
            },
        ),
        "linear, 100,000 rows, 20 features": (linear, {"diffprivlib": linear_job(linear, LINEAR, EPSILON, 1)}),
        "median of 100,000 numbers": (numbers, {"diffprivlib": median, "opendp": median | {"candidates": 1_001}}),
    }
    return [_line(what, _ours(what, data), _peaks(data, jobs)) for what, (data, jobs) in theirs.items()]


def _line(what: str, ours: float | None, theirs: dict[str, float]) -> str:
    shown = (f"{theirs[name]:,.0f}" if name in theirs else "-" for name in COLUMNS[:3])
    return f"| {what} | {'-' if ours is None else f'{ours:,.0f}'} | {' | '.join(shown)} |"


def _peaks(data: Split | Floats, jobs: dict[str, Job]) -> dict[str, float]:
    print("peers ...", file=sys.stderr, flush=True)
    answers = {name: peers.find(name).ask(data, [job])[0] for name, job in jobs.items()}
    return {name: answer["peak"] for name, answer in answers.items() if answer}


def _ours(what: str, data: Split | Floats) -> float:
    print(f"{what} ...", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        data.save(path) if isinstance(data, Split) else np.savez(path, x=data)
        return float(apart(_fit, what, str(path)))


def _fit(what: str, path: str) -> float:
    """In a process of its own: the peak after one fit."""
    with np.load(path) as file, threadpool_limits(1):
        arrays = {name: file[name] for name in file.files}
        if what.startswith("median"):
            our_number("median", 0.5, EPSILON).fit(arrays["x"])
        else:
            data = Split(**arrays)
            linear = what.startswith("linear")
            delta = data.delta
            model = our_linear(LINEAR, EPSILON, delta) if linear else our_logistic(data, EPSILON, delta, "add-remove")
            model.fit(data.x, data.y)
    return peak.megabytes()


def _workload() -> str:
    """All pairs and triples of five columns, 20,190 persons: ours and opendp's AIM."""
    what = "all pairs and triples of table S (AIM)"
    if peers.find("aim").missing:
        return _line(what, None, {})
    print(f"{what} ...", file=sys.stderr, flush=True)
    codes = pmw_peers.rows_of_s()
    job = {"sizes": pmw_peers.SIZES, "rho": pmw_peers.zcdp(), "contributions": 1}
    (aim,) = pmw_peers.ask_aim(codes, [job])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "codes.npz"
        np.savez(path, **codes)
        ours = float(apart(_answers, str(path)))
    return _line(what, ours, {"opendp": aim["peak"]})


def _answers(path: str) -> float:
    with np.load(path) as file, threadpool_limits(1):
        pmw_peers.our_row({name: file[name] for name in file.files}, "add-remove")
    return peak.megabytes()


if __name__ == "__main__":
    print("\n".join(section()))
