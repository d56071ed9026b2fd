"""Walks through the house: how many functions, files and crossings a user's call enters, and its SQLite transactions.

    python tools/walks.py            of this checkout
    python tools/walks.py SRC        of another tree, to compare with

A crossing is a change of file from one call to the next. Everything is counted on the bundled people and on arrays that
are made here; the second call of a kind in one process would find imports done and is not counted.

Functions, files and crossings at 993c1cf and now, when this was last measured:

    Schema.table()                     56,  9,    110          69, 10,    132
    Session(table, ledger, alpha=)    140, 40,    831         263, 60,  1,074
    the first question                403, 45,  1,072         540, 52,  1,675
    release(Laplace(Count(...)))      152, 24,    129         215, 27,    238
    LogisticRegression.fit            331, 42,  2,456         404, 43,  2,856
    ConjunctionClassifier.fit         361, 43,  9,556         326, 41,  2,441
    BoxClassifier.fit                 443, 49, 25,746         460, 44, 28,292

SQLite transactions: 8 of the first question and 208 of a box fit then, 18 and 6 now.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


class Walk:
    """What a call of the library enters."""

    def __init__(self, source: Path) -> None:
        self._source = str(source) + os.sep
        self.calls = self.crossings = self.depth = self._deep = 0
        self.functions: set[tuple[str, int]] = set()
        self.files: set[str] = set()
        self._last = ""

    def _enter(self, frame: Any, event: str, argument: Any) -> None:
        file = frame.f_code.co_filename
        if not file.startswith(self._source) or event not in ("call", "return") or frame.f_code.co_name.startswith("<"):
            return
        self._deep += 1 if event == "call" else -1
        if event == "return":
            return
        self.calls += 1
        self.depth = max(self.depth, self._deep)
        self.functions.add((file, frame.f_code.co_firstlineno))
        self.files.add(file)
        self.crossings += file != self._last
        self._last = file

    def of(self, call: Callable[[], Any]) -> Any:
        sys.setprofile(self._enter)
        try:
            return call()
        finally:
            sys.setprofile(None)

    def __str__(self) -> str:
        return f"{self.calls:>9,}{len(self.functions):>11,}{len(self.files):>7}{self.crossings:>11,}{self.depth:>7}"


class Transactions:
    """Counts the transactions that are begun on any connection of sqlite3."""

    def __init__(self) -> None:
        self.begun = 0
        self._connect = sqlite3.connect

    def __enter__(self) -> None:
        def connect(*arguments: Any, **how: Any) -> sqlite3.Connection:
            connection = self._connect(*arguments, **how)
            connection.set_trace_callback(self._see)
            return connection

        sqlite3.connect = connect  # type: ignore[assignment]

    def _see(self, statement: str) -> None:
        self.begun += statement.lstrip().upper().startswith("BEGIN")

    def __exit__(self, *error: object) -> None:
        sqlite3.connect = self._connect


def main(source: Path) -> None:
    sys.path.insert(0, str(source.parent))
    import numpy as np

    import discreet as dp

    assert Path(dp.__file__).parent == source, f"another discreet is imported: {dp.__file__}"
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (400, 3))
    y = (x.sum(axis=1) > 0).astype(int)
    bits = rng.integers(2, size=(400, 6))
    print(f"{'':54}    calls  functions  files  crossings  depth")

    def walk(name: str, call: Callable[[], Any]) -> Any:
        counted = Walk(source)
        value = counted.of(call)
        print(f"{name:54}{counted}")
        return value

    with tempfile.TemporaryDirectory() as folder:
        os.environ["DISCREET_STATE"] = folder + "/state"
        for example in (source / "example").glob("people.*"):
            shutil.copy(example, folder)
        schema = dp.Schema.read(Path(folder) / "people.toml")
        table = walk("Schema.table()", schema.table)
        file = Path(folder) / "people.ledger"
        counted = Transactions()
        with counted:
            ledger = dp.Ledger.create(file, dp.Budget(4, "1e-6"), table)
        session = walk("Session(table, ledger, alpha=)", lambda: dp.Session(table, ledger, alpha=0.03))
        before = counted.begun
        walk(
            'session.ask("SELECT COUNT(*) ..."), the first',
            lambda: session.ask("SELECT COUNT(*) FROM people WHERE age >= 65"),
        )
        of_ask = counted.begun - before
        walk(
            "release(Laplace(Count(...)))",
            lambda: dp.release(dp.Laplace(dp.Count(dp.Equals("sex", "F")), 9), table, ledger=ledger),
        )
        logistic = dp.LogisticRegression(epsilon="1/10", delta="1e-8", row_norm=2, classes=(0, 1), size=None)
        walk("LogisticRegression(...).fit(X, y)", lambda: logistic.fit(x, y))
        conjunction = dp.ConjunctionClassifier(epsilon=1, k=2, classes=(0, 1))
        walk("ConjunctionClassifier(...).fit(X, y)", lambda: conjunction.fit(bits, bits[:, 0] & bits[:, 2]))
        box = dp.BoxClassifier(epsilon=1, delta="1e-6", bounds=(-1, 1), classes=(0, 1))
        walk("BoxClassifier(...).fit(X, y)", lambda: box.fit(x, y))
        rows = dp.Table(
            {"a": x[:, 0], "b": x[:, 1], "y": y},
            dp.Domain(a=dp.Number(-1, 1, step="1/100"), b=dp.Number(-1, 1, step="1/100"), y=dp.Category(0, 1)),
            name="rows",
        )
        with counted:
            file_ledger = dp.Ledger.create(Path(folder) / "rows.ledger", dp.Budget(4, "1e-6"), rows)
            before = counted.begun
            dp.BoxClassifier(epsilon=None, ledger=file_ledger).fit(rows, "y")
            print(f"\nSQLite transactions: {of_ask} of the first question, {counted.begun - before} of a box fit")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "src" / "discreet")
