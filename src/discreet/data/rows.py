"""Private rows inside public facts: what every dataset has in common.

`Facts` are everything public that a price may depend on, and which edition of the rows it is; `Identity` is what the
owner calls the table. A `Batch` is some of the rows, as codes, and lives only while a sum is taken. A dataset has three
doors, `exact_sum`, `exact_slices` and `exact_gather`; the functions `sum_of`, `slices.slices_of` and `gathered_of` are
those doors for any stream of batches, so that every dataset gives the same integers.

A function that goes through a door is pure: a value, or a function of values, that holds no rows and no dataset. It may
be copied, run in another process, run twice, and run on the batches in any order; nothing that it does to the variables
of its caller is seen.

Sums are exact: contributions are integers, and integer addition does not care how the rows are cut into batches. A
dataset holds at most MAX_ROWS = 2^31 - 1 rows, so sums of contributions up to 2^31 stay below 2^62 in int64; a query
with larger ones sums in Python integers, or asks `Facts.require_room` before any row is read.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from discreet.core import Codes, IntArray, Json, Neighbours, ParameterError, exact, record
from discreet.data.domain import Domain

MAX_ROWS = 2**31 - 1

PERSONS = ""
"""Among the columns that a function looks at: it looks at `Batch.persons`. No column has this name."""

Key = tuple[int | str | None, ...]
Texts = Sequence[str | None]
Summed = TypeVar("Summed", IntArray, Counter[Key])
Total = TypeVar("Total", IntArray, Counter[Key], covariant=True)


@dataclass(frozen=True, slots=True)
class Growth:
    """Of a table that grows (`data.growing`): which of its epochs these rows are of.

    column      the column that holds the epoch of a row
    epochs      the epochs, in their order, as the column spells them
    per_person  the most epochs that a person has rows in; 1: the persons of two epochs are different persons
    read        all epochs up to the last of these, which decided who belongs to them (first come), each with the number
                of persons if that is public: a ledger compares them with its own before every charge. No price depends
                on it, and it is not in the record
    """

    NAME: ClassVar[str] = "growth/1"
    column: str
    epochs: tuple[str, ...]
    per_person: int
    read: tuple[tuple[str, int | None], ...] = field(default=(), compare=False)

    def stated_record(self) -> dict[str, Json]:
        fields = {"column": self.column, "epochs": self.epochs, "per_person": self.per_person}
        return {"name": self.NAME, **{name: record(value) for name, value in fields.items()}}

    @property
    def apart(self) -> bool:
        """Whether no person is in two epochs, so that each epoch has a budget of its own."""
        return self.per_person == 1


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything public that a price may depend on, and which edition of the rows it is.

    size     replace-one: the number of persons. add-remove: None, or a number that the owner declares (it need not be
             the number of persons).
    edition  the owner's label of the rows as they are now; a corrected or grown table has another one. Never a function
             of the rows. None: the rows are an array that was handed to an estimator, or come from a ledger written
             before there were editions; a session learns nothing from releases about them.
    table    of several tables about the same persons (`data.database`): which one, or which joined ones, this is about.
             A person may have no row in it, unless a person has one row there (`Neighbours.rows` is 1). None: the
             only table of its persons.
    personal the columns that are the same in all rows of a person: those that a join takes from tables of one row each
    growth   of a table that grows: which of its epochs these rows are of
    """

    NAME: ClassVar[str] = "facts/1"
    domain: Domain
    neighbours: Neighbours
    size: int | None
    edition: str | None = None
    table: str | None = None
    personal: tuple[str, ...] = ()
    growth: Growth | None = None

    def stated_record(self) -> dict[str, Json]:
        """The record; without an edition, or a table, it is the one that ledgers had before there were any."""
        found = {"name": self.NAME, "domain": record(self.domain), "neighbours": record(self.neighbours)}
        found["size"] = self.size
        later: dict[str, object] = {"edition": self.edition, "table": self.table, "growth": self.growth}
        later["personal"] = self.personal or None
        return {**found, **{name: record(value) for name, value in later.items() if value is not None}}

    @property
    def everybody(self) -> bool:
        """Whether there are at least as many rows as persons, whose number is public: each has one. Of several tables
        somebody may be in one of them only."""
        return self.neighbours.replace_one and (self.table is None or self.neighbours.rows == 1)

    @property
    def lasting(self) -> Facts:
        """What of it stays when the table grows."""
        if self.growth is None:
            return self
        return replace(self, size=None, edition=None, growth=replace(self.growth, epochs=(), read=()))

    @property
    def rows_bound(self) -> int:
        """No table with these facts has more rows. Only a far table (`data.far`) has more than MAX_ROWS persons."""
        if self.size is not None and self.size > MAX_ROWS:  # a far table
            return self.size * self.neighbours.rows
        if not self.neighbours.replace_one or self.size is None:
            return MAX_ROWS
        return min(MAX_ROWS, self.size * self.neighbours.rows)

    def require_room(self, per_row: int) -> None:
        """A sum of contributions of at most per_row in absolute value fits int64, whatever the rows are."""
        if per_row * self.rows_bound >= 2**62:
            summed = f"a sum over up to {self.rows_bound} rows of contributions up to {per_row}"
            raise ParameterError(f"{summed} does not fit 62 bits; take a coarser grid")


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose rows these are, as declared by the owner; never a function of the rows.

    rehearsal  True: the rows are made up, nobody's; a ledger takes either such rows or real ones, never both
    tables     several tables about the same persons: each as its name and the relation by which it is priced. The
               others, `name`, `neighbours` and `unit`, are then about the database: a person is one row of it
    epochs     of a table that grows: the most epochs that a person has rows in
    """

    name: str
    neighbours: Neighbours
    unit: str | None
    rehearsal: bool = False
    tables: tuple[tuple[str, Neighbours], ...] = ()
    epochs: int | None = None

    def counts(self, neighbours: Neighbours) -> bool:
        """Whether a guarantee about this relation is one about these persons; each table has its own number of rows."""
        return neighbours.kind == self.neighbours.kind if self.tables else neighbours == self.neighbours


@dataclass(frozen=True, slots=True)
class Slice:
    """The `count` most extreme rows of a column of numbers: side "low" or "high"."""

    NAME: ClassVar[str] = "slice/1"
    column: str
    side: str
    count: int

    def __post_init__(self) -> None:
        if self.side not in ("low", "high"):
            raise ParameterError(f'side must be "low" or "high", found {self.side!r}')
        object.__setattr__(self, "count", exact.whole(minimum=0, count=self.count))


class Batch:
    """Some rows of a dataset as codes: batch["age"] is an int64 array, of shape (rows, dimension) for a Vector."""

    __slots__ = ("_codes", "_load", "_persons", "_stored", "_texts", "domain", "rows")

    def __init__(
        self,
        domain: Domain,
        rows: int,
        load: Callable[[str], npt.NDArray[Any]],
        *,
        persons: Callable[[], npt.NDArray[Any]] | None = None,
        texts: Callable[[str], Texts] | None = None,
    ) -> None:
        """persons, texts: what the properties of these names give; without them every row is a person of its own."""
        self.domain, self.rows, self._load, self._persons, self._texts = domain, rows, load, persons, texts
        self._codes: dict[str, Codes] = {}
        self._stored: dict[str, npt.NDArray[Any]] = {}

    @property
    def persons(self) -> Codes:
        """For each row a number that it shares with the other rows of its person.

        A dataset whose sum looks at persons cuts its batches between persons: all rows of a person are in one batch.
        """
        return np.arange(self.rows) if self._persons is None else self._persons().astype(np.int64, copy=False)

    def texts(self, name: str) -> Texts:
        """What the codes of a Text stand for in this batch: texts[code]; None stands for a missing value."""
        return () if self._texts is None else self._texts(name)

    def __getitem__(self, name: str) -> Codes:
        if name not in self._codes:
            codes = self.stored(name).astype(np.int64, copy=False)[:]
            codes.flags.writeable = False
            self._codes[name] = codes
        return self._codes[name]

    def stored(self, name: str) -> npt.NDArray[Any]:
        """The codes in the integers they are stored in, which may be narrower: what one reads without a copy."""
        if name not in self._stored:
            self.domain.column(name)
            self._stored[name] = np.asarray(self._load(name))
        return self._stored[name]

    @staticmethod
    def empty(domain: Domain, seen: list[str] | None = None) -> Batch:
        """No rows at all; `seen` gets the names of the columns that are looked at."""

        def nothing(name: str) -> npt.NDArray[Any]:
            if seen is not None:
                seen.append(name)
            return domain.column(name).empty()

        def nobody() -> npt.NDArray[Any]:
            if seen is not None:
                seen.append(PERSONS)
            return np.zeros(0, dtype=np.int64)

        return Batch(domain, 0, nothing, persons=nobody)

    def read(self, names: Iterable[str], where: Filter | None = None) -> None:
        """Look at these columns, and at those of a condition."""
        for name in names:
            self.stored(name)
        if where is not None:
            where.mask(self)

    def plain_rows(self) -> Iterator[dict[str, Any]]:
        """The rows one at a time, as a user's function sees them: {column: level, number, vector or booleans}."""
        columns = {name: column.plain(self.stored(name), self.rows) for name, column in self.domain.items()}
        for place in range(self.rows):
            yield {name: copy.copy(values[place]) for name, values in columns.items()}

    def __repr__(self) -> str:
        return "Batch(private rows)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        refuse_to_leave(self)


class Summand(Protocol[Total]):
    """What is summed, as a value whose type can be looked at: every query is one."""

    def partial(self, batch: Batch) -> Total: ...


def row_function(query: Summand[Summed] | Callable[[Batch], Summed]) -> Callable[[Batch], Summed]:
    """The function of a batch that is summed: a query's `partial`, or the function itself."""
    found: Callable[[Batch], Summed] = getattr(query, "partial", None) or query  # type: ignore[assignment]
    return found


class Filter(Protocol):
    """A condition on single rows: every predicate of `discreet.query` is one."""

    def check(self, domain: Domain) -> None: ...
    def mask(self, batch: Batch) -> npt.NDArray[np.bool_]: ...


class Dataset(Protocol):
    """Private rows. Three doors only; their names start with exact_, so review is a search for a word.

    exact_sum     the sum over all rows of a bounded integer function, given batch by batch: a query, or a function that
                  returns the sum over one batch as an integer array or a Counter. It is called for at least one, maybe
                  empty, batch, and looks at the same columns of every batch (files are read for those alone). If it
                  looks at `Batch.persons`, no person has rows in two batches.
    exact_slices  for each slice the codes of its column in its most extreme rows, most extreme first; `data.slices`.
    exact_gather  what `take` finds in the batches, joined along the last axis, in no promised order. It moves rows: how
                  many bytes, a mechanism says in advance (`Needs.gathers`), and `offers` has the limit.
    offers        what of this the dataset can do (`data.needs`): compared with `needs` before every charge.
    source        the file the rows came from, if any.
    check_source  raises LedgerMismatch if that file is no longer the one that was read: asked before every charge.

    The functions are pure, as the module's docstring says.
    """

    @property
    def facts(self) -> Facts: ...
    @property
    def identity(self) -> Identity: ...
    @property
    def source(self) -> Path | None: ...
    @property
    def offers(self) -> Any: ...
    def check_source(self) -> None: ...
    def exact_sum(self, query: Summand[Summed] | Callable[[Batch], Summed]) -> Summed: ...
    def exact_slices(self, slices: Sequence[Slice], *, where: Filter | None = None, disjoint: bool) -> list[Codes]: ...
    def exact_gather(self, take: Callable[[Batch], npt.NDArray[Any]]) -> npt.NDArray[Any]: ...


DOORS = ("facts", "identity", "source", "check_source", "exact_sum", "exact_slices", "exact_gather")
"""What makes an object a dataset."""


def snapshot_of(data: object) -> AbstractContextManager[None]:
    """A block in which all sums are of the same rows: what a dataset gives whose rows may change meanwhile."""
    taken: Callable[[], AbstractContextManager[None]] = getattr(data, "snapshot", nullcontext)
    return taken()


def is_dataset(rows: object) -> bool:
    """Whether these are private rows behind the doors, whatever their class is."""
    return all(hasattr(rows, name) for name in DOORS)


def refuse_to_leave(private: object, *_: object) -> NoReturn:
    """Private rows are neither pickled nor copied: a second copy would not be watched by anybody."""
    raise TypeError(f"a {type(private).__name__} holds private rows: it cannot be pickled or copied")


def sum_of(batches: Iterable[Batch], partial: Callable[[Batch], Summed]) -> Summed:
    """The sum of partial over the batches: int64, or Python integers where partial gives objects, or a Counter."""
    total: Summed = total_of(map(partial, batches))
    return total


def total_of(parts: Iterable[Any]) -> Any:
    """The sum of what `partial` gave for each batch, in any order; None of none."""
    total: Any = None
    for part in parts:
        if isinstance(part, Counter):
            total = Counter() if total is None else total
            total.update(part)
            continue
        added = np.asarray(part)
        if added.dtype.kind not in "iuO":
            raise ParameterError(f"only integers are summed, found {added.dtype}")
        if total is None:
            total = np.array(added, dtype=object if added.dtype == object else np.int64)
        else:
            np.add(total, added, out=total)
    return total


def gathered_of(parts: Iterable[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """What was found in the batches, joined along the last axis: whole numbers, at least one part."""
    found = list(parts)
    if any(part.dtype.kind not in "iuO" for part in found):
        raise ParameterError("only integers are gathered")
    return np.concatenate(found, axis=-1)
