"""Work about one table, one piece after the other, on one thread: whatever may read rows or charge is a `Job`.

A job waits in its table's queue, runs, is charged, and ends; until it is charged its owner may cancel it. The queue has
an end: what does not fit is refused at once. Jobs live in memory. After a crash the ledger knows what became of a job
that was charged: the same request id gives its stored reply, or says that the charge was burned.

How long rows are read depends on them. So what was found is written and told at a multiple of `grid` seconds after the
job began, and nobody sees more than how many steps it took. All other work of a job is about public things.
"""

from __future__ import annotations

import asyncio
import queue
import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from discreet.core import Cancelled, DiscreetError, NotFound, ServiceFailed, TooBusy
from discreet.ledger import Acting, acting_as
from discreet.serve.keys import GUEST, Key

_UNCHARGED = "the job was cancelled; nothing was charged"
WAITING, RUNNING, CHARGED, DONE, REFUSED, CANCELLED = "waiting", "running", "charged", "done", "refused", "cancelled"
_ENDED = (DONE, REFUSED, CANCELLED)
_FILES = 4
"""Files of ended jobs that are held for whoever fetches them."""
_KEPT = 1000
"""Ended jobs of a table that are remembered."""

Work = Callable[["Job"], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a job is: who wants it, what it is called, and the id of the request."""

    holder: Key
    kind: str
    request: str | None = None

    @property
    def who(self) -> str:
        return f"{self.holder.name}, key {self.holder.id}"

    @property
    def allowance(self) -> str | None:
        """The name that the ledger counts under; a guest asks made-up rows, where nothing is counted."""
        return None if self.holder is GUEST else self.holder.name

    @property
    def by(self) -> dict[str, Any]:
        """What stands in the charge, so that the request is found again."""
        named = {} if self.request is None else {"request": self.request}
        return {"key": self.holder.id, **named}


class Job:
    """One piece of work, and what became of it. Its result is a dict of plain values.

    what        is asked, in words
    attachment  a file that was made, as its media type and its bytes
    progress    the part that is done, where the work can say it from public numbers
    checked     called before each charge, inside its transaction: an error stops it, and nothing is spent
    """

    def __init__(self, ticket: Ticket, *, grid: float = 0.0) -> None:
        self.ticket, self.id = ticket, secrets.token_urlsafe(16)
        self.acting = Acting(ticket.who, ticket.by, self._before_charge, self.wait_for_grid)
        self._grid, self._began = grid, 0.0
        self._lock, self.state = threading.Lock(), WAITING
        self._future: Future[dict[str, Any]] = Future()
        self.checked: Callable[[], None] = lambda: None
        self.what = ""
        self.attachment: tuple[str, bytes] | None = None
        self.progress: float | None = None

    @staticmethod
    def ended(ticket: Ticket, result: dict[str, Any]) -> Job:
        """A job that needed no waiting."""
        job = Job(ticket)
        job._end(DONE, result)
        return job

    @property
    def over(self) -> bool:
        return self.state in _ENDED

    def wait_for_grid(self) -> None:
        """Wait until the next step of the grid: rows were read."""
        if self._grid:
            time.sleep((self._began - time.monotonic()) % self._grid)

    def perform(self, work: Work) -> None:
        """Do the work on this thread, unless it was cancelled."""
        with self._lock:
            if self.state == CANCELLED:
                return
            self.state, self._began = RUNNING, time.monotonic()
        try:
            with acting_as(self.acting):
                result = work(self)
        except Cancelled as error:
            self._end(CANCELLED, error)
        except DiscreetError as error:
            self._end(REFUSED, error.with_traceback(None))
        except Exception:
            self._end(REFUSED, ServiceFailed())
        else:
            cancelled = self.state == CANCELLED and not self.acting.charges
            self._end(*((CANCELLED, Cancelled(_UNCHARGED)) if cancelled else (DONE, result)))

    def cancel(self) -> bool:
        """Cancel it, if nothing was charged; whether it is cancelled."""
        with self._lock:
            if self.state not in (WAITING, RUNNING):
                return self.state == CANCELLED
            waiting, self.state = self.state == WAITING, CANCELLED
        if waiting:
            self._future.set_exception(Cancelled(_UNCHARGED))
        return True

    def result(self, timeout: float | None = None) -> dict[str, Any]:
        """What came out, or the refusal; TimeoutError if it has not ended by then."""
        return self._future.result(timeout)

    async def ending(self) -> None:
        """Wait for its end; `result` then has it at once."""
        waited = asyncio.wrap_future(self._future)
        # Whoever stops waiting never looks at the refusal, and asyncio would print it, with words of the analyst.
        waited.add_done_callback(lambda each: each.cancelled() or each.exception())
        await asyncio.wait([waited])

    def record(self) -> dict[str, Any]:
        """The job for its owner; the result is fetched by itself."""
        told = {"job": self.id, "kind": self.ticket.kind, "state": self.state, "request": self.ticket.request}
        return {**told, "progress": self.progress}

    @contextmanager
    def counting_conjunctions(self) -> Iterator[None]:
        """Inside, a search through all conjunctions says how far it is: public numbers only."""
        from discreet.pac import PROGRESS, Estimate

        done = 0

        def advance(expected: Estimate, more: int) -> None:
            nonlocal done
            done += more
            self.progress = round(min(1.0, done / max(1, expected.conjunctions)), 2)

        token = PROGRESS.set(advance)
        try:
            yield
        finally:
            PROGRESS.reset(token)

    def _before_charge(self) -> None:
        self.checked()
        with self._lock:
            if self.state == CANCELLED:
                raise Cancelled(_UNCHARGED)
            self.state = CHARGED

    def _end(self, state: str, outcome: dict[str, Any] | BaseException) -> None:
        with self._lock:
            self.state = state
        if isinstance(outcome, BaseException):
            self._future.set_exception(outcome)
        else:
            self._future.set_result(outcome)


class Jobs:
    """The queue of one table and its thread.

    most      jobs that may wait, of all keys         most_each  of one key
    """

    def __init__(self, name: str, *, most: int = 32, most_each: int = 4, grid: float = 0.0) -> None:
        self._most, self._most_each, self._grid = most, most_each, grid
        self._queue: queue.SimpleQueue[tuple[Job, Work] | None] = queue.SimpleQueue()
        self._waiting: Counter[str] = Counter()
        self._kept: OrderedDict[str, Job] = OrderedDict()
        self._lock, self._closed = threading.Lock(), False
        self._thread = threading.Thread(target=self._work, name=f"table {name}", daemon=True)
        self._thread.start()

    def submit(self, ticket: Ticket, work: Work, *, grid: float | None = None) -> Job:
        """Put work into the queue; TooBusy if there is no room for it. grid: another than the queue's."""
        job = Job(ticket, grid=self._grid if grid is None else grid)
        with self._lock:
            if self._closed:
                raise TooBusy("the service is stopping: ask again when it runs", retry_after=10)
            if self._waiting[ticket.holder.id] >= self._most_each:
                raise TooBusy(f"this key has {self._most_each} jobs waiting: wait for one of them", retry_after=5)
            if self._waiting.total() >= self._most:
                raise TooBusy(f"{self._most} jobs wait for this table: nothing was charged, try later", retry_after=10)
            self._waiting[ticket.holder.id] += 1
            self._kept[job.id] = job
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
            held = [each for each in self._kept.values() if each.attachment is not None]
            for each in held[:-_FILES]:
                each.attachment = None
        self._queue.put((job, work))
        return job

    def find(self, holder: Key, id_: str) -> Job:
        """The job of this holder with this id."""
        with self._lock:
            job = self._kept.get(id_)
        if job is None or job.ticket.holder.name != holder.name:
            raise NotFound("there is no such job of this key: jobs are remembered until the service stops")
        return job

    def of(self, holder: Key) -> list[Job]:
        """The jobs of this holder that are remembered, newest first."""
        with self._lock:
            return [job for job in reversed(self._kept.values()) if job.ticket.holder.name == holder.name]

    def close(self, patience: float = 30.0) -> bool:
        """Take no more work, refuse what waits, and let the running job end; whether it ended in time."""
        with self._lock:
            self._closed = True
            waiting = [job for job in self._kept.values() if job.state == WAITING]
        for job in waiting:
            job.cancel()
        self._queue.put(None)
        self._thread.join(patience)
        return not self._thread.is_alive()

    def _work(self) -> None:
        while (piece := self._queue.get()) is not None:
            job, work = piece
            try:
                job.perform(work)
            finally:
                with self._lock:
                    self._waiting[job.ticket.holder.id] -= 1
