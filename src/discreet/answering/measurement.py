"""A noisy answer that was released, and what it proves about other answers.

    value = truth + independent noise on every number; Gaussian or Laplace, on the integers, of the stated scale; or
    Laplace noise given that it adds up to zero, whose sums reach no further (`ZeroSumNoise`); or noise of which every
    weighted sum has E exp(l X) <= exp(l^2 s^2 / 2), s^2 = scale^2 times the sum of the squared weights
    (`residual_marginals.py`): what the theorem below uses of Gaussian noise.

With probability 1 - failure the following holds *at once for every question* about columns of the measurement's scope,
however the questions were chosen, also by an analyst who knows the rows and so the noise. That is needed because
questions come later and may depend on the released numbers.

Theorem.   Let the measurement be the full marginal over a scope of C cells, and T a part of its columns with C_T cells;
           a cell of T is the sum of r = C / C_T measured ones. Let a set of c of those cells be given. The error of its
           measured count is a sum of r c independent noises, each with E exp(l X) <= M(l); by Chernoff it exceeds t in
           absolute value with probability at most 2 exp(-l t) M(l)^(r c) for each l > 0. There are binom(C_T, c) such
           sets and 2^s choices of T among s columns. With failure / (2^s c (c + 1)) for each T and c, split evenly over
           the sets, the union over everything is at most `failure`, and the error of every set of c cells is at most

               t(T, c) = min over l of [ln(2 * 2^s * c (c + 1) * binom(C_T, c) / failure) + r c ln M(l)] / l.

           Gaussian: M(l) <= exp(l^2 s^2 / 2), so t = s sqrt(2 r c ln(...)), or what the normal tail gives if that is
           less (`GaussianNoise.sum_reach`). If the total is public, a set may be
           replaced by its complement: c counts from the nearer side. A weighted sum over cells, weights in [0, w], is
           the integral over h of the sets {weight > h}: its error is at most the integral of t(T, c(h)) dh; negative
           and positive weights are added up apart. Sizes c that are nearly equal may share one bound, from the
           largest of each of its terms (`SetErrors.of`).
Corollary. A question that was asked before the noise was drawn (the one that caused the measurement) has one fixed set:
           t = min over l of [ln(2 / failure) + r c ln M(l)] / l, without the count of sets.
Proof.     The union bound as written; [CKS20] lemma for the discrete Gaussian's moment generating function; for the
           discrete Laplace M(l) = (1 - q)^2 / ((1 - q e^l)(1 - q e^-l)), q = exp(-1/scale).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.answering.linear_query import group_meanings, linear, meaning, scope_of
from discreet.data import Batch, Codes, Domain, Facts, Floats, IntArray, Mask
from discreet.hypothesis import Linear
from discreet.mechanisms import LAWS, Noisy, ZeroSumNoise, free_groups
from discreet.query import EVERYTHING, Bins, GroupCount, Histogram, Question, WithRest, is_question

_LOOKS = 32  # cells of a question whose groups are looked at before those of all
_HELD = 2**17  # cells of a measured histogram whose groups are kept in memory, a byte or two each
SETS = 1 / 32  # the part of a histogram's failure that is kept for sums of its numbers
_NORMAL = 1e-12  # below such a probability the normal tail is not taken: its remainder would count
_FEW = 512  # layers of a sum, each by itself; of more, neighbours are bounded together
_GROWTH = 1.01  # the largest number of cells in such a block over the smallest


@dataclass(frozen=True, slots=True)
class BetaPlace:
    """Where a charge stands in the series that splits beta, and which share of its failure one of its parts has.

    order  the first of its places: 1 for the first charge in the ledger     taken  how many places it has
    """

    order: int = 1
    taken: int = 1
    share: Fraction = Fraction(1)


FIRST = BetaPlace()


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """One release of a Count, a Sum or a Histogram with additive noise.

    value    in the query's units, of the shape of the answer
    scale    of the noise, in the query's units           unit    what one integer of the query is worth
    entry    of its charge in the ledger                   place   which part of the session's beta is its own
    meant    the meaning of its numbers, once it was looked up: a long session asks for it again and again
    """

    query: Question
    kind: str
    scale: float
    unit: float
    value: Floats
    entry: int = 0
    place: BetaPlace = FIRST
    meant: str | None = None

    @staticmethod
    def of(noisy: Noisy, value: Any, facts: Facts, *, entry: int = 0, place: BetaPlace = FIRST) -> Measured:
        """What a mechanism has released about a count, a sum or a histogram, with what is public about its noise."""
        query: Any = noisy.query
        numbers = np.asarray(value, dtype=np.float64)
        return Measured(query, noisy.KIND, float(noisy.scale), float(query.unit(facts)), numbers, entry, place)

    @property
    def variance(self) -> float:
        """Of the noise on each number."""
        return LAWS[self.kind](self.scale).variance()

    @property
    def marginal(self) -> bool:
        """Whether it is the histogram of all rows over some columns: then it proves something about other questions."""
        return self.query.marginal

    @property
    def shown(self) -> Question:
        """The question whose numbers are its own."""
        return shown(self.query)

    def meaning(self, domain: Domain) -> str:
        """The meaning of its numbers."""
        if self.meant is None:
            object.__setattr__(self, "meant", meaning(self.shown, domain))
        assert self.meant is not None
        return self.meant

    def form(self, domain: Domain) -> Linear | None:
        return linear(self.query, domain)

    def ranges(self, domain: Domain) -> dict[str, Codes] | None:
        """For each column the first codes of its ranges, if this is a table of all rows over ranges of columns."""
        if not isinstance(self.query, GroupCount) or self.query.where != EVERYTHING:
            return None
        found: dict[str, Codes] = {}
        for key in self.query.keys:
            if isinstance(key, str):
                found[key] = np.arange(domain.column(key).size)
            elif isinstance(key, Bins) and key.groups == tuple(range(len(key.groups))):
                found[key.column] = np.array(key.starts)
        return found if len(found) == len(self.query.keys) else None

    def levelled(self, total: float | None) -> Measured:
        """The same with a sum that is the public number of rows, if that helps: docs/proofs/answering.md, "Levelled
        noise"."""
        if total is None or not projects(self.query, self.kind, self.scale, self.value.size):
            return self
        return replace(self, value=self.value - (self.value.sum() - total) / self.value.size)

    def table(self, domain: Domain) -> Floats:
        """A marginal with its axes in the domain's order, as scopes have them."""
        columns = self.query.groups
        return np.transpose(self.value, [columns.index(name) for name in scope_of(self.query, domain)])

    def sum_over(self, scope: tuple[str, ...], domain: Domain) -> Floats:
        """The marginal over some of its columns."""
        dropped = (axis for axis, name in enumerate(scope_of(self.query, domain)) if name not in scope)
        return np.asarray(self.table(domain).sum(axis=tuple(dropped)))


def with_rest(query: Histogram | GroupCount) -> GroupCount:
    """The same groups in a row, and the rows that belong to none of them as one more: these make up all rows."""
    return GroupCount([WithRest(query.columns if isinstance(query, Histogram) else query.keys, query.where)])


def shown(query: Question) -> Question:
    """The question that a query was made from by `with_rest`; any other query is shown itself."""
    keys = query.keys if isinstance(query, GroupCount) and query.where == EVERYTHING else ()
    if len(keys) != 1 or not isinstance(keys[0], WithRest):
        return query
    inner = keys[0]
    names = [key for key in inner.keys if isinstance(key, str)]
    return GroupCount(inner.keys, inner.where) if len(names) < len(inner.keys) else Histogram(names, inner.where)


def projects(query: Question, kind: str, scale: float, cells: int) -> bool:
    """Whether the cells of a query with this noise, which make up all rows, are moved so that they add up to the public
    number of rows: the theorem on levelled noise is about Gaussian noise that is not small beside their number."""
    whole = query.marginal or shown(query) is not query
    return whole and kind == "gaussian" and cells >= 2 and scale * scale >= 2 * cells


def own_error(
    query: Question, kind: str, scale: float, unit: float, cells: int, *, failure: float, levelled: bool
) -> float:
    """With probability 1 - failure (of a histogram: with the part of it that is not kept for sets) none of a
    measurement's own numbers is further off than this, in the query's units.

    cells  all numbers that are measured: its own, and the rest, if there is one, which is bounded as a set of one cell
    levelled  the number of rows is public
    """
    own = failure * (1 - SETS) if query.groups else failure
    numbers = cells - (shown(query).where != query.where)
    if kind == "zero-sum":
        free = free_groups(query, cells, rows_known=levelled)
        return ZeroSumNoise(scale, free).quantile(own, log_sets=math.log(numbers))
    plain = noise_bound(kind, scale / unit, copies=1, log_sets=math.log(numbers), failure=own) * unit
    if not levelled or not projects(query, kind, scale, cells):
        return plain
    return levelled_bound(scale, cells, own, numbers)


def levelled_bound(scale: float, cells: int, failure: float, numbers: int | None = None) -> float:
    """With probability 1 - failure none of these numbers, or of all K = cells, exceeds this in absolute value: of K
    noises, each less the mean of all.

    Theorem.   X_1, ..., X_K discrete Gaussian of scale s, s^2 >= 2 K: P[X_1 - mean >= t] is at most
               (1 + 1e-12) P[N(0, s^2 (1 - 1/K)) >= t - 1/K] + 1e-15, and at most exp(-t^2 / (2 s^2 (1 - 1/K))).
    Proof.     docs/proofs/answering.md.
    """
    from scipy.special import ndtri

    each, deviation = failure / (2 * (numbers or cells)), scale * math.sqrt(1 - 1 / cells)
    chernoff = deviation * math.sqrt(2 * math.log(1 / each))
    if each < _NORMAL:
        return chernoff
    return min(chernoff, 1 / cells - deviation * float(ndtri((each - 1e-15) * (1 - 1e-11))))


def interval(
    measured: Measured,
    question: Question,
    domain: Domain,
    *,
    failure: float,
    total: float | None,
    groups: IntArray | None = None,
) -> tuple[Floats, Floats] | None:
    """Where every number of a question's answer lies with probability 1 - failure of this measurement, in the
    question's units; None if the measurement says nothing about it.

    total  the number of rows, if it is public. Of a histogram's failure a part is for its own numbers, the rest for
           sets.
    groups  those that the question counts, if they are known: `group_cells`
    """
    ends, form, level = [], linear(question, domain), measured.levelled(total)
    numbers, sets, levelled = measured.value.size, failure * SETS, level is not measured
    own = own_error(
        *(measured.query, measured.kind, measured.scale, measured.unit, numbers),
        failure=failure,
        levelled=total is not None,
    )
    if measured.meaning(domain) == meaning(question, domain):
        shape = measured.shown.shape(domain)
        value = level.value.ravel()[: math.prod(shape)].reshape(shape)
        ends.append((value - own, value + own))
    elif measured.marginal and form is not None and set(form.scope) <= set(scope_of(measured.query, domain)):
        value, errors = read_off(measured, form, domain, failure=sets, total=total)
        if form.cells == numbers:  # a cell of the marginal itself is known as well as that
            errors = np.where(_single(form), np.minimum(errors, own), errors)
        ends.append((value - errors, value + errors))
    elif form is not None and (cells := group_cells(measured, form, domain) if groups is None else groups) is not None:
        # The theorem for the groups themselves as cells, none of them summed over others: s = 0 columns to leave out.
        of_sets = SetErrors(measured, cells=numbers, columns=0, failure=sets, levelled=levelled)
        count, width = level.value.ravel()[cells].sum(), of_sets.of(np.array([len(cells)]))[0]
        own_number = len(cells) == 1 and cells[0] < math.prod(measured.shown.shape(domain))
        width = min(width, own) if own_number else width
        ends.append((np.array(count - width), np.array(count + width)))
    if not ends:
        return None
    low, high = (np.stack(side) for side in zip(*ends, strict=True))
    return low.max(axis=0), high.min(axis=0)


def asked_for(
    measured: Measured, question: Question, domain: Domain, *, failure: float, total: float | None
) -> tuple[Floats, Floats] | None:
    """What a measurement says about the question that it was made for, and how far off each number is at the most, all
    at once with probability 1 - failure: the module's corollary. None of what is not made of its numbers."""
    level, form = measured.levelled(total), linear(question, domain)
    levelled, numbers = level is not measured, measured.value.size
    own = failure / (1 - SETS) if measured.query.groups else failure  # nothing is kept for sets
    own_terms = (measured.query, measured.kind, measured.scale, measured.unit, numbers)
    error = own_error(*own_terms, failure=own, levelled=total is not None)
    if measured.meaning(domain) == meaning(question, domain):
        shape = measured.shown.shape(domain)
        return level.value.ravel()[: math.prod(shape)].reshape(shape), np.full(shape, error)
    if form is None or not (form.weight[form.place >= 0] == 1).all():
        return None
    if numbers == 1 and total is not None and question.marginal and form.outputs == (2,):
        one, name = float(measured.value), meaning(measured.query, domain)  # of two groups that are all rows
        counted = [name == each for each in group_meanings(question, domain)]
        return (np.where(counted, one, total - one), np.full(2, error)) if any(counted) else None
    if not measured.marginal or not set(form.scope) <= set(scope_of(measured.query, domain)):
        return None
    value, _ = read_off(measured, form, domain, failure=failure, total=total)
    cells = np.bincount(form.place[form.place >= 0], minlength=value.size)
    less = form.cells - cells if total is not None else cells
    added = cells * (less / form.cells) if levelled else np.minimum(cells, less)
    spent = np.full(value.size, math.log(2 * value.size / failure))
    errors = LAWS[measured.kind](measured.scale).sum_reach(spent, numbers / form.cells * added)
    return value, errors.reshape(value.shape)


def _single(form: Linear) -> Mask:
    """Which numbers of a question are one cell each, counted once."""
    inside = form.place >= 0
    numbers = math.prod(form.outputs)
    cells = np.bincount(form.place[inside], minlength=numbers)
    weights = np.bincount(form.place[inside], weights=form.weight[inside], minlength=numbers)
    return np.asarray((cells == 1) & (weights == 1)).reshape(form.outputs)


def group_cells(measured: Measured, form: Linear, domain: Domain) -> IntArray | None:
    """For a question with one number that counts whole groups of a measured histogram: which. None if it does not."""
    if not counts_cells(form) or not counts_groups(measured):
        return None
    groups = measured.form(domain)
    if groups is None or not set(form.scope) <= set(groups.scope):
        return None
    return _whole_groups(groups.place, _within(form, groups.scope, groups.shape))


def _whole_groups(place: IntArray, within: Mask) -> IntArray | None:
    """The groups that these cells make up, if they do."""
    own = place.astype(np.int64, copy=False) + 1
    chosen = np.bincount(own[within])
    sizes = np.bincount(own)[: len(chosen)]
    if chosen[0] or ((chosen != 0) & (chosen != sizes)).any():
        return None
    return np.flatnonzero(chosen) - 1


def counts_cells(form: Linear) -> bool:
    """Whether the answer is one number, of the rows in some cells."""
    return form.outputs == () and bool((form.weight[form.place >= 0] == 1).all()) and bool((form.place >= 0).any())


def counts_groups(measured: Measured) -> bool:
    """Whether it is a histogram of counts: the groups of a sum count nothing."""
    return bool(measured.query.groups) and measured.query.counting


def _within(form: Linear, scope: tuple[str, ...], shape: tuple[int, ...]) -> Mask:
    """Which cells of a scope a question with one number counts."""
    own = [size if name in form.scope else 1 for name, size in zip(scope, shape, strict=True)]
    return np.broadcast_to((form.place >= 0).reshape(own), shape).ravel()


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredGroups:
    """A measured histogram with its groups as cells, to see quickly that a question does not count whole ones.

    rank   the order in which such measurements are looked at       variance  of the noise on each number
    place  of each cell its group, or -1; None if there are many       first, last  cells of each group
    """

    measured: Measured
    rank: tuple[int, int]
    place: IntArray | None
    first: Codes
    last: Codes
    variance: float

    @staticmethod
    def of(measured: Measured, form: Linear, rank: tuple[int, int]) -> MeasuredGroups:
        inside, groups = np.flatnonzero(form.place >= 0), math.prod(form.outputs)
        first, last = np.zeros((2, groups), dtype=np.int64)
        last[form.place[inside]] = inside  # of several the last one stays
        first[form.place[inside[::-1]]] = inside[::-1]
        place = form.place.astype(np.min_scalar_type(-groups - 1)) if form.cells <= _HELD else None
        return MeasuredGroups(measured, rank, place, first, last, measured.variance)

    def of_cells(self, cells: Codes, scope: tuple[str, ...], shape: tuple[int, ...], domain: Domain) -> Codes:
        """The groups of these cells."""
        if self.place is not None:
            return self.place[cells]
        codes = dict(zip(scope, np.unravel_index(cells, shape), strict=True))
        query: Any = self.measured.query
        batch = Batch(domain, len(cells), lambda name: codes.get(name, np.zeros(len(cells), dtype=np.int64)))
        return np.where(query.rows(domain).mask(batch), query.places(batch), -1)


class GroupsOfScope:
    """The measured histograms whose groups are made of the cells of one scope."""

    def __init__(self, form: Linear) -> None:
        self.scope, self.shape = form.scope, form.shape
        self.held: list[MeasuredGroups] = []

    def counted_by(self, form: Linear, domain: Domain) -> Iterator[tuple[MeasuredGroups, IntArray]]:
        """Those of which a question with one number counts whole groups, with these groups."""
        within = _within(form, self.scope, self.shape)
        counted = np.flatnonzero(within)
        some = counted[np.linspace(0, len(counted) - 1, _LOOKS).astype(np.int64)]
        for one in self.held:
            if self._may(one, within, some, domain):
                kept = one.place
                found = group_cells(one.measured, form, domain) if kept is None else _whole_groups(kept, within)
                if found is not None:
                    yield one, found

    def _may(self, one: MeasuredGroups, within: Mask, cells: Codes, domain: Domain) -> bool:
        """Whether the groups of these cells neither begin nor end outside of the question."""
        groups = one.of_cells(cells, self.scope, self.shape, domain)
        return bool((groups >= 0).all() and within[one.first[groups]].all() and within[one.last[groups]].all())


def covers(measured: object, question: Question, domain: Domain) -> bool:
    """Whether an additive release of the first says something about the second: what `interval` looks for first."""
    if not is_question(measured):
        return False
    if meaning(shown(measured), domain) == meaning(question, domain):
        return True
    form = linear(question, domain)
    return measured.marginal and form is not None and set(form.scope) <= set(scope_of(measured, domain))


def read_off(
    measured: Measured, form: Linear, domain: Domain, *, failure: float, total: float | None
) -> tuple[Floats, Floats]:
    """The answer that a measured marginal gives to a question about some of its columns, and the error of each number.

    The module's theorem: the errors hold for all questions at once.
    """
    level = measured.levelled(total)
    table, columns = level.sum_over(form.scope, domain), len(scope_of(measured.query, domain))
    layers = Layers.of(form, total_known=total is not None)
    levelled = level is not measured
    errors = layers.errors(SetErrors(measured, cells=form.cells, columns=columns, failure=failure, levelled=levelled))
    numbers = form.of(table)
    if total is not None and layers.others.any():
        numbers = np.where(layers.others, total - (table.sum() - numbers), numbers)
    return numbers, errors


@dataclass(frozen=True, slots=True, eq=False)
class Layers:
    """A question's numbers as weighted sums over sets of cells: number p is off by at most the sum of
    height[i] * t(T, c) over its layers i, where c lies between least[size[i]] and most[size[i]].

    others  for each number whether it is read from the cells that it does not have: the number of all rows is public
    place   of each layer, the number it belongs to
    """

    outputs: tuple[int, ...]
    others: Mask
    place: Codes
    size: Codes
    height: Floats
    least: Codes
    most: Codes

    @staticmethod
    def of(form: Linear, *, total_known: bool) -> Layers:
        """The layers of every number. Looks at the question alone: the noise is not known yet."""
        numbers, inside = math.prod(form.outputs), form.place >= 0
        if (form.weight[inside] == 1).all():
            counts = np.bincount(form.place[inside], minlength=numbers)
            others = np.asarray(2 * counts > form.cells) & total_known
            counts = np.where(others, form.cells - counts, counts)
            some = np.flatnonzero(counts)
            sizes, size = np.unique(counts[some], return_inverse=True)
            others = others.reshape(form.outputs)
            return Layers(form.outputs, others, some, size.ravel(), np.ones(len(some)), sizes, sizes)
        cells = np.argsort(form.place, kind="stable")
        starts = np.searchsorted(form.place[cells], np.arange(numbers + 1))
        layers = [_layers(form.weight[cells[one:end]]) for one, end in itertools.pairwise(starts.tolist())]
        place = np.repeat(np.arange(numbers), [len(least) for least, _, _ in layers])
        least, most, height = (np.concatenate(part) for part in zip(*layers, strict=True))
        none = np.zeros(form.outputs, dtype=bool)
        return Layers(form.outputs, none, place, np.arange(len(place)), height, least, most)

    def errors(self, sets: SetErrors) -> Floats:
        """How far off every number is at the most."""
        heights = self.height * sets.of(self.least, self.most)[self.size]
        added = np.bincount(self.place, weights=heights, minlength=math.prod(self.outputs))
        return np.asarray(added, dtype=np.float64).reshape(self.outputs)


def _layers(weight: Floats) -> tuple[Codes, Codes, Floats]:
    """The layers of one number: from least to most cells, and how high. More than _FEW of them become blocks whose ends
    differ by _GROWTH."""
    sides = []
    for side in (weight, -weight):
        levels = np.sort(side[side > 0])[::-1]
        # The c largest weights exceed every h between the c-th and the next: that is where the set has c cells.
        heights = levels - np.append(levels[1:], 0.0)
        counts = np.flatnonzero(heights) + 1
        first, last, heights = counts, counts, heights[counts - 1]
        if len(counts) > _FEW:
            number = np.floor(np.log(counts) / math.log(_GROWTH)).astype(np.int64)
            starts = np.flatnonzero(np.diff(number, prepend=-1))
            first, last = counts[starts], counts[np.append(starts[1:], len(counts)) - 1]
            heights = np.add.reduceat(heights, starts)
        sides.append((first, last, heights))
    least, most, height = (np.concatenate(part) for part in zip(*sides, strict=True))
    return least, most, height


@dataclass(frozen=True, slots=True)
class SetErrors:
    """t(T, c) of the module's theorem for a part T of the columns.

    cells  of T          columns  of the measurement
    levelled  the measured cells were moved so that they add up to the public number of rows
    """

    measured: Measured
    cells: int
    columns: int
    failure: float
    levelled: bool = False

    def of(self, counts: IntArray, most: IntArray | None = None) -> Floats:
        """At least the errors of all sets whose number of cells, never 0, is from counts to most: of t(T, c) the number
        of sets is largest for the c nearest to half of the cells, everything else for c = most."""
        from scipy.special import gammaln

        most = counts if most is None else most
        copies = self.measured.value.size / self.cells
        usual = np.clip(self.cells // 2, counts, most)
        logs = gammaln(self.cells + 1) - gammaln(usual + 1) - gammaln(self.cells - usual + 1)
        logs = logs + np.log(most * (most + 1.0)) + self.columns * math.log(2)
        noise = LAWS[self.measured.kind](self.measured.scale)
        # Levelled, c of C cells leave (1 - c/C) of the variance: the most of c (1 - c/C) is at c = C/2.
        added = usual * (1 - usual / self.cells) if self.levelled else most
        return noise.sum_reach(math.log(2 / self.failure) + logs, copies * added)


def noise_bound(kind: str, scale: float, *, copies: float, log_sets: float, failure: float) -> float:
    """With probability 1 - failure none of exp(log_sets) fixed sums of `copies` noises exceeds this in absolute value.

    scale is in integers of the query; so is the result.
    """
    return LAWS[kind](scale).quantile(failure, copies=copies, log_sets=log_sets)
