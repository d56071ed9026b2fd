"""Rows in memory, in files, in databases and far away: one pass over the same rows in every place, growth, and a fit.

    python -m bench.far PART        places, growth or fit: prints markdown

Spark runs in the environment of `make far`; without it its rows are left out, and the section says so.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb

ROOT = Path(__file__).resolve().parents[1]
SPARK = ROOT / ".venv-far" / "bin" / "python"
ROWS = 10_000_000
A_FILE = 2_500_000
GROWTH = (10**6, 10**7, 10**8)
PLACES = {
    "table": "`Table`, in memory",
    "parquet": "`ParquetTable`, one file",
    "processes": "`FilesTable`, two processes",
    "spark": "`FilesTable`, Spark as the scheduler",
    "frame": "`SparkTable`, rows through the JVM",
    "frame-staged": "`SparkTable`, staged codes",
    "duckdb": "`SqlTable`, a DuckDB file",
    "postgresql": "`SqlTable`, PostgreSQL",
}
FAR = ("spark", "frame", "frame-staged")


def section(part: str) -> list[str]:
    """The section of bench/RESULTS.md."""
    with tempfile.TemporaryDirectory() as folder:
        return {"places": _places, "growth": _growth, "fit": _fit}[part](Path(folder))


def _places(folder: Path) -> list[str]:
    many, one = folder / "many", folder / "one"
    written(many, ROWS, A_FILE)
    one.mkdir()
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (FROM '{many}/*.parquet') TO '{one}/rows.parquet' (FORMAT parquet, ROW_GROUP_SIZE 500000)"
        )
    found = {place: measured(place, one if place == "parquet" else many) for place in PLACES}
    figures = ("made", "histogram", "gradient", "peak")
    rows = [
        f"| {PLACES[place]} | {' | '.join(_shown(each[name]) for name in figures)} |"
        for place, each in found.items()
        if each
    ]
    sums = [{each[kind] for each in found.values() if kind in each} for kind in ("counted", "summed")]
    return [
        "",
        f"## Places: one pass over {ROWS:,} rows",
        "",
        "| where the rows are | until the table is there, s | histogram of 968 cells, s | gradient, 10 features, s "
        "| this process's peak, MB |",
        "|---|---|---|---|---|",
        *rows,
        "",
        f"All sums are {'equal, bit for bit' if [*map(len, sums)] == [1, 1] else 'DIFFERENT'}. Best of two passes. "
        "Spark is a master and two workers on the same two cores, and the first column has its start. A histogram over "
        "files of this machine is one GROUP BY by duckdb in the owner's process; a gradient is summed row by row. "
        "Databases hold the three columns of the histogram, loaded before; what they refuse, they refuse before the "
        "charge.",
        *_missing(found),
    ]


def _shown(figure: object) -> str:
    return f"{figure:.1f}" if isinstance(figure, float) else str(figure)


def _growth(folder: Path) -> list[str]:
    lines = []
    for rows in GROWTH:
        here = folder / str(rows)
        written(here, rows, A_FILE, small=True)
        for place in ("processes", "spark"):
            if found := measured(place, here, "growth"):
                name = PLACES[place]
                lines.append(f"| {rows:,} | {name} | {found['histogram']:.1f} | {found['peak']:.0f} |")
    return [
        "",
        "## Growth: the owner's process while rows grow",
        "",
        "| rows | place | histogram of 968 cells, s | this process's peak, MB |",
        "|---|---|---|---|",
        *lines,
    ]


def _fit(folder: Path) -> list[str]:
    written(folder / "rows", ROWS, A_FILE)
    found = measured("spark", folder / "rows", "fit")
    if not found:
        return ["", "## A fit on Spark", "", *_missing({"spark": found})]
    return [
        "",
        f"## A fit on Spark: logistic regression, 10 features, {ROWS:,} rows",
        "",
        "| method that `auto` takes | passes | seconds | this process's peak, MB |",
        "|---|---|---|---|",
        f"| {found['by']} | {found['passes']} | {found['fit']:.0f} | {found['peak']:.0f} |",
    ]


def _missing(found: dict[str, dict[str, object]]) -> list[str]:
    return [] if all(found.values()) else ["", "Left out: places in Spark, since `make far` was not run here."]


def measured(place: str, folder: Path, what: str = "passes") -> dict:
    """What a process of its own says; nothing if its environment is not there."""
    python = str(SPARK) if place in FAR else sys.executable
    if place in FAR and not SPARK.exists():
        return {}
    command = [python, "-W", "ignore", "-m", "bench.far_place", place, str(folder), what]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{place}: {done.stderr[-3000:]}")
    found: dict = json.loads(done.stdout.strip().splitlines()[-1])
    print(place, found, file=sys.stderr, flush=True)
    return found


def written(folder: Path, rows: int, a_file: int, *, small: bool = False) -> None:
    """Made-up rows by duckdb: files of this many rows, row groups of half a million."""
    folder.mkdir()
    features = "" if small else ", ".join(f"round(random() * 100, 1) AS f{place}" for place in range(10))
    drawn = "CAST(floor(random() * 130) AS INTEGER) AS age"
    drawn += ", ['n', 'e', 's', 'q'][1 + CAST(floor(random() * 4) AS INTEGER)] AS town"
    drawn += ", ['F', 'M'][1 + CAST(floor(random() * 2) AS INTEGER)] AS sex"
    inner = drawn if small else f"{drawn}, {features}"
    outer = "*" if small else "*, random() < 1 / (1 + exp(-(f0 - f1 + f2 - 50) / 20)) AS ill"
    with duckdb.connect() as connection:
        connection.execute("SET threads = 2; SELECT setseed(0.5)")
        for place in range(max(1, rows // a_file)):
            made = f"SELECT {outer} FROM (SELECT {inner} FROM range({min(rows, a_file)}))"
            connection.execute(
                f"COPY ({made}) TO '{folder}/{place:03}.parquet' (FORMAT parquet, ROW_GROUP_SIZE 500000)"
            )


if __name__ == "__main__":
    print("\n".join(section(sys.argv[1])))
