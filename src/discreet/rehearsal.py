"""Rehearsals: made-up rows from a declaration, to try questions and prices on before anybody's rows are touched.

The rows are uniform over the declared domain, from a fixed seed: they know nothing about anybody, so everything about
them is free. A rehearsal has a ledger of its own, which counts as a real one would and refuses real tables, as real
ledgers refuse these rows (`Identity.rehearsal`): nobody can spend or spare a budget by mistaking one for the other.
"""

from __future__ import annotations

import functools

from discreet.data import FIRST_EDITION, Domain, Table
from discreet.errors import SchemaError
from discreet.guarantee import Neighbours
from discreet.rng import SeededRng

PEOPLE = 10_000
_SEED = 2026
_NUMBERS = 1_000  # a number without bounds is made up between 0 and this


def made_up(
    domain: Domain,
    *,
    name: str,
    neighbours: Neighbours | str = "replace-one",
    unit: str | None = None,
    rows_per_unit: int | None = None,
    people: int = PEOPLE,
    size: int | None = None,
    edition: str = FIRST_EDITION,
) -> Table:
    """A table of made-up people with this declaration, one row each."""
    rng = SeededRng(_SEED)
    rows: dict[str, list[object]] = {}
    for column in domain:
        label = functools.cache(domain[column].label) if domain[column].listed else int
        codes = domain[column].size if domain[column].listed else _NUMBERS
        rows[column] = [label(int(code)) for code in rng.integers(codes, people)]
    if unit is not None:
        if unit in domain:
            raise SchemaError(f"the unit {unit!r} is declared as a column too: leave one of the two out to rehearse")
        rows[unit] = list(range(people))
    return Table(
        rows,
        domain,
        neighbours=neighbours,
        name=name,
        unit=unit,
        rows_per_unit=rows_per_unit,
        size=size,
        rehearsal=True,
        edition=edition,
    )
