"""One number of one column: the mean, the median, a quantile. The lectures' problems in one dimension."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import exact
from discreet.data import AnyNumber, Dataset, Domain, Number
from discreet.erm.location import methods
from discreet.erm.losses import Absolute, Loss, Pinball, Squared
from discreet.erm.risk import public_size
from discreet.errors import ParameterError
from discreet.estimators import input as reading
from discreet.estimators.base import PrivateEstimator, Task, refuse, terms_of
from discreet.mechanisms import Gaussian, Laplace
from discreet.method import choose
from discreet.release import Released


@dataclass(kw_only=True, repr=False, eq=False)
class Mean(PrivateEstimator):
    """The mean of a column under differential privacy.

    epsilon, delta  what it may cost; delta=0 is pure. epsilon=None with a ledger: all that is left there
    bounds          a pair (low, high), from public knowledge; values beyond are moved to the bound
    step            values are rounded down to steps of this from low; (high - low) / 2^30 unless it is given
    method          "auto": a noisy sum divided by the public number of rows, whose expected squared error is that of
                    the noise, the less noisy of "laplace" and "gaussian"; or another name of
                    `discreet.erm.solvers.SOLVERS`, such as "exponential" (lecture 9) or "descent" (lecture 10)
    neighbours, size, ledger, allowance  as in LinearRegression. Under add-remove the number of rows is private: "auto"
                    is then "exponential", whose value does not depend on the declared size. "laplace" and "gaussian"
                    divide by that size, so they promise nothing; a session's SELECT AVG(...) divides by a noisy count

    Learned: value_, noise_range_ (95 %; None if the release is not a mean plus noise), guarantee_, promise_, method_,
    mechanism_, entry_, replayed_.

    fit(x) takes a list, an array or a series; fit(table, "age") a column of a table with its ledger, whose declaration
    has the bounds.
    """

    bounds: Any = None
    step: Any = None
    method: str = "auto"

    def fit(self, x: Any, column: Any = None, **refused: Any) -> Mean:
        """Fit to the values x, or to a table and the name of a column."""
        refuse(refused)
        _fit(self, x, column, Squared())
        return self


@dataclass(kw_only=True, repr=False, eq=False)
class Median(PrivateEstimator):
    """The median of a column under differential privacy: Quantile(0.5); its parameters but q."""

    bounds: Any = None
    step: Any = None
    method: str = "auto"

    def fit(self, x: Any, column: Any = None, **refused: Any) -> Median:
        """Fit to the values x, or to a table and the name of a column."""
        refuse(refused)
        _fit(self, x, column, Absolute())
        return self


@dataclass(kw_only=True, repr=False, eq=False)
class Quantile(PrivateEstimator):
    """The q-quantile of a column under differential privacy, 0 < q < 1.

    method  "auto" or "rank": the exponential mechanism on ranks, which asks how many rows are on the wrong side; or
            another name of `discreet.erm.solvers.SOLVERS` on the pinball loss, which asks how far they are

    The other parameters and what is learned are those of Mean. The value is one of the grid: low + k * step. A column
    of a table may be declared Number.any(): then only ranks are asked, and the promise is in rows.
    """

    q: Any = field(default=0.5, kw_only=False)
    bounds: Any = None
    step: Any = None
    method: str = "auto"

    def fit(self, x: Any, column: Any = None, **refused: Any) -> Quantile:
        """Fit to the values x, or to a table and the name of a column."""
        refuse(refused)
        _fit(self, x, column, Pinball(exact.probability(q=self.q)))
        return self


@dataclass(frozen=True, slots=True)
class Column:
    """A private column, its declaration, and what was subtracted from its values."""

    data: Dataset
    name: str
    number: Number | AnyNumber
    offset: Fraction


def _fit(estimator: Any, x: Any, name: Any, loss: Loss) -> None:
    terms = terms_of(estimator)
    table = reading.is_table(x)
    column = _table_column(estimator, terms, x, name) if table else _values(estimator, terms, x, name)
    fit, facts = Task.of(terms, column.data, about=column.name if table else None), column.data.facts
    listed = methods(loss, column.name, facts, fit.funds, share=reading.share_of(column.data))
    got = fit.learn(estimator, choose(listed, estimator.method, facts.size))
    estimator.value_, estimator.noise_range_ = _value(got, column)


def _table_column(estimator: Any, terms: Any, table: Any, name: Any) -> Column:
    data = reading.checked_table(table, terms)
    if estimator.bounds is not None or estimator.step is not None:
        raise ParameterError("bounds and step belong to arrays; the column's declaration in the table has them")
    number = data.facts.domain.column(exact.text(column=name))
    if not isinstance(number, (Number, AnyNumber)) or number.missing:
        raise ParameterError(
            f"column {name!r} must be a Number that is never missing, it is declared {number!r}; a session's "
            "SELECT AVG(...) leaves missing values out"
        )
    return Column(data, name, number, Fraction(0))


def _values(estimator: Any, terms: Any, x: Any, name: Any) -> Column:
    if name is not None:
        raise ParameterError("column names a column of a Table; give the values of an array or a frame themselves")
    if estimator.bounds is None:
        raise ParameterError(
            "bounds must be given: a pair (low, high), from public knowledge; values beyond it are moved to it"
        )
    low, high = reading.bounds_of("bounds", estimator.bounds)
    middle, half = (low + high) / 2, (high - low) / 2
    step = 2 * half / reading.GRID if estimator.step is None else exact.positive(step=estimator.step)
    number = Number(-half, half, step=step)  # around 0, where a sum moves least
    values = _one_dimensional(x)
    return Column(
        reading.table_of(terms, {"x": values - float(middle)}, Domain(x=number), len(values)), "x", number, middle
    )


def _one_dimensional(x: Any) -> npt.NDArray[np.float64]:
    found = reading.converted(x, "x", "numeric")
    if found.dtype.kind not in "biuf":
        raise ParameterError("x must hold numbers, found another kind")
    values = found.astype(np.float64)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ParameterError(f"x must be one column of numbers, found {values.ndim} dimensions")
    if not np.isfinite(values).all():
        raise ParameterError("x holds NaN or infinite numbers")
    return np.asarray(values)


def _value(got: Released, column: Column) -> tuple[float, float | None]:
    """The value, inside the bounds, and the noise range if it is a number plus noise.

    Under add-remove there is none: the sum has a noise range, but its quotient by a declared size is no mean.
    """
    found, spread = float(np.ravel(got.value)[0]), None
    if isinstance(got.mechanism, (Laplace, Gaussian)):
        count = float(public_size(column.data.facts) * reading.share_of(column.data))
        found /= count
        if column.data.facts.neighbours.replace_one:
            spread = got.noise_range(0.95) / count
    if isinstance(column.number, AnyNumber):
        return found, spread
    inside = min(max(found, float(column.number.low)), float(column.number.high))
    return inside + float(column.offset), spread
