"""The owner's work: `discreet ledger` create, add, grow, init-postgres, show, allow, verify, certificate, reconcile
and export.

PATH is a ledger's file or its address in PostgreSQL, or a .toml schema that names one. `Ledger.summary` is what `show`
says.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import click

import discreet as dp
from discreet.cli.files import read_text, write_new
from discreet.cli.kit import (
    FILE,
    JSON,
    LEDGER,
    CommandGroup,
    Output,
    ParameterError,
    is_schema,
    ledger_at,
    one_line,
    rows_of,
    schema_at,
)
from discreet.ledger import Address
from discreet.modelling import persons_of

_LARGE_EPSILON = 10


@click.group(cls=CommandGroup)
def ledger() -> None:
    """Create, show and check the budget of a table.

    A ledger holds the budget of one table, or of several tables about the same people. A ledger is charged, durably,
    before anything is computed. Its promise (epsilon, delta) covers everything that is ever released through it, by any
    analyst. PATH is a ledger's file or address, or a .toml schema that names one.

    \b
        discreet ledger show people.toml
        discreet ledger verify people.toml
        discreet ledger export people.toml
    """


@ledger.command()
@click.argument("path", type=LEDGER)
@click.option("--epsilon", required=True, help="The promise: 1 is usual, above 10 promises little.")
@click.option(
    "--delta", default="0", show_default=True, help="Probability with which the promise may fail: 1e-6, or 0."
)
@click.option("--name", help="Without a schema: name of the table; releases must come from a table of that name.")
@click.option(
    "--neighbours", type=click.Choice(["replace-one", "add-remove"]), help="Without a schema: what is protected."
)
@click.option("--unit", help="Without a schema: the column that names a person, if a person may have several rows.")
@click.option("--rows-per-unit", type=int, help="With --unit: maximum number of rows used per person.")
@click.option("--size", type=int, help="Without a schema, replace-one: the public number of persons.")
@click.option("--yes", is_flag=True, help="Skip the confirmation prompt when the promise is weak.")
def create(path: Path | Address, epsilon: str, delta: str, yes: bool, **given: Any) -> None:
    """Make a ledger in a new file, or in PostgreSQL. Everything here is permanent.

    With a schema, PATH.toml, the ledger is the one it names, and the table is read once, so that its declaration and
    its file are bound to this ledger too. For example:

    \b
        discreet ledger create years.toml --epsilon 1 --delta 1e-6
        discreet ledger create other.ledger --epsilon 0.5 --name patients --neighbours add-remove

    An address, postgresql://HOST/DATABASE?ledger=NAME, can be given wherever a ledger's file can: in the schema, or as
    PATH. The database needs `discreet ledger init-postgres` first.
    """
    budget, output = dp.Budget(epsilon, delta), Output()
    names = ("name", "neighbours", "unit", "rows_per_unit", "size")
    name, neighbours, unit, rows, size = (given[each] for each in names)
    if is_schema(path):
        extra = [f"--{each.replace('_', '-')}" for each in names if given[each] is not None]
        if extra:
            raise ParameterError(f"{path.name} says that already: leave out {' and '.join(extra)}")
        schema, where = schema_at(path)
        if dp.Ledger.exists(where):
            raise ParameterError(f"{where.name} exists already: `discreet ledger show {path}` shows what is left of it")
        if schema.epochs is not None:  # its epochs are added one by one
            table, people = schema.growing_identity, None
        else:
            with output.working("reading the rows"):
                table = rows_of(schema)
            people = persons_of(table)
        _confirm(budget, people, yes)
        made = dp.Ledger.create(where, budget, table)
        edition, protects = f", edition {one_line(schema.edition)}", schema.protects()
    else:
        if name is None or neighbours is None:
            raise ParameterError(
                "name a schema (discreet ledger create people.toml ...), or say --name people --neighbours replace-one"
            )
        if (unit is None) != (rows is None):
            raise ParameterError("--unit and --rows-per-unit go together")
        relation = dp.Neighbours(neighbours, 1 if rows is None else dp.exact.whole(rows_per_unit=rows))
        _confirm(budget, size, yes)
        identity = dp.data.Identity(dp.exact.text(name=name), relation, unit)
        made, where, edition, protects = dp.Ledger.create(path, budget, identity, size=size), path, "", ""
    who = made.identity
    if who.epochs is not None:
        edition = f"; `discreet ledger add {path} EPOCH` adds an epoch when its file is there"
    output.say(f"{where.name}: {budget} for {who.name!r}, {who.neighbours}{edition}; id {made.id}")
    if protects:
        output.say(protects)
    if budget.epsilon > 1:
        output.say(f"What epsilon {dp.exact.shown(budget.epsilon)} means: {budget.odds()}")


@ledger.command()
@click.argument("path", type=FILE)
@click.argument("epoch")
def add(path: Path, epoch: str) -> None:
    """Add an EPOCH to a table that grows.

    PATH is the schema. The file of the epoch is complete and never changes again. Where nobody is in two epochs, the
    persons of the new one begin with the whole budget; where persons return there is one budget for all epochs. Nothing
    is spent.

    \b
        discreet ledger add visits.toml 2026-02
    """
    schema, book, output = _growing_schema(path)
    labels = schema.epoch_labels([epoch])
    if labels[0] in book.epochs:
        raise ParameterError(f"the ledger has the epoch {labels[0]} already")
    with output.working("reading the rows"):
        table = schema.grown([*book.epochs, *labels])
    label = book.add_epoch(table)
    size = next(each for each in book.summary(last=0)["epochs"] if each["epoch"] == label)["persons"]
    people = "" if size is None else f", {size:,} persons{'' if schema.per_person == 1 else ' so far'}"
    begins = "they begin with the whole budget" if schema.per_person == 1 else "one budget for all epochs"
    output.say(f"{_name(book, path)}: epoch {label}{people}; {begins}")


@ledger.command()
@click.argument("path", type=FILE)
@click.argument("epoch")
@click.option("--yes", is_flag=True, help="Skip the confirmation prompt.")
def grow(path: Path, epoch: str, yes: bool) -> None:
    """Declare that the table of a ledger grows from here on.

    It grows by new persons, and its present rows are the first EPOCH. PATH is a schema with [epochs], whose file of
    that epoch is the one that the ledger has. Later epochs are added by `ledger add` and begin with the whole budget,
    so nobody of the first epoch may have rows in them: with a unit such rows are left out; without one, their owner
    answers for it. It cannot be undone.

    \b
        discreet ledger grow visits.toml 2025-12
    """
    schema, book, output = _growing_schema(path)
    if schema.per_person != 1:
        raise ParameterError("a ledger of persons who return is made as such: its prices count all epochs of a person")
    (label,) = schema.epoch_labels([epoch])
    if not yes:
        click.confirm(f"Nobody in {label} has rows in a later epoch. Go on?", abort=True, err=True)
    with output.working("reading the rows"):
        table = schema.grown([label])
    book.grow(table)
    output.say(f"{_name(book, path)}: the table grows; its first epoch is {label}, with all that is spent so far")


def _growing_schema(path: Path) -> tuple[Any, dp.Ledger, Output]:
    """The schema of a table that grows, and its ledger."""
    if not is_schema(path):
        raise ParameterError(f"name the schema, a .toml file with [epochs]; found {path.name}")
    schema, where = schema_at(path)
    if schema.epochs is None:
        raise ParameterError(f"{path.name} has no [epochs]: the table does not grow")
    book = dp.Ledger.open(where)
    return schema, book, _output(book)


@ledger.command("init-postgres")
@click.argument("address")
@click.option("--sql", is_flag=True, help="Print the statements instead of running them.")
def init_postgres(address: str, sql: bool) -> None:
    """Make the tables for ledgers in a PostgreSQL database, once, as its owner.

    ADDRESS is postgresql://HOST/DATABASE, without a password: libpq finds it in ~/.pgpass, PGPASSFILE or PGPASSWORD.
    Entries can be added and never changed. Accounts get the rights of a role: discreet_writer to release,
    discreet_auditor to look. Running it again changes nothing.
    """
    from discreet.ledger import postgres

    if sql:
        click.echo(postgres.SCHEMA.strip())
        return
    named = address if "ledger=" in address else f"{address}{'&' if '?' in address else '?'}ledger=any"
    postgres.init_postgres(Address.read(named).server)
    roles = f"GRANT {postgres.WRITER} TO an account that releases, {postgres.AUDITOR} TO one that only looks"
    Output().say(f"the tables for ledgers are there; {roles}")


def _confirm(budget: dp.Budget, size: int | None, yes: bool) -> None:
    """Ask for confirmation of a weak promise, unless --yes."""
    epsilon, delta = dp.exact.shown(budget.epsilon), dp.exact.shown(budget.delta)
    little = f"epsilon {epsilon} promises very little to the people in the table: {budget.odds()} Go on?"
    allows = f"delta {delta} for {size or 0:,} persons allows publishing the rows of one of them. Go on?"
    weak = {little: budget.epsilon > _LARGE_EPSILON, allows: budget.delta * (size or 0) >= 1}
    for question in (question for question, holds in weak.items() if holds and not yes):
        click.confirm(question, abort=True, err=True)


@ledger.command()
@click.argument("path", type=LEDGER)
@click.option("--all", "everything", is_flag=True, help="All charges and answers, not only the last ones.")
@JSON
def show(path: Path | Address, everything: bool, as_json: bool) -> None:
    """Show what is promised, spent and left, and what was asked.

    \b
        discreet ledger show people.toml
        discreet ledger show people.toml --all
        discreet ledger show people.ledger --json
    """
    book = ledger_at(path)
    output = Output(as_json=as_json, rehearsal=book.identity.rehearsal)
    shown = book.summary(last=None if everything or as_json else 20)
    output.sheet(book.sheet(shown, width=output.width))
    output.result(shown)


@ledger.command()
@click.argument("path", type=LEDGER)
@click.argument("name")
@click.option("--share", required=True, help="Share of the budget, such as 1/4 or 0.25.")
def allow(path: Path | Address, name: str, share: str) -> None:
    """Give an analyst a share of the budget.

    For fairness only. The promise to the people in the table is the whole budget, and shares may add up to more than
    1: first come, first served. Naming an analyst again changes the share; what was spent in that name stays spent.

    \b
        discreet ledger allow people.toml ana --share 1/4
    """
    book = ledger_at(path)
    book.allow(name, share=Fraction(dp.exact.positive(share=share)))
    _output(book).say(f"{name!r} may use {share} of the budget")


@ledger.command()
@click.argument("path", type=LEDGER, required=False)
@click.option("--certificate", "certificate_path", type=FILE, help="Check this certificate too, every field of it.")
@click.option("--export", "export_path", type=FILE, help="Instead of PATH: against the output of `ledger export`.")
def verify(path: Path | Address | None, certificate_path: Path | None, export_path: Path | None) -> None:
    """Check a ledger, or a certificate against it.

    Of a ledger: every entry, sum and price, and the high-water mark. Of a certificate: every field.

    A certificate: `discreet ledger verify people.toml --certificate count.json`; without the ledger it is checked
    against an export of it: `discreet ledger verify --export people.jsonl --certificate count.json`. A ledger alone:

    \b
        discreet ledger verify people.toml
    """
    from discreet.catalogue import CATALOGUE
    from discreet.certificate import Certificate, check, read_export

    if (path is None) == (export_path is None):
        raise ParameterError("verify what? Name a ledger or its schema, or give --export FILE (one of the two)")
    claimed = None if certificate_path is None else Certificate.read(read_text(certificate_path))
    lines = [] if export_path is None else read_text(export_path).splitlines()
    if claimed is not None:
        Output().say(check(claimed, lines if path is None else ledger_at(path)))
    elif path is None:
        bodies, whole = read_export(lines)
        redacted = "" if whole else "; what was asked is left out, so the hashes of charges cannot be computed again"
        count = "one entry" if len(bodies) == 1 else f"{len(bodies)} entries that follow each other without a gap"
        Output().say(count + redacted)
    else:
        book = ledger_at(path)
        unknown, entries = book.verify(CATALOGUE), book.length()
        others = f" ({len(unknown)} by mechanisms that are not discreet's own, not priced again)" if unknown else ""
        _output(book).say(f"{_name(book, path)}: {entries} {'entry' if entries == 1 else 'entries'}, all sound{others}")


@ledger.command()
@click.argument("path", type=LEDGER)
@click.argument("entry", type=int)
@click.option("--out", type=FILE, help="Write here; without it the certificate is printed.")
@click.option("--with-answer", is_flag=True, help="Put the released answer in it too, not only its digest.")
def certificate(path: Path | Address, entry: int, out: Path | None, with_answer: bool) -> None:
    """Write a certificate of one entry.

    It states what was released, by which mechanism, what is promised, and what is not.

    ENTRY is the number that `ledger show` has for a charge, or for an answer of a session. It holds what was asked,
    never rows or memos: `discreet ledger certificate people.toml 3 --out count.json`. To find the number:

    \b
        discreet ledger show people.toml
    """
    made = dp.certificate(ledger_at(path), entry, with_answer=with_answer)
    if out is None:
        click.echo(made.to_json())
        return
    write_new(out, [made.to_json() + "\n"])
    Output(rehearsal=made.record["rehearsal"]).say(f"{out.name}: {made}")


@ledger.command()
@click.argument("path", type=LEDGER)
@click.option("--adopt", is_flag=True, help="Confirm that this is the newest copy, where no readable mark proves it.")
@click.option("--yes", is_flag=True, help="Skip the confirmation prompt.")
def reconcile(path: Path | Address, adopt: bool, yes: bool) -> None:
    """Accept a ledger that its high-water mark contradicts.

    All charges that the mark proves count as spent.

    All open conversations end. A ledger that was moved here, or whose mark is damaged, has nothing to prove what it
    spent: --adopt then says that this is its newest copy. Spending is never lowered.

    \b
        discreet ledger reconcile people.toml
    """
    book = ledger_at(path)
    name, output = _name(book, path), _output(book)
    if not book.rolled_back():
        output.say(f"{name} agrees with its mark: nothing to do")
        return
    raised = "Raise its spending to what the mark proves, if there is one?"
    if not yes:
        click.confirm(f"{name} does not agree with its mark. {raised}", abort=True, err=True)
    book.reconcile(adopt=adopt)
    output.say(f"{name}: {book.spent()}")


@ledger.command()
@click.argument("path", type=LEDGER)
@click.option("--everything", is_flag=True, help="Also memos, request ids, who asked, and the queries.")
@click.option("--out", type=FILE, help="Write here, into a new file; without it the lines are printed.")
def export(path: Path | Address, everything: bool, out: Path | None) -> None:
    """Print every entry as a line of JSON.

    The lines hold prices and released answers, never rows.

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
    count = write_new(out, (f"{line}\n" for line in lines))
    Output().say(f"{out.name}: {count} entries{'' if everything else ', without what was asked'}")


def _output(book: dp.Ledger) -> Output:
    return Output(rehearsal=book.identity.rehearsal)


def _name(book: dp.Ledger, path: Path | Address) -> str:
    return path.name if book.path is None else book.path.name
