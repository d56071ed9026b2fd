"""Broken twins of the mechanisms: each claims a guarantee that it does not keep.

They are here so that every audit can show that it catches them. A twin is an honest mechanism and one mistake, which
replaces its price, its draw, or both. It says of itself `broken = True`, and a real ledger refuses it; the audits run
it on made-up rows only. The mistakes are the ones that have been made, in papers and in libraries.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet.data import Dataset, Facts
from discreet.guarantee import Guarantee, Neighbours
from discreet.mechanisms import Exponential, Laplace
from discreet.records import Json, record
from discreet.rng import Rng


@dataclass(frozen=True, slots=True)
class Mistake:
    """What a twin does differently from the honest mechanism; None: nothing."""

    label: str
    price: Callable[[Any, Facts], Guarantee] | None = None
    run: Callable[[Any, Dataset, Rng], Any] | None = None
    begin: Callable[[Any, Dataset, Rng], Any] | None = None
    step: Callable[[Any, Any, Any, Dataset, Rng], tuple[Any, Any]] | None = None


@dataclass(frozen=True, slots=True)
class Twin:
    """An honest mechanism or conversation with one mistake."""

    broken: ClassVar[bool] = True
    honest: Any
    mistake: Mistake

    def stated_record(self) -> dict[str, Json]:
        return {"name": "mutant/1", "mistake": self.mistake.label, "honest": record(self.honest)}

    def guarantee(self, facts: Facts) -> Guarantee:
        price = self.mistake.price
        found: Guarantee = price(self.honest, facts) if price else self.honest.guarantee(facts)
        return found

    def run(self, data: Dataset, rng: Rng) -> Any:
        run = self.mistake.run
        return run(self.honest, data, rng) if run else self.honest.run(data, rng)

    def check(self, ask: Any, facts: Facts) -> None:
        self.honest.check(ask, facts)

    def begin(self, data: Dataset, rng: Rng) -> Any:
        begin = self.mistake.begin
        return begin(self.honest, data, rng) if begin else self.honest.begin(data, rng)

    def step(self, state: Any, ask: Any, data: Dataset, rng: Rng) -> tuple[Any, Any]:
        step = self.mistake.step or (lambda honest, *rest: honest.step(*rest))
        return step(self.honest, state, ask, data, rng)


# --- noise -----------------------------------------------------------------------------------------------------------


def _half_of_the_noise(honest: Laplace, data: Dataset, rng: Rng) -> Any:
    return type(honest)(honest.query, honest.scale / 2).run(data, rng)


def _never_negative(honest: Laplace, data: Dataset, rng: Rng) -> Any:
    sums = data.exact_sum(honest.query.partial)
    return int(sums) + rng.geometric(honest.scale / honest.query.unit(data.facts))


def _inverse_in_floats(honest: Laplace, data: Dataset, rng: Rng) -> float:
    uniform = (rng.integers(2**53) + 0.5) / 2**53 - 0.5
    noise = -float(honest.scale) * math.copysign(1.0, uniform) * math.log(1 - 2 * abs(uniform))
    return float(int(data.exact_sum(honest.query.partial))) + noise


def _add_remove_price(honest: Any, facts: Facts) -> Guarantee:
    believed = honest.guarantee(Facts(facts.domain, Neighbours("add-remove", facts.neighbours.rows), facts.size))
    return Guarantee(facts.neighbours, believed.renyi, believed.pure, believed.failure, believed.gaussian)


HALVED_NOISE = Mistake("draws half of the noise it is priced for", run=_half_of_the_noise)
ONE_SIDED_NOISE = Mistake("adds noise that is never negative", run=_never_negative)
TEXTBOOK_FLOATS = Mistake("draws float noise by inverting the distribution function [Mir12]", run=_inverse_in_floats)
ADD_REMOVE_PRICE = Mistake("prices an add-remove sensitivity under replace-one", price=_add_remove_price)


def lecture_scale(l2_squared: int, *, epsilon: float, delta: float) -> float:
    """Lecture 10's scale for product Laplace noise, sqrt(D2 ln(1/delta)) / epsilon: too small for small delta."""
    return math.sqrt(l2_squared * math.log(1 / delta)) / epsilon


# --- selection -------------------------------------------------------------------------------------------------------


def _bounded_range_price(honest: Any, facts: Facts) -> Guarantee:
    return Exponential(honest.score, honest.rate).guarantee(facts)


FLIPPED_AS_BOUNDED_RANGE = Mistake("charges permute-and-flip epsilon^2/8, as if bounded", price=_bounded_range_price)


# --- AboveThreshold: the published wrong variants of [LSL17], and ours ------------------------------------------------


def _exact_question(honest: Any, state: Any, ask: Any, data: Dataset, rng: Rng) -> tuple[Any, Any]:
    above = ask.margin(data) >= state * honest.sensitivity
    return (None if above else state), above


def _goes_on(honest: Any, state: Any, ask: Any, data: Dataset, rng: Rng) -> tuple[Any, Any]:
    return state, honest.step(state, ask, data, rng)[1]


def _shows_value(honest: Any, state: Any, ask: Any, data: Dataset, rng: Rng) -> tuple[Any, Any]:
    noise = rng.geometric(honest.question_scale / honest.sensitivity)
    noisy = ask.margin(data) + noise * honest.sensitivity
    return (None, ("passed", noisy)) if noisy >= state * honest.sensitivity else (state, False)


def _three_yes(honest: Any, state: Any, ask: Any, data: Dataset, rng: Rng) -> tuple[Any, Any]:
    threshold, left = state
    above = honest.step(threshold, ask, data, rng)[1]
    return ((threshold, left - above) if left > above else None), above


def _redrawn(honest: Any, state: Any, ask: Any, data: Dataset, rng: Rng) -> tuple[Any, Any]:
    after, above = honest.step(honest.begin(data, rng), ask, data, rng)
    return (None if after is None else 0), above


def _monotone_price(honest: Any, facts: Facts) -> Guarantee:
    epsilon = honest.sensitivity / honest.threshold_scale + honest.sensitivity / honest.question_scale
    return Guarantee.of_pure(epsilon, neighbours=facts.neighbours)


_GRID = Fraction(7, 10)


def _off_grid_begin(honest: Any, data: Dataset, rng: Rng) -> Any:
    return rng.geometric(honest.threshold_scale / (_GRID * honest.sensitivity))


def _off_grid_step(honest: Any, state: Any, ask: Any, data: Dataset, rng: Rng) -> tuple[Any, Any]:
    grid = _GRID * honest.sensitivity
    noise = rng.geometric(honest.question_scale / grid)
    above = ask.margin(data) + (noise - state) * grid >= 0
    return (None if above else state), above


NO_THRESHOLD_NOISE = Mistake("forgets to blur the threshold", begin=lambda honest, data, rng: 0)
NO_QUESTION_NOISE = Mistake("compares exact values with the threshold [LSL17, 5]", step=_exact_question)
NEVER_STOPS = Mistake("goes on after a yes, for the price of one [LSL17, 6]", step=_goes_on)
RELEASES_NOISY_VALUE = Mistake("shows the noisy value that passed [LSL17, 3]", step=_shows_value)
THREE_YES_ONE_PRICE = Mistake(
    "allows three yes on one threshold at the noise of one [LSL17, 4]",
    begin=lambda honest, data, rng: (honest.begin(data, rng), 3),
    step=_three_yes,
)
REDRAWN_THRESHOLD = Mistake(
    "draws the threshold anew for every question, pays once", begin=lambda honest, data, rng: 0, step=_redrawn
)
MONOTONE_PRICE = Mistake("prices questions that move both ways as monotone", price=_monotone_price)
OFF_GRID = Mistake(
    "draws noise on a grid the sensitivity is no multiple of", begin=_off_grid_begin, step=_off_grid_step
)


# --- stable histograms -----------------------------------------------------------------------------------------------


def _shown(honest: Any, data: Dataset, rng: Rng, *, threshold: int, noise_bound: int) -> Any:
    counts = sorted(data.exact_sum(honest.keys.partial).items())
    noise = rng.truncated_laplace(honest.scale, noise_bound, len(counts))
    noisy = np.array([count for _, count in counts], dtype=np.int64) + noise
    return tuple((counts[i][0], int(noisy[i])) for i in np.flatnonzero(noisy > threshold))


def _passes_at_bound(honest: Any, data: Dataset, rng: Rng) -> Any:
    return _shown(honest, data, rng, threshold=honest.bound - 1, noise_bound=honest.bound)


def _ends_early(honest: Any, data: Dataset, rng: Rng) -> Any:
    return _shown(honest, data, rng, threshold=honest.bound - 1, noise_bound=honest.bound - 1)


def _one_row_price(honest: Any, facts: Facts) -> Guarantee:
    single = honest.guarantee(Facts(facts.domain, Neighbours(facts.neighbours.kind, 1), facts.size))
    blocks = 2 if facts.neighbours.replace_one else 1
    block = Guarantee.of_approximate(
        facts.neighbours.rows / honest.scale, delta=single.failure / blocks, neighbours=facts.neighbours
    )
    return block * blocks


def _first_seen(honest: Any, data: Dataset, rng: Rng) -> Any:
    columns = honest.histogram.keys.columns
    arrived = data.exact_sum(lambda batch: Counter(zip(*(batch[name].tolist() for name in columns), strict=True)))
    counts = list(arrived.items())
    noise = rng.truncated_laplace(honest.histogram.scale, honest.histogram.bound, len(counts))
    noisy = [(key, int(count + x)) for (key, count), x in zip(counts, noise, strict=True)]
    passed = [each for each in noisy if each[1] > honest.histogram.bound]
    return max(passed, key=lambda each: each[1])[0] if passed else None


PASSES_AT_BOUND = Mistake("shows bins with count + noise >= bound", run=_passes_at_bound)
TRUNCATED_EARLY = Mistake("ends its noise one step before the bound it is priced for", run=_ends_early)
ONE_ROW_PRICE = Mistake("charges one row's failure for a person with several", price=_one_row_price)
FIRST_SEEN_TIES = Mistake("breaks ties by the order of arrival", run=_first_seen)
