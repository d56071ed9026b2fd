"""Questions about several epochs of a table that grows, whose persons are different ones: answers are added up.

A count over all epochs is the sum of the counts over any blocks of epochs that do not overlap. What was answered about
earlier epochs stays true, since they never change; so a question is asked of the epochs that are new, in one charge
that these alone pay, and its answer is added to those that are known. The bounds add up, too: all bounds that a session
states hold together, so their sum bounds the sum.

Epochs that a condition excludes (WHERE month = ...) are not asked about and do not pay, and if it excludes all of them
the answer is 0; the groups of other epochs (GROUP BY month) have no row in a block.

The blocks: of the sets of epochs that were asked about before, the largest first, those that answer for nothing and do
not overlap; and all epochs that are left in one more. The choice looks at what was released alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from discreet.answering.adaptive import AdaptiveAnswers, Weights
from discreet.answering.answer import Answer
from discreet.answering.linear_query import constant
from discreet.data import epoch_column
from discreet.query import And, Count, Equals, Question

Block = tuple[str, ...]


class EpochAnswers:
    """Answers queries about epochs of different persons.

    whole  answers about all these epochs in one: quantiles, workloads, synthetic rows
    make   the answers about a block of epochs
    """

    def __init__(self, epochs: Block, ledger: Any, make: Callable[[Block], AdaptiveAnswers]) -> None:
        self.epochs, self.ledger, self._make = epochs, ledger, make
        self._blocks: dict[Block, AdaptiveAnswers] = {}
        self.whole = self._block(epochs)
        growth = self.whole.facts.growth
        self.column = "" if growth is None else growth.column

    @property
    def transcript(self) -> Any:
        return self.whole.transcript

    def remembered(self, queries: Sequence[Question], weights: Weights = None) -> list[Answer] | None:
        """The answers, if all of these were answered before, or are public."""
        cover = self._cover(queries, weights)
        found = [block.remembered(queries, weights) for block in cover]
        known = [answers for answers in found if answers is not None]
        return self._added(cover, queries, known) if len(known) == len(cover) else None

    def answer_parts(self, queries: Sequence[Question], weights: Weights = None) -> list[Answer]:
        """The answers to the parts of one question: of blocks that are known, and of the rest by one charge."""
        cover = self._cover(queries, weights)
        return self._added(cover, queries, [block.answer_parts(queries, weights) for block in cover])

    def bill(self, queries: Sequence[Question], weights: Weights = None) -> list[Any]:
        """What answering these could buy, at most: about the block that is not known."""
        return [each for block in self._cover(queries, weights) for each in block.bill(queries, weights)]

    def hypothesis(self) -> Any:
        """What synthetic rows are drawn from: all these epochs in one."""
        return self.whole.hypothesis()

    def _cover(self, queries: Sequence[Question], weights: Weights) -> list[AdaptiveAnswers]:
        """Blocks that do not overlap and have all epochs that count; all but the last are free."""
        epochs, found = self._counting(queries), list[AdaptiveAnswers]()
        if not epochs:
            return found
        left = set(epochs)
        with self.ledger.store.reading() as state:
            asked = {each for each in state.scopes.values() if left.issuperset(each)}
        for known in sorted(asked, key=lambda each: (-len(each), each)):
            if left.issuperset(known) and not self._block(known).bill(queries, weights):
                found.append(self._block(known))
                left.difference_update(known)
        rest = tuple(each for each in epochs if each in left)
        return [*found, self._block(rest)] if rest else found

    def _counting(self, queries: Sequence[Question]) -> Block:
        """The epochs that the conditions of some query do not exclude."""
        conditions = [getattr(query, "made", query).where for query in queries]  # of the table's rows
        if not all(self.column in where.columns for where in conditions):
            return self.epochs
        domain = self.whole.facts.domain
        found = [
            epoch
            for epoch in self.epochs
            if any(constant(Count(And(where, self._at(epoch))), domain) is not False for where in conditions)
        ]
        return tuple(found)

    def _at(self, epoch: str) -> Equals:
        column = epoch_column(self.whole.facts.domain, self.column)
        return Equals(self.column, column.declared(column.code(epoch)))

    def _added(
        self, cover: Sequence[AdaptiveAnswers], queries: Sequence[Question], blocks: Sequence[Sequence[Answer]]
    ) -> list[Answer]:
        """The answers about blocks that do not overlap, added up; of no block they are public: 0."""
        if not cover:
            shapes = [query.shape(self.whole.facts.domain) for query in queries]
            return [Answer(np.zeros(shape), 0.0, "public", errors=np.zeros(shape)) for shape in shapes]
        there = [
            [self._inside(block, query, one) for query, one in zip(queries, answers, strict=True)]
            for block, answers in zip(cover, blocks, strict=True)
        ]
        return [reduce(_sum, answers) for answers in zip(*there, strict=True)]

    def _inside(self, block: AdaptiveAnswers, query: Question, answer: Answer) -> Answer:
        """Without the groups of epochs that the block does not have: they are empty there."""
        keys = getattr(query, "columns", getattr(query, "keys", ())) if query.grouped else ()
        growth, domain = block.facts.growth, block.facts.domain
        if self.column not in keys or growth is None:
            return answer
        column, axis = epoch_column(domain, self.column), list(keys).index(self.column)
        there = np.zeros(column.size, dtype=bool)
        there[[column.code(each) for each in growth.epochs]] = True
        there = there.reshape([-1 if place == axis else 1 for place in range(np.ndim(answer.value))])
        errors = np.where(there, answer.errors, 0.0)
        return replace(answer, value=answer.value * there, errors=errors, error_bound=float(np.max(errors)))

    def _block(self, epochs: Block) -> AdaptiveAnswers:
        if epochs not in self._blocks:
            self._blocks[epochs] = self._make(epochs)
        return self._blocks[epochs]


def _sum(one: Answer, other: Answer) -> Answer:
    errors = np.asarray(one.errors) + np.asarray(other.errors)
    paid = other if other.price else one
    source = one.source if one.source == other.source else paid.source if paid.price else "hypothesis"
    return Answer(one.value + other.value, float(np.max(errors)), source, one.price + other.price, errors=errors)
