"""A plot: a picture, the finding in words, and its numbers.

A picture is an SVG document that stands alone or inside a page. Its colours can be told apart by colour-blind people,
and every line also has a marker and a dash of its own. Light colours are written into the drawing, where any program
that shows SVG finds them; a style sheet inside exchanges them where the reader prefers a dark screen. Text stays text.
The same numbers give the same bytes: identifiers are counted, and nothing tells the date.

Most pictures are a `Panel`: lines over two axes, each linear or logarithmic, in numbers or in percent.
"""

from __future__ import annotations

import html
import io
import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from discreet.core import Exact, ParameterError, exact, percent
from discreet.drawing import FAINT, GRID, INK, PAPER, SERIES, empty_figure, style

Value = TypeVar("Value")
Cell = str | int | float | Fraction | None

_MOST_LINES = 6
_DARK = ("#5db0f5", "#f6955a", "#43cda2", "#e79fd0", "#d9bc3a", "#a5b3f5", "#ee9a9a", "#8fd0de", "#b4bec8")
DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (6, 2, 1.5, 2)), (0, (9, 2)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
_EXCHANGED = {
    **dict(zip(SERIES, _DARK, strict=True)),
    INK: "#e8ebee",
    FAINT: "#a3adb7",
    GRID: "#343b43",
    PAPER: "#14181c",
}


@dataclass(frozen=True, slots=True)
class Plot:
    """A picture of public numbers.

    alt      what the picture shows, in words, for whoever does not see it
    caption  how to read it, and what it rests on
    columns, rows  the numbers that are drawn
    svg      the picture, an SVG document
    """

    title: str
    alt: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    svg: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture alone, as a file for a web page or a document."""
        Path(path).write_text(self.svg, encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Series:
    """A line of a picture: points (x, y), of which those without a y are left out; `look` is how it differs from the
    look of the line at its place."""

    label: str
    points: Sequence[tuple[float, float | None]]
    look: dict[str, Any] = field(default_factory=dict)

    def draw(self, axes: Any, place: int) -> None:
        known = [(x, y) for x, y in self.points if y is not None]
        axes.plot(*split(known), label=self.label, **{**series(place), **self.look})


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis: its label and its ends; in percent or not.

    log    whether it is logarithmic, with plain numbers at these ticks or at powers of ten: unless it has ends
    """

    label: str
    ends: tuple[float, float] | None = None
    ticks: Sequence[float] | None = None
    percent: bool = False
    log: bool | None = None

    def apply(self, axis: Any) -> None:
        from matplotlib import ticker

        axis.set_label_text(self.label)
        logarithmic = self.ends is None if self.log is None else self.log
        if logarithmic:
            low, high = axis.get_data_interval()
            if not 0 < low <= high < math.inf:  # nothing is drawn
                axis.set_major_locator(ticker.NullLocator())
                return
            axis.axes.set(**{f"{axis.axis_name}scale": "log"})
            if self.ticks is not None:
                axis.set_major_locator(ticker.FixedLocator(sorted(self.ticks)))
            elif high < 150 * low:  # powers of ten alone would leave one or two
                axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
            axis.set_minor_locator(ticker.NullLocator())
        if self.ends is not None:
            axis.axes.set(**{f"{axis.axis_name}lim": self.ends})
        words: Callable[[float], str] = percent if self.percent else shown
        if self.percent or logarithmic:
            axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: words(value)))


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines over two axes; `paint` draws what is no line first."""

    x: Scale
    y: Scale
    lines: Sequence[Series] = ()
    height: float = 3.1  # inches
    columns: int = 2  # of the legend
    paint: Callable[[Any], None] | None = None

    def draw(self, axes: Any) -> None:
        if self.paint is not None:
            self.paint(axes)
        for place, line in enumerate(self.lines):
            line.draw(axes, place)
        self.x.apply(axes.xaxis)
        self.y.apply(axes.yaxis)
        handles, labels = axes.get_legend_handles_labels()
        if handles:  # above the picture, where the names hide nothing; matplotlib fills columns, people read rows
            across = [place for first in range(self.columns) for place in range(first, len(handles), self.columns)]
            named = [handles[place] for place in across], [labels[place] for place in across]
            axes.legend(*named, loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=self.columns, borderaxespad=0.2)


def draw(*frames: Panel, alt: str) -> str:
    """The SVG of the frames, one below the other."""
    with style() as matplotlib:
        figure, every = empty_figure(matplotlib, [frame.height for frame in frames])
        for frame, axes in zip(frames, every, strict=True):
            frame.draw(axes)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return _alone(stream.getvalue(), alt)


def rectangle(axes: Any, sides: Sequence[tuple[float, float]], **look: Any) -> None:
    """A rectangle with these sides (low, high)."""
    from matplotlib.patches import Rectangle

    (left, right), (bottom, top) = sides
    axes.add_patch(Rectangle((left, bottom), right - left, top - bottom, **look))


def note(axes: Any, text: str, at: tuple[float, float], shift: tuple[float, float], **look: Any) -> None:
    """A small text beside a point, shifted by so many points of the font."""
    axes.annotate(text, at, xytext=shift, textcoords="offset points", **look)


def series(place: int) -> dict[str, Any]:
    """Colour, dash and marker of the line at this place: no two lines of a picture look alike, also without colour."""
    return {
        "color": SERIES[place % len(SERIES)],
        "linestyle": DASHES[place % len(DASHES)],
        "marker": MARKERS[place % len(MARKERS)],
    }


def shown(value: Cell) -> str:
    """A number for the eye: four digits, thousands in groups."""
    if value is None or type(value) is str:
        return "–" if value is None else value
    if type(value) is int:
        return f"{value:,}"
    number = float(value)
    if math.isinf(number):
        return "no bound" if number > 0 else "-∞"
    return f"{number:,.0f}" if 1_000 <= abs(number) < 1e12 else f"{number:.4g}"


def listed(words: Sequence[str]) -> str:
    """One, two and three."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def times(count: int, word: str) -> str:
    """One question, two questions."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def thinned(values: Sequence[Value], most: int) -> list[Value]:
    """At most this many of the values, evenly, the first and the last included."""
    if len(values) <= most:
        return list(values)
    return [values[place * (len(values) - 1) // (most - 1)] for place in range(most)]


def several(most: int = _MOST_LINES, **named: Sequence[Exact]) -> list[Fraction]:
    """The one keyword argument as different positive numbers, the smallest first, and not more than can be drawn."""
    ((name, values),) = named.items()
    if isinstance(values, str) or not isinstance(values, Sequence) or not 1 <= len(values) <= most:
        raise ParameterError(f"{name} must be a list of 1 to {most} numbers, found {values!r}", argument=name)
    return sorted({exact.positive(**{name: value}) for value in values})


def split(points: Iterable[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Points as matplotlib wants them."""
    pairs = list(points)
    return [x for x, _ in pairs], [y for _, y in pairs]


# From what matplotlib writes to a document that stands alone and does not disturb another.

_FONTS = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

DARK = (
    "@media screen and (prefers-color-scheme: dark) {"
    + "".join(
        f".discreet-plot [style*='{use}: {light}'] {{ {use}: {dark} !important }}"
        for light, dark in _EXCHANGED.items()
        for use in ("fill", "stroke")
    )
    + "}"
)
"""The style sheet that exchanges the colours; the drawing itself says the light ones."""


def _alone(written: str, alt: str) -> str:
    body = written[written.index("<svg") :]
    opening, rest = body.split(">", 1)
    box = re.search(r'viewBox="0 0 ([0-9.]+) ([0-9.]+)"', opening)
    assert box is not None
    wide, high = (round(float(side) * 1.5) for side in box.groups())
    rest = re.sub(
        r"<defs>\s*<style.*?</style>\s*</defs>|<metadata>.*?</metadata>|<!--.*?-->", "", rest, flags=re.DOTALL
    )
    # What is drawn several times gets its colour where it is used: no style sheet reaches into the definition.
    rest = re.sub(r"<defs>.*?</defs>", lambda found: re.sub(r"stroke: #\w+;? ?", "", found[0]), rest, flags=re.DOTALL)
    rest = rest.replace("xlink:href", "href").replace("'DejaVu Sans'", _FONTS)
    head = (
        f'<svg class="discreet-plot" xmlns="http://www.w3.org/2000/svg" {box.group()} width="{wide}" height="{high}" '
        f'role="img" aria-label="{html.escape(alt)}">\n<style>{DARK}</style>'
    )
    return re.sub(r"\n\s*", "\n", _counted(head + rest))


def _counted(svg: str) -> str:
    """Only what is referred to keeps an identifier, and those are counted."""
    used = dict.fromkeys(re.findall(r'(?:url\(|href=")#([^")]+)', svg))
    names = {name: f"{MARK}{place}" for place, name in enumerate(used, start=1)}
    svg = re.sub(r' id="([^"]*)"', lambda found: f' id="{names[found[1]]}"' if found[1] in names else "", svg)
    return re.sub(r'(url\(|href=")#([^")]+)', lambda found: f"{found[1]}#{names[found[2]]}", svg)


MARK = "discreet-mark-"
