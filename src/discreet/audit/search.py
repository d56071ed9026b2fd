"""Hill-climbing over neighbouring pairs of small tables: the auditor looks for the worst case, it does not guess it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from discreet.audit.laws import Row, Setting
from discreet.data import Category, Domain, Number
from discreet.errors import ParameterError
from discreet.rng import Rng


@dataclass(frozen=True, slots=True)
class Pair:
    """Two neighbouring tables: the rows they share, and the rows of one person in each."""

    shared: tuple[Row, ...]
    mine: tuple[Row, ...]
    other: tuple[Row, ...]

    @property
    def first(self) -> tuple[Row, ...]:
        return (*self.shared, *self.mine)

    @property
    def second(self) -> tuple[Row, ...]:
        return (*self.shared, *self.other)


def universe(domain: Domain) -> list[Row]:
    """Every possible row of a small domain of categories and numbers."""
    return [dict(zip(domain, values, strict=True)) for values in itertools.product(*map(_values, domain.values()))]


def _values(column: Any) -> list[Any]:
    if isinstance(column, Category):
        return list(column.levels)
    if isinstance(column, Number):
        return [float(column.value(code)) for code in range(column.steps + 1)]
    raise ParameterError(f"cannot list the values of a {type(column).__name__}")


def start(setting: Setting, rows: Sequence[Row]) -> Pair:
    """A first pair for this relation: one person's row is there or not, or is replaced."""
    listed = universe(setting.domain)
    other = (_mine(listed[-1], setting),) if setting.neighbours.replace_one else ()
    return Pair(tuple(rows), (_mine(listed[0], setting),), other)


def climb(
    score: Callable[[Pair], float], begin: Pair, setting: Setting, *, steps: int, rng: Rng, most: int = 5
) -> tuple[Pair, float]:
    """The best pair found by `steps` random moves that never go down, and its score."""
    listed = universe(setting.domain)
    best, value = begin, score(begin)
    for _ in range(steps):
        moved = _move(best, listed, setting, rng, most)
        found = score(moved)
        if found >= value:
            best, value = moved, found
    return best, value


def _move(pair: Pair, listed: Sequence[Row], setting: Setting, rng: Rng, most: int) -> Pair:
    row = listed[rng.integers(len(listed))]
    kind = rng.integers(4)
    if kind == 0 and len(pair.shared) < most:
        return replace(pair, shared=(*pair.shared, row))
    if kind == 1 and pair.shared:
        at = rng.integers(len(pair.shared))
        return replace(pair, shared=(*pair.shared[:at], *pair.shared[at + 1 :]))
    count = 1 + rng.integers(setting.neighbours.rows)
    held = tuple(_mine(listed[rng.integers(len(listed))], setting) for _ in range(count))
    if kind == 2 and setting.neighbours.replace_one:
        return replace(pair, other=held)
    return replace(pair, mine=held)


def _mine(row: Row, setting: Setting) -> Row:
    """The row, of the one person in whom the two tables differ."""
    return row if setting.unit is None else {**row, setting.unit: -1}
