"""Choosing what to measure: every column, a tree of pairs and a few triples, chosen privately and then measured.

For synthetic rows of many columns there are more tables than a budget can measure. Which columns depend on each other
is itself private, so it is asked for: the exponential mechanism prefers tables that what is known so far gets wrong,
by more than chance and the noise on the columns would. One mechanism, one charge:

    1.  the table of every column alone
    2.  pairs, one after the other, that join columns not yet connected: a tree, or a forest where rows are few for
        Laplace noise. What is expected of a pair is the product of its columns: all scores are found at once
    3.  triples a, b, c of which a, b and b, c were measured: what is expected is pair times pair over the column b

Columns of many numbers or dates are counted in ranges of equal width (`Bins`), as many as their noise lets one tell
apart: a table of 2,000 values with noise on each says little about 4,000 rows, one of 15 ranges much.

The tables fit together without tangling, so that the hypothesis (`hypothesis.max_entropy`) follows all of them. The
idea is that of MST and AIM; scores and noise are integers, and the price is a theorem about them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet.answering.averaged_weights import Together
from discreet.answering.measurement import Measured
from discreet.answering.residual_marginals import public_rows
from discreet.core import Exact, Funds, Guarantee, ParameterError, Rng, checked_rate, exact
from discreet.data import MAX_ROWS, Dataset, Domain, Facts, Floats, IntArray, Needs
from discreet.hypothesis import Scope, listed_sizes, shrunk_columns, tree_cells
from discreet.mechanisms import NOISES, Gaussian, Laplace, calibrate
from discreet.query import Bins, GroupCount, Histogram

LIMIT = 2**16
"""Cells of the largest table, and of the hypothesis's junction tree: as many as a fit takes."""

_TRIPLES = 20  # at most; twice as many as columns was best among 0, 1/2, 1 and 2 times on made-up mixtures of 8 and 10
_EVEN = 2  # an even cell of a triple over its noise from which on triples are measured: see `chosen_tables`
_TOLD = 20  # rows over Laplace noise on a cell from which on a tree of pairs is measured: see `chosen_tables`
_AT_ONCE = 2**20  # cells of candidates that are held at once
_RATES = {
    "gaussian": Fraction(1, 3),
    "laplace": Fraction(1, 8),
}  # over the scale: a selection costs a ninth of a table, or a quarter

_FEWEST, _MOST = 4, 32  # ranges of a column of numbers
_SHORT = 16  # values of a column that is counted value by value

Slot = tuple[Scope, IntArray] | None

Allowed = Callable[[Sequence[Scope], Iterable[Scope]], list[Scope]]
"""Which of the candidates may be chosen next, after some were: a function of what is public or released."""


@dataclass(frozen=True, slots=True, init=False)
class ChosenTables:
    """Release the noisy table of every column, of pairs that connect them, and of some triples, chosen privately.

    A round lists its candidates R, a function of what was released before. The score of R is the whole number
    |x_R - e_R|_1 - p_R, where x_R is the table, e_R what is expected of it, rounded, and p_R a whole number, also a
    function of what was released before: how far x_R would be from e_R by chance. One is chosen with probability
    proportional to exp(rate * score).

    pairs  most rounds for pairs; by default as many as connect all columns, as in records that do not say
    more   most rounds for triples

    Theorem.   A person moves x_R by at most D1 in the L1 norm, so every score by at most D1, up or down: the scores'
               differences span at most 2 D1, and a round has bounded range 2 D1 rate. The release is the composition of
               one noisy histogram for each column and for each round, and of the rounds: with c columns and `pairs` +
               `more` rounds, c + rounds times the guarantee of `Gaussian` or `Laplace` noise of this scale, and rounds
               times the bounded range 2 D1 rate.
    Accuracy.  Every table has the noise of `Gaussian` or `Laplace`. With m candidates the chosen score is below the
               best by more than ln(m / beta) / rate with probability at most beta.
    Edges.     Where a round has no candidate (one column, tables of more than LIMIT cells, nothing left) nothing is
               released in its place; its price is paid. Which table a place has is part of what is released.
    Reference. [MMS21] (MST), [MMSM22] (AIM); docs/proofs/residual_marginals.md, "Choosing what to measure".
    """

    NAME: ClassVar[str] = "chosen-tables/1"
    columns: tuple[str | Bins, ...]
    scale: Fraction
    rate: Fraction
    more: int
    kind: str
    pairs: int

    def __init__(
        self,
        columns: Iterable[str | Bins],
        scale: Exact,
        rate: Exact,
        more: int,
        kind: str = "gaussian",
        pairs: int | None = None,
    ) -> None:
        if kind not in NOISES:
            raise ParameterError(f'kind must be "gaussian" or "laplace", found {kind!r}')
        exact.freeze(self, columns=tuple(columns), scale=exact.positive(scale=scale), kind=kind)
        exact.freeze(self, rate=exact.positive(rate=rate), more=exact.whole(0, more=more))
        Histogram(self.names)
        connecting = len(self.columns) - 1
        exact.freeze(self, pairs=connecting if pairs is None else exact.whole(0, pairs=pairs))
        if self.pairs > connecting:
            raise ParameterError(f"pairs must be at most {connecting}, as many as connect the columns, found {pairs!r}")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.column if isinstance(each, Bins) else each for each in self.columns)

    def table(self, scope: Iterable[str]) -> Histogram | GroupCount:
        """What is counted over these columns."""
        keys = [dict(zip(self.names, self.columns, strict=True))[name] for name in scope]
        plain = [key for key in keys if isinstance(key, str)]
        return Histogram(plain) if len(plain) == len(keys) else GroupCount(keys)

    @property
    def rounds(self) -> int:
        return self.pairs + self.more

    def guarantee(self, facts: Facts) -> Guarantee:
        # The same for every table of several cells, and not more for others.
        moved = max((self.table([name]).sensitivity(facts) for name in self.names), key=lambda each: each.l1)
        noise = NOISES[self.kind](self.scale)
        table = noise.guarantee(moved, unit=Fraction(1), dimension=1, neighbours=facts.neighbours)
        choice = Guarantee.of_bounded_range(2 * moved.l1 * checked_rate(self.rate), neighbours=facts.neighbours)
        return table * (len(self.columns) + self.rounds) + choice * self.rounds

    def numbers(self, facts: Facts) -> int:
        sizes = self.sizes(facts.domain).values()
        return sum(sizes) + max(*sizes, _AT_ONCE)

    def sizes(self, domain: Domain) -> dict[str, int]:
        """How many cells each column has."""
        return {name: self.table([name]).shape(domain)[0] for name in self.names}

    def needs(self, facts: Facts) -> Needs:
        """Tables over up to three of these columns: each alone, all pairs, the pairs taken, and so for triples."""
        return Needs(queries=tuple(self.table([name]) for name in self.names), passes=5)

    def run(self, data: Dataset, rng: Rng) -> tuple[Slot, ...]:
        sizes, rows = self.sizes(data.facts.domain), public_rows(data.facts)
        tables = self._measured([(name,) for name in self.names], data, rng)
        if rows is None:
            sums = [float(table.sum()) for table in tables.values()]
            rows = round(min(max(sum(sums) / len(sums), 1.0), MAX_ROWS))
        known = self._columns_known(tables, rows)
        pairs = self._chosen(joining(self.names, self.pairs), self._scored(data, known, rows, pairs_of(sizes)), rng)
        tables |= self._measured(pairs, data, rng)
        known |= {scope: shares_of(tables[scope]) for scope in pairs}
        places = triples_of(pairs, self.names, sizes)
        triples = self._chosen(untangled(pairs, sizes, self.more), self._scored(data, known, rows, places), rng)
        tables |= self._measured(triples, data, rng)
        alone = [(name,) for name in self.names]
        scopes = [*alone, *_padded(pairs, self.pairs), *_padded(triples, self.more)]
        return tuple(None if scope is None else (scope, tables[scope]) for scope in scopes)

    def _measured(self, scopes: Sequence[Scope], data: Dataset, rng: Rng) -> dict[Scope, IntArray]:
        """The tables with their noise, in one pass."""
        noise, found = NOISES[self.kind](self.scale), {}
        for scope, table in self._exact(scopes, data):
            found[scope] = table + noise.draw(table.shape, unit=Fraction(1), rng=rng)
        return found

    def _columns_known(self, tables: Mapping[Scope, IntArray], rows: int) -> dict[Scope, Floats]:
        """The columns' shares, shrunk: what is noise in them would be wrong in every pair that has the column."""
        counts = [table - (table.sum() - rows) / table.size for table in tables.values()]
        found = shrunk_columns(counts, [NOISES[self.kind](self.scale).variance()] * len(counts), float(rows))
        return {scope: shares_of(counts) for scope, counts in zip(tables, found, strict=True)}

    def _scored(
        self, data: Dataset, known: Mapping[Scope, Floats], rows: int, candidates: Sequence[Scope]
    ) -> dict[Scope, int]:
        """The score of every candidate."""
        noise, scores = NOISES[self.kind](self.scale).variance(), {}
        for scope, table in self._exact(candidates, data):
            shares = expected_shares(scope, known)
            expected = np.rint(rows * shares).astype(np.int64)
            scores[scope] = int(np.abs(table - expected).sum()) - by_chance(scope, known, shares, rows, noise)
        return scores

    def _exact(self, scopes: Sequence[Scope], data: Dataset) -> Iterator[tuple[Scope, IntArray]]:
        """The exact tables over these scopes, a part of them in each pass."""
        held: dict[Scope, tuple[int, ...]] = {}
        queries = {scope: self.table(scope) for scope in scopes}
        shapes = {scope: query.shape(data.facts.domain) for scope, query in queries.items()}
        for place, scope in enumerate(scopes):
            held[scope] = shapes[scope]
            cells = sum(map(math.prod, held.values()))
            if place == len(scopes) - 1 or cells + math.prod(shapes[scopes[place + 1]]) > _AT_ONCE:
                sums, start = data.exact_sum(Together(tuple(queries[each] for each in held))), 0
                for each, shape in held.items():
                    yield each, sums[start : start + math.prod(shape)].reshape(shape)
                    start += math.prod(shape)
                held = {}

    def _chosen(self, allowed: Allowed, scores: Mapping[Scope, int], rng: Rng) -> list[Scope]:
        """Candidates, one after the other, while some are allowed."""
        chosen: list[Scope] = []
        while left := allowed(chosen, scores):
            chosen.append(left[rng.select(np.array([scores[scope] for scope in left]), self.rate)])
        return chosen

    @property
    def chosen_parts(self) -> list[ChosenPart]:
        """The places of a release, one by one."""
        return [ChosenPart(Histogram(self.names), self)] * (len(self.columns) + self.rounds)


@dataclass(frozen=True, slots=True)
class ChosenPart:
    """One place of a release. Which table it has is known when it is released; it holds while all columns do."""

    query: Histogram
    mechanism: ChosenTables

    def measured(self, value: Any, facts: Facts, **where: Any) -> Measured | None:
        """The table of this place, if it has one."""
        if value is None:
            return None
        noisy = Gaussian if self.mechanism.kind == "gaussian" else Laplace
        return Measured.of(noisy(self.mechanism.table(value[0]), self.mechanism.scale), value[1], facts, **where)


def shares_of(table: Any) -> Floats:
    """A noisy table as shares of its cells: no count is negative. Evenly, if nothing is left."""
    counts = np.maximum(np.asarray(table, dtype=np.float64), 0.0)
    return counts / counts.sum() if counts.sum() > 0 else np.full(counts.shape, 1 / counts.size)


def expected_shares(scope: Scope, known: Mapping[Scope, Floats]) -> Floats:
    """What smaller tables lead one to expect: for a pair the product of its columns; for a triple the two pairs that
    were measured, independent given the column that they share."""
    if len(scope) == 2:
        return np.multiply.outer(known[scope[:1]], known[scope[1:]])
    pairs = [pair for pair in itertools.combinations(scope, 2) if pair in known][:2]
    (middle,) = set(pairs[0]) & set(pairs[1])
    axis = {name: place for place, name in enumerate(scope)}
    laid = [
        known[pair].reshape([known[pair].shape[pair.index(n)] if n in pair else 1 for n in scope]) for pair in pairs
    ]
    others = tuple(axis[name] for name in scope if name != middle)
    given = laid[1] / np.maximum(laid[1].sum(axis=others, keepdims=True), 1e-300)
    return np.asarray(laid[0] * given)


def by_chance(scope: Scope, known: Mapping[Scope, Floats], shares: Floats, rows: int, noise: float) -> int:
    """How far the table of this scope would be from rows times these shares, in the L1 norm, if they were right but for
    noise of this variance on the two columns of a pair. Cells are taken as normal numbers."""
    variance = rows * shares
    if len(scope) == 2:
        first, second = (known[name,] for name in scope)
        variance = variance * np.multiply.outer(1 - first, 1 - second) + noise * np.add.outer(first**2, second**2)
    return round(min(math.sqrt(2 / math.pi) * float(np.sqrt(variance).sum()), 2.0**60))


# Candidates.


def pairs_of(sizes: Mapping[str, int]) -> list[Scope]:
    return [pair for pair in itertools.combinations(sizes, 2) if sizes[pair[0]] * sizes[pair[1]] <= LIMIT]


def triples_of(pairs: Sequence[Scope], columns: Sequence[str], sizes: Mapping[str, int]) -> list[Scope]:
    """Two pairs with a column in common, each triple once."""
    found = {
        tuple(name for name in columns if name in one or name in other): None
        for one, other in itertools.combinations(pairs, 2)
        if set(one) & set(other)
    }
    return [triple for triple in found if math.prod(sizes[name] for name in triple) <= LIMIT]


def joining(columns: Sequence[str], most: int) -> Allowed:
    """At most so many pairs, of columns that the chosen pairs do not connect."""

    def allowed(chosen: Sequence[Scope], candidates: Iterable[Scope]) -> list[Scope]:
        if len(chosen) == most:
            return []
        group = {name: name for name in columns}
        for one, other in chosen:
            first, second = group[one], group[other]
            group = {name: first if root == second else root for name, root in group.items()}
        return [pair for pair in candidates if group[pair[0]] != group[pair[1]]]

    return allowed


def untangled(pairs: Sequence[Scope], sizes: Mapping[str, int], most: int) -> Allowed:
    """At most so many triples, each once, with which the junction tree of all tables stays small."""

    def allowed(chosen: Sequence[Scope], candidates: Iterable[Scope]) -> list[Scope]:
        if len(chosen) == most:
            return []
        rest = (triple for triple in candidates if triple not in chosen)
        return [triple for triple in rest if tree_cells(dict(sizes), [*pairs, *chosen, triple]) <= LIMIT]

    return allowed


def _padded(scopes: Sequence[Scope], length: int) -> list[Scope | None]:
    return [*scopes, *[None] * (length - len(scopes))]


def chosen_tables(facts: Facts, *, funds: Funds, kind: str) -> ChosenTables:
    """The release for all columns that can be listed, with the least noise that is admitted.

    Numbers and dates of more than _SHORT values are counted in sqrt(2 rows / noise) ranges, _FEWEST to _MOST of them:
    an even cell of a pair is then half as large as its noise. Triples are measured where the declared number of rows is
    at least _EVEN times the noise times the cells of a triple of columns of average size: with fewer rows they take
    budget from columns and pairs, and show little but noise. _EVEN was settled on attrition, credit and tables of
    bench/public_tables.py, CHOSEN_ON, whole or cut to 1,500 rows, and on made-up ones of 700 to 20,000 rows: below 1.3
    all pairs were 10 to 20 % further off with triples, above 3.6 pairs and triples were closer with them.

    Pairs are a tree. With Laplace noise, which grows with the number of tables and not with its root, they are fewer in
    proportion if the declared rows are less than _TOLD times the deviation of the noise on a cell. That, the rate of
    Gaussian noise, the shrunk columns and p_R were settled on 14 tables of CHOSEN_ON and 2 made-up ones, cut to 700 to
    4,500 rows and 5 to 15 columns of 2 to 12 levels. With fewer pairs and Laplace noise all pairs were a quarter closer
    at epsilon .1, and models trained on drawn rows were right more often. With Gaussian noise all pairs were 4 to 5 %
    closer for them and models no better; on `voters` models were much worse (.55 of .66), so that it keeps the tree.
    """
    sizes = listed_sizes(facts.domain)
    names = [name for name, size in sizes.items() if size > 1]

    def measuring(columns: Sequence[str | Bins], more: int, pairs: int | None = None) -> ChosenTables:
        return calibrate(
            lambda noise: ChosenTables(columns, noise, _RATES[kind] / noise, more, kind, pairs),
            funds=funds,
            facts=facts,
        )

    def binned(ranges: int) -> list[str | Bins]:
        found = [(name, in_ranges(name, facts.domain, ranges)) for name in names]
        return [key for name, key in found if isinstance(key, Bins) or sizes[name] <= LIMIT]

    if not (columns := binned(_MOST)):
        raise ParameterError("no column has several values that can be listed: there is nothing to measure for rows")
    most = min(2 * len(columns), _TRIPLES) if len(columns) > 2 else 0
    full = measuring(columns, most)
    if facts.size is None:
        return full
    ranges = round(math.sqrt(2 * facts.size / float(full.scale)))
    found = measuring(binned(min(max(ranges, _FEWEST), _MOST)), most)
    cells = math.prod(found.sizes(facts.domain).values()) ** (3 / len(columns))
    if not most or facts.size >= _EVEN * float(found.scale) * cells:
        return found
    tree = measuring(found.columns, 0)
    if kind == "gaussian":
        return tree
    pairs = round(facts.size / (_TOLD * NOISES[kind](tree.scale).variance() ** 0.5) * tree.pairs)
    return tree if pairs >= tree.pairs else measuring(found.columns, 0, pairs)


def in_ranges(name: str, domain: Domain, ranges: int) -> str | Bins:
    """A column of more numbers or dates than that in so many ranges of equal width, a missing value apart; every other
    column as it is."""
    column = domain.column(name)
    if not column.ordered or column.points <= max(ranges, _SHORT):
        return name
    starts = [place * column.points // ranges for place in range(ranges)]
    starts += [] if column.missing_code is None else [column.missing_code]
    return Bins(name, starts, range(len(starts)))
