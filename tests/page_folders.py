"""Folders that a service can serve: a small table, hostile names, the bundled people; each with a ledger and keys."""

from __future__ import annotations

import json
from pathlib import Path

import discreet as dp
from discreet import example
from tests.serving import House

BUDGET = dp.Budget(1, "1e-6")

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


def _peopled(made: House) -> House:
    made.add("ana", "boris", share="1/4")
    made.add("carla", share="1/4", may=["ask"])
    made.add("olga", role="owner")
    return made


def plain(place: Path, *names: str) -> House:
    """Six hundred made-up people, in a table of each name."""
    made = House.new(place)
    for name in names or ("people",):
        made.table(name, PLAIN.replace("people", name), "age,town,day", ROWS, BUDGET)
    return _peopled(made)


def evil(place: Path) -> House:
    """Columns and levels with hostile names."""
    quoted = ", ".join(json.dumps(level, ensure_ascii=False) for level in EVIL)
    hostile = "".join(
        f'[columns.{json.dumps(name, ensure_ascii=False)}]\nkind = "category"\nlevels = [{quoted}]\n\n'
        for name in EVIL[:2]
    )
    rows = [(place % 90, EVIL[place % 8], EVIL[(place // 8) % 8]) for place in range(320)]
    made = House.new(place)
    made.table("people", PLAIN.split("[columns.town]")[0] + hostile, ",".join(("age", *EVIL[:2])), rows, BUDGET)
    return _peopled(made)


def bundled(place: Path) -> House:
    """The bundled people."""
    made = House.new(place)
    made.opened(example.write_people(place), BUDGET)
    return _peopled(made)
