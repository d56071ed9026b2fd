"""Counting persons instead of rows: COUNT(DISTINCT person), in all or in each cell of some columns."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from discreet.core import ParameterError, exact
from discreet.data import Batch, Domain, Facts, IntArray
from discreet.query import EVERYTHING, Histogram, Predicate, Sensitivity, predicates


@dataclass(frozen=True, slots=True, init=False)
class Persons:
    """How many persons have at least one row that satisfies a predicate, in each cell of the columns if there are any.

    A person with rows in several cells is counted once in each of them. The result has one axis for each column, as
    that of a Histogram; without columns it is one number.

    Theorem.   A person has at most k rows, so with g cells their rows lie in at most m = min(k, g) of them. add-remove:
               |d|_1 = |d|_2^2 = m, |d|_inf = range = 1. replace-one: |d|_1 = |d|_2^2 = min(2 m, g), |d|_inf = 1,
               range = 2, or 1 if g is 1. Without columns: 1 in both, range 0. Tight when rows may be in any cell.
    Proof.     docs/proofs/persons.md. What one person adds is a vector of zeros and ones with at most m ones; a removal
               subtracts one such vector, a replacement is the difference of two.
    Edges.     Every row is one person's in a table without a unit: the count of rows. Under replace-one the number of
               all persons of the only table is public; of several tables a person may have no row in one.
    """

    NAME: ClassVar[str] = "persons/1"
    counting: ClassVar[Literal[True]] = True
    monotone: ClassVar[bool] = True
    columns: tuple[str, ...]
    where: Predicate

    def __init__(self, columns: str | Iterable[str] = (), where: Predicate = EVERYTHING) -> None:
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        for name in names:
            exact.text(columns=name)
        if len(set(names)) < len(names):
            raise ParameterError(f"columns must be distinct, found {', '.join(map(repr, names))}")
        exact.freeze(self, columns=names, where=predicates((where,))[0])

    @property
    def groups(self) -> tuple[str, ...]:
        return self.columns

    @property
    def scope(self) -> frozenset[str]:
        return frozenset((*self.columns, *self.where.columns))

    def shape(self, domain: Domain) -> tuple[int, ...]:
        return Histogram(self.columns, self.where).shape(domain) if self.columns else ()

    def labels(self, facts: Facts) -> list[tuple[str | int | bool | float | None, ...]]:
        """What each cell stands for, in the order of the flattened result."""
        return Histogram(self.columns, self.where).labels(facts) if self.columns else [()]

    def partial(self, batch: Batch) -> IntArray:
        """The persons of one batch: a dataset cuts its batches between persons for a function that looks at them."""
        shape, mask, persons = self.shape(batch.domain), self.where.mask(batch), batch.persons
        cells = math.prod(shape)
        cell = Histogram(self.columns).cells(batch) if self.columns else np.zeros(batch.rows, dtype=np.int64)
        # Persons of a batch have numbers below the number of rows, and cells are at most 2^26: below 2^62.
        persons = np.unique(persons[mask], return_inverse=True)[1]
        once = np.unique(persons * cells + cell[mask])
        return np.bincount(once % cells, minlength=cells).astype(np.int64).reshape(shape)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        self.where.check(facts.domain)
        cells = math.prod(self.shape(facts.domain))
        if not self.columns:
            return Sensitivity(l1=1, l2_squared=1, linf=1, range=0)
        most = min(facts.neighbours.rows, cells)
        if not facts.neighbours.replace_one:
            return Sensitivity(l1=most, l2_squared=most, linf=1, range=1)
        moved = min(2 * most, cells)
        return Sensitivity(l1=moved, l2_squared=moved, linf=1, range=min(2, cells))

    def unit(self, facts: Facts) -> Fraction:
        return Fraction(1)

    def public(self, facts: Facts) -> int | None:
        """The number of persons, where it is public: of all, under replace-one, in a table that has them all."""
        whole = not self.columns and self.where == EVERYTHING and facts.neighbours.replace_one
        return facts.size if whole and (facts.table is None or facts.neighbours.rows == 1) else None
