"""`discreet learn`: a rule that reads as a sentence, for one charge; and the other commands that learn.

All that can be wrong is found before the charge: arguments and schema first, then the ledger, the rows, and the file to
save to. What is printed is what was released, what is promised about it and what it cost. How well a model does on the
table is a question about the rows: it is not answered here, except by a certificate that is paid for.

    fitting.py   `discreet fit`               models.py    fitted models in words and as records
    bounding.py  `discreet suggest-bounds`    rules.py     learned rules, in SQL too
    estimating.py  what fit and learn share   sections.py  new bounds in a schema file
    receipts.py  price, what is left, files to save to
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.cli import rule_view
from discreet.cli.estimating import (
    chosen_columns,
    column_options,
    cost_of,
    features_said,
    fitted,
    kept,
    opened_with,
    save_options,
)
from discreet.cli.fit import fit
from discreet.cli.options import Opened, again_option, allowance_option, price_options, table_options
from discreet.cli.progress import conjunction_progress
from discreet.cli.receipt import Lines, Receipt, facts_about, receipt, reserved, shown, unwrapped
from discreet.cli.suggest_bounds import suggest_bounds
from discreet.describe import one_line
from discreet.errors import DiscreetError, ParameterError

if TYPE_CHECKING:
    from discreet.data import Domain
    from discreet.schema import Schema

__all__ = ["fit", "learn", "suggest_bounds"]


@click.command("learn")
@table_options
@click.argument("kind", type=click.Choice(["box", "conjunction", "rule"]))
@column_options
@click.option("--positive", metavar="LEVEL", help="The level of the target that the rule is for; the last of two.")
@click.option("--k", type=click.IntRange(1), help="conjunction, rule: at most so many conditions.  [default: 2]")
@click.option("--method", default="auto", show_default=True, help="Or a name that `discreet plan KIND` lists.")
@click.option("--alpha", help="A share of wrong rows wanted as a promise, if some rule labels every row right.")
@click.option("--certify", metavar="EPSILON", help="Then pay this too, for a bound on the rule's mistakes.")
@price_options
@allowance_option
@again_option
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
    in words and as a condition for `discreet ask`, what is promised about its mistakes, the price and what is left;
    never its mistakes on the table, unless --certify pays for a bound on them. The same command again, after its output
    was lost, is free: it gives the stored rule. --again pays for another. For example:

    \b
        discreet learn people.toml box --target sex --features age,diseases --epsilon 0.1 --certify 0.02
        discreet learn people.toml rule --target health --positive excellent --share 1/3 --save rule.json
        discreet learn people.toml conjunction --target limited --epsilon 0.1
    """
    from discreet.schema import Schema

    cost = cost_of(options)
    sure = None if certify is None else _certificate_price(certify)
    declared = rule_view.with_positive(Schema.read(schema), target, positive)
    columns = _rule_features(kind, declared.domain, target, features)
    learner = _learner(kind, columns, cost, k=k, method=method, alpha=alpha)
    found = _redeclared(opened_with(schema, options), declared, options)
    with reserved(save, force=force) as write, conjunction_progress():
        model = fitted(found, learner, target, columns, options["allowance"], f"learning a {kind}")
        certificate, stopped = _certified(found, model, target, sure)
        paid = receipt(found, model.guarantee_, model.entry_, options["allowance"], replayed=model.replayed_)
        source = features_said(columns, features is None)
        saved = [] if save is None else [("saved", str(save))]
        made = {**rule_view.record(kind, model, target, declared.domain), "certificate": certificate}
        kept(found, made, paid, write, lambda: _show_rule(found, schema, made, paid, [source, *saved]))
    if stopped is not None:
        raise stopped


def _learner(kind: str, columns: Sequence[str], cost: dict[str, Any], *, k: int | None, **chosen: Any) -> Any:
    from discreet import estimators

    if kind == "box":
        if k is not None:
            raise ParameterError("--k is for conjunction and rule: a box has an interval of every feature")
        # On one or two columns all boxes can be gone through, which is near the best and promises so.
        few = len(columns) <= 2 and chosen["method"] == "auto" and chosen["alpha"] is None
        return estimators.BoxClassifier(**cost, **{**chosen, "method": "exhaustive" if few else chosen["method"]})
    if kind == "rule":
        return estimators.RuleClassifier(**cost, **chosen, k=k or 2)
    return estimators.ConjunctionClassifier(**cost, **chosen, k=k or min(2, len(columns)))


def _rule_features(kind: str, domain: Domain, target: str, features: str | None) -> list[str]:
    from discreet.data import Category, Number

    if kind == "box":
        return chosen_columns(domain, target, features, Number, "bounds, as numbers have")
    if kind == "rule":
        return chosen_columns(domain, target, features, (Category, Number), "levels, or a number with bounds")
    found = chosen_columns(domain, target, features, Category, "two levels, of which the second means true")
    two = [name for name in found if getattr(domain.column(name), "size", 0) == 2]
    more = [name for name in found if name not in two]
    if not two or (features is not None and more):
        named = f"{more[0]!r} has more" if more else "none has"
        every = [name for name in domain.names if name != target and _is_boolean(domain.column(name))]
        raise ParameterError(
            f"a conjunction needs columns of two levels, of which the second means true, and {named}. Those that can "
            f"serve: {', '.join(every) or 'none'}. `learn rule` takes any columns"
        )
    return two


def _is_boolean(column: Any) -> bool:
    from discreet.data import Category

    return isinstance(column, Category) and column.size == 2


def _certificate_price(text: str) -> Any:
    from discreet.guarantee import Budget

    return Budget(text).epsilon


def _certified(
    found: Opened, model: Any, target: str, epsilon: Any
) -> tuple[dict[str, Any] | None, BaseException | None]:
    """A certificate, or what stopped it: the rule is paid for and must be shown anyway."""
    from discreet.pac.mistake_bound import worded

    if epsilon is None:
        return None, None
    try:
        with found.output.working("counting mistakes, with noise"):
            bought = model.certify(found.table, target, epsilon=epsilon)
        paid = receipt(found, bought.guarantee, bought.entry, model.allowance, replayed=bought.replayed)
    except (DiscreetError, KeyboardInterrupt) as stopped:
        return None, stopped
    return {
        "said": worded(bought.rows, bought.error, bought.beta),
        "rows": bought.rows,
        "error": bought.error,
        "probability": 1 - bought.beta,
        **{key: value for key, value in paid.record().items() if key not in ("left", "more_like_this")},
        "cost": f"{paid.took()}: {paid.guarantee}",
        "replayed": paid.replayed,
    }, None


def _show_rule(found: Opened, schema: Path, made: dict[str, Any], paid: Receipt, others: Lines) -> None:
    output, target, bought = found.output, made["target"], made["certificate"]
    output.say(f"{one_line(target['column'])} = {one_line(target['positive'])} where")
    output.say(f"    {one_line(made['sentence'])}")
    unwrapped(output, _question(found, schema, made["sql"]))
    covered = f"{shown(Fraction(made['covers']))} of the declared values (not of the people)"
    lines: list[tuple[str, object]] = [("covers", covered), ("promise", made["promise"]), ("method", made["method"])]
    lines += paid.lines()
    if bought is not None:
        lines[-1:-1] = [("certificate", bought["said"]), ("its price", bought["cost"])]
    if made["rule"] == "box" and len(made["columns"]) > 2:
        lines.append(("hint", "a box has two sides for each column: one or two --features need much less noise"))
    facts_about(output, [*lines, *others])


def _question(found: Opened, schema: Path, condition: str) -> str:
    """A command that asks how many people the rule is about."""
    from discreet.sql.render import name_text

    asked = f"SELECT COUNT(*) FROM {name_text(found.schema.name)}{' WHERE ' if condition else ''}{condition}"
    plain = not any(sign in asked for sign in '"$`\\!')
    quoted = f'"{asked}"' if plain else shlex.quote(asked)
    return f"discreet ask {shlex.quote(str(schema))} {quoted}{' --rehearse' if found.output.rehearsal else ''}"


def _redeclared(found: Opened, schema: Schema, options: dict[str, Any]) -> Opened:
    """The same rows under another declaration of the target; the ledger stays."""
    if schema.domain == found.schema.domain:
        return found
    with found.output.working("reading the rows"):
        if not options["rehearse"]:
            return replace(found, schema=schema, table=schema.table(options["data_path"]))
        people = found.table.facts.size
        table = schema.rehearsal() if people is None else schema.rehearsal(people)
    return replace(found, schema=schema, table=table)
