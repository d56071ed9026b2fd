"""Which table, which ledger, at what price: the options that commands share, and the table that they open.

A command that releases something takes SCHEMA, a TOML file that names rows and ledger (`discreet.schema`), and has
--data, --ledger, --rehearse and --json. With --rehearse the rows are made up from the schema and the ledger is
`NAME.rehearsal.ledger` beside the real one; every line that is printed begins with the word rehearsal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

import discreet as dp
from discreet.cli.output import Output

FILE = click.Path(dir_okay=False, path_type=Path)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for programs.")
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
Called = TypeVar("Called", bound=Callable[..., Any])


class Command(click.Command):
    """A command whose errors begin with the option that is wrong: they carry the name of the argument."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except dp.ParameterError as error:
            options = {each.name: each.opts[0] for each in self.params if each.param_type_name == "option"}
            option = options.get(error.argument or "")
            if option is None:
                raise
            raise dp.ParameterError(f"{option}: {error}") from error


def together(*options: Decorator) -> Decorator:
    """Several options as one decorator, in this order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


table_options = together(
    click.argument("schema", type=FILE),
    click.option("--data", "data_path", type=FILE, help="File of rows, instead of the one in the schema."),
    click.option("--ledger", "ledger_path", type=FILE, help="Ledger file, instead of the one in the schema."),
    click.option("--rehearse", is_flag=True, help="Use synthetic rows and a separate ledger; spends nothing."),
    JSON,
)
allowance_option = click.option(
    "--allowance", metavar="NAME", help="Charge under this name: `ledger allow` gives it a share of the budget."
)
again_option = click.option(
    "--again", is_flag=True, help="Pay for a new release, even if the same was released and stored before."
)
price_options = together(
    click.option("--epsilon", help="Budget of this release."),
    click.option("--delta", help="With --epsilon: the probability with which its guarantee may fail."),
    click.option("--share", help="Instead of --epsilon: this share of the remaining budget, as 1/3."),
    allowance_option,
    again_option,
)
model_options = together(
    click.option("--target", required=True, metavar="COLUMN", help="Column to predict."),
    click.option(
        "--features", metavar="A,B,C", help="Columns to predict from.  [default: all other columns that can serve]"
    ),
    price_options,
)
save_options = together(
    click.option("--save", type=FILE, help="Write the result to this JSON file, which people can read too."),
    click.option("--force", is_flag=True, help="With --save: replace an existing file."),
)


def take_cost(options: dict[str, Any]) -> dict[str, Any]:
    """Take --epsilon, --delta and --share out of the options: what an estimator may cost, in exactly one way."""
    epsilon, delta, share = (options.pop(name) for name in ("epsilon", "delta", "share"))
    if (epsilon is None) == (share is None):
        raise dp.ParameterError("say what it may cost: either --epsilon 0.5 (and --delta 1e-7), or --share 1/3")
    if share is not None and delta is not None:
        raise dp.ParameterError("--delta goes with --epsilon; a share is of the ledger's own epsilon and delta")
    if share is not None:
        return {"epsilon": dp.Share(share), "delta": 0}
    budget = dp.Budget(epsilon, delta or 0)
    return {"epsilon": budget.epsilon, "delta": budget.delta}


@dataclass(frozen=True, slots=True)
class OpenTable:
    """A declaration, its rows and their ledger, real or made up.

    allowance  the name under which charges are made, if there is one
    """

    schema: dp.Schema
    table: dp.Table | dp.ParquetTable
    ledger: dp.Ledger
    output: Output
    allowance: str | None = None


def open_table(
    path: Path,
    *,
    data_path: Path | None,
    ledger_path: Path | None,
    rehearse: bool,
    as_json: bool,
    allowance: str | None = None,
    again: bool = False,
) -> OpenTable:
    """Read the schema, open the ledger, read the rows (or make them up): in this order, cheapest first.

    allowance  a name that the ledger must know; a rehearsal gives it the share that it really has
    again      nothing that is stored in the ledger is given back
    """
    schema = dp.Schema.read(path)
    output = Output(as_json=as_json, rehearsal=rehearse)
    where = ledger_path or schema.ledger
    if where is None:
        raise dp.ParameterError('which ledger? Add ledger = "people.ledger" to the schema, or give --ledger')
    if rehearse:
        table, ledger = _rehearsal(schema, where, output, allowance)
    else:
        ledger = _ledger(where, path, schema.data)
        if allowance is not None:
            ledger.remaining(allowance=allowance)  # refuses unknown names
        with output.working("reading the rows"):
            table = schema.table(data_path)
    if again:
        from discreet.estimators.replay import pay_again

        pay_again(ledger)
    return OpenTable(schema, table, ledger, output, allowance)


def _ledger(where: Path, schema: Path, data: Path | None) -> dp.Ledger:
    from discreet.ledger import sidecar_path

    if where.exists():
        return dp.Ledger.open(where)
    if data is not None and sidecar_path(data).exists():
        raise dp.ParameterError(
            f"there is no ledger at {where.name}, and {data.name} had one: restore it from a backup"
        )
    raise dp.ParameterError(
        f"there is no ledger at {where.name} yet: `discreet ledger create {schema} --epsilon 1 --delta 1e-6` makes "
        "one; --rehearse works without"
    )


def _rehearsal(schema: dp.Schema, real: Path, output: Output, allowance: str | None) -> tuple[Any, dp.Ledger]:
    """Made-up rows and their ledger: as many people and as much budget as the real ones have, if that is known."""
    from discreet.rehearsal import PEOPLE

    known = dp.Ledger.open(real, look=True) if real.exists() else None
    budget = dp.Budget(1, "1e-6") if known is None else known.budget
    facts = None if known is None else known.facts
    people = schema.size or (None if facts is None else facts.size) or PEOPLE
    table = schema.rehearsal(people)
    where = real.with_name(f"{real.stem}.rehearsal.ledger")
    if where.exists():
        ledger = dp.Ledger.open(where)
    else:
        output.say(f"{where.name}: a rehearsal with {budget} and {people:,} made-up people")
        ledger = dp.Ledger.create(where, budget, table)
    if allowance is not None:
        (known or ledger).remaining(allowance=allowance)  # refuses unknown names
        real_share, share = (
            next((each.share for each in book.allowances() if each.name == allowance), None)
            for book in (known or ledger, ledger)
        )
        if real_share is not None and real_share != share:
            ledger.allow(allowance, share=real_share)
    if ledger.budget != budget or (ledger.facts is not None and ledger.facts.size != table.facts.size):
        raise dp.LedgerMismatch(f"{where.name} rehearses another budget or another number of people: delete it")
    return table, ledger


def ledger_at(path: Path) -> dp.Ledger:
    """The ledger in this file, or the one that this schema names."""
    if path.suffix.lower() != ".toml":
        return dp.Ledger.open(path)
    named = dp.Schema.read(path).ledger
    if named is None:
        raise dp.ParameterError(f'{path.name} names no ledger: add ledger = "{path.stem}.ledger" to it')
    return dp.Ledger.open(named)
