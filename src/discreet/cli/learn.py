"""`discreet learn`: a rule that reads as a sentence, for one charge.

All that can be wrong is found before the charge: arguments and schema first, then the ledger, the rows, and the file to
save to. What is printed is what was released, what is promised about it and what it cost. How well a rule does on the
table is a question about the rows: it is not answered here, except by a certificate that is paid for.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

import discreet as dp
from discreet import rule_words
from discreet.cli.fit import source_line, train
from discreet.cli.kit import Command, Lines, OpenTable, model_options, one_line, save_options, table_options
from discreet.cli.price_view import Payment, receipt
from discreet.modelling import columns_named, rule_features, rule_learner, take_cost, with_positive

SHOWN = 2.0  # estimated seconds: from here on a bar is shown


@click.command("learn", cls=Command)
@table_options
@click.argument("kind", type=click.Choice(["box", "conjunction", "rule"]))
@model_options
@click.option("--positive", metavar="LEVEL", help="Level of the target that the rule is for.  [default: last of two]")
@click.option("--k", type=click.IntRange(1), help="conjunction, rule: maximum number of conditions.  [default: 2]")
@click.option("--method", default="auto", show_default=True, help="A method that `discreet plan KIND` lists.")
@click.option("--alpha", help="Share of wrong rows to promise, if some rule labels every row correctly.")
@click.option("--certify", metavar="EPSILON", help="Also pay this for a bound on the rule's mistakes.")
@save_options
def learn(
    schema: Path, kind: str, target: str, features: str | None, save: Path | None, force: bool, **options: Any
) -> None:
    """Learn a rule that reads as a sentence, for one charge.

    KIND is box (an interval of each feature, which are numbers), rule (at most k conditions such as age <= 40 or town =
    north, on any columns), or conjunction (of columns with two levels, of which the second means true). Prints the rule
    in words and as a condition for `discreet ask`, what is promised about its mistakes, the price and the remaining
    budget; never its mistakes on the table, unless --certify pays for a bound on them. The same command again, after
    its output was lost, is free: it gives the stored rule. --again pays for another. For example:

    \b
        discreet learn people.toml box --target sex --features age,diseases --epsilon 0.1 --certify 0.02
        discreet learn people.toml rule --target health --positive excellent --share 1/3 --save rule.json
        discreet learn people.toml conjunction --target limited --epsilon 0.1
    """
    chosen = {**take_cost(options), **{name: options.pop(name) for name in ("method", "alpha")}}
    positive, k, certify = (options.pop(name) for name in ("positive", "k", "certify"))
    epsilon = None if certify is None else dp.Budget(certify).epsilon
    declared = with_positive(dp.Schema.read(schema, options["table_name"]), target, positive)
    columns = rule_features(kind, declared.domain, target, columns_named(features, declared.domain))
    learner = rule_learner(kind, columns, k, chosen)
    at = OpenTable.open(schema, redeclared=lambda read: with_positive(read, target, positive), **options)
    stopped: list[BaseException] = []

    def record(model: Any) -> dict[str, Any]:
        made = {**rule_words.record(kind, model, target, declared.domain), "certificate": None}
        try:  # the rule is paid for, and is shown whatever happens to its certificate
            made["certificate"] = None if epsilon is None else _certify(at, model, target, epsilon)
        except (dp.DiscreetError, KeyboardInterrupt) as error:
            stopped.append(error)
        return made

    others = [source_line(columns, features is not None), *([] if save is None else [("saved", str(save))])]
    with conjunction_progress():
        train(
            at,
            learner,
            target,
            columns,
            save=save,
            force=force,
            record=record,
            show=lambda _, made, paid: _show(at, schema, made, paid, others),
            text=f"learning a {kind}",
        )
    if stopped:
        raise stopped[0]


def _certify(at: OpenTable, model: Any, target: str, epsilon: Fraction) -> dict[str, Any]:
    """Buy a certificate; its record."""
    from discreet.pac import bound_in_words

    with at.output.working("counting mistakes, with noise"):
        bought = model.certify(at.table, target, epsilon=epsilon)
    paid = receipt(replace(at, allowance=model.allowance), bought.guarantee, bought.entry, replayed=bought.replayed)
    return {
        "said": bound_in_words(bought.rows, bought.error, bought.beta),
        "rows": bought.rows,
        "error": bought.error,
        "probability": 1 - bought.beta,
        **{key: value for key, value in paid.record().items() if key not in ("left", "more_like_this")},
        "cost": f"{paid.took}: {paid.guarantee}",
    }


def _show(at: OpenTable, schema: Path, made: dict[str, Any], paid: Payment, others: Lines) -> None:
    """Print the rule, the command that asks how many people it is about, and what is known about it."""
    from discreet.sql import name_text

    output, target, bought = at.output, made["target"], made["certificate"]
    output.say(f"{one_line(target['column'])} = {one_line(target['positive'])} where")
    output.say(f"    {one_line(made['sentence'])}")
    question = f"SELECT COUNT(*) FROM {name_text(at.schema.name)}{' WHERE ' if made['sql'] else ''}{made['sql']}"
    quoted = shlex.quote(question) if any(sign in question for sign in '"$`\\!') else f'"{question}"'
    rehearse = " --rehearse" if output.rehearsal else ""
    output.copyable(f"discreet ask {shlex.quote(str(schema))} {quoted}{rehearse}")
    covered = f"{dp.exact.percent(made['covers'])} of the declared values (not of the people)"
    *price, left = paid.lines()
    certified = [] if bought is None else [("certificate", bought["said"]), ("its price", bought["cost"])]
    hint = ("hint", "a box has two sides for each column: one or two --features need much less noise")
    hints = [hint] if made["rule"] == "box" and len(made["columns"]) > 2 else []
    known = [("covers", covered), ("promise", made["promise"]), ("method", made["method"])]
    output.facts([*known, *price, *certified, left, *hints, *others])


@contextmanager
def conjunction_progress() -> Iterator[None]:
    """Inside, a run of AllConjunctions that is expected to take long draws a bar on the error stream, if that is a
    terminal: public numbers only."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from discreet.pac import PROGRESS, Estimate

    task: TaskID | None = None
    waiting = 0

    def advance(expected: Estimate, done: int) -> None:
        nonlocal task, waiting
        if expected.seconds <= SHOWN:
            return
        if task is None:
            task = bar.add_task(str(expected), total=expected.conjunctions)
        waiting += done
        if waiting > expected.conjunctions // 500:
            bar.advance(task, waiting)
            waiting = 0

    with Progress(console=Console(stderr=True), transient=True) as bar:
        token = PROGRESS.set(advance)
        try:
            yield
        finally:
            PROGRESS.reset(token)
