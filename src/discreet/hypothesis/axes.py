"""What dense and factored hypotheses share: checks of columns and tables, one table laid along the axes of another."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from discreet.answering.linear_query import Linear
from discreet.arrays import Codes, Floats
from discreet.errors import ParameterError
from discreet.rng import Rng, SeededRng

Scope = tuple[str, ...]


def checked_sizes(sizes: Mapping[str, int]) -> dict[str, int]:
    wrong = {
        name: size for name, size in sizes.items() if isinstance(size, bool) or not isinstance(size, int) or size < 1
    }
    if wrong:
        raise ParameterError(f"the number of values of a column must be an integer of at least 1, not {wrong}")
    return dict(sizes)


def checked_scope(scope: Iterable[str], sizes: Mapping[str, int]) -> Scope:
    if isinstance(scope, str):
        raise ParameterError(f"a scope is a tuple of columns, not the text {scope!r}")
    columns = tuple(scope)
    unknown = [name for name in columns if name not in sizes]
    if unknown:
        raise ParameterError(f"the scope names {unknown}; the hypothesis has the columns {list(sizes)}")
    if len(set(columns)) != len(columns):
        raise ParameterError(f"the scope names a column twice: {list(columns)}")
    return columns


def checked_table(table: npt.ArrayLike, scope: Scope, sizes: Mapping[str, int], *, zeros: bool = False) -> Floats:
    """A table of logarithms over a scope; with zeros, -inf is allowed (a cell that is impossible)."""
    found = np.asarray(table, dtype=np.float64)
    expected = tuple(sizes[name] for name in scope)
    if found.shape != expected:
        raise ParameterError(f"a table over {list(scope)} must have the shape {expected}, not {found.shape}")
    top = float(found.max())
    if not (math.isfinite(top) and (zeros or math.isfinite(float(found.min())))):
        raise ParameterError(f"the table over {list(scope)} has entries that are not finite")
    return found


def checked_form(form: Linear, sizes: Mapping[str, int]) -> Linear:
    scope = checked_scope(form.scope, sizes)
    expected = tuple(sizes[name] for name in scope)
    if form.shape != expected:
        raise ParameterError(f"the question has {form.shape} cells over {list(scope)}, the hypothesis {expected}")
    return form


def checked_rows(rows: int) -> int:
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 0:
        raise ParameterError(f"the number of rows to draw must be an integer of at least 0, not {rows!r}")
    return rows


def cells_of(scope: Iterable[str], sizes: Mapping[str, int]) -> int:
    return math.prod(sizes[name] for name in scope)


def laid(table: Floats, scope: Sequence[str], names: Sequence[str]) -> Floats:
    """A view of the table with one axis for each of the names, of size 1 where the scope does not have it."""
    axis = {name: i for i, name in enumerate(scope)}
    order = [axis[name] for name in names if name in axis]
    return table.transpose(order).reshape([table.shape[axis[name]] if name in axis else 1 for name in names])


def source(seed: int | None) -> Rng:
    """The operating system's randomness, or with a seed the same numbers each time; either is fine: the hypothesis is
    public."""
    return Rng() if seed is None else SeededRng(seed)


def uniform(rng: Rng, rows: int) -> Floats:
    """Multiples of 2^-53 in [0, 1)."""
    return np.asarray(rng.integers(2**53, rows) * 2.0**-53)


def drawn(shares: Floats, rows: Codes, uniform: Floats) -> Codes:
    """For every i a column of row rows[i] of shares, with probability in proportion to what stands there.

    By bisection in the row's cumulative sums, exact up to their rounding: a column with share 0 is never drawn.
    """
    below = np.cumsum(shares, axis=1)
    aim = uniform * below[rows, -1]
    aim = np.minimum(aim, np.nextafter(below[rows, -1], 0.0))  # a product with less than 1 may round up to the sum
    low = np.zeros(len(rows), dtype=np.int64)
    high = np.full(len(rows), shares.shape[1] - 1, dtype=np.int64)
    while (low < high).any():
        middle = (low + high) // 2
        right = below[rows, middle] <= aim
        low = np.where(right, middle + 1, low)
        high = np.where(right, high, middle)
    return low
