"""Domains: what may be declared, what codes mean, and what a wrong declaration says."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet.data import AnyNumber, Category, Domain, Number, Vector, spell
from discreet.errors import ParameterError, SchemaError
from discreet.records import canonical, record, revive

CATALOGUE = {each.NAME: each for each in (Category, Number, AnyNumber, Vector, Domain)}


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Category(), "at least one level"),
        (lambda: Category("a", "b", "a"), "distinct"),
        (lambda: Category(1, 1.0), "Number"),
        (lambda: Category("a", None), "None"),
        (lambda: Category(0.5), "use Number"),
        (lambda: Category(float("nan")), "use Number"),
        (lambda: Category({"a", "b"}), r"Category\(\*levels\)"),
        (lambda: Category(["a", "b"], "c"), r"Category\(\*levels\)"),
        (lambda: Category("a", other=0.5), "use Number"),
        (lambda: Category(b"a"), "text, a whole number or a boolean"),
        (lambda: Number(0, 0, step=1), "low must be < high"),
        (lambda: Number(1, 0, step=1), "low must be < high"),
        (lambda: Number(0, 1, step=0), "step must be > 0"),
        (lambda: Number(0, 1, step=-1), "step must be > 0"),
        (lambda: Number(0, 1, step="0.3"), "nearest step that works is 1/3"),
        (lambda: Number(0, 100, step=30), "nearest step that works is 100/3"),
        (lambda: Number(0, 10, step=40), "nearest step that works is 10"),
        (lambda: Number(0, float("inf"), step=1), "finite"),
        (lambda: Number(0, float("nan"), step=1), "finite"),
        (lambda: Number(0, True, step=1), "True"),
        (lambda: Number(0, 1, step=1, missing="yes"), "missing must be True or False"),
        (lambda: Number(0, 2**62, step=1), r"2\*\*62 codes"),
        (lambda: Number(0, 10**400, step=10**399), "1e300"),
        (lambda: Vector(2, norm="1e-310"), "1e-300"),
        (lambda: Number.any(missing=None), "missing must be True or False"),
        (lambda: Vector(0, norm=1), "dimension must be a whole number >= 1"),
        (lambda: Vector(2, norm=0), "norm must be > 0"),
        (lambda: Vector(2, norm=1, step=2), "step must be at most norm"),
        (lambda: Vector(2, norm=1, step=Fraction(1, 2**31)), "too small"),
        (lambda: Domain(), "at least one column"),
        (lambda: Domain({"": Number(0, 1, step=1)}), "non-empty text"),
        (lambda: Domain({3: Number(0, 1, step=1)}), "non-empty text"),
        (lambda: Domain(age=(0, 120)), "must be a Category"),
        (lambda: Domain({"a": Category(1)}, a=Category(2)), "found twice: 'a'"),
    ],
)
def test_a_wrong_declaration_is_refused_with_what_was_expected(make, says):
    with pytest.raises(ParameterError, match=says):
        make()


def test_the_suggested_step_works():
    with pytest.raises(ParameterError, match=r"works is 0\.25"):
        Number(0, 1, step="0.26")
    assert Number(0, 1, step="0.25").steps == 4


def test_the_largest_number_of_codes_is_two_to_the_62():
    assert Number(0, 2**62 - 1, step=1).size == 2**62
    assert Number(0, 2**62 - 2, step=1, missing=True).size == 2**62
    with pytest.raises(ParameterError):
        Number(0, 2**62 - 1, step=1, missing=True)


def test_one_and_true_and_the_text_one_are_three_levels():
    column = Category(1, True, "1")
    assert [column.code(each) for each in (1, True, "1", 1.0, Fraction(1), np.int64(1), np.True_)] == [
        0,
        1,
        2,
        0,
        0,
        0,
        1,
    ]
    assert Category(1) != Category(True)
    assert Category(1) != Category("1")
    assert len({Category(1), Category(True), Category("1"), Category(np.int64(1))}) == 3


def test_booleans_and_zero_one_stand_for_each_other_when_alone():
    assert [Category(0, 1).code(each) for each in (False, True)] == [0, 1]
    assert [Category(False, True).code(each) for each in (0, 1, 1.0)] == [0, 1, 1]
    with pytest.raises(ParameterError):
        Category(False, True).code(2)
    with pytest.raises(ParameterError):
        Category("0", "1").code(1)


def test_an_undeclared_level_is_refused_with_near_misses():
    with pytest.raises(ParameterError, match=r"'smokre' is not a declared level\. Did you mean 'smoker'"):
        Category("smoker", "never").code("smokre")
    with pytest.raises(ParameterError, match="Did you mean 'F'"):
        Category("F", "M").code("f")


def test_other_and_missing_are_levels_at_the_end_unless_they_are_declared():
    column = Category("F", "M", other="X", missing="?")
    assert column.levels == ("F", "M", "X", "?")
    assert (column.size, column.other_code, column.missing_code) == (4, 2, 3)
    again = Category("?", "F", other="F", missing="?")
    assert (again.levels, again.other_code, again.missing_code) == (("?", "F"), 1, 0)
    both = Category("F", other="?", missing="?")
    assert (both.levels, both.other_code, both.missing_code) == (("F", "?"), 1, 1)
    assert (Category("F").other_code, Category("F").missing_code) == (None, None)


def test_level_and_value_invert_code():
    category = Category("a", 7, False, other="b")
    assert [category.code(category.value(code)) for code in range(category.size)] == list(range(category.size))
    number = Number("-0.3", "0.3", step="0.1", missing=True)
    assert [number.code(number.value(code)) for code in range(number.steps + 1)] == list(range(7))
    for wrong in (
        lambda: category.value(4),
        lambda: category.value(-1),
        lambda: number.value(7),
        lambda: number.value(-1),
    ):
        with pytest.raises(ParameterError):
            wrong()


def test_a_number_is_exact_decimals():
    number = Number(0, 1, step=0.1)
    assert number.step == Fraction(1, 10)
    assert number.code(0.3) == 3
    assert number.code("0.7") == 7
    assert number.value(7) == Fraction(7, 10)
    assert (number.steps, number.size, number.missing_code) == (10, 11, None)
    assert (Number(0, 1, 0.1, missing=True).size, Number(0, 1, 0.1, missing=True).missing_code) == (12, 11)


def test_a_value_off_the_grid_is_refused_with_its_neighbours():
    with pytest.raises(ParameterError, match=r"0\.53 is not on the grid .* nearest on it: 0\.5 and 0\.55"):
        Number(0, 2, step="0.05").code(0.53)
    with pytest.raises(ParameterError, match=r"nearest on it: 2$"):
        Number(0, 2, step="0.05").code(99)
    with pytest.raises(ParameterError, match=r"nearest on it: 0$"):
        Number(0, 2, step="0.05").code(-1)


@pytest.mark.parametrize(
    ("low", "high", "step", "unit"),
    [
        (0, 120, 1, "1"),
        (0, 120, 5, "5"),
        (3, 13, 5, "1"),
        (-4, 6, 10, "2"),
        ("0.5", 2, "0.25", "0.25"),
        ("0.1", "1.1", "0.25", "0.05"),
    ],
)
def test_the_unit_is_the_largest_that_divides_every_value(low, high, step, unit):
    number = Number(low, high, step)
    assert number.unit == Fraction(unit)
    values = [number.value(code) / number.unit for code in range(number.steps + 1)]
    assert all(value.denominator == 1 for value in values)
    assert np.gcd.reduce([int(value) for value in values]) == 1


def test_codes_of_unbounded_numbers_keep_the_order_and_fifty_digits():
    column = Number.any(missing=True)
    values = np.array([-np.inf, -1e308, -3.5, -5e-324, -0.0, 0.0, 1e-300, 0.1, 1, 2**53, 1.7e308, np.inf])
    codes = column.codes(values)
    assert np.all(np.diff(codes) >= 0)
    assert codes[4] == codes[5]
    assert (codes[0], codes[-1]) == (0, column.size - 2)
    assert column.missing_code == column.size - 1 < 2**62
    for value, code in zip(values[1:-1].tolist(), codes[1:-1].tolist(), strict=True):
        assert abs(column.value(code) - Fraction(value)) <= max(abs(Fraction(value)) / 2**50, Fraction(1, 2**1070))


def test_a_vector_is_bounded_in_units_of_its_step():
    assert Vector(3, norm=1).step == Fraction(1, 2**15)
    assert Vector(3, norm=1).bound_squared == 2**30
    assert Vector(2, norm=1, step="0.3").bound_squared == 11
    assert Vector(2, norm=1, step="0.3").size == 49


def test_a_domain_is_a_mapping_with_a_size_and_projections():
    domain = Domain({'it\'s "odd"': Category("a", "b"), "größe": Number(0, 9, step=1)}, age=Number(0, 4, step=1))
    assert domain.names == ('it\'s "odd"', "größe", "age") == tuple(domain)
    assert domain.size == 2 * 10 * 5
    assert domain.project(["age", "größe"]) == Domain({"age": Number(0, 4, step=1), "größe": Number(0, 9, step=1)})
    assert dict(domain)["age"] == domain["age"] == domain.column("age")
    assert ("age" in domain, "agee" in domain, domain.get("agee"), len(domain)) == (True, False, None, 3)
    assert hash(domain) == hash(Domain(dict(domain)))


def test_an_undeclared_column_is_a_schema_error_with_near_misses_or_what_is_declared():
    with pytest.raises(SchemaError, match=r"'agee' is not declared. Did you mean 'age'\?$"):
        Domain(age=Number(0, 4, step=1)).column("agee")
    with pytest.raises(SchemaError, match="not declared"):
        Domain(age=Number(0, 4, step=1)).project(["age", "sex"])


def test_a_column_may_be_called_columns():
    domain = Domain(columns=Category("a"), declared=Category("b"))
    assert domain.names == ("columns", "declared")
    assert revive(record(domain), CATALOGUE) == domain


def test_every_declaration_comes_back_from_its_record():
    domain = Domain(
        {
            "1/2": Category("1/2", "\\x", 1, True, other="o", missing="m"),
            "n": Number("-1/3", "2/3", step="1/6", missing=True),
            "a": Number.any(),
            "v": Vector(4, norm="0.7", step="0.01"),
        }
    )
    again = revive(record(domain), CATALOGUE)
    assert again == domain
    assert canonical(record(again)) == canonical(record(domain))


def test_a_declaration_prints_as_it_is_written():
    domain = Domain(
        age=Number(0, 120, step=1), pay=Number(-1, 1, "0.05", missing=True), sex=Category("F", "M", other="X")
    )
    names = {"Domain": Domain, "Number": Number, "Category": Category}
    assert eval(repr(domain), names) == domain
    odd = Domain({"a b": Number.any(), "c": Category(True, 0)})
    assert eval(repr(odd), names) == odd


@pytest.mark.parametrize("text", ["0", "-7", "120", "0.05", "-0.05", "1/3", "-2/7", "0.0009765625", "1000000"])
def test_numbers_are_spelled_as_people_write_them(text):
    assert spell(Fraction(text)) == text
