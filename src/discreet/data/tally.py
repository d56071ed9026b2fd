"""What a query adds up, as data: which rows, in which cells, how much. An engine that only groups and adds can do it.

A query whose sum over the rows can be had by one GROUP BY says so by its `tallies(domain)`, and makes its integers of
what was found by `of_tallies(domain, found)`. Everything here is about *codes*: conditions are ranges of the codes of a
column, found by the same function as a predicate's mask, so that no engine has a meaning of Between or Missing of its
own.

    conditions    Within(column, ranges)   Every(parts)   Some(parts)   Other(part)
    integers      CodeOf(column)   WholeNumber(number)   Added(parts)   Multiplied(parts)   Switch(conditions, values,
                  otherwise); every number on the way is below 2^62 in absolute value, for every row of codes
    keys          TextOf(column): the text itself, of a column whose texts are not listed; None where it is missing
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core import Unproven
from discreet.data.domain import Domain

Ranges = tuple[tuple[int, int], ...]
Run = Callable[..., list[Sequence[Any]]]
"""run(sql, integers=...): the columns of the answer; integers: all of them are 64-bit integers without NULL."""


@dataclass(frozen=True, slots=True)
class Within:
    """The code of the column lies in one of the ranges, ends included."""

    column: str
    ranges: Ranges

    @staticmethod
    def among(column: str, codes: Iterable[int]) -> Within:
        """One of these codes."""
        ranges: list[tuple[int, int]] = []
        for code in sorted(set(codes)):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1] = (ranges[-1][0], code)
            else:
                ranges.append((code, code))
        return Within(column, tuple(ranges))


@dataclass(frozen=True, slots=True)
class Every:
    """All of the parts; of no parts it is true."""

    parts: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Some:
    """At least one of the parts; of no parts it is false."""

    parts: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Other:
    """Exactly the rows that the part refuses."""

    part: Condition


Condition = Within | Every | Some | Other


@dataclass(frozen=True, slots=True)
class CodeOf:
    column: str


@dataclass(frozen=True, slots=True)
class TextOf:
    column: str


@dataclass(frozen=True, slots=True)
class WholeNumber:
    number: int


@dataclass(frozen=True, slots=True)
class Added:
    parts: tuple[RowInteger, ...]


@dataclass(frozen=True, slots=True)
class Multiplied:
    parts: tuple[RowInteger, ...]


@dataclass(frozen=True, slots=True)
class Switch:
    """The value beside the first condition that holds; `otherwise` where none does."""

    conditions: tuple[Condition, ...]
    values: tuple[RowInteger, ...]
    otherwise: RowInteger


RowInteger = CodeOf | WholeNumber | Added | Multiplied | Switch


def added(*parts: RowInteger) -> RowInteger:
    """The sum, without the zeros."""
    kept = tuple(part for part in parts if part != WholeNumber(0))
    return kept[0] if len(kept) == 1 else Added(kept)


def multiplied(*parts: RowInteger) -> RowInteger:
    """The product, without the ones."""
    kept = tuple(part for part in parts if part != WholeNumber(1))
    return kept[0] if len(kept) == 1 else Multiplied(kept)


@dataclass(frozen=True, slots=True)
class Tally:
    """Rows that satisfy a condition, by cells: how many there are, and the sums of amounts.

    axes     in which cell a row is, one integer for each axis
    shape    how many cells each axis has; None: keys of any number, of which only those that occur are given
    amounts  what a row adds, beside 1 for itself
    most     no amount is larger in absolute value
    """

    where: Condition = Every()
    axes: tuple[RowInteger | TextOf, ...] = ()
    shape: tuple[int, ...] | None = ()
    amounts: tuple[RowInteger, ...] = ()
    most: int = 0

    def columns(self) -> tuple[str, ...]:
        """The columns that it reads, each once, in a fixed order."""
        return tuple(dict.fromkeys(column_names((self.where, *self.axes, *self.amounts))))


@dataclass(frozen=True, slots=True, repr=False)
class Tallied:
    """What was found.

    keys    the cells that occur, one line for each axis
    counts  the number of rows in each; object or int64
    sums    the sum of each amount in each, a line for each amount
    """

    keys: Sequence[Sequence[Any]]
    counts: Sequence[int]
    sums: Sequence[Sequence[int]] = ()

    def counted(self, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
        """The counts of all cells, also of those that do not occur."""
        return self._spread(self.counts, shape, np.int64)

    def summed(self, amount: int, shape: tuple[int, ...], *, wide: bool) -> npt.NDArray[Any]:
        """The sums of an amount in all cells, as int64 or, wide, as Python integers."""
        return self._spread(self.sums[amount], shape, object if wide else np.int64)

    def _spread(self, found: Sequence[int], shape: tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:
        made = np.zeros(shape, dtype=dtype)
        if len(found):
            values = np.array([int(each) for each in found], dtype=dtype) if dtype is object else np.asarray(found)
            made[tuple(np.asarray(line, dtype=np.int64) for line in self.keys)] = values if shape else values[0]
        return made


def tallies_of(query: Any, domain: Domain, *, several: bool) -> tuple[Tally, ...] | None:
    """The tallies of a query; None if it has none, counts persons of whom there may be several rows, or looks for texts
    that are not listed."""
    tallies = getattr(query, "tallies", None)
    if tallies is None or (several and getattr(query, "by_person", False)):
        return None
    try:
        found: tuple[Tally, ...] = tallies(domain)
    except Unproven:
        return None
    return found


def column_names(parts: Iterable[Condition | RowInteger | TextOf]) -> Iterator[str]:
    """The columns that conditions and integers look at, with repetitions."""
    for part in parts:
        match part:
            case Within() | CodeOf() | TextOf():
                yield part.column
            case Every() | Some() | Added() | Multiplied():
                yield from column_names(part.parts)
            case Other():
                yield from column_names((part.part,))
            case Switch():
                yield from column_names((*part.conditions, *part.values, part.otherwise))
