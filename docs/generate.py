"""Writes docs/commands.md: every command with its help, as `discreet COMMAND --help` prints it at a fixed width.

    .venv/bin/python docs/generate.py

A test regenerates the page and compares, so that it cannot fall behind the commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from discreet.cli import commands

PAGE = Path(__file__).with_name("commands.md")
WIDTH = 100
HEAD = """\
# All commands

What `discreet COMMAND --help` prints, written by `docs/generate.py`. A command that releases something takes a schema,
charges the ledger that the schema names, and then computes; `--rehearse` tries it on made-up rows. [First
steps](first_steps.md) uses most of them once.

| exit code | means |
|---|---|
| 0 | done |
| 1 | refused or failed: the ledger is damaged, behind its mark or another table's; a file cannot be read or written |
| 2 | a wrong argument, schema or question: nothing was spent |
| 3 | the budget does not allow it: nothing was spent |
| 130 | stopped by Ctrl-C: what was charged before stays charged |
| 141 | the reader of the output went away |
"""


def page() -> str:
    """The whole page."""
    return "\n".join(
        [HEAD, *(section for name, command in _all(commands, "discreet") for section in _shown(name, command))]
    )


def _all(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """A command and those below it, by name."""
    yield name, command
    if isinstance(command, click.Group):
        for below in sorted(command.commands):
            yield from _all(command.commands[below], f"{name} {below}")


def _shown(name: str, command: click.Command) -> list[str]:
    settings = {"help_option_names": ["-h", "--help"]}
    with click.Context(command, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH, **settings) as context:
        text = command.get_help(context)
    lines = [line.rstrip() for line in text.splitlines()]
    return [f"## {name}", "", "```text", *lines, "```", ""]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
