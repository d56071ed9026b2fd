"""`discreet plan`: what a budget buys, before anything is spent. Reads no rows; with a schema, its declarations."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import discreet as dp
from discreet.cli.fit import check_kind, features_of, shape_of
from discreet.cli.options import FILE, JSON, Command, Decorator, together
from discreet.cli.output import NARROW, Output
from discreet.describe import one_line
from discreet.errors import ParameterError
from discreet.plan import KINDS, MODELS
from discreet.schema import kind_of

if TYPE_CHECKING:
    from discreet.data import Column
    from discreet.plan import Plan, PlanRow

_BY_NAME = "`discreet fit` takes another by its name: --method NAME. In several dimensions the exponential is slow."

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
            found = value if isinstance(value, int) else Fraction(str(value))
        except (ValueError, ZeroDivisionError):
            found = Fraction(1, 2)
        if found != int(found):
            self.fail(f"{value!r} is not a whole number", param, ctx)
        return int(found)


_number_options: Decorator = together(
    *(
        click.option(f"--{name}", name, type=_Whole(), help=_NUMBERS[name])
        for name in sorted({name for kind in KINDS.values() for name in kind.numbers})
    )
)


@click.command(cls=Command)
@click.argument("kind", required=False)
@click.option(
    "--list", "listed", is_flag=True, help="List all kinds and the numbers that they need; also without a KIND."
)
@click.option("--epsilon", help="Budget of this one release.")
@click.option("--delta", help="Probability with which its guarantee may fail.  [default: 0]")
@click.option("--share", help="Instead: this share of the remaining budget in the ledger of --schema, as 1/3.")
@click.option("--allowance", metavar="NAME", help="With --share: of the remaining budget under this name.")
@click.option("--schema", "schema_path", type=FILE, help="Schema: who is protected, how many, and which columns.")
@click.option("--features", help="With --schema: columns, as age,sex.  [default: all but the target]")
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
    given = {name: value for name, value in numbers.items() if value is not None} | _by_name(named)
    told = SchemaNumbers.of(schema_path, kind, features, target, radius, huber)
    if told.model and "d" in given:
        raise ParameterError("--d is counted from the columns when there is a --target: leave it out")
    known = {name: value for name, value in told.numbers.items() if not (name == "cells" and "bits" in given)}
    shape = {name: value for name, value in (("radius", radius), ("huber", huber)) if value is not None}
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
    told: SchemaNumbers,
    *,
    cost: tuple[str | None, str | None, str | None, str | None],
    relation: tuple[str | None, int | None],
    size: int | None,
    asked: dict[str, Any],
) -> Plan:
    """The plan, with what the arguments leave open taken from the schema and its ledger."""
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
        return dp.plan(kind, neighbours=_same(relation), size=size, **whose, **asked)
    if told.schema is not None:
        known = None if ledger is None or ledger.facts is None else ledger.facts.size
        size = size or told.schema.size or known
        if told.model and ledger is not None and relation == (None, None):
            alone = _as_charged(ledger, dp.Budget(epsilon or 0, delta or 0))
            return replace(dp.plan(kind, ledger=alone, share=None, size=size, **asked), left=None)
        relation = (relation[0] or told.schema.neighbours, relation[1] or told.schema.rows_per_unit)
    neighbours = dp.Neighbours(relation[0] or "replace-one", relation[1] or 1)
    return dp.plan(kind, budget=dp.Budget(epsilon or 0, delta or 0), neighbours=neighbours, size=size, **asked)


def _as_charged(ledger: dp.Ledger, budget: dp.Budget) -> dp.Ledger:
    """An empty ledger with this budget: a fit reads its own epsilon and delta so, with the same part for failures."""
    return dp.Ledger.in_memory(budget, ledger.identity, failure_share=ledger.failure_share)


def _same(relation: tuple[str | None, int | None]) -> Any:
    """With a ledger the relation is its own; another one that is named is refused by the plan."""
    return None if relation == (None, None) else dp.Neighbours(relation[0] or "replace-one", relation[1] or 1)


# How it is shown.


def _list(output: Output) -> None:
    rows = [(name, _takes(name), kind.about) for name, kind in KINDS.items()]
    if output.width >= NARROW:
        output.table(("kind", "needs", "about"), rows)
    else:
        for name, takes, about in rows:
            output.say(f"{name} {takes}".rstrip(), style="bold")
            output.hang(about, "  ")
    output.result({"kinds": {name: {"needs": k.needs, "may": k.may, "about": k.about} for name, k in KINDS.items()}})


def _takes(name: str) -> str:
    kind = KINDS[name]
    either = [" or ".join(f"--{each}" for each in ("bits", "cells"))] if {"bits", "cells"} <= set(kind.may) else []
    others = [f"[--{each}]" for each in kind.may if not (either and each in ("bits", "cells"))]
    return " ".join([*(f"--{each}" for each in kind.needs), *either, *others])


def _show(found: Plan, told: SchemaNumbers, output: Output) -> None:
    titles, rows = found.table()
    output.say(found.head)
    for about in (told.from_columns, _columns(found, told), f"units: {found.units}" if found.units else ""):
        if about:
            output.say(about, style="dim")
    if rows and output.width >= NARROW:
        output.table(titles, rows)
    for row in rows if output.width < NARROW else ():
        output.say(row[0], style="bold")
        for title, cell in list(zip(titles, row, strict=True))[1:]:
            if cell != "-":
                output.hang(f"{title} {cell}", "  ")
    if not rows:
        output.say("No method promises anything here.")
    for note in found.notes():
        output.say(note, style="dim")
    if found.taken is not None and found.taken.method != found.rows[0].method:
        output.say(_BY_NAME, style="dim")


def _columns(found: Plan, told: SchemaNumbers) -> str:
    """What a model with a target is planned for."""
    if not told.model:
        return ""
    target, columns = one_line(told.model["target"]), told.model["features"]
    about = ", ".join(map(one_line, columns)) if len(columns) <= 4 else f"{len(columns)} columns"
    return f"{target} from {about}: d {dict(found.numbers)['d']}, and an intercept" if columns else ""


def _record(found: Plan) -> dict[str, Any]:
    left = found.left
    caps = None if left is None else left.remaining().share(left.share.part)
    cost: dict[str, Any] = {"epsilon": str(found.budget.epsilon), "delta": str(found.budget.delta)}
    if left is not None and caps is not None:
        cost = {"ledger": left.ledger.id, "share": str(left.share.part), "allowance": left.allowance, **caps.record()}
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


def _row(row: PlanRow) -> dict[str, Any]:
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


# What a schema tells a plan: who is protected, how many there are, and numbers that follow from declared columns.


@dataclass(frozen=True, slots=True)
class SchemaNumbers:
    """What a schema says about people and columns; nothing without one.

    model  of a model with a target: what it is planned for, exactly as `discreet fit` would fit it
    """

    schema: dp.Schema | None
    numbers: dict[str, int]
    from_columns: str
    model: dict[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(
        path: Path | None,
        kind: str,
        features: str | None,
        target: str | None,
        radius: str | None = None,
        huber: str | None = None,
    ) -> SchemaNumbers:
        if path is None:
            if features is not None or target is not None:
                raise ParameterError("--features and --target are columns of a schema: give --schema people.toml")
            return SchemaNumbers(None, {}, "")
        schema = dp.Schema.read(path)
        if target is not None:
            schema.domain.column(target)
        if kind in MODELS and target is not None:
            return SchemaNumbers(schema, {}, "", _model(kind, schema.domain, target, features, radius, huber))
        names = [name for name in schema.domain.names if name != target]
        if features is not None:
            names = [name.strip() for name in features.split(",")]
        columns = {name: schema.domain.column(name) for name in names}
        read = _READ.get(kind)
        numbers = {} if read is None else read(schema, columns)
        shown = ", ".join(f"{name} {value:,}" for name, value in numbers.items())
        about = ", ".join(columns) if len(columns) <= 4 else f"{len(columns)} columns"
        return SchemaNumbers(schema, numbers, f"from {path.name} ({about}): {shown}" if shown else "")

    def ledger(self) -> dp.Ledger | None:
        """The ledger that the schema names, if it is there."""
        where = None if self.schema is None else self.schema.ledger
        return None if where is None or not where.exists() else dp.Ledger.open(where)


def _model(
    kind: str, domain: dp.Domain, target: str, features: str | None, radius: str | None, huber: str | None
) -> dict[str, Any]:
    columns = features_of(kind, domain, target, features)
    check_kind(kind, domain, target)
    shape = shape_of(kind, domain, target, len(columns or ()), radius, huber)
    return {"domain": domain, "target": target, "features": columns or (), **shape}


def _cells(schema: dp.Schema, columns: dict[str, Column]) -> dict[str, int]:
    return {"cells": math.prod(column.size for column in columns.values())}


def _candidates(schema: dp.Schema, columns: dict[str, Column]) -> dict[str, int]:
    return {"candidates": _cells(schema, columns)["cells"]}


def _coordinates(schema: dp.Schema, columns: dict[str, Column]) -> dict[str, int]:
    """As an estimator encodes them: a category has a coordinate for each level."""
    from discreet.erm.features import Declared

    return {"d": Declared(tuple(columns), 1, False).dimension(schema.domain)}


def _bits(schema: dp.Schema, columns: dict[str, Column]) -> dict[str, int]:
    return {"bits": max(1, *((column.size - 1).bit_length() for column in columns.values()))}


def _box(schema: dp.Schema, columns: dict[str, Column]) -> dict[str, int]:
    wrong = [name for name, column in columns.items() if kind_of(column) != "number"]
    if wrong:
        raise ParameterError(f"a box is about numbers, and {wrong[0]!r} is none: name numbers with --features")
    return {"d": len(columns), **_bits(schema, columns)}


def _bounds(schema: dp.Schema, columns: dict[str, Column]) -> dict[str, int]:
    if len(columns) != 1:
        raise ParameterError("this plan is about one column: name it with --features")
    (column,) = columns.values()
    return {} if kind_of(column) == "any number" else _bits(schema, columns)


def _booleans(schema: dp.Schema, columns: dict[str, Column]) -> dict[str, int]:
    from discreet.pac import Literals

    literals = Literals(tuple(columns))
    literals.check(schema.domain)
    return {"d": literals.variables(schema.domain)}


def _conditions(schema: dp.Schema, columns: dict[str, Column]) -> dict[str, int]:
    from discreet.pac import Thresholds

    return {"conditions": Thresholds(tuple(columns)).size(schema.domain)}


_READ: dict[str, Callable[[dp.Schema, dict[str, Column]], dict[str, int]]] = {
    "bounds": _bounds,
    "box": _box,
    "conjunction": _booleans,
    "histogram": _cells,
    "interior": _bounds,
    "linear": _coordinates,
    "logistic": _coordinates,
    "network": _coordinates,
    "questions": _cells,
    "rule": _conditions,
    "select": _candidates,
    "workload": _cells,
}
"""How the numbers of a kind follow from declared columns."""
