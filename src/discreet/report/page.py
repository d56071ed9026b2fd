"""A page: one HTML file that needs nothing else, neither the network nor a script, and says everything also in text.

Every plot is a figure with its caption, and its numbers in a table that opens on demand; in print all tables are open.
All texts are escaped, so no memo and no table name can become part of the page.
"""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from discreet.errors import ParameterError
from discreet.report.plot import DARK, MARK, Cell, Plot, shown


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of texts and numbers."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Heading:
    """Begins a section of the page."""

    text: str


Part = str | Plot | Grid | Heading

_LONG = 24  # signs: a text that is longer gets a column wide enough to be read
_NUMBER = re.compile(r"[±+-]? ?[0-9][0-9.,]*(e[+-]?[0-9]+)?( %)?|closed|–")
_NUMBERS = (int, float, Fraction, type(None))
_CSS = Path(__file__).with_name("page.css").read_text(encoding="utf-8")


def page(title: str, parts: Iterable[Part], *, lead: str = "") -> str:
    """An HTML document: the title, a leading sentence, then the parts in order."""
    every = list(parts)
    level = 3 if Heading in map(type, every) else 2
    name, leading = html.escape(title), f'\n<p class="lead">{html.escape(lead)}</p>' if lead else ""
    body = "\n".join(_part(part, place, level) for place, part in enumerate(every))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="discreet">
<title>{name}</title>
<style>{_CSS}{DARK}</style>
</head>
<body>
<main>
<header>
<h1>{name}</h1>{leading}
</header>
{body}
</main>
</body>
</html>
"""


def write_page(path: str | os.PathLike[str], text: str, *, force: bool = False) -> None:
    """Write a page to a new file; with force also over an old one."""
    where = Path(path)
    if where.exists() and not where.is_file():
        raise ParameterError(f"{where} exists and is not a plain file: choose another name")
    try:
        with where.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ParameterError(f"{where.name} exists already: choose another name, or overwrite it with force") from None


def _part(part: Part, place: int, level: int) -> str:
    """A part of the page as HTML; `place` makes the identifiers of a drawing its own."""
    match part:
        case Plot():
            # The drawing is a part of the page: the page's style sheet, HTML's namespace.
            svg = part.svg.replace(f"<style>{DARK}</style>", "").replace(' xmlns="http://www.w3.org/2000/svg"', "", 1)
            svg = re.sub(rf'(id="|href="#|url\(#){MARK}', rf"\g<1>plot-{place}-", svg)
            title, caption = html.escape(part.title), html.escape(part.caption)
            return (
                f"<figure>\n<h{level}>{title}</h{level}>\n{svg}\n<figcaption>{caption}</figcaption>\n"
                f"<details>\n<summary>The numbers</summary>\n{_table(part.columns, part.rows)}\n</details>\n</figure>"
            )
        case Grid():
            caption = f"<figcaption>{html.escape(part.caption)}</figcaption>" if part.caption else ""
            return f'<figure class="grid">\n{caption}\n{_table(part.columns, part.rows)}\n</figure>'
        case Heading():
            return f"<h2>{html.escape(part.text)}</h2>"
        case str():
            return "\n".join(f"<p>{html.escape(each)}</p>" for each in re.split(r"\n\s*\n", part.strip()) if each)
    raise ParameterError(f"a part of a page is a text, a Plot, a Grid or a Heading; found {type(part).__name__}")


def _table(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    for row in rows:
        if len(row) != len(columns):
            raise ParameterError(f"a row of a table has {len(columns)} cells, one per column; found {len(row)}")
    looks = []
    for place in range(len(columns)):
        cells = [row[place] for row in rows]
        numeric = bool(cells) and all(type(cell) in _NUMBERS or _NUMBER.fullmatch(str(cell)) for cell in cells)
        long = any(len(shown(cell)) > _LONG for cell in cells)
        looks.append("number" if numeric else "long" if long else "short")
    head = "".join(
        f'<th scope="col" class="{look}">{html.escape(name)}</th>' for name, look in zip(columns, looks, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="{look}" data-name="{html.escape(name)}">{html.escape(shown(cell))}</td>'
            for name, look, cell in zip(columns, looks, row, strict=True)
        )
        + "</tr>\n"
        for row in rows
    )
    stacked = ' class="stacked"' if any(len(shown(cell)) > _LONG for row in rows for cell in row) else ""
    return (
        '<div class="scroll" tabindex="0" role="group" aria-label="table">'
        f"<table{stacked}>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>"
    )
