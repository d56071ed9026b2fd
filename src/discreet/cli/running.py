"""`discreet running`: the running total of a table that grows, epoch by epoch, paid once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import discreet as dp
from discreet.cli.kit import Command, OpenTable, ParameterError, allowance_option, database_options, one_line

_MOST = dp.exact.percent(dp.session.MAX_PRICE)


@click.command(cls=Command)
@database_options
@click.argument("question")
@click.option("--epochs", type=int, help="The first time: for how many epochs, those that are there included.")
@click.option("--price", help="The first time: what all of them cost together, as a part of the budget.")
@click.option("--beta", default="0.05", show_default=True, help="Probability that any bound of these totals fails.")
@allowance_option
@click.option("--yes", is_flag=True, help=f"Skip the confirmation prompt above {_MOST}.")
def running(
    schema: Path,
    question: str,
    epochs: int | None,
    price: str | None,
    beta: str,
    allowance: str | None,
    yes: bool,
    **options: Any,
) -> None:
    """Show the running total of a QUESTION, epoch by epoch.

    The QUESTION is one COUNT or SUM in SQL. Each total has its ±. The first time, --epochs and --price pay for the
    totals of all epochs, later ones too; everybody pays, whenever they arrive. From then on the same question is free:
    every epoch that was added since gets its total.

    \b
        discreet running visits.toml "SELECT COUNT(*) FROM visits" --epochs 36 --price 20%
        discreet ledger add visits.toml 2026-02
        discreet running visits.toml "SELECT COUNT(*) FROM visits"
    """
    fails = dp.exact.probability(beta=beta)
    at = OpenTable.open(schema, allowance=allowance, several=True, **options)
    if at.schema.epochs is None:
        raise ParameterError("running totals are of a table that grows: add [epochs] to the schema")
    query = _query(at, question)
    found = dp.Running.find(query, at.table, at.ledger)
    if found is None:
        found = _opened(at, query, question, epochs, price, allowance, yes)
    elif epochs is not None or price is not None:
        raise ParameterError(f"it was paid before, for {found.counter.epochs} epochs: leave out --epochs and --price")
    totals = found.totals(beta=fails)
    sure = f"all at once, {100 * float(1 - fails):g} % sure"
    rows = [(each.epoch, f"{each.total:,.1f}", f"± {each.error_bound:,.1f}") for each in totals]
    at.output.table(("epoch", "total so far", sure), rows)
    left = found.counter.epochs - len(totals)
    at.output.say(f"paid in entry {found.charge}, for {found.counter.epochs} epochs: {left} are left")
    at.output.result(
        {
            "question": question,
            "entry": found.charge,
            "epochs": found.counter.epochs,
            "beta": float(fails),
            "totals": [
                {"epoch": each.epoch, "total": each.total, "deviation": each.deviation, "error_bound": each.error_bound}
                for each in totals
            ],
        }
    )


def _query(at: OpenTable, question: str) -> dp.Count | dp.Sum:
    """What is added up: one count or one sum, of all rows or of some."""
    parts = dp.Session(at.table, at.ledger).parts(question)
    if len(parts) != 1 or not isinstance(parts[0], (dp.Count, dp.Sum)):
        raise ParameterError("a running total is of one COUNT(*) or one SUM(column), without GROUP BY")
    return parts[0]


def _opened(
    at: OpenTable,
    query: dp.Count | dp.Sum,
    question: str,
    epochs: int | None,
    price: str | None,
    allowance: str | None,
    yes: bool,
) -> dp.Running:
    if epochs is None or price is None:
        raise ParameterError("nothing was paid for it yet: say --epochs 36 and --price 20%, for all epochs together")
    part = dp.session.part_of_budget(price=price)
    counter = dp.Running.plan(query, at.table, at.ledger, epochs=epochs, price=part)
    last = counter.bound(epochs, at.table.facts)
    words = (
        f"This costs {dp.exact.percent(part)} of everybody's budget, for {epochs} totals, the last one ± {last:,.1f}."
    )
    if part > dp.session.MAX_PRICE and not yes:
        click.confirm(f"{words} Go on?", abort=True, err=True)
    at.output.say(words)
    memo = one_line(question)[:200]
    return dp.Running.open(query, at.table, at.ledger, epochs=epochs, price=part, allowance=allowance, memo=memo)
