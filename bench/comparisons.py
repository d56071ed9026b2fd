"""Which figures are compared with which: ours / best peer, one rule for each kind of table of the parts.

Every measure is turned so that less is better: seconds, MB, errors as they stand; of an accuracy the share classified
wrongly, of an R squared the share of the variance left unexplained. A ratio below 1 is ours better. Like is compared
with like where both exist (pure with pure, add-remove with add-remove).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from bench.part import Grid, Part

EVEN = 1.1  # a factor that the noise of the measurements explains
APART = 2.0  # deviations of a fit; further apart, figures differ even if their ratio is near 1
Reader = Callable[[str], float | None]


@dataclass(frozen=True, slots=True)
class Ratio:
    """One comparison; `floor`: with something that is not private, to show the cost and not a rival."""

    suite: str
    heading: str
    what: str
    measure: str
    ours: str
    peer: str
    best: str
    value: float
    floor: bool = False
    apart: float = 0.0  # in deviations, where the table has them

    @property
    def verdict(self) -> str:
        if 1 / EVEN <= self.value <= EVEN and self.apart <= APART:
            return "about even"
        return "ours better" if self.value < 1 else "peer better"

    @property
    def shown(self) -> str:
        if self.value == 0 or self.value >= 10:
            return f"{self.value:,.0f}"
        if self.value >= 0.1:
            return f"{self.value:.3f}" if self.apart > APART and abs(self.value - 1) < 0.05 else f"{self.value:.2f}"
        return f"{self.value:.2g}" if self.value >= 1e-4 else "< 0.0001"


def number(cell: str) -> float | None:
    """The first number of a cell, without its thousands' commas."""
    found = re.match(r"-?[\d,]*\.?\d+(e[+-]?\d+)?", cell)
    return float(found.group().replace(",", "")) if found else None


def wrong(cell: str) -> float | None:
    """1 - an accuracy or an R squared."""
    right = number(cell)
    return None if right is None else 1 - right


@dataclass(frozen=True, slots=True)
class Across:
    """Every row of a table is a comparison: a column of ours with the best of the peers' columns."""

    suite: str
    what: str  # with names of columns in braces
    measure: str
    ours: str
    peers: tuple[str, ...]
    read: Reader = number
    floor: bool = False

    def of(self, grid: Grid) -> Iterator[Ratio]:
        _has(grid, self.suite, self.ours, *self.peers)
        for cells in grid.rows:
            row = dict(zip(grid.columns, cells, strict=True))
            yield from self._one(grid.heading, row)

    def _one(self, heading: str, row: dict[str, str]) -> Iterator[Ratio]:
        theirs = {name: found for name in self.peers if (found := self.read(row[name])) is not None}
        ours = self.read(row[self.ours])
        if ours is None or not theirs:
            return
        best = min(theirs, key=theirs.__getitem__)
        what = re.sub(r"\{(.+?)\}", lambda named: row[named[1]], self.what)
        shown = (f"{row[name]}{_unit(name)}" for name in (self.ours, best))
        figures = next(shown), _who(best), next(shown), _ratio(ours, theirs[best])
        yield Ratio(self.suite, heading, what, self.measure, *figures, self.floor, _apart(row[self.ours], row[best]))


@dataclass(frozen=True, slots=True)
class Down:
    """A column of a table whose rows are ours and the peers'."""

    suite: str
    what: str
    measure: str
    ours: str  # how the row of ours begins
    peers: str  # how those of the peers begin
    column: str
    peer: str
    floor: bool = False

    def of(self, grid: Grid) -> Iterator[Ratio]:
        _has(grid, self.suite, self.column)
        place = grid.columns.index(self.column)
        ours, theirs = (_numbers(grid, start, place) for start in (self.ours, self.peers))
        if ours and theirs:
            (value, cell), (least, best) = min(ours), min(theirs)
            named = self.suite, grid.heading, self.what, self.measure
            yield Ratio(*named, cell, self.peer, best, _ratio(value, least), self.floor)


def _numbers(grid: Grid, start: str, place: int) -> list[tuple[float, str]]:
    """The figures of a column in the rows that begin so, each with its cell."""
    cells = [row[place] for row in grid.rows if row[0].startswith(start)]
    return [(found, cell) for cell in cells if (found := number(cell)) is not None]


@dataclass(frozen=True, slots=True)
class Earlier:
    """Cells such as `86 / 12.3 (clipped Gaussian; AIM 271 / 5.6)`: the largest (0) or the mean (1) errors of peers."""

    suite: str
    what: str
    measure: str
    place: int

    def of(self, grid: Grid) -> Iterator[Ratio]:
        for cells in grid.rows:
            row = dict(zip(grid.columns, cells, strict=True))
            ((_, *mine, _),) = _PAIR.findall(row["ours, add-remove"])
            theirs = [
                (float(pair[self.place].replace(",", "")), pair[self.place], before or after)
                for before, *pair, after in _PAIR.findall(row["best peer's largest / mean"])
            ]
            least, best, who = min(theirs)
            ratio = _ratio(float(mine[self.place].replace(",", "")), least)
            what = f"{self.what} {row['table']}, epsilon {row['epsilon']}"
            yield Ratio(self.suite, grid.heading, what, self.measure, mine[self.place], who, best, ratio)


_PAIR = re.compile(r"(?:([A-Za-z]+) )?([\d,.]+) / ([\d,.]+)(?: \(([^;)]*))?")


def _has(grid: Grid, suite: str, *columns: str) -> None:
    """A suite whose columns were renamed must not lose its comparisons in silence."""
    if missing := set(columns) - set(grid.columns):
        raise ValueError(f"bench/parts/{suite}.md has no column {sorted(missing)}; it has {grid.columns}")


def _ratio(ours: float, best: float) -> float:
    if best > 0:
        return max(ours, 0.0) / best
    return 1.0 if ours <= 0 else math.inf


def _apart(*cells: str) -> float:
    """How many deviations lie between two cells such as `0.901 ± 0.034`; 0 if one shows none."""
    spread = [cell.split(" ± ") for cell in cells if " ± " in cell]
    if len(spread) < len(cells):
        return 0.0
    (one, other), deviations = zip(*((float(mean), float(deviation)) for mean, deviation in spread), strict=True)
    return abs(one - other) / max(math.hypot(*deviations), 1e-12)


def _who(column: str) -> str:
    return re.split(r",| \(", column)[0]


def _unit(column: str) -> str:
    return f" {column.rpartition(', ')[2]}" if column.endswith((", ms", ", MB")) else ""


_SGD, _BEST_C = "Opacus, add-remove, best of its grid", "diffprivlib, pure, best C"
_KNOWN = "pairs and triples of table"
_AIM = ("ours, add-remove", "opendp's AIM")
RULES: tuple[Across | Down | Earlier, ...] = (
    Across("noise", "a million of {what}", "time", "ours, ms", ("opendp, ms",)),
    Across("memory", "{what}", "memory", "ours, MB", ("diffprivlib, MB", "Opacus, MB", "opendp, MB")),
    Across("erm_speed", "{what}", "time", "ours, ms", ("diffprivlib, ms", "Opacus, ms")),
    *(
        rule
        for suite, rows in (("erm_breast", "breast cancer, 398 rows"), ("erm_logistic", "logistic, 100,000 rows"))
        for rule in (
            Across(suite, f"{rows}, epsilon {{epsilon}}", "accuracy", "ours, add-remove", (_SGD,), wrong),
            Across(
                suite, f"{rows}, pure, epsilon {{epsilon}}", "accuracy", "ours, pure, replace-one", (_BEST_C,), wrong
            ),
        )
    ),
    Across("erm_diabetes", "diabetes, pure, epsilon {epsilon}", "R²", "ours, pure", ("diffprivlib, pure",), wrong),
    Across("erm_linear", "linear, pure, epsilon {epsilon}", "R²", "ours, pure", ("diffprivlib, pure",), wrong),
    Across(
        "erm_numbers",
        "{what}, epsilon {epsilon}",
        "error",
        "ours",
        ("diffprivlib", "opendp (grid of 1,001)", "opendp (grid of 10,001)"),
    ),
    Across("pac_accuracy", "{rows}, epsilon {epsilon}", "accuracy", "ours", ("diffprivlib",), wrong),
    Earlier("pmw_tables", _KNOWN, "largest error", 0),
    Earlier("pmw_tables", _KNOWN, "mean error", 1),
    Down("pmw_peers", "table S beside AIM, epsilon 1", "largest error", *_AIM, "max error", "opendp AIM"),
    Down("pmw_peers", "table S beside AIM, epsilon 1", "mean error", *_AIM, "mean error", "opendp AIM"),
    Down("pmw_peers", "table S beside AIM, epsilon 1", "time", *_AIM, "seconds", "opendp AIM"),
    Across("noise", "a million of {what}", "time", "ours, ms", ("numpy (not private), ms",), floor=True),
    Across("ledger", "{what}", "time", "ours, ms", ("bare 4 KiB write and fsync, ms",), floor=True),
    Across(
        *("ledger_postgres", "{what} in PostgreSQL", "time", "in PostgreSQL, ms"),
        ("PostgreSQL's own commit, ms",),
        floor=True,
    ),
    Down(
        "tables",
        "histogram of 7.5 million cells, 10 million rows",
        "time",
        "ParquetTable: histogram",
        "duckdb alone",
        "seconds",
        "duckdb",
        floor=True,
    ),
)


def ratios(parts: Iterable[Part]) -> list[Ratio]:
    """Every comparison that these parts allow, in the order of the suites."""
    return [
        ratio
        for part in parts
        for rule in RULES
        if rule.suite == part.suite
        for grid in part.grids
        for ratio in rule.of(grid)
    ]
