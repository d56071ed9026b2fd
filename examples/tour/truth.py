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

import discreet as dp

Floats = npt.NDArray[np.float64]
Loss = Callable[[Floats], tuple[Floats, Floats]]
"""The losses of predictions, and their slopes."""
Condition = tuple[str, str, Any]
"""Column, "=" or ">=", value."""


class Truth:
    """The columns of a Parquet file, and exact answers about them."""

    def __init__(self, path: Path, domain: dp.Domain) -> None:
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
            if column.bounded:
                found.append(2 * (values - float(column.low)) / float(column.high - column.low) - 1)
            else:
                found += [(values == level).astype(float) for level in column.labels()]
        return np.column_stack(found)


def _declared(values: Any, domain: dp.Domain, name: str) -> npt.NDArray[Any]:
    found = values.to_numpy()
    column = domain.column(name)
    if not column.bounded:
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


def capped_logistic(margins: Floats) -> tuple[Floats, Floats]:
    """The loss that LogisticRegression minimises, and its slope: logistic, and a line where it is steeper than 1/2."""
    above = np.maximum(margins, 0)
    return np.log1p(np.exp(-above)) + np.maximum(-margins, 0) / 2, -1 / (1 + np.exp(above))


def huber(misses: Floats, bend: float) -> tuple[Floats, Floats]:
    """The loss that LinearRegression minimises, and its slope: the square, and a line above the bend."""
    cut = np.clip(misses, -bend, bend)
    return cut * (2 * misses - cut), 2 * cut


def best_model(vectors: Floats, loss: Loss, *, radius: float) -> Floats:
    """The coefficients of length at most radius with the least mean loss of their predictions."""
    from scipy.optimize import minimize

    def risk(at: Floats) -> tuple[float, Floats]:
        losses, slopes = loss(vectors @ at)
        return float(np.mean(losses)), slopes @ vectors / len(vectors)

    ball = {"type": "ineq", "fun": lambda at: radius**2 - at @ at, "jac": lambda at: -2 * at}
    start = np.zeros(vectors.shape[1])
    found = minimize(risk, start, jac=True, method="SLSQP", constraints=ball, options={"ftol": 1e-12, "maxiter": 1000})
    return np.asarray(found.x)
