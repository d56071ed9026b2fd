"""Learning a box by the exponential mechanism over all boxes of a coarse public grid: one or two columns.

    AllBoxes(columns, labels, cuts, rate)      P[box] proportional to exp(-rate * mistakes), and the empty box
    methods(...)                               with its proven size; for more columns a row of the plan only

Its theorem is agnostic: labels may be noisy, and no box need be right. With g cells a column there are about
(g^2 / 2)^d boxes; their mistakes follow from one histogram by prefix sums, some at a time. A box is drawn in two steps:
how many mistakes it makes, by how many boxes make so many, then one of these boxes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet.core import Funds, ParameterError, exact
from discreet.data import Batch, Codes, Dataset, Facts, Needs
from discreet.mechanisms import Guarantee, Rng, calibrate, wrong_rows
from discreet.method import Method, Methods
from discreet.pac.boxes import Box, empty_box, grid_sizes, named_columns
from discreet.pac.finite import FiniteClass, empirical_size, selection_price
from discreet.pac.rules import BoxRule, Labels

NAME = "exhaustive"

CUTS = (1024, 64)
"""The number of cells of a column by default, for one column and for two."""

MOST = 2**25
"""The largest number of boxes that are gone through."""

_MERGE = 2**22


@dataclass(frozen=True, slots=True)
class AllBoxes:
    """Learn a box by the exponential mechanism over all boxes of a coarse grid, and the empty one.

    Every column's values are cut evenly into `cuts` cells, or one cell for each value if it has fewer; a box is made of
    whole cells.

    Theorem.   One row's addition changes the number of mistakes of every box by 0 or 1, its replacement by -1, 0 or 1.
               So with r = 1 (add-remove) or 2 (replace-one), times the rows of a person, the release has bounded range
               rate * r: (rate * r)-DP and ((rate * r)^2 / 8)-zCDP.
    Accuracy.  With C boxes, P[mistakes >= least mistakes of any of them + x] <= C exp(-rate x), whatever the labels.
    Edges.     One or two columns, at most 2^25 boxes. A row with a missing value is in no box. No rows: any box.
    Reference. Lecture 12, the exponential mechanism over a class; [MT07]; docs/proofs/faces.md.
    """

    NAME: ClassVar[str] = "all-boxes/1"
    columns: tuple[str, ...]
    labels: Labels
    cuts: int
    rate: Fraction

    def __post_init__(self) -> None:
        exact.freeze(self, columns=named_columns(self.columns, self.labels))
        if len(self.columns) > 2:
            raise ParameterError(f"all boxes can be gone through in one or two columns, found {len(self.columns)}")
        exact.convert(self, cuts=exact.whole, rate=exact.positive)

    def guarantee(self, facts: Facts) -> Guarantee:
        self.labels.check(facts.domain)
        count = boxes(min(size, self.cuts) for size in grid_sizes(facts.domain, self.columns))
        if count > MOST:
            raise ParameterError(f"cuts={self.cuts} makes {count:,} boxes, more than 2**25: take fewer")
        return selection_price(self.rate, facts)

    def needs(self, facts: Facts) -> Needs:
        return Needs(functions=True)

    def run(self, data: Dataset, rng: Rng) -> Box:
        starts = [cell_starts(size, self.cuts) for size in grid_sizes(data.facts.domain, self.columns)]
        gains = data.exact_sum(functools.partial(self._gains, starts)).reshape(len(starts[0]) - 1, -1)
        levels, counts = _levels(gains)  # with one column the cells are a plane of width 1
        level = rng.select(levels, self.rate, counts)
        return _box_at(gains, int(levels[level]), rng.integers(int(counts[level])), starts)

    def _gains(self, starts: Sequence[Codes], batch: Batch) -> Codes:
        """Positives minus negatives in each cell: a box makes as many mistakes less than the empty one as they sum to.

        Cells are numbered from 1; "missing", the code after the last, comes after the last cell.
        """
        shape = tuple(len(firsts) - 1 for firsts in starts)
        places = [np.searchsorted(f, batch[name], side="right") for name, f in zip(self.columns, starts, strict=True)]
        inside = np.all([place <= side for place, side in zip(places, shape, strict=True)], axis=0)
        cell = np.ravel_multi_index([place[inside] - 1 for place in places], shape)
        positive = self.labels.mask(batch)[inside]
        both = np.bincount(cell * 2 + positive, minlength=2 * math.prod(shape)).reshape(-1, 2)
        return (both[:, 1] - both[:, 0]).astype(np.int64, copy=False)


def boxes(sides: Iterable[int]) -> int:
    """The number of boxes when the columns have these numbers of cells, with the empty box."""
    return 1 + math.prod(side * (side + 1) // 2 for side in sides)


def cell_starts(size: int, cuts: int) -> Codes:
    """The first code of every cell of a column of this size, and the code after the last."""
    cells = min(size, cuts)
    return np.array([place * size // cells for place in range(cells + 1)], dtype=np.int64)


# All boxes, in blocks: those whose first column starts at the same cell.


def _blocks(gains: Codes) -> Iterator[Codes]:
    """For each first cell a of the first column: what the boxes gain, by (last cell there, pair of the second)."""
    across = np.concatenate([np.zeros((len(gains), 1), dtype=np.int64), gains.cumsum(axis=1)], axis=1)
    left, right = _pairs(gains.shape[1])
    down = across[:, right + 1] - across[:, left]
    for first in range(len(gains)):
        yield down[first:].cumsum(axis=0)


def _pairs(side: int) -> tuple[Codes, Codes]:
    """Every first and last cell of an interval, in a fixed order."""
    first, last = np.triu_indices(side)
    return first, last


def _levels(gains: Codes) -> tuple[Codes, Codes]:
    """Every value that boxes gain, and how many boxes do; the empty box gains 0."""
    values, counts = [np.zeros(1, dtype=np.int64)], [np.ones(1, dtype=np.int64)]
    for block in _blocks(gains):
        least = int(block.min())
        if int(block.max()) - least > _MERGE:
            distinct, times = np.unique(block, return_counts=True)
        else:
            times = np.bincount(block.ravel() - least)
            (distinct,) = np.nonzero(times)
            distinct, times = distinct + least, times[distinct]
        values.append(distinct)
        counts.append(times)
        if sum(map(len, values)) > _MERGE:
            values, counts = ([part] for part in _merged(values, counts))
    return _merged(values, counts)


def _merged(values: Sequence[Codes], counts: Sequence[Codes]) -> tuple[Codes, Codes]:
    """The distinct values, with the sum of their counts."""
    distinct, places = np.unique(np.concatenate(values), return_inverse=True)
    totals = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(totals, places, np.concatenate(counts))
    return distinct, totals


def _box_at(gains: Codes, level: int, rank: int, starts: Sequence[Codes]) -> Box:
    """Of the boxes that gain this much, in a fixed order, the one of this rank; the empty box is the first of all."""
    if level == 0:
        if rank == 0:
            return empty_box(len(starts))
        rank -= 1
    for first, block in enumerate(_blocks(gains)):
        hits = np.flatnonzero(block == level)
        if rank < len(hits):
            below, pair = divmod(int(hits[rank]), block.shape[1])
            left, right = _pairs(gains.shape[1])
            ends = zip(((first, first + below), (left[pair], right[pair])), starts, strict=False)
            low, high = zip(*((codes[one], codes[other + 1] - 1) for (one, other), codes in ends), strict=True)
            return np.array(low, dtype=np.int64), np.array(high, dtype=np.int64)
        rank -= len(hits)
    raise AssertionError("there are fewer boxes than were counted")


# The promise.


def methods(
    columns: Sequence[str], labels: Labels, *, facts: Facts, beta: Fraction, funds: Funds, cuts: int | None = None
) -> Methods:
    """All boxes of the coarse grid. For more than two columns all boxes of the declared grid, as a row of a plan: its
    price is that over any list of rules, such as two, but the boxes are too many to list."""
    names = named_columns(columns, labels)

    def exhaustive() -> Method:
        listable = len(names) <= 2
        sizes, grid = grid_sizes(facts.domain, names), "the declared grid"
        if listable:
            parts = CUTS[len(names) - 1] if cuts is None else exact.whole(cuts=cuts)
            grid = grid if max(sizes) <= parts else f"a grid of {parts} cells in each column"
            sizes = [min(size, parts) for size in sizes]
            made: Any = calibrate(lambda noise: AllBoxes(names, labels, parts, 1 / noise), funds=funds, facts=facts)
        else:
            labels.check(facts.domain)
            two = (BoxRule.empty(names), BoxRule.full(names, facts.domain))
            made = calibrate(lambda noise: FiniteClass(two, labels, 1 / noise), funds=funds, facts=facts)
        count, rate, sure = boxes(sizes), float(made.rate), float(beta)

        too_many = (
            f"{NAME} is for at most two columns, found {len(names)}: it would list about "
            f"2**{count.bit_length() - 1} boxes; it is a row of the plan only"
        )

        def mechanism(alpha: float) -> Any:
            if listable:
                return made
            raise ParameterError(too_many)

        return Method(
            NAME,
            wrong_rows("exponential mechanism over all boxes", sure, best_of=f"all boxes of {grid}"),
            lambda alpha: empirical_size(math.log(count), alpha, sure, rate),
            mechanism,
            imagined="" if listable else too_many,
        )

    return Methods({NAME: exhaustive})
