"""Attacks on fitted models, and on workloads: two people, one of whom is replaced by his opposite.

A loss that is a line where the two stand is the worst case of every theorem: each pulls with his whole weight. Output
perturbation has few values, so its law is listed. The exponential mechanism on a line tries until an attempt succeeds:
its law is that of one attempt given that it succeeds. Descents have too many values; they are run, and what is certain
about their epsilon is what the runs prove (`audit.sampled`).
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.audit import mutants
from discreet.audit.divergence import Finding, claims, epsilon_finding
from discreet.audit.laws import Law, Row, Setting, law, sample
from discreet.audit.mutants import Mistake, Twin
from discreet.audit.rules import Told
from discreet.audit.sampled import epsilon_lower_bound
from discreet.data import Dataset, Facts
from discreet.domain import Category, Domain, Number
from discreet.erm.descent import Descent
from discreet.erm.features import Constant
from discreet.erm.line import LineExponential
from discreet.erm.losses import Absolute, Huber
from discreet.erm.output import OutputPerturbation
from discreet.erm.risk import Risk
from discreet.erm.schedules import Last
from discreet.erm.sets import interval
from discreet.guarantee import Guarantee, Neighbours
from discreet.mechanisms.additive import Laplace
from discreet.mechanisms.noises import LaplaceNoise, ProductLaplaceNoise
from discreet.noise import Rng
from discreet.pmw.marginals import Marginals
from discreet.pmw.mwem import AveragedWeights
from discreet.predicate import Equals
from discreet.query import Count, Histogram

ERROR = 1e-6
"""A bound from runs is wrong with at most this probability."""

_LINE = Setting(Domain(value=Number(-1, 1, step=2)), Neighbours("replace-one"))
_LETTERS = Setting(Domain(v=Category("a", "b")), Neighbours("replace-one"))
_STEEP = Risk(Huber("1/8"), Constant(), "value", interval(-8, 8))


@dataclasses.dataclass(frozen=True, slots=True)
class Sampled:
    """One mechanism that releases a number, two neighbouring tables, and a mistake that runs must catch."""

    honest: Any
    setting: Setting
    first: tuple[Row, ...]
    second: tuple[Row, ...]
    mistake: Mistake
    runs: int = 800

    def finding(self, mechanism: Any) -> Finding:
        """What the runs prove, against the pure epsilon that is claimed."""
        worlds = [self._numbers(mechanism, rows) for rows in (self.first, self.second)]
        claimed, delta = claims(mechanism.guarantee(self.setting.facts(self.first)))[0]
        found = epsilon_lower_bound(*worlds, delta=delta, error=ERROR)
        return Finding(claimed, found, claimed, "sampled", delta)

    def _numbers(self, mechanism: Any, rows: tuple[Row, ...]) -> list[float]:
        drawn = sample(mechanism, rows, self.setting, runs=self.runs, rng=Rng())
        return [float(np.ravel(each)[0]) for each in drawn]


@dataclasses.dataclass(frozen=True, slots=True)
class Attempts:
    """One mechanism that tries until it succeeds, two neighbouring tables, and a price that is too low."""

    honest: LineExponential
    setting: Setting
    first: tuple[Row, ...]
    second: tuple[Row, ...]
    mistake: Mistake

    def finding(self, mechanism: Any) -> Finding:
        once = _Once(mechanism.honest if isinstance(mechanism, Twin) else mechanism)
        p, q = (_given_success(law(once, rows, self.setting, reach=_REACH)) for rows in (self.first, self.second))
        return epsilon_finding(p, q, mechanism.guarantee(self.setting.facts(self.first)))


_REACH = 4  # of a jump; those beyond the grid fail, so nothing is missed


@dataclasses.dataclass(frozen=True, slots=True)
class _Once:
    """One attempt; None if it fails."""

    honest: LineExponential

    def guarantee(self, facts: Facts) -> Guarantee:
        return self.honest.guarantee(facts)

    def run(self, data: Dataset, rng: Rng) -> Any:
        return self.honest.sampler(data).attempt(rng)


def _given_success(found: Law) -> Law:
    mass = {outcome: p for outcome, p in found.mass.items() if outcome is not None}
    total = math.fsum(mass.values())
    return Law({outcome: p / total for outcome, p in mass.items()}, 1e-12)


# Mistakes.


def _tenth_of_the_noise(honest: Descent, data: Dataset, rng: Rng) -> Any:
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


QUIET_STEP = Mistake("draws a tenth of the noise that its step is priced for", run=_tenth_of_the_noise)
ONE_STEP_PRICE = Mistake("pays for one step of eight", price=_one_step)
ONE_ROUND_PRICE = Mistake("pays for one round of three", price=_one_round)
FIRST_PRICE = Mistake("pays for the first of two tables", price=_first_alone)


# The attacks.


def _people(*values: int) -> tuple[Row, ...]:
    return tuple({"value": value} for value in values)


def _letters(word: str) -> tuple[Row, ...]:
    return tuple({"v": letter} for letter in word)


def _descent(steps: int, epsilon: Fraction) -> Descent:
    """Each step costs epsilon: a replacement moves the sum of two slopes by 1/2."""
    return Descent(_STEEP, LaplaceNoise(1 / (2 * epsilon)), steps, Last(Fraction(1, 100)))


def told() -> tuple[Sampled | Attempts, ...]:
    """Attacks by runs, and on attempts."""
    opposite = _people(1, -1), _people(-1, -1)
    line = LineExponential(Risk(Absolute(), Constant(), "value", interval(-1, 1)), Fraction(1, 2))
    most = _people(-1, -1, -1, 1), _people(-1, -1, -1, -1)
    return (
        Attempts(line, _LINE, *most, mutants.ADD_REMOVE_PRICE),
        Sampled(_descent(1, Fraction(2)), _LINE, *opposite, QUIET_STEP),
        Sampled(_descent(8, Fraction(3, 2)), _LINE, *opposite, ONE_STEP_PRICE),
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
