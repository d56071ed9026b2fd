"""An attack by sampling: run the mechanism on two neighbouring tables, guess, and bound epsilon from the guesses.

For laws that cannot be listed. Half of the runs choose the best event of the form {statistic >= t} or {statistic <= t};
the other half estimate its probabilities in both worlds, with Clopper-Pearson bounds. The result is a lower bound on
the true epsilon that is wrong with probability at most `error`; passing it is evidence, never a proof.
"""

from __future__ import annotations

import itertools
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
    worlds = [np.asarray(values, dtype=float) for values in (first, second)]
    halves = [(values[: len(values) // 2], values[len(values) // 2 :]) for values in worlds]
    bounds = []
    for sign, ((p, tested_p), (q, tested_q)) in itertools.product((1.0, -1.0), itertools.permutations(halves)):
        cut = _best_cut(sign * p, sign * q, delta)
        low = clopper_pearson(int((sign * tested_p >= cut).sum()), len(tested_p), error / 8)[0]
        high = clopper_pearson(int((sign * tested_q >= cut).sum()), len(tested_q), error / 8)[1]
        bounds.append(math.log((low - delta) / high) if low > delta else 0.0)
    return max(0.0, *bounds)


def _best_cut(p: NDArray[np.float64], q: NDArray[np.float64], delta: float) -> float:
    """The threshold whose event looks most like a violation on the training half, counts below 50 not trusted."""
    cuts = np.unique(np.concatenate([p, q]))
    above_p = len(p) - np.searchsorted(np.sort(p), cuts)
    above_q = len(q) - np.searchsorted(np.sort(q), cuts)
    gain = np.log(np.maximum(above_p / len(p) - delta, 1e-12)) - np.log((above_q + 50) / len(q))
    return float(cuts[int(np.argmax(gain))])
