"""`discreet plan`: what a budget buys, before anything is spent."""

from __future__ import annotations

import click

from discreet.errors import ParameterError


@click.command()
@click.argument("kind")
@click.option("--epsilon", required=True, help="The budget of this one release.")
@click.option("--delta", default="0", show_default=True)
@click.option("--neighbours", default="replace-one", show_default=True, help="replace-one or add-remove.")
@click.option("--rows-per-unit", default=1, show_default=True, help="How many rows a person may hold.")
@click.option("--size", default=None, type=int, help="How many people there are: shows errors as fractions of it.")
@click.option("--alpha", default=None, help="A wanted error, as a fraction: shows the size that it needs.")
@click.option("--beta", default="0.05", show_default=True, help="Each promise may fail with this probability.")
@click.option("--number", "numbers", multiple=True, metavar="NAME=N", help="What the kind needs: cells=100, d=50.")
def plan(
    kind: str,
    epsilon: str,
    delta: str,
    neighbours: str,
    rows_per_unit: int,
    size: int | None,
    alpha: str | None,
    beta: str,
    numbers: tuple[str, ...],
) -> None:
    """What a budget buys, before anything is spent. Reads no data.

    KIND is count, histogram (cells), vector (d), select (candidates) or threshold (questions); or a learner: mean,
    median, linear (d) or logistic (d), in units where rows have norm 1, targets lie in [-1, 1] and values in [0, 1];
    or a learner of rules: interior (bits), box (d, bits), conjunction (d, k), rule (conditions, k), finite
    (hypotheses), whose error is the share of rows that it labels wrong; or questions (questions, and bits or cells of
    the domain): so many counts, each chosen after the answers before it. For example:

        \b
        discreet plan histogram --epsilon 0.5 --delta 1e-6 --size 20000 --number cells=121
        discreet plan logistic --epsilon 1 --delta 1e-6 --size 10000 --number d=10
        discreet plan box --epsilon 1 --delta 1e-6 --alpha 0.05 --number d=2 --number bits=16
        discreet plan questions --epsilon 1 --delta 1e-6 --alpha 0.05 --number questions=1000000 --number bits=20
    """
    from discreet.guarantee import Budget, Neighbours
    from discreet.plan import plan as planned

    pairs = [pair.partition("=") for pair in numbers]
    for name, _, value in pairs:
        if not name.isidentifier() or not (value.isascii() and value.isdecimal()):
            raise ParameterError(f"--number takes NAME=N with a whole number N, found {name}={value}")
    budget = Budget(epsilon, delta)
    found = planned(
        kind,
        budget=budget,
        neighbours=Neighbours(neighbours, rows_per_unit),
        size=size,
        alpha=alpha,
        beta=beta,
        **{name: int(value) for name, _, value in pairs},
    )
    click.echo(str(found))
