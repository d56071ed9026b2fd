"""Quantiles of a column in a session: within alpha * size ranks, remembered like every other answer."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from discreet.answering.adaptive import AdaptiveAnswers
from discreet.answering.answer import Answer
from discreet.core import ParameterError, record
from discreet.data import Dataset
from discreet.mechanisms import RankQuantile
from discreet.release import release

_ROUNDING = 2**-40  # more than the rounding of floats here
_FINE = 2**40  # a rate is a multiple of 1 / _FINE, rounded up


def quantile(answers: AdaptiveAnswers, table: Dataset, column: str, q: Fraction) -> Answer:
    """A value of the column's grid that misses the q-quantile by at most A rows, in the words of the session's bound.

    Theorem.   P[it misses by A rows or more] <= points * exp(-rate A); the rate makes this the failure that the session
               allows its next measurement. If others measured between the question and its charge, this is a later
               measurement, which may fail less often: the stated bound is then the A for which that holds.
    """
    shop, transcript, meaning = answers.shop, answers.transcript, f"quantile:{column}:{q}"
    declared = table.facts.domain.column(column)
    if not declared.bounded:
        raise ParameterError(f"a quantile is of a Number with bounds; column {column!r} is declared {declared!r}")
    if shop.terms.alpha is None:
        raise ParameterError("a quantile needs a session with alpha=: it is promised within alpha * size ranks")

    def remembered() -> Answer | None:
        """The answer that was given before, if it is near and sure enough."""
        transcript.catch_up()
        said = transcript.said(meaning)
        if said is None or said.beta is None or said.beta > shop.terms.beta or said.error_bound > shop.window:
            return None
        return replace(said, source="cache", price=0)

    def exponent(order: int) -> float:
        """rate * A for which points * exp(-rate A) is the failure of this measurement; more, for the rounding."""
        return math.log((declared.steps + 1) / shop.failure(order)) * (1 + _ROUNDING)

    known = remembered()  # what was answered before needs no turn
    if known is not None:
        return known
    with transcript.alone():
        known = remembered()
        if known is not None:
            return known
        request = answers.request("quantile", column, record(q))
        if request.stored is not None:
            mechanism, value, entry, paid = request.mechanism, request.value, request.stored.entry, 0
        else:
            rate = exponent(transcript.next_order) / float(shop.window)
            mechanism = RankQuantile(column, q, Fraction(math.ceil(rate * _FINE), _FINE))
            ledger, allowance, rng = shop.ledger, shop.allowance, answers.rng
            got = release(mechanism, table, request=request.name, ledger=ledger, allowance=allowance, rng=rng)
            value, entry, paid = got.value, got.entry, shop.amount(got.price) or 0
            transcript.catch_up()
        # If others measured meanwhile this is a later measurement, which may fail less often: a wider bound.
        reached = exponent(transcript.numbers[entry]) / float(mechanism.rate)
        answer = Answer(float(value), max(float(shop.window), reached * (1 - _ROUNDING / 2)), "direct", paid)
        return transcript.say(mechanism, meaning, shop.terms.beta, answer, made_from=entry)
