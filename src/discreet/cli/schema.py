"""`discreet schema`: a draft of what is public about a data file."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import click

import discreet as dp
from discreet.cli.files import write_new
from discreet.cli.kit import ROWS, Command, ParameterError, one_line
from discreet.schema import draft, draft_relation, read_schema


@click.command(cls=Command)
@click.argument("data", type=ROWS)
@click.argument("more", type=click.Path(path_type=Path), nargs=-1)
@click.option(
    "--relation", metavar="NAME", multiple=True, help="Of a database: the table or view; twice: schema, table."
)
@click.option("--out", type=click.Path(path_type=Path), help="Write here; without it the draft is printed.")
def schema(data: Path | str, more: tuple[Path, ...], relation: tuple[str, ...], out: Path | None) -> None:
    """Draft a schema for a data file or a database.

    DATA is a .csv or .parquet file, or the address of a database; the owner fills the draft in. Reads the names of the
    columns (of a Parquet file also their types), never a value and never a statistic. Several files are several tables
    about the same people, with one ledger. A file that ends in .toml is a schema: it is checked as far as it is filled
    in, and the command says in words what it protects. For example:

    \b
        discreet schema people.parquet --out draft.toml
        discreet schema people.parquet years.parquet --out both.toml
        discreet schema postgresql://HOST/DATABASE --relation people --out draft.toml
        discreet schema people.toml
    """
    if isinstance(data, str):
        if more:
            raise ParameterError("a schema is of files, or of one relation in a database")
        _show(draft_relation(data, relation), out)
        return
    if relation:
        raise ParameterError("--relation is of a database: postgresql://HOST/DATABASE or duckdb:FILE")
    if data.suffix.lower() == ".toml":
        if out is not None or more:
            raise ParameterError("--out is for a draft; a finished schema is only checked, and alone")
        declared = read_schema(data)
        sizes = [
            math.prod(column.size for column in each.domain.values() if not column.free) for each in declared.tables
        ]
        rows = " and ".join(f"{size:,}" if size < 10**60 else dp.exact.shown(Fraction(size)) for size in sizes)
        edition = f"The edition of the rows is {one_line(declared.edition)}."
        if declared.epochs is not None:
            edition = f"The table grows by {one_line(declared.epochs)}."
        click.echo(f"{data.name} is complete: {rows} different rows are possible. {edition}\n{declared.protects()}")
    else:
        _show(draft(data, *more), out)


def _show(text: str, out: Path | None) -> None:
    """Print a draft, or write it to a new file."""
    if out is None:
        click.echo(text, nl=False)
    else:
        write_new(out, [text])
        click.echo(f"{out.name}: fill in what it asks for, then check it with `discreet schema {out}`")
