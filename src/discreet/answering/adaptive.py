"""How a session answers: from what was measured if that is proved to be good enough, else it rents or buys.

A session promises that every answer is within A = alpha * size of the truth, all of them at once with probability
1 - beta, however many questions are asked and however they were chosen. For a question it looks, in this order, for

    cache        the same question was answered before, with a bound that is good enough                          free
    public       the number of all rows, under replace-one; a sum that adds up nothing but zeros                  free
    hypothesis   what was measured confines the answer to an interval no wider than 2 A: the hypothesis, moved
                 into the middle part of that interval if need be                                                 free
                 a threshold is open and says that the hypothesis is within A                                     free
    direct       the question is measured: rent one noisy count, or buy the marginal over its scope               paid
    measurement  the same, after the threshold said that the hypothesis is too far off                            paid

Everything measured is kept, and the hypothesis is fitted to it: maximum entropy, again at every marginal and whenever
the counts have become a quarter more (`last_fit`). It leaves out measurements that together with the others would take
too large a table; these still bound answers. The choice between asking and paying looks at the transcript and at public
sizes only, never at rows.

Rent or buy. A count answers one question; a marginal answers every question about its scope that is not finer than
this one; a threshold answers every question for which the hypothesis is good, and costs as much as some 700 counts.
A marginal is bought when it costs no more than what was already paid for counts of its scope, and a few counts more. A
threshold is bought when the questions that it would have made free, since the last time the hypothesis was wrong, have
cost as much, and when it is at most a quarter of what is left. As with skis, this never costs much more than knowing
beforehand. A threshold is not asked about columns of which nothing was measured: the hypothesis knows nothing about
them, and would be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.answering.calibration import Shop, Terms
from discreet.answering.knowledge import Memory
from discreet.answering.linear_query import Question, constant, linear, meaning, nothing, scope_of
from discreet.answering.marginals import Marginals
from discreet.answering.measurement import Measured, covers
from discreet.answering.reading import Answered, answers
from discreet.answering.transcript import Given, Request, Transcript, additive_parts
from discreet.answering.workload import choose
from discreet.data import Dataset
from discreet.errors import BudgetExceeded, ConversationOver, ParameterError
from discreet.hypothesis import Fit, Scope, fit, listed_sizes, tangled
from discreet.ledger import Ledger
from discreet.mechanisms import Far, Gaussian, Laplace, Mechanism
from discreet.query import Histogram, Sum
from discreet.records import Json, record
from discreet.release import Released, converse, release, reopen
from discreet.rng import Rng

MANNER = "rent-or-buy/1"
_FEW = 8  # counts that a marginal may cost more than what was already rented


class Answers:
    """Answers questions about one table from one ledger."""

    def __init__(
        self,
        table: Dataset,
        ledger: Ledger,
        terms: Terms,
        *,
        allowance: str | None = None,
        rng: Rng | None = None,
    ) -> None:
        self.table, self.facts = table, table.facts
        self.shop = Shop(self.facts, ledger, terms, allowance=allowance)
        if terms.alpha is not None and terms.scopes is None:
            self.shop.require_one_count()
        self.transcript = Transcript(ledger, self.facts, manner=MANNER, carries=True)
        self.memory = Memory(self.transcript, self.shop)
        self.rng = rng
        self._how: dict[str, Any] = {"ledger": ledger, "allowance": allowance, "rng": rng}
        self._fitted: Fit | None = None
        self._fitted_to = 0

    def answer(self, question: Question) -> Given:
        """One answer; charged only if nothing that is known already is good enough."""
        question.sensitivity(self.facts)  # says what is wrong with the question
        self.memory.catch_up()
        found = self._cached(question) or self._public(question)
        if found is not None:
            return found
        guess = self._guess(question)
        if self._planned(question):
            return self._paid(question, guess, "direct")
        known = self._known(question, guess, self._needed(question))
        if known is not None:
            return self._say(question, known)
        opened = self._opened(question) if guess is not None else 0
        below = self._below(question, guess) if self._asks(question) and guess is not None else None
        if below:
            return self._say(question, Given(guess, self.shop.wanted(question), "hypothesis", opened))
        paid = self._paid(question, guess, "direct" if below is None else "measurement")
        return replace(paid, price=paid.price + opened) if opened else paid

    def remembered(self, questions: Sequence[Question]) -> list[Given] | None:
        """The answers, if all of these were answered before, or are public; writes nothing and waits for nobody."""
        self.memory.catch_up()
        found = [self._cached(each) or self._public(each) for each in questions]
        return [each for each in found if each is not None] if None not in found else None

    def require(self, questions: Sequence[Question]) -> None:
        """Refuse now if what these questions need together does not fit: half an average is no answer."""
        self.memory.catch_up()
        needed = [each for each in questions if not self._free(each)]
        if len(needed) < 2 or any(self._planned(each) for each in needed):
            return
        order = self.transcript.next_order
        parts = [self.shop.alone(each, order + place) for place, each in enumerate(needed)]
        together = Marginals(needed, [part.scale for part in parts], self.shop.kind)
        if not self.shop.admits(together):
            price = self.shop.ledger.price(together.guarantee(self.facts))
            left = self.shop.ledger.remaining(allowance=self.shop.allowance)
            raise self._told_what_fits(BudgetExceeded(str(price), left.amounts(), left.fits(price)))

    def at_most(self, questions: Sequence[Question]) -> int:
        """What answering these could cost, at most, in nano-units of the first book. Buys nothing, reads no rows.

        A later one of them may be answered from what is known now, or find what the earlier ones leave behind.
        """
        self.memory.catch_up()
        needed, paid = [each for each in questions if not self._free(each)], 0
        for place, question in enumerate(needed):
            ways = self._purchase(question), self._purchase(question, place, paid)
            paid += max(self.shop.price(way) for way in ways)
        seen = len(needed) > 1 or any(self._seen(each) for each in needed)
        opens = seen and self.transcript.open_run is None and self._worth_opening(paid if len(needed) > 1 else 0)
        return paid + (self.shop.price(self.shop.threshold(self.transcript.runs + 1)) if opens else 0)

    def _free(self, question: Question) -> bool:
        if self._cached(question) or self._public(question):
            return True
        return self._known(question, self._guess(question), self._needed(question)) is not None

    def answer_all(self, questions: Sequence[Question], *, share: Fraction, again: bool = False) -> list[Given]:
        """Answers to questions that are all known now, from one release, for this share of what is left.

        Free if all were answered before from measurements that this share would not make better, or if the release was
        made and stored, and its process died before anything was said. again: they are released once more instead.
        """
        for question in questions:
            question.sensitivity(self.facts)  # says what is wrong with it
        self.memory.catch_up()
        held = [(None if again else self._cached(each)) or self._public(each) for each in questions]
        new = list(dict.fromkeys(each for each, given in zip(questions, held, strict=True) if given is None))
        found = self._workload(new, share, again) if new or not questions else {}
        return [given or found[question] for question, given in zip(questions, held, strict=True)]

    def _workload(self, questions: Sequence[Question], share: Fraction, again: bool) -> dict[Question, Given]:
        request = self.request("workload", record(tuple(questions)), record(share))
        if request.stored is not None:
            return self._read_all(questions, request.mechanism, request.value, request.stored.entry, price=0)
        number = self.transcript.runs + 1
        beta = self.shop.run_failure(number)
        best = choose(questions, self.facts, funds=self.shop.part(share), beta=beta)[0]
        if best.mechanism is None:
            raise ParameterError(f"no way of answering fits: {best.note}")
        if best.bound >= self.shop.size:
            raise ParameterError(
                f"for this share of what is left the answers would be off by up to {best.bound:,.0f}, with "
                f"{self.shop.size:,} persons in all: nothing was spent"
            )
        known = {question: said for question in questions if (said := self._said(question)) is not None}
        if not again and len(known) == len(questions) and self._as_well_known(best.mechanism):
            return known
        got = self._released(best.mechanism, f"a workload of {len(questions)} questions", request.name)
        self.memory.catch_up()
        return self._read_all(questions, best.mechanism, got.value, got.entry, price=self._price(got))

    def _read_all(
        self, questions: Sequence[Question], mechanism: Mechanism, value: Any, entry: int, *, price: int
    ) -> dict[Question, Given]:
        """What a workload's release says, with the failure that its number among the runs gives it; and say it.

        If another workload was charged meanwhile this is a later run, which may fail less often: wider bounds.
        """
        beta = self.shop.run_failure(self.transcript.numbers[entry])
        read = answers(questions, mechanism, value, self.facts, beta=beta)
        given = [self._read(question, each) for question, each in zip(questions, read, strict=True)]
        given[0] = replace(given[0], price=price)
        domain = self.facts.domain
        sayings = [(each, meaning(each, domain), one) for each, one in zip(questions, given, strict=True)]
        self.transcript.say_all(sayings, self.shop.terms.beta, made_from=entry)
        return dict(zip(questions, given, strict=True))

    def _as_well_known(self, mechanism: Mechanism) -> bool:
        """Whether everything that this would measure was measured before, with no more noise."""
        parts, known = additive_parts(record(mechanism)), self.transcript.measured
        return bool(parts) and all(
            any((each.query, each.kind) == (question, self.shop.kind) and each.scale <= noisy.scale for each in known)
            for question, noisy in parts
        )

    def _read(self, question: Question, answered: Answered) -> Given:
        """A workload's answer in whole units of the question; a count is not negative, nor more than a public total."""
        most = math.inf if self.shop.total is None else self.shop.total
        counts = not isinstance(question, Sum)
        value = self._rounded(question, np.clip(answered.value, 0.0, most) if counts else answered.value)
        return Given(value, float(np.max(answered.bound)) + float(question.unit(self.facts)) / 2, "workload")

    def hypothesis(self) -> Any:
        """The distribution to draw synthetic rows from, fitted to all that was measured; None before that."""
        self.memory.catch_up()
        known = self.transcript.measured
        return self._fit(len(known)).hypothesis if known else None

    def scopes(self) -> tuple[list[Scope], list[Scope]]:
        """The sets of columns that the hypothesis follows; and those that were measured too, but together with the
        others would take too large a table: it leaves them out."""
        self.memory.catch_up()
        known = self.transcript.measured
        out = self._fit(len(known)).left_out if known else ()
        held = [scope_of(each.query, self.facts.domain) for each in known]
        return [one for at, one in enumerate(held) if at not in out], [held[at] for at in out]

    def measured_scopes(self) -> list[tuple[int, Scope]]:
        """The entry of every measurement, and the columns it is about."""
        self.memory.catch_up()
        return [(each.entry, scope_of(each.query, self.facts.domain)) for each in self.transcript.measured]

    def tangled(self, tables: Sequence[Histogram]) -> list[Scope]:
        """Those of these tables that the hypothesis would leave out if they were measured now; public sizes alone."""
        domain = self.facts.domain
        held, out = self.scopes()[0], []
        for table in tables:
            form = linear(table, domain)
            if form is not None and tangled([*held, form.scope], listed_sizes(domain)):
                out.append(form.scope)
            elif form is not None:
                held.append(form.scope)
        return out

    def fitted(self) -> Fit | None:
        """The hypothesis that guesses are taken from; None before the first measurement."""
        latest = last_fit(self.transcript.measured)
        return self._fit(latest) if latest else None

    def _fit(self, known: int) -> Fit:
        """The fit to the first so many measurements: from scratch, so that it depends on the transcript alone."""
        if self._fitted is None or self._fitted_to != known:
            self._fitted = fit(self.transcript.measured[:known], self.facts.domain, total=self.shop.total)
            self._fitted_to = known
        return self._fitted

    # Free answers.

    def _cached(self, question: Question) -> Given | None:
        said = self._said(question)
        return said if said is not None and said.bound <= self._needed(question) else None

    def _said(self, question: Question) -> Given | None:
        """The answer that was given before, if it was promised with as little doubt."""
        said = self.transcript.said(meaning(question, self.facts.domain))
        if said is None or said.beta > self.shop.terms.beta:
            return None
        return replace(said.given, source="cache", price=0)

    def _public(self, question: Question) -> Given | None:
        if nothing(question, self.facts.domain):
            return Given(np.array(0.0), 0.0, "public")
        if self.shop.total is None or isinstance(question, Sum) or not constant(question, self.facts.domain):
            return None
        shape = question.shape(self.facts.domain) if isinstance(question, Histogram) else ()
        if math.prod(shape) > 1:
            return None
        return Given(np.full(shape, self.shop.size), 0.0, "public")  # all rows, in one group

    def _guess(self, question: Question) -> Any:
        """The hypothesis's answer, in whole units of the question; None if it has none."""
        fitted, form = self.fitted(), linear(question, self.facts.domain)
        if fitted is None or form is None:
            return None
        try:
            shares = fitted.hypothesis.mean(form)
        except ParameterError:  # the scopes measured so far tangle: it would take too large a table
            return None
        return self._rounded(question, shares * fitted.total)

    def _needed(self, question: Question) -> float:
        """How near the answer must be: a scope that the plan has measured is answered as well as it was measured."""
        planned = self.shop.terms.scopes is not None and self.memory.measured(question)
        return math.inf if planned else self.shop.wanted(question)

    def _known(self, question: Question, guess: Any, wanted: float) -> Given | None:
        """The answer that what was measured proves to be within the wanted distance, if there is one."""
        low, high = self.memory.interval(question)
        unit = float(question.unit(self.facts))
        if not self.memory.about(question) or np.max(high - low) > 2 * wanted - unit:
            return None
        # Between these every value is within the wanted distance of both ends, and there is a whole one.
        least, most = low, high
        if math.isfinite(wanted):
            least, most = np.maximum(low, high - wanted), np.minimum(high, low + wanted)
        least, most = np.ceil(least / unit), np.floor(most / unit)
        middle = (low + high) / 2 if guess is None else guess
        value = self._rounded(question, np.clip(middle / unit, least, np.maximum(least, most)) * unit)
        return Given(value, float(np.max(np.maximum(high - value, value - low))), "hypothesis")

    # Thresholds.

    def _asks(self, question: Question) -> bool:
        """Whether a threshold is open and should be asked: not where the hypothesis knows nothing about a column."""
        run = self.transcript.open_run
        return run is not None and self._seen(question) and self.shop.theta(run.conversation, run.number) > 0

    def _opened(self, question: Question) -> int:
        """Open a threshold if there is none and it is worth its price; what it cost."""
        if self.transcript.open_run is not None or not self._seen(question) or not self._worth_opening():
            return 0
        conversation = self.shop.threshold(self.transcript.runs + 1)
        converse(conversation, self.table, memo=MANNER, **self._how)
        self.memory.catch_up()
        return self.shop.price(conversation)

    def _seen(self, question: Question) -> bool:
        return self.memory.columns.issuperset(scope_of(question, self.facts.domain))

    def _worth_opening(self, soon: int = 0) -> bool:
        """Whether a threshold is worth its price now, or when so much more was paid for single answers."""
        number = self.transcript.runs + 1
        conversation = self.shop.threshold(number)
        price, left = self.shop.price(conversation), self.shop.left()
        if self.shop.theta(conversation, number) <= 0 or 4 * price > left:
            return False
        return self.transcript.saved + soon >= price

    def _below(self, question: Question, guess: Any) -> bool | None:
        """Whether the open threshold says that the guess is near enough; None if it turns out to be over."""
        run = self.transcript.open_run
        if run is None:
            return None
        unit = question.unit(self.facts)
        steps = [round(Fraction(float(each)) / unit) for each in np.ravel(guess)]
        theta = self.shop.theta(run.conversation, run.number)
        ask = Far(question, steps, theta, worth=self.shop.worth(question))
        try:
            talk = reopen(run.conversation, self.table, charge=run.entry, ledger=self.shop.ledger, rng=self.rng)
            return not talk.ask(ask)
        except ConversationOver:
            self.transcript.forget_run()
            return None

    # Paid answers.

    def _paid(self, question: Question, guess: Any, source: str) -> Given:
        """Measure the question or the marginal over its scope, and answer from what is known then."""
        seen = self._seen(question)
        request, price = self.request("answer", record(question)), 0
        if request.stored is None:
            purchase = self._purchase(question)
            if not covers(purchase.query, question, self.facts.domain):  # public: found before anything is charged
                raise ParameterError("what would be measured does not cover the question: nothing was spent")
            got = self._released(purchase, question.where.in_words(), request.name)
            price, entry = self._price(got), got.entry
        else:
            entry = request.stored.entry
        self.memory.catch_up()
        found = self._now(question)
        missed = None
        if guess is not None and seen:
            missed = bool(np.max(np.abs(found.value - guess)) > self.shop.wanted(question))
        return self._say(question, replace(found, source=source, price=price, missed=missed), made_from=entry)

    def request(self, *what: Json) -> Request:
        """The request id for releasing this in a session with these terms."""
        return self.transcript.asked([record(self.shop.terms), self.shop.allowance], list(what))

    def _released(self, mechanism: Mechanism, memo: str, request: str) -> Released:
        try:
            return release(mechanism, self.table, memo=memo[:200], request=request, **self._how)
        except BudgetExceeded as refused:
            raise self._told_what_fits(refused) from None

    def _told_what_fits(self, refused: BudgetExceeded) -> BudgetExceeded:
        """The same refusal, with the alpha for which one more count would fit."""
        try:
            alpha = self.shop.alpha_for(self.shop.left(), self.transcript.next_order)
        except ParameterError:
            return refused
        more = f" A session with alpha={alpha:g} could still ask for a count." if alpha < 1 else ""
        return BudgetExceeded(refused.asked, refused.remaining, f"{refused.fits}{more}")

    def _now(self, question: Question) -> Given:
        """The answer after it was measured. A little further off than was wanted if the plan's share gave no more, or
        if others measured meanwhile, which makes this a later measurement; its bound says so."""
        guess = self._guess(question)
        for wanted in (self._needed(question), math.inf):
            found = self._known(question, guess, wanted)
            if found is not None:
                return found
        raise AssertionError("a purchase covers its question")  # checked before the charge

    def _purchase(self, question: Question, place: int = 0, paid: int = 0) -> Gaussian | Laplace:
        """A marginal if the plan or the prices say so, else the question itself; now, or after so many measurements
        and payments more."""
        if self._planned(question):
            return self.shop.share(question, self._scopes_left())
        order = self.transcript.next_order + place
        count, marginal = self.shop.alone(question, order), self.shop.marginal(question, order)
        if marginal is None or not self.shop.admits(marginal):
            return count
        rented = self.transcript.rented[scope_of(question, self.facts.domain)] + paid
        return marginal if self.shop.price(marginal) <= rented + _FEW * self.shop.price(count) else count

    def _planned(self, question: Question) -> bool:
        """Whether the per-scope plan buys this question's marginal: its scope is new, and some are left."""
        if self.shop.terms.scopes is None or self._scopes_left() <= 0:
            return False
        form = linear(question, self.facts.domain)
        if form is not None and not form.scope:
            return not self.memory.about(question)  # the number of all rows
        return form is not None and not self.memory.measured(question)

    def _scopes_left(self) -> int:
        return (self.shop.terms.scopes or 0) - len(self.memory.marginals)

    # Small things.

    def _price(self, got: Released) -> int:
        return (got.price.pure if self.shop.pure else got.price.renyi) or 0

    def _rounded(self, question: Question, value: Any) -> Any:
        """Whole units of the question."""
        if isinstance(question, Sum):
            unit = float(question.unit(self.facts))
            return np.round(np.asarray(value, dtype=np.float64) / unit) * unit
        return np.round(value).astype(np.int64)

    def _say(self, question: Question, given: Given, *, made_from: int | None = None) -> Given:
        said = meaning(question, self.facts.domain)
        return self.transcript.say(question, said, self.shop.terms.beta, given, made_from=made_from)


def last_fit(measured: Sequence[Measured]) -> int:
    """To how many of the measurements the hypothesis is fitted: again at every marginal, and whenever the single counts
    have become a quarter more. Between fits the newest counts still bound and move the answers."""
    fitted = 0
    for known, each in enumerate(measured, 1):
        if each.marginal or 4 * known >= 5 * fitted:
            fitted = known
    return fitted
