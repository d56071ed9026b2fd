"""From a question's words to one syntax tree, by a grammar that has no other sentences than those that are understood.

    question    [WITH name AS (select), ...] select [UNION ALL select ...]
    select      SELECT [TOP n] item, ... FROM table [WHERE condition] [GROUP BY ...] [HAVING condition]
                [QUALIFY condition] [ORDER BY ...] [LIMIT n] [OFFSET n] [FETCH FIRST n ROWS ONLY]
                GROUP BY may say ROLLUP (...), CUBE (...) and GROUPING SETS (...)
    table       name [[AS] name] | (select) [AS] name | table JOIN table USING (column) | table JOIN table ON a = b
                | table NATURAL JOIN table | table, table
    expression  OR < AND < NOT < comparison, IS, IN, BETWEEN, LIKE < || < + - < * / // % < minus < :: < value
    value       literal | [table.]name | call [OVER (...)] | CASE ... END | (expression) | (select) | DATE 'text'
                | INTERVAL ... | EXISTS (select)

Every word of the text is part of the tree or the question is refused; nothing is skipped and nothing is filled in.
What the tree means is decided elsewhere, again over a list. Nothing here, or there, executes anything.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NoReturn, TypeVar

from discreet.sql.source import JOINS, RESERVED, SAME, WINDOWS, Source, folded, is_word, shown
from discreet.sql.tokens import MAX_DEPTH, Piece, pieces

MAX_CHAIN = 64
"""Operators of arithmetic in one row: a tree of them is as deep as they are many."""

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
_TRUTHS = ("NULL", "TRUE", "FALSE")


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a question: its kind, where it begins, its parts, and what else it says.

    name (qualifier, name)  number  text  boolean  null  date  star  interval (count, unit)
    call (NAME, distinct)   filter: the call and its condition   within: the call and the column, value DESC
    over: the call, what the groups are parted by, what they are ordered by; value (parts, orderings, frame)
    select, exists: a whole question, as value     among (not, question): a name that is IN it
    case (operand?, else?): [operand,] condition, value, ... [, else]     cast: type
    = <> < <= > >= + - * / // % ||  minus  not  and  or
    between (not)  in (not)  like (not, ignoring case)  is (not, NULL | TRUE | FALSE)
    """

    kind: str
    start: int
    parts: tuple[Node, ...] = ()
    value: Any = None

    def walk(self) -> Iterator[Node]:
        """This node and all below it."""
        yield self
        for part in self.parts:
            yield from part.walk()


@dataclass(frozen=True, slots=True)
class Item:
    """Something selected, and the name that it is given."""

    node: Node
    alias: str | None
    start: int


@dataclass(frozen=True, slots=True)
class Ordering:
    """Something to sort by: downwards, and whether missing values come first (None: as usual, last)."""

    node: Node
    descending: bool
    nulls_first: bool | None


@dataclass(frozen=True, slots=True)
class From:
    """A table, a question in brackets, or a join of two of them on equal columns.

    kind  of a join: "inner", "left", "right"; "natural", "comma": it does not say on which columns
    """

    start: int
    name: str | None = None
    query: SelectQuery | None = None
    alias: str | None = None
    joined: tuple[From, From] | None = None
    using: tuple[str, ...] = ()
    on: Node | None = None
    kind: str = "inner"


@dataclass(frozen=True, slots=True)
class SelectQuery:
    """One SELECT; distinct: where that word stands; sets: the groupings that it makes, if these are several; below: the
    SELECTs of a UNION ALL whose rows come after its own."""

    start: int
    items: tuple[Item, ...]
    source: From
    where: Node | None = None
    group: tuple[Node, ...] | None = None
    having: Node | None = None
    order: tuple[Ordering, ...] = ()
    limit: int | None = None
    offset: int = 0
    qualify: Node | None = None
    distinct: int | None = None
    named: dict[str, SelectQuery] = field(default_factory=dict)
    sets: tuple[tuple[Node, ...], ...] = ()
    below: tuple[SelectQuery, ...] = ()

    @property
    def aliases(self) -> dict[str, Node]:
        """What the new names of the select list stand for."""
        return {folded(item.alias): item.node for item in self.items if item.alias is not None}


def conjuncts(node: Node | None) -> tuple[Node, ...]:
    """The conditions that AND joins to this one."""
    return () if node is None else node.parts if node.kind == "and" else (node,)


def conjunction(nodes: Sequence[Node]) -> Node | None:
    """The condition that all of these hold."""
    if len(nodes) < 2:
        return nodes[0] if nodes else None
    return Node("and", nodes[0].start, tuple(nodes))


Part = TypeVar("Part")
Rewrite = Callable[[Source, Node], Node]

MAX_SETS = 32
"""Groupings of one question."""


def _groupings(word: str, nodes: list[Node]) -> list[tuple[Node, ...]]:
    """What ROLLUP or CUBE of these stands for."""
    if word == "ROLLUP":
        return [tuple(nodes[:many]) for many in range(len(nodes), -1, -1)]
    sizes = range(min(len(nodes), 6), -1, -1)
    return [each for many in sizes for each in itertools.combinations(nodes, many)]


def tree(asked: Source, rewrite: Rewrite) -> SelectQuery:
    """The one SELECT that the text is, with calls that are read by `rewrite`."""
    reader = _Reader(asked, pieces(asked), rewrite)
    if not (reader.at("SELECT") or reader.at("WITH")):
        known = asked.not_answered(reader.here.start, reader.here.text) if reader.here.word else None
        raise known or asked.refused(0, "a question begins with SELECT", asked.example)
    found = reader.question()
    if reader.here.kind != "end":
        reader.wrong()
    return found


class _Reader:
    """Reads the pieces from left to right.

    rewrite  what a call of another dialect means
    """

    def __init__(self, asked: Source, found: list[Piece], rewrite: Rewrite) -> None:
        self.asked, self.pieces, self.place, self.depth, self.rewrite = asked, found, 0, 0, rewrite

    # One piece.

    @property
    def here(self) -> Piece:
        return self.pieces[self.place]

    def next_is(self, *kinds: str, ahead: int = 1) -> bool:
        piece = self.pieces[min(self.place + ahead, len(self.pieces) - 1)]
        return piece.kind in kinds or piece.word in kinds

    def at(self, *kinds: str) -> bool:
        """Whether this word or sign is here."""
        return bool(kinds) and (self.here.kind in kinds or (self.here.kind == "word" and self.here.word in kinds))

    def take(self, *kinds: str) -> Piece | None:
        """This word or sign, if it is here."""
        if not self.at(*kinds):
            return None
        self.place += 1
        return self.pieces[self.place - 1]

    def need(self, kind: str, reason: str = "", hint: str = "") -> Piece:
        found = self.take(kind)
        if found is None:
            self.wrong(reason, hint)
        return found

    def several(self, part: Callable[[], Part], *marks: str) -> list[Part]:
        """Parts with commas between them, or with these words."""
        found = [part()]
        while self.take(",", *marks):
            found.append(part())
        return found

    def wrong(self, reason: str = "", hint: str = "") -> NoReturn:
        """The question goes wrong here; what is known of the word or the sign here is said first."""
        piece = self.here
        if piece.kind not in ("name", "text", "number", "end") and (piece.word or not reason):
            known = self.asked.not_answered(piece.start, piece.text)
            if known is not None:
                raise known
        said = reason or "the question breaks off or goes wrong here"
        self.refuse(piece.start, said, hint or self.asked.example)

    def refuse(self, start: int, reason: str, hint: str) -> NoReturn:
        raise self.asked.refused(start, reason, hint)

    @contextmanager
    def deeper(self, start: int) -> Iterator[None]:
        """What is read inside is nested one deeper."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.asked.too_deep(start, MAX_DEPTH)
        yield
        self.depth -= 1

    # Statements.

    def question(self) -> SelectQuery:
        named: dict[str, SelectQuery] = {}
        if self.take("WITH"):
            if self.at("RECURSIVE"):
                self.wrong()
            while True:
                start = self.here.start
                name = self.name("a name is expected after WITH")
                self.need("AS")
                self.need("(")
                if name.lower() in map(str.lower, named):
                    self.refuse(start, f"{shown(name)} is defined twice", "Choose another name.")
                named[name] = self.inner(start)
                if not self.take(","):
                    break
        found, below = self.select(), list[SelectQuery]()
        while self.at("UNION") and self.next_is("ALL"):
            self.place += 2
            below.append(self.select())
        last = below[-1] if below else found
        if any(each.order or each.limit is not None or each.offset for each in (found, *below) if each is not last):
            self.refuse(last.start, "ORDER BY and LIMIT stand after the last SELECT", "Move them there.")
        found = replace(found, order=last.order, limit=last.limit, offset=last.offset)
        return replace(found, named=named, below=tuple(below))

    def inner(self, start: int) -> SelectQuery:
        """A SELECT in brackets, of which the first was read."""
        with self.deeper(start):
            if not self.at("SELECT"):
                self.wrong()
            found = self.select()
            self.need(")")
        return found

    def select(self) -> SelectQuery:
        start = self.need("SELECT").start
        distinct = self.here.start if self.at("DISTINCT") and not self.next_is(",", ".") else None
        self.place += distinct is not None
        top = self.top()
        items = self.several(self.item)
        inner = next((each.value for item in items for each in item.node.walk() if each.kind == "select"), None)
        if inner is not None and self.at("end", ")"):  # one row of numbers in brackets
            return SelectQuery(start, tuple(items), inner.source, limit=1, distinct=distinct)
        if not self.at("FROM"):
            self.wrong(
                "the question names no table" if self.here.kind == "end" else "", f"Write FROM {self.asked.table}."
            )
        self.take("FROM")
        source = self.source()
        where = self.expression() if self.take("WHERE") else None
        group, sets = self.groups() if self.at("GROUP") else (None, ())
        having = self.expression() if self.take("HAVING") else None
        qualify = self.expression() if self.take("QUALIFY") else None
        order = self.orderings() if self.at("ORDER") else ()
        limit = self.whole("LIMIT") if top is None and self.take("LIMIT") else top
        offset = self.whole("OFFSET") if self.take("OFFSET") else 0
        self.take("ROWS", "ROW") if offset else None
        if limit is None and self.take("FETCH"):
            limit = self.fetched()
        late = {"FROM", "WHERE", "GROUP", "HAVING"} & {self.here.word}
        if late:
            hint = "The order is SELECT, FROM, WHERE, GROUP BY, HAVING, ORDER BY, LIMIT, each once."
            self.refuse(self.here.start, f"a second or late {self.here.word} is not answered", hint)
        rest = (where, group, having, tuple(order), limit, offset, qualify, distinct)
        return SelectQuery(start, tuple(items), source, *rest, sets=sets)

    def top(self) -> int | None:
        """TOP n, or TOP (n)."""
        bracket = self.next_is("(") and self.next_is("number", ahead=2)
        if not self.at("TOP") or self.asked.declared("top") or not (bracket or self.next_is("number")):
            return None
        self.place += 1 + bracket
        found = self.whole("TOP")
        if bracket:
            self.need(")")
        if self.at("PERCENT", "WITH"):
            self.wrong("only a whole number of groups is chosen by TOP", "For example SELECT TOP 5 a, COUNT(*).")
        return found

    def fetched(self) -> int:
        """FETCH FIRST n ROWS ONLY, of which the first word was read."""
        example = "For example FETCH FIRST 5 ROWS ONLY."
        if not self.take("FIRST", "NEXT"):
            self.wrong("FETCH stands before FIRST or NEXT", example)
        found = self.whole("FETCH FIRST")
        if not (self.take("ROWS", "ROW") and self.take("ONLY")):
            self.wrong("FETCH ends with ROWS ONLY", example)
        return found

    def item(self) -> Item:
        start = self.here.start
        if self.at("*"):
            self.place += 1
            return Item(Node("star", start), None, start)
        node = self.expression()
        return Item(node, self.alias(), start)

    def alias(self) -> str | None:
        """[AS] name, if it is there."""
        if self.take("AS"):
            if self.here.kind == "word" and self.here.word in RESERVED and not self.asked.declared(self.here.text):
                self.refuse(
                    self.here.start,
                    f"{shown(self.here.text)} is a word of SQL",
                    "Write the new name in double quotes.",
                )
            if self.here.kind == "text" and self.here.text:
                self.place += 1
                return self.pieces[self.place - 1].text
            return self.name(
                "AS stands before a new name", 'For example COUNT(*) AS total; odd names are quoted: "a b".'
            )
        if self.here.kind == "name" or (self.here.kind == "word" and not is_word(self.here.text)):
            return self.name("")
        return None

    def name(self, reason: str, hint: str = "") -> str:
        if self.here.kind not in ("name", "word"):
            self.wrong(reason, hint)
        self.place += 1
        return self.pieces[self.place - 1].text

    def whole(self, word: str) -> int:
        found = self.need("number", f"{word} stands before a whole number", f"For example {word} 5.")
        if Fraction(found.text).denominator != 1:
            self.refuse(found.start, f"{word} stands before a whole number", f"For example {word} 5.")
        return int(Fraction(found.text))

    def source(self) -> From:
        found = self.table()
        while self.at("JOIN", "INNER", "NATURAL", "LEFT", "RIGHT", ",") or (self.at("CROSS") and self.next_is("JOIN")):
            start, kind = self.here.start, "comma"
            if self.take("CROSS"):
                self.place += 1
            elif not self.take(","):
                kind = self.here.word.lower() if self.at("NATURAL", "LEFT", "RIGHT") else "inner"
                self.take("INNER", "NATURAL", "LEFT", "RIGHT")
                self.take("INNER" if kind == "natural" else "OUTER") if kind in ("natural", "left", "right") else None
                self.need("JOIN")
            right, using, on = self.table(), tuple[str, ...](), None
            if kind in ("comma", "natural"):
                found = From(start, joined=(found, right), kind=kind)
                continue
            if self.take("USING"):
                self.need("(")
                using = tuple(self.several(lambda: self.name("USING names a column")))
                self.need(")")
            elif self.take("ON"):
                on = self.expression()
            else:
                self.wrong("a join needs USING (column), or ON a.column = b.column", JOINS)
            found = From(start, joined=(found, right), using=using, on=on, kind=kind)
        return found

    def table(self) -> From:
        start = self.here.start
        if self.take("("):
            query = self.inner(start)
            return From(start, query=query, alias=self.alias())
        if self.here.kind not in ("name", "word") or (
            self.here.word in RESERVED and self.asked.tabled(self.here.text) is None
        ):
            self.wrong("one table is expected after FROM", f"The table is {shown(self.asked.table)}.")
        name = self.name("one table is expected after FROM")
        if self.at(".") and name.lower() in ("public", "dbo", "main"):
            self.place += 1
            name = self.name("one table is expected after FROM")
        if self.at("."):
            hint = f"Write FROM {self.asked.table}."
            self.refuse(start, "a schema before the table's name is not answered", hint)
        if self.asked.text[start] == "`" and self.asked.tabled(name) is None:  # `project.dataset.table`
            name = name.rpartition(".")[2]
        return From(start, name=name, alias=self.alias())

    def groups(self) -> tuple[tuple[Node, ...], tuple[tuple[Node, ...], ...]]:
        """What is grouped by; and the groupings, if there are several."""
        start = self.need("GROUP").start
        self.need("BY", "GROUP needs BY after it", "Write GROUP BY column.")
        if self.here.kind in ("end", ")"):
            self.refuse(start, "GROUP BY names no column", "Write GROUP BY column, or leave it out.")
        if self.at("ALL") and not self.asked.declared("all"):
            self.place += 1
            return (), ()
        found = self.several(self.grouped)
        if self.at("WITH") and self.next_is("ROLLUP", "CUBE"):
            every = [node for (nodes,) in found for node in nodes] if all(len(sets) == 1 for sets in found) else []
            found = [_groupings(self.pieces[self.place + 1].word, every)]
            self.place += 2
        if math.prod(map(len, found)) > MAX_SETS:
            self.refuse(start, f"more than {MAX_SETS} groupings at once are not answered", "Ask for less.")
        sets = [sum(each, ()) for each in itertools.product(*found)]
        every = list(dict.fromkeys(node for each in sets for node in each))
        return tuple(every), tuple(sets) if len(sets) > 1 or not every else ()

    def grouped(self) -> list[tuple[Node, ...]]:
        """One part of GROUP BY: the groupings that it makes."""
        word = self.here.word if self.next_is("(", "SETS") else ""
        if word in ("ROLLUP", "CUBE") or (word == "GROUPING" and self.next_is("SETS")):
            self.place += 1 + (word == "GROUPING")
            self.need("(")
            parts = self.several(self.grouping)
            self.need(")")
            return parts if word == "GROUPING" else _groupings(word, [node for part in parts for node in part])
        return [(self.expression(),)]

    def grouping(self) -> tuple[Node, ...]:
        """An expression, or several in brackets."""
        if not self.at("("):
            return (self.expression(),)
        self.place += 1
        found = list[Node]()
        while not self.at(")"):
            found.append(self.expression())
            if not self.take(","):
                break
        self.need(")")
        return tuple(found)

    def orderings(self) -> list[Ordering]:
        self.need("ORDER")
        self.need("BY", "ORDER needs BY after it", "Write ORDER BY column.")
        return self.several(self.ordering)

    def ordering(self) -> Ordering:
        node, descending, nulls = self.expression(), self.descending(), None
        if self.take("NULLS"):
            if not self.at("FIRST", "LAST"):
                self.wrong("NULLS stands before FIRST or LAST", "For example ORDER BY n DESC NULLS LAST.")
            nulls = self.take("FIRST") is not None
            if not nulls:
                self.take("LAST")
        return Ordering(node, descending, nulls)

    def descending(self) -> bool:
        """[ASC | DESC]."""
        return self.take("ASC", "DESC") is not None and self.pieces[self.place - 1].word == "DESC"

    # Expressions, from the weakest binding to the strongest.

    def expression(self) -> Node:
        return self.chained("OR", lambda: self.chained("AND", self.negated))

    def chained(self, word: str, part: Callable[[], Node]) -> Node:
        found = [part()]
        while self.take(word):
            found.append(part())
        return found[0] if len(found) == 1 else Node(word.lower(), found[0].start, tuple(found))

    def negated(self) -> Node:
        if not self.at("NOT"):
            return self.compared()
        start = self.here.start
        self.place += 1
        with self.deeper(start):
            return Node("not", start, (self.negated(),))

    def compared(self) -> Node:
        found = self.added()
        while True:
            if self.at(*COMPARISONS):
                sign = self.here.kind
                self.place += 1
                found = Node(sign, found.start, (found, self.added()))
                if self.at(*COMPARISONS):
                    self.wrong("comparisons in a row are not answered", "Join them by AND.")
                continue
            if self.at("IS"):
                self.place += 1
                against = self.take("NOT") is not None
                if self.at("DISTINCT") and self.next_is("FROM"):
                    self.place += 2
                    other = self.added()
                    same = Node("is", found.start, (Node("=", found.start, (found, other)),), (False, "TRUE"))
                    if other.kind not in ("number", "text", "boolean"):
                        nothing = tuple(Node("is", each.start, (each,), (False, "NULL")) for each in (found, other))
                        same = Node("or", found.start, (same, Node("and", found.start, nothing)))
                    found = same if against else Node("not", found.start, (same,))
                    continue
                if not self.at(*_TRUTHS):
                    self.wrong("IS is answered before NULL, TRUE and FALSE only", "Write column IS NULL.")
                found = Node("is", found.start, (found,), (against, self.here.word))
                self.place += 1
                continue
            against = self.at("NOT") and self.next_is("IN", "BETWEEN", "LIKE", "ILIKE")
            if self.at("NOT") and not against:
                hint = "Write column IS NOT NULL, column NOT IN (...), or NOT before a whole condition."
                self.refuse(self.here.start, "NOT is in the wrong place", hint)
            self.place += against
            if self.take("BETWEEN"):
                if self.at("SYMMETRIC", "ASYMMETRIC") and not self.asked.declared(self.here.text):
                    self.wrong()
                low = self.added()
                self.need("AND", "BETWEEN needs two values with AND between them", "For example age BETWEEN 1 AND 3.")
                found = Node("between", found.start, (found, low, self.added()), against)
            elif self.take("IN"):
                found = self.listed(found, against)
            elif self.at("LIKE", "ILIKE"):
                loose = self.here.word == "ILIKE"
                self.place += 1
                parts = [found, self.added()]
                if self.take("ESCAPE"):
                    example = "For example LIKE '5!%' ESCAPE '!'."
                    escape = self.need("text", "ESCAPE stands before one sign in quotes", example)
                    parts.append(Node("text", escape.start, (), escape.text))
                found = Node("like", found.start, tuple(parts), (against, loose))
            else:
                return found

    def listed(self, found: Node, against: bool) -> Node:
        self.need("(", "IN needs a list of values in brackets", "For example age IN (1, 2, 3).")
        if self.at("SELECT"):
            return Node("among", self.here.start, (found,), (against, self.inner(self.here.start)))
        if self.at(")"):
            self.refuse(found.start, "an empty list after IN is not answered", "Name at least one value.")
        values = self.several(self.added)
        self.need(")")
        return Node("in", found.start, (found, *values), against)

    def added(self) -> Node:
        product = functools.partial(self.row_of, ("*", "/", "//", "%", "DIV"), self.signed)
        return self.row_of(("||",), lambda: self.row_of(("+", "-"), product))

    def row_of(self, signs: tuple[str, ...], part: Callable[[], Node]) -> Node:
        found, many = part(), 0
        while self.at(*signs):
            sign, start = "//" if self.here.word == "DIV" else self.here.kind, self.here.start
            self.place += 1
            many += 1
            if many > MAX_CHAIN:
                self.refuse(start, f"more than {MAX_CHAIN} operators in a row are not read", "Ask for less.")
            found = Node(sign, found.start, (found, part()))
        return found

    def signed(self) -> Node:
        minus = self.take("-")
        if minus is None:
            if self.next_is("number"):
                self.take("+")
            return self.cast()
        with self.deeper(minus.start):
            return Node("minus", minus.start, (self.signed(),))

    def cast(self) -> Node:
        found = self.value()
        while self.take("::"):
            found = Node("cast", found.start, (found,), self.type_name())
        return found

    def type_name(self) -> str:
        found = self.need("word", "a type is expected here", "For example DOUBLE or DATE.")
        if found.word == "DOUBLE":
            self.take("PRECISION")
        if self.take("("):
            self.need("number")
            if self.take(","):
                self.need("number")
            self.need(")")
        return found.word

    def value(self) -> Node:
        piece = self.here
        if piece.kind in ("number", "text"):
            self.place += 1
            return Node(piece.kind, piece.start, (), Fraction(piece.text) if piece.kind == "number" else piece.text)
        if piece.kind == "(":
            return self.bracketed()
        if piece.kind == "name" or (piece.kind == "word" and not self.special(piece)):
            return self.named()
        self.place += 1
        match piece.word:
            case "NULL":
                return Node("null", piece.start)
            case "TRUE" | "FALSE":
                return Node("boolean", piece.start, (), piece.word == "TRUE")
            case "CASE":
                return self.case(piece.start)
            case "DATE" | "TIMESTAMP":
                text = self.need("text").text  # of DATE '2024-01-31 12:30' the time of day is cut off
                return Node("date", piece.start, (), text[:10] if piece.word == "DATE" else text)
            case "INTERVAL":
                return self.interval(piece.start)
            case "EXISTS":
                self.need("(")
                return Node("exists", piece.start, (), self.inner(piece.start))
        self.place -= 1
        if piece.kind == ".":
            self.wrong("a point is allowed only in numbers and in table.column", "Write 0.5, not .5")
        if piece.kind == "*":
            known = self.asked.not_answered(piece.start, "*")
            raise known or self.asked.refused(piece.start, "* is not read here", self.asked.example)
        self.wrong()

    def special(self, piece: Piece) -> bool:
        """Whether a word is not a name here: it is one of SQL's own, or begins a literal."""
        if piece.word in ("DATE", "TIMESTAMP"):
            return self.next_is("text")
        if piece.word == "INTERVAL":
            return self.next_is("text", "number")
        if piece.word == "EXISTS":
            return self.next_is("(") and self.next_is("SELECT", ahead=2)
        if piece.word in ("CASE", "NULL", "TRUE", "FALSE", "SELECT", "FROM", "AND", "OR", "NOT", "IN", "IS", "AS"):
            return True
        if self.next_is("(", "."):
            return False
        return piece.word in RESERVED and not self.asked.declared(piece.text)

    def bracketed(self) -> Node:
        start = self.need("(").start
        if self.at("WITH"):
            self.wrong(*SUBQUERY)
        if self.at("SELECT"):
            inner = self.here.start
            return Node("select", inner, (), self.inner(inner))
        with self.deeper(start):
            found = self.expression()
            if self.at(","):
                self.wrong("a list is not answered here", "A list of values belongs after IN.")
            self.need(")")
        return Node(found.kind, start, found.parts, found.value) if found.kind != "name" else found

    def named(self) -> Node:
        piece = self.here
        self.place += 1
        if self.at("(") and piece.kind == "name":
            raise self.asked.no_call(piece.start, piece.text)
        if self.at("("):
            return self.call(piece)
        if not self.take("."):
            return Node("name", piece.start, (), (None, piece.text))
        if self.at("*"):
            self.refuse(self.here.start, "SELECT * is not answered", "Rows are never shown: ask SELECT COUNT(*).")
        inner = self.name("a point is allowed only in numbers and in table.column", "Write 0.5, not .5")
        if self.at("."):
            self.refuse(piece.start, "a schema before the column's name is not answered", self.asked.example)
        return Node("name", piece.start, (), (piece.text, inner))

    def call(self, piece: Piece) -> Node:
        name = piece.word
        self.asked.check_call(piece.start, piece.text, name)
        self.need("(")
        with self.deeper(piece.start):
            if name == "EXTRACT":
                return self.extract(piece.start)
            if SAME.get(name, name) == "CAST":
                return self.cast_call(piece.start)
            distinct = self.take("DISTINCT") is not None
            if self.at("ALL") and not (distinct or self.asked.declared("all")):
                self.place += 1
            parts = self.arguments(name)
            self.need(")")
        if index := self.take("index"):  # counted from 0, or, as ORDINAL, from 1
            place = int(index.text.strip("[)]").partition("(")[2]) - index.text.startswith("[ORDINAL")
            parts.append(Node("number", index.start, (), Fraction(place)))
        found = self.rewrite(self.asked, Node("call", piece.start, tuple(parts), (name, distinct)))
        if index and name != "APPROX_QUANTILES":
            self.refuse(index.start, "a list is not answered here", self.asked.example)
        if self.at("WITHIN"):
            found = self.within(found)
        if self.at("FILTER") and self.next_is("("):
            self.place += 2
            self.take("WHERE")
            with self.deeper(piece.start):
                found = Node("filter", piece.start, (found, self.expression()))
            self.need(")")
        if self.at("OVER") and self.next_is("("):
            return self.over(found)
        if self.at("OVER", "IGNORE", "RESPECT") or name in WINDOWS:
            self.wrong(f"{name} stands before OVER (...)" if name in WINDOWS else "")
        return found

    def arguments(self, name: str) -> list[Node]:
        """What stands in the brackets of a call."""
        if self.at("*") and self.next_is(")"):
            self.place += 1
            return [Node("star", self.pieces[self.place - 1].start)]
        marks = ("FROM", "FOR") if name == "SUBSTRING" else ()  # SUBSTRING(text FROM 1 FOR 2)
        return [] if self.at(")") else self.several(self.expression, *marks)

    def over(self, call: Node) -> Node:
        """OVER (PARTITION BY ... ORDER BY ...)."""
        self.place += 2
        with self.deeper(call.start):
            parted, ordered = list[Node](), list[Ordering]()
            if self.take("PARTITION"):
                self.need("BY", "PARTITION needs BY after it", "OVER (PARTITION BY column).")
                parted = self.several(self.expression)
            if self.at("ORDER"):
                ordered = self.orderings()
            frame = self.frame() if ordered and self.at("ROWS") else None
            self.need(")")
        ways = tuple((each.descending, each.nulls_first) for each in ordered)
        parts = (call, *parted, *(each.node for each in ordered))
        return Node("over", call.start, parts, (len(parted), ways, frame))

    def frame(self) -> tuple[int | None, int | None]:
        """ROWS BETWEEN 2 PRECEDING AND CURRENT ROW as (-2, 0); None is unbounded."""
        self.place += 1
        if not self.take("BETWEEN"):
            return self.end_of_frame(), 0
        first = self.end_of_frame()
        self.need("AND", "a frame looks like ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", "Name both of its ends.")
        return first, self.end_of_frame()

    def end_of_frame(self) -> int | None:
        if self.at("CURRENT") and self.next_is("ROW"):
            self.place += 2
            return 0
        many = None if self.take("UNBOUNDED") else self.whole("ROWS BETWEEN")
        if not self.at("PRECEDING", "FOLLOWING"):
            self.wrong("an end of a frame is PRECEDING, FOLLOWING or CURRENT ROW", "ROWS BETWEEN 2 PRECEDING AND ...")
        sign = -1 if self.here.word == "PRECEDING" else 1
        self.place += 1
        return None if many is None else sign * many

    def cast_call(self, start: int) -> Node:
        inner = self.expression()
        self.need("AS", "CAST looks like CAST(value AS DOUBLE)", "For example CAST(x AS DOUBLE).")
        found = Node("cast", start, (inner,), self.type_name())
        self.need(")")
        return found

    def extract(self, start: int) -> Node:
        unit = self.take("word", "text")
        if unit is None:
            self.wrong("EXTRACT looks like EXTRACT(YEAR FROM day)", "Name a part of a date.")
        self.need("FROM", "EXTRACT looks like EXTRACT(YEAR FROM day)", "Name a part of a date.")
        inner = self.expression()
        self.need(")")
        return Node("call", start, (Node("text", unit.start, (), unit.text), inner), ("DATE_PART", False))

    def within(self, call: Node) -> Node:
        self.place += 1
        self.need("GROUP", "WITHIN needs GROUP after it", "WITHIN GROUP (ORDER BY column).")
        self.need("(")
        self.need("ORDER")
        self.need("BY")
        target, descending = self.expression(), self.descending()
        self.need(")")
        return Node("within", call.start, (call, target), descending)

    def case(self, start: int) -> Node:
        shape = "CASE WHEN condition THEN value ELSE value END."
        with self.deeper(start):
            parts = [] if self.at("WHEN") else [self.expression()]
            operand = bool(parts)
            if not self.at("WHEN"):
                self.wrong("CASE looks like CASE WHEN condition THEN value ELSE value END", "Begin with WHEN.")
            while self.take("WHEN"):
                parts.append(self.expression())
                self.need("THEN", "WHEN needs THEN after its condition", shape)
                parts.append(self.expression())
            otherwise = self.take("ELSE") is not None
            if otherwise:
                parts.append(self.expression())
            self.need("END", "CASE is closed by END", shape)
        return Node("case", start, tuple(parts), (operand, otherwise))

    def interval(self, start: int) -> Node:
        piece = self.take("text", "number")
        assert piece is not None  # looked at before
        words = piece.text.split()
        unit = words[1] if len(words) == 2 else self.name("INTERVAL needs a unit", "For example INTERVAL '7' DAY.")
        try:
            count = Fraction(words[0]) if words else Fraction(-1)
        except ValueError:
            count = Fraction(1, 2)
        if count.denominator != 1:
            self.refuse(start, "an interval is a whole number of days, months or years", "INTERVAL 7 DAY.")
        return Node("interval", start, (), (int(count), unit.upper().removesuffix("S")))


SUBQUERY = (
    "a subquery is not answered here: its exact result would be seen",
    "A question in brackets is allowed after FROM, or in the select list.",
)
