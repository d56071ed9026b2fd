"""Every suite, or those that are named, then bench/RESULTS.md and bench/ratios.svg from all parts there are.

    make bench                    or   python -m bench.run
    make bench SUITE=pmw          or   python -m bench.run pmw

Each suite has a process of its own and writes its part when it ends. If one fails, the others go on, its old part stays
and is marked, and the end is an error that names it; what was measured is gathered in any case, also after Ctrl-C.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench import gather, part
from bench.suites import Suite, chosen

Measure = Callable[[Suite], str]


def main(names: Sequence[str]) -> None:
    wanted = chosen(names)
    failed: dict[str, str] = {}
    try:
        failed = each_of(wanted)
    finally:
        gather.main()
    if failed:
        raise SystemExit("failed: " + "; ".join(f"{name} ({why})" for name, why in failed.items()))


def apart(suite: Suite) -> str:
    """Measure in another process; why it failed, or an empty text."""
    done = subprocess.run([sys.executable, "-m", "bench.part", suite.name], check=False)
    return f"exit code {done.returncode}" if done.returncode else ""


def each_of(wanted: Sequence[Suite], measure: Measure = apart, folder: Path = part.PARTS) -> dict[str, str]:
    """The suites that failed, and why."""
    failed = {}
    for place, suite in enumerate(wanted, 1):
        print(f"[{place} of {len(wanted)}] {suite.name}", file=sys.stderr, flush=True)
        start = time.perf_counter()
        why = measure(suite)
        if why:
            failed[suite.name] = why
            part.note_failure(suite.name, why, folder)
        print(f"    {why or 'done'}, {time.perf_counter() - start:,.0f} s", file=sys.stderr, flush=True)
    return failed


if __name__ == "__main__":
    main(sys.argv[1:])
