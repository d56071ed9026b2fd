"""Linear models in ranges that are released first: of the target, and of columns of numbers.

A declared range is often far wider than the targets are spread, or they lie at one end of it; noise and ridge are by
the range. So a small part of the price releases where the targets lie, by ranks: their median, and a distance from it
beyond which few are. The regression is then that of targets declared in the range that ends twice that distance away.

    median    the exponential mechanism on ranks, on the column's grid
    distance  the same on the numbers of binary digits of the distances from that median, in steps: about 20 classes, of
              which the right one is found with far fewer rows than a point of the grid
    inner     objective perturbation

How much of the price both get is the least of `_SHARES` with which few rows decide; if none is enough, noise dominates.

Rows, too, are as long as they are declared to be, so a number whose values lie in a hundredth of its declared range is
a coordinate of a hundredth, of which noise leaves nothing. Up to a fifth of the price releases for each such column its
median and a distance from it beyond which few rows are; what lies between becomes [-1, 1], what lies beyond is cut.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet.core import Caps, Funds, Guarantee, NothingFits, ParameterError, Rng
from discreet.data import Batch, Dataset, Domain, Facts, Floats, Ints, Needs
from discreet.erm import Ball, Declared, Huber, Ranged, RangedHuber, Risk, objective_perturbation, public_size
from discreet.erm.descent import Descent
from discreet.erm.objective_perturbation import ObjectivePerturbation, signal
from discreet.mechanisms import Promise, RankQuantile, admitted, calibrate

_WIDTH = 2  # the range ends this many spreads from the median
_NARROWEST = 10  # binary digits that the spread may be below the declared range
_SHARES = tuple(Fraction(part, 40) for part in (2, 3, 4, 6, 8, 12, 16))  # of the price, for the range
_OF_MEDIAN = Fraction(2, 5)  # of that share
_SURE = 8  # rate times rows: e^-8 is how likely a point is that misses by so many
_TAILS = tuple(Fraction(1, parts) for parts in (4, 6, 8, 12, 16, 24, 32, 48))  # of the rows beyond the spread

Settle = Callable[[Risk, Facts, Funds], Risk]


@dataclass(frozen=True, slots=True)
class RangedRegression:
    """Release a range of the target and the regression in it: its middle, then the coefficients in the column's units.

    median    of the target
    distance  which quantile of the distances from that median the range is twice of; its column is the target, too
    inner     its loss is a RangedHuber, whose low and high are replaced by what is released

    Theorem.   Given the median, the number of binary digits of a row's distance from it is a function of the row: its
               quantile in rank has the price of any (`RankQuantile`). Given both, the inner mechanism's price is that
               of its facts, whatever the range: in units of half of it, slopes, rows and targets have the same bounds.
               So the three guarantees are added up: adaptive composition, then post-processing.
    Accuracy.  `promise`: that of the inner mechanism, for the risk in the range that is released; in units of half the
               declared range, which is at least as long.
    Edges.     The range is never longer than the declared one, nor shorter than 2^-8 of it.
    Reference. docs/proofs/ranged_regression.md.
    """

    NAME: ClassVar[str] = "ranged-regression/1"
    median: RankQuantile
    distance: RankQuantile
    inner: ObjectivePerturbation

    def __post_init__(self) -> None:
        names = {self.median.column, self.distance.column, self.inner.risk.target}
        if len(names) > 1 or not isinstance(self.inner.risk.loss, RangedHuber):
            raise ParameterError(f"inner must be about a RangedHuber loss of one target, found {sorted(names)}")

    @property
    def risk(self) -> Risk:
        return self.inner.risk

    def guarantee(self, facts: Facts) -> Guarantee:
        return self.median.guarantee(facts) + self.distance.guarantee(facts) + self.inner.guarantee(facts)

    def needs(self, facts: Facts) -> Needs:
        inner = self.inner.needs(facts)
        return replace(inner, passes=(inner.passes or 0) + (self.median.needs(facts).passes or 0) + 1)

    def run(self, data: Dataset, rng: Rng) -> Floats:
        risk, name = self.inner.risk, self.median.column
        assert isinstance(risk.loss, RangedHuber)
        number = risk.loss.number(data.facts.domain, name)
        middle, far = released_range(self.median, self.distance, data, rng)
        half = min(_WIDTH * far * number.step, (number.high - number.low) / 2)
        centre = number.low + middle * number.step
        ranged = replace(risk, loss=RangedHuber(risk.loss.threshold, centre - half, centre + half))
        found = replace(self.inner, risk=ranged).run(data, rng)
        return np.concatenate([[float(centre)], found * float(half)])


def released_range(median: RankQuantile, distance: RankQuantile, data: Dataset, rng: Rng) -> tuple[int, int]:
    """A median of a column of numbers, and a power of two that is a quantile of the distances from it, in steps."""
    name = median.column
    middle, most = median.sampler(data).draw(rng), data.facts.domain.column(name).points.bit_length()
    least = max(0, most - _NARROWEST)
    counts = data.exact_sum(functools.partial(_digits, name, middle, least, most))
    return middle, 2 ** (least + distance.among(counts, rng))


def _digits(name: str, middle: int, least: int, most: int, batch: Batch) -> Ints:
    """How many rows' distances in steps have so many binary digits; `least` or fewer are one class."""
    distances = np.abs(batch[name].astype(np.int64) - middle).astype(np.float64)
    return np.bincount(np.clip(np.frexp(distances)[1], least, most) - least, minlength=most - least + 1)


def promise(mechanism: RangedRegression, facts: Facts) -> Promise:
    """That of the inner mechanism, in the target's units."""
    number = mechanism.inner.risk.loss.number(facts.domain, mechanism.median.column)
    found = objective_perturbation.promise(mechanism.inner, facts)
    theorem = f"{found.theorem}, in a range of the target that is released first"
    return replace(found, theorem=theorem).times(float((number.high - number.low) / 2) ** 2)


def propose_target(risk: Risk, settle: Settle, *, facts: Facts, funds: Funds) -> RangedRegression:
    """The least share of the funds for the range, and the inner mechanism with the rest.

    risk    of the declared target
    settle  chooses the threshold and the radius of the inner risk, by public numbers
    """
    if not isinstance(risk.loss, Huber) or not risk.features.constant(facts.domain):
        raise ParameterError("a range of the target is released for Huber losses and models with an intercept alone")
    risk.loss.check_target(facts.domain, risk.target)
    norm = 2 * risk.features.constant(facts.domain) * risk.features.unit(facts.domain)
    plain = replace(risk, loss=RangedHuber(Fraction(1, 4), -1, 1), feasible=Ball(1 / norm))
    inside = settle(plain, facts, funds)
    books = (funds.only_pure(), Funds(funds.order, Caps(funds.caps.renyi, 0, funds.caps.failure)))
    made = admitted((functools.partial(_within, book, inside, facts) for book in books), telling=0)
    return min(made, key=lambda each: float(promise(each, facts)))


def _within(funds: Funds, inside: Risk, facts: Facts) -> RangedRegression:
    """All parts within one book; NothingFits if no share of it is enough for the range."""
    for share in _SHARES:
        ranks = ranks_within(inside.target, funds.share(share), facts)
        if ranks is not None:
            inner = objective_perturbation.propose(inside, facts=facts, funds=funds.share(1 - share))
            return RangedRegression(*ranks, inner)
    raise NothingFits("too few people, or too little is left, for a range of the target")


def ranks_within(column: str, funds: Funds, facts: Facts) -> tuple[RankQuantile, RankQuantile] | None:
    """The median and the quantile of distances for a range, within these funds; None if few people are too few."""
    people = public_size(facts)

    def made(q: Fraction, part: Fraction) -> RankQuantile:
        share = funds.share(part)
        return calibrate(lambda noise: RankQuantile(column, q, 1 / noise), funds=share, facts=facts, precision=10)

    median, distance = made(Fraction(1, 2), _OF_MEDIAN), made(1 - _TAILS[0], 1 - _OF_MEDIAN)
    if min(median.rate * Fraction(3, 8), distance.rate * _TAILS[0]) * people < _SURE:
        return None
    tail = min(each for each in _TAILS if distance.rate * people * each >= _SURE)
    return median, made(1 - tail, 1 - _OF_MEDIAN) if tail < _TAILS[0] else distance


# Ranges of columns.

_OF_COLUMNS = tuple(Fraction(1, part) for part in (20, 10, 5))
"""Shares of the price for the ranges of all columns; the last under Gaussian noise alone."""
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


def propose_columns(risk: Risk, solve: Solve, *, facts: Facts, funds: Funds) -> tuple[RangedFeatures, Promise]:
    """The least share of the funds for the ranges, and a solver with the rest, with its promise.

    solve  the solver of a risk and its promise, for these funds
    """
    names = columns_of(risk, facts.domain)
    if not names:
        raise ParameterError("ranges are released of declared columns of numbers that are never missing")
    gaussian, found = Funds(funds.order, Caps(funds.caps.renyi, 0, funds.caps.failure)), signal(risk, facts, funds)
    shorter, most = signal(risk, facts, gaussian) < _GAUSSIAN * found, max(_FEWEST, _CUT / max(1.0, found))
    for book in (funds.only_pure(), gaussian) if shorter else (gaussian,):
        for share in _OF_COLUMNS if book.caps.renyi else _OF_COLUMNS[:-1]:
            ranks = ranks_within(names[0], book.share(share / len(names)), facts)
            if ranks is not None and float(1 - ranks[1].q) <= most:
                medians, distances = (tuple(replace(each, column=name) for name in names) for each in ranks)
                inner, promise = solve(risk, book.share(1 - share))
                theorem = f"{promise.theorem}, in ranges of columns that are released first"
                return RangedFeatures(medians, distances, inner), replace(promise, theorem=theorem)
    raise NothingFits("too few people, or too little is left, for ranges of the columns")
