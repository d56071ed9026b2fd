"""What a theorem promises about the excess risk of a solution, before it is computed."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from discreet.data import Facts

PRIVATE_COUNT = (
    "the number of rows is private under add-remove, and a sum divided by the declared size is as wrong as that size; "
    "the exponential mechanism needs no such number, and a session's AVG is a sum and a count"
)
"""Why a noisy sum is no promise about a mean."""


@dataclass(frozen=True, slots=True)
class Promise:
    """L(w) - min L <= excess: in expectation over the noise, or with probability 1 - beta when beta is given.

    excess None: nothing is promised, and `reason` says why.

    per        the unit of L, a sum of losses over rows divided by a number. "row": the number of the rows. "person":
               the number of persons, of whom each may hold several rows, so that L adds up the losses of a person.
               "declared person": the size that is declared under add-remove, whatever the number of rows is
    condition  what the promise supposes about the number of rows, where that is private; empty if it supposes nothing
    """

    excess: float | None
    theorem: str
    reason: str = ""
    beta: float | None = None
    per: str = "row"
    condition: str = ""

    def about(self, facts: Facts, *, any_number: bool = False) -> Promise:
        """The same in the unit that these facts give, with its condition unless it holds for any number of rows."""
        condition = "" if any_number else row_condition(facts)
        return dataclasses.replace(self, per=unit_of(facts), condition=condition)

    def times(self, factor: float) -> Promise:
        """The same about a loss that is this many times as large."""
        return self if self.excess is None else dataclasses.replace(self, excess=self.excess * factor)

    def __float__(self) -> float:
        return math.inf if self.excess is None else self.excess

    def __str__(self) -> str:
        if self.excess is None:
            return f"nothing is promised: {self.reason}"
        how = "in expectation" if self.beta is None else f"with probability {1 - self.beta:g}"
        supposed = f", {self.condition}" if self.condition else ""
        return f"excess risk <= {self.excess:.3g} per {self.per} {how}{supposed} ({self.theorem})"


def unit_of(facts: Facts) -> str:
    """What sums of losses are divided by: rows, persons, or the size that is declared under add-remove."""
    if not facts.neighbours.replace_one:
        return "declared person"
    return "row" if facts.neighbours.rows == 1 else "person"


def row_condition(facts: Facts) -> str:
    """At most k n rows, which is certain under replace-one."""
    if facts.neighbours.replace_one or facts.size is None:
        return ""
    return f"if there are at most {max(1, facts.size) * facts.neighbours.rows:,} rows"


def mean_promise(variance: float, *, count: float, half: float, facts: Facts) -> Promise:
    """Of a noisy sum divided by the number of rows: the squared error of the mean is that of the noise.

    count  the number of rows
    half   of the width of the bounds, as far as the middle of them can be from the mean
    """
    theorem = "the variance of the noise on the sum, over the squared number of rows"
    if not facts.neighbours.replace_one:
        return Promise(None, theorem, PRIVATE_COUNT)
    excess = variance / count**2
    if excess >= half**2:
        return Promise(None, theorem, f"{excess:.3g} is no better than the middle of the bounds, {half**2:.3g}")
    return Promise(excess, theorem)
