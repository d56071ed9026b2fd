"""The prompt of `discreet ask`: a line is a question, a line that begins with a backslash is for the prompt itself.

Ctrl-C drops the line, or the question that is running: what was charged for it stays charged, and the ledger knows.
Ctrl-D leaves. Lines are edited and remembered by readline; the file of old lines is its user's own (mode 0600).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import click

from discreet.cli.answer_view import Asked, caret, show
from discreet.cli.options import percent
from discreet.describe import one_line
from discreet.errors import DiscreetError, UnsupportedQuery

if TYPE_CHECKING:
    from discreet.cli.ask import Asking
    from discreet.data import Column, Domain

_KEPT = 1_000  # old lines
_HELP = (
    ("SELECT ...", "a question in SQL; a semicolon at the end may be there or not"),
    ("\\price QUESTION", "what a question would cost at most; free, and nothing is asked"),
    ("\\left", "what is left of the budget"),
    ("\\columns", "what may be asked about: the declared columns and their values"),
    ("\\history", "what was asked and answered at this prompt"),
    ("\\help", "this"),
    ("\\quit", "leave; so do exit and Ctrl-D. Ctrl-C drops a line or stops a question"),
)
_PLAINLY = {"quit": "\\quit", "exit": "\\quit", "\\exit": "\\quit", "\\q": "\\quit", "help": "\\help", "?": "\\help"}


def talk(asking: Asking) -> None:
    """Until somebody leaves."""
    from discreet.ledger.mark import state_directory

    history = state_directory() / "questions"
    remembered = _remembered(history, asking.found.schema.domain)
    prompt = Prompt(asking)
    prompt.greet()
    try:
        while prompt.turn():
            pass
    finally:
        if remembered is not None:
            keep(history, remembered())


class Prompt:
    """One conversation: reads a line, does what it says."""

    def __init__(self, asking: Asking, read: Callable[[str], str] = input) -> None:
        self.asking, self.output, self.read = asking, asking.output, read
        self.asked: list[Asked] = []
        self._commands: dict[str, Callable[[str], None]] = {
            "\\price": self._price,
            "\\left": self._left,
            "\\columns": self._columns,
            "\\history": self._history,
            "\\help": self._help,
        }

    def greet(self) -> None:
        from discreet.cli.ask import promise

        schema, facts = self.asking.found.schema, self.asking.found.table.facts
        size = "" if facts.size is None else f" of {facts.size:,} people"
        alpha = self.asking.terms["alpha"]
        near = "" if alpha is None else f" Answers are within {100 * float(Fraction(alpha)):g} % of the people."
        self.output.say(
            f"{one_line(schema.name)}: a table{size}, {len(schema.domain)} columns, edition {one_line(schema.edition)}."
            f"{near} {promise(self.asking)}"
        )
        self.output.say(f"{self.asking.left()} of the budget. \\help says what can be done here.")

    def turn(self) -> bool:
        """One line; False to leave."""
        from discreet.cli.ask import bare

        mark = "rehearsal | " if self.output.rehearsal else ""
        try:
            line = bare(self.read(f"{mark}{one_line(self.asking.found.schema.name)}> "))
        except KeyboardInterrupt:
            click.echo()
            return True
        except EOFError:
            click.echo()
            return False
        line = _PLAINLY.get(line.lower(), line)
        if line == "\\quit":
            return False
        try:
            self._do(line)
        except KeyboardInterrupt:
            self.asking.renew()
            self.output.say("stopped: what was charged before stays charged")
        except UnsupportedQuery as refused:
            self.output.say(caret(refused, self.output.console.width))
        except DiscreetError as refused:
            self.output.say(one_line(refused))
        return True

    def _do(self, line: str) -> None:
        if not line:
            return
        if not line.startswith("\\"):
            asked = self.asking.ask(line)
            self.asked.append(asked)
            show(asked, self.output)
            return
        name, _, rest = line.partition(" ")
        command = self._commands.get(name)
        if command is None:
            self.output.say(f"there is no {one_line(name)} here: {', '.join(self._commands)}, \\quit")
            return
        command(rest.strip())

    def _price(self, question: str) -> None:
        if not question:
            self.output.say("\\price needs a question: \\price SELECT COUNT(*) FROM ...")
            return
        with self.output.working("looking"):
            price = self.asking.session.price(question)
        cap = self.asking.left().cap
        self.output.say(f"at most {percent(price, cap)} of the budget" if price else "free: known already")

    def _left(self, _: str) -> None:
        self.output.say(f"{self.asking.left()} of the budget")
        for book in str(self.asking.ledger.remaining(allowance=self.asking.terms["allowance"])).split("; "):
            self.output.say(book)

    def _columns(self, _: str) -> None:
        domain = self.asking.found.schema.domain
        self.output.table(["column", "kind", "values"], [(name, *described(domain[name])) for name in domain])

    def _history(self, _: str) -> None:
        if not self.asked:
            self.output.say("nothing was asked yet")
        for each in self.asked:
            self.output.say(f"> {one_line(each.question)}")
            self.output.say(f"{each.one}; {each.cost}")

    def _help(self, _: str) -> None:
        self.output.table(["write", "for"], _HELP)


def described(column: Column) -> tuple[str, str]:
    """A declared column for people: its kind, and what it may hold."""
    from discreet.data import Category, Number, spell

    if isinstance(column, Category):
        special = [f"{each} (everything else)" for each in (column.other,) if each is not None]
        special += [f"{each} (missing)" for each in (column.missing,) if each is not None]
        plain = [str(each) for each in column.levels if each not in (column.other, column.missing)]
        return "category", ", ".join([*plain, *special])
    missing = ", or missing" if getattr(column, "missing", False) else ""
    if isinstance(column, Number):
        return "number", f"{spell(column.low)} to {spell(column.high)} in steps of {spell(column.step)}{missing}"
    return "any number", f"without bounds{missing}"


# Old lines.


def _remembered(path: Path, domain: Domain) -> Callable[[], list[str]] | None:
    """Load the old lines, complete column names on Tab, and return what gets the lines at the end; None without
    readline."""
    try:
        import readline
    except ImportError:  # not every Python has it; lines are then not remembered
        return None
    try:
        old = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        old = []
    readline.clear_history()
    for line in old[-_KEPT:]:
        readline.add_history(line)
    readline.set_completer(lambda text, number: completed(text, number, domain))
    readline.parse_and_bind("tab: complete")
    return lambda: [
        readline.get_history_item(place + 1) or "" for place in range(readline.get_current_history_length())
    ]


def completed(text: str, number: int, domain: Domain) -> str | None:
    """The column of this number among those that begin so."""
    found = [name for name in domain.names if name.lower().startswith(text.lower())]
    return found[number] if number < len(found) else None


def keep(path: Path, lines: list[str]) -> None:
    """The newest lines, in a file that only its user reads."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)  # it may be an older file
        file.writelines(f"{line}\n" for line in lines[-_KEPT:])
