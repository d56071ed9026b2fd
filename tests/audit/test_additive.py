"""Can an attacker who knows all rows but one beat the stated guarantee of integer noise? Exactly, by enumeration."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.audit import mutants
from discreet.audit.divergence import compare, loss
from discreet.audit.laws import Setting, law, sample
from discreet.audit.mutants import Twin
from discreet.audit.sampled import epsilon_lower_bound
from discreet.data import Domain, Number
from discreet.guarantee import Guarantee, Neighbours
from discreet.mechanisms import CoordinateLaplace, Gaussian, Laplace, ProductLaplace, ZeroSumLaplace
from discreet.query import Count, Equals, GroupCount, Histogram, Sum, VectorSum
from discreet.rng import SeededRng
from tests.audit import mistakes
from tests.search import climb, start

from .toys import ADD, BOTH, NUMBERS, REPLACE, people

SCALE = Fraction(1, 2)
COUNT = Laplace(Count(Equals("v", "a")), SCALE)


def worst(mechanism, pair, setting, *, reach=40):
    found = compare(
        law(mechanism, pair.first, setting, reach=reach),
        law(mechanism, pair.second, setting, reach=reach),
        mechanism.guarantee(setting.facts(pair.first)),
    )
    return found


@pytest.mark.parametrize("setting", BOTH)
@pytest.mark.parametrize(
    ("mechanism", "reach"),
    [
        (COUNT, 40),
        (Gaussian(Count(Equals("v", "a")), SCALE), 12),
        (Laplace(Histogram("v"), SCALE), 14),
        (Gaussian(Histogram("v"), SCALE), 6),
        (ProductLaplace(Histogram("v"), SCALE), 14),
        (CoordinateLaplace(Histogram("v"), SCALE), 14),
        (ZeroSumLaplace(Histogram("v"), SCALE), 14),
        (ZeroSumLaplace(GroupCount(["v"]), SCALE), 14),
    ],
)
def test_no_pair_of_tables_beats_the_guarantee(mechanism, reach, setting):
    def score(pair):
        found = worst(mechanism, pair, setting, reach=reach)
        return found.found - found.claimed

    _, excess = climb(score, start(setting, people("ab")), setting, steps=4, rng=SeededRng(1), most=3)
    assert excess <= 1e-9


def test_the_laplace_guarantee_is_attained():
    p, q = law(COUNT, people("aab"), REPLACE), law(COUNT, people("abb"), REPLACE)
    assert loss(p, q) == pytest.approx(float(1 / SCALE), rel=1e-6)


@pytest.mark.parametrize("kind", ["replace-one", "add-remove"])
def test_sums_with_asymmetric_bounds_keep_their_guarantee(kind):
    setting = Setting(NUMBERS, Neighbours(kind))
    mechanism = Laplace(Sum("x"), 3)
    found, excess = climb(
        lambda pair: loss(law(mechanism, pair.first, setting), law(mechanism, pair.second, setting)),
        start(setting, [{"x": 0}]),
        setting,
        steps=12,
        rng=SeededRng(2),
        most=2,
    )
    claimed = float(mechanism.guarantee(setting.facts(found.first)).pure)
    assert claimed * 0.999 < excess <= claimed  # the search finds the very worst case, and no more


@pytest.mark.parametrize(
    "twin",
    [
        Twin(COUNT, mutants.halved_noise),
        Twin(COUNT, mutants.one_sided_noise),
        Twin(Laplace(Histogram("v"), SCALE), mutants.add_remove_price),
        Twin(Gaussian(Histogram("v"), SCALE), mutants.add_remove_price),
        Twin(ProductLaplace(Histogram("v"), SCALE), mutants.halved_noise),
        Twin(CoordinateLaplace(Histogram("v"), SCALE), mutants.halved_noise),
    ],
    ids=lambda twin: twin.mistake.label,
)
def test_broken_noise_is_caught(twin):
    p, q = law(twin, people("ab"), REPLACE, reach=20), law(twin, people("bb"), REPLACE, reach=20)
    found = compare(p, q, twin.guarantee(REPLACE.facts(people("ab"))))
    assert found.violates
    assert found.found - found.claimed > 0.01


def test_several_rows_a_person_are_priced_as_a_whole():
    setting = Setting(ADD.domain, Neighbours("add-remove", 2), unit="person")
    shared = [{"v": "b", "person": 1}]
    both = [{"v": "a", "person": 2}, {"v": "a", "person": 2}]
    p, q = law(COUNT, [*shared, *both], setting), law(COUNT, shared, setting)
    claimed = float(COUNT.guarantee(setting.facts(shared)).pure)
    assert loss(p, q) == pytest.approx(claimed, rel=1e-6)
    assert claimed == pytest.approx(2 / float(SCALE))


def exact_delta(dimension: int, shift: float, scale: float, epsilon: float) -> float:
    """delta(epsilon) of discrete Laplace noise on every coordinate, each moved by `shift`, by convolving losses."""
    reach = int(40 * scale)
    q = math.exp(-1 / scale)
    k = np.arange(-reach, reach + 1)
    mass = (1 - q) / (1 + q) * q ** np.abs(k)
    losses = np.rint(np.abs(k - shift) - np.abs(k)).astype(int)  # in units of 1/scale
    width = int(shift)
    one = np.zeros(2 * width + 1)
    np.add.at(one, losses + width, mass)
    total = one
    for _ in range(dimension - 1):
        total = np.convolve(total, one)
    value = (np.arange(len(total)) - dimension * width) / scale
    return float((total * np.maximum(0.0, -np.expm1(epsilon - value))).sum())


def test_the_lectures_constant_for_product_laplace_fails_in_high_dimension_and_ours_holds():
    epsilon, delta, dimension, shift = 1.0, 1e-6, 64, 3
    squared = dimension * shift**2
    wrong = mistakes.lecture_scale(squared, epsilon=epsilon, delta=delta)
    assert exact_delta(dimension, shift, wrong, epsilon) > 5 * delta  # ten times too much in the limit

    def guarantee(scale):
        return Guarantee.of_product_laplace(
            squared, l1=dimension * shift, scale=scale, dimension=dimension, neighbours="replace-one"
        )

    right = Fraction(math.ceil(wrong))
    while guarantee(right).epsilon(delta) > epsilon:
        right += 1
    assert exact_delta(dimension, shift, float(right), epsilon) <= delta
    assert right < 2 * wrong


def test_a_sampled_attack_agrees_and_catches_half_of_the_noise():
    wide = Laplace(Count(Equals("v", "a")), 1)
    rng = SeededRng(3)
    first = sample(wide, people("aab"), REPLACE, runs=8_000, rng=rng)
    second = sample(wide, people("abb"), REPLACE, runs=8_000, rng=rng)
    claimed = float(wide.guarantee(REPLACE.facts(people("aab"))).pure)
    assert 0.6 < epsilon_lower_bound(first, second) <= claimed
    broken = Twin(wide, mutants.halved_noise)
    first = sample(broken, people("aab"), REPLACE, runs=8_000, rng=rng)
    second = sample(broken, people("abb"), REPLACE, runs=8_000, rng=rng)
    assert epsilon_lower_bound(first, second) > claimed


def betrays_zero(value: float) -> bool:
    """The attack of [Mir12] and its successors: a float near 0 with bits that 1 + noise cannot have."""
    return abs(value) < 2**-6 and not float(value * 2.0**54).is_integer()


@pytest.mark.parametrize(
    ("mechanism", "leaks"),
    [
        (Laplace(Sum("x"), Fraction(1, 2)), False),
        (Twin(Laplace(Sum("x"), Fraction(1, 2)), mistakes.textbook_floats), True),
    ],
    ids=["ours", "textbook floats"],
)
def test_the_precision_attack_finds_nothing_on_us_and_breaks_textbook_floats(mechanism, leaks):
    setting, runs, rng = Setting(Domain(x=Number(0, 1, step=1)), Neighbours("replace-one")), 20_000, SeededRng(4)
    zero, one = (
        [betrays_zero(value) for value in sample(mechanism, [{"x": x}], setting, runs=runs, rng=rng)] for x in (0, 1)
    )
    found = epsilon_lower_bound(zero, one)
    claimed = float(mechanism.guarantee(setting.facts([{"x": 0}])).pure)
    assert (found > claimed) is leaks
    assert any(zero) is leaks


def test_outputs_reachable_from_0_and_from_1_are_the_same_set():
    domain = Domain(x=Number(0, "0.1", step="0.1"))
    setting = Setting(domain, Neighbours("replace-one"))
    mechanism = Laplace(Sum("x"), Fraction(1, 10))
    rng = SeededRng(5)
    seen = [set(sample(mechanism, [{"x": x}], setting, runs=3_000, rng=rng)) for x in (0, 0.1)]
    near = [{v for v in values if abs(v) < 0.35} for values in seen]
    assert near[0] == near[1]  # float for float: a tenth reached from 0 is the tenth reached from 1
    assert len(near[0]) == 7


def test_vector_sums_keep_their_guarantee():
    domain = Domain(x=Number(0, 1, step=1), y=Number(-1, 1, step=1))
    setting = Setting(domain, Neighbours("add-remove"))
    mechanism = Laplace(VectorSum(("x", "y")), Fraction(1, 2))
    p = law(mechanism, [{"x": 1, "y": -1}], setting, reach=16)
    q = law(mechanism, [], setting, reach=16)
    assert loss(p, q) == pytest.approx(4.0, rel=1e-6)
    assert float(mechanism.guarantee(setting.facts([])).pure) == 4
