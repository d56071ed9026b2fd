"""Tables that grow: rows arrive epoch by epoch, a month at a time, and epochs that are there never change.

An epoch is what arrives together, usually a file. A declared column, numbers or dates, holds the epoch of each row; it
is filled in here, so a row belongs to the epoch in which it arrives, whatever else it says. Late rows and corrections
are rows of a later epoch.

Who is in several epochs decides what is promised (docs/growing.md):

    apart      a person has rows in one epoch (`epochs_per_unit` = 1, or no unit: a row is a person). Each epoch has a
               budget of its own, since a release about one epoch does not look at the persons of another.
    returning  a person has rows in at most m epochs (`epochs_per_unit` = m > 1): one budget for all, and every price
               counts k m rows of a person, k = `rows_per_unit` in each epoch.

The rule is kept here, whatever the files hold: of a person the first m epochs count, *first come*. Rows of that person
in later epochs are left out. Which rows are kept of an epoch depends on this and earlier epochs only, so later ones
change nothing. Within an epoch at most k rows of a person are kept, chosen as in every table.

Under replace-one the number of persons of each epoch is public; neighbours have one person's rows replaced in the
epochs in which that person has some. Under add-remove nothing about a person is public, nor when they came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core import Codes, Neighbours, ParameterError, SchemaError, exact, one_line
from discreet.data.domain import Date, Domain, Number, Timestamp, flag
from discreet.data.ingest import (
    BLOCK,
    FIRST_EDITION,
    EncodedRows,
    Ids,
    KeptRows,
    PrivateRows,
    batches_of,
    checked_domain,
    checked_rows,
    facts_of,
    identity_of,
)
from discreet.data.rows import Batch, Facts, Growth, Identity

_ID = np.dtype([("high", np.uint64), ("low", np.uint64)])


@dataclass(frozen=True, slots=True, repr=False)
class _Epoch:
    """The kept rows of one epoch: the code of the epoch, its file, the rows, for each row the number of its person."""

    code: int
    source: Path | None
    rows: EncodedRows
    persons: Codes
    found: int
    before: tuple[tuple[str, int | None], ...] = ()  # this epoch and those that were read before it


class EpochsView(PrivateRows):
    """The rows of some epochs of a table that grows. Made by `over`."""

    __slots__ = ("_held", "_together", "source_epochs", "sources")
    source: None

    def __init__(self, facts: Facts, identity: Identity, epochs: Sequence[_Epoch]) -> None:
        self.facts, self.identity, self.source = facts, identity, None
        self.sources = tuple(each.source for each in epochs if each.source is not None)
        self.source_epochs = {each.source: each.before[-1][0] for each in epochs if each.source is not None}
        self._held = tuple(epochs)
        self._together: tuple[EncodedRows, Codes | None] | None = None
        checked_rows(sum(each.rows.rows for each in epochs))

    @property
    def epochs(self) -> tuple[str, ...]:
        """The epochs, in their order, as their column spells them."""
        return self._growth.epochs

    def over(self, *epochs: object) -> EpochsView:
        """The rows of these epochs; where persons return, they are the first ones up to some epoch."""
        growth, domain = self._growth, self.facts.domain
        column = epoch_column(domain, growth.column)
        wanted = {epoch_code(domain, growth.column, each) for each in epochs}
        held = [each for each in self._held if each.code in wanted]
        missing = wanted - {each.code for each in held}
        if missing or not held:
            known = f"its epochs are {', '.join(self.epochs)}"
            raise ParameterError(f"the table has no epoch {', '.join(map(column.text, sorted(missing)))}: {known}")
        if not growth.apart and [*held] != [*self._held[: len(held)]]:
            raise ParameterError("persons return to this table: its rows are those from the first epoch on")
        return EpochsView(_facts(domain, self.identity, growth.column, held), self.identity, held)

    @property
    def _growth(self) -> Growth:
        assert self.facts.growth is not None
        return self.facts.growth

    def _batches(self, reading: Callable[[Batch], object]) -> Iterator[Batch]:
        if self._together is None:
            self._together = _together(self._held, self.facts.domain, self._growth.column, self.identity.unit)
        rows, persons = self._together
        domain, texts = self.facts.domain, rows.texts
        return batches_of(rows.codes, domain, rows=rows.rows, block=BLOCK, persons=persons, texts=texts)


def _together(
    epochs: Sequence[_Epoch], domain: Domain, column: str, unit: str | None
) -> tuple[EncodedRows, Codes | None]:
    """The rows of several epochs with the column of the epoch; all rows of a person stand together."""
    rows = EncodedRows.joined([each.rows for each in epochs])
    stored, persons = domain[column].stored_type, np.concatenate([each.persons for each in epochs])
    codes = np.concatenate([np.full(each.rows.rows, each.code, dtype=stored) for each in epochs])
    rows = replace(rows, codes={**rows.codes, column: codes})
    if unit is None:
        return rows, None
    order = np.argsort(persons, kind="stable")
    return rows.of_rows(order), persons[order]


def _facts(domain: Domain, identity: Identity, column: str, held: Sequence[_Epoch]) -> Facts:
    spelled, most = epoch_column(domain, column), identity.epochs or 1
    labels = tuple(spelled.text(each.code) for each in held)
    # Where persons return `found` counts those of all epochs up to it.
    persons = sum(each.found for each in held) if most == 1 else held[-1].found
    facts = facts_of(domain, identity, size=None, persons_found=persons, edition=FIRST_EDITION)
    return replace(facts, growth=Growth(column, labels, most, held[-1].before))


class GrowingTable(EpochsView):
    """Rows that arrive epoch by epoch: GrowingTable({"2026-01-01": "january.parquet"}, domain, column="month").

    epochs           the rows of each epoch, in the order of the epochs: a frame, a dict of sequences, or the path of a
                     .parquet or .csv file, by the epoch as its column spells it
    domain           what may be in each column, that of the epoch included; rows need not have that one
    column           the column that holds the epoch: numbers or dates
    unit             the column that names the person; None: a row is a person, of the epoch in which it arrived
    rows_per_unit    how many rows of a person are kept in an epoch
    epochs_per_unit  the most epochs of a person that count, first come; 1: the persons of two epochs are different ones

    The table is a dataset: the rows of all its epochs. `over` has those of some.
    """

    __slots__ = ()

    def __init__(
        self,
        epochs: Mapping[Any, object],
        domain: Domain,
        *,
        column: str,
        neighbours: Neighbours | str = "replace-one",
        name: str = "table",
        unit: str | None = None,
        rows_per_unit: int | None = None,
        epochs_per_unit: int = 1,
        rehearsal: bool = False,
    ) -> None:
        domain, per_person = checked_domain(domain), exact.whole(epochs_per_unit=epochs_per_unit)
        if unit is None and per_person > 1:
            raise ParameterError("persons who return need unit=..., the column that names the person")
        in_epoch = replace(identity_of(name, neighbours, unit, rows_per_unit), rehearsal=flag(rehearsal=rehearsal))
        codes = _epoch_codes(domain, column, epochs)
        rows = domain.project([each for each in domain.names if each != column])
        spelled, read, before = epoch_column(domain, column), list[_Epoch](), list[tuple[str, int | None]]()
        for each in _read(rows, in_epoch, dict(zip(codes, epochs.values(), strict=True)), per_person):
            if each.source is not None and each.source in {known.source for known in read}:
                raise ParameterError(f"{each.source.name} is the file of two epochs: its rows would have two budgets")
            before.append((spelled.text(each.code), each.found if in_epoch.neighbours.replace_one else None))
            read.append(replace(each, before=tuple(before)))
        held = tuple(read)
        relation = Neighbours(in_epoch.neighbours.kind, in_epoch.neighbours.rows * per_person)
        identity = replace(in_epoch, neighbours=relation, epochs=per_person)
        super().__init__(_facts(domain, identity, column, held), identity, held)

    def newest(self) -> EpochsView:
        """What an epoch is added to a ledger with: its own rows, or all up to it where persons return."""
        return self.over(*(self.epochs[-1:] if self._growth.apart else self.epochs))

    @property
    def epoch_facts(self) -> list[tuple[str, int | None, Facts]]:
        """Of each epoch, in their order: its label, the number of persons if it is public, and the facts."""
        found = []
        for place, label in enumerate(self.epochs):
            held = self._held[place : place + 1] if self._growth.apart else self._held[: place + 1]
            facts = _facts(self.facts.domain, self.identity, self._growth.column, held)
            found.append((label, facts.size, facts))
        return found

    def __repr__(self) -> str:
        shown = ", ".join(self.epochs[:3]) + (f", ... {self.epochs[-1]}" if len(self.epochs) > 3 else "")
        return f"<GrowingTable {one_line(self.identity.name)!r}: epochs {shown}; {self.identity.neighbours}>"


def epoch_column(domain: Domain, name: str) -> Number | Date | Timestamp:
    """The column that holds the epochs: numbers or dates, which have an order and an end."""
    column = domain.column(exact.text(column=name))
    if not (column.bounded or column.calendar):
        raise ParameterError(f"epochs are numbers or dates, in their order; column {name!r} is {column!r}")
    return column


def epoch_code(domain: Domain, name: str, epoch: object) -> int:
    """The code of an epoch. Of a month "2026-01" is enough, of a year "2026"."""
    column = epoch_column(domain, name)
    if column.calendar and isinstance(epoch, str) and len(epoch) in (4, 7):
        epoch = f"{epoch}-01" if len(epoch) == 7 else f"{epoch}-01-01"
    try:
        return column.code(epoch)
    except ParameterError as error:
        raise ParameterError(f"column {name!r}: {error}") from None


def epoch_label(domain: Domain, name: str, epoch: object) -> str:
    """An epoch as its column spells it."""
    return epoch_column(domain, name).text(epoch_code(domain, name, epoch))


def _epoch_codes(domain: Domain, column: str, epochs: Mapping[Any, object]) -> list[int]:
    """The codes of the epochs, which must be in their order."""
    epoch_column(domain, column)
    if len(domain) < 2:
        raise ParameterError(f"declare at least one column beside {column!r}, which holds the epoch")
    if not isinstance(epochs, Mapping) or not epochs:
        raise ParameterError("epochs must be at least one epoch with its rows: {epoch: rows}")
    codes = [epoch_code(domain, column, each) for each in epochs]
    if codes != sorted(set(codes)):
        raise ParameterError("epochs must be in their order, each once")
    return codes


def _read(domain: Domain, identity: Identity, epochs: Mapping[int, object], per_person: int) -> Iterator[_Epoch]:
    """The kept rows of each epoch. Persons are numbered in the order of their first epoch."""
    known, used = np.zeros(0, dtype=_ID), np.zeros(0, dtype=np.int64)  # sorted; how many epochs of each person count
    numbers = np.zeros(0, dtype=np.int64)
    for code, given in epochs.items():
        rows, source = EncodedRows.given(given, domain, identity)
        checked_rows(rows.rows)
        if rows.ids is None:
            if identity.neighbours.replace_one and rows.rows == 0:
                raise SchemaError('an epoch is empty; under "replace-one" there must be at least one person in each')
            yield _Epoch(code, source, rows, np.arange(rows.rows), rows.rows)
            continue
        kept = KeptRows.of(rows.ids, rows.order(identity), identity.neighbours.rows)
        ids = _pairs(kept.ids)
        new = ids[~np.isin(ids, known)]
        place = np.searchsorted(known, new)
        known = np.insert(known, place, new)
        used, numbers = np.insert(used, place, 0), np.insert(numbers, place, len(numbers) + np.arange(len(new)))
        at = np.searchsorted(known, ids)
        counts = used[at] < per_person  # first come
        used[at[counts]] += 1
        chosen = counts[kept.persons]
        found = len(known) if per_person > 1 else int(counts.sum())
        if identity.neighbours.replace_one and per_person == 1 and not counts.any():
            raise SchemaError('an epoch has nobody; under "replace-one" there must be at least one person in each')
        yield _Epoch(code, source, rows.of_rows(kept.places[chosen]), numbers[at][kept.persons][chosen], found)


def _pairs(ids: Ids) -> npt.NDArray[np.void]:
    found = np.empty(len(ids[0]), dtype=_ID)
    found["high"], found["low"] = ids
    return found
