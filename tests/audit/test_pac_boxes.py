"""Exact laws of the box learners on neighbouring tables, and twins that must be caught.

The noise of the count and the random sizes have infinitely many values, but beyond the number of rows they all mean the
same; `lumped` gives the last value the whole tail, so the laws here are exact and nothing is missing from them.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.audit import laws
from discreet.audit.divergence import hockey_stick, loss
from discreet.audit.laws import Setting, law
from discreet.audit.mutants import Mistake, Twin
from discreet.audit.search import Pair, climb, start
from discreet.data import Facts
from discreet.domain import Category, Domain, Number
from discreet.guarantee import Guarantee, Neighbours
from discreet.noise import SeededRng
from discreet.pac.boxes import SlicedBox
from discreet.pac.interior import MinRank
from discreet.pac.labels import Labels
from discreet.pac.slices import ReorderSlice, empty, faces, few_price, grid_sizes, placed, positives, rising

LABELS = Labels("y", "+")
LINE = Domain(x=Number(0, 3, step=1), y=Category("-", "+"))
PLANE = Domain(x=Number(0, 1, step=1), z=Number(0, 1, step=1), y=Category("-", "+"))
KINDS = ("replace-one", "add-remove")


@dataclass(frozen=True)
class Toy:
    """A setting whose tables remember their sums and slices: an enumeration asks for them again and again."""

    domain: Domain
    neighbours: Neighbours
    unit: str | None = None

    def table(self, rows):
        return _Remembering(Setting(self.domain, self.neighbours, self.unit).table(rows))

    def facts(self, rows=()):
        size = 5 if self.neighbours.replace_one else None
        return Facts(self.domain, self.neighbours, size)


class _Remembering(laws._Remembering):
    def __init__(self, table: Any) -> None:
        super().__init__(table)
        self._slices: dict[Any, Any] = {}

    def exact_slices(self, slices, *, where=None, disjoint):
        key = (tuple(slices), where, disjoint)
        if key not in self._slices:
            self._slices[key] = super().exact_slices(slices, where=where, disjoint=disjoint)
        return self._slices[key]


@pytest.fixture(autouse=True)
def lumped(monkeypatch):
    """The last atom of a noise holds the whole tail."""

    def one_sided(scale, reach):
        q = math.exp(-1 / scale)
        return [(k, (1 - q) * q**k) for k in range(reach)] + [(reach, q**reach)]

    def two_sided(scale, reach):
        q = math.exp(-1 / scale)
        inner = [(k, (1 - q) / (1 + q) * q ** abs(k)) for k in range(1 - reach, reach)]
        return [(-reach, q**reach / (1 + q)), *inner, (reach, q**reach / (1 + q))]

    monkeypatch.setattr(laws, "_one_sided", one_sided)
    monkeypatch.setattr(laws, "_two_sided", two_sided)


def toys(domain, rows=1):
    unit = "person" if rows > 1 else None
    return [Toy(domain, Neighbours(kind, rows), unit) for kind in KINDS]


def people(text, domain=LINE):
    """Positive rows, one digit for each column: "0 3" are two points of a line, "01 11" two of a plane."""
    names = [name for name in domain if name != "y"]
    return [{**dict(zip(names, map(int, word), strict=True)), "y": "+"} for word in text.split()]


def laws_of(mechanism, setting, reach):
    """The exact laws, each found once."""
    known: dict[Any, Any] = {}

    def of(rows):
        key = tuple(sorted(tuple(row[name] for name in setting.domain) for row in rows))
        if key not in known:
            known[key] = law(mechanism, rows, setting, reach=reach)
        return known[key]

    return of


def worst_loss(mechanism, setting, *, steps, seed, begin=(), reach=8, most=5):
    """The largest pure loss that climbing finds, over the promised one."""
    of = laws_of(mechanism, setting, reach)
    promised = float(mechanism.guarantee(setting.facts()).pure)

    def score(pair: Pair) -> float:
        return loss(of(pair.first), of(pair.second)) / promised

    return climb(score, start(setting, begin), setting, steps=steps, rng=SeededRng(seed), most=most)[1]


# --- overlapping slices ----------------------------------------------------------------------------------------------


def sliced(count=2, rate=Fraction(1, 2), few_scale=3, margin=1, columns=("x",)):
    return SlicedBox(columns, LABELS, MinRank(rate), count, few_scale, margin)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("setting", toys(LINE), ids=KINDS)
def test_no_neighbours_tell_a_sliced_box_apart_better_than_promised(setting, count):
    found = worst_loss(sliced(count), setting, steps=40, seed=count, begin=people("0 1 2 3"))
    assert 0.2 < found <= 1 + 1e-9
