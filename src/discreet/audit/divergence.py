"""How well two laws can be told apart, exactly, and whether that is more than was promised.

delta(epsilon) between laws P and Q is the hockey-stick divergence: the sum over outcomes of (P - e^epsilon Q)+. Laws
found by enumeration miss a known probability each, so what is computed is a pair of bounds; an attack is believed only
from the lower one, an acquittal only from the upper one.
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

    what  "delta" at that epsilon; or "loss", the logarithm of a ratio of probabilities, where epsilon is nothing
    """

    epsilon: float
    found: float
    claimed: float
    what: str = "delta"

    @property
    def violates(self) -> bool:
        return self.found > self.claimed * (1 + TOLERANCE) + TOLERANCE

    @property
    def ratio(self) -> float:
        return self.found / self.claimed if self.claimed > 0 else (math.inf if self.found > TOLERANCE else 0.0)


def compare(p: Law, q: Law, guarantee: Guarantee, *, epsilons: Sequence[float] = EPSILONS) -> Finding:
    """The worst point of delta(epsilon), in either direction: it violates the guarantee, or comes nearest to it."""
    points = list(epsilons)
    if guarantee.pure is not None:
        points.append(float(guarantee.pure))
    findings = []
    for epsilon in points:
        found = max(hockey_stick(p, q, epsilon)[0], hockey_stick(q, p, epsilon)[0])
        findings.append(Finding(epsilon, found, guarantee.delta(epsilon)))
    return max(findings, key=lambda each: (each.violates, each.ratio))
