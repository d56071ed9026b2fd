"""A file larger than is comfortable: how long one exact histogram takes, and how much memory streaming needs.

python -m bench.tables        prints markdown
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from pathlib import Path

import numpy as np

from bench import peak

ROWS = 10_000_000
SIZES = {"a": 74, "b": 16, "c": 7, "d": 15, "e": 6, "f": 5, "g": 2}


def section() -> list[str]:
    """The section of bench/RESULTS.md."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        _run(_write, str(path))
        size = path.stat().st_size / 2**20
        seconds, most, before = _run(_stream, str(path))
        seconds |= _run(_floor, str(path))
    return [
        "",
        f"## A Parquet file of {ROWS:,} rows and {len(SIZES)} columns",
        "",
        "| what | seconds |",
        "|---|---|",
        *(f"| {what} | {each:.2f} |" for what, each in seconds.items()),
        "",
        f"Peak memory of a process that only streams the file: {most:,.0f} MB (before it opens the file: "
        f"{before:,.0f} MB; file: {size:,.0f} MB).",
    ]


def _run(act, path):
    """In a process of its own, so that its peak memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(act, (path,))


def _write(path: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    schema = pa.schema([(name, pa.int16()) for name in SIZES])
    with pq.ParquetWriter(path, schema) as writer:
        for _ in range(10):
            block = {name: rng.integers(0, size, ROWS // 10).astype(np.int16) for name, size in SIZES.items()}
            writer.write_table(pa.table(block))


def _stream(path: str) -> tuple[dict[str, float], float, float]:
    import pyarrow  # noqa: F401 - what is loaded before is not the table's memory

    import discreet as dp

    domain = dp.Domain({name: dp.Number(0, size - 1, step=1) for name, size in SIZES.items()})
    start, seconds = peak.megabytes(), {}
    table = _timed(seconds, "ParquetTable: open and validate", lambda: dp.ParquetTable(path, domain))
    query = dp.Histogram(tuple(SIZES))
    _timed(seconds, "ParquetTable: histogram over 7.5 million cells", lambda: table.exact_sum(query))
    _timed(seconds, "ParquetTable: one count", lambda: table.exact_sum(dp.Count(dp.Between("a", 10, 20))))
    return seconds, peak.megabytes(), start


def _floor(path: str) -> dict[str, float]:
    import duckdb

    seconds: dict[str, float] = {}
    code = " + ".join(f"{name}::BIGINT * {step}" for name, step in zip(SIZES, _strides(), strict=True))
    query = f"SELECT {code} AS code, count(*) AS n FROM read_parquet('{path}') GROUP BY code"
    _timed(seconds, "duckdb alone: the same histogram by SQL", lambda: duckdb.connect().execute(query).fetchnumpy())
    return seconds


def _strides() -> list[int]:
    sizes = list(SIZES.values())
    return [int(np.prod(sizes[place + 1 :], dtype=np.int64)) for place in range(len(sizes))]


def _timed(into: dict[str, float], what: str, act):
    start = time.perf_counter()
    found = act()
    into[what] = time.perf_counter() - start
    return found


if __name__ == "__main__":
    print("\n".join(section()))
