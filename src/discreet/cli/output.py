"""How a command prints: text for people, or at the end one JSON object for programs; a rehearsal marks every line."""

from __future__ import annotations

import io
import json
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

import click

from discreet.describe import one_line
from discreet.errors import BudgetExceeded, DiscreetError, ParameterError, SchemaError, UnsupportedQuery

if TYPE_CHECKING:
    from rich.console import Console

Lines = Sequence[tuple[str, object]]
"""Names, each with a sentence."""

NARROW = 76  # columns of a terminal: below this a table of five or six columns becomes a list
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

    def say(self, text: str, *, style: str | None = None) -> None:
        """Print a line or a paragraph."""
        if not self.as_json:
            self.console.print(text, style=style)

    def hang(self, text: str, indent: str = "", *, style: str | None = None) -> None:
        """Print a paragraph whose lines after the first are indented by two columns more."""
        if not self.as_json:
            self.say(
                textwrap.fill(text, self.width, initial_indent=indent, subsequent_indent=f"{indent}  "), style=style
            )

    def copyable(self, text: str) -> None:
        """Print a line that may be copied: the terminal may break it, we do not."""
        if not self.as_json:
            self.console.print(text, soft_wrap=True)

    def facts(self, lines: Lines) -> None:
        """Print names and sentences in two columns; a sentence is wrapped under itself."""
        if self.as_json:
            return
        indent = " " * (max(len(name) for name, _ in lines) + 2)
        width = max(len(indent) + 12, self.width)
        for name, text in lines:
            first, *rest = textwrap.wrap(one_line(text), width, initial_indent=indent, subsequent_indent=indent)
            self.copyable("\n".join([name.ljust(len(indent)) + first[len(indent) :], *rest]))

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Print rows in columns; a cell that does not fit the width is wrapped, never cut."""
        from rich import box
        from rich.table import Table

        if self.as_json:
            return
        shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for place, header in enumerate(headers):
            numeric = bool(rows) and {type(row[place]) for row in rows} <= {int, float}
            shown.add_column(header, overflow="fold", justify="right" if numeric else "left")
        for row in rows:
            shown.add_row(*(one_line(f"{cell:,}" if type(cell) is int else cell) for cell in row))
        self.console.print(shown)

    def result(self, record: dict[str, Any]) -> None:
        """Print one JSON object, if --json asked for it."""
        if self.as_json:
            click.echo(json.dumps(self.marked(record), indent=2, default=str))

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
