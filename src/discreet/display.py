"""How public things show themselves: as text, the same at a prompt and on the command line, and as HTML in a notebook.

A class that shows itself says what there is to see, once, as a `Sheet` of blocks; everything else follows from it:

    Shown     a base for classes with a method `sheet`: `str(x)` and `_repr_html_`
    Sentence  a base for classes whose `str(x)` is one sentence: a short `repr`, and the sentence in a notebook
    Paragraph  a line or a paragraph
    Pairs     names, each with a sentence
    CellTable     a table

Texts come from declarations, memos and file names that somebody else wrote. They are put on one line, without signs
that speak to a terminal or turn the direction of reading, and escaped in HTML. A sheet has no colours and no script, so
a notebook shows it in its own colours, light or dark.
"""

from __future__ import annotations

import html
import io
import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.console import Console

NO_BOUND = "no bound"
EMPTY = "-"
WIDE = 76  # columns: below this a table of five or six columns is easier to read as lists
_MOST = 1_000  # rows of a table that are shown
_LEFT = ' style="text-align: left; vertical-align: top; overflow-wrap: anywhere"'
_RIGHT = ' style="text-align: right; vertical-align: top"'


def one_line(text: object) -> str:
    """Somebody's text, so that it cannot look like a line of ours or speak to the terminal."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in str(text)).split())


def escaped(text: object) -> str:
    """Somebody's text in HTML; its direction of reading ends with it."""
    return f"<bdi>{html.escape(one_line(text))}</bdi>"


def width_of(text: str) -> int:
    """How many columns of a terminal a text takes."""
    from rich.cells import cell_len

    return cell_len(text)


# Blocks.


class Block(Protocol):
    """A part of a sheet."""

    def write(self, console: Console) -> None: ...
    def html(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A line or a paragraph; look: "bold", "dim" or none. A line that may be copied is not broken."""

    words: str
    look: str = ""
    copied: bool = False

    def write(self, console: Console) -> None:
        console.print(self.words, style=self.look or None, soft_wrap=self.copied)

    def html(self) -> str:
        words = f"<code>{escaped(self.words)}</code>" if self.copied else escaped(self.words)
        return f"<p><strong>{words}</strong></p>" if self.look == "bold" else f"<p>{words}</p>"


@dataclass(frozen=True, slots=True)
class Pairs:
    """Names and sentences in two columns; a sentence is wrapped under itself."""

    lines: Sequence[tuple[str, object]]

    def write(self, console: Console) -> None:
        indent = " " * (max((len(name) for name, _ in self.lines), default=0) + 2)
        width = max(len(indent) + 12, console.width)
        for name, text in self.lines:
            first, *rest = textwrap.wrap(one_line(text) or "-", width, initial_indent=indent, subsequent_indent=indent)
            written = "\n".join([name.ljust(len(indent)) + first[len(indent) :], *rest])
            console.print(written, soft_wrap=True)

    def html(self) -> str:
        rows = (
            f'<tr><th scope="row"{_LEFT}>{escaped(name)}</th><td{_LEFT}>{escaped(text)}</td></tr>'
            for name, text in self.lines
        )
        return f"<table><tbody>{''.join(rows)}</tbody></table>"


@dataclass(frozen=True, slots=True)
class CellTable:
    """Rows in columns. A cell that does not fit the width is wrapped, never cut; numbers stand to the right, unbroken.

    numeric  the columns of numbers that are given as texts
    narrow   on a screen of fewer columns, or of fewer than the numbers need, every row is a list below its first cell
    """

    titles: Sequence[str]
    rows: Sequence[Sequence[object]]
    numeric: Iterable[int] = ()
    narrow: int = 0

    def _to_the_right(self) -> list[bool]:
        named = set(self.numeric)
        columns = range(len(self.titles))
        return [
            place in named or (bool(self.rows) and {type(row[place]) for row in self.rows} <= {int, float})
            for place in columns
        ]

    @property
    def _more(self) -> str:
        return f"... and {len(self.rows) - _MOST:,} rows more" if len(self.rows) > _MOST else ""

    def _widths(self, room: int) -> list[int] | None:
        """How wide the columns are: the widest are folded until all fit, but a number is never broken."""
        shown = [self.titles, *self.rows[:_MOST]]
        wanted = [min(room, max(width_of(cell(row[place])) for row in shown)) for place in range(len(self.titles))]
        least = [
            max((width_of(cell(row[place])) for row in shown[1:]), default=1) if right else 1
            for place, right in enumerate(self._to_the_right())
        ]
        if sum(least) > room:
            return None
        while sum(wanted) > room:
            widest = max((width, place) for place, width in enumerate(wanted) if width > least[place])
            wanted[widest[1]] -= 1
        return wanted

    def write(self, console: Console) -> None:
        widths = None if console.width < self.narrow else self._widths(console.width - 3 * len(self.titles))
        if widths is None:
            self._stack(console)
            return
        from rich import box
        from rich.table import Table

        shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for title, right, width in zip(self.titles, self._to_the_right(), widths, strict=True):
            shown.add_column(one_line(title), overflow="fold", justify="right" if right else "left", width=width)
        for row in self.rows[:_MOST]:
            shown.add_row(*map(cell, row))
        console.print(shown)
        if self._more:
            console.print(self._more)

    def _stack(self, console: Console) -> None:
        for first, *others in self.rows:
            console.print(cell(first), style="bold")
            for title, each in zip(self.titles[1:], others, strict=True):
                if each != EMPTY:
                    words = one_line(f"{title} {cell(each)}")
                    console.print(textwrap.fill(words, console.width, initial_indent="  ", subsequent_indent="    "))

    def html(self) -> str:
        looks = [_RIGHT if right else _LEFT for right in self._to_the_right()]
        head = "".join(
            f'<th scope="col"{look}>{escaped(title)}</th>' for title, look in zip(self.titles, looks, strict=True)
        )
        body = ""
        for row in self.rows[:_MOST]:
            cells = (f"<td{look}>{escaped(cell(each))}</td>" for each, look in zip(row, looks, strict=True))
            body += f"<tr>{''.join(cells)}</tr>"
        more = f"<p>{self._more}</p>" if self._more else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def cell(value: object) -> str:
    """What stands in a cell: texts on one line, whole numbers in groups of three digits."""
    return f"{value:,}" if type(value) is int else one_line(value)


@dataclass(frozen=True, slots=True)
class Sheet:
    """Everything that an object shows, from the top."""

    blocks: Sequence[Block]

    @staticmethod
    def of(*blocks: Block | str) -> Sheet:
        """These blocks; a text is a line, and an empty one is left out."""
        return Sheet([Paragraph(each) if isinstance(each, str) else each for each in blocks if each])

    def write(self, console: Console) -> None:
        """Print it."""
        for block in self.blocks:
            block.write(console)

    def text(self, width: int | None = None) -> str:
        """The same as a text of this width, or of the terminal's."""
        from rich.console import Console

        stream = io.StringIO()
        self.write(Console(file=stream, width=width, highlight=False, markup=False, emoji=False, color_system=None))
        return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()).strip("\n")

    def html(self) -> str:
        """The same for a notebook."""
        return f'<div class="discreet">{"".join(block.html() for block in self.blocks)}</div>'


class Shown:
    """Something with a `sheet`: prints as that, and is that in a notebook."""

    __slots__ = ()

    def sheet(self) -> Sheet:
        raise NotImplementedError

    def __str__(self) -> str:
        return self.sheet().text()

    def _repr_html_(self) -> str:
        return self.sheet().html()


class Sentence:
    """Something that prints as one sentence, which is what a prompt and a notebook show of it, too."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {one_line(self)}>"

    def _repr_html_(self) -> str:
        return Sheet.of(str(self)).html()


# Numbers.


def number(value: Any) -> str:
    """A number for people: twelve digits, thousands in groups, no power of ten while it can be written out."""
    if type(value) is int:
        return f"{value:,}"
    if isinstance(value, Fraction) and value.denominator == 1:
        return f"{value.numerator:,}"
    found = float(value)
    if not math.isfinite(found) or not 1e-6 <= abs(found) < 1e15:
        return "0" if found == 0 else f"{found:.12g}"
    digits = max(0, 11 - math.floor(math.log10(abs(found))))
    return trimmed(f"{found:,.{digits}f}")


def trimmed(digits: str) -> str:
    """Decimals without the zeros at their end."""
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def rounded(value: float, bound: float) -> tuple[str, str]:
    """A value with the digits that its bound leaves it, and the bound with what that took away, rounded up: the truth
    lies between the two numbers that are shown."""
    if not 0 < bound < math.inf:
        return number(value), "0" if bound == 0 else NO_BOUND
    decimals = 3 - math.floor(math.log10(bound))
    near = round(value, decimals)
    return trimmed(f"{near:,.{max(0, decimals)}f}"), round_up(bound + abs(near - value))


def round_up(bound: float | Fraction, digits: int = 3) -> str:
    """A few digits, rounded up: a bound must not be shown as less than it is."""
    if bound == 0 or math.isinf(bound):
        return NO_BOUND if bound else "0"
    exactly = bound if isinstance(bound, Fraction) else Fraction(repr(float(bound)))  # as its shortest decimal
    places = math.floor(math.log10(bound)) + 1 - digits
    steps = math.ceil(exactly / Fraction(10) ** places)
    if places >= 0:
        return f"{steps * 10**places:,}"
    return trimmed(f"{steps / 10**-places:,.{-places}f}") if places > -12 else f"{steps / 10**-places:.6g}"
