"""`discreet plan`: what a budget buys, before anything is spent. Reads no rows; with a schema, its declarations."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import textwrap
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.declared import Told
from discreet.cli.options import FILE, Command, Output
from discreet.describe import one_line
from discreet.errors import ParameterError
from discreet.plan import KINDS

if TYPE_CHECKING:
    from discreet.guarantee import Budget
    from discreet.ledger import Ledger
    from discreet.plan import Plan, Row

_NARROW = 76  # columns: below this a table of six is not readable, and every method gets its own lines

_BY_NAME = "`discreet fit` takes another by its name: --method NAME. In several dimensions the exponential is slow."

_NUMBERS = {
    "bits": "2^bits values, or cells of the domain.",
    "candidates": "How many to choose from.",
    "cells": "How many cells.",
    "conditions": "How many conditions a rule may choose from.",
    "d": "How many columns, features or booleans.",
    "each": "Cells of each marginal.",
    "hypotheses": "How many to choose from.",
    "k": "At most so many parts of a rule.",
    "marginals": "How many sets of columns are asked about.",
    "percent": "Which quantile.",
    "questions": "How many questions.",
    "rows": "How many made-up rows.",
}


class _Whole(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions only
    """A whole number, also as 1e6 or 1_000_000."""

    name = "n"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            found = value if isinstance(value, int) else Fraction(str(value))
        except (ValueError, ZeroDivisionError):
            found = Fraction(1, 2)
        if found != int(found):
            self.fail(f"{value!r} is not a whole number", param, ctx)
        return int(found)


def _number_options(command: Command) -> Command:
    for name in sorted({name for kind in KINDS.values() for name in kind.numbers}, reverse=True):
        command = click.option(f"--{name}", name, type=_Whole(), help=_NUMBERS[name])(command)
    return command


@click.command()
@click.argument("kind", required=False)
@click.option("--list", "listed", is_flag=True, help="All kinds with the numbers that they need; also without a KIND.")
@click.option("--epsilon", help="What this one release may cost.")
@click.option("--delta", help="It may fail with this probability; 0 unless it is given.")
@click.option("--share", help="Instead: so much of what is left in the ledger of --schema, as 1/3.")
@click.option("--allowance", metavar="NAME", help="With --share: so much of what is left under this name.")
@click.option("--schema", "schema_path", type=FILE, help="Who is protected, how many, and numbers from the columns.")
@click.option("--features", help="With --schema: the columns, as age,sex; all but the target unless named.")
@click.option("--target", help="With --schema: the column to predict, which is no feature.")
@click.option("--radius", help="linear, logistic: how long the coefficients of (scaled) features may be together.")
@click.option("--huber", help="linear: misses above this count linearly.")
@click.option("--neighbours", type=click.Choice(["replace-one", "add-remove"]), help="What is protected.")
@click.option("--rows-per-unit", type=_Whole(), help="How many rows a person may hold.")
@click.option("--size", type=_Whole(), help="How many people there are: shows errors as fractions of it.")
@click.option("--alpha", help="A wanted error, as a fraction: shows the size that it needs.")
@click.option("--beta", default="0.05", show_default=True, help="Each promise may fail with this probability.")
@_number_options
@click.option("--number", "named", multiple=True, metavar="NAME=N", help="A number by its name: cells=100.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def plan(
    kind: str | None,
    listed: bool,
    epsilon: str | None,
    delta: str | None,
    share: str | None,
    allowance: str | None,
    schema_path: Path | None,
    features: str | None,
    target: str | None,
    radius: str | None,
    huber: str | None,
    neighbours: str | None,
    rows_per_unit: int | None,
    size: int | None,
    alpha: str | None,
    beta: str,
    named: tuple[str, ...],
    as_json: bool,
    **numbers: int | None,
) -> None:
    """What a budget buys, before anything is spent. Reads no rows.

    Every method for one KIND of release side by side, the best first: the error that it promises for --size people,
    the size that it needs for an error of --alpha, and the theorem that it rests on. Without a KIND: all kinds.

    Models are planned in units where rows have norm 1, targets lie in [-1, 1] and values in [0, 1]; with --schema and
    --target as `discreet fit` fits them, in the target's own units. The method that it takes unasked is marked.

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
    given = {name: value for name, value in numbers.items() if value is not None} | _by_name(named)
    told = Told.of(schema_path, kind, features, target, radius, huber)
    if told.model and "d" in given:
        raise ParameterError("--d is counted from the columns when there is a --target: leave it out")
    known = {name: value for name, value in told.numbers.items() if not (name == "cells" and "bits" in given)}
    shape = {name: value for name, value in (("radius", radius), ("huber", huber)) if value is not None}
    with _speaking_of_options():
        found = _planned(
            kind,
            told,
            cost=(epsilon, delta, share, allowance),
            relation=(neighbours, rows_per_unit),
            size=size,
            asked={"alpha": alpha, "beta": beta, **known, **shape, **given, **told.model},
        )
    _show(found, told, output)
    output.result(_record(found))


@contextlib.contextmanager
def _speaking_of_options() -> Iterator[None]:
    """The library's errors name arguments, as size=; here they are options."""
    try:
        yield
    except ParameterError as refused:
        raise type(refused)(_with_options(str(refused))) from refused


def _with_options(text: str) -> str:
    """size= is --size here, and method="output" is --method output."""
    said = re.sub(r"\bmethod=\"([a-z-]+)\"", r"--method \1", text)
    return re.sub(r"\b([a-z]+)=(['\"\w]?)", lambda found: f"--{found[1]}{found[2] and ' '}{found[2]}", said)


def _by_name(pairs: tuple[str, ...]) -> dict[str, int]:
    found = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        if not name.isidentifier() or not (value.isascii() and value.isdecimal()):
            raise ParameterError(f"--number takes NAME=N with a whole number N, found {name}={value}")
        found[name] = int(value)
    return found


def _planned(
    kind: str,
    told: Told,
    *,
    cost: tuple[str | None, str | None, str | None, str | None],
    relation: tuple[str | None, int | None],
    size: int | None,
    asked: dict[str, Any],
) -> Plan:
    """The plan, with what the arguments leave open taken from the schema and its ledger."""
    from discreet.guarantee import Budget, Neighbours
    from discreet.plan import plan as planned

    epsilon, delta, share, allowance = cost
    counted = ("d",) if told.model else ()
    missing = [name for name in KINDS[kind].needs if name not in (*asked, *counted)] if kind in KINDS else []
    if missing:
        raise ParameterError(
            f"a plan for {kind} needs {' and '.join(f'--{name}' for name in missing)}, a whole number each"
        )
    if (epsilon is None) == (share is None):
        raise ParameterError(
            "say what it may cost: either --epsilon 1 (and --delta 1e-6), or --schema people.toml with --share 1/3"
        )
    if allowance is not None and share is None:
        raise ParameterError("--allowance goes with --share: an epsilon is planned without a ledger")
    ledger = told.ledger()
    if share is not None:
        if delta is not None or ledger is None:
            raise ParameterError(
                "--delta goes with --epsilon; a share is of the ledger's own epsilon and delta"
                if delta is not None
                else "a share of which ledger? Give --schema with one that names a ledger which is there"
            )
        if told.schema is not None and size is None:
            size = told.schema.size
        whose: dict[str, Any] = {"ledger": ledger, "share": share, "allowance": allowance}
        return planned(kind, neighbours=_same(relation), size=size, **whose, **asked)
    if told.schema is not None:
        known = None if ledger is None or ledger.facts is None else ledger.facts.size
        size = size or told.schema.size or known
        if told.model and ledger is not None and relation == (None, None):
            alone = _as_charged(ledger, Budget(epsilon or 0, delta or 0))
            return dataclasses.replace(planned(kind, ledger=alone, share=None, size=size, **asked), left=None)
        relation = (relation[0] or told.schema.neighbours, relation[1] or told.schema.rows_per_unit)
    neighbours = Neighbours(relation[0] or "replace-one", relation[1] or 1)
    return planned(kind, budget=Budget(epsilon or 0, delta or 0), neighbours=neighbours, size=size, **asked)


def _as_charged(ledger: Ledger, budget: Budget) -> Ledger:
    """An empty ledger with this budget: a fit reads its own epsilon and delta so, with the same part for failures."""
    from discreet.ledger import Ledger

    return Ledger.in_memory(budget, ledger.identity, failure_share=ledger.failure_share)


def _same(relation: tuple[str | None, int | None]) -> Any:
    """With a ledger the relation is its own; another one that is named is refused by the plan."""
    from discreet.guarantee import Neighbours

    return None if relation == (None, None) else Neighbours(relation[0] or "replace-one", relation[1] or 1)


# How it is shown.


def _list(output: Output) -> None:
    rows = [(name, _takes(name), kind.about) for name, kind in KINDS.items()]
    if output.console.width >= _NARROW:
        output.table(("kind", "needs", "about"), rows)
    else:
        for name, takes, about in rows:
            output.say(f"{name} {takes}".rstrip(), style="bold")
            output.say(_hanging(about, output.console.width))
    output.result({"kinds": {name: {"needs": k.needs, "may": k.may, "about": k.about} for name, k in KINDS.items()}})


def _takes(name: str) -> str:
    kind = KINDS[name]
    either = [" or ".join(f"--{each}" for each in ("bits", "cells"))] if {"bits", "cells"} <= set(kind.may) else []
    others = [f"[--{each}]" for each in kind.may if not (either and each in ("bits", "cells"))]
    return " ".join([*(f"--{each}" for each in kind.needs), *either, *others])


def _show(found: Plan, told: Told, output: Output) -> None:
    titles, rows = found.table()
    output.say(found.head)
    for about in (told.from_columns, _columns(found, told), f"units: {found.units}" if found.units else ""):
        if about:
            output.say(about, style="dim")
    if rows and output.console.width >= _NARROW:
        output.table(titles, rows)
    for row in rows if output.console.width < _NARROW else ():
        output.say(row[0], style="bold")
        for title, cell in list(zip(titles, row, strict=True))[1:]:
            if cell != "-":
                output.say(_hanging(f"{title} {cell}", output.console.width))
    if not rows:
        output.say("No method promises anything here.")
    for note in found.notes():
        output.say(_with_options(note), style="dim")
    if found.taken is not None and found.taken.method != found.rows[0].method:
        output.say(_BY_NAME, style="dim")


def _columns(found: Plan, told: Told) -> str:
    """What a model with a target is planned for."""
    if not told.model:
        return ""
    target, columns = one_line(told.model["target"]), told.model["features"]
    about = ", ".join(map(one_line, columns)) if len(columns) <= 4 else f"{len(columns)} columns"
    return f"{target} from {about}: d {dict(found.numbers)['d']}, and an intercept" if columns else ""


def _hanging(text: str, width: int) -> str:
    return textwrap.fill(text, width, initial_indent="  ", subsequent_indent="    ")


def _record(found: Plan) -> dict[str, Any]:
    left = found.left
    caps = None if left is None else left.remaining().share(left.share.part)
    cost: dict[str, Any] = {"epsilon": str(found.budget.epsilon), "delta": str(found.budget.delta)}
    if left is not None and caps is not None:
        amounts = {"renyi_nano": caps.renyi, "pure_nano": caps.pure, "failure_atto": caps.failure}
        cost = {"ledger": left.ledger.id, "share": str(left.share.part), "allowance": left.allowance, **amounts}
    return {
        "kind": found.kind,
        "cost": cost,
        "neighbours": found.neighbours.kind,
        "rows_per_unit": found.neighbours.rows,
        "size": found.size,
        "alpha": None if found.alpha is None else float(found.alpha),
        "beta": float(found.beta),
        "promise": "in expectation" if KINDS[found.kind].expected else "with probability 1 - beta",
        "error_in": KINDS[found.kind].error,
        "units": found.units or None,
        "radius": None if found.radius is None else float(found.radius),
        "fit_takes": None if found.taken is None else found.taken.method,
        "numbers": dict(found.numbers),
        "methods": [_row(row) for row in found.promising],
        "refused": [{"method": row.method, "reason": row.refusal} for row in found.refused],
    }


def _row(row: Row) -> dict[str, Any]:
    return {
        "method": row.method,
        "noise": None if row.noise is None else float(row.noise),
        "error": row.error,
        "of_size": row.alpha,
        "size_for_alpha": row.needed,
        "rests_on": row.theorem,
        "assuming": row.assuming,
        "can_be_run": not row.imagined,
        "fit_takes_this": row.taken,
    }
