"""One private point between the smallest and the largest of some values: `interior_point`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from discreet import exact
from discreet.data import Dataset, Facts, Integers, ParquetTable, Table
from discreet.errors import ParameterError
from discreet.estimators import input as reading
from discreet.estimators.base import FitGuarantee, Task, Terms, terms_of
from discreet.exact import Exact
from discreet.guarantee import Neighbours
from discreet.ledger import Ledger
from discreet.method import Method
from discreet.pac import ordered
from discreet.pac.interior import methods

MOST_BITS = 2**20


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
        return f"{_shown(self.value)}: {self.promise}"


def interior_point(
    values: Iterable[int] | Table | ParquetTable,
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
    asked = SimpleNamespace(ledger=ledger, neighbours=neighbours, size=size, epsilon=epsilon, delta=delta)
    asked.allowance = allowance
    sure = exact.probability(beta=beta)
    terms = terms_of(asked, problem=["interior_point", sure, method])
    data, name = _read(terms, values, bits, column)
    about = name if reading.is_table(values) else None
    fit = Task.of(terms, data, about=about)
    listed = methods(facts=data.facts, column=name, beta=sure, funds=fit.funds)
    taken = listed.smallest(0) if method == "auto" else listed.named(method)
    charge = fit.release(taken.mechanism(0), memo="interior_point")
    return Interior(
        ordered(data.facts.domain, name).label(charge.value),  # type: ignore[arg-type]
        taken.name,
        taken.needed(0),
        _promised(taken, data.facts, name),
        charge.guarantee,
        charge.entry,
        charge.released.replayed,
    )


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
    needed = taken.needed(0)
    theorem = taken.claim.theorem
    sure = f"between the smallest and the largest value with probability {1 - (taken.claim.beta or 0):g}"
    known = facts.neighbours.replace_one and facts.neighbours.rows == 1
    if not known or facts.domain.column(name).missing_code is not None or facts.size is None:
        return f"{sure}, if there are at least {needed:,} values ({theorem}); how many there are is private"
    if facts.size < needed:
        return f"nothing is promised: {taken.name} needs {needed:,} values, these are {facts.size:,}"
    return f"{sure} ({theorem}: {needed:,} values are enough)"


def _shown(value: int | float) -> str:
    """Python does not spell numbers of more than 4300 digits."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"a number of {value.bit_length():,} bits"
    return str(value)
