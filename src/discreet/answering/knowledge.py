"""What a transcript teaches, indexed, so that a question looks at few of the measurements and answers before it."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace

import numpy as np

from discreet.answering.calibration import Shop
from discreet.answering.linear_query import Question, linear, meaning, scope_of
from discreet.answering.measurement import Measured, group_cells, interval
from discreet.answering.transcript import Transcript
from discreet.data import Domain, Floats
from discreet.query import Count, Histogram, Not, Sum


class Memory:
    """Follows a transcript.

    marginals  the measured marginals with their columns
    groups     the measured histograms of a part of the rows
    columns    every column that some measurement mentions
    """

    def __init__(self, transcript: Transcript, shop: Shop) -> None:
        self.transcript, self.shop = transcript, shop
        self.marginals: list[tuple[frozenset[str], Measured]] = []
        self.groups: list[Measured] = []
        self.columns: set[str] = set()
        self._by_meaning: dict[str, list[Measured]] = defaultdict(list)
        self._measured = 0

    @property
    def _domain(self) -> Domain:
        return self.transcript.facts.domain

    def catch_up(self) -> None:
        """Read what is new in the ledger."""
        self.transcript.catch_up()
        for each in self.transcript.measured[self._measured :]:
            self._learn(each)
        self._measured = len(self.transcript.measured)

    def measured(self, question: Question) -> bool:
        """Whether the marginal over just the columns that matter to the question was measured."""
        form = linear(question, self._domain)
        return form is not None and any(columns == set(form.scope) for columns, _ in self.marginals)

    def interval(self, question: Question) -> tuple[Floats, Floats]:
        """Where the answer is, by everything measured: on the session's good event each interval holds the truth."""
        low, high = self._at_all(question)
        for each in sorted(self.about(question), key=lambda each: each.order):
            failure = self.shop.failure(each.order)
            ends = interval(each, question, self._domain, failure=failure, total=self.shop.total)
            if ends is not None:
                # Outside the good event intervals may contradict each other: then the newest one counts alone.
                together = np.maximum(low, ends[0]), np.minimum(high, ends[1])
                apart = together[0] > together[1]
                low, high = np.where(apart, ends[0], together[0]), np.where(apart, ends[1], together[1])
        return low, high

    def _at_all(self, question: Question) -> tuple[Floats, Floats]:
        """Where an answer is whatever was measured: a count is not negative, nor more than a public total."""
        shape = question.shape(self._domain) if isinstance(question, Histogram) else ()
        most = math.inf if self.shop.total is None else self.shop.total
        if not isinstance(question, Sum):
            return np.zeros(shape), np.full(shape, most)
        form = linear(question, self._domain)
        if form is None:
            return np.full(shape, -math.inf), np.full(shape, math.inf)
        least, largest = float(min(0.0, form.weight.min())), float(max(0.0, form.weight.max()))
        return np.array(least * most if least else 0.0), np.array(largest * most if largest else 0.0)

    def about(self, question: Question) -> list[Measured]:
        """The measurements that say something about a question."""
        form, same = linear(question, self._domain), self._by_meaning.get(meaning(question, self._domain), [])
        if form is None:
            return same
        covering = [each for columns, each in self.marginals if columns >= set(form.scope)]
        groups = [
            each for each in self.groups if each not in same and group_cells(each, form, self._domain) is not None
        ]
        return [*covering, *(each for each in same if not each.marginal), *groups]

    def _learn(self, measured: Measured) -> None:
        scope = scope_of(measured.query, self._domain)
        self.columns.update(scope)
        self._by_meaning[meaning(measured.query, self._domain)].append(measured)
        if measured.marginal:
            self.marginals.append((frozenset(scope), measured))
        elif isinstance(measured.query, Histogram):
            self.groups.append(measured)
        if isinstance(measured.query, Count) and self.shop.total is not None:
            # All rows are public, so a count is also a count of the others, with the same noise.
            others = Count(Not(measured.query.where))
            opposite = replace(measured, query=others, value=self.shop.total - measured.value)
            self._by_meaning[meaning(others, self._domain)].append(opposite)
