"""What everybody has heard about the rows so far, in the numbers that `population` needs: read from the ledger."""

from __future__ import annotations

import math

from discreet.answering.generalization import Told, length_of, rate_of
from discreet.answering.transcript import Transcript, additive_parts
from discreet.catalogue import CATALOGUE
from discreet.data import Facts
from discreet.funds import ATTO, NANO
from discreet.ledger import Body, Ledger
from discreet.records import revive

FAILURE = 0.05
"""What a statement about the population may fail with, besides the session's own beta."""


class Heard:
    """Follows a ledger: every charge has a rate, every released number a length.

    A charge that is neither a measurement nor a threshold of a session like this one (a model, say, or somebody else's
    conversation) has no length here, and one that is not in the catalogue has no rate: then that kind of bound is not
    available. Questions that somebody put to a session's threshold outside any session are in no ledger: whoever does
    that has no bound for the population.
    """

    def __init__(self, ledger: Ledger, facts: Facts, transcript: Transcript) -> None:
        self.ledger, self.facts, self.transcript = ledger, facts, transcript
        self._rate = self._nats = 0.0
        self._seen = self._measured = 0

    def told(self, numbers: int) -> Told:
        """As it stands when a question with so many numbers is answered."""
        self._catch_up()
        spent = self.ledger.spent()
        limit = float(self.ledger.budget.epsilon) ** 2 / 2
        if spent.caps.renyi is not None and spent.order is not None:
            limit = spent.caps.renyi / NANO / float(spent.order)
        return Told(
            max(self.transcript.heard + numbers, self.transcript.tops + 1),
            self.transcript.tops,
            self._nats,
            self._rate,
            limit,
            spent.caps.failure / ATTO if spent.failure else 0.0,
        )

    def _catch_up(self) -> None:
        self.transcript.catch_up()
        for body in self.ledger.entries(after=self._seen):
            self._seen = body["seq"]
            if body["kind"] == "charge":
                self._rate += self._rate_of(body)
                if not self._has_length(body):
                    self._nats = math.inf
        total = float(self.facts.size or 1)
        for each in self.transcript.measured[self._measured :]:
            self._nats += length_of(each, total)
        self._measured = len(self.transcript.measured)

    def _has_length(self, body: Body) -> bool:
        """Whether what this charge tells is counted below: a threshold of this session's kind, or a measurement."""
        if body["facts_hash"] != self.ledger.recorded(self.facts)[1]:
            return False
        if body["mode"] == "conversation":
            return body["seq"] in self.transcript.thresholds
        return bool(additive_parts(body["mechanism"]))

    def _rate_of(self, body: Body) -> float:
        if body["mechanism"].get("name") not in CATALOGUE or body["facts_hash"] != self.ledger.recorded(self.facts)[1]:
            return math.inf
        return rate_of(revive(body["mechanism"], CATALOGUE).guarantee(self.facts))
