"""The interior point problem (lecture 12): release a point between the smallest and the largest value of a column.

`InteriorPoint(column, routine)` is the mechanism; the routines are `MinRank`, `BinarySearch` (`rank`),
`PrefixSearch` and `PairPrefix` (`prefix`). `methods` lists all of them for a budget, each with the number
of values for which success is promised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from discreet import exact
from discreet.data import Dataset, Facts, Whole
from discreet.errors import ParameterError
from discreet.exact import Exact
from discreet.funds import FAILING, Funds
from discreet.guarantee import Guarantee
from discreet.mechanisms import GaussianNoise, LaplaceNoise, calibrate
from discreet.pac.interior.prefix import PairPrefix, PrefixSearch
from discreet.pac.interior.rank import BinarySearch, MinRank, Routine, Size, TwoTo, code_bits
from discreet.pac.interior.splits import PairSplit, PrefixSplit, pair_split, prefix_split
from discreet.pac.methods import Method, Refused, listed
from discreet.pac.rules import Ordered, ordered, sorted_column
from discreet.rng import Rng

__all__ = [
    "NAMES",
    "USUAL",
    "BinarySearch",
    "InteriorPoint",
    "MinRank",
    "PairPrefix",
    "PrefixSearch",
    "Routine",
    "Size",
    "TwoTo",
    "methods",
    "size_of",
]

USUAL = ("exponential", "binary-search", "prefix")
"""What `auto` chooses among: pair-prefix pays only on domains whose elements nobody can write down."""
NAMES = (*USUAL, "pair-prefix")

_MOST = 2**62
_MOST_COMPARISONS = 2**40


def size_of(column: Ordered) -> Size:
    """How many points a column's domain has; of a Whole without writing the number."""
    return TwoTo(column.bits) if isinstance(column, Whole) else column.points


@dataclass(frozen=True, slots=True)
class InteriorPoint:
    """Release the code of a point of a column's grid, between its smallest and its largest value with high probability.

    Theorem.   That of the routine, a person's k rows being k values. Rows where the column is missing are not in the
               list; that a value disappears instead of being replaced costs no more.
    Accuracy.  That of the routine: `routine.needed(size, beta)` values are enough.
    Edges.     One column must fit in memory: it is gathered and sorted. No values: an ordinary release.
    Reference. Lecture 12; docs/proofs/interior_point.md.
    """

    NAME: ClassVar[str] = "interior-point/1"
    column: str
    routine: Routine

    def __post_init__(self) -> None:
        exact.text(column=self.column)
        if not isinstance(self.routine, Routine):
            raise ParameterError(f"routine must be one such as MinRank, found {self.routine!r}")

    def guarantee(self, facts: Facts) -> Guarantee:
        return self.routine.guarantee(facts.neighbours, size_of(ordered(facts.domain, self.column)))

    def run(self, data: Dataset, rng: Rng) -> int:
        column = ordered(data.facts.domain, self.column)
        return self.routine.point(sorted_column(data, self.column), column.points, rng)


def methods(
    *, facts: Facts, column: str, beta: Exact, funds: Funds, names: Sequence[str] = NAMES
) -> list[Method | Refused]:
    """Ways to an interior point of this column, each with the least noise that is admitted.

    The error alpha has no meaning here: `needed` is the number of values for which the point is interior with
    probability 1 - beta, and one mechanism serves every alpha.
    """
    problem = _Problem(
        facts, column, size_of(ordered(facts.domain, column)), float(exact.probability(beta=beta)), funds
    )
    makers = {
        "exponential": problem.exponential,
        "binary-search": problem.binary_search,
        "prefix": problem.prefix,
        "pair-prefix": problem.pair_prefix,
    }
    for name in names:
        if name not in makers:
            raise ParameterError(f"method must be one of auto, {', '.join(NAMES)}; found {name!r}")
    return listed([(name, makers[name]) for name in names])


@dataclass(frozen=True, slots=True)
class _Problem:
    """One column and one budget."""

    facts: Facts
    column: str
    size: Size
    beta: float
    funds: Funds

    def exponential(self) -> Method:
        routine = self._calibrated(lambda noise: MinRank(1 / noise), Fraction(0))
        return self._method("exponential", "exponential mechanism on ranks", routine)

    def binary_search(self) -> Method:
        if code_bits(self.size) > _MOST_COMPARISONS:
            raise ParameterError("it would make more than 2**40 comparisons")
        kinds = (LaplaceNoise, GaussianNoise) if self.funds.keeping(FAILING).failure > 0 else (LaplaceNoise,)
        found = [self._searching(kind) for kind in kinds]
        best = min((each for each in found if each is not None), key=lambda each: each.needed(self.size, self.beta))
        return self._method("binary-search", "noisy binary search", best)

    def _searching(self, kind: type[LaplaceNoise] | type[GaussianNoise]) -> BinarySearch | None:
        """The search with this noise; None if the book that it is charged in is full."""
        try:
            found: BinarySearch = self._calibrated(lambda noise: BinarySearch(kind(noise)), Fraction(0))
            return found
        except ParameterError:
            if kind is LaplaceNoise:
                raise
            return None

    def prefix(self) -> Method:
        start = PrefixSplit(self.facts.neighbours, self._failure(), self.beta)
        return self._method("prefix", "prefix search", self._split(start.routine, prefix_split))

    def pair_prefix(self) -> Method:
        start = PrefixSplit(self.facts.neighbours, self._failure(), self.beta)  # the same epsilon for every split
        return self._method("pair-prefix", "prefixes of random pairs", self._split(start.routine, pair_split))

    def _split(
        self, start: Callable[[Fraction], PrefixSearch], best: Callable[..., PrefixSplit | PairSplit]
    ) -> PrefixSearch | PairPrefix:
        """The best split for the epsilon that is admitted, then its least noise."""
        admitted = self._calibrated(start, FAILING).guarantee(self.facts.neighbours, self.size).pure
        assert admitted is not None
        split = best(
            self.size,
            neighbours=self.facts.neighbours,
            epsilon=admitted,
            failure=self._failure(),
            beta=self.beta,
        )
        found: PrefixSearch | PairPrefix = self._calibrated(split.routine, FAILING)
        return found

    def _failure(self) -> Fraction:
        failure = self.funds.keeping(FAILING).failure
        if failure == 0:
            raise ParameterError("it may fail, which needs delta > 0; with delta = 0 use exponential")
        return failure

    def _calibrated(self, make: Callable[[Fraction], Any], share: Fraction) -> Any:
        found = calibrate(
            lambda noise: InteriorPoint(self.column, make(noise)), funds=self.funds.keeping(share), facts=self.facts
        )
        return found.routine

    def _method(self, name: str, theorem: str, routine: Routine) -> Method:
        mechanism, needed = InteriorPoint(self.column, routine), routine.needed(self.size, self.beta)
        if needed > _MOST:
            raise ParameterError("it needs more than 2**62 values")
        return Method(name, theorem, "", self.beta, lambda alpha: needed, lambda alpha: mechanism)
