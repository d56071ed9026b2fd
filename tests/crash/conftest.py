"""One server of processes for all of these tests, in a folder in memory if there is one; and the counts."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.harness import TALLY, Harness
from tests.crash.layer import compiled


@pytest.fixture(scope="session")
def work() -> Iterator[Path]:
    """A folder for thousands of small ledgers; nothing here needs a real disk."""
    folder = Path(tempfile.mkdtemp(prefix="discreet-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def library(work: Path) -> Path:
    found = compiled(work)
    if found is None:
        pytest.skip("NOT TESTED: kills, power cuts and disk errors need Linux and a C compiler (cc, gcc or clang)")
    return found


@pytest.fixture(scope="session")
def harness(library: Path, work: Path) -> Iterator[Harness]:
    made = Harness(library, work)
    yield made
    made.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not TALLY:
        return
    terminalreporter.section("crashes")
    for kind in sorted({kind for kind, _ in TALLY}):
        each = {name: count for (found, name), count in sorted(TALLY.items()) if found == kind}
        terminalreporter.line(f"{kind}: {sum(each.values())} ({', '.join(f'{n} {c}' for n, c in each.items())})")
