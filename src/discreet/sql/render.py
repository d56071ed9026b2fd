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

from discreet.data import Category, Column, Domain, Number, spell
from discreet.errors import ParameterError
from discreet.query import Among, And, Between, Equals, Missing, Not, Or, Predicate
from discreet.sql.source import is_word

Form = bool | str | tuple[str, list["Form"]]

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def name_text(name: str) -> str:
    """A name, in quotes unless it is plain."""
    doubled = name.replace('"', '""')
    return name if _PLAIN_NAME.match(name) and not is_word(name) else f'"{doubled}"'


def aggregate_text(kind: str, column: str | None, probability: Fraction | None) -> str:
    """COUNT(*), AVG(visits), MEDIAN(age), QUANTILE_CONT(age, 0.9)."""
    if column is None:
        return "COUNT(*)"
    name = name_text(column)
    if kind != "quantile":
        return f"{'SUM' if kind == 'sum' else 'AVG'}({name})"
    if probability is None or probability == Fraction(1, 2):
        return f"MEDIAN({name})"
    return f"QUANTILE_CONT({name}, {_written(probability)})"


def where_text(predicate: Predicate, domain: Domain) -> str:
    """The condition; empty if it always holds."""
    predicate.check(domain)
    form = _form(predicate, domain, wanted=True, present=frozenset())
    if form is False:
        form = _never(domain)
    return "" if form is True else _text(form, inner=False)


def _text(form: Form, *, inner: bool) -> str:
    if not isinstance(form, tuple):
        return str(form)
    word, parts = form
    joined = f" {word} ".join(_text(part, inner=True) for part in parts)
    return f"({joined})" if inner else joined


def _form(predicate: Predicate, domain: Domain, *, wanted: bool, present: frozenset[str]) -> Form:
    """The form that is true where the predicate is what is wanted, in rows where the present columns have values."""
    if isinstance(predicate, Not):
        return _form(predicate.part, domain, wanted=not wanted, present=present)
    if isinstance(predicate, (And, Or)):
        return _joined(predicate, domain, wanted=wanted, present=present)
    name = predicate.column
    column = domain.column(name)
    if isinstance(predicate, Missing):
        if column.missing_code is None:
            return not wanted
        return f"{name_text(name)} IS {'' if wanted else 'NOT '}NULL"
    form = _compared(predicate, name, column, wanted)
    if wanted or column.missing_code is None or name in present:
        return form
    return _join("OR", [form, f"{name_text(name)} IS NULL"])


def _joined(predicate: And | Or, domain: Domain, *, wanted: bool, present: frozenset[str]) -> Form:
    word = "AND" if isinstance(predicate, And) == wanted else "OR"
    parts = [_negated(each, wanted) for each in predicate.parts]
    if word == "AND":
        said = {part.part.column for part in parts if _says_present(part)}  # type: ignore[union-attr]
        present |= said
        compared = {column for part in parts if (column := _compares(part)) is not None}
        # A comparison that is true already says that its column has a value.
        parts = [part for part in parts if not (_says_present(part) and part.columns[0] in compared)]
    return _join(word, [_form(part, domain, wanted=True, present=present) for part in parts])


def _negated(predicate: Predicate, wanted: bool) -> Predicate:
    """The predicate or its negation, without Not(Not(...)) and with Not inside And and Or as they are."""
    while isinstance(predicate, Not):
        predicate, wanted = predicate.part, not wanted
    return predicate if wanted else Not(predicate)


def _says_present(part: Predicate) -> bool:
    return isinstance(part, Not) and isinstance(part.part, Missing)


def _compares(part: Predicate) -> str | None:
    inner = part.part if isinstance(part, Not) else part
    return inner.column if isinstance(inner, (Equals, Between, Among)) else None


def _join(word: str, forms: Iterable[Form]) -> Form:
    """The forms joined by AND or OR; True and False are worked out, equal words flattened, repetitions dropped."""
    ends = word == "OR"
    kept: list[Form] = []
    for form in forms:
        for each in form[1] if isinstance(form, tuple) and form[0] == word else [form]:
            if each is ends:
                return ends
            if not isinstance(each, bool) and each not in kept:
                kept.append(each)
    return not ends if not kept else kept[0] if len(kept) == 1 else (word, kept)


def _compared(predicate: Equals | Between | Among, name: str, column: Column, wanted: bool) -> Form:
    if isinstance(predicate, Between):
        assert isinstance(column, Number)
        return _range(name, column, column.code(predicate.low), column.code(predicate.high), wanted)
    assert isinstance(column, (Category, Number))
    given = (predicate.value,) if isinstance(predicate, Equals) else predicate.values
    codes = sorted({column.code(value) for value in given})
    if len(codes) == 1 and isinstance(column, Number):
        return _range(name, column, codes[0], codes[0], wanted)
    values = [_literal(column, code) for code in codes]
    if len(values) == 1:
        return f"{name_text(name)} {'=' if wanted else '<>'} {values[0]}"
    return f"{name_text(name)} {'' if wanted else 'NOT '}IN ({', '.join(values)})"


def _range(name: str, column: Number, first: int, last: int, wanted: bool) -> Form:
    """Codes first .. last, or the other ones; a bound that no decimal writes is written by its neighbour."""
    said, least, most = name_text(name), _decimal(column.value(first)), _decimal(column.value(last))
    if least is not None and first == last:
        return f"{said} {'=' if wanted else '<>'} {least}"
    if first > 0 and last < column.steps and least is not None and most is not None:
        return f"{said} {'' if wanted else 'NOT '}BETWEEN {least} AND {most}"
    if not wanted:
        others = [(0, first - 1), (last + 1, column.steps)]
        return _join("OR", [_range(name, column, low, high, True) for low, high in others if low <= high])
    above = [_cut(said, column, first, ">=")] if first > 0 else []
    below = [_cut(said, column, last + 1, "<")] if last < column.steps else []
    return _join("AND", [*above, *below] or [_cut(said, column, 0, ">=")])


def _cut(said: str, column: Number, code: int, sign: str) -> str:
    """x >= value(code) or x < value(code), or the same by the value before: x > that, x <= that."""
    here = _decimal(column.value(code))
    before = _decimal(column.value(code - 1)) if code > 0 else None
    if before is not None and (sign == "<" or here is None):
        return f"{said} {'<=' if sign == '<' else '>'} {before}"
    if here is not None:
        return f"{said} {sign} {here}"
    return f"{said} {sign} {_written(column.value(code))}"


def _literal(column: Category | Number, code: int) -> str:
    if isinstance(column, Number):
        return _written(column.value(code))
    level = column.value(code)
    if isinstance(level, bool):
        return "TRUE" if level else "FALSE"
    return str(level) if isinstance(level, int) else "'" + level.replace("'", "''") + "'"


def _decimal(value: Fraction) -> str | None:
    """An exact decimal, if there is one."""
    places, scaled = 0, value
    while scaled.denominator != 1 and places < 400:
        places, scaled = places + 1, scaled * 10
    if scaled.denominator != 1:
        return None
    digits = f"{abs(scaled.numerator):0{places + 1}d}"
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else f"{sign}{digits}"


def _written(value: Fraction) -> str:
    found = _decimal(value)
    if found is None:
        raise ParameterError(f"{spell(value)} has no finite decimal, so SQL cannot write it")
    return found


def _never(domain: Domain) -> Form:
    """A condition that no row satisfies; the language has none without a column."""
    for name, column in domain.columns:
        if isinstance(column, Number) and (low := _decimal(column.low)) is not None:
            return f"{name_text(name)} < {low}"
        if isinstance(column, Category):
            code = next((each for each in range(column.size) if each != column.missing_code), None)
            if code is not None:
                value = _literal(column, code)
                return "AND", [f"{name_text(name)} = {value}", f"{name_text(name)} <> {value}"]
    raise ParameterError("no condition that never holds can be written in SQL over this domain")
