"""What an entry of a ledger was about, in words: from records alone, so that it works without the table.

does(record)    what the mechanism does: the first sentence of its class
asked(record)   what was asked: a count in words, a sum, a histogram; else the columns that the record names
one_line(text)  somebody's text on one line
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from discreet.query import Among, And, Between, Equals, Missing, Not, Or
from discreet.records import Json, revive

_PREDICATES: dict[str, type] = {each.NAME: each for each in (Among, And, Between, Equals, Missing, Not, Or)}
_FOREIGN = "not one of discreet's own mechanisms"
_MANY = 3  # questions of a workload that are spelled out


def one_line(text: object) -> str:
    """Somebody's text, so that it cannot look like a line of ours or speak to the terminal."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in str(text)).split())


def does(stored: Json) -> str:
    """What the mechanism with this record does."""
    from discreet.catalogue import CATALOGUE

    kind = CATALOGUE.get(str(stored.get("name"))) if isinstance(stored, dict) else None
    if kind is None:
        return _FOREIGN
    return " ".join((kind.__doc__ or "").split("\n\n")[0].split())


def asked(stored: Any) -> str:
    """What was asked, as a person reads it; "" if the record names no columns."""
    try:
        return _words(stored) if isinstance(stored, dict) else ""
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):  # a record of another version
        return _columns(stored)


def _words(stored: dict[str, Any]) -> str:
    name = stored.get("name")
    if name in _QUERIES:
        condition = revive(stored["where"], _PREDICATES).in_words()
        return _QUERIES[name](stored) + ("" if condition == "always" else f" where {condition}")
    if "query" in stored:
        return asked(stored["query"])
    if isinstance(stored.get("queries"), list):
        return _several([asked(each) for each in stored["queries"]])
    if isinstance(stored.get("scopes"), list):
        return _several([f"how many rows for each {', '.join(each)}" for each in stored["scopes"]])
    if name == "rank-quantile/1":
        return f"the {stored['q']}-quantile of {stored['column']}"
    if isinstance(stored.get("risk"), dict):
        return asked(stored["risk"])
    if isinstance(stored.get("target"), str) and "features" in stored:
        return f"{stored['target']} from {', '.join(_named(stored['features'])) or 'nothing'}"
    if isinstance(stored.get("labels"), dict):
        others = [each for each in _named(stored) if each != stored["labels"]["column"]]
        return f"{stored['labels']['column']} = {stored['labels']['positive']} from {', '.join(others)}"
    return _columns(stored)


def _several(parts: list[str]) -> str:
    more = f"; and {len(parts) - _MANY} more" if len(parts) > _MANY else ""
    return "; ".join(parts[:_MANY]) + more


_QUERIES: dict[Any, Callable[[dict[str, Any]], str]] = {
    "count/1": lambda stored: "how many rows",
    "sum/1": lambda stored: f"the sum of {stored['column']}",
    "histogram/1": lambda stored: f"how many rows for each {', '.join(stored['columns'])}",
    "key-count/1": lambda stored: f"which {', '.join(stored['columns'])} there are",
    "vector-sum/1": lambda stored: f"the sums of {', '.join(stored['columns'])}",
}


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
