"""A plot: a picture, the finding in words, and its numbers; and the one place that knows matplotlib.

A picture is an SVG document that stands alone or inside a page. Its colours can be told apart by colour-blind people,
and every line also has a marker and a dash of its own. Light colours are written into the drawing, where any program
that shows SVG finds them; a style sheet inside exchanges them where the reader prefers a dark screen. Text stays text.
The same numbers give the same bytes: identifiers are counted, and nothing tells the date.
"""

from __future__ import annotations

import html
import io
import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from discreet.errors import ParameterError

Value = TypeVar("Value")
Cell = str | int | float | Fraction | None

WIDTH = 5.6  # inches, of 72 units each: on a telephone the text is still about 9 pixels high

INK, FAINT, GRID, PAPER = "#1d2329", "#5c6670", "#dfe3e7", "#ffffff"
SERIES = ("#0b62a4", "#c2500f", "#00785a", "#9a3f7f", "#7a6400", "#4a5a9b", "#8c3b3b", "#3d6f7d", "#55606b")
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


def draw(paint: Callable[..., None], *, alt: str, heights: Sequence[float] = (3.1,)) -> str:
    """The SVG that `paint` draws on as many axes as there are heights (in inches), one below the other."""
    matplotlib, figure_type = _matplotlib()
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        # A sign that the measuring font lacks is drawn by the reader's font: nothing to warn about.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = figure_type(figsize=(WIDTH, sum(heights)), layout="constrained")
        figure.get_layout_engine().set(h_pad=0.09, w_pad=0.06)
        axes = figure.subplots(len(heights), 1, squeeze=False, height_ratios=list(heights))[:, 0]
        paint(*axes)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return _alone(stream.getvalue(), alt)


def _matplotlib() -> tuple[Any, Any]:
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise ParameterError(
            "plots are drawn by matplotlib, which is not installed: pip install discreet[report]"
        ) from (None)
    return matplotlib, Figure


_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "discreet",
    "text.parse_math": False,  # a dollar sign in somebody's text is a dollar sign
    "font.family": "DejaVu Sans",  # for measuring: it is wider than what readers have, so nothing runs over
    "font.size": 9.5,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.5,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "legend.handlelength": 2.7,
    "legend.columnspacing": 1.4,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.edgecolor": FAINT,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "savefig.facecolor": PAPER,
}


def series(place: int, *, marker: bool = True) -> dict[str, Any]:
    """Colour, dash and marker of the line at this place: no two lines of a picture look alike, also without colour."""
    return {
        "color": SERIES[place % len(SERIES)],
        "linestyle": DASHES[place % len(DASHES)],
        "marker": MARKERS[place % len(MARKERS)] if marker else None,
    }


def legend(axes: Any, *, columns: int = 2, handles: Any = None) -> None:
    """The names of the lines above the picture, where they hide nothing."""
    named = {} if handles is None else {"handles": handles}
    axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=columns, borderaxespad=0.2, **named)


def logarithmic(axis: Any, ticks: Iterable[float] | None = None) -> None:
    """A logarithmic axis with plain numbers, at these places or at powers of ten."""
    from matplotlib import ticker

    low, high = axis.get_data_interval()
    if not 0 < low <= high < math.inf:  # nothing is drawn
        axis.set_major_locator(ticker.NullLocator())
        return
    axis.axes.set_xscale("log") if axis.axis_name == "x" else axis.axes.set_yscale("log")
    if ticks is not None:
        axis.set_major_locator(ticker.FixedLocator(sorted(ticks)))
    elif high < 150 * low:  # powers of ten alone would leave one or two
        axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axis.set_minor_locator(ticker.NullLocator())
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: shown(value)))


def percent_axis(axis: Any) -> None:
    from matplotlib import ticker

    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: percent(value)))


def shown(value: Cell) -> str:
    """A number for the eye: four digits, thousands in groups."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    number = float(value)
    if math.isinf(number):
        return "no bound" if number > 0 else "-∞"
    size = abs(number)
    return f"{number:,.0f}" if 1_000 <= size < 1e12 else f"{number:.4g}"


def percent(part: float) -> str:
    """A part for the eye: three digits."""
    found = 100 * part
    return f"{found:,.0f} %" if found >= 99.95 else f"{found:.3g} %"


def listed(words: Sequence[str]) -> str:
    """One, two and three."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def times(count: int, word: str) -> str:
    """One question, two questions."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def thinned(values: Sequence[Value], most: int) -> list[Value]:
    """At most so many of them, evenly, the first and the last included."""
    if len(values) <= most:
        return list(values)
    return [values[place * (len(values) - 1) // (most - 1)] for place in range(most)]


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
