"""Tables over scopes (sets of columns): linear forms, checks, sums over large tensors with nothing but numpy and BLAS.

    Linear      a query as a table over its scope: the same form answers from the true counts and from a guess
    Axes        the columns of a hypothesis with their sizes, and the checks of scopes, tables and forms over them
    lay, draw   one table laid along the axes of another; cells drawn in proportion to a table
    boxes, joined, reduced, summed, Sums      arithmetic in about one reading of a tensor's memory

A sum over some axes is a product with ones: BLAS reads a matrix at the speed of memory where numpy's own sums, on short
axes, do not. A table over some axes is multiplied in by broadcasting, after the last axes were joined until an inner
loop has thousands of cells. Cells that are not concerned are left out where they form long stretches of memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.core import Codes, Floats, Mask, ParameterError, Rng, SeededRng

Scope = tuple[str, ...]

BLOCK = 2**15
"""Cells that fit into the nearest caches."""

_STRETCH = 2**12  # cells; a stretch of memory shorter than this is not worth leaving out, nor an inner loop of its own
_GAP = 2**19  # cells; a gap between stretches shorter than this is not worth a call of its own


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """A query over the cells of its scope: answer[p] is the sum over cells with place p of weight * count.

    scope    the columns, in the domain's order          shape   their sizes
    outputs  the shape of the answer, () for one number
    place    for each cell, flattened, the number of the answer that it adds to, or -1
    weight   for each cell, flattened, how much one row in it adds, in the query's units; 0 where place is -1
    """

    scope: Scope
    shape: tuple[int, ...]
    outputs: tuple[int, ...]
    place: Codes
    weight: Floats

    @property
    def cells(self) -> int:
        return math.prod(self.shape)

    @property
    def whole(self) -> bool:
        """Whether the answer is the table itself: the cells of the scope in their own order, each counted once."""
        if math.prod(self.outputs) != self.cells:
            return False
        return bool((self.place == np.arange(self.cells)).all() and (self.weight == 1).all())

    def of(self, marginal: Floats) -> Floats:
        """The answer on a table with these numbers of rows in the cells of the scope."""
        inside = self.place >= 0
        weighed = (marginal.ravel() * self.weight)[inside]
        added = np.bincount(self.place[inside], weights=weighed, minlength=math.prod(self.outputs))
        return added.astype(np.float64, copy=False).reshape(self.outputs)

    def spread(self, numbers: Floats) -> Floats:
        """The adjoint: for every cell of the scope its weight times the number at its place, 0 where it has none."""
        padded = np.append(np.asarray(numbers, dtype=np.float64).ravel(), 0.0)  # place -1 finds the 0
        return (padded[self.place] * self.weight).reshape(self.shape)


class Axes(dict[str, int]):
    """The columns of a hypothesis, each with the number of its values."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        super().__init__(sizes)
        wrong = {name: size for name, size in sizes.items() if type(size) is not int or size < 1}
        if wrong:
            raise ParameterError(f"the number of values of a column must be an integer of at least 1, not {wrong}")

    def cells(self, scope: Iterable[str]) -> int:
        return math.prod(self[name] for name in scope)

    def shape(self, scope: Iterable[str]) -> tuple[int, ...]:
        return tuple(self[name] for name in scope)

    def scope(self, scope: Iterable[str]) -> Scope:
        """The scope, if it names columns of these, each once."""
        if isinstance(scope, str):
            raise ParameterError(f"a scope is a tuple of columns, not the text {scope!r}")
        columns = tuple(scope)
        unknown = [name for name in columns if name not in self]
        if unknown:
            raise ParameterError(f"the scope names {unknown}; the hypothesis has the columns {list(self)}")
        if len(set(columns)) != len(columns):
            raise ParameterError(f"the scope names a column twice: {list(columns)}")
        return columns

    def table(self, table: npt.ArrayLike, scope: Scope, *, zeros: bool = False) -> Floats:
        """A table of logarithms over a scope; with zeros, -inf is allowed (a cell that is impossible)."""
        logs = np.asarray(table, dtype=np.float64)
        if logs.shape != self.shape(scope):
            raise ParameterError(
                f"a table over {list(scope)} must have the shape {self.shape(scope)}, not {logs.shape}"
            )
        if not (math.isfinite(float(logs.max())) and (zeros or math.isfinite(float(logs.min())))):
            raise ParameterError(f"the table over {list(scope)} has entries that are not finite")
        return logs

    def require(self, form: Linear) -> None:
        """Refuse a query about other cells than these columns have."""
        expected = self.shape(self.scope(form.scope))
        if form.shape != expected:
            raise ParameterError(
                f"the question has {form.shape} cells over {list(form.scope)}, the hypothesis {expected}"
            )


def lay(table: Floats, scope: Sequence[str], names: Sequence[str]) -> Floats:
    """A view of the table with one axis for each of the names, of size 1 where the scope does not have it."""
    axis = {name: i for i, name in enumerate(scope)}
    order = [axis[name] for name in names if name in axis]
    return table.transpose(order).reshape([table.shape[axis[name]] if name in axis else 1 for name in names])


def generator(rows: int, seed: int | None) -> Rng:
    """The operating system's randomness, or with a seed the same rows each time: a hypothesis is public."""
    if type(rows) is not int or rows < 0:
        raise ParameterError(f"the number of rows to draw must be an integer of at least 0, not {rows!r}")
    return Rng() if seed is None else SeededRng(seed)


def uniform(rng: Rng, rows: int) -> Floats:
    """Multiples of 2^-53 in [0, 1)."""
    return np.asarray(rng.integers(2**53, rows) * 2.0**-53)


def draw(shares: Floats, rows: Codes, uniform: Floats) -> Codes:
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


def boxes(used: Mask, steps: list[int]) -> Iterator[tuple[slice, ...]]:
    """Boxes that hold every used cell of a table; steps are the cells of the tensor from one index to the next."""
    if used.all():
        yield (slice(None),) * used.ndim
        return
    if not used.any():
        return
    spans = _spans(np.asarray(used.any(axis=tuple(range(1, used.ndim)))), _GAP // steps[0])
    if min(high - low for low, high in spans) * steps[0] < _STRETCH:
        yield (slice(None),) * used.ndim
        return
    for low, high in spans:
        here = slice(None) if (low, high) == (0, len(used)) else slice(low, high)
        for rest in boxes(np.asarray(used[here].any(axis=0)), steps[1:]):
            yield (here, *rest)


def _spans(hit: Mask, gap: int, most: int = 8) -> list[tuple[int, int]]:
    """Stretches that hold every True; between two of them is more than the gap. If they are too many, one."""
    flags, hole = hit.tobytes(), bytes(gap + 1)  # searching bytes is faster than numpy on columns of the usual sizes
    spans, end = list[tuple[int, int]](), flags.rfind(1) + 1
    low, high = flags.find(1), 0
    while low >= 0:
        high = flags.find(hole, low, end)
        spans.append((low, high if high >= 0 else end))
        low = flags.find(1, high) if high >= 0 else -1
    return spans if len(spans) <= most else [(spans[0][0], end)]


def joined(view: Floats, table: Floats) -> tuple[Floats, Floats]:
    """Both of one shape, for a ufunc: the view with its last axes joined, and the table along it.

    The table has the view's axes, of size 1 where it repeats; it is written out along the last axes only.
    """
    first, inner, rest = view.ndim, 1, 1
    table = table[..., np.newaxis]
    while first > 0 and inner < _STRETCH:
        first -= 1
        size = part = view.shape[first]
        if inner > 1 and size * inner > 8 * _STRETCH:  # not all of the axis: a divisor that makes the inner loop long
            enough = -(-_STRETCH // inner)
            part = next((part for part in range(enough, 4 * enough) if size % part == 0), size)
        (*lead, axis, last) = table.shape
        rest, inside = (axis // part, part) if axis > 1 else (1, 1)
        left = (*lead, rest) if rest > 1 else (*lead,)
        if inside == last == 1:
            table = table.reshape((*left, 1))
        else:  # the last axis (inner cells, or 1 for as many equal ones) joined with the part of the axis before it
            spread = np.broadcast_to(table.reshape((*lead, rest, inside, last)), (*lead, rest, part, inner))
            table = spread.reshape((*left, part * inner))
        inner, rest = part * inner, size // part
    whole = view.reshape((*view.shape[:first], rest, inner))
    return whole, np.broadcast_to(table.reshape((*table.shape[:first], -1, table.shape[-1])), whole.shape)


def reduced(view: Floats, kept: list[bool]) -> Floats:
    """Sums over the axes that are not kept, in one reading of the cells and some of what is left."""
    shape: list[int] = []
    keep: list[bool] = []
    for size, kept_axis in zip(view.shape, kept, strict=True):
        if not kept_axis and keep and not keep[-1]:
            shape[-1] *= size
        else:
            shape.append(size)
            keep.append(kept_axis)
    left = view.reshape(shape)

    def cost(axis: int) -> float:
        """Of summing this axis away first, beyond the reading: short inner loops, and what is left to read again."""
        size, after = left.shape[axis], math.prod(left.shape[axis + 1 :])
        return float(2 / size + (30 / size if after == 1 else 100 / (size * after)))

    while not all(keep):
        axis = min((i for i, kept_axis in enumerate(keep) if not kept_axis), key=cost)
        left = summed(left, axis)
        del keep[axis]
    return left


def summed(view: Floats, axis: int) -> Floats:
    """The sum over one axis."""
    size, shape = view.shape[axis], (*view.shape[:axis], *view.shape[axis + 1 :])
    if axis == view.ndim - 1:
        rows = view.reshape(-1, size) if view.flags.c_contiguous else view
        ones = np.ones(min(size, BLOCK))
        parts = [rows[..., i : i + BLOCK] @ ones[: size - i] for i in range(0, size, BLOCK)]
        return np.asarray(sum(parts[1:], start=parts[0])).reshape(shape)
    tail = view.ndim - 1
    while tail > axis + 1 and _contiguous(view, tail):
        tail -= 1
    moved = view.reshape((*view.shape[:tail], -1))
    if tail > axis + 1:
        moved = np.moveaxis(moved, axis, -2)
    found = np.empty((*moved.shape[:-2], moved.shape[-1]))
    for i in range(0, moved.shape[-1], BLOCK):
        _add_rows(moved[..., i : i + BLOCK], found[..., i : i + BLOCK])
    return found.reshape(shape)


def _contiguous(view: Floats, axis: int) -> bool:
    """Whether an axis and the one before it can be walked as one."""
    return bool(view.strides[axis - 1] == view.strides[axis] * view.shape[axis])


def _add_rows(rows: Floats, out: Floats) -> None:
    """The sum of the rows; short ones are joined to longer ones first, where they follow each other in memory."""
    size, width = rows.shape[-2:]
    many = 1024 // width
    if many < 2 or size < 8 * many or rows.strides[-2] != width * rows.itemsize:
        np.matmul(np.ones(size), rows, out=out)
        return
    count = size // many * many
    longer = rows[..., :count, :].reshape((*rows.shape[:-2], size // many, many * width))
    added = np.ones(size // many) @ longer
    np.matmul(np.ones(many), added.reshape((*rows.shape[:-2], many, width)), out=out)
    if count < size:
        out += np.ones(size - count) @ rows[..., count:, :]


class Sums:
    """The sum of a tensor, kept by blocks of memory: only blocks that were written are added up again.

    A function of the tensor alone, whatever was changed and asked in between; no rounding builds up.
    """

    BLOCK = 2**13

    __slots__ = ("_flat", "_sums", "_written")

    def __init__(self, tensor: Floats) -> None:
        self._flat = tensor.reshape(-1)
        self._sums = np.zeros(-(-tensor.size // self.BLOCK))
        self._written = np.ones(len(self._sums), dtype=bool)

    def blocks(self) -> Floats:
        """The sum of each block of BLOCK cells."""
        whole = self._flat.size // self.BLOCK
        for low, high in _spans(self._written, 0, most=len(self._sums)):
            inner = self._flat[low * self.BLOCK : min(high, whole) * self.BLOCK].reshape(-1, self.BLOCK)
            self._sums[low : min(high, whole)] = inner.sum(axis=1)  # each row for itself: the same wherever it starts
            if high > whole:
                self._sums[whole] = self._flat[whole * self.BLOCK :].sum()
        self._written[:] = False
        return self._sums

    def total(self) -> float:
        return math.fsum(self.blocks())

    def wrote(self, view: Floats | None = None) -> None:
        """Some cells of the tensor have changed: those of a view of it, or all."""
        if view is None or 2 * view.size > self._flat.size:  # adding up more than needed costs less than finding out
            self._written[:] = True
            return
        tail, length = view.ndim - 1, view.shape[-1]
        while tail > 0 and _contiguous(view, tail):
            tail -= 1
            length *= view.shape[tail]
        start = (view.__array_interface__["data"][0] - self._flat.__array_interface__["data"][0]) // view.itemsize
        starts = np.full(1, start, dtype=np.int64)
        for size, stride in zip(view.shape[:tail], view.strides[:tail], strict=True):
            starts = np.add.outer(starts, np.arange(size) * (stride // view.itemsize)).ravel()
        edges = np.zeros(len(self._sums) + 1, dtype=np.int64)
        np.add.at(edges, starts // self.BLOCK, 1)
        np.add.at(edges, (starts + length - 1) // self.BLOCK + 1, -1)
        self._written |= np.cumsum(edges[:-1]) > 0
