"""What a question asks, as a value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from discreet.data import Domain
from discreet.query import Of, OfPersons, PersonRows, Plus, Predicate, Question, Sum, Value
from discreet.sql.expressions import (
    Arithmetic,
    Expression,
    Made,
    MeanOf,
    Moments,
    QuantileOf,
    Rising,
    Spread,
    SumFromMean,
    Total,
)
from discreet.sql.over_groups import Over
from discreet.sql.values import GroupedBy


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """One column of the answer: what it is called, what it is, and in what unit."""

    name: str
    expression: Expression
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Sorting:
    """What rows are sorted by."""

    expression: Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Statement:
    """What a question asks.

    tables   the declared tables that its rows come from: one, or two that are joined
    where    of which rows
    keys     what the rows are grouped by, in the order of GROUP BY
    outputs  the columns of the answer
    having, qualify, order, limit, offset    what is done with the groups, after the noise
    gathers  what the groups are gathered by into fewer, if they are: by nothing into one row
    then     which of the gathered groups are kept
    below    what is asked for below it, by UNION ALL or by several groupings
    axes     the places of the keys in the order in which the queries have them
    made     the rows that it is about, if they are made of each person's rows; the queries are about these
    """

    tables: tuple[str, ...]
    where: Predicate
    keys: tuple[GroupedBy, ...]
    outputs: tuple[OutputColumn, ...]
    having: Expression | None = None
    order: tuple[Sorting, ...] = ()
    limit: int | None = None
    offset: int = 0
    axes: tuple[int, ...] = ()
    qualify: Expression | None = None
    gathers: tuple[Expression, ...] | None = None
    then: Expression | None = None
    below: tuple[Statement, ...] = ()
    made: PersonRows | None = None

    @property
    def expressions(self) -> Iterator[Expression]:
        """Everything that is estimated in a group."""
        for each in (*(output.expression for output in self.outputs), *(by.expression for by in self.order)):
            yield from each.walk()
        for chosen in (self.having, self.qualify, self.then):
            if chosen is not None:
                yield from chosen.walk()
        for statement in self.below:
            yield from statement.expressions

    @property
    def questions(self) -> list[Question]:
        """The linear queries that it is made of, each once."""
        return list(dict.fromkeys(query for each in self.expressions for query in each.questions))

    @property
    def quantiles(self) -> list[QuantileOf]:
        """The quantiles that it asks for, each once."""
        return list(dict.fromkeys(each for each in self.expressions if isinstance(each, QuantileOf)))

    @property
    def aggregates(self) -> list[OutputColumn]:
        """The outputs that are not just what is grouped by."""
        return [output for output in self.outputs if any(part.aggregate for part in output.expression.walk())]


def key_order(keys: Sequence[GroupedBy], domain: Domain) -> list[int]:
    """The places of the keys in the order in which queries have them: plain columns as declared, then the others."""
    names = list(domain.names)

    def rank(place: int) -> tuple[int, str]:
        key = keys[place].key
        return (names.index(key), "") if isinstance(key, str) else (len(names), repr(key))

    return sorted(range(len(keys)), key=rank)


def shared(statement: Statement) -> Statement:
    """Sums are read off the centred sums that averages are made of, where both are asked for."""
    means = {
        (each.moments.total.where, each.moments.total.grouped, _uncentred(each.moments)): each.moments
        for each in statement.expressions
        if isinstance(each, (MeanOf, Spread))
    }
    if not means:
        return statement

    def change(expression: Expression) -> Expression:
        match expression:
            case Total(question=question) if not question.counting:
                moments = means.get((question.where, question.grouped, summand(question)))
                return expression if moments is None else SumFromMean(moments)
            case Arithmetic(sign=sign, left=left, right=right, most=most):
                return Arithmetic(sign, change(left), change(right), most)
            case Rising(inner=inner):
                return replace(expression, inner=change(inner))
            case Made(given=given, results=results):
                return replace(expression, given=tuple(map(change, given)), results=tuple(map(change, results)))
            case Over():
                ordered = tuple((change(each), down, first) for each, down, first in expression.order)
                return replace(expression, inner=change(expression.inner), order=ordered)
        return expression

    outputs = tuple(replace(output, expression=change(output.expression)) for output in statement.outputs)
    order = tuple(replace(by, expression=change(by.expression)) for by in statement.order)
    having, qualify = (None if one is None else change(one) for one in (statement.having, statement.qualify))
    return replace(statement, outputs=outputs, order=order, having=having, qualify=qualify)


def summand(question: Any) -> Value:
    if isinstance(question, OfPersons):
        return summand(question.query)
    return Of(question.column) if isinstance(question, Sum) else question.value


def _uncentred(moments: Moments) -> Value:
    value = summand(moments.total)
    return value.parts[0] if isinstance(value, Plus) and moments.centre and len(value.parts) == 2 else value
