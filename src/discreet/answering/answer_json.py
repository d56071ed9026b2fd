"""An answer as JSON, and back: what a service sends, and what its client makes an `Answer` of again.

    {"value": 12, "error_bound": 4.5, "columns": ["count"], "rows": [[12]], "intervals": [[[7.5, 16.5]]],
     "groups": [], "unit": "persons", "source": "direct", "price": {...}, ...}

With GROUP BY, `keys` has the labels of each group, and `value` one value for each of them, in the same order. A
bound or the end of an interval that is null is infinite.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from discreet.answering.answer import Answer
from discreet.core import Cost

_PLAIN = ("source", "unit", "population", "testing", "size", "note")


def answer_record(answer: Answer) -> dict[str, Any]:
    """Everything that an answer says outside its session."""
    grouped = bool(answer.groups)
    keys = [list(key) if len(answer.groups) > 1 else [key] for key in answer.value] if grouped else []
    return {
        "value": list(answer.value.values()) if grouped else answer.value,
        "error_bound": finite(answer.error_bound),
        "alone": finite(answer.alone),
        "groups": list(answer.groups),
        "keys": keys,
        "columns": list(answer.columns),
        "rows": [list(row) for row in answer.rows],
        "intervals": [[None if each is None else finite(list(each)) for each in row] for row in answer.intervals],
        "fraction": list(answer.fraction.values()) if grouped and answer.fraction else answer.fraction,
        "ranks": finite(answer.ranks),
        "ranked": answer.ranks is not None,
        **{name: getattr(answer, name) for name in _PLAIN},
        "price": cost_record(answer.price),
    }


def answer_from(record: dict[str, Any]) -> Answer:
    """The answer whose record this is."""
    groups = tuple(record["groups"])
    keys = [key[0] if len(groups) == 1 else tuple(key) for key in record["keys"]]
    value, fraction = record["value"], record["fraction"]
    bound = record["error_bound"]
    return Answer(
        value=dict(zip(keys, value, strict=True)) if groups else value,
        error_bound={name: _end(each, 1) for name, each in bound.items()} if type(bound) is dict else _end(bound, 1),
        alone=record.get("alone"),
        price=cost_from(record["price"]),
        fraction=dict(zip(keys, fraction, strict=True)) if groups and fraction is not None else fraction,
        groups=groups,
        ranks=_end(record["ranks"], 1) if record["ranked"] else None,
        columns=tuple(record["columns"]),
        rows=[tuple(row) for row in record["rows"]],
        intervals=[tuple(map(_interval, row)) for row in record["intervals"]],
        **{name: record[name] for name in _PLAIN},
    )


def cost_record(cost: Any) -> dict[str, Any]:
    """A price: nano-units, the part of the budget, the epsilon by itself, and the same in words."""
    told: Cost = cost
    return {**told.record(), "budget_nano": told.cap, "words": str(told)}


class ToldCost(Cost):
    """A price as a service told it: the guarantee behind its epsilon stays there."""

    told: dict[str, Any]

    @property
    def epsilon(self) -> float | None:
        found: float | None = self.told["epsilon"]
        return found

    @property
    def failure(self) -> float:
        return float(self.told["failure"])


def cost_from(record: dict[str, Any]) -> ToldCost:
    """The price whose record this is."""
    made = ToldCost(record["nano"], cap=record["budget_nano"], delta=Fraction(record["delta"]))
    assert isinstance(made, ToldCost)
    made.told = record
    return made


def finite(value: Any) -> Any:
    """The same with null for what is infinite."""
    if type(value) is dict:
        return {name: finite(each) for name, each in value.items()}
    if type(value) is list:
        return [finite(each) for each in value]
    return value if value is None or math.isfinite(value) else None


def _end(value: float | None, sign: int) -> float:
    return sign * math.inf if value is None else value


def _interval(found: list[float | None] | None) -> tuple[float, float] | None:
    return None if found is None else (_end(found[0], -1), _end(found[1], 1))
