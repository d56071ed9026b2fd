"""Questions in a text: where each ends, and on which line it stands.

A question ends with a semicolon that is not inside quotes; no quotes reach over the end of a line. From -- to the end
of the line is a comment. A text without any semicolon has one question a line.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Written:
    """A question as it stands in a text, its lines joined by spaces.

    starts  where in the question each of its lines begins     first   the number of its first line
    """

    text: str
    starts: tuple[int, ...]
    first: int

    def line(self, position: int | None = None) -> int:
        """The number of the line of a position in the question, or of its first line."""
        return self.first if position is None else self.first + max(0, bisect.bisect_right(self.starts, position) - 1)


def questions(text: str) -> list[Written]:
    """The questions of a whole text; the last may have no semicolon."""
    found, rest = ended(text)
    if not found:
        lines = enumerate(text.splitlines(), 1)
        return [
            Written(line.strip(), (0,), number) for number, line in lines if line.strip(" \t;") and not _comment(line)
        ]
    return [*found, *([rest] if rest is not None else [])]


def ended(text: str) -> tuple[list[Written], Written | None]:
    """The questions that a semicolon ends, without it, and what comes after the last of them, if anything does."""
    found, lines = list[list[tuple[int, str]]](), list[tuple[int, str]]()
    for number, line in enumerate(text.splitlines(), 1):
        *whole, rest = [line] if _comment(line) else _parts(line)
        for part in whole:
            found.append([*lines, (number, part)])
            lines = []
        lines.append((number, "" if _comment(line) else rest))
    return list(filter(None, map(_written, found))), _written(lines)


def _parts(line: str) -> list[str]:
    """What is between the semicolons of a line. A quote that the line does not close is a sign like others."""
    parts, begin, quote = list[str](), 0, ""
    for place, sign in enumerate(line):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"" and sign in line[place + 1 :]:
            quote = sign
        elif line.startswith("--", place):  # lines are joined: a comment would hide the next one
            return [*parts, line[begin:place]]
        elif sign == ";":
            parts, begin = [*parts, line[begin:place]], place + 1
    return [*parts, line[begin:]]


def _written(lines: list[tuple[int, str]]) -> Written | None:
    """Lines as one question; None if there is nothing on them."""
    kept = [(number, line.strip()) for number, line in lines if line.strip()]
    if not kept:
        return None
    first = kept[0][0]
    texts = dict(kept)
    joined, starts = "", list[int]()
    for number in range(first, kept[-1][0] + 1):
        starts.append(len(joined) + (1 if joined else 0))
        joined = " ".join(filter(None, [joined, texts.get(number, "")]))
    return Written(joined, tuple(starts), first)


def _comment(line: str) -> bool:
    return line.lstrip().startswith("--")
