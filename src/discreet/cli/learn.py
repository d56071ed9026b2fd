"""`discreet learn`: a rule that reads as a sentence, for one charge.

All that can be wrong is found before the charge: arguments and schema first, then the ledger, the rows, and the file to
save to. What is printed is what was released, what is promised about it and what it cost. How well a rule does on the
table is a question about the rows: it is not answered here, except by a certificate that is paid for.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

import discreet as dp
from discreet.cli import rule_view
from discreet.cli.columns import LEVELS_OR_BOUNDS, chosen_columns
from discreet.cli.options import Command, OpenTable, model_options, open_table, save_options, table_options, take_cost
from discreet.cli.output import Lines
from discreet.cli.price_view import Receipt, receipt
from discreet.cli.progress import conjunction_progress
from discreet.cli.training import source_line, train
from discreet.describe import one_line


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
    schema: Path,
    kind: str,
    target: str,
    features: str | None,
    positive: str | None,
    k: int | None,
    method: str,
    alpha: str | None,
    certify: str | None,
    save: Path | None,
    force: bool,
    **options: Any,
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
    cost = take_cost(options)
    epsilon = None if certify is None else dp.Budget(certify).epsilon
    declared = rule_view.with_positive(dp.Schema.read(schema), target, positive)
    columns = _features(kind, declared.domain, target, features)
    learner = _learner(kind, columns, k, {**cost, "method": method, "alpha": alpha})
    at = _redeclare(open_table(schema, **options), declared, options["data_path"])
    stopped: list[BaseException] = []

    def record(model: Any) -> dict[str, Any]:
        made = {**rule_view.record(kind, model, target, declared.domain), "certificate": None}
        try:  # the rule is paid for, and is shown whatever happens to its certificate
            made["certificate"] = None if epsilon is None else _certify(at, model, target, epsilon)
        except (dp.DiscreetError, KeyboardInterrupt) as error:
            stopped.append(error)
        return made

    others: Lines = [source_line(columns, features is not None), *([] if save is None else [("saved", str(save))])]
    with conjunction_progress():
        train(
            at,
            learner,
            target,
            columns,
            save=save,
            force=force,
            record=record,
            show=lambda made, paid: _show(at, schema, made, paid, others),
            text=f"learning a {kind}",
        )
    if stopped:
        raise stopped[0]


def _learner(kind: str, columns: Sequence[str], k: int | None, chosen: dict[str, Any]) -> Any:
    if kind == "box":
        if k is not None:
            raise dp.ParameterError("--k is for conjunction and rule: a box has an interval of every feature")
        # On one or two columns all boxes can be gone through, which is near the best and promises so.
        few = len(columns) <= 2 and chosen["method"] == "auto" and chosen["alpha"] is None
        return dp.BoxClassifier(**{**chosen, "method": "exhaustive" if few else chosen["method"]})
    if kind == "rule":
        return dp.RuleClassifier(**chosen, k=k or 2)
    return dp.ConjunctionClassifier(**chosen, k=k or min(2, len(columns)))


def _features(kind: str, domain: dp.Domain, target: str, features: str | None) -> list[str]:
    if kind == "box":
        return chosen_columns(domain, target, features, lambda column: column.bounded, "bounds, as numbers have")
    if kind == "rule":
        return chosen_columns(domain, target, features, lambda column: column.listed, LEVELS_OR_BOUNDS)
    words = "two levels, of which the second means true"
    named = chosen_columns(domain, target, features, lambda column: not column.ordered, words)
    boolean = {name for name in domain.names if not domain[name].ordered and domain[name].size == 2}
    serving = [name for name in named if name in boolean]
    if not serving or (features is not None and serving != named):
        other = next((f"{name!r} has more" for name in named if name not in boolean), "none has")
        every = [name for name in domain.names if name in boolean - {target}]
        raise dp.ParameterError(
            f"a conjunction needs columns of {words}, and {other}. Those that can serve: "
            f"{', '.join(every) or 'none'}. `learn rule` takes any columns"
        )
    return serving


def _redeclare(at: OpenTable, schema: dp.Schema, data_path: Path | None) -> OpenTable:
    """The same rows under another declaration of the target; the ledger stays."""
    if schema.domain == at.schema.domain:
        return at
    with at.output.working("reading the rows"):
        if not at.output.rehearsal:
            return replace(at, schema=schema, table=schema.table(data_path))
        people = at.table.facts.size
        table = schema.rehearsal() if people is None else schema.rehearsal(people)
    return replace(at, schema=schema, table=table)


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


def _show(at: OpenTable, schema: Path, made: dict[str, Any], paid: Receipt, others: Lines) -> None:
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
    lines: list[tuple[str, object]] = [("covers", covered), ("promise", made["promise"]), ("method", made["method"])]
    guarantee, price, left = paid.lines()
    lines += [guarantee, price]
    if bought is not None:
        lines += [("certificate", bought["said"]), ("its price", bought["cost"])]
    lines.append(left)
    if made["rule"] == "box" and len(made["columns"]) > 2:
        lines.append(("hint", "a box has two sides for each column: one or two --features need much less noise"))
    output.facts([*lines, *others])
