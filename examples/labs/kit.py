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
import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import discreet as dp
from discreet import report
from discreet.audit.attacks import Attack
from discreet.audit.laws import Row, Setting, sample
from discreet.audit.sampled import epsilon_lower_bound
from discreet.drawing import FAINT, INK, PAPER, SERIES
from discreet.errors import ParameterError
from discreet.report.plot import Panel, Plot, Scale, Series, draw, shown
from discreet.rng import SeededRng

GENEROUS = dp.Budget(10**6, "1/10")
"""The budget of a testing ledger: each lab prices its mechanisms itself, before it runs them."""

READING = (
    "The people of this lab are invented, and its randomness is seeded: the same settings give the same page. The "
    "checks below a picture compare each bound of a theorem with the number that was measured. A verdict that begins "
    "with 'above' names the hypothesis that was dropped on purpose. If you are new to differential privacy, read "
    "docs/introduction.md first; the words below are enough for this page."
)

Words = Sequence[tuple[str, str]]

WORDS: Words = (
    ("neighbouring tables", "two tables that differ in one person"),
    (
        "epsilon",
        "the promise: no event is more than e^epsilon times as likely on a table as on its neighbour. A pure promise "
        "is one with delta = 0",
    ),
    ("delta", "a small probability, such as 1e-6, that is added to the right side of that inequality"),
    ("mechanism", "a random computation on the table whose result is released; its price is the epsilon that it needs"),
    ("sensitivity", "the most that one person can change an exact answer"),
    ("Lap(s)", "Laplace noise of scale s: density proportional to exp(-|x| / s), so typically about s in size"),
    ("replace-one, add-remove", "a neighbour has one person replaced by another, or one person more or fewer"),
    ("ledger", "the record of all prices paid; it refuses a release that the budget does not cover"),
    ("broken twin", "a copy of a mechanism with one planted mistake, for an attack to catch"),
    (
        "lecture, notes",
        "a lab follows one lecture of a course on differential privacy; the notes are the lecture in writing",
    ),
    (
        "slip",
        "a mistake or a gap that we found in a lecture or its notes; each has a number (docs/course.md lists them) and "
        "an experiment",
    ),
    (
        "certain epsilon",
        "what an attack proves: on two neighbouring tables some event is e^(this number) times as likely, so no "
        "smaller epsilon can be promised",
    ),
)
"""The words that every lab uses, in the order in which they need each other."""

DOTS: dict[str, Any] = {"linestyle": "", "markersize": 6}
LINE: dict[str, Any] = {"marker": None}
Points = Sequence[tuple[float, float | None]]
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
            return "within the bound" + (" with these settings" if self.dropped else "")
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
    words: Words = ()

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
        parts += [report.Heading("Words"), report.Grid(("word", "meaning"), (*WORDS, *self.words))]
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

    @property
    def budget(self) -> dp.Budget:
        """Epsilon, and delta where the lab has one."""
        return dp.Budget(*(str(getattr(self, name)) for name in ("epsilon", "delta") if hasattr(self, name)))

    def _repr_html_(self) -> str:
        return _html(settings_grid(self))


def epsilon_setting(default: float = 1.0, *, least: float = 0.01, most: float = 20) -> Any:
    return setting(default, "privacy: the largest log-ratio of probabilities", least=least, most=most)


def delta_setting() -> Any:
    return setting(1e-6, "privacy: the small probability that epsilon may fail", least=1e-12, most=0.1)


def seed_setting(default: int) -> Any:
    return setting(default, "randomness of the invented rows and of the runs", least=0)


def theorems(*rows: tuple[str, str, str]) -> report.Grid:
    """The statements of a lecture: name, content, hypotheses."""
    return report.Grid(("statement", "says", "needs"), rows, "Every statement of the lecture, with its constants.")


def frequency_bound(beta: float, runs: int) -> float:
    """A frequency in independent runs of an event of probability beta: four standard deviations above it."""
    return beta + 4 * math.sqrt(beta / runs)


def largest_ratio(seen: Points, stated: Points) -> float:
    """The largest measured number over its bound, where there is a bound."""
    pairs = [(y, z) for (_, y), (_, z) in zip(seen, stated, strict=True) if y is not None and z is not None]
    return max((y / z for y, z in pairs), default=0.0)


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


def points(x: Iterable[float], y: Iterable[float]) -> list[tuple[float, float]]:
    """The points of a line."""
    return [(float(one), float(other)) for one, other in zip(x, y, strict=True)]


def both(
    name: str, place: int, stated: Points, seen: Points, *, says: str, found: str, size: float = 6
) -> list[Series]:
    """A line that is stated and dots that were measured, in the colour of this place."""
    colour = {"color": SERIES[place]}
    return [
        Series(f"{name}: {says}", stated, {**LINE, **colour}),
        Series(f"{name}: {found}", seen, {**DOTS, **colour, "markersize": size}),
    ]


def level(name: str, height: float, ends: tuple[float, float], **look: Any) -> Series:
    """A horizontal line: a bound that is the same everywhere."""
    return Series(name, [(ends[0], height), (ends[1], height)], {**BOUND, **look})


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


def disc(axes: Any, best: Iterable[float], name: str) -> None:
    """The edge of the unit disc, and the minimum in it."""
    turn = np.linspace(0, 2 * np.pi, 200)
    axes.plot(np.cos(turn), np.sin(turn), color=FAINT, linewidth=1.5, label="the edge of C")
    star = {"marker": "*", "markersize": 15, "linestyle": "", "color": SERIES[2]}
    axes.plot(*best, **star, markeredgecolor=INK, zorder=5, label=name)  # above the points
    axes.set_aspect("equal")


def bargain(finding: str, caption: str, y: str, epsilons: Sequence[float], lines: Sequence[Series]) -> Plot:
    """What epsilon buys, above, and what the same epsilon concedes about one person, in odds, below."""
    axis = Scale("epsilon", log=True, ticks=epsilons)
    sure = [(epsilon, 1 / (1 + math.exp(-epsilon))) for epsilon in epsilons]
    below = [Series("50 % sure before: at most this sure after", sure, {"color": SERIES[3]})]
    odds = (
        "Below: what the same epsilon concedes. An observer who knows all other rows and was 50 % sure of a fact about "
        "one person can become at most this sure (up to delta, if there is one)."
    )
    names, rows = line_rows([*lines, *below])
    return plot(
        "What epsilon buys",
        finding,
        f"Above: {caption} {odds}",
        ["epsilon", *names],
        rows,
        Panel(axis, Scale(y), lines, 2.7),
        Panel(axis, Scale("certainty", (0.48, 1.02), percent=True), below, 2.4),
    )


TOP = 6.0


def twins(attacks: Iterable[Attack], finding: str, caption: str, reasons: dict[str, str], *, by_mistake: bool) -> Shown:
    """Mechanisms, each with a broken twin: the epsilon that the exact laws of two neighbouring tables prove.

    reasons     for the checks of twins by name of the mechanism, where there is more to say than the mistake
    by_mistake  the bars are named by the mistake; otherwise by the mechanism
    """
    rows, checks = [], []
    for each in attacks:
        honest, broken = each.finding(), each.finding(each.mistake)
        name = each.mistake.label if by_mistake else each.name
        rows.append((name, honest.claimed, honest.found, each.mistake.label, broken.claimed, broken.found))
        who = f"{each.name}, attacked by what catches the twin that {each.mistake.label}" if by_mistake else each.name
        checks.append(Check(f"{who}: certain epsilon", honest.found, honest.claimed))
        reason = f"{reasons.get(each.name, '')}a twin that {each.mistake.label}"
        checks.append(Check(f"broken twin of {each.name}: certain epsilon", broken.found, broken.claimed, reason))

    def paint(axes: Any) -> None:
        for place, row in enumerate(rows):
            names = ("certain epsilon of the twin", "claimed epsilon of the twin") if place == 0 else (None, None)
            axes.barh(place, min(row[5], TOP), color=SERIES[1], height=0.5, label=names[0])
            axes.plot([row[4]] * 2, [place - 0.35, place + 0.35], color=SERIES[0], linewidth=2.5, label=names[1])
            if row[5] > TOP:
                axes.text(
                    TOP - 0.1,
                    place,
                    f"at least {math.floor(10 * row[5]) / 10:.1f}",
                    color=PAPER,
                    ha="right",
                    va="center",
                )
        axes.set_yticks(range(len(rows)), [textwrap.fill(row[0], 24) for row in rows])
        axes.invert_yaxis()

    ends = (len(rows) - 0.4, -0.6)
    widest = 1.1 * max(min(row[5], TOP) for row in rows)
    picture = plot(
        "Watch epsilon be exceeded",
        finding,
        caption + (f" Bars are cut at {TOP:g}." if any(row[5] > TOP for row in rows) else ""),
        ("bar", "honest: claimed", "honest: certain", "the twin", "twin: claimed", "twin: certain"),
        rows,
        Panel(Scale("epsilon", (0, widest)), Scale("", ends), (), 1.2 + 0.5 * len(rows), columns=1, paint=paint),
    )
    return Shown([picture], checks)


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
    "both",
    "number",
    "over",
    "plot",
    "released",
    "setting",
]
