"""Fitted models in words: what a model, `discreet fit` and `discreet learn` show, and what people read in a saved file.

A record has everything that is needed to use the model by hand, in the units of the columns. It is made of what was
released and of the declaration: reading it tells nothing more about anybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from discreet.data import Domain, column_record, plain
from discreet.display import Block, CellTable, Pairs, Paragraph, Sheet, number, one_line, round_up, width_of

READING = (
    "A number is moved into low .. high and rounded down to a step from low; a category counts 1 for the level that a "
    "row has and 0 for the others, values that are not levels count as `other`, nulls as `missing`. "
)
MISSING = (
    "A number that is missing counts as the middle of low and high, and the coefficient with missing = true is added. "
)
LINEAR = "prediction = intercept + the sum of coefficient * value."
MARGIN = (
    "margin = intercept + the sum of coefficient * value; above 0 the positive class is predicted, else the other. "
)
CAPPED = (
    "The probability of the positive class: (1 + e^m) / (3 + e^m) for a margin m >= 0, 2 / (3 + e^-m) below; the loss "
    "is capped, so it is not the usual 1 / (1 + e^-m)."
)
MARGINS = (
    "One margin for each class, intercept + the sum of coefficient * value; the class with the largest is predicted."
)
NETWORK = (
    "`inputs` are the numbers that go in: a number as 2 (value - low) / (high - low) - 1 (0 if it is missing), a level "
    "as 1 or 0. A layer is values @ weights + intercepts, with tanh between the layers; the last one has a margin for "
    "each class, and the largest is predicted."
)
LOCATION = ("mean", "median", "quantile")
RULES = ("box", "conjunction", "rule", "finite")

Lines = Sequence[tuple[str, object]]
"""Names, each with a sentence."""


def record(model: Any) -> dict[str, Any]:
    """What a fitted model is, for people and programs of any language."""
    kind, target = model.KIND, model.target_
    steps = getattr(model, "n_iter_", 1)
    common: dict[str, Any] = {"model": kind}
    if target is not None:
        common["target"] = column_record(target.names[0], target[target.names[0]])
    common["method"] = model.method_ if steps == 1 else f"{model.method_}, {steps} steps"
    common["bound"] = str(model.promise_)
    if kind in LOCATION:
        quantile = {"q": float(Fraction(str(model.q)))} if kind == "quantile" else {}
        return {**common, **quantile, "value": model.value_, "noise_range_95": model.noise_range_}
    if kind in RULES:
        return {**common, "sentence": str(model.rule_), "positive": plain(model.classes_[-1])}
    if model.encoding_ is None:
        return common
    return {**common, **_about_columns(kind, model)}


def _about_columns(kind: str, model: Any) -> dict[str, Any]:
    """What a model of declared columns is, in their units."""
    features = model.encoding_.domain
    declared = [column_record(name, features.column(name)) for name in features.names]
    if kind == "network":
        layers = zip(model.coefs_, model.intercepts_, strict=True)
        return {
            "features": declared,
            "classes": model.classes_.tolist(),
            "inputs": coordinates(features),
            "layers": [{"weights": w.tolist(), "intercepts": b.tolist()} for w, b in layers],
            "how_to_use": READING + NETWORK,
        }
    missing = MISSING if any("missing" in each for each in coordinates(features)) else ""
    classes = [] if kind == "linear" else model.classes_.tolist()
    use = LINEAR if kind == "linear" else MARGIN + CAPPED if len(classes) == 2 else MARGINS
    about, functions = coordinates(features), _functions(model)
    outputs = [
        {
            **head,
            "intercept": float(intercept),
            "coefficients": [
                {**each, "value": value} for each, value in zip(about, coefficients.tolist(), strict=True)
            ],
        }
        for head, (coefficients, intercept) in zip(_heads(classes), functions, strict=True)
    ]
    return {"features": declared, "outputs": outputs, "how_to_use": READING + missing + use}


def _functions(model: Any) -> list[tuple[Any, Any]]:
    """Coefficients and intercept of each output; in the columns' units, where columns are declared."""
    own = model.encoding_ is not None
    coefficients = model.original_coef_ if own else model.coef_
    intercepts = model.original_intercept_ if own else model.intercept_
    return [(coefficients, intercepts)] if coefficients.ndim == 1 else list(zip(coefficients, intercepts, strict=True))


def _heads(classes: list[Any]) -> list[dict[str, Any]]:
    """What each output is about: a number, the second of two classes, or each of several."""
    if len(classes) == 2:
        return [{"positive": classes[-1], "negative": classes[0]}]
    return [{"class": level} for level in classes] or [{}]


def coordinates(domain: Domain) -> list[dict[str, Any]]:
    """What each coordinate of a row is about: a column, one of its levels, or that it is missing."""
    found: list[dict[str, Any]] = []
    for name in domain.names:
        column: Any = domain.column(name)
        levels = [{"level": level} for level in column.levels] if not column.ordered else [{}]
        missing = [{"missing": True}] if column.ordered and column.missing else []
        found += [{"column": name, **each} for each in (*levels, *missing)]
    return found


# For people.


def sheet(model: Any, lines: Lines | None = None, width: int | None = None) -> Sheet:
    """The model, what is promised about it, and other lines: what it cost, unless they are given."""
    last = [("guarantee", model.guarantee_)] if lines is None else lines
    steps = getattr(model, "n_iter_", 1)
    method = model.method_ if steps == 1 else f"{model.method_}, {steps} steps"
    blocks, first = _learned(model, width)
    promised = "promise" if model.KIND in RULES else "bound"
    return Sheet.of(*blocks, Pairs([*first, (promised, model.promise_), ("method", method), *last]))


def _learned(model: Any, width: int | None) -> tuple[list[Block], list[tuple[str, object]]]:
    """What was learned, as blocks, and as the first of the lines below them."""
    kind, target = model.KIND, "y" if model.target_ is None else one_line(model.target_.names[0])
    if kind in LOCATION:
        named = f"{float(Fraction(str(model.q))):g}-quantile" if kind == "quantile" else kind
        value = number(float(f"{model.value_:.6g}"))
        reach = [] if model.noise_range_ is None else [("noise range (95 %)", round_up(model.noise_range_))]
        return [], [(f"{named} of {target}" if model.target_ is not None else named, value), *reach]
    if kind in RULES:
        positive = one_line(model.classes_[-1])
        return [Paragraph(f"{target} = {positive} where"), Paragraph(f"    {one_line(model.rule_)}")], []
    if kind == "network":
        widths = [len(model.coefs_[0]), *map(len, model.intercepts_)]
        weights = sum((wide + 1) * high for wide, high in pairwise(widths))
        shape = " - ".join(map(str, widths))
        return [], [("network", f"for {target}, {shape} units, {weights:,} weights, which save keeps")]
    return _coefficients(model, target, width), []


def _coefficients(model: Any, target: str, width: int | None) -> list[Block]:
    classes = [] if model.KIND == "linear" else model.classes_.tolist()
    heads, functions = _heads(classes), _functions(model)
    margin = "positive" in heads[0]
    about = f"{target} = {one_line(heads[0]['positive'])}" if margin else target
    title = f"{target} is about the sum of these; numbers count for each 1:"
    if model.KIND != "linear":
        title = f"The margin of {about} ({'above 0' if margin else 'the largest'}: predicted), numbers for each 1:"
    titles = [one_line(each["class"]) if "class" in each else "coefficient" for each in heads]
    columns = [[intercept, *coefficients] for coefficients, intercept in functions]
    names = ["intercept", *_names(model)]
    rows = [[name, *(f"{value:+.3g}" for value in row)] for name, *row in zip(names, *columns, strict=True)]
    widths = [max(map(width_of, column)) for column in zip(["", *titles], *rows, strict=True)]
    if len(heads) == 1 or width is None or sum(widths) + _BETWEEN * len(widths) - 1 <= width:
        return [Paragraph(title), CellTable(["", *titles], rows, numeric=range(1, len(titles) + 1))]
    blocks: list[Block] = [Paragraph(title)]  # numbers would be broken: each class gets a table of its own
    for place, head in enumerate(titles, 1):
        pairs = [(row[0], row[place]) for row in rows]
        blocks += [Paragraph(f"{target} = {head}"), CellTable(["", "coefficient"], pairs, numeric=(1,))]
    return blocks


def _names(model: Any) -> list[str]:
    """What each coefficient is about."""
    if model.encoding_ is None:
        named = getattr(model, "feature_names_in_", None)
        return [f"x{place + 1}" for place in range(model.n_features_in_)] if named is None else list(map(str, named))
    found = []
    for each in coordinates(model.encoding_.domain):
        value = f" = {each['level']}" if "level" in each else " is missing" if "missing" in each else ""
        found.append(f"{each['column']}{value}")
    return found


_BETWEEN = 3  # signs between two columns of a table, of which one is left at each end
