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

from discreet.errors import LedgerUnavailable
from discreet.ledger.book import Ledger

_PATIENCE = 300.0  # seconds: another session may be fitting a large hypothesis


@contextmanager
def one_at_a_time(ledger: Ledger) -> Iterator[None]:
    """Wait until no other session of this ledger is inside. A ledger in memory belongs to one process: nobody waits."""
    if ledger.path is None:
        yield
        return
    try:
        name = ledger.path.with_name(ledger.path.name + ".asking")
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise LedgerUnavailable(f"{ledger.path.name}.asking cannot be opened: {error.strerror}") from None
    try:
        _wait(descriptor)
        yield
    finally:
        os.close(descriptor)  # which unlocks it


def _wait(descriptor: int) -> None:
    last = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > last:
                raise LedgerUnavailable("another session has been asking for minutes: try again later") from None
            time.sleep(0.005)
