"""What a question asks, and its standard spelling: the package's docstring has the language."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from discreet.data import Domain
from discreet.query import EVERYTHING, MAX_CELLS, And, Predicate
from discreet.sql.conditions import Scope, combined, condition, number, present
from discreet.sql.parser import Node, tree
from discreet.sql.render import aggregate_text, name_text, where_text
from discreet.sql.source import source

Kind = Literal["count", "sum", "average", "quantile"]

_QUANTILES = ("Median", "Quantile", "PercentileCont", "PercentileDisc", "WithinGroup")
_AGGREGATES = ("Count", "Sum", "Avg", *_QUANTILES)


@dataclass(frozen=True, slots=True)
class Select:
    """What a question asks.

    kind         "count", "sum", "average" or "quantile"
    where        of which rows. COUNT(column) and AVG(column) have "column is not missing" in it, so that an average is
                 the sum over `where` divided by the count over `where`; a missing value adds nothing to a sum, and
                 quantiles are of the values that are there
    groups       the columns of GROUP BY, in the order of the select list; only with "count"
    column       of a sum, an average or a quantile
    probability  of a quantile, strictly between 0 and 1; a median has 1/2
    """

    kind: Kind
    where: Predicate = EVERYTHING
    groups: tuple[str, ...] = ()
    column: str | None = None
    probability: Fraction | None = None


def parse(text: str, domain: Domain, *, table: str) -> Select:
    """What a question asks; UnsupportedQuery, with the reason, if that is not understood in full."""
    asked = source(text, domain, table)
    root = tree(asked)
    scope = Scope.of(asked, root)
    scope.only(root, "expressions", "from_", "where", "group")
    aggregate, listed = _selected(scope, root)
    where = root.args.get("where")
    rows = EVERYTHING if where is None else condition(scope, where.this)
    found = _aggregated(scope, aggregate, rows)
    return _grouped(scope, root, aggregate, found, listed)


def spelled(select: Select, domain: Domain, table: str) -> str:
    """The question in SQL, in one standard spelling; parsing it gives an equivalent question."""
    aggregate = aggregate_text(select.kind, select.column, select.probability)
    text = f"SELECT {', '.join([*map(name_text, select.groups), aggregate])} FROM {name_text(table)}"
    condition_text = where_text(select.where, domain)
    text += f" WHERE {condition_text}" if condition_text else ""
    return f"{text} GROUP BY {', '.join(map(name_text, select.groups))}" if select.groups else text


def _selected(scope: Scope, root: Node) -> tuple[Node, tuple[str, ...]]:
    """The one aggregate of the select list, and the columns beside it."""
    aggregates: list[Node] = []
    columns: list[str] = []
    for each in root.expressions:
        inner = each.this if type(each).__name__ == "Alias" else each
        kind = type(inner).__name__
        if kind == "Column":
            columns.append(scope.column(inner)[0])
        elif kind in _AGGREGATES:
            aggregates.append(inner)
        else:
            scope.refuse(inner, "COUNT, SUM, AVG or a quantile is expected here, or a grouped column", _SHAPES)
        if inner is not each:
            scope.check_alias(each.args["alias"], columns[-1] if kind == "Column" else None)
    if not aggregates:
        reason = "a question without COUNT, SUM, AVG or a quantile is not answered: rows are not shown"
        scope.refuse(root, reason, _SHAPES)
    if len(aggregates) > 1:
        scope.refuse(aggregates[1], "several aggregates in one question are not answered", "Ask them one at a time.")
    return aggregates[0], tuple(columns)


_SHAPES = "For example SELECT COUNT(*) FROM t, or SELECT a, COUNT(*) FROM t GROUP BY a, or SELECT AVG(x) FROM t."


def _aggregated(scope: Scope, node: Node, where: Predicate) -> Select:
    kind = type(node).__name__
    if kind in _QUANTILES:
        name, probability = _quantile(scope, node, kind)
        return Select("quantile", where, (), name, probability)
    scope.only(node, "this", "big_int")
    if kind == "Count" and type(node.this).__name__ == "Star":
        scope.only(node.this)
        return Select("count", where)
    if node.this is None:
        scope.refuse(node, "nothing is counted here", "Count rows by COUNT(*).")
    name, column = scope.column(node.this)
    if not column.coded:
        scope.refuse(node, f"column {name!r} is declared {column!r}: SQL cannot ask about it", _SHAPES)
    if kind == "Count":
        return Select("count", combined(And, [where, present(name, column)]))
    if not column.bounded:
        hint = "Declare it Number(low, high, step): sums need bounds."
        scope.refuse(node, f"column {name!r} is declared {column!r}: it has no bounded sum", hint)
    if kind == "Sum":
        return Select("sum", where, (), name)
    return Select("average", combined(And, [where, present(name, column)]), (), name)


def _quantile(scope: Scope, node: Node, kind: str) -> tuple[str, Fraction]:
    """MEDIAN(x), QUANTILE(x, p) and PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x): the column and the probability."""
    chance: Node | None = None
    if kind == "WithinGroup":
        scope.only(node, "this", "expression")
        scope.only(node.this, "this")
        order = node.expression
        columns = order.expressions if type(order).__name__ == "Order" else []
        if type(node.this).__name__ not in ("PercentileCont", "PercentileDisc") or len(columns) != 1:
            reason = "WITHIN GROUP is answered as PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age) only"
            scope.refuse(node, reason, _SHAPES)
        scope.only(order, "expressions")
        scope.only(columns[0], "this")
        chance, target = node.this.this, columns[0].this
    else:
        part = "quantile" if kind == "Quantile" else "expression"
        scope.only(node, "this", *(() if kind == "Median" else (part,)))
        chance, target = node.args.get(part), node.this
    if target is None or (chance is None and kind != "Median"):
        scope.refuse(node, "a quantile needs a column and a probability", "For example QUANTILE_CONT(age, 0.9).")
    probability = Fraction(1, 2) if chance is None else number(scope, chance)
    if not 0 < probability < 1:
        hint = "The smallest and the largest value have no private answer; ask for 0.01 or 0.99."
        scope.refuse(node, f"a quantile's probability lies strictly between 0 and 1, found {probability}", hint)
    name, column = scope.column(target)
    if not (column.coded and column.ordered):
        scope.refuse(node, f"column {name!r} is declared {column!r}: it has no quantiles", "Quantiles are of numbers.")
    return name, probability


def _grouped(scope: Scope, root: Node, aggregate: Node, found: Select, listed: tuple[str, ...]) -> Select:
    """The question with its groups: the select list names exactly the grouped columns."""
    group = root.args.get("group")
    if group is None:
        if listed:
            hint = f"Add GROUP BY {', '.join(listed)}."
            scope.refuse(root.expressions[0], f"column {listed[0]!r} is selected but not grouped by", hint)
        return found
    scope.only(group, "expressions")
    if not group.expressions:
        scope.refuse(group, "GROUP BY names no column", "Write GROUP BY column, or leave it out.")
    columns = [scope.column(each) for each in group.expressions]
    names = [name for name, _ in columns]
    if found.kind != "count":
        scope.refuse(aggregate, "only counts are answered in groups", "Ask for one group at a time, with WHERE.")
    if len(set(names)) < len(names) or sorted(names) != sorted(listed):
        named = ", ".join(dict.fromkeys(names))
        hint = f"Write SELECT {named}, COUNT(*) ... GROUP BY {named}."
        scope.refuse(group, "the select list and GROUP BY must name the same columns, each once", hint)
    for node, (name, column) in zip(group.expressions, columns, strict=True):
        if not column.listed:
            scope.refuse(node, f"column {name!r} is declared {column!r}: its values cannot be listed", _SHAPES)
    if math.prod(column.size for _, column in columns) > MAX_CELLS:
        scope.refuse(
            group, f"these groups have more than {MAX_CELLS:,} cells", "Group by fewer columns, or by coarser ones."
        )
    return Select(found.kind, found.where, listed)
