"""A real table of people to try everything on; README.md in this folder says where it comes from.

from discreet import example

schema = dp.Schema.read(example.write("."))    # people.parquet, people.toml, years.parquet, years.toml
table = schema.table()
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

HERE = Path(__file__).parent
FILES = ("people.toml", "people.parquet", "years.toml", "years.parquet")


def write(folder: str | os.PathLike[str]) -> Path:
    """Copy the tables and their schemas into a folder, and return the schema of the people. Existing files stay."""
    where = Path(folder)
    where.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        if not (where / name).exists():
            shutil.copyfile(HERE / name, where / name)
    return where / FILES[0]
