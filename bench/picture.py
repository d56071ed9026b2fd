"""The ratios as a dot chart: one row a comparison, logarithmic, left of 1 ours is better."""

from __future__ import annotations

import io
import itertools
from collections.abc import Sequence

from bench.comparisons import Ratio

LEAST, MOST = 1e-3, 1e2  # dots beyond stand at the edge, as arrows
COLOURS = {"ours better": "#1f6f8b", "about even": "#6b6f76", "peer better": "#b0413e"}
DOTS = {"ours better": "o", "about even": "s", "peer better": "D"}
TICKS = {1e-3: "1/1000", 1e-2: "1/100", 1e-1: "1/10", 1.0: "1", 10.0: "10", 100.0: "100"}
_ROW, _WIDE = 0.235, 10.5  # inches


def drawn(found: Sequence[Ratio], said: str) -> str:
    """An SVG document; the same ratios give the same bytes."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    settings = {"svg.fonttype": "none", "svg.hashsalt": "ratios", "font.family": "sans-serif", "font.size": 9.5}
    with pyplot.rc_context(settings):
        figure, axes = pyplot.subplots(
            figsize=(_WIDE, _ROW * (len(found) + 1.6 * len(_groups(found)) + 5)), layout="constrained"
        )
        _rows(axes, found)
        _frame(axes, found)
        into = io.StringIO()
        about = {"Title": "Ours beside the best peer", "Description": said, "Date": None, "Creator": "bench.gather"}
        figure.savefig(into, format="svg", metadata=about)
        pyplot.close(figure)
    return "\n".join(line.rstrip() for line in into.getvalue().splitlines()) + "\n"


def _groups(found: Sequence[Ratio]) -> list[tuple[str, list[Ratio]]]:
    return [(heading, list(each)) for heading, each in itertools.groupby(found, lambda ratio: ratio.heading)]


def _heights(found: Sequence[Ratio]) -> tuple[list[float], dict[float, str]]:
    """Of the rows, downwards, and of the headings."""
    height, heights, headings = 0.0, list[float](), dict[float, str]()
    for heading, group in _groups(found):
        headings[height + 0.9] = heading
        heights += [height + 2 + place for place in range(len(group))]
        height = heights[-1] + 0.6
    return heights, headings


def _rows(axes, found: Sequence[Ratio]) -> None:
    edge = {"transform": axes.get_yaxis_transform(), "va": "center"}
    heights, headings = _heights(found)
    for height, heading in headings.items():
        axes.text(0.0, height, heading, fontweight="bold", backgroundcolor="white", **edge)
    for height, ratio in zip(heights, found, strict=True):
        colour = COLOURS[ratio.verdict]
        inside = min(max(ratio.value, LEAST), MOST)
        dot = DOTS[ratio.verdict] if inside == ratio.value else "<" if ratio.value < LEAST else ">"
        axes.plot([1, inside], [height, height], color=colour, linewidth=1.2, alpha=0.45)
        axes.plot([inside], [height], dot, color=colour, markersize=6, clip_on=False, zorder=3)
        weight = "bold" if ratio.verdict == "peer better" else "normal"
        axes.text(1.02, height, f"{ratio.shown}  {ratio.peer}", color=colour, fontweight=weight, **edge)


def _frame(axes, found: Sequence[Ratio]) -> None:
    heights, _ = _heights(found)
    axes.set_xscale("log")
    axes.set_xlim(LEAST / 1.3, MOST)
    axes.set_ylim(heights[-1] + 0.8, 0.2)
    axes.set_yticks(heights, [f"{ratio.what}: {ratio.measure}" for ratio in found])
    axes.tick_params(axis="y", length=0)
    axes.set_xticks(list(TICKS), list(TICKS.values()))
    axes.minorticks_off()
    axes.tick_params(axis="x", top=True, labeltop=True)
    axes.grid(axis="x", color="#dddddd", linewidth=0.8)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_axisbelow(True)
    for side in ("left", "right", "top", "bottom"):
        axes.spines[side].set_visible(False)
    axes.set_title("ours / best peer: left of 1 ours is better, right of 1 the peer is", fontweight="bold", pad=14)
    axes.set_xlabel("seconds, MB, errors, or the share that is wrong: less is better; arrows lie beyond the edge")
