"""The prompt of `discreet ask`: questions that end with a semicolon, and commands to the prompt, which begin with a
backslash.

A question may have several lines, so that one that is pasted is one. Ctrl-C drops what was written, or stops the
question that is running: what was charged for it stays charged, and the ledger knows. Ctrl-D leaves. Lines are edited
by readline, and whole questions are remembered; the file of old ones is its user's own (mode 0600).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import click

import discreet as dp
from discreet.answering import answer_words
from discreet.cli.ask_session import AnswerView, AskSession, bare, caret
from discreet.cli.kit import one_line
from discreet.cli.statements import ended

_KEPT = 1_000  # old lines
_HELP = (
    ("SELECT ...;", "a question in SQL, on one line or several, ended by a semicolon"),
    ("\\price QUESTION", "the maximum price of a question; free, and nothing is asked"),
    ("\\left", "the remaining budget"),
    ("\\columns", "the declared columns and their values"),
    ("\\history", "what was asked and answered at this prompt"),
    ("\\help", "this"),
    ("\\quit", "leave; so do exit and Ctrl-D. Ctrl-C drops what was written, or stops a question"),
)
_ALIASES = {"quit": "\\quit", "exit": "\\quit", "\\exit": "\\quit", "\\q": "\\quit", "help": "\\help", "?": "\\help"}


def talk(asking: AskSession) -> None:
    """Answer lines until the analyst leaves."""
    from discreet.ledger import state_directory

    history = state_directory() / "questions"
    names = [name for domain in asking.at.domains.values() for name in domain]
    asked = _load_history(history, dict.fromkeys(names))
    prompt = Prompt(asking, remember=asked.append)
    prompt.greet()
    try:
        while prompt.turn():
            pass
    finally:
        keep(history, asked.lines)


class Prompt:
    """One conversation: reads lines, answers the questions on them and does what commands say.

    pending   what was written of a question that no semicolon ended yet
    remember  keeps a whole question, or a command, for the next time
    """

    def __init__(
        self,
        asking: AskSession,
        read: Callable[[str], str] = input,
        remember: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.asking, self.output, self.read, self.remember = asking, asking.output, read, remember
        self.pending = ""
        self.answers: list[AnswerView] = []
        self.commands: dict[str, Callable[[str], None]] = {
            "\\price": self.price,
            "\\left": self.left,
            "\\columns": self.columns,
            "\\history": self.history,
            "\\help": lambda _: self.output.table(["write", "for"], _HELP),
        }

    def greet(self) -> None:
        schema, size, domains = self.asking.at.schema, self.asking.at.size, self.asking.at.domains
        people = "" if size is None else f" of {size:,} people"
        near = f" {self.asking.terms_in_words}" if self.asking.terms_in_words else ""
        tables = "a table" if len(domains) == 1 else f"{len(domains)} tables"
        self.output.say(
            f"{one_line(schema.name)}: {tables}{people}, {sum(map(len, domains.values()))} columns, edition "
            f"{one_line(schema.edition)}.{near} {self.asking.promise}"
        )
        self.output.say(f"{self.asking.left()} of the budget. \\help says what can be done here.")

    def turn(self) -> bool:
        """One line; False to leave."""
        name = f"{self.output.mark}{one_line(self.asking.at.schema.name)}"
        try:
            line = self.read(f"{' ' * max(0, len(name) - 3)}...> " if self.pending else f"{name}> ")
        except KeyboardInterrupt:
            click.echo()
            self.pending = ""
            return True
        except EOFError:
            click.echo()
            if self.pending:
                self.output.say(f"not asked, since no semicolon ended it: {one_line(self.pending)}")
            return False
        if self.pending:
            self._go_on(line)
            return True
        word = bare(line)
        word = _ALIASES.get(word.lower(), word)
        if word == "\\quit":
            return False
        if word.startswith("\\"):
            self.remember(word)
            name, _, rest = word.partition(" ")
            if name in self.commands:
                self._do(self.commands[name], rest.strip())
            else:
                self.output.say(f"there is no {one_line(name)} here: {', '.join(self.commands)}, \\quit")
        elif word or line.strip():
            self._go_on(line)
        return True

    def _go_on(self, line: str) -> None:
        """Add a line to what was written, and ask the questions that are ended now."""
        if self.pending and not line.strip():
            self.output.say("the question goes on: end it with a semicolon, or drop it with Ctrl-C")
            return
        found, rest = ended(f"{self.pending}\n{line}")
        self.pending = "" if rest is None else rest.text
        for each in found:
            self.remember(f"{each.text};")
            self._do(self._question, each.text)

    def _question(self, text: str) -> None:
        self.answers.append(self.asking.ask(text))
        self.answers[-1].show(self.output)

    def _do(self, work: Callable[[str], None], text: str) -> None:
        """Do what a line says; what is wrong with it is said, and the conversation goes on."""
        try:
            work(text)
        except KeyboardInterrupt:
            self.asking.renew()
            self.output.say("stopped: what was charged before stays charged")
        except click.Abort:
            self.output.say("not asked: nothing was spent")
        except dp.errors.UnsupportedQuery as refused:
            self.output.say(caret(refused, self.output.width))
        except dp.DiscreetError as refused:
            self.output.say(one_line(refused))

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
        for table, domain in self.asking.at.domains.items():
            if len(self.asking.at.domains) > 1:
                self.output.say(one_line(table), style="bold")
            self.output.sheet(domain.sheet())

    def history(self, _: str) -> None:
        if not self.answers:
            self.output.say("nothing was asked yet")
        for answer in self.answers:
            self.output.say(f"> {one_line(answer.question)}")
            self.output.say(f"{answer_words.headline(answer.answer)}; {answer.cost}")


# Old questions.


class History:
    """Old questions and commands, each on one line; readline brings them back, where Python has it."""

    def __init__(self, lines: Iterable[str], add: Callable[[str], None] | None) -> None:
        self.lines, self._add = list(lines), add

    def append(self, line: str) -> None:
        self.lines.append(line)
        if self._add is not None:
            self._add(line)


def _load_history(path: Path, columns: Iterable[str]) -> History:
    """The old questions; column names are completed on Tab, and readline keeps whole questions instead of lines."""
    try:
        old = path.read_text(encoding="utf-8", errors="replace").splitlines()[-_KEPT:]
    except OSError:
        old = []
    try:
        import readline
    except ImportError:  # not every Python has it
        return History(old, None)
    readline.clear_history()
    readline.set_auto_history(False)
    for line in old:
        readline.add_history(line)
    readline.set_completer(lambda text, number: completion(text, number, columns))
    readline.parse_and_bind("tab: complete")
    return History(old, readline.add_history)


def completion(text: str, number: int, columns: Iterable[str]) -> str | None:
    """The column of this number among those that begin with the text."""
    names = [name for name in columns if name.lower().startswith(text.lower())]
    return names[number] if number < len(names) else None


def keep(path: Path, lines: list[str]) -> None:
    """Write the newest lines to a file that only its user reads."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)  # it may be an older file
        file.writelines(f"{line}\n" for line in lines[-_KEPT:])
