"""Noise on counts of groups that adds up to zero: its tails against the law itself, its price, and what is refused."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.answering import Marginals
from discreet.answering.measurement import Measured, asked_for, interval, own_error
from discreet.answering.workload import answers
from discreet.catalogue import CATALOGUE
from discreet.errors import ParameterError
from discreet.mechanisms import ZERO_SUM, LaplaceNoise, ZeroSumLaplace, ZeroSumNoise, noise
from discreet.query import Count, Equals, GroupCount, Histogram, Sum
from discreet.records import record, revive
from discreet.rng import SeededRng

SCALES = [Fraction(1, 3), Fraction(1), Fraction(7, 3), Fraction(20)]
DOMAIN = dp.Domain(
    v=dp.Category(*"abc"), w=dp.Category("x", "y"), n=dp.Number(0, 9, step=1), wide=dp.Number(0, 300, step=1)
)
SOME = Histogram("v", Equals("w", "x"))
ROWS = {"v": list("aabbbc"), "w": list("xxyxxy"), "n": [0, 1, 2, 3, 4, 5], "wide": [0, 1, 2, 3, 4, 300]}
RELATIONS = pytest.mark.parametrize("relation", ["replace-one", "add-remove"])


def sums(cells: int, scale: Fraction, far: int) -> np.ndarray:
    """P[S = x] for x from -far on, S the sum of this many independent discrete Laplace noises."""
    size = 4 * far + 1
    one = np.exp(-np.abs(np.arange(size) - size // 2) / float(scale))
    added = np.ones(1)
    for _ in range(cells):
        added = np.convolve(added, one / one.sum())
    middle = len(added) // 2
    return added[middle - min(middle, far) : middle + min(middle, far) + 1]


def set_law(cells: int, groups: int, scale: Fraction, far: int) -> np.ndarray:
    """The law of a sum of some of the groups, by the definition: two independent sums, given that they cancel."""
    weight = sums(cells, scale, far) * sums(groups + 1 - cells, scale, far)[::-1]
    return weight / weight.sum()


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("groups", [1, 2, 3, 7, 30])
def test_a_tail_is_that_of_the_law_and_a_bound_is_the_least_one(groups, scale):
    far = math.ceil(60 * scale) + 5
    law, exact = set_law(1, groups, scale, far), ZeroSumNoise(scale, groups)
    upper = np.cumsum(law[::-1])[::-1][far + 1 :]
    for steps in range(1, math.ceil(25 * scale)):
        assert exact.tail(steps) == pytest.approx(upper[steps - 1], rel=1e-9, abs=1e-14)
    for failure in (0.3, 0.03, 1e-3, 1e-6):
        reach = exact.reach(math.log(failure))
        assert upper[reach - 1] <= failure
        assert reach == 1 or upper[reach - 2] > failure
    assert (exact.tail(0), exact.tail(-3)) == (1, 1)


def test_the_joint_law_is_the_norm_of_moved_rows():
    scale, reach = 1.5, 25
    x = np.array(list(itertools.product(range(-reach, reach + 1), repeat=2)))
    weight = np.exp(-(np.abs(x).sum(axis=1) + np.abs(x.sum(axis=1))) / scale)
    for steps in (1, 2, 5):
        for cell in (x[:, 0], x[:, 1], x.sum(axis=1)):
            assert weight[cell >= steps].sum() / weight.sum() == pytest.approx(
                ZeroSumNoise(1.5, 2).tail(steps), rel=1e-9
            )


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize(("cells", "groups"), [(1, 2), (2, 2), (2, 5), (3, 5), (5, 5)])
def test_a_sum_of_groups_reaches_no_further_than_independent_noise(cells, groups, scale):
    far = math.ceil(60 * scale) + 5
    zero, free = set_law(cells, groups, scale, far), sums(cells, scale, far)
    assert (np.cumsum(zero)[:far] <= np.cumsum(free)[:far] * (1 + 1e-9) + 1e-15).all()
    spent, copies = np.array([math.log(200)]), np.array([float(cells)])
    bound = ZeroSumNoise(scale, groups).sum_reach(spent, copies)[0]
    assert zero[far + math.floor(bound) + 1 :].sum() <= 1 / 200


def test_without_a_number_of_groups_or_with_very_many_bounds_are_those_of_laplace_noise():
    laplace = LaplaceNoise(30).reach(-9.0)
    assert [ZeroSumNoise(30, groups).reach(-9.0) for groups in (0, ZERO_SUM + 1)] == [laplace, laplace]
    reached = [ZeroSumNoise(30, groups).reach(-9.0) for groups in (1, 2, 20, ZERO_SUM)]
    assert reached == sorted(reached)
    assert reached[-1] <= laplace


@pytest.mark.parametrize("groups", [2, 20, ZERO_SUM])
def test_tails_are_computed_for_every_scale_that_can_be_drawn(groups):
    for scale in (Fraction(1, 2**200), Fraction(1, 7), Fraction(10**6), Fraction(2**50)):
        for failure in (0.9, 1e-3, 1e-300):
            assert 0 <= ZeroSumNoise(scale, groups).quantile(failure) <= LaplaceNoise(scale).quantile(failure)


def test_a_tail_allows_for_the_rounding_of_its_floats():
    exact = ZeroSumNoise(20, 3)
    assert exact.reach(math.log(exact.tail(40)) + 2 * noise._SURE) == 40
    assert exact.reach(math.log(exact.tail(40)) + noise._SURE / 2) == 41


# Price.


@RELATIONS
@pytest.mark.parametrize("rows", [1, 3])
def test_a_person_pays_for_each_row_what_one_that_moves_costs(relation, rows):
    facts = dp.data.Facts(DOMAIN, dp.Neighbours(relation, rows), 6)
    for query in (SOME, Histogram("v"), GroupCount(["v"], Equals("w", "x")), GroupCount([])):
        assert ZeroSumLaplace(query, 4).guarantee(facts).pure == Fraction(rows, 2)
    together = Marginals([SOME, Sum("n"), Count()], [4, 9, 2], "zero-sum").guarantee(facts)
    laplace = Marginals([Sum("n"), Count()], [9, 2], "laplace").guarantee(facts)
    assert together.pure == Fraction(rows, 2) + laplace.pure


def test_what_is_no_count_of_a_few_groups_is_refused_before_it_is_charged():
    table = dp.Table(ROWS, DOMAIN)
    ledger = dp.Ledger.in_memory(dp.Budget(1), table)
    for query in (Count(), Sum("n"), dp.mechanisms.VectorSum(("n",)), dp.mechanisms.KeyCount("v")):
        with pytest.raises(ParameterError, match=r"a Histogram or a GroupCount"):
            ZeroSumLaplace(query, 4)
    for many in (ZeroSumLaplace(Histogram("wide"), 4), Marginals([Histogram("wide")], [4], "zero-sum")):
        with pytest.raises(ParameterError, match=r"up to 256 groups, found 301"):
            dp.release(many, table, ledger=ledger)
    with pytest.raises(ParameterError, match=r"one of gaussian, laplace, zero-sum; found 'uniform'"):
        Marginals([SOME], [4], "uniform")
    assert ledger.spent().pure == 0


# What is released.


@RELATIONS
def test_groups_of_all_rows_add_up_to_a_public_number_of_rows_and_others_do_not(relation):
    table, rng = dp.Table(ROWS, DOMAIN, neighbours=relation), SeededRng(4)
    whole = [ZeroSumLaplace(Histogram(("v", "w")), 4).run(table, rng) for _ in range(20)]
    assert whole[0].shape == (3, 2)
    assert ({int(each.sum()) for each in whole} == {6}) is (relation == "replace-one")
    assert type(ZeroSumLaplace(GroupCount([]), 4).run(table, rng)) is int
    some = {int(ZeroSumLaplace(SOME, 4).run(table, rng).sum()) for _ in range(20)}
    assert len(some) > 3


def test_a_record_says_it_all():
    for mechanism in (ZeroSumLaplace(SOME, "7/3"), Marginals([SOME, Sum("n")], [4, "1/3"], "zero-sum")):
        assert revive(record(mechanism), CATALOGUE) == mechanism
    parts = Marginals([SOME, Sum("n"), Count()], [4, 1, 2], "zero-sum").parts
    assert [type(part).__name__ for part in parts] == ["ZeroSumLaplace", "Laplace", "Laplace"]


def test_a_workload_is_not_read_from_it():
    facts = dp.data.Facts(DOMAIN, dp.Neighbours("replace-one"), 6)
    mechanism = Marginals([Histogram("v")], [4], "zero-sum")
    with pytest.raises(ParameterError, match=r"gaussian or laplace noise, found zero-sum"):
        answers([Histogram("v")], mechanism, [np.zeros(3)], facts, beta=Fraction(1, 20))


@RELATIONS
def test_a_noise_range_is_the_quantile_of_one_number(relation):
    facts = dp.data.Facts(DOMAIN, dp.Neighbours(relation), 6)
    for query, groups in ((SOME, 3), (Histogram("v"), 2 if relation == "replace-one" else 3)):
        reach = ZeroSumLaplace(query, 20).noise_range(0.95, facts)
        assert ZeroSumNoise(20, groups).tail(int(reach) + 1) <= 0.025 < ZeroSumNoise(20, groups).tail(int(reach))


def test_the_intervals_of_a_measurement_are_those_of_its_own_law():
    """Of groups of all rows one is implied by the others, if the number of rows is public."""
    for query, groups in ((Histogram("v"), 2), (SOME, 3)):
        measured = Measured(query, "zero-sum", 20.0, 1.0, np.array([3.0, 2.0, 1.0]))
        low, high = interval(measured, query, DOMAIN, failure=0.05, total=6.0)
        each = 0.05 * 31 / 32 / 3
        bound = (high - low)[0] / 2
        assert 2 * ZeroSumNoise(20, groups).tail(int(bound) + 1) <= each < 2 * ZeroSumNoise(20, groups).tail(int(bound))
        by_itself = asked_for(measured, query, DOMAIN, failure=0.05, total=6.0)[1]
        assert set(by_itself.tolist()) == {ZeroSumNoise(20, groups).quantile(0.05, log_sets=math.log(3))}
        private = own_error(query, "zero-sum", 20.0, 1.0, 3, failure=0.05, levelled=False)
        assert private == ZeroSumNoise(20, 3).quantile(0.05 * 31 / 32, log_sets=math.log(3))
