"""What an entry of a ledger was about, in words: from records alone, so that it works without the table.

asked(record)    what was asked: a count in words, a sum, a histogram; else the columns that the record names
purpose(...)     a charge in one line: its memo, if somebody wrote one, and what was asked
mechanism_name   what a recorded mechanism is called
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from discreet.core import Json, one_line, revive
from discreet.query import Among, And, Between, Equals, Missing, Not, Or

_PREDICATES: dict[str, type] = {each.NAME: each for each in (Among, And, Between, Equals, Missing, Not, Or)}
_OWN_MEMOS = ("always",)  # that sessions of earlier versions wrote for a question without WHERE
_MANY = 3  # questions of a workload that are spelled out


def asked(stored: Any) -> str:
    """What was asked, as a person reads it; "" if the record names no columns."""
    try:
        return _words(stored) if isinstance(stored, dict) else ""
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):  # a record of another version
        return _columns(stored)


def purpose(asked: str, memo: str, recorded: object, *, brief: bool = False) -> str:
    """A charge in one line. A memo that only repeats a part of what was asked is left out; brief: or else the memo."""
    words, note = one_line(asked), one_line(memo)
    own = note and note not in _OWN_MEMOS and note not in words
    said = [note if own else "", "" if own and brief else words]
    return ": ".join(filter(None, said)) or mechanism_name(recorded)


def mechanism_name(recorded: object) -> str:
    """What a recorded mechanism is called: laplace/1 is laplace."""
    return one_line(str(recorded or "without a name").split("/")[0].replace("-", " "))


def _words(stored: dict[str, Any]) -> str:
    match stored:
        case {"name": name} if name in _QUERIES:
            return f"{_QUERIES[name](stored)}{_where(stored)}"
        case {"name": "of-persons/1"}:
            return f"of the rows of each person{_where(stored['made'])}: {_words(stored['query'])}"
        case {"name": "reply/1"}:
            return f"{stored['analyst']} asked: {stored['what']}"
        case {"query": query}:
            return asked(query)
        case {"queries": [*queries]}:
            return _several([asked(each) for each in queries])
        case {"scopes": [*scopes]}:
            return _several([f"how many rows for each {', '.join(each)}" for each in scopes])
        case {"name": "rank-quantile/1" | "group-quantiles/1"}:
            return f"the {stored['q']}-quantile of {stored['column']}"
        case {"risk": {**risk}}:
            return asked(risk)
        case {"target": str(target), "features": features}:
            return f"{target} from {', '.join(_named(features)) or 'nothing'}"
        case {"labels": {**labels}}:
            others = [each for each in _named(stored) if each != labels["column"]]
            return f"{labels['column']} = {labels['positive']} from {', '.join(others)}"
    return _columns(stored)


def _where(stored: dict[str, Any]) -> str:
    condition = revive(stored["where"], _PREDICATES).in_words()
    return "" if condition == "always" else f" where {condition}"


def _several(parts: list[str]) -> str:
    more = f"; and {len(parts) - _MANY} more" if len(parts) > _MANY else ""
    return "; ".join(parts[:_MANY]) + more


_QUERIES: dict[Any, Callable[[dict[str, Any]], str]] = {
    "count/1": lambda stored: "how many rows",
    "sum/1": lambda stored: f"the sum of {stored['column']}",
    "histogram/1": lambda stored: f"how many rows for each {', '.join(stored['columns'])}",
    "group-count/1": lambda stored: f"how many rows{_for_each(stored)}",
    "group-sum/1": lambda stored: f"the sum of {', '.join(_named(stored['value']))}{_for_each(stored)}",
    "persons/1": lambda stored: f"how many persons{_for_each(stored)}",
    "key-count/1": lambda stored: f"which {', '.join(stored['columns'])} there are",
    "vector-sum/1": lambda stored: f"the sums of {', '.join(stored['columns'])}",
}


def _for_each(stored: dict[str, Any]) -> str:
    """What the rows are grouped by, by the columns that decide it."""
    keys = [each for key in stored["keys"] for each in ([key] if isinstance(key, str) else _named(key))]
    return f" for each {', '.join(keys)}" if keys else ""


def _columns(stored: Json) -> str:
    found = _named(stored)
    return f"about {', '.join(found)}" if found else ""


def _named(stored: Json) -> list[str]:
    """The columns that a record names, in order, once each."""
    return list(dict.fromkeys(_walk(stored)))


def _walk(stored: Json, naming: bool = False) -> Iterator[str]:
    """The texts under the keys that hold names of columns."""
    match stored:
        case dict():
            for key, value in stored.items() if not naming else ():
                yield from _walk(value, key in ("column", "columns", "target"))
        case list():
            for each in stored:
                yield from _walk(each, naming)
        case str() if naming:
            yield stored
