"""Fitted models in words and as records: what `discreet fit` prints, and the file that it saves.

A record has everything that is needed to use the model elsewhere, in the units of the columns, and is meant to be read
by people too. It is made of what was released and of the schema: reading it tells nothing more about anybody.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.cli.options import Output
from discreet.cli.receipt import Lines, facts_about
from discreet.describe import one_line

if TYPE_CHECKING:
    from discreet.data import Column, Domain

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


def plain(value: Any) -> Any:
    """A number or a level as JSON has it."""
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    return value.item() if hasattr(value, "item") else value


def declared(name: str, column: Column) -> dict[str, Any]:
    """A column's declaration."""
    from discreet.data import Category, Number

    if isinstance(column, Category):
        found = {"column": name, "kind": "category", "levels": list(column.levels)}
        extra = {"other": column.other, "missing": column.missing}
        return {**found, **{key: level for key, level in extra.items() if level is not None}}
    if isinstance(column, Number):
        found = {"column": name, "kind": "number"}
        bounds: dict[str, Any] = {key: plain(getattr(column, key)) for key in ("low", "high", "step")}
        return {**found, **bounds, **({"missing": True} if column.missing else {})}
    return {"column": name, "kind": "any number"}


def record(kind: str, model: Any, target: str, domain: Domain) -> dict[str, Any]:
    """What a fitted model is, without what it cost."""
    common = {
        "model": kind,
        "target": declared(target, domain.column(target)),
        "method": method(model),
        "bound": str(model.promise_),
    }
    if kind in LOCATION:
        quantile = {"q": float(model.q)} if kind == "quantile" else {}
        return {**common, **quantile, "value": model.value_, "noise_range_95": model.noise_range_}
    features = model.encoding_.domain
    shared = {**common, "features": [declared(name, features.column(name)) for name in features.names]}
    if kind == "network":
        return {**shared, **_network(model)}
    missing = MISSING if any(getattr(each, "missing", False) is True for each in features.values()) else ""
    return {**shared, "outputs": _outputs(model, kind), "how_to_use": READING + missing + _use(model, kind)}


def method(model: Any) -> str:
    """The solver that was taken."""
    steps = getattr(model, "n_iter_", 1)
    solver = getattr(model, "method_", "descent")
    return solver if steps == 1 else f"{solver}, {steps} steps"


def _use(model: Any, kind: str) -> str:
    if kind == "linear":
        return LINEAR
    return MARGIN + CAPPED if len(model.classes_) == 2 else MARGINS


def _outputs(model: Any, kind: str) -> list[dict[str, Any]]:
    """One linear function for a number or two classes, one for each of several classes; in the columns' units."""
    if kind == "linear":
        return [_linear({}, model, model.original_coef_, model.original_intercept_)]
    classes = model.classes_.tolist()
    tables = zip(model.original_coef_, model.original_intercept_, strict=True)
    if len(classes) == 2:
        ((coefficients, intercept),) = tables
        return [_linear({"positive": classes[1], "negative": classes[0]}, model, coefficients, intercept)]
    return [_linear({"class": level}, model, *found) for level, found in zip(classes, tables, strict=True)]


def _linear(head: dict[str, Any], model: Any, coefficients: Any, intercept: Any) -> dict[str, Any]:
    about = coordinates(model.encoding_.domain)
    values = zip(about, coefficients.tolist(), strict=True)
    return {**head, "intercept": float(intercept), "coefficients": [{**each, "value": value} for each, value in values]}


def coordinates(domain: Domain) -> list[dict[str, Any]]:
    """What each coordinate of a row is about: a column, one of its levels, or that it is missing."""
    from discreet.data import Category

    found: list[dict[str, Any]] = []
    for name in domain.names:
        column = domain.column(name)
        if isinstance(column, Category):
            found += [{"column": name, "level": level} for level in column.levels]
        else:
            found.append({"column": name})
            found += [{"column": name, "missing": True}] if getattr(column, "missing", False) else []
    return found


def _network(model: Any) -> dict[str, Any]:
    layers = zip(model.coefs_, model.intercepts_, strict=True)
    return {
        "classes": model.classes_.tolist(),
        "inputs": coordinates(model.encoding_.domain),
        "layers": [{"weights": w.tolist(), "intercepts": b.tolist()} for w, b in layers],
        "how_to_use": READING + NETWORK,
    }


# For people.


def show(output: Output, kind: str, found: dict[str, Any], lines: Lines) -> None:
    """The model, what is promised about it, and other lines: its source, what it cost."""
    target = one_line(found["target"]["column"])
    if kind in LOCATION:
        named = f"{float(found['q']):g}-quantile" if kind == "quantile" else kind
        first: Lines = [(f"{named} of {target}", f"{found['value']:.6g}")]
        if found["noise_range_95"] is not None:
            first = [*first, ("noise range (95 %)", f"{found['noise_range_95']:.3g}")]
    elif kind == "network":
        first = [("network", _network_said(found, target))]
    else:
        _show_coefficients(output, kind, found, target)
        first = []
    facts_about(output, [*first, ("bound", found["bound"]), ("method", found["method"]), *lines])


def _network_said(found: dict[str, Any], target: str) -> str:
    widths = [len(found["inputs"]), *(len(layer["intercepts"]) for layer in found["layers"])]
    weights = sum(len(each["weights"]) * len(each["intercepts"]) + len(each["intercepts"]) for each in found["layers"])
    shape = " - ".join(map(str, widths))
    return f"for {target}, {shape} units, {weights:,} weights, which --save keeps"


def _show_coefficients(output: Output, kind: str, found: dict[str, Any], target: str) -> None:
    outputs = found["outputs"]
    margin = "positive" in outputs[0]
    about = f"{target} = {one_line(outputs[0]['positive'])}" if margin else target
    title = f"{target} is about the sum of these; numbers count for each 1:"
    if kind != "linear":
        title = f"The margin of {about} ({'above 0' if margin else 'the largest'}: predicted), numbers for each 1:"
    heads = [one_line(each["class"]) if "class" in each else "coefficient" for each in outputs]
    names = [_named(each) for each in outputs[0]["coefficients"]]
    columns = [[each["intercept"], *(one["value"] for one in each["coefficients"])] for each in outputs]
    rows = [
        [name, *(f"{column[place]:+.3g}" for column in columns)] for place, name in enumerate(["intercept", *names])
    ]
    output.say(title)
    if len(outputs) == 1 or output.as_json or _width([["", *heads], *rows]) <= output.console.width:
        output.table(["", *heads], rows)
        return
    for place, head in enumerate(heads, 1):  # numbers would be broken: each class gets a table of its own
        output.say(f"{target} = {head}")
        output.table(["", "coefficient"], [(row[0], row[place]) for row in rows])


def _width(lines: list[list[str]]) -> int:
    """How many columns of a screen a table of these lines takes, with what stands between its columns."""
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    return sum(widths) + _BETWEEN * len(widths) - 1


def _named(about: dict[str, Any]) -> str:
    if "level" in about:
        return f"{about['column']} = {about['level']}"
    return f"{about['column']} is missing" if "missing" in about else str(about["column"])
