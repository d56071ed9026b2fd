"""Small mechanisms, conversations and tables for the ledger's tests: their laws do not matter, their prices do."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from discreet import exact
from discreet.data import Dataset, Domain, Facts, Number, Table
from discreet.errors import ParameterError
from discreet.guarantee import Budget, Guarantee
from discreet.ledger import Ledger
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


def made(tmp_path: Path, budget: Budget = PURE, **more: Any) -> Ledger:
    """A ledger on disk for those five persons."""
    return Ledger.create(tmp_path / "people.ledger", budget, people(), **more)


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


def rows_of(path: Path) -> list[tuple[Any, ...]]:
    """The entries as SQLite holds them."""
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT * FROM entries ORDER BY seq").fetchall()
    connection.close()
    return found
