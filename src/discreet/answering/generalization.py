"""From the rows to the population that they were drawn from, though every question may depend on earlier answers.

The bound that an answer carries is about the table. If the persons in it are an independent sample of a population,
one can say how far the answer is from the population's: the distance between the rows and the population is *added* to
the answer's bound. A question that was fixed beforehand is near by Hoeffding's inequality. One that was made up from
earlier answers may fit this sample by design; two theorems bound that, and the smaller bound counts:

    by privacy      what was told about the rows hardly depends on any one of them; `by_privacy`
    by description  what was told can be written in few letters, so few questions could have come; `by_description`

and `by_workload` is Hoeffding's, for questions that were fixed before any release. All three are functions of public
numbers. They are about questions with values in [0, 1] for each person: a count, as a fraction of the persons. A
histogram is one question for each cell.

How the failure is split. A statement made with `failure` f fails with probability at most beta + f, where beta is the
session's own: f/3 each for the posterior doubt about the session's promise, for privacy and for the description. It
holds for all answers at all times, at once. The bound by privacy adds 3 beta / f for the first: run the session with a
beta that is small against f (0.0001 and 0.05 cost 0.006; it enters the session's own bounds by its logarithm only).

`Disclosures` reads from a ledger what the bounds need. Proofs: docs/proofs/population.md.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from discreet.answering.chosen_tables import ChosenTables
from discreet.answering.measurement import Measured
from discreet.answering.transcript import Transcript, additive_parts
from discreet.core import ATTO, NANO, ORDERS, Guarantee, ParameterError, Unproven, exact, revive
from discreet.data import Facts, Floats
from discreet.ledger import Ledger

FAILURE = 0.05
"""What a statement about the population may fail with, besides the session's own beta."""

_ROUND_UP = 1 + 1e-9  # far more than the floats below can lose


@dataclass(frozen=True, slots=True)
class Disclosure:
    """The information released about the rows so far, in public numbers.

    questions  numbers that were asked for, the one at hand included: a histogram of C cells is C of them
    tops       how many of the earlier ones made a threshold fire
    nats       the length of all numbers released before, tops' answers included: a sum of `length_of` and
               `nats`; math.inf if something was released that has no such length (a model, say)
    rate       the sum of `rate_of` over everything charged to the table, open thresholds included
    limit      a rate that was named before the first release: that at which the budget would be spent, say. The bound
               by privacy is best when the rate is near it, and valid for every rate
    may_fail   0 if nothing charged so far may fail; otherwise the ledger's cap on failures
    """

    questions: int
    tops: int = 0
    nats: float = 0.0
    rate: float = math.inf
    limit: float = 1.0
    may_fail: float = 0.0

    def __post_init__(self) -> None:
        exact.whole(questions=self.questions)
        if not 0 <= exact.whole(minimum=0, tops=self.tops) < self.questions:
            raise ParameterError(f"tops must be fewer than the questions, found {self.tops} of {self.questions}")
        if not (self.nats >= 0 and self.rate >= 0 and 0 < self.limit < math.inf and 0 <= self.may_fail <= 1):
            raise ParameterError(f"nats, rate, limit and may_fail must be amounts, found {self!r}")


@dataclass(frozen=True, slots=True)
class Drift:
    """How far the rows may be from the population: to be added to the bound that an answer carries.

    fraction  of the persons                 count  in the query's numbers: fraction times persons times rows a person
    source    "privacy" or "description"
    """

    fraction: float
    count: float
    source: str

    @staticmethod
    def of(fraction: float, persons: int, facts: Facts, source: str) -> Drift:
        return Drift(fraction, fraction * persons * facts.neighbours.rows, source)


def drift(facts: Facts, told: Disclosure, *, beta: float, failure: float, random_sample: bool) -> Drift:
    """The bound for a question of an adaptive session whose answers are clipped to what is possible.

    Theorem.   Let the persons be independent draws from a population, and the analyst know no more about them than he
               was told. With probability at least 1 - beta - failure, for every answer of the session, whenever it is
               printed: |answer - what the population would have| <= the answer's own bound + count.
    Edges.     Replace-one only: otherwise the number of persons is not public. Persons with several rows: a question is
               the sum over the person's kept rows, divided by the rows a person may have.
    """
    persons = _sampled(facts, random_sample)
    third = _share(failure) / 3
    by_length = by_description(told, persons=persons, failure=third)
    bounds = [(by_privacy(told, beta=beta, failure=third), "privacy"), (by_length, "description")]
    bound, source = min(bounds, key=lambda pair: pair[0])
    return Drift.of(min(1.0, bound), persons, facts, source)


def by_workload(questions: int, *, persons: int, failure: float) -> float:
    """sqrt(ln(2 k / failure) / (2 n)): Hoeffding's inequality and the union over k questions that were fixed."""
    return _hoeffding(math.log(2 * exact.whole(questions=questions) / _share(failure)), persons)


def by_description(told: Disclosure, *, persons: int, failure: float) -> float:
    """The bound from the length of what was told; it needs no privacy.

    Theorem.   With probability 1 - failure, for all j, when question j is asked after F tops and N nats of numbers,
               |q_j(rows) - q_j(population)| <=
                   sqrt((ln binom(j-1, F) + N + ln(2 j (j+1) (F+1) (F+2) / failure)) / (2 n)).
    """
    from scipy.special import gammaln

    asked, tops = told.questions, told.tops
    patterns = gammaln(asked) - gammaln(tops + 1) - gammaln(asked - tops)
    weights = math.log(2 / _share(failure)) + math.log(asked) + math.log(asked + 1) + math.log((tops + 1) * (tops + 2))
    return _hoeffding(float(patterns) + told.nats + weights, persons)


def by_privacy(told: Disclosure, *, beta: float, failure: float) -> float:
    """The bound from the rate that was charged: beta / failure + tanh(epsilon/4) + eta, epsilon the best one.

    Theorem.   Let a session be (epsilon, delta)-DP under replace-one and its answers be within their bounds with
               probability 1 - beta. For all c and eta with t + eta <= 1, t = tanh(epsilon/4), with probability at least
               1 - beta/c - 2 delta / ((1 + e^epsilon) eta (1 - tanh(epsilon/2) (t + eta/2))), for all questions:
               |answer - population| <= the answer's bound + c + t + eta. t is attained with one person.
    Levels.    The session as it would have stopped before its rate exceeded limit 2^k is of that rate, for every whole
               k; level k fails with probability 2 / (3 (|k|+1) (|k|+2)) of `failure`, half of it with `may_fail`. The
               smallest level not exceeded may be printed at any time.
    Edges.     Both parts, beta/c and the levels, fail with probability `failure` each at most. At least 1: no bound.
    """
    allowed = _share(failure)
    if not 0 <= beta < 1:
        raise ParameterError(f"beta must be a probability below 1, found {beta!r}")
    if told.rate == math.inf:
        return math.inf
    level = math.ceil(math.log2(told.rate / told.limit)) if told.rate > 0 else -64
    share = allowed / (3 * (abs(level) + 1) * (abs(level) + 2))
    return beta / allowed + distance(told.limit * 2.0**level, failure=share, may_fail=told.may_fail)


@functools.lru_cache(maxsize=1024)
def distance(rate: float, *, failure: float, may_fail: float = 0.0) -> float:
    """tanh(epsilon/4) + eta for a session of this rate, the best over epsilon; at least 1: no bound.

    Every epsilon gives a valid bound, so a grid is enough.
    """
    epsilon, order = np.geomspace(1e-6, 32, 2000), np.array(ORDERS)[:, None]
    # The delta of a session whose Renyi divergences are at most rate times their order: [CKS20] Prop. 12.
    exponents = (order - 1) * (order * rate - epsilon) + order * np.log1p(-1 / order) - np.log(order - 1)
    delta = np.minimum(1.0, np.exp(np.minimum(0.0, exponents.min(axis=0))) + may_fail)
    slope, root = np.tanh(epsilon / 2), np.tanh(epsilon / 4)
    # eta (1 - slope (root + eta/2)) = excess, solved for the smaller eta
    excess = 2 * delta / ((1 + np.exp(epsilon)) * failure)
    left = 1 - slope * root
    inside = left * left - 2 * slope * excess
    eta = np.where(inside >= 0, 2 * excess / (left + np.sqrt(np.maximum(inside, 0.0))), math.inf)
    return _ROUND_UP * float(np.min(root + eta))


def rate_of(guarantee: Guarantee) -> float:
    """The largest of its Renyi divergences over their orders: below it, a release is like one of that zCDP."""
    return max(value / order for order, value in zip(ORDERS, guarantee.renyi, strict=True)) * _ROUND_UP


def nats(values: Floats, *, guess: Floats | float, scale: float) -> float:
    """The length of released whole numbers of any size: short if they are within the scale of the guess.

    Guess and scale are public before the numbers are drawn: what the hypothesis said, and the scale of the noise.
    Theorem.   ln(pi s + 1) + ln(1 + ((v - g) / s)^2) is the length of a code, as the sum over whole v of
               1 / (1 + ((v - g) / s)^2) is at most pi s coth(pi s) <= pi s + 1.
    """
    if not 0 < scale < math.inf:
        raise ParameterError(f"scale must be a positive number, found {scale!r}")
    away = (np.asarray(values, dtype=np.float64) - guess) / scale
    return float(np.sum(math.log(math.pi * scale + 1) + np.log1p(away * away)))


def length_of(measured: Measured, total: float) -> float:
    """The length of a noisy answer about this many rows: a code around an even spread, however far off the rows are."""
    numbers = measured.value / measured.unit
    even = 0.0 if not measured.query.counting else total / max(2, numbers.size)
    return nats(np.round(numbers), guess=even, scale=max(1.0, even, measured.scale / measured.unit))


def _hoeffding(nats_paid: float, persons: int) -> float:
    return _ROUND_UP * math.sqrt(nats_paid / (2 * persons))


def _sampled(facts: Facts, random_sample: bool) -> int:
    """The number of persons, if a statement about their population can be made."""
    if not random_sample:
        raise Unproven(
            "a bound for the population needs rows that are a random sample of it: random_sample=True says so"
        )
    if not facts.neighbours.replace_one or facts.size is None:
        raise Unproven('a bound for the population needs the number of persons, which "add-remove" keeps private')
    return facts.size


def _share(failure: float) -> float:
    return float(exact.probability(failure=failure))


class Disclosures:
    """Follows a ledger: every charge has a rate, every released number a length.

    A charge that is neither a measurement nor a threshold of a session like this one (a model, say, or a conversation
    outside any session) has no length here, and one that is not in the catalogue has no rate: then that kind of bound
    is not available. Questions put to a session's threshold outside any session are in no ledger: an analyst who asks
    those has no bound for the population.
    """

    def __init__(self, ledger: Ledger, facts: Facts, transcript: Transcript, catalogue: Mapping[str, type]) -> None:
        self.ledger, self.facts, self.transcript, self.catalogue = ledger, facts, transcript, catalogue
        self._rate = self._nats = 0.0
        self._seen = self._measured = 0

    def at(self, numbers: int) -> Disclosure:
        """As it stands when a question with this many numbers is answered."""
        self.transcript.catch_up()
        here = self.ledger.recorded(self.facts)[1]
        for body in self.ledger.entries(after=self._seen):
            self._seen = body["seq"]
            if body["kind"] != "charge":
                continue
            alike, mechanism = body["facts_hash"] == here, body["mechanism"]
            known = alike and mechanism.get("name") in self.catalogue
            self._rate += rate_of(revive(mechanism, self.catalogue).guarantee(self.facts)) if known else math.inf
            # What a charge tells is counted if it is a threshold of this session's kind, or a measurement. Which tables
            # were chosen is told, too, and is not in the numbers.
            threshold, chosen = body["mode"] == "conversation", mechanism.get("name") == ChosenTables.NAME
            measures = not chosen and additive_parts(mechanism)
            if not alike or not (body["seq"] in self.transcript.thresholds if threshold else measures):
                self._nats = math.inf
        for measured in self.transcript.measured[self._measured :]:
            self._nats += length_of(measured, float(self.facts.size or 1))
        self._measured = len(self.transcript.measured)
        spent = self.ledger.spent()
        limit = float(self.ledger.budget.epsilon) ** 2 / 2
        if spent.caps.renyi is not None and spent.order is not None:
            limit = spent.caps.renyi / NANO / float(spent.order)
        asked, tops = max(self.transcript.heard + numbers, self.transcript.tops + 1), self.transcript.tops
        may_fail = spent.caps.failure / ATTO if spent.failure else 0.0
        return Disclosure(asked, tops, self._nats, self._rate, limit, may_fail)
