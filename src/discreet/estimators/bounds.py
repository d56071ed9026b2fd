"""Bounds from the rows themselves, charged like any release: `suggest_bounds`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace

from discreet import exact
from discreet.data import ParquetTable, Table
from discreet.domain import AnyNumber, Number, spell
from discreet.errors import ParameterError
from discreet.estimators import rows as reading
from discreet.estimators.base import FitGuarantee, books, terms_of
from discreet.estimators.interior import charged_once
from discreet.exact import Exact
from discreet.ledger import Ledger
from discreet.mechanism import calibrate
from discreet.pac.bounds import RankBounds, declaration


@dataclass(frozen=True, slots=True)
class Suggested:
    """Released bounds of a column, short decimals, and what is promised about them.

    number     the declaration to use from now on: a table with this column redeclared goes on with the same ledger
    """

    column: str
    number: Number
    promise: str
    guarantee: FitGuarantee
    entry: int

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
    epsilon: Exact | None = None,
    delta: Exact = 0,
    coverage: Exact = 0.98,
    beta: Exact = 0.05,
) -> Suggested:
    """Bounds within which about `coverage` of the rows lie, for a column declared Number.any() (or a wide Number).

        found = dp.suggest_bounds(table, "income", ledger=ledger, epsilon=0.1)
        table = dp.Table(frame, dp.Domain({**domain, "income": found.number}), name=table.identity.name)

    The second line declares the column anew; the table goes on with the same ledger, which knows what the bounds cost.

    epsilon, delta  what it may cost; epsilon=None: all that is left in the ledger
    coverage        the bounds are the (1 - coverage) / 2 quantile and its mirror, rounded outward
    """
    terms = terms_of(SimpleNamespace(ledger=ledger, neighbours="replace-one", size=None, epsilon=epsilon, delta=delta))
    if not reading.is_table(table):
        raise ParameterError(f"suggest_bounds needs a Table, found a {type(table).__name__}")
    data = reading.checked_table(table, terms)
    declared = data.facts.domain.column(exact.text(column=column))
    if not isinstance(declared, (Number, AnyNumber)):
        raise ParameterError(f"column {column!r} is declared {declared!r}: bounds are for a Number")
    wanted, sure = exact.probability(coverage=coverage), exact.probability(beta=beta)
    mechanism = calibrate(lambda noise: RankBounds(column, wanted, 1 / noise), admits=books(terms, data).admits)
    got, guarantee = charged_once(terms, data, mechanism, memo="suggest_bounds")
    missed = mechanism.missed(data.facts, float(sure))
    promise = (
        f"with probability {float(1 - sure):g} fewer than {spell((1 - wanted) / 2 * 100)} % of the rows and "
        f"{missed:,} more lie below, and as few above"
    )
    return Suggested(column, declaration(declared, *got.value), promise, guarantee, got.entry)
