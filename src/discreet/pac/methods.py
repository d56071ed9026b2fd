"""What a learner promises before it runs, and which of several methods to take: public numbers only.

A `Method` is one algorithm for one problem, with a budget already fixed. Its theorem is a sample size: for which number
of rows the error is at most alpha with probability 1 - beta. Read the other way round it promises an alpha for a size.

    needed(alpha)     rows that are enough
    mechanism(alpha)  the mechanism tuned for this alpha (its rounds, its weights)

Most mechanisms never fail. Those that hold outside a small event (stable histograms, the hazard lemma,
Reorder-Slice-Compute) take nearly all of delta for it (`funds.keeping(FAILING)`) or, when they also compose in Renyi
currency, half.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from discreet.errors import ParameterError

USELESS = 0.5
"""An error of half of the rows is what a coin has."""

UNPROVEN = 2**400
"""The number of rows that a method without a theorem needs."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What a theorem says about the mistakes of a learned rule on these rows, with probability 1 - beta.

    alpha     the share of the rows that it labels wrong, at most; None: nothing is promised, and `reason` says why
    assuming  what must be true of the rows; if it is not, nothing is promised
    best_of   if given, the promise needs no assumption: alpha is how much more than the best of these rules is wrong
    """

    alpha: float | None
    beta: float
    theorem: str
    assuming: str = ""
    reason: str = ""
    best_of: str = ""

    def __float__(self) -> float:
        return math.inf if self.alpha is None else self.alpha

    def __str__(self) -> str:
        if self.alpha is None:
            return f"nothing is promised: {self.reason}"
        sure = f"with probability {1 - self.beta:g} ({self.theorem})"
        condition = f"if {self.assuming}: " if self.assuming else ""
        if self.best_of:
            more = f"at most {self.alpha:.2%} of these rows more are wrong than by the best of {self.best_of}"
            return f"{condition}{more}, {sure}"
        return f"{condition}wrong on at most {self.alpha:.2%} of these rows {sure}"


@dataclass(frozen=True, slots=True)
class Method:
    """One algorithm for one problem and budget; see the module's docstring. assuming, best_of: see `Promise`."""

    name: str
    theorem: str
    assuming: str
    beta: float
    needed: Callable[[float], int]
    mechanism: Callable[[float], Any]
    best_of: str = ""

    @staticmethod
    def unproven(name: str, beta: float, mechanism: Callable[[], Any]) -> Method:
        """A method about whose mistakes nothing is proved."""
        return Method(name, "none", "", beta, lambda alpha: UNPROVEN, lambda alpha: mechanism())

    @property
    def proven(self) -> bool:
        return self.needed(USELESS) < UNPROVEN

    def alpha(self, size: float) -> float | None:
        """The least error that is promised for so many rows, to three digits; None if it is no better than a coin."""
        if self.needed(USELESS) > size:
            return None
        low, high = 0.0, USELESS
        while high - low > high / 1000 and high > 1e-9:
            middle = (low + high) / 2
            low, high = (low, middle) if self.needed(middle) <= size else (middle, high)
        return high

    def promise(self, size: float | None) -> Promise:
        """What the theorem says for so many rows."""
        found = None if size is None else self.alpha(size)
        reason = "" if found is not None else self._why_nothing(size)
        return Promise(found, self.beta, self.theorem, self.assuming, reason, self.best_of)

    def _why_nothing(self, size: float | None) -> str:
        if not self.proven:
            return f"nothing is proved about the mistakes of {self.name!r}; a certificate can be bought"
        if size is not None:
            return f"{self.name} promises something from {self.needed(USELESS):,} rows on"
        rows = math.ceil(USELESS * self.needed(USELESS))  # what is promised is a number of rows
        counted = f" (in rows: at most {rows:,} more than by the best of {self.best_of})" if self.best_of else ""
        return f"the number of rows is private and none is declared with size={counted}"

    def offer(self, size: float | None) -> Offer:
        """The mechanism for so many rows, tuned for what is promised, and the promise."""
        promised = self.promise(size)
        return Offer(self.name, self.mechanism(USELESS if promised.alpha is None else promised.alpha), promised)


@dataclass(frozen=True, slots=True)
class Refused:
    """A method that does not apply, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Offer:
    """One method for a problem: the mechanism that would be released, and its promise."""

    method: str
    mechanism: Any
    promise: Promise


Listed = Callable[[], Method]


def listed(makers: Iterable[tuple[str, Listed]]) -> list[Method | Refused]:
    """Every method, those that do not apply with their refusal."""
    found: list[Method | Refused] = []
    for name, make in makers:
        try:
            found.append(make())
        except ParameterError as refused:
            found.append(Refused(name, str(refused)))
    return found


def named(methods: Iterable[Method | Refused], name: str) -> Method:
    """The method of this name; its refusal is an error."""
    known = list(methods)
    for each in known:
        if each.name == name and isinstance(each, Method):
            return each
        if each.name == name and isinstance(each, Refused):
            raise ParameterError(f"method {name!r} does not apply: {each.reason}")
    raise ParameterError(f"method must be one of auto, {', '.join(each.name for each in known)}; found {name!r}")


def best(methods: Iterable[Method | Refused], alpha: float = 0.1) -> Method | None:
    """The method with the smallest proven size for this error; None if none applies."""
    applying = [each for each in methods if isinstance(each, Method)]
    return min(applying, key=lambda each: each.needed(alpha), default=None)
