"""From a question's text to one syntax tree: the only module that knows sqlglot.

sqlglot reads many dialects and is generous: it skips comments, trailing commas and surplus arguments. So

  * its tokens are matched against a small list first, and nesting is shallow, since the parser recurses;
  * afterwards the tokens that the tree's nodes stand for are compared with those that were there. A parser that dropped
    or invented something is found out, and the question is refused.

What the tree means is decided elsewhere, again over a list. Nothing here, or there, executes anything.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

from discreet.errors import ParameterError
from discreet.sql.source import Source
from discreet.sql.tokens import Piece, pieces

Node = Any
"""A node of sqlglot's tree."""

# What each node stands for among the tokens; names, texts and numbers are compared one by one besides.
_CALL_NODES = ("Count", "Sum", "Avg", "Median", "Quantile", "PercentileCont", "PercentileDisc")
_STANDS_FOR: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_CALL_NODES, ("call", "(")),
    **{"Select": ("SELECT",), "From": ("FROM",), "Where": ("WHERE",), "Group": ("GROUP BY",)},
    **{"And": ("AND",), "Or": ("OR",), "Not": ("NOT",), "Is": ("IS",), "Null": ("NULL",), "Paren": ("(",)},
    **{"Between": ("BETWEEN", "AND"), "In": ("IN", "("), "Neg": ("-",), "Star": ("*",)},
    **{"EQ": ("=",), "NEQ": ("<>",), "LT": ("<",), "LTE": ("<=",), "GT": (">",), "GTE": (">=",)},
    **{"WithinGroup": ("WITHIN", "("), "Order": ("ORDER BY",)},
    **dict.fromkeys(("Column", "Table", "TableAlias", "Alias", "Ordered"), ()),
}
_IN_WORDS = {"Join": "a second table", "Subquery": "a subquery", "Concat": "joining texts", "Tuple": "a list"}
_UNCOUNTED = frozenset({")", ",", ".", "AS", "ASC", "GROUP"})
_SAME = {"!=": "<>", "TRUE": "True", "FALSE": "False"}


def tree(asked: Source) -> Node:
    """The one SELECT that the text is, as sqlglot's tree, every part of which was in the text."""
    try:
        duckdb, errors = (importlib.import_module(f"sqlglot.{name}") for name in ("dialects.duckdb", "errors"))
    except ImportError:
        raise ParameterError("questions in SQL need sqlglot: pip install discreet[sql]") from None
    dialect = duckdb.DuckDB()
    try:
        tokens = list(dialect.tokenize(asked.text))
    except Exception:  # its messages quote the text at length
        raise asked.refused(0, "the question cannot be taken apart into words", asked.example) from None
    given = pieces(asked, tokens)
    try:
        found = dialect.parser().parse([piece.token for piece in given], asked.text)
    except errors.ParseError as error:  # where the parser stopped: the token that ends at its line and column
        spots = {(place.get("line"), place.get("col")) for place in error.errors}
        stops = (piece.start for piece in given if (piece.token.line, piece.token.col) in spots)
        at = next(stops, given[-1].start)
        raise asked.refused(at, "the question breaks off or goes wrong here", asked.example) from None
    except (Exception, RecursionError):  # whatever a parser does with odd text is no answer
        raise asked.refused(0, "the question cannot be parsed", asked.example) from None
    if len(found) != 1 or found[0] is None:
        raise asked.refused(0, "a question is one SELECT", asked.example)
    _check_whole(asked, given, found[0])
    # The parser notes no positions for some nodes; both sides are in the order of the text.
    nodes = [node for node in found[0].walk(bfs=False) if type(node).__name__ in ("Null", "Boolean", "Neg")]
    marks = [piece.start for piece in given if piece.kind in ("NULL", "TRUE", "FALSE", "-")]
    for node, start in zip(nodes, marks, strict=True):
        node.meta["start"] = start
    return found[0]


def position(node: Node) -> int:
    """Where in the text a node's first word is, as far as the parser knows."""
    places = [each.meta["start"] for each in node.walk() if "start" in each.meta]
    return int(min(places, default=0)) if places or node.parent is None else position(node.parent)


def _check_whole(asked: Source, given: Sequence[Piece], root: Node) -> None:
    """The tree stands for exactly the pieces that were there; a node that is not listed is refused."""
    meant: Counter[tuple[str, str]] = Counter()
    for node in root.walk():
        match type(node).__name__:
            case "Identifier":
                meant["name", node.this] += 1
            case "Literal":
                meant["text" if node.is_string else "number", node.this] += 1
            case "Boolean":
                meant[str(node.this), ""] += 1
            case kind if kind in _STANDS_FOR:
                meant.update((word, "") for word in _STANDS_FOR[kind])
            case kind:
                reason = f"{_IN_WORDS.get(kind, f'this part of SQL ({kind})')} is not answered"
                raise asked.refused(position(node), reason, asked.example)
    # A piece as it must be in the tree, with its text where the tree keeps it, and where it is.
    there = [
        (
            (_SAME.get(piece.kind, piece.kind), piece.text if piece.kind in ("name", "text", "number") else ""),
            piece.start,
        )
        for piece in given
        if piece.kind not in _UNCOUNTED
    ]
    surplus = Counter(each for each, _ in there) - meant
    if surplus or meant - Counter(each for each, _ in there):
        at = next((start for each, start in there if each in surplus), 0)
        raise asked.refused(at, "this is not where it belongs, or not spelled out", asked.example)
