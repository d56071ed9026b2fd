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
from types import SimpleNamespace
from typing import Any

import numpy as np

from discreet.audit import mutants
from discreet.audit.attacks import Attack
from discreet.audit.laws import Setting, rows
from discreet.audit.mutants import Mistake, mistake
from discreet.catalogue import CATALOGUE
from discreet.core import Guarantee, Neighbours, Rng
from discreet.data import Dataset, Facts
from discreet.erm.exponential.grid import problem_of
from discreet.pac import EIGHTHS, FIRST, Falsified, GreedyCost, count_positives, empty_box

c = SimpleNamespace(**{kind.__name__: kind for kind in CATALOGUE.values()})
"""The classes of the catalogue by their names: the attacks are on what a ledger may hold."""

_LETTERS = c.Domain(v=c.Category("a", "b"))
_PAIRS = c.Domain(v=c.Category("a", "b"), w=c.Category("c", "d"))
_TEXTS = c.Domain(v=c.Text())
_EPOCHS = c.Domain(t=c.Number(1, 2, step=1))
_VALUE = c.Domain(value=c.Number(-1, 1, step=2))
_QUARTERS = c.Domain(value=c.Number(0, 3, step=1))
_SLOPES = c.Domain(a=c.Number(0, 1, step=1), y=c.Number(-4, 4, step=1))
_GROUPS = c.Domain(v=c.Category("a", "b"), x=c.Number(0, 1, step=1))
_CLASSES = c.Domain(y=c.Category("no", "yes"))
_LINE = c.Domain(x=c.Number(0, 3, step=1), y=c.Category("-", "+"))
_SHORT = c.Domain(x=c.Number(0, 1, step=1), y=c.Category("-", "+"))
_BITS = c.Domain(a=c.Category(0, 1), b=c.Category(0, 1), y=c.Category("-", "+"))

_HALF = Fraction(1, 2)
_LABELS, _LITERALS, _ONE_BIT = c.Labels("y", "+"), c.Literals(("a", "b")), c.Literals("a")


def examples() -> tuple[Attack, ...]:
    """At least one attack on every mechanism and conversation of the catalogue."""
    return (*_primitives(), *_conversations(), *_workloads(), *_models(), *_selecting_rules(), *_counting_rules())


def _attack(relation: str, domain: Any, honest: Any, tables: Any, wrong: Mistake, **more: Any) -> Attack:
    """An attack by two tables; each is a list of rows, and a row has a value for every column."""
    first, second = (rows(domain.names, *table) for table in tables)
    return Attack(honest, Setting(domain, Neighbours(relation)), first, second, wrong, **more)


_replace, _add = partial(_attack, "replace-one"), partial(_attack, "add-remove")


# --- noise, selection, thresholds ------------------------------------------------------------------------------------


@mistake("pays nothing for the bins that only one person has", "price")
def free_threshold(honest: Any, facts: Facts) -> Any:
    return dataclasses.replace(honest.guarantee(facts), failure=Fraction(0))


@mistake("prices its noise as that of independent groups", "price")
def independent_groups(honest: Any, facts: Facts) -> Any:
    return c.Laplace(honest.query, honest.scale).guarantee(facts)


@mistake("lets its noise add up to zero over all rows, whose number is private", "run")
def tells_all_rows(honest: Any, data: Dataset, rng: Rng) -> Any:
    sums = data.exact_sum(honest.query)
    noise = rng.zero_sum_laplace(honest.scale, sums.size - 1)
    return sums + np.append(noise, -noise.sum())


def _primitives() -> tuple[Attack, ...]:
    count, histogram, stable = c.Count(c.Equals("v", "a")), c.Histogram("v"), c.StableHistogram(c.KeyCount("v"), 1, 3)
    pair, quartet, sparse = ("ab", "bb"), ("abbb", "bbbb"), c.StableGaussian(c.KeyCount("v"), 1, 3)
    some = c.ZeroSumLaplace(c.Histogram("v", c.Equals("w", "c")), _HALF)
    return (
        _replace(_LETTERS, c.Laplace(count, _HALF), pair, mutants.halved_noise),
        _add(_LETTERS, c.Laplace(count, _HALF), ("ab", "b"), mutants.one_sided_noise),
        _replace(_LETTERS, c.Laplace(histogram, _HALF), pair, mutants.add_remove_price),
        _replace(_LETTERS, c.Gaussian(histogram, 1), pair, mutants.add_remove_price),
        _replace(_LETTERS, c.ProductLaplace(histogram, _HALF), pair, mutants.halved_noise),
        _replace(_LETTERS, c.CoordinateLaplace(histogram, _HALF), pair, mutants.halved_noise),
        _replace(_LETTERS, c.ZeroSumLaplace(histogram, _HALF), pair, mutants.halved_noise),
        _replace(_PAIRS, some, (("ac", "ac"), ("bc", "ac")), mutants.halved_noise, reach=14),
        _add(_PAIRS, some, (("ac", "bd"), ("bd",)), independent_groups, reach=14),
        _add(_LETTERS, c.ZeroSumLaplace(histogram, _HALF), ("ab", "b"), tells_all_rows, reach=14),
        _replace(_LETTERS, c.Exponential(histogram, 1), quartet, mutants.add_remove_price),
        _replace(_LETTERS, c.PermuteAndFlip(histogram, 1), quartet, mutants.add_remove_price),
        _add(_LETTERS, stable, ("a", ""), mutants.passes_at_bound),
        _replace(_LETTERS, stable, pair, mutants.truncated_early),
        _add(_TEXTS, stable, ("a", ""), mutants.passes_at_bound),
        _replace(_TEXTS, stable, pair, mutants.truncated_early),
        _replace(_LETTERS, sparse, ("aaaaabbbb", "aaaabbbbb"), mutants.halved_noise),
        _replace(_TEXTS, sparse, ("aaaaabbbb", "aaaabbbbb"), mutants.add_remove_price),
        _add(_LETTERS, sparse, ("a", ""), free_threshold),
        _add(_LETTERS, c.StableMode(stable), ("abbbbaaa", "bbbbaaa"), mutants.first_seen_ties),
    )


@mistake("pays for the epoch of a row alone, and not for the later sums that the row is in", "price")
def one_epoch_price(honest: Any, facts: Facts) -> Guarantee:
    rho = honest.resolution**2 / (2 * (honest.scale * honest.resolution) ** 2)
    return Guarantee.of_zcdp(rho, neighbours=facts.neighbours)


@mistake("draws half of the noise it is priced for", "begin")
def half_noise_in_sums(honest: Any, data: Dataset, rng: Rng) -> Any:
    return mutants.with_noise(honest, Fraction(1, 2)).begin(data, rng)


def _conversations() -> tuple[Attack, ...]:
    threshold, pair = c.AboveThreshold(1, 2), ("abb", "aab")
    a, b = c.Count(c.Equals("v", "a")), c.Count(c.Equals("v", "b"))
    opposite, near = (c.IsAbove(a, 2), c.IsAbove(b, 2)), (c.IsAbove(a, 0), c.IsAbove(b, 0))
    between = (c.IsAbove(a, Fraction(7, 20)), c.IsAbove(b, 2))
    counter = c.ContinualCounter(c.Count(), "t", 1, 2, scale=1, resolution=2)  # a row adds (2, 1) to noise of scale 2
    return (
        _replace(_LETTERS, threshold, pair, mutants.no_threshold_noise, asks=(c.IsAbove(a, 3),) * 8),
        _replace(_LETTERS, threshold, pair, mutants.no_question_noise, asks=near),
        _replace(_LETTERS, threshold, pair, mutants.never_stops, asks=opposite * 2),
        _replace(_LETTERS, threshold, pair, mutants.releases_noisy_value, asks=(c.IsAbove(a, 1),)),
        _replace(_LETTERS, threshold, pair, mutants.monotone_price, asks=opposite),
        _replace(_LETTERS, threshold, pair, mutants.off_grid, asks=between),
        _replace(_LETTERS, c.AboveThresholdLaplace(1, 2), pair, mutants.no_question_noise, asks=near),
        _add(_EPOCHS, counter, ("12", "2"), one_epoch_price, asks=(1, 2)),
        _replace(_EPOCHS, counter, ("12", "22"), half_noise_in_sums, asks=(1, 2)),
    )


# --- workloads -------------------------------------------------------------------------------------------------------


@mistake("draws a tenth of the noise that its step is priced for", "run")
def tenth_of_the_noise(honest: Any, data: Dataset, rng: Rng) -> Any:
    return mutants.with_noise(honest, Fraction(1, 10)).run(data, rng)


@mistake("pays for the first of two tables", "price")
def first_table_price(honest: Any, facts: Facts) -> Any:
    return c.Laplace(honest.queries[0], honest.scales[0]).guarantee(facts)


@mistake("pays for one round of three", "price")
def one_round_price(honest: Any, facts: Facts) -> Guarantee:
    return Guarantee.of_bounded_range(2 * honest.rate, neighbours=facts.neighbours)


@mistake("does not pay for the number of rows that its tables add up to", "price")
def residuals_without_rows(honest: Any, facts: Facts) -> Any:
    return dataclasses.replace(honest, scales=(10**6, *honest.scales[1:])).guarantee(facts)


def first_counts(released: Any) -> float:
    """How many rows are in the first cell of each table, added up."""
    return float(sum(counts.ravel()[0] for _, counts in released))


def _workloads() -> tuple[Attack, ...]:
    tables = c.Marginals([c.Histogram("v"), c.Count(c.Equals("v", "a"))], [_HALF, 1], "laplace")
    chosen = c.ChosenTables((c.Bins("v", (0, 1), (0, 1)), "w"), 6, Fraction(1, 20), 0, "laplace")
    weights = c.AveragedWeights([c.Histogram("v")], 3, 2, Fraction(1, 4), 4)
    return (
        _replace(_LETTERS, tables, ("ab", "bb"), first_table_price, reach=8),
        _replace(_LETTERS, weights, ("aabb", "abbb"), one_round_price, reach=8),
        _add(_LETTERS, c.ResidualMarginals(["v"], [_HALF, 2], 1), ("ab", "b"), residuals_without_rows, reach=11),
        _replace(_PAIRS, chosen, (("ac", "ac"), ("bd", "ac")), tenth_of_the_noise, look=first_counts, runs=2000),
    )


# --- models ----------------------------------------------------------------------------------------------------------


@mistake("pays for one step of eight", "price")
def one_step_price(honest: Any, facts: Facts) -> Any:
    return dataclasses.replace(honest, steps=1).guarantee(facts)


@mistake("pays for one bound of two", "price")
def one_bound_price(honest: Any, facts: Facts) -> Any:
    return honest.parts[0].guarantee(facts)


@mistake("charges a ball by its radius instead of its diameter", "price")
def radius_price(honest: Any, facts: Facts) -> Guarantee:
    """The slope of the absolute loss is 1, and so is a row's length."""
    return Guarantee.of_bounded_range(honest.rate * honest.risk.feasible.radius, neighbours=facts.neighbours)


def attempt_line(honest: Any, data: Dataset, rng: Rng) -> Any:
    return honest.sampler(data).attempt(rng)


def attempt_bounds(honest: Any, data: Dataset, rng: Rng) -> Any:
    bounds = [attempt_line(part, data, rng) for part in honest.parts]
    return None if None in bounds else tuple(sorted(bounds))


def attempt_groups(honest: Any, data: Dataset, rng: Rng) -> Any:
    drawn = [sampler.attempt(rng) for sampler in honest.samplers(data)]
    return None if None in drawn else tuple(drawn)


@mistake("pays for one of three draws", "price")
def one_draw_price(honest: Any, facts: Facts) -> Any:
    return c.RankQuantile(honest.column, honest.q, honest.rate).guarantee(facts)


def attempt_grid(honest: Any, data: Dataset, rng: Rng) -> Any:
    problem: Any = problem_of(honest.risk, honest.points, data.facts)
    return problem.sampler(data, honest.rate * problem.unit).attempt(rng)


@mistake("pays for the coefficients and not for the ranges before them", "price")
def coefficients_price(honest: Any, facts: Facts) -> Any:
    return honest.inner.guarantee(facts)


def first_number(released: Any) -> float:
    return float(np.ravel(released)[0])


def _models() -> tuple[Attack, ...]:
    steep = c.Risk(c.Huber("1/8"), c.Constant(), "value", c.Box(-8, 8))
    opposite = ([[1], [-1]], [[-1], [-1]])
    # lambda = 1, slope 1/4, two people: a replacement moves the minimiser by 1/4, four steps; the noise has that scale.
    output = c.OutputPerturbation(steep, 1, "1/1000", Fraction(1, 16), c.ProductLaplaceNoise(Fraction(1, 4)))
    round_noise = dataclasses.replace(output, noise=c.SphericalNoise(Fraction(1, 4)))
    # Lambda = 32: a replacement moves the sum of two slopes by 1/2, twice the scale of the noise on it.
    tilted = c.ObjectivePerturbation(
        *(steep, 16, c.ProductLaplaceNoise(Fraction(1, 4)), Fraction(1, 2**10), Fraction(1, 2**18), Fraction(1, 2**15)),
        c.ProductLaplaceNoise(Fraction(1, 2**10)),
    )
    # The regression costs little, and a median of rate 3 tells two tables apart: it should cost 6.
    ranged = c.RangedRegression(
        *(c.RankQuantile("value", _HALF, 3), c.RankQuantile("value", Fraction(3, 4), Fraction(1, 4))),
        dataclasses.replace(
            tilted,
            risk=dataclasses.replace(steep, loss=c.RangedHuber(Fraction(1, 4), -1, 1)),
            noise=c.ProductLaplaceNoise(16),
        ),
    )
    scaled = c.RangedFeatures(
        *((c.RankQuantile("a", _HALF, 3),), (c.RankQuantile("a", Fraction(3, 4), Fraction(1, 4)),)),
        c.Descent(
            c.Risk(c.Absolute(), c.Declared(("a",), 1, False), "y", c.Ball(1)), c.LaplaceNoise(64), 1, c.Last("1/100")
        ),
    )
    moments = c.NoisyMoments(c.Risk(c.Squared(), c.Constant(), "value", c.Box(-8, 8)), c.LaplaceNoise(2**15))
    # A replacement moves the sum of two slopes by 1/2: a step costs 2 in the first, 3/2 in the second.
    single, eight = (
        c.Descent(steep, c.LaplaceNoise(scale), steps, c.Last(Fraction(1, 100)))
        for scale, steps in ((Fraction(1, 4), 1), (Fraction(1, 3), 8))
    )
    # One step of a network of one unit, whose last weights are the classes' own: a replacement moves the two apart.
    network = c.NeuralDescent(
        c.Constant(), "y", (1,), Fraction(1, 4), c.ProductLaplaceNoise(_HALF), 1, Fraction(1, 1000), 3
    )
    line = c.LineExponential(c.Risk(c.Absolute(), c.Constant(), "value", c.Box(-1, 1)), _HALF)
    median, bounds = c.RankQuantile("value", _HALF, 1), c.RankBounds("value", Fraction(1, 10), 1)
    groups = c.GroupQuantiles("x", _HALF, 2, 4, 1, ("v",))
    grid = c.GridExponential(c.Risk(c.Absolute(), c.Declared(("a",), 1, False), "y", c.Ball(1)), 5, 1)
    pulled = [[1, -4]] * 12  # to one end of the ball; one more person pulls to the other
    most, other = [[-1], [-1], [-1], [1]], [[-1]] * 4
    cheap, tries = mutants.add_remove_price, {"attempt": attempt_line, "reach": 4}  # jumps beyond the grid fail
    return (
        _replace(_VALUE, output, opposite, cheap, reach=50),
        _replace(_VALUE, round_noise, opposite, cheap, reach=50),
        _replace(_VALUE, tilted, opposite, tenth_of_the_noise, look=first_number, runs=3000),
        _replace(_VALUE, ranged, opposite, coefficients_price, look=first_number, runs=1000),
        _replace(
            *(_SLOPES, scaled, ([[1, 1], [-1, 1]], [[-1, 1], [-1, 1]]), coefficients_price),
            look=first_number,
            runs=1000,
        ),
        _replace(_VALUE, moments, opposite, tenth_of_the_noise, look=first_number),
        _replace(_VALUE, line, (most, other), cheap, **tries),
        _replace(_QUARTERS, median, ("002220", "002223"), cheap, **tries),
        _replace(
            _GROUPS, groups, (["a1", "b1", "b0"], ["a1", "b1", "a1"]), one_draw_price, attempt=attempt_groups, reach=4
        ),
        _replace(_QUARTERS, bounds, ("02220", "02223"), one_bound_price, attempt=attempt_bounds, reach=4),
        _add(_SLOPES, grid, ([*pulled, [1, 4]], pulled), radius_price, attempt=attempt_grid, reach=9),
        _replace(_VALUE, single, opposite, tenth_of_the_noise, look=first_number),
        _replace(_VALUE, eight, opposite, one_step_price, look=first_number),
        _replace(
            _CLASSES,
            network,
            ([["yes"], ["no"]], [["no"], ["no"]]),
            tenth_of_the_noise,
            look=lambda weights: float(weights[-1] - weights[-3]),
        ),
    )


# --- rules -----------------------------------------------------------------------------------------------------------


@mistake("prices the interior points of its slices for added values", "price")
def slices_as_added(honest: Any, facts: Facts) -> Any:
    """The mistake that an add-remove outside suggests: a slice of fixed size changes by a replacement."""
    believed = honest.routine.guarantee(Neighbours("add-remove"), 4) * (2 * len(honest.columns))
    count = Guarantee.of_laplace(1, scale=honest.few_scale, neighbours=facts.neighbours)
    return count + dataclasses.replace(believed, neighbours=facts.neighbours)


@mistake("does not put aside the rows that a condition falsifies", "run")
def keeps_rows(honest: Any, data: Dataset, rng: Rng) -> tuple[Any, ...]:
    """The counts of all rows in every round."""
    counts = data.exact_sum(Falsified(honest.conditions, honest.labels, ()))
    drawn: list[int | None] = []
    for threshold in honest.thresholds:
        scores = honest.scores(counts, threshold)
        place = rng.select(scores, honest.rate)
        drawn.append(place if place < len(scores) - 1 else None)
    return tuple(drawn)


@mistake("compares exact counts with its threshold", "run")
def exact_threshold(honest: Any, data: Dataset, rng: Rng) -> tuple[int, ...]:
    """Which literals no positive row falsifies, exactly."""
    counts = data.exact_sum(Falsified(honest.literals, honest.labels, ()))[1, :-1]
    return tuple(np.flatnonzero(counts == 0).tolist())


@mistake("forgets that the number of positives is told, too", "price")
def no_total(honest: Any, facts: Facts) -> Guarantee:
    moved = honest.literals.variables(facts.domain)
    return Guarantee.of_laplace(moved, scale=honest.scale, neighbours=facts.neighbours)


@mistake("does not divide its costs by how far a row moves them", "run")
def undivided_costs(honest: Any, data: Dataset, rng: Rng) -> Any:
    """The faces' costs by the first weight there is, as they are."""
    moved = GreedyCost(FIRST * EIGHTHS, EIGHTHS).range(Neighbours(data.facts.neighbours.kind))
    return dataclasses.replace(honest, rate=honest.rate * moved / EIGHTHS).run(data, rng)


@mistake("does not divide its scores by the weight", "run")
def undivided_scores(honest: Any, data: Dataset, rng: Rng) -> Any:
    return honest.run(data, _OneRate(honest.rate, rng))


class _OneRate:
    """Randomness that draws every selection at one rate, whatever it is asked for."""

    def __init__(self, rate: Fraction, rng: Rng) -> None:
        self.laplace, self.select = rng.laplace, lambda scores, _: rng.select(scores, rate)


@mistake("compares the exact number of positives with its threshold", "run")
def exactly_few(honest: Any, data: Dataset, rng: Rng) -> Any:
    if count_positives(data, honest.labels) < honest.threshold:
        return empty_box(len(honest.columns))
    return dataclasses.replace(honest, threshold=0, few_scale=Fraction(1, 1000)).run(data, rng)


def _selecting_rules() -> tuple[Attack, ...]:
    """Learners that draw a few selections, or little noise."""
    cheap, zero = mutants.add_remove_price, ("0+",)
    box = c.SlicedBox(("x",), _LABELS, c.MinRank(2), 2, 2, 0)
    hidden = c.SelfDeleting(_ONE_BIT, _LABELS, (1,) * 6, 1, 1, _HALF, Fraction(1, 10))
    halves = c.FiniteClass((c.Where(c.Equals("a", 1)), c.Where(c.Not(c.Equals("a", 1)))), _LABELS, 1)
    greedy, every = c.GreedySelection(_LITERALS, _LABELS, 1, 2, 1), c.AllConjunctions(_LITERALS, _LABELS, 2, 1)
    noisy, negative = c.NoisyCounts(_ONE_BIT, _LABELS, 1, 1), ("0-",)
    return (
        _replace(_LINE, c.InteriorPoint("x", c.MinRank(1)), (zero * 3, (*zero * 2, "3+")), cheap),
        _replace(_LINE, c.FaceByFace(("x",), _LABELS, 1, 1), (("1+", "1-"), ("1-", "1-")), cheap),
        _add(_LINE, box, (zero * 4, (*zero * 4, "3+")), slices_as_added),
        _replace(_LINE, c.AllBoxes("x", _LABELS, 4, 1), (negative * 4, (*negative * 3, "0+")), cheap),
        _replace(_BITS, halves, (("10+", "10+", "10+"), ("10+", "10+", "10-")), cheap),
        _replace(_BITS, greedy, (("00-", "11-"), ("11-", "11-")), cheap),
        _replace(_BITS, every, (("00+", "00+"), ("00+", "11-")), cheap),
        _add(_BITS, hidden, (("00-",), ()), keeps_rows),
        _replace(_BITS, noisy, (("00+", "11+"), ("11+", "11+")), exact_threshold),
    )


def _counting_rules() -> tuple[Attack, ...]:
    """Learners that begin with noisy counts, or end with them: their noise is listed as far as it matters."""
    gaussian, laplace = c.GaussianCounts(_ONE_BIT, _LABELS, 1, 1, 2), c.LaplaceCounts(_ONE_BIT, _LABELS, 2, 1, 1)
    weighed, faces = c.WeighedGreedy(_ONE_BIT, _LABELS, 2, 1, _HALF), c.CountedFaces("x", _LABELS, 1, 1)
    slices = c.ReorderSlice(
        ("x",), _LABELS, c.MinRank(1), count=1, spread=2, slack=1, rounds=2, few_scale=Fraction(1, 4), threshold=2
    )
    three, many = ("00+",) * 3, ("00-",) * 8
    return (
        _replace(_BITS, gaussian, ((*three, "10+"), (*three, "00+")), mutants.add_remove_price, reach=8),
        _add(_BITS, laplace, ((*three, "00+"), three), no_total, reach=12),
        _add(_BITS, weighed, ((*many, "00+"), many), undivided_scores, reach=4),
        _replace(_SHORT, faces, (("1-", "1-", "1-"), ("1-", "1-", "1+")), undivided_costs, reach=6),
        _add(_SHORT, slices, (("0+", "1+"), ("0+",)), exactly_few, reach=6),
    )
