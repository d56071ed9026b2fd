"""Tables joined by the person, and questions that make a group of each person or look for one in another table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from discreet.data import Domain
from discreet.predicate import EVERYTHING, And
from discreet.sql.conditions import WITHOUT, condition, rows_where
from discreet.sql.grammar import SUBQUERY, From, Item, Node, SelectQuery
from discreet.sql.naming import aggregated, calls, written
from discreet.sql.rows import combined
from discreet.sql.scope import Derived, Meaning, Scope
from discreet.sql.source import AGGREGATES, JOINS, Known, Source, folded, shown
from discreet.sql.values import summed


class Tables:
    """What follows FROM: the rows that a question is about, and what their columns are called."""

    def __init__(self, asked: Source, named: dict[str, SelectQuery]) -> None:
        self.asked = asked
        self.named = {folded(name): (query, place) for place, (name, query) in enumerate(named.items())}
        self.seen = len(named)  # how many of the named questions may be used: those before
        self.view: tuple[Domain, Mapping[tuple[str, str], str]] | None = None  # the columns of joined tables

    def scope(self, source: From) -> Scope:
        if source.joined is not None:
            return self.join(source)
        if source.query is not None:
            return self.filtered(source.query, source.alias or "", source.start)
        assert source.name is not None
        named = self.named.get(folded(source.name))
        if named is not None and named[1] < self.seen:
            before, self.seen = self.seen, named[1]
            found = self.filtered(named[0], source.alias or source.name, source.start)
            self.seen = before
            return found
        known = self.table(source)
        domain, called = self.view or (known.domain, {})
        names: dict[str, Meaning] = {name: called.get((known.name, name), name) for name in known.domain.names}
        return Scope(self.asked, (known,), domain, {source.alias or source.name: names})

    def table(self, source: From) -> Known:
        assert source.name is not None
        known = self.asked.tabled(source.name)
        if known is None:
            hint = f"The table is {shown(self.asked.table)}."
            if self.asked.several:
                hint = f"The tables are {', '.join(shown(each.name) for each in self.asked.tables)}."
            raise self.asked.refused(source.start, f"there is no table {shown(source.name)}", hint)
        return known

    def tables(self, source: From) -> list[Known]:
        """The declared tables that rows come from."""
        if source.joined is not None:
            return [known for each in source.joined for known in self.tables(each)]
        if source.query is not None:
            return self.tables(source.query.source)
        named = self.named.get(folded(source.name or ""))
        if named is None or named[1] >= self.seen:
            return [self.table(source)]
        before, self.seen = self.seen, named[1]
        found = self.tables(named[0].source)
        self.seen = before
        return found

    def filtered(self, query: SelectQuery, alias: str, start: int) -> Scope:
        """A question in brackets that only chooses rows and names expressions."""
        query = joined_by_where(self.asked, query)
        scope = self.scope(query.source)
        self.refuse_distinct(query)
        if any((query.group is not None, query.having, query.qualify, query.limit is not None, query.offset)):
            reason = "a question in brackets may choose rows and name expressions, or be the whole of FROM"
            raise self.asked.refused(start, reason, "Leave GROUP BY, HAVING and LIMIT to the outer question.")
        names: dict[str, Meaning] = {}
        for item in query.items:
            if item.node.kind == "star":
                for each in scope.names.values():
                    names.update(each)
                continue
            if aggregated(scope, item.node):
                reason = "an aggregate in such a question is not answered"
                raise self.asked.refused(item.start, reason, "Let it choose rows: SELECT * FROM t WHERE condition.")
            if item.node.kind == "name":
                name = item.node.value[1]
                if folded(name) in scope.units and not scope.known(name) and item.alias in (None, name):
                    continue  # whoever may be counted or joined by: no column
                names[item.alias or name] = scope.meaning(item.node)
                continue
            if item.alias is None:
                raise self.asked.refused(
                    item.start, "an expression in brackets needs a name", "Write AS name after it."
                )
            names[item.alias] = Derived(item.node, scope)
        where = scope.where if query.where is None else combined(And, [scope.where, rows_where(scope, query.where)])
        if scope.absent:
            raise self.asked.refused(start, "a LEFT JOIN is not answered in a question in brackets", JOINS)
        return Scope(self.asked, scope.tables, scope.domain, {alias: names}, where)

    def join(self, source: From) -> Scope:
        """Tables joined by the person: each row is one person's, with what other tables say about them."""
        assert source.joined is not None
        if not self.asked.several:
            raise self.asked.refused(source.start, "a join is not answered", self.asked.one_table)
        tables = self.tables(source)
        names = [each.name for each in tables]
        if len(set(names)) < len(names):
            reason = "a join of a table with itself puts rows of two persons into one: no noise hides a person then"
            self.asked_refused(source, reason)
        if sum(each.rows > 1 for each in tables) > 1:
            reason = "these tables both have several rows of a person: their join multiplies them"
            raise self.asked.refused(source.start, reason, "Join one of them with a table of one row per person.")
        outermost, self.view = self.view is None, self.view or self.columns(tables)
        left, right = (self.scope(each) for each in source.joined)
        both = dict(left.names)
        for alias, meanings in right.names.items():
            if alias in both:
                reason = f"two tables are called {shown(alias)}"
                raise self.asked.refused(source.start, reason, "Name one of them AS x.")
            both[alias] = meanings
        rows = combined(And, [left.where, right.where])
        made = Scope(self.asked, (*left.tables, *right.tables), self.view[0], both, rows)
        rest = self.check_by_person(source, left, right)
        made = replace(made, absent=left.absent | right.absent | self.absent(source, left, right, bool(rest)))
        if rest:
            made = replace(made, where=combined(And, [rows, *(condition(made, each) for each in rest)]))
        self.view = None if outermost else self.view
        return made

    def columns(self, tables: Sequence[Known]) -> tuple[Domain, Mapping[tuple[str, str], str]]:
        """The columns of joined tables, as a view has them: the table with several rows of a person first, the others
        as they are declared; and what each is called there."""
        having = Counter(column for each in tables for column in each.domain.names)
        called = {
            (each.name, column): f"{each.name}.{column}" if having[column] > 1 else column
            for each in tables
            for column in each.domain.names
        }
        ordered = sorted(tables, key=lambda each: (each.rows == 1, self.asked.tables.index(each)))
        columns = {called[each.name, name]: column for each in ordered for name, column in each.domain.items()}
        return Domain(columns), called

    def absent(self, source: From, left: Scope, right: Scope, conditions: bool) -> frozenset[str]:
        """The names of the table in which a LEFT or RIGHT JOIN may find nothing; none if it has a row of everybody."""
        if source.kind not in ("left", "right"):
            return frozenset()
        kept, other = (left, right) if source.kind == "left" else (right, left)
        whole = other.where == EVERYTHING and not conditions
        if whole and all(each.everybody for each in other.tables):
            return frozenset()
        if not (whole and len(other.tables) == 1 and all(each.everybody for each in kept.tables)):
            reason = "this LEFT JOIN has rows in which a whole table is missing"
            self.asked_refused(source, reason)
        return frozenset(other.names)

    def check_by_person(self, source: From, left: Scope, right: Scope) -> list[Node]:
        """Refuse a join that is not by the columns that name persons; the other conditions of ON."""
        reason = "tables are joined by the person only: otherwise rows of several persons meet in one"
        units, aliases = left.units | right.units, {folded(each) for scope in (left, right) for each in scope.names}
        if source.kind == "natural":
            alike = {folded(each) for each in column_names(left)} & {folded(each) for each in column_names(right)}
            if alike or len(units) > 1 or not units:
                self.asked_refused(
                    source, f"a NATURAL JOIN would also compare {', '.join(sorted(alike))}" if alike else reason
                )
            return []
        if source.on is None:
            if len(source.using) != 1 or folded(source.using[0]) not in units:
                self.asked_refused(source, reason)
            return []
        parts = source.on.parts if source.on.kind == "and" else (source.on,)
        rest = [each for each in parts if not same_person(each, units, aliases)]
        if len(rest) == len(parts):
            self.asked_refused(source, reason)
        return rest

    def without_totals(self, query: SelectQuery) -> SelectQuery:
        """FROM t, (SELECT AVG(x) AS m FROM t) o as FROM t, with the question in brackets in the place of o.m."""
        totals: dict[str, dict[str, Node]] = {}

        def change(source: From) -> From:
            if source.kind != "comma" or source.joined is None:
                return source
            kept = [change(each) for each in source.joined]
            for place, each in enumerate(kept):
                inner = each.query or self.named.get(folded(each.name or ""), (None,))[0]
                if inner is None or inner.group is not None or not all(calls(item.node) for item in inner.items):
                    continue
                ones = {folded(item.alias or written(item.node)): replace(inner, items=(item,)) for item in inner.items}
                called = folded(each.alias or each.name or "")
                totals[called] = {name: Node("select", each.start, (), one) for name, one in ones.items()}
                return kept[1 - place]
            return replace(source, joined=(kept[0], kept[1]))

        source = change(query.source)
        if not totals:
            return query
        plainly = {name: one for ones in totals.values() for name, one in ones.items() if not self.asked.declared(name)}

        def stand_in(node: Node) -> Node:
            if node.kind == "name":
                qualifier, name = node.value
                found = plainly if qualifier is None else totals.get(folded(qualifier), {})
                return replace(found[folded(name)], start=node.start) if folded(name) in found else node
            return replace(node, parts=tuple(map(stand_in, node.parts)))

        items = tuple(
            replace(each, node=stand_in(each.node), alias=each.alias or written(each.node)) for each in query.items
        )
        group = None if query.group is None else tuple(each for each in query.group if stand_in(each).kind != "select")
        where, having, qualify = (each and stand_in(each) for each in (query.where, query.having, query.qualify))
        order = tuple(replace(by, node=stand_in(by.node)) for by in query.order)
        changed = {"where": where, "having": having, "qualify": qualify, "order": order}
        return replace(query, source=source, items=items, group=group, **changed)  # type: ignore[arg-type]

    def matched(self, query: SelectQuery) -> SelectQuery:
        """WHERE EXISTS (SELECT ... of the same person), or WHERE person IN (SELECT person ...), as a join.

        The other table has one row of a person: then it is the join. Or it has several, and persons are counted, who
        have one row in the tables that are asked about: then each of them counts once.
        """
        parts = list(
            query.where.parts if query.where and query.where.kind == "and" else [query.where or Node("and", 0)]
        )
        found = [each for each in parts if each.kind in ("exists", "among")]
        without = next(
            (each for each in parts if each.kind == "not" and each.parts[0].kind in ("exists", "among")), None
        )
        if without is not None and self.asked.several:
            raise self.asked.refused(without.start, *WITHOUT)
        if not found or not self.asked.several:
            return query
        for place, node in enumerate(found):
            known, inner = self.other_table(query, node)
            rows = SelectQuery(
                inner.start, (Item(_name(known.unit or ""), None, inner.start),), inner.source, inner.where
            )
            there = From(inner.start, query=rows, alias=f"matched {place}")
            source = From(node.start, joined=(query.source, there), using=(known.unit or "",))
            if known.rows > 1:
                query = counting_persons(self.asked, query, node, known, self.tables(query.source))
            query = replace(query, source=source)
        rest = tuple(each for each in parts if each not in found)
        return replace(query, where=Node("and", rest[0].start, rest) if rest else None)

    def other_table(self, query: SelectQuery, node: Node) -> tuple[Known, SelectQuery]:
        """The table that a subquery after WHERE looks for a person in, and the rows of it that are looked for."""
        inner: SelectQuery = node.value if node.kind == "exists" else node.value[1]
        plain = inner.group is None and inner.having is None and inner.limit is None and not inner.below
        tables = self.tables(inner.source) if plain and inner.source.joined is None else []
        mine = {folded(each.unit) for each in self.tables(query.source) if each.unit is not None}
        if len(tables) != 1 or tables[0].unit is None or not mine:
            raise self.asked.refused(node.start, *SUBQUERY)
        conditions = list(inner.where.parts if inner.where and inner.where.kind == "and" else [inner.where])
        if node.kind == "exists":
            called = {folded(each.alias or each.name or "") for each in (*leaves(query.source), inner.source)}
            units = mine | {folded(tables[0].unit)}
            same = [each for each in conditions if each is not None and same_person(each, units, called)]
            fits = len(same) == 1
        else:
            same, (target, item) = [], (node.parts[0], inner.items[0].node)
            names = [each.value[1] if each.kind == "name" else "" for each in (target, item)]
            fits = len(inner.items) == 1 and folded(names[0]) in mine and folded(names[1]) == folded(tables[0].unit)
            if node.value[0] and fits:
                raise self.asked.refused(node.start, *WITHOUT)
        if not fits:
            raise self.asked.refused(node.start, *SUBQUERY)
        rest = tuple(each for each in conditions if each is not None and each not in same)
        return tables[0], replace(inner, where=Node("and", rest[0].start, rest) if rest else None)

    def refuse_distinct(self, query: SelectQuery) -> None:
        if query.distinct is not None:
            reason = "SELECT DISTINCT is not answered: rows are not shown"
            hint = "Count instead, for example SELECT a, COUNT(*) FROM t GROUP BY a."
            raise self.asked.refused(query.distinct, reason, hint)

    def asked_refused(self, source: From, reason: str) -> NoReturn:
        raise self.asked.refused(source.start, reason, JOINS)


def _name(name: str) -> Node:
    return Node("name", 0, (), (None, name))


def counting_persons(
    asked: Source, query: SelectQuery, node: Node, known: Known, tables: Sequence[Known]
) -> SelectQuery:
    """The question with COUNT(DISTINCT person) for COUNT(*): each person counts once, however many rows match."""
    if any(each.rows > 1 for each in tables):
        reason = "both tables have several rows of a person: their join multiplies them"
        raise asked.refused(node.start, reason, "Look for persons in a table of one row per person.")
    units = {folded(each.unit) for each in tables if each.unit is not None}

    def change(part: Node) -> Node:
        if part.kind == "over":  # of the counts of all groups
            call = replace(part.parts[0], parts=tuple(map(change, part.parts[0].parts)))
            return replace(part, parts=(call, *map(change, part.parts[1:])))
        if part.kind != "call" or part.value[0] not in AGGREGATES:
            return replace(part, parts=tuple(map(change, part.parts)))
        target = part.parts[0] if len(part.parts) == 1 else None
        person = target is not None and target.kind == "name" and folded(target.value[1]) in units
        if part.value[0] != "COUNT" or target is None or not (target.kind in ("star", "number") or person):
            reason = f"of persons who have rows in {shown(known.name)} only the number is answered: COUNT(*)"
            raise asked.refused(part.start, reason, "Or ask about the joined rows: FROM a JOIN b USING (person).")
        return replace(part, parts=(_name(known.unit or ""),), value=("COUNT", True))

    items = tuple(replace(item, node=change(item.node), alias=item.alias or written(item.node)) for item in query.items)
    having, qualify = (None if each is None else change(each) for each in (query.having, query.qualify))
    order = tuple(replace(by, node=change(by.node)) for by in query.order)
    return replace(query, items=items, having=having, qualify=qualify, order=order)


def column_names(scope: Scope) -> list[str]:
    return [name for meanings in scope.names.values() for name in meanings]


def same_person(node: Node, units: set[str], aliases: set[str]) -> bool:
    """Whether a condition says that two rows are of one person: a.person = b.person."""
    if node.kind != "=" or any(part.kind != "name" or part.value[0] is None for part in node.parts):
        return False
    (one, left), (other, right) = ((folded(part.value[0]), folded(part.value[1])) for part in node.parts)
    return one != other and {one, other} <= aliases and {left, right} <= units


def joined_by_where(asked: Source, query: SelectQuery) -> SelectQuery:
    """FROM a, b WHERE a.person = b.person as a JOIN b ON a.person = b.person."""
    conditions = [] if query.where is None else list(query.where.parts if query.where.kind == "and" else (query.where,))
    units = {folded(each.unit) for each in asked.tables if each.unit is not None}

    def change(source: From) -> From:
        if source.joined is None:
            return source
        left, right = (change(each) for each in source.joined)
        source = replace(source, joined=(left, right))
        if source.kind != "comma":
            return source
        called = {folded(each.alias or each.name or "") for each in (*leaves(left), *leaves(right))}
        mine = next((each for each in conditions if same_person(each, units, called)), None)
        if mine is None and not asked.several:
            raise asked.refused(source.start, "a second table is not answered", asked.one_table)
        if mine is None:
            reason = "tables are joined by the person only: otherwise rows of several persons meet in one"
            raise asked.refused(source.start, reason, JOINS)
        conditions.remove(mine)
        return replace(source, on=mine, kind="inner")

    source = change(query.source)
    if source is query.source:
        return query
    where = None if not conditions else conditions[0]
    if len(conditions) > 1:
        where = Node("and", conditions[0].start, tuple(conditions))
    return replace(query, source=source, where=where)


def leaves(source: From) -> list[From]:
    return [source] if source.joined is None else [leaf for each in source.joined for leaf in leaves(each)]


def of_each_person(scope: Scope, query: SelectQuery, inner: SelectQuery) -> SelectQuery:
    """A question about a question that makes a group of each person, as one about the rows: the sum of all persons'
    counts is the count, their average is that over the number of persons."""
    asked, person = scope.asked, sorted(scope.units)[0]
    own = {folded(item.alias or written(item.node)): item.node for item in inner.items}
    persons = Node("call", inner.start, (Node("name", inner.start, (), (None, person)),), ("COUNT", True))
    hint = f"Answered are COUNT(*), SUM(n) and AVG(n) of it, where n is COUNT(*) or a SUM; or COUNT(DISTINCT {person})."
    rest = (
        inner.having,
        inner.qualify,
        inner.limit,
        inner.offset,
        query.where,
        query.group,
        query.having,
        query.qualify,
    )
    if any(rest) or any(item.node.kind == "star" for item in query.items):
        start = next((each.start for each in (inner.having, query.where) if each is not None), inner.start)
        raise asked.refused(start, "a number of each single person is not shown, compared or grouped by", hint)

    def whole(node: Node) -> Node:
        """The sum of a number of each person over all persons."""
        found = own.get(folded(node.value[1])) if node.kind == "name" else None
        plain = found is not None and found.kind == "call" and not found.value[1] and len(found.parts) == 1
        if not plain or found is None or found.value[0] not in ("COUNT", "SUM"):
            scope.refuse(node, "this number of each single person is not answered", hint)
        if found.value[0] == "SUM" and summed(scope, found.parts[0]).known(scope.domain) != EVERYTHING:
            scope.refuse(node, "a sum of values that may be missing is nothing for some persons", hint)
        return found

    def change(node: Node) -> Node:
        if node.kind == "call" and node.value == ("COUNT", False) and node.parts[0].kind == "star":
            return persons
        if node.kind == "call" and node.value == ("COUNT", False) and folded(written(node.parts[0])) == person:
            return persons
        if node.kind == "call" and node.value[0] == "SUM":
            return whole(node.parts[0])
        if node.kind == "call" and node.value[0] in ("AVG", "MEAN"):
            return Node("/", node.start, (whole(node.parts[0]), persons))
        if node.kind == "name" or (node.kind == "call" and node.value[0] in AGGREGATES):
            scope.refuse(node, "this number of each single person is not answered", hint)
        return replace(node, parts=tuple(map(change, node.parts)))

    items = tuple(replace(item, node=change(item.node), alias=item.alias or written(item.node)) for item in query.items)
    return replace(query, items=items, source=inner.source, where=inner.where, named={})
