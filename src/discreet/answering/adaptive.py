"""The default strategy: answer from what was measured if that is proved to be good enough, else rent or buy.

A session promises that every answer is within A = alpha * size of the truth, all of them at once with probability
1 - beta, however many questions are asked and however they were chosen. For a question it looks at the `SOURCES`, in
this order:

    cache        the same question was answered before, with a bound that is good enough                          free
    public       the number of all rows, under replace-one; a sum that adds up nothing but zeros                  free
    proved       what was measured confines the answer to an interval no wider than 2 A: the hypothesis, moved
                 into the middle part of that interval if need be                                                 free
    threshold    a threshold is open and says that the hypothesis is within A                                     free
    measure      the question is measured: rent one noisy count, or buy the marginal over its scope               paid

An answer of the third and fourth has the source "hypothesis", one that was measured "direct", or "measurement" after a
threshold said that the hypothesis is too far off. A price is asked of the same sources, without buying (`FREE`).

Everything measured is kept, and the hypothesis is fitted to it: maximum entropy, again at every marginal and whenever
the counts have become a quarter more (`last_fit`). It leaves out measurements that together with the others would take
too large a table; these still bound answers. The choice between asking and paying looks at the transcript and at public
sizes only, never at rows.

Rent or buy, the ski rental problem. A count answers one question; a marginal answers every question about its scope
that is not finer than this one; a threshold answers every question for which the hypothesis is good, and costs as much
as some 700 counts. A marginal is bought when it costs no more than what was already paid for counts of its scope, and a
few counts more. A threshold is bought when the questions that it would have made free, since the last time the
hypothesis was wrong, have cost as much, and when it is at most a quarter of what is left. This never costs much more
than the best choice in hindsight. A threshold is not asked about columns of which nothing was measured: the hypothesis
knows nothing about them, and would be wrong.

Quantiles of a column are answered within alpha * size ranks, and remembered like every other answer (`quantile`).
"""

from __future__ import annotations

import math
import weakref
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from discreet.answering.answer import NO_FORECAST, Answer
from discreet.answering.calibration import Calibration, SessionTerms
from discreet.answering.chosen_tables import chosen_tables
from discreet.answering.linear_query import constant, linear, meaning, scope_of
from discreet.answering.measurement import Measured, covers, group_cells, interval
from discreet.answering.transcript import SessionRequest, Transcript
from discreet.answering.workload import Marginals, answers, methods, noises
from discreet.core import BudgetExceeded, ConversationOver, Json, ParameterError, Rng, record
from discreet.data import Dataset, Floats
from discreet.hypothesis import FittedHypothesis, Hypothesis, Linear, Scope, fit, listed_sizes, tangled
from discreet.ledger import Ledger
from discreet.mechanisms import Gaussian, IsFar, Laplace, Mechanism, RankQuantile
from discreet.method import choose
from discreet.query import Count, Histogram, Not, Question
from discreet.release import Open, Released, converse, release, reopen

MANNER = "rent-or-buy/1"
_FEW = 8  # counts that a marginal may cost more than what was already rented
_ROUNDING = 2**-40  # more than the rounding of floats in the bound of a quantile
_FINE = 2**40  # the rate of a quantile is a multiple of 1 / _FINE, rounded up


# The sources, in order. Each has an answer or None, and says nothing to the ledger but what it buys.


def cache(inquiry: Inquiry) -> Answer | None:
    """The answer that was given before, if its bound is good enough."""
    earlier = inquiry.earlier
    return earlier if earlier is not None and earlier.error_bound <= inquiry.needed else None


def public(inquiry: Inquiry) -> Answer | None:
    """0 for a sum of zeros; the number of all rows, in one group, where it is public."""
    query, form, calibration = inquiry.query, inquiry.form, inquiry.calibration
    if not query.counting:
        return Answer(np.array(0.0), 0.0, "public") if form is not None and not form.weight.any() else None
    shape = query.shape(inquiry.domain)
    if calibration.total is None or not constant(query, inquiry.domain) or math.prod(shape) > 1:
        return None
    return Answer(np.full(shape, calibration.size), 0.0, "public")


def proved(inquiry: Inquiry) -> Answer | None:
    """What was measured confines the answer to an interval that is narrow enough."""
    return None if inquiry.planned else inquiry.within(inquiry.needed)


def threshold(inquiry: Inquiry) -> Answer | None:
    """The guess, if a threshold is open, or worth opening, and says that the guess is near enough."""
    answers, query, calibration, guess = inquiry.answers, inquiry.query, inquiry.calibration, inquiry.guess
    # Nothing is asked about a column of which the hypothesis knows nothing.
    if inquiry.planned or guess is None or not inquiry.seen:
        return None
    if answers.transcript.open_run is None and answers.worth_opening():
        inquiry.opened = answers.open_threshold()
    run = answers.transcript.open_run
    if run is None or (theta := calibration.theta(run.conversation, run.number)) <= 0:
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
    return Answer(guess, calibration.wanted(query), "hypothesis", price)


def measure(inquiry: Inquiry) -> Answer:
    """Measure the query or the marginal over its scope, and answer from what is known then."""
    answers, query, calibration, price = inquiry.answers, inquiry.query, inquiry.calibration, 0
    guess = inquiry.guess if inquiry.seen else None  # before anything is bought
    request = answers.request("answer", record(query))
    if request.stored is None:
        purchase = inquiry.purchase()
        if not covers(purchase.query, query, inquiry.domain):  # public: found before anything is charged
            raise ParameterError("what would be measured does not cover the question: nothing was spent")
        released = answers.release(purchase, query.where.in_words(), request.name)
        price, inquiry.entry = calibration.amount(released.price) or 0, released.entry
    else:
        inquiry.entry = request.stored.entry
    (now,) = answers.inquire(query)
    # A little further off than was wanted if the plan's share gave no more, or if others measured meanwhile, which
    # makes this a later measurement; its bound says so.
    answer = now.within(now.needed) or now.within(math.inf)
    assert answer is not None  # a purchase covers its question: checked before the charge
    missed = None if guess is None else bool(np.max(np.abs(answer.value - guess)) > calibration.wanted(query))
    return replace(answer, source="measurement" if inquiry.fired else "direct", price=price, missed=missed)


Source = Callable[["Inquiry"], Answer | None]
FREE: tuple[Source, ...] = (cache, public, proved)
SOURCES: tuple[Source, ...] = (*FREE, threshold, measure)


class Inquiry:
    """One query on its way through the sources, with all that is known about it at one state of the ledger.

    opened  what was charged for a threshold on the way, and stands in no recorded answer yet
    fired   whether a threshold said that the guess is too far off
    entry   of the charge that was made for the answer
    """

    def __init__(self, answers: AdaptiveAnswers, query: Question) -> None:
        self.answers, self.query, self.domain = answers, query, answers.facts.domain
        self.calibration, self.knowledge = answers.calibration, answers.knowledge
        self.opened, self.fired = 0, False
        self.entry: int | None = None

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
        """How near the answer must be: a scope that the plan has measured is answered as well as it was measured."""
        planned = self.calibration.terms.scopes is not None and self.knowledge.measured(self.query)
        return math.inf if planned else self.calibration.wanted(self.query)

    @cached_property
    def planned(self) -> bool:
        """Whether the per-scope plan buys this query's marginal: its scope is new, and some are left."""
        if self.form is None or self.answers.scopes_left <= 0:
            return False
        return not (self.knowledge.measured(self.query) if self.form.scope else self.knowledge.about(self.query))

    @cached_property
    def guess(self) -> Any:
        """The hypothesis's answer, in whole units of the query; None if it has none."""
        return self.answers.guess(self.query)

    @cached_property
    def interval(self) -> tuple[Floats, Floats]:
        return self.knowledge.interval(self.query)

    def within(self, wanted: float) -> Answer | None:
        """The answer that what was measured proves to be within the wanted distance, if there is one."""
        (low, high), unit = self.interval, float(self.query.unit(self.answers.facts))
        if not self.knowledge.about(self.query) or np.max(high - low) > 2 * wanted - unit:
            return None
        # Between these every value is within the wanted distance of both ends, and there is a whole one.
        least, most = low, high
        if math.isfinite(wanted):
            least, most = np.maximum(low, high - wanted), np.minimum(high, low + wanted)
        least, most = np.ceil(least / unit), np.floor(most / unit)
        middle = (low + high) / 2 if self.guess is None else self.guess
        value = self.answers.rounded(self.query, np.clip(middle / unit, least, np.maximum(least, most)) * unit)
        return Answer(value, float(np.max(np.maximum(high - value, value - low))), "hypothesis")

    def purchase(self, place: int = 0, paid: int = 0) -> Gaussian | Laplace:
        """A marginal if the plan or the prices say so, else the query itself; now, or after `place` more measurements
        and `paid` more for single numbers."""
        calibration, transcript = self.calibration, self.answers.transcript
        if self.planned:
            return calibration.share(self.query, self.answers.scopes_left)
        order = transcript.next_order + place
        count, marginal = calibration.alone(self.query, order), calibration.marginal(self.query, order)
        if marginal is None or not calibration.admits(marginal):
            return count
        rented = transcript.rented[scope_of(self.query, self.domain)] + paid
        return marginal if calibration.price(marginal) <= rented + _FEW * calibration.price(count) else count


class Knowledge:
    """What a transcript teaches, indexed, so that a question looks at few of the measurements and answers before it.

    marginals  the measured marginals with their columns
    groups     the measured histograms of a part of the rows
    columns    every column that some measurement mentions
    """

    def __init__(self, transcript: Transcript, calibration: Calibration) -> None:
        self.transcript, self.calibration, self.domain = transcript, calibration, transcript.facts.domain
        self.marginals: list[tuple[frozenset[str], Measured]] = []
        self.groups: list[Measured] = []
        self.columns: set[str] = set()
        self._by_meaning: dict[str, list[Measured]] = defaultdict(list)
        self._learned = 0

    def catch_up(self) -> bool:
        """Read what is new in the ledger; whether anything is."""
        news = self.transcript.catch_up()
        for one in self.transcript.measured[self._learned :]:
            self.learn(one)
        self._learned = len(self.transcript.measured)
        return news

    def learn(self, measured: Measured) -> None:
        """Take in one more measurement."""
        scope = scope_of(measured.query, self.domain)
        self.columns.update(scope)
        self._by_meaning[meaning(measured.query, self.domain)].append(measured)
        if measured.marginal:
            self.marginals.append((frozenset(scope), measured))
        elif measured.query.groups:
            self.groups.append(measured)
        if isinstance(measured.query, Count) and self.calibration.total is not None:
            # All rows are public, so a count is also a count of the others, with the same noise.
            others = Count(Not(measured.query.where))
            opposite = replace(measured, query=others, value=self.calibration.total - measured.value)
            self._by_meaning[meaning(others, self.domain)].append(opposite)

    def measured(self, question: Question) -> bool:
        """Whether the marginal over just the columns that matter to the question was measured."""
        form = linear(question, self.domain)
        return form is not None and any(columns == set(form.scope) for columns, _ in self.marginals)

    def about(self, question: Question) -> list[Measured]:
        """The measurements that say something about a question."""
        form, same = linear(question, self.domain), self._by_meaning.get(meaning(question, self.domain), [])
        if form is None:
            return same
        covering = [measured for columns, measured in self.marginals if columns >= set(form.scope)]
        groups = (one for one in self.groups if one not in same and group_cells(one, form, self.domain) is not None)
        return [*covering, *(one for one in same if not one.marginal), *groups]

    def interval(self, question: Question) -> tuple[Floats, Floats]:
        """Where the answer is, by everything measured: on the session's good event each interval holds the truth."""
        # Whatever was measured, a count is not negative, nor more than a public total.
        shape, most = question.shape(self.domain), self.calibration.most
        low, high = np.zeros(shape), np.full(shape, most)
        if not question.counting:
            form = linear(question, self.domain)
            weights = np.array((-math.inf, math.inf)) if form is None else form.weight
            ends = float(weights.min(initial=0.0)), float(weights.max(initial=0.0))
            low, high = (np.array(weight * most if weight else 0.0) for weight in ends)
        for measured in sorted(self.about(question), key=lambda one: one.order):
            failure = self.calibration.failure(measured.order)
            found = interval(measured, question, self.domain, failure=failure, total=self.calibration.total)
            if found is not None:
                # Outside the good event intervals may contradict each other: then the newest one counts alone.
                together = np.maximum(low, found[0]), np.minimum(high, found[1])
                apart = together[0] > together[1]
                low, high = (np.where(apart, mine, both) for mine, both in zip(found, together, strict=True))
        return low, high


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
        rng: Rng | None = None,
    ) -> None:
        self.table, self.facts, self.rng, self.sources = table, table.facts, rng, SOURCES
        self.charged_to: dict[str, Any] = {"ledger": ledger, "allowance": allowance, "rng": rng}
        self.calibration = Calibration(self.facts, ledger, terms, allowance=allowance)
        if terms.alpha is not None and terms.scopes is None:
            self.calibration.require_one_count()
        self.transcript = Transcript(ledger, self.facts, manner=MANNER, carries=True)
        self.knowledge = Knowledge(self.transcript, self.calibration)
        self._inquiries: dict[Question, Inquiry] = {}
        self._fitted: tuple[int, FittedHypothesis | None] = (0, None)

    # What is known.

    def catch_up(self) -> None:
        """Read what is new in the ledger."""
        if self.knowledge.catch_up():
            self._inquiries.clear()

    def earlier(self, name: str) -> Answer | None:
        """The answer to the question of this meaning that was given before, if it was promised with as little doubt."""
        said = self.transcript.said(name)
        if said is None or said.beta is None or said.beta > self.calibration.terms.beta:
            return None
        return replace(said, source="cache", price=0)

    def inquire(self, *queries: Question) -> list[Inquiry]:
        """What is known about these queries now."""
        self.catch_up()
        here = weakref.proxy(self)  # not in a cycle: the ledger is closed as soon as its session is gone
        return [self._inquiries.setdefault(query, Inquiry(here, query)) for query in queries]

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
        latest = last_fit(self.transcript.measured)
        return self.fit_to(latest) if latest else None

    def fit_to(self, known: int) -> FittedHypothesis:
        """The fit to the first `known` measurements: from scratch, so that it depends on the transcript alone."""
        number, fitted = self._fitted
        if fitted is None or number != known:
            fitted = fit(self.transcript.measured[:known], self.facts.domain, total=self.calibration.total)
            self._fitted = known, fitted
        return fitted

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

    # One query after the other.

    def answer(self, query: Question) -> Answer:
        """One answer; charged only if nothing that is known already is good enough."""
        query.sensitivity(self.facts)  # says what is wrong with the query
        (inquiry,) = self.inquire(query)
        inquiry.opened, inquiry.fired, inquiry.entry = 0, False, None
        for source in self.sources:
            if (answer := source(inquiry)) is not None:
                if answer.source not in ("cache", "public"):
                    name, beta = meaning(query, self.facts.domain), self.calibration.terms.beta
                    self.transcript.say(query, name, beta, answer, made_from=inquiry.entry)
                return replace(answer, price=answer.price + inquiry.opened)
        raise AssertionError("measuring has an answer")

    def remembered(self, queries: Sequence[Question]) -> list[Answer] | None:
        """The answers, if all of these were answered before, or are public; writes nothing and waits for nobody."""
        known = [cache(inquiry) or public(inquiry) for inquiry in self.inquire(*queries)]
        return [answer for answer in known if answer is not None] if None not in known else None

    def _needed(self, queries: Sequence[Question]) -> list[Inquiry]:
        """Those of the queries for which no source has a free answer."""
        return [inquiry for inquiry in self.inquire(*queries) if not any(source(inquiry) for source in FREE)]

    def require(self, queries: Sequence[Question]) -> None:
        """Refuse now if what these queries need together does not fit: half an average is no answer."""
        needed, calibration = self._needed(queries) if len(queries) > 1 else [], self.calibration
        if len(needed) < 2 or any(inquiry.planned for inquiry in needed):
            return
        parts, order = [inquiry.query for inquiry in needed], self.transcript.next_order
        scales = [calibration.alone(query, order + place).scale for place, query in enumerate(parts)]
        together = Marginals(parts, scales, calibration.kind)
        if not calibration.admits(together):
            price = calibration.ledger.price(together.guarantee(self.facts))
            left = calibration.ledger.remaining(allowance=calibration.allowance)
            raise self._with_advice(BudgetExceeded(str(price), left.amounts(), left.fits(price)))

    def price(self, queries: Sequence[Question]) -> int:
        """What answering these could cost, at most, in nano-units of the first book. Buys nothing, reads no rows.

        A later one of them may be answered from what is known now, or find what the earlier ones leave behind.
        """
        if self.calibration.terms.scopes is not None:
            raise ParameterError(NO_FORECAST)
        needed, paid = self._needed(queries), 0
        for place, inquiry in enumerate(needed):
            paid += max(self.calibration.price(way) for way in (inquiry.purchase(), inquiry.purchase(place, paid)))
        several = len(needed) > 1
        seen = self.transcript.open_run is None and (several or any(inquiry.seen for inquiry in needed))
        opens = seen and self.worth_opening(paid if several else 0)
        return paid + (self.calibration.price(self.calibration.threshold(self.transcript.runs + 1)) if opens else 0)

    def worth_opening(self, soon: int = 0) -> bool:
        """Whether a threshold is worth its price now, or when `soon` more was paid for single answers."""
        number = self.transcript.runs + 1
        conversation = self.calibration.threshold(number)
        price = self.calibration.price(conversation)
        payable = self.calibration.theta(conversation, number) > 0 and 4 * price <= self.calibration.left()
        return payable and self.transcript.saved + soon >= price

    def open_threshold(self) -> int:
        """Open the next threshold; what it cost."""
        conversation = self.calibration.threshold(self.transcript.runs + 1)
        converse(conversation, self.table, memo=MANNER, **self.charged_to)
        self.catch_up()
        return self.calibration.price(conversation)

    def reopened(self, conversation: Any, entry: int) -> Open:
        """An open threshold, to be asked."""
        return reopen(conversation, self.table, charge=entry, ledger=self.calibration.ledger, rng=self.rng)

    def request(self, *what: Json) -> SessionRequest:
        """The request id for releasing this in a session with these terms."""
        return self.transcript.asked([record(self.calibration.terms), self.calibration.allowance], list(what))

    def release(self, mechanism: Mechanism, memo: str, request: str) -> Released:
        """Charge and run; a refusal says for which alpha one more count would fit."""
        try:
            return release(mechanism, self.table, memo=memo[:200], request=request, **self.charged_to)
        except BudgetExceeded as refused:
            raise self._with_advice(refused) from None

    def _with_advice(self, refused: BudgetExceeded) -> BudgetExceeded:
        try:
            alpha = self.calibration.alpha_for(self.calibration.left(), self.transcript.next_order)
        except ParameterError:
            return refused
        more = f" A session with alpha={alpha:g} could still ask for a count." if alpha < 1 else ""
        return BudgetExceeded(refused.asked, refused.remaining, f"{refused.fits}{more}")

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
        known = [(None if again else cache(inquiry)) or public(inquiry) for inquiry in self.inquire(*queries)]
        new = list(dict.fromkeys(query for query, answer in zip(queries, known, strict=True) if answer is None))
        released = self._workload(new, share, again) if new or not queries else {}
        return [answer or released[query] for query, answer in zip(queries, known, strict=True)]

    def _workload(self, queries: Sequence[Question], share: Fraction, again: bool) -> dict[Question, Answer]:
        request, calibration = self.request("workload", record(tuple(queries)), record(share)), self.calibration
        if request.stored is not None:
            return self._read_all(queries, request.mechanism, request.value, request.stored.entry, price=0)
        beta = calibration.run_failure(self.transcript.runs + 1)
        listed = methods(queries, self.facts, funds=calibration.part(share), beta=beta)
        best = choose(listed, "auto", self.facts.size)
        if float(best.promise) >= calibration.size:
            raise ParameterError(
                f"for this share of what is left the answers would be off by up to {float(best.promise):,.0f}, with "
                f"{calibration.size:,} persons in all: nothing was spent"
            )
        said = {inquiry.query: inquiry.earlier for inquiry in self.inquire(*queries)}
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
        beta = self.calibration.run_failure(self.transcript.numbers[entry])
        read = answers(queries, mechanism, value, self.facts, beta=beta)
        said = {query: self.read(query, *pair) for query, pair in zip(queries, read, strict=True)}
        said[queries[0]] = replace(said[queries[0]], price=price)
        sayings = [(query, meaning(query, self.facts.domain), one) for query, one in said.items()]
        self.transcript.say_all(sayings, self.calibration.terms.beta, made_from=entry)
        return said

    def read(self, query: Question, value: Floats, errors: Floats) -> Answer:
        """A workload's answer in whole units of the query; a count is not negative, nor more than a public total."""
        if query.counting:
            value = np.clip(value, 0.0, self.calibration.most)
        bound = float(np.max(errors)) + float(query.unit(self.facts)) / 2
        return Answer(self.rounded(query, value), bound, "workload")


def last_fit(measured: Sequence[Measured]) -> int:
    """To how many of the measurements the hypothesis is fitted: again at every marginal, and whenever the single counts
    have become a quarter more. Between fits the newest counts still bound and move the answers."""
    fitted = 0
    for known, one in enumerate(measured, 1):
        if one.marginal or 4 * known >= 5 * fitted:
            fitted = known
    return fitted


def quantile(answers: AdaptiveAnswers, table: Dataset, column: str, q: Fraction) -> Answer:
    """A value of the column's grid that misses the q-quantile by at most A rows, in the words of the session's bound.

    Theorem.   P[it misses by A rows or more] <= points * exp(-rate A); the rate makes this the failure that the session
               allows its next measurement. If others measured between the question and its charge, this is a later
               measurement, which may fail less often: the stated bound is then the A for which that holds.
    """
    calibration, transcript, name = answers.calibration, answers.transcript, f"quantile:{column}:{q}"
    declared, window = table.facts.domain.column(column), float(calibration.window)
    if not declared.bounded:
        raise ParameterError(f"a quantile is of a Number with bounds; column {column!r} is declared {declared!r}")
    if calibration.terms.alpha is None:
        raise ParameterError("a quantile needs a session with alpha=: it is promised within alpha * size ranks")

    def remembered() -> Answer | None:
        """The answer that was given before, if it is near and sure enough."""
        transcript.catch_up()
        said = answers.earlier(name)
        return None if said is None or said.error_bound > calibration.window else said

    def exponent(order: int) -> float:
        """rate * A for which points * exp(-rate A) is the failure of this measurement; more, for the rounding."""
        return math.log((declared.steps + 1) / calibration.failure(order)) * (1 + _ROUNDING)

    if (known := remembered()) is not None:  # what was answered before needs no turn
        return known
    with transcript.alone():
        if (known := remembered()) is not None:
            return known
        request = answers.request("quantile", column, record(q))
        if request.stored is not None:
            mechanism, value, entry, paid = request.mechanism, request.value, request.stored.entry, 0
        else:
            rate = exponent(transcript.next_order) / window
            mechanism = RankQuantile(column, q, Fraction(math.ceil(rate * _FINE), _FINE))
            got = release(mechanism, table, request=request.name, **answers.charged_to)
            value, entry, paid = got.value, got.entry, calibration.amount(got.price) or 0
            transcript.catch_up()
        # If others measured meanwhile this is a later measurement, which may fail less often: a wider bound.
        reached = exponent(transcript.numbers[entry]) / float(mechanism.rate)
        answer = Answer(float(value), max(window, reached * (1 - _ROUNDING / 2)), "direct", paid)
        return transcript.say(mechanism, name, calibration.terms.beta, answer, made_from=entry)
