"""`discreet report`: what an owner shows about one ledger, as a page that opens without network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import discreet as dp
from discreet.cli.kit import (
    FILE,
    JSON,
    LEDGER,
    Command,
    Output,
    ParameterError,
    is_schema,
    ledger_at,
    one_line,
    schema_at,
)
from discreet.describe import mechanism_name, purpose
from discreet.ledger import Address
from discreet.ledger.summary import charges, cost, in_words

if TYPE_CHECKING:
    from discreet.report import Part

_MOST_CHARGES = 500


@click.command(cls=Command)
@click.argument("path", metavar="LEDGER_OR_SCHEMA", type=LEDGER)
@click.option("--out", type=FILE, default=Path("report.html"), show_default=True, help="The page to write.")
@click.option("--force", is_flag=True, help="Overwrite an existing page.")
@click.option("--everything", is_flag=True, help="Also memos and what was asked, which the page leaves out otherwise.")
@JSON
def report(path: Path | Address, out: Path, force: bool, everything: bool, as_json: bool) -> None:
    """Write a page about a ledger: what is promised to whom, what is spent, what is left.

    The page is one file that needs neither network nor scripts, with plots and all their numbers, to be shown to the
    people in the table, to a board, to anyone who asks. It says what a ledger's export says: no rows, and neither memos
    nor questions unless --everything. Nothing is spent. For example:

    \b
        discreet report people.toml --out people.html
        discreet report people.ledger --out everything.html --everything
    """
    from discreet import report as pages

    if out.suffix.lower() not in (".html", ".htm"):
        raise ParameterError(f"the page is HTML, so its name ends in .html; found {out.name}")
    if out.exists() and not force:
        raise ParameterError(f"{out.name} is there already: choose another name, or overwrite it with --force")
    output, book = Output(as_json=as_json), ledger_at(path)
    used = book.spent().used()
    last = book.entry(book.length())
    with output.working("drawing"):
        parts = _parts(book, _protects(path, book), last, everything)
    so_far = in_words(book)
    promise = f"Everything that is released about these people through this ledger keeps one promise, {book.budget}"
    lead = f"{so_far[:1].upper()}{so_far[1:]}. {promise}, together."
    title = f"The privacy budget of {one_line(book.identity.name)}"
    pages.write_page(out, pages.page(title, parts, lead=lead), force=force)
    plots = sum(type(part) is pages.Plot for part in parts)
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


def _parts(book: dp.Ledger, protects: str, last: dict[str, Any], everything: bool) -> list[Part]:
    from discreet import report as pages

    agrees, budget = not book.rolled_back(), book.budget
    timed = last if last["time"] else (book.latest("charge", most=1) or [book.entry(1)])[0]
    without = "what is written about you is yours" if book.identity.neighbours.replace_one else "you take part"
    warnings = {
        "NOT PRIVATE: this is a testing ledger. Nothing that was released through it is protected.": book.testing,
        "A rehearsal: the rows are made up, and so is everything here.": book.identity.rehearsal,
        "NOT AS ITS MARK SAYS: this is an older copy of the ledger, or a moved one. More may have been spent than "
        "this page shows; nothing is released until `discreet ledger reconcile`.": not agrees,
    }
    return [
        *(warning for warning, holds in warnings.items() if holds),
        pages.Heading("What is promised, and to whom"),
        f"To every person in the table: the chance of any outcome is about the same whether or not {without}, for "
        "everything that is released here, however cleverly it is asked for.",
        protects,
        pages.odds([budget.epsilon], budget.delta),
        pages.Heading("What is spent"),
        pages.budget(book, everything=everything),
        *_allowances(book),
        _charges(book, everything),
        pages.Heading("What is left"),
        pages.left(book) if agrees else "Nothing, until the ledger is reconciled with its mark.",
        pages.Heading("How to check this page"),
        f"It was made from {last['seq']:,} entries, the last of {timed['time']}. The hash of the last entry is "
        f"{last['hash']}: it vouches for all entries before it. With this line anyone can tell later whether the "
        "ledger they are shown goes on from the same entries; `discreet ledger verify` checks every entry, every sum "
        "and every price.",
        f"Ledger {book.id}, {book.identity.neighbours}.",
    ]


def _allowances(book: dp.Ledger) -> list[Part]:
    """The names that have a share of the budget, if there are any: what each has spent, and what it has left."""
    from discreet.report import Grid

    rows = [
        (
            one_line(each.name),
            dp.exact.percent(each.share),
            "–" if each.part is None else cost(each.part),
            "–" if each.epsilon is None else each.at_most or "0",
            dp.exact.percent(float(each.left)),
        )
        for each in book.allowances()
    ]
    columns = (
        *("allowance", "share of the budget", "spent of the budget"),
        *("epsilon so far, at most", "left of the budget"),
    )
    caption = (
        "The names under which charges are counted. Shares may add up to more than the budget, which is the limit for "
        f"all together, and for charges without a name. Epsilons are what the ledger's books prove at delta "
        f"{dp.exact.shown(book.budget.delta)}, which is little where little was spent."
    )
    return [Grid(columns, rows, caption)] if rows else []


def _charges(book: dp.Ledger, everything: bool) -> Part:
    """The last charges in words; without --everything nothing about columns, questions or memos."""
    from discreet.report import Grid

    count = book.store.count("charge")
    rows = [
        (
            each["entry"],
            each["time"][:10],
            mechanism_name(each["mechanism"]),
            "–" if each["of_budget"] is None else cost(each["of_budget"]),
            each["state"],
            *((purpose(each["asked"], each["memo"], each["mechanism"]),) if everything else ()),
        )
        for each in charges(book, most=_MOST_CHARGES)
    ]
    last = f" The last {len(rows)} of {count:,} are shown." if len(rows) < count else ""
    hidden = "" if everything else " What was asked, and memos, are left out."
    caption = f"The charges, each as a part of the budget.{last}{hidden}" if rows else "There are no charges yet."
    columns = ("entry", "day", "mechanism", "of the budget", "state", *(("what was asked",) if everything else ()))
    return Grid(columns, rows, caption)
