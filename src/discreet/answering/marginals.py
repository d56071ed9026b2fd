"""Several counts, sums and histograms in one release, each with noise of its own."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet import exact
from discreet.answering.averaged_weights import Together
from discreet.answering.linear_query import Question
from discreet.answering.measurement import Measured
from discreet.data import Dataset, Facts
from discreet.errors import ParameterError
from discreet.exact import Exact
from discreet.guarantee import Guarantee
from discreet.mechanisms import NOISES, Noise, in_units
from discreet.query import Count, Histogram, Sum, numbers
from discreet.rng import Rng


@dataclass(frozen=True, slots=True, init=False)
class Marginals:
    """Release several counts, sums and histograms at once, each with noise of its own scale on every number.

    Theorem.   It is the composition of its parts: the guarantee is the sum of those of `Gaussian` or `Laplace` noise of
               scale s_i on query i. Gaussian: zCDP sum_i D2_i / (2 s_i^2); Laplace: pure sum_i D1_i / s_i.
    Accuracy.  The noise of query i is that of `Gaussian` or `Laplace` with its scale, independent for every number.
    Edges.     One pass over the rows. Answers stand in the order of the queries: whole numbers for counts, the shape of
               the histogram, the column's units for a sum.
    Reference. Composition: docs/proofs/composition.md; [CKS20] theorem 14.
    """

    NAME: ClassVar[str] = "marginals/1"
    queries: tuple[Question, ...]
    scales: tuple[Fraction, ...]
    kind: str

    def __init__(self, queries: Iterable[Question], scales: Iterable[Exact], kind: str = "gaussian") -> None:
        asked = tuple(queries)
        wrong = [each for each in asked if not isinstance(each, (Count, Sum, Histogram))]
        if wrong or not asked:
            found = type(wrong[0]).__name__ if wrong else "none"
            raise ParameterError(f"queries must be one or more Counts, Sums and Histograms, found {found}")
        widths = tuple(exact.positive(scale=each) for each in scales)
        if len(widths) != len(asked):
            raise ParameterError(f"there must be one scale for each of {len(asked)} queries, found {len(widths)}")
        if kind not in NOISES:
            raise ParameterError(f'kind must be "gaussian" or "laplace", found {kind!r}')
        exact.freeze(self, queries=asked, scales=widths, kind=kind)

    def guarantee(self, facts: Facts) -> Guarantee:
        parts = Counter(
            (query.sensitivity(facts), query.unit(facts), scale)
            for query, scale in zip(self.queries, self.scales, strict=True)
        )
        total = Guarantee.nothing(facts.neighbours)
        for (moved, unit, scale), times in parts.items():
            one = self._noise(scale).guarantee(moved, unit=unit, dimension=1, neighbours=facts.neighbours)
            total = total + one * times
        return total

    def numbers(self, facts: Facts) -> int:
        return sum(numbers(query, facts) for query in self.queries)

    def run(self, data: Dataset, rng: Rng) -> tuple[Any, ...]:
        sums, found = data.exact_sum(Together(self.queries).partial), []
        start = 0
        for query, scale in zip(self.queries, self.scales, strict=True):
            shape, unit = shape_of(query, data.facts), query.unit(data.facts)
            stop = start + math.prod(shape)
            noise = self._noise(scale).draw(shape, unit=unit, rng=rng)
            found.append(in_units(sums[start:stop].reshape(shape) + noise, unit))
            start = stop
        return tuple(found)

    def measured(self, value: Sequence[Any], facts: Facts, *, entry: int = 0, order: int = 1) -> list[Measured]:
        """What was released, as measurements of the ledger's `entry`; `order` is the first one's."""
        triples = zip(self.queries, self.scales, value, strict=True)
        return [
            Measured(
                query, self.kind, float(scale), float(query.unit(facts)), np.asarray(got, float), entry, order + place
            )
            for place, (query, scale, got) in enumerate(triples)
        ]

    def _noise(self, scale: Fraction) -> Noise:
        return NOISES[self.kind](scale)


def shape_of(query: Question, facts: Facts) -> tuple[int, ...]:
    return query.shape(facts.domain) if isinstance(query, Histogram) else ()
