"""The price of choosing again and again from rows that a choice deletes: it does not grow with the number of choices.

A self-deleting selection draws, round after round, one candidate with probability proportional to a weight; every row
that the candidate "hits" is then deleted. Say that a row is a *rise* if its addition multiplies the weights of the
candidates that hit it by factors in [1, e^rate], a *fall* if by factors in [e^-rate, 1], in every round, and that it
leaves all other weights alone. Whatever the rounds do, the row can be noticed once only: when it is hit, it is gone.

Theorem (hazard lemma). Let P be the law of everything that is drawn without a rise, Q the law with it. Then Q is
    rate-close to P, and P, Q are no easier to tell apart than exponential variables of rates 1 and e^rate:
    P(E) - e^epsilon Q(E) <= hazard_delta(rate, epsilon) = (1 - e^-rate) exp(-(epsilon + rate) / (e^rate - 1)).
Several rows. A change is a chain of steps. Adding a rise or removing a fall is a step up, the other two are steps down;
    a removed fall and an added rise that together still multiply every weight by at most e^rate are one *pair*. With i
    pairs, s single steps up and b steps down, for L = e^(i rate), S = e^(s rate) and F(u) = (1 + u) e^-u,
    P(E) - e^epsilon Q(E) <= max over u >= 0 of F(u) - e^(epsilon - b rate) F(L u)^S.
    A price is the maximum over all ways in which a person's rows can be rises and falls.

Proof: docs/proofs/hazard.md. All floats here are rounded up.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.core import SLACK, Exact, Floats, Neighbours, OutOfRange, ParameterError, exact

Steps = tuple[Floats, ...]

LEAST_FAILURE = Fraction(1, 10**289)
_STEEPEST = 30
_FARTHEST = 710.0  # e^-710 is below every failure that is promised
_PAIRED_ROWS = 256
_HALVINGS = 64


def hazard_delta(rate: Exact, epsilon: Exact) -> float:
    """delta(epsilon) for one step up: the closed form of the hazard lemma."""
    step, promised = float(_gentle(rate, 1)), float(exact.number(epsilon=epsilon))
    if promised <= -step:
        return _up(-math.expm1(promised))
    return _up(-math.expm1(-step) * math.exp(-(promised + step) / math.expm1(step)))


def chain_delta(rate: Exact, epsilon: Exact, *, pairs: int, singles: int, downs: int) -> float:
    """delta(epsilon) for a chain of these pairs, single steps up and steps down: the module's docstring has it."""
    step, promised = float(_gentle(rate, pairs + singles)), float(exact.number(epsilon=epsilon))
    one = tuple(np.array([float(exact.whole(0, steps=steps))]) for steps in (pairs, singles, downs))
    return _delta(step, promised, one)


def profile(rate: Exact, epsilon: Exact, neighbours: Neighbours | str) -> float:
    """delta(epsilon) of a self-deleting selection whose positive rows are falls and whose negative rows are rises."""
    relation = Neighbours.of(neighbours)
    step, promised = float(_gentle(rate, relation.rows)), float(exact.number(epsilon=epsilon))
    return _delta(step, promised, _splits(relation.replace_one, relation.rows))


def _delta(step: float, promised: float, steps: Steps) -> float:
    """The largest delta over these chains."""
    pairs, singles, downs = steps
    level = promised - downs * step
    low, high = np.zeros_like(pairs), np.full_like(pairs, _FARTHEST)
    for _ in range(_HALVINGS):  # where the maximum is: its left end is the safe one, as `_peak` falls
        middle = (low + high) / 2
        left = level >= _level(middle, pairs, singles, step)
        low, high = np.where(left, middle, low), np.where(left, high, middle)
    inside = level > -(singles + 2 * pairs) * step
    deltas = np.where(inside, _peak(low, pairs, singles, step), -np.expm1(np.minimum(level, 0.0)))
    return min(1.0, _up(float(deltas.max())))


@functools.lru_cache(maxsize=4096)
def epsilon(rate: Exact, failure: Exact, neighbours: Neighbours | str) -> Fraction:
    """The least epsilon for which the failure is at most this, rounded up: the inverse of `profile`.

    The maximum over u, at the level e^(epsilon - b rate) for which it is attained at u, is a function of u alone that
    falls; so u is found from the failure, and epsilon from u.
    """
    relation, promised = Neighbours.of(neighbours), exact.probability(failure=failure)
    if promised < LEAST_FAILURE:
        raise ParameterError(f"failure must be at least 1e-289, found {failure!r}")
    step, allowed = float(_gentle(rate, relation.rows)), float(promised) * (1 - SLACK)
    pairs, singles, downs = _splits(relation.replace_one, relation.rows)
    low, high = np.zeros_like(pairs), np.full_like(pairs, _FARTHEST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = _peak(middle, pairs, singles, step) <= allowed
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    reached = _peak(np.zeros_like(pairs), pairs, singles, step) > allowed
    level = np.where(reached, _level(high, pairs, singles, step), math.log1p(-allowed))
    return Fraction(max(0.0, _up(float((level + downs * step).max()))))


@functools.lru_cache(maxsize=64)
def _splits(replaced: bool, rows: int) -> Steps:
    """(pairs, single steps up, steps down) for every way in which a person's rows can be rises and falls.

    More steps never help, so only the most: `rows` additions or, replacing, `rows` removals and as many additions. For
    very many rows nothing is paired, which is a bound too.
    """
    if not replaced or rows > _PAIRED_ROWS:
        steps = 2 * rows if replaced else rows
        up = np.arange(steps + 1, dtype=np.float64)
        return np.zeros_like(up), up, steps - up
    more, fewer = (counts.astype(np.float64) for counts in np.tril_indices(rows + 1))
    return fewer, more - fewer, 2 * rows - more - fewer


def _peak(u: Floats, pairs: Floats, singles: Floats, step: float) -> Any:
    """The maximum, when it is attained at u: e^-u ((1 - 1/(S L^2)) + u (1 - 1/(S L))); it falls in u."""
    return np.exp(-u) * (-np.expm1(-(singles + 2 * pairs) * step) - u * np.expm1(-(singles + pairs) * step)) * _RAISED


def _level(u: Floats, pairs: Floats, singles: Floats, step: float) -> Any:
    """The level ln c at which F(u) - c F(L u)^S is largest at u, rounded up; it rises with u."""
    far = np.exp(pairs * step) * u
    terms = (
        -(singles + 2 * pairs) * step,
        np.expm1(pairs * step) * u,
        np.expm1(singles * step) * (far - np.log1p(far)),
    )
    return sum(terms) + SLACK * (abs(terms[0]) + terms[1] + np.expm1(singles * step) * far)


_RAISED = 1 + SLACK


def _up(value: float) -> float:
    return value * _RAISED + 1e-300 if value > 0 else 0.0


def _gentle(rate: Exact, rows: int) -> Fraction:
    """A rate whose e^(rows rate) is an ordinary number; a rate that is not proves nothing of use."""
    number = exact.positive(rate=rate)
    if number * rows > _STEEPEST:
        raise OutOfRange(f"rate must be at most {_STEEPEST} / {rows} here, found {exact.shown(number)}", too_much=False)
    return number
