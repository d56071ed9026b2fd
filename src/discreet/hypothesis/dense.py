"""A hypothesis with one float64 weight for every cell of the domain.

    share of a cell = weight / total;    log weight = sum of all exponents it was ever multiplied by, minus a shift.

The weights are linear, so that an answer is one pass of additions over the cells it is about, at the speed of reading
memory, and an update one multiplication in place. Nothing is normalised until it is read; the total is kept by blocks,
and only blocks that changed are added up again.

Underflow. Linear weights forget a cell that falls below exp(-708), and no multiplication brings it back. So the
exponents themselves are kept as well, added up by scope: small tables, from which all weights can be computed again in
log space, with the largest at 1 (`_rebuild`). When is that needed? A forgotten cell was once below exp(-708), and since
then it cannot have risen by more than the sum of the largest exponents of the updates: its true weight is at most
exp(_ghost). While the number of cells times exp(_ghost) is below exp(-40) of the total, forgotten cells change no
answer by more than 5e-18; before that fails, or a weight could overflow, everything is rebuilt. Between two rebuilds
lie some 600 units of exponent, so they cost next to nothing; and they clear away accumulated rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from types import EllipsisType
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from discreet.core import Codes, Floats, Mask, ParameterError
from discreet.hypothesis import tensor
from discreet.hypothesis.tensor import Axes, Linear, Scope

MAX_DENSE = 10**8
"""Cells of a dense hypothesis: 800 MB of weights."""

_FLOOR = -708.0  # log of the least float64 with full precision
_TOP = 690.0  # log of what the total may reach
_NEGLIGIBLE = 40.0

_Number = TypeVar("_Number", np.float64, np.int64)


class Dense:
    """A probability distribution over the product of columns, cell by cell; uniform at first."""

    __slots__ = ("_ghost", "_logs", "_low", "_names", "_sums", "_top", "_weights", "cells", "sizes")

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = Axes(sizes)
        self.cells = math.prod(self.sizes.values())
        if self.cells > MAX_DENSE:
            raise ParameterError(f"a dense hypothesis has at most {MAX_DENSE:,} cells, not {self.cells:,}")
        self._names = tuple(name for name, size in self.sizes.items() if size > 1)
        self._weights: Floats = np.ones(self.sizes.shape(self._names))
        self._logs: dict[Scope, Floats] = {}
        self._sums = tensor.Sums(self._weights)
        self._low = self._top = math.log(self.cells)  # bounds on the log of the total
        self._ghost = _FLOOR

    @classmethod
    def from_logs(cls, sizes: Mapping[str, int], logs: npt.ArrayLike) -> Dense:
        """Shares in proportion to exp(logs); the axes of logs are the columns; -inf is a cell that is impossible."""
        made = cls(sizes)
        table = made.sizes.table(logs, tuple(made.sizes), zeros=True)
        made._logs[made._names] = table.reshape(made._weights.shape).copy()
        made._rebuild()
        return made

    def copy(self) -> Dense:
        made = Dense(self.sizes)
        made._weights[...] = self._weights
        made._logs = {scope: table.copy() for scope, table in self._logs.items()}
        made._low, made._top, made._ghost = self._low, self._top, self._ghost
        return made

    def marginal(self, scope: Iterable[str]) -> Floats:
        """The shares of the cells of a scope, axes in the scope's order; they add up to 1."""
        columns = self.sizes.scope(scope)
        kept = tuple(name for name in self._names if name in columns)
        shares = tensor.reduced(self._weights, [name in kept for name in self._names])
        placed = (shares / shares.sum()).transpose([kept.index(name) for name in columns if name in kept])
        return np.ascontiguousarray(placed).reshape(self.sizes.shape(columns))

    def marginals(self, scopes: Iterable[Iterable[str]]) -> list[Floats]:
        return [self.marginal(scope) for scope in scopes]

    def mean(self, form: Linear) -> Floats:
        """The answer to a question if one row is drawn; reads only blocks of memory in which the question weighs."""
        self.sizes.require(form)
        names, weight = self._ordered(form.scope, form.weight.reshape(form.shape))
        kept, views = [name in names for name in self._names], list(self._boxes(names, weight != 0))
        if 2 * sum(view.size for view, _ in views) > self.cells:  # reading all is as fast, and gives the total too
            shares = tensor.reduced(self._weights, kept)
            shares = np.asarray(shares / shares.sum())
        else:
            shares = np.zeros(weight.shape)
            for view, part in views:
                shares[part] = tensor.reduced(view, kept)
            shares = shares / self._sums.total()
        if form.outputs == ():
            return np.asarray(shares.ravel() @ weight.ravel(), dtype=np.float64)
        _, place = self._ordered(form.scope, form.place.reshape(form.shape))
        return Linear(names, weight.shape, form.outputs, place.ravel(), weight.ravel()).of(shares)

    def multiply(self, scope: Iterable[str], exponents: npt.ArrayLike) -> None:
        """Every share times exp(exponent of its cell of the scope), then normalised; touches what changes."""
        columns = self.sizes.scope(scope)
        names, table = self._ordered(columns, self.sizes.table(exponents, columns))
        if not names:
            return
        self._logs.setdefault(names, np.zeros(table.shape))[...] += table
        if sum(logs.size for logs in self._logs.values()) > 2 * self.cells:  # one table of everything is smaller
            self._logs = {self._names: self._add_logs(np.zeros(self._weights.shape))}
        rise, fall = max(float(table.max()), 0.0), min(float(table.min()), 0.0)
        # Weights must not overflow, and cells that were forgotten must stay negligible.
        ghosts = self._ghost + rise + math.log(self.cells) + _NEGLIGIBLE
        if self._top + rise > _TOP or ghosts > self._low + fall:
            self._low = self._top = math.log(self._sums.total())  # the bounds on it may have been loose
        if self._top + rise > _TOP or ghosts > self._low + fall:
            self._rebuild()
            return
        for view, part in self._boxes(names, table != 0):
            whole, factors = tensor.joined(view, tensor.lay(np.exp(table[part]), names, self._names))
            np.multiply(whole, factors, out=whole)
            self._sums.wrote(view)
        self._low, self._top, self._ghost = self._low + fall, self._top + rise, self._ghost + rise

    def sample(self, rows: int, seed: int | None = None) -> dict[str, Codes]:
        """Independent rows, as codes of the columns: first a block of memory, then a cell in it."""
        rng = tensor.generator(rows, seed)
        blockwise, inside = (tensor.uniform(rng, rows) for _ in range(2))
        flat, alone = self._weights.reshape(-1), np.zeros(rows, dtype=np.int64)
        block = tensor.draw(self._sums.blocks().reshape(1, -1), alone, blockwise)
        order = np.argsort(block, kind="stable")
        numbers, starts = np.unique(block[order], return_index=True)
        cell = np.empty(rows, dtype=np.int64)
        for number, mine in zip(numbers, np.split(order, starts[1:]), strict=False):
            first = int(number) * tensor.Sums.BLOCK
            shares = flat[first : first + tensor.Sums.BLOCK].reshape(1, -1)
            cell[mine] = first + tensor.draw(shares, alone[: len(mine)], inside[mine])
        places = np.unravel_index(cell, self._weights.shape) if self._names else ()
        codes = {name: place.astype(np.int64) for name, place in zip(self._names, places, strict=True)}
        return {name: codes.get(name, alone.copy()) for name in self.sizes}

    def _ordered(self, scope: Scope, table: npt.NDArray[_Number]) -> tuple[Scope, npt.NDArray[_Number]]:
        """The table with its axes in the order of the weights', without columns of a single value."""
        names: Scope = tuple(name for name in self._names if name in scope)
        order = [*(scope.index(name) for name in names), *(i for i, name in enumerate(scope) if name not in names)]
        return names, table.transpose(order).reshape(self.sizes.shape(names))

    def _boxes(self, names: Scope, used: Mask) -> Iterator[tuple[Floats, tuple[slice, ...]]]:
        """Views of the weights that hold all used cells of a scope, and the same boxes in the scope's table."""
        steps = [self._weights.strides[self._names.index(name)] // self._weights.itemsize for name in names]
        for part in tensor.boxes(used, steps):
            mine = dict(zip(names, part, strict=True))
            box: tuple[slice | EllipsisType, ...] = (*(mine.get(name, slice(None)) for name in self._names), ...)
            yield self._weights[box], part

    def _add_logs(self, target: Floats) -> Floats:
        for names, table in self._logs.items():
            whole, logs = tensor.joined(target, tensor.lay(table, names, self._names))
            np.add(whole, logs, out=whole)
        return target

    def _rebuild(self) -> None:
        """All weights from the exponents, in log space; the largest becomes 1."""
        self._weights.fill(0.0)
        self._add_logs(self._weights)
        flat, top, least = self._weights.reshape(-1), float(self._weights.max()), math.exp(_FLOOR)
        for start in range(0, self.cells, tensor.BLOCK):
            block = flat[start : start + tensor.BLOCK]
            np.subtract(block, top, out=block)
            np.exp(block, out=block)
            np.multiply(block, block >= least, out=block)  # arithmetic on denormal numbers is slow and coarse
        self._sums.wrote()
        self._low, self._top, self._ghost = 0.0, math.log(self.cells), _FLOOR
