"""Public lists of conditions on a row: what a conjunction or a rule is made of.

    Literals(columns)        v and not v for boolean columns of a table, or for the Bits of a BitMatrix
    Thresholds(columns)      x >= a, x <= b for numbers, x = level, x != level for categories

Conditions are numbered 0 .. size - 1. A learner counts, for a group of rows, how many falsify each of them
(`falsified`), and keeps the rows that satisfy the conditions chosen so far (`holds`). Both look at one row at a time.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from discreet import exact
from discreet.data import (
    Batch,
    Bits,
    Category,
    Domain,
    IntArray,
    Mask,
    Number,
    Words,
    common_ones,
    packed,
    spell,
    unpacked,
)
from discreet.errors import ParameterError
from discreet.pac.columns import distinct

_CACHED = 2**16  # words of 64 rows that stay in the cache

CUTS = 256
"""How many values of a number are looked at, unless it has fewer or more are asked for."""


class Conditions(Protocol):
    """A public, finite list of conditions on a row.

    said  a condition in words; `names` are other names for the variables.
    """

    def check(self, domain: Domain) -> None: ...
    def size(self, domain: Domain) -> int: ...
    def falsified(self, batch: Batch, groups: Sequence[Mask]) -> IntArray: ...
    def holds(self, batch: Batch, numbers: Sequence[int]) -> Mask: ...
    def said(self, domain: Domain, number: int, names: Sequence[str] | None = None) -> str: ...


@dataclass(frozen=True, slots=True, init=False)
class Literals:
    """The literals v (number 2 i) and not v (number 2 i + 1) of boolean variables.

    columns  one column of Bits, whose variables are called v1, v2, ...; or columns of a table that are categories of
             two levels, of which the second means true.
    """

    NAME: ClassVar[str] = "literals/1"
    columns: tuple[str, ...]

    def __init__(self, columns: str | Iterable[str]) -> None:
        object.__setattr__(self, "columns", distinct(columns))

    def check(self, domain: Domain) -> None:
        if len(self.columns) == 1 and isinstance(domain.column(self.columns[0]), Bits):
            return
        for name in self.columns:
            column = domain.column(name)
            if not isinstance(column, Category) or column.size != 2:
                raise ParameterError(
                    f"column {name!r} is declared {column!r}: a literal needs a Category of two levels, the second "
                    "meaning true"
                )

    def variables(self, domain: Domain) -> int:
        """How many variables there are: d."""
        column = domain.column(self.columns[0])
        return column.dimension if isinstance(column, Bits) else len(self.columns)

    def size(self, domain: Domain) -> int:
        return 2 * self.variables(domain)

    def bits(self, batch: Batch) -> Words:
        """The variables of the rows, packed by variable: shape (d, words)."""
        if isinstance(batch.domain.column(self.columns[0]), Bits):
            return batch.stored(self.columns[0])
        return np.stack([packed(batch.stored(name) == 1) for name in self.columns])

    def falsified(self, batch: Batch, groups: Sequence[Mask]) -> IntArray:
        masks = [packed(group) for group in groups]
        true = np.zeros((len(groups), self.variables(batch.domain)), dtype=np.int64)
        for first, lines in self._lines(batch):
            for group, mask in enumerate(masks):
                true[group, first : first + len(lines)] = common_ones(lines, mask)
        totals = np.array([np.count_nonzero(group) for group in groups], dtype=np.int64).reshape(-1, 1)
        return np.stack([totals - true, true], axis=2).reshape(len(groups), 2 * true.shape[1])

    def holds(self, batch: Batch, numbers: Sequence[int]) -> Mask:
        kept = np.ones(batch.rows, dtype=bool)
        for number in numbers:
            true = self._true(batch, number // 2)
            kept &= ~true if number % 2 else true
        return kept

    def said(self, domain: Domain, number: int, names: Sequence[str] | None = None) -> str:
        name = self.names(domain)[number // 2] if names is None else names[number // 2]
        return f"not {name}" if number % 2 else name

    def names(self, domain: Domain) -> tuple[str, ...]:
        """What the variables are called."""
        column = domain.column(self.columns[0])
        return tuple(f"v{i + 1}" for i in range(column.dimension)) if isinstance(column, Bits) else self.columns

    def _lines(self, batch: Batch) -> Iterator[tuple[int, Words]]:
        """The packed variables, a few at a time so that several groups read them from the cache, with the first one's
        number."""
        if not isinstance(batch.domain.column(self.columns[0]), Bits):
            yield from ((place, packed(batch.stored(name) == 1)[None]) for place, name in enumerate(self.columns))
            return
        words = batch.stored(self.columns[0])
        together = max(1, _CACHED // max(1, words.shape[1]))
        yield from ((first, words[first : first + together]) for first in range(0, len(words), together))

    def _true(self, batch: Batch, variable: int) -> Mask:
        if isinstance(batch.domain.column(self.columns[0]), Bits):
            return unpacked(batch.stored(self.columns[0])[variable], batch.rows)
        found: Mask = batch.stored(self.columns[variable]) == 1
        return found


@dataclass(frozen=True, slots=True, init=False)
class Thresholds:
    """The conditions x >= a and x <= b on numbers, x = level and x != level on categories.

    cuts  how many values of each number are used: all of its grid if it has no more, otherwise evenly spaced ones of
          it. They are public. The two conditions that every number satisfies are left out; a missing number satisfies
          none.
    """

    NAME: ClassVar[str] = "thresholds/1"
    columns: tuple[str, ...]
    cuts: int

    def __init__(self, columns: str | Iterable[str], cuts: int = CUTS) -> None:
        object.__setattr__(self, "columns", distinct(columns))
        object.__setattr__(self, "cuts", exact.whole(minimum=2, cuts=cuts))

    def check(self, domain: Domain) -> None:
        for name in self.columns:
            column = domain.column(name)
            if not isinstance(column, (Number, Category)):
                raise ParameterError(
                    f"column {name!r} is declared {column!r}: a condition needs a Number or a Category"
                )

    def size(self, domain: Domain) -> int:
        return sum(self._sizes(domain))

    def falsified(self, batch: Batch, groups: Sequence[Mask]) -> IntArray:
        found = [[self._count(batch, name, group) for name in self.columns] for group in groups]
        return np.array([np.concatenate(line) for line in found], dtype=np.int64)

    def holds(self, batch: Batch, numbers: Sequence[int]) -> Mask:
        kept = np.ones(batch.rows, dtype=bool)
        for number in numbers:
            name, first, last, inside = self._meaning(batch.domain, number)
            codes = batch.stored(name)
            kept &= ((codes >= first) & (codes <= last)) == inside
        return kept

    def said(self, domain: Domain, number: int, names: Sequence[str] | None = None) -> str:
        name, first, last, inside = self._meaning(domain, number)
        column = domain.column(name)
        called = name if names is None else names[self.columns.index(name)]
        if isinstance(column, Category):
            return f"{called} {'=' if inside else '!='} {column.label(first)}"
        assert isinstance(column, Number)
        return f"{called} <= {spell(column.value(last))}" if first == 0 else f"{called} >= {spell(column.value(first))}"

    def meaning(self, domain: Domain, number: int) -> tuple[str, int, int, bool]:
        """A condition as (column, first code, last code, inside): the code is in first .. last, or is not."""
        return self._meaning(domain, number)

    def _sizes(self, domain: Domain) -> list[int]:
        return [_conditions(domain.column(name), self.cuts) for name in self.columns]

    def _meaning(self, domain: Domain, number: int) -> tuple[str, int, int, bool]:
        ends = list(itertools.accumulate(self._sizes(domain)))
        which = bisect.bisect_right(ends, number)
        name, place = self.columns[which], number - (ends[which - 1] if which else 0)
        column = domain.column(name)
        if isinstance(column, Category):
            return name, place // 2, place // 2, place % 2 == 0
        assert isinstance(column, Number)
        values = _cut_codes(column, self.cuts)
        least, most = (int(values[place // 2 + 1]), column.steps), (0, int(values[place // 2]))
        return (name, *(most if place % 2 else least), True)

    def _count(self, batch: Batch, name: str, group: Mask) -> IntArray:
        """How many rows of the group falsify each condition on one column."""
        column, codes = batch.domain.column(name), batch[name][group]  # unsigned codes would be searched in floats
        found = np.empty(_conditions(column, self.cuts), dtype=np.int64)
        if isinstance(column, Category):
            levels = np.bincount(codes, minlength=column.size)
            found[0::2], found[1::2] = len(codes) - levels, levels
            return found
        assert isinstance(column, Number)
        values, present = _cut_codes(column, self.cuts), codes
        if column.missing_code is not None:
            present = codes[codes != column.missing_code]
        found[0::2] = len(codes) - len(present) + _ranks(values, present, side="right")[1:]  # those under the cut
        found[1::2] = len(codes) - _ranks(values, present, side="left")[:-1]  # those above it
        return found


def _ranks(values: npt.NDArray[np.int64], codes: npt.NDArray[Any], *, side: Any) -> IntArray:
    """How many codes are below each value ("right") or not above it ("left")."""
    places = np.bincount(np.searchsorted(values, codes, side=side), minlength=len(values) + 1)
    return np.asarray(places[: len(values)].cumsum(), dtype=np.int64)


def _conditions(column: Any, cuts: int) -> int:
    return 2 * column.size if isinstance(column, Category) else 2 * (len(_cut_codes(column, cuts)) - 1)


def _cut_codes(column: Number, cuts: int) -> npt.NDArray[np.int64]:
    """The public values of a number that conditions speak about, as codes, increasing."""
    steps = column.steps
    count = min(cuts, steps + 1)
    return np.array([place * steps // (count - 1) for place in range(count)], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Conjunction:
    """The rule that says "positive" where all of these conditions hold; `never` is the rule that always says no."""

    NAME: ClassVar[str] = "conjunction/1"
    conditions: Literals | Thresholds
    numbers: tuple[int, ...]
    never: bool = False

    def check(self, domain: Domain) -> None:
        self.conditions.check(domain)
        size = self.conditions.size(domain)
        if not all(0 <= number < size for number in self.numbers):
            raise ParameterError(f"conditions are numbered 0 .. {size - 1}, found {self.numbers}")

    def mask(self, batch: Batch) -> Mask:
        kept = self.conditions.holds(batch, self.numbers)
        return np.zeros_like(kept) if self.never else kept

    def said(self, domain: Domain, names: Sequence[str] | None = None) -> str:
        """The rule as a sentence; a variable and its negation together say "never"."""
        if self.never or self._contradicts():
            return "never"
        words = [self.conditions.said(domain, number, names) for number in sorted(set(self.numbers))]
        return " and ".join(words) or "always"

    def _contradicts(self) -> bool:
        literals = set(self.numbers)
        return isinstance(self.conditions, Literals) and any(number ^ 1 in literals for number in literals)
