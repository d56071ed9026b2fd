"""A learned box over the declared domain: the released model and the declaration, nothing of the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet import exact
from discreet.data import Domain, Number
from discreet.describe import one_line
from discreet.errors import ParameterError
from discreet.report.plot import FAINT, PAPER, SERIES, Plot, draw, legend, listed, shown


def box(
    rule: Any, features: Sequence[str] | None = None, *, truth: Mapping[str, tuple[Any, Any]] | None = None
) -> Plot:
    """A learned box over the declared domain of one or two features.

    rule      a fitted BoxClassifier, or its box_
    features  which columns to draw, unless the box has no more than two
    truth     low and high of every feature of the true box, if that is public
    """
    learned = getattr(rule, "box_", rule)
    sides, domain = _sides(learned)
    names = _features(features, tuple(sides))
    declared = {name: _declared(domain, name) for name in sides}
    true = {name: _pair(name, (truth or {}).get(name)) for name in sides if truth is not None}
    empty = any(side is None for side in sides.values())
    sentence = one_line(learned)
    alt = f"The learned box: {sentence}."
    if true:
        said = (f"{shown(low)} <= {one_line(name)} <= {shown(high)}" for name, (low, high) in true.items())
        alt += f" The true box: {' and '.join(said)}."
    others = [one_line(name) for name in sides if name not in names]
    caption = (
        "The rectangle is the rule that was released; the frame is the declared domain, nothing of the rows is drawn."
        + (" The box is empty: it calls no row positive." if empty else "")
        + (f" Not drawn: {listed(others)}, in the table." if others else "")
        + (" The dashed outline is the true box, which is public here." if true else "")
    )

    def paint(axes: Any) -> None:
        from matplotlib.patches import Rectangle

        edge: dict[str, Any]

        spans = [declared[name] for name in names]
        if len(names) == 1:
            spans.append((0.0, 1.0))
            axes.set_yticks([])
        drawn = [] if empty else [sides[name] for name in names]
        if drawn:
            axes.add_patch(Rectangle(*_rectangle(drawn), facecolor=SERIES[0], alpha=0.2, edgecolor="none"))
            edge = {"facecolor": "none", "edgecolor": SERIES[0], "linewidth": 2.0}
            axes.add_patch(Rectangle(*_rectangle(drawn), label="learned", **edge))
        if true:
            edge = {"facecolor": "none", "edgecolor": SERIES[1], "linewidth": 1.6, "linestyle": "--"}
            axes.add_patch(Rectangle(*_rectangle([true[name] for name in names]), label="true", **edge))
        if drawn:
            _corners(axes, drawn, spans)
        axes.set(xlim=spans[0], ylim=spans[1], xlabel=one_line(names[0]))
        axes.set_ylabel(one_line(names[1]) if len(names) == 2 else "")
        for side in axes.spines.values():
            side.set(visible=True, color=FAINT)
        if drawn or true:
            legend(axes)

    rows = tuple(
        (one_line(name), *(sides[name] or (None, None)), *declared[name], *(true[name] if true else ()))
        for name in sides
    )
    columns = ("feature", "low", "high", "declared low", "declared high", *(("true low", "true high") if true else ()))
    height = 3.6 if len(names) == 2 else 1.6
    return Plot("The learned box", alt, caption, columns, rows, draw(paint, alt=alt, heights=(height,)))


def _rectangle(pairs: Sequence[tuple[float, float] | None]) -> tuple[tuple[float, float], float, float]:
    """The lower left corner, width and height; as high as the picture if there is only one feature."""
    (left, right), (bottom, top) = ([pair for pair in pairs if pair is not None] + [(0.0, 1.0)])[:2]
    return (left, bottom), right - left, top - bottom


def _corners(axes: Any, drawn: Sequence[Any], spans: Sequence[tuple[float, float]]) -> None:
    """The box's own numbers, inside its faces, unless a face is the declared bound."""
    (left, right), (bottom, top) = (*drawn, (0.0, 1.0))[:2]
    middle, height = (left + right) / 2, (bottom + top) / 2
    marks = [
        (left, height, "left", "center", left > spans[0][0]),
        (right, height, "right", "center", right < spans[0][1]),
    ]
    if len(drawn) == 2:
        marks += [
            (middle, bottom, "center", "bottom", bottom > spans[1][0]),
            (middle, top, "center", "top", top < spans[1][1]),
        ]
    for (x, y, across, up, inside), value in zip(marks, (left, right, bottom, top), strict=False):
        if inside:
            shift = {"left": (4, 0), "right": (-4, 0)}.get(across, (0, 3 if up == "bottom" else -3))
            axes.annotate(
                shown(value),
                (x, y),
                xytext=shift,
                textcoords="offset points",
                ha=across,
                va=up,
                bbox={"facecolor": PAPER, "edgecolor": "none", "alpha": 0.7, "pad": 1.5},
            )


def _sides(learned: Any) -> tuple[dict[str, tuple[float, float] | None], Domain]:
    from discreet.pac.rules import BoxRule

    inner, domain = getattr(learned, "rule", None), getattr(learned, "domain", None)
    if not isinstance(inner, BoxRule) or not isinstance(domain, Domain):
        raise ParameterError(f"a box is a fitted BoxClassifier or its box_, found {type(learned).__name__}")
    sides: dict[str, tuple[float, float] | None] = {}
    for name, low, high in zip(inner.columns, inner.low, inner.high, strict=True):
        column = _number(domain, name)
        sides[name] = None if inner.is_empty else (float(column.value(low)), float(column.value(high)))
    return sides, domain


def _number(domain: Domain, name: str) -> Number:
    column = domain.column(name)
    if not isinstance(column, Number):
        raise ParameterError(f"a box is drawn over declared bounds; {name!r} has none")
    return column


def _declared(domain: Domain, name: str) -> tuple[float, float]:
    column = _number(domain, name)
    return float(column.low), float(column.high)


def _features(features: Sequence[str] | None, known: tuple[str, ...]) -> tuple[str, ...]:
    names = known if features is None else tuple(features)
    if not 1 <= len(set(names)) == len(names) <= 2 or set(names) - set(known):
        raise ParameterError(f"features must be one or two of {', '.join(known)}; found {', '.join(map(str, names))}")
    return names


def _pair(name: str, bounds: Any) -> tuple[float, float]:
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise ParameterError(f"truth needs (low, high) for {name!r}, found {bounds!r}") from None
    return float(exact.number(low=low)), float(exact.number(high=high))
