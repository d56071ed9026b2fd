"""What an analyst gets to see of an answer, and how SQL's aggregates are put together from linear questions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from discreet.answering.linear_query import Question, constant, linear
from discreet.answering.transcript import Given
from discreet.data import Facts
from discreet.errors import ParameterError, UnsupportedQuery
from discreet.query import Count, Histogram, Sum, numbers, require_numbers, require_shallow
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
    """

    value: Any
    error_bound: float
    source: str
    price: int
    fraction: Any = None
    unit: str = "persons"
    population: float | None = None
    groups: tuple[str, ...] = field(default=(), repr=False)
    testing: bool = field(default=False, repr=False)
    ranks: bool = field(default=False, repr=False)

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


Make = Callable[[Sequence[Given]], Answer]


def put_together(select: Select | Question, facts: Facts, text: str = "") -> tuple[list[Question], Make]:
    """The linear questions that a question consists of, and what makes its answer of theirs."""
    if isinstance(select, Select) and select.kind == "average":
        total, count = Sum(str(select.column), select.where), Count(select.where)
        questions: list[Question] = [total, count]
        make: Make = lambda given: quotient(total, given[0], given[1], facts)  # noqa: E731
    else:
        one = _query(select) if isinstance(select, Select) else select
        asked = _ordered(one, facts)
        questions, make = [asked], lambda given: plain(one, asked, given[0], facts)
    for each in questions:
        require_shallow(each.where)
        each.sensitivity(facts)  # says what is wrong with the question
        require_numbers(numbers(each, facts))
        if constant(each, facts.domain) is False:
            raise _contradiction(each, text)
    return questions, make


def _ordered(question: Question, facts: Facts) -> Question:
    """Groups in the domain's order: GROUP BY a, b and GROUP BY b, a are one question."""
    if not isinstance(question, Histogram):
        return question
    return Histogram([name for name in facts.domain.names if name in question.columns], question.where)


def plain(question: Question, asked: Question, given: Given, facts: Facts) -> Answer:
    """A linear question's own answer; `asked` is the same with its groups in the domain's order."""
    bound = given.bound if math.isinf(given.bound) else _rounded_up(given.bound)
    persons = facts.neighbours.rows == 1
    size, unit = max(1, facts.size or 1), "persons" if persons else "rows"
    if isinstance(question, Sum):
        near = _tidy(float(given.value))
        bound = _rounded_up(bound + abs(near - float(given.value)))
        return Answer(near, bound, given.source, given.price, unit=question.column)
    if isinstance(question, Count):
        share = int(given.value) / size if persons else None
        return Answer(int(given.value), bound, given.source, given.price, share, unit)
    order = [asked.columns.index(name) for name in question.columns] if isinstance(asked, Histogram) else []
    counts = given.value.transpose(order).ravel().tolist()
    keys = [label[0] if len(label) == 1 else label for label in question.labels(facts)]
    value = dict(zip(keys, counts, strict=True))
    shares = {key: count / size for key, count in value.items()} if persons else None
    return Answer(value, bound, given.source, given.price, shares, unit, groups=question.columns)


def quotient(question: Sum, total: Given, count: Given, facts: Facts) -> Answer:
    """A sum over a count. It lies between the least and the largest value that is averaged; its bound is that of the
    quotient of the two intervals, and infinite if the count may be 0."""
    least, most = _range(question, facts)
    number, people = float(total.value), int(count.value)
    value, bound = min(max(number / people if people else (least + most) / 2, least), most), math.inf
    if people - count.bound > 0:
        ends = [(number + side * total.bound) / (people + other * count.bound) for side in (-1, 1) for other in (-1, 1)]
        bound = max(abs(min(max(end, least), most) - value) for end in ends)
    source = total.source if total.source == count.source else f"{total.source} and {count.source}"
    shown = _tidy(value)
    bound = _rounded_up(bound + abs(shown - value), digits=12)
    return Answer(shown, bound, source, total.price + count.price, unit=question.column)


def _range(question: Sum, facts: Facts) -> tuple[float, float]:
    """The values that a sum adds up."""
    form = linear(question, facts.domain)
    column = facts.domain.column(question.column)
    if form is not None:
        inside = form.weight[form.place >= 0]
        return float(inside.min()), float(inside.max())
    return float(column.low), float(column.high)  # type: ignore[union-attr]


def _tidy(value: float) -> float:
    """Twelve digits: what is beyond is the rounding of floats."""
    return float(f"{value:.12g}")


def _rounded_up(bound: float, digits: int | None = None) -> float:
    """A bound with six decimals, or with so many digits; never less than it is."""
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


def _query(select: Select) -> Question:
    if select.kind == "sum":
        return Sum(str(select.column), select.where)
    return Histogram(select.groups, select.where) if select.groups else Count(select.where)


def _contradiction(question: Question, text: str) -> Exception:
    words = question.where.in_words()
    reason = "the condition is never true" if words == "never" else f"no row of the declared domain satisfies {words}"
    hint = "The answer is 0 whatever the rows are: nothing was asked and nothing was spent."
    if not text:
        return ParameterError(f"{reason}. {hint}")
    return UnsupportedQuery(text, max(0, text.upper().find("WHERE")), reason, hint)
