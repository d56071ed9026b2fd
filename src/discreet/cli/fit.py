"""`discreet fit`: a model of columns of the table, for one charge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

import discreet as dp
from discreet.cli import model_view
from discreet.cli.columns import LEVELS_OR_BOUNDS, categories, chosen_columns
from discreet.cli.options import Command, model_options, open_table, save_options, table_options, take_cost
from discreet.cli.training import source_line, train

_SERVES = {"q": ("quantile",), "hidden": ("network",), "radius": ("logistic", "linear"), "huber": ("linear",)}


@click.command("fit", cls=Command)
@table_options
@click.argument("kind", type=click.Choice(["logistic", "linear", "network", "mean", "median", "quantile"]))
@model_options
@click.option("--q", help="quantile: which quantile, as 0.9.")
@click.option("--hidden", type=click.IntRange(1, 4096), help="network: number of hidden units.  [default: 8]")
@click.option("--radius", help="logistic, linear: maximum length of the coefficients of scaled features.")
@click.option(
    "--huber", help="linear: errors above this count linearly.  [default: a tenth of the largest declared target]"
)
@click.option("--method", metavar="NAME", help="A method that `discreet plan` lists.  [default: the one it marks]")
@save_options
def fit(
    schema: Path,
    kind: str,
    target: str,
    features: str | None,
    q: str | None,
    hidden: int | None,
    radius: str | None,
    huber: str | None,
    method: str | None,
    save: Path | None,
    force: bool,
    **options: Any,
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
    cost, domain = take_cost(options), dp.Schema.read(schema).domain
    columns = features_of(kind, domain, target, features)
    chosen = {"q": q, "hidden": hidden, "radius": radius, "huber": huber}
    estimator = _estimator(kind, domain, target, columns, method, cost, chosen)
    at = open_table(schema, **options)
    source = [] if columns is None else [source_line(columns, features is not None)]
    saved = [] if save is None else [("saved", save)]
    train(
        at,
        estimator,
        target,
        columns,
        save=save,
        force=force,
        record=lambda model: model_view.record(kind, model, target, domain),
        show=lambda made, paid: model_view.show(at.output, kind, made, [*source, *paid.lines(), *saved]),
        text=f"fitting {kind}",
    )


def _estimator(
    kind: str,
    domain: dp.Domain,
    target: str,
    columns: Sequence[str] | None,
    method: str | None,
    cost: dict[str, Any],
    chosen: dict[str, Any],
) -> Any:
    """The estimator of this kind, with defaults for a few thousand people and a part of a budget of 1.

    An option is refused where it means nothing, and so is a method that a plan does not list: before the charge.
    """
    from discreet.plan.models import names

    listed = names(kind)
    if method not in (None, "auto", *listed):
        raise dp.ParameterError(
            f"--method of {kind} is one of auto, {', '.join(listed)}; found {method!r}"
            if listed
            else f"--method is not for {kind}: there is one method"
        )
    check_kind(kind, domain, target)
    for name, value in chosen.items():
        if value is not None and kind not in _SERVES[name]:
            raise dp.ParameterError(f"--{name} is for {' and '.join(_SERVES[name])}, not for {kind}")
    if kind == "network":
        return dp.MLPClassifier((chosen["hidden"] or 8,), **cost)
    cost["method"] = method or "auto"
    if kind == "quantile":
        if chosen["q"] is None:
            raise dp.ParameterError("which quantile? --q 0.9 is the value that nine of ten people are below")
        return dp.Quantile(chosen["q"], **cost)
    if kind in model_view.LOCATION:
        return {"mean": dp.Mean, "median": dp.Median}[kind](**cost)
    shape = shape_of(kind, domain, target, len(columns or ()), chosen["radius"], chosen["huber"])
    return {"logistic": dp.LogisticRegression, "linear": dp.LinearRegression}[kind](**shape, **cost)


def shape_of(
    kind: str, domain: dp.Domain, target: str, features: int, radius: str | None, huber: str | None
) -> dict[str, Any]:
    """How long slopes and coefficients may be, for the estimator or for its plan.

    Of a linear regression shorter than the library's defaults: at a few thousand people noise is what hurts.
    """
    if kind != "linear":
        return {} if radius is None else {"radius": radius}
    column: Any = domain.column(target)
    bound = max(abs(column.low), abs(column.high))
    return {"radius": radius or f"{float(bound) / math.sqrt(features):.6g}", "huber": huber or bound / 10}


def check_kind(kind: str, domain: dp.Domain, target: str) -> None:
    """Refuse a target of another kind than the model is for."""
    column: Any = domain.column(target)
    category = not column.ordered
    if kind in ("logistic", "network") and not category:
        raise dp.ParameterError(
            f"the target {target!r} is a number: linear, mean, median and quantile are for numbers, {kind} is for "
            f"categories. {categories(domain, target)}"
        )
    if kind not in ("logistic", "network") and category:
        raise dp.ParameterError(
            f"the target {target!r} is a category: {kind} is for numbers, logistic is for categories"
        )
    if kind == "linear" and (not column.bounded or column.missing):
        raise dp.ParameterError(
            f"the target {target!r} is declared {column!r}: linear needs bounds, and a value in every row"
        )


def features_of(kind: str, domain: dp.Domain, target: str, features: str | None) -> list[str] | None:
    """The columns that a model of this kind is fitted to, besides its target; None for a location."""
    if kind not in model_view.LOCATION:
        return chosen_columns(domain, target, features, lambda column: column.listed, LEVELS_OR_BOUNDS)
    domain.column(target)
    if features is not None:
        raise dp.ParameterError(f"{kind} is about the target alone: leave --features out")
    return None
