"""`discreet schema`: a draft of what is public about a data file."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import click

from discreet import exact
from discreet.describe import one_line
from discreet.errors import ParameterError


@click.command()
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Write here; without it the draft is printed.")
def schema(data: Path, out: Path | None) -> None:
    """Draft a schema for DATA, a .csv or .parquet file; the owner fills it in.

    Reads the names of the columns (of a Parquet file also their types), never a value and never a statistic. A file
    that ends in .toml is a finished schema: it is checked, and what it protects is said in words. For example:

    \b
        discreet schema people.parquet --out draft.toml
        discreet schema people.toml
    """
    from discreet.schema import Schema, draft

    if data.suffix.lower() == ".toml":
        if out is not None:
            raise ParameterError("--out is for a draft; a finished schema is only checked")
        found = Schema.read(data)
        size = found.domain.size
        rows = f"{size:,}" if size < 10**60 else exact.shown(Fraction(size))
        edition = f"The edition of the rows is {one_line(found.edition)}."
        click.echo(f"{data.name} is complete: {rows} different rows are possible. {edition}")
        click.echo(found.protects())
        return
    text = draft(data)
    if out is None:
        click.echo(text, nl=False)
        return
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ParameterError(
            f"{out.name} is there already, and may hold somebody's work: choose another name"
        ) from None
    click.echo(f"{out.name}: fill in what it asks for, then check it with `discreet schema {out}`")
