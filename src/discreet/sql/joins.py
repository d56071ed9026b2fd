"""Tables joined by the person, and questions that make a group of each person or look for one in another table.

    SELECT n, COUNT(*) FROM (SELECT person, COUNT(*) AS n FROM visits GROUP BY person) q GROUP BY n

The rows of a question in brackets that makes a group of each person are made of that person's rows. What it names is
declared: a person has at most k rows, so n is 1 .. k, and a sum lies between k times the ends of what is summed. The
outer question is then asked about these rows like about any others (`person_rows`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any, NoReturn

from discreet.data import Domain, left_columns
from discreet.errors import ParameterError
from discreet.query import (
    EVERYTHING,
    And,
    Choose,
    Equals,
    Fixed,
    PersonKey,
    PersonNumber,
    PersonRows,
    Predicate,
    Value,
)
from discreet.sql.conditions import chosen_rows, condition, rows_where, there
from discreet.sql.grammar import COMPARISONS, SUBQUERY, From, Item, Node, SelectQuery, conjunction, conjuncts
from discreet.sql.naming import aggregated, calls, named, ordinal, signature, written
from discreet.sql.rows import combined
from discreet.sql.scope import Derived, Meaning, Scope
from discreet.sql.source import AGGREGATES, JOINS, Known, Source, folded, shown
from discreet.sql.values import grouped_by, summed

_BY_PERSON = "tables are joined by the person only: otherwise rows of several persons meet in one"
_HINT = "Of each person COUNT, SUM, AVG, MIN, MAX and COUNT(DISTINCT x) of a column are read."
_ZERO = Node("number", 0, (), Fraction(0))


class Tables:
    """What follows FROM: the rows that a question is about, and what their columns are called."""

    def __init__(self, asked: Source, named: dict[str, SelectQuery]) -> None:
        self.asked = asked
        self.named = {folded(name): (query, place) for place, (name, query) in enumerate(named.items())}
        self.seen = len(named)  # how many of the named questions may be used: those before
        self.view: tuple[Domain, Mapping[tuple[str, str], str]] | None = None  # the columns of joined tables
        self.optional: From | None = None  # the side of them that may have no row of a person

    def scope(self, source: From) -> Scope:
        if source.joined is not None:
            return self.join(source)
        if source.query is not None:
            return self.filtered(source.query, source.alias or "", source.start)
        assert source.name is not None
        with self.looked_up(source.name) as query:
            if query is not None:
                return self.filtered(query, source.alias or source.name, source.start)
        known = self.table(source)
        domain, called = self.view or (known.domain, {})
        names: dict[str, Meaning] = {name: called.get((known.name, name), name) for name in known.names}
        return Scope(self.asked, (known,), domain, {source.alias or source.name: names})

    @contextmanager
    def looked_up(self, name: str | None) -> Iterator[SelectQuery | None]:
        """The question that WITH gave this name, if it may be used here; inside, those before it may be."""
        query, place = self.named.get(folded(name or ""), (None, self.seen))
        if place >= self.seen:
            yield None
            return
        before, self.seen = self.seen, place
        yield query
        self.seen = before

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
        with self.looked_up(source.name) as query:
            return [self.table(source)] if query is None else self.tables(query.source)

    def inner(self, source: From) -> SelectQuery | None:
        """A question in brackets, or one of this name."""
        return source.query or self.named.get(folded(source.name or ""), (None,))[0]

    def grouping(self, source: From) -> SelectQuery | None:
        """The question after FROM, if it is one that groups: then the outer one is about its answer."""
        with self.looked_up(source.name) as named:
            query = named or source.query
        if query is None:
            return None
        if query.group is not None or query.distinct is not None:
            return query
        plain = all(item.node.kind != "star" and calls(item.node) for item in query.items)
        return query if plain else None

    def by_person(self, query: SelectQuery) -> list[Node] | None:
        """What a question groups by beside the person, if it makes a group of each person."""
        inner = self.grouping(query.source)
        if query.sets or query.below or (inner is not None and self.by_person(inner) is None):
            return None
        nodes = [item.node for item in query.items] if query.distinct is not None else list(query.group or ())
        scope = self.scope(joined_by_where(self.asked, query).source)
        if query.group == ():
            nodes = [item.node for item in query.items if not aggregated(scope, item.node)]
        nodes = [ordinal(self.asked, query.items, each).node if each.kind == "number" else each for each in nodes]
        rest = [each for each in nodes if not scope.person(each)]
        return rest if len(rest) < len(nodes) else None

    def filtered(self, query: SelectQuery, alias: str, start: int) -> Scope:
        """A question in brackets that only chooses rows and names expressions, or makes a row for each person."""
        query = joined_by_where(self.asked, query)
        by = self.by_person(query) if query.group is not None or query.distinct is not None else None
        scope = self.scope(query.source)
        if by is not None:
            return made_by_person(scope, query, by, alias)
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
                if scope.person(item.node) and item.alias in (None, name):
                    continue  # whoever may be counted or joined by: no column
                names[item.alias or name] = scope.meaning(item.node)
                continue
            if item.alias is None:
                raise self.asked.refused(
                    item.start, "an expression in brackets needs a name", "Write AS name after it."
                )
            names[item.alias] = Derived(item.node, scope)
        where = chosen_rows(scope, query.where)
        if scope.absent:
            raise self.asked.refused(start, "a LEFT JOIN is not answered in a question in brackets", JOINS)
        return Scope(self.asked, scope.tables, scope.domain, {alias: names}, where, made=scope.made)

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
        outermost = self.view is None
        if outermost:
            self.optional = self.may_be_nothing(source)
            self.view = self.columns(tables)
        left, right = (self.scope(each) for each in source.joined)
        both = dict(left.names)
        for alias, meanings in right.names.items():
            if alias in both:
                reason = f"two tables are called {shown(alias)}"
                raise self.asked.refused(source.start, reason, "Name one of them AS x.")
            both[alias] = meanings
        rest = self.check_by_person(source, left, right)
        nothing = next((each for each in source.joined if each is self.optional), None)
        absent = left.absent | right.absent | self.absent(source, left, right)
        if left.made is not None or right.made is not None:
            made = self.beside(source, *((left, right) if left.made is None else (right, left)), nothing is not None)
        else:
            assert self.view is not None
            rows = combined(And, [left.where, right.where])
            made = Scope(self.asked, (*left.tables, *right.tables), self.view[0], both, rows, absent=absent)
            made = replace(made, optional=left.optional or right.optional, marks={**left.marks, **right.marks})
            if nothing is not None:
                (other,) = self.tables(nothing)
                mark = {folded(nothing.alias or other.name): f"{other.name}.*"}
                made = replace(made, optional=other.name, marks=mark)
        if rest:
            made = replace(made, where=combined(And, [made.where, *(condition(made, each) for each in rest)]))
        if outermost:
            self.view = self.optional = None
        return made

    def columns(self, tables: Sequence[Known]) -> tuple[Domain, Mapping[tuple[str, str], str]]:
        """The columns of joined tables, as a view has them: the table with several rows of a person first, the others
        as they are declared, and last the one that may have no row; and what each is called there."""
        other = None if self.optional is None else self.tables(self.optional)[0]
        kept = [each for each in tables if each is not other]
        having = Counter(column for each in kept for column in each.domain.names)
        called = {
            (each.name, column): f"{each.name}.{column}" if having[column] > 1 else column
            for each in kept
            for column in each.domain.names
        }
        ordered = sorted(kept, key=lambda each: (each.rows == 1, self.asked.tables.index(each)))
        domain = Domain({called[each.name, name]: column for each in ordered for name, column in each.domain.items()})
        if other is None:
            return domain, called
        for name in other.domain:
            called[other.name, name] = f"{other.name}.{name}" if name in domain else name
        return Domain({**domain, **left_columns(other.name, other.domain, domain)}), called

    def may_be_nothing(self, source: From) -> From | None:
        """The side of a LEFT or RIGHT JOIN that has no row of some persons, if all rows of the others are wanted: a
        table, or a question that makes a row for each person."""
        found = list[From]()
        for each in nodes_of(source):
            if each.kind not in ("left", "right"):
                continue
            assert each.joined is not None
            other = each.joined[each.kind == "left"]
            plain = isinstance(each.on, Node) and each.on.kind == "and"
            query = self.inner(other)
            made = query is not None and query.group is not None
            if len(self.tables(other)) != 1 or (not made and (query is not None or plain)):
                continue
            if not made and self.tables(other)[0].everybody:
                continue
            found.append(other)
        if len(found) > 1:
            self.asked_refused(source, "two LEFT JOINs in one question are not answered")
        return found[0] if found else None

    def beside(self, source: From, kept: Scope, other: Scope, nothing: bool) -> Scope:
        """Rows that are made of each person's rows, beside what tables with one row of a person say about them.

        nothing  those who have no such row are there too
        """
        assert other.made is not None
        assert self.view is not None
        if kept.made is not None or any(each.rows > 1 for each in kept.tables):
            reason = "a question that makes a row for each person is joined with tables of one row per person"
            raise self.asked.refused(source.start, reason, "Make all numbers of a person in one question in brackets.")
        inner, domain = other.made, self.view[0]
        own = [self.view[1][each.name, name] for each in kept.tables for name in each.domain.names]
        rows, taken = inner.most_rows, {each.called for each in inner.keys}
        carried = [
            PersonNumber(name, "own", name, rows)
            for name in own
            if name in domain and domain[name].coded and not domain[name].free and name not in taken
        ]
        numbers, where, optional = inner.numbers, combined(And, [inner.where, kept.where]), self.optional
        if nothing:
            if inner.keys or other.where != EVERYTHING:
                reason = (
                    "HAVING, or a group beside the person, in a question that is joined by LEFT JOIN is not answered"
                )
                raise self.asked.refused(
                    source.start, reason, "Write JOIN, or put the condition into the outer question."
                )
            mark = Equals(f"{other.tables[0].name}.*", True)
            numbers = tuple(each.among(combined(And, [inner.where, mark])) for each in numbers)
            where = kept.where
        made = PersonRows(inner.keys, (*numbers, *carried), where)
        tables = (*kept.tables, *(replace(each, rows=1) if not inner.keys else each for each in other.tables))
        called = None if optional is None else self.tables(optional)[0].name
        names = {**kept.names, **other.names}
        return Scope(self.asked, tables, made.domain(domain), names, other.where, made=made, optional=called)

    def absent(self, source: From, left: Scope, right: Scope) -> frozenset[str]:
        """The names of the table in which a LEFT or RIGHT JOIN may find nothing, where only what it finds is read."""
        if source.kind not in ("left", "right"):
            return frozenset()
        kept, other = (left, right) if source.kind == "left" else (right, left)
        if source.joined is not None and source.joined[source.kind == "left"] is self.optional:
            return frozenset()
        plain = source.on is None or source.on.kind != "and"
        if plain and other.where == EVERYTHING and all(each.everybody for each in other.tables):
            return frozenset()
        if len(other.tables) != 1 or not all(each.everybody for each in kept.tables):
            self.asked_refused(source, "this LEFT JOIN has rows in which a whole table is missing")
        return frozenset(other.names)

    def check_by_person(self, source: From, left: Scope, right: Scope) -> list[Node]:
        """Refuse a join that is not by the columns that name persons; the other conditions of ON."""
        units, aliases = left.units | right.units, {folded(each) for scope in (left, right) for each in scope.names}
        marks = {*left.marks, *right.marks}
        if source.on is not None and any(
            each.kind == "name" and folded(each.value[0] or "") in marks for each in source.on.walk()
        ):
            self.asked_refused(source, "a table is joined by a person who may be missing")
        if source.kind == "natural":
            alike = {folded(each) for each in column_names(left)} & {folded(each) for each in column_names(right)}
            if alike or len(units) > 1 or not units:
                self.asked_refused(
                    source, f"a NATURAL JOIN would also compare {', '.join(sorted(alike))}" if alike else _BY_PERSON
                )
            return []
        if source.on is None:
            if len(source.using) != 1 or folded(source.using[0]) not in units:
                self.asked_refused(source, _BY_PERSON)
            return []
        parts = conjuncts(source.on)
        rest = [each for each in parts if not same_person(each, units, aliases)]
        if len(rest) == len(parts):
            self.asked_refused(source, _BY_PERSON)
        return rest

    def without_totals(self, query: SelectQuery) -> SelectQuery:
        """FROM t, (SELECT AVG(x) AS m FROM t) o as FROM t, with the question in brackets in the place of o.m."""
        totals: dict[str, dict[str, Node]] = {}

        def change(source: From) -> From:
            if source.kind != "comma" or source.joined is None:
                return source
            kept = [change(each) for each in source.joined]
            for place, each in enumerate(kept):
                inner = self.inner(each)
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
        """WHERE EXISTS (SELECT ... of the same person), or WHERE person IN (SELECT person ...), as a join, and so NOT
        EXISTS and NOT IN."""
        query = self.without_row(query)
        if (among := self.among_own(query)) is not None:
            return among
        if query.where is None or not self.asked.several:
            return query
        parts = conjuncts(query.where)
        found = [each for each in query.where.walk() if each.kind in ("exists", "among")]
        source, changed, tests = query.source, dict[int, Node](), dict[str, list[Node]]()
        for place, node in enumerate(found):
            known, inner = self.other_table(query, node)
            against = node.kind == "among" and bool(node.value[0])
            wanted = any(each is node for each in parts) and not against
            alias, test = f"matched {place}", (against, "TRUE")
            if known.rows > 1 or inner.group is not None:
                tests.setdefault(known.name, []).append(node)
                alias = f"matched {known.name}"
                match = _name(f"test {len(tests[known.name])}", alias)
            else:
                source, match = self.beside_table(source, known, inner, alias, wanted)
            changed[id(node)] = Node("is", node.start, (match,), test)
        for name, nodes in tests.items():
            wanted = any(each is node for each in parts for node in nodes if node.kind == "exists" or not node.value[0])
            source = self.beside_rows(query, source, f"matched {name}", nodes, wanted)

        def change(node: Node) -> Node:
            return changed.get(id(node)) or replace(node, parts=tuple(map(change, node.parts)))

        return replace(query, source=source, where=change(query.where)) if found else query

    def beside_table(
        self, source: From, known: Known, inner: SelectQuery, alias: str, wanted: bool
    ) -> tuple[From, Node]:
        """A table with one row of a person that persons are looked for in, joined as it is, and whether one was found;
        wanted: only these are asked about."""
        start, person = inner.start, _name(known.unit or "")
        if wanted:
            there = From(start, query=replace(inner, items=(Item(person, None, start),)), alias=alias)
            return From(start, joined=(source, there), using=(known.unit or "",)), Node("boolean", start, (), True)
        here = Node("is", start, (_name(known.unit or "", alias),), (True, "NULL"))
        asked = () if inner.where is None else (qualified(inner.where, inner.source, alias),)
        there = replace(inner.source, alias=alias)
        return From(start, joined=(source, there), using=(known.unit or "",), kind="left"), Node(
            "and", start, (here, *asked)
        )

    def beside_rows(self, query: SelectQuery, source: From, alias: str, nodes: Sequence[Node], wanted: bool) -> From:
        """A table with several rows of a person that persons are looked for in: a row for each person, with what was
        looked for."""
        start, tests = nodes[0].start, list[Item]()
        if any(each.rows > 1 for each in self.tables(query.source)):
            reason = "both tables have several rows of a person: their join multiplies them"
            raise self.asked.refused(start, reason, "Look for persons in a table of one row per person.")
        for node in nodes:
            known, inner = self.other_table(query, node)
            tests.append(Item(tested(node, inner), f"test {len(tests) + 1}", node.start))
        person = Item(_name(known.unit or ""), None, start)
        rows = SelectQuery(start, (person, *tests), replace(inner.source, alias=None), group=(person.node,))
        there = From(start, query=rows, alias=alias)
        return From(start, joined=(source, there), using=(known.unit or "",), kind="inner" if wanted else "left")

    def among_own(self, query: SelectQuery) -> SelectQuery | None:
        """FROM t WHERE person IN (SELECT person FROM t WHERE c) as a question about a row for each person, with what is
        added up of that person's rows; None if it is not the same table, or has one row of a person."""
        source, where = query.source, query.where
        parts = conjuncts(where)
        if source.name is None or folded(source.name) in self.named or not parts:
            return None
        known, wanted, rest, tests = self.table(source), list[Node](), list[Node](), list[Item]()
        for each in parts:
            node = each.parts[0] if each.kind == "not" else each
            if node.kind not in ("exists", "among"):
                rest.append(qualified(each, source, None))
                continue
            other, inner = self.other_table(query, node)
            if other != known or (known.rows == 1 and self.asked.several):
                return None
            tests.append(Item(tested(node, inner), f"test {len(tests)}", node.start))
            against = (each.kind == "not") != (node.kind == "among" and bool(node.value[0]))
            wanted.append(Node("is", node.start, (_name(tests[-1].alias or ""),), (against, "TRUE")))
        if not tests:
            return None
        if query.group is not None or query.having is not None or query.order:
            reason = "rows of persons who are looked for in the same table are counted all together only"
            raise self.asked.refused(query.start, reason, "Leave GROUP BY, HAVING and ORDER BY out.")
        chosen = conjunction(rest)
        numbers = dict[Node, Item]()

        def of_person(call: Node, start: int) -> Node:
            """The sum over all persons of an aggregate of their rows."""
            call = filtered(qualified(call, source, None), chosen)
            item = numbers.setdefault(call, Item(call, f"number {len(numbers)}", start))
            return Node("call", start, (_name(item.alias or ""),), ("SUM", False))

        def change(node: Node) -> Node:
            call = node.parts[0] if node.kind == "filter" else node
            if call.kind != "call" or call.value[0] not in AGGREGATES or len(call.parts) != 1:
                return replace(node, parts=tuple(map(change, node.parts)))
            (target,) = call.parts
            person = target.kind == "name" and folded(target.value[1]) == folded(known.unit or "")
            if call.value == ("COUNT", True) and person:
                many = of_person(replace(node, value=("COUNT", False)) if node is call else node, node.start).parts[0]
                some = Node(">", node.start, (many, Node("number", node.start, (), Fraction(0))))
                return Node("call", node.start, (some,), ("COUNT_IF", False))
            if call.value in (("COUNT", False), ("COUNT_IF", False), ("COUNTIF", False), ("SUM", False)):
                return of_person(node, node.start)
            if call.value in (("AVG", False), ("MEAN", False)):
                made = (_with_call(node, replace(call, value=(name, False))) for name in ("SUM", "COUNT"))
                return Node("/", node.start, tuple(of_person(each, node.start) for each in made))
            reason = f"of persons who are looked for in the same table {call.value[0]} is not answered"
            raise self.asked.refused(call.start, reason, "Answered are COUNT, SUM, AVG and COUNT(DISTINCT person).")

        items = tuple(
            replace(item, node=change(item.node), alias=item.alias or written(item.node)) for item in query.items
        )
        person = Item(_name(known.unit or ""), None, query.start)
        rows = SelectQuery(query.start, (person, *tests, *numbers.values()), source, group=(person.node,))
        source = From(query.start, query=rows, alias="each")
        return replace(query, items=items, source=source, where=conjunction(wanted))

    def without_row(self, query: SelectQuery) -> SelectQuery:
        """FROM a LEFT JOIN b ON a.person = b.person AND c WHERE b.person IS NULL as WHERE NOT EXISTS."""
        source, where, start = query.source, query.where, query.source.start
        if where is None or source.kind != "left" or source.joined is None:
            return query
        kept, other = source.joined
        alias, units = folded(other.alias or other.name or ""), {folded(each.unit or "") for each in self.asked.tables}

        def nothing(node: Node) -> bool:
            """Whether it says that the person of the other table is missing."""
            target = node.parts[0] if node.kind == "is" and node.value == (False, "NULL") else node
            qualifier, name = target.value if target.kind == "name" else ("", "")
            return target is not node and folded(qualifier or "") == alias and folded(name) in units

        parts = conjuncts(where)
        if not any(map(nothing, parts)):
            return query
        person = _name(source.using[0] if source.using else "")
        inner = SelectQuery(other.start, (Item(person, None, other.start),), other, source.on)
        found = Node("among", start, (person,), (False, inner)) if source.using else Node("exists", start, (), inner)
        rest = tuple(each for each in parts if not nothing(each))
        return replace(query, source=kept, where=Node("and", where.start, (Node("not", start, (found,)), *rest)))

    def other_table(self, query: SelectQuery, node: Node) -> tuple[Known, SelectQuery]:
        """The table that a subquery after WHERE looks for a person in, and the rows of it that are looked for."""
        inner: SelectQuery = node.value if node.kind == "exists" else node.value[1]
        plain = inner.limit is None and not inner.below and not inner.sets
        if inner.group is not None or inner.having is not None:
            plain = plain and node.kind == "among" and self.by_person(inner) == []
        tables = self.tables(inner.source) if plain and inner.source.joined is None else []
        mine = {folded(each.unit) for each in self.tables(query.source) if each.unit is not None}
        if len(tables) != 1 or tables[0].unit is None or not mine:
            raise self.asked.refused(node.start, *SUBQUERY)
        conditions = conjuncts(inner.where)
        if node.kind == "exists":
            called = {folded(each.alias or each.name or "") for each in (*leaves(query.source), inner.source)}
            units = mine | {folded(tables[0].unit)}
            same = [each for each in conditions if same_person(each, units, called)]
            fits = len(same) == 1
        else:
            same, (target, item) = [], (node.parts[0], inner.items[0].node)
            names = [each.value[1] if each.kind == "name" else "" for each in (target, item)]
            fits = len(inner.items) == 1 and folded(names[0]) in mine and folded(names[1]) == folded(tables[0].unit)
        if not fits:
            raise self.asked.refused(node.start, *SUBQUERY)
        rest = tuple(each for each in conditions if each not in same)
        return tables[0], replace(inner, where=Node("and", rest[0].start, rest) if rest else None)

    def refuse_distinct(self, query: SelectQuery) -> None:
        if query.distinct is not None:
            reason = "SELECT DISTINCT is not answered: rows are not shown"
            hint = "Count instead, for example SELECT a, COUNT(*) FROM t GROUP BY a."
            raise self.asked.refused(query.distinct, reason, hint)

    def asked_refused(self, source: From, reason: str) -> NoReturn:
        raise self.asked.refused(source.start, reason, JOINS)


def _name(name: str, qualifier: str | None = None, *, start: int = 0) -> Node:
    return Node("name", start, (), (qualifier, name))


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
    conditions = list(conjuncts(query.where))
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
            raise asked.refused(source.start, _BY_PERSON, JOINS)
        conditions.remove(mine)
        return replace(source, on=mine, kind="inner")

    source = change(query.source)
    if source is query.source:
        return query
    return replace(query, source=source, where=conjunction(conditions))


def tested(node: Node, inner: SelectQuery) -> Node:
    """Whether a person has a row that a question in brackets looks for, and HAVING holds of these rows."""
    start, zero = node.start, Node("number", node.start, (), Fraction(0))
    some = None if inner.where is None else qualified(inner.where, inner.source, None)
    found = Node(">", start, (Node("call", start, (Node("star", start),), ("COUNT", False)), zero))
    if inner.having is not None:
        found = Node("and", start, (found, qualified(inner.having, inner.source, None)))
    return filtered(found, some)


def _with_call(node: Node, call: Node) -> Node:
    """An aggregate, with its FILTER, of another function."""
    return replace(node, parts=(call, *node.parts[1:])) if node.kind == "filter" else call


def filtered(node: Node, where: Node | None) -> Node:
    """The aggregates of an expression, of these rows alone."""
    if where is None:
        return node
    if node.kind == "filter":
        both = Node("and", node.start, (node.parts[1], where))
        return replace(node, parts=(node.parts[0], both))
    if node.kind == "call" and node.value[0] in AGGREGATES:
        return Node("filter", node.start, (node, where))
    return replace(node, parts=tuple(filtered(each, where) for each in node.parts))


def qualified(node: Node, source: From, alias: str | None) -> Node:
    """A condition on a table under another name of the table."""
    if node.kind != "name":
        return replace(node, parts=tuple(qualified(each, source, alias) for each in node.parts))
    own = node.value[0] is None or folded(node.value[0]) == folded(source.alias or source.name or "")
    return replace(node, value=(alias, node.value[1])) if own else node


def nodes_of(source: From) -> list[From]:
    """The joins of a join."""
    return [] if source.joined is None else [source, *(node for each in source.joined for node in nodes_of(each))]


def leaves(source: From) -> list[From]:
    return [source] if source.joined is None else [leaf for each in source.joined for leaf in leaves(each)]


# A row for each person.


def made_by_person(scope: Scope, query: SelectQuery, by: Sequence[Node], alias: str) -> Scope:
    """The rows that a question makes of each person's rows, and what their columns are called; by: what it groups by
    beside the person."""
    if scope.made is not None or scope.absent:
        reason = "groups of each person are made of the rows of tables"
        raise scope.asked.refused(query.start, reason, "Leave the inner GROUP BY, or the LEFT JOIN, out.")
    if query.limit is not None or query.offset or query.qualify is not None:
        reason = "of the groups of single persons none is shown, so none is first"
        raise scope.asked.refused(query.start, reason, "Leave LIMIT and QUALIFY out.")
    where = chosen_rows(scope, query.where)
    scope = replace(scope, aliases=query.aliases)
    found = _Numbers(scope, query, by)
    items: dict[str, Node] = {}
    unit = None
    for item in query.items:
        if item.node.kind == "star":
            scope.refuse(item.node, "SELECT * is not answered", "Name the columns.")
        if scope.person(item.node):
            unit = item.alias
            continue
        found.wished = item.alias if item.node.kind in ("call", "filter") else None
        items[item.alias or named(scope, item)] = found.change(item.node)
    found.wished = None
    having = None if query.having is None else found.change(query.having)
    rows = max(each.rows for each in scope.tables)
    rows = max(rows, 1 if not scope.asked.several or scope.tables[0].everybody else 2)
    numbers = [replace(each, rows=rows) for each in found.numbers.values()]
    numbers = numbers or [PersonNumber("rows of a person", "sum", Fixed(1), rows)]
    made = PersonRows(found.keys, numbers, where)
    try:
        domain = made.domain(scope.domain)
    except ParameterError as error:
        raise scope.asked.refused(query.start, str(error), _HINT) from None
    tables = tuple(each if unit is None else replace(each, unit=unit) for each in scope.tables)
    inner = Scope(scope.asked, tables, domain, {"": {name: name for name in domain.names}}, made=made)
    names: dict[str, Meaning] = {
        name: node.value[1] if node.kind == "name" else Derived(node, inner) for name, node in items.items()
    }
    kept = EVERYTHING if having is None else condition(inner, having)
    return Scope(scope.asked, tables, domain, {alias: names}, kept, made=made, optional=scope.optional)


class _Numbers:
    """What a group of each person is made of."""

    def __init__(self, scope: Scope, query: SelectQuery, by: Sequence[Node]) -> None:
        self.scope, self.numbers = scope, dict[Any, PersonNumber]()
        self.keys, self.marks = list[PersonKey](), list[Any]()
        self.wished: str | None = None  # what the number that is read shall be called
        for node in by:
            meant = scope.aliases.get(folded(node.value[1]), node) if node.kind == "name" else node
            mark = signature(scope, meant)
            if mark in self.marks:
                continue
            key = grouped_by(scope, meant, written(node))
            kinds = {type(each) for each in key.labels}
            if (not isinstance(key.key, str) and kinds not in ({str}, {int})) or not key.labels:
                scope.refuse(node, "persons are not grouped by this", "Group by a column whose values are declared.")
            levels = () if isinstance(key.key, str) else key.labels
            called = key.key if isinstance(key.key, str) else self.free(key.name)
            self.keys.append(PersonKey(called, key.key, levels))
            self.marks.append(mark)

    def free(self, name: str) -> str:
        """A name that no column has."""
        taken = {*self.scope.domain.names, *(each.called for each in self.keys)}
        taken |= {each.called for each in self.numbers.values()}
        while name in taken:
            name += "'"
        return name

    def change(self, node: Node) -> Node:
        """An expression of a group of each person, with names for what is made of the person's rows."""
        scope = self.scope
        if node.kind == "select":
            scope.refuse(node, *SUBQUERY)
        if node.kind == "filter":
            return self.number(node, node.parts[0], rows_where(scope, node.parts[1]))
        if node.kind == "over" or node.kind == "within":
            scope.refuse(node, "this is not answered of each person", _HINT)
        if node.kind == "call" and node.value[0] in AGGREGATES:
            return self.number(node, node, EVERYTHING)
        if node.kind in COMPARISONS and (compared := self.average(node)) is not None:
            return compared
        mark = signature(scope, node)
        if mark in self.marks:
            return _name(self.keys[self.marks.index(mark)].called, start=node.start)
        if node.kind == "name":
            inner, meant = scope.through(node)
            if meant is not node and inner.aliases != scope.aliases:
                return self.change(meant)
            scope.refuse(node, f"{written(node)} is selected but not grouped by", "Group by it, or aggregate it.")
        return replace(node, parts=tuple(map(self.change, node.parts)))

    def average(self, node: Node) -> Node | None:
        """AVG(x) > c as SUM(x - c) > 0."""
        for place, each in enumerate(node.parts):
            other, start = node.parts[1 - place], each.start
            if each.kind == "call" and each.value == ("AVG", False) and len(each.parts) == 1 and other.kind == "number":
                less = Node("-", start, (each.parts[0], other))
                parts = [Node("call", start, (less,), ("SUM", False)), Node("number", start, (), Fraction(0))]
                return replace(node, parts=tuple(map(self.change, parts[:: 1 - 2 * place])))
        return None

    def number(self, node: Node, call: Node, where: Predicate) -> Node:
        """The name of an aggregate of a person's rows."""
        scope, (name, distinct) = self.scope, call.value
        if len(call.parts) != 1:
            scope.refuse(call, f"{name} is not answered of each person", _HINT)
        (target,) = call.parts
        if distinct or name in ("MIN", "MAX"):
            column = scope.column(target) if target.kind == "name" and not scope.person(target) else None
            coded = column is not None and column[1].coded and (distinct or column[1].ordered)
            if (distinct and not coded) or name not in ("MIN", "MAX", "COUNT"):
                scope.refuse(call, f"{written(call)} is not answered of each person", _HINT)
            function = {"MIN": "least", "MAX": "most"}.get(name, "different")
            of = column[0] if column is not None and coded else summed(scope, target)
            found = self.called(node, function, of, where)
            if function != "different" or where == EVERYTHING:
                return found
            # Of a person with rows, but none of those, COUNT is 0, and the number is missing.
            rows = self.called(node, "sum", Fixed(1), EVERYTHING)
            nothing = Node("*", node.start, (rows, _ZERO))
            return Node("call", node.start, (found, nothing), ("COALESCE", False))
        if name in ("COUNT", "COUNT_IF", "COUNTIF"):
            if name != "COUNT":
                where = combined(And, [where, rows_where(scope, target)])
            elif target.kind != "star":
                where = combined(And, [where, there(scope, target)])
            one = Fixed(1)
            return self.called(
                node, "sum", one if where == EVERYTHING else Choose([where], [one], Fixed(0)), EVERYTHING
            )
        if name == "SUM":
            return self.called(node, "sum", summed(scope, target), where)
        if name in ("AVG", "MEAN"):
            total = self.number(node, Node("call", call.start, call.parts, ("SUM", False)), where)
            many = self.number(node, Node("call", call.start, call.parts, ("COUNT", False)), where)
            return Node("/", node.start, (total, Node("call", node.start, (many, _ZERO), ("NULLIF", False))))
        scope.refuse(call, f"{name} is not answered of each person", _HINT)

    def called(self, node: Node, function: str, of: Value | str, where: Predicate) -> Node:
        mark = function, of, where
        if mark not in self.numbers:
            self.numbers[mark] = PersonNumber(self.free(self.wished or written(node)), function, of, 1, where)
        return _name(self.numbers[mark].called, start=node.start)
