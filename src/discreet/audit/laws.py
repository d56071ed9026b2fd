"""The exact law of a mechanism on made-up rows, found by running its own code.

`Branching` is a test source of randomness: at each draw it lists every possible value with its exact probability and
follows one; the mechanism is run again and again until every path was followed. No second implementation of a
mechanism is needed, so what is measured is the code that users run. Noise with infinitely many values is cut at
`reach`; the probability that was cut is kept as `missing`, and every statement made from a law accounts for it.

Rows are given literally and become a table here: a law of real rows cannot be asked for. This file and `release` are
the only places in the library that run a mechanism.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet.data import Dataset, Domain, Facts, Table
from discreet.mechanisms import Conversation, Mechanism, Neighbours, Rng

Row = Mapping[str, Any]
Atom = tuple[Any, float]

_ROUNDING = 1e-15
"""What the floats of a law may be off by; counted as missing."""


@dataclass(frozen=True, slots=True)
class Law:
    """Probabilities of outcomes, up to a total `missing` that was cut off."""

    mass: Mapping[Hashable, float]
    missing: float


@dataclass(frozen=True, slots=True)
class Setting:
    """What is public about made-up rows. With a unit, a row that names nobody is a person of its own."""

    domain: Domain
    neighbours: Neighbours
    unit: str | None = None

    def table(self, rows: Sequence[Row], *, size: int | None = None) -> Table:
        columns: dict[str, list[Any]] = {name: [row[name] for row in rows] for name in self.domain}
        if self.unit:
            columns[self.unit] = [row.get(self.unit, place) for place, row in enumerate(rows)]
        kind, most = self.neighbours.kind, self.neighbours.rows if self.unit else None
        return Table(columns, self.domain, neighbours=kind, unit=self.unit, rows_per_unit=most, size=size)

    def facts(self, rows: Sequence[Row]) -> Facts:
        return self.table(rows).facts


def rows(names: Iterable[str], *words: Any) -> tuple[Row, ...]:
    """Rows from words: a word has a value for each column, digits are numbers. rows("xy", "0+", "3-") are two rows."""
    values = (((int(value) if str(value).isdigit() else value) for value in word) for word in words)
    return tuple(dict(zip(names, held, strict=True)) for held in values)


class Branching(Rng):
    """Randomness that follows one path through the tree of all draws."""

    private: ClassVar[bool] = False

    def __init__(self, path: Sequence[int], reach: int) -> None:
        self.path, self.reach, self.probability = list(path), reach, 1.0
        self.widths: list[int] = []

    def _follow(self, atoms: Sequence[Atom]) -> Any:
        depth = len(self.widths)
        if depth == len(self.path):
            self.path.append(0)
        self.widths.append(len(atoms))
        value, probability = atoms[self.path[depth]]
        self.probability *= probability
        return value

    def _draw(self, atoms: Sequence[Atom], size: Any) -> Any:
        if size is None:
            return self._follow(atoms)
        drawn = [self._follow(atoms) for _ in range(int(np.prod(size)))]
        return np.array(drawn, dtype=np.int64).reshape(size)

    def laplace(self, scale: Fraction, size: Any = None) -> Any:
        return self._draw(laplace_atoms(float(scale), self.reach), size)

    def spherical(self, scale: Fraction, dimension: int) -> Any:
        return np.array(self._follow(spherical_atoms(float(scale), dimension, self.reach)), dtype=np.int64)

    def truncated_laplace(self, scale: Fraction, bound: int, size: Any = None) -> Any:
        atoms = laplace_atoms(float(scale), bound)
        total = math.fsum(p for _, p in atoms)
        return self._draw([(k, p / total) for k, p in atoms], size)

    def zero_sum_laplace(self, scale: Fraction, size: int) -> Any:
        return np.array(self._follow(zero_sum_atoms(float(scale), size, self.reach)), dtype=np.int64)

    def geometric(self, scale: Fraction, size: Any = None) -> Any:
        return self._draw(geometric_atoms(float(scale), self.reach), size)

    def gaussian(self, variance: Fraction, size: Any = None) -> Any:
        return self._draw(gaussian_atoms(float(variance), self.reach), size)

    def integers(self, bound: int, size: Any = None) -> Any:
        return self._draw([(k, 1 / bound) for k in range(bound)], size)

    def bernoulli_exp(self, x: Fraction, size: Any = None) -> Any:
        return self._draw(_coin(math.exp(-x)), size)

    def flips(self, gaps: Any, rate: Fraction) -> Any:
        return np.array([self._follow(_coin(math.exp(-rate * int(gap)))) for gap in gaps], dtype=bool)

    def select(self, scores: Any, rate: Fraction, counts: Any = None) -> int:
        top = max(int(score) for score in scores)
        times = [1] * len(scores) if counts is None else counts
        weights = [n * math.exp(rate * (int(score) - top)) for n, score in zip(times, scores, strict=True)]
        total = math.fsum(weights)
        return int(self._follow([(i, weight / total) for i, weight in enumerate(weights)]))

    def permutation(self, n: int) -> Any:
        left = list(range(n))
        return np.array([left.pop(self.integers(len(left))) for _ in range(n)], dtype=np.int64)

    def _bytes(self, count: int) -> bytes:
        raise AssertionError("a mechanism under enumeration must draw through the named samplers")


def sample(mechanism: Mechanism, rows: Sequence[Row], setting: Setting, *, runs: int, rng: Rng) -> list[Any]:
    """What the mechanism releases in `runs` independent runs on these made-up rows."""
    table = _Remembering(setting.table(rows))
    return [mechanism.run(table, rng) for _ in range(runs)]


def law(mechanism: Mechanism, rows: Sequence[Row], setting: Setting, *, reach: int = 40) -> Law:
    """The exact law of what the mechanism releases on these made-up rows."""
    return run_law(mechanism.run, rows, setting, reach=reach)


def run_law(run: Callable[[Dataset, Any], Any], rows: Sequence[Row], setting: Setting, *, reach: int) -> Law:
    """The exact law of what this function of a table and randomness returns."""
    table = setting.table(rows)
    return collect((countable(released), p) for released, p in _branches(lambda rng: run(table, rng), reach))


def conversation_law(
    conversation: Conversation, asks: Sequence[Any], rows: Sequence[Row], setting: Setting, *, reach: int = 60
) -> Law:
    """The exact law of the answers to these questions, asked in this order until the conversation ends.

    The secret state is explicit, so equal (answers, state) are merged after every question: the work grows with the
    number of questions, not exponentially.
    """
    table = _Remembering(setting.table(rows))
    begun = _branches(functools.partial(conversation.begin, table), reach)
    alive = _merge(((), countable(state), p) for state, p in begun)
    over: list[tuple[Hashable, float]] = []
    for ask in asks:
        steps: list[tuple[Any, Any, float]] = []
        for (answers, state), p in alive.items():
            step = functools.partial(conversation.step, state, ask, table)
            for (after, answer), chance in _branches(step, reach):
                if after is None:
                    over.append(((*answers, countable(answer)), p * chance))
                else:
                    steps.append(((*answers, countable(answer)), countable(after), p * chance))
        alive = _merge(steps)
    return collect([*over, *((answers, p) for (answers, _), p in alive.items())])


class _Remembering:
    """A table that adds up each query once: enumeration asks for the same exact sum thousands of times."""

    def __init__(self, table: Dataset) -> None:
        self.facts, self.identity, self.source = table.facts, table.identity, table.source
        self.check_source, self.exact_slices = table.check_source, table.exact_slices
        self.exact_gather, self.offers = table.exact_gather, table.offers
        self._table = table
        self._sums: dict[Any, Any] = {}

    def exact_sum(self, query: Any) -> Any:
        if query not in self._sums:
            self._sums[query] = self._table.exact_sum(query)
        return self._sums[query]


def _branches(run: Callable[[Any], Any], reach: int) -> Iterator[tuple[Any, float]]:
    """Every possible result of `run` with the probability of the path that led to it."""
    path: list[int] = []
    while True:
        rng = Branching(path, reach)
        yield run(rng), rng.probability
        path = rng.path
        while path and path[-1] + 1 == rng.widths[len(path) - 1]:
            path.pop()
        if not path:
            return
        path[-1] += 1


def collect(outcomes: Iterable[tuple[Hashable, float]]) -> Law:
    """The law of outcomes that came with these probabilities; equal ones are added up."""
    gathered: dict[Hashable, list[float]] = {}
    for outcome, p in outcomes:
        gathered.setdefault(outcome, []).append(p)
    mass = {outcome: math.fsum(parts) for outcome, parts in gathered.items()}
    return Law(mass, max(_ROUNDING, 1 - math.fsum(mass.values())))


def _merge(steps: Any) -> dict[tuple[Any, Any], float]:
    merged: dict[tuple[Any, Any], float] = {}
    for answers, state, p in steps:
        merged[answers, state] = merged.get((answers, state), 0.0) + p
    return merged


def countable(outcome: Any) -> Hashable:
    """An outcome as something that can be counted: arrays and lists become tuples, values their fields."""
    match outcome:
        case int() | str() | None:
            return outcome
        case np.ndarray():
            return tuple(outcome.ravel().tolist())
        case tuple() | list():
            return tuple(map(countable, outcome))
        case dict():
            return tuple((key, countable(value)) for key, value in outcome.items())
        case object(__dataclass_fields__=fields):
            return type(outcome).__name__, *(countable(getattr(outcome, name)) for name in fields)
        case Hashable():
            return outcome
    return repr(outcome)


@functools.lru_cache(maxsize=256)
def geometric_atoms(scale: float, reach: int) -> list[Atom]:
    q = math.exp(-1 / scale)
    return [(k, (1 - q) * q**k) for k in range(reach + 1)]


@functools.lru_cache(maxsize=256)
def laplace_atoms(scale: float, reach: int) -> list[Atom]:
    q = math.exp(-1 / scale)
    return [(k, (1 - q) / (1 + q) * q ** abs(k)) for k in range(-reach, reach + 1)]


@functools.lru_cache(maxsize=16)
def spherical_atoms(scale: float, dimension: int, reach: int) -> list[Atom]:
    """A Gaussian whose variance is 2 scale^2 G, G a Gamma variable of (dimension + 1) / 2: a sum over ln G.

    The trapezoidal rule: the integrand and all its derivatives vanish at both ends, to 15 digits.
    """
    from scipy.special import gammaln, ndtr

    shape, logs = (dimension + 1) / 2, np.linspace(-45.0, 6.5, 1001)
    weights = np.exp(shape * logs - np.exp(logs) - gammaln(shape)) * (logs[1] - logs[0])
    steps = np.arange(-reach, reach + 1)
    edges = (np.arange(-reach, reach + 2) - 0.5) / (scale * np.sqrt(2 * np.exp(logs)))[:, None]
    cells = np.diff(ndtr(edges))
    law = weights[:, None]
    for _ in range(dimension):
        law = (law[:, :, None] * cells[:, None, :]).reshape(len(logs), -1)
    return list(zip(itertools.product(steps.tolist(), repeat=dimension), law.sum(axis=0).tolist(), strict=True))


@functools.lru_cache(maxsize=256)
def zero_sum_atoms(scale: float, size: int, reach: int) -> list[Atom]:
    r = math.exp(-2 / scale)
    total = math.fsum(math.comb(size, j) ** 2 * r**j for j in range(size + 1)) / (1 - r) ** size
    vectors = itertools.product(range(-reach, reach + 1), repeat=size)
    return [(each, math.exp(-(sum(map(abs, each)) + abs(sum(each))) / scale) / total) for each in vectors]


@functools.lru_cache(maxsize=256)
def gaussian_atoms(variance: float, reach: int) -> list[Atom]:
    far = max(reach, math.ceil(40 * math.sqrt(variance)))
    total = math.fsum(math.exp(-k * k / (2 * variance)) for k in range(-far, far + 1))
    return [(k, math.exp(-k * k / (2 * variance)) / total) for k in range(-reach, reach + 1)]


def _coin(p: float) -> list[Atom]:
    return [(True, p), (False, 1 - p)] if p < 1 else [(True, 1.0)]
