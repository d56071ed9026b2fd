"""Random questions over random tables: what is read means what duckdb says it means.

duckdb runs here, in the test, on rows that lie on the grid. The other direction is tested too: a question broken at
random is refused, or duckdb accepts it and agrees.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.answering.linear_query import all_cells
from discreet.data import Category, Domain, Number, Table, spell
from discreet.errors import UnsupportedQuery
from discreet.query import Count, Histogram, Sum
from discreet.sql import Select, parse, spelled

NAMES = ["age", "Pay", "weird name", "select", 'quo"te', "größe", "date", "left", "x1", "count"]
TEXTS = ["F", "M", "it's", "", "a b", "ä", "--", "1", "NULL", 'q"', "\\n", ";"]
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def literal(value):
    if value is True or value is False:
        return str(value).upper()
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else spell(Fraction(value))


@st.composite
def numbers(draw):
    step = draw(st.sampled_from([Fraction(1), Fraction(1, 4), Fraction(5, 2), Fraction(1, 100)]))
    low = step * draw(st.integers(-6, 3))
    return Number(low, low + step * draw(st.integers(1, 7)), step, missing=draw(st.booleans()))


@st.composite
def categories(draw):
    pool = draw(st.sampled_from([TEXTS, list(range(-3, 8)), [True, False]]))
    levels = pool if pool[0] is True else draw(st.lists(st.sampled_from(pool), min_size=1, max_size=4, unique=True))
    return Category(*levels, missing="the missing one" if draw(st.booleans()) else None)


@st.composite
def tables(draw):
    names = draw(st.lists(st.sampled_from(NAMES), min_size=2, max_size=4, unique=True))
    domain = Domain({name: draw(st.one_of(numbers(), categories())) for name in names})
    rows = draw(st.integers(0, 30))
    codes = np.random.default_rng(draw(st.integers(0, 2**32))).integers
    columns = {
        name: [entry(column, int(code)) for code in codes(0, column.size, rows)] for name, column in domain.items()
    }
    return domain, columns


def entry(column, code):
    """What a table holds for a code: a level, an exact number, or nothing."""
    if code == column.missing_code:
        return None
    return column.value(code)


def values_of(column):
    return [entry(column, code) for code in range(column.size) if code != column.missing_code]


def sql_type(column):
    if isinstance(column, Number):
        return "DECIMAL(12, 2)"
    kinds = {type(level) for level in values_of(column)}
    return {str: "VARCHAR", int: "INTEGER", bool: "BOOLEAN"}[kinds.pop()]


def in_duckdb(domain, columns):
    connection = duckdb.connect(":memory:", config={"threads": 1})
    declared = ", ".join(f"{quoted(name)} {sql_type(column)}" for name, column in domain.items())
    connection.execute(f"CREATE TABLE people ({declared})")
    rows = list(
        zip(
            *(
                [None if v is None else spell(v) if isinstance(v, Fraction) else v for v in each]
                for each in columns.values()
            ),
            strict=True,
        )
    )
    if rows:
        connection.executemany(f"INSERT INTO people VALUES ({', '.join('?' for _ in domain)})", rows)
    return connection


def atoms(domain):
    """A random comparison, spelled in one of the ways that the language has."""

    def of(rng):
        name = rng.choice(domain.names)
        column, said = domain[name], quoted(name)
        if name in ("age", "Pay", "x1") and rng.random() < 0.6:
            said = rng.choice([name, name.upper(), name.lower(), "people." + name])
        values = [literal(value) for value in values_of(column)]
        one, other = rng.choice(values), rng.choice(values)
        ways = [f"{said} = {one}", f"{said}<>{one}", f"{one} != {said}", f"({said}) = ({one})"]
        ways += [f"{said} {rng.choice(['', 'not '])}in ({', '.join(rng.choices(values, k=rng.randint(1, 3)))})"]
        if isinstance(column, Number):
            signs = [f"{said} {sign} {one}" for sign in ("<", "<=", ">", ">=")]
            ways += [*signs, f"{one} <{said}", f"{one}>= {said}", f"{said} BETWEEN {one} AND {other}"]
            ways += [f"{said} NOT BETWEEN {one} AND {other}"]
        elif isinstance(values_of(column)[0], bool):
            ways += [said, f"NOT {said}", f"{said} IS TRUE", f"{said} IS NOT FALSE", f"{said} = TRUE"]
        if column.missing_code is not None:
            ways += [f"{said} IS NULL", f"{said} is not null", f"NOT {said} IS NULL"]
        return rng.choice(ways)

    return of


def condition(rng, atom, depth):
    kind = rng.random()
    if depth == 0 or kind < 0.25:
        return atom(rng)
    if kind < 0.45:
        return f"NOT {condition(rng, atom, 0)}" if rng.random() < 0.5 else f"NOT ({condition(rng, atom, depth - 1)})"
    if kind < 0.6:
        return f"({condition(rng, atom, depth - 1)})"
    # Without brackets the words' precedence decides.
    return f" {rng.choice(['AND', 'OR', 'and'])} ".join(
        condition(rng, atom, depth - 1) for _ in range(rng.randint(2, 3))
    )


def quantile(rng, domain):
    said = quoted(rng.choice([name for name, column in domain.items() if isinstance(column, Number)]))
    ways = [f"MEDIAN({said})", f"QUANTILE_CONT({said}, 0.25)", f"PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY {said})"]
    return f"SELECT {rng.choice(ways)} FROM people WHERE {condition(rng, atoms(domain), 1)}"


def question(rng, domain):
    where = f" WHERE {condition(rng, atoms(domain), rng.randint(0, 3))}" if rng.random() < 0.9 else ""
    name = rng.choice(domain.names)
    kind = rng.choice(["all", "some", "groups", "number", "number"])
    if kind == "groups":
        groups = rng.sample(domain.names, rng.randint(1, 2))
        shuffled = ", ".join(quoted(each) for each in rng.sample(groups, len(groups)))
        return f"SELECT {', '.join(map(quoted, groups))}, COUNT(*) AS n FROM people{where} GROUP BY {shuffled}"
    if kind == "number" and isinstance(domain[name], Number):
        return f"SELECT {rng.choice(['SUM', 'avg'])}({quoted(name)}) FROM People{where};"
    return f"SELECT COUNT({'*' if kind == 'all' else quoted(name)}) FROM people{where}"


def answer(select: Select, table: Table, domain: Domain):
    """The exact answer, in the test only: a number, None if SQL says NULL, or a Counter of groups."""
    count = int(table.exact_sum(Count(select.where).partial))
    if select.groups:
        histogram = Histogram(select.groups, select.where)
        counts = table.exact_sum(histogram.partial)
        return Counter(
            {
                tuple(cell(domain[n], c) for n, c in zip(select.groups, at, strict=True)): int(counts[at])
                for at in np.ndindex(counts.shape)
            }
        )
    if select.kind == "count":
        return count
    query = Sum(select.column, select.where)
    total = int(table.exact_sum(query.partial)) * query.unit(table.facts)
    present = Count(parse(f"SELECT COUNT({quoted(select.column)}) FROM t", domain, table="t").where)
    if select.kind == "average":
        return None if count == 0 else total / count
    both = Count(select.where & present.where)
    return None if int(table.exact_sum(both.partial)) == 0 else total


def cell(column, code):
    value = None if code == column.missing_code else column.label(code)
    return Fraction(value).limit_denominator(1000) if isinstance(column, Number) and value is not None else value


def duckdb_answer(connection, text, groups):
    rows = connection.execute(text).fetchall()
    if groups:
        names = [column[0].lower() for column in connection.description]
        count = next(place for place, name in enumerate(names) if name not in [each.lower() for each in groups])
        rows = [(*row[:count], *row[count + 1 :], row[count]) for row in rows]
        return Counter(
            {tuple(Fraction(str(v)) if type(v).__name__ == "Decimal" else v for v in row[:-1]): row[-1] for row in rows}
        )
    return rows[0][0]


def agree(ours, theirs):
    if isinstance(ours, Counter):
        return +ours == +theirs
    if ours is None or theirs is None:
        return ours is None and theirs is None
    return math.isclose(float(ours), float(theirs), rel_tol=1e-9, abs_tol=1e-9)


def discreet_table(domain, columns):
    # Floats are exact enough here: the grid's codes are found by rounding to the nearest whole step.
    frame = {name: [float(v) if isinstance(v, Fraction) else v for v in each] for name, each in columns.items()}
    return Table(frame, domain, neighbours="add-remove", name="people")


@settings(max_examples=30, deadline=None, suppress_health_check=SLOW)
@given(tables(), st.integers(0, 2**32))
def test_questions_mean_what_duckdb_says_they_mean(made, seed):
    domain, columns = made
    rng = random.Random(seed)
    table = discreet_table(domain, columns)
    with closing(in_duckdb(domain, columns)) as connection:
        for _ in range(12):
            text = question(rng, domain)
            select = parse(text, domain, table="people")
            theirs = duckdb_answer(connection, text, select.groups)
            assert agree(answer(select, table, domain), theirs), (text, select)
            again = spelled(select, domain, "people")
            assert agree(answer(parse(again, domain, table="people"), table, domain), theirs), (text, again)
            assert agree(theirs, duckdb_answer(connection, again, select.groups)), (text, again)


KEYWORDS = "SELECT FROM WHERE GROUP BY AND OR NOT IN IS NULL TRUE FALSE BETWEEN AS COUNT SUM AVG MEDIAN QUANTILE_CONT"
OTHERS = "WITHIN ORDER DESC HAVING LIMIT DISTINCT JOIN UNION ALL LIKE CASE EXISTS OVER CAST USING FILTER ANY p n people"
VALUES = "age \"age\" pay sex flag 'F' '' 3 -1 0.5 1e1 \u200b “ é"
SIGNS = "( ) , . * = <> != < <= > >= - ; :: + / || ? -- /* */ ' \" [ ] == ! ~ #"
WORDS = " ".join([KEYWORDS, OTHERS, VALUES, SIGNS]).split(" ")
DOMAIN = Domain(
    age=Number(0, 9, step=1),
    pay=Number(-1, 2, step="0.5", missing=True),
    sex=Category("F", "M", missing="?"),
    flag=Category(True, False),
)
ROWS = {
    "age": [Fraction(each) for each in (0, 1, 3, 3, 5, 9)],
    "pay": [None, Fraction(-1), Fraction(1, 2), None, Fraction(2), Fraction(0)],
    "sex": ["F", None, "M", "F", None, "F"],
    "flag": [True, False, True, True, False, False],
}


def broken(rng, text):
    """A question with a few words or characters dropped, doubled, swapped, put in or exchanged."""
    if rng.random() < 0.6:
        parts = text.replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split(" ")
    else:
        parts = list(text)
    for _ in range(rng.randint(1, 3)):
        at, to = rng.randrange(len(parts)), rng.randrange(len(parts))
        change = rng.choice(["drop", "double", "swap", "put", "exchange"])
        if change == "drop" and len(parts) > 1:
            del parts[at]
        elif change == "double":
            parts.insert(to, parts[at])
        elif change == "swap":
            parts[at], parts[to] = parts[to], parts[at]
        elif change == "put":
            parts.insert(at, rng.choice(WORDS))
        else:
            parts[at] = rng.choice(WORDS)
    return (" " if " " not in parts else "").join(parts)


# The same examples every time: what duckdb takes for a name is no promise of ours, so a chance find is no failure.
@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.integers(0, 2**32))
def test_whatever_is_accepted_duckdb_accepts_and_agrees_with(seed):
    rng = random.Random(seed)
    table = discreet_table(DOMAIN, ROWS)
    with closing(in_duckdb(DOMAIN, ROWS)) as connection:
        for _ in range(40):
            text = broken(rng, rng.choice([question, question, quantile])(rng, DOMAIN))
            try:
                select = parse(text, DOMAIN, table="people")
            except UnsupportedQuery:
                continue
            theirs = duckdb_answer(connection, text, select.groups)
            if select.kind != "quantile":
                assert agree(answer(select, table, DOMAIN), theirs), (text, select)


def agrees_or_is_refused(connection, text, domain, table):
    """1 if a text was read, and then as duckdb reads it; 0 if it was refused."""
    try:
        select = parse(text, domain, table="people")
    except UnsupportedQuery:
        return 0
    theirs = duckdb_answer(connection, text, select.groups)
    assert select.kind == "quantile" or agree(answer(select, table, domain), theirs), (text, select)
    return 1


CASES = (Path(__file__).parents[1] / "e2e" / "sql_cases" / "answered.txt").read_text(encoding="utf-8").split("\n\n")
CASES_DOMAIN = Domain(
    {
        "age": Number(0, 120, step=1),
        "sex": Category("F", "M", missing="?"),
        "visits": Number(-5, 5, step="0.25", missing=True),
        "smoker": Category(True, False, missing="unknown"),
        "region": Category("N", "S", "it's", other="elsewhere"),
        "weird name": Number(0, 1, step="0.1"),
        "date": Number(0, 3, step=1),
    }
)


def test_every_prefix_of_an_answered_case_is_refused_or_means_what_duckdb_says():
    rng = random.Random(5)
    columns = {
        name: [entry(column, rng.randrange(column.size)) for _ in range(12)] for name, column in CASES_DOMAIN.items()
    }
    table, read = discreet_table(CASES_DOMAIN, columns), 0
    with closing(in_duckdb(CASES_DOMAIN, columns)) as connection:
        for text in (case.strip("\n").split("\n")[0] for case in CASES):
            ends = range(len("SELECT COUNT(*) FROM"), len(text) + 1)
            read += sum(agrees_or_is_refused(connection, text[:end], CASES_DOMAIN, table) for end in ends)
    assert read > len(CASES)


def test_every_prefix_and_every_text_without_one_word_is_refused_or_means_what_duckdb_says():
    table, read = discreet_table(DOMAIN, ROWS), 0
    with closing(in_duckdb(DOMAIN, ROWS)) as connection:
        for seed in range(40):
            rng = random.Random(seed)
            asked = rng.choice([question, question, quantile])(rng, DOMAIN)
            for words in (asked.split(" "), re.sub("SELECT .*?, COUNT", "SELECT COUNT", asked).split(" ")):
                for place in range(len(words)):
                    for text in (" ".join(words[: place + 1]), " ".join(words[:place] + words[place + 1 :])):
                        read += agrees_or_is_refused(connection, text, DOMAIN, table)
    assert read > 40


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=3)), max_size=25), st.sampled_from(["", " "]))
def test_soups_of_words_are_read_or_refused_and_nothing_else(words, glue):
    text = glue.join(words) if len(words) % 2 else "SELECT COUNT(*) FROM people WHERE " + glue.join(words)
    try:
        select = parse(text, DOMAIN, table="people")
    except UnsupportedQuery as error:
        refusal = error
    else:
        assert parse(spelled(select, DOMAIN, "people"), DOMAIN, table="people").kind == select.kind
        return
    assert 0 <= refusal.position <= len(text)
    assert len(str(refusal)) < 1_500


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(tables(), st.integers(0, 2**32))
def test_the_standard_spelling_has_the_same_meaning_in_every_cell_and_is_its_own_standard(made, seed):
    domain, _ = made
    rng = random.Random(seed)
    select = parse(question(rng, domain), domain, table="people")
    text = spelled(select, domain, "people")
    again = parse(text, domain, table="people")
    cells = all_cells(domain.names, domain)
    assert (again.where.mask(cells) == select.where.mask(cells)).all()
    assert (again.kind, again.groups, again.column) == (select.kind, select.groups, select.column)
    assert spelled(again, domain, "people") == text
