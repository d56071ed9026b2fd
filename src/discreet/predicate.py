"""Predicates: conditions on one row, as data and never as functions.

    Equals(column, value)  Between(column, low, high)  Among(column, values)  Missing(column)
    And(...)  Or(...)  Not(...), also written a & b, a | b, ~a

And() is always true, Or() never. Numbers are exact (a float is the decimal its owner typed) and must lie on the
declared grid; Between includes both ends. A missing value is neither equal to, nor between, nor among anything: only
Missing finds it. The logic has two values, so Not(Between(...)) is true of a row whose value is missing.

`check` raises if the predicate does not fit a domain: it looks at public things only. `columns` is the scope, `atoms`
the number of comparisons of a row that `mask` takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import ClassVar

import numpy as np

from discreet import exact
from discreet.data import Batch, Category, Domain, Mask, Number, spell
from discreet.errors import ParameterError

MAX_DEPTH = 200
TOO_DEEP = (
    "a condition is nested too deep: write And(a, b, c) instead of a & b & c, and Or(a, b, c) instead of a | b | c"
)

Value = str | bool | int | Fraction


class Combining:
    """How predicates combine: a & b, a | b, ~a. Python's own `and`, `or` and `not` would drop a part, so they raise."""

    __slots__ = ()

    def __and__(self, other: Predicate) -> And:
        return And(self, other)  # type: ignore[arg-type]

    def __or__(self, other: Predicate) -> Or:
        return Or(self, other)  # type: ignore[arg-type]

    def __invert__(self) -> Not:
        return Not(self)  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        raise ParameterError("a predicate is neither true nor false: combine predicates with & | ~ or And, Or, Not")


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Equals(Combining):
    """The column has this level or this number."""

    NAME: ClassVar[str] = "equals/1"
    column: str
    value: Value

    def __init__(self, column: str, value: exact.Exact) -> None:
        object.__setattr__(self, "column", exact.text(column=column))
        object.__setattr__(self, "value", _value(value))

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def atoms(self) -> int:
        return 1

    def check(self, domain: Domain) -> None:
        _code(domain, self.column, self.value)

    def mask(self, batch: Batch) -> Mask:
        found: Mask = batch[self.column] == _code(batch.domain, self.column, self.value)
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equals) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return self.column, type(self.value), self.value


@dataclass(frozen=True, slots=True, init=False)
class Between(Combining):
    """low <= column <= high, on the grid of a Number."""

    NAME: ClassVar[str] = "between/1"
    column: str
    low: Fraction
    high: Fraction

    def __init__(self, column: str, low: exact.Exact, high: exact.Exact) -> None:
        object.__setattr__(self, "column", exact.text(column=column))
        object.__setattr__(self, "low", exact.number(low=low))
        object.__setattr__(self, "high", exact.number(high=high))
        if self.low > self.high:
            raise ParameterError(f"low must be <= high, found {low!r} and {high!r}")

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def atoms(self) -> int:
        return 1

    def check(self, domain: Domain) -> None:
        if not isinstance(domain.column(self.column), Number):
            raise ParameterError(f"column {self.column!r} is no Number with bounds, so nothing lies between two values")
        _code(domain, self.column, self.low)
        _code(domain, self.column, self.high)

    def mask(self, batch: Batch) -> Mask:
        self.check(batch.domain)
        codes = batch[self.column]
        low, high = (_code(batch.domain, self.column, each) for each in (self.low, self.high))
        return (codes >= low) & (codes <= high)


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Among(Combining):
    """The column has one of these levels or numbers."""

    NAME: ClassVar[str] = "among/1"
    column: str
    values: tuple[Value, ...]

    def __init__(self, column: str, values: Iterable[exact.Exact]) -> None:
        object.__setattr__(self, "column", exact.text(column=column))
        if isinstance(values, str):
            raise ParameterError(f"values must be several values, found one text {values!r}")
        object.__setattr__(self, "values", tuple(_value(each) for each in values))
        if not self.values:
            raise ParameterError(
                "values must hold at least one value, found none; Or() is the predicate that is never true"
            )

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def atoms(self) -> int:
        return 1

    def check(self, domain: Domain) -> None:
        _codes(domain, self.column, self.values)

    def mask(self, batch: Batch) -> Mask:
        return np.isin(batch[self.column], _codes(batch.domain, self.column, self.values), kind="sort")

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Among) and self._key() == other._key())

    def __hash__(self) -> int:
        return hash((self.column, self.values))  # of many values: without their types, which only __eq__ tells apart

    def _key(self) -> tuple[object, ...]:
        return self.column, tuple((type(each), each) for each in self.values)


@dataclass(frozen=True, slots=True)
class Missing(Combining):
    """The column has no value; never true where the declaration allows no missing values."""

    NAME: ClassVar[str] = "missing/1"
    column: str

    def __post_init__(self) -> None:
        exact.text(column=self.column)

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def atoms(self) -> int:
        return 1

    def check(self, domain: Domain) -> None:
        domain.column(self.column)

    def mask(self, batch: Batch) -> Mask:
        code = batch.domain.column(self.column).missing_code
        return np.zeros(batch.rows, dtype=bool) if code is None else batch[self.column] == code


@dataclass(frozen=True, slots=True, init=False)
class And(Combining):
    """All of the parts; And() is always true."""

    NAME: ClassVar[str] = "and/1"
    parts: tuple[Predicate, ...]

    def __init__(self, *given: Predicate, parts: Iterable[Predicate] = ()) -> None:
        object.__setattr__(self, "parts", predicates((*given, *parts)))

    @property
    def columns(self) -> tuple[str, ...]:
        return _scope(self.parts)

    @property
    def atoms(self) -> int:
        return 1 + sum(part.atoms for part in self.parts)

    def check(self, domain: Domain) -> None:
        for part in self.parts:
            part.check(domain)

    def mask(self, batch: Batch) -> Mask:
        return reduce(np.logical_and, (part.mask(batch) for part in self.parts), np.ones(batch.rows, dtype=bool))


@dataclass(frozen=True, slots=True, init=False)
class Or(Combining):
    """At least one of the parts; Or() is never true."""

    NAME: ClassVar[str] = "or/1"
    parts: tuple[Predicate, ...]

    def __init__(self, *given: Predicate, parts: Iterable[Predicate] = ()) -> None:
        object.__setattr__(self, "parts", predicates((*given, *parts)))

    @property
    def columns(self) -> tuple[str, ...]:
        return _scope(self.parts)

    @property
    def atoms(self) -> int:
        return 1 + sum(part.atoms for part in self.parts)

    def check(self, domain: Domain) -> None:
        for part in self.parts:
            part.check(domain)

    def mask(self, batch: Batch) -> Mask:
        return reduce(np.logical_or, (part.mask(batch) for part in self.parts), np.zeros(batch.rows, dtype=bool))


@dataclass(frozen=True, slots=True)
class Not(Combining):
    """Exactly the rows that the part refuses."""

    NAME: ClassVar[str] = "not/1"
    part: Predicate

    def __post_init__(self) -> None:
        predicates((self.part,))

    @property
    def columns(self) -> tuple[str, ...]:
        return self.part.columns

    @property
    def atoms(self) -> int:
        return 1 + self.part.atoms

    def check(self, domain: Domain) -> None:
        self.part.check(domain)

    def mask(self, batch: Batch) -> Mask:
        return ~self.part.mask(batch)


Predicate = Equals | Between | Among | Missing | And | Or | Not


def predicates(parts: tuple[object, ...]) -> tuple[object, ...]:
    """The parts, if all of them are predicates."""
    for part in parts:
        if not isinstance(part, (Equals, Between, Among, Missing, And, Or, Not)):
            raise ParameterError(f"a condition must be a predicate, such as Equals or Between, found {part!r}")
    return parts


def in_words(predicate: Predicate) -> str:
    """The condition as a person reads it: 50 <= age <= 100 and (town = north or not visits = 0)."""
    if isinstance(predicate, Equals):
        return f"{predicate.column} = {_spelled(predicate.value)}"
    if isinstance(predicate, Between):
        return f"{spell(predicate.low)} <= {predicate.column} <= {spell(predicate.high)}"
    if isinstance(predicate, Among):
        return f"{predicate.column} in ({', '.join(map(_spelled, predicate.values))})"
    if isinstance(predicate, Missing):
        return f"{predicate.column} is missing"
    if isinstance(predicate, Not):
        inner = in_words(predicate.part)
        return f"not ({inner})" if isinstance(predicate.part, (And, Or)) else f"not {inner}"
    word, none = ("and", "always") if isinstance(predicate, And) else ("or", "never")
    parts = [f"({in_words(each)})" if isinstance(each, (And, Or)) else in_words(each) for each in predicate.parts]
    return f" {word} ".join(parts) or none


def _spelled(value: Value) -> str:
    return spell(value) if isinstance(value, Fraction) else str(value)


def _scope(parts: Iterable[Predicate]) -> tuple[str, ...]:
    return tuple(sorted({column for part in parts for column in part.columns}))


def _value(value: object) -> Value:
    """Text and booleans as they are, numbers exact and whole ones as int, so that equal questions are equal records."""
    if isinstance(value, str):
        return str.__str__(value)
    if type(value) is int:
        return value
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    found = exact.number(value=value)
    return int(found) if found.denominator == 1 else found


def _codes(domain: Domain, name: str, values: Sequence[Value]) -> list[int]:
    """The codes of many values at once; the first one that has none is refused as `_code` refuses it."""
    column = domain.column(name)
    found: Sequence[int | None] = [None]
    if isinstance(column, Category):
        found = column.codes(values)
    elif isinstance(column, Number) and {type(each) for each in values} <= {int, Fraction}:
        found = column.codes(values)  # type: ignore[arg-type]
    missing = column.missing_code
    codes = [code for code in found if code is not None and code != missing]
    if len(codes) < len(values):
        return [_code(domain, name, each) for each in values]
    return codes


def _code(domain: Domain, name: str, value: Value) -> int:
    """The code of a value that a predicate names: on the grid, or a declared level other than the missing one."""
    column = domain.column(name)
    if not isinstance(column, (Category, Number)):
        raise ParameterError(f"column {name!r} is declared {column!r}: no single value of it can be asked for")
    try:
        code = column.code(value)
    except ParameterError as error:
        raise ParameterError(f"column {name!r}: {error}") from None
    if code == column.missing_code:
        raise ParameterError(f"column {name!r}: {value!r} stands for missing values; ask Missing({name!r})")
    return code


def require_shallow(predicate: Predicate) -> None:
    """Refuse a condition that is nested deeper than Python's recursion safely goes. Looks without recursing."""
    level: list[Predicate] = [predicate]
    for _ in range(MAX_DEPTH):
        level = [part for each in level for part in _parts(each)]
        if not level:
            return
    raise ParameterError(TOO_DEEP)


def _parts(predicate: Predicate) -> tuple[Predicate, ...]:
    if isinstance(predicate, Not):
        return (predicate.part,)
    return predicate.parts if isinstance(predicate, (And, Or)) else ()


EVERYTHING = And()
