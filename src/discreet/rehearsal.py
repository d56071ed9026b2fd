"""Rehearsals: made-up rows from a declaration, to try questions and prices on before anybody's rows are touched.

The rows are uniform over the declared domain, from a fixed seed: they know nothing about anybody, so everything about
them is free. A rehearsal has a ledger of its own, which counts as a real one would and refuses real tables, as real
ledgers refuse these rows (`Identity.rehearsal`): nobody can spend or spare a budget by mistaking one for the other.
"""

from __future__ import annotations

import functools
from typing import Any

from discreet.core import SchemaError, SeededRng
from discreet.data import Domain, Table

PEOPLE = 10_000
_SEED = 2026
_NUMBERS = 1_000  # a number without bounds is made up between 0 and this


def made_up(domain: Domain, *, people: int = PEOPLE, unit: str | None = None, **declared: Any) -> Table:
    """A table of made-up people with this declaration, one row each; `declared` is what `Table` takes besides."""
    rng, rows = SeededRng(_SEED), {}
    for column in domain:
        label = functools.cache(domain[column].label) if domain[column].listed else int
        codes = domain[column].size if domain[column].listed else _NUMBERS
        rows[column] = [label(int(code)) for code in rng.integers(codes, people)]
    if unit is not None:
        if unit in domain:
            raise SchemaError(f"the unit {unit!r} is declared as a column too: leave one of the two out to rehearse")
        rows[unit] = list(range(people))
    return Table(rows, domain, unit=unit, rehearsal=True, **declared)
