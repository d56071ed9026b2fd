"""One session at a time: of all processes that ask through one ledger, only one looks, decides and charges.

Privacy needs no such lock: every charge is a transaction of its own. It keeps two analysts who ask the same question at
the same moment from paying for it twice. The file `<ledger>.asking` is empty and may be deleted when nobody asks.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.errors import LedgerUnavailable
from discreet.ledger.durable import refuse_strangers

_PATIENCE = 300.0  # seconds: another session may be fitting a large hypothesis


class FileTurns:
    """Turns by the lock of one file; None, in memory, belongs to one process: nobody waits."""

    def __init__(self, ledger: Path | None) -> None:
        self._path = None if ledger is None else ledger.with_name(ledger.name + ".asking")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until no other session of this ledger is inside.

        The lock is undone by name: a process forked meanwhile has the file open too, and would keep it.
        """
        if self._path is None:
            yield
            return
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise LedgerUnavailable(f"{self._path.name} cannot be opened: {error.strerror}") from None
        try:
            refuse_strangers(os.fstat(descriptor), self._path.name)  # who owns it could keep it locked
            _wait(descriptor)
            try:
                yield
            finally:
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            os.close(descriptor)


def _wait(descriptor: int) -> None:
    last = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > last:
                raise LedgerUnavailable("another session has been asking for minutes: try again later") from None
        except OSError as error:
            raise LedgerUnavailable(f"the lock of the sessions cannot be had: {error.strerror}") from None
        time.sleep(0.005)
