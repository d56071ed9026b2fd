"""`discreet tour`: the main job, end to end."""

from __future__ import annotations

import click


@click.command()
def tour() -> None:
    """The main job, end to end, on made-up people; takes a few seconds."""
    from rich.console import Console

    from discreet.tour import tour as show_around

    show_around(Console(highlight=False))
