"""How well two laws can be told apart, exactly, and whether that is more than was promised.

delta(epsilon) between laws P and Q is the hockey-stick divergence: the sum over outcomes of (P - e^epsilon Q)+. Laws
found by enumeration miss a known probability each, so what is computed is a pair of bounds; an attack is believed only
from the lower one, an acquittal only from the upper one.

Read the other way round: whoever claims (epsilon, delta) is refuted by an event that has more than e^epsilon times its
probability under the other law, plus delta. `epsilon_at` is the largest epsilon that the laws rule out at a delta.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from discreet.audit.laws import Law
from discreet.guarantee import Guarantee

EPSILONS: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.3, 1.6, 2.0, 2.5, 3.0, 4.0, 5.0)
TOLERANCE = 1e-9


def hockey_stick(p: Law, q: Law, epsilon: float) -> tuple[float, float]:
    """Lower and upper bound on the sup over events of P(event) - e^epsilon Q(event)."""
    factor = math.exp(epsilon)
    seen = math.fsum(max(0.0, mass - factor * q.mass.get(outcome, 0.0)) for outcome, mass in p.mass.items())
    return max(0.0, seen - factor * q.missing), min(1.0, seen + p.missing)


def loss(p: Law, q: Law) -> float:
    """A lower bound on the pure epsilon that separates the laws: the largest ln(P/Q) of one outcome, what was cut off
    counted against the finding."""
    return max(_one_way(p, q), _one_way(q, p))


def _one_way(p: Law, q: Law) -> float:
    worst = 0.0
    for outcome, mass in p.mass.items():
        most = q.mass.get(outcome, 0.0) + q.missing
        worst = max(worst, math.inf if most == 0 else math.log(mass / most) if mass > 0 else 0.0)
    return worst


@dataclass(frozen=True, slots=True)
class Finding:
    """The worst point of a comparison: at `epsilon`, `found` is certain and `claimed` was promised.

    what  "delta" at that epsilon; or "loss", the logarithm of a ratio of probabilities, where epsilon is nothing; or
          "epsilon" at the stated delta, from laws, and "sampled", from runs, where epsilon is what was promised
    """

    epsilon: float
    found: float
    claimed: float
    what: str = "delta"
    delta: float = 0.0

    @property
    def violates(self) -> bool:
        return self.found > self.claimed * (1 + TOLERANCE) + TOLERANCE

    @property
    def ratio(self) -> float:
        return self.found / self.claimed if self.claimed > 0 else (math.inf if self.found > TOLERANCE else 0.0)


def compare(p: Law, q: Law, guarantee: Guarantee, *, epsilons: Sequence[float] = EPSILONS) -> Finding:
    """The worst point of delta(epsilon), in either direction: it violates the guarantee, or comes nearest to it."""
    points = [*epsilons, *([] if guarantee.pure is None else [float(guarantee.pure)])]
    found = [(epsilon, max(hockey_stick(*pair, epsilon)[0] for pair in ((p, q), (q, p)))) for epsilon in points]
    findings = [Finding(epsilon, delta, guarantee.delta(epsilon)) for epsilon, delta in found]
    return max(findings, key=lambda one: (one.violates, one.ratio))


# The largest epsilon that is ruled out.


def claims(guarantee: Guarantee, *, epsilons: Sequence[float] = EPSILONS) -> list[tuple[float, float]]:
    """Pairs (epsilon, delta) that a guarantee claims; its pure one first, if it has one."""
    pure = [] if guarantee.pure is None else [(float(guarantee.pure), float(guarantee.failure))]
    curve = [(epsilon, guarantee.delta(epsilon)) for epsilon in epsilons]
    return [*pure, *((epsilon, delta) for epsilon, delta in curve if delta < 1)]


def epsilon_at(p: Law, q: Law, delta: float) -> float:
    """No epsilon below this makes the laws (epsilon, delta)-close, in either direction; what was cut off of a law is
    counted against the finding."""
    return max(_epsilon_one_way(p, q, delta), _epsilon_one_way(q, p, delta))


def _epsilon_one_way(p: Law, q: Law, delta: float) -> float:
    """The best event holds the outcomes with the largest ratios, down to some ratio: all of those are tried."""
    pairs = [(mass, q.mass.get(outcome, 0.0)) for outcome, mass in p.mass.items() if mass > 0]
    pairs.sort(key=lambda pair: math.inf if pair[1] == 0 else pair[0] / pair[1], reverse=True)
    allowed = delta + (_SUMMED if delta > 0 else 0.0)
    worst = here = there = 0.0
    for mass, other in pairs:
        here, there = here + mass, there + other
        if here > allowed:
            worst = max(worst, math.log((here - allowed) / (there + q.missing)))
    return worst


_SUMMED = 1e-12
"""What sums of floats near a delta may be off by."""


def epsilon_finding(p: Law, q: Law, guarantee: Guarantee) -> Finding:
    """The claim that the laws come nearest to ruling out, or rule out: a pure one if there is one, unless only another
    is refuted."""
    findings = [
        Finding(claimed, epsilon_at(p, q, delta), claimed, "epsilon", delta) for claimed, delta in claims(guarantee)
    ]
    pure = None if guarantee.pure is None else findings[0]
    return max(findings, key=lambda one: (one.violates, one is pure, one.ratio if one.ratio < math.inf else 0.0))
