"""What a transcript teaches, indexed, so that a question looks at few of the measurements and answers before it."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace

import numpy as np

from discreet.answering.calibration import Shop
from discreet.answering.linear_query import linear, meaning, scope_of
from discreet.answering.measurement import Measured, group_cells, interval
from discreet.answering.transcript import Transcript
from discreet.data import Floats
from discreet.query import Count, Not, Question


class Knowledge:
    """Follows a transcript.

    marginals  the measured marginals with their columns
    groups     the measured histograms of a part of the rows
    columns    every column that some measurement mentions
    """

    def __init__(self, transcript: Transcript, shop: Shop) -> None:
        self.transcript, self.shop, self.domain = transcript, shop, transcript.facts.domain
        self.marginals: list[tuple[frozenset[str], Measured]] = []
        self.groups: list[Measured] = []
        self.columns: set[str] = set()
        self._by_meaning: dict[str, list[Measured]] = defaultdict(list)
        self._learned = 0

    def catch_up(self) -> bool:
        """Read what is new in the ledger; whether anything is."""
        news = self.transcript.catch_up()
        for one in self.transcript.measured[self._learned :]:
            self.learn(one)
        self._learned = len(self.transcript.measured)
        return news

    def learn(self, measured: Measured) -> None:
        """Take in one more measurement."""
        scope = scope_of(measured.query, self.domain)
        self.columns.update(scope)
        self._by_meaning[meaning(measured.query, self.domain)].append(measured)
        if measured.marginal:
            self.marginals.append((frozenset(scope), measured))
        elif measured.query.groups:
            self.groups.append(measured)
        if isinstance(measured.query, Count) and self.shop.total is not None:
            # All rows are public, so a count is also a count of the others, with the same noise.
            others = Count(Not(measured.query.where))
            opposite = replace(measured, query=others, value=self.shop.total - measured.value)
            self._by_meaning[meaning(others, self.domain)].append(opposite)

    def measured(self, question: Question) -> bool:
        """Whether the marginal over just the columns that matter to the question was measured."""
        form = linear(question, self.domain)
        return form is not None and any(columns == set(form.scope) for columns, _ in self.marginals)

    def about(self, question: Question) -> list[Measured]:
        """The measurements that say something about a question."""
        form, same = linear(question, self.domain), self._by_meaning.get(meaning(question, self.domain), [])
        if form is None:
            return same
        covering = [measured for columns, measured in self.marginals if columns >= set(form.scope)]
        groups = (one for one in self.groups if one not in same and group_cells(one, form, self.domain) is not None)
        return [*covering, *(one for one in same if not one.marginal), *groups]

    def interval(self, question: Question) -> tuple[Floats, Floats]:
        """Where the answer is, by everything measured: on the session's good event each interval holds the truth."""
        # Whatever was measured, a count is not negative, nor more than a public total.
        shape, most = question.shape(self.domain), math.inf if self.shop.total is None else self.shop.total
        low, high = np.zeros(shape), np.full(shape, most)
        if not question.counting:
            form = linear(question, self.domain)
            weights = np.array((-math.inf, math.inf)) if form is None else form.weight
            least, largest = float(weights.min(initial=0.0)), float(weights.max(initial=0.0))
            low, high = (np.array(weight * most if weight else 0.0) for weight in (least, largest))
        for measured in sorted(self.about(question), key=lambda one: one.order):
            failure = self.shop.failure(measured.order)
            ends = interval(measured, question, self.domain, failure=failure, total=self.shop.total)
            if ends is not None:
                # Outside the good event intervals may contradict each other: then the newest one counts alone.
                together = np.maximum(low, ends[0]), np.minimum(high, ends[1])
                apart = together[0] > together[1]
                low, high = np.where(apart, ends[0], together[0]), np.where(apart, ends[1], together[1])
        return low, high
