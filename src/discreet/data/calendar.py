"""The calendar of Date and Timestamp columns: instants as seconds, periods as numbers, both proleptic Gregorian.

An instant is a whole number of seconds since 1970-01-01 00:00:00, without time zone: a value that has one is converted
to UTC. A period (a day, an ISO week that begins on Monday, a month, ...) is numbered; `period` gives the number of the
period of an instant and `start` the first instant of a period, so start(period(t)) <= t. All are elementwise functions
of int64 arrays and agree with duckdb's DATE_TRUNC and EXTRACT.
"""

from __future__ import annotations

import functools
import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

from discreet.core import Codes

DAY = 86_400
_LENGTHS = {"second": 1, "minute": 60, "hour": 3600, "day": DAY, "week": 7 * DAY}
MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
"""The periods that are measured in months, and how many; the others are measured in seconds."""

_THURSDAY = 3 * DAY  # 1970-01-01 was a Thursday: a week begins three days before it
_EPOCH = datetime(1970, 1, 1)
_ISO = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?\Z"
)
_LEAST, _MOST = (round((each - _EPOCH).total_seconds()) for each in (datetime(1, 1, 1), datetime(9999, 12, 31)))


def seconds_of(value: object) -> int | None:
    """The instant of a date, a datetime or ISO text; None for anything else. Parts of a second are cut off."""
    match value:
        case datetime():
            naive = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
            return (naive - _EPOCH) // timedelta(seconds=1)
        case date():
            return (value.toordinal() - _EPOCH.toordinal()) * DAY
        case np.datetime64():
            found = instants(np.array([value]))
            return None if np.isnat(value) else int(found[0])
        case str():
            return _spelled(value.strip())
    return None


def _spelled(text: str) -> int | None:
    if len(text) > 40 or not _ISO.match(text):
        return None
    try:
        return seconds_of(datetime.fromisoformat(re.sub(r"(\.[0-9]{1,6})[0-9]*", r"\1", text)))
    except (ValueError, OverflowError):  # a 13th month; a time zone that leads out of the years 1 to 9999
        return None


def iso_text(value: object) -> str | None:
    """A date, a datetime or ISO text in one spelling, in UTC: the order of these texts is that of time. Else None."""
    seconds = seconds_of(value)
    times = isinstance(value, datetime) or (isinstance(value, str) and len(value.strip()) > len("1976-02-29"))
    return None if seconds is None else iso(seconds, times=times)


def instants(values: Any) -> Codes:
    """The instants of an array of numpy's datetimes; what is not a time is 0."""
    unit, count = np.datetime_data(values.dtype)
    finer = {"ms": 10**3, "us": 10**6, "ns": 10**9, "ps": 10**12, "fs": 10**15, "as": 10**18}
    if unit in finer:
        found = values.view(np.int64) * count // finer[unit] if count == 1 else values.astype("M8[s]").view(np.int64)
    else:
        found = values.astype("M8[s]").view(np.int64)
    return np.where(np.isnat(values), 0, found)


def iso(seconds: int, *, times: bool) -> str:
    """An instant as ISO text: 1976-02-29, or 1976-02-29 23:00:00 with times."""
    moment = _EPOCH + timedelta(seconds=seconds)
    return moment.isoformat(sep=" ") if times else moment.date().isoformat()


def clipped(seconds: Codes) -> Codes:
    """The instants, moved into the years 1 to 9999."""
    return np.clip(seconds, _LEAST, _MOST)


def period(seconds: Codes, step: str) -> Codes:
    """The number of the period of this length that each instant lies in."""
    if step in _LENGTHS:
        return (seconds + (_THURSDAY if step == "week" else 0)) // _LENGTHS[step]
    return measured(seconds, step) // MONTHS[step]  # months are counted from 1970, which begins a decade


def measured(seconds: Codes, step: str) -> Codes:
    """Instants in the measure of a period: seconds or whole months since 1970."""
    return seconds.astype("M8[s]").astype("M8[M]").astype(np.int64) if step in MONTHS else seconds


def length(step: str) -> int:
    """Of a period, in its measure."""
    return MONTHS[step] if step in MONTHS else _LENGTHS[step]


@functools.lru_cache(maxsize=1024)
def span(low: str, high: str, step: str) -> tuple[int, int]:
    """The numbers of the first and of the last period between two instants in ISO text."""
    first, last = period(np.array([_spelled(low), _spelled(high)], dtype=np.int64), step).tolist()
    return first, last


def start(periods: Codes, step: str) -> Codes:
    """The first instant of each period."""
    if step in _LENGTHS:
        return periods * _LENGTHS[step] - (_THURSDAY if step == "week" else 0)
    return (periods * MONTHS[step]).astype("M8[M]").astype("M8[s]").astype(np.int64)
