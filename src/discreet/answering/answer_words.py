"""How an answer shows itself: in words, as a table, as a frame and as a picture.

An answer has `columns`, `rows`, and `intervals` beside the rows: None for the key of a group, (low, high) for a number
that was aggregated, None too where no interval is known. A bound is never shown as less than it is, and a value never
with fewer digits than its bound needs. Counts are whole, so their bound is rounded down to a whole number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from discreet.display import CellTable, Paragraph, Sheet, number, one_line, round_up, rounded
from discreet.drawing import Interval, NumberPanel, measurements
from discreet.errors import ParameterError

Answer = Any
"""A `discreet.Answer`, which imports this module."""

LITTLE = "the bound is larger than the answer: this tells little"
NOBODY = "no bound: there may be nobody to average over"
_NARROW = 50  # on a screen of fewer columns a table has no shares
_COUNTED = ("persons", "rows")


def counts(answer: Answer) -> bool:
    """Whether the answer is a number of persons or rows, or several."""
    return answer.unit in _COUNTED


def headline(answer: Answer) -> str:
    """The answer in one line; of a table the number of groups."""
    if answer.groups:
        return f"{len(answer.rows):,} groups, each {bound(answer)}, all at once"
    if answer.fraction is not None and answer.size:
        share, near = rounded(100 * answer.fraction, 100 * answer.error_bound / answer.size)
        return f"{number(answer.value)} {bound(answer)} ({share} % ± {near} % of the people)"
    if counts(answer):
        return f"{number(answer.value)} {bound(answer)}"
    unit = one_line(answer.unit.partition(";")[0])
    if not answer.ranks:
        return f"{_value(answer)} {bound(answer)} ({unit})"
    ends = answer.intervals[0][-1]
    truth = "" if ends is None else f"true value between {number(ends[0])} and {number(ends[1])}; "
    return f"{number(answer.value)} ({unit}; {truth}{bound(answer)})"


def bound(answer: Answer) -> str:
    """± and the error bound, in its unit."""
    if math.isinf(answer.error_bound):
        return f"± {NOBODY}"
    if answer.ranks:
        return f"± {math.floor(answer.error_bound):,} ranks"
    if counts(answer):
        return f"± {math.floor(answer.error_bound):,} {answer.unit}"
    return f"± {rounded(answer.value, answer.error_bound)[1]}"


def _value(answer: Answer) -> str:
    """A value with the digits that its bound leaves it."""
    if type(answer.value) is int or math.isinf(answer.error_bound):
        return number(answer.value)
    return rounded(answer.value, answer.error_bound)[0]


def little(answer: Answer) -> str:
    """What to say if the bound is larger than what it is about; nothing otherwise."""
    if answer.ranks or math.isinf(answer.error_bound):
        return ""
    if not answer.groups:
        return LITTLE if answer.error_bound > abs(answer.value) else ""
    small = sum(answer.error_bound > count for count in answer.value.values())
    tells = f"{small:,} of the {len(answer.value):,} counts"
    return f"the bound is larger than {tells}: those tell little" if small else ""


def population(answer: Answer) -> str:
    """What is known about the population; nothing if nothing is."""
    if answer.population is None:
        return ""
    return f"± {round_up(100 * answer.population)} % of the population, if the rows are a random sample of it"


def sheet(answer: Answer, *notes: str, width: int | None = None) -> Sheet:
    """Everything about an answer, and notes below it. width: of the screen, if that is known."""
    return Sheet.of(
        "NOT PRIVATE: a testing ledger" if answer.testing else "",
        Paragraph(headline(answer), "bold"),
        *([_table(answer, shares=width is None or width >= _NARROW)] if answer.groups else []),
        little(answer),
        *notes,
        population(answer),
    )


def _table(answer: Answer, *, shares: bool) -> CellTable:
    """The rows of an answer, with what part of the people each group is."""
    keys = len(answer.groups)
    rows: list[list[object]] = [
        [*("missing" if each is None else each for each in map(_key, row[:keys])), *row[keys:]] for row in answer.rows
    ]
    if answer.fraction is None or not shares:
        return CellTable(answer.columns, rows)
    parts = [f"{100 * each:.3g} %" for each in answer.fraction.values()]
    return CellTable(
        [*answer.columns, "of the people"],
        [[*row, part] for row, part in zip(rows, parts, strict=True)],
        numeric=(len(answer.columns),),
    )


def _key(value: Any) -> Any:
    """A key of a group as text: a number that names a group is no amount."""
    return None if value is None else str(value)


def frame_columns(answer: Answer) -> dict[str, list[Any]]:
    """The rows by columns; beside each aggregate its ±, its lower and its upper end."""
    found: dict[str, list[Any]] = {}
    for place, name in enumerate(answer.columns):
        values = [row[place] for row in answer.rows]
        found[name] = values
        if place >= len(answer.groups):
            ends = [each[place] for each in answer.intervals]
            found[f"{name} ±"] = [_reach(*each) for each in zip(values, ends, strict=True)]
            found[f"{name} low"] = [None if each is None else float(each[0]) for each in ends]
            found[f"{name} high"] = [None if each is None else float(each[1]) for each in ends]
    return found


def _reach(value: Any, ends: Interval) -> float | None:
    """How far the further end is from the value."""
    return None if ends is None or value is None else float(max(value - ends[0], ends[1] - value))


def plot(answer: Answer) -> Any:
    """A matplotlib Figure: bars with their intervals, or a line within its band over numbers or dates."""
    panels = list(_panels(answer))
    if not panels:
        raise ParameterError("there is nothing to draw: the answer has no rows")
    return measurements(panels)


def _panels(answer: Answer) -> Iterator[NumberPanel]:
    keys = len(answer.groups)
    unit = {"persons": "persons", "rows": "rows"}.get(answer.unit)
    for place in range(keys, len(answer.columns)) if answer.rows else ():
        name = one_line(answer.columns[place])
        # A line has a meaning along one column; the levels of several are the names of bars.
        labels = [row[0] if keys == 1 else ", ".join(map(str, row[:keys])) or name for row in answer.rows]
        known = [
            (label, row[place], ends[place])
            for label, row, ends in zip(labels, answer.rows, answer.intervals, strict=True)
            if row[place] is not None
        ]
        shown = f"{name} ({unit})" if unit and name != unit else name
        yield NumberPanel(shown, one_line(", ".join(answer.groups)), *map(list, zip(*known, strict=True)))
