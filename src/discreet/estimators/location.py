"""One column: its mean, its median, a quantile, a point between its values, and bounds for it.

The lectures' problems in one dimension. `Mean`, `Median` and `Quantile` are estimators of one number; `interior_point`
releases one private point between the smallest and the largest of some values; `suggest_bounds` releases bounds for a
column that has none, from the rows themselves, charged like any release.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from discreet.core import Exact, Neighbours, ParameterError, exact
from discreet.data import AnyNumber, Dataset, Domain, Facts, Integers, Number
from discreet.erm import Absolute, Loss, Pinball, Squared, public_size
from discreet.erm.location import methods
from discreet.estimators import input as reading
from discreet.estimators import model_file
from discreet.estimators.base import FitGuarantee, PrivateEstimator, Task, Terms, refuse, require_parameters, terms_of
from discreet.ledger import Ledger
from discreet.mechanisms import calibrate
from discreet.method import Method, choose
from discreet.pac import MOST_BITS, RankBounds, declaration, interior_methods, ordered


@dataclass(kw_only=True, repr=False, eq=False)
class ColumnEstimator(PrivateEstimator):
    """What the mean, the median and a quantile share; the value minimises `_loss`."""

    NEEDS: ClassVar[tuple[str, ...]] = ("bounds",)

    bounds: Any = None
    step: Any = None
    method: str = "auto"

    def _loss(self) -> Loss:
        raise NotImplementedError

    def _learned_state(self) -> model_file.State:
        return {"value": self.value_, "noise_range": self.noise_range_}

    def _restore_learned(self, state: object) -> None:
        found = model_file.keys(state, "value", "noise_range")
        self.value_ = model_file.number(found["value"])
        self.noise_range_ = model_file.optional(found["noise_range"], model_file.number)

    def fit(self, x: Any, column: Any = None, **refused: Any) -> Self:
        """Fit to the values x, or to a table and the name of a column."""
        refuse(refused)
        table = reading.is_table(x)
        require_parameters(self, table=table)
        loss, terms = self._loss(), terms_of(self)
        data, name, offset = _table_column(self, terms, x, column) if table else _values(self, terms, x, column)
        fit, facts, share = Task.of(terms, data, about=name if table else None), data.facts, reading.share_of(data)
        listed = methods(loss, name, facts, fit.funds, share=share)
        got = fit.learn(self, choose(listed, self.method, facts.size))
        value, declared, self.noise_range_ = float(np.ravel(got.value)[0]), facts.domain.column(name), None
        if hasattr(got.mechanism, "noise_range"):  # a sum plus noise
            count = float(public_size(facts) * share)
            value /= count
            if facts.neighbours.replace_one:  # the quotient of a sum by a declared size is no mean
                self.noise_range_ = got.noise_range(0.95) / count
        if declared.bounded:
            value = min(max(value, float(declared.low)), float(declared.high)) + float(offset)
        self.value_, self.target_ = value, Domain({name: declared}) if table else None
        return self


@dataclass(kw_only=True, repr=False, eq=False)
class Mean(ColumnEstimator):
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

    KIND: ClassVar[str] = "mean"

    def _loss(self) -> Loss:
        return Squared()


@dataclass(kw_only=True, repr=False, eq=False)
class Median(ColumnEstimator):
    """The median of a column under differential privacy: Quantile(0.5); its parameters but q."""

    KIND: ClassVar[str] = "median"

    def _loss(self) -> Loss:
        return Absolute()


@dataclass(kw_only=True, repr=False, eq=False)
class Quantile(ColumnEstimator):
    """The q-quantile of a column under differential privacy, 0 < q < 1.

    method  "auto" or "rank": the exponential mechanism on ranks, which asks how many rows are on the wrong side; or
            another name of `discreet.erm.solvers.SOLVERS` on the pinball loss, which asks how far they are

    The other parameters and what is learned are those of Mean. The value is one of the grid: low + k * step. A column
    of a table may be declared Number.any(): then only ranks are asked, and the promise is in rows.
    """

    KIND: ClassVar[str] = "quantile"

    q: Any = field(default=0.5, kw_only=False)

    def _loss(self) -> Loss:
        return Pinball(exact.probability(q=self.q))


def _table_column(estimator: Any, terms: Terms, table: Any, name: Any) -> tuple[Dataset, str, Fraction]:
    """A column of a table, its name, and what was subtracted from its values."""
    data = reading.checked_table(table, terms)
    if estimator.bounds is not None or estimator.step is not None:
        raise ParameterError("bounds and step belong to arrays; the column's declaration in the table has them")
    number = data.facts.domain.column(exact.text(column=name))
    if not number.ordered or number.missing_code is not None:
        raise ParameterError(
            f"column {name!r} must be a Number that is never missing, it is declared {number!r}; a session's "
            "SELECT AVG(...) leaves missing values out"
        )
    return data, name, Fraction(0)


def _values(estimator: Any, terms: Terms, x: Any, name: Any) -> tuple[Dataset, str, Fraction]:
    """The same of values, which are put around 0, where a sum moves least."""
    if name is not None:
        raise ParameterError("column names a column of a Table; give the values of an array or a frame themselves")
    if estimator.bounds is None:
        raise ParameterError(
            "bounds must be given: a pair (low, high), from public knowledge; values beyond it are moved to it"
        )
    low, high = reading.bounds_of("bounds", estimator.bounds)
    step = (high - low) / reading.GRID if estimator.step is None else exact.positive(step=estimator.step)
    domain, middle = Domain(x=Number((low - high) / 2, (high - low) / 2, step=step)), (low + high) / 2
    array = reading.converted(x, "x", "numeric")
    if array.dtype.kind not in "biuf":
        raise ParameterError("x must hold numbers, found another kind")
    values = array.astype(np.float64)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ParameterError(f"x must be one column of numbers, found {values.ndim} dimensions")
    if not np.isfinite(values).all():
        raise ParameterError("x holds NaN or infinite numbers")
    return reading.table_of(terms, {"x": values - float(middle)}, domain, len(values)), "x", middle


# A point between values.


@dataclass(frozen=True, slots=True)
class Interior:
    """A released point, and what is promised about it.

    value      the whole number, or the value of the table's column
    method     how it was found; `needed` values are enough for it
    promise    what is promised here, in words
    entry      the charge in the ledger; None without a ledger of one's own
    replayed   True: this is the stored point of an earlier program, free
    """

    value: int | float
    method: str
    needed: int
    promise: str
    guarantee: FitGuarantee
    entry: int | None
    replayed: bool = False

    def __str__(self) -> str:
        value: int | float | str = self.value
        if isinstance(value, int) and value.bit_length() > 256:  # Python spells no numbers of more than 4300 digits
            value = f"a number of {value.bit_length():,} bits"
        return f"{value}: {self.promise}"


def interior_point(
    values: Iterable[int] | Dataset,
    *,
    bits: int | None = None,
    column: str | None = None,
    epsilon: Exact | None = None,
    delta: Exact = 0,
    beta: Exact = 0.05,
    method: str = "auto",
    neighbours: Neighbours | str = "replace-one",
    size: int | None = None,
    ledger: Ledger | None = None,
    allowance: str | None = None,
) -> Interior:
    """A point between the smallest and the largest value with probability 1 - beta, if there are enough values.

    values          whole numbers 0 <= v < 2**bits, one for each person; bits is public knowledge, at most 2**20.
                    Or a table and the name of a column of numbers: a point of its grid, charged to the table's ledger.
                    The column must fit in memory
    epsilon, delta  what it may cost; delta=0 is pure. epsilon=None with a ledger: all that is left there
    method          "auto": the one whose theorem needs the fewest values; "exponential", "binary-search", "prefix"
                    (delta > 0), or "pair-prefix" (delta > 0), which auto never takes: it pays only on domains whose
                    elements are too long to be written down
    neighbours, size, ledger, allowance  as in LinearRegression

    Fewer values than are needed, or none, are no error: a point is released and nothing is promised about it.
    """
    sure = exact.probability(exact.TINY, beta=beta)
    asked = PrivateEstimator(
        epsilon=epsilon, delta=delta, ledger=ledger, neighbours=neighbours, size=size, allowance=allowance
    )
    terms = terms_of(asked, problem=["interior_point", sure, method])
    data, name = _read(terms, values, bits, column)
    fit = Task.of(terms, data, about=name if reading.is_table(values) else None)
    listed = interior_methods(facts=data.facts, column=name, beta=sure, funds=fit.funds)
    taken = listed.smallest(0) if method == "auto" else listed.named(method)
    charge = fit.release(taken.mechanism(0), memo="interior_point")
    value: Any = ordered(data.facts.domain, name).label(charge.value)
    promise, replayed = _promised(taken, data.facts, name), charge.released.replayed
    return Interior(value, taken.name, taken.needed(0), promise, charge.guarantee, charge.entry, replayed)


def _read(terms: Terms, values: Any, bits: int | None, column: str | None) -> tuple[Dataset, str]:
    if reading.is_table(values):
        if bits is not None:
            raise ParameterError("bits belong to whole numbers; the column's declaration in the table has its grid")
        data = reading.checked_table(values, terms)
        ordered(data.facts.domain, exact.text(column=column))
        return data, exact.text(column=column)
    if column is not None:
        raise ParameterError("column names a column of a Table; give the whole numbers themselves")
    if not isinstance(values, Iterable) or isinstance(values, (str, dict)):
        raise ParameterError(f"values must be a list of whole numbers or a table, found a {type(values).__name__}")
    if bits is None:
        raise ParameterError("bits must be given: every value is below 2**bits, from public knowledge")
    length = exact.whole(bits=bits)
    if length > MOST_BITS:
        raise ParameterError(f"bits must be at most 2**20, found {length:.3g}")
    return Integers(values, length, neighbours=terms.neighbours, size=terms.size, name=terms.name), "x"


def _promised(taken: Method, facts: Facts, name: str) -> str:
    needed, theorem = taken.needed(0), taken.claim.theorem
    sure = f"between the smallest and the largest value with probability {1 - (taken.claim.beta or 0):g}"
    known = facts.neighbours.replace_one and facts.neighbours.rows == 1
    if not known or facts.domain.column(name).missing_code is not None or facts.size is None:
        return f"{sure}, if there are at least {needed:,} values ({theorem}); how many there are is private"
    if facts.size < needed:
        return f"nothing is promised: {taken.name} needs {needed:,} values, these are {facts.size:,}"
    return f"{sure} ({theorem}: {needed:,} values are enough)"


# Bounds from the rows themselves.


@dataclass(frozen=True, slots=True)
class Suggested:
    """Released bounds of a column, short decimals, and what is promised about them.

    number     the declaration to use from now on: a table with this column redeclared goes on with the same ledger
    replayed   True: these are the stored bounds of an earlier program, free
    """

    column: str
    number: Number
    promise: str
    guarantee: FitGuarantee
    entry: int
    replayed: bool = False

    @property
    def low(self) -> Fraction:
        return self.number.low

    @property
    def high(self) -> Fraction:
        return self.number.high

    @property
    def step(self) -> Fraction:
        return self.number.step

    def __str__(self) -> str:
        return f"{self.column!r}: {self.number!r}    # {self.promise}"


def suggest_bounds(
    table: Dataset,
    column: str,
    *,
    ledger: Ledger,
    allowance: str | None = None,
    epsilon: Exact | None = None,
    delta: Exact = 0,
    coverage: Exact | None = None,
    beta: Exact = 0.05,
) -> Suggested:
    """Bounds within which most rows lie, for a column declared Number.any() (or a wide Number).

        found = dp.suggest_bounds(table, "income", ledger=ledger, epsilon=0.1)
        table = dp.Table(frame, dp.Domain({**domain, "income": found.number}), name=table.identity.name)

    The second line declares the column anew; the table keeps its ledger, which has recorded the price of the bounds.

    epsilon, delta  what it may cost; epsilon=None: all that is left in the ledger, or under the allowance's name
    coverage        the bounds are the (1 - coverage) / 2 quantile and its mirror, rounded outward. None: the widest
                    that are sure to lie among the rows, for this many rows and this epsilon; too few rows are refused

    Ranks are found to within r rows (r is a few hundred at epsilon 1, a few thousand at 0.1); a quantile nearer to the
    end than r rows could be anywhere beyond the rows, so it is refused when the number of rows is public.
    """
    sure = exact.probability(exact.TINY, beta=beta)
    share = None if coverage is None else exact.probability(exact.TINY, coverage=coverage)
    asked = PrivateEstimator(epsilon=epsilon, delta=delta, ledger=ledger, allowance=allowance)
    terms = terms_of(asked, problem=["suggest_bounds", sure, share])
    if not reading.is_table(table):
        raise ParameterError(f"suggest_bounds needs a Table, found a {type(table).__name__}")
    data = reading.checked_table(table, terms)
    declared = data.facts.domain.column(exact.text(column=column))
    if not isinstance(declared, (Number, AnyNumber)):
        raise ParameterError(f"column {column!r} is declared {declared!r}: bounds are for a Number")
    fit = Task.of(terms, data, about=column)

    def ranks(part: Fraction) -> RankBounds:
        return calibrate(lambda noise: RankBounds(column, part, 1 / noise), funds=fit.funds, facts=data.facts)

    wanted = _coverage(share, ranks(Fraction(1, 2)).missed(data.facts, float(sure)), data.facts.size)
    mechanism = ranks(wanted)
    charge = fit.release(mechanism, memo="suggest_bounds")
    missed = mechanism.missed(data.facts, float(sure))
    promise = (
        f"with probability {float(1 - sure):g} at most {float((1 - wanted) / 2):.2%} of the rows plus {missed:,} lie "
        "below, and as few above"
    )
    number, got = declaration(declared, *charge.value), charge.released
    return Suggested(column, number, promise, charge.guarantee, got.entry, got.replayed)


def _coverage(asked: Fraction | None, missed: int, size: int | None) -> Fraction:
    """The coverage that was asked for, or the most for which the bounds lie among the rows; ranks are `missed` off."""
    if size is None:
        return Fraction(98, 100) if asked is None else asked
    least = 4 * missed
    if asked is None and size < least:
        raise ParameterError(f"too few rows: {least:,} are needed to find bounds at this epsilon, found {size:,}")
    if asked is None:
        return 1 - Fraction(2 * missed + 2, size)
    if (1 - asked) / 2 * size <= missed:
        enough, rows = max(0.0, 1 - 2 * (missed + 1) / size), 2 * (missed + 1) / (1 - asked)
        raise ParameterError(
            f"coverage {exact.shown(asked)} needs about {int(rows):,} rows at this epsilon, found {size:,}; with them "
            f"ask for a coverage of at most {enough:.2f}"
        )
    return asked
