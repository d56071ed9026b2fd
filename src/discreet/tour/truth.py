"""The truth about the tour's people, computed here from the tour's own file; nothing in the library returns it.

The rows of these people are public. Nobody who holds a private table may do what this file does: each of its numbers is
an exact answer, a release without a price.

Numbers are read as the schema declares them: cut to their bounds and to their steps, as every private answer sees them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.data import Domain, Floats, Number

Condition = tuple[str, str, Any]
"""Column, "=" or ">=", value."""
Slope = Callable[[Floats], Floats]


class Truth:
    """The columns of a Parquet file, and exact answers about them."""

    def __init__(self, path: Path, domain: Domain) -> None:
        import pyarrow.parquet as pq

        table = pq.read_table(path)
        self.size = table.num_rows
        self.domain = domain
        self.columns = {name: _declared(table[name], domain, name) for name in domain.names}

    def count(self, conditions: Sequence[Condition]) -> int:
        """How many people satisfy all of these."""
        inside = np.ones(self.size, dtype=bool)
        for name, sign, value in conditions:
            inside &= self.columns[name] == value if sign == "=" else self.columns[name] >= value
        return int(inside.sum())

    def groups(self, names: Sequence[str]) -> Counter[Any]:
        """How many people there are with each combination of values; a single column's values are not tuples."""
        return grouped([self.columns[name] for name in names])

    def most(self, names: Sequence[str]) -> str:
        """The largest group, in words."""
        group, people = self.groups(names).most_common(1)[0]
        return f"{', '.join(map(str, group))}: {people:,}"

    def median(self, name: str) -> int:
        """The largest value that half of the people reach."""
        return int(np.sort(self.columns[name])[self.size // 2])

    def share(self, name: str, value: Any) -> float:
        return float(np.mean(self.columns[name] == value))

    def vectors(self, names: Sequence[str]) -> Floats:
        """What a linear model sees: numbers between -1 and 1 by their declared bounds, a coordinate for each level."""
        found: list[Any] = []
        for name in names:
            column, values = self.domain.column(name), self.columns[name]
            if isinstance(column, Number):
                found.append(2 * (values - float(column.low)) / float(column.high - column.low) - 1)
            else:
                found += [(values == level).astype(float) for level in column.levels]  # type: ignore[union-attr]
        return np.column_stack(found)


def _declared(values: Any, domain: Domain, name: str) -> npt.NDArray[Any]:
    found = values.to_numpy()
    column = domain.column(name)
    if not isinstance(column, Number):
        return np.asarray(found)
    low, high, step = float(column.low), float(column.high), float(column.step)
    return np.asarray(low + step * np.floor((np.clip(found, low, high) - low) / step))


def grouped(columns: Sequence[Any]) -> Counter[Any]:
    """How often each combination of values occurs."""
    return Counter(columns[0].tolist() if len(columns) == 1 else zip(*(each.tolist() for each in columns), strict=True))


def apart(one: Counter[Any], other: Counter[Any]) -> float:
    """Total variation: the share of the people who would have to move to turn one distribution into the other."""
    first, second = one.total(), other.total()
    return sum(abs(one[key] / first - other[key] / second) for key in one | other) / 2


# The best linear model, without privacy.


def capped_logistic(margins: Floats) -> Floats:
    """The loss that LogisticRegression minimises: logistic, and a line of slope 1/2 where it is steeper."""
    return np.asarray(np.log1p(np.exp(-np.maximum(margins, 0))) + np.maximum(-margins, 0) / 2)


def capped_logistic_slope(margins: Floats) -> Floats:
    return np.asarray(-1 / (1 + np.exp(np.maximum(margins, 0))))


def huber(misses: Floats, bend: float) -> Floats:
    """The loss that LinearRegression minimises: the squared miss, and a line where it misses by more than the bend."""
    cut = np.minimum(np.abs(misses), bend)
    return np.asarray(cut * (2 * np.abs(misses) - cut))


def huber_slope(misses: Floats, bend: float) -> Floats:
    return np.asarray(2 * np.clip(misses, -bend, bend))


def minimised(vectors: Floats, slope: Slope, *, curvature: float, radius: float, steps: int = 2000) -> Floats:
    """The coefficients of length at most radius with the least mean loss; slope is of the loss in the predictions.

    Accelerated projected gradient descent on the exact rows.
    """
    rate = 1 / (curvature * float(np.max(np.sum(vectors**2, axis=1))))
    at = ahead = np.zeros(vectors.shape[1])
    momentum = 1.0
    for _ in range(steps):
        moved = ahead - rate * (slope(vectors @ ahead) @ vectors) / len(vectors)
        moved *= min(1.0, radius / max(float(np.linalg.norm(moved)), 1e-12))
        faster = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = moved + (momentum - 1) / faster * (moved - at)
        at, momentum = moved, faster
    return at


def ranked_right(scores: Floats, positive: npt.NDArray[np.bool_]) -> float:
    """How often somebody of the positive class has the higher score of two, a tie counting half (AUC)."""
    values, place = np.unique(scores, return_inverse=True)
    yes, no = (np.bincount(place[mask], minlength=len(values)) for mask in (positive, ~positive))
    return float(yes @ (np.cumsum(no) - no / 2) / (yes.sum() * no.sum()))
