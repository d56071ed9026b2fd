"""Predicates: conditions on one row, as data and never as functions.

    Equals(column, value)  Between(column, low, high)  Among(column, values)  Missing(column)
    And(...)  Or(...)  Not(...), also written a & b, a | b, ~a

And() is always true, Or() never. Numbers are exact (a float is the decimal its owner typed) and must lie on the
declared grid; dates are Python's or ISO text ("1976-02-29") and are held as that text. Between includes both ends, of
which each is a number or a date. A missing value is neither equal to, nor between, nor among anything: only
Missing finds it. The logic has two values, so Not(Between(...)) is true of a row whose value is missing.

What a predicate answers about itself:

    columns      the columns that it reads, in alphabetical order
    inner        the predicates that it is made of: the parts of And and Or, the part of Not, nothing for the others
    joined       whether it is And or Or (a literal type: then it has `parts` and `word`)
    compared     whether it compares `column` with values: Equals, Between and Among (a literal type)
    atoms        the number of comparisons of a row that `mask` takes
    check        raises if it does not fit a domain: it looks at public things only
    in_words     the condition as a person reads it: 50 <= age <= 100 and (town = north or not visits = 0)
    coded        the condition as ranges of codes, for a dataset that groups and adds (`data.tally`); Unproven of texts
                 that are not listed
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import reduce
from typing import ClassVar, Literal

import numpy as np

from discreet.core import ParameterError, Unproven, exact
from discreet.data import Batch, Condition, Domain, Every, Mask, Other, Some, Within, iso_text, spell

MAX_DEPTH = 200
TOO_DEEP = (
    "a condition is nested too deep: write And(a, b, c) instead of a & b & c, and Or(a, b, c) instead of a | b | c"
)

Value = str | bool | int | Fraction


class Combining:
    """How predicates combine: a & b, a | b, ~a. Python's own `and`, `or` and `not` would drop a part, so they raise."""

    __slots__ = ()

    @property
    def inner(self) -> tuple[Predicate, ...]:
        return ()

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(sorted({column for part in self.inner for column in part.columns}))

    @property
    def atoms(self) -> int:
        return 1 + sum(part.atoms for part in self.inner)

    def check(self, domain: Domain) -> None:
        for part in self.inner:
            part.check(domain)

    def __and__(self, other: Predicate) -> And:
        return And(self, other)  # type: ignore[arg-type]

    def __or__(self, other: Predicate) -> Or:
        return Or(self, other)  # type: ignore[arg-type]

    def __invert__(self) -> Not:
        return Not(self)  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        raise ParameterError("a predicate is neither true nor false: combine predicates with & | ~ or And, Or, Not")


class _OfColumn(Combining):
    """A condition on one column."""

    __slots__ = ()
    joined: ClassVar[Literal[False]] = False
    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)


class _OfValues(_OfColumn):
    """The column has one of some values; 1, True and "1" are different values."""

    __slots__ = ()
    compared: ClassVar[Literal[True]] = True

    @property
    def _among(self) -> tuple[Value, ...]:
        raise NotImplementedError

    def check(self, domain: Domain) -> None:
        column = domain.column(self.column)
        if not column.free:
            _codes(domain, self.column, self._among)
        elif any(type(each) is not str or len(each) > column.length for each in self._among):
            raise ParameterError(f"column {self.column!r} holds texts of at most {column.length} characters")

    def mask(self, batch: Batch) -> Mask:
        held = batch[self.column]  # before its texts: a file is read by this
        if batch.domain.column(self.column).free:  # what a code stands for is the batch's own
            texts = enumerate(batch.texts(self.column))
            codes = [code for code, text in texts if text is not None and text in self._among]
        else:
            codes = _codes(batch.domain, self.column, self._among)
        return held == codes[0] if len(codes) == 1 else np.isin(held, np.array(codes, dtype=np.int64), kind="sort")

    def coded(self, domain: Domain) -> Condition:
        if domain.column(self.column).free:  # and no text of an analyst is in a statement
            raise Unproven(f"the texts of column {self.column!r} are not listed, so they have no codes")
        return Within.among(self.column, _codes(domain, self.column, self._among))

    def __eq__(self, other: object) -> bool:
        if self is other or type(other) is not type(self):
            return self is other
        mine, theirs = self._among, other._among
        return self.column == other.column and mine == theirs and [*map(type, mine)] == [*map(type, theirs)]

    def __hash__(self) -> int:
        return hash((self.column, self._among))  # without their types, which only __eq__ tells apart


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Equals(_OfValues):
    """The column has this level or this number."""

    NAME: ClassVar[str] = "equals/1"
    column: str
    value: Value

    def __init__(self, column: str, value: exact.Exact | date) -> None:
        exact.freeze(self, column=exact.text(column=column), value=_value(value))

    @property
    def _among(self) -> tuple[Value, ...]:
        return (self.value,)

    def in_words(self) -> str:
        return f"{self.column} = {_text(self.value)}"


@dataclass(frozen=True, slots=True, init=False)
class Between(_OfColumn):
    """low <= column <= high, on the grid of a Number, or from one date to another."""

    NAME: ClassVar[str] = "between/1"
    compared: ClassVar[Literal[True]] = True
    column: str
    low: Fraction | str
    high: Fraction | str

    def __init__(self, column: str, low: exact.Exact | date, high: exact.Exact | date) -> None:
        ends = {"low": _end(low=low), "high": _end(high=high)}
        exact.freeze(self, column=exact.text(column=column), **ends)
        if type(self.low) is not type(self.high) or self.low > self.high:  # type: ignore[operator]
            raise ParameterError(f"low must be <= high, found {low!r} and {high!r}")

    def check(self, domain: Domain) -> None:
        declared = domain.column(self.column)
        if not (declared.bounded or declared.calendar):
            what = f"column {self.column!r} is no Number with bounds and no Date"
            raise ParameterError(f"{what}, so nothing lies between two values")
        for end in (self.low, self.high):
            _code(domain, self.column, end)

    def _ends(self, domain: Domain) -> tuple[int, int]:
        self.check(domain)
        return _code(domain, self.column, self.low), _code(domain, self.column, self.high)

    def mask(self, batch: Batch) -> Mask:
        low, high = self._ends(batch.domain)
        return (batch[self.column] >= low) & (batch[self.column] <= high)

    def coded(self, domain: Domain) -> Condition:
        return Within(self.column, (self._ends(domain),))

    def in_words(self) -> str:
        return f"{_text(self.low)} <= {self.column} <= {_text(self.high)}"


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Among(_OfValues):
    """The column has one of these levels or numbers."""

    NAME: ClassVar[str] = "among/1"
    column: str
    values: tuple[Value, ...]

    def __init__(self, column: str, values: Iterable[exact.Exact | date]) -> None:
        if isinstance(values, str):
            raise ParameterError(f"values must be several values, found one text {values!r}")
        exact.freeze(self, column=exact.text(column=column), values=tuple(_value(each) for each in values))
        if not self.values:
            never = "Or() is the predicate that is never true"
            raise ParameterError(f"values must hold at least one value, found none; {never}")

    @property
    def _among(self) -> tuple[Value, ...]:
        return self.values

    def in_words(self) -> str:
        return f"{self.column} in ({', '.join(map(_text, self.values))})"


@dataclass(frozen=True, slots=True)
class Missing(_OfColumn):
    """The column has no value; never true where the declaration allows no missing values."""

    NAME: ClassVar[str] = "missing/1"
    compared: ClassVar[Literal[False]] = False
    column: str

    def __post_init__(self) -> None:
        exact.text(column=self.column)

    def check(self, domain: Domain) -> None:
        domain.column(self.column)

    def mask(self, batch: Batch) -> Mask:
        code = batch.domain.column(self.column).missing_code
        return np.zeros(batch.rows, dtype=bool) if code is None else batch[self.column] == code

    def coded(self, domain: Domain) -> Condition:
        code = domain.column(self.column).missing_code
        return Some() if code is None else Within.among(self.column, [code])

    def in_words(self) -> str:
        return f"{self.column} is missing"


@dataclass(frozen=True, slots=True, init=False)
class _Joined(Combining):
    """Several predicates joined by one word; `empty` is what the word makes of none."""

    joined: ClassVar[Literal[True]] = True
    compared: ClassVar[Literal[False]] = False
    word: ClassVar[str]
    empty: ClassVar[bool]
    parts: tuple[Predicate, ...]

    def __init__(self, *given: Predicate, parts: Iterable[Predicate] = ()) -> None:
        exact.freeze(self, parts=predicates((*given, *parts)))

    @property
    def inner(self) -> tuple[Predicate, ...]:
        return self.parts

    def mask(self, batch: Batch) -> Mask:
        join = np.logical_and if self.empty else np.logical_or
        return reduce(join, (part.mask(batch) for part in self.parts), np.full(batch.rows, self.empty))

    def coded(self, domain: Domain) -> Condition:
        return (Every if self.empty else Some)(tuple(part.coded(domain) for part in self.parts))

    def in_words(self) -> str:
        parts = [f"({part.in_words()})" if part.joined else part.in_words() for part in self.parts]
        return f" {self.word} ".join(parts) or ("always" if self.empty else "never")


class And(_Joined):
    """All of the parts; And() is always true."""

    __slots__ = ()
    NAME: ClassVar[str] = "and/1"
    word: ClassVar[str] = "and"
    empty: ClassVar[bool] = True


class Or(_Joined):
    """At least one of the parts; Or() is never true."""

    __slots__ = ()
    NAME: ClassVar[str] = "or/1"
    word: ClassVar[str] = "or"
    empty: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Not(Combining):
    """Exactly the rows that the part refuses."""

    NAME: ClassVar[str] = "not/1"
    joined: ClassVar[Literal[False]] = False
    compared: ClassVar[Literal[False]] = False
    part: Predicate

    def __post_init__(self) -> None:
        predicates((self.part,))

    @property
    def inner(self) -> tuple[Predicate, ...]:
        return (self.part,)

    def mask(self, batch: Batch) -> Mask:
        return ~self.part.mask(batch)

    def coded(self, domain: Domain) -> Condition:
        return Other(self.part.coded(domain))

    def in_words(self) -> str:
        inner = self.part.in_words()
        return f"not ({inner})" if self.part.joined else f"not {inner}"


Predicate = Equals | Between | Among | Missing | And | Or | Not


def predicates(parts: tuple[object, ...]) -> tuple[object, ...]:
    """The parts, if all of them are predicates."""
    for part in parts:
        if not isinstance(part, Combining):
            raise ParameterError(f"a condition must be a predicate, such as Equals or Between, found {part!r}")
    return parts


def _text(value: Value) -> str:
    return spell(value) if isinstance(value, Fraction) else str(value)


def _value(value: object) -> Value:
    """Text and booleans as they are, numbers exact and whole ones as int, so that equal questions are equal records."""
    if isinstance(value, str):
        return str.__str__(value)
    if type(value) is int:
        return value
    if isinstance(value, date):
        return iso_text(value) or ""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    number = exact.number(value=value)
    return int(number) if number.denominator == 1 else number


def _end(**named: object) -> Fraction | str:
    """An end of an interval: a number, or a date as ISO text."""
    (value,) = named.values()
    return iso_text(value) or exact.number(**named)


def _codes(domain: Domain, name: str, values: Sequence[Value]) -> list[int]:
    """The codes of many values at once; the first one that has none is refused as `_code` refuses it."""
    column = domain.column(name)
    codes = [code for code in column.codes(values) if code not in (None, column.missing_code)] if column.listed else []
    return codes if len(codes) == len(values) else [_code(domain, name, each) for each in values]


def _code(domain: Domain, name: str, value: Value) -> int:
    """The code of a value that a predicate names: on the grid, or a declared level other than the missing one."""
    column = domain.column(name)
    if not column.listed:
        raise ParameterError(f"column {name!r} is declared {column!r}: no single value of it can be asked for")
    try:
        code = column.code(value)
    except ParameterError as error:
        raise ParameterError(f"column {name!r}: {error}") from None
    if code == column.missing_code:
        raise ParameterError(f"column {name!r}: {value!r} means a missing value; ask Missing({name!r})")
    return code


def require_shallow(predicate: Predicate) -> None:
    """Refuse a condition that is nested deeper than Python's recursion safely goes. Looks without recursing."""
    level: tuple[Predicate, ...] = (predicate,)
    for _ in range(MAX_DEPTH):
        level = tuple(part for each in level for part in each.inner)
        if not level:
            return
    raise ParameterError(TOO_DEEP)


EVERYTHING = And()
