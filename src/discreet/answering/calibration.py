"""What a session can buy, and for how much: a noisy answer, a marginal, a threshold, each with just enough noise.

The promise is A = alpha * size persons (times the largest value, for a sum). Everything here is a function of public
numbers: the facts, the terms, how many measurements and thresholds there were, what is left in the ledger.

Bounds. beta is split in halves. The m-th measurement of the ledger may fail with probability (beta/2) / (m (m+1)); the
i-th run, a threshold or a workload, exceeds its bound with probability (beta/2) / (i (i+1)). These sum to beta over any
number of measurements and runs. "No" from the i-th threshold means |truth - guess| < theta + z, so theta = A - z_bound.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet.answering.linear_query import linear
from discreet.answering.measurement import Layers, Measured, SetErrors, noise_bound
from discreet.core import Books, Caps, Funds, ParameterError, Price, exact
from discreet.data import Facts
from discreet.ledger import Ledger
from discreet.mechanisms import (
    AboveThreshold,
    AboveThresholdLaplace,
    Conversation,
    Gaussian,
    Laplace,
    Mechanism,
    calibrate,
)
from discreet.query import Count, Histogram, Question

LARGEST_MARGINAL = 2**20
_GAP = Fraction(1, 3)  # the part of A that a threshold leaves for the hypothesis to be wrong by
# The part of A that a table or a sum may be off by; the rest is room for the hypothesis to improve the numbers. Small
# counts, and sums over few rows, gain most by it; a single count that is rented is to be cheap, and has no such room.
_ROOM = 0.7
_PLANNED = 10_000  # questions, if nobody says
_UNPAYABLE = 10**30

Threshold = AboveThreshold | AboveThresholdLaplace


@dataclass(frozen=True, slots=True)
class SessionTerms:
    """What an analyst asked for.

    alpha      every answer within this fraction of the persons; None with declared scopes: whatever the plan gives
    beta       the probability that some bound does not hold
    questions  how many are planned: so many a threshold shall let pass, it is not a limit; None: nobody knows
    scopes     how many different sets of columns will be asked about; None if nobody knows
    """

    NAME: ClassVar[str] = "session-terms/1"
    alpha: Fraction | None
    beta: Fraction
    questions: int | None = None
    scopes: int | None = None


class Calibration:
    """The goods for one table, one ledger and one analyst's terms."""

    def __init__(self, facts: Facts, ledger: Ledger, terms: SessionTerms, *, allowance: str | None = None) -> None:
        if facts.size is None:
            raise ParameterError(
                "alpha is a fraction of a public number of persons, which add-remove hides: declare a size near it, "
                "with Table(size=) or as size = 5000 in the schema"
            )
        self.facts, self.ledger, self.terms, self.allowance = facts, ledger, terms, allowance
        self.size = max(1, facts.size)
        self.pure = ledger.budget.delta == 0
        self.kind = "laplace" if self.pure else "gaussian"

    @property
    def total(self) -> float | None:
        """The number of rows, if it is public."""
        relation = self.facts.neighbours
        return float(self.size) if relation.replace_one and relation.rows == 1 else None

    @property
    def most(self) -> float:
        """How many rows there are at the most."""
        return math.inf if self.total is None else self.total

    # How near an answer must be.

    @property
    def window(self) -> Fraction:
        """A in persons: what thresholds are asked in, whatever a question's unit is."""
        return (self.terms.alpha or Fraction(0)) * self.size

    def wanted(self, question: Question) -> float:
        """A in the question's units; infinite if no alpha was asked for."""
        if self.terms.alpha is None:
            return math.inf
        try:
            return float(self.window * self.worth(question) * question.unit(self.facts))
        except OverflowError:
            raise ParameterError("floats cannot hold this sum: declare the column in other units") from None

    def worth(self, question: Question) -> int:
        """By how many of its integers one row moves a question at most: 1 for counts."""
        if question.counting:
            return 1
        return max(1, question.sensitivity(self.facts).linf // self.facts.neighbours.rows)

    def failure(self, order: int) -> float:
        """With what probability the measurement of this number may be further off than its bound."""
        return float(self.terms.beta / 2 / (order * (order + 1)))

    def run_failure(self, number: int) -> Fraction:
        """The same for a threshold or a workload."""
        return self.terms.beta / 2 / (number * (number + 1))

    # The goods.

    def alone(self, question: Question, order: int) -> Gaussian | Laplace:
        """The question itself, with as much noise as its bound allows."""
        if self.terms.alpha is None:
            raise ParameterError("the declared scopes are used up; a session with alpha= answers more questions")
        log_sets, unit = math.log(math.prod(question.shape(self.facts.domain))), question.unit(self.facts)
        failure = self.failure(order) / (2 if question.groups else 1)
        room = _ROOM if question.groups or not question.counting else 1.0
        reach = room * self.wanted(question) / float(unit) - 0.5

        def error(scale: float) -> float:
            return noise_bound(self.kind, scale, copies=1, log_sets=log_sets, failure=failure)

        return self.noisy(question, _largest(error, reach) * unit)

    def marginal(self, question: Question, order: int) -> Gaussian | Laplace | None:
        """The marginal over the question's scope, with as much noise as the question's bound allows."""
        form = linear(question, self.facts.domain)
        if form is None or not form.scope or form.cells > LARGEST_MARGINAL:
            return None
        whole, failure = Histogram(form.scope), self.failure(order) / 2
        reach = _ROOM * self.wanted(question) - 0.5 * float(question.unit(self.facts))
        layers = Layers.of(form, total_known=self.total is not None)
        nothing = np.zeros(whole.shape(self.facts.domain))

        def error(scale: float) -> float:
            """Of reading the question off this marginal with noise of this scale."""
            noisy = Measured(whole, self.kind, scale, 1.0, nothing)
            sets = SetErrors(noisy, cells=form.cells, columns=len(form.scope), failure=failure)
            return float(np.max(layers.errors(sets)))

        return self.noisy(whole, _largest(error, reach))

    def share(self, question: Question, parts: int) -> Gaussian | Laplace:
        """The marginal over the question's scope for one of so many equal parts of what is left."""
        form = linear(question, self.facts.domain)
        if form is None:
            raise ParameterError("this question mentions more cells than can be measured together")
        whole: Question = Histogram(form.scope) if form.scope else question
        funds = self.part(Fraction(1, parts))
        return calibrate(lambda noise: self.noisy(whole, noise), funds=funds, facts=self.facts)

    def threshold(self, number: int) -> AboveThreshold:
        """The noise that leaves a part of A for the hypothesis, and lets as many questions pass as are planned."""
        first = -math.log(float(self.run_failure(number)))
        idle = math.log(max(2, self.terms.questions or _PLANNED))
        window, share = float(self.window * (1 - _GAP)), math.sqrt(first) / (math.sqrt(first) + math.sqrt(2 * idle))
        scales = (Fraction(max(each, 1e-6)) for each in (window * share / first, window * (1 - share) / idle))
        one, other = (each.limit_denominator(10**6) for each in scales)
        return AboveThreshold(one, other, sensitivity=self.facts.neighbours.rows)

    def theta(self, conversation: Threshold, number: int) -> Fraction:
        """The threshold to ask for: "no" then means nearer than A. Only one-sided thresholds are opened here."""
        if not isinstance(conversation, AboveThreshold):
            return Fraction(0)
        return self.window - conversation.z_bound(self.run_failure(number))

    def noisy(self, question: Question, scale: Fraction) -> Gaussian | Laplace:
        return Laplace(question, scale) if self.pure else Gaussian(question, scale)

    # Money.

    def price(self, mechanism: Mechanism | Conversation) -> int:
        """In nano-units of the ledger's first book: Renyi, or pure where delta = 0."""
        amount = self.amount(self.ledger.price(mechanism.guarantee(self.facts)))
        return _UNPAYABLE if amount is None else amount

    def amount(self, price: Price | Books) -> int | None:
        """What it is in the ledger's first book."""
        return price.pure if self.pure else price.renyi

    def left(self) -> int:
        return self.amount(self.ledger.remaining(allowance=self.allowance)) or 0

    def part(self, part: Fraction) -> Funds:
        """This part of what is left in the first book."""
        return self._at_most(math.floor(self.left() * part))

    def _at_most(self, amount: int) -> Funds:
        """This much of the first book, and all of what is left for failures."""
        left = self.ledger.funds(allowance=self.allowance)
        caps = Caps(None, amount, left.caps.failure) if self.pure else Caps(amount, 0, left.caps.failure)
        return Funds(left.order, caps)

    def admits(self, mechanism: Mechanism | Conversation) -> bool:
        return self.ledger.admits(mechanism, facts=self.facts, allowance=self.allowance)

    def alpha_for(self, cap: int, order: int) -> float:
        """The least alpha for which a count costs no more than this."""
        least = calibrate(lambda noise: self.noisy(Count(), noise), funds=self._at_most(cap), facts=self.facts)
        failure = self.failure(order)
        error = noise_bound(self.kind, float(least.scale), copies=1, log_sets=0.0, failure=failure) + 0.5
        return math.ceil(1.01 * error / self.size * 10**6) / 10**6

    def require_one_count(self) -> None:
        """Refuse an alpha for which the whole budget would not pay for a single count, with one for which it would."""
        caps = self.ledger.spent().caps
        least_alpha = self.alpha_for(caps.pure if self.pure else caps.renyi or 0, 1)
        if float(self.terms.alpha or 0) * 1.01 >= least_alpha:
            return
        would = f"alpha={least_alpha:g} would" if least_alpha < 1 else "no alpha would, for so few persons"
        raise ParameterError(
            f"alpha={float(self.terms.alpha or 0):g} is below what this budget can give for {self.size} persons: not "
            f"even one count fits; {would}"
        )


def _largest(error: Callable[[float], float], reach: float) -> Fraction:
    """The largest scale, nearly, whose error is within reach; the error grows with the scale."""
    if reach <= 0:
        raise ParameterError("alpha * size must be more than half a person: ask for a larger alpha")
    inside, outside = _bracket(error, reach)

    def too_much(scale: float) -> bool:
        return scale > inside and (scale >= outside or error(scale) > reach)

    ends = exact.bracket(too_much, 0.0, reach, limit=sys.float_info.max)
    if ends is None:
        raise ParameterError("no noise is too much for this question: its answer does not depend on the rows")
    low, _ = exact.narrow(too_much, *ends, lambda low, high: high - low <= high / 1000)
    return Fraction(math.floor(low * 2**20), 2**20)


def _bracket(error: Callable[[float], float], reach: float) -> tuple[float, float]:
    """A scale whose error is within reach, or 0, and one whose error is not, or infinity, near each other: errors are
    nearly in proportion to the scale. It saves most evaluations of an error and changes no result."""
    inside, outside, scale = 0.0, math.inf, reach
    for margin in (1.0, 0.998, 1.002, 0.998, 1.002):
        scale *= margin
        off = error(scale)
        inside, outside = (max(inside, scale), outside) if off <= reach else (inside, min(outside, scale))
        scale = scale * (reach / off) if off > 0 else math.inf
        if not 0 < scale < math.inf:
            break
    return inside, outside
