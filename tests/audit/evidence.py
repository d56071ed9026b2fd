"""Findings that the audits of sessions and of descents need besides those of `discreet.audit`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence

import numpy as np

from discreet.audit.divergence import Finding
from discreet.audit.laws import Law
from discreet.audit.sampled import clopper_pearson
from discreet.funds import NANO


def divergence_lower_bound(first: Sequence[float], second: Sequence[float], *, error: float = 1e-6) -> float:
    """A lower bound on the Kullback-Leibler divergence of two worlds, wrong with probability at most `error`.

    A release that is rho-zCDP has divergence at most rho. An event of probability p in one world and q in the other
    proves at least p ln(p/q) + (1-p) ln((1-p)/(1-q)): the event is {statistic >= the middle of both worlds' medians},
    chosen on one half of the runs and tested on the other. This sees what a Gaussian loses where epsilons do not: the
    slack of converting to (epsilon, delta) is not in the way.
    """
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    cut = (np.median(a[: len(a) // 2]) + np.median(b[: len(b) // 2])) / 2
    found = 0.0
    for p, q in ((a, b), (b, a)):
        hits = [int((each[len(each) // 2 :] >= cut).sum()) for each in (p, q)]
        runs = [len(each) - len(each) // 2 for each in (p, q)]
        for flip in (False, True):
            counts = [n - hit if flip else hit for hit, n in zip(hits, runs, strict=True)]
            low = clopper_pearson(counts[0], runs[0], error / 8)[0]
            high = clopper_pearson(counts[1], runs[1], error / 8)[1]
            if high < low < 1 and high > 0:
                found = max(found, low * math.log(low / high) + (1 - low) * math.log((1 - low) / (1 - high)))
    return found


def renyi_finding(p: Law, q: Law, order: float) -> Finding:
    """A certain lower bound on the Renyi divergence of this order, either way, against the most that was charged.

    Every term is a lower bound: an outcome has at least its listed mass in one law, and at most `missing` more in the
    other.
    """
    charged = [outcome.spent.renyi for law in (p, q) for outcome in law.mass]  # type: ignore[attr-defined]
    claimed = math.inf if None in charged else max(price or 0 for price in charged) / NANO
    bounds = [0.0]
    for here, there in ((p, q), (q, p)):
        other = {outcome: there.mass.get(outcome, 0.0) + there.missing for outcome in here.mass}
        total = math.fsum(mass**order * other[outcome] ** (1 - order) for outcome, mass in here.mass.items())
        bounds.append(math.log(total) / (order - 1) if total > 0 else 0.0)
    return Finding(order, max(bounds), claimed, "loss")


def unexplained_step(laws: Iterable[Law]) -> tuple[str, ...]:
    """A prefix of the ledger after which different things follow, though nothing was released; empty if there is none.

    After equal entries the next one must be the same whatever the rows and the noise are, unless it is the answer of a
    release, or a threshold's yes against the one entry that follows its no. At the end what was noted must be the same.
    """
    follows: dict[tuple[str, ...], set[str]] = {}
    for outcome in (outcome for law in laws for outcome in law.mass):
        entries = outcome.entries  # type: ignore[attr-defined]
        for place, entry in enumerate(entries):
            follows.setdefault(entries[:place], set()).add(entry)
        follows.setdefault(entries, set()).add(repr(outcome))
    for prefix, entries in follows.items():
        kinds = {json.loads(entry)["kind"] if entry.startswith("{") else "end" for entry in entries}
        if len(entries) > 1 and kinds != {"answer"} and not (len(entries) == 2 and "top" in kinds):
            return prefix
    return ()
