"""Every benchmark in one run, written to bench/RESULTS.md with date and versions.

    make bench          or   python -m bench.run --peer-python PATH

Times are compared only within a line, measured side by side; the machine may be shared and slow.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import platform
import subprocess
import sys
from pathlib import Path

from bench import ledger, noise, tables

RESULTS = Path(__file__).parent / "RESULTS.md"
OURS = ("discreet", "numpy", "duckdb", "pyarrow")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--peer-python", default=None, help="an interpreter that has opendp and numpy")
    peer = arguments.parse_args().peer_python
    text = "\n".join([*_head(peer), *_noise(peer), *_ledger(), *_tables()])
    RESULTS.write_text(text + "\n")
    print(text)


def _head(peer: str | None) -> list[str]:
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in OURS)
    if peer is not None:
        script = "import importlib.metadata as m; print(m.version('opendp'))"
        found = subprocess.run([peer, "-c", script], capture_output=True, text=True, check=True)
        versions += f", opendp {found.stdout.strip()} (in its own environment)"
    return [
        "# Benchmarks",
        "",
        f"{datetime.date.today().isoformat()}, Python {platform.python_version()}, {versions}.",
        "Written by `make bench`. Only ratios within a line mean something: both sides were measured in one run, on a",
        "machine that may be shared.",
    ]


def _noise(peer: str | None) -> list[str]:
    lines = [
        "",
        "## Exact noise and selection, a million at a time",
        "",
        "| what | ours, ms | opendp, ms | opendp / ours | numpy (not private), ms | ours / numpy |",
        "|---|---|---|---|---|---|",
    ]
    for row in noise.rows(peer):
        theirs = ("-", "-") if row.peer is None else (f"{row.peer * 1e3:,.0f}", f"{row.peer / row.ours:,.1f}")
        floor = (f"{row.floor * 1e3:,.1f}", f"{row.ours / row.floor:.1f}")
        lines.append(f"| {row.what} | {row.ours * 1e3:,.1f} | {theirs[0]} | {theirs[1]} | {floor[0]} | {floor[1]} |")
    return lines


def _ledger() -> list[str]:
    lines = [
        "",
        "## Durability",
        "",
        "| what | ours, ms | bare 4 KiB write and fsync, ms | ratio |",
        "|---|---|---|---|",
    ]
    return [
        *lines,
        *(f"| {what} | {ours:.3f} | {floor:.3f} | {ratio:.2f} |" for what, ours, floor, ratio in ledger.rows()),
    ]


def _tables() -> list[str]:
    script = [sys.executable, "-m", "bench.tables"]
    found = json.loads(subprocess.run(script, capture_output=True, text=True, check=True).stdout)
    lines = [
        "",
        f"## A Parquet file of {tables.ROWS:,} rows and 7 columns",
        "",
        "| what | seconds |",
        "|---|---|",
        *(f"| {what} | {seconds:.2f} |" for what, seconds in found["seconds"].items()),
        "",
        f"Peak memory of a process that only streams the file: {found['streaming_peak']:,.0f} MB "
        f"(before it opens the file: {found['streaming_start']:,.0f} MB; file: {found['file']:,.0f} MB).",
    ]
    return lines


if __name__ == "__main__":
    main()
