"""Queries: bounded integer functions of a row, summed over the rows, each with the theorem of its sensitivity.

    Count(where)            how many rows
    Histogram(columns)      how many rows in each cell of the declared levels
    KeyCount(columns)       the same for huge domains: only the cells that occur, as a Counter
    Sum(column)             the sum of a Number, in units of `Number.unit`
    VectorSum(columns)      the sums of several Numbers, or of one Vector
    GroupCount(keys)        how many rows in each group: bins, cases, columns (`discreet.row_functions`)
    GroupSum(keys, value)   the sum of a bounded function of the row in each group
    Persons(keys)           how many persons have a row there: no sum over rows, but bounded by persons all the same
    OfPersons(made, query)  one of these about rows that are made of each person's rows (`discreet.person_rows`)

`sensitivity(facts)` bounds, over all neighbouring tables with these facts, the difference d of the summed integers in
four ways: |d|_1, |d|_2^2, |d|_inf, and range = max_i d_i - min_i d_i (which is what selecting a coordinate depends on).
It raises when the query does not fit the domain, before any row is read.

Count, Histogram, Sum and VectorSum also have `weighted(batch, counts)`: what `partial` gives on a batch in which each
row stands as often as `counts` says, to the last bit. `discreet.data.distinct` takes its sums by it.

All but Persons of several rows per person and OfPersons also have `tallies(domain)`, the sum as data for a dataset that
groups and adds, and `of_tallies`, the sum from what such a dataset found: the same integers (`discreet.data.tally`).

What a query answers about itself, beside its sum, its sensitivity and its unit:

    scope        the columns that it reads
    shape        the shape of its sum: () for one number (not for a KeyCount)
    groups       by what it counts or sums: the columns of a Histogram, the names of keys; () otherwise
    counting     whether it counts rows: Count, Histogram, GroupCount
    grouped      whether it has groups
    places       for each row of a batch the number of its group; all 0 without groups
    weights      for each row of a batch what it adds, in the query's units
    atoms        the comparisons of a row that a mask of it takes
    marginal     whether it is a Histogram of all rows
    with_order   the same query with its groups in this order: GROUP BY a, b and GROUP BY b, a are one question

A `Question` is a Count, a Sum, a Histogram, a GroupCount, a GroupSum, a Persons or an OfPersons: what a session
answers.

Several rows per person. If one row's addition or removal moves the sums by at most s_AR and one row's replacement by at
most s_RO (in a norm or in range), then for a person of at most k rows add-remove moves them by at most k s_AR and
replace-one by at most k max(s_AR, s_RO): replace min(a, b) of the rows, then add or remove the other |a - b|.

The predicates of `discreet.predicate` and the functions of `discreet.row_functions` are part of this module's face.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, Protocol, Self, TypeGuard, runtime_checkable

import numpy as np
import numpy.typing as npt

from discreet.core import Neighbours, ParameterError, exact
from discreet.data import (
    Batch,
    CodeOf,
    Codes,
    Domain,
    Facts,
    Floats,
    IntArray,
    Ints,
    Key,
    Mask,
    Number,
    RowInteger,
    Switch,
    Tallied,
    Tally,
    TextOf,
    Vector,
    WholeNumber,
    common_unit,
)
from discreet.person_rows import PersonKey, PersonNumber, PersonRows
from discreet.predicate import (
    EVERYTHING,
    TOO_DEEP,
    Among,
    And,
    Between,
    Combining,
    Equals,
    Missing,
    Not,
    Or,
    Predicate,
    predicates,
    require_shallow,
)
from discreet.row_functions import (
    MAX_POWER,
    Bins,
    Cases,
    Choose,
    Fixed,
    Lookup,
    Of,
    Plus,
    Power,
    Times,
    Value,
    WithRest,
    check_keys,
    check_value,
    coded_keys,
    joined,
    key_atoms,
    key_cells,
    key_columns,
    key_sizes,
    number_of,
    values,
)
from discreet.row_functions import Key as GroupKey

MAX_CELLS = 2**22
"""Numbers of one release. They take some 130 bytes each until they are stored, so a limit on them is one on memory."""

_PRICED = 2**26  # cells of a histogram that has a price: ledgers hold larger ones than are released now
_BLOCK = 2**20  # rows at a time
_SMALL = 2**31  # contributions up to this are summed in int64: MAX_ROWS of them stay below 2^62


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Upper bounds on the change d of the summed integers between neighbours."""

    l1: int
    l2_squared: int
    linf: int
    range: int

    def or_more(self, other: Sensitivity) -> Sensitivity:
        """Bounds on both."""
        return Sensitivity(*map(max, astuple(self), astuple(other)))


@runtime_checkable
class Query(Protocol):
    """A sum over rows of a bounded integer function.

    partial      the sum over one batch.
    sensitivity  the theorem; raises when the query does not fit the facts.
    unit         what one integer step is worth in the column's units.
    monotone     adding a row never lowers any coordinate.
    """

    @property
    def monotone(self) -> bool: ...
    def partial(self, batch: Batch) -> Any: ...
    def sensitivity(self, facts: Facts) -> Sensitivity: ...
    def unit(self, facts: Facts) -> Fraction: ...


class _Counting:
    """A query that counts rows: every row adds 0 or 1 to a number, and adding a row lowers none."""

    __slots__ = ()
    counting: ClassVar[Literal[True]] = True
    monotone: ClassVar[bool] = True

    def unit(self, facts: Facts) -> Fraction:
        return Fraction(1)

    def weights(self, batch: Batch) -> Floats:
        return np.ones(batch.rows)


class _Weighable:
    """A query that is as quickly summed over distinct rows, each of which counts so many times (None: once)."""

    __slots__ = ()

    def partial(self, batch: Batch) -> IntArray:
        return self.weighted(batch, None)

    def weighted(self, batch: Batch, counts: Codes | None) -> IntArray:
        raise NotImplementedError


class _OfRows:
    """A query about the rows that satisfy a predicate."""

    __slots__ = ()
    where: Predicate

    @property
    def atoms(self) -> int:
        return self.where.atoms

    def rows(self, domain: Domain) -> Predicate:
        """The rows that are counted or summed."""
        return self.where


class _OneNumber(_OfRows):
    """A query whose sum is one number."""

    __slots__ = ()
    grouped: ClassVar[Literal[False]] = False
    marginal: ClassVar[bool] = False
    groups: ClassVar[tuple[str, ...]] = ()

    def shape(self, domain: Domain) -> tuple[int, ...]:
        return ()

    def with_order(self, names: Iterable[str]) -> Self:
        return self

    def places(self, batch: Batch) -> Codes:
        return np.zeros(batch.rows, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Count(_Weighable, _Counting, _OneNumber):
    """The number of rows that satisfy a predicate.

    Theorem.   add-remove and replace-one: |d| <= 1, tight unless `where` is constant; k rows per person: k. range 0.
    """

    NAME: ClassVar[str] = "count/1"
    where: Predicate = EVERYTHING

    def __post_init__(self) -> None:
        predicates((self.where,))

    @property
    def scope(self) -> frozenset[str]:
        return frozenset(self.where.columns)

    def weighted(self, batch: Batch, counts: Codes | None) -> IntArray:
        mask = self.where.mask(batch)
        return np.asarray(np.count_nonzero(mask) if counts is None else counts[mask].sum(), dtype=np.int64)

    def tallies(self, domain: Domain) -> tuple[Tally, ...]:
        return (Tally(self.where.coded(domain)),)

    def of_tallies(self, domain: Domain, found: Sequence[Tallied]) -> IntArray:
        return found[0].counted(())

    def sensitivity(self, facts: Facts) -> Sensitivity:
        self.where.check(facts.domain)
        one = Sensitivity(l1=1, l2_squared=1, linf=1, range=0)
        return of_persons(facts.neighbours, added=one, replaced=one)


@dataclass(frozen=True, slots=True, init=False)
class _OverColumns(_OfRows):
    """A query about several columns, of the rows that satisfy a predicate."""

    columns: tuple[str, ...]
    where: Predicate

    def __init__(self, columns: str | Iterable[str], where: Predicate = EVERYTHING) -> None:
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        for name in names:
            exact.text(columns=name)
        if not names:
            raise ParameterError("columns must name at least one column, found none")
        if len(set(names)) < len(names):
            raise ParameterError(f"columns must be distinct, found {', '.join(map(repr, names))}")
        exact.freeze(self, columns=names, where=predicates((where,))[0])

    @property
    def scope(self) -> frozenset[str]:
        return frozenset((*self.columns, *self.where.columns))


# One row falls in at most one cell. Adding it moves one cell by 1; replacing it may move two cells, in opposite ways.
_CELL_ADDED = Sensitivity(l1=1, l2_squared=1, linf=1, range=1)
_CELL_REPLACED = Sensitivity(l1=2, l2_squared=2, linf=1, range=2)


class _CountOfCells(_Weighable, _Counting):
    """How many rows are in each cell of an array: what a Histogram and a GroupCount have in common."""

    __slots__ = ()
    where: Predicate

    def shape(self, domain: Domain) -> tuple[int, ...]:
        raise NotImplementedError

    def places(self, batch: Batch) -> Codes:
        raise NotImplementedError

    def weighted(self, batch: Batch, counts: Codes | None) -> IntArray:
        shape, cell = self.shape(batch.domain), self.places(batch)
        if self.where != EVERYTHING:
            mask = self.where.mask(batch)
            cell, counts = cell[mask], None if counts is None else counts[mask]
        # By counts the sums are floats, but exact: whole numbers up to MAX_ROWS, far below 2^53.
        sums = np.bincount(cell, weights=counts, minlength=math.prod(shape))
        return sums.astype(np.int64, copy=False).reshape(shape)


class Histogram(_OverColumns, _CountOfCells):
    """How many rows are in each cell of the product of the columns' levels, among those that satisfy a predicate.

    The result has one axis for each column, indexed by its codes (a missing level included).

    Theorem.   add-remove: |d|_1 = |d|_2^2 = |d|_inf = range = 1. replace-one: |d|_1 = |d|_2^2 = range = 2, |d|_inf = 1.
               k rows per person: k times as much, |d|_2^2 k^2 times. Tight when two cells can be reached.
    Edges.     At most MAX_CELLS = 2^22 cells are released: the whole answer is held in memory and stored in the ledger.
    """

    __slots__ = ()
    NAME: ClassVar[str] = "histogram/1"
    grouped: ClassVar[Literal[True]] = True

    @property
    def groups(self) -> tuple[str, ...]:
        return self.columns

    @property
    def marginal(self) -> bool:
        return self.where == EVERYTHING

    def with_order(self, names: Iterable[str]) -> Histogram:
        return Histogram([name for name in names if name in self.columns], self.where)

    def shape(self, domain: Domain) -> tuple[int, ...]:
        """The number of levels of each column, if a histogram over them can be held."""
        for name in self.columns:
            if not domain.column(name).coded:
                raise ParameterError(f"column {name!r} is declared {domain.column(name)!r}: it has no histogram")
        shape = tuple(domain.column(name).size for name in self.columns)
        if math.prod(shape) > _PRICED:
            cells = f"a histogram over {', '.join(map(repr, self.columns))} has {math.prod(shape)} cells"
            raise ParameterError(f"{cells}, more than 2**26; take fewer columns or larger steps")
        return shape

    def labels(self, facts: Facts) -> list[tuple[str | int | bool | float | None, ...]]:
        """The meaning of each cell, in the order of the flattened result: one level or number for each column."""
        return list(itertools.product(*(facts.domain.column(name).labels() for name in self.columns)))

    def tallies(self, domain: Domain) -> tuple[Tally, ...]:
        return (Tally(self.where.coded(domain), coded_keys(self.columns, domain), self.shape(domain)),)

    def of_tallies(self, domain: Domain, found: Sequence[Tallied]) -> IntArray:
        return found[0].counted(self.shape(domain))

    def places(self, batch: Batch) -> Codes:
        """For each row the number of its cell in the flattened result."""
        return key_cells(self.columns, batch)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        self.shape(facts.domain)
        self.where.check(facts.domain)
        return of_persons(facts.neighbours, added=_CELL_ADDED, replaced=_CELL_REPLACED)


class KeyCount(_OverColumns, _Counting):
    """How many rows have each combination of codes that occurs: a Counter of tuples, for domains of any size.

    Which keys occur is itself private: only a mechanism that hides rare keys may release from it. A Text has no public
    codes: its part of a key is the text itself, or None where it is missing.

    Theorem.   As for Histogram, over all keys of the domain.
    """

    __slots__ = ()
    NAME: ClassVar[str] = "key-count/1"
    grouped: ClassVar[Literal[True]] = True

    def partial(self, batch: Batch) -> Counter[Key]:
        mask = self.where.mask(batch)
        codes = [batch[name][mask] for name in self.columns]
        rank = np.zeros(int(mask.sum()), dtype=np.int64)
        for column in codes:
            # Ranks stay below the number of rows, so the product of two of them stays below 2^62.
            levels, place = np.unique(column, return_inverse=True)
            rank = np.unique(rank * len(levels) + place, return_inverse=True)[1]
        _, first, counts = np.unique(rank, return_index=True, return_counts=True)
        parts = [column[first].tolist() for column in codes]
        for at, name in enumerate(self.columns):
            if batch.domain.column(name).free:
                parts[at] = list(map(batch.texts(name).__getitem__, parts[at]))
        keys = zip(*parts, strict=True)
        return Counter(dict(zip(keys, counts.tolist(), strict=True)))

    def tallies(self, domain: Domain) -> tuple[Tally, ...]:
        keys = tuple(TextOf(name) if domain.column(name).free else CodeOf(name) for name in self.columns)
        return (Tally(self.where.coded(domain), keys, None),)

    def of_tallies(self, domain: Domain, found: Sequence[Tallied]) -> Counter[Key]:
        return Counter(dict(zip(zip(*found[0].keys, strict=True), map(int, found[0].counts), strict=True)))

    def sensitivity(self, facts: Facts) -> Sensitivity:
        for name in self.columns:
            if not facts.domain.column(name).keyed:
                raise ParameterError(f"column {name!r} is declared {facts.domain.column(name)!r}: it has no keys")
        self.where.check(facts.domain)
        return of_persons(facts.neighbours, added=_CELL_ADDED, replaced=_CELL_REPLACED)


@dataclass(frozen=True, slots=True)
class Sum(_Weighable, _OneNumber):
    """The sum of a Number over the rows that satisfy a predicate, in units of `Number.unit`; missing counts as 0.

    What is summed are the values on the grid: clamped to the bounds and rounded down to a step when the rows came in. A
    coarse step therefore lowers the sum by up to one step per row, which no noise range includes: declare a fine step.

    Theorem.   With a = low / unit, b = high / unit: add-remove |d| <= max(|a|, |b|). replace-one |d| <= b - a, or
               max(b, 0) - min(a, 0) when a row may count as 0 (it is missing, or `where` refuses it). range 0.
               Tight for one row per person when `where` is And() or a condition on other columns.
    """

    NAME: ClassVar[str] = "sum/1"
    counting: ClassVar[Literal[False]] = False
    monotone: ClassVar[bool] = False
    column: str
    where: Predicate = EVERYTHING

    def __post_init__(self) -> None:
        exact.text(column=self.column)
        predicates((self.where,))

    @property
    def scope(self) -> frozenset[str]:
        return self._vector.scope

    def weights(self, batch: Batch) -> Floats:
        labels = number_of(batch.domain, self.column).labels()
        return np.array([value or 0.0 for value in labels], dtype=np.float64)[batch[self.column]]

    @property
    def _vector(self) -> VectorSum:
        return VectorSum((self.column,), self.where)

    def weighted(self, batch: Batch, counts: Codes | None) -> IntArray:
        return self._vector.weighted(batch, counts).reshape(())

    def tallies(self, domain: Domain) -> tuple[Tally, ...]:
        return self._vector.tallies(domain)

    def of_tallies(self, domain: Domain, found: Sequence[Tallied]) -> IntArray:
        return self._vector.of_tallies(domain, found).reshape(())

    def sensitivity(self, facts: Facts) -> Sensitivity:
        width = facts.domain.column(self.column).width
        if width > 1:
            raise ParameterError(f"column {self.column!r} is a Vector of {width} numbers: use VectorSum")
        return self._vector.sensitivity(facts)

    def unit(self, facts: Facts) -> Fraction:
        return self._vector.unit(facts)


class VectorSum(_Weighable, _OverColumns):
    """The sums of several Numbers, in their common unit, or the sum of one Vector, in units of its step.

    Theorem.   Numbers: coordinate i of a row lies in [a_i, b_i] = [low_i, high_i] / unit, extended to 0 where it may be
               missing. add-remove: |d_i| <= c_i = max(|a_i|, |b_i|), so |d|_1 <= sum c_i, |d|_2^2 <= sum c_i^2,
               |d|_inf <= max c_i, range <= max over i != j of b_i - a_j. replace-one: the same with w_i = b_i - a_i for
               c_i, and range <= the sum of the two largest w_i; if `where` is not And(), the larger of this and of
               add-remove. Tight for one row per person when `where` is And() or a condition on other columns.
               Vector, B = bound_squared, dimension m: add-remove |d|_2^2 <= B, |d|_1 <= floor sqrt(m B), |d|_inf <=
               floor sqrt B, range <= floor sqrt(2 B); replace-one |d|_2^2 <= 4 B and twice the others.
    Proof.     |x|_1 <= sqrt m |x|_2, x_i - x_j <= sqrt 2 |x|_2, and all are integers; a replacement is a difference of
               two such vectors.
    Edges.     Contributions beyond 2^31 are summed in Python integers. One coordinate has range 0.
    """

    __slots__ = ()
    NAME: ClassVar[str] = "vector-sum/1"
    monotone: ClassVar[bool] = False

    def shape(self, domain: Domain) -> tuple[int, ...]:
        return (sum(domain.column(name).width for name in self.columns),)

    def weighted(self, batch: Batch, counts: Codes | None) -> IntArray:
        mask = None if self.where == EVERYTHING else self.where.mask(batch)
        if self._vector(batch.domain) is not None:
            rows = batch[self.columns[0]] if counts is None else batch[self.columns[0]] * counts[:, None]
            return np.asarray((rows if mask is None else rows[mask]).sum(axis=0, dtype=np.int64))
        declared = self._numbers(batch.domain)
        unit = common_unit(number.unit for number in declared)
        sums = [
            _number_sum(batch[name], number, unit=unit, mask=mask, counts=counts)
            for name, number in zip(self.columns, declared, strict=True)
        ]
        return np.array(sums, dtype=_dtype(declared, unit))

    def tallies(self, domain: Domain) -> tuple[Tally, ...]:
        """Of each Number how many rows have a value, and the sum of their codes."""
        amounts: list[RowInteger] = []
        for name, number in zip(self.columns, self._numbers(domain), strict=True):
            for value in (WholeNumber(1), CodeOf(name)):
                here = Missing(name).coded(domain)
                amounts.append(Switch((here,), (WholeNumber(0),), value) if number.missing else value)
        most = max(number.steps for number in self._numbers(domain))
        return (Tally(self.where.coded(domain), (), (), tuple(amounts), max(1, most)),)

    def of_tallies(self, domain: Domain, found: Sequence[Tallied]) -> IntArray:
        declared = self._numbers(domain)
        unit = common_unit(number.unit for number in declared)
        lines = [int(found[0].summed(place, (), wide=True)) for place in range(2 * len(declared))]
        sums = [
            rows * int(number.low / unit) + codes * int(number.step / unit)
            for number, rows, codes in zip(declared, lines[::2], lines[1::2], strict=True)
        ]
        return np.array(sums, dtype=_dtype(declared, unit))

    def sensitivity(self, facts: Facts) -> Sensitivity:
        self.where.check(facts.domain)
        vector = self._vector(facts.domain)
        if vector is None:
            added, replaced = _number_sensitivities(self._numbers(facts.domain), voidable=self.where != EVERYTHING)
        else:
            bound = vector.bound_squared
            l1, linf = math.isqrt(vector.dimension * bound), math.isqrt(bound)
            spread = math.isqrt(2 * bound) if vector.dimension > 1 else 0
            added = Sensitivity(l1, bound, linf, spread)
            replaced = Sensitivity(2 * l1, 4 * bound, 2 * linf, 2 * spread)
        return of_persons(facts.neighbours, added=added, replaced=replaced)

    def unit(self, facts: Facts) -> Fraction:
        vector = self._vector(facts.domain)
        return common_unit(each.unit for each in self._numbers(facts.domain)) if vector is None else vector.unit

    def _vector(self, domain: Domain) -> Vector | None:
        column = domain.column(self.columns[0])
        return column if len(self.columns) == 1 and isinstance(column, Vector) else None

    def _numbers(self, domain: Domain) -> tuple[Number, ...]:
        return tuple(number_of(domain, name) for name in self.columns)


@dataclass(frozen=True, slots=True, init=False)
class _InGroups(_OfRows):
    """A query about groups that keys make of the rows: one axis for each key; without keys it is one number."""

    keys: tuple[GroupKey, ...]
    where: Predicate
    marginal: ClassVar[bool] = False

    @property
    def grouped(self) -> bool:
        return bool(self.keys)

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(key if isinstance(key, str) else " and ".join(key.columns) for key in self.keys)

    @property
    def scope(self) -> frozenset[str]:
        return frozenset((*key_columns(self.keys), *self.where.columns))

    @property
    def atoms(self) -> int:
        return self.where.atoms + key_atoms(self.keys)

    def with_order(self, names: Iterable[str]) -> Self:
        return self

    def shape(self, domain: Domain) -> tuple[int, ...]:
        shape = key_sizes(self.keys, domain)
        if math.prod(shape) > _PRICED:
            raise ParameterError(f"these groups have {math.prod(shape)} cells, more than 2**26; take coarser groups")
        return shape

    def places(self, batch: Batch) -> Codes:
        """For each row the number of its group in the flattened result."""
        return key_cells(self.keys, batch)

    def _check(self) -> None:
        check_keys(self.keys)
        predicates((self.where,))


class _CountInGroups(_InGroups, _Counting):
    """A number of rows, or of persons, in each group; for tallies every row is a person."""

    __slots__ = ()

    def __init__(self, keys: Iterable[GroupKey], where: Predicate = EVERYTHING) -> None:
        exact.freeze(self, keys=tuple(keys), where=where)
        self._check()

    def tallies(self, domain: Domain) -> tuple[Tally, ...]:
        return (Tally(self.where.coded(domain), coded_keys(self.keys, domain), self.shape(domain)),)

    def of_tallies(self, domain: Domain, found: Sequence[Tallied]) -> IntArray:
        return found[0].counted(self.shape(domain))


class GroupCount(_CountInGroups, _CountOfCells):
    """How many rows are in each group, among those that satisfy a predicate.

    Theorem.   As for Histogram: a row is in one group. add-remove: |d|_1 = |d|_2^2 = |d|_inf = 1; replace-one: |d|_1 =
               |d|_2^2 = 2, |d|_inf = 1; k rows per person: k times as much, |d|_2^2 k^2 times. range as for Histogram,
               and 0 if there is one group. Tight when two groups can be reached.
    """

    __slots__ = ()
    NAME: ClassVar[str] = "group-count/1"

    def sensitivity(self, facts: Facts) -> Sensitivity:
        self.where.check(facts.domain)
        several = math.prod(self.shape(facts.domain)) > 1
        one = _CELL_ADDED if several else Sensitivity(l1=1, l2_squared=1, linf=1, range=0)
        return of_persons(facts.neighbours, added=one, replaced=_CELL_REPLACED if several else one)


@dataclass(frozen=True, slots=True, init=False)
class GroupSum(_Weighable, _InGroups):
    """The sum of a value over the rows of each group that satisfy a predicate, in units of the value.

    Theorem.   Let every row's value be in [a, b] units, c = max(|a|, |b|), w = b - a, or max(b, 0) - min(a, 0) when a
               row may add nothing (it is refused by `where`, or has no value). A row is in one group.
               add-remove: |d|_1, |d|_inf <= c, |d|_2^2 <= c^2, range <= c (0 for one group).
               replace-one: within its group the row moves one sum by at most w; or it leaves one group and enters
               another, by at most c each. So |d|_inf <= max(c, w), |d|_1 <= max(2 c, w) = 2 c, |d|_2^2 <= max(2 c^2,
               w^2), range <= 2 c; for one group w, w, w^2 and 0.
               k rows per person: k times as much, |d|_2^2 k^2 times, by the larger of the two relations.
               Tight for one row per person if the ends a and b are reached in every group (not when the groups are made
               of the summed column).
    Edges.     A value of more than 2^62 units is refused. A centred value, b = -a, has the smallest c: means are taken
               from such sums.
    """

    NAME: ClassVar[str] = "group-sum/1"
    counting: ClassVar[Literal[False]] = False
    monotone: ClassVar[bool] = False
    value: Value

    def __init__(self, keys: Iterable[GroupKey], value: Value, where: Predicate = EVERYTHING) -> None:
        exact.freeze(self, keys=tuple(keys), value=values((value,))[0], where=where)
        self._check()

    @property
    def scope(self) -> frozenset[str]:
        return _InGroups.scope.fget(self) | frozenset(self.value.columns)  # type: ignore[attr-defined, no-any-return]

    def rows(self, domain: Domain) -> Predicate:
        return joined((self.where, self.value.known(domain)))

    def weighted(self, batch: Batch, counts: Codes | None) -> IntArray:
        check_value(self.value, batch.domain)
        mask, shape = self.rows(batch.domain).mask(batch), self.shape(batch.domain)
        place, steps = self.places(batch)[mask], self.value.steps(batch)[mask]
        times = None if counts is None else counts[mask]
        if self._small(batch.domain):
            return _group_sums(place, steps, times, math.prod(shape)).reshape(shape)
        upper, lower = (
            _group_sums(place, half, times, math.prod(shape)).astype(object)
            for half in (steps >> 31, steps & (2**31 - 1))
        )
        return np.asarray((upper * 2**31 + lower).reshape(shape))

    def _small(self, domain: Domain) -> bool:
        return self.value.reach(domain) <= _SMALL * self.value.unit(domain)

    def tallies(self, domain: Domain) -> tuple[Tally, ...]:
        check_value(self.value, domain)
        keys, most = coded_keys(self.keys, domain), math.ceil(self.value.reach(domain) / self.value.unit(domain))
        return (Tally(self.rows(domain).coded(domain), keys, self.shape(domain), (self.value.coded(domain),), most),)

    def of_tallies(self, domain: Domain, found: Sequence[Tallied]) -> IntArray:
        return found[0].summed(0, self.shape(domain), wide=not self._small(domain))

    def weights(self, batch: Batch) -> Floats:
        unit = self.value.unit(batch.domain)
        if max(unit.numerator, unit.denominator) >= 10**300:
            raise ParameterError("floats cannot hold this sum: declare the column in other units")
        return self.value.steps(batch).astype(np.float64) * unit.numerator / unit.denominator  # integers might overflow

    def sensitivity(self, facts: Facts) -> Sensitivity:
        domain = facts.domain
        self.where.check(domain)
        check_value(self.value, domain)
        low, high = (int(end / self.value.unit(domain)) for end in self.value.bounds(domain))
        most, width = max(abs(low), abs(high)), high - low
        if self.rows(domain) != EVERYTHING:
            width = max(high, 0) - min(low, 0)
        added = Sensitivity(most, most * most, most, 0)
        replaced = Sensitivity(width, width * width, width, 0)
        if math.prod(self.shape(domain)) > 1:
            added = Sensitivity(most, most * most, most, most)
            far = 2 * most
            replaced = Sensitivity(far, max(2 * most * most, width * width), max(most, width), far)
        return of_persons(facts.neighbours, added=added, replaced=replaced)

    def unit(self, facts: Facts) -> Fraction:
        return self.value.unit(facts.domain)


class Persons(_CountInGroups):
    """How many persons have at least one row that satisfies a predicate, in each group if there are keys.

    A person with rows in several groups is counted once in each of them. The keys are those of a GroupCount: names of
    columns, Bins or Cases. The result has one axis for each key; without keys it is one number.

    Theorem.   A person has at most k rows. Let g be the number of groups, and g' the number of groups by those keys
               alone that look at a column which differs between rows of a person (all columns, unless `Facts.personal`
               names them). The rows of a person lie in at most m = min(k, g') groups.
               add-remove: |d|_1 = |d|_2^2 = m, |d|_inf = range = 1. replace-one: |d|_1 = |d|_2^2 = min(2 m, g),
               |d|_inf = 1, range = 2. One group, or no keys: 1 in both relations, range 0. Tight when rows may be in
               any group.
    Proof.     docs/proofs/joined_rows.md. What one person adds is a vector of zeros and ones with at most m ones; a
               removal subtracts one such vector, a replacement is the difference of two.
    Edges.     In a table without a unit every row is a person: it counts rows. Under replace-one the number of all
               persons of the only table is public (`public`); of several tables a person may have no row in one.
    """

    __slots__ = ()
    NAME: ClassVar[str] = "persons/1"
    by_person: ClassVar[bool] = True

    def __init__(self, keys: str | Iterable[GroupKey] = (), where: Predicate = EVERYTHING) -> None:
        super().__init__((keys,) if isinstance(keys, str) else keys, where)

    def partial(self, batch: Batch) -> IntArray:
        """The persons of one batch: a dataset cuts its batches between persons for a function that looks at them."""
        shape, mask = self.shape(batch.domain), self.where.mask(batch)
        persons, place, cells = batch.persons[mask], self.places(batch)[mask], math.prod(shape)
        # Persons are numbered below the number of rows, 2^31, and there are at most 2^26 groups: below 2^62.
        once = np.unique(np.unique(persons, return_inverse=True)[1] * cells + place)
        return np.bincount(once % cells, minlength=cells).astype(np.int64).reshape(shape)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        self.where.check(facts.domain)
        groups = math.prod(self.shape(facts.domain))
        if groups == 1:
            return Sensitivity(l1=1, l2_squared=1, linf=1, range=0)
        own = [
            size
            for key, size in zip(self.keys, self.shape(facts.domain), strict=True)
            if not {*((key,) if isinstance(key, str) else key.columns)} <= {*facts.personal}
        ]
        most = min(facts.neighbours.rows, math.prod(own))
        if facts.neighbours.replace_one:
            moved = min(2 * most, groups)
            return Sensitivity(l1=moved, l2_squared=moved, linf=1, range=2)
        return Sensitivity(l1=most, l2_squared=most, linf=1, range=1)

    def public(self, facts: Facts) -> int | None:
        """The number of persons, where it is public: of all, under replace-one, in a table that has them all."""
        return facts.size if not self.keys and self.where == EVERYTHING and facts.everybody else None


@dataclass(frozen=True, slots=True)
class OfPersons:
    """A query about the rows that are made of each person's rows: how many persons have three rows, say.

    Theorem.   Let a person have at most m made rows (`PersonRows.most`). Under add-remove the query moves by at most
               what it moves by in a table with at most m rows per person. Under replace-one it moves by at most the
               larger of what it moves by there in the two relations, since a person may have no made row.
    Proof.     docs/proofs/joined_rows.md: the made rows are a view.
    Edges.     In a table without a unit every row is a person. Under replace-one the number of all persons of the only
               table is public. Adding a row to a person may lower a count of persons.
    """

    NAME: ClassVar[str] = "of-persons/1"
    by_person: ClassVar[bool] = True
    monotone: ClassVar[bool] = False
    marginal: ClassVar[bool] = False
    made: PersonRows
    query: Count | Sum | Histogram | GroupCount | GroupSum | Persons

    @property
    def where(self) -> Predicate:
        """Which of the made rows are counted or summed."""
        return self.query.where

    @property
    def counting(self) -> bool:
        return self.query.counting

    @property
    def grouped(self) -> bool:
        return self.query.grouped

    @property
    def groups(self) -> tuple[str, ...]:
        return self.query.groups

    @property
    def scope(self) -> frozenset[str]:
        return self.made.columns

    @property
    def atoms(self) -> int:
        return self.query.atoms

    def with_order(self, names: Iterable[str]) -> Self:
        return self

    def shape(self, domain: Domain) -> tuple[int, ...]:
        return self.query.shape(self.made.domain(domain))

    def partial(self, batch: Batch) -> IntArray:
        """The persons of one batch: a dataset cuts its batches between persons for a function that looks at them."""
        return self.query.partial(self.made.batch(batch))

    def sensitivity(self, facts: Facts) -> Sensitivity:
        made = self.made.facts(facts)
        added = replace(made, neighbours=Neighbours("add-remove", made.neighbours.rows))
        return self.query.sensitivity(made).or_more(self.query.sensitivity(added))

    def unit(self, facts: Facts) -> Fraction:
        return self.query.unit(self.made.facts(facts))

    def public(self, facts: Facts) -> int | None:
        """The number of persons, where it is public: each has one made row, and all of these are counted."""
        whole = self.query == Count() and self.made.where == EVERYTHING and not self.made.keys
        return facts.size if whole and facts.everybody else None


def _group_sums(place: Codes, amounts: Ints, counts: Codes | None, size: int) -> Ints:
    """The sums of amounts of at most 2^31 by place, each as often as counts says: MAX_ROWS of them are below 2^62."""
    total = np.zeros(size, dtype=np.int64)
    for start in range(0, len(place), _BLOCK):
        cut = slice(start, start + _BLOCK)
        words = amounts[cut] if counts is None else amounts[cut] * counts[cut]
        if float(np.abs(words).sum(dtype=np.float64)) < 2**52:  # then floats hold every sum exactly
            total += np.bincount(place[cut], words, size).astype(np.int64)
        else:
            np.add.at(total, place[cut], words)
    return total


Question = Count | Sum | Histogram | GroupCount | GroupSum | Persons | OfPersons


def is_question(value: object) -> TypeGuard[Question]:
    """Whether it is a Count, a Sum, a Histogram, a GroupCount, a GroupSum, a Persons or an OfPersons."""
    return isinstance(value, (Count, Sum, Histogram, GroupCount, GroupSum, Persons, OfPersons))


def listed(query: object) -> Query:
    """The query, if it is one whose sum is an array of numbers: what noise can be added to and scores can be."""
    if isinstance(query, KeyCount):
        raise ParameterError("a KeyCount shows which keys occur: release it with a StableHistogram")
    if not isinstance(query, Query):
        raise ParameterError(f"expected a query such as Count or Histogram, found {query!r}")
    return query


def contribution(query: Question, facts: Facts) -> int:
    """By how many of its integers one row moves a question at most: 1 for counts."""
    if query.counting:
        return 1
    rows = query.made.most(facts) if isinstance(query, OfPersons) else facts.neighbours.rows
    return max(1, query.sensitivity(facts).linf // rows)


def numbers(query: Query, facts: Facts) -> int:
    """How many numbers the sum of a query has; no array is made to find out where the query knows its shape."""
    shape = getattr(query, "shape", None)
    return int(query.partial(Batch.empty(facts.domain)).size) if shape is None else math.prod(shape(facts.domain))


def require_numbers(found: int) -> None:
    """Refuse a release of more numbers than are held in memory and stored in a ledger."""
    if found > MAX_CELLS:
        many = f"this would release {found:,} numbers at once, more than {MAX_CELLS:,}"
        raise ParameterError(f"{many}: take fewer columns or larger steps")


def of_persons(neighbours: Neighbours, *, added: Sensitivity, replaced: Sensitivity) -> Sensitivity:
    """From one row to a person's rows: the module's docstring has the theorem."""
    rows = neighbours.rows
    one = added if not neighbours.replace_one else replaced if rows == 1 else added.or_more(replaced)
    return Sensitivity(rows * one.l1, rows * rows * one.l2_squared, rows * one.linf, rows * one.range)


def person_range(neighbours: Neighbours, *, added: int, replaced: int) -> int:
    """The range for a person's rows from the ranges of one row's addition and of its replacement."""
    one, other = (Sensitivity(l1=0, l2_squared=0, linf=0, range=each) for each in (added, replaced))
    return of_persons(neighbours, added=one, replaced=other).range


def alone(function: Callable[[Any], Any], row: Any, otherwise: Any) -> Any:
    """What a user's function makes of one row. If it fails, `otherwise`; its messages are dropped.

    An error or a warning that depends on a row would tell something about it, unpaid.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(row)
        except (Exception, SystemExit):
            return otherwise


def _number_sensitivities(declared: Sequence[Number], *, voidable: bool) -> tuple[Sensitivity, Sensitivity]:
    unit = common_unit(number.unit for number in declared)
    low = [int(min(number.low, 0 if number.missing else number.low) / unit) for number in declared]
    high = [int(max(number.high, 0 if number.missing else number.high) / unit) for number in declared]
    farthest = [max(abs(a), abs(b)) for a, b in zip(low, high, strict=True)]
    width = [b - a for a, b in zip(low, high, strict=True)]
    pairs = [(i, j) for i in range(len(declared)) for j in range(len(declared)) if i != j]
    added = _boxed(farthest, spread=max((high[i] - low[j] for i, j in pairs), default=0))
    replaced = _boxed(width, spread=sum(sorted(width)[-2:]) if pairs else 0)
    return added, added.or_more(replaced) if voidable else replaced


def _dtype(declared: Sequence[Number], unit: Fraction) -> type:
    """Of the sums of these Numbers: int64 if every contribution is small."""
    return np.int64 if all(number.magnitude <= _SMALL * unit for number in declared) else object


def _boxed(sides: Sequence[int], *, spread: int) -> Sensitivity:
    return Sensitivity(sum(sides), sum(side * side for side in sides), max(sides), spread)


def _number_sum(
    codes: Codes, number: Number, *, unit: Fraction, mask: npt.NDArray[np.bool_] | None, counts: Codes | None
) -> int:
    """The exact sum of the values of these codes, in units: value = low + code * step, summed apart.

    A code stands as often as counts says, or once. The counts add up to MAX_ROWS at most.
    """
    present = mask
    if number.missing_code is not None:
        here = codes != number.missing_code
        present = here if mask is None else mask & here
    chosen = codes if present is None else codes[present]
    # A code is below 2^62: its upper and lower 31 bits are summed apart, each in int64.
    parts = (chosen >> 31, chosen & (2**31 - 1))
    if counts is None:
        rows = len(chosen)
        upper, lower = (int(part.sum(dtype=np.int64)) for part in parts)
    else:
        times = counts if present is None else counts[present]
        rows = int(times.sum(dtype=np.int64))
        upper, lower = (int((part * times).sum(dtype=np.int64)) for part in parts)
    return rows * int(number.low / unit) + ((upper << 31) + lower) * int(number.step / unit)
