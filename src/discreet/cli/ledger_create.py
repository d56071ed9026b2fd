"""How `discreet ledger create` makes a ledger: from a schema, whose table is read once, or from options alone.

What the promise means is said in odds, and a weak one is made only by somebody who says so twice.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from discreet import exact
from discreet.cli.options import Output
from discreet.describe import one_line
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.guarantee import Budget

_LARGE_EPSILON = 10


def create_from_schema(path: Path, budget: Budget, yes: bool) -> None:
    from discreet.ledger import Ledger
    from discreet.schema import Schema

    schema, output = Schema.read(path), Output()
    where = schema.ledger
    if where is None:
        raise ParameterError(f'{path.name} names no ledger: add ledger = "{path.stem}.ledger" to it')
    if where.exists():
        raise ParameterError(f"{where.name} exists already: `discreet ledger show {path}` shows what is left of it")
    with output.working("reading the rows"):
        table = schema.table()
    ask_back(budget, table.facts.size, yes)
    made = Ledger.create(where, budget, table)
    edition = f"edition {one_line(schema.edition)}"
    output.say(f"{where.name}: {budget} for {schema.name!r}, {made.identity.neighbours}, {edition}; id {made.id}")
    output.say(schema.protects())
    _say_odds(output, budget)


def create_from_options(
    path: Path, budget: Budget, name: str, neighbours: str, unit: str | None, rows: int | None, size: int | None
) -> None:
    from discreet.data import Identity
    from discreet.guarantee import Neighbours
    from discreet.ledger import Ledger

    relation, output = Neighbours(neighbours, rows or 1), Output()
    made = Ledger.create(path, budget, Identity(name, relation, unit), size=size)
    output.say(f"{path.name}: {budget} for {name!r}, {relation}; id {made.id}")
    _say_odds(output, budget)


def ask_back(budget: Budget, size: int | None, yes: bool) -> None:
    """A weak promise is made only by somebody who says so twice."""
    if yes:
        return
    if budget.epsilon > _LARGE_EPSILON:
        click.confirm(
            f"epsilon {exact.shown(budget.epsilon)} promises very little to the people in the table: {odds(budget)} "
            "Go on?",
            abort=True,
            err=True,
        )
    if size and budget.delta * size >= 1:
        click.confirm(
            f"delta {exact.shown(budget.delta)} for {size:,} persons allows to publish the rows of one of them. Go on?",
            abort=True,
            err=True,
        )


def _say_odds(output: Output, budget: Budget) -> None:
    if budget.epsilon > 1:
        output.say(f"What epsilon {exact.shown(budget.epsilon)} means: {odds(budget)}")


def odds(budget: Budget) -> str:
    """What the budget means to somebody who guesses about a person: from even odds to at most e^epsilon : 1."""
    rest = 0.0 if budget.epsilon > 30 else 100 / (1 + math.exp(budget.epsilon))
    places = 0 if rest >= 5 else next((each for each in range(1, 12) if rest * 10**each >= 1), 12)
    sure = f"{100 - rest:.{places}f} : {rest:.{places}f}" if rest else "as good as sure"
    return f"after all releases, somebody who thinks 50 : 50 about a person may come to think {sure}."
