"""`discreet tour`: the main job, end to end. The tour itself is `examples/tour`, on the public face of the library."""

from __future__ import annotations

from pathlib import Path

import click

from discreet.cli.kit import Command
from discreet.cli.shipped import load


@click.command(cls=Command)
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("discreet-tour"),
    show_default=True,
    help="Where its files go; if the folder is not empty, NAME-2, NAME-3, ...",
)
@click.option("--long", is_flag=True, help="Print everything: the plan, each result beside its promise, the books.")
@click.option("--no-report", is_flag=True, help="Leave report.html out.")
@click.option(
    "--files", type=click.Path(file_okay=False, path_type=Path), help="Only write the tables and their schemas here."
)
def tour(folder: Path, long: bool, no_report: bool, files: Path | None) -> None:
    """Everything once, on a bundled table of real people.

    Opens a ledger, prints the plan before it spends, fits two regressions, learns a rule and a box, asks hundreds
    of questions in SQL and writes synthetic rows, all under one budget. Each answer is shown beside what was
    promised and, because the rows of these people are public, beside its true error. Prints 40 lines; --long prints
    the rest. Leaves a folder to continue with, and a page, report.html.

    \b
        discreet tour
        discreet tour --long --folder another-tour
        discreet tour --files .
    """
    if files is not None:
        from discreet import example

        click.echo(f"{example.write(files)}: {', '.join(example.FILES)} are here to try things on")
        return
    load("tour").tour(folder, report=not no_report, long=long)
