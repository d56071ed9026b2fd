"""The words and signs of a question, each of a listed kind and where it has a meaning; all others are refused.

A piece is a keyword or a sign of the language, a call of a listed function, a text, a plain decimal or a name. Names
are handed on as quoted names, so that no name can be a keyword to the parser.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from discreet.errors import UnsupportedQuery
from discreet.sql.source import CALLS, KEYWORDS, ONE_TABLE, PLAIN, SIGNS, Source, folded, is_word, shown

MAX_DEPTH = 16
"""Brackets and NOTs within each other. The parser takes about twenty calls for each, and Python allows a thousand."""

_CLAUSES = ("SELECT", "FROM", "WHERE", "GROUP BY")
_BEFORE_MINUS = frozenset({"(", ",", "=", "<>", "!=", "<", "<=", ">", ">=", "BETWEEN", "AND", "OR", "NOT", "WHERE"})
_ENDS = frozenset({"name", "text", "number", "NULL", "TRUE", "FALSE", ")"})
_STARTS = frozenset({"name", "text", "number", "NULL", "TRUE", "FALSE", "(", "-", ".", "call"})
_TRUTHS = frozenset({"NULL", "TRUE", "FALSE"})
_AFTER_NOT = (frozenset({"IN", "BETWEEN"}), _TRUTHS)
_NAME, _OPEN, _CLOSED = frozenset({"name"}), frozenset({"("}), frozenset({")"})
# Before what and after what a piece may stand (None: anything), and what is said otherwise.
_PLACES: dict[str, tuple[frozenset[str] | None, frozenset[str], str, str]] = {
    ",": (_ENDS, _STARTS, "a comma stands between two things, and here it does not", "Leave it out."),
    ".": (_NAME, _NAME | {"*"}, "a point stands in numbers and in table.column only", "Write 0.5, not .5"),
    "-": (None, frozenset({"number"}), "a minus sign without a number is not read", "Negative numbers look like -3."),
    "IN": (None, _OPEN, "IN needs a list of values in brackets", "For example age IN (1, 2, 3)."),
    "IS": (_ENDS, _TRUTHS | {"NOT"}, "IS is answered before NULL, TRUE and FALSE only", "Write column IS NULL."),
    "AS": (_ENDS, _NAME, "AS stands before a new name", 'For example COUNT(*) AS total; odd names are quoted: "a b".'),
    "ASC": (_NAME, _CLOSED, "ASC stands after WITHIN GROUP (ORDER BY column only", "Leave it out."),
    "GROUP BY": (None, _STARTS, "GROUP BY names no column", "Write GROUP BY column, or leave it out."),
    "GROUP": (frozenset({"WITHIN"}), _OPEN, "GROUP needs BY after it", "Write GROUP BY column."),
    "WITHIN": (_CLOSED, frozenset({"GROUP"}), "WITHIN needs GROUP after it", "WITHIN GROUP (ORDER BY column)."),
}
_DECIMAL = re.compile(r"[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,3})?\Z")
_WORD = re.compile(r"[^\W\d]\w*\Z")
_SHAPES = {"text": re.compile(r"'(?:[^']|'')*'\Z"), "name": re.compile(r'"(?:[^"]|"")+"\Z'), "number": _DECIMAL}
_TYPES = {"STRING": "text", "IDENTIFIER": "name", "NUMBER": "number"}


@dataclass(frozen=True, slots=True)
class Piece:
    """A token: its kind is "name", "text", "number", "call", a keyword or a sign."""

    kind: str
    text: str
    start: int
    token: Any


def pieces(asked: Source, tokens: Sequence[Any]) -> list[Piece]:
    """The pieces that sqlglot's tokens are, without a last semicolon, if a question may be made of them: one statement,
    its clauses once and in order, and signs only where they have a meaning."""
    slices = [asked.text[token.start : token.end + 1] for token in tokens]
    words = [" ".join(written.upper().split()) for written in slices]
    read, ended = list[Piece](), 0
    for place, (token, written) in enumerate(zip(tokens, slices, strict=True)):
        _check_read(asked, ended, token.start)
        ended = token.end + 1
        if words[place] == "ORDER BY" and words[max(0, place - 2) : place] != ["GROUP", "("]:
            raise _known(asked, token.start, "ORDER BY")  # now: of what follows it no word is worth a refusal
        following = slices[place + 1] if place + 1 < len(slices) else ""
        alias = place > 0 and slices[place - 1].upper() == "AS"
        read.append(_piece(asked, token, written, called=following == "(", alias=alias))
    _check_read(asked, ended, len(asked.text))
    if read[-1].kind == ";":
        read.pop()
    if not read or read[0].kind != "SELECT":
        raise asked.refused(0, "a question begins with SELECT", asked.example)
    reached = -1
    for place, piece in enumerate(read):
        if piece.kind in _CLAUSES:
            rank = _CLAUSES.index(piece.kind)
            if rank <= reached:
                what = "a subquery or a second SELECT" if rank == 0 else f"a second or late {piece.kind}"
                hint = ONE_TABLE if rank == 0 else "The order is SELECT, FROM, WHERE, GROUP BY, each once."
                raise asked.refused(piece.start, f"{what} is not answered", hint)
            reached = rank
        _check_sign(asked, read, place)
    _check_depth(asked, read)
    return read


def _check_read(asked: Source, start: int, end: int) -> None:
    """Nothing but space lies between two tokens."""
    between = asked.text[start:end].strip(" \t\r\n")
    if between:
        raise asked.refused(start, f"{shown(asked.text[start:end].strip())} is not read", asked.example)


def _piece(asked: Source, token: Any, written: str, *, called: bool, alias: bool) -> Piece:
    word = " ".join(written.upper().split()) if written.isascii() else ""  # the long s is no S
    start, type_name = token.start, token.token_type.name
    if type_name in _TYPES:  # texts, quoted names and numbers, in the one plain way of writing each
        kind, after = _TYPES[type_name], asked.text[token.end + 1 : token.end + 2]
        if not _SHAPES[kind].match(written) or (kind == "number" and (after.isalnum() or after in ("_", "."))):
            hint = "Numbers are plain decimals such as 3, -0.25 or 1e3; texts look like 'F', names like \"my column\"."
            raise asked.refused(start, f"{shown(written + after)} is not read", hint)
        if kind != "name":
            return Piece(kind, token.text, start, token)
        if called:
            raise _call_refused(asked, start, token.text)
        return _name(token, token.text)
    if word in SIGNS or word in KEYWORDS:
        return Piece(word, written, start, token)
    if called and _WORD.match(written):
        if written.isascii() and written.upper() in CALLS:
            return Piece("call", written, start, token)
        known = None if asked.declared(written) else asked.not_answered(start, written)
        raise known or _call_refused(asked, start, written)
    is_known = asked.declared(written) is not None or folded(written) == folded(asked.table)
    if alias and is_word(written):
        raise asked.refused(start, f"{shown(written)} is a word of SQL", "Write the new name in double quotes.")
    if not is_known and (refusal := asked.not_answered(start, written)) is not None:
        raise refusal
    if not _WORD.match(written) or not (is_known or alias or type_name == "VAR"):
        hint = f"If it is a column, write it in double quotes. {PLAIN}"
        raise asked.refused(start, f"{shown(written)} is not read", hint)
    return _name(token, written)


def _call_refused(asked: Source, start: int, name: str) -> UnsupportedQuery:
    hint = "Answered are COUNT, SUM, AVG, MEDIAN, QUANTILE_CONT and PERCENTILE_CONT; instead of MAX ask for a quantile."
    return asked.refused(start, f"the function {shown(name)} is not answered", hint)


def _name(token: Any, name: str) -> Piece:
    # The parser's own classes, without importing it.
    identifier = type(token.token_type).IDENTIFIER
    quoted = type(token)(identifier, name, token.line, token.col, token.start, token.end)
    return Piece("name", name, token.start, quoted)


def _check_sign(asked: Source, pieces: Sequence[Piece], place: int) -> None:
    """The piece stands where it has a meaning; the parser would pass over some that do not."""
    start, kind = pieces[place].start, pieces[place].kind
    before = pieces[place - 1].kind if place else ""
    after = pieces[place + 1].kind if place + 1 < len(pieces) else ""
    if kind == "*" and (before, after) != ("(", ")"):
        if before in ("SELECT", ",", "."):
            hint = "Rows are never shown: ask SELECT COUNT(*), or draw synthetic rows."
            raise asked.refused(start, "SELECT * is not answered", hint)
        raise _known(asked, start, kind)
    if kind == ";" or (kind == "-" and before not in _BEFORE_MINUS):
        raise _known(asked, start, kind)
    if kind == "NOT" and (before in _ENDS or before == "IS") and after not in _AFTER_NOT[before == "IS"]:
        hint = "Write column IS NOT NULL, column NOT IN (...), or NOT before a whole condition."
        raise asked.refused(start, "NOT is in the wrong place", hint)
    between = _PLACES.get(kind)
    if between is not None and not (before in (between[0] or (before,)) and after in between[1]):
        raise asked.refused(start, between[2], between[3])


def _known(asked: Source, start: int, kind: str) -> UnsupportedQuery:
    return asked.not_answered(start, kind) or asked.refused(start, f"{shown(kind)} is not read", asked.example)


def _check_depth(asked: Source, pieces: Sequence[Piece]) -> None:
    """Brackets close and, with the NOTs around them, are nested less than MAX_DEPTH deep."""
    opened: list[tuple[int, int]] = []  # the NOTs before a bracket that is still open, and where it is
    depth = nots = 0
    for piece in pieces:
        if piece.kind == "(":
            opened.append((nots, piece.start))
            depth += nots + 1
        elif piece.kind == ")":
            if not opened:
                raise asked.refused(piece.start, "a bracket is closed that was not opened", "Count the brackets.")
            depth -= opened.pop()[0] + 1
        nots = nots + 1 if piece.kind == "NOT" else 0
        if depth + nots > MAX_DEPTH:
            reason = f"brackets and NOTs are nested more than {MAX_DEPTH} deep"
            raise asked.refused(piece.start, reason, "Write the condition with fewer brackets.")
    if opened:
        raise asked.refused(opened[-1][1], "a bracket is opened and never closed", "Count the brackets.")
