"""Learned rules in words, in SQL and as records: what `discreet learn` prints and saves; which class is positive."""

from __future__ import annotations

import shlex
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import discreet as dp
from discreet.cli.columns import categories
from discreet.cli.kit import Lines, OpenTable, ParameterError, one_line
from discreet.cli.price_view import Payment
from discreet.data.declaration import column_record, plain

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
        holds = dp.Missing(name) if first == column.missing_code else dp.Equals(name, column.value(first))
    elif first == 0 and last == column.steps and not column.missing:
        holds = dp.And()
    else:
        holds = dp.Between(name, column.value(first), column.value(last))
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
        "target": {**column_record(target, domain.column(target)), "positive": plain(model.classes_[-1])},
        "sentence": sentence(model.rule_),
        "sql": sql(model.rule_),
        "columns": [column_record(name, features.column(name)) for name in features.names if name in where.columns],
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


def show(at: OpenTable, schema: Path, made: dict[str, Any], paid: Payment, others: Lines) -> None:
    """Print the rule, the command that asks how many people it is about, and what is known about it."""
    from discreet.sql import name_text

    output, target, bought = at.output, made["target"], made["certificate"]
    output.say(f"{one_line(target['column'])} = {one_line(target['positive'])} where")
    output.say(f"    {one_line(made['sentence'])}")
    question = f"SELECT COUNT(*) FROM {name_text(at.schema.name)}{' WHERE ' if made['sql'] else ''}{made['sql']}"
    quoted = shlex.quote(question) if any(sign in question for sign in '"$`\\!') else f'"{question}"'
    rehearse = " --rehearse" if output.rehearsal else ""
    output.copyable(f"discreet ask {shlex.quote(str(schema))} {quoted}{rehearse}")
    covered = f"{dp.exact.percent(made['covers'])} of the declared values (not of the people)"
    *price, left = paid.lines()
    certified = [] if bought is None else [("certificate", bought["said"]), ("its price", bought["cost"])]
    hint = ("hint", "a box has two sides for each column: one or two --features need much less noise")
    hints = [hint] if made["rule"] == "box" and len(made["columns"]) > 2 else []
    known = [("covers", covered), ("promise", made["promise"]), ("method", made["method"])]
    output.facts([*known, *price, *certified, left, *hints, *others])


# Which class is positive.


def with_positive(schema: dp.Schema, target: str, text: str | None) -> dp.Schema:
    """The schema with a target of two classes, the last of which is this level: the others are one class together."""
    column: Any = schema.domain.column(target)
    if column.ordered:
        raise ParameterError(
            f"the target {target!r} is a number: a rule is learned for a category. {categories(schema.domain, target)}"
        )
    levels = ", ".join(map(str, column.levels))
    if text is None:
        if column.size == 2:
            return schema
        raise ParameterError(
            f"{target!r} has {column.size} levels: say with --positive which of them the rule is for: {levels}"
        )
    # Levels may be numbers or booleans, and a command line has texts.
    spelled = {str(level).lower(): level for level in column.levels if type(level) is bool}
    spelled |= {str(level): level for level in column.levels}
    positive = spelled.get(text, spelled.get(text.lower()) if type(spelled.get(text.lower())) is bool else None)
    if positive is None:
        column.code(text)  # names near misses
        raise ParameterError(f"--positive must be a level, found {text!r}: {levels}")
    return replace(schema, domain=dp.Domain({**schema.domain, target: _two_classes(column, positive)}))


def _two_classes(column: dp.Category, positive: Any) -> dp.Category:
    if column.size == 2:
        (negative,) = (level for level in column.levels if column.code(level) != column.code(positive))
        return dp.Category(negative, positive, other=column.other, missing=column.missing)
    if column.other is not None and column.code(positive) == column.other_code:
        raise ParameterError(f"{positive!r} takes every value that is not declared: choose a declared level")
    rest = f"not {positive}"
    missing = None if column.missing is None else rest
    if column.missing is not None and column.code(positive) == column.missing_code:
        missing = positive
    return dp.Category(rest, positive, other=rest, missing=missing)
