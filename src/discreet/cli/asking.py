"""To come."""

import click


@click.command("ask")
def ask() -> None:
    """To come."""
    raise click.ClickException("to come")


@click.command("synth")
def synth() -> None:
    """To come."""
    raise click.ClickException("to come")
