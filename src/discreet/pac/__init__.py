"""Learning rules: lecture 12's learners, each a mechanism with its price and the number of rows that it needs.

    rules              Labels, conditions (Literals, Thresholds), rules (Conjunction, BoxRule, Where, FunctionRule) and
                       Mistakes, the query that counts what a rule labels wrong
    finite             the exponential mechanism over any finite class, and sample sizes
    interior           interior points of a column: MinRank, BinarySearch, PrefixSearch, PairPrefix
    boxes              boxes from interior points of slices of the positive rows; Reorder-Slice-Compute
    greedy_boxes       boxes face by face, from both classes
    all_boxes          the exponential mechanism over all boxes of a coarse grid
    conjunctions       conjunctions by noisy counts of the literals that positive rows falsify, and the exponential
                       mechanism over all conjunctions of at most k literals
    greedy             conjunctions of any conditions, one condition at a time
    hazard_lemma       the price of the self-deleting greedy, which does not grow with its rounds
    mistake_bound      a paid bound on the mistakes of any rule
    rank_bounds        bounds for a column that has none

Every learner's module ends with `methods`, which lists its algorithms for a problem and an amount of funds. Nothing
here imports a sibling such as `discreet.erm`. Other packages import from here, not from the modules.

Here: every method for a problem, also for one that public numbers alone describe. What is taken by default
(`method.choose` has the rule):

                 an error is wanted                              none is wanted
boxes            the smallest proven size, if there are as       all boxes, where the declared grid is small;
                 many rows; otherwise face by face               otherwise face by face
conjunctions     the same; otherwise the practical greedy        all conjunctions, if that is quick; or the greedy
rules            the same                                        the practical greedy
finite lists     the exponential mechanism                       the same

    bounds        bits or nothing   a column of this many bits, or one without bounds
    interior      bits         a point between the smallest and the largest of values of this many bits
    box           d, bits      a box in d columns of 2^bits values
    conjunction   d, k         at most k literals of d booleans
    rule          conditions, k   at most k of these conditions
    finite        hypotheses   the best of these hypotheses
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet.core import Budget, Funds, Neighbours, ParameterError, exact
from discreet.data import AnyNumber, Bits, Category, Column, Domain, Facts, Number, Whole
from discreet.mechanisms import Promise, calibrate
from discreet.method import Maker, Method, Methods, Offer
from discreet.pac import all_boxes, boxes, conjunctions, finite, greedy, greedy_boxes, interior
from discreet.pac.all_boxes import AllBoxes
from discreet.pac.boxes import ReorderSlice, SlicedBox, count_positives, empty_box
from discreet.pac.conjunctions import PROGRESS, AllConjunctions, Estimate, GaussianCounts, LaplaceCounts, NoisyCounts
from discreet.pac.finite import FiniteClass, Predictions
from discreet.pac.finite import methods as finite_methods
from discreet.pac.greedy import Falsified, GreedySelection, SelfDeleting, WeighedGreedy
from discreet.pac.greedy_boxes import EIGHTHS, FIRST, CountedFaces, FaceByFace, GreedyCost
from discreet.pac.interior import BinarySearch, InteriorPoint, MinRank, PairPrefix, PrefixSearch
from discreet.pac.interior import methods as interior_methods
from discreet.pac.mistake_bound import MistakeBound, bound_in_words, bound_of, certify, noisy_mistakes
from discreet.pac.rank_bounds import RankBounds, declaration
from discreet.pac.rules import (
    CUTS,
    BoxRule,
    Conjunction,
    FunctionRule,
    Labels,
    Literals,
    Mistakes,
    Rule,
    Thresholds,
    Where,
    interval_in_words,
    ordered,
)

SMALL_GRID = 64
"""A grid of at most two columns of this many values is one on which all boxes may be gone through by default."""

QUICK = 5.0
"""Seconds that going through all conjunctions may take by default."""

PRACTICAL = "practical"

MOST_BITS = 2**20
"""Values of more bits are nobody's."""

NUMBER_BITS = 61
"""A column of a table has at most this many bits."""

MOST_COLUMNS = 10_000
MOST_CONDITIONS = 1_000
"""Of a rule in a plan, which counts the rules that there are."""


def box_methods(columns: Sequence[str], labels: Labels, facts: Facts, beta: Fraction, funds: Funds) -> Methods:
    """Every method for boxes."""
    makers: dict[str, Maker] = {}
    for module in (greedy_boxes, all_boxes, boxes):  # the quick ones first
        makers |= module.methods(tuple(columns), labels, facts=facts, beta=beta, funds=funds).makers
    small = len(columns) <= 2 and all(ordered(facts.domain, name).points <= SMALL_GRID for name in columns)
    usual = [name for name in makers if small or name != all_boxes.NAME]
    return Methods(makers, usual=lambda: usual, preferred=(all_boxes.NAME, greedy_boxes.NAME))


def conjunction_methods(
    literals: Literals, labels: Labels, k: int, facts: Facts, beta: Fraction, funds: Funds
) -> Methods:
    """Every method for conjunctions of at most k literals."""
    makers = conjunctions.methods(literals, labels, k, facts=facts, beta=beta, funds=funds).makers
    makers |= rule_methods(literals, labels, k, facts, beta, funds).makers
    quick = conjunctions.estimate(literals.variables(facts.domain), k, facts).seconds <= QUICK
    usual = [name for name in makers if quick or name != conjunctions.EXACT]
    return Methods(makers, usual=lambda: usual, preferred=(conjunctions.EXACT, PRACTICAL))


def rule_methods(
    conditions: Literals | Thresholds, labels: Labels, k: int, facts: Facts, beta: Fraction, funds: Funds
) -> Methods:
    """Every method for rules of at most k conditions."""

    def practical() -> Method:
        made = greedy.practical(conditions, labels, k, facts=facts, funds=funds)
        return Method.unproven(PRACTICAL, float(beta), lambda: made)

    proven = greedy.methods(conditions, labels, k, facts=facts, beta=beta, funds=funds)
    return Methods({**proven.makers, PRACTICAL: practical}, preferred=(PRACTICAL,))


# Problems from numbers.

_LABELS = Labels("y", "yes")


def methods(
    kind: str, number: Callable[[str], int], neighbours: Neighbours, size: int | None, beta: Fraction, funds: Funds
) -> Methods:
    """Every method for the problem that these numbers describe; `number` is the whole number of this name."""

    def stated(**columns: Column) -> Facts:
        return Facts(Domain(**columns, y=Category("no", "yes")), neighbours, size)

    if kind in ("conjunction", "rule") and number("k") > MOST_CONDITIONS:
        raise ParameterError(f"k must be at most {MOST_CONDITIONS:,}, found {number('k')}")
    match kind:
        case "interior":
            return interior.methods(facts=stated(x=Whole(number("bits"))), column="x", beta=beta, funds=funds)
        case "finite":
            facts = stated(x=Bits(number("hypotheses")))
            return finite.methods(Predictions("x"), _LABELS, facts=facts, beta=beta, funds=funds)
        case "conjunction":
            facts = stated(x=Bits(number("d")))
            return conjunction_methods(Literals("x"), _LABELS, number("k"), facts, beta, funds)
        case "rule":
            conditions, k = number("conditions"), number("k")
            if k > conditions:
                raise ParameterError(f"k must be at most the number of conditions, {conditions}; found {k}")
            facts = stated(x=Bits(-(-conditions // 2)))  # an odd number is rounded up
            return rule_methods(Literals("x"), _LABELS, k, facts, beta, funds)
    count, bits = number("d"), number("bits")
    if bits > MOST_BITS or count > MOST_COLUMNS:
        raise ParameterError(f"bits must be at most {MOST_BITS} and d at most {MOST_COLUMNS}, found {bits} and {count}")
    column = Number(0, 2**bits - 1, step=1) if bits <= NUMBER_BITS else Whole(bits)
    columns = {f"x{place + 1}": column for place in range(count)}
    return box_methods(tuple(columns), _LABELS, stated(**columns), beta, funds)


def bounds_methods(bits: int | None, neighbours: Neighbours, size: int | None, beta: Fraction, funds: Funds) -> Methods:
    """Two quantiles by ranks, as far out as they are sure to lie among the rows: `suggest_bounds`."""
    if bits is not None and bits > NUMBER_BITS:
        raise ParameterError(f"bits must be at most {NUMBER_BITS}, found {bits}")
    column: Column = AnyNumber() if bits is None else Number(0, 2**bits - 1, step=1)
    facts = Facts(Domain(x=column), neighbours, size)

    def ranks() -> Method:
        found = calibrate(lambda noise: RankBounds("x", Fraction(1, 2), 1 / noise), funds=funds, facts=facts)
        missed = found.missed(facts, float(beta))
        least, beyond = 4 * missed, 2 * missed + 1
        condition = "at most this many rows lie below the low bound, and as many above the high one"
        claim = Promise(None, "exponential mechanism on ranks, twice", condition=condition, measure="error")

        def solve(size: int | None) -> Offer:
            if size is not None and size < least:
                raise ParameterError(f"{least:,} rows are needed to find bounds among them, found {size:,}")
            return Offer("ranks", found, replace(claim, bound=float(beyond)), 1 / found.rate)

        return Method("ranks", claim, lambda alpha: max(least, math.ceil(beyond / alpha)), lambda alpha: found, solve)

    return Methods({"ranks": ranks})


def sample_size(
    kind: str, alpha: Any, beta: Any, epsilon: Any, delta: Any, neighbours: Any, method: str, **numbers: Any
) -> int:
    """How many rows make the error at most alpha with probability 1 - beta, by one method or by the best."""
    wanted, sure = float(exact.probability(exact.TINY, alpha=alpha)), exact.probability(exact.TINY, beta=beta)

    def number(name: str) -> int:
        return exact.whole(**{name: numbers[name]})

    listed = methods(kind, number, Neighbours.of(neighbours), None, sure, Funds.of(Budget(epsilon, delta)))
    found = listed.smallest(wanted) if method == "auto" else listed.find(method)
    if not isinstance(found, Method):
        raise found.error(f"method {method!r} does not apply: {found.reason}")
    return found.needed(wanted)
