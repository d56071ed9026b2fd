"""Conjunctions one condition at a time: what the rows say about every condition is counted, one is chosen, and the rows
that falsify it are put aside.

    GreedySelection   the exponential mechanism in every round (lecture 12, take 2); each round is paid for
    SelfDeleting      the same idea arranged so that the hazard lemma applies: the price does not grow with the rounds
    WeighedGreedy     few conditions, each for the mistakes it repairs: no promise, but good on ordinary tables

For a condition c let neg(c) and pos(c) be the numbers of negative and positive rows, among those that satisfy all that
was chosen so far, that falsify c. A good condition has many of the former and none of the latter. If k conditions label
every row right, then one of them falsifies 1/k of the negative rows that are left, and no positive one.

The promise of the first two: after J rounds at most

    slack * (J + k (1 - q^J)) + N q^J

rows are labelled wrong, where N bounds the negative rows, q is 1 - 1/k or k/(k + 1), and every choice is within `slack`
rows of what it should be. Proof: docs/proofs/greedy.md.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet.core import FAILING, Funds, ParameterError, exact
from discreet.data import Batch, Dataset, Facts, IntArray, Needs
from discreet.mechanisms import Guarantee, Rng, calibrate, checked_rate, checked_scale, person_range, wrong_rows
from discreet.method import Method, Methods
from discreet.pac import hazard_lemma
from discreet.pac.rules import Conditions, Labels, Literals, Thresholds

Draws = tuple[int | None, ...]
"""Everything that is drawn: numbers of conditions, and None for "none"."""

_LARGEST_SCORE = 2**61
_LARGEST_WEIGHT = 100
_COUNTING = 4
"""Counting with noise of 4 / rate costs a quarter of a round, and is precise enough for a ratio."""


@dataclass(frozen=True, slots=True)
class Falsified:
    """What one pass over the rows says: line 0 counts negative rows and line 1 positive ones, among those that satisfy
    all of `chosen`; column c those that falsify condition c, the last column all of them."""

    conditions: Conditions
    labels: Labels
    chosen: tuple[int, ...]

    def partial(self, batch: Batch) -> IntArray:
        alive, positive = self.conditions.holds(batch, self.chosen), self.labels.mask(batch)
        groups = (alive & ~positive, alive & positive)
        totals = [[np.count_nonzero(group)] for group in groups]
        return np.concatenate([self.conditions.falsified(batch, groups), totals], axis=1)


class _Survivors:
    """The conditions chosen so far, and the counts among the rows that satisfy them: one pass for every change."""

    def __init__(self, conditions: Conditions, labels: Labels, data: Dataset) -> None:
        self.state, self.draws = Falsified(conditions, labels, ()), list[int | None]()
        self._data = data
        self._counts: IntArray | None = None

    def counts(self) -> IntArray:
        if self._counts is None:
            self._counts = self._data.exact_sum(self.state)
        return self._counts

    def draw(self, scores: IntArray, rate: Fraction, rng: Rng) -> int | None:
        """One draw by the exponential mechanism, and its choice; the last score is that of "none"."""
        place = rng.select(scores, rate)
        number = place if place < len(scores) - 1 else None
        self.draws.append(number)
        if number is not None and number not in self.state.chosen:
            self.state = replace(self.state, chosen=(*self.state.chosen, number))
            self._counts = None
        return number


def _check(conditions: object, labels: object, facts: Facts) -> None:
    """The conditions and the labels fit the domain, and the labels are not among the conditions."""
    if not isinstance(conditions, (Literals, Thresholds)):
        raise ParameterError(f"conditions must be Literals or Thresholds, found {type(conditions).__name__}")
    if not isinstance(labels, Labels):
        raise ParameterError(f"labels must be Labels, found {type(labels).__name__}")
    conditions.check(facts.domain)
    labels.check(facts.domain)
    if labels.column in conditions.columns:
        raise ParameterError(f"the target {labels.column!r} is also among the columns of the conditions")


@dataclass(frozen=True, slots=True)
class GreedySelection:
    """Release conditions chosen, round after round, by the exponential mechanism among the rows that are left.

    k       how many conditions the target is believed to have: condition c has the score min(neg(c) - N/k, -pos(c)), N
            being the number of negative rows left; "none", which every row satisfies, has the score -N/k
    rate    the weight is exp(rate * score)

    Theorem.   Adding a negative row moves the scores by amounts in [-1/k, 1 - 1/k], a positive row by amounts in
               [-1, 0]: the range is 1 for add-remove, 2 for replace-one, for a person of m rows m times that. Each
               round has bounded range rate * range, also given what was chosen before, and the rounds add up.
    Accuracy.  If at most k of the M conditions label every row right then, with probability 1 - beta, at most
               D (J + k (1 - q^J)) + N q^J rows are labelled wrong, for J rounds, q = 1 - 1/k, N negative rows and
               D < ln((M + 1) J / beta) / rate.
    Edges.     No rows, no positive or no negative rows: ordinary results. A condition that is drawn again changes
               nothing, and the rows are not read again.
    Reference. Lecture 12 (take 2); docs/proofs/greedy.md.
    """

    NAME: ClassVar[str] = "greedy-selection/1"
    conditions: Conditions
    labels: Labels
    k: int
    rounds: int
    rate: Fraction

    def __post_init__(self) -> None:
        exact.convert(self, k=exact.whole, rounds=exact.whole, rate=exact.positive)

    def guarantee(self, facts: Facts) -> Guarantee:
        _check(self.conditions, self.labels, facts)
        facts.require_room(self.k)
        span = self.k * checked_rate(self.rate / self.k) * person_range(facts.neighbours, added=1, replaced=2)
        return Guarantee.of_bounded_range(span, neighbours=facts.neighbours) * self.rounds

    def needs(self, facts: Facts) -> Needs:
        return Needs(functions=True, passes=self.rounds)

    def run(self, data: Dataset, rng: Rng) -> tuple[int, ...]:
        return _conditions(self.transcript(data, rng))

    def transcript(self, data: Dataset, rng: Rng) -> Draws:
        """Everything that is drawn. The scores are k min(neg - N/k, -pos), and -N for "none"."""
        rows = _Survivors(self.conditions, self.labels, data)
        for _ in range(self.rounds):
            (negative, positive), total = rows.counts()[:, :-1], rows.counts()[0, -1]
            scores = np.append(np.minimum(self.k * negative - total, -self.k * positive), -total)
            rows.draw(scores, self.rate / self.k, rng)
        return tuple(rows.draws)


def _conditions(draws: Draws) -> tuple[int, ...]:
    """The conditions that were drawn, each once."""
    return tuple(dict.fromkeys(number for number in draws if number is not None))


@dataclass(frozen=True, slots=True)
class SelfDeleting:
    """Release conditions chosen by a self-deleting selection: in round j up to `repeats` draws among the conditions,
    c with weight exp(rate * min(neg(c) - thresholds[j], -pos(c))), and "none", with weight exp(-rate * null); the
    first condition drawn is chosen and ends the round.

    failure  the delta for which the price is stated
    most     stop after so many different conditions; None: never

    Theorem.   A negative row multiplies the weights of the conditions that it falsifies by factors in [1, e^rate], a
               positive row by factors in [e^-rate, 1]; all other weights stay, thresholds and null being public; and a
               row is put aside by the first chosen condition that it falsifies. So the hazard lemma prices all that is
               drawn, whatever the number of rounds: (epsilon, failure)-DP for hazard.epsilon(rate, failure, relation).
               A positive row replaced by a negative one moves both parts of the minimum by at most 1: it is one pair.
    Accuracy.  `methods` has the schedule for which a sample size is proved; other schedules cost the same.
    Edges.     No rows at all, or no round: an ordinary result. A threshold may be negative. "none" changes nothing, so
               the rows are not read again after it.
    Reference. docs/proofs/hazard.md, docs/proofs/greedy.md; the idea that an element is covered once [GLMRT10].
    """

    NAME: ClassVar[str] = "self-deleting-greedy/1"
    conditions: Conditions
    labels: Labels
    thresholds: tuple[int, ...]
    repeats: int
    null: int
    rate: Fraction
    failure: Fraction
    most: int | None = None

    def __post_init__(self) -> None:
        levels = tuple(exact.whole(-_LARGEST_SCORE, thresholds=level) for level in self.thresholds)
        exact.freeze(self, thresholds=levels, null=exact.whole(-_LARGEST_SCORE, null=self.null))
        if max((self.null, *levels)) > _LARGEST_SCORE:
            raise ParameterError("thresholds and null must be at most 2**61")
        exact.convert(self, repeats=exact.whole, rate=exact.positive, failure=exact.probability)
        if self.most is not None:
            exact.convert(self, most=exact.whole)

    def guarantee(self, facts: Facts) -> Guarantee:
        _check(self.conditions, self.labels, facts)
        promised = hazard_lemma.epsilon(checked_rate(self.rate), self.failure, facts.neighbours)
        return Guarantee.of_approximate(promised, delta=self.failure, neighbours=facts.neighbours)

    def needs(self, facts: Facts) -> Needs:
        return Needs(functions=True, passes=len(self.thresholds) + 1)

    def run(self, data: Dataset, rng: Rng) -> tuple[int, ...]:
        return _conditions(self.transcript(data, rng))

    def transcript(self, data: Dataset, rng: Rng) -> Draws:
        """Everything that is drawn."""
        rows = _Survivors(self.conditions, self.labels, data)
        for threshold in self.thresholds:
            for _ in range(self.repeats):
                if self.most is not None and len(rows.state.chosen) >= self.most:
                    return tuple(rows.draws)
                if rows.draw(self.scores(rows.counts(), threshold), self.rate, rng) is not None:
                    break
        return tuple(rows.draws)

    def scores(self, counts: IntArray, threshold: int) -> IntArray:
        """The scores of the conditions and, last, of "none"."""
        negative, positive = counts[:, :-1]
        return np.append(np.minimum(negative - threshold, -positive), -self.null)


@dataclass(frozen=True, slots=True)
class WeighedGreedy:
    """Release at most `rounds` conditions, each chosen by the exponential mechanism for the mistakes that it repairs.

    In round j condition c has the score neg(c)/w_j - pos(c), and "none" the score 0. Before that the negative and the
    positive rows are counted, with Laplace noise of this scale. If there seem to be w times as many negative rows, the
    weights fall from w to 1 in equal ratios: with w = 1 the score is the number of mistakes repaired; but where
    positive rows are few, no rule of one condition makes fewer mistakes than "never", so a rule of several must not
    begin with that score.

    Theorem.   The two counts have the L1 sensitivity 1 for add-remove and 2 for replace-one; the scores, whatever the
               weights >= 1, the range 1 and 2 (a negative row adds to scores amounts in [0, 1/w], a positive row in
               [-1, 0]); for a person of m rows m times that. Laplace noise and the rounds' bounded ranges add up.
    Accuracy.  None is promised. Each condition is within about ln(conditions) / rate rows of the best one.
    Edges.     No rows, no positive or no negative rows: ordinary results. The weights lie between 1 and 100.
    Reference. Lecture 9 (the exponential mechanism), lecture 12 (condition by condition); docs/proofs/greedy.md.
    """

    NAME: ClassVar[str] = "weighed-greedy/1"
    conditions: Conditions
    labels: Labels
    rounds: int
    rate: Fraction
    scale: Fraction

    def __post_init__(self) -> None:
        exact.convert(self, rounds=exact.whole, rate=exact.positive, scale=exact.positive)

    def guarantee(self, facts: Facts) -> Guarantee:
        _check(self.conditions, self.labels, facts)
        facts.require_room(_LARGEST_WEIGHT)
        checked_rate(self.rate / _LARGEST_WEIGHT)
        moved = person_range(facts.neighbours, added=1, replaced=2)
        counted = Guarantee.of_laplace(moved, scale=checked_scale(self.scale), neighbours=facts.neighbours)
        chosen = Guarantee.of_bounded_range(checked_rate(self.rate) * moved, neighbours=facts.neighbours)
        return counted + chosen * self.rounds

    def needs(self, facts: Facts) -> Needs:
        return Needs(functions=True, passes=self.rounds)

    def run(self, data: Dataset, rng: Rng) -> tuple[int, ...]:
        return _conditions(self.transcript(data, rng)[1])

    def transcript(self, data: Dataset, rng: Rng) -> tuple[tuple[int, int], Draws]:
        """Everything that is drawn: the two noisy counts, and the conditions."""
        rows, noise = _Survivors(self.conditions, self.labels, data), rng.laplace(self.scale, 2)
        all_negative, all_positive = (rows.counts()[:, -1] + noise).tolist()
        for weight in falling_weights(all_negative, all_positive, self.rounds):
            negative, positive = rows.counts()[:, :-1]
            rows.draw(np.append(negative - weight * positive, 0), self.rate / weight, rng)
        return (all_negative, all_positive), tuple(rows.draws)


def falling_weights(negative: int, positive: int, rounds: int) -> tuple[int, ...]:
    """From negative / positive down to 1 in equal ratios: how many negative rows are worth a positive one."""
    first = min(max(1.0, negative / max(1, positive)), _LARGEST_WEIGHT)
    return tuple(round(first ** (left / max(1, rounds - 1))) for left in reversed(range(rounds)))


# What is promised, and for how many rows.


def methods(conditions: Conditions, labels: Labels, k: int, *, facts: Facts, beta: Fraction, funds: Funds) -> Methods:
    """The greedy learners of a conjunction of at most k conditions."""
    _check(conditions, labels, facts)
    sure = float(exact.probability(beta=beta))
    problem = GreedyProblem(conditions, labels, exact.whole(k=k), facts, sure, funds)
    return Methods(
        {"greedy-basic": problem.basic, "greedy": problem.concentrated, "self-deleting": problem.self_deleting}
    )


@dataclass(frozen=True, slots=True)
class GreedyProblem:
    """Which conditions, at most k of which are the target, with probability 1 - beta; public numbers."""

    conditions: Conditions
    labels: Labels
    k: int
    facts: Facts
    beta: float
    funds: Funds

    @property
    def choices(self) -> int:
        return self.conditions.size(self.facts.domain)

    @property
    def ratio(self) -> int:
        """The largest number of rows for each of the public size: the rows that a person may hold."""
        return self.facts.neighbours.rows

    def basic(self) -> Method:
        whole = calibrate(lambda noise: self._selection(1, noise), funds=self.funds.only_pure(), facts=self.facts).rate
        theorem = "greedy selection, epsilons added"
        return self._selecting("greedy-basic", theorem, lambda count: whole / count, itertools.count)

    def concentrated(self) -> Method:
        if self.funds.keeping(FAILING).failure == 0:
            raise ParameterError(
                "greedy adds up its rounds in Renyi currency, which needs delta > 0: take greedy-basic"
            )

        @functools.cache
        def rate(count: int) -> Fraction:
            make = functools.partial(self._selection, count)
            return calibrate(make, funds=self.funds, facts=self.facts, precision=14).rate

        rate(1)  # what cannot be afforded is refused now
        return self._selecting("greedy", "greedy selection, zCDP", rate, _ladder)

    def self_deleting(self) -> Method:
        funds = self.funds.keeping(FAILING)
        if funds.failure == 0:
            raise ParameterError(
                "the self-deleting greedy holds outside an event of probability delta: take greedy-basic"
            )

        def selection(levels: tuple[int, ...], repeats: int, rate: Fraction) -> SelfDeleting:
            return SelfDeleting(self.conditions, self.labels, levels, repeats, 0, rate, funds.failure)

        rate = calibrate(lambda noise: selection((), 1, 1 / noise), funds=funds, facts=self.facts).rate

        def repeats(rounds: int) -> int:
            """While a condition of score 0 is there, only "none" is drawn in a round with probability beta / (2
            rounds)."""
            return max(1, math.ceil(math.log2(2 * rounds / self.beta) * (1 + 1e-12)))

        def miss(rounds: int) -> int:
            """All conditions that are drawn have a score of at least minus this, except with probability beta / 2."""
            draws = rounds * repeats(rounds)
            return math.ceil(math.log(2 * self.choices * draws / self.beta) / float(rate) * (1 + 1e-12)) - 1

        def mechanism(rounds: int) -> SelfDeleting:
            if self.facts.size is None:
                raise ParameterError(
                    "the self-deleting greedy needs a public size: under add-remove declare one with size= (the number "
                    "of persons, or more)"
                )
            levels = schedule(self.facts.size * self.ratio, self.k, rounds, miss(rounds))
            return selection(levels, repeats(rounds), rate)

        theorem = "self-deleting greedy, by the hazard lemma"
        return self._method("self-deleting", theorem, self.k / (self.k + 1), miss, itertools.count, mechanism)

    def _selection(self, rounds: int, noise: Fraction) -> GreedySelection:
        return GreedySelection(self.conditions, self.labels, self.k, rounds, 1 / noise)

    def _selecting(self, name: str, theorem: str, rate: Callable[[int], Fraction], rounds: Rounds) -> Method:
        """Take 2 with the rate that a number of rounds leaves for each."""

        def slack(count: int) -> float:
            unlikely = math.log((self.choices + 1) * count / self.beta) * (1 + 1e-12)
            return (math.ceil(self.k * unlikely / float(rate(count))) - 1) / self.k

        def mechanism(count: int) -> GreedySelection:
            return self._selection(count, 1 / rate(count))

        return self._method(name, theorem, 1 - 1 / self.k, slack, rounds, mechanism)

    def _method(
        self,
        name: str,
        theorem: str,
        shrink: float,
        slack: Callable[[int], float],
        rounds: Rounds,
        mechanism: Callable[[int], GreedySelection | SelfDeleting],
    ) -> Method:
        """The method with the number of rounds for which the fewest rows are enough.

        slack(J) bounds the rows by which each choice may miss, except with probability beta in all, and q is `shrink`.
        slack(J) (J + k (1 - q^J)) / (alpha - ratio q^J) rows are enough, where the denominator is positive. slack(J) J
        rises with J and the rest is at least slack(J) J / alpha, so the search ends.
        """

        @functools.lru_cache(maxsize=256)
        def tuned(alpha: float) -> tuple[int, int]:
            """(rows, rounds)"""
            best = None
            first = 1 if shrink == 0 else max(1, math.floor(math.log(alpha / self.ratio) / math.log(shrink)))
            for count in rounds(first):
                if best is not None and (best[0] == 1 or slack(count) * count / alpha >= best[0]):
                    break
                left = shrink**count
                if self.ratio * left < alpha:
                    rows = slack(count) * (count + self.k * (1 - left)) / (alpha - self.ratio * left)
                    enough = max(1, math.ceil(rows * (1 + 1e-12))), count
                    best = enough if best is None else min(best, enough)
            assert best is not None
            return best

        target = f"if at most {self.k} of these conditions together label every row right"
        assuming = target if self.facts.everybody else f"{target} and the declared size is right"
        claim = wrong_rows(theorem, self.beta, assuming)
        return Method(name, claim, lambda alpha: tuned(alpha)[0], lambda alpha: mechanism(tuned(alpha)[1]))


Rounds = Callable[[int], Iterator[int]]
"""The numbers of rounds to try, from the first that can do."""


def _ladder(first: int) -> Iterator[int]:
    """Numbers of rounds from `first` on, further and further apart: each is calibrated on its own."""
    rungs: Iterator[int] = itertools.accumulate(itertools.repeat(1), lambda rung, _: rung + max(1, rung // 8))
    return (rung for rung in rungs if rung >= first)


def schedule(negatives: int, k: int, rounds: int, miss: int) -> tuple[int, ...]:
    """The thresholds by which the negative rows left are bounded by N_0 = negatives, N_1, N_2, ...

    N_(j+1) = T - floor(T / (k+1)) with T = N_j + miss - 1 is the least N with N + (floor(N/k) + 1) - miss >= N_j, and
    thresholds[j] = floor(N_(j+1)/k) + 1: either N_(j+1) are left already, or some condition of the target has a score
    >= 0, and whatever is drawn falsifies at least thresholds[j] - miss. It ends early where N falls no more.
    """
    thresholds, left = list[int](), negatives
    for _ in range(rounds):
        reach = left + miss - 1
        after = reach - reach // (k + 1)
        if after >= left:
            break
        thresholds.append(after // k + 1)
        left = after
    return tuple(thresholds)


def practical(conditions: Conditions, labels: Labels, k: int, *, facts: Facts, funds: Funds) -> WeighedGreedy:
    """A rule of at most k conditions for tables of any size and labels with noise; nothing is promised.

    The weights were chosen on made-up tables with planted rules (docs/proofs/greedy.md has the figures).
    """
    _check(conditions, labels, facts)

    def make(noise: Fraction) -> WeighedGreedy:
        return WeighedGreedy(conditions, labels, k, 1 / noise, _COUNTING * noise)

    return calibrate(make, funds=funds, facts=facts)
