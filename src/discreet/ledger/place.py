"""The interfaces between a ledger and its environment: storage, high-water mark, processes, locks and secrets.

    Place    rows of entries, one writer at a time        SQLite: sqlite.py; PostgreSQL: postgres.py
    Witness  the high-water mark                          a file: mark.py
    Alive    whether the process of a charge still runs   pid and boot: process.py; a session's lock: postgres.py
    Turns    one session at a time                        flock: local.py
    Secrets  thresholds of open conversations             a file: local.py
    Site     all of these for one file or one address     local.py, postgres.py

A place knows nothing of budgets; `store.py` holds the rules that all places share. A power cut may lose entries that
were not synced, but if an entry survives, all entries before it survive.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from discreet.core import NOTHING, Json, Price
from discreet.data import Database, Dataset, GrowingTable, Identity
from discreet.ledger.address import Address
from discreet.ledger.state import Allowance, Body, Row, State, price_record, seen_by


class Look(Protocol):
    """One snapshot of the entries.

    rows       those after an entry, in order; at most `limit`
    row        one of them; None if there is none
    first      the lowest number of an entry; None if there are no entries
    requested  the number of the charge with this request id
    end        the row that ended a charge: its answer, or that it was burned
    said       the numbers of the sayings with this meaning, newest first
    latest     the newest rows of a kind, newest first
    held       a long answer, by its hash
    kept       a text that was kept under this name: a cache, which may be gone or wrong
    """

    def rows(self, *, after: int, limit: int) -> list[Row]: ...
    def row(self, seq: int) -> Row | None: ...
    def first(self) -> int | None: ...
    def requested(self, request: str) -> int | None: ...
    def end(self, charge: int) -> Row | None: ...
    def said(self, meaning: str) -> list[int]: ...
    def latest(self, kind: str, limit: int, before: int) -> list[Row]: ...
    def count(self, kind: str) -> int: ...
    def held(self, digest: str) -> str | None: ...
    def kept(self, name: str) -> str | None: ...


class Write(Look, Protocol):
    """The one open write transaction: entries are added, never changed."""

    def append(self, row: Row) -> None: ...
    def hold(self, digest: str, text: str) -> None: ...
    def keep(self, name: str, text: str) -> None: ...


class Place(Protocol):
    """Where the entries of one ledger lie.

    look   one snapshot                       write  leaving the block commits, an error undoes everything
    sync   what was committed before the call is durable when it returns
    check  the place's own damage: LedgerCorrupt
    rest   let go of what must not cross a fork, if nothing is open
    writable  False for an account that may only look
    """

    @property
    def durable(self) -> bool: ...
    @property
    def writable(self) -> bool: ...
    def look(self) -> AbstractContextManager[Look]: ...
    def write(self) -> AbstractContextManager[Write]: ...
    def sync(self) -> None: ...
    def check(self, look: Look) -> None: ...
    def rest(self) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a ledger had come: its last entry and the sums after it.

    witness  the random name of the mark
    named    what was spent in each name, by the name's digest; None if the names did not fit
    """

    seq: int
    hash: str
    spent: Price
    witness: str
    named: dict[str, Price] | None = None

    def proves(self, state: State) -> Body:
        """What a reconciliation records: the sums that the mark proves, for the whole ledger and for each name.

        Where the mark does not know a name, all that the mark knows and the ledger does not may have been spent in it.
        """
        seen, names = seen_by(state, self.witness), {}
        for name, allowance in state.allowances.items():
            before = seen.allowances.get(name, Allowance(allowance.share))
            if self.named is None:
                spent = allowance.spent + self.spent.less(seen.spent)
            else:
                spent = self.named.get(name_digest(name), NOTHING) + allowance.spent.less(before.spent)
            names[name] = price_record(spent.joined(allowance.spent))
        return {"proved": price_record(self.spent), "mark_witness": self.witness, "allowances": names}


@functools.lru_cache(maxsize=1024)
def name_digest(name: str) -> str:
    """What stands for an allowance's name in a mark."""
    return hashlib.sha256(name.encode("utf-8")).hexdigest()[:16]


class Held(Protocol):
    """The mark while its writer holds the turn: writers to other copies of the same ledger wait.

    ahead   the last commit under this mark, durable or not          commit  notes another
    reset   puts the mark to an entry, wherever it was
    """

    def read(self) -> Mark | None: ...
    def ahead(self) -> Mark | None: ...
    def commit(self, mark: Mark) -> None: ...
    def reset(self, mark: Mark) -> None: ...


class Witness(Protocol):
    """The high-water mark of one ledger, kept apart from the ledger.

    read    the mark; None if there is none; LedgerCorrupt if it is damaged
    held    the same under a lock
    settle  returns when everything up to this entry is durable: the log by `sync`, and the mark if so asked
    write_first  the mark of a ledger that is being made: durable before the ledger can be found
    """

    def read(self) -> Mark | None: ...
    def held(self) -> AbstractContextManager[Held]: ...
    def settle(self, seq: int, sync: Callable[[], None], *, marked: bool) -> None: ...
    def write_first(self, mark: Mark) -> None: ...


class Alive(Protocol):
    """The process that wrote a charge, and whether it has certainly ended."""

    def name(self) -> dict[str, Any]: ...
    def gone(self, process: dict[str, Any]) -> bool: ...


class Turns(Protocol):
    """Mutual exclusion of sessions: at most one is inside `alone`."""

    def alone(self) -> AbstractContextManager[object]: ...


class Secrets(Protocol):
    """The secret states of open conversations, by the hash of their charge."""

    def get(self, charge_hash: str) -> Json: ...
    def keep(self, charge_hash: str, state: Json) -> None: ...
    def forget(self, charge_hash: str) -> None: ...
    def all(self) -> dict[str, Json]: ...


class Site(Protocol):
    """Where a ledger is or will be: a file or an address, and the state directory of this host.

    build    a whole ledger and its mark, or none: no reader finds a part of it
    discard  undo `build`, as far as can be
    """

    @property
    def where(self) -> Path | Address: ...
    def exists(self) -> bool: ...
    def parts(self, *, look: bool = False) -> Parts: ...
    def build(
        self, opening: Body, table: Dataset | Database | GrowingTable | Identity, now: Callable[[], str]
    ) -> None: ...
    def discard(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Parts:
    """The environment of one ledger; the witness and the secrets are made from the ledger's id.

    path, state_dir  for a ledger that outlives its process: where it is, and where its mark is kept
    one_mark         the last entry must be under this mark: several hosts reach the place, and a mark knows only what
                     its own host has seen
    """

    place: Place
    witness: Callable[[str], Witness | None]
    alive: Alive
    turns: Turns
    secrets: Callable[[str], Secrets]
    path: Path | Address | None = None
    state_dir: Path | None = None
    one_mark: bool = False
