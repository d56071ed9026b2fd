"""Exact laws of the greedy learners on neighbouring tables: everything that is drawn, not only what is released.

Two boolean columns make four literals and "none". Every transcript of up to five draws is enumerated by running the
mechanism's own code, under both relations, for persons of one and of two rows, and the worst pair of tables is looked
for by climbing. What the hazard lemma claims is compared at every epsilon, not only at the one that is charged.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.audit import mutants
from discreet.audit.divergence import EPSILONS, compare, hockey_stick, loss
from discreet.audit.laws import Law, Setting, _Remembering, law
from discreet.audit.mutants import Mistake, Twin
from discreet.audit.search import Pair, climb, start
from discreet.domain import Category, Domain
from discreet.guarantee import Neighbours
from discreet.noise import SeededRng
from discreet.pac import hazard
from discreet.pac.conditions import Literals
from discreet.pac.greedy import Falsified, GreedySelection, SelfDeleting, WeighedGreedy
from discreet.pac.labels import Labels

TOY = Domain(a=Category(0, 1), b=Category(0, 1), y=Category("-", "+"))
LITERALS, LABELS = Literals(("a", "b")), Labels("y", "+")
ADD, REPLACE = (Setting(TOY, Neighbours(kind)) for kind in ("add-remove", "replace-one"))
PERSONS = [Setting(TOY, Neighbours(kind, 2), unit="who") for kind in ("add-remove", "replace-one")]
BOTH = [ADD, REPLACE]
NAMES = ["add", "replace"]
FAILURE = Fraction(1, 1000)


@dataclass
class Whole:
    """A mechanism that releases its whole transcript, and asks its table for each sum once."""

    honest: Any
    seen: list[Any] = field(default_factory=list)

    def guarantee(self, facts):
        return self.honest.guarantee(facts)

    def run(self, data, rng):
        if not self.seen or self.seen[0] is not data:
            self.seen = [data, _Remembering(data)]
        drawn = self.honest.transcript if hasattr(self.honest, "transcript") else self.honest.run
        return drawn(self.seen[1], rng)


def row(text: str) -> dict[str, Any]:
    """Three letters: two bits and a sign."""
    return {"a": int(text[0]), "b": int(text[1]), "y": text[2]}


def rows(*texts: str) -> list[dict[str, Any]]:
    return [row(text) for text in texts]


def laws(mechanism, pair: Pair, setting: Setting, reach: int = 6) -> tuple[Law, Law]:
    first, second = (law(Whole(mechanism), each, setting, reach=reach) for each in (pair.first, pair.second))
    return first, second


def hazard_ratio(p: Law, q: Law, rate: Any, relation: Neighbours, epsilons=EPSILONS) -> float:
    """The largest found / claimed over many epsilons, where the claim is not vanishingly small."""
    worst = 0.0
    for epsilon in epsilons:
        claimed = hazard.profile(rate, epsilon, relation)
        if claimed > 1e-7:
            found = max(hockey_stick(p, q, epsilon)[0], hockey_stick(q, p, epsilon)[0])
            worst = max(worst, found / claimed)
    return worst
