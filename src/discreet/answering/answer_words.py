"""How an answer shows itself: in words, as a table, as a frame and as a picture.

An answer has `columns`, `rows`, and `intervals` beside the rows: None for the key of a group, (low, high) for a number
that was aggregated. A bound is never shown as less than it is, and a value never with fewer digits than its bound
needs. Counts are whole, so their bound is rounded down to a whole number.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Sequence
from typing import Any

from discreet.core import (
    EMPTY,
    NO_BOUND,
    CellTable,
    Paragraph,
    ParameterError,
    Sheet,
    number,
    one_line,
    round_up,
    rounded,
)
from discreet.drawing import Interval, NumberPanel, measurements

Answer = Any
"""A `discreet.Answer`, which imports this module."""

LITTLE = "the bound is larger than the answer: this tells little"
NOBODY = "no bound: there may be nobody to average over"
_NARROW = 50  # on a screen of fewer columns a table has no shares
_COUNTED = ("persons", "rows")
_FIRST_DAY = datetime.date(1970, 1, 1)


def counts(answer: Answer) -> bool:
    """Whether the answer is a number of persons or rows, or several."""
    return answer.unit in _COUNTED


def estimated(answer: Answer) -> list[int]:
    """The places of the columns that were aggregated: they have intervals."""
    if not answer.rows:
        return [place for place, name in enumerate(answer.columns) if name not in answer.groups]
    columns = enumerate(zip(*answer.intervals, strict=True))
    found = [place for place, ends in columns if any(each is not None for each in ends)]
    return found or ([] if answer.groups else list(range(len(answer.columns))))


def _single(answer: Answer) -> bool:
    """Whether the answer is one number."""
    return not answer.groups and len(answer.rows) == 1 and len(estimated(answer)) == 1


# In words.


def headline(answer: Answer) -> str:
    """The answer in one line; of a table how many rows it has."""
    if _single(answer):
        return _one(answer)
    many = len(answer.rows)
    if not answer.groups:
        return "nothing is left of it" if not many else f"{len(estimated(answer))} numbers, all bounds hold at once"
    if not many:
        return "no groups"
    groups = "one group" if many == 1 else f"{many:,} groups"
    if len(estimated(answer)) == 1 and counts(answer) and math.isfinite(answer.error_bound):
        each = "" if many == 1 else "each "
        return f"{groups}, {each}± {math.floor(answer.error_bound):,} {answer.unit}, all at once"
    return f"{groups}, all bounds hold at once"


def _one(answer: Answer) -> str:
    """One number with its bound and its unit."""
    place = estimated(answer)[0]
    value, ends = answer.rows[0][place], answer.intervals[0][place]
    unit = one_line(answer.unit)
    if answer.ranks is not None:
        truth = "" if ends is None else f"true value between {_end(ends[0], value)} and {_end(ends[1], value)}; "
        ranks = "nothing is known" if math.isinf(answer.ranks) else f"± {math.floor(answer.ranks):,} ranks"
        return f"{_plain(value)} ({unit}; {truth}{ranks})"
    if value is None or type(value) is str:
        return _plain(value)
    shown, near = _value_and_bound(value, ends, counted=counts(answer))
    if not counts(answer):
        return f"{shown} ± {NOBODY if near == NO_BOUND else near}{f' ({unit})' if unit else ''}"
    share = ""
    if answer.fraction is not None and answer.size and near != NO_BOUND:
        part, off = rounded(100 * answer.fraction, 100 * _reach(value, ends) / answer.size)
        share = f" ({part} % ± {off} % of the people)"
    return f"{shown} ± {near} {unit}{share}"


def _value_and_bound(value: Any, ends: Interval, *, counted: bool) -> tuple[str, str]:
    """A number with the digits that its bound leaves it, and the bound."""
    reach = _reach(value, ends)
    if math.isinf(reach):
        return number(value), NO_BOUND
    if counted:
        return number(value), f"{math.floor(reach):,}"
    shown, near = rounded(value, reach)
    return number(value) if type(value) is int else shown, near


def _reach(value: Any, ends: Interval) -> float:
    """How far the further end is from the value."""
    return math.inf if ends is None else float(max(value - ends[0], ends[1] - value, 0.0))


def _plain(value: Any) -> str:
    return EMPTY if value is None else one_line(value) if type(value) is str else number(value)


def _end(end: float, value: Any) -> str:
    """The end of an interval; of a day, which is a text, a day."""
    if type(value) is not str:
        return number(end)
    return (_FIRST_DAY + datetime.timedelta(days=end)).isoformat()


def little(answer: Answer) -> str:
    """What to say if the bound is larger than what it is about; nothing otherwise."""
    if answer.ranks is not None:
        return ""
    cells = [
        (value, _reach(value, ends))
        for row, line in zip(answer.rows, answer.intervals, strict=True)
        for place, (value, ends) in enumerate(zip(row, line, strict=True))
        if place in estimated(answer) and type(value) in (int, float)
    ]
    small = sum(math.isfinite(reach) and reach > abs(value) for value, reach in cells)
    if _single(answer):
        return LITTLE if small else ""
    what = "counts" if counts(answer) else "numbers"
    return f"the bound is larger than {small:,} of the {len(cells):,} {what}: those tell little" if small else ""


def alone(answer: Answer) -> str:
    """How near the answer is by itself, if that says more than its bound, which holds with all others at once."""
    if type(answer.alone) is not float or not answer.alone < answer.error_bound:
        return ""
    near = f"{math.floor(answer.alone):,}" if counts(answer) else rounded(0.0, answer.alone)[1]
    bound = f"{math.floor(answer.error_bound):,}" if counts(answer) else rounded(0.0, answer.error_bound)[1]
    return f"by itself ± {near}; ± {bound} holds with all other answers at once" if near != bound else ""


def population(answer: Answer) -> str:
    """What is known about the population; nothing if nothing is."""
    if answer.population is None:
        return ""
    return f"± {round_up(100 * answer.population)} % of the population, if the rows are a random sample of it"


# As a table.


def sheet(answer: Answer, *notes: str, width: int | None = None) -> Sheet:
    """Everything about an answer, and notes below it. width: of the screen, if that is known."""
    return Sheet.of(
        "NOT PRIVATE: a testing ledger" if answer.testing else "",
        Paragraph(headline(answer), "bold"),
        *([] if _single(answer) or not answer.rows else [table(answer, shares=width is None or width >= _NARROW)]),
        alone(answer),
        little(answer),
        one_line(answer.note),
        *notes,
        population(answer),
    )


def table(answer: Answer, *, shares: bool = True, bounds: bool = False) -> CellTable:
    """The rows: a number with its ± beside it, where not all have the same; counts with what part of the people.

    bounds  beside every number, also where all have the same
    """
    places = estimated(answer)
    same = not bounds and len(places) == 1 and counts(answer) and math.isfinite(answer.error_bound)
    titles: list[str] = []
    beside = ["±"] if answer.ranks is None else ["from", "to"]
    for place, name in enumerate(answer.columns):
        titles += [name, *beside] if place in places and not same else [name]
    rows = [
        list(_cells(answer, row, ends, places, same=same))
        for row, ends in zip(answer.rows, answer.intervals, strict=True)
    ]
    right = [place for place in range(len(titles)) if titles[place] in {*beside, *_names(answer, places)}]
    if shares and isinstance(answer.fraction, dict) and len(answer.fraction) == len(rows):
        parts = [f"{100 * each:.3g} %" for each in answer.fraction.values()]
        rows = [[*row, part] for row, part in zip(rows, parts, strict=True)]
        titles, right = [*titles, "of the people"], [*right, len(titles)]
    return CellTable(titles, rows, numeric=right)


def _names(answer: Answer, places: Sequence[int]) -> set[str]:
    return {answer.columns[place] for place in places}


def _cells(answer: Answer, row: Any, ends: Any, places: Sequence[int], *, same: bool) -> Iterator[str]:
    for place, (value, interval) in enumerate(zip(row, ends, strict=True)):
        if place not in places:
            yield "missing" if value is None else str(value)  # a number that names a group is no amount
        elif answer.ranks is not None:
            yield _plain(value)
            yield from [EMPTY, EMPTY] if interval is None else [_end(each, value) for each in interval]
        elif value is None or type(value) is str:
            yield from [_plain(value), EMPTY][: 1 if same else 2]
        else:
            shown = _value_and_bound(value, interval, counted=counts(answer) or type(value) is int)
            yield from shown[: 1 if same else 2]


# As a frame and as a picture.


def frame_columns(answer: Answer) -> dict[str, list[Any]]:
    """The rows by columns; beside each aggregate its ±, its lower and its upper end."""
    found: dict[str, list[Any]] = {}
    places = estimated(answer)
    for place, name in enumerate(answer.columns):
        values = [row[place] for row in answer.rows]
        found[name] = values
        if place in places:
            ends = [each[place] for each in answer.intervals]
            numbers = [value if type(value) in (int, float) else None for value in values]
            found[f"{name} ±"] = [
                None if value is None or each is None else _reach(value, each)
                for value, each in zip(numbers, ends, strict=True)
            ]
            found[f"{name} low"] = [None if each is None else float(each[0]) for each in ends]
            found[f"{name} high"] = [None if each is None else float(each[1]) for each in ends]
    return found


def plot(answer: Answer) -> Any:
    """A matplotlib Figure: bars with their intervals, or a line within its band over numbers or dates."""
    known = [panel for panel in panels(answer) if panel.values]
    if not known:
        raise ParameterError("there is nothing to draw: the answer has no numbers")
    return measurements(known)


def panels(answer: Answer) -> Iterator[NumberPanel]:
    """Each aggregate as numbers to be drawn, with their labels and intervals."""
    places = estimated(answer)
    keys = [place for place in range(len(answer.columns)) if place not in places]
    along = one_line(", ".join(answer.columns[place] for place in keys))
    for place in places:
        name = one_line(answer.columns[place])
        known = [
            (_label([row[key] for key in keys], name), row[place], ends[place])
            for row, ends in zip(answer.rows, answer.intervals, strict=True)
            if type(row[place]) in (int, float)
        ]
        labels, values, intervals = ([each[part] for each in known] for part in range(3))
        title = f"{name} ({answer.unit})" if counts(answer) and name != answer.unit else name
        yield NumberPanel(title, along, _days(labels), values, intervals)


def _label(keys: list[Any], name: str) -> Any:
    """What a row is called: along one column its key, so that a line has a meaning; else the names of bars."""
    if len(keys) == 1:
        return keys[0]
    return ", ".join("missing" if each is None else str(each) for each in keys) or name


def _days(labels: list[Any]) -> list[Any]:
    """Texts that are all days or months, as dates."""
    try:
        return [datetime.datetime.fromisoformat(each if len(each) > 7 else f"{each}-01") for each in labels]
    except (TypeError, ValueError):
        return labels
