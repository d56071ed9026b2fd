"""`discreet suggest-bounds`: bounds of a column, found among its rows and charged.

With --write one column's section of the schema file is rewritten, everything else stays as its owner wrote it. Whether
that works on this file is found out before anything is spent: the text with trial bounds is parsed again, and must say
the same as before about everything but the column.
"""

from __future__ import annotations

import difflib
import functools
import itertools
import json
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

import discreet as dp
from discreet.cli.files import reserved
from discreet.cli.kit import Command, OpenTable, ParameterError, price_options, table_options
from discreet.cli.price_view import receipt
from discreet.modelling import take_cost

_BOUNDS = ("low", "high", "step")


@click.command("suggest-bounds", cls=Command)
@table_options
@click.argument("column")
@price_options
@click.option("--coverage", help="Share of the rows between the bounds.  [default: as large as can be guaranteed]")
@click.option("--write", is_flag=True, help="Put the bounds into the schema file, and print what changed.")
def suggest_bounds(schema: Path, column: str, coverage: str | None, write: bool, **options: Any) -> None:
    """Find bounds of a column among its rows, for one charge.

    For a column with kind = "any number", whose bounds are not known, or a number with wide bounds. Prints the lines
    for the schema; the table keeps its ledger. Bounds that are known without looking at the rows cost nothing. The
    same command again gives the same bounds, free: look first, then add --write. --again pays for others. For example:

    \b
        discreet suggest-bounds people.toml spending --epsilon 0.1
        discreet suggest-bounds people.toml spending --epsilon 0.1 --write
        discreet suggest-bounds people.toml income --share 1/5 --coverage 0.8
    """
    cost = take_cost(options)
    declared: Any = dp.Schema.read(schema, options["table_name"]).domain.column(column)
    if not declared.ordered or declared.calendar:
        raise ParameterError(f"column {column!r} is declared {declared!r}: bounds are for numbers")
    if write and options["rehearse"]:
        raise ParameterError("--write with --rehearse would put bounds of made-up people into the schema")
    text = schema.read_text(encoding="utf-8")
    if write:
        # A trial, before the charge.
        rewrite(text, column, dp.Number(0, 1, step=1, missing=declared.missing), options["table_name"])
    at = OpenTable.open(schema, **options)
    with reserved(schema if write else None, force=write) as draft:
        with at.output.working("looking for bounds"):
            bounds = dp.suggest_bounds(
                at.table, column, ledger=at.ledger, coverage=coverage, allowance=at.allowance, **cost
            )
        changes: list[str] | None = None
        try:
            if write:
                changed = rewrite(text, column, bounds.number, options["table_name"])
                draft.write(changed)
                names = schema.name, f"{schema.name}, new"
                changes = list(difflib.unified_diff(text.splitlines(), changed.splitlines(), *names, lineterm="", n=1))
        finally:  # what is paid for is shown anyway
            _show(at, schema, bounds, changes)


def _show(at: OpenTable, schema: Path, bounds: Any, changes: list[str] | None) -> None:
    """Print the bounds, and what changed in the schema; None: nothing was written."""
    paid = receipt(at, bounds.guarantee, bounds.entry, replayed=bounds.replayed)
    lines = lines_for(bounds.column, bounds.number, at.table.facts.table)
    if changes is None:
        at.output.say(f"For {schema.name}:")
    for line in lines if changes is None else changes:
        at.output.copyable(line)
    at.output.facts([("promise", bounds.promise), *paid.lines()])
    at.output.result(
        {
            "column": bounds.column,
            **{key: dp.data.plain(getattr(bounds.number, key)) for key in _BOUNDS},
            "toml": "\n".join(lines),
            "written": changes is not None,
            "promise": bounds.promise,
            **paid.record(),
        }
    )


# A section of a schema file.


def lines_for(name: str, number: dp.Number, table: str | None = None) -> list[str]:
    """The section of a column, to paste; of this table, if there are several."""
    keys = [
        each
        if each.isascii() and each.replace("_", "").replace("-", "").isalnum()
        else json.dumps(each, ensure_ascii=False)
        for each in _place(name, table)
    ]
    head = f"[{'.'.join(keys)}]"
    return [head, *_bounds(number), *(["missing = true"] if number.missing else [])]


def _bounds(number: dp.Number) -> list[str]:
    return ['kind = "number"', *(f"{key} = {_toml(getattr(number, key))}" for key in _BOUNDS)]


def _toml(value: Fraction) -> str:
    """A bound, which is a decimal, as TOML reads it exactly: of many digits as 1e-50."""
    places = next(places for places in itertools.count() if 10**places % value.denominator == 0)
    return dp.data.spell(value) if places <= 30 else f"{int(value * 10**places)}e-{places}"


def _place(name: str, table: str | None) -> tuple[str, ...]:
    """The keys of a column's section."""
    return ("columns", name) if table is None else ("tables", table, "columns", name)


def rewrite(text: str, name: str, number: dp.Number, table: str | None = None) -> str:
    """The schema's text with this declaration of the column; ParameterError if its section is not found."""
    lines, keys = text.splitlines(keepends=True), _place(name, table)
    heads = [place for place, line in enumerate(lines) if line.lstrip().startswith("[")]
    section: dict[str, Any] = functools.reduce(lambda inner, key: {key: inner}, reversed(keys), {})
    start = next((place for place in heads if _parse(lines[place]) == section), None)
    if start is None:
        raise ParameterError(
            f"--write needs a section [{'.'.join(keys)}] of its own in the schema: paste the lines instead"
        )
    end = next((place for place in heads if place > start), len(lines))
    kept = [line for line in lines[start + 1 : end] if line.partition("=")[0].strip() not in ("kind", *_BOUNDS)]
    head = lines[start] if lines[start].endswith("\n") else lines[start] + "\n"
    changed = "".join([*lines[:start], head, *(f"{line}\n" for line in _bounds(number)), *kept, *lines[end:]])
    expected = _parse(text)
    declared: dict[str, Any] = functools.reduce(lambda inner, key: inner[key], keys, expected)
    declared |= {"kind": "number", **{key: getattr(number, key) for key in _BOUNDS}}
    if _parse(changed) != expected:
        raise ParameterError(f"the section of {name!r} cannot be rewritten as it is: paste the lines instead")
    return changed


def _parse(text: str) -> dict[str, Any]:
    """The text as TOML, with exact numbers; no columns if it is none, as a line of a list."""
    try:
        return tomllib.loads(text, parse_float=Fraction)
    except tomllib.TOMLDecodeError:
        return {"columns": {}}
