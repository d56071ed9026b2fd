"""In whose name this process charges: the operating system's user, or an analyst for whom a service works.

    with acting_as(Acting("ana, key 1a2b3c4d", by={"key": "1a2b3c4d", "request": "7f"})):
        session.ask(...)

What is charged inside the block carries the name and `by` in its entry. The name belongs to the block and to its
thread, so several may act side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from discreet.core import Json
from discreet.ledger.process import who


def _go_on() -> None:
    """Nothing stops a charge, or waits."""


@dataclass(frozen=True, slots=True)
class Acting:
    """An actor, and what it has charged.

    who            the name in the entry of a charge
    by             what else stands there, for programs; None: nothing
    before_charge  called when a charge was admitted and before it is written: an error stops it, and nothing is spent
    after_rows     called when rows were read, before anything is written or told: what follows is public, and so may be
                   when it happens
    charges        the entries of the charges that were written, in order
    """

    who: str
    by: Json = None
    before_charge: Callable[[], None] = _go_on
    after_rows: Callable[[], None] = _go_on
    charges: list[int] = field(default_factory=list)

    @staticmethod
    def now() -> Acting:
        """The actor of this thread; unless it was named, the user who runs the process."""
        return _ACTING.get() or Acting(who())


_ACTING: ContextVar[Acting | None] = ContextVar("acting", default=None)


@contextmanager
def acting_as(actor: Acting) -> Iterator[Acting]:
    """Act in this name inside the block."""
    token = _ACTING.set(actor)
    try:
        yield actor
    finally:
        _ACTING.reset(token)
