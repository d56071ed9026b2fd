"""Quantiles of a column in a session: within alpha * size ranks, remembered like every other answer."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from discreet.data import Dataset
from discreet.domain import Number
from discreet.erm.line import RankQuantile
from discreet.errors import ParameterError
from discreet.pmw.answering import Answers
from discreet.pmw.transcript import Given
from discreet.release import release

_FINE = 2**40  # a rate is a multiple of 1 / _FINE, rounded up


def quantile(answers: Answers, table: Dataset, column: str, q: Fraction) -> Given:
    """A value of the column's grid that misses the q-quantile by at most A rows, in the words of the session's bound.

    Theorem.   P[it misses by A rows or more] <= points * exp(-rate A); the rate makes this the failure that the session
               allows its next measurement. If others measured between the question and its charge, this is a later
               measurement, which may fail less often: the stated bound is then the A for which that holds.
    """
    shop, transcript = answers.shop, answers.transcript
    declared = table.facts.domain.column(column)
    if not isinstance(declared, Number):
        raise ParameterError(f"a quantile is of a Number with bounds; column {column!r} is declared {declared!r}")
    if shop.terms.alpha is None:
        raise ParameterError("a quantile needs a session with alpha=: it is promised within alpha * size ranks")
    transcript.catch_up()
    meaning = f"quantile:{column}:{q}"
    said = transcript.said.get(meaning)
    if said is not None and said.beta <= shop.terms.beta and said.given.bound <= shop.window:
        return replace(said.given, source="cache", price=0)
    order, window = transcript.next_order, float(shop.window)
    needed = _exponent(declared, shop.failure(order)) / window
    mechanism = RankQuantile(column, q, Fraction(math.ceil(needed * _FINE), _FINE))
    got = release(mechanism, table, ledger=shop.ledger, allowance=shop.allowance, rng=answers.rng)
    price = got.price.pure if shop.pure else got.price.renyi
    transcript.catch_up()
    number = transcript.numbers[got.entry]
    bound = (
        window if number <= order else max(window, _exponent(declared, shop.failure(number)) / float(mechanism.rate))
    )
    given = Given(float(got.value), bound, "direct", price or 0)
    return transcript.say(mechanism, meaning, shop.terms.beta, given)


def _exponent(column: Number, failure: float) -> float:
    """rate * A for which points * exp(-rate A) is this failure; a little more, for the rounding of floats."""
    return math.log((column.steps + 1) / failure) * (1 + 2**-40)
