"""Functions of one row, as data and never as functions: in which group a row is (keys), and how much it adds (values).

Keys. A group is a number 0 .. size - 1, found from declared columns alone, so that every group is public:

    a column's name     one group for each code, the missing one included
    Bins(column, ...)   ranges of the codes of one column: decades, months, levels joined
    Cases(conditions)   the first condition that holds; one more group where none does
    WithRest(keys, where)    the groups of several keys in a row, and one more for the rows that a condition refuses

Values. An exact number of a row, bounded by the declaration, a whole multiple of a public unit:

    Of(column)          a Number                    Fixed(number)
    Plus(parts)  Times(parts)  Power(base, exponent)
    Choose(conditions, values, otherwise)           the value beside the first condition that holds
    Lookup(columns, numbers, step, defined)         a number for each combination of codes

A row in which a needed column is missing, or for which Choose has no value, adds nothing: `known` is the predicate of
the other rows.

    bounds(domain)      the least and the largest value over all rows of the domain: interval arithmetic, exact unless a
                        column stands in several parts
    unit(domain)        of which every value is a whole multiple
    reach(domain)       no number on the way to a value is larger, in absolute value
    steps(batch)        the values in units, as integers; whatever where `known` does not hold
    coded(domain)       the same as data, for a dataset that groups and adds (`data.tally`); a key has it too
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from discreet.core import ParameterError, exact
from discreet.data import (
    Batch,
    CodeOf,
    Codes,
    Condition,
    Domain,
    Ints,
    Number,
    RowInteger,
    Switch,
    WholeNumber,
    Within,
    added,
    common_unit,
    multiplied,
)
from discreet.predicate import EVERYTHING, And, Missing, Not, Or, Predicate, predicates

MAX_STEPS = 2**62
"""No value may have more units than this: rows hold them as 64-bit integers."""

MAX_POWER = 4


@dataclass(frozen=True, slots=True, init=False)
class Bins:
    """Ranges of the codes of a column: those from starts[i] to the next start are in group groups[i]."""

    NAME: ClassVar[str] = "bins/1"
    column: str
    starts: tuple[int, ...]
    groups: tuple[int, ...]

    def __init__(self, column: str, starts: Iterable[int], groups: Iterable[int]) -> None:
        cuts, numbers = tuple(starts), tuple(groups)
        exact.freeze(self, column=exact.text(column=column), starts=cuts, groups=numbers)
        if not cuts or len(cuts) != len(numbers) or cuts[0] != 0 or any(a >= b for a, b in pairwise(cuts)):
            raise ParameterError("starts must increase from 0, with one group for each")
        if sorted(set(numbers)) != list(range(max(numbers) + 1)):
            raise ParameterError("groups must be the numbers 0, 1, ... without a gap")

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def atoms(self) -> int:
        return 1

    def size(self, domain: Domain) -> int:
        return max(self.groups) + 1

    def check(self, domain: Domain) -> None:
        column = domain.column(self.column)
        if not column.coded or self.starts[-1] >= column.size:
            raise ParameterError(f"column {self.column!r} is declared {column!r}: it has no such ranges of codes")

    def numbers(self, batch: Batch) -> Codes:
        place = np.searchsorted(np.array(self.starts), batch[self.column], side="right") - 1
        return np.array(self.groups, dtype=np.int64)[place]

    def coded(self, domain: Domain) -> RowInteger:
        ends = (*(start - 1 for start in self.starts[1:]), domain.column(self.column).size - 1)
        ranges: dict[int, list[tuple[int, int]]] = {}
        for start, end, group in zip(self.starts, ends, self.groups, strict=True):
            ranges.setdefault(group, []).append((start, end))
        last = self.groups[-1]
        others = {group: tuple(each) for group, each in ranges.items() if group != last}
        conditions = tuple(Within(self.column, each) for each in others.values())
        return _switch(conditions, tuple(map(WholeNumber, others)), WholeNumber(last))


@dataclass(frozen=True, slots=True, init=False)
class Cases:
    """The number of the first condition that holds, or the number after the last."""

    NAME: ClassVar[str] = "cases/1"
    conditions: tuple[Predicate, ...]

    def __init__(self, conditions: Iterable[Predicate]) -> None:
        exact.freeze(self, conditions=predicates(tuple(conditions)))

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(sorted({name for each in self.conditions for name in each.columns}))

    @property
    def atoms(self) -> int:
        return 1 + sum(each.atoms for each in self.conditions)

    def size(self, domain: Domain) -> int:
        return len(self.conditions) + 1

    def check(self, domain: Domain) -> None:
        for each in self.conditions:
            each.check(domain)

    def numbers(self, batch: Batch) -> Codes:
        return first_true(self.conditions, batch)

    def coded(self, domain: Domain) -> RowInteger:
        places = tuple(map(WholeNumber, range(len(self.conditions))))
        return _switch(coded_all(self.conditions, domain), places, WholeNumber(len(self.conditions)))


@dataclass(frozen=True, slots=True, init=False)
class WithRest:
    """The groups of all keys together, among the rows that satisfy a predicate; the others are one more group, the last
    one. Without a predicate there is no rest. So every row is in one group: the sizes add up to the number of rows."""

    NAME: ClassVar[str] = "with-rest/1"
    keys: tuple[Key, ...]
    where: Predicate

    def __init__(self, keys: Iterable[Key], where: Predicate = EVERYTHING) -> None:
        exact.freeze(self, keys=check_keys(tuple(keys)), where=predicates((where,))[0])

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(sorted({*key_columns(self.keys), *self.where.columns}))

    @property
    def atoms(self) -> int:
        return self.where.atoms + key_atoms(self.keys)

    def size(self, domain: Domain) -> int:
        return math.prod(key_sizes(self.keys, domain)) + (self.where != EVERYTHING)

    def check(self, domain: Domain) -> None:
        self.where.check(domain)
        key_sizes(self.keys, domain)

    def numbers(self, batch: Batch) -> Codes:
        cells = key_cells(self.keys, batch)
        if self.where == EVERYTHING:
            return cells
        return np.where(self.where.mask(batch), cells, self.size(batch.domain) - 1)

    def coded(self, domain: Domain) -> RowInteger:
        cell: RowInteger = WholeNumber(0)
        for axis, size in zip(coded_keys(self.keys, domain), key_sizes(self.keys, domain), strict=True):
            cell = axis if cell == WholeNumber(0) else added(multiplied(cell, WholeNumber(size)), axis)
        if self.where == EVERYTHING:
            return cell
        return _switch((self.where.coded(domain),), (cell,), WholeNumber(self.size(domain) - 1))


Key = str | Bins | Cases | WithRest


def check_keys(keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """The keys, if all of them are such."""
    for key in keys:
        if not isinstance(key, (str, Bins, Cases, WithRest)):
            raise ParameterError(f"a group is made by a column's name, Bins or Cases, found {key!r}")
    return keys


def key_columns(keys: Iterable[Key]) -> Iterable[str]:
    """The columns that the keys look at."""
    return (column for key in keys for column in ((key,) if isinstance(key, str) else key.columns))


def key_atoms(keys: Iterable[Key]) -> int:
    """The comparisons of a row that its group takes."""
    return sum(1 if isinstance(key, str) else key.atoms for key in keys)


def key_sizes(keys: Iterable[Key], domain: Domain) -> tuple[int, ...]:
    """How many groups each key makes, if it fits the domain."""
    sizes = []
    for key in keys:
        if isinstance(key, str):
            if not domain.column(key).coded:
                raise ParameterError(f"column {key!r} is declared {domain.column(key)!r}: it has no groups")
            sizes.append(domain.column(key).size)
        else:
            key.check(domain)
            sizes.append(key.size(domain))
    return tuple(sizes)


def key_cells(keys: Sequence[Key], batch: Batch) -> Codes:
    """For each row the number of its group, the last key counting fastest."""
    cell = np.zeros(batch.rows, dtype=np.int64)
    for key, size in zip(keys, key_sizes(keys, batch.domain), strict=True):
        cell = cell * size + (batch[key] if isinstance(key, str) else key.numbers(batch))
    return cell


def coded_keys(keys: Iterable[Key], domain: Domain) -> tuple[RowInteger, ...]:
    """For each key the number of a row's group, as data."""
    return tuple(CodeOf(key) if isinstance(key, str) else key.coded(domain) for key in keys)


def coded_all(conditions: Iterable[Predicate], domain: Domain) -> tuple[Condition, ...]:
    """The conditions as ranges of codes."""
    return tuple(each.coded(domain) for each in conditions)


def _switch(conditions: tuple[Condition, ...], values: tuple[RowInteger, ...], otherwise: RowInteger) -> RowInteger:
    return Switch(conditions, values, otherwise) if conditions else otherwise


def first_true(conditions: Sequence[Predicate], batch: Batch) -> Codes:
    """For each row the number of the first condition that holds, or how many there are."""
    found = np.full(batch.rows, len(conditions), dtype=np.int64)
    for place in reversed(range(len(conditions))):
        found[conditions[place].mask(batch)] = place
    return found


@dataclass(frozen=True, slots=True)
class Of:
    """The value of a Number."""

    NAME: ClassVar[str] = "of/1"
    column: str

    def __post_init__(self) -> None:
        exact.text(column=self.column)

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def known(self, domain: Domain) -> Predicate:
        return EVERYTHING if domain.column(self.column).missing_code is None else Not(Missing(self.column))

    def bounds(self, domain: Domain) -> tuple[Fraction, Fraction]:
        number = number_of(domain, self.column)
        return number.low, number.high

    def unit(self, domain: Domain) -> Fraction:
        return number_of(domain, self.column).unit

    def reach(self, domain: Domain) -> Fraction:
        return max(map(abs, self.bounds(domain)))

    def steps(self, batch: Batch) -> Ints:
        number = number_of(batch.domain, self.column)
        codes = np.minimum(batch[self.column], number.steps)  # the missing code is beyond
        return np.asarray(int(number.low / number.unit) + codes * int(number.step / number.unit))

    def coded(self, domain: Domain) -> RowInteger:
        number = number_of(domain, self.column)
        low, step = (int(each / number.unit) for each in (number.low, number.step))
        value = added(WholeNumber(low), multiplied(CodeOf(self.column), WholeNumber(step)))
        missing = number.missing_code
        return value if missing is None else Switch((Within.among(self.column, [missing]),), (WholeNumber(0),), value)


@dataclass(frozen=True, slots=True, init=False)
class Fixed:
    """The same number for every row."""

    NAME: ClassVar[str] = "fixed/1"
    number: Fraction

    def __init__(self, number: exact.Exact) -> None:
        exact.freeze(self, number=exact.number(number=number))

    @property
    def columns(self) -> tuple[str, ...]:
        return ()

    def known(self, domain: Domain) -> Predicate:
        return EVERYTHING

    def bounds(self, domain: Domain) -> tuple[Fraction, Fraction]:
        return self.number, self.number

    def unit(self, domain: Domain) -> Fraction:
        return abs(self.number) or Fraction(1)

    def reach(self, domain: Domain) -> Fraction:
        return abs(self.number)

    def steps(self, batch: Batch) -> Ints:
        return np.full(batch.rows, self._sign, dtype=np.int64)

    def coded(self, domain: Domain) -> RowInteger:
        return WholeNumber(self._sign)

    @property
    def _sign(self) -> int:
        return (self.number > 0) - (self.number < 0)


@dataclass(frozen=True, slots=True, init=False)
class _SeveralValues:
    """A value made of several."""

    parts: tuple[Value, ...]

    def __init__(self, *given: Value, parts: Iterable[Value] = ()) -> None:
        exact.freeze(self, parts=values((*given, *parts)))
        if not self.parts:
            raise ParameterError("a value is made of at least one part, found none")

    @property
    def columns(self) -> tuple[str, ...]:
        return _columns(self.parts)

    def known(self, domain: Domain) -> Predicate:
        return joined(part.known(domain) for part in self.parts)


class Plus(_SeveralValues):
    """The sum of the parts."""

    __slots__ = ()
    NAME: ClassVar[str] = "plus/1"

    def bounds(self, domain: Domain) -> tuple[Fraction, Fraction]:
        ends = [part.bounds(domain) for part in self.parts]
        return sum((low for low, _ in ends), Fraction(0)), sum((high for _, high in ends), Fraction(0))

    def unit(self, domain: Domain) -> Fraction:
        return _common(self.parts, domain)

    def reach(self, domain: Domain) -> Fraction:
        return sum((part.reach(domain) for part in self.parts), Fraction(0))

    def steps(self, batch: Batch) -> Ints:
        unit = self.unit(batch.domain)
        return np.asarray(sum((_in_units(part, batch, unit) for part in self.parts), _zeros(batch)))

    def coded(self, domain: Domain) -> RowInteger:
        return added(*(_coded_in_units(part, domain, self.unit(domain)) for part in self.parts))


class Times(_SeveralValues):
    """The product of the parts."""

    __slots__ = ()
    NAME: ClassVar[str] = "times/1"

    def bounds(self, domain: Domain) -> tuple[Fraction, Fraction]:
        low = high = Fraction(1)
        for part in self.parts:
            corners = [one * other for one in (low, high) for other in part.bounds(domain)]
            low, high = min(corners), max(corners)
        return low, high

    def unit(self, domain: Domain) -> Fraction:
        return math.prod((part.unit(domain) for part in self.parts), start=Fraction(1))

    def reach(self, domain: Domain) -> Fraction:
        return math.prod((part.reach(domain) for part in self.parts), start=Fraction(1))

    def steps(self, batch: Batch) -> Ints:
        return np.asarray(math.prod((part.steps(batch) for part in self.parts), start=np.ones(batch.rows, np.int64)))

    def coded(self, domain: Domain) -> RowInteger:
        return multiplied(*(part.coded(domain) for part in self.parts))


@dataclass(frozen=True, slots=True)
class Power:
    """A value multiplied with itself: exponent 2 is its square."""

    NAME: ClassVar[str] = "power/1"
    base: Value
    exponent: int

    def __post_init__(self) -> None:
        values((self.base,))
        if exact.whole(exponent=self.exponent) > MAX_POWER:
            raise ParameterError(f"exponent must be at most {MAX_POWER}, found {self.exponent}")

    @property
    def columns(self) -> tuple[str, ...]:
        return self.base.columns

    def known(self, domain: Domain) -> Predicate:
        return self.base.known(domain)

    def bounds(self, domain: Domain) -> tuple[Fraction, Fraction]:
        low, high = self.base.bounds(domain)
        ends = (low**self.exponent, high**self.exponent)
        through = self.exponent % 2 == 0 and low < 0 < high
        return Fraction(0) if through else min(ends), max(ends)

    def unit(self, domain: Domain) -> Fraction:
        return self.base.unit(domain) ** self.exponent

    def reach(self, domain: Domain) -> Fraction:
        return self.base.reach(domain) ** self.exponent

    def steps(self, batch: Batch) -> Ints:
        return np.asarray(self.base.steps(batch) ** self.exponent)

    def coded(self, domain: Domain) -> RowInteger:
        return multiplied(*(self.base.coded(domain),) * self.exponent)


@dataclass(frozen=True, slots=True, init=False)
class Choose:
    """The value beside the first condition that holds; `otherwise` where none does, or nothing."""

    NAME: ClassVar[str] = "choose/1"
    conditions: tuple[Predicate, ...]
    values: tuple[Value | None, ...]
    otherwise: Value | None

    def __init__(
        self, conditions: Iterable[Predicate], values: Iterable[Value | None], otherwise: Value | None = None
    ) -> None:
        found, chosen = tuple(conditions), tuple(values)
        exact.freeze(self, conditions=predicates(found), values=chosen, otherwise=otherwise)
        _checked(each for each in (*chosen, otherwise) if each is not None)
        if not found or len(found) != len(chosen) or not self._given:
            raise ParameterError("Choose needs a value for each of its conditions, and at least one of each")

    @property
    def _given(self) -> tuple[Value, ...]:
        return tuple(each for each in (*self.values, self.otherwise) if each is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(sorted({*_columns(self._given), *(name for each in self.conditions for name in each.columns)}))

    def known(self, domain: Domain) -> Predicate:
        ways, before = list[Predicate](), list[Predicate]()
        for condition, value in zip((*self.conditions, EVERYTHING), (*self.values, self.otherwise), strict=True):
            known = None if value is None else value.known(domain)
            if known is not None:
                ways.append(joined([*before, condition, known]))
            if known != EVERYTHING:  # rows of other conditions have a value, by whichever of them they are counted
                before.append(Not(condition))
        full = self.otherwise is not None and None not in self.values
        return EVERYTHING if full and all(each.known(domain) == EVERYTHING for each in self._given) else Or(*ways)

    def bounds(self, domain: Domain) -> tuple[Fraction, Fraction]:
        ends = [each.bounds(domain) for each in self._given]
        return min(low for low, _ in ends), max(high for _, high in ends)

    def unit(self, domain: Domain) -> Fraction:
        return _common(self._given, domain)

    def reach(self, domain: Domain) -> Fraction:
        return max(each.reach(domain) for each in self._given)

    def steps(self, batch: Batch) -> Ints:
        unit, place, found = self.unit(batch.domain), first_true(self.conditions, batch), _zeros(batch)
        for number, each in enumerate((*self.values, self.otherwise)):
            if each is not None:
                found = np.where(place == number, _in_units(each, batch, unit), found)
        return found

    def coded(self, domain: Domain) -> RowInteger:
        unit = self.unit(domain)
        chosen = [
            WholeNumber(0) if each is None else _coded_in_units(each, domain, unit)
            for each in (*self.values, self.otherwise)
        ]
        return Switch(coded_all(self.conditions, domain), tuple(chosen[:-1]), chosen[-1])


@dataclass(frozen=True, slots=True, init=False)
class Lookup:
    """A number for each combination of codes of some columns, the last one counting fastest, in steps; a row that does
    not satisfy `defined` has no value."""

    NAME: ClassVar[str] = "lookup/1"
    columns: tuple[str, ...]
    numbers: tuple[int, ...]
    step: Fraction
    defined: Predicate

    def __init__(
        self,
        columns: Iterable[str],
        numbers: Iterable[int],
        step: exact.Exact = 1,
        defined: Predicate = EVERYTHING,
    ) -> None:
        names, listed = tuple(exact.text(column=name) for name in columns), tuple(numbers)
        exact.freeze(self, columns=names, numbers=listed, step=exact.positive(step=step), defined=defined)
        predicates((defined,))
        if not names or len(set(names)) < len(names) or not listed or any(type(each) is not int for each in listed):
            raise ParameterError("Lookup needs columns, each once, and a whole number for each of their cells")

    def known(self, domain: Domain) -> Predicate:
        return self.defined

    def bounds(self, domain: Domain) -> tuple[Fraction, Fraction]:
        cells = math.prod(key_sizes(self.columns, domain))
        if cells != len(self.numbers):
            raise ParameterError(f"{', '.join(self.columns)} have {cells} cells, found {len(self.numbers)} numbers")
        return self.step * min(self.numbers), self.step * max(self.numbers)

    def unit(self, domain: Domain) -> Fraction:
        return self.step

    def reach(self, domain: Domain) -> Fraction:
        return max(map(abs, self.bounds(domain)))

    def steps(self, batch: Batch) -> Ints:
        self.bounds(batch.domain)
        return np.array(self.numbers, dtype=np.int64)[key_cells(self.columns, batch)]

    def coded(self, domain: Domain) -> RowInteger:
        self.bounds(domain)
        return _listed(self.columns, self.numbers, domain)


def _listed(columns: tuple[str, ...], numbers: tuple[int, ...], domain: Domain) -> RowInteger:
    """The number of the cell of these columns: a choice by the code of the first, then of the others."""
    if not columns:
        return WholeNumber(numbers[0])
    size = len(numbers) // domain.column(columns[0]).size
    codes: dict[RowInteger, list[int]] = {}
    for code, start in enumerate(range(0, len(numbers), size)):
        codes.setdefault(_listed(columns[1:], numbers[start : start + size], domain), []).append(code)
    *others, last = codes
    return _switch(tuple(Within.among(columns[0], codes[each]) for each in others), tuple(others), last)


Value = Of | Fixed | Plus | Times | Power | Choose | Lookup
_VALUES = (Of, Fixed, Plus, Times, Power, Choose, Lookup)


def values(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """The parts, if all of them are values."""
    _checked(parts)
    return parts


def check_value(value: Value, domain: Domain) -> None:
    """Refuse a value whose integers could be too large."""
    if value.reach(domain) >= MAX_STEPS * value.unit(domain):
        raise ParameterError("this value has too many steps to be summed exactly: declare larger steps")


def _checked(parts: Iterable[object]) -> None:
    for part in parts:
        if not isinstance(part, _VALUES):
            raise ParameterError(f"what is summed must be a value, such as Of or Times, found {part!r}")


def _common(parts: Iterable[Value], domain: Domain) -> Fraction:
    units = [part.unit(domain) for part in parts if part != Fixed(0)]
    return common_unit(units) if units else Fraction(1)


def _in_units(part: Value, batch: Batch, unit: Fraction) -> Ints:
    return _zeros(batch) if part == Fixed(0) else part.steps(batch) * int(part.unit(batch.domain) / unit)


def _coded_in_units(part: Value, domain: Domain, unit: Fraction) -> RowInteger:
    if part == Fixed(0):
        return WholeNumber(0)
    return multiplied(part.coded(domain), WholeNumber(int(part.unit(domain) / unit)))


def _zeros(batch: Batch) -> Ints:
    return np.zeros(batch.rows, dtype=np.int64)


def _columns(parts: Iterable[Value]) -> tuple[str, ...]:
    return tuple(sorted({name for part in parts for name in part.columns}))


def number_of(domain: Domain, name: str) -> Number:
    """The declared Number of this name: a column that has bounded sums."""
    column = domain.column(name)
    if not column.bounded:
        advice = "; declare its bounds: Number(low, high, step)" if column.ordered and column.coded else ""
        raise ParameterError(f"column {name!r} is declared {column!r}: it has no bounded sum{advice}")
    return column


def joined(parts: Iterable[Predicate]) -> Predicate:
    """All of the parts, each once."""
    flat = [inner for part in parts for inner in (part.inner if type(part) is And else (part,))]
    kept = tuple(dict.fromkeys(flat))
    return kept[0] if len(kept) == 1 else And(*kept)
