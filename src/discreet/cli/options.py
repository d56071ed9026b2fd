"""What the commands share: which table and ledger, what an epsilon may be, and how things are shown.

A command that releases something takes SCHEMA, a TOML file that names rows and ledger (`discreet.schema`), and has
--data, --ledger, --rehearse and --json. With --rehearse the rows are made up from the schema and the ledger is
`NAME.rehearsal.ledger` beside the real one; every line that is printed begins with the word rehearsal.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from discreet.describe import one_line
from discreet.errors import LedgerMismatch, ParameterError

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.data import ParquetTable, Table
    from discreet.ledger import Ledger
    from discreet.schema import Schema

FILE = click.Path(dir_okay=False, path_type=Path)
Command = TypeVar("Command", bound=Callable[..., Any])
_MARK = "rehearsal | "


# Which table, which ledger.


def table_options(command: Command) -> Command:
    """SCHEMA and the options of every command that releases something."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs."),
        click.option("--rehearse", is_flag=True, help="Made-up rows and a ledger of their own: free, and nobody's."),
        click.option("--ledger", "ledger_path", type=FILE, help="Another ledger than the schema names."),
        click.option("--data", "data_path", type=FILE, help="Another file of rows than the schema names."),
        click.argument("schema", type=FILE),
    ):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class Opened:
    """A declaration, its rows and their ledger, real or made up."""

    schema: Schema
    table: Table | ParquetTable
    ledger: Ledger
    output: Output


def opened(
    schema: Path,
    *,
    data_path: Path | None,
    ledger_path: Path | None,
    rehearse: bool,
    as_json: bool,
    allowance: str | None = None,
) -> Opened:
    """Read the schema, open the ledger, read the rows (or make them up): in this order, cheapest first.

    allowance  a name that the ledger must know; in a rehearsal one is made with the share that it really has
    """
    from discreet.ledger import Ledger
    from discreet.schema import Schema

    declared = Schema.read(schema)
    output = Output(as_json=as_json, rehearsal=rehearse)
    where = ledger_path or declared.ledger
    if where is None:
        raise ParameterError('which ledger? Add ledger = "people.ledger" to the schema, or give --ledger')
    if rehearse:
        return Opened(declared, *_rehearsal(declared, where, output, allowance), output)
    if not where.exists():
        raise ParameterError(_no_ledger(where, schema, declared.data))
    book = Ledger.open(where)
    if allowance is not None:
        book.remaining(allowance=allowance)  # refuses unknown names
    with output.working("reading the rows"):
        table = declared.table(data_path)
    return Opened(declared, table, book, output)


def _no_ledger(where: Path, schema: Path, data: Path | None) -> str:
    from discreet.ledger.sidecar import sidecar

    if data is not None and sidecar(data).exists():
        return f"there is no ledger at {where.name}, and {data.name} had one: restore it from a backup"
    return (
        f"there is no ledger at {where.name} yet: `discreet ledger create {schema} --epsilon 1 --delta 1e-6` makes "
        "one; --rehearse works without"
    )


def ledger_at(path: Path) -> Ledger:
    """The ledger in this file, or the one that this schema names."""
    from discreet.ledger import Ledger
    from discreet.schema import Schema

    if path.suffix.lower() != ".toml":
        return Ledger.open(path)
    named = Schema.read(path).ledger
    if named is None:
        raise ParameterError(f'{path.name} names no ledger: add ledger = "people.ledger" to it')
    return Ledger.open(named)


def _rehearsal(schema: Schema, real: Path, output: Output, allowance: str | None) -> tuple[Table, Ledger]:
    """Made-up rows and their ledger: as many people and as much budget as the real ones have, if that is known."""
    from discreet.guarantee import Budget
    from discreet.ledger import Ledger
    from discreet.rehearsal import PEOPLE

    found = Ledger.open(real, look=True) if real.exists() else None
    budget = Budget(1, "1e-6") if found is None else found.budget
    known = schema.size or (None if found is None or found.facts is None else found.facts.size)
    table = schema.rehearsal(known or PEOPLE)
    where = real.with_name(f"{real.stem}.rehearsal.ledger")
    if not where.exists():
        output.say(f"{where.name}: a rehearsal with {budget} and {known or PEOPLE:,} made-up people")
    book = Ledger.open(where) if where.exists() else Ledger.create(where, budget, table)
    if allowance is not None:
        _rehearse_allowance(book, found, allowance)
    if book.budget != budget or (book.facts is not None and book.facts.size != table.facts.size):
        raise LedgerMismatch(f"{where.name} rehearses another budget or another number of people: delete it")
    return table, book


def _rehearse_allowance(rehearsal: Ledger, real: Ledger | None, name: str) -> None:
    """Give the name its real share of the rehearsal's budget; without a real ledger it must be in the rehearsal's."""
    from discreet.ledger.allowances import allowances

    if real is None:
        rehearsal.remaining(allowance=name)
        return
    real.remaining(allowance=name)  # refuses unknown names
    (share,) = (each.share for each in allowances(real) if each.name == name)
    if not any((each.name, each.share) == (name, share) for each in allowances(rehearsal)):
        rehearsal.allow(name, share=share)


# How much: an epsilon, or a share of what is left.


def price_options(command: Command) -> Command:
    """--epsilon and --delta, or --share."""
    for option in (
        click.option("--share", help="Instead of an epsilon: so much of what is left in the ledger, as 1/3."),
        click.option("--delta", help="With --epsilon: this release alone may fail with this probability."),
        click.option("--epsilon", help="What this release alone may cost."),
    ):
        command = option(command)
    return command


def allowance_option(command: Command) -> Command:
    """--allowance."""
    return click.option(
        "--allowance", metavar="NAME", help="Count it under this name: `ledger allow` gives it a share of the budget."
    )(command)


def again_option(command: Command) -> Command:
    """--again."""
    return click.option(
        "--again", is_flag=True, help="Pay for a new release, even if the same was released and stored before."
    )(command)


def price(epsilon: str | None, delta: str | None, share: str | None) -> dict[str, Any]:
    """The arguments of an estimator that say what it may cost; exactly one of the two ways."""
    from discreet.guarantee import Budget, Share

    if (epsilon is None) == (share is None):
        raise ParameterError("say what it may cost: either --epsilon 0.5 (and --delta 1e-7), or --share 1/3")
    if share is not None:
        if delta is not None:
            raise ParameterError("--delta goes with --epsilon; a share is of the ledger's own epsilon and delta")
        return {"epsilon": Share(share), "delta": 0}
    asked = Budget(epsilon or 0, delta or 0)
    return {"epsilon": asked.epsilon, "delta": asked.delta}


# How things are shown.


class Output:
    """What a command prints: text for people, or at the end one JSON object. A rehearsal is marked on every line."""

    def __init__(self, *, as_json: bool = False, rehearsal: bool = False) -> None:
        self.as_json, self.rehearsal = as_json, rehearsal
        self._console: Console | None = None

    @property
    def console(self) -> Console:
        """Where text for people goes; narrow terminals, no colour and pipes are rich's business."""
        from rich.console import Console

        if self._console is None:
            marked: Any = _Marked(sys.stdout) if self.rehearsal else None
            width = max(20, Console().width - len(_MARK)) if self.rehearsal else None
            self._console = Console(file=marked, width=width, highlight=False, markup=False, emoji=False)
        return self._console

    def say(self, text: str, *, style: str | None = None) -> None:
        """A line or a paragraph for people."""
        if not self.as_json:
            self.console.print(text, style=style)

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[object]], *, title: str | None = None) -> None:
        """Rows for people; what does not fit the width is wrapped, never cut."""
        from rich import box
        from rich.table import Table as Shown

        if self.as_json:
            return
        shown = Shown(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
        for place, header in enumerate(headers):
            numbers = all(isinstance(row[place], (int, float)) for row in rows) and bool(rows)
            shown.add_column(header, overflow="fold", justify="right" if numbers else "left")
        for row in rows:
            shown.add_row(*(one_line(f"{cell:,}" if isinstance(cell, int) else str(cell)) for cell in row))
        self.console.print(shown)

    def result(self, found: dict[str, Any]) -> None:
        """What a program reads: one JSON object, if it was asked for."""
        if self.as_json:
            click.echo(json.dumps({"rehearsal": True, **found} if self.rehearsal else found, indent=2, default=str))

    @contextmanager
    def working(self, text: str) -> Iterator[None]:
        """A sign of life on the error stream, when somebody looks at it, while something takes its time."""
        from rich.console import Console

        with Console(stderr=True, highlight=False, markup=False).status(text):
            yield


class _Marked(io.TextIOBase):
    """A stream that begins every line with the mark of a rehearsal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._fresh = stream, True

    def write(self, text: str) -> int:
        for line in text.splitlines(keepends=True):
            self._stream.write((_MARK if self._fresh else "") + line)
            self._fresh = line.endswith("\n")
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()


def percent(part: int | None, cap: int | None) -> str:
    """A part of a cap for the eye."""
    if part is None or not cap:
        return "-"
    found = 100 * part / cap
    return f"{found:.3g} %" if found < 99.95 else f"{found:.0f} %"
