"""A real table of people to try everything on; README.md in this folder says where it comes from.

from discreet import example

schema = dp.Schema.read(example.write("."))    # people.parquet, people.toml, years.parquet, years.toml
table = schema.table()

clinic = dp.DatabaseSchema.read(example.write_clinic("."))    # the same people, and made-up visits of theirs
database = clinic.database()
"""

from __future__ import annotations

import os
import shutil
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from discreet.core import SeededRng
from discreet.data import Scan, write_parquet

HERE = Path(__file__).parent
FILES = ("people.toml", "people.parquet", "years.toml", "years.parquet")

CITIES = (
    *("Seattle", "Dayton", "Charleston", "Fitchburg", "Franklin", "Leominster", "Tacoma", "Kettering", "Everett"),
    *("Bellevue", "Fairborn", "Georgetown", "Summerville", "Lunenburg", "Xenia", "Andrews", "Renton", "Gardner"),
)
"""Towns of the made-up visits, the most frequent first; every fiftieth visit is in a place of its own."""

_SEED, _MOST_VISITS = 1974, 7
_FIRST, _DAYS = date(1974, 1, 1), 1826

_CLINIC = """\
# Two tables about the same people, with one ledger: the bundled people, and visits of theirs that are made up.

name = "clinic"
ledger = "clinic.ledger"
neighbours = "replace-one"           # how many people there are is public
persons = "people"                   # the table with one row for each person

[tables.visits]
data = "visits.parquet"
unit = "person"
rows_per_unit = 5                    # more visits of a person are left out, chosen at random

[tables.visits.columns.day]
kind = "date"
low = 1974-01-01
high = 1978-12-31
step = "day"

[tables.visits.columns.clinic]
kind = "category"
levels = ["C01", "C02", "C03", "C04", "C05", "C06", "C07", "C08", "C09", "C10", "C11", "C12"]

[tables.visits.columns.city]         # a list of them does not exist
kind = "text"

[tables.visits.columns.amount]       # dollars
kind = "number"
low = 0
high = 2000
step = 1

[tables.visits.columns.minutes]
kind = "number"
low = 0
high = 240
step = 5

[tables.visits.columns.emergency]
kind = "category"
levels = ["no", "yes"]

[tables.people]
data = "clinic_people.parquet"       # the bundled people, each with a number
unit = "person"
rows_per_unit = 1

"""


def write(folder: str | os.PathLike[str]) -> Path:
    """Copy the tables and their schemas into a folder, and return the schema of the people. Existing files stay."""
    where = Path(folder)
    where.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        if not (where / name).exists():
            shutil.copyfile(HERE / name, where / name)
    return where / FILES[0]


def write_people(folder: str | os.PathLike[str]) -> Path:
    """Copy the people and their schema into a folder, for their owner alone, and return the schema."""
    where = Path(folder)
    where.mkdir(parents=True, exist_ok=True)
    for name in FILES[:2]:
        shutil.copyfile(HERE / name, where / name)
        (where / name).chmod(0o600)
    return where / FILES[0]


def write_clinic(folder: str | os.PathLike[str]) -> Path:
    """Write the people with a number each, their made-up visits and the schema of both, and return the schema."""
    where = Path(folder)
    where.mkdir(parents=True, exist_ok=True)
    declared = (HERE / "people.toml").read_text(encoding="utf-8").partition("[columns.")
    columns = "".join(declared[1:]).replace("[columns.", "[tables.people.columns.")
    scan = Scan(HERE / "people.parquet")
    (people,) = scan.frames(scan.names())
    numbered = people.append_column("person", [list(range(people.num_rows))])
    for name, frame in (("clinic_people.parquet", numbered), ("visits.parquet", visits(people.num_rows))):
        with (where / name).open("xb") as file:
            write_parquet(frame, file)
    (where / "clinic.toml").write_text(_CLINIC + columns, encoding="utf-8")
    return where / "clinic.toml"


def visits(people: int) -> Any:
    """Made-up visits as a pyarrow table, from 0 to 7 for each person: the same ones for the same number of people."""
    rng = SeededRng(_SEED)
    person = np.repeat(np.arange(people), rng.integers(_MOST_VISITS + 1, people))
    rows = len(person)
    # A city has four fifths of the visits of the one before it; emergencies cost more, and take longer.
    parts = np.cumsum([4**place * 5 ** (len(CITIES) - place) for place in range(len(CITIES))], dtype=float)
    city = np.searchsorted(parts / parts[-1], rng.integers(10**6, rows) / 10**6, side="right")
    day, emergency = rng.integers(_DAYS, rows), rng.integers(100, rows) < 12
    amount = rng.integers(150, rows) * np.where(emergency, 5, 1) + rng.integers(40, rows) ** 2 // 20
    minutes = 5 * (rng.integers(7, rows) + rng.integers(7, rows) * np.where(emergency, 3, 1))
    clinic = (city * 5 + rng.integers(4, rows)) % 12 + 1
    places = [CITIES[each] if place % 50 else f"Hamlet {place}" for place, each in enumerate(city.tolist())]
    columns = {
        "person": person.tolist(),
        "day": [_FIRST + timedelta(days=each) for each in day.tolist()],
        "clinic": [f"C{each:02d}" for each in clinic.tolist()],
        "city": places,
        "amount": amount.tolist(),
        "minutes": minutes.tolist(),
        "emergency": ["yes" if each else "no" for each in emergency.tolist()],
    }
    return nw.from_dict(columns, backend="pyarrow").to_native()
