"""Dates in questions: literals, parts of a date, and the day on which a week, a month or a year begins."""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from discreet.sql.grammar import Node
from discreet.sql.scope import Scope
from discreet.sql.source import shown

PARTS: dict[str, tuple[str, Callable[[datetime.date], int | str]]] = {
    "DECADE": ("year", lambda day: day.year // 10),
    "YEAR": ("year", lambda day: day.year),
    "ISOYEAR": ("day", lambda day: day.isocalendar().year),
    "QUARTER": ("quarter", lambda day: (day.month + 2) // 3),
    "MONTH": ("month", lambda day: day.month),
    "WEEK": ("day", lambda day: day.isocalendar().week),
    "DAY": ("day", lambda day: day.day),
    "DAYOFWEEK": ("day", lambda day: day.isoweekday() % 7),
    "ISODOW": ("day", lambda day: day.isoweekday()),
    "DAYOFYEAR": ("day", lambda day: day.timetuple().tm_yday),
    "MONTHNAME": ("month", lambda day: calendar.month_name[day.month]),
    "DAYNAME": ("day", lambda day: calendar.day_name[day.weekday()]),
    "HOUR": ("hour", lambda day: getattr(day, "hour", 0)),
    "MINUTE": ("minute", lambda day: getattr(day, "minute", 0)),
    "SECOND": ("second", lambda day: getattr(day, "second", 0)),
}
"""Parts of a date: the longest period that decides a part, weeks aside, and the part of a date."""

_SAME = {
    **{"WEEKOFYEAR": "WEEK", "DAYOFMONTH": "DAY", "WEEKDAY": "DAYOFWEEK", "DOW": "DAYOFWEEK", "DOY": "DAYOFYEAR"},
    **{f"{each}S": each for each in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")},
}

PERIODS = ("second", "minute", "hour", "day", "month", "quarter", "year")
"""From the shortest to the longest; each is made of whole ones of those before it."""


def unit_name(said: Any) -> str:
    """A part of a date by its one name."""
    return _SAME.get(str(said).upper(), str(said).upper())


def seen_period(node: Node) -> str | None:
    """The period of a date that is all that a call or a cast looks at; None if that is not known."""
    if node.kind == "cast":
        return "day" if node.value == "DATE" else None
    name = unit_name(node.value[0]) if node.kind == "call" else ""
    if name in ("DATE_PART", "DATE_TRUNC", "DATE_DIFF") and node.parts and node.parts[0].kind == "text":
        name = unit_name(node.parts[0].value)
    if name == "STRFTIME" and node.parts[-1].kind == "text":
        signs = re.findall(r"%(.)", node.parts[-1].value)
        return min((_SIGNS.get(sign, "second") for sign in signs), key=PERIODS.index, default=None)
    return "month" if name == "LAST_DAY" else PARTS[name][0] if name in PARTS else None


def read_moment(text: str) -> datetime.date:
    """A date, or a date and a time of day: in UTC, if it names a time zone."""
    if len(text) <= 10:
        return datetime.date.fromisoformat(text)
    moment = datetime.datetime.fromisoformat(text)
    return moment if moment.tzinfo is None else moment.astimezone(datetime.UTC).replace(tzinfo=None)


def day_of(moment: datetime.date) -> datetime.date:
    """A date without its time of day."""
    return moment.date() if isinstance(moment, datetime.datetime) else moment


def within_day(moment: datetime.date) -> bool:
    """Whether it is a time of day that is not the beginning of a day."""
    return isinstance(moment, datetime.datetime) and moment.time() != datetime.time()


def read_date(scope: Scope, node: Node) -> datetime.date:
    """A date as it is written: 2024-01-31, or with a time of day."""
    try:
        return read_moment(node.value)
    except ValueError:
        scope.refuse(node, f"{shown(node.value)} is not a date", "Dates look like '2024-01-31'.")


def as_date(scope: Scope, node: Node, value: Any) -> datetime.date:
    if type(value) is str:
        return read_date(scope, Node("date", node.start, (), value))
    if not isinstance(value, datetime.date):
        scope.refuse(node, "a date is expected here", "Name a column that is declared as a date.")
    return value


def date_part(scope: Scope, node: Node, unit: Any, value: Any) -> Any:
    found = PARTS.get(unit_name(unit))
    if found is None:
        scope.refuse(node, f"the part {shown(str(unit))} of a date is not answered", f"Parts: {', '.join(PARTS)}.")
    part = found[1](as_date(scope, node, value))
    return Fraction(part) if isinstance(part, int) else part


def date_trunc(scope: Scope, node: Node, unit: Any, value: Any) -> Any:
    """The first moment of the year, quarter, month, week, day, hour or minute."""
    moment = as_date(scope, node, value)
    day = day_of(moment)
    match unit_name(unit):
        case "DECADE":
            return datetime.date(max(day.year // 10 * 10, 1), 1, 1)
        case "YEAR":
            return day.replace(month=1, day=1)
        case "QUARTER":
            return day.replace(month=3 * ((day.month - 1) // 3) + 1, day=1)
        case "MONTH":
            return day.replace(day=1)
        case "WEEK":
            return day - datetime.timedelta(days=day.weekday())
        case "DAY":
            return day
        case "HOUR" if isinstance(moment, datetime.datetime):
            return moment.replace(minute=0, second=0, microsecond=0)
        case "MINUTE" if isinstance(moment, datetime.datetime):
            return moment.replace(second=0, microsecond=0)
    scope.refuse(
        node, f"DATE_TRUNC of {shown(str(unit))} is not answered", "Units: year, quarter, month, week, day, hour."
    )


_SIGNS = {
    **dict.fromkeys("Yy%", "year"),
    **dict.fromkeys("mbB", "month"),
    **dict.fromkeys("djaAuwVG", "day"),
    **{"q": "quarter", "H": "hour", "M": "minute", "S": "second"},
}
"""Signs of formats, and the period that is all that each of them looks at."""


def written_date(scope: Scope, node: Node, value: Any, pattern: Any) -> str:
    """A date as a text: '%Y-%m'; %q is the quarter."""
    moment = as_date(scope, node, value)
    made = ""
    for sign in re.findall(r"%.|[^%]+|%$", str(pattern)):
        if sign == "%q":
            made += str((moment.month + 2) // 3)
        elif sign.startswith("%") and sign[1:] not in _SIGNS:
            scope.refuse(node, f"{shown(sign)} in the format of a date is not read", f"Read are %{', %'.join(_SIGNS)}.")
        else:
            made += f"{moment.year:04d}" if sign == "%Y" else moment.strftime(sign) if sign[0] == "%" else sign
    return made


def date_diff(scope: Scope, node: Node, unit: Any, first: Any, last: Any) -> Fraction:
    """How many boundaries of days, months, quarters or years lie between two dates."""
    one, other = (as_date(scope, node, each) for each in (first, last))
    match unit_name(unit):
        case "DAY":
            return Fraction(other.toordinal() - one.toordinal())
        case "MONTH" | "QUARTER" | "YEAR" as part:
            count = {"MONTH": 12, "QUARTER": 4, "YEAR": 1}[part]
            places = [each.year * count + (each.month - 1) * count // 12 for each in (one, other)]
            return Fraction(places[1] - places[0])
    scope.refuse(node, f"DATE_DIFF in {shown(str(unit))} is not answered", "Units: day, month, quarter, year.")


def last_day(scope: Scope, node: Node, value: Any) -> datetime.date:
    day = date_trunc(scope, node, "day", value)
    return datetime.date(day.year, day.month, calendar.monthrange(day.year, day.month)[1])


def made_date(scope: Scope, node: Node, *parts: Any) -> datetime.date:
    try:
        return datetime.date(*(int(part) for part in parts if Fraction(part).denominator == 1))
    except (TypeError, ValueError, OverflowError):
        scope.refuse(
            node, "this is no date in some rows of the declared domain", "For example MAKE_DATE(YEAR(day), 1, 1)."
        )


def shifted(scope: Scope, node: Node, day: datetime.date, by: Any) -> datetime.date:
    """A date moved by whole days, or by an interval; moved by hours or minutes it is a time of day."""
    count, unit = by if type(by) is tuple else (by, "DAY")
    if unit in ("HOUR", "MINUTE") and type(day) is datetime.date:
        day = datetime.datetime.combine(day, datetime.time())
    if count != int(count) or unit not in ("DAY", "WEEK", "MONTH", "YEAR", "HOUR", "MINUTE"):
        scope.refuse(node, "a date is moved by whole days, weeks, months or years", "For example + INTERVAL 7 DAY.")
    steps = int(count) if node.kind == "+" else -int(count)
    try:
        if unit in ("MONTH", "YEAR"):
            months = day.year * 12 + day.month - 1 + steps * (12 if unit == "YEAR" else 1)
            year, month = divmod(months, 12)
            last = calendar.monthrange(year, month + 1)[1]
            return day.replace(year=year, month=month + 1, day=min(day.day, last))
        return day + datetime.timedelta(**{f"{unit.lower()}s": steps})
    except (OverflowError, ValueError):
        scope.refuse(node, "this date is beyond the calendar", "Dates lie between the years 1 and 9999.")
