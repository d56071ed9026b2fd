"""Any number of adaptive yes/no questions for one price: the conversation ends with its first "yes".

A question is a counting or summing query and a public threshold (`IsAbove`); with a `center` it asks about the distance
|query - center|. `IsFar` asks the same about all numbers of a histogram at once: is any of them far from a public
guess? That is how private multiplicative weights asks whether its guess will do. One noisy threshold is drawn when the
conversation opens and kept secret until it ends; every question draws fresh noise, and that noise is never used for
anything else. Questions answered "no" are free; after a "yes" a new conversation must be paid.

Both versions draw noise on the grid of step `sensitivity`. A grid on which the sensitivity is not a whole number of
steps breaks the theorem (losses up to 1.4 times the claim have been found); the values and thresholds themselves may
lie anywhere, and are compared as exact fractions.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from discreet.core import Exact, Guarantee, ParameterError, Rng, checked_scale, exact
from discreet.data import Dataset, Facts, Needs
from discreet.query import Count, Question, Sum, is_question, numbers, require_numbers


@dataclass(frozen=True, slots=True, init=False)
class IsAbove:
    """The question "is the query, or its distance from center, at least the threshold?", in the query's units."""

    NAME: ClassVar[str] = "above/1"
    query: Count | Sum
    threshold: Fraction
    center: Fraction | None

    def __init__(self, query: Count | Sum, threshold: Exact, center: Exact | None = None) -> None:
        if not is_question(query) or query.grouped:
            raise ParameterError(f"a question is about a Count or a Sum, found {type(query).__name__}")
        middle = None if center is None else exact.number(center=center)
        exact.freeze(self, query=query, threshold=exact.number(threshold=threshold), center=middle)

    @property
    def monotone(self) -> bool:
        return self.center is None and self.query.monotone

    def moved(self, facts: Facts) -> Fraction:
        """The sensitivity: how far one person can move the margin."""
        return self.query.sensitivity(facts).linf * self.query.unit(facts)

    def margin(self, data: Dataset) -> Fraction:
        """The exact value minus the threshold: private, read only inside a step."""
        value = int(data.exact_sum(self.query)) * self.query.unit(data.facts)
        return (value if self.center is None else abs(value - self.center)) - self.threshold


@dataclass(frozen=True, slots=True, init=False)
class IsFar:
    """The question "is any number of the query at least `threshold` away from its guess?".

    guess      whole numbers, one for each number of the query, flattened; in the integers that the query sums
    worth      how many of those integers make one unit of the threshold: 1 for counts. A sum of contributions up to w
               asked with worth w has the sensitivity of a count.

    Theorem.   The largest distance max_i |q_i - g_i| / worth moves by at most |d|_inf / worth when q moves by d: one
               question about a whole histogram costs what a question about one count does.
    """

    NAME: ClassVar[str] = "far/1"
    monotone: ClassVar[bool] = False
    query: Question
    guess: tuple[int, ...]
    threshold: Fraction
    worth: int

    def __init__(self, query: Question, guess: Iterable[int], threshold: Exact, worth: int = 1) -> None:
        if not is_question(query):
            raise ParameterError(f"a question is about a Count, a Sum or a Histogram, found {type(query).__name__}")
        far = {"threshold": exact.number(threshold=threshold), "worth": exact.whole(worth=worth)}
        exact.freeze(self, query=query, guess=tuple(map(int, guess)), **far)

    def moved(self, facts: Facts) -> Fraction:
        """The sensitivity: how far one person can move the margin."""
        moved, wanted, found = self.query.sensitivity(facts), numbers(self.query, facts), len(self.guess)
        if found != wanted:
            raise ParameterError(f"guess must have {wanted} numbers, one for each of the query's; found {found}")
        return Fraction(moved.linf, self.worth)

    def margin(self, data: Dataset) -> Fraction:
        """The largest distance minus the threshold: private, read only inside a step."""
        values = data.exact_sum(self.query).ravel()
        furthest = max(abs(int(value) - guess) for value, guess in zip(values, self.guess, strict=True))
        return Fraction(furthest, self.worth) - self.threshold


@dataclass(frozen=True, slots=True, repr=False)
class Looked:
    """A question whose margin was read already. Private: it lives from the reading of the rows to the step."""

    _margin: Fraction

    def margin(self, data: Dataset) -> Fraction:
        return self._margin


@dataclass(frozen=True, slots=True, init=False)
class _Conversation(ABC):
    """What the two versions have in common: all but the law of the noise."""

    threshold_scale: Fraction
    question_scale: Fraction
    sensitivity: Fraction
    monotone: bool

    def __init__(
        self, threshold_scale: Exact, question_scale: Exact, sensitivity: Exact = 1, monotone: bool = False
    ) -> None:
        if not isinstance(monotone, bool):
            raise ParameterError(f"monotone must be True or False, found {monotone!r}")
        given = {"threshold_scale": threshold_scale, "question_scale": question_scale, "sensitivity": sensitivity}
        exact.freeze(self, monotone=monotone, **{name: exact.positive(**{name: each}) for name, each in given.items()})
        for scale in (self.threshold_scale, self.question_scale):
            checked_scale(scale / self.sensitivity)

    def guarantee(self, facts: Facts) -> Guarantee:
        if self.monotone and facts.neighbours.replace_one:
            cheaper = "monotone questions are cheaper under add-remove only"
            raise ParameterError(f"{cheaper}; under replace-one leave it False")
        times = 1 if self.monotone else 2
        epsilon = self.sensitivity / self.threshold_scale + times * self.sensitivity / self.question_scale
        return Guarantee.of_pure(epsilon, neighbours=facts.neighbours)

    def check(self, ask: IsAbove | IsFar, facts: Facts) -> None:
        if not isinstance(ask, (IsAbove, IsFar)):
            found = type(ask).__name__
            raise ParameterError(f"a question is an IsAbove(query, threshold) or an IsFar(...), found {found}")
        moved, paid = ask.moved(facts), self.sensitivity
        if moved > paid:
            raise ParameterError(f"this question has sensitivity {moved}; the conversation was paid for {paid}")
        require_numbers(numbers(ask.query, facts))
        if self.monotone and not ask.monotone:
            raise ParameterError("this conversation was paid for monotone questions: counts, without a center")

    def needs(self, facts: Facts, ask: IsAbove | IsFar | None = None) -> Needs:
        return Needs(queries=() if ask is None else (ask.query,))

    def look(self, ask: IsAbove | IsFar, data: Dataset) -> Looked:
        return Looked(ask.margin(data))

    @abstractmethod
    def _noise(self, scale: Fraction, rng: Rng) -> int:
        """One draw of the law whose price `guarantee` states."""

    def begin(self, data: Dataset, rng: Rng) -> int:
        return self._noise(self.threshold_scale / self.sensitivity, rng)

    def step(self, state: int, ask: IsAbove | IsFar | Looked, data: Dataset, rng: Rng) -> tuple[int | None, bool]:
        noise = self._noise(self.question_scale / self.sensitivity, rng)
        above = ask.margin(data) + (noise - state) * self.sensitivity >= 0
        return (None if above else state), above

    def _bound(self, scale: Fraction, beta: Exact) -> Fraction:
        """The least t > 0 on the grid with P[geometric noise >= t] <= beta."""
        steps = math.ceil(float(scale / self.sensitivity) * -math.log(float(exact.probability(beta=beta))))
        return max(1, steps) * self.sensitivity


class AboveThreshold(_Conversation):
    """AboveThreshold with one-sided noise: the threshold and every question get geometric noise, never negative.

    Theorem.   Questions of sensitivity at most D; z and each nu are geometric on the grid of step D with P[z >= j D] =
               exp(-j D / b1) and P[nu >= j D] = exp(-j D / b2); a question is answered "yes" iff value + nu >=
               threshold + z, and the first "yes" ends the conversation. The whole conversation is (D/b1 + 2 D/b2)-DP;
               (D/b1 + D/b2) if `monotone`: add-remove, and adding a row never lowers any question's value.
    Accuracy.  "no" implies value < threshold + z, whatever the questions' noises were: with probability 1 - beta every
               "no" of the conversation has value < threshold + z_bound(beta). "yes" implies value >= threshold - nu.
               This window is half of the Laplace version's.
    Edges.     A question with a center has no monotone form. Several rows per person scale the queries' sensitivity.
    Reference. Lecture 13; proof: docs/proofs/above_threshold.md.
    """

    __slots__ = ()
    NAME: ClassVar[str] = "above-threshold/1"

    def _noise(self, scale: Fraction, rng: Rng) -> int:
        return int(rng.geometric(scale))

    def z_bound(self, beta: Exact) -> Fraction:
        """The least t > 0 on the grid with P[z >= t] <= beta: a "no" means value < threshold + t."""
        return self._bound(self.threshold_scale, beta)

    def nu_bound(self, beta: Exact) -> Fraction:
        """The least t > 0 on the grid with P[nu >= t] <= beta: this question's "yes" means value > threshold - t."""
        return self._bound(self.question_scale, beta)

    def window(self, beta: Exact, *, questions: int) -> Fraction:
        """With probability 1 - beta, every no of this many questions has value < threshold + a and every yes has value
        > threshold - b, with a + b = this window: half of beta for the threshold, half for all the questions."""
        half = exact.probability(beta=beta) / 2
        return self.z_bound(half) + self.nu_bound(half / exact.whole(questions=questions))


class AboveThresholdLaplace(_Conversation):
    """AboveThreshold as lecture 13 has it: two-sided (discrete) Laplace noise on the threshold and on every question.

    Theorem.   As AboveThreshold, with z and nu discrete Laplace of scales b1 and b2 on the grid of step D: (D/b1 +
               2 D/b2)-DP, (D/b1 + D/b2) if `monotone`. With both scales D/e0 one conversation costs 3 e0, not e0.
    Accuracy.  With probability 1 - beta over k questions, "no" implies value < threshold + t and "yes" implies
               value > threshold - t for t = b1 ln(4/beta) + b2 ln(4 k/beta), rounded up to the grid: `window` is 2 t.
    Edges.     As AboveThreshold.
    Reference. Lecture 13; [DR14] theorem 3.23; [LSL17] algorithm 7; docs/proofs/above_threshold.md.
    """

    __slots__ = ()
    NAME: ClassVar[str] = "above-threshold-laplace/1"

    def _noise(self, scale: Fraction, rng: Rng) -> int:
        return int(rng.laplace(scale))

    def window(self, beta: Exact, *, questions: int) -> Fraction:
        """As AboveThreshold.window. Each noise has two tails and counts on both sides: a quarter of beta for each."""
        quarter = exact.probability(beta=beta) / 4
        nu = self._bound(self.question_scale, quarter / exact.whole(questions=questions))
        return 2 * (self._bound(self.threshold_scale, quarter) + nu)
