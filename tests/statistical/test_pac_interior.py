"""At exactly the number of values that a routine's theorem asks for, its point is interior often enough.

For the exponential mechanism and for the binary search the probability of failing is computed, not estimated. The
families are the ones that hurt: everybody equal, two neighbouring values, powers of two, both ends, nested prefixes.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.data import Domain, Facts, Whole
from discreet.funds import Funds
from discreet.guarantee import Budget, Neighbours
from discreet.mechanisms import GaussianNoise, LaplaceNoise
from discreet.method import Method
from discreet.pac.interior import BinarySearch, MinRank, methods, score_runs
from discreet.rng import SeededRng
from tests.pac_game import assert_honest

BETA = 0.05
BUDGET = Budget(1, "1e-6")


def families(count, bits):
    """Lists of `count` values below 2^bits, by name."""
    top = 1 << bits
    middle, half = top // 2, count // 2
    nested = [min(top - 1, (top >> (place % bits + 1))) for place in range(count)]
    deep = sorted((middle >> (place // 2 % bits)) ^ (place % 2) for place in range(count))
    odd = int("10" * (bits // 2), 2)
    return {
        "all equal": [odd] * count,
        "all at the end": [top - 1] * count,
        "two neighbours": [middle - 1] * half + [middle] * (count - half),
        "both ends": [0] * half + [top - 1] * (count - half),
        "powers of two": [1 << (place % bits) for place in range(count)],
        "nested prefixes": nested,
        "nested pairs": deep,
        "one apart": [odd] * (count - 1) + [0],
    }


def sorted_array(values):
    held = np.empty(len(values), dtype=object)
    held[:] = sorted(values)
    return held


def found(name, bits, kind, rows=1):
    facts = Facts(Domain(x=Whole(bits)), Neighbours(kind, rows), None)
    listed = methods(facts=facts, column="x", beta=BETA, funds=Funds.of(BUDGET))
    (method,) = [each for each in listed if each.name == name]
    assert isinstance(method, Method)
    return method


# --- exact failures ---------------------------------------------------------------------------------------------------


def rank_failure(routine, values, size):
    """The exact probability that the exponential mechanism's point is outside."""
    starts, lengths, scores = score_runs(values, size)
    logs = [math.log(int(n)) + float(routine.rate) * int(score) for n, score in zip(lengths, scores, strict=True)]
    top = max(logs)
    weights = [math.exp(each - top) for each in logs]
    outside = [w for start, w in zip(starts, weights, strict=True) if not values[0] <= start <= values[-1]]
    return math.fsum(outside) / math.fsum(weights)


@pytest.mark.parametrize("kind", ["add-remove", "replace-one"])
@pytest.mark.parametrize("bits", [16, 64, 1024])
def test_ranks_fail_with_at_most_beta_at_their_size_and_nearly_so(bits, kind):
    method = found("exponential", bits, kind)
    routine, count = method.mechanism(0).routine, method.needed(0)
    failing = {
        name: rank_failure(routine, sorted_array(values), 1 << bits) for name, values in families(count, bits).items()
    }
    assert max(failing.values()) <= BETA
    assert failing["two neighbours"] > BETA / 4  # the theorem is nearly tight: much fewer values are not enough
    fewer = families(count * 4 // 5, bits)["two neighbours"]
    assert rank_failure(routine, sorted_array(fewer), 1 << bits) > BETA


def laplace_tail(scale, least):
    """P[noise >= least]."""
    q = math.exp(-1 / scale)
    return q**least / (1 + q) if least >= 1 else 1 - q ** (1 - least) / (1 + q)


@functools.cache
def gaussian_tails(scale):
    """P[noise >= k] for k = far, far - 1, ..., -far."""
    far = math.ceil(30 * scale) + 10
    weights = np.exp(-(np.arange(far, -far - 1, -1) ** 2) / (2 * scale**2))
    return far, np.cumsum(weights) / weights.sum()


def gaussian_tail(scale, least):
    far, tails = gaussian_tails(scale)
    return float(tails[far - least])


def search_failure(routine, values, bits):
    """The exact probability that a search ends below all values or above them: the two chains of digits that it has to
    follow to get there, digit by digit."""
    tail = laplace_tail if isinstance(routine.noise, LaplaceNoise) else gaussian_tail
    scale, held = float(routine.noise.scale), np.array(values, dtype=object)
    total = 0.0
    for goal, below in ((int(held[0]), True), (int(held[-1]), False)):
        reached, prefix = 1.0, 0  # the probability of having followed the digits of the smallest (largest) value so far
        for depth in range(bits):
            rest = bits - depth - 1
            middle = ((2 * prefix + 1) << rest) - 1
            upto = int(np.searchsorted(held, middle, side="right"))
            left = tail(scale, len(held) - 2 * upto)
            digit = (goal >> rest) & 1
            if below and digit == 1:
                total += reached * left
            if not below and digit == 0:
                total += reached * (1 - left)
            reached *= 1 - left if digit else left
            prefix = 2 * prefix + digit
    return total


@pytest.mark.parametrize("kind", ["add-remove", "replace-one"])
@pytest.mark.parametrize("bits", [16, 64])
@pytest.mark.parametrize("noise", ["auto", "laplace"])
def test_searches_fail_with_at_most_beta_at_their_size_and_nearly_so(bits, kind, noise):
    method = found("binary-search", bits, kind)
    routine = method.mechanism(0).routine
    assert isinstance(routine.noise, GaussianNoise)
    if noise == "laplace":
        routine = BinarySearch(LaplaceNoise(bits))
    count = routine.needed(1 << bits, BETA)
    failing = {name: search_failure(routine, sorted(each), bits) for name, each in families(count, bits).items()}
    assert max(failing.values()) <= BETA
    assert failing["all equal"] > BETA / 2
    fewer = families(count * 4 // 5, bits)["all equal"]
    assert search_failure(routine, sorted(fewer), bits) > BETA


def test_the_computed_failures_are_those_of_the_routines():
    values, rng, runs = [5] * 3 + [6] * 2, SeededRng(3), 1500
    for routine, exactly in (
        (MinRank(Fraction(1, 2)), lambda each: rank_failure(each, sorted_array(values), 16)),
        (BinarySearch(LaplaceNoise(4)), lambda each: search_failure(each, values, 4)),
        (BinarySearch(GaussianNoise(4)), lambda each: search_failure(each, values, 4)),
    ):
        outside = sum(not 5 <= routine.point(sorted_array(values), 16, rng) <= 6 for _ in range(runs))
        assert abs(outside / runs - exactly(routine)) < 5 * math.sqrt(0.25 / runs)


# --- played -----------------------------------------------------------------------------------------------------------


def played(method, count, bits, runs, rng):
    """How many of so many points are outside, for each family."""
    routine, lost = method.mechanism(0).routine, {}
    for name, values in families(count, bits).items():
        held = sorted_array(values)
        points = [routine.point(held, 1 << bits, rng) for _ in range(runs)]
        lost[name] = sum(not held[0] <= point <= held[-1] for point in points)
    return lost


@pytest.mark.parametrize("kind", ["add-remove", "replace-one"])
@pytest.mark.parametrize(("name", "bits"), [("prefix", 16), ("prefix", 64), ("prefix", 1024), ("pair-prefix", 64)])
def test_prefixes_succeed_at_exactly_their_size(name, bits, kind):
    method = found(name, bits, kind)
    lost = played(method, method.needed(0), bits, 40, SeededRng(bits))
    for each in lost.values():
        assert_honest(each, 40, BETA)
    assert sum(lost.values()) <= 3  # the bound is far from tight


def test_a_quarter_of_the_size_is_not_enough_for_prefixes():
    method = found("prefix", 64, "replace-one")
    assert max(played(method, method.needed(0) // 4, 64, 40, SeededRng(4)).values()) > 20


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("kind", ["add-remove", "replace-one"])
@pytest.mark.parametrize("bits", [5, 16, 64, 1024])
@pytest.mark.parametrize("name", ["exponential", "binary-search", "prefix", "pair-prefix"])
def test_every_method_succeeds_at_exactly_its_size(name, bits, kind, rows):
    method = found(name, bits, kind, rows)
    for lost in played(method, method.needed(0), bits, 300, SeededRng(bits + rows)).values():
        assert_honest(lost, 300, BETA)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["add-remove", "replace-one"])
@pytest.mark.parametrize("name", ["prefix", "pair-prefix"])
def test_a_million_digits_are_no_matter(name, kind):
    bits = 2**20
    method = found(name, bits, kind)
    routine, count = method.mechanism(0).routine, method.needed(0)
    top = 1 << bits
    for values in (
        [top // 3] * count,
        [0] * (count // 2) + [top - 1] * (count - count // 2),
        [(1 << (place * 1000)) for place in range(count)],
        [top // 2 - 1] * (count // 2) + [top // 2] * (count - count // 2),
    ):
        held, rng = sorted_array(values), SeededRng(1)
        lost = sum(not held[0] <= routine.point(held, top, rng) <= held[-1] for _ in range(20))
        assert_honest(lost, 20, BETA)
