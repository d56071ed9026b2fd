"""Release one candidate, chosen by a noisy preference for high scores.

The score of every candidate is a sum over rows of bounded integers: a query whose coordinates are the candidates. What
prices a selection is the *range* of the query: how much further one candidate's score can move than another's when one
person changes. A shift common to all candidates is free.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from discreet.core import Exact, Guarantee, ParameterError, Rng, checked_rate, exact
from discreet.data import Batch, Dataset, Facts, Needs
from discreet.query import Query, listed, numbers


@dataclass(frozen=True, slots=True, init=False)
class _Selection:
    """What the two mechanisms have in common: all but the draw and its price."""

    score: Query
    rate: Fraction

    def __init__(self, score: Query, rate: Exact) -> None:
        exact.freeze(self, score=listed(score), rate=exact.positive(rate=rate))

    @classmethod
    def of(cls, score: Query, *, epsilon: Exact, facts: Facts) -> Self:
        """The mechanism whose pure guarantee on these facts is exactly epsilon."""
        span = cls(score, 1)._span(facts)
        if span == 0:
            raise ParameterError("no neighbour can change this score: release its best candidate without a mechanism")
        return cls(score, exact.positive(epsilon=epsilon) / span)

    def numbers(self, facts: Facts) -> int:
        return numbers(self.score, facts)

    def needs(self, facts: Facts) -> Needs:
        return Needs(queries=(self.score,))

    def _span(self, facts: Facts) -> Fraction:
        """The rate times the range of the scores."""
        span = self._step_rate(facts) * self.score.sensitivity(facts).range
        if self.score.partial(Batch.empty(facts.domain)).dtype != np.int64:
            raise ParameterError("these scores may not fit 64 bits: take a coarser step for the column")
        return span

    def _step_rate(self, facts: Facts) -> Fraction:
        """The rate for one integer step of the score, if it can be drawn with."""
        return checked_rate(self.rate * self.score.unit(facts))


class Exponential(_Selection):
    """Release the index i of a candidate with probability proportional to exp(rate * score_i).

    Theorem.   If the scores' differences between neighbours span at most r (max - min over the candidates), the release
               has bounded range rate * r: it is (rate * r)-DP and ((rate * r)^2 / 8)-zCDP.
    Accuracy.  P[score <= best - x] <= m exp(-rate x) for m candidates; E[best - score] <= ln(m) / rate.
    Edges.     Equal scores are equally likely; the rows cannot make a weight vanish or overflow, whatever the scores.
    Reference. Lecture 9; [MT07]; bounded range [DR19], zCDP [CR21].
    """

    __slots__ = ()
    NAME: ClassVar[str] = "exponential/1"

    def guarantee(self, facts: Facts) -> Guarantee:
        return Guarantee.of_bounded_range(self._span(facts), neighbours=facts.neighbours)

    def run(self, data: Dataset, rng: Rng) -> int:
        return rng.select(data.exact_sum(self.score).ravel(), self._step_rate(data.facts))


class PermuteAndFlip(_Selection):
    """Visit the candidates in random order; release the first that survives a coin of bias exp(rate (score - best)).

    Theorem.   If the scores' differences between neighbours span at most r, the release is (rate * r)-DP. (Subtract the
               least difference from all scores, which changes no coin: the differences then lie in [0, r].) It has no
               bounded range, so its zCDP is only that of any pure mechanism, (rate * r)^2 / 2.
    Accuracy.  E[best - score] is at most the exponential mechanism's, and up to half of it.
    Edges.     Flipping all coins first and choosing uniformly among the survivors is the same law; the best survives
               always, so there is one.
    Reference. [MS20]; equal to report-noisy-max with exponential noise [DKS21].
    """

    __slots__ = ()
    NAME: ClassVar[str] = "permute-and-flip/1"

    def guarantee(self, facts: Facts) -> Guarantee:
        return Guarantee.of_pure(self._span(facts), neighbours=facts.neighbours)

    def run(self, data: Dataset, rng: Rng) -> int:
        scores = data.exact_sum(self.score).ravel()
        survivors = np.flatnonzero(rng.flips(scores.max() - scores, self._step_rate(data.facts)))
        return int(survivors[rng.integers(len(survivors))])
