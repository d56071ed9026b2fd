"""Questions in SQL: what is read, what is refused, where and with which words."""

from __future__ import annotations

import itertools
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from discreet.answering.linear_query import all_cells
from discreet.data import Category, Date, Domain, Number
from discreet.errors import ParameterError, UnsupportedQuery
from discreet.query import (
    Among,
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
    Missing,
    Not,
    Of,
    Or,
    Plus,
    Power,
    Sum,
    Times,
)
from discreet.sql import QuantileOf, parse, where_text
from discreet.sql.source import MAX_LENGTH

CASES = Path(__file__).parents[1] / "e2e" / "sql_cases"
DOMAIN = Domain(
    {
        "age": Number(0, 120, step=1),
        "sex": Category("F", "M", missing="?"),
        "visits": Number(-5, 5, step="0.25", missing=True),
        "smoker": Category(True, False, missing="unknown"),
        "region": Category("N", "S", "it's", other="elsewhere"),
        "weird name": Number(0, 1, step="0.1"),
        "date": Number(0, 3, step=1),
        "wild": Number.any(missing=True),
        "third": Number(0, 1, step="1/3"),
    }
)


def cases(name):
    blocks = (CASES / name).read_text(encoding="utf-8").strip("\n").split("\n\n")
    return [tuple(block.split("\n")) for block in blocks]


def ask(text, domain=DOMAIN, table="people"):
    return parse(text, domain, table=table)


def where(condition, domain=DOMAIN):
    return ask(f"SELECT COUNT(*) FROM people WHERE {condition}", domain).where


def refusal(text, domain=DOMAIN, table="people"):
    with pytest.raises(UnsupportedQuery) as caught:
        ask(text, domain, table)
    return caught.value


@pytest.mark.parametrize(("question", "parts"), cases("answered.txt"))
def test_a_question_is_made_of_these_queries(question, parts):
    found = ask(question)
    assert "; ".join([*map(repr, found.questions), *map(repr, found.quantiles)]) == parts


@pytest.mark.parametrize(("question", "refused"), cases("refused.txt"))
def test_a_question_outside_the_language_is_refused_at_its_place_with_a_reason_and_a_hint(question, refused):
    position, reason = refused.split("^ ")
    error = refusal(question)
    assert (error.position, error.reason) == (len(position), reason)
    assert error.text == question
    assert error.hint


DAYS = Domain(
    {"day": Date("1974-01-01", "1975-12-31"), "x": Number(0, 9, step=1, missing=True), "sex": Category("F", "M")}
)


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        (
            "SELECT TOP 2 `sex`, COUNT(1) n FROM [people] GROUP BY `sex`",
            "SELECT sex, COUNT(*) n FROM people GROUP BY sex LIMIT 2",
        ),
        (
            "SELECT TOP (2) sex, COUNT(*) FROM dbo.people GROUP BY sex",
            "SELECT sex, COUNT(*) FROM people GROUP BY sex LIMIT 2",
        ),
        (
            "SELECT sex, COUNT(*) FROM public.people GROUP BY sex ORDER BY 2 OFFSET 1 ROWS FETCH NEXT 1 ROWS ONLY",
            "SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY 2 LIMIT 1 OFFSET 1",
        ),
        (
            "SELECT SUM(IIF(sex = 'F', x, 0)) FROM people",
            "SELECT SUM(CASE WHEN sex = 'F' THEN x ELSE 0 END) FROM people",
        ),
        ("SELECT SUM(IFF(sex = 'F', x, 0)) FROM people", "SELECT SUM(IF(sex = 'F', x, 0)) FROM people"),
        ("SELECT AVG(IFNULL(x, 0)), AVG(NVL(x, 0)) FROM people", "SELECT AVG(COALESCE(x, 0)) FROM people"),
        ("SELECT STDEV(x), STDEVP(x), VARP(x) FROM people", "SELECT STDDEV(x), STDDEV_POP(x), VAR_POP(x) FROM people"),
        ("SELECT COUNT(ALL x), COUNT_BIG(*) FROM people", "SELECT COUNT(x), COUNT(*) FROM people"),
        ("SELECT APPROX_QUANTILES(x, 100)[OFFSET(90)] FROM people", "SELECT QUANTILE(x, 0.9) FROM people"),
        ("SELECT APPROX_QUANTILES(x, 4)[ORDINAL(2)] FROM people", "SELECT QUANTILE(x, 0.25) FROM people"),
        (
            "SELECT APPROX_PERCENTILE(x, 0.2), APPROX_MEDIAN(x) FROM people",
            "SELECT QUANTILE(x, 0.2), MEDIAN(x) FROM people",
        ),
        (
            "SELECT DATE_TRUNC(day, MONTH), COUNT(*) FROM people GROUP BY 1",
            "SELECT DATE_TRUNC('month', day), COUNT(*) FROM people GROUP BY 1",
        ),
        (
            "SELECT DATETRUNC(month, day), COUNT(*) FROM people GROUP BY 1",
            "SELECT DATE_TRUNC('month', day), COUNT(*) FROM people GROUP BY 1",
        ),
        (
            "SELECT DATEPART(day, day), COUNT(*) FROM people GROUP BY 1",
            "SELECT DAY(day), COUNT(*) FROM people GROUP BY 1",
        ),
        (
            "SELECT TO_CHAR(day, 'YYYY-MM'), COUNT(*) FROM people GROUP BY 1",
            "SELECT STRFTIME(day, '%Y-%m'), COUNT(*) FROM people GROUP BY 1",
        ),
        (
            "SELECT FORMAT(day, 'yyyy-MM'), COUNT(*) FROM people GROUP BY 1",
            "SELECT STRFTIME('%Y-%m', day), COUNT(*) FROM people GROUP BY 1",
        ),
        (
            "SELECT FORMAT_DATE('%Y', day), COUNT(*) FROM people GROUP BY 1",
            "SELECT DATE_FORMAT(day, '%Y'), COUNT(*) FROM people GROUP BY 1",
        ),
        (
            "SELECT COUNT(*) FROM people WHERE DATEADD(month, -1, day) < '1974-03-01'",
            "SELECT COUNT(*) FROM people WHERE day - INTERVAL 1 MONTH < DATE '1974-03-01'",
        ),
        (
            "SELECT COUNT(*) FROM people WHERE DATE_SUB(day, INTERVAL 7 DAY) < '1974-03-01'",
            "SELECT COUNT(*) FROM people WHERE day - INTERVAL 7 DAY < '1974-03-01'",
        ),
        (
            "SELECT COUNT(*) FROM people WHERE DATEDIFF(day, '1974-01-01') > 9",
            "SELECT COUNT(*) FROM people WHERE day > '1974-01-10'",
        ),
        (
            "SELECT COUNT(*) FROM people WHERE DATEDIFF(month, '1974-01-01', day) > 2",
            "SELECT COUNT(*) FROM people WHERE DATE_DIFF('month', DATE '1974-01-01', day) > 2",
        ),
        (
            "SELECT COUNT(*) FROM people WHERE DATE_DIFF(day, DATE '1974-01-01', MONTH) > 2",
            "SELECT COUNT(*) FROM people WHERE DATE_DIFF('month', DATE '1974-01-01', day) > 2",
        ),
        ("SELECT SAFE_DIVIDE(SUM(x), COUNT(*)) FROM people", "SELECT SUM(x) / NULLIF(COUNT(*), 0) FROM people"),
        (
            "SELECT TRY_CAST(COUNT(*) AS FLOAT64), COUNT(*)::double precision FROM people",
            "SELECT COUNT(*), COUNT(*) FROM people",
        ),
    ],
)
def test_what_other_dialects_write_means_the_same(written, plain):
    one, other = (ask(text, DAYS) for text in (written, plain))
    assert one.questions == other.questions
    assert one.quantiles == other.quantiles
    assert [key.labels for key in one.keys] == [key.labels for key in other.keys]
    assert (one.limit, one.offset) == (other.limit, other.offset)


def test_a_text_that_looks_like_a_number_is_asked_for_in_quotes():
    domain = Domain(postcode=Category("1000", "01000", "-1.5", "true"), size=Category(1, 2))
    for written in ("1000", "01000", "-1.5", "TRUE"):
        error = refusal(f"SELECT COUNT(*) FROM people WHERE postcode = {written}", domain)
        assert error.reason.endswith("is not a declared level")
        assert error.hint == f"Its levels are texts, which are written in quotes: '{written.lower()}'."
    assert "in quotes" not in refusal("SELECT COUNT(*) FROM people WHERE postcode = 1001", domain).hint
    assert "in quotes" not in refusal("SELECT COUNT(*) FROM people WHERE size = 3", domain).hint
    assert where("postcode IN ('1000', '01000')", domain) == Among("postcode", ["1000", "01000"])


def test_near_misses_are_a_hint_of_their_own():
    assert refusal("SELECT COUNT(*) FROM people WHERE sex = 'f'").hint.startswith("Did you mean 'F'? Ask with")
    assert refusal("SELECT COUNT(*) FROM people WHERE region = 'X'").hint.startswith("Declared: Category('N', 'S'")
    assert "value itself" in refusal("SELECT COUNT(*) FROM people WHERE age = ?").hint
    assert "condition. A condition compares a column with a plain value: age >= 0, sex = 'F'." in refusal("no").hint
    assert refusal('SELECT COUNT(*) FROM people WHERE sex = "F"').hint.endswith("quotes: 'F'.")
    assert "quantile" in refusal("SELECT MAX(age) FROM people").hint


def parts(text, domain=DOMAIN):
    return ask(text, domain).questions


def test_counts_sums_averages_and_quantiles_are_told_apart():
    seen = Not(Missing("visits"))
    assert parts("SELECT COUNT(*) FROM people") == [Count()]
    assert parts("SELECT COUNT(visits) FROM people") == [Count(seen)]
    assert parts("SELECT SUM(visits) FROM people") == [Sum("visits", seen)]
    assert parts("SELECT AVG(visits) FROM people") == [Count(seen), Sum("visits", seen)]
    assert parts("SELECT AVG(age) FROM people") == [Count(), GroupSum((), Plus(Of("age"), Fixed(-60)))]
    assert ask("SELECT MEDIAN(age) FROM people").quantiles == [QuantileOf("age", Fraction(1, 2), And())]
    assert ask("SELECT QUANTILE(wild, 0.1) FROM people").quantiles[0].probability == Fraction(1, 10)
    assert ask("SELECT PERCENTILE(age, 90) FROM people").quantiles[0].probability == Fraction(9, 10)


def test_groups_come_in_the_order_of_the_select_list_and_make_one_query_in_any_order():
    found = ask("SELECT region, COUNT(*), sex FROM people GROUP BY region, sex")
    assert [output.name for output in found.outputs] == ["region", "COUNT(*)", "sex"]
    assert found.questions == parts("SELECT sex, COUNT(*), region FROM people GROUP BY sex, region")
    assert found.questions == [Histogram(("sex", "region"))]


def test_bins_and_cases_are_groups():
    (decades,) = parts("SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) FROM people GROUP BY decade")
    assert decades == GroupCount([Bins("age", range(0, 121, 10), range(13))])
    found = ask("SELECT CASE WHEN age < 18 THEN 'child' ELSE 'adult' END AS who, COUNT(*) FROM people GROUP BY 1")
    assert found.questions == [GroupCount([Cases([Between("age", 0, 17)])])]
    assert found.keys[0].labels == ("child", "adult")
    found = ask("SELECT WIDTH_BUCKET(age, 0, 120, 3) AS third, COUNT(*) FROM people GROUP BY ALL")
    assert found.keys[0].labels == (1, 2, 3, 4)
    assert found.keys[0].key == Bins("age", (0, 40, 80, 120), range(4))
    half = ask("SELECT visits > 0 AS some, COUNT(*) FROM people GROUP BY some")
    assert half.keys[0].labels == (False, True, None)


def test_a_fine_grid_is_binned_without_listing_it():
    fine = Domain(pay=Number(0, 10**9, step=1))
    (found,) = parts("SELECT FLOOR(pay / 250000000), COUNT(*) FROM people GROUP BY 1", fine)
    assert found == GroupCount([Bins("pay", (0, 250000000, 500000000, 750000000, 10**9), range(5))])
    assert where("pay / 1000 BETWEEN 5 AND 10", fine) == And(Between("pay", 5000, 10**9), Between("pay", 0, 10000))
    assert "combinations of values" in refusal("SELECT COUNT(*) FROM people WHERE pay % 7 = 0", fine).reason


def test_sums_of_expressions_are_values_of_a_row():
    seen = Not(Missing("visits"))
    (product,) = parts("SELECT SUM(age * visits) FROM people")
    assert product == GroupSum((), Times(Of("age"), Of("visits")), seen)
    (share,) = parts("SELECT SUM(CASE WHEN sex = 'F' THEN 1 ELSE 0 END) FROM people")
    assert share == GroupSum((), Choose([Equals("sex", "F")], [Fixed(1)], Fixed(0)))
    assert parts("SELECT SUM(2 * age - 1) FROM people") == [GroupSum((), Plus(Times(Fixed(2), Of("age")), Fixed(-1)))]
    assert parts("SELECT SUM(age * age) FROM people") == parts("SELECT SUM(POWER(age, 2)) FROM people")
    assert "divides by zero" in refusal("SELECT SUM(1 / age) FROM people").reason


def test_a_sum_beside_an_average_is_read_off_its_parts():
    alone = parts("SELECT AVG(age) FROM people")
    assert parts("SELECT AVG(age), SUM(age), COUNT(*), SUM(age) / COUNT(*) FROM people") == alone
    spread = parts("SELECT STDDEV(age), VAR_POP(age), AVG(age) FROM people")
    assert spread == [*alone, GroupSum((), Power(Plus(Of("age"), Fixed(-60)), 2))]


def test_a_filter_is_a_condition_of_one_aggregate():
    found = parts("SELECT COUNT(*) FILTER (WHERE sex = 'F') * 100.0 / COUNT(*) FROM people WHERE age > 3")
    old = Between("age", 4, 120)
    assert found == [Count(And(old, Equals("sex", "F"))), Count(old)]
    assert parts("SELECT COUNT_IF(sex = 'F') FROM people") == [Count(Equals("sex", "F"))]


def test_conditions_are_expanded_over_the_declared_levels():
    assert where("sex LIKE 'F%'") == Equals("sex", "F")
    assert where("region NOT ILIKE '%s%'") == Equals("region", "N")
    assert where("UPPER(region) = 'IT''S'") == Equals("region", "it's")
    assert where("age + 5 > 40") == Between("age", 36, 120)
    assert where("40 < 2 * age") == Between("age", 21, 120)
    assert where("100 - age >= age") == Between("age", 0, 50)
    assert where("age % 60 = 0") == Among("age", (0, 60, 120))
    small = Domain(x=Number(0, 2, step=1), y=Number(0, 2, step=1))
    assert where("x > y", small) == Or(And(Equals("x", 1), Equals("y", 0)), And(Equals("x", 2), Between("y", 0, 1)))


def test_what_is_done_after_the_noise_needs_no_other_queries():
    plain = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"
    found = ask(plain + " HAVING n > 5 ORDER BY n DESC, region LIMIT 3 OFFSET 1")
    assert found.questions == parts(plain)
    assert (found.limit, found.offset, [by.descending for by in found.order]) == (3, 1, [True, False])
    assert parts(f"SELECT * FROM ({plain}) q WHERE n > 5 ORDER BY n") == parts(plain)
    assert parts(f"WITH q AS ({plain}) SELECT region, n / 2 FROM q") == parts(plain)


def test_questions_in_brackets_choose_rows_and_name_expressions():
    assert parts("WITH old AS (SELECT * FROM people WHERE age > 3) SELECT COUNT(*) FROM old WHERE sex = 'F'") == [
        Count(And(Between("age", 4, 120), Equals("sex", "F")))
    ]
    assert parts("SELECT AVG(double) FROM (SELECT age * 2 AS double FROM people) q") == parts(
        "SELECT AVG(age * 2) FROM people"
    )
    assert parts("SELECT COUNT(*) FROM (SELECT age AS years FROM people) q WHERE q.years > 3") == [
        Count(Between("age", 4, 120))
    ]
    assert "'sex' is not declared" in refusal("SELECT COUNT(sex) FROM (SELECT age FROM people) q").reason
    assert "LIMIT" in refusal("SELECT COUNT(*) FROM (SELECT * FROM people LIMIT 3) q").hint


def test_comparisons_become_ranges_of_the_grid():
    assert where("age < 3") == Between("age", 0, 2)
    assert where("age <= 3") == Between("age", 0, 3)
    assert where("age > 3") == Between("age", 4, 120)
    assert where("3 < age") == Between("age", 4, 120)
    assert where("age >= 120") == Equals("age", 120)
    assert where("visits > 0.5") == Between("visits", Fraction(3, 4), 5)
    assert where("visits < -4.75") == Equals("visits", -5)
    assert where("third > 0") == Between("third", Fraction(1, 3), 1)


def test_a_range_without_values_is_never_true():
    assert where("age < 0") == where("age > 120") == where("age BETWEEN 4 AND 3") == Or()
    assert where("visits NOT BETWEEN 4 AND 3") == Not(Missing("visits"))
    assert where("age < 0 OR sex = 'F'") == Equals("sex", "F")


def test_no_row_has_a_value_off_the_grid():
    assert where("age = 3.5 OR sex = 'F'") == where("age > 120.5 OR sex = 'F'") == Equals("sex", "F")
    assert where("age IN (3, 3.5, -1)") == Equals("age", 3)
    assert where("age <> 3.5") == And()
    assert (
        where("visits <> 0.3") == where("visits NOT IN (0.3, 9)") == where("NOT visits = 0.3") == Not(Missing("visits"))
    )
    assert where("age < 120.5") == where("age > -1") == Between("age", 0, 120)


def test_decimals_are_exact():
    fine = Domain(x=Number(0, 1, step="0.1"))
    assert where("x = 0.3", fine) == where("x = 0.30", fine) == where("x = 3e-1", fine) == Equals("x", Fraction(3, 10))
    assert (
        "nearest on it: 0.3 and 0.4"
        in refusal("SELECT COUNT(*) FROM people WHERE x = 0.30000000000000004", fine).reason
    )


def test_a_comparison_with_a_missing_value_is_neither_true_nor_false():
    present = Not(Missing("visits"))
    assert where("NOT visits = 3") == where("visits <> 3") == And(Not(Equals("visits", 3)), present)
    assert where("NOT visits < 3") == Between("visits", 3, 5)
    assert where("NOT NOT visits = 3") == Equals("visits", 3)
    assert where("visits NOT IN (1, 2)") == And(Not(Among("visits", (1, 2))), present)
    assert where("NOT (visits = 3 AND sex = 'F')") == Or(
        And(Not(Equals("visits", 3)), present), And(Not(Equals("sex", "F")), Not(Missing("sex")))
    )
    assert where("age <> 3") == Not(Equals("age", 3))


def test_missing_values_are_asked_for_by_is_null():
    assert where("sex IS NULL") == Missing("sex")
    assert where("sex IS NOT NULL") == where("NOT sex IS NULL") == Not(Missing("sex"))
    assert where("wild IS NULL") == Missing("wild")


def test_boolean_columns_are_conditions():
    assert where("smoker") == where("smoker = TRUE") == where("smoker = 1") == Equals("smoker", True)
    assert where("NOT smoker") == where("smoker IS FALSE") == Equals("smoker", False)
    assert where("smoker IS NOT TRUE") == Not(Equals("smoker", True))


@pytest.mark.parametrize(
    "column",
    [Category(0, 1), Category(True, "x"), Category(True, False, missing=False), Category(True, False, other="x")],
)
def test_a_column_that_is_not_only_true_and_false_is_no_condition(column):
    assert "is not declared TRUE and FALSE" in refusal("SELECT COUNT(*) FROM people WHERE x", Domain(x=column)).reason


def test_levels_are_found_by_their_kind():
    mixed = Domain(x=Category(1, "1", True, 2))
    assert where("x = 1", mixed) == Equals("x", 1)
    assert where("x = '1'", mixed) == Equals("x", "1")
    assert where("x = TRUE", mixed) == Equals("x", True)
    assert where("x IN (2.0, 1)", mixed) == Among("x", (1, 2))
    assert where("x = 'it''s --'", Domain(x=Category("it's --", ""))) == Equals("x", "it's --")
    assert where("x = ''", Domain(x=Category("it's --", ""))) == Equals("x", "")


def test_names_match_without_regard_to_case_unless_that_is_ambiguous():
    twins = Domain({"Age": Number(0, 1, step=1), "age": Number(0, 2, step=1), "sex": Category("F")})
    assert where('"age" = 2', twins) == Equals("age", 2)
    assert where("Age = 1 AND SEX = 'F'", twins) == And(Equals("Age", 1), Equals("sex", "F"))
    with pytest.raises(UnsupportedQuery, match="AGE"):
        where("AGE = 1", twins)


def test_case_is_folded_for_ascii_only():
    kelvin = Domain({"k": Number(0, 1, step=1)})
    assert "KELVIN SIGN" in refusal("SELECT COUNT(*) FROM people WHERE \u212a = 1", kelvin).reason
    assert where("größe = 1", Domain({"größe": Number(0, 1, step=1)})) == Equals("größe", 1)
    assert (
        "LATIN CAPITAL LETTER O"
        in refusal("SELECT COUNT(*) FROM people WHERE GRÖßE = 1", Domain({"größe": Number(0, 1, step=1)})).reason
    )


def test_unknown_columns_come_with_near_misses():
    found = refusal("SELECT COUNT(*) FROM people WHERE age > 3 AND vists = 3")
    assert (found.reason, found.hint) == ("column 'vists' is not declared", "Did you mean 'visits'?")
    assert found.position == len("SELECT COUNT(*) FROM people WHERE age > 3 AND ")
    assert refusal("SELECT regions, COUNT(*) FROM people GROUP BY regions").hint == "Did you mean 'region'?"
    assert refusal("SELECT COUNT(*) FROM people WHERE q = 3").hint.startswith("Declared: 'age', 'sex', 'visits'")


@pytest.mark.parametrize("end", ["", ";", " "])
def test_group_by_without_a_column_is_refused(end):
    text = "SELECT COUNT(*) FROM people WHERE visits = 0 GROUP BY"
    found = refusal(text + end)
    assert (found.position, found.reason) == (text.index("GROUP BY"), "GROUP BY names no column")


@pytest.mark.parametrize(
    "name", ["order", "group by", "a.b", 'a"b', "left", "count", "ä", "null", "x y", "\n", "it's", "1st"]
)
def test_any_declared_name_can_be_asked_for_in_quotes(name):
    domain = Domain({name: Number(0, 3, step=1)})
    found = where('"' + name.replace('"', '""') + '" >= 2', domain)
    assert found == Between(name, 2, 3)
    written = '"' + name.replace('"', '""') + '"'
    text = f"SELECT AVG({written}) FROM {written} WHERE {where_text(found, domain)}"
    assert {query.where for query in parse(text, domain, table=name).questions} == {found}


def test_words_that_are_declared_columns_need_no_quotes_unless_the_language_has_them():
    domain = Domain({name: Number(0, 3, step=1) for name in ("date", "left", "rank", "end", "top", "first", "is")})
    assert where("date = 1 AND left > 2 AND rank = 0 AND end = 1 AND top = 1 AND first = 2", domain).columns == tuple(
        sorted(("date", "left", "rank", "end", "top", "first"))
    )
    assert refusal("SELECT COUNT(*) FROM people WHERE is = 1", domain).reason


@pytest.mark.parametrize("table", ["people", "My Table", "select", "Ünï", 'a"b', "date"])
def test_a_table_may_have_any_name(table):
    written = '"' + table.replace('"', '""') + '"'
    assert parse(f"SELECT COUNT(*) FROM {written}", DOMAIN, table=table).questions == [Count()]


def test_too_many_groups_are_refused_before_anything_is_made():
    wide = Domain(x=Number(0, 10**5, step=1), y=Number(0, 10**5, step=1))
    assert "4,194,304 cells" in refusal("SELECT x, y, COUNT(*) FROM people GROUP BY x, y", wide).reason


HUGE = {
    "a megabyte of letters": "x" * 10**6,
    "brackets": "SELECT COUNT(*) FROM people WHERE " + "(" * 10**5 + "age = 3" + ")" * 10**5,
    "ands": "SELECT COUNT(*) FROM people WHERE " + " AND ".join(["age = 3"] * 10**4),
    "nots": "SELECT COUNT(*) FROM people WHERE " + "NOT " * 10**4 + "age = 3",
    "a text": "SELECT COUNT(*) FROM people WHERE sex = '" + "F" * 10**6 + "'",
    "blanks": " " * 10**6,
    "brackets within the length": "SELECT COUNT(*) FROM people WHERE " + "(" * 4900 + "age = 3" + ")" * 4900,
    "nots within the length": "SELECT COUNT(*) FROM people WHERE " + "NOT " * 2400 + "age = 3",
    "nots and brackets": "SELECT COUNT(*) FROM people WHERE " + "NOT (" * 1600 + "age = 3" + ")" * 1600,
    "minus signs": "SELECT COUNT(*) FROM people WHERE age = " + "- " * 4000 + "3",
    "digits": "SELECT COUNT(*) FROM people WHERE age = " + "9" * 9000,
    "an exponent": "SELECT COUNT(*) FROM people WHERE age = 1e999",
    "a small exponent": "SELECT COUNT(*) FROM people WHERE age = 1e-999",
    "a level": "SELECT COUNT(*) FROM people WHERE sex = '" + "F" * 9000 + "'",
    "a name": "SELECT COUNT(*) FROM people WHERE " + "é" * 9000 + " = 3",
    "a function": "SELECT " + "f" * 9000 + "(age) FROM people",
    "calls": "SELECT " + "COUNT(" * 1000 + "*" + ")" * 1000 + " FROM people",
    "quotes": "'" * 9999,
}


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE.keys())
def test_huge_and_deep_questions_are_refused_in_few_words(text):
    error = refusal(text)
    assert len(str(error)) < 1_500
    assert len(error.text) <= MAX_LENGTH
    assert 0 <= error.position <= len(text)


def test_an_undeclared_name_is_quoted_in_few_words():
    assert len(refusal(f"SELECT COUNT(*) FROM people WHERE {'a' * 9000} = 3").reason) < 500


def test_long_chains_within_the_length_are_read():
    ages = [f"age={each % 120}" for each in range(900)]
    assert where(" OR ".join(ages)).columns == ("age",)
    assert len(where(" AND ".join(f"age<>{each}" for each in range(120))).parts) == 120
    assert where(f"age IN ({', '.join(str(each % 120) for each in range(2000))})") == Among("age", range(120))


def test_nesting_is_read_up_to_its_limit_and_refused_beyond():
    def deep(levels):
        return "SELECT COUNT(*) FROM people WHERE " + "(" * levels + "age = 3" + ")" * levels

    assert parts(deep(16)) == [Count(Equals("age", 3))]
    assert "nested more than 16 deep" in refusal(deep(17)).reason
    assert "nested more than 16 deep" in refusal("SELECT COUNT(*) FROM people WHERE " + "NOT " * 17 + "age = 3").reason


def test_a_parser_that_runs_out_of_stack_is_a_refusal():
    def below(frames):
        return refusal(deepest) if frames == 0 else below(frames - 1)

    deepest = "SELECT COUNT(*) FROM people WHERE " + "(" * 16 + "age = 3" + ")" * 16
    ask(deepest)
    used = 0
    frame = sys._getframe()
    while frame is not None:
        used, frame = used + 1, frame.f_back
    assert below(sys.getrecursionlimit() - used - 200).reason == "the question cannot be parsed"


@pytest.mark.parametrize("empty", ["", " ", "\n\t", ";", " ; "])
def test_an_empty_question_is_refused(empty):
    assert refusal(empty).reason == "the question is empty"


@pytest.mark.parametrize("wrong", [None, 3, b"SELECT COUNT(*) FROM people", ["SELECT"], Count()])
def test_a_question_that_is_no_text_is_a_wrong_argument(wrong):
    with pytest.raises(ParameterError, match="a question is text in SQL, found"):
        ask(wrong)


def test_the_other_arguments_are_checked():
    with pytest.raises(ParameterError, match="domain must be a Domain"):
        parse("SELECT COUNT(*) FROM people", {"age": 3}, table="people")
    with pytest.raises(ParameterError, match="table must be non-empty text"):
        parse("SELECT COUNT(*) FROM people", DOMAIN, table="")


PREDICATES = [
    And(),
    Or(),
    Not(Or()),
    Not(Equals("visits", 1)),
    Not(Between("visits", -5, 1)),
    Not(Among("sex", ("F", "M"))),
    Not(And(Equals("sex", "F"), Not(Missing("visits")))),
    Or(And(), Equals("sex", "F")),
    And(Or(), Equals("sex", "F")),
    And(Not(Missing("sex")), Or(Not(Equals("sex", "F")), Missing("visits"))),
    And(Not(Missing("sex")), Not(Equals("sex", "F")), Equals("smoker", False)),
    Or(Not(Missing("sex")), Not(Equals("sex", "F"))),
    Not(Not(Or(Equals("smoker", 1), And(Equals("visits", "0.25"), Missing("age"))))),
    Not(Between("visits", -5, 5)),
    And(Between("third", 0, Fraction(2, 3)), Not(Equals("third", 0))),
    Not(Between("third", Fraction(1, 3), Fraction(2, 3))),
    Not(Equals("third", 1)),
]


@pytest.mark.parametrize("predicate", PREDICATES, ids=str)
def test_any_predicate_is_spelled_with_its_two_valued_meaning(predicate):
    text = where_text(predicate, DOMAIN)
    scope = tuple(name for name in ("sex", "visits", "smoker", "third", "age"))
    small = Domain({name: DOMAIN[name] if name != "age" else Number(0, 1, step=1) for name in scope})
    cells = all_cells(scope, small)
    again = where(text) if text else And()
    assert (again.mask(cells) == predicate.mask(cells)).all()


def test_a_value_without_a_finite_decimal_cannot_be_spelled():
    with pytest.raises(ParameterError, match="1/3 has no finite decimal"):
        where_text(Among("third", (Fraction(1, 3), 1)), DOMAIN)


def test_a_domain_in_which_no_condition_fails_cannot_spell_one():
    only = Domain(x=Number.any())
    with pytest.raises(ParameterError, match="no condition that never holds"):
        where_text(Or(), only)
    categories = Domain(x=Category("a", "b", missing="a"))
    assert where_text(Or(), categories) == "x = 'b' AND x <> 'b'"


def test_a_choice_has_a_value_where_the_first_condition_that_holds_has_one():
    cells = all_cells(("age", "visits"), DOMAIN)
    old, often, rare = Between("age", 60, 120), Between("visits", 1, 5), Between("visits", -5, 2)
    for values in itertools.product((None, Fixed(1), Of("visits")), repeat=4):
        if any(values):
            choice = Choose([old, often, rare], values[:3], values[3])
            place = np.select([each.mask(cells) for each in (old, often, rare)], [0, 1, 2], 3)
            there = [np.zeros(cells.rows, bool) if each is None else each.known(DOMAIN).mask(cells) for each in values]
            assert (choice.known(DOMAIN).mask(cells) == np.choose(place, there)).all()


def test_the_condition_of_a_quotient_grows_with_its_values_and_not_with_their_square():
    domain = Domain(pay=Number(0, 30_000, step=500), family=Number(1, 15, step=1))
    (quotient,) = parts("SELECT SUM(pay / family) FROM people", domain)
    assert len(repr(quotient.where)) < 10 * len(repr(quotient.value))
