"""How the tour is shown: paragraphs and results on the output, signs of life on the error stream, for any width.

Where there is room, results are a table; on a narrow screen each is a small list.
"""

from __future__ import annotations

import io
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from typing import Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table as Shown

_ROOM = 76  # columns of a terminal that five columns of a table need


@dataclass(frozen=True, slots=True)
class Line:
    """One result: what was asked, the private answer, what was promised, how far it is off, what it cost."""

    what: str
    answer: str
    promised: str
    error: str
    price: str


class Screen:
    """A terminal, a pipe or a file."""

    def __init__(self, console: Console, signs: Console) -> None:
        self.console, self.signs = console, signs

    @staticmethod
    def standard() -> Screen:
        """The output, and the error stream for what moves."""
        plain: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}
        return Screen(Console(**plain), Console(stderr=True, **plain))

    def silent(self) -> Screen:
        """A screen that prints nothing, and shows the same signs of work."""
        return Screen(Console(file=io.StringIO(), width=self.console.width), self.signs)

    def heading(self, text: str) -> None:
        self.console.print(f"\n{text}", style="bold")

    def say(self, text: str, *, indent: int = 0, style: str | None = None) -> None:
        self.console.print(Padding(text, (0, 0, 0, indent), expand=False) if indent else text, style=style)

    def command(self, text: str) -> None:
        """A line to be copied: never broken."""
        self.console.print(f"  {text}", soft_wrap=True)

    def results(self, lines: Sequence[Line]) -> None:
        """What | private answer | promised | true error | price."""
        self.table(("what", "private answer", "promised", "true error", "price"), [astuple(line) for line in lines])

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        if self.console.width < _ROOM:
            self._list(headers, rows)
            return
        shown = Shown(box=box.SIMPLE_HEAD, pad_edge=False, leading=1)
        for header in headers:
            narrow = header in ("price", "may cost")
            shown.add_column(header, overflow="fold", justify="right" if narrow else "left", no_wrap=narrow)
        for row in rows:
            shown.add_row(*row)
        self.console.print(shown)

    def _list(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        for row in rows:
            self.say(f"\n{row[0]}")
            for header, cell in zip(headers[1:], row[1:], strict=True):
                if cell:
                    self.say(f"{header}: {cell}", indent=2)
        self.say("")

    @contextmanager
    def working(self, text: str) -> Iterator[None]:
        """Something takes its time: say so where somebody looks."""
        with self.signs.status(text):
            yield

    @contextmanager
    def counting(self, total: int) -> Iterator[Callable[[int, str], None]]:
        """A bar that is told how far it is, and a text behind it."""
        columns = (SpinnerColumn(), TextColumn("{task.completed}"), BarColumn(12), TextColumn("{task.description}"))
        bar = Progress(*columns, console=self.signs, transient=True, disable=not self.signs.is_terminal)
        with bar:
            task = bar.add_task("questions", total=total)
            yield lambda done, text: bar.update(task, completed=done, total=max(done, total), description=text)


def price(part: float) -> str:
    """What something cost, as a part of the budget."""
    return percent(part) if part else "free"


def percent(share: float) -> str:
    """A part of the budget, or of the people, for the eye."""
    return f"{100 * share:.2g} %" if 0 < abs(share) < 0.001 else f"{100 * share:.1f} %"


def program() -> str:
    """How to call the command line from here: as it was called, where its name alone is not found."""
    if shutil.which("discreet") is not None:
        return "discreet"
    if sys.argv[0] == "-c" or sys.argv[0].endswith("__main__.py"):
        return f"{shlex.quote(sys.executable)} -m discreet"
    return shlex.quote(sys.argv[0])
