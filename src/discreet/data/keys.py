"""Rows of declared columns as one number each: the digits of a mixed-radix key are the codes of the listed columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from discreet.core import Codes
from discreet.data.domain import Domain
from discreet.data.rows import Batch

KEPT = 2**24
"""Numbers that the distinct rows may be: the rows times one more than the columns."""

_LEAST = 2**16  # keys that are gathered before they are merged


def distinct_of(batches: Iterable[Batch], domain: Domain) -> tuple[Batch, Codes] | None:
    """The distinct rows of the listed columns as one batch, and how many rows are equal to each.

    None if they are half of the rows or more, or more than KEPT numbers, or if the domain has too many keys.
    """
    keys = DistinctKeys(domain, domain.digits)
    for batch in batches if keys.names else ():
        keys.add(batch)
        if keys.too_many:
            break
    return keys.counted()


def rows_of_keys(domain: Domain, names: Sequence[str], keys: Codes) -> Batch:
    """The rows whose keys have these columns as digits, in the smallest integers that hold them."""
    left, codes = keys, {}
    for name in reversed(names):
        left, code = np.divmod(left, domain.column(name).size)
        codes[name] = code.astype(domain.column(name).stored_type)
    return Batch(domain, len(keys), codes.__getitem__)


class DistinctKeys:
    """The distinct keys of the rows seen so far, sorted, with their counts; nothing once they are too many."""

    __slots__ = ("_domain", "_waiting", "counts", "keys", "names", "rows", "too_many")

    def __init__(self, domain: Domain, names: tuple[str, ...]) -> None:
        self._domain, self.names, self.rows, self.too_many = domain, names, 0, False
        self._waiting: list[tuple[Codes, Codes]] = []
        self.keys: Codes = np.zeros(0, dtype=np.int64)
        self.counts: Codes = self.keys

    def add(self, batch: Batch) -> None:
        """The rows of a batch. Keys wait until they are as many as those merged, so that each is sorted a few times."""
        if self.too_many:
            return
        self.rows += batch.rows
        key = np.zeros(batch.rows, dtype=np.int64)
        for name in self.names:
            key = key * self._domain.column(name).size + batch[name]
        self._waiting.append(np.unique(key, return_counts=True))
        if sum(len(keys) for keys, _ in self._waiting) >= max(_LEAST, len(self.keys)):
            self._merge()

    def counted(self) -> tuple[Batch, Codes] | None:
        """The distinct rows as one batch, and their counts, if they are few enough."""
        self._merge()
        if self.too_many or not self.names or 2 * len(self.keys) >= self.rows:
            return None
        return rows_of_keys(self._domain, self.names, self.keys), self.counts

    def merged(self) -> tuple[Codes, Codes, int] | None:
        """The keys, their counts and the number of rows, if the keys are not too many."""
        self._merge()
        return None if self.too_many else (self.keys, self.counts, self.rows)

    def merge(self, other: tuple[Codes, Codes, int] | None) -> None:
        """Add the keys of other rows; None: those are too many."""
        if other is None or self.too_many:
            self.too_many = True
            return
        self._waiting.append(other[:2])
        self.rows += other[2]
        self._merge()

    def _merge(self) -> None:
        keys, counts = np.concatenate([(self.keys, self.counts), *self._waiting], axis=1)
        self._waiting = []
        self.keys, place = np.unique(keys, return_inverse=True)
        # Floats, but exact: all counts are at most 2^40, below 2^53.
        self.counts = np.bincount(place, weights=counts, minlength=len(self.keys)).astype(np.int64)
        if len(self.keys) * (len(self.names) + 1) > KEPT:
            self.too_many = True
            self.keys = self.counts = np.zeros(0, dtype=np.int64)
