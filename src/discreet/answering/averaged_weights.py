"""Averaged multiplicative weights: a known workload from selections alone; no count is ever shown.

Each round looks for the number of the workload that the hypothesis misses most, and on which side, by the exponential
mechanism; then it multiplies the hypothesis towards it. The answer is the average of the hypotheses of all rounds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet.answering.linear_query import require_linear
from discreet.core import Exact, Funds, Guarantee, ParameterError, Rng, checked_rate, exact
from discreet.data import Batch, Codes, Dataset, Domain, Facts, Floats, IntArray, Needs, Tallied, Tally
from discreet.hypothesis import Dense
from discreet.mechanisms import calibrate
from discreet.query import Count, Histogram, Question, numbers

MAX_CELLS = 2**22
MAX_ROUNDS = 2**17
_MANY = 1024


@dataclass(frozen=True, slots=True)
class Together:
    """Several queries in one pass: their sums, flattened, one after the other."""

    queries: tuple[Any, ...]

    def partial(self, batch: Batch) -> IntArray:
        return np.concatenate([np.ravel(query.partial(batch)) for query in self.queries])

    @property
    def by_person(self) -> bool:
        """Whether one of the queries looks at whose the rows are: its tallies are right where every row is a person."""
        return any(getattr(query, "by_person", False) for query in self.queries)

    @property
    def weighted(self) -> Callable[[Batch, Codes], IntArray] | None:
        """Over counted rows; None if one of the queries has no such sum: Persons looks at whose the rows are."""
        parts = [getattr(query, "weighted", None) for query in self.queries]
        found = [part for part in parts if part is not None]
        if len(found) < len(parts):
            return None
        return lambda batch, counts: np.concatenate([np.ravel(part(batch, counts)) for part in found])

    def tallies(self, domain: Domain) -> tuple[Tally, ...]:
        return tuple(tally for query in self.queries for tally in query.tallies(domain))

    def of_tallies(self, domain: Domain, found: Sequence[Tallied]) -> IntArray:
        rest = iter(found)
        made = [query.of_tallies(domain, [next(rest) for _ in query.tallies(domain)]) for query in self.queries]
        return np.concatenate([np.ravel(each) for each in made])


@dataclass(frozen=True, slots=True, init=False)
class AveragedWeights:
    """Averaged multiplicative weights with the exponential mechanism, for k counts known in advance.

    Let c_i be the true counts, h_t the hypothesis of round t (h_1 uniform over the D cells of all columns that the
    queries mention), n = `rows` a public number of rows and f_i(h) the i-th count's share of h. Round t selects one of
    2k pairs (i, s), s = +1 or -1, with probability proportional to exp(rate * s * (c_i - round(n f_i(h_t)))), and sets
    h_{t+1} proportional to h_t exp(s * step * f_i). What is released are the selections: everything is a function of
    them. The answers are n times the averages of f_i(h_t) over the T = `rounds` rounds.

    Theorem.   (privacy) A person of at most r rows moves every count by at most r, so the scores' differences span at
               most 2 r under either relation: a round has bounded range 2 r rate. The release is the composition of T
               of them: pure 2 r rate T and zCDP T (2 r rate)^2 / 8.
    Accuracy.  With N the true number of rows, with probability 1 - beta all k answers are within
               n (ln D / (step T) + step / 8) + ln(2 k T / beta) / rate + 1 + |N - n|
               of the counts; the best step is sqrt(8 ln D / T), which makes the first term n sqrt(ln D / (2 T)). With
               T = ceil(2 ln D / alpha^2) and step = 2 alpha it is at most alpha n / 2 (`rows_needed`).
    Edges.     Replace-one with one row a person: n = N is public, and the last term is 0. At most 2^22 cells.
    Reference. [HLM12] with the average and the selection's sign as in docs/proofs/averaged_weights.md.
    """

    NAME: ClassVar[str] = "averaged-weights/1"
    queries: tuple[Count | Histogram, ...]
    rounds: int
    step: Fraction
    rate: Fraction
    rows: int

    def __init__(self, queries: Iterable[Count | Histogram], rounds: int, step: Exact, rate: Exact, rows: int) -> None:
        asked = tuple(queries)
        wrong = [type(query).__name__ for query in asked if not isinstance(query, (Count, Histogram))]
        if wrong or not asked:
            raise ParameterError(
                f"averaged weights answer one or more Counts and Histograms, found {wrong[0] if wrong else 'none'}"
            )
        times = exact.whole(rounds=rounds)
        if times > MAX_ROUNDS:
            raise ParameterError(f"rounds must be at most {MAX_ROUNDS}, found {times}")
        exact.freeze(self, queries=asked, rounds=times, step=exact.moderate(step=step))
        exact.freeze(self, rate=exact.positive(rate=rate), rows=exact.whole(rows=rows))

    def guarantee(self, facts: Facts) -> Guarantee:
        cells_of(self.queries, facts.domain)
        moved = max(query.sensitivity(facts).linf for query in self.queries)
        one = Guarantee.of_bounded_range(2 * moved * checked_rate(self.rate), neighbours=facts.neighbours)
        return one * self.rounds

    def numbers(self, facts: Facts) -> int:
        return sum(numbers(query, facts) for query in self.queries)

    def needs(self, facts: Facts) -> Needs:
        return Needs(queries=self.queries)

    def run(self, data: Dataset, rng: Rng) -> IntArray:
        """The selections: 2 i for (i, +1), 2 i + 1 for (i, -1)."""
        counts = data.exact_sum(Together(self.queries))
        weights, chosen = WorkloadWeights(self, data.facts.domain), []
        for _ in range(self.rounds):
            missed = counts - np.rint(self.rows * weights.shares()).astype(np.int64)
            scores = np.stack([missed, -missed], axis=1).ravel()
            chosen.append(rng.select(scores, self.rate))
            weights.update(chosen[-1])
        return np.array(chosen, dtype=np.int64)

    def averages(self, selections: Sequence[int] | IntArray, domain: Domain) -> Floats:
        """The released answers, flattened: n times the average share of every number."""
        weights = WorkloadWeights(self, domain)
        total = np.zeros_like(weights.shares())
        for chosen in selections:
            total += weights.shares()
            weights.update(int(chosen))
        return total * (self.rows / len(selections))

    def answers(self, questions: Sequence[Question], selections: Any, facts: Facts) -> list[Floats]:
        """The answers to questions that are among the queries, each in its shape."""
        sizes = [math.prod(query.shape(facts.domain)) for query in self.queries]
        flat = np.split(self.averages(selections, facts.domain), np.cumsum(sizes)[:-1])
        known: dict[Question, Floats] = dict(zip(self.queries, flat, strict=True))
        missing = [query for query in questions if query not in known]
        if missing:
            raise ParameterError(f"the release does not answer {missing[0]!r}")
        return [known[query].reshape(query.shape(facts.domain)) for query in questions]

    def error(self, beta: Exact, facts: Facts) -> float:
        """The bound of the theorem, without the term for a number of rows that is not `rows`."""
        log_cells, failure = math.log(cells_of(self.queries, facts.domain)), exact.probability(beta=beta)
        return _error(
            self.rows, log_cells, self.numbers(facts), self.rounds, float(self.step), float(self.rate), failure
        )


def _error(rows: float, log_cells: float, numbers: int, rounds: int, step: float, rate: float, beta: Fraction) -> float:
    regret = log_cells / (step * rounds) + step / 8
    return rows * regret + math.log(2 * numbers * rounds / float(beta)) / rate + 1


def averaged_weights(questions: Sequence[Question], facts: Facts, *, funds: Funds, beta: Exact) -> AveragedWeights:
    """The number of rounds, step and rate with the least proven error among those that are admitted."""
    failure = exact.probability(beta=beta)
    if facts.size is None or facts.neighbours.rows > 1 or not facts.neighbours.replace_one:
        raise ParameterError("averaged weights have a bound only if the number of rows is public: replace-one, one row")
    if not all(query.counting and hasattr(query, "weighted") for query in questions):
        raise ParameterError("averaged weights answer counts of rows, not sums")
    queries: Any = tuple(questions)
    log_cells = math.log(cells_of(queries, facts.domain))
    rows = max(1, facts.size)

    def best(rounds: int, precision: int) -> AveragedWeights:
        step = Fraction(max(1e-6, math.sqrt(8 * log_cells / rounds))).limit_denominator(10**9)
        make = lambda noise: AveragedWeights(queries, rounds, step, 1 / noise, rows)  # noqa: E731
        return calibrate(make, funds=funds, facts=facts, precision=precision)

    # Pure composition lets the rate fall like 1 / T, zCDP like 1 / sqrt(T): two calibrations tell the rest.
    once, often = (float(best(rounds, 8).rate) for rounds in (1, _MANY))
    most = min(MAX_ROUNDS, 2 ** math.ceil(math.log2(1 + log_cells * rows**2)))
    numbers = sum(math.prod(query.shape(facts.domain)) for query in queries)

    def guessed(rounds: int) -> float:
        rate, step = max(once / rounds, often * math.sqrt(_MANY / rounds)), math.sqrt(8 * log_cells / rounds) or 1e-6
        return _error(rows, log_cells, numbers, rounds, step, rate, failure)

    return best(min((2**power for power in range(most.bit_length())), key=guessed), 20)


def cells_of(queries: Sequence[Question], domain: Domain) -> int:
    """The cells of all columns that the queries mention, if they can be listed."""
    cells = math.prod(_sizes(queries, domain).values())
    if cells > MAX_CELLS:
        raise ParameterError(f"the columns of these questions have {cells:,} cells together, more than 2**22")
    return cells


def _sizes(queries: Sequence[Question], domain: Domain) -> dict[str, int]:
    names = {name for query in queries for name in query.scope}
    columns = {name: domain.column(name) for name in domain.names if name in names}
    for name, column in columns.items():
        if not column.listed:
            raise ParameterError(f"the values of column {name!r} cannot be listed")
    return {name: column.size for name, column in columns.items()}


class WorkloadWeights:
    """The hypothesis, and the shares of all numbers of the workload under it."""

    def __init__(self, mechanism: AveragedWeights, domain: Domain) -> None:
        self._hypothesis = Dense(_sizes(mechanism.queries, domain) or {"": 1})
        self._forms = [require_linear(query, domain) for query in mechanism.queries]
        self._starts = list(itertools.accumulate((math.prod(form.outputs) for form in self._forms), initial=0))
        self._step = float(mechanism.step)

    def shares(self) -> Floats:
        marginals = dict.fromkeys(form.scope for form in self._forms)
        tables = dict(zip(marginals, self._hypothesis.marginals(marginals), strict=True))
        return np.concatenate([form.of(tables[form.scope]).ravel() for form in self._forms])

    def update(self, chosen: int) -> None:
        number, sign = chosen // 2, 1 if chosen % 2 == 0 else -1
        place = next(i for i in reversed(range(len(self._forms))) if self._starts[i] <= number)
        form = self._forms[place]
        inside = (form.place == number - self._starts[place]).astype(np.float64).reshape(form.shape)
        self._hypothesis.multiply(form.scope, sign * self._step * inside)
