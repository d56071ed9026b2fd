"""A paid certificate: how often a rule that was learned is wrong on private rows.

    got = certify(rule, labels, table, epsilon=0.05, beta=0.01, ledger=ledger)
    print(got)        wrong on at most 212 rows (2.1 %) with probability 0.99

It holds for every rule, however it was learned, and needs no assumption about the rows: the number of mistakes is
released with Laplace noise, and the noise is far below zero with probability beta only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet.core import Exact, Guarantee, exact, log_fraction
from discreet.data import Dataset, Facts
from discreet.ledger import Ledger
from discreet.mechanisms import Laplace, LaplaceNoise, Rng
from discreet.pac.rules import Labels, Mistakes, Rule
from discreet.release import Released, release


@dataclass(frozen=True, slots=True)
class MistakeBound:
    """A rule is wrong on at most `rows` private rows with probability 1 - beta.

    mistakes  the noisy number of mistakes, which may be below zero
    rows      mistakes plus what the noise may hide, at least 0
    error     rows as a share of all rows, at most 1; None if the number of rows is private (add-remove)
    entry     the charge in the ledger, and its hash
    """

    mistakes: int
    rows: int
    error: float | None
    beta: Fraction
    guarantee: Guarantee
    entry: int
    hash: str

    def __str__(self) -> str:
        return bound_in_words(self.rows, self.error, self.beta)


def bound_in_words(rows: int, error: float | None, beta: Exact) -> str:
    """What a bound says; the share is rounded up, and 1 - beta down."""
    share = "" if error is None else f" ({math.ceil(round(error * 10**4, 6)) / 100:.2f}% of all)"
    sure = 1 - exact.probability(beta=beta)
    return f"wrong on at most {rows:,} rows{share} with probability {math.floor(sure * 10**6) / 10**6:g}"


def certify(
    rule: Rule, labels: Labels, data: Dataset, *, epsilon: Exact, beta: Exact, ledger: Ledger, rng: Rng | None = None
) -> MistakeBound:
    """Release a bound on the number of mistakes of a rule; it costs epsilon, pure.

    Theorem.   The number of mistakes moves by at most k when a person of k rows changes, so with scale k / epsilon its
               release E is epsilon-DP. With m the least whole number for which q^(m+1) / (1 + q) <= beta,
               q = exp(-epsilon / k), mistakes <= E + m with probability 1 - beta.
    Edges.     replace-one: every person has a row (not in a table beside that of the persons), so the share is at most
               (E + m) / persons. rng: for testing ledgers.
    """
    mechanism = noisy_mistakes(rule, labels, epsilon=epsilon, facts=data.facts)
    allowed = exact.probability(beta=beta)
    released = release(mechanism, data, ledger=ledger, memo="certificate", rng=rng)
    return bound_of(released, mechanism, data.facts, beta=allowed)


def noisy_mistakes(rule: Rule, labels: Labels, *, epsilon: Exact, facts: Facts) -> Laplace:
    """The release behind a bound."""
    return Laplace(Mistakes(rule, labels), facts.neighbours.rows / exact.positive(epsilon=epsilon))


def bound_of(released: Released, mechanism: Laplace, facts: Facts, *, beta: Fraction) -> MistakeBound:
    """What a release of `noisy_mistakes` says."""
    rows = max(0, released.value + hidden_mistakes(mechanism.scale, beta))
    public = facts.size if facts.everybody else None
    error = None if public is None else min(1.0, rows / public) if public else 0.0
    return MistakeBound(released.value, rows, error, beta, released.guarantee, released.entry, released.hash)


def hidden_mistakes(scale: Fraction, beta: Exact) -> int:
    """The least m for which discrete Laplace noise of this scale is below -m with probability at most beta."""
    return LaplaceNoise(scale).reach(log_fraction(exact.probability(beta=beta)) - 1e-12) - 1
