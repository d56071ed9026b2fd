"""To come."""

import click


@click.command("fit")
def fit() -> None:
    """To come."""
    raise click.ClickException("to come")


@click.command("learn")
def learn() -> None:
    """To come."""
    raise click.ClickException("to come")


@click.command("suggest-bounds")
def suggest_bounds() -> None:
    """To come."""
    raise click.ClickException("to come")
