"""What commands share: options, the table and the ledger that they open, and how they print.

A command that releases something takes SCHEMA, a TOML file that names rows and ledger (`discreet.schema`), and has
--data, --ledger, --rehearse and --json. With --rehearse the rows are made up from the schema and the ledger is
`NAME.rehearsal.ledger` beside the real one; every line that is printed begins with the word rehearsal. A command prints
text for people, or at the end one JSON object for programs (`Output`), and refuses with a ParameterError.
"""

from __future__ import annotations

import functools
import io
import json
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeGuard

import click

import discreet as dp
from discreet.core import WIDE, BudgetExceeded, CellTable, Pairs, SchemaError, Sheet, UnsupportedQuery
from discreet.core import DiscreetError as DiscreetError
from discreet.core import ParameterError as ParameterError
from discreet.core import one_line as one_line
from discreet.ledger import Address
from discreet.modelling import persons_of

if TYPE_CHECKING:
    from rich.console import Console

FILE = click.Path(dir_okay=False, path_type=Path)


class _LedgerPlace(click.Path):
    """A file, or the address of a ledger in PostgreSQL."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return Address.read(value) if type(value) is str and "://" in value else super().convert(value, param, ctx)


class RowsPlace(click.Path):
    """A file of rows, or the address of a database that holds them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if dp.data.is_address(value) else super().convert(value, param, ctx)


LEDGER = _LedgerPlace(dir_okay=False, path_type=Path)
ROWS = RowsPlace(path_type=Path)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for programs.")
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class Command(click.Command):
    """A command whose errors begin with the option that is wrong: they carry the name of the argument."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ParameterError as error:
            options = {each.name: each.opts[0] for each in self.params if each.param_type_name == "option"}
            option = options.get(error.argument or "")
            if option is None:
                raise
            raise ParameterError(f"{option}: {error}") from error


class CommandGroup(click.Group):
    """Commands of that kind under one name."""

    command_class = Command


def together(*options: Decorator) -> Decorator:
    """Several options as one decorator, in this order."""
    return lambda command: functools.reduce(lambda made, option: option(made), reversed(options), command)


TABLE = click.option("--table", "table_name", metavar="NAME", help="Of a schema with several tables: this one.")
_place_options = together(
    click.option("--data", "data_path", type=ROWS, help="File or database of rows, instead of the one in the schema."),
    click.option(
        "--ledger", "ledger_path", type=LEDGER, help="Ledger file or address, instead of the one in the schema."
    ),
    click.option("--rehearse", is_flag=True, help="Use synthetic rows and a separate ledger; spends nothing."),
    JSON,
)
table_options = together(click.argument("schema", type=FILE), _place_options, TABLE)
database_options = together(click.argument("schema", type=FILE), _place_options)
allowance_option = click.option(
    "--allowance", metavar="NAME", help="Charge under this name: `ledger allow` gives it a share of the budget."
)
again_option = click.option(
    "--again", is_flag=True, help="Pay for a new release, even if the same was released and stored before."
)
price_options = together(
    click.option("--epsilon", help="Budget of this release."),
    click.option("--delta", help="With --epsilon: the probability with which its guarantee may fail."),
    click.option("--share", help="Instead of --epsilon: this share of the remaining budget, such as 1/3."),
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


@dataclass(frozen=True, slots=True)
class OpenTable:
    """A declaration, its rows and their ledger, real or made up.

    schema, table  of one table; or of several, for a command that asks any of them

    allowance  the name under which charges are made, if there is one
    """

    schema: Any
    table: Any
    ledger: dp.Ledger
    output: Output
    allowance: str | None = None

    @property
    def domains(self) -> dict[str, dp.Domain]:
        """The declared columns of each table."""
        return {each.name: each.domain for each in self.schema.tables}

    @property
    def size(self) -> int | None:
        """The public number of persons."""
        return persons_of(self.table)

    @staticmethod
    def open(
        path: Path,
        *,
        data_path: Path | str | None,
        ledger_path: Path | Address | None,
        rehearse: bool,
        as_json: bool,
        allowance: str | None = None,
        again: bool = False,
        table_name: str | None = None,
        several: bool = False,
        redeclared: Callable[[dp.Schema], dp.Schema] = lambda schema: schema,
    ) -> OpenTable:
        """Read the schema, open the ledger, read the rows (or make them up): in this order, cheapest first.

        allowance  a name that the ledger must know; a rehearsal gives it the share that it really has
        again      nothing that is stored in the ledger is given back
        several    all tables of a schema that has several, as a database
        redeclared  the declaration of one table by which its rows are read, made of the one in the file
        """
        from discreet.schema import DatabaseSchema, read_schema, require_ledger

        found = read_schema(path)
        together = several and isinstance(found, DatabaseSchema)
        schema = found if together else redeclared(found.table_schema(table_name))
        output = Output(as_json=as_json, rehearsal=rehearse)
        where = ledger_path or found.ledger
        if where is None:
            raise ParameterError('which ledger? Add ledger = "people.ledger" to the schema, or give --ledger')
        if rehearse:
            beside = where if isinstance(where, Path) else path
            table, ledger = _rehearsal(schema, where, beside, output, allowance)
        else:
            require_ledger(found, where, path, "; --rehearse works without")
            ledger = dp.Ledger.open(where)
            if allowance is not None:
                ledger.remaining(allowance=allowance)  # refuses unknown names
            with output.working("reading the rows"):
                table = rows_of(schema, data_path, ledger.epochs)
        if again:
            from discreet.estimators.replay import pay_again

            pay_again(ledger)
        return OpenTable(schema, table, ledger, output, allowance)


def rows_of(schema: Any, data_path: Path | str | None = None, epochs: Sequence[str] = ()) -> Any:
    """The rows of one table, or the database of several. epochs: those of a table that grows."""
    from discreet.schema import DatabaseSchema

    if not isinstance(schema, DatabaseSchema):
        if schema.epochs is None:
            return schema.table(data_path)
        if data_path is not None:
            raise ParameterError("--data is for a table that does not grow: this schema says where each epoch is")
        return schema.grown(epochs)
    if data_path is not None:
        raise ParameterError("--data is for a schema of one table: this one says where each table's rows are")
    return schema.database()


def _rehearsal(
    schema: Any, real: Path | Address, beside: Path, output: Output, allowance: str | None
) -> tuple[Any, dp.Ledger]:
    """Made-up rows and their ledger: as many people and as much budget as the real ones have, if that is known.

    beside  the file of the real ledger; if that is in a database, the schema
    """
    from discreet.rehearsal import PEOPLE

    known = dp.Ledger.open(real, look=True) if dp.Ledger.exists(real) else None
    budget = dp.Budget(1, "1e-6") if known is None else known.budget
    where = beside.with_name(f"{beside.stem}.rehearsal.ledger")
    rehearsed = dp.Ledger.open(where) if where.exists() else None
    grows, before = schema.epochs is not None, rehearsed or known
    people = PEOPLE if grows else schema.size or (known and known.facts and known.facts.size) or PEOPLE
    table = schema.rehearsal(people, () if before is None else before.epochs)
    if (ledger := rehearsed) is None:
        output.say(f"{where.name}: a rehearsal with {budget} and {people:,} made-up people")
        ledger = dp.Ledger.create(where, budget, table)
    if allowance is not None:
        (known or ledger).remaining(allowance=allowance)  # refuses unknown names
        real_share, share = (
            {each.name: each.share for each in book.allowances()}.get(allowance) for book in (known or ledger, ledger)
        )
        if real_share is not None and real_share != share:
            ledger.allow(allowance, share=real_share)
    if ledger.budget != budget or (not grows and ledger.facts is not None and ledger.facts.size != persons_of(table)):
        raise dp.errors.LedgerMismatch(f"{where.name} rehearses another budget or another number of people: delete it")
    return table, ledger


def is_schema(path: Path | Address) -> TypeGuard[Path]:
    return isinstance(path, Path) and path.suffix.lower() == ".toml"


def ledger_at(path: Path | Address) -> dp.Ledger:
    """The ledger in this file or at this address, or the one that this schema names."""
    return dp.Ledger.open(schema_at(path)[1] if is_schema(path) else path)


def schema_at(path: Path) -> tuple[Any, Path | Address]:
    """The schema in this file, of one table or of several, and the ledger that it must name."""
    from discreet.schema import read_with_ledger

    return read_with_ledger(path)


# How a command prints.

Lines = Sequence[tuple[str, object]]
"""Names, each with a sentence."""

_MARK = "rehearsal | "


def exit_code(error: DiscreetError) -> int:
    """The exit code of an error: 3 if the budget does not allow it, 2 if an argument or a question is wrong, else 1."""
    if isinstance(error, BudgetExceeded):
        return 3
    return 2 if isinstance(error, (ParameterError, SchemaError, UnsupportedQuery)) else 1


class Output:
    """The standard output of one command."""

    def __init__(self, *, as_json: bool = False, rehearsal: bool = False) -> None:
        self.as_json, self.rehearsal = as_json, rehearsal
        self.mark = _MARK if rehearsal else ""
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

    @property
    def width(self) -> int:
        return self.console.width

    @property
    def wide(self) -> bool:
        """Whether a table of five or six columns is easier to read than a list."""
        return self.width >= WIDE

    def say(self, text: str, *, style: str | None = None) -> None:
        """Print a line or a paragraph."""
        if not self.as_json:
            self.console.print(text, style=style)

    def hang(self, text: str, indent: str = "", *, style: str | None = None) -> None:
        """Print a paragraph whose lines after the first are indented by two columns more."""
        if not self.as_json:
            lines = textwrap.fill(text, self.width, initial_indent=indent, subsequent_indent=f"{indent}  ")
            self.say(lines, style=style)

    def sheet(self, sheet: Sheet) -> None:
        """Print what an object shows of itself."""
        if not self.as_json:
            sheet.write(self.console)

    def copyable(self, text: str) -> None:
        """Print a line that may be copied: the terminal may break it, we do not."""
        if not self.as_json:
            self.console.print(text, soft_wrap=True)

    def facts(self, lines: Lines) -> None:
        """Print names and sentences in two columns; a sentence is wrapped under itself."""
        self.sheet(Sheet.of(Pairs(lines)))

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Print rows in columns; a cell that does not fit the width is wrapped, never cut."""
        self.sheet(Sheet.of(CellTable(headers, rows)))

    def result(self, record: dict[str, Any]) -> None:
        """Print one JSON object, if --json asked for it."""
        if self.as_json:
            click.echo(json.dumps(self.marked(record), indent=2, default=str))

    def json_line(self, record: dict[str, Any]) -> None:
        """Print one of several JSON objects as a line, at once."""
        click.echo(json.dumps(self.marked(record), default=str))
        sys.stdout.flush()

    def marked(self, record: dict[str, Any]) -> dict[str, Any]:
        """The record, which says so if it is of a rehearsal."""
        return {"rehearsal": True, **record} if self.rehearsal else record

    @contextmanager
    def working(self, text: str) -> Iterator[None]:
        """Show a sign of life on the error stream, if that is a terminal."""
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
