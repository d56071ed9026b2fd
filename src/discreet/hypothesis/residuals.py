"""Marginals as sums of residuals: the least squares fit to any number of measured marginals, in closed form.

The marginal over a set of columns B is a sum of *residuals*, one for each part A of B: r_A is the marginal over A with
its mean taken off along every axis, and in the marginal over B it is spread evenly over the columns that A lacks.
Residuals of different parts are orthogonal, and measurements with independent noise on every cell have independent
noise on them. So the weighted least squares fit to all that was measured is, part by part, an average by precision; it
takes no table larger than those that were measured, however their scopes overlap. That is its use: where scopes tangle,
the distribution of maximum entropy would need too large a table, and would have to leave some of them out.

Shrinkage. Before noise is believed, the residual over two or more columns is compared with what the smaller ones lead
one to expect: their product over the number of rows for a pair, iterative proportional fitting beyond (no interaction
of the highest order). If q is the squared distance between the two, m the number of free numbers of the residual and v
the variance of its noise, the distance is shortened by the factor 1 - (m - 2) v / q, or to 0: the estimator of James
and Stein, whose expected squared error is below that of the measured residual whatever the truth is (for m > 2 and
Gaussian noise). Nothing here was tuned. Everything is a function of released numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.data import Floats
from discreet.hypothesis.tensor import Scope

Marginal = tuple[Scope, Floats, float]
"""A measured marginal: its columns, its numbers, and the variance of the noise on each of them."""

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
        """The shrunk fit to these marginals; their columns stand in one order.

        total  the number of rows if it is public
        """
        fitted = ResidualFit(sizes, {})
        for part in parts_of_scopes(scope for scope, _, _ in marginals):
            known, variance = fitted._average(marginals, part)
            if not part and total is not None:
                known = np.array(total)
            fitted.residuals[part] = fitted._shrunk(part, known, variance) if len(part) > 1 else known
        return fitted

    def marginal(self, scope: Scope) -> Floats:
        """The fitted marginal over some columns, in the fit's order: negative numbers and all. What was not measured
        together is what one would expect without it."""
        table = np.zeros([self.sizes[name] for name in scope])
        for part in parts_of_scopes([scope]):
            if part not in self.residuals:
                self.residuals[part] = self._expected(part)
            table = table + spread_over(self.residuals[part], part, scope, self.sizes)
        return table

    def _average(self, marginals: Sequence[Marginal], part: Scope) -> tuple[Floats, float]:
        """What was measured about a residual, averaged by precision, and its variance."""
        total, precision = np.zeros([self.sizes[name] for name in part]), 0.0
        for scope, table, variance in marginals:
            if set(part) <= set(scope):
                weight = 1 / max(variance * (table.size // max(1, total.size)), 1e-18)
                total, precision = total + weight * summed_to(table, scope, part), precision + weight
        return centred(total / precision), 1 / precision

    def _shrunk(self, part: Scope, known: Floats, variance: float) -> Floats:
        expected, free = self._expected(part), math.prod(self.sizes[name] - 1 for name in part)
        apart = known - expected
        squares = float((apart**2).sum())
        kept = max(0.0, 1 - max(0, free - 2) * variance / squares) if squares > 0 else 1.0
        return expected + kept * apart

    def _expected(self, part: Scope) -> Floats:
        """The residual that the smaller ones lead one to expect."""
        shape = [self.sizes[name] for name in part]
        rows = max(float(self.marginal(())), _LEAST) if part else 0.0
        if len(part) < 2:
            return np.zeros(shape)
        smaller = list(_subsets(part, len(part) - 1))
        tables = [np.maximum(self.marginal(each), _LEAST).reshape(self._axes(each, part)) for each in smaller]
        guess = np.full(shape, rows / math.prod(shape))
        for _ in range(_ROUNDS if len(part) > 2 else 1):
            for each, table in zip(smaller, tables, strict=True):
                guess = guess * (table / np.maximum(summed_to(guess, part, each).reshape(table.shape), _LEAST**2))
        return centred(guess)

    def _axes(self, part: Scope, scope: Scope) -> list[int]:
        return [self.sizes[name] if name in part else 1 for name in scope]
