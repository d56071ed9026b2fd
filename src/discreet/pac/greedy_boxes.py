"""Learning a box face by face: every face is moved once, to where positives cut and negatives kept cost least.

    FaceByFace(columns, labels, weight, rate)      one public weight for all faces: what the theorem speaks about
    CountedFaces(columns, labels, scale, rate)     weights from a noisy count of both classes: what works best
    methods(...)                                   both: faces-proven, and faces

The box starts as the declared bounds. In a random order of the columns both faces of a column are drawn by the
exponential mechanism from every value of its grid inside the current box, and "empty". The cost of a position is

    positives that it cuts off + negatives that it keeps, divided by the weight,

counted among the rows of the current box. A learner that looks at positives alone must beat the size of the whole grid;
where negatives lie just outside a face, this cost rises on both sides of it and the grid hardly matters.

Memory. A column of up to 2^20 values is read as a histogram, batch by batch. Of a finer column the values of all rows
in the current box are gathered: that one column must fit in memory. For each column, the file is read for the columns
whose faces moved before.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet.core import Exact, Funds, ParameterError, exact
from discreet.data import Batch, Codes, Dataset, Facts, Mask, Needs
from discreet.mechanisms import (
    Guarantee,
    Neighbours,
    Rng,
    calibrate,
    checked_rate,
    checked_scale,
    person_range,
    wrong_rows,
)
from discreet.method import Method, Methods
from discreet.pac.boxes import ASSUMING, Box, empty_box, grid_sizes, named_columns
from discreet.pac.rules import Labels

NAME, PROVEN = "faces", "faces-proven"

HISTOGRAM = 2**20
"""A column with more values is gathered instead of counted value by value."""

BLOCK = 2**15
"""The number of rows that are compared with all faces at a time: they stay in the processor's cache."""

FIRST, LAST, MOST = 3, 2, 64
"""The weight of a first column is at least FIRST and at most MOST; it falls to LAST along the columns."""

EIGHTHS = 8
"""Weights are whole multiples of one eighth, so that costs are small whole numbers."""


@dataclass(frozen=True, slots=True)
class FaceByFace:
    """Learn a box by the exponential mechanism, face by face, with one public weight W >= 1.

    P[position] is proportional to exp(-rate * (positives cut + negatives kept / W)).

    Theorem.   One row's addition moves the costs of two positions apart by at most 1. A positive row replaced by a
               negative one: by at most 1 + 1/W; other replacements: by at most 1. So with r = 1 (add-remove) or 1 + 1/W
               (replace-one), times the rows of a person, a face has bounded range rate * r, and the 2 d faces compose.
    Accuracy.  Let g be the sum of (values + 1) over the columns, x = ln(2 g / beta) / rate. If a box of the grid labels
               every row right then, with probability 1 - beta, at most 2 d W x negatives are inside the learned box and
               at most 2 d x + (negatives) / W positives outside. Against any box that has FP* and FN* mistakes: at most
               FP* + 2 d W x + d W FN* and FN* + 2 d x + (negatives) / W.
    Edges.     No positives: mostly the empty box. No negatives: faces at or beyond the outermost positives. No rows:
               uniform positions. A row with a missing value is in no box.
    Reference. docs/proofs/faces.md; exponential mechanism [MT07], bounded range [DR19].
    """

    NAME: ClassVar[str] = "face-by-face/1"
    columns: tuple[str, ...]
    labels: Labels
    weight: Fraction
    rate: Fraction

    def __post_init__(self) -> None:
        if exact.number(weight=self.weight) < 1:
            raise ParameterError(f"weight must be >= 1, found {self.weight!r}")
        exact.freeze(self, columns=named_columns(self.columns, self.labels))
        exact.convert(self, weight=exact.number, rate=exact.positive)

    def guarantee(self, facts: Facts) -> Guarantee:
        _check(self.columns, self.labels, facts)
        cost = GreedyCost.of(self.weight)
        facts.require_room(cost.positive)
        span = checked_rate(self.rate / cost.positive) * cost.range(facts.neighbours)
        return 2 * len(self.columns) * Guarantee.of_bounded_range(span, neighbours=facts.neighbours)

    def needs(self, facts: Facts) -> Needs:
        return _face_needs(self.columns, facts, len(self.columns))

    def run(self, data: Dataset, rng: Rng) -> Box:
        cost = GreedyCost.of(self.weight)
        return learn_faces(data, self.columns, self.labels, lambda _: (cost, self.rate / cost.positive), rng)


@dataclass(frozen=True, slots=True)
class CountedFaces:
    """Learn a box face by face; the weights of the classes follow from a noisy count of them.

    Both classes are counted with Laplace noise of this scale. The first column's weight is 1 + negatives / positives,
    at least 3; it falls to 2 by equal factors, as negatives leave the box when its faces move in. A position costs
    (W * positives cut + negatives kept) / r, with r the most by which one row can move two such sums apart: W + 1
    (replace-one) or W (add-remove). P[position] is proportional to exp(-rate * cost).

    Theorem.   The counts are (D / scale)-DP, D = 2 (replace-one) or 1 (add-remove) times the rows of a person. Whatever
               they say, a face has bounded range rate times the rows of a person, and the 2 d faces compose with it.
    Accuracy.  No error is promised: the weights that work best are smaller than those of the theorem of `FaceByFace`.
               A certificate (`discreet.pac.mistake_bound`) says afterwards how wrong the box is.
    Edges.     As for FaceByFace. Too few positives to be told from noise: any box, mostly a small or empty one.
    Reference. docs/proofs/faces.md.
    """

    NAME: ClassVar[str] = "counted-faces/1"
    columns: tuple[str, ...]
    labels: Labels
    scale: Fraction
    rate: Fraction

    def __post_init__(self) -> None:
        exact.freeze(self, columns=named_columns(self.columns, self.labels))
        exact.convert(self, scale=exact.positive, rate=exact.positive)

    def guarantee(self, facts: Facts) -> Guarantee:
        _check(self.columns, self.labels, facts)
        facts.require_room(MOST * EIGHTHS)
        for eighths in (LAST * EIGHTHS, MOST * EIGHTHS):
            checked_rate(self.rate / GreedyCost(eighths, EIGHTHS).range(Neighbours(facts.neighbours.kind)))
        moved = person_range(facts.neighbours, added=1, replaced=2)  # a row leaves one class and may join the other
        counts = Guarantee.of_laplace(moved, scale=checked_scale(self.scale), neighbours=facts.neighbours)
        face = Guarantee.of_bounded_range(self.rate * facts.neighbours.rows, neighbours=facts.neighbours)
        return counts + 2 * len(self.columns) * face

    def needs(self, facts: Facts) -> Needs:
        return _face_needs(self.columns, facts, 1 + len(self.columns))

    def run(self, data: Dataset, rng: Rng) -> Box:
        negatives, positives = (class_counts(data, self.labels) + rng.laplace(checked_scale(self.scale), 2)).tolist()
        start, row = first_weight(positives, negatives, self.scale), Neighbours(data.facts.neighbours.kind)

        def score(turn: int) -> tuple[GreedyCost, Fraction]:
            cost = GreedyCost(falling(start, turn, len(self.columns)), EIGHTHS)
            return cost, self.rate / cost.range(row)

        return learn_faces(data, self.columns, self.labels, score, rng)


def first_weight(positives: int, negatives: int, scale: Fraction) -> int:
    """The weight of the first column in eighths, from noisy counts: positives lost in the noise count as its scale."""
    seen = max(positives, math.ceil(scale))
    whole = EIGHTHS * (seen + max(negatives, 0))
    return min(max(-(-whole // seen), FIRST * EIGHTHS), MOST * EIGHTHS)


def falling(start: int, turn: int, turns: int) -> int:
    """The weight at one of the turns, in eighths: from `start` down towards LAST by equal factors."""
    return round(start * math.pow(LAST * EIGHTHS / start, turn / turns))


@dataclass(frozen=True, slots=True)
class GreedyCost:
    """positive * (positives cut) + negative * (negatives kept), in whole numbers, positive >= negative."""

    positive: int
    negative: int

    @staticmethod
    def of(weight: Fraction) -> GreedyCost:
        return GreedyCost(weight.numerator, weight.denominator)

    def range(self, neighbours: Neighbours) -> int:
        """How far apart the costs of two positions of one face can move when a person changes."""
        return person_range(neighbours, added=self.positive, replaced=self.positive + self.negative)


def _check(columns: Sequence[str], labels: Labels, facts: Facts) -> None:
    labels.check(facts.domain)
    grid_sizes(facts.domain, columns)


def _face_needs(columns: Sequence[str], facts: Facts, passes: int) -> Needs:
    """A column of many values is gathered: 8 bytes for every row of the box."""
    large = any(size > HISTOGRAM for size in grid_sizes(facts.domain, columns))
    return Needs(functions=True, gathers=8 if large else 0, passes=passes)


def class_counts(data: Dataset, labels: Labels) -> Codes:
    """How many rows are negative, and how many positive."""
    return data.exact_sum(functools.partial(_class_counts, labels))


def _class_counts(labels: Labels, batch: Batch) -> Codes:
    positive = int(np.count_nonzero(labels.mask(batch)))
    return np.array([batch.rows - positive, positive], dtype=np.int64)


# The walk along the faces.


def learn_faces(
    data: Dataset,
    columns: tuple[str, ...],
    labels: Labels,
    score: Callable[[int], tuple[GreedyCost, Fraction]],
    rng: Rng,
) -> Box:
    """The box after both faces of every column moved; `score` gives the cost and its rate at each turn."""
    sizes = grid_sizes(data.facts.domain, columns)
    low, high = [0] * len(columns), [size - 1 for size in sizes]
    order, upper_first = rng.permutation(len(columns)), rng.integers(2, len(columns))
    for turn, place in enumerate(order.tolist()):
        tally = tally_values(data, CurrentBox(columns, tuple(low), tuple(high), tuple(sizes)), place, labels)
        cost, rate = score(turn)
        for upper in (upper_first[turn], 1 - upper_first[turn]):
            low[place], high[place] = move_face(tally, low[place], high[place], upper == 1, cost, rate, rng)
            if low[place] > high[place]:
                return empty_box(len(columns))
    return np.array(low, dtype=np.int64), np.array(high, dtype=np.int64)


def move_face(
    tally: ValueCounts, low: int, high: int, upper: bool, cost: GreedyCost, rate: Fraction, rng: Rng
) -> tuple[int, int]:
    """The interval of a column after one of its faces moved; low > high if nothing is left of it."""
    if upper:  # the same from the other end
        low, high = move_face(tally.mirrored(), -high, -low, False, cost, rate, rng)
        return -high, -low
    inside = tally.between(low, high)
    # Positions low .. v1 cut nothing, v1 + 1 .. v2 cut the rows at v1, and so on; the last run, up to high + 1, all.
    ends = np.concatenate([[low - 1], inside.values, [high + 1]])
    cut = np.concatenate([[0], inside.positives.cumsum()])
    kept = inside.negatives.sum() - np.concatenate([[0], inside.negatives.cumsum()])
    lengths = np.diff(ends)
    run = rng.select(-(cost.positive * cut + cost.negative * kept), rate, lengths)
    return int(ends[run]) + 1 + rng.integers(int(lengths[run])), high


@dataclass(frozen=True, slots=True)
class ValueCounts:
    """The rows of a box by their value in one column: values, rising, and how many of each class have them."""

    values: Codes
    positives: Codes
    negatives: Codes

    def mirrored(self) -> ValueCounts:
        return ValueCounts(-self.values[::-1], self.positives[::-1], self.negatives[::-1])

    def between(self, low: int, high: int) -> ValueCounts:
        here = slice(*np.searchsorted(self.values, [low, high + 1]).tolist())
        return ValueCounts(self.values[here], self.positives[here], self.negatives[here])


def tally_values(data: Dataset, box: CurrentBox, place: int, labels: Labels) -> ValueCounts:
    size = box.sizes[place]
    if size <= HISTOGRAM:
        negatives, positives = data.exact_sum(functools.partial(box.counts, place, labels)).reshape(2, size)
        values = np.flatnonzero(negatives + positives)
        return ValueCounts(values, positives[values], negatives[values])
    found = data.exact_gather(functools.partial(box.pairs, place, labels))
    pairs, times = np.unique(found, return_counts=True)
    values, at = np.unique(pairs >> 1, return_inverse=True)
    counts = np.zeros((2, len(values)), dtype=np.int64)
    counts[pairs & 1, at] = times
    return ValueCounts(values, counts[1], counts[0])


@dataclass(frozen=True, slots=True)
class CurrentBox:
    """A box while it is learned: which rows of a batch are in it. Faces at the declared bounds are not looked at."""

    columns: tuple[str, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    sizes: tuple[int, ...]

    def mask(self, batch: Batch) -> Mask:
        faces: list[tuple[Codes, Callable[[Codes, int], Mask], int]] = []
        for name, low, high, size in zip(self.columns, self.low, self.high, self.sizes, strict=True):
            if low > 0:
                faces.append((batch.stored(name), operator.ge, low))
            missing = batch.domain.column(name).missing_code  # the code after the last
            if high < size - 1 or missing is not None:
                faces.append((batch.stored(name), operator.le, high))
        kept = np.ones(batch.rows, dtype=bool)
        for start in range(0, batch.rows, BLOCK):
            here = kept[start : start + BLOCK]
            for codes, holds, bound in faces:
                here &= holds(codes[start : start + BLOCK], bound)
        return kept

    def counts(self, place: int, labels: Labels, batch: Batch) -> Codes:
        """How many rows of the box have each value: negatives, then positives. The last bin is for the other rows."""
        size, inside = self.sizes[place], self.mask(batch)
        bins = batch.stored(self.columns[place]) + labels.mask(batch) * np.int64(size)
        counts = np.bincount(np.where(inside, bins, 2 * size), minlength=2 * size + 1)[: 2 * size]
        return counts.astype(np.int64, copy=False)

    def pairs(self, place: int, labels: Labels, batch: Batch) -> Codes:
        """Twice the value of each row of the box, plus one if it is positive: values are below 2^62."""
        pairs: Codes = 2 * batch[self.columns[place]] + labels.mask(batch)
        return pairs[self.mask(batch)]


# The promise.


def methods(
    columns: Sequence[str], labels: Labels, *, facts: Facts, beta: Fraction, funds: Funds, negatives: Exact = 1
) -> Methods:
    """Face by face for this budget: "faces", with the weights that work best, and "faces-proven", with the weight that
    the theorem asks for; `negatives` is a public bound on the share of negative rows."""
    share = exact.positive(negatives=negatives)
    if share > 1:
        raise ParameterError(f"negatives must be a share of the rows, at most 1, found {negatives!r}")
    names, sure = tuple(columns), float(beta)

    def practical() -> Method:
        _check(names, labels, facts)

        @functools.cache
        def made() -> CountedFaces:
            return calibrate(lambda noise: counted(names, labels, noise), funds=funds, facts=facts)

        return Method.unproven(NAME, sure, made)

    def proven() -> Method:
        # The price of a face is its range, whatever the weight: the rate at weight 1 gives those of all others.
        plain = calibrate(lambda noise: FaceByFace(names, labels, Fraction(1), 1 / noise), funds=funds, facts=facts)
        positions = sum(grid_sizes(facts.domain, names)) + len(names)
        size = Size(len(names), math.log(2 * positions) - math.log(sure), plain.rate, facts.neighbours, float(share))

        def mechanism(alpha: float) -> FaceByFace:
            weight = size.weight(alpha)
            return FaceByFace(names, labels, weight, size.rate(weight))

        claim = wrong_rows("every face is near its best place", sure, ASSUMING)
        return Method(PROVEN, claim, size.needed, mechanism)

    return Methods({NAME: practical, PROVEN: proven})


def counted(columns: tuple[str, ...], labels: Labels, noise: Fraction) -> CountedFaces:
    """Faces of rate 1/noise, and a count of the classes that takes about 6 % of the whole price (replace-one)."""
    ratio = Fraction(exact.ceil_sqrt(Fraction(192**2, len(columns))), 16)
    return CountedFaces(columns, labels, noise * ratio, 1 / noise)


@dataclass(frozen=True, slots=True)
class Size:
    """How many rows face by face needs, from the rate that the budget admits at weight 1.

    Theorem.   n >= 2 d x (W + 1) / (alpha - nu / W) rows of which at most nu n are negative make the mistakes, at most
               2 d W x + 2 d x + nu n / W, at most alpha n.
    """

    dimension: int
    log_positions: float
    plain_rate: Fraction
    neighbours: Neighbours
    negatives: float

    def rate(self, weight: Fraction) -> Fraction:
        """The rate at this weight that costs as much as the plain one at weight 1."""
        cost, one = GreedyCost.of(weight), GreedyCost(1, 1)
        return self.plain_rate * one.range(self.neighbours) * cost.positive / cost.range(self.neighbours)

    def rows(self, weight: Fraction, alpha: float) -> float:
        left = alpha - self.negatives / float(weight)
        if left <= 0:
            return math.inf
        near = self.log_positions / float(self.rate(weight))
        return 2 * self.dimension * near * (float(weight) + 1) / left

    def weight(self, alpha: float) -> Fraction:
        """The weight that needs the fewest rows, among the multiples of one eighth."""
        nu = self.negatives
        best = 1 + 2 * nu / alpha if self.neighbours.replace_one else (nu + math.sqrt(nu * nu + alpha * nu)) / alpha
        below = max(EIGHTHS, math.floor(best * EIGHTHS))
        return min((Fraction(below + more, EIGHTHS) for more in (0, 1)), key=lambda weight: self.rows(weight, alpha))

    def needed(self, alpha: float) -> int:
        return math.ceil(self.rows(self.weight(alpha), alpha) * (1 + 1e-9))
