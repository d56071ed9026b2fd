"""Quantiles of a column in a session: within alpha * size ranks, remembered like every other answer."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet.answering.adaptive import Answers
from discreet.answering.transcript import Given
from discreet.data import Dataset, Number
from discreet.errors import ParameterError
from discreet.mechanisms import RankQuantile
from discreet.records import record
from discreet.release import release

_ROUNDING = 2**-40  # more than the rounding of floats here
_FINE = 2**40  # a rate is a multiple of 1 / _FINE, rounded up


def quantile(answers: Answers, table: Dataset, column: str, q: Fraction) -> Given:
    """A value of the column's grid that misses the q-quantile by at most A rows, in the words of the session's bound.

    Theorem.   P[it misses by A rows or more] <= points * exp(-rate A); the rate makes this the failure that the session
               allows its next measurement. If others measured between the question and its charge, this is a later
               measurement, which may fail less often: the stated bound is then the A for which that holds.
    """
    shop = answers.shop
    declared = table.facts.domain.column(column)
    if not isinstance(declared, Number):
        raise ParameterError(f"a quantile is of a Number with bounds; column {column!r} is declared {declared!r}")
    if shop.terms.alpha is None:
        raise ParameterError("a quantile needs a session with alpha=: it is promised within alpha * size ranks")
    known = _remembered(answers, column, q)  # nobody has to wait for what was answered before
    if known is not None:
        return known
    with answers.transcript.alone():
        return _remembered(answers, column, q) or _released(answers, table, column, declared, q)


def _remembered(answers: Answers, column: str, q: Fraction) -> Given | None:
    """The answer that was given before, if it is near and sure enough."""
    answers.transcript.catch_up()
    said = answers.transcript.said(_meaning(column, q))
    if said is None or said.beta > answers.shop.terms.beta or said.given.bound > answers.shop.window:
        return None
    return replace(said.given, source="cache", price=0)


def _meaning(column: str, q: Fraction) -> str:
    return f"quantile:{column}:{q}"


def _released(answers: Answers, table: Dataset, column: str, declared: Number, q: Fraction) -> Given:
    shop, transcript = answers.shop, answers.transcript
    request = answers.request("quantile", column, record(q))
    if request.stored is not None:
        mechanism, value, entry, paid = request.mechanism, request.value, request.stored.entry, 0
    else:
        needed = _exponent(declared, shop.failure(transcript.next_order)) / float(shop.window)
        mechanism = RankQuantile(column, q, Fraction(math.ceil(needed * _FINE), _FINE))
        how: dict[str, Any] = {"ledger": shop.ledger, "allowance": shop.allowance, "rng": answers.rng}
        got = release(mechanism, table, request=request.name, **how)
        value, entry, paid = got.value, got.entry, (got.price.pure if shop.pure else got.price.renyi) or 0
        transcript.catch_up()
    # If others measured meanwhile this is a later measurement, which may fail less often: a wider bound.
    reached = _exponent(declared, shop.failure(transcript.numbers[entry])) / float(mechanism.rate)
    bound = max(float(shop.window), reached * (1 - _ROUNDING / 2))
    given = Given(float(value), bound, "direct", paid)
    return transcript.say(mechanism, _meaning(column, q), shop.terms.beta, given, made_from=entry)


def _exponent(column: Number, failure: float) -> float:
    """rate * A for which points * exp(-rate A) is this failure; a little more, for the rounding of floats."""
    return math.log((column.steps + 1) / failure) * (1 + _ROUNDING)
