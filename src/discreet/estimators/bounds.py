"""Bounds from the rows themselves, charged like any release: `suggest_bounds`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace

from discreet import exact
from discreet.data import AnyNumber, Number, ParquetTable, Table
from discreet.errors import ParameterError
from discreet.estimators import input as reading
from discreet.estimators.base import FitGuarantee, Task, terms_of
from discreet.exact import Exact
from discreet.ledger import Ledger
from discreet.mechanisms import calibrate
from discreet.pac import RankBounds, declaration


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
    table: Table | ParquetTable,
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

    The second line declares the column anew; the table goes on with the same ledger, which knows what the bounds cost.

    epsilon, delta  what it may cost; epsilon=None: all that is left in the ledger, or under the allowance's name
    coverage        the bounds are the (1 - coverage) / 2 quantile and its mirror, rounded outward. None: the widest
                    that are sure to lie among the rows, for this many rows and this epsilon; too few rows are refused

    Ranks are found to within so many rows (a few hundred at epsilon 1, a few thousand at 0.1); a quantile nearer to the
    end than that could be anywhere beyond the rows, so it is refused when the number of rows is public.
    """
    sure = exact.probability(beta=beta)
    share = None if coverage is None else exact.probability(coverage=coverage)
    asked = SimpleNamespace(ledger=ledger, neighbours="replace-one", size=None, epsilon=epsilon, delta=delta)
    asked.allowance = allowance
    terms = terms_of(asked, problem=["suggest_bounds", sure, share])
    if not reading.is_table(table):
        raise ParameterError(f"suggest_bounds needs a Table, found a {type(table).__name__}")
    data = reading.checked_table(table, terms)
    declared = data.facts.domain.column(exact.text(column=column))
    if not isinstance(declared, (Number, AnyNumber)):
        raise ParameterError(f"column {column!r} is declared {declared!r}: bounds are for a Number")
    fit = Task.of(terms, data, about=column)
    first = calibrate(lambda noise: RankBounds(column, Fraction(1, 2), 1 / noise), funds=fit.funds, facts=data.facts)
    wanted = _coverage(share, first.missed(data.facts, float(sure)), data.facts.size)
    mechanism = calibrate(lambda noise: RankBounds(column, wanted, 1 / noise), funds=fit.funds, facts=data.facts)
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
