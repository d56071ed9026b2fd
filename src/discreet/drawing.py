"""Drawings by matplotlib, the extra `report`: one style, for the plots of the report and of answers.

matplotlib is imported when something is drawn. Numbers are drawn with the intervals that they lie in: bars for
categories, a line within a band for numbers and dates.
"""

from __future__ import annotations

import functools
import io
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.core import ParameterError, number, one_line

INK, FAINT, GRID, PAPER = "#1d2329", "#5c6670", "#dfe3e7", "#ffffff"
SERIES = ("#0b62a4", "#c2500f", "#00785a", "#9a3f7f", "#7a6400", "#4a5a9b", "#8c3b3b", "#3d6f7d", "#55606b")
WIDTH = 5.6  # inches, of 72 units each: on a telephone the text is still about 9 pixels high
MOST_BARS = 200

_STYLE = Path(__file__).with_name("drawing.mplstyle")
_LONG = 28  # signs of a label
_SHARP = 144  # pixels of an inch, in a notebook

Interval = tuple[float, float] | None


@contextmanager
def style() -> Iterator[Any]:
    """matplotlib, drawing in our style."""
    matplotlib: Any
    try:
        import matplotlib.figure
    except ImportError:
        missing = "plots are drawn by matplotlib, which is not installed: pip install discreet[report]"
        raise ParameterError(missing) from None
    with matplotlib.rc_context(fname=_STYLE), warnings.catch_warnings():
        # A sign that the measuring font lacks is drawn by the reader's font: nothing to warn about.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield matplotlib


def empty_figure(matplotlib: Any, heights: Sequence[float]) -> tuple[Any, Sequence[Any]]:
    """A figure with axes of these heights in inches, one below the other."""
    figure = matplotlib.figure.Figure(figsize=(WIDTH, sum(heights)), layout="constrained")
    figure.get_layout_engine().set(h_pad=0.09, w_pad=0.06)
    return figure, figure.subplots(len(heights), 1, squeeze=False, height_ratios=list(heights))[:, 0]


@dataclass(frozen=True, slots=True)
class NumberPanel:
    """Numbers of one kind, one for each label, with the intervals that they lie in, where those are known.

    along  what the labels are
    """

    title: str
    along: str
    labels: Sequence[Any]
    values: Sequence[float]
    intervals: Sequence[Interval]

    @property
    def ordered(self) -> bool:
        """Whether the labels are at least three numbers or dates, so that a line has a meaning."""
        kinds = {"date" if hasattr(each, "isoformat") else type(each) for each in self.labels}
        return len(self.labels) > 2 and (kinds <= {int, float} or kinds == {"date"})

    @property
    def height(self) -> float:
        return 2.6 if self.ordered else 0.9 + 0.27 * len(self.labels)

    def draw(self, axes: Any) -> None:
        (self._line if self.ordered else self._bars)(axes)

    def _line(self, axes: Any) -> None:
        every = sorted(zip(self.labels, self.values, self.intervals, strict=True), key=lambda each: each[0])
        known = [(label, *ends) for label, _, ends in every if ends is not None and all(map(math.isfinite, ends))]
        if known:
            labels, lows, highs = zip(*known, strict=True)
            axes.fill_between(labels, lows, highs, color=SERIES[0], alpha=0.18, linewidth=0)
        axes.plot([label for label, _, _ in every], [value for _, value, _ in every], color=SERIES[0], marker="o")
        axes.set(xlabel=self.along, ylabel=self.title)
        _in_words(axes.yaxis)
        if any(hasattr(label, "isoformat") for label in self.labels):
            _dates(axes)

    def _bars(self, axes: Any) -> None:
        names = [_short(each) for each in self.labels]
        axes.barh(range(len(names)), self.values, color=SERIES[0], height=0.62)
        for place, (value, ends) in enumerate(zip(self.values, self.intervals, strict=True)):
            if ends is not None and all(map(math.isfinite, ends)):
                beyond = [[max(0.0, value - ends[0])], [max(0.0, ends[1] - value)]]
                axes.errorbar([value], [place], xerr=beyond, color=INK, capsize=3, linewidth=1.2)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(self.title)
        _in_words(axes.xaxis)


def measurements(panels: Sequence[NumberPanel]) -> Any:
    """A matplotlib Figure of these numbers, one panel below the other; a notebook shows it as a picture."""
    most = max((len(panel.labels) for panel in panels if not panel.ordered), default=0)
    if most > MOST_BARS:
        raise ParameterError(
            f"{most:,} groups are too many bars to be read, at most {MOST_BARS} are drawn: ask for fewer groups"
        )
    with style() as matplotlib:
        figure, every = empty_figure(matplotlib, [panel.height for panel in panels])
        for panel, axes in zip(panels, every, strict=True):
            panel.draw(axes)
    figure._repr_png_ = functools.partial(_picture, figure)
    return figure


def _picture(figure: Any) -> bytes:
    stream = io.BytesIO()
    with style():
        figure.savefig(stream, format="png", dpi=_SHARP)
    return stream.getvalue()


def _in_words(axis: Any) -> None:
    """Numbers on an axis as people write them, and few enough to stand beside each other."""
    from matplotlib import ticker

    axis.set_major_locator(ticker.MaxNLocator(6))
    words: Callable[[float, object], str] = lambda value, _: number(round(value, 9))  # noqa: E731
    axis.set_major_formatter(ticker.FuncFormatter(words))


def _dates(axes: Any) -> None:
    dates: Any
    from matplotlib import dates

    locator = dates.AutoDateLocator(maxticks=8)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))


def _short(label: object) -> str:
    text = "missing" if label is None else one_line(label)
    return text if len(text) <= _LONG else f"{text[: _LONG - 1]}…"
