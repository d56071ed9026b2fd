"""Groups that nobody listed: SELECT city, COUNT(*) ... GROUP BY city over a Text, by the stable histogram.

Which texts occur is private, so only those are shown that are common enough. How common, how far off a shown count may
be, and what it costs, follows from public numbers and is known before anything is paid (`keys_price`).

A question costs a part of the budget: that part of the first book, and the same part of what the ledger keeps of delta
for mechanisms that hold outside an event of small probability. The same question again, in this session or in another
one with the same terms, is free: its release is found by its request id.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.answering.answer import Answer
from discreet.answering.transcript import SEVERAL
from discreet.core import ATTO, NOTHING, Caps, Funds, ParameterError, Price, record
from discreet.ledger import Ledger
from discreet.mechanisms import KeyCount, StableGaussian, StableHistogram, calibrate, least_bound, least_gaussian_bound

if TYPE_CHECKING:
    from discreet.answering.adaptive import AdaptiveAnswers
    from discreet.data import Facts

PART = Fraction(1, 100)
"""The part of the budget that the question costs, unless another is named."""

_MEMO = "the common keys of "


@dataclass(frozen=True, slots=True)
class KeysPrice:
    """What a question about unknown keys costs and gives; all of it public, and known before it is paid.

    price        in both books of the ledger, and of the failures: 0 if it was asked before
    epsilon      the release is (epsilon, delta)-differentially private by itself
    delta
    error_bound  every shown count is within this of the truth, with the session's certainty
    shown        a key of this many rows is shown with probability at least 1 - beta
    """

    price: Price
    epsilon: float
    delta: float
    error_bound: int
    shown: int

    def __str__(self) -> str:
        return (
            f"epsilon {self.epsilon:.3g} and delta {self.delta:.3g}: keys of {self.shown:,} rows or more are shown, "
            f"counts within {self.error_bound:,}"
        )


Stable = StableHistogram | StableGaussian


def stable_keys(keys: KeyCount, facts: Facts, ledger: Ledger, *, part: Fraction = PART) -> Stable:
    """The stable histogram with the least noise that costs this part of the budget: with bounded or Gaussian noise,
    whichever shows keys of fewer rows. Reads no rows, spends nothing."""
    keys.sensitivity(facts)  # says what is wrong with the question
    whole = ledger.caps
    failure, cap = math.floor(whole.failure * part), whole.renyi or 0
    if not failure:
        raise ParameterError(
            "keys that nobody listed can be shown only by a release that may fail with a small probability, and this "
            "ledger has delta = 0: declare the column as a category, with its levels"
        )
    blocks, rows = (2 if facts.neighbours.replace_one else 1), facts.neighbours.rows
    allowed = Fraction(failure, ATTO)
    caps = Caps(math.floor(cap * part), 0, failure) if cap else Caps(None, math.floor(whole.pure * part), failure)

    def bounded(scale: Fraction) -> StableHistogram:
        return StableHistogram(keys, scale, least_bound(scale, allowed / blocks, rows))

    def gaussian(scale: Fraction) -> StableGaussian:
        return StableGaussian(keys, scale, least_gaussian_bound(scale, allowed, rows))

    funds = Funds(ledger.spent().order, caps)
    made: list[Stable] = [calibrate(bounded, funds=funds, facts=facts)]
    made += [calibrate(gaussian, funds=funds, facts=facts)] if cap else []
    return min(made, key=lambda each: each.certain_count(0.05))


def keys_price(answers: AdaptiveAnswers, keys: KeyCount, *, part: Fraction = PART) -> KeysPrice:
    """What `ask_unknown_keys` would charge now, and what it would show. Free, and nothing is written."""
    answers.catch_up()
    mechanism, request = _asked(answers, keys, part)
    guarantee = mechanism.guarantee(answers.facts)
    price = NOTHING if request.stored else answers.calibration.ledger.price(guarantee)
    beta, delta = answers.calibration.failure(answers.transcript.next_order, SEVERAL), guarantee.failure
    error, shown = mechanism.error(beta, answers.facts), mechanism.certain_count(float(answers.calibration.terms.beta))
    return KeysPrice(price, guarantee.epsilon(2 * delta), float(2 * delta), error, shown)


def ask_unknown_keys(answers: AdaptiveAnswers, keys: KeyCount, *, part: Fraction = PART) -> Answer:
    """The keys that are common enough, the most common first, with their counts; charged unless it was asked before.

    Its error bound holds always if the noise is bounded; otherwise it takes places in the session's series of bounds.
    """
    with answers.transcript.alone():
        answers.catch_up()
        mechanism, request = _asked(answers, keys, part)
        if request.stored is not None:
            stored = request.stored.mechanism
            kind = {each.NAME: each for each in (StableHistogram, StableGaussian)}[stored["name"]]
            before = kind(keys, Fraction(stored["scale"]), stored["bound"])
            return _answer(answers, before, request.value, request.stored.entry, "cache", 0)
        got = answers.release(mechanism, _MEMO + ", ".join(keys.columns), request.name)
        price = answers.calibration.amount(got.price) or 0
        answers.catch_up()
        return _answer(answers, mechanism, got.value, got.entry, "direct", price)


def _asked(answers: AdaptiveAnswers, keys: KeyCount, part: Fraction) -> tuple[Stable, Any]:
    mechanism = stable_keys(keys, answers.facts, answers.calibration.ledger, part=part)
    return mechanism, answers.request("keys", record(keys), record(part))


def _answer(
    answers: AdaptiveAnswers, mechanism: Stable, shown: Sequence[Any], entry: int, source: str, price: int
) -> Answer:
    keys, beta = mechanism.keys, float(answers.calibration.terms.beta)
    # The place of this charge in the series that splits beta; bounded noise needs none.
    place = answers.transcript.numbers.get(entry, answers.transcript.next_order)
    error = mechanism.error(answers.calibration.failure(place, SEVERAL), answers.facts)
    ordered = sorted(shown, key=lambda bin: -bin[1])  # equal counts in the order of their labels
    value = {label[0] if len(keys.columns) == 1 else label: count for label, count in ordered}
    unit = "persons" if answers.facts.neighbours.rows == 1 else "rows"
    note = (
        f"shown are keys that many share: one of {mechanism.certain_count(beta):,} {unit} or more with probability "
        f"{100 * (1 - beta):g} %; a higher price shows more"
    )
    return Answer(value, float(error), source, price, unit=unit, groups=keys.columns, note=note)
