"""Calls as other dialects write them, as the one call that means the same.

A call whose meaning differs between dialects is not here: it is read as duckdb reads it, or refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import NoReturn

from discreet.sql.grammar import Node
from discreet.sql.source import SAME, Source

_UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "DAYOFWEEK", "DAYOFYEAR", "DOW", "DOY", "ISODOW")
_TO_CHAR = {"YYYY": "%Y", "YY": "%y", "MM": "%m", "DD": "%d", "Q": "%q", "Mon": "%b", "Dy": "%a", "FMMonth": "%B"}
_TO_CHAR |= {"FMDay": "%A", "HH24": "%H", "MI": "%M", "SS": "%S", "DDD": "%j", "ID": "%u", "IYYY": "%G", "IW": "%V"}
_FORMAT = {"yyyy": "%Y", "yy": "%y", "MM": "%m", "dd": "%d", "MMM": "%b", "MMMM": "%B", "ddd": "%a", "dddd": "%A"}
_FORMAT |= {"HH": "%H", "mm": "%M", "ss": "%S"}


def rewritten(asked: Source, node: Node) -> Node:
    """The call in the words of this language."""
    written, distinct = node.value
    name = SAME.get(written, written)
    distinct = distinct or written in ("APPROX_COUNT_DISTINCT", "APPROX_DISTINCT")
    change = _CHANGES.get(written)
    found = Node("call", node.start, node.parts, (name, distinct))
    return found if change is None else change(asked, found)


def _wrong(asked: Source, node: Node, example: str) -> NoReturn:
    raise asked.refused(node.start, f"{node.value[0]} is not read like this", f"It looks like {example}.")


def _unit(node: Node) -> Node | None:
    """A part of a date as a text, whether it is written as a text or as a word."""
    if node.kind not in ("name", "text") or (node.kind == "name" and node.value[0] is not None):
        return None
    said = node.value[1] if node.kind == "name" else node.value
    if node.kind == "name" and said.upper() not in _UNITS:
        return None
    return Node("text", node.start, (), said.lower())


def _unit_first(asked: Source, node: Node) -> Node:
    """DATEPART(month, day), DATETRUNC(month, day)."""
    unit = _unit(node.parts[0]) if len(node.parts) == 2 else None
    if unit is None:
        _wrong(asked, node, f"{node.value[0]}('month', day)")
    return Node("call", node.start, (unit, node.parts[1]), node.value)


def _truncated(asked: Source, node: Node) -> Node:
    """DATE_TRUNC('month', day), or DATE_TRUNC(day, MONTH)."""
    last = _unit(node.parts[1]) if len(node.parts) == 2 and node.parts[0].kind != "text" else None
    return node if last is None else Node("call", node.start, (last, node.parts[0]), node.value)


def _difference(asked: Source, node: Node) -> Node:
    """DATE_DIFF('day', from, to); DATEDIFF(day, from, to); DATE_DIFF(to, from, DAY); DATEDIFF(to, from) in days."""
    parts, call = node.parts, ("DATE_DIFF", False)
    if len(parts) == 2 and node.value[0] == "DATEDIFF":
        return Node("call", node.start, (Node("text", node.start, (), "day"), parts[1], parts[0]), call)
    if len(parts) != 3:
        _wrong(asked, node, "DATE_DIFF('day', from, to)")
    first, last = _unit(parts[0]), _unit(parts[2])
    if node.value[0] == "DATE_DIFF" and parts[0].kind != "text" and last is not None:
        return Node("call", node.start, (last, parts[1], parts[0]), call)
    if first is None:
        _wrong(asked, node, "DATE_DIFF('day', from, to)")
    return Node("call", node.start, (first, *parts[1:]), call)


def _moved(asked: Source, node: Node) -> Node:
    """DATEADD(month, 3, day), DATE_ADD(day, INTERVAL 3 MONTH), DATE_SUB(day, INTERVAL 3 MONTH); and the beginning of a
    month as DATEADD(month, DATEDIFF(month, 0, day), 0)."""
    parts = node.parts
    if node.value[0] == "DATEADD" and len(parts) == 3 and (unit := _unit(parts[0])) is not None:
        trunc = parts[1].parts if parts[1].kind == "call" and parts[1].value == ("DATE_DIFF", False) else ()
        if [each.value for each in (*trunc[:2], parts[2])] == [unit.value, Fraction(0), Fraction(0)]:
            return Node("call", node.start, (unit, trunc[2]), ("DATE_TRUNC", False))
        minus, count = parts[1].kind == "minus", parts[1].parts[0] if parts[1].kind == "minus" else parts[1]
        if count.kind == "number" and Fraction(count.value).denominator == 1:
            span = Node("interval", node.start, (), (int(count.value), unit.value.upper()))
            return Node("-" if minus else "+", node.start, (_day(parts[2]), span))
    if node.value[0] != "DATEADD" and len(parts) == 2 and parts[1].kind == "interval":
        return Node("-" if node.value[0] == "DATE_SUB" else "+", node.start, (_day(parts[0]), parts[1]))
    _wrong(asked, node, "day + INTERVAL 7 DAY")


def _day(node: Node) -> Node:
    """A date that is written as a text."""
    return replace(node, kind="date") if node.kind == "text" else node


def _shown_date(asked: Source, node: Node) -> Node:
    """TO_CHAR(day, 'YYYY-MM'), FORMAT(day, 'yyyy-MM'), STRFTIME(day, '%Y-%m') and the other way round."""
    texts = [part for part in node.parts if part.kind == "text"]
    others = [part for part in node.parts if part.kind != "text"]
    if len(node.parts) != 2 or len(texts) != 1:
        _wrong(asked, node, "STRFTIME(day, '%Y-%m')")
    pattern, signs = texts[0].value, {"TO_CHAR": _TO_CHAR, "FORMAT": _FORMAT}.get(node.value[0])
    if signs is not None:
        words = re.findall(r'HH24|[A-Za-z]+|"[^"]*"|[^A-Za-z"]+', pattern)
        if any(word[0].isalpha() and word not in signs for word in words):
            raise asked.refused(texts[0].start, "this format of a date is not read", f"Read are {', '.join(signs)}.")
        pattern = "".join(signs.get(word, word.strip('"')) for word in words)
    made = Node("text", texts[0].start, (), pattern)
    return Node("call", node.start, (others[0], made), ("STRFTIME", False))


def _divided(asked: Source, node: Node) -> Node:
    """SAFE_DIVIDE(a, b), which is nothing over 0; DIV0(a, b), which is 0 then."""
    if len(node.parts) != 2:
        _wrong(asked, node, f"{node.value[0]}(a, b)")
    (one, other), nothing = node.parts, Node("number", node.start, (), Fraction(0))
    found = Node("/", node.start, (one, Node("call", node.start, (other, nothing), ("NULLIF", False))))
    return found if node.value[0] != "DIV0" else Node("call", node.start, (found, nothing), ("COALESCE", False))


def _named_date(asked: Source, node: Node) -> Node:
    """DATENAME(month, day), DATENAME(weekday, day)."""
    said = node.parts[0].value[1] if len(node.parts) == 2 and node.parts[0].kind == "name" else ""
    found = {"MONTH": "MONTHNAME", "WEEKDAY": "DAYNAME", "DW": "DAYNAME"}.get(said.upper())
    if found is None:
        _wrong(asked, node, "DATENAME(month, day)")
    return Node("call", node.start, node.parts[1:], (found, False))


def _decoded(asked: Source, node: Node) -> Node:
    """DECODE(x, 'a', 1, 'b', 2, 3), which is a CASE of x."""
    if len(node.parts) < 3:
        _wrong(asked, node, "DECODE(x, 'a', 1, 0)")
    return Node("case", node.start, node.parts, (True, len(node.parts) % 2 == 0))


def _one_of_several(asked: Source, node: Node) -> Node:
    """APPROX_QUANTILES(x, 100)[OFFSET(90)]: the last part is the index."""
    if len(node.parts) != 3 or any(part.kind != "number" for part in node.parts[1:]):
        reason = "a list of quantiles is not answered: each of them is paid for"
        raise asked.refused(node.start, reason, "Name each of them: QUANTILE(x, 0.25), QUANTILE(x, 0.5).")
    target, many, place = node.parts
    chance = Node("number", node.start, (), place.value / many.value if many.value else Fraction(0))
    return Node("call", node.start, (target, chance), ("QUANTILE", False))


def _dated(asked: Source, node: Node) -> Node:
    """DATE(day), TO_DATE('1976-01-31', 'YYYY-MM-DD')."""
    plain = len(node.parts) == 2 and node.parts[1].kind == "text" and node.parts[1].value.upper() == "YYYY-MM-DD"
    if not plain and len(node.parts) != 1:
        _wrong(asked, node, "DATE '2024-01-31'")
    return Node("cast", node.start, node.parts[:1], "DATE")


def _truths(asked: Source, node: Node) -> Node:
    """BOOL_OR(c), which is the largest of zeros and ones, and BOOL_AND(c), which is the least."""
    if len(node.parts) != 1:
        _wrong(asked, node, f"{node.value[0]}(condition)")
    (truth,), start = node.parts, node.start
    zero, one = (Node("number", start, (), Fraction(each)) for each in (0, 1))
    value = Node("case", start, (truth, one, Node("not", start, (truth,)), zero), (False, False))
    end = "MAX" if node.value[0].endswith("OR") else "MIN"
    return Node("=", start, (Node("call", start, (value,), (end, False)), one))


_CHANGES: dict[str, Callable[[Source, Node], Node]] = {
    **dict.fromkeys(("DATEPART", "DATE_PART", "DATETRUNC"), _unit_first),
    **dict.fromkeys(("DATE_TRUNC", "TIMESTAMP_TRUNC", "DATETIME_TRUNC"), _truncated),
    **dict.fromkeys(("DATE_DIFF", "DATEDIFF"), _difference),
    **dict.fromkeys(("DATEADD", "DATE_ADD", "DATE_SUB"), _moved),
    **dict.fromkeys(("TO_CHAR", "FORMAT", "FORMAT_DATE", "DATE_FORMAT", "STRFTIME"), _shown_date),
    **dict.fromkeys(("FORMAT_TIMESTAMP", "FORMAT_DATETIME"), _shown_date),
    **dict.fromkeys(("BOOL_OR", "LOGICAL_OR", "BOOL_AND", "LOGICAL_AND"), _truths),
    **dict.fromkeys(("DATE", "TO_DATE"), _dated),
    **dict.fromkeys(("SAFE_DIVIDE", "DIV0"), _divided),
    "DATENAME": _named_date,
    "DECODE": _decoded,
    "APPROX_QUANTILES": _one_of_several,
}
