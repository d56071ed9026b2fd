"""Predicates as conditions in SQL, in one standard spelling.

SQL's logic has three values and predicates have two, so a negation is pushed down to the comparisons, where a missing
value can be said: Not(Equals(x, v)) is x <> v OR x IS NULL where x may be missing. Beside Not(Missing(x)), which
such conditions usually come with, it is x <> v alone.

A *form* is a condition without negations: True, False, the text of a comparison, or a word and the forms it joins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction

from discreet.data import Column, Domain, Level, Number, decimal, spell
from discreet.errors import ParameterError
from discreet.query import Among, And, Between, Equals, Missing, Not, Or, Predicate
from discreet.sql.source import is_word

Form = bool | str | tuple[str, list["Form"]]

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def name_text(name: str) -> str:
    """A name, in quotes unless it is plain."""
    doubled = name.replace('"', '""')
    return name if _PLAIN_NAME.match(name) and not is_word(name) else f'"{doubled}"'


def literal_text(value: Level | Fraction) -> str:
    """A value as SQL writes it: a text in quotes, TRUE or FALSE, an exact decimal."""
    match value:
        case str():
            return "'" + value.replace("'", "''") + "'"
        case int():
            return str(value).upper()  # TRUE and FALSE are integers too
    return _written(value)


def where_text(predicate: Predicate, domain: Domain) -> str:
    """The condition; empty if it always holds."""
    predicate.check(domain)
    form = _form(predicate, domain, wanted=True, present=frozenset())
    if form is not False:
        return "" if form is True else _text(form, inner=False)
    for name, column in domain.columns:  # no row satisfies it; the language has no such condition without a column
        if column.bounded and (low := _decimal(column.low)) is not None:
            return f"{name_text(name)} < {low}"
        if column.calendar:
            return f"{name_text(name)} < {literal_text(str(column.label(0)))}"
        if column.categorical and column.points:
            code = next(code for code in range(column.size) if code != column.missing_code)
            value = literal_text(column.value(code))
            return f"{name_text(name)} = {value} AND {name_text(name)} <> {value}"
    raise ParameterError("no condition that never holds can be written in SQL over this domain")


def _text(form: Form, *, inner: bool) -> str:
    match form:
        case (word, parts):
            joined = f" {word} ".join(_text(part, inner=True) for part in parts)
            return f"({joined})" if inner else joined
    return str(form)


def _form(predicate: Predicate, domain: Domain, *, wanted: bool, present: frozenset[str]) -> Form:
    """The form that is true where the predicate is what is wanted, in rows where the present columns have values."""
    match predicate:
        case Not(part=part):
            return _form(part, domain, wanted=not wanted, present=present)
        case And(parts=parts):
            return _joined("AND" if wanted else "OR", parts, domain, wanted=wanted, present=present)
        case Or(parts=parts):
            return _joined("OR" if wanted else "AND", parts, domain, wanted=wanted, present=present)
        case Missing(column=name):
            if domain.column(name).missing_code is None:
                return not wanted
            return f"{name_text(name)} IS {'' if wanted else 'NOT '}NULL"
    form = _compared(predicate, domain.column(predicate.column), wanted)
    if wanted or domain.column(predicate.column).missing_code is None or predicate.column in present:
        return form
    return _join("OR", [form, f"{name_text(predicate.column)} IS NULL"])


def _joined(word: str, inner: Iterable[Predicate], domain: Domain, *, wanted: bool, present: frozenset[str]) -> Form:
    """The predicates, or their negations, joined by a word; Not(Not(...)) is left out."""
    parts: list[Predicate] = []
    for part in inner:
        keep = wanted
        while type(part) is Not:
            part, keep = part.part, not keep
        parts.append(part if keep else Not(part))
    if word == "AND":
        present |= {name for part in parts if (name := _present(part)) is not None}
        compared = {part.columns[0] for part in parts if (part.part if type(part) is Not else part).compared}
        # A comparison that is true already says that its column has a value.
        parts = [part for part in parts if _present(part) not in compared]
    return _join(word, [_form(part, domain, wanted=True, present=present) for part in parts])


def _present(part: Predicate) -> str | None:
    """The column that a part says has a value."""
    return part.part.column if type(part) is Not and type(part.part) is Missing else None


def _join(word: str, forms: Iterable[Form]) -> Form:
    """The forms joined by AND or OR; True and False are worked out, equal words flattened, repetitions dropped."""
    ends = word == "OR"
    kept: list[Form] = []
    for form in forms:
        for part in form[1] if type(form) is tuple and form[0] == word else [form]:
            if part is ends:
                return ends
            if part is not (not ends) and part not in kept:
                kept.append(part)
    return not ends if not kept else kept[0] if len(kept) == 1 else (word, kept)


def _compared(predicate: Equals | Between | Among, column: Column, wanted: bool) -> Form:
    assert column.listed  # or its values would have been refused
    said = name_text(predicate.column)
    match predicate:
        case Between(low=low, high=high):
            codes = [column.code(low), column.code(high)]
        case Equals(value=value):
            codes = [column.code(value)]
        case Among(values=values):
            codes = sorted({column.code(value) for value in values})
    if column.bounded and (len(codes) == 1 or type(predicate) is Between):
        return _range(said, column, codes[0], codes[-1], wanted)
    literals = [literal_text(column.declared(code)) for code in codes]
    if type(predicate) is Between:
        return f"{said} {'' if wanted else 'NOT '}BETWEEN {literals[0]} AND {literals[-1]}"
    if len(literals) == 1:
        return f"{said} {'=' if wanted else '<>'} {literals[0]}"
    return f"{said} {'' if wanted else 'NOT '}IN ({', '.join(literals)})"


def _range(said: str, column: Number, first: int, last: int, wanted: bool) -> Form:
    """Codes first .. last, or the other ones; a bound that no decimal writes is written by its neighbour."""
    least, most = _decimal(column.value(first)), _decimal(column.value(last))
    if least is not None and first == last:
        return f"{said} {'=' if wanted else '<>'} {least}"
    if first > 0 and last < column.steps and least is not None and most is not None:
        return f"{said} {'' if wanted else 'NOT '}BETWEEN {least} AND {most}"
    if not wanted:
        others = [(0, first - 1), (last + 1, column.steps)]
        return _join("OR", [_range(said, column, low, high, True) for low, high in others if low <= high])
    above = [_cut(said, column, first, ">=")] if first > 0 else []
    below = [_cut(said, column, last + 1, "<")] if last < column.steps else []
    return _join("AND", [*above, *below] or [_cut(said, column, 0, ">=")])


def _cut(said: str, column: Number, code: int, sign: str) -> str:
    """x >= value(code) or x < value(code), or the same by the value before: x > that, x <= that."""
    here = _decimal(column.value(code))
    before = _decimal(column.value(code - 1)) if code > 0 else None
    if before is not None and (sign == "<" or here is None):
        return f"{said} {'<=' if sign == '<' else '>'} {before}"
    return f"{said} {sign} {_written(column.value(code))}"


def _decimal(value: Fraction) -> str | None:
    """An exact decimal, if there is one."""
    places, scaled = 0, value
    while scaled.denominator != 1 and places < 400:
        places, scaled = places + 1, scaled * 10
    return decimal(scaled.numerator, places) if scaled.denominator == 1 else None


def _written(value: Fraction) -> str:
    text = _decimal(value)
    if text is None:
        raise ParameterError(f"{spell(value)} has no finite decimal, so SQL cannot write it")
    return text
