"""Writes the pages that are made from code, and the labs.

    .venv/bin/python docs/generate.py           commands.md and api.md
    .venv/bin/python docs/generate.py --labs    also the four labs, as pages in docs/_labs

commands.md has every command with its help, as `discreet COMMAND --help` prints it at a fixed width. api.md has every
public name with its signature and its docstring. A test regenerates both pages and compares, so that they cannot fall
behind.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import click

import discreet as dp
from discreet.cli import commands
from discreet.cli.shipped import load

PAGE = Path(__file__).with_name("commands.md")
API = Path(__file__).with_name("api.md")
LABS = Path(__file__).with_name("_labs")
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


# The public face.

GROUPS = {
    "Tables": "Domain Number Category Vector Table ParquetTable GrowingTable Matrix Schema",
    "Budgets and ledgers": "Budget Share Funds Neighbours Guarantee Ledger BudgetExceeded DiscreetError",
    "Queries": "Count Sum Histogram And Or Not Equals Among Between Missing",
    "Releases": "release converse reopen Released Laplace Gaussian Exponential calibrate plan certificate Certificate",
    "Sessions": "Session Answer Running ContinualCounter",
}
"""Names by what they are for; an estimator, a module or a new name is put into its group by what it is."""

REST = {"Models, rules and transformers": "estimators", "More": "", "Modules": "module"}

API_HEAD = """\
# API reference

Every name of `import discreet as dp`, with its docstring, written by `docs/generate.py`; `help(dp.NAME)` shows the same
text. A mechanism states its theorem, its accuracy and its edge cases; keys such as [DR14] are in the
[references](references.md). [Fitting models](learning.md), [learning rules](rules.md) and [asking
questions](questions.md) explain with examples.
"""


def api() -> str:
    """The whole page of the public face."""
    lines = [API_HEAD]
    for title, names in grouped().items():
        lines += [f"## {title}", ""]
        lines += [line for name in names for line in _described(name, getattr(dp, name))]
    return "\n".join(lines)


def grouped() -> dict[str, list[str]]:
    """Every public name, in the group that it belongs to."""
    found = {title: [name for name in names.split() if name in dp.__all__] for title, names in GROUPS.items()}
    placed = {name for names in found.values() for name in names}
    found |= {title: [] for title in REST}
    for name in dp.__all__:
        if name not in placed:
            kind = "module" if isinstance(getattr(dp, name), ModuleType) else _home(getattr(dp, name))
            found[next((title for title, home in REST.items() if home == kind), "More")].append(name)
    return {title: names for title, names in found.items() if names}


def _home(thing: Any) -> str:
    """The package that defines a thing."""
    parts = getattr(thing, "__module__", "").split(".")
    return parts[1] if len(parts) > 1 else ""


def _described(name: str, thing: Any) -> list[str]:
    head = f"{name}{_signature(thing)}"
    lines = [f"### {name}", "", "```text", *textwrap.wrap(head, WIDTH, subsequent_indent="    "), "```", ""]
    lines += ["```text", *inspect.cleandoc(thing.__doc__ or "").splitlines(), "```", ""]
    methods = [_method(each, part) for each, part in _own_methods(thing)]
    return [*lines, *(["```text", *methods, "```", ""] if methods else [])]


def _signature(thing: Any) -> str:
    """The parameters with their defaults; types are in the code."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in found.parameters.values()]
    shown = str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    shown = re.sub(r"<(?:function|class) '?([\w.]+)[^>]*>", r"\1", shown)  # no addresses
    return "" if isinstance(thing, type) and shown == "(*args, **kwds)" else shown


def _own_methods(thing: Any) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that a class of discreet documents, in the order of their names."""
    if not isinstance(thing, type):
        return
    for name in sorted(dir(thing)):
        part = inspect.getattr_static(thing, name)
        owner = next(each for each in thing.__mro__ if name in vars(each))
        if not name.startswith("_") and owner.__module__.startswith("discreet") and _text(part):
            yield name, part


def _text(part: Any) -> str:
    inner = getattr(part, "__func__", part)
    return inspect.getdoc(inner) or "" if callable(inner) or isinstance(part, property) else ""


def _method(name: str, part: Any) -> str:
    inner = getattr(part, "__func__", part)
    call = "" if isinstance(part, property) else re.sub(r"\((self|cls)(, )?", "(", _signature(inner), count=1)
    first = " ".join(_text(part).split("\n\n")[0].split())
    return textwrap.fill(f".{name}{call}: {first}", WIDTH, subsequent_indent="    ")


def write_labs() -> None:
    """Each lab at its defaults, as the page that `discreet lab` writes."""
    LABS.mkdir(exist_ok=True)
    labs = load("labs")
    for number in labs.NUMBERS:
        (LABS / f"lab{number:02d}.html").write_text(labs.lab(number).page(), encoding="utf-8")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    API.write_text(api(), encoding="utf-8")
    if "--labs" in sys.argv:
        write_labs()
