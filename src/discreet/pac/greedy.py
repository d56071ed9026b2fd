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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet import exact
from discreet.data import Batch, Dataset, Facts, IntArray
from discreet.erm.exponential.line import person_range
from discreet.errors import ParameterError
from discreet.exact import Exact
from discreet.funds import FAILING, Funds
from discreet.guarantee import Guarantee
from discreet.mechanisms import calibrate
from discreet.method import Method, Methods, wrong_rows
from discreet.pac import hazard_lemma
from discreet.pac.conditions import Literals, Thresholds
from discreet.pac.labels import Labels
from discreet.rng import Rng, checked_rate, checked_scale

Conditions = Literals | Thresholds
Transcript = tuple[int | None, ...]

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


class _Search:
    """The conditions chosen so far, and the counts that go with them: one pass for every change."""

    def __init__(self, conditions: Conditions, labels: Labels, data: Dataset) -> None:
        self.state = Falsified(conditions, labels, ())
        self._data = data
        self._counts: IntArray | None = None

    def counts(self) -> IntArray:
        if self._counts is None:
            self._counts = self._data.exact_sum(self.state.partial)
        return self._counts

    def choose(self, number: int | None) -> None:
        if number is not None and number not in self.state.chosen:
            self.state = Falsified(self.state.conditions, self.state.labels, (*self.state.chosen, number))
            self._counts = None


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


@dataclass(frozen=True, slots=True, init=False)
class GreedySelection:
    """Release conditions chosen, in so many rounds, by the exponential mechanism among the rows that are left.

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

    def __init__(self, conditions: Conditions, labels: Labels, k: int, rounds: int, rate: Exact) -> None:
        exact.freeze(self, conditions=conditions, labels=labels, k=exact.whole(k=k))
        exact.freeze(self, rounds=exact.whole(rounds=rounds), rate=exact.positive(rate=rate))

    def guarantee(self, facts: Facts) -> Guarantee:
        _check(self.conditions, self.labels, facts)
        facts.require_room(self.k)
        span = self.k * checked_rate(self.rate / self.k) * person_range(facts.neighbours, added=1, replaced=2)
        return Guarantee.of_bounded_range(span, neighbours=facts.neighbours) * self.rounds

    def run(self, data: Dataset, rng: Rng) -> tuple[int, ...]:
        return _conditions(self.transcript(data, rng))

    def transcript(self, data: Dataset, rng: Rng) -> Transcript:
        """Everything that is drawn: numbers of conditions, and None for "none"."""
        search, drawn = _Search(self.conditions, self.labels, data), []
        for _ in range(self.rounds):
            drawn.append(_drawn(_lecture_scores(search.counts(), self.k), self.rate / self.k, rng))
            search.choose(drawn[-1])
        return tuple(drawn)


def _lecture_scores(counts: IntArray, k: int) -> IntArray:
    """k min(neg - N/k, -pos), and -N for "none"."""
    negative, positive = counts[:, :-1]
    return np.append(np.minimum(k * negative - counts[0, -1], -k * positive), -counts[0, -1])


def _drawn(scores: IntArray, rate: Fraction, rng: Rng) -> int | None:
    """One draw by the exponential mechanism; the last score is that of "none"."""
    found = rng.select(scores, rate)
    return found if found < len(scores) - 1 else None


def _conditions(transcript: Transcript) -> tuple[int, ...]:
    """The conditions that were drawn, each once."""
    return tuple(dict.fromkeys(number for number in transcript if number is not None))


@dataclass(frozen=True, slots=True, init=False)
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
    most: int | None

    def __init__(
        self,
        conditions: Conditions,
        labels: Labels,
        thresholds: Iterable[int],
        repeats: int,
        null: int,
        rate: Exact,
        failure: Exact,
        most: int | None = None,
    ) -> None:
        levels = tuple(exact.whole(-_LARGEST_SCORE, thresholds=each) for each in thresholds)
        worth = exact.whole(-_LARGEST_SCORE, null=null)
        if max((worth, *levels)) > _LARGEST_SCORE:
            raise ParameterError("thresholds and null must be at most 2**61")
        exact.freeze(self, conditions=conditions, labels=labels, thresholds=levels, null=worth)
        exact.freeze(self, repeats=exact.whole(repeats=repeats), rate=exact.positive(rate=rate))
        exact.freeze(self, failure=exact.probability(failure=failure))
        exact.freeze(self, most=None if most is None else exact.whole(most=most))

    def guarantee(self, facts: Facts) -> Guarantee:
        _check(self.conditions, self.labels, facts)
        promised = hazard_lemma.epsilon(checked_rate(self.rate), self.failure, facts.neighbours)
        return Guarantee.of_approximate(promised, delta=self.failure, neighbours=facts.neighbours)

    def run(self, data: Dataset, rng: Rng) -> tuple[int, ...]:
        return _conditions(self.transcript(data, rng))

    def transcript(self, data: Dataset, rng: Rng) -> Transcript:
        """Everything that is drawn: numbers of conditions, and None for "none"."""
        search = _Search(self.conditions, self.labels, data)
        drawn: list[int | None] = []
        for threshold in self.thresholds:
            for _ in range(self.repeats):
                if self.most is not None and len(search.state.chosen) >= self.most:
                    return tuple(drawn)
                drawn.append(_drawn(self.scores(search.counts(), threshold), self.rate, rng))
                search.choose(drawn[-1])
                if drawn[-1] is not None:
                    break
        return tuple(drawn)

    def scores(self, counts: IntArray, threshold: int) -> IntArray:
        """The scores of the conditions and, last, of "none"."""
        negative, positive = counts[:, :-1]
        return np.append(np.minimum(negative - threshold, -positive), -self.null)


@dataclass(frozen=True, slots=True, init=False)
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

    def __init__(self, conditions: Conditions, labels: Labels, rounds: int, rate: Exact, scale: Exact) -> None:
        exact.freeze(self, conditions=conditions, labels=labels, rounds=exact.whole(rounds=rounds))
        exact.freeze(self, rate=exact.positive(rate=rate), scale=exact.positive(scale=scale))

    def guarantee(self, facts: Facts) -> Guarantee:
        _check(self.conditions, self.labels, facts)
        facts.require_room(_LARGEST_WEIGHT)
        checked_rate(self.rate / _LARGEST_WEIGHT)
        moved = person_range(facts.neighbours, added=1, replaced=2)
        counted = Guarantee.of_laplace(moved, scale=checked_scale(self.scale), neighbours=facts.neighbours)
        chosen = Guarantee.of_bounded_range(checked_rate(self.rate) * moved, neighbours=facts.neighbours)
        return counted + chosen * self.rounds

    def run(self, data: Dataset, rng: Rng) -> tuple[int, ...]:
        return _conditions(self.transcript(data, rng)[1])

    def transcript(self, data: Dataset, rng: Rng) -> tuple[tuple[int, int], Transcript]:
        """Everything that is drawn: the two noisy counts; and numbers of conditions, with None for "none"."""
        search = _Search(self.conditions, self.labels, data)
        drawn: list[int | None] = []
        noise = rng.laplace(self.scale, 2)
        all_negative, all_positive = (search.counts()[:, -1] + noise).tolist()
        for weight in falling_weights(all_negative, all_positive, self.rounds):
            negative, positive = search.counts()[:, :-1]
            scores = np.append(negative - weight * positive, 0)
            drawn.append(_drawn(scores, self.rate / weight, rng))
            search.choose(drawn[-1])
        return (all_negative, all_positive), tuple(drawn)


def falling_weights(negative: int, positive: int, rounds: int) -> tuple[int, ...]:
    """From negative / positive down to 1 in equal ratios: how many negative rows are worth a positive one."""
    first = min(max(1.0, negative / max(1, positive)), _LARGEST_WEIGHT)
    return tuple(round(first ** (left / max(1, rounds - 1))) for left in reversed(range(rounds)))


# What is promised, and for how many rows.


@dataclass(frozen=True, slots=True)
class _Problem:
    """Which conditions, and how many of them are the target; public numbers."""

    conditions: Conditions
    labels: Labels
    k: int
    facts: Facts
    beta: float

    @property
    def choices(self) -> int:
        return self.conditions.size(self.facts.domain)

    @property
    def ratio(self) -> int:
        """At most so many rows for each of the public size: a person holds at least one, at most this many."""
        return self.facts.neighbours.rows

    @property
    def assuming(self) -> str:
        target = f"if at most {self.k} of these conditions together label every row right"
        return target if self.facts.neighbours.replace_one else f"{target} and the declared size is right"


@dataclass(frozen=True, slots=True)
class _Tuning:
    """A number of rounds, and the number of rows that is enough for it."""

    rounds: int
    rows: int


Slack = Callable[[int], float]
"""For a number of rounds, the rows by which each choice may miss, except with probability beta in all."""


def _tuned(alpha: float, problem: _Problem, shrink: float, slack: Slack, rounds: Iterator[int]) -> _Tuning:
    """The number of rounds for which the fewest rows are enough.

    slack(J) (J + k (1 - q^J)) / (alpha - ratio q^J), where the denominator is positive. slack(J) J rises with J and the
    rest is at least slack(J) J / alpha, so the search ends.
    """
    best = None
    for count in rounds:
        left = shrink**count
        if best is not None and (best.rows == 1 or slack(count) * count / alpha >= best.rows):
            break
        if problem.ratio * left < alpha:
            rows = slack(count) * (count + problem.k * (1 - left)) / (alpha - problem.ratio * left)
            found = _Tuning(count, max(1, math.ceil(rows * (1 + 1e-12))))
            best = found if best is None or found.rows < best.rows else best
    assert best is not None
    return best


def _first_round(alpha: float, problem: _Problem, shrink: float) -> int:
    """No fewer rounds can do: q^J ratio < alpha is needed."""
    return 1 if shrink == 0 else max(1, math.floor(math.log(alpha / problem.ratio) / math.log(shrink)))


def _ladder(first: int) -> Iterator[int]:
    """Numbers of rounds from `first` on, further and further apart: each is calibrated on its own."""
    rungs: Iterator[int] = itertools.accumulate(itertools.repeat(1), lambda rung, _: rung + max(1, rung // 8))
    return (rung for rung in rungs if rung >= first)


def _greedy(
    name: str, theorem: str, problem: _Problem, rate: Callable[[int], Fraction], rungs: Callable[[int], Iterator[int]]
) -> Method:
    """Take 2 with the rate that so many rounds leave for each."""
    k, shrink = problem.k, 1 - 1 / problem.k

    def slack(count: int) -> float:
        unlikely = math.log((problem.choices + 1) * count / problem.beta) * (1 + 1e-12)
        return (math.ceil(k * unlikely / float(rate(count))) - 1) / k

    @functools.lru_cache(maxsize=256)
    def tuned(alpha: float) -> _Tuning:
        return _tuned(alpha, problem, shrink, slack, rungs(_first_round(alpha, problem, shrink)))

    def mechanism(alpha: float) -> GreedySelection:
        count = tuned(alpha).rounds
        return GreedySelection(problem.conditions, problem.labels, k, count, rate(count))

    return Method(name, wrong_rows(theorem, problem.beta, problem.assuming), lambda alpha: tuned(alpha).rows, mechanism)


def _basic(problem: _Problem, funds: Funds) -> Method:
    def make(noise: Fraction) -> GreedySelection:
        return GreedySelection(problem.conditions, problem.labels, problem.k, 1, 1 / noise)

    whole = calibrate(make, funds=funds.only_pure(), facts=problem.facts).rate
    theorem = "greedy selection, epsilons added"
    return _greedy("greedy-basic", theorem, problem, lambda count: whole / count, itertools.count)


def _concentrated(problem: _Problem, funds: Funds) -> Method:
    if funds.keeping(FAILING).failure == 0:
        raise ParameterError("greedy adds up its rounds in Renyi currency, which needs delta > 0: take greedy-basic")

    @functools.cache
    def rate(count: int) -> Fraction:
        def make(noise: Fraction) -> GreedySelection:
            return GreedySelection(problem.conditions, problem.labels, problem.k, count, 1 / noise)

        found: GreedySelection = calibrate(make, funds=funds, facts=problem.facts, precision=14)
        return found.rate

    rate(1)  # what cannot be afforded is refused now
    return _greedy("greedy", "greedy selection, zCDP", problem, rate, _ladder)


def _self_deleting(problem: _Problem, funds: Funds) -> Method:
    funds = funds.keeping(FAILING)
    if funds.failure == 0:
        raise ParameterError("the self-deleting greedy holds outside an event of probability delta: take greedy-basic")

    def make(noise: Fraction) -> SelfDeleting:
        return SelfDeleting(problem.conditions, problem.labels, (), 1, 0, 1 / noise, funds.failure)

    rate = calibrate(make, funds=funds, facts=problem.facts).rate
    shrink = problem.k / (problem.k + 1)

    def slack(count: int) -> float:
        return _miss(problem, rate, count)

    @functools.lru_cache(maxsize=256)
    def tuned(alpha: float) -> _Tuning:
        return _tuned(alpha, problem, shrink, slack, itertools.count(_first_round(alpha, problem, shrink)))

    def mechanism(alpha: float) -> SelfDeleting:
        count = tuned(alpha).rounds
        levels = schedule(_size(problem.facts) * problem.ratio, problem.k, count, _miss(problem, rate, count))
        repeats = _repeats(count, problem.beta)
        return SelfDeleting(problem.conditions, problem.labels, levels, repeats, 0, rate, funds.failure)

    theorem = "self-deleting greedy, by the hazard lemma"
    claim = wrong_rows(theorem, problem.beta, problem.assuming)
    return Method("self-deleting", claim, lambda alpha: tuned(alpha).rows, mechanism)


def _repeats(rounds: int, beta: float) -> int:
    """While a condition of score 0 is there, "none" is drawn so often in a row with probability beta / (2 rounds)."""
    return max(1, math.ceil(math.log2(2 * rounds / beta) * (1 + 1e-12)))


def _miss(problem: _Problem, rate: Fraction, rounds: int) -> int:
    """All conditions that are drawn have a score of at least minus this, except with probability beta / 2."""
    draws = rounds * _repeats(rounds, problem.beta)
    return math.ceil(math.log(2 * problem.choices * draws / problem.beta) / float(rate) * (1 + 1e-12)) - 1


def schedule(negatives: int, k: int, rounds: int, miss: int) -> tuple[int, ...]:
    """The thresholds by which the negative rows left are bounded by N_0 = negatives, N_1, N_2, ...

    N_(j+1) = T - floor(T / (k+1)) with T = N_j + miss - 1 is the least N with N + (floor(N/k) + 1) - miss >= N_j, and
    thresholds[j] = floor(N_(j+1)/k) + 1: either N_(j+1) are left already, or some condition of the target has a score
    >= 0, and whatever is drawn falsifies at least thresholds[j] - miss. It ends early where N falls no more.
    """
    found, left = [], negatives
    for _ in range(rounds):
        reach = left + miss - 1
        after = reach - reach // (k + 1)
        if after >= left:
            break
        found.append(after // k + 1)
        left = after
    return tuple(found)


def _size(facts: Facts) -> int:
    if facts.size is None:
        raise ParameterError(
            "the self-deleting greedy needs a public size: under add-remove declare one with size= (the number of "
            "persons, or more)"
        )
    return facts.size


def methods(conditions: Conditions, labels: Labels, k: int, *, facts: Facts, beta: Fraction, funds: Funds) -> Methods:
    """The greedy learners of a conjunction of at most k conditions."""
    _check(conditions, labels, facts)
    problem = _Problem(conditions, labels, exact.whole(k=k), facts, float(exact.probability(beta=beta)))
    return Methods(
        {
            "greedy-basic": lambda: _basic(problem, funds),
            "greedy": lambda: _concentrated(problem, funds),
            "self-deleting": lambda: _self_deleting(problem, funds),
        }
    )


def practical(conditions: Conditions, labels: Labels, k: int, *, facts: Facts, funds: Funds) -> WeighedGreedy:
    """A rule of at most k conditions for tables of any size and labels with noise; nothing is promised.

    The weights were chosen on made-up tables with planted rules (docs/proofs/greedy.md has the figures).
    """
    _check(conditions, labels, facts)

    def make(noise: Fraction) -> WeighedGreedy:
        return WeighedGreedy(conditions, labels, k, 1 / noise, _COUNTING * noise)

    found: WeighedGreedy = calibrate(make, funds=funds, facts=facts)
    return found


def lecture_needed(alpha: float, *, choices: int, k: int, beta: float, epsilon: float) -> int:
    """The rows that take 2 needs as the lecture runs it: J = 2 k ln n rounds, replace-one, basic composition.

    n >= (2 J / alpha) D with D = (2 J / epsilon) ln(choices J / beta): the lecture's D lacks the J of its composition.
    """
    rows = 1.0
    for _ in range(200):  # the right side grows like ln^2 n ln ln n: iterating it from below converges
        rounds = max(1.0, 2 * k * math.log(rows))
        rows = max(2.0, 4 * rounds**2 / (alpha * epsilon) * math.log(choices * rounds / beta))
    return math.ceil(rows)
