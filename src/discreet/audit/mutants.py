"""Broken twins of the mechanisms: each claims a guarantee that it does not keep.

They are here so that every audit can show that it catches them. A twin is an honest mechanism and one mistake, which
replaces its price, its draw, or both. It says of itself `broken = True`, and a real ledger refuses it; the audits run
it on made-up rows only. The mistakes are the ones that have been made, in papers and in libraries.

A mistake is written as the function that is wrong, under `@mistake(label, part)`: the label completes the sentence "a
twin that ...", the part is the method of the honest mechanism that the function replaces.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet.core import Guarantee, Json, Neighbours, Rng, record
from discreet.data import Dataset, Facts


@dataclass(frozen=True, slots=True)
class Mistake:
    """What a twin does differently from the honest mechanism or session; None: nothing.

    plant   for whole sessions: gets the honest session and the object that answers, and spoils the latter
    """

    label: str
    price: Callable[[Any, Facts], Guarantee] | None = None
    run: Callable[[Any, Dataset, Rng], Any] | None = None
    begin: Callable[[Any, Dataset, Rng], Any] | None = None
    step: Callable[[Any, Any, Any, Dataset, Rng], tuple[Any, Any]] | None = None
    plant: Callable[[Any, Any], None] | None = None


def mistake(label: str, part: str, **more: Callable[..., Any]) -> Callable[[Callable[..., Any]], Mistake]:
    """Makes a function the part in which a twin differs: its "price", "run", "begin", "step" or "plant"."""
    return lambda function: Mistake(label, **{part: function}, **more)


@dataclass(frozen=True, slots=True)
class Twin:
    """An honest mechanism or conversation with one mistake."""

    broken: ClassVar[bool] = True
    honest: Any
    mistake: Mistake

    def stated_record(self) -> dict[str, Json]:
        return {"name": "mutant/1", "mistake": self.mistake.label, "honest": record(self.honest)}

    def guarantee(self, facts: Facts) -> Guarantee:
        return (self.mistake.price or type(self.honest).guarantee)(self.honest, facts)

    def run(self, data: Dataset, rng: Rng) -> Any:
        return (self.mistake.run or type(self.honest).run)(self.honest, data, rng)

    def check(self, ask: Any, facts: Facts) -> None:
        self.honest.check(ask, facts)

    def begin(self, data: Dataset, rng: Rng) -> Any:
        return (self.mistake.begin or type(self.honest).begin)(self.honest, data, rng)

    def step(self, state: Any, ask: Any, data: Dataset, rng: Rng) -> tuple[Any, Any]:
        answered: tuple[Any, Any] = (self.mistake.step or type(self.honest).step)(self.honest, state, ask, data, rng)
        return answered


# --- noise -----------------------------------------------------------------------------------------------------------

_SCALES = {"scale", "few_scale", "variance", "total_variance", "total_scale", "side_scale"}
_SCALES |= {"threshold_scale", "question_scale"}
_PARTS = {"noise", "histogram", "routine", "inner", "median", "distance"}
"""Fields that hold noise, and fields that hold a part with noise of its own."""


def with_noise(honest: Any, times: Fraction) -> Any:
    """The mechanism with its noise multiplied: scales are multiplied, rates divided, the rest stays.

    The `rate` of a mechanism that holds a `noise` is not one of noise: it is the length of a descent's steps.
    """
    values = {field.name: getattr(honest, field.name) for field in dataclasses.fields(honest)}
    changed: dict[str, Any] = {name: value * times for name, value in values.items() if name in _SCALES}
    changed |= {name: with_noise(value, times) for name, value in values.items() if name in _PARTS}
    for name in ("medians", "distances"):
        changed |= {name: tuple(with_noise(each, times) for each in values[name])} if name in values else {}
    if "scales" in values:
        changed["scales"] = tuple(scale * times for scale in values["scales"])
    if "rate" in values and "noise" not in values:
        changed |= {name: values[name] / times for name in ("rate", "outer") if name in values}
    return dataclasses.replace(honest, **changed)


@mistake("draws half of the noise it is priced for", "run")
def halved_noise(honest: Any, data: Dataset, rng: Rng) -> Any:
    return with_noise(honest, Fraction(1, 2)).run(data, rng)


@mistake("adds noise that is never negative", "run")
def one_sided_noise(honest: Any, data: Dataset, rng: Rng) -> Any:
    sums = data.exact_sum(honest.query)
    return int(sums) + rng.geometric(honest.scale / honest.query.unit(data.facts))


@mistake("prices an add-remove sensitivity under replace-one", "price")
def add_remove_price(honest: Any, facts: Facts) -> Guarantee:
    believed: Guarantee = honest.guarantee(
        dataclasses.replace(facts, neighbours=Neighbours("add-remove", facts.neighbours.rows))
    )
    return dataclasses.replace(believed, neighbours=facts.neighbours)


# --- AboveThreshold: the published wrong variants of [LSL17], and ours ------------------------------------------------

no_threshold_noise = Mistake("forgets to blur the threshold", begin=lambda honest, data, rng: 0)


@mistake("compares exact values with the threshold [LSL17, 5]", "step")
def no_question_noise(honest: Any, state: Any, ask: Any, data: Dataset, rng: Rng) -> tuple[Any, Any]:
    above = ask.margin(data) >= state * honest.sensitivity
    return (None if above else state), above


@mistake("goes on after a yes, for the price of one [LSL17, 6]", "step")
def never_stops(honest: Any, state: Any, ask: Any, data: Dataset, rng: Rng) -> tuple[Any, Any]:
    return state, honest.step(state, ask, data, rng)[1]


@mistake("shows the noisy value that passed [LSL17, 3]", "step")
def releases_noisy_value(honest: Any, state: Any, ask: Any, data: Dataset, rng: Rng) -> tuple[Any, Any]:
    noise = rng.geometric(honest.question_scale / honest.sensitivity)
    noisy = ask.margin(data) + noise * honest.sensitivity
    return (None, ("passed", noisy)) if noisy >= state * honest.sensitivity else (state, False)


@mistake("prices questions that move both ways as monotone", "price")
def monotone_price(honest: Any, facts: Facts) -> Guarantee:
    epsilon = honest.sensitivity / honest.threshold_scale + honest.sensitivity / honest.question_scale
    return Guarantee.of_pure(epsilon, neighbours=facts.neighbours)


_GRID = Fraction(7, 10)


@mistake(
    "draws noise on a grid the sensitivity is no multiple of",
    "step",
    begin=lambda honest, data, rng: rng.geometric(honest.threshold_scale / (_GRID * honest.sensitivity)),
)
def off_grid(honest: Any, state: Any, ask: Any, data: Dataset, rng: Rng) -> tuple[Any, Any]:
    grid = _GRID * honest.sensitivity
    noise = rng.geometric(honest.question_scale / grid)
    above = ask.margin(data) + (noise - state) * grid >= 0
    return (None if above else state), above


# --- stable histograms -----------------------------------------------------------------------------------------------


def _show_bins(honest: Any, data: Dataset, rng: Rng, *, noise_bound: int) -> Any:
    counts = sorted(data.exact_sum(honest.keys).items())
    noise = rng.truncated_laplace(honest.scale, noise_bound, len(counts))
    noisy = np.array([count for _, count in counts], dtype=np.int64) + noise
    return tuple((counts[i][0], int(noisy[i])) for i in np.flatnonzero(noisy >= honest.bound))


@mistake("shows bins with count + noise >= bound", "run")
def passes_at_bound(honest: Any, data: Dataset, rng: Rng) -> Any:
    return _show_bins(honest, data, rng, noise_bound=honest.bound)


@mistake("ends its noise one step before the bound it is priced for", "run")
def truncated_early(honest: Any, data: Dataset, rng: Rng) -> Any:
    return _show_bins(honest, data, rng, noise_bound=honest.bound - 1)


@mistake("breaks ties by the order of arrival", "run")
def first_seen_ties(honest: Any, data: Dataset, rng: Rng) -> Any:
    histogram, names = honest.histogram, honest.histogram.keys.columns
    arrived = data.exact_sum(lambda batch: Counter(zip(*(batch[name].tolist() for name in names), strict=True)))
    noise = rng.truncated_laplace(histogram.scale, histogram.bound, len(arrived))
    noisy = {key: int(count + x) for (key, count), x in zip(arrived.items(), noise, strict=True)}
    passed = [key for key, count in noisy.items() if count > histogram.bound]
    return max(passed, key=noisy.__getitem__, default=None)
