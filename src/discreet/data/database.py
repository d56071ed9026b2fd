"""Several tables about the same persons: one neighbour relation, one number of persons, one ledger.

A person is everything that they have in all tables: two databases are neighbours if they differ in the rows of one
person, however many and in whichever tables. Each table says by its unit whose a row is, and keeps at most
`rows_per_unit` rows of a person.

A `View` is what questions are asked of: one table, or the rows of one table joined with tables that have at most one
row per person (`FROM visits JOIN people USING (person)`). A joined row belongs to one person and is a function of that
person's rows alone, so a view is a table of these persons like any other: with at most k rows of a person, k being that
of the table with several rows. docs/proofs/joined_rows.md has the theorem. Joins that would put rows of two persons
into one row are refused: there one person's rows could change any number of others.

The persons. Under replace-one their number is public, so it must be known who is one. `persons` names the table that
has one row for each person: rows of other tables about anybody else are left out. Without it a person is whoever has a
row in some table. A table other than that of the persons may hold nothing about somebody. If it keeps one row of a
person, "at most one" is then priced as at most two, since a replaced row and an added one differ in what they move.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from discreet.core import (
    Block,
    Codes,
    Neighbours,
    Paragraph,
    ParameterError,
    SchemaError,
    Sheet,
    Shown,
    exact,
    one_line,
)
from discreet.data.domain import Category, Column, Domain, near_misses
from discreet.data.ingest import HeldInMemory, Stored, facts_of, numbered
from discreet.data.rows import Facts, Identity, Texts, refuse_to_leave
from discreet.data.table import Table

JOIN = " join "

LEFT = " left join "
"""In the name of a view that has the rows of some tables, and beside each the rows of one more, or none."""


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What is public about one table of a database.

    key            the column that names the person
    rows_per_unit  how many rows of a person are kept
    """

    domain: Domain
    key: str
    rows_per_unit: int


class View(HeldInMemory):
    """The rows of one table of a database, or of tables joined by the person. Made by `Database.view`."""

    __slots__ = ("sources",)
    source: None
    _persons: Codes

    def __init__(
        self,
        facts: Facts,
        identity: Identity,
        sources: tuple[Path, ...],
        codes: Stored,
        persons: Codes,
        texts: Mapping[str, Texts],
    ) -> None:
        self.facts, self.identity, self.source, self.sources = facts, identity, None, sources
        self._codes, self._persons, self._texts, self._rows = codes, persons, texts, len(persons)


class Database(Shown):
    """Several tables about the same persons: Database([people, visits], name="clinic", persons="people").

    tables      Tables with a unit and different names
    neighbours  "replace-one" or "add-remove"; None: that of the tables, which have one
    name        what the ledger calls it
    persons     the name of the table that has one row for each person; None: everyone with a row somewhere is a person
    size        add-remove: a public number near that of the persons. replace-one: checked

    catalogue  what is public about each table, by its name
    identity   what a ledger is bound to
    """

    __slots__ = ("_everybody", "_kind", "_numbers", "_tables", "_views", "catalogue", "identity", "persons", "size")

    def __init__(
        self,
        tables: Iterable[Table],
        *,
        neighbours: str | None = None,
        name: str = "database",
        persons: str | None = None,
        size: int | None = None,
    ) -> None:
        self._tables, self._views = _by_name(tables), dict[tuple[str, ...], View]()
        self.persons = None if persons is None else self._known(persons)
        self._everybody, self._numbers = _everybody(self._tables, self.persons)
        self.catalogue = {
            each: TableFacts(table.facts.domain, table.identity.unit or "", table.facts.neighbours.rows)
            for each, table in self._tables.items()
        }
        if persons is not None and self.catalogue[persons].rows_per_unit != 1:
            raise ParameterError(f"the table of the persons, {persons!r}, has one row per person: rows_per_unit=1")
        identities = [table.identity for table in self._tables.values()]
        kinds = {neighbours} if neighbours is not None else {each.neighbours.kind for each in identities}
        if len(kinds) > 1 or len({each.rehearsal for each in identities}) > 1:
            raise ParameterError("the tables of a database have one neighbour relation, and are all real or made up")
        self._kind = Neighbours(kinds.pop()).kind
        unit = self.catalogue[persons or self.tables[0]].key
        relations = tuple((each, self._relation((each,))) for each in self._tables)
        self.identity = Identity(
            exact.text(name=name), Neighbours(self._kind), unit, identities[0].rehearsal, relations
        )
        domain = self.catalogue[self.tables[0]].domain
        self.size = facts_of(domain, self.identity, size=size, persons_found=self._everybody).size

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(self._tables)

    @property
    def sources(self) -> tuple[Path, ...]:
        """The files that the rows came from."""
        return self._sources_of(self._tables)

    def view(self, tables: str | Sequence[str]) -> View:
        """One table, or several joined by the person: view("visits"), view(("visits", "people")); or those of them with
        the rows of one more, or none: view("people left join visits")."""
        named = (tables,) if isinstance(tables, str) else tuple(tables)
        kept, _, other = JOIN.join(named).partition(LEFT)
        key = self._joinable(tuple(kept.split(JOIN)) if other else named)
        if other:
            self._joinable((*key, other))
        if (*key, other) not in self._views:
            self._views[*key, other] = self._left_joined(key, other) if other else self._joined(key)
        return self._views[*key, other]

    def column(self, tables: Sequence[str], table: str, column: str) -> str:
        """What a view of these tables calls a column of one of them: "table.column" if two tables have the name."""
        self.catalogue[self._known(table)].domain.column(column)
        having = [each for each in self._joinable(tuple(tables)) if column in self.catalogue[each].domain]
        return f"{table}.{column}" if len(having) > 1 else column

    __reduce_ex__ = refuse_to_leave
    __copy__ = refuse_to_leave
    __deepcopy__ = refuse_to_leave

    def __repr__(self) -> str:
        tables = ", ".join(f"{one_line(name)} of {len(each.domain)} columns" for name, each in self.catalogue.items())
        return f"<Database {one_line(self.identity.name)!r}: {tables}; {self._people}>"

    @property
    def _people(self) -> str:
        known = self.size is not None and self.identity.neighbours.replace_one
        return f"{f'{self.size:,} persons' if known else 'how many is private'}, {self.identity.neighbours.kind}"

    def sheet(self) -> Sheet:
        """What is declared about each table; never a row."""
        blocks: list[Block] = [Paragraph(f"{one_line(self.identity.name)}: {self._people}", "bold")]
        for name, each in self.catalogue.items():
            rows = f"at most {each.rows_per_unit} row{'' if each.rows_per_unit == 1 else 's'} per person"
            blocks += [Paragraph(f"{one_line(name)}, {rows}", "bold"), *each.domain.sheet().blocks]
        return Sheet(blocks)

    def _known(self, name: str) -> str:
        if name not in self._tables:
            near = near_misses(name, self._tables) or f" Tables: {', '.join(self._tables)}"
            raise SchemaError(f"there is no table {name!r}.{near}")
        return name

    def _joinable(self, named: tuple[str, ...]) -> tuple[str, ...]:
        """The tables in one order: that with several rows per person first. Refuses what is no join of persons."""
        for name in named:
            self._known(name)
        if not named:
            raise ParameterError("name at least one table")
        if len(set(named)) < len(named):
            raise ParameterError(
                f"a join of {named[0]!r} with itself puts rows of two persons into one row: one person could change "
                "any number of them, so no noise would hide them. Join tables by the person"
            )
        several = [name for name in named if self.catalogue[name].rows_per_unit > 1]
        if len(several) > 1:
            raise ParameterError(
                f"{several[0]!r} and {several[1]!r} both have several rows per person: their join multiplies them. "
                "Join one of them with tables of one row per person (rows_per_unit = 1)"
            )
        return (*several, *(name for name in self._tables if name in named and name not in several))

    def _joined(self, names: tuple[str, ...]) -> View:
        """The rows of the first table whose person has a row in every other one, with those rows beside them."""
        others, rows_of = names[1:], {name: self._tables[name]._held() for name in names}
        persons = self._numbers[names[0]][rows_of[names[0]].persons]  # -1: nobody
        places = {names[0]: np.arange(len(persons))}
        for other in others:
            place = np.full(self._everybody + 1, -1, dtype=np.int64)  # the last one is of nobody
            known = self._numbers[other][rows_of[other].persons]
            place[known] = np.arange(len(known))
            place[-1] = -1
            places[other] = place[persons]
        rows = np.flatnonzero(np.logical_and.reduce([persons >= 0, *(places[other] >= 0 for other in others)]))
        columns, held, texts, personal = dict[str, Column](), Stored(), dict[str, Texts](), list[str]()
        for name in names:
            for column, declared in self.catalogue[name].domain.items():
                called = self.column(names, name, column)
                personal += [called] if self.catalogue[name].rows_per_unit == 1 else []
                columns[called], held[called] = declared, rows_of[name].codes[column][places[name][rows]]
                texts[called] = rows_of[name].texts.get(column, ())
        relation, edition = self._relation(names), self._edition(names)
        facts = Facts(Domain(columns), relation, self.size, edition, JOIN.join(names), tuple(personal))
        return View(facts, self.identity, self._sources_of(names), held, persons[rows], texts)

    def _left_joined(self, names: tuple[str, ...], other: str) -> View:
        """The rows of a view, each beside every row of its person in another table, or once if there is none."""
        kept, rows = self._joined(names), self._tables[other]._held()
        persons = self._numbers[other][rows.persons]
        order = np.argsort(persons, kind="stable")
        starts, ends = (np.searchsorted(persons[order], kept._persons, side=side) for side in ("left", "right"))
        many = np.maximum(ends - starts, 1)
        row = np.repeat(np.arange(len(many)), many)
        place, there = (starts - np.cumsum(many) + many)[row] + np.arange(len(row)), (ends > starts)[row]
        place = np.append(order, -1)[np.where(there, place, -1)]
        held, texts = Stored(), dict(kept._texts)
        for name in kept.facts.domain:
            held[name] = kept._codes[name][row]
        more = left_columns(other, self.catalogue[other].domain, kept.facts.domain)
        for name, column in more.items():
            before = next((each for each in rows.codes if name in (each, f"{other}.{each}")), None)
            if before is None:
                held[name] = there.astype(np.int64)
                continue
            codes, shift = rows.codes[before].astype(np.int64), 0
            if column.free:
                shift = int(self.catalogue[other].domain[before].missing_code is None)
                texts[name] = [None] * shift + list(rows.texts[before])
            held[name] = np.where(there, np.append(codes, 0)[place] + shift, column.missing_code or 0)
        several = [each for each in (*names, other) if self.catalogue[each].rows_per_unit > 1]
        most = self.catalogue[several[0]].rows_per_unit if several else 1
        relation = priced_relation(self._kind, most, surely=names == (self.persons,))
        personal = (*kept.facts.personal, *([*more][-1:] if other in several else more))
        table, edition = JOIN.join(names) + LEFT + other, self._edition((*names, other))
        facts = Facts(Domain({**kept.facts.domain, **more}), relation, self.size, edition, table, personal)
        return View(facts, self.identity, self._sources_of((*names, other)), held, kept._persons[row], texts)

    def _sources_of(self, names: Iterable[str]) -> tuple[Path, ...]:
        """The files of some of the tables."""
        return tuple(source for name in names if (source := self._tables[name].source) is not None)

    def _relation(self, names: tuple[str, ...]) -> Neighbours:
        """By which relation a view is priced: the module's docstring says why one row may count as two."""
        surely = names == (self.persons,) or len(self._tables) == 1  # it has a row of every person
        return priced_relation(self._kind, self.catalogue[names[0]].rows_per_unit, surely=surely)

    def _edition(self, names: tuple[str, ...]) -> str | None:
        """What tells these rows from earlier ones: the editions of the tables, that of the persons included."""
        deciding = names if self.persons in (None, *names) else (*names, self.persons)
        editions = [self._tables[name].facts.edition for name in deciding if name is not None]
        return None if None in editions else " + ".join(map(str, editions))


def priced_relation(kind: str, rows: int, *, surely: bool) -> Neighbours:
    """The relation by which a table is priced that keeps so many rows of a person; surely: at least one of each."""
    return Neighbours(kind, rows if surely or kind != "replace-one" else max(2, rows))


def left_columns(table: str, domain: Domain, kept: Domain) -> dict[str, Column]:
    """What a left join adds to the columns that are kept: those of the table, which may be missing, and the last one,
    which says whether there is a row. Columns that cannot be missing are left out."""
    found: dict[str, Column] = {}
    for name, column in domain.items():
        called = f"{table}.{name}" if name in kept else name
        if column.categorical and column.missing_code is None:
            label = "no row"
            while label in column.levels:
                label += "'"
            found[called] = Category(*column.levels, other=column.other, missing=label)
        elif column.categorical:
            found[called] = column
        elif column.coded or column.free:
            ordered: Any = column
            found[called] = replace(ordered, missing=True)
    return {**found, f"{table}.*": Category(False, True)}


def _by_name(tables: Iterable[Table]) -> dict[str, Table]:
    """The tables by their names, if they can be tables of one database."""
    found: dict[str, Table] = {}
    for table in tables:
        if not isinstance(table, Table):
            raise ParameterError(f"a database is made of Tables, in memory, found a {type(table).__name__}")
        name = table.identity.name
        if table.identity.unit is None:
            raise ParameterError(f"table {name!r} must say whose a row is: Table(..., unit=..., rows_per_unit=...)")
        if name in found or JOIN in name:
            raise ParameterError(f"the tables of a database have different names without {JOIN!r}, found {name!r}")
        found[name] = table
    if not found:
        raise ParameterError("a database needs at least one table, found none")
    return found


def _everybody(tables: Mapping[str, Table], persons: str | None) -> tuple[int, dict[str, Codes]]:
    """How many persons there are; and for each table the numbers of the persons that it has, in the order of their
    identifiers, -1 for those who are no persons of the database."""
    ids = [table._held().ids for table in tables.values()]
    high, low = (np.concatenate([pair[side] for pair in ids]) for side in (0, 1))
    numbers = numbered(high, low)
    count, ends = int(numbers.max(initial=-1)) + 1, np.cumsum([len(pair[0]) for pair in ids])[:-1]
    found = dict(zip(tables, np.split(numbers, ends), strict=True))
    if persons is None:
        return count, found
    member = np.zeros(count, dtype=bool)
    member[found[persons]] = True
    place = np.where(member, np.cumsum(member) - 1, -1)
    return int(member.sum()), {name: place[each] for name, each in found.items()}
