"""`discreet ledger create | show | allow | verify | certificate | reconcile | export`: the owner's work.

PATH is a ledger's file, or a .toml schema that names one. `ledger_create` makes a ledger, `ledger_show` shows one.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import click

from discreet import exact
from discreet.cli.options import FILE, Output, ledger_at
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.ledger import Ledger


@click.group()
def ledger() -> None:
    """The budget of one table: what was promised, what is spent, what is left.

    A ledger is charged, durably, before anything is computed. Its promise (epsilon, delta) covers everything that is
    ever released through it, by anybody. PATH is a ledger's file, or a .toml schema that names one.

    \b
        discreet ledger show people.toml
        discreet ledger verify people.toml
        discreet ledger export people.toml
    """


@ledger.command()
@click.argument("path", type=FILE)
@click.option("--epsilon", required=True, help="The promise: 1 is usual, above 10 promises little.")
@click.option("--delta", default="0", show_default=True, help="The promise may fail with this probability: 1e-6, or 0.")
@click.option(
    "--name", help="Without a schema: what the table is called; releases must come from a table of that name."
)
@click.option(
    "--neighbours", type=click.Choice(["replace-one", "add-remove"]), help="Without a schema: what is protected."
)
@click.option("--unit", help="Without a schema: the column that names a person, if a person may have several rows.")
@click.option("--rows-per-unit", type=int, help="With --unit: at most this many rows of a person are used.")
@click.option("--size", type=int, help="Without a schema, replace-one: the public number of persons.")
@click.option("--yes", is_flag=True, help="Do not ask back when the promise is weak.")
def create(
    path: Path,
    epsilon: str,
    delta: str,
    name: str | None,
    neighbours: str | None,
    unit: str | None,
    rows_per_unit: int | None,
    size: int | None,
    yes: bool,
) -> None:
    """Make a ledger in a new file. Everything here is fixed for good.

    With a schema, PATH.toml, the ledger is the one it names, and the table is read once, so that its declaration and
    its file are bound to this ledger too. For example:

    \b
        discreet ledger create years.toml --epsilon 1 --delta 1e-6
        discreet ledger create other.ledger --epsilon 0.5 --name patients --neighbours add-remove
    """
    from discreet.cli.ledger_create import ask_back, create_from_options, create_from_schema
    from discreet.guarantee import Budget

    budget = Budget(epsilon, delta)
    given = {"--name": name, "--neighbours": neighbours, "--unit": unit, "--rows-per-unit": rows_per_unit}
    if path.suffix.lower() == ".toml":
        extra = [option for option, value in {**given, "--size": size}.items() if value is not None]
        if extra:
            raise ParameterError(f"{path.name} says that already: leave out {' and '.join(extra)}")
        create_from_schema(path, budget, yes)
        return
    if name is None or neighbours is None:
        raise ParameterError(
            "name a schema (discreet ledger create people.toml ...), or say --name people --neighbours replace-one"
        )
    if (unit is None) != (rows_per_unit is None):
        raise ParameterError("--unit and --rows-per-unit go together")
    ask_back(budget, size, yes)
    create_from_options(path, budget, exact.text(name=name), neighbours, unit, rows_per_unit, size)


@ledger.command()
@click.argument("path", type=FILE)
@click.option("--all", "everything", is_flag=True, help="All charges and answers, not only the last ones.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def show(path: Path, everything: bool, as_json: bool) -> None:
    """What is promised, spent and left, and what was asked last.

    \b
        discreet ledger show people.toml
        discreet ledger show people.toml --all
        discreet ledger show people.ledger --json
    """
    from discreet.cli.ledger_show import display, summary

    found = ledger_at(path)
    output = Output(as_json=as_json, rehearsal=found.identity.rehearsal)
    shown = summary(found, last=None if everything or as_json else 20)
    display(found, shown, output)
    output.result(shown)


@ledger.command()
@click.argument("path", type=FILE)
@click.argument("name")
@click.option("--share", required=True, help="So much of the budget, as 1/4 or 0.25.")
def allow(path: Path, name: str, share: str) -> None:
    """Give an analyst a share of the budget: charges made in that name stop there.

    For fairness only. The promise to the people in the table is the whole budget, and shares may add up to more than
    1: who comes first is served. Naming somebody again changes the share; what was spent in that name stays spent.

    \b
        discreet ledger allow people.toml ana --share 1/4
    """
    found = ledger_at(path)
    found.allow(name, share=Fraction(exact.positive(share=share)))
    _output(found).say(f"{name!r} may use {share} of the budget")


@ledger.command()
@click.argument("path", type=FILE, required=False)
@click.option("--certificate", "certificate_path", type=FILE, help="Check this certificate too, every field of it.")
@click.option("--export", "export_path", type=FILE, help="Instead of PATH: against the output of `ledger export`.")
def verify(path: Path | None, certificate_path: Path | None, export_path: Path | None) -> None:
    """Check every entry, every sum, every price and the high-water mark; or a certificate, field by field.

    A certificate: `discreet ledger verify people.toml --certificate count.json`; whoever has no ledger checks it
    against an export of it: `discreet ledger verify --export people.jsonl --certificate count.json`. A ledger alone:

    \b
        discreet ledger verify people.toml
    """
    from discreet.catalogue import CATALOGUE

    if (path is None) == (export_path is None):
        raise ParameterError("verify what? Name a ledger or its schema, or give --export FILE (one of the two)")
    if path is None or certificate_path is not None:
        _verify_certificate(path, certificate_path, export_path)
        return
    found = ledger_at(path)
    unknown = found.verify(CATALOGUE)
    count = found.length()
    others = f" ({len(unknown)} by mechanisms that are not discreet's own, not priced again)" if unknown else ""
    name = path.name if found.path is None else found.path.name
    _output(found).say(f"{name}: {count} {'entry' if count == 1 else 'entries'}, all sound{others}")


def _verify_certificate(path: Path | None, certificate_path: Path | None, export_path: Path | None) -> None:
    from discreet.certificate import Certificate, check, read_export

    claimed = None if certificate_path is None else Certificate.read(_text(certificate_path))
    lines = [] if export_path is None else _text(export_path).splitlines()
    if claimed is not None:
        Output().say(check(claimed, lines if path is None else ledger_at(path)))
        return
    bodies, whole = read_export(lines)
    redacted = "" if whole else "; what was asked is left out, so the hashes of charges cannot be computed again"
    count = "one entry" if len(bodies) == 1 else f"{len(bodies)} entries that follow each other without a gap"
    Output().say(f"{count}{redacted}")


@ledger.command()
@click.argument("path", type=FILE)
@click.argument("entry", type=int)
@click.option("--out", type=FILE, help="Write here; without it the certificate is printed.")
@click.option("--with-answer", is_flag=True, help="Put the released answer in it too, not only its digest.")
def certificate(path: Path, entry: int, out: Path | None, with_answer: bool) -> None:
    """A certificate of one entry: what was released, by which mechanism, what is promised, and what is not.

    ENTRY is the number that `ledger show` has for a charge, or for an answer of a session. It holds what was asked,
    never rows or memos: `discreet ledger certificate people.toml 3 --out count.json`. To find the number:

    \b
        discreet ledger show people.toml
    """
    from discreet.certificate import certificate as certify

    made = certify(ledger_at(path), entry, with_answer=with_answer)
    if out is None:
        click.echo(made.to_json())
        return
    _write(out, [made.to_json() + "\n"])
    Output(rehearsal=made.record["rehearsal"]).say(f"{out.name}: {made}")


@ledger.command()
@click.argument("path", type=FILE)
@click.option("--adopt", is_flag=True, help="There is no readable mark here: this is the newest copy, I know it.")
@click.option("--yes", is_flag=True, help="Do not ask back.")
def reconcile(path: Path, adopt: bool, yes: bool) -> None:
    """Accept a ledger that its high-water mark contradicts, counting as spent all that the mark proves.

    All open conversations end. A ledger that was moved here, or whose mark is damaged, has nothing to prove what it
    spent: --adopt then says that this is its newest copy. Spending is never lowered.

    \b
        discreet ledger reconcile people.toml
    """
    found = ledger_at(path)
    name, output = path.name if found.path is None else found.path.name, _output(found)
    if not found.rolled_back():
        output.say(f"{name} agrees with its mark: nothing to do")
        return
    if not yes:
        click.confirm(
            f"{name} does not agree with its mark. Raise its spending to what the mark proves, if there is one?",
            abort=True,
            err=True,
        )
    found.reconcile(adopt=adopt)
    output.say(f"{name}: {found.spent()}")


@ledger.command()
@click.argument("path", type=FILE)
@click.option("--everything", is_flag=True, help="Also memos, request ids, who asked, and the queries.")
@click.option("--out", type=FILE, help="Write here, into a new file; without it the lines are printed.")
def export(path: Path, everything: bool, out: Path | None) -> None:
    """Every entry as a line of JSON: prices and released answers, never rows.

    Without --everything, what was asked is left out: memos, questions, and the columns and values inside mechanisms.

    \b
        discreet ledger export people.toml
        discreet ledger export people.toml --everything --out people.jsonl
    """
    lines = ledger_at(path).export(redact=not everything)
    if out is None:
        for line in lines:
            click.echo(line)
        return
    count = _write(out, (f"{line}\n" for line in lines))
    Output().say(f"{out.name}: {count} entries{'' if everything else ', without what was asked'}")


def _output(found: Ledger) -> Output:
    return Output(rehearsal=found.identity.rehearsal)


def _write(path: Path, lines: Iterable[str]) -> int:
    """Write a new file; returns how many lines. What is there already may be somebody's proof: it stays."""
    try:
        with path.open("x", encoding="utf-8") as file:
            return sum(1 for line in lines if file.write(line))
    except FileExistsError:
        raise ParameterError(f"{path.name} is there already: choose another name") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ParameterError(f"there is no file {path.name}") from None
    except UnicodeDecodeError:
        raise ParameterError(f"{path.name} is not text") from None
