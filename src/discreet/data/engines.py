"""Engines: what runs a function on the parts of a table, here or on other machines.

An engine only hands out work. The function and the parts are values (`data.rows` says what that means), so that an
engine may copy them, repeat them after a loss, and run them in any order; noise is drawn by the owner's process alone.

    Here()          this process
    Processes(2)    processes of this machine
    Spark(session)  a Spark cluster as the scheduler (`data.spark`)
"""

from __future__ import annotations

import functools
import importlib
import multiprocessing
import pickle
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, Protocol

from discreet.core import DiscreetError, exact

_ATTEMPTS = 4  # of a task, when the processes that run it die


class Engine(Protocol):
    """Runs a function on each part and returns the results, in any order.

    workers       how many parts it runs at the same time
    pass_seconds  about how long it takes to run nothing
    local         whether it runs on this machine, which duckdb may then read the files of
    """

    @property
    def workers(self) -> int: ...
    @property
    def pass_seconds(self) -> float: ...
    @property
    def local(self) -> bool: ...
    def map(self, function: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]: ...


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """What a task returns: its result, or why there is none. A task never raises: an engine's log would quote the rows.

    refused  an error of discreet's own, which quotes no row
    """

    value: Any = None
    refused: DiscreetError | None = None
    failed: bool = False


def guarded(function: Callable[..., Any], *given: Any) -> TaskOutcome:
    """The outcome of a function, whatever it does. Of an error that is not discreet's own nothing is kept."""
    try:
        return TaskOutcome(function(*given))
    except DiscreetError as error:
        error.__cause__, error.__context__ = None, None
        return TaskOutcome(refused=error.with_traceback(None))
    except Exception:
        return TaskOutcome(failed=True)


def results(outcomes: Sequence[TaskOutcome], parts: int) -> list[Any]:
    """The results of all parts, if each has one."""
    for outcome in outcomes:
        if outcome.refused is not None:
            raise outcome.refused
    if len(outcomes) != parts or any(outcome.failed for outcome in outcomes):
        raise DiscreetError("a task of the engine failed; nothing is shown of its error, which may quote rows")
    return [outcome.value for outcome in outcomes]


def shipped(function: Callable[..., Any]) -> bytes:
    """A function as bytes: by cloudpickle, which takes a user's own functions too, where it is installed."""
    try:
        pickler = importlib.import_module("cloudpickle")
    except ImportError:
        pickler = pickle
    return bytes(pickler.dumps(function))


def run_shipped(work: bytes, part: Any) -> bytes:
    """What a worker does: the outcome of a shipped function on a part, as bytes."""
    return pickle.dumps(guarded(lambda: pickle.loads(work)(part)))


class Here:
    """This process, one part after the other."""

    workers, pass_seconds, local = 1, 0.0, True

    def map(self, function: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
        """The results, in the order of the parts."""
        return [function(part) for part in parts]


class Processes:
    """Processes of this machine: `count` of them, started when they are first needed.

    They are started afresh (spawn), so a program that uses them has its beginning under `if __name__ == "__main__":`.
    A process that dies is replaced, and what it did not finish is done again, at most four times.
    """

    pass_seconds, local = 0.05, True

    def __init__(self, count: int = 2) -> None:
        self.workers = exact.whole(count=count)
        self._pool: ProcessPoolExecutor | None = None

    def map(self, function: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
        """The results, in the order of the parts."""
        work, found = shipped(function), dict[int, TaskOutcome]()
        for _ in range(_ATTEMPTS):
            left = [place for place in range(len(parts)) if place not in found]
            if not left:
                break
            found |= self._tried(work, {place: parts[place] for place in left})
        if len(found) < len(parts):
            guard = "a program that uses Processes is a file that begins under if __name__ == '__main__':"
            raise DiscreetError(f"processes that read the rows died in each of {_ATTEMPTS} attempts; {guard}")
        return results([found[place] for place in sorted(found)], len(parts))

    def _tried(self, work: bytes, parts: dict[int, Any]) -> dict[int, TaskOutcome]:
        """The outcomes of those that ended before a process died, if one did."""
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self.workers, mp_context=context)
            # Waiting, since a pool that ends while the interpreter does writes into pipes that it has closed.
            self._end = weakref.finalize(self, self._pool.shutdown, cancel_futures=True)
        run, found = functools.partial(run_shipped, work), dict[int, TaskOutcome]()
        futures: dict[int, Future[bytes]] = {}
        try:
            for place, part in parts.items():
                futures[place] = self._pool.submit(run, part)
            for place, future in futures.items():
                found[place] = pickle.loads(future.result())
        except BrokenProcessPool:
            done = {place: each for place, each in futures.items() if each.done() and each.exception() is None}
            found |= {place: pickle.loads(future.result()) for place, future in done.items()}
            self.close(wait=False)  # for those that died
        return found

    def close(self, *, wait: bool = True) -> None:
        """End the processes."""
        if self._pool is not None:
            self._end.detach()
            self._pool.shutdown(wait=wait, cancel_futures=True)
            self._pool = None

    def __repr__(self) -> str:
        return f"Processes({self.workers})"
