"""What a mechanism promises about its error: a bound with its theorem, or the reason why there is none."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Literal

from discreet.core import Sentence
from discreet.data import Facts

Measure = Literal["excess risk", "wrong rows", "error"]
"""What a bound is about: the excess of a mean loss; the share of the rows that a rule labels wrong; an error in rows,
persons or the units of a sum, over all numbers that are released together."""


@dataclass(frozen=True, slots=True, repr=False)
class Promise(Sentence):
    """What a theorem says, before anything is computed: in expectation, or with probability 1 - beta if beta is given.

    bound      None: nothing is promised, and `reason` says why
    per        the unit of an excess risk, a sum of losses over rows divided by a number. "row": the number of the rows.
               "person": the number of persons, of whom each may hold several rows, so that the losses of a person are
               added up. "declared person": the size that is declared under add-remove, whatever the number of rows is
    condition  what must be true of the rows, as "if there are at most 100 rows"; empty if nothing is supposed
    best_of    if given, the bound is how much more than by the best of these rules is wrong
    """

    bound: float | None
    theorem: str
    reason: str = ""
    beta: float | None = None
    per: str = "row"
    condition: str = ""
    best_of: str = ""
    measure: Measure = "excess risk"

    def about(self, facts: Facts, *, any_number: bool = False) -> Promise:
        """The same in the unit that these facts give, with its condition unless it holds for any number of rows."""
        if self.bound is None:
            return self
        condition = "" if any_number else row_condition(facts)
        return dataclasses.replace(self, per=unit_of(facts), condition=condition)

    def unless(self, known: float, whose: str) -> Promise:
        """The same if it says more than what is known of a public point (`whose`) without a theorem; else nothing."""
        if float(self) < known:
            return self
        reason = f"the theorem's {float(self):.3g} is no better than {whose}, {known:.3g}"
        return dataclasses.replace(self, bound=None, reason=reason)

    def times(self, factor: float) -> Promise:
        """The same about a loss that is this many times as large."""
        return self if self.bound is None else dataclasses.replace(self, bound=self.bound * factor)

    def __float__(self) -> float:
        return math.inf if self.bound is None else self.bound

    def __str__(self) -> str:
        if self.bound is None:
            return f"nothing is promised: {self.reason}"
        how = "in expectation" if self.beta is None else f"with probability {1 - self.beta:g}"
        if self.measure != "wrong rows":
            supposed = f", {self.condition}" if self.condition else ""
            return f"{self.measure} <= {self.bound:.3g} per {self.per} {how}{supposed} ({self.theorem})"
        supposed = f"{self.condition}: " if self.condition else ""
        if self.best_of:
            more = f"at most {self.bound:.2%} of these rows more are wrong than by the best of {self.best_of}"
            return f"{supposed}{more}, {how} ({self.theorem})"
        return f"{supposed}wrong on at most {self.bound:.2%} of these rows {how} ({self.theorem})"


def wrong_rows(theorem: str, beta: float, condition: str = "", best_of: str = "") -> Promise:
    """The promise of a learner of rules, without its bound."""
    return Promise(None, theorem, "", beta, condition=condition, best_of=best_of, measure="wrong rows")


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
