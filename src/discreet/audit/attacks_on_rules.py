"""Attacks on the learners of rules: a line of two or four values, or two booleans, and a label.

Each mechanism is small enough for its law to be listed, and stands beside a mistake that was made, or nearly made, in
arranging it.
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.audit import mutants
from discreet.audit.laws import Row, Setting
from discreet.audit.mutants import Mistake
from discreet.data import Category, Dataset, Domain, Facts, Number
from discreet.guarantee import Guarantee, Neighbours
from discreet.pac.all_boxes import AllBoxes
from discreet.pac.all_conjunctions import AllConjunctions
from discreet.pac.boxes import ReorderSlice, SlicedBox, empty, positives
from discreet.pac.conjunctions import GaussianCounts, LaplaceCounts, NoisyCounts
from discreet.pac.finite import FiniteClass
from discreet.pac.greedy import Falsified, GreedySelection, SelfDeleting, WeighedGreedy
from discreet.pac.greedy_boxes import EIGHTHS, FIRST, Cost, CountedFaces, FaceByFace
from discreet.pac.interior.methods import InteriorPoint
from discreet.pac.interior.rank import MinRank
from discreet.pac.rules import Labels, Literals, Where
from discreet.query import Equals, Not
from discreet.rng import Rng

Told = tuple[Any, Setting, tuple[Row, ...], tuple[Row, ...], Mistake]
"""A mechanism, its setting, two neighbouring tables and a mistake that must be caught."""

_LINE = Domain(x=Number(0, 3, step=1), y=Category("-", "+"))
_SHORT = Domain(x=Number(0, 1, step=1), y=Category("-", "+"))
_BITS = Domain(a=Category(0, 1), b=Category(0, 1), y=Category("-", "+"))
_LABELS, _LITERALS, _ONE_BIT = Labels("y", "+"), Literals(("a", "b")), Literals("a")


def _setting(domain: Domain, kind: str) -> Setting:
    return Setting(domain, Neighbours(kind))


def _points(*words: str) -> tuple[Row, ...]:
    """ "3+" is a positive row of the line at 3."""
    return tuple({"x": int(word[0]), "y": word[1]} for word in words)


def _bits(*words: str) -> tuple[Row, ...]:
    """ "01-" is a negative row with a = 0 and b = 1."""
    return tuple({"a": int(word[0]), "b": int(word[1]), "y": word[2]} for word in words)


def _slices_as_added(honest: SlicedBox, facts: Facts) -> Guarantee:
    """The mistake that an add-remove outside suggests: a slice of fixed size changes by a replacement."""
    believed = honest.routine.guarantee(Neighbours("add-remove"), 4) * (2 * len(honest.columns))
    count = Guarantee.of_laplace(1, scale=honest.few_scale, neighbours=facts.neighbours)
    return count + dataclasses.replace(believed, neighbours=facts.neighbours)


def _keeps_rows(honest: SelfDeleting, data: Dataset, rng: Rng) -> tuple[Any, ...]:
    """The counts of all rows in every round."""
    counts = data.exact_sum(Falsified(honest.conditions, honest.labels, ()).partial)
    drawn: list[int | None] = []
    for threshold in honest.thresholds:
        scores = honest.scores(counts, threshold)
        found = rng.select(scores, honest.rate)
        drawn.append(found if found < len(scores) - 1 else None)
    return tuple(drawn)


def _exact_threshold(honest: NoisyCounts, data: Dataset, rng: Rng) -> tuple[int, ...]:
    """Which literals no positive row falsifies, exactly."""
    counts = data.exact_sum(Falsified(honest.literals, honest.labels, ()).partial)[1, :-1]
    return tuple(np.flatnonzero(counts == 0).tolist())


def _without_total(honest: LaplaceCounts, facts: Facts) -> Guarantee:
    moved = honest.literals.variables(facts.domain)
    return Guarantee.of_laplace(moved, scale=honest.scale, neighbours=facts.neighbours)


def _undivided_costs(honest: CountedFaces, data: Dataset, rng: Rng) -> Any:
    """The faces' costs by the first weight there is, as they are."""
    moved = Cost(FIRST * EIGHTHS, EIGHTHS).range(Neighbours(data.facts.neighbours.kind))
    return dataclasses.replace(honest, rate=honest.rate * moved / EIGHTHS).run(data, rng)


class _Undivided:
    """Randomness that draws every selection at one rate, whatever it is asked for."""

    def __init__(self, rate: Fraction, rng: Rng) -> None:
        self.rate, self.laplace, self._select = rate, rng.laplace, rng.select

    def select(self, scores: Any, rate: Fraction) -> int:
        return self._select(scores, self.rate)


def _undivided_scores(honest: WeighedGreedy, data: Dataset, rng: Rng) -> tuple[int, ...]:
    return honest.run(data, _Undivided(honest.rate, rng))  # type: ignore[arg-type]


def _exactly_few(honest: ReorderSlice, data: Dataset, rng: Rng) -> Any:
    if positives(data, honest.labels) < honest.threshold:
        return empty(len(honest.columns))
    return dataclasses.replace(honest, threshold=0, few_scale=Fraction(1, 1000)).run(data, rng)


SLICES_AS_ADDED = Mistake("prices the interior points of its slices for added values", price=_slices_as_added)
KEEPS_ROWS = Mistake("does not put aside the rows that a condition falsifies", run=_keeps_rows)
EXACT_THRESHOLD = Mistake("compares exact counts with its threshold", run=_exact_threshold)
NO_TOTAL = Mistake("forgets that the number of positives is told, too", price=_without_total)
UNDIVIDED_COSTS = Mistake("does not divide its costs by how far a row moves them", run=_undivided_costs)
UNDIVIDED_SCORES = Mistake("does not divide its scores by the weight", run=_undivided_scores)
EXACTLY_FEW = Mistake("compares the exact number of positives with its threshold", run=_exactly_few)


def told() -> tuple[tuple[Told, int], ...]:
    """Every attack on a learner of rules, each with how far its noise is listed."""
    return (*((each, 16) for each in _one_draw()), *_counting())


def _one_draw() -> tuple[Told, ...]:
    """Learners that draw a few selections, or little noise."""
    replace, add = _setting(_LINE, "replace-one"), _setting(_LINE, "add-remove")
    bits, more_bits = _setting(_BITS, "replace-one"), _setting(_BITS, "add-remove")
    cheap, unpaid = mutants.ADD_REMOVE_PRICE, KEEPS_ROWS
    box = SlicedBox(("x",), _LABELS, MinRank(2), 2, 2, 0)
    hidden = SelfDeleting(_ONE_BIT, _LABELS, (1,) * 6, 1, 1, Fraction(1, 2), Fraction(1, 10))
    halves = FiniteClass((Where(Equals("a", 1)), Where(Not(Equals("a", 1)))), _LABELS, 1)
    greedy, every = GreedySelection(_LITERALS, _LABELS, 1, 2, 1), AllConjunctions(_LITERALS, _LABELS, 2, 1)
    return (
        (InteriorPoint("x", MinRank(1)), replace, _points("0+", "0+", "0+"), _points("0+", "0+", "3+"), cheap),
        (FaceByFace(("x",), _LABELS, 1, 1), replace, _points("1+", "1-"), _points("1-", "1-"), cheap),
        (box, add, _points("0+", "0+", "0+", "0+"), _points("0+", "0+", "0+", "0+", "3+"), SLICES_AS_ADDED),
        (AllBoxes("x", _LABELS, 4, 1), replace, _points(*["0-"] * 4), _points("0-", "0-", "0-", "0+"), cheap),
        (halves, bits, _bits("10+", "10+", "10+"), _bits("10+", "10+", "10-"), cheap),
        (greedy, bits, _bits("00-", "11-"), _bits("11-", "11-"), cheap),
        (every, bits, _bits("00+", "00+"), _bits("00+", "11-"), cheap),
        (hidden, more_bits, _bits("00-"), _bits(), unpaid),
        (NoisyCounts(_ONE_BIT, _LABELS, 1, 1), bits, _bits("00+", "11+"), _bits("11+", "11+"), EXACT_THRESHOLD),
    )


def _counting() -> tuple[tuple[Told, int], ...]:
    """Learners that begin with noisy counts, or end with them: their noise is listed as far as it matters."""
    short, shorter = _setting(_SHORT, "replace-one"), _setting(_SHORT, "add-remove")
    bits, more_bits = _setting(_BITS, "replace-one"), _setting(_BITS, "add-remove")
    gaussian = GaussianCounts(_ONE_BIT, _LABELS, 1, 1, 2)
    laplace = LaplaceCounts(_ONE_BIT, _LABELS, 2, 1, 1)
    weighed = WeighedGreedy(_ONE_BIT, _LABELS, 2, 1, Fraction(1, 2))
    slices = ReorderSlice(
        ("x",), _LABELS, MinRank(1), count=1, spread=2, slack=1, rounds=2, few_scale=Fraction(1, 4), threshold=2
    )
    three, many = ["00+"] * 3, ["00-"] * 8
    return (
        ((gaussian, bits, _bits(*three, "10+"), _bits(*three, "00+"), mutants.ADD_REMOVE_PRICE), 8),
        ((laplace, more_bits, _bits(*three, "00+"), _bits(*three), NO_TOTAL), 12),
        ((weighed, more_bits, _bits(*many, "00+"), _bits(*many), UNDIVIDED_SCORES), 4),
        (
            (
                CountedFaces("x", _LABELS, 1, 1),
                short,
                _points("1-", "1-", "1-"),
                _points("1-", "1-", "1+"),
                UNDIVIDED_COSTS,
            ),
            6,
        ),
        ((slices, shorter, _points("0+", "1+"), _points("0+"), EXACTLY_FEW), 6),
    )
