"""Feasible sets: the nearest point, which does not expand distances (lecture 10, claim 2), and the set's sizes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.erm.feasible_sets import Ball, BallBox, Box, interval
from discreet.errors import ParameterError

DIMENSION = 4
SETS = [
    Ball("1.5"),
    Box("-0.4", "0.7"),
    Box((0, -2, "0.25", "-0.1"), (1, -1, "0.5", 3)),  # without the origin
    BallBox(1, "-0.5", 2),
    BallBox("1.2", (0, -2, "-0.25", "-0.1"), ("0.1", 0, "0.5", 3)),
    BallBox(3, "-0.5", "0.5"),  # the ball never binds
    BallBox("0.2", -1, 1),  # the box never binds
]
SMALL = st.floats(-3, 3)
WIDE = st.floats(-1e6, 1e6)
POINT = st.lists(st.one_of(SMALL, WIDE, st.just(0.0)), min_size=DIMENSION, max_size=DIMENSION).map(np.array)
few = settings(max_examples=30, deadline=None)
every_set = pytest.mark.parametrize("feasible", SETS, ids=str)


def loose(*points) -> float:
    """What floats may be off by, for points of this size."""
    return 1e-13 * (1 + max(float(np.abs(point).max()) for point in points))


@every_set
@few
@given(point=POINT)
def test_a_projection_lies_in_the_set_and_stays_there(feasible, point):
    found = feasible.project(point)
    assert feasible.contains(found, 1e-14)
    assert np.abs(feasible.project(found) - found).max() <= 1e-14


@every_set
@few
@given(point=POINT)
def test_a_point_of_the_set_is_its_own_projection(feasible, point):
    inside = feasible.centre(DIMENSION) + 0.999 * (feasible.project(point) - feasible.centre(DIMENSION))
    assert feasible.contains(inside)
    assert (feasible.project(inside) == inside).all()


@every_set
@few
@given(point=POINT, other=POINT)
def test_no_point_of_the_set_is_nearer_than_the_projection(feasible, point, other):
    found, another = feasible.project(point), feasible.project(other)
    away = float((point - found) @ (another - found))  # every other point is behind the wall: at an obtuse angle
    assert away <= loose(point) * (1 + float(np.linalg.norm(point - found)))


@every_set
@few
@given(one=POINT, two=POINT)
def test_projecting_does_not_expand_distances(feasible, one, two):
    after = float(np.linalg.norm(feasible.project(one) - feasible.project(two)))
    assert after <= float(np.linalg.norm(one - two)) + loose(one, two)


@every_set
@few
@given(point=POINT, inside=POINT)
def test_a_projection_is_no_farther_from_any_point_of_the_set(feasible, point, inside):
    w = feasible.project(inside)
    after = float(np.linalg.norm(feasible.project(point) - w))
    assert after <= float(np.linalg.norm(point - w)) + loose(point)


@every_set
@few
@given(point=POINT, other=POINT, amount=st.floats(0, 2))
def test_shrinking_minimises_its_objective(feasible, point, other, amount):
    def objective(w):
        return float((w - point) @ (w - point)) / 2 + amount * float(np.abs(w).sum())

    found = feasible.shrink(point, amount)
    assert feasible.contains(found, 1e-14)
    for rival in (
        feasible.project(other),
        feasible.project(found + 1e-3 * (other - found)),
        feasible.project(0 * other),
    ):
        rounding = 1e-12 * (1 + float(point @ point))
        assert objective(found) <= objective(rival) + rounding


@every_set
@few
@given(one=POINT, two=POINT)
def test_no_point_is_beyond_span_reach_and_diameter(feasible, one, two):
    a, b = feasible.project(one), feasible.project(two)
    assert float(np.linalg.norm(a - feasible.centre(DIMENSION))) <= feasible.span(DIMENSION) * (1 + 1e-12)
    assert float(np.linalg.norm(a)) <= feasible.reach(DIMENSION) * (1 + 1e-12)
    assert float(np.linalg.norm(a - b)) <= feasible.diameter(DIMENSION) * (1 + 1e-12)
    assert feasible.reach(DIMENSION) == pytest.approx(math.sqrt(feasible.reach_squared(DIMENSION)), rel=1e-14)


@pytest.mark.parametrize("feasible", SETS[:3], ids=str)
def test_the_sizes_of_balls_and_boxes_are_attained(feasible):
    corners = np.array(np.meshgrid(*[[-1e9, 1e9]] * DIMENSION)).reshape(DIMENSION, -1).T
    ends = [feasible.project(each) for each in corners]
    centre = feasible.centre(DIMENSION)
    assert max(np.linalg.norm(a - centre) for a in ends) == pytest.approx(feasible.span(DIMENSION))
    assert max(np.linalg.norm(a) for a in ends) == pytest.approx(feasible.reach(DIMENSION))
    assert max(np.linalg.norm(a - b) for a in ends for b in ends) == pytest.approx(feasible.diameter(DIMENSION))


@pytest.mark.parametrize("feasible", [Ball(2), Box(-2, 2), BallBox(2, -2, 2)], ids=str)
@pytest.mark.parametrize("size", [1e-200, 1e160, 1e300])
def test_points_of_any_size_have_a_nearest_point(feasible, size):
    direction = np.array([1.0, -1.0, 1.0, 1.0])
    found = feasible.project(size * direction)
    expected = size * direction if size < 1 else direction * (2 if isinstance(feasible, Box) else 1)
    assert found == pytest.approx(expected, rel=1e-12)


def test_an_interval_is_a_box_in_one_dimension():
    found = interval("-0.5", 3)
    assert found == Box(Fraction(-1, 2), 3)
    assert (found.span(1), found.reach(1), found.diameter(1)) == (1.75, 3.0, 3.5)
    assert found.project(np.array([7.0])) == np.array([3.0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Ball(0), "radius must be > 0"),
        (lambda: Ball(math.nan), "radius must be a finite number"),
        (lambda: Box(1, 1), "low must be below high"),
        (lambda: Box((0, 0), (1, 1, 1)), "equally long"),
        (lambda: Box((), ()), "found none"),
        (lambda: BallBox(1, "0.1", 1), "contain the origin"),
        (lambda: Box((0, 0), (1, 1)).span(3), "2 sides, the problem has 3"),
    ],
)
def test_a_set_that_makes_no_sense_is_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()
