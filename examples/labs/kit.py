"""What the four labs are made of: sections, pictures with their bounds, and the runs behind them.

A lab is a list of sections. A section has words and, mostly, one experiment: a function of the lab's settings that
returns a `Shown`, a picture or a table with the checks that belong to it. A check is one bound beside one measured
number. `discreet lab` writes the sections as a page, and the notebooks call the same functions.

Every mechanism runs through `dp.release` or `dp.converse` on a ledger that is marked as a testing one, with seeded
randomness: the same settings give the same page. The rows are invented here, so exact answers may be looked at.
"""

from __future__ import annotations

import base64
import dataclasses
import html
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import discreet as dp
from discreet import report
from discreet.audit.laws import Row, Setting, sample
from discreet.audit.sampled import epsilon_lower_bound
from discreet.drawing import FAINT, INK, SERIES
from discreet.errors import ParameterError
from discreet.report.plot import Panel, Plot, Scale, Series, draw, shown
from discreet.rng import SeededRng

GENEROUS = dp.Budget(10**6, "1/10")
"""The budget of a testing ledger: each lab prices its mechanisms itself, before it runs them."""

READING = (
    "The people of this lab are invented, and its randomness is seeded: the same settings give the same page. "
    "Below each "
    "picture stand its checks, each a bound of a theorem beside the number that was measured. A verdict that "
    "begins with "
    "above and gives a reason means that a hypothesis was dropped on purpose. Words such as epsilon, delta, "
    "sensitivity "
    "or ledger are in the glossary of the documentation (docs/glossary.md)."
)

DOTS: dict[str, Any] = {"linestyle": "", "markersize": 6}
LINE: dict[str, Any] = {"marker": None}
BOUND: dict[str, Any] = {"marker": None, "color": INK, "linestyle": "-", "linewidth": 1.4}


@dataclass(frozen=True, slots=True)
class Check:
    """One bound beside the number that was measured.

    dropped  which hypothesis of the theorem is missing here, if one is: then the measured number may be above
    """

    what: str
    measured: float
    bound: float
    dropped: str = ""

    @property
    def holds(self) -> bool:
        return bool(self.measured <= self.bound * (1 + 1e-9) + 1e-12)

    @property
    def verdict(self) -> str:
        if self.holds:
            return "below the bound" + (" with these settings" if self.dropped else "")
        return f"above: {self.dropped}" if self.dropped else "ABOVE THE BOUND"


@dataclass(frozen=True, slots=True)
class Shown:
    """The result of one experiment: pictures or tables, and the checks that they show."""

    parts: Sequence[Plot | report.Grid | str]
    checks: Sequence[Check] = ()

    def page_parts(self) -> list[report.Part]:
        found: list[report.Part] = list(self.parts)
        return [*found, check_grid(self.checks)] if self.checks else found

    def _repr_html_(self) -> str:
        return "".join(map(_html, self.page_parts()))


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, words in plain paragraphs, and the experiment that follows them."""

    title: str
    words: str
    show: Callable[[Any], Shown] | None = None


@dataclass(frozen=True, slots=True)
class Lab:
    """One lecture: `settings` is a frozen dataclass of numbers with their defaults."""

    number: int
    title: str
    lead: str
    settings: Any
    sections: Sequence[Section]

    def settle(self, **given: Any) -> Any:
        """The settings with these changed; a name that this lab does not have is an error that lists the others."""
        names = [field.name for field in dataclasses.fields(self.settings)]
        for name in given:
            if name not in names:
                raise ParameterError(
                    f"lab {self.number} has no setting {name!r}; its settings are {', '.join(names)}", argument=name
                )
        return dataclasses.replace(self.settings, **given)

    def page(self, settings: Any = None, progress: Callable[[str], None] = lambda title: None) -> str:
        """The whole lab as one HTML page that needs nothing else."""
        here = self.settings if settings is None else settings
        parts: list[report.Part] = [READING, report.Heading("Settings"), settings_grid(here)]
        for section in self.sections:
            progress(section.title)
            parts += [report.Heading(section.title), section.words]
            if section.show is not None:
                parts += section.show(here).page_parts()
        return report.page(self.title, parts, lead=self.lead)

    def checks(self, settings: Any = None) -> list[Check]:
        """Every check of the lab."""
        here = self.settings if settings is None else settings
        return [check for section in self.sections if section.show for check in section.show(here).checks]


def settings_grid(settings: Any) -> report.Grid:
    """The settings and their meaning."""
    rows = [
        (field.name, getattr(settings, field.name), field.metadata["says"]) for field in dataclasses.fields(settings)
    ]
    return report.Grid(("setting", "value", "meaning"), rows)


def setting(default: Any, says: str, *, least: float = 1, most: float = float("inf")) -> Any:
    """A field of settings with the sentence that explains it and the values that it may have."""
    return dataclasses.field(default=default, metadata={"says": says, "least": least, "most": most})


class Checked:
    """Settings that refuse values outside their range, and show themselves with their meaning."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value, least, most = getattr(self, field.name), field.metadata["least"], field.metadata["most"]
            if not least <= value <= most:
                raise ParameterError(
                    f"{field.name} must be from {least:g} to {most:g}, found {value!r}", argument=field.name
                )

    def _repr_html_(self) -> str:
        return _html(settings_grid(self))


def check_grid(checks: Iterable[Check]) -> report.Grid:
    rows = [(each.what, each.measured, each.bound, each.verdict) for each in checks]
    return report.Grid(("bound", "measured", "stated", "verdict"), rows)


# --- runs -------------------------------------------------------------------------------------------------------------


def released(mechanism: Any, data: Any, *, runs: int, seed: int) -> list[Any]:
    """The values of independent releases, each charged to a testing ledger."""
    with dp.Ledger.in_memory(GENEROUS, data, testing=True) as ledger:
        return [dp.release(mechanism, data, ledger=ledger, rng=SeededRng(seed + run)).value for run in range(runs)]


@dataclass(frozen=True, slots=True)
class Worlds:
    """A number that an attacker makes of each release, in many runs on each of two neighbouring tables."""

    first: list[float]
    second: list[float]

    @staticmethod
    def of(
        mechanism: Any,
        tables: tuple[Sequence[Row], Sequence[Row]],
        setting: Setting,
        look: Callable[[Any], float],
        *,
        runs: int,
        seed: int,
    ) -> Worlds:
        found = [
            list(map(look, sample(mechanism, rows, setting, runs=runs, rng=SeededRng(seed + place))))
            for place, rows in enumerate(tables)
        ]
        return Worlds(*found)

    def epsilon(self, delta: float = 0.0) -> float:
        """An epsilon that is certainly exceeded, wrong with probability 1e-6."""
        return epsilon_lower_bound(self.first, self.second, delta=delta)


# --- pictures ---------------------------------------------------------------------------------------------------------


def plot(
    title: str, finding: str, caption: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *panels: Panel
) -> Plot:
    """A picture with its finding in words, its numbers, and panels one below the other."""
    return Plot(
        title,
        finding,
        f"{finding} {caption}".strip(),
        tuple(columns),
        tuple(map(tuple, rows)),
        draw(*panels, alt=finding),
    )


def line_rows(lines: Sequence[Series]) -> tuple[list[str], list[list[float | None]]]:
    """The numbers of lines over one axis: a row for each x, a column for each line."""
    places = sorted({x for line in lines for x, _ in line.points})
    tables = [dict(line.points) for line in lines]
    return [line.label for line in lines], [[x, *(each.get(x) for each in tables)] for x in places]


def over(title: str, finding: str, caption: str, x: Scale, y: Scale, lines: Sequence[Series], **panel: Any) -> Plot:
    """A picture of lines over one axis."""
    names, rows = line_rows(lines)
    return plot(title, finding, caption, [x.label, *names], rows, Panel(x, y, lines, **panel))


def histogram_plot(title: str, finding: str, caption: str, worlds: Worlds, x: str, bins: int = 40) -> Plot:
    """How often a number came out in the two worlds."""
    both = np.array([*worlds.first, *worlds.second])
    low, high = float(np.quantile(both, 0.002)), float(np.quantile(both, 0.998))
    edges = np.linspace(low, high if high > low else low + 1, bins + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    lines = []
    for name, values in (("one table", worlds.first), ("its neighbour", worlds.second)):
        counts = np.histogram(values, edges)[0] / len(values)
        look = {"marker": None, "drawstyle": "steps-mid"}
        lines.append(Series(name, list(zip(middles.tolist(), counts.tolist(), strict=True)), look))
    return over(title, finding, caption, Scale(x, (low, high)), Scale("share of the runs", log=False), lines)


def number(value: float) -> str:
    """A number for a sentence."""
    return shown(value)


def _html(part: report.Part) -> str:
    match part:
        case Plot():
            data = base64.b64encode(part.svg.encode()).decode()
            source, alt = f"data:image/svg+xml;base64,{data}", html.escape(part.alt)
            picture = f'<img src="{source}" alt="{alt}" style="max-width:42rem;width:100%">'
            return f"<h4>{html.escape(part.title)}</h4>{picture}<p>{html.escape(part.caption)}</p>"
        case report.Grid():
            head = "".join(f"<th>{html.escape(name)}</th>" for name in part.columns)
            rows = ("".join(f"<td>{html.escape(shown(cell))}</td>" for cell in row) for row in part.rows)
            table = f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"
            return table + (f"<p>{html.escape(part.caption)}</p>" if part.caption else "")
        case str():
            return f"<p>{html.escape(part)}</p>"
    raise ParameterError(f"a part of a lab is a text, a plot or a table; found {type(part).__name__}")


__all__ = [
    "BOUND",
    "DOTS",
    "FAINT",
    "INK",
    "LINE",
    "SERIES",
    "Check",
    "Checked",
    "Lab",
    "Panel",
    "Plot",
    "Scale",
    "Section",
    "Series",
    "Shown",
    "Worlds",
    "histogram_plot",
    "number",
    "over",
    "plot",
    "released",
    "setting",
]
