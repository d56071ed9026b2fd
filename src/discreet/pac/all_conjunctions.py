"""The exact exponential mechanism over all conjunctions of at most k literals of d variables.

The class has sum over j <= k of C(d, j) 2^j conjunctions of literals of distinct variables, and the rule that is never
true. What is needed of each is one integer, its mistakes; these are found without visiting rows once a conjunction:

1. The rows are packed, 64 to a word, negatives apart from positives. For a set S of variables let A(S) be the number
   of negatives minus the number of positives where all of S are true: one AND and one population count of n/64 words,
   for all sets {.., i} that differ in the last variable i at once.
2. Signs cost no words: A with v_i negated is A without v_i minus A with v_i. So the 2^j conjunctions over one set of
   variables follow from the A of its subsets, which are kept for all sets of fewer than k variables.
3. A conjunction's mistakes are its negatives minus its positives plus all positives.

First it is counted how many conjunctions make each number of mistakes; such a number is drawn, exactly, and then one of
its conjunctions, uniformly: it is found by going again through the part of the list where it is.
Proof: docs/proofs/conjunctions.md.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet import exact
from discreet.data import WORD, Batch, Dataset, Domain, Facts, Ints, Mask, Words, packed, refuse_to_leave, unpacked
from discreet.errors import ParameterError
from discreet.exact import Exact
from discreet.mechanisms import Guarantee, Rng
from discreet.pac.finite import selection_price
from discreet.pac.rules import Labels, Literals

Variables = tuple[int, ...]

NEVER = (0, 1)
"""The rule that is never true: v1 and not v1."""

MOST = 2 * 10**9
"""The largest number of conjunctions that are gone through."""

PATIENCE = 3600.0
"""The largest number of estimated seconds."""

_SET, _CONJUNCTION, _READ = 6e-5, 8e-9, 1.8e-9
"""Seconds for one set of variables but the last, for one conjunction, for one word of 64 rows: measured, rounded up."""

_HISTOGRAMS = 2**22  # numbers kept to find the chosen conjunction again
_PARTS = 64
_BUFFER = 2**18
_CACHED = 2**15  # words that are worked on together
_UNPACKED = 2**24  # bits taken apart at a time


def conjunctions(variables: int, k: int) -> int:
    """How many conjunctions of at most k literals of distinct variables there are, with the one that is never true."""
    return sum(math.comb(variables, j) << j for j in range(k + 1)) + 1


@dataclass(frozen=True, slots=True)
class Estimate:
    """What going through all conjunctions takes: public numbers only.

    words    words of 64 rows that are read; None if the number of rows is private and none is declared
    seconds  a rough guess on an ordinary core; without the words if they are not known
    """

    conjunctions: int
    variables: int
    words: int | None
    seconds: float

    def __str__(self) -> str:
        read = "an unknown number of words" if self.words is None else f"{_short(self.words)} words of {WORD} rows"
        units = (("years", 31_557_600.0), ("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0))
        times = (f"{self.seconds / length:,.0f} {unit}" for unit, length in units if self.seconds >= 2 * length)
        time = next(times, f"{self.seconds:.1f} s")
        return f"{_short(self.conjunctions)} conjunctions of {self.variables} variables, {read}, about {time}"


def _short(number: int) -> str:
    if number < 10**6:
        return f"{number:,}"
    return f"about {exact.shown(Fraction(f'{number:.2e}'))}" if number < 10**300 else exact.shown(Fraction(number))


def estimate(variables: int, k: int, facts: Facts) -> Estimate:
    """The work for conjunctions of at most k of this number of variables."""
    count = conjunctions(variables, k)
    nodes = sum(math.comb(variables - 1, j) for j in range(k))
    sets = sum(math.comb(variables, j) for j in range(1, k + 1))
    words = None if facts.size is None else sets * (-(-facts.size * facts.neighbours.rows // WORD) + 1)
    costs = ((nodes, _SET), (count, _CONJUNCTION), (words or 0, _READ))
    seconds = sum(cost * times if times < 10**300 else math.inf for times, cost in costs)
    return Estimate(count, variables, words, seconds)


PROGRESS: ContextVar[Callable[[Estimate, int], None]] = ContextVar("progress", default=lambda expected, done: None)
"""Called during a run with its estimate and the number of conjunctions since the last call: public numbers only."""


@dataclass(frozen=True, slots=True, init=False)
class AllConjunctions:
    """Release a conjunction of at most k literals of distinct variables, or "never", by the exponential mechanism:
    with probability proportional to exp(-rate * number of rows that it labels wrong).

    The release is a tuple of literal numbers (2 i: variable i, 2 i + 1: its negation), increasing; () is always true,
    (0, 1) never.

    Theorem.   One row's addition changes all numbers of mistakes by 0 or 1, its replacement by -1, 0 or 1, so with r =
               1 (add-remove) or 2 (replace-one), m times that for a person of m rows, the release has bounded range
               rate * r: it is (rate * r)-DP and ((rate * r)^2 / 8)-zCDP.
    Accuracy.  `pac.finite.empirical_size` and its companions with |C| = `conjunctions(d, k)`: on rows that some
               conjunction of the class explains, n >= ln(|C| / beta) / (rate alpha) make the error at most alpha with
               probability 1 - beta; on any rows the best is missed by at most ln(|C| / beta) / rate mistakes. (Lecture
               12 writes ln d^k for ln |C|, which forgets the signs.)
    Edges.     All d variables of all rows are held in memory, packed: d n / 8 bytes (twice that while they are
               gathered). More than MOST conjunctions, or more than PATIENCE seconds by the public `estimate`, are
               refused before the charge. The second look through the list takes a time that depends on the rows.
    Reference. Lecture 12, step 0; docs/proofs/conjunctions.md.
    """

    NAME: ClassVar[str] = "all-conjunctions/1"
    literals: Literals
    labels: Labels
    k: int
    rate: Fraction

    def __init__(self, literals: Literals, labels: Labels, k: int, rate: Exact) -> None:
        exact.freeze(self, literals=literals, labels=labels, k=exact.whole(k=k), rate=exact.positive(rate=rate))

    def guarantee(self, facts: Facts) -> Guarantee:
        check_problem(self.literals, self.labels, self.k, facts.domain)
        expected = self.estimate(facts)
        if expected.conjunctions > MOST or expected.seconds > PATIENCE:
            raise ParameterError(
                f"going through all conjunctions is refused: {expected}. The limits are {MOST:,} conjunctions and "
                f"about {PATIENCE:.0f} s: take a smaller k, fewer variables or another method"
            )
        return selection_price(self.rate, facts)

    def estimate(self, facts: Facts) -> Estimate:
        """What a run takes, from public numbers."""
        return estimate(self.literals.variables(facts.domain), self.k, facts)

    def run(self, data: Dataset, rng: Rng) -> tuple[int, ...]:
        rows = PackedRows.of(data, self.literals, self.labels)
        everything = Listing(rows, self.k, functools.partial(PROGRESS.get(), self.estimate(data.facts)))
        levels, counts = everything.histogram()
        level = int(levels[rng.select(-levels, self.rate, counts)])
        return everything.conjunction(level, rng.integers(everything.having(level)))


def check_problem(literals: Literals, labels: Labels, k: int, domain: Domain) -> int:
    """The number of variables, if these are variables and labels of the domain and k is at most that."""
    literals.check(domain)
    labels.check(domain)
    variables = literals.variables(domain)
    if exact.whole(k=k) > variables:
        raise ParameterError(f"k must be at most the number of variables, {variables}; found {k}")
    return variables


class PackedRows:
    """All rows packed by variable, negatives first: lines of words. Private; for the inside of `run`."""

    __slots__ = ("_both", "_ones", "_split", "lines", "negatives", "positives")

    def __init__(self, negative: Words, positive: Words, *, negatives: int, positives: int) -> None:
        self.lines = np.concatenate([negative, positive], axis=1)
        self.negatives, self.positives, self._split = negatives, positives, negative.shape[1]
        together = max(1, _CACHED // max(1, self.lines.shape[1]))
        self._both = np.empty((together, self.lines.shape[1]), dtype=np.uint64)
        self._ones = np.empty(self._both.shape, dtype=np.uint8)

    @staticmethod
    def of(data: Dataset, literals: Literals, labels: Labels) -> PackedRows:
        """Gathered through the door of the sums, in no promised order."""
        parts: tuple[list[Words], list[Words]] = ([], [])

        def partial(batch: Batch) -> Ints:
            positive, lines = labels.mask(batch), literals.bits(batch)
            for label, wanted in enumerate((~positive, positive)):
                parts[label].append(_take_rows(lines, wanted))
            return np.array([batch.rows - np.count_nonzero(positive), np.count_nonzero(positive)], dtype=np.int64)

        negatives, positives = map(int, data.exact_sum(partial))
        negative, positive = (np.concatenate(words, axis=1) for words in parts)
        return PackedRows(negative, positive, negatives=negatives, positives=positives)

    def differences(self, first: int, within: Words | None) -> Ints:
        """For each variable from `first` on: negatives minus positives where it is true, among the rows `within`."""
        differences = np.empty(len(self.lines) - first, dtype=np.int64)
        together = len(self._both)
        for start in range(0, len(differences), together):
            part = self.lines[first + start : first + start + together]
            if within is not None:
                part = np.bitwise_and(part, within, out=self._both[: len(part)])
            ones = np.bitwise_count(part, out=self._ones[: len(part)])
            positive = ones[:, self._split :].sum(axis=1, dtype=np.int64)
            differences[start : start + together] = ones[:, : self._split].sum(axis=1, dtype=np.int64) - positive
        return differences

    def __repr__(self) -> str:
        return "PackedRows(private rows)"

    __reduce_ex__ = refuse_to_leave


def _take_rows(lines: Words, wanted: Mask) -> Words:
    """The bits of the wanted rows, packed again."""
    places = np.flatnonzero(wanted)
    words = np.empty((len(lines), -(-len(places) // WORD)), dtype=np.uint64)
    together = max(1, _UNPACKED // max(1, len(wanted)))
    for first in range(0, len(lines), together):
        bits = unpacked(lines[first : first + together], len(wanted))
        words[first : first + together] = packed(bits[:, places])
    return words


@dataclass(frozen=True, slots=True)
class _Node:
    """A set of variables, increasing; its subsets, first those with the last variable; the rows where all are true.

    sizes, ranks  of each subset: how many variables, and its place among the sets of that size
    rows          None: all rows
    """

    variables: Variables
    sizes: Ints
    ranks: Ints
    rows: Words | None


class Listing:
    """All conjunctions, in a fixed order, with their numbers of mistakes on these rows.

    The list is: always, never; then for j = 1 .. k, for every set T of j - 1 variables in lexicographic order a block
    of the conjunctions over T and one later variable i. Within a block the sign of i is slowest, then the signs of T
    (bit b set: variable T[b] is negated), then i.
    """

    def __init__(self, rows: PackedRows, k: int, progress: Callable[[int], None]) -> None:
        self._rows, self._k, self._progress = rows, k, progress
        self._d = len(rows.lines)
        self._binomials = np.array(
            [[math.comb(i, size) if size < k else 0 for i in range(self._d)] for size in range(k + 1)], dtype=np.int64
        )
        sizes = [math.comb(self._d, size) for size in range(k)]
        self._offsets = np.array([0, *itertools.accumulate(sizes)], dtype=np.int64)
        self._kept = np.zeros(sum(sizes), dtype=np.int64)
        self._kept[0] = rows.negatives - rows.positives
        self._levels = rows.negatives + rows.positives + 1
        self._parts: list[tuple[int, Ints]] = []

    def histogram(self) -> tuple[Ints, Ints]:
        """The numbers of mistakes that occur, and how many conjunctions have each."""
        if not self._parts:
            self._parts = list(self._count())
        counts = np.sum([part for _, part in self._parts], axis=0)
        levels = np.flatnonzero(counts)
        return levels, counts[levels]

    def having(self, level: int) -> int:
        """The number of conjunctions that make this number of mistakes."""
        return sum(int(part[level]) for _, part in self._parts)

    def conjunction(self, level: int, place: int) -> tuple[int, ...]:
        """The conjunction at this place among those that make this number of mistakes."""
        start = 0
        for stop, part in self._parts:
            if place < part[level]:
                break
            place -= int(part[level])
            start = stop
        for number, (variables, mistakes) in enumerate(self._blocks(start)):
            assert start + number < stop
            hits = np.flatnonzero(mistakes == level)
            if place < len(hits):
                return self._literals(variables, int(hits[place]))
            place -= len(hits)
        raise AssertionError("the list has as many conjunctions as were counted")

    def _count(self) -> Iterator[tuple[int, Ints]]:
        """Histograms of consecutive parts of the list, with the number of the block that each ends before."""
        parts = max(1, min(_PARTS, _HISTOGRAMS // self._levels))
        share = -(-conjunctions(self._d, self._k) // parts)
        tally, seen, number = _Tally(self._levels), 0, 0
        for number, (_, mistakes) in enumerate(self._blocks(0), start=1):
            tally.add(mistakes)
            self._progress(len(mistakes))
            seen += len(mistakes)
            if seen >= share:
                yield number, tally.take()
                seen = 0
        yield number, tally.take()

    def _blocks(self, start: int) -> Iterator[tuple[Variables | None, Ints]]:
        """The blocks from number `start` on, flat; None stands for the first one, always and never."""
        if start == 0:
            yield None, np.array([self._rows.negatives, self._rows.positives], dtype=np.int64)
        number = 1
        for size in range(self._k):
            for node in self._nodes(size, start - number):
                yield node.variables, self._mistakes(node)
            number += math.comb(self._d - 1, size)

    def _nodes(self, size: int, skipped: int) -> Iterator[_Node]:
        """The sets of this size that a later variable can be added to, without the first `skipped`."""
        path = [_Node((), np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), None)]
        sets = itertools.combinations(range(self._d - 1), size)
        for variables in itertools.islice(sets, max(0, skipped), None):
            differ = (
                place
                for place, pair in enumerate(zip(path[-1].variables, variables, strict=False))
                if pair[0] != pair[1]
            )
            del path[next(differ, len(path) - 1) + 1 :]
            for variable in variables[len(path) - 1 :]:
                node, line = path[-1], self._rows.lines[variable]
                sizes = np.concatenate([node.sizes + 1, node.sizes])
                ranks = np.concatenate([node.ranks + self._binomials[node.sizes + 1, variable], node.ranks])
                both = line if node.rows is None else line & node.rows
                path.append(_Node((*node.variables, variable), sizes, ranks, both))
            yield path[-1]

    def _mistakes(self, node: _Node) -> Ints:
        """The mistakes of all conjunctions over these variables and one later variable."""
        size, later = len(node.variables), node.variables[-1] + 1 if node.variables else 0
        table = np.empty((len(node.ranks), 1 + self._d - later), dtype=np.int64)
        table[:, 0] = self._kept[self._offsets[node.sizes] + node.ranks]
        table[0, 1:] = self._rows.differences(later, node.rows)
        if size + 1 < self._k:
            self._kept[self._offsets[size + 1] + node.ranks[0] + self._binomials[size + 1, later:]] = table[0, 1:]
        sizes = node.sizes[1:] + 1
        with_last = (self._offsets[sizes] + node.ranks[1:])[:, None] + self._binomials[sizes, later:]
        np.take(self._kept, with_last, out=table[1:, 1:])
        # From subsets to signs: line s holds what is true of the variables whose bit in s is 0; afterwards the
        # variables whose bit is 1 are negated instead of left out.
        for bit in range(size):
            halves = table.reshape(-1, 2, 1 << bit, table.shape[1])
            halves[:, 1] -= halves[:, 0]
        table[:, :1] += self._rows.positives
        mistakes = np.empty((2, len(table), table.shape[1] - 1), dtype=np.int64)
        np.subtract(table[:, :1], table[:, 1:], out=mistakes[1])
        np.add(table[:, 1:], self._rows.positives, out=mistakes[0])
        return mistakes.reshape(-1)

    def _literals(self, variables: Variables | None, place: int) -> tuple[int, ...]:
        """The conjunction at this place of a block."""
        if variables is None:
            return NEVER if place else ()
        later = variables[-1] + 1 if variables else 0
        rest, last = divmod(place, self._d - later)
        negated, signs = divmod(rest, 1 << len(variables))
        chosen = [2 * variable + (signs >> bit & 1) for bit, variable in enumerate(variables)]
        return (*chosen, 2 * (later + last) + negated)


class _Tally:
    """A histogram that is filled through a buffer: a block is short beside the number of levels."""

    def __init__(self, levels: int) -> None:
        self._counts = np.zeros(levels, dtype=np.int64)
        self._waiting: list[Ints] = []
        self._size = 0

    def add(self, values: Ints) -> None:
        self._waiting.append(values)
        self._size += len(values)
        if self._size > max(_BUFFER, len(self._counts)):
            self._flush()

    def take(self) -> Ints:
        """What was counted since the last time."""
        self._flush()
        counts, self._counts = self._counts, np.zeros_like(self._counts)
        return counts

    def _flush(self) -> None:
        if self._waiting:
            self._counts += np.bincount(np.concatenate(self._waiting), minlength=len(self._counts))
        self._waiting, self._size = [], 0
