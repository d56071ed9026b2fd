"""The maximum-entropy hypothesis that agrees with everything measured. All of it is a function of released numbers.

Let y_j be the measured numbers, v_j the variances of their noise, N the number of rows and A_j p the answers on one row
drawn from p. Among the distributions p_theta proportional to exp(sum_j theta_j A_j), those of maximum entropy given
their answers, this finds the maximum of the concave function

    <theta, y> - N log Z(theta) - (1/2) sum_j slack_j theta_j^2,

at which every number is met up to y_j - N A_j p = slack_j theta_j (equivalently, p minimises
sum_j (y_j - N A_j p)^2 / (2 slack_j) + N KL(p || uniform)). As slack falls to 0 this is the distribution of maximum
entropy among the weighted least squares fits; a slack that is too small fits noise, one that is too large does not fit.

The slack. The base is TIE times the standard deviation of the noise: it moves a cell by less than the noise unless its
theta exceeds 5. Measurements are taken in by the number of columns they speak of, 1, 2, 3, ...; for each one what those
before it predict is compared with what was measured. If the sum of squares of the differences is (1 + s) times what
noise alone would give, the slack is the base times 1 + NOISE / s: a measurement that shows nothing but noise leaves the
hypothesis as it is (the columns stay independent, or depend on each other in pairs only), one that shows a signal is
fitted. It is the shrinkage of empirical Bayes, for whole tables. Complete marginals are first averaged with what larger
ones imply for their columns, and what they imply for each column alone joins as a measurement of its own, so that no
larger table is fitted closely for the sake of its edges. The rule and its two constants were found by trials on the
tables of bench/pmw_tables.py and on made-up ones; on 24 other made-up tables they had the least mean error among those
tried, and without NOISE it was 1.2 to 1.3 times as large. Nothing proved depends on them.

Where nothing but complete marginals was measured, these are shrunk first, all together, by the exact variances of their
noise (`residuals.py`): what then is left in them is fitted closely, with a slack made of SHRUNK times the noise. On 19
tables of bench/public_tables.py, CHOSEN_ON, and made-up ones, of 700 to 4,500 rows, of which all columns and a tree of
pairs were measured, pairs were 7 % closer at epsilon .1 and 2 % at 3, and models trained on drawn rows were right as
often or more often; with all pairs measured, 0 to 2 % closer. Beside single counts the fit was 1 to 4 % worse for it,
since what is shrunk gives way to nothing.

The maximum is found by Newton's method, each step by preconditioned conjugate gradients. Measurements that share no
column, directly or through others, are fitted apart. Small tables are kept whole, larger ones as a junction tree
(`graphical_model.py`); how large, and how long a fit may take, is an `Effort`. In a tree a column of which nothing but
the same ranges were counted has one value for each range (`coarse.py`). The same measurements give the same bytes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from discreet.core import ParameterError
from discreet.data import Codes, Domain, Floats
from discreet.hypothesis.coarse import Coarse, Hypothesis
from discreet.hypothesis.dense import Dense
from discreet.hypothesis.graphical_model import Factored, start
from discreet.hypothesis.junction_tree import MAX_TREE, all_shares, tree_cells, tree_of
from discreet.hypothesis.residuals import ResidualFit
from discreet.hypothesis.tensor import Linear, Scope, lay

TIE = 0.2
NOISE = 5.0
SHRUNK = 0.1  # the part of its noise that is left in a shrunk marginal, as far as its slack goes
_LEAST_SIGNAL = 0.02  # s is not taken for smaller: what shows no signal still counts a little
_CLOSE = 0.03  # the gradient's largest entry at the end, in standard deviations of the noise
_NEWTON, _GRADIENTS = 100, 200  # most steps
_ENTRY = 8  # cells that take as long as one cell of a measurement that is no complete marginal
_FEW = 6  # columns of a scope that is fitted by residuals, of which it has 2^columns

Tables = dict[Scope, Floats]


@dataclass(frozen=True, slots=True)
class Effort:
    """How much a fit may take.

    dense      most cells of a domain that is kept whole; a larger one is kept as a junction tree
    tree       most cells of a clique of that tree: measurements that would make it larger are left out
    answer     most cells of a clique of the tree that one answer takes
    scopes     most complete marginals that are taken in, the first ones
    levels     most fits, one after the other: to measurements of one column, of up to two, ...; the last is to all
    work       most cells that one of these looks at: it ends there, a little short of the maximum,
    looks      but looks at least and at most that often
    residuals  whether measured marginals are shrunk, and fitted by least squares too where the domain is not kept whole
    """

    dense: int
    tree: int
    answer: int
    scopes: int
    levels: int
    work: int
    looks: tuple[int, int]
    residuals: bool


THOROUGH = Effort(
    dense=2**22,
    tree=2**16,
    answer=MAX_TREE,
    scopes=2**20,
    levels=2**10,
    work=2**29,
    looks=(12, 2**29),
    residuals=True,
)
"""For rows that are drawn, and for workloads: seconds, if need be."""

QUICK = Effort(dense=2**16, tree=2**13, answer=2**19, scopes=48, levels=3, work=2**24, looks=(24, 128), residuals=False)
"""For a guess while a question waits: some hundredths of a second."""


class Measurement(Protocol):
    """A query, its noisy numbers, and the variance of the noise on each of them."""

    @property
    def query(self) -> Hashable: ...
    @property
    def value(self) -> Floats: ...
    @property
    def variance(self) -> float: ...
    def form(self, domain: Domain) -> Linear | None: ...
    def ranges(self, domain: Domain) -> Mapping[str, Codes] | None: ...


@dataclass(frozen=True, eq=False)
class FittedHypothesis:
    """What was measured, as a guess of the table.

    total      the number of rows that it stands for
    left_out   the measurements, by index, that the hypothesis does not use
    residuals  the least squares fit to all measured marginals, if the domain is too large to be kept whole
    starts     of the ranges of columns of which ranges were counted: their sizes here are the numbers of ranges
    values     the sizes of all columns, in values
    effort     what the fit may take
    """

    parts: list[MeasuredPart]
    sizes: dict[str, int]
    total: float
    left_out: tuple[int, ...] = ()
    residuals: ResidualFit | None = None
    starts: Mapping[str, Codes] = field(default_factory=dict)
    values: Mapping[str, int] = field(default_factory=dict)
    effort: Effort = THOROUGH

    @cached_property
    def hypothesis(self) -> Hypothesis:
        """The distribution of maximum entropy; found when it is first needed."""
        found = _hypothesis(self.parts, self.sizes, self.total, self.effort)
        return Coarse(found, self.starts, self.values) if self.starts else found

    def answer(self, form: Linear) -> Floats:
        """The guess of a question: by the hypothesis; in a domain that is too large to be kept whole by the measured
        marginals, no count below 0, if one of them has all columns of the question."""
        if self.residuals is None or form.scope not in self.residuals.residuals or self.starts.keys() & set(form.scope):
            if tree_cells(self.values, [*(part.scope for part in self.parts), form.scope]) > self.effort.answer:
                raise ParameterError(f"the scopes tangle: a guess about {list(form.scope)} takes too large a table")
            return np.asarray(self.hypothesis.mean(form) * self.total)
        return form.of(np.maximum(self.residuals.marginal(form.scope), 0.0))


def fit(
    measured: Sequence[Measurement], domain: Domain, *, total: float | None, effort: Effort = THOROUGH
) -> FittedHypothesis:
    """The hypothesis nearest to everything measured; it depends on that alone, so that a session that is opened again
    finds the same.

    total  the number of rows if it is public; None: estimated from what was measured
    """
    values = listed_sizes(domain)
    large = math.prod(values.values()) > effort.dense
    starts = _starts(measured, domain, effort) if large else {}
    sizes = values | {name: len(each) for name, each in starts.items()}
    used = [_InRanges.of(each, domain, starts) for each in measured] if starts else measured
    parts, left_out = parts_of(used, domain, sizes, effort)
    rows = total if total is not None else _total(parts)
    fitted = _least_squares(used, domain, sizes, rows) if large and effort.residuals else None
    return FittedHypothesis(parts, sizes, rows, left_out, fitted, starts, values, effort)


def _starts(measured: Sequence[Measurement], domain: Domain, effort: Effort) -> dict[str, Codes]:
    """The ranges of every column of which nothing else was measured than the counts of these ranges.

    Where several divisions into ranges were counted, a column has its values, or, if these are more than a tree holds,
    the ranges in which all divisions agree.
    """
    found: dict[str, Codes] = {}
    for each in measured:
        ranges, form = each.ranges(domain), None
        if ranges is None and (form := each.form(domain)) is not None:
            ranges = {name: np.arange(size) for name, size in zip(form.scope, form.shape, strict=True)}
        for name, starts in (ranges or {}).items():
            if not np.array_equal(found.setdefault(name, starts), starts):
                size = domain.column(name).size
                found[name] = np.arange(size) if size <= effort.tree else np.union1d(found[name], starts)
    return {name: starts for name, starts in found.items() if len(starts) < domain.column(name).size}


@dataclass(frozen=True, slots=True, eq=False)
class _InRanges:
    """A measurement over ranges, as one of the table over ranges."""

    query: Hashable
    value: Floats
    variance: float
    linear: Linear

    @staticmethod
    def of(measured: Measurement, domain: Domain, starts: Mapping[str, Codes]) -> Measurement:
        ranges = measured.ranges(domain)
        if ranges is None or not starts.keys() & ranges.keys():
            return measured
        scope = tuple(name for name in domain.names if name in ranges)
        values = {name: starts[name] if name in starts else np.arange(domain.column(name).size) for name in scope}
        axes = np.meshgrid(*(np.searchsorted(ranges[name], values[name], "right") - 1 for name in scope), indexing="ij")
        outputs = tuple(len(each) for each in ranges.values())
        place = np.ravel_multi_index([axes[scope.index(name)] for name in ranges], outputs).ravel()
        form = Linear(scope, axes[0].shape, outputs, place, np.ones(len(place)))
        return _InRanges(measured.query, measured.value, measured.variance, form)

    def form(self, domain: Domain) -> Linear:
        return self.linear

    def ranges(self, domain: Domain) -> None:
        return None


def _hypothesis(parts: list[MeasuredPart], sizes: dict[str, int], rows: float, effort: Effort) -> Dense | Factored:
    tables: Tables = {}
    groups: list[list[MeasuredPart]] = []  # parts that share columns, directly or through others, are fitted together
    for part in _with_implied(parts, sizes, max(rows, 1.0), effort):
        if part.scope:
            touched = [group for group in groups if any(set(part.scope) & set(other.scope) for other in group)]
            groups = [group for group in groups if group not in touched]
            groups.append([*itertools.chain.from_iterable(touched), part])
    for group in groups:
        by_size = sorted(group, key=lambda part: (len(part.scope), part.scope))
        tables.update(_fit_group(by_size, sizes, max(rows, 1.0), effort))
    if tables and math.prod(sizes.values()) > effort.dense:
        return Factored(sizes, tables)
    if tables:
        even = {tuple(sizes): np.zeros(list(sizes.values()))}
        return Dense.from_logs(sizes, _Pyramid(sizes, tables).raised({**even, **tables}))
    return start(sizes) if math.prod(sizes.values()) <= effort.dense else Factored(sizes)


def _least_squares(
    measured: Sequence[Measurement], domain: Domain, sizes: dict[str, int], rows: float
) -> ResidualFit | None:
    """The fit to all complete marginals of few columns, if there are any."""
    forms = [(each.form(domain), each) for each in measured]
    whole = [
        (form.scope, np.asarray(each.value, dtype=np.float64).reshape(form.shape), each.variance)
        for form, each in forms
        if form is not None and 0 < len(form.scope) <= _FEW and form.whole
    ]
    return ResidualFit.of(whole, sizes, total=rows) if whole else None


def listed_sizes(domain: Domain) -> dict[str, int]:
    """The columns that a hypothesis is about: those whose values can be listed."""
    return {name: column.size for name, column in domain.items() if column.listed}


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredPart:
    """Numbers of one query: one measurement, or several of the same query averaged."""

    form: Linear
    value: Floats
    variance: float
    plain: bool  # the cells of the scope in their own order, each counted once: no places to look up

    @staticmethod
    def average(form: Linear, repeated: list[tuple[Floats, float]]) -> MeasuredPart:
        """Of several values with their variances, by their precision."""
        precision = math.fsum(1 / variance for _, variance in repeated)
        value = np.sum([value / variance for value, variance in repeated], axis=0) / precision
        return MeasuredPart(form, value, 1 / precision, form.whole)

    @property
    def scope(self) -> Scope:
        return self.form.scope


def parts_of(
    measured: Sequence[Measurement], domain: Domain, sizes: dict[str, int], effort: Effort = THOROUGH
) -> tuple[list[MeasuredPart], tuple[int, ...]]:
    """What can be used, repeated queries averaged; and the indices of the rest."""
    forms: dict[Hashable, Linear] = {}
    held: list[Scope] = []  # the largest scopes: those inside of others make no clique larger
    complete = 0
    values: dict[Hashable, list[tuple[Floats, float]]] = {}
    left_out = []
    for index, measurement in enumerate(measured):
        query = measurement.query
        if query not in forms:
            form = measurement.form(domain)
            if form is None or (form.whole and complete >= effort.scopes):
                left_out.append(index)
                continue
            columns = set(form.scope)
            if not any(columns <= set(other) for other in held):
                if tangled([*held, form.scope], sizes, effort):
                    left_out.append(index)
                    continue
                held = [*(other for other in held if not set(other) <= columns), form.scope]
            forms[query] = form
            complete += form.whole
        numbers = np.asarray(measurement.value, dtype=np.float64).ravel()
        values.setdefault(query, []).append((numbers, max(measurement.variance, 1e-18)))
    parts = [MeasuredPart.average(form, values[query]) for query, form in forms.items() if form.weight.any()]
    return parts, tuple(left_out)


def _with_implied(parts: list[MeasuredPart], sizes: dict[str, int], rows: float, effort: Effort) -> list[MeasuredPart]:
    """The same, and what complete marginals say about each other and about single columns, averaged into one marginal
    for each of these scopes: every scope gets the best that is known about it, and a slack of its own. They are shrunk
    if nothing else was measured and the effort admits it."""
    whole = [part for part in parts if part.plain and part.scope]
    alone = [(name,) for name in sizes if any(name in part.scope for part in whole)]
    implied = []
    for scope in dict.fromkeys([*alone, *(part.scope for part in whole)]):
        known, shape = [], tuple(sizes[name] for name in scope)
        for part in whole:
            if set(scope) <= set(part.scope):
                summed = tuple(axis for axis, name in enumerate(part.scope) if name not in scope)
                table = part.value.reshape(part.form.shape).sum(axis=summed)
                known.append((table.ravel(), part.variance * (part.form.cells // table.size)))
        cells = math.prod(shape)
        implied.append(MeasuredPart.average(Linear(scope, shape, shape, np.arange(cells), np.ones(cells)), known))
    if effort.residuals and all(part.plain for part in parts if part.scope):
        implied = _shrunk(implied, whole, sizes, rows)
    return [*(part for part in parts if part not in whole), *implied]


def _shrunk(
    parts: list[MeasuredPart], measured: list[MeasuredPart], sizes: dict[str, int], rows: float
) -> list[MeasuredPart]:
    """Marginals as the residuals of all that was measured lead one to expect them, each with what is left of its noise;
    those of many columns as they are."""
    few = [part for part in measured if len(part.scope) <= _FEW]
    if not few:
        return parts
    tables = [(part.scope, part.value.reshape(part.form.shape), part.variance) for part in few]
    fitted, found = ResidualFit.of(tables, sizes, total=rows), []
    for part in parts:
        if part.scope in fitted.residuals:
            counts = np.maximum(fitted.marginal(part.scope), 0.0).ravel()
            value = counts * (rows / max(float(counts.sum()), 1e-9))
            part = replace(part, value=value, variance=part.variance * SHRUNK**2)
        found.append(part)
    return found


def tangled(scopes: list[Scope], sizes: dict[str, int], effort: Effort = THOROUGH) -> bool:
    """Whether a fit to all these scopes would take too large a table."""
    columns = {name for scope in scopes for name in scope}
    cells = math.prod(sizes[name] for name in columns)
    return cells > effort.dense and tree_cells(sizes, scopes) > effort.tree


def _total(parts: Sequence[MeasuredPart]) -> float:
    """The number of rows: the sums of complete marginals, averaged by their precision; without any, the number with
    which a uniform table answers best."""
    known = [
        (np.array([float(part.value.sum())]), np.ones(1), part.variance * part.form.cells)
        for part in parts
        if part.plain
    ]
    if not known:
        even = [np.full(part.form.shape, 1 / part.form.cells) for part in parts]
        known = [(part.value, part.form.of(one).ravel(), part.variance) for part, one in zip(parts, even, strict=True)]
    weight = math.fsum(_product(share, share) / variance for _, share, variance in known)
    rows = math.fsum(_product(answer, share) / variance for answer, share, variance in known)
    return max(0.0, rows / weight) if weight > 0 else 0.0


def _fit_group(parts: list[MeasuredPart], sizes: dict[str, int], rows: float, effort: Effort) -> Tables:
    """The tables whose sum is the logarithm of the fit: level by level, fewest columns first."""
    held = {name: sizes[name] for name in sizes if any(name in part.scope for part in parts)}
    theta, slack = np.zeros(0), np.zeros(0)
    levels = sorted({len(part.scope) for part in parts})
    levels[effort.levels - 1 : -1] = []
    for level in levels:
        problem = EntropyProblem([part for part in parts if len(part.scope) <= level], held, rows, effort)
        theta = np.append(theta, np.zeros(len(problem.value) - len(theta)))
        slack = np.append(slack, problem.slack(theta)[len(slack) :])
        theta = problem.solve(theta, slack, _CLOSE if level == levels[-1] else 10 * _CLOSE)
    return problem.tables(theta)


class _Design:
    """What was measured as one sparse matrix on the cells of all scopes, one scope after the other."""

    def __init__(self, parts: Sequence[MeasuredPart]) -> None:
        from scipy.sparse import csr_array

        self.shapes = {part.scope: part.form.shape for part in parts}
        ends = np.cumsum([0, *map(math.prod, self.shapes.values())])
        starts, numbers = (
            dict(zip(self.shapes, ends, strict=False)),
            np.cumsum([0, *(len(each.value) for each in parts)]),
        )
        used = [np.flatnonzero(part.form.place >= 0) for part in parts]
        rows = [first + part.form.place[cells] for first, part, cells in zip(numbers, parts, used, strict=False)]
        columns = [starts[part.scope] + cells for part, cells in zip(parts, used, strict=True)]
        weights = [part.form.weight[cells] for part, cells in zip(parts, used, strict=True)]
        entries = np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns))
        self.matrix = csr_array(entries, shape=(numbers[-1], ends[-1]))
        self.squared, self.spread, self.ends = self.matrix.multiply(self.matrix).tocsr(), self.matrix.T, ends[1:-1]

    def tables(self, numbers: Floats) -> Tables:
        """For every scope the sum over its numbers, each times its weights."""
        pieces = zip(self.shapes.items(), np.split(self.spread @ numbers, self.ends), strict=True)
        return {scope: piece.reshape(shape) for (scope, shape), piece in pieces}

    def of(self, marginals: Tables, *, squared: bool = False) -> Floats:
        """The answers; as if every weight were squared: what the rows add to the curvature, if cells are rare."""
        cells = np.concatenate([marginals[scope].ravel() for scope in self.shapes])
        return np.asarray((self.squared if squared else self.matrix) @ cells)


# Marginal oracles: expected counts under exp(sum of tables), their marginals, and how those move.


class _Pyramid:
    """One array, and marginals of it: each is summed from the least larger one, and tables are added up the same way.

    steps  each scope with that larger one, the axes of the larger one which are summed, and an index that adds them
    """

    def __init__(self, sizes: Mapping[str, int], scopes: Iterable[Scope]) -> None:
        self.names, self.shape = tuple(sizes), tuple(sizes.values())
        parent: dict[Scope, Scope] = {}  # in the order in which they are summed
        for scope in sorted(dict.fromkeys(scopes), key=len, reverse=True):
            while scope not in (known := [self.names, *parent]):
                above = min(
                    (other for other in known if set(scope) <= set(other)),
                    key=lambda other: math.prod(sizes[name] for name in other),
                )
                dropped = max((name for name in above if name not in scope), key=sizes.__getitem__)
                parent[tuple(name for name in above if name != dropped)] = above
        self.steps: list[tuple[Scope, Scope, tuple[int, ...], Any]] = []
        for scope, above in parent.items():
            axes = tuple(axis for axis, name in enumerate(above) if name not in scope)
            self.steps.append((scope, above, axes, tuple(slice(None) if name in scope else None for name in above)))

    def raised(self, tables: Tables) -> Floats:
        """The sum of the tables over all cells."""
        held = dict(tables)
        for scope, above, _, index in reversed(self.steps):
            if scope in held:
                table = held.pop(scope)[index]
                held[above] = held[above] + table if above in held else table
        return np.broadcast_to(held.get(self.names, np.zeros(())), self.shape)

    def marginals(self, counts: Floats) -> Tables:
        found = {self.names: counts}
        for scope, above, axes, _ in self.steps:
            found[scope] = np.add.reduce(found[above], axis=axes)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """The number of rows, the marginals over all scopes, and those of each clique by itself."""

    rows: float
    marginals: Tables
    cliques: Sequence[Tables] = ()


class DenseOracle:
    """All cells in one array."""

    def __init__(self, sizes: Mapping[str, int], scopes: Iterable[Scope]) -> None:
        self.pyramid = _Pyramid(sizes, scopes)

    def at(self, tables: Tables, rows: float) -> Point:
        logs = self.pyramid.raised(tables)
        counts: Floats = np.exp(logs - logs.max())
        counts *= rows / counts.sum()
        return Point(rows, self.pyramid.marginals(counts))

    def bent(self, point: Point, tables: Tables) -> Tables:
        """How the marginals move when the logarithms move along these tables, the number of rows held."""
        counts = point.marginals[self.pyramid.names]
        moved = self.pyramid.raised(tables) * counts
        moved -= counts * (moved.sum() / point.rows)
        return self.pyramid.marginals(moved)


class TreeOracle:
    """The same through a junction tree, one array for each clique.

    When the logarithms move by D, a sum of tables over the cliques, the count of a clique's cell moves by itself times
    E[D | the cell] - E[D]. Two waves of messages find that: what a clique's side of the tree adds to E[D | separator].
    """

    def __init__(self, sizes: Mapping[str, int], scopes: Iterable[Scope]) -> None:
        self.sizes, listed = sizes, list(dict.fromkeys(scopes))
        self.tree = tree_of(sizes, listed)
        self.home = {
            scope: next(at for at, held in enumerate(self.tree.sets) if held.issuperset(scope)) for scope in listed
        }
        self.pyramids = []
        for place, clique in enumerate(self.tree.cliques):
            near = [each for at, each in enumerate(self.tree.separators) if at and place in (at, self.tree.parents[at])]
            mine = [scope for scope in listed if self.home[scope] == place]
            self.pyramids.append(_Pyramid({name: sizes[name] for name in clique}, [*mine, *near]))

    def at(self, tables: Tables, rows: float) -> Point:
        pairs = zip(self.pyramids, self._by_clique(tables), strict=True)
        logs = {pyramid.names: pyramid.raised(mine) for pyramid, mine in pairs}
        shares = zip(self.pyramids, all_shares(self.tree, self.sizes, logs), strict=True)
        cliques = [pyramid.marginals(share * rows) for pyramid, share in shares]
        return Point(rows, {scope: cliques[home][scope] for scope, home in self.home.items()}, cliques)

    def bent(self, point: Point, tables: Tables) -> Tables:
        """How the marginals move when the logarithms move along these tables, the number of rows held."""
        tree, counts, said = self.tree, point.cliques, self._by_clique(tables)
        logs, told = [np.zeros(())] * len(said), [np.zeros(())] * len(said)
        for place in reversed(range(len(said))):
            logs[place] = self.pyramids[place].raised(said[place])
            if place:
                clique, separator, above = tree.cliques[place], tree.separators[place], said[tree.parents[place]]
                axes = tuple(axis for axis, name in enumerate(clique) if name not in separator)
                added = np.add.reduce(counts[place][clique] * logs[place], axis=axes)
                told[place] = _expected(added, counts[place][separator])
                above[separator] = above[separator] + told[place] if separator in above else told[place]
        moved: list[Tables] = []
        for place, clique in enumerate(tree.cliques):
            weighed, here = counts[place][clique], logs[place]
            if place:
                separator = tree.separators[place]
                rest = _expected(moved[tree.parents[place]][separator], counts[place][separator]) - told[place]
                here = here + lay(rest, separator, clique)
                counted = here * weighed
            else:
                counted = here * weighed
                counted -= weighed * (counted.sum() / point.rows)
            moved.append(self.pyramids[place].marginals(counted))
        return {scope: moved[home][scope] for scope, home in self.home.items()}

    def _by_clique(self, tables: Tables) -> list[Tables]:
        found: list[Tables] = [{} for _ in self.pyramids]
        for scope, table in tables.items():
            found[self.home[scope]][scope] = table
        return found


def _expected(added: Floats, counts: Floats) -> Floats:
    """The average of what was added up over these numbers of rows; 0 where there are none."""
    return np.divide(added, counts, out=np.zeros(np.shape(counts)), where=counts > 0)


class EntropyProblem:
    """The concave problem for some measurements; theta, slack and the gradient are vectors over all their numbers."""

    def __init__(
        self, parts: list[MeasuredPart], sizes: dict[str, int], rows: float, effort: Effort = THOROUGH
    ) -> None:
        self.parts, self.rows = parts, rows
        self.design = _Design(parts)
        scopes = list(self.design.shapes)
        dense = math.prod(sizes.values()) <= effort.dense
        self.cells: DenseOracle | TreeOracle = (DenseOracle if dense else TreeOracle)(sizes, scopes)
        # A tree is looked at twice for one step, clique by clique, in logarithms: much more than one pass.
        work = math.prod(sizes.values()) if dense else 64 * tree_cells(sizes, scopes)
        fewest, most = effort.looks
        entries = sum(np.count_nonzero(part.form.place >= 0) for part in parts if not part.plain)
        self.looks = min(most, max(fewest, effort.work // (work + _ENTRY * entries)))
        self.value = np.concatenate([part.value for part in parts])
        self.noise = np.concatenate([np.full(len(part.value), math.sqrt(part.variance)) for part in parts])

    def tables(self, theta: Floats) -> Tables:
        """The sum over measurements of theta times their weights, scope by scope."""
        return self.design.tables(theta)

    def answers(self, marginals: Tables) -> Floats:
        return self.design.of(marginals)

    def slack(self, theta: Floats) -> Floats:
        """For every number, as the module's docstring has it; theta is the fit to the measurements before it."""
        apart = self.value - self.answers(self.cells.at(self.tables(theta), self.rows).marginals)
        slacks = []
        for part, differences in zip(self.parts, _cut(apart, [len(part.value) for part in self.parts]), strict=True):
            signal = _product(differences, differences) / (len(differences) * part.variance) - 1
            largest = float(np.max(np.abs(part.form.weight), initial=0.0)) or 1.0
            base = TIE * math.sqrt(part.variance) * largest
            slacks.append(np.full(len(differences), base * (1 + NOISE / max(signal, _LEAST_SIGNAL))))
        return np.concatenate(slacks)

    def solve(self, theta: Floats, slack: Floats, close: float) -> Floats:
        """Newton's method. The function is concave, so the slope along a step tells whether it went too far."""
        near = close * self.noise + 1e-10 * self.rows
        point, gradient = self._at(theta, slack)
        for _ in range(_NEWTON):
            if (np.abs(gradient) <= near).all() or self.looks <= 0:
                break
            step = self._step(point, gradient, slack)
            rise, length = _product(gradient, step), 1.0
            for _ in range(40):
                point, gradient = self._at(theta + length * step, slack)
                if _product(gradient, step) >= -rise / 2:
                    break
                length /= 2
            theta = theta + length * step
        return theta

    def _at(self, theta: Floats, slack: Floats) -> tuple[Point, Floats]:
        self.looks -= 1
        point = self.cells.at(self.tables(theta), self.rows)
        return point, self.value - self.answers(point.marginals) - slack * theta

    def _step(self, point: Point, gradient: Floats, slack: Floats) -> Floats:
        """(curvature + diag(slack))^-1 gradient, roughly: conjugate gradients, preconditioned by the diagonal."""
        diagonal = self.design.of(point.marginals, squared=True) + slack
        step, left = np.zeros_like(gradient), gradient.copy()
        scaled = left / diagonal
        direction, size = scaled.copy(), _product(left, scaled)
        enough = 0.01 * size
        for _ in range(_GRADIENTS):
            self.looks -= 1
            bent = self.answers(self.cells.bent(point, self.tables(direction))) + slack * direction
            length = size / _product(direction, bent)
            step += length * direction
            left -= length * bent
            scaled = left / diagonal
            size, before = _product(left, scaled), size
            if size <= enough or self.looks <= 0:
                break
            direction = scaled + direction * (size / before)
        return step


def _product(one: Floats, other: Floats) -> float:
    """The scalar product, added up in one thread: BLAS wakes others for long vectors, which takes longer than this and
    makes the sum depend on how many there are."""
    return float(np.einsum("i,i->", one, other))


def _cut(numbers: Floats, lengths: list[int]) -> list[Floats]:
    return np.split(numbers, np.cumsum(lengths)[:-1])
