"""Marginals with the least noise: each part of a scope is measured once, and every marginal is put together from parts.

Releasing all pairs of eight columns as pairs measures each column seven times, the number of rows 28 times, and pays
for it. Here the *residual* of every part A of a scope, what the marginal over A says beyond its own smaller parts, gets
noise of its own, and only that is released; a marginal is the sum of the residuals of its parts
(`hypothesis.residuals`). Among all ways to release linear functions with Gaussian noise, some choice of the scales is
the best one for the sum of variances and for the largest of them [XHZK23]; `residual_scales` finds it.

    Sub     for a column of n values the n - 1 differences z_i - z_n: integers of integers
    R_A     Sub along every axis of a table over A

A cell of the marginal over B is off by a weighted sum of independent noises, with weights that add up (in squares,
times the scales squared) to

    variance(B) = sum over parts A of B of scale_A^2 * prod_{i in A} (1 - 1/n_i) / prod_{i in B - A} n_i^2.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.answering.averaged_weights import Together
from discreet.answering.measurement import Measured
from discreet.core import Exact, Funds, Guarantee, OutOfRange, ParameterError, Rng, checked_variance, exact
from discreet.data import Dataset, Domain, Facts, Floats, IntArray, Needs
from discreet.hypothesis import Linear, ResidualFit, Scope, centred, parts_of_scopes, spread_over, summed_to
from discreet.mechanisms import FINE, calibrate
from discreet.query import Count, Histogram, require_numbers

MOST_FINE = 2**20
_ROUNDS = 400  # of the search for the least largest variance
_STEPS = 2**12  # ratios of scales are multiples of 1 / _STEPS
_LISTED = 2**22  # weights times cells that are looked at to find a question's own variances
_EFFECT = (
    0.3  # how large interactions are believed to be, as a share of an even cell; the n-th power for n more columns
)
_LEAST_HELD = 1e-6  # of a multiplier: the search takes larger ones up from there
_NEAR = 0.95  # at most so much of the variance of plain noise,
_VAGUE = 4  # if so many deviations of plain noise exceed an even cell
_PAIRS = 16  # columns up to which every way to replace a row is looked at
_UP = 1 + 1e-9  # more than floats lose in a sum of positive terms


@dataclass(frozen=True, slots=True, init=False)
class ResidualMarginals:
    """Release the marginals over some scopes, put together from noisy residuals of all their parts.

    For every part A of a scope (the empty one, whose residual is the number of rows, unless that is public) let x_A be
    the marginal over A, K = `fineness`, and N_A independent discrete Gaussian noises, one for every cell, of scale
    K scale_A. What is released is a function of the integers R_A (K x_A + N_A).

    Theorem.   Let D_A(d) = |P_A d_A|^2 for the change d_A of x_A between neighbours and P_A the projection along R_A's
               kernel: what every axis's mean says is not looked at. The Renyi divergence of order a is at most
               a sum_A D_A / (2 scale_A^2) + a/(a - 1) sum_A ln((1 + e_A)/(1 - e_A)), and at most
               a sum_A |d_A|^2 / (2 scale_A^2), where 1/e_A = exp(2 pi^2 (K scale_A)^2 / n) / (2 c) - 1 for the largest
               column n of A and c dimensions of the kernel. A row that comes has D_A = prod_{i in A} (1 - 1/n_i); one
               that is replaced in the columns S has twice that, times 1 - prod_{i in A and S} (-1/(n_i - 1)). A person
               of k rows: k^2 times the largest.
    Accuracy.  A cell of the marginal over B is off by a sum of noises with the variance of the module's docstring, as
               far as `FineGaussianNoise` reaches if K times every scale is at least 256, else as `SubGaussianNoise`.
    Edges.     The released marginals agree with each other, and may be negative. Columns of one value cost nothing.
               Replace-one with one row a person: the number of rows is public, and no noise is drawn for it.
    Reference. [XHZK23]; smoothing of lattices [MR07] lemma 3.3; docs/proofs/residual_marginals.md.
    """

    NAME: ClassVar[str] = "residual-marginals/1"
    scopes: tuple[Scope, ...]
    scales: tuple[Fraction, ...]
    fineness: int

    def __init__(self, scopes: Iterable[str | Iterable[str]], scales: Iterable[Exact], fineness: int) -> None:
        """scales: of the parts of the scopes, in the order of `parts_of_scopes`."""
        asked = tuple(Histogram(scope).columns for scope in scopes)
        parts = parts_of_scopes(asked)
        if not asked or len(set(asked)) < len(asked):
            raise ParameterError(f"scopes must be one or more different sets of columns, found {len(asked)}")
        if len({frozenset(part) for part in parts}) < len(parts):
            raise ParameterError("the columns of all scopes must stand in one order")
        widths = tuple(exact.positive(scale=scale) for scale in scales)
        if len(widths) != len(parts):
            raise ParameterError(f"there must be one scale for each of {len(parts)} parts, found {len(widths)}")
        if exact.whole(fineness=fineness) > MOST_FINE:
            raise ParameterError(f"fineness must be at most {MOST_FINE:,}, found {fineness}")
        exact.freeze(self, scopes=asked, scales=widths, fineness=fineness)

    @property
    def parts(self) -> dict[Scope, Fraction]:
        """The scale of every part."""
        return dict(zip(parts_of_scopes(self.scopes), self.scales, strict=True))

    @property
    def kind(self) -> str:
        """The law of the noise on what is read off."""
        return "fine" if self.fineness * min(self.scales) >= FINE else "sub-gaussian"

    def guarantee(self, facts: Facts) -> Guarantee:
        for part, scale in self.parts.items():
            _shape(part, facts.domain)
            checked_variance((self.fineness * scale) ** 2)
        tight, full = (float(cost) * _UP / 2 for cost in self.cost(facts))
        slack = _UP * math.fsum(
            _slack([facts.domain.column(name).size for name in part], self.fineness * float(scale))
            for part, scale in self.parts.items()
        )
        if full == 0:
            return Guarantee.of_pure(0, neighbours=facts.neighbours)
        return Guarantee.of_curve(
            lambda order: min(order * tight + order / (order - 1) * slack, order * full), neighbours=facts.neighbours
        )

    def cost(self, facts: Facts) -> tuple[Fraction, Fraction]:
        """Twice the zCDP: the sums over all parts of D_A / scale_A^2 and of |d_A|^2 / scale_A^2, at most."""
        first, names = self.scales[0], sorted({name for scope in self.scopes for name in scope})
        sizes = tuple((name, facts.domain.column(name).size) for name in names)
        ratios = tuple(scale / first for scale in self.scales)
        tight, full = _cost(self.scopes, ratios, sizes, facts.neighbours.replace_one, facts.neighbours.rows)
        return tight / first**2, full / first**2

    def numbers(self, facts: Facts) -> int:
        return sum(math.prod(_shape(part, facts.domain)) for part in self.parts)

    def needs(self, facts: Facts) -> Needs:
        return Needs(queries=tuple(Histogram(scope) for scope in self.scopes))

    def run(self, data: Dataset, rng: Rng) -> tuple[Floats, ...]:
        queries = tuple(Histogram(scope) for scope in self.scopes)
        sums, tables, start = data.exact_sum(Together(queries)), dict[Scope, IntArray](), 0
        for query in queries:
            shape = query.shape(data.facts.domain)
            tables[query.columns] = sums[start : start + math.prod(shape)].reshape(shape)
            start += math.prod(shape)
        residuals = {}
        for part, scale in self.parts.items():
            home = next(scope for scope in self.scopes if set(part) <= set(scope))
            residuals[part] = self._residual(summed_to(tables[home], home, part), scale, data.facts, rng)
        sizes = sizes_of(self.scopes, data.facts.domain)
        return tuple(put_together(residuals, scope, sizes) for scope in self.scopes)

    def _residual(self, table: Any, scale: Fraction, facts: Facts, rng: Rng) -> Floats:
        """One noisy residual, from the released integers alone."""
        if table.ndim == 0 and (rows := public_rows(facts)) is not None:
            return np.array(float(rows))
        # Differences of 2^axes numbers; where they may exceed 2^62 they are Python's integers.
        wide: Any = object if scale >= 2**40 or self.fineness.bit_length() + table.ndim > 28 else np.int64
        noise = rng.gaussian((self.fineness * scale) ** 2, table.shape)
        released = np.asarray(table.astype(wide) * self.fineness + noise.astype(wide))
        for axis in range(released.ndim):  # Sub
            last = np.take(released, [-1], axis=axis)
            released = np.delete(released - last, -1, axis=axis)
        whole = np.zeros(table.shape)
        whole[(slice(-1),) * table.ndim] = released
        return centred(whole) / self.fineness

    # Reading a release.

    def variance(self, scope: Scope, domain: Domain, *, rows_known: bool) -> float:
        """The variance that bounds the noise on each cell of the marginal over these columns."""
        return math.fsum(
            float(scale) ** 2
            * math.prod(1 - 1 / domain.column(name).size for name in part)
            / math.prod(domain.column(name).size for name in scope if name not in part) ** 2
            for part, scale in self.parts.items()
            if set(part) <= set(scope) and (part or not rows_known)
        )

    def top(self, scope: Scope, shape: Sequence[int]) -> float:
        """A scale: the noise on any weighted sum of cells of this marginal is that of independent noises of this scale
        on every cell, or less. The residuals are orthogonal, so it is that of the worst of them."""
        sizes = dict(zip(scope, shape, strict=True))
        return max(
            float(scale) / math.sqrt(math.prod(sizes[name] for name in scope if name not in part))
            for part, scale in self.parts.items()
            if set(part) <= set(scope)
        )

    def variances(self, form: Linear, facts: Facts) -> tuple[Floats, Floats]:
        """For each number of a question the variance that bounds its noise, and what independent noises of variance 1
        on every cell would have."""
        known, numbers = public_rows(facts) is not None, math.prod(form.outputs)
        weights = form.weight[form.place >= 0]
        squares = np.asarray(np.bincount(form.place[form.place >= 0], weights**2, numbers), dtype=np.float64)
        if form.whole:
            one = self.variance(form.scope, facts.domain, rows_known=known)
            return np.full(form.outputs, one), np.ones(form.outputs)
        if numbers * form.cells <= _LISTED:
            found = [self._weighed(form, place, known) for place in range(numbers)]
        else:
            found = (self.top(form.scope, form.shape) ** 2 * squares).tolist()
        return np.array(found).reshape(form.outputs), squares.reshape(form.outputs)

    def _weighed(self, form: Linear, place: int, rows_known: bool) -> float:
        """The variance of one number of a question."""
        weights = np.where(form.place == place, form.weight, 0.0).reshape(form.shape)
        return math.fsum(
            float(scale) ** 2
            * float((centred(summed_to(weights, form.scope, part)) ** 2).sum())
            / math.prod(size for name, size in zip(form.scope, form.shape, strict=True) if name not in part) ** 2
            for part, scale in self.parts.items()
            if set(part) <= set(form.scope) and (part or not rows_known)
        )

    def plain_scale(self, scopes: Iterable[Scope], facts: Facts) -> float:
        """The scale of Gaussian noise on every cell of the marginals over these scopes that would cost as much."""
        queries = [Histogram(scope) if scope else Count() for scope in scopes]
        moved, cost = sum(query.sensitivity(facts).l2_squared for query in queries), min(self.cost(facts))
        return math.sqrt(moved / cost) if cost else 0.0

    def marginal(self, value: Sequence[Floats], scope: Scope) -> Floats:
        """The released marginal over some columns of a scope, in the scopes' order."""
        place, home = next((i, one) for i, one in enumerate(self.scopes) if set(scope) <= set(one))
        return summed_to(value[place], home, scope)

    def fitted(self, value: Sequence[Any], facts: Facts) -> ResidualFit:
        """The table that a release leads one to expect: residuals that show more noise than structure are shrunk, by
        the exact variances of their noise."""
        measured = {
            part: (centred(self.marginal(value, part)), float(scale) ** 2) for part, scale in self.parts.items()
        }
        rows, sizes = public_rows(facts), sizes_of(self.scopes, facts.domain)
        return ResidualFit.shrunk(measured, sizes, total=None if rows is None else float(rows))

    @property
    def residual_parts(self) -> list[ResidualPart]:
        """The marginals that a release has, one by one."""
        return [ResidualPart(Histogram(scope), self) for scope in self.scopes]


@dataclass(frozen=True, slots=True)
class ResidualPart:
    """One marginal of a release."""

    query: Histogram
    mechanism: ResidualMarginals

    def measured(self, value: Any, facts: Facts, **where: Any) -> Measured:
        """The marginal, with a scale that bounds the noise on every sum of its cells; where it stands in a ledger. Its
        numbers are multiples of 1 / (K * cells)."""
        table = np.asarray(value, dtype=np.float64)
        scale, unit = self.mechanism.top(self.query.columns, table.shape), 1 / (self.mechanism.fineness * table.size)
        return Measured(self.query, self.mechanism.kind, scale, unit, table, **where)


def put_together(residuals: Mapping[Scope, Floats], scope: Scope, sizes: Mapping[str, int]) -> Floats:
    """The marginal over a scope."""
    table = np.zeros([sizes[name] for name in scope])
    for part in parts_of_scopes([scope]):
        table = table + spread_over(residuals[part], part, scope, sizes)
    return table


def public_rows(facts: Facts) -> int | None:
    """The number of rows, if it is public."""
    return facts.size if facts.neighbours.replace_one and facts.neighbours.rows == 1 else None


def sizes_of(scopes: Iterable[Scope], domain: Domain) -> dict[str, int]:
    return {name: domain.column(name).size for scope in scopes for name in scope}


def _shape(part: Scope, domain: Domain) -> tuple[int, ...]:
    return Histogram(part).shape(domain) if part else ()


# The price.


@functools.lru_cache(maxsize=64)
def _cost(
    scopes: tuple[Scope, ...],
    ratios: tuple[Fraction, ...],
    sizes: tuple[tuple[str, int], ...],
    replace_one: bool,
    rows: int,
) -> tuple[Fraction, Fraction]:
    """The sums over the parts of D_A / ratio_A^2 and of |d_A|^2 / ratio_A^2 for the worst pair of neighbours."""
    count, weights = dict(sizes), dict(zip(parts_of_scopes(scopes), (1 / ratio**2 for ratio in ratios), strict=True))
    shares = {part: math.prod((1 - Fraction(1, count[name]) for name in part), start=Fraction(1)) for part in weights}
    added = sum((shares[part] * weight for part, weight in weights.items()), start=Fraction(0))
    full = sum(weights.values(), start=Fraction(0))
    if not replace_one:
        return added * rows**2, full * rows**2
    listed = {part: (float(weight), float(shares[part])) for part, weight in weights.items() if shares[part]}
    moved = Fraction(_replaced(listed, {name: size for name, size in sizes if size > 1}) * _UP)
    fully = 2 * (full - weights[()])
    if rows == 1:  # the number of rows is public
        return moved, fully
    return max(added, moved) * rows**2, max(full, fully) * rows**2


def _replaced(parts: Mapping[Scope, tuple[float, float]], sizes: Mapping[str, int]) -> float:
    """The largest sum over parts of weight * 2 share (1 - prod over replaced columns of -1/(n - 1)), over all sets of
    replaced columns; with too many columns every part has its own worst set."""
    if len(sizes) > _PAIRS:
        worst = {part: 1 / (min(sizes[name] for name in part) - 1) for part in parts if part}
        return math.fsum(2 * weight * share * (1 + worst[part]) for part, (weight, share) in parts.items() if part)
    sets = np.arange(2 ** len(sizes))
    factors = {name: np.where(sets >> bit & 1, -1 / (sizes[name] - 1), 1.0) for bit, name in enumerate(sizes)}
    costs = np.zeros(len(sets))
    for part, (weight, share) in parts.items():
        costs += 2 * weight * share * (1 - math.prod((factors[name] for name in part), start=np.ones(1)))
    return float(costs.max())


def _slack(shape: Sequence[int], scale: float) -> float:
    """ln((1 + e)/(1 - e)) of the theorem for a table of this shape and noise of this many steps."""
    kernel = math.prod(shape) - math.prod(size - 1 for size in shape)
    if not shape or kernel == math.prod(shape):  # all that there is, or nothing, is looked at
        return 0.0
    log_inverse = min(2 * (math.pi * scale) ** 2 / max(shape) * (1 - 1e-9), 700.0) - math.log(2 * kernel)
    if log_inverse < 2:
        return math.inf
    error = 1 / (math.exp(log_inverse) - 1)
    return math.log1p(error) - math.log1p(-error)


# The scales.


def residual_marginals(scopes: Sequence[Scope], facts: Facts, *, funds: Funds) -> ResidualMarginals:
    """The release of these marginals that is best for tables of this size: with the least largest variance of a cell
    that is admitted where there are many rows. Where there are few, it leans on the smaller parts and on the larger
    tables, and a cell of a scope whose bound exceeds an even cell may have nearly the variance of plain noise."""
    outer = tuple(scope for scope in scopes if not any(set(scope) < set(other) for other in scopes))
    if not any(outer):
        raise ParameterError("residuals are of tables of one or more columns")
    sizes = sizes_of(outer, facts.domain)
    require_numbers(sum(math.prod(sizes[name] for name in part) for part in parts_of_scopes(outer)))
    known = public_rows(facts) is not None
    least = max(FINE, 2 * math.isqrt(max(sizes.values())) + 2)

    def calibrated(ratios: Sequence[Fraction]) -> ResidualMarginals:
        def make(noise: Fraction) -> ResidualMarginals:
            needed = max(1, math.ceil(least / noise))
            if needed > MOST_FINE:
                raise OutOfRange("less noise than residuals are drawn with", too_much=False)
            return ResidualMarginals(outer, [noise * ratio for ratio in ratios], 1 << (needed - 1).bit_length())

        return calibrate(make, funds=funds, facts=facts)

    plan = ResidualPlan.of(outer, sizes, rows_known=known, asked=scopes)
    even = calibrated(as_ratios(np.sqrt(plan.even), plan.drawn))
    if facts.size is None:
        return even
    plain, given = even.plain_scale(scopes, facts), np.array([float(scale) for scale in even.scales]) ** 2
    vague = plan.counted * _VAGUE * plain > facts.size
    most = np.where(vague, _NEAR * plain**2, (1 + 1e-9) * (plan.adds @ np.where(plan.drawn, given, 0.0)).max())
    leaning = plan.leaning(given, facts.size, most)
    if leaning is None:
        return even
    found = calibrated(as_ratios(np.sqrt(leaning), plan.drawn))
    worst = max((found.variance(scope, facts.domain, rows_known=known) for scope in scopes if scope), default=0.0)
    return found if worst <= plain**2 else even


def residual_scales(
    scopes: Sequence[Scope], sizes: Mapping[str, int], *, rows_known: bool, asked: Sequence[Scope] | None = None
) -> list[Fraction]:
    """For every part of the scopes its scale, the least 1, with which the largest variance of a cell of those asked for
    is least at equal cost, but for rounding."""
    plan = ResidualPlan.of(scopes, sizes, rows_known=rows_known, asked=asked or scopes)
    return as_ratios(np.sqrt(plan.even), plan.drawn)


def as_ratios(scales: Floats, drawn: Any) -> list[Fraction]:
    """Scales over the least of them, as multiples of 1 / _STEPS."""
    ratios = np.where(drawn, scales / scales[drawn].min(initial=math.inf), 1.0)
    return [Fraction(max(_STEPS, round(float(ratio) * _STEPS)), _STEPS) for ratio in ratios]


@dataclass(frozen=True, slots=True, eq=False)
class ResidualPlan:
    """How the noise of the parts is shared out: vectors over the parts, in the order of `parts_of_scopes`.

    cells    of the table of every part                 prices   p_A: part A costs p_A / scale_A^2
    adds     v_AB: part A adds v_AB scale_A^2 to the variance of a cell of the scope B that is asked for, a line each
    counted  the cells of the scopes asked for          drawn    the parts that noise is drawn for
    even     scale_A^2 with which the largest variance is least, up to a factor

    For fixed weights w of the scopes the sum of w times the variances is least if scale_A^2 is proportional to
    sqrt(p_A / v_A), v_A the weighted sum (Cauchy and Schwarz). A weight that grows with its scope's variance finds the
    least largest one, `even`.
    """

    lengths: npt.NDArray[np.int64]
    cells: Floats
    prices: Floats
    adds: Floats
    counted: Floats
    drawn: npt.NDArray[np.bool_]
    even: Floats

    @staticmethod
    def of(
        scopes: Sequence[Scope], sizes: Mapping[str, int], *, rows_known: bool, asked: Sequence[Scope]
    ) -> ResidualPlan:
        parts, wanted = parts_of_scopes(scopes), [scope for scope in asked if scope]
        prices = np.array([math.prod(1 - 1 / sizes[name] for name in part) for part in parts])
        prices[0] = 0.0 if rows_known else 1.0
        others = [
            [math.prod(sizes[name] for name in scope if name not in part) if set(part) <= set(scope) else math.inf
             for part in parts]
            for scope in wanted
        ]  # fmt: skip
        adds = prices / np.array(others) ** 2
        drawn, weights = prices > 0, np.full(len(wanted), 1 / len(wanted))
        variances = np.ones(len(parts))
        for _ in range(_ROUNDS):
            added = (weights @ adds)[drawn]
            variances[drawn] = np.sqrt(prices[drawn] / np.maximum(added, 1e-300))
            variances[drawn] *= (prices[drawn] / variances[drawn]).sum()
            found = adds @ variances
            weights = weights * found / found.max()
            weights /= weights.sum()
        cells = np.array([math.prod(sizes[name] for name in part) for part in parts], dtype=np.float64)
        lengths = np.array([len(part) for part in parts])
        counted = np.array([math.prod(sizes[name] for name in scope) for scope in wanted], dtype=np.float64)
        return ResidualPlan(lengths, cells, prices, adds, counted, drawn, variances)

    def leaning(self, variances: Floats, rows: int, most: Floats) -> Floats | None:
        """scale_A^2 for a table of so many rows, at the price of these, so that no cell has a variance above `most`, a
        number for each scope; None if these are as good.

        A residual over two or more columns is believed to have the variance t^2 = (_EFFECT^(columns - 1) rows /
        cells)^2 in every cell, so that after shrinkage 1 / (x + 1 / t^2) is left of the variance 1 / x of its noise.
        The sum of that over all cells asked for is convex in the precisions x, and so are the variances. Where it is
        least, x^2 is proportional to ((x / (x + 1 / t^2))^2 sum_B v_AB cells_B + sum_B m_B v_AB) / p_A, with a
        multiplier m_B for every scope that `most` holds. What the search finds has the same price; the answer is as
        far along the segment from the precisions given to it as `most` admits.
        """
        drawn, given = self.drawn, np.where(self.drawn, 1 / variances, 0.0)
        doubt = np.where(self.lengths > 1, (_EFFECT ** (1.0 - self.lengths) * self.cells / max(rows, 1)) ** 2, 0.0)
        price, added = float(self.prices @ given), self.counted / self.counted.sum() @ self.adds

        def spread(precisions: Floats) -> Floats:
            return np.asarray(self.adds @ np.where(drawn, 1 / np.where(drawn, precisions, 1.0), 0.0))

        def left(precisions: Floats) -> float:
            return float((added[drawn] / (precisions + doubt)[drawn]).sum())

        if (spread(given) > most).any():
            return None
        wanted, held = given.copy(), np.full(len(self.counted), _LEAST_HELD)
        for place in range(_ROUNDS):
            pace = 0.5 if 2 * place < _ROUNDS else 0.1
            held = np.maximum(held * np.clip(spread(wanted) / most, 0.5, 2.0) ** pace, _LEAST_HELD)
            root = np.sqrt(
                (added * (wanted / (wanted + doubt + ~drawn)) ** 2 + held @ self.adds) / (self.prices + ~drawn)
            )
            root[~drawn] = 0.0
            wanted = np.sqrt(wanted * root)  # half of the way, in logarithms
            wanted *= price / float(self.prices @ wanted)

        def blended(share: float) -> Floats:
            return (1 - share) * given + share * wanted

        back = _bisected(lambda back: bool((spread(blended(1 - back)) <= most).all()), 0.0, 1.0)
        precisions = blended(1 - back)
        if left(precisions) >= left(given):
            return None
        return np.where(drawn, 1 / np.where(drawn, precisions, 1.0), variances)


def _bisected(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The least number from which on it holds; it holds at `high`."""
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
