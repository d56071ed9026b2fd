"""Brute force over small neighbouring databases: no view of theirs moves a query by more than its sensitivity says.

A database holds people (one row each) and visits (up to two rows of a person). One person is fixed, another varies over
every choice of rows in both tables; some choices hold more rows than are kept, some none in one of the tables.
Add-remove compares presence with absence, replace-one every choice with every other.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.data import Category, Database, Date, Domain, Number, Table, Text
from discreet.person_rows import PersonKey, PersonNumber, PersonRows
from discreet.query import (
    Between,
    Bins,
    Count,
    Equals,
    Fixed,
    GroupCount,
    GroupSum,
    Histogram,
    KeyCount,
    Missing,
    Of,
    OfPersons,
    Persons,
    Sensitivity,
    Sum,
    VectorSum,
)

PEOPLE = Domain(age=Number(3, 7, step=4), sex=Category("F", "M"))
VISITS = Domain(
    paid=Number(2, 5, step=3, missing=True), day=Date("1974-01-01", "1974-01-02"), city=Text(), place=Category(1, 2, 3)
)
PERSON = list(itertools.product([3, 7], ["F", "M"]))
VISIT = [
    (2, "1974-01-01", "b", 2),
    (2, "1974-01-01", "a", 1),
    (5, "1974-01-02", "b", 2),
    (None, "1974-01-02", "a", 3),
    (5, "1974-01-01", "c", 1),
]
F, FIRST = Equals("sex", "F"), Between("day", "1974-01-01", "1974-01-01")

N, PAID = PersonNumber("n", "sum", Fixed(1), 2), PersonNumber("total", "sum", Of("paid"), 2)
NUMBERS = (N, PAID, PersonNumber("first", "least", "day", 2), PersonNumber("places", "different", "place", 2))
EACH = PersonRows((), NUMBERS)
EACH_FIRST = PersonRows((), (*NUMBERS, PersonNumber("late", "most", "paid", 2, Equals("place", 2))), FIRST)
BY_PLACE = PersonRows((PersonKey("place", "place"),), NUMBERS)
BY_BINS = PersonRows((PersonKey("where", Bins("place", [0, 1], [0, 1]), ("one", "more")),), (N, PAID))
ON_MADE = [
    *(OfPersons(EACH, query) for query in (Count(Equals("n", 2)), Histogram("n"), Sum("total"), Histogram("first"))),
    *(OfPersons(EACH_FIRST, query) for query in (Count(), Histogram(("n", "places")), GroupSum(["late"], Of("total")))),
    *(
        OfPersons(BY_PLACE, query)
        for query in (Histogram(("place", "n")), Persons("n"), GroupSum(["place"], Of("total")))
    ),
    *(OfPersons(BY_BINS, query) for query in (Histogram("where"), Count(Equals("n", 2)))),
]

ON_PEOPLE = [
    Count(),
    Count(F),
    Histogram("sex"),
    Histogram(("age", "sex")),
    Sum("age"),
    Sum("age", F),
    Persons(),
    Persons("sex"),
]
ON_VISITS = [
    *(Count(), Count(FIRST), Histogram("day"), KeyCount("city"), Sum("paid"), Sum("paid", FIRST), Persons()),
    *(Persons(where=FIRST), Persons("day"), Persons(["place", "day"]), Persons([Bins("place", [0, 1], [0, 1])], FIRST)),
]
ON_BOTH = [
    *ON_VISITS,
    *(Count(F & FIRST), Histogram(("sex", "day")), Sum("age"), VectorSum(("age", "paid")), KeyCount(("city", "age"))),
    *(Persons("sex"), Persons(["sex", "place"], F | FIRST), GroupCount(["sex", Bins("place", [0, 2], [0, 1])])),
]
OWN = tuple(PersonNumber(name, "own", name, 2) for name in ("age", "sex"))
THERE = Equals("visits.*", True)
NONE = PersonRows((), (*OWN, PersonNumber("n", "sum", Fixed(1), 2, THERE), PAID))
ON_LEFT = [
    *(Count(), Count(THERE), Histogram(("sex", "day")), Sum("paid"), Persons("day")),
    *(OfPersons(NONE, query) for query in (Count(Missing("n")), Histogram(("sex", "n")), Sum("age", Missing("n")))),
]
LEFT = "people left join visits"
VIEWS = {"people": ON_PEOPLE, "visits": [*ON_VISITS, *ON_MADE], ("visits", "people"): ON_BOTH, LEFT: ON_LEFT}
VIEWS |= {"visits left join people": [Histogram(("sex", "day")), Sum("age"), Persons("sex")]}


def dense(query, data):
    """The sums as one flat vector of integers; keys that do not occur count 0."""
    found = data.exact_sum(query)
    if not isinstance(query, KeyCount):
        return np.asarray(found).ravel().tolist()
    texts = {"city": "abc", "age": range(2)}
    return [found[key] for key in itertools.product(*(texts[name] for name in query.columns))]


def database(kind, rows, persons, *, most=2, roster=True):
    """rows: for each person their rows in people and their rows in visits."""
    people = [(number, *each) for number, (them, _) in rows.items() for each in them]
    visits = [(number, *each) for number, (_, them) in rows.items() for each in them]
    frames = [
        {name: [row[place] for row in table] for place, name in enumerate(["person", *domain])}
        for table, domain in ((people, PEOPLE), (visits, VISITS))
    ]
    own = Table(frames[0], PEOPLE, name="people", unit="person", rows_per_unit=1, neighbours="add-remove")
    other = Table(frames[1], VISITS, name="visits", unit="person", rows_per_unit=most, neighbours="add-remove")
    return Database([own, other], neighbours=kind, persons=persons if roster else None)


def choices(most):
    """What one person may hold: in people one row, two (of which one is kept) or none; in visits any number."""
    visits = [chosen for size in range(most + 2) for chosen in itertools.combinations_with_replacement(VISIT, size)]
    people = [(), *((each,) for each in PERSON), tuple(PERSON[:2])]
    return [(them, those) for them in people for those in visits if them or those]


def measured(differences):
    rows = np.array(differences, dtype=np.int64)
    return Sensitivity(
        l1=int(np.abs(rows).sum(axis=1).max()),
        l2_squared=int((rows * rows).sum(axis=1).max()),
        linf=int(np.abs(rows).max()),
        range=int((rows.max(axis=1) - rows.min(axis=1)).max()),
    )


FIXED = ((PERSON[0],), (VISIT[0], VISIT[1]))


@pytest.fixture(
    scope="module", params=[(k, m, r) for k in ("replace-one", "add-remove") for m in (1, 2) for r in (True, False)]
)
def neighbouring(request):
    """Databases of which every two are neighbours: with a table of persons, everybody has a row in it."""
    kind, most, roster = request.param
    held = [choice for choice in choices(most) if choice[0] or not roster]
    found = [database(kind, {0: FIXED, 1: each}, "people", most=most, roster=roster) for each in held]
    if kind == "add-remove":
        found.insert(0, database(kind, {0: FIXED}, "people", most=most, roster=roster))
    return kind, most, roster, found


@pytest.mark.parametrize("view", VIEWS, ids=str)
def test_no_neighbouring_databases_differ_by_more_than_the_sensitivity(neighbouring, view):
    kind, most, _, every = neighbouring
    for query in VIEWS[view]:
        stated = query.sensitivity(every[0].view(view).facts)
        sums = np.array([dense(query, each.view(view)) for each in every], dtype=np.int64)
        differences = (
            sums[1:] - sums[0] if kind == "add-remove" else (sums[:, None] - sums[None]).reshape(len(sums) ** 2, -1)
        )
        found = measured(differences)
        for norm in ("l1", "l2_squared", "linf", "range"):
            assert getattr(found, norm) <= getattr(stated, norm), (view, query, norm)
        if isinstance(query, Persons) and most == 2 and view != "people" and kind == "add-remove":
            assert (found.l1, found.l2_squared) == (stated.l1, stated.l2_squared), query


def test_counts_of_persons_are_tight():
    """m groups for a person of m rows, and twice as many between two persons."""
    for kind, expected in (("add-remove", Sensitivity(2, 2, 1, 1)), ("replace-one", Sensitivity(4, 4, 1, 2))):
        query = Persons(["place", "day"])
        every = [database(kind, {0: FIXED, 1: each}, "people") for each in choices(2) if each[0]]
        if kind == "add-remove":
            every.insert(0, database(kind, {0: FIXED}, "people"))
        assert query.sensitivity(every[0].view("visits").facts) == expected
        sums = np.array([dense(query, each.view("visits")) for each in every], dtype=np.int64)
        pairs = sums - sums[0] if kind == "add-remove" else (sums[:, None] - sums[None]).reshape(len(sums) ** 2, -1)
        assert measured(pairs) == expected if kind == "add-remove" else measured(pairs).l1 <= 4


ROWS = st.tuples(
    st.lists(st.sampled_from(PERSON), max_size=2).map(tuple), st.lists(st.sampled_from(VISIT), max_size=5).map(tuple)
)


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(st.integers(0, 6), ROWS, min_size=1), st.integers(0, 6), ROWS, st.integers(1, 3), st.booleans())
def test_the_rows_of_the_others_in_a_join_stay_as_they_are(rows, somebody, new, most, roster):
    """Whoever is replaced: the joined rows of everybody else are the same, and nobody has more than `most`."""
    everybody = {number: each for number, each in rows.items() if each[0] or each[1]}
    replaced = {**everybody, somebody: new}
    for view in ("visits", ("visits", "people")):
        found = []
        for each in (everybody, replaced):
            joined = database("add-remove", each, "people", most=most, roster=roster).view(view)
            assert joined.exact_sum(Count()) <= most * len(each)
            found.append(rows_of_persons(joined, most))
        before, after = found
        different = [key for key in {*before, *after} if before.get(key) != after.get(key)]
        assert sum(abs(before.get(key, 0) - after.get(key, 0)) for key in different) <= 2 * most


def rows_of_persons(view, most):
    """How often each row of a view occurs, after checking that no person has more than `most`."""
    names = view.facts.domain.names
    found = {}

    def count(batch):
        persons = batch.persons.tolist()
        assert all(persons.count(person) <= most for person in persons)
        for place in range(batch.rows):
            key = tuple(
                batch.texts(name)[batch[name][place]] if view.facts.domain[name].free else int(batch[name][place])
                for name in names
            )
            found[key] = found.get(key, 0) + 1
        return np.asarray(batch.rows, dtype=np.int64)

    view.exact_sum(count)
    return found


@pytest.mark.parametrize("kind", ["replace-one", "add-remove"])
def test_a_person_is_one_of_the_rows_that_are_made_and_moves_two_numbers_at_most(kind):
    """However many rows a person has: how many persons have one row, two, three, is a histogram of persons."""
    every = [database(kind, {0: FIXED, 1: each}, "people") for each in choices(2) if each[0]]
    facts = every[0].view("visits").facts
    stated = OfPersons(EACH, Histogram("n")).sensitivity(facts)
    assert stated == (Sensitivity(2, 2, 1, 2) if kind == "replace-one" else Sensitivity(1, 1, 1, 1))
    assert OfPersons(EACH, Count(Equals("n", 2))).sensitivity(facts) == Sensitivity(1, 1, 1, 0)
    sums = np.array([dense(OfPersons(EACH, Histogram("n")), each.view("visits")) for each in every], dtype=np.int64)
    if kind == "replace-one":
        assert measured((sums[:, None] - sums[None]).reshape(len(sums) ** 2, -1)) == stated


def test_the_price_of_exactly_one_made_row_would_be_beaten_by_a_person_without_one():
    """A person's first visits add up to 2 .. 10, or there are none: the twin that takes everybody to have some."""
    query = OfPersons(PersonRows((), (PersonNumber("total", "sum", Of("amount"), 2),)), Sum("total"))
    twin, domain = query.query, Domain(amount=Number(100, 120, step=20))

    def one(visits):
        own = Table(
            {"person": [0, 1], "sex": ["F", "F"]},
            Domain(sex=Category("F")),
            name="people",
            unit="person",
            rows_per_unit=1,
        )
        rows = {"person": [0, *(1 for _ in visits)], "amount": [100, *visits]}
        return Database(
            [own, Table(rows, domain, name="visits", unit="person", rows_per_unit=2)], persons="people"
        ).view("visits")

    some, none = one([120, 120]), one([])
    moved = abs(int(some.exact_sum(query)) - int(none.exact_sum(query)))
    made = query.made.facts(some.facts)
    assert query.unit(some.facts) == 20
    assert twin.sensitivity(made).linf < moved == query.sensitivity(some.facts).linf == 12
