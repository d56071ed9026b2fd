"""The exponential mechanism over any bounded loss of a user's own, convex or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet.core import ParameterError, Rng, exact, record
from discreet.data import Batch, Dataset, Facts, Floats, Ints
from discreet.erm.exponential.grid_points import Cover, Lattice
from discreet.erm.feasible_sets import FeasibleSet
from discreet.erm.risk import public_size
from discreet.query import alone

MOST_AXES_LISTED = 3
MOST_LISTED = 2**22  # points of a grid that is listed
MOST_WORK = 2**36  # losses that are computed for it
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

    def centre_excess(self, facts: Facts) -> float:
        """What any point can be worse than the best, at most."""
        return float(self.bound) * facts.neighbours.rows

    def sum_slope(self, facts: Facts, beyond: float) -> float | None:
        """How steep the sum of the losses is, if the owner states it."""
        if self.lipschitz is None or self.regularizer is not None:
            return None
        return public_size(facts) * facts.neighbours.rows * float(self.lipschitz)

    def stated_record(self) -> dict[str, Any]:
        stated = {"label": record(self.label), "bound": record(self.bound), "dimension": self.dimension}
        return {"name": self.NAME, **stated, "feasible": record(self.feasible)}


class CustomProblem:
    """A user's own loss on a grid that is listed; the attributes are those of `grid.LinearProblem`."""

    convex = False

    def __init__(self, risk: CustomLoss, points: int, facts: Facts) -> None:
        if risk.dimension > MOST_AXES_LISTED:
            raise ParameterError(
                f"a grid of any loss is for at most {MOST_AXES_LISTED} dimensions, found {risk.dimension}"
            )
        work = points**risk.dimension * max(1, facts.size or 1) * facts.neighbours.rows
        if points**risk.dimension > MOST_LISTED or work > MOST_WORK:
            raise ParameterError(
                f"{points} points on each of {risk.dimension} axes are more than 2**22, or more than 2**36 losses of "
                "all rows: take fewer"
            )
        self.risk, self.dimension = risk, risk.dimension
        self.lattice = Lattice.of(risk.feasible, risk.dimension, points)
        self.unit = risk.bound / _LOSS_STEPS
        self.range, self.row_error, self.highest = _LOSS_STEPS, float(self.unit), 2**62
        self.base = np.zeros(1, dtype=np.int64)
        if risk.regularizer is not None:
            self.base = self._penalty(risk.regularizer, public_size(facts) / self.unit)

    def cover(self) -> Cover:
        return Cover.of(self.lattice, self.risk.feasible)

    def draw(self, data: Dataset, rate: Fraction, rng: Rng) -> Floats:
        points = self.points()
        heights = data.exact_sum(lambda batch: self.summed(batch, points))
        return np.asarray(points[rng.select(-(heights + self.base), rate)]).copy()

    def points(self) -> Floats:
        """All points of the grid; a user's function cannot change them."""
        points = self.lattice.listed()
        points.flags.writeable = False
        return points

    def summed(self, batch: Batch, points: Floats) -> Ints:
        """The sums over a batch of the integers of its rows, each computed alone."""

        def losses(row: dict[str, Any]) -> Floats:
            return np.array(self.risk.loss(points, row), float).reshape(len(points))

        total, bound = np.zeros(len(points), dtype=np.int64), float(self.risk.bound)
        for row in batch.plain_rows():
            values = alone(losses, row, np.nan)
            cut = np.clip(np.where(np.isnan(values), 0.0, values) * np.ones(len(points)), 0.0, bound)
            total += np.floor(cut / bound * _LOSS_STEPS).astype(np.int64)
        return total

    def _penalty(self, regularizer: Callable[[Floats], Any], steps: Fraction) -> Ints:
        """A user's regularizer in integers: public, so whatever is wrong with it is said."""
        points = self.points()
        try:
            values = np.array(regularizer(points), dtype=np.float64).reshape(len(points)) * float(steps)
        except Exception as error:
            raise ParameterError(f"the regularizer failed on the grid's {len(points)} points: {error}") from None
        if not np.isfinite(values).all() or float(np.abs(values).max(initial=0.0)) >= 2**61:
            raise ParameterError("the regularizer must give finite numbers that do not dwarf the bound of the loss")
        return np.rint(values).astype(np.int64)
