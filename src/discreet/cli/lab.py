"""`discreet lab`: the lectures that discreet grew out of, as experiments. The labs are `examples/labs`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from discreet.cli.files import reserved_page
from discreet.cli.kit import FILE, Command, Output
from discreet.cli.shipped import load


@click.command(cls=Command)
@click.argument("number", type=click.Choice(["9", "10", "12", "13"]))
@click.option("--n", type=int, help="Number of invented persons or rows.")
@click.option("--d", type=int, help="Coordinates, columns or values per column, as the lab says.")
@click.option("--epsilon", type=float, help="Privacy: the largest log-ratio of probabilities.")
@click.option("--delta", type=float, help="Privacy: the small probability that epsilon may fail.")
@click.option("--steps", type=int, help="T: steps of a descent, or questions of an analyst.")
@click.option("--alpha", type=float, help="Accuracy: an error, as a fraction of the persons.")
@click.option("--beta", type=float, help="Accuracy: the probability that a promise fails.")
@click.option("--runs", type=int, help="Independent runs behind each measured number.")
@click.option("--seed", type=int, help="Randomness of the invented rows and of the runs.")
@click.option("--out", type=FILE, help="The page to write.  [default: labNUMBER.html]")
@click.option("--force", is_flag=True, help="Overwrite an existing page.")
def lab(number: str, out: Path | None, force: bool, **given: Any) -> None:
    """Write the lab of a lecture as a page, on invented people.

    Any browser opens the page, without a network. The labs:

    \b
         9  private empirical risk minimisation: mean, median, regression, a network
        10  noisy projected gradient descent
        12  private PAC learning: boxes and conjunctions
        13  private multiplicative weights: any number of questions

    Each lab states the theorems of its lecture with their constants, draws measured runs against the bounds, shows what
    breaks when a hypothesis is dropped, and attacks a broken twin. Options change its numbers; the page lists those
    that the lab has, with their defaults. No real table is touched, and nothing is spent. For example:

    \b
        discreet lab 10 --steps 100 --epsilon 0.5
        discreet lab 13 --alpha 0.1 --out lab13-fine.html
    """
    chosen = load("labs").lab(int(number))
    settings = chosen.settle(**{name: value for name, value in given.items() if value is not None})
    where = out or Path(f"lab{int(number):02d}.html")
    output = Output()
    with reserved_page(where, force=force) as draft, output.working(f"lab {number}"):
        draft.write(chosen.page(settings))
    output.say(f"{where.name}: {chosen.title}, {where.stat().st_size:,} bytes; any browser opens it")
