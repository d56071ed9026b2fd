"""Tables of declared columns whose rows are in memory."""

from __future__ import annotations

from dataclasses import replace

from discreet.core import Neighbours
from discreet.data.domain import Domain, flag
from discreet.data.ingest import (
    FIRST_EDITION,
    EncodedRows,
    HeldInMemory,
    HeldRows,
    Ids,
    KeptRows,
    checked_domain,
    checked_edition,
    checked_rows,
    facts_of,
    identity_of,
)


class Table(HeldInMemory):
    """Rows in memory: Table(frame, domain, neighbours="replace-one", name="people").

    rows        a pandas, polars or pyarrow frame, a dict of sequences, or the path of a .parquet or .csv file. Only
                declared columns are read. A CSV file is text; numbers and booleans are read from what it spells.
    domain      what may be in each column.
    neighbours  "replace-one" (the number of persons is public) or "add-remove" (it is private).
    unit        the column that names the person, when a person may hold several rows; at most rows_per_unit of them are
                kept, by a choice that depends on that person's rows only.
    size        add-remove: a number of persons that the owner declares, for what needs one. replace-one: checked.
    rehearsal   True: the rows are made up (`discreet.rehearsal`); ledgers of real tables refuse them.
    edition     the owner's public label of these rows. Declare a new one whenever rows are added, removed or corrected:
                a session answers only from releases about the same edition. None: no session answers about the rows.
    """

    __slots__ = ("_ids",)

    def __init__(
        self,
        rows: object,
        domain: Domain,
        *,
        neighbours: Neighbours | str = "replace-one",
        name: str = "table",
        unit: str | None = None,
        rows_per_unit: int | None = None,
        size: int | None = None,
        rehearsal: bool = False,
        edition: str | None = FIRST_EDITION,
    ) -> None:
        domain, edition = checked_domain(domain), checked_edition(edition)
        self.identity = replace(identity_of(name, neighbours, unit, rows_per_unit), rehearsal=flag(rehearsal=rehearsal))
        encoded, self.source = EncodedRows.given(rows, domain, self.identity)
        persons = checked_rows(encoded.rows)
        self._persons = None
        self._ids: Ids | None = None
        if encoded.ids is not None:
            kept = KeptRows.of(encoded.ids, encoded.order(self.identity), self.identity.neighbours.rows)
            encoded, persons = encoded.of_rows(kept.places), kept.count
            self._persons, self._ids = kept.persons, kept.ids
        self._codes, self._texts, self._rows = encoded.codes, encoded.texts, encoded.rows
        self.facts = facts_of(domain, self.identity, size=size, persons_found=persons, edition=edition)

    def _held(self) -> HeldRows:
        """For a database, which joins tables by their persons."""
        assert self._persons is not None  # a table of a database has a unit
        assert self._ids is not None
        return HeldRows(self._codes, self._texts, self._persons, self._ids)
