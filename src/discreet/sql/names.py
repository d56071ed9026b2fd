"""What names and numbers mean in a question, and how a part of it is refused."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

from discreet.data import Column, near_misses
from discreet.sql.parser import Node, position
from discreet.sql.source import Source, character, folded, shown

_LONGEST = 60  # characters of a name that are compared with the declared ones
_NAMED = 10  # declared columns that a hint names

_IN_WORDS = {
    ("Count", "expressions"): "counting several columns",
    ("Table", "db"): "a schema before the table's name",
    ("Column", "db"): "a schema before the column's name",
}


@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean in a question: its columns, and the name that may stand before them."""

    asked: Source
    qualifier: str

    def refuse(self, node: Node, reason: str, hint: str) -> NoReturn:
        raise self.asked.refused(position(node), reason, hint)

    def only(self, node: Node, *parts: str) -> None:
        """Nothing but these parts is in a node."""
        for part, value in node.args.items():
            if part not in parts and value is not None and value is not False and value != []:
                what = _IN_WORDS.get((type(node).__name__, part), f"this part of SQL ({type(node).__name__}, {part})")
                self.refuse(node, f"{what} is not answered", self.asked.example)

    def column(self, node: Node) -> tuple[str, Column]:
        """The declared column that a node names."""
        if type(node).__name__ != "Column" or type(node.this).__name__ != "Identifier":
            self.refuse(node, "a column is expected here", f"Columns: {', '.join(self.asked.domain.names)}.")
        self.only(node, "this", "table")
        if node.args.get("table") is not None and folded(node.args["table"].this) != folded(self.qualifier):
            reason = f"{shown(node.args['table'].this)} is not the table"
            self.refuse(node, reason, f"Before a column may stand {shown(self.qualifier)}, or nothing.")
        name = self.asked.declared(node.this.this)
        return (name, self.asked.domain.column(name)) if name is not None else self._unknown(node, node.this.this)

    def _unknown(self, node: Node, name: str) -> NoReturn:
        """Refuses an undeclared column: an odd character in it is named, or else declared names that are near it."""
        strange = next((sign for sign in name if not sign.isascii()), None)
        if strange is not None:
            hint = f"Declared: {', '.join(map(ascii, self.asked.domain.names[:_NAMED]))}."
            self.refuse(node, f"{shown(name)} is not a declared column; it holds {character(strange)}", hint)
        declared = self.asked.domain.names
        near = near_misses(name[:_LONGEST], declared).strip()
        more = ", ..." if len(declared) > _NAMED else ""
        hint = near or f"Declared: {', '.join(map(shown, declared[:_NAMED]))}{more}."
        self.refuse(node, f"column {shown(name)} is not declared", hint)


def number(scope: Scope, node: Node) -> Fraction:
    """A literal number, exactly."""
    if type(node).__name__ == "Neg" and type(node.this).__name__ == "Literal" and not node.this.is_string:
        return -Fraction(node.this.this)
    if type(node).__name__ != "Literal" or node.is_string:
        scope.refuse(node, "a number is expected here", "Numbers are plain decimals such as 3, -0.25 or 1e3.")
    return Fraction(node.this)
