"""Ingest: from a source of rows and a declaration to codes, persons and public facts; and what every dataset shares.

Several rows per person. A person may hold many rows; at most k of them are kept. Which ones is a function of that
person's rows, as the declared columns encode them, and of the declared name of the table only, never of anybody else's
rows or of the order of the file: a person's rows are ordered by a keyed 64-bit mix of their codes and the first k are
kept. The key is derived from the name, so that the choice looks random and two tables choose differently. Equal rows
are interchangeable. A person is known by an identifier: a whole number, used exactly, or a text, used through a 128-bit
hash that is the same in every table; the text "17" is the number 17. The rows of a person are held together, so that
batches can be cut between persons.

Texts that nobody listed (`Text`) are held as numbers of the texts that occur. These depend on other rows, so they are
compared for equality only; a person's rows are ordered by a hash of the text.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core import Codes, Mask, Neighbours, ParameterError, SchemaError, Sheet, Shown, Words, exact, one_line
from discreet.data import declaration
from discreet.data.domain import Domain
from discreet.data.encoding import Frame, Values, encode_any, require_held
from discreet.data.files import Scan, resolved
from discreet.data.keys import distinct_of
from discreet.data.needs import EVERYTHING, Offers
from discreet.data.rows import (
    MAX_ROWS,
    Batch,
    Facts,
    Filter,
    Identity,
    Slice,
    Summand,
    Summed,
    Texts,
    gathered_of,
    refuse_to_leave,
    row_function,
    sum_of,
)
from discreet.data.slices import slices_of

BLOCK = 2**20
"""Rows in a batch."""

FIRST_EDITION = "1"
"""The edition of a table whose owner declares none."""

MAX_COLUMNS = 10_000
"""Declared columns of a table."""

MAX_EDITION = 100
"""Characters of an edition."""

Stored = dict[str, npt.NDArray[Any]]
Ids = tuple[Words, Words]


class PrivateRows(Shown):
    """What every dataset has: facts, identity, source and the doors. It prints its declaration, never its rows."""

    __slots__ = ("__weakref__", "facts", "identity", "source")
    facts: Facts
    identity: Identity
    source: Path | None

    def _batches(self, reading: Callable[[Batch], object]) -> Iterable[Batch]:
        """All rows, at least one, maybe empty, batch, for a function that reads the same columns of each."""
        raise NotImplementedError

    @property
    def offers(self) -> Offers:
        """What this dataset can do: everything, unless it says otherwise."""
        return EVERYTHING

    def exact_sum(self, query: Summand[Summed] | Callable[[Batch], Summed]) -> Summed:
        """The exact sum of a query, or of a bounded integer function of the rows. Not private."""
        partial = row_function(query)
        with self._watched():
            return sum_of(self._batches(partial), partial)

    def exact_gather(self, take: Callable[[Batch], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """What a function finds in the rows, all of it, in no promised order. Not private."""
        with self._watched():
            return gathered_of(map(take, self._batches(take)))

    def exact_slices(self, slices: Sequence[Slice], *, where: Filter | None = None, disjoint: bool) -> list[Codes]:
        """The exact most extreme values of columns. Not private."""

        def reading(batch: Batch) -> None:
            coded = [name for name, column in batch.domain.items() if not column.free]
            batch.read(coded if disjoint else [each.column for each in slices], where)

        batches, domain = lambda: self._batches(reading), self.facts.domain
        with self._watched():
            return slices_of(batches, slices, domain=domain, where=where, disjoint=disjoint)

    def exact_distinct(self) -> tuple[Batch, Codes] | None:
        """The distinct rows with their counts, if they are fewer than half (`data.distinct`). Not private."""
        names = self.facts.domain.digits
        with self._watched():
            return distinct_of(self._batches(lambda batch: batch.read(names)), self.facts.domain)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """The rows are those of the table before this block and after it."""
        self.check_source()
        try:
            yield
        finally:
            self.check_source()

    def check_source(self) -> None:
        """Nothing to check for rows in memory."""

    def __repr__(self) -> str:
        columns = "one column" if len(self.facts.domain) == 1 else f"{len(self.facts.domain)} columns"
        name = f"{type(self).__name__} {one_line(self.facts.table or self.identity.name)!r}"
        return f"<{name}: {columns}, {declaration.people(self.facts, self.identity)}>"

    def sheet(self) -> Sheet:
        """What is declared; never a row."""
        return declaration.sheet(self.facts, self.identity)

    __reduce_ex__ = refuse_to_leave
    __copy__ = refuse_to_leave
    __deepcopy__ = refuse_to_leave


class HeldInMemory(PrivateRows):
    """Rows that this process holds, those of a person together."""

    __slots__ = ("_codes", "_persons", "_rows", "_texts")
    _codes: Stored
    _persons: Codes | None
    _rows: int
    _texts: Mapping[str, Texts]

    def _batches(self, reading: Callable[[Batch], object]) -> Iterator[Batch]:
        domain, persons, texts = self.facts.domain, self._persons, self._texts
        return batches_of(self._codes, domain, rows=self._rows, block=BLOCK, persons=persons, texts=texts)


# Declarations.


def identity_of(
    name: str, neighbours: Neighbours | str, unit: str | None = None, rows_per_unit: int | None = None
) -> Identity:
    """The declared identity; several rows per person need both the unit and how many rows are kept."""
    exact.text(name=name)
    given = Neighbours.of(neighbours)
    if unit is None:
        if rows_per_unit is not None or given.rows != 1:
            raise ParameterError("several rows per person need unit=..., the column that names the person")
        return Identity(name, given, None)
    exact.text(unit=unit)
    if rows_per_unit is None and isinstance(neighbours, str):
        raise ParameterError(f"unit={unit!r} needs rows_per_unit=..., the number of rows that are kept of a person")
    rows = given.rows if rows_per_unit is None else exact.whole(rows_per_unit=rows_per_unit)
    if given.rows not in (1, rows):
        raise ParameterError(f"rows_per_unit={rows} contradicts neighbours with {given.rows} rows per person")
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
        advice = "declare those that will be used"
        raise SchemaError(f"a table declares at most {MAX_COLUMNS:,} columns, found {columns:,}: {advice}")


def checked_edition(edition: object) -> str | None:
    """The label of the rows, if it is one line of text that can be shown; None for rows without one."""
    if edition is None:
        return None
    label, most = exact.text(edition=edition), MAX_EDITION
    if len(label) > most or not label.isprintable():
        raise ParameterError(f"edition must be at most {most} printable characters, found {label[:most]!a}")
    return label


def facts_of(
    domain: Domain,
    identity: Identity,
    *,
    size: int | None,
    persons_found: int,
    edition: str | None = None,
    most: int = MAX_ROWS,
) -> Facts:
    """The public facts: under replace-one the number of persons is one of them, and is not 0."""
    declared = None if size is None else exact.whole(size=size)
    if declared is not None and declared > most:
        raise ParameterError(f"size must be at most {most:,}, found {exact.shown(Fraction(declared))}")
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


# Rows.


@dataclass(frozen=True, slots=True, repr=False)
class EncodedRows:
    """The codes of some rows, when a unit is declared the words that name their persons, and what texts stand for."""

    codes: Stored
    ids: Ids | None
    texts: dict[str, Texts] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return len(next(iter(self.codes.values())))

    @staticmethod
    def given(rows: object, domain: Domain, identity: Identity) -> tuple[EncodedRows, Path | None]:
        """The rows of a frame, a dict of sequences or a file, and the path of the file."""
        if not isinstance(rows, (str, os.PathLike)):
            return EncodedRows.of(Frame(rows), domain, identity), None
        source = resolved(rows)
        if identity.rehearsal:
            raise ParameterError("a rehearsal is on made-up rows, and a file may hold real ones: discreet.rehearsal")
        return EncodedRows.joined(list(EncodedRows.of_file(Scan(source), domain, identity))), source

    @staticmethod
    def of(frame: Frame, domain: Domain, identity: Identity) -> EncodedRows:
        """The rows of a frame, in the smallest integers that hold the codes."""
        for name, column in domain.columns:
            require_held(column, name)
        Frame.require(frame.names, needed(domain, identity))
        codes, texts = Stored(), dict[str, Texts]()
        for name, column in domain.columns:
            found, stands_for = encode_any(frame[name], column, name)
            codes[name] = found.astype(column.stored_type)
            if column.free:
                texts[name] = stands_for
        ids = None if identity.unit is None else person_ids(frame[identity.unit], identity)
        lengths = {*map(len, codes.values()), *map(len, ids or ())}
        if len(lengths) > 1:
            raise SchemaError("the columns are not equally long")
        return EncodedRows(codes, ids, texts)

    @staticmethod
    def of_file(scan: Scan, domain: Domain, identity: Identity) -> Iterator[EncodedRows]:
        """The rows of a file, batch by batch; at least one, maybe empty, batch."""
        names, table = needed(domain, identity), None
        Frame.require(scan.names(), names)
        for table in scan.frames(names):
            yield EncodedRows.of(Frame(table, spelled=scan.is_csv), domain, identity)
        if table is None:
            yield EncodedRows.of(Frame({name: [] for name in names}), domain, identity)

    @staticmethod
    def joined(parts: Sequence[EncodedRows]) -> EncodedRows:
        codes, texts = Stored(), dict[str, Texts]()
        for name in parts[0].codes:
            lines = [part.codes[name] for part in parts]
            if name in parts[0].texts:
                lines, texts[name] = _common_texts([part.texts[name] for part in parts], lines)
            codes[name] = np.concatenate(lines)
        ids = [part.ids for part in parts if part.ids is not None]
        high, low = (np.concatenate([pair[side] for pair in ids]) if ids else None for side in (0, 1))
        return EncodedRows(codes, None if high is None or low is None else (high, low), texts)

    def order(self, identity: Identity) -> Words:
        """The keyed mix of each row's codes, and of the hashes of its texts: the order in which a person's are kept."""
        order = np.array(order_key(identity), dtype=np.uint64)
        for name, column in self.codes.items():
            words = column.astype(np.int64).view(np.uint64)
            if name in self.texts:
                words = _pairs([_hash(f"{text!r}".encode("utf-8", "surrogatepass")) for text in self.texts[name]])[
                    column, 0
                ]
            order = _mix(order ^ _mix(words))
        return order

    def of_rows(self, places: Codes) -> EncodedRows:
        """The rows at these places, in this order."""
        ids = None if self.ids is None else (self.ids[0][places], self.ids[1][places])
        return EncodedRows({name: codes[places] for name, codes in self.codes.items()}, ids, self.texts)


def _common_texts(texts: Sequence[Texts], lines: Sequence[Codes]) -> tuple[list[Codes], Texts]:
    """Codes of several parts as codes of the texts of all of them."""
    places: dict[str | None, int] = {None: 0}
    known = [np.array([places.setdefault(each, len(places)) for each in part], dtype=np.int64) for part in texts]
    return [table[codes] for table, codes in zip(known, lines, strict=True)], list(places)


def needed(domain: Domain, identity: Identity) -> tuple[str, ...]:
    """The columns that are read: the declared ones and the unit."""
    extra = () if identity.unit is None or identity.unit in domain else (identity.unit,)
    return (*domain.names, *extra)


def batches_of(
    codes: Stored,
    domain: Domain,
    *,
    rows: int,
    block: int,
    persons: Codes | None = None,
    texts: Mapping[str, Texts] | None = None,
) -> Iterator[Batch]:
    """Rows in memory as batches of about `block` rows; at least one. With persons, numbers that never fall, no person
    is in two batches."""
    start = 0
    while start < rows or start == 0:
        stop = min(start + block, rows)
        if persons is not None and 0 < stop < rows:
            stop = int(np.searchsorted(persons, persons[stop - 1], side="right"))
        here = slice(start, stop)
        yield Batch(
            domain,
            stop - start,
            lambda name, here=here: codes[name][here],  # type: ignore[misc]
            persons=None if persons is None else lambda here=here: persons[here],  # type: ignore[misc]
            texts=(texts or {}).__getitem__,
        )
        start = max(stop, 1)


# Persons.


def order_key(identity: Identity) -> int:
    """The public key of a table with this declared name."""
    name = identity.name.encode("utf-8", "surrogatepass")
    found = hashlib.blake2b(name, digest_size=16, person=b"discreet-rows/1").digest()
    return int.from_bytes(found[:8], "little")


def person_ids(parts: Sequence[Values], identity: Identity) -> Ids:
    """Two words for each row that are equal exactly (for text: but for a hash collision) for rows of one person."""
    unit = identity.unit
    ids = np.zeros((2, sum(len(part.data) for part in parts)), dtype=np.uint64)
    for part in parts:
        if part.null.any():
            raise SchemaError(f"column {unit!r} names the person, and it has missing values")
        here, data = part.where, part.data
        if part.kind == "text":
            digests = [_named(text) for text in part.texts]
            ids[:, here] = _pairs(digests)[data].T
        elif data.dtype == object and all(_is_whole(entry) for entry in data):
            ids[:, here] = _pairs([_wide(int(entry)) for entry in data]).T
        elif part.kind == "whole":
            ids[:, here] = (data < 0).astype(np.uint64), data.view(np.uint64)
        elif part.kind != "nothing":
            raise SchemaError(f"column {unit!r} names the person: it must hold whole numbers or text")
    return ids[0], ids[1]


def _pairs(digests: Sequence[bytes]) -> Words:
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64).reshape(-1, 2)


_WHOLE = re.compile(r"(0|-?[1-9][0-9]*)\Z", re.ASCII)


def _named(text: str) -> bytes:
    """A text that names a person: a whole number in its usual spelling is that number, so that it is the same person in
    a CSV file and elsewhere. "017" is another one."""
    return _wide(int(text)) if len(text) < 40 and _WHOLE.match(text) else _hash(text.encode("utf-8", "surrogatepass"))


def _hash(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16, person=b"discreet-unit/1").digest()


def _is_whole(entry: Any) -> bool:
    """Of a whole number, fraction or decimal."""
    if isinstance(entry, Decimal):
        return bool(entry.is_finite() and entry == entry.to_integral_value())
    return bool(entry % 1 == 0)


def _wide(number: int) -> bytes:
    """A whole number of any size: exact in 64 bits and a sign, hashed beyond."""
    if -(2**63) <= number < 2**64:
        return int(number < 0).to_bytes(8, "little") + (number % 2**64).to_bytes(8, "little")
    return _hash(str(number).encode())


def _begins(high: Words, low: Words) -> Mask:
    """Where another person begins, in rows that stand together by person."""
    starts = np.ones(len(high), dtype=bool)
    starts[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    return starts


def numbered(high: npt.NDArray[Any], low: npt.NDArray[Any]) -> Codes:
    """A number for each row, the same for rows of equal words, in the order of the words."""
    order = np.lexsort((low, high))
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.cumsum(_begins(high[order], low[order])) - 1
    return numbers


@dataclass(frozen=True, slots=True, repr=False)
class KeptRows:
    """The rows that are kept: their places, person after person; the number of each one's person; and the persons."""

    places: Codes
    persons: Codes
    ids: Ids

    @property
    def count(self) -> int:
        """How many persons there are."""
        return len(self.ids[0])

    @staticmethod
    def of(ids: Ids, order: Words, limit: int) -> KeptRows:
        """The first `limit` rows of each person."""
        high, low = ids
        by_person = np.lexsort((order, low, high))
        high, low = high[by_person], low[by_person]
        starts, places = _begins(high, low), np.arange(len(by_person))
        keep = places - np.maximum.accumulate(np.where(starts, places, 0)) < limit
        return KeptRows(by_person[keep], (np.cumsum(starts) - 1)[keep], (high[starts], low[starts]))


@dataclass(frozen=True, slots=True, repr=False)
class HeldRows:
    """The kept rows of a table: codes, what texts stand for, the number of each row's person, the persons' words."""

    codes: Stored
    texts: Mapping[str, Texts]
    persons: Codes
    ids: Ids


def partition(ids: Ids, parts: int) -> Codes:
    """A part in 0 .. parts - 1 for each row, the same for all rows of a person."""
    return (_mix(ids[0] ^ _mix(ids[1])) % np.uint64(parts)).astype(np.int64)


MIX = (0x9E3779B97F4A7C15, 30, 0xBF58476D1CE4E5B9, 27, 0x94D049BB133111EB, 31)
"""The numbers of the finalizer of splitmix64, in the order of its steps."""


def _mix(words: Words) -> Words:
    """The finalizer of splitmix64: a fixed permutation of the 64-bit words."""
    start, one, first, two, second, three = map(np.uint64, MIX)
    with np.errstate(over="ignore"):
        words = words + start
        words = (words ^ (words >> one)) * first
        words = (words ^ (words >> two)) * second
        return words ^ (words >> three)
