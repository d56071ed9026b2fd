"""Every learner of rules through the same questions: its record, its docstring, every backend, awkward rows."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.catalogue import CATALOGUE
from discreet.mechanism import Mechanism
from discreet.mechanisms.noises import GaussianNoise
from discreet.noise import SeededRng
from discreet.pac.allboxes import AllBoxes
from discreet.pac.bounds import RankBounds
from discreet.pac.boxes import BoxRule, SlicedBox
from discreet.pac.conditions import Literals, Thresholds
from discreet.pac.conjunctions import GaussianCounts, LaplaceCounts, NoisyCounts
from discreet.pac.enumeration import AllConjunctions
from discreet.pac.faces import CountedFaces, FaceByFace
from discreet.pac.finite import FiniteClass
from discreet.pac.greedy import GreedySelection, SelfDeleting, WeighedGreedy
from discreet.pac.interior import InteriorPoint
from discreet.pac.labels import Labels, Mistakes
from discreet.pac.prefix import PairPrefix, PrefixSearch
from discreet.pac.ranks import BinarySearch, MinRank
from discreet.pac.slices import ReorderSlice
from discreet.records import canonical, record, revive

DOMAIN = dp.Domain(
    a=dp.Number(0, 20, step=1, missing=True),
    fine=dp.Number(0, 2**22, step=1),
    p=dp.Category(0, 1),
    q=dp.Category(0, 1),
    r=dp.Category("no", "yes"),
    town=dp.Category("u", "v", "w"),
    y=dp.Category("-", "+"),
)
BOX, LABELS, LITERALS = ("a", "fine"), Labels("y", "+"), Literals(("p", "q", "r"))
CONDITIONS = Thresholds(("a", "fine", "town"), 16)
RULES = (BoxRule(("a",), (3,), (9,)), BoxRule(("a",), (0,), (20,)))
MECHANISMS = [
    InteriorPoint("a", MinRank("0.2")),
    InteriorPoint("fine", BinarySearch(GaussianNoise(20))),
    InteriorPoint("fine", PrefixSearch("0.2", 5, 40, 5, 60, 20)),
    InteriorPoint("fine", PairPrefix(MinRank("0.2"), 10, 10, 5, 40, 5)),
    RankBounds("fine", "0.96", "0.2"),
    SlicedBox(BOX, LABELS, MinRank("0.5"), 20, 5, 10),
    ReorderSlice(
        BOX, LABELS, MinRank("0.02"), count=10, spread=500, slack="0.016", rounds=4, few_scale=5, threshold=60
    ),
    FaceByFace(BOX, LABELS, 3, "0.5"),
    CountedFaces(BOX, LABELS, 10, "0.5"),
    AllBoxes(BOX, LABELS, 8, "0.2"),
    NoisyCounts(LITERALS, LABELS, 5, 10),
    GaussianCounts(LITERALS, LABELS, 5, 3, 20),
    LaplaceCounts(LITERALS, LABELS, 5, 2, 20),
    AllConjunctions(LITERALS, LABELS, 2, "0.2"),
    GreedySelection(CONDITIONS, LABELS, 3, 4, "0.2"),
    SelfDeleting(CONDITIONS, LABELS, (40, 30, 20), 2, 5, "0.1", "1e-6"),
    WeighedGreedy(CONDITIONS, LABELS, 3, "0.2", 10),
    FiniteClass(RULES, LABELS, "0.2"),
    dp.Laplace(Mistakes(RULES[0], LABELS), 10),
]
RELATIONS = ["replace-one", "add-remove"]
named = pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
related = pytest.mark.parametrize("relation", RELATIONS)


def columns(rows: int = 300) -> dict[str, list]:
    rng = np.random.default_rng(3)
    a = rng.integers(0, 21, rows)
    fine = rng.integers(0, 2**22, rows)
    p, q, r = rng.integers(0, 2, (3, rows))
    positive = (a >= 4) & (a <= 15) & (fine > 2**20) & (p == 1)
    return {
        "a": [None if place % 17 == 0 else int(each) for place, each in enumerate(a)],
        "fine": fine.tolist(),
        "p": p.tolist(),
        "q": q.tolist(),
        "r": ["no" if each == 0 else "yes" for each in r],
        "town": ["uvw"[each % 3] for each in range(rows)],
        "y": ["+" if each else "-" for each in positive],
    }


def drawn(mechanism, data, seed=5):
    ledger = dp.Ledger.in_memory(dp.Budget(1000, 0.9), data.identity, testing=True)
    return dp.release(mechanism, data, ledger=ledger, rng=SeededRng(seed)).value


def plain(value):
    if isinstance(value, (tuple, list)):
        return tuple(plain(each) for each in value)
    return tuple(value.tolist()) if isinstance(value, np.ndarray) else value


@named
def test_a_learner_is_its_record(mechanism):
    text = canonical(record(mechanism))
    assert revive(json.loads(text), CATALOGUE) == mechanism
    assert "." not in text, "no floats in a record"


@named
def test_a_learner_is_a_mechanism_with_its_theorem(mechanism):
    assert isinstance(mechanism, Mechanism)
    assert hash(mechanism) == hash(revive(record(mechanism), CATALOGUE))
    for word in ("Theorem.", "Accuracy.", "Edges.", "Reference."):
        assert word in type(mechanism).__doc__, word


@named
@related
def test_every_backend_and_every_order_of_the_rows_gives_the_same_release(mechanism, relation, tmp_path):
    held = columns()
    order = np.random.default_rng(8).permutation(300)
    shuffled = {name: [values[place] for place in order] for name, values in held.items()}
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(shuffled), path)
    tables = [
        dp.Table(held, DOMAIN, neighbours=relation, size=300),
        dp.Table(shuffled, DOMAIN, neighbours=relation, size=300),
        dp.ParquetTable(path, DOMAIN, neighbours=relation, size=300, batch_rows=77),
    ]
    first, *others = (plain(drawn(mechanism, table)) for table in tables)
    assert all(other == first for other in others)


@named
def test_no_rows_and_one_class_are_ordinary(mechanism):
    """What is released is of the same kind as for any rows: nothing tells that there was nothing to learn."""
    nobody = {name: [] for name in DOMAIN}
    held = columns(40)
    usual = plain(drawn(mechanism, dp.Table(columns(), DOMAIN, neighbours="add-remove")))
    for rows in (nobody, {**held, "y": ["+"] * 40}, {**held, "y": ["-"] * 40}):
        found = plain(drawn(mechanism, dp.Table(rows, DOMAIN, neighbours="add-remove")))
        assert type(found) is type(usual)
        if isinstance(mechanism, (SlicedBox, ReorderSlice, FaceByFace, CountedFaces, AllBoxes)):
            assert [len(side) for side in found] == [len(BOX), len(BOX)]


@named
@related
def test_a_person_of_two_rows_costs_more_than_one_of_one(mechanism, relation):
    table = dp.Table(columns(), DOMAIN, neighbours=relation, size=300)
    one = mechanism.guarantee(table.facts)
    two = mechanism.guarantee(dp.Facts(DOMAIN, dp.Neighbours(relation, 2), 300))
    assert two.neighbours.rows == 2
    assert two.epsilon(0.5) > one.epsilon(0.5) or two.failure > one.failure or two.renyi[10] > one.renyi[10]


@named
def test_a_learner_refuses_columns_that_are_not_there(mechanism):
    other = dp.Domain(z=dp.Number(0, 1, step=1))
    with pytest.raises((dp.SchemaError, dp.ParameterError)):
        mechanism.guarantee(dp.Facts(other, dp.Neighbours("replace-one"), 10))


def test_the_price_of_a_rate_is_the_rate_times_the_range():
    facts = dp.Facts(DOMAIN, dp.Neighbours("add-remove"), 300)
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
        found = plain(drawn(mechanism, whole, seed))
        assert found == plain(drawn(mechanism, part, seed))
        if isinstance(mechanism, InteriorPoint):
            assert 0 <= found <= 20
