"""Attacks on the learners of rules: a line of four values, or two booleans, and a label.

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
from discreet.data import Dataset, Facts
from discreet.domain import Category, Domain, Number
from discreet.guarantee import Guarantee, Neighbours
from discreet.noise import Rng
from discreet.pac.boxes import SlicedBox
from discreet.pac.conditions import Literals
from discreet.pac.conjunctions import NoisyCounts
from discreet.pac.enumeration import AllConjunctions
from discreet.pac.faces import FaceByFace
from discreet.pac.greedy import Falsified, GreedySelection, SelfDeleting
from discreet.pac.interior import InteriorPoint
from discreet.pac.labels import Labels
from discreet.pac.ranks import MinRank

Told = tuple[Any, Setting, tuple[Row, ...], tuple[Row, ...], Mistake]
"""A mechanism, its setting, two neighbouring tables and a mistake that must be caught."""

_LINE = Domain(x=Number(0, 3, step=1), y=Category("-", "+"))
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


SLICES_AS_ADDED = Mistake("prices the interior points of its slices for added values", price=_slices_as_added)
KEEPS_ROWS = Mistake("does not put aside the rows that a condition falsifies", run=_keeps_rows)
EXACT_THRESHOLD = Mistake("compares exact counts with its threshold", run=_exact_threshold)


def told() -> tuple[Told, ...]:
    """Every attack on a learner of rules."""
    replace, add = _setting(_LINE, "replace-one"), _setting(_LINE, "add-remove")
    bits, more_bits = _setting(_BITS, "replace-one"), _setting(_BITS, "add-remove")
    cheap, unpaid = mutants.ADD_REMOVE_PRICE, KEEPS_ROWS
    box = SlicedBox(("x",), _LABELS, MinRank(2), 2, 2, 0)
    hidden = SelfDeleting(_ONE_BIT, _LABELS, (1,) * 6, 1, 1, Fraction(1, 2), Fraction(1, 10))
    greedy, every = GreedySelection(_LITERALS, _LABELS, 1, 2, 1), AllConjunctions(_LITERALS, _LABELS, 2, 1)
    return (
        (InteriorPoint("x", MinRank(1)), replace, _points("0+", "0+", "0+"), _points("0+", "0+", "3+"), cheap),
        (FaceByFace(("x",), _LABELS, 1, 1), replace, _points("1+", "1-"), _points("1-", "1-"), cheap),
        (box, add, _points("0+", "0+", "0+", "0+"), _points("0+", "0+", "0+", "0+", "3+"), SLICES_AS_ADDED),
        (greedy, bits, _bits("00-", "11-"), _bits("11-", "11-"), cheap),
        (every, bits, _bits("00+", "00+"), _bits("00+", "11-"), cheap),
        (hidden, more_bits, _bits("00-"), _bits(), unpaid),
        (NoisyCounts(_ONE_BIT, _LABELS, 1, 1), bits, _bits("00+", "11+"), _bits("11+", "11+"), EXACT_THRESHOLD),
    )
