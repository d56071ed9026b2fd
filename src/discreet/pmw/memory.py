"""What a transcript teaches, indexed, so that a question looks at few of the measurements and answers before it."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np

from discreet.domain import Domain
from discreet.pmw.measured import Measured, interval
from discreet.pmw.questions import Floats, Question, linear, meaning, scope_of
from discreet.pmw.shop import Shop
from discreet.pmw.transcript import Said, Transcript
from discreet.query import Count, Histogram, Sum


class Memory:
    """Follows a transcript.

    marginals  the measured marginals with their columns
    columns    every column that some measurement mentions
    rented     for each scope what was paid for single numbers of it
    saved      what a threshold would have made needless since the hypothesis was last wrong
    """

    def __init__(self, transcript: Transcript, shop: Shop) -> None:
        self.transcript, self.shop = transcript, shop
        self.marginals: list[tuple[frozenset[str], Measured]] = []
        self.columns: set[str] = set()
        self.rented: dict[tuple[str, ...], int] = defaultdict(int)
        self.saved = 0
        self._by_meaning: dict[str, list[Measured]] = defaultdict(list)
        self._measured = self._answers = 0

    @property
    def _domain(self) -> Domain:
        return self.transcript.facts.domain

    def catch_up(self) -> None:
        """Read what is new in the ledger."""
        self.transcript.catch_up()
        for each in self.transcript.measured[self._measured :]:
            self._learn(each)
        for said in self.transcript.answers[self._answers :]:
            self._note(said)
        self._measured, self._answers = len(self.transcript.measured), len(self.transcript.answers)

    def measured(self, question: Question) -> bool:
        """Whether the marginal over just the columns that matter to the question was measured."""
        form = linear(question, self._domain)
        return form is not None and any(columns == set(form.scope) for columns, _ in self.marginals)

    def interval(self, question: Question) -> tuple[Floats, Floats]:
        """Where the answer is, by everything measured: on the session's good event each interval holds the truth."""
        low, high = self._at_all(question)
        for each in self._about(question):
            failure = self.shop.failure(each.order)
            ends = interval(each, question, self._domain, failure=failure, total=self.shop.total)
            if ends is not None:
                low, high = np.maximum(low, ends[0]), np.minimum(high, ends[1])
        # Outside the good event the intervals may contradict each other; an answer is given all the same.
        return np.minimum(low, high), np.maximum(low, high)

    def _at_all(self, question: Question) -> tuple[Floats, Floats]:
        """Where an answer is whatever was measured: a count is not negative, nor more than a public total."""
        shape = question.shape(self._domain) if isinstance(question, Histogram) else ()
        if isinstance(question, Sum):
            return np.full(shape, -math.inf), np.full(shape, math.inf)
        return np.zeros(shape), np.full(shape, math.inf if self.shop.total is None else self.shop.total)

    def _about(self, question: Question) -> list[Measured]:
        form, same = linear(question, self._domain), self._by_meaning.get(meaning(question, self._domain), [])
        if form is None:
            return same
        covering = [each for columns, each in self.marginals if columns >= set(form.scope)]
        return [*covering, *(each for each in same if not each.marginal)]

    def _learn(self, measured: Measured) -> None:
        scope = scope_of(measured.query, self._domain)
        self.columns.update(scope)
        self._by_meaning[meaning(measured.query, self._domain)].append(measured)
        if measured.marginal:
            self.marginals.append((frozenset(scope), measured))

    def _note(self, said: Said) -> None:
        if isinstance(said.question, (Count, Sum)):
            self.rented[scope_of(said.question, self._domain)] += said.given.price
        if said.given.missed is not None:
            self.saved = 0 if said.given.missed else self.saved + said.given.price
