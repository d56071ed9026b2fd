"""The matrix: everything that is asked of rows, over every place where rows may be, by the same draws.

A `Row` is a table with a question: a mechanism of the catalogue (`tests/examples.py`), a fit, a rule, a session, a
quantile. `Cells` makes its table in each place, once for all rows that have the same. A cell is equal to that of a
Table, bit for bit, or it is refused with nothing charged, and then `Row.refused` has said so: no cell is left out. The
places of this machine are in tests/contract/test_places.py, those of Spark in tests/far.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import discreet as dp
from discreet.data.tally import tallies_of
from discreet.errors import DiscreetError, NotOffered, Unproven
from discreet.mechanisms import Conversation
from discreet.rng import Rng, SeededRng
from tests.examples import CASES, FEW, Case

SETTINGS: dict[str, dict[str, Any]] = {
    "replace-one": {"neighbours": "replace-one"},
    "add-remove": {"neighbours": "add-remove"},
    "three rows": {"neighbours": "replace-one", "unit": "whose row", "rows_per_unit": 3},
}
DATABASE, FRAME = "database", "frame"
"""Kinds of places that do not offer everything: rows that stay in a database, and rows that may change unnoticed."""

LARGE = dp.Budget(10**6, 0.9)
REFUSED, NOT_MADE = "refused, nothing charged", "no such table here"


@dataclass(frozen=True)
class Row:
    """What is asked of a table; `refused` are the kinds of places that do not offer it."""

    name: str
    rows: dict[str, list[Any]] = field(repr=False)
    domain: dp.Domain = field(repr=False)
    setting: str
    ask: Callable[[Any, dp.Ledger], Any] = field(repr=False)
    refused: frozenset[str] = frozenset()
    budget: dp.Budget = LARGE

    @property
    def more(self) -> dict[str, Any]:
        """The other arguments of the table: its size is declared."""
        counted = next(iter(self.rows.values()))
        size = len(set(self.rows["whose row"])) if "unit" in SETTINGS[self.setting] else len(counted)
        return {**SETTINGS[self.setting], "size": size, "name": "people"}

    @property
    def key(self) -> tuple[str, str, str]:
        return repr(self.rows), repr(self.domain), self.setting

    def held_by(self, kind: str | None) -> bool:
        """Whether such a place takes these columns at all."""
        whole = self.setting == "three rows"  # texts are ordered by a hash, which no SQL computes
        return kind != DATABASE or all(column.listed or (column.free and not whole) for column in self.domain.values())

    def answered_by(self, data: Any) -> Any:
        """What is released, by draws that are the same in every place; or how it was refused, for nothing."""
        ledger = dp.Ledger.in_memory(self.budget, data.identity, testing=True)
        draws = SeededRng(5)
        with mock.patch.object(Rng, "_bytes", lambda self, count: draws._bytes(count)):
            try:
                return plain(self.ask(data, ledger))
            except NotOffered:
                found = REFUSED
            except DiscreetError as error:  # a mechanism that needs one row per person says so of every table
                found = f"{type(error).__name__}: {error}"
        assert not any(body["kind"] in ("charge", "burn") for body in ledger.entries()), found
        return found


def plain(value: Any) -> Any:
    """A value that == compares bit by bit."""
    if isinstance(value, (tuple, list)):
        return tuple(plain(each) for each in value)
    return tuple(value.ravel().tolist()) if isinstance(value, np.ndarray) else value


class Cells:
    """Tables in the places: each is a function of a row and of the folder of its files, with its kind, if any."""

    def __init__(self, folder: Path, places: dict[str, tuple[Callable[[Row, Path], Any], str | None]]) -> None:
        self.folder, self.places = folder, places
        self._made: dict[tuple[str, str, str], dict[str, Any]] = {}

    def check(self, row: Row) -> None:
        """Every cell of a row is that of a Table, or is refused where it should be."""
        tables = self._made.get(row.key) or self._tables(row)
        self._made[row.key] = tables
        expected = row.answered_by(tables["Table"])
        assert expected not in (REFUSED, NOT_MADE)
        for place, (_, kind) in self.places.items():
            found = NOT_MADE if tables[place] is None else row.answered_by(tables[place])
            if not row.held_by(kind):
                assert found == NOT_MADE, place
            else:
                refused = kind in row.refused and not isinstance(expected, str)  # a price that no table has comes first
                assert found == (REFUSED if refused else expected), place

    def _tables(self, row: Row) -> dict[str, Any]:
        files = self.folder / str(len(self._made))
        written(row.rows, files)
        made: dict[str, Any] = {"Table": dp.Table(row.rows, row.domain, **row.more)}
        for place, (make, _) in self.places.items():
            try:
                made[place] = make(row, files)
                assert made[place].facts == made["Table"].facts, place
            except Unproven:
                made[place] = None
        return made


def written(rows: dict[str, list[Any]], folder: Path) -> None:
    """The rows in three files of several row groups, in another order, and all of them in one."""
    whole = pa.table(rows)
    count = whole.num_rows
    whole = whole.take(np.random.default_rng(2).permutation(count))
    for name, start, stop in (("0", 0, count // 2), ("1", count // 2, count - 1), ("2", count - 1, count)):
        (folder / "many").mkdir(parents=True, exist_ok=True)
        parquet.write_table(
            whole.slice(start, stop - start), folder / "many" / f"{name}.parquet", row_group_size=max(1, count // 9)
        )
    parquet.write_table(whole, folder / "one.parquet", row_group_size=max(1, count // 2))


# Mechanisms.


def of_mechanism(case: Case, setting: str) -> Row:
    """A release, or the first answers of a conversation."""
    rows = case.rows
    if setting == "three rows":  # the rows three times over, of persons with three and a half rows each
        rows = {name: [*values] * 3 for name, values in rows.items()}
        rows["whose row"] = [place * 2 // 7 for place in range(3 * case.size)]
    mechanism = case.mechanism
    if isinstance(mechanism, Conversation) and hasattr(mechanism, "sensitivity"):  # of the counts that it is asked
        mechanism = dataclasses.replace(mechanism, sensitivity=SETTINGS[setting].get("rows_per_unit", 1))
    row = Row(case.name, rows, case.domain, setting, _asked(mechanism))
    return dataclasses.replace(row, refused=_refused(mechanism, row))


def _asked(mechanism: Any) -> Callable[[Any, dp.Ledger], Any]:
    if hasattr(mechanism, "run"):
        return lambda data, ledger: dp.release(mechanism, data, ledger=ledger).value

    def spoken(data: Any, ledger: dp.Ledger) -> list[str]:
        with dp.converse(mechanism, data, ledger=ledger) as talk:
            if hasattr(mechanism, "epochs"):
                return [repr(talk.ask(mechanism.epoch(place, data.facts))) for place in range(1, mechanism.epochs + 1)]
            return [repr(talk.ask(dp.mechanisms.IsAbove(dp.Count(), bound))) for bound in (10**6,) * 3]

    return spoken


def _refused(mechanism: Any, row: Row) -> frozenset[str]:
    """The kinds of places that do not offer what the mechanism says that it needs."""
    facts = dp.data.Facts(row.domain, dp.Neighbours(row.more["neighbours"], row.more.get("rows_per_unit", 1)), 10)
    needs = mechanism.needs(facts)
    unsaid = [
        each for each in needs.queries if tallies_of(each, row.domain, several=row.setting == "three rows") is None
    ]
    kinds = {DATABASE: needs.functions or needs.slices or needs.gathers or unsaid, FRAME: needs.fixed}
    return frozenset(kind for kind, refuses in kinds.items() if refuses)


# Fits, rules, sessions, quantiles.

PEOPLE = dp.Domain(
    age=dp.Number(0, 100, step=5, missing=True),
    town=dp.Category("n", "e", "it's", other="elsewhere", missing="unknown"),
    old=dp.Category(False, True),
    tall=dp.Category(False, True),
    ill=dp.Category(False, True),
    day=dp.Date("1974-01-01", "1978-12-31", step="month"),
    seen=dp.Timestamp("2026-01-01", "2026-01-31", step="hour"),
    pay=dp.Number(-10, 1000, step="0.05"),
    f0=dp.Number(0, 100, step="0.5"),
    f1=dp.Number(0, 100, step="0.5"),
)


def people(size: int = 1200, seed: int = 2) -> dict[str, list[Any]]:
    """Made-up rows with values beyond their bounds, NULLs and undeclared levels; a box explains who is ill."""
    rng = np.random.default_rng(seed)
    first, second = np.round(rng.uniform(0, 100, (2, size)) * 2) / 2
    ages, sick = rng.integers(-5, 120, size), (first > 30) & (first < 80) & (second > 20)
    return {
        "age": [None if each > 115 else int(each) for each in ages],
        "town": rng.choice(np.array(["n", "e", "it's", "N", None], dtype=object), size).tolist(),
        "old": (ages > 60).tolist(),
        "tall": (second > 50).tolist(),
        "ill": (sick ^ (rng.random(size) < 0.05)).tolist(),
        "day": [dt.date(1973, 1, 1) + dt.timedelta(days=int(each)) for each in rng.integers(0, 3000, size)],
        "seen": [dt.datetime(2025, 12, 30) + dt.timedelta(minutes=int(each)) for each in rng.integers(0, 50_000, size)],
        "pay": [Decimal(int(each)).scaleb(-2) for each in rng.integers(-2000, 110000, size)],
        "f0": [Decimal(int(2 * each) * 5).scaleb(-1) for each in first],
        "f1": [Decimal(int(2 * each) * 5).scaleb(-1) for each in second],
        "whose row": rng.integers(0, size // 3, size).tolist(),
    }


def questions() -> list[str]:
    """Fifty questions of a day's work: counts, groups, sums, averages, dates, quantiles."""
    asked = [f"SELECT COUNT(*) FROM people WHERE age >= {age}" for age in range(5, 100, 15)]
    asked += [f"SELECT COUNT(*) FROM people WHERE town = '{town}' AND NOT ill" for town in ("n", "e", "it''s")]
    asked += [f"SELECT {name}, COUNT(*) FROM people GROUP BY {name}" for name in ("town", "old", "ill", "town, tall")]
    asked += [f"SELECT AVG(pay) FROM people WHERE age BETWEEN {low} AND {low + 20}" for low in range(0, 60, 10)]
    asked += [f"SELECT SUM({value}) FROM people WHERE tall" for value in ("pay", "f0", "f0 * f1", "age")]
    asked += ["SELECT town, AVG(pay) FROM people GROUP BY town", "SELECT ill, SUM(f0) FROM people GROUP BY ill"]
    asked += ["SELECT MEDIAN(age) FROM people", "SELECT QUANTILE(f0, 0.9) FROM people WHERE ill"]
    asked += ["SELECT town, MEDIAN(f1) FROM people GROUP BY town"]
    asked += [f"SELECT COUNT(*) FROM people WHERE day >= '197{year}-01-01'" for year in range(5, 9)]
    asked += ["SELECT EXTRACT(YEAR FROM day), COUNT(*) FROM people GROUP BY EXTRACT(YEAR FROM day)"]
    asked += [f"SELECT COUNT(*) FROM people WHERE seen < '2026-01-{day:02} 12:00'" for day in (5, 15, 25)]
    asked += [f"SELECT COUNT(*) FROM people WHERE town IS NULL OR age < {age}" for age in range(10, 80, 10)]
    asked += ["SELECT COUNT(*), AVG(pay) FROM people WHERE f0 > 50 AND f1 < 25.5"]
    groups = "SELECT CASE WHEN age < {} THEN 'a' ELSE 'b' END, COUNT(*) FROM people GROUP BY 1"
    asked += [groups.format(age) for age in (20, 40)]
    asked += ["SELECT COUNT(*) FROM people WHERE town IN ('n', 'e') OR (old AND tall)"]
    asked += ["SELECT STDDEV(pay) FROM people", "SELECT VAR_POP(f0) FROM people WHERE old"]
    return asked


def _charged(ledger: dp.Ledger) -> list[str]:
    """Everything that was charged, and what was released for it."""
    return [repr(body.get("mechanism") or body.get("answer")) for body in ledger.entries()]


def _session(*texts: str) -> Callable[[Any, dp.Ledger], Any]:
    def asked(data: Any, ledger: dp.Ledger) -> list[Any]:
        session = dp.Session(data, ledger, max_price=1)
        answers = [(repr(plain(answer.value)), answer.source) for answer in map(session.ask, texts)]
        return [answers, _charged(ledger)]

    return asked


def _fit(make: Callable[[], Any], target: str, features: list[str]) -> Callable[[Any, dp.Ledger], Any]:
    def fitted(data: Any, ledger: dp.Ledger) -> list[Any]:
        dp.Session(data, ledger).fit(make(), target=target, features=features)
        return _charged(ledger)

    return fitted


_PRICE = {"epsilon": 2, "delta": 1e-6}
_BOTH = frozenset({DATABASE})
PROGRAMS: dict[str, tuple[Callable[[Any, dp.Ledger], Any], frozenset[str]]] = {
    "fifty questions": (_session(*questions()), frozenset()),
    "quantiles": (
        _session(*(f"SELECT QUANTILE({name}, {at}) FROM people" for name in ("pay", "day", "f0") for at in (0.1, 0.5))),
        frozenset(),
    ),
    "logistic": (
        _fit(lambda: dp.LogisticRegression(**_PRICE, method="objective", radius=20), "ill", ["f0", "f1"]),
        _BOTH,
    ),
    "box": (_fit(lambda: dp.BoxClassifier(**_PRICE), "ill", ["f0", "f1"]), _BOTH),
    "conjunction": (_fit(lambda: dp.ConjunctionClassifier(**_PRICE, k=2), "ill", ["old", "tall"]), _BOTH),
}


def of_program(name: str, setting: str) -> Row:
    ask, refused = PROGRAMS[name]
    return Row(name, people(), PEOPLE, setting, ask, refused, dp.Budget(100, 1e-4))


ROWS = [
    *(of_mechanism(case, "replace-one") for case in CASES),
    *(of_mechanism(case, setting) for case in FEW for setting in ("add-remove", "three rows")),
    *(of_program(name, setting) for name in PROGRAMS for setting in ("replace-one", "three rows")),
]
"""The table of 300 rows of all kinds is asked in one setting, the few rows of the audit's examples in all."""
