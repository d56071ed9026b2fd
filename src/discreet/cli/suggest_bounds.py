"""`discreet suggest-bounds`: bounds of a column, found among its rows and charged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from discreet.cli import model_view, toml_edit
from discreet.cli.estimating import cost_of, opened_with
from discreet.cli.options import Opened, again_option, allowance_option, price_options, table_options
from discreet.cli.receipt import Receipt, facts_about, receipt, regular, unwrapped
from discreet.errors import ParameterError


@click.command("suggest-bounds")
@table_options
@click.argument("column")
@price_options
@allowance_option
@again_option
@click.option("--coverage", help="Between the bounds shall lie this share of the rows.  [default: as much as is sure]")
@click.option("--write", is_flag=True, help="Put the bounds into the schema file, and print what changed.")
def suggest_bounds(schema: Path, column: str, coverage: str | None, write: bool, **options: Any) -> None:
    """Find bounds of a column among its rows, for one charge.

    For a column with kind = "any number", whose bounds nobody knows, or a number with wide bounds. Prints the lines for
    the schema; the ledger goes on as before. Bounds that are known without looking at the rows cost nothing. The same
    command again gives the same bounds, free: look first, then add --write. --again pays for others. For example:

    \b
        discreet suggest-bounds people.toml spending --epsilon 0.1
        discreet suggest-bounds people.toml spending --epsilon 0.1 --write
        discreet suggest-bounds people.toml income --share 1/5 --coverage 0.8
    """
    from discreet.data import AnyNumber, Number
    from discreet.estimators import suggest_bounds as suggested
    from discreet.schema import Schema

    cost = cost_of(options)
    found = Schema.read(schema).domain.column(column)
    if not isinstance(found, (Number, AnyNumber)):
        raise ParameterError(f"column {column!r} is declared {found!r}: bounds are for numbers")
    if write and options["rehearse"]:
        raise ParameterError("--write with --rehearse would put bounds of made-up people into the schema")
    text = schema.read_text(encoding="utf-8")
    if write:
        toml_edit.rewritten(text, column, Number(0, 1, step=1, missing=found.missing))  # a trial, before the charge
    at = opened_with(schema, options)
    place = regular(schema)
    new = toml_edit.beside(place) if write else None
    try:
        with at.output.working("looking for bounds"):
            cost["allowance"] = options["allowance"]
            given = suggested(at.table, column, ledger=at.ledger, coverage=coverage, **cost)
        paid = receipt(at, given.guarantee, given.entry, options["allowance"], replayed=given.replayed)
        try:
            changes = (
                None if new is None else _replaced(place, new, text, toml_edit.rewritten(text, column, given.number))
            )
        except OSError:  # what is paid for is shown anyway
            _show_bounds(at, schema, given, paid, None)
            raise
    finally:
        if new is not None:
            new.unlink(missing_ok=True)
    _show_bounds(at, schema, given, paid, changes)


def _replaced(schema: Path, new: Path, text: str, changed: str) -> list[str]:
    """Rename the new file to the schema, all at once; what changed."""
    new.write_text(changed, encoding="utf-8")
    new.replace(schema)
    return toml_edit.difference(text, changed, schema.name)


def _show_bounds(at: Opened, schema: Path, given: Any, paid: Receipt, changes: list[str] | None) -> None:
    lines = toml_edit.lines_for(given.column, given.number)
    if changes is None:
        at.output.say(f"For {schema.name}:")
    for line in lines if changes is None else changes:
        unwrapped(at.output, line)
    facts_about(at.output, [("promise", given.promise), *paid.lines()])
    at.output.result(
        {
            "column": given.column,
            **{key: model_view.plain(getattr(given.number, key)) for key in ("low", "high", "step")},
            "toml": "\n".join(lines),
            "written": changes is not None,
            "promise": given.promise,
            **paid.record(),
        }
    )
