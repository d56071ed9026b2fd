"""Quantiles of a column, in all or in groups: by the session's price or alpha, and remembered like every answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.answering.adaptive import NEARLY, AdaptiveAnswers
from discreet.answering.answer import Answer
from discreet.answering.transcript import SEVERAL
from discreet.core import ParameterError, digest, record
from discreet.mechanisms import DRAWS, GroupQuantiles
from discreet.query import GroupKey, Predicate

_ROUNDING = 2**-30  # more than the rounding of floats, and of rates, in a bound
_FINE = 2**40  # a rate is a multiple of 1 / _FINE, rounded up


@dataclass(frozen=True, slots=True)
class Ranked:
    """A quantile that is asked for: of a column, in the groups that keys make, of some of the rows."""

    column: str
    q: Fraction
    keys: tuple[GroupKey, ...]
    where: Predicate

    @property
    def name(self) -> str:
        """What the answer is remembered by."""
        made = GroupQuantiles(self.column, self.q, 1, 1, 1, self.keys, self.where)
        return f"quantiles:{digest(record(made))}"

    def mechanism(self, answers: AdaptiveAnswers) -> GroupQuantiles:
        """What the session's terms buy now; found once for each state of the ledger."""
        return answers.once((self, answers.transcript.seen), lambda: self._mechanism(answers))

    def _mechanism(self, answers: AdaptiveAnswers) -> GroupQuantiles:
        """What the session's terms buy.

        Theorem.   P[some draw misses by A rows or more] <= draws * exp(-rate A), with as many draws as there are
                   points, groups and three; the reach is the A for which this is the failure that the session allows
                   its next charge. For an alpha the middle draws are that near, and the outer ones half as sharp.
        """
        calibration, exponent = answers.calibration, self._exponent(answers, answers.transcript.next_order)

        def made(rate: Fraction, outer: Fraction) -> GroupQuantiles:
            reach = math.ceil(exponent / float(outer))
            return GroupQuantiles(self.column, self.q, rate, outer, max(1, reach), self.keys, self.where)

        made(Fraction(1), Fraction(1)).guarantee(answers.facts)  # says what is wrong with the question
        if calibration.terms.price is not None:
            found: GroupQuantiles = calibration.for_price(lambda noise: made(1 / noise, 1 / noise))
            return found
        if calibration.terms.alpha is None:
            raise ParameterError("a quantile needs a session with alpha= or price=")
        sharp = Fraction(math.ceil(exponent / float(calibration.window) * _FINE), _FINE)
        return made(sharp, sharp / 2)

    def _exponent(self, answers: AdaptiveAnswers, order: int) -> float:
        """rate * A for the failure of a charge with this number; more, for the rounding."""
        column = answers.facts.domain.column(self.column)
        groups = math.prod(GroupQuantiles(self.column, self.q, 1, 1, 1, self.keys, self.where).shape(answers.facts))
        failure = answers.calibration.failure(order, SEVERAL)
        return (math.log(DRAWS * groups * column.points) - math.log(failure)) * (1 + _ROUNDING)

    def known(self, answers: AdaptiveAnswers) -> Answer | None:
        """The answer that was given before, if it is near and sure enough."""
        answers.catch_up()
        said, order = answers.earlier(self.name), answers.transcript.next_order
        wanted = self._exponent(answers, order) / float(self.mechanism(answers).rate)
        near = wanted if answers.calibration.terms.price is None else NEARLY * wanted
        return None if said is None or said.error_bound > near * (1 + _ROUNDING) + _ROUNDING else said

    def answer(self, answers: AdaptiveAnswers) -> Answer:
        """The three draws of every group, and by how many ranks they miss at the most.

        If others charged between the question and its charge, this is a later one, which may fail less often: then the
        draws may miss by more than was planned, and the outer ones confine nothing: its bound is infinite.
        """
        calibration, transcript = answers.calibration, answers.transcript
        request = answers.request("quantiles", self.name)
        if request.stored is not None:
            mechanism, value, entry, paid = request.mechanism, request.value, request.stored.entry, 0
        else:
            mechanism = self.mechanism(answers)
            got = answers.release(mechanism, f"the {self.q}-quantile of {self.column}", request.name)
            value, entry, paid = got.value, got.entry, calibration.amount(got.price) or 0
            transcript.catch_up()
        exponent = self._exponent(answers, transcript.numbers[entry])
        holds = exponent / float(mechanism.outer) * (1 - _ROUNDING) <= mechanism.reach
        bound = exponent / float(mechanism.rate) if holds else math.inf
        return transcript.say(
            mechanism, self.name, calibration.terms.beta, Answer(value, bound, "direct", paid), made_from=entry
        )


def needed_draws(answers: AdaptiveAnswers, asked: Sequence[Ranked]) -> list[GroupQuantiles]:
    """What would be bought to answer these."""
    return [each.mechanism(answers) for each in asked if each.known(answers) is None]


def drawn(answers: AdaptiveAnswers, asked: Sequence[Ranked], *, buy: bool = True) -> list[Any]:
    """The answers to these; None for one that is not known, if nothing is bought."""
    found = [each.known(answers) for each in asked]
    return [known or (each.answer(answers) if buy else None) for known, each in zip(found, asked, strict=True)]
