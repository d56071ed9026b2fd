"""A linear model whose columns of numbers are cut to ranges that are released first.

Rows are as long as they are declared to be, so a number whose values lie in a hundredth of its declared range is a
coordinate of a hundredth, of which noise leaves nothing. As `ranged_regression` does for a target, up to a fifth of the
price releases for each such column its median and a distance from it beyond which few rows are; what lies between
becomes [-1, 1], what lies beyond is cut.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet.core import Caps, Funds, Guarantee, NothingFits, ParameterError, Rng
from discreet.data import Dataset, Domain, Facts, Floats, Needs
from discreet.erm.descent import Descent
from discreet.erm.features import Declared, Ranged
from discreet.erm.objective_perturbation import ObjectivePerturbation, signal
from discreet.erm.ranged_regression import RangedRegression, ranks_within, released_range
from discreet.erm.risk import Risk
from discreet.mechanisms import Promise, RankQuantile

_SHARES = (
    Fraction(1, 20),
    Fraction(1, 10),
    Fraction(1, 5),
)  # of the price, for all ranges together; the last under Gaussian noise alone
_GAUSSIAN = 0.6  # of the signal under any noise: with less of it under Gaussian noise the pure book is tried first
_CUT, _FEWEST = 40, 1 / 48
"""Signal times tail, at most, and a tail that is always small enough: what is cut costs the more, the less noise is."""

Solver = Descent | ObjectivePerturbation | RangedRegression
Solve = Callable[[Risk, Funds], tuple[Solver, Promise]]


@dataclass(frozen=True, slots=True)
class RangedFeatures:
    """Release a range of each of some columns, and what `inner` finds in rows that are cut to them.

    medians    of the columns
    distances  which quantile of the distances from its median each range ends at
    inner      its features are Declared, and have these columns

    The release is the middle and half the width of each range, in steps, and after them the coefficients.

    Theorem.   A range has the price of its two quantiles (`RangedRegression`). Rows in ranges are as long as declared
               ones at most, in either norm, so the inner mechanism's price does not depend on them. All are added up:
               adaptive composition.
    Accuracy.  The promise of the inner mechanism, for rows that are cut to the ranges.
    Edges.     A range may reach beyond the declared one, which changes nothing. Missing numbers have no range.
    Reference. docs/proofs/ranged_regression.md.
    """

    NAME: ClassVar[str] = "ranged-columns/1"
    medians: tuple[RankQuantile, ...]
    distances: tuple[RankQuantile, ...]
    inner: Solver

    def __post_init__(self) -> None:
        names, features = [each.column for each in self.medians], self.inner.risk.features
        if type(features) is not Declared or not set(names) <= set(features.columns):
            raise ParameterError(f"inner must be about declared features with the columns {names}")
        if not names or names != [each.column for each in self.distances]:
            raise ParameterError(f"distances must be those of the columns {names}, at least one")

    def guarantee(self, facts: Facts) -> Guarantee:
        total = self.inner.guarantee(facts)
        for each in (*self.medians, *self.distances):
            total = total + each.guarantee(facts)
        return total

    def needs(self, facts: Facts) -> Needs:
        inner = self.inner.needs(facts)
        searched = sum((each.needs(facts).passes or 0) + 1 for each in self.medians)
        return replace(inner, passes=(inner.passes or 0) + searched)

    def run(self, data: Dataset, rng: Rng) -> Floats:
        pairs = zip(self.medians, self.distances, strict=True)
        found = [released_range(median, distance, data, rng) for median, distance in pairs]
        ends: Floats = np.array(found, dtype=np.float64).ravel()
        return np.concatenate([ends, _with_features(self.inner, self.features(ends)).run(data, rng)])

    def features(self, released: Floats) -> Ranged:
        """The features in the ranges that a release begins with."""
        declared = self.inner.risk.features
        assert isinstance(declared, Declared)
        numbers = [int(each) for each in released[: 2 * len(self.medians)]]
        names = [each.column for each in self.medians]
        ranges = tuple(zip(names, numbers[::2], numbers[1::2], strict=True))
        return Ranged(declared.columns, declared.norm, declared.intercept, ranges)


def _with_features(solver: Solver, features: Ranged) -> Solver:
    if isinstance(solver, RangedRegression):
        return replace(solver, inner=replace(solver.inner, risk=replace(solver.risk, features=features)))
    return replace(solver, risk=replace(solver.risk, features=features))


def columns_of(risk: Risk, domain: Domain) -> list[str]:
    """The columns of the features that can be cut to a range."""
    if type(risk.features) is not Declared:
        return []
    found = {name: domain.column(name) for name in risk.features.columns}
    return [name for name, column in found.items() if column.bounded and column.missing_code is None]


def propose(risk: Risk, solve: Solve, *, facts: Facts, funds: Funds) -> tuple[RangedFeatures, Promise]:
    """The least share of the funds for the ranges, and a solver with the rest, with its promise.

    solve  the solver of a risk and its promise, for these funds
    """
    names = columns_of(risk, facts.domain)
    if not names:
        raise ParameterError("ranges are released of declared columns of numbers that are never missing")
    gaussian, found = Funds(funds.order, Caps(funds.caps.renyi, 0, funds.caps.failure)), signal(risk, facts, funds)
    shorter, most = signal(risk, facts, gaussian) < _GAUSSIAN * found, max(_FEWEST, _CUT / max(1.0, found))
    for book in (funds.only_pure(), gaussian) if shorter else (gaussian,):
        for share in _SHARES if book.caps.renyi else _SHARES[:-1]:
            ranks = ranks_within(names[0], book.share(share / len(names)), facts)
            if ranks is not None and float(1 - ranks[1].q) <= most:
                medians, distances = (tuple(replace(each, column=name) for name in names) for each in ranks)
                inner, promise = solve(risk, book.share(1 - share))
                theorem = f"{promise.theorem}, in ranges of columns that are released first"
                return RangedFeatures(medians, distances, inner), replace(promise, theorem=theorem)
    raise NothingFits("too few people, or too little is left, for ranges of the columns")
