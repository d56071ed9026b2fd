"""The default strategy: answer from what was measured if that is proved to be good enough, else rent or buy.

A session promises that every number is within its stated bound of the truth, all of them at once with probability
1 - beta, however many questions are asked and however they were chosen. A question has one or more parts, linear
queries; each is wanted within a distance W: alpha * size contributions of a row, or what the question's price buys for
all of its parts in one charge (`calibration`). For each part a session looks at the `SOURCES`, in this order:

    cache        the same was answered before, with a bound that is good enough                                   free
    public       the number of all rows, under replace-one; a sum that adds up nothing but zeros                  free
    proved       what was measured confines the answer to an interval that is narrow enough: the average of what the
                 measurements say                                                                                 free
    threshold    with alpha: a threshold is open and says that the hypothesis is within A                         free

and measures what is left in one charge: rents noisy answers, or buys the marginal over a part's columns. An answer of
the third and fourth has the source "hypothesis", one that was measured "direct", or "measurement" after a threshold
said that the hypothesis is too far off. What it would cost is asked of the same sources, without buying (`bill`).

Everything measured is kept. The hypothesis, the distribution of maximum entropy that fits it, is needed for thresholds
and for synthetic rows alone, and fitted only then: again at every marginal and whenever the counts have become a
quarter more (`last_fit`). It leaves out measurements that together with the others would take too large a table; these
still bound answers. While a question waits the fit is `QUICK`: it takes in some complete marginals, and only the newest
of the other measurements (`newest`). The choice between asking and paying looks at the transcript and at public sizes
only, never at rows.

Rent or buy, the ski rental problem. A count answers one question; a marginal answers every question about its scope
that is not finer than this one; a threshold answers every question for which the hypothesis is good, and costs as much
as some 130 counts. With a price a marginal is bought, for that price, when something was paid for its scope before and
the question is then nearly as near as if it were measured alone. With alpha it is bought when that keeps all that is
paid below one and a half times what the questions cost alone; a threshold when the questions that it would have made
free, since as much as it costs was spent and since the last time that it would have said "yes", have cost as much, or
the last threshold answered questions that would have, and when it is at most half of what is left. A threshold and a
marginal step back if the question could cost more than max_price with them: then it is answered alone.
A threshold is not asked about columns of which nothing was measured: the hypothesis knows nothing about them, and would
be wrong.

Quantiles of a column are answered within ranks, for a price or within alpha * size, and remembered like every other
answer (`quantile`).
"""

from __future__ import annotations

import copy
import heapq
import itertools
import math
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from discreet.answering.answer import Answer
from discreet.answering.calibration import Calibration, SessionTerms
from discreet.answering.chosen_tables import chosen_tables
from discreet.answering.linear_query import group_meanings, linear, meaning, meaning_of_others, scope_of
from discreet.answering.measurement import (
    BetaPlace,
    GroupsOfScope,
    Measured,
    MeasuredGroups,
    asked_for,
    counts_cells,
    counts_groups,
    covers,
    interval,
    own_error,
)
from discreet.answering.transcript import SEVERAL, WIDE, SessionRequest, Transcript, additive_parts
from discreet.answering.workload import Marginals, answers, methods, noises
from discreet.core import BudgetExceeded, ConversationOver, Exact, Json, ParameterError, Rng, record
from discreet.data import Dataset, Domain, Floats, IntArray
from discreet.hypothesis import (
    QUICK,
    THOROUGH,
    Effort,
    FittedHypothesis,
    Hypothesis,
    Linear,
    Scope,
    fit,
    listed_sizes,
    tangled,
)
from discreet.ledger import Ledger
from discreet.mechanisms import AboveThreshold, Conversation, IsFar, Mechanism, Noisy
from discreet.method import choose
from discreet.query import Count, Histogram, Not, Question
from discreet.release import Open, Released, converse, release, reopen

MANNER = "rent-or-buy/2"
NEARLY = 1.5  # for a price: what is known to so many times the bound that it buys is not bought again
_NEWEST = 32  # measurements of a part of the rows that a guess is fitted to,
_CELLS = 2**18  # and in a domain that is kept whole more, until they have so many cells together
_SUMS = 32  # so many histograms of which a question counts whole groups are looked at
Weights = Sequence[Exact] | None
T = TypeVar("T")


# The sources, in order. Each has an answer or None, and says nothing to the ledger but what it buys.


def cache(inquiry: Inquiry) -> Answer | None:
    """The answer that was given before, if its bound is good enough."""
    earlier = inquiry.earlier
    return earlier if earlier is not None and earlier.error_bound <= inquiry.needed else None


def public(inquiry: Inquiry) -> Answer | None:
    """0 for a sum of zeros; the number of all rows, in one group, where it is public."""
    value = inquiry.calibration.public(inquiry.query)
    return None if value is None else Answer(value, 0.0, "public", errors=np.zeros(np.shape(value)))


def proved(inquiry: Inquiry) -> Answer | None:
    """What was measured confines the answer to an interval that is narrow enough."""
    return None if inquiry.planned else inquiry.within(inquiry.needed)


def threshold(inquiry: Inquiry) -> Answer | None:
    """The guess, if a threshold is open, or worth opening, and says that the guess is near enough."""
    answers, query, calibration = inquiry.answers, inquiry.query, inquiry.calibration
    # A session with a price opens none: it would cost more. Nothing is asked about a column of which the hypothesis
    # knows nothing, nor about numbers whose largest value does not count as one row.
    if calibration.terms.alpha is None or inquiry.planned or not inquiry.seen:
        return None
    if answers.transcript.open_run is None and inquiry.opening is None:
        return None
    if (guess := inquiry.guess) is None:
        return None
    if answers.transcript.open_run is None and inquiry.opening is not None:
        inquiry.opened = answers.open_threshold(inquiry.opening)
        guess = answers.guess(query)  # it is fitted again when a threshold is opened
    run = answers.transcript.open_run
    if run is None or (theta := calibration.theta(run.conversation, run.place)) <= 0:
        return None
    steps = [round(Fraction(float(number)) / query.unit(answers.facts)) for number in np.ravel(guess)]
    ask = IsFar(query, steps, theta, worth=calibration.worth(query))
    try:
        inquiry.fired = bool(answers.reopened(run.conversation, run.entry).ask(ask))
    except ConversationOver:
        answers.transcript.open_run = None
        return None
    if inquiry.fired:
        return None
    price, inquiry.opened = inquiry.opened, 0
    near = calibration.near(query)
    return Answer(guess, near, "hypothesis", price, errors=np.full(np.shape(guess), near), missed=False)


Source = Callable[["Inquiry"], Answer | None]
FREE: tuple[Source, ...] = (cache, public, proved)
SOURCES: tuple[Source, ...] = (*FREE, threshold)


class Inquiry:
    """One query on its way through the sources, with all that is known about it at one state of the ledger.

    wanted  how near its answer shall be, in its units
    opening  the threshold that may be opened on the way
    opened   what was charged for it, and stands in no recorded answer yet
    fired    whether a threshold said that the guess is too far off
    """

    def __init__(self, answers: AdaptiveAnswers, query: Question, wanted: float) -> None:
        self.answers, self.query, self.domain, self.wanted = answers, query, answers.facts.domain, wanted
        self.calibration, self.knowledge = answers.calibration, answers.knowledge
        self.opening: AboveThreshold | None = None
        self.opened, self.fired = 0, False

    @cached_property
    def form(self) -> Linear | None:
        return linear(self.query, self.domain)

    @cached_property
    def earlier(self) -> Answer | None:
        """The answer that was given before, if it was promised with as little doubt."""
        return self.answers.earlier(meaning(self.query, self.domain))

    @cached_property
    def seen(self) -> bool:
        """Whether something was measured about every column that the query mentions."""
        return self.knowledge.columns.issuperset(scope_of(self.query, self.domain))

    @cached_property
    def needed(self) -> float:
        """How near the answer must be to be free: a scope that the plan has measured is answered as well as it was
        measured; for a price, what is known nearly as well is not bought again."""
        terms = self.calibration.terms
        if terms.scopes is not None and self.knowledge.measured(self.query):
            return math.inf
        return self.wanted if terms.price is None else NEARLY * self.wanted

    @cached_property
    def planned(self) -> bool:
        """Whether the per-scope plan buys this query's marginal: its scope is new, and some are left."""
        if self.answers.scopes_left <= 0 or self.form is None:
            return False
        return not (self.knowledge.measured(self.query) if self.form.scope else self.knowledge.about(self.query))

    @cached_property
    def guess(self) -> Any:
        """The hypothesis's answer, in whole units of the query; None if it has none."""
        return self.answers.guess(self.query)

    @cached_property
    def known(self) -> Confined:
        return self.knowledge.confined(self.query)

    def within(self, wanted: float) -> Answer | None:
        """The answer that what was measured proves to be within the wanted distance, if there is one."""
        low, high, unit = self.known.low, self.known.high, float(self.query.unit(self.answers.facts))
        if not np.isfinite(high - low).all() or np.max(high - low) > 2 * wanted - unit:
            return None
        if not self.known.taught:
            return None
        # Between these every value is within the wanted distance of both ends, and there is a whole one.
        least, most = low, high
        if math.isfinite(wanted):
            least, most = np.maximum(low, high - wanted), np.minimum(high, low + wanted)
        least, most = np.ceil(least / unit), np.floor(most / unit)
        near = np.clip(self.known.estimate / unit, least, np.maximum(least, most)) * unit
        value = self.answers.rounded(self.query, near)
        errors = np.maximum(high - value, value - low)
        return Answer(value, float(np.max(errors)), "hypothesis", errors=errors)

    def read(self, wanted: float) -> Answer:
        """The answer right after it was measured: a little further off than wanted if the plan's share gave no more, or
        if others measured meanwhile, which makes this a later measurement; its bound says so."""
        low, high = self.known.low, self.known.high
        widest = (float(np.max(high - low)) + float(self.query.unit(self.answers.facts))) / 2
        answer = self.within(wanted) or self.within(widest * (1 + 2**-40))
        assert answer is not None  # what was bought says something about every part
        return answer

    def marginal(self, later: int, most: Fraction) -> Noisy | None:
        """The marginal over the query's scope, if the plan or the prices say that it is bought: after `later` more
        places; with alpha, for at most so many nano-units."""
        calibration, transcript = self.calibration, self.answers.transcript
        if self.planned and self.answers.scopes_left > 0:  # another part of the question may have taken the last one
            return calibration.share(self.query, self.answers.scopes_left)
        rented = transcript.rented.get(scope_of(self.query, self.domain), 0)
        if not rented or self.query.marginal:
            return None
        order = transcript.next_order + later
        wanted = self.needed if calibration.terms.price is not None else self.wanted
        marginal = calibration.marginal(self.query, order, wanted)
        if calibration.terms.price is not None or marginal is None:
            return marginal
        price = calibration.price(marginal)
        if price > most or not calibration.admits(marginal):
            return None
        alone = calibration.price(calibration.alone(self.query, order))
        # So that all that is paid about a scope stays below one and a half times what its questions cost alone.
        return marginal if 2 * price <= rented + 3 * alone else None


@dataclass(frozen=True, slots=True, eq=False)
class Confined:
    """Where numbers are: intervals, and the sums of what was measured of each over its squared error, and of one over
    that; taught: whether anything that was measured says something about them."""

    low: Floats
    high: Floats
    weighed: Floats
    weight: Floats
    taught: bool

    def within(self, low: Floats, high: Floats) -> Confined:
        """By a newer interval too. Outside the good event intervals may contradict each other: then the newer one
        counts alone. An infinite one says nothing."""
        both = np.maximum(self.low, low), np.minimum(self.high, high)
        apart = both[0] > both[1]
        says = np.isfinite(low) & np.isfinite(high)
        least, most = np.where(says, low, 0.0), np.where(says, high, 0.0)
        weight = np.where(says, 1 / np.square(np.maximum((most - least) / 2, 0.25)), 0.0)
        weighed = weight * (least + most) / 2
        return Confined(
            np.where(apart, low, both[0]),
            np.where(apart, high, both[1]),
            np.where(apart, weighed, self.weighed + weighed),
            np.where(apart, weight, self.weight + weight),
            self.taught,
        )

    def adding_up_to(self, total: float) -> Confined:
        """The same numbers, which add up to this."""
        low, high = total - (self.high.sum() - self.high), total - (self.low.sum() - self.low)
        low, high = np.maximum(self.low, low), np.minimum(self.high, high)
        kept = low <= high
        return replace(self, low=np.where(kept, low, self.low), high=np.where(kept, high, self.high))

    @property
    def estimate(self) -> Floats:
        """The average of what was measured; the middle of the interval where nothing was."""
        known = self.weight > 0
        middle = (self.low + self.high) / 2
        return np.where(known, self.weighed / np.where(known, self.weight, 1.0), middle)


class Knowledge:
    """What a transcript teaches, indexed, so that a question looks at few of the measurements and answers before it.

    marginals  the measured marginals with their columns
    groups     the measured histograms of a part of the rows, by the columns that matter to them
    columns    every column that some measurement mentions        single  how many of them are single numbers
    """

    def __init__(self, transcript: Transcript, calibration: Calibration) -> None:
        self.transcript, self.calibration, self.domain = transcript, calibration, transcript.facts.domain
        self.marginals: list[tuple[frozenset[str], Measured]] = []
        self.groups: dict[Scope, GroupsOfScope] = {}
        self._ranks: dict[Scope, int] = {}  # of scopes, as they were first mentioned
        self.columns: set[str] = set()
        self.single = 0
        # Places in `_held`, as tuples of integers: the garbage collector does not look at these. ~place is the count of
        # all other rows.
        self._held: list[Measured] = []
        self._by_meaning: dict[str, tuple[int, ...]] = {}
        self._by_entry: dict[int, tuple[int, ...]] = {}
        self._learned = 0

    def catch_up(self) -> bool:
        """Read what is new in the ledger; whether anything is."""
        news = self.transcript.catch_up()
        for one in self.transcript.measured[self._learned :]:
            self._learned += 1
            self.learn(one)
        return news

    def learn(self, measured: Measured) -> None:
        """Take in one more measurement."""
        scope = scope_of(measured.query, self.domain)
        self.columns.update(scope)
        place, name, entry = len(self._held), measured.meaning(self.domain), measured.entry
        self._held.append(measured)
        self._by_meaning[name] = (*self._by_meaning.get(name, ()), place)
        self._by_entry[entry] = (*self._by_entry.get(entry, ()), place)
        if measured.marginal:
            self.marginals.append((frozenset(scope), measured))
        elif measured.query.groups:
            form, rank = measured.form(self.domain), (self._ranks.setdefault(scope, len(self._ranks)), self._learned)
            if form is not None and counts_groups(measured):
                held = self.groups.setdefault(form.scope, GroupsOfScope(form))
                held.held.append(MeasuredGroups.of(measured, form, rank))
        else:
            self.single += 1
        if isinstance(measured.query, Count) and self.calibration.total is not None:
            # All rows are public, so a count is also a count of the others, with the same noise.
            name = meaning_of_others(measured.query, self.domain)
            self._by_meaning[name] = (*self._by_meaning.get(name, ()), ~place)

    def _measured_as(self, name: str) -> list[Measured]:
        """What was measured about the question with this meaning."""
        return [self._held[at] if at >= 0 else self._others(self._held[~at]) for at in self._by_meaning.get(name, ())]

    def _others(self, measured: Measured) -> Measured:
        """A count as one of all other rows."""
        query: Any = measured.query
        value = self.calibration.most - measured.value
        return replace(measured, query=Count(Not(query.where)), value=value, meant=None)

    def alone(self, question: Question) -> dict[int, list[Measured]]:
        """For each group of a question what was measured about that group alone."""
        if not question.groups or not question.counting or not self.single:
            return {}
        names = group_meanings(question, self.domain)
        return {at: self._measured_as(name) for at, name in enumerate(names) if name in self._by_meaning}

    def measured(self, question: Question) -> bool:
        """Whether the marginal over just the columns that matter to the question was measured."""
        form = linear(question, self.domain)
        return form is not None and any(columns == set(form.scope) for columns, _ in self.marginals)

    def about(self, question: Question) -> list[tuple[Measured, IntArray | None]]:
        """The measurements that say something about a question; with the groups that it counts, if it counts groups: of
        these the ones with the least noise."""
        form, same = linear(question, self.domain), self._measured_as(meaning(question, self.domain))
        found: list[tuple[Measured, IntArray | None]] = []
        if form is None:
            return [*found, *((one, None) for one in same)]
        scope = frozenset(form.scope)
        found += [(measured, None) for columns, measured in self.marginals if columns >= scope]
        found += [(one, None) for one in same if not one.marginal]
        if counts_cells(form):
            near = (held.counted_by(form, self.domain) for held in self.groups.values() if scope.issubset(held.scope))
            pairs = itertools.chain.from_iterable(near)
            whole = heapq.nsmallest(_SUMS, pairs, key=lambda pair: len(pair[1]) * pair[0].variance)
            whole.sort(key=lambda pair: pair[0].rank)
            found += [(one.measured, groups) for one, groups in whole if one.measured not in same]
        return found

    def interval(self, question: Question) -> tuple[Floats, Floats]:
        """Where the answer is, by everything measured: on the session's good event each interval holds the truth."""
        confined = self.confined(question)
        return confined.low, confined.high

    def confined(self, question: Question) -> Confined:
        """The same with an estimate: the average of what the measurements say, the more certain ones counting more."""
        # Whatever was measured, a count is not negative, nor more than a public total.
        shape, most = question.shape(self.domain), self.calibration.most
        low, high, form = np.zeros(shape), np.full(shape, most), linear(question, self.domain)
        if not question.counting:
            weights = np.array((-math.inf, math.inf)) if form is None else form.weight
            sides = float(weights.min(initial=0.0)), float(weights.max(initial=0.0))
            low, high = (np.full(shape, weight * most if weight else 0.0) for weight in sides)
        if form is not None:  # a number to which no row adds is 0
            none = np.bincount(form.place[form.place >= 0], minlength=math.prod(shape)).reshape(shape) == 0
            low, high = np.where(none, 0.0, low), np.where(none, 0.0, high)
        about, alone = self.about(question), self.alone(question)
        known = Confined(low, high, np.zeros(shape), np.zeros(shape), taught=bool(about or alone))
        for measured, groups in sorted(about, key=lambda pair: pair[0].place.order):
            failure, total = self.calibration.may_fail(measured.place), self.calibration.total
            found = interval(measured, question, self.domain, failure=failure, total=total, groups=groups)
            if found is not None:
                known = known.within(*found)
        for at, several in alone.items():
            for measured in several:
                ends = np.full(shape, -math.inf), np.full(shape, math.inf)
                ends[0].flat[at], ends[1].flat[at] = self._own(measured)
                known = known.within(*ends)
        if alone and question.marginal and self.calibration.total is not None:
            known = known.adding_up_to(self.calibration.total)
        return known

    def by_itself(self, question: Question, answer: Answer, failure: float) -> Floats | None:
        """How far off the numbers of an answer are at the most, all at once with probability 1 - failure, whatever was
        asked and answered before: by the noise that was drawn for it. None of an answer that nothing was drawn for."""
        if answer.source == "public":
            return np.zeros(np.shape(answer.value))
        drawn = [self._held[at] for at in self._by_entry.get(answer.entry or 0, ())]
        name = meaning(question, self.domain)
        for measured in sorted(drawn, key=lambda one: one.meaning(self.domain) != name):  # its own first
            found = asked_for(measured, question, self.domain, failure=failure, total=self.calibration.total)
            if found is not None:
                value, errors = found
                ends = value - errors, value + errors
                low, high = (np.clip(end, 0, self.calibration.most) for end in ends) if question.counting else ends
                return np.asarray(np.maximum(high - answer.value, answer.value - low))
        return None

    def _own(self, measured: Measured) -> tuple[float, float]:
        """Where a number that was measured by itself is."""
        failure = self.calibration.may_fail(measured.place)
        error = own_error(
            *(measured.query, measured.kind, measured.scale, measured.unit, 1), failure=failure, levelled=False
        )
        return float(measured.value) - error, float(measured.value) + error


class AdaptiveAnswers:
    """Answers queries about one table from one ledger.

    sources  where an answer is looked for, in order
    """

    def __init__(
        self,
        table: Dataset,
        ledger: Ledger,
        terms: SessionTerms,
        *,
        allowance: str | None = None,
        most: Fraction = Fraction(1),
        rng: Rng | None = None,
    ) -> None:
        """most: a part of the budget; no threshold and no marginal is bought that makes a question cost more."""
        self.table, self.facts, self.rng, self.sources, self.most = table, table.facts, rng, SOURCES, most
        self.charged_to: dict[str, Any] = {"ledger": ledger, "allowance": allowance, "rng": rng}
        self.calibration = Calibration(self.facts, ledger, terms, allowance=allowance)
        if terms.alpha is not None and terms.scopes is None:
            self.calibration.require_one_count()
        self.transcript = Transcript(ledger, self.facts, manner=MANNER, carries=True)
        self.knowledge = Knowledge(self.transcript, self.calibration)
        self._inquiries: dict[tuple[Question, float], Inquiry] = {}
        self._wanted: dict[Any, tuple[float, ...]] = {}
        self._found: dict[Any, Any] = {}
        self._seen = 0
        self._fitted: dict[Effort, tuple[int, FittedHypothesis]] = {}  # the last fit of each kind

    def for_allowance(self, name: str) -> AdaptiveAnswers:
        """The same answers, charged to this allowance. What was read of the ledger, and the hypothesis, are shared."""
        calibration = self.calibration
        made = copy.copy(self)
        made.calibration = Calibration(self.facts, calibration.ledger, calibration.terms, allowance=name)
        made.charged_to = {**self.charged_to, "allowance": name}
        made._inquiries, made._wanted, made._found = {}, {}, {}
        return made

    # What is known.

    def catch_up(self) -> None:
        """Read what is new in the ledger, here or through an allowance that shares it."""
        self.knowledge.catch_up()
        if self._seen != self.transcript.seen:
            self._seen = self.transcript.seen
            self._inquiries.clear()
            self._wanted.clear()
            self._found.clear()

    def once(self, key: Any, find: Callable[[], T]) -> T:
        """What is found under this key, until something new is in the ledger."""
        if key not in self._found:
            self._found[key] = find()
        return self._found[key]  # type: ignore[no-any-return]

    def earlier(self, name: str) -> Answer | None:
        """The answer to the question of this meaning that was given before, if it was promised with as little doubt."""
        said = self.transcript.said(name)
        if said is None or said.beta is None or said.beta > self.calibration.terms.beta:
            return None
        return replace(said, source="cache", price=0)

    def inquire(self, queries: Sequence[Question], weights: Weights = None) -> list[Inquiry]:
        """What is known about the parts of a question now."""
        self.catch_up()
        key = tuple(queries), None if weights is None else tuple(weights)
        if key not in self._wanted:
            terms, order = self.calibration.terms, self.transcript.next_order
            paid, sure = self._paid(queries, weights)
            named = paid and (terms.alpha is not None or terms.price is not None)
            near = dict(zip(paid, self.calibration.purchase(paid, order, sure).wanted, strict=True)) if named else {}
            self._wanted[key] = tuple(near.get(query, math.inf) for query in queries)
        here = weakref.proxy(self)  # not in a cycle: the ledger is closed as soon as its session is gone
        pairs = zip(queries, self._wanted[key], strict=True)
        return [self._inquiries.setdefault(pair, Inquiry(here, *pair)) for pair in pairs]

    def _paid(self, queries: Sequence[Question], weights: Weights) -> tuple[list[Question], Weights]:
        """Those of a question's parts that are not public, with their weights: these share its price."""
        sure = [Fraction(1)] * len(queries) if weights is None else weights
        known = [self.calibration.public(query) is not None for query in queries]
        kept = [pair for pair, free in zip(zip(queries, sure, strict=True), known, strict=True) if not free]
        return [query for query, _ in kept], None if weights is None else [weight for _, weight in kept]

    def guess(self, query: Question) -> Any:
        """The hypothesis's answer, in whole units of the query; None if it has none."""
        fitted, form = self.fitted(), linear(query, self.facts.domain)
        if fitted is None or form is None:
            return None
        try:
            return self.rounded(query, fitted.answer(form))
        except ParameterError:  # the scopes measured so far tangle: it would take too large a table
            return None

    def rounded(self, query: Question, value: Any) -> Any:
        """Whole units of the query."""
        if query.counting:
            return np.round(value).astype(np.int64)
        unit = float(query.unit(self.facts))
        return np.round(np.asarray(value, dtype=np.float64) / unit) * unit

    def fitted(self) -> FittedHypothesis | None:
        """The hypothesis that guesses are taken from; None before the first measurement."""
        measured, run = self.transcript.measured, self.transcript.open_run
        opened = 0 if run is None else sum(one.entry < run.entry for one in measured)
        latest = max(last_fit(measured), opened)
        return self.fit_to(latest, QUICK) if latest else None

    def fit_to(self, known: int, effort: Effort = THOROUGH) -> FittedHypothesis:
        """The fit to the first `known` measurements: from scratch, so that it depends on the transcript alone."""
        if effort not in self._fitted or self._fitted[effort][0] != known:
            measured = self.transcript.measured[:known]
            used = measured if effort == THOROUGH else newest(measured, self.facts.domain)
            self._fitted[effort] = known, fit(used, self.facts.domain, total=self.calibration.total, effort=effort)
        return self._fitted[effort][1]

    def hypothesis(self) -> Hypothesis | None:
        """The distribution to draw synthetic rows from, fitted to all that was measured; None before that."""
        self.catch_up()
        known = len(self.transcript.measured)
        return self.fit_to(known).hypothesis if known else None

    def measured_scopes(self) -> list[tuple[int, Scope]]:
        """The entry of every measurement, and the columns it is about."""
        self.catch_up()
        return [(one.entry, scope_of(one.query, self.facts.domain)) for one in self.transcript.measured]

    def scopes(self) -> tuple[list[Scope], list[Scope]]:
        """The sets of columns that the hypothesis follows; and those that were measured too, but together with the
        others would take too large a table: it leaves them out."""
        held = [scope for _, scope in self.measured_scopes()]
        out = self.fit_to(len(held)).left_out if held else ()
        return [scope for at, scope in enumerate(held) if at not in out], [held[at] for at in out]

    def tangled(self, tables: Sequence[Histogram]) -> list[Scope]:
        """Those of these tables that the hypothesis would leave out if they were measured now; public sizes alone."""
        (held, _), sizes, out = self.scopes(), listed_sizes(self.facts.domain), list[Scope]()
        for table in tables:
            form = linear(table, self.facts.domain)
            if form is not None:
                (out if tangled([*held, form.scope], sizes) else held).append(form.scope)
        return out

    @property
    def scopes_left(self) -> int:
        """How many scopes the plan has not measured yet; 0 without a plan."""
        return (self.calibration.terms.scopes or 0) - len(self.knowledge.marginals)

    # One question after the other.

    def answer(self, query: Question) -> Answer:
        """One answer; charged only if nothing that is known already is good enough."""
        return self.answer_parts([query])[0]

    def answer_parts(self, queries: Sequence[Question], weights: Weights = None) -> list[Answer]:
        """The answers to the parts of one question; what is not known well enough is bought by one charge.

        weights  how accurate the parts shall be relative to each other, in contributions of a row; evenly without

        An answer's value and errors are arrays of its query's shape. The first answer has the price of them all.
        """
        for query in queries:
            query.sensitivity(self.facts)  # says what is wrong with the query
        distinct = list(dict.fromkeys(queries))
        asked = dict(zip(distinct, self.inquire(distinct, weights), strict=True))
        found: dict[Question, Answer] = {}
        bill = self._opening(self._unknown([*asked.values()]), distinct, weights) if self.worth_opening() else []
        for inquiry in asked.values():
            inquiry.opening, inquiry.opened, inquiry.fired = bill[0] if bill else None, 0, False
            answer = next(filter(None, (source(inquiry) for source in self.sources)), None)
            if answer is not None:
                found[inquiry.query] = answer
        new = {query: one for query, one in found.items() if one.source not in ("cache", "public")}
        self._say(new, None)
        needed = [inquiry for query, inquiry in asked.items() if query not in found]
        if any(inquiry.planned for inquiry in needed):
            found |= self._by_plan(needed, distinct, weights)
        elif needed:
            passed = any(one.missed is False and one.source == "hypothesis" for one in found.values())
            most = self.most * self.calibration.cap - sum(each.opened for each in needed)
            found |= self._measure(needed, distinct, weights, Fraction(0) if passed else most)
        price = sum(answer.price for answer in found.values()) + sum(each.opened for each in asked.values())
        free = self._with_alone(queries, [replace(found[query], price=0) for query in queries])
        return [replace(free[0], price=price), *free[1:]]

    def _with_alone(self, queries: Sequence[Question], found: Sequence[Answer]) -> list[Answer]:
        """The answers to the parts of a question, each with its bound by itself; the parts share beta."""
        paid = {query for query, answer in zip(queries, found, strict=True) if answer.source != "public"}
        failure = float(self.calibration.terms.beta) / max(1, len(paid))
        pairs = zip(queries, found, strict=True)
        return [replace(one, alone=self.knowledge.by_itself(query, one, failure)) for query, one in pairs]

    def _by_plan(self, needed: list[Inquiry], parts: list[Question], weights: Weights) -> dict[Question, Answer]:
        """Those of a question's parts that the plan of scopes answers."""
        plan, found = self._plan(needed, parts, weights), dict[Question, Answer]()
        shares = sum(inquiry.planned and bought is not None for inquiry, bought in plan)
        if shares > self.scopes_left:
            raise ParameterError(f"this needs {shares} scopes, and {self.scopes_left} are left: nothing was spent")
        for inquiry, bought in plan:
            (now,) = self.inquire([inquiry.query])
            known = proved(now) or (now.within(math.inf) if bought is None else None)
            found |= (
                self._measure([now], parts, weights, Fraction(0), bought) if known is None else {inquiry.query: known}
            )
            self._say({} if known is None else {inquiry.query: known}, None)
        return found

    def _plan(
        self, needed: Sequence[Inquiry], parts: list[Question], weights: Weights
    ) -> list[tuple[Inquiry, Noisy | Marginals | None]]:
        """What is bought for each of a question's parts, largest scopes first; None of a part that is about columns of
        a marginal which is bought for one before."""
        plan, measured = list[tuple[Inquiry, Noisy | Marginals | None]](), list[set[str]]()
        scopes = [(set[str]() if each.form is None else {*each.form.scope}, each) for each in needed]
        for scope, each in sorted(scopes, key=lambda pair: -len(pair[0])):
            if each.planned and any(scope <= other for other in measured):
                plan.append((each, None))
                continue
            plan.append((each, self._purchase([each], parts, weights, SEVERAL * len(plan), Fraction(0))))
            measured += [scope] if each.planned and scope else []
        return plan

    def _say(self, answers: dict[Question, Answer], entry: int | None) -> None:
        """Record what was answered, in one durable write."""
        if answers:
            sayings = [(query, meaning(query, self.facts.domain), one) for query, one in answers.items()]
            self.transcript.say_all(sayings, self.calibration.terms.beta, made_from=entry)

    def _measure(
        self,
        needed: list[Inquiry],
        parts: list[Question],
        weights: Weights,
        most: Fraction,
        bought: Noisy | Marginals | None = None,
    ) -> dict[Question, Answer]:
        """Measure what is needed of a question's parts in one charge, and answer from what is known then.

        most    for a marginal, with alpha: at most so many nano-units        bought  how, if that is decided
        """
        queries, price = [inquiry.query for inquiry in needed], 0
        spent = self.calibration.cap - self.calibration.left()
        # The hypothesis is compared, and fitted, only when as much was spent as a threshold costs; before the purchase.
        follows = self.calibration.terms.alpha is not None and self._threshold_pays(spent)
        guesses = [each.guess if follows and each.seen else None for each in needed]
        request = self.request("answer", [record(query) for query in queries])
        if request.stored is None:
            mechanism = self._purchase(needed, parts, weights, 0, most) if bought is None else bought
            words = queries[0].where.in_words()
            self._require_covered(queries, mechanism)
            released = self.release(mechanism, words, request.name)
            price, entry = self.calibration.amount(released.price) or 0, released.entry
        else:
            entry = request.stored.entry
        found = {}
        for inquiry, now, guess in zip(needed, self.inquire(queries), guesses, strict=True):
            answer = now.read(inquiry.wanted)
            missed = (
                None if guess is None else bool(np.max(np.abs(answer.value - guess)) > self._asked_for(inquiry.query))
            )
            source = "measurement" if inquiry.fired else "direct"
            found[inquiry.query] = replace(answer, source=source, price=price, missed=missed, entry=entry)
            price = 0  # it stands once
        self._say(found, entry)
        if follows and (fitted := self.fitted()) is not None:
            _ = fitted.hypothesis  # now, and not while the next question waits, which may be a free one
        return found

    def _asked_for(self, query: Question) -> float:
        """How far off a guess is that the next threshold would be asked about, in the query's units."""
        place = self._next_place()
        theta = self.calibration.theta(self.calibration.threshold(place.order), place)
        return float(theta * self.calibration.worth(query) * query.unit(self.facts))

    def _next_place(self) -> BetaPlace:
        """The places of the next threshold: it doubles how many are taken."""
        return BetaPlace(self.transcript.next_order, self.transcript.next_order)

    def _require_covered(self, queries: Sequence[Question], mechanism: Noisy | Marginals) -> None:
        """Refuse to buy what would not answer: public, and found before anything is charged."""
        domain, bought = self.facts.domain, [part.query for part in additive_parts(record(mechanism))]
        for query in queries:
            if not any(covers(one, query, domain) or one == self.calibration.counted(query) for one in bought):
                raise ParameterError("what would be measured does not cover the question: nothing was spent")

    def _purchase(
        self, needed: list[Inquiry], parts: list[Question], weights: Weights, later: int, most: Fraction
    ) -> Noisy | Marginals:
        """What is bought for those parts of a question that are needed, after `later` more places; with alpha, a
        marginal for at most so many nano-units."""
        queries, terms = [inquiry.query for inquiry in needed], self.calibration.terms
        if len(needed) == 1 and (marginal := needed[0].marginal(later, most)) is not None:
            return marginal
        # For a price the parts share it whether all are needed or not, so that the others are as good as they were.
        whole, sure = self._paid(parts, weights) if terms.price is not None else (queries, None)
        return self.calibration.purchase(whole, self.transcript.next_order + later, sure).of(queries)

    def remembered(self, queries: Sequence[Question], weights: Weights = None) -> list[Answer] | None:
        """The answers, if all of these were answered before, or are public; writes nothing and waits for nobody."""
        known = [cache(inquiry) or public(inquiry) for inquiry in self.inquire(queries, weights)]
        found = [answer for answer in known if answer is not None]
        return self._with_alone(queries, found) if len(found) == len(known) else None

    def bill(self, queries: Sequence[Question], weights: Weights = None) -> list[Mechanism | Conversation]:
        """What answering these parts of a question could buy, at most. Buys nothing, reads no rows."""
        distinct = list(dict.fromkeys(queries))
        needed, most = self._unknown(self.inquire(distinct, weights)), self.most * self.calibration.cap
        if not needed:
            return []
        if any(inquiry.planned for inquiry in needed):
            return [bought for _, bought in self._plan(needed, distinct, weights) if bought is not None]
        return self._opening(needed, distinct, weights) or [self._purchase(needed, distinct, weights, 0, most)]

    def _unknown(self, inquiries: Sequence[Inquiry]) -> list[Inquiry]:
        return [inquiry for inquiry in inquiries if not any(source(inquiry) for source in FREE)]

    def _opening(self, needed: list[Inquiry], parts: list[Question], weights: Weights) -> list[Any]:
        """The threshold that is opened for these parts of a question, and the dearest that may be measured after it, if
        they are within max_price together; else nothing."""
        if not self.worth_opening() or not any(each.seen for each in needed) or any(each.planned for each in needed):
            return []
        calibration, order = self.calibration, self.transcript.next_order
        opening = calibration.threshold(order)
        most = self.most * calibration.cap - calibration.price(opening)
        # If a guess is missing no threshold is opened, and its places are not taken.
        ways = [self._purchase(needed, parts, weights, later, most) for later in (0, order)]
        after = max(ways, key=calibration.price)
        return [opening, after] if calibration.price(after) <= most else []

    def forecast(self, price: int) -> int:
        """About how many more questions like one that cost this fit into what is left; a later one has a smaller part
        of beta, and with alpha it costs more for it."""
        left, calibration, order = self.calibration.left(), self.calibration, self.transcript.next_order
        if calibration.terms.alpha is None:
            return left // max(1, price)
        now, count = self._count_price(order), 0
        while True:
            block = max(1, count // 4)
            coming = math.ceil(price * Fraction(self._count_price(order + count + block - 1), now))
            if coming * block > left:
                return count + left // max(1, coming)
            left, count = left - coming * block, count + block

    def count_price(self) -> int:
        """What a count of something new costs now."""
        return self._count_price(self.transcript.next_order)

    def _count_price(self, order: int) -> int:
        return self.calibration.price(self.calibration.alone(Count(), order))

    def _threshold_pays(self, paid: int) -> bool:
        """Whether a threshold costs no more than this, which was paid, half of what is left, and max_price."""
        place = self._next_place()
        conversation = self.calibration.threshold(place.order)
        price = self.calibration.price(conversation)
        within = price <= min(paid, self.calibration.left() // 2) and price <= self.most * self.calibration.cap
        return within and self.calibration.theta(conversation, place) > 0

    def worth_opening(self) -> bool:
        """Whether a threshold is to be opened, since it is worth its price now: what it would have saved, and what the
        last one has saved, cost as much."""
        transcript = self.transcript
        if self.calibration.terms.alpha is None or transcript.open_run is not None:
            return False
        saved = transcript.saved + transcript.passed * (self.count_price() if transcript.passed else 0)
        return saved > 0 and self._threshold_pays(saved)

    def open_threshold(self, conversation: AboveThreshold) -> int:
        """Open a threshold; what it cost."""
        converse(conversation, self.table, memo=MANNER + WIDE, **self.charged_to)
        self.catch_up()
        return self.calibration.price(conversation)

    def reopened(self, conversation: Any, entry: int) -> Open:
        """An open threshold, to be asked."""
        return reopen(conversation, self.table, charge=entry, ledger=self.calibration.ledger, rng=self.rng)

    def request(self, *what: Json) -> SessionRequest:
        """The request id for releasing this in a session with these terms."""
        return self.transcript.asked([record(self.calibration.terms), self.calibration.allowance], list(what))

    def release(self, mechanism: Mechanism, memo: str, request: str) -> Released:
        """Charge and run; a refusal says what would make this question fit."""
        try:
            return release(mechanism, self.table, memo=memo[:200], request=request, **self.charged_to)
        except BudgetExceeded as refused:
            fits = f"{refused.fits}{self.calibration.would_fit(mechanism)}"
            raise BudgetExceeded(refused.asked, refused.remaining, fits) from None

    # Synthetic rows.

    def choose_tables(self, share: Fraction, name: Json) -> tuple[int, int]:
        """Measure tables that are chosen privately, for this share of what is left, as `name` calls it: the entry of
        the charge, and what was paid now. The same name again, as long as nothing else has it, is free."""
        self.catch_up()
        request, calibration = self.request("tables", name), self.calibration
        if request.stored is not None:
            return request.stored.entry, 0
        mechanism = chosen_tables(self.facts, funds=calibration.part(share), kind=calibration.kind)
        got = self.release(mechanism, "tables for synthetic rows", request.name)
        self.catch_up()
        return got.entry, calibration.amount(got.price) or 0

    # Many queries at once.

    def answer_all(self, queries: Sequence[Question], *, share: Fraction, again: bool = False) -> list[Answer]:
        """Answers to queries that are all known now, from one release, for this share of what is left.

        Free if all were answered before from measurements that this share would not make better, or if the release was
        made and stored, and its process died before anything was said. again: they are released once more instead.
        """
        for query in queries:
            query.sensitivity(self.facts)  # says what is wrong with it
        known = [(None if again else cache(inquiry)) or public(inquiry) for inquiry in self.inquire(queries)]
        new = list(dict.fromkeys(query for query, answer in zip(queries, known, strict=True) if answer is None))
        released = self._workload(new, share, again) if new or not queries else {}
        return [answer or released[query] for query, answer in zip(queries, known, strict=True)]

    def _workload(self, queries: Sequence[Question], share: Fraction, again: bool) -> dict[Question, Answer]:
        request, calibration = self.request("workload", record(tuple(queries)), record(share)), self.calibration
        if request.stored is not None:
            return self._read_all(queries, request.mechanism, request.value, request.stored.entry, price=0)
        beta = calibration.failure(self.transcript.next_order + SEVERAL, SEVERAL)
        listed = methods(queries, self.facts, funds=calibration.part(share), beta=beta)
        best = choose(listed, "auto", self.facts.size)
        if self.facts.size is not None and float(best.promise) >= calibration.size:
            raise ParameterError(
                f"for this share of what is left the answers would be off by up to {float(best.promise):,.0f}, with "
                f"{calibration.size:,} persons in all: nothing was spent"
            )
        said = {inquiry.query: inquiry.earlier for inquiry in self.inquire(queries)}
        earlier = {query: answer for query, answer in said.items() if answer is not None}
        if not again and len(earlier) == len(queries) and self._measured_as_well(best.mechanism):
            return earlier
        got = self.release(best.mechanism, f"a workload of {len(queries)} questions", request.name)
        self.catch_up()
        price = calibration.amount(got.price) or 0
        return self._read_all(queries, best.mechanism, got.value, got.entry, price=price)

    def _measured_as_well(self, mechanism: Mechanism) -> bool:
        """Whether everything that a workload's release would measure was measured before, with no more noise."""
        wanted = noises(mechanism, self.facts)
        return bool(wanted) and all(
            any((one.query, one.kind) == (query, kind) and one.scale <= scale for one in self.transcript.measured)
            for query, kind, scale in wanted
        )

    def _read_all(
        self, queries: Sequence[Question], mechanism: Mechanism, value: Any, entry: int, *, price: int
    ) -> dict[Question, Answer]:
        """What a workload's release says, with the failure that its number among the runs gives it; and say it.

        If another workload was charged meanwhile this is a later run, which may fail less often: wider bounds.
        """
        beta = self.calibration.failure(self.transcript.numbers[entry], SEVERAL)
        read = answers(queries, mechanism, value, self.facts, beta=beta)
        said = {query: self.read(query, *pair) for query, pair in zip(queries, read, strict=True)}
        said[queries[0]] = replace(said[queries[0]], price=price)
        self._say(said, entry)
        return said

    def read(self, query: Question, value: Floats, errors: Floats) -> Answer:
        """A workload's answer in whole units of the query; a count is not negative, nor more than a public total."""
        if query.counting:
            value = np.clip(value, 0.0, self.calibration.most)
        errors = errors + float(query.unit(self.facts)) / 2
        return Answer(self.rounded(query, value), float(np.max(errors)), "workload", errors=errors)


def newest(measured: Sequence[Measured], domain: Domain) -> list[Measured]:
    """All complete marginals, and then the newest of the other measurements.

    A fit that takes in hundreds of these takes long where they have many cells, and where it may not it ends before the
    maximum: then its guesses are further off. What `_NEWEST` and `QUICK` should be was tried out in sessions on two
    tables like that of bench/session_data.py, made from other random numbers.
    """
    whole = [one.marginal or one.ranges(domain) is not None for one in measured]
    others = [one for one, complete in zip(measured, whole, strict=True) if not complete]
    complete = [one for one, here in zip(measured, whole, strict=True) if here]
    return [*complete, *others[-_room(others, domain) :]]


def _room(others: Sequence[Measured], domain: Domain) -> int:
    """How many of the newest are taken in: `_NEWEST`, and in a domain that is kept whole as many as have `_CELLS`.

    A session that asks for single counts alone learns from all of them: with 32 its thresholds miss, and it runs dry.
    `_CELLS` and the most looks of `QUICK` were settled on the session of bench/pmw_curves.py, and then tried with two
    other orders of its questions.
    """
    if math.prod(listed_sizes(domain).values()) > QUICK.dense:
        return _NEWEST
    cells = itertools.accumulate(0 if (form := one.form(domain)) is None else form.cells for one in reversed(others))
    return max(_NEWEST, sum(each <= _CELLS for each in cells))


def last_fit(measured: Sequence[Measured]) -> int:
    """To how many of the measurements the hypothesis is fitted: again at every marginal, and whenever the single counts
    have become a quarter more. Between fits the newest counts still bound and move the answers."""
    fitted = 0
    for known, one in enumerate(measured, 1):
        if one.marginal or 4 * known >= 5 * fitted:
            fitted = known
    return fitted
