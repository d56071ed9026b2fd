"""What an analyst gets to see of an answer, and how SQL's aggregates are put together from linear questions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from discreet.data import Facts
from discreet.errors import ParameterError, UnsupportedQuery
from discreet.pmw.questions import Question, constant
from discreet.pmw.sql import Select
from discreet.pmw.transcript import Given
from discreet.predicate import in_words
from discreet.query import Count, Histogram, Sum


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one question.

    value        a number; for GROUP BY a dict from each group to its count
    error_bound  with probability 1 - beta, over the whole session, every number is within this of the truth about the
                 rows; in the unit of the value (for a quantile: in ranks, rows that lie between it and the true one)
    source       "cache", "hypothesis", "measurement", "direct", "workload" or "public": where it came from
    price        what was charged, in nano-units of the ledger's first book; 0 if and only if nothing was charged
    fraction     the value as a fraction of the persons, for counts
    population   a bound for the population that the rows were drawn from, as a fraction of the persons, if the owner
                 stated that they are a random sample
    """

    value: Any
    error_bound: float
    source: str
    price: int
    fraction: Any = None
    unit: str = "persons"
    population: float | None = None
    groups: tuple[str, ...] = ()
    testing: bool = field(default=False, repr=False)

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
        make: Make = lambda given: quotient(given[0], given[1], unit=str(select.column))  # noqa: E731
    else:
        one = _query(select) if isinstance(select, Select) else select
        questions, make = [one], lambda given: plain(one, given[0], facts)
    for each in questions:
        each.sensitivity(facts)  # says what is wrong with the question
        if constant(each, facts.domain) is False:
            raise _contradiction(each, text)
    return questions, make


def plain(question: Question, given: Given, facts: Facts) -> Answer:
    """A linear question's own answer."""
    bound = given.bound if math.isinf(given.bound) else round(given.bound, 6)
    size = max(1, facts.size or 1)
    if isinstance(question, Sum):
        return Answer(float(given.value), bound, given.source, given.price, unit=question.column)
    if isinstance(question, Count):
        return Answer(int(given.value), bound, given.source, given.price, int(given.value) / size)
    counts = given.value.ravel().tolist()
    keys = [label[0] if len(label) == 1 else label for label in question.labels(facts)]
    value = dict(zip(keys, counts, strict=True))
    shares = {key: count / size for key, count in value.items()}
    return Answer(value, bound, given.source, given.price, shares, groups=question.columns)


def quotient(total: Given, count: Given, *, unit: str) -> Answer:
    """A sum over a count: the bound is that of the quotient of their intervals, infinite if the count may be 0."""
    number, people = float(total.value), int(count.value)
    least, most = people - count.bound, people + count.bound
    value, bound = (number / people if people else math.nan), math.inf
    if least > 0:
        ends = [(number + side * total.bound) / end for side in (-1, 1) for end in (least, most)]
        bound = max(abs(end - value) for end in ends)
    source = total.source if total.source == count.source else f"{total.source} and {count.source}"
    return Answer(value, bound, source, total.price + count.price, unit=unit)


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
    reason = f"no row of the declared domain satisfies {in_words(question.where)}"
    hint = "The answer is 0 whatever the rows are: nothing was asked and nothing was spent."
    if not text:
        return ParameterError(f"{reason}. {hint}")
    return UnsupportedQuery(text, max(0, text.upper().find("WHERE")), reason, hint)
