"""The words and signs of a question: names, texts, plain decimals, and the listed signs. Nothing else is read."""

from __future__ import annotations

import re
from dataclasses import dataclass

from discreet.sql.source import COMMENT, ODD_NAME, Source, shown

MAX_DEPTH = 16
"""Brackets, NOTs, CASEs and calls within each other."""

_SHAPES = re.compile(
    rf"(?P<space>[ \t\r\n]+|{COMMENT})|(?P<odd>{ODD_NAME})"
    r"|(?P<text>'(?:[^']|'')*')"
    r'|(?P<quoted>"(?:[^"]|"")+")'
    r"|(?P<number>[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,3})?(?![\w.]))"
    r"|(?P<word>[^\W\d]\w*)"
    r"|(?P<foreign>==|<=>|\*\*)"
    r"|(?P<sign><=|>=|<>|!=|//|::|\|\||[(),.*=<>;+/%-])"
)
_PLAIN = "Numbers are plain decimals such as 3, -0.25 or 1e3; texts look like 'F', names like \"my column\"."


@dataclass(frozen=True, slots=True)
class Piece:
    """A token: a "name" in quotes, a "word" (a name, or a word of SQL), a "text", a "number", a sign, the "index" of a
    list, or the "end".

    word  the word in capitals, if it is one and has ASCII letters only: the long s is no S; otherwise empty
    """

    kind: str
    text: str
    start: int
    word: str = ""


def pieces(asked: Source) -> list[Piece]:
    """The pieces of a question, without a last semicolon; brackets close, and are not nested too deep."""
    found, place = list[Piece](), 0
    while place < len(asked.text):
        match = _SHAPES.match(asked.text, place)
        if match is None or match.lastgroup == "foreign":
            raise _unread(asked, place)
        if match.lastgroup != "space":
            found.append(_piece(match))
        place = match.end()
    if found and found[-1].kind == ";":
        found.pop()
    _check_brackets(asked, found)
    return [*found, Piece("end", "", len(asked.text.rstrip(" \t\r\n;")))]


def _piece(match: re.Match[str]) -> Piece:
    written, start = match[0], match.start()
    match match.lastgroup:
        case "text":
            return Piece("text", written[1:-1].replace("''", "'"), start)
        case "quoted":
            return Piece("name", written[1:-1].replace('""', '"'), start)
        case "odd" if "(" in written:
            return Piece("index", written.upper(), start)
        case "odd":
            return Piece("name", written[1:-1], start)
        case "number":
            return Piece("number", written, start)
        case "word":
            return Piece("word", written, start, written.upper() if written.isascii() else "")
    return Piece("<>" if written == "!=" else written, written, start)


def _unread(asked: Source, place: int) -> Exception:
    written = re.match(r"[\w.]*", asked.text[place:])
    word = written[0] if written and written[0] else asked.text[place : place + 3]
    known = (
        asked.not_answered(place, word) or asked.not_answered(place, word[:2]) or asked.not_answered(place, word[:1])
    )
    return known or asked.refused(place, f"{shown(word)} is not read", _PLAIN)


def _check_brackets(asked: Source, found: list[Piece]) -> None:
    opened: list[int] = []
    for piece in found:
        if piece.kind == ";":
            refusal = asked.not_answered(piece.start, ";")
            assert refusal is not None
            raise refusal
        if piece.kind == "(":
            opened.append(piece.start)
        elif piece.kind == ")":
            if not opened:
                raise asked.refused(piece.start, "a bracket is closed that was not opened", "Count the brackets.")
            opened.pop()
        if len(opened) > MAX_DEPTH:
            raise asked.too_deep(piece.start, MAX_DEPTH)
    if opened:
        raise asked.refused(opened[-1], "a bracket is opened and never closed", "Count the brackets.")
