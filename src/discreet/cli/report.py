"""`discreet report`: what an owner shows about one ledger, as a page that opens without network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from discreet.cli.options import FILE, Output, ledger_at
from discreet.describe import one_line
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.ledger import Ledger
    from discreet.report.page import Part

_ENDS = {"answer": "answered", "burn": "burned", "top": "ended", "close": "closed"}
_MOST_CHARGES = 500


@click.command()
@click.argument("path", metavar="LEDGER_OR_SCHEMA", type=FILE)
@click.option("--out", type=FILE, default=Path("report.html"), show_default=True, help="The page to write.")
@click.option("--force", is_flag=True, help="Overwrite a page that is there already.")
@click.option("--everything", is_flag=True, help="Also memos and what was asked, which the page leaves out otherwise.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object about the page, for programs.")
def report(path: Path, out: Path, force: bool, everything: bool, as_json: bool) -> None:
    """Write a page about a ledger: what is promised to whom, what is spent, what is left.

    The page is one file that needs neither network nor scripts, with plots and all their numbers, to be shown to the
    people in the table, to a board, to whoever asks. It says what a ledger's export says: no rows, and neither memos
    nor questions unless --everything. Nothing is spent. For example:

    \b
        discreet report people.toml --out people.html
        discreet report people.ledger --out everything.html --everything
    """
    from discreet import report as made

    if out.suffix.lower() not in (".html", ".htm"):
        raise ParameterError(f"the page is HTML, so its name ends in .html; found {out.name}")
    if out.exists() and not force:
        raise ParameterError(f"{out.name} is there already: choose another name, or overwrite it with --force")
    output, ledger = Output(as_json=as_json), ledger_at(path)
    with output.working("drawing"):
        parts = _parts(ledger, _protects(path, ledger), everything)
    title = f"The privacy budget of {one_line(ledger.identity.name)}"
    made.write_page(out, made.page(title, parts, lead=_lead(ledger)), force=force)
    plots = sum(isinstance(part, made.Plot) for part in parts)
    output.say(f"{out.name}: {plots} plots with their numbers, {out.stat().st_size:,} bytes; any browser opens it")
    output.result({"page": str(out), "plots": plots, "used": float(ledger.spent().used()), "head": _head(ledger)[1]})


def _protects(path: Path, ledger: Ledger) -> str:
    """Who is protected from what: as the schema says, or as the ledger knows it."""
    from discreet.schema import Schema

    if path.suffix.lower() == ".toml":
        return Schema.read(path).protects()
    who, facts = ledger.identity, ledger.facts
    if facts is None:
        return f"Nothing was released yet; the relation is {who.neighbours}."
    rows = None if who.unit is None else who.neighbours.rows
    return Schema(who.name, facts.domain, who.neighbours.kind, who.unit, rows, facts.size).protects()


def _lead(ledger: Ledger) -> str:
    return (
        f"Everything that is released about these people through this ledger keeps one promise, {ledger.budget}, "
        f"together. {_percent(ledger)} of it is used."
    )


def _percent(ledger: Ledger) -> str:
    from discreet.report.plot import percent

    return percent(float(ledger.spent().used()))


def _parts(ledger: Ledger, protects: str, everything: bool) -> list[Part]:
    from discreet import report as made

    entry, hash_, time = _head(ledger)
    agrees = not ledger.rolled_back()
    budget = ledger.budget
    replaced = ledger.identity.neighbours.replace_one
    without = "what is written about you is yours" if replaced else "you take part"
    return [
        *_warnings(ledger, agrees),
        made.Heading("What is promised, and to whom"),
        f"To every person in the table: the chance of any outcome is about the same whether or not {without}, for "
        "everything that is released here, however cleverly it is asked for.",
        protects,
        made.odds([budget.epsilon], budget.delta),
        made.Heading("What is spent"),
        made.budget(ledger, everything=everything),
        *_allowances(ledger),
        _charges(ledger, everything),
        made.Heading("What is left"),
        made.left(ledger) if agrees else "Nothing, until the ledger is reconciled with its mark.",
        made.Heading("How to check this page"),
        f"It was made from {entry:,} entries, the last of {time}. The hash of the last entry is {hash_}: it "
        "vouches for all entries before it. Whoever keeps this line can tell later whether the ledger they are shown "
        "goes on from the same entries; `discreet ledger verify` checks every entry, every sum and every price.",
        f"Ledger {ledger.id}, {ledger.identity.neighbours}.",
    ]


def _warnings(ledger: Ledger, agrees: bool) -> list[str]:
    found = []
    if ledger.testing:
        found.append("NOT PRIVATE: this is a testing ledger. Nothing that was released through it is protected.")
    if ledger.identity.rehearsal:
        found.append("A rehearsal: the rows are made up, nobody's, and so is everything here.")
    if not agrees:
        found.append(
            "NOT AS ITS MARK SAYS: this is an older copy of the ledger, or a moved one. More may have been spent than "
            "this page shows; nothing is released until `discreet ledger reconcile`."
        )
    return found


def _head(ledger: Ledger) -> tuple[int, str, str]:
    """The last entry: its number, hash and time."""
    last = ledger.entry(ledger.length())
    timed = last if last["time"] else (ledger.latest("charge", most=1) or [ledger.entry(1)])[0]
    return last["seq"], last["hash"], str(timed["time"])


def _allowances(ledger: Ledger) -> list[Part]:
    """The names that have a share of the budget, if there are any: what each has spent, and what it has left."""
    from discreet import exact
    from discreet.ledger.allowances import allowances
    from discreet.report import Grid
    from discreet.report.plot import percent

    rows = [
        (
            one_line(each.name),
            percent(float(each.share)),
            "–" if each.part is None else percent(float(each.part)),
            "–" if each.epsilon is None else each.at_most or "0",
            percent(float(each.left)),
        )
        for each in allowances(ledger)
    ]
    columns = (
        "allowance",
        "share of the budget",
        "spent of the budget",
        "epsilon so far, at most",
        "left of the budget",
    )
    caption = (
        "The names under which charges are counted. Shares may add up to more than the budget, which is the limit for "
        f"all together, and for charges without a name. Epsilons are what the ledger's books prove at delta "
        f"{exact.shown(ledger.budget.delta)}, which is little where little was spent."
    )
    return [Grid(columns, rows, caption)] if rows else []


def _charges(ledger: Ledger, everything: bool) -> Part:
    """The last charges in words; without --everything nothing about columns, questions or memos."""
    from discreet.describe import asked
    from discreet.ledger.state import price_from
    from discreet.report import Grid
    from discreet.report.ledger_plot import named
    from discreet.report.plot import percent

    count, books, rows = ledger.store.count("charge"), ledger.spent(), []
    for each in ledger.latest("charge", most=_MOST_CHARGES):
        part, end = books.part_of(price_from(each["price"])), ledger.store.end_of(each["seq"])
        more = (one_line(asked(each["mechanism"])), one_line(each["memo"])) if everything else ()
        rows.append(
            (
                each["seq"],
                str(each["time"])[:10],
                named(each["mechanism"]),
                "–" if part is None else percent(float(part)),
                "open" if end is None else _ENDS[end["kind"]],
                *more,
            )
        )
    shown = f" The last {len(rows)} of {count:,} are shown." if len(rows) < count else ""
    hidden = "" if everything else " What was asked, and memos, are left out."
    caption = f"The charges, each as a part of the budget.{shown}{hidden}" if rows else "There are no charges yet."
    columns = ("entry", "day", "mechanism", "of the budget", "state", *(("asked", "memo") if everything else ()))
    return Grid(columns, rows, caption)
