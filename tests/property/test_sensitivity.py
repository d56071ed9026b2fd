"""Brute force: over all small neighbouring tables no query moves more than it says, and some move exactly that much.

A table holds one fixed person and one that varies over every choice of rows (up to `rows` of them, or one more, which
the table must cut). Add-remove compares presence with absence, replace-one every choice with every other.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from discreet.data import Category, DistinctRows, Domain, Facts, Matrix, Number, Table, Vector
from discreet.guarantee import Neighbours
from discreet.query import (
    And,
    Between,
    Bins,
    Cases,
    Choose,
    Count,
    Equals,
    Fixed,
    GroupCount,
    GroupSum,
    Histogram,
    KeyCount,
    Lookup,
    Missing,
    Of,
    Or,
    Plus,
    Power,
    Sensitivity,
    Sum,
    Times,
    VectorSum,
    WithRest,
)

DOMAIN = Domain(
    a=Number(3, 7, step=4),
    b=Number(-5, -2, step=3, missing=True),
    c=Number("-0.5", 1, step="1.5"),
    d=Number(2, 5, step=3, missing=True),
    k=Category("u", "v"),
)
ENTRIES = list(itertools.product([3, 7], [-5, -2, None], [-0.5, 1], [2, 5, None], ["u", "v"]))
U = Equals("k", "u")
QUERIES = [
    Count(),
    Count(U),
    Count(Or(Missing("d"), U)),
    Histogram("k"),
    Histogram(("a", "c")),
    Histogram("a", U),
    KeyCount(("a", "b")),
    KeyCount("c", U),
    Sum("a"),
    Sum("a", U),
    Sum("b"),
    Sum("b", U),
    Sum("b", Between("a", 3, 3)),
    Sum("c"),
    Sum("d"),
    Sum("d", U),
    VectorSum(("a", "c")),
    VectorSum(("a", "c"), U),
    VectorSum(("b", "d")),
    VectorSum(("a", "b", "c", "d"), And(U)),
    VectorSum("c"),
    GroupCount(["k", Bins("a", (0, 1), (1, 0))], Between("a", 3, 3)),
    GroupCount([Cases([U, Missing("b")])]),
    GroupCount([WithRest(["k", Bins("a", (0, 1), (1, 0))], Between("a", 3, 3))]),
    GroupCount([WithRest(["k"])]),
    GroupCount([]),
    GroupSum(["k"], Of("a")),
    GroupSum(["k"], Of("b"), Between("a", 3, 3)),
    GroupSum(["k"], Plus(Of("a"), Fixed(-5))),
    GroupSum(["k"], Plus(Of("d"), Fixed("-3.5"))),
    GroupSum([], Of("a")),
    GroupSum([], Of("d"), U),
    GroupSum([Cases([U]), Bins("c", (0, 1), (0, 1))], Times(Of("a"), Of("d"))),
    GroupSum(["k"], Power(Plus(Of("a"), Fixed(-5)), 2)),
    GroupSum(["k"], Times(Fixed("1/2"), Of("a"), Of("c"))),
    GroupSum(["k"], Choose([Equals("a", 3), Missing("d")], [Fixed(0), None], Fixed(1))),
    GroupSum(["k"], Choose([Equals("c", 1)], [Of("a")], Times(Fixed(-1), Of("d")))),
    GroupSum(["k"], Lookup(["a", "c"], [-3, 1, 2, 4], "1/2")),
    GroupSum([], Lookup(["a", "d"], [5, 0, 0, 1, 2, 0], 1, ~Missing("d"))),
]
# The count of all rows is public under replace-one, but is charged like any count.
NOT_TIGHT_FOR_ONE_ROW = {("replace-one", Count()), ("replace-one", GroupCount([]))}


def dense(query, data):
    """The sums as one flat vector of Python integers; keys that do not occur count 0."""
    found = data.exact_sum(query)
    if isinstance(query, KeyCount):
        sizes = [range(data.facts.domain[name].size) for name in query.columns]
        return [found[key] for key in itertools.product(*sizes)]
    return np.asarray(found).ravel().tolist()


def measured(differences):
    rows = np.array(differences, dtype=np.int64)
    return Sensitivity(
        l1=int(np.abs(rows).sum(axis=1).max()),
        l2_squared=int((rows * rows).sum(axis=1).max()),
        linf=int(np.abs(rows).max()),
        range=int((rows.max(axis=1) - rows.min(axis=1)).max()),
    )


def tables(kind, rows):
    """Tables that are pairwise neighbours: a fixed person, and another with any rows; None stands for nobody."""
    held = [chosen for size in range(1, rows + 1) for chosen in itertools.combinations_with_replacement(ENTRIES, size)]
    if rows == 2:
        held = (
            held[:: max(1, len(held) // 120)] + [(each, each) for each in ENTRIES] + [(each,) * 3 for each in ENTRIES]
        )
    fixed = ENTRIES[5]
    for chosen in [None, *held] if kind == "add-remove" else held:
        persons = [0, *(1 for _ in chosen or ())]
        columns = zip(fixed, *(chosen or ()), strict=True)
        table = {name: list(column) for name, column in zip(DOMAIN, columns, strict=True)}
        yield Table(table | {"id": persons}, DOMAIN, neighbours=kind, unit="id", rows_per_unit=rows)


@pytest.fixture(scope="module", params=[(kind, rows) for kind in ("replace-one", "add-remove") for rows in (1, 2)])
def neighbouring(request):
    kind, rows = request.param
    return kind, rows, list(tables(kind, rows))


@pytest.mark.parametrize("query", QUERIES, ids=repr)
def test_no_neighbouring_tables_differ_by_more_than_the_sensitivity(neighbouring, query):
    kind, rows, every = neighbouring
    stated = query.sensitivity(every[0].facts)
    sums = np.array([dense(query, data) for data in every], dtype=np.int64)
    if kind == "add-remove":
        found = measured(sums[1:] - sums[0])
    else:
        found = measured((sums[:, None, :] - sums[None, :, :]).reshape(len(sums) ** 2, -1))
    pairs = [(getattr(found, norm), getattr(stated, norm)) for norm in ("l1", "l2_squared", "linf", "range")]
    assert all(actual <= bound for actual, bound in pairs)
    if rows == 1 and (kind, query) not in NOT_TIGHT_FOR_ONE_ROW:
        assert found == stated


def test_several_rows_are_tight_where_a_person_can_move_them_all():
    for kind, query, expected in [
        ("add-remove", Count(), Sensitivity(2, 4, 2, 0)),
        ("add-remove", Histogram("k"), Sensitivity(2, 4, 2, 2)),
        ("add-remove", Sum("b"), Sensitivity(10, 100, 10, 0)),
        ("replace-one", Histogram("k"), Sensitivity(4, 8, 2, 4)),
        ("replace-one", Sum("a", U), Sensitivity(14, 196, 14, 0)),
        ("add-remove", GroupSum(["k"], Of("a")), Sensitivity(14, 196, 14, 14)),
        ("replace-one", GroupSum(["k"], Of("a")), Sensitivity(28, 392, 14, 28)),
        ("replace-one", GroupSum(["k"], Plus(Of("a"), Fixed(-5))), Sensitivity(8, 64, 8, 8)),
    ]:
        every = list(tables(kind, 2))
        assert query.sensitivity(every[0].facts) == expected
        sums = np.array([dense(query, data) for data in every], dtype=np.int64)
        first = sums[:1] if kind == "add-remove" else sums
        assert measured((sums[:, None, :] - first[None, :, :]).reshape(len(sums) * len(first), -1)) == expected


def test_a_centred_sum_moves_least():
    domain = Domain(x=Number(0, 100, step=1), g=Category("a", "b"))
    facts = Facts(domain, Neighbours("replace-one"), 10)
    plain, centred = (GroupSum(["g"], each).sensitivity(facts) for each in (Of("x"), Plus(Of("x"), Fixed(-50))))
    assert (plain.l2_squared, centred.l2_squared) == (2 * 100**2, 100**2)
    assert (plain.l1, centred.l1) == (200, 100)


def test_sums_beyond_floats_and_words_are_exact_and_the_same_over_distinct_rows():
    huge = Domain(x=Number(-(2**40), 2**40, step=1), y=Number(0, 2**20, step=1, missing=True), g=Category("a", "b"))
    rng = np.random.default_rng(1)
    rows = {"x": rng.integers(-(2**40), 2**40, 50), "y": rng.integers(0, 2**20, 50), "g": rng.choice(["a", "b"], 50)}
    columns = {name: np.tile(each, 4).tolist() for name, each in rows.items()}
    columns["y"][3] = None
    table = Table(columns, huge, neighbours="add-remove")
    for value, exact_value in [
        (Of("x"), lambda x, y: x),
        (Times(Of("x"), Of("y")), lambda x, y: x * y),
        (Choose([Between("x", 0, 2**40)], [Of("x")], Power(Of("y"), 3)), lambda x, y: x if x >= 0 else y**3),
    ]:
        query, distinct = GroupSum(["g"], value), DistinctRows(table)
        expected = [0, 0]
        for x, y, g in zip(*columns.values(), strict=True):
            if y is not None or value == Of("x") or (x >= 0 and value != Times(Of("x"), Of("y"))):
                expected[g == "b"] += exact_value(int(x), None if y is None else int(y))
        for _ in range(2):
            assert np.asarray(distinct.exact_sum(query)).tolist() == expected
        assert np.asarray(table.exact_sum(query)).tolist() == expected


def test_the_number_of_rows_moves_when_a_person_s_rows_are_replaced():
    facts = Facts(DOMAIN, Neighbours("replace-one", 3), 10)
    assert Count().sensitivity(facts).l1 == 3
    assert Sum("a").sensitivity(facts).l1 == 3 * 7


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("step", ["0.4", "0.3", "0.21"])
def test_no_two_vectors_differ_by_more_than_the_ball_allows(dimension, step):
    vector = Vector(dimension, norm=1, step=step)
    limit = int(vector.norm / vector.step)
    grid = np.array(list(itertools.product(range(-limit - 1, limit + 2), repeat=dimension)))
    data = Matrix(grid * float(vector.step) * 1.0000001, features=vector, neighbours="add-remove")
    seen: list[np.ndarray] = []
    data.exact_sum(lambda batch: (seen.append(batch["x"].copy()), np.zeros(1, dtype=np.int64))[1])
    points = np.unique(np.concatenate(seen), axis=0)
    query = VectorSum("x")
    for kind, differences in (
        ("add-remove", points),
        ("replace-one", (points[:, None, :] - points[None, :, :]).reshape(-1, dimension)),
    ):
        stated = query.sensitivity(Facts(Domain(x=vector), Neighbours(kind), 5))
        found = measured(differences)
        assert found.l1 <= stated.l1
        assert found.l2_squared <= stated.l2_squared
        assert found.linf == stated.linf
        assert found.range <= stated.range
    assert len(points) > limit
