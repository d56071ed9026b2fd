"""`discreet suggest-bounds`: bounds of a column, found among its rows and charged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import discreet as dp
from discreet.cli.columns import plain
from discreet.cli.files import reserved
from discreet.cli.options import Command, OpenTable, open_table, price_options, table_options, take_cost
from discreet.cli.price_view import receipt
from discreet.cli.toml_edit import difference, lines_for, rewrite


@click.command("suggest-bounds", cls=Command)
@table_options
@click.argument("column")
@price_options
@click.option("--coverage", help="Share of the rows between the bounds.  [default: as large as can be guaranteed]")
@click.option("--write", is_flag=True, help="Put the bounds into the schema file, and print what changed.")
def suggest_bounds(schema: Path, column: str, coverage: str | None, write: bool, **options: Any) -> None:
    """Find bounds of a column among its rows, for one charge.

    For a column with kind = "any number", whose bounds are not known, or a number with wide bounds. Prints the lines
    for the schema; the ledger goes on as before. Bounds that are known without looking at the rows cost nothing. The
    same command again gives the same bounds, free: look first, then add --write. --again pays for others. For example:

    \b
        discreet suggest-bounds people.toml spending --epsilon 0.1
        discreet suggest-bounds people.toml spending --epsilon 0.1 --write
        discreet suggest-bounds people.toml income --share 1/5 --coverage 0.8
    """
    cost = take_cost(options)
    declared: Any = dp.Schema.read(schema).domain.column(column)
    if not declared.ordered:
        raise dp.ParameterError(f"column {column!r} is declared {declared!r}: bounds are for numbers")
    if write and options["rehearse"]:
        raise dp.ParameterError("--write with --rehearse would put bounds of made-up people into the schema")
    text = schema.read_text(encoding="utf-8")
    if write:
        rewrite(text, column, dp.Number(0, 1, step=1, missing=declared.missing))  # a trial, before the charge
    at = open_table(schema, **options)
    with reserved(schema if write else None, force=write) as draft:
        with at.output.working("looking for bounds"):
            bounds = dp.suggest_bounds(
                at.table, column, ledger=at.ledger, coverage=coverage, allowance=at.allowance, **cost
            )
        changes: list[str] | None = None
        try:
            if write:
                changed = rewrite(text, column, bounds.number)
                draft.write(changed)
                changes = difference(text, changed, schema.name)
        finally:  # what is paid for is shown anyway
            _show(at, schema, bounds, changes)


def _show(at: OpenTable, schema: Path, bounds: Any, changes: list[str] | None) -> None:
    """Print the bounds, and what changed in the schema; None: nothing was written."""
    paid = receipt(at, bounds.guarantee, bounds.entry, replayed=bounds.replayed)
    lines = lines_for(bounds.column, bounds.number)
    if changes is None:
        at.output.say(f"For {schema.name}:")
    for line in lines if changes is None else changes:
        at.output.copyable(line)
    at.output.facts([("promise", bounds.promise), *paid.lines()])
    at.output.result(
        {
            "column": bounds.column,
            **{key: plain(getattr(bounds.number, key)) for key in ("low", "high", "step")},
            "toml": "\n".join(lines),
            "written": changes is not None,
            "promise": bounds.promise,
            **paid.record(),
        }
    )
