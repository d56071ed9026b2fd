"""The distinct rows of a table with their counts, where they are fewer: the same sums from fewer numbers.

The first sum that can be taken over counted rows asks the table for its distinct rows (`exact_distinct`: one pass, or
one GROUP BY); it and all later ones are taken over those, if they are fewer than half.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy.typing as npt

from discreet.core import Codes, ParameterError
from discreet.data.ingest import PrivateRows
from discreet.data.rows import (
    Batch,
    Dataset,
    Filter,
    Slice,
    Summand,
    Summed,
    is_dataset,
    refuse_to_leave,
    row_function,
    snapshot_of,
)


class RowsOf:
    """The rows of another dataset, behind the same doors."""

    __slots__ = ()
    _table: Dataset

    def check_source(self) -> None:
        """LedgerMismatch if the table's file changed since it was made."""
        self._table.check_source()

    @property
    def offers(self) -> Any:
        """What the table offers."""
        return self._table.offers

    def exact_sum(self, query: Summand[Summed] | Callable[[Batch], Summed]) -> Summed:
        """The exact sum of a query, or of a bounded integer function of the rows. Not private."""
        return self._table.exact_sum(query)

    def exact_gather(self, take: Callable[[Batch], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """What a function finds in the rows, all of it, in no promised order. Not private."""
        return self._table.exact_gather(take)

    def exact_slices(self, slices: Sequence[Slice], *, where: Filter | None = None, disjoint: bool) -> list[Codes]:
        """The exact most extreme values of columns. Not private."""
        return self._table.exact_slices(slices, where=where, disjoint=disjoint)

    __reduce_ex__ = refuse_to_leave
    __copy__ = refuse_to_leave
    __deepcopy__ = refuse_to_leave


class DistinctRows(RowsOf, PrivateRows):
    """A dataset that gives the sums of another one, from its distinct rows where they are fewer than half.

    Theorem.   Every sum is equal to the table's, bit for bit: a query's `weighted` on the distinct rows with their
               counts is its `partial` on all rows (integer sums do not care about order), and every other function of
               the rows goes to the table itself.
    Edges.     Nothing is read before the first sum is asked for, and nothing is kept of a table whose distinct rows
               are half of its rows or more, or more than KEPT numbers. A domain of more than 2^62 rows has no keys, and
               columns other than Category and Number have no place in them: what looks at those goes to the table.
               Persons with several rows: the rows that the table keeps of them. A file that changed is refused, as the
               table refuses it. How long a sum takes depends on how many rows are distinct, as it depends on how many
               there are.
    """

    __slots__ = ("_columns", "_counted", "_looked", "_table", "source_epochs", "sources")

    def __init__(self, table: Dataset) -> None:
        if not is_dataset(table):
            raise ParameterError(f"table must be a Table or another dataset, found a {type(table).__name__}")
        self._table, self.facts, self.identity, self.source = table, table.facts, table.identity, table.source
        self.sources = getattr(table, "sources", () if table.source is None else (table.source,))
        self.source_epochs = getattr(table, "source_epochs", {})
        self._columns, self._looked = table.facts.domain.digits, False
        self._counted: tuple[Batch, Codes] | None = None

    def exact_sum(self, query: Summand[Summed] | Callable[[Batch], Summed]) -> Summed:
        """The exact sum of a query, or of a bounded integer function of the rows. Not private."""
        weighted = getattr(query, "weighted", None)
        if weighted is None or not self._in_keys(row_function(query)):
            return self._table.exact_sum(query)
        if not self._looked:
            distinct = getattr(self._table, "exact_distinct", None)
            self._counted, self._looked = None if distinct is None else distinct(), True
        if self._counted is None:
            return self._table.exact_sum(query)
        self.check_source()
        return weighted(*self._counted)  # type: ignore[no-any-return]

    def snapshot(self) -> AbstractContextManager[None]:
        """All sums in this block are of the same rows, if the table's rows may change."""
        return snapshot_of(self._table)

    def _in_keys(self, partial: Callable[[Batch], object]) -> bool:
        """Whether the function looks at columns that are in the keys only, as it shows on no rows."""
        if self._columns == self.facts.domain.names:
            return True
        seen: list[str] = []
        partial(Batch.empty(self.facts.domain, seen))
        return bool(self._columns) and set(seen) <= set(self._columns)
