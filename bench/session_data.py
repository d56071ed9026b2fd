"""A made-up table of the size of the Adult census, and an analyst who drills down: for the suites of sessions.

No constant of a session was chosen on it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import discreet as dp

ROWS = 32_561
SIZES = {"sex": 2, "race": 5, "region": 8, "job": 14, "school": 16, "marital": 7, "smoker": 3}
AGES = (17, 90)


def sizes(wide: int) -> dict[str, int]:
    """The columns of levels: seven, and so many more of three levels."""
    return {**SIZES, **{f"more{place}": 3 for place in range(wide)}}


def people(relation: str = "replace-one", rows: int = ROWS, wide: int = 0) -> dp.Table:
    """Columns of levels and an age, all of which depend on one hidden number."""
    rng = np.random.default_rng(1)
    hidden, columns = rng.normal(size=rows), dict[str, Any]()
    for name, size in sizes(wide).items():
        slope, base = rng.normal(size=size), rng.normal(size=size)
        drawn = (base + 0.6 * np.outer(hidden, slope) + rng.gumbel(size=(rows, size))).argmax(axis=1)
        columns[name] = np.array([f"{name}{level}" for level in range(size)])[drawn]
    columns["age"] = np.clip((45 + 7.5 * hidden + 12 * rng.normal(size=rows)).astype(int), *AGES)
    levels = {name: dp.Category(*(f"{name}{level}" for level in range(size))) for name, size in sizes(wide).items()}
    domain = dp.Domain({**levels, "age": dp.Number(*AGES, step=1)})
    return dp.Table(columns, domain, name="people", neighbours=relation)


def drill_down(count: int, seed: int = 5, wide: int = 0) -> list[dp.Count | dp.Histogram]:
    """A column; one of its levels; that by a second column; a cell of both; that by a third; now and then an age."""
    rng, levels, asked = np.random.default_rng(seed), sizes(wide), list[dp.Count | dp.Histogram]()
    often = np.array([3, 2, 3, 3, 2, 2, 1] + [1] * wide) / (16 + wide)

    def level(name: str) -> dp.Equals:
        return dp.Equals(name, f"{name}{rng.integers(levels[name])}")

    while len(asked) < count:
        first, second, third = (str(name) for name in rng.choice(list(levels), 3, replace=False, p=often))
        one, both = level(first), level(second)
        asked += [dp.Histogram(first), dp.Count(one), dp.Histogram(second, one), dp.Count(one & both)]
        asked += [dp.Histogram(third, one & both)]
        if rng.random() < 0.3:
            asked.append(dp.Count(one & dp.Between("age", 5 * int(rng.integers(4, 14)), AGES[1])))
    return asked[:count]
