"""A learned box over the declared domain: the released model and the declaration, nothing of the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.core import ParameterError, exact, one_line
from discreet.drawing import FAINT, PAPER, SERIES
from discreet.report.plot import Panel, Plot, Scale, draw, listed, note, rectangle, shown

Side = tuple[float, float]


def box(rule: Any, features: Sequence[str] | None = None, *, truth: Mapping[str, Any] | None = None) -> Plot:
    """A learned box over the declared domain of one or two features.

    rule      a fitted BoxClassifier, or its box_
    features  which columns to draw, unless the box has no more than two
    truth     low and high of every feature of the true box, if that is public
    """
    learned = getattr(rule, "box_", rule)
    sides, bounds = _sides(learned)
    names = tuple(sides) if features is None else tuple(features)
    if not 1 <= len(set(names)) == len(names) <= 2 or set(names) - set(sides):
        raise ParameterError(f"features must be one or two of {', '.join(sides)}; found {', '.join(map(str, names))}")
    true = {} if truth is None else {name: _pair(name, truth.get(name)) for name in sides}
    empty, others = None in sides.values(), [one_line(name) for name in sides if name not in names]
    alt = f"The learned box: {one_line(learned)}."
    if true:
        words = (f"{shown(low)} <= {one_line(name)} <= {shown(high)}" for name, (low, high) in true.items())
        alt += f" The true box: {' and '.join(words)}."
    caption = (
        "The rectangle is the rule that was released; the frame is the declared domain, nothing of the rows is drawn."
        + (" The box is empty: it calls no row positive." if empty else "")
        + (f" Not drawn: {listed(others)}, in the table." if others else "")
        + (" The dashed outline is the true box, which is public here." if true else "")
    )
    spans = [bounds[name] for name in names]
    drawn = [side for name in names if (side := sides[name]) is not None and not empty]
    outline = [true[name] for name in names if true]

    def paint(axes: Any) -> None:
        if drawn:
            _paint_box(axes, drawn, spans)
        if outline:
            look = {"facecolor": "none", "edgecolor": SERIES[1], "linewidth": 1.6, "linestyle": "--"}
            rectangle(axes, [*outline, (0.0, 1.0)][:2], label="true", **look)
        for side in axes.spines.values():
            side.set(visible=True, color=FAINT)
        if len(names) == 1:
            axes.set_yticks([])

    second = Scale(one_line(names[1]), spans[1]) if len(names) == 2 else Scale("", (0.0, 1.0))
    frame = Panel(Scale(one_line(names[0]), spans[0]), second, height=3.6 if len(names) == 2 else 1.6, paint=paint)
    columns = ("feature", "low", "high", "declared low", "declared high", *(("true low", "true high") if true else ()))
    rows = tuple(
        (one_line(name), *(sides[name] or (None, None)), *bounds[name], *(true[name] if true else ())) for name in sides
    )
    return Plot("The learned box", alt, caption, columns, rows, draw(frame, alt=alt))


def _sides(learned: Any) -> tuple[dict[str, Side | None], dict[str, Side]]:
    """The sides of the box, each None if it is empty, and the declared bounds."""
    rule: Any = getattr(learned, "rule", None)
    domain: Any = getattr(learned, "domain", None)
    if domain is None or not hasattr(rule, "is_empty"):
        raise ParameterError(f"a box is a fitted BoxClassifier or its box_, found {type(learned).__name__}")
    sides: dict[str, Side | None] = {}
    bounds: dict[str, Side] = {}
    for name, low, high in zip(rule.columns, rule.low, rule.high, strict=True):
        column = domain.column(name)
        if not column.bounded:
            raise ParameterError(f"a box is drawn over declared bounds; {name!r} has none")
        sides[name] = None if rule.is_empty else (float(column.value(low)), float(column.value(high)))
        bounds[name] = float(column.low), float(column.high)
    return sides, bounds


def _paint_box(axes: Any, drawn: Sequence[Side], spans: Sequence[Side]) -> None:
    """The learned box with its own numbers inside its faces, unless a face is the declared bound."""
    (left, right), (bottom, top) = whole = [*drawn, (0.0, 1.0)][:2]
    rectangle(axes, whole, facecolor=SERIES[0], alpha=0.2, edgecolor="none")
    rectangle(axes, whole, facecolor="none", edgecolor=SERIES[0], linewidth=2.0, label="learned")
    faces = [
        (left, (left, (bottom + top) / 2), spans[0][0], (4, 0), "left", "center"),
        (right, (right, (bottom + top) / 2), spans[0][1], (-4, 0), "right", "center"),
    ]
    if len(drawn) == 2:
        faces += [
            (bottom, ((left + right) / 2, bottom), spans[1][0], (0, 3), "center", "bottom"),
            (top, ((left + right) / 2, top), spans[1][1], (0, -3), "center", "top"),
        ]
    paper = {"facecolor": PAPER, "edgecolor": "none", "alpha": 0.7, "pad": 1.5}
    for value, at, bound, shift, across, up in faces:
        if value != bound:
            note(axes, shown(value), at, shift, ha=across, va=up, bbox=paper)


def _pair(name: str, bounds: Any) -> Side:
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise ParameterError(f"truth needs (low, high) for {name!r}, found {bounds!r}") from None
    return float(exact.number(low=low)), float(exact.number(high=high))
