"""What a plan is about: the public numbers, what may be spent, and the columns of a model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.core import Books, Budget, Funds, Neighbours, ParameterError, Share, exact
from discreet.data import Category, Column, Domain, Facts
from discreet.ledger import Ledger
from discreet.method import Method, Offer, Promise

IMAGINED = "a row of the plan only"
"""Said of a method that cannot be run at this size: a row to compare with."""

MODELS = ("mean", "median", "quantile", "linear", "logistic", "network")
_REGRESSIONS = ("linear", "logistic", "network")
_TAKEN_BY: dict[str, tuple[str, ...]] = {
    "domain": MODELS,
    "target": MODELS,
    "features": _REGRESSIONS,
    "radius": ("linear", "logistic"),
    "huber": ("linear",),
}
"""Models, and what they may be planned for."""


@dataclass(frozen=True, slots=True)
class Left:
    """A share of what is left in a ledger at one moment: what a charge must stay within, in every book.

    either  all that the ledger admits, in whichever book: a share is of the Renyi book, if anything is left there
    """

    ledger: Ledger
    share: Share
    either: bool = False
    allowance: str | None = None

    def remaining(self) -> Books:
        """What is left of the ledger, or of the allowance's share of it."""
        return self.ledger.remaining(allowance=self.allowance)

    @property
    def funds(self) -> Funds:
        """What a charge must stay within; the ledger admits it too, for its books have that much left."""
        return self.ledger.funds(share=None if self.either else self.share, allowance=self.allowance)

    def __str__(self) -> str:
        left, part = self.remaining(), "all" if self.share.part == 1 else str(self.share.part)
        caps = left.share(self.share.part)
        books = [f"pure epsilon {in_cell(Fraction(caps.pure, 10**9))}"] if caps.pure else []
        if caps.renyi:
            books.insert(0, f"Renyi divergence {in_cell(Fraction(caps.renyi, 10**9))} at order {left.order}")
        whose = repr(self.ledger.identity.name) + (f" to {self.allowance!r}" if self.allowance else "")
        return f"{part} of what is left for {whose} ({' or '.join(books) or 'nothing'})"


def in_cell(value: str | Fraction | float | None) -> str:
    """A cell of a table."""
    if value is None or isinstance(value, str):
        return value or "-"
    return f"{float(value):,.0f}" if value >= 1000 else f"{float(value):.4g}"


@dataclass(frozen=True, slots=True)
class Model:
    """What a model is planned for: declared columns, or none; radius and huber as its estimator takes them."""

    domain: Domain | None = None
    target: str | None = None
    features: tuple[str, ...] = ()
    radius: Fraction | None = None
    huber: Fraction | None = None

    def check(self, kind: str, numbers: Iterable[str]) -> None:
        """Whether this kind takes what is given."""
        given = [name for name in _TAKEN_BY if getattr(self, name) not in (None, ())]
        for name in given:
            if kind not in _TAKEN_BY[name]:
                raise ParameterError(
                    f"{name}= is for {' and '.join(_TAKEN_BY[name])}, not for a plan of {kind!r}", argument=name
                )
        if ("domain" in given) != ("target" in given) or ("features" in given and "domain" not in given):
            raise ParameterError(f"domain= and target= belong together, found {' and '.join(given)}")
        if self.domain is not None and "d" in numbers:
            raise ParameterError("d= is counted from the columns when domain= is given: leave it out")


@dataclass(frozen=True, slots=True)
class Problem:
    """The public numbers of one plan. With `left` the budget is the ledger's, of which this much may be spent."""

    kind: str
    budget: Budget
    neighbours: Neighbours
    size: int | None
    alpha: Fraction | None
    beta: Fraction
    funds: Funds
    numbers: dict[str, int]
    left: Left | None = None
    model: Model = Model()

    def number(self, name: str) -> int:
        if name not in self.numbers:
            raise ParameterError(f"this plan needs {name}=, a whole number")
        return exact.whole(**{name: self.numbers[name]})

    def facts(self, column: Column = Category("no", "yes")) -> Facts:  # noqa: B008 - a frozen value
        """Of a table with one column, `it`."""
        return Facts(Domain(it=column), self.neighbours, self.size)

    @property
    def counted(self) -> bool:
        """Whether the number of rows is public."""
        return self.neighbours.replace_one and self.neighbours.rows == 1


def constant(
    name: str, theorem: str, error: float, noise: Fraction | None, mechanism: Any, condition: str = "", few: str = ""
) -> Method:
    """A method whose error does not depend on the size. few: why it promises nothing if all persons are fewer."""

    def solve(size: int | None) -> Offer:
        bound = None if few and size is not None and error >= size else error
        promise = Promise(bound, theorem, "" if bound else few, condition=condition, measure="error")
        return Offer(name, mechanism, promise, noise)

    return by_error(name, solve, lambda alpha: math.ceil(Fraction(error) / alpha) if few else math.ceil(error / alpha))


def by_error(
    name: str, solve: Callable[[int | None], Offer], needed: Callable[[Any], int], imagined: str = ""
) -> Method:
    """A method whose theorem is an error for a size, and a size for an error."""
    claim = Promise(None, "", measure="error")
    return Method(name, claim, needed, lambda alpha: solve(needed(alpha)).mechanism, solve, imagined)
