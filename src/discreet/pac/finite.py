"""Any finite class of rules by the exponential mechanism: lecture 12's generic learner, with its sample sizes.

    FiniteClass((rule, rule, ...), labels, rate)     a list of rules: BoxRule, Conjunction, Where, FunctionRule
    FiniteClass(Predictions("x"), labels, rate)      a matrix of predictions: bit j of a row is what hypothesis j says

The score of a rule is minus the number of rows that it labels wrong. Sizes: `empirical_size`, `agnostic_excess` speak
about the rows at hand, as the lecture does; `population_size`, `agnostic_population_size` about rows drawn
independently from a distribution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet import exact
from discreet.data import Batch, Bits, Dataset, Domain, Facts, IntArray, Mask, common_ones, packed, unpacked
from discreet.erm.exponential.line import person_range
from discreet.erm.gradient import alone, rows_of
from discreet.errors import ParameterError
from discreet.exact import Exact
from discreet.funds import Funds
from discreet.guarantee import Guarantee, Neighbours
from discreet.mechanisms import calibrate
from discreet.method import Method, Methods, wrong_rows
from discreet.pac.labels import Labels, Rule
from discreet.query import Predicate, in_words, predicates
from discreet.records import record
from discreet.rng import Rng, checked_rate

NAME = "exponential"
CHECKED = 1e-9  # what the sizes are raised by, more than their floats lose


@dataclass(frozen=True, slots=True)
class Where:
    """The rule that says "positive" where a predicate holds."""

    NAME: ClassVar[str] = "where-rule/1"
    predicate: Predicate

    def __post_init__(self) -> None:
        predicates((self.predicate,))

    def check(self, domain: Domain) -> None:
        self.predicate.check(domain)

    def mask(self, batch: Batch) -> Mask:
        return self.predicate.mask(batch)

    def said(self, domain: Domain) -> str:
        return in_words(self.predicate)


@dataclass(frozen=True, slots=True)
class FunctionRule:
    """A user's function of one row, {column: level, number or booleans} -> bool; the ledger knows its label only.

    It is asked for one row at a time and nothing that it says is heard: where it fails, or returns neither True nor
    False, it predicts "negative". Slow, and the owner vouches that it does not remember earlier rows.
    """

    NAME: ClassVar[str] = "function-rule/1"
    label: str
    function: Callable[[Any], object] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        exact.text(label=self.label)
        if self.function is not None and not callable(self.function):
            raise ParameterError(f"the rule {self.label!r} needs a function, found a {type(self.function).__name__}")

    def check(self, domain: Domain) -> None:
        """A function is asked for one row at a time: nothing to check. (Its record, without it, is priced again.)"""

    def mask(self, batch: Batch) -> Mask:
        if self.function is None:
            raise ParameterError(f"the rule {self.label!r} was read from a record, which holds its label only")
        said = (alone(self.function, row, False) for row in _rows(batch))
        return np.array([isinstance(each, (bool, np.bool_)) and bool(each) for each in said], dtype=np.bool_)

    def said(self, domain: Domain) -> str:
        return self.label

    def stated_record(self) -> dict[str, Any]:
        return {"name": self.NAME, "label": record(self.label)}


def _rows(batch: Batch) -> Iterator[dict[str, Any]]:
    """The rows of a batch one at a time; Bits as booleans, in the order of the variables."""
    packed_names = [name for name in batch.domain.names if isinstance(batch.domain.column(name), Bits)]
    if not packed_names:
        yield from rows_of(batch)
        return
    others = Domain({name: column for name, column in batch.domain.items() if name not in packed_names})
    booleans = {name: unpacked(batch.stored(name), batch.rows).T for name in packed_names}
    plain: Iterator[dict[str, Any]] = rows_of(Batch(others, batch.rows, batch.stored))
    for place, row in enumerate(plain):
        yield {name: booleans[name][place].copy() if name in booleans else row[name] for name in batch.domain.names}


@dataclass(frozen=True, slots=True)
class Predictions:
    """The hypotheses whose predictions are the variables of a column of Bits."""

    NAME: ClassVar[str] = "predictions/1"
    column: str

    def __post_init__(self) -> None:
        exact.text(column=self.column)

    def check(self, domain: Domain) -> None:
        declared = domain.column(self.column)
        if not isinstance(declared, Bits):
            raise ParameterError(
                f"column {self.column!r} is declared {declared!r}: predictions are Bits of a BitMatrix"
            )

    def size(self, domain: Domain) -> int:
        declared = domain.column(self.column)
        assert isinstance(declared, Bits)
        return declared.dimension

    def mistakes(self, batch: Batch, labels: Labels) -> IntArray:
        positive = labels.mask(batch)
        lines = batch.stored(self.column)
        wrong = common_ones(lines, packed(~positive)) - common_ones(lines, packed(positive))
        return np.asarray(wrong + np.count_nonzero(positive), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class ClassMistakes:
    """For each hypothesis the number of rows that it labels wrong.

    Theorem.   A row adds 0 or 1 to each. The range is 1 under add-remove, 2 under replace-one, k times that for a
               person of k rows; one hypothesis alone has range 0.
    """

    hypotheses: tuple[Rule, ...] | Predictions
    labels: Labels

    def check(self, domain: Domain) -> None:
        self.labels.check(domain)
        for each in self.hypotheses if isinstance(self.hypotheses, tuple) else (self.hypotheses,):
            each.check(domain)

    def size(self, domain: Domain) -> int:
        return len(self.hypotheses) if isinstance(self.hypotheses, tuple) else self.hypotheses.size(domain)

    def range(self, facts: Facts) -> int:
        return mistakes_range(facts.neighbours) if self.size(facts.domain) > 1 else 0

    def partial(self, batch: Batch) -> IntArray:
        if isinstance(self.hypotheses, Predictions):
            return self.hypotheses.mistakes(batch, self.labels)
        positive = self.labels.mask(batch)
        return np.array([np.count_nonzero(rule.mask(batch) != positive) for rule in self.hypotheses], dtype=np.int64)


def mistakes_range(neighbours: Neighbours) -> int:
    """How much further the number of one rule's mistakes can move than another's when one person changes."""
    return person_range(neighbours, added=1, replaced=2)


@dataclass(frozen=True, slots=True, init=False)
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

    def __init__(self, hypotheses: Iterable[Rule] | Predictions, labels: Labels, rate: Exact) -> None:
        exact.freeze(self, hypotheses=listed_rules(hypotheses), labels=labels, rate=exact.positive(rate=rate))

    def guarantee(self, facts: Facts) -> Guarantee:
        scores = ClassMistakes(self.hypotheses, self.labels)
        scores.check(facts.domain)
        return selection_price(self.rate, scores.range(facts), facts)

    def run(self, data: Dataset, rng: Rng) -> int:
        mistakes = data.exact_sum(ClassMistakes(self.hypotheses, self.labels).partial)
        return rng.select(-mistakes, self.rate)


def selection_price(rate: Fraction, span: int, facts: Facts) -> Guarantee:
    """What a selection by exp(-rate * mistakes) costs, if it can be drawn for every possible number of mistakes."""
    checked_rate(rate * facts.rows_bound)
    return Guarantee.of_bounded_range(checked_rate(rate) * span, neighbours=facts.neighbours)


def listed_rules(hypotheses: Iterable[Rule] | Predictions) -> tuple[Rule, ...] | Predictions:
    """The hypotheses, if they are rules or a column of predictions; at least one."""
    if isinstance(hypotheses, Predictions):
        return hypotheses
    found = tuple(hypotheses)
    if not found:
        raise ParameterError("hypotheses must hold at least one rule, found none")
    for each in found:
        if not all(callable(getattr(each, name, None)) for name in ("check", "mask", "said")):
            hint = "; wrap a predicate in Where(...), a function in FunctionRule(label, function)"
            raise ParameterError(f"a hypothesis must be a rule, found a {type(each).__name__}{hint}")
    return found


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
    for each in rules if isinstance(rules, tuple) else ():
        if isinstance(each, FunctionRule) and each.function is None:
            raise ParameterError(f"the rule {each.label!r} needs its function: FunctionRule(label, function)")
    scores = ClassMistakes(rules, labels)
    scores.check(facts.domain)
    log_class, sure = math.log(scores.size(facts.domain)), float(exact.probability(beta=beta))

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
