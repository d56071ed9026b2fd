"""Small mechanisms, conversations and tables for the ledger's tests: their laws do not matter, their prices do."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import psycopg

from discreet import exact
from discreet.data import Dataset, Domain, Facts, Number, Table
from discreet.errors import ParameterError
from discreet.guarantee import Budget, Guarantee
from discreet.ledger import Ledger
from discreet.ledger.address import Address
from discreet.ledger.state import chained
from discreet.release import release
from discreet.rng import Rng

DOMAIN = Domain(age=Number(0, 120, step=1))


def people(ages: list[int] | None = None, **declared: Any) -> Table:
    """A table of five persons."""
    column = ages or [30, 41, 52, 63, 74]
    return Table({"age": column, "person": list(range(len(column)))}, DOMAIN, **{"name": "people", **declared})


@dataclass(frozen=True, slots=True)
class Pure:
    """Costs a pure epsilon and releases a random number."""

    NAME: ClassVar[str] = "toy-pure/1"
    epsilon: Fraction
    label: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", exact.positive(epsilon=self.epsilon))

    def guarantee(self, facts: Facts) -> Guarantee:
        return Guarantee.of_pure(self.epsilon, neighbours=facts.neighbours)

    def run(self, data: Dataset, rng: Rng) -> Any:
        return rng.bits(60)


TENTH = Pure(Fraction(1, 10))
PURE = Budget(1)
MIXED = Budget(1, 1e-6)


def made(where: Path | Address, budget: Budget = PURE, **more: Any) -> Ledger:
    """A durable ledger for those five persons: at this address, in this file or in this folder."""
    inside = isinstance(where, Path) and where.is_dir()
    return Ledger.create(where / "people.ledger" if inside else where, budget, people(), **more)


@dataclass(frozen=True, slots=True)
class Zcdp:
    """Costs rho in the Renyi book and has no pure guarantee."""

    NAME: ClassVar[str] = "toy-zcdp/1"
    rho: Fraction

    def guarantee(self, facts: Facts) -> Guarantee:
        return Guarantee.of_zcdp(self.rho, neighbours=facts.neighbours)

    def run(self, data: Dataset, rng: Rng) -> Any:
        return rng.bits(60)


@dataclass(frozen=True, slots=True)
class Approximate:
    """Costs (epsilon, delta)."""

    NAME: ClassVar[str] = "toy-approximate/1"
    epsilon: Fraction
    delta: Fraction

    def guarantee(self, facts: Facts) -> Guarantee:
        return Guarantee.of_approximate(self.epsilon, delta=self.delta, neighbours=facts.neighbours)

    def run(self, data: Dataset, rng: Rng) -> Any:
        return rng.bits(60)


@dataclass(frozen=True, slots=True)
class Everything:
    """Costs a tenth and releases a value of every kind that can be stored."""

    NAME: ClassVar[str] = "toy-everything/1"

    def guarantee(self, facts: Facts) -> Guarantee:
        return Guarantee.of_pure(Fraction(1, 10), neighbours=facts.neighbours)

    def run(self, data: Dataset, rng: Rng) -> Any:
        arrays = (np.arange(6).reshape(2, 3), np.array([0.1, -0.0, np.inf]))
        return {"arrays": arrays, "big": -(7**200), "list": [1, 0.1, None, True, "x"], "third": Fraction(1, 3)}


class CanaryError(Exception):
    """Quotes what it should not."""


@dataclass(frozen=True, slots=True)
class Failing:
    """Costs a tenth and fails with a message made of rows; `interrupt` fails as if somebody pressed a key."""

    NAME: ClassVar[str] = "toy-failing/1"
    interrupt: bool = False

    def guarantee(self, facts: Facts) -> Guarantee:
        return Guarantee.of_pure(Fraction(1, 10), neighbours=facts.neighbours)

    def run(self, data: Dataset, rng: Rng) -> Any:
        rows = data.exact_sum(lambda batch: np.array([int(batch["age"].sum())]))
        if self.interrupt:
            raise KeyboardInterrupt
        raise CanaryError(f"the ages sum to {rows}")


@dataclass(frozen=True, slots=True)
class Broken:
    """A planted mutant."""

    NAME: ClassVar[str] = "toy-broken/1"
    broken: ClassVar[bool] = True

    def guarantee(self, facts: Facts) -> Guarantee:
        return Guarantee.of_pure(Fraction(1, 10), neighbours=facts.neighbours)

    def run(self, data: Dataset, rng: Rng) -> Any:
        return 0


@dataclass(frozen=True, slots=True)
class Guess:
    """A conversation about a secret number below `bound`: "is it at most this?"; it ends with the first yes.

    With `limit` it counts its answers in the secret state, so that every answer changes it.
    """

    NAME: ClassVar[str] = "toy-guess/1"
    bound: int = 1000
    epsilon: Fraction = Fraction(1, 10)
    limit: int | None = None

    def guarantee(self, facts: Facts) -> Guarantee:
        return Guarantee.of_pure(self.epsilon, neighbours=facts.neighbours)

    def check(self, ask: Any, facts: Facts) -> None:
        if not isinstance(ask, int):
            raise ParameterError("a guess is a whole number")

    def begin(self, data: Dataset, rng: Rng) -> Any:
        return {"secret": int(rng.integers(self.bound)), "asked": 0}

    def step(self, state: Any, ask: Any, data: Dataset, rng: Rng) -> tuple[Any, bool]:
        if ask < 0:
            raise CanaryError(f"the secret is {state['secret']}")
        if state["secret"] <= ask:
            return None, True
        if self.limit is None:
            return state, False
        asked = state["asked"] + 1
        return (None if asked >= self.limit else {**state, "asked": asked}), False


CATALOGUE: dict[str, type] = {each.NAME: each for each in (Pure, Zcdp, Approximate, Everything, Failing, Broken, Guess)}


def fill(ledger: Ledger, mechanism: Any, limit: int = 10_000) -> int:
    """How many releases fit."""
    count = 0
    while count < limit and ledger.admits(mechanism):
        release(mechanism, people(), ledger=ledger)
        count += 1
    return count


def opening(budget: Budget) -> dict[str, Any]:
    """The body of the first entry of a ledger with this budget."""
    first = next(Ledger.in_memory(budget, people()).entries())
    return {key: value for key, value in first.items() if key not in ("seq", "hash")}


def rows_of(where: Path | Address) -> list[tuple[Any, ...]]:
    """The entries as their store holds them."""
    return edited(where, "SELECT seq, kind, request, charge, body, hash FROM entries WHERE seq != 0 ORDER BY seq")


def edited(where: Path | Address, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """Run a statement on the store itself, as an owner can who stops at nothing; the rows that it returns.

    It is written for SQLite and has a WHERE. In PostgreSQL the triggers are switched off, and it is about this ledger.
    """
    if isinstance(where, Path):
        connection = sqlite3.connect(where)
        with connection:
            found = connection.execute(statement, values).fetchall()
        connection.close()
        return found
    tables = [each for each in ("entries", "held", "kept") if re.search(rf"\b{each}\b", statement)]
    statement = re.sub(rf"\b{tables[0]}\b", f"discreet.{tables[0]}", statement, count=1)
    statement = statement.replace("?", "%s").replace(" WHERE ", f" WHERE ledger = '{where.name}' AND ")
    change = not statement.startswith("SELECT") and tables[0] != "kept"
    with psycopg.connect(where.server) as owner:
        if change:
            owner.execute(f"ALTER TABLE discreet.{tables[0]} DISABLE TRIGGER append_only")
        done = owner.execute(statement, values)
        found = done.fetchall() if done.description else []
        if change:
            owner.execute(f"ALTER TABLE discreet.{tables[0]} ENABLE ALWAYS TRIGGER append_only")
    return found


def forge(where: Path | Address, seq: int, body: str, kind: str = "allow") -> None:
    """Put an entry with a right hash behind the others."""
    ((last,),) = edited(where, "SELECT hash FROM entries WHERE seq != 0 ORDER BY seq DESC LIMIT 1")
    body = body.replace("PREVIOUS", last)
    columns = {"seq": seq, "kind": kind, "body": body, "hash": chained(last, body.encode())}
    table = "entries"
    if isinstance(where, Address):
        table, columns = "discreet.entries", {"ledger": where.name, **columns}
    marks = ", ".join("?" if isinstance(where, Path) else "%s" for _ in columns)
    statement = f"INSERT INTO {table}({', '.join(columns)}) VALUES ({marks})"
    if isinstance(where, Path):
        edited(where, statement, *columns.values())
    else:
        with psycopg.connect(where.server) as owner:
            owner.execute(statement, tuple(columns.values()))


def secret_of(ledger: Ledger) -> Path:
    """The file of the states of open conversations."""
    return ledger.store.secrets._path
