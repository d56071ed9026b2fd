"""The game of PAC learning, played many times: how often is the learned rule wrong on more than alpha of its rows?

    lost = failures(mechanism, data, rule_of, alpha=0.1, runs=200, rng=SeededRng(1))
    assert_honest(lost, 200, beta=0.05)

`rule_of` turns what a run returned into a rule; `data` is one dataset, or a function that draws a fresh one for every
run from its number. A promise "alpha with probability 1 - beta" is refuted only when so many losses would happen with
probability at most 1e-6 if it were true.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import betaincinv
from scipy.stats import binom

from discreet.data import Dataset
from discreet.mechanisms import Mechanism
from discreet.pac.rules import Labels, Mistakes, Rule
from discreet.rng import Rng

FALSE_ALARM = 1e-6


def mistakes(rule: Rule, data: Dataset, labels: Labels) -> int:
    """How many rows the rule labels wrong."""
    return int(data.exact_sum(Mistakes(rule, labels)))


def rows_of(data: Dataset) -> int:
    """How many rows there are."""
    return int(data.exact_sum(lambda batch: np.asarray(batch.rows, dtype=np.int64)))


def failures(
    mechanism: Mechanism,
    data: Dataset | Callable[[int], Dataset],
    rule_of: Callable[[Any], Rule],
    alpha: float,
    runs: int,
    rng: Rng,
    labels: Labels | None = None,
) -> int:
    """In how many runs the learned rule is wrong on more than alpha of the rows.

    labels  which rows are positive; the mechanism's own field of this name if it is not given
    """
    judged: Labels = mechanism.labels if labels is None else labels  # type: ignore[attr-defined]
    lost = 0
    for run in range(runs):
        rows = data(run) if callable(data) else data
        wrong = mistakes(rule_of(mechanism.run(rows, rng)), rows, judged)
        lost += wrong > alpha * rows_of(rows)
    return lost


def clopper_pearson_upper(lost: int, runs: int, confidence: float) -> float:
    """The largest probability of losing that is not refuted at this confidence."""
    return 1.0 if lost == runs else float(betaincinv(lost + 1, runs - lost, confidence))


def clopper_pearson_lower(lost: int, runs: int, confidence: float) -> float:
    """The smallest probability of losing that is not refuted at this confidence."""
    return 0.0 if lost == 0 else float(betaincinv(lost, runs - lost + 1, 1 - confidence))


def most_losses(runs: int, beta: float) -> int:
    """The largest number of losses that does not refute a losing probability of beta at FALSE_ALARM."""
    return int(binom.isf(FALSE_ALARM, runs, beta))


def assert_honest(lost: int, runs: int, beta: float) -> None:
    """Fails only if the losses prove a losing probability above beta: a false alarm has probability at most 1e-6."""
    assert 0 <= lost <= runs
    assert not math.isnan(beta)
    chance = float(binom.sf(lost - 1, runs, beta))
    assert chance > FALSE_ALARM, f"{lost} of {runs} runs lost: had probability {chance:.2g} if at most {beta:g} may be"


def lecture_needed(alpha: float, *, choices: int, k: int, beta: float, epsilon: float) -> int:
    """The rows that take 2 needs as the lecture runs it: J = 2 k ln n rounds, replace-one, basic composition.

    n >= (2 J / alpha) D with D = (2 J / epsilon) ln(choices J / beta): the lecture's D lacks the J of its composition.
    """
    rows = 1.0
    for _ in range(200):  # the right side grows like ln^2 n ln ln n: iterating it from below converges
        rounds = max(1.0, 2 * k * math.log(rows))
        rows = max(2.0, 4 * rounds**2 / (alpha * epsilon) * math.log(choices * rounds / beta))
    return math.ceil(rows)
