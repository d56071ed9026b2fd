"""Questions about the answer of another question: after the noise, they choose, sort and gather its groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from discreet.sql.expressions import Exactly, Expression, KeyOf, Made, Total
from discreet.sql.grammar import SUBQUERY, From, Node, SelectQuery
from discreet.sql.naming import SHAPES, calls, ordinal, written
from discreet.sql.over_groups import Gathered
from discreet.sql.released import WINDOW_HINT, Sentences, all_of
from discreet.sql.scope import Scope
from discreet.sql.source import AGGREGATES, Source, folded, shown
from discreet.sql.statement import OutputColumn, Statement
from discreet.sql.values import GroupedBy


class Outer(Sentences):
    """The select list of a question about the answer of another one."""

    def __init__(
        self, asked: Source, inner: Statement, source: From, one_number: Callable[[Node, tuple[str, ...]], Expression]
    ) -> None:
        self.one_number = one_number
        self.inner, self.known = inner, {folded(output.name): output for output in inner.outputs}
        unknown = (GroupedBy("", (), "") for _ in inner.gathers or ())  # their labels are not listed
        self.keys, self.by = inner.keys if inner.gathers is None else tuple(unknown), list[Any]()
        self.gathering = False  # what is read is of the gathered groups, not of those of the inner question
        self.alias = folded(source.alias or source.name or "")
        table = asked.tables[0]
        self.scope = Scope(asked, (), table.domain, {})

    def named(self, node: Node) -> Expression | None:
        if self.gathering and self.mark(node) in self.by:
            return KeyOf(self.by.index(self.mark(node)))
        if (node.kind == "call" and node.value[0] in AGGREGATES) or node.kind in ("filter", "within"):
            before = self.gathering, self.keys
            self.gathering, self.keys = False, self.inner.keys
            made = self.gathered(node)
            self.gathering, self.keys = before
            return made
        if node.kind == "select" and self.gathering:
            self.scope.refuse(node, *SUBQUERY)
        if node.kind == "select":
            return self.one_number(node, self.inner.tables)
        if node.kind != "name":
            return None
        qualifier, name = node.value
        found = self.known.get(folded(name))
        if found is None or (qualifier is not None and folded(qualifier) != self.alias):
            hint = f"It has {', '.join(shown(output.name) for output in self.inner.outputs)}."
            self.scope.refuse(node, f"the question in brackets has no column {shown(name)}", hint)
        if self.gathering:
            self.scope.refuse(node, f"{shown(name)} is selected but not grouped by", "Group by it, or aggregate it.")
        return found.expression

    def mark(self, node: Node) -> Any:
        """What makes two expressions the same here."""
        parts = tuple(map(self.mark, node.parts))
        return node.kind, folded(node.value[1]) if node.kind == "name" else node.value, parts

    def gathered_by(self, query: SelectQuery) -> tuple[Expression, ...]:
        """What the groups of the inner question are grouped by."""
        nodes = list(query.group or ()) or [item.node for item in query.items if not calls(item.node)]
        aliases = {folded(item.alias): item.node for item in query.items if item.alias is not None}
        meant = [ordinal(self.scope.asked, query.items, each).node if each.kind == "number" else each for each in nodes]
        meant = [
            aliases.get(folded(each.value[1]), each)
            if each.kind == "name" and folded(each.value[1]) not in self.known
            else each
            for each in meant
        ]
        found = tuple(self.expression(each) for each in meant)
        for node, each in zip(nodes, found, strict=True):
            if any(part.aggregate for part in each.walk()):
                reason = "groups of another question are grouped by what it is grouped by, not by its numbers"
                self.scope.refuse(node, reason, "Which group has which number is not known exactly.")
        self.by, known = [self.mark(each) for each in meant], list[GroupedBy]()
        for node, each in zip(meant, found, strict=True):
            labels = dict.fromkeys(value for (value,) in self.labelled(node, [each])[1].values())
            known.append(GroupedBy(written(node), tuple(labels), written(node)))
        self.gathering, self.keys = True, tuple(known)
        return found

    def gathered(self, node: Node) -> Expression:
        """An aggregate of the groups of the question in brackets."""
        name = {"MEAN": "AVG"}.get(node.value[0], node.value[0]) if node.kind == "call" else ""
        if name not in ("SUM", "AVG", "MIN", "MAX", "COUNT") or node.value[1] or len(node.parts) != 1:
            reason = "of the groups of another question only SUM, AVG, MIN, MAX and COUNT are answered"
            self.scope.refuse(node, reason, "Ask the inner question alone.")
        if any(map(calls, node.parts)):
            self.scope.refuse(node, "an aggregate inside another is not answered", SHAPES)
        inner = Exactly(1) if node.parts[0].kind == "star" else self.expression(node.parts[0])
        counts = (output.expression for output in self.inner.outputs)
        return Gathered(
            name, inner, tuple(each for each in counts if isinstance(each, Total) and each.question.counting)
        )

    def statement(self, query: SelectQuery) -> Statement:
        gathers = [calls(item.node) for item in query.items]
        again = self.inner.gathers is not None and (query.group is not None or any(gathers))
        if (query.having is not None and query.group is None) or query.qualify is not None or again:
            reason = "this is not answered of the groups of another question"
            raise self.scope.asked.refused(query.start, reason, SHAPES)
        if query.group is None and any(gathers) and (not all(gathers) or query.order):
            reason = "aggregates of the groups of another question stand by themselves"
            raise self.scope.asked.refused(query.start, reason, "Leave the other columns and ORDER BY out.")
        windows = [each for item in query.items for each in item.node.walk() if each.kind == "over"]
        if windows and query.where is not None:
            self.scope.refuse(windows[0], "a window and a condition on groups do not stand together here", WINDOW_HINT)
        chosen, outputs = self.where(query), list[OutputColumn]()
        by = self.gathered_by(query) if query.group is not None else () if any(gathers) else None
        self.gathering = by is not None
        for item in query.items:
            if item.node.kind == "star":
                outputs += self.inner.outputs
                continue
            expression = self.expression(item.node)
            same = next((each for each in self.inner.outputs if each.expression is expression), None)
            name = item.alias or (same.name if same is not None else written(item.node))
            outputs.append(OutputColumn(name, expression, same.unit if same is not None else ""))
        items = tuple(item for item in query.items if item.node.kind != "star")
        order = (
            self.sorted_by(replace(query, items=items), outputs)
            if len(items) == len(query.items)
            else self.sorted_by(replace(query, items=()), outputs)
        )
        limited = query.limit is not None or query.offset
        limit, offset = (query.limit, query.offset) if limited else (self.inner.limit, self.inner.offset)
        kept = self.inner.order if by is None else ()
        made = replace(self.inner, outputs=tuple(outputs), order=order or kept, limit=limit, offset=offset)
        if made.gathers is not None:
            return replace(made, then=self.both(made.then, chosen))
        then = None if query.having is None else self.truth(query.having)
        return replace(made, qualify=self.both(made.qualify, chosen), then=then, gathers=by)

    def both(self, *conditions: Expression | None) -> Expression | None:
        """The condition that all of these hold."""
        found = tuple(each for each in conditions if each is not None)
        if len(found) < 2:
            return found[0] if found else None
        scope, node = self.scope, Node("and", 0)
        return Made(lambda *values: all_of(scope, node, *values), found, truth=True, kind="and")

    def where(self, query: SelectQuery) -> Expression | None:
        return None if query.where is None else self.truth(query.where)
