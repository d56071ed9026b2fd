"""An answer, inside a session and outside; and how SQL's aggregates are put together from linear queries."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from discreet.answering.linear_query import constant, linear
from discreet.data import Facts
from discreet.errors import ParameterError, UnsupportedQuery
from discreet.query import Count, Histogram, Question, Sum, numbers, require_numbers, require_shallow
from discreet.sql import Select


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """The answer to one question.

    value        a number; for GROUP BY a dict from each group to its count
    error_bound  with probability 1 - beta, over the whole session, every number is within this of the truth about the
                 rows; in the unit of the value (for a quantile: in ranks, rows that lie between it and the true one)
    source       "cache", "hypothesis", "measurement", "direct", "workload" or "public": where it came from
    price        what was charged, in nano-units of the ledger's first book; 0 if and only if nothing was charged
    fraction     the value as a fraction of the persons, for counts of persons
    unit         of the value: "persons", "rows" if a person may have several, or the column
    population   a bound for the population that the rows were drawn from, as a fraction of the persons, if the owner
                 stated that they are a random sample
    ranks        whether the error bound is in ranks, as that of a quantile

    Inside a session an answer is about one linear query: its value is an array of the shape of the query's numbers,
    and these are known besides:

    missed    of an answer that was paid for: whether the hypothesis had been wrong about it; None if it had no guess
    question  what was asked             beta  the probability of failure that the bound was stated for
    errors    how far off each number is at the most: an array of the value's shape, whose largest is error_bound
    """

    value: Any
    error_bound: float
    source: str
    price: int = 0
    fraction: Any = None
    unit: str = "persons"
    population: float | None = None
    groups: tuple[str, ...] = ()
    testing: bool = False
    ranks: bool = False
    missed: bool | None = field(default=None, compare=False)
    question: Any = field(default=None, compare=False)
    beta: Fraction | None = field(default=None, compare=False)
    errors: Any = field(default=None, compare=False)

    def __repr__(self) -> str:
        parts = [f"value={self.value!r}", f"error_bound={self.error_bound:g}", f"source={self.source!r}"]
        parts += [f"price={self.price}", f"unit={self.unit!r}"]
        parts += [f"fraction={self.fraction:.4g}"] if isinstance(self.fraction, float) else []
        parts += [f"population={self.population:.4g}"] if self.population is not None else []
        return f"Answer({', '.join(parts)}{', NOT PRIVATE: a testing ledger' if self.testing else ''})"

    def frame(self, backend: str = "pandas") -> Any:
        """The groups and their counts as a frame of pandas, polars or pyarrow."""
        if not self.groups:
            raise ParameterError("only the answer to a GROUP BY is a frame")
        keys = [key if isinstance(key, tuple) else (key,) for key in self.value]
        columns = {name: [key[place] for key in keys] for place, name in enumerate(self.groups)}
        return frame_of({**columns, "count": list(self.value.values())}, backend)


Make = Callable[[Sequence[Answer]], Answer]


def put_together(select: Select | Question, facts: Facts, text: str = "") -> tuple[list[Question], Make]:
    """The linear queries that a question consists of, and what makes its answer of theirs."""
    query: Question
    if not isinstance(select, Select):
        query = select
    elif select.kind in ("sum", "average"):
        query = Sum(str(select.column), select.where)
    else:
        query = Histogram(select.groups, select.where) if select.groups else Count(select.where)
    # Groups in the domain's order: GROUP BY a, b and GROUP BY b, a are one question.
    queries: list[Question] = [query.with_order(facts.domain.names)]
    make: Make = lambda answers: plain(query, queries[0], answers[0], facts)  # noqa: E731
    if isinstance(select, Select) and select.kind == "average":
        queries.append(Count(select.where))
        make = lambda answers: quotient(query, answers[0], answers[1], facts)  # type: ignore[arg-type]  # noqa: E731
    for part in queries:
        require_shallow(part.where)
        part.sensitivity(facts)  # says what is wrong with the question
        require_numbers(numbers(part, facts))
        if constant(part, facts.domain) is False:
            words = part.where.in_words()
            never = "the condition is never true"
            if words != "never":
                never = f"no row of the declared domain satisfies {words}"
            hint = "The answer is 0 whatever the rows are: nothing was asked and nothing was spent."
            if not text:
                raise ParameterError(f"{never}. {hint}")
            raise UnsupportedQuery(text, max(0, text.upper().find("WHERE")), never, hint)
    return queries, make


def plain(query: Question, ordered: Question, answer: Answer, facts: Facts) -> Answer:
    """A linear query's own answer; `ordered` is the same query with its groups in the domain's order."""
    bound, source, price = _rounded_up(answer.error_bound), answer.source, answer.price
    if not query.counting:
        near = _tidy(float(answer.value))
        return Answer(near, _rounded_up(bound + abs(near - float(answer.value))), source, price, unit=query.column)
    persons = facts.neighbours.rows == 1
    size, unit = max(1, facts.size or 1), "persons" if persons else "rows"
    persons = persons and facts.size is not None
    if not query.grouped:
        share = int(answer.value) / size if persons else None
        return Answer(int(answer.value), bound, source, price, share, unit)
    order = [ordered.groups.index(name) for name in query.columns]
    counts = answer.value.transpose(order).ravel().tolist()
    keys = [label[0] if len(label) == 1 else label for label in query.labels(facts)]
    value = dict(zip(keys, counts, strict=True))
    shares = {key: count / size for key, count in value.items()} if persons else None
    return Answer(value, bound, source, price, shares, unit, groups=query.columns)


def quotient(query: Sum, total: Answer, count: Answer, facts: Facts) -> Answer:
    """A sum over a count. It lies between the least and the largest value that is averaged; its bound is that of the
    quotient of the two intervals, and infinite if the count may be 0."""
    form, column = linear(query, facts.domain), facts.domain.column(query.column)
    if form is not None:
        inside = form.weight[form.place >= 0]
        least, most = float(inside.min()), float(inside.max())
    else:
        assert column.bounded  # or it would have no sum
        least, most = float(column.low), float(column.high)
    number, people = float(total.value), int(count.value)
    value, bound = min(max(number / people if people else (least + most) / 2, least), most), math.inf
    if people - count.error_bound > 0:
        tops = [number + side * total.error_bound for side in (-1, 1)]
        ends = [top / (people + side * count.error_bound) for top in tops for side in (-1, 1)]
        bound = max(abs(min(max(end, least), most) - value) for end in ends)
    source = total.source if total.source == count.source else f"{total.source} and {count.source}"
    shown = _tidy(value)
    bound = _rounded_up(bound + abs(shown - value), digits=12)
    return Answer(shown, bound, source, total.price + count.price, unit=query.column)


def _tidy(value: float) -> float:
    """Twelve digits: what is beyond is the rounding of floats."""
    return float(f"{value:.12g}")


def _rounded_up(bound: float, digits: int | None = None) -> float:
    """A bound with six decimals, or with this many digits; never less than it is."""
    if math.isinf(bound):
        return bound
    if digits is None:
        near = round(bound, 6)
        return near if near >= bound else round(near + 1e-6, 6)
    near = float(f"{bound:.{digits}g}")
    return near if near >= bound else float(f"{bound * (1 + 10.0 ** (1 - digits)):.{digits}g}")


def frame_of(columns: dict[str, list[Any]], backend: str) -> Any:
    """A native frame of a library that is installed."""
    import narwhals

    try:
        return narwhals.from_dict(columns, backend=backend).to_native()  # type: ignore[arg-type]
    except (ImportError, ValueError, TypeError) as error:
        raise ParameterError(f"no frame can be made by {backend!r}: {error}") from None
