"""Fitted models in words and as records: what `discreet fit` prints, and the file that it saves.

A record has everything that is needed to use the model elsewhere, in the units of the columns, and is meant to be read
by people too. It is made of what was released and of the schema: reading it tells nothing more about anybody.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import discreet as dp
from discreet.cli.columns import declaration
from discreet.cli.kit import Lines, Output, one_line

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
_BETWEEN = 3  # signs between two columns of a table, of which one is left at each end


def record(kind: str, model: Any, target: str, domain: dp.Domain) -> dict[str, Any]:
    """What a fitted model is, without what it cost."""
    steps, solver = getattr(model, "n_iter_", 1), getattr(model, "method_", "descent")
    common = {
        "model": kind,
        "target": declaration(target, domain.column(target)),
        "method": solver if steps == 1 else f"{solver}, {steps} steps",
        "bound": str(model.promise_),
    }
    if kind in LOCATION:
        quantile = {"q": float(model.q)} if kind == "quantile" else {}
        return {**common, **quantile, "value": model.value_, "noise_range_95": model.noise_range_}
    features = model.encoding_.domain
    common["features"] = [declaration(name, features.column(name)) for name in features.names]
    if kind == "network":
        layers = zip(model.coefs_, model.intercepts_, strict=True)
        return {
            **common,
            "classes": model.classes_.tolist(),
            "inputs": coordinates(features),
            "layers": [{"weights": w.tolist(), "intercepts": b.tolist()} for w, b in layers],
            "how_to_use": READING + NETWORK,
        }
    missing = MISSING if any("missing" in each for each in coordinates(features)) else ""
    classes = [] if kind == "linear" else model.classes_.tolist()
    use = LINEAR if kind == "linear" else MARGIN + CAPPED if len(classes) == 2 else MARGINS
    return {**common, "outputs": _outputs(model, classes), "how_to_use": READING + missing + use}


def _outputs(model: Any, classes: list[Any]) -> list[dict[str, Any]]:
    """One linear function for a number or two classes, one for each of several classes; in the columns' units."""
    heads: list[dict[str, Any]] = [{"class": level} for level in classes] or [{}]
    functions = [(model.original_coef_, model.original_intercept_)]
    if classes:
        functions = list(zip(model.original_coef_, model.original_intercept_, strict=True))
    if len(classes) == 2:
        heads = [{"positive": classes[-1], "negative": classes[0]}]
    about = coordinates(model.encoding_.domain)
    return [
        {
            **head,
            "intercept": float(intercept),
            "coefficients": [
                {**each, "value": value} for each, value in zip(about, coefficients.tolist(), strict=True)
            ],
        }
        for head, (coefficients, intercept) in zip(heads, functions, strict=True)
    ]


def coordinates(domain: dp.Domain) -> list[dict[str, Any]]:
    """What each coordinate of a row is about: a column, one of its levels, or that it is missing."""
    found: list[dict[str, Any]] = []
    for name in domain.names:
        column: Any = domain.column(name)
        levels = [{"level": level} for level in column.levels] if not column.ordered else [{}]
        missing = [{"missing": True}] if column.ordered and column.missing else []
        found += [{"column": name, **each} for each in (*levels, *missing)]
    return found


# For people.


def show(output: Output, kind: str, made: dict[str, Any], lines: Lines) -> None:
    """Print the model, what is promised about it, and other lines: its source, what it cost."""
    target = one_line(made["target"]["column"])
    first: list[tuple[str, object]] = []
    if kind in LOCATION:
        named = f"{float(made['q']):g}-quantile" if kind == "quantile" else kind
        first = [(f"{named} of {target}", f"{made['value']:.6g}")]
        if made["noise_range_95"] is not None:
            first.append(("noise range (95 %)", f"{made['noise_range_95']:.3g}"))
    elif kind == "network":
        widths = [len(made["inputs"]), *(len(layer["intercepts"]) for layer in made["layers"])]
        weights = sum((wide + 1) * high for wide, high in pairwise(widths))
        shape = " - ".join(map(str, widths))
        first = [("network", f"for {target}, {shape} units, {weights:,} weights, which --save keeps")]
    else:
        _show_coefficients(output, kind, made["outputs"], target)
    output.facts([*first, ("bound", made["bound"]), ("method", made["method"]), *lines])


def _show_coefficients(output: Output, kind: str, outputs: list[dict[str, Any]], target: str) -> None:
    from rich.cells import cell_len

    if output.as_json:
        return
    margin = "positive" in outputs[0]
    about = f"{target} = {one_line(outputs[0]['positive'])}" if margin else target
    title = f"{target} is about the sum of these; numbers count for each 1:"
    if kind != "linear":
        title = f"The margin of {about} ({'above 0' if margin else 'the largest'}: predicted), numbers for each 1:"
    heads = [one_line(each["class"]) if "class" in each else "coefficient" for each in outputs]
    names = ["intercept"]
    for each in outputs[0]["coefficients"]:
        value = f" = {each['level']}" if "level" in each else " is missing" if "missing" in each else ""
        names.append(f"{each['column']}{value}")
    columns = [[each["intercept"], *(one["value"] for one in each["coefficients"])] for each in outputs]
    rows = [[name, *(f"{value:+.3g}" for value in row)] for name, *row in zip(names, *columns, strict=True)]
    output.say(title)
    widths = [max(map(cell_len, column)) for column in zip(["", *heads], *rows, strict=True)]
    if len(outputs) == 1 or sum(widths) + _BETWEEN * len(widths) - 1 <= output.width:
        output.table(["", *heads], rows)
        return
    for place, head in enumerate(heads, 1):  # numbers would be broken: each class gets a table of its own
        output.say(f"{target} = {head}")
        output.table(["", "coefficient"], [(row[0], row[place]) for row in rows])
