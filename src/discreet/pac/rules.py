"""Labels, conditions and the rules made of them: what every learner reads, and what it releases.

    Labels(column, positive)     which rows are positive examples
    Literals(columns)            the conditions v and not v on booleans: columns of a table, or the Bits of a BitMatrix
    Thresholds(columns, cuts)    the conditions x >= a, x <= b on numbers, x = level, x != level on categories

    Conjunction(conditions, numbers)   positive where all of these conditions hold
    BoxRule(columns, low, high)        positive where every value is in its interval
    Where(predicate)                   positive where a predicate holds
    FunctionRule(label, function)      positive where a user's function of one row says so
    Mistakes(rule, labels)             the query: the number of rows that a rule labels wrong

Conditions are a public list, numbered 0 .. size - 1. A learner counts, for a group of rows, how many falsify each of
them (`falsified`), and keeps the rows that satisfy the conditions chosen so far (`holds`). Both look at one row at a
time. A rule reads as a `sentence`, a condition `in_words`; `names` are other names for the columns.

What cannot be computed from sums takes a whole column at once (`exact_gather`, `sorted_column`), which must fit in
memory.
"""

from __future__ import annotations

import bisect
import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from discreet.core import ParameterError, exact, record
from discreet.data import (
    AnyNumber,
    Batch,
    Codes,
    Column,
    Dataset,
    Date,
    Domain,
    Facts,
    IntArray,
    Level,
    Mask,
    Number,
    Timestamp,
    Whole,
    Words,
    common_ones,
    packed,
    unpacked,
)
from discreet.query import Predicate, Sensitivity, alone, of_persons, predicates

Ordered = Number | Date | Timestamp | AnyNumber | Whole

CUTS = 256
"""The number of values of a Number that conditions compare with, by default; all values if there are fewer."""

_CACHED = 2**16  # words of 64 rows that stay in the cache


# Columns.


def ordered(domain: Domain, name: str) -> Ordered:
    """The declaration of a column whose values have an order."""
    column = domain.column(name)
    if not column.ordered:
        raise ParameterError(f"column {name!r} is declared {column!r}: it has no order, and this needs Numbers")
    return column


def distinct(columns: str | Iterable[str]) -> tuple[str, ...]:
    """Names of columns: distinct, at least one."""
    names = (columns,) if isinstance(columns, str) else tuple(exact.text(columns=name) for name in columns)
    if not names or len(set(names)) < len(names):
        raise ParameterError(f"columns must be distinct names, at least one, found {names!r}")
    return names


def sorted_column(data: Dataset, name: str) -> npt.NDArray[Any]:
    """The codes of a column in increasing order, missing ones left out: int64, or Python integers for a Whole."""
    values = np.sort(data.exact_gather(functools.partial(_present, name)))
    return values if values.dtype == object else values.astype(np.int64, copy=False)


def _present(name: str, batch: Batch) -> npt.NDArray[Any]:
    """The codes that are not missing."""
    codes, missing = batch.stored(name), batch.domain.column(name).missing_code
    return codes if missing is None else codes[codes != missing]


# Labels, and the mistakes of a rule.


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
        column = domain.column(self.column)
        if not column.categorical:
            raise ParameterError(f"the target {self.column!r} is declared {column!r}: classes need a Category")
        column.code(self.positive)
        if column.size < 2:
            raise ParameterError(f"the target {self.column!r} needs at least two classes, found one")

    def mask(self, batch: Batch) -> Mask:
        """The positive rows of a batch."""
        column = batch.domain.column(self.column)
        assert column.categorical
        return np.asarray(batch.stored(self.column) == column.code(self.positive))


class Rule(Protocol):
    """A hypothesis: a public condition on a row that predicts "positive"."""

    def check(self, domain: Domain) -> None: ...
    def mask(self, batch: Batch) -> Mask: ...
    def sentence(self, domain: Domain) -> str: ...


@dataclass(frozen=True, slots=True)
class Mistakes:
    """The number of rows that a rule labels wrong: n * error_X(h) of lecture 12.

    Theorem.   A row adds 0 or 1. add-remove and replace-one: |d| <= 1; k rows per person: k. range 0.
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


# Conditions.


@dataclass(frozen=True, slots=True, init=False)
class Literals:
    """The literals v (number 2 i) and not v (number 2 i + 1) of boolean variables.

    columns  one column of Bits, whose variables are called v1, v2, ...; or columns of a table that are categories of
             two levels, of which the second means true.
    """

    literal: ClassVar[bool] = True
    NAME: ClassVar[str] = "literals/1"
    columns: tuple[str, ...]

    def __init__(self, columns: str | Iterable[str]) -> None:
        exact.freeze(self, columns=distinct(columns))

    def check(self, domain: Domain) -> None:
        for name in self.columns:
            column = domain.column(name)
            if not (column.binary or (column.packed and len(self.columns) == 1)):
                raise ParameterError(
                    f"column {name!r} is declared {column!r}: a literal needs a Category of two levels, the second "
                    "meaning true"
                )

    def variables(self, domain: Domain) -> int:
        """The number d of variables."""
        column = domain.column(self.columns[0])
        return column.dimension if column.packed else len(self.columns)

    def size(self, domain: Domain) -> int:
        return 2 * self.variables(domain)

    def bits(self, batch: Batch) -> Words:
        """The variables of the rows, packed by variable: shape (d, words)."""
        if batch.domain.column(self.columns[0]).packed:
            return batch.stored(self.columns[0])
        return np.stack([packed(batch.stored(name) == 1) for name in self.columns])

    def falsified(self, batch: Batch, groups: Sequence[Mask]) -> IntArray:
        """The number of rows of each group that falsify each condition: shape (groups, size)."""
        masks, lines = [packed(group) for group in groups], self.bits(batch)
        together = max(1, _CACHED // max(1, lines.shape[1]))  # several groups read these lines from the cache
        true = np.zeros((len(groups), len(lines)), dtype=np.int64)
        for first in range(0, len(lines), together):
            for group, mask in enumerate(masks):
                true[group, first : first + together] = common_ones(lines[first : first + together], mask)
        totals = np.array([np.count_nonzero(group) for group in groups], dtype=np.int64).reshape(-1, 1)
        return np.stack([totals - true, true], axis=2).reshape(len(groups), 2 * len(lines))

    def holds(self, batch: Batch, numbers: Sequence[int]) -> Mask:
        """The rows that satisfy all of these conditions."""
        bits = batch.domain.column(self.columns[0]).packed
        kept = np.ones(batch.rows, dtype=bool)
        for number in numbers:
            if bits:
                true = unpacked(batch.stored(self.columns[0])[number // 2], batch.rows)
            else:
                true = batch.stored(self.columns[number // 2]) == 1
            kept &= ~true if number % 2 else true
        return kept

    def meaning(self, domain: Domain, number: int) -> tuple[str, int, int, bool]:
        """A literal on a column as (column, first code, last code, inside)."""
        return self.columns[number // 2], 1 - number % 2, 1 - number % 2, True

    def contradict(self, numbers: Iterable[int]) -> bool:
        """Whether a variable and its negation are among these conditions."""
        return not {number ^ 1 for number in numbers}.isdisjoint(numbers)

    def in_words(self, domain: Domain, number: int, names: Sequence[str] | None = None) -> str:
        column = domain.column(self.columns[0])
        own = [f"v{i + 1}" for i in range(column.dimension)] if column.packed else self.columns
        name = (own if names is None else names)[number // 2]
        return f"not {name}" if number % 2 else name


@dataclass(frozen=True, slots=True, init=False)
class Thresholds:
    """The conditions x >= a and x <= b on numbers, x = level and x != level on categories.

    cuts  the number of values of each Number that are used: all of its grid if it has no more, otherwise evenly spaced
          ones of it. They are public. The two conditions that every number satisfies are left out; a missing number
          satisfies none.
    """

    literal: ClassVar[bool] = False
    NAME: ClassVar[str] = "thresholds/1"
    columns: tuple[str, ...]
    cuts: int

    def __init__(self, columns: str | Iterable[str], cuts: int = CUTS) -> None:
        exact.freeze(self, columns=distinct(columns), cuts=exact.whole(minimum=2, cuts=cuts))

    def check(self, domain: Domain) -> None:
        for name in self.columns:
            column = domain.column(name)
            if not column.listed:
                raise ParameterError(
                    f"column {name!r} is declared {column!r}: a condition needs a Number or a Category"
                )

    def size(self, domain: Domain) -> int:
        return sum(len(_intervals(domain.column(name), self.cuts)[0]) for name in self.columns)

    def falsified(self, batch: Batch, groups: Sequence[Mask]) -> IntArray:
        """The number of rows of each group that falsify each condition: shape (groups, size)."""
        counts: list[list[IntArray]] = [[] for _ in groups]
        for name in self.columns:
            first, last, inside = _intervals(batch.domain.column(name), self.cuts)
            ends = np.unique(np.concatenate([first, last + 1]))
            starts, stops = np.searchsorted(ends, first), np.searchsorted(ends, last + 1)
            for group, line in zip(groups, counts, strict=True):
                codes = batch[name][group]  # unsigned codes would be searched in floats
                below = np.bincount(np.searchsorted(ends, codes, side="right"), minlength=len(ends) + 1).cumsum()
                satisfied = below[stops] - below[starts]
                line.append(np.where(inside, len(codes) - satisfied, satisfied))
        return np.array([np.concatenate(line) for line in counts], dtype=np.int64)

    def holds(self, batch: Batch, numbers: Sequence[int]) -> Mask:
        """The rows that satisfy all of these conditions."""
        kept = np.ones(batch.rows, dtype=bool)
        for number in numbers:
            name, first, last, inside = self.meaning(batch.domain, number)
            codes = batch.stored(name)
            kept &= ((codes >= first) & (codes <= last)) == inside
        return kept

    def contradict(self, numbers: Iterable[int]) -> bool:
        """No two conditions are each other's negation by their numbers."""
        return False

    def in_words(self, domain: Domain, number: int, names: Sequence[str] | None = None) -> str:
        name, first, last, inside = self.meaning(domain, number)
        column = domain.column(name)
        assert column.listed
        called = name if names is None else names[self.columns.index(name)]
        if column.categorical:
            return f"{called} {'=' if inside else '!='} {column.text(first)}"
        return f"{called} <= {column.text(last)}" if first == 0 else f"{called} >= {column.text(first)}"

    def meaning(self, domain: Domain, number: int) -> tuple[str, int, int, bool]:
        """A condition as (column, first code, last code, inside): the code is in first .. last, or is not."""
        lists = [_intervals(domain.column(name), self.cuts) for name in self.columns]
        ends = list(itertools.accumulate(len(first) for first, _, _ in lists))
        which = bisect.bisect_right(ends, number)
        first, last, inside = (values[number - ends[which]] for values in lists[which])  # a place before the list's end
        return self.columns[which], int(first), int(last), bool(inside)


@functools.lru_cache(maxsize=1024)
def _intervals(column: Column, cuts: int) -> tuple[Codes, Codes, Mask]:
    """The conditions on one column as codes first .. last, and whether the code is inside or outside of them."""
    assert column.listed
    if column.categorical:
        levels = np.repeat(np.arange(column.size), 2)
        return levels, levels, np.tile([True, False], column.size)
    count = min(cuts, column.points)
    values = np.array([place * column.steps // (count - 1) for place in range(count)], dtype=np.int64)
    first, last = np.zeros(2 * count - 2, dtype=np.int64), np.full(2 * count - 2, column.steps, dtype=np.int64)
    first[0::2], last[1::2] = values[1:], values[:-1]
    return first, last, np.ones(len(first), dtype=bool)


Conditions = Literals | Thresholds


# Rules.


@dataclass(frozen=True, slots=True)
class Conjunction:
    """The rule that says "positive" where all of these conditions hold; `never` is the rule that always says no."""

    NAME: ClassVar[str] = "conjunction/1"
    conditions: Conditions
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

    @property
    def literal(self) -> bool:
        """Whether every condition says that a boolean column is true, or is not."""
        return self.conditions.literal

    def intervals(self, domain: Domain) -> list[tuple[str, int, int, bool]] | None:
        """The rule as conditions (column, first code, last code, inside) on single columns; None if it never holds."""
        return None if self.never else [self.conditions.meaning(domain, number) for number in self.numbers]

    def sentence(self, domain: Domain, names: Sequence[str] | None = None) -> str:
        """The rule as a sentence; a variable and its negation together say "never"."""
        if self.never or self.conditions.contradict(self.numbers):
            return "never"
        words = [self.conditions.in_words(domain, number, names) for number in sorted(set(self.numbers))]
        return " and ".join(words) or "always"


@dataclass(frozen=True, slots=True, init=False)
class BoxRule:
    """The rule that says "positive" where every column's code is in low .. high; empty if some low is above its high.

    Edges.     A missing value lies in no interval.
    """

    literal: ClassVar[bool] = False
    NAME: ClassVar[str] = "box-rule/1"
    columns: tuple[str, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]

    def __init__(self, columns: Sequence[str], low: Sequence[int], high: Sequence[int]) -> None:
        names = distinct(columns)
        lows, highs = (tuple(exact.whole(minimum=0, code=code) for code in codes) for codes in (low, high))
        if not len(names) == len(lows) == len(highs):
            raise ParameterError(
                f"a box of {len(names)} columns has as many lows and highs, found {low!r} and {high!r}"
            )
        exact.freeze(self, columns=names, low=lows, high=highs)

    @classmethod
    def empty(cls, columns: Sequence[str]) -> BoxRule:
        """The box that holds no row."""
        return cls(columns, [1] * len(columns), [0] * len(columns))

    @classmethod
    def full(cls, columns: Sequence[str], domain: Domain) -> BoxRule:
        """The declared bounds: every row without a missing value."""
        return cls(columns, [0] * len(columns), [ordered(domain, name).points - 1 for name in columns])

    @property
    def is_empty(self) -> bool:
        return any(low > high for low, high in zip(self.low, self.high, strict=True))

    def check(self, domain: Domain) -> None:
        for name, high in zip(self.columns, self.high, strict=True):
            last = ordered(domain, name).points - 1
            if high > last and not self.is_empty:
                raise ParameterError(f"the codes of column {name!r} are 0 .. {last}, found {high}")

    def mask(self, batch: Batch) -> Mask:
        inside: Mask = np.full(batch.rows, not self.is_empty)
        for name, low, high in zip(self.columns, self.low, self.high, strict=True):
            if not self.is_empty:
                codes = batch.stored(name)
                inside &= (codes >= low) & (codes <= min(high, ordered(batch.domain, name).points - 1))
        return inside

    def intervals(self, domain: Domain) -> list[tuple[str, int, int, bool]] | None:
        """The rule as conditions (column, first code, last code, inside) on single columns; None if it never holds."""
        sides = zip(self.columns, self.low, self.high, strict=True)
        return None if self.is_empty else [(name, low, high, True) for name, low, high in sides]

    def sentence(self, domain: Domain, names: Sequence[str] | None = None) -> str:
        """The rule as a sentence; a face at a declared bound is not mentioned. `names` are other names for columns."""
        if self.is_empty:
            return "never"
        parts = [
            interval_in_words(shown, ordered(domain, name), low, high)
            for shown, name, low, high in zip(names or self.columns, self.columns, self.low, self.high, strict=True)
        ]
        return " and ".join(part for part in parts if part) or "always"


def interval_in_words(name: str, column: Ordered, low: int, high: int) -> str:
    """`low <= name <= high` in the column's own values, a side that always holds left out."""
    last = column.points - 1
    if low == high:
        return f"{name} = {column.text(low)}"
    if low > 0 and high < last:
        return f"{column.text(low)} <= {name} <= {column.text(high)}"
    if low > 0:
        return f"{name} >= {column.text(low)}"
    if high < last:
        return f"{name} <= {column.text(high)}"
    return "" if column.missing_code is None else f"{name} is not missing"


@dataclass(frozen=True, slots=True)
class Where:
    """The rule that says "positive" where a predicate holds."""

    NAME: ClassVar[str] = "where-rule/1"
    predicate: Predicate

    def __post_init__(self) -> None:
        predicates((self.predicate,))

    def check(self, domain: Domain) -> None:
        self.predicate.check(domain)

    def mask(self, batch: Batch) -> Mask:
        return self.predicate.mask(batch)

    def sentence(self, domain: Domain) -> str:
        return self.predicate.in_words()


@dataclass(frozen=True, slots=True)
class FunctionRule:
    """A user's function of one row, {column: level, number or booleans} -> bool; the ledger knows its label only.

    It is asked for one row at a time and nothing that it says is heard: where it fails, or returns neither True nor
    False, it predicts "negative". Slow, and the owner vouches that it does not remember earlier rows.
    """

    NAME: ClassVar[str] = "function-rule/1"
    label: str
    function: Callable[[Any], object] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        exact.text(label=self.label)
        if self.function is not None and not callable(self.function):
            raise ParameterError(f"the rule {self.label!r} needs a function, found a {type(self.function).__name__}")

    def check(self, domain: Domain) -> None:
        """A function is asked for one row at a time: nothing to check. (Its record, without it, is priced again.)"""

    def mask(self, batch: Batch) -> Mask:
        if self.function is None:
            raise ParameterError(f"the rule {self.label!r} was read from a record, which holds its label only")
        answers = (alone(self.function, row, False) for row in batch.plain_rows())
        return np.array([isinstance(answer, (bool, np.bool_)) and bool(answer) for answer in answers], dtype=np.bool_)

    def sentence(self, domain: Domain) -> str:
        return self.label

    def stated_record(self) -> dict[str, Any]:
        return {"name": self.NAME, "label": record(self.label)}
