"""The distinct rows of a table with their counts, where they are fewer: the same sums from fewer numbers.

A row of declared columns is one number: its codes are the digits of a mixed-radix key. The first sum that can be taken
over counted rows is taken over all of them, as ever, and the keys are noted on the way; later ones are taken over the
distinct rows, if those are fewer than half.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from discreet.core import Codes, ParameterError
from discreet.data.domain import MAX_CODES, Domain
from discreet.data.ingest import PrivateRows, stored_type
from discreet.data.rows import Batch, Dataset, Filter, Slice, Summed

KEPT = 2**24
"""Numbers that the distinct rows may be: the rows times one more than the columns."""

_LEAST = 2**16  # keys that are gathered before they are merged


class DistinctRows(PrivateRows):
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

    __slots__ = ("_columns", "_counted", "_looked", "_table", "sources")

    def __init__(self, table: Dataset) -> None:
        if not all(hasattr(table, name) for name in ("facts", "identity", "exact_sum", "exact_slices")):
            raise ParameterError(f"table must be a Table or another dataset, found a {type(table).__name__}")
        self._table, self.facts, self.identity, self.source = table, table.facts, table.identity, table.source
        self.sources = getattr(table, "sources", () if table.source is None else (table.source,))
        self._columns, self._looked = mixed(table.facts.domain), False
        self._counted: tuple[Batch, Codes] | None = None

    def check_source(self) -> None:
        """LedgerMismatch if the table's file changed since it was made."""
        self._table.check_source()

    def exact_sum(self, partial: Callable[[Batch], Summed]) -> Summed:
        """The exact sum of a bounded integer function of the rows. Not private."""
        # How the query that owns this function sums over counted rows, if it is a query's own `partial` and it knows.
        owner = getattr(partial, "__self__", None)
        own = getattr(partial, "__func__", None) is getattr(type(owner), "partial", partial)
        weighted = getattr(owner, "weighted", None) if own else None
        if weighted is None or not self._in_keys(partial) or (self._looked and self._counted is None):
            return self._table.exact_sum(partial)
        if self._counted is not None:
            self.check_source()
            return weighted(*self._counted)  # type: ignore[no-any-return]
        keys = _Keys(self.facts.domain, self._columns)

        def both(batch: Batch) -> Summed:
            keys.add(batch)
            return partial(batch)

        total = self._table.exact_sum(both)
        self._counted, self._looked = keys.counted(), True
        return total

    def exact_slices(self, slices: Sequence[Slice], *, where: Filter | None = None, disjoint: bool) -> list[Codes]:
        """The exact most extreme values of columns. Not private."""
        return self._table.exact_slices(slices, where=where, disjoint=disjoint)

    def _in_keys(self, partial: Callable[[Batch], object]) -> bool:
        """Whether the function looks at columns that are in the keys only, as it shows on no rows."""
        if self._columns == self.facts.domain.names:
            return True
        seen: list[str] = []
        partial(Batch.empty(self.facts.domain, seen))
        return bool(self._columns) and set(seen) <= set(self._columns)


def mixed(domain: Domain) -> tuple[str, ...]:
    """The columns whose codes make up a key; none if there would be more than 2^62 keys."""
    names = tuple(name for name, column in domain.columns if column.listed)
    return names if math.prod(domain.column(name).size for name in names) <= MAX_CODES else ()


class _Keys:
    """The distinct keys of the rows seen so far, sorted, with their counts; nothing once they are too many."""

    __slots__ = ("_domain", "_names", "_waiting", "counts", "keys", "rows", "too_many")

    def __init__(self, domain: Domain, names: tuple[str, ...]) -> None:
        self._domain, self._names, self.rows, self.too_many = domain, names, 0, False
        self._waiting: list[tuple[Codes, Codes]] = []
        self.keys: Codes = np.zeros(0, dtype=np.int64)
        self.counts: Codes = self.keys

    def add(self, batch: Batch) -> None:
        """The rows of a batch. Keys wait until they are as many as those merged, so that each is sorted a few times."""
        if self.too_many:
            return
        self.rows += batch.rows
        key = np.zeros(batch.rows, dtype=np.int64)
        for name in self._names:
            key = key * self._domain.column(name).size + batch[name]
        self._waiting.append(np.unique(key, return_counts=True))
        if sum(len(keys) for keys, _ in self._waiting) >= max(_LEAST, len(self.keys)):
            self._merge()

    def counted(self) -> tuple[Batch, Codes] | None:
        """The distinct rows as one batch, and their counts, if they are few enough."""
        self._merge()
        if self.too_many or 2 * len(self.keys) >= self.rows:
            return None
        left, codes = self.keys, {}  # the digits of the keys, in the smallest integers that hold them
        for name in reversed(self._names):
            left, code = np.divmod(left, self._domain.column(name).size)
            codes[name] = code.astype(stored_type(self._domain.column(name)))
        return Batch(self._domain, len(self.keys), codes.__getitem__), self.counts

    def _merge(self) -> None:
        keys, counts = np.concatenate([(self.keys, self.counts), *self._waiting], axis=1)
        self._waiting = []
        self.keys, place = np.unique(keys, return_inverse=True)
        # Floats, but exact: all counts are at most MAX_ROWS, far below 2^53.
        self.counts = np.bincount(place, weights=counts, minlength=len(self.keys)).astype(np.int64)
        if len(self.keys) * (len(self._names) + 1) > KEPT:
            self.too_many = True
            self.keys = self.counts = np.zeros(0, dtype=np.int64)
