"""Ingest: from a source of rows and a declaration to codes, persons and public facts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import exact
from discreet.arrays import Words
from discreet.data import persons
from discreet.data.columns import Frame
from discreet.data.domain import Column, Domain
from discreet.data.encoding import encode
from discreet.data.files import Scan
from discreet.data.rows import MAX_ROWS, Batch, Dataset, Facts, Identity
from discreet.errors import ParameterError, SchemaError
from discreet.guarantee import Neighbours

FIRST_EDITION = "1"
"""The edition of a table whose owner declares none."""

MAX_COLUMNS = 10_000
"""Declared columns of a table."""

MAX_EDITION = 100
"""Characters of an edition."""

Stored = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True, repr=False)
class Block:
    """Encoded rows with the words that name their persons, when a unit is declared."""

    codes: Stored
    ids: tuple[Words, Words] | None

    @property
    def rows(self) -> int:
        return len(next(iter(self.codes.values())))

    def order(self, identity: Identity) -> Words:
        return persons.row_order(self.codes.values(), persons.key_of(identity.name))


def identity_of(name: str, neighbours: Neighbours | str, unit: str | None, rows_per_unit: int | None) -> Identity:
    """The declared identity; several rows a person need both the unit and how many rows are kept."""
    exact.text(name=name)
    given = Neighbours.of(neighbours)
    if unit is None:
        if rows_per_unit is not None or given.rows != 1:
            raise ParameterError("several rows a person need unit=..., the column that names the person")
        return Identity(name, given, None)
    exact.text(unit=unit)
    if rows_per_unit is None and isinstance(neighbours, str):
        raise ParameterError(f"unit={unit!r} needs rows_per_unit=..., the number of rows that are kept of a person")
    rows = given.rows if rows_per_unit is None else exact.whole(rows_per_unit=rows_per_unit)
    if given.rows not in (1, rows):
        raise ParameterError(f"rows_per_unit={rows} contradicts neighbours with {given.rows} rows a person")
    return Identity(name, Neighbours(given.kind, rows), unit)


def checked_domain(domain: object) -> Domain:
    """The declaration, if it is one."""
    if not isinstance(domain, Domain):
        raise ParameterError(f"domain must be a Domain(column=declaration, ...), found a {type(domain).__name__}")
    require_columns(len(domain))
    return domain


def require_columns(columns: int) -> None:
    """A table declares at most MAX_COLUMNS columns: the declaration is written into the ledger and searched by name."""
    if columns > MAX_COLUMNS:
        raise SchemaError(
            f"a table declares at most {MAX_COLUMNS:,} columns, found {columns:,}: declare those that will be used"
        )


def checked_edition(edition: object) -> str | None:
    """The label of the rows, if it is one line of text that can be shown; None for rows without one."""
    if edition is None:
        return None
    found = exact.text(edition=edition)
    if len(found) > MAX_EDITION or not found.isprintable():
        raise ParameterError(
            f"edition must be at most {MAX_EDITION} printable characters, found {found[:MAX_EDITION]!a}"
        )
    return found


def facts_of(
    domain: Domain, identity: Identity, *, size: int | None, persons_found: int, edition: str | None = None
) -> Facts:
    """The public facts: under replace-one the number of persons is one of them, and is not 0."""
    declared = None if size is None else exact.whole(size=size)
    if declared is not None and declared > MAX_ROWS:
        raise ParameterError(f"size must be at most {MAX_ROWS:,}, found {exact.shown(Fraction(declared))}")
    if not identity.neighbours.replace_one:
        return Facts(domain, identity.neighbours, declared, edition)
    if persons_found == 0:
        raise SchemaError('the table is empty; under "replace-one" there must be at least one person')
    if declared not in (None, persons_found):
        raise ParameterError(f'size={declared} is not the number of persons, which "replace-one" makes public')
    return Facts(domain, identity.neighbours, persons_found, edition)


def checked_rows(rows: int) -> int:
    """The number of rows, if a dataset may have so many."""
    if rows > MAX_ROWS:
        raise SchemaError("a dataset holds at most 2**31 - 1 rows")
    return rows


def frame_block(source: object, domain: Domain, identity: Identity) -> Block:
    """All rows of a frame in memory."""
    frame = Frame(source)
    return block_of(frame, domain, identity)


def file_blocks(scan: Scan, domain: Domain, identity: Identity) -> Iterator[Block]:
    """The rows of a file, batch by batch; at least one, maybe empty, block."""
    names = needed(domain, identity)
    Frame.require(scan.names(), names)
    empty = True
    for table in scan.frames(names):
        yield block_of(Frame(table, spelled=scan.is_csv), domain, identity)
        empty = False
    if empty:
        yield block_of(Frame({name: [] for name in names}), domain, identity)


def block_of(frame: Frame, domain: Domain, identity: Identity) -> Block:
    """The encoded rows of a frame, in the smallest integers that hold the codes."""
    for name, column in domain.columns:
        if not column.coded:
            raise SchemaError(f"column {name!r} is declared {column!r}, which a table does not hold")
    Frame.require(frame.names, needed(domain, identity))
    codes = {name: encode(frame[name], column, name).astype(stored_type(column)) for name, column in domain.columns}
    if len({len(each) for each in codes.values()}) > 1:
        raise SchemaError("the columns are not equally long")
    ids = None
    if identity.unit is not None:
        ids = persons.person_ids(frame[identity.unit], persons.key_of(identity.name), identity.unit)
        if len(ids[0]) != len(codes[domain.names[0]]):
            raise SchemaError("the columns are not equally long")
    return Block(codes, ids)


def joined(blocks: Iterable[Block]) -> Block:
    """All blocks as one."""
    parts = list(blocks)
    codes = {name: np.concatenate([part.codes[name] for part in parts]) for name in parts[0].codes}
    ids = [part.ids for part in parts if part.ids is not None]
    if not ids:
        return Block(codes, None)
    return Block(codes, (np.concatenate([high for high, _ in ids]), np.concatenate([low for _, low in ids])))


def needed(domain: Domain, identity: Identity) -> tuple[str, ...]:
    """The columns that are read: the declared ones and the unit."""
    extra = () if identity.unit is None or identity.unit in domain else (identity.unit,)
    return (*domain.names, *extra)


def stored_type(column: Column) -> np.dtype[Any]:
    """The smallest integers that hold the codes of a column."""
    return np.min_scalar_type(column.size - 1)


def batches_of(codes: Stored, domain: Domain, *, rows: int, block: int) -> Iterator[Batch]:
    """Rows in memory as batches of at most `block` rows; at least one."""
    for start in range(0, max(rows, 1), block):
        stop = min(start + block, rows)
        yield Batch(domain, stop - start, lambda name, here=slice(start, stop): codes[name][here])  # type: ignore[misc]


def describe(data: Dataset) -> str:
    """What may be printed of a dataset: its declaration."""
    facts, identity = data.facts, data.identity
    unit = "" if identity.unit is None else f", unit={identity.unit!r}"
    size = "private" if facts.size is None else facts.size
    edition = "" if facts.edition is None else f", edition={facts.edition!r}"
    return f"{type(data).__name__}({identity.name!r}, {facts.domain!r}, {facts.neighbours}{unit}, size={size}{edition})"
