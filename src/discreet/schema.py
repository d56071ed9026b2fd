"""What is declared about a table, in a small TOML file that its owner writes and anybody may read.

    name = "people"                     # what SQL calls the table, and what its ledger is bound to
    data = "people.parquet"             # beside this file, or a path of its own
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

A schema is public, so nothing in it may come from the rows. `draft` therefore reads a CSV file's header or the names
and types in a Parquet file's footer, never a value and never the statistics that a footer also holds, and leaves
FILL IN where the owner has to say what is known without looking. Decimals are exact: 0.1 is one tenth.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.core import DiscreetError, Neighbours, ParameterError, SchemaError, exact
from discreet.data import (
    FIRST_EDITION,
    AnyNumber,
    Category,
    Column,
    Domain,
    Number,
    ParquetTable,
    Scan,
    Table,
    checked_edition,
    near_misses,
    parquet_types,
    require_columns,
)
from discreet.describe import one_line
from discreet.ledger import Address
from discreet.rehearsal import PEOPLE, made_up

FILL_IN = "FILL IN"
_IN_MEMORY = 2**28  # a Parquet file of more bytes is read again for every sum instead of being held in memory
_DEEP = re.compile(r"""(?<![\w.-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){65}""")
_LARGEST = 2**26  # bytes of a schema
_KEYS = (
    *("name", "data", "ledger", "edition", "neighbours", "each_row_is_a_person", "unit", "rows_per_unit", "size"),
    "columns",
)
_KINDS: dict[type, str] = {Number: "number", Category: "category", AnyNumber: "any number"}
_COLUMN_KEYS = {
    "number": ("low", "high", "step", "missing"),
    "category": ("levels", "other", "missing"),
    "any number": ("missing",),
}


@dataclass(frozen=True, slots=True)
class Schema:
    """A table's declaration: Schema.read("people.toml").table().

    unit, rows_per_unit  the column that names a person and how many rows of a person are kept; None: a row is a person
    size                 the public number of persons, if it is declared; under replace-one it is checked
    data, ledger         where the rows and the ledger are, if the file says so
    edition              the label of the rows: a session answers from releases about the same edition only
    """

    name: str
    domain: Domain
    neighbours: str = "replace-one"
    unit: str | None = None
    rows_per_unit: int | None = None
    size: int | None = None
    data: Path | None = None
    ledger: Path | Address | None = None
    edition: str = FIRST_EDITION

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Schema:
        """The schema in this file; SchemaError says what is missing or wrong, and where."""
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
            return _schema(declared, where.parent)
        except DiscreetError as error:
            raise SchemaError(f"{where.name}: {error}") from None

    def table(self, data: str | os.PathLike[str] | None = None) -> Table | ParquetTable:
        """The rows of the file, read as declared here. A large Parquet file stays on the disk."""
        source = self.data if data is None else Path(data)
        if source is None:
            raise ParameterError('where are the rows? Add data = "people.parquet" to the schema, or name the file')
        large = source.suffix.lower() == ".parquet" and source.is_file() and source.stat().st_size > _IN_MEMORY
        kind: Callable[..., Table | ParquetTable] = ParquetTable if large else Table
        return kind(source, self.domain, **self._declared())

    def rehearsal(self, people: int = PEOPLE) -> Table:
        """Made-up people with this declaration (`discreet.rehearsal`)."""
        return made_up(self.domain, people=people, **self._declared())

    def _declared(self) -> dict[str, Any]:
        """What a table takes besides its rows and its columns."""
        names = ("name", "neighbours", "unit", "rows_per_unit", "size", "edition")
        return {name: getattr(self, name) for name in names}

    def protects(self) -> str:
        """What is protected and what is not, in words, for those whose rows these are."""
        relation = Neighbours(self.neighbours, self.rows_per_unit or 1)
        whose = (
            "A row is a person: whoever has several rows is protected for each alone, not for all together."
            if self.unit is None
            else f"A person is whoever {self.unit!r} names, with at most {relation.rows} rows that are used."
        )
        count = (
            "Public: how many persons there are, and everything in the schema."
            if relation.replace_one
            else "Public: everything in the schema. How many persons there are is protected."
        )
        names = one_line(", ".join(self.domain.names))
        return (
            f"Protected: what the rows of a person say ({names}), against whoever sees the "
            f"releases. {whose} {count} Not protected: what follows about a person from facts about everybody, and "
            "whatever is released about the same people without this ledger."
        )


def kind_of(column: Column) -> str:
    """The kind by which a schema declares a column: "number", "category" or "any number"."""
    return _KINDS[type(column)]


def draft(path: str | os.PathLike[str]) -> str:
    """The text of a schema for a data file, from the names (and, in Parquet, the types) of its columns alone.

    A type is "number", "whole", "truth" or "text"; "" if only the name of the column is known.
    """
    source = Path(path)
    scan = Scan(source)
    types = dict.fromkeys(scan.names(), "") if scan.is_csv else parquet_types(source)
    name = source.stem if source.stem.isidentifier() else "people"
    header = "# The names are the first line of the file: if that is a row about somebody, add a line of names first."
    head = [
        f"# What is public about {one_line(source.name)}. Nothing here may come from looking at the rows:",
        "# write what is known without them (a questionnaire's answers, the law, physics). Replace every FILL IN,",
        "# and remove columns that are not needed.",
        *([header] if source.suffix.lower() == ".csv" else []),
        "",
        f"name = {_quoted(name)}",
        f"data = {_quoted(source.name)}",
        f"ledger = {_quoted(name + '.ledger')}",
        f"edition = {_quoted(FIRST_EDITION)}                       # of the rows; another one when the file changes",
        'neighbours = "replace-one"          # how many people there are is public; "add-remove" hides it',
        "# size = 5000                       # add-remove: a public number near theirs, which sessions and models need",
        f"each_row_is_a_person = {_quoted(FILL_IN)}   # true; or instead of this line:",
        '# unit = "person"                   # the column that names a person',
        "# rows_per_unit = 5                 # this many rows per person are used, chosen at random",
    ]
    body = [line for column, kind in types.items() for line in ("", f"[columns.{_key(column)}]", *_drafted(kind))]
    return "\n".join([*head, *body, ""])


def _drafted(kind: str) -> list[str]:
    fill = _quoted(FILL_IN)
    number = ['kind = "number"', f"low = {fill}", f"high = {fill}"]
    unbounded = '# missing = true; if the bounds are not known: kind = "any number" alone'
    unknown = [
        f"kind = {fill}",
        '# "number":      low = 0, high = 120, step = 1, each on a line of its own; missing = true',
        '# "category":    levels = ["north", "south"]; other = "elsewhere", missing = "unknown"',
        '# "any number":  nothing more; its bounds are not known',
    ]
    drafts = {
        "truth": ['kind = "category"', "levels = [false, true]"],
        "whole": [*number, "step = 1", unbounded],
        "number": [*number, f"step = {fill}", unbounded],
        "text": ['kind = "category"', f"levels = [{fill}]", '# other = "elsewhere"', '# missing = "unknown"'],
    }
    return drafts.get(kind, unknown)


def _schema(declared: dict[str, Any], folder: Path) -> Schema:
    _known(declared, _KEYS, "the schema")
    gaps = _gaps(declared, "")
    if gaps:
        raise SchemaError(f"these lines still say {FILL_IN}: {', '.join(gaps)}")
    columns = declared.get("columns")
    if not isinstance(columns, dict) or not columns:
        raise SchemaError("no column is declared: add [columns.NAME] with a kind")
    require_columns(len(columns))
    unit, rows = declared.get("unit"), declared.get("rows_per_unit")
    whole_rows = declared.get("each_row_is_a_person")
    if (unit is None) != (whole_rows is True) or (unit is None) != (rows is None):
        raise SchemaError(
            "say who is protected: each_row_is_a_person = true, or unit = the column that names a person together "
            "with rows_per_unit"
        )
    relation = Neighbours.of(declared.get("neighbours", "replace-one"))
    return Schema(
        exact.text(name=declared.get("name")),
        Domain({name: _column(name, each) for name, each in columns.items()}),
        relation.kind,
        None if unit is None else exact.text(unit=unit),
        None if rows is None else exact.whole(rows_per_unit=rows),
        None if "size" not in declared else exact.whole(size=declared["size"]),
        None if "data" not in declared else _path(folder, "data", declared["data"]),
        None if "ledger" not in declared else _ledger(folder, declared["ledger"]),
        checked_edition(exact.text(edition=declared.get("edition", FIRST_EDITION))) or FIRST_EDITION,
    )


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


def _ledger(folder: Path, found: object) -> Path | Address:
    """The file or the address of the ledger that a line of the schema names."""
    text = exact.text(ledger=found)
    return Address.read(text) if "://" in text else _path(folder, "ledger", text)


def _column(name: str, declared: object) -> Column:
    where = f"[columns.{_key(name)}]"
    kind = declared.get("kind") if isinstance(declared, dict) else None
    if not isinstance(declared, dict) or not isinstance(kind, str) or kind not in _COLUMN_KEYS:
        raise SchemaError(f'{where} needs kind = "number", "category" or "any number"; found {kind!r}')
    given = {key: value for key, value in declared.items() if key != "kind"}
    _known(given, _COLUMN_KEYS[kind], where)
    try:
        if kind == "any number":
            return AnyNumber(**given)
        if kind == "number":
            missing = [key for key in ("low", "high", "step") if key not in given]
            if missing:
                raise ParameterError(f"needs {', '.join(missing)}")
            return Number(**given)
        if not isinstance(given.get("levels"), list):
            raise ParameterError('needs levels = ["one", "two"]')
        return Category(**given)
    except ParameterError as error:
        raise SchemaError(f"{where} {error}") from None


def _known(found: dict[str, Any], keys: tuple[str, ...], where: str) -> None:
    for key in found:
        if key not in keys:
            raise SchemaError(f"{where} has no line {key!r}.{near_misses(key, keys)} Its lines: {', '.join(keys)}")


def _gaps(found: object, place: str) -> list[str]:
    """Where the owner still has to say something: a schema has lines, tables of columns, and their lines."""
    if isinstance(found, dict) and place.count(".") < 2:
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
