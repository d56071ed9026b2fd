"""One number of one column: the methods for a mean, a median, a quantile.

mean               laplace, gaussian: a noisy sum over the public number of rows, by default the less noisy one.
                   Under add-remove that number is private, and the default is exponential, which needs none
median, quantile   rank: the exponential mechanism on ranks, which asks how many rows are on the wrong side
all                the solvers of a risk on the line between the column's bounds: `solvers`
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from discreet.core import Funds, Neighbours, ParameterError, Unproven
from discreet.data import Facts
from discreet.erm import Constant, Loss, Risk, interval, public_size, solvers
from discreet.erm.exponential.bounds import RankQuantile
from discreet.erm.exponential.bounds import promise as rank_promise
from discreet.mechanisms import Gaussian, Laplace, Noisy, Promise, calibrate
from discreet.method import Maker, Method, Methods, Refused
from discreet.query import Sum

PRIVATE_COUNT = (
    "the number of rows is private under add-remove, and a sum divided by the declared size is as wrong as that size; "
    "the exponential mechanism needs no such number, and a session's AVG is a sum and a count"
)
"""Why a noisy sum is no promise about a mean."""

SUMS: dict[str, type[Noisy]] = {"laplace": Laplace, "gaussian": Gaussian}
"""What these names mean for a mean."""

_BETA = 0.05
"""Of a promise in rows, when there is none about the loss."""


Solved = tuple[Any, Promise]


def methods(loss: Loss, column: str, facts: Facts, funds: Funds, *, share: Fraction = Fraction(1)) -> Methods:
    """Every method for this column. share: which part of the rows of the facts is here."""
    known: dict[str, Any] = {}  # mechanisms that are the same for every size

    def calibrated(name: str, make: Callable[[Fraction], Any], known_facts: Facts) -> Any:
        if name not in known:
            known[name] = calibrate(make, funds=funds, facts=known_facts)
        return known[name]

    def noisy_sum(name: str, at: Facts) -> Solved:
        if at.neighbours.rows > 1:
            raise Unproven(
                "a mean is a sum over a number of rows, which is private where a person may have several: ask a "
                f"session for AVG({column}), or take Median"
            )
        low, high = bounds_of(column, at)
        mechanism = calibrated(name, lambda scale: SUMS[name](Sum(column), scale), at)
        count, theorem = public_size(at), "the variance of the noise on the sum, over the squared number of rows"
        if not at.neighbours.replace_one:
            return mechanism, Promise(None, theorem, PRIVATE_COUNT)
        # The squared error of the mean is that of the noise; the middle of the bounds is never farther from the mean
        # than half their width.
        excess = mechanism.noise.variance() / float(count * share) ** 2
        return mechanism, Promise(excess, theorem).unless((float(high - low) / 2) ** 2, "the middle of the bounds")

    def rank(at: Facts) -> Solved:
        """Its promise is about the pinball loss, of which |u| is twice the median's."""
        q, times = loss.as_pinball() or (Fraction(1, 2), 2)
        mechanism = calibrated("rank", lambda noise: RankQuantile(column, q, 1 / noise), at)
        number = at.domain.column(column)
        if not number.bounded:
            missed = math.ceil((math.log(number.size) - math.log(_BETA)) / mechanism.rate)
            reason = (
                "the column has no bounds, so nothing about the loss; in ranks, the value misses the quantile by fewer "
                f"than {missed:,} rows with probability {1 - _BETA:g}"
            )
            return mechanism, Promise(None, "ranks", reason)
        if at.size is None:
            return mechanism, Promise(None, "ranks", "the number of rows is private")
        return mechanism, rank_promise(mechanism, at).times(times)

    def solver(name: str) -> Method | Refused:
        return solvers.methods(risk_of(loss, column, facts), facts, funds, share=share).find(name)

    makers: dict[str, Maker] = {name: functools.partial(solver, name) for name in solvers.SOLVERS}
    if loss.as_pinball() is not None:
        return Methods({"rank": solvers.maker("rank", facts, rank, share), **makers}, usual=lambda: ("rank",))
    for name in SUMS:
        makers[name] = solvers.maker(name, facts, functools.partial(noisy_sum, name))

    def usual() -> tuple[str, ...]:
        # Under add-remove there is no public number to divide a sum by; the exponential mechanism needs none.
        if facts.neighbours == Neighbours("add-remove"):
            return ("exponential",)
        sums = {name: listed.find(name) for name in (("laplace",) if funds.pure else SUMS)}
        spread = {
            name: method.offer(facts.size).mechanism.noise.variance()
            for name, method in sums.items()
            if isinstance(method, Method)
        }
        return (min(spread, key=spread.__getitem__, default="laplace"),)

    listed = Methods(makers, usual=usual)
    return listed


def bounds_of(column: str, facts: Facts) -> tuple[Fraction, Fraction]:
    """The declared bounds; ParameterError if there are none."""
    number = facts.domain.column(column)
    if not number.bounded:
        raise ParameterError(
            f"column {column!r} is declared {number!r}: without bounds only the ranks of a quantile are "
            'private, method="auto" or "rank"; suggest_bounds finds bounds'
        )
    return number.low, number.high


def risk_of(loss: Loss, column: str, facts: Facts) -> Risk:
    """The mean loss of one number between the column's bounds."""
    return Risk(loss, Constant(), column, interval(*bounds_of(column, facts)))
