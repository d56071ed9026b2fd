"""The peers, each under an interpreter of its own: where it is, which version, and how to hand it work.

A peer's script (`bench/peer_*.py`) reads {"data": a path of arrays, "jobs": [...]} and prints a list, one answer
for each job. It runs on one thread, as ours does beside it.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.erm_data import Floats, Split

HERE = Path(__file__).parent
ENVIRONMENTS = {
    "diffprivlib": ".venv-diffprivlib",
    "opacus": ".venv-opacus",
    "opendp": ".venv-peers",
    "aim": ".venv-aim",
}
PACKAGES = {"aim": "opendp"}  # AIM is opendp's, in an environment that also has what it needs and the rows
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

Job = dict[str, Any]
Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Peer:
    """A library that can be asked, or `missing`: why it cannot be."""

    name: str
    python: Path
    version: str
    missing: str = ""

    @property
    def said(self) -> str:
        return "opendp with AIM" if self.name == "aim" else self.name

    def ask(self, data: Split | Floats, jobs: list[Job]) -> list[Answer]:
        """One answer for each job; empty ones if the peer is missing."""
        if self.missing:
            return [{} for _ in jobs]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "data.npz"
            data.save(path) if isinstance(data, Split) else np.savez(path, x=data)
            script = [str(self.python), str(HERE / f"peer_{self.name}.py")]
            work = json.dumps({"data": str(path), "jobs": jobs})
            done = subprocess.run(
                script, input=work, capture_output=True, text=True, check=False, env=os.environ | ONE_THREAD
            )
        if done.returncode != 0:
            raise RuntimeError(f"{self.name} failed:\n{done.stderr[-2000:]}")
        answers: list[Answer] = json.loads(done.stdout)
        return answers


def find(name: str) -> Peer:
    """The peer of that name, in the environment that `make bench` sets up."""
    python = HERE.parent / ENVIRONMENTS[name] / "bin" / "python"
    if not python.exists():
        return Peer(name, python, "", f"{name} left out: no environment {ENVIRONMENTS[name]} (`make bench` sets it up)")
    package = PACKAGES.get(name, name)
    script = f"import {package}, importlib.metadata as m; print(m.version({package!r}))"
    found = subprocess.run([str(python), "-c", script], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        last = found.stderr.strip().splitlines()[-1:] or ["it cannot be imported"]
        return Peer(name, python, "", f"{name} left out: {last[0]}")
    return Peer(name, python, found.stdout.strip())


def named(*peers: Peer) -> list[str]:
    """Lines for the results: the versions found, and why any is missing."""
    there = ", ".join(f"{peer.said} {peer.version}" for peer in peers if not peer.missing)
    lines = [f"Beside: {there}, each in its own environment, on one thread, as ours."] if there else []
    return [*lines, *(f"**{peer.missing}**" for peer in peers if peer.missing)]
