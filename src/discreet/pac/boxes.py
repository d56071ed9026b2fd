"""Learning a box from slices of the positive rows, one for each face (lecture 12), and Reorder-Slice-Compute.

    SlicedBox(...)       the lecture's learner: one interior point for each face, of overlapping slices
    ReorderSlice(...)    disjoint slices of random size: its price does not grow with the number of columns
    methods(...)         all of them for one budget, with the number of rows that each needs

A box is the rule low <= value <= high in every column (`rules.BoxRule`); a face of it is a column and a side. The slice
of a face are the positive rows that are most extreme there; an interior point of the slice is a good place for the
face: inside the positives, with no more of them outside than the slice holds. Two ways to take the 2 d slices, with two
prices:

    overlapping    every slice from all positives, of one fixed size: 2 d compositions
    disjoint       every slice from what the earlier ones left, of a hidden random size: a price that does not grow with
                   d

Both begin with a noisy count: with too few positives the answer is the empty box. Both look at positive rows only. If a
box of the grid labels every row right, then a face between values of positive rows keeps every negative outside that
the target's face does, so what is learned errs only on positives that were cut off. Proofs: docs/proofs/boxes.md.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet.core import FAILING, Exact, Funds, OutOfRange, ParameterError, exact
from discreet.data import Codes, Dataset, Domain, Facts, Needs, Slice
from discreet.mechanisms import GaussianNoise, Guarantee, Neighbours, Rng, calibrate, checked_scale, wrong_rows
from discreet.method import Maker, Method, Methods
from discreet.pac.interior import BinarySearch, MinRank, PrefixSplit, Routine, checked_routine, prefix_split
from discreet.pac.rules import Labels, distinct, ordered
from discreet.query import Count, Equals

Box = tuple[Codes, Codes]
"""The lows and the highs of a box, in codes."""

ASSUMING = "if a box of the declared grid labels every row right"

FEW = Fraction(1, 8)
"""The share of beta for the noisy count of positives."""

_counted = functools.partial(exact.whole, 0)
_DIGITS = 100
_FINE = 10**40  # failures are rounded up to a multiple of one over this
_LEAST, _MOST = Fraction(1, 2**60), Fraction(64)


@dataclass(frozen=True, slots=True)
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

    def __post_init__(self) -> None:
        exact.freeze(self, routine=checked_routine(self.routine), columns=named_columns(self.columns, self.labels))
        exact.convert(self, count=exact.whole, few_scale=exact.positive, margin=_counted)

    def guarantee(self, facts: Facts) -> Guarantee:
        sizes = grid_sizes(facts.domain, self.columns)
        return few_price(self.labels, self.few_scale, facts) + on_slices(self.routine, sizes, facts.neighbours)

    def needs(self, facts: Facts) -> Needs:
        return Needs((Count(Equals(self.labels.column, self.labels.positive)),), slices=True, passes=2)

    def run(self, data: Dataset, rng: Rng) -> Box:
        if count_positives(data, self.labels) + rng.laplace(self.few_scale) < self.count + self.margin:
            return empty_box(len(self.columns))
        wanted = faces(self.columns, [self.count] * (2 * len(self.columns)))
        slices = data.exact_slices(wanted, where=self.labels, disjoint=False)
        sizes = grid_sizes(data.facts.domain, self.columns)
        filled = [
            padded(rising(values, face), face, sizes[place // 2])
            for place, (values, face) in enumerate(zip(slices, wanted, strict=True))
        ]
        return placed(self.routine, filled, sizes, rng)


@dataclass(frozen=True, slots=True)
class ReorderSlice:
    """Learn a box from 2 d disjoint slices of the positive rows: Reorder-Slice-Compute.

    The noisy number of positives is below `threshold`: the empty box. Otherwise, for each column and side in turn, the
    `count` + G most extreme rows that are left are taken away, G fresh with P[G >= g] = exp(-g/spread), and the routine
    releases a point of them. Sizes stay hidden.

    Theorem.   With e = 1/spread, a = slack, t = rounds, a routine that is (e_a, d_a)-DP when a value is added and
               (e_r, d_r)-DP when one is replaced, and k = kappa(e, a) < 1 (`kappa`): let E_1 = a + e_a,
               E_t = a + e_r + E_(t-1); D_1 = (1-k) d_a, D_t = (1-k) d_a + k (d_r + D_(t-1)). For one row per person the
               2 d points are (E_t, k^t + D_t)-DP under add-remove and (E_t + e + e_a, k^t + D_t + e^(E_t) d_a)-DP under
               replace-one, whatever d is; for several rows by group privacy (`reordered`). The count adds
               (rows/few_scale)-DP.
    Accuracy.  `boxes.methods`. Every positive that was not taken is in the box; every point between values of positive
               rows keeps negatives of a box outside.
    Edges.     A slice may be shorter than its size, or empty: the routine takes any list. Rows with a missing value in
               a column are in none of its slices. Rows are ordered by (value, whole row), never by arrival.
    Reference. [CLNSS23]; constants and proof: docs/proofs/boxes.md.
    """

    NAME: ClassVar[str] = "reorder-slice-box/1"
    columns: tuple[str, ...]
    labels: Labels
    routine: Routine
    count: int
    spread: Fraction
    slack: Fraction
    rounds: int
    few_scale: Fraction
    threshold: int

    def __post_init__(self) -> None:
        exact.freeze(self, routine=checked_routine(self.routine), columns=named_columns(self.columns, self.labels))
        exact.convert(self, count=_counted, rounds=exact.whole, spread=exact.positive, slack=exact.positive)
        exact.convert(self, few_scale=exact.positive, threshold=_counted)

    def guarantee(self, facts: Facts) -> Guarantee:
        checked_scale(self.spread)
        sizes = grid_sizes(facts.domain, self.columns)
        return few_price(self.labels, self.few_scale, facts) + self.reordered(sizes, facts.neighbours)

    def reordered(self, sizes: Sequence[int], neighbours: Neighbours) -> Guarantee:
        """The price of the points alone, when the columns' grids have these sizes."""

        def worst(kind: str) -> EpsilonDelta:
            prices = [self.routine.guarantee(Neighbours(kind), size) for size in sorted(set(sizes))]
            pure = [price.pure for price in prices if price.pure is not None]
            if len(pure) < len(prices):
                raise ParameterError("Reorder-Slice-Compute needs a routine with a pure guarantee outside its failures")
            return EpsilonDelta(max(pure), max(price.failure for price in prices))

        price = reordered(
            worst("add-remove"),
            worst("replace-one"),
            gap=1 / self.spread,
            slack=self.slack,
            rounds=self.rounds,
            neighbours=neighbours,
        )
        return Guarantee.of_approximate(price.epsilon, delta=price.delta, neighbours=neighbours)

    def needs(self, facts: Facts) -> Needs:
        return Needs((Count(Equals(self.labels.column, self.labels.positive)),), slices=True, passes=2)

    def run(self, data: Dataset, rng: Rng) -> Box:
        if count_positives(data, self.labels) + rng.laplace(self.few_scale) < self.threshold:
            return empty_box(len(self.columns))
        extra = rng.geometric(self.spread, 2 * len(self.columns)).tolist()
        wanted = faces(self.columns, [self.count + more for more in extra])
        slices = data.exact_slices(wanted, where=self.labels, disjoint=True)
        sizes = grid_sizes(data.facts.domain, self.columns)
        return placed(
            self.routine, [rising(values, face) for values, face in zip(slices, wanted, strict=True)], sizes, rng
        )


# What learners of boxes share.


def named_columns(columns: Sequence[str], labels: Labels) -> tuple[str, ...]:
    """The names of a box's columns: distinct, at least one, and not the labels' own."""
    if not isinstance(labels, Labels):
        raise ParameterError(f"labels must be Labels(column, positive), found {type(labels).__name__}")
    names = distinct(columns)
    if labels.column in names:
        raise ParameterError(f"columns must not contain the target {labels.column!r}")
    return names


def grid_sizes(domain: Domain, columns: Sequence[str]) -> list[int]:
    """The number of values of each column of a box."""
    return [ordered(domain, name).points for name in columns]


def few_price(labels: Labels, scale: Fraction, facts: Facts) -> Guarantee:
    """What the noisy count of positives costs."""
    labels.check(facts.domain)
    moved = Count(Equals(labels.column, labels.positive)).sensitivity(facts)
    return Guarantee.of_laplace(moved.l1, scale=checked_scale(scale), neighbours=facts.neighbours)


def count_positives(data: Dataset, labels: Labels) -> int:
    """The exact number of positive rows. Not private: for the inside of `run`."""
    return int(data.exact_sum(Count(Equals(labels.column, labels.positive))))


def empty_box(dimension: int) -> Box:
    """The box that holds nothing, as it is released."""
    return np.ones(dimension, dtype=np.int64), np.zeros(dimension, dtype=np.int64)


def faces(columns: Sequence[str], counts: Sequence[int]) -> list[Slice]:
    """One slice for each face, in a fixed order: low and high side of each column."""
    sides = [(name, side) for name in columns for side in ("low", "high")]
    return [Slice(name, side, count) for (name, side), count in zip(sides, counts, strict=True)]


def rising(values: Codes, face: Slice) -> Codes:
    """A slice, most extreme first, in increasing order."""
    return values if face.side == "low" else values[::-1]


def padded(values: Codes, face: Slice, size: int) -> Codes:
    """A rising slice of exactly the wanted size: what is missing are values at the far end of its order."""
    filler = np.full(face.count - len(values), size - 1 if face.side == "low" else 0, dtype=np.int64)
    return np.concatenate([values, filler] if face.side == "low" else [filler, values])


def placed(routine: Routine, slices: Sequence[Codes], sizes: Sequence[int], rng: Rng) -> Box:
    """One point of each slice, as the lows and highs of a box."""
    ends = [routine.point(values, sizes[place // 2], rng) for place, values in enumerate(slices)]
    return np.array(ends[::2], dtype=np.int64), np.array(ends[1::2], dtype=np.int64)


def on_slices(routine: Routine, sizes: Sequence[int], neighbours: Neighbours) -> Guarantee:
    """The price of one point of a slice of fixed size for each face.

    Theorem.   When one person's rows, at most k, are added, removed or replaced, a slice of fixed size (padded) changes
               by at most k replacements, under either relation. So the routine is priced for k replacements.
    Reference. docs/proofs/boxes.md.
    """
    inside = Neighbours("replace-one", neighbours.rows)
    total = Guarantee.nothing(neighbours)
    for size, columns in Counter(sizes).items():
        total += replace(routine.guarantee(inside, size), neighbours=neighbours) * (2 * columns)
    return total


# The price of Reorder-Slice-Compute.


@dataclass(frozen=True, slots=True)
class EpsilonDelta:
    """(epsilon, delta)-DP."""

    epsilon: Fraction
    delta: Fraction


def reordered(
    added: EpsilonDelta, replaced: EpsilonDelta, *, gap: Fraction, slack: Fraction, rounds: int, neighbours: Neighbours
) -> EpsilonDelta:
    """The price of any number of reordered slices; the theorem of `ReorderSlice`, for a person of k rows.

    Theorem.   Adding one row is (E, d) one way, d = kappa^t + D_t, and (E', d_a) back, E' = gap + e_a <= E. k rows one
               after the other: (k E, d S_k(E)) and (k E', d_a S_k(E')), S_k(x) = 1 + e^x + ... + e^((k-1) x). A
               replacement removes first, then adds: (k (E + E'), d S_k(E) + e^(k E) d_a S_k(E')).
    """
    left = kappa(gap, slack)
    swap = max(replaced.delta, added.delta)  # then D grows with kappa, and an upper bound of kappa gives one of D
    epsilon, delta = slack + added.epsilon, (1 - left) * added.delta
    for _ in range(rounds - 1):
        epsilon = slack + max(added.epsilon, replaced.epsilon + epsilon)
        delta = (1 - left) * added.delta + left * (swap + delta)
    forth = EpsilonDelta(epsilon, left**rounds + delta)
    back, rows = EpsilonDelta(gap + added.epsilon, added.delta), neighbours.rows
    if neighbours.replace_one:
        epsilon = rows * (forth.epsilon + back.epsilon)
        delta = forth.delta * _group(rows, forth.epsilon)
        if back.delta:
            delta += _exp_up(rows * forth.epsilon) * back.delta * _group(rows, back.epsilon)
    else:
        epsilon = rows * max(forth.epsilon, back.epsilon)
        delta = max(forth.delta * _group(rows, forth.epsilon), back.delta * _group(rows, back.epsilon))
    if delta >= 1:
        raise OutOfRange("Reorder-Slice-Compute promises nothing with so little noise", too_much=False)
    return EpsilonDelta(epsilon, Fraction(math.ceil(delta * _FINE), _FINE))


@functools.lru_cache(maxsize=2**14)
def kappa(gap: Fraction, slack: Fraction) -> Fraction:
    """How much of a slice's law cannot be matched by the law without the row; an upper bound, to within 1e-30.

    Theorem.   q = e^-gap, U_0 = 0, U_(i+1) = min(1, e^gap (e^slack - 1 + U_i)), kappa = sum (1-q) q^i (1 - U_i). As
               long as U_i < 1, q^i U_i = (e^slack - 1) (1 - q^i) / (1 - q); let J be the first i with U_i = 1, the
               least with e^(i gap) >= 1 + (1 - q) / (e^slack - 1). Then
               kappa = (1 - q^J) - (e^slack - 1) (J - (1 - q^J) / (1 - q)): a finite sum, nothing is cut off.
    Rounding.  Decimal's exp and ln are right to the last of 100 digits. For gap and slack in 2^-60 .. 64 the formula
               loses fewer than 60 of them; a J that is wrong by one changes the sum by a term below 1e-39. The result
               is raised by 1e-30.
    """
    if not (_LEAST <= gap <= _MOST and _LEAST <= slack <= _MOST):
        few = max(gap, slack) > _MOST
        raise OutOfRange("1/spread and slack must lie between 2**-60 and 64", too_much=not few)
    with localcontext(Context(prec=_DIGITS)):
        step, rise = _decimal(gap), _decimal(slack).exp() - 1
        q = (-step).exp()
        last = math.ceil((1 + (1 - q) / rise).ln() / step)
        taken = 1 - (-step * last).exp()
        lost = Fraction(taken - rise * (last - taken / (1 - q)))
    return min(Fraction(1), Fraction(math.ceil(lost * 10**35), 10**35) + Fraction(1, 10**30))


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _group(rows: int, epsilon: Fraction) -> Fraction:
    """S_k: 1 + e^epsilon + ... + e^((k-1) epsilon), rounded up."""
    return sum((_exp_up(place * epsilon) for place in range(rows)), Fraction(0))


def _exp_up(exponent: Fraction) -> Fraction:
    """e^exponent, rounded up."""
    if exponent == 0:
        return Fraction(1)
    if exponent > 10_000:
        raise OutOfRange("Reorder-Slice-Compute promises nothing with so little noise", too_much=False)
    with localcontext(Context(prec=50)):
        return Fraction(_decimal(exponent).exp()) * (1 + Fraction(1, 10**40))


# Which methods there are, and how many rows each needs.


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
    names, sure = distinct(columns), exact.probability(beta=beta)
    problem = BoxProblem(names, labels, facts, sure, funds, max(grid_sizes(facts.domain, names)))
    makers: dict[str, Maker] = {name: functools.partial(problem.plain, name) for name in _SLICED}
    return Methods({**makers, "prefix": problem.prefix, "reorder-slice": problem.reorder_slice})


@dataclass(frozen=True, slots=True)
class BoxProblem:
    """A box in these columns, the largest of which has `largest` values, with probability 1 - beta."""

    columns: tuple[str, ...]
    labels: Labels
    facts: Facts
    beta: Fraction
    funds: Funds
    largest: int

    @property
    def faces(self) -> int:
        return 2 * len(self.columns)

    @property
    def few(self) -> float:
        """The failure probability of the noisy count."""
        return float(self.beta * FEW)

    def one_point(self, tail: Fraction = Fraction(0)) -> float:
        """The failure probability of one point, when this share of beta is kept for something else."""
        return float(self.beta * (1 - FEW - tail) / self.faces)

    def failure(self, share: Fraction) -> Fraction:
        if (failure := self.funds.keeping(share).failure) == 0:
            raise ParameterError("this needs delta > 0; without one take 'basic'")
        return failure

    def method(self, name: str, theorem: str, mechanism: SlicedBox | ReorderSlice, mistakes: int) -> Method:
        needed = lambda alpha: math.ceil(mistakes / alpha)  # noqa: E731
        return Method(name, wrong_rows(theorem, float(self.beta), ASSUMING), needed, lambda alpha: mechanism)

    def plain(self, name: str) -> Method:
        """A method of _SLICED: basic composition for the first, Renyi currency, which needs a delta, for the others."""
        if name != "basic":
            self.failure(FAILING)
        return self.sliced(name, *_SLICED[name], self.funds.only_pure() if name == "basic" else self.funds)

    def prefix(self) -> Method:
        share = Fraction(1, 2)
        failure, funds = self.failure(share) / self.faces, self.funds.keeping(share)
        inside, beta = Neighbours("replace-one", self.facts.neighbours.rows), self.one_point()
        usual = PrefixSplit(inside, failure, beta)
        first = calibrate(lambda noise: self.box(usual.routine(noise)), funds=funds, facts=self.facts, precision=8)
        epsilon = first.routine.guarantee(inside, self.largest).pure
        assert epsilon is not None
        split = prefix_split(self.largest, neighbours=inside, epsilon=epsilon, failure=failure, beta=beta)
        return self.sliced("prefix", "prefix searches of slices, zCDP", split.routine, funds)

    def reorder_slice(self) -> Method:
        tuning = SliceTuning.best(self, self.failure(FAILING))
        mechanism = calibrate(tuning.mechanism, funds=self.funds.keeping(FAILING), facts=self.facts)
        mistakes = mechanism.threshold + tuning.margin(mechanism.few_scale) - 2
        return self.method("reorder-slice", "Reorder-Slice-Compute", mechanism, mistakes)

    def sliced(self, name: str, theorem: str, make: Callable[[Fraction], Routine], funds: Funds) -> Method:
        """A SlicedBox with the least noise that is admitted."""
        mechanism = calibrate(lambda noise: self.box(make(noise)), funds=funds, facts=self.facts)
        return self.method(name, theorem, mechanism, self.faces * mechanism.count)

    def box(self, routine: Routine) -> SlicedBox:
        """The learner whose points are interior with probability 1 - `one_point()`.

        The noise of its count may be as large as the margin, (d - 1/2) count, allows: that costs next to nothing.
        """
        count = routine.needed(self.largest, self.one_point())
        margin = (self.faces - 1) * count // 2
        few_scale = (margin + 1) / Fraction(-math.log(self.few) * (1 + 1e-12))  # it reaches so far with probability few
        return SlicedBox(self.columns, self.labels, routine, count, few_scale, margin)


_SLICED: dict[str, tuple[str, Callable[[Fraction], Routine]]] = {
    "basic": ("interior points of slices, epsilons added", lambda noise: MinRank(1 / noise)),
    "zcdp": ("interior points of slices, zCDP", lambda noise: MinRank(1 / noise)),
    "search": ("noisy binary searches of slices, zCDP", lambda noise: BinarySearch(GaussianNoise(noise))),
}
"""The methods whose noise is one number: their theorem, and the routine for it."""

_RATIOS = tuple(Fraction(1, parts) for parts in (2, 3, 4, 6, 8, 11, 16, 22, 32, 45, 64, 90, 128, 256))


@dataclass(frozen=True, slots=True)
class SliceTuning:
    """Public constants of a ReorderSlice; e_a is the routine's epsilon for an added value.

    ratio   1/spread divided by e_a           rounds  t of the theorem
    counted the price of the noisy count, as a part of that of the slices
    tail    the share of beta with which the random sizes may exceed their allowance
    """

    problem: BoxProblem
    failure: Fraction
    ratio: Fraction
    rounds: int
    counted: Fraction
    tail: Fraction

    @staticmethod
    def best(problem: BoxProblem, failure: Fraction) -> SliceTuning:
        """The constants that need the fewest rows, by formulas for small epsilon (the price itself uses none of them).

        With c the slices' epsilon over e_a, w the size of all slices and m that of the noisy count's two margins, both
        times their epsilon, the mistakes are (w c / (1 - x) + m / x) / epsilon if the count gets the part x. The best
        x is sqrt(m) / (sqrt(w c) + sqrt(m)), and then they are (sqrt(w c) + sqrt(m))^2 / epsilon.
        """
        rows, replace_one = problem.facts.neighbours.rows, problem.facts.neighbours.replace_one
        margins = math.sqrt(-2 * rows * math.log(problem.few))
        tunings: list[tuple[float, SliceTuning]] = []
        for tail in (Fraction(1, 2), Fraction(1, 4), Fraction(1, 8)):
            fixed = 2 * problem.faces * (math.log(problem.largest) - math.log(problem.one_point(tail)))
            quantile = _gamma_quantile(problem.faces, problem.beta * tail)
            for rounds in range(1, 33):
                wide = _limit_slack(float(failure / rows) ** (1 / rounds))
                for ratio in _RATIOS:
                    cost = rounds * wide * ratio + 2 * rounds - 1 + (ratio + 1 if replace_one else 0)
                    size = math.sqrt((fixed + quantile / ratio) * cost * rows)
                    counted = Fraction(math.ceil(1000 * margins / size), 1000)
                    tuning = SliceTuning(problem, failure, ratio, rounds, counted, tail)
                    tunings.append(((size + margins) ** 2, tuning))
        return min(tunings, key=lambda pair: pair[0])[1]

    def margin(self, few_scale: Fraction) -> int:
        """Noise of this scale goes further with probability at most `few`."""
        return math.ceil(few_scale * Fraction(-math.log(self.problem.few)))

    def mechanism(self, noise: Fraction) -> ReorderSlice:
        """The learner whose routine costs 1/noise for an added value, with the least slack that fits the failure.

        The sum of the random sizes is below a Gamma variable, and so above `extra` with probability tail * beta.
        """
        problem, routine, spread = self.problem, MinRank(1 / noise), noise / self.ratio
        slack, epsilon = self._slack(noise)
        few_scale = problem.facts.neighbours.rows / (self.counted * epsilon)
        count = routine.needed(problem.largest, problem.one_point(self.tail))
        quantile = _gamma_quantile(problem.faces, problem.beta * self.tail)
        extra = math.ceil(spread * Fraction(quantile * (1 + 1e-9)))
        return ReorderSlice(
            problem.columns,
            problem.labels,
            routine,
            count=count,
            spread=spread,
            slack=slack,
            rounds=self.rounds,
            few_scale=few_scale,
            threshold=problem.faces * count + extra + self.margin(few_scale),
        )

    def _slack(self, noise: Fraction) -> tuple[Fraction, Fraction]:
        """The least slack, in 64ths of 1/spread, for which the failure is small enough; and the slices' epsilon."""
        gap, neighbours = self.ratio / noise, self.problem.facts.neighbours
        added, replaced = EpsilonDelta(1 / noise, Fraction(0)), EpsilonDelta(2 / noise, Fraction(0))

        def price(parts: int) -> EpsilonDelta:
            slack = gap * parts / 64
            return reordered(added, replaced, gap=gap, slack=slack, rounds=self.rounds, neighbours=neighbours)

        def fits(parts: int) -> bool:
            try:
                return price(parts).delta <= self.failure
            except OutOfRange:
                return False

        parts = exact.least(fits, *(exact.bracket(fits, 0, 64, limit=2**20) or (2**20 - 1, 2**20)))
        return gap * parts / 64, price(parts).epsilon


def _gamma_quantile(shape: int, tail: Fraction) -> float:
    """A Gamma variable of this shape is larger with this probability."""
    from scipy.special import gammainccinv

    return float(gammainccinv(shape, float(tail)))


def _limit_slack(target: float) -> float:
    """The s with 1 - s ln(1 + 1/s) = target: what kappa(e, s e) tends to for small e."""

    def below(log_slack: float) -> bool:
        slack = math.exp(log_slack)
        return 1 - slack * math.log1p(1 / slack) <= target

    return math.exp(exact.least(below, math.log(1e-9), math.log(1e9)))


def population_size(dimension: int, alpha: Exact, beta: Exact) -> int:
    """The number of independent rows for which every box with error at most alpha/2 on them has true error at most
    alpha.

    Theorem.   Boxes in d dimensions have VC dimension 2 d. For n independent rows, with probability 1 - beta, no box
               has true error above alpha and error at most alpha/2 on the rows, if 4 (e n / d)^(2 d) exp(-alpha n / 16)
               <= beta. So a learner that promises alpha/2 with probability 1 - beta for that many rows learns, in the
               usual sense, with (alpha, 2 beta).
    Reference. [AST93] relative deviations; [BEHW89] for the VC dimension.
    """
    d, error = exact.whole(dimension=dimension), float(exact.probability(alpha=alpha))
    wanted = math.log(4) - math.log(exact.probability(beta=beta))

    def fits(n: int) -> bool:  # up to 32 d / alpha the left side grows faster and does not fit; then the right side
        return wanted + 2 * d * (1 + math.log(n / d)) <= error * n / 16

    return exact.least(fits, *(exact.bracket(fits, d, 2 * d, limit=10**400) or (d, 2 * d)))
