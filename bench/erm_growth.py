"""Does time grow as the rows do, and memory not at all? A logistic regression, in memory and from Parquet.

    python -m bench.erm_growth                 prints markdown
    python -m bench.erm_growth 10000 100000    these sizes only

Every fit runs in a process of its own, so that its peak memory is its own; what the process held before it touched the
rows is shown beside it.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench import peak
from bench.erm_data import Array, Floats

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
FEATURES = 10
BLOCK = 100_000
STEPS = 10
PUBLIC = {"epsilon": 1.0, "delta": 1e-8, "row_norm": 2.0, "max_iter": STEPS, "method": "descent"}
Found = tuple[float, float, float]  # seconds, peak memory in MB, memory before the rows


def section(sizes: tuple[int, ...] = SIZES) -> list[str]:
    """The section of bench/RESULTS.md."""
    lines = [
        "",
        f"## Logistic regression on ever more rows, {FEATURES} features, epsilon 1",
        "",
        f"{STEPS} noisy gradient steps whatever the rows, so {STEPS} passes over them and the reading before. The "
        "public rule would take more.",
        "",
        "| rows | in memory, s | microseconds a row | peak, MB (before the fit) | from Parquet, s | microseconds a row "
        "| peak, MB (before) | file, MB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for rows in sizes:
        print(f"{rows:,} rows ...", file=sys.stderr, flush=True)
        held = apart(_in_memory, rows)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.parquet"
            apart(_write, rows, str(path))
            streamed = apart(_from_parquet, rows, str(path))
            size = path.stat().st_size / 2**20
        lines.append(f"| {rows:,} | {_shown(held, rows)} | {_shown(streamed, rows)} | {size:,.0f} |")
    return lines


def blocks(rows: int) -> Iterator[tuple[Floats, Array]]:
    """Rows of a cube and labels, some at a time: the same whatever holds them."""
    rng = np.random.default_rng(5)
    w = rng.normal(size=FEATURES)
    for start in range(0, rows, BLOCK):
        count = min(BLOCK, rows - start)
        x = rng.uniform(-1, 1, (count, FEATURES))
        yield x, (rng.random(count) < 1 / (1 + np.exp(-x @ w))).astype(np.int8)


def _in_memory(rows: int) -> Found:
    import discreet as dp

    x, y = np.empty((rows, FEATURES)), np.empty(rows, dtype=np.int8)
    for place, (features, labels) in enumerate(blocks(rows)):
        part = slice(place * BLOCK, place * BLOCK + len(labels))
        x[part], y[part] = features, labels
    return measured(lambda: dp.LogisticRegression(classes=(0, 1), **PUBLIC).fit(x, y))


def _write(rows: int, path: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"f{i}" for i in range(FEATURES)]
    schema = pa.schema([*((name, pa.float32()) for name in names), ("y", pa.int8())])
    with pq.ParquetWriter(path, schema) as writer:
        for x, y in blocks(rows):
            columns = dict(zip(names, x.T.astype(np.float32), strict=True))
            writer.write_table(pa.table({**columns, "y": y}, schema=schema))


def _from_parquet(rows: int, path: str) -> Found:
    import pyarrow  # noqa: F401 - what is loaded before is not the fit's memory

    import discreet as dp

    features = {f"f{i}": dp.Number(-1, 1, step="1/1024") for i in range(FEATURES)}
    domain = dp.Domain({**features, "y": dp.Category(0, 1)})

    def fit() -> object:
        table = dp.ParquetTable(path, domain)
        with tempfile.TemporaryDirectory() as folder:
            budget = dp.Budget(PUBLIC["epsilon"], 2 * PUBLIC["delta"])  # half of a ledger's delta is for failures
            ledger = dp.Ledger.create(Path(folder) / "rows.ledger", budget, table, state_dir=Path(folder) / "state")
            return dp.LogisticRegression(ledger=ledger, **PUBLIC).fit(table, "y")

    return measured(fit)


def measured(fit: Callable[[], object]) -> Found:
    before, start = peak.megabytes(), time.perf_counter()
    fit()
    return time.perf_counter() - start, peak.megabytes(), before


def apart(act: Callable[..., Any], *arguments: object) -> Any:
    """In a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(act, arguments)


def _shown(found: Found, rows: int) -> str:
    seconds, peak, before = found
    return f"{seconds:.2f} | {seconds / rows * 1e6:.2f} | {peak:,.0f} ({before:,.0f})"


if __name__ == "__main__":
    print("\n".join(section(tuple(map(int, sys.argv[1:])) or SIZES)))
