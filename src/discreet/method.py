"""One form for every choice of an algorithm: what it promises, what it needs, and why it does not apply.

    Method    one algorithm for one problem and one amount of funds
    Refused   an algorithm that does not apply: a code for programs, a reason for people
    Methods   all of them for a problem, each calibrated when it is first asked for
    choose    the one to take: by its name, or by public numbers alone

A theorem is stated in one of two ways. As a sample size: for which number of rows the error is at most alpha
(`needed`), and the mechanism that is tuned for this alpha (`mechanism`). Or as a bound for a number of rows (`solve`).
Each way is read backwards by bisection, so that `offer(size)` and `needed(alpha)` exist for both.

Every learner lists its methods with a function `methods`. `plan` prints the list that `fit` chooses from.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from discreet.core import NothingFits, ParameterError, Unproven, exact
from discreet.mechanisms import Promise, wrong_rows

USELESS = 0.5
"""An error of half of the rows is what a coin has."""

USEFUL = 0.05
"""The error of which a promise says how many rows are proven to reach it, where no error was asked for."""

UNPROVEN = 2**400
"""The number of rows that a method without a theorem needs."""

LARGEST = 2**36
"""Persons: `least_size` looks for no size above this."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What a method would release for a number of rows: the mechanism, its promise, and the scale of its noise."""

    method: str
    mechanism: Any
    promise: Promise
    noise: Fraction | None = None


Code = Literal["problem", "budget", "unproven"]
"""Why a method does not apply: it is not for this problem; nothing is within the funds; no theorem covers the case."""

_ERRORS: dict[Code, type[ParameterError]] = {"problem": ParameterError, "budget": NothingFits, "unproven": Unproven}


@dataclass(frozen=True, slots=True)
class Refused:
    """A method that does not apply, and why."""

    name: str
    reason: str
    code: Code = "problem"

    @staticmethod
    def of(name: str, error: ParameterError) -> Refused:
        codes = [code for code, kind in _ERRORS.items() if type(error) is kind]
        return Refused(name, str(error), codes[0] if codes else "problem")

    def error(self, text: str | None = None) -> ParameterError:
        """The refusal as an error."""
        return _ERRORS[self.code](self.reason if text is None else text)


@dataclass(frozen=True, slots=True)
class Method:
    """One algorithm for one problem and one amount of funds; see the module's docstring.

    claim      its promise without the bound
    needed     how many rows make the error at most this; UNPROVEN if no number does
    mechanism  what is released for this error
    solve      what is offered for this number of rows, where the theorem says that; None: by `needed` and `mechanism`
    imagined   why it cannot be run at this size, if so: a row of a plan, to compare with
    """

    name: str
    claim: Promise
    needed: Callable[[Any], int]
    mechanism: Callable[[float], Any]
    solve: Callable[[int | None], Offer] | None = None
    imagined: str = ""

    @staticmethod
    def unproven(name: str, beta: float, mechanism: Callable[[], Any]) -> Method:
        """A method about whose mistakes nothing is proved."""
        return Method(name, wrong_rows("none", beta), lambda alpha: UNPROVEN, lambda alpha: mechanism())

    @staticmethod
    def solving(name: str, solve: Callable[[int | None], Offer]) -> Method:
        """A method whose theorem is a bound for a number of rows."""
        known = functools.cache(solve)

        def needed(alpha: float) -> int:
            return least_size(lambda size: float(known(size).promise) <= alpha)

        return Method(name, Promise(None, ""), needed, lambda alpha: known(needed(alpha)).mechanism, known)

    @property
    def proven(self) -> bool:
        return self.needed(USELESS) < UNPROVEN

    def promise(self, size: int | None) -> Promise:
        """What the theorem says for this number of rows; of wrong rows the least share, to three digits."""
        if self.solve is not None:
            return self.solve(size).promise
        if size is None or self.needed(USELESS) > size:
            return dataclasses.replace(self.claim, reason=self._why_nothing(size))
        bound = exact.least(
            lambda alpha: self.needed(alpha) <= size,
            0.0,
            USELESS,
            lambda low, high: high - low <= high / 1000 or high <= 1e-9,
        )
        return dataclasses.replace(self.claim, bound=bound)

    def _why_nothing(self, size: int | None) -> str:
        if not self.proven:
            return f"nothing is proved about the mistakes of {self.name!r}; a certificate can be bought"
        if size is not None:
            return f"{self.name} promises something from {self.needed(USELESS):,} rows on"
        rows, best_of = math.ceil(USELESS * self.needed(USELESS)), self.claim.best_of  # a promise is a number of rows
        counted = f" (in rows: at most {rows:,} more than by the best of {best_of})" if best_of else ""
        return f"the number of rows is private and none is declared with size={counted}"

    def offer(self, size: int | None) -> Offer:
        """The mechanism for this number of rows, tuned for what is promised, and the promise."""
        if self.solve is not None:
            return self.solve(size)
        promised = self.promise(size)
        return Offer(self.name, self.mechanism(USELESS if promised.bound is None else promised.bound), promised)


def least_size(kept: Callable[[int], bool]) -> int:
    """A size that keeps a promise which 0.95 of it do not keep; UNPROVEN if none up to LARGEST does."""

    def keeps(size: int) -> bool:
        try:
            return kept(size)
        except ParameterError:
            return False

    ends = exact.bracket(keeps, 1, 16, limit=LARGEST, factor=4)
    if ends is None:
        return UNPROVEN
    return exact.least(keeps, *ends, lambda low, high: high - low <= max(1, high // 24))


Maker = Callable[[], Method | Refused]


class Methods(Sequence[Method | Refused]):
    """All methods for a problem, in order. Each is calibrated when it is first asked for.

    makers     by name; a ParameterError is a refusal
    usual      the names that `choose` takes by default; all unless they are given. Called when they are needed, since
               they may depend on what a method finds
    preferred  for labels that may be wrong: what is taken without a wanted error, the first of these that applies. The
               last is the practical one, which is also taken where no theorem reaches the wanted error
    """

    def __init__(
        self,
        makers: Mapping[str, Maker],
        *,
        usual: Callable[[], Iterable[str]] | None = None,
        preferred: tuple[str, ...] = (),
    ) -> None:
        self.makers, self.preferred = dict(makers), preferred
        self.usual = usual or (lambda: self.makers)
        self._made: dict[str, Method | Refused] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.makers)

    def __len__(self) -> int:
        return len(self.makers)

    def __getitem__(self, place: Any) -> Any:
        names = self.names[place]
        return self.find(names) if isinstance(names, str) else [self.find(name) for name in names]

    def find(self, name: str) -> Method | Refused:
        """This method, or why it does not apply."""
        if name not in self.names:
            raise ParameterError(f"method must be one of auto, {', '.join(self.names)}; found {name!r}")
        if name not in self._made:
            try:
                self._made[name] = self.makers[name]()
            except ParameterError as error:
                self._made[name] = Refused.of(name, error)
        return self._made[name]

    def named(self, name: str) -> Method:
        """This method; its refusal is an error."""
        match self.find(name):
            case Refused() as refused:
                raise refused.error(f"method {name!r} does not apply: {refused.reason}")
            case Method(imagined=reason) if reason:
                raise ParameterError(f"method {name!r} does not apply: {reason}")
            case method:
                return method

    def applying(self) -> Iterator[Method]:
        """Those that may be taken by default and apply; an error if there is none."""
        usual = tuple(self.usual())
        refusals = []
        for name in usual:
            match self.find(name):
                case Refused() as refused:
                    refusals.append(refused)
                case Method(imagined="") as method:
                    yield method
        if len(refusals) == len(usual):
            reasons = "; ".join(f"{each.name}: {each.reason}" for each in refusals)
            raise refusals[0].error(None if len(usual) == 1 else f"no method applies. {reasons}")

    def smallest(self, alpha: float) -> Method:
        """The method that needs the fewest rows for this error, of those that may be taken by default."""
        return min(self.applying(), key=lambda method: method.needed(alpha))


def choose(methods: Methods, name: str, size: int | None, *, alpha: float | None = None) -> Offer:
    """What to release for this number of rows: the named method's offer, or by default, by public numbers alone,

    without preferred methods   the smallest promise
    alpha given                 the smallest proven size, if there are as many rows; otherwise the practical method
    no alpha                    the first preferred method that applies

    A promise that assumes perfect labels is worth nothing where labels may be wrong, and the methods that make it
    suffer from wrong labels most. So one of them is taken only if a promise is wanted.
    """
    if name != "auto":
        return methods.named(name).offer(size)
    if not methods.preferred:
        return min((method.offer(size) for method in methods.applying()), key=lambda offer: float(offer.promise))
    if alpha is not None and size is not None and (proven := methods.smallest(alpha)).needed(alpha) <= size:
        return proven.offer(size)
    practical, usual = methods.preferred[-1], tuple(methods.usual())
    wanted = [name for name in (methods.preferred if alpha is None else (practical,)) if name in usual]
    applying = [method for method in map(methods.find, wanted) if isinstance(method, Method)]
    offer = (applying[0] if applying else methods.smallest(alpha or USEFUL)).offer(size)
    if offer.promise.bound is not None or size is None or offer.method != practical:
        return offer
    reached = USEFUL if alpha is None else alpha
    proven = methods.smallest(reached)
    rows = f"{proven.needed(reached):,} rows ({proven.name}) are proven to make the error at most {reached:.3g}"
    supposed = proven.claim.condition or f"more than that of the best of {proven.claim.best_of}"
    asked = f"none was asked for; with alpha={reached:g} " if alpha is None else ""
    return dataclasses.replace(offer, promise=dataclasses.replace(offer.promise, reason=f"{asked}{rows}, {supposed}"))
