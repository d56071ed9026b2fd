"""The prompt of `discreet ask`: a line is a question, a line that begins with a backslash is for the prompt itself.

Ctrl-C drops the line, or the question that is running: what was charged for it stays charged, and the ledger knows.
Ctrl-D leaves. Lines are edited and remembered by readline; the file of old lines is its user's own (mode 0600).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import click

import discreet as dp
from discreet.cli.ask_session import AnswerView, AskSession, bare, caret
from discreet.cli.columns import in_words
from discreet.cli.kit import one_line

_KEPT = 1_000  # old lines
_HELP = (
    ("SELECT ...", "a question in SQL; the semicolon at the end is optional"),
    ("\\price QUESTION", "the maximum price of a question; free, and nothing is asked"),
    ("\\left", "the remaining budget"),
    ("\\columns", "the declared columns and their values"),
    ("\\history", "what was asked and answered at this prompt"),
    ("\\help", "this"),
    ("\\quit", "leave; so do exit and Ctrl-D. Ctrl-C drops a line or stops a question"),
)
_ALIASES = {"quit": "\\quit", "exit": "\\quit", "\\exit": "\\quit", "\\q": "\\quit", "help": "\\help", "?": "\\help"}


def talk(asking: AskSession) -> None:
    """Answer lines until the analyst leaves."""
    from discreet.ledger import state_directory

    history = state_directory() / "questions"
    history_lines = _load_history(history, asking.at.schema.domain)
    prompt = Prompt(asking)
    prompt.greet()
    try:
        while prompt.turn():
            pass
    finally:
        if history_lines is not None:
            keep(history, history_lines())


class Prompt:
    """One conversation: reads a line, does what it says."""

    def __init__(self, asking: AskSession, read: Callable[[str], str] = input) -> None:
        self.asking, self.output, self.read = asking, asking.output, read
        self.answers: list[AnswerView] = []
        self.commands: dict[str, Callable[[str], None]] = {
            "\\price": self.price,
            "\\left": self.left,
            "\\columns": self.columns,
            "\\history": self.history,
            "\\help": lambda _: self.output.table(["write", "for"], _HELP),
        }

    def greet(self) -> None:
        schema, size = self.asking.at.schema, self.asking.at.table.facts.size
        people = "" if size is None else f" of {size:,} people"
        near = f" {self.asking.terms_in_words}" if self.asking.terms_in_words else ""
        self.output.say(
            f"{one_line(schema.name)}: a table{people}, {len(schema.domain)} columns, edition "
            f"{one_line(schema.edition)}.{near} {self.asking.promise}"
        )
        self.output.say(f"{self.asking.left()} of the budget. \\help says what can be done here.")

    def turn(self) -> bool:
        """One line; False to leave."""
        try:
            line = bare(self.read(f"{self.output.mark}{one_line(self.asking.at.schema.name)}> "))
        except (KeyboardInterrupt, EOFError) as stopped:
            click.echo()
            return type(stopped) is KeyboardInterrupt
        line = _ALIASES.get(line.lower(), line)
        if line == "\\quit":
            return False
        name, _, rest = line.partition(" ")
        try:
            if name in self.commands:
                self.commands[name](rest.strip())
            elif name.startswith("\\"):
                self.output.say(f"there is no {one_line(name)} here: {', '.join(self.commands)}, \\quit")
            elif line:
                self.answers.append(self.asking.ask(line))
                self.answers[-1].show(self.output)
        except KeyboardInterrupt:
            self.asking.renew()
            self.output.say("stopped: what was charged before stays charged")
        except dp.errors.UnsupportedQuery as refused:
            self.output.say(caret(refused, self.output.width))
        except dp.DiscreetError as refused:
            self.output.say(one_line(refused))
        return True

    def price(self, question: str) -> None:
        if not question:
            self.output.say("\\price needs a question: \\price SELECT COUNT(*) FROM ...")
            return
        with self.output.working("looking"):
            price = self.asking.session.price(question)
        self.output.say(f"at most {price}" if price else "free: known already")

    def left(self, _: str) -> None:
        self.output.say(f"{self.asking.left()} of the budget")
        for book in self.asking.ledger.remaining(allowance=self.asking.terms["allowance"]).lines():
            self.output.say(book)

    def columns(self, _: str) -> None:
        domain = self.asking.at.schema.domain
        self.output.table(["column", "kind", "values"], [(name, *in_words(domain[name])) for name in domain])

    def history(self, _: str) -> None:
        if not self.answers:
            self.output.say("nothing was asked yet")
        for answer in self.answers:
            self.output.say(f"> {one_line(answer.question)}")
            self.output.say(f"{answer.one}; {answer.cost}")


# Old lines.


def _load_history(path: Path, domain: dp.Domain) -> Callable[[], list[str]] | None:
    """Load the old lines, complete column names on Tab, and return the function that gets the lines at the end; None
    without readline."""
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
    readline.set_completer(lambda text, number: completion(text, number, domain))
    readline.parse_and_bind("tab: complete")
    return lambda: [
        readline.get_history_item(place + 1) or "" for place in range(readline.get_current_history_length())
    ]


def completion(text: str, number: int, domain: dp.Domain) -> str | None:
    """The column of this number among those that begin with the text."""
    names = [name for name in domain.names if name.lower().startswith(text.lower())]
    return names[number] if number < len(names) else None


def keep(path: Path, lines: list[str]) -> None:
    """Write the newest lines to a file that only its user reads."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)  # it may be an older file
        file.writelines(f"{line}\n" for line in lines[-_KEPT:])
