"""Learning a box: positive rows are those with low <= value <= high in every column (lecture 12).

    BoxRule(columns, low, high)      the hypothesis; prints as 0.2 <= age <= 0.7 and income >= 10
    SlicedBox(...)                   the lecture's learner: one interior point for each face, of overlapping slices
    slices.ReorderSlice(...)         disjoint slices of random size: its price does not grow with the number of columns
    methods(...)                     all of them for one budget, with the number of rows that each needs

All look at positive rows only. If a box of the grid labels every row right, then a face between values of positive rows
keeps every negative outside that the target's face does, so what is learned errs only on positives that were cut off.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet import exact
from discreet.data import AnyNumber, Batch, Dataset, Domain, Facts, Mask, Whole, spell
from discreet.errors import OutOfRange, ParameterError
from discreet.exact import Exact
from discreet.funds import FAILING, Funds
from discreet.guarantee import Guarantee, Neighbours
from discreet.mechanisms import GaussianNoise, calibrate
from discreet.method import Method, Methods, wrong_rows
from discreet.pac.columns import Ordered, distinct, ordered, points
from discreet.pac.interior.rank import BinarySearch, MinRank, Routine
from discreet.pac.interior.splits import PrefixSplit, prefix_split
from discreet.pac.labels import Labels
from discreet.pac.reorder_slice_compute import (
    ASSUMING,
    Block,
    Box,
    ReorderSlice,
    checked,
    empty,
    faces,
    few_price,
    grid_sizes,
    on_slices,
    padded,
    placed,
    positives,
    reordered,
    rising,
)
from discreet.rng import Rng


@dataclass(frozen=True, slots=True, init=False)
class BoxRule:
    """The rule that says "positive" where every column's code is in low .. high; empty if some low is above its high.

    Edges.     A missing value lies in no interval.
    """

    NAME: ClassVar[str] = "box-rule/1"
    columns: tuple[str, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]

    def __init__(self, columns: Sequence[str], low: Sequence[int], high: Sequence[int]) -> None:
        names = distinct(columns)
        lows, highs = (tuple(exact.whole(minimum=0, code=code) for code in codes) for codes in (low, high))
        if not len(names) == len(lows) == len(highs):
            raise ParameterError(
                f"a box of {len(names)} columns has as many lows and highs, found {low!r} and {high!r}"
            )
        exact.freeze(self, columns=names, low=lows, high=highs)

    @classmethod
    def empty(cls, columns: Sequence[str]) -> BoxRule:
        """The box that holds no row."""
        return cls(columns, [1] * len(columns), [0] * len(columns))

    @classmethod
    def full(cls, columns: Sequence[str], domain: Domain) -> BoxRule:
        """The declared bounds: every row without a missing value."""
        return cls(columns, [0] * len(columns), [points(ordered(domain, name)) - 1 for name in columns])

    @property
    def is_empty(self) -> bool:
        return any(low > high for low, high in zip(self.low, self.high, strict=True))

    def check(self, domain: Domain) -> None:
        for name, high in zip(self.columns, self.high, strict=True):
            last = points(ordered(domain, name)) - 1
            if high > last and not self.is_empty:
                raise ParameterError(f"the codes of column {name!r} are 0 .. {last}, found {high}")

    def mask(self, batch: Batch) -> Mask:
        inside: Mask = np.full(batch.rows, not self.is_empty)
        if self.is_empty:
            return inside
        for name, low, high in zip(self.columns, self.low, self.high, strict=True):
            codes = batch.stored(name)
            missing = batch.domain.column(name).missing_code
            inside &= (codes >= low) & (codes <= high)
            if missing is not None:
                inside &= codes != missing
        return inside

    def said(self, domain: Domain, names: Sequence[str] | None = None) -> str:
        """The rule as a sentence; a face at a declared bound is not mentioned. `names` are other names for columns."""
        if self.is_empty:
            return "never"
        called = self.columns if names is None else names
        parts = [
            interval(shown, ordered(domain, name), low, high)
            for shown, name, low, high in zip(called, self.columns, self.low, self.high, strict=True)
        ]
        return " and ".join(part for part in parts if part) or "always"


def interval(name: str, column: Ordered, low: int, high: int) -> str:
    """`low <= name <= high` in the column's own values, a side that always holds left out."""
    last = points(column) - 1
    if low == high:
        return f"{name} = {_value(column, low)}"
    if low > 0 and high < last:
        return f"{_value(column, low)} <= {name} <= {_value(column, high)}"
    if low > 0:
        return f"{name} >= {_value(column, low)}"
    if high < last:
        return f"{name} <= {_value(column, high)}"
    return "" if column.missing_code is None else f"{name} is not missing"


def _value(column: Ordered, code: int) -> str:
    if isinstance(column, AnyNumber):
        return f"{float(column.value(code)):.6g}"
    return str(code) if isinstance(column, Whole) else spell(column.value(code))


@dataclass(frozen=True, slots=True, init=False)
class SlicedBox:
    """Learn a box by one interior point for each face (lecture 12).

    The noisy number of positives is below count + margin: the empty box. Otherwise, for each column and side, the
    routine releases a point of the `count` most extreme positive values, filled up with the far end of the grid.

    Theorem.   The count adds (rows/few_scale)-DP. A slice of fixed size changes by at most as many replacements as a
               person has rows, under either relation, so the price is the count's and 2 d times the routine's for that
               many replacements; it composes by sums (d^2 rows in the end) and in Renyi currency (d^1.5 rows).
    Accuracy.  If a box of the grid labels every row right, margin <= (d - 1/2) count, and a point of `count` values
               fails with probability at most b: at most 2 d count mistakes, none of them on a negative row, with
               probability 1 - 2 d b - exp(-(margin + 1)/few_scale).
    Edges.     Few or no positives: the empty box, mostly. Rows with a missing value in a column are not in its slices.
    Reference. Lecture 12; docs/proofs/boxes.md.
    """

    NAME: ClassVar[str] = "sliced-box/1"
    columns: tuple[str, ...]
    labels: Labels
    routine: Routine
    count: int
    few_scale: Fraction
    margin: int

    def __init__(
        self, columns: Sequence[str], labels: Labels, routine: Routine, count: int, few_scale: Exact, margin: int
    ) -> None:
        exact.freeze(
            self,
            columns=checked(columns, labels, routine),
            labels=labels,
            routine=routine,
            count=exact.whole(count=count),
            few_scale=exact.positive(few_scale=few_scale),
            margin=exact.whole(minimum=0, margin=margin),
        )

    def guarantee(self, facts: Facts) -> Guarantee:
        sizes = grid_sizes(facts.domain, self.columns)
        return few_price(self.labels, self.few_scale, facts) + on_slices(self.routine, sizes, facts.neighbours)

    def run(self, data: Dataset, rng: Rng) -> Box:
        if positives(data, self.labels) + rng.laplace(self.few_scale) < self.count + self.margin:
            return empty(len(self.columns))
        wanted = faces(self.columns, [self.count] * (2 * len(self.columns)))
        slices = data.exact_slices(wanted, where=self.labels, disjoint=False)
        sizes = grid_sizes(data.facts.domain, self.columns)
        filled = [
            padded(rising(values, face), face, sizes[place // 2])
            for place, (values, face) in enumerate(zip(slices, wanted, strict=True))
        ]
        return placed(self.routine, filled, sizes, rng)


# Which methods there are, and how many rows each needs.

FEW = Fraction(1, 8)
"""The share of beta for the noisy count of positives."""

_Make = Callable[[Fraction], Routine]
_Admits = Callable[[Any], bool]


def methods(columns: Sequence[str], labels: Labels, *, facts: Facts, beta: Fraction, funds: Funds) -> Methods:
    """Every method for this problem, with as little noise as may be spent.

    basic          SlicedBox with the exponential mechanism; epsilons add up: pure, works with delta = 0
    zcdp           the same, composed in Renyi currency where that is less
    search         SlicedBox with noisy binary search: less than zcdp from a few columns on
    prefix         SlicedBox with prefixes: for huge grids
    reorder-slice  ReorderSlice with the exponential mechanism: for many columns

    Of beta an eighth is for the noisy count of positives, which is charged like everything else.
    """
    labels.check(facts.domain)
    problem = _Problem(distinct(columns), labels, facts, exact.probability(beta=beta), funds)
    makers = {
        "basic": _basic,
        "zcdp": _concentrated,
        "search": _searched,
        "prefix": _prefixed,
        "reorder-slice": _reordered,
    }
    largest = max(grid_sizes(facts.domain, problem.columns))
    return Methods({name: functools.partial(make, problem, largest) for name, make in makers.items()})


@dataclass(frozen=True, slots=True)
class _Problem:
    columns: tuple[str, ...]
    labels: Labels
    facts: Facts
    beta: Fraction
    funds: Funds

    @property
    def faces(self) -> int:
        return 2 * len(self.columns)

    @property
    def each(self) -> float:
        """What one point of a SlicedBox may fail with."""
        return float(self.beta * (1 - FEW) / self.faces)

    @property
    def few(self) -> float:
        """What the noisy count may err with."""
        return float(self.beta * FEW)

    @property
    def inside(self) -> Neighbours:
        """How a slice of fixed size changes."""
        return Neighbours("replace-one", self.facts.neighbours.rows)

    def failure(self, share: Fraction, instead: str) -> Fraction:
        found = self.funds.keeping(share).failure
        if found == 0:
            raise ParameterError(f"this needs delta > 0; without one take {instead!r}")
        return found

    def method(self, name: str, theorem: str, mechanism: Any, mistakes: int) -> Method:
        return Method(
            name,
            wrong_rows(theorem, float(self.beta), ASSUMING),
            lambda alpha: math.ceil(mistakes / alpha),
            lambda alpha: mechanism,
        )

    def sliced(self, name: str, theorem: str, make: _Make, largest: int, funds: Funds) -> Method:
        """A SlicedBox with the least noise that is admitted."""
        found = calibrate(lambda noise: self.box(make(noise), largest), funds=funds, facts=self.facts)
        return self.method(name, theorem, found, self.faces * found.count)

    def box(self, routine: Routine, largest: int) -> SlicedBox:
        """The learner whose points are interior with probability 1 - each.

        The noise of its count may be as large as the margin, (d - 1/2) count, allows: that costs next to nothing.
        """
        count = routine.needed(largest, self.each)
        margin = (self.faces - 1) * count // 2
        return SlicedBox(self.columns, self.labels, routine, count, _tail_scale(margin + 1, self.few), margin)


def _tail_scale(distance: int, beta: float) -> Fraction:
    """The scale of noise that goes so far with probability at most beta."""
    return distance / Fraction(-math.log(beta) * (1 + 1e-12))


def _basic(problem: _Problem, largest: int) -> Method:
    return problem.sliced(
        "basic",
        "interior points of slices, epsilons added",
        lambda noise: MinRank(1 / noise),
        largest,
        problem.funds.only_pure(),
    )


def _concentrated(problem: _Problem, largest: int) -> Method:
    problem.failure(FAILING, "basic")
    return problem.sliced(
        "zcdp",
        "interior points of slices, zCDP",
        lambda noise: MinRank(1 / noise),
        largest,
        problem.funds,
    )


def _searched(problem: _Problem, largest: int) -> Method:
    problem.failure(FAILING, "basic")
    return problem.sliced(
        "search",
        "noisy binary searches of slices, zCDP",
        lambda noise: BinarySearch(GaussianNoise(noise)),
        largest,
        problem.funds,
    )


def _prefixed(problem: _Problem, largest: int) -> Method:
    share = Fraction(1, 2)
    failure = problem.failure(share, "basic") / problem.faces
    funds = problem.funds.keeping(share)
    theorem = "prefix searches of slices, zCDP"
    usual = PrefixSplit(problem.inside, failure, problem.each)
    first = calibrate(
        lambda noise: problem.box(usual.routine(noise), largest), funds=funds, facts=problem.facts, precision=8
    )
    epsilon = first.routine.guarantee(problem.inside, largest).pure
    assert epsilon is not None
    split = prefix_split(largest, neighbours=problem.inside, epsilon=epsilon, failure=failure, beta=problem.each)
    return problem.sliced("prefix", theorem, split.routine, largest, funds)


# Reorder-Slice-Compute.


def _reordered(problem: _Problem, largest: int) -> Method:
    tuned = _tuned(problem, largest, problem.failure(FAILING, "basic"))
    found = calibrate(tuned.mechanism, funds=problem.funds.keeping(FAILING), facts=problem.facts)
    margin = tuned.margin(found.few_scale)
    return problem.method(
        "reorder-slice",
        "Reorder-Slice-Compute",
        found,
        found.threshold + margin - 2,
    )


_RATIOS = tuple(Fraction(1, parts) for parts in (2, 3, 4, 6, 8, 11, 16, 22, 32, 45, 64, 90, 128, 256))


@dataclass(frozen=True, slots=True)
class _Tuning:
    """Public constants of a ReorderSlice; e_a is the routine's epsilon for an added value.

    ratio   1/spread is so many e_a           rounds  t of the theorem
    counted how much the noisy count costs, as a part of what the slices do
    tail    of beta, what the random sizes may exceed their allowance with
    """

    problem: _Problem
    largest: int
    failure: Fraction
    ratio: Fraction
    rounds: int
    counted: Fraction
    tail: Fraction

    @property
    def each(self) -> float:
        return float(self.problem.beta * (1 - FEW - self.tail) / self.problem.faces)

    def margin(self, few_scale: Fraction) -> int:
        """Noise of this scale goes further with probability at most `few`."""
        return math.ceil(few_scale * Fraction(-math.log(self.problem.few)))

    def extra(self, spread: Fraction) -> int:
        """The sum of the random sizes is larger with probability at most tail * beta: it is below a Gamma variable."""
        from scipy.special import gammainccinv

        quantile = float(gammainccinv(self.problem.faces, float(self.problem.beta * self.tail)))
        return math.ceil(spread * Fraction(quantile * (1 + 1e-9)))

    def mechanism(self, noise: Fraction) -> ReorderSlice:
        """The learner whose routine costs 1/noise for an added value, with the least slack that fits the failure."""
        routine, spread, rows = MinRank(1 / noise), noise / self.ratio, self.problem.facts.neighbours.rows
        slack, epsilon = self._slack(noise)
        few_scale = rows / (self.counted * epsilon)
        count = routine.needed(self.largest, self.each)
        threshold = self.problem.faces * count + self.extra(spread) + self.margin(few_scale)
        return ReorderSlice(
            self.problem.columns,
            self.problem.labels,
            routine,
            count=count,
            spread=spread,
            slack=slack,
            rounds=self.rounds,
            few_scale=few_scale,
            threshold=threshold,
        )

    def _slack(self, noise: Fraction) -> tuple[Fraction, Fraction]:
        """The least slack, in 64ths of 1/spread, for which the failure is small enough; and the slices' epsilon."""
        gap, neighbours = self.ratio / noise, self.problem.facts.neighbours

        def price(parts: int) -> Block:
            added, replaced = Block(1 / noise, Fraction(0)), Block(2 / noise, Fraction(0))
            slack = gap * parts / 64
            return reordered(added, replaced, gap=gap, slack=slack, rounds=self.rounds, neighbours=neighbours)

        def fits(parts: int) -> bool:
            try:
                return price(parts).delta <= self.failure
            except OutOfRange:
                return False

        low, high = 0, 64
        while not fits(high) and high < 2**20:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if fits(middle) else (middle, high)
        return gap * high / 64, price(high).epsilon


def _tuned(problem: _Problem, largest: int, failure: Fraction) -> _Tuning:
    """The constants that need the fewest rows, by the formulas for small epsilon (the price itself uses none of them).

    With c the slices' epsilon over e_a, w the size of all slices and m that of the noisy count's two margins, both
    times their epsilon, the mistakes are (w c / (1 - x) + m / x) / epsilon if the count gets the part x. The best x is
    sqrt(m) / (sqrt(w c) + sqrt(m)), and then they are (sqrt(w c) + sqrt(m))^2 / epsilon.
    """
    from scipy.special import gammainccinv

    rows, replace_one = problem.facts.neighbours.rows, problem.facts.neighbours.replace_one
    margins = math.sqrt(-2 * rows * math.log(problem.few))
    best: tuple[float, _Tuning] | None = None
    for tail in (Fraction(1, 2), Fraction(1, 4), Fraction(1, 8)):
        each = float(problem.beta * (1 - FEW - tail) / problem.faces)
        fixed = 2 * problem.faces * (math.log(largest) - math.log(each))
        quantile = float(gammainccinv(problem.faces, float(problem.beta * tail)))
        for rounds in range(1, 33):
            wide = _limit_slack(float(failure / rows) ** (1 / rounds))
            for ratio in _RATIOS:
                cost = rounds * wide * ratio + 2 * rounds - 1 + (ratio + 1 if replace_one else 0)
                size = math.sqrt((fixed + quantile / ratio) * cost * rows)
                total = (size + margins) ** 2
                if best is None or total < best[0]:
                    counted = Fraction(math.ceil(1000 * margins / size), 1000)
                    best = total, _Tuning(problem, largest, failure, ratio, rounds, counted, tail)
    assert best is not None
    return best[1]


def _limit_slack(target: float) -> float:
    """The s with 1 - s ln(1 + 1/s) = target: what kappa(e, s e) tends to for small e."""
    low, high = 1e-9, 1e9
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if 1 - middle * math.log1p(1 / middle) > target else (low, middle)
    return high


def population_size(dimension: int, alpha: Exact, beta: Exact) -> int:
    """How many independent rows make every box with error at most alpha/2 on them have true error at most alpha.

    Theorem.   Boxes in d dimensions have VC dimension 2 d. For n independent rows, with probability 1 - beta, no box
               has true error above alpha and error at most alpha/2 on the rows, if 4 (e n / d)^(2 d) exp(-alpha n / 16)
               <= beta. So a learner that promises alpha/2 with probability 1 - beta for that many rows learns, in the
               usual sense, with (alpha, 2 beta).
    Reference. [AST93] relative deviations; [BEHW89] for the VC dimension.
    """
    d, error = exact.whole(dimension=dimension), float(exact.probability(alpha=alpha))
    wanted = math.log(4) - math.log(exact.probability(beta=beta))

    def fits(n: int) -> bool:
        return wanted + 2 * d * (1 + math.log(n / d)) <= error * n / 16

    low, high = d, 2 * d  # up to 32 d / alpha the left side grows faster and does not fit; from there on the right side
    while not fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high
