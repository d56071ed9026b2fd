"""Rehearsals: made-up rows from a declaration, to try questions and prices on before anybody's rows are touched.

The rows are uniform over the declared domain, from a fixed seed: they know nothing about anybody, so everything about
them is free. A rehearsal has a ledger of its own, which counts as a real one would and refuses real tables, as real
ledgers refuse these rows (`Identity.rehearsal`): nobody can spend or spare a budget by mistaking one for the other.

Several tables about the same people have the same made-up persons; in a table that keeps k rows of a person, everybody
has from 0 to k of them, and one in a table that keeps one. Texts that nobody listed are made up too: a few that are
common, more that are not.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

from discreet.core import SchemaError, SeededRng
from discreet.data import Column, Domain, GrowingTable, Table

PEOPLE = 10_000
_SEED = 2026
_NUMBERS = 1_000  # a number without bounds is made up between 0 and this
_TEXTS = 40  # texts that are made up


def made_up(domain: Domain, *, people: int = PEOPLE, unit: str | None = None, **declared: Any) -> Table:
    """A table of made-up people with this declaration, one row each; `declared` is what `Table` takes besides."""
    rng = SeededRng(_SEED)
    return _table(domain, list(range(people)), rng, unit=unit, **declared)


def made_up_tables(declared: Iterable[tuple[Domain, dict[str, Any]]], *, people: int = PEOPLE) -> list[Table]:
    """Tables of the same made-up people, for these declarations."""
    rng, made = SeededRng(_SEED), []
    for domain, given in declared:
        most = given["rows_per_unit"]
        times = [1] * people if most == 1 else rng.integers(most + 1, people).tolist()
        persons = [person for person, count in enumerate(times) for _ in range(count)]
        made.append(_table(domain, persons, rng, **{**given, "size": None, "neighbours": "add-remove"}))
    return made


def made_up_epochs(
    domain: Domain, epochs: Sequence[str], *, column: str, unit: str | None, people: int = PEOPLE, **declared: Any
) -> GrowingTable:
    """A table of made-up people that grew by these epochs; `declared` is what `GrowingTable` takes besides."""
    rng, rows = SeededRng(_SEED), max(1, people // len(epochs))
    returning, made = declared.get("epochs_per_unit", 1) > 1, dict[str, Any]()
    for place, epoch in enumerate(epochs):
        made[epoch] = {name: _entries(each, rows, rng) for name, each in domain.items() if name != column}
        if unit is not None:
            first = place * rows
            made[epoch][unit] = rng.integers(rows, rows).tolist() if returning else [*range(first, first + rows)]
    return GrowingTable(made, domain, column=column, unit=unit, rehearsal=True, **declared)


def _table(domain: Domain, persons: list[int], rng: SeededRng, *, unit: str | None, **declared: Any) -> Table:
    rows = {name: _entries(column, len(persons), rng) for name, column in domain.items()}
    if unit is not None:
        if unit in domain:
            raise SchemaError(f"the unit {unit!r} is declared as a column too: leave one of the two out to rehearse")
        rows[unit] = persons
    return Table(rows, domain, unit=unit, rehearsal=True, **declared)


def _entries(column: Column, rows: int, rng: SeededRng) -> list[Any]:
    if column.free:
        # The least of two: small numbers, the first texts, are more common.
        pairs = zip(rng.integers(_TEXTS, rows), rng.integers(_TEXTS, rows), strict=True)
        return [f"made up {min(pair)}"[: column.length] for pair in pairs]
    label = functools.cache(column.label) if column.listed else int
    return [label(int(code)) for code in rng.integers(column.size if column.listed else _NUMBERS, rows)]
