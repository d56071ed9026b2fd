"""What the learners of rules promise besides the contract of every mechanism: rows of one class, missing values."""

from __future__ import annotations

from fractions import Fraction

import pytest

import discreet as dp
from discreet.mechanisms import GaussianNoise
from discreet.pac.all_boxes import AllBoxes
from discreet.pac.boxes import ReorderSlice, SlicedBox
from discreet.pac.greedy_boxes import CountedFaces, FaceByFace
from discreet.pac.interior import BinarySearch, InteriorPoint, MinRank, PairPrefix, PrefixSearch
from discreet.pac.rank_bounds import RankBounds
from tests.contract.test_mechanisms import drawn
from tests.examples import BOX, DOMAIN, LABELS, LEARNERS, columns, nobody

named = pytest.mark.parametrize("mechanism", LEARNERS, ids=lambda m: type(m).__name__)


@named
def test_no_rows_and_one_class_are_ordinary(mechanism):
    """What is released is of the same kind as for any rows: nothing tells that there was nothing to learn."""
    held = columns(40)
    usual = drawn(mechanism, dp.Table(columns(), DOMAIN, neighbours="add-remove"))
    for rows in (nobody(), {**held, "y": ["+"] * 40}, {**held, "y": ["-"] * 40}):
        found = drawn(mechanism, dp.Table(rows, DOMAIN, neighbours="add-remove"))
        assert type(found) is type(usual)
        if isinstance(mechanism, (SlicedBox, ReorderSlice, FaceByFace, CountedFaces, AllBoxes)):
            assert [len(side) for side in found] == [len(BOX), len(BOX)]


def test_the_price_of_a_rate_is_the_rate_times_the_range():
    facts = dp.data.Facts(DOMAIN, dp.Neighbours("add-remove"), 300)
    assert InteriorPoint("a", MinRank("0.2")).guarantee(facts).pure == Fraction(1, 5)
    assert FaceByFace(BOX, LABELS, 4, "0.2").guarantee(facts).pure == Fraction(4, 5)


ON_MISSING = [
    InteriorPoint("a", MinRank("0.2")),
    InteriorPoint("a", BinarySearch(GaussianNoise(20))),
    InteriorPoint("a", PrefixSearch("0.2", 5, 40, 5, 60, 20)),
    InteriorPoint("a", PairPrefix(MinRank("0.2"), 10, 10, 5, 40, 5)),
    RankBounds("a", "0.9", "0.2"),
    SlicedBox(("a",), LABELS, MinRank("0.5"), 10, Fraction(1, 10), 0),
    FaceByFace(BOX, LABELS, 3, "0.5"),
    FaceByFace(("a",), LABELS, 3, "0.5"),
    AllBoxes(BOX, LABELS, 8, "0.2"),
]


@pytest.mark.parametrize("mechanism", ON_MISSING, ids=lambda m: type(m).__name__)
def test_rows_with_a_missing_value_are_in_no_list_and_in_no_box(mechanism):
    """So the release is what it would be without them: same seed, same draws; and it is a value of the column."""
    held = columns()
    present = [place for place, value in enumerate(held["a"]) if value is not None]
    assert len(present) < 300
    without = {name: [values[place] for place in present] for name, values in held.items()}
    whole, part = (dp.Table(rows, DOMAIN, neighbours="add-remove", size=300) for rows in (held, without))
    for seed in range(30):
        found = drawn(mechanism, whole, seed)
        assert found == drawn(mechanism, part, seed)
        if isinstance(mechanism, InteriorPoint):
            assert 0 <= found <= 20
