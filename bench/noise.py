"""Exact noise and selection: ours, numpy's unsafe floor and opendp, side by side in one run.

    python -m bench.noise      prints markdown; an error if ours is not as fast as the acceptance test asks

The peer is measured in a subprocess under its own interpreter, between two measurements of ours, so that a busy machine
is busy for all of them; of each, the best of several runs counts. opendp draws 100,000 integers, not a million, and its
time per integer is compared. numpy's floor is not private: its generator is predictable and its laws are rounded.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bench import peers
from discreet.rng import Rng

DRAWS = 1_000_000
PEER_DRAWS = 100_000
REPEATS = 7
LEAST_SPEEDUP = 60  # the acceptance test: at least this many times as fast as opendp at discrete Laplace and Gaussian

PEER = """
import json, sys, time
import numpy as np
import opendp.prelude as dp
dp.enable_features("contrib")
draws, candidates, repeats = map(int, sys.argv[1:])
zeros = [0] * draws
scores = [float(s) for s in np.random.default_rng(0).integers(0, 1000, candidates)]
ints, floats = dp.vector_domain(dp.atom_domain(T=int)), dp.vector_domain(dp.atom_domain(T=float, nan=False))
acts = {
    "laplace 10": (dp.m.make_laplace(ints, dp.l1_distance(T=int), scale=10.0), zeros),
    "laplace 2^20": (dp.m.make_laplace(ints, dp.l1_distance(T=int), scale=2.0**20), zeros),
    "gaussian 10": (dp.m.make_gaussian(ints, dp.l2_distance(T=float), scale=10.0), zeros),
    "gaussian 2^20": (dp.m.make_gaussian(ints, dp.l2_distance(T=float), scale=2.0**20), zeros),
    "select": (dp.m.make_noisy_max(floats, dp.linf_distance(T=float), dp.max_divergence(), scale=10.0), scores),
}
best = {}
for name, (mechanism, argument) in acts.items():
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        mechanism(argument)
        times.append(time.perf_counter() - start)
    best[name] = min(times)
print(json.dumps(best))
"""


@dataclass(frozen=True, slots=True)
class Row:
    """Seconds for a million. `peer` is None without an interpreter that has it; ratio = peer / ours."""

    what: str
    ours: float
    peer: float | None
    floor: float

    @property
    def ratio(self) -> float | None:
        return None if self.peer is None else self.peer / self.ours


def rows(peer_python: str | None = None) -> list[Row]:
    """Every comparison of this file: (what, ours, peer, floor, ratio)."""
    rng, unsafe = Rng(), np.random.default_rng(0)
    scores = unsafe.integers(0, 1000, DRAWS)
    wide = 2**20
    acts: dict[str, tuple[str, Callable[[], object], Callable[[], object]]] = {
        "laplace 10": (
            "discrete Laplace, scale 10",
            lambda: rng.laplace(Fraction(10), DRAWS),
            lambda: np.rint(unsafe.laplace(0, 10, DRAWS)),
        ),
        "laplace 2^20": (
            "discrete Laplace, scale 2^20",
            lambda: rng.laplace(Fraction(wide), DRAWS),
            lambda: np.rint(unsafe.laplace(0, wide, DRAWS)),
        ),
        "gaussian 10": (
            "discrete Gaussian, sigma 10",
            lambda: rng.gaussian(Fraction(100), DRAWS),
            lambda: np.rint(unsafe.normal(0, 10, DRAWS)),
        ),
        "gaussian 2^20": (
            "discrete Gaussian, sigma 2^20",
            lambda: rng.gaussian(Fraction(wide**2), DRAWS),
            lambda: np.rint(unsafe.normal(0, wide, DRAWS)),
        ),
        "select": (
            "selection, rate 1/10",
            lambda: rng.select(scores, Fraction(1, 10)),
            lambda: np.argmax(scores / 10 + unsafe.gumbel(size=DRAWS)),
        ),
    }
    before = {name: _best(ours) for name, (_, ours, _) in acts.items()}
    peer = _peer(peer_python) if peer_python else {}
    return [
        Row(what, min(before[name], _best(ours)), peer.get(name), _best(floor))
        for name, (what, ours, floor) in acts.items()
    ]


def _best(act: Callable[[], object]) -> float:
    taken = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        act()
        taken.append(time.perf_counter() - start)
    return min(taken)


def _peer(python: str) -> dict[str, float]:
    """Seconds for a million, by name."""
    command = [python, "-c", PEER, str(PEER_DRAWS), str(DRAWS), "3"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds: dict[str, float] = json.loads(answer.stdout)
    return {name: each if name == "select" else each * (DRAWS / PEER_DRAWS) for name, each in seconds.items()}


def section(found: list[Row] | None = None) -> list[str]:
    """The section of bench/RESULTS.md."""
    peer = peers.find("opendp")
    if found is None:
        found = rows(None if peer.missing else str(peer.python))
    return [
        "",
        "## Exact noise and selection, a million at a time",
        "",
        f"opendp's noise was measured on {PEER_DRAWS:,} integers and scaled; its selection on {DRAWS:,} candidates. "
        "numpy is a floor and not private: its generator is predictable and its laws are rounded.",
        *peers.named(peer),
        "",
        "| what | ours, ms | opendp, ms | opendp / ours | numpy (not private), ms | ours / numpy |",
        "|---|---|---|---|---|---|",
        *map(_line, found),
    ]


def _line(row: Row) -> str:
    theirs = "- | -" if row.peer is None else f"{row.peer * 1e3:,.0f} | {row.peer / row.ours:,.1f}"
    floor = f"{row.floor * 1e3:,.1f} | {row.ours / row.floor:.1f}"
    return f"| {row.what} | {row.ours * 1e3:,.1f} | {theirs} | {floor} |"


def too_slow(found: list[Row]) -> list[str]:
    """The noise rows that miss the acceptance test."""
    noisy = [row for row in found if row.what.startswith("discrete")]
    return [row.what for row in noisy if row.ratio is not None and row.ratio < LEAST_SPEEDUP]


def main() -> None:
    peer = peers.find("opendp")
    found = rows(None if peer.missing else str(peer.python))
    print("\n".join(section(found)))
    if missed := too_slow(found):
        sys.exit(f"less than {LEAST_SPEEDUP} times as fast as opendp: {', '.join(missed)}")


if __name__ == "__main__":
    main()
