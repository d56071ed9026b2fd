"""`discreet ledger create | show | verify | reconcile | export`: the owner's work."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet import exact
from discreet.cli.front import FILE, one_line
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.ledger import Ledger

_LARGE_EPSILON = 10


@click.group()
def ledger() -> None:
    """The budget of one table: what was promised, what is spent, what is left.

    A ledger is charged, durably, before anything is computed. Its promise (epsilon, delta) covers everything that is
    ever released through it, by anybody.
    """


@ledger.command()
@click.argument("path", type=FILE)
@click.option("--epsilon", required=True, help="The promise: 1 is usual, above 10 promises little.")
@click.option("--delta", default="0", show_default=True, help="The promise may fail with this probability: 1e-6, or 0.")
@click.option("--name", required=True, help="What the table is called; releases must come from a table of that name.")
@click.option(
    "--neighbours", required=True, type=click.Choice(["replace-one", "add-remove"]), help="What is protected."
)
@click.option("--unit", default=None, help="The column that names a person, if a person may have several rows.")
@click.option("--rows-per-unit", default=None, type=int, help="At most this many rows of a person are used.")
@click.option("--size", default=None, type=int, help="replace-one: the public number of persons.")
@click.option("--yes", is_flag=True, help="Do not ask back when epsilon is above 10.")
def create(
    path: Path,
    epsilon: str,
    delta: str,
    name: str,
    neighbours: str,
    unit: str | None,
    rows_per_unit: int | None,
    size: int | None,
    yes: bool,
) -> None:
    """Make a ledger in a new file. Everything here is fixed for good."""
    from discreet.data import Identity
    from discreet.guarantee import Budget, Neighbours
    from discreet.ledger import Ledger

    if (unit is None) != (rows_per_unit is None):
        raise ParameterError("--unit and --rows-per-unit go together")
    budget = Budget(epsilon, delta)
    if budget.epsilon > _LARGE_EPSILON and not yes:
        click.confirm(
            f"epsilon = {epsilon} promises very little to the people in the table. Go on?", abort=True, err=True
        )
    relation = Neighbours(neighbours, rows_per_unit or 1)
    identity = Identity(exact.text(name=name), relation, unit)
    made = Ledger.create(path, budget, identity, size=size)
    click.echo(f"{path.name}: {budget} for {name!r}, {relation}; id {made.id}")


@ledger.command()
@click.argument("path", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def show(path: Path, as_json: bool) -> None:
    """What is promised, spent and left, and the last charges."""
    from discreet.ledger import Ledger

    found = Ledger.open(path)
    summary = _summary(found)
    if as_json:
        click.echo(json.dumps(summary, indent=2))
        return
    for line in _lines(found, summary):
        click.echo(line)


@ledger.command()
@click.argument("path", type=FILE)
def verify(path: Path) -> None:
    """Check every entry, every sum, every price and the high-water mark."""
    from discreet.catalogue import CATALOGUE
    from discreet.ledger import Ledger

    found = Ledger.open(path)
    unknown = found.verify(CATALOGUE)
    count = sum(1 for _ in found.entries())
    others = f" ({len(unknown)} by mechanisms that are not discreet's own, not priced again)" if unknown else ""
    click.echo(f"{path.name}: {count} {'entry' if count == 1 else 'entries'}, all sound{others}")


@ledger.command()
@click.argument("path", type=FILE)
@click.option("--adopt", is_flag=True, help="There is no readable mark here: this is the newest copy, I know it.")
@click.option("--yes", is_flag=True, help="Do not ask back.")
def reconcile(path: Path, adopt: bool, yes: bool) -> None:
    """Accept a ledger that its high-water mark contradicts, counting as spent all that the mark proves.

    All open conversations end. A ledger that was moved here, or whose mark is damaged, has nothing to prove what it
    spent: --adopt then says that this is its newest copy.
    """
    from discreet.ledger import Ledger

    found = Ledger.open(path)
    if not found.rolled_back():
        click.echo(f"{path.name} agrees with its mark: nothing to do")
        return
    if not yes:
        click.confirm(
            f"{path.name} does not agree with its mark. Raise its spending to what the mark proves, if there is one?",
            abort=True,
            err=True,
        )
    found.reconcile(adopt=adopt)
    click.echo(f"{path.name}: {found.spent()}")


@ledger.command()
@click.argument("path", type=FILE)
@click.option("--everything", is_flag=True, help="Also memos, request ids, who asked, and the queries.")
def export(path: Path, everything: bool) -> None:
    """Every entry as a line of JSON: prices and released answers, never rows."""
    from discreet.ledger import Ledger

    for line in Ledger.open(path).export(redact=not everything):
        click.echo(line)


def _summary(found: Ledger) -> dict[str, Any]:
    """Everything `show` says, as JSON. Amounts are integers: nano-units of epsilon and Renyi, 1e-18 of failure."""
    entries = list(found.entries())
    ends = {each["charge"]: each["kind"] for each in entries if each["kind"] in _ENDS}
    spent, left = found.spent(), found.remaining()
    return {
        "ledger": found.id,
        "warning": "NOT PRIVATE" if found.testing else None,
        "agrees_with_its_mark": not found.rolled_back(),
        "table": found.identity.name,
        "neighbours": str(found.identity.neighbours),
        "unit": found.identity.unit,
        "size": None if found.facts is None else found.facts.size,
        "epsilon": str(found.budget.epsilon),
        "delta": str(found.budget.delta),
        "order": None if spent.order is None else str(spent.order),
        "spent": {"renyi_nano": spent.renyi, "pure_nano": spent.pure, "failure_atto": spent.failure},
        "left": {"renyi_nano": left.renyi, "pure_nano": left.pure, "failure_atto": left.failure},
        "allowances": {each["allowance"]: each["share"] for each in entries if each["kind"] == "allow"},
        "reconciled": [each["seq"] for each in entries if each["kind"] == "reconcile"],
        "entries": len(entries),
        "answers": sum(each["kind"] == "said" for each in entries),
        "charges": [
            {
                "entry": each["seq"],
                "time": each["time"],
                "mechanism": each["mechanism"].get("name", "without a name"),
                "renyi_nano": each["price"]["renyi"],
                "pure_nano": each["price"]["pure"],
                "failure_atto": each["price"]["failure"],
                "state": _ENDS.get(ends.get(each["seq"], ""), "open"),
                "memo": each["memo"],
            }
            for each in entries
            if each["kind"] == "charge"
        ],
    }


_ENDS = {"answer": "answered", "burn": "burned", "top": "ended", "close": "closed"}


def _lines(found: Ledger, summary: dict[str, Any], last: int = 20) -> list[str]:
    """The summary for the eye: the promise, the books, and the last charges."""
    unit = "" if summary["unit"] is None else f", a person is a {one_line(summary['unit'])}"
    size = "" if summary["size"] is None else f", size {summary['size']:,}"
    head = [
        f"table       {one_line(summary['table'])} ({summary['neighbours']}{unit}{size})",
        f"promise     {found.budget}",
        *(f"spent       {line}" for line in str(found.spent()).split("; ")),
        *(f"left        {line}" for line in str(found.remaining()).split("; ")),
        *(f"allowance   {one_line(name)}: {share} of every cap" for name, share in summary["allowances"].items()),
        *(f"reconciled  in entry {seq}: spending was raised to what a mark proved" for seq in summary["reconciled"]),
    ]
    if summary["warning"]:
        head.insert(0, f"{summary['warning']}: a testing ledger")
    if not summary["agrees_with_its_mark"]:
        head.insert(
            0, "NOT AS ITS MARK SAYS: an older copy, or a moved one; nothing is released until `ledger reconcile`"
        )
    charges = summary["charges"]
    rows = [_charge_cells(each) for each in charges[-last:]]
    table = [("entry", "time", "mechanism", "epsilon", "Renyi", "state", "memo"), *rows] if rows else []
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    body = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    shown = f", the last {last}:" if len(charges) > last else ""
    answers = [f"answers     {summary['answers']} given by sessions"] if summary["answers"] else []
    return [*head, *answers, f"charges     {len(charges)}{shown}", *body]


def _charge_cells(charge: dict[str, Any]) -> tuple[str, ...]:
    prices = (_units(charge["pure_nano"]), _units(charge["renyi_nano"]))
    mechanism, memo = one_line(charge["mechanism"]), one_line(charge["memo"])
    return str(charge["entry"]), charge["time"], mechanism, *prices, charge["state"], memo


def _units(nano: int | None) -> str:
    return "none" if nano is None else exact.shown(Fraction(nano, 10**9))
