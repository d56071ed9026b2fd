"""`discreet fit`: a model of columns of the table, for one charge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.cli import model_view, rule_view
from discreet.cli.estimating import (
    chosen_columns,
    column_options,
    cost_of,
    features_said,
    fitted,
    kept,
    opened_with,
    save_options,
)
from discreet.cli.options import again_option, allowance_option, price_options, table_options
from discreet.cli.receipt import receipt, reserved
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.data import Domain


@click.command("fit")
@table_options
@click.argument("kind", type=click.Choice(["logistic", "linear", "network", "mean", "median", "quantile"]))
@column_options
@price_options
@allowance_option
@again_option
@click.option("--q", help="quantile: which one, as 0.9.")
@click.option("--hidden", type=click.IntRange(1, 4096), help="network: how many hidden units.  [default: 8]")
@click.option("--radius", help="logistic, linear: how long the coefficients of scaled features may be together.")
@click.option("--huber", help="linear: misses above this count linearly.  [default: a tenth of the target's bound]")
@click.option("--method", metavar="NAME", help="One that `discreet plan` lists; unless named, the one it marks.")
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
    a theorem, the price and what is left; never an accuracy on the table, which would be an unpaid release. Few
    features need less noise: name them. For example:

    \b
        discreet fit people.toml mean --target visits --epsilon 0.05
        discreet fit people.toml logistic --target limited --features age,diseases,health --share 1/4
        discreet fit people.toml linear --target age --features family,health --share 1/3 --save age.json
        discreet fit people.toml median --target age --method exponential --epsilon 0.1

    The same command again, after its output was lost, is free: it gives the stored model. --again pays for another.
    What each method promises here, before anything is spent: `discreet plan KIND --schema people.toml --target ...`.
    """
    from discreet.schema import Schema

    cost = cost_of(options)
    declared = Schema.read(schema)
    columns = features_of(kind, declared.domain, target, features)
    _check_method(kind, method)
    cost["method"] = method or "auto"
    chosen = {"q": q, "hidden": hidden, "radius": radius, "huber": huber}
    estimator = _estimator(kind, declared.domain, target, columns, cost, **chosen)
    found = opened_with(schema, options)
    with reserved(save, force=force) as write:
        model = fitted(found, estimator, target, columns, options["allowance"], f"fitting {kind}")
        paid = receipt(found, model.guarantee_, model.entry_, options["allowance"], replayed=model.replayed_)
        source = [] if columns is None else [features_said(columns, features is None)]
        saved = [] if save is None else [("saved", save)]
        made = model_view.record(kind, model, target, declared.domain)
        kept(
            found,
            made,
            paid,
            write,
            lambda: model_view.show(found.output, kind, made, [*source, *paid.lines(), *saved]),
        )


def _estimator(
    kind: str,
    domain: Domain,
    target: str,
    columns: Sequence[str] | None,
    cost: dict[str, Any],
    **chosen: Any,
) -> Any:
    """The estimator of this kind, with defaults for a few thousand people and a part of a budget of 1."""
    from discreet import estimators

    check_kind(kind, domain, target)
    _only(kind, chosen)
    if kind == "mean":
        return estimators.Mean(**cost)
    if kind == "median":
        return estimators.Median(**cost)
    if kind == "quantile":
        if chosen["q"] is None:
            raise ParameterError("which quantile? --q 0.9 is the value that nine of ten people are below")
        return estimators.Quantile(chosen["q"], **cost)
    if kind == "network":
        return estimators.MLPClassifier((chosen["hidden"] or 8,), epsilon=cost["epsilon"], delta=cost["delta"])
    shape = shape_of(kind, domain, target, len(columns or ()), chosen["radius"], chosen["huber"])
    return {"logistic": estimators.LogisticRegression, "linear": estimators.LinearRegression}[kind](**shape, **cost)


def shape_of(
    kind: str, domain: Domain, target: str, features: int, radius: str | None, huber: str | None
) -> dict[str, Any]:
    """How long slopes and coefficients may be, for the estimator or for its plan.

    Of a linear regression shorter than the library's defaults: at a few thousand people noise is what hurts.
    """
    if kind != "linear":
        return {} if radius is None else {"radius": radius}
    column: Any = domain.column(target)
    bound = max(abs(column.low), abs(column.high))
    return {"radius": radius or f"{float(bound) / math.sqrt(features):.6g}", "huber": huber or bound / 10}


def _check_method(kind: str, method: str | None) -> None:
    """Only what a plan lists: refused before anything is spent."""
    from discreet.plan.models import names

    listed = names(kind)
    if method is None or method in (*listed, "auto"):
        return
    if not listed:
        raise ParameterError(f"--method is not for {kind}: there is one method")
    raise ParameterError(f"--method of {kind} is one of auto, {', '.join(listed)}; found {method!r}")


def check_kind(kind: str, domain: Domain, target: str) -> None:
    """The target is of the kind that the model is for."""
    from discreet.data import Category

    category = isinstance(domain.column(target), Category)
    if kind in ("logistic", "network") and not category:
        raise ParameterError(
            f"the target {target!r} is a number: linear, mean, median and quantile are for numbers, {kind} is for "
            f"categories. {rule_view.categories(domain, target)}"
        )
    if kind not in ("logistic", "network") and category:
        raise ParameterError(f"the target {target!r} is a category: {kind} is for numbers, logistic is for categories")
    if kind != "linear":
        return
    column: Any = domain.column(target)
    if not hasattr(column, "low") or column.missing:
        raise ParameterError(
            f"the target {target!r} is declared {column!r}: linear needs bounds, and a value in every row"
        )


def _only(kind: str, chosen: dict[str, Any]) -> None:
    """An option is refused where it means nothing."""
    serves = {"q": ("quantile",), "hidden": ("network",), "radius": ("logistic", "linear"), "huber": ("linear",)}
    for name, value in chosen.items():
        if value is not None and kind not in serves[name]:
            raise ParameterError(f"--{name} is for {' and '.join(serves[name])}, not for {kind}")


def features_of(kind: str, domain: Domain, target: str, features: str | None) -> list[str] | None:
    """The columns that a model of this kind is fitted to, besides its target; None for a location."""
    from discreet.data import Category, Number

    if kind in model_view.LOCATION:
        domain.column(target)
        if features is not None:
            raise ParameterError(f"{kind} is about the target alone: leave --features out")
        return None
    return chosen_columns(domain, target, features, (Category, Number), "levels, or a number with bounds")
