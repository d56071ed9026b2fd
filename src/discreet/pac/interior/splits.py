"""How the prefix routines share their epsilon and their beta among their steps: the best of a small grid.

A split is chosen once, for a domain, a total epsilon and a beta; then `routine(noise)` is the routine whose steps' pure
epsilons add up to 1 / noise and whose failure is at most `failure`: one knob, for `mechanism.calibrate`. Shares are
whole 40ths. Everything here is public, and decides how many values are needed, never what is promised about privacy:
a routine's price is computed from the routine alone.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from discreet.errors import ParameterError
from discreet.guarantee import Neighbours
from discreet.mechanisms import LaplaceNoise, stable
from discreet.pac.interior.prefix import PairPrefix, PrefixSearch, crowded_pairs
from discreet.pac.interior.rank import MinRank, Routine, Size, code_bits, moved
from discreet.rng import checked_scale

Shares = tuple[int, ...]

_WHOLE = 40
_MOVES = (4, 2, 1)
_LEAST_FAILURE = Fraction(1, 10**200)


@dataclass(frozen=True, slots=True)
class PrefixSplit:
    """Shares of a PrefixSearch: of epsilon and of beta, for the number of digits, the prefix and the end."""

    neighbours: Neighbours
    failure: Fraction
    beta: float
    epsilons: Shares = (16, 17, 7)
    betas: Shares = (20, 10, 10)

    def routine(self, noise: Fraction) -> PrefixSearch:
        span = moved(self.neighbours).range
        first, second, third = (noise * _WHOLE / share for share in self.epsilons)
        _, missed, wrong = (self.beta * share / _WHOLE for share in self.betas)
        scale, side_scale = checked_scale(span * second), span * third
        bound = _least_bound(scale, self.failure, self.neighbours)
        heavy = 2 * stable.certain_count(scale, bound, missed)
        light = LaplaceNoise(side_scale).reach(math.log(wrong))
        return PrefixSearch(1 / (span * first), scale, bound, side_scale, heavy, light)


@dataclass(frozen=True, slots=True)
class PairSplit:
    """Shares of a PairPrefix: of epsilon for the inner routine, the prefix and the end; of beta for the inner routine,
    pairs that share too many digits, the prefix and the end. `inner` prices under replace-one."""

    size: Size
    neighbours: Neighbours
    failure: Fraction
    beta: float
    inner: Callable[[Fraction], Routine]
    epsilons: Shares = (20, 14, 6)
    betas: Shares = (16, 8, 8, 8)

    def routine(self, noise: Fraction) -> PairPrefix:
        return self._found(noise)[0]

    def needed(self, noise: Fraction) -> int:
        """How many values the routine of this noise needs, with the betas as they are split."""
        return self._found(noise)[1]

    def _found(self, noise: Fraction) -> tuple[PairPrefix, int]:
        span = moved(self.neighbours).range
        first, second, third = (noise * _WHOLE / share for share in self.epsilons)
        inside, crowded, missed, wrong = (self.beta * share / _WHOLE for share in self.betas)
        inner, scale, side_scale = self.inner(first), checked_scale(span * second), span * third
        bound = _least_bound(scale, self.failure, self.neighbours)
        bottom = LaplaceNoise(side_scale).reach(math.log(wrong)) - 1
        values = inner.needed(code_bits(self.size) + 1, inside)
        top = _least_top(stable.certain_count(scale, bound, missed) - 1, values + bottom, crowded)
        return PairPrefix(inner, top, bottom, scale, bound, side_scale), 2 * (values + top + bottom)


@functools.lru_cache(maxsize=256)
def prefix_split(
    size: Size, *, neighbours: Neighbours, epsilon: Fraction, failure: Fraction, beta: float
) -> PrefixSplit:
    """The split that needs the fewest values."""
    _check(failure)

    def cost(epsilons: Shares, betas: Shares) -> int:
        split = PrefixSplit(neighbours, failure, beta, epsilons, betas)
        return split.routine(1 / epsilon).needed(size, beta)

    start = PrefixSplit(neighbours, failure, beta)
    return PrefixSplit(neighbours, failure, beta, *_descend(cost, start.epsilons, start.betas))


@functools.lru_cache(maxsize=64)
def pair_split(size: Size, *, neighbours: Neighbours, epsilon: Fraction, failure: Fraction, beta: float) -> PairSplit:
    """The split that needs the fewest values, with the exponential mechanism or a prefix search inside."""
    _check(failure)
    inner, left = _inner(code_bits(size) + 1, neighbours.rows, epsilon / 2, failure, beta / 2)

    def cost(epsilons: Shares, betas: Shares) -> int:
        return PairSplit(size, neighbours, left, beta, inner, epsilons, betas).needed(1 / epsilon)

    start = PairSplit(size, neighbours, left, beta, inner)
    return PairSplit(size, neighbours, left, beta, inner, *_descend(cost, start.epsilons, start.betas))


def _inner(
    size: Size, rows: int, epsilon: Fraction, failure: Fraction, beta: float
) -> tuple[Callable[[Fraction], Routine], Fraction]:
    """The better inner routine, by its noise, with what is left of the failure for the prefix."""
    replaced = Neighbours("replace-one", rows)
    nested = prefix_split(size, neighbours=replaced, epsilon=epsilon, failure=failure / 2, beta=beta)
    if nested.routine(1 / epsilon).needed(size, beta) < _min_rank(rows, 1 / epsilon).needed(size, beta):
        return nested.routine, failure / 2
    return functools.partial(_min_rank, rows), failure


def _min_rank(rows: int, noise: Fraction) -> MinRank:
    return MinRank(1 / (moved(Neighbours("replace-one", rows)).range * noise))


def _least_bound(scale: Fraction, failure: Fraction, neighbours: Neighbours) -> int:
    return stable.least_bound(scale, failure / (2 if neighbours.replace_one else 1), neighbours.rows)


def _least_top(others: int, more: int, crowded: float) -> int:
    """The least number of pairs to drop for which one more is crowded with at most this probability."""

    def fits(top: int) -> bool:
        return crowded_pairs(top + 1, others, 2 * (top + more)) <= crowded

    step = 1
    while not fits(others + step):
        step *= 2
    low, high = others - 1, others + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return max(0, high)


def _check(failure: Fraction) -> None:
    if failure < _LEAST_FAILURE:
        raise ParameterError("prefixes need a delta > 0: without one use the exponential mechanism")


def _descend(cost: Callable[[Shares, Shares], int], epsilons: Shares, betas: Shares) -> tuple[Shares, Shares]:
    """Shares are moved from one step to another as long as that lowers the cost."""
    best, least = (epsilons, betas), cost(epsilons, betas)
    for amount in _MOVES:
        better = True
        while better:
            better = False
            for moved_shares in (*_moved(best, 0, amount), *_moved(best, 1, amount)):
                found = cost(*moved_shares)
                if found < least:
                    best, least, better = moved_shares, found, True
                    break
    return best


def _moved(shares: tuple[Shares, Shares], which: int, amount: int) -> list[tuple[Shares, Shares]]:
    """The shares with so much moved between two steps of the epsilons (0) or the betas (1)."""
    found = []
    for giver, taker in itertools.permutations(range(len(shares[which])), 2):
        changed = list(shares[which])
        changed[giver], changed[taker] = changed[giver] - amount, changed[taker] + amount
        if changed[giver] > 0:
            found.append((tuple(changed), shares[1]) if which == 0 else (shares[0], tuple(changed)))
    return found
