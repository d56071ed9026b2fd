"""An attack by sampling: run the mechanism on two neighbouring tables, guess, and bound epsilon from the guesses.

For laws that cannot be listed. Half of the runs choose the best event of the form {statistic >= t} or {statistic <= t};
the other half estimate its probabilities in both worlds, with Clopper-Pearson bounds. The result is a lower bound on
the true epsilon that is wrong with probability at most `error`; passing it is evidence, never a proof.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def clopper_pearson(hits: int, runs: int, error: float) -> tuple[float, float]:
    """An interval that holds the probability, each side wrong with probability at most error."""
    from scipy.stats import beta

    low = 0.0 if hits == 0 else float(beta.ppf(error, hits, runs - hits + 1))
    high = 1.0 if hits == runs else float(beta.ppf(1 - error, hits + 1, runs - hits))
    return low, high


def epsilon_lower_bound(
    first: Sequence[float], second: Sequence[float], *, delta: float = 0.0, error: float = 1e-6
) -> float:
    """A lower bound on epsilon from a statistic's values in the two worlds, wrong with probability at most `error`."""
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    trained_a, tested_a = a[: len(a) // 2], a[len(a) // 2 :]
    trained_b, tested_b = b[: len(b) // 2], b[len(b) // 2 :]
    bounds = []
    for sign in (1.0, -1.0):
        for p, q, tp, tq in ((trained_a, trained_b, tested_a, tested_b), (trained_b, trained_a, tested_b, tested_a)):
            cut = _best_cut(sign * p, sign * q, delta)
            hits_p, hits_q = int((sign * tp >= cut).sum()), int((sign * tq >= cut).sum())
            low = clopper_pearson(hits_p, len(tp), error / 8)[0]
            high = clopper_pearson(hits_q, len(tq), error / 8)[1]
            bounds.append(math.log((low - delta) / high) if low > delta else 0.0)
    return max(0.0, *bounds)


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


def _best_cut(p: NDArray[np.float64], q: NDArray[np.float64], delta: float) -> float:
    """The threshold whose event looks most like a violation on the training half, counts below 50 not trusted."""
    cuts = np.unique(np.concatenate([p, q]))
    above_p = len(p) - np.searchsorted(np.sort(p), cuts)
    above_q = len(q) - np.searchsorted(np.sort(q), cuts)
    gain = np.log(np.maximum(above_p / len(p) - delta, 1e-12)) - np.log((above_q + 50) / len(q))
    return float(cuts[int(np.argmax(gain))])
