"""The declared encoding and tallies as SQL, for five databases; the only module that knows sqlglot.

SQL computes codes by the rules of `data.rules`, and adds up what a `Tally` says about codes. Everything else is the
library's own. Statements are made of the declaration alone: names are quoted by sqlglot, levels and bounds are
literals, and no text of an analyst is in them.

*No statement fails because of a value.* A code is CASE over the entry: NULL first (LEAST(NULL, 5) is 5 in PostgreSQL
and DuckDB, NULL in BigQuery: neither is used), then everything up to the first value of the grid, then everything from
the last on, by comparisons in the entry's own type; only entries between the two are computed with, and those cannot
overflow. Divisions are of whole numbers that are not negative. Floats are not computed with at all.

*Two forms.* The `strict` code of an entry that the declaration does not take is NO_VALUE or NO_LEVEL: for ingest, which
refuses the table. The code that is summed is 0 there: a total function from entries to declared codes, so that the
theorems about sensitivity hold for whatever is in the database when a sum is taken.

*Equality of text* is of bytes in every database, whatever the collation of the column is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sqlglot import exp

from discreet.core import SchemaError, Unproven
from discreet.data import calendar
from discreet.data.domain import MAX_CODES, Column, Domain, Number, decimal
from discreet.data.ingest import MIX
from discreet.data.rules import GridRule, grid_denominator, holds, level_rule, measure_of, number_rule, period_rule
from discreet.data.tally import (
    Added,
    CodeOf,
    Condition,
    Every,
    Multiplied,
    Other,
    RowInteger,
    Some,
    Switch,
    Tally,
    TextOf,
    WholeNumber,
    Within,
)

NO_VALUE, NO_LEVEL = -1, -2
"""Strict codes of a missing value, and of a level, that are not declared."""

_INT64 = (-(2**63), 2**63 - 1)
_YEARS = 1970 * 12 + 1  # the months of the year 0 and on, counted from 1, minus those since 1970
_LONGEST_DECIMAL = 38  # digits
_MOST_ROWS = 2**40  # for which 64 bits are enough, or are not
_REMEMBERED = 1000  # statements
_KEPT = "kept_rows"  # of all persons, in a statement about some of their columns
_MOST_DIGITS = 30  # of a bound or a step, after the point


@dataclass(frozen=True, slots=True)
class SqlSource:
    """The type of a database's column.

    kind    "whole", "decimal", "text", "boolean", "date", "timestamp" (without time zone) or "zoned"; "code": what the
            library encoded already
    digits  of a decimal after the point; None: any number of them, NaN and infinities too
    ends    whole and decimal: the least and the largest number that the type holds, in units of its last digit
    """

    kind: str
    digits: int | None = 0
    ends: tuple[int, int] = _INT64

    @property
    def entries(self) -> str:
        """The kind of its entries, as `data.encoding` calls it."""
        return "moment" if self.kind in ("date", "timestamp", "zoned") else self.kind


@dataclass(frozen=True, slots=True)
class WordSpeech:
    """Unsigned 64-bit words in a database, as texts for names of columns and for numbers: the word of a code, a word
    plus (or times) a number modulo 2^64, two words combined bit by bit, one shifted to the right (and the bits that are
    left), one that is written, and what is ordered as words are."""

    code: str
    modulo: str
    either: str
    shifted: str
    written: str
    ordered: str

    def turned(self, word: str, bits: int) -> str:
        """A word and itself, shifted to the right."""
        return self.either.format(word, self.shifted.format(word, bits, 2 ** (64 - bits) - 1))


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs between databases.

    same       whether a text is this one, byte by byte
    quotient   of two whole numbers that are not negative
    above      seconds since a moment that is not later, rounded down
    utc        a moment, in UTC and without a time zone: of this the year and the month are taken
    truth      a boolean as a condition
    cut        the first characters of a text, compared by bytes; None: texts that are not listed are not read
    kinds      which kinds of sources are known
    words      64-bit words, by which the rows of a person are ordered; None: every row is a person
    """

    name: str
    same: Callable[[exp.Expression, str], exp.Expression]
    quotient: Callable[[exp.Expression, exp.Expression], exp.Expression]
    above: Callable[[exp.Expression, SqlSource, int], exp.Expression]
    utc: Callable[[exp.Expression, SqlSource], exp.Expression] = lambda entry, source: entry
    part: Callable[[str, exp.Expression], exp.Expression] = lambda name, entry: _call(name, entry)
    cut: Callable[[exp.Expression, int], exp.Expression] | None = None
    truth: Callable[[exp.Expression], exp.Expression] = lambda entry: entry
    kinds: tuple[str, ...] = ("whole", "decimal", "text", "boolean", "date", "timestamp")
    words: WordSpeech | None = None

    def text(self, expression: exp.Expression) -> str:
        """The SQL of an expression."""
        return expression.sql(dialect=self.name)

    def count(self, what: exp.Expression | None = None) -> exp.Expression:
        """How many rows there are, or how many have a value of an expression."""
        return _call("COUNT_BIG" if self.name == "tsql" else "COUNT", what or exp.Star())


# Small expressions.


def _number(value: int) -> exp.Expression:
    return exp.Literal.number(str(value)) if value >= 0 else exp.paren(exp.Neg(this=exp.Literal.number(str(-value))))


def _words(text: str) -> exp.Expression:
    return exp.Literal.string(text)


def _call(name: str, *arguments: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _case(*branches: tuple[exp.Expression, exp.Expression], otherwise: exp.Expression) -> exp.Expression:
    case = exp.Case()
    for condition, value in branches:
        case = case.when(condition, value, copy=False)
    return case.else_(otherwise, copy=False) if branches else otherwise


def _operation(kind: type[exp.Binary], left: exp.Expression, right: exp.Expression) -> exp.Expression:
    return exp.paren(kind(this=left, expression=right), copy=False)


def _joined(kind: type[exp.Binary], parts: Sequence[exp.Expression]) -> exp.Expression:
    """The parts joined two by two, so that a long list is not nested deep."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return _operation(kind, _joined(kind, parts[:half]), _joined(kind, parts[half:]))


def _whole(expression: exp.Expression) -> exp.Expression:
    return exp.Cast(this=expression, to=exp.DataType(this=exp.DataType.Type.BIGINT))


def _is_null(entry: exp.Expression) -> exp.Expression:
    return exp.Is(this=entry.copy(), expression=exp.Null())


def _moment(seconds: int, kind: str) -> exp.Expression:
    """A literal of an instant."""
    if kind == "date":
        return exp.cast(_words(calendar.iso(seconds, times=False)), "DATE")
    zone, kept = ("+00", "TIMESTAMPTZ") if kind == "zoned" else ("", "TIMESTAMPNTZ")
    return exp.cast(_words(calendar.iso(seconds, times=True) + zone), kept)


# Codes.


def code_of(
    entry: exp.Expression, column: Column, source: SqlSource, dialect: Dialect, *, strict: bool = False
) -> exp.Expression:
    """The code of an entry; Unproven if SQL cannot say it exactly, SchemaError if a table would not take the type."""
    if source.kind == "code":
        return _whole(entry)
    missing = column.missing_code
    nothing = missing if missing is not None else NO_VALUE if strict else 0
    null = _is_null(entry)
    if source.kind == "decimal" and source.digits is None:
        not_a_number = exp.EQ(this=entry.copy(), expression=exp.cast(_words("NaN"), "DECIMAL"))
        null = _operation(exp.Or, null, not_a_number)
    inner: list[tuple[exp.Expression, exp.Expression]] = [(null, _number(nothing))]
    if column.free:  # 0 is a missing text, if one may be missing; the code of any other text is private
        return _case(*inner, otherwise=_number(0 if missing is None else 1))
    if column.categorical:
        rule = level_rule(column, source.entries)
        other = rule.otherwise if rule.otherwise >= 0 else NO_LEVEL if strict else 0
        inner += [
            (same, _number(code))
            for level, code in rule.codes.items()
            if (same := _is_level(entry, level, source, dialect)) is not None
        ]
        return _case(*inner, otherwise=_number(other))
    made = _periods(entry, column, source, dialect) if column.calendar else _grid(entry, column, source, dialect)
    return _case(*inner, *made[0], otherwise=made[1])


def require_source(name: str, column: Column, source: SqlSource | None, dialect: Dialect, kind: str) -> SqlSource:
    """Refuse a column whose entries SQL does not encode exactly; `kind` is what the database calls its type."""
    if source is None or source.kind not in dialect.kinds:
        advice = "floats are rounded by each engine in its own way; " if "float" in kind.lower() else ""
        raise Unproven(
            f"column {name!r} is of type {kind}, whose values cannot be encoded exactly in SQL: {advice}make a view "
            "that casts it to whole numbers, decimals, text, dates or booleans"
        )
    if not (column.coded or column.free) or not (column.listed or column.free):
        raise Unproven(f"column {name!r} is declared {column!r}: a database does not encode it exactly")
    if column.free and dialect.cut is None:
        raise Unproven(
            f"column {name!r} is declared {column!r}: texts that are not listed are not read from this database"
        )
    if not holds(column, source.entries):
        raise SchemaError(f"column {name!r} is of type {kind}, which does not hold {column!r}")
    if column.calendar and source.kind == "text":
        raise Unproven(f"column {name!r} holds text, but dates are declared: make a view that casts it to a date")
    return source


def _is_level(entry: exp.Expression, level: Any, source: SqlSource, dialect: Dialect) -> exp.Expression | None:
    """Whether the entry is this level; None if its type holds no such entry."""
    if source.kind == "text":
        try:
            level.encode("utf-8")
        except UnicodeEncodeError:
            return None  # half of a character: no database holds it
        if "\0" in level:
            raise Unproven("a declared level holds the character NUL, which SQL cannot spell")
        return dialect.same(entry.copy(), level)
    if source.kind == "boolean":
        true = dialect.truth(entry.copy())
        return {0: exp.not_(true), 1: true}.get(level)
    if source.digits is None:
        return exp.EQ(this=entry.copy(), expression=_number(level))
    units = level * 10**source.digits
    if not source.ends[0] <= units <= source.ends[1]:
        return None
    return exp.EQ(this=entry.copy(), expression=_literal(units, source))


def _literal(units: int, source: SqlSource) -> exp.Expression:
    """A number in the entry's own type."""
    if source.kind == "whole":
        return _number(units)
    digits = source.digits or 0
    return exp.cast(_words(decimal(units, digits)), f"DECIMAL({_LONGEST_DECIMAL}, {digits})")


Branches = tuple[Sequence[tuple[exp.Expression, exp.Expression]], exp.Expression]


def _grid(entry: exp.Expression, column: Any, source: SqlSource, dialect: Dialect) -> Branches:
    """The ends of the grid, and the code between them."""
    if source.kind == "boolean":
        entry = exp.paren(_case((dialect.truth(entry.copy()), _number(1)), otherwise=_number(0)))
        source = SqlSource("whole", 0, (0, 1))
    if source.digits is None:
        return _endless(entry, column, dialect)
    rule = _checked(number_rule(column, Fraction(1, 10**source.digits)))
    if max(abs(rule.first), abs(rule.last)) * 10 ** (2 * source.digits) >= 10**_LONGEST_DECIMAL:
        raise Unproven(f"the bounds {column!r} have too many digits for this database's decimals")
    ends: list[tuple[Any, int, int]] = [(exp.LTE, rule.first, 0), (exp.GTE, rule.last, rule.most)]
    branches: list[tuple[exp.Expression, exp.Expression]] = []
    least, most = source.ends
    for compare, end, code in ends:
        if least <= end <= most:
            branches.append((compare(this=entry.copy(), expression=_literal(end, source)), _number(code)))
        elif (end > most) == (compare is exp.LTE):  # every entry of this type lies beyond this end
            return [], _number(code)
    units = entry.copy()
    if source.kind == "decimal" and source.digits:
        exact = exp.cast(units, f"DECIMAL({_LONGEST_DECIMAL}, {source.digits})")
        units = _operation(exp.Mul, exact, _number(10**source.digits))
    return branches, _between(_minus(_whole(units), rule.first), rule, dialect)


def _endless(entry: exp.Expression, column: Number, dialect: Dialect) -> Branches:
    """Of decimals with any number of digits."""
    scale = grid_denominator(column)
    rule = _checked(number_rule(column, Fraction(1, scale)))
    ends = []
    for value in (column.low, column.high):
        units = value * 10**_MOST_DIGITS
        if units.denominator != 1:
            raise Unproven(f"the bounds of {column!r} are not decimals of {_MOST_DIGITS} digits after the point")
        ends.append(exp.cast(_words(decimal(int(units), _MOST_DIGITS)), "DECIMAL"))
    branches: list[tuple[exp.Expression, exp.Expression]] = [
        (exp.LTE(this=entry.copy(), expression=ends[0]), _number(0)),
        (exp.GTE(this=entry.copy(), expression=ends[1]), _number(rule.most)),
    ]
    floor = exp.Floor(this=_operation(exp.Mul, entry.copy(), _number(scale)))
    return branches, _between(_minus(_whole(floor), rule.first), rule, dialect)


def _checked(rule: GridRule) -> GridRule:
    if not rule.fits:
        raise Unproven("a grid with bounds of more than 62 bits is not encoded in SQL: declare nearer bounds")
    return rule


def _minus(expression: exp.Expression, number: int) -> exp.Expression:
    return expression if number == 0 else _operation(exp.Sub, expression, _number(number))


def _between(above: exp.Expression, rule: GridRule, dialect: Dialect) -> exp.Expression:
    """The code of what lies between the ends, by how far it is above the first."""
    units = above if rule.times == 1 else _operation(exp.Mul, above, _number(rule.times))
    units = _minus(units, -rule.plus)
    return units if rule.over == 1 else dialect.quotient(units, _number(rule.over))


def _periods(entry: exp.Expression, column: Any, source: SqlSource, dialect: Dialect) -> Branches:
    rule, kind = period_rule(column), source.kind
    low, high = column.ends()
    if kind == "date":  # a day is its first second
        low, high = low - low % calendar.DAY, high + -high % calendar.DAY
    branches: list[tuple[exp.Expression, exp.Expression]] = [
        (exp.LTE(this=entry.copy(), expression=_moment(low, kind)), _number(0)),
        (exp.GTE(this=entry.copy(), expression=_moment(high, kind)), _number(rule.most)),
    ]
    if measure_of(column) == "second":
        return branches, _between(dialect.above(entry.copy(), source, rule.first), rule, dialect)
    years, months = (_whole(dialect.part(part, dialect.utc(entry.copy(), source))) for part in ("YEAR", "MONTH"))
    counted = _operation(exp.Add, _operation(exp.Mul, years, _number(12)), months)
    return branches, _between(_minus(counted, _YEARS + rule.first), rule, dialect)


# Statements.


@dataclass(frozen=True, slots=True)
class KeptPersons:
    """At most `rows` rows of a person are kept: the first in the order that begins with this key (`data.ingest`)."""

    unit: str
    rows: int
    key: int
    text: bool

    def who(self) -> exp.Expression:
        """The person of a row; texts by their bytes."""
        entry = exp.column(self.unit, quoted=True)
        return _c_collation(entry) if self.text else entry

    def named(self) -> exp.Expression:
        """Whether a row names a person."""
        return exp.not_(_is_null(exp.column(self.unit, quoted=True)))


@dataclass(frozen=True, slots=True)
class Coded:
    """A relation whose declared columns are read as codes.

    relation  the parts of its name: schema and table, or whatever stands behind FROM
    persons   whose rows they are, if a person may have several
    """

    relation: exp.Expression
    domain: Domain
    sources: Mapping[str, SqlSource]
    dialect: Dialect
    persons: KeptPersons | None = None
    _made: dict[Any, str] = field(default_factory=dict, repr=False, compare=False)

    def codes(self, names: Sequence[str], *, strict: bool = False) -> exp.Subquery:
        """SELECT the codes of these columns, as c0, c1, ..., and the kept texts of those that are free as t0, ..."""
        if self.persons is not None and not strict:
            columns = self.domain.names
            kept: list[Any] = [exp.column(f"c{columns.index(name)}").as_(f"c{at}") for at, name in enumerate(names)]
            return exp.select(*(kept or [_number(1).as_("one")])).from_(_KEPT).subquery("coded")
        made = self._encoded(names, strict=strict)
        return exp.select(*(made or [_number(1).as_("one")])).from_(self.relation.copy()).subquery("coded")

    def _kept(self, persons: KeptPersons) -> str:
        """The codes of the rows that are kept of each person, by the keyed mix of `EncodedRows.order`, word by word.

        A step of a mix looks at the word before it twice. It is a SELECT of its own, which OFFSET 0 keeps apart: put
        into one expression the steps would double in length each time.
        """
        words = self.dialect.words
        assert words is not None  # required when the table is made
        start, one, first, two, second, last = MIX

        def layer(inner: str, found: Mapping[str, str]) -> str:
            made = ", ".join(f"{each} AS {name}" for name, each in found.items())
            return f"SELECT *, {made} FROM ({inner}) AS before OFFSET 0"

        def mixed(inner: str, given: Mapping[str, str]) -> str:
            """The steps of `ingest._mix` but for the last."""
            inner = layer(inner, {f"{each}0": words.modulo.format(word, "+", start) for each, word in given.items()})
            for n, (bits, factor) in enumerate(((one, first), (two, second))):
                turned = {each: words.turned(f"{each}{n}", bits) for each in given}
                inner = layer(inner, {f"{e}{n + 1}": words.modulo.format(t, "*", factor) for e, t in turned.items()})
            return inner

        codes, word = [f"c{place}" for place in range(len(self.domain))], words.written.format(persons.key)
        rows = exp.select(*self._encoded(self.domain.names), persons.who().as_("who")).from_(self.relation.copy())
        inner = mixed(self.dialect.text(rows.where(persons.named())), {f"m{c}": words.code.format(c) for c in codes})
        for code in codes:
            inner = mixed(inner, {f"w{code}": words.either.format(word, words.turned(f"m{code}2", last))})
            word = words.turned(f"w{code}2", last)
        inner, listed = layer(inner, {"word": words.ordered.format(word)}), ", ".join(codes)
        window = f"ROW_NUMBER() OVER (PARTITION BY who ORDER BY word, {listed})"
        placed = f"SELECT {listed}, {window} AS nth FROM ({inner}) AS mixed"
        return f"SELECT {listed} FROM ({placed}) AS placed WHERE nth <= {persons.rows}"

    def nobody(self) -> str:
        """How many rows name no person."""
        assert self.persons is not None
        rows = exp.select(self.dialect.count()).from_(self.relation.copy())
        return self.dialect.text(rows.where(exp.not_(self.persons.named())))

    def _encoded(self, names: Sequence[str], *, strict: bool = False) -> list[Any]:
        made: list[Any] = []
        for place, name in enumerate(names):
            entry, column = exp.column(name, quoted=True), self.domain.column(name)
            made.append(code_of(entry, column, self.sources[name], self.dialect, strict=strict).as_(f"c{place}"))
            if column.free and self.dialect.cut is not None:
                made.append(self.dialect.cut(entry.copy(), column.length).as_(f"t{place}"))
        return made

    def ingest(self) -> str:
        """How many rows there are, and for each column how many have no value or a level that is not declared."""
        names = [name for name in self.domain.names if name in self.sources]
        wrong = [
            self.dialect.count(
                exp.Case().when(exp.EQ(this=exp.column(f"c{place}"), expression=_number(code)), _number(1))
            )
            for place in range(len(names))
            for code in (NO_VALUE, NO_LEVEL)
        ]
        return self.dialect.text(exp.select(self.dialect.count(), *wrong).from_(self.codes(names, strict=True)))

    def count(self) -> str:
        """How many persons there are."""
        if self.persons is None:
            return self.tally(Tally())
        who = exp.select(self.persons.who().as_("who")).from_(self.relation.copy()).where(self.persons.named())
        return self.dialect.text(exp.select(self.dialect.count()).from_(who.distinct().subquery("persons")))

    def tally(self, tally: Tally, *, limit: int | None = None) -> str:
        """The cells that occur, as one number if their number is declared, how many rows are in each, and the sums."""
        key = (tally, limit)
        if key not in self._made:
            if len(self._made) >= _REMEMBERED:
                self._made.clear()
            self._made[key] = self._statement(tally, limit)
        return self._made[key]

    def _statement(self, tally: Tally, limit: int | None) -> str:
        names = tally.columns()
        look = _CodeReader(self.domain, {name: place for place, name in enumerate(names)})
        axes = [look.integer(axis) for axis in tally.axes]
        if tally.shape is not None:
            if math.prod(tally.shape) > MAX_CODES:
                raise Unproven("these cells have numbers of more than 62 bits")
            axes = [_flat(axes, tally.shape)] if axes else []
        amounts = [_whole(look.integer(each)) for each in tally.amounts]
        keys = [each.as_(f"k{place}") for place, each in enumerate(axes)]
        inner = exp.select(
            *(keys + [each.as_(f"a{place}") for place, each in enumerate(amounts)] or [_number(1).as_("one")])
        )
        inner = inner.from_(self.codes(names)).where(look.condition(tally.where), copy=False)
        groups = [exp.column(f"k{place}") for place in range(len(axes))]
        sums = [self._sum(exp.column(f"a{place}"), tally.most) for place in range(len(amounts))]
        outer = exp.select(*groups, self.dialect.count(), *sums).from_(inner.subquery("counted"))
        outer = outer.group_by(*(each.copy() for each in groups)) if groups else outer
        said = self.dialect.text(outer if limit is None else outer.limit(limit))
        if self.persons is None:
            return said
        if _KEPT not in self._made:
            self._made[_KEPT] = self._kept(self.persons)
        return f"WITH {_KEPT} AS ({self._made[_KEPT]}) {said}"

    def _sum(self, amount: exp.Expression, most: int) -> exp.Expression:
        """Exact: in decimals where 64 bits could be too few."""
        small = most * _MOST_ROWS < 2**62
        return exp.Sum(this=amount if small else exp.cast(amount, f"DECIMAL({_LONGEST_DECIMAL}, 0)"))


def _flat(axes: Sequence[exp.Expression], shape: Sequence[int]) -> exp.Expression:
    cell = _whole(axes[0])
    for axis, size in zip(axes[1:], shape[1:], strict=True):
        cell = _operation(exp.Add, _operation(exp.Mul, cell, _number(size)), axis)
    return cell


@dataclass(frozen=True, slots=True)
class _CodeReader:
    """Integers and conditions of a row of codes; `places` says which of c0, c1, ... a column is."""

    domain: Domain
    places: Mapping[str, int]

    def _code(self, name: str) -> exp.Expression:
        return exp.column(f"c{self.places[name]}")

    def integer(self, part: RowInteger | TextOf) -> exp.Expression:
        match part:
            case CodeOf():
                return self._code(part.column)
            case TextOf():
                return exp.column(f"t{self.places[part.column]}")
            case WholeNumber():
                return _number(part.number)
            case Added():
                return _joined(exp.Add, [_whole(self.integer(each)) for each in part.parts] or [_number(0)])
            case Multiplied():
                return _joined(exp.Mul, [_whole(self.integer(each)) for each in part.parts] or [_number(1)])
            case Switch():
                chosen = zip(map(self.condition, part.conditions), map(self.integer, part.values), strict=True)
                return exp.paren(_case(*chosen, otherwise=self.integer(part.otherwise)))

    def condition(self, part: Condition) -> exp.Expression:
        match part:
            case Within():
                return self._within(part)
            case Every() | Some():
                if not part.parts:
                    return _truth(part == Every())
                kind = exp.And if type(part) is Every else exp.Or
                return _joined(kind, [exp.paren(self.condition(each), copy=False) for each in part.parts])
            case Other():
                return exp.paren(exp.not_(exp.paren(self.condition(part.part), copy=False), copy=False), copy=False)

    def _within(self, part: Within) -> exp.Expression:
        """Alone standing codes as a list, the others as ranges."""
        alone = [low for low, high in part.ranges if low == high]
        found: list[exp.Expression] = [
            exp.Between(this=self._code(part.column), low=_number(low), high=_number(high))
            for low, high in part.ranges
            if low < high
        ]
        if alone:
            found.append(exp.In(this=self._code(part.column), expressions=[_number(each) for each in alone]))
        if not found:
            return _truth(False)
        return _joined(exp.Or, [exp.paren(each, copy=False) for each in found])


def _truth(value: bool) -> exp.Expression:
    return exp.EQ(this=_number(1), expression=_number(int(value)))


def relation_of(parts: Sequence[str]) -> exp.Expression:
    """A table or view by the parts of its name: (catalog,) (schema,) table; each is quoted."""
    names = [exp.to_identifier(part, quoted=True) for part in parts]
    table, database, catalog = (*reversed(names), None, None)[:3]
    return exp.Table(this=table, db=database, catalog=catalog)


def columns_sql(relation: exp.Expression, names: Sequence[str], dialect: Dialect) -> str:
    """A statement without rows that has these columns; all of them if none is named."""
    columns: list[exp.Expression] = [exp.column(name, quoted=True) for name in names]
    return dialect.text(exp.select(*(columns or [exp.Star()])).from_(relation.copy()).where(_truth(False), copy=False))


def all_sql(relation: exp.Expression, dialect: Dialect) -> str:
    """The first two rows of a relation."""
    return dialect.text(exp.select(exp.Star()).from_(relation.copy()).limit(2))


_TYPES = {"whole": "BIGINT", "text": "TEXT", "boolean": "BOOLEAN", "date": "DATE", "timestamp": "TIMESTAMPNTZ"}


def probe_sql(spelled: Sequence[str | None], column: Column, source: SqlSource, dialect: Dialect) -> str:
    """The strict codes of entries that are spelled here, in their order: no row of the relation is read."""
    kept = "DECIMAL" if source.digits is None else f"DECIMAL({_LONGEST_DECIMAL}, {source.digits})"
    kind = _TYPES.get(source.kind, "TIMESTAMPTZ" if source.kind == "zoned" else kept)
    lines = [
        exp.select(
            exp.cast(exp.Null() if each is None else _words(each), kind).as_("entry"), _number(place).as_("place")
        )
        for place, each in enumerate(spelled)
    ]
    code = code_of(exp.column("entry"), column, source, dialect, strict=True)
    listed = exp.union(*lines, distinct=False, copy=False) if len(lines) > 1 else lines[0]
    return dialect.text(exp.select(code.as_("code")).from_(listed.subquery("entries")).order_by("place"))


def files_relation(patterns: Sequence[str], staged: Mapping[str, str] | None) -> exp.Expression:
    """The rows of Parquet files, in DuckDB; staged: the columns of the files, by the names that they get."""
    files = exp.Array(expressions=[*map(_words, patterns)])
    # The name of a folder is no column, and columns are found by their names.
    options = [exp.EQ(this=exp.var("hive_partitioning"), expression=exp.false())]
    options += [exp.EQ(this=exp.var("union_by_name"), expression=exp.true())]
    rows = exp.Table(this=_call("read_parquet", files, *options))
    if staged is None:
        return rows
    renamed = [exp.column(place, quoted=True).as_(name, quoted=True) for name, place in staged.items()]
    return exp.select(*renamed).from_(rows).subquery("staged")


# Dialects.


def _whole_quotient(top: exp.Expression, under: exp.Expression) -> exp.Expression:
    return exp.paren(exp.Div(this=top, expression=under, typed=True, safe=False))


def _exact_quotient(top: exp.Expression, under: exp.Expression) -> exp.Expression:
    """Where a quotient is rounded to a few digits: of a multiple it is exact."""
    rest = exp.Mod(this=top.copy(), expression=under.copy())
    return _whole(exp.paren(exp.Div(this=_operation(exp.Sub, top, rest), expression=under, typed=True, safe=False)))


def _days_of(days: exp.Expression, first: int) -> exp.Expression:
    return _minus(_operation(exp.Mul, _whole(days), _number(calendar.DAY)), first)


def _duckdb_above(entry: exp.Expression, source: SqlSource, first: int) -> exp.Expression:
    if source.kind == "date":
        return _days_of(_call("DATE_DIFF", _words("day"), _moment(0, "date"), entry), first)
    micros = _minus(_call("EPOCH_US", entry), first * 10**6)
    return _operation(exp.IntDiv, micros, _number(10**6))


def _postgres_above(entry: exp.Expression, source: SqlSource, first: int) -> exp.Expression:
    if source.kind == "date":
        return _days_of(_operation(exp.Sub, entry, _moment(0, "date")), first)
    seconds = exp.Floor(this=exp.Extract(this=exp.var("EPOCH"), expression=entry))
    return _minus(_whole(seconds), first)


def _bigquery_above(entry: exp.Expression, source: SqlSource, first: int) -> exp.Expression:
    if source.kind == "date":
        return _days_of(_call("UNIX_DATE", entry), first)
    if source.kind == "zoned":
        return _minus(_call("UNIX_SECONDS", entry), first)
    return _minus(_call("DATETIME_DIFF", entry, _moment(0, "timestamp"), exp.var("SECOND")), first)


def _counted_above(days: str, seconds: str) -> Callable[[exp.Expression, SqlSource, int], exp.Expression]:
    """Boundaries that were crossed since 1970, which is one: rounded down."""

    def above(entry: exp.Expression, source: SqlSource, first: int) -> exp.Expression:
        if source.kind == "date":
            return _days_of(_call(days, exp.var("DAY"), _moment(0, "date"), entry), first)
        return _minus(_call(seconds, exp.var("SECOND"), _moment(0, "timestamp"), entry), first)

    return above


def _tsql_same(entry: exp.Expression, level: str) -> exp.Expression:
    """A binary collation, and the length in bytes: SQL Server ignores spaces at the end in any collation."""
    binary = exp.Collate(this=entry, expression=exp.var("Latin1_General_BIN2"))
    size = _call("DATALENGTH", exp.cast(entry.copy(), exp.DataType.build("NVARCHAR(MAX)", dialect="tsql")))
    equal = exp.EQ(this=binary, expression=exp.National(this=level))
    return _operation(exp.And, equal, exp.EQ(this=size, expression=_number(len(level.encode("utf-16-le")))))


def _c_collation(entry: exp.Expression) -> exp.Expression:
    return exp.paren(exp.Collate(this=exp.cast(entry, "TEXT"), expression=exp.to_identifier("C", quoted=True)))


def _extracted(name: str, entry: exp.Expression) -> exp.Expression:
    return exp.Extract(this=exp.var(name), expression=entry)


_DUCKDB_WORDS = WordSpeech(
    "CAST({0} AS UBIGINT)",
    "CAST((CAST({0} AS UHUGEINT) {1} '{2}'::UHUGEINT) & '18446744073709551615'::UHUGEINT AS UBIGINT)",
    *("XOR({0}, {1})", "({0} >> {1})", "CAST('{0}' AS UBIGINT)", "{0}"),
)
# Signed integers of the same bits: a decimal is taken modulo 2^64 from -2^63 on.
_SIGNED = "CAST(MOD(MOD({} + 2^63, 2^64) + 2^64, 2^64) - 2^63 AS BIGINT)".replace("2^63", str(2**63))
_SIGNED = _SIGNED.replace("2^64", str(2**64))
_POSTGRES_WORDS = WordSpeech(
    "CAST({0} AS BIGINT)",
    _SIGNED.format("CAST({0} AS DECIMAL) {1} {2}"),
    *("({0} # {1})", "(({0} >> {1}) & {2})", _SIGNED.format("{0}"), "({0} # CAST('-9223372036854775808' AS BIGINT))"),
)
_EVERY_KIND = ("whole", "decimal", "text", "boolean", "date", "timestamp", "zoned")
DIALECTS = {
    "duckdb": Dialect(
        "duckdb",
        lambda entry, level: exp.EQ(this=_c_collation(entry), expression=_words(level)),
        lambda top, under: _operation(exp.IntDiv, top, under),
        _duckdb_above,
        lambda entry, source: _call("MAKE_TIMESTAMP", _call("EPOCH_US", entry)) if source.kind == "zoned" else entry,
        cut=lambda entry, length: _c_collation(_call("LEFT", exp.cast(entry, "TEXT"), _number(length))),
        kinds=_EVERY_KIND,
        words=_DUCKDB_WORDS,
    ),
    "postgres": Dialect(
        "postgres",
        lambda entry, level: exp.EQ(this=_c_collation(entry), expression=_words(level)),
        _whole_quotient,
        _postgres_above,
        lambda entry, source: (
            exp.paren(exp.AtTimeZone(this=entry, zone=_words("UTC"))) if source.kind == "zoned" else entry
        ),
        _extracted,
        lambda entry, length: _c_collation(_call("LEFT", exp.cast(entry, "TEXT"), _number(length))),
        kinds=_EVERY_KIND,
        words=_POSTGRES_WORDS,
    ),
    "bigquery": Dialect(
        "bigquery",
        lambda entry, level: exp.EQ(this=exp.cast(entry, "VARBINARY"), expression=exp.cast(_words(level), "VARBINARY")),
        lambda top, under: _call("DIV", top, under),
        _bigquery_above,
        lambda entry, source: _call("DATETIME", entry, _words("UTC")) if source.kind == "zoned" else entry,
        _extracted,
        kinds=_EVERY_KIND,
    ),
    "snowflake": Dialect(
        "snowflake",
        lambda entry, level: exp.EQ(
            this=_call("TO_BINARY", entry, _words("UTF-8")),
            expression=_call("TO_BINARY", _words(level.encode().hex().upper()), _words("HEX")),
        ),
        _exact_quotient,
        _counted_above("DATEDIFF", "DATEDIFF"),
    ),
    "tsql": Dialect(
        "tsql",
        _tsql_same,
        _whole_quotient,
        _counted_above("DATEDIFF", "DATEDIFF_BIG"),
        truth=lambda entry: exp.EQ(this=entry, expression=_number(1)),
    ),
}
"""The databases whose SQL is written, by sqlglot's names."""
