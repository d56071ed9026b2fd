"""`discreet report`: what an owner shows about one ledger, as a page that opens without network."""

from __future__ import annotations

from pathlib import Path

import click

import discreet as dp
from discreet.cli.files import reserved_page
from discreet.cli.kit import FILE, JSON, LEDGER, Command, Output, is_schema, ledger_at, schema_at
from discreet.ledger import Address


@click.command(cls=Command)
@click.argument("path", metavar="LEDGER_OR_SCHEMA", type=LEDGER)
@click.option("--out", type=FILE, default=Path("report.html"), show_default=True, help="The page to write.")
@click.option("--force", is_flag=True, help="Overwrite an existing page.")
@click.option("--everything", is_flag=True, help="Also memos and what was asked, which the page leaves out otherwise.")
@JSON
def report(path: Path | Address, out: Path, force: bool, everything: bool, as_json: bool) -> None:
    """Write a page that explains a ledger.

    It says what is promised to whom, what is spent and what is left. The page is one file that needs neither network
    nor scripts, with plots and all their numbers, to be shown to the people in the table, to a board, to anyone who
    asks. It contains what a ledger's export contains: no rows, and neither memos nor questions unless --everything.
    Nothing is spent. For example:

    \b
        discreet report people.toml --out people.html
        discreet report people.ledger --out everything.html --everything
    """
    from discreet import report as pages

    with reserved_page(out, force=force) as draft:
        output, book = Output(as_json=as_json), ledger_at(path)
        used, last = book.spent().used(), book.entry(book.length())
        with output.working("drawing"):
            text, plots = pages.ledger_report(book, _protects(path, book), everything=everything)
        draft.write(text)
    output.say(f"{out.name}: {plots} plots with their numbers, {out.stat().st_size:,} bytes; any browser opens it")
    output.result({"page": str(out), "plots": plots, "used": float(used), "head": last["hash"]})


def _protects(path: Path | Address, book: dp.Ledger) -> str:
    """Who is protected from what: as the schema says, or as the ledger knows it."""
    if is_schema(path):
        return str(schema_at(path)[0].protects())
    who, facts = book.identity, book.facts
    if facts is None:
        return f"Nothing was released yet; the relation is {who.neighbours}."
    rows = None if who.unit is None else who.neighbours.rows
    return dp.Schema(who.name, facts.domain, who.neighbours.kind, who.unit, rows, facts.size).protects()
