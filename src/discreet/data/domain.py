"""Domains: what may be in a column, declared before anybody looks at the rows.

A domain maps column names to one of

    Category   finitely many levels, each a text, a whole number or a boolean;
    Number     the grid low, low + step, ..., high, in exact decimals;
    Date       days, weeks, months or years between two dates; Timestamp: seconds, minutes, hours or days;
    AnyNumber  a number without bounds, made by `Number.any()`: good for finding bounds and for quantiles, nothing else;
    Text       texts that nobody listed: good for finding out which of them are common, nothing else;
    Vector     integer vectors of bounded length, in units of a step: the features that a learner sees;
    Bits       several booleans, packed: what `BitMatrix` holds, for learning conjunctions;
    Whole      one whole number below 2^bits, of any length: what `Integers` holds, for interior points.

Everything in a domain is public. Inside the library a value of a Category, Number, Date or AnyNumber is its *code*, one
of the integers 0 .. size - 1; `missing_code` is the code of "nothing there", or None when nothing may be missing. The
codes of a Text are private: a dataset numbers the texts that it holds, and no two datasets agree.

A column answers for itself; nothing else in the library asks which class it is. Seven of the answers are literal types,
so that a type checker knows what a column has once it was asked (`if not column.bounded: raise ...; column.low`). Date
stands for Timestamp too:

                 Category  Number  Date  AnyNumber  Text  Whole  Vector  Bits
    categorical  yes       -       -     -          -     -      -       -      has `levels`
    bounded      -         yes     -     -          -     -      -       -      has `low`, `high`, `step`: bounded sums
    calendar     -         -       yes   -          -     -      -       -      has `part`, `trunc`, `at_least`, `after`
    listed       yes       yes     yes   -          -     -      -       -      has `code` and `value`: conditions
    ordered      -         yes     yes   yes        -     yes    -       -      has `value`; codes in order of values
    packed       -         -       -     -          -     -      -       yes    has `dimension`; held as bits of words
    free         -         -       -     -          yes   -      -       -      which of its texts occur is private
    coded        yes       yes     yes   yes        -     -      -       -      its codes are public: it has histograms
    keyed        yes       yes     yes   yes        yes   -      -       -      a table holds it; KeyCount counts it
    binary       of two levels                                                 a Category of exactly two levels

    size         how many codes                      points     how many of them are not "missing"
    label(code)  what a code stands for              labels()   all of them, in order
    text(code)   the same as a person writes it      width      integers of a row: 1, or the dimension of a Vector
    magnitude    the largest absolute value          empty()    the codes of no rows
    plain(...)   many codes as a user's function sees them

How values meet levels. Text matches text levels only. Whole numbers (also floats and decimals that are whole) match the
equal whole-number level; booleans match the equal boolean level. When there is no level of its own kind, a boolean
matches the whole number 0 or 1, and 0 or 1 match the boolean. So 1, True and "1" are three levels.
"""

from __future__ import annotations

import difflib
import functools
import math
import numbers
import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from discreet.core import CellTable, Codes, Floats, Mask, ParameterError, SchemaError, Sheet, Shown, exact, unpacked
from discreet.data import calendar

Level = str | int | bool
MAX_CODES = 2**62
_KINDS: tuple[tuple[Any, str], ...] = (
    ((bool, np.bool_), "boolean"),
    (str, "text"),
    (numbers.Integral, "whole"),
    ((float, np.floating), "float"),
    ((Decimal, Fraction), "decimal"),
    ((date, np.datetime64), "moment"),
)
_SHOWN = 12  # levels of a category that are printed


class _AnyColumn:
    """What every kind of column answers about itself, unless it says otherwise."""

    __slots__ = ()
    coded: ClassVar[bool] = True
    keyed: ClassVar[bool] = True

    @property
    def size(self) -> int:
        raise NotImplementedError

    @property
    def missing_code(self) -> int | None:
        return None

    @property
    def points(self) -> int:
        """How many codes are values, without the missing one."""
        return self.size - (self.missing_code is not None)

    @property
    def binary(self) -> bool:
        """Whether it is a Category of two levels."""
        return False

    @property
    def width(self) -> int:
        """The number of integers that a row has in this column."""
        return 1

    @property
    def magnitude(self) -> Fraction:
        """The largest absolute value of a Number; 0 for other kinds."""
        return Fraction(0)

    def label(self, code: int) -> Level | float | None:
        """The meaning of a code: a level, a number, None where it is missing or no single value."""
        return None

    def labels(self) -> list[Level | float | None]:
        """The meaning of every code, in order."""
        return [self.label(code) for code in range(self.size)]

    @property
    def stored_type(self) -> np.dtype[Any]:
        """The smallest integers that hold the codes."""
        return np.min_scalar_type(self.size - 1)

    def empty(self) -> npt.NDArray[Any]:
        """The codes of no rows."""
        return np.zeros(0, dtype=np.int64)

    def plain(self, codes: npt.NDArray[Any], rows: int) -> Any:
        """The values of these rows, as a user's function sees them; None where a value is missing."""
        raise NotImplementedError


class _Unlisted(_AnyColumn):
    """A column whose values cannot be listed."""

    __slots__ = ()
    bounded: ClassVar[Literal[False]] = False
    calendar: ClassVar[Literal[False]] = False
    listed: ClassVar[Literal[False]] = False


class _Features(_Unlisted):
    """Several numbers of a row in one column: no table holds it."""

    __slots__ = ()
    categorical: ClassVar[Literal[False]] = False
    free: ClassVar[Literal[False]] = False
    ordered: ClassVar[Literal[False]] = False
    coded: ClassVar[bool] = False
    keyed: ClassVar[bool] = False
    dimension: int


class _Ordered(_AnyColumn):
    """A column whose codes are in the order of their values."""

    __slots__ = ()
    categorical: ClassVar[Literal[False]] = False
    ordered: ClassVar[Literal[True]] = True
    packed: ClassVar[Literal[False]] = False
    free: ClassVar[Literal[False]] = False

    @property
    def missing_code(self) -> int | None:
        """The last code, if values may be missing."""
        return self.size - 1 if getattr(self, "missing", False) else None

    def value(self, code: int) -> Fraction:
        raise NotImplementedError

    def declared(self, code: int) -> Fraction | str:
        """The value of a code as predicates name it: an exact number, or ISO text."""
        return self.value(code)

    def label(self, code: int) -> Level | float | None:
        if code == self.missing_code:
            return None
        value = self.value(code)
        return int(value) if value.denominator == 1 else float(value)

    def text(self, code: int) -> str:
        """The value of a code as a person writes it."""
        return spell(self.value(code))

    def plain(self, codes: npt.NDArray[Any], rows: int) -> list[float | None]:
        return [None if code == self.missing_code else float(self.value(code)) for code in codes.tolist()]


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Category(_AnyColumn):
    """Finitely many levels: Category("F", "M"), Category(["F", "M"]), Category("yes", "no", missing="unknown").

    other    the level that takes every value that is not declared; without it such a value is refused at ingest.
    missing  the level that takes nulls; without it a null is refused at ingest.

    Both are added after the levels unless they are among them already; they may be the same level.
    """

    NAME: ClassVar[str] = "category/1"
    categorical: ClassVar[Literal[True]] = True
    bounded: ClassVar[Literal[False]] = False
    calendar: ClassVar[Literal[False]] = False
    listed: ClassVar[Literal[True]] = True
    ordered: ClassVar[Literal[False]] = False
    packed: ClassVar[Literal[False]] = False
    free: ClassVar[Literal[False]] = False
    levels: tuple[Level, ...]
    other: Level | None
    missing: Level | None

    def __init__(
        self,
        *given: Level | Sequence[Level],
        other: Level | None = None,
        missing: Level | None = None,
        levels: Iterable[Level] = (),
    ) -> None:
        listed = given[0] if len(given) == 1 and isinstance(given[0], (list, tuple)) else given
        declared = [_level(each) for each in (*listed, *levels)]
        if not declared:
            raise ParameterError("a Category needs at least one level, found none")
        extra = [None if each is None else _level(each) for each in (other, missing)]
        for each in extra:
            if each is not None and _kinded(each) not in map(_kinded, declared):
                declared.append(each)
        repeated = len(declared) - len(set(map(_kinded, declared)))
        if repeated:
            raise ParameterError(f"the levels of a Category must be distinct, found {repeated} repeated: {declared!r}")
        exact.freeze(self, levels=tuple(declared), other=extra[0], missing=extra[1])

    @property
    def size(self) -> int:
        return len(self.levels)

    @property
    def binary(self) -> bool:
        return self.size == 2

    @property
    def missing_code(self) -> int | None:
        return None if self.missing is None else self.code(self.missing)

    @property
    def other_code(self) -> int | None:
        return None if self.other is None else self.code(self.other)

    def code(self, level: object) -> int:
        """The code of a declared level; near misses are named if it is not declared."""
        (code,) = self.codes([level])
        if code is not None:
            return code
        near = near_misses(level, self.levels) or f" Declared: {self!r}."
        raise ParameterError(f"{level!r} is not a declared level.{near}")

    def codes(self, levels: Iterable[object]) -> list[int | None]:
        """The codes of many levels at once; None for one that is not declared."""
        known = self.lookup()
        return [next((known[key] for key in matches(level) if key in known), None) for level in levels]

    def value(self, code: int) -> Level:
        """The level of a code."""
        if not 0 <= code < self.size:
            raise ParameterError(f"code must be in 0..{self.size - 1}, found {code}")
        return self.levels[code]

    def declared(self, code: int) -> Level:
        """The level of a code as predicates name it."""
        return self.value(code)

    def label(self, code: int) -> Level:
        return self.value(code)

    def text(self, code: int) -> str:
        """The level of a code as a person writes it."""
        return str(self.value(code))

    def plain(self, codes: npt.NDArray[Any], rows: int) -> list[Level | None]:
        return [None if code == self.missing_code else self.levels[code] for code in codes.tolist()]

    def lookup(self) -> Mapping[tuple[str, Level], int]:
        """The code of each level, found by (kind, level): kinds are "text", "whole" and "boolean"."""
        return _lookup(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Category) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((self.levels, self.other, self.missing))  # the kinds are compared: to look at them here takes long

    def __repr__(self) -> str:
        extra = [f"{name}={each!r}" for name in ("other", "missing") if (each := getattr(self, name)) is not None]
        shown = [repr(level) for level in self.levels]
        if len(shown) > _SHOWN:
            shown = [*shown[: _SHOWN - 2], f"... {len(shown) - _SHOWN + 1} more ...", shown[-1]]
        return f"Category({', '.join([*shown, *extra])})"

    def _key(self) -> tuple[object, ...]:
        return tuple(None if each is None else _kinded(each) for each in (*self.levels, self.other, self.missing))


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Number(_Ordered):
    """The grid low, low + step, ..., high, exact: Number(0, 120, step=1), Number(0, 1, step=0.01, missing=True).

    A value x has the code floor((x - low) / step) after clamping to [low, high]; infinities clamp. With missing=True a
    null or NaN has one more code, the last; otherwise it is refused at ingest.
    """

    NAME: ClassVar[str] = "number/1"
    bounded: ClassVar[Literal[True]] = True
    calendar: ClassVar[Literal[False]] = False
    listed: ClassVar[Literal[True]] = True
    low: Fraction
    high: Fraction
    step: Fraction
    missing: bool

    def __init__(self, low: exact.Exact, high: exact.Exact, step: exact.Exact, missing: bool = False) -> None:
        ends = {"low": exact.number(low=low), "high": exact.number(high=high)}
        exact.freeze(self, **ends, step=exact.positive(step=step), missing=flag(missing=missing))
        _fits_floats(self.low, self.high, self.step)
        if self.low >= self.high:
            raise ParameterError(f"low must be < high, found low={spell(self.low)} and high={spell(self.high)}")
        width = self.high - self.low
        steps = width / self.step
        if steps.denominator != 1:
            near = f"the nearest step that works is {spell(width / max(1, round(steps)))}"
            raise ParameterError(f"(high - low) / step must be a whole number, found {spell(steps)}; {near}")
        if steps + 1 + self.missing > MAX_CODES:
            raise ParameterError(f"a Number may have at most 2**62 codes; step={spell(self.step)} is too small")

    @staticmethod
    def any(*, missing: bool = False) -> AnyNumber:
        """A number without bounds: usable only to find bounds and for quantiles."""
        return AnyNumber(missing)

    @property
    def steps(self) -> int:
        return int((self.high - self.low) / self.step)

    @property
    def size(self) -> int:
        return self.steps + 1 + self.missing

    @property
    def magnitude(self) -> Fraction:
        return max(abs(self.low), abs(self.high))

    @property
    def unit(self) -> Fraction:
        """The largest number of which low and step, and so every value, are whole multiples."""
        return common_unit((self.low, self.step))

    def codes(self, values: Sequence[Any]) -> list[int | None]:
        """The codes of many exact values at once; None for one that is not on the grid, and for all beside a text."""
        if any(type(each) not in (int, Fraction) for each in values):
            return [None] * len(values)
        if self.step == 1 and self.low.denominator == 1:  # the usual grid, and most of what many values are asked for
            low, high = int(self.low), int(self.high)
            return [int(each) - low if low <= each <= high and each.denominator == 1 else None for each in values]
        # (v - low) / step = (v * b - a) * q / (b * p) for low = a / b and step = p / q: whole numbers stay whole.
        a, b = self.low.numerator, self.low.denominator
        q, whole, steps = self.step.denominator, b * self.step.numerator, self.steps
        found = (divmod((value * b - a) * q, whole) for value in values)
        return [int(code) if not rest and 0 <= code <= steps else None for code, rest in found]

    def code(self, value: object) -> int:
        """The code of a value on the grid; the nearest grid values are named if it is not on it."""
        found = exact.number(value=value)
        (on_grid,) = self.codes([found])
        if on_grid is not None:
            return on_grid
        code = (found - self.low) / self.step
        below, above = (min(max(each, 0), self.steps) for each in (math.floor(code), math.ceil(code)))
        near = " and ".join(spell(self.value(each)) for each in sorted({below, above}))
        raise ParameterError(f"{spell(found)} is not on the grid of {self!r}; nearest on it: {near}")

    def value(self, code: int) -> Fraction:
        """The value of a code that is not the missing one."""
        if not 0 <= code <= self.steps:
            raise ParameterError(f"code must be in 0..{self.steps}, found {code}")
        return self.low + int(code) * self.step

    def labels(self) -> list[Level | float | None]:
        unit = self.unit
        low, step = (int(each / unit) * unit.numerator for each in (self.low, self.step))
        tops, over = range(low, low + step * (self.steps + 1), step), unit.denominator
        return [*(top / over if top % over else top // over for top in tops), *([None] if self.missing else [])]

    def __repr__(self) -> str:
        missing = ", missing=True" if self.missing else ""
        return f"Number({spell(self.low)}, {spell(self.high)}, step={spell(self.step)}{missing})"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class _Calendar(_Ordered):
    """A column of periods between two instants: what Date and Timestamp have in common."""

    bounded: ClassVar[Literal[False]] = False
    calendar: ClassVar[Literal[True]] = True
    listed: ClassVar[Literal[True]] = True
    steps_allowed: ClassVar[tuple[str, ...]]
    times: ClassVar[bool]
    low: str
    high: str
    step: str
    missing: bool

    def __init__(self, low: date | str, high: date | str, step: str, missing: bool = False) -> None:
        ends = {name: self._instant(name, end) for name, end in (("low", low), ("high", high))}
        if ends["low"] > ends["high"]:
            raise ParameterError(f"low must be <= high, found low={low} and high={high}")
        if step not in self.steps_allowed:
            raise ParameterError(f"step must be one of {', '.join(self.steps_allowed)}; found {step!r}")
        spelled = {name: calendar.iso(end, times=self.times) for name, end in ends.items()}
        exact.freeze(self, **spelled, step=step, missing=flag(missing=missing))
        if self.points < 2:
            raise ParameterError(f"low and high must lie in different {step}s, found low={low} and high={high}")

    def _seconds(self, name: str, value: object) -> int:
        found = calendar.seconds_of(value)
        if found is None:
            usual = "1974-01-01 00:00:00" if self.times else "1974-01-01"
            raise ParameterError(f'{name} must be a date or a text such as "{usual}", found {value!r}', argument=name)
        return found

    def _instant(self, name: str, value: object) -> int:
        """A value as the column holds it: days have no time of day."""
        found = self._seconds(name, value)
        return found if self.times else found - found % calendar.DAY

    def _periods(self) -> tuple[int, int]:
        """The numbers of the first and of the last period."""
        return calendar.span(self.low, self.high, self.step)

    @property
    def steps(self) -> int:
        """The code of the last period."""
        first, last = self._periods()
        return last - first

    @property
    def points(self) -> int:
        return self.steps + 1

    @property
    def size(self) -> int:
        return self.points + self.missing

    def ends(self) -> tuple[int, int]:
        """Where the first and the last period begin, in seconds since 1970."""
        first, last = calendar.start(np.array(self._periods(), dtype=np.int64), self.step).tolist()
        return first, last

    def span(self) -> tuple[int, int]:
        """The same in the measure of the step: in seconds or months since 1970."""
        first, last = calendar.measured(np.array(self.ends(), dtype=np.int64), self.step).tolist()
        return first, last

    def starts(self, codes: Codes) -> Codes:
        """The first instants of the periods of these codes, none of which is missing, in seconds since 1970."""
        return calendar.start(codes + self._periods()[0], self.step)

    def value(self, code: int) -> Fraction:
        """The first instant of the period, in days since 1970-01-01: numbers in the order of time."""
        return Fraction(self._start(code), calendar.DAY)

    def _start(self, code: int) -> int:
        if not 0 <= code < self.points:
            raise ParameterError(f"code must be in 0..{self.points - 1}, found {code}")
        return int(self.starts(np.array([code], dtype=np.int64))[0])

    def label(self, code: int) -> str | None:
        """The first day, or the first second, of the period as ISO text."""
        return None if code == self.missing_code else self.declared(code)

    def declared(self, code: int) -> str:
        return calendar.iso(self._start(code), times=self.times)

    def labels(self) -> list[Level | float | None]:
        starts = self.starts(np.arange(self.points, dtype=np.int64))
        return [*(calendar.iso(each, times=self.times) for each in starts.tolist()), *([None] if self.missing else [])]

    def text(self, code: int) -> str:
        return str(self.label(code))

    def plain(self, codes: npt.NDArray[Any], rows: int) -> list[Any]:
        return [self.label(code) for code in codes.tolist()]

    def code(self, value: object) -> int:
        """The code of a period's first day or second; the nearest are named if it is no such one."""
        instant = self._instant("value", value)
        below = self._before(instant + 1) - 1
        if below >= 0 and self._start(below) == instant:
            return below
        near = sorted({min(max(each, 0), self.points - 1) for each in (below, below + 1)})
        found, on_it = calendar.iso(instant, times=self.times), " and ".join(str(self.label(each)) for each in near)
        raise ParameterError(f"{found} does not begin a {self.step} of {self!r}; nearest that do: {on_it}")

    def codes(self, values: Sequence[Any]) -> list[int | None]:
        """The codes of many values at once; None for one that begins no period."""
        found: list[int | None] = []
        for value in values:
            instant = None if calendar.seconds_of(value) is None else self._instant("value", value)
            below = -1 if instant is None else self._before(instant + 1) - 1
            found.append(below if below >= 0 and self._start(below) == instant else None)
        return found

    def at_least(self, value: object) -> int:
        """The least code whose value is not before this date or time; `points` if there is none."""
        return self._before(self._seconds("value", value))

    def after(self, value: object) -> int:
        """The least code whose value is after this date or time; `points` if there is none."""
        return self._before(self._seconds("value", value) + 1)

    def _before(self, instant: int) -> int:
        """How many periods begin before an instant."""
        number = int(calendar.period(np.array([instant - 1], dtype=np.int64), self.step)[0])
        return min(max(number - self._periods()[0] + 1, 0), self.points)

    def blocks(self, unit: str) -> list[int]:
        """The first codes of the days, months or other periods that the column's own periods begin in."""
        periods = calendar.period(np.array(self.ends(), dtype=np.int64), unit)
        begin = calendar.start(np.arange(periods[0], periods[1] + 1), unit)
        codes = calendar.period(begin - 1, self.step) - self._periods()[0] + 1
        return np.unique(np.clip(codes, 0, None)[codes < self.points]).tolist()  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        missing = ", missing=True" if self.missing else ""
        return f"{type(self).__name__}({self.low!r}, {self.high!r}, step={self.step!r}{missing})"


class Date(_Calendar):
    """Dates between two days, in steps: Date("1974-01-01", "1978-12-31"), Date(low, high, step="month", missing=True).

    step  "day", "week" (from Monday), "month" or "year". A value is clipped to [low, high] and rounded down to the
          first day of its period, which represents the period everywhere: as a label, in conditions, in synthetic rows.

    Dates, timestamps and ISO text ("1976-02-29") are read; the time of day is cut off. A value with a time zone is
    converted to UTC first; one without is taken as it is. With missing=True a null has one more code, the last.
    """

    __slots__ = ()
    NAME: ClassVar[str] = "date/1"
    steps_allowed: ClassVar[tuple[str, ...]] = ("day", "week", "month", "year")
    times: ClassVar[bool] = False

    def __init__(self, low: date | str, high: date | str, step: str = "day", missing: bool = False) -> None:
        super().__init__(low, high, step, missing)


class Timestamp(_Calendar):
    """Times between two instants, in steps: Timestamp("2024-01-01", "2024-12-31 23:59:59", step="hour").

    step  "second", "minute", "hour", "day", "week", "month" or "year". A value is clipped to [low, high] and rounded
          down to the first second of its period.

    What is read, time zones and missing values: as Date. Parts of a second are cut off.
    """

    __slots__ = ()
    NAME: ClassVar[str] = "timestamp/1"
    steps_allowed: ClassVar[tuple[str, ...]] = ("second", "minute", "hour", "day", "week", "month", "year")
    times: ClassVar[bool] = True

    def __init__(self, low: date | str, high: date | str, step: str = "second", missing: bool = False) -> None:
        super().__init__(low, high, step, missing)


# Codes on each side of zero, without zero: the finite floats without two low bits.
_HALF = (0x7FEFFFFFFFFFFFFF >> 2) + 1


@dataclass(frozen=True, slots=True, repr=False)
class AnyNumber(_Ordered, _Unlisted):
    """A number without bounds. Made by Number.any().

    A value is read as the nearest float and cut towards zero to 50 binary digits; the codes number these in increasing
    order, so comparing codes is comparing values. Infinities become the largest.
    """

    NAME: ClassVar[str] = "any-number/1"
    missing: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "missing", flag(missing=self.missing))

    @property
    def size(self) -> int:
        return 2 * _HALF - 1 + self.missing

    def value(self, code: int) -> Fraction:
        """The value of a code that is not the missing one."""
        if not 0 <= code <= 2 * _HALF - 2:
            raise ParameterError(f"code must be in 0..{2 * _HALF - 2}, found {code}")
        offset = int(code) - (_HALF - 1)
        size = np.array([abs(offset) << 2], dtype=np.int64).view(np.float64)[0]
        return Fraction(float(size)) * (1 if offset >= 0 else -1)

    def text(self, code: int) -> str:
        return f"{float(self.value(code)):.6g}"

    def codes(self, values: Floats) -> Codes:
        """The codes of floats none of which is NaN, elementwise."""
        finite = np.nan_to_num(values)
        size = np.abs(finite).view(np.int64) >> 2
        return np.where(finite < 0, -size, size) + (_HALF - 1)

    def __repr__(self) -> str:
        return f"Number.any({'missing=True' if self.missing else ''})"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Vector(_Features):
    """Vectors of `dimension` integers, in units of step, whose sum of squares is at most floor((norm / step)^2).

    The step is norm / 2^15 unless it is given.
    """

    NAME: ClassVar[str] = "vector/1"
    packed: ClassVar[Literal[False]] = False
    dimension: int
    norm: Fraction
    step: Fraction

    def __init__(self, dimension: int, norm: exact.Exact, step: exact.Exact | None = None) -> None:
        length = exact.positive(norm=norm)
        grid = length / 2**15 if step is None else exact.positive(step=step)
        exact.freeze(self, dimension=exact.whole(dimension=dimension), norm=length, step=grid)
        _fits_floats(self.norm, self.step)
        if self.step > self.norm:
            raise ParameterError(f"step must be at most norm={spell(length)}, found {spell(self.step)}")
        if self.dimension * self.bound_squared >= MAX_CODES:
            too_small = f"step={spell(self.step)} is too small"
            raise ParameterError(f"dimension * (norm / step)^2 must be below 2**62; {too_small}")

    @property
    def unit(self) -> Fraction:
        """One integer of a coordinate, in the units of the features: the step."""
        return self.step

    @property
    def bound_squared(self) -> int:
        return math.floor((self.norm / self.step) ** 2)

    @property
    def size(self) -> int:
        """The number of integer points of the cube around the ball: an upper bound on the number of vectors."""
        return int((2 * math.isqrt(self.bound_squared) + 1) ** self.dimension)

    @property
    def width(self) -> int:
        return self.dimension

    def empty(self) -> npt.NDArray[Any]:
        return np.zeros((0, self.dimension), dtype=np.int64)

    def plain(self, codes: npt.NDArray[Any], rows: int) -> Floats:
        return codes * float(self.step)

    def __repr__(self) -> str:
        return f"Vector({self.dimension}, norm={spell(self.norm)}, step={spell(self.step)})"


@dataclass(frozen=True, slots=True)
class Bits(_Features):
    """`dimension` booleans, held by column, packed: line i has bit r of word w set if row 64 w + r has 1."""

    NAME: ClassVar[str] = "bits/1"
    packed: ClassVar[Literal[True]] = True
    dimension: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension", exact.whole(dimension=self.dimension))

    @property
    def size(self) -> int:
        return int(2**self.dimension)

    def empty(self) -> npt.NDArray[Any]:
        return np.zeros((self.dimension, 0), dtype=np.uint64)

    def plain(self, codes: npt.NDArray[Any], rows: int) -> Mask:
        return unpacked(codes, rows).T


@dataclass(frozen=True, slots=True)
class Whole(_Ordered, _Unlisted):
    """A whole number 0 .. 2^bits - 1; its code is itself, a Python integer."""

    NAME: ClassVar[str] = "whole/1"
    coded: ClassVar[bool] = False
    keyed: ClassVar[bool] = False
    bits: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", exact.whole(bits=self.bits))

    @property
    def size(self) -> int:
        return 1 << self.bits

    def value(self, code: int) -> Fraction:
        return Fraction(code)

    def label(self, code: int) -> int:
        return code


MAX_TEXT = 1000
"""Characters that a Text may keep of a value."""


@dataclass(frozen=True, slots=True, repr=False)
class Text(_Unlisted):
    """Texts that are not listed in advance: a city, a diagnosis in words. Text(), Text(length=40, missing=True).

    Which texts are common enough to be shown is found by a stable histogram of `KeyCount`. A condition may ask whether
    it is a text that the analyst names (`Equals`, `Among`); nothing else is released about it: declare a Category of
    those that are known for that.

    length   a longer text is cut to this many characters when it enters, so equal beginnings become one text
    missing  nulls are taken, as a key of their own; otherwise they are refused at ingest
    """

    NAME: ClassVar[str] = "text/1"
    categorical: ClassVar[Literal[False]] = False
    ordered: ClassVar[Literal[False]] = False
    packed: ClassVar[Literal[False]] = False
    free: ClassVar[Literal[True]] = True
    coded: ClassVar[bool] = False
    length: int = 100
    missing: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", exact.whole(length=self.length))
        object.__setattr__(self, "missing", flag(missing=self.missing))
        if self.length > MAX_TEXT:
            raise ParameterError(f"length must be at most {MAX_TEXT}, found {self.length}")

    @property
    def stored_type(self) -> np.dtype[Any]:
        return np.dtype(np.int64)

    @property
    def size(self) -> int:
        """An upper bound on the number of texts of this length."""
        return int(0x110000**self.length) + self.missing

    @property
    def missing_code(self) -> int | None:
        return 0 if self.missing else None

    def labels(self) -> list[Level | float | None]:
        raise ParameterError("the texts of this column are not listed: count its keys with a StableHistogram")

    def text(self, code: int) -> str:
        raise ParameterError("the codes of a Text are private: they stand for nothing outside their table")

    def plain(self, codes: npt.NDArray[Any], rows: int) -> Any:
        """Nothing: a user's function does not see unlisted texts."""
        return [None] * rows

    def __repr__(self) -> str:
        missing = ", missing=True" if self.missing else ""
        return f"Text(length={self.length}{missing})"


Column = Category | Number | Date | Timestamp | AnyNumber | Text | Vector | Bits | Whole


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Domain(Shown, Mapping[str, Column]):
    """Column names and what may be in them: Domain(age=Number(0, 120, step=1)), Domain({"weird name": Category("a")}).

    The order of the columns is part of a domain.
    """

    NAME: ClassVar[str] = "domain/1"
    columns: tuple[tuple[str, Column], ...]

    def __init__(self, declared: Mapping[str, Column] | None = None, /, **named: object) -> None:
        if declared is not None and not isinstance(declared, Mapping):
            usual = "Domain(age=Number(...))"
            raise ParameterError(f"a Domain is made of names and declarations, found {declared!r}: {usual}")
        pairs: list[tuple[object, object]] = list((declared or {}).items())
        for name, column in named.items():
            # A record calls back with its field `columns`, a tuple of pairs; a user's column of that name is no tuple.
            pairs.extend(column if name == "columns" and isinstance(column, tuple) else [(name, column)])
        for key, declaration in pairs:
            if kind_of(key) != "text" or not key:
                raise ParameterError(f"a column name must be non-empty text, found {key!r}")
            if not isinstance(declaration, _AnyColumn):
                raise ParameterError(
                    f"column {key!r} must be a Category, a Number, a Date or another column, found {declaration!r}; "
                    "the levels of a category are declared, never read from the rows (other=... takes the rest)"
                )
        exact.freeze(self, columns=tuple(pairs))
        if not pairs:
            raise ParameterError("a Domain needs at least one column, found none")
        repeated = sorted(name for name, times in Counter(self.names).items() if times > 1)
        if repeated:
            raise ParameterError(f"column names must be distinct, found twice: {', '.join(map(repr, repeated))}")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    @property
    def size(self) -> int:
        """The number of different rows: the product of the columns' sizes."""
        return math.prod(column.size for _, column in self.columns)

    @property
    def digits(self) -> tuple[str, ...]:
        """The columns whose codes are the digits of a row's key; none if there would be more than 2^62 keys."""
        names = tuple(name for name, column in self.columns if column.listed)
        return names if math.prod(self.column(name).size for name in names) <= MAX_CODES else ()

    def column(self, name: str) -> Column:
        """The declaration of a column; a name that is not declared is a SchemaError with near misses."""
        if (column := self.get(name)) is not None:
            return column
        shown = f" Declared: {', '.join(self.names[:_SHOWN])}{', ...' if len(self) > _SHOWN else ''}"
        raise SchemaError(f"column {name!r} is not declared.{near_misses(name, self.names) or shown}")

    def project(self, names: Iterable[str]) -> Domain:
        """The domain of these columns, in this order."""
        return Domain(columns=tuple((name, self.column(name)) for name in names))

    def __getitem__(self, name: str) -> Column:
        for each, column in self.columns:
            if each == name:
                return column
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.columns)

    def sheet(self) -> Sheet:
        """The columns, their kinds, and what each may hold."""
        rows = [(name, *in_words(column)) for name, column in self.columns]
        return Sheet.of(CellTable(("column", "kind", "values"), rows))

    def __repr__(self) -> str:
        if all(name.isidentifier() for name in self.names):
            return f"Domain({', '.join(f'{name}={column!r}' for name, column in self.columns)})"
        return f"Domain({dict(self.columns)!r})"


def near_misses(found: object, declared: Iterable[object]) -> str:
    """A sentence with the declared names or levels that are spelled nearly like this one; empty if none is."""
    spelled = {str(each).lower(): repr(each) for each in declared}
    close = difflib.get_close_matches(str(found).lower(), list(spelled), n=3)
    return f" Did you mean {' or '.join(spelled[each] for each in close)}?" if close else ""


def spell(value: Fraction) -> str:
    """A fraction as a person writes it: 120, 0.05, or 1/3 when there is no finite decimal."""
    rest, places = value.denominator, 0
    while rest % 2 == 0 or rest % 5 == 0:
        rest //= math.gcd(10, rest)
        places += 1
    if rest != 1 or places > 30:
        return f"{value.numerator}/{value.denominator}"
    return decimal(int(value * 10**places), places)


def decimal(units: int, places: int) -> str:
    """Units of the last of so many digits after the point, as a decimal."""
    sign, digits = "-" if units < 0 else "", f"{abs(units):0{places + 1}d}"
    return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else f"{sign}{digits}"


def common_unit(values: Iterable[Fraction]) -> Fraction:
    """The largest fraction of which all the values are whole multiples; at least one of them is not 0."""
    found = [value for value in values if value]
    denominator = math.lcm(*(value.denominator for value in found))
    return Fraction(math.gcd(*(int(value * denominator) for value in found)), denominator)


def flag(**named: object) -> bool:
    ((name, value),) = named.items()
    if kind_of(value) != "boolean":
        raise ParameterError(f"{name} must be True or False, found {value!r}")
    return bool(value)


def _fits_floats(*values: Fraction) -> None:
    """Floats are compared with these numbers, so they must be numbers of a size that floats have."""
    if any(value and not Fraction(1, 10**300) <= abs(value) <= 10**300 for value in values):
        raise ParameterError("bounds and steps must be 0 or between 1e-300 and 1e300 in absolute value")


def kind_of(value: object) -> str | None:
    """The kind of an entry or a level: "boolean", "text", "whole", "float", "decimal" or "moment"; else None."""
    return next((kind for types, kind in _KINDS if isinstance(value, types)), None)


def _level(level: object) -> Level:
    kind = kind_of(level)
    if kind == "boolean":
        return bool(level)
    if kind == "text":
        return str.__str__(level)  # of an enum member too: its value, not its name
    if kind == "whole":
        return int(exact.writable(level=Fraction(operator.index(level))))  # type: ignore[arg-type]
    if isinstance(level, (list, tuple, set, frozenset, range)):
        raise ParameterError(f"give the levels one by one: Category(*levels), found one {type(level).__name__}")
    advice = "" if kind is None else "; use Number(low, high, step) for numbers, or text"
    raise ParameterError(f"a level must be text, a whole number or a boolean, found {level!r}{advice}")


@functools.lru_cache(maxsize=1024)
def _lookup(column: Category) -> Mapping[tuple[str, Level], int]:
    return MappingProxyType({_kinded(level): code for code, level in enumerate(column.levels)})


def _kinded(level: Level) -> tuple[str, Level]:
    """A level with its kind, so that 1 and True are different."""
    return str(kind_of(level)), level


def matches(value: object) -> list[tuple[str, Level]]:
    """What a value matches among kinded levels, best first."""
    kind = kind_of(value)
    if kind == "text":
        return [("text", value)]  # type: ignore[list-item]
    if kind == "boolean":
        return [("boolean", bool(value)), ("whole", int(value))]  # type: ignore[call-overload]
    number = exact.number(value=value)
    if number.denominator != 1:
        return []
    return [("whole", int(number)), *([("boolean", bool(number))] if number in (0, 1) else [])]


def in_words(column: Any) -> tuple[str, str]:
    """A declared column for people: its kind, and what it may hold."""
    if column.categorical:
        special = [(column.other, "everything else"), (column.missing, "missing")]
        levels = [str(level) for level in column.levels if level not in (column.other, column.missing)]
        said = [*levels, *(f"{level} ({word})" for level, word in special if level is not None)]
        return "category", ", ".join(said)
    missing = ", or missing" if getattr(column, "missing", False) else ""
    if column.calendar:
        return type(column).__name__.lower(), f"{column.low} to {column.high} in steps of a {column.step}{missing}"
    if hasattr(column, "length"):
        return "text", f"not listed, {column.length} characters are kept{missing}"
    if column.bounded:
        low, high, step = map(spell, (column.low, column.high, column.step))
        return "number", f"{low} to {high} in steps of {step}{missing}"
    if column.coded and column.ordered:
        return "any number", f"without bounds{missing}"
    return type(column).__name__.lower(), repr(column)
