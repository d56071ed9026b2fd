"""Questions in SQL of every kind, made up: for the time of each. No constant of a session was chosen on them.

mixed    about the table of `session_data`: counts, one and two groups, averages, sums, quantiles, HAVING, CASE
joined   about persons and their visits, two tables that are joined by the person
"""

from __future__ import annotations

import numpy as np

import discreet as dp
from bench.session_data import sizes

PERSONS = 8_000
_JOIN = "FROM visits v JOIN people p USING (person)"


def mixed(count: int, wide: int = 0, seed: int = 11) -> list[str]:
    """One in seven was asked before."""
    rng, levels, asked = np.random.default_rng(seed), sizes(wide), list[str]()
    often = np.array([3, 2, 3, 3, 2, 2, 1] + [1] * wide) / (16 + wide)

    def condition() -> str:
        if rng.random() < 0.3:
            low, high = sorted(5 * each for each in rng.integers(4, 18, 2).tolist())
            return f"age BETWEEN {low} AND {high}"
        name = str(rng.choice(list(levels), p=often))
        some = sorted(set(rng.integers(0, levels[name], rng.integers(1, 3)).tolist()))
        return f"{name} IN ({', '.join(repr(f'{name}{each}') for each in some)})"

    while len(asked) < count:
        one, other = (str(name) for name in rng.choice(list(levels), 2, replace=False, p=often))
        parts = [condition() for _ in range(rng.integers(0, 4))]
        rows = "FROM people" + (" WHERE " + (" AND " if rng.random() < 0.8 else " OR ").join(parts) if parts else "")
        kinds = [
            *[f"SELECT COUNT(*) {rows}"] * 5,
            *[f"SELECT {one}, COUNT(*) {rows} GROUP BY {one}"] * 4,
            *[f"SELECT {one}, {other}, COUNT(*) {rows} GROUP BY {one}, {other}"] * 3,
            *[f"SELECT AVG(age) {rows}"] * 2,
            f"SELECT SUM(age) {rows}",
            f"SELECT MEDIAN(age) {rows}",
            f"SELECT {one}, MEDIAN(age) {rows} GROUP BY {one}",
            f"SELECT {one}, AVG(age), COUNT(*) {rows} GROUP BY {one}",
            f"SELECT {one}, COUNT(*) AS n {rows} GROUP BY {one} HAVING COUNT(*) > 500 ORDER BY n DESC",
            f"SELECT SUM(CASE WHEN {condition()} THEN 1 ELSE 0 END), COUNT(*) {rows}",
        ]
        asked.append(str(rng.choice(kinds)))
        if rng.random() < 0.15:
            asked.append(asked[int(rng.integers(len(asked)))])
    return asked[:count]


def clinic(seed: int = 3) -> dp.Database:
    """Persons, and up to five visits of each."""
    rng, visits = np.random.default_rng(seed), 3 * PERSONS
    who = {"person": np.arange(PERSONS), "age": rng.integers(0, 18, PERSONS) * 5}
    who |= {"sex": np.array(["F", "M"])[rng.integers(0, 2, PERSONS)]}
    who |= {"region": np.array(list("NSEWABCD"))[rng.integers(0, 8, PERSONS)]}
    what = {"person": rng.integers(0, PERSONS, visits), "cost": rng.integers(0, 21, visits) * 5}
    what |= {"site": np.array(list("abcdef"))[rng.integers(0, 6, visits)]}
    what |= {"emergency": np.array(["no", "yes"])[rng.integers(0, 2, visits)]}
    people = dp.Domain(age=dp.Number(0, 85, step=5), sex=dp.Category("F", "M"), region=dp.Category(*"NSEWABCD"))
    rows = dp.Domain(cost=dp.Number(0, 100, step=5), site=dp.Category(*"abcdef"), emergency=dp.Category("no", "yes"))
    tables = [
        dp.Table(who, people, name="people", unit="person", rows_per_unit=1),
        dp.Table(what, rows, name="visits", unit="person", rows_per_unit=5),
    ]
    return dp.Database(tables, name="clinic", persons="people")


def joined(count: int, seed: int = 12) -> list[str]:
    rng, asked = np.random.default_rng(seed), list[str]()
    while len(asked) < count:
        sex, region, site = (str(rng.choice(list(each))) for each in ("FM", "NSEWABCD", "abcdef"))
        age, cost, urgent = 5 * int(rng.integers(18)), 5 * int(rng.integers(21)), str(rng.choice(["no", "yes"]))
        kinds = [
            f"SELECT p.sex, COUNT(*) {_JOIN} WHERE p.age >= {age} GROUP BY p.sex",
            f"SELECT p.region, v.site, COUNT(*) {_JOIN} WHERE v.emergency = '{urgent}' GROUP BY p.region, v.site",
            f"SELECT COUNT(*) {_JOIN} WHERE p.region = '{region}' AND v.cost >= {cost}",
            f"SELECT AVG(v.cost) {_JOIN} WHERE p.sex = '{sex}' AND p.age < {age + 5}",
            f"SELECT MEDIAN(v.cost) {_JOIN} WHERE p.region = '{region}'",
            f"SELECT COUNT(DISTINCT person) FROM visits WHERE site = '{site}' AND cost >= {cost}",
            f"SELECT COUNT(*) FROM people WHERE age >= {age} AND region = '{region}'",
            f"SELECT AVG(n) FROM (SELECT person, COUNT(*) AS n FROM visits WHERE cost >= {cost} GROUP BY person) q",
        ]
        asked.append(str(rng.choice(kinds)))
    return asked
