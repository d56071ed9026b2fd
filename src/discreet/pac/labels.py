"""Which rows are positive examples, and how often a rule is wrong about that."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol

import numpy as np

from discreet import exact
from discreet.data import Batch, Category, Domain, Facts, IntArray, Level, Mask
from discreet.errors import ParameterError
from discreet.query import Sensitivity, of_persons


@dataclass(frozen=True, slots=True)
class Labels:
    """A row is a positive example if the column has the positive level, a negative one if it has any other."""

    NAME: ClassVar[str] = "labels/1"
    column: str
    positive: Level

    def __post_init__(self) -> None:
        exact.text(column=self.column)

    def check(self, domain: Domain) -> None:
        """The column has classes, and the positive one is among them."""
        declared = domain.column(self.column)
        if not isinstance(declared, Category):
            raise ParameterError(f"the target {self.column!r} is declared {declared!r}: classes need a Category")
        declared.code(self.positive)
        if declared.size < 2:
            raise ParameterError(f"the target {self.column!r} needs at least two classes, found one")

    def mask(self, batch: Batch) -> Mask:
        """The positive rows of a batch."""
        declared = batch.domain.column(self.column)
        assert isinstance(declared, Category)
        found: Mask = batch.stored(self.column) == declared.code(self.positive)
        return found


class Rule(Protocol):
    """A hypothesis: a public condition on a row that predicts "positive". `said` is the sentence that it reads as."""

    def check(self, domain: Domain) -> None: ...
    def mask(self, batch: Batch) -> Mask: ...
    def said(self, domain: Domain) -> str: ...


@dataclass(frozen=True, slots=True)
class Mistakes:
    """The number of rows that a rule labels wrong: n * error_X(h) of lecture 12.

    Theorem.   A row adds 0 or 1. add-remove and replace-one: |d| <= 1; k rows a person: k. range 0.
    """

    NAME: ClassVar[str] = "mistakes/1"
    rule: Rule
    labels: Labels

    @property
    def monotone(self) -> bool:
        return True

    def partial(self, batch: Batch) -> IntArray:
        return np.asarray(np.count_nonzero(self.rule.mask(batch) != self.labels.mask(batch)), dtype=np.int64)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        self.rule.check(facts.domain)
        self.labels.check(facts.domain)
        one = Sensitivity(l1=1, l2_squared=1, linf=1, range=0)
        return of_persons(facts.neighbours, added=one, replaced=one)

    def unit(self, facts: Facts) -> Fraction:
        return Fraction(1)
