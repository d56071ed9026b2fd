"""Hill-climbing over neighbouring pairs of small tables: the auditor looks for the worst case, it does not guess it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from discreet.audit.laws import Row, Setting
from discreet.core import Rng
from discreet.data import Domain


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
    labels = (column.labels() for column in domain.values())
    return [dict(zip(domain, values, strict=True)) for values in itertools.product(*labels)]


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
        row, kind = listed[rng.integers(len(listed))], rng.integers(4)
        if kind == 0 and len(best.shared) < most:
            moved = replace(best, shared=(*best.shared, row))
        elif kind == 1 and best.shared:
            at = rng.integers(len(best.shared))
            moved = replace(best, shared=(*best.shared[:at], *best.shared[at + 1 :]))
        else:
            count = 1 + rng.integers(setting.neighbours.rows)
            held = tuple(_mine(listed[rng.integers(len(listed))], setting) for _ in range(count))
            other = kind == 2 and setting.neighbours.replace_one
            moved = replace(best, other=held) if other else replace(best, mine=held)
        reached = score(moved)
        if reached >= value:
            best, value = moved, reached
    return best, value


def _mine(row: Row, setting: Setting) -> Row:
    """The row, of the one person in whom the two tables differ."""
    return row if setting.unit is None else {**row, setting.unit: -1}
