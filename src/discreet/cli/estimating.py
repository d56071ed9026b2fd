"""What `fit` and `learn` share: which columns, one charge, and a record that is saved and shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.options import FILE, Command, Opened, opened, price
from discreet.cli.receipt import Receipt, Write
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.data import Domain


def column_options(command: Command) -> Command:
    """--target and --features."""
    for option in (
        click.option("--features", metavar="A,B,C", help="The columns it is learned from; all others that can serve."),
        click.option("--target", required=True, metavar="COLUMN", help="The column that is learned."),
    ):
        command = option(command)
    return command


def save_options(command: Command) -> Command:
    """--save and --force."""
    for option in (
        click.option("--force", is_flag=True, help="With --save: replace a file that is there."),
        click.option("--save", type=FILE, help="Write it to this JSON file, which people can read too."),
    ):
        command = option(command)
    return command


def chosen_columns(domain: Domain, target: str, features: str | None, kinds: Any, words: str) -> list[str]:
    """The features: those that are named, or all but the target that can serve."""
    domain.column(target)
    serving = [name for name in domain.names if name != target and isinstance(domain.column(name), kinds)]
    if features is None:
        if not serving:
            raise ParameterError(f"no column but the target {target!r} has {words}")
        return serving
    named = [features] if features in domain else [each.strip() for each in features.split(",")]
    for name in named:
        domain.column(name)
        if name == target:
            raise ParameterError(f"--features must not contain the target {target!r}")
        if name not in serving:
            raise ParameterError(
                f"column {name!r} is declared {domain.column(name)!r}: a feature needs {words}: "
                f"{', '.join(serving) or 'no column has'}"
            )
    if len(set(named)) < len(named):
        raise ParameterError(f"--features names a column twice: {features}")
    return named


def cost_of(options: dict[str, Any]) -> dict[str, Any]:
    return price(options["epsilon"], options["delta"], options["share"])


def opened_with(schema: Path, options: dict[str, Any]) -> Opened:
    """The table and its ledger; with --again nothing that is stored there is given back."""
    from discreet.estimators.replay import pay_again

    keys = ("data_path", "ledger_path", "rehearse", "as_json", "allowance")
    found = opened(schema, **{key: options[key] for key in keys})
    if options["again"]:
        pay_again(found.ledger)
    return found


def fitted(
    found: Opened, estimator: Any, target: str, columns: Sequence[str] | None, allowance: str | None, text: str
) -> Any:
    from discreet.session import Session

    with found.output.working(text):
        session = Session(found.table, found.ledger, allowance=allowance)
        return session.fit(estimator, target=target, features=columns)


def features_said(columns: Sequence[str], everything: bool) -> tuple[str, str]:
    """Which columns it was learned from, as a line of the result."""
    return "from", f"{', '.join(columns)}{' (all that can serve: --features chooses)' if everything else ''}"


def kept(found: Opened, made: dict[str, Any], paid: Receipt, write: Write, show: Any) -> None:
    """Save, then show; shown also if it cannot be saved, since it is paid for."""
    from discreet.ledger.process import code_version

    rehearsal = {"rehearsal": True} if found.output.rehearsal else {}
    whole = {**rehearsal, "table": found.schema.name, **made, **paid.record(), "discreet": code_version()}
    try:
        write(whole)
    finally:
        show()
        found.output.result(whole)
