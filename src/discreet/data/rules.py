"""The declared encoding, once: how an entry of a column becomes its code, as data.

An entry is first *measured* as a whole number or compared as a level; which measure it is depends on the kind of the
entry alone:

    whole numbers, booleans     the number itself
    decimals with s digits      the number of units of 10^-s
    decimals of any length      floor(x D), where D is the common denominator of the column's grid
    dates and times             the whole seconds, or the whole months, since 1970, in UTC

Then one of two rules makes the code: a `GridRule` of the measure, or a `LevelRule`, a table of levels. `data.encoding`
applies rules to numpy arrays, to which Arrow columns are read; `data.sql_text` writes the same rules as SQL. Nothing
else in the library turns an entry into a code, except for floats, whose grid needs a tolerance: they have a numpy
function (`encoding`), and no SQL.

Theorem.   For x = m unit, code = clip(floor((x - low) / step), 0, steps) is the code of `GridRule.of(low, high, step,
           unit)` of m. For a number x of any length it is the code of `GridRule.of(low, high, step, 1 / D)` of floor(x
           D), D as above, because x >= low decides the first case, and floor((x D - low D) / (step D)) does not change
           when x D is rounded down: low D and step D are whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core import Codes
from discreet.data import calendar
from discreet.data.domain import Category, Column, Number

_INT64 = np.iinfo(np.int64)


@dataclass(frozen=True, slots=True)
class GridRule:
    """The code of a whole number m: 0 up to `first`, `most` from `last` on, and between the two
    ((m - first) times + plus) // over."""

    first: int
    last: int
    times: int
    plus: int
    over: int
    most: int

    @staticmethod
    def of(low: Fraction, high: Fraction, step: Fraction, unit: Fraction) -> GridRule:
        """Of the grid low, low + step, ..., high, for numbers that are m times the unit."""
        scale = math.lcm(low.denominator, step.denominator, unit.denominator)
        first, last, times = math.floor(low / unit), math.ceil(high / unit), int(unit * scale)
        plus = first * times - int(low * scale)
        return GridRule(first, last, times, plus, int(step * scale), int((high - low) / step))

    def inner(self, measure: Any) -> Any:
        """The code of a whole number between first and last; of an array of them, or of one."""
        above = measure - self.first
        return (above * self.times + self.plus) // self.over

    @property
    def fits(self) -> bool:
        """Whether 64-bit integers hold every number on the way."""
        small = (self.last - self.first) * self.times < 2**62
        return small and _INT64.min <= self.first and self.last <= _INT64.max

    def code(self, measure: int) -> int:
        """The code of one whole number of any size."""
        if measure <= self.first:
            return 0
        return self.most if measure >= self.last else int(self.inner(measure))

    def codes(self, measures: npt.NDArray[Any]) -> Codes:
        """The codes of integers, elementwise."""
        if measures.dtype == object or not self.fits:
            return np.array([self.code(int(each)) for each in measures], dtype=np.int64)
        if measures.dtype == np.uint64:
            measures = np.minimum(measures, np.uint64(_INT64.max))
        clipped = np.clip(measures.astype(np.int64), self.first, self.last)
        return np.asarray(np.clip(self.inner(clipped), 0, self.most))


def number_rule(column: Number, unit: Fraction = Fraction(1)) -> GridRule:
    """Of numbers that are whole multiples of the unit."""
    return GridRule.of(column.low, column.high, column.step, unit)


def grid_denominator(column: Number) -> int:
    """The D of the theorem: every value of the grid is a whole multiple of 1 / D."""
    return math.lcm(column.low.denominator, column.step.denominator)


def period_codes(column: Any, seconds: Codes) -> Codes:
    """The codes of instants in a Date or Timestamp: clipped to its bounds, and rounded down to its step."""
    return period_rule(column).codes(calendar.measured(calendar.clipped(seconds), column.step))


def measure_of(column: Any) -> str:
    """By what the entries of a Date or Timestamp are measured: "second" or "month"."""
    return "month" if column.step in calendar.MONTHS else "second"


def period_rule(column: Any) -> GridRule:
    """Of the seconds or months since 1970 of a Date or Timestamp."""
    first, last = column.span()
    return GridRule(first, last, 1, 0, calendar.length(column.step), column.steps)


@dataclass(frozen=True, slots=True)
class LevelRule:
    """The codes of levels of one kind; `otherwise` is that of every other entry, -1 if there is none."""

    codes: Mapping[Any, int]
    otherwise: int


def level_rule(column: Category, kind: str) -> LevelRule:
    """Of entries of this kind: "text", "boolean" (as 0 and 1), or "whole" for numbers of any kind.

    A number meets the whole levels first, a boolean the boolean ones; each then meets the others.
    """
    kinds = {"text": ("text",), "boolean": ("whole", "boolean")}.get(kind, ("boolean", "whole"))
    found = {}
    for wanted in kinds:  # the entry's own kind is last, and stays
        for (each, level), code in column.lookup().items():
            if each == wanted:
                found[level if kind == "text" else int(level)] = code
    return LevelRule(found, -1 if column.other_code is None else column.other_code)


def holds(column: Column, kind: str) -> bool:
    """Whether a table takes entries of this kind ("text", "whole", "decimal", "float", "boolean", "moment")."""
    if column.categorical:
        declared = {each for each, _ in column.lookup()}
        return "text" in declared if kind == "text" else declared != {"text"} and kind != "moment"
    if column.free:
        return kind == "text"
    return kind in ("text", "moment") if column.calendar else kind not in ("text", "moment")
