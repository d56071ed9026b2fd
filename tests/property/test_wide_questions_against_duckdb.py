"""More random questions against duckdb: times of day, two dates, totals in brackets, ESCAPE, WITH, windows of sums.

As in test_sql_against_duckdb, whose seeds stay as they are.
"""

from __future__ import annotations

import datetime
import random
import re
from contextlib import closing

import pytest

from discreet.data import Date, Domain, Timestamp
from discreet.errors import UnsupportedQuery
from tests.property.test_sql_against_duckdb import (
    UNSURE,
    Asker,
    category_column,
    check,
    date_column,
    discreet_table,
    entry,
    in_duckdb,
    number_column,
    whole,
)

TOO_MUCH = "|combinations of values|has one count, sum or average here|has one number here|has more than"


def time_column(rng):
    low = datetime.datetime(1975, 1, 1) + datetime.timedelta(minutes=rng.randint(0, 10**6))
    step = rng.choice(["second", "minute", "minute", "hour"])
    length = rng.randint(50, 500) * {"second": 1, "minute": 60, "hour": 3600}[step]
    return Timestamp(low, low + datetime.timedelta(seconds=length), step=step, missing=rng.random() < 0.3)


def made_table(rng):
    """Numbers, a category, two dates and a time, and some rows."""
    kinds = {"age": number_column, "Pay": number_column, "kind": category_column, "begun": date_column}
    domain = Domain({name: kind(rng) for name, kind in {**kinds, "ended": date_column, "seen": time_column}.items()})
    rows = rng.randint(0, 40)
    return domain, {name: [entry(each, rng.randrange(each.size)) for _ in range(rows)] for name, each in domain.items()}


class WideAsker(Asker):
    """Questions of the kinds that the other one does not ask."""

    def __init__(self, rng, domain):
        super().__init__(rng, domain)
        self.dates = ["begun", "ended"]

    def odd_atom(self):
        rng = self.rng
        sign, against = rng.choice(["<", "<=", ">", ">=", "=", "<>"]), rng.choice(["", "NOT "])
        ways = [f"HOUR(seen) {sign} {rng.randint(0, 23)}", f"EXTRACT(MINUTE FROM seen) {sign} {rng.randint(0, 59)}"]
        ways += [f"CAST(seen AS DATE) {sign} DATE '1975-0{rng.randint(1, 9)}-11'", f"DAYOFWEEK(seen) {sign} 3"]
        ways += [f"seen {sign} TIMESTAMP '1976-0{rng.randint(1, 9)}-11 12:30:00'"]
        ways += [f"YEAR(seen) = 197{rng.randint(4, 7)}"]
        ways += [f"DATE_DIFF('month', begun, ended) {sign} {rng.randint(-9, 9)}", f"YEAR(begun) {sign} YEAR(ended)"]
        ways += [f"age IS {against}DISTINCT FROM Pay", f"age IS {against}DISTINCT FROM {rng.randint(-3, 3)}"]
        ways += [f"({self.plain_atom()}) IS {against}DISTINCT FROM TRUE"]
        if self.texts:
            shape = rng.choice(["a!_b", "100!%", "%!%", "!!%", "_!_%", "!a%", "%!%%"])
            ways += [f"kind {against}LIKE '{shape}' ESCAPE '!'"] * 3
        return rng.choice([*ways, super().odd_atom()])

    def number(self, depth):
        rng = self.rng
        if depth == 0 or rng.random() < 0.7:
            return super().number(depth)
        ways = ["DATE_DIFF('day', begun, ended)", "YEAR(begun) - YEAR(ended)", "HOUR(seen)", "MINUTE(seen) + 2"]
        ways += ["DATE_DIFF('month', begun, ended)", f"CAST({self.plain_atom()} AS INTEGER)", "(ended - begun)"]
        ways += [
            f"{self.number(0)}::DOUBLE / 4",
            "DATE_DIFF('day', DATE '1975-03-01', seen)",
            f"-({self.number(0)}) / 8",
        ]
        return rng.choice([*ways, *(f"{name} // 2" for name in self.numbers if whole(self.domain[name]))])

    def key(self):
        rng = self.rng
        ways = [
            "HOUR(seen)",
            "DATE_TRUNC('hour', seen)",
            "CAST(seen AS DATE)",
            "STRFTIME(seen, '%H')",
            "seen::DATE",
            "DAYNAME(seen)",
        ]
        ways += [
            "DATE_TRUNC('month', seen)",
            "EXTRACT(MINUTE FROM seen)",
            "DATE_DIFF('year', begun, ended)",
            "LAST_DAY(seen)",
        ]
        ways += ["YEAR(ended) - YEAR(begun)", "CASE WHEN HOUR(seen) < 12 THEN 'early' ELSE 'late' END"]
        ways += ["ISOYEAR(begun)"]
        return rng.choice([*ways, super().key(), super().key()])

    def output(self, grouped=False):
        rng = self.rng
        if grouped and rng.random() < 0.3:
            total = f"SUM({self.number(0)})"
            ways = [
                f"SUM({total}) OVER ()",
                f"{total} * 100.0 / SUM({total}) OVER ()",
                f"{total} - AVG(COUNT(*)) OVER ()",
            ]
            return rng.choice(ways)
        return super().output(grouped)

    def question(self):
        rng, kind = self.rng, self.rng.random()
        if kind < 0.6:
            return super().question()
        self.whole = "people"
        where, other = (f" WHERE {self.condition(1)}" if rng.random() < 0.6 else "" for _ in range(2))
        one, two = self.aggregate(), self.aggregate()
        if kind < 0.68:
            return f"SELECT (SELECT {one} FROM people{where}) - (SELECT {two} FROM people{other}) AS v0", "", None
        if kind < 0.76:
            first = f"WITH t AS (SELECT {one} AS a FROM people{where}) SELECT {self.key()} AS k0, {two} AS v0"
            return f"{first}, COUNT(*) - t.a AS v1 FROM people, t{other} GROUP BY 1, t.a", "", None
        if kind < 0.84:
            first = f"WITH q AS (SELECT {self.key()} AS k0, {two} AS v0 FROM people{other} GROUP BY 1)"
            return (
                f"{first}, t AS (SELECT {one} AS a FROM people{where}) SELECT k0, v0 + t.a AS v1 FROM q CROSS JOIN t",
                "",
                None,
            )
        first = f"WITH a AS (SELECT * FROM people{where}), b AS (SELECT * FROM a people{other})"
        group = rng.choice(["", " GROUP BY 1"])
        return (
            f"{first} SELECT {self.key() + ' AS k0, ' if group else ''}{one} AS v0, {two} AS v1 FROM b people{group}",
            "",
            None,
        )


def random_questions(seed, many):
    """Ask questions about one random table; how many were compared."""
    rng, read = random.Random(seed), 0
    domain, columns = made_table(rng)
    table = discreet_table(domain, columns)
    with closing(in_duckdb(domain, columns)) as connection:
        for _ in range(many):
            core, end, place = WideAsker(rng, domain).question()
            try:
                check(core + end, core, place, domain, table, connection)
            except UnsupportedQuery as error:
                if not re.search(UNSURE + TOO_MUCH, error.reason):
                    raise
            else:
                read += 1
    return read


@pytest.mark.parametrize("seed", range(4))
def test_more_kinds_of_questions_mean_what_duckdb_says_they_mean(seed):
    assert random_questions(2 * 10**6 + seed, 20) > 8


@pytest.mark.parametrize(
    "condition",
    [
        "day + INTERVAL 12 HOUR > DATE '2024-01-02'",
        "day + INTERVAL 12 HOUR = day",
        "day - INTERVAL 1 MINUTE >= DATE '2024-01-02'",
        "day + INTERVAL 30 HOUR <= TIMESTAMP '2024-01-03 06:00:00'",
        "HOUR(day + INTERVAL 30 HOUR) = 6",
        "DATE '2024-01-01' + INTERVAL 36 HOUR > day",
        "DATE '2024-01-01' + INTERVAL 36 HOUR = DATE '2024-01-02'",
        "day < TIMESTAMP '2024-01-02 12:00:00'",
        "day >= TIMESTAMP '2024-01-02 12:00:00'",
        "day <> TIMESTAMP '2024-01-02 12:00:00'",
        "day = TIMESTAMP '2024-01-02 00:00:00'",
        "day IN (TIMESTAMP '2024-01-02 12:00:00', DATE '2024-01-03')",
        "day NOT IN (TIMESTAMP '2024-01-02 12:00:00', DATE '2024-01-03')",
        "day BETWEEN TIMESTAMP '2024-01-01 12:00:00' AND TIMESTAMP '2024-01-03 12:00:00'",
        "day = '2024-01-02 12:00:00'",
        "day = DATE '2024-01-02 12:00:00'",
        "day + 0 <= '2024-01-02 12:00:00'",
        "day + 0 < TIMESTAMP '2024-01-02 12:00:00'",
        "CAST('2024-01-02 12:00:00' AS TIMESTAMP) > day",
        "CAST('2024-01-02 12:00:00' AS DATE) = day",
    ],
)
def test_days_are_compared_with_times_of_day_as_duckdb_compares_them(condition):
    domain = Domain(day=Date("2023-12-30", "2024-01-05", missing=True))
    columns = {"day": [None, *(datetime.date(2023, 12, 30) + datetime.timedelta(days=more) for more in range(7))]}
    text = f"SELECT COUNT(*) AS v0 FROM people WHERE {condition}"
    with closing(in_duckdb(domain, columns)) as connection:
        check(text, text, None, domain, discreet_table(domain, columns), connection)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(0, 400, 100))
def test_thousands_of_more_kinds_mean_what_duckdb_says_they_mean(seed):
    assert sum(random_questions(each, 20) for each in range(seed, seed + 100)) > 800
