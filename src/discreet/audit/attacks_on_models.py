"""Attacks on fitted models, and on workloads: two people, one of whom is replaced by his opposite.

A loss that is a line where the two stand is the worst case of every theorem: each pulls with his whole weight. Output
perturbation has few values, so its law is listed. The exponential mechanism on a line or a grid tries until an attempt
succeeds: its law is that of one attempt given that it succeeds. Descents have too many values; they are run, and what
is certain about their epsilon is what the runs prove (`audit.sampled`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.answering import AveragedWeights, Marginals
from discreet.audit import mutants
from discreet.audit.attacks_on_rules import Told
from discreet.audit.divergence import Finding, claims, epsilon_finding
from discreet.audit.laws import Law, Row, Setting, law, sample
from discreet.audit.mutants import Mistake, Twin
from discreet.audit.sampled import epsilon_lower_bound
from discreet.data import Category, Dataset, Domain, Facts, Number
from discreet.erm.descent import Descent
from discreet.erm.exponential.grid import GridExponential, LinearProblem, problem_of
from discreet.erm.exponential.line import LineExponential, RankQuantile
from discreet.erm.feasible_sets import Ball, interval
from discreet.erm.features import Constant, Declared
from discreet.erm.losses import Absolute, Huber
from discreet.erm.network import NeuralDescent
from discreet.erm.output_perturbation import OutputPerturbation
from discreet.erm.risk import Risk
from discreet.erm.schedules import Last
from discreet.guarantee import Guarantee, Neighbours
from discreet.mechanisms import Laplace, LaplaceNoise, ProductLaplaceNoise
from discreet.pac.rank_bounds import RankBounds
from discreet.query import Count, Equals, Histogram
from discreet.rng import Rng

ERROR = 1e-6
"""A bound from runs is wrong with at most this probability."""

_LINE = Setting(Domain(value=Number(-1, 1, step=2)), Neighbours("replace-one"))
_QUARTERS = Setting(Domain(value=Number(0, 3, step=1)), Neighbours("replace-one"))
_SLOPES = Setting(Domain(a=Number(0, 1, step=1), y=Number(-4, 4, step=1)), Neighbours("add-remove"))
_LETTERS = Setting(Domain(v=Category("a", "b")), Neighbours("replace-one"))
_STEEP = Risk(Huber("1/8"), Constant(), "value", interval(-8, 8))


@dataclasses.dataclass(frozen=True, slots=True)
class Sampled:
    """One mechanism that releases numbers, two neighbouring tables, and a mistake that runs must catch; `look` is what
    the attacker makes of a release."""

    honest: Any
    setting: Setting
    first: tuple[Row, ...]
    second: tuple[Row, ...]
    mistake: Mistake
    runs: int = 800
    look: Callable[[Any], float] = lambda released: float(np.ravel(released)[0])

    def finding(self, mechanism: Any) -> Finding:
        """What the runs prove, against the pure epsilon that is claimed."""
        worlds = [self._numbers(mechanism, rows) for rows in (self.first, self.second)]
        claimed, delta = claims(mechanism.guarantee(self.setting.facts(self.first)))[0]
        found = epsilon_lower_bound(*worlds, delta=delta, error=ERROR)
        return Finding(claimed, found, claimed, "sampled", delta)

    def _numbers(self, mechanism: Any, rows: tuple[Row, ...]) -> list[float]:
        return [self.look(each) for each in sample(mechanism, rows, self.setting, runs=self.runs, rng=Rng())]


@dataclasses.dataclass(frozen=True, slots=True)
class Attempts:
    """One mechanism that tries until it succeeds, two neighbouring tables, and a price that is too low."""

    honest: _Trying
    setting: Setting
    first: tuple[Row, ...]
    second: tuple[Row, ...]
    mistake: Mistake
    reach: int = 4  # of a jump; those beyond the grid fail, so nothing is missed

    def finding(self, mechanism: Any) -> Finding:
        once = _Once(mechanism.honest if isinstance(mechanism, Twin) else mechanism)
        p, q = (_given_success(law(once, rows, self.setting, reach=self.reach)) for rows in (self.first, self.second))
        return epsilon_finding(p, q, mechanism.guarantee(self.setting.facts(self.first)))


_Trying = LineExponential | RankQuantile | RankBounds | GridExponential


@dataclasses.dataclass(frozen=True, slots=True)
class _Once:
    """One attempt, or one for each of two bounds; None if it fails."""

    honest: _Trying

    def guarantee(self, facts: Facts) -> Guarantee:
        return self.honest.guarantee(facts)

    def run(self, data: Dataset, rng: Rng) -> Any:
        if isinstance(self.honest, RankBounds):
            found = [part.sampler(data).attempt(rng) for part in self.honest.parts]
            return None if None in found else tuple(sorted(found))
        if isinstance(self.honest, GridExponential):
            problem = problem_of(self.honest.risk, self.honest.points, data.facts)
            assert isinstance(problem, LinearProblem)
            return problem.sampler(data, self.honest.rate * problem.unit).attempt(rng)
        return self.honest.sampler(data).attempt(rng)


def _given_success(found: Law) -> Law:
    mass = {outcome: p for outcome, p in found.mass.items() if outcome is not None}
    total = math.fsum(mass.values())
    return Law({outcome: p / total for outcome, p in mass.items()}, 1e-12)


# Mistakes.


def _tenth_of_the_noise(honest: Descent | NeuralDescent, data: Dataset, rng: Rng) -> Any:
    bolder = dataclasses.replace(honest, noise=type(honest.noise)(honest.noise.scale / 10))
    return bolder.run(data, rng)


def _one_step(honest: Descent, facts: Facts) -> Guarantee:
    return dataclasses.replace(honest, steps=1).guarantee(facts)


def _one_round(honest: AveragedWeights, facts: Facts) -> Guarantee:
    return Guarantee.of_bounded_range(2 * honest.rate, neighbours=facts.neighbours)


def _first_alone(honest: Marginals, facts: Facts) -> Guarantee:
    query = honest.queries[0]
    assert isinstance(query, Histogram)
    return Laplace(query, honest.scales[0]).guarantee(facts)


def _one_bound(honest: RankBounds, facts: Facts) -> Guarantee:
    return honest.parts[0].guarantee(facts)


def _radius(honest: GridExponential, facts: Facts) -> Guarantee:
    """The slope of the absolute loss is 1, and so is a row's length."""
    assert isinstance(honest.risk, Risk)
    assert isinstance(honest.risk.feasible, Ball)
    return Guarantee.of_bounded_range(honest.rate * honest.risk.feasible.radius, neighbours=facts.neighbours)


QUIET_STEP = Mistake("draws a tenth of the noise that its step is priced for", run=_tenth_of_the_noise)
ONE_STEP_PRICE = Mistake("pays for one step of eight", price=_one_step)
ONE_ROUND_PRICE = Mistake("pays for one round of three", price=_one_round)
ONE_BOUND_PRICE = Mistake("pays for one bound of two", price=_one_bound)
RADIUS_PRICE = Mistake("charges a ball by its radius instead of its diameter", price=_radius)
FIRST_PRICE = Mistake("pays for the first of two tables", price=_first_alone)


# The attacks.


def _people(*values: int) -> tuple[Row, ...]:
    return tuple({"value": value} for value in values)


def _letters(word: str) -> tuple[Row, ...]:
    return tuple({"v": letter} for letter in word)


def _descent(steps: int, epsilon: Fraction) -> Descent:
    """Each step costs epsilon: a replacement moves the sum of two slopes by 1/2."""
    return Descent(_STEEP, LaplaceNoise(1 / (2 * epsilon)), steps, Last(Fraction(1, 100)))


def _network() -> NeuralDescent:
    """One step of a network of one unit, whose last weights are the classes' own: a replacement moves the two apart."""
    noise = ProductLaplaceNoise(Fraction(1, 2))
    return NeuralDescent(Constant(), "y", (1,), Fraction(1, 4), noise, 1, Fraction(1, 1000), 3)


def told() -> tuple[Sampled | Attempts, ...]:
    """Attacks by runs, and on attempts."""
    opposite = _people(1, -1), _people(-1, -1)
    line = LineExponential(Risk(Absolute(), Constant(), "value", interval(-1, 1)), Fraction(1, 2))
    most = _people(-1, -1, -1, 1), _people(-1, -1, -1, -1)
    median, bounds = RankQuantile("value", Fraction(1, 2), 1), RankBounds("value", Fraction(1, 10), 1)
    grid = GridExponential(Risk(Absolute(), Declared(("a",), 1, False), "y", Ball(1)), 5, 1)
    pulled = ({"a": 1, "y": -4},) * 12  # to one end of the ball; one more person pulls to the other
    labels = Setting(Domain(y=Category("no", "yes")), Neighbours("replace-one"))
    mine, other = ({"y": "yes"}, {"y": "no"}), ({"y": "no"}, {"y": "no"})
    return (
        Attempts(line, _LINE, *most, mutants.ADD_REMOVE_PRICE),
        Attempts(
            median,
            _QUARTERS,
            _people(0, 0, 2, 2, 2, 0),
            _people(0, 0, 2, 2, 2, 3),
            mutants.ADD_REMOVE_PRICE,
        ),
        Attempts(bounds, _QUARTERS, _people(0, 2, 2, 2, 0), _people(0, 2, 2, 2, 3), ONE_BOUND_PRICE),
        Attempts(grid, _SLOPES, (*pulled, {"a": 1, "y": 4}), pulled, RADIUS_PRICE, reach=9),
        Sampled(_descent(1, Fraction(2)), _LINE, *opposite, QUIET_STEP),
        Sampled(_descent(8, Fraction(3, 2)), _LINE, *opposite, ONE_STEP_PRICE),
        Sampled(_network(), labels, mine, other, QUIET_STEP, look=lambda weights: float(weights[-1] - weights[-3])),
    )


def listed() -> tuple[tuple[Told, int], ...]:
    """Attacks on laws that can be listed, each with how far its noise is listed."""
    # lambda = 1, slope 1/4, two people: a replacement moves the minimiser by 1/4, four steps; the noise has that scale.
    output = OutputPerturbation(_STEEP, 1, "1/1000", Fraction(1, 16), ProductLaplaceNoise(Fraction(1, 4)))
    weights = AveragedWeights([Histogram("v")], 3, 2, Fraction(1, 4), 4)
    tables = Marginals([Histogram("v"), Count(Equals("v", "a"))], [Fraction(1, 2), 1], "laplace")
    return (
        ((output, _LINE, _people(1, -1), _people(-1, -1), mutants.ADD_REMOVE_PRICE), 50),
        ((tables, _LETTERS, _letters("ab"), _letters("bb"), FIRST_PRICE), 8),
        ((weights, _LETTERS, _letters("aabb"), _letters("abbb"), ONE_ROUND_PRICE), 8),
    )
