"""What a session can buy, and for how much: noisy answers, a marginal, a threshold, each with just enough noise.

An analyst names one of two things. A *price*, a part of the budget: a question gets the noise that this buys, and its
bound follows. Or *alpha*: every answer within A = alpha * size persons (times the largest value, for a sum), and the
price follows. Everything here is a function of public numbers: the facts, the terms, how many places of the series were
taken, what is left in the ledger.

Bounds. Every charge takes places in one series, m = 1, 2, ...; place m may fail with probability

    beta (w(m) - w(m + 1)),   w(m) = 1 / (1 + 3/4 ln m),

which sum to at most beta over any number of them. A number, a quantile or a threshold takes one place, what measures
several numbers `transcript.SEVERAL`. "No" from a threshold means |truth - guess| < theta + z, so theta = A - z_bound.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet.answering.linear_query import constant, linear, meaning
from discreet.answering.measurement import BetaPlace, Measured, interval, noise_bound, own_error, shown, with_rest
from discreet.answering.transcript import SEVERAL
from discreet.answering.workload import Marginals
from discreet.core import Books, Caps, Exact, Funds, NothingFits, ParameterError, Price, exact
from discreet.data import Facts
from discreet.ledger import Ledger
from discreet.mechanisms import (
    ZERO_SUM,
    AboveThreshold,
    AboveThresholdLaplace,
    Conversation,
    Mechanism,
    Noisy,
    calibrate,
    noisy_by,
)
from discreet.query import (
    MAX_CELLS,
    Count,
    Equals,
    GroupCount,
    Histogram,
    Missing,
    OfPersons,
    Persons,
    Question,
    contribution,
)

LARGEST_MARGINAL = 2**20
_GAP = Fraction(1, 3)  # the part of A that a threshold leaves for the hypothesis to be wrong by
_SLOW = 0.75  # how fast the series that splits beta falls
_PLANNED = 10_000  # questions, if nobody says
_NEAREST = 16  # most questions are known already, or the guess is much nearer
_UNPAYABLE = 10**30

Threshold = AboveThreshold | AboveThresholdLaplace


@dataclass(frozen=True, slots=True)
class SessionTerms:
    """What an analyst asked for.

    alpha      every answer within this fraction of the persons
    price      every question for this part of the budget; with neither, declared scopes: whatever the plan gives
    beta       the probability that some bound does not hold
    questions  how many are planned: so many a threshold shall let pass, it is not a limit; None: nobody knows
    scopes     how many different sets of columns will be asked about; None if nobody knows
    """

    NAME: ClassVar[str] = "session-terms/2"
    alpha: Fraction | None
    beta: Fraction
    questions: int | None = None
    scopes: int | None = None
    price: Fraction | None = None


@dataclass(frozen=True, slots=True)
class JointPurchase:
    """One charge for the parts of a question.

    parts      what was asked              measured  what is measured for each: the same, or another way to know it
    wanted     how near each part's numbers will be, in its units: what is known as well need not be bought
    """

    parts: tuple[Question, ...]
    measured: tuple[Question, ...]
    scales: tuple[Fraction, ...]
    wanted: tuple[float, ...]
    kind: str

    def of(self, needed: Sequence[Question]) -> Noisy | Marginals:
        """The release of those parts that are needed."""
        chosen = [at for at, part in enumerate(self.parts) if part in needed]
        queries, scales = [self.measured[at] for at in chosen], [self.scales[at] for at in chosen]
        together = Marginals(queries, scales, self.kind)
        return together if len(chosen) > 1 else together.parts[0]


class Calibration:
    """The goods for one table, one ledger and one analyst's terms."""

    def __init__(self, facts: Facts, ledger: Ledger, terms: SessionTerms, *, allowance: str | None = None) -> None:
        if facts.size is None and terms.alpha is not None:
            raise ParameterError(
                "alpha is a fraction of a public number of persons, which add-remove hides: declare a size near it, "
                "with Table(size=) or as size = 5000 in the schema; or give a price instead of alpha"
            )
        self.facts, self.ledger, self.terms, self.allowance = facts, ledger, terms, allowance
        self.size = max(1, facts.size or 1)
        caps = ledger.remaining(allowance=allowance).caps
        self.pure = caps.renyi is None  # delta = 0, or too little of both for a Renyi book
        self.kind = "laplace" if self.pure else "gaussian"
        self.cap = caps.pure if self.pure else caps.renyi or 0  # the whole budget, or the allowance's
        self._priced: dict[Any, list[Fraction]] = {}

    @property
    def total(self) -> float | None:
        """The number of rows, if it is public."""
        relation = self.facts.neighbours
        return float(self.size) if relation.replace_one and relation.rows == 1 else None

    @property
    def most(self) -> float:
        """How many rows there are at the most."""
        return math.inf if self.total is None else self.total

    def public(self, question: Question) -> Any:
        """The answer that is public, or None: 0 for a sum of zeros; the number of all rows, in one group, where it is
        known, and a sum to which every row adds the same whole number."""
        domain, shape = self.facts.domain, question.shape(self.facts.domain)
        if not question.counting:
            form = linear(question, domain)
            if form is None or not form.weight.any():
                return None if form is None else np.zeros(shape)
            alike = form.cells == math.prod(shape) == 1 and float(form.weight[0]).is_integer()
            return None if self.total is None or not alike else np.full(shape, self.size * float(form.weight[0]))
        if isinstance(question, Persons | OfPersons):
            told = question.public(self.facts)
            return None if told is None else np.full(shape, told)
        if self.total is None or math.prod(shape) > 1 or not constant(question, domain):
            return None
        return np.full(shape, self.size)

    # How near an answer must be.

    @property
    def window(self) -> Fraction:
        """A in persons: what thresholds are asked in, whatever a question's unit is."""
        return (self.terms.alpha or Fraction(0)) * self.size

    def near(self, question: Question) -> float:
        """A in the question's units, of a session with alpha."""
        try:
            return float(self.window * self.worth(question) * question.unit(self.facts))
        except OverflowError:
            raise ParameterError("floats cannot hold this sum: declare the column in other units") from None

    def worth(self, question: Question) -> int:
        return contribution(question, self.facts)

    def failure(self, order: int, taken: int = 1) -> float:
        """With what probability a charge with these places may be further off than its bounds."""
        # w(m) - w(m + t) = 3/4 ln(1 + t/m) w(m) w(m + t): thresholds double the places, and a difference would be 0.
        first, last = (1 / (1 + _SLOW * math.log(place)) for place in (order, order + taken))
        part = _SLOW * math.log1p(taken / order) * first * last
        return float(self.terms.beta) * part * (1 - 2**-40)  # less than the rounding of floats

    def may_fail(self, place: BetaPlace) -> float:
        """The same for one part of a charge."""
        return self.failure(place.order, place.taken) * float(place.share)

    # The goods.

    def purchase(self, parts: Sequence[Question], order: int, weights: Sequence[Exact] | None = None) -> JointPurchase:
        """All parts of a question in one charge: for the session's price, or each as near as its alpha wants.

        weights  how accurate the parts shall be relative to each other, in contributions of a row; evenly without
        """
        asked = tuple(parts)
        measured = tuple(map(self.counted, asked))
        kind = self.kind_for(measured)
        many = len(asked) > 1 or any(query.groups for query in measured)
        place = BetaPlace(order, SEVERAL if many else 1, Fraction(1, len(asked)))
        if self.terms.price is not None:
            scales = self._scales_for_price(measured, weights)
            errors = (
                self._error(query, place, kind)(float(scale)) for query, scale in zip(measured, scales, strict=True)
            )
            units = (float(query.unit(self.facts)) for query in asked)
            wanted = tuple(error + unit / 2 for error, unit in zip(errors, units, strict=True))
        elif self.terms.alpha is not None:
            wanted = tuple(map(self.near, asked))
            scales = [self._scale_for(*each, place, kind) for each in zip(measured, wanted, strict=True)]
        else:
            raise ParameterError("the declared scopes are used up; a session with alpha= or price= answers more")
        return JointPurchase(asked, measured, tuple(scales), wanted, kind)

    def alone(self, question: Question, order: int) -> Noisy:
        """One question by itself."""
        return self.purchase([question], order).of([question])  # type: ignore[return-value]  # of one part

    def counted(self, question: Question) -> Question:
        """What is measured for a question, if the number of rows is public: of two groups that make up all rows the
        first; of groups that do not, or are not columns, the rest too, so that Gaussian noise can be levelled."""
        if not isinstance(question, Histogram | GroupCount) or not question.groups:
            return question
        levelled = self.total is not None and not self.pure and not question.marginal
        if levelled or shown(question) is not question:  # a rest that is asked about is one of the numbers
            return self._with_rest(question)
        if self.total is None or not question.marginal or question.shape(self.facts.domain) != (2,):
            return question
        (name,) = question.groups
        if name not in self.facts.domain:
            return question
        label = self.facts.domain.column(name).labels()[0]
        return Count(Missing(name) if label is None else Equals(name, label))

    def _with_rest(self, question: Histogram | GroupCount) -> Question:
        """The question with a cell for the rest, if that is not one number too many and can be told apart."""
        made, domain = with_rest(question), self.facts.domain
        small = math.prod(made.shape(domain)) <= MAX_CELLS
        return made if small and meaning(shown(made), domain) == meaning(question, domain) else question

    def _error(self, question: Question, place: BetaPlace, kind: str) -> Callable[[float], float]:
        """How far off the numbers of a question are at the most, as a function of the noise that they get."""
        numbers, unit = math.prod(question.shape(self.facts.domain)), float(question.unit(self.facts))
        drawn, failure, levelled = noisy_by(kind, question).KIND, self.may_fail(place), self.total is not None
        return lambda scale: own_error(question, drawn, scale, unit, numbers, failure=failure, levelled=levelled)

    def _scale_for(self, question: Question, wanted: float, place: BetaPlace, kind: str) -> Fraction:
        """The most noise with which a question's numbers are as near as wanted."""
        reach = wanted - float(question.unit(self.facts)) / 2
        return _largest(self._error(question, place, kind), reach)

    def _scales_for_price(self, queries: Sequence[Question], weights: Sequence[Exact] | None) -> list[Fraction]:
        """The noise of each query with which all of them together cost the session's price."""
        sure = [Fraction(1)] * len(queries) if weights is None else [exact.positive(weight=each) for each in weights]
        units = [query.unit(self.facts) for query in queries]
        moved = [query.sensitivity(self.facts) for query in queries]
        kind = self.kind_for(queries)
        key = (tuple(moved), tuple(units), tuple(sure), kind)
        if key not in self._priced:
            worth = map(self.worth, queries)
            ratios = [Fraction(one) * unit / each for one, unit, each in zip(worth, units, sure, strict=True)]
            made = self.for_price(lambda noise: Marginals(queries, [noise * ratio for ratio in ratios], kind))
            self._priced[key] = list(made.scales)
        return self._priced[key]

    def for_price(self, make: Callable[[Fraction], Mechanism]) -> Any:
        """The mechanism with the least noise that costs no more than one question's price; make: from its noise."""
        try:
            return calibrate(make, funds=self._at_most(self.question_price), facts=self.facts)
        except NothingFits:
            raise NothingFits(self._would_do(make)) from None

    def _would_do(self, make: Callable[[Fraction], Mechanism]) -> str:
        """What to say where no noise is little enough in price: a price for which there is some, or a budget."""
        price = self.terms.price or Fraction(0)
        few = f"{exact.percent(price)} of this budget is less than the least noise that can be drawn costs"
        for more in (10**power for power in range(1, 16)):
            with suppress(NothingFits):
                calibrate(make, funds=self._at_most(max(1, self.question_price) * more), facts=self.facts)
                part = Fraction(max(1, self.question_price) * more, max(1, self.cap))
                if part <= 1:
                    return f'{few}: a session with price="{exact.percent(part).replace(" ", "")}" could ask it'
                return f"{few}, and so is all of it: a ledger with {more:,} times this budget could answer it"
        return f"{few}: nothing is left of the budget, or it is too small"

    @property
    def question_price(self) -> int:
        """What one question may cost, in nano-units of the first book, if the session has a price."""
        return math.floor((self.terms.price or 0) * self.cap)

    def marginal(self, question: Question, order: int, wanted: float) -> Noisy | None:
        """The marginal over the question's scope, if there is one: with as much noise as the question's bound allows;
        in a session with a price for that price, if the question is then as near as wanted."""
        form, place = linear(question, self.facts.domain), BetaPlace(order, SEVERAL)
        if form is None or not form.scope or form.cells > LARGEST_MARGINAL:
            return None
        whole, failure = Histogram(form.scope), self.may_fail(place)
        kind = self.kind_for([whole])
        reach = wanted - 0.5 * float(question.unit(self.facts))
        nothing = np.zeros(whole.shape(self.facts.domain))

        def error(scale: float) -> float:
            """Of reading the question off this marginal with noise of this scale."""
            noisy = Measured(whole, kind, scale, 1.0, nothing)
            ends = interval(noisy, question, self.facts.domain, failure=failure, total=self.total)
            return math.inf if ends is None else float(np.max(ends[1] - ends[0])) / 2

        if self.terms.price is None:
            return self.noisy(whole, _largest(error, reach))
        (scale,) = self._scales_for_price([whole], None)
        return self.noisy(whole, scale) if error(float(scale)) <= reach else None

    def share(self, question: Question, parts: int) -> Noisy:
        """The marginal over the question's scope for one of so many equal parts of what is left."""
        form = linear(question, self.facts.domain)
        if form is None:
            raise ParameterError("this question mentions more cells than can be measured together")
        whole: Question = Histogram(form.scope) if form.scope else question
        funds = self.part(Fraction(1, parts))
        return calibrate(lambda noise: self.noisy(whole, noise), funds=funds, facts=self.facts)

    def threshold(self, number: int) -> AboveThreshold:
        """The noise that leaves a part of A for the hypothesis, and lets as many questions pass as are planned to be
        asked with a guess that is as far off as that: of all, one in `_NEAREST`."""
        first = -math.log(self.failure(number, number))
        idle = math.log(max(2.0, (self.terms.questions or _PLANNED) / _NEAREST))
        window, share = float(self.window * (1 - _GAP)), math.sqrt(first) / (math.sqrt(first) + math.sqrt(2 * idle))
        scales = (Fraction(max(each, 1e-6)) for each in (window * share / first, window * (1 - share) / idle))
        one, other = (each.limit_denominator(10**6) for each in scales)
        return AboveThreshold(one, other, sensitivity=self.facts.neighbours.rows)

    def theta(self, conversation: Threshold, place: BetaPlace) -> Fraction:
        """The threshold to ask for: "no" then means nearer than A. Only one-sided thresholds are opened here."""
        if not isinstance(conversation, AboveThreshold):
            return Fraction(0)
        return self.window - conversation.z_bound(Fraction(self.may_fail(place)))

    def noisy(self, question: Question, scale: Fraction) -> Noisy:
        return Marginals([question], [scale], self.kind_for([question])).parts[0]

    def kind_for(self, queries: Sequence[Question]) -> str:
        """The noise of a release of these. Under replace-one a person moves rows from group to group, and pure noise on
        the counts adds up to zero: for the same price it reaches less far than Laplace noise."""
        counts = (query for query in queries if isinstance(query, Histogram | GroupCount))
        cells = [math.prod(query.shape(self.facts.domain)) for query in counts]
        zero_sum = self.pure and self.facts.neighbours.replace_one and 0 < max(cells, default=0) <= ZERO_SUM
        return "zero-sum" if zero_sum else self.kind

    # Money.

    def price(self, mechanism: Mechanism | Conversation) -> int:
        """In nano-units of the ledger's first book: Renyi, or pure where delta = 0."""
        amount = self.amount(self.ledger.price(mechanism.guarantee(self.facts)))
        return _UNPAYABLE if amount is None else amount

    def amount(self, price: Price | Books) -> int | None:
        """What it is in the ledger's first book."""
        return price.pure if self.pure else price.renyi

    def left(self) -> int:
        return self.amount(self.ledger.remaining(allowance=self.allowance)) or 0

    def part(self, part: Fraction) -> Funds:
        """This part of what is left in the first book."""
        return self._at_most(math.floor(self.left() * part))

    def _at_most(self, amount: int) -> Funds:
        """This much of the first book, and all of what is left for failures."""
        left = self.ledger.funds(allowance=self.allowance)
        caps = Caps(None, amount, left.caps.failure) if self.pure else Caps(amount, 0, left.caps.failure)
        return Funds(left.order, caps)

    def admits(self, mechanism: Mechanism | Conversation) -> bool:
        return self.ledger.admits(mechanism, facts=self.facts, allowance=self.allowance)

    def would_fit(self, mechanism: Mechanism) -> str:
        """What would make the question fit for which this mechanism is too dear: a price, or a coarser alpha."""
        left = self.left()
        if not left or self.terms.scopes is not None:
            return ""
        if self.terms.alpha is None:
            return f' A session with price="{exact.percent(Fraction(left, self.cap)).replace(" ", "")}" could ask it.'
        times = self.price(mechanism) / left
        alpha = float(self.terms.alpha) * (times if self.pure else math.sqrt(times)) * 1.01
        return f" With alpha={math.ceil(alpha * 10**4) / 10**4:g} this question would fit." if alpha < 1 else ""

    def alpha_for(self, cap: int, order: int) -> float:
        """The least alpha for which a count costs no more than this."""
        least = calibrate(lambda noise: self.noisy(Count(), noise), funds=self._at_most(cap), facts=self.facts)
        failure = self.failure(order)
        error = noise_bound(self.kind, float(least.scale), copies=1, log_sets=0.0, failure=failure) + 0.5
        return math.ceil(1.01 * error / self.size * 10**6) / 10**6

    def require_one_count(self) -> None:
        """Refuse an alpha for which the whole budget would not pay for a single count, with one for which it would."""
        least_alpha = self.alpha_for(self.cap, 1)
        if float(self.terms.alpha or 0) * 1.01 >= least_alpha:
            return
        would = f"alpha={least_alpha:g} would" if least_alpha < 1 else "no alpha would, for so few persons"
        raise ParameterError(
            f"alpha={float(self.terms.alpha or 0):g} is below what this budget can give for {self.size} persons: not "
            f"even one count fits; {would}"
        )


def _largest(error: Callable[[float], float], reach: float) -> Fraction:
    """The largest scale, nearly, whose error is within reach; the error grows with the scale."""
    if reach <= 0:
        raise ParameterError("alpha * size must be more than half a person: ask for a larger alpha")
    inside, outside = _bracket(error, reach)

    def too_much(scale: float) -> bool:
        return scale > inside and (scale >= outside or error(scale) > reach)

    ends = exact.bracket(too_much, 0.0, reach, limit=sys.float_info.max)
    if ends is None:
        raise ParameterError("no noise is too much for this question: its answer does not depend on the rows")
    low, _ = exact.narrow(too_much, *ends, lambda low, high: high - low <= high / 1000)
    return Fraction(math.floor(low * 2**20), 2**20)


def _bracket(error: Callable[[float], float], reach: float) -> tuple[float, float]:
    """A scale whose error is within reach, or 0, and one whose error is not, or infinity, near each other: errors are
    nearly in proportion to the scale. It saves most evaluations of an error and changes no result."""
    inside, outside, scale = 0.0, math.inf, reach
    for margin in (1.0, 0.998, 1.002, 0.998, 1.002):
        scale *= margin
        off = error(scale)
        inside, outside = (max(inside, scale), outside) if off <= reach else (inside, min(outside, scale))
        scale = scale * (reach / off) if off > 0 else math.inf
        if not 0 < scale < math.inf:
            break
    return inside, outside
