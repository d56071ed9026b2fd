"""Any finite class of rules by the exponential mechanism: lecture 12's generic learner, with its sample sizes.

    FiniteClass((rule, rule, ...), labels, rate)     a list of rules: BoxRule, Conjunction, Where, FunctionRule
    FiniteClass(Predictions("x"), labels, rate)      a matrix of predictions: bit j of a row is what hypothesis j says

The score of a rule is minus the number of rows that it labels wrong. Sizes: `empirical_size`, `agnostic_excess` speak
about the rows at hand, as the lecture does; `population_size`, `agnostic_population_size` about rows drawn
independently from a distribution.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet.core import Funds, ParameterError, exact
from discreet.data import Batch, Dataset, Domain, Facts, IntArray, Needs, common_ones, packed
from discreet.mechanisms import Guarantee, Rng, calibrate, checked_rate, person_range, wrong_rows
from discreet.method import Method, Methods
from discreet.pac.rules import FunctionRule, Labels, Rule

NAME = "exponential"
CHECKED = 1e-9  # the sizes are raised by this factor, which is more than their floats lose


@dataclass(frozen=True, slots=True)
class Predictions:
    """The hypotheses whose predictions are the variables of a column of Bits."""

    NAME: ClassVar[str] = "predictions/1"
    column: str

    def __post_init__(self) -> None:
        exact.text(column=self.column)

    def check(self, domain: Domain) -> int:
        """The number of hypotheses, if the column holds Bits."""
        column = domain.column(self.column)
        if not column.packed:
            raise ParameterError(f"column {self.column!r} is declared {column!r}: predictions are Bits of a BitMatrix")
        return column.dimension


@dataclass(frozen=True, slots=True)
class ClassMistakes:
    """For each hypothesis the number of rows that it labels wrong.

    Theorem.   A row adds 0 or 1 to each. The range is 1 under add-remove, 2 under replace-one, k times that for a
               person of k rows; one hypothesis alone has range 0.
    """

    hypotheses: tuple[Rule, ...] | Predictions
    labels: Labels

    def check(self, domain: Domain) -> int:
        """The number of hypotheses, if they and the labels fit the domain."""
        self.labels.check(domain)
        if isinstance(self.hypotheses, Predictions):
            return self.hypotheses.check(domain)
        for rule in self.hypotheses:
            rule.check(domain)
        return len(self.hypotheses)

    def partial(self, batch: Batch) -> IntArray:
        positive = self.labels.mask(batch)
        if isinstance(self.hypotheses, Predictions):
            lines = batch.stored(self.hypotheses.column)
            wrong = common_ones(lines, packed(~positive)) - common_ones(lines, packed(positive))
            return np.asarray(wrong + np.count_nonzero(positive), dtype=np.int64)
        return np.array([np.count_nonzero(rule.mask(batch) != positive) for rule in self.hypotheses], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class FiniteClass:
    """Release the number of a hypothesis, with probability proportional to exp(-rate * its mistakes on the rows).

    Theorem.   One row's addition changes the mistakes of all hypotheses by 0 or 1, its replacement by -1, 0 or 1, so
               with r = 1 (add-remove) or 2 (replace-one), k times that for a person of k rows, the release has bounded
               range rate * r: it is (rate * r)-DP and ((rate * r)^2 / 8)-zCDP. Replace-one at epsilon has half the
               rate of add-remove.
    Accuracy.  `empirical_size`, `agnostic_excess`, `population_size`, `agnostic_population_size`.
    Edges.     Hypotheses that are wrong equally often are equally likely. No rows: uniform. One hypothesis costs
               nothing.
    Reference. Lecture 12, "a step back"; [KLNRS08]; docs/proofs/conjunctions.md.
    """

    NAME: ClassVar[str] = "finite-class/1"
    hypotheses: tuple[Rule, ...] | Predictions
    labels: Labels
    rate: Fraction

    def __post_init__(self) -> None:
        exact.convert(self, hypotheses=listed_rules, rate=exact.positive)

    def guarantee(self, facts: Facts) -> Guarantee:
        candidates = ClassMistakes(self.hypotheses, self.labels).check(facts.domain)
        return selection_price(self.rate, facts, candidates=candidates)

    def needs(self, facts: Facts) -> Needs:
        return Needs(functions=True)

    def run(self, data: Dataset, rng: Rng) -> int:
        mistakes = data.exact_sum(ClassMistakes(self.hypotheses, self.labels))
        return rng.select(-mistakes, self.rate)


def selection_price(rate: Fraction, facts: Facts, *, candidates: int = 2) -> Guarantee:
    """What a selection by exp(-rate * mistakes) costs, if it can be drawn for every possible number of mistakes."""
    checked_rate(rate * facts.rows_bound)
    span = person_range(facts.neighbours, added=1, replaced=2) if candidates > 1 else 0
    return Guarantee.of_bounded_range(checked_rate(rate) * span, neighbours=facts.neighbours)


def listed_rules(hypotheses: Iterable[Rule] | Predictions) -> tuple[Rule, ...] | Predictions:
    """The hypotheses, if they are rules or a column of predictions; at least one."""
    if isinstance(hypotheses, Predictions):
        return hypotheses
    rules = tuple(hypotheses)
    if not rules:
        raise ParameterError("hypotheses must hold at least one rule, found none")
    for rule in rules:
        if not all(callable(getattr(rule, name, None)) for name in ("check", "mask", "sentence")):
            hint = "; wrap a predicate in Where(...), a function in FunctionRule(label, function)"
            raise ParameterError(f"a hypothesis must be a rule, found a {type(rule).__name__}{hint}")
    return rules


# Sample sizes: how many rows make the promise true. `log_class` is ln |C|, `rate` the mechanism's.


def empirical_size(log_class: float, alpha: float, beta: float, rate: float) -> int:
    """Rows for which the error on these rows is at most alpha with probability 1 - beta, if some hypothesis has none.

    Theorem.   n >= (ln |C| + ln(1/beta)) / (rate alpha) is enough.
    Proof.     The right hypothesis has weight 1; those with more than alpha n mistakes weigh |C| e^(-rate alpha n)
               together at most. (Lecture 12 drops ln(1/beta), and the 2 of replace-one: rate = epsilon / 2.)
    """
    return _rows_needed((log_class - math.log(beta)) / (rate * alpha))


def agnostic_excess(log_class: float, beta: float, rate: float) -> float:
    """How many mistakes more than the best hypothesis are made, at most, with probability 1 - beta, on any rows.

    Theorem.   ln(|C| / beta) / rate.
    """
    return (log_class - math.log(beta)) / rate * (1 + CHECKED)


def population_size(log_class: float, alpha: float, beta: float, rate: float) -> int:
    """Rows drawn independently for which the error on the distribution is at most alpha with probability 1 - beta, if
    some hypothesis is always right.

    Theorem.   n >= (ln |C| + ln(1/beta)) / (alpha (1 - e^-rate)) is enough.
    Proof.     The weights add up to at least 1, that of the right hypothesis. So a hypothesis of error p > alpha is
               released with probability at most E e^(-rate mistakes) = (1 - p (1 - e^-rate))^n <= (1 - alpha (1 -
               e^-rate))^n over rows and coins; add up over the class. No separate term pays for generalisation.
    """
    return _rows_needed((log_class - math.log(beta)) / (alpha * -math.expm1(-rate)))


def agnostic_population_size(log_class: float, alpha: float, beta: float, rate: float) -> int:
    """Rows drawn independently for which the error on the distribution is within alpha of the best hypothesis's, with
    probability 1 - beta.

    Theorem.   n >= max((8/alpha^2) ln(4 |C| / beta), (2 / (rate alpha)) ln(2 |C| / beta)) is enough.
    Proof.     Hoeffding: all empirical errors are within alpha/4 of the true ones but with probability beta/2; the
               mechanism's excess is at most alpha/2 but with probability beta/2.
    """
    sampled = 8 / alpha**2 * (log_class + math.log(4 / beta))
    selected = 2 / (rate * alpha) * (log_class + math.log(2 / beta))
    return _rows_needed(max(sampled, selected))


def _rows_needed(bound: float) -> int:
    return math.ceil(bound * (1 + CHECKED))


def methods(
    hypotheses: Iterable[Rule] | Predictions, labels: Labels, *, facts: Facts, beta: Fraction, funds: Funds
) -> Methods:
    """The exponential mechanism over the list: the one method for any finite class."""
    rules = listed_rules(hypotheses)
    for rule in rules if isinstance(rules, tuple) else ():
        if isinstance(rule, FunctionRule) and rule.function is None:
            raise ParameterError(f"the rule {rule.label!r} needs its function: FunctionRule(label, function)")
    log_class = math.log(ClassMistakes(rules, labels).check(facts.domain))
    sure = float(exact.probability(beta=beta))

    def exponential() -> Method:
        made = calibrate(lambda noise: FiniteClass(rules, labels, 1 / noise), funds=funds, facts=facts)
        rate = float(made.rate)
        return Method(
            NAME,
            wrong_rows("exponential mechanism over the list", sure, best_of="the hypotheses"),
            lambda alpha: empirical_size(log_class, alpha, sure, rate),
            lambda alpha: made,
        )

    return Methods({NAME: exponential}, preferred=(NAME,))
