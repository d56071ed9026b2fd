"""One number of one column: the mean, the median, a quantile. The lectures' problems in one dimension."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import exact
from discreet.data import AnyNumber, Dataset, Domain, Number
from discreet.erm.exponential.bounds import RankQuantile, promise
from discreet.erm.feasible_sets import interval
from discreet.erm.features import Constant
from discreet.erm.losses import Absolute, Loss, Pinball, Squared
from discreet.erm.promise import Promise, mean_promise
from discreet.erm.risk import Risk, public_size
from discreet.erm.solvers import Offer, choose
from discreet.errors import ParameterError, Unproven
from discreet.estimators import input as reading
from discreet.estimators.base import Books, PrivateEstimator, books, charged, per_row, refuse, terms_of
from discreet.funds import Funds
from discreet.guarantee import Neighbours
from discreet.mechanisms import Gaussian, GaussianNoise, Laplace, LaplaceNoise, calibrate
from discreet.query import Sum
from discreet.release import Released

_BETA = 0.05
"""Of a promise in rows, when there is none about the loss."""


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

    @property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """The declared bounds; ParameterError if there are none."""
        if isinstance(self.number, AnyNumber):
            raise ParameterError(
                f"column {self.name!r} is declared {self.number!r}: without bounds only the ranks of a quantile are "
                'private, method="auto" or "rank"; suggest_bounds finds bounds'
            )
        return self.number.low, self.number.high

    @property
    def count(self) -> Fraction:
        """The number that sums are divided by: of the rows that are here, as far as it is public."""
        return public_size(self.data.facts) * reading.share_of(self.data)


def _fit(estimator: Any, x: Any, name: Any, loss: Loss) -> None:
    terms = terms_of(estimator)
    table = reading.is_table(x)
    column = _table_column(estimator, terms, x, name) if table else _values(estimator, terms, x, name)
    where = books(terms, column.data, about=column.name if table else None)
    taken = _offer(estimator.method, column, loss, where)
    got = charged(estimator, terms, where, taken.mechanism, column.data)
    estimator.method_, estimator.promise_ = taken.solver, taken.promise
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


def _offer(solver: Any, column: Column, loss: Loss, where: Books) -> Offer:
    if isinstance(loss, (Absolute, Pinball)) and solver in ("auto", "rank"):
        return _rank(loss, column, where.funds)
    low, high = column.bounds
    if isinstance(loss, Squared) and solver == "auto":
        # Under add-remove there is no public number to divide a sum by; this release needs none.
        if column.data.facts.neighbours == Neighbours("add-remove"):
            return _offer("exponential", column, loss, where)
        return _least_noisy_sum(column, where)
    if isinstance(loss, Squared) and solver in ("laplace", "gaussian"):
        return _noisy_sum(solver, column, where.funds)
    risk = Risk(loss, Constant(), column.name, interval(low, high))
    found = choose(risk, facts=column.data.facts, funds=where.funds, method=solver)
    assert found.promise is not None
    return Offer(found.solver, found.mechanism, per_row(found.promise, reading.share_of(column.data)))


def _least_noisy_sum(column: Column, where: Books) -> Offer:
    laplace = _noisy_sum("laplace", column, where.funds)
    if where.funds.pure:
        return laplace
    try:
        gaussian = _noisy_sum("gaussian", column, where.funds)
    except ParameterError:  # the book that it is charged in may be full
        return laplace
    return min((laplace, gaussian), key=lambda each: _noise_of(each.mechanism).variance())


def _noisy_sum(solver: str, column: Column, funds: Funds) -> Offer:
    """The sum plus the least noise of this kind that is admitted."""
    if column.data.facts.neighbours.rows > 1:
        raise Unproven(
            "a mean is a sum over a number of rows, which is private where a person may have several: ask a session "
            f"for AVG({column.name}), or take Median"
        )
    query, kind = Sum(column.name), Laplace if solver == "laplace" else Gaussian
    mechanism = calibrate(lambda scale: kind(query, scale), funds=funds, facts=column.data.facts)
    low, high = column.bounds
    promised = mean_promise(
        _noise_of(mechanism).variance(),
        count=float(column.count),
        half=float(high - low) / 2,
        facts=column.data.facts,
    )
    return Offer(solver, mechanism, promised)


def _noise_of(mechanism: Laplace | Gaussian) -> LaplaceNoise | GaussianNoise:
    return LaplaceNoise(mechanism.scale) if isinstance(mechanism, Laplace) else GaussianNoise(mechanism.scale)


def _rank(loss: Absolute | Pinball, column: Column, funds: Funds) -> Offer:
    """The exponential mechanism on ranks; its promise is about the pinball loss, of which |u| is twice the median's."""
    q, times = (loss.q, 1) if isinstance(loss, Pinball) else (Fraction(1, 2), 2)
    mechanism = calibrate(lambda noise: RankQuantile(column.name, q, 1 / noise), funds=funds, facts=column.data.facts)
    if isinstance(column.number, AnyNumber):
        return Offer("rank", mechanism, Promise(None, "ranks", _in_rows(mechanism, column.number)))
    if column.data.facts.size is None:
        return Offer("rank", mechanism, Promise(None, "ranks", "the number of rows is private"))
    promised = promise(mechanism, column.data.facts)
    return Offer("rank", mechanism, per_row(promised, reading.share_of(column.data) / times))


def _in_rows(mechanism: RankQuantile, number: AnyNumber) -> str:
    missed = math.ceil((math.log(number.size) - math.log(_BETA)) / mechanism.rate)
    return (
        "the column has no bounds, so nothing about the loss; in ranks, the value misses the quantile by fewer than "
        f"{missed:,} rows with probability {1 - _BETA:g}"
    )


def _value(got: Released, column: Column) -> tuple[float, float | None]:
    """The value, inside the bounds, and the noise range if it is a number plus noise.

    Under add-remove there is none: the sum has a noise range, but its quotient by a declared size is no mean.
    """
    found, spread = float(np.ravel(got.value)[0]), None
    if isinstance(got.mechanism, (Laplace, Gaussian)):
        found /= float(column.count)
        if column.data.facts.neighbours.replace_one:
            spread = got.noise_range(0.95) / float(column.count)
    if isinstance(column.number, AnyNumber):
        return found, spread
    inside = min(max(found, float(column.number.low)), float(column.number.high))
    return inside + float(column.offset), spread
