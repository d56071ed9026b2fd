"""Learned rules in words, in SQL and as records: what `discreet learn` prints and saves; which class is positive."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.cli.model_view import declared, plain
from discreet.errors import ParameterError

READING = (
    "A row is labelled positive where the sentence holds. A number is moved into low .. high and rounded down to a "
    "step from low before it is compared; one that is missing satisfies no condition."
)

if TYPE_CHECKING:
    from discreet.data import Category, Domain
    from discreet.estimators.rule_base import LearnedRule
    from discreet.query import Predicate
    from discreet.schema import Schema


def condition(found: LearnedRule) -> Predicate:
    """A learned rule as a condition that can be asked about."""
    from discreet.pac.rules import BoxRule, Conjunction, Literals
    from discreet.query import And, Or

    rule, domain = found.rule, found.domain
    if isinstance(rule, BoxRule):
        sides = zip(rule.columns, rule.low, rule.high, strict=True)
        return Or() if rule.is_empty else And(*(_codes(domain, *side, True) for side in sides))
    assert isinstance(rule, Conjunction)
    conditions = rule.conditions
    if rule.never:
        return Or()
    if isinstance(conditions, Literals):
        return And(*(_codes(domain, name, code, code, True) for name, code in _literals(rule)))
    return And(
        *(_codes(domain, *part) for part in _joined([conditions.meaning(domain, each) for each in rule.numbers]))
    )


def _joined(parts: list[tuple[str, int, int, bool]]) -> list[tuple[str, int, int, bool]]:
    """Two intervals of one column as one; if they do not meet the first code is above the last."""
    intervals: dict[str, tuple[int, int]] = {}
    others: list[tuple[str, int, int, bool]] = []
    for name, first, last, inside in parts:
        if not inside:
            others.append((name, first, last, inside))
            continue
        low, high = intervals.get(name, (first, last))
        intervals[name] = max(low, first), min(high, last)
    return [*((name, low, high, True) for name, (low, high) in intervals.items()), *dict.fromkeys(others)]


def _codes(domain: Domain, name: str, first: int, last: int, inside: bool) -> Predicate:
    """The column's code is in first .. last, or it is not."""
    from discreet.data import Category, Number
    from discreet.query import And, Between, Equals, Missing, Not, Or

    column = domain.column(name)
    if first > last:
        return Or() if inside else And()
    if isinstance(column, Category):
        found: Predicate = Missing(name) if first == column.missing_code else Equals(name, column.value(first))
        return found if inside else Not(found)
    assert isinstance(column, Number)
    if first == 0 and last == column.steps and not column.missing:
        return And() if inside else Or()
    between = Between(name, column.value(first), column.value(last))
    return between if inside else Not(between)


def sentence(found: LearnedRule) -> str:
    """The rule in words; of a conjunction with the levels, which say more than "sex" and "not sex"."""
    from discreet.pac.rules import Conjunction, Literals

    rule = found.rule
    if not isinstance(rule, Conjunction) or not isinstance(rule.conditions, Literals) or str(found) == "never":
        return str(found)
    said = [f"{name} = {found.domain.column(name).label(code)}" for name, code in _literals(rule)]
    return " and ".join(dict.fromkeys(said)) or "always"


def _literals(rule: Any) -> list[tuple[str, int]]:
    """Columns of two levels, each with the code that it must have."""
    return [(rule.conditions.columns[number // 2], 1 - number % 2) for number in rule.numbers]


def sql(found: LearnedRule) -> str:
    """The condition after WHERE; empty if the rule always holds."""
    from discreet.sql.render import where_text

    return where_text(condition(found), found.domain)


def record(kind: str, model: Any, target: str, domain: Domain) -> dict[str, Any]:
    """What was learned, without what it cost."""
    features, where = model.rule_.domain, condition(model.rule_)
    positive = model.classes_[-1]
    used = [name for name in features.names if name in where.columns]
    return {
        "rule": kind,
        "target": {
            **declared(target, domain.column(target)),
            "positive": plain(positive),
        },
        "sentence": sentence(model.rule_),
        "sql": sql(model.rule_),
        "columns": [declared(name, features.column(name)) for name in used],
        "covers": float(covers(model.rule_)),
        "learned_from": list(features.names),
        "how_to_use": READING,
        "method": model.method_,
        "promise": str(model.promise_).replace("with alpha=", "with --alpha "),
    }


def covers(found: LearnedRule) -> Fraction:
    """The part of the declared values that the rule holds for, every value of a column counted once: public, and no
    number of people. Columns are independent here, and on each the rule is an interval without some others."""
    from discreet.pac.rules import BoxRule, Literals

    rule: Any = found.rule
    if isinstance(rule, BoxRule):
        parts = [(*side, True) for side in zip(rule.columns, rule.low, rule.high, strict=True)]
    elif rule.never:
        return Fraction(0)
    elif isinstance(rule.conditions, Literals):
        parts = [(name, code, code, True) for name, code in _literals(rule)]
    else:
        parts = [rule.conditions.meaning(found.domain, each) for each in rule.numbers]
    names = dict.fromkeys(part[0] for part in parts)
    return math.prod((_covered(found.domain, name, parts) for name in names), start=Fraction(1))


def _covered(domain: Domain, name: str, parts: list[tuple[str, int, int, bool]]) -> Fraction:
    """The part of a column's codes that all conditions on it leave; those outside of something name a single code."""
    column: Any = domain.column(name)
    here = [part[1:] for part in parts if part[0] == name]
    low = max((first for first, _, inside in here if inside), default=0)
    high = min((last for _, last, inside in here if inside), default=column.size - 1)
    out = {first for first, last, inside in here if not inside and low <= first == last <= high}
    return Fraction(max(0, high - low + 1 - len(out)), column.size)


# Which class is positive.


def with_positive(schema: Schema, target: str, text: str | None) -> Schema:
    """The schema with a target of two classes, the last of which is this level: the others are one class together."""
    from discreet.data import Domain

    column = _category(schema.domain, target)
    if text is None:
        if column.size == 2:
            return schema
        raise ParameterError(
            f"{target!r} has {column.size} levels: say with --positive which of them the rule is for: {_listed(column)}"
        )
    return replace(schema, domain=Domain({**schema.domain, target: _two_classes(column, _level(column, text))}))


def _two_classes(column: Category, positive: Any) -> Category:
    from discreet.data import Category

    if column.size == 2:
        (negative,) = (level for level in column.levels if column.code(level) != column.code(positive))
        return Category(negative, positive, other=column.other, missing=column.missing)
    if column.other is not None and column.code(positive) == column.other_code:
        raise ParameterError(f"{positive!r} takes every value that is not declared: choose a declared level")
    rest = f"not {positive}"
    missing = None if column.missing is None else rest
    if column.missing is not None and column.code(positive) == column.missing_code:
        missing = positive
    return Category(rest, positive, other=rest, missing=missing)


def _category(domain: Domain, target: str) -> Category:
    from discreet.data import Category

    column = domain.column(target)
    if isinstance(column, Category):
        return column
    raise ParameterError(
        f"the target {target!r} is a number: a rule is learned for a category. {categories(domain, target)}"
    )


def categories(domain: Domain, but: str) -> str:
    """Which columns have levels, as a hint."""
    from discreet.data import Category

    found = [name for name in domain.names if name != but and isinstance(domain.column(name), Category)]
    return f"Categories of this table: {', '.join(found)}" if found else "This table has no other categories"


def _level(column: Category, text: str) -> Any:
    """The level that somebody typed: levels may be numbers or booleans, a command line has texts."""
    for level in column.levels:
        if str(level) == text or (isinstance(level, bool) and str(level).lower() == text.lower()):
            return level
    column.code(text)  # names near misses
    raise ParameterError(f"--positive must be a level, found {text!r}: {_listed(column)}")


def _listed(column: Category) -> str:
    return ", ".join(map(str, column.levels))
