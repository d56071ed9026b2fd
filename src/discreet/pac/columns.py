"""A whole column at once, for what cannot be computed from sums: it must fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import exact
from discreet.data import AnyNumber, Batch, Dataset, Domain, Number, Whole
from discreet.errors import ParameterError

Ordered = Number | AnyNumber | Whole
Array = npt.NDArray[Any]


def ordered(domain: Domain, name: str) -> Ordered:
    """The declaration of a column whose values have an order."""
    column = domain.column(name)
    if not isinstance(column, (Number, AnyNumber, Whole)):
        raise ParameterError(f"column {name!r} is declared {column!r}: it has no order, a Number has")
    return column


def distinct(columns: str | Iterable[str]) -> tuple[str, ...]:
    """Names of columns: distinct, at least one."""
    found = (columns,) if isinstance(columns, str) else tuple(exact.text(columns=name) for name in columns)
    if not found or len(set(found)) < len(found):
        raise ParameterError(f"columns must be distinct names, at least one, found {found!r}")
    return found


def points(column: Ordered) -> int:
    """How many values a column may have, without "missing"."""
    return column.size - (0 if column.missing_code is None else 1)


def gathered(data: Dataset, take: Callable[[Batch], Array]) -> Array:
    """What `take` finds in the batches, one after the other. Not private: for the inside of `run`.

    It goes through the door of the sums, adding up nothing: `take` is called for every batch, in no promised order, so
    whoever uses the result must sort it.
    """
    parts: list[Array] = []

    def partial(batch: Batch) -> npt.NDArray[np.int64]:
        parts.append(take(batch))
        return np.zeros(0, dtype=np.int64)

    data.exact_sum(partial)
    return np.concatenate(parts, axis=-1)


def sorted_column(data: Dataset, name: str, keep: Callable[[Batch], npt.NDArray[np.bool_]] | None = None) -> Array:
    """The codes of a column in increasing order, missing ones left out: int64, or Python integers for a Whole."""
    missing = data.facts.domain.column(name).missing_code

    def take(batch: Batch) -> Array:
        codes = batch.stored(name)
        here = np.ones(batch.rows, dtype=bool) if keep is None else keep(batch)
        return codes[here if missing is None else here & (codes != missing)]

    found = np.sort(gathered(data, take))
    return found if found.dtype == object else found.astype(np.int64, copy=False)
