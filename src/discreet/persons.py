"""Counting persons instead of rows: COUNT(DISTINCT person), in all or in each group."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from discreet.core import exact
from discreet.data import Batch, Domain, Facts, IntArray
from discreet.query import EVERYTHING, GroupCount, GroupKey, Predicate, Sensitivity


@dataclass(frozen=True, slots=True, init=False)
class Persons:
    """How many persons have at least one row that satisfies a predicate, in each group if there are keys.

    A person with rows in several groups is counted once in each of them. The keys are those of a GroupCount: names of
    columns, Bins or Cases. The result has one axis for each key; without keys it is one number.

    Theorem.   A person has at most k rows, so with g groups their rows lie in at most m = min(k, g) of them. add-remove:
               |d|_1 = |d|_2^2 = m, |d|_inf = range = 1. replace-one: |d|_1 = |d|_2^2 = min(2 m, g), |d|_inf = 1,
               range = 2. One group, or no keys: 1 in both relations, range 0. Tight when rows may be in any group.
    Proof.     docs/proofs/joined_rows.md. What one person adds is a vector of zeros and ones with at most m ones; a
               removal subtracts one such vector, a replacement is the difference of two.
    Edges.     In a table without a unit every row is a person: it counts rows. Under replace-one the number of all
               persons of the only table is public (`public`); of several tables a person may have no row in one.
    """

    NAME: ClassVar[str] = "persons/1"
    counting: ClassVar[Literal[True]] = True
    monotone: ClassVar[bool] = True
    keys: tuple[GroupKey, ...]
    where: Predicate

    def __init__(self, keys: str | Iterable[GroupKey] = (), where: Predicate = EVERYTHING) -> None:
        counted = GroupCount((keys,) if isinstance(keys, str) else keys, where)
        exact.freeze(self, keys=counted.keys, where=counted.where)

    @property
    def _rows(self) -> GroupCount:
        """The same count of rows."""
        return GroupCount(self.keys, self.where)

    @property
    def grouped(self) -> bool:
        return bool(self.keys)

    @property
    def groups(self) -> tuple[str, ...]:
        return self._rows.groups

    @property
    def scope(self) -> frozenset[str]:
        return self._rows.scope

    def shape(self, domain: Domain) -> tuple[int, ...]:
        return self._rows.shape(domain)

    def partial(self, batch: Batch) -> IntArray:
        """The persons of one batch: a dataset cuts its batches between persons for a function that looks at them."""
        shape, mask = self.shape(batch.domain), self.where.mask(batch)
        persons, place, cells = batch.persons[mask], self._rows.places(batch)[mask], math.prod(shape)
        # Persons are numbered below the number of rows, 2^31, and there are at most 2^26 groups: below 2^62.
        once = np.unique(np.unique(persons, return_inverse=True)[1] * cells + place)
        return np.bincount(once % cells, minlength=cells).astype(np.int64).reshape(shape)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        self.where.check(facts.domain)
        groups = math.prod(self.shape(facts.domain))
        if groups == 1:
            return Sensitivity(l1=1, l2_squared=1, linf=1, range=0)
        most = min(facts.neighbours.rows, groups)
        if facts.neighbours.replace_one:
            moved = min(2 * most, groups)
            return Sensitivity(l1=moved, l2_squared=moved, linf=1, range=2)
        return Sensitivity(l1=most, l2_squared=most, linf=1, range=1)

    def unit(self, facts: Facts) -> Fraction:
        return Fraction(1)

    def public(self, facts: Facts) -> int | None:
        """The number of persons, where it is public: of all, under replace-one, in a table that has them all."""
        whole = not self.keys and self.where == EVERYTHING and facts.neighbours.replace_one
        return facts.size if whole and (facts.table is None or facts.neighbours.rows == 1) else None
