"""Every mechanism of the catalogue on made-up rows, with two neighbouring tables and a mistake that must be caught.

`discreet audit` runs these attacks, and the contract tests take the same mechanisms on the same rows: a new mechanism
is written here once (a test names it until it is). Tables are small enough for the law of a release to be listed: one
column of two letters; a line of two or four values, or two booleans, with a label. For models two people stand where
the loss is a line, the worst case of every theorem: each pulls with full weight, and one is replaced by the opposite.
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from discreet.answering import AveragedWeights, Marginals
from discreet.audit import mutants
from discreet.audit.attacks import Attack
from discreet.audit.laws import Setting, rows
from discreet.audit.mutants import Mistake, mistake
from discreet.data import Category, Dataset, Domain, Facts, Number
from discreet.erm.descent import Descent
from discreet.erm.exponential.grid import GridExponential, problem_of
from discreet.erm.exponential.line import LineExponential
from discreet.erm.feasible_sets import Ball, interval
from discreet.erm.features import Constant, Declared
from discreet.erm.losses import Absolute, Huber
from discreet.erm.network import NeuralDescent
from discreet.erm.output_perturbation import OutputPerturbation
from discreet.erm.risk import Risk
from discreet.erm.schedules import Last
from discreet.guarantee import Guarantee, Neighbours
from discreet.mechanisms import (
    Above,
    AboveThreshold,
    AboveThresholdLaplace,
    CoordinateLaplace,
    Exponential,
    Gaussian,
    Laplace,
    LaplaceNoise,
    PermuteAndFlip,
    ProductLaplace,
    ProductLaplaceNoise,
    RankQuantile,
    StableHistogram,
    StableMode,
)
from discreet.pac import (
    EIGHTHS,
    FIRST,
    AllBoxes,
    AllConjunctions,
    Cost,
    CountedFaces,
    FaceByFace,
    Falsified,
    FiniteClass,
    GaussianCounts,
    GreedySelection,
    InteriorPoint,
    Labels,
    LaplaceCounts,
    Literals,
    MinRank,
    NoisyCounts,
    RankBounds,
    ReorderSlice,
    SelfDeleting,
    SlicedBox,
    WeighedGreedy,
    Where,
    count_positives,
    empty_box,
)
from discreet.query import Count, Equals, Histogram, KeyCount, Not
from discreet.rng import Rng

_LETTERS = Domain(v=Category("a", "b"))
_VALUE = Domain(value=Number(-1, 1, step=2))
_QUARTERS = Domain(value=Number(0, 3, step=1))
_SLOPES = Domain(a=Number(0, 1, step=1), y=Number(-4, 4, step=1))
_CLASSES = Domain(y=Category("no", "yes"))
_LINE = Domain(x=Number(0, 3, step=1), y=Category("-", "+"))
_SHORT = Domain(x=Number(0, 1, step=1), y=Category("-", "+"))
_BITS = Domain(a=Category(0, 1), b=Category(0, 1), y=Category("-", "+"))

_HALF = Fraction(1, 2)
_LABELS, _LITERALS, _ONE_BIT = Labels("y", "+"), Literals(("a", "b")), Literals("a")


def examples() -> tuple[Attack, ...]:
    """At least one attack on every mechanism and conversation of the catalogue."""
    return (*_primitives(), *_conversations(), *_workloads(), *_models(), *_selecting_rules(), *_counting_rules())


def _attack(relation: str, domain: Domain, honest: Any, tables: Any, wrong: Mistake, **more: Any) -> Attack:
    """An attack by two tables; each is a list of rows, and a row has a value for every column."""
    first, second = (rows(domain.names, *table) for table in tables)
    return Attack(honest, Setting(domain, Neighbours(relation)), first, second, wrong, **more)


_replace, _add = partial(_attack, "replace-one"), partial(_attack, "add-remove")


# --- noise, selection, thresholds ------------------------------------------------------------------------------------


def _primitives() -> tuple[Attack, ...]:
    count, histogram, stable = Count(Equals("v", "a")), Histogram("v"), StableHistogram(KeyCount("v"), 1, 3)
    pair, quartet = ("ab", "bb"), ("abbb", "bbbb")
    return (
        _replace(_LETTERS, Laplace(count, _HALF), pair, mutants.halved_noise),
        _add(_LETTERS, Laplace(count, _HALF), ("ab", "b"), mutants.one_sided_noise),
        _replace(_LETTERS, Laplace(histogram, _HALF), pair, mutants.add_remove_price),
        _replace(_LETTERS, Gaussian(histogram, 1), pair, mutants.add_remove_price),
        _replace(_LETTERS, ProductLaplace(histogram, _HALF), pair, mutants.halved_noise),
        _replace(_LETTERS, CoordinateLaplace(histogram, _HALF), pair, mutants.halved_noise),
        _replace(_LETTERS, Exponential(histogram, 1), quartet, mutants.add_remove_price),
        _replace(_LETTERS, PermuteAndFlip(histogram, 1), quartet, mutants.add_remove_price),
        _add(_LETTERS, stable, ("a", ""), mutants.passes_at_bound),
        _replace(_LETTERS, stable, pair, mutants.truncated_early),
        _add(_LETTERS, StableMode(stable), ("abbbbaaa", "bbbbaaa"), mutants.first_seen_ties),
    )


def _conversations() -> tuple[Attack, ...]:
    threshold, pair = AboveThreshold(1, 2), ("abb", "aab")
    a, b = Count(Equals("v", "a")), Count(Equals("v", "b"))
    opposite, near = (Above(a, 2), Above(b, 2)), (Above(a, 0), Above(b, 0))
    between = (Above(a, Fraction(7, 20)), Above(b, 2))
    return (
        _replace(_LETTERS, threshold, pair, mutants.no_threshold_noise, asks=(Above(a, 3),) * 8),
        _replace(_LETTERS, threshold, pair, mutants.no_question_noise, asks=near),
        _replace(_LETTERS, threshold, pair, mutants.never_stops, asks=opposite * 2),
        _replace(_LETTERS, threshold, pair, mutants.releases_noisy_value, asks=(Above(a, 1),)),
        _replace(_LETTERS, threshold, pair, mutants.monotone_price, asks=opposite),
        _replace(_LETTERS, threshold, pair, mutants.off_grid, asks=between),
        _replace(_LETTERS, AboveThresholdLaplace(1, 2), pair, mutants.no_question_noise, asks=near),
    )


# --- workloads -------------------------------------------------------------------------------------------------------


@mistake("pays for the first of two tables", "price")
def first_table_price(honest: Any, facts: Facts) -> Guarantee:
    return Laplace(honest.queries[0], honest.scales[0]).guarantee(facts)


@mistake("pays for one round of three", "price")
def one_round_price(honest: AveragedWeights, facts: Facts) -> Guarantee:
    return Guarantee.of_bounded_range(2 * honest.rate, neighbours=facts.neighbours)


def _workloads() -> tuple[Attack, ...]:
    tables = Marginals([Histogram("v"), Count(Equals("v", "a"))], [_HALF, 1], "laplace")
    weights = AveragedWeights([Histogram("v")], 3, 2, Fraction(1, 4), 4)
    return (
        _replace(_LETTERS, tables, ("ab", "bb"), first_table_price, reach=8),
        _replace(_LETTERS, weights, ("aabb", "abbb"), one_round_price, reach=8),
    )


# --- models ----------------------------------------------------------------------------------------------------------


@mistake("draws a tenth of the noise that its step is priced for", "run")
def tenth_of_the_noise(honest: Any, data: Dataset, rng: Rng) -> Any:
    return mutants.with_noise(honest, Fraction(1, 10)).run(data, rng)


@mistake("pays for one step of eight", "price")
def one_step_price(honest: Descent, facts: Facts) -> Guarantee:
    return dataclasses.replace(honest, steps=1).guarantee(facts)


@mistake("pays for one bound of two", "price")
def one_bound_price(honest: RankBounds, facts: Facts) -> Guarantee:
    return honest.parts[0].guarantee(facts)


@mistake("charges a ball by its radius instead of its diameter", "price")
def radius_price(honest: Any, facts: Facts) -> Guarantee:
    """The slope of the absolute loss is 1, and so is a row's length."""
    return Guarantee.of_bounded_range(honest.rate * honest.risk.feasible.radius, neighbours=facts.neighbours)


def attempt_line(honest: Any, data: Dataset, rng: Rng) -> Any:
    return honest.sampler(data).attempt(rng)


def attempt_bounds(honest: RankBounds, data: Dataset, rng: Rng) -> Any:
    bounds = [attempt_line(part, data, rng) for part in honest.parts]
    return None if None in bounds else tuple(sorted(bounds))


def attempt_grid(honest: GridExponential, data: Dataset, rng: Rng) -> Any:
    problem: Any = problem_of(honest.risk, honest.points, data.facts)
    return problem.sampler(data, honest.rate * problem.unit).attempt(rng)


def _models() -> tuple[Attack, ...]:
    steep = Risk(Huber("1/8"), Constant(), "value", interval(-8, 8))
    opposite = ([[1], [-1]], [[-1], [-1]])
    # lambda = 1, slope 1/4, two people: a replacement moves the minimiser by 1/4, four steps; the noise has that scale.
    output = OutputPerturbation(steep, 1, "1/1000", Fraction(1, 16), ProductLaplaceNoise(Fraction(1, 4)))
    # A replacement moves the sum of two slopes by 1/2: a step costs 2 in the first, 3/2 in the second.
    single, eight = (
        Descent(steep, LaplaceNoise(scale), steps, Last(Fraction(1, 100)))
        for scale, steps in ((Fraction(1, 4), 1), (Fraction(1, 3), 8))
    )
    # One step of a network of one unit, whose last weights are the classes' own: a replacement moves the two apart.
    network = NeuralDescent(Constant(), "y", (1,), Fraction(1, 4), ProductLaplaceNoise(_HALF), 1, Fraction(1, 1000), 3)
    line = LineExponential(Risk(Absolute(), Constant(), "value", interval(-1, 1)), _HALF)
    median, bounds = RankQuantile("value", _HALF, 1), RankBounds("value", Fraction(1, 10), 1)
    grid = GridExponential(Risk(Absolute(), Declared(("a",), 1, False), "y", Ball(1)), 5, 1)
    pulled = [[1, -4]] * 12  # to one end of the ball; one more person pulls to the other
    most, other = [[-1], [-1], [-1], [1]], [[-1]] * 4
    cheap, tries = mutants.add_remove_price, {"attempt": attempt_line, "reach": 4}  # jumps beyond the grid fail
    return (
        _replace(_VALUE, output, opposite, cheap, reach=50),
        _replace(_VALUE, line, (most, other), cheap, **tries),
        _replace(_QUARTERS, median, ("002220", "002223"), cheap, **tries),
        _replace(_QUARTERS, bounds, ("02220", "02223"), one_bound_price, attempt=attempt_bounds, reach=4),
        _add(_SLOPES, grid, ([*pulled, [1, 4]], pulled), radius_price, attempt=attempt_grid, reach=9),
        _replace(_VALUE, single, opposite, tenth_of_the_noise, look=_first_number),
        _replace(_VALUE, eight, opposite, one_step_price, look=_first_number),
        _replace(
            _CLASSES,
            network,
            ([["yes"], ["no"]], [["no"], ["no"]]),
            tenth_of_the_noise,
            look=lambda weights: float(weights[-1] - weights[-3]),
        ),
    )


def _first_number(released: Any) -> float:
    return float(np.ravel(released)[0])


# --- rules -----------------------------------------------------------------------------------------------------------


@mistake("prices the interior points of its slices for added values", "price")
def slices_as_added(honest: SlicedBox, facts: Facts) -> Guarantee:
    """The mistake that an add-remove outside suggests: a slice of fixed size changes by a replacement."""
    believed = honest.routine.guarantee(Neighbours("add-remove"), 4) * (2 * len(honest.columns))
    count = Guarantee.of_laplace(1, scale=honest.few_scale, neighbours=facts.neighbours)
    return count + dataclasses.replace(believed, neighbours=facts.neighbours)


@mistake("does not put aside the rows that a condition falsifies", "run")
def keeps_rows(honest: SelfDeleting, data: Dataset, rng: Rng) -> tuple[Any, ...]:
    """The counts of all rows in every round."""
    counts = data.exact_sum(Falsified(honest.conditions, honest.labels, ()).partial)
    drawn: list[int | None] = []
    for threshold in honest.thresholds:
        scores = honest.scores(counts, threshold)
        place = rng.select(scores, honest.rate)
        drawn.append(place if place < len(scores) - 1 else None)
    return tuple(drawn)


@mistake("compares exact counts with its threshold", "run")
def exact_threshold(honest: NoisyCounts, data: Dataset, rng: Rng) -> tuple[int, ...]:
    """Which literals no positive row falsifies, exactly."""
    counts = data.exact_sum(Falsified(honest.literals, honest.labels, ()).partial)[1, :-1]
    return tuple(np.flatnonzero(counts == 0).tolist())


@mistake("forgets that the number of positives is told, too", "price")
def no_total(honest: LaplaceCounts, facts: Facts) -> Guarantee:
    moved = honest.literals.variables(facts.domain)
    return Guarantee.of_laplace(moved, scale=honest.scale, neighbours=facts.neighbours)


@mistake("does not divide its costs by how far a row moves them", "run")
def undivided_costs(honest: CountedFaces, data: Dataset, rng: Rng) -> Any:
    """The faces' costs by the first weight there is, as they are."""
    moved = Cost(FIRST * EIGHTHS, EIGHTHS).range(Neighbours(data.facts.neighbours.kind))
    return dataclasses.replace(honest, rate=honest.rate * moved / EIGHTHS).run(data, rng)


@mistake("does not divide its scores by the weight", "run")
def undivided_scores(honest: WeighedGreedy, data: Dataset, rng: Rng) -> tuple[int, ...]:
    return honest.run(data, _OneRate(honest.rate, rng))  # type: ignore[arg-type]


class _OneRate:
    """Randomness that draws every selection at one rate, whatever it is asked for."""

    def __init__(self, rate: Fraction, rng: Rng) -> None:
        self.laplace, self.select = rng.laplace, lambda scores, _: rng.select(scores, rate)


@mistake("compares the exact number of positives with its threshold", "run")
def exactly_few(honest: ReorderSlice, data: Dataset, rng: Rng) -> Any:
    if count_positives(data, honest.labels) < honest.threshold:
        return empty_box(len(honest.columns))
    return dataclasses.replace(honest, threshold=0, few_scale=Fraction(1, 1000)).run(data, rng)


def _selecting_rules() -> tuple[Attack, ...]:
    """Learners that draw a few selections, or little noise."""
    cheap, zero = mutants.add_remove_price, ("0+",)
    box = SlicedBox(("x",), _LABELS, MinRank(2), 2, 2, 0)
    hidden = SelfDeleting(_ONE_BIT, _LABELS, (1,) * 6, 1, 1, _HALF, Fraction(1, 10))
    halves = FiniteClass((Where(Equals("a", 1)), Where(Not(Equals("a", 1)))), _LABELS, 1)
    greedy, every = GreedySelection(_LITERALS, _LABELS, 1, 2, 1), AllConjunctions(_LITERALS, _LABELS, 2, 1)
    noisy, negative = NoisyCounts(_ONE_BIT, _LABELS, 1, 1), ("0-",)
    return (
        _replace(_LINE, InteriorPoint("x", MinRank(1)), (zero * 3, (*zero * 2, "3+")), cheap),
        _replace(_LINE, FaceByFace(("x",), _LABELS, 1, 1), (("1+", "1-"), ("1-", "1-")), cheap),
        _add(_LINE, box, (zero * 4, (*zero * 4, "3+")), slices_as_added),
        _replace(_LINE, AllBoxes("x", _LABELS, 4, 1), (negative * 4, (*negative * 3, "0+")), cheap),
        _replace(_BITS, halves, (("10+", "10+", "10+"), ("10+", "10+", "10-")), cheap),
        _replace(_BITS, greedy, (("00-", "11-"), ("11-", "11-")), cheap),
        _replace(_BITS, every, (("00+", "00+"), ("00+", "11-")), cheap),
        _add(_BITS, hidden, (("00-",), ()), keeps_rows),
        _replace(_BITS, noisy, (("00+", "11+"), ("11+", "11+")), exact_threshold),
    )


def _counting_rules() -> tuple[Attack, ...]:
    """Learners that begin with noisy counts, or end with them: their noise is listed as far as it matters."""
    gaussian, laplace = GaussianCounts(_ONE_BIT, _LABELS, 1, 1, 2), LaplaceCounts(_ONE_BIT, _LABELS, 2, 1, 1)
    weighed, faces = WeighedGreedy(_ONE_BIT, _LABELS, 2, 1, _HALF), CountedFaces("x", _LABELS, 1, 1)
    slices = ReorderSlice(
        ("x",), _LABELS, MinRank(1), count=1, spread=2, slack=1, rounds=2, few_scale=Fraction(1, 4), threshold=2
    )
    three, many = ("00+",) * 3, ("00-",) * 8
    return (
        _replace(_BITS, gaussian, ((*three, "10+"), (*three, "00+")), mutants.add_remove_price, reach=8),
        _add(_BITS, laplace, ((*three, "00+"), three), no_total, reach=12),
        _add(_BITS, weighed, ((*many, "00+"), many), undivided_scores, reach=4),
        _replace(_SHORT, faces, (("1-", "1-", "1-"), ("1-", "1-", "1+")), undivided_costs, reach=6),
        _add(_SHORT, slices, (("0+", "1+"), ("0+",)), exactly_few, reach=6),
    )
