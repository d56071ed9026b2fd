"""The command line: `discreet tour | plan | audit | ledger create, show, verify, reconcile, export`.

Errors are one sentence on the error stream. Exit codes: 0 done; 1 refused (the ledger is damaged, behind its mark, used
up, of another table); 2 a wrong argument. Importing this module imports click and nothing heavy; each command imports
what it needs.
"""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet import exact
from discreet.errors import DiscreetError, ParameterError

if TYPE_CHECKING:
    from discreet.audit.divergence import Finding
    from discreet.ledger import Ledger

_LARGE_EPSILON = 10
_PATH = click.Path(dir_okay=False, path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="discreet", prog_name="discreet", message="%(prog)s %(version)s")
def commands() -> None:
    """Learn from private data under differential privacy."""


def main() -> None:
    """The entry point: runs a command and turns our errors into one sentence and an exit code."""
    try:
        commands.main(prog_name="discreet", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        click.echo("stopped: nothing was done", err=True)
        sys.exit(1)
    except DiscreetError as error:
        click.echo(f"discreet: {error}", err=True)
        sys.exit(2 if isinstance(error, ParameterError) else 1)
    except OSError as error:
        click.echo(f"discreet: {error.strerror or error}", err=True)
        sys.exit(1)


@commands.command()
@click.argument("kind")
@click.option("--epsilon", required=True, help="The budget of this one release.")
@click.option("--delta", default="0", show_default=True)
@click.option("--neighbours", default="replace-one", show_default=True, help="replace-one or add-remove.")
@click.option("--rows-per-unit", default=1, show_default=True, help="How many rows a person may hold.")
@click.option("--size", default=None, type=int, help="How many people there are: shows errors as fractions of it.")
@click.option("--alpha", default=None, help="A wanted error, as a fraction: shows the size that it needs.")
@click.option("--beta", default="0.05", show_default=True, help="Each promise may fail with this probability.")
@click.option("--number", "numbers", multiple=True, metavar="NAME=N", help="What the kind needs: cells=100, d=50.")
def plan(
    kind: str,
    epsilon: str,
    delta: str,
    neighbours: str,
    rows_per_unit: int,
    size: int | None,
    alpha: str | None,
    beta: str,
    numbers: tuple[str, ...],
) -> None:
    """What a budget buys, before anything is spent. Reads no data.

    KIND is count, histogram (cells), vector (d), select (candidates) or threshold (questions); or a learner: mean,
    median, linear (d) or logistic (d), in units where rows have norm 1, targets lie in [-1, 1] and values in [0, 1];
    or a learner of rules: interior (bits), box (d, bits), conjunction (d, k), rule (conditions, k), finite
    (hypotheses), whose error is the share of rows that it labels wrong; or questions (questions, and bits or cells of
    the domain): so many counts, each chosen after the answers before it. For example:

        \b
        discreet plan histogram --epsilon 0.5 --delta 1e-6 --size 20000 --number cells=121
        discreet plan logistic --epsilon 1 --delta 1e-6 --size 10000 --number d=10
        discreet plan box --epsilon 1 --delta 1e-6 --alpha 0.05 --number d=2 --number bits=16
        discreet plan questions --epsilon 1 --delta 1e-6 --alpha 0.05 --number questions=1000000 --number bits=20
    """
    from discreet.guarantee import Budget, Neighbours
    from discreet.plan import plan as planned

    pairs = [pair.partition("=") for pair in numbers]
    for name, _, value in pairs:
        if not name.isidentifier() or not (value.isascii() and value.isdecimal()):
            raise ParameterError(f"--number takes NAME=N with a whole number N, found {name}={value}")
    budget = Budget(epsilon, delta)
    found = planned(
        kind,
        budget=budget,
        neighbours=Neighbours(neighbours, rows_per_unit),
        size=size,
        alpha=alpha,
        beta=beta,
        **{name: int(value) for name, _, value in pairs},
    )
    click.echo(str(found))


@commands.command()
def audit() -> None:
    """Attack this installation: exact laws on made-up rows, each beside a broken twin that must be caught."""
    from rich.console import Console

    from discreet.audit import attack

    console = Console(highlight=False)
    failed = []
    with console.status("attacking") as status:
        for result in attack(lambda name: status.update(f"attacking {name}")):
            one, other = result.honest, result.broken
            caught = "caught" if other.violates else "NOT CAUGHT"
            console.print(f"{result.name} ({result.relation}): {_compared(one)}", markup=False)
            console.print(f"    a twin that {result.mistake}: {_compared(other)}: {caught}", markup=False, style="dim")
            failed += [] if result.passed else [result.name]
    if failed:
        raise DiscreetError(f"the audit failed for {', '.join(failed)}")
    console.print("No attack beat a claim, and every broken twin was caught. This is evidence; the proofs are in docs.")


def _compared(finding: Finding) -> str:
    if finding.what == "loss":
        return f"privacy loss {finding.found:.3g} of {finding.claimed:.3g} charged"
    return f"delta {finding.found:.3g} of {finding.claimed:.3g} claimed at epsilon {finding.epsilon:.3g}"


@commands.command()
def tour() -> None:
    """The main job, end to end, on made-up people; takes a few seconds."""
    from rich.console import Console

    from discreet.tour import tour as show_around

    show_around(Console(highlight=False))


@commands.group()
def ledger() -> None:
    """The budget of one table: what was promised, what is spent, what is left.

    A ledger is charged, durably, before anything is computed. Its promise (epsilon, delta) covers everything that is
    ever released through it, by anybody.
    """


@ledger.command()
@click.argument("path", type=_PATH)
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
@click.argument("path", type=_PATH)
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
@click.argument("path", type=_PATH)
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
@click.argument("path", type=_PATH)
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
@click.argument("path", type=_PATH)
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
    unit = "" if summary["unit"] is None else f", a person is a {_one_line(summary['unit'])}"
    size = "" if summary["size"] is None else f", size {summary['size']:,}"
    head = [
        f"table       {_one_line(summary['table'])} ({summary['neighbours']}{unit}{size})",
        f"promise     {found.budget}",
        *(f"spent       {line}" for line in str(found.spent()).split("; ")),
        *(f"left        {line}" for line in str(found.remaining()).split("; ")),
        *(f"allowance   {_one_line(name)}: {share} of every cap" for name, share in summary["allowances"].items()),
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
    mechanism, memo = _one_line(charge["mechanism"]), _one_line(charge["memo"])
    return str(charge["entry"]), charge["time"], mechanism, *prices, charge["state"], memo


def _one_line(text: object) -> str:
    """Somebody's text, so that it cannot look like a line of ours or speak to the terminal."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in str(text)).split())


def _units(nano: int | None) -> str:
    return "none" if nano is None else exact.shown(Fraction(nano, 10**9))
