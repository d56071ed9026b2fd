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
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from discreet.answering.answer import NO_FORECAST, Answer
from discreet.answering.calibration import SessionTerms, Shop
from discreet.answering.knowledge import Knowledge
from discreet.answering.linear_query import constant, linear, meaning, scope_of
from discreet.answering.measurement import Measured, covers
from discreet.answering.transcript import SessionRequest, Transcript, additive_parts
from discreet.answering.workload import Marginals, answers, methods
from discreet.data import Dataset, Floats
from discreet.errors import BudgetExceeded, ConversationOver, ParameterError
from discreet.hypothesis import FittedHypothesis, Hypothesis, Scope, fit, listed_sizes, tangled
from discreet.ledger import Ledger
from discreet.mechanisms import Far, Gaussian, Laplace, Mechanism
from discreet.method import choose
from discreet.query import Histogram, Question
from discreet.records import Json, record
from discreet.release import Open, Released, converse, release, reopen
from discreet.rng import Rng

MANNER = "rent-or-buy/1"
_FEW = 8  # counts that a marginal may cost more than what was already rented


# The sources, in order. Each has an answer or None, and says nothing to the ledger but what it buys.


def cache(inquiry: Inquiry) -> Answer | None:
    """The answer that was given before, if its bound is good enough."""
    earlier = inquiry.earlier
    return earlier if earlier is not None and earlier.error_bound <= inquiry.needed else None


def public(inquiry: Inquiry) -> Answer | None:
    """0 for a sum of zeros; the number of all rows, in one group, where it is public."""
    query, answers = inquiry.query, inquiry.answers
    domain, total = answers.facts.domain, answers.shop.total
    if not query.counting:
        form = linear(query, domain)
        return Answer(np.array(0.0), 0.0, "public") if form is not None and not form.weight.any() else None
    shape = query.shape(domain)
    if total is None or not constant(query, domain) or math.prod(shape) > 1:
        return None
    return Answer(np.full(shape, answers.shop.size), 0.0, "public")


def proved(inquiry: Inquiry) -> Answer | None:
    """What was measured confines the answer to an interval that is narrow enough."""
    return None if inquiry.planned else inquiry.within(inquiry.needed)


def threshold(inquiry: Inquiry) -> Answer | None:
    """The guess, if a threshold is open, or worth opening, and says that the guess is near enough."""
    answers, query, guess = inquiry.answers, inquiry.query, inquiry.guess
    # Nothing is asked about a column of which the hypothesis knows nothing.
    if inquiry.planned or guess is None or not inquiry.seen:
        return None
    if answers.transcript.open_run is None and answers.worth_opening():
        inquiry.opened = answers.open_threshold()
    run = answers.transcript.open_run
    if run is None or (theta := answers.shop.theta(run.conversation, run.number)) <= 0:
        return None
    steps = [round(Fraction(float(number)) / query.unit(answers.facts)) for number in np.ravel(guess)]
    ask = Far(query, steps, theta, worth=answers.shop.worth(query))
    try:
        inquiry.fired = bool(answers.reopened(run.conversation, run.entry).ask(ask))
    except ConversationOver:
        answers.transcript.forget_run()
        return None
    if inquiry.fired:
        return None
    price, inquiry.opened = inquiry.opened, 0
    return Answer(guess, answers.shop.wanted(query), "hypothesis", price)


def measure(inquiry: Inquiry) -> Answer:
    """Measure the query or the marginal over its scope, and answer from what is known then."""
    answers, query, price = inquiry.answers, inquiry.query, 0
    guess = inquiry.guess if inquiry.seen else None  # before anything is bought
    request = answers.request("answer", record(query))
    if request.stored is None:
        purchase = inquiry.purchase()
        if not covers(purchase.query, query, answers.facts.domain):  # public: found before anything is charged
            raise ParameterError("what would be measured does not cover the question: nothing was spent")
        released = answers.release(purchase, query.where.in_words(), request.name)
        price, inquiry.entry = answers.shop.amount(released.price) or 0, released.entry
    else:
        inquiry.entry = request.stored.entry
    (now,) = answers.inquire(query)
    # A little further off than was wanted if the plan's share gave no more, or if others measured meanwhile, which
    # makes this a later measurement; its bound says so.
    answer = now.within(now.needed) or now.within(math.inf)
    assert answer is not None  # a purchase covers its question: checked before the charge
    missed = None
    if guess is not None:
        missed = bool(np.max(np.abs(answer.value - guess)) > answers.shop.wanted(query))
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
        self.answers, self.query = answers, query
        self.opened, self.fired = 0, False
        self.entry: int | None = None

    @cached_property
    def earlier(self) -> Answer | None:
        """The answer that was given before, if it was promised with as little doubt."""
        said = self.answers.transcript.said(meaning(self.query, self.answers.facts.domain))
        if said is None or said.beta is None or said.beta > self.answers.shop.terms.beta:
            return None
        return replace(said, source="cache", price=0)

    @cached_property
    def seen(self) -> bool:
        """Whether something was measured about every column that the query mentions."""
        return self.answers.knowledge.columns.issuperset(scope_of(self.query, self.answers.facts.domain))

    @cached_property
    def needed(self) -> float:
        """How near the answer must be: a scope that the plan has measured is answered as well as it was measured."""
        answers = self.answers
        planned = answers.shop.terms.scopes is not None and answers.knowledge.measured(self.query)
        return math.inf if planned else answers.shop.wanted(self.query)

    @cached_property
    def planned(self) -> bool:
        """Whether the per-scope plan buys this query's marginal: its scope is new, and some are left."""
        form, knowledge = linear(self.query, self.answers.facts.domain), self.answers.knowledge
        if form is None or self.answers.scopes_left <= 0:
            return False
        return not (knowledge.measured(self.query) if form.scope else knowledge.about(self.query))

    @cached_property
    def guess(self) -> Any:
        """The hypothesis's answer, in whole units of the query; None if it has none."""
        return self.answers.guess(self.query)

    @cached_property
    def interval(self) -> tuple[Floats, Floats]:
        return self.answers.knowledge.interval(self.query)

    def within(self, wanted: float) -> Answer | None:
        """The answer that what was measured proves to be within the wanted distance, if there is one."""
        (low, high), unit = self.interval, float(self.query.unit(self.answers.facts))
        if not self.answers.knowledge.about(self.query) or np.max(high - low) > 2 * wanted - unit:
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
        shop, transcript = self.answers.shop, self.answers.transcript
        if self.planned:
            return shop.share(self.query, self.answers.scopes_left)
        order = transcript.next_order + place
        count, marginal = shop.alone(self.query, order), shop.marginal(self.query, order)
        if marginal is None or not shop.admits(marginal):
            return count
        rented = transcript.rented[scope_of(self.query, self.answers.facts.domain)] + paid
        return marginal if shop.price(marginal) <= rented + _FEW * shop.price(count) else count


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
        self.shop = Shop(self.facts, ledger, terms, allowance=allowance)
        if terms.alpha is not None and terms.scopes is None:
            self.shop.require_one_count()
        self.transcript = Transcript(ledger, self.facts, manner=MANNER, carries=True)
        self.knowledge = Knowledge(self.transcript, self.shop)
        self._inquiries: dict[Question, Inquiry] = {}
        self._fitted: tuple[int, FittedHypothesis | None] = (0, None)

    # What is known.

    def catch_up(self) -> None:
        """Read what is new in the ledger."""
        if self.knowledge.catch_up():
            self._inquiries.clear()

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
            return self.rounded(query, fitted.hypothesis.mean(form) * fitted.total)
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
            fitted = fit(self.transcript.measured[:known], self.facts.domain, total=self.shop.total)
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
        return (self.shop.terms.scopes or 0) - len(self.knowledge.marginals)

    # One query after the other.

    def answer(self, query: Question) -> Answer:
        """One answer; charged only if nothing that is known already is good enough."""
        query.sensitivity(self.facts)  # says what is wrong with the query
        (inquiry,) = self.inquire(query)
        inquiry.opened, inquiry.fired, inquiry.entry = 0, False, None
        for source in self.sources:
            if (answer := source(inquiry)) is not None:
                if answer.source not in ("cache", "public"):
                    name, beta = meaning(query, self.facts.domain), self.shop.terms.beta
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
        needed = self._needed(queries) if len(queries) > 1 else []
        if len(needed) < 2 or any(inquiry.planned for inquiry in needed):
            return
        order, parts = self.transcript.next_order, [inquiry.query for inquiry in needed]
        scales = [self.shop.alone(query, order + place).scale for place, query in enumerate(parts)]
        together = Marginals(parts, scales, self.shop.kind)
        if not self.shop.admits(together):
            price = self.shop.ledger.price(together.guarantee(self.facts))
            left = self.shop.ledger.remaining(allowance=self.shop.allowance)
            raise self._with_advice(BudgetExceeded(str(price), left.amounts(), left.fits(price)))

    def price(self, queries: Sequence[Question]) -> int:
        """What answering these could cost, at most, in nano-units of the first book. Buys nothing, reads no rows.

        A later one of them may be answered from what is known now, or find what the earlier ones leave behind.
        """
        if self.shop.terms.scopes is not None:
            raise ParameterError(NO_FORECAST)
        needed, paid = self._needed(queries), 0
        for place, inquiry in enumerate(needed):
            paid += max(self.shop.price(way) for way in (inquiry.purchase(), inquiry.purchase(place, paid)))
        several = len(needed) > 1
        seen = self.transcript.open_run is None and (several or any(inquiry.seen for inquiry in needed))
        opens = seen and self.worth_opening(paid if several else 0)
        return paid + (self.shop.price(self.shop.threshold(self.transcript.runs + 1)) if opens else 0)

    def worth_opening(self, soon: int = 0) -> bool:
        """Whether a threshold is worth its price now, or when `soon` more was paid for single answers."""
        number = self.transcript.runs + 1
        conversation = self.shop.threshold(number)
        price = self.shop.price(conversation)
        if self.shop.theta(conversation, number) <= 0 or 4 * price > self.shop.left():
            return False
        return self.transcript.saved + soon >= price

    def open_threshold(self) -> int:
        """Open the next threshold; what it cost."""
        conversation, shop = self.shop.threshold(self.transcript.runs + 1), self.shop
        converse(conversation, self.table, memo=MANNER, ledger=shop.ledger, allowance=shop.allowance, rng=self.rng)
        self.catch_up()
        return self.shop.price(conversation)

    def reopened(self, conversation: Any, entry: int) -> Open:
        """An open threshold, to be asked."""
        return reopen(conversation, self.table, charge=entry, ledger=self.shop.ledger, rng=self.rng)

    def request(self, *what: Json) -> SessionRequest:
        """The request id for releasing this in a session with these terms."""
        return self.transcript.asked([record(self.shop.terms), self.shop.allowance], list(what))

    def release(self, mechanism: Mechanism, memo: str, request: str) -> Released:
        """Charge and run; a refusal says for which alpha one more count would fit."""
        ledger, allowance, rng = self.shop.ledger, self.shop.allowance, self.rng
        try:
            return release(
                mechanism, self.table, memo=memo[:200], request=request, ledger=ledger, allowance=allowance, rng=rng
            )
        except BudgetExceeded as refused:
            raise self._with_advice(refused) from None

    def _with_advice(self, refused: BudgetExceeded) -> BudgetExceeded:
        try:
            alpha = self.shop.alpha_for(self.shop.left(), self.transcript.next_order)
        except ParameterError:
            return refused
        more = f" A session with alpha={alpha:g} could still ask for a count." if alpha < 1 else ""
        return BudgetExceeded(refused.asked, refused.remaining, f"{refused.fits}{more}")

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
        request = self.request("workload", record(tuple(queries)), record(share))
        if request.stored is not None:
            return self._read_all(queries, request.mechanism, request.value, request.stored.entry, price=0)
        beta = self.shop.run_failure(self.transcript.runs + 1)
        listed = methods(queries, self.facts, funds=self.shop.part(share), beta=beta)
        best = choose(listed, "auto", self.facts.size)
        if float(best.promise) >= self.shop.size:
            raise ParameterError(
                f"for this share of what is left the answers would be off by up to {float(best.promise):,.0f}, with "
                f"{self.shop.size:,} persons in all: nothing was spent"
            )
        said = {inquiry.query: inquiry.earlier for inquiry in self.inquire(*queries)}
        earlier = {query: answer for query, answer in said.items() if answer is not None}
        parts, measured = additive_parts(record(best.mechanism)), self.transcript.measured
        # Whether everything that this would measure was measured before, with no more noise.
        as_well = bool(parts) and all(
            any((one.query, one.kind) == (part.query, self.shop.kind) and one.scale <= part.scale for one in measured)
            for part in parts
        )
        if not again and len(earlier) == len(queries) and as_well:
            return earlier
        got = self.release(best.mechanism, f"a workload of {len(queries)} questions", request.name)
        self.catch_up()
        price = self.shop.amount(got.price) or 0
        return self._read_all(queries, best.mechanism, got.value, got.entry, price=price)

    def _read_all(
        self, queries: Sequence[Question], mechanism: Mechanism, value: Any, entry: int, *, price: int
    ) -> dict[Question, Answer]:
        """What a workload's release says, with the failure that its number among the runs gives it; and say it.

        If another workload was charged meanwhile this is a later run, which may fail less often: wider bounds.
        """
        beta = self.shop.run_failure(self.transcript.numbers[entry])
        read = answers(queries, mechanism, value, self.facts, beta=beta)
        said = [self.read(query, *pair) for query, pair in zip(queries, read, strict=True)]
        said[0] = replace(said[0], price=price)
        sayings = [(query, meaning(query, self.facts.domain), one) for query, one in zip(queries, said, strict=True)]
        self.transcript.say_all(sayings, self.shop.terms.beta, made_from=entry)
        return dict(zip(queries, said, strict=True))

    def read(self, query: Question, value: Floats, errors: Floats) -> Answer:
        """A workload's answer in whole units of the query; a count is not negative, nor more than a public total."""
        if query.counting:
            value = np.clip(value, 0.0, math.inf if self.shop.total is None else self.shop.total)
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
