"""The public names, what importing costs, and who may run a mechanism."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import discreet as dp

SOURCE = Path(dp.__file__).parent
HEAVY = ("sklearn", "duckdb", "sqlglot", "pyarrow", "pandas", "polars", "scipy", "pyspark", "jax", "click", "rich")


def test_the_public_names_are_sorted_and_all_there():
    names = [name for name in dp.__all__ if name != "__version__"]
    assert names == sorted(names, key=lambda name: (not name.isupper(), name))  # as ruff sorts them
    assert all(hasattr(dp, name) for name in names)


def test_importing_discreet_imports_no_heavy_library():
    script = f"import sys, discreet; print([name for name in {HEAVY!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


COMPOSED = {"mechanisms/stable.py", "pac/rank_bounds.py", "erm/ranged.py"}
"""Mechanisms that run a part of their own inside their own run."""


def test_only_release_and_the_audit_run_a_mechanism():
    """`run`, `begin` and `step` are looked up only where rows may be looked at or are made up."""
    callers = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if runs(path.read_text())}
    assert {caller for caller in callers if not caller.startswith("audit/")} == {"release.py"} | COMPOSED


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("mechanism.run(data, rng)", True),
        ("f = part.run", True),
        ("talk.conversation.begin(data, rng)", True),
        ("conversation.step(state, ask, data, rng)", True),
        ("column.step + self.step", False),
        ("self.run(question)", False),
    ],
)
def test_a_run_is_seen_however_the_mechanism_is_called(text, found):
    assert runs(text) is found


def runs(text: str) -> bool:
    """Whether this code takes `run` or `begin` of another object, or calls its `step`; a bare `step` is a grid's."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Attribute(attr="run" | "begin", value=owner) if ast.unparse(owner) not in ("self", "asyncio"):
                return True
            case ast.Call(func=ast.Attribute(attr="step"), args=[_, _, _, _]):
                return True
    return False


def test_no_ordinary_randomness_in_the_library():
    pattern = re.compile(r"\b(np|numpy)\.random\b|^\s*(import random|from random import)", re.MULTILINE)
    assert not [path for path in SOURCE.rglob("*.py") if pattern.search(path.read_text())]


DOORS = {"facts", "identity", "source", "offers", "check_source", "sheet"}
DOORS |= {"exact_sum", "exact_slices", "exact_gather", "exact_distinct"}


def test_rows_leave_a_dataset_through_doors_named_exact():
    for kind in (dp.Table, dp.ParquetTable, dp.FilesTable, dp.SparkTable, dp.Matrix):
        public = {name for name in dir(kind) if not name.startswith("_")}
        assert public <= {*DOORS, "sources", "close"}
    public = {name for name in dir(dp.data.View) if not name.startswith("_")}
    assert public <= {*DOORS, "sources"}
    public = {name for name in dir(dp.Database) if not name.startswith("_")}
    assert public == {"catalogue", "column", "identity", "persons", "sheet", "size", "sources", "tables", "view"}
