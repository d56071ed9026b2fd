"""What the templates show: answers, prices and refusals as plain values, all texts still to be escaped.

Everything here is a function of public things: of an answer that was paid for, of the declaration, of the ledger.
"""

from __future__ import annotations

import datetime
import json
import math
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.answering import answer_from, answer_words
from discreet.core import EMPTY, exact, one_line, round_up
from discreet.data import in_words, people
from discreet.sql import literal_text, name_text
from discreet.sql.source import AGGREGATES, FUNCTIONS, RESERVED

MOST_ROWS = 500
"""Rows of an answer that a page shows; the HTTP interface gives all of them."""

MOST_BARS = 60
MOST_KNOWN = 100
_WIDE = 8  # bars that leave room for a table beside them
_FEW = 12  # numbers on an axis that are drawn as bars
_MOST_PLOTS = 4
_MOST_LEVELS = 200  # of a column, among the suggestions
_MARKED = re.compile(r"\w+|'[^']*'?|\S")


def sentence(text: str) -> str:
    """The text with a capital letter and a full stop."""
    words = one_line(text)
    return f"{words[:1].upper()}{words[1:]}{'' if words[-1:] in ('.', '?', '!') else '.'}"


def bare(sql: str) -> str:
    """A question without what is around it, and without the semicolon that ends it."""
    return sql.strip().rstrip(";").rstrip()


def percent_up(cost: dict[str, Any] | None) -> str:
    """A price as a part of the budget, rounded up; a dash if it is not known."""
    if cost is None or cost["percent_of_budget"] is None:
        return EMPTY
    return exact.percent(cost["percent_of_budget"] / 100, up=True)


def bound_words(bound: dict[str, Any] | None) -> str:
    """A bound that is known before, as "111 persons"; nothing if none is."""
    if bound is None or not math.isfinite(bound["error_bound"]):
        return ""
    near, unit = bound["error_bound"], one_line(bound["unit"])
    return f"{math.floor(near):,} {unit}" if unit in ("persons", "rows") else f"{round_up(near)} ({unit})"


def budget(found: dict[str, Any], reply: dict[str, Any] | None = None) -> dict[str, Any]:
    """What is left for somebody, in words.

    found  what `Desk.budget` says
    reply  the last answer, which says how many more like it there are
    """
    left, share = Fraction(found["left_percent"]) / 100, Fraction(found["share"] or 1)
    spent = exact.percent(found["spent_percent"] / 100, up=True) if found["spent_percent"] else "nothing"
    words = f"Your share is {exact.percent(share)} of the budget, and you have spent {spent}"
    if found["epsilon_so_far"]:
        delta = "" if found["delta"] == "0" else f" at delta {float(Fraction(found['delta'])):g}"
        words += f": epsilon {found['epsilon_so_far']:.3g} of {float(Fraction(found['epsilon'])):g}{delta}"
    if reply is not None and reply["more_like_this"] is not None:
        kind = "questions like this" if reply["price"]["nano"] else "paid counts"
        words += f". The rest is enough for about {reply['more_like_this']:,} more {kind}"
    return {
        "percent": exact.percent(found["left_percent"] / 100),
        "part": min(1.0, float(left / share)),
        "words": f"{words}.",
    }


def people_of(desk: Any) -> str:
    """Whose rows a desk has, in a phrase."""
    facts = desk.ledger.facts
    return "" if facts is None else people(facts, desk.ledger.identity)


def warning(ledger: Any) -> str:
    """What a reader must know before anything else about a ledger; nothing if it is an ordinary one."""
    if ledger.testing:
        return "NOT PRIVATE: this is a testing ledger. Nothing that is released through it is protected."
    return "A rehearsal: the rows are made up, and so is everything here." if ledger.identity.rehearsal else ""


def promise(ledger: Any, schema: Any) -> dict[str, str]:
    """What is promised to the people in the table, what it means, and what it does not cover."""
    together = "Everything that is ever released here, to all analysts together, keeps one promise"
    odds = ledger.budget.odds()
    return {
        "promise": together,
        "budget_of": str(ledger.budget).strip("()"),
        "odds": f"{odds[:1].upper()}{odds[1:]}".replace(" : ", "\N{NO-BREAK SPACE}:\N{NO-BREAK SPACE}"),
        "protects": schema.protects(),
    }


# Refusals.


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A question in three parts: before the place that is wrong, the word there, and the rest."""

    before: str
    mark: str
    after: str

    @staticmethod
    def at(text: str, position: int) -> MarkedText:
        """The text with the word at this position marked; at the end, where nothing stands, a sign for that."""
        place = min(max(0, position), len(text))
        found = _MARKED.match(text, place)
        end = found.end() if found else place
        return MarkedText(text[:place], text[place:end] or "␣", text[end:])


# Answers.


@dataclass(frozen=True, slots=True)
class ShownTable:
    """Titles and rows of texts; numeric: the places of the columns that stand to the right."""

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]
    numeric: Sequence[int] = ()
    more: str = ""


def answer_table(answer: Any) -> ShownTable | None:
    """The rows of an answer with their bounds; None for a single number, which its headline says."""
    if not answer.rows or (not answer.groups and len(answer_words.estimated(answer)) == 1):
        return None
    found = answer_words.table(answer, bounds=True)
    many = len(found.rows) - MOST_ROWS
    more = f"and {many:,} rows more, which the HTTP interface gives" if many > 0 else ""
    rows = [[one_line(each) for each in row] for row in found.rows[:MOST_ROWS]]
    return ShownTable([one_line(each) for each in found.titles], rows, sorted(found.numeric), more)


@dataclass(frozen=True, slots=True)
class ShownPlot:
    """One plot: kind is "bars", "line" (along numbers) or "days"; data is JSON for the script that draws it."""

    kind: str
    title: str
    along: str
    data: str
    wide: bool


def answer_plots(answer: Any) -> list[ShownPlot]:
    """The plots of an answer by groups, one for each aggregate; none where there are too many bars to be read."""
    if not answer.groups:
        return []
    found = [_plot(panel) for panel in answer_words.panels(answer) if len(panel.values) > 1]
    return [each for each in found if each is not None][:_MOST_PLOTS]


def _plot(panel: Any) -> ShownPlot | None:
    every = list(zip(panel.labels, panel.values, panel.intervals, strict=True))
    dated = panel.ordered and all(isinstance(label, datetime.date) for label in panel.labels)
    kind = "days" if dated else "line" if panel.ordered and len(every) > _FEW else "bars"
    if kind == "bars" and len(every) > MOST_BARS:
        return None
    if kind != "bars":
        every.sort(key=lambda each: each[0])
    places = [_stamp(label) if kind == "days" else label for label, _, _ in every] if kind != "bars" else []
    data = {
        "kind": kind,
        "labels": ["missing" if label is None else one_line(label) for label, _, _ in every],
        "x": places,
        "values": [value for _, value, _ in every],
        "low": [_finite(ends, 0) for _, _, ends in every],
        "high": [_finite(ends, 1) for _, _, ends in every],
    }
    return ShownPlot(
        kind, panel.title, panel.along, json.dumps(data, allow_nan=False), kind != "bars" or len(every) > _WIDE
    )


def _stamp(day: datetime.date) -> float:
    """Seconds since 1970, as the plots count."""
    return float((datetime.date(day.year, day.month, day.day) - datetime.date(1970, 1, 1)).days * 86_400)


def _finite(ends: Any, place: int) -> float | None:
    return None if ends is None or not math.isfinite(ends[place]) else float(ends[place])


_KNOWN = {"cache": "it was asked before", "public": "it is public", "workload": "it was paid with others"}


def answer_view(told: dict[str, Any]) -> dict[str, Any]:
    """An answer for people."""
    answer = answer_from(told)
    plots = answer_plots(answer)
    free = f"Free: {_KNOWN.get(answer.source, 'it was known from earlier answers')}."
    notes = [
        answer_words.alone(answer),
        answer_words.little(answer),
        answer.note,
        *told.get("notes", ()),
        answer_words.population(answer),
    ]
    return {
        "id": secrets.token_hex(6),
        "sql": told["question"],
        "warning": "NOT PRIVATE: a testing ledger" if answer.testing else "",
        "headline": answer_words.headline(answer),
        "table": answer_table(answer),
        "plots": plots,
        "wide": any(plot.wide for plot in plots) or len(plots) > 1,
        "notes": [sentence(each) for each in notes if each],
        "cost": f"Paid: {told['price']['words']}." if answer.price else free,
        "promise": "The ± of all answers hold at once with probability 95 %.",
    }


def headline(told: dict[str, Any]) -> str:
    """An answer in one line."""
    return answer_words.headline(answer_from(told))


# What may be asked.


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A declared column in words."""

    name: str
    kind: str
    words: str


def columns(domain: Any) -> list[ShownColumn]:
    """The declared columns of a table, in words."""
    return [ShownColumn(one_line(name), *map(one_line, in_words(column))) for name, column in domain.columns]


_CALLS = ("COUNT(*)", "COUNT(DISTINCT ", "SUM(", "AVG(", "MEDIAN(", "QUANTILE(", "STDDEV(", "VARIANCE(", "CORR(")
_PHRASES = ("SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "LIMIT", "AND", "OR", "NOT", "BETWEEN", "IN (")
_OTHER_PHRASES = ("IS NULL", "IS NOT NULL", "AS", "CASE", "WHEN", "THEN", "ELSE", "END", "JOIN", "USING (", "DESC")


def completions(tables: Iterable[tuple[str, Any]]) -> str:
    """What a question may be completed to, as JSON: keywords, functions, tables, columns and their levels.

    tables  the name and the domain of each
    """
    spelled = {call.split("(")[0] for call in _CALLS}
    others = sorted(f"{name}(" for name in (AGGREGATES | FUNCTIONS) - spelled)
    parts = {part for phrase in (*_PHRASES, *_OTHER_PHRASES) for part in phrase.removesuffix(" (").split()}
    known = {
        "tables": [
            {
                "name": name,
                "insert": name_text(name),
                "columns": [
                    {"name": each, "insert": name_text(each), "kind": in_words(column)[0], "levels": _levels(column)}
                    for each, column in domain.columns
                ],
            }
            for name, domain in tables
        ],
        "functions": [*_CALLS, *others],
        "keywords": [*_PHRASES, *_OTHER_PHRASES, *sorted(RESERVED - parts - {"UNION"})],
    }
    return json.dumps(known)


def _levels(column: Any) -> list[str]:
    return [literal_text(level) for level in column.levels[:_MOST_LEVELS]] if column.categorical else []


def examples(name: str, domain: Any) -> list[str]:
    """A few questions that can be asked about these columns, for those who have never asked one."""
    table = name_text(name)
    categories = [each for each, column in domain.columns if column.categorical]
    numbers = [(each, column) for each, column in domain.columns if column.bounded]
    days = [(each, column) for each, column in domain.columns if column.calendar]
    found = [f"SELECT COUNT(*) FROM {table}"]
    if numbers:
        each, column = numbers[0]
        middle = column.value(column.points // 2)
        found[0] += f" WHERE {name_text(each)} >= {float(middle):g}"
    categories.sort(key=lambda each: not 2 < len(domain.column(each).levels) <= MOST_BARS)
    categories.sort(key=lambda each: type(domain.column(each).levels[0]) is not str)
    for named in categories[:1]:
        found.append(f"SELECT {name_text(named)}, COUNT(*) FROM {table} GROUP BY {name_text(named)}")
    if days:
        month = f"DATE_TRUNC('month', {name_text(days[0][0])})"
        found.append(f"SELECT {month}, COUNT(*) FROM {table} GROUP BY {month}")
    if numbers:
        found.append(f"SELECT AVG({name_text(numbers[-1][0])}) FROM {table}")
        found.append(f"SELECT MEDIAN({name_text(numbers[0][0])}) FROM {table}")
    return found


# The owner.


def certificate_lines(said: dict[str, Any]) -> list[tuple[str, str]]:
    """What a certificate says, as names and sentences."""
    alone, budget = said["alone"], said["budget"]
    epsilon = "nothing" if alone["epsilon"] is None else f"epsilon {float(alone['epsilon']):.4g}"
    lines = [
        ("asked", said["asked"] or ""),
        ("does", said["does"]),
        ("promises alone", f"{epsilon} at delta {float(Fraction(alone['delta'])):g}"),
        ("within", f"epsilon {float(Fraction(budget['epsilon'])):g} for {budget['covers']}"),
        ("relation", said["relation"]),
        ("state", said["status"]),
        ("hash", said["entry_hash"]),
        ("not protected", " ".join(said["not_protected"])),
    ]
    warned = [("warning", said["warning"])] if said["warning"] else []
    return [(name, one_line(words)) for name, words in [*warned, *lines] if words]


# Models.


_TITLES = {
    **{kind: f"{kind.capitalize()} model of" for kind in ("logistic", "linear", "network")},
    **{kind: f"{kind.capitalize()} of" for kind in ("mean", "median", "quantile")},
}


def model_view(each: dict[str, Any]) -> dict[str, Any]:
    """A model or a rule of somebody's history, for people."""
    reply, said = each["reply"], each["reply"]["said"]
    target = one_line(said["target"]["column"])
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", target).strip("-") or "model"
    return {
        "entry": each["entry"],
        "title": f"{_TITLES.get(said['model'], 'Rule for')} {target}",
        "when": each["time"][:10],
        "words": "\n".join(map(_visible, reply["words"].splitlines())),
        "paid": "free" if reply["replayed"] else percent_up(reply["price"]),
        "epsilon": f"{reply['epsilon']:.3g}",
        "condition": said.get("sql", ""),
        "file": f"{said['model']}-{plain}.json",
    }


def _visible(line: str) -> str:
    """A line without signs that are not printed; its spaces stay."""
    return "".join(sign if sign.isprintable() else " " for sign in line)


def above_limit(found: dict[str, Any], part: Fraction, limit: Fraction) -> dict[str, str] | None:
    """What a share of what is left would cost, if that is so much that it is confirmed first.

    found  what `Desk.budget` says
    limit  the part of the budget above which that is
    """
    cost = part * Fraction(found["left_nano"], found["budget_nano"] or 1)
    if cost <= limit:
        return None
    return {"percent": exact.percent(cost, up=True), "limit": exact.percent(limit)}
