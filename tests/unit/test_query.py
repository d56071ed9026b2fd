"""Predicates and queries: what they count, what they refuse, and that they are data."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from discreet.data import Batch, Category, Domain, Facts, Matrix, Number, Table, Vector
from discreet.errors import ParameterError, SchemaError
from discreet.guarantee import Neighbours
from discreet.query import (
    Among,
    And,
    Between,
    Count,
    Equals,
    GroupSum,
    Histogram,
    KeyCount,
    Missing,
    Not,
    Or,
    Query,
    Sensitivity,
    Sum,
    VectorSum,
)
from discreet.records import canonical, record, revive
from discreet.row_functions import Of, Power

PREDICATES = (Equals, Between, Among, Missing, And, Or, Not)
QUERIES = (Count, Histogram, KeyCount, Sum, VectorSum)
CATALOGUE = {each.NAME: each for each in (*PREDICATES, *QUERIES)}

DOMAIN = Domain(
    age=Number(0, 10, step=1),
    pay=Number(-1, 2, step="0.5", missing=True),
    sex=Category("F", "M", missing="?"),
    flag=Category(1, True),
    wild=Number.any(),
)
ROWS = {
    "age": [1, 5, 5, 9],
    "pay": [-1, 2.0, None, 0.5],
    "sex": ["F", "M", None, "F"],
    "flag": [1, 1, 1, 1],
    "wild": [1e9, -1.5, 0, 2],
}
TABLE = Table(ROWS, DOMAIN)


def count(where):
    return int(TABLE.exact_sum(Count(where)))


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        (And(), 4),
        (Or(), 0),
        (Equals("age", 5), 2),
        (Equals("age", 5.0), 2),
        (Equals("age", Fraction(5)), 2),
        (Equals("pay", 0.5), 1),
        (Equals("pay", "1/2"), 1),
        (Equals("sex", "F"), 2),
        (Equals("flag", 1), 4),
        (Equals("flag", True), 0),
        (Between("age", 5, 9), 3),
        (Between("age", 0, 10), 4),
        (Between("age", 6, 8), 0),
        (Between("pay", -1, 2), 3),
        (Not(Between("pay", -1, 2)), 1),
        (Among("age", [1, 9, 9]), 2),
        (Among("sex", ("F", "M")), 3),
        (Missing("pay"), 1),
        (Missing("sex"), 1),
        (Missing("age"), 0),
        (And(Equals("sex", "F"), Between("age", 5, 10)), 1),
        (Or(Equals("sex", "M"), Missing("pay")), 2),
        (Not(Or(Equals("sex", "F"), Missing("sex"))), 1),
    ],
)
def test_a_predicate_finds_the_rows_it_describes(where, rows):
    assert count(where) == rows


@pytest.mark.parametrize(
    ("where", "error", "says"),
    [
        (Equals("agee", 5), SchemaError, "Did you mean 'age'"),
        (Missing("agee"), SchemaError, "Did you mean 'age'"),
        (Equals("age", 5.5), ParameterError, "column 'age': 5.5 is not on the grid .* nearest on it: 5 and 6"),
        (Equals("age", "old"), ParameterError, "column 'age': value must be a finite number"),
        (Equals("age", True), ParameterError, "column 'age': value must be a number"),
        (Between("age", 5, 99), ParameterError, "nearest on it: 10"),
        (Between("sex", 0, 1), ParameterError, "no Number with bounds"),
        (Between("wild", 0, 1), ParameterError, "no Number with bounds"),
        (Equals("wild", 0), ParameterError, "no single value"),
        (Equals("sex", "f"), ParameterError, "'f' is not a declared level. Did you mean 'F'"),
        (Equals("sex", "?"), ParameterError, r"ask Missing\('sex'\)"),
        (Among("sex", ["F", "?"]), ParameterError, r"ask Missing\('sex'\)"),
        (Among("sex", ["F", 1]), ParameterError, "1 is not a declared level"),
        (Not(And(Or(Equals("agee", 1)))), SchemaError, "not declared"),
    ],
)
def test_a_predicate_that_does_not_fit_the_domain_is_refused_without_looking_at_rows(where, error, says):
    with pytest.raises(error, match=says):
        where.check(DOMAIN)
    with pytest.raises(error, match=says):
        Count(where).sensitivity(TABLE.facts)
    with pytest.raises(error, match=says):
        TABLE.exact_sum(Count(where))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Between("age", 3, 2),
        lambda: Between("age", "low", 2),
        lambda: Between("age", None, 2),
        lambda: Equals("", 1),
        lambda: Equals("age", None),
        lambda: Equals("age", float("nan")),
        lambda: Among("age", []),
        lambda: Among("sex", "FM"),
        lambda: Missing(3),
        lambda: And(Equals("age", 1), lambda row: True),
        lambda: Not("age"),
        lambda: Count(lambda row: True),
        lambda: Sum("age", "age > 5"),
        lambda: Sum(""),
        lambda: Histogram("age", None),
        lambda: KeyCount("age", True),
        lambda: VectorSum("age", And),
        lambda: Histogram(()),
        lambda: Histogram(("age", "age")),
        lambda: KeyCount(("age", "")),
        lambda: VectorSum(["age", "age"]),
    ],
)
def test_a_malformed_predicate_or_query_is_refused_when_it_is_made(make):
    with pytest.raises(ParameterError):
        make()


def test_a_vector_has_no_single_value_and_no_histogram():
    facts = Matrix([[0.5, 0.5]], features=Vector(2, norm=1)).facts
    for query in (
        Count(Equals("x", 0)),
        Count(Between("x", 0, 1)),
        Histogram("x"),
        KeyCount("x"),
        VectorSum(("x", "y")),
    ):
        with pytest.raises((ParameterError, SchemaError)):
            query.sensitivity(facts)


def test_the_scope_of_a_predicate_is_sorted_and_without_repetitions():
    where = And(Equals("sex", "F"), Not(Or(Between("age", 1, 2), Missing("sex"), Among("pay", [0]))))
    assert where.columns == ("age", "pay", "sex")
    assert And().columns == ()


@pytest.mark.parametrize(
    "value",
    [
        And(Equals("sex", "1/2"), Or(), Not(Missing("pay"))),
        Or(Between("pay", "-0.5", 0.5), Among("flag", (1, True, "1"))),
        Count(Equals("flag", True)),
        Histogram(("age", "sex"), Equals("pay", 0.5)),
        KeyCount("wild"),
        Sum("pay", Missing("sex")),
        VectorSum(("age", "pay")),
    ],
)
def test_predicates_and_queries_come_back_from_their_records(value):
    again = revive(record(value), CATALOGUE)
    assert again == value
    assert hash(again) == hash(value)
    assert canonical(record(again)) == canonical(record(value))


def test_equal_questions_are_equal_values():
    assert Equals("age", 65) == Equals("age", 65.0) == Equals("age", np.int64(65)) == Equals("age", Fraction(65))
    assert Between("pay", 0.1, 1) == Between("pay", "0.1", Fraction(1))
    assert Equals("flag", 1) != Equals("flag", True)
    assert Among("flag", [1]) != Among("flag", [True])
    assert len({Equals("flag", 1), Equals("flag", True), Equals("flag", "1")}) == 3
    assert Histogram("age") == Histogram(["age"])


def test_a_histogram_has_an_axis_for_each_column_and_a_cell_for_each_level():
    found = TABLE.exact_sum(Histogram(("sex", "pay")))
    assert found.shape == (3, 8)
    assert found.dtype == np.int64
    assert {tuple(cell): int(found[tuple(cell)]) for cell in np.argwhere(found)} == {
        (0, 0): 1,
        (1, 6): 1,
        (2, 7): 1,
        (0, 3): 1,
    }
    assert TABLE.exact_sum(Histogram("age", Equals("sex", "F"))).tolist() == [0, 1] + [0] * 7 + [1, 0]


def test_a_histogram_of_too_many_cells_is_refused_before_it_is_built():
    domain = Domain(a=Number(0, 2**13 - 1, step=1), b=Number(0, 2**13, step=1))
    facts = Facts(domain, Neighbours("replace-one"), 5)
    with pytest.raises(ParameterError, match=r"'a', 'b' has 67117056 cells, more than 2\*\*26"):
        Histogram(("a", "b")).sensitivity(facts)
    with pytest.raises(ParameterError, match="cells"):
        Histogram("wild").sensitivity(TABLE.facts)
    assert KeyCount(("a", "b")).sensitivity(facts) == Sensitivity(2, 2, 1, 2)


def test_key_count_is_the_sparse_histogram():
    found = TABLE.exact_sum(KeyCount(("age", "sex")))
    assert found == Counter({(1, 0): 1, (5, 1): 1, (5, 2): 1, (9, 0): 1})
    assert all(type(code) is int for key in found for code in key)
    assert TABLE.exact_sum(KeyCount("age", Or())) == Counter()
    assert set(TABLE.exact_sum(KeyCount("flag")).items()) == {((0,), 4)}


def test_sums_are_integers_in_units_and_missing_counts_as_zero():
    assert TABLE.exact_sum(Sum("pay")) == 3
    assert Sum("pay").unit(TABLE.facts) == Fraction(1, 2)
    assert TABLE.exact_sum(Sum("pay")).shape == ()
    assert TABLE.exact_sum(Sum("age", Equals("sex", "F"))) == 10
    found = TABLE.exact_sum(VectorSum(("age", "pay")))
    assert found.tolist() == [40, 3]
    assert found.dtype == np.int64
    assert VectorSum(("age", "pay")).unit(TABLE.facts) == Fraction(1, 2)


def test_a_sum_needs_bounds():
    for column in ("wild", "sex"):
        with pytest.raises(ParameterError, match="no bounded sum"):
            Sum(column).sensitivity(TABLE.facts)
    with pytest.raises(ParameterError, match="declare its bounds"):
        Sum("wild").sensitivity(TABLE.facts)


def test_sums_beyond_int64_are_exact_python_integers():
    number = Number(1 - 2**61, 2**61, step=1)
    rows = [2**61, 2**61 - 1, 2**61, -(2**61) + 1, 2**61, 2**61 - 3, 2**60 + 1]
    found = Table({"v": rows, "w": range(7)}, Domain(v=number, w=Number(0, 6, step=1))).exact_sum(VectorSum(("v", "w")))
    assert found.tolist() == [sum(rows), 21]
    assert found.dtype == object
    alone = Table({"v": rows}, Domain(v=number)).exact_sum(Sum("v"))
    assert (alone.item(), alone.shape) == (sum(rows), ())


def test_asymmetric_bounds_give_the_stated_sensitivities():
    domain = Domain(
        a=Number(3, 7, step=1), b=Number(-5, -2, step=1), c=Number(-1, 4, step=1), m=Number(3, 7, step=1, missing=True)
    )
    added = Facts(domain, Neighbours("add-remove"), None)
    replaced = Facts(domain, Neighbours("replace-one"), 9)
    pair = Facts(domain, Neighbours("replace-one", 2), 9)
    some = Equals("c", 0)
    expected = {
        (Sum("a"), added): 7,
        (Sum("a"), replaced): 4,
        (Sum("a", some), replaced): 7,
        (Sum("a"), pair): 14,
        (Sum("b"), added): 5,
        (Sum("b"), replaced): 3,
        (Sum("b", some), replaced): 5,
        (Sum("c"), added): 4,
        (Sum("c"), replaced): 5,
        (Sum("m"), added): 7,
        (Sum("m"), replaced): 7,
    }
    for (query, facts), value in expected.items():
        assert query.sensitivity(facts) == Sensitivity(value, value * value, value, 0), query
    both = VectorSum(("a", "b"))
    assert both.sensitivity(added) == Sensitivity(12, 49 + 25, 7, 12)
    assert both.sensitivity(replaced) == Sensitivity(7, 16 + 9, 4, 7)
    assert VectorSum(("a", "b"), some).sensitivity(replaced) == Sensitivity(12, 74, 7, 12)


def test_a_vector_sum_has_the_ball_s_sensitivities():
    vector = Vector(3, norm=1, step="0.3")
    domain = Domain(x=vector)
    assert VectorSum("x").sensitivity(Facts(domain, Neighbours("add-remove"), None)) == Sensitivity(5, 11, 3, 4)
    assert VectorSum("x").sensitivity(Facts(domain, Neighbours("replace-one"), 4)) == Sensitivity(10, 44, 6, 8)
    assert VectorSum("x").unit(Facts(domain, Neighbours("replace-one"), 4)) == Fraction(3, 10)
    one = Facts(Domain(x=Vector(1, norm=1)), Neighbours("add-remove"), None)
    assert VectorSum("x").sensitivity(one).range == 0


def test_counting_queries_are_monotone_and_sums_are_not():
    queries = (Count(), Histogram("age"), KeyCount("age"), Sum("age"), VectorSum("age"))
    assert [query.monotone for query in queries] == [True, True, True, False, False]
    assert all(isinstance(query, Query) for query in queries)


def test_room_for_a_sum_is_checked_from_public_facts_alone():
    facts = Facts(DOMAIN, Neighbours("replace-one"), 1000)
    facts.require_room(2**52)
    with pytest.raises(ParameterError, match="62 bits"):
        facts.require_room(2**53)
    hidden = Facts(DOMAIN, Neighbours("add-remove"), 1000)
    hidden.require_room(2**31)
    with pytest.raises(ParameterError, match="62 bits"):
        hidden.require_room(2**31 + 2)


def test_predicates_combine_by_operators_and_refuse_python_and():
    a, b = Equals("sex", "F"), Between("age", 1, 2)
    assert a & b == And(a, b)
    assert a | b == Or(a, b)
    assert ~a == Not(a)
    assert ~(a & b) | b == Or(Not(And(a, b)), b)
    for wrong in (lambda: a and b, lambda: a or b, lambda: not a):
        with pytest.raises(ParameterError, match="combine predicates"):
            wrong()


def test_a_histogram_names_its_cells_in_the_order_of_its_result():
    domain = Domain(sex=Category("F", "M"), age=Number(0, 1, step="0.5", missing=True))
    facts = Facts(domain, Neighbours("add-remove"), None)
    labels = Histogram(("sex", "age")).labels(facts)
    assert labels[:4] == [("F", 0), ("F", 0.5), ("F", 1), ("F", None)]
    assert len(labels) == 8


@pytest.mark.parametrize(("high", "step"), [("1e24", "1e18"), ("2e250", "1e249"), ("1e20", "1e15"), ("1", "0.001")])
def test_what_a_row_adds_is_right_in_units_that_no_integer_of_64_bits_holds(high, step):
    domain = Domain(x=Number(0, high, step=step), c=Category("u", "v"))
    batch = Batch(domain, 2, lambda name: np.array([0, domain[name].size - 1]))
    for query in (GroupSum(["c"], Of("x")), Sum("x")):
        assert query.weights(batch) == pytest.approx([0.0, float(high)], rel=1e-12)
        assert query.weights(batch).dtype == np.float64


def test_a_sum_of_squares_that_floats_cannot_hold_is_refused():
    domain = Domain(x=Number(0, "2e250", step="1e249"))
    batch = Batch(domain, 1, lambda _: np.array([1]))
    with pytest.raises(ParameterError, match="other units"):
        GroupSum([], Power(Of("x"), 2)).weights(batch)
