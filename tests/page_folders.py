"""Folders that a service can serve: a small table, hostile names, the bundled people; each with a ledger and keys."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import discreet as dp
from discreet import example
from discreet.serve.keys import Keys
from discreet.serve.service import add_analyst

PLAIN = """
name = "people"
data = "people.csv"
ledger = "people.ledger"
neighbours = "replace-one"
each_row_is_a_person = true

[columns.age]
kind = "number"
low = 0
high = 99
step = 1

[columns.town]
kind = "category"
levels = ["north", "south", "west"]

[columns.day]
kind = "date"
low = "2026-01-01"
high = "2026-06-30"
step = "month"
"""
ROWS = [(20 + place % 60, ("north", "south", "west")[place % 3], f"2026-0{1 + place % 6}-01") for place in range(600)]

EVIL = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'; DROP TABLE people; --",
    "{{ 7 * 7 }}",
    "</textarea></pre></td><b>out</b>",
    "javascript:alert(1)",
    "\N{RIGHT-TO-LEFT OVERRIDE}drawkcab",
    "<hx-partial hx-target='body'>x</hx-partial>",
]
"""Names and levels that want to be more than text."""


class Served:
    """A folder with one table, its ledger and the keys of some people."""

    def __init__(self, place: Path, schema: str, rows: list[tuple[Any, ...]], columns: tuple[str, ...]) -> None:
        place.mkdir(mode=0o700, parents=True)
        (place / "people.toml").write_text(schema)
        with (place / "people.csv").open("w", newline="") as file:
            csv.writer(file).writerows([columns, *rows])
        for each in place.iterdir():
            each.chmod(0o600)
        self._open(place)

    def _open(self, place: Path) -> None:
        self.place, self.marks = place, place.with_name(f"{place.name}-marks")
        self.declared = dp.Schema.read(place / "people.toml")
        assert self.declared.ledger is not None
        table = self.declared.table()
        ledger = dp.Ledger.create(self.declared.ledger, dp.Budget(1, "1e-6"), table, state_dir=self.marks)
        self.keys, held = Keys(place / "keys.json"), {self.declared.name: ledger}
        self.ana, self.boris = (add_analyst(self.keys, held, name, share="1/4")["key"] for name in ("ana", "boris"))
        self.carla = add_analyst(self.keys, held, "carla", share="1/4", may=["ask"])["key"]
        self.olga = add_analyst(self.keys, held, "olga", role="owner")["key"]
        ledger.close()

    @staticmethod
    def plain(place: Path) -> Served:
        """Six hundred made-up people."""
        return Served(place, PLAIN, list(ROWS), ("age", "town", "day"))

    @staticmethod
    def evil(place: Path) -> Served:
        """Columns and levels with hostile names."""
        quoted = ", ".join(json.dumps(level, ensure_ascii=False) for level in EVIL)
        hostile = "".join(
            f'[columns.{json.dumps(name, ensure_ascii=False)}]\nkind = "category"\nlevels = [{quoted}]\n\n'
            for name in EVIL[:2]
        )
        rows = [(place % 90, EVIL[place % 8], EVIL[(place // 8) % 8]) for place in range(320)]
        return Served(place, PLAIN.split("[columns.town]")[0] + hostile, rows, ("age", *EVIL[:2]))

    @staticmethod
    def bundled(place: Path) -> Served:
        """The bundled people."""
        place.mkdir(mode=0o700, parents=True)
        example.write_people(place)
        made = Served.__new__(Served)
        made._open(place)
        return made
