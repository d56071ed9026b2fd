"""Rows that are elsewhere: the doors of a dataset over an engine that runs a function on each of its parts.

A part encodes its own rows by the rules of every other dataset, sums them in int64, and sends the integers; the owner's
process adds those of all parts. A part has at most MAX_ROWS rows, so that its sums of contributions up to 2^31 stay
below 2^62; the sums of parts are added in Python integers, so a far table may have MAX_FAR_ROWS = 2^40 rows. A result
that fits 62 bits is an int64 array, as every dataset gives it.

    sums      move the integers of each part
    slices    move the rows of each part that may be in a slice (`data.slices.candidates_of`)
    gather    moves all that is gathered, up to `gather_limit` bytes by public numbers
    distinct  moves the distinct rows of each part with their counts
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from discreet.core import Codes, DiscreetError, ParameterError, SchemaError, exact, quietly
from discreet.data.domain import Domain
from discreet.data.ingest import PrivateRows, checked_domain, checked_edition, facts_of
from discreet.data.keys import DistinctKeys
from discreet.data.needs import Needs, Offers
from discreet.data.rows import (
    MAX_ROWS,
    PERSONS,
    Batch,
    Facts,
    Filter,
    Identity,
    Slice,
    Summand,
    Summed,
    gathered_of,
    row_function,
    sum_of,
    total_of,
)
from discreet.data.slices import candidates_of, slices_of

MAX_FAR_ROWS = 2**40
"""Rows of a far table."""

GATHER_LIMIT = 2**30
"""Bytes of rows that a far table moves to its owner's process, unless it is told another limit."""

BATCH_ROWS = 2**18
"""Rows that a part encodes at a time."""

Result = TypeVar("Result")
Batches = Iterable[Batch]
Fold = Callable[[Batches], Any]
"""What is made of the batches of one part. A part has at least one, maybe empty, batch."""


class FarOffers(Offers):
    """What a far table offers: everything, if it has at most MAX_ROWS rows. Of more rows, the sums of queries."""

    __slots__ = ()

    def refusal(self, needs: Needs, facts: Facts) -> str | None:
        if needs.functions and facts.rows_bound > MAX_ROWS:
            return f"of more than {MAX_ROWS:,} rows only counts and sums are taken: other sums may not fit 64 bits"
        return super().refusal(needs, facts)


class Far(PrivateRows):
    """A dataset whose rows are elsewhere; `_folded` is what a subclass knows how to do."""

    __slots__ = ("_domain", "_offers")
    _domain: Domain
    _offers: Offers

    def _declare(self, domain: Domain, identity: Identity, edition: str | None) -> None:
        """What the owner declares."""
        checked_edition(edition)
        self._domain, self.identity, self.source = checked_domain(domain), identity, None

    def _offer(self, gather_limit: int | None, pass_seconds: float, *, fixed: bool = True) -> None:
        limit = None if gather_limit is None else exact.whole(0, gather_limit=gather_limit)
        self._offers = FarOffers(gather_limit=limit, pass_seconds=pass_seconds, fixed=fixed)

    def _settle(self, rows: int, persons: int, *, size: int | None, edition: str | None) -> None:
        """The facts, when the rows were read. Under add-remove a declared size above 2^31 raises the bound of rows."""
        self.facts = facts_of(
            self._domain,
            self.identity,
            size=size,
            persons_found=persons,
            edition=checked_edition(edition),
            most=MAX_FAR_ROWS,
        )
        if rows > (most := self.facts.rows_bound):
            raise ParameterError(
                f"prices hold for at most {most:,} rows and there are more: declare size= (persons), as many"
            )

    def _folded(self, names: tuple[str, ...], fold: Fold, *, persons: bool) -> list[Any]:
        """The fold of each part, which reads these columns; persons: and no person is in two batches."""
        raise NotImplementedError

    @property
    def offers(self) -> Offers:
        """What this dataset can do."""
        return self._offers

    def exact_sum(self, query: Summand[Summed] | Callable[[Batch], Summed]) -> Summed:
        """The exact sum of a query, or of a bounded integer function of the rows. Not private."""
        partial = row_function(query)
        found: Summed = far_total(self._over(partial, functools.partial(sum_of, partial=partial)))
        return found

    def exact_gather(self, take: Callable[[Batch], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """What a function finds in the rows, all of it, in no promised order. Not private."""
        return gathered_of(self._over(take, functools.partial(_gathered, take)))

    def exact_slices(self, slices: Sequence[Slice], *, where: Filter | None = None, disjoint: bool) -> list[Codes]:
        """The exact most extreme values of columns. Not private."""
        domain, wanted = self.facts.domain, tuple(slices)
        none = functools.partial(slices_of, slices=wanted, domain=domain, where=where, disjoint=disjoint)
        none(lambda: [Batch.empty(domain)])  # says what is wrong with the question before a row is read
        coded = [name for name, column in domain.items() if not column.free]
        parts = self._over(
            lambda batch: batch.read(coded, where), functools.partial(candidates_of, slices=wanted, where=where)
        )
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        batch = Batch(domain, len(next(iter(columns.values()))), columns.__getitem__)
        return slices_of(lambda: [batch], wanted, domain=domain, where=None, disjoint=disjoint)

    def exact_distinct(self) -> tuple[Batch, Codes] | None:
        """The distinct rows with their counts, if they are fewer than half (`data.distinct`). Not private."""
        names = self.facts.domain.digits
        if not names or self.facts.rows_bound > MAX_ROWS:  # sums by counts are proved for so many rows
            return None
        keys = DistinctKeys(self.facts.domain, names)
        for part in self._over(lambda batch: batch.read(names), functools.partial(_keys, self.facts.domain)):
            keys.merge(part)
        return keys.counted()

    def _over(self, reading: Callable[[Batch], object], fold: Fold) -> list[Any]:
        """The fold of each part, for a function that reads the same columns of every batch."""
        seen: list[str] = []
        reading(Batch.empty(self.facts.domain, seen))
        names = tuple(dict.fromkeys(name for name in seen if name != PERSONS))
        read, persons = names or self.facts.domain.names[:1], PERSONS in seen
        return self._quietly(lambda: self._folded(read, fold, persons=persons))

    def _quietly(self, work: Callable[[], Result]) -> Result:
        """What the engine does; its own error is replaced by a fixed one, since its text may quote rows."""
        with self._watched():
            return quietly(work, "the engine failed; its own log says why", kind=DiscreetError)

    def _counted(self) -> int:
        """All declared columns are encoded once: what is wrong with a row is said now. How many rows there are."""
        rows = [int(part) for part in self._quietly(self._encoded)]
        if max(rows) > MAX_ROWS or sum(rows) > MAX_FAR_ROWS:
            raise SchemaError("a far table holds at most 2**40 rows, and a part of it at most 2**31 - 1")
        return sum(rows)

    def _encoded(self) -> list[Any]:
        """How many rows each part has, when all of them were encoded."""
        return self._folded(self._domain.names, _checked, persons=False)


def far_total(parts: Iterable[Any]) -> Any:
    """The sum of the parts in Python integers; int64 if all numbers fit 62 bits, as a sum over all rows would be."""
    found = list(parts)
    if any(isinstance(part, Counter) for part in found) or found[0].dtype == object:
        return total_of(found)
    total = sum((part.astype(object) for part in found[1:]), found[0].astype(object))
    whole = np.asarray(total, dtype=object)
    fits = all(-(2**62) < each < 2**62 for each in whole.ravel().tolist())
    return whole.astype(np.int64) if fits else whole


# What a part does.


def _gathered(take: Callable[[Batch], npt.NDArray[Any]], batches: Batches) -> npt.NDArray[Any]:
    return gathered_of(map(take, batches))


def _keys(domain: Domain, batches: Batches) -> tuple[Codes, Codes, int] | None:
    """The distinct keys of a part, their counts and the number of its rows; None if they are too many."""
    keys = DistinctKeys(domain, domain.digits)
    for batch in batches:
        keys.add(batch)
    return keys.merged()


def _checked(batches: Batches) -> int:
    rows = 0
    for batch in batches:
        batch.read(batch.domain.names)
        rows += batch.rows
    return rows
