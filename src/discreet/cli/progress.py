"""A progress bar on a terminal while all conjunctions are gone through, if that takes long: public numbers only."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

SHOWN = 2.0
"""The number of estimated seconds from which on a bar is shown."""


@contextmanager
def conjunction_progress() -> Iterator[None]:
    """Inside, a run of AllConjunctions that is expected to take long draws a bar on the error stream."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from discreet.pac import PROGRESS, Estimate

    task: TaskID | None = None
    waiting = 0

    def advance(expected: Estimate, done: int) -> None:
        nonlocal task, waiting
        if expected.seconds <= SHOWN:
            return
        if task is None:
            task = bar.add_task(str(expected), total=expected.conjunctions)
        waiting += done
        if waiting > expected.conjunctions // 500:
            bar.advance(task, waiting)
            waiting = 0

    with Progress(console=Console(stderr=True), transient=True) as bar:
        token = PROGRESS.set(advance)
        try:
            yield
        finally:
            PROGRESS.reset(token)
