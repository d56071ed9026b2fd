"""A hypothesis over a domain of any size: the exponential of a sum of tables over scopes.

    share of a cell is proportional to exp(sum over scopes of log[scope][the cell's part in the scope])

An update over a scope adds a table, or adds to one: that is all multiplicative weights ever do. Answers come from a
junction tree over the scopes (`junction.py`), exactly, with tables no larger than its cliques; a domain of 10^30 cells
is answered in milliseconds as long as the scopes do not tangle. Columns in no scope are uniform and independent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from discreet.answering.linear_query import Linear
from discreet.arrays import Codes, Floats
from discreet.errors import ParameterError
from discreet.hypothesis import axes
from discreet.hypothesis.axes import Scope
from discreet.hypothesis.junction_tree import MAX_TREE, all_shares, root_share, tree_of


class Factored:
    """A probability distribution over the product of columns, as a product of tables over scopes."""

    __slots__ = ("_logs", "_shares", "_tree", "cells", "sizes")

    def __init__(self, sizes: Mapping[str, int], potentials: Mapping[Scope, npt.ArrayLike] | None = None) -> None:
        """potentials are logarithms, of any offset; -inf is a cell that is impossible."""
        self.sizes = axes.checked_sizes(sizes)
        self.cells = math.prod(self.sizes.values())
        self._logs: dict[Scope, Floats] = {}
        self._shares: list[Floats] | None = None
        checked = {axes.checked_scope(scope, self.sizes): table for scope, table in (potentials or {}).items()}
        self._tree = tree_of(self.sizes, list(checked))
        for scope, table in checked.items():
            self._absorb(scope, axes.checked_table(table, scope, self.sizes, zeros=True))

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
        asked = axes.checked_scope(scope, self.sizes)
        table = axes.checked_table(exponents, asked, self.sizes)
        if self._tree.holding(asked) is None:
            self._tree = tree_of(self.sizes, [*self._logs, asked])
        self._absorb(asked, table)

    def marginal(self, scope: Iterable[str]) -> Floats:
        """The shares of the cells of a scope, axes in the scope's order; they add up to 1."""
        return self.marginals([scope])[0]

    def marginals(self, scopes: Iterable[Iterable[str]]) -> list[Floats]:
        """One calibration for all scopes inside cliques; any other is summed towards a clique of its own."""
        asked = [self._checked(scope) for scope in scopes]
        found = []
        for scope in asked:
            modelled = self._modelled(scope)
            home = self._tree.holding(modelled)
            if home is not None:
                found.append(self._completed(scope, self._tree.cliques[home], self._calibrated()[home]))
            else:
                rooted = tree_of(self.sizes, list(self._logs), modelled)
                found.append(self._completed(scope, rooted.cliques[0], root_share(rooted, self.sizes, self._logs)))
        return found

    def mean(self, form: Linear) -> Floats:
        """The answer to a question if one row is drawn."""
        return form.of(self.marginal(axes.checked_form(form, self.sizes).scope))

    def sample(self, rows: int, seed: int | None = None) -> dict[str, Codes]:
        """Independent rows, as codes of the columns: each clique given what was drawn in its parent."""
        alone = np.zeros(axes.checked_rows(rows), dtype=np.int64)
        rng = axes.source(seed)
        codes: dict[str, Codes] = {}
        for clique, given, shares in zip(self._tree.cliques, self._tree.separators, self._calibrated(), strict=True):
            rest = tuple(name for name in clique if name not in given)
            table = shares.transpose([clique.index(name) for name in (*given, *rest)])
            known = sum((codes[name] * step for name, step in _steps(given, self.sizes)), start=alone)
            cell = axes.drawn(table.reshape(axes.cells_of(given, self.sizes), -1), known, axes.uniform(rng, rows))
            codes.update((name, cell // step % self.sizes[name]) for name, step in _steps(rest, self.sizes))
        for name, size in self.sizes.items():
            if name not in codes:
                codes[name] = rng.integers(size, rows)
        return {name: codes[name] for name in self.sizes}

    def _checked(self, scope: Iterable[str]) -> Scope:
        asked = axes.checked_scope(scope, self.sizes)
        if axes.cells_of(asked, self.sizes) > MAX_TREE:
            raise ParameterError(
                f"a marginal over {list(asked)} has {axes.cells_of(asked, self.sizes):,} cells; "
                f"at most {MAX_TREE:,} are listed"
            )
        return asked

    def _calibrated(self) -> list[Floats]:
        if self._shares is None:
            self._shares = all_shares(self._tree, self.sizes, self._logs)
        return self._shares

    def _modelled(self, scope: Scope) -> Scope:
        """The columns of a scope that stand in some table, in the domain's order."""
        held = {name for each in self._logs for name in each}
        return tuple(name for name in self.sizes if name in scope and name in held)

    def _completed(self, scope: Scope, clique: Scope, shares: Floats) -> Floats:
        """The marginal over a scope, from one over a clique with all its columns but those that are uniform."""
        kept = tuple(name for name in clique if name in scope)
        summed = tuple(axis for axis, name in enumerate(clique) if name not in scope)
        found = axes.laid(shares.sum(axis=summed), kept, tuple(name for name in scope if name in kept))
        shape = [self.sizes[name] if name in kept else 1 for name in scope]
        free = axes.cells_of((name for name in scope if name not in kept), self.sizes)
        spread = np.broadcast_to(found.reshape(shape) / free, [self.sizes[name] for name in scope])
        return np.asarray(spread / spread.sum())

    def _absorb(self, scope: Scope, table: Floats) -> None:
        """Adds a table to one over a larger scope, or takes in those over smaller ones."""
        self._shares = None
        ordered = tuple(name for name in self.sizes if name in scope)
        laid = axes.laid(table, scope, ordered)
        columns = frozenset(ordered)
        for other, log in self._logs.items():
            if len(other) >= len(ordered) and columns.issubset(other):
                log += axes.laid(laid, ordered, other)
                return
        made = laid.copy()
        for other in [other for other in self._logs if len(other) < len(ordered) and columns.issuperset(other)]:
            made += axes.laid(self._logs.pop(other), other, ordered)
        self._logs[ordered] = made


def _steps(scope: Scope, sizes: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Every column with the number of cells of the scope from one of its values to the next."""
    step = axes.cells_of(scope, sizes)
    for name in scope:
        step //= sizes[name]
        yield name, step
