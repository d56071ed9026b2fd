"""What names and numbers mean in a question, and conditions in SQL as predicates: what follows WHERE.

SQL's logic has three values: a comparison with a missing value is neither true nor false, and so is its negation.
Predicates have two. So a condition is translated twice over, as "is true" and as "is false":

    true(a AND b) = true(a) and true(b)        false(a AND b) = false(a) or false(b)        and dually for OR
    true(NOT a)   = false(a)                   false(NOT a)   = true(a)
    true(x < v)   = x is one of the grid's values below v
    false(x < v)  = x is one of the grid's values from v on: a missing x is in neither
    true(x = v)   = Equals                     false(x = v)   = not Equals and not Missing
    true(x IS NULL) = Missing                  false(x IS NULL) = not Missing

Every value must be one of the column's: on its grid, or a declared level. Nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

from discreet.data import Column, Number, near_misses, spell
from discreet.errors import ParameterError
from discreet.query import Among, And, Between, Equals, Missing, Not, Or, Predicate
from discreet.sql.parser import Node, position
from discreet.sql.source import PLAIN, Source, character, folded, shown

_ORDERS = ("LT", "LTE", "GT", "GTE")
_MIRRORED = {"EQ": "EQ", "NEQ": "NEQ", "LT": "GT", "LTE": "GTE", "GT": "LT", "GTE": "LTE"}
_OPERANDS = ("Column", "Literal", "Neg", "Boolean", "Null")
_SIGNS = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_IN_WORDS = {
    ("Count", "expressions"): "counting several columns",
    ("Table", "db"): "a schema before the table's name",
    ("Column", "db"): "a schema before the column's name",
}
_LONGEST = 60  # characters of a name that are compared with the declared ones
_NAMED = 10  # declared columns that a hint names


@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean in a question: its columns, and the name that may stand before them."""

    asked: Source
    qualifier: str

    @staticmethod
    def of(asked: Source, root: Node) -> Scope:
        """With the table after FROM, which must be the one that is asked about, or with its alias."""
        plain = Scope(asked, asked.table)
        if root.args.get("from_") is None:
            plain.refuse(root, "the question names no table", f"Write FROM {asked.table}.")
        table = root.args["from_"].this
        if type(table).__name__ != "Table" or type(table.this).__name__ != "Identifier":
            plain.refuse(table, "one table is expected after FROM", f"The table is {shown(asked.table)}.")
        plain.only(table, "this", "alias")
        if folded(table.this.this) != folded(asked.table):
            plain.refuse(table, f"there is no table {shown(table.this.this)}", f"The table is {shown(asked.table)}.")
        alias = table.args.get("alias")
        if alias is None:
            return plain
        plain.only(alias, "this")
        plain.check_alias(alias.this, None)
        return Scope(asked, alias.this.this)

    def refuse(self, node: Node, reason: str, hint: str) -> NoReturn:
        raise self.asked.refused(position(node), reason, hint)

    def only(self, node: Node, *parts: str) -> None:
        """Nothing but these parts is in a node."""
        for part, value in node.args.items():
            if part not in parts and value is not None and value is not False and value != []:
                what = _IN_WORDS.get((type(node).__name__, part), f"this part of SQL ({type(node).__name__}, {part})")
                self.refuse(node, f"{what} is not answered", self.asked.example)

    def check_alias(self, alias: Node, own: str | None) -> None:
        """A new name must not be the name of another column: answers carry the columns' own names."""
        if self.asked.declared(alias.this) not in (None, own):
            self.refuse(alias, f"the new name {shown(alias.this)} is also the name of a column", "Choose another name.")

    def column(self, node: Node) -> tuple[str, Column]:
        """The declared column that a node names; of another an odd character is named, or declared names near it."""
        declared = self.asked.domain.names
        if type(node).__name__ != "Column" or type(node.this).__name__ != "Identifier":
            self.refuse(node, "a column is expected here", f"Columns: {', '.join(declared)}.")
        self.only(node, "this", "table")
        if node.args.get("table") is not None and folded(node.args["table"].this) != folded(self.qualifier):
            reason = f"{shown(node.args['table'].this)} is not the table"
            self.refuse(node, reason, f"Before a column may stand {shown(self.qualifier)}, or nothing.")
        written, name = node.this.this, self.asked.declared(node.this.this)
        if name is not None:
            return name, self.asked.domain.column(name)
        strange = next((sign for sign in written if not sign.isascii()), None)
        if strange is not None:
            hint = f"Declared: {', '.join(map(ascii, declared[:_NAMED]))}."
            self.refuse(node, f"{shown(written)} is not a declared column; it holds {character(strange)}", hint)
        more = ", ..." if len(declared) > _NAMED else ""
        listed = f"Declared: {', '.join(map(shown, declared[:_NAMED]))}{more}."
        near = near_misses(written[:_LONGEST], declared).strip()
        self.refuse(node, f"column {shown(written)} is not declared", near or listed)


def number(scope: Scope, node: Node) -> Fraction:
    """A literal number, exactly."""
    if type(node).__name__ == "Neg" and type(node.this).__name__ == "Literal" and not node.this.is_string:
        return -Fraction(node.this.this)
    if type(node).__name__ != "Literal" or node.is_string:
        scope.refuse(node, "a number is expected here", "Numbers are plain decimals such as 3, -0.25 or 1e3.")
    return Fraction(node.this)


def condition(scope: Scope, node: Node, *, wanted: bool = True) -> Predicate:
    """The predicate that holds exactly where the condition is true (or, not wanted, where it is false)."""
    kind = type(node).__name__
    if kind == "Paren":
        return condition(scope, node.this, wanted=wanted)
    if kind == "Not":
        return condition(scope, node.this, wanted=not wanted)
    if kind in ("And", "Or"):
        chain, first = [], node
        while type(first) is type(node):  # the parser nests long chains to the left
            chain.append(first.expression)
            first = first.this
        parts = [condition(scope, part, wanted=wanted) for part in (first, *reversed(chain))]
        return combined(And if (kind == "And") == wanted else Or, parts)
    atom = _ATOMS.get(kind)
    if atom is None:
        scope.refuse(node, "this is no condition on a column", PLAIN)
    return atom(scope, node, wanted)


def combined(word: type[And] | type[Or], parts: Iterable[Predicate]) -> Predicate:
    """The parts joined by And or Or, without repetition, and by nothing when there is one part."""
    other = Or if word is And else And
    flat = [inner for part in parts for inner in (part.inner if type(part) is word else (part,))]
    if other() in flat:
        return other()
    kept = tuple(dict.fromkeys(flat))
    return kept[0] if len(kept) == 1 else word(*kept)


def present(name: str, column: Column) -> Predicate:
    """The column has a value."""
    return And() if column.missing_code is None else Not(Missing(name))


def span(name: str, column: Number, first: int, last: int) -> Predicate:
    """The column has one of the codes first .. last."""
    if first > last:
        return Or()
    low, high = column.value(first), column.value(last)
    return Equals(name, low) if first == last else Between(name, low, high)


def comparison(scope: Scope, node: Node, wanted: bool) -> Predicate:
    scope.only(node, "this", "expression")
    kind, left, right = type(node).__name__, node.this.unnest(), node.expression.unnest()
    if not {type(left).__name__, type(right).__name__} <= set(_OPERANDS):
        scope.refuse(node, "comparing anything but a column and a value is not answered", PLAIN)
    if type(left).__name__ != "Column":
        kind, left, right = _MIRRORED[kind], right, left
    if type(left).__name__ != "Column":
        scope.refuse(node, "a condition without a column is not answered", PLAIN)
    if type(right).__name__ == "Column":
        if scope.asked.declared(right.name) is None:
            scope.refuse(right, f"{shown(right.name)} is not a column", "Texts are written in single quotes: 'F'.")
        scope.refuse(node, "comparing two columns is not answered", PLAIN)
    name, column = scope.column(left)
    if kind in _ORDERS:
        if column.categorical:
            reason = f"column {name!r} has no order, so {_SIGNS[kind]} is not answered"
            scope.refuse(node, reason, f"List the levels that are meant: {name} IN (...).")
        code = _value(scope, right, name, column)[0]
        assert column.bounded  # or its value would have been refused
        below, cut = kind in ("LT", "LTE"), code + (kind in ("LTE", "GT"))  # the codes below cut, or those from cut on
        return span(name, column, 0, cut - 1) if below == wanted else span(name, column, cut, column.steps)
    equal = Equals(name, _value(scope, right, name, column)[1])
    return _either(name, column, equal, wanted == (kind == "EQ"))


def between(scope: Scope, node: Node, wanted: bool) -> Predicate:
    scope.only(node, "this", "low", "high")
    name, column = scope.column(node.this)
    if not column.bounded:
        scope.refuse(node, f"column {name!r} has no order, so BETWEEN is not answered", f"Use {name} IN (...).")
    first, last = (_value(scope, node.args[each], name, column)[0] for each in ("low", "high"))
    inside = span(name, column, first, last)
    if inside == Or() and not wanted:
        return span(name, column, 0, column.steps)
    return _either(name, column, inside, wanted)


def membership(scope: Scope, node: Node, wanted: bool) -> Predicate:
    scope.only(node, "this", "expressions")
    name, column = scope.column(node.this)
    if not node.expressions:
        scope.refuse(node, "an empty list after IN is not answered", f"Name at least one value: {name} IN (...).")
    found = dict(_value(scope, each, name, column) for each in node.expressions)
    values = [found[code] for code in sorted(found)]
    return _either(name, column, Equals(name, values[0]) if len(values) == 1 else Among(name, values), wanted)


def is_test(scope: Scope, node: Node, wanted: bool) -> Predicate:
    scope.only(node, "this", "expression")
    name, column = scope.column(node.this)
    what = type(node.expression).__name__
    if what == "Boolean":
        _check_boolean(scope, node, name, column)
        truth = Equals(name, bool(node.expression.this))
        return truth if wanted else Not(truth)
    if what != "Null":
        scope.refuse(node, "IS is answered before NULL, TRUE and FALSE only", PLAIN)
    if column.missing_code is None:
        reason = f"no missing values are declared for column {name!r}, so this condition is the same for every row"
        scope.refuse(node, reason, "Leave it out.")
    return Missing(name) if wanted else Not(Missing(name))


def bare_column(scope: Scope, node: Node, wanted: bool) -> Predicate:
    name, column = scope.column(node)
    _check_boolean(scope, node, name, column)
    return Equals(name, wanted)


def _check_boolean(scope: Scope, node: Node, name: str, column: Column) -> None:
    levels = column.levels if column.categorical else ()
    values = [type(level) for code, level in enumerate(levels) if code != column.missing_code]
    if values != [bool, bool]:
        scope.refuse(node, f"column {name!r} is not declared TRUE and FALSE, so it is no condition by itself", PLAIN)


def _either(name: str, column: Column, true: Predicate, wanted: bool) -> Predicate:
    return true if wanted else combined(And, [Not(true), present(name, column)])


def _value(scope: Scope, node: Node, name: str, column: Column) -> tuple[int, Any]:
    """The code of a literal and the column's own value of that code."""
    if not column.listed:
        hint = "Declare its bounds: Number(low, high, step)." if column.ordered else "Leave it out."
        scope.refuse(node, f"column {name!r} is declared {column!r}: no value of it can be asked for", hint)
    kind = type(node).__name__
    if kind == "Null":
        scope.refuse(node, "a comparison with NULL is never true", f"Write {name} IS NULL, or IS NOT NULL.")
    quoted, literal = kind == "Literal" and node.is_string, node.this
    if not quoted:
        literal = bool(literal) if kind == "Boolean" else number(scope, node)
    if column.bounded:
        if type(literal) is not Fraction:
            reason = f"column {name!r} holds numbers, found {shown(str(literal))}"
            scope.refuse(node, reason, "Write numbers without quotes.")
        try:
            code = column.code(literal)
        except ParameterError as error:
            scope.refuse(node, f"column {name!r}: {error}", "Nothing is rounded: ask with a value on the grid.")
        return code, column.value(code)
    declared = "Ask with a declared level, spelled as it is declared."
    if column.other is not None:
        declared = f"Values that are not declared are counted as {shown(str(column.other))}."
    written = f"-{node.this.this}" if kind == "Neg" else str(node.this)
    texts = [level for level in column.levels if type(level) is str and level.lower() == written.lower()]
    meant = not quoted and bool(texts)
    if meant:  # a level that is a text, written as a number
        declared = f"Its levels are texts, which are written in quotes: {shown(texts[0])}."
    if type(literal) is Fraction and literal.denominator != 1:
        scope.refuse(node, f"column {name!r}: {spell(literal)} is not a declared level", declared)
    level = int(literal) if type(literal) is Fraction else literal
    (code_found,) = column.codes([level])
    if code_found is None:
        near = near_misses(level, column.levels).strip() or f"Declared: {column!r}."
        hint = declared if meant else f"{near} {declared}"
        scope.refuse(node, f"column {name!r}: {level!r} is not a declared level", hint)
    if code_found == column.missing_code:
        reason = f"column {name!r}: {shown(str(level))} stands for missing values"
        scope.refuse(node, reason, f"Write {name} IS NULL, or IS NOT NULL.")
    return code_found, column.value(code_found)


_ATOMS: dict[str, Callable[[Scope, Node, bool], Predicate]] = {
    **dict.fromkeys(_MIRRORED, comparison),
    "Between": between,
    "In": membership,
    "Is": is_test,
    "Column": bare_column,
}
