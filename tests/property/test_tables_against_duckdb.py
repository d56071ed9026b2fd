"""Random questions over several tables of the same persons: joins, persons, texts that nobody listed, dates.

As in test_sql_against_duckdb: duckdb says what a question means, our side is assembled from exact sums, as if noise had
the scale zero. Rows about nobody of the table of persons are in our tables and not in duckdb's: they do not count.
"""

from __future__ import annotations

import random
import re
from contextlib import closing
from fractions import Fraction

import duckdb
import pytest

import discreet as dp
from discreet.data import Domain, Number, Text, spell
from discreet.errors import UnsupportedQuery
from discreet.sql import Known, parse_about
from tests.property.test_sql_against_duckdb import (
    UNSURE,
    Asker,
    category_column,
    compare,
    date_column,
    entry,
    number_column,
    quoted,
    sql_type,
)

CITIES = ["Ulm", "Bonn", "it's", "", "Ulm ", "ulm"]


class ManyAsker(Asker):
    """Questions about joined tables, or one of them; `owner` says whose a column is, under which alias."""

    def __init__(self, rng, domain, owner, source, texts, unit):
        super().__init__(rng, Domain({name: domain[name] for name in domain.names if name in owner}))
        self.owner, self.tables, self.cities, self.unit = owner, source, texts, unit

    def named(self, name):
        return f"{self.owner[name]}.{quoted(name)}" if self.rng.random() < 0.7 else quoted(name)

    def said(self, name):
        return self.named(name)

    def odd_atom(self):
        rng = self.rng
        if self.cities and rng.random() < 0.5:
            city = [f"'{rng.choice(CITIES).replace(chr(39), chr(39) * 2)}'" for _ in range(2)]
            ways = [
                f"city = {city[0]}",
                f"city <> {city[0]}",
                f"city IN ({city[0]}, {city[1]})",
                f"NOT city = {city[0]}",
            ]
            return rng.choice([*ways, f"city NOT IN ({city[0]})", "city IS NULL", "city IS NOT NULL"])
        return super().odd_atom()

    def aggregate(self):
        rng = self.rng
        person = f"{rng.choice(sorted(set(self.owner.values())))}.person"
        if rng.random() < 0.3:
            ways = [f"COUNT(DISTINCT {person})", f"COUNT({person})"]
            ways += [f"COUNT(DISTINCT CASE WHEN {self.condition(1)} THEN {person} END)"]
            ways += [
                f"COUNT(DISTINCT {person}) FILTER (WHERE {self.condition(1)})",
                f"COUNT(*) / COUNT(DISTINCT {person})",
            ]
            ways += [f"SUM({self.number(0)}) / COUNT(DISTINCT {person})"]
            return rng.choice(ways)
        return super().aggregate()

    def source(self):
        return self.tables

    def question(self):
        rng = self.rng
        if self.cities and rng.random() < 0.12:
            return self.unlisted(), "", None
        if rng.random() < 0.08 and "JOIN" not in self.tables and "," not in self.tables:
            return self.each_person(), "", None
        return super().question()

    def unlisted(self):
        """Groups of texts that nobody listed."""
        rng = self.rng
        where = f" WHERE {self.condition(rng.randint(0, 2))}" if rng.random() < 0.6 else ""
        if rng.random() < 0.3:
            some = ", ".join("'" + each.replace("'", "''") + "'" for each in rng.sample(CITIES, rng.randint(1, 3)))
            chosen = f"city IN ({some})" + (f" AND {self.condition(0)}" if rng.random() < 0.5 else "")
            return f"SELECT city AS k0, {self.aggregate()} AS v0 FROM {self.tables} WHERE {chosen} GROUP BY 1"
        more = [self.named(rng.choice(self.domain.names))] if rng.random() < 0.4 else []
        keys = rng.sample(["city", *more], 1 + len(more))
        named = [f"{each} AS k{place}" for place, each in enumerate(keys)]
        output = rng.choice(["COUNT(*) AS n", "COUNT(*) * 2 AS n", "COUNT(*) AS n, COUNT(*) + 1"])
        having = rng.choice(["", "", " HAVING COUNT(*) > 1"])
        return f"SELECT {', '.join(named)}, {output} FROM {self.tables}{where} GROUP BY {', '.join(keys)}{having}"

    def each_person(self, source=None):
        """A question about a question that makes a group of each person."""
        rng = self.rng
        where = f" WHERE {self.condition(1)}" if rng.random() < 0.6 else ""
        outer = rng.choice(["AVG(n)", "SUM(n)", "COUNT(*)", "SUM(n) / COUNT(*)", "100 * AVG(n)", "COUNT(m), AVG(m)"])
        column = self.said(rng.choice(self.domain.names))
        some = [f"COUNT({column})", f"COUNT(DISTINCT {column})", f"SUM({self.number(0)})", "COUNT(*)"]
        some += [f"SUM(CASE WHEN {self.condition(1)} THEN 1 ELSE 0 END)"]
        some += [
            f"COUNT(*) FILTER (WHERE {self.condition(1)})",
            f"SUM({self.number(0)}) FILTER (WHERE {self.condition(1)})",
        ]
        ordered = [name for name in self.domain.names if isinstance(self.domain[name], Number)]
        more = f"{rng.choice(['MIN', 'MAX'])}({self.said(rng.choice(ordered))})" if ordered else "COUNT(*)"
        by, having = f", {column} AS k" if rng.random() < 0.3 else "", ""
        if rng.random() < 0.4:
            having = (
                f" HAVING {rng.choice(['COUNT(*) > 1', 'COUNT(*) <= 2', f'{rng.choice(some)} = 1', 'COUNT(*) <> 2'])}"
            )
        grouped = f"person{by.replace(' AS k', '')}"
        source = source or self.tables
        inner = (
            f"SELECT person{by}, {rng.choice(some)} AS n, {more} AS m FROM {source}{where} GROUP BY {grouped}{having}"
        )
        chosen = rng.choice(["", "", " WHERE n >= 2", " WHERE n = 1 OR n IS NULL", " WHERE NOT n > 1"])
        if rng.random() < 0.2:
            return f"SELECT COUNT(*) FROM (SELECT DISTINCT person FROM {source}{where}) q"
        if rng.random() < 0.4:
            keys = rng.choice(["n", "n", *(["k", "k, n"] if by else []), "CASE WHEN n = 1 THEN 'one' ELSE 'more' END"])
            named = [f"{each} AS k{place}" for place, each in enumerate(keys.split(", "))]
            wanted = ", ".join([*named, outer.replace("AVG(n)", "COUNT(*)")])
            return f"SELECT {wanted} FROM ({inner}) q{chosen} GROUP BY {keys}"
        return f"SELECT {outer} FROM ({inner}) q{chosen}"

    def matched(self, domain):
        """A question about persons who have a row in a table, or have none."""
        rng = self.rng
        there = ManyAsker(rng, domain, dict.fromkeys((n for n in domain.names if n != "city"), "w"), "", False, "")
        some = there.condition(1) if rng.random() < 0.7 else ""
        where, same = f" WHERE {some}" if some else "", f" AND ({some})" if some else ""
        many = f"GROUP BY person HAVING COUNT(*) {rng.choice(['> 1', '= 1', '< 3'])}"
        ways = [
            f"person {against}IN (SELECT person FROM visits w{where} {rng.choice(['', '', many])})"
            for against in ("", "NOT ")
        ]
        ways += [f"{no}EXISTS (SELECT 1 FROM visits w WHERE w.person = p.person{same})" for no in ("", "NOT ")]
        chosen = rng.choice(ways)
        if rng.random() < 0.5:
            chosen = rng.choice(
                [f"{chosen} AND {self.condition(1)}", f"{self.condition(0)} OR {chosen}", f"NOT {chosen}"]
            )
        key = self.said(rng.choice(self.domain.names))
        if rng.random() < 0.3:
            wanted = f"{key} AS k0, COUNT(*) AS v0, {Asker.aggregate(self)} AS v1"
            return f"SELECT {wanted} FROM people p WHERE {chosen} GROUP BY {key}"
        return f"SELECT {Asker.aggregate(self)}, COUNT(*) FROM people p WHERE {chosen}"


def made_tables(rng):
    """Three tables of the same persons: people and homes with one row each, visits with several."""
    persons = rng.randint(0, 14)
    people = Domain({"age": number_column(rng), "sex": category_column(rng), "born": date_column(rng)})
    homes = Domain({"rent": number_column(rng), "area": category_column(rng)})
    plain = {"amount": number_column(rng), "kind": category_column(rng), "day": date_column(rng)}
    visits = Domain({**plain, "city": Text(missing=rng.random() < 0.5)})

    def rows(domain, who):
        held = {}
        for name, column in domain.items():
            if column.free:
                held[name] = [rng.choice([*CITIES, None] if column.missing else CITIES) for _ in who]
            else:
                held[name] = [entry(column, rng.randrange(column.size)) for _ in who]
        return {"person": who, **held}

    everybody = [f"p{each}" for each in range(persons)]
    some = [each for each in everybody if rng.random() < 0.7]
    several = [each for each in [*everybody, "stranger"] for _ in range(rng.randint(0, 4))]
    rng.shuffle(several)
    domains = {"people": people, "visits": visits, "homes": homes}
    return domains, {"people": rows(people, everybody), "visits": rows(visits, several), "homes": rows(homes, some)}


def database(domains, rows, relation):
    tables = []
    for name, domain in domains.items():
        held = {
            column: [float(v) if isinstance(v, Fraction) else v for v in each] for column, each in rows[name].items()
        }
        many = {"unit": "person", "rows_per_unit": 4 if name == "visits" else 1, "neighbours": relation}
        tables.append(dp.Table(held, domain, name=name, **many))
    return dp.Database(tables, persons="people", neighbours=relation)


def in_duckdb(domains, rows):
    connection = duckdb.connect(":memory:", config={"threads": 1})
    for name, domain in domains.items():
        types = [f"{quoted(each)} {'VARCHAR' if column.free else sql_type(column)}" for each, column in domain.items()]
        connection.execute(f"CREATE TABLE {name} (person VARCHAR, {', '.join(types)})")
        held = [[spell(v) if isinstance(v, Fraction) else v for v in each] for each in rows[name].values()]
        known = [row for row in zip(*held, strict=True) if row[0] != "stranger"]
        if known:
            connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' for _ in held)})", known)
    return connection


def asker(rng, domains):
    """Somebody who asks about one table, or about several that are joined by the person."""
    every = {name: column for domain in domains.values() for name, column in domain.items() if not column.free}
    alias = {"people": "p", "visits": "v", "homes": "h"}
    one = rng.choice(["people", "visits", "visits", "homes"])
    ways = [
        (["visits", "people"], "visits v JOIN people p USING (person)"),
        (["visits", "people"], "people AS p INNER JOIN visits AS v ON p.person = v.person"),
        (["visits", "people"], "visits v NATURAL JOIN people p"),
        (["visits", "people"], "visits v LEFT JOIN people p USING (person)"),
        (["visits", "people"], "people p RIGHT JOIN visits v ON v.person = p.person"),
        (["people", "visits"], "people p LEFT JOIN visits v USING (person)"),
        (["people", "homes"], "people p LEFT JOIN homes h ON h.person = p.person"),
        (["visits", "homes"], "homes h RIGHT JOIN visits v ON h.person = v.person"),
        (["visits", "people", "homes"], "visits v JOIN people p USING (person) JOIN homes h USING (person)"),
        (["visits", "homes"], "homes h JOIN visits v USING (person)"),
        (["people", "homes"], "people p JOIN homes h ON h.person = p.person"),
    ]
    made = ManyAsker(
        rng, Domain(every), {name: alias[one] for name in domains[one].names if name != "city"}, "", False, ""
    )
    inner = f"(SELECT * FROM {one} {alias[one]} WHERE {made.condition(1)}) {alias[one]}"
    ways += [([one], f"{one} {alias[one]}")] * 4 + [([one], inner)] * 2
    if one != "people":
        ways += [(["people", one], f"people p JOIN {inner} USING (person)")] * 2
    names, source = rng.choice(ways)
    owner = {name: alias[table] for table in names for name in domains[table].names if name != "city"}
    return ManyAsker(rng, Domain(every), owner, source, "visits" in names, "person")


def asked(rng, domains):
    """A question, what sorts its rows, and the place of that."""
    if rng.random() < 0.15:
        own = domains["people"]
        made = ManyAsker(rng, own, dict.fromkeys(own.names, "p"), "people p", False, "person")
        return made.matched(domains["visits"]), "", None
    return asker(rng, domains).question()


def random_questions(seed, many):
    """Ask questions about three random tables; how many were compared."""
    rng, compared = random.Random(seed), 0
    domains, rows = made_tables(rng)
    empty = not all(each["person"] for each in rows.values())  # under replace-one there is at least one person
    base = database(domains, rows, rng.choice(["add-remove"] if empty else ["replace-one", "add-remove"]))
    known = [
        Known(name, each.domain, each.key, each.rows_per_unit, name == "people")
        for name, each in base.catalogue.items()
    ]
    with closing(in_duckdb(domains, rows)) as connection:
        for _ in range(many):
            core, end, place = asked(rng, domains)
            try:
                read = parse_about(core + end, known)
                compared += compare(read, core + end, core, place, base.view(read.tables), connection) is not False
            except UnsupportedQuery as error:
                if not re.search(f"{UNSURE}|never true|a quantile of a number of each person", error.reason):
                    raise
    return compared


@pytest.mark.parametrize("seed", range(5))
def test_questions_about_several_tables_mean_what_duckdb_says_they_mean(seed):
    assert random_questions(10**6 + seed, 25) > 12


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(0, 1000, 100))
def test_thousands_of_questions_about_several_tables_mean_what_duckdb_says_they_mean(seed):
    assert sum(random_questions(each, 14) for each in range(seed, seed + 100)) > 1000
