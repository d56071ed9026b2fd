"""The folder of a tour: the bundled people, one invented column, the schemas; later the ledger and what was made.

The programme is invented, the people are real: people of some ages who saw a doctor often enough are invited. A
learner of boxes then has something to find that is truly a box. The rule is public, so the column says nothing new.
"""

from __future__ import annotations

from pathlib import Path

from discreet import example

INVITED = {"age": (20, 50), "visits": (2, 50)}
"""The box of the invented programme: these ages, and so many visits in the year."""

_DECLARED = """
[columns.programme]              # invented by the tour: whether the person is invited to a programme
kind = "category"
levels = ["no", "yes"]
"""


def free_folder(wanted: Path) -> Path:
    """This folder if it is not there or empty, else the first of NAME-2, NAME-3, ... that is."""
    folder, number = wanted, 1
    while folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        number += 1
        folder = wanted.with_name(f"{wanted.name}-{number}")
    return folder


def write(folder: Path) -> Path:
    """Put the tables and their schemas into the folder; the path of the people's schema."""
    schema = example.write(folder)
    _invite(schema.with_suffix(".parquet"))
    with schema.open("a", encoding="utf-8") as file:
        file.write(_DECLARED)
    return schema


def invitation() -> str:
    """Whom the programme invites, in words."""
    (young, old), (few, _) = INVITED["age"], INVITED["visits"]
    return f"{young} <= age <= {old} and visits >= {few}"


def _invite(people: Path) -> None:
    """Add the programme's column to the file."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(people)
    inside = np.ones(table.num_rows, dtype=bool)
    for name, (low, _) in INVITED.items():
        inside &= table[name].to_numpy() >= low
    inside &= table["age"].to_numpy() <= INVITED["age"][1]  # visits have no upper end: what is above counts as 50
    column = pa.array(np.where(inside, "yes", "no").tolist())
    pq.write_table(table.append_column("programme", column), people)
