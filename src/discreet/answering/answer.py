"""An answer, inside a session and outside; and how the answer to a question in SQL is assembled from linear queries."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from discreet.answering import answer_words
from discreet.answering.linear_query import constant, linear
from discreet.core import ParameterError, Sheet, Shown, UnsupportedQuery
from discreet.data import Domain, Facts
from discreet.query import (
    EVERYTHING,
    Count,
    GroupCount,
    Histogram,
    KeyCount,
    OfPersons,
    Persons,
    Predicate,
    Question,
    contribution,
    numbers,
    require_numbers,
    require_shallow,
)
from discreet.sql import (
    Chosen,
    Estimated,
    GroupedBy,
    KeyOf,
    MeanOf,
    OutputColumn,
    Peers,
    QuantileOf,
    Sorting,
    Statement,
    Total,
    key_order,
    sort_key,
)

Cell = tuple[float, float] | None


@dataclass(frozen=True, slots=True, repr=False)
class Answer(Shown):
    """The answer to one question: prints as on the command line, and is a table in a notebook.

    columns      what the select list is called          rows    the answer as a table, in the order that was asked for
    intervals    for each row and column: None for what is grouped by, else (low, high), where the true value lies with
                 probability 1 - beta, over the whole session, all of them at once
    value        a number; for GROUP BY a dict from each group to its number; of several aggregates a dict from each
                 name to its number, or from each group to such a dict
    error_bound  no number is further off than this, by its interval; of several aggregates a dict from each name to its
                 bound. Infinite only where nothing is known. All bounds of a session hold at once
    alone        the same for this answer by itself: with probability 1 - beta none of its numbers is further off,
                 whatever was asked before. None of an answer that no noise was drawn for, and of quantiles
    source       "cache", "hypothesis", "measurement", "direct", "workload" or "public": where it came from
    price        what was charged, in nano-units of the ledger's first book; 0 if and only if nothing was charged
    fraction     the value as a fraction of the persons, for counts of persons
    unit         of the value: "persons", "rows" if a person may have several, or the column
    population   a bound for the population that the rows were drawn from, as a fraction of the persons, if the owner
                 stated that they are a random sample
    ranks        of a quantile: how many ranks its middle draw may be off, besides its interval; otherwise None
    size         the public number of persons, if it is known
    note         what else is known about it, in a sentence: which keys are shown, of those that are not listed

    Inside a session an answer is about one linear query: its value is an array of the shape of the query's numbers,
    and these are known besides:

    missed    whether the hypothesis was wrong, of what was paid for or let pass by a threshold; None without a guess
    question  what was asked             beta  the probability of failure that the bound was stated for
    errors    how far off each number is at the most: an array of the value's shape, whose largest is error_bound;
              `alone` is such an array too
    entry     of the charge that was made for it
    """

    value: Any
    error_bound: Any
    source: str
    price: int = 0
    fraction: Any = None
    unit: str = "persons"
    population: float | None = None
    groups: tuple[str, ...] = ()
    testing: bool = False
    ranks: float | None = None
    columns: tuple[str, ...] = ()
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    intervals: list[tuple[Cell, ...]] = field(default_factory=list)
    size: int | None = field(default=None, compare=False)
    note: str = field(default="", compare=False)
    missed: bool | None = field(default=None, compare=False)
    question: Any = field(default=None, compare=False)
    beta: Fraction | None = field(default=None, compare=False)
    errors: Any = field(default=None, compare=False)
    alone: Any = field(default=None, compare=False)
    entry: int | None = field(default=None, compare=False)

    def sheet(self) -> Sheet:
        return answer_words.sheet(self)

    def __repr__(self) -> str:
        if self.question is not None:  # inside a session: the value is an array
            return f"Answer({self.source})"
        return f"Answer({answer_words.headline(self)}{'; NOT PRIVATE: a testing ledger' if self.testing else ''})"

    def frame(self, backend: str = "pandas") -> Any:
        """The answer as a frame of pandas, polars or pyarrow: its columns, and beside each number its ±, low and high.

        low and high are the ends of the interval that the truth lies in; ± is the distance to the further one.
        """
        return frame_of(answer_words.frame_columns(self), backend)

    def plot(self) -> Any:
        """A matplotlib Figure: bars with intervals for categories, a line in a band for numbers and dates.

        Needs the extra `report`.
        """
        return answer_words.plot(self)


@dataclass(frozen=True, slots=True)
class Drawn:
    """The draws of a quantile: below it, at it and above it, in every group, and how many ranks they may miss by."""

    value: Any
    ranks: float


class Assembly:
    """The parts that a question is made of, and the answer that they make together.

    questions  the linear queries, each once
    quantiles  the quantiles, each once: a column, a probability, the rows, and the keys of the groups
    """

    def __init__(self, statement: Statement, facts: Facts, text: str = "") -> None:
        self.statement, self.facts, self.text = statement, facts, text
        require_shallow(statement.where)  # before anything hashes it, which recurses
        questions, self.quantiles, self.order = statement.questions, statement.quantiles, statement.axes
        unlisted: list[Any] = [each for each in questions if isinstance(each, KeyCount)]
        self.unlisted: KeyCount | None = unlisted[0] if unlisted else None
        self.questions = [each for each in questions if each not in unlisted]
        if unlisted and (self.questions or self.quantiles or len(unlisted) > 1):
            raise ParameterError("by keys that nobody listed only COUNT(*) is answered")
        for part in self.questions:
            for where, _ in _conditions(part, facts):
                require_shallow(where)
            part.sensitivity(facts)  # says what is wrong with the question
            require_numbers(numbers(part, facts))
        ranked = ((each.where, facts.domain) for each in self.quantiles)
        for where, domain in dict.fromkeys(
            [*(about for each in self.questions for about in _conditions(each, facts)), *ranked]
        ):
            require_shallow(where)
            self._check_possible(where, domain)
        plain = all(isinstance(each, Total | KeyOf | MeanOf) for each in statement.expressions)
        if self.unlisted is None and (self.quantiles or statement.below or not plain):
            for number in (0.0, 4.0, 1e6):
                self._try_made_up(number)

    def _try_made_up(self, number: float) -> None:
        """Refuse arithmetic with texts, and with dates that are drawn: found on made-up numbers, before the charge."""
        sizes = [len(self.statement.keys[place].labels) for place in self.order]
        answers = [Answer(np.full(each.shape(self.facts.domain), number), 1.0, "direct") for each in self.questions]
        draws = [Answer(np.zeros((3, *sizes)), 1.0, "direct") for _ in self.quantiles]
        try:
            self._assembled(answers, draws)
        except (TypeError, ValueError):
            reason = "this adds, rounds or compares a text, or a date, with a number"
            hint = "A quantile of dates, and a level, can be shown, ordered and compared with its like."
            raise UnsupportedQuery(self.text, 0, reason, hint) from None

    @property
    def keys(self) -> tuple[Any, ...]:
        """What the rows are grouped by, in the order of the queries."""
        return tuple(self.statement.keys[place].key for place in self.order)

    def weights(self, *, pure: bool) -> list[Fraction] | None:
        """How accurate the questions shall be relative to each other, in contributions of a row, where there are
        averages, or persons beside rows; None: evenly.

        Theorem.   Let a_q be what an error of question q counts (`Expression.stakes`), D_q its squared l2 sensitivity
                   and L_q its l1 sensitivity, in its units. Among all noises of one price the sum of a_q s_q, to which
                   the bound of the averages is proportional, is least for s_q in proportion to (D_q / a_q)^(1/3) if
                   the noise is Gaussian, and to (L_q / a_q)^(1/2) if it is Laplace.
        Proof.     The price is in proportion to the sum of D_q / s_q^2, or of L_q / s_q; Lagrange.
        """
        found = self._stakes()
        if found is None:
            return None
        units = {query: query.unit(self.facts) for query in self.questions}
        moved = {query: query.sensitivity(self.facts) for query in self.questions}
        accurate = []
        for query, unit in units.items():
            stake = float(found[query] * unit)
            scale = (moved[query].l1 / stake) ** (1 / 2) if pure else (moved[query].l2_squared / stake) ** (1 / 3)
            accurate.append(contribution(query, self.facts) / scale)
        return [Fraction(each / min(accurate)).limit_denominator(10**6) for each in accurate]

    def _stakes(self) -> dict[Question, Fraction] | None:
        """What an error of each question counts, in its units; None if all move alike, or if there are other things too
        that are made of several questions."""
        found = dict.fromkeys(self.questions, Fraction(0))
        made = list(dict.fromkeys(each for each in self.statement.expressions if each.questions))
        persons = len(found) > 1 and any(isinstance(query, Persons) for query in found)
        if self.unlisted is not None or not (persons or any(isinstance(each, MeanOf) for each in made)):
            return None
        for each in made:
            stakes = each.stakes(lambda query: contribution(query, self.facts) * query.unit(self.facts))
            if stakes is None:
                return None
            for query, stake in stakes.items():
                found[query] += stake
        return found

    def _check_possible(self, where: Any, domain: Domain) -> None:
        if constant(Count(where), domain) is not False:
            return
        words = where.in_words()
        never = "the condition is never true"
        if words != "never":
            never = f"no row of the declared domain satisfies {words}"
        hint = "The answer is 0 whatever the rows are: nothing was asked and nothing was spent."
        if not self.text:
            raise ParameterError(f"{never}. {hint}")
        raise UnsupportedQuery(self.text, max(0, self.text.upper().find("WHERE")), never, hint)

    @cached_property
    def _possible(self) -> Any:
        """Which groups can have rows, by the condition and the declaration: others are not listed."""
        sizes = [len(self.statement.keys[place].labels) for place in self.order]
        form = None
        if (sizes and self.statement.where != EVERYTHING) or any(not isinstance(key, str) for key in self.keys):
            made, domain = self.statement.made, self.facts.domain
            asked = (each for each in self.questions if type(each) is Histogram)  # its cells were listed already
            same = (each for each in asked if (each.columns, each.where) == (self.keys, self.statement.where))
            counted: Question = next(same, GroupCount(self.keys, self.statement.where))
            form = linear(counted, domain if made is None else made.domain(domain))
        if form is None:
            return np.ones(sizes, dtype=bool)
        reached = np.zeros(math.prod(sizes), dtype=bool)
        reached[form.place[form.place >= 0]] = True
        return reached.reshape(sizes)

    def answer(self, answers: Sequence[Answer], draws: Sequence[Answer] = ()) -> Answer:
        """The answer, from those to the questions and to the quantiles."""
        made = self._assembled(answers, draws)
        if draws or any(each.alone is None for each in answers):
            return made
        return replace(made, alone=self._assembled([replace(each, errors=each.alone) for each in answers]).error_bound)

    def _assembled(self, answers: Sequence[Answer], draws: Sequence[Answer] = ()) -> Answer:
        readings = {query: _reading(answer) for query, answer in zip(self.questions, answers, strict=True)}
        drawn = {
            each: Drawn(answer.value, answer.error_bound) for each, answer in zip(self.quantiles, draws, strict=True)
        }
        ranks = max((each.ranks for each in drawn.values()), default=None)
        if not self.statement.below:
            return self._tabled(self._lines(list(self._groups(readings, drawn))), [*answers, *draws], ranks)
        first = replace(self.statement, below=(), order=(), limit=None, offset=0)
        lines = list[_Row]()
        for statement in (first, *self.statement.below):
            part = Assembly(statement, self.facts, self.text)
            lines += part._lines(list(part._groups({query: readings[query] for query in part.questions}, {})))
        for by in reversed(self.statement.order):
            assert isinstance(by.expression, KeyOf)
            lines = _in_order(lines, [line.cells[by.expression.place].value for line in lines], by)
        return self._tabled(self._cut(lines), answers, None)

    def _cut(self, lines: list[Any]) -> list[Any]:
        start, many = self.statement.offset, self.statement.limit
        return lines[start:] if many is None else lines[start : start + many]

    def _lines(self, groups: list[Any]) -> list[_Row]:
        asked, peers = self.statement, Peers()
        for group in groups:
            group.peers = peers
        peers.listed = _all_of(groups).by(asked.having)
        peers.kept = peers.listed.by(asked.qualify)
        groups = list(peers.kept.shown) if asked.gathers is None else self._gathered(peers.kept, asked.gathers)
        for by in reversed(asked.order):
            groups = _in_order(groups, [by.expression.of(group).value for group in groups], by)
        rows = [
            _Row(group.labels, [_shown(output.expression.of(group)) for output in asked.outputs])
            for group in self._cut(groups)
        ]
        for each in (peers, *(group.peers for group in groups)):
            each.forget()
        return rows

    def _gathered(self, kept: Chosen, by: Sequence[Any]) -> list[Any]:
        """Groups of these groups: those that are alike in what they are gathered by."""
        alike: dict[tuple[Any, ...], list[Any]] = {} if by else {(): []}
        for group in kept.possible:
            alike.setdefault(tuple(each.of(group).value for each in by), []).append(group)
        shown, made = {id(group) for group in kept.shown}, list[_GroupNumbers]()
        for labels, some in alike.items():
            there = [group for group in some if id(group) in shown]
            if there or not by:
                peers = Peers(kept=Chosen(there, some, kept.sure))
                made.append(_GroupNumbers(labels, (), {}, {}, self.facts, peers=peers))
        chosen = _all_of(made).by(self.statement.then)
        for group in made:
            group.peers.listed = chosen
        return list(chosen.shown)

    def shown_keys(self, found: Answer) -> Answer:
        """The answer about keys that nobody listed, from those that were shown."""
        assert self.unlisted is not None
        groups = list[_GroupNumbers]()
        for key, count in found.value.items():
            parts = key if len(self.unlisted.columns) > 1 else (key,)
            labels = tuple(parts[self.order.index(place)] for place in range(len(self.order)))
            groups.append(
                _GroupNumbers(
                    *(labels, (), {self.unlisted: (np.array(count), np.array(found.error_bound))}, {}, self.facts),
                    self.statement.where,
                )
            )
        return self._tabled(self._lines(groups), [found], None)

    def _groups(self, readings: Any, drawn: Any) -> Iterator[_GroupNumbers]:
        keys, peers = self.statement.keys, Peers()
        for index in itertools.product(*(range(len(key.labels)) for key in keys)):
            place = tuple(index[at] for at in self.order)
            if not keys or self._possible[place]:
                labels = tuple(key.labels[at] for key, at in zip(keys, index, strict=True))
                yield _GroupNumbers(labels, place, readings, drawn, self.facts, self.statement.where, peers)

    def _tabled(self, lines: Sequence[_Row], used: Sequence[Answer], ranks: float | None) -> Answer:
        outputs = self.statement.outputs
        counted = [place for place, output in enumerate(outputs) if output in self.statement.aggregates]
        rows = [tuple(each.value for each in line.cells) for line in lines]
        intervals = [
            tuple(_interval(each) if place in counted else None for place, each in enumerate(line.cells))
            for line in lines
        ]
        bounds = {
            outputs[place].name: max((_off(line.cells[place]) for line in lines), default=0.0) for place in counted
        }
        several = len(counted) != 1
        named = [{outputs[place].name: row[place] for place in counted} for row in rows]
        values = [line if several else next(iter(line.values())) for line in named]
        names, keys = self._named(lines)
        value: Any = values[0] if values and not names else None
        if names:
            value = dict(zip(((each[0] if len(names) == 1 else each) for each in keys), values, strict=True))
        sources = list(dict.fromkeys(answer.source for answer in used))
        return Answer(
            value,
            bounds if several else next(iter(bounds.values())),
            " and ".join(sources),
            sum(answer.price for answer in used),
            self._fraction(value, counted),
            self._unit(counted),
            groups=names,
            ranks=ranks,
            columns=tuple(output.name for output in outputs),
            rows=rows,
            intervals=intervals,
        )

    def _named(self, lines: Sequence[_Row]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """What the rows are told apart by: names, and the labels of each row."""
        asked = self.statement
        if not asked.below and asked.gathers is None:
            return tuple(key.name for key in asked.keys), [line.labels for line in lines]
        if not asked.below and not asked.gathers:
            return (), [()] * len(lines)
        plain = [place for place, output in enumerate(asked.outputs) if output not in asked.aggregates]
        keys = [tuple(line.cells[place].value for place in plain) for line in lines]
        if len(set(keys)) == len(keys) and plain:
            return tuple(asked.outputs[place].name for place in plain), keys
        return ("row",), [(place,) for place in range(1, len(lines) + 1)]

    def _fraction(self, value: Any, counted: Sequence[int]) -> Any:
        """Counts of persons as fractions of all of them."""
        expression = self.statement.outputs[counted[0]].expression if len(counted) == 1 else None
        persons = isinstance(expression, Total) and expression.question.counting and self.facts.neighbours.rows == 1
        if not persons or self.facts.size is None or value is None or self.statement.gathers is not None:
            return None
        size = max(1, self.facts.size)
        return {key: each / size for key, each in value.items()} if isinstance(value, dict) else value / size

    def plain_unit(self) -> str | None:
        """The unit of a question that is one count or one sum, in all or in groups; None of anything else."""
        shown = [output for output in self.statement.outputs if output in self.statement.aggregates]
        single = len(self.questions) == len(shown) == 1 and not self.quantiles and self.unlisted is None
        return self._unit_of(shown[0]) if single and isinstance(shown[0].expression, Total) else None

    def _unit(self, counted: Sequence[int]) -> str:
        found = [self._unit_of(self.statement.outputs[place]) for place in counted]
        return found[0] if len(set(found)) == 1 else "several"

    def _unit_of(self, output: OutputColumn) -> str:
        if not isinstance(output.expression, Total) or not output.expression.question.counting:
            return output.unit
        question: Any = output.expression.question
        made = isinstance(question, OfPersons) and question.made.most(self.facts) == 1
        rows = self.facts.neighbours.rows == 1 or made or question.NAME == Persons.NAME
        return "persons" if rows else "rows"


@dataclass(frozen=True, slots=True)
class _Row:
    """One row of an answer, and the labels of its group."""

    labels: tuple[Any, ...]
    cells: list[Estimated]


def _all_of(groups: Sequence[Any]) -> Chosen:
    return Chosen(groups, groups, frozenset(map(id, groups)))


def _in_order(lines: Sequence[Any], values: Sequence[Any], by: Sorting) -> list[Any]:
    """The lines sorted by their values; those that have none are first or last."""
    known = [(sort_key(value), line) for line, value in zip(lines, values, strict=True) if value is not None]
    there = [line for _, line in sorted(known, key=lambda each: each[0], reverse=by.descending)]
    missing = [line for line, value in zip(lines, values, strict=True) if value is None]
    return [*missing, *there] if by.nulls_first else [*there, *missing]


def _conditions(query: Question, facts: Facts) -> list[tuple[Predicate, Domain]]:
    """The conditions of a query, each with the columns that it is about."""
    if isinstance(query, OfPersons):
        return [(query.made.where, facts.domain), (query.where, query.made.domain(facts.domain))]
    return [(query.where, facts.domain)]


def _reading(answer: Answer) -> tuple[Any, Any]:
    """The numbers of a linear query, and how far off each is at the most."""
    value = np.asarray(answer.value)
    errors = np.full(value.shape, float(answer.error_bound)) if answer.errors is None else np.asarray(answer.errors)
    return value, np.broadcast_to(errors, value.shape)


class _GroupNumbers:
    """One group of an answer."""

    __slots__ = ("draws", "facts", "labels", "peers", "place", "readings", "where")

    def __init__(
        self,
        labels: tuple[Any, ...],
        place: tuple[int, ...],
        readings: Any,
        drawn: Any,
        facts: Facts,
        where: Predicate = EVERYTHING,
        peers: Peers | None = None,
    ) -> None:
        self.labels, self.place, self.readings, self.draws, self.facts = labels, place, readings, drawn, facts
        self.where, self.peers = where, peers or Peers()

    def reading(self, question: Question) -> tuple[float, float]:
        value, errors = self.readings[question]
        place = self.place if question.grouped else ()  # of all rows, beside groups
        return float(value[place]), float(errors[place])

    def along(self, question: Question, axis: int) -> list[tuple[float, float]]:
        """The numbers of this group of a question that has one axis more."""
        value, errors = (np.moveaxis(each, axis, -1)[self.place] for each in self.readings[question])
        return list(zip(value.tolist(), errors.tolist(), strict=True))

    @property
    def most(self) -> float:
        """How many rows there are, if that is public."""
        public = self.facts.neighbours.replace_one and self.facts.neighbours.rows == 1
        return math.inf if not public or self.facts.size is None else float(self.facts.size)

    @property
    def rows(self) -> Estimated:
        """How many rows this group has, if they were counted: at least as many as are in a part of it."""
        shaped = len(self.place)
        counts = [query for query, (value, _) in self.readings.items() if query.counting and value.ndim == shaped > 0]
        whole = [
            query
            for query in counts
            if query.where == self.where and Persons.NAME not in (query.NAME, getattr(query, "query", query).NAME)
        ]
        if not whole:
            least = max((value - error for value, error in map(self.reading, counts)), default=0.0)
            return Estimated(1, max(0.0, least), math.inf)
        value, error = self.reading(whole[0])
        return Estimated(round(value), value - error, value + error)

    def drawn(self, quantile: QuantileOf) -> Estimated:
        found = self.draws[quantile]
        low, middle, high = (float(each[self.place]) for each in np.asarray(found.value))
        column: Any = self.facts.domain.column(quantile.column)
        if math.isinf(found.ranks):
            low, high = (float(column.value(code)) for code in (0, column.points - 1))
        low, high = min(low, high), max(low, high)
        middle = min(max(middle, low), high)
        if column.calendar:
            day = datetime.date(1970, 1, 1) + datetime.timedelta(days=middle)
            return Estimated(day.isoformat(), low, high)
        return Estimated(middle, low, high)


def _shown(found: Estimated) -> Estimated:
    """A value with twelve digits; what is beyond is the rounding of floats."""
    if isinstance(found.value, Fraction):
        whole = found.value.denominator == 1
        return Estimated(int(found.value) if whole else _tidy(float(found.value)), found.low, found.high)
    return Estimated(_tidy(found.value), found.low, found.high) if isinstance(found.value, float) else found


def _interval(found: Estimated) -> Cell:
    """The interval, rounded outwards, and never without the value."""
    if found.low is None or found.value is None or isinstance(found.value, str):
        return None if found.low is None or found.value is None else found.ends
    low, high = found.ends
    value = float(found.value)
    return min(-_rounded_up(-low, digits=12), value), max(_rounded_up(high, digits=12), value)


def _off(found: Estimated) -> float:
    """How far off a value is at the most."""
    if found.value is None or found.low is None:
        return 0.0 if found.low is None and found.value is not None else math.inf
    if isinstance(found.value, str):
        return found.ends[1] - found.ends[0]
    value = float(found.value)
    return _rounded_up(max(value - found.ends[0], found.ends[1] - value, 0.0))


def asked_directly(query: Any, facts: Facts) -> Statement:
    """A query as a question: what it would be in SQL."""
    if isinstance(query, OfPersons):
        found = asked_directly(query.query, query.made.facts(facts))
        (last,) = found.aggregates
        total: Any = last.expression
        total = Total(replace(query, query=total.question), total.ends)
        return replace(found, outputs=(*found.outputs[:-1], replace(last, expression=total)), made=query.made)
    require_numbers(math.prod(query.shape(facts.domain)))  # before the groups are listed
    keys = tuple(
        GroupedBy(
            key,
            tuple(facts.domain.column(key).labels()) if isinstance(key, str) else tuple(range(key.size(facts.domain))),
            name,
        )
        for key, name in zip(getattr(query, "keys", query.groups), query.groups, strict=True)
    )
    ordered = query.with_order(facts.domain.names)
    if hasattr(query, "keys"):
        ordered = replace(query, keys=tuple(keys[place].key for place in key_order(keys, facts.domain)))
    outputs = [OutputColumn(key.name, KeyOf(place)) for place, key in enumerate(keys)]
    name = "count" if query.counting else "sum"
    outputs.append(OutputColumn(name, Total(ordered), getattr(query, "column", "")))
    return Statement((), query.where, keys, tuple(outputs), axes=tuple(key_order(keys, facts.domain)))


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
    return near if near >= bound else float(f"{bound + abs(bound) * 10.0 ** (1 - digits):.{digits}g}")


def frame_of(columns: dict[str, list[Any]], backend: str) -> Any:
    """A native frame of a library that is installed."""
    import narwhals

    try:
        alike = columns if backend == "pandas" else {name: _of_one_kind(each) for name, each in columns.items()}
        return narwhals.from_dict(alike, backend=backend).to_native()  # type: ignore[arg-type]
    except (ImportError, ValueError, TypeError) as error:
        raise ParameterError(f"no frame can be made by {backend!r}: {error}") from None


def _of_one_kind(values: list[Any]) -> list[Any]:
    """The same; as texts, if there are levels of several kinds or longer whole numbers than a typed column holds."""
    kinds = {type(each) for each in values if each is not None}
    long = any(type(each) is int and not -(2**63) <= each < 2**63 for each in values)
    if not long and (len(kinds) < 2 or kinds == {int, float}):
        return values
    return [None if each is None else str(each) for each in values]
