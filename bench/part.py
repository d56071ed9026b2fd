"""One suite's part of the results: bench/parts/<suite>.md, and the same tables as figures in bench/parts/<suite>.json.

    python -m bench.part noise      measures one suite and writes its part

Each file is replaced in one step, after the suite has ended: one that fails leaves the part of the run before, whose
date stands in it, and a note in the JSON that it failed since.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib.metadata
import json
import os
import platform
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.suites import Suite, chosen

PARTS = Path(__file__).parent / "parts"
OURS = ("discreet", "numpy", "scipy", "scikit-learn", "duckdb", "pyarrow")


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of the part, cells as they stand there, under the last heading above it."""

    heading: str
    columns: list[str]
    rows: list[list[str]]


@dataclass(frozen=True, slots=True)
class Part:
    """What a suite measured, when, and with which versions; `failed`: why a later attempt left nothing."""

    suite: str
    measured: str = ""
    seconds: float = 0.0
    cores: int = 0
    versions: dict[str, str] = field(default_factory=dict)
    peers: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    grids: list[Grid] = field(default_factory=list)
    failed: str = ""

    @property
    def day(self) -> str:
        return self.measured[:10]

    @property
    def stamp(self) -> str:
        """The line under the part's heading."""
        named = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        taken = f", in {self.seconds:,.0f} s" if self.seconds else ""
        return f"Measured on {self.measured} UTC{taken}, with {named}."


def now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")


def measure(suite: Suite, folder: Path = PARTS) -> None:
    """Run the suite here and write its part."""
    from bench import peers  # numpy and scikit-learn: not for those who only read parts

    measured, start = now(), time.perf_counter()
    lines = suite.lines()
    seconds = time.perf_counter() - start
    beside = [peers.find(name) for name in suite.peers]
    there = {peer.said: peer.version for peer in beside if not peer.missing}
    missing = [peer.missing for peer in beside if peer.missing]
    versions = {"Python": platform.python_version()} | {name: importlib.metadata.version(name) for name in OURS}
    write(lines, Part(suite.name, measured, seconds, os.cpu_count() or 0, versions, there, missing), folder)


def write(lines: list[str], part: Part, folder: Path = PARTS) -> None:
    """Both files, each in one step; gathering tells by the stamp whether they belong together."""
    heading, *rest = "\n".join(lines).strip().splitlines()
    text = "\n".join([heading, "", part.stamp, *rest, ""])
    figures = asdict(part) | {"grids": [asdict(grid) for grid in grids(text)]}
    replace(folder / f"{part.suite}.md", text)
    replace(folder / f"{part.suite}.json", _json(figures))


def read(name: str, folder: Path = PARTS) -> tuple[Part, str]:
    """What is known of a suite: its part and its text; both empty if it was never measured."""
    path = folder / f"{name}.json"
    if not path.exists():
        return Part(name), ""
    found = json.loads(path.read_text())
    part = Part(**found | {"grids": [Grid(**grid) for grid in found["grids"]]})
    text = (folder / f"{name}.md").read_text() if part.measured else ""
    if part.measured and part.stamp not in text:  # a run was killed between the two files
        part = dataclasses.replace(part, grids=grids(text), failed="its two files are of different runs")
    return part, text


def note_failure(name: str, why: str, folder: Path = PARTS) -> None:
    """The part of the run before stays, and says that it is older than it should be."""
    path = folder / f"{name}.json"
    known = json.loads(path.read_text()) if path.exists() else asdict(Part(name))
    replace(path, _json(known | {"failed": f"{now()} UTC: {why}"}))


def grids(text: str) -> list[Grid]:
    """Every table of a markdown text."""
    found, heading, above = list[Grid](), "", ""
    for line in text.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif line.startswith("|---"):
            found.append(Grid(heading, _cells(above), []))
        elif line.startswith("|") and above.startswith("|"):
            found[-1].rows.append(_cells(line))
        above = line
    return found


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _json(figures: object) -> str:
    return json.dumps(figures, indent=1, ensure_ascii=False) + "\n"


def replace(path: Path, text: str) -> None:
    """The whole text or the one before, never a half."""
    path.parent.mkdir(exist_ok=True)
    draft = path.with_name(f".{path.name}.new")
    draft.write_text(text)
    os.replace(draft, path)


if __name__ == "__main__":
    for each in chosen(sys.argv[1:] or ["none"]):
        measure(each)
