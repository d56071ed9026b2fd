"""Runs: a copy of a prepared folder, a process that works on it under the layer, a judgement, a count."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import discreet
from tests.crash.disk import Disk, Event, Snapshot, recorded, write_tree
from tests.crash.judge import Notes, Unsound, book_of, judge, notes_in, refuses_older
from tests.crash.layer import CHANGES, FAILED_AT, KILLED_AT
from tests.crash.operations import OPERATIONS, Operation, Place

Point = TypeVar("Point")
ROOT = Path(__file__).parents[2]
ERRORS = {"EIO": (errno.EIO, FAILED_AT), "ENOSPC": (errno.ENOSPC, "wlnm")}
"""Errors, and the calls that may fail with them."""
TALLY: Counter[tuple[str, str]] = Counter()
"""How many runs of which kind there were, by (kind, operation): printed at the end."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A folder before an operation, and what the operation does to it when nothing disturbs it."""

    operation: Operation
    folder: Path
    calls: list[str]
    before: int
    bought: int


@dataclass(frozen=True, slots=True)
class Recording:
    """An operation's calls and notes in their order, on a folder as it was before."""

    prepared: Prepared
    before: Snapshot
    events: list[Event]


class Harness:
    """A server of processes, and a folder for what they work on."""

    def __init__(self, library: Path, work: Path) -> None:
        self._work = work
        self._number = 0
        self._prepared: dict[str, Prepared] = {}
        environment = {
            **os.environ,
            "LD_PRELOAD": str(library),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONPATH": f"{Path(discreet.__file__).parents[1]}{os.pathsep}{ROOT}",
        }
        command = [sys.executable, "-m", "tests.crash.server", str(library)]
        pipe = subprocess.PIPE
        self._server = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment, cwd=ROOT)
        assert self._line() == "ready"

    def close(self) -> None:
        self._server.communicate(timeout=60)

    # Single runs.

    def prepared(self, name: str) -> Prepared:
        """The folder for an operation, made once."""
        if name not in self._prepared:
            operation, folder = OPERATIONS[name], self._work / f"before-{name}"
            operation.prepare(Place(str(folder)))
            root, notes = self._copy(folder), self._fresh("notes")
            before = _answered(folder)
            self._run(self._order(operation, root, notes, mode="count", kinds=KILLED_AT))
            *said, last = notes_in(notes)
            assert last["ended"], said
            assert not [note for note in said if "raw" in note or "error" in note], said
            self._prepared[name] = Prepared(operation, folder, last["calls"], before, _answered(root) - before)
            shutil.rmtree(root)
        return self._prepared[name]

    def calls(self, name: str, kinds: str) -> list[str]:
        """The calls of these kinds that an undisturbed run makes: a letter and a file each."""
        prepared = self.prepared(name)
        root, notes = self._copy(prepared.folder), self._fresh("notes")
        self._run(self._order(prepared.operation, root, notes, mode="count", kinds=kinds))
        shutil.rmtree(root)
        return list(notes_in(notes)[-1]["calls"])

    def kill(self, name: str, at: int, mode: str = "kill", *, twin: str | None = None) -> str:
        """Kill a process at one call (before it, after it, in the middle of a write); what is wrong then, or ""."""
        return self._one(name, "kills", at, mode, twin=twin)

    def fail(self, name: str, at: int, error: str, *, forever: bool) -> str:
        """Let one call fail, or all from then on; then the disk works again and the process goes on; at last the power
        is cut, and everything is lost that was not synced."""
        number, kinds = ERRORS[error]
        return self._one(name, "errors", at, "fail", kinds=kinds, forever=forever, error=number, goes_on=True, cut=True)

    def lie(self, name: str, at: int) -> str:
        """Let one change of a file be lost, and say that it was made: what a program sees that ignores errors."""
        return self._one(name, "lies", at, "lie", kinds=CHANGES)

    def crowd(self, rng: random.Random, processes: int = 3) -> str:
        """Several processes on one ledger, each killed at some call."""
        prepared = self.prepared("crowd")
        root, notes = self._copy(prepared.folder), [self._fresh("notes") for _ in range(processes)]
        most = 2 * len(prepared.calls)
        orders = [
            self._order(prepared.operation, root, each, mode=rng.choice(("kill", "half")), at=rng.randrange(1, most))
            for each in notes
        ]
        codes = self._run(*orders)
        TALLY["kills", "crowd"] += sum(code != 0 for code in codes)
        return self._judged(prepared, root, [note for each in notes for note in notes_in(each)], f"crowd {codes}")

    def _one(
        self,
        name: str,
        kind: str,
        at: int,
        mode: str,
        *,
        twin: str | None = None,
        goes_on: bool = False,
        cut: bool = False,
        **layer: Any,
    ) -> str:
        prepared = self.prepared(name)
        root, notes, log = self._copy(prepared.folder), self._fresh("notes"), self._fresh("log")
        order = self._order(prepared.operation, root, notes, mode=mode, at=at, **layer)
        disk = Disk(Snapshot.of(root), "strict")
        if cut:
            order["layer"]["log"] = str(self._log(log))
        self._run({**order, "twin": twin, "goes_on": goes_on})
        TALLY[kind, name] += 1
        said, what = notes_in(notes), f"{name}: {mode} at call {at} {layer}"
        notes.unlink(missing_ok=True)
        found = self._judged(prepared, root, said, what)
        if cut:
            for event in self._recorded(log):
                disk.feed(event)
            write_tree(root, disk.survivors("lost", random.Random(0)))
            found = found or self._judged(prepared, root, said, f"{what} and then a power cut")
        return found

    def _judged(self, prepared: Prepared, root: Path, notes: Notes, what: str) -> str:
        """What is wrong with a folder, or ""; the folder is removed."""
        try:
            judge(prepared.operation, Place(str(root)), notes, before=prepared.before, bought=prepared.bought)
        except Unsound as error:
            return f"{what}: {error}"
        finally:
            shutil.rmtree(root)
        return ""

    # Power cuts.

    def record(self, name: str, *, processes: int = 1, wait: int = 0, twin: str | None = None) -> Recording:
        """Run an operation undisturbed, in one process or several, and record it."""
        prepared = self.prepared(name)
        root, log, notes = self._copy(prepared.folder), self._fresh("log"), self._fresh("notes")
        before = Snapshot.of(root)
        order = self._order(prepared.operation, root, notes, mode="count", log=str(self._log(log)), wait=wait)
        self._run(*[{**order, "twin": twin}] * processes)
        shutil.rmtree(root)
        notes.unlink()
        return Recording(prepared, before, self._recorded(log))

    def cuts(
        self,
        recording: Recording,
        names: str,
        kinds: Sequence[str],
        *,
        most: int | None = None,
        deaf: Callable[[str], bool] = lambda path: False,
    ) -> Iterator[str]:
        """Cut the power after every event of a recording, in each of these ways, and judge what is left.

        Yields what is wrong with each cut that is judged, or "". If two cuts leave the same, it is judged once.

        most  after at most this many events, evenly spaced
        """
        prepared, disk, notes = recording.prepared, Disk(recording.before, names, deaf), []
        judged: set[bytes] = set()
        numbers = range(len(recording.events))
        chosen = set(numbers if most is None else spread(numbers, most))
        for number, event in enumerate(recording.events):
            if event.kind == "N":
                notes.append(json.loads(event.data))
            else:
                disk.feed(event)
            for kind in kinds if number in chosen else ():
                left = disk.survivors(kind, random.Random(f"{number} {kind}"))
                token = hashlib.sha256(repr((sorted(left.items(), key=str), len(notes))).encode()).digest()
                if token not in judged:
                    judged.add(token)
                    yield self._cut(prepared, left, list(notes), f"{number} ({event.kind}), {names} names, data {kind}")

    def _cut(self, prepared: Prepared, left: dict[str, bytes | None], notes: Notes, where: str) -> str:
        operation = prepared.operation
        TALLY["power cuts", operation.name] += 1
        root, other = self._fresh("cut"), self._fresh("cut")
        write_tree(root, left)
        found = self._judged(prepared, root, notes, f"{operation.name}: power cut after event {where}")
        write_tree(other, left)
        try:
            refuses_older(operation, Place(str(other)), prepared.folder / "books", notes)
        except Unsound as error:
            found = found or str(error)
        finally:
            shutil.rmtree(other)
        return found

    # Inside.

    def _order(self, operation: Operation, root: Path, notes: Path, **layer: Any) -> dict[str, Any]:
        return {"operation": operation.name, "root": str(root), "notes": str(notes), "layer": layer}

    def _run(self, *orders: dict[str, Any]) -> list[int]:
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(orders) + "\n")
        self._server.stdin.flush()
        return list(json.loads(self._line()))

    def _line(self) -> str:
        assert self._server.stdout is not None
        return self._server.stdout.readline().strip()

    def _log(self, log: Path) -> Path:
        """A log for a recording, with the id of a boot beside it."""
        log.with_name(f"{log.name}.boot").write_text(f"{uuid.uuid4()}\n")
        return log

    def _recorded(self, log: Path) -> list[Event]:
        """What a log holds; it is removed."""
        events = recorded(log)
        log.unlink()
        log.with_name(f"{log.name}.boot").unlink()
        return events

    def _fresh(self, what: str) -> Path:
        self._number += 1
        return self._work / f"{what}-{self._number}"

    def _copy(self, folder: Path) -> Path:
        return Path(shutil.copytree(folder, self._fresh("run")))


def spread(points: Sequence[Point], most: int) -> Sequence[Point]:
    """At most this many of them, evenly spaced."""
    return points[:: -(-len(points) // most) or 1]


def wrong(found: Iterable[str]) -> str:
    """What went wrong, each thing once, for the message of a test that fails."""
    kinds: dict[str, list[str]] = {}
    for where, _, what in (each.partition(": ") for each in found if each):
        kinds.setdefault(what.partition(": ")[2], []).append(f"{where} {what.partition(': ')[0]}")
    return "\n".join(f"{len(places)} times, first {places[0]}: {what}" for what, places in kinds.items())


def _answered(folder: Path) -> int:
    """How many answered charges the ledger in a folder has; 0 where there is none."""
    place = Place(str(folder))
    if not place.ledger.exists():
        return 0
    with discreet.Ledger.open(place.ledger, state_dir=place.state, look=True) as ledger:
        return len(book_of(ledger).answers)
