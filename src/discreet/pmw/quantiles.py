"""Quantiles of a column in a session: within alpha * size ranks, remembered like every other answer."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet.data import Dataset
from discreet.domain import Number
from discreet.erm.line import RankQuantile
from discreet.errors import ParameterError
from discreet.pmw.answering import Answers
from discreet.pmw.transcript import Given
from discreet.records import record
from discreet.release import release


def quantile(answers: Answers, table: Dataset, column: str, q: Fraction) -> Given:
    """A value of the column's grid that misses the q-quantile by at most A rows, in the words of the session's bound.

    Theorem.   P[it misses by A rows or more] <= points * exp(-rate A); the rate makes this the failure that the session
               allows its next measurement.
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
    request = answers.request("quantile", column, record(q))
    if request.stored is not None:
        given = Given(float(request.value), float(shop.window), "direct", 0)
        return transcript.say(request.mechanism, meaning, shop.terms.beta, given, made_from=request.stored.entry)
    failure = shop.failure(transcript.next_order)
    rate = Fraction(math.log((declared.steps + 1) / failure) / float(shop.window)).limit_denominator(10**9)
    mechanism = RankQuantile(column, q, rate)
    how: dict[str, Any] = {"ledger": shop.ledger, "allowance": shop.allowance, "rng": answers.rng}
    got = release(mechanism, table, request=request.name, **how)
    price = got.price.pure if shop.pure else got.price.renyi
    given = Given(float(got.value), float(shop.window), "direct", price or 0)
    return transcript.say(mechanism, meaning, shop.terms.beta, given, made_from=got.entry)
