"""Sums and products over a large tensor in about one reading of its memory, with nothing but numpy and BLAS.

A sum over some axes is a product with ones: BLAS reads a matrix at the speed of memory where numpy's own sums, on short
axes, do not. A table over some axes is multiplied in by broadcasting, after the last axes were joined until an inner
loop has thousands of cells. Cells that are not concerned are left out where they form long stretches of memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from discreet.arrays import Floats

BLOCK = 2**15
"""Cells that fit into the nearest caches."""

_STRETCH = 2**12  # cells; a stretch of memory shorter than this is not worth leaving out, nor an inner loop of its own
_GAP = 2**19  # cells; a gap between stretches shorter than this is not worth a call of its own


def boxes(used: npt.NDArray[np.bool_], steps: list[int]) -> Iterator[tuple[slice, ...]]:
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


def _spans(hit: npt.NDArray[np.bool_], gap: int, most: int = 8) -> list[tuple[int, int]]:
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
        part = _part(view.shape[first], inner)
        table = _written(table, part, inner)
        inner, rest = part * inner, view.shape[first] // part
    whole = view.reshape((*view.shape[:first], rest, inner))
    lead = table.shape[:first]
    return whole, np.broadcast_to(table.reshape((*lead, -1, table.shape[-1])), whole.shape)


def _written(table: Floats, part: int, inner: int) -> Floats:
    """The last axis (inner cells, or 1 for as many equal ones) joined with a part of the axis before it, or all."""
    (*lead, size, last) = table.shape
    rest, inside = (size // part, part) if size > 1 else (1, 1)
    left = (*lead, rest) if rest > 1 else (*lead,)
    if inside == last == 1:
        return table.reshape((*left, 1))
    spread = np.broadcast_to(table.reshape((*lead, rest, inside, last)), (*lead, rest, part, inner))
    return spread.reshape((*left, part * inner))


def _part(size: int, inner: int) -> int:
    """How much of an axis to join: all, or the least divisor that makes the inner loop long."""
    if inner == 1 or size * inner <= 8 * _STRETCH:
        return size
    enough = -(-_STRETCH // inner)
    return next((part for part in range(enough, 4 * enough) if size % part == 0), size)


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
    while not all(keep):
        axis = min((i for i, kept_axis in enumerate(keep) if not kept_axis), key=lambda i: _cost(left.shape, i))
        left = summed(left, axis)
        del keep[axis]
    return left


def _cost(shape: tuple[int, ...], axis: int) -> float:
    """Of summing this axis away first, beyond the reading: short inner loops, and what is left to read again."""
    after = math.prod(shape[axis + 1 :])
    return 2 / shape[axis] + (30 / shape[axis] if after == 1 else 100 / (shape[axis] * after))


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
