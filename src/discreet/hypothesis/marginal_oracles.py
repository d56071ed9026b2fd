"""Marginal oracles of a fit: expected counts under exp(sum of tables), their marginals, and how those move."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Floats
from discreet.hypothesis.graphical_model import Factored
from discreet.hypothesis.tensor import Scope

Tables = dict[Scope, Floats]


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """The tables whose sum is the logarithm of the counts, the number of rows, the marginals over all scopes."""

    tables: Tables
    rows: float
    marginals: Tables


class DenseOracle:
    """All cells in one array. Marginals are summed from the least larger marginal, and tables added up the same way."""

    def __init__(self, sizes: dict[str, int], scopes: Iterable[Scope]) -> None:
        self.sizes, self.names = sizes, tuple(sizes)
        self.parent: dict[Scope, Scope] = {}  # in the order in which they are summed
        for scope in sorted(dict.fromkeys(scopes), key=len, reverse=True):
            while scope not in (known := [self.names, *self.parent]):
                above = min(
                    (other for other in known if set(scope) <= set(other)),
                    key=lambda other: math.prod(sizes[name] for name in other),
                )
                dropped = max((name for name in above if name not in scope), key=sizes.__getitem__)
                self.parent[tuple(name for name in above if name != dropped)] = above

    def at(self, tables: Tables, rows: float) -> Point:
        logs = self.raised(tables)
        counts: Floats = np.exp(logs - logs.max())
        counts *= rows / counts.sum()
        return Point(tables, rows, self._marginals(counts))

    def bent(self, point: Point, tables: Tables) -> Tables:
        """How the marginals move when the logarithms move along these tables, the number of rows held."""
        counts = point.marginals[self.names]
        moved = self.raised(tables) * counts
        moved -= counts * (moved.sum() / point.rows)
        return self._marginals(moved)

    def raised(self, tables: Tables) -> Floats:
        """The sum of the tables over all cells."""
        held = dict(tables)
        for scope in reversed(self.parent):
            if scope in held:
                above, table = self.parent[scope], np.expand_dims(held.pop(scope), self._summed_axes(scope))
                held[above] = held[above] + table if above in held else table
        return np.broadcast_to(held[self.names], list(self.sizes.values()))

    def _marginals(self, counts: Floats) -> Tables:
        marginals = {self.names: counts}
        for scope, above in self.parent.items():
            marginals[scope] = marginals[above].sum(axis=self._summed_axes(scope))
        return marginals

    def _summed_axes(self, scope: Scope) -> tuple[int, ...]:
        return tuple(axis for axis, name in enumerate(self.parent[scope]) if name not in scope)


class TreeOracle:
    """The same through a junction tree; how the marginals move is a symmetric difference."""

    def __init__(self, sizes: dict[str, int], scopes: Iterable[Scope]) -> None:
        self.sizes, self.scopes = sizes, tuple(dict.fromkeys(scopes))

    def at(self, tables: Tables, rows: float) -> Point:
        shares = Factored(self.sizes, tables).marginals(self.scopes)
        return Point(tables, rows, {scope: share * rows for scope, share in zip(self.scopes, shares, strict=True)})

    def bent(self, point: Point, tables: Tables) -> Tables:
        width = 1e-4 / (max(float(np.abs(table).max()) for table in tables.values()) or 1.0)
        ahead, behind = (
            self.at({scope: log + sign * width * tables[scope] for scope, log in point.tables.items()}, point.rows)
            for sign in (1, -1)
        )
        return {scope: (count - behind.marginals[scope]) / (2 * width) for scope, count in ahead.marginals.items()}
