"""The public names, what importing costs, and who may run a mechanism."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import discreet as dp

SOURCE = Path(dp.__file__).parent
HEAVY = ("sklearn", "duckdb", "pyarrow", "pandas", "polars", "scipy", "sqlglot", "pyspark", "jax", "click", "rich")


def test_the_public_names_are_sorted_and_all_there():
    names = [name for name in dp.__all__ if name != "__version__"]
    assert names == sorted(names)
    assert all(hasattr(dp, name) for name in names)


def test_importing_discreet_imports_no_heavy_library():
    script = f"import sys, discreet; print([name for name in {HEAVY!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_only_release_and_the_audit_run_a_mechanism():
    """`.run(`, `.begin(` and `.step(` appear outside mechanisms only where rows may be looked at or are made up."""
    allowed = {"release.py", "audit/laws.py", "audit/mutants.py", "audit/attacks_on_rules.py", "mechanisms/stable.py"}
    callers = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if re.search(
            r"\b(mechanism|conversation|honest|self\.histogram|self\.honest)\.(run|begin|step)\(", path.read_text()
        )
    }
    assert callers <= allowed
    assert "release.py" in callers


def test_no_ordinary_randomness_in_the_library():
    pattern = re.compile(r"\b(np|numpy)\.random\b|^\s*(import random|from random import)", re.MULTILINE)
    assert not [path for path in SOURCE.rglob("*.py") if pattern.search(path.read_text())]


def test_rows_leave_a_dataset_through_doors_named_exact():
    for kind in (dp.Table, dp.ParquetTable, dp.Matrix):
        public = {name for name in dir(kind) if not name.startswith("_")}
        assert public <= {"facts", "identity", "source", "check_source", "exact_sum", "exact_slices"}
