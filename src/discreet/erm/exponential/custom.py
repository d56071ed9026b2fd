"""The exponential mechanism over any bounded loss of a user's own, convex or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet import exact
from discreet.data import Batch, Dataset, Facts, Floats, Ints
from discreet.erm.exponential.grid_points import Lattice
from discreet.erm.feasible_sets import FeasibleSet
from discreet.erm.risk import public_size
from discreet.errors import ParameterError
from discreet.query import alone
from discreet.records import record
from discreet.rng import Rng

_LOSS_STEPS = 2**20  # integers between 0 and the bound


@dataclass(frozen=True, slots=True)
class CustomLoss:
    """Any bounded loss: loss(points, row) -> one number for each of the points, an (N, dimension) array.

    Each row {column: value} is shown alone; numbers are cut to [0, bound], and a row for which the function fails, or
    does not return N numbers, counts as 0; so does a NaN. The function must keep no memory of rows.

    regularizer  any function of the points, regularizer(points) -> N numbers
    lipschitz    the owner states how steep the loss is; only a promise about the excess risk rests on it
    label        what the ledger calls it: a function cannot be recorded, its bound and its label are
    """

    NAME: ClassVar[str] = "custom-loss/1"
    loss: Callable[[Floats, dict[str, Any]], Any]
    bound: Fraction
    label: str
    feasible: FeasibleSet
    dimension: int = 1
    regularizer: Callable[[Floats], Any] | None = None
    lipschitz: Fraction | None = None

    def __post_init__(self) -> None:
        if not callable(self.loss):
            raise ParameterError(f"loss must be a function of (points, row), found {self.loss!r}")
        if self.regularizer is not None and not callable(self.regularizer):
            raise ParameterError(f"regularizer must be a function of the points, found {self.regularizer!r}")
        exact.text(label=self.label)
        exact.freeze(
            self,
            bound=exact.moderate(bound=self.bound),
            dimension=exact.whole(dimension=self.dimension),
            lipschitz=None if self.lipschitz is None else exact.positive(lipschitz=self.lipschitz),
        )

    def stated_record(self) -> dict[str, Any]:
        stated = {"label": record(self.label), "bound": record(self.bound), "dimension": self.dimension}
        return {"name": self.NAME, **stated, "feasible": record(self.feasible)}


class CustomProblem:
    """A user's own loss."""

    def __init__(self, risk: CustomLoss, points: int, facts: Facts) -> None:
        self.risk = risk
        self.lattice = Lattice.of(risk.feasible, risk.dimension, points)
        self.unit = risk.bound / _LOSS_STEPS
        self.range = _LOSS_STEPS
        self.row_error = float(self.unit)
        self.highest = 2**62
        self.base = np.zeros(1, dtype=np.int64)
        if risk.regularizer is not None:
            self.base = _user_penalty(risk.regularizer, self.points(), public_size(facts) / self.unit)

    def draw(self, data: Dataset, rate: Fraction, rng: Rng) -> Floats:
        points = self.points()
        heights = data.exact_sum(lambda batch: self.summed(batch, points))
        found: Floats = points[rng.select(-(heights + self.base), rate)].copy()
        return found

    def points(self) -> Floats:
        """All points of the grid; a user's function cannot change them."""
        points = self.lattice.listed()
        points.flags.writeable = False
        return points

    def summed(self, batch: Batch, points: Floats) -> Ints:
        """The sums over a batch of the integers of its rows, each computed alone."""
        total = np.zeros(len(points), dtype=np.int64)
        for row in batch.plain_rows():
            total += self._steps(points, row)
        return total

    def _steps(self, points: Floats, row: dict[str, Any]) -> Ints:
        found = alone(lambda row: np.array(self.risk.loss(points, row), float).reshape(len(points)), row, np.nan)
        cut = np.clip(np.where(np.isnan(found), 0.0, found) * np.ones(len(points)), 0.0, float(self.risk.bound))
        steps: Ints = np.floor(cut / float(self.risk.bound) * _LOSS_STEPS).astype(np.int64)
        return steps


def _user_penalty(regularizer: Callable[[Floats], Any], points: Floats, steps: Fraction) -> Ints:
    """A user's regularizer in integers: public, so whatever is wrong with it is said."""
    try:
        found = np.array(regularizer(points), dtype=np.float64).reshape(len(points))
    except Exception as error:
        raise ParameterError(f"the regularizer failed on the grid's {len(points)} points: {error}") from None
    steps_found = found * float(steps)
    if not np.isfinite(steps_found).all() or float(np.abs(steps_found).max(initial=0.0)) >= 2**61:
        raise ParameterError("the regularizer must give finite numbers that do not dwarf the bound of the loss")
    return np.rint(steps_found).astype(np.int64)
