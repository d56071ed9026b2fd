"""What is declared about a table, in a small TOML file that its owner writes and anybody may read.

    name = "people"                     # what SQL calls the table, and what its ledger is bound to
    data = "people.parquet"             # beside this file, or a path of its own; or "postgresql://HOST/DATABASE" or
                                        # "duckdb:FILE", with relation = "people" (and version = "people_version");
                                        # or a folder or "visits/*.parquet", with engine = "processes" or "spark"
                                        # (and stage = "FOLDER" that all workers see); or "s3a://BUCKET/*.parquet",
                                        # with engine = "spark"
    ledger = "people.ledger"            # or "postgresql://HOST/DATABASE?ledger=people"
    neighbours = "replace-one"          # how many people there are is public; "add-remove" hides it
    each_row_is_a_person = true         # or unit = "person" and rows_per_unit = 5
    edition = "2026-11"                 # of the rows; a new one whenever rows are added, removed or corrected

    [columns.age]
    kind = "number"
    low = 0
    high = 120
    step = 1

    [columns.town]
    kind = "category"
    levels = ["north", "south"]
    other = "elsewhere"                 # takes every value that is not a level
    missing = "unknown"                 # takes nulls; for a number: missing = true

    [columns.income]
    kind = "any number"                 # bounds are not known: for `suggest-bounds` and quantiles

    [columns.day]
    kind = "date"                       # or "timestamp", with a step of "second" to "year"
    low = 1974-01-01
    high = 1978-12-31
    step = "day"                        # or "week", "month", "year"

    [columns.city]
    kind = "text"                       # values that cannot be listed; length = 100 characters are kept

A table that grows has its epochs, for example months, in a file each:

    data = "months/{epoch}.parquet"     # months/2026-01.parquet, months/2026-02.parquet, ...

    [epochs]
    column = "month"                    # a declared date or number: in which epoch a row arrived
    per_person = 1                      # epochs of a person that count; with 1, each epoch has a budget of its own

    [columns.month]
    kind = "date"
    low = 2026-01-01
    high = 2035-12-01
    step = "month"

Several tables about the same people have one file, one ledger and one number of persons:

    name = "clinic"
    ledger = "clinic.ledger"
    neighbours = "replace-one"
    persons = "people"                  # the table with one row per person; without it, everyone who has a row anywhere

    [tables.people]
    data = "people.parquet"
    unit = "person"
    rows_per_unit = 1
    edition = "1"
    [tables.people.columns.age]
    kind = "number"

    [tables.visits]
    ...

A schema is public, so nothing in it may come from the rows. `draft` therefore reads a CSV file's header or the names
and types in a Parquet file's footer, never a value and never the statistics that a footer also holds, and leaves
FILL IN where the owner has to say what is known without looking. Decimals are exact: 0.1 is one tenth.
"""

from __future__ import annotations

import glob
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from discreet.core import (
    DiscreetError,
    Neighbours,
    Pairs,
    Paragraph,
    ParameterError,
    SchemaError,
    Sheet,
    Shown,
    exact,
    one_line,
)
from discreet.data import (
    FIRST_EDITION,
    AnyNumber,
    Category,
    Column,
    Database,
    DatabaseRows,
    Date,
    Domain,
    FilesTable,
    GrowingTable,
    Identity,
    Number,
    ParquetTable,
    Processes,
    Scan,
    Spark,
    SparkTable,
    StoredFiles,
    Table,
    Text,
    Timestamp,
    View,
    checked_edition,
    epoch_column,
    epoch_label,
    is_address,
    near_misses,
    parquet_types,
    priced_relation,
    require_columns,
    stored_frame,
    this_session,
)
from discreet.ledger import Address, Ledger, sidecar_path
from discreet.rehearsal import PEOPLE, made_up, made_up_epochs, made_up_tables

FILL_IN = "FILL IN"
_IN_MEMORY = 2**28  # a Parquet file of more bytes is read again for every sum instead of being held in memory
_DEEP = re.compile(r"""(?<![\w.-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){65}""")
_LARGEST = 2**26  # bytes of a schema
_KEYS = (
    *("name", "data", "relation", "version", "engine", "stage", "ledger", "edition", "neighbours"),
    *("each_row_is_a_person", "unit", "rows_per_unit", "size", "columns", "epochs"),
)
_EPOCH_KEYS = ("column", "per_person")
_EPOCH = "{epoch}"  # in the name of a file
_DATABASE_KEYS = ("name", "ledger", "neighbours", "persons", "size", "tables")
_TABLE_KEYS = ("data", "edition", "unit", "rows_per_unit", "columns")
_KINDS: dict[str, type] = {
    "number": Number,
    "category": Category,
    "date": Date,
    "timestamp": Timestamp,
    "any number": AnyNumber,
    "text": Text,
}
_COLUMN_KEYS = {
    "number": ("low", "high", "step", "missing"),
    "category": ("levels", "other", "missing"),
    "date": ("low", "high", "step", "missing"),
    "timestamp": ("low", "high", "step", "missing"),
    "any number": ("missing",),
    "text": ("length", "missing"),
}
_ENGINES = ("processes", "spark")
_NEEDED = {"number": ("low", "high", "step"), "date": ("low", "high"), "timestamp": ("low", "high")}


@dataclass(frozen=True, slots=True, repr=False)
class Schema(Shown):
    """A table's declaration: Schema.read("people.toml").table().

    unit, rows_per_unit  the column that names a person and how many rows of a person are kept; None: a row is a person
    size                 the public number of persons, if it is declared; under replace-one it is checked
    data, ledger         where the rows and the ledger are, if the file says so
    edition              the label of the rows: a session answers from releases about the same edition only
    engine, stage        what reads many Parquet files, "processes" or "spark", and the folder for codes that it stages
    within               the declaration of all tables, if there are several about the same people
    epochs, per_person   of a table that grows: the column of the epoch, and how many epochs of a person count; `data`
                         then has {epoch} in its name
    """

    name: str
    domain: Domain
    neighbours: str = "replace-one"
    unit: str | None = None
    rows_per_unit: int | None = None
    size: int | None = None
    data: Path | DatabaseRows | StoredFiles | None = None
    ledger: Path | Address | None = None
    edition: str = FIRST_EDITION
    engine: str | None = None
    within: DatabaseSchema | None = field(default=None, repr=False, compare=False)
    epochs: str | None = None
    per_person: int = 1
    stage: Path | None = None

    @staticmethod
    def read(path: str | os.PathLike[str], table: str | None = None) -> Schema:
        """The schema in this file, or of this table in it; SchemaError says what is missing or wrong, and where."""
        return read_schema(path).table_schema(table)

    def table_schema(self, name: str | None = None) -> Schema:
        """This one: it is of one table."""
        if name not in (None, self.name):
            raise SchemaError(f"there is no table {name!r}: the schema is of {self.name!r} alone")
        return self

    def table(self, data: str | os.PathLike[str] | None = None) -> Any:
        """The rows of the file, read as declared here. A large Parquet file stays on the disk, a database where it is.

        Of several tables about the same people all are read: together they say who is a person. Of a table that grows
        those epochs are read that its ledger has.
        """
        if self.epochs is not None:
            if data is not None or self.ledger is None:
                raise ParameterError("a table that grows says in its schema where its epochs are, and its ledger")
            return self.grown(Ledger.open(self.ledger, look=True).epochs)
        if self.within is not None:
            if data is not None:
                raise ParameterError("of several tables the schema says where the rows are: it names the file of each")
            return self.within.with_table(self).database().view(self.name)
        return self.own_table(data)

    def grown(self, epochs: Sequence[object]) -> GrowingTable:
        """The rows of these epochs of a table that grows, each from its own file."""
        if self.epochs is None:
            raise ParameterError(f"{self.name!r} does not grow: its schema has no [epochs]")
        if not epochs:
            raise ParameterError("the table has no epoch yet: `discreet ledger add SCHEMA EPOCH` adds one")
        files = {each: self._file_of(each) for each in self.epoch_labels(epochs)}
        return GrowingTable(files, self.domain, column=self.epochs, **self._growing())

    def epoch_labels(self, epochs: Sequence[object]) -> list[str]:
        """These epochs as their column spells them."""
        return [epoch_label(self.domain, self.epochs or "", each) for each in epochs]

    def _file_of(self, label: str) -> Path:
        """The file of an epoch: of a month 2026-01, of a year 2026."""
        column = epoch_column(self.domain, self.epochs or "")
        short = {"month": label[:7], "year": label[:4]}.get(column.step, label) if column.calendar else label
        return Path(str(self.data).replace(_EPOCH, short))

    def _growing(self) -> dict[str, Any]:
        names = ("name", "neighbours", "unit", "rows_per_unit")
        return {**{name: getattr(self, name) for name in names}, "epochs_per_unit": self.per_person}

    @property
    def growing_identity(self) -> Identity:
        """What the ledger of a table that grows is bound to, before there is any epoch."""
        relation = Neighbours(self.neighbours, (self.rows_per_unit or 1) * self.per_person)
        return Identity(self.name, relation, self.unit, epochs=self.per_person)

    def own_table(self, data: str | os.PathLike[str] | None = None) -> Any:
        """The rows of this file, or of this database, as if there were no other table."""
        source = self.data if data is None else self._place(data)
        if source is None:
            raise ParameterError('where are the rows? Add data = "people.parquet" to the schema, or name the file')
        if isinstance(source, DatabaseRows):
            from discreet.data.sql_table import SqlTable

            return SqlTable(source.address, source.relation, self.domain, version=source.version, **self.declared())
        if isinstance(source, StoredFiles):
            return SparkTable(stored_frame(source.name), self.domain, **self.declared())
        if self.engine is not None or source.is_dir() or _is_pattern(source):
            run = Spark(this_session()) if self.engine == "spark" else Processes(os.cpu_count() or 1)
            return FilesTable(source, self.domain, run=run, stage=self.stage, **self.declared())
        large = source.suffix.lower() == ".parquet" and source.is_file() and source.stat().st_size > _IN_MEMORY
        kind: Callable[..., Table | ParquetTable] = ParquetTable if large else Table
        return kind(source, self.domain, **self.declared())

    @property
    def pass_seconds(self) -> float:
        """About what a pass over the rows costs before the first one is read, as the table will say it."""
        if isinstance(self.data, StoredFiles):
            return Spark.frame_seconds
        many = isinstance(self.data, Path) and (self.data.is_dir() or _is_pattern(self.data))
        engine = Spark if self.engine == "spark" else Processes
        return engine.pass_seconds if self.engine is not None or many else 0.0

    def _place(self, data: str | os.PathLike[str]) -> Path | DatabaseRows | StoredFiles:
        """Another place of the rows; of the relation in a database the schema knows the name."""
        if not is_address(data):
            return Path(data)
        if (stored := StoredFiles.of(str(data), self.engine)) is not None:
            return stored
        named = self.data if isinstance(self.data, DatabaseRows) else None
        relation = (self.name,) if named is None else named.relation
        return DatabaseRows.of(str(data), relation, None if named is None else named.version, Path())

    def rehearsal(self, people: int = PEOPLE, epochs: Sequence[str] = ()) -> Table | View | GrowingTable:
        """Made-up people with this declaration (`discreet.rehearsal`); of a table that grows, in these epochs."""
        if self.epochs is not None:
            column = epoch_column(self.domain, self.epochs)
            some = epochs or [column.text(code) for code in range(min(3, column.size))]
            return made_up_epochs(self.domain, some, column=self.epochs, people=people, **self._growing())
        if self.within is not None:
            return self.within.with_table(self).rehearsal(people).view(self.name)
        return made_up(self.domain, people=people, **self.declared())

    @property
    def tables(self) -> tuple[Schema, ...]:
        """The tables that it declares: this one."""
        return (self,)

    @property
    def sources(self) -> tuple[Path, ...]:
        """The files of rows that the schema names; of a table that grows, those of all epochs."""
        file = self.data if self.data is None or isinstance(self.data, Path) else self.data.file
        return () if file is None else files_of(Path(str(file).replace(_EPOCH, "*")))

    @property
    def relation(self) -> Neighbours:
        """The relation by which releases about this table are priced."""
        several, rows = self.within, self.rows_per_unit or 1
        surely = several is None or several.persons == self.name or len(several.tables) == 1
        return priced_relation(self.neighbours, rows, surely=surely)

    def declared(self) -> dict[str, Any]:
        """What a table takes besides its rows and its columns."""
        names = ("name", "neighbours", "unit", "rows_per_unit", "size", "edition")
        return {name: getattr(self, name) for name in names}

    def columns_sheet(self) -> Sheet:
        """The columns, and the files."""
        files = [(name, path.name) for name in ("data", "ledger") if (path := getattr(self, name)) is not None]
        edition = f"edition {one_line(self.edition)}" if self.epochs is None else f"epochs by {one_line(self.epochs)}"
        head = Paragraph(f"{one_line(self.name)}, {edition}", "bold")
        return Sheet.of(head, *self.domain.sheet().blocks, Pairs(files) if files else "")

    def sheet(self) -> Sheet:
        """What is declared, and what is protected by it."""
        return Sheet.of(*self.columns_sheet().blocks, self.protects())

    def __repr__(self) -> str:
        return f"<Schema {one_line(self.name)!r}: {len(self.domain)} columns, {self.neighbours}>"

    def protects(self) -> str:
        """What is protected and what is not, in words, for those whose rows these are."""
        relation = Neighbours(self.neighbours, self.rows_per_unit or 1)
        whose = (
            "A row is a person: a person with several rows is protected for each row alone, not for all together."
            if self.unit is None
            else f"A person is identified by {self.unit!r}, with at most {relation.rows} rows that are used."
        )
        count = (
            "Public: how many persons there are, and everything in the schema."
            if relation.replace_one
            else "Public: everything in the schema. How many persons there are is protected."
        )
        names = one_line(", ".join(self.domain.names))
        if self.epochs is not None:
            count += f" {_EPOCHS_IN_WORDS[self.per_person > 1].format(m=self.per_person)}"
            if relation.replace_one:
                count += " In which epochs a person has rows is not protected."
        return (
            f"Protected: what the rows of a person say ({names}), against everyone who sees the "
            f"releases. {whose} {count} Not protected: what follows about a person from facts about everybody, and "
            "whatever is released about the same people without this ledger."
        )


_EPOCHS_IN_WORDS = {
    False: "The table grows: a person is in the first epoch that has rows of theirs, and the budget is the promise to "
    "that person, however many epochs follow.",
    True: "The table grows: the first {m} epochs of a person count, with so many rows in each, and the budget is the "
    "promise for all of them together.",
}


@dataclass(frozen=True, slots=True, repr=False)
class DatabaseSchema(Shown):
    """The declaration of several tables about the same people: DatabaseSchema.read("clinic.toml").database().

    tables   the declaration of each; their relation, size and ledger are those of all
    persons  the name of the table that has one row for each person; None: everyone with a row in some table is one
    """

    name: str
    tables: tuple[Schema, ...]
    neighbours: str = "replace-one"
    persons: str | None = None
    size: int | None = None
    ledger: Path | Address | None = None

    epochs: ClassVar[None] = None
    """Several tables do not grow."""

    @staticmethod
    def read(path: str | os.PathLike[str]) -> DatabaseSchema:
        """The schema in this file, which must be one of several tables."""
        found = read_schema(path)
        if not isinstance(found, DatabaseSchema):
            raise SchemaError(f"{Path(path).name} is of one table: Schema.read reads it")
        return found

    def sheet(self) -> Sheet:
        """What is declared about each table, and what is protected by it."""
        tables = [block for each in self.tables for block in each.columns_sheet().blocks]
        return Sheet.of(Paragraph(one_line(self.name), "bold"), *tables, str(self.protects()))

    def __repr__(self) -> str:
        return f"<DatabaseSchema {one_line(self.name)!r}: {len(self.tables)} tables, {self.neighbours}>"

    @property
    def edition(self) -> str:
        """The editions of the tables."""
        return ", ".join(f"{each.name} {each.edition}" for each in self.tables)

    @property
    def sources(self) -> tuple[Path, ...]:
        """The files of rows that the schema names."""
        return tuple(source for each in self.tables for source in each.sources)

    def table_schema(self, name: str | None = None) -> Schema:
        """The declaration of one of the tables."""
        names = [each.name for each in self.tables]
        if name is None:
            raise SchemaError(f"which table is meant? Name one of {', '.join(names)}, on the command line by --table")
        if name not in names:
            near = near_misses(name, names) or f" Tables: {', '.join(names)}"
            raise SchemaError(f"there is no table {name!r} in the schema.{near}")
        return replace(self.tables[names.index(name)], ledger=self.ledger, within=self)

    def with_table(self, schema: Schema) -> DatabaseSchema:
        """The same with this declaration of a table."""
        return replace(self, tables=tuple(schema if each.name == schema.name else each for each in self.tables))

    def database(self) -> Database:
        """The rows of all tables, held in memory."""
        tables = []
        for each in self.tables:
            if not isinstance(each.data, Path):
                raise ParameterError(f'where are the rows? Add data = "{each.name}.parquet" to [tables.{each.name}]')
            # A table may be empty where the database is not, so the relation is that of the database alone.
            tables.append(Table(each.data, each.domain, **{**each.declared(), "neighbours": "add-remove"}))
        declared = {"neighbours": self.neighbours, "persons": self.persons, "size": self.size}
        return Database(tables, name=self.name, **declared)  # type: ignore[arg-type]

    def rehearsal(self, people: int = PEOPLE, epochs: Sequence[str] = ()) -> Database:
        """Made-up people with this declaration, with made-up rows in every table."""
        made = made_up_tables([(each.domain, each.declared()) for each in self.tables], people=people)
        size = None if self.neighbours == "replace-one" else self.size
        return Database(made, neighbours=self.neighbours, name=self.name, persons=self.persons, size=size)

    def protects(self) -> str:
        """What is protected and what is not, in words, for those whose rows these are."""
        tables = "; ".join(
            f"{each.name}, at most {each.rows_per_unit} row{'' if each.rows_per_unit == 1 else 's'} per person: "
            f"{one_line(', '.join(each.domain.names))}"
            for each in self.tables
        )
        who = (
            f"everyone who has a row in {self.persons}"
            if self.persons
            else "everyone who has a row in one of the tables"
        )
        public = "how many persons there are, and " if self.neighbours == "replace-one" else ""
        hidden = "" if public else " How many persons there are is protected."
        return (
            f"Protected: what all rows of a person in all tables say together ({tables}), against all who see the "
            f"releases. A person is {who}. Public: {public}everything in the schema.{hidden} Not protected: what "
            "follows about a person from facts about everybody, and whatever is released about the same people without "
            "this ledger."
        )


def read_schema(path: str | os.PathLike[str]) -> Schema | DatabaseSchema:
    """The schema in this file, of one table or of several."""
    where = Path(path)
    text = _text_of(where)
    if _DEEP.search(text):  # the parser would take very long for it
        raise SchemaError(f"{where.name} has a key of more than 64 parts: a schema has tables [columns.NAME] only")
    try:
        declared = tomllib.loads(text, parse_float=lambda digits: exact.number(number=digits))
    except ValueError as error:  # not TOML, or a number that is not finite
        raise SchemaError(f"{where.name} is not TOML: {error}") from None
    except RecursionError:
        raise SchemaError(f"{where.name} is nested too deep: a schema has tables [columns.NAME] only") from None
    try:
        return _database_schema(declared, where.parent) if "tables" in declared else _schema(declared, where.parent)
    except DiscreetError as error:
        raise SchemaError(f"{where.name}: {error}") from None


def read_with_ledger(path: str | os.PathLike[str]) -> tuple[Schema | DatabaseSchema, Path | Address]:
    """The schema in this file, and the ledger that it must name."""
    where, schema = Path(path), read_schema(path)
    if schema.ledger is None:
        raise ParameterError(f'{where.name} names no ledger: add ledger = "{where.stem}.ledger" to it')
    return schema, schema.ledger


def require_ledger(schema: Schema | DatabaseSchema, where: Path | Address, path: Path, instead: str = "") -> None:
    """Refuse a ledger that is not there. path: of the schema; instead: what works without a ledger."""
    if Ledger.exists(where):
        return
    for source in schema.sources:
        if sidecar_path(source).exists():
            raise ParameterError(
                f"there is no ledger at {where.name}, and {source.name} had one: restore it from a backup"
            )
    make = f"`discreet ledger create {path} --epsilon 1 --delta 1e-6` makes one"
    raise ParameterError(f"there is no ledger at {where.name} yet: {make}{instead}")


def draft(*paths: str | os.PathLike[str]) -> str:
    """The text of a schema for data files, from the names (and, in Parquet, the types) of their columns alone."""
    sources = [Path(path) for path in paths]
    names = [source.stem if source.stem.isidentifier() else "people" for source in sources]
    if len(set(names)) < len(names):
        raise ParameterError(f"several tables need files of different names, found {', '.join(map(repr, names))}")
    files = " and ".join(one_line(source.name) for source in sources)
    shown = [f"# What is public about {files}. Nothing here may come from looking at the rows:", *_ADVICE]
    if any(source.suffix.lower() == ".csv" for source in sources):
        shown += _CSV_ADVICE
    several = len(sources) > 1
    name = "database" if several else names[0]
    shown += [
        "",
        f"name = {_quoted(name)}",
        *([] if several else [f"data = {_quoted(sources[0].name)}"]),
        f"ledger = {_quoted(name + '.ledger')}",
        *([] if several else [_EDITION]),
        'neighbours = "replace-one"          # how many people there are is public; "add-remove" hides it',
        "# size = 5000                       # add-remove: a public number near theirs, which sessions and models need",
        *(_WHO if not several else _WHO_OF_SEVERAL),
    ]
    for table, source in zip(names, sources, strict=True):
        if several:
            shown += ["", f"[tables.{_key(table)}]", f"data = {_quoted(source.name)}", _EDITION, *_WHOSE]
        shown += _drafted_columns(source, f"tables.{_key(table)}.columns" if several else "columns")
    return "\n".join([*shown, ""])


def draft_relation(address: str, relation: Sequence[str]) -> str:
    """The text of a schema for a relation in a database, from the names and types of its columns alone."""
    from discreet.data.sql_table import relation_kinds

    rows = DatabaseRows.of(address, relation or None, None, Path())
    name = rows.relation[-1] if rows.relation[-1].isidentifier() else "people"
    quoted = [_quoted(part) for part in rows.relation]
    shown = [
        f"# What is public about {one_line(rows.name)}. Nothing here may come from looking at the rows:",
        *_ADVICE,
        "",
        f"name = {_quoted(name)}",
        f"data = {_quoted(rows.address)}",
        f"relation = {quoted[0] if len(quoted) == 1 else '[' + ', '.join(quoted) + ']'}",
        '# version = "people_version"        # replace-one: a relation of one row that changes with the rows',
        f"ledger = {_quoted(name + '.ledger')}",
        _EDITION,
        'neighbours = "add-remove"           # "replace-one" makes the number of people public; it needs size, version',
        "# size = 5000                       # add-remove: a public number near theirs; replace-one: their number",
        *_WHO,
    ]
    for column, kind in relation_kinds(rows.address, rows.relation).items():
        shown += ["", f"[columns.{_key(column)}]", *_drafted(kind)]
    return "\n".join([*shown, ""])


_ADVICE = (
    "# write what is known without them (a questionnaire's answers, the law, physics). Replace every FILL IN,",
    "# and remove columns that are not needed. `discreet schema FILE.toml` checks what is filled in so far.",
)
_CSV_ADVICE = (
    "# The names are the first line of the file: if that line is a row about a person, add a line of names above it.",
    "# What a column holds (a file of text does not say it), each line on its own:",
    '#   kind = "number"      low = 0  high = 120  step = 1  (missing = true)',
    '#   kind = "category"    levels = ["north", "south"]  (other = "elsewhere", missing = "unknown")',
    '#   kind = "date"        low = 1974-01-01  high = 1978-12-31  step = "day"  (or "timestamp")',
    '#   kind = "any number"  nothing more: its bounds are not known',
    '#   kind = "text"        nothing more: its values are not known',
)
_EDITION = f'edition = "{FIRST_EDITION}"                       # of the rows; another one when the file changes'
_WHO = (
    f'each_row_is_a_person = "{FILL_IN}"   # true; or instead of this line:',
    '# unit = "person"                   # the column that names a person',
    "# rows_per_unit = 5                 # this many rows per person are used, chosen at random",
)
_WHO_OF_SEVERAL = (
    f'persons = "{FILL_IN}"                # the table with one row for each person; or remove the line',
)
_WHOSE = (
    f'unit = "{FILL_IN}"                   # the column that names a person',
    f'rows_per_unit = "{FILL_IN}"          # 1; or 5: this many rows per person are used, chosen at random',
)


def _drafted_columns(source: Path, place: str) -> Iterator[str]:
    """The sections of a file's columns. A type is a key of `_drafted`, or "" if only the name is known."""
    if source.is_dir() or _is_pattern(source):  # all of its files have the same columns: those of the first are read
        source = next(iter(files_of(source)), source)
    scan = Scan(source)
    types = dict.fromkeys(scan.names(), "") if scan.is_csv else parquet_types(source)
    if types.pop("", None) is not None:
        yield from ("", "# A column without a name is left out: give it one in the file if it is needed.")
    for column, kind in types.items():
        yield from ("", f"[{place}.{_key(column)}]", *_drafted(kind))


def _drafted(kind: str) -> Sequence[str]:
    fill = _quoted(FILL_IN)
    bounds, missing = [f"low = {fill}", f"high = {fill}"], "# missing = true"
    unbounded = f'{missing}; if the bounds are not known: kind = "any number" alone'
    drafts = {
        "truth": ['kind = "category"', "levels = [false, true]"],
        "whole": ['kind = "number"', *bounds, "step = 1", unbounded],
        "number": ['kind = "number"', *bounds, f"step = {fill}", unbounded],
        "date": ['kind = "date"', *bounds, 'step = "day"                        # or "week", "month", "year"', missing],
        "timestamp": [
            'kind = "timestamp"',
            *bounds,
            'step = "hour"                       # "second" to "year"',
            missing,
        ],
        "text": [
            'kind = "category"',
            f"levels = [{fill}]",
            '# other = "elsewhere"; missing = "unknown"; if the values are not known: kind = "text" alone',
        ],
    }
    return drafts.get(kind, [f"kind = {fill}"])


def _database_schema(declared: dict[str, Any], folder: Path) -> DatabaseSchema:
    _known(declared, _DATABASE_KEYS, "the schema of several tables")
    tables = declared["tables"]
    if not isinstance(tables, dict) or not tables or not all(isinstance(each, dict) for each in tables.values()):
        raise SchemaError("no table is declared: add [tables.NAME] and [tables.NAME.columns.COLUMN]")
    shared: dict[str, Any] = {key: each for key, each in declared.items() if key in ("neighbours", "size")}
    for name, each in tables.items():
        _known(each, _TABLE_KEYS, f"[tables.{_key(name)}]")
        if is_address(each.get("data")):
            raise SchemaError(
                f"[tables.{_key(name)}] needs a file: several tables about the same people are read from files"
            )
        _check_filled(each.get("columns"), f"[tables.{_key(name)}.columns.")
    _refuse_gaps(declared)
    found = tuple(_schema({"name": name, **shared, **each}, folder, name) for name, each in tables.items())
    persons = None if "persons" not in declared else exact.text(persons=declared["persons"])
    if persons is not None and persons not in tables:
        raise SchemaError(f"persons = {persons!r} is none of the tables.{near_misses(persons, tables)}")
    return DatabaseSchema(
        exact.text(name=declared.get("name")),
        found,
        found[0].neighbours,
        persons,
        found[0].size,
        None if "ledger" not in declared else _ledger(folder, declared["ledger"]),
    )


def _refuse_gaps(declared: dict[str, Any]) -> None:
    gaps = _gaps(declared, "")
    if gaps:
        raise SchemaError(f"these lines still say {FILL_IN}: {', '.join(gaps)}")


def _check_filled(columns: object, place: str) -> None:
    """What is wrong with the columns that are filled in, in a draft whose other columns are not."""
    for name, each in columns.items() if isinstance(columns, dict) else ():
        if not _gaps(each, name):
            _column(name, each, place)


def _schema(declared: dict[str, Any], folder: Path, table: str | None = None) -> Schema:
    """table: its name, if it is one of several."""
    _known(declared, _KEYS, "the schema")
    place = "[columns." if table is None else f"[tables.{_key(table)}.columns."
    columns = declared.get("columns")
    _check_filled(columns, place)
    _refuse_gaps(declared)
    if not isinstance(columns, dict) or not columns:
        raise SchemaError(f"no column is declared: add {place}NAME] with a kind")
    require_columns(len(columns))
    unit, rows = declared.get("unit"), declared.get("rows_per_unit")
    whole_rows = declared.get("each_row_is_a_person")
    if (unit is None) != (whole_rows is True) or (unit is None) != (rows is None):
        whole = "each_row_is_a_person = true, or " if table is None else f"in [tables.{_key(table)}] "
        raise SchemaError(
            f"say who is protected: {whole}unit = the column that names a person together with rows_per_unit"
        )
    if table is not None and unit is None:
        raise SchemaError(f"[tables.{_key(table)}] needs unit and rows_per_unit: tables share persons by that column")
    relation = Neighbours.of(declared.get("neighbours", "replace-one"))
    grows = _epochs(declared, columns)
    return Schema(
        exact.text(name=declared.get("name")),
        Domain({name: _column(name, each, place) for name, each in columns.items()}),
        relation.kind,
        None if unit is None else exact.text(unit=unit),
        None if rows is None else exact.whole(rows_per_unit=rows),
        None if "size" not in declared else exact.whole(size=declared["size"]),
        ledger=None if "ledger" not in declared else _ledger(folder, declared["ledger"]),
        edition=checked_edition(exact.text(edition=declared.get("edition", FIRST_EDITION))) or FIRST_EDITION,
        **_source(folder, declared),
        **grows,
    )


def _epochs(declared: dict[str, Any], columns: dict[str, Any]) -> dict[str, Any]:
    """What the schema says about epochs."""
    found, data = declared.get("epochs"), declared.get("data")
    pattern = isinstance(data, str) and _EPOCH in data
    if found is None:
        if pattern:
            raise SchemaError(f"data has {_EPOCH} in it: add [epochs] with column = the column that holds the epoch")
        return {}
    if not isinstance(found, dict):
        raise SchemaError("[epochs] is a section: column = the column that holds the epoch, and per_person")
    _known(found, _EPOCH_KEYS, "[epochs]")
    column, most = found.get("column"), exact.whole(per_person=found.get("per_person", 1))
    if column not in columns:
        raise SchemaError(f"[epochs] needs column, one of the declared ones; found {column!r}")
    one = not is_address(data) and str(data).lower().endswith((".parquet", ".csv"))
    if not (pattern and one) or "engine" in declared:
        said = f'data = "months/{_EPOCH}.parquet", without engine'
        raise SchemaError(f"of a table that grows each epoch has one file, which this process reads: {said}")
    if "size" in declared or "edition" in declared:
        raise SchemaError("a table that grows has neither size nor edition: each epoch brings its own")
    if most > 1 and "unit" not in declared:
        raise SchemaError("persons who return need unit, the column that names a person, and rows_per_unit")
    return {"epochs": column, "per_person": most}


def _text_of(path: Path) -> str:
    """The text of a schema, if it is one that can be read."""
    try:
        with path.open("rb") as file:
            found = file.read(_LARGEST + 1)
    except FileNotFoundError:
        raise ParameterError(f"there is no schema at {path.name}; `discreet schema DATA` drafts one") from None
    except (OSError, ValueError) as error:  # a directory, no permission, a name that no file can have
        raise ParameterError(f"the schema {path.name!a} cannot be read ({type(error).__name__})") from None
    if len(found) > _LARGEST:
        raise SchemaError(f"{path.name} has more than {_LARGEST:,} bytes: it is no schema")
    try:
        return found.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SchemaError(f"{path.name} is not TOML: {error}") from None


def _path(folder: Path, key: str, found: object) -> Path:
    """Where the file is that a line of the schema names, if a file can have that name."""
    name = exact.text(**{key: found})
    if "\0" in name or any(len(part.encode("utf-8", "replace")) > 255 for part in Path(name).parts):
        raise SchemaError(f"{key} names no file: {name[:60]!a}")
    return folder / name


def files_of(path: Path) -> tuple[Path, ...]:
    """The files that a path stands for: itself, those of a folder, or those of a pattern."""
    if path.is_dir():
        return tuple(sorted(path.glob("*.parquet")))
    return tuple(sorted(map(Path, glob.glob(str(path), recursive=True)))) if _is_pattern(path) else (path,)


def _is_pattern(path: Path) -> bool:
    """Whether it stands for several files; a file of this very name is that file."""
    return any(sign in str(path) for sign in "*?[") and not path.exists()


def _source(folder: Path, declared: dict[str, Any]) -> dict[str, Any]:
    """Where the rows are and what reads them, if the schema says so."""
    data: Any = declared.get("data")
    relation, version, engine, stage = (declared.get(key) for key in ("relation", "version", "engine", "stage"))
    if engine not in (None, *_ENGINES):
        raise SchemaError(f'engine must be "processes" or "spark", found {engine!r}')
    address = is_address(data)
    stored = StoredFiles.of(data, engine) if address else None
    in_database = address and stored is None
    if in_database and engine is not None:
        raise SchemaError("engine is of files: a database counts its rows itself")
    if not in_database and (relation, version) != (None, None):
        raise SchemaError('relation and version are of rows in a database: data = "postgresql://HOST/DATABASE"')
    if stage is not None and (address or engine is None):
        raise SchemaError("stage is a folder that all workers of an engine see: add engine, and name files by paths")
    path = None if data is None or address else _path(folder, "data", data)
    return {
        "data": DatabaseRows.of(data, relation, version, folder) if in_database else stored or path,
        "engine": engine,
        "stage": None if stage is None else _path(folder, "stage", stage),
    }


def _ledger(folder: Path, found: object) -> Path | Address:
    """The file or the address of the ledger that a line of the schema names."""
    text = exact.text(ledger=found)
    return Address.read(text) if "://" in text else _path(folder, "ledger", text)


def _column(name: str, declared: object, place: str = "[columns.") -> Column:
    where = f"{place}{_key(name)}]"
    kind = declared.get("kind") if isinstance(declared, dict) else None
    if not isinstance(declared, dict) or not isinstance(kind, str) or kind not in _COLUMN_KEYS:
        kinds = ", ".join(f'"{each}"' for each in _KINDS)
        raise SchemaError(f"{where} needs a kind, one of {kinds}; found {kind!r}")
    given = {key: value for key, value in declared.items() if key != "kind"}
    _known(given, _COLUMN_KEYS[kind], where)
    try:
        missing = [key for key in _NEEDED.get(kind, ()) if key not in given]
        if missing:
            raise ParameterError(f"needs {', '.join(missing)}")
        if kind == "category" and not isinstance(given.get("levels"), list):
            raise ParameterError('needs levels = ["one", "two"]')
        return _KINDS[kind](**given)  # type: ignore[no-any-return]
    except ParameterError as error:
        raise SchemaError(f"{where} {error}") from None


def _known(found: dict[str, Any], keys: tuple[str, ...], where: str) -> None:
    for key in found:
        if key not in keys:
            raise SchemaError(f"{where} has no line {key!r}.{near_misses(key, keys)} Its lines: {', '.join(keys)}")


def _gaps(found: object, place: str) -> list[str]:
    """Where the owner still has to say something: a schema has lines, tables of columns, and their lines."""
    if isinstance(found, dict) and place.count(".") < 5:
        return [gap for key, each in found.items() for gap in _gaps(each, f"{place}.{key}" if place else key)]
    if isinstance(found, list):
        return [place] if FILL_IN in found else []
    return [place] if found == FILL_IN else []


def _quoted(text: str) -> str:
    """A TOML string; what cannot be printed is escaped."""
    signs = (f"\\{sign}" if sign in '\\"' else sign for sign in text)
    return '"' + "".join(sign if sign.isprintable() else f"\\U{ord(sign):08X}" for sign in signs) + '"'


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else _quoted(name)
