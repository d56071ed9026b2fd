"""A hypothesis over a domain of any size: the exponential of a sum of tables over scopes.

    share of a cell is proportional to exp(sum over scopes of log[scope][the cell's part in the scope])

An update over a scope adds a table, or adds to one: that is all multiplicative weights ever do. Answers come from a
junction tree over the scopes (`junction_tree.py`), exactly, with tables no larger than its cliques; a domain of 10^30
cells is answered in milliseconds as long as the scopes do not tangle. Columns in no scope are uniform and independent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from discreet.core import Codes, Floats, ParameterError
from discreet.hypothesis.dense import MAX_DENSE, Dense
from discreet.hypothesis.junction_tree import MAX_TREE, all_shares, root_share, tree_of
from discreet.hypothesis.tensor import Axes, Linear, Scope, draw, generator, lay, uniform


class Factored:
    """A probability distribution over the product of columns, as a product of tables over scopes."""

    __slots__ = ("_logs", "_shares", "_tree", "cells", "sizes")

    def __init__(self, sizes: Mapping[str, int], potentials: Mapping[Scope, npt.ArrayLike] | None = None) -> None:
        """potentials are logarithms, of any offset; -inf is a cell that is impossible."""
        self.sizes = Axes(sizes)
        self.cells = math.prod(self.sizes.values())
        self._logs: dict[Scope, Floats] = {}
        self._shares: list[Floats] | None = None
        tables = {self.sizes.scope(scope): table for scope, table in (potentials or {}).items()}
        self._tree = tree_of(self.sizes, list(tables))
        for scope, table in tables.items():
            self._absorb(scope, self.sizes.table(table, scope, zeros=True))

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Of the tables: none contains another."""
        return tuple(self._logs)

    def copy(self) -> Factored:
        made = Factored(self.sizes)
        made._logs, made._shares = {scope: table.copy() for scope, table in self._logs.items()}, self._shares
        made._tree = self._tree
        return made

    def multiply(self, scope: Iterable[str], exponents: npt.ArrayLike) -> None:
        """Every share times exp(exponent of its cell of the scope), then normalised.

        A scope with which the tables would become too large is refused, and nothing changes.
        """
        columns = self.sizes.scope(scope)
        table = self.sizes.table(exponents, columns)
        if self._tree.holding(columns) is None:
            self._tree = tree_of(self.sizes, [*self._logs, columns])
        self._absorb(columns, table)

    def marginal(self, scope: Iterable[str]) -> Floats:
        """The shares of the cells of a scope, axes in the scope's order; they add up to 1."""
        return self.marginals([scope])[0]

    def marginals(self, scopes: Iterable[Iterable[str]]) -> list[Floats]:
        """One calibration for all scopes inside cliques; any other is summed towards a clique of its own."""
        listed = [self.sizes.scope(scope) for scope in scopes]
        for scope in listed:
            if self.sizes.cells(scope) > MAX_TREE:
                cells = f"{self.sizes.cells(scope):,} cells; at most {MAX_TREE:,} are listed"
                raise ParameterError(f"a marginal over {list(scope)} has {cells}")
        held = {name for scope in self._logs for name in scope}
        marginals = []
        for scope in listed:
            modelled = tuple(name for name in self.sizes if name in scope and name in held)
            home = self._tree.holding(modelled)
            if home is not None:
                clique, shares = self._tree.cliques[home], self._calibrated()[home]
            else:
                rooted = tree_of(self.sizes, list(self._logs), modelled)
                clique, shares = rooted.cliques[0], root_share(rooted, self.sizes, self._logs)
            # What the scope has beyond the clique is uniform.
            summed = tuple(axis for axis, name in enumerate(clique) if name not in scope)
            kept = tuple(name for name in clique if name in scope)
            table = lay(shares.sum(axis=summed), kept, scope) / (self.sizes.cells(scope) // self.sizes.cells(kept))
            spread = np.broadcast_to(table, self.sizes.shape(scope))
            marginals.append(np.asarray(spread / spread.sum()))
        return marginals

    def mean(self, form: Linear) -> Floats:
        """The answer to a question if one row is drawn."""
        self.sizes.require(form)
        return form.of(self.marginal(form.scope))

    def sample(self, rows: int, seed: int | None = None) -> dict[str, Codes]:
        """Independent rows, as codes of the columns: each clique given what was drawn in its parent."""
        rng = generator(rows, seed)
        codes: dict[str, Codes] = {}
        for clique, given, shares in zip(self._tree.cliques, self._tree.separators, self._calibrated(), strict=True):
            rest = tuple(name for name in clique if name not in given)
            table = shares.transpose([clique.index(name) for name in (*given, *rest)])
            known = sum((codes[name] * step for name, step in self._steps(given)), start=np.zeros(rows, dtype=np.int64))
            cell = draw(table.reshape(self.sizes.cells(given), -1), known, uniform(rng, rows))
            codes.update((name, cell // step % self.sizes[name]) for name, step in self._steps(rest))
        for name, size in self.sizes.items():
            if name not in codes:
                codes[name] = rng.integers(size, rows)
        return {name: codes[name] for name in self.sizes}

    def _steps(self, scope: Scope) -> Iterator[tuple[str, int]]:
        """Every column with the number of cells of the scope from one of its values to the next."""
        step = self.sizes.cells(scope)
        for name in scope:
            step //= self.sizes[name]
            yield name, step

    def _calibrated(self) -> list[Floats]:
        if self._shares is None:
            self._shares = all_shares(self._tree, self.sizes, self._logs)
        return self._shares

    def _absorb(self, scope: Scope, table: Floats) -> None:
        """Adds a table to one over a larger scope, or takes in those over smaller ones."""
        self._shares = None
        ordered = tuple(name for name in self.sizes if name in scope)
        added, columns = lay(table, scope, ordered), frozenset(ordered)
        for other, log in self._logs.items():
            if len(other) >= len(ordered) and columns.issubset(other):
                log += lay(added, ordered, other)
                return
        made = added.copy()
        for other in [other for other in self._logs if len(other) < len(ordered) and columns.issuperset(other)]:
            made += lay(self._logs.pop(other), other, ordered)
        self._logs[ordered] = made


def start(sizes: Mapping[str, int]) -> Dense | Factored:
    """The uniform hypothesis: dense if the domain is small enough for that; decided by public sizes alone."""
    axes = Axes(sizes)
    return Dense(axes) if axes.cells(axes) <= MAX_DENSE else Factored(axes)
