"""`discreet plan`: what a budget buys, before anything is spent. Reads no rows; with a schema, its declarations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import discreet as dp
from discreet.cli.kit import FILE, JSON, TABLE, Command, Decorator, Output, ParameterError, one_line, together
from discreet.modelling import check_kind, columns_named, features_of, plan_record, shape_of
from discreet.plan import KINDS, MODELS, check_numbers, numbers_of

if TYPE_CHECKING:
    from discreet.plan import Plan

_BY_NAME = (
    "`discreet fit` takes the method that learns best by public numbers, which need not have the smallest promise; it "
    "takes another by its name: --method NAME. In several dimensions the exponential is slow."
)

_NUMBERS = {
    "bits": "2^bits values, or cells of the domain.",
    "candidates": "Number of candidates to choose from.",
    "cells": "Number of cells.",
    "conditions": "Number of conditions that a rule may choose from.",
    "d": "Number of columns, features or booleans.",
    "each": "Number of cells of each marginal.",
    "hypotheses": "Number of hypotheses to choose from.",
    "k": "Maximum number of conditions in a rule.",
    "marginals": "Number of sets of columns that are asked about.",
    "percent": "Which quantile, in percent.",
    "questions": "Number of questions.",
    "rows": "Number of synthetic rows.",
}


class _Whole(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions only
    """A whole number, also as 1e6 or 1_000_000."""

    name = "n"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = Fraction(str(value))
        except (ValueError, ZeroDivisionError):
            number = Fraction(1, 2)
        if number.denominator != 1:
            self.fail(f"{value!r} is not a whole number", param, ctx)
        return int(number)


_NAMES = sorted({name for kind in KINDS.values() for name in kind.numbers})
_number_options: Decorator = together(
    *(click.option(f"--{name}", name, type=_Whole(), help=_NUMBERS[name]) for name in _NAMES)
)


@click.command(cls=Command)
@click.argument("kind", required=False)
@click.option(
    "--list", "listed", is_flag=True, help="List all kinds and the numbers that they need; also without a KIND."
)
@click.option("--epsilon", help="Budget of this one release.")
@click.option("--delta", help="Probability with which its guarantee may fail.  [default: 0]")
@click.option("--share", help="Instead: this share of the remaining budget in the ledger of --schema, such as 1/3.")
@click.option("--allowance", metavar="NAME", help="With --share: of the remaining budget under this name.")
@click.option("--schema", "schema_path", type=FILE, help="Schema: who is protected, how many, and which columns.")
@TABLE
@click.option("--features", help="With --schema: columns, such as age,sex.  [default: all but the target]")
@click.option("--target", help="With --schema: column to predict, which is no feature.")
@click.option("--radius", help="linear, logistic: maximum length of the coefficients of (scaled) features.")
@click.option("--huber", help="linear: errors above this count linearly.")
@click.option("--neighbours", type=click.Choice(["replace-one", "add-remove"]), help="What is protected.")
@click.option("--rows-per-unit", type=_Whole(), help="Maximum number of rows per person.")
@click.option("--size", type=_Whole(), help="Number of people: shows errors as fractions of it.")
@click.option("--alpha", help="Error to reach, as a fraction: shows the size that it needs.")
@click.option("--beta", default="0.05", show_default=True, help="Probability with which each promise may fail.")
@_number_options
@click.option("--number", "named", multiple=True, metavar="NAME=N", help="A number by its name: cells=100.")
@JSON
def plan(
    kind: str | None, listed: bool, schema_path: Path | None, named: tuple[str, ...], as_json: bool, **options: Any
) -> None:
    """What a budget buys, before anything is spent. Reads no rows.

    Every method for one KIND of release side by side, the best first: the error that it promises for --size people,
    the size that it needs for an error of --alpha, and the theorem that it rests on. Without a KIND: all kinds.

    Models are planned in units where rows have norm 1, targets lie in [-1, 1] and values in [0, 1]; with --schema and
    --target as `discreet fit` fits them, in the target's own units. The method that it takes by default is marked.

    \b
        discreet plan
        discreet plan histogram --epsilon 0.5 --delta 1e-6 --size 20000 --cells 121
        discreet plan logistic --epsilon 1 --delta 1e-6 --size 10000 --d 10
        discreet plan box --epsilon 1 --delta 1e-6 --alpha 0.05 --d 2 --bits 16
        discreet plan questions --epsilon 1 --delta 1e-6 --size 5912 --alpha 0.05 --questions 100 --bits 20

    With a schema, people and columns are known, and a share of what is left in its ledger may be planned with:

    \b
        discreet plan linear --schema people.toml --target visits --features age,sex --epsilon 0.5 --delta 1e-7
        discreet plan histogram --schema people.toml --features sex,health --share 1/3
    """
    output = Output(as_json=as_json)
    if kind is None or listed:
        _list(output)
        return
    numbers = {name: value for name in _NUMBERS if (value := options[name]) is not None}
    for pair in named:
        name, _, value = pair.partition("=")
        if not name.isidentifier() or not (value.isascii() and value.isdecimal()):
            raise ParameterError(f"--number takes NAME=N with a whole number N, found {name}={value}")
        numbers[name] = int(value)
    check_numbers(kind, numbers)
    target = options["target"]
    shape = {name: options[name] for name in ("radius", "huber") if options[name] is not None}
    table, about = options.pop("table_name"), ""
    schema = None if schema_path is None else dp.Schema.read(schema_path, table)
    if schema is None and (options["features"] is not None or target is not None):
        raise ParameterError("--features and --target are columns of a schema: give --schema people.toml")
    features = None if schema is None else columns_named(options["features"], schema.domain)
    if schema is not None and kind in MODELS and target is not None:
        if "d" in numbers:
            raise ParameterError("--d is counted from the columns when there is a --target: leave it out")
        domain, given = schema.domain, features_of(kind, schema.domain, target, features) or ()
        check_kind(kind, domain, target)  # all of it exactly as `discreet fit` would fit it
        shape = shape_of(kind, domain, target, len(given), options["radius"], options["huber"])
        shape = {"domain": domain, "target": target, "features": given, **shape}
    elif schema is not None and schema_path is not None:
        if target is not None:
            schema.domain.column(target)
        columns = features or [name for name in schema.domain.names if name != target]
        counts = numbers_of(kind, schema.domain, columns)
        if counts:
            words = ", ".join(f"{name} {value:,}" for name, value in counts.items())
            about = f"from {schema_path.name} ({_listed(columns)}): {words}"
        if "bits" in numbers:
            counts.pop("cells", None)
        numbers = {**counts, **numbers}
    made = _plan(kind, schema, options, {**numbers, **shape})
    _show(made, about, shape, output)
    output.result(plan_record(made))


def _plan(kind: str, schema: dp.Schema | None, options: dict[str, Any], numbers: dict[str, Any]) -> Plan:
    """The plan, with what the arguments leave open taken from the schema and its ledger."""
    epsilon, delta, share = (options[name] for name in ("epsilon", "delta", "share"))
    given = {
        name: dp.exact.whole(**{name: options[name]}) for name in ("size", "rows_per_unit") if options[name] is not None
    }
    known = {"d", *numbers} if "domain" in numbers else set(numbers)
    missing = [f"--{name}" for name in KINDS[kind].needs if name not in known]
    if missing:
        raise ParameterError(f"a plan for {kind} needs {' and '.join(missing)}, a whole number each")
    if (epsilon is None) == (share is None):
        either = "--epsilon 1 (and --delta 1e-6), or --schema people.toml with --share 1/3"
        raise ParameterError(f"say what it may cost: either {either}")
    if options["allowance"] is not None and share is None:
        raise ParameterError("--allowance goes with --share: an epsilon is planned without a ledger")
    if share is not None and delta is not None:
        raise ParameterError("--delta goes with --epsilon; a share is of the ledger's own epsilon and delta")
    where = schema and schema.ledger
    ledger = dp.Ledger.open(where) if where and dp.Ledger.exists(where) else None
    relation, rows = options["neighbours"], given.get("rows_per_unit")
    stated = None if relation is None and rows is None else dp.Neighbours(relation or "replace-one", rows or 1)
    if schema is not None and schema.within is not None and stated is None:
        stated = schema.relation
    size = given.get("size") or (None if schema is None else schema.size)
    seconds = 0.0 if schema is None else schema.pass_seconds
    asked = {"alpha": options["alpha"], "beta": options["beta"], "pass_seconds": seconds, **numbers}
    if share is not None:
        if ledger is None:
            raise ParameterError("a share of which ledger? Give --schema with one that names a ledger which is there")
        whose = {"ledger": ledger, "share": share, "allowance": options["allowance"]}
        return dp.plan(kind, neighbours=stated, size=size, **whose, **asked)  # refuses another relation
    budget = dp.Budget(epsilon, delta or 0)
    if ledger is not None and ledger.facts is not None:
        size = size or ledger.facts.size
    if ledger is not None and "domain" in numbers and stated is None:
        # A fit reads its own epsilon and delta as an empty ledger does, with the same part for failures.
        alone = dp.Ledger.in_memory(budget, ledger.identity, failure_share=ledger.failure_share)
        return replace(dp.plan(kind, ledger=alone, share=None, size=size, **asked), left=None)
    if schema is not None:
        relation, rows = relation or schema.relation.kind, rows or schema.relation.rows
    neighbours = dp.Neighbours(relation or "replace-one", rows or 1)
    return dp.plan(kind, budget=budget, neighbours=neighbours, size=size, **asked)


# How it is shown.


def _list(output: Output) -> None:
    both, rows = {"bits", "cells"}, []
    for name, kind in KINDS.items():
        either = ["--bits or --cells"] if both <= {*kind.may} else []
        others = [f"[--{each}]" for each in kind.may if not (either and each in both)]
        takes = " ".join([*(f"--{each}" for each in kind.needs), *either, *others])
        rows.append((name, takes, kind.about))
    if output.wide:
        output.table(("kind", "needs", "about"), rows)
    for name, takes, about in rows if not output.wide else ():
        output.say(f"{name} {takes}".rstrip(), style="bold")
        output.hang(about, "  ")
    output.result({"kinds": {name: {"needs": k.needs, "may": k.may, "about": k.about} for name, k in KINDS.items()}})


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(map(one_line, columns)) if len(columns) <= 4 else f"{len(columns)} columns"


def _show(made: Plan, about: str, shape: dict[str, Any], output: Output) -> None:
    if shape.get("features"):
        model = f"{one_line(shape['target'])} from {_listed(shape['features'])}"
        about = f"{model}: d {dict(made.numbers)['d']}, and an intercept"
    output.sheet(made.sheet(about))
    if made.taken is not None and made.taken.method != made.rows[0].method:
        output.say(_BY_NAME, style="dim")
