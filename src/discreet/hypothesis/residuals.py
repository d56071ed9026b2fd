"""Marginals as sums of residuals: the least squares fit to any number of measured marginals, in closed form.

The marginal over a set of columns B is a sum of *residuals*, one for each part A of B: r_A is the marginal over A with
its mean taken off along every axis, and in the marginal over B it is spread evenly over the columns that A lacks.
Residuals of different parts are orthogonal, and measurements with independent noise on every cell have independent
noise on them. So the weighted least squares fit to all that was measured is, part by part, an average by precision; it
takes no table larger than those that were measured, however their scopes overlap. That is its use: where scopes tangle,
the distribution of maximum entropy would need too large a table, and would have to leave some of them out.

Shrinkage. Before noise is believed, the residual over two or more columns is compared with what the smaller ones lead
one to expect: their product over the number of rows for a pair, iterative proportional fitting beyond (no interaction
of the highest order). How much of the difference is believed, `shrinkage.py` says, by the exact variances of the noise
and by what all residuals of as many columns show together. So is a column alone: its counts are not negative. A pair of
columns is also compared with what paths through a third column say of it, if both pairs with that column were measured:
the noise of those is independent of its own. Everything is a function of released numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.data import Floats
from discreet.hypothesis.shrinkage import Interaction, interactions, shrunk_columns
from discreet.hypothesis.tensor import Scope

Marginal = tuple[Scope, Floats, float]
"""A measured marginal: its columns, its numbers, and the variance of the noise on each of them."""

Residual = tuple[Floats, float]
"""A measured residual, and the variance of the independent noises on every cell of which it has the residual."""

_MATRICES = 2**24  # products for one path through a column
_ROUNDS = 5  # of proportional fitting: a guess need not be exact
_LEAST = 1e-9


def parts_of_scopes(scopes: Iterable[Scope]) -> tuple[Scope, ...]:
    """Every part of some scope, the empty one included, by size and then by first mention."""
    found = {part: None for scope in scopes for size in range(len(scope) + 1) for part in _subsets(scope, size)}
    return tuple(sorted(found, key=len))


def _subsets(scope: Scope, size: int) -> Iterable[Scope]:
    return itertools.combinations(scope, size)


def summed_to(table: Floats, scope: Scope, part: Scope) -> Floats:
    """The marginal over a part of the scope."""
    return np.asarray(table.sum(axis=tuple(axis for axis, name in enumerate(scope) if name not in part)))


def centred(table: Floats) -> Floats:
    """The table with its mean taken off along every axis."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def spread_over(residual: Floats, part: Scope, scope: Scope, sizes: Mapping[str, int]) -> Floats:
    """A residual as it stands in the marginal over a larger scope; one row of each column that it lacks stands for
    all, and numpy repeats it."""
    others = math.prod(sizes[name] for name in scope if name not in part)
    return np.asarray(residual / others).reshape([sizes[name] if name in part else 1 for name in scope])


def _average(marginals: Sequence[Marginal], part: Scope, sizes: Mapping[str, int]) -> Residual:
    """What was measured about a residual, averaged by precision, and its variance."""
    total, precision = np.zeros([sizes[name] for name in part]), 0.0
    for scope, table, variance in marginals:
        if set(part) <= set(scope):
            weight = 1 / max(variance * (table.size // max(1, total.size)), 1e-18)
            total, precision = total + weight * summed_to(table, scope, part), precision + weight
    return centred(total / precision), 1 / precision


@dataclass(frozen=True, slots=True, eq=False)
class ResidualFit:
    """Estimated residuals of some scopes and of all their parts.

    sizes      of the columns
    residuals  by their columns, which stand in one order in all of them
    """

    sizes: Mapping[str, int]
    residuals: dict[Scope, Floats]

    @staticmethod
    def of(marginals: Sequence[Marginal], sizes: Mapping[str, int], *, total: float | None) -> ResidualFit:
        """The shrunk fit to these marginals, whose noises are independent; their columns stand in one order.

        total  the number of rows if it is public
        """
        parts = parts_of_scopes(scope for scope, _, _ in marginals)
        return ResidualFit.shrunk({part: _average(marginals, part, sizes) for part in parts}, sizes, total=total)

    @staticmethod
    def shrunk(measured: Mapping[Scope, Residual], sizes: Mapping[str, int], *, total: float | None) -> ResidualFit:
        """The fit to measured residuals of some scopes and all their parts."""
        rows = max(1.0, float(measured[()][0]) if total is None else total)
        fitted = ResidualFit(sizes, {(): np.array(rows)})
        alone = [part for part in measured if len(part) == 1]
        tables = [rows / sizes[name] + measured[name,][0] for (name,) in alone]
        for part, table in zip(alone, shrunk_columns(tables, [measured[part][1] for part in alone], rows), strict=True):
            fitted.residuals[part] = centred(table)
        for level in sorted({len(part) for part in measured if len(part) > 1}):
            fitted._take_in({part: each for part, each in measured.items() if len(part) == level}, rows)
        return fitted

    def _take_in(self, measured: Mapping[Scope, Residual], rows: float) -> None:
        """The residuals of as many columns each, shrunk together; pairs again, when others say something about them."""
        expected = {part: self._expected(part) for part in measured}
        apart = {part: known - centred(expected[part]) for part, (known, _) in measured.items()}
        noise = {part: variance for part, (_, variance) in measured.items()}

        def believed(paths: Mapping[Scope, Floats]) -> dict[Scope, Floats]:
            found = [Interaction(apart[part], expected[part], noise[part], paths.get(part)) for part in measured]
            return {part: centred(each) for part, each in zip(measured, interactions(found, rows), strict=True)}

        kept = believed({})
        if paths := self._paths(kept):
            kept = believed(paths)
        for part in measured:
            self.residuals[part] = centred(expected[part]) + kept[part]

    def _paths(self, believed: Mapping[Scope, Floats]) -> dict[Scope, Floats]:
        """For pairs a, b: the sum over columns c, of which a, c and c, b were measured, of what their dependences say
        about a and b if these depend on each other through c alone."""
        pairs = [part for part in believed if len(part) == 2]
        known = {**{pair: believed[pair] for pair in pairs}, **{pair[::-1]: believed[pair].T for pair in pairs}}
        found: dict[Scope, Floats] = {}
        for a, b in pairs:
            for c in dict.fromkeys(name for pair in pairs for name in pair):
                if (a, c) in known and (c, b) in known and self._cells((a, b, c)) <= _MATRICES:
                    through = known[a, c] / np.maximum(self.marginal((c,)), 1.0) @ known[c, b]
                    found[a, b] = found.get((a, b), 0.0) + through
        return {pair: centred(each) for pair, each in found.items()}

    def _cells(self, scope: Scope) -> int:
        return math.prod(self.sizes[name] for name in scope)

    def marginal(self, scope: Scope) -> Floats:
        """The fitted marginal over some columns, in the fit's order: negative numbers and all. What was not measured
        together is what one would expect without it."""
        table = np.zeros([self.sizes[name] for name in scope])
        for part in parts_of_scopes([scope]):
            if part not in self.residuals:
                self.residuals[part] = centred(self._expected(part))
            table = table + spread_over(self.residuals[part], part, scope, self.sizes)
        return table

    def _expected(self, part: Scope) -> Floats:
        """The table that the residuals of all smaller parts lead one to expect: no count is negative."""
        shape = [self.sizes[name] for name in part]
        rows = max(float(self.residuals[()]), _LEAST)
        if len(part) < 2:
            return np.full(shape, rows / math.prod(shape))
        smaller = list(_subsets(part, len(part) - 1))
        tables = [np.maximum(self.marginal(each), _LEAST).reshape(self._axes(each, part)) for each in smaller]
        guess = np.full(shape, rows / math.prod(shape))
        for _ in range(_ROUNDS if len(part) > 2 else 1):
            for each, table in zip(smaller, tables, strict=True):
                guess = guess * (table / np.maximum(summed_to(guess, part, each).reshape(table.shape), _LEAST**2))
        return guess

    def _axes(self, part: Scope, scope: Scope) -> list[int]:
        return [self.sizes[name] if name in part else 1 for name in scope]
