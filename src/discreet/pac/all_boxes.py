"""Learning a box by the exponential mechanism over all boxes of a coarse public grid: one or two columns.

    AllBoxes(columns, labels, cuts, rate)      P[box] proportional to exp(-rate * mistakes), and the empty box
    methods(...)                               with its proven size; for more columns a row of the plan only

Its theorem is agnostic: labels may be noisy, and no box need be right. With g cells a column there are about
(g^2 / 2)^d boxes; their mistakes follow from one histogram by prefix sums, some at a time. A box is drawn in two steps:
how many mistakes it makes, by how many boxes make so many, then one of these boxes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet import exact
from discreet.data import Batch, Codes, Dataset, Facts
from discreet.errors import ParameterError
from discreet.exact import Exact
from discreet.funds import Funds
from discreet.guarantee import Guarantee
from discreet.mechanisms import calibrate
from discreet.method import Method, Methods, wrong_rows
from discreet.pac.boxes import BoxRule
from discreet.pac.finite import FiniteClass, mistakes_range, selection_price
from discreet.pac.labels import Labels
from discreet.pac.reorder_slice_compute import Box, empty, grid_sizes, named_columns
from discreet.rng import Rng

NAME = "exhaustive"

CUTS = (1024, 64)
"""How many cells a column has unless it is said, for one column and for two."""

MOST = 2**25
"""More boxes are not gone through."""

_MERGE = 2**22


@dataclass(frozen=True, slots=True, init=False)
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

    def __init__(self, columns: Sequence[str], labels: Labels, cuts: int, rate: Exact) -> None:
        names = named_columns(columns, labels)
        if len(names) > 2:
            raise ParameterError(f"all boxes can be gone through in one or two columns, found {len(names)}")
        exact.freeze(self, columns=names, labels=labels, cuts=exact.whole(cuts=cuts), rate=exact.positive(rate=rate))

    def guarantee(self, facts: Facts) -> Guarantee:
        self.labels.check(facts.domain)
        found = boxes(cells(size, self.cuts) for size in grid_sizes(facts.domain, self.columns))
        if found > MOST:
            raise ParameterError(f"cuts={self.cuts} makes {found:,} boxes, more than 2**25: take fewer")
        return selection_price(self.rate, mistakes_range(facts.neighbours), facts)

    def run(self, data: Dataset, rng: Rng) -> Box:
        starts = [cell_starts(size, self.cuts) for size in grid_sizes(data.facts.domain, self.columns)]
        gains = _gains(data, self.columns, self.labels, starts)
        plane = gains.reshape(gains.shape[0], -1)  # one column: a plane of width 1
        levels, counts = _levels(plane)
        level = rng.select(levels, self.rate, counts)
        return _nth(plane, int(levels[level]), rng.integers(int(counts[level])), starts)


def boxes(sides: Iterable[int]) -> int:
    """How many boxes there are with so many cells in each column, and the empty one."""
    return 1 + math.prod(side * (side + 1) // 2 for side in sides)


def cells(size: int, cuts: int) -> int:
    """Into how many cells a column of so many values is cut."""
    return min(size, cuts)


def cell_starts(size: int, cuts: int) -> Codes:
    """The first code of every cell, and the code after the last."""
    parts = cells(size, cuts)
    return np.array([place * size // parts for place in range(parts + 1)], dtype=np.int64)


def _gains(data: Dataset, columns: Sequence[str], labels: Labels, starts: Sequence[Codes]) -> Codes:
    """Positives minus negatives in each cell: a box makes as many mistakes less than the empty one as it adds up to."""
    shape = tuple(len(each) - 1 for each in starts)

    def partial(batch: Batch) -> Codes:
        # Cells are numbered from 1; "missing", the code after the last, comes after the last cell.
        place = [np.searchsorted(each, batch[name], side="right") for name, each in zip(columns, starts, strict=True)]
        inside = np.all([each <= side for each, side in zip(place, shape, strict=True)], axis=0)
        cell = np.ravel_multi_index([each[inside] - 1 for each in place], shape)
        positive = labels.mask(batch)[inside]
        both = np.bincount(cell * 2 + positive, minlength=2 * math.prod(shape)).reshape(-1, 2)
        return (both[:, 1] - both[:, 0]).astype(np.int64, copy=False)

    return data.exact_sum(partial).reshape(shape)


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
        for each, found in zip((values, counts), _counted(block.ravel()), strict=True):
            each.append(found)
        if sum(map(len, values)) > _MERGE:
            merged = _merged(np.concatenate(values), np.concatenate(counts))
            values, counts = [merged[0]], [merged[1]]
    return _merged(np.concatenate(values), np.concatenate(counts))


def _counted(values: Codes) -> tuple[Codes, Codes]:
    """The distinct values and how often each occurs."""
    least = int(values.min())
    if int(values.max()) - least > _MERGE:
        found, times = np.unique(values, return_counts=True)
        return found, times
    times = np.bincount(values - least)
    found = np.flatnonzero(times)
    return found + least, times[found]


def _merged(values: Codes, counts: Codes) -> tuple[Codes, Codes]:
    """The distinct values, with the sum of their counts."""
    order = np.argsort(values, kind="stable")
    values = values[order]
    first = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    return values[first], np.add.reduceat(counts[order], first)


def _nth(gains: Codes, level: int, rank: int, starts: Sequence[Codes]) -> Box:
    """Of the boxes that gain this much, in a fixed order, the one of this rank; the empty box is the first of all."""
    if level == 0:
        if rank == 0:
            return empty(len(starts))
        rank -= 1
    for first, block in enumerate(_blocks(gains)):
        found = np.flatnonzero(block == level)
        if rank < len(found):
            below, pair = divmod(int(found[rank]), block.shape[1])
            left, right = _pairs(gains.shape[1])
            ends = [(first, first + below), (int(left[pair]), int(right[pair]))][: len(starts)]
            return _codes([low for low, _ in ends], starts), _codes([high + 1 for _, high in ends], starts) - 1
        rank -= len(found)
    raise AssertionError("there are fewer boxes than were counted")


def _codes(places: Sequence[int], starts: Sequence[Codes]) -> Codes:
    return np.array([each[place] for place, each in zip(places, starts, strict=True)], dtype=np.int64)


# The promise.


def methods(
    columns: Sequence[str],
    labels: Labels,
    *,
    facts: Facts,
    beta: Fraction,
    funds: Funds,
    cuts: int | None = None,
) -> Methods:
    """All boxes of the coarse grid; for more than two columns all boxes of the declared one, which nobody lists."""
    names = named_columns(columns, labels)
    make = _listed if len(names) <= 2 else _imagined
    return Methods({NAME: lambda: make(names, labels, facts, beta, funds, cuts)})


def _listed(
    columns: tuple[str, ...], labels: Labels, facts: Facts, beta: Fraction, funds: Funds, cuts: int | None
) -> Method:
    parts = CUTS[len(columns) - 1] if cuts is None else exact.whole(cuts=cuts)
    found = calibrate(lambda noise: AllBoxes(columns, labels, parts, 1 / noise), funds=funds, facts=facts)
    sizes = grid_sizes(facts.domain, columns)
    grid = "the declared grid" if max(sizes) <= parts else f"a grid of {parts} cells in each column"
    count = boxes(cells(size, parts) for size in sizes)
    return _method(count, found.rate, beta, grid, lambda alpha: found)


def _imagined(
    columns: tuple[str, ...], labels: Labels, facts: Facts, beta: Fraction, funds: Funds, cuts: int | None
) -> Method:
    labels.check(facts.domain)
    count = boxes(grid_sizes(facts.domain, columns))
    two = (BoxRule.empty(columns), BoxRule.full(columns, facts.domain))  # any list of rules has the price of two
    found = calibrate(lambda noise: FiniteClass(two, labels, 1 / noise), funds=funds, facts=facts)

    reason = (
        f"{NAME} is for at most two columns, found {len(columns)}: it would list about 2**{count.bit_length() - 1} "
        "boxes; it is a row of the plan only"
    )

    def refuse(alpha: float) -> Any:
        raise ParameterError(reason)

    return _method(count, found.rate, beta, "the declared grid", refuse, reason)


def _method(count: int, rate: Fraction, beta: Fraction, grid: str, mechanism: Any, imagined: str = "") -> Method:
    logs = math.log(count) - math.log(beta)
    return Method(
        NAME,
        wrong_rows("exponential mechanism over all boxes", float(beta), best_of=f"all boxes of {grid}"),
        lambda alpha: math.ceil(logs / (float(rate) * alpha) * (1 + 1e-9)),
        mechanism,
        imagined=imagined,
    )
