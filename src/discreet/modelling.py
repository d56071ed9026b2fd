"""What the command line and the service do alike.

Models and rules by their kinds and options: which estimator that is, which columns can serve, and what is wrong with an
option, before anything is spent. Plans as JSON, and made-up rows as files.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any

import discreet as dp
from discreet.plan import KINDS, method_names

if TYPE_CHECKING:
    from discreet.plan import Plan

LEVELS_OR_BOUNDS = "levels, or a number with bounds"
LOCATION = ("mean", "median", "quantile")
FITS = ("logistic", "linear", "network", *LOCATION)
RULES = ("box", "conjunction", "rule")
SERVES = {"q": ("quantile",), "hidden": ("network",), "radius": ("logistic", "linear"), "huber": ("linear",)}
"""Which kinds an option is for."""


def persons_of(table: dp.data.Dataset | dp.Database) -> int | None:
    """The public number of persons in a table, or in a database."""
    return table.size if isinstance(table, dp.Database) else table.facts.size


def take_cost(options: dict[str, Any]) -> dict[str, Any]:
    """Take --epsilon, --delta and --share out of the options: what an estimator may cost, in exactly one way."""
    epsilon, delta, share = (options.pop(name) for name in ("epsilon", "delta", "share"))
    if (epsilon is None) == (share is None):
        raise dp.errors.ParameterError("say what it may cost: either --epsilon 0.5 (and --delta 1e-7), or --share 1/3")
    if share is not None and delta is not None:
        raise dp.errors.ParameterError("--delta goes with --epsilon; a share is of the ledger's own epsilon and delta")
    if share is not None:
        return {"epsilon": dp.Share(share), "delta": 0}
    budget = dp.Budget(epsilon, delta or 0)
    return {"epsilon": budget.epsilon, "delta": budget.delta}


def columns_named(names: str | None, domain: dp.Domain) -> list[str] | None:
    """Columns as an option names them, with commas between them; one column's name may have commas of its own."""
    if names is None:
        return None
    return [names] if names in domain else [each.strip() for each in names.split(",")]


def chosen_columns(
    domain: dp.Domain, target: str, named: Sequence[str] | None, serves: Callable[[dp.data.Column], bool], words: str
) -> list[str]:
    """The features: those that are named, or all but the target that can serve; words say what that takes."""
    domain.column(target)
    serving = [name for name in domain.names if name != target and serves(domain.column(name))]
    if named is None:
        if not serving:
            raise dp.errors.ParameterError(f"no column but the target {target!r} has {words}", argument="features")
        return serving
    for name in named:
        column = domain.column(name)
        if name == target:
            raise dp.errors.ParameterError(f"the features must not contain the target {target!r}", argument="features")
        if name not in serving:
            having = ", ".join(serving) or "no column has"
            raise dp.errors.ParameterError(f"column {name!r} is declared {column!r}: a feature needs {words}: {having}")
    if not named:
        raise dp.errors.ParameterError("features must name at least one column, found none", argument="features")
    if len(set(named)) < len(named):
        raise dp.errors.ParameterError(f"a column is named twice: {', '.join(named)}", argument="features")
    return list(named)


def categories(domain: dp.Domain, target: str) -> str:
    """Which other columns are categories, as a hint."""
    found = [name for name in domain.names if name != target and not domain.column(name).ordered]
    return f"Categories of this table: {', '.join(found)}" if found else "This table has no other categories"


# Models.


def fit_estimator(
    kind: str,
    domain: dp.Domain,
    target: str,
    columns: Sequence[str] | None,
    cost: dict[str, Any],
    chosen: dict[str, Any],
) -> Any:
    """The estimator of this kind, with defaults for a few thousand people and a part of a budget of 1.

    An option is refused where it means nothing, and so is a method that a plan does not list: before the charge.
    """
    listed, method = method_names(kind), chosen.pop("method")
    if method not in (None, "auto", *listed):
        raise dp.errors.ParameterError(
            f"--method of {kind} is one of auto, {', '.join(listed)}; found {method!r}"
            if listed
            else f"--method is not for {kind}: there is one method"
        )
    check_kind(kind, domain, target)
    for name, value in chosen.items():
        if value is not None and kind not in SERVES[name]:
            raise dp.errors.ParameterError(f"--{name} is for {' and '.join(SERVES[name])}, not for {kind}")
    if kind == "network":
        return dp.MLPClassifier((chosen["hidden"] or 8,), **cost)
    cost["method"] = method or "auto"
    if kind == "quantile":
        if chosen["q"] is None:
            raise dp.errors.ParameterError("which quantile? --q 0.9 is the value that nine of ten people are below")
        return dp.Quantile(chosen["q"], **cost)
    shape = shape_of(kind, domain, target, len(columns or ()), chosen["radius"], chosen["huber"])
    kinds: dict[str, Any] = {"mean": dp.Mean, "median": dp.Median}
    kinds |= {"logistic": dp.LogisticRegression, "linear": dp.LinearRegression}
    return kinds[kind](**shape, **cost)


def shape_of(
    kind: str, domain: dp.Domain, target: str, features: int, radius: str | None, huber: str | None
) -> dict[str, Any]:
    """How long slopes and coefficients may be, for the estimator or for its plan.

    Of a linear regression shorter than the library's defaults: at a few thousand people noise is what hurts.
    """
    if kind != "linear":
        return {} if radius is None else {"radius": radius}
    column: Any = domain.column(target)
    bound = max(abs(column.low), abs(column.high))
    return {"radius": radius or f"{float(bound) / math.sqrt(features):.6g}", "huber": huber or bound / 10}


def check_kind(kind: str, domain: dp.Domain, target: str) -> None:
    """Refuse a target of another kind than the model is for."""
    column: Any = domain.column(target)
    classifier = kind in ("logistic", "network")
    if classifier and column.ordered:
        raise dp.errors.ParameterError(
            f"the target {target!r} is a number: linear, mean, median and quantile are for numbers, {kind} is for "
            f"categories. {categories(domain, target)}"
        )
    if not classifier and not column.ordered:
        raise dp.errors.ParameterError(
            f"the target {target!r} is a category: {kind} is for numbers, logistic is for categories"
        )
    if kind == "linear" and (not column.bounded or column.missing):
        raise dp.errors.ParameterError(
            f"the target {target!r} is declared {column!r}: linear needs bounds, and only rows that have a value"
        )


def features_of(kind: str, domain: dp.Domain, target: str, features: Sequence[str] | None) -> list[str] | None:
    """The columns that a model of this kind is fitted to, besides its target; None for a location."""
    if kind not in LOCATION:
        return chosen_columns(
            domain, target, features, lambda column: column.categorical or column.bounded, LEVELS_OR_BOUNDS
        )
    domain.column(target)
    if features is not None:
        raise dp.errors.ParameterError(f"{kind} is about the target alone: leave --features out")
    return None


# Rules.


def rule_learner(kind: str, columns: Sequence[str], k: int | None, chosen: dict[str, Any]) -> Any:
    if kind == "box":
        if k is not None:
            raise dp.errors.ParameterError("--k is for conjunction and rule: a box has an interval of every feature")
        # On one or two columns all boxes can be gone through, which is near the best and promises so.
        few = len(columns) <= 2 and chosen["method"] == "auto" and chosen["alpha"] is None
        return dp.BoxClassifier(**{**chosen, "method": "exhaustive" if few else chosen["method"]})
    if kind == "rule":
        return dp.RuleClassifier(**chosen, k=k or 2)
    return dp.ConjunctionClassifier(**chosen, k=k or min(2, len(columns)))


def rule_features(kind: str, domain: dp.Domain, target: str, features: Sequence[str] | None) -> list[str]:
    if kind == "box":
        return chosen_columns(domain, target, features, lambda column: column.bounded, "bounds, as numbers have")
    if kind == "rule":
        return chosen_columns(domain, target, features, lambda column: column.listed, LEVELS_OR_BOUNDS)
    words = "two levels, of which the second means true"
    named = chosen_columns(domain, target, features, lambda column: not column.ordered, words)
    boolean = [name for name in domain.names if not domain[name].ordered and domain[name].size == 2]
    serving = [name for name in named if name in boolean]
    if not serving or (features is not None and serving != named):
        other = next((f"{name!r} has more" for name in named if name not in boolean), "none has")
        every = ", ".join(name for name in boolean if name != target) or "none"
        hint = f"Those that can serve: {every}. `learn rule` takes any columns"
        raise dp.errors.ParameterError(f"a conjunction needs columns of {words}, and {other}. {hint}")
    return serving


def with_positive(schema: dp.Schema, target: str, text: str | None) -> dp.Schema:
    """The schema with a target of two classes, the last of which is this level: the others are one class together."""
    column: Any = schema.domain.column(target)
    if column.ordered:
        raise dp.errors.ParameterError(
            f"the target {target!r} is a number: a rule is learned for a category. {categories(schema.domain, target)}"
        )
    levels = ", ".join(map(str, column.levels))
    if text is None:
        if column.size == 2:
            return schema
        raise dp.errors.ParameterError(
            f"{target!r} has {column.size} levels: say with --positive which of them the rule is for: {levels}"
        )
    # Levels may be numbers or booleans, and a command line has texts.
    spelled = {str(level).lower(): level for level in column.levels if type(level) is bool}
    spelled |= {str(level): level for level in column.levels}
    positive = spelled.get(text, spelled.get(text.lower()) if type(spelled.get(text.lower())) is bool else None)
    if positive is None:
        column.code(text)  # names near misses
        raise dp.errors.ParameterError(f"--positive must be a level, found {text!r}: {levels}")
    return replace(schema, domain=dp.Domain({**schema.domain, target: _two_classes(column, positive)}))


def _two_classes(column: dp.Category, positive: Any) -> dp.Category:
    if column.size == 2:
        (negative,) = (level for level in column.levels if column.code(level) != column.code(positive))
        return dp.Category(negative, positive, other=column.other, missing=column.missing)
    if column.other is not None and column.code(positive) == column.other_code:
        raise dp.errors.ParameterError(f"{positive!r} takes every value that is not declared: choose a declared level")
    rest = f"not {positive}"
    missing = None if column.missing is None else rest
    if column.missing is not None and column.code(positive) == column.missing_code:
        missing = positive
    return dp.Category(rest, positive, other=rest, missing=missing)


# Made-up rows.


def write_rows(frame: Any, kind: str, file: IO[bytes], *, rehearsal: bool) -> None:
    """Write the rows as "csv" or "parquet"; those of a rehearsal have a column more that says so."""
    if rehearsal:
        frame = frame.add_column(0, "rehearsal", [[True] * frame.num_rows])
    if kind == "parquet":
        dp.data.write_parquet(frame, file)
        return
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    try:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(frame.column_names)
        writer.writerows(zip(*(column.to_pylist() for column in frame.columns), strict=True))
        text.flush()
    finally:
        text.detach()


# Plans.


def plan_record(made: Plan) -> dict[str, Any]:
    """A plan as JSON."""
    cost: dict[str, Any] = {"epsilon": str(made.budget.epsilon), "delta": str(made.budget.delta)}
    if (left := made.left) is not None:
        caps = left.remaining().share(left.share.part).record()
        cost = {"ledger": left.ledger.id, "share": str(left.share.part), "allowance": left.allowance, **caps}
    return {
        "kind": made.kind,
        "cost": cost,
        "neighbours": made.neighbours.kind,
        "rows_per_unit": made.neighbours.rows,
        "size": made.size,
        "alpha": None if made.alpha is None else float(made.alpha),
        "beta": float(made.beta),
        "promise": "in expectation" if KINDS[made.kind].expected else "with probability 1 - beta",
        "error_in": KINDS[made.kind].error,
        "units": made.units or None,
        "radius": None if made.radius is None else float(made.radius),
        "fit_takes": None if made.taken is None else made.taken.method,
        "numbers": dict(made.numbers),
        "methods": [
            {
                "method": row.method,
                "noise": None if row.noise is None else float(row.noise),
                "error": row.error,
                "of_size": row.alpha,
                "size_for_alpha": row.needed,
                "rests_on": row.theorem,
                "assuming": row.assuming,
                "can_be_run": not row.imagined,
                "fit_takes_this": row.taken,
            }
            for row in made.promising
        ],
        "refused": [{"method": row.method, "reason": row.refusal} for row in made.refused],
    }
