"""Slices of the positive rows, one for each face of a box, and Reorder-Slice-Compute on them.

A face of a box is a column and a side. Its slice are the positive rows that are most extreme there; an interior point
of the slice is a good place for the face: inside the positives, with no more of them outside than the slice holds.

Two ways to take the 2 d slices, with two prices:

    overlapping    every slice from all positives, of one fixed size: 2 d compositions (`boxes.SlicedBox`)
    disjoint       every slice from what the earlier ones left, of a hidden random size: a price that does not grow with
                   d (`ReorderSlice`)

Both begin with a noisy count: with too few positives the answer is the empty box. Proofs: docs/proofs/boxes.md.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet import exact
from discreet.data import AnyNumber, Codes, Dataset, Domain, Facts, Number, Slice, Whole
from discreet.errors import OutOfRange, ParameterError
from discreet.exact import Exact
from discreet.guarantee import Guarantee, Neighbours
from discreet.pac.columns import distinct, points
from discreet.pac.interior.rank import Routine
from discreet.pac.labels import Labels
from discreet.query import Count, Equals
from discreet.rng import Rng, checked_scale

Box = tuple[Codes, Codes]

ASSUMING = "if a box of the declared grid labels every row right"

_DIGITS = 100
_FINE = 10**40  # failures are rounded up to a multiple of one over this
_LEAST, _MOST = Fraction(1, 2**60), Fraction(64)


@dataclass(frozen=True, slots=True, init=False)
class ReorderSlice:
    """Learn a box from 2 d disjoint slices of the positive rows: Reorder-Slice-Compute.

    The noisy number of positives is below `threshold`: the empty box. Otherwise, for each column and side in turn, the
    `count` + G most extreme rows that are left are taken away, G fresh with P[G >= g] = exp(-g/spread), and the routine
    releases a point of them. Sizes stay hidden.

    Theorem.   With e = 1/spread, a = slack, t = rounds, a routine that is (e_a, d_a)-DP when a value is added and
               (e_r, d_r)-DP when one is replaced, and k = kappa(e, a) < 1 (`kappa`): let E_1 = a + e_a,
               E_t = a + e_r + E_(t-1); D_1 = (1-k) d_a, D_t = (1-k) d_a + k (d_r + D_(t-1)). For one row a person the
               2 d points are (E_t, k^t + D_t)-DP under add-remove and (E_t + e + e_a, k^t + D_t + e^(E_t) d_a)-DP under
               replace-one, whatever d is; for several rows by group privacy (`reordered`). The count adds
               (rows/few_scale)-DP.
    Accuracy.  `boxes.methods`. Every positive that was not taken is in the box; every point between values of positive
               rows keeps negatives of a box outside.
    Edges.     A slice may be shorter than its size, or empty: the routine takes any list. Rows with a missing value in
               a column are in none of its slices. Rows are ordered by (value, whole row), never by arrival.
    Reference. [CLNSS23]; constants and proof: docs/proofs/boxes.md.
    """

    NAME: ClassVar[str] = "reorder-slice-box/1"
    columns: tuple[str, ...]
    labels: Labels
    routine: Routine
    count: int
    spread: Fraction
    slack: Fraction
    rounds: int
    few_scale: Fraction
    threshold: int

    def __init__(
        self,
        columns: Sequence[str],
        labels: Labels,
        routine: Routine,
        *,
        count: int,
        spread: Exact,
        slack: Exact,
        rounds: int,
        few_scale: Exact,
        threshold: int,
    ) -> None:
        exact.freeze(
            self,
            columns=checked(columns, labels, routine),
            labels=labels,
            routine=routine,
            count=exact.whole(minimum=0, count=count),
            spread=exact.positive(spread=spread),
            slack=exact.positive(slack=slack),
            rounds=exact.whole(rounds=rounds),
            few_scale=exact.positive(few_scale=few_scale),
            threshold=exact.whole(minimum=0, threshold=threshold),
        )

    def guarantee(self, facts: Facts) -> Guarantee:
        checked_scale(self.spread)
        sizes = grid_sizes(facts.domain, self.columns)
        return few_price(self.labels, self.few_scale, facts) + self.reordered(sizes, facts.neighbours)

    def reordered(self, sizes: Sequence[int], neighbours: Neighbours) -> Guarantee:
        """The price of the points alone, when the columns' grids have these sizes."""
        added, replaced = (
            worst([self.routine.guarantee(Neighbours(kind), size) for size in sorted(set(sizes))])
            for kind in ("add-remove", "replace-one")
        )
        found = reordered(
            added, replaced, gap=1 / self.spread, slack=self.slack, rounds=self.rounds, neighbours=neighbours
        )
        return Guarantee.of_approximate(found.epsilon, delta=found.delta, neighbours=neighbours)

    def run(self, data: Dataset, rng: Rng) -> Box:
        if positives(data, self.labels) + rng.laplace(self.few_scale) < self.threshold:
            return empty(len(self.columns))
        extra = rng.geometric(self.spread, 2 * len(self.columns)).tolist()
        wanted = faces(self.columns, [self.count + more for more in extra])
        slices = data.exact_slices(wanted, where=self.labels, disjoint=True)
        sizes = grid_sizes(data.facts.domain, self.columns)
        return placed(self.routine, [rising(each, face) for each, face in zip(slices, wanted, strict=True)], sizes, rng)


# What both ways share.


def checked(columns: Sequence[str], labels: Labels, routine: Routine) -> tuple[str, ...]:
    """The names, if the three fit together."""
    if not isinstance(routine, Routine):
        raise ParameterError(f"routine must be one such as MinRank, found {routine!r}")
    return named_columns(columns, labels)


def named_columns(columns: Sequence[str], labels: Labels) -> tuple[str, ...]:
    """The names of a box's columns: distinct, at least one, and not the labels' own."""
    if not isinstance(labels, Labels):
        raise ParameterError(f"labels must be Labels(column, positive), found {type(labels).__name__}")
    found = distinct(columns)
    if labels.column in found:
        raise ParameterError(f"columns must not contain the target {labels.column!r}")
    return found


def grid_sizes(domain: Domain, columns: Sequence[str]) -> list[int]:
    """How many values each column of a box may have."""
    found = []
    for name in columns:
        column = domain.column(name)
        if not isinstance(column, (Number, AnyNumber, Whole)):  # no table holds a Whole: it is for plans
            raise ParameterError(f"column {name!r} is declared {column!r}: a box needs Numbers")
        found.append(points(column))
    return found


def few_price(labels: Labels, scale: Fraction, facts: Facts) -> Guarantee:
    """What the noisy count of positives costs."""
    labels.check(facts.domain)
    moved = _counted(labels).sensitivity(facts)
    return Guarantee.of_laplace(moved.l1, scale=checked_scale(scale), neighbours=facts.neighbours)


def positives(data: Dataset, labels: Labels) -> int:
    """The exact number of positive rows. Not private: for the inside of `run`."""
    return int(data.exact_sum(_counted(labels).partial))


def _counted(labels: Labels) -> Count:
    return Count(Equals(labels.column, labels.positive))


def empty(dimension: int) -> Box:
    """The box that holds nothing, as it is released."""
    return np.ones(dimension, dtype=np.int64), np.zeros(dimension, dtype=np.int64)


def faces(columns: Sequence[str], counts: Sequence[int]) -> list[Slice]:
    """One slice for each face, in a fixed order: low and high side of each column."""
    sides = [(name, side) for name in columns for side in ("low", "high")]
    return [Slice(name, side, count) for (name, side), count in zip(sides, counts, strict=True)]


def rising(values: Codes, face: Slice) -> Codes:
    """A slice, most extreme first, in increasing order."""
    return values if face.side == "low" else values[::-1]


def padded(values: Codes, face: Slice, size: int) -> Codes:
    """A rising slice of exactly the wanted size: what is missing are values at the far end of its order."""
    filler = np.full(face.count - len(values), size - 1 if face.side == "low" else 0, dtype=np.int64)
    return np.concatenate([values, filler] if face.side == "low" else [filler, values])


def placed(routine: Routine, slices: Sequence[Codes], sizes: Sequence[int], rng: Rng) -> Box:
    """One point of each slice, as the lows and highs of a box."""
    ends = [routine.point(values, sizes[place // 2], rng) for place, values in enumerate(slices)]
    return np.array(ends[::2], dtype=np.int64), np.array(ends[1::2], dtype=np.int64)


def on_slices(routine: Routine, sizes: Sequence[int], neighbours: Neighbours) -> Guarantee:
    """The price of one point of a slice of fixed size for each face.

    Theorem.   When one person's rows, at most k, are added, removed or replaced, a slice of fixed size (padded) changes
               by at most k replacements, under either relation. So the routine is priced for k replacements.
    Reference. docs/proofs/boxes.md.
    """
    inside = Neighbours("replace-one", neighbours.rows)
    total = Guarantee.nothing(neighbours)
    for size, columns in Counter(sizes).items():
        total += replace(routine.guarantee(inside, size), neighbours=neighbours) * (2 * columns)
    return total


# The price of Reorder-Slice-Compute.


@dataclass(frozen=True, slots=True)
class Block:
    """(epsilon, delta)-DP."""

    epsilon: Fraction
    delta: Fraction


def worst(found: Sequence[Guarantee]) -> Block:
    """The largest of several guarantees, as pure privacy outside a failure."""
    if any(each.pure is None for each in found):
        raise ParameterError("Reorder-Slice-Compute needs a routine with a pure guarantee outside its failures")
    return Block(max(each.pure for each in found if each.pure is not None), max(each.failure for each in found))


def reordered(
    added: Block, replaced: Block, *, gap: Fraction, slack: Fraction, rounds: int, neighbours: Neighbours
) -> Block:
    """The price of any number of reordered slices; the theorem of `ReorderSlice`, for a person of k rows.

    Theorem.   Adding one row is (E, d) one way, d = kappa^t + D_t, and (E', d_a) back, E' = gap + e_a <= E. k rows one
               after the other: (k E, d S_k(E)) and (k E', d_a S_k(E')), S_k(x) = 1 + e^x + ... + e^((k-1) x). A
               replacement removes first, then adds: (k (E + E'), d S_k(E) + e^(k E) d_a S_k(E')).
    """
    forth = _adding(added, replaced, gap=gap, slack=slack, rounds=rounds)
    back, rows = Block(gap + added.epsilon, added.delta), neighbours.rows
    if neighbours.replace_one:
        epsilon = rows * (forth.epsilon + back.epsilon)
        delta = forth.delta * _group(rows, forth.epsilon)
        if back.delta:
            delta += _exp_up(rows * forth.epsilon) * back.delta * _group(rows, back.epsilon)
    else:
        epsilon = rows * max(forth.epsilon, back.epsilon)
        delta = max(forth.delta * _group(rows, forth.epsilon), back.delta * _group(rows, back.epsilon))
    if delta >= 1:
        raise OutOfRange("Reorder-Slice-Compute promises nothing with so little noise", too_much=False)
    return Block(epsilon, Fraction(math.ceil(delta * _FINE), _FINE))


def _adding(added: Block, replaced: Block, *, gap: Fraction, slack: Fraction, rounds: int) -> Block:
    """(E_t, kappa^t + D_t)."""
    left = kappa(gap, slack)
    swap = max(replaced.delta, added.delta)  # then D grows with kappa, and an upper bound of kappa gives one of D
    epsilon, delta = slack + added.epsilon, (1 - left) * added.delta
    for _ in range(rounds - 1):
        epsilon = slack + max(added.epsilon, replaced.epsilon + epsilon)
        delta = (1 - left) * added.delta + left * (swap + delta)
    return Block(epsilon, left**rounds + delta)


@functools.lru_cache(maxsize=2**14)
def kappa(gap: Fraction, slack: Fraction) -> Fraction:
    """How much of a slice's law cannot be matched by the law without the row; an upper bound, to within 1e-30.

    Theorem.   q = e^-gap, U_0 = 0, U_(i+1) = min(1, e^gap (e^slack - 1 + U_i)), kappa = sum (1-q) q^i (1 - U_i). As
               long as U_i < 1, q^i U_i = (e^slack - 1) (1 - q^i) / (1 - q); let J be the first i with U_i = 1, the
               least with e^(i gap) >= 1 + (1 - q) / (e^slack - 1). Then
               kappa = (1 - q^J) - (e^slack - 1) (J - (1 - q^J) / (1 - q)): a finite sum, nothing is cut off.
    Rounding.  Decimal's exp and ln are right to the last of 100 digits. For gap and slack in 2^-60 .. 64 the formula
               loses fewer than 60 of them; a J that is wrong by one changes the sum by a term below 1e-39. The result
               is raised by 1e-30.
    """
    if not (_LEAST <= gap <= _MOST and _LEAST <= slack <= _MOST):
        few = max(gap, slack) > _MOST
        raise OutOfRange("1/spread and slack must lie between 2**-60 and 64", too_much=not few)
    with localcontext(Context(prec=_DIGITS)):
        step, rise = _decimal(gap), _decimal(slack).exp() - 1
        q = (-step).exp()
        last = math.ceil((1 + (1 - q) / rise).ln() / step)
        taken = 1 - (-step * last).exp()
        found = Fraction(taken - rise * (last - taken / (1 - q)))
    return min(Fraction(1), Fraction(math.ceil(found * 10**35), 10**35) + Fraction(1, 10**30))


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _group(rows: int, epsilon: Fraction) -> Fraction:
    """S_k: 1 + e^epsilon + ... + e^((k-1) epsilon), rounded up."""
    return sum((_exp_up(place * epsilon) for place in range(rows)), Fraction(0))


def _exp_up(exponent: Fraction) -> Fraction:
    """e^exponent, rounded up."""
    if exponent == 0:
        return Fraction(1)
    if exponent > 10_000:
        raise OutOfRange("Reorder-Slice-Compute promises nothing with so little noise", too_much=False)
    with localcontext(Context(prec=50)):
        return Fraction(_decimal(exponent).exp()) * (1 + Fraction(1, 10**40))
