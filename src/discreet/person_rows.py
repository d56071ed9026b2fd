"""Rows that are made of the rows of a person: for each person one, or one for each group that the person has a row in.

    SELECT person, COUNT(*) AS n, MAX(day) AS latest FROM visits WHERE emergency = 'yes' GROUP BY person

Such a row is a function of one person's rows, as a joined row is (docs/proofs/joined_rows.md). Its columns are declared
by the declaration of the table: what a person's rows can add up to is public. `PersonRows` makes a batch of these rows
from a batch of rows; `query.OfPersons` is a query about them.

A person without a row that satisfies the condition has no such row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from discreet.core import Neighbours, ParameterError, exact
from discreet.data import Batch, Category, Codes, Column, Domain, Facts, Number
from discreet.predicate import EVERYTHING, Missing, Not, Predicate, predicates
from discreet.row_functions import MAX_STEPS, Key, Value, check_value, joined, key_cells, key_sizes, values

_MOST_GROUPS = 2**26


@dataclass(frozen=True, slots=True, init=False)
class PersonKey:
    """What a person's rows are grouped by: a column, or a function of the row with these levels."""

    NAME: ClassVar[str] = "person-key/1"
    called: str
    key: Key
    levels: tuple[str | int, ...]

    def __init__(self, called: str, key: Key, levels: Iterable[str | int] = ()) -> None:
        exact.freeze(self, called=exact.text(called=called), key=key, levels=tuple(levels))

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.key,) if isinstance(self.key, str) else self.key.columns

    def column(self, domain: Domain) -> Column:
        return domain.column(self.key) if isinstance(self.key, str) else Category(*self.levels)


@dataclass(frozen=True, slots=True, init=False)
class PersonNumber:
    """A number of each person: a sum, the least or the most, or how many different values there are.

    called    the name of its column
    function  "sum", "least" or "most" of a value; "least", "most" or "different" of a column, whose name is `of`; "own"
              of a column that is the same in all rows of a person: as it is
    rows      how many rows a person has at most
    where     of which rows: if there is none, the number is missing
    """

    NAME: ClassVar[str] = "person-number/1"
    called: str
    function: str
    of: Value | str
    rows: int
    where: Predicate

    def __init__(self, called: str, function: str, of: Value | str, rows: int, where: Predicate = EVERYTHING) -> None:
        if function not in ("sum", "least", "most", "different", "own"):
            raise ParameterError(f'function must be "sum", "least", "most", "different" or "own", found {function!r}')
        if function == "own" and where != EVERYTHING:
            raise ParameterError("a column that is the same in all rows is that of all of them")
        column = function in ("different", "own") or (function != "sum" and isinstance(of, str))
        made = exact.text(of=of) if column else values((of,))[0]
        most = exact.whole(minimum=1, rows=rows)
        name, condition = exact.text(called=called), predicates((where,))[0]
        exact.freeze(self, called=name, function=function, of=made, rows=most, where=condition)

    @property
    def columns(self) -> tuple[str, ...]:
        own = (self.of,) if isinstance(self.of, str) else self.of.columns
        return (*own, *self.where.columns)

    def among(self, where: Predicate) -> PersonNumber:
        """The same of those rows alone that satisfy a condition."""
        return PersonNumber(self.called, self.function, self.of, self.rows, joined((where, self.where)))

    def known(self, domain: Domain) -> Predicate:
        """The rows that it looks at."""
        if not isinstance(self.of, str):
            return joined((self.where, self.of.known(domain)))
        whole = self.function == "own" or domain.column(self.of).missing_code is None
        return self.where if whole else joined((self.where, Not(Missing(self.of))))

    def column(self, domain: Domain) -> Column:
        """What it may be."""
        self.where.check(domain)
        partial = self.known(domain) != EVERYTHING
        if isinstance(self.of, str):
            declared: Any = domain.column(self.of)
            if self.function == "own":
                return declared  # type: ignore[no-any-return]
            if self.function == "different":
                least = 0 if partial else 1
                most = max(least + 1, min(self.rows, declared.size))
                return Number(least, most, 1, missing=self.where != EVERYTHING)
            if not (declared.ordered and declared.coded):
                raise ParameterError(f"column {self.of!r} is declared {declared!r}: it has no least value")
            return replace(declared, missing=partial)  # type: ignore[no-any-return]
        check_value(self.of, domain)
        (low, high), unit = self.of.bounds(domain), self.of.unit(domain)
        if self.function == "sum":
            low, high = min(low, self.rows * low), max(high, self.rows * high)
        if max(abs(low), abs(high)) > MAX_STEPS * unit:
            raise ParameterError("the sum of a person's values has too many digits: take a coarser grid")
        return Number(low, max(high, low + unit), unit, missing=partial)

    def codes(self, batch: Batch, place: Codes, many: int) -> Codes:
        """The codes of this number for each of so many persons; place: for each row of the batch its person."""
        mask = self.known(batch.domain).mask(batch)
        column: Any = self.column(batch.domain)
        there = place[self.where.mask(batch) if self.function == "different" else mask]
        place = place[mask]
        if self.function == "different":
            # Codes are below 2^62 and their ranks, like persons, below the number of rows, 2^31: so are the products.
            different, ranks = np.unique(batch[str(self.of)][mask], return_inverse=True)
            size = max(1, len(different))
            found = np.bincount(np.unique(place * size + ranks) // size, minlength=many).astype(np.int64)
            found -= int(column.low)
        else:
            codes = batch[self.of][mask] if isinstance(self.of, str) else self.of.steps(batch)[mask]
            low = 0 if isinstance(self.of, str) else int(column.low / column.step)
            gather, start = {"sum": (np.add, 0), "most": (np.maximum, low)}.get(
                self.function, (np.minimum, low + column.size)
            )
            found = np.full(many, start, dtype=np.int64)
            gather.at(found, place, codes)
            found -= low
        if column.missing_code is None or self.function == "own":
            return found
        return np.where(np.bincount(there, minlength=many) == 0, column.missing_code, found)


@dataclass(frozen=True, slots=True, init=False)
class PersonRows:
    """For each person who has a row that satisfies a predicate a row of numbers; with keys, one for each group that the
    person has such a row in.

    Theorem.   With at most k rows of a person, and g groups by those keys that look at a column which differs between
               rows of a person, a person has at most min(k, g) of these rows, and they are a function of that person's
               rows.
    Proof.     docs/proofs/joined_rows.md.
    """

    NAME: ClassVar[str] = "person-rows/1"
    keys: tuple[PersonKey, ...]
    numbers: tuple[PersonNumber, ...]
    where: Predicate

    def __init__(
        self, keys: Iterable[PersonKey], numbers: Iterable[PersonNumber], where: Predicate = EVERYTHING
    ) -> None:
        exact.freeze(self, keys=tuple(keys), numbers=tuple(numbers), where=predicates((where,))[0])

    @property
    def columns(self) -> frozenset[str]:
        """The columns of the rows that it looks at."""
        return frozenset(name for each in (*self.keys, *self.numbers, self.where) for name in each.columns)

    @property
    def most_rows(self) -> int:
        """For how many rows of a person it is made."""
        return min(each.rows for each in self.numbers)

    def domain(self, domain: Domain) -> Domain:
        """The columns of the rows that it makes."""
        made: Sequence[PersonKey | PersonNumber] = (*self.keys, *self.numbers)
        return Domain({each.called: each.column(domain) for each in made})

    def most(self, facts: Facts) -> int:
        """How many of these rows a person has at most."""
        sizes = key_sizes([each.key for each in self.keys], facts.domain)
        own = (size for each, size in zip(self.keys, sizes, strict=True) if not {*each.columns} <= {*facts.personal})
        return min(facts.neighbours.rows, math.prod(own))

    def facts(self, facts: Facts) -> Facts:
        """What is public about the rows that it makes."""
        self.where.check(facts.domain)
        sizes = key_sizes([each.key for each in self.keys], facts.domain)
        if math.prod(sizes) > _MOST_GROUPS:
            raise ParameterError(f"these groups have {math.prod(sizes)} cells, more than 2**26; take coarser groups")
        few = [each for each in self.numbers if each.rows < facts.neighbours.rows]
        if few:
            raise ParameterError(f"a person has up to {facts.neighbours.rows} rows here, found rows={few[0].rows}")
        relation = Neighbours(facts.neighbours.kind, self.most(facts))
        return replace(facts, domain=self.domain(facts.domain), neighbours=relation, personal=())

    def batch(self, batch: Batch) -> Batch:
        """The rows of the persons of a batch, which has all rows of each."""
        mask, keys = self.where.mask(batch), [each.key for each in self.keys]
        size, domain = math.prod(key_sizes(keys, batch.domain)), self.domain(batch.domain)
        persons, cells = np.unique(batch.persons[mask], return_inverse=True)[1], key_cells(keys, batch)[mask]
        # Persons are numbered below the number of rows, 2^31, and there are at most 2^26 groups: below 2^62.
        found, first, place = np.unique(persons * size + cells, return_index=True, return_inverse=True)
        chosen = Batch(batch.domain, int(mask.sum()), lambda name: batch.stored(name)[mask], texts=batch.texts)
        codes = {each.called: each.codes(chosen, place, len(found)) for each in self.numbers}
        codes |= {each.called: key_cells([each.key], chosen)[first] for each in self.keys}
        return Batch(domain, len(found), codes.__getitem__, persons=lambda: found // size)
