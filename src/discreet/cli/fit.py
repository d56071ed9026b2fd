"""`discreet fit`: a model of columns of the table, for one charge; `train` is what `discreet learn` does likewise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

import discreet as dp
from discreet.cli.files import reserved
from discreet.cli.kit import Command, OpenTable, model_options, save_options, table_options
from discreet.cli.price_view import Payment, receipt
from discreet.core import code_version
from discreet.modelling import SERVES, columns_named, features_of, fit_estimator, take_cost


@click.command("fit", cls=Command)
@table_options
@click.argument("kind", type=click.Choice(["logistic", "linear", "network", "mean", "median", "quantile"]))
@model_options
@click.option("--q", help="quantile: which quantile, such as 0.9.")
@click.option("--hidden", type=click.IntRange(1, 4096), help="network: number of hidden units.  [default: 8]")
@click.option("--radius", help="logistic, linear: maximum length of the coefficients of scaled features.")
@click.option(
    "--huber", help="linear: errors above this count linearly.  [default: a tenth of the largest declared target]"
)
@click.option("--method", metavar="NAME", help="A method that `discreet plan` lists.  [default: the one it marks]")
@save_options
def fit(
    schema: Path, kind: str, target: str, features: str | None, save: Path | None, force: bool, **options: Any
) -> None:
    """Fit a model to columns of the table, for one charge.

    KIND is logistic or network (the target is a category), linear (a number), or mean, median, quantile of the target
    alone. Bounds and levels are those of the schema. Prints the coefficients in the units of the columns, the bound of
    a theorem, the price and the remaining budget; never an accuracy on the table, which would be an unpaid release. Few
    features need less noise: name them. For example:

    \b
        discreet fit people.toml mean --target visits --epsilon 0.05
        discreet fit people.toml logistic --target limited --features age,diseases,health --share 1/4
        discreet fit people.toml linear --target age --features family,health --share 1/3 --save age.json
        discreet fit people.toml median --target age --method exponential --epsilon 0.1

    The same command again, after its output was lost, is free: it gives the stored model. --again pays for another.
    What each method promises here, before anything is spent: `discreet plan KIND --schema people.toml --target ...`.
    """
    cost, domain = take_cost(options), dp.Schema.read(schema, options["table_name"]).domain
    columns = features_of(kind, domain, target, columns_named(features, domain))
    chosen = {name: options.pop(name) for name in (*SERVES, "method")}
    estimator = fit_estimator(kind, domain, target, columns, cost, chosen)
    at = OpenTable.open(schema, **options)
    source = [] if columns is None else [source_line(columns, features is not None)]
    saved = [] if save is None else [("saved", save)]
    train(
        at,
        estimator,
        target,
        columns,
        save=save,
        force=force,
        record=lambda model: model.description(),
        show=lambda model, _, paid: at.output.sheet(model.sheet([*source, *paid.lines(), *saved], at.output.width)),
        text=f"fitting {kind}",
    )


def train(
    at: OpenTable,
    estimator: Any,
    target: str,
    columns: Sequence[str] | None,
    *,
    text: str,
    save: Path | None,
    force: bool,
    record: Callable[[Any], dict[str, Any]],
    show: Callable[[Any, dict[str, Any], Payment], None],
) -> None:
    """Fit and charge, write the record to a file if that is wanted, and show it; shown also if it cannot be written,
    since it is paid for.

    record  what a fitted model is, without what it cost
    show    prints a model and its record with its receipt
    """
    from discreet.estimators.model_file import ordered, pretty

    with reserved(save, force=force) as draft:
        with at.output.working(text):
            session = dp.Session(at.table, at.ledger, allowance=at.allowance)
            model = session.fit(estimator, target=target, features=columns)
        made = record(model)
        paid = receipt(at, model.guarantee_, model.entry_, replayed=model.replayed_)
        whole = {"table": at.schema.name, **made, **paid.record(), "discreet": code_version()}
        try:
            if save is not None:
                draft.write(pretty(ordered(model.model_record(), at.output.marked(whole))) + "\n")
        finally:
            show(model, made, paid)
            at.output.result(whole)


def source_line(columns: Sequence[str], chosen: bool) -> tuple[str, str]:
    """Which columns a model was learned from, as a line of the result."""
    return "from", f"{', '.join(columns)}{'' if chosen else ' (all that can serve: --features chooses)'}"
