"""What an owner decides about a service: which tables, how it listens, and its limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from discreet.core import ParameterError

KEYS = "keys.json"
"""The file of keys, in the folder of the first schema."""

PATIENCE = 170.0
"""Seconds that all running jobs together get when a service ends; deploy/discreet.service allows ten more."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may be, and how many; each refusal is before anything is spent.

    body, question   bytes of a body, characters of a question
    questions        of one workload
    cells            numbers of one answer, or of all answers of one workload
    rows             synthetic rows of one request
    units, steps     hidden units of a network, passes over the rows of a fit that says how many
    waiting, waiting_each  jobs of a table that may wait, of all keys and of one
    requests         per minute and key; so are
    pricing, kept    seconds of processor time for prices, bytes of replies that the ledger keeps
    slow             seconds that a body may take to arrive
    concurrent, concurrent_each  requests that are worked on at once, of all and of one key
    arriving         bodies that may be on their way at once: of more, the oldest is given up
    """

    body: int = 65_536
    question: int = 4_000
    questions: int = 200
    cells: int = 10_000
    rows: int = 100_000
    units: int = 256
    steps: int = 1_000
    waiting: int = 32
    waiting_each: int = 4
    requests: int = 600
    pricing: float = 20.0
    kept: int = 4_000_000
    slow: float = 10.0
    concurrent: int = 200
    concurrent_each: int = 32
    arriving: int = 100


@dataclass(frozen=True, slots=True)
class Settings:
    """One service.

    schemas       the TOML files of the tables
    keys          the file of keys; by default keys.json beside the first schema
    time_grid     seconds: replies leave at multiples of this after their request came; 0: at once
    job_grid      the same for the ends of jobs; the end of a question shows on the time grid
    price, beta   of the sessions that answer
    rehearsal     whether guests without a key may ask made-up rows
    behind_proxy  a proxy in front does TLS: cookies are marked Secure, and other addresses than loopback may be bound
    log           the file of the access log; None: the error stream
    """

    schemas: tuple[Path, ...]
    keys: Path
    time_grid: float = 0.25
    job_grid: float = 1.0
    price: str | None = None
    beta: str = "0.05"
    rehearsal: bool = False
    behind_proxy: bool = False
    log: Path | None = None
    state_dir: Path | None = None
    limits: Limits = field(default_factory=Limits)

    @staticmethod
    def keys_beside(schemas: Sequence[Path]) -> Path:
        """Where the keys of these schemas are, unless it is said."""
        return schemas[0].parent / KEYS

    @staticmethod
    def schemas_in(places: Sequence[Path]) -> tuple[Path, ...]:
        """The schemas that are named, and those in the folders that are named: every .toml file there."""
        found: list[Path] = []
        for place in places:
            here = sorted(place.glob("*.toml")) if place.is_dir() else [place]
            if not here:
                raise ParameterError(f"there is no schema in {place.name}: `discreet schema DATA` drafts one")
            found += here
        return tuple(dict.fromkeys(found))
