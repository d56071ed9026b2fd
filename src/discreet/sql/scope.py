"""What names mean in a question: declared columns, and expressions that a question in brackets gave a name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn

from discreet.data import JOIN, LEFT, Column, Domain, near_misses
from discreet.query import EVERYTHING, PersonRows, Predicate
from discreet.sql.grammar import Node
from discreet.sql.source import Known, Source, character, folded, shown

_LONGEST = 60  # characters of a name that are compared with the declared ones
_NAMED = 10  # declared columns that a hint names


@dataclass(frozen=True, slots=True)
class Derived:
    """An expression that has a name, and where its own names are looked up."""

    node: Node
    scope: Scope


Meaning = str | Derived
"""A declared column of the table that is asked about, or an expression."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that can be used, under the qualifiers that may stand before them, and of which rows they are.

    tables    the declared tables that the rows come from: one, or two that are joined
    domain    the columns of these rows
    aliases   names of the select list: what they stand for where no column has the name
    absent    the names of a table that a LEFT JOIN may find nothing in, where only the rows are read that it finds
    optional  the table that a LEFT JOIN may find nothing in, where the other rows are there too
    marks     under the names of that table the column that says whether there is a row of it
    made      how the rows are made of each person's rows, if they are: the names are of these
    """

    asked: Source
    tables: tuple[Known, ...]
    domain: Domain
    names: Mapping[str, Mapping[str, Meaning]]
    where: Predicate = EVERYTHING
    aliases: Mapping[str, Node] = field(default_factory=dict)
    absent: frozenset[str] = frozenset()
    made: PersonRows | None = None
    optional: str | None = None
    marks: Mapping[str, str] = field(default_factory=dict)

    @property
    def about(self) -> tuple[str, ...]:
        """The tables as a view of them is called."""
        names = [each.name for each in self.tables if each.name != self.optional]
        if self.optional is None:
            return tuple(names)
        kept = sorted((each for each in self.asked.tables if each.name in names), key=lambda each: each.rows == 1)
        return (JOIN.join(each.name for each in kept) + LEFT + self.optional,)

    def mark(self, node: Node) -> str | None:
        """The column that says whether there is a row of this person; None if there always is one."""
        return self.marks.get(folded(node.value[0] or ""))

    def refuse(self, node: Node, reason: str, hint: str) -> NoReturn:
        raise self.asked.refused(node.start, reason, hint)

    @property
    def units(self) -> set[str]:
        """The columns that name persons."""
        return {folded(each.unit) for each in self.tables if each.unit is not None}

    def person(self, node: Node) -> bool:
        """Whether a node is the name of a column that names persons."""
        return node.kind == "name" and folded(node.value[1]) in self.units and not self.known(node.value[1])

    def meaning(self, node: Node) -> Meaning:
        """What a name stands for; of one that is not known, an odd character is named, or names near it."""
        qualifier, name = node.value
        found = self._found(node, qualifier, name)
        if found is not None:
            return found
        alias = self.aliases.get(folded(name)) if qualifier is None else None
        if alias is not None:
            return Derived(alias, replace(self, aliases={}))
        topic = self.asked.not_answered(node.start, name) if qualifier is None else None
        if topic is not None:
            raise topic
        declared = [each for names in self.names.values() for each in names]
        if folded(name) in self.units:
            reason = f"{shown(name)} names persons: no one of them is shown or compared"
            each = f"(SELECT {name}, COUNT(*) AS n FROM {self.tables[0].name} GROUP BY {name}) q"
            hint = (
                f"Count them: COUNT(DISTINCT {name}); or ask how many have each number: SELECT n, COUNT(*) FROM {each} "
            )
            self.refuse(node, reason, f"{hint}GROUP BY n.")
        strange = next((sign for sign in name if not sign.isascii()), None)
        if strange is not None:
            hint = f"Declared: {', '.join(map(ascii, declared[:_NAMED]))}."
            self.refuse(node, f"{shown(name)} is not a declared column; it holds {character(strange)}", hint)
        more = ", ..." if len(declared) > _NAMED else ""
        listed = f"Declared: {', '.join(map(shown, declared[:_NAMED]))}{more}."
        near = near_misses(name[:_LONGEST], declared).strip()
        self.refuse(node, f"column {shown(name)} is not declared", near or listed)

    def _found(self, node: Node, qualifier: str | None, name: str) -> Meaning | None:
        """The column of this name: spelled exactly so, or the only one that differs in case (of ASCII)."""
        within = {
            each: names for each, names in self.names.items() if qualifier is None or folded(each) == folded(qualifier)
        }
        if not within:
            may = " or ".join(map(shown, self.names))
            self.refuse(
                node, f"{shown(str(qualifier))} is not the table", f"Before a column may stand {may}, or nothing."
            )
        exactly = [names[name] for names in within.values() if name in names]
        alike = [
            each for names in within.values() for written, each in names.items() if folded(written) == folded(name)
        ]
        found = exactly or alike
        if len(found) > 1 and any(each != found[0] for each in found):
            if qualifier is None and len(self.names) > 1:
                may = ", ".join(f"{each}.{name}" for each in within)
                self.refuse(node, f"{shown(name)} is a column of both tables", f"Write {may}.")
            return None
        return found[0] if found else None

    def known(self, name: str) -> bool:
        """Whether a column has this name."""
        return folded(name) in {folded(written) for each in self.names.values() for written in each}

    def understood(self, name: str) -> bool:
        """Whether a column has this name, or a part of the select list was given it."""
        return self.known(name) or folded(name) in self.aliases or folded(name) in self.units

    def column(self, node: Node) -> tuple[str, Column] | None:
        """The declared column that a node names, if it names one and not an expression."""
        if node.kind != "name":
            return None
        found = self.meaning(node)
        if isinstance(found, str):
            return found, self.domain.column(found)
        return found.scope.column(found.node)

    def through(self, node: Node) -> tuple[Scope, Node]:
        """The node that a name stands for, and the scope of its names."""
        scope, found = self, node
        while found.kind == "name":
            meant = scope.meaning(found)
            if isinstance(meant, str):
                break
            scope, found = meant.scope, meant.node
        return scope, found

    def columns_of(self, node: Node, seen: Callable[[str], None]) -> None:
        """Say which declared columns are below a node."""
        scope, found = self.through(node)
        if found.kind == "name":
            meant = scope.meaning(found)
            assert isinstance(meant, str)
            seen(meant)
        for part in found.parts:
            scope.columns_of(part, seen)
