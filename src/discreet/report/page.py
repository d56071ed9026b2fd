"""A page: one HTML file that needs nothing else, neither the network nor a script, and says everything also in text.

Every plot is a figure with its caption, and its numbers in a table that opens on demand; in print all tables are open.
All texts are escaped, so nobody's memo or table name can become part of the page.
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


def page(title: str, parts: Iterable[Part], *, lead: str = "") -> str:
    """An HTML document: the title, a leading sentence, then the parts in order."""
    found = list(parts)
    level = 3 if any(isinstance(part, Heading) for part in found) else 2
    body = [_part(part, place, level) for place, part in enumerate(found)]
    head = f"<h1>{html.escape(title)}</h1>" + (f'\n<p class="lead">{html.escape(lead)}</p>' if lead else "")
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<meta name="generator" content="discreet">',
            f"<title>{html.escape(title)}</title>",
            f"<style>{_CSS}{DARK}</style>",
            "</head>",
            "<body>",
            "<main>",
            f"<header>\n{head}\n</header>",
            *body,
            "</main>",
            "</body>",
            "</html>",
            "",
        ]
    )


def write_page(path: str | os.PathLike[str], text: str, *, force: bool = False) -> None:
    """Write a page to a new file; with force also over an old one."""
    where = Path(path)
    if where.exists() and not where.is_file():
        raise ParameterError(f"{where} is there, and is not a plain file: choose another name")
    try:
        with where.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ParameterError(
            f"{where.name} is there already: choose another name, or overwrite it with force"
        ) from None


def _part(part: object, place: int, level: int) -> str:
    if isinstance(part, Plot):
        return _figure(part, place, level)
    if isinstance(part, Grid):
        caption = f"<figcaption>{html.escape(part.caption)}</figcaption>" if part.caption else ""
        return f'<figure class="grid">\n{caption}\n{_table(part.columns, part.rows)}\n</figure>'
    if isinstance(part, Heading):
        return f"<h2>{html.escape(part.text)}</h2>"
    if isinstance(part, str):
        return "\n".join(f"<p>{html.escape(each)}</p>" for each in re.split(r"\n\s*\n", part.strip()) if each)
    raise ParameterError(f"a part of a page is a text, a Plot, a Grid or a Heading; found {type(part).__name__}")


def _figure(plot: Plot, place: int, level: int) -> str:
    return "\n".join(
        [
            f"<figure>\n<h{level}>{html.escape(plot.title)}</h{level}>",
            _inlined(plot.svg, place),
            f"<figcaption>{html.escape(plot.caption)}</figcaption>",
            "<details>\n<summary>The numbers</summary>",
            f"{_table(plot.columns, plot.rows)}\n</details>\n</figure>",
        ]
    )


def _inlined(svg: str, place: int) -> str:
    """The drawing as a part of the page: identifiers of its own, the page's style sheet, HTML's namespace."""
    own = svg.replace(f"<style>{DARK}</style>", "").replace(' xmlns="http://www.w3.org/2000/svg"', "", 1)
    return re.sub(rf'(id="|href="#|url\(#){MARK}', rf"\g<1>plot-{place}-", own)


def _table(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    for row in rows:
        if len(row) != len(columns):
            raise ParameterError(f"a row of a table has {len(columns)} cells, one a column; found {len(row)}")
    right = [bool(rows) and all(_is_number(row[place]) for row in rows) for place in range(len(columns))]
    wide = [any(len(shown(row[place])) > _LONG for row in rows) for place in range(len(columns))]
    looks = [f' class="{_LOOKS[number, long]}"' for number, long in zip(right, wide, strict=True)]
    head = "".join(f'<th scope="col"{look}>{html.escape(name)}</th>' for name, look in zip(columns, looks, strict=True))
    lines = [f"<tr>{''.join(map(_cell, columns, looks, row))}</tr>" for row in rows]
    stacked = ' class="stacked"' if any(wide) else ""
    return "\n".join(
        [
            f'<div class="scroll" tabindex="0" role="group" aria-label="table"><table{stacked}>',
            f"<thead><tr>{head}</tr></thead>",
            "<tbody>",
            *lines,
            "</tbody></table></div>",
        ]
    )


def _cell(name: str, look: str, cell: Cell) -> str:
    return f'<td{look} data-name="{html.escape(name)}">{html.escape(shown(cell))}</td>'


_LONG = 24  # signs: a text that is longer gets a column wide enough to be read
_LOOKS = {(True, True): "number", (True, False): "number", (False, True): "long", (False, False): "short"}


def _is_number(cell: Cell) -> bool:
    if isinstance(cell, str):
        return re.fullmatch(r"[±+-]? ?[0-9][0-9.,]*(e[+-]?[0-9]+)?( %)?|closed|–", cell) is not None
    return cell is None or isinstance(cell, (int, float, Fraction))


_CSS = """
:root { color-scheme: light dark; --ink: #1d2329; --faint: #5c6670; --line: #dfe3e7; --paper: #ffffff; --mark: #0b62a4 }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e8ebee; --faint: #a3adb7; --line: #343b43; --paper: #14181c; --mark: #5db0f5 }
}
* { box-sizing: border-box }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100% }
body {
  margin: 0; background: var(--paper); color: var(--ink); overflow-wrap: break-word;
  font: 17px/1.6 system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif;
}
main { max-width: 42rem; margin: 0 auto; padding: 4.5rem 1.25rem 6rem }
header { margin-bottom: 3rem }
h1 { font-size: 2.1rem; line-height: 1.2; letter-spacing: -0.015em; font-weight: 680; margin: 0 0 1rem }
h2 { font-size: 1.35rem; line-height: 1.3; letter-spacing: -0.01em; font-weight: 650; margin: 4rem 0 0.75rem }
h3, figure > h2 { font-size: 1.08rem; line-height: 1.35; letter-spacing: 0; font-weight: 650; margin: 0 0 1rem }
p { margin: 0 0 1.1rem }
.lead { font-size: 1.15rem; line-height: 1.55; color: var(--faint); margin: 0 }
figure { margin: 3rem 0; padding: 0 }
h2 + figure { margin-top: 1.75rem }
figure > svg { display: block; width: 100%; max-width: 38rem; height: auto }
figcaption { color: var(--faint); font-size: 0.9rem; line-height: 1.55; margin-top: 0.9rem; max-width: 38rem }
figure.grid figcaption { margin: 0 0 0.6rem }
details { margin-top: 0.8rem; font-size: 0.9rem }
summary { cursor: pointer; color: var(--mark); width: max-content; padding: 0.2rem 0 }
summary:hover { text-decoration: underline }
summary:focus-visible, .scroll:focus-visible { outline: 2px solid var(--mark); outline-offset: 3px; border-radius: 2px }
.scroll { overflow-x: auto; margin-top: 0.5rem }
table { border-collapse: collapse; font-size: 0.86rem; line-height: 1.4; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: 0.38rem 1.1rem 0.38rem 0; border-bottom: 1px solid var(--line) }
td { vertical-align: top }
th { font-weight: 600; color: var(--faint); vertical-align: bottom }
th:last-child, td:last-child { padding-right: 0 }
.number { text-align: right; white-space: nowrap }
.short { white-space: nowrap }
.long { min-width: 8.5rem }
th.number, th.short { white-space: normal }
@media screen and (min-width: 64rem) {
  figure.grid .scroll { width: max-content; max-width: min(58rem, 50vw + 18rem) }
}
@media screen and (max-width: 34rem) {
  .stacked thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%) }
  .stacked, .stacked tbody, .stacked tr, .stacked td { display: block; text-align: left; white-space: normal }
  .stacked tr { padding: 0.6rem 0; border-bottom: 1px solid var(--line) }
  .stacked td { border: 0; padding: 0.1rem 0 0.1rem 7.5rem; text-indent: -7.5rem; min-width: 0 }
  .stacked td::before {
    content: attr(data-name); display: inline-block; box-sizing: border-box; width: 7.5rem; padding-right: 1rem;
    text-indent: 0; color: var(--faint); vertical-align: top;
  }
}
@media (max-width: 34rem) {
  body { font-size: 16px }
  main { padding: 2.25rem 1rem 4rem }
  header { margin-bottom: 2rem }
  h1 { font-size: 1.65rem }
  h2 { margin-top: 3rem }
  figure { margin: 2.25rem 0 }
}
@media print {
  body { font-size: 10.5pt }
  main { max-width: none; padding: 0 }
  figure, tr { break-inside: avoid }
  figure > svg { max-width: 32rem }
  h2, h3 { break-after: avoid }
  summary { display: none }
  details::details-content { content-visibility: visible; block-size: auto }
  .scroll { overflow: visible }
}
"""
