"""What a plan is about: the public numbers, what may be spent, and the columns of a model.

`release_methods` are the methods for single releases: a number, a table or a vector with noise, a selection, a
threshold. No data.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet.core import FAILING, Books, Budget, Funds, Neighbours, ParameterError, Share, exact
from discreet.data import Category, Column, Domain, Facts, Number, Vector
from discreet.ledger import Ledger
from discreet.mechanisms import (
    AboveThreshold,
    AboveThresholdLaplace,
    CoordinateLaplace,
    Exponential,
    Gaussian,
    Laplace,
    PermuteAndFlip,
    ProductLaplace,
    Promise,
    StableHistogram,
    calibrate,
)
from discreet.method import Maker, Method, Methods, Offer, Refused
from discreet.query import Count, Equals, Histogram, KeyCount, Sum, VectorSum

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

_PRIVATE_SIZE = "the number of people is private under add-remove: plan a sum and a count, and divide one by the other"
_UNIT = Number(0, 1, step=Fraction(1, 2**20))


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
    """What a model is planned for: declared columns, or none; radius and huber as its estimator takes them; what a pass
    over the rows costs before its first row is read."""

    domain: Domain | None = None
    target: str | None = None
    features: tuple[str, ...] = ()
    radius: Fraction | None = None
    huber: Fraction | None = None
    pass_seconds: float = 0.0

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


# Single releases.


def release_methods(problem: Problem) -> Methods:
    """One method for each mechanism: its noise, and the error that it promises."""
    families = {"keys": _keys, "select": _select, "threshold": _threshold, "average": _average}
    return Methods(families.get(problem.kind, _additive)(problem))


def _makers(
    kinds: Iterable[Any],
    about: str,
    make: Callable[[Any, Fraction], Any],
    facts: Facts,
    funds: Funds,
    error: Callable[[Any], float],
    condition: Callable[[Any], str] = lambda mechanism: "",
) -> dict[str, Maker]:
    """One method for each kind of mechanism, with the least noise that is admitted."""

    def method(kind: Any) -> Method:
        mechanism: Any = calibrate(functools.partial(make, kind), funds=funds, facts=facts)
        known = [field for field in ("scale", "threshold_scale", "rate") if hasattr(mechanism, field)]
        noise = getattr(mechanism, known[0])
        noise = 1 / noise if "rate" in known else noise
        name, theorem = kind.__name__, f"{kind.__name__}, {about}"
        return constant(name, theorem, error(mechanism), noise, mechanism, condition(mechanism))

    return {kind.__name__: functools.partial(method, kind) for kind in kinds}


def _additive(problem: Problem) -> dict[str, Maker]:
    """Noise of each kind on all coordinates at once: the error is a union bound over them."""
    kinds: tuple[Any, ...] = (Laplace, Gaussian)
    cells = 1
    column: Any = _UNIT
    query: Any = Sum("it")
    match problem.kind:
        case "count":
            column, query = Category("no", "yes"), Count(Equals("it", "yes"))
        case "histogram":
            cells, query = problem.number("cells"), Histogram("it")
            column = Number(0, max(1, cells - 1), step=1)
        case "vector":
            cells, query = problem.number("d"), VectorSum("it")
            column, kinds = Vector(cells, norm=1), (CoordinateLaplace, ProductLaplace, Gaussian)
    facts, sure = problem.facts(column), 1 - problem.beta / cells

    def error(mechanism: Any) -> float:
        return float(mechanism.noise_range(sure, facts))

    about = "theorem and accuracy"
    return _makers(kinds, about, lambda kind, noise: kind(query, noise), facts, problem.funds, error)


def _average(problem: Problem) -> dict[str, Maker]:
    """A sum divided by the number of rows, which must be public."""
    sums = _additive(problem)
    if not problem.counted:
        return {name: functools.partial(Refused, name, _PRIVATE_SIZE) for name in sums}
    if problem.size is None and problem.alpha is None:
        raise ParameterError("a plan for an average needs size=, or alpha= to find the size", argument="size")

    def divided(name: str, make: Maker) -> Method | Refused:
        whole = make()
        if isinstance(whole, Refused):
            return whole

        def solve(size: int | None) -> Offer:
            offer = whole.offer(size)
            theorem = f"{offer.promise.theorem}, divided by the public size"
            bound = None if size is None else float(offer.promise) / size
            return replace(offer, promise=replace(offer.promise, bound=bound, theorem=theorem))

        return by_error(name, solve, whole.needed)

    return {name: functools.partial(divided, name, make) for name, make in sums.items()}


def _keys(problem: Problem) -> dict[str, Maker]:
    """Counts of what is there, by noise that ends at a bound: who is shown is off by no more than it."""
    name, funds, facts = StableHistogram.__name__, problem.funds.keeping(FAILING), problem.facts()
    if problem.funds.pure or funds.failure == 0:
        reason = "that a rare key appears may fail to be private: it needs a delta > 0"
        return {name: lambda: Refused(name, reason)}

    def make(kind: type[StableHistogram], noise: Fraction) -> StableHistogram:
        return kind.of(KeyCount("it"), epsilon=1 / noise, delta=funds.failure, facts=facts)

    def condition(mechanism: StableHistogram) -> str:
        least = mechanism.certain_count(float(problem.beta))
        return f"a key appears if it has {least:,} rows, with probability 1 - beta for each"

    about = "theorem and accuracy"
    return _makers([StableHistogram], about, make, facts, funds, lambda found: float(found.bound), condition)


def _select(problem: Problem) -> dict[str, Maker]:
    candidates = problem.number("candidates")
    facts, logs = problem.facts(Number(0, max(1, candidates - 1), step=1)), math.log(candidates / problem.beta)

    def error(mechanism: Any) -> float:
        return float(1 / mechanism.rate) * logs

    kinds, about = (Exponential, PermuteAndFlip), "accuracy: best - score <= ln(m/beta) / rate"
    return _makers(kinds, about, lambda kind, noise: kind(Histogram("it"), 1 / noise), facts, problem.funds, error)


def _threshold(problem: Problem) -> dict[str, Maker]:
    """The window inside which a yes or a no may be wrong, over all questions of one conversation."""
    questions, facts = problem.number("questions"), problem.facts()
    sensitivity = Count().sensitivity(facts).linf

    def make(kind: Any, noise: Fraction) -> Any:
        return kind(noise, 2 * noise, sensitivity=sensitivity)

    def window(mechanism: Any) -> float:
        return float(mechanism.window(problem.beta, questions=questions))

    about = f"accuracy over {questions} questions"
    return _makers((AboveThreshold, AboveThresholdLaplace), about, make, facts, problem.funds, window)
