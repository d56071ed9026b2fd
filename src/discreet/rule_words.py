"""Learned rules in words, in SQL and as records: what `discreet learn` prints and saves, and what a service sends."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import discreet as dp

READING = (
    "A row is labelled positive where the sentence holds. A number is moved into low .. high and rounded down to a "
    "step from low before it is compared; one that is missing satisfies no condition."
)


def condition(learned: Any) -> dp.query.Predicate:
    """A learned rule (a `LearnedRule`, as in all functions here) as a condition that can be asked about. Two intervals
    of one column are joined."""
    intervals = learned.rule.intervals(learned.domain)
    if intervals is None:
        return dp.Or()
    inside: dict[str, tuple[int, int]] = {}
    for name, first, last, within in intervals:
        if within:
            low, high = inside.get(name, (first, last))
            inside[name] = max(low, first), min(high, last)
    outside = dict.fromkeys(each for each in intervals if not each[3])
    joined = [*((name, *ends, True) for name, ends in inside.items()), *outside]
    return dp.And(*(_codes(learned.domain, *each) for each in joined))


def _codes(domain: dp.Domain, name: str, first: int, last: int, inside: bool) -> dp.query.Predicate:
    """The column's code is in first .. last, or it is not."""
    column: Any = domain.column(name)
    if first > last:
        holds: dp.query.Predicate = dp.Or()
    elif not column.ordered:
        holds = dp.Missing(name) if first == column.missing_code else dp.Equals(name, column.declared(first))
    elif first == 0 and last == column.steps and not column.missing:
        holds = dp.And()
    else:
        holds = dp.Between(name, column.declared(first), column.declared(last))
    return holds if inside else dp.Not(holds)


def sentence(learned: Any) -> str:
    """The rule in words; of a conjunction with the levels, which say more than "sex" and "not sex"."""
    intervals = learned.rule.intervals(learned.domain)
    if str(learned) == "never" or intervals is None or not getattr(learned.rule, "literal", False):
        return str(learned)
    words = [f"{name} = {learned.domain.column(name).label(code)}" for name, code, _, _ in intervals]
    return " and ".join(dict.fromkeys(words)) or "always"


def sql(learned: Any) -> str:
    """The condition after WHERE; empty if the rule always holds."""
    from discreet.sql import where_text

    return where_text(condition(learned), learned.domain)


def record(kind: str, model: Any, target: str, domain: dp.Domain) -> dict[str, Any]:
    """What was learned, without what it cost."""
    features, where = model.rule_.domain, condition(model.rule_)
    return {
        "model": kind,
        "rule": kind,
        "target": {
            **dp.data.column_record(target, domain.column(target)),
            "positive": dp.data.plain(model.classes_[-1]),
        },
        "sentence": sentence(model.rule_),
        "sql": sql(model.rule_),
        "columns": [
            dp.data.column_record(name, features.column(name)) for name in features.names if name in where.columns
        ],
        "covers": float(covers(model.rule_)),
        "learned_from": list(features.names),
        "how_to_use": READING,
        "method": model.method_,
        "promise": str(model.promise_),
    }


def covers(learned: Any) -> Fraction:
    """The part of the declared values that the rule holds for, every value of a column counted once: public, and no
    number of people. Columns are independent here, and on each the rule is an interval without some others."""
    intervals = learned.rule.intervals(learned.domain)
    if intervals is None:
        return Fraction(0)
    part = Fraction(1)
    for name in {each[0] for each in intervals}:  # conditions outside of something name a single code
        size, here = learned.domain.column(name).size, [each[1:] for each in intervals if each[0] == name]
        low = max((first for first, _, inside in here if inside), default=0)
        high = min((last for _, last, inside in here if inside), default=size - 1)
        out = {first for first, last, inside in here if not inside and low <= first == last <= high}
        part *= Fraction(max(0, high - low + 1 - len(out)), size)
    return part
