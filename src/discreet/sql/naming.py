"""What the parts of a question are called, and which of them are the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from discreet.sql.grammar import Item, Node
from discreet.sql.scope import Scope
from discreet.sql.source import AGGREGATES, Source, folded
from discreet.sql.values import label

SHAPES = "For example SELECT COUNT(*) FROM t, or SELECT a, COUNT(*) FROM t GROUP BY a, or SELECT AVG(x) FROM t."


def ordinal(asked: Source, items: Sequence[Item], node: Node) -> Item:
    place = node.value
    if place.denominator != 1 or not 1 <= place <= len(items):
        hint = f"Places in the select list are 1 to {len(items)}."
        raise asked.refused(node.start, f"there is no place {place} in the select list", hint)
    return items[int(place) - 1]


def named(scope: Scope, item: Item) -> str:
    """What a column of the answer is called: its new name, its own name, or as it is written."""
    if item.alias is not None:
        return item.alias
    found = scope.column(item.node) if item.node.kind == "name" and not aggregated(scope, item.node) else None
    if found is not None:
        own, name = found[0].rpartition(".")[2], item.node.value[1]  # of joined tables it may stand behind a point
        return found[0] if folded(name) in (folded(own), folded(found[0])) else str(name)
    return written(item.node)


def written(node: Node) -> str:
    """An expression as text: a name for a column of an answer."""
    match node.kind:
        case "name":
            return ".".join(part for part in node.value if part)
        case "number":
            return str(label(node.value))
        case "text" | "date":
            return f"'{node.value}'"
        case "null" | "boolean":
            return "NULL" if node.kind == "null" else str(node.value).upper()
        case "star":
            return "*"
        case "call":
            inside = ", ".join(map(written, node.parts))
            return f"{node.value[0]}({'DISTINCT ' if node.value[1] else ''}{inside})"
        case "filter":
            return f"{written(node.parts[0])} FILTER ({written(node.parts[1])})"
        case "within":
            return f"{written(node.parts[0])} OF {written(node.parts[1])}"
        case "minus":
            return f"-{written(node.parts[0])}"
        case "case":
            return "CASE"
        case "cast":
            return written(node.parts[0])
        case "and" | "or":
            return f" {node.kind.upper()} ".join(map(written, node.parts))
        case "select":
            return "(SELECT)"
        case "over":
            return f"{written(node.parts[0])} OVER ()"
        case "between" | "in" | "like" | "is" | "not" | "interval":
            return f"{node.kind} {' '.join(map(written, node.parts))}"
    return f"{written(node.parts[0])} {node.kind} {written(node.parts[1])}"


def calls(node: Node) -> bool:
    if node.kind == "over":
        return False
    return (node.kind == "call" and node.value[0] in AGGREGATES) or any(map(calls, node.parts))


def brackets(node: Node) -> bool:
    """Whether there is a question in brackets in an expression."""
    return any(each.kind == "select" for each in node.walk())


def aggregated(scope: Scope, node: Node) -> bool:
    """Whether there is an aggregate in an expression."""
    inner, meant = (scope, node) if node.kind != "name" else followed(scope, node)
    if meant.kind == "over" or (meant.kind == "call" and meant.value[0] in AGGREGATES):
        return True
    return any(aggregated(inner, part) for part in meant.parts)


def followed(scope: Scope, node: Node) -> tuple[Scope, Node]:
    name = node.value[1]
    if not scope.known(name) and folded(name) not in scope.aliases:
        return scope, node  # a column that names persons, or refused where it is used
    return scope.through(node)


def signature(scope: Scope, node: Node) -> Any:
    """What makes two expressions the same, however they are written."""
    if node.kind != "name":
        return node.kind, node.value, tuple(signature(scope, part) for part in node.parts)
    inner, meant = followed(scope, node)
    if meant.kind != "name":
        return signature(inner, meant)
    if not inner.known(meant.value[1]):
        return "name", folded(meant.value[1])
    return "column", inner.meaning(meant)


def unit_of(scope: Scope, node: Node) -> str:
    """The unit of a column of the answer: the column that is summed or averaged; empty for counts and others."""
    scope, meant = followed(scope, node) if node.kind == "name" else (scope, node)
    call = meant.parts[0] if meant.kind in ("filter", "within") else meant
    target = meant.parts[1] if meant.kind == "within" else call.parts[0] if call.parts else None
    if call.kind != "call" or call.value[0] not in AGGREGATES or target is None or target.kind != "name":
        return ""
    found = None if call.value[0] in ("COUNT", "COUNT_IF", "COUNTIF", "CORR") else scope.column(target)
    return "" if found is None else found[0]
